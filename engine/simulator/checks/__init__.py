"""The invariants that every run is held against, a module each. But for the last, they see what
clients saw and never inside a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from evenflow.engine.simulator.checks.availability import availability
from evenflow.engine.simulator.checks.equal import equal
from evenflow.engine.simulator.checks.exactly_once import exactly_once
from evenflow.engine.simulator.checks.lanes import lanes
from evenflow.engine.simulator.checks.masking import masking
from evenflow.engine.simulator.checks.replicas import replicas
from evenflow.engine.simulator.run import Run

R = TypeVar("R")


def check(run: Run[R], expected: Mapping[str, R]) -> list[str]:
    """Every broken invariant in words; ``expected`` has the stable rows of a run without failures."""
    broken: list[str] = []
    for output in run.shown:
        broken += equal(run, output, expected[output])
        broken += exactly_once(run, output)
        broken += availability(run, output)
        broken += masking(run, output)
        broken += lanes(run, output)
    return [*broken, *replicas(run)]
