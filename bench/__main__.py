"""``python -m bench core|reconcile|spark [--quick] [--json] [--save] [--check]``."""

from __future__ import annotations

import argparse
import json
import os
import sys

# One core: Polars reads these when it is first imported.
os.environ["POLARS_MAX_THREADS"] = "1"
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Evenflow.")
    parser.add_argument(
        "what",
        choices=["core", "reconcile", "spark"],
        help="core: the fold in process, on one core; reconcile: redo by method; spark: redo in the node or as a job",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on one line, and nothing else on stdout")
    parser.add_argument("--quick", action="store_true", help="less data; the ratios are rougher")
    parser.add_argument("--save", action="store_true", help="write bench/results/ and bench/RESULTS.md")
    parser.add_argument("--check", action="store_true", help="exit 1 if a ratio misses its target")
    given = parser.parse_args()

    from bench import core, reconcile, save, spark

    bench = {"core": core, "reconcile": reconcile, "spark": spark}[given.what]
    results = bench.run(quick=given.quick, say=lambda text: print(text, file=sys.stderr))
    print(json.dumps(results) if given.json else bench.report(results))
    if given.save:
        save.save(results)
    failed = bench.failed_ratios(results) if given.check else []
    for line in failed:
        print(f"misses its target: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
