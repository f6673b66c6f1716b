"""A fingerprint of the kernel: replicas whose kernels might compute other bits must not feed one stream."""

from __future__ import annotations

import hashlib
import os
import platform
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa

from evenflow.operators.aggregates import Count, Max, Mean, Min, Std, Sum
from evenflow.operators.items import TUPLE_TIME
from evenflow.operators.keys import key_hash
from evenflow.operators.sums import Aggregation

FORMAT = 1
"""Raised whenever a release computes other bits, or other orders, than the one before it."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Versions of what computes, and the hash of a self-test over awkward numbers."""

    format: int
    polars: str
    numpy: str
    pyarrow: str
    machine: str
    no_partition: bool
    self_test: str

    def difference(self, other: Fingerprint) -> str | None:
        """Why two kernels must not be replicas of each other, or None if they may."""
        mine, theirs = asdict(self), asdict(other)
        unlike = [f"{name}: {mine[name]} here, {theirs[name]} there" for name in mine if mine[name] != theirs[name]]
        return "; ".join(unlike) or None


@cache
def kernel_fingerprint() -> Fingerprint:
    """This process's fingerprint."""
    return Fingerprint(
        FORMAT,
        pl.__version__,
        np.__version__,
        pa.__version__,
        platform.machine(),
        os.environ.get("POLARS_NO_PARTITION") == "1",
        _self_test(),
    )


def _self_test() -> str:
    """The bits of every kind of aggregate over floats of many sizes, and of key hashes."""
    n = 4096
    place = np.arange(n, dtype=np.int64)
    values = ((place * 2654435761) % 1_000_003 - 500_000) * np.power(10.0, (place % 25) - 12.0)
    rows = pl.DataFrame({TUPLE_TIME: place, "key": place * 7919 % 37, "name": (place % 11).astype(str), "x": values})
    incremental = {"n": Count(), "sum": Sum("x"), "mean": Mean("x"), "std": Std("x"), "low": Min("x"), "high": Max("x")}
    closing = {"plain": pl.col("x").sum(), "median": pl.col("x").median(), "var": pl.col("x").var()}
    aggregation = Aggregation(("key",), incremental, closing, tuple(incremental))
    folded = aggregation.fold_by(aggregation.lift(aggregation.inputs(rows), []), ["key"])
    closed = aggregation.close(aggregation.raw(rows), ["key"])
    digest = hashlib.sha256(key_hash(rows, ["key", "name", "x"]).tobytes())
    for column in (*aggregation.final(folded), *closed.get_columns()):
        digest.update(column.to_numpy().tobytes())
    return digest.hexdigest()[:16]
