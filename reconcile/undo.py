"""Undo/redo (Borealis §4.3): keep no state from before the failure, but the input that rebuilds it.

While there is tentative work the stable head is only a cursor: its *stream marker*. Kept besides are the input
history behind the marker, as long as the fragment's horizon, and a journal of the tentative steps. When corrected
buckets come, each is compared with what the step had folded. As long as nothing changed, what the step gave *is* the
stable output, and no row is folded again. At the first change the state is undone: rebuilt from the history at the
marker, and the corrected rows are folded onto it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from evenflow.operators.errors import InvariantError
from evenflow.operators.kernel import Kernel
from evenflow.operators.plan import FoldFragment
from evenflow.operators.sunion import SUnion
from evenflow.operators.times import later
from evenflow.reconcile.redo import Leaves, MethodName, Stepped

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class _Step(Generic[R]):
    """A tentative step: the rows it folded and what it gave."""

    upto: int
    rows: tuple[R, ...]
    leaves: Leaves[R]


class UndoRedo(Generic[R]):
    """The stable head is a state only while no tentative work goes on."""

    name: MethodName = "undo"
    fell_back = False

    def __init__(self, fragment: FoldFragment[R], kernel: Kernel[R]) -> None:
        if fragment.horizon is None:
            raise InvariantError("undo/redo: a fragment without a horizon cannot be rebuilt from its input")
        self._horizon_us = fragment.horizon
        self._fragment = fragment
        self._kernel = kernel
        self.state: Any = fragment.initial()
        self._given = False
        """Whether the state was given to the tentative head and not got back."""
        self._tentative_state: Any = None
        self._history: deque[tuple[int, tuple[R, ...]]] = deque()
        self._journal: deque[_Step[R]] = deque()

    @property
    def can_begin(self) -> bool:
        return not self._given

    @property
    def references(self) -> int:
        return 0 if self._given else 1

    @property
    def held_rows(self) -> int:
        kept = [*(rows for _, rows in self._history), *(step.rows for step in self._journal)]
        return sum(self._kernel.count(part) for rows in kept for part in rows)

    def next_upto(self, sunion: SUnion[R], rows_max: int | None) -> int:
        if not self._given:
            return sunion.ready(rows_max)
        if self._journal and self._journal[0].upto <= sunion.complete_upto:
            return self._journal[0].upto
        return sunion.cursor

    def step(self, sunion: SUnion[R], upto: int) -> Stepped[R]:
        since = sunion.cursor
        rows = sunion.take(upto)
        stepped = self._corrected(rows, since, upto) if self._given else self._fold(rows, upto)
        self._remember(upto, rows)
        return stepped

    def replayed(self, state: Any, upto: int, rows: tuple[R, ...]) -> None:
        self.state, self._given = state, False
        self._journal.clear()
        self._tentative_state = None
        self._remember(upto, rows)

    def begin(self) -> Any:
        state, self.state = self.state, None
        self._given, self._tentative_state = True, state
        return state

    def worked(self, since: int, upto: int, rows: Sequence[R], state: Any, leaves: Leaves[R]) -> None:
        if self._given:
            self._journal.append(_Step(upto, tuple(rows), leaves))
            self._tentative_state = state

    def met(self) -> None:
        if self._given:
            self.state, self._given = self._tentative_state, False
        self._tentative_state = None
        self._journal.clear()

    def _corrected(self, rows: tuple[R, ...], since: int, upto: int) -> Stepped[R]:
        """Take a tentative step as stable if its rows did not change; else undo."""
        done = self._journal.popleft()
        if all(map(self._kernel.same, rows, done.rows)):
            return Stepped(done.leaves, folded=0)
        rebuilt = self._rebuild(since)
        stepped = self._fold(rows, upto)
        return Stepped(stepped.leaves, stepped.folded + rebuilt, undone=True)

    def _fold(self, rows: tuple[R, ...], upto: int) -> Stepped[R]:
        self.state, leaves = self._fragment.step(self.state, rows, upto)
        return Stepped(leaves, sum(map(self._kernel.count, rows)))

    def _rebuild(self, marker: int) -> int:
        """The state at the marker out of the input history; gives how many rows that took."""
        self.state, self._given = self._fragment.initial(), False
        self._journal.clear()
        self._tentative_state = None
        if not self._history:
            return 0
        parts = zip(*(rows for _, rows in self._history), strict=True)
        rows = tuple(self._kernel.concat(part) for part in parts)
        self.state, _ = self._fragment.step(self.state, rows, marker)
        return sum(map(self._kernel.count, rows))

    def _remember(self, upto: int, rows: tuple[R, ...]) -> None:
        if self._horizon_us:
            self._history.append((upto, rows))
        while self._history and self._history[0][0] <= later(upto, -self._horizon_us):
            self._history.popleft()
