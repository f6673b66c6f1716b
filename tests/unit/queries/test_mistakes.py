"""Mistakes are caught when declared, and the message names operator, column and the nearest right name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import evenflow as ef

SCHEMA = {"bytes": pl.Int64, "src": pl.String, "ok": pl.Boolean, "tags": pl.List(pl.Int64)}
Declare = Callable[[ef.Network, ef.Stream], Any]
NEAR = r"did you mean 'bytes'\?"
COUNT = {"n": ef.count()}


def other(net: ef.Network, schema: dict[str, Any] | None = None) -> ef.Stream:
    return net.source("other", schema or SCHEMA)


MISTAKES: dict[str, tuple[Declare, str]] = {
    "filter column": (lambda n, s: s.filter(pl.col("bytez") > 0), f"filter: there is no column 'bytez'; {NEAR}"),
    "with_columns column": (lambda n, s: s.with_columns(y="bytez"), f"with_columns: .*'bytez'; {NEAR}"),
    "select column": (lambda n, s: s.select("bytez"), f"select: there is no column 'bytez'; {NEAR}"),
    "window key": (lambda n, s: s.window("1s", by="scr"), r"window: by='scr' is not a column; did you mean 'src'\?"),
    "session key": (lambda n, s: s.session("1s", by="scr"), "session: by='scr'"),
    "running key": (lambda n, s: s.running(by="scr"), "running: by='scr'"),
    "aggregate column": (lambda n, s: s.window("1s").agg(t=ef.sum("bytez")), f"window: t: .*'bytez'; {NEAR}"),
    "closing column": (lambda n, s: s.window("1s").agg(t=pl.col("bytez").n_unique()), f"window: t: .*{NEAR}"),
    "until column": (lambda n, s: s.window(until="bytez"), f"window until: there is no column 'bytez'; {NEAR}"),
    "until type": (lambda n, s: s.window(until="src"), "window: until='src' is String; it must be Int64"),
    "top column": (lambda n, s: s.top(1, by="bytez"), f"top: by='bytez' is not a column; {NEAR}"),
    "top per": (lambda n, s: s.top(1, by="bytes", per="scr"), "top: per='scr'"),
    "window top column": (lambda n, s: s.window("1s").top(1, by="bytez"), f"window.top: by='bytez' .*{NEAR}"),
    "distinct column": (lambda n, s: s.distinct("scr", within="1s"), "distinct: on='scr'"),
    "join column": (lambda n, s: s.join(other(n), on="scr", within="1s"), "join: on='scr' is not a column"),
    "join right column": (
        lambda n, s: s.join(other(n), left_on="src", right_on="scr", within="1s"),
        "join: right_on='scr' is not a column",
    ),
    "join key type": (
        lambda n, s: s.join(other(n), left_on="src", right_on="bytes", within="1s"),
        "join: the key 'src' is String on the left and 'bytes' is Int64",
    ),
    "join where column": (
        lambda n, s: s.join(other(n), on="src", within="1s", where=pl.col("bytez") > 0),
        f"join where: there is no column 'bytez'; {NEAR}",
    ),
    "join where type": (
        lambda n, s: s.join(other(n), on="src", within="1s", where=pl.col("bytes")),
        "join: where = .* gives Int64, not a Boolean",
    ),
    "join where rows": (
        lambda n, s: s.join(other(n), on="src", within="1s", where=pl.col("bytes") > pl.col("bytes").mean()),
        "join where: .*row by row",
    ),
    "join without keys": (lambda n, s: s.join(other(n), within="1s"), "join: name the keys"),
    "join with both": (lambda n, s: s.join(other(n), on="src", left_on="src", within="1s"), "join: name the keys"),
    "join counts": (
        lambda n, s: s.join(other(n), left_on=["src", "ok"], right_on="src", within="1s"),
        "join: 2 keys on the left and 1 on the right",
    ),
    "join how": (lambda n, s: s.join(other(n), on="src", within="1s", how="outer"), "join: how='outer' is not known"),
    "join left for ever": (lambda n, s: s.join(other(n), on="src", within=None, how="left"), "left join needs within="),
    "join clash": (
        lambda n, s: s.with_columns(src_right=1, b_right=1).join(other(n), on="bytes", within="1s"),
        "join: the right-hand column 'src_right' clashes",
    ),
    "join a frame": (lambda n, s: s.join(pl.DataFrame(), on="src", within="1s"), "(?s)join: .*is not a stream"),
    "union columns": (
        lambda n, s: n.union(s, other(n, {"bytes": pl.Int64})),
        r"union: input 1 has the columns .* and input 2 has \['bytes'\]",
    ),
    "union types": (
        lambda n, s: n.union(s, other(n, {**SCHEMA, "bytes": pl.Int32})),
        "union: column 'bytes' is Int64 in input 1 and Int32 in input 2",
    ),
    "union of nothing": (lambda n, s: n.union(), "union: name at least one stream"),
    "union tie": (lambda n, s: n.union(s, tie_break="bytez"), f"union tie_break: .*{NEAR}"),
    "union tie rows": (lambda n, s: n.union(s, tie_break=pl.col("bytes").cum_sum()), "union tie_break: .*row by row"),
    "filter type": (lambda n, s: s.filter(pl.col("bytes")), "filter: .* gives Int64, not a Boolean"),
    "filter string": (lambda n, s: s.filter("ok"), "filter: 'ok' is not an expression"),
    "list key": (lambda n, s: s.window("1s", by="tags"), r"window: by='tags' is List\(Int64\), which cannot be a key"),
    "key twice": (lambda n, s: s.window("1s", by=["src", "src"]), "window: by names a column twice"),
    "unbounded distinct": (lambda n, s: s.distinct("src"), "distinct: say within="),
    "distinct on nothing": (lambda n, s: s.distinct([], within="1s"), "distinct: name at least one column"),
    "bad duration": (lambda n, s: s.window("1 week"), "window: size='1 week' is not a duration"),
    "no duration": (lambda n, s: s.session(0), "session: gap=0 must be longer than nothing"),
    "bad every": (lambda n, s: s.window("1s", every="0s"), "window: every='0s'"),
    "window of nothing": (lambda n, s: s.window(), "window: say one of"),
    "window of both": (lambda n, s: s.window("1s", rows=3), "window: say one of"),
    "every without size": (lambda n, s: s.window(rows=3, every="1s"), "window: every= goes with a size"),
    "rows zero": (lambda n, s: s.window(rows=0), "window: rows=0 must be a whole number"),
    "running rows": (lambda n, s: s.running(rows=-1).agg(**COUNT), "running: rows=-1 must be"),
    "running closing": (lambda n, s: s.running().agg(m=pl.col("bytes").median()), "running: m = .*never does"),
    "running key name": (lambda n, s: s.running(by="src").agg(src=ef.count()), "running: 'src' is a key already"),
    "no aggregate": (lambda n, s: s.window("1s").agg(), r"window: agg\(\) needs at least one"),
    "what aggregate": (lambda n, s: s.window("1s").agg(n=5), "window: n = 5 is no aggregate"),
    "aggregate name": (lambda n, s: s.window("1s").agg(window_end=ef.count()), "'window_end' is a column of every"),
    "header name": (lambda n, s: s.window("1s").agg(tuple_id=ef.count()), "tuple_id belongs to the row's header"),
    "set the time": (lambda n, s: s.with_columns(tuple_time=1), "with_columns: 'tuple_time' belongs to the row's head"),
    "reserved": (lambda n, s: s.with_columns(**{":x": pl.lit(1)}), "with_columns: ':x' is reserved"),
    "made twice": (lambda n, s: s.select("src", src="bytes"), "select: column 'src' is made twice"),
    "several": (lambda n, s: s.select(pl.col("src", "bytes")), "select: .*several columns"),
    "nothing": (lambda n, s: s.select(), "select: name at least one column"),
    "no expression": (lambda n, s: s.with_columns(5), "with_columns: 5 is neither"),
    "k zero": (lambda n, s: s.top(0, by="bytes"), "top: k=0 must be a whole number from 1 on"),
    "k true": (lambda n, s: s.top(True, by="bytes"), "top: k=True"),
    "top of a session": (lambda n, s: s.session("1s").top(1, by="bytes"), r"session: top\(\) goes with windows"),
    "top of windows": (
        lambda n, s: s.window("1s").agg(**COUNT).window("2s").top(1, by="n"),
        "window.top: the column 'window_start' clashes",
    ),
    "key of windows": (
        lambda n, s: s.window("1s").agg(**COUNT).window("2s", by="window_start").agg(**COUNT),
        "by='window_start' clashes",
    ),
    "output twice": (lambda n, s: s.output("o").output("o"), "output 'o' is declared twice"),
    "output without name": (lambda n, s: s.output(""), "output: '' is not a name"),
    "output that is a path": (lambda n, s: s.output("a/b"), "output: 'a/b' is not a name"),
    "unnamed aggregate": (lambda n, s: s.window("1s").agg(ef.count()), "name each aggregate"),
    "by an expression": (lambda n, s: s.window("1s", by=pl.col("src").str.head(1)), "is not a column's name"),
    "by nothing": (lambda n, s: s.window("1s", by=None), "by=None is not a column's name"),
    "count of a number": (lambda n, s: ef.count(1), "name a column or give an expression"),
    "no function": (lambda n, s: s.map_rows(None), "None is not a function"),
    "union of a list": (lambda n, s: n.union([s, s]), r"write net.union\(\*streams\)"),
    "bare decimal": (lambda n, s: n.source("d", {"m": pl.Decimal}), "write Decimal with its parameters"),
    "source twice": (lambda n, s: n.source("packets", SCHEMA), "source 'packets' is declared twice"),
    "name twice": (lambda n, s: s.filter(pl.col("ok")).named("packets"), "a stream called 'packets' already"),
    "rename a source": (lambda n, s: s.named("x"), "'packets' is a source and keeps its name"),
    "another network": (
        lambda n, s: n.union(s, ef.Network("far").source("a", SCHEMA)),
        "union: 'a' is a stream of the network 'far', not of 'home'",
    ),
    "join another network": (
        lambda n, s: s.join(ef.Network("far").source("a", SCHEMA), on="src", within="1s"),
        "join: 'a' is a stream of the network 'far'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str) -> None:
    net = ef.Network("home")
    stream = net.source("packets", SCHEMA)
    declare, message = MISTAKES[name]
    with pytest.raises(ef.DeclarationError, match=message):
        declare(net, stream)


def test_a_network_needs_an_output() -> None:
    net = ef.Network("home")
    net.source("packets", SCHEMA)
    for ask in (net.check, net.explain, net.to_mermaid, lambda: ef.fold(net, {})):
        with pytest.raises(ef.DeclarationError, match="network 'home' has no output"):
            ask()


def test_a_source_that_nobody_uses_is_named() -> None:
    net = ef.Network("home")
    net.source("packets", SCHEMA).output("all")
    net.source("idle", SCHEMA).filter(pl.col("ok"))
    with pytest.raises(ef.DeclarationError, match="source 'idle' is used by no output of network 'home'"):
        net.check()


def test_a_mistake_leaves_the_network_as_it_was() -> None:
    net = ef.Network("home")
    stream = net.source("packets", SCHEMA)
    with pytest.raises(ef.DeclarationError):
        stream.filter(pl.col("bytes"))
    assert len(net.nodes) == 1
