"""Random networks, awkward input, and digests of results, shared by the property tests.

Everything is drawn from one seed, so a failing case is reproduced by its number, in any process.
"""

from __future__ import annotations

import hashlib
import random
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

import evenflow as ef
from evenflow.operators.kernel import FrameKernel, stack
from evenflow.operators.times import FINAL
from evenflow.queries.compile import compile_plan
from evenflow.reconcile.heads import Heads

SCHEMA = {"k": pl.Int64, "s": pl.String, "f": pl.Float64, "x": pl.Float64, "n": pl.Int64}
Inputs = dict[str, pl.DataFrame]
AWKWARD = (0.0, -0.0, float("nan"), float("inf"), float("-inf"), None)


def awkward_float(rng: random.Random) -> float | None:
    """A float of any size from 1e-12 to 1e12, or one that often goes wrong."""
    if rng.random() < 0.08:
        return rng.choice(AWKWARD)
    return rng.uniform(-1, 1) * 10.0 ** rng.randint(-12, 12)


def awkward_rows(rng: random.Random, n: int, keys: int, span_us: int) -> pl.DataFrame:
    """Rows over ``span_us`` with many equal times, few keys, null keys and awkward floats."""
    grain = rng.choice([1, 10, 1_000, 50_000])
    stamps = sorted(rng.randrange(0, span_us) // grain * grain for _ in range(n))
    return pl.DataFrame(
        {
            "tuple_time": stamps,
            "k": [rng.choice([None, *range(keys)]) if rng.random() < 0.1 else rng.randrange(keys) for _ in range(n)],
            "s": [rng.choice(["", "a", "b", "längere Zeichen", None]) for _ in range(n)],
            "f": [rng.choice([0.0, -0.0, 1.5, float("nan"), None]) for _ in range(n)],
            "x": [awkward_float(rng) for _ in range(n)],
            "n": [rng.randint(-5, 1_000) for _ in range(n)],
        },
        schema={"tuple_time": pl.Int64, **SCHEMA},
    )


def _duration(rng: random.Random) -> str:
    return rng.choice(["7ms", "10ms", "100ms", "250ms", "333ms", "1s", "2.5s"])


def _keys(rng: random.Random) -> list[str]:
    return rng.choice([[], ["k"], ["s"], ["k", "s"], ["f"]])


def _aggregates(rng: random.Random, closing: bool = True) -> dict[str, Any]:
    known: dict[str, Any] = {
        "rows": ef.count(),
        "xs": ef.count("x"),
        "sum": ef.sum("x"),
        "total": ef.sum(pl.col("x") * pl.col("n")),
        "mean": ef.mean("x"),
        "std": ef.std("x"),
        "low": ef.min("x"),
        "high": ef.max("x"),
        "word": ef.max("s"),
        "one": ef.first("x"),
        "end": ef.last("s"),
        "ints": ef.sum("n"),
    }
    if closing:
        known |= {
            "unique": pl.col("s").n_unique(),
            "median": pl.col("x").median(),
            "native": pl.col("x").sum(),
            "spread": pl.col("x").var(),
            "upper": pl.col("n").quantile(0.9),
        }
    return {name: known[name] for name in rng.sample(sorted(known), rng.randint(1, 5))}


def _shift(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("x") * 1.1)


def _rename(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "s": f"{row['s']}!"}


def _grow(rng: random.Random, stream: ef.Stream) -> ef.Stream:
    """One or two operators that keep the schema."""
    for _ in range(rng.randint(0, 2)):
        kind = rng.randrange(6)
        if kind == 0:
            stream = stream.filter(pl.col("n") > rng.randint(-5, 500))
        elif kind == 1:
            stream = stream.with_columns(x=pl.col("x") / 3 + pl.col("n"))
        elif kind == 2:
            stream = stream.map_batches(_shift)
        elif kind == 3:
            stream = stream.map_rows(_rename)
        elif kind == 4:
            stream = stream.distinct(rng.choice(["k", "s"]), within=_duration(rng))
        else:
            stream = stream.select(*SCHEMA)
    return stream


def _finish(rng: random.Random, stream: ef.Stream, other: ef.Stream) -> ef.Stream:
    """An operator with state at the end of a branch."""
    kind = rng.randrange(9)
    if kind == 0:
        return stream.window(_duration(rng), by=_keys(rng)).agg(**_aggregates(rng))
    if kind == 1:
        return stream.window(_duration(rng), every=_duration(rng), by=_keys(rng)).agg(**_aggregates(rng))
    if kind == 2:
        return stream.window(rows=rng.randint(1, 9), by=_keys(rng)).agg(**_aggregates(rng))
    if kind == 3:
        return stream.session(_duration(rng), by=_keys(rng)).agg(**_aggregates(rng))
    if kind == 4:
        closes = stream.with_columns(closes=pl.col("tuple_time") + pl.col("n") * 1000)
        return closes.window(until="closes", by=_keys(rng)).agg(**_aggregates(rng))
    if kind == 5:
        return stream.running(by=_keys(rng), rows=rng.choice([None, 1, 3])).agg(**_aggregates(rng, closing=False))
    if kind == 6:
        how = rng.choice(["inner", "left"])
        where = rng.choice([None, pl.col("n") > pl.col("n_right")])
        within = rng.choice(["0us", _duration(rng)])
        return stream.join(other, on=rng.choice(["k", "s"]), within=within, how=how, where=where)
    if kind == 7:
        return stream.window(_duration(rng)).top(rng.randint(1, 3), by="n", per=_keys(rng), ties=rng.random() < 0.5)
    counts = stream.window(_duration(rng), by="k").agg(count=ef.count(), sum=ef.sum("x"))
    return counts.top(2, by="count", ties=True)


def random_case(seed: int, rows: int = 120) -> tuple[ef.Network, Inputs]:
    """A network with two or three outputs over three sources, and its input."""
    rng = random.Random(seed)
    net = ef.Network(f"case-{seed}")
    sources = [net.source(f"s{i}", SCHEMA) for i in range(3)]
    merged = net.union(*sources) if rng.random() < 0.8 else net.union(*sources, tie_break=["n"])
    for i in range(rng.randint(2, 3)):
        branch = _grow(rng, merged if rng.random() < 0.6 else rng.choice(sources))
        _finish(rng, branch, _grow(rng, rng.choice(sources))).output(f"out{i}")
    merged.output("all")
    span_us = rng.choice([200_000, 2_000_000, 9_000_000])
    keys = rng.choice([2, 5, 50])
    return net, {f"s{i}": awkward_rows(rng, rng.randint(0, rows), keys, span_us) for i in range(3)}


def few_keys(seed: int) -> tuple[ef.Network, Inputs]:
    """The case that a naive kernel fails: a float sum alone, by 50 keys or fewer, over many rows."""
    rng = random.Random(seed)
    n, keys = 30_000, rng.choice([1, 20, 50])
    net = ef.Network("few-keys")
    rows = net.source("a", {"k": pl.Int64, "x": pl.Float64})
    rows.window("1s", by="k").agg(sum=ef.sum("x")).output("sum")
    rows.window("1s", by="k").agg(sum=pl.col("x").sum()).output("native")
    rows.window("1s", by="k").agg(mean=pl.col("x").mean(), n=pl.len()).output("mean")
    frame = pl.DataFrame(
        {
            "tuple_time": [i * 100 for i in range(n)],
            "k": [rng.randrange(keys) for _ in range(n)],
            "x": [awkward_float(rng) for _ in range(n)],
        }
    )
    return net, {"a": frame.with_columns(pl.col("x").fill_nan(1.0).replace({float("inf"): 2.0, float("-inf"): 3.0}))}


def cuts(rng: random.Random, inputs: Mapping[str, pl.DataFrame]) -> list[int]:
    """Random times to cut the input at, some of them between rows of the same bucket."""
    stamps = sorted({t for frame in inputs.values() for t in frame["tuple_time"].to_list()})
    chosen = rng.sample(stamps, min(len(stamps), rng.randint(0, 12)))
    return sorted({t + rng.choice([0, 1]) for t in chosen})


def slices(inputs: Mapping[str, pl.DataFrame], at: list[int]) -> Iterator[tuple[str, pl.DataFrame, int]]:
    """Each source's rows up to every cut, and behind the last one the final boundary."""
    low = -(2**62)
    for cut in [*at, FINAL]:
        for name, frame in inputs.items():
            yield name, frame.filter(pl.col("tuple_time") >= low, pl.col("tuple_time") < cut), cut
        low = cut


def fold_sliced(net: ef.Network, inputs: Mapping[str, pl.DataFrame], bucket_us: int, at: list[int]) -> Inputs:
    """The stable rows, folded step by step as boundaries come in, source after source."""
    plan = compile_plan(net.nodes, net.output_numbers)
    head = Heads(plan, bucket_us, FrameKernel())
    parts = {name: [plan.empty(number)] for name, number in plan.outputs.items()}
    for name, rows, boundary in slices(inputs, at):
        head.insert(net.sources[name].number, rows, boundary)
        for output in head.advance().outputs:
            parts[output.name].append(output.rows)
    return {name: stack(rows) for name, rows in parts.items()}


def bits(frame: pl.DataFrame) -> dict[str, list[Any]]:
    """A frame by its bits: floats as the integers that have them, so that -0.0 is not 0.0 and NaN is NaN."""

    def exact(value: Any) -> Any:
        return struct.pack("<d", value).hex() if isinstance(value, float) else value

    return {f"{c.name}: {c.dtype}": [exact(v) for v in c.to_list()] for c in frame if c.name not in HEADER}


HEADER = ("tuple_id", "tuple_type")


def digest(outputs: Mapping[str, pl.DataFrame]) -> str:
    text = repr({name: bits(outputs[name]) for name in sorted(outputs)})
    return hashlib.sha256(text.encode()).hexdigest()[:20]
