"""Time windows cut into panes.

Windows are aligned to zero like HOP and TUMBLE in SQL: ``[k·every, k·every + size)`` for every whole k. A pane is a
stretch of time that lies inside or outside of each window as a whole; a row belongs to one pane, and a window is a
run of panes, at most two for each step of ``every``. A tumbling window is its own pane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenflow.operators.times import FINAL, START, readable

Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """``size`` long, one starting at every multiple of ``every``; microseconds."""

    size_us: int
    every_us: int

    def __str__(self) -> str:
        every = "" if self.every_us == self.size_us else f", every={readable(self.every_us)}"
        return f"{readable(self.size_us)}{every}"

    @property
    def gaps(self) -> bool:
        """Whether there are times that lie in no window."""
        return self.every_us > self.size_us

    @property
    def overlap(self) -> bool:
        """Whether there are times that lie in several windows."""
        return self.size_us > self.every_us

    def covered(self, times: Times) -> NDArray[np.bool_]:
        """Which times lie in some window."""
        return times % self.every_us < self.size_us

    @property
    def _cut_us(self) -> int:
        """Where a window ends within a step of ``every``; 0: at its start, so that steps need not be cut."""
        return self.size_us % self.every_us

    def pane_of(self, times: Times) -> Times:
        """The start of the pane that each time lies in."""
        if len(times) and self._pane(int(times.min())) == self._pane(int(times.max())):
            return np.full(len(times), self._pane(int(times[0])))
        base = times // self.every_us * self.every_us
        if not self._cut_us:
            return base
        return base + np.where(times - base < self._cut_us, 0, self._cut_us)

    def _pane(self, time: int) -> int:
        base = time // self.every_us * self.every_us
        return base + self._cut_us if time - base >= self._cut_us else base

    def pane_end(self, panes: Times) -> Times:
        base = panes // self.every_us * self.every_us
        first_end = base + (self._cut_us or self.every_us)
        return np.where(panes == base, first_end, base + self.every_us)

    def next_end(self, after: int) -> int:
        """The first window end later than ``after``."""
        if after in (START, FINAL):
            return after
        return (after - self.size_us) // self.every_us * self.every_us + self.every_us + self.size_us

    def last_end(self, panes: Times) -> Times:
        """The end of the last window that each pane belongs to (or an earlier time, if it belongs to none)."""
        return panes // self.every_us * self.every_us + self.size_us

    def closing(self, panes: Times, after: int, upto: int) -> tuple[NDArray[np.int64], Times]:
        """Which windows that end in ``(after, upto]`` hold which pane: positions in ``panes``, and window starts.

        A position comes once for each such window; positions keep their order.
        """
        first = -((self.size_us - self.pane_end(panes)) // self.every_us)
        last = panes // self.every_us
        if after != START:
            first = np.maximum(first, (after - self.size_us) // self.every_us + 1)
        if upto != FINAL:
            last = np.minimum(last, (upto - self.size_us) // self.every_us)
        counts = np.maximum(last - first + 1, 0)
        position = np.repeat(np.arange(len(panes)), counts)
        nth = np.arange(len(position)) - np.repeat(np.cumsum(counts) - counts, counts)
        return position, (first[position] + nth) * self.every_us
