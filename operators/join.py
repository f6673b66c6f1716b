"""Band join: pairs of rows with equal keys whose times lie close together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenflow.operators.errors import DeclarationError, InvariantError, nearest
from evenflow.operators.expressions import result_types
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.join_index import (
    INDEX,
    NOTHING,
    NUMBER,
    Positions,
    Side,
    expire,
    insert,
    numbered,
    probe,
    sides,
    span,
)
from evenflow.operators.join_sweep import sweep
from evenflow.operators.kernel import evaluate, in_order, keep, stack, take, times
from evenflow.operators.keys import key_hash
from evenflow.operators.operator import ROW, Gives, HeadOperator, Schema, Step
from evenflow.operators.packing import Segments
from evenflow.operators.segments import count
from evenflow.operators.times import FINAL, START, later, readable

MATCHED = ":matched"
Found = tuple[Positions, Positions, Positions, Positions]
"""Pairs: positions of left and right rows, the later row's place, the earlier row's number."""
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
    """Candidates: positions in a frame of left rows and in one of right rows, and their canonical order's key."""

    left: pl.DataFrame
    right: pl.DataFrame
    merged: _Merged
    left_at: Positions
    right_at: Positions
    later_place: Positions
    earlier_number: Positions


class Join(HeadOperator[JoinState]):
    """Rows match if their keys are equal, |left time − right time| ≤ ``within`` and ``where`` holds.

    A pair goes out with the later row, at its time and in its place; of several pairs of one row the one with the
    earliest partner comes first. A left row without a partner goes out just after its band has passed, with nulls;
    several of one time by key.
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
    gives = Gives.PAIRS

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
        within = "for ever" if self.within_us is None else f"within {readable(self.within_us)}"
        return f"{'left ' if self.left_outer else ''}join on {', '.join(on)} {within}"

    @property
    def horizon(self) -> int | None:
        """A left row waits for ``within``, and may have found a partner from as long before it."""
        if self.within_us is None or not self.left_outer:
            return self.within_us
        return 2 * self.within_us + 1

    @property
    def blocking(self) -> bool:
        return True

    def table_keys(self, table: str) -> tuple[str, ...] | None:
        return {"left": self.left_on, "right": self.right_on}.get(table)

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
        state = replace(state, left=_filled(state.left), right=_filled(state.right))
        left, right = (in_order(part) for part in rows)
        left = left if self.left_outer else _without_null_keys(left, self.left_on)
        right = _without_null_keys(right, self.right_on)
        told = _Told(left, right)
        left, right = (part.drop(ROW, strict=False) for part in (left, right))
        if not (left.height or right.height or self.left_outer):
            return Step(self._passed(state, upto), told.alone(self._empty), upto)
        pairs = self._pairs(state, left, right) if left.height or right.height else None
        joined, matched_numbers, later_at = self._joined(pairs)
        joined = out = told.by(joined, later_at)
        matched = state.matched
        if self.left_outer:
            matched = _with_numbers(matched, matched_numbers)
            unmatched, matched = self._release(state, numbered(left, state.n_left), matched, upto)
            out = in_order(stack([told.alone(unmatched), joined]))
        new_state = JoinState(
            self._keep(state.left, left, self.left_on, state.n_left, self._left_since(upto)),
            self._keep(state.right, right, self.right_on, state.n_right, self._since(upto)),
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

    def _keep(self, segments: Segments, new: pl.DataFrame, keys: tuple[str, ...], number: int, since: int) -> Segments:
        """The segments that may still find partners, with the new rows among them."""
        segments = expire(segments, since)
        first = int(np.searchsorted(times(new), since)) if since != START else 0
        for side in sides(new.slice(first), keys, number + first):
            segments = insert(segments, side.segment(), None if self.within_us is None else self.within_us // 4)
        return segments

    def _pairs(self, state: JoinState, left: pl.DataFrame, right: pl.DataFrame) -> _Pairs | None:
        """All candidates whose later row is new. At equal times the right row counts as the later one."""
        merged = _Merged.of(left, right)
        lefts, rights = _Gathered(left, state.n_left), _Gathered(right, state.n_right)
        found = [self._new_pairs(state, left, right, merged)]
        for probes in self._probes(left, self.left_on, state.right, state.n_left):
            for target in map(Side.of, state.right):
                at, earlier = probe(target, probes, self.within_us, earlier_us=1)
                new_at = _numbers(probes.rows)[at] - state.n_left
                numbers = _numbers(target.rows)[earlier]
                found.append((new_at, rights.add(target, earlier), merged.left_place[new_at], numbers))
        for probes in self._probes(right, self.right_on, state.left, state.n_right):
            for target in map(Side.of, state.left):
                at, earlier = probe(target, probes, self.within_us, earlier_us=0)
                new_at = _numbers(probes.rows)[at] - state.n_right
                numbers = _numbers(target.rows)[earlier]
                found.append((lefts.add(target, earlier), new_at, merged.right_place[new_at], numbers))
        columns = [np.concatenate(part) for part in zip(*found, strict=True)]
        return _Pairs(lefts.frame(), rights.frame(), merged, *columns) if len(columns[0]) else None

    def _probes(self, rows: pl.DataFrame, keys: tuple[str, ...], targets: Segments, number: int) -> list[Side]:
        """New rows that may reach back into the kept segments: with a short band only the first of them."""
        if not targets:
            return []
        newest = max(span(target)[1] for target in targets)
        last = rows.height if self.within_us is None else np.searchsorted(times(rows), newest + self.within_us, "right")
        return sides(rows.slice(0, int(last)), keys, number)

    def _new_pairs(self, state: JoinState, left: pl.DataFrame, right: pl.DataFrame, merged: _Merged) -> Found:
        """Candidates that are both new."""
        if not (left.height and right.height):
            return NOTHING, NOTHING, NOTHING, NOTHING
        hashes = np.concatenate((key_hash(left, self.left_on), key_hash(right, self.right_on)))
        swept = sweep(hashes[merged.order], merged.stamps, merged.order < left.height, self.within_us)
        if swept is None:
            return self._searched_pairs(state, left, right, merged)
        earlier, later_ = merged.order[swept[0]], merged.order[swept[1]]
        left_at, right_at = np.minimum(earlier, later_), np.maximum(earlier, later_) - left.height
        numbers = np.where(later_ < left.height, right_at + state.n_right, left_at + state.n_left)
        return left_at, right_at, swept[1], numbers

    def _searched_pairs(self, state: JoinState, left: pl.DataFrame, right: pl.DataFrame, merged: _Merged) -> Found:
        """The same by searching for each row, where a row has many partners or a step spans a long time."""
        lefts, rights = sides(left, self.left_on, 0), sides(right, self.right_on, 0)
        found: list[Found] = [(NOTHING, NOTHING, NOTHING, NOTHING)]
        for mine in lefts:
            for theirs in rights:
                at, earlier = probe(theirs, mine, self.within_us, earlier_us=1)
                left_at, right_at = _numbers(mine.rows)[at], _numbers(theirs.rows)[earlier]
                found.append((left_at, right_at, merged.left_place[left_at], right_at + state.n_right))
                at, earlier = probe(mine, theirs, self.within_us, earlier_us=0)
                left_at, right_at = _numbers(mine.rows)[earlier], _numbers(theirs.rows)[at]
                found.append((left_at, right_at, merged.right_place[right_at], left_at + state.n_left))
        left_at, right_at, place, numbers = (np.concatenate(part) for part in zip(*found, strict=True))
        return left_at, right_at, place, numbers

    def _joined(self, pairs: _Pairs | None) -> tuple[pl.DataFrame, Positions, Positions]:
        """The pairs that really match, in canonical order, their left rows' numbers, and where their later rows are.

        The latter among the step's new rows, left ones first.
        """
        if pairs is None:
            return self._empty, NOTHING, NOTHING
        earlier = pairs.earlier_number - pairs.earlier_number.min()
        order = np.argsort(pairs.later_place * (int(earlier.max()) + 1) + earlier)
        left, right = take(pairs.left, pairs.left_at[order]), take(pairs.right, pairs.right_at[order])
        mask = pl.Series(np.ones(len(order), dtype=bool))
        for mine, theirs in zip(self.left_on, self.right_on, strict=True):
            mask &= left[mine] == right[theirs]
        stamps = pl.Series(TUPLE_TIME, np.maximum(times(left), times(right)))
        mine_columns = [left[name] for name in self._left]
        their_columns = [right[name].alias(new) for name, new in self._right.items()]
        out = pl.DataFrame([stamps, *mine_columns, *their_columns])
        if self.where is not None:
            mask &= evaluate(out, self.where.fill_null(False))
        numbers, later_at = left[NUMBER], pairs.merged.order[pairs.later_place[order]]
        if not mask.all():
            out, numbers, later_at = keep(out, mask), numbers.filter(mask), later_at[mask.to_numpy()]
        return out, numbers.to_numpy(), later_at

    def _release(
        self, state: JoinState, new: pl.DataFrame, matched: Segments, upto: int
    ) -> tuple[pl.DataFrame, Segments]:
        """Left rows whose band has passed without a partner, and the matched numbers still needed."""
        before, after = self._left_since(upto), self._left_since(state.upto)
        parts = []
        for segment in (*state.left, new):
            if not segment.height or span(segment)[0] >= before or span(segment)[1] < after:
                continue
            stamps = times(segment)
            due = (stamps < before) & (stamps >= after)
            if due.any():
                parts.append(keep(segment[[NUMBER, TUPLE_TIME, *self._left]], pl.Series(due)))
        if not parts:
            return self._empty, matched
        due_rows = stack(parts).sort([TUPLE_TIME, *self.left_on, NUMBER])
        numbers = due_rows[NUMBER].to_numpy()
        alone = np.ones(len(numbers), dtype=bool)
        for segment in matched:
            alone &= ~_contains(_numbers(segment), numbers)
        rows = keep(due_rows, pl.Series(alone))
        stamps_out = (rows[TUPLE_TIME] + (self.within_us or 0) + 1).alias(TUPLE_TIME)
        nulls = [pl.Series(name, [None], dtype=self._empty.schema[name]) for name in self._right.values()]
        right = [column.new_from_index(0, rows.height) for column in nulls]
        out = pl.DataFrame([stamps_out, *(rows[name] for name in self._left), *right])
        done = int(numbers.max())
        rest = [segment.slice(int(np.searchsorted(_numbers(segment), done, "right"))) for segment in matched]
        return out, tuple(segment for segment in rest if segment.height)

    def settle(self, state: JoinState) -> JoinState:
        return self._rebuilt([state])

    def merge(self, states: Sequence[JoinState]) -> JoinState:
        return self._rebuilt(states)

    def _rebuilt(self, states: Sequence[JoinState]) -> JoinState:
        """One segment a side, of what is still needed, numbered from 0 by time, key and old number."""
        upto = states[0].upto
        if any(state.upto != upto for state in states):
            raise InvariantError("join: the states to merge have not folded up to the same time")
        left = [
            self._flat(segment, state.matched, self._left_since(upto)) for state in states for segment in state.left
        ]
        right = [self._flat(segment, (), self._since(upto)) for state in states for segment in state.right]
        left_rows, matched = self._renumbered(left, self.left_on)
        right_rows, _ = self._renumbered(right, self.right_on)
        numbers = _with_numbers((), matched) if self.left_outer else ()
        return JoinState(left_rows, right_rows, numbers, count(left_rows), count(right_rows), upto)

    def _flat(self, segment: pl.DataFrame, matched: Segments, since: int) -> pl.DataFrame:
        known = np.sort(np.concatenate([NOTHING, *map(_numbers, matched)]))
        flags = pl.Series(MATCHED, _contains(known, _numbers(segment)))
        return segment.with_columns(flags).filter(pl.col(TUPLE_TIME) >= since)

    def _renumbered(self, parts: Sequence[pl.DataFrame], keys: tuple[str, ...]) -> tuple[Segments, Positions]:
        if not parts or not sum(part.height for part in parts):
            return (), NOTHING
        rows = stack(parts).sort([TUPLE_TIME, *keys, NUMBER])
        matched = np.flatnonzero(rows[MATCHED].to_numpy())
        new = sides(rows.drop(INDEX, NUMBER, MATCHED), keys, 0)
        return tuple(side.segment().sort(INDEX, NUMBER) for side in new), matched


@dataclass(frozen=True, slots=True, eq=False)
class _Merged:
    """The one sequence that an SUnion makes of both sides' new rows: left rows count from 0, right ones follow."""

    order: Positions
    stamps: Positions
    left_place: Positions
    right_place: Positions

    @classmethod
    def of(cls, left: pl.DataFrame, right: pl.DataFrame) -> _Merged:
        stamps = np.concatenate((times(left), times(right)))
        order = np.argsort(stamps, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return cls(order, stamps[order], place[: left.height], place[left.height :])


class _Told:
    """The ROW of a step's new rows, where they have one: pairs get their later row's, a left row alone gets -1."""

    def __init__(self, left: pl.DataFrame, right: pl.DataFrame) -> None:
        self._rows: Positions | None = None
        if ROW in left.columns:
            self._rows = np.concatenate((left[ROW].to_numpy(), right[ROW].to_numpy()))

    def by(self, out: pl.DataFrame, at: Positions) -> pl.DataFrame:
        return out if self._rows is None else out.with_columns(pl.Series(ROW, self._rows[at], dtype=pl.Int64))

    def alone(self, out: pl.DataFrame) -> pl.DataFrame:
        return out if self._rows is None else out.with_columns(pl.lit(-1, dtype=pl.Int64).alias(ROW))


class _Gathered:
    """A step's new rows of one side and, behind them, those found in old segments: one frame to take pairs from."""

    def __init__(self, new: pl.DataFrame, number: int) -> None:
        self._parts = [numbered(new, number)]
        self._height = new.height

    def add(self, side: Side, at: Positions) -> Positions:
        """Rows of an old segment; gives where they are in the frame."""
        self._parts.append(take(side.rows, at).drop(INDEX))
        self._height += len(at)
        return np.arange(self._height - len(at), self._height)

    def frame(self) -> pl.DataFrame:
        return stack(self._parts)


def _numbers(rows: pl.DataFrame) -> Positions:
    return rows[NUMBER].to_numpy()


def _filled(segments: Segments) -> Segments:
    """Without the empty segments that unpacking a key range may leave."""
    return segments if all(map(len, segments)) else tuple(segment for segment in segments if segment.height)


def _with_numbers(matched: Segments, numbers: Positions) -> Segments:
    """Sorted numbers in few segments."""
    if not len(numbers):
        return matched
    fresh, head = np.unique(numbers), list(matched)
    while head and head[-1].height <= 2 * len(fresh):
        fresh = np.union1d(_numbers(head.pop()), fresh)
    return (*head, pl.DataFrame({NUMBER: fresh}))


def _contains(known: Positions, numbers: Positions) -> NDArray[np.bool_]:
    """Which numbers are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(len(numbers), dtype=bool)
    at = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == numbers
    return found


def _without_null_keys(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A null key equals nothing."""
    return rows.drop_nulls(list(keys)) if any(rows[key].null_count() for key in keys) else rows
