"""What goes over links, what a core is told (events) and what it wants done (effects).

A core is ``handle(event, now_us) -> effects`` and does nothing else: no clock, no socket, no chance. A driver (the
simulator, or processes with sockets) turns effects into deliveries and deliveries into events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from evenflow.engine.snapshot import Snapshot
from evenflow.operators.items import Data, Item
from evenflow.reconcile.job import RedoJob, Replayed
from evenflow.reconcile.state import State

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life when a lane has nothing else to send: a message lost before it shows. It promises nothing."""

    stable: bool = True
    """On which lane it goes."""


@dataclass(frozen=True, slots=True, eq=False)
class Message(Generic[R]):
    """An item of a stream within a session.

    ``number`` counts the session's messages on their lane, so that a lost one shows. ``replayed``: it comes out of the
    log, for a consumer that had missed it.
    """

    stream: str
    session: int
    number: int
    item: Item[R] | Heartbeat
    replayed: bool = False


def on_tentative_lane(item: Item[Any] | Heartbeat) -> bool:
    """Whether an item goes on the tentative lane, which no long replay of stable rows holds up."""
    return isinstance(item, Heartbeat | Data) and not item.stable


class Lanes(NamedTuple):
    """The lanes of a stream that a session brings."""

    stable: bool = True
    tentative: bool = True


BOTH = Lanes()


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Asks for a stream from the stable row ``next_id`` on, beyond the boundaries already reached."""

    stream: str
    session: int
    next_id: int
    boundary: int
    tentative_boundary: int
    lanes: Lanes = BOTH
    yours: bool = True
    """Whether what is known as tentative came from this producer: nobody else may say that it is void."""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Ends a session: the consumer reads from another replica now."""

    stream: str
    session: int


@dataclass(frozen=True, slots=True)
class Ack:
    """Stable rows before ``next_id`` need not be kept for this consumer."""

    stream: str
    next_id: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Asks a replica, upstream or a partner, for a sign of life and for where it stands."""

    number: int


@dataclass(frozen=True, slots=True)
class StreamView:
    """Where a replica stands in one of its output streams."""

    state: State
    stable: int
    """How far time has passed on the stable lane. (A window's boundary jumps from end to end.)"""
    reached: int
    """How far time has passed on either lane."""
    first_id: int
    """The oldest stable row that it can still give."""


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a ``Ping``."""

    number: int
    incarnation: int
    """Changes with every restart: subscriptions of an earlier one are forgotten."""
    streams: Mapping[str, StreamView]
    """Empty while it recovers: it serves nobody."""


@dataclass(frozen=True, slots=True)
class StateRequest:
    """A restarted replica asks a partner for its stable side."""


@dataclass(frozen=True, slots=True, eq=False)
class StateOffer:
    """The answer; None: the partner is recovering itself."""

    snapshot: Snapshot[Any] | None


Payload = Message[Any] | Subscribe | Unsubscribe | Ack | Ping | Pong | StateRequest | StateOffer


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The first event. ``incarnation`` counts the starts; ``checkpoint`` is the last one that became durable."""

    incarnation: int = 0
    checkpoint: Snapshot[Any] | None = None


@dataclass(frozen=True, slots=True)
class Persisted:
    """A checkpoint is durable."""

    number: int


@dataclass(frozen=True, slots=True)
class Wake:
    """A time that was asked for has come. Inputs that were waiting are handled first."""


@dataclass(frozen=True, slots=True)
class Again:
    """Go on with work that was cut into slices. As an effect: come back with this after what is waiting."""


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    sender: str
    payload: Payload


@dataclass(frozen=True, slots=True, eq=False)
class Emit(Generic[R]):
    """A source has rows, in order, and a boundary behind them."""

    rows: R
    boundary: int


@dataclass(frozen=True, slots=True, eq=False)
class CameBack:
    """A job of redo that was handed out is done, and how long it took."""

    job: RedoJob[Any]
    replayed: Replayed[Any]
    took_us: int


@dataclass(frozen=True, slots=True, eq=False)
class Failed:
    """A job of redo that was handed out failed."""

    job: RedoJob[Any]
    reason: str


Event = Start | Persisted | Wake | Again | Received | Emit[Any] | CameBack | Failed


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    to: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class WakeAt:
    time_us: int


@dataclass(frozen=True, slots=True)
class Control:
    """A control item or a condition that can be watched: UP_FAILURE, REC_REQUEST, UNDO_START, REC_DONE, …"""

    kind: str
    where: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Of the node (``output`` None) or of one of its outputs."""

    state: str
    output: str | None = None
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Redone:
    """A slice of redo: the rows folded for it."""

    rows: int


@dataclass(frozen=True, slots=True, eq=False)
class HandOut:
    """Let redo run elsewhere; it comes back as ``CameBack`` or ``Failed``."""

    job: RedoJob[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Persist:
    """Make a checkpoint durable; ``Persisted`` tells when it is. A newer one replaces it."""

    number: int
    snapshot: Snapshot[Any]


@dataclass(frozen=True, slots=True)
class Restart:
    """The node cannot go on from what it has: start it anew."""

    reason: str


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A reconciliation ended: how it was done, where, and how many rows were folded for it."""

    method: str
    executor: str
    rows: int
    fell_back: bool


@dataclass(frozen=True, slots=True, eq=False)
class Show:
    """A client's item for its user; ``resent``: a tentative row that was shown before, with a new id."""

    item: Any
    resent: bool = False


Effect = Send | WakeAt | Again | Control | StateChanged | Redone | HandOut | Persist | Restart | Reconciled | Show


class Core(Protocol):
    """Anything a driver can run."""

    def handle(self, event: Event, now_us: int) -> list[Effect]: ...
