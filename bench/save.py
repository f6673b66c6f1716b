"""Results on disk: the JSON as it was measured, and a page made from it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import reconcile, spark

FOLDER = Path(__file__).parent


def save(results: dict[str, Any]) -> None:
    """Write ``results/NAME.json``, and ``RESULTS.md`` from all that are there."""
    dated = {**results, "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat()}
    (FOLDER / "results").mkdir(exist_ok=True)
    (FOLDER / "results" / f"{results['benchmark']}.json").write_text(json.dumps(dated, indent=1) + "\n")
    lines = ["# Results", ""]
    for name, page in PAGES.items():
        path = FOLDER / "results" / f"{name}.json"
        lines += page(json.loads(path.read_text())) if path.exists() else []
    (FOLDER / "RESULTS.md").write_text("\n".join(lines))


def core_page(results: dict[str, Any]) -> list[str]:
    rows = [value for value in results.values() if isinstance(value, dict) and "ratio_to_batch" in value]
    small, memory = results["small_bucket"], results["memory"]
    return [
        "## The fold in process",
        "",
        f"`python -m bench core --save`, {results['date']}: {results['machine']}; one core, "
        f"{results['bucket_ms']} ms buckets, 1 M tuples per second of stream time, "
        f"medians of {results['runs']} runs.",
        "The batch is the fastest form of the same work that was found in Polars, sort included, one thread.",
        "",
        "| work | M tuples/s | slowest … fastest run | target | batch, M tuples/s | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {row['title']} | {row['mtuples_per_s']} | {row['mtuples_per_s_spread'][0]} … "
            f"{row['mtuples_per_s_spread'][1]} | {row['target_mtuples_per_s']} | {row['batch_mtuples_per_s']} | "
            f"{row['ratio_to_batch']} |"
            for row in rows
        ),
        "",
        *(f"- batch form of {row['title']}: {row['batch_form']}" for row in rows),
        f"- an almost empty bucket through five operators: {small['median_ms']} ms (99 % under {small['p99_ms']} ms)",
        *(
            f"- keeping a checkpoint of {int(n):,} rows of state: {one['keep_ns']} ns, "
            f"{one['added_mb']} MB for {one['kept']:,} of them"
            for n, one in results["checkpoint"].items()
        ),
        f"- resident memory by minute of stream time, MB: {', '.join(map(str, memory['resident_mb']))}",
        "",
    ]


PAGES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "core": core_page,
    "reconcile": reconcile.page,
    "spark": spark.page,
}
