"""Invariant 6: all living replicas of a node end in the same state, with the same numbering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evenflow.engine.simulator.run import Run
from evenflow.operators.fragment import Fragment


def replicas(run: Run[Any]) -> Iterator[str]:
    if not run.finished:
        return
    for node in run.layout.plans:
        living = [who for who in run.layout.addresses(node) if who not in run.dead]
        for other in living[1:]:
            one, two = run.nodes[living[0]], run.nodes[other]
            for name, publisher in one.publishers.items():
                if publisher.last_id != two.publishers[name].last_id:
                    yield f"6 replicas: {living[0]} and {other} end {name} with different ids"
            for number, (mine, theirs) in enumerate(zip(one.heads.fragments, two.heads.fragments, strict=True)):
                if not _same(mine.fragment, mine.redo.reference(), theirs.redo.reference()):
                    yield f"6 replicas: {living[0]} and {other} end with different states of fragment {number}"


def _same(fragment: Any, mine: Any, theirs: Any) -> bool:
    if not isinstance(fragment, Fragment):
        return bool(mine == theirs)
    packed = (fragment.pack(fragment.settle(state)) for state in (mine, theirs))
    return all(one.same_as(other) for one, other in zip(*packed, strict=True))
