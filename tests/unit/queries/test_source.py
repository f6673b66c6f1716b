"""Sources: which rows they take, which they refuse, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenflow as ef
from evenflow.operators.times import FINAL, START
from evenflow.queries.source import Source, declare_source


def source(schema: dict[str, Any] | None = None, time: str | None = None, slack: int = 0) -> Source:
    return declare_source("meter", schema or {"v": pl.Int64}, time, slack)


def test_attributes_come_behind_the_time_in_the_declared_order() -> None:
    rows = pl.DataFrame({"b": ["x"], "extra": [0], "a": [1], "tuple_time": [5]})
    taken, refused = source({"a": pl.Int64, "b": pl.String}).admit(rows)
    assert taken.columns == ["tuple_time", "a", "b"]
    assert taken.rows() == [(5, 1, "x")]
    assert refused.height == 0


def test_rows_without_a_time_or_at_its_ends_are_refused_and_the_others_taken() -> None:
    rows = pl.DataFrame({"tuple_time": [3, None, START, FINAL, 1], "v": [1, 2, 3, 4, 5]})
    taken, refused = source().admit(rows)
    assert taken["v"].to_list() == [1, 5]
    assert refused["row"].to_list() == [1, 2, 3]
    assert refused["v"].to_list() == [2, 3, 4]
    out_of_range = "its time is out of range: it must lie within ±2305843009213693952 microseconds"
    assert refused["reason"].to_list() == ["it has no time", out_of_range, out_of_range]


def test_columns_called_row_and_reason_stay_in_what_was_refused() -> None:
    declared = source({"row": pl.Int64, "reason": pl.String})
    _, refused = declared.admit(pl.DataFrame({"tuple_time": [FINAL], "row": [7], "reason": ["mine"]}))
    assert (refused["row"][0], refused["reason"][0], refused[":row"][0]) == (7, "mine", 0)


def test_times_widen_where_nothing_is_lost() -> None:
    times = {"tuple_time": pl.Series([1_000]).cast(pl.Datetime("ms")), "at": pl.Series([1]).cast(pl.Date)}
    rows = pl.DataFrame(times)
    taken, _ = source({"at": pl.Datetime("us")}).admit(rows)
    assert taken["tuple_time"].to_list() == [1_000_000]
    assert taken["at"].to_physical().to_list() == [86_400_000_000]


@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.none() | st.integers(-50, 50), max_size=20),
    slack=st.integers(0, 20),
    newest=st.none() | st.integers(-50, 50),
)
def test_rows_may_be_late_by_the_slack(times: list[int | None], slack: int, newest: int | None) -> None:
    declared = source({"at": pl.Int64}, "at", slack)
    rows = pl.DataFrame({"at": times}, schema={"at": pl.Int64})
    taken, refused = declared.admit(rows, START if newest is None else newest)
    lead, good, bad = newest, [], []
    for place, time in enumerate(times):
        late = time is None or (lead is not None and time < lead - slack)
        (bad if late else good).append(place)
        lead = lead if time is None else time if lead is None else max(lead, time)
    assert taken["tuple_time"].to_list() == [times[place] for place in good]
    assert refused["row"].to_list() == bad


def test_a_time_that_is_out_of_range_does_not_make_later_rows_late() -> None:
    declared = source({"at": pl.Int64}, "at", 0)
    taken, refused = declared.admit(pl.DataFrame({"at": [1, FINAL, 2]}))
    assert taken["at"].to_list() == [1, 2]
    assert refused["row"].to_list() == [1]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_datetime_column_is_a_time_in_microseconds(unit: Any) -> None:
    declared = source({"at": pl.Datetime(unit)}, "at")
    rows = pl.DataFrame({"at": pl.Series([datetime(1970, 1, 1, 0, 0, 2)], dtype=pl.Datetime(unit))})  # noqa: DTZ001
    taken, _ = declared.admit(rows)
    assert taken["tuple_time"].to_list() == [2_000_000]
    assert taken.schema["at"] == pl.Datetime(unit)


def test_a_missing_column_is_named_with_the_nearest() -> None:
    with pytest.raises(ef.InputError, match=r"source 'meter': the rows have no column 'v'; there is 'tuple_time', 'w'"):
        source().admit(pl.DataFrame({"tuple_time": [1], "w": [2]}))
    with pytest.raises(ef.InputError, match=r"no column 'value'; did you mean 'valu'\?"):
        source({"value": pl.Int64}).admit(pl.DataFrame({"tuple_time": [1], "valu": [2]}))
    with pytest.raises(ef.InputError, match="no column 'tuple_time'"):
        source().admit(pl.DataFrame({"v": [2]}))


WIDENED = [
    (pl.Int64, pl.Series([1], dtype=pl.Int8), 1),
    (pl.Int8, pl.Series([1], dtype=pl.Int64), 1),
    (pl.Float64, pl.Series([1], dtype=pl.Int64), 1.0),
    (pl.Float64, pl.Series([0.5], dtype=pl.Float32), 0.5),
    (pl.String, pl.Series(["a"], dtype=pl.Categorical), "a"),
    (pl.Enum(["a"]), pl.Series(["a"]), "a"),
    (pl.String, pl.Series([None]), None),
]


@pytest.mark.parametrize(("declared", "column", "value"), WIDENED, ids=str)
def test_types_are_widened_where_nothing_is_lost(declared: Any, column: pl.Series, value: Any) -> None:
    taken, _ = source({"v": declared}).admit(pl.DataFrame({"tuple_time": [1], "v": column}))
    assert taken.schema["v"] == declared
    assert taken["v"].to_list() == [value]


REFUSED = [
    (pl.Int64, pl.Series([0.5])),
    (pl.Int64, pl.Series(["1"])),
    (pl.Int8, pl.Series([1000])),
    (pl.Float32, pl.Series([0.1], dtype=pl.Float64)),
    (pl.Float64, pl.Series([2**53 + 1])),
    (pl.Enum(["a"]), pl.Series(["b"])),
    (pl.String, pl.Series([b"x"])),
]


@pytest.mark.parametrize(("declared", "column"), REFUSED, ids=str)
def test_a_value_that_would_change_is_refused(declared: Any, column: pl.Series) -> None:
    with pytest.raises(ef.InputError, match="source 'meter': column 'v'"):
        source({"v": declared}).admit(pl.DataFrame({"tuple_time": [1], "v": column}))


DECLARED_BADLY: list[tuple[tuple[Any, ...], str]] = [
    (("", {"v": pl.Int64}, None, 0), "give it a name"),
    (("a", {}, None, 0), "source 'a': declare at least one column"),
    (("a", {"tuple_id": pl.Int64}, None, 0), "'tuple_id' is a column of every row's header"),
    (("a", {":v": pl.Int64}, None, 0), "do not begin with ':'"),
    (("a", {"v": "nonsense"}, None, 0), "'nonsense' of column 'v' is not a Polars type"),
    (("a", {"when": pl.Int64}, "wen", 0), r"time='wen' is not a column; did you mean 'when'\?"),
    (("a", {"when": pl.String}, "when", 0), "time column 'when' is String"),
    (("a", {"v": pl.Int64}, None, 5), "slack= goes with time="),
]


@pytest.mark.parametrize(("arguments", "message"), DECLARED_BADLY)
def test_mistakes_in_a_declaration(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ef.DeclarationError, match=message):
        declare_source(*arguments)
