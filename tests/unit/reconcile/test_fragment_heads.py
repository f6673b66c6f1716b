"""The two heads of one fragment."""

from __future__ import annotations

from typing import Any

from evenflow.operators.kernel import ListKernel
from evenflow.operators.sunion import SUnion
from evenflow.operators.times import FINAL, START
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.fragment_heads import FragmentHeads, Place
from evenflow.reconcile.state import State
from evenflow.reconcile.undo import UndoRedo
from list_plans import Join, ListFragment, Pass, Window

LEAF, PATIENCE_US = 9, 100
NONE: frozenset[str] = frozenset()
A, B = frozenset({"a"}), frozenset({"b"})


def heads(operator: Pass, *places: Place, method: Any = CheckpointRedo) -> FragmentHeads[list[Any]]:
    places = places or (Place("a", A), Place("b", B))
    fragment = ListFragment(tuple(range(len(places))), operator, LEAF)
    sunion: SUnion[list[Any]] = SUnion(ListKernel(), [[] for _ in places], 10)
    return FragmentHeads(fragment, sunion, method(fragment, ListKernel()), places)


def worked(fragment: FragmentHeads[list[Any]], released: int) -> Any:
    """What tentative work gave, as (rows, boundary, missing)."""
    done = fragment.work(released)
    return None if done is None else (*done[0][LEAF], set(done[1]))


def corrected(fragment: FragmentHeads[list[Any]], now_us: int = 0, rows_max: int | None = None) -> Any:
    done = fragment.correct(rows_max, now_us)
    return None if done is None else done.leaves[LEAF]


def inside(above: str = "a") -> Place:
    return Place(None, frozenset(above))


def test_a_fragment_whose_inputs_are_well_never_gets_a_tentative_head() -> None:
    fragment = heads(Pass())
    fragment.insert(0, [(1, "x", 1)], 20)
    fragment.insert(1, [], 20)
    assert corrected(fragment) == ([(1, "x", 1)], 20)
    fragment.want(20)
    assert worked(fragment, 20) is None
    assert (fragment.tentative, fragment.failing) == (None, False)
    assert fragment.state(0, PATIENCE_US) == State.STABLE


def test_released_work_names_the_inputs_that_have_not_come_so_far() -> None:
    fragment = heads(Pass())
    fragment.insert(0, [(1, "x", 1), (25, "y", 2)], 30)
    fragment.insert(1, [(2, "z", 3)], 10)
    assert corrected(fragment) == ([(1, "x", 1), (2, "z", 3)], 10)
    assert worked(fragment, 20) == ([], 20, {"b"})
    assert worked(fragment, 20) is None
    assert worked(fragment, 30) == ([(25, "y", 2)], 30, {"b"})
    assert worked(fragment, 50) == ([], 50, {"a", "b"})
    assert (fragment.sunion.cursor, fragment.wanted, fragment.failing) == (10, 50, True)


def test_corrections_come_in_slices_until_the_heads_meet() -> None:
    """1. Released to 30. 2. The input returns. 3. A bucket at a time is corrected. 4. The heads meet at 30."""
    fragment = heads(Pass())
    fragment.insert(0, [(1, "x", 1), (11, "y", 2), (21, "z", 3)], 30)
    worked(fragment, 30)
    assert fragment.state(0, PATIENCE_US) == State.UP_FAILURE
    fragment.insert(1, [(12, "late", 9)], 30)
    assert fragment.state(0, PATIENCE_US) == State.STABILIZATION
    assert corrected(fragment, 5, rows_max=1) == ([(1, "x", 1)], 10)
    assert (fragment.corrected_us, fragment.meet()) == (5, False)
    assert corrected(fragment, 6, rows_max=1) == ([(11, "y", 2), (12, "late", 9)], 20)
    assert corrected(fragment, 7, rows_max=1) == ([(21, "z", 3)], 30)
    assert fragment.meet()
    assert (fragment.tentative, fragment.corrected_us, fragment.failing) == (None, None, False)
    assert corrected(fragment, 8) is None
    assert not fragment.meet()


def test_corrections_count_as_stopped_only_after_a_while_without_progress() -> None:
    fragment = heads(Pass())
    fragment.insert(0, [], 40)
    worked(fragment, 40)
    fragment.insert(1, [], 10)
    corrected(fragment, now_us=50)
    assert fragment.state(50 + PATIENCE_US - 1, PATIENCE_US) == State.STABILIZATION
    assert fragment.state(50 + PATIENCE_US, PATIENCE_US) == State.UP_FAILURE


def test_rebase_lets_tentative_work_go_on_from_the_newest_stable_state() -> None:
    fragment = heads(Window(20, 10))
    fragment.insert(0, [(5, "k", 1), (15, "k", 2)], 30)
    assert worked(fragment, 20)[0] == [(10, "k", 1, 1), (20, "k", 3, 2)]
    fragment.rebase()
    assert fragment.tentative is not None, "nothing newer to go on from"
    fragment.insert(1, [(16, "k", 100)], 20)
    assert corrected(fragment)[0] == [(10, "k", 1, 1), (20, "k", 103, 3)]
    worked(fragment, 30)
    fragment.wanted = 40
    fragment.rebase()
    assert fragment.tentative is None
    assert fragment.corrected_us is None
    assert worked(fragment, 40)[0] == [(30, "k", 102, 2)]


