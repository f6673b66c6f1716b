"""The paper's single stream out of the two lanes: stable rows, tentative rows, ``Undo``, stable rows, ``RecDone``.

It is made at the edge, for it is the consumer that knows what it has shown. While tentative rows are shown, stable
ones are held. When they have caught up, or the producer ends a correction, everything tentative is taken back, the
stable rows follow, and the tentative rows that are still beyond them are shown again with new ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evenflow.engine.messages import Show
from evenflow.operators.items import Boundary, Data, Item, RecDone, Undo
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import START

R = TypeVar("R")
HELD_ROWS_MAX = 1_000_000
"""Stable rows held behind tentative ones; beyond, a correction is made of what there is."""


@dataclass(frozen=True, slots=True, eq=False)
class Stable:
    """Rows that will never change; ``first_id`` numbers the first."""

    rows: Any
    first_id: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Tentative:
    """Rows based on partial input; ``missing`` names the inputs they lack."""

    rows: Any
    missing: frozenset[str] = frozenset()
    first_id: int = 0


class Linear(Generic[R]):
    """One output as its user sees it."""

    def __init__(self, kernel: Kernel[R], held_rows_max: int = HELD_ROWS_MAX) -> None:
        self.last_id = 0
        """The last stable id shown."""
        self.boundary = START
        self.shown: deque[Data[R]] = deque()
        """Tentative items that are shown and not superseded, or partly."""
        self._kernel = kernel
        self._held: list[Data[R]] = []
        self._held_rows = 0
        self._held_rows_max = held_rows_max
        self._tentative_rows = 0
        """Tentative rows shown since the last undo."""
        self._reached = START

    def take(self, item: Item[R]) -> Iterator[Show]:
        """What an item of either lane makes the user see."""
        if isinstance(item, Data) and item.stable:
            yield from self._stable(item)
        elif isinstance(item, Data):
            yield from self._tentative(item)
        elif isinstance(item, RecDone):
            covered = item.upto >= self._reached
            if self._tentative_rows:
                yield from self._correct(item.upto if covered else self._stable_boundary)
            elif covered:
                self._forget(item.upto)

    @property
    def tentative_rows(self) -> int:
        """Tentative rows that are shown now."""
        return self._tentative_rows

    @property
    def _stable_boundary(self) -> int:
        return self._held[-1].boundary.time if self._held else self.boundary

    def _stable(self, item: Data[R]) -> Iterator[Show]:
        self._held.append(item)
        self._held_rows += self._kernel.count(item.rows)
        if not self._tentative_rows:
            yield from self._release()
            self._forget(self.boundary)
        elif item.boundary.time >= self._reached or self._held_rows > self._held_rows_max:
            yield from self._correct(item.boundary.time)
        while self.shown and self.shown[0].boundary.time <= self._stable_boundary:
            self.shown.popleft()

    def _tentative(self, item: Data[R]) -> Iterator[Show]:
        self.shown.append(item)
        self._reached = max(self._reached, item.boundary.time)
        yield from self._show(item)
        yield Show(item.boundary)

    def _correct(self, upto: int) -> Iterator[Show]:
        """Take back what is tentative, show what is stable, and show again what is still beyond ``upto``."""
        yield Show(Undo(self.last_id))
        self._tentative_rows = 0
        yield from self._release()
        yield Show(RecDone(self.boundary))
        self._forget(upto)
        for item in self.shown:
            yield from self._show(item, resent=True)

    def _release(self) -> Iterator[Show]:
        held, self._held, self._held_rows = self._held, [], 0
        for item in held:
            if self._kernel.count(item.rows):
                yield Show(Stable(item.rows, item.first_id))
            self.last_id, self.boundary = item.boundary.last_id, item.boundary.time
        if held:
            yield Show(Boundary(self.boundary, True, self.last_id))

    def _forget(self, upto: int) -> None:
        """Tentative rows before ``upto`` are superseded."""
        self.shown = deque(
            Data(self._kernel.split(item.rows, upto)[1], item.first_id, item.boundary, item.missing)
            for item in self.shown
            if item.boundary.time > upto
        )
        if not self.shown:
            self._reached = START

    def _show(self, item: Data[R], resent: bool = False) -> Iterator[Show]:
        rows = self._kernel.count(item.rows)
        if rows:
            first_id = self.last_id + self._tentative_rows + 1
            self._tentative_rows += rows
            yield Show(Tentative(item.rows, item.missing, first_id), resent)
