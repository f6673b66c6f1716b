"""Our own key hash: pinned, equal for equal keys, and cut into ranges that cover everything once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.keys import KeyRange, canonical_floats, key_hash, mix, short_words

WORD = 2**64


def hashes(values: Sequence[Any], dtype: Any = None) -> list[int]:
    return key_hash(pl.DataFrame({"k": pl.Series(values, dtype=dtype, strict=False)}), ["k"]).tolist()


def splitmix(z: int) -> int:
    """SplitMix64's finaliser, in Python's integers."""
    z = (z + 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def polynomial(data: bytes) -> int:
    total = sum((byte + 1) * pow(0x9E3779B97F4A7C15, place + 1, WORD) for place, byte in enumerate(data)) % WORD
    return splitmix(total ^ splitmix(len(data)))


def test_the_hash_of_published_words() -> None:
    assert mix(np.array([0, 1], dtype=np.uint64)).tolist() == [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1]


PINNED = [
    (0, pl.Int64, 12035550249420947055),
    (-1, pl.Int64, 6755974106381971767),
    (0.5, pl.Float64, 18301007836532562287),
    ("", pl.String, 2558736989570252433),
    ("évenflow", pl.String, 3679699484515482526),
    (True, pl.Boolean, 6791897765849424158),
    (None, pl.Int64, 17808715195127037534),
]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
@settings(max_examples=60, deadline=None)
def test_integers_hash_as_mixed_words(values: list[int]) -> None:
    assert hashes(values, pl.Int64) == [splitmix(splitmix(value % WORD)) for value in values]


@given(st.lists(st.text(max_size=40), max_size=20))
@settings(max_examples=60, deadline=None)
def test_strings_hash_as_a_polynomial_of_their_bytes(values: list[str]) -> None:
    assert hashes(values, pl.String) == [splitmix(polynomial(value.encode())) for value in values]


def test_a_long_string_and_one_in_a_slice_hash_like_any_other() -> None:
    long = "äb" * 50_000
    column = pl.Series("k", ["x", long, "", None, "x"])
    whole = key_hash(pl.DataFrame([column]), ["k"])
    sliced = key_hash(pl.DataFrame([column.slice(1, 3)]), ["k"])
    assert whole[1] == splitmix(polynomial(long.encode()))
    assert sliced.tolist() == whole[1:4].tolist()
    assert whole[0] == whole[4]
    assert len(set(whole[:4].tolist())) == 4


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt32, pl.UInt64])
def test_equal_integers_hash_alike_whatever_their_width(dtype: type[pl.DataType]) -> None:
    assert hashes([0, 1, 100, None], dtype) == hashes([0, 1, 100, None], pl.Int64)


def test_equal_floats_hash_alike() -> None:
    negative_nan = float(np.array([-np.nan])[0])
    assert len(set(hashes([0.0, -0.0], pl.Float64))) == 1
    assert len(set(hashes([float("nan"), negative_nan], pl.Float64))) == 1
    assert hashes([0.5, None, -0.0], pl.Float32) == hashes([0.5, None, 0.0], pl.Float64)


def test_canonical_floats_have_one_zero_and_one_nan_and_keep_their_nulls() -> None:
    out = canonical_floats(pl.Series("f", [-0.0, 0.0, float("nan"), -float("nan"), None, -1.5]))
    assert out.name == "f"
    assert out.null_count() == 1
    bits = out.fill_null(7.0).to_numpy().view(np.uint64)
    assert bits[0] == bits[1] == 0
    assert bits[2] == bits[3]
    assert out[5] == -1.5


def test_null_is_a_key_of_its_own() -> None:
    values = hashes([None, 0, 1], pl.Int64)
    assert len(set(values)) == 3
    assert hashes([None], pl.String) == hashes([None], pl.Float64) == values[:1]


def test_several_columns_hash_in_their_order() -> None:
    rows = pl.DataFrame({"a": [1, 2], "b": [2, 1]})
    forward, backward = key_hash(rows, ["a", "b"]), key_hash(rows, ["b", "a"])
    assert forward[0] == backward[1] != forward[1]
    assert key_hash(rows, []).tolist() == [0, 0]


@given(parts=st.integers(1, 9), words=st.lists(st.integers(0, WORD - 1), max_size=30))
@settings(max_examples=60, deadline=None)
def test_partitions_cover_every_hash_once(parts: int, words: list[int]) -> None:
    values = np.array([*words, 0, WORD - 1, WORD // 2], dtype=np.uint64)
    inside = sum(KeyRange.partition(n, parts).select(values).astype(int) for n in range(parts))
    assert inside.tolist() == [1] * len(values)


@pytest.mark.parametrize(("value", "dtype", "pinned"), PINNED)
def test_hashes_stay_what_they_are(value: Any, dtype: type[pl.DataType], pinned: int) -> None:
    assert hashes([value], dtype) == [pinned]


def test_short_strings_as_words_are_equal_exactly_where_the_strings_are() -> None:
    values = ["", "a", "a\0", "ab", "host-1", "host-2", "abcdefghijkl", "host-1"]
    head, rest = short_words(pl.Series(values))
    words = list(zip(head.to_list(), rest.to_list(), strict=True))
    assert [words.index(word) for word in words] == [values.index(value) for value in values]


def test_a_long_string_or_a_null_has_no_words() -> None:
    assert short_words(pl.Series(["a", "abcdefghijklm"])) == []
    assert short_words(pl.Series(["a", None])) == []


def test_words_of_a_slice_are_those_of_its_own_rows() -> None:
    column = pl.Series(["longer than a view", "a", "b"]).slice(1)
    assert [word.to_list() for word in short_words(column)] == [
        word.to_list() for word in short_words(pl.Series(["a", "b"]))
    ]
