"""The loop: a virtual clock, cores with their inboxes, and what each of them wanted done."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenflow.engine.messages import (
    Again,
    CameBack,
    Core,
    Effect,
    Emit,
    Event,
    Failed,
    HandOut,
    Payload,
    Persist,
    Persisted,
    Received,
    Redone,
    Restart,
    Send,
    Start,
    Wake,
    WakeAt,
)
from evenflow.engine.simulator.net import Link
from evenflow.engine.snapshot import Snapshot
from evenflow.operators.errors import ReplayError
from evenflow.reconcile.job import Executor, RedoJob

DISK_US = 20_000
"""How long a checkpoint takes to become durable."""
Watch = Callable[[int, str, Effect], None]


@dataclass(frozen=True, slots=True)
class Costs:
    """The virtual time that redo takes: a row in the node, any job elsewhere, and a row of it."""

    redo_us_per_row: float = 1.0
    job_us: int = 500_000
    job_us_per_row: float = 0.5


@dataclass(slots=True)
class _Actor:
    anew: Callable[[], Core]
    core: Core
    processing_us: int
    pauses: list[tuple[int, int]] = field(default_factory=list)
    inbox: deque[Event] = field(default_factory=deque)
    incarnation: int = 0
    dead: bool = False
    disk: Snapshot[Any] | None = None
    """The last checkpoint that became durable."""
    writing: dict[int, Snapshot[Any]] = field(default_factory=dict)
    put_behind: set[type] = field(default_factory=set)
    """``Wake`` and ``Again`` where they were put behind what had arrived: once, or steady input would starve them."""
    busy_until_us: int = 0
    wake_us: int = -1

    def free_at(self, now_us: int) -> int:
        """When it can take the next event."""
        time_us = max(now_us, self.busy_until_us)
        for start, end in sorted(self.pauses):
            if start <= time_us < end:
                time_us = end
        return time_us


@dataclass(frozen=True, slots=True, eq=False)
class _Act:
    """Something that happens to a core from outside."""

    act: Callable[[], None]


class World:
    """Runs cores. ``watch`` sees every effect that is not I/O."""

    def __init__(self, start_us: int, costs: Costs, executor: Executor[Any] | None, watch: Watch) -> None:
        self.now_us = start_us
        self.events = 0
        self.busy_us_max: dict[str, int] = {}
        """The longest that each core was kept busy by one event."""
        self.links: dict[tuple[str, str], tuple[Link, Link]] = {}
        """By (producer, consumer): the link to the consumer, and the one back."""
        self._costs = costs
        self._executor = executor
        self._watch = watch
        self._actors: dict[str, _Actor] = {}
        self._queue: list[tuple[int, int, int, str, Event | _Act | None]] = []
        self._order = 0

    def add(
        self, address: str, anew: Callable[[], Core], processing_us: int = 0, pauses: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Start a core; ``anew`` gives it, also for every start after a crash."""
        self._actors[address] = _Actor(anew, anew(), processing_us, list(pauses))
        self.at(self.now_us, address, Start())

    def at(self, time_us: int, address: str, event: Event | _Act | None) -> None:
        """Let something happen to a core at a time; None: look into its inbox."""
        self._order += 1
        actor = self._actors[address]
        heapq.heappush(self._queue, (time_us, self._order, actor.incarnation, address, event))

    def crash(self, address: str, at_us: int, restart_us: int | None) -> None:
        """Let a core lose its memory at a time, and perhaps be started anew. What it is given by its clock waits."""
        self.at(at_us, address, _Act(lambda: self._die(address)))
        if restart_us is not None:
            self.at(restart_us, address, _Act(lambda: self._boot(address)))

    def _die(self, address: str) -> None:
        actor = self._actors[address]
        actor.incarnation += 1
        actor.dead, actor.wake_us, actor.busy_until_us = True, -1, 0
        actor.writing.clear()
        actor.inbox = deque(event for event in actor.inbox if isinstance(event, Emit))

    def _boot(self, address: str) -> None:
        actor = self._actors[address]
        if actor.dead:
            actor.dead, actor.core = False, actor.anew()
            actor.inbox.appendleft(Start(actor.incarnation, actor.disk))
            self.at(self.now_us, address, None)

    def living(self, address: str) -> bool:
        return not self._actors[address].dead

    def step(self) -> bool:
        """Go to the next thing that happens; False when there is none."""
        if not self._queue:
            return False
        self.now_us, _, incarnation, address, event = heapq.heappop(self._queue)
        actor = self._actors[address]
        if isinstance(event, _Act):
            event.act()
            return True
        if incarnation != actor.incarnation and not isinstance(event, Emit):
            return True
        if isinstance(event, Wake) and actor.wake_us != self.now_us:
            return True
        if isinstance(event, Persisted):
            actor.disk = actor.writing.pop(event.number)
        if event is not None:
            actor.inbox.append(event)
        self._drain(address, actor)
        return True

    def _drain(self, address: str, actor: _Actor) -> None:
        """Let a core take what waits for it, as long as it is free."""
        while actor.inbox and not actor.dead:
            free_us = actor.free_at(self.now_us)
            if free_us > self.now_us:
                self.at(free_us, address, None)
                return
            event = actor.inbox.popleft()
            if isinstance(event, Wake | Again) and actor.inbox and type(event) not in actor.put_behind:
                actor.put_behind.add(type(event))
                actor.inbox.append(event)
                continue
            actor.put_behind.discard(type(event))
            self.events += 1
            self._carry_out(address, actor, actor.core.handle(event, self.now_us))

    def _carry_out(self, address: str, actor: _Actor, effects: list[Effect]) -> None:
        actor.busy_until_us = self.now_us
        for effect in effects:
            match effect:
                case Redone(rows):
                    actor.busy_until_us += int(rows * self._costs.redo_us_per_row)
                case Send(to, payload):
                    self._transmit(address, to, payload, actor.busy_until_us + actor.processing_us)
                case WakeAt(time_us):
                    if time_us != actor.wake_us:
                        actor.wake_us = time_us
                        self.at(time_us, address, Wake())
                case Again():
                    actor.inbox.append(effect)
                case HandOut(job):
                    self._hand_out(address, job)
                case Restart():
                    self._watch(self.now_us, address, effect)
                    self._die(address)
                    self._boot(address)
                    return
                case Persist(number, snapshot):
                    actor.writing[number] = snapshot
                    self.at(self.now_us + DISK_US, address, Persisted(number))
                case _:
                    self._watch(self.now_us, address, effect)
        busy_us = actor.busy_until_us - self.now_us
        self.busy_us_max[address] = max(busy_us, self.busy_us_max.get(address, 0))

    def _hand_out(self, address: str, job: RedoJob[Any]) -> None:
        """Let a job really run, now; that takes as much virtual time as it costs."""
        took_us = int(self._costs.job_us + job.n_rows * self._costs.job_us_per_row)
        came: Event
        try:
            if self._executor is None:
                raise ReplayError("there is nothing to run it on")
            came = CameBack(job, self._executor.run(job), took_us)
        except ReplayError as error:
            came = Failed(job, str(error))
        self.at(self.now_us + took_us, address, came)

    def _transmit(self, sender: str, to: str, payload: Payload, at_us: int) -> None:
        forward = self.links.get((sender, to))
        link = forward[0] if forward is not None else self.links[to, sender][1]
        time_us = link.arrival(payload, at_us)
        if time_us is not None:
            self.at(time_us, to, Received(sender, payload))
