"""The client's single stream: stable rows, tentative rows, Undo, stable rows, RecDone, and again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.linear import Linear, Stable, Tentative
from evenflow.engine.messages import Show
from evenflow.operators.items import Boundary, Data, RecDone, Undo
from evenflow.operators.kernel import ListKernel
from evenflow.operators.times import START

Rows = list[Any]


def stable(first_id: int, rows: Rows, boundary: int) -> Data[Rows]:
    return Data(rows, first_id, Boundary(boundary, True, first_id + len(rows) - 1))


def tentative(rows: Rows, boundary: int, *missing: str) -> Data[Rows]:
    return Data(rows, 77, Boundary(boundary, False, 0), frozenset(missing))


def told(show: Show) -> Any:
    """An item in short; tentative rows that were shown before are marked."""
    match show.item:
        case Stable(rows, first_id):
            return ("stable", first_id, rows)
        case Tentative(rows, _, first_id):
            return ("again" if show.resent else "tentative", first_id, rows)
        case Boundary(time, is_stable, _):
            return ("boundary", time, is_stable)
        case item:
            return item


def linear(held_rows_max: int = 1_000) -> Linear[Rows]:
    return Linear(ListKernel(), held_rows_max)


def take(user: Linear[Rows], *items: Any) -> list[Any]:
    return [told(show) for item in items for show in user.take(item)]


def test_stable_rows_pass_with_their_boundary() -> None:
    user = linear()
    assert take(user, stable(1, [(1, "a"), (2, "b")], 10)) == [
        ("stable", 1, [(1, "a"), (2, "b")]),
        ("boundary", 10, True),
    ]
    (only,) = user.take(stable(3, [], 20))
    assert only.item == Boundary(20, True, 2)
    assert (user.last_id, user.boundary) == (2, 20)


def test_tentative_rows_continue_the_ids_and_say_what_they_lack() -> None:
    user = linear()
    take(user, stable(1, [(1, "a")], 10))
    shown = list(user.take(tentative([(11, "x"), (12, "y")], 20, "s1")))
    assert [told(show) for show in shown] == [("tentative", 2, [(11, "x"), (12, "y")]), ("boundary", 20, False)]
    assert shown[0].item.missing == {"s1"}
    assert take(user, tentative([(21, "z")], 30, "s1"))[0] == ("tentative", 4, [(21, "z")])
    assert user.tentative_rows == 3


def test_stable_rows_are_held_while_tentative_ones_are_shown() -> None:
    """1. Tentative rows to 30. 2. Stable rows to 20 are held. 3. Stable rows to 30: everything is corrected."""
    user = linear()
    take(user, stable(1, [(1, "a")], 10), tentative([(11, "x"), (21, "y")], 30, "s1"))
    assert take(user, Undo(1), stable(2, [(11, "X"), (12, "new")], 20)) == []
    assert (user.last_id, user.boundary) == (1, 10)
    assert take(user, stable(4, [(21, "Y")], 30)) == [
        Undo(1),
        ("stable", 2, [(11, "X"), (12, "new")]),
        ("stable", 4, [(21, "Y")]),
        ("boundary", 30, True),
        RecDone(30),
    ]
    assert (user.last_id, user.boundary, user.tentative_rows) == (4, 30, 0)
    assert take(user, RecDone(30)) == []


def test_a_forced_rec_done_corrects_what_there_is_and_shows_survivors_again_renumbered() -> None:
    """1. Tentative rows to 40. 2. Corrections to 20. 3. They stop: RecDone(20). 4. What is beyond 20 stays."""
    user = linear()
    take(user, tentative([(11, "x")], 15, "s1"), tentative([(16, "y"), (21, "z")], 30, "s2"))
    take(user, tentative([(31, "v")], 40, "s3"), Undo(0), stable(1, [(11, "X"), (12, "new"), (16, "Y")], 20))
    shown = list(user.take(RecDone(20)))
    assert [told(show) for show in shown] == [
        Undo(0),
        ("stable", 1, [(11, "X"), (12, "new"), (16, "Y")]),
        ("boundary", 20, True),
        RecDone(20),
        ("again", 4, [(21, "z")]),
        ("again", 5, [(31, "v")]),
    ]
    assert [show.item.missing for show in shown[-2:]] == [{"s2"}, {"s3"}]
    assert user.tentative_rows == 2
    assert take(user, tentative([(41, "w")], 50))[0] == ("tentative", 6, [(41, "w")])
    assert take(user, stable(4, [(21, "Z")], 50))[0] == Undo(3)


def test_a_rec_done_that_covers_all_takes_back_rows_beyond_the_stable_boundary() -> None:
    user = linear()
    take(user, tentative([(11, "x"), (25, "never")], 30), stable(1, [(11, "X")], 20))
    assert take(user, RecDone(30)) == [Undo(0), ("stable", 1, [(11, "X")]), ("boundary", 20, True), RecDone(20)]
    assert user.tentative_rows == 0
    assert take(user, stable(2, [(25, "Y")], 40)) == [("stable", 2, [(25, "Y")]), ("boundary", 40, True)]


def test_rec_done_with_nothing_shown_says_nothing() -> None:
    user = linear()
    assert take(user, RecDone(10)) == []
    take(user, stable(1, [(1, "a")], 10), tentative([], 20))
    assert take(user, RecDone(20)) == []
    assert not user.shown


def test_a_tentative_boundary_without_rows_holds_nothing_back() -> None:
    user = linear()
    assert take(user, tentative([], 30)) == [("boundary", 30, False)]
    assert take(user, stable(1, [(1, "a")], 10)) == [("stable", 1, [(1, "a")]), ("boundary", 10, True)]


def test_stable_rows_held_are_bounded() -> None:
    """Beyond the bound a correction is made of what there is; tentative rows still beyond are shown again."""
    user = linear(held_rows_max=2)
    take(user, tentative([(1, "x"), (25, "y")], 30))
    assert take(user, stable(1, [(1, "X"), (2, "n")], 10)) == []
    assert take(user, stable(3, [(11, "m")], 20)) == [
        Undo(0),
        ("stable", 1, [(1, "X"), (2, "n")]),
        ("stable", 3, [(11, "m")]),
        ("boundary", 20, True),
        RecDone(20),
        ("again", 4, [(25, "y")]),
    ]
    assert take(user, stable(4, [(21, "k"), (22, "l")], 25)) == []
    assert take(user, stable(6, [(25, "Y")], 30))[0] == Undo(3)


def test_rows_that_nothing_supersedes_end_with_the_rec_done_that_covers_them() -> None:
    user = linear()
    take(user, stable(1, [(1, "a")], 10), tentative([(11, "x")], 20))
    assert take(user, RecDone(15)) == [Undo(1), RecDone(10), ("again", 2, [(11, "x")])]
    assert take(user, RecDone(20)) == [Undo(1), RecDone(10)]
    assert user.tentative_rows == 0


@st.composite
def stories(draw: st.DrawFn) -> list[Any]:
    """Items as a port gives them: stable ids without gaps, tentative ones beyond both boundaries."""
    items: list[Any] = []
    next_id, boundary, reached = 1, 0, START
    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(["stable", "stable", "tentative", "tentative", "rec_done"]))
        if kind == "stable":
            until = boundary + draw(st.integers(0, 8))
            stamps = sorted(draw(st.lists(st.integers(boundary, until - 1), max_size=3))) if until > boundary else []
            items.append(stable(next_id, [(time, next_id + i) for i, time in enumerate(stamps)], until))
            next_id, boundary = next_id + len(stamps), until
        elif kind == "tentative":
            since = max(boundary, reached)
            until = since + draw(st.integers(1, 8))
            stamps = sorted(draw(st.lists(st.integers(since, until - 1), max_size=3)))
            items.append(tentative([(time, "t") for time in stamps], until))
            reached = until
        else:
            upto = draw(st.sampled_from([boundary, max(boundary, reached)]))
            items.append(RecDone(upto))
            reached = START if upto >= reached else reached
    return [*items, stable(next_id, [], max(boundary, reached) + 1)]


@given(story=stories(), held_rows_max=st.integers(0, 6))
def test_the_stream_keeps_its_grammar_whatever_comes(story: list[Any], held_rows_max: int) -> None:
    """Undo names the last stable row, stable rows follow, RecDone ends it; every stable row is seen once."""
    user = linear(held_rows_max)
    seen: list[Any] = []
    tentative_rows, correcting = 0, False
    for show in (show for item in story for show in user.take(item)):
        item = show.item
        if isinstance(item, Undo):
            assert (item.last_id, correcting, tentative_rows > 0) == (len(seen), False, True)
            tentative_rows, correcting = 0, True
        elif isinstance(item, Stable):
            assert (item.first_id, tentative_rows) == (len(seen) + 1, 0)
            seen += item.rows
        elif isinstance(item, Tentative):
            assert (item.first_id, correcting) == (len(seen) + tentative_rows + 1, False)
            assert item.rows
            tentative_rows += len(item.rows)
        elif isinstance(item, RecDone):
            assert (correcting, item.upto) == (True, user.boundary)
            correcting = False
    assert not correcting
    assert seen == [row for item in story if isinstance(item, Data) and item.stable for row in item.rows]
    assert user.tentative_rows == tentative_rows == 0
    assert not user.shown
