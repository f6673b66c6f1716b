"""Both heads of every fragment of a plan, wired from the node's inputs to its outputs.

Stable rows go down from SUnion to SUnion as buckets become complete; tentative rows follow on their own lane as far
as the node releases them. Nothing here knows a clock, ids or policies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from evenflow.operators.kernel import Kernel
from evenflow.operators.plan import FoldFragment, FoldPlan
from evenflow.operators.sunion import SUnion
from evenflow.operators.times import FINAL
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.fragment_heads import FragmentHeads, Place
from evenflow.reconcile.job import Dispatch, How, RedoJob, Replayed, Where
from evenflow.reconcile.redo import Leaves, Redo, Stepped

R = TypeVar("R")
ChooseRedo = Callable[[FoldFragment[R], Kernel[R]], Redo[R]]


@dataclass(frozen=True, slots=True, eq=False)
class FragmentSnapshot(Generic[R]):
    """A stable head, and the stable rows that wait in its SUnion."""

    state: Any
    cursor: int
    rows: tuple[tuple[R, ...], ...]
    """Each input's, in parts."""
    boundaries: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Output(Generic[R]):
    """Rows of an output stream and the boundary behind them; ``missing`` is None for stable ones."""

    name: str
    rows: R
    boundary: int
    cursor: int
    """How far the fragments above it have folded, the least of them: a window's boundary lies ahead of that."""
    missing: frozenset[str] | None = None


@dataclass(slots=True)
class Advanced(Generic[R]):
    """What a move of the stable heads gave."""

    outputs: list[Output[R]] = field(default_factory=list)
    redone: Counter[How] = field(default_factory=Counter)
    """Rows folded to correct something."""
    jobs: list[RedoJob[R]] = field(default_factory=list)
    """What is to be folded elsewhere."""
    undone: list[int] = field(default_factory=list)
    """The fragments whose state was undone and rebuilt."""
    more: bool = False
    """Whether complete buckets are left."""

    @property
    def corrected(self) -> int:
        return sum(self.redone.values())


