"""The HA monitor (Borealis §4): which replicas live, and where each stands in its output streams.

Each heartbeat it asks every replica of every upstream neighbour, and a node's own partners; their answers are the signs
of life. Data are none: a link may carry what was sent long ago.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from evenflow.engine.messages import Ping, Pong, Send, StreamView

SILENT_HEARTBEATS = 3
"""A replica that has not answered for so long is taken for dead."""


class HAMonitor:
    """Watches some replicas by their addresses."""

    def __init__(self, replicas: Collection[str], heartbeat_us: int) -> None:
        self._heartbeat_us = heartbeat_us
        self._number = 0
        self._asked_us: int | None = None
        self._began_us: int | None = None
        self._heard_us: dict[str, int | None] = dict.fromkeys(replicas)
        self._answers: dict[str, Pong] = {}

    def ask(self, now_us: int) -> Iterator[Send]:
        """Ask all of them. Whoever asks late was held up itself, and holds that against nobody."""
        if self._asked_us is not None:
            held_up_us = now_us - self._asked_us - self._heartbeat_us
            for replica, heard_us in self._heard_us.items():
                if heard_us is not None and held_up_us > 0:
                    self._heard_us[replica] = heard_us + held_up_us
        self._asked_us = now_us
        self._began_us = now_us if self._began_us is None else self._began_us
        self._number += 1
        for replica in self._heard_us:
            yield Send(replica, Ping(self._number))

    def answered(self, replica: str, pong: Pong, now_us: int) -> bool:
        """Take an answer; gives whether the replica was started anew since its last one."""
        before = self._answers.get(replica)
        if before is not None and pong.incarnation == before.incarnation and pong.number <= before.number:
            return False
        self._heard_us[replica] = now_us
        self._answers[replica] = pong
        return before is not None and before.incarnation != pong.incarnation

    def beginning(self, now_us: int) -> bool:
        """Whether it was begun so lately that a silent replica may just not have answered yet."""
        return self._began_us is None or now_us - self._began_us < SILENT_HEARTBEATS * self._heartbeat_us

    def alive(self, replica: str, now_us: int) -> bool:
        heard_us = self._heard_us[replica]
        return heard_us is not None and now_us - heard_us <= SILENT_HEARTBEATS * self._heartbeat_us

    def views(self, now_us: int) -> dict[str, Mapping[str, StreamView]]:
        """Where the living replicas stand, by address; one that recovers has nothing to say."""
        return {name: pong.streams for name, pong in self._answers.items() if pong.streams and self.alive(name, now_us)}
