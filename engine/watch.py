"""Conditions that are reported, not acted upon by the protocol: skewed sources, and redo that is too slow."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from evenflow.engine.messages import Control
from evenflow.operators.times import FINAL, START, readable

IN_A_ROW = 5


class SkewWatch:
    """Reports an input that keeps coming, but stays more than αX/2 behind another one.

    Its clock, or the other's, is off. Beyond αX the node would take it for failed.
    """

    def __init__(self, node: str, hold_us: int) -> None:
        self._node = node
        self._limit_us = hold_us // 2
        self._lags: dict[str, tuple[int, int]] = {}
        """Each input's last lag, and for how many items in a row it has been too long."""

    def arrived(self, name: str, boundary: int, others: Collection[int]) -> Iterator[Control]:
        ahead = max((time for time in others if time < FINAL), default=START)
        lag = ahead - boundary if ahead > START and boundary > START else 0
        before, n = self._lags.get(name, (0, 0))
        n = n + 1 if lag > self._limit_us and lag >= before * 0.9 else 0
        self._lags[name] = (lag, n)
        if n == IN_A_ROW:
            detail = (
                f"{readable(lag)} behind another input that is alive; more than αX/2 = {readable(self._limit_us)}: "
                f"check the clocks, or make x longer"
            )
            yield Control("SKEW", f"{self._node}:{name}", detail)


class OverloadWatch:
    """Reports redo that does not gain on its input: OVERLOADED, with an estimate."""

    def __init__(self, node: str, window_us: int) -> None:
        self.overloaded = False
        self._node = node
        self._window_us = window_us
        self._since: tuple[int, int] | None = None
        """When the window began, and the rows that waited then."""

    def observe(self, backlog: int, now_us: int) -> Iterator[Control]:
        """After a slice of redo: how many rows of complete buckets are left (0: none)."""
        if not backlog:
            self._since = None
            if self.overloaded:
                self.overloaded = False
                yield Control("CAUGHT_UP", self._node)
            return
        if self._since is None:
            self._since = (now_us, backlog)
            return
        began_us, before = self._since
        if now_us - began_us < self._window_us:
            return
        self._since = (now_us, backlog)
        if backlog >= before and not self.overloaded:
            self.overloaded = True
            grows = (backlog - before) * 1_000_000 // max(now_us - began_us, 1)
            detail = f"{backlog} rows wait for redo and {grows} more come each second: it will not catch up"
            yield Control("OVERLOADED", self._node, detail)
        elif backlog < before:
            left_us = backlog * (now_us - began_us) // (before - backlog)
            yield Control(
                "REDO", self._node, f"{backlog} rows left, about {readable(max(left_us // 1000 * 1000, 1000))}"
            )
