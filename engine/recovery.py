"""How a restarted replica gets a consistent state (Borealis §4.4): it serves nobody until it has one.

A partner that lives and is consistent hands its stable side over. Where none answers, or all that do are recovering
themselves, the replica's own last checkpoint serves, and upstream logs replay what came since: they are cut only up to
where a checkpoint is durable. Without any checkpoint that is everything from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from evenflow.engine.ha_monitor import SILENT_HEARTBEATS
from evenflow.engine.messages import Send, StateOffer, StateRequest
from evenflow.engine.snapshot import Snapshot

R = TypeVar("R")


class Recovery(Generic[R]):
    """From a restart until there is a state."""

    def __init__(self, partners: Sequence[str], heartbeat_us: int, checkpoint: Snapshot[R] | None) -> None:
        self._partners = partners
        self._heartbeat_us = heartbeat_us
        self._checkpoint = checkpoint
        self._began_us: int | None = None
        self._denied: set[str] = set()

    def ask(self, now_us: int) -> Iterator[Send]:
        """Ask the partners, once in each heartbeat: some may just be starting too."""
        self._began_us = now_us if self._began_us is None else self._began_us
        for partner in self._partners:
            yield Send(partner, StateRequest())

    def offered(self, sender: str, offer: StateOffer) -> Snapshot[R] | None:
        """A partner answered: with its state, or that it has none itself."""
        if offer.snapshot is None:
            self._denied.add(sender)
        return offer.snapshot

    def alone(self, now_us: int) -> bool:
        """Whether no partner will help: then the own checkpoint must do."""
        if self._denied.issuperset(self._partners):
            return True
        began_us = now_us if self._began_us is None else self._began_us
        return now_us - began_us >= SILENT_HEARTBEATS * self._heartbeat_us

    @property
    def own(self) -> tuple[Snapshot[R] | None, str]:
        """What there is without a partner, and what it is called."""
        return self._checkpoint, "its last checkpoint" if self._checkpoint is not None else "the beginning"
