"""Undo/redo (Borealis §4.3): keep no state from before the failure, but the input that rebuilds it.

While there is tentative work the stable head is only a cursor: its *stream marker*. Kept besides are the input
history behind the marker, as long as the fragment's horizon, and a journal of the tentative steps. When corrected
buckets come, each is compared with what the step had folded. As long as nothing changed, what the step gave *is* the
stable output, and no row is folded again. At the first change the state is undone: rebuilt from the history at the
marker, a part after the other, and the corrected rows are folded onto it. So it is where complete buckets end within
a tentative step and no more are on their way: the stable head does not wait for the rest of the step.
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
        self._base: Any = self.state
        """What the history is folded onto."""
        self._given = False
        """Whether the state was given to the tentative head and not got back."""
        self._tentative_state: Any = None
        self._history: deque[tuple[int, tuple[R, ...]]] = deque()
        self._journal: deque[_Step[R]] = deque()
        self._rebuilding: deque[tuple[int, tuple[R, ...]]] = deque()
        """The part of the history that the undone state has still to fold."""

    @property
    def can_begin(self) -> bool:
        return not self._given and not self._rebuilding

    @property
    def references(self) -> int:
        return 0 if self._given else 1

    @property
    def held_rows(self) -> int:
        kept = [*(rows for _, rows in self._history), *(step.rows for step in self._journal)]
        return sum(self._kernel.count(part) for rows in kept for part in rows)

    def ready(self, sunion: SUnion[R], arriving: bool = False) -> bool:
        if not self._given or not arriving:
            return sunion.complete_upto > sunion.cursor
        return bool(self._journal) and self._journal[0].upto <= sunion.complete_upto

    def correct(self, sunion: SUnion[R], rows_max: int | None, arriving: bool = False) -> Stepped[R] | None:
        if not self.ready(sunion, arriving):
            return None
        if self._given:
            return self._compared(sunion) or self._undo()
        if self._rebuilding:
            return self._rebuild(rows_max)
        upto = sunion.ready(rows_max)
        rows = sunion.take(upto)
        self.state, leaves = self._fragment.step(self.state, rows, upto)
        self._remember(upto, rows)
        return Stepped(leaves, self._count(rows))

    def replayed(self, state: Any, upto: int, rows: tuple[R, ...]) -> None:
        self.state, self._given = state, False
        self._journal.clear()
        self._rebuilding.clear()
        self._tentative_state = None
        self._remember(upto, rows)

    def reference(self) -> Any:
        if self.can_begin:
            return self.state
        state = self._base
        if self._history:
            parts = zip(*(rows for _, rows in self._history), strict=True)
            state, _ = self._fragment.step(state, [self._kernel.concat(part) for part in parts], self._history[-1][0])
        return state

    def restore(self, state: Any) -> None:
        """There is no history yet: until it spans the horizon, undoing goes back to this state."""
        self.state, self._given, self._base = state, False, state

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

    def _compared(self, sunion: SUnion[R]) -> Stepped[R] | None:
        """Take the next tentative step as stable, if it is complete and its rows did not change."""
        if not self._journal or self._journal[0].upto > sunion.complete_upto:
            return None
        done = self._journal[0]
        rows = sunion.look(done.upto)
        if not all(map(self._kernel.same, rows, done.rows)):
            return None
        self._journal.popleft()
        sunion.drop(done.upto)
        self._remember(done.upto, rows)
        return Stepped(done.leaves, folded=0, compared=self._count(rows))

    def _undo(self) -> Stepped[R]:
        """Give up what tentative work made of the state; it will be rebuilt."""
        self.state, self._given = self._base, False
        self._tentative_state = None
        self._journal.clear()
        self._rebuilding = deque(self._history)
        return Stepped({}, folded=0, undone=True)

    def _rebuild(self, rows_max: int | None) -> Stepped[R]:
        """Fold a part of the history again; what comes out of it was sent before."""
        parts: list[tuple[R, ...]] = []
        folded = 0
        while self._rebuilding and (rows_max is None or not parts or folded < rows_max):
            marker, rows = self._rebuilding.popleft()
            parts.append(rows)
            folded += self._count(rows)
        whole = tuple(self._kernel.concat(part) for part in zip(*parts, strict=True))
        self.state, _ = self._fragment.step(self.state, whole, marker)
        return Stepped({}, folded)

    def _count(self, rows: tuple[R, ...]) -> int:
        return sum(map(self._kernel.count, rows))

    def _remember(self, upto: int, rows: tuple[R, ...]) -> None:
        if self._horizon_us:
            self._history.append((upto, rows))
        while self._history and self._history[0][0] <= later(upto, -self._horizon_us):
            self._history.popleft()
            self._base = self._fragment.initial()
