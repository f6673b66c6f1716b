"""fold: a network over frames, in process."""

from __future__ import annotations

import warnings

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from oracles import ROW, frames

SCHEMA = {"v": pl.Int64}


def passing(time: str | None = None) -> ef.Network:
    net = ef.Network("p")
    net.source("a", {"v": pl.Int64, "at": pl.Int64} if time else SCHEMA, time=time).output("out")
    return net


def test_rows_have_their_header_and_are_numbered_in_order() -> None:
    rows = pl.DataFrame({"tuple_time": [5, 1, 5], "v": [1, 2, 3]})
    out = ef.fold(passing(), {"a": rows})["out"]
    assert out.columns == ["tuple_id", "tuple_time", "tuple_type", "v"]
    assert out.rows() == [(1, 1, "INSERTION", 2), (2, 5, "INSERTION", 1), (3, 5, "INSERTION", 3)]


def test_a_source_without_a_frame_is_empty() -> None:
    net = ef.Network("u")
    net.union(net.source("a", SCHEMA), net.source("b", SCHEMA)).output("out")
    assert ef.fold(net, {"b": pl.DataFrame({"tuple_time": [1], "v": [1]})})["out"].height == 1
    empty = ef.fold(net, {})["out"]
    assert empty.height == 0
    assert empty.schema["v"] == pl.Int64


def test_an_unknown_source_or_output_is_named_with_the_nearest() -> None:
    with pytest.raises(ef.InputError, match=r"inputs: there is no source 'aa'; did you mean 'a'\?"):
        ef.fold(passing(), {"aa": pl.DataFrame()})
    with pytest.raises(KeyError, match="there is no output 'outt'; did you mean 'out'"):
        ef.fold(passing(), {})["outt"]


def test_refused_rows_warn_and_stand_in_rejected() -> None:
    rows = pl.DataFrame({"at": [5, 1, 6], "v": [1, 2, 3]})
    with pytest.warns(UserWarning, match=r"source 'a' refused 1 rows; row 1: its time is more than 0us behind"):
        out = ef.fold(passing("at"), {"a": rows})
    assert out["out"]["v"].to_list() == [1, 3]
    assert out.rejected["a"]["row"].to_list() == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ef.fold(passing("at"), {"a": rows.filter(pl.col("at") > 1)}).rejected == {}


def test_progress_rises_to_one() -> None:
    shares: list[float] = []
    rows = pl.DataFrame({"tuple_time": range(1000), "v": range(1000)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenflow.engine.fold.STEP_ROWS", 100)
        ef.fold(passing(), {"a": rows}, bucket=10, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 5
    nothing: list[float] = []
    ef.fold(passing(), {}, progress=nothing.append)
    assert nothing == [1.0]


def test_a_bad_bucket_is_named() -> None:
    with pytest.raises(ef.DeclarationError, match="fold: bucket='soon'"):
        ef.fold(passing(), {}, bucket="soon")


@settings(max_examples=20, deadline=None)
@given(a=frames(16), b=frames(16), bucket=st.integers(1, 50), step=st.integers(1, 9))
def test_buckets_and_steps_change_nothing(a: pl.DataFrame, b: pl.DataFrame, bucket: int, step: int) -> None:
    net = ef.Network("n")
    left, right = net.source("a", ROW), net.source("b", ROW)
    joined = left.join(right, on="k", within=5, how="left")
    joined.session(4, by="k").agg(n=ef.count(), dev=ef.std("f"), xs=pl.col("x").implode()).output("sessions")
    net.union(left, right).window(7, every=3).agg(total=ef.sum("f"), u=pl.col("s").n_unique()).output("windows")
    whole = ef.fold(net, {"a": a, "b": b})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenflow.engine.fold.STEP_ROWS", step)
        cut = ef.fold(net, {"a": a, "b": b}, bucket=bucket)
    assert all(cut[name].equals(whole[name]) for name in net.outputs)


def test_a_missing_column_stops_the_fold() -> None:
    with pytest.raises(ef.InputError, match="source 'a': the rows have no column 'v'"):
        ef.fold(passing(), {"a": pl.DataFrame({"tuple_time": [1]})})
