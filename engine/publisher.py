"""A publisher: the producer's end of one stream. It keeps the log of both lanes and serves subscribers from it.

Stable items are kept until every consumer has acknowledged them. Tentative items are kept as long as the stable
boundary has not passed them, so that a consumer that subscribes late sees what others see.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from evenflow.engine.messages import (
    BOTH,
    Ack,
    Effect,
    Heartbeat,
    Lanes,
    Message,
    Send,
    StreamView,
    Subscribe,
    Unsubscribe,
    on_tentative_lane,
)
from evenflow.engine.snapshot import OutputSnapshot
from evenflow.operators.items import Boundary, Data, Item, RecDone
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import FINAL, START
from evenflow.reconcile.state import State

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Replay:
    """How a replay is cut: rows in a message, log entries in a message, and rows sent that were not asked for."""

    rows_max: int = 8_192
    entries_max: int = 10
    overlap: int = 0
    silent_us: int = 3_000_000
    """A replica that was not heard of for so long keeps no rows here, if another one of its node lives."""


@dataclass(slots=True)
class _Session:
    number: int
    lanes: Lanes = BOTH
    sent: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    """Messages on the stable and on the tentative lane."""
    sent_us: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    replay_until: int = 0
    """The last stable id of the replay that the session began with; 0: it began with none."""


class Publisher(Generic[R]):
    """One stream's log and its subscribers, each known by its address."""

    def __init__(
        self, stream: str, empty: R, kernel: Kernel[R], consumers: Collection[str], replay: Replay | None = None
    ) -> None:
        self.stream = stream
        self._empty = empty
        self._kernel = kernel
        self._replay = replay or Replay()
        self._log: deque[Data[R]] = deque()
        self._tentative: deque[Data[R]] = deque()
        self._last = Boundary(START)
        self._first_id = 1
        """The oldest stable row in the log."""
        self._sessions: dict[str, _Session] = {}
        self._acked = dict.fromkeys(consumers, 1)
        self._heard_us: dict[str, int] = {}

    @property
    def last_id(self) -> int:
        return self._last.last_id

    @property
    def kept_rows(self) -> int:
        return sum(self._kernel.count(item.rows) for lane in (self._log, self._tentative) for item in lane)

    def publish(self, item: Item[R], now_us: int) -> Iterator[Effect]:
        """Log an item and send it to every subscriber."""
        if isinstance(item, Data) and item.stable:
            if self._kernel.count(item.rows):
                self._log.append(item)
            self._last = item.boundary
            while self._tentative and self._tentative[0].boundary.time <= item.boundary.time:
                self._tentative.popleft()
        elif isinstance(item, Data):
            self._tentative.append(item)
        elif isinstance(item, RecDone):
            while self._tentative and self._tentative[0].boundary.time <= item.upto:
                self._tentative.popleft()
        tentative = on_tentative_lane(item)
        for consumer, session in self._sessions.items():
            if session.lanes.tentative if tentative else session.lanes.stable:
                yield self._send(consumer, item, now_us)

    def view(self, state: State) -> StreamView:
        """Where this replica stands, for consumers that compare it with others."""
        stable = FINAL if self._last.time == FINAL else self._last.evidence
        reached = self._tentative[-1].boundary.evidence if self._tentative else START
        return StreamView(state, stable, max(stable, reached), self._first_id)

    def snapshot(self, produced: int) -> OutputSnapshot[R]:
        return OutputSnapshot(produced, tuple(self._log), self._last, self._first_id)

    def restore(self, taken: OutputSnapshot[R]) -> None:
        """Go on with another one's log."""
        self._log, self._last, self._first_id = deque(taken.log), taken.last, taken.first_id

    def forget(self) -> None:
        """Start anew: nobody is subscribed."""
        self._sessions.clear()

    def heard(self, consumer: str, now_us: int) -> None:
        """A consumer lives."""
        self._heard_us[consumer] = now_us

    def subscribe(self, consumer: str, asked: Subscribe, now_us: int) -> Iterator[Effect]:
        """Begin a session with all that the consumer does not have."""
        current = self._sessions.get(consumer)
        if (current is not None and asked.session <= current.number) or asked.next_id < self._first_id:
            return
        last_id = self._last.last_id
        replay_until = last_id if asked.next_id <= last_id else 0
        self._sessions[consumer] = _Session(asked.session, asked.lanes, replay_until=replay_until)
        if asked.lanes.stable:
            for item in self._missed(asked.next_id):
                yield self._send(consumer, item, now_us, replayed=True)
        if asked.lanes.tentative:
            yield from self._guessed(consumer, asked, now_us)

    def unsubscribe(self, consumer: str, ended: Unsubscribe) -> None:
        current = self._sessions.get(consumer)
        if current is not None and current.number == ended.session:
            del self._sessions[consumer]

    def _guessed(self, consumer: str, asked: Subscribe, now_us: int) -> Iterator[Effect]:
        """The tentative rows that a consumer lacks; what it has from here and is void by now is told to be so."""
        known = asked.tentative_boundary
        if asked.yours and known > (self._tentative[-1].boundary.time if self._tentative else self._last.time):
            yield self._send(consumer, RecDone(known), now_us)
            known = START
        for item in [item for item in self._tentative if item.boundary.time > known]:
            yield self._send(consumer, item, now_us)

    def acknowledged(self, consumer: str, ack: Ack) -> None:
        """Forget what every consumer has."""
        self._acked[consumer] = max(self._acked.get(consumer, 1), ack.next_id)
        self._truncate()

    def _truncate(self) -> None:
        """A silent consumer counts no more while another replica of it lives, which can hand it a state."""
        newest_us = max(self._heard_us.values(), default=0)
        living = {name for name, heard_us in self._heard_us.items() if newest_us - heard_us <= self._replay.silent_us}
        groups: dict[str, list[str]] = {}
        for name in self._acked:
            groups.setdefault(name.partition("/")[0], []).append(name)
        counted = [[name for name in names if name in living] or names for names in groups.values()]
        least = min(self._acked[name] for names in counted for name in names)
        while self._log and self._log[0].boundary.last_id < least:
            self._first_id = self._log.popleft().boundary.last_id + 1

    def heartbeats(self, now_us: int, heartbeat_us: int) -> Iterator[Effect]:
        """A sign of life on each lane that was silent for a while: behind the last item, so that its loss shows.

        The tentative lane joins in when it has been used, or while a long replay fills the stable one.
        """
        for consumer, session in self._sessions.items():
            replaying = self._acked.get(consumer, 1) <= session.replay_until
            for tentative in (False, True) if session.sent[True] or replaying else (False,):
                if not (session.lanes.tentative if tentative else session.lanes.stable):
                    continue
                if now_us - session.sent_us[tentative] >= heartbeat_us:
                    yield self._send(consumer, Heartbeat(stable=not tentative), now_us)

    def _send(self, consumer: str, item: Item[R] | Heartbeat, now_us: int, replayed: bool = False) -> Send:
        session = self._sessions[consumer]
        tentative = on_tentative_lane(item)
        number = session.sent[tentative]
        session.sent[tentative] += 1
        session.sent_us[tentative] = now_us
        return Send(consumer, Message(self.stream, session.number, number, item, replayed))

    def _missed(self, next_id: int) -> Iterator[Data[R]]:
        """The stable lane from an id on, cut anew, with the last boundary behind it."""
        begin = max(next_id - self._replay.overlap, 1)
        pending: list[Data[R]] = []
        for item in self._log:
            if item.boundary.last_id < begin:
                continue
            pending.append(item)
            rows = sum(self._kernel.count(entry.rows) for entry in pending)
            if len(pending) >= self._replay.entries_max or rows >= self._replay.rows_max:
                yield from self._chunks(pending, begin)
                pending = []
        if pending:
            yield from self._chunks(pending, begin)
        if self._last.time > START and (not self._log or self._last.time > self._log[-1].boundary.time):
            yield Data(self._empty, self._last.last_id + 1, self._last)

    def _chunks(self, entries: list[Data[R]], begin: int) -> Iterator[Data[R]]:
        """Some log entries as messages of at most ``rows_max`` rows; they need not be cut as they came."""
        rows = self._kernel.concat([entry.rows for entry in entries])
        first_id = entries[0].first_id
        if first_id < begin:
            rows, first_id = self._kernel.skip(rows, begin - first_id), begin
        while self._kernel.count(rows) > self._replay.rows_max:
            part, rest = self._cut(rows)
            if not self._kernel.count(rest):
                break
            last_id = first_id + self._kernel.count(part) - 1
            yield Data(part, first_id, Boundary(self._kernel.earliest(rest), True, last_id))
            rows, first_id = rest, last_id + 1
        yield Data(rows, first_id, entries[-1].boundary)

    def _cut(self, rows: R) -> tuple[R, R]:
        """About ``rows_max`` rows, and the rest; rows of one time stay together, as they came."""
        time = self._kernel.earliest(self._kernel.skip(rows, self._replay.rows_max))
        part, rest = self._kernel.split(rows, time)
        return (part, rest) if self._kernel.count(part) else self._kernel.split(rows, time + 1)
