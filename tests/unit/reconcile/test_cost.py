"""The cost model, and what a node's ``reconcile=`` makes of it."""

from __future__ import annotations

import pytest

from evenflow.operators.kernel import ListKernel
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.cost import Costs, chooser
from evenflow.reconcile.undo import UndoRedo
from list_plans import Distinct, ListFragment, Pass, Running

SECOND_US = 1_000_000


def test_a_fragment_that_lacks_rows_itself_folds_them_again_from_a_checkpoint() -> None:
    assert Costs().choose(0, at_input=True) == "checkpoint"
    assert Costs(compare_share=0.0, changed_at_input=0.9).choose(0, at_input=True) == "undo"


def test_inside_a_short_horizon_speaks_for_undo_and_a_long_one_for_checkpoint() -> None:
    costs = Costs(compare_share=0.05, failure_us=10 * SECOND_US, changed_inside=0.8)
    assert costs.choose(0, at_input=False) == "undo"
    assert costs.choose(1_800_000, at_input=False) == "undo"  # 0.05 + 0.8 * 1.18 = 0.994
    assert costs.choose(1_900_000, at_input=False) == "checkpoint"  # 0.05 + 0.8 * 1.19 = 1.002


def test_what_cannot_be_rebuilt_is_kept() -> None:
    assert Costs(compare_share=0.0, changed_inside=0.0).choose(None, at_input=False) == "checkpoint"


@pytest.mark.parametrize(
    ("reconcile", "operator", "stream", "kind", "fell_back"),
    [
        ("checkpoint", Pass(), 0, CheckpointRedo, False),
        ("checkpoint", Running(), 0, CheckpointRedo, False),
        ("undo", Distinct(5 * SECOND_US), 0, UndoRedo, False),
        ("undo", Running(), 0, CheckpointRedo, True),
        ("auto", Pass(), 0, CheckpointRedo, False),
        ("auto", Pass(), 5, UndoRedo, False),
        ("auto", Distinct(5 * SECOND_US), 5, CheckpointRedo, False),
        ("auto", Running(), 5, CheckpointRedo, False),
    ],
)
def test_each_fragment_gets_its_method(
    reconcile: str, operator: Pass, stream: int, kind: type, fell_back: bool
) -> None:
    """Streams 0 and 1 are the node's inputs, stream 5 is made inside."""
    redo = chooser(reconcile, inputs=(0, 1))(ListFragment((stream,), operator, 9), ListKernel())
    assert type(redo) is kind
    assert redo.fell_back == fell_back
    assert redo.name == ("undo" if kind is UndoRedo else "checkpoint")
