"""The disk under the data directory."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from evenflow.engine.runtime.doctor.finding import Finding, in_a_line

NAME = "disk"
FREE_LOW = 2_000_000_000
FREE_MIN = 200_000_000
WRITES = 5
WRITTEN = 1_000_000


def check(data: Path | None) -> Finding:
    """Whether one can write there, how much, and how long it takes until that is safe."""
    wanted = (data if data is not None else Path(tempfile.gettempdir())).expanduser().absolute()
    folder = next(path for path in (wanted, *wanted.parents) if path.exists())
    where = f"{wanted}" if folder == wanted else f"{wanted} (not there yet; looked at {folder})"
    if not folder.is_dir():
        return Finding(NAME, "problem", f"{where}: {folder} is no folder", "Name another folder with --data.")
    try:
        free = shutil.disk_usage(folder).free
        synced_s = statistics.median(_sync_times_s(folder))
    except OSError as error:
        advice = "Have the folder made writable for this user, or name another with --data."
        return Finding(NAME, "problem", f"{where} cannot be written: {in_a_line(error)}", advice)
    facts = f"{where}: writable, {_size(free)} free, 1 MB is safe on disk after {synced_s * 1e3:.1f} ms"
    if free < FREE_MIN:
        return Finding(NAME, "problem", facts, f"Free at least {_size(FREE_MIN)}, or name another folder with --data.")
    if free < FREE_LOW:
        return Finding(NAME, "warning", facts, f"Free some: spilled and stored rows want {_size(FREE_LOW)} or more.")
    return Finding(NAME, "ok", facts)


def _sync_times_s(folder: Path) -> list[float]:
    """How long it takes to write a megabyte and have it on the disk, a few times over."""
    block = os.urandom(WRITTEN)
    times = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(WRITES):
            began_s = time.perf_counter()
            file.write(block)
            os.fsync(file.fileno())
            times.append(time.perf_counter() - began_s)
    return times


def _size(count: int) -> str:
    """
    >>> _size(200_000_000), _size(76_123_000_000)
    ('200 MB', '76.1 GB')
    """
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.0f} MB"
