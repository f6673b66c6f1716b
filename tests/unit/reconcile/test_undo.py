"""Undo/redo: what did not change is taken as it is; at the first change state is rebuilt from input history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.kernel import ListKernel
from evenflow.operators.sunion import SUnion
from evenflow.operators.times import FINAL, START
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.heads import Heads
from evenflow.reconcile.undo import UndoRedo
from list_plans import Distinct, Filter, ListFragment, ListPlan, Pass, Running, Window

LEAF = 9
Rows = list[Any]


class Counting(ListFragment):
    """A fragment that counts how often and how many rows it folds."""

    folds: list[int]

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Mapping[int, tuple[Rows, int]]]:
        self.folds.append(sum(map(len, rows)))
        return super().step(state, rows, upto)


def counting(operator: Pass, inputs: int = 1) -> Counting:
    fragment = Counting(tuple(range(inputs)), operator, LEAF)
    object.__setattr__(fragment, "folds", [])
    return fragment


class Case:
    """A windowed sum behind an SUnion of two inputs, and its method."""

    def __init__(self, operator: Pass) -> None:
        self.fragment = counting(operator, 2)
        self.sunion: SUnion[Rows] = SUnion(ListKernel(), [[], []], 10)
        self.redo: UndoRedo[Rows] = UndoRedo(self.fragment, ListKernel())
        self.state: Any = None
        self.cursor = START

    def insert(self, boundary: int, *rows: Any, place: int = 0) -> None:
        self.sunion.insert(place, list(rows), boundary)

    def stable(self, rows_max: int | None = None, arriving: bool = False) -> list[Any]:
        """Every stable step there is, as (rows out, rows folded, undone)."""
        out = []
        folded, undone = 0, False
        while (stepped := self.redo.correct(self.sunion, rows_max, arriving)) is not None:
            folded, undone = folded + stepped.folded, undone or stepped.undone
            if stepped.leaves:
                out.append((stepped.leaves[LEAF][0], folded, undone))
                folded, undone = 0, False
        return out

    def begin(self) -> None:
        self.state, self.cursor = self.redo.begin(), self.sunion.cursor

    def work(self, upto: int) -> Rows:
        rows = self.sunion.peek(self.cursor, upto)
        self.state, leaves = self.fragment.step(self.state, rows, upto)
        self.redo.worked(self.cursor, upto, rows, self.state, leaves)
        self.cursor = upto
        return list(leaves[LEAF][0])


def begun() -> Case:
    """A window of 20 every 10: stable to 20; then input 1 is missing, and tentative work begins."""
    case = Case(Window(20, 10))
    case.insert(20, (5, "k", 1), (15, "k", 2))
    for boundary in (10, 20):
        case.insert(boundary, place=1)
        case.stable()
    case.insert(40, (25, "k", 4), (35, "k", 8))
    case.begin()
    return case


def failed() -> Case:
    """The same, and two tentative steps are taken."""
    case = begun()
    assert case.work(30) == [(30, "k", 6, 2)]
    assert case.work(40) == [(40, "k", 12, 2)]
    case.fragment.folds.clear()
    return case


def test_steps_that_did_not_change_are_taken_without_folding() -> None:
    case = failed()
    case.insert(30, place=1)
    assert case.stable() == [([(30, "k", 6, 2)], 0, False)]
    case.insert(40, place=1)
    assert case.stable() == [([(40, "k", 12, 2)], 0, False)]
    assert case.fragment.folds == []
    case.redo.met()
    assert case.redo.state is case.state
    assert (case.redo.can_begin, case.redo.references) == (True, 1)


def test_a_step_is_taken_only_when_all_its_buckets_are_complete() -> None:
    case = failed()
    case.insert(29, place=1)
    assert not case.redo.ready(case.sunion)
    assert case.sunion.cursor == 20
    case.insert(39, place=1)
    assert case.stable(arriving=True) == [([(30, "k", 6, 2)], 0, False)]
    assert case.sunion.cursor == 30


def one_long_step() -> Case:
    """The same, but the tentative work is one step over both buckets."""
    case = begun()
    assert case.work(40) == [(30, "k", 6, 2), (40, "k", 12, 2)]
    case.fragment.folds.clear()
    return case


def test_within_a_step_the_stable_head_waits_only_while_more_is_on_its_way() -> None:
    """1. One bucket of two is complete, more is coming: wait, to compare. 2. Nothing more comes: undo, and go on."""
    case = one_long_step()
    case.insert(30, place=1)
    assert case.stable(arriving=True) == []
    assert case.stable() == [([(30, "k", 6, 2)], 3, True)]
    assert case.sunion.cursor == 30
    case.insert(40, place=1)
    assert case.stable() == [([(40, "k", 12, 2)], 1, False)]


def test_rebuilding_is_cut_into_slices() -> None:
    """Two rows of history and two corrected ones, at most one row at a time."""
    case = failed()
    case.insert(40, (21, "k", 100), place=1)
    steps = []
    while (stepped := case.redo.correct(case.sunion, 1)) is not None:
        steps.append((stepped.folded, stepped.undone, case.redo.can_begin, case.sunion.cursor))
    assert steps == [
        (0, True, False, 20),  # undone
        (1, False, False, 20),  # history: the row at 5
        (1, False, True, 20),  # and that at 15
        (2, False, True, 30),  # the corrected bucket, which has two rows
        (1, False, True, 40),
    ]
    assert case.redo.state == case_state(100)


def test_what_was_folded_elsewhere_belongs_to_the_history() -> None:
    """1. A job folds two buckets. 2. Tentative work goes on from its state. 3. A change rebuilds it from those rows."""
    case = Case(Window(20, 10))
    case.insert(20, (5, "k", 1), (15, "k", 2))
    case.insert(20, place=1)
    rows = case.sunion.look(20)
    state, _ = case.fragment.step(case.redo.state, rows, 20)
    case.sunion.drop(20)
    case.redo.replayed(state, 20, rows)
    case.insert(30, (25, "k", 4))
    case.begin()
    case.work(30)
    case.insert(30, (26, "k", 8), place=1)
    assert case.stable() == [([(30, "k", 14, 3)], 4, True)]


def case_state(extra: int) -> Any:
    """The state that a fold without failures has at 40."""
    case = Case(Window(20, 10))
    case.insert(40, (5, "k", 1), (15, "k", 2), (25, "k", 4), (35, "k", 8))
    case.insert(40, (21, "k", extra), place=1)
    case.stable()
    return case.redo.state


def test_the_first_change_rebuilds_from_history_and_folds_onto_that() -> None:
    """1. Bucket 20 is unchanged. 2. Bucket 30 got a row: the window's history from 20 on is folded, and the bucket."""
    case = failed()
    case.insert(40, (36, "k", 100), place=1)
    assert case.stable() == [([(30, "k", 6, 2)], 0, False), ([(40, "k", 112, 3)], 4, True)]
    assert case.fragment.folds == [2, 2]  # rows at 15 and 25 rebuild, rows at 35 and 36 are folded
    assert case.redo.can_begin
    case.insert(50, (45, "k", 16))
    case.insert(50, place=1)
    assert case.stable() == [([(50, "k", 124, 3)], 1, False)]


