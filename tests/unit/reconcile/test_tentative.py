"""The tentative head's account of what its rows lack."""

from __future__ import annotations

from evenflow.operators.times import FINAL, START
from evenflow.reconcile.tentative import Gaps, TentativeHead

NOTHING: frozenset[str] = frozenset()


def head(cursor: int = 0) -> TentativeHead:
    return TentativeHead(state=(), cursor=cursor, based_on=cursor)


def step(tentative: TentativeHead, upto: int, missing: set[str], horizon_us: int | None) -> frozenset[str]:
    found = tentative.missing(upto, frozenset(missing), horizon_us)
    tentative.cursor = upto
    return found


def test_what_is_missing_now_is_named() -> None:
    assert step(head(), 10, {"a", "b"}, horizon_us=0) == {"a", "b"}
    assert step(head(), 10, set(), horizon_us=0) == NOTHING


def test_without_a_memory_a_returned_input_is_not_missed() -> None:
    tentative = head()
    step(tentative, 10, {"a"}, horizon_us=0)
    assert step(tentative, 20, set(), horizon_us=0) == NOTHING


def test_a_state_misses_an_input_for_as_long_as_its_horizon() -> None:
    """An input is missing to 10; a state that remembers 15 feels it in steps that begin before 25."""
    tentative = head()
    assert step(tentative, 10, {"a"}, horizon_us=15) == {"a"}
    assert step(tentative, 20, {"b"}, horizon_us=15) == {"a", "b"}
    assert step(tentative, 25, set(), horizon_us=15) == {"a", "b"}
    assert step(tentative, 35, set(), horizon_us=15) == {"b"}
    assert step(tentative, 40, set(), horizon_us=15) == NOTHING


def test_a_state_without_a_horizon_never_forgets() -> None:
    tentative = head()
    step(tentative, 10, {"a"}, horizon_us=None)
    assert step(tentative, 10**15, set(), horizon_us=None) == {"a"}


def test_gaps_name_what_each_stretch_lacks() -> None:
    gaps = Gaps(2)
    gaps.record(0, 10, frozenset({"a"}))
    gaps.record(0, 20, frozenset({"b"}))
    gaps.record(1, 30, frozenset({"c"}))
    assert [gaps.between(0, since, since + 5) for since in (0, 5, 10, 15, 20)] == [{"a"}, {"a"}, {"b"}, {"b"}, NOTHING]
    assert gaps.between(0, 9, 11) == {"a", "b"}
    assert gaps.between(0, START, 10) == {"a"}
    assert gaps.between(1, START, FINAL) == {"c"}


def test_stretches_that_lack_the_same_become_one() -> None:
    gaps = Gaps(1)
    gaps.record(0, 10, frozenset({"a"}))
    gaps.record(0, 20, frozenset({"a"}))
    gaps.supersede(0, 10)
    assert gaps.between(0, 10, 20) == {"a"}


def test_a_stable_boundary_supersedes_the_stretches_before_it() -> None:
    gaps = Gaps(1)
    gaps.record(0, 10, frozenset({"a"}))
    gaps.record(0, 20, frozenset({"b"}))
    gaps.supersede(0, 9)
    assert gaps.between(0, 0, 10) == {"a"}
    gaps.supersede(0, 10)
    assert gaps.between(0, 0, 20) == {"b"}
    gaps.clear(0)
    assert gaps.between(0, 0, 20) == NOTHING
