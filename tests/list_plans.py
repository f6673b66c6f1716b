"""Operators and plans over plain lists of tuples, so that campaigns run the protocol several times faster.

They follow the rules of real ones: pure steps, immutable states, rows below the boundary they come with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenflow.engine.simulator.layout import Layout
from evenflow.operators.kernel import ListKernel
from evenflow.operators.times import FINAL, START, floor, later
from evenflow.reconcile.heads import Heads

Row = tuple[Any, ...]
Rows = list[Row]
KERNEL = ListKernel()


class Pass:
    """Several inputs as one: by time, input, position."""

    horizon: int | None = 0
    blocking = False

    def initial(self) -> Any:
        return ()

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Rows, int]:
        return state, KERNEL.merge(rows), upto


class Filter(Pass):
    def __init__(self, modulus: int) -> None:
        self.modulus = modulus

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Rows, int]:
        return state, [row for row in KERNEL.merge(rows) if row[2] % self.modulus], upto


class Window(Pass):
    """Counts and sums by key over windows; state is the rows of open windows."""

    def __init__(self, size: int, every: int) -> None:
        self.size, self.every = size, every

    @property
    def horizon(self) -> int:  # type: ignore[override]
        return self.size

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Rows, int]:
        since, kept = state or (START, ())
        rows_all = [*kept, *KERNEL.merge(rows)]
        groups: dict[tuple[int, Any], list[Any]] = {}
        for row in rows_all:
            last = floor(row[0], self.every)
            for start in range(last, last - self.size, -self.every):
                end = start + self.size
                if start <= row[0] and since < end <= upto:
                    groups.setdefault((end, row[1]), []).append(row[2])
        out = [(end, key, sum(values), len(values)) for (end, key), values in sorted(groups.items())]
        open_rows = tuple(row for row in rows_all if floor(row[0], self.every) + self.size > upto)
        boundary = FINAL if upto == FINAL else floor(upto - self.size, self.every) + self.every + self.size
        return (upto, open_rows), out, boundary


class Running(Pass):
    """One row out for each row in, with the count and sum so far: a state that no stretch of input rebuilds."""

    horizon = None

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Rows, int]:
        sums = dict(state)
        out = []
        for row in KERNEL.merge(rows):
            n, total = sums.get(row[1], (0, 0))
            sums[row[1]] = (n + 1, total + row[2])
            out.append((row[0], row[1], total + row[2], n + 1))
        return tuple(sums.items()), out, upto


class Distinct(Pass):
    """The first row of a key within a while."""

    def __init__(self, within: int) -> None:
        self.horizon = within

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Rows, int]:
        seen = dict(state)
        out = []
        for row in KERNEL.merge(rows):
            if later(seen.get(row[1], START), self.horizon or 0) < row[0] or row[1] not in seen:
                out.append(row)
            seen[row[1]] = row[0]
        return tuple((k, t) for k, t in seen.items() if later(t, self.horizon or 0) >= upto), out, upto


class Join(Pass):
    """Rows of equal key at most ``within`` apart; without one side it blocks."""

    blocking = True

    def __init__(self, within: int) -> None:
        self.horizon = within

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Rows, int]:
        kept = [list(side) for side in state] if state else [[], []]
        out = []
        tagged = sorted(((row[0], side, i, row) for side in (0, 1) for i, row in enumerate(rows[side])))
        for time, side, _, row in tagged:
            for other in kept[1 - side]:
                if other[1] == row[1] and time - other[0] <= (self.horizon or 0):
                    left, right = (row, other) if side == 0 else (other, row)
                    out.append((time, row[1], left[2] * 1000 + right[2]))
            kept[side].append(row)
        return tuple(tuple(r for r in side if later(r[0], self.horizon or 0) >= upto) for side in kept), out, upto


@dataclass(frozen=True, eq=False)
class ListFragment:
    """One operator behind an SUnion."""

    inputs: tuple[int, ...]
    operator: Pass
    leaf: int

    @property
    def leaves(self) -> tuple[int, ...]:
        return (self.leaf,)

    @property
    def horizon(self) -> int | None:
        return self.operator.horizon

    @property
    def blocking(self) -> bool:
        return self.operator.blocking

    def initial(self) -> Any:
        return self.operator.initial()

    def step(self, state: Any, rows: Sequence[Rows], upto: int) -> tuple[Any, Mapping[int, tuple[Rows, int]]]:
        state, out, boundary = self.operator.step(state, rows, upto)
        return state, {self.leaf: (out, boundary)}


@dataclass(eq=False)
class ListPlan:
    """Built operator by operator; streams are numbered over all plans of a layout."""

    names: dict[int, str]
    inputs: tuple[int, ...] = ()
    fragments: list[ListFragment] = field(default_factory=list)
    outputs: dict[str, int] = field(default_factory=dict)

    def add(self, operator: Pass, *inputs: int, name: str = "") -> int:
        number = max(self.names) + 1
        self.names[number] = name or f"stream{number}"
        made = {fragment.leaf for fragment in self.fragments}
        self.inputs += tuple(i for i in dict.fromkeys(inputs) if i not in made and i not in self.inputs)
        self.fragments.append(ListFragment(inputs, operator, number))
        return number

    def empty(self, stream: int) -> Rows:
        return []


def fold_layout(layout: Layout[Any]) -> dict[str, Any]:
    """The stable rows of every output, without failures and in one go."""
    kernel = layout.kernel
    rows: dict[int, Any] = dict(layout.sources.values())
    todo = dict(layout.plans)
    found: dict[str, Any] = {}
    while todo:
        name = next(n for n, plan in todo.items() if all(i in rows for i in plan.inputs))
        plan = todo.pop(name)
        heads: Heads[Any] = Heads(plan, layout.settings.bucket_us, kernel)
        for number in plan.inputs:
            heads.insert(number, rows[number], FINAL)
        for output in heads.advance().outputs:
            rows[plan.outputs[output.name]] = output.rows
            if layout.outputs.get(output.name) == name:
                found[output.name] = output.rows
    return found
