"""Distinct: drop a row if an equal one came a short while before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from evenflow.operators.grouping import Groups
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.kernel import keep, stack, take, times
from evenflow.operators.lookup import split_touched
from evenflow.operators.operator import Gives, Operator, Schema, Step
from evenflow.operators.packing import Segments
from evenflow.operators.times import FINAL, START, later, readable


@dataclass(frozen=True, slots=True, eq=False)
class DistinctState:
    """``seen``: each key's last time, oldest first; keys last seen before ``since`` count no more."""

    seen: Segments = ()
    since: int = START


class Distinct(Operator[DistinctState]):
    """A row goes on unless a row with the same ``on`` values came at most ``within`` before it.

    Dropped rows count as seen too: a key goes on again only after a silence. So the last ``within`` of input is all
    that the state depends on, and a restarted replica rebuilds it.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> alarms = net.source("alarms", {"code": pl.Int64})
    >>> _ = alarms.distinct("code", within="5us").output("fresh")
    >>> rows = pl.DataFrame({"tuple_time": [0, 5, 11], "code": [7, 7, 7]})
    >>> ef.fold(net, {"alarms": rows})["fresh"]["tuple_time"].to_list()
    [0, 11]
    """

    state_type = DistinctState
    gives = Gives.SOME

    def __init__(self, on: tuple[str, ...], within_us: int) -> None:
        self.keys = on
        self.within_us = within_us

    def __repr__(self) -> str:
        return f"distinct({', '.join(self.keys)}, within={readable(self.within_us)})"

    @property
    def horizon(self) -> int | None:
        return self.within_us

    def origin(self, column: str) -> str | None:
        return column

    def schema(self, inputs: Schema) -> Schema:
        return inputs

    def step(self, state: DistinctState, rows: pl.DataFrame, upto: int) -> Step[DistinctState]:
        since = FINAL if upto == FINAL else max(state.since, later(upto, -self.within_us))
        if not rows.height:
            return Step(self._forget(replace(state, since=since)), rows, upto)
        fresh = rows[[TUPLE_TIME, *self.keys]]
        mine, others = split_touched(state.seen, fresh, self.keys)
        known = stack([*mine, fresh])
        groups = Groups.by([known[key] for key in self.keys], known.height)
        stamps = times(known)
        order = np.argsort(groups.codes, kind="stable")
        first = np.diff(groups.codes[order], prepend=-1) != 0
        quiet = np.diff(stamps[order], prepend=stamps[order][0]) > self.within_us
        passes = np.empty(known.height, dtype=bool)
        passes[order] = first | quiet
        mask = pl.Series(passes[known.height - rows.height :])
        seen = stack([*others, take(known, np.sort(groups.last()))])
        state = self._forget(DistinctState((seen,), since))
        return Step(state, rows if mask.all() else keep(rows, mask), upto)

    def _forget(self, state: DistinctState) -> DistinctState:
        """Leave out keys that can hold back no more rows. ``seen`` is ordered by time, so that is a slice."""
        if not state.seen:
            return state
        seen = state.seen[0]
        at = int(np.searchsorted(times(seen), state.since))
        kept = seen.slice(at) if at else seen
        return replace(state, seen=(kept,) if kept.height else ())

    def settle(self, state: DistinctState) -> DistinctState:
        return replace(state, seen=tuple(part.sort([TUPLE_TIME, *self.keys]) for part in state.seen))
