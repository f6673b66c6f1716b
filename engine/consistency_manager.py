"""The Consistency Manager (Borealis §3.1, figure 5): a node's state and each output's, derived from the heads.

No state is set: an output is STABLE when nothing above it is waited for, in STABILIZATION while stable heads move
towards what was wanted, in UP_FAILURE when they cannot. Control items tell of every change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

from evenflow.engine.messages import Control, Effect, Reconciled, StateChanged
from evenflow.reconcile.heads import Heads
from evenflow.reconcile.job import How
from evenflow.reconcile.state import State, worst

R = TypeVar("R")

S, F, C = State.STABLE, State.UP_FAILURE, State.STABILIZATION
PATHS: dict[tuple[State, State], tuple[State, ...]] = {
    (S, F): (F,),
    (F, C): (C,),
    (C, S): (S,),
    (C, F): (F,),
    (S, C): (F, C),
    (F, S): (C, S),
}
"""The arrows of figure 5; where two heads meet at once, a change goes over two of them."""
CONTROL = {F: "UP_FAILURE", C: "REC_REQUEST", S: "REC_DONE"}


class ConsistencyManager(Generic[R]):
    """Watches the heads and tells what changed."""

    def __init__(self, node: str, heads: Heads[R], patience_us: int) -> None:
        self.state = State.STABLE
        self.outputs = dict.fromkeys(heads.plan.outputs, State.STABLE)
        self._node = node
        self._heads = heads
        self._patience_us = patience_us
        """Corrections count as stopped after so long without progress."""
        self._blocked = dict.fromkeys(heads.plan.outputs, False)
        self._fragments = [State.STABLE] * len(heads.fragments)
        self._redone: Counter[How] = Counter()

    def redone(self, rows: Counter[How]) -> None:
        """Rows folded to correct something."""
        for how, count in rows.items():
            self._redone[how] += count

    def update(self, now_us: int, correcting: Collection[int] = ()) -> Iterator[Effect]:
        """Derive the states anew. Fragments whose corrections stopped go on from their newest stable state.

        ``correcting`` are the node's input streams whose corrections are on their way.
        """
        coming = set(correcting)
        for number, fragment in enumerate(self._heads.fragments):
            inputs = [stream in coming for stream in fragment.fragment.inputs]
            before, after = self._fragments[number], fragment.state(now_us, self._patience_us, inputs)
            self._fragments[number] = after
            if after == State.STABILIZATION:
                coming |= set(fragment.fragment.leaves) - set(self._heads.plan.inputs)
            if (before, after) == (State.STABILIZATION, State.UP_FAILURE):
                fragment.rebase()
        for output in self.outputs:
            yield from self._output(output, worst(self._fragments[i] for i in self._heads.path_numbers(output)))
        state = worst(self.outputs.values())
        if state == self.state:
            return
        for step in PATHS[self.state, state]:
            yield StateChanged(step)
        if state != State.STABILIZATION:
            yield from self._reconciled()
        self.state = state

    def correcting(self, output: str) -> bool:
        """Whether the fragment that makes an output is being corrected, whatever else above it fails."""
        leaf = self._heads.plan.outputs[output]
        return any(
            state == State.STABILIZATION and leaf in fragment.fragment.leaves
            for fragment, state in zip(self._heads.fragments, self._fragments, strict=True)
        )

    def next_us(self) -> int | None:
        """When corrections will count as stopped if nothing comes."""
        moved = [f.corrected_us for f in self._heads.fragments if f.corrected_us is not None]
        return min(moved) + self._patience_us if moved else None

    def _output(self, name: str, state: State) -> Iterator[Effect]:
        blocked = any(fragment.blocked for fragment in self._heads.path(name))
        before = self.outputs[name]
        self.outputs[name] = state
        for step in PATHS.get((before, state), ()):
            yield Control(CONTROL[step], f"{self._node}:{name}")
            yield StateChanged(step, name, blocked)
        if blocked != self._blocked[name]:
            self._blocked[name] = blocked
            yield Control("BLOCKED" if blocked else "UNBLOCKED", f"{self._node}:{name}")
            if before == state:
                yield StateChanged(state, name, blocked)

    def _reconciled(self) -> Iterator[Effect]:
        for how, rows in self._redone.items():
            yield Reconciled(how.method, how.executor, rows, how.fell_back)
        self._redone.clear()
