"""How a fragment's stable head goes on after a failure: what every method of reconciliation must do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from evenflow.operators.sunion import SUnion

R = TypeVar("R")
Leaves = Mapping[int, tuple[R, int]]
"""Each leaf's rows and boundary, by stream number."""
MethodName = Literal["checkpoint", "undo"]


@dataclass(frozen=True, slots=True, eq=False)
class Stepped(Generic[R]):
    """One stable step: what came out, if anything, and how many rows were folded for it."""

    leaves: Leaves[R]
    folded: int
    undone: bool = False
    """Whether state was undone, to be rebuilt from input history."""
    compared: int = 0
    """Rows that were only compared, at about a quarter of the cost."""

    @property
    def cost(self) -> int:
        """What it took, in rows folded."""
        return self.folded + self.compared // 4


class Redo(Protocol[R]):
    """One fragment's stable state, and how it is got back after tentative work."""

    name: MethodName
    fell_back: bool
    """Whether another method was asked for, which cannot serve this fragment."""

    state: Any
    """The stable head's state; None while the method has given it up."""

    def ready(self, sunion: SUnion[R], arriving: bool = False) -> bool:
        """Whether there is something to do for complete buckets. ``arriving``: more of them are on their way."""
        ...

    def correct(self, sunion: SUnion[R], rows_max: int | None, arriving: bool = False) -> Stepped[R] | None:
        """Do a part of it: fold about ``rows_max`` rows (None: all), and take from the SUnion what is done with."""
        ...

    def replayed(self, state: Any, upto: int, rows: tuple[R, ...]) -> None:
        """Complete buckets up to ``upto``, these rows, were folded elsewhere, onto the state of the stable head."""
        ...

    def reference(self) -> Any:
        """The stable head's state, rebuilt if it was given up; nothing changes by it."""
        ...

    def restore(self, state: Any) -> None:
        """Begin with a state from elsewhere."""
        ...

    def begin(self) -> Any:
        """The state for tentative work to start from."""
        ...

    @property
    def can_begin(self) -> bool:
        """Whether there is a stable state that tentative work could start from again."""
        ...

    def worked(self, since: int, upto: int, rows: Sequence[R], state: Any, leaves: Leaves[R]) -> None:
        """A tentative step was taken: these rows gave this state and these leaves."""
        ...

    def met(self) -> None:
        """The stable head has reached the tentative one, which is dropped."""
        ...

    @property
    def references(self) -> int:
        """How many states of the fragment are kept for the stable head."""
        ...

    @property
    def held_rows(self) -> int:
        """How many rows are kept besides those that wait in the SUnion."""
        ...
