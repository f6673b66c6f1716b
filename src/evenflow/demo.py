"""The demonstration: one of three monitors is cut off for ten seconds, in virtual time; what came out is told."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evenflow.corrections import Correction, corrections
from evenflow.engine.fold import Folded, fold
from evenflow.engine.linear import Stable, Tentative
from evenflow.engine.simulator.faults import Cut
from evenflow.engine.simulator.result import Result
from evenflow.engine.simulator.simulate import simulate
from evenflow.facts import facts
from evenflow.operators.items import RecDone, Undo
from evenflow.operators.times import readable
from evenflow.queries.deployment import Deployment
from evenflow.story import STATE_STYLES
from evenflow.terminal import plain_warnings, seconds

SECONDS, RATE, SEED = 30, 2_000, 1
LOST, FROM_S, TO_S = "monitor2", 5, 15
HEALED_US = TO_S * 1_000_000
KEYS = ("window_start", "window_end", "src")


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The run that is told, and the answer it is held against."""

    app: Deployment
    packets: int
    ports: int
    """So many in a second are a scan."""
    result: Result
    expected: Folded
    seconds: float

    def even(self, output: str) -> bool:
        """Whether the stable rows are those of a fold without failures, bit for bit."""
        return self.result.stable(output).equals(self.expected[output])


def run() -> bool:
    """Simulate the example with a failure and tell what its clients saw; whether it came out even."""
    done = shown()
    tell(Console(highlight=False), done)
    return not done.result.violations and all(map(done.even, done.expected))


def shown() -> Shown:
    """The example with its failure, and without."""
    from evenflow.queries import intrusion

    start = time.perf_counter()
    app = Deployment(intrusion.net, bucket="100ms")
    app.node("edge", [intrusion.packets], x="1s")
    app.node("site", [intrusion.scans], x="2s")
    inputs = intrusion.inputs(SEED, SECONDS, RATE)
    with plain_warnings(), Console(stderr=True).status("simulating"):
        result = simulate(app, inputs, [Cut(LOST, f"{FROM_S}s", f"{TO_S}s")], SEED)
        expected = fold(intrusion.net, inputs)
    packets = sum(frame.height for frame in inputs.values())
    return Shown(app, packets, intrusion.PORTS_SUSPICIOUS, result, expected, time.perf_counter() - start)


def tell(console: Console, shown: Shown) -> None:
    """The story, in the order in which things happen to a reader."""
    _setting(console, shown)
    console.print(timeline(shown.result))
    _changes(console, shown.result)
    _verdict(console, shown)


def _setting(console: Console, shown: Shown) -> None:
    x = {name: readable(x_us) for name, x_us in shown.app.thresholds().items()}
    nodes = ", then ".join(f"[bold]{name}[/bold] (X = {bound})" for name, bound in x.items())
    console.print("[bold]Three monitors watch a network. Who is scanning ports?[/bold]\n")
    console.print(
        f"{shown.packets:,} packets in {SECONDS} s of virtual time go through two nodes: {nodes}. "
        f"The output [bold]busy[/bold] has a row for every host and window of one second, every half a second; "
        f"[bold]scans[/bold] has those with {shown.ports} ports or more. "
        f"X is how long a node may hold an answer back.\n"
    )
    console.print(
        f"From {FROM_S} s to {TO_S} s, {LOST} is cut off. Each node waits for it somewhat less than its X; then it "
        f"is in [red]UP_FAILURE[/red] and goes on without: what comes out is [yellow]tentative[/yellow] and says what "
        f"it lacks. When {LOST} is back, with all it saw meanwhile, nodes correct ([yellow]STABILIZATION[/yellow]) "
        f"until everything is [green]STABLE[/green].\n"
    )


def timeline(result: Result) -> Table:
    """What happened when, as the client of ``scans`` and an onlooker saw it."""
    table = Table(title="What came out when: the output scans", title_justify="left", show_edge=False)
    for name in ("time", "what", "row: number, window, host"):
        table.add_column(name, justify="right" if name == "time" else "left", no_wrap=True)
    events = sorted([*_faults(), *_states(result), *_items(result)], key=lambda event: event[0])
    for time_us, what, row in events:
        table.add_row(seconds(time_us), what, row)
    return table


def _faults() -> Iterator[tuple[int, str, str]]:
    yield FROM_S * 1_000_000, f"[bold]{LOST} is cut off[/bold]", ""
    yield HEALED_US, f"[bold]{LOST} is back[/bold]", ""


def _states(result: Result) -> Iterator[tuple[int, str, str]]:
    for time_us, node, _, state in result.states().iter_rows():
        if time_us > result.run.start_us:
            yield time_us, f"{node}: [{STATE_STYLES[state]}]{state}[/]", ""


