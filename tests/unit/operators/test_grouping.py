"""Groups against dicts."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.grouping import Groups
from oracles import same_key

KEYS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 2]),
        st.sampled_from([None, "", "a", "b"]),
        st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
        st.sampled_from([None, True, False]),
    ),
    max_size=20,
)
TYPES = [pl.Int64, pl.String, pl.Float64, pl.Boolean]
MANY = settings(max_examples=60, deadline=None)


def columns(keys: list[Any]) -> list[pl.Series]:
    return [pl.Series([key[i] for key in keys], dtype=dtype) for i, dtype in enumerate(TYPES)]


def numbered(keys: list[Any]) -> list[int]:
    """Each row's group, by first appearance."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(tuple(map(same_key, key)), len(numbers)) for key in keys]


@MANY
@given(keys=KEYS, width=st.integers(0, 4))
def test_codes_are_numbered_by_first_appearance(keys: list[Any], width: int) -> None:
    groups = Groups.by(columns(keys)[:width], len(keys))
    expected = numbered([key[:width] for key in keys])
    assert groups.codes.tolist() == expected
    assert groups.n == len(set(expected))


@MANY
@given(codes=st.lists(st.integers(0, 4), max_size=25))
def test_first_last_count_and_ranks(codes: list[int]) -> None:
    dense = numbered([(code,) for code in codes])
    groups = Groups(np.array(dense, dtype=np.int64), len(set(dense)))
    members = [[i for i, code in enumerate(dense) if code == group] for group in range(groups.n)]
    assert groups.first().tolist() == [member[0] for member in members]
    assert groups.last().tolist() == [member[-1] for member in members]
    assert groups.count().tolist() == [len(member) for member in members]
    assert groups.ranks().tolist() == [members[code].index(i) for i, code in enumerate(dense)]
    odd = np.array([i % 2 == 1 for i in range(len(dense))], dtype=bool)
    assert groups.count(odd).tolist() == [sum(i % 2 for i in member) for member in members]


@MANY
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.floats(-1e12, 1e12)), max_size=30))
def test_float_sums_are_left_folds_to_the_bit(rows: list[tuple[int, float]]) -> None:
    dense = numbered([(code,) for code, _ in rows])
    groups = Groups(np.array(dense, dtype=np.int64), len(set(dense)))
    totals = [0.0] * groups.n
    for code, (_, value) in zip(dense, rows, strict=True):
        totals[code] += value
    found = groups.sum(np.array([value for _, value in rows], dtype=np.float64))
    assert [struct.pack("d", value) for value in found] == [struct.pack("d", value) for value in totals]


@MANY
@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**62), 2**62), st.booleans()), max_size=30))
def test_extremes_look_only_under_the_mask(rows: list[tuple[int, int, bool]]) -> None:
    dense = numbered([(code,) for code, _, _ in rows])
    groups = Groups(np.array(dense, dtype=np.int64), len(set(dense)))
    values = np.array([value for _, value, _ in rows], dtype=np.int64)
    mask = np.array([inside for _, _, inside in rows], dtype=bool)
    for largest, best in ((True, max), (False, min)):
        found = groups.extreme(values, mask, largest)
        for group in range(groups.n):
            seen = [v for code, (_, v, inside) in zip(dense, rows, strict=True) if inside and code == group]
            if seen:
                assert found[group] == best(seen)


def test_no_rows_are_no_groups() -> None:
    assert Groups.by([pl.Series([], dtype=pl.String)], 0).n == 0
    assert Groups.by([], 0).n == 0
    assert Groups.by([], 3).codes.tolist() == [0, 0, 0]
