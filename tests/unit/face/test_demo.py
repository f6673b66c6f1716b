"""The demonstration tells what happened."""

from __future__ import annotations

import io

import polars as pl
import pytest
from rich.console import Console

from evenflow import demo
from evenflow.corrections import corrections
from evenflow.demo import Shown, change_counts
from evenflow.engine.linear import Stable, Tentative
from evenflow.operators.items import RecDone, TupleType, Undo, with_header


@pytest.fixture(scope="module")
def done() -> Shown:
    return demo.shown()


@pytest.fixture(scope="module")
def told(done: Shown) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    demo.tell(console, done)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_came_out_even(done: Shown) -> None:
    assert done.result.violations == []
    assert done.even("busy")
    assert done.even("scans")


def test_scans_were_tentative_while_the_monitor_was_away_and_lacked_it(done: Shown) -> None:
    tentative = [(time_us, item) for time_us, item in done.result.items("scans") if isinstance(item, Tentative)]
    assert tentative
    assert {name for _, item in tentative for name in item.missing} == {"monitor2"}
    assert all(5_000_000 < time_us < 16_500_000 for time_us, _ in tentative)


def test_the_correction_changed_rows_and_added_some(done: Shown) -> None:
    (correction,) = corrections(done.result.items("scans"))
    compared = correction.compared(demo.KEYS)
    changed = compared.filter(pl.col("change") == "changed")
    assert changed.height > 3
    assert (changed["ports"] > changed["ports_before"]).all()
    assert compared.filter(pl.col("change") == "added").height > 0
    counts = change_counts(done.result, "busy")
    assert counts["same"] + counts["changed"] + counts["removed"] == done.result.n_tentative("busy")


def test_the_story_has_the_facts(done: Shown, told: str) -> None:
    (correction,) = corrections(done.result.items("scans"))
    row = correction.compared(demo.KEYS).filter(pl.col("change") == "changed").row(0, named=True)
    assert f"{row['ports_before']} →  {row['ports']}" in told
    for words in (
        "monitor2 is cut off",
        "tentative, lacks monitor2",
        "edge: UP_FAILURE",
        "site: STABILIZATION",
        "undo: forget all after #0",
        "missed until now",
        "Broken invariants: none",
    ):
        assert words in told
    assert told.count("yes, bit for bit") == 2
    assert "…" not in told


def test_a_stable_stream_that_differs_is_not_called_even(done: Shown) -> None:
    wrong = dict(done.expected) | {"scans": done.expected["scans"].with_columns(pl.col("ports") + 1)}
    other = Shown(done.app, done.packets, done.ports, done.result, type(done.expected)(wrong, {}), 0.0)
    assert other.even("busy")
    assert not other.even("scans")


def test_corrections_compare_rows_by_key() -> None:
    def rows(*pairs: tuple[str, int]) -> pl.DataFrame:
        frame = pl.DataFrame(
            [(0, *pair) for pair in pairs], {"tuple_time": pl.Int64, "k": pl.String, "v": pl.Int64}, orient="row"
        )
        return with_header(frame, 1, TupleType.INSERTION)

    items = [
        (1, Stable(rows(("before", 0)))),
        (2, Tentative(rows(("a", 1), ("b", 2)))),
        (3, Tentative(rows(("c", 3)))),
        (4, Undo(1)),
        (4, Stable(rows(("a", 1), ("b", 5)))),
        (4, Stable(rows(("d", 4)))),
        (4, RecDone(9)),
        (5, Stable(rows(("after", 0)))),
    ]
    (correction,) = corrections(items)
    assert correction.compared(["k"]).select("k", "v_before", "v", "change").rows() == [
        ("a", 1, 1, "same"),
        ("b", 2, 5, "changed"),
        ("c", 3, None, "removed"),
        ("d", None, 4, "added"),
    ]
