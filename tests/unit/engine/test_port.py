"""A port: gapless ids, nothing twice, and a new session where something was lost."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.engine.messages import Ack, Heartbeat, Message, Subscribe
from evenflow.engine.port import Port
from evenflow.engine.session import PATIENCE_MAX, SILENT_HEARTBEATS
from evenflow.operators.items import Boundary, Data, RecDone, Undo
from evenflow.operators.kernel import ListKernel
from evenflow.operators.times import FINAL, START

HEARTBEAT_US = 100


def stable(first_id: int, rows: list[Any], boundary: int) -> Data[list[Any]]:
    return Data(rows, first_id, Boundary(boundary, True, first_id + len(rows) - 1))


def tentative(rows: list[Any], boundary: int, missing: str = "s1") -> Data[list[Any]]:
    return Data(rows, 99, Boundary(boundary, False, 0), frozenset({missing}))


class Wire:
    """A port and a producer that numbers its messages on each lane."""

    def __init__(self) -> None:
        self.port: Port[list[Any]] = Port("out", "main/1", ListKernel(), HEARTBEAT_US)
        self.now_us = 0
        self.subscribe()

    def subscribe(self) -> Subscribe:
        self.sent = {False: 0, True: 0}
        sent = self.port.subscribe(self.now_us)
        assert sent.to == "main/1"
        assert isinstance(sent.payload, Subscribe)
        return sent.payload

    def give(self, item: Any, number: int | None = None, session: int | None = None, replayed: bool = False) -> Any:
        lane = isinstance(item, Heartbeat | Data) and not item.stable
        place = self.sent[lane] if number is None else number
        self.sent[lane] = place + 1
        message = Message("out", session or self.port.session, place, item, replayed)
        return self.port.receive("main/1", message, self.now_us)

    def rows(self, item: Any, **how: Any) -> Any:
        """What is new of an item, as (first id, rows, boundary)."""
        whole, new = self.give(item, **how)
        assert whole
        return None if new is None else (new.first_id, new.rows, new.boundary.time)

    @property
    def stands(self) -> tuple[int, int, int]:
        return self.port.next_id, self.port.boundary, self.port.tentative_boundary


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_items_in_order_are_taken_as_they_are(wire: Wire) -> None:
    assert wire.rows(stable(1, [(1, "a"), (2, "b")], 10)) == (1, [(1, "a"), (2, "b")], 10)
    assert wire.rows(stable(3, [], 20)) == (3, [], 20)
    assert wire.rows(stable(3, [(21, "c")], 30)) == (3, [(21, "c")], 30)
    assert wire.stands == (4, 30, START)


def test_a_gap_in_ids_ends_the_session_and_nothing_is_applied(wire: Wire) -> None:
    wire.rows(stable(1, [(1, "a")], 10))
    assert wire.give(stable(3, [(21, "c")], 30)) == (False, None)
    assert wire.stands == (2, 10, START)
    assert wire.subscribe() == Subscribe("out", 2, 2, 10, START)


def test_a_boundary_alone_shows_a_lost_row(wire: Wire) -> None:
    wire.rows(stable(1, [(1, "a")], 10))
    assert wire.give(stable(3, [], 30)) == (False, None)
    assert wire.stands == (2, 10, START)


def test_an_item_whose_ids_do_not_fit_its_rows_ends_the_session(wire: Wire) -> None:
    torn = Data([(1, "a")], 1, Boundary(10, True, last_id=2))
    assert wire.give(torn) == (False, None)
    assert wire.stands == (1, START, START)


def test_a_gap_in_message_numbers_ends_the_session_even_if_ids_fit(wire: Wire) -> None:
    wire.rows(stable(1, [(1, "a")], 10))
    assert wire.give(stable(2, [(11, "b")], 20), number=2) == (False, None)
    assert wire.give(RecDone(20), number=2) == (False, None)
    assert wire.stands == (2, 10, START)


def test_each_lane_counts_its_own_messages(wire: Wire) -> None:
    wire.give(stable(1, [(1, "a")], 10))
    assert wire.give(Heartbeat(stable=False), number=0) == (True, None)
    assert wire.rows(tentative([(11, "x")], 20), number=1) == (99, [(11, "x")], 20)
    assert wire.give(tentative([(21, "y")], 30), number=3) == (False, None)
    assert wire.stands == (2, 10, 20)
    assert wire.rows(stable(2, [], 20), number=1) == (2, [], 20)


def test_a_lost_heartbeat_shows(wire: Wire) -> None:
    wire.give(Heartbeat())
    assert wire.give(Heartbeat(), number=2) == (False, None)


def test_overlap_is_skipped(wire: Wire) -> None:
    wire.rows(stable(1, [(1, "a"), (2, "b"), (3, "c")], 10))
    assert wire.rows(stable(2, [(2, "b"), (3, "c"), (11, "d")], 20)) == (4, [(11, "d")], 20)
    assert wire.rows(stable(1, [(1, "a"), (2, "b")], 10)) is None
    assert wire.rows(stable(5, [], 20)) is None
    assert wire.stands == (5, 20, START)


def test_a_replay_in_other_chunks_gives_each_row_once(wire: Wire) -> None:
    """1. Rows 1–3 come live. 2. A gap. 3. The replay is cut elsewhere and overlaps; its boundaries may lie lower."""
    rows = [(time, f"row {time}") for time in range(1, 9)]
    taken = list(wire.rows(stable(1, rows[:3], 4))[1])
    assert wire.give(stable(7, rows[6:], 9)) == (False, None)
    wire.subscribe()
    for first, end in [(1, 2), (2, 5), (5, 6), (6, 8)]:
        new = wire.rows(stable(first, rows[first - 1 : end - 1], end), replayed=True)
        if new is not None:
            assert new[0] == len(taken) + 1
            assert new[2] >= 4
            taken += new[1]
    taken += wire.rows(stable(8, rows[7:], 9))[1]
    assert taken == rows
    assert wire.stands == (9, 9, START)


def test_what_an_older_session_still_brings_counts_if_ids_say_what_it_is(wire: Wire) -> None:
    wire.give(stable(1, [(1, "a")], 10))
    wire.subscribe()
    assert wire.port.session == 2
    assert wire.rows(stable(2, [(11, "b")], 20), number=1, session=1) == (2, [(11, "b")], 20)
    assert wire.give(stable(4, [(31, "d")], 40), number=3, session=1) == (True, None), "a gap"
    assert wire.give(tentative([(21, "x")], 30), number=0, session=1) == (True, None)
    assert wire.stands == (3, 20, START)
    wire.sent = {False: 0, True: 0}
    assert wire.rows(stable(2, [(11, "b"), (21, "c")], 30), replayed=True) == (3, [(21, "c")], 30)


def test_an_older_session_that_goes_on_shows_that_the_subscription_was_lost(wire: Wire) -> None:
    wire.give(stable(1, [(1, "a")], 10))
    wire.subscribe()
    wire.now_us = HEARTBEAT_US - 1
    assert wire.give(tentative([], 20), session=1) == (True, None)
    wire.now_us = HEARTBEAT_US
    assert wire.give(tentative([], 30), session=1) == (False, None)
    assert wire.subscribe() == Subscribe("out", 2, 2, 10, START)


def test_a_lost_subscribe_is_asked_again_under_the_same_session(wire: Wire) -> None:
    assert not wire.port.silent(HEARTBEAT_US - 1)
    assert wire.port.silent(HEARTBEAT_US)
    wire.now_us = HEARTBEAT_US
    assert wire.subscribe() == Subscribe("out", 1, 1, START, START)
    assert not wire.port.silent(2 * HEARTBEAT_US - 1)
    wire.give(Heartbeat())
    assert wire.subscribe().session == 2


def test_a_gap_as_the_first_message_means_that_upstream_knows_the_session(wire: Wire) -> None:
    assert wire.give(stable(1, [(1, "a")], 10), number=1) == (False, None)
    assert wire.subscribe() == Subscribe("out", 2, 1, START, START)


def test_silence_is_counted_from_the_last_message_of_the_session(wire: Wire) -> None:
    wire.now_us = 50
    wire.give(stable(1, [], 10))
    assert not wire.port.silent(50 + SILENT_HEARTBEATS * HEARTBEAT_US - 1)
    assert wire.port.silent(50 + SILENT_HEARTBEATS * HEARTBEAT_US)
    wire.now_us = 200
    wire.give(stable(2, [(11, "lost before")], 20), number=5)
    assert wire.port.silent(50 + SILENT_HEARTBEATS * HEARTBEAT_US)


def test_patience_doubles_while_only_replays_are_heard(wire: Wire) -> None:
    def silent_after() -> int:
        wire.give(stable(1, [], 0), replayed=True)
        return next(n for n in range(1, 10_000) if wire.port.silent(wire.now_us + n * HEARTBEAT_US))

    wire.give(Heartbeat())
    waits = []
    for _ in range(8):
        wire.subscribe()
        waits.append(silent_after())
    assert waits == [SILENT_HEARTBEATS * min(2**n, PATIENCE_MAX) for n in range(1, 9)]
    wire.give(stable(1, [], 0))
    assert wire.port.silent(wire.now_us + SILENT_HEARTBEATS * HEARTBEAT_US)


def test_tentative_rows_are_kept_beyond_both_boundaries(wire: Wire) -> None:
    wire.give(stable(1, [(1, "a")], 10))
    assert wire.rows(tentative([(9, "stable knows"), (10, "x")], 20)) == (99, [(10, "x")], 20)
    assert wire.rows(tentative([(19, "shown"), (20, "y")], 25)) == (99, [(20, "y")], 25)
    assert wire.rows(tentative([(24, "z")], 25)) is None
    wire.give(stable(2, [(12, "X")], 40))
    assert wire.rows(tentative([(39, "late")], 40)) is None
    assert wire.rows(tentative([(39, "late"), (41, "v")], 50)) == (99, [(41, "v")], 50)
    assert wire.stands == (3, 40, 50)


def test_rec_done_resets_the_tentative_boundary_only_when_it_covers_it(wire: Wire) -> None:
    wire.give(tentative([(1, "x")], 20))
    assert wire.give(RecDone(19)) == (True, RecDone(19))
    assert wire.port.tentative_boundary == 20
    assert wire.rows(tentative([(1, "x")], 20)) is None
    assert wire.give(RecDone(20)) == (True, RecDone(20))
    assert wire.port.tentative_boundary == START
    assert wire.rows(tentative([(1, "again")], 20)) == (99, [(1, "again")], 20)


def test_undo_passes_and_moves_nothing(wire: Wire) -> None:
    wire.give(stable(1, [(1, "a")], 10))
    wire.give(tentative([(11, "x")], 20))
    assert wire.give(Undo(1)) == (True, Undo(1))
    assert wire.stands == (2, 10, 20)


def test_a_subscription_says_where_the_port_stands_on_both_lanes(wire: Wire) -> None:
    wire.give(stable(1, [(1, "a")], 10))
    wire.give(tentative([(11, "x")], 20))
    assert wire.port.reached == 20
    assert wire.subscribe() == Subscribe("out", 2, 2, 10, 20)


def test_an_acknowledgement_is_given_once_for_each_change(wire: Wire) -> None:
    assert wire.port.safe(1) is None
    assert wire.port.safe(3) == Ack("out", 3)
    assert wire.port.safe(3) is None
    assert wire.port.safe(4) == Ack("out", 4)


def test_a_replay_counts_as_a_correction_until_something_live_follows(wire: Wire) -> None:
    assert not wire.port.correcting
    wire.give(stable(1, [(1, "a")], 10), replayed=True)
    assert wire.port.correcting
    wire.give(tentative([(25, "x")], 30))
    assert wire.port.correcting, "the tentative lane says nothing of the stable one"
    wire.give(stable(2, [], 20))
    assert not wire.port.correcting


def test_a_correction_is_on_its_way_between_its_marks_and_not_in_a_new_session(wire: Wire) -> None:
    wire.give(Undo(0))
    wire.give(stable(1, [(1, "a")], 10))
    assert wire.port.correcting
    wire.give(RecDone(10))
    assert not wire.port.correcting
    wire.give(Undo(1))
    wire.subscribe()
    assert not wire.port.correcting


def test_time_that_passes_behind_an_unmoved_boundary_is_noticed_on_either_lane(wire: Wire) -> None:
    wire.give(Data([], 1, Boundary(100, True, 0, seen=20)))
    assert wire.port.seen == 20
    assert wire.rows(Data([], 1, Boundary(100, True, 0, seen=30))) == (1, [], 100)
    assert wire.rows(Data([], 1, Boundary(100, True, 0, seen=30))) is None
    assert wire.rows(Data([], 1, Boundary(100, False, 0, seen=40))) == (1, [], 100)
    assert wire.rows(Data([], 1, Boundary(100, False, 0, seen=40))) is None
    wire.give(Data([], 1, Boundary(FINAL, True, 0)))
    assert wire.port.seen == 40, "the end of a stream says nothing of time"
