"""Which replica each lane comes from: case by case of §3.5."""

from __future__ import annotations

import pytest

from evenflow.engine.messages import StreamView
from evenflow.engine.port import Feeds
from evenflow.engine.switching import choose, stable_elsewhere
from evenflow.reconcile.state import State

S, F, C = State.STABLE, State.UP_FAILURE, State.STABILIZATION
MARGIN_US = 50
BOTH_A = Feeds("a", "a")


def view(stable: int, reached: int | None = None, state: State = S, first_id: int = 1) -> dict[str, StreamView]:
    return {"s": StreamView(state, stable, stable if reached is None else reached, first_id)}


@pytest.mark.parametrize(
    ("a", "b", "chosen"),
    [
        (view(100), view(149), BOTH_A),  # as far apart as answers are
        (view(100), view(150), Feeds("b", "b")),
        (view(100, 190, F), view(200), Feeds("b", "b")),  # failed to stable
        (view(100, 190, F), view(100, 200, F), BOTH_A),  # among failed ones the current one
        (view(100, 140, F), view(100, 200, F), Feeds("a", "b")),  # unless another's tentative rows are further
        (view(100, 100, C), view(100, 200, F), Feeds("a", "b")),  # corrections behind, live rows in front
        (view(180, 200, C), view(100, 200, F), BOTH_A),
        (view(100, 200, F), view(180, 180, C), Feeds("b", "b")),
        (view(100, 200, F), view(180, 100, C, first_id=9), BOTH_A),  # its log begins too late
    ],
)
def test_lane_by_lane(a: dict[str, StreamView], b: dict[str, StreamView], chosen: Feeds) -> None:
    assert choose(BOTH_A, {"a": a, "b": b}, {"s": 5}, MARGIN_US) == chosen


def test_a_dead_replica_is_left_for_the_one_that_is_furthest() -> None:
    assert choose(BOTH_A, {"b": view(10), "c": view(20)}, {"s": 1}, MARGIN_US) == Feeds("c", "c")
    assert choose(BOTH_A, {}, {"s": 1}, MARGIN_US) == BOTH_A


def test_a_replica_that_was_just_started_is_not_taken_for_its_state() -> None:
    assert choose(BOTH_A, {"a": view(100, 190, F), "b": view(-(2**63))}, {"s": 1}, MARGIN_US) == BOTH_A


def test_all_streams_of_a_neighbour_come_from_one_replica() -> None:
    """One leads in the first stream and the other in the second: nobody is better."""

    def two(first: int, second: int) -> dict[str, StreamView]:
        return {"s": StreamView(S, first, first, 1), "t": StreamView(S, second, second, 1)}

    needed = {"s": 1, "t": 1}
    assert choose(BOTH_A, {"a": two(100, 300), "b": two(200, 200)}, needed, MARGIN_US) == BOTH_A
    assert choose(BOTH_A, {"a": two(100, 300), "b": two(200, 290)}, needed, MARGIN_US) == Feeds("b", "b")


def test_tentative_rows_are_needless_only_where_another_replica_leads() -> None:
    def needless(other: dict[str, StreamView], time: int = 300, here: int = 100) -> bool:
        return stable_elsewhere({"b": other}, "s", time, here, MARGIN_US, 30)

    assert needless(view(300))
    assert needless(view(250))
    assert not needless(view(249)), "it does not have them"
    assert not needless(view(300, state=F))
    assert not needless(view(129), time=150), "it stands before the same failure"
    assert not stable_elsewhere({}, "s", 300, 100, MARGIN_US, 30)
