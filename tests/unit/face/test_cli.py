"""The command line, as a person uses it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

QUERY = """
import polars as pl
import evenflow as ef

net = ef.Network("shop")
sales = net.source("sales", {"at": pl.Datetime("us"), "zip": pl.String, "price": pl.Float64}, time="at")
sales.window("1s", by="zip").agg(total=ef.sum("price")).output("totals")

def inputs(seed):
    return {"sales": pl.DataFrame({"at": [], "zip": [], "price": []}, schema=dict(sales.schema))}
"""
CSV = "at,zip,price\n2024-01-01T00:00:00.100,01234,1\n2024-01-01T00:00:00.200,01234,2.5\n"


def evenflow(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evenflow", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(QUERY)
    (tmp_path / "sales.csv").write_text(CSV)
    return tmp_path


def test_csv_is_read_in_the_types_of_its_source(folder: Path) -> None:
    done = evenflow("fold", "shop.py", "--input", "sales=sales.csv", "--json", cwd=folder)
    (row,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (row["output"], row["zip"], row["total"]) == ("totals", "01234", 3.5)


def test_other_formats_give_the_same_rows(folder: Path) -> None:
    frame = pl.read_csv(folder / "sales.csv", schema_overrides={"zip": pl.String}, try_parse_dates=True)
    frame.write_parquet(folder / "sales.parquet")
    frame.write_ipc(folder / "sales.arrow")
    frame.with_columns(pl.col("at").cast(pl.String)).write_ndjson(folder / "sales.jsonl")
    outputs = {
        evenflow("fold", "shop.py", "--input", f"sales=sales.{ending}", "--json", cwd=folder).stdout
        for ending in ("csv", "parquet", "arrow", "jsonl")
    }
    assert len(outputs) == 1
    assert outputs.pop()


def test_results_go_to_a_folder(folder: Path) -> None:
    done = evenflow("fold", "shop.py", "--input", "sales=sales.csv", "--out", "results", cwd=folder)
    assert done.returncode == 0
    assert pl.read_parquet(folder / "results" / "totals.parquet")["total"].to_list() == [3.5]


def test_nan_is_written_as_json_can_say_it(folder: Path) -> None:
    (folder / "sales.csv").write_text(CSV + "2024-01-01T00:00:00.300,9,NaN\n")
    done = evenflow("fold", "shop.py", "--input", "sales=sales.csv", "--json", cwd=folder)
    totals = [json.loads(line, parse_constant=pytest.fail)["total"] for line in done.stdout.splitlines()]
    assert totals == [3.5, "nan"]


def test_explain_shows_the_plan(folder: Path) -> None:
    assert "SUnion(sales)" in evenflow("explain", "shop.py", cwd=folder).stdout
    assert evenflow("explain", "shop.py:net", "--mermaid", cwd=folder).stdout.startswith("flowchart LR")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["fold", "nothing.py"], "there is no file nothing.py"),
        (["fold", "shop.py:app"], "holds no network or deployment 'app'"),
        (["fold", "shop.py", "--input", "sales"], "write it as name=path"),
        (["fold", "shop.py", "--input", "sale=sales.csv"], "did you mean 'sales'?"),
        (["fold", "shop.py", "--input", "sales=sales.xml"], "the ending '.xml' is not known"),
        (["fold", "shop.py", "--input", "sales=empty.csv"], "--input sales=empty.csv"),
        (["fold", "shop.py", "--input", "sales=broken.parquet"], "--input sales=broken.parquet"),
        (["fold", "broken.py"], "broken.py, line 2"),
        (["fold", "shop.py", "--input", "sales=sales.csv", "--bucket", "soon"], "is not a duration"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(folder: Path, arguments: list[str], word: str) -> None:
    (folder / "empty.csv").write_text("")
    (folder / "sales.xml").write_text("<sales/>")
    (folder / "broken.parquet").write_text("not this")
    (folder / "broken.py").write_text("x = 1\ny = x +\n")
    done = evenflow(*arguments, cwd=folder)
    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr
