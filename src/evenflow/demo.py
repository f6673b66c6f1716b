"""The demonstration: the intrusion example over generated packets, told in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from evenflow.engine.fold import Folded, fold

SECONDS = 60
RATE = 20_000


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr that takes the share done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda share: progress.update(task, completed=share)


def run() -> None:
    """Fold the example, print what came out, and fold it again another way to show that nothing changes."""
    from evenflow.queries import intrusion

    console = Console()
    console.print("[bold]Evenflow[/bold]: three monitors watch a network; who is scanning ports?\n")
    console.print(intrusion.net.explain(), highlight=False)
    console.print()
    inputs = intrusion.inputs(seed=1, seconds=SECONDS, rate=RATE)
    packets = sum(frame.height for frame in inputs.values())
    start = time.perf_counter()
    with progress_bar(f"folding {packets:,} packets") as progress:
        results = fold(intrusion.net, inputs, progress=progress)
    seconds = time.perf_counter() - start
    console.print(_table(results["scans"]))
    counts = " and ".join(f"{frame.height:,} of [bold]{name}[/bold]" for name, frame in results.items())
    rate = packets / seconds / 1e6
    console.print(f"{packets:,} packets gave stable rows, {counts}, in {seconds:.1f} s ({rate:.1f} M packets/s).")
    with progress_bar("once more, with buckets of 3 s instead of 100 ms") as progress:
        again = fold(intrusion.net, inputs, bucket="3s", progress=progress)
    console.print(f"The same rows, bit for bit: [bold]{_same(results, again)}[/bold].")


def _same(one: Folded, other: Folded) -> str:
    return "yes" if all(one[name].equals(other[name]) for name in one) else "NO"


def _table(scans: pl.DataFrame) -> Table:
    """Each scan as a stretch of time with the most ports seen in one second."""
    table = Table(title="Hosts that knocked on many ports", caption="stable rows of the output 'scans', by host")
    for name in ("host", "seen", "windows", "most ports in 1 s", "packets"):
        table.add_column(name, justify="left" if name == "host" else "right", no_wrap=True)
    by_host = scans.group_by("src", maintain_order=True).agg(
        pl.col("window_start").min(),
        pl.col("window_end").max(),
        pl.len().alias("windows"),
        pl.col("ports").max(),
        pl.col("n").sum(),
    )
    for src, first, last, windows, ports, n in by_host.iter_rows():
        table.add_row(src, f"{first / 1e6:.1f} – {last / 1e6:.1f} s", str(windows), str(ports), f"{n:,}")
    return table
