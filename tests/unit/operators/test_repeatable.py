"""What could differ between replicas is refused, or computed so that it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

import evenflow as ef
from evenflow.engine import fold as fold_module
from evenflow.operators.times import TIME_MAX

SCHEMA = {"b": pl.Boolean, "l": pl.List(pl.Int64), "s": pl.String, "v": pl.Int64}


def source() -> ef.Stream:
    return ef.Network("repeatable").source("a", SCHEMA)


CHOICE = pl.when(pl.col("b")).then(0.7).otherwise(0.1)


@pytest.mark.parametrize("expression", [CHOICE / 3, CHOICE % 0.1, CHOICE // 0.3, (CHOICE + 1) / 3], ids=str)
def test_a_choice_between_constants_is_not_divided(expression: pl.Expr) -> None:
    with pytest.raises(ef.DeclarationError, match="choice between constants"):
        source().with_columns(r=expression)


@pytest.mark.parametrize(
    "expression", [pl.col("l").list.sample(1), pl.col("l").list.eval(pl.element().shuffle())], ids=str
)
def test_chance_within_a_list_is_refused(expression: pl.Expr) -> None:
    with pytest.raises(ef.DeclarationError, match="at random"):
        source().with_columns(r=expression)
    with pytest.raises(ef.DeclarationError, match="at random"):
        source().window("1s").agg(r=expression.first())


def test_categoricals_are_refused_wherever_they_come_from() -> None:
    with pytest.raises(ef.DeclarationError, match="Categorical"):
        ef.Network().source("a", {"c": pl.Categorical()})
    with pytest.raises(ef.DeclarationError, match="Categorical"):
        source().with_columns(r=pl.col("s").cast(pl.Categorical()).to_physical())


def test_a_batch_function_is_found_out_at_the_first_batch_of_several_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = source()
    rows.select("v").map_batches(lambda frame: frame.select(pl.col("v") - pl.col("v").max())).output("o")
    times = [0, 1000, 2000, 2001, 2002]
    frame = pl.DataFrame({"tuple_time": times, "b": True, "l": [[1]] * 5, "s": "x", "v": [1, 2, 3, 4, 5]})
    monkeypatch.setattr(fold_module, "STEP_ROWS", 1)
    with pytest.raises(ef.NotDeterministicError, match="cut in two"):
        ef.fold(rows.network, {"a": frame}, bucket="1ms")


@pytest.mark.parametrize("time", [2**63 - 2, -(2**63) + 1, TIME_MAX])
def test_times_that_would_wrap_round_are_refused(time: int) -> None:
    net = ef.Network()
    net.source("a", {"v": pl.Int64}).window("1s").agg(n=ef.count()).output("n")
    with pytest.warns(UserWarning, match="out of range"):
        out = ef.fold(net, {"a": pl.DataFrame({"tuple_time": [5, time], "v": [1, 2]})})
    assert out["n"]["n"].to_list() == [1]


@dataclass(frozen=True)
class Nothing:
    """No state."""


class Faulty(ef.Operator[Nothing]):
    """Gives whatever it is told to."""

    state_type = Nothing

    def __init__(self, give: Any) -> None:
        self.give = give

    def schema(self, inputs: Any) -> Any:
        return inputs

    def step(self, state: Nothing, rows: pl.DataFrame, upto: int) -> Any:
        return self.give(state, rows, upto)


@pytest.mark.parametrize(
    ("give", "word"),
    [
        (lambda s, rows, upto: rows, "must give Step"),
        (lambda s, rows, upto: ef.Step(s, rows.drop("v"), upto), "promised"),
        (lambda s, rows, upto: ef.Step(s, rows.cast({"v": pl.Float64}), upto), "promised"),
        (lambda s, rows, upto: ef.Step(s, rows.reverse(), upto), "not ordered"),
        (lambda s, rows, upto: ef.Step(s, rows, 2), "not below its boundary"),
        (lambda s, rows, upto: ef.Step(s, rows.clear(), 2), "once the input has ended"),
    ],
)
def test_a_user_s_operator_is_held_to_the_protocol(give: Any, word: str) -> None:
    net = ef.Network()
    net.source("a", {"v": pl.Int64}).apply(Faulty(give)).output("o")
    with pytest.raises(ef.OperatorError, match=f"Faulty.*{word}"):
        ef.fold(net, {"a": pl.DataFrame({"tuple_time": [1, 2, 3], "v": [1, 2, 3]})})


def test_a_plain_tuple_is_a_step_too() -> None:
    net = ef.Network()
    net.source("a", {"v": pl.Int64}).apply(Faulty(lambda s, rows, upto: (s, rows, upto))).output("o")
    assert ef.fold(net, {"a": pl.DataFrame({"tuple_time": [1], "v": [4]})})["o"]["v"].to_list() == [4]
