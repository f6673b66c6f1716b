"""The tentative head of one fragment: a state, how far it has folded, and which inputs its rows lack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evenflow.operators.times import START, later


@dataclass(slots=True)
class TentativeHead:
    """Starts from the stable head when time runs out and folds what there is."""

    state: Any
    cursor: int
    based_on: int
    """The stable cursor at which it began."""
    lacks: dict[str, int] = field(default_factory=dict)
    """The missing inputs, each with the time up to which its rows were missing in what was folded."""

    def missing(self, upto: int, now_missing: frozenset[str], horizon_us: int | None) -> frozenset[str]:
        """The inputs that rows of a step to ``upto`` lack: those missing now, or so lately that the state feels it."""
        felt = START if horizon_us is None else later(self.cursor, -horizon_us)
        self.lacks = {name: until for name, until in self.lacks.items() if until > felt}
        self.lacks |= dict.fromkeys(now_missing, upto)
        return frozenset(self.lacks)


class Gaps:
    """For each input of a fragment, which stretches of it lack which original inputs."""

    def __init__(self, places: int) -> None:
        self._stretches: list[list[tuple[int, frozenset[str]]]] = [[] for _ in range(places)]

    def record(self, place: int, upto: int, missing: frozenset[str]) -> None:
        """The tentative rows before ``upto``, from where the last stretch ended, lack these."""
        stretches = self._stretches[place]
        if stretches and stretches[-1][1] == missing:
            stretches.pop()
        stretches.append((upto, missing))

    def supersede(self, place: int, boundary: int) -> None:
        stretches = self._stretches[place]
        while stretches and stretches[0][0] <= boundary:
            stretches.pop(0)

    def clear(self, place: int) -> None:
        self._stretches[place].clear()

    def between(self, place: int, since: int, upto: int) -> frozenset[str]:
        """What the rows from ``since`` to ``upto`` lack."""
        found: frozenset[str] = frozenset()
        begin = START
        for end, missing in self._stretches[place]:
            if end > since and begin < upto:
                found |= missing
            begin = end
        return found
