"""A client: subscribes to one output and shows it as a single stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from evenflow.engine.linear import Linear
from evenflow.engine.messages import Effect, Event, Message, Received, Send, Start, Wake, WakeAt
from evenflow.engine.port import Port
from evenflow.operators.kernel import Kernel

R = TypeVar("R")


class Client(Generic[R]):
    """The core of a client library."""

    def __init__(self, output: str, upstream: str, kernel: Kernel[R], heartbeat_us: int) -> None:
        self.port = Port(output, upstream, kernel, heartbeat_us)
        self.linear = Linear(kernel)
        self._heartbeat_us = heartbeat_us

    def handle(self, event: Event, now_us: int) -> list[Effect]:
        match event:
            case Start():
                return [self.port.subscribe(now_us), WakeAt(now_us + self._heartbeat_us)]
            case Received(sender, Message() as message):
                return list(self._received(sender, message, now_us))
            case Wake():
                return list(self._wake(now_us))
            case _:
                return []

    def _received(self, sender: str, message: Message[R], now_us: int) -> Iterator[Effect]:
        whole, item = self.port.receive(sender, message, now_us)
        if not whole:
            yield self.port.subscribe(now_us, sender)
        elif item is not None:
            yield from self.linear.take(item)

    def _wake(self, now_us: int) -> Iterator[Effect]:
        for producer in self.port.silent(now_us):
            yield self.port.subscribe(now_us, producer)
        ack = self.port.acknowledge()
        if ack is not None:
            yield Send(self.port.feeds.stable, ack)
        yield WakeAt(now_us + self._heartbeat_us)