def test_undo_redo_has_nothing_to_rebase_on_while_its_state_is_given_away() -> None:
    fragment = heads(Window(20, 10), method=UndoRedo)
    fragment.insert(0, [(5, "k", 1)], 30)
    worked(fragment, 10)
    worked(fragment, 30)
    fragment.insert(1, [], 10)
    assert corrected(fragment) == ([(10, "k", 1, 1)], 20)
    head = fragment.tentative
    fragment.rebase()
    assert fragment.tentative is head


def test_a_join_waits_for_a_side_that_is_missing_and_says_that_it_is_blocked() -> None:
    fragment = heads(Join(5))
    fragment.insert(0, [(1, "k", 1), (11, "k", 2)], 30)
    fragment.insert(1, [(2, "k", 7), (12, "k", 8)], 15)
    assert corrected(fragment) == ([(2, "k", 1007)], 10)
    assert worked(fragment, 30) is None
    assert (fragment.blocked, fragment.failing, fragment.tentative) == (True, True, None)
    fragment.insert(1, [], 30)
    assert corrected(fragment) == ([(12, "k", 2008)], 30)
    assert not fragment.blocked


def test_a_join_goes_on_where_a_side_lacks_only_a_part() -> None:
    """Its left side lacks one of two sources: that is tentative. Its right side lacks its only one: that blocks."""
    fragment = heads(Join(5), Place(None, frozenset({"a", "b"})), Place(None, frozenset({"c"})))
    fragment.insert(1, [(2, "k", 7)], 20)
    fragment.insert_tentative(0, [(1, "k", 1)], 20, A)
    assert worked(fragment, START) == ([(2, "k", 1007)], 20, {"a"})
    assert not fragment.blocked
    fragment.insert_tentative(0, [], 30, A)
    fragment.insert_tentative(1, [], 30, frozenset({"c"}))
    assert worked(fragment, START) is None
    assert fragment.blocked


def test_inside_a_node_work_follows_the_tentative_lane_and_passes_on_what_it_lacks() -> None:
    fragment = heads(Pass(), inside("a"), inside("b"))
    fragment.insert(0, [(1, "x", 1)], 20)
    fragment.insert(1, [], 10)
    corrected(fragment)
    assert worked(fragment, FINAL) is None, "what the node released is none of its business"
    fragment.insert_tentative(1, [(12, "guess", 2)], 20, B)
    assert worked(fragment, START) == ([(12, "guess", 2)], 20, {"b"})
    assert worked(fragment, START) is None


def test_what_is_missing_is_felt_for_as_long_as_the_window_remembers() -> None:
    fragment = heads(Window(20, 10), inside("a"))
    fragment.insert(0, [], 10)
    corrected(fragment)
    fragment.insert_tentative(0, [], 20, A)
    assert worked(fragment, START)[2] == {"a"}
    fragment.insert_tentative(0, [(25, "k", 1)], 30, NONE)
    assert worked(fragment, START)[2] == {"a"}
    fragment.insert_tentative(0, [], 40, NONE)
    assert worked(fragment, START)[2] == {"a"}
    fragment.insert_tentative(0, [], 50, NONE)
    assert worked(fragment, START)[2] == set()


def test_cleared_tentative_rows_lack_nothing_any_more() -> None:
    fragment = heads(Pass(), inside("a"))
    fragment.insert_tentative(0, [(1, "x", 1)], 20, A)
    fragment.clear_tentative(0, 10)
    assert worked(fragment, START) == ([], 20, {"a"})
    fragment.clear_tentative(0, FINAL)
    fragment.insert_tentative(0, [(21, "y", 1)], 30, NONE)
    assert worked(fragment, START) == ([(21, "y", 1)], 30, set())


def test_a_fragment_of_both_kinds_goes_as_far_as_the_slower_of_the_two() -> None:
    fragment = heads(Pass(), Place("a", A), inside("b"))
    fragment.insert(0, [], 20)
    fragment.insert_tentative(1, [], 40, B)
    assert worked(fragment, 30)[1:] == (30, {"a", "b"})
    assert worked(fragment, 60)[1:] == (40, {"a", "b"})


def test_wanting_makes_a_fragment_fail_even_if_nothing_may_be_released() -> None:
    fragment = heads(Pass())
    fragment.insert(0, [], 30)
    fragment.want(20)
    assert fragment.failing
    assert fragment.tentative is None
    assert fragment.state(0, PATIENCE_US) == State.UP_FAILURE
    within = heads(Pass(), inside("a"))
    within.want(20)
    assert not within.failing
