"""From streams to fragments: where SUnions stand, what leaves a fragment, and how the plan reads."""

from __future__ import annotations

import polars as pl

import evenflow as ef
from evenflow.operators.plan import Plan
from evenflow.queries.compile import compile_plan

SCHEMA = {"k": pl.Int64}
ODD = pl.col("k") % 2 == 1


def plan_of(net: ef.Network) -> Plan:
    return compile_plan(net.nodes, net.output_numbers)


def shape(plan: Plan) -> list[tuple[list[str], list[str], list[str]]]:
    """Each fragment's inputs, operators and leaves by name; the order over a single input is no operator."""
    return [
        (
            [plan.names[n] for n in fragment.inputs],
            [plan.names[s.stream] for s in fragment.stages if (s.stream,) != fragment.inputs],
            [plan.names[n] for n in fragment.leaves],
        )
        for fragment in plan.fragments
    ]


def test_operators_behind_one_input_are_one_fragment() -> None:
    net = ef.Network("n")
    net.source("a", SCHEMA).filter(ODD).named("odd").window("1s").agg(n=ef.count()).named("count").output("out")
    plan = plan_of(net)
    assert shape(plan) == [(["a"], ["odd", "count"], ["count"])]
    assert plan.inputs == (0,)
    assert plan.outputs == {"out": 2}


def test_an_operator_with_several_inputs_begins_a_fragment() -> None:
    net = ef.Network("n")
    odd = net.source("a", SCHEMA).filter(ODD).named("odd")
    both = net.union(odd, net.source("b", SCHEMA)).named("both")
    both.filter(ODD).named("again").output("out")
    assert shape(plan_of(net)) == [(["a"], ["odd"], ["odd"]), (["odd", "b"], ["both", "again"], ["again"])]


def test_a_diamond_meets_in_a_fragment_of_its_own() -> None:
    net = ef.Network("n")
    a = net.source("a", SCHEMA)
    left, right = a.filter(ODD).named("left"), a.filter(~ODD).named("right")
    net.union(left, right).named("whole").output("out")
    assert shape(plan_of(net)) == [
        (["a"], ["left", "right"], ["left", "right"]),
        (["left", "right"], ["whole"], ["whole"]),
    ]
    rows = pl.DataFrame({"tuple_time": [1, 1, 2], "k": [2, 1, 3]})
    assert ef.fold(net, {"a": rows})["out"]["k"].to_list() == [1, 2, 3]


def test_a_source_read_directly_and_through_an_operator() -> None:
    net = ef.Network("n")
    a = net.source("a", SCHEMA)
    net.union(a, a.filter(ODD).named("odd")).named("twice").output("out")
    assert shape(plan_of(net)) == [(["a"], ["odd"], ["odd"]), (["a", "odd"], ["twice"], ["twice"])]
    rows = pl.DataFrame({"tuple_time": [1, 2], "k": [1, 2]})
    assert ef.fold(net, {"a": rows})["out"]["k"].to_list() == [1, 1, 2]


def test_a_source_used_twice_in_one_union_comes_twice() -> None:
    net = ef.Network("n")
    a = net.source("a", SCHEMA)
    net.union(a, a).output("out")
    rows = pl.DataFrame({"tuple_time": [1, 2], "k": [1, 2]})
    assert ef.fold(net, {"a": rows})["out"]["k"].to_list() == [1, 1, 2, 2]


def test_a_source_that_is_an_output_itself() -> None:
    net = ef.Network("n")
    a = net.source("a", SCHEMA).output("raw")
    net.union(a, net.source("b", SCHEMA)).output("both")
    rows = {name: pl.DataFrame({"tuple_time": [2, 1], "k": [k, k]}) for name, k in (("a", 1), ("b", 2))}
    out = ef.fold(net, rows)
    assert out["raw"]["tuple_time"].to_list() == [1, 2]
    assert out["both"]["k"].to_list() == [1, 2, 1, 2]


def test_one_stream_under_two_names() -> None:
    net = ef.Network("n")
    net.source("a", SCHEMA).filter(ODD).output("one").output("two")
    out = ef.fold(net, {"a": pl.DataFrame({"tuple_time": [1], "k": [1]})})
    assert out["one"].equals(out["two"])
    assert out["one"].height == 1


def test_what_no_output_needs_is_left_out() -> None:
    net = ef.Network("n")
    a = net.source("a", SCHEMA)
    a.filter(~ODD).named("unused")
    a.filter(ODD).named("used").output("out")
    assert shape(plan_of(net)) == [(["a"], ["used"], ["used"])]


def test_only_placed_operators_are_in_a_node_s_plan() -> None:
    net = ef.Network("n")
    odd = net.source("a", SCHEMA).filter(ODD).named("odd")
    count = odd.window("1s").agg(n=ef.count()).named("count").output("out")
    plan = compile_plan(net.nodes, {"out": count.number}, {count.number})
    assert shape(plan) == [(["odd"], ["count"], ["count"])]
    assert [plan.names[n] for n in plan.inputs] == ["odd"]
    assert plan.empty(count.number).columns == ["tuple_time", "window_start", "window_end", "n"]


def test_the_horizon_of_a_plan_adds_up_over_fragments() -> None:
    net = ef.Network("n")
    a, b = net.source("a", SCHEMA), net.source("b", SCHEMA)
    a.distinct("k", within=7).join(b, on="k", within=5).window(10, by="k").agg(n=ef.count()).output("out")
    assert plan_of(net).horizon == 22
    a.session(5).agg(n=ef.count()).output("sessions")
    assert plan_of(net).horizon is None
