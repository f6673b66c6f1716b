"""A simulated run told in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evenflow.facts import CONDITIONS
from evenflow.operators.times import readable
from evenflow.terminal import seconds

STATE_STYLES = {"STABLE": "green", "UP_FAILURE": "red", "STABILIZATION": "yellow"}
CHANGES_MAX = 12
"""Longer timelines are shortened in the middle."""


def tell(console: Console, known: Mapping[str, Any]) -> None:
    """Print the facts of a run."""
    begin = known["start_us"]
    length = seconds(known["stopped_us"], begin)
    console.print(f"[bold]{escape(known['network'])}[/bold], seed {known['seed']}: {length} of virtual time")
    for fault in known["faults"]:
        console.print(f"  {escape(fault_text(fault, begin))}")
    console.print(outputs_table(known["outputs"]))
    console.print(states_table(known["states"], begin))
    _tell_redos(console, known)
    _tell_conditions(console, known)
    if not known["finished"]:
        console.print(f"[yellow]stopped after {length}, before the run had come to rest[/yellow]")
    _tell_violations(console, known["violations"])


def fault_text(fault: Mapping[str, Any], begin: int) -> str:
    """``cut monitor2 from 5s to 15s``"""
    kind, where = fault["kind"], fault["where"]
    if kind == "skew":
        by_us = fault["by_us"]
        return f"skew {where}: its clock is {readable(abs(by_us))} {'ahead' if by_us >= 0 else 'behind'}"
    span = f"from {_point(fault['start_us'] - begin)} to {_point(fault['end_us'] - begin)}"
    slower = f", {readable(fault['by_us'])} slower" if fault["by_us"] is not None else ""
    return f"{kind} {where} {span}{slower}"


def _point(time_us: int) -> str:
    return readable(time_us) if time_us else "0s"


def outputs_table(outputs: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(title="What the clients got", title_justify="left")
    for name, justify in (
        ("output", "left"),
        ("stable rows", "right"),
        ("tentative", "right"),
        ("lacking", "left"),
        ("largest delay", "right"),
        ("allowed", "right"),
        ("undos", "right"),
    ):
        table.add_column(name, justify="left" if justify == "left" else "right")
    for name, output in outputs.items():
        late = output["delay_new_us"] > output["delay_allowed_us"]
        delay = seconds(output["delay_new_us"])
        table.add_row(
            escape(name),
            f"{output['stable_rows']:,}",
            f"{output['tentative_rows']:,}",
            escape(", ".join(output["missing"])) or "–",
            f"[red]{delay}[/red]" if late else delay,
            seconds(output["delay_allowed_us"]) if output["delay_promised"] else "no bound",
            str(output["undos"]),
        )
    return table


def states_table(states: list[dict[str, Any]], begin: int) -> Table:
    """One line a node, or a replica: its states, each from when."""
    table = Table(title="States", title_justify="left")
    table.add_column("node")
    table.add_column("from when it was in which state", overflow="fold")
    several = {change["node"] for change in states if change["replica"] > 1}
    for node, replica in dict.fromkeys((change["node"], change["replica"]) for change in states):
        changes = [change for change in states if (change["node"], change["replica"]) == (node, replica)]
        parts = [_state(change, begin) for change in changes]
        if len(parts) > CHANGES_MAX:
            half = CHANGES_MAX // 2
            parts = [*parts[:half], f"… {len(parts) - 2 * half} more …", *parts[-half:]]
        table.add_row(escape(f"{node}/{replica}" if node in several else node), " → ".join(parts))
    return table


def _state(change: Mapping[str, Any], begin: int) -> str:
    style = STATE_STYLES[change["state"]]
    at = "" if change["time_us"] == begin else f"{seconds(change['time_us'], begin)} "
    return f"{at}[{style}]{change['state']}[/{style}]"


def _tell_redos(console: Console, known: Mapping[str, Any]) -> None:
    for (node, method, executor), done in _grouped(known["redos"], "node", "method", "executor").items():
        rows = sum(redo["rows"] for redo in done)
        fell_back = sum(redo["fell_back"] for redo in done)
        back = f"; {fell_back} fell back to this" if fell_back else ""
        last = seconds(done[-1]["time_us"], known["start_us"])
        where = "in the node" if executor == "local" else f"on {executor.capitalize()}"
        how = f"{_often(done)} {where} ({method})"
        text = f"redo: {node} reconciled {how}, {rows:,} rows folded again, done at {last}{back}"
        console.print(escape(text), soft_wrap=True)


def _tell_conditions(console: Console, known: Mapping[str, Any]) -> None:
    found = [control for control in known["controls"] if control["kind"] in CONDITIONS]
    for (kind, node, stream), same in _grouped(found, "kind", "node", "stream").items():
        first = seconds(same[0]["time_us"], known["start_us"])
        when = f"at {first}" if len(same) == 1 else f"{_often(same)}, first at {first}"
        where = f"{node}, {stream}" if stream else node
        detail = f": {same[0]['detail']}" if same[0]["detail"] else ""
        console.print(f"[bold]{kind}[/bold] {escape(f'({where}) {when}{detail}')}", soft_wrap=True)


def _grouped(found: Sequence[dict[str, Any]], *columns: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in found:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups


def _often(found: Sequence[object]) -> str:
    return "once" if len(found) == 1 else f"{len(found)} times"


def _tell_violations(console: Console, violations: Sequence[str]) -> None:
    if not violations:
        text = "[green]all invariants hold[/green]: every stable row is that of a run without failures"
        console.print(text, soft_wrap=True)
        return
    console.print(f"[bold red]{len(violations)} broken invariants[/bold red]")
    for violation in violations:
        console.print(f"  {escape(violation)}", soft_wrap=True)
