"""A source: logs what it is given, numbers it, and serves it to the nodes that read it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

from evenflow.engine.messages import (
    Ack,
    Effect,
    Emit,
    Event,
    Ping,
    Pong,
    Received,
    Send,
    Start,
    Subscribe,
    Unsubscribe,
    Wake,
    WakeAt,
)
from evenflow.engine.publisher import Publisher, Replay
from evenflow.operators.kernel import Kernel
from evenflow.operators.soutput import SOutput
from evenflow.reconcile.state import State

R = TypeVar("R")


class SourceNode(Generic[R]):
    """The core of a source; its driver gives it rows and boundaries as time passes."""

    def __init__(
        self, name: str, empty: R, kernel: Kernel[R], consumers: Collection[str], heartbeat_us: int, replay: Replay
    ) -> None:
        self.name = name
        self._output = SOutput(kernel)
        self._publisher = Publisher(name, empty, kernel, consumers, replay)
        self._heartbeat_us = heartbeat_us
        self._incarnation = 0

    @property
    def kept_rows(self) -> int:
        return self._publisher.kept_rows

    def handle(self, event: Event, now_us: int) -> list[Effect]:
        match event:
            case Emit(rows, boundary):
                return list(self._publisher.publish(self._output.emit(rows, boundary), now_us))
            case Received(sender, Subscribe() as asked):
                return list(self._publisher.subscribe(sender, asked, now_us))
            case Received(sender, Ack() as ack):
                self._publisher.acknowledged(sender, ack)
                return []
            case Received(sender, Unsubscribe() as ended):
                self._publisher.unsubscribe(sender, ended)
                return []
            case Start(incarnation):  # its log is durable, its subscribers are forgotten
                self._incarnation = incarnation
                self._publisher.forget()
                return [WakeAt(now_us + self._heartbeat_us)]
            case Received(sender, Ping(number)):
                return [Send(sender, Pong(number, self._incarnation, {self.name: self._publisher.view(State.STABLE)}))]
            case Wake():
                return [*self._publisher.heartbeats(now_us, self._heartbeat_us), WakeAt(now_us + self._heartbeat_us)]
            case _:
                return [WakeAt(now_us + self._heartbeat_us)]
