"""A restarted replica: whom it asks, and when it goes on alone."""

from __future__ import annotations

from typing import Any

from evenflow.engine.messages import StateOffer, StateRequest
from evenflow.engine.recovery import Recovery
from evenflow.engine.snapshot import Snapshot

HEARTBEAT_US = 100
CHECKPOINT: Snapshot[Any] = Snapshot((), {}, {})


def recovery(*partners: str, checkpoint: Snapshot[Any] | None = CHECKPOINT) -> Recovery[Any]:
    return Recovery(partners, HEARTBEAT_US, checkpoint)


def test_partners_are_asked_until_one_has_a_state() -> None:
    started = recovery("a", "b")
    for now_us in (0, 100):
        assert [(send.to, send.payload) for send in started.ask(now_us)] == [
            ("a", StateRequest()),
            ("b", StateRequest()),
        ]
    assert started.offered("a", StateOffer(None)) is None
    assert not started.alone(150)
    offered: Snapshot[Any] = Snapshot((), {}, {})
    assert started.offered("b", StateOffer(offered)) is offered


def test_alone_at_once_without_partners_or_if_all_recover_too() -> None:
    assert recovery().alone(0)
    started = recovery("a", "b")
    list(started.ask(0))
    for partner in ("a", "b"):
        assert not started.alone(10)
        started.offered(partner, StateOffer(None))
    assert started.alone(10)


def test_alone_when_partners_are_silent_for_three_heartbeats() -> None:
    started = recovery("a")
    list(started.ask(50))
    assert not started.alone(349)
    assert started.alone(350)


def test_what_it_has_of_its_own() -> None:
    assert recovery().own == (CHECKPOINT, "its last checkpoint")
    assert recovery(checkpoint=None).own == (None, "the beginning")
