"""Where redo runs: in the node, slice by slice, or as a job elsewhere (``replay="local" | "spark" | "auto"``).

``auto`` compares what the complete buckets would take here and there: rows times the cost of one, and for a job the
overhead of any job, and what is left of Spark's start. The costs are measured anew with every slice and every job. The
time from one slice to the next also holds what the node does for its live inputs, so that a busy node hands out sooner.
``spark`` collects what is on its way, lets a job do it, and folds the few buckets that came meanwhile here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from evenflow.reconcile.job import Where

ReplayName = Literal["local", "spark", "auto"]
TRIES = 2
"""A job that failed so often is not tried again in this reconciliation."""
BATCH_ROWS = 2_000_000
"""So many rows are worth a job at once, even if more are on their way."""
SPILL_US_PER_ROW = 0.1
"""What it takes to partition, write and read a row, before anybody has measured a job."""
STALE_JOBS = 3
"""After so many jobs the cost of a row here is measured anew."""
_NEWEST = 0.5
"""The weight of a new measurement."""
_SMALL_JOB = 0.2
"""A job whose rows make up less of its time tells the overhead, and not the cost of a row."""


@dataclass(slots=True)
class Rates:
    """What redo costs: a row here, a row in a job, and any job at all. None: not measured yet."""

    local_us_per_row: float | None = None
    job_us_per_row: float | None = None
    job_us: float = 300_000.0
    parallelism: int = 2
    """How many tasks of a job run at once."""
    jobs_since_slice: int = 0
    ready_at_us: int = 0
    """When jobs can run at the earliest: Spark takes its time to start."""

    def job_is_quicker(self, rows: int, now_us: int) -> bool:
        """Whether so many rows are sooner done in a job. Slices tell what a row costs here, first and now and then."""
        if self.local_us_per_row is None or self.jobs_since_slice >= STALE_JOBS:
            return False
        each = self.job_us_per_row
        if each is None:
            each = self.local_us_per_row / self.parallelism + SPILL_US_PER_ROW
        return max(0, self.ready_at_us - now_us) + self.job_us + rows * each < rows * self.local_us_per_row

    def folded_here(self, rows: int, took_us: int) -> None:
        """``took_us``: to the next slice, so that what the node had to do in between counts too."""
        if rows and took_us:
            self.local_us_per_row = _newer(self.local_us_per_row, took_us / rows)
            self.jobs_since_slice = 0

    def folded_elsewhere(self, rows: int, took_us: int) -> None:
        """A job tells the cost of a row if it is long enough for rows to matter, and else the overhead."""
        self.jobs_since_slice += 1
        for_rows = took_us - self.job_us
        if rows and for_rows > _SMALL_JOB * took_us:
            self.job_us_per_row = _newer(self.job_us_per_row, for_rows / rows)
        else:
            overhead = max(took_us - rows * (self.job_us_per_row or 0.0), 0.0)
            self.job_us = _newer(self.job_us, overhead)


def _newer(known: float | None, measured: float) -> float:
    return measured if known is None else known + _NEWEST * (measured - known)


@dataclass(slots=True)
class _Memory:
    """What happened to one fragment's redo since it began to fail."""

    jobs: int = 0
    failed: int = 0
    waiting_since_us: int | None = None


class Dispatcher:
    """Decides for each fragment of a node; remembers what failed until the fragment is stable again."""

    name = "spark"

    def __init__(self, replay: ReplayName, rates: Rates, patience_us: int) -> None:
        self.rates = rates
        self.arriving = False
        """Whether corrections of the node's inputs are on their way."""
        self._replay = replay
        self._patience_us = patience_us
        self._fragments: dict[int, _Memory] = {}

    def where(self, number: int, rows: int, now_us: int) -> Where:
        if self._replay == "local":
            return Where.HERE
        memory = self._fragments.setdefault(number, _Memory())
        if memory.failed >= TRIES:
            return Where.INSTEAD
        if memory.failed:
            return Where.ELSEWHERE
        if self._replay == "spark" and not memory.jobs:
            return self._first(memory, rows, now_us)
        return Where.ELSEWHERE if self.rates.job_is_quicker(rows, now_us) else Where.HERE

    def _first(self, memory: _Memory, rows: int, now_us: int) -> Where:
        """Collect what is on its way before the first job, but not for ever."""
        if memory.waiting_since_us is None:
            memory.waiting_since_us = now_us
        waited_us = now_us - memory.waiting_since_us
        wait = self.arriving and rows < BATCH_ROWS and waited_us < self._patience_us
        return Where.WAIT if wait else Where.ELSEWHERE

    def done(self, number: int, rows: int, took_us: int) -> None:
        """A job came back."""
        memory = self._fragments.setdefault(number, _Memory())
        memory.jobs += 1
        memory.failed = 0
        self.rates.folded_elsewhere(rows, took_us)

    def failed(self, number: int) -> str:
        """A job failed; gives what is done about it."""
        memory = self._fragments.setdefault(number, _Memory())
        memory.failed += 1
        return "it is tried again" if memory.failed < TRIES else "the node folds it itself"

    def settled(self, numbers: Iterable[int]) -> None:
        """These fragments are stable: what failed before may work the next time."""
        for number in numbers:
            self._fragments.pop(number, None)
