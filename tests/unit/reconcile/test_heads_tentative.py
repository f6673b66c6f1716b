"""Both heads of several fragments: what a failure reaches, what it does not, and that everything comes even."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.operators.kernel import ListKernel
from evenflow.operators.times import FINAL, START
from evenflow.reconcile.checkpoint import CheckpointRedo
from evenflow.reconcile.heads import Heads, Output
from evenflow.reconcile.job import How
from evenflow.reconcile.undo import UndoRedo
from list_plans import Distinct, Filter, Join, ListPlan, Pass, Running, Window

Rows = list[Any]


def told(outputs: list[Output[Rows]]) -> list[Any]:
    return [(o.name, o.rows, o.boundary, None if o.missing is None else set(o.missing)) for o in outputs]


def two_branches() -> Heads[Rows]:
    """``left`` reads s0 and s1, ``right`` reads s2, ``all`` is the union of what they make."""
    plan = ListPlan({0: "s0", 1: "s1", 2: "s2"})
    plan.outputs["left"] = plan.add(Pass(), 0, 1)
    plan.outputs["right"] = plan.add(Pass(), 2)
    plan.outputs["all"] = plan.add(Pass(), plan.outputs["left"], plan.outputs["right"])
    return Heads(plan, 10, ListKernel())


def test_a_failure_reaches_only_what_reads_the_failed_input() -> None:
    heads = two_branches()
    heads.insert(0, [(5, "a", 1)], 20)
    heads.insert(2, [(6, "c", 1)], 20)
    assert told(heads.advance().outputs) == [("right", [(6, "c", 1)], 20, None)]
    heads.want(20)
    assert told(heads.release(20)) == [
        ("left", [(5, "a", 1)], 20, {"s1"}),
        ("all", [(5, "a", 1), (6, "c", 1)], 20, {"s1"}),
    ]
    assert [fragment.tentative is not None for fragment in heads.fragments] == [True, False, True]
    assert heads.failing
    heads.insert(2, [(21, "d", 1)], 30)
    assert told(heads.advance().outputs) == [("right", [(21, "d", 1)], 30, None)]


def test_a_correction_goes_down_and_the_heads_meet_on_the_way() -> None:
    heads = two_branches()
    heads.insert(0, [(5, "a", 1)], 20)
    heads.insert(2, [(6, "c", 1)], 20)
    heads.advance()
    heads.release(20)
    heads.insert(1, [(4, "b", 9)], 20)
    done = heads.advance()
    assert told(done.outputs) == [
        ("left", [(4, "b", 9), (5, "a", 1)], 20, None),
        ("all", [(4, "b", 9), (5, "a", 1), (6, "c", 1)], 20, None),
    ]
    assert done.redone == {How("checkpoint", "local", fell_back=False): 2 + 3}
    assert (done.more, heads.failing) == (False, False)
    assert all(fragment.tentative is None for fragment in heads.fragments)
    assert heads.buffered_rows == 0


def test_a_slice_of_redo_ends_after_about_so_many_rows() -> None:
    heads = two_branches()
    heads.insert(0, [(t, "a", t) for t in range(40)], 40)
    heads.insert(2, [], 40)
    heads.advance()
    heads.release(40)
    heads.insert(1, [], 40)
    heads.insert(2, [(45, "live", 1)], 50)
    sizes, rows = [], []
    while True:
        done = heads.advance(rows_max=10)
        sizes.append(done.corrected)
        rows += [row for output in done.outputs if output.name == "all" for row in output.rows]
        if not done.more:
            break
    assert all(10 <= size <= 20 for size in sizes)
    assert sum(sizes) == 80
    assert rows == [(t, "a", t) for t in range(40)]
    none = two_branches()
    none.insert(0, [(1, "a", 1)], 10)
    none.release(10)
    none.insert(1, [], 10)
    assert none.advance(rows_max=0).outputs == []
    assert none.advance(rows_max=0).more


def test_a_healthy_fragment_is_not_kept_waiting_by_another_ones_redo() -> None:
    heads = two_branches()
    heads.insert(0, [(t, "a", t) for t in range(40)], 40)
    heads.insert(2, [], 40)
    heads.advance()
    heads.release(40)
    heads.insert(1, [], 40)
    heads.insert(2, [(t, "c", t) for t in range(40, 80)], 80)
    done = heads.advance(rows_max=1)
    assert [(o.name, len(o.rows)) for o in done.outputs if o.name == "right"] == [("right", 40)]
    assert [len(o.rows) for o in done.outputs if o.name == "left"] == [10]


def test_a_blocked_join_does_not_stop_the_rest() -> None:
    plan = ListPlan({0: "s0", 1: "s1"})
    plan.outputs["seen"] = plan.add(Pass(), 0)
    plan.outputs["joined"] = plan.add(Join(5), 0, 1)
    heads: Heads[Rows] = Heads(plan, 10, ListKernel())
    heads.insert(0, [(1, "k", 1)], 20)
    assert told(heads.advance().outputs) == [("seen", [(1, "k", 1)], 20, None)]
    assert heads.release(20) == []
    assert [fragment.blocked for fragment in heads.fragments] == [False, True]
    assert [f.blocked for f in heads.path("joined")] == [True]
    assert heads.path_numbers("seen") == {0}


def test_upstream_rec_done_clears_what_its_tentative_rows_left() -> None:
    heads = two_branches()
    heads.insert_tentative(0, [(5, "guess", 1)], 20, frozenset({"far"}))
    heads.insert(1, [], 20)
    heads.insert(2, [], 20)
    heads.advance()
    assert told(heads.release(10))[0] == ("left", [(5, "guess", 1)], 10, {"far"})
    heads.clear_tentative(0, 20)
    assert heads.fragments[0].sunion.rows == 0
    assert told(heads.release(20))[0] == ("left", [], 20, {"s0"})


def test_a_late_row_of_a_failed_input_goes_to_the_stable_head_only() -> None:
    heads = two_branches()
    heads.insert(2, [], 40)
    heads.insert(0, [], 40)
    heads.advance()
    heads.release(20)
    heads.insert(1, [(5, "late", 1)], 10)
    tentative = heads.release(40)
    assert [output.rows for output in tentative] == [[], []]
    assert told(heads.advance().outputs)[0] == ("left", [(5, "late", 1)], 10, None)


ROW = st.tuples(st.integers(0, 59), st.sampled_from("ab"), st.integers(1, 9))


@settings(max_examples=120)
@given(
    inputs=st.tuples(*[st.lists(ROW, max_size=10)] * 3),
    story=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 25)), max_size=16),
    undo=st.booleans(),
    rebase=st.booleans(),
    below=st.sampled_from([Pass(), Window(20, 10), Distinct(15), Running()]),
)
def test_tentative_rows_never_leak_into_stable_output(
    inputs: Any, story: list[tuple[int, int]], undo: bool, rebase: bool, below: Pass
) -> None:
    """Stable output is that of a run without failures, whatever was released, guessed or rebased in between."""
    plan = ListPlan({0: "s0", 1: "s1", 2: "s2"})
    left = plan.add(Filter(3), 0, 1)
    plan.outputs["joined"] = plan.add(Join(5), left, 2)
    plan.outputs["end"] = plan.add(below, plan.add(Pass(), left, 2))
    method = UndoRedo if undo and below.horizon is not None else CheckpointRedo
    heads: Heads[Rows] = Heads(plan, 10, ListKernel(), method)
    rows = [sorted(part, key=lambda row: row[0]) for part in inputs]
    reached, stable = [0, 0, 0], {"joined": [], "end": []}  # type: ignore[var-annotated]
    for kind, by in story:
        if kind == 3:
            outputs = heads.release(max(reached) // 10 * 10 + by // 10 * 10)
            assert all(output.missing is not None for output in outputs)
        elif kind == 4:
            guesses = [(reached[by % 3] + i, "guess", 5) for i in range(by)]
            heads.insert_tentative(by % 3, guesses, reached[by % 3] + by, frozenset({"far"}))
        else:
            reached[kind] += by
            part, rows[kind] = ListKernel().split(rows[kind], reached[kind])
            heads.insert(kind, part, reached[kind])
        for output in heads.advance(rows_max=by).outputs:
            assert output.missing is None
            stable[output.name] += output.rows
        if rebase and kind == 4:
            for fragment in heads.fragments:
                fragment.rebase()
    for place in range(3):
        heads.insert(place, rows[place], FINAL)
    for output in heads.advance().outputs:
        stable[output.name] += output.rows
    whole: Heads[Rows] = Heads(plan, 10, ListKernel())
    for place in range(3):
        whole.insert(place, sorted(inputs[place], key=lambda row: row[0]), FINAL)
    assert stable == {output.name: output.rows for output in whole.advance().outputs}
    assert not heads.failing
    assert all(fragment.tentative is None for fragment in heads.fragments)
    assert START < min(fragment.sunion.cursor for fragment in heads.fragments) == FINAL
