"""The facts of a simulated run as plain values: what ``evenflow simulate --json`` prints and its tables show.

Times are virtual, in microseconds, like ``tuple_time``; ``start_us`` is the one at which the run began.
"""

from __future__ import annotations

from typing import Any

from evenflow.engine.linear import Tentative
from evenflow.engine.simulator.faults import Fault, Skew, Slow
from evenflow.engine.simulator.result import Result
from evenflow.engine.simulator.seen import allowance_us
from evenflow.operators.items import Undo

CONDITIONS = ("REPLAY_FAILED", "SKEW", "OVERLOADED", "CAUGHT_UP", "BLOCKED", "UNBLOCKED")
"""The control items that tell of a condition; the others tell of states."""


def facts(result: Result, name: str) -> dict[str, Any]:
    """Everything about a run but its rows."""
    run = result.run
    return {
        "network": name,
        "seed": run.seed,
        "start_us": run.start_us,
        "stopped_us": run.stopped_us,
        "finished": run.finished,
        "faults": [_fault(fault, run.start_us) for fault in run.faults],
        "outputs": {output: _output(result, output) for output in run.shown},
        "states": result.states().to_dicts(),
        "output_states": result.output_states().to_dicts(),
        "controls": result.controls.to_dicts(),
        "redos": result.redos.to_dicts(),
        "rejected": {source: rows.height for source, rows in result.rejected.items()},
        "violations": list(result.violations),
    }


def _fault(fault: Fault, start_us: int) -> dict[str, Any]:
    known: dict[str, Any] = {"kind": type(fault).__name__.lower(), "where": fault.where}
    if isinstance(fault, Skew):
        return known | {"start_us": None, "end_us": None, "by_us": fault.by_us}
    begin, end = fault.span_us
    by_us = fault.by_us if isinstance(fault, Slow) else None
    return known | {"start_us": start_us + begin, "end_us": start_us + end, "by_us": by_us}


def _output(result: Result, output: str) -> dict[str, Any]:
    items = result.items(output)
    tentative = [(time_us, item) for time_us, item in items if isinstance(item, Tentative)]
    undos = [time_us for time_us, item in items if isinstance(item, Undo)]
    return {
        "stable_rows": result.stable(output).height,
        "tentative_rows": result.n_tentative(output),
        "missing": sorted(set().union(*(item.missing for _, item in tentative))),
        "first_tentative_us": tentative[0][0] if tentative else None,
        "undos": len(undos),
        "last_undo_us": undos[-1] if undos else None,
        "delay_new_us": result.delay_new(output),
        "delay_allowed_us": allowance_us(result.run, output),
        "delay_promised": _promised(result, output),
    }


def _promised(result: Result, output: str) -> bool:
    """Whether X binds: no operator on the way blocks, and no policy suspends."""
    layout = result.run.layout
    nodes = {node for path in layout.paths(output) for node in path[1:]}
    choices = [layout.choices[node] for node in nodes]
    suspends = any("suspend" in (choice.on_failure, choice.on_stabilization) for choice in choices)
    return not suspends and not any(part.blocking for node in nodes for part in layout.plans[node].fragments)
