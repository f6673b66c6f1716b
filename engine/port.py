"""A port: one consumer's end of one stream. It keeps ids gapless, skips what it knows, and asks again.

Every stable item says which ids it brings; a boundary says which id comes next. A gap in ids, or a lost message of
any kind, ends the session: nothing is applied, and the port subscribes again where it stands. It knows no time but
the last sign of life.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from evenflow.engine.messages import Ack, Heartbeat, Message, Subscribe, on_tentative_lane
from evenflow.operators.items import Boundary, Data, Item, RecDone, Undo
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import FINAL, START

R = TypeVar("R")
SILENT_HEARTBEATS = 3
PATIENCE_MAX = 64


class Port(Generic[R]):
    """Where a consumer stands in a stream that comes from ``upstream``."""

    def __init__(self, stream: str, upstream: str, kernel: Kernel[R], heartbeat_us: int) -> None:
        self.stream = stream
        self.upstream = upstream
        self.next_id = 1
        self.boundary = START
        self.tentative_boundary = START
        self.seen = START
        """How far time has passed, as the stream knows."""
        self.session = 0
        self._kernel = kernel
        self._heartbeat_us = heartbeat_us
        self._next_number = {False: 0, True: 0}
        """What comes next on the stable and on the tentative lane."""
        self._begun = False
        """Whether anything of this session was heard: then upstream knows it."""
        self._heard_us = 0
        self._patience = 1
        """Doubled with every session that falls silent, for a long replay may be on its way."""
        self._acked = 1
        self._replaying = False
        self._undoing = False

    @property
    def correcting(self) -> bool:
        """Whether what was missed or guessed is on its way: a replay, or a correction between its two marks."""
        return self._replaying or self._undoing

    @property
    def reached(self) -> int:
        """How far the stream has come on either lane."""
        return max(self.boundary, self.tentative_boundary)

    def subscribe(self, now_us: int) -> Subscribe:
        """Ask for a new session; what an older one still brings is ignored. One that was never heard is asked again."""
        if self._begun or not self.session:
            self.session += 1
            self._patience = min(2 * self._patience, PATIENCE_MAX)
        self._begun = self._replaying = self._undoing = False
        self._next_number = {False: 0, True: 0}
        self._heard_us = now_us
        return Subscribe(self.stream, self.session, self.next_id, self.boundary, self.tentative_boundary)

    def silent(self, now_us: int) -> bool:
        """Whether nothing has been heard for so long that a message, or the subscription itself, must be lost."""
        heartbeats = SILENT_HEARTBEATS * self._patience if self._begun else 1
        return now_us - self._heard_us >= heartbeats * self._heartbeat_us

    def acknowledge(self) -> Ack | None:
        """What upstream need not keep any longer, if that has changed."""
        if self._acked == self.next_id:
            return None
        self._acked = self.next_id
        return Ack(self.stream, self.next_id)

    def receive(self, message: Message[R], now_us: int) -> tuple[bool, Item[R] | None]:
        """Whether the session is whole, and the part of the item that is new, if any."""
        if message.session != self.session:  # if an older one goes on for long, our subscription was lost
            return self._begun or not self.silent(now_us), None
        self._begun = True
        if message.number != self._next_number[on_tentative_lane(message.item)]:
            return False, None
        item = message.item
        if isinstance(item, Data) and item.stable:
            return self._stable(message, item, now_us)
        self._hear(message, now_us)
        if isinstance(item, Heartbeat):
            return True, None
        if isinstance(item, Data):
            return True, self._tentative(item)
        self._undoing = isinstance(item, Undo)
        if isinstance(item, RecDone) and item.upto >= self.tentative_boundary:
            self.tentative_boundary = START
        return True, item

    def _hear(self, message: Message[R], now_us: int) -> None:
        self._next_number[on_tentative_lane(message.item)] += 1
        self._heard_us = now_us
        if not message.replayed:
            self._patience = 1

    def _stable(self, message: Message[R], item: Data[R], now_us: int) -> tuple[bool, Data[R] | None]:
        """Skip rows that are known; a row that is missing ends the session."""
        if item.first_id > self.next_id or item.boundary.last_id != item.first_id + self._kernel.count(item.rows) - 1:
            return False, None
        self._hear(message, now_us)
        self._replaying = message.replayed
        last_id, boundary = item.boundary.last_id, max(self.boundary, item.boundary.time)
        later = self._see(item.boundary)
        known = min(self.next_id - item.first_id, self._kernel.count(item.rows))
        rows = self._kernel.skip(item.rows, known) if known else item.rows
        last_id, seen = max(last_id, self.next_id - 1), item.boundary.evidence
        fresh = Data(rows, item.first_id + known, Boundary(boundary, True, last_id, seen))
        if boundary == self.boundary and not self._kernel.count(rows) and not later:
            return True, None
        self.next_id, self.boundary = fresh.boundary.last_id + 1, boundary
        return True, fresh

    def _see(self, boundary: Boundary) -> bool:
        """Whether time is now known to have passed further. The final boundary says nothing of it."""
        later = self.seen < boundary.evidence and boundary.time != FINAL
        if later:
            self.seen = boundary.evidence
        return later

    def _tentative(self, item: Data[R]) -> Data[R] | None:
        """Keep rows beyond both boundaries; an item that only says that time has passed brings none."""
        known, later = self.reached, self._see(item.boundary)
        if item.boundary.time < known or (item.boundary.time == known and not later):
            return None
        self.tentative_boundary = item.boundary.time
        return Data(self._kernel.split(item.rows, known)[1], item.first_id, item.boundary, item.missing)
