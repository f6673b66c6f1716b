"""Random layouts, inputs, settings and faults for campaigns, each from one seed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import evenflow as ef
from evenflow.engine.publisher import Replay
from evenflow.engine.simulator.checks import check
from evenflow.engine.simulator.faults import Fault
from evenflow.engine.simulator.layout import Layout, NodeChoices, Settings
from evenflow.engine.simulator.run import Run, run
from evenflow.engine.simulator.seen import n_tentative
from evenflow.engine.simulator.simulate import deployed
from evenflow.engine.simulator.world import Costs
from evenflow.operators.errors import ReplayError
from evenflow.reconcile.job import InProcess, RedoJob, Replayed
from list_plans import KERNEL, Distinct, Filter, Join, ListPlan, Pass, Running, Window, fold_layout
from recipes import random_case

MS = 1_000


class Flaky(InProcess[Any]):
    """Runs jobs of redo in one step, and now and then fails."""

    def __init__(self, rng: random.Random, failing: float) -> None:
        self._rng = rng
        self._failing = failing

    def run(self, job: RedoJob[Any]) -> Replayed[Any]:
        if self._rng.random() < self._failing:
            raise ReplayError("the workers are gone")
        return super().run(job)


@dataclass(frozen=True)
class Schedule:
    """One case: what runs, and what goes wrong."""

    seed: int
    layout: Layout[Any]
    faults: tuple[Fault, ...]
    expected: dict[str, Any]
    failing: float = 0.0
    """How many of the jobs of redo fail."""

    def run(self, faults: tuple[Fault, ...] | None = None) -> tuple[Run[Any], list[str]]:
        executor = Flaky(random.Random(self.seed), self.failing)
        done = run(self.layout, self.faults if faults is None else faults, self.seed, executor=executor)
        return done, check(done, self.expected)


def random_settings(rng: random.Random) -> Settings:
    """Everything that a run's timing depends on."""
    return Settings(
        bucket_us=rng.choice([20, 50, 100, 100, 250]) * MS,
        boundary_us=rng.choice([20, 50, 100, 100, 200]) * MS,
        heartbeat_us=rng.choice([50, 100, 100, 200]) * MS,
        link_us=rng.choice([1, 5, 10, 30]) * MS,
        processing_us=rng.choice([0, 1, 5]) * MS,
        costs=Costs(rng.choice([0.1, 1.0, 1.0, 100.0, 1_000.0])),
        replay_speed=rng.choice([0.7, 2.0, 10.0, 10.0, 50.0]),
        replay=Replay(rng.choice([1, 3, 10, 8192]), rng.choice([1, 3, 10]), rng.choice([0, 0, 1, 5])),
        phases=rng.random() < 0.7,
    )


def random_choices(rng: random.Random, settings: Settings) -> NodeChoices:
    x_us = int(settings.timing.needed_us * 4 / 3 * rng.choice([1.2, 2, 3, 6])) + settings.timing.apart_us + 10 * MS
    policies = ["process", "process", "process", "delay", "delay", "suspend"]
    return NodeChoices(
        x_us, rng.choice(["checkpoint", "undo", "auto"]), rng.choice(policies[:-1]), rng.choice(policies)
    )


