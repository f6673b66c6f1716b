"""SOutput: ids from 1 without gaps, and no row twice through any number of recoveries."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.kernel import ListKernel
from evenflow.operators.soutput import SOutput
from evenflow.operators.times import START


@settings(max_examples=100, deadline=None)
@given(total=st.integers(0, 30), data=st.data())
def test_each_row_goes_out_once_under_its_place(total: int, data: st.DataObject) -> None:
    rows = [(n, f"row {n}") for n in range(1, total + 1)]
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    seen: list[tuple[int, str]] = []
    produced = 0
    for _ in range(data.draw(st.integers(0, 12))):
        if data.draw(st.booleans()):
            produced = data.draw(st.integers(0, output.sent_id))
            output.resume(produced)
        size = data.draw(st.integers(0, 6))
        item = output.emit(rows[produced : produced + size], boundary=produced)
        produced = min(produced + size, total)
        assert item.stable
        assert [row[0] for row in item.rows] == list(range(item.first_id, item.first_id + len(item.rows)))
        assert item.boundary.last_id == item.first_id + len(item.rows) - 1 == output.sent_id
        assert output.eliminating == (produced < output.sent_id)
        seen += item.rows
    assert seen == rows[: len(seen)]


def test_a_second_recovery_before_the_first_has_caught_up() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit([(1, "a"), (2, "b"), (3, "c")], 10)
    output.resume(0)
    assert output.emit([(1, "a")], 2).rows == []
    output.resume(0)
    assert output.eliminating
    assert output.emit([(1, "a"), (2, "b")], 5).rows == []
    item = output.emit([(3, "c"), (4, "d")], 12)
    assert (item.first_id, item.rows, item.boundary.last_id) == (4, [(4, "d")], 4)
    assert not output.eliminating


def test_the_boundary_never_falls() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    assert output.boundary == START
    assert output.emit([], 10).boundary.time == 10
    output.resume(0)
    assert output.emit([], 4).boundary.time == 10


def test_resuming_beyond_what_went_out_is_an_error() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit([(1, "a")], 10)
    with pytest.raises(ef.InvariantError, match="resume after row 2: only 1 went out"):
        output.resume(2)
