"""What runs in Spark's Python workers: one task. A worker may be on another machine."""

from __future__ import annotations

import gc
import json
import os
import pickle
import platform
import sys
import traceback
from functools import cache

import evenflow


class TryAgainError(Exception):
    """A task failed for a reason of the machine's: Spark tries it again, perhaps elsewhere."""


def run_task(code: bytes, task: tuple[int, str]) -> tuple[bool, str]:
    """Run the pickled function on one task; gives whether it went well, and its result or what went wrong.

    A function that raises would raise again, so Spark is not told. Files and memory may do better on another try.
    """
    number, argument = task
    _settle()
    try:
        result = pickle.loads(code)(argument)
        if not isinstance(result, str):
            raise TypeError(f"the function gave a {type(result).__name__}, not a str")
        return True, result
    except (OSError, MemoryError) as error:
        raise TryAgainError(_told(number, error)) from error
    except Exception as error:
        return False, _told(number, error)


@cache
def _settle() -> None:
    """Spark collects garbage after every task: 10 to 50 ms with all these modules, which stay anyway."""
    gc.collect()
    gc.freeze()


def _told(number: int, error: Exception) -> str:
    """An exception in a line: which task, what, and where."""
    text = str(error).strip()
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    where = f" (in {frames[-1].name}, {os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"task {number} failed: {what}{where}"


def describe(_: str) -> str:
    """Which Python, packages and kernel this worker has, as JSON."""
    from dataclasses import asdict

    import polars
    import pyarrow

    return json.dumps(
        {
            "python": platform.python_version(),
            "executable": sys.executable,
            "polars": polars.__version__,
            "pyarrow": pyarrow.__version__,
            "evenflow": evenflow.__version__,
            "fingerprint": asdict(evenflow.kernel_fingerprint()),
            "pid": os.getpid(),
        }
    )
