"""``evenflow simulate``: from what was asked on the command line to what is printed and drawn."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from rich.console import Console

from evenflow.engine.simulator.faults import (
    Cut,
    Fault,
    Pause,
    Slow,
    Stall,
    parse_crash,
    parse_partition,
    parse_skew,
    parse_span,
)
from evenflow.engine.simulator.plot import check_ending
from evenflow.engine.simulator.plot import plot as draw
from evenflow.engine.simulator.result import Result
from evenflow.engine.simulator.simulate import simulate
from evenflow.facts import facts
from evenflow.queries.deployment import Replay
from evenflow.query_file import QueryFile, load, read_inputs
from evenflow.story import tell
from evenflow.terminal import plain_warnings


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    file: str
    faults: Sequence[Fault]
    seed: int
    inputs: Sequence[str]
    until: str | None
    x: str | None
    bucket: str | None
    replay: str | None
    spark: str | None
    plot: Path | None


def faults(
    cut: Sequence[str],
    stall: Sequence[str],
    slow: Sequence[str],
    pause: Sequence[str],
    skew: Sequence[str],
    crash: Sequence[str] = (),
    partition: Sequence[str] = (),
) -> list[Fault]:
    """The faults of the options, in this order.

    >>> faults(["a@1s..2s"], (), (), (), ["c=-10ms"])
    [Cut(where='a', start='1s', end='2s'), Skew(where='c', by='-10ms')]
    """
    kinds = ((Cut, cut), (Stall, stall), (Slow, slow), (Pause, pause))
    spans = [parse_span(kind, text) for kind, texts in kinds for text in texts]
    return [*spans, *map(parse_skew, skew), *map(parse_crash, crash), *map(parse_partition, partition)]


def show(asked: Asked, as_json: bool) -> bool:
    """Simulate, print and draw; whether all invariants hold."""
    if asked.plot is not None:
        check_ending(asked.plot)
    query = load(asked.file)
    result = _result(query, asked)
    known = facts(result, query.network.name)
    if as_json:
        print(json.dumps(known, allow_nan=False))
    else:
        tell(Console(highlight=False), known)
    if asked.plot is not None:
        draw(result, asked.plot, f"{query.network.name}, seed {asked.seed}")
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"the timeline is in {asked.plot}")
    return not result.violations


def _result(query: QueryFile, asked: Asked) -> Result:
    inputs = read_inputs(query.network, asked.inputs) if asked.inputs else query.generated(asked.seed)
    app = query.deployment if query.deployment is not None else query.network
    waiting = Console(stderr=True).status(f"simulating {query.network.name}")
    with plain_warnings(), waiting:
        return simulate(
            app,
            inputs,
            asked.faults,
            asked.seed,
            until=asked.until,
            x=asked.x,
            bucket=asked.bucket,
            replay=cast("Replay | None", asked.replay),
            spark=asked.spark,
        )
