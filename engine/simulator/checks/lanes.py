"""Invariant 5: stable boundaries rise, ids are gapless, an undo has one RecDone; rows say what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from evenflow.engine.linear import Stable, Tentative
from evenflow.engine.messages import Show
from evenflow.engine.simulator.run import Run
from evenflow.operators.items import Boundary, RecDone, Undo
from evenflow.operators.times import START

R = TypeVar("R")


def lanes(run: Run[R], output: str) -> Iterator[str]:
    watch = _Watch(run)
    for time_us, show in run.shown[output]:
        for wrong in watch.see(show):
            yield f"5 lanes: {output} at {time_us}: {wrong}"
    if watch.correcting:
        yield f"5 lanes: {output}: an undo without RecDone"


class _Watch:
    """The grammar of a client's stream: (stable | tentative | boundary | Undo stable* RecDone)*."""

    def __init__(self, run: Run[R]) -> None:
        self.correcting = False
        self._kernel = run.layout.kernel
        self._known = {*run.layout.sources, *(name for p in run.layout.plans.values() for name in p.names.values())}
        self._boundary = START
        self._last_id = 0
        self._tentative_rows = 0

    def see(self, show: Show) -> Iterator[str]:
        item = show.item
        if isinstance(item, Undo):
            if self.correcting:
                yield "an undo within an undo"
            self.correcting, self._tentative_rows = True, 0
        elif isinstance(item, RecDone):
            if not self.correcting:
                yield "a RecDone without an undo"
            self.correcting = False
        elif isinstance(item, Boundary) and item.stable:
            if item.time < self._boundary:
                yield f"the stable boundary fell from {self._boundary} to {item.time}"
            self._boundary = item.time
        elif isinstance(item, Stable):
            yield from self._stable(item)
        elif isinstance(item, Tentative):
            yield from self._tentative(item)

    def _stable(self, item: Stable) -> Iterator[str]:
        if self._tentative_rows:
            yield "a stable row behind tentative ones, without an undo"
        if self._kernel.earliest(item.rows) < self._boundary:
            yield f"a stable row from before the boundary {self._boundary}"
        self._last_id = item.first_id + self._kernel.count(item.rows) - 1

    def _tentative(self, item: Tentative) -> Iterator[str]:
        if self.correcting:
            yield "a tentative row between Undo and RecDone"
        if item.first_id != self._last_id + self._tentative_rows + 1:
            yield f"tentative row {item.first_id} does not follow {self._last_id} and {self._tentative_rows} tentative"
        if self._kernel.earliest(item.rows) < self._boundary:
            yield f"a tentative row from before the stable boundary {self._boundary}"
        if not item.missing <= self._known:
            yield f"tentative rows lack {sorted(item.missing)}, which is no input"
        self._tentative_rows += self._kernel.count(item.rows)
