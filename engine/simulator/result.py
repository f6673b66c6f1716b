"""What a simulated run gave, as frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from evenflow.engine.linear import Stable, Tentative
from evenflow.engine.simulator.run import Run
from evenflow.engine.simulator.seen import n_tentative, new_rows
from evenflow.operators.errors import InputError, nearest
from evenflow.operators.items import TupleType, with_header
from evenflow.operators.kernel import stack


class Result:
    """A run: what clients saw, states, reconciliations, and broken invariants."""

    def __init__(
        self,
        run: Run[pl.DataFrame],
        violations: list[str],
        expected: Mapping[str, pl.DataFrame],
        rejected: Mapping[str, pl.DataFrame],
    ) -> None:
        self.run = run
        self.violations = violations
        """Broken invariants in words; empty when all hold."""
        self.expected = dict(expected)
        self.rejected = dict(rejected)

    def stable(self, output: str) -> pl.DataFrame:
        """The stable rows that the client got, in order."""
        parts = [item.item.rows for _, item in self._shown(output) if isinstance(item.item, Stable)]
        return with_header(stack([self.expected[output].clear(), *parts]), 1, TupleType.INSERTION)

    def items(self, output: str) -> list[tuple[int, Any]]:
        """Everything that the client saw, as (virtual time, item)."""
        return [(time_us, _dressed(show.item)) for time_us, show in self._shown(output)]

    def n_tentative(self, output: str) -> int:
        """How many tentative rows the client received."""
        self._shown(output)
        return n_tentative(self.run, output)

    def delay_new(self, output: str) -> int:
        """The largest delay of a new row in microseconds; 0 when there is none."""
        self._shown(output)
        return max((new.delay_us for new in new_rows(self.run, output)), default=0)

    def states(self) -> pl.DataFrame:
        """Every change of a node's state: time_us, node, replica, state."""
        begin = [(self.run.start_us, who, "STABLE") for who in self.run.nodes]
        changes = [(time, who, change.state) for time, who, change in self.run.states if change.output is None]
        rows = [(time, *_named(who), str(state)) for time, who, state in [*begin, *changes]]
        return pl.DataFrame(rows, {"time_us": pl.Int64, **_WHO, "state": pl.String}, orient="row")

    def output_states(self) -> pl.DataFrame:
        """Every change of an output's state; ``blocked``: an operator waits for an input that is missing altogether."""
        rows = [
            (time, *_named(who), change.output, str(change.state), change.blocked)
            for time, who, change in self.run.states
            if change.output is not None
        ]
        schema = {"time_us": pl.Int64, **_WHO, "output": pl.String, "state": pl.String, "blocked": pl.Boolean}
        return pl.DataFrame(rows, schema, orient="row")

    @property
    def controls(self) -> pl.DataFrame:
        """Control items and conditions: UP_FAILURE, REC_REQUEST, UNDO_START, REC_DONE, BLOCKED, SKEW, OVERLOADED."""
        rows = [(time, *_named(who), c.kind, c.where.partition(":")[2], c.detail) for time, who, c in self.run.controls]
        schema = {"time_us": pl.Int64, **_WHO, "kind": pl.String, "stream": pl.String, "detail": pl.String}
        return pl.DataFrame(rows, schema, orient="row")

    @property
    def redos(self) -> pl.DataFrame:
        """Every reconciliation: how it was done, where, and how many rows were folded for it."""
        rows = [(time, *_named(who), r.method, r.executor, r.rows, r.fell_back) for time, who, r in self.run.reconciled]
        schema = {"method": pl.String, "executor": pl.String, "rows": pl.Int64, "fell_back": pl.Boolean}
        return pl.DataFrame(rows, {"time_us": pl.Int64, **_WHO, **schema}, orient="row")

    def _shown(self, output: str) -> list[tuple[int, Any]]:
        if output not in self.run.shown:
            raise InputError(f"there is no output {output!r}; {nearest(output, self.run.shown)}")
        return self.run.shown[output]


_WHO = {"node": pl.String, "replica": pl.Int64}


def _named(who: str) -> tuple[str, int]:
    node, _, replica = who.partition("/")
    return node, int(replica or 1)


def _dressed(item: Any) -> Any:
    """Rows with the header columns that a user sees."""
    if isinstance(item, Stable):
        return Stable(with_header(item.rows, item.first_id, TupleType.INSERTION), item.first_id)
    if isinstance(item, Tentative):
        return Tentative(with_header(item.rows, item.first_id, TupleType.TENTATIVE), item.missing, item.first_id)
    return item
