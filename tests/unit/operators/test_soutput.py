"""SOutput: ids from 1 without gaps, and no row twice through any number of recoveries."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.items import Boundary, RecDone, Undo
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


def test_tentative_rows_continue_the_numbering_and_say_what_they_lack() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit([(1, "a"), (2, "b")], 10)
    assert not output.tentative
    first = output.emit_tentative([(11, "x")], 20, frozenset({"s1"}))
    second = output.emit_tentative([(21, "y"), (22, "z")], 30, frozenset({"s1", "s2"}))
    assert first is not None
    assert second is not None
    assert [(i.first_id, i.rows, i.missing) for i in (first, second)] == [
        (3, [(11, "x")], {"s1"}),
        (4, [(21, "y"), (22, "z")], {"s1", "s2"}),
    ]
    assert [i.boundary for i in (first, second)] == [Boundary(20, False, 2), Boundary(30, False, 2)]
    assert output.tentative
    assert (output.sent_id, output.boundary, output.tentative_boundary) == (2, 10, 30)


def test_only_what_lies_beyond_both_boundaries_goes_out_tentatively() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit([], 10)
    assert output.emit_tentative([(9, "known")], 10, frozenset()) is None
    assert not output.tentative
    item = output.emit_tentative([(9, "known"), (10, "new")], 20, frozenset())
    assert item is not None
    assert item.rows == [(10, "new")]
    assert output.emit_tentative([(19, "shown")], 20, frozenset()) is None
    item = output.emit_tentative([(19, "shown"), (20, "newer")], 21, frozenset())
    assert item is not None
    assert (item.first_id, item.rows) == (2, [(20, "newer")])
    output.emit([(12, "s")], 40)
    assert output.emit_tentative([(30, "late")], 40, frozenset()) is None


def test_undo_is_said_once_before_a_correction_and_names_the_last_stable_row() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit([(1, "a")], 10)
    assert output.undo() is None
    output.emit_tentative([(11, "x")], 20, frozenset())
    assert output.undo() == Undo(1)
    output.emit([(11, "X")], 15)
    assert output.correcting
    assert output.undo() is None


def test_rec_done_when_the_lanes_met_covers_both_and_begins_anew() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    assert output.rec_done(met=True) is None
    output.emit_tentative([(11, "x")], 20, frozenset())
    assert output.undo() == Undo(0)
    output.emit([(11, "X")], 15)
    assert output.rec_done(met=True) == RecDone(20)
    assert (output.tentative, output.correcting) == (False, False)
    assert output.rec_done(met=True) is None
    item = output.emit_tentative([(16, "again")], 18, frozenset())
    assert item is not None
    assert (item.first_id, item.rows) == (2, [(16, "again")])


def test_rec_done_names_the_stable_boundary_where_that_is_further() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit_tentative([], 20, frozenset())
    output.undo()
    output.emit([], 50)
    assert output.rec_done(met=True) == RecDone(50)


def test_tentative_items_without_a_correction_still_end_when_the_lanes_meet() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit_tentative([(11, "x")], 20, frozenset())
    assert output.rec_done(met=False) is None
    assert output.rec_done(met=True) == RecDone(20)


def test_a_correction_cut_short_ends_at_the_stable_boundary_and_the_next_says_undo_again() -> None:
    output: SOutput[list[tuple[int, str]]] = SOutput(ListKernel())
    output.emit_tentative([(1, "x"), (11, "y")], 20, frozenset())
    output.undo()
    output.emit([(1, "X")], 10)
    assert output.rec_done(met=False) == RecDone(10)
    assert output.tentative
    assert output.rec_done(met=False) is None
    later = output.emit_tentative([(21, "z")], 30, frozenset())
    assert later is not None
    assert later.first_id == 4  # after row 1 and the two tentative ones that nothing took back
    assert output.undo() == Undo(1)


def test_a_tentative_item_without_rows_says_that_time_has_passed() -> None:
    """A window's boundary stays where it is until the next one closes; time goes on all the same."""
    output = SOutput(ListKernel())
    output.emit([], boundary=100, seen=20)
    assert output.emit_tentative([], 100, frozenset({"s1"}), seen=20) is None
    later = output.emit_tentative([], 100, frozenset({"s1"}), seen=30)
    assert later is not None
    assert (later.rows, later.boundary.time, later.boundary.evidence) == ([], 100, 30)
    assert output.emit_tentative([], 100, frozenset({"s1"}), seen=30) is None
    assert output.emit_tentative([], 90, frozenset({"s1"}), seen=40) is None
