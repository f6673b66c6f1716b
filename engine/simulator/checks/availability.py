"""Invariant 3: new rows whose path to the client is non-blocking come within kX, and time moves on within kX.

The second half finds rows that should have come and did not: whatever the client has not heard of for longer than
kX, while some source had a live path to it, is late, whether or not there was a row. The last bucket is left out: what
follows it are final boundaries, and they are no sign of time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from evenflow.engine.simulator.run import Run
from evenflow.engine.simulator.seen import allowance_us, new_rows, unheard
from evenflow.operators.items import Boundary
from evenflow.operators.times import FINAL

R = TypeVar("R")


def availability(run: Run[R], output: str) -> Iterator[str]:
    if not _promised(run, output):
        return
    allowed = allowance_us(run, output)
    for new in new_rows(run, output):
        if new.delay_us > allowed:
            late = f"came {new.delay_us} us later, not within {allowed}"
            yield f"3 availability: {output}: a row of {new.tuple_time} {late}"
    dead = unheard(run, output)
    had = run.start_us
    for time_us, boundary in _boundaries(run, output):
        late_us = time_us - had
        if late_us > allowed and not any(start < time_us and end > time_us - 2 * allowed for start, end in dead):
            yield f"3 availability: {output}: at {time_us} nothing beyond {had} was heard: {late_us} us, not {allowed}"
        had = max(had, boundary)


def _boundaries(run: Run[Any], output: str) -> Iterator[tuple[int, int]]:
    for time_us, show in run.shown[output]:
        if isinstance(show.item, Boundary) and time_us <= run.end_us:
            yield time_us, show.item.time
    yield min(run.stopped_us, run.end_us), FINAL


def _promised(run: Run[Any], output: str) -> bool:
    """Whether X was promised: no operator on the way blocks, no policy suspends."""
    nodes = {node for path in run.layout.paths(output) for node in path[1:]}
    if any("suspend" in (c.on_failure, c.on_stabilization) for c in (run.layout.choices[node] for node in nodes)):
        return False
    return not any(fragment.blocking for node in nodes for fragment in run.layout.plans[node].fragments)
