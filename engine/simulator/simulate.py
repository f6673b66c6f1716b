"""``simulate``: a deployment under faults, in virtual time, from one seed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from evenflow.engine.fold import admitted, fold
from evenflow.engine.simulator.checks import check
from evenflow.engine.simulator.faults import Fault
from evenflow.engine.simulator.layout import Layout, NodeChoices, Settings
from evenflow.engine.simulator.result import Result
from evenflow.engine.simulator.run import run
from evenflow.engine.simulator.world import Costs
from evenflow.operators.errors import DeclarationError
from evenflow.operators.items import HEADER
from evenflow.operators.kernel import FrameKernel
from evenflow.queries.deployment import Deployment, Policy, Reconcile, Replay
from evenflow.queries.durations import Duration, microseconds
from evenflow.queries.network import Network
from evenflow.reconcile.job import Executor

X = "2s"


def simulate(
    app: Deployment | Network,
    inputs: Mapping[str, pl.DataFrame],
    faults: Sequence[Fault] = (),
    seed: int = 0,
    *,
    until: Duration | None = None,
    x: Duration | None = None,
    bucket: Duration | None = None,
    reconcile: Reconcile | None = None,
    on_failure: Policy | None = None,
    on_stabilization: Policy | None = None,
    boundaries: Duration = "100ms",
    heartbeat: Duration = "100ms",
    link: Duration = "10ms",
    processing: Duration = "1ms",
    redo_cost: float = 1.0,
    replay: Replay | None = None,
    job: Duration = "500ms",
    job_cost: float = 0.5,
    spark: str | Executor[pl.DataFrame] | None = None,
    replay_speed: float = 10.0,
) -> Result:
    """What clients would see: ``simulate(app, inputs, faults=[Cut("monitor2", "5s", "15s")], seed=7)``.

    ``app`` is a deployment, or a network, which then is one node called ``main`` with the settings given here.
    ``processing`` is P, ``redo_cost`` the microseconds that folding a row again takes, ``replay_speed`` how much
    faster than live a link carries what was missed. The same seed gives the same run on any machine.

    Nodes with ``replay="spark"`` or ``"auto"`` let redo really run on the Spark master that ``spark`` names (None: this
    machine); in virtual time that takes ``job`` and ``job_cost`` microseconds a row.
    """
    if isinstance(app, Network):
        app = _alone(app, x, bucket, reconcile, replay, on_failure, on_stabilization)
    elif any(setting is not None for setting in (x, bucket, reconcile, replay, on_failure, on_stabilization)):
        raise DeclarationError("simulate: a Deployment has its own x, bucket and policies; set them there")
    settings = Settings(
        app.bucket_us,
        microseconds(boundaries, "simulate: boundaries"),
        microseconds(heartbeat, "simulate: heartbeat"),
        microseconds(link, "simulate: link"),
        microseconds(processing, "simulate: processing", zero=True),
        Costs(redo_cost, microseconds(job, "simulate: job", zero=True), job_cost),
        replay_speed,
    )
    layout, rejected = deployed(app, inputs, settings)
    until_us = None if until is None else microseconds(until, "simulate: until")
    done = run(layout, faults, seed, until_us, _executor(app, spark))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            name: rows.drop([column for column in HEADER if column != "tuple_time"])
            for name, rows in fold(app.network, inputs).items()
        }
    return Result(done, check(done, expected), expected, rejected)


def _executor(app: Deployment, spark: str | Executor[pl.DataFrame] | None) -> Executor[pl.DataFrame] | None:
    """Where redo runs that nodes hand out, if any may; it gets ready while the run goes on."""
    if all(node.replay == "local" for node in app.nodes.values()):
        return None
    if spark is None or isinstance(spark, str):
        from evenflow.engine.runtime.spark.executor import shared_executor

        spark = shared_executor(spark)
    spark.warm_up()
    return spark


def deployed(
    app: Deployment, inputs: Mapping[str, pl.DataFrame], settings: Settings
) -> tuple[Layout[pl.DataFrame], dict[str, pl.DataFrame]]:
    """A deployment with its input, laid out for the simulator, and the rows that sources refused."""
    network = app.network
    plans = app.plans()
    thresholds = app.thresholds()
    rows, rejected = admitted(network, inputs)
    choices = {
        name: NodeChoices(
            thresholds[name], node.reconcile, node.on_failure, node.on_stabilization, node.replay, node.replicas
        )
        for name, node in app.nodes.items()
    }
    outputs = {output: next(n for n, plan in plans.items() if output in plan.outputs) for output in network.outputs}
    sources = {name: (network.sources[name].number, part) for name, part in rows.items()}
    settings = replace(settings, bucket_us=app.bucket_us)
    return Layout(FrameKernel(), plans, choices, sources, outputs, settings), rejected


def _alone(
    network: Network,
    x: Duration | None,
    bucket: Duration | None,
    reconcile: Reconcile | None,
    replay: Replay | None,
    on_failure: Policy | None,
    on_stabilization: Policy | None,
) -> Deployment:
    """A network as one node called ``main``."""
    network.check()
    app = Deployment(network, bucket or "100ms")
    made = dict.fromkeys(stream.number for stream in network.outputs.values())
    streams = [next(s for s in network.outputs.values() if s.number == number) for number in made]
    app.node(
        "main",
        streams,
        x or X,
        reconcile=reconcile or "auto",
        replay=replay or "local",
        on_failure=on_failure or "process",
        on_stabilization=on_stabilization or "process",
    )
    return app
