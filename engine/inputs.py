"""The streams that a consumer reads, a node or a client: a port for each, and the replicas that they come from."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from evenflow.engine.ha_monitor import HAMonitor
from evenflow.engine.messages import Control, Effect, Message, Pong, Send
from evenflow.engine.port import Feeds, Port
from evenflow.engine.switching import Views, can_serve, choose, stable_elsewhere
from evenflow.operators.items import Data, Item
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import START

R = TypeVar("R")


class Origin(NamedTuple):
    """Where a stream comes from: the replicas of the node that makes it (of a source one), and what it is called."""

    replicas: tuple[str, ...]
    stream: str


class Came(NamedTuple, Generic[R]):
    """What a message brought: the input's number, and what is new."""

    number: int
    item: Item[R]
    replayed: bool


class Inputs(Generic[R]):
    """Ports by the number of their stream. All streams of one neighbour come from the same replica."""

    def __init__(
        self,
        name: str,
        origins: Mapping[int, Origin],
        kernel: Kernel[R],
        heartbeat_us: int,
        margin_us: int,
        replica: int = 1,
    ) -> None:
        self._name = name
        self._origins = dict(origins)
        self._margin_us = margin_us
        self._apart_us = margin_us - 2 * heartbeat_us
        self._groups: dict[tuple[str, ...], list[int]] = {}
        for number, origin in origins.items():
            self._groups.setdefault(origin.replicas, []).append(number)
        self._settled_us = dict.fromkeys(self._groups, START)
        """Until when a switch is given time to show; a replica that dies is left at once."""
        # Replicas of a consumer begin with different replicas of a producer.
        self._feeds = {replicas: Feeds(*[replicas[(replica - 1) % len(replicas)]] * 2) for replicas in self._groups}
        self.ports = {
            number: Port(origin.stream, self._feeds[origin.replicas].stable, kernel, heartbeat_us)
            for number, origin in origins.items()
        }
        self._numbers = {(a, origin.stream): n for n, origin in origins.items() for a in origin.replicas}
        self.monitor = HAMonitor(list(dict.fromkeys(a for replicas in self._groups for a in replicas)), heartbeat_us)

    @property
    def correcting(self) -> list[int]:
        """The streams whose corrections are on their way."""
        return [number for number, port in self.ports.items() if port.correcting]

    def start(self, now_us: int, first_session: int = 0) -> Iterator[Effect]:
        """Subscribe. Session numbers rise through restarts too, or a producer would take new ones for old ones."""
        for port in self.ports.values():
            port.last_session = first_session
            yield port.subscribe(now_us)
        yield from self.monitor.ask(now_us)

    def receive(self, sender: str, message: Message[R], now_us: int) -> Generator[Effect, None, Came[R] | None]:
        """Take an item of a stream; gives what is new of it, if anything."""
        number = self._numbers[sender, message.stream]
        port, item = self.ports[number], message.item
        needless = isinstance(item, Data) and not item.stable and self._stable_elsewhere(sender, number, item, now_us)
        whole, new = port.receive(sender, message, now_us, needless)
        if not whole:
            yield port.subscribe(now_us, sender)
        return None if new is None else Came(number, new, message.replayed)

    def answered(self, sender: str, pong: Pong, now_us: int) -> Iterator[Effect]:
        """A replica said where it stands."""
        restarted = self.monitor.answered(sender, pong, now_us)
        for replicas, numbers in self._groups.items():
            if sender in replicas:
                for number in numbers if restarted else ():
                    yield from self.ports[number].renew(sender, now_us)
                yield from self._switch(replicas, now_us)

    def heartbeat(self, now_us: int) -> Iterator[Effect]:
        """Ask the replicas, switch from dead ones, begin new sessions with silent ones, acknowledge."""
        yield from self.monitor.ask(now_us)
        for replicas in self._groups:
            yield from self._switch(replicas, now_us)
        for port in self.ports.values():
            for producer in port.silent(now_us):
                yield port.subscribe(now_us, producer)

    def acknowledge(self, safe: Mapping[int, int] | None = None) -> Iterator[Effect]:
        """Tell all replicas what need not be kept: rows before those in ``safe`` (None: before what comes next)."""
        for number, port in self.ports.items():
            ack = port.safe(port.next_id if safe is None else safe[number])
            if ack is not None:
                yield from (Send(replica, ack) for replica in self._origins[number].replicas)

    def _stable_elsewhere(self, sender: str, number: int, item: Data[R], now_us: int) -> bool:
        """Whether another replica has stable what comes as tentative here."""
        replicas, stream = self._origins[number]
        others = {name: view for name, view in self._views(replicas, now_us).items() if name != sender}
        here = self.ports[number].stable_seen
        time = item.boundary.evidence
        return bool(others) and stable_elsewhere(others, stream, time, here, self._margin_us, self._apart_us)

    def _views(self, replicas: tuple[str, ...], now_us: int) -> Views:
        return {name: view for name, view in self.monitor.views(now_us).items() if name in replicas}

    def _needed(self, replicas: tuple[str, ...]) -> dict[str, int]:
        """The next stable row of each stream of a neighbour."""
        ports = [self.ports[number] for number in self._groups[replicas]]
        return {port.stream: port.next_id for port in ports}

    def too_old(self, now_us: int) -> bool:
        """Whether some neighbour's replicas live, and none has what is needed next: their logs were cut."""
        for replicas in self._groups:
            views, needed = self._views(replicas, now_us), self._needed(replicas)
            if views and not any(can_serve(view, needed) for view in views.values()):
                return True
        return False

    def _switch(self, replicas: tuple[str, ...], now_us: int) -> Iterator[Effect]:
        """Read a neighbour's streams from the replicas that serve best."""
        if len(replicas) == 1:
            return
        before, views = self._feeds[replicas], self._views(replicas, now_us)
        if now_us < self._settled_us[replicas] and before.stable in views:
            return
        if self.monitor.beginning(now_us):
            return
        feeds = choose(before, views, self._needed(replicas), self._margin_us)
        if feeds != before:
            self._feeds[replicas] = feeds
            self._settled_us[replicas] = now_us + self._margin_us
            yield Control("SWITCH", self._name, f"{', '.join(before)} -> {', '.join(feeds)}")
            for number in self._groups[replicas]:
                yield from self.ports[number].switch(feeds, now_us)
