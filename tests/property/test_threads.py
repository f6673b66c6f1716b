"""The number of Polars' threads does not matter: the same cases in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("thread_worker.py")
CASES = 40


def start(threads: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads), "PYTHONPATH": str(WORKER.parent.parent)}
    command = [sys.executable, str(WORKER), str(CASES)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_digests_are_equal_with_one_two_and_four_threads() -> None:
    outputs = []
    for threads in (1, 2, 4):
        with start(threads) as process:
            text, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        outputs.append(text.split())
    one, two, four = outputs
    assert len(one) == CASES + 3
    assert one == two == four
