"""Invariant 4: failures shorter than αX, less what is needed to notice and to replay them, give no tentative row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from evenflow.engine.simulator.faults import Crash, Partition, Pause, Skew, Slow, merged
from evenflow.engine.simulator.run import Run
from evenflow.engine.simulator.seen import n_tentative, recovery_us

R = TypeVar("R")


def masking(run: Run[R], output: str) -> Iterator[str]:
    if masked(run) and n_tentative(run, output):
        yield f"4 masking: {output} has tentative rows, though every failure was shorter than αX less the margin"


def masked(run: Run[Any]) -> bool:
    """Whether every failure was so short that no node had to go on without an input."""
    settings = run.layout.settings
    if any(isinstance(fault, Crash | Partition | Pause | Skew | Slow) for fault in run.faults):
        return False
    if settings.costs.redo_us_per_row > 10:
        return False
    hold_us = min(run.layout.threshold(node).hold_us for node in run.layout.plans)
    spans = [fault.span_us for fault in run.faults if not isinstance(fault, Skew)]
    for start, end in merged((start, end + recovery_us(run, end - start)) for start, end in spans):
        if end - start + settings.bucket_us + settings.processing_us >= hold_us:
            return False
    return True
