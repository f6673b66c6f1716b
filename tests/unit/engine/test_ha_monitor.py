"""The HA monitor: who lives, who was started anew, and whose fault a delay is."""

from __future__ import annotations

from evenflow.engine.ha_monitor import SILENT_HEARTBEATS, HAMonitor
from evenflow.engine.messages import Ping, Pong, Send, StreamView
from evenflow.reconcile.state import State

HEARTBEAT_US = 100
VIEW = {"out": StreamView(State.STABLE, 10, 10, 1)}


def asked(monitor: HAMonitor, now_us: int) -> list[tuple[str, int]]:
    return [
        (s.to, s.payload.number) for s in monitor.ask(now_us) if isinstance(s, Send) and isinstance(s.payload, Ping)
    ]


def test_every_replica_is_asked_with_each_heartbeat() -> None:
    monitor = HAMonitor(["a", "b"], HEARTBEAT_US)
    assert asked(monitor, 0) == [("a", 1), ("b", 1)]
    assert asked(monitor, 100) == [("a", 2), ("b", 2)]


def test_a_replica_lives_for_three_heartbeats_after_its_last_answer() -> None:
    monitor = HAMonitor(["a", "b"], HEARTBEAT_US)
    asked(monitor, 0)
    monitor.answered("a", Pong(1, 0, VIEW), 20)
    last_us = 20 + SILENT_HEARTBEATS * HEARTBEAT_US
    assert (monitor.alive("a", last_us), monitor.alive("a", last_us + 1)) == (True, False)
    assert not monitor.alive("b", 0)
    assert monitor.views(last_us) == {"a": VIEW}
    assert monitor.views(last_us + 1) == {}


def test_one_that_recovers_lives_and_serves_nobody() -> None:
    monitor = HAMonitor(["a"], HEARTBEAT_US)
    monitor.answered("a", Pong(1, 1, {}), 20)
    assert monitor.alive("a", 20)
    assert monitor.views(20) == {}


def test_its_own_pause_is_not_held_against_others() -> None:
    monitor = HAMonitor(["a"], HEARTBEAT_US)
    asked(monitor, 0)
    monitor.answered("a", Pong(1, 0, VIEW), 20)
    asked(monitor, 1_000)
    assert monitor.alive("a", 1_000)
    assert monitor.alive("a", 1_220)
    assert not monitor.alive("a", 1_221)


def test_a_restart_shows_and_an_answer_that_was_overtaken_does_not() -> None:
    monitor = HAMonitor(["a"], HEARTBEAT_US)
    assert not monitor.answered("a", Pong(1, 0, VIEW), 0)
    assert not monitor.answered("a", Pong(3, 0, {}), 10)
    assert not monitor.answered("a", Pong(2, 0, VIEW), 20)
    assert monitor.views(20) == {}
    assert monitor.answered("a", Pong(4, 1, VIEW), 30)
    assert not monitor.answered("a", Pong(5, 1, VIEW), 40)


def test_at_the_beginning_silence_says_nothing() -> None:
    monitor = HAMonitor(["a"], HEARTBEAT_US)
    assert monitor.beginning(0)
    asked(monitor, 50)
    assert monitor.beginning(50 + SILENT_HEARTBEATS * HEARTBEAT_US - 1)
    assert not monitor.beginning(50 + SILENT_HEARTBEATS * HEARTBEAT_US)
