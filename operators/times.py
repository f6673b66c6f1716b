"""``tuple_time``: int64 microseconds. ``START`` is before every row and ``FINAL`` after every row."""

from __future__ import annotations

START = -(2**63)
FINAL = 2**63 - 1


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