def _items(result: Result) -> Iterator[tuple[int, str, str]]:
    tentative = corrected = 0
    correcting = False
    for time_us, item in result.items("scans"):
        match item:
            case Tentative(rows, missing):
                tentative += rows.height
                lacks = f"[yellow]tentative[/yellow], lacks {', '.join(sorted(missing))}"
                yield from ((time_us, lacks, _row(row)) for row in rows.iter_rows(named=True))
            case Undo(last_id):
                yield time_us, f"[red]undo[/red]: forget all after #{last_id}", f"{tentative} tentative rows go"
                tentative, corrected, correcting = 0, 0, True
            case Stable(rows) if correcting:
                corrected += rows.height
            case RecDone():
                yield time_us, "[green]stable[/green], end of the correction", f"{corrected} rows instead: see below"
                correcting = False
            case Stable(rows):
                yield from ((time_us, "[green]stable[/green]", _row(row)) for row in rows.iter_rows(named=True))
            case _:
                pass


def _row(row: Mapping[str, Any]) -> str:
    return f"#{row['tuple_id']:<2} {_window(row)} {row['src']} {row['ports']:>3} ports"


def _window(row: Mapping[str, Any]) -> str:
    return f"{row['window_start'] / 1e6:.1f}–{row['window_end'] / 1e6:.1f} s".rjust(11)


def _changes(console: Console, result: Result) -> None:
    """What the correction did to ``scans``, row by row, and to ``busy``, counted."""
    for correction in corrections(result.items("scans")):
        console.print()
        console.print(_correction_table(correction))
    counts = change_counts(result, "busy")
    console.print(
        f"\nOf the {result.n_tentative('busy'):,} tentative rows of [bold]busy[/bold], {counts['same']:,} were right "
        f"already, {counts['changed']:,} changed and {counts['removed']:,} were withdrawn; "
        f"{counts['added']:,} rows that had been missing came."
    )


def change_counts(result: Result, output: str) -> dict[str, int]:
    """How many rows the corrections of an output left the same, changed, added and removed."""
    changes = [change for c in corrections(result.items(output)) for change in c.compared(KEYS)["change"]]
    return {change: changes.count(change) for change in ("same", "changed", "added", "removed")}


def _correction_table(correction: Correction) -> Table:
    title = f"What the correction at {seconds(correction.time_us)} changed in scans: tentative → stable"
    table = Table(title=title, title_justify="left", show_edge=False)
    for name in ("window", "host", "ports", "packets", ""):
        table.add_column(name, justify="right" if name in ("window", "ports", "packets") else "left", no_wrap=True)
    for row in correction.compared(KEYS).iter_rows(named=True):
        cells = [f"{_cell(row[f'{name}_before'])} → {_cell(row[name])}" for name in ("ports", "n")]
        note = {"added": "missed until now", "removed": "a false alarm"}.get(row["change"], "")
        table.add_row(_window(row).strip(), row["src"], *cells, note)
    return table


def _cell(value: int | None) -> str:
    return ("–" if value is None else str(value)).rjust(3)


def _verdict(console: Console, shown: Shown) -> None:
    result = shown.result
    known = facts(result, shown.app.network.name)
    table = Table(title="In the end", title_justify="left", show_edge=False)
    for name in ("output", "largest delay of a new row", "allowed", "undos", "stable rows", "as ef.fold gives"):
        table.add_column(name, justify="left" if name in ("output", "as ef.fold gives") else "right")
    for name, output in known["outputs"].items():
        table.add_row(
            name,
            seconds(output["delay_new_us"]),
            seconds(output["delay_allowed_us"]),
            str(output["undos"]),
            f"{output['stable_rows']:,}",
            "[green]yes, bit for bit[/green]" if shown.even(name) else "[red]NO[/red]",
        )
    console.print()
    console.print(table)
    stable_us = max(change["time_us"] for change in known["states"])
    console.print(
        f"\nAll nodes were STABLE {seconds(stable_us, HEALED_US)} after {LOST} was back. "
        f"[bold]ef.fold[/bold] is the same network over the same packets without a failure. "
        f"Broken invariants: {len(result.violations) or 'none'}."
    )
    for violation in result.violations:
        console.print(f"  {escape(violation)}", soft_wrap=True)
    console.print(f"The run and the comparison took {shown.seconds:.1f} s.\n")
    again = f"evenflow simulate queries/intrusion.py --cut {LOST}@{FROM_S}s..{TO_S}s --plot out.png"
    console.print(f"Try your own: {again}", soft_wrap=True)
