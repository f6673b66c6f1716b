"""Where operators run, and every mistake in saying so."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import evenflow as ef

SCHEMA = {"k": pl.Int64}


def network() -> tuple[ef.Network, dict[str, ef.Stream]]:
    net = ef.Network("n")
    a, b = net.source("a", SCHEMA), net.source("b", SCHEMA)
    odd = a.filter(pl.col("k") % 2 == 1).named("odd")
    both = net.union(odd, b).named("both")
    counted = both.window("1s", by="k").agg(n=ef.count()).named("counted").output("counts")
    return net, {"a": a, "odd": odd, "both": both, "counted": counted}


def test_a_node_takes_what_stands_above_its_streams() -> None:
    net, streams = network()
    app = ef.Deployment(net, bucket="50ms")
    app.node("edge", [streams["odd"]], x="1s")
    app.node("site", [streams["counted"]], x="2s", replicas=2)
    assert app.bucket_us == 50_000
    assert app.placement() == {"edge": (2,), "site": (3, 4)}
    assert app.nodes["site"].replicas == 2


def test_a_stream_between_nodes_leaves_one_and_enters_the_other() -> None:
    net, streams = network()
    app = ef.Deployment(net)
    app.node("edge", [streams["both"]], x="1s")
    app.node("site", [streams["counted"]], x="2s")
    plans = app.plans()
    assert dict(plans["edge"].outputs) == {"both": 3}
    assert [plans["edge"].names[n] for n in plans["edge"].inputs] == ["a", "b"]
    assert [plans["site"].names[n] for n in plans["site"].inputs] == ["both"]
    assert dict(plans["site"].outputs) == {"counts": 4}


def test_explain_tells_each_node_s_settings_and_plan() -> None:
    net, streams = network()
    app = ef.Deployment(net)
    app.node("edge", [streams["both"]], x="1s")
    app.node("site", [streams["counted"]], x="2500ms", reconcile="undo", on_failure="delay")
    text = app.explain()
    assert "node edge: X = 1s, replicas 1, reconcile auto, replay local" in text
    assert "node site: X = 2.5s, replicas 1, reconcile undo, replay local, delay in failure" in text
    assert "SOutput 'both'" in text
    assert "SUnion(both)" in text


def placed(**settings: Any) -> None:
    net, streams = network()
    ef.Deployment(net).node("edge", [streams["odd"]], **{"x": "1s", **settings})


SETTINGS = [
    ({"replicas": 0}, "node 'edge': replicas=0"),
    ({"replicas": True}, "node 'edge': replicas=True"),
    ({"reconcile": "chekpoint"}, r"reconcile='chekpoint' is not known; did you mean 'checkpoint'\?"),
    ({"replay": "sparc"}, r"replay='sparc' is not known; did you mean 'spark'\?"),
    ({"on_failure": "wait"}, "on_failure='wait' is not known; there is 'suspend', 'delay', 'process'"),
    ({"on_stabilization": "proces"}, r"on_stabilization='proces' is not known; did you mean 'process'\?"),
    ({"x": "fast"}, "node 'edge': x='fast' is not a duration"),
    ({"x": 0}, "node 'edge': x=0 must be longer"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS)
def test_wrong_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ef.DeclarationError, match=message):
        placed(**settings)


def test_wrong_streams() -> None:
    net, streams = network()
    app = ef.Deployment(net)
    app.node("edge", [streams["odd"]], x="1s")
    with pytest.raises(ef.DeclarationError, match="node 'edge' is declared twice"):
        app.node("edge", [streams["both"]], x="1s")
    with pytest.raises(ef.DeclarationError, match="node 'site': 'odd' is placed on node 'edge' already"):
        app.node("site", [streams["odd"]], x="1s")
    with pytest.raises(ef.DeclarationError, match="node 'site': name at least one stream"):
        app.node("site", [], x="1s")
    with pytest.raises(ef.DeclarationError, match="node 'site': 'a' is a source"):
        app.node("site", [streams["a"]], x="1s")
    with pytest.raises(ef.DeclarationError, match="'odd' is a stream of another network"):
        app.node("site", [network()[1]["odd"]], x="1s")
    assert list(app.nodes) == ["edge"]


def test_an_incomplete_deployment() -> None:
    net, streams = network()
    app = ef.Deployment(net)
    with pytest.raises(ef.DeclarationError, match="there is no node"):
        app.placement()
    app.node("edge", [streams["odd"]], x="1s")
    with pytest.raises(ef.DeclarationError, match="output 'counts' is on no node; place its stream 'counted'"):
        app.placement()


def test_a_node_needs_an_x_or_a_deadline() -> None:
    net, streams = network()
    app = ef.Deployment(net)
    app.node("site", [streams["counted"]])
    with pytest.raises(ef.DeclarationError, match="node 'site': say x="):
        app.placement()
    with pytest.raises(ef.DeclarationError, match=r"deadline: there is no output 'count'; did you mean 'counts'\?"):
        app.deadline("count", "3s")
    app.deadline("counts", "3s")
    assert app.placement() == {"site": (2, 3, 4)}
    assert "node site: X = 3s" in app.explain()


def test_a_deadline_of_another_output_gives_a_node_no_x() -> None:
    net, streams = network()
    other = net.sources["b"].filter(pl.col("k") > 0).output("other")
    app = ef.Deployment(net)
    app.node("site", [streams["counted"]])
    app.node("apart", [other], x="1s")
    app.deadline("other", "3s")
    with pytest.raises(ef.DeclarationError, match="node 'site': say x="):
        app.placement()


def test_nodes_that_feed_each_other_are_refused() -> None:
    net = ef.Network("loop")
    first = net.source("a", SCHEMA).filter(pl.col("k") > 0).named("first")
    second = first.filter(pl.col("k") > 1).named("second")
    third = second.filter(pl.col("k") > 2).named("third").output("out")
    app = ef.Deployment(net)
    app.node("one", [first, third], x="1s")
    app.node("two", [second], x="1s")
    with pytest.raises(ef.DeclarationError, match=r"the nodes \['one', 'two'\] feed each other"):
        app.placement()


def sent_or_refused(app: ef.Deployment, name: str) -> set[int] | None:
    """The streams that leave the nodes; None if the deployment is refused by an error that names the output."""
    try:
        plans = app.plans()
    except ef.DeclarationError as error:
        return None if name in str(error) else set()
    return {number for plan in plans.values() for number in plan.outputs.values()}


def test_an_output_that_is_a_source_is_sent_or_refused() -> None:
    net = ef.Network("n")
    a = net.source("a", SCHEMA).output("raw")
    odd = a.filter(pl.col("k") > 0).output("odd")
    app = ef.Deployment(net)
    app.node("edge", [odd], x="1s")
    sent = sent_or_refused(app, "raw")
    assert sent is None or a.number in sent


def test_an_output_and_a_stream_of_the_same_name_stay_apart() -> None:
    net = ef.Network("n")
    a = net.source("a", SCHEMA)
    inner = a.filter(pl.col("k") > 0).named("result")
    outer = a.filter(pl.col("k") > 1).output("result")
    last = inner.filter(pl.col("k") > 2).output("end")
    app = ef.Deployment(net)
    app.node("edge", [inner, outer], x="1s")
    app.node("site", [last], x="1s")
    sent = sent_or_refused(app, "result")
    assert sent is None or sent == {inner.number, outer.number, last.number}
