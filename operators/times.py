"""``tuple_time``: int64 microseconds. ``START`` is before every row and ``FINAL`` after every row."""

from __future__ import annotations

from decimal import Decimal

START = -(2**63)
FINAL = 2**63 - 1
TIME_MAX = 2**61
"""Rows lie within ± this (73,000 years), so that adding a window or a band to a time never wraps round."""


def later(time: int, by_us: int) -> int:
    """``time + by_us`` that stays at the ends: adding to the end of time must not wrap round.

    >>> later(FINAL, 1) == FINAL, later(START, 5) == START, later(3, -5)
    (True, True, -2)
    """
    if time in (START, FINAL):
        return time
    return max(START, min(FINAL, time + by_us))


def floor(time: int, width_us: int) -> int:
    """The largest multiple of ``width_us`` that is not after ``time``; the two ends are their own floor."""
    if time in (START, FINAL):
        return time
    return time // width_us * width_us


_UNITS_US = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000}


def readable(us: int) -> str:
    """A duration as a person writes it.

    >>> readable(1_500_000), readable(100_000), readable(60_000_000), readable(7)
    ('1.5s', '100ms', '1m', '7us')
    """
    for unit, size_us in _UNITS_US.items():
        if us and us % size_us == 0:
            return f"{us // size_us}{unit}"
    for unit, size_us in (("s", 1_000_000), ("ms", 1_000)):
        amount = Decimal(us) / size_us
        if amount >= 1 and amount == amount.quantize(Decimal("0.001")):
            return f"{amount.normalize():f}{unit}"
    return f"{us}us"
