"""The states of a node, an output and a fragment (Borealis §3.1, figure 5)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class State(StrEnum):
    """How consistent what comes out is."""

    STABLE = "STABLE"
    UP_FAILURE = "UP_FAILURE"
    STABILIZATION = "STABILIZATION"


_SEVERITY = {State.STABLE: 0, State.STABILIZATION: 1, State.UP_FAILURE: 2}


def worst(states: Iterable[State]) -> State:
    """The state of something that depends on all of these.

    >>> worst([State.STABLE, State.UP_FAILURE, State.STABILIZATION])
    <State.UP_FAILURE: 'UP_FAILURE'>
    """
    return max(states, key=_SEVERITY.__getitem__, default=State.STABLE)
