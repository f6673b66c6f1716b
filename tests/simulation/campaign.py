"""A long campaign of random schedules: ``python tests/simulation/campaign.py --seeds 10000``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from evenflow.engine.simulator.shrink import as_test, shrink
from schedules import (
    Schedule,
    frame_schedule,
    list_schedule,
    replayed_frame_schedule,
    replayed_list_schedule,
    replicated_frame_schedule,
    replicated_list_schedule,
    tentative_rows,
)

KINDS: dict[str, Callable[[int], Schedule]] = {
    "list": list_schedule,
    "frame": frame_schedule,
    "replayed_list": replayed_list_schedule,
    "replayed_frame": replayed_frame_schedule,
    "replicated_list": replicated_list_schedule,
    "replicated_frame": replicated_frame_schedule,
}


class Tally(Counter[str]):
    """What a number of schedules reached: transitions, tentative rows, failures."""


def run_one(kind: str, seed: int) -> tuple[Tally, list[str]]:
    """Run one schedule; gives what it reached and the broken invariants."""
    schedule = KINDS[kind](seed)
    done, violations = schedule.run()
    tally = Tally(schedules=1, **{f"on {kind}s": 1})
    tally["with tentative rows"] += bool(tentative_rows(done))
    before: dict[str, str] = {}
    for _, who, change in done.states:
        if change.output is None:
            tally[f"{before.get(who, 'STABLE')} -> {change.state}"] += 1
            before[who] = str(change.state)
    for _, _, control in done.controls:
        if control.kind in (
            "UNDO_START",
            "BLOCKED",
            "SKEW",
            "OVERLOADED",
            "REPLAY",
            "REPLAY_FAILED",
            "SWITCH",
            "RECOVERED",
        ):
            tally[control.kind] += 1
    return tally, violations


def report(kind: str, seed: int, violations: list[str]) -> str:
    """A failing schedule, shrunk, as a test."""
    schedule = KINDS[kind](seed)
    small = shrink(schedule.faults, lambda faults: bool(schedule.run(tuple(faults))[1]))
    text = as_test(f"{kind}_{seed}", f"{kind}_schedule({seed}).run(tuple(FAULTS))[1]", small, violations)
    return f"seed {seed} on {kind}s: {violations[0]}\n{text}"


def _attempt(job: tuple[str, int]) -> tuple[str, int, Any, list[str]]:
    kind, seed = job
    try:
        return kind, seed, *run_one(kind, seed)
    except Exception as error:
        return kind, seed, Tally(schedules=1), [f"{type(error).__name__}: {error}"]


def _kind(seed: int) -> str:
    """Mostly lists, which are quick; a third with redo in jobs, a third with replicas."""
    rows = "frame" if seed % 10 == 0 else "list"
    return (f"replayed_{rows}", f"replicated_{rows}", rows)[seed % 3]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1_000)
    parser.add_argument("--first", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    jobs = [(_kind(seed) if options.kind == "all" else options.kind, seed) for seed in seeds]
    tally, failed, start = Tally(), 0, time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool:
        for n, (kind, seed, one, violations) in enumerate(pool.map(_attempt, jobs, chunksize=8), start=1):
            tally.update(one)
            if violations:
                failed += 1
                print(f"FAILED seed {seed} on {kind}s: {violations[0]}", flush=True)
                if failed <= 3 and not violations[0].startswith("Invariant"):
                    print(report(kind, seed, violations), flush=True)
            if n % 500 == 0:
                print(f"{n} schedules, {failed} failed, {n / (time.monotonic() - start):.1f} a second", flush=True)
    for what, count in sorted(tally.items()):
        print(f"{count:8d}  {what}")
    seconds = time.monotonic() - start
    print(
        f"{options.seeds} schedules in {seconds:.0f} s on {options.jobs} cores: {options.seeds / seconds:.1f} a second"
    )
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
