"""A session: one subscription of a port with one producer, from its ``Subscribe`` to the next one or to a switch.

It sees that no message is lost and notices silence. What messages bring is the port's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from evenflow.engine.messages import BOTH, Lanes, Message, on_tentative_lane
from evenflow.operators.items import RecDone, Undo

SILENT_HEARTBEATS = 3
PATIENCE_MAX = 64


class Heard(Enum):
    """What a message means for its session."""

    NEXT = "the next one: its item counts"
    OLD = "of an older session: ignored"
    LOST = "something before it is lost: subscribe again"


@dataclass(slots=True)
class Session:
    """One producer, and what is read from it."""

    producer: str
    heartbeat_us: int
    lanes: Lanes = BOTH
    number: int = 0
    """0: never asked for."""
    replaying: bool = False
    """Whether the last stable item came out of the log."""
    undoing: bool = False
    """Whether a correction is on its way: its ``Undo`` came, its ``RecDone`` has not."""
    _next: dict[bool, int] = field(default_factory=lambda: {False: 0, True: 0})
    """The number of the next message on the stable and on the tentative lane."""
    _begun: bool = False
    """Whether anything of this session was heard: then the producer knows it."""
    _heard_us: int = 0
    _patience: int = 1
    """Doubled with every session that falls silent, for a long replay may be on its way."""

    @property
    def correcting(self) -> bool:
        return self.lanes.stable and (self.replaying or self.undoing)

    def renew(self, number: int, now_us: int) -> int:
        """Begin anew under this number, or under the old one if the producer never answered; gives which."""
        if self._begun or not self.number:
            self.number = number
            self._patience = min(2 * self._patience, PATIENCE_MAX)
        self._begun = self.replaying = self.undoing = False
        self._next = {False: 0, True: 0}
        self._heard_us = now_us
        return self.number

    def silent(self, now_us: int) -> bool:
        """Whether nothing has been heard for so long that a message, or the subscription itself, must be lost."""
        heartbeats = SILENT_HEARTBEATS * self._patience if self._begun else 1
        return now_us - self._heard_us >= heartbeats * self.heartbeat_us

    def judge(self, message: Message[Any], now_us: int) -> Heard:
        """Whether a message is of this session and the next one. It is not counted yet."""
        if message.session != self.number:  # if an older one goes on for long, our subscription was lost
            return Heard.OLD if self._begun or not self.silent(now_us) else Heard.LOST
        self._begun = True
        return Heard.NEXT if message.number == self._next[on_tentative_lane(message.item)] else Heard.LOST

    def count(self, message: Message[Any], now_us: int) -> None:
        """The message is whole."""
        lane = on_tentative_lane(message.item)
        self._next[lane] += 1
        self._heard_us = now_us
        if not lane:
            # A replay stands in one piece: whatever else comes on its lane comes behind it.
            self.replaying = message.replayed
        if not self.replaying and not message.replayed:
            self._patience = 1
        if isinstance(message.item, Undo | RecDone):
            self.undoing = isinstance(message.item, Undo)
