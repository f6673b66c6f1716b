"""What commands share in a terminal: progress, warnings on one line, and how times are written."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[float], None]]:
    """A progress bar on stderr that takes the share done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        task = progress.add_task(title, total=1.0)
        yield lambda share: progress.update(task, completed=share)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Within it, what Evenflow warns of is one line on stderr, without the line of code that led to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _one_line
        yield


def _one_line(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"evenflow: warning: {message}", file=file or sys.stderr)


def seconds(time_us: int, start_us: int = 0) -> str:
    """A virtual time as a person reads it.

    >>> seconds(15_961_402), seconds(7_500_000, 5_000_000)
    ('15.96 s', '2.50 s')
    """
    return f"{(time_us - start_us) / 1e6:,.2f} s"