def test_a_removed_row_is_a_change_too() -> None:
    case = Case(Window(10, 10))
    case.insert(10)
    case.sunion.insert_tentative(1, [(3, "k", 7)], 10)
    case.begin()
    assert case.work(10) == [(10, "k", 7, 1)]
    case.insert(10, place=1)
    assert case.stable() == [([], 0, True)]


def test_no_state_is_held_while_it_is_given_away() -> None:
    case = failed()
    assert case.redo.state is None
    assert (case.redo.references, case.redo.can_begin) == (0, False)
    assert case.redo.held_rows == 4  # history: 5 and 15; journal: 25 and 35


def test_history_is_trimmed_to_the_horizon_and_the_journal_cleared() -> None:
    case = failed()
    case.insert(40, place=1)
    case.stable()
    assert case.redo.held_rows == 2  # rows at 25 and 35; the journal has been taken
    case.redo.met()
    case.insert(60)
    case.insert(60, place=1)
    case.stable()
    assert case.redo.held_rows == 0


def test_a_fragment_that_remembers_nothing_keeps_no_history() -> None:
    case = Case(Pass())
    case.insert(20, (5, "k", 1))
    case.insert(20, place=1)
    case.stable()
    assert case.redo.held_rows == 0


def test_meeting_after_a_change_keeps_the_rebuilt_state() -> None:
    case = failed()
    case.insert(40, (21, "k", 100), place=1)
    assert [undone for _, _, undone in case.stable()] == [True]
    rebuilt = case.redo.state
    case.redo.worked(40, 50, ([], []), "tentative", {})
    assert case.redo.held_rows == 3  # the rows of 20 to 40: work that goes on tentatively is not journalled any more
    case.redo.met()
    assert case.redo.state is rebuilt


