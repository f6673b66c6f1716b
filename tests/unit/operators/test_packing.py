"""Packed states: bytes, equality, deltas and the errors of a delta without its base."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
import pytest

import evenflow as ef
from evenflow.operators.packing import Packed, Segments, pack_state, unpack_state


@dataclass(frozen=True)
class State:
    rows: Segments = ()
    again: Segments = ()
    n: int = 0
    label: str | None = None


ONE = pl.DataFrame({"a": [1, None], "f": [float("nan"), -0.0]})
TWO = pl.DataFrame({"a": [3, 4], "f": [0.5, None]})


def test_tables_come_back_from_bytes_under_their_own_names() -> None:
    longer = pl.DataFrame({"a": list(range(5000)), "f": [0.5] * 5000})
    state = State(rows=(ONE, TWO), again=(longer,), n=7, label="é")
    packed = pack_state(state, None, None)
    again = Packed.from_bytes(packed.to_bytes())
    assert again.same_as(packed)
    back = unpack_state(State, again, None)
    assert [segment.height for segment in back.rows] == [2, 2]
    assert back.again[0].equals(longer)
    assert (back.n, back.label) == (7, "é")


def test_an_empty_state_comes_back_too() -> None:
    back = unpack_state(State, Packed.from_bytes(pack_state(State(), None, None).to_bytes()), None)
    assert back == State()
    empty = State(rows=(ONE.clear(),))
    assert Packed.from_bytes(pack_state(empty, None, None).to_bytes()).tables["rows"][0].schema == ONE.schema  # type: ignore[union-attr]


def test_a_delta_names_what_the_base_has_and_carries_the_rest() -> None:
    older = State(rows=(ONE,), again=(ONE,), n=1)
    newer = State(rows=(ONE, TWO), again=(TWO,), n=2)
    delta = pack_state(newer, None, older)
    assert delta.tables["rows"][0] == 0
    assert delta.rows == 4
    back = unpack_state(State, Packed.from_bytes(delta.to_bytes()), older)
    assert back.rows[0] is ONE
    assert back.rows[1].equals(TWO)
    assert back.n == 2


def test_segments_are_known_by_identity_and_not_by_value() -> None:
    copy = ONE.clone()
    assert pack_state(State(rows=(copy,)), None, State(rows=(ONE,))).rows == 2


def test_a_delta_without_its_base_is_refused() -> None:
    delta = pack_state(State(rows=(ONE,)), None, State(rows=(ONE,)))
    with pytest.raises(ef.InvariantError, match="segment 0 of table 'rows'"):
        unpack_state(State, delta, None)
    with pytest.raises(ef.InvariantError, match="base does not have"):
        unpack_state(State, delta, State())


@pytest.mark.parametrize(
    "other",
    [
        State(rows=(ONE,), n=2),
        State(rows=(ONE, ONE), n=1),
        State(rows=(TWO,), n=1),
        State(rows=(ONE.cast({"a": pl.Int32}),), n=1),
        State(again=(ONE,), n=1),
    ],
)
def test_states_that_differ_are_not_the_same(other: State) -> None:
    mine = pack_state(State(rows=(ONE,), n=1), None, None)
    assert mine.same_as(pack_state(State(rows=(ONE.clone(),), n=1), None, None))
    assert not mine.same_as(pack_state(other, None, None))


def test_a_reference_is_not_the_same_as_a_segment() -> None:
    whole = pack_state(State(rows=(ONE,)), None, None)
    assert not whole.same_as(pack_state(State(rows=(ONE,)), None, State(rows=(ONE,))))
