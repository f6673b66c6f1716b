"""The join's segments: what a probe finds, and how segments grow and fall away."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.join_index import INDEX, NUMBER, Side, expire, insert, probe, sides
from evenflow.operators.join_sweep import sweep
from evenflow.operators.keys import key_hash
from oracles import frame

SCHEMA = {"k": pl.Int64}
BLOCK = 1 << 40
NEAR = st.integers(-9, 30)
FAR = st.sampled_from([-1, 0, 1, BLOCK - 1, BLOCK, BLOCK + 1, -BLOCK, 5 * BLOCK])
ROWS = st.lists(st.fixed_dictionaries({"tuple_time": NEAR | FAR, "k": st.integers(0, 4)}), max_size=25)
MANY = settings(max_examples=60, deadline=None)
Rows = list[dict[str, int]]


@MANY
@given(kept=ROWS, asked=ROWS, within=st.sampled_from([None, 0, 3, 12, BLOCK, 3 * BLOCK]), earlier=st.integers(0, 1))
def test_probe_finds_the_rows_of_a_key_in_a_band(kept: Rows, asked: Rows, within: int | None, earlier: int) -> None:
    kept_rows, asked_rows = frame(kept, SCHEMA), frame(asked, SCHEMA)
    found = []
    for target in (Side.of(side.segment()) for side in sides(kept_rows, ["k"], 0)):
        for probes in sides(asked_rows, ["k"], 0):
            at, to = probe(target, probes, within, earlier)
            numbers = probes.rows[NUMBER].to_numpy()[at], target.rows[NUMBER].to_numpy()[to]
            found += list(zip(numbers[0].tolist(), numbers[1].tolist(), strict=True))
    reach = 99 * BLOCK if within is None else within
    expected = [
        (i, j)
        for i, a in enumerate(asked_rows.to_dicts())
        for j, b in enumerate(kept_rows.to_dicts())
        if a["k"] == b["k"] and earlier <= a["tuple_time"] - b["tuple_time"] <= reach
    ]
    assert sorted(found) == expected


@MANY
@given(parts=st.lists(ROWS.filter(bool), min_size=1, max_size=6), span=st.none() | st.integers(0, 40))
def test_inserted_segments_hold_every_row_by_their_words(parts: list[Rows], span: int | None) -> None:
    rows = frame([row for part in parts for row in part], SCHEMA)
    segments: tuple[pl.DataFrame, ...] = ()
    first = 0
    for part in parts:
        for side in sides(rows.slice(first, len(part)), ["k"], first):
            segments = insert(segments, side.segment(), span)
        first += len(part)
    assert pl.concat(segments).sort(NUMBER).select("tuple_time", "k").equals(rows)
    for segment in segments:
        words = segment[INDEX].to_list()
        assert words == sorted(words)
        assert len(set((segment["tuple_time"] // BLOCK).to_list())) == 1


def test_many_small_inserts_make_few_segments() -> None:
    segments: tuple[pl.DataFrame, ...] = ()
    for n in range(256):
        (side,) = sides(frame([{"tuple_time": n, "k": n % 3}], SCHEMA), ["k"], n)
        segments = insert(segments, side.segment(), None)
    assert sum(part.height for part in segments) == 256
    assert len(segments) <= 9


def test_a_segment_does_not_grow_beyond_the_span() -> None:
    segments: tuple[pl.DataFrame, ...] = ()
    for n in range(40):
        (side,) = sides(frame([{"tuple_time": n, "k": 0}], SCHEMA), ["k"], n)
        segments = insert(segments, side.segment(), 5)
    assert all(part["tuple_time"].max() - part["tuple_time"].min() <= 5 for part in segments)  # type: ignore[operator]


def test_expire_leaves_out_what_lies_wholly_before() -> None:
    old, mixed = frame([{"tuple_time": 1, "k": 0}], SCHEMA), frame([{"tuple_time": t, "k": 0} for t in (1, 5)], SCHEMA)
    assert expire((old, mixed), 2) == (mixed,)
    assert expire((old, mixed), 1) == (old, mixed)


@MANY
@given(rows=ROWS, sides_=st.lists(st.booleans(), min_size=25, max_size=25), within=st.none() | st.integers(0, 12))
def test_a_sweep_finds_each_pair_of_both_sides(rows: Rows, sides_: list[bool], within: int | None) -> None:
    data = frame([row for row in rows if abs(row["tuple_time"]) < 100], SCHEMA)
    left = np.array(sides_[: data.height], dtype=bool)
    if not data.height:
        return
    swept = sweep(key_hash(data, ["k"]), data["tuple_time"].to_numpy(), left, within)
    assert swept is not None
    pairs = data.to_dicts()
    found = {
        (i, j) for i, j in zip(swept[0].tolist(), swept[1].tolist(), strict=True) if pairs[i]["k"] == pairs[j]["k"]
    }
    expected = {
        (i, j)
        for j in range(len(pairs))
        for i in range(j)
        if left[i] != left[j]
        and pairs[i]["k"] == pairs[j]["k"]
        and (within is None or pairs[j]["tuple_time"] - pairs[i]["tuple_time"] <= within)
    }
    assert found == expected


@pytest.mark.parametrize("n", [300])
def test_a_sweep_gives_up_where_a_row_has_many_partners(n: int) -> None:
    hashes = np.zeros(n, dtype=np.uint64)
    assert sweep(hashes, np.arange(n), np.arange(n) % 2 == 0, 10 * n) is None
