"""Checkpoint/redo: the stable state is kept as it was, and corrected rows are folded onto it."""

from __future__ import annotations

from typing import Any

from evenflow.operators.kernel import ListKernel
from evenflow.operators.sunion import SUnion
from evenflow.operators.times import START
from evenflow.reconcile.checkpoint import CheckpointRedo
from list_plans import ListFragment, Running

LEAF = 9


def fresh() -> tuple[CheckpointRedo[list[Any]], SUnion[list[Any]], ListFragment]:
    fragment = ListFragment((0, 1), Running(), LEAF)
    return CheckpointRedo(fragment, ListKernel()), SUnion(ListKernel(), [[], []], 10), fragment


def test_a_step_folds_the_complete_buckets_and_counts_their_rows() -> None:
    redo, sunion, _ = fresh()
    sunion.insert(0, [(1, "k", 5), (12, "k", 7)], 20)
    sunion.insert(1, [(2, "k", 1)], 15)
    assert redo.ready(sunion)
    stepped = redo.correct(sunion, None)
    assert stepped is not None
    assert stepped.leaves == {LEAF: ([(1, "k", 5, 1), (2, "k", 6, 2)], 10)}
    assert (stepped.folded, stepped.undone) == (2, False)
    assert sunion.cursor == 10
    assert not redo.ready(sunion)
    assert redo.correct(sunion, None) is None


def test_a_slice_is_about_as_many_rows_as_allowed() -> None:
    for rows_max, cursor in ((1, 10), (2, 10), (3, 20), (4, 30), (None, 30)):
        redo, sunion, _ = fresh()
        sunion.insert(0, [(1, "k", 1), (2, "k", 1), (12, "k", 1)], 30)
        sunion.insert(1, [], 30)
        redo.correct(sunion, rows_max)
        assert sunion.cursor == cursor


def test_tentative_work_leaves_the_checkpoint_as_it_was() -> None:
    """1. Fold to 10. 2. Tentative work goes on from there. 3. The corrected rows are folded onto the same state."""
    redo, sunion, fragment = fresh()
    sunion.insert(0, [(1, "k", 5)], 10)
    sunion.insert(1, [], 10)
    redo.correct(sunion, None)
    checkpoint = redo.state
    state = redo.begin()
    assert state is checkpoint
    rows = ([(11, "k", 100)], [])
    state, leaves = fragment.step(state, rows, 20)
    redo.worked(10, 20, rows, state, leaves)
    assert redo.state is checkpoint
    assert redo.can_begin
    sunion.insert(0, [(11, "k", 100)], 20)
    sunion.insert(1, [(11, "k", 1)], 20)
    stepped = redo.correct(sunion, None)
    assert stepped is not None
    assert stepped.leaves[LEAF][0] == [(11, "k", 105, 2), (11, "k", 106, 3)]
    assert stepped.folded == 2
    after = redo.state
    redo.met()
    assert redo.state is after


def test_one_reference_is_kept_and_no_rows() -> None:
    redo, sunion, _ = fresh()
    redo.begin()
    redo.worked(START, 10, ([(1, "k", 1)], []), "other", {})
    assert (redo.references, redo.held_rows) == (1, 0)
    assert not redo.ready(sunion)
