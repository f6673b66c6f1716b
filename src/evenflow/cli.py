"""The command line: ``evenflow --help``."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Evenflow: a stream engine that answers in time and comes out even.",
)

File = Annotated[str, typer.Argument(metavar="FILE", help="A Python file that holds `app` or `net`, or FILE:name.")]
Several = list[str] | None
SPAN = "NAME@FROM..TO"


def _version(wanted: bool) -> None:
    if wanted:
        from evenflow import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    pass


@app.command()
def explain(
    file: File,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="A Mermaid flow chart instead of words.")] = False,
) -> None:
    """Show the compiled plan: fragments, and the SUnions and SOutputs that were put in.

    Example: evenflow explain queries/intrusion.py
    """
    from evenflow.query_file import load

    query = load(file)
    if mermaid:
        print(query.network.to_mermaid())
    else:
        print(query.deployment.explain() if query.deployment is not None else query.network.explain())


@app.command()
def fold(
    file: File,
    input: Annotated[list[str] | None, typer.Option(metavar="NAME=PATH", help="A source's recorded rows.")] = None,
    seed: Annotated[int, typer.Option(help="For the file's own inputs(seed), where no --input is given.")] = 0,
    bucket: Annotated[str, typer.Option(help="The SUnions' bucket.")] = "100ms",
    out: Annotated[Path | None, typer.Option(help="Write each output to this folder as Parquet.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a row on stdout.")] = False,
) -> None:
    """Fold a network over recorded input and give its stable rows: no failures, no clock.

    Example: evenflow fold queries/intrusion.py --seed 7 --out results
    """
    from evenflow.engine.fold import fold as run
    from evenflow.query_file import load, read_inputs
    from evenflow.terminal import plain_warnings, progress_bar

    query = load(file)
    inputs = read_inputs(query.network, input) if input else query.generated(seed)
    with plain_warnings(), progress_bar(f"folding {query.network.name}") as progress:
        results = run(query.network, inputs, bucket, progress=progress)
    for name, frame in results.items():
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(out / f"{name}.parquet")
            print(f"{name}: {frame.height} rows in {out / f'{name}.parquet'}", file=sys.stderr)
        elif as_json:
            for row in frame.iter_rows(named=True):
                print(
                    json.dumps({"output": name, **{key: _jsonable(value) for key, value in row.items()}}, default=str)
                )
        else:
            print(f"{name}: {frame.height} stable rows")
            print(frame)


def _jsonable(value: object) -> object:
    """JSON has no NaN and no infinity: they are written as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


@app.command()
def simulate(
    file: File,
    cut: Annotated[Several, typer.Option(metavar=SPAN, help="Nothing passes from a source, or on a link a->b.")] = None,
    stall: Annotated[Several, typer.Option(metavar=SPAN, help="A source is connected and sends nothing.")] = None,
    slow: Annotated[Several, typer.Option(metavar=f"{SPAN}+BY", help="A source or a link takes BY longer.")] = None,
    pause: Annotated[Several, typer.Option(metavar=SPAN, help="A node does nothing.")] = None,
    skew: Annotated[Several, typer.Option(metavar="NAME=BY", help="A source's clock is ahead by this much.")] = None,
    crash: Annotated[Several, typer.Option(metavar="NAME@AT[..RESTART]", help="A replica loses its memory.")] = None,
    partition: Annotated[Several, typer.Option(metavar="NAMES@FROM..TO", help="a,b against the rest.")] = None,
    seed: Annotated[int, typer.Option(help="One seed, one run; also for the file's own inputs(seed).")] = 0,
    input: Annotated[Several, typer.Option(metavar="NAME=PATH", help="A source's recorded rows.")] = None,
    until: Annotated[str | None, typer.Option(help="Stop at this virtual time, at rest or not.")] = None,
    x: Annotated[str | None, typer.Option(help="X, for a file that holds only a network.")] = None,
    bucket: Annotated[str | None, typer.Option(help="The bucket, for a file that holds only a network.")] = None,
    replay: Annotated[
        str | None, typer.Option(help="Where redo runs, for a file that holds only a network: local, spark or auto.")
    ] = None,
    spark: Annotated[str | None, typer.Option(metavar="MASTER", help="The Spark master that redo runs on.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the timeline: .png, .svg or .pdf.")] = None,
) -> None:
    """Run a deployment under faults in virtual time, show what its clients would see, and check the invariants.

    Times count from the start of the run; every fault option may be given several times. The exit code is 1 when an
    invariant is broken.

    Example: evenflow simulate queries/intrusion.py --cut monitor2@5s..15s --plot out.png
    """
    from evenflow import simulated

    faults = simulated.faults(cut or (), stall or (), slow or (), pause or (), skew or (), crash or (), partition or ())
    asked = simulated.Asked(file, faults, seed, input or (), until, x, bucket, replay, spark, plot)
    if not simulated.show(asked, as_json):
        raise typer.Exit(1)


@app.command()
def doctor(
    master: Annotated[str | None, typer.Option(help="Spark's master; without it, Spark within this machine.")] = None,
    java: Annotated[str, typer.Option(metavar="auto|bundled|PATH", help="The Java for Spark.")] = "auto",
    ntp: Annotated[Several, typer.Option(metavar="SERVER", help="An NTP server to ask: HOST or HOST:PORT.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data is to be kept.")] = None,
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Do not start Spark.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Look at this machine: packages, Java, Spark and its workers, ZeroMQ, clock and disk; and say what to do.

    The exit code is 1 when there is a problem; warnings are none.

    Example: evenflow doctor --ntp time.example.org --data results
    """
    from evenflow.doctor import show
    from evenflow.engine.runtime.doctor.examine import POOL, Asked

    if not show(Asked(master, java, ntp or POOL, data, spark=not no_spark), as_json):
        raise typer.Exit(1)


@app.command()
def backfill(
    file: File,
    out: Annotated[Path, typer.Option(help="Write each output to this folder as Parquet.")],
    input: Annotated[
        Several, typer.Option(metavar="NAME=PATH", help="A source's recorded rows: file or folder.")
    ] = None,
    seed: Annotated[int, typer.Option(help="For the file's own inputs(seed), where no --input is given.")] = 0,
    master: Annotated[str | None, typer.Option(help="A Spark master, such as spark://host:7077.")] = None,
    scratch: Annotated[Path | None, typer.Option(help="A folder that all workers share, for another master.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Run a whole network over recorded input as one batch on Spark: what the live engine emits as stable.

    Reads Parquet, CSV, JSON lines and Arrow; a folder's files are read in the order of their names.

    Example: evenflow backfill queries/intrusion.py --input monitor1=recorded/monitor1 --out results
    """
    from evenflow import backfilled

    backfilled.show(backfilled.Asked(file, out, input or (), seed, master, scratch), as_json)


@app.command()
def demo() -> None:
    """Cut one of three monitors off for ten seconds, in virtual time, and tell what came out.

    Example: evenflow demo
    """
    from evenflow.demo import run

    if not run():
        raise typer.Exit(1)


def main() -> None:
    """Run the command line; what Evenflow reports on purpose is one line, not a traceback."""
    from evenflow.operators.errors import EvenflowError

    try:
        app()
    except EvenflowError as error:
        print(f"evenflow: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
