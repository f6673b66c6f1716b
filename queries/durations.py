"""Durations as users write them: ``"500ms"``, ``"0.05s"``, a ``timedelta`` or integer microseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from evenflow.operators.errors import DeclarationError

Duration = str | timedelta | int

DURATION_US_MAX = 2**60
_UNITS_US = {
    "us": 1,
    "µs": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_PATTERN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]+)\s*")


def microseconds(value: Duration, what: str, zero: bool = False) -> int:
    """A duration in whole microseconds; ``what`` names it in the error. Only with ``zero`` may it be none.

    >>> microseconds("0.05s", "x"), microseconds("2m", "x"), microseconds(timedelta(seconds=1), "x")
    (50000, 120000000, 1000000)
    """
    us = _parse(value, what)
    if us != us.to_integral_value():
        raise DeclarationError(f"{what}={value!r} is not a whole number of microseconds")
    if us > DURATION_US_MAX:
        raise DeclarationError(f"{what}={value!r} is too long: more than {DURATION_US_MAX} microseconds")
    if us < 0 or (us == 0 and not zero):
        raise DeclarationError(f"{what}={value!r} must be longer than nothing")
    return int(us)


def _parse(value: Duration, what: str) -> Decimal:
    if isinstance(value, timedelta):
        return Decimal(value // timedelta(microseconds=1))
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    match = _PATTERN.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in _UNITS_US:
        raise DeclarationError(
            f"{what}={value!r} is not a duration; write it like '500ms', '0.05s', '10m', a timedelta, "
            f"or whole microseconds"
        )
    return Decimal(match[1]) * _UNITS_US[match[2]]
