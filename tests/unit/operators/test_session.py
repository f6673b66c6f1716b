"""Sessions against a loop over each key's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from oracles import (
    CLOSING,
    CUTS,
    INCREMENTAL,
    ROW,
    Row,
    assert_rows,
    both,
    closing,
    dicts,
    drive,
    frame,
    frames,
    null_first,
    operator_of,
    run,
)


def sessions(rows: Sequence[Row], gap: int, key: str | None) -> list[tuple[Any, list[Row]]]:
    """Each session's key and rows: a row that comes ``gap`` or more after its predecessor begins a new one."""
    latest: dict[Any, list[Row]] = {}
    found: list[tuple[Any, list[Row]]] = []
    for row in rows:
        value = row[key] if key else None
        session = latest.get(value)
        if session is None or row["tuple_time"] - session[-1]["tuple_time"] >= gap:
            session = latest[value] = []
            found.append((value, session))
        session.append(row)
    return sorted(found, key=lambda entry: (entry[1][-1]["tuple_time"] + gap, null_first(entry[0])))


def expected(rows: Sequence[Row], gap: int, key: str | None, answer: Any) -> list[tuple[Any, ...]]:
    out = []
    for value, part in sessions(rows, gap, key):
        end = part[-1]["tuple_time"] + gap
        out.append((end, part[0]["tuple_time"], end, *((value,) if key else ()), *answer(part)))
    return out


@settings(max_examples=35, deadline=None)
@given(rows=frames(18), gap=st.integers(1, 12), cuts=CUTS)
def test_sessions_by_key(rows: pl.DataFrame, gap: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.session(gap, by="k").agg(**INCREMENTAL, **CLOSING))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), gap, "k", both))


@settings(max_examples=20, deadline=None)
@given(rows=frames(18), gap=st.integers(1, 12), cuts=CUTS)
def test_sessions_of_the_whole_stream(rows: pl.DataFrame, gap: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.session(gap).agg(**INCREMENTAL, **CLOSING))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), gap, None, both))


@settings(max_examples=20, deadline=None)
@given(rows=frames(18), gap=st.integers(1, 12), cuts=CUTS)
def test_sessions_with_closing_expressions_alone(rows: pl.DataFrame, gap: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.session(gap, by="s").agg(**CLOSING))
    assert_rows(run(operator, [rows], cuts), expected(dicts(rows), gap, "s", closing))


@settings(max_examples=10, deadline=None)
@given(rows=frames(18), gap=st.integers(1, 12), cuts=CUTS)
def test_folding_what_waits_early_changes_nothing(rows: pl.DataFrame, gap: int, cuts: list[int]) -> None:
    operator = operator_of(lambda s: s.session(gap, by="k").agg(**INCREMENTAL))
    usual = run(operator, [rows], cuts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenflow.operators.session.FOLD_ROWS", 1)
        assert run(operator, [rows], cuts).equals(usual)


def test_a_row_exactly_at_the_gap_begins_a_new_session() -> None:
    operator = operator_of(lambda s: s.session(10).agg(n=ef.count()))
    rows = frame([{"tuple_time": t} for t in (0, 9, 19, 29, 38)])
    assert run(operator, [rows], [9, 19, 20]).rows() == [(19, 0, 19, 2), (29, 19, 29, 1), (48, 29, 48, 2)]


def test_a_session_closes_when_its_silence_is_long_enough() -> None:
    operator = operator_of(lambda s: s.session(10).agg(n=ef.count()))
    rows = frame([{"tuple_time": 5}])
    early = drive(operator, [rows], [14])
    assert early.rows.is_empty()
    closed = drive(operator, [rows], [15], early.state, 14, early.boundary)
    assert closed.rows.rows() == [(15, 5, 15, 1)]


def test_a_session_of_windows_reads_the_inner_window_columns() -> None:
    net = ef.Network("nested")
    inner = net.source("a", ROW).window(5, by="k").agg(n=ef.count())
    inner.session(8).agg(late=pl.col("window_end").max(), starts=pl.col("window_start").implode()).output("out")
    rows = frame([{"tuple_time": t, "k": 1} for t in (1, 6, 8, 12)])
    out = ef.fold(net, {"a": rows})["out"]
    assert out.select("tuple_time", "late", "starts").rows() == [(23, 15, [0, 5, 10])]


def test_a_session_has_no_horizon() -> None:
    assert operator_of(lambda s: s.session(10).agg(n=ef.count())).horizon is None
