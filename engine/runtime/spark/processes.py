"""Processes and their children, found and ended by their ids."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

POLL_S = 0.02
PROC = Path("/proc")


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, nearest first."""
    children: dict[int, list[int]] = {}
    for child, (parent, _) in _table().items():
        children.setdefault(parent, []).append(child)
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def alive(pid: int) -> bool:
    """Whether a process runs. One that has ended and was not waited for does not."""
    return bool(living([pid]))


def living(pids: Iterable[int]) -> list[int]:
    """Those of the processes that run."""
    table = _table()
    return [pid for pid in pids if table.get(pid, (0, "Z"))[1] != "Z"]


def parent_of(pid: int) -> int:
    """The parent's id, or 0 if there is no such process."""
    return _table().get(pid, (0, ""))[0]


def await_end(pids: Iterable[int], timeout_s: float) -> list[int]:
    """Wait until the processes have ended; gives those that have not in time."""
    deadline = time.monotonic() + timeout_s
    waiting = living(pids)
    while waiting and time.monotonic() < deadline:
        time.sleep(POLL_S)
        waiting = living(waiting)
    return waiting


def kill(pids: Iterable[int]) -> None:
    """End processes at once; those that are gone already are no matter."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def command_line(pid: int) -> str:
    """The words that a process was started with, or nothing if it is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return _ps("-o", "args=", "-p", str(pid)).strip()


def _table() -> dict[int, tuple[int, str]]:
    """Parent and state of every process."""
    if not (PROC / "self" / "stat").exists():
        rows = (line.split() for line in _ps("-A", "-o", "pid=,ppid=,state=").splitlines())
        return {int(pid): (int(parent), state[0]) for pid, parent, state in rows}
    table = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            # One may end between the listing and the look.
            with contextlib.suppress(OSError):
                # The name, in brackets, may hold anything.
                state, parent = (PROC / name / "stat").read_text().rpartition(")")[2].split()[:2]
                table[int(name)] = (int(parent), state)
    return table


def _ps(*arguments: str) -> str:
    return subprocess.run(["ps", *arguments], capture_output=True, text=True, check=False).stdout
