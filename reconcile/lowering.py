"""How fragments are spread over many workers: passes, cut where the key changes.

A pass is a part of a fragment that a task can fold over a part of the rows without knowing the others: rows are
spread by the key of its operators, or over stretches of time where every operator looks at each row by itself, or not
at all where an operator must see everything. What leaves a pass is either read by a later one, spread anew, or is a
leaf. Nothing here knows where tasks run or where rows lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from evenflow.operators.fragment import FROM_SUNION, Fragment, Stage
from evenflow.operators.join import Join
from evenflow.operators.operator import Gives

GIVEN = -1
"""The number of the pass that input comes from: none, it is given."""


class Spread(Enum):
    """What decides which task of a pass gets a row."""

    KEYS = "keys"
    TIME = "time"
    ONE = "one"


@dataclass(frozen=True, slots=True)
class Read:
    """A stream that a pass reads: from which pass, and the columns that spread it."""

    stream: int
    made_by: int
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Write:
    """A stream that leaves a pass; ``to`` is the pass that reads it, None for a leaf.

    ``in_order``: its rows need no order of their own, for those of one task stand together, one task after the other.
    ``told``: order columns go along, to merge by or to be handed on.
    """

    stream: int
    to: int | None
    in_order: bool
    told: bool
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """Stages that one task folds over one part of the rows."""

    number: int
    spread: Spread
    reads: tuple[Read, ...]
    stages: tuple[Stage, ...]
    writes: tuple[Write, ...]
    placed: bool
    """Whether the order of what it reads must be told by columns, for something that it writes follows it."""

    @property
    def has_head(self) -> bool:
        return self.stages[0].reads == FROM_SUNION


@dataclass(slots=True, eq=False)
class _Draft:
    number: int
    reads: tuple[tuple[int, int], ...]
    """(stream, pass that makes it)"""
    spread: Spread | None
    """None: not decided, any will do."""
    keys: tuple[str, ...] = ()
    """The columns, as the first stage gives them, that spread its rows."""
    stages: list[Stage] = field(default_factory=list)

    def traced(self, stream: int, columns: Sequence[str]) -> tuple[str, ...] | None:
        """The columns of the pass's first stream that come out unchanged as these columns of a later one."""
        made = {stage.stream: stage for stage in self.stages}
        found = []
        for column in columns:
            at, name = stream, column
            while at in made and made[at] is not self.stages[0]:
                origin = made[at].operator.origin(name)
                if origin is None:
                    return None
                at, name = made[at].reads, origin
            if at in made and self.stages[0].reads != FROM_SUNION:
                origin = made[at].operator.origin(name)
                if origin is None:
                    return None
                name = origin
            found.append(name)
        return tuple(found)

    def follows_input(self, stream: int) -> bool:
        """Whether a stream's rows are ordered as what the pass reads."""
        made = {stage.stream: stage for stage in self.stages}
        while stream in made:
            stage = made[stream]
            if not _mergeable(stage) or stage.operator.gives == Gives.GROUPS:
                return False
            if stage.reads == FROM_SUNION:
                return True
            stream = stage.reads
        return True


def _mergeable(stage: Stage) -> bool:
    """Whether its outputs on partitions can be merged. Of users' own operators nobody knows."""
    return stage.promised is None and stage.operator.gives is not None


def lower(fragments: Sequence[Fragment], leaves: Sequence[int]) -> list[Pass]:
    """The passes of these fragments, each after those it reads; ``leaves`` are the streams that are wanted."""
    drafts: list[_Draft] = []
    made_by: dict[int, int] = {}
    homes: list[tuple[Fragment, dict[int, _Draft]]] = []
    for fragment in fragments:
        home: dict[int, _Draft] = {}
        for stage in fragment.stages:
            home[stage.stream] = _place(stage, fragment, home, drafts, made_by)
        made_by |= {leaf: home[leaf].number for leaf in fragment.leaves if leaf not in fragment.inputs}
        homes.append((fragment, home))
    for draft in drafts:
        draft.spread = draft.spread or Spread.TIME
    outgoing = {(home[leaf].number, leaf) for f, home in homes for leaf in f.leaves if leaf in leaves}
    return [_finished(draft, drafts, outgoing) for draft in drafts]


def _place(
    stage: Stage, fragment: Fragment, home: dict[int, _Draft], drafts: list[_Draft], made_by: dict[int, int]
) -> _Draft:
    """The pass of a stage: the one it reads from, if that is spread as it must be, or a new one."""

    def new(reads: Sequence[tuple[int, int]], spread: Spread | None, keys: tuple[str, ...]) -> _Draft:
        drafts.append(_Draft(len(drafts), tuple(reads), spread, keys, [stage]))
        return drafts[-1]

    operator = stage.operator
    if stage.reads == FROM_SUNION:
        reads = [(stream, made_by.get(stream, GIVEN)) for stream in fragment.inputs]
        if not _mergeable(stage) or not (operator.by_row or operator.keys):
            return new(reads, Spread.ONE, ())
        return new(reads, None, ()) if operator.by_row else new(reads, Spread.KEYS, operator.keys)
    draft = home[stage.reads]
    keys = operator.keys if _mergeable(stage) else ()
    if not (operator.by_row and _mergeable(stage)):
        origin = draft.traced(stage.reads, keys) if keys else None
        if origin is not None and draft.spread is None:
            draft.spread, draft.keys = Spread.KEYS, origin
        fits = draft.keys == origin if draft.spread == Spread.KEYS else draft.spread == Spread.ONE
        if not fits:
            return new([(stage.reads, draft.number)], Spread.KEYS if keys else Spread.ONE, keys)
    draft.stages.append(stage)
    return draft


def _finished(draft: _Draft, drafts: Sequence[_Draft], outgoing: set[tuple[int, int]]) -> Pass:
    spread = draft.spread or Spread.TIME
    reads = tuple(Read(stream, made_by, keys) for (stream, made_by), keys in _read_keys(draft))
    readers = [
        (stream, keys, other)
        for other in drafts
        for (stream, made_by), keys in _read_keys(other)
        if made_by == draft.number
    ]
    in_order = spread != Spread.KEYS
    told = {other.number: not in_order or _placed(other, outgoing, drafts) for _, _, other in readers}
    writes = [Write(stream, other.number, in_order, told[other.number], keys) for stream, keys, other in readers]
    streams = {stage.stream for stage in draft.stages}
    writes += [
        Write(s, None, in_order, not in_order) for n, s in sorted(outgoing) if n == draft.number and s in streams
    ]
    return Pass(draft.number, spread, reads, tuple(draft.stages), tuple(writes), _placed(draft, outgoing, drafts))


def _read_keys(draft: _Draft) -> Iterator[tuple[tuple[int, int], tuple[str, ...]]]:
    """What a pass reads, each with the columns that spread it there."""
    head = draft.stages[0].operator
    for place, read in enumerate(draft.reads):
        keys = draft.keys if draft.spread == Spread.KEYS else ()
        if isinstance(head, Join) and keys:
            keys = (head.left_on, head.right_on)[place]
        yield read, keys


def _placed(draft: _Draft, outgoing: set[tuple[int, int]], drafts: Sequence[_Draft]) -> bool:
    """Whether something that a pass writes, spread by key, is ordered as what it reads."""
    if draft.spread != Spread.KEYS:
        return False
    written = {stream for number, stream in outgoing if number == draft.number}
    written |= {stream for other in drafts for stream, made_by in other.reads if made_by == draft.number}
    return any(draft.follows_input(stream) for stream in written)
