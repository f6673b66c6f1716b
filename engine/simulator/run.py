"""One simulated run: from a layout, faults and a seed to everything that was seen."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Generic, TypeVar

from evenflow.engine.client import Client
from evenflow.engine.messages import Control, Core, Effect, Emit, Reconciled, Show, StateChanged
from evenflow.engine.node import Node
from evenflow.engine.simulator.faults import Crash, Fault, Partition, Pause, Skew, Stall
from evenflow.engine.simulator.layout import Layout, client
from evenflow.engine.simulator.net import Link, apply
from evenflow.engine.simulator.world import World
from evenflow.engine.source_node import SourceNode
from evenflow.operators.errors import DeclarationError, nearest
from evenflow.operators.times import FINAL, floor
from evenflow.reconcile.job import Executor
from evenflow.reconcile.state import State

R = TypeVar("R")
SECOND_US = 1_000_000
UNFINISHED_US = 120 * SECOND_US
"""A run that has not come to rest so long after everything healed will not."""


@dataclass(slots=True)
class Run(Generic[R]):
    """What was seen: by clients, of states, of control items, of reconciliations. Times are virtual."""

    layout: Layout[R]
    faults: tuple[Fault, ...]
    seed: int
    start_us: int
    end_us: int
    """When the sources ended, after every fault had."""
    shown: dict[str, list[tuple[int, Show]]] = field(default_factory=dict)
    states: list[tuple[int, str, StateChanged]] = field(default_factory=list)
    controls: list[tuple[int, str, Control]] = field(default_factory=list)
    reconciled: list[tuple[int, str, Reconciled]] = field(default_factory=list)
    nodes: dict[str, Node[R]] = field(default_factory=dict)
    sources: dict[str, SourceNode[R]] = field(default_factory=dict)
    buffered: list[tuple[int, int]] = field(default_factory=list)
    """Every second, the rows that all nodes held: in SUnions, histories, journals and logs."""
    busy_us_max: dict[str, int] = field(default_factory=dict)
    """The longest slice of redo of each node."""
    dead: frozenset[str] = frozenset()
    """Replicas that crashed and were not started anew."""
    events: int = 0
    stopped_us: int = 0
    finished: bool = False
    """Whether everything stable reached the clients and all nodes were STABLE."""


def run(
    layout: Layout[R],
    faults: Sequence[Fault] = (),
    seed: int = 0,
    until_us: int | None = None,
    executor: Executor[R] | None = None,
) -> Run[R]:
    """Simulate until every fault has healed, all nodes are STABLE and clients have everything, or ``until_us``.

    ``executor`` is where redo runs that nodes hand out.
    """
    return _Driver(layout, tuple(faults), seed, executor).run(until_us)


class _Driver(Generic[R]):
    def __init__(self, layout: Layout[R], faults: tuple[Fault, ...], seed: int, executor: Executor[R] | None) -> None:
        self._layout = layout
        self._faults = faults
        self._rng = Random(seed)
        rows = [rows for _, rows in layout.sources.values() if layout.kernel.count(rows)]
        first = min((layout.kernel.earliest(part) for part in rows), default=0)
        last = max((layout.kernel.latest(part) for part in rows), default=first)
        start_us = floor(first, SECOND_US)
        healed = [start_us + fault.span_us[1] for fault in faults if not isinstance(fault, Skew)]
        late = max((abs(fault.by_us) for fault in faults if isinstance(fault, Skew)), default=0)
        end_us = max([last + 1, *healed]) + late
        self._run: Run[R] = Run(layout, faults, seed, start_us, end_us)
        self._world = World(start_us, layout.settings.costs, executor, self._watch)
        self._clients: dict[str, Client[R]] = {}
        self._build()

    def run(self, until_us: int | None) -> Run[R]:
        world, run = self._world, self._run
        speed = min(1.0, self._layout.settings.replay_speed)
        limit = run.end_us + UNFINISHED_US + int((run.end_us - run.start_us) / speed)
        if until_us is not None:
            limit = run.start_us + until_us
        while not run.finished and world.step():
            if world.now_us > limit:
                break
            if world.now_us >= (run.buffered[-1][0] if run.buffered else run.start_us) + SECOND_US:
                run.buffered.append((world.now_us, self._held()))
            run.finished = self._at_rest()
        run.dead = frozenset(who for who in run.nodes if not world.living(who))
        run.stopped_us, run.events, run.busy_us_max = world.now_us, world.events, world.busy_us_max
        return run

    def _build(self) -> None:
        layout, settings, run = self._layout, self._layout.settings, self._run
        self._check_places()
        readers: dict[str, list[str]] = {name: [] for name in layout.sources}
        for node in layout.plans:
            for replica, who in enumerate(layout.addresses(node), start=1):
                config = layout.config(node, replica)
                anew = partial(self._anew, node, replica)
                self._world.add(who, anew, settings.processing_us, self._spans(Pause, node, who))
                self._crashes(who)
                for partner in config.partners:
                    if (partner, who) not in self._world.links:
                        self._link(who, partner)
                for producer in dict.fromkeys(made for origin in config.upstream.values() for made in origin.replicas):
                    self._link(producer, who)
                    if producer in readers:
                        readers[producer].append(who)
        for output, node in layout.outputs.items():
            replicas, margin_us = layout.addresses(node), layout.margin_us
            reader = self._clients[output] = Client(output, replicas, layout.kernel, settings.heartbeat_us, margin_us)
            run.shown[output] = []
            self._world.add(client(output), partial(_same, reader))
            for who in replicas:
                self._link(who, client(output))
        for name, (_, rows) in layout.sources.items():
            empty = layout.kernel.split(rows, -(2**63))[0]
            source = SourceNode(name, empty, layout.kernel, readers[name], settings.heartbeat_us, settings.replay)
            run.sources[name] = source
            self._world.add(name, partial(_same, source))
            self._crashes(name)
            for time_us, part, boundary in self._feed(name, rows):
                self._world.at(time_us, name, Emit(part, boundary))
        apply(self._faults, self._world.links, run.start_us)

    def _anew(self, node: str, replica: int) -> Core:
        """A replica with nothing in memory."""
        config = self._layout.config(node, replica)
        core = self._run.nodes[config.name] = Node(config, self._layout.plans[node], self._layout.kernel)
        return core

    def _crashes(self, who: str) -> None:
        start = self._run.start_us
        for fault in self._faults:
            if isinstance(fault, Crash) and fault.where in (who, who.partition("/")[0]):
                at_us, restart_us = fault.span_us
                self._world.crash(who, start + at_us, None if fault.restart is None else start + restart_us)

    def _link(self, producer: str, consumer: str) -> None:
        settings = self._layout.settings
        there, back = (Link(self._rng, settings.link_us, settings.replay_speed) for _ in range(2))
        self._world.links.setdefault((producer, consumer), (there, back))

    def _spans(self, kind: type[Pause] | type[Stall], *names: str) -> list[tuple[int, int]]:
        start = self._run.start_us
        found = [f for f in self._faults if isinstance(f, kind) and f.where in names]
        return [(start + fault.span_us[0], start + fault.span_us[1]) for fault in found]

    def _check_places(self) -> None:
        for fault in self._faults:
            if isinstance(fault, Crash | Partition):
                self._check_members([fault.where] if isinstance(fault, Crash) else fault.members, fault)
                continue
            known = self._layout.plans if isinstance(fault, Pause) else self._layout.sources
            name = fault.where.partition("/")[0] if isinstance(fault, Pause) else fault.where
            if isinstance(fault, Pause | Stall | Skew) and name not in known:
                what = "node" if isinstance(fault, Pause) else "source"
                raise DeclarationError(f"{fault}: there is no {what} {fault.where!r}; {nearest(fault.where, known)}")

    def _check_members(self, members: Collection[str], fault: Fault) -> None:
        replicas = [who for node in self._layout.plans for who in self._layout.addresses(node)]
        known = [*self._layout.sources, *self._layout.plans, *replicas]
        for member in members:
            if member not in known:
                raise DeclarationError(
                    f"{fault}: there is no source, node or replica {member!r}; {nearest(member, known)}"
                )

    def _feed(self, name: str, rows: R) -> Iterator[tuple[int, R, int]]:
        """When a source sends what: its rows up to its clock with each boundary, and after the end the final one."""
        settings, run, kernel = self._layout.settings, self._run, self._layout.kernel
        ahead = sum(fault.by_us for fault in self._faults if isinstance(fault, Skew) and fault.where == name)
        stalls = self._spans(Stall, name)
        phase = self._rng.randrange(settings.boundary_us) if settings.phases else 0
        time_us = run.start_us + phase
        while time_us <= run.end_us:
            if not any(begin <= time_us < end for begin, end in stalls):
                part, rows = kernel.split(rows, time_us + ahead)
                yield time_us, part, time_us + ahead
            time_us += settings.boundary_us
        yield max(time_us, run.end_us - ahead), rows, FINAL

    def _watch(self, now_us: int, who: str, effect: Effect) -> None:
        run = self._run
        match effect:
            case Show():
                run.shown[who.removeprefix("client:")].append((now_us, effect))
            case StateChanged():
                run.states.append((now_us, who, effect))
            case Control():
                run.controls.append((now_us, who, effect))
            case Reconciled():
                run.reconciled.append((now_us, who, effect))
            case _:
                pass

    def _held(self) -> int:
        nodes = self._run.nodes.values()
        kept = sum(publisher.kept_rows for node in nodes for publisher in node.publishers.values())
        return kept + sum(node.heads.buffered_rows for node in nodes)

    def _at_rest(self) -> bool:
        return (
            self._world.now_us >= self._run.end_us
            and all(
                reader.linear.boundary == FINAL and not reader.linear.tentative_rows
                for reader in self._clients.values()
            )
            and all(
                node.manager.state == State.STABLE
                and not node.recovering
                and all(fragment.sunion.cursor == FINAL for fragment in node.heads.fragments)
                for who, node in self._run.nodes.items()
                if self._world.living(who)
            )
        )


def _same(core: Core) -> Core:
    """A source finds its log where it left it."""
    return core
