"""What is simulated: plans on nodes, the sources with their rows, and who reads whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from evenflow.engine.dispatch import Rates, ReplayName
from evenflow.engine.inputs import Origin
from evenflow.engine.node import NodeConfig
from evenflow.engine.publisher import Replay
from evenflow.engine.release import PolicyName
from evenflow.engine.simulator.world import Costs
from evenflow.engine.threshold import Threshold, Timing
from evenflow.operators.kernel import Kernel
from evenflow.operators.plan import FoldPlan

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything about a run that is not the query: times in microseconds, costs, and how replays are cut."""

    bucket_us: int = 100_000
    boundary_us: int = 100_000
    heartbeat_us: int = 100_000
    link_us: int = 10_000
    """Links take at most this long."""
    processing_us: int = 1_000
    """P: from an event to what comes out because of it."""
    costs: Costs = field(default_factory=Costs)
    replay_speed: float = 10.0
    """A link carries a replay so many times faster than it was first sent."""
    replay: Replay = field(default_factory=Replay)
    checkpoint_us: int = 1_000_000
    """How often a node makes a checkpoint durable."""
    phases: bool = False
    """Whether sources send at different moments of the boundary interval, drawn from the seed."""

    @property
    def timing(self) -> Timing:
        return Timing(self.bucket_us, self.boundary_us, self.link_us, self.processing_us)


@dataclass(frozen=True, slots=True)
class NodeChoices:
    """A node's X and policies."""

    x_us: int
    reconcile: str = "auto"
    on_failure: PolicyName = "process"
    on_stabilization: PolicyName = "process"
    replay: ReplayName = "local"
    replicas: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Layout(Generic[R]):
    """Plans share one numbering of streams; a source's rows are ordered by time."""

    kernel: Kernel[R]
    plans: Mapping[str, FoldPlan[R]]
    choices: Mapping[str, NodeChoices]
    sources: Mapping[str, tuple[int, R]]
    """Each source's stream number and rows."""
    outputs: Mapping[str, str]
    """The node that makes each output of the network."""
    settings: Settings

    def addresses(self, node: str) -> tuple[str, ...]:
        """Those of a node's replicas."""
        return tuple(address(node, replica) for replica in range(1, self.choices[node].replicas + 1))

    def producers(self) -> dict[int, Origin]:
        """Where each stream comes from."""
        found = {number: Origin((name,), name) for name, (number, _) in self.sources.items()}
        for node, plan in self.plans.items():
            made = {number: Origin(self.addresses(node), name) for name, number in plan.outputs.items()}
            found = made | found
        return found

    def upstream(self, node: str) -> list[str]:
        """The sources and nodes that a node reads."""
        producers = self.producers()
        return [producers[number].replicas[0].partition("/")[0] for number in self.plans[node].inputs]

    def links(self) -> Iterator[tuple[str, str]]:
        """Every link, by the names of its two ends."""
        for node in self.plans:
            for name in self.upstream(node):
                yield name, node
        for output, node in self.outputs.items():
            yield node, client(output)

    def paths(self, output: str) -> Iterator[tuple[str, ...]]:
        """Every way from a source to the client of an output: the source, then nodes."""
        yield from self._above(self.outputs[output], ())

    def _above(self, name: str, below: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if name in self.sources:
            yield (name, *below)
            return
        for above in dict.fromkeys(self.upstream(name)):
            yield from self._above(above, (name, *below))

    def threshold(self, node: str) -> Threshold:
        return Threshold.fit(node, self.choices[node].x_us, self.settings.timing)

    def slice_us(self, node: str) -> int:
        return self.threshold(node).slice_us(self.settings.heartbeat_us)

    @property
    def margin_us(self) -> int:
        """More than replicas that are all well seem to be apart: their answers are of different moments."""
        return max(3 * self.settings.heartbeat_us, 2 * self.settings.heartbeat_us + self.settings.timing.needed_us)

    def config(self, node: str, replica: int = 1) -> NodeConfig:
        """What a replica of the node is told."""
        producers, settings, choices = self.producers(), self.settings, self.choices[node]
        threshold = self.threshold(node)
        consumers: dict[str, list[str]] = {name: [] for name in self.plans[node].outputs}
        for reader, plan in self.plans.items():
            for number in plan.inputs:
                if address(node) in producers[number].replicas:
                    consumers[producers[number].stream] += self.addresses(reader)
        for output, maker in self.outputs.items():
            if maker == node:
                consumers[output].append(client(output))
        return NodeConfig(
            address(node, replica),
            {number: producers[number] for number in self.plans[node].inputs},
            consumers,
            settings.bucket_us,
            threshold,
            settings.heartbeat_us,
            max(1, int(self.slice_us(node) / max(settings.costs.redo_us_per_row, 1e-3))),
            choices.reconcile,
            choices.on_failure,
            choices.on_stabilization,
            settings.replay,
            choices.replay,
            Rates(settings.costs.redo_us_per_row, settings.costs.job_us_per_row, settings.costs.job_us),
            replica,
            self.margin_us,
            [who for who in self.addresses(node) if who != address(node, replica)],
            settings.checkpoint_us,
        )


def address(node: str, replica: int = 1) -> str:
    return f"{node}/{replica}"


def client(output: str) -> str:
    """The address of the client that reads an output."""
    return f"client:{output}"
