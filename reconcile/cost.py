"""Which method reconciles a fragment: the cost model of the paper's Table 2, for states that are immutable.

With D the length of a failure, λ the rate of rows into the fragment and S the rows that rebuild its state
(λ times its horizon):

- checkpoint/redo copies no state, only keeps a reference, and folds every row again: ``Dλ·p_proc``;
- undo/redo compares every row, and where something changed rebuilds the state and folds: ``Dλ·p_comp +
  c·(S + Dλ)·p_proc``, c being the chance that a change reaches the fragment.

λ cancels out. A fragment that reads the node's inputs lacks rows itself when one of them fails, so c is 1 and
checkpoint/redo is always the better; further inside, filters and windows stop some changes, and there a short
horizon speaks for undo/redo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from evenflow.operators.kernel import Kernel
from evenflow.operators.plan import FoldFragment
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.redo import MethodName, Redo
from evenflow.reconcile.undo import UndoRedo

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Costs:
    """Constants of the model. The first is measured (``python -m bench reconcile``), the others are assumed."""

    compare_share: float = 0.3
    """p_comp / p_proc: comparing a row against folding it into the cheapest aggregate."""
    failure_us: int = 10_000_000
    changed_at_input: float = 1.0
    changed_inside: float = 0.5

    def choose(self, horizon_us: int | None, at_input: bool) -> MethodName:
        """The cheaper method for a fragment.

        >>> Costs().choose(0, at_input=True), Costs().choose(0, at_input=False), Costs().choose(None, at_input=False)
        ('checkpoint', 'undo', 'checkpoint')
        """
        if horizon_us is None:
            return "checkpoint"
        changed = self.changed_at_input if at_input else self.changed_inside
        undo = self.compare_share + changed * (horizon_us / self.failure_us + 1)
        return "undo" if undo < 1 else "checkpoint"


def chooser(reconcile: str, inputs: tuple[int, ...]) -> Callable[[FoldFragment[R], Kernel[R]], Redo[R]]:
    """Makes each fragment's method, as a node's ``reconcile=`` says; ``inputs`` are the node's own streams."""

    def choose(fragment: FoldFragment[R], kernel: Kernel[R]) -> Redo[Any]:
        method = reconcile
        if method == "auto":
            method = Costs().choose(fragment.horizon, all(stream in inputs for stream in fragment.inputs))
        if method == "undo" and fragment.horizon is not None:
            return UndoRedo(fragment, kernel)
        return CheckpointRedo(fragment, kernel, fell_back=method == "undo")

    return choose
