"""Any network folded by passes over partitions is the same fold, to the bit: from the beginning, or from a checkpoint.

Tasks run here one after the other in this process, through the files and messages that workers use.
"""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.engine.runtime.replay.run import Replay
from evenflow.operators.times import FINAL
from evenflow.queries.compile import compile_plan
from recipes import Inputs, bits, cuts, random_case
from replays import in_process, redone_by_passes


def backfilled(net: ef.Network, inputs: Inputs, parallelism: int) -> Inputs:
    plan = compile_plan(net.nodes, net.output_numbers)
    given_rows = {net.sources[name].number: rows for name, rows in inputs.items()}
    with TemporaryDirectory() as folder:
        leaves = tuple(plan.outputs.values())
        replay = Replay(plan.fragments, leaves, Path(folder), parallelism, in_process)
        made, _ = replay.run(given_rows, None, FINAL)
        return {name: made[number].rows() for name, number in plan.outputs.items()}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_whole_network_by_passes_is_its_fold(seed: int) -> None:
    net, inputs = random_case(seed)
    whole = ef.fold(net, inputs)
    spread = backfilled(net, inputs, random.Random(seed).choice([1, 2, 3, 5]))
    for name, rows in whole.items():
        assert bits(spread[name]) == bits(rows.drop("tuple_id", "tuple_type")), name


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_redo_by_passes_from_any_checkpoint_is_the_fold(seed: int) -> None:
    """Up to one cut in process, to the next by passes, and on from the merged state in process again."""
    net, inputs = random_case(seed)
    rng = random.Random(seed)
    at = cuts(rng, inputs)
    redone, states = redone_by_passes(net, inputs, at, rng.choice([2, 3, 5]), rng)
    plain, expected = redone_by_passes(net, inputs, at, 0, rng)
    for name in plain:
        assert bits(redone[name]) == bits(plain[name]), name
    assert all(mine.same_as(theirs) for mine, theirs in zip(states, expected, strict=True))


def test_nothing_in_nothing_out() -> None:
    net, inputs = random_case(7)
    empty = {name: rows.clear() for name, rows in inputs.items()}
    assert all(rows.is_empty() for rows in backfilled(net, empty, 3).values())
