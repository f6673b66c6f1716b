"""What a check found, and what to do about it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, TypeVar

Level = Literal["ok", "warning", "problem"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's answer."""

    name: str
    level: Level
    found: str
    """One line of facts."""
    advice: str = ""
    """What to do; nothing when all is well."""
    detail: str = ""
    """What there is to read beyond that, on several lines: the end of a log."""


def not_checked(name: str, why: str, advice: str) -> Finding:
    """A check that could not be made. What it waits for may be a problem; this is none of its own."""
    return Finding(name, "warning", f"not checked: {why}", advice)


def guarded(name: str, check: Callable[[], T]) -> T | Finding:
    """Run a check. One that raises is a problem, and the others still run.

    >>> guarded("disk", lambda: Finding("disk", "ok", str(1 // 0))).found
    'the check failed: ZeroDivisionError: integer division or modulo by zero'
    """
    try:
        return check()
    except ImportError as error:
        return Finding(name, "problem", in_a_line(error), "Install what Evenflow needs: pip install evenflow")
    except Exception as error:
        found = f"the check failed: {type(error).__name__}: {in_a_line(error)}".removesuffix(": ")
        return Finding(name, "problem", found, "This is not foreseen: please report it, with all that is said here.")


def in_a_line(error: Exception) -> str:
    """What an exception says, without line breaks, and of the system's errors without their numbers.

    >>> in_a_line(OSError(28, "No space left on device", "file")), in_a_line(ValueError("not\\nso"))
    ('No space left on device', 'not so')
    """
    text = error.strerror if isinstance(error, OSError) else None
    return " ".join((text or str(error)).split())


def aside(work: Callable[[], T]) -> Future[T]:
    """Work in a thread that does not keep the process from ending, as the look-up of a name would."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
