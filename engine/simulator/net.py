"""Links in virtual time: they delay, keep each lane in order, carry replays at a bounded speed, and can be cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from evenflow.engine.messages import Message, Payload, on_tentative_lane
from evenflow.engine.simulator.faults import Cut, Fault, Partition, Slow
from evenflow.operators.errors import DeclarationError, nearest
from evenflow.operators.items import Data
from evenflow.operators.times import FINAL, START

LINK_US_MIN = 1_000


class Link:
    """One direction between two cores."""

    def __init__(self, rng: Random, link_us: int, replay_speed: float) -> None:
        self.cuts: list[tuple[int, int]] = []
        self.slow: list[tuple[int, int, int]] = []
        self._rng = rng
        self._delays_us = (min(LINK_US_MIN, link_us), link_us)
        self._replay_speed = replay_speed
        self._arrived_us: dict[bool | None, int] = {None: 0, False: 0, True: 0}
        """The last arrival on each lane (None: what is no item of a stream): within one, messages keep their order."""
        self._session = 0
        self._boundary = START

    def cut(self, at_us: int) -> bool:
        return any(start <= at_us < end for start, end in self.cuts)

    def arrival(self, payload: Payload, at_us: int) -> int | None:
        """When a message that is sent now arrives; None: it is lost."""
        delay_us = self._rng.randint(*self._delays_us)
        if self.cut(at_us):
            return None
        extra_us = max((by for start, end, by in self.slow if start <= at_us < end), default=0)
        lane = on_tentative_lane(payload.item) if isinstance(payload, Message) else None
        time_us = max(at_us + delay_us + extra_us, self._arrived_us[lane] + self._carrying_us(payload))
        if self.cut(time_us):
            return None
        self._arrived_us[lane] = time_us
        return time_us

    def _carrying_us(self, payload: Payload) -> int:
        """How long a message of a replay keeps the link busy, by the time its rows span."""
        if not isinstance(payload, Message) or not payload.replayed or not isinstance(payload.item, Data):
            return 0
        if payload.session != self._session:
            self._session, self._boundary = payload.session, START
        before, time = self._boundary, payload.item.boundary.time
        if time == FINAL or time <= before:
            return 0
        self._boundary = time
        return int((time - before) / self._replay_speed) if before > START else 0


def matches(where: str, producer: str, consumer: str) -> bool:
    """Whether a fault's place names this link: a source, ``edge->site``, ``edge/1->site/2`` or ``site->client``."""
    left, arrow, right = where.partition("->")
    if not arrow:
        return where == producer
    return _names(left, producer) and _names(right, consumer)


def hits(fault: Cut | Slow | Partition, producer: str, consumer: str) -> bool:
    """Whether a fault is one of this link."""
    if not isinstance(fault, Partition):
        return matches(fault.where, producer, consumer)
    inside = [any(_names(member, end) for member in fault.members) for end in (producer, consumer)]
    return inside[0] != inside[1]


def _names(text: str, address: str) -> bool:
    return text in (address, address.partition("/")[0]) or (text == "client" and address.startswith("client:"))


def apply(faults: Iterable[Fault], links: dict[tuple[str, str], tuple[Link, Link]], start_us: int) -> None:
    """Give each link the faults that name it, in both directions; ``links`` are known by (producer, consumer)."""
    for fault in faults:
        if not isinstance(fault, Cut | Slow | Partition):
            continue
        found = [pair for (producer, consumer), pair in links.items() if hits(fault, producer, consumer)]
        if not found:
            known = nearest(fault.where, places(links))
            raise DeclarationError(f"{fault}: there is no source or link {fault.where!r}; {known}")
        begin, end = (start_us + time for time in fault.span_us)
        for pair in found:
            for link in pair:
                if isinstance(fault, Slow):
                    link.slow.append((begin, end, fault.by_us))
                else:
                    link.cuts.append((begin, end))


def places(links: Iterable[tuple[str, str]]) -> Sequence[str]:
    """What a Cut or a Slow can name."""
    names: dict[str, None] = {}
    for producer, consumer in links:
        if "/" not in producer:
            names[producer] = None
        reader = "client" if consumer.startswith("client:") else consumer.partition("/")[0]
        names[f"{producer.partition('/')[0]}->{reader}"] = None
    return list(names)