def random_faults(rng: random.Random, layout: Layout[Any], span_us: int) -> tuple[Fault, ...]:
    """Cuts of any length on sources and links, stalls, pauses, slow links and skewed clocks; some overlap."""
    links = [f"{a}->{'client' if b.startswith('client:') else b}" for a, b in layout.links()]
    sources = list(layout.sources)
    faults: list[Fault] = []
    if rng.random() < 0.85:
        start = rng.randrange(0, max(span_us // 2, 1))
        length = int(rng.uniform(1.2, 3) * sum(layout.choices[node].x_us for node in layout.plans)) + 500 * MS
        faults.append(ef.Cut(rng.choice(sources), start, start + length))
    for _ in range(rng.choice([0, 1, 2, 3, 4])):
        start = rng.randrange(0, max(span_us - 500 * MS, 1))
        length = int(rng.choice([0.005, 0.05, 0.3, 1, 2, 4]) * rng.uniform(0.5, 1.5) * 1_000_000)
        kind = rng.random()
        if kind < 0.55:
            faults.append(ef.Cut(rng.choice(sources), start, start + length))
        elif kind < 0.72:
            faults.append(ef.Cut(rng.choice(links), start, start + length))
        elif kind < 0.82:
            faults.append(ef.Stall(rng.choice(sources), start, start + length))
        elif kind < 0.9:
            faults.append(ef.Pause(rng.choice(list(layout.plans)), start, start + min(length, 800 * MS)))
        elif kind < 0.96:
            faults.append(ef.Slow(rng.choice(links), start, start + length, rng.randrange(1, 1500) * MS))
        else:
            faults.append(ef.Skew(rng.choice(sources), rng.randrange(-100, 100) * MS))
    return tuple(faults)


def _operator(rng: random.Random) -> Pass:
    size = rng.choice([100, 250, 500, 1000]) * MS
    return rng.choice([Pass(), Filter(3), Window(size, size), Window(2 * size, size), Running(), Distinct(size)])


def _one_node(rng: random.Random, names: dict[int, str], n: int) -> dict[str, ListPlan]:
    plan = ListPlan(names)
    merged = plan.add(Pass(), *range(n))
    plan.outputs["a"] = plan.add(_operator(rng), merged)
    if rng.random() < 0.5:
        plan.outputs["b"] = plan.add(_operator(rng), plan.add(Filter(2), rng.randrange(n)))
    return {"main": plan}


def _inner_union(rng: random.Random, names: dict[int, str], n: int) -> dict[str, ListPlan]:
    plan = ListPlan(names)
    branches = [plan.add(Filter(rng.choice([2, 3, 7])), i) if rng.random() < 0.7 else i for i in range(n)]
    plan.outputs["a"] = plan.add(_operator(rng), plan.add(Pass(), *branches))
    if rng.random() < 0.5:
        plan.outputs["b"] = plan.add(_operator(rng), branches[0] if branches[0] >= n else plan.add(Pass(), 0))
    return {"main": plan}


def _joined(rng: random.Random, names: dict[int, str], n: int) -> dict[str, ListPlan]:
    plan = ListPlan(names)
    left = plan.add(Pass(), *range(n - 1))
    right = plan.add(Filter(3), n - 1) if rng.random() < 0.5 else n - 1
    plan.outputs["a"] = plan.add(Join(rng.choice([50, 300]) * MS), left, right)
    plan.outputs["b"] = plan.add(_operator(rng), left)
    return {"main": plan}


def _chain(rng: random.Random, names: dict[int, str], n: int) -> dict[str, ListPlan]:
    plans: dict[str, ListPlan] = {}
    stream: tuple[int, ...] = tuple(range(n))
    for i in range(rng.randint(2, 4)):
        plan = plans[f"n{i}"] = ListPlan(names)
        made = plan.add(Pass() if i == 0 else _operator(rng), *stream, name=f"mid{i}")
        plan.outputs[f"mid{i}"] = made
        stream = (made,)
    return plans


def _diamond(rng: random.Random, names: dict[int, str], n: int) -> dict[str, ListPlan]:
    left, right, below = ListPlan(names), ListPlan(names), ListPlan(names)
    one = left.add(_operator(rng), *range(n - 1), name="one")
    other = right.add(_operator(rng), n - 1, name="other")
    left.outputs["one"], right.outputs["other"] = one, other
    below.outputs["end"] = below.add(_operator(rng), below.add(Pass(), one, other))
    return {"left": left, "right": right, "below": below}


SHAPES: list[Callable[[random.Random, dict[int, str], int], dict[str, ListPlan]]] = [
    _one_node,
    _inner_union,
    _joined,
    _chain,
    _diamond,
]


def list_schedule(seed: int) -> Schedule:
    """The protocol on plain lists."""
    rng = random.Random(seed)
    n = rng.choice([2, 3])
    names = {i: f"s{i}" for i in range(n)}
    plans = rng.choice(SHAPES)(rng, names, n)
    span_us = rng.choice([2, 4, 8]) * 1_000_000
    sources = {}
    for i in range(n):
        count = rng.choice([0, 1, 3, 40, 150]) if rng.random() < 0.4 else rng.choice([60, 150])
        grain = rng.choice([1, 10 * MS, 50 * MS])
        stamps = sorted(rng.randrange(span_us) // grain * grain for _ in range(count))
        sources[f"s{i}"] = (i, [(t, rng.randrange(4), rng.randrange(1000), i, j) for j, t in enumerate(stamps)])
    settings = random_settings(rng)
    choices = {name: random_choices(rng, settings) for name in plans}
    read = {i for plan in plans.values() for i in plan.inputs}
    ends = {name: number for plan in plans.values() for name, number in plan.outputs.items() if number not in read}
    outputs = {name: next(p for p, plan in plans.items() if name in plan.outputs) for name in ends}
    layout: Layout[Any] = Layout(KERNEL, plans, choices, sources, outputs, settings)
    return Schedule(seed, layout, random_faults(rng, layout, span_us), fold_layout(layout))


def frame_schedule(seed: int) -> Schedule:
    """A random network of real operators, on one node or on two."""
    rng = random.Random(seed)
    net, inputs = random_case(seed, rows=100)
    app = ef.Deployment(net)
    union = next(stream for name, stream in net.outputs.items() if name == "all")
    settings = random_settings(rng)
    if rng.random() < 0.5:
        app.node("edge", [union], x="1s")
    app.node("main", [s for name, s in net.outputs.items() if name != "all" or "edge" not in app.nodes], x="1s")
    app.bucket_us = settings.bucket_us
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layout, _ = deployed(app, inputs, settings)
        expected = {name: rows.drop("tuple_id", "tuple_type") for name, rows in ef.fold(net, inputs).items()}
    layout = replace(layout, choices={name: random_choices(rng, settings) for name in layout.plans})
    span_us = max((int(frame["tuple_time"].max() or 0) for frame in inputs.values() if frame.height), default=0)
    return Schedule(seed, layout, random_faults(rng, layout, max(span_us, 1_000_000)), expected)


def replayed(schedule: Schedule) -> Schedule:
    """The same with redo in jobs elsewhere, on some nodes, at random costs; some of the jobs fail."""
    rng = random.Random(f"replay {schedule.seed}")
    layout = schedule.layout
    costs = replace(
        layout.settings.costs,
        job_us=rng.choice([1, 50, 300, 1_000, 3_000]) * MS,
        job_us_per_row=rng.choice([0.01, 1.0, 100.0]),
    )
    choices = {
        name: replace(choices, replay=rng.choice(["spark", "spark", "auto", "local"]))
        for name, choices in layout.choices.items()
    }
    layout = replace(layout, settings=replace(layout.settings, costs=costs), choices=choices)
    return replace(schedule, layout=layout, failing=rng.choice([0.0, 0.0, 0.3, 1.0]))


def replicated(schedule: Schedule) -> Schedule:
    """The same with two or three replicas of some nodes, and faults that hit single ones."""
    rng = random.Random(f"replicas {schedule.seed}")
    layout = schedule.layout
    choices = {name: replace(choices, replicas=rng.choice([1, 2, 2, 3])) for name, choices in layout.choices.items()}
    # While a slow link carries a replay, new rows wait behind it: nobody else is asked for tentative ones meanwhile.
    settings = replace(
        layout.settings,
        replay_speed=max(layout.settings.replay_speed, 10.0),
        checkpoint_us=rng.choice([100, 300, 1_000, 1_000, 5_000]) * MS,
    )
    layout = replace(layout, choices=choices, settings=settings)
    faults = [_single(rng, layout, fault) for fault in schedule.faults]
    return replace(schedule, layout=layout, faults=(*faults, *_crashes(rng, layout)))


def _crashes(rng: random.Random, layout: Layout[Any]) -> list[Fault]:
    """Crashes of replicas, nodes and sources, at any moment, and partitions of any set."""
    replicas = [who for node in layout.plans for who in layout.addresses(node)]
    known = [*replicas, *replicas, *layout.plans, *layout.sources]
    faults: list[Fault] = []
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        start = rng.randrange(1, 6_000 * MS)
        length = int(rng.choice([0.01, 0.2, 1, 3]) * rng.uniform(0.5, 1.5) * 1_000_000)
        if rng.random() < 0.7:
            faults.append(ef.Crash(rng.choice(known), start, start + length))
        else:
            faults.append(
                ef.Partition(frozenset(rng.sample(replicas, rng.randint(1, len(replicas)))), start, start + length)
            )
    return faults


def _single(rng: random.Random, layout: Layout[Any], fault: Fault) -> Fault:
    """A fault, or the same on one replica of the nodes that it names."""

    def one(name: str) -> str:
        known = layout.choices.get(name)
        return f"{name}/{rng.randint(1, known.replicas)}" if known is not None and rng.random() < 0.7 else name

    left, arrow, right = fault.where.partition("->")
    if not arrow and left in layout.sources and rng.random() < 0.5 and isinstance(fault, ef.Cut):
        left, arrow, right = left, "->", next(node for node in layout.plans if left in layout.upstream(node))
    return replace(fault, where=f"{one(left)}{arrow}{one(right)}")


def replicated_list_schedule(seed: int) -> Schedule:
    return replicated(list_schedule(seed))


def replicated_frame_schedule(seed: int) -> Schedule:
    return replicated(frame_schedule(seed))


def replayed_list_schedule(seed: int) -> Schedule:
    return replayed(list_schedule(seed))


def replayed_frame_schedule(seed: int) -> Schedule:
    return replayed(frame_schedule(seed))


def tentative_rows(done: Run[Any]) -> int:
    return sum(n_tentative(done, output) for output in done.shown)
