"""Deployment: where a network's operators run, and how each node behaves in a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from evenflow.operators.errors import DeclarationError, nearest
from evenflow.operators.plan import Plan
from evenflow.operators.times import readable
from evenflow.queries.budget import share
from evenflow.queries.compile import compile_plan
from evenflow.queries.durations import Duration, microseconds
from evenflow.queries.explain import explain
from evenflow.queries.network import Network
from evenflow.queries.stream import Stream

Policy = Literal["suspend", "delay", "process"]
Reconcile = Literal["checkpoint", "undo", "auto"]
Replay = Literal["local", "spark", "auto"]


@dataclass(frozen=True, slots=True, eq=False)
class NodeSettings:
    """One node: the streams it was given, its delay threshold X and its choices."""

    name: str
    streams: tuple[int, ...]
    x_us: int | None
    replicas: int
    reconcile: Reconcile
    replay: Replay
    on_failure: Policy
    on_stabilization: Policy


class Deployment:
    """A network placed on nodes.

    >>> import polars as pl
    >>> net = Network("doc")
    >>> a = net.source("a", {"v": pl.Int64})
    >>> big = a.filter(pl.col("v") > 9)
    >>> _ = big.output("big")
    >>> app = Deployment(net)
    >>> app.node("edge", [big], x="1s")
    >>> app.placement()
    {'edge': (1,)}
    """

    def __init__(self, network: Network, bucket: Duration = "100ms") -> None:
        self.network = network
        self.bucket_us = microseconds(bucket, "Deployment: bucket")
        self.nodes: dict[str, NodeSettings] = {}
        self.deadlines: dict[str, int] = {}

    def node(
        self,
        name: str,
        streams: Sequence[Stream],
        x: Duration | None = None,
        *,
        replicas: int = 1,
        reconcile: Reconcile = "auto",
        replay: Replay = "local",
        on_failure: Policy = "process",
        on_stabilization: Policy = "process",
    ) -> None:
        """Run these streams' operators, and every one above them that no other node has, on one node."""
        if name in self.nodes:
            raise DeclarationError(f"node {name!r} is declared twice")
        if not streams:
            raise DeclarationError(f"node {name!r}: name at least one stream that it makes")
        for stream in streams:
            self._check_stream(name, stream)
        if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 1:
            raise DeclarationError(f"node {name!r}: replicas={replicas!r} must be a whole number from 1 on")
        _choice(name, "reconcile", reconcile, get_args(Reconcile))
        _choice(name, "replay", replay, get_args(Replay))
        _choice(name, "on_failure", on_failure, get_args(Policy))
        _choice(name, "on_stabilization", on_stabilization, get_args(Policy))
        x_us = None if x is None else microseconds(x, f"node {name!r}: x")
        numbers = tuple(stream.number for stream in streams)
        self.nodes[name] = NodeSettings(name, numbers, x_us, replicas, reconcile, replay, on_failure, on_stabilization)

    def deadline(self, output: str, budget: Duration) -> None:
        """An end-to-end budget for an output, from which the nodes on its path get their X."""
        if output not in self.network.outputs:
            hint = nearest(output, self.network.outputs)
            raise DeclarationError(f"deadline: there is no output {output!r}; {hint}")
        self.deadlines[output] = microseconds(budget, f"deadline of {output!r}")

    def placement(self) -> dict[str, tuple[int, ...]]:
        """The operators of each node, by stream number; raises where the deployment is not complete."""
        self.network.check()
        if not self.nodes:
            raise DeclarationError("Deployment: there is no node; add one with app.node(name, [streams], x=...)")
        owner = {number: name for name, node in self.nodes.items() for number in node.streams}
        for name, node in self.nodes.items():
            for number in node.streams:
                self._claim(name, number, owner)
        self._check_complete(owner)
        self._check_loop_free(owner)
        return {name: tuple(sorted(n for n, o in owner.items() if o == name)) for name in self.nodes}

    def plans(self) -> dict[str, Plan]:
        """Each node's compiled plan. A stream that another node or a client reads leaves through an SOutput."""
        placement = self.placement()
        return {name: self._plan(set(numbers)) for name, numbers in placement.items()}

    def thresholds(self) -> dict[str, int]:
        """Each node's X in microseconds: as given, or its share of the budgets of the outputs behind it."""
        placement = self.placement()
        owner = {number: name for name, numbers in placement.items() for number in numbers}
        budgets = {
            output: (owner[self.network.outputs[output].number], budget_us)
            for output, budget_us in self.deadlines.items()
        }
        return share(self._reads(owner), {name: node.x_us for name, node in self.nodes.items()}, budgets)

    def explain(self) -> str:
        """Every node's settings and plan in words."""
        parts = []
        thresholds = self.thresholds()
        for name, plan in self.plans().items():
            node = self.nodes[name]
            x = readable(thresholds[name])
            head = (
                f"node {name}: X = {x}, replicas {node.replicas}, reconcile {node.reconcile}, replay {node.replay}, "
                f"{node.on_failure} in failure, {node.on_stabilization} in stabilization"
            )
            parts.append(head + "\n" + "\n".join("  " + line for line in explain(name, plan).splitlines()[1:]))
        return "\n".join(parts)

    def _plan(self, placed: set[int]) -> Plan:
        nodes = self.network.nodes
        outputs = {name: number for name, number in self.network.output_numbers.items() if number in placed}
        for node in nodes:
            if node.number not in placed:
                for number in node.inputs:
                    if number in placed:
                        outputs.setdefault(self._stream_name(number), number)
        return compile_plan(nodes, outputs, placed)

    def _stream_name(self, number: int) -> str:
        """What a stream between nodes is called: its name, unless an output of another stream has it."""
        name = self.network.nodes[number].name
        taken = self.network.outputs.get(name)
        return name if taken is None or taken.number == number else f"{name}#{number}"

    def _check_stream(self, name: str, stream: Stream) -> None:
        if stream.network is not self.network:
            raise DeclarationError(f"node {name!r}: {stream.name!r} is a stream of another network")
        if self.network.nodes[stream.number].operator is None:
            raise DeclarationError(f"node {name!r}: {stream.name!r} is a source; place the operators that read it")
        for other in self.nodes.values():
            if stream.number in other.streams:
                raise DeclarationError(
                    f"node {name!r}: {stream.name!r} is placed on node {other.name!r} already; "
                    f"an operator runs on one node"
                )

    def _claim(self, name: str, number: int, owner: dict[int, str]) -> None:
        """Give a node every operator above one of its streams that is not claimed yet."""
        todo = list(self.network.nodes[number].inputs)
        while todo:
            above = todo.pop()
            if self.network.nodes[above].operator is None or above in owner:
                continue
            owner[above] = name
            todo += self.network.nodes[above].inputs

    def _check_complete(self, owner: Mapping[int, str]) -> None:
        for name, stream in self.network.outputs.items():
            if self.network.nodes[stream.number].operator is None:
                raise DeclarationError(
                    f"Deployment: output {name!r} is the source {stream.name!r} itself, which no node makes; "
                    f"give it an operator, such as net.union({stream.name}).output({name!r})"
                )
            if stream.number not in owner:
                raise DeclarationError(
                    f"Deployment: output {name!r} is on no node; place its stream {stream.name!r} with app.node(...)"
                )
        budgeted = self.network.upstream([self.network.outputs[name].number for name in self.deadlines])
        on_a_path = {owner[number] for number in budgeted if number in owner}
        for settings in self.nodes.values():
            if settings.x_us is None and settings.name not in on_a_path:
                raise DeclarationError(
                    f"node {settings.name!r}: say x=, the longest that an answer may be held back, "
                    f"or set a budget with app.deadline(...) for an output behind it"
                )

    def _reads(self, owner: Mapping[int, str]) -> dict[str, set[str]]:
        """The nodes that each node reads."""
        reads: dict[str, set[str]] = {name: set() for name in self.nodes}
        for number, name in owner.items():
            reads[name] |= {owner[i] for i in self.network.nodes[number].inputs if i in owner} - {name}
        return reads

    def _check_loop_free(self, owner: Mapping[int, str]) -> None:
        """Streams have no loops; nodes could have, if one's operators were both above and below another's."""
        reads = self._reads(owner)
        done: set[str] = set()
        while len(done) < len(reads):
            ready = [name for name in reads if name not in done and reads[name] <= done]
            if not ready:
                stuck = sorted(reads.keys() - done)
                raise DeclarationError(f"Deployment: the nodes {stuck} feed each other in a loop; place them otherwise")
            done.update(ready)


def _choice(node: str, argument: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise DeclarationError(f"node {node!r}: {argument}={value!r} is not known; {nearest(str(value), known)}")
