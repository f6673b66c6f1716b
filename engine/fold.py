"""``fold``: a network over recorded input, with no failures and no clock.

It is the smallest way to use the engine, the answer that every live run is held against, and the body of a batch
back-fill.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl

from evenflow.operators.errors import InputError, nearest
from evenflow.operators.items import TupleType, with_header
from evenflow.operators.kernel import FrameKernel, in_order, stack, times
from evenflow.operators.soutput import SOutput
from evenflow.operators.times import FINAL, START, floor
from evenflow.queries.compile import compile_plan
from evenflow.queries.durations import Duration, microseconds
from evenflow.queries.network import Network
from evenflow.reconcile.heads import Heads

Progress = Callable[[float], None]
STEP_ROWS = 131_072
"""Rows folded in one step: many buckets at once, and still little memory."""


class Folded(dict[str, pl.DataFrame]):
    """The stable rows of each output, by name; ``rejected`` has the rows that the sources refused, with reasons."""

    def __init__(self, outputs: Mapping[str, pl.DataFrame], rejected: Mapping[str, pl.DataFrame]) -> None:
        super().__init__(outputs)
        self.rejected = dict(rejected)

    def __missing__(self, name: str) -> pl.DataFrame:
        raise KeyError(f"there is no output {name!r}; {nearest(name, self)}")


def fold(
    network: Network,
    inputs: Mapping[str, pl.DataFrame],
    bucket: Duration = "100ms",
    *,
    progress: Progress | None = None,
) -> Folded:
    """The stable rows of every output: ``fold(net, {"monitor1": frame})["busy"]``.

    ``inputs`` maps each source's name to a frame with ``tuple_time`` (microseconds) and the attributes; a source
    without a frame is empty. ``progress`` is called with the share of the input that has been folded.
    """
    network.check()
    bucket_us = microseconds(bucket, "fold: bucket")
    plan = compile_plan(network.nodes, network.output_numbers)
    heads = Heads(plan, bucket_us, FrameKernel())
    rows, rejected = admitted(network, inputs)
    soutputs = {name: SOutput(FrameKernel()) for name in plan.outputs}
    parts: dict[str, list[pl.DataFrame]] = {name: [plan.empty(number)] for name, number in plan.outputs.items()}
    for share, upto, slices in _slices(rows, bucket_us):
        for name, part in slices.items():
            heads.insert(network.sources[name].number, part, upto)
        for output in heads.advance().outputs:
            parts[output.name].append(soutputs[output.name].emit(output.rows, output.boundary).rows)
        if progress is not None:
            progress(share)
    return Folded({name: with_header(stack(part), 1, TupleType.INSERTION) for name, part in parts.items()}, rejected)


def admitted(
    network: Network, inputs: Mapping[str, pl.DataFrame]
) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """Each source's rows in order, and those refused."""
    if not isinstance(inputs, Mapping):
        raise InputError(f"inputs must map each source's name to its frame, not be {type(inputs).__name__}")
    for name in inputs:
        if name not in network.sources:
            raise InputError(f"inputs: there is no source {name!r}; {nearest(name, network.sources)}")
    rows: dict[str, pl.DataFrame] = {}
    rejected: dict[str, pl.DataFrame] = {}
    for name, stream in network.sources.items():
        empty = pl.DataFrame(schema={"tuple_time": pl.Int64, **stream.schema})
        taken, refused = stream.source.admit(_frame(name, inputs.get(name, empty)))
        rows[name] = in_order(taken).rechunk()
        if refused.height:
            rejected[name] = refused
            row, reason = refused.row(0)[:2]
            warnings.warn(
                f"source {name!r} refused {refused.height} rows; row {row}: {reason}. See .rejected",
                stacklevel=3,
            )
    return rows, rejected


def _frame(name: str, rows: object) -> pl.DataFrame:
    """A source's rows as a frame: a lazy one is collected."""
    if isinstance(rows, pl.LazyFrame):
        return rows.collect()
    if not isinstance(rows, pl.DataFrame):
        raise InputError(f"inputs: the rows of source {name!r} must be a Polars frame, not {type(rows).__name__}")
    return rows


def _slices(rows: Mapping[str, pl.DataFrame], bucket_us: int) -> Iterator[tuple[float, int, dict[str, pl.DataFrame]]]:
    """The input cut at bucket ends into steps of about ``STEP_ROWS``: share done, boundary, each source's rows."""
    stamps = {name: times(part) for name, part in rows.items()}
    at = dict.fromkeys(rows, 0)
    total = sum(part.height for part in rows.values())
    for cut in [*_cuts(list(stamps.values()), bucket_us), FINAL]:
        slices = {}
        for name, part in rows.items():
            end = part.height if cut == FINAL else int(np.searchsorted(stamps[name], cut))
            slices[name] = part.slice(at[name], end - at[name])
            at[name] = end
        yield (sum(at.values()) / total if total else 1.0), cut, slices


def _cuts(stamps: list[np.ndarray[tuple[int], np.dtype[np.int64]]], bucket_us: int) -> list[int]:
    """Bucket ends with about ``STEP_ROWS`` rows between them."""
    merged = np.concatenate(stamps)
    if len(merged) <= STEP_ROWS:
        return []
    merged.sort()
    ends = [floor(int(time), bucket_us) for time in merged[STEP_ROWS::STEP_ROWS]]
    return [end for end in sorted(set(ends)) if end > START]