class Heads(Generic[R]):
    """The folds of one node."""

    def __init__(
        self, plan: FoldPlan[R], bucket_us: int, kernel: Kernel[R], redo: ChooseRedo[R] = CheckpointRedo
    ) -> None:
        self.plan = plan
        self.fragments: list[FragmentHeads[R]] = []
        self._kernel = kernel
        self._readers: dict[int, list[tuple[FragmentHeads[R], int]]] = {}
        self._names: dict[int, list[str]] = {}
        for name, stream in plan.outputs.items():
            self._names.setdefault(stream, []).append(name)
        self._above = {stream: frozenset({plan.names[stream]}) for stream in plan.inputs}
        """For each stream, the node's inputs that it comes from, by name."""
        self._path: dict[int, frozenset[int]] = {}
        """For each leaf, the fragments it comes through."""
        for number, fragment in enumerate(plan.fragments):
            sunion = SUnion(kernel, [plan.empty(i) for i in fragment.inputs], bucket_us)
            self._wire(number, fragment, sunion, redo(fragment, kernel))

    def _wire(self, number: int, fragment: FoldFragment[R], sunion: SUnion[R], redo: Redo[R]) -> None:
        inputs, above = self.plan.inputs, self._above
        places = [Place(self.plan.names[i] if i in inputs else None, above[i]) for i in fragment.inputs]
        heads = FragmentHeads(fragment, sunion, redo, places)
        self.fragments.append(heads)
        path = frozenset({number}).union(*(self._path[i] for i in fragment.inputs if i not in inputs))
        for place, stream in enumerate(fragment.inputs):
            self._readers.setdefault(stream, []).append((heads, place))
        for leaf in fragment.leaves:
            if leaf not in inputs:
                above[leaf] = frozenset().union(*(above[i] for i in fragment.inputs))
            self._path[leaf] = path

    def above(self, output: str) -> frozenset[str]:
        """The node's inputs that an output comes from, by name."""
        return self._above[self.plan.outputs[output]]

    def path_numbers(self, output: str) -> frozenset[int]:
        """The numbers of the fragments above an output."""
        return self._path[self.plan.outputs[output]]

    def path(self, output: str) -> list[FragmentHeads[R]]:
        """The fragments above an output."""
        return [self.fragments[number] for number in self.path_numbers(output)]

    @property
    def checkpoint(self) -> tuple[Any, ...]:
        """The stable heads' states: a checkpoint is this reference."""
        return tuple(fragment.redo.state for fragment in self.fragments)

    @property
    def failing(self) -> bool:
        return any(fragment.failing for fragment in self.fragments)

    @property
    def buffered_rows(self) -> int:
        """Rows that wait in SUnions or are kept for reconciliation."""
        return sum(fragment.sunion.rows + fragment.redo.held_rows for fragment in self.fragments)

    def insert(self, stream: int, rows: R, boundary: int) -> None:
        """Stable rows of a stream, with the boundary behind them."""
        for fragment, place in self._readers.get(stream, ()):
            fragment.insert(place, rows, boundary)

    def insert_tentative(self, stream: int, rows: R, boundary: int, missing: frozenset[str]) -> None:
        for fragment, place in self._readers.get(stream, ()):
            fragment.insert_tentative(place, rows, boundary, missing)

    def clear_tentative(self, stream: int, upto: int) -> None:
        """Tentative rows of a stream before ``upto`` are void."""
        for fragment, place in self._readers.get(stream, ()):
            fragment.clear_tentative(place, upto)

    def advance(
        self,
        rows_max: int | None = None,
        now_us: int = 0,
        dispatch: Dispatch | None = None,
        arriving: Collection[int] = (),
    ) -> Advanced[R]:
        """Fold buckets that are complete, from the inputs to the outputs.

        Fragments that have something to correct fold about ``rows_max`` rows together (0: not now), each its share, or
        hand it out where ``dispatch`` says so; the others are not kept waiting by them. ``arriving`` are the node's
        input streams whose corrections are on their way.
        """
        done: Advanced[R] = Advanced()
        waiting: set[int] = set()
        coming = set(arriving)
        share = rows_max and max(1, rows_max // max(1, sum(fragment.failing for fragment in self.fragments)))
        for number, fragment in enumerate(self.fragments):
            fragment.arriving = not coming.isdisjoint(fragment.fragment.inputs)
            if not self._advance(number, share, now_us, dispatch, done):
                waiting.add(number)
            if fragment.failing and (fragment.away is not None or fragment.can_correct):
                coming.update(leaf for leaf in fragment.fragment.leaves if leaf not in self.plan.inputs)
        done.more = any(f.failing and f.can_correct for n, f in enumerate(self.fragments) if n not in waiting)
        return done

    def _advance(
        self, number: int, rows_max: int | None, now_us: int, dispatch: Dispatch | None, done: Advanced[R]
    ) -> bool:
        """The same for one fragment; False if it waits for more to come."""
        fragment, cost = self.fragments[number], 0
        while True:
            correcting, where = fragment.failing, Where.HERE
            if correcting and rows_max != 0 and dispatch is not None and fragment.can_send_off:
                where = dispatch.where(number, fragment.sunion.complete_rows, now_us)
            if where == Where.WAIT:
                return False
            if where == Where.ELSEWHERE:
                done.jobs.append(fragment.send_off(number))
            left = rows_max - cost if correcting and rows_max is not None else None
            stepped = fragment.correct(left, now_us) if left is None or left > 0 else None
            if stepped is not None:
                how = How(fragment.redo.name, "local", fragment.redo.fell_back or where == Where.INSTEAD)
                self._corrected(done, number, stepped, how if correcting else None)
                cost += stepped.cost
            elif not self._meet(fragment):  # where they met, undo/redo has its state back and can go on
                return True

    def came_back(self, number: int, replayed: Replayed[R], executor: str, now_us: int) -> Advanced[R]:
        """A job is done: the fragment's stable head is where it ended."""
        fragment = self.fragments[number]
        how = How(fragment.redo.name, executor, fragment.redo.fell_back)
        done: Advanced[R] = Advanced()
        self._corrected(done, number, fragment.came_back(replayed, now_us), how)
        self._meet(fragment)
        return done

    def _corrected(self, done: Advanced[R], number: int, stepped: Stepped[R], how: How | None) -> None:
        """A stable step was taken; ``how``, if it corrected something."""
        if how is not None:
            done.redone[how] += stepped.folded
        if stepped.undone:
            done.undone.append(number)
        done.outputs += self._send(stepped.leaves)

    def _meet(self, fragment: FragmentHeads[R]) -> bool:
        """Where a fragment's heads met, what it sent tentatively is void."""
        met = fragment.meet()
        for leaf in fragment.fragment.leaves if met else ():
            if leaf not in self.plan.inputs:
                self.clear_tentative(leaf, FINAL)
        return met

    def snapshot(self) -> tuple[FragmentSnapshot[R], ...]:
        """The stable side of every fragment: references, and the rows that wait."""
        return tuple(
            FragmentSnapshot(f.redo.reference(), f.sunion.cursor, f.sunion.waiting(), tuple(f.sunion.boundaries))
            for f in self.fragments
        )

    def restore(self, fragments: Sequence[FragmentSnapshot[R]]) -> None:
        """Stand where the stable side of another node stood; only before anything came."""
        for fragment, taken in zip(self.fragments, fragments, strict=True):
            fragment.redo.restore(taken.state)
            fragment.sunion.restore(taken.cursor, taken.rows, taken.boundaries)
            fragment.alive_up_to(taken.boundaries)

    def want(self, upto: int) -> None:
        """Results up to a time are due."""
        for fragment in self.fragments:
            fragment.want(upto)

    def release(self, upto: int) -> list[Output[R]]:
        """Let tentative heads fold what the node's inputs hold up to a time, complete or not."""
        outputs: list[Output[R]] = []
        for fragment in self.fragments:
            worked = fragment.work(upto)
            if worked is not None:
                leaves, missing = worked
                outputs += self._send(leaves, missing)
        return outputs

    def _send(self, leaves: Leaves[R], missing: frozenset[str] | None = None) -> Iterator[Output[R]]:
        for stream, (rows, boundary) in leaves.items():
            if stream not in self.plan.inputs:
                if missing is None:
                    self.insert(stream, rows, boundary)
                else:
                    self.insert_tentative(stream, rows, boundary, missing)
            for name in self._names.get(stream, ()):
                cursor = min(f.sunion.cursor if missing is None else f.reached for f in self.path(name))
                yield Output(name, rows, boundary, cursor, missing)
