"""The small networks and inputs that simulation tests share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import polars as pl

import evenflow as ef

SECOND = 1_000_000
ROW = {"k": pl.Int64, "v": pl.Int64}
SOURCES = ("m1", "m2", "m3")


def rows(stamps: Sequence[float], key: int = 0) -> pl.DataFrame:
    """Rows at these seconds."""
    times = [round(t * SECOND) for t in stamps]
    return pl.DataFrame(
        {"tuple_time": times, "k": [key] * len(times), "v": list(range(len(times)))},
        schema={"tuple_time": pl.Int64, **ROW},
    )


def steady(seconds: float, rate: int = 20, seed: int = 1, names: Sequence[str] = SOURCES) -> dict[str, pl.DataFrame]:
    """The same number of rows each second from every source, at random moments."""
    rng = random.Random(seed)
    n = int(seconds * rate)
    return {
        name: rows(sorted(rng.uniform(0, seconds) for _ in range(n))).with_columns(
            k=pl.Series([rng.randrange(5) for _ in range(n)])
        )
        for name in names
    }


def chain(length: int, x: str = "2s", policies: tuple[Any, Any] = ("process", "process")) -> ef.Deployment:
    """Three sources merged on the first node, and a filter on each further one."""
    net = ef.Network("chain")
    stream = net.union(*(net.source(name, ROW) for name in SOURCES)).named("u0")
    app = ef.Deployment(net)
    streams = [stream]
    for i in range(1, length):
        stream = stream.filter(pl.col("v") >= 0).named(f"u{i}")
        streams.append(stream)
    stream.output("out")
    for i, made in enumerate(streams):
        app.node(f"n{i}", [made], x=x, on_failure=policies[0], on_stabilization=policies[1])
    return app


def counted(size: str = "1s") -> ef.Network:
    """Rows of three sources counted by key over windows."""
    net = ef.Network("counted")
    merged = net.union(*(net.source(name, ROW) for name in SOURCES))
    merged.window(size, by="k").agg(n=ef.count(), total=ef.sum("v")).output("out")
    return net


def kinds(result: ef.Result, output: str = "out") -> list[str]:
    """The sequence of what a client saw, without boundaries and repetitions."""
    names = [type(item).__name__ for _, item in result.items(output) if not isinstance(item, ef.Boundary)]
    return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]


def seen(result: ef.Result, kind: type, output: str = "out") -> list[tuple[float, Any]]:
    """Items of one kind, with the second at which they came."""
    return [(time / SECOND, item) for time, item in result.items(output) if isinstance(item, kind)]


def states(result: ef.Result, node: str) -> list[str]:
    return result.states().filter(pl.col("node") == node)["state"].to_list()


def stable_after(result: ef.Result, healed: float) -> float:
    """Seconds from the healing of the failure until the last node was STABLE."""
    return float(result.states().filter(pl.col("state") == "STABLE")["time_us"].max()) / SECOND - healed


def assert_even(result: ef.Result) -> None:
    """Nothing is broken and everything came to rest."""
    assert result.violations == []
    assert result.run.finished