def test_a_fragment_without_a_horizon_is_refused() -> None:
    with pytest.raises(ef.InvariantError, match="without a horizon"):
        UndoRedo(counting(Running()), ListKernel())


def test_only_the_branch_that_changed_is_folded_again() -> None:
    """Two filtered branches behind one released input pair; the late rows all fall through the first one's filter."""
    plan = ListPlan({0: "s0", 1: "s1"})
    odd = plan.add(Filter(2), 0, 1)
    plan.outputs["sums"] = plan.add(Window(20, 10), odd)
    folded = {}
    for method in (CheckpointRedo, UndoRedo):
        heads: Heads[Rows] = Heads(plan, 10, ListKernel(), method)
        heads.insert(0, [(t, "k", 2 * t + 1) for t in range(40)], 40)
        tentative = heads.release(40)
        heads.insert(1, [(t, "k", 2) for t in range(40)], 40)
        done = heads.advance()
        assert [output.rows for output in done.outputs] == [output.rows for output in tentative]
        folded[method] = (done.corrected, done.undone)
    assert folded[CheckpointRedo] == (80 + 40, [])
    assert folded[UndoRedo] == (80, [0])  # the fragment behind took its step as it was


ROW = st.tuples(st.integers(0, 59), st.sampled_from("ab"), st.integers(1, 9))
OPERATORS = [Pass(), Filter(3), Window(10, 10), Window(25, 5), Distinct(7)]


@settings(max_examples=150)
@given(
    operators=st.tuples(st.sampled_from(OPERATORS), st.sampled_from(OPERATORS)),
    inputs=st.tuples(st.lists(ROW, max_size=12), st.lists(ROW, max_size=12)),
    story=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), max_size=14),
)
def test_undo_gives_what_checkpoint_gives(operators: Any, inputs: Any, story: list[tuple[int, int]]) -> None:
    """Inputs come by and by, releases in between; the stable rows are those of a run without failures."""
    plan = ListPlan({0: "s0", 1: "s1"})
    plan.outputs["mid"] = plan.add(operators[0], 0, 1)
    plan.outputs["end"] = plan.add(operators[1], plan.outputs["mid"])
    found = []
    for method in (CheckpointRedo, UndoRedo):
        heads: Heads[Rows] = Heads(plan, 10, ListKernel(), method)
        rows = [sorted(part, key=lambda row: row[0]) for part in inputs]
        reached, released = [0, 0], 0
        stable: dict[str, Rows] = {"mid": [], "end": []}
        for kind, by in [*story, (0, FINAL), (1, FINAL)]:
            if kind == 2:
                released = max(released, max(reached) // 10 * 10)
                heads.release(released)
                continue
            upto = FINAL if by == FINAL else reached[kind] + by
            part, rows[kind] = ListKernel().split(rows[kind], upto)
            heads.insert(kind, part, upto)
            reached[kind] = upto if by != FINAL else reached[kind]
            for output in heads.advance(rows_max=by % 3 + 1 if by != FINAL else None).outputs:
                stable[output.name] += output.rows
        for output in heads.advance().outputs:
            stable[output.name] += output.rows
        found.append(stable)
    assert found[0] == found[1]
    whole: Heads[Rows] = Heads(plan, 10, ListKernel())
    for place in (0, 1):
        whole.insert(place, sorted(inputs[place], key=lambda row: row[0]), FINAL)
    assert found[0] == {output.name: output.rows for output in whole.advance().outputs}
