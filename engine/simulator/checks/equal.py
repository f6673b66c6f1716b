"""Invariant 1: the stable rows equal those of a run without failures, bit for bit and in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from evenflow.engine.linear import Stable
from evenflow.engine.simulator.run import Run

R = TypeVar("R")


def equal(run: Run[R], output: str, expected: R) -> Iterator[str]:
    kernel = run.layout.kernel
    parts = [show.item.rows for _, show in run.shown[output] if isinstance(show.item, Stable)]
    got = kernel.concat(parts) if parts else kernel.split(expected, -(2**63))[0]
    n = kernel.count(got)
    if run.finished and n != kernel.count(expected):
        yield f"1 equal: {output} has {n} stable rows, but {kernel.count(expected)} without failures"
    elif not run.finished and run.stopped_us > run.end_us:
        yield f"1 equal: {output}: the run did not come to rest; {n} of {kernel.count(expected)} stable rows came"
    if not kernel.same(got, kernel.head(expected, n)):
        yield f"1 equal: {output}: the stable rows are not those of a run without failures"
