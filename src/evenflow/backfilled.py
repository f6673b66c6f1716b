"""``evenflow backfill``: from what was asked on the command line to what is written and told."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from evenflow.engine.runtime.backfill.backfill import Backfilled, backfill
from evenflow.engine.runtime.spark.settings import SparkSettings, local_master
from evenflow.query_file import QueryFile, input_paths, load
from evenflow.terminal import plain_warnings, progress_bar


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says."""

    file: str
    out: Path
    inputs: Sequence[str]
    seed: int
    master: str | None
    scratch: Path | None


def show(asked: Asked, as_json: bool) -> None:
    """Back-fill, and say what was written."""
    query = load(asked.file)
    settings = SparkSettings(asked.master or local_master(), scratch=asked.scratch)
    began_s = time.monotonic()
    done = _done(query, asked, settings)
    seconds = time.monotonic() - began_s
    if as_json:
        outputs = {name: {"rows": done.rows[name], "file": str(path)} for name, path in done.items()}
        rejected = {name: str(path) for name, path in done.rejected.items()}
        known = {"outputs": outputs, "rejected": rejected, "master": settings.master, "seconds": round(seconds, 3)}
        print(json.dumps(known))
        return
    console = Console(highlight=False, soft_wrap=True)
    for name, path in done.items():
        console.print(f"{name}: {done.rows[name]:,} stable rows in {path}")
    console.print(f"in {seconds:.1f} s on {settings.master}, the start of Spark included")


def _done(query: QueryFile, asked: Asked, settings: SparkSettings) -> Backfilled:
    app = query.deployment or query.network
    with plain_warnings():
        if asked.inputs:
            paths = input_paths(query.network, asked.inputs)
            with progress_bar(f"back-filling {query.network.name}") as progress:
                return backfill(app, paths, asked.out, master=settings, progress=progress)
        frames = query.generated(asked.seed)
        with progress_bar(f"back-filling {query.network.name}") as progress:
            return backfill(app, frames, asked.out, master=settings, progress=progress)
