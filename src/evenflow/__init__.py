"""Evenflow: a Borealis-style stream engine.

It answers within a delay bound while inputs are missing, says which answers are tentative, and makes every answer
stable once the failure heals.

>>> import polars as pl
>>> import evenflow as ef
>>> net = ef.Network("sensors")
>>> heat = net.source("heat", {"room": pl.String, "celsius": pl.Float64})
>>> _ = heat.window("1m", by="room").agg(mean=ef.mean("celsius")).output("means")
>>> rows = pl.DataFrame({"tuple_time": [0, 30_000_000], "room": ["hall", "hall"], "celsius": [20.0, 22.0]})
>>> ef.fold(net, {"heat": rows})["means"].select("room", "mean").rows()
[('hall', 21.0)]
"""

import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

# Read by Polars at each group_by: its partitioned path adds floats up in an order that varies (docs/decisions).
_os.environ["POLARS_NO_PARTITION"] = "1"

from evenflow.engine.fold import Folded, fold
from evenflow.engine.linear import Stable, Tentative
from evenflow.engine.simulator.faults import Crash, Cut, Partition, Pause, Skew, Slow, Stall
from evenflow.engine.simulator.result import Result
from evenflow.engine.simulator.simulate import simulate
from evenflow.operators.aggregates import Aggregate
from evenflow.operators.aggregates import Count as count  # noqa: N813
from evenflow.operators.aggregates import First as first  # noqa: N813
from evenflow.operators.aggregates import Last as last  # noqa: N813
from evenflow.operators.aggregates import Max as max  # noqa: N813
from evenflow.operators.aggregates import Mean as mean  # noqa: N813
from evenflow.operators.aggregates import Min as min  # noqa: N813
from evenflow.operators.aggregates import Std as std  # noqa: N813
from evenflow.operators.aggregates import Sum as sum  # noqa: N813
from evenflow.operators.errors import (
    DeclarationError,
    EvenflowError,
    InputError,
    InvariantError,
    NotDeterministicError,
    OperatorError,
)
from evenflow.operators.fingerprint import kernel_fingerprint
from evenflow.operators.grouping import Groups
from evenflow.operators.items import Boundary, RecDone, TupleType, Undo
from evenflow.operators.operator import Operator, Step
from evenflow.queries.deployment import Deployment
from evenflow.queries.network import Network
from evenflow.queries.stream import Stream

if _TYPE_CHECKING:
    from evenflow.engine.runtime.backfill.backfill import Backfilled, backfill

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "Backfilled",
    "Boundary",
    "Crash",
    "Cut",
    "DeclarationError",
    "Deployment",
    "EvenflowError",
    "Folded",
    "Groups",
    "InputError",
    "InvariantError",
    "Network",
    "NotDeterministicError",
    "Operator",
    "OperatorError",
    "Partition",
    "Pause",
    "RecDone",
    "Result",
    "Skew",
    "Slow",
    "Stable",
    "Stall",
    "Step",
    "Stream",
    "Tentative",
    "TupleType",
    "Undo",
    "backfill",
    "count",
    "first",
    "fold",
    "kernel_fingerprint",
    "last",
    "max",
    "mean",
    "min",
    "simulate",
    "std",
    "sum",
]


def __getattr__(name: str) -> _Any:
    """What few programs need is imported when it is asked for."""
    if name in ("Backfilled", "backfill"):
        from evenflow.engine.runtime.backfill import backfill

        return getattr(backfill, name)
    raise AttributeError(f"module 'evenflow' has no attribute {name!r}")
