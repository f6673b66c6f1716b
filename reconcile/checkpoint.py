"""Checkpoint/redo (Borealis §4.3): keep the state from before the failure, and fold the corrected input onto it.

The state is immutable, so the checkpoint is a reference: taking it costs nothing, and going back is using it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from evenflow.operators.kernel import Kernel
from evenflow.operators.plan import FoldFragment
from evenflow.operators.sunion import SUnion
from evenflow.reconcile.redo import Leaves, MethodName, Stepped

R = TypeVar("R")


class CheckpointRedo(Generic[R]):
    """The stable head is a state; tentative work starts from the same one and leaves it as it is."""

    name: MethodName = "checkpoint"
    can_begin = True
    references = 1
    held_rows = 0

    def __init__(self, fragment: FoldFragment[R], kernel: Kernel[R], fell_back: bool = False) -> None:
        self.fell_back = fell_back
        self.state: Any = fragment.initial()
        self._fragment = fragment
        self._kernel = kernel

    def ready(self, sunion: SUnion[R], arriving: bool = False) -> bool:
        return sunion.complete_upto > sunion.cursor

    def correct(self, sunion: SUnion[R], rows_max: int | None, arriving: bool = False) -> Stepped[R] | None:
        upto = sunion.ready(rows_max)
        if upto <= sunion.cursor:
            return None
        rows = sunion.take(upto)
        self.state, leaves = self._fragment.step(self.state, rows, upto)
        return Stepped(leaves, sum(map(self._kernel.count, rows)))

    def replayed(self, state: Any, upto: int, rows: tuple[R, ...]) -> None:
        self.state = state

    def reference(self) -> Any:
        return self.state

    def restore(self, state: Any) -> None:
        self.state = state

    def begin(self) -> Any:
        return self.state

    def worked(self, since: int, upto: int, rows: Sequence[R], state: Any, leaves: Leaves[R]) -> None:
        pass

    def met(self) -> None:
        pass
