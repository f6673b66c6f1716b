"""What a plan looks like in words and as a picture."""

from __future__ import annotations

import polars as pl

import evenflow as ef


def network() -> ef.Network:
    net = ef.Network("shop")
    orders = net.source("orders", {"id": pl.Int64, "what": pl.String})
    pays = net.source("pays", {"id": pl.Int64})
    big = orders.filter(pl.col("what") == 'a "big" one').named("big")
    big.join(pays, on="id", within="5s").window("1m", by="id").agg(n=ef.count()).output("paid")
    orders.running(by="id").agg(n=ef.count()).output("seen")
    return net


def test_explain_names_inputs_fragments_sunions_operators_and_soutputs() -> None:
    lines = network().explain().splitlines()
    assert lines[0] == "network shop"
    assert lines[1:4] == ["inputs", "  orders  (id: Int64, what: String)", "  pays  (id: Int64)"]
    text = "\n".join(lines)
    assert text.count("SUnion(") == 2
    assert "SUnion(orders)" in text
    assert "SUnion(big, pays)" in text
    assert "big = filter(" in text
    assert "SOutput 'paid'" in text
    assert "SOutput 'seen'" in text
    assert "state: for ever" in text
    assert "blocks without an input" in text
    assert "→ (window_start: Int64, window_end: Int64, id: Int64, n: Int64)" in text


def test_every_operator_stands_under_its_own_sunion() -> None:
    text = network().explain()
    first, second = text.split("fragment 2")
    assert "join" not in first
    assert "join" in second
    assert "running" in first
    assert second.index("join") < second.index("window(")


def test_the_picture_links_each_box_once() -> None:
    lines = network().to_mermaid().splitlines()
    assert lines[0] == "flowchart LR"
    assert (
        sum(line.strip().startswith("subgraph") for line in lines) == sum(line.strip() == "end" for line in lines) == 2
    )
    links = [line.strip() for line in lines if "-->" in line]
    assert len(links) == len(set(links))
    ends = [link.split(" --> ")[1] for link in links]
    assert ends.count("u1") == 1
    assert ends.count("u2") == 2
    assert "s1 --> u2" in links
    assert "u1 --> o2" in links
    assert "o2 --> u2" in links


def test_quotes_do_not_break_the_picture() -> None:
    for line in network().to_mermaid().splitlines():
        assert line.count('"') in (0, 2)


def test_streams_and_networks_describe_themselves() -> None:
    net = network()
    assert repr(net) == "Network('shop': 2 sources, 2 outputs)"
    assert repr(net.sources["pays"]) == "Stream('pays': id: Int64)"
    assert list(net.outputs) == ["paid", "seen"]
