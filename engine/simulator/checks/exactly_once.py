"""Invariant 2: no stable row twice, none missing, none undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from evenflow.engine.linear import Stable
from evenflow.engine.simulator.run import Run
from evenflow.operators.items import Undo

R = TypeVar("R")


def exactly_once(run: Run[R], output: str) -> Iterator[str]:
    last_id = 0
    for time_us, show in run.shown[output]:
        if isinstance(show.item, Stable):
            if show.item.first_id != last_id + 1:
                yield f"2 exactly once: {output} at {time_us}: row {show.item.first_id} follows row {last_id}"
            last_id = show.item.first_id + run.layout.kernel.count(show.item.rows) - 1
        elif isinstance(show.item, Undo) and show.item.last_id != last_id:
            yield f"2 exactly once: {output} at {time_us}: an undo to row {show.item.last_id}, but {last_id} is stable"
