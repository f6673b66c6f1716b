"""The determinism rule: stable output is a function of the stable input alone, to the bit.

Random networks over awkward input: equal bits over batch slicings, bucket sizes, Arrow round trips, and states that
are packed and unpacked on the way.
"""

from __future__ import annotations

import io
import random
from dataclasses import replace
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators import lookup
from evenflow.operators.kernel import FrameKernel
from evenflow.operators.packing import Packed
from evenflow.queries.compile import compile_plan
from evenflow.reconcile.heads import Heads
from recipes import bits, cuts, fold_sliced, random_case, slices

SEEDS = st.integers(0, 2**32)
BUCKETS_US = (1_000, 7_000, 100_000, 1_000_000, 10_000_000)


def assert_same(expected: dict[str, pl.DataFrame], got: dict[str, pl.DataFrame]) -> None:
    for name, frame in expected.items():
        assert bits(got[name]) == bits(frame), name


@settings(max_examples=120, deadline=None)
@given(seed=SEEDS)
def test_slices_and_bucket_sizes_do_not_matter(seed: int) -> None:
    net, inputs = random_case(seed)
    expected = dict(ef.fold(net, inputs))
    rng = random.Random(seed)
    for bucket_us in rng.sample(BUCKETS_US, 3):
        assert_same(expected, fold_sliced(net, inputs, bucket_us, cuts(rng, inputs)))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_folding_only_the_keys_that_came_does_not_matter(seed: int) -> None:
    """Small states are folded whole; here even they are split into the keys of the step and the others."""
    net, inputs = random_case(seed)
    expected = dict(ef.fold(net, inputs))
    with mock.patch.object(lookup, "_SMALL_ROWS", 0):
        assert_same(expected, fold_sliced(net, inputs, 7_000, cuts(random.Random(seed), inputs)))


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_every_single_bucket_as_a_step_of_its_own(seed: int) -> None:
    net, inputs = random_case(seed, rows=40)
    stamps = [t for frame in inputs.values() for t in frame["tuple_time"].to_list()]
    at = [*range(0, max(stamps, default=0) + 100_001, 50_000)]
    assert_same(dict(ef.fold(net, inputs, bucket="3s")), fold_sliced(net, inputs, 50_000, at))


def through_ipc(frame: pl.DataFrame) -> pl.DataFrame:
    buffer = io.BytesIO()
    frame.sort("tuple_time", maintain_order=True).write_ipc(buffer)
    return pl.read_ipc(buffer.getvalue())


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_an_arrow_round_trip_of_the_input_does_not_matter(seed: int) -> None:
    net, inputs = random_case(seed)
    flagged = {name: frame.sort("tuple_time", maintain_order=True) for name, frame in inputs.items()}
    chunked = {name: pl.concat([f[: f.height // 2], f[f.height // 2 :]], rechunk=False) for name, f in inputs.items()}
    expected = dict(ef.fold(net, {name: through_ipc(frame) for name, frame in inputs.items()}))
    assert_same(expected, dict(ef.fold(net, flagged)))
    assert_same(expected, dict(ef.fold(net, chunked)))


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS)
def test_a_state_that_was_packed_and_unpacked_goes_on_alike(seed: int) -> None:
    """At every cut other heads go on from a snapshot whose states went through bytes, now and then settled before."""
    net, inputs = random_case(seed)
    rng = random.Random(seed)
    plan = compile_plan(net.nodes, net.output_numbers)
    head = Heads(plan, 100_000, FrameKernel())
    parts = {name: [plan.empty(number)] for name, number in plan.outputs.items()}
    for name, rows, boundary in slices(inputs, cuts(rng, inputs)):
        head.insert(net.sources[name].number, rows, boundary)
        for output in head.advance().outputs:
            parts[output.name].append(output.rows)
        moved = []
        for fragment, taken in zip(plan.fragments, head.snapshot(), strict=True):
            state = fragment.settle(taken.state) if rng.random() < 0.5 else taken.state
            packed = [Packed.from_bytes(part.to_bytes()) for part in fragment.pack(state)]
            moved.append(replace(taken, state=fragment.unpack(packed)))
        head = Heads(plan, 100_000, FrameKernel())
        head.restore(moved)
    assert_same(dict(ef.fold(net, inputs)), {name: pl.concat(rows) for name, rows in parts.items()})


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_replicas_that_got_other_slices_end_in_the_same_state(seed: int) -> None:
    net, inputs = random_case(seed)
    rng = random.Random(seed)
    plan = compile_plan(net.nodes, net.output_numbers)
    stamps = sorted(t for frame in inputs.values() for t in frame["tuple_time"].to_list())
    end = stamps[len(stamps) * 2 // 3] // 100_000 * 100_000 if stamps else 0
    packed = []
    for _ in range(2):
        head = Heads(plan, 100_000, FrameKernel())
        for name, rows, boundary in slices(inputs, sorted({*(c for c in cuts(rng, inputs) if c < end), end})):
            if boundary <= end:
                head.insert(net.sources[name].number, rows, boundary)
                head.advance()
        settled = [f.settle(state) for f, state in zip(plan.fragments, head.checkpoint, strict=True)]
        packed.append([p for f, state in zip(plan.fragments, settled, strict=True) for p in f.pack(state)])
    assert all(mine.same_as(theirs) for mine, theirs in zip(*packed, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_the_order_in_which_sources_deliver_does_not_matter(seed: int) -> None:
    net, inputs = random_case(seed)
    shuffled = dict(random.Random(seed).sample(sorted(inputs.items()), len(inputs)))
    at = cuts(random.Random(seed), inputs)
    assert_same(fold_sliced(net, inputs, 100_000, at), fold_sliced(net, shuffled, 100_000, at))
