"""Band join: pairs of rows with equal keys whose times lie close together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.errors import DeclarationError, nearest
from evenflow.operators.expressions import result_types
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.join_index import (
    HASH,
    NUMBER,
    Index,
    expire,
    in_stream_order,
    indexed,
    insert,
    probe,
    within_time,
)
from evenflow.operators.kernel import in_order, keep, stack, take, times
from evenflow.operators.keys import KeyRange
from evenflow.operators.operator import HeadOperator, Schema, Step
from evenflow.operators.packing import Packed, Segments
from evenflow.operators.segments import append
from evenflow.operators.times import FINAL, START, later

MATCHED = ":matched"
SUFFIX = "_right"


@dataclass(frozen=True, slots=True, eq=False)
class JoinState:
    """Both sides' rows that may still find a partner; for a left join also the numbers of matched left rows."""

    left: Segments = ()
    right: Segments = ()
    matched: Segments = ()
    n_left: int = 0
    n_right: int = 0
    upto: int = START


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Matching rows, and the place of the later one among the step's rows of both sides."""

    left: pl.DataFrame
    right: pl.DataFrame
    later_place: Index
    earlier_number: Index


class Join(HeadOperator[JoinState]):
    """Rows match if their keys are equal, |left time − right time| ≤ ``within`` and ``where`` holds.

    A pair goes out with the later row, at its time and in its place; of several pairs of one row the one with the
    earliest partner comes first. A left row without a partner goes out just after its band has passed, with nulls.
    ``within=None`` keeps both sides for ever.

    >>> import evenflow as ef
    >>> net = ef.Network("doc")
    >>> orders = net.source("orders", {"id": pl.Int64})
    >>> pays = net.source("pays", {"id": pl.Int64, "sum": pl.Int64})
    >>> _ = orders.join(pays, on="id", within="10us", how="left").output("paid")
    >>> inputs = {"orders": pl.DataFrame({"tuple_time": [1, 2], "id": [7, 8]}),
    ...           "pays": pl.DataFrame({"tuple_time": [5], "id": [7], "sum": [30]})}
    >>> ef.fold(net, inputs)["paid"].select("tuple_time", "id", "sum").rows()
    [(5, 7, 30), (13, 8, None)]
    """

    state_type = JoinState

    def __init__(
        self,
        left_on: tuple[str, ...],
        right_on: tuple[str, ...],
        within_us: int | None,
        left_outer: bool = False,
        where: pl.Expr | None = None,
    ) -> None:
        self.left_on, self.right_on = left_on, right_on
        self.within_us = within_us
        self.left_outer = left_outer
        self.where = where
        self.keys = left_on

    def __repr__(self) -> str:
        on = [a if a == b else f"{a}={b}" for a, b in zip(self.left_on, self.right_on, strict=True)]
        within = "for ever" if self.within_us is None else f"within {self.within_us}us"
        return f"{'left ' if self.left_outer else ''}join on {', '.join(on)} {within}"

    @property
    def horizon(self) -> int | None:
        return self.within_us

    @property
    def blocking(self) -> bool:
        return True

    def table_keys(self, table: str) -> tuple[str, ...]:
        return self.right_on if table == "right" else self.left_on

    def schema(self, *inputs: Schema) -> Schema:
        left, right = (dict(pl.Schema(dict(schema))) for schema in inputs)
        for mine, theirs in zip(self.left_on, self.right_on, strict=True):
            self._check_key(mine, left, "left")
            self._check_key(theirs, right, "right")
            if left[mine] != right[theirs]:
                raise DeclarationError(
                    f"join: the key {mine!r} is {left[mine]} on the left and {theirs!r} is {right[theirs]} "
                    f"on the right; cast one of them with with_columns(...)"
                )
        shared = [mine for mine, theirs in zip(self.left_on, self.right_on, strict=True) if mine == theirs]
        self._left = {name: name for name in left}
        self._right = {name: f"{name}{SUFFIX}" if name in left else name for name in right if name not in shared}
        clash = next((new for new in self._right.values() if new in left), None)
        if clash is not None:
            raise DeclarationError(f"join: the right-hand column {clash!r} clashes; rename it with select(...)")
        output = {**left, **{new: right[name] for name, new in self._right.items()}}
        if self.where is not None:
            (dtype,) = result_types("join where", output, {"where": self.where}).values()
            if dtype != pl.Boolean:
                raise DeclarationError(f"join: where = {self.where} gives {dtype}, not a Boolean")
        self._empty = pl.DataFrame(schema={TUPLE_TIME: pl.Int64, **output})
        return output

    def _check_key(self, name: str, schema: Mapping[str, pl.DataType], side: str) -> None:
        if name not in schema:
            raise DeclarationError(f"join: the {side} side has no column {name!r}; {nearest(name, schema)}")

    def step(self, state: JoinState, rows: Sequence[pl.DataFrame], upto: int) -> Step[JoinState]:
        left, right = (in_order(part) for part in rows)
        left = left if self.left_outer else _without_null_keys(left, self.left_on)
        right = _without_null_keys(right, self.right_on)
        if not (left.height or right.height or self.left_outer):
            return Step(self._passed(state, upto), self._empty, upto)
        new_left = indexed(left, self.left_on, state.n_left)
        new_right = indexed(right, self.right_on, state.n_right)
        pairs = self._pairs(state, new_left, new_right)
        joined, matched_numbers = self._joined(pairs)
        out = joined
        matched = state.matched
        if self.left_outer:
            matched = _with_numbers(matched, matched_numbers)
            unmatched, matched = self._release(state, new_left, matched, upto)
            out = in_order(stack([unmatched, joined]))
        new_state = JoinState(
            self._keep(state.left, new_left, self._left_since(upto)),
            self._keep(state.right, new_right, self._since(upto)),
            matched,
            state.n_left + left.height,
            state.n_right + right.height,
            upto,
        )
        return Step(new_state, out, upto)

    def _since(self, upto: int) -> int:
        """Rows before this time find no more partners."""
        if self.within_us is None:
            return START if upto != FINAL else FINAL
        return later(upto, -self.within_us)

    def _left_since(self, upto: int) -> int:
        """Left rows before this time need not be kept; in a left join one goes out unmatched a moment later."""
        return later(self._since(upto), -1) if self.left_outer else self._since(upto)

    def _passed(self, state: JoinState, upto: int) -> JoinState:
        left, right = expire(state.left, self._left_since(upto)), expire(state.right, self._since(upto))
        return JoinState(left, right, state.matched, state.n_left, state.n_right, upto)

    def _keep(self, segments: Segments, new: pl.DataFrame, since: int) -> Segments:
        segments = expire(segments, since)
        still = times(new) >= since
        useful = new if still.all() else keep(new, pl.Series(still))
        if not useful.height:
            return segments
        return insert(segments, useful, None if self.within_us is None else self.within_us // 4)

    def _pairs(self, state: JoinState, left: pl.DataFrame, right: pl.DataFrame) -> _Pairs:
        """All pairs whose later row is new. At equal times the right row counts as the later one."""
        place_left, place_right = _places(left, right)
        parts: list[_Pairs] = []
        for segment in (*state.right, right):
            at, found = self._search(segment, left, earlier_us=1)
            if len(at):
                parts.append(_Pairs(take(left, at), take(segment, found), place_left[at], _numbers(segment)[found]))
        for segment in (*state.left, left):
            at, found = self._search(segment, right, earlier_us=0)
            if len(at):
                parts.append(_Pairs(take(segment, found), take(right, at), place_right[at], _numbers(segment)[found]))
        if not parts:
            parts = [_Pairs(left.clear(), right.clear(), np.empty(0, np.int64), np.empty(0, np.int64))]
        return _Pairs(
            stack([part.left for part in parts]),
            stack([part.right for part in parts]),
            np.concatenate([part.later_place for part in parts]),
            np.concatenate([part.earlier_number for part in parts]),
        )

    def _search(self, segment: pl.DataFrame, probes: pl.DataFrame, earlier_us: int) -> tuple[Index, Index]:
        """Positions of probes and of their earlier partners in a segment."""
        if not (probes.height and segment.height):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        stamps = times(probes)
        reach = stamps - self.within_us if self.within_us is not None else None
        newest = int(times(segment).max())
        if not within_time(segment, int(reach.min()) if reach is not None else None, int(stamps.max())):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        at = np.flatnonzero(reach <= newest) if reach is not None else np.arange(len(stamps))
        chosen = probes if len(at) == probes.height else take(probes, at)
        low = reach[at] if reach is not None else None
        matches = probe(segment, chosen, low, stamps[at] - earlier_us)
        return at[matches.probe], matches.found

    def _joined(self, pairs: _Pairs) -> tuple[pl.DataFrame, Index]:
        """The pairs that really match, in canonical order, and the numbers of their left rows."""
        if not len(pairs.later_place):
            return self._empty, np.empty(0, np.int64)
        earlier = pairs.earlier_number - pairs.earlier_number.min()
        order = np.argsort(pairs.later_place * (int(earlier.max()) + 1) + earlier)
        left, right = take(pairs.left, order), take(pairs.right, order)
        mask = pl.Series(np.ones(len(order), dtype=bool))
        for mine, theirs in zip(self.left_on, self.right_on, strict=True):
            mask &= left[mine] == right[theirs]
        stamps = pl.Series(TUPLE_TIME, np.maximum(times(left), times(right)))
        mine_columns = [left[name] for name in self._left]
        their_columns = [right[name].alias(new) for name, new in self._right.items()]
        out = pl.DataFrame([stamps, *mine_columns, *their_columns])
        if self.where is not None:
            mask &= out.select(self.where.fill_null(False).alias("where")).to_series()
        numbers = left[NUMBER]
        if not mask.all():
            out, numbers = keep(out, mask), numbers.filter(mask)
        return out, numbers.to_numpy()

    def _release(
        self, state: JoinState, new: pl.DataFrame, matched: Segments, upto: int
    ) -> tuple[pl.DataFrame, Segments]:
        """Left rows whose band has passed without a partner, and the matched numbers still needed."""
        before, after = self._left_since(upto), self._left_since(state.upto)
        parts = []
        for segment in (*state.left, new):
            stamps = times(segment)
            due = (stamps < before) & (stamps >= after)
            if due.any():
                parts.append(keep(segment, pl.Series(due)))
        if not parts:
            return self._empty, matched
        due_rows = in_stream_order(parts)
        numbers = due_rows[NUMBER].to_numpy()
        alone = np.ones(len(numbers), dtype=bool)
        for segment in matched:
            alone &= ~np.isin(numbers, segment[NUMBER].to_numpy())
        rows = keep(due_rows, pl.Series(alone))
        stamps_out = (rows[TUPLE_TIME] + (self.within_us or 0) + 1).alias(TUPLE_TIME)
        nulls = [pl.Series(name, [None], dtype=self._empty.schema[name]) for name in self._right.values()]
        right = [column.new_from_index(0, rows.height) for column in nulls]
        out = pl.DataFrame([stamps_out, *(rows[name] for name in self._left), *right])
        done = int(numbers.max())
        rest = [keep(segment, segment[NUMBER] > done) for segment in matched]
        return out, tuple(segment for segment in rest if segment.height)

    def pack(self, state: JoinState, key_range: KeyRange | None = None, since: JoinState | None = None) -> Packed:
        """The numbers of matched rows carry no key and go with every key range."""
        packed = super().pack(state, key_range, since)
        return Packed(packed.scalars, {**packed.tables, "matched": super().pack(state, None, since).tables["matched"]})

    def settle(self, state: JoinState) -> JoinState:
        return self._rebuilt([state])

    def merge(self, states: Sequence[JoinState]) -> JoinState:
        return self._rebuilt(states)

    def _rebuilt(self, states: Sequence[JoinState]) -> JoinState:
        """One segment a side, of what is still needed, numbered from 0 by time, key and old number."""
        upto = states[0].upto
        left = [
            self._flat(segment, state.matched, self._left_since(upto)) for state in states for segment in state.left
        ]
        right = [self._flat(segment, (), self._since(upto)) for state in states for segment in state.right]
        left_rows, matched = self._renumbered(left, self.left_on)
        right_rows, _ = self._renumbered(right, self.right_on)
        numbers = _with_numbers((), matched) if self.left_outer else ()
        n_left = left_rows[0].height if left_rows else 0
        n_right = right_rows[0].height if right_rows else 0
        return JoinState(left_rows, right_rows, numbers, n_left, n_right, upto)

    def _flat(self, segment: pl.DataFrame, matched: Segments, since: int) -> pl.DataFrame:
        known = np.concatenate([part[NUMBER].to_numpy() for part in matched]) if matched else np.empty(0, np.int64)
        flags = pl.Series(MATCHED, np.isin(segment[NUMBER].to_numpy(), known))
        return segment.with_columns(flags).filter(pl.col(TUPLE_TIME) >= since)

    def _renumbered(self, parts: Sequence[pl.DataFrame], keys: tuple[str, ...]) -> tuple[Segments, Index]:
        if not parts or not sum(part.height for part in parts):
            return (), np.empty(0, np.int64)
        rows = stack(parts).sort([TUPLE_TIME, *keys, NUMBER])
        matched = np.flatnonzero(rows[MATCHED].to_numpy())
        return (indexed(rows.drop(HASH, NUMBER, MATCHED), keys, 0),), matched


def _numbers(segment: pl.DataFrame) -> Index:
    return segment[NUMBER].to_numpy()


def _with_numbers(matched: Segments, numbers: NDArray[np.int64]) -> Segments:
    if not len(numbers):
        return matched
    return append(matched, pl.DataFrame({NUMBER: np.unique(numbers)}))


def _without_null_keys(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A null key equals nothing."""
    return rows.drop_nulls(list(keys)) if any(rows[key].null_count() for key in keys) else rows


def _places(left: pl.DataFrame, right: pl.DataFrame) -> tuple[Index, Index]:
    """Each new row's place in the one sequence that an SUnion makes of both sides."""
    size = left.height + right.height
    stamps = np.empty(size, dtype=np.int64)
    first_left = int(_numbers(left).min()) if left.height else 0
    first_right = int(_numbers(right).min()) if right.height else 0
    in_left, in_right = _numbers(left) - first_left, _numbers(right) - first_right + left.height
    stamps[in_left], stamps[in_right] = times(left), times(right)
    place = np.empty(size, dtype=np.int64)
    place[np.argsort(stamps, kind="stable")] = np.arange(size)
    return place[in_left], place[in_right]
