"""X and what is left of it: how long a node may hold its input back, and what it needs the rest for."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.operators.errors import DeclarationError
from evenflow.operators.times import readable

ALPHA = 0.9
REDO_SHARE = 4
"""The share of the margin that slices of redo may take is 1/4; so it must hold the other needs in 3/4."""
SLICES = 2
"""A message may wait for a slice before it is read, and what it makes due for another one."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What stands between a row and its result besides waiting: all that the margin (1−α)X must cover."""

    bucket_us: int
    boundary_us: int
    link_us: int
    processing_us: int

    @property
    def needed_us(self) -> int:
        return self.bucket_us + self.boundary_us + 2 * self.link_us + self.processing_us

    @property
    def apart_us(self) -> int:
        """How far apart the boundaries of inputs that are all well may come."""
        return self.boundary_us + self.link_us


@dataclass(frozen=True, slots=True)
class Threshold:
    """X with α fitted to the margin.

    >>> Threshold.fit("site", 10_000_000, Timing(100_000, 100_000, 10_000, 1_000)).hold_us
    9000000
    >>> Threshold.fit("site", 1_000_000, Timing(100_000, 100_000, 10_000, 1_000)).hold_us
    705333
    """

    x_us: int
    hold_us: int
    """αX: an input is waited for this long."""

    @property
    def margin_us(self) -> int:
        """(1−α)X"""
        return self.x_us - self.hold_us

    def slice_us(self, heartbeat_us: int) -> int:
        """How long one slice of redo may keep the node busy: consumers that hear nothing take it for dead."""
        return min(self.margin_us // REDO_SHARE // SLICES, heartbeat_us)

    @classmethod
    def fit(cls, node: str, x_us: int, timing: Timing) -> Threshold:
        """α is 0.9, or smaller where the margin needs it."""
        margin_us = -(-timing.needed_us * REDO_SHARE // (REDO_SHARE - 1))
        hold_us = min(int(ALPHA * x_us), x_us - margin_us)
        if hold_us < timing.apart_us:
            raise DeclarationError(
                f"node {node!r}: x={readable(x_us)} leaves no time to wait for an input: bucket "
                f"{readable(timing.bucket_us)}, boundaries every {readable(timing.boundary_us)}, links "
                f"{readable(timing.link_us)} and processing {readable(timing.processing_us)} need a margin of "
                f"{readable(margin_us)}, and inputs that are well come up to {readable(timing.apart_us)} apart; make x "
                f"at least {readable(margin_us + timing.apart_us)}, or the bucket and the boundary interval shorter"
            )
        return cls(x_us, hold_us)
