"""When incomplete buckets are released to the tentative heads: the only place that knows αX.

A bucket's deadline comes αX after some input's boundary, on either lane, showed that time has passed its end; if no
boundary follows, αX and a bucket after a row for it came, which leaves time enough to be within X of the bucket's first
row. When deadlines have passed, everything up to the largest such bucket is due: a replay may still put a late row into
the oldest. What the node does with what is due is its policy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Literal, Protocol

from evenflow.engine.threshold import Threshold
from evenflow.operators.times import FINAL, START, floor

PolicyName = Literal["suspend", "delay", "process"]


class Policy(Protocol):
    """How far to release, given what is due, what has been released, how far each input has come, and time itself."""

    def __call__(self, due: int, released: int, reached: Collection[int], seen: int, bucket_us: int) -> int: ...


def suspend(due: int, released: int, reached: Collection[int], seen: int, bucket_us: int) -> int:
    """Release nothing: what comes out is stable, however late. This gives up X."""
    return released


def delay(due: int, released: int, reached: Collection[int], seen: int, bucket_us: int) -> int:
    """Each bucket waits for its own deadline."""
    return max(due, released)


def process(due: int, released: int, reached: Collection[int], seen: int, bucket_us: int) -> int:
    """After the first expiry, a bucket waits only for the inputs that have not failed.

    An input has failed when a release passed it, until it catches up. An ended one says nothing of time. A window's
    boundary lies ahead of time; nothing beyond the bucket of the present is released, or an input that returns would
    be late for what has not yet been.
    """
    upto = max(due, released)
    if upto == START:
        return upto
    alive = [time for time in reached if upto <= time < FINAL]
    present = floor(seen, bucket_us) + bucket_us if seen > START else START
    return max(upto, min(floor(min(alive), bucket_us), present)) if alive else upto


POLICIES: dict[PolicyName, Policy] = {"suspend": suspend, "delay": delay, "process": process}


class Release:
    """The deadlines of buckets."""

    def __init__(self, threshold: Threshold, bucket_us: int) -> None:
        self._hold_us = threshold.hold_us
        self._bucket_us = bucket_us
        self._deadlines: deque[tuple[int, int]] = deque()
        """Ends of buckets with their deadlines, both rising: where a later bucket is due, so is an earlier one."""
        self.due = START
        """The largest end of a bucket whose deadline has passed."""

    def arrived(self, seen: int, latest: int, now_us: int) -> None:
        """An input came: rows up to ``latest`` (``START``: none), and how far time has passed by its boundary.

        A final boundary is no sign of time.
        """
        if START < seen < FINAL:
            self._expect(floor(seen, self._bucket_us), now_us + self._hold_us)
        if latest > START:
            end = floor(latest, self._bucket_us) + self._bucket_us
            self._expect(end, now_us + self._hold_us + self._bucket_us)

    def _expect(self, end: int, deadline_us: int) -> None:
        later: list[tuple[int, int]] = []
        while self._deadlines and self._deadlines[-1][1] >= deadline_us:
            known = self._deadlines.pop()
            if known[0] > end:
                later.append(known)
        if end > max(self.due, self._deadlines[-1][0] if self._deadlines else START):
            self._deadlines.append((end, deadline_us))
        self._deadlines.extend(reversed(later))

    def expire(self, now_us: int, stable: int) -> int:
        """Let deadlines pass. Buckets before ``stable`` have been folded and are of no interest."""
        while self._deadlines and (self._deadlines[0][0] <= stable or self._deadlines[0][1] <= now_us):
            end, _ = self._deadlines.popleft()
            if end > stable:
                self.due = max(self.due, end)
        return self.due

    @property
    def next_us(self) -> int | None:
        """When the next deadline passes."""
        return self._deadlines[0][1] if self._deadlines else None

    def reset(self) -> None:
        """Everything due has come out stable."""
        self.due = START
