"""A client: subscribes to one output, at whichever replica serves best, and shows it as a single stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from evenflow.engine.inputs import Inputs, Origin
from evenflow.engine.linear import Linear
from evenflow.engine.messages import Effect, Event, Message, Pong, Received, Start, Wake, WakeAt
from evenflow.engine.port import Port
from evenflow.operators.kernel import Kernel

R = TypeVar("R")


class Client(Generic[R]):
    """The core of a client library."""

    def __init__(
        self, output: str, replicas: Sequence[str], kernel: Kernel[R], heartbeat_us: int, margin_us: int
    ) -> None:
        origins = {0: Origin(tuple(replicas), output)}
        self.inputs: Inputs[R] = Inputs(f"client:{output}", origins, kernel, heartbeat_us, margin_us)
        self.linear = Linear(kernel)
        self._heartbeat_us = heartbeat_us

    @property
    def port(self) -> Port[R]:
        return self.inputs.ports[0]

    def handle(self, event: Event, now_us: int) -> list[Effect]:
        return list(self._handle(event, now_us))

    def _handle(self, event: Event, now_us: int) -> Iterator[Effect]:
        match event:
            case Start():
                yield from self.inputs.start(now_us)
                yield WakeAt(now_us + self._heartbeat_us)
            case Received(sender, Message() as message):
                came = yield from self.inputs.receive(sender, message, now_us)
                if came is not None:
                    yield from self.linear.take(came.item)
            case Received(sender, Pong() as pong):
                yield from self.inputs.answered(sender, pong, now_us)
            case Wake():
                yield from self.inputs.heartbeat(now_us)
                yield from self.inputs.acknowledge()
                yield WakeAt(now_us + self._heartbeat_us)
            case _:
                pass
