"""A publisher: what a consumer lacks is replayed, cut anew; what everyone has is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.messages import Ack, Heartbeat, Message, Send, Subscribe
from evenflow.engine.port import Port
from evenflow.engine.publisher import Publisher, Replay
from evenflow.operators.items import Boundary, Data, RecDone, Undo
from evenflow.operators.kernel import ListKernel
from evenflow.operators.times import START

Rows = list[Any]


def publisher(*consumers: str, replay: Replay | None = None) -> Publisher[Rows]:
    return Publisher("out", [], ListKernel(), consumers or ("c",), replay)


def stable(first_id: int, rows: Rows, boundary: int) -> Data[Rows]:
    return Data(rows, first_id, Boundary(boundary, True, first_id + len(rows) - 1))


def tentative(rows: Rows, boundary: int) -> Data[Rows]:
    return Data(rows, 50, Boundary(boundary, False, 0), frozenset({"s1"}))


def asked(session: int = 1, next_id: int = 1, boundary: int = START, tentative_boundary: int = START) -> Subscribe:
    return Subscribe("out", session, next_id, boundary, tentative_boundary)


def said(effects: Iterable[Any]) -> list[Any]:
    """What was sent: (session, number, what), with data as (first id, rows, boundary)."""
    out: list[Any] = []
    for effect in effects:
        assert isinstance(effect, Send)
        message = effect.payload
        assert isinstance(message, Message)
        assert message.stream == "out"
        item = message.item
        what = (item.first_id, item.rows, item.boundary.time) if isinstance(item, Data) else item
        out.append((message.session, message.number, what))
    return out


def items(effects: Iterable[Any]) -> list[Any]:
    return [what for _, _, what in said(effects)]


def test_nothing_is_sent_to_those_who_did_not_subscribe() -> None:
    out = publisher()
    assert list(out.publish(stable(1, [(1, "a")], 10), 0)) == []
    assert out.kept_rows == 1


def test_a_subscriber_gets_what_it_missed_and_then_everything() -> None:
    out = publisher("c")
    list(out.publish(stable(1, [(1, "a")], 10), 0))
    list(out.publish(stable(2, [(11, "b")], 20), 0))
    list(out.publish(stable(3, [], 30), 0))
    replayed = list(out.subscribe("c", asked(), 5))
    assert said(replayed) == [(1, 0, (1, [(1, "a"), (11, "b")], 20)), (1, 1, (3, [], 30))]
    assert [effect.payload.replayed for effect in replayed] == [True, True]
    (live,) = out.publish(stable(3, [(31, "c")], 40), 6)
    assert said([live]) == [(1, 2, (3, [(31, "c")], 40))]
    assert (live.to, live.payload.replayed) == ("c", False)


def test_a_replay_begins_at_the_row_that_is_asked_for() -> None:
    out = publisher()
    list(out.publish(stable(1, [(1, "a"), (2, "b"), (3, "c")], 10), 0))
    assert items(out.subscribe("c", asked(next_id=3), 0)) == [(3, [(3, "c")], 10)]
    assert items(out.subscribe("c", asked(2, next_id=4), 0)) == []


def test_a_consumer_that_has_every_row_is_told_the_last_boundary() -> None:
    out = publisher()
    list(out.publish(stable(1, [(1, "a")], 10), 0))
    list(out.publish(stable(2, [], 20), 0))
    assert items(out.subscribe("c", asked(next_id=2), 0)) == [(2, [], 20)]


def test_a_replay_is_cut_by_rows_and_never_between_rows_of_one_time() -> None:
    rows = [(1, "a"), (2, "b"), (2, "c"), (2, "d"), (3, "e"), (4, "f"), (5, "g")]
    out = publisher(replay=Replay(rows_max=2, entries_max=10))
    list(out.publish(stable(1, rows, 10), 0))
    assert items(out.subscribe("c", asked(), 0)) == [
        (1, [(1, "a")], 2),
        (2, [(2, "b"), (2, "c"), (2, "d")], 3),
        (5, [(3, "e"), (4, "f")], 5),
        (7, [(5, "g")], 10),
    ]


def test_log_entries_are_joined_as_far_as_a_message_goes() -> None:
    out = publisher(replay=Replay(rows_max=100, entries_max=2))
    for n in range(1, 6):
        list(out.publish(stable(n, [(n, "x")], n + 1), 0))
    assert items(out.subscribe("c", asked(), 0)) == [
        (1, [(1, "x"), (2, "x")], 3),
        (3, [(3, "x"), (4, "x")], 5),
        (5, [(5, "x")], 6),
    ]


def test_overlap_sends_rows_that_were_not_asked_for() -> None:
    out = publisher(replay=Replay(overlap=2))
    list(out.publish(stable(1, [(1, "a"), (2, "b"), (3, "c"), (4, "d")], 10), 0))
    assert items(out.subscribe("c", asked(next_id=4), 0)) == [(2, [(2, "b"), (3, "c"), (4, "d")], 10)]
    assert items(out.subscribe("c", asked(2, next_id=2), 0))[0][0] == 1


@given(
    steps=st.lists(st.tuples(st.lists(st.integers(0, 3), max_size=5), st.integers(1, 3)), max_size=8),
    replay=st.builds(Replay, st.integers(1, 4), st.integers(1, 4), st.integers(0, 3)),
    taken=st.integers(0, 8),
)
def test_however_a_replay_is_cut_a_port_gets_each_row_once(
    steps: list[tuple[list[int], int]], replay: Replay, taken: int
) -> None:
    out, port = publisher(replay=replay), Port[Rows]("out", "main", ListKernel(), 100)
    expected: Rows = []
    got: Rows = []
    boundary = 0

    def deliver(effects: Iterable[Any]) -> None:
        for effect in effects:
            before = port.boundary
            whole, item = port.receive("main", effect.payload, 0)
            if not whole:
                deliver(list(out.subscribe("c", port.subscribe(0).payload, 0)))
            elif item is not None:
                assert item.first_id == len(got) + 1
                assert all(before <= row[0] < item.boundary.time for row in item.rows)
                got.extend(item.rows)

    deliver(out.subscribe("c", port.subscribe(0).payload, 0))
    for number, (offsets, width) in enumerate([*steps, ([], 1)]):
        rows = [(boundary + offset, len(expected) + i) for i, offset in enumerate(sorted(offsets)) if offset < width]
        effects = list(out.publish(stable(len(expected) + 1, rows, boundary + width), 0))
        if number < taken or number == len(steps):
            deliver(effects)
        expected += rows
        boundary += width
    assert got == expected
    assert (port.next_id, port.boundary) == (len(expected) + 1, boundary)


def test_heartbeats_show_that_the_last_stable_item_was_lost() -> None:
    """1. A row is sent and lost. 2. Nothing stable follows, only heartbeats. 3. The port must find out."""
    out, port = publisher(), Port[Rows]("out", "main", ListKernel(), 100)
    list(out.subscribe("c", port.subscribe(0).payload, 0))
    list(out.publish(stable(1, [(1, "lost")], 10), 0))
    found = False
    for now_us in range(100, 10_000, 100):
        for effect in out.heartbeats(now_us, 100):
            whole, _ = port.receive("main", effect.payload, now_us)
            found = found or not whole or bool(port.silent(now_us))
    assert found


def test_a_late_subscriber_gets_the_tentative_suffix() -> None:
    out = publisher()
    list(out.publish(stable(1, [(1, "a")], 10), 0))
    for boundary in (20, 30, 40):
        list(out.publish(tentative([(boundary - 5, "x")], boundary), 0))
    list(out.publish(stable(2, [(11, "b")], 20), 0))
    assert said(out.subscribe("c", asked(), 0)) == [
        (1, 0, (1, [(1, "a"), (11, "b")], 20)),
        (1, 0, (50, [(25, "x")], 30)),
        (1, 1, (50, [(35, "x")], 40)),
    ]
    assert items(out.subscribe("c", asked(2, 3, 20, tentative_boundary=30), 0)) == [(50, [(35, "x")], 40)]


def test_rec_done_forgets_the_tentative_items_it_covers() -> None:
    out = publisher()
    list(out.publish(tentative([(1, "x")], 10), 0))
    list(out.publish(tentative([(11, "y")], 20), 0))
    list(out.publish(RecDone(10), 0))
    assert items(out.subscribe("c", asked(), 0)) == [(50, [(11, "y")], 20)]
    list(out.publish(RecDone(20), 0))
    assert items(out.subscribe("c", asked(2), 0)) == []
    assert out.kept_rows == 0


def test_a_consumer_with_tentative_rows_that_no_longer_hold_is_told_rec_done() -> None:
    """1. It saw tentative rows to 40. 2. It lost the RecDone. 3. It subscribes, and the suffix is another one."""
    out = publisher()
    list(out.publish(stable(1, [(1, "a")], 30), 0))
    stale = asked(1, 2, 30, tentative_boundary=40)
    assert items(out.subscribe("c", stale, 0)) == [RecDone(40)]
    list(out.publish(tentative([(31, "new")], 35), 0))
    again = items(out.subscribe("c", asked(2, 2, 30, tentative_boundary=40), 0))
    assert again == [RecDone(40), (50, [(31, "new")], 35)]


def test_no_rec_done_where_the_tentative_rows_still_hold_or_stable_ones_cover_them() -> None:
    out = publisher()
    list(out.publish(stable(1, [(1, "a")], 30), 0))
    list(out.publish(tentative([(31, "x")], 40), 0))
    assert items(out.subscribe("c", asked(1, 2, 30, tentative_boundary=40), 0)) == []
    list(out.publish(stable(2, [], 40), 0))
    assert items(out.subscribe("c", asked(2, 2, 30, tentative_boundary=40), 0)) == [(2, [], 40)]


def test_the_log_is_cut_only_when_every_consumer_has_acknowledged() -> None:
    out = publisher("c", "d")
    for n in (1, 2, 3):
        list(out.publish(stable(n, [(n, "x")], n + 1), 0))
    out.acknowledged("c", Ack("out", 4))
    assert out.kept_rows == 3
    out.acknowledged("d", Ack("out", 2))
    assert out.kept_rows == 2
    assert items(out.subscribe("d", asked(next_id=2), 0)) == [(2, [(2, "x"), (3, "x")], 4)]
    out.acknowledged("d", Ack("out", 1))
    out.acknowledged("d", Ack("out", 4))
    assert out.kept_rows == 0
    assert items(out.subscribe("c", asked(next_id=4), 0)) == [(4, [], 4)]


def test_an_entry_that_is_acknowledged_in_part_is_kept_whole() -> None:
    out = publisher()
    list(out.publish(stable(1, [(1, "a"), (2, "b")], 10), 0))
    out.acknowledged("c", Ack("out", 2))
    assert out.kept_rows == 2
    out.acknowledged("c", Ack("out", 3))
    assert out.kept_rows == 0


def test_a_subscribe_that_comes_twice_or_late_is_ignored() -> None:
    out = publisher()
    list(out.publish(stable(1, [(1, "a")], 10), 0))
    assert len(list(out.subscribe("c", asked(2), 0))) == 1
    assert list(out.subscribe("c", asked(2), 0)) == []
    assert list(out.subscribe("c", asked(1), 0)) == []
    assert said(out.publish(stable(2, [], 20), 0)) == [(2, 1, (2, [], 20))]
    assert said(out.subscribe("c", asked(3, next_id=2), 0)) == [(3, 0, (2, [], 20))]


def test_each_lane_and_each_consumer_has_its_own_numbers() -> None:
    out = publisher("c", "d")
    list(out.subscribe("c", asked(), 0))
    list(out.publish(tentative([(1, "x")], 10), 0))
    list(out.subscribe("d", asked(7), 0))
    sent = list(out.publish(Undo(0), 0)) + list(out.publish(stable(1, [(1, "a")], 10), 0))
    sent += list(out.publish(RecDone(10), 0)) + list(out.publish(tentative([(11, "y")], 20), 0))
    data, more = (1, [(1, "a")], 10), (50, [(11, "y")], 20)
    assert said(e for e in sent if e.to == "c") == [(1, 0, Undo(0)), (1, 1, data), (1, 2, RecDone(10)), (1, 1, more)]
    assert said(e for e in sent if e.to == "d") == [(7, 0, Undo(0)), (7, 1, data), (7, 2, RecDone(10)), (7, 1, more)]


def test_heartbeats_go_to_those_who_got_nothing_for_a_while() -> None:
    out = publisher("c", "d")
    list(out.subscribe("c", asked(), 0))
    list(out.publish(stable(1, [(1, "a")], 10), 100))
    list(out.subscribe("d", asked(next_id=2), 150))
    assert [(e.to, e.payload.item, e.payload.number) for e in out.heartbeats(200, 100)] == [
        ("c", Heartbeat(), 1),
        ("d", Heartbeat(), 0),
    ]
    assert list(out.heartbeats(299, 100)) == []
    assert [e.payload.number for e in out.heartbeats(300, 100)] == [2, 1]


def test_the_tentative_lane_has_heartbeats_of_its_own_once_it_was_used() -> None:
    out = publisher("c")
    list(out.subscribe("c", asked(), 0))
    list(out.publish(tentative([(1, "x")], 10), 100))
    list(out.publish(stable(1, [(1, "a")], 10), 190))
    beats = [(e.payload.item, e.payload.number) for e in out.heartbeats(200, 100)]
    assert beats == [(Heartbeat(stable=False), 1)]


def test_a_replay_on_its_way_is_accompanied_on_the_other_lane_until_it_is_acknowledged() -> None:
    out = publisher("c")
    list(out.publish(stable(1, [(1, "a"), (2, "b")], 10), 0))
    list(out.subscribe("c", asked(), 100))
    list(out.publish(stable(3, [], 20), 199))
    assert [e.payload.item for e in out.heartbeats(200, 100)] == [Heartbeat(stable=False)]
    fresh = publisher("c")
    list(fresh.publish(stable(1, [(1, "a"), (2, "b")], 10), 0))
    list(fresh.subscribe("c", asked(), 100))
    list(fresh.publish(stable(3, [], 20), 199))
    fresh.acknowledged("c", Ack("out", 3))
    assert list(fresh.heartbeats(200, 100)) == []
