"""What a client saw: new rows and their delays, and when no source could be heard."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple, TypeVar

from evenflow.engine.linear import Stable, Tentative
from evenflow.engine.simulator.faults import Crash, Cut, Fault, Partition, Pause, Skew, Slow, Stall, merged
from evenflow.engine.simulator.layout import address, client
from evenflow.engine.simulator.net import hits
from evenflow.engine.simulator.run import Run
from evenflow.operators.items import Boundary

R = TypeVar("R")


class New(NamedTuple):
    """A row, or the oldest of several, that the client had heard nothing of before."""

    time_us: int
    tuple_time: int

    @property
    def delay_us(self) -> int:
        return self.time_us - self.tuple_time


def allowance_us(run: Run[Any], output: str) -> int:
    """kX: the sum of X on the longest path to an output's client, what slow links and skewed clocks add, and a switch.

    A slice of redo is one bucket at least; where folding that takes longer than a slice may, X is exceeded by it.
    """
    x = max(sum(_x_us(run, node) for node in path[1:]) for path in run.layout.paths(output))
    slow = sum(fault.by_us for fault in run.faults if isinstance(fault, Slow))
    skew = max((abs(fault.by_us) for fault in run.faults if isinstance(fault, Skew)), default=0)
    settings = run.layout.settings
    replicated = any(run.layout.choices[node].replicas > 1 for path in run.layout.paths(output) for node in path[1:])
    switch = run.layout.margin_us + 3 * settings.heartbeat_us + 4 * settings.link_us if replicated and run.faults else 0
    return x + slow + skew + switch


def _x_us(run: Run[Any], node: str) -> int:
    over = run.busy_us_max.get(address(node), 0) - run.layout.slice_us(node)
    return run.layout.choices[node].x_us + 2 * max(over, 0)


def recovery_us(run: Run[Any], length_us: int) -> int:
    """How long after a fault has healed what was missed may still be on its way."""
    settings = run.layout.settings
    found = 4 * settings.heartbeat_us + settings.boundary_us + 6 * settings.link_us
    return found + int(length_us / settings.replay_speed)


def unheard(run: Run[Any], output: str) -> list[tuple[int, int]]:
    """The stretches of virtual time in which no source had a live path to an output's client."""
    dead: list[tuple[int, int]] | None = None
    for path in run.layout.paths(output):
        for replicas in product(*(run.layout.addresses(node) for node in path[1:])):
            spans = merged(_hit(run, [path[0], *replicas, client(output)]))
            dead = spans if dead is None else _both(dead, spans)
    return dead or []


def _hit(run: Run[Any], ends: list[str]) -> Iterator[tuple[int, int]]:
    """The faults on one path, by replicas, each until what was missed has been delivered."""
    for fault in run.faults:
        if not isinstance(fault, Skew) and _on(fault, ends):
            start, end = fault.span_us
            by = fault.by_us if isinstance(fault, Slow) else 0
            yield run.start_us + start, run.start_us + end + by + recovery_us(run, end - start)


def _on(fault: Fault, ends: list[str]) -> bool:
    if isinstance(fault, Cut | Slow | Partition):
        return any(hits(fault, a, b) for a, b in pairwise(ends))
    if isinstance(fault, Stall):
        return fault.where == ends[0]
    return isinstance(fault, Pause | Crash) and fault.where in (*ends, *(end.partition("/")[0] for end in ends[1:]))


def _both(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where spans of both lie."""
    met = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return merged((start, end) for start, end in met if start < end)


def new_rows(run: Run[R], output: str) -> Iterator[New]:
    """Of every batch, the oldest new row that had a live path to the client when it was due.

    Rows of the end are left out: what closes the last windows are final boundaries, and they are no sign of time.
    """
    kernel = run.layout.kernel
    last = run.end_us - run.layout.settings.bucket_us - run.layout.settings.boundary_us
    dead, allowed = unheard(run, output), allowance_us(run, output)
    had = -(2**63)
    for time_us, show in run.shown[output]:
        if isinstance(show.item, Boundary):
            had = max(had, show.item.time)
        elif isinstance(show.item, Stable | Tentative) and not show.resent:
            rows = kernel.split(show.item.rows, had)[1]
            while kernel.count(rows):
                oldest = kernel.earliest(rows)
                if oldest >= last:
                    break
                until = [end for start, end in dead if start < min(time_us, oldest + allowed) and oldest < end]
                if not until:
                    yield New(time_us, oldest)
                    break
                rows = kernel.split(rows, max(until))[1]


def n_tentative(run: Run[R], output: str) -> int:
    """Tentative rows that the client received, each counted once."""
    return sum(
        run.layout.kernel.count(show.item.rows)
        for _, show in run.shown[output]
        if isinstance(show.item, Tentative) and not show.resent
    )
