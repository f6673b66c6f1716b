"""Replicas compare the fingerprints of their kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import polars as pl

import evenflow as ef
from evenflow.operators.fingerprint import kernel_fingerprint

PRINT = "import evenflow; print(evenflow.kernel_fingerprint().self_test)"


def test_the_same_kernel_has_no_difference() -> None:
    mine = kernel_fingerprint()
    assert mine.difference(replace(mine)) is None
    assert mine.polars == pl.__version__
    assert mine.no_partition


def test_a_difference_names_what_differs_on_both_sides() -> None:
    mine = ef.kernel_fingerprint()
    theirs = replace(mine, polars="0.0.1", self_test="ffff")
    difference = mine.difference(theirs)
    assert difference is not None
    assert f"polars: {mine.polars} here, 0.0.1 there" in difference
    assert "self_test" in difference
    assert "numpy" not in difference


def test_the_self_test_does_not_depend_on_threads() -> None:
    outcomes = {
        subprocess.run(
            [sys.executable, "-c", PRINT],
            env={**os.environ, "POLARS_MAX_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "4")
    }
    assert outcomes == {kernel_fingerprint().self_test + "\n"}
