"""lookup: rows found among known keys, against a dict."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators import lookup as module
from evenflow.operators.lookup import UNKNOWN, lookup

KEYS = {
    pl.Int64(): st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    pl.String(): st.one_of(st.none(), st.text(max_size=20)),
    pl.Float64(): st.one_of(st.none(), st.sampled_from([0.0, 1.5, float("inf")])),
    pl.Boolean(): st.one_of(st.none(), st.booleans()),
}


def columns(rows: list[tuple[Any, ...]], types: list[pl.DataType]) -> list[pl.Series]:
    return [pl.Series([row[i] for row in rows], dtype=dtype) for i, dtype in enumerate(types)]


@settings(max_examples=150)
@given(st.data())
def test_rows_are_found_where_a_dict_finds_them(data: st.DataObject) -> None:
    types = data.draw(st.lists(st.sampled_from(list(KEYS)), min_size=1, max_size=3))
    row = st.tuples(*(KEYS[dtype] for dtype in types))
    known = data.draw(st.lists(row, min_size=1, max_size=30, unique=True))
    rows = data.draw(st.lists(st.one_of(st.sampled_from(known), row), min_size=1, max_size=60))
    place = {key: at for at, key in enumerate(known)}
    found = lookup(columns(known, types), columns(rows, types)).tolist()
    for key, at in zip(rows, found, strict=True):
        assert at == place.get(key, UNKNOWN)


@pytest.mark.parametrize("dtype", [pl.Int64(), pl.String()])
def test_every_known_key_is_found(dtype: pl.DataType) -> None:
    known = pl.Series(range(5_000)).cast(dtype)
    found = lookup([known], [known.reverse()])
    assert found.tolist() == list(range(4_999, -1, -1))


def test_keys_that_share_a_hash_are_not_taken_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_hash", lambda parts: pl.Series([7] * len(parts[0]), dtype=pl.UInt64).to_numpy())
    found = lookup([pl.Series(["a", "b"])], [pl.Series(["a", "b", "c"])])
    assert found.tolist() == [0, 1, UNKNOWN]
    many = [str(i) for i in range(3 * module._ROUNDS_MAX)]
    found = lookup([pl.Series(many)], [pl.Series([*reversed(many), None, "new"])])
    assert found.tolist() == [*reversed(range(len(many))), UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("dtype", [pl.Int64(), pl.String()])
@pytest.mark.parametrize("slots_per_key", [1, 16])
def test_keys_that_lose_their_slot_are_told_from_unknown_ones(
    dtype: pl.DataType, slots_per_key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of keys, so that many share a slot; half of the rows are of keys that nobody knows."""
    monkeypatch.setattr(module, "_SLOTS_PER_KEY", slots_per_key)
    known = pl.Series([None, *range(0, 8_000, 2)]).cast(dtype)
    rows = pl.Series([*range(7_999, -1, -1), None]).cast(dtype)
    place = {key: at for at, key in enumerate(known.to_list())}
    assert lookup([known], [rows]).tolist() == [place.get(key, UNKNOWN) for key in rows.to_list()]
    pane = [pl.Series([5] * len(known)), pl.Series([5] * (len(rows) - 1) + [6])]
    both = lookup([pane[0], known], [pane[1], rows])
    assert both.tolist() == [*(place.get(key, UNKNOWN) for key in rows.to_list()[:-1]), UNKNOWN]


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0.0, -0.0, 1.5, float("nan"), None]), max_size=9), st.data())
def test_rows_are_split_by_whether_their_key_came(rows: list[float | None], data: st.DataObject) -> None:
    came = data.draw(st.lists(st.sampled_from([0.0, -0.0, float("nan"), None]), min_size=1, max_size=3))
    known = pl.DataFrame({"k": rows * 300}, schema={"k": pl.Float64}).with_row_index("at")
    hit, other = module.split_touched((known,), pl.DataFrame({"k": came}, schema={"k": pl.Float64}), ["k"])
    if len(known) <= 1024:
        assert hit == (known,)
        return
    names = {str(value).replace("-", "") for value in came}
    expected = [at for at, value in enumerate(rows * 300) if str(value).replace("-", "") in names]
    assert [at for frame in hit for at in frame["at"].to_list()] == expected
    assert sum(map(len, hit)) + sum(map(len, other)) == len(known)
