"""A port: one consumer's end of one stream. It keeps ids gapless, skips what it knows, and asks again.

Every stable item says which ids it brings; a boundary says which id comes next. A gap in ids, or a lost message of
any kind, ends the session: nothing is applied, and the port subscribes again where it stands. Where it stands does not
depend on the replica that it reads: each lane may come from another one, and change it at any time (Borealis §3.5).
It knows no time but the last sign of life.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

from evenflow.engine.messages import Ack, Heartbeat, Lanes, Message, Send, Subscribe, Unsubscribe
from evenflow.engine.session import Heard, Session
from evenflow.engine.snapshot import Position
from evenflow.operators.items import Boundary, Data, Item, RecDone
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import FINAL, START

R = TypeVar("R")


class Feeds(NamedTuple):
    """The replicas that the two lanes of a stream come from."""

    stable: str
    tentative: str


class Port(Generic[R]):
    """Where a consumer stands in a stream, and its sessions with the replicas that make it."""

    def __init__(self, stream: str, upstream: str, kernel: Kernel[R], heartbeat_us: int) -> None:
        self.stream = stream
        self.feeds = Feeds(upstream, upstream)
        self.next_id = 1
        self.boundary = START
        self.tentative_boundary = START
        self.seen = START
        """How far time has passed, as the stream knows."""
        self.stable_seen = START
        """The same on the stable lane."""
        self._kernel = kernel
        self._heartbeat_us = heartbeat_us
        self.last_session = 0
        """Session numbers rise through restarts too, or a producer takes a new one for an old one."""
        self._sessions = {upstream: Session(upstream, heartbeat_us)}
        self._acked = 1
        self._guessed_by = ""
        """The producer that the newest tentative rows are from."""

    @property
    def session(self) -> int:
        """The number of the session that brings the stable lane."""
        return self._sessions[self.feeds.stable].number

    @property
    def correcting(self) -> bool:
        """Whether what was missed or guessed is on its way: a replay, or a correction between its two marks."""
        return any(session.correcting for session in self._sessions.values())

    @property
    def reached(self) -> int:
        """How far the stream has come on either lane."""
        return max(self.boundary, self.tentative_boundary)

    @property
    def position(self) -> Position:
        return Position(self.next_id, self.boundary, self.stable_seen)

    def restore(self, position: Position) -> None:
        """Go on where another consumer stood."""
        self.next_id, self.boundary, self.seen = position
        self.stable_seen = self.seen

    def safe(self, next_id: int) -> Ack | None:
        """Everything before this row is safe here; the acknowledgement, if that is news."""
        if next_id == self._acked:
            return None
        self._acked = next_id
        return Ack(self.stream, next_id)

    def switch(self, feeds: Feeds, now_us: int) -> Iterator[Send]:
        """Read each lane from these replicas from now on, where that changes anything."""
        wanted = {feeds.stable: Lanes(True, feeds.tentative == feeds.stable)}
        wanted.setdefault(feeds.tentative, Lanes(False, True))
        self.feeds = feeds
        for producer in [name for name in self._sessions if name not in wanted]:
            yield Send(producer, Unsubscribe(self.stream, self._sessions.pop(producer).number))
        for producer, lanes in wanted.items():
            session = self._sessions.get(producer)
            if session is None or session.lanes != lanes:
                self._sessions[producer] = Session(producer, self._heartbeat_us, lanes)
                yield self.subscribe(now_us, producer)

    def subscribe(self, now_us: int, producer: str | None = None) -> Send:
        """Ask for a new session; what an older one still brings is ignored. One that was never heard is asked again."""
        session = self._sessions[producer or self.feeds.stable]
        number = session.renew(self.last_session + 1, now_us)
        self.last_session = max(self.last_session, number)
        asked = Subscribe(self.stream, number, self.next_id, self.boundary, self.tentative_boundary, session.lanes)
        return Send(session.producer, asked)

    def silent(self, now_us: int) -> list[str]:
        """The producers of which nothing has been heard for so long that something must be lost."""
        return [name for name, session in self._sessions.items() if session.silent(now_us)]

    def renew(self, producer: str, now_us: int) -> Iterator[Send]:
        """A producer was started anew and knows nothing of us."""
        if producer in self._sessions:
            yield self.subscribe(now_us, producer)

    def receive(
        self, sender: str, message: Message[R], now_us: int, needless: bool = False
    ) -> tuple[bool, Item[R] | None]:
        """Whether the session is whole, and the part of the item that is new, if any.

        ``needless``: tentative rows that are or will soon be had stable; they are not taken.
        """
        session = self._sessions.get(sender)
        if session is None:  # of a replica that we do not read any more
            return True, None
        heard, item = session.judge(message, now_us), message.item
        if heard == Heard.OLD and isinstance(item, Data) and item.stable:  # rows are known by id, whoever brings them
            return True, self._stable(item) if self._fits(item) else None
        if heard != Heard.NEXT:
            return heard == Heard.OLD, None
        if isinstance(item, Data) and item.stable:
            if not self._fits(item):
                return False, None
            session.count(message, now_us)
            return True, self._stable(item)
        session.count(message, now_us)
        if isinstance(item, Heartbeat):
            return True, None
        if isinstance(item, Data):
            return True, None if needless else self._tentative(sender, item)
        if isinstance(item, RecDone) and item.upto >= self.tentative_boundary:
            self.tentative_boundary = START
        return True, item

    def _fits(self, item: Data[R]) -> bool:
        """Whether no row is missing before it or in it."""
        rows = self._kernel.count(item.rows)
        return item.first_id <= self.next_id and item.boundary.last_id == item.first_id + rows - 1

    def _stable(self, item: Data[R]) -> Data[R] | None:
        """What is new of it: rows that are known are skipped."""
        last_id, boundary = item.boundary.last_id, max(self.boundary, item.boundary.time)
        later = self._see(item.boundary)
        self.stable_seen = max(self.stable_seen, item.boundary.evidence)
        known = min(self.next_id - item.first_id, self._kernel.count(item.rows))
        rows = self._kernel.skip(item.rows, known) if known else item.rows
        last_id, seen = max(last_id, self.next_id - 1), item.boundary.evidence
        fresh = Data(rows, item.first_id + known, Boundary(boundary, True, last_id, seen))
        if boundary == self.boundary and not self._kernel.count(rows) and not later:
            return None
        self.next_id, self.boundary = fresh.boundary.last_id + 1, boundary
        return fresh

    def _see(self, boundary: Boundary) -> bool:
        """Whether time is now known to have passed further. The final boundary says nothing of it."""
        later = self.seen < boundary.evidence and boundary.time != FINAL
        if later:
            self.seen = boundary.evidence
        return later

    def _tentative(self, sender: str, item: Data[R]) -> Data[R] | None:
        """Keep rows beyond both boundaries; an item that only says that time has passed brings none."""
        known, later = self.reached, self._see(item.boundary)
        if item.boundary.time < known or (item.boundary.time == known and not later):
            return None
        self.tentative_boundary = item.boundary.time
        self._guessed_by = sender
        return Data(self._kernel.split(item.rows, known)[1], item.first_id, item.boundary, item.missing)
