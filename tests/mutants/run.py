"""Break the code in every way of ``mutants.py`` and see that the named test notices: ``make mutants``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutant import Mutant

from mutants import MUTANTS

ROOT = Path(__file__).parents[2]
PARTS = ("engine", "operators", "reconcile", "queries", "src", "tests", "pyproject.toml")


def survives(mutant: Mutant) -> tuple[bool, str]:
    """Whether the named test passes in a copy of the code with the mutant in it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, copy / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, copy / part)
        target = copy / mutant.file
        text = target.read_text()
        if mutant.old not in text:
            return True, f"its text is not in {mutant.file} any more"
        target.write_text(text.replace(mutant.old, mutant.new))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=--import-mode=importlib",
        ]
        environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "CI": "1"}
        try:
            done = subprocess.run(
                [*command, mutant.test], cwd=copy, env=environment, capture_output=True, text=True, timeout=240
            )
        except subprocess.TimeoutExpired:
            return False, "did not end"
        if done.returncode not in (0, 1):
            return True, done.stdout[-400:] + done.stderr[-400:]
        lines = [line for line in done.stdout.splitlines() if line.startswith("E  ")]
        return done.returncode == 0, lines[0].removeprefix("E").strip() if lines else ""


def main() -> int:
    wanted = [mutant for mutant in MUTANTS if not sys.argv[1:] or any(word in mutant.name for word in sys.argv[1:])]
    start, left = time.monotonic(), []
    with ThreadPoolExecutor(2) as pool:
        for mutant, (survived, why) in zip(wanted, pool.map(survives, wanted), strict=True):
            print(
                f"{'SURVIVED' if survived else 'caught':9} {mutant.name}: {mutant.test}\n          {why[:160]}",
                flush=True,
            )
            left += [mutant.name] if survived else []
    print(f"{len(wanted) - len(left)} of {len(wanted)} mutants caught in {time.monotonic() - start:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
