"""Back-fill on a real Spark is ``fold``, to the bit: from frames, files and folders, at once or in stretches."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import evenflow as ef
from evenflow.engine.runtime.backfill import backfill as module
from evenflow.engine.runtime.backfill.backfill import backfill_on
from evenflow.engine.runtime.spark.errors import TaskError
from evenflow.engine.runtime.spark.host import SparkHost
from recipes import Inputs, bits, random_case

pytestmark = pytest.mark.xdist_group("spark")


def assert_same(done: ef.Backfilled, whole: dict[str, pl.DataFrame]) -> None:
    assert done.keys() == whole.keys()
    for name, rows in whole.items():
        found = pl.read_parquet(done[name])
        assert found.schema == rows.schema
        assert found["tuple_id"].to_list() == rows["tuple_id"].to_list()
        assert found["tuple_type"].to_list() == rows["tuple_type"].to_list()
        assert bits(found) == bits(rows), name
        assert done.rows[name] == rows.height


def recorded(inputs: Inputs, folder: Path, rng: random.Random) -> dict[str, str | Path | pl.DataFrame]:
    """Each source as a folder of a few files of several kinds."""
    given: dict[str, str | Path | pl.DataFrame] = {}
    for name, rows in inputs.items():
        given[name] = folder / name
        (folder / name / "sub").mkdir(parents=True)
        (folder / name / "_SUCCESS").touch()
        cuts = sorted(rng.randint(0, rows.height) for _ in range(2))
        for i, (start, end) in enumerate(zip([0, *cuts], [*cuts, rows.height], strict=True)):
            path = folder / name / ("sub" if i == 2 else "") / f"part-{i}"
            part = rows.slice(start, end - start)
            if i == 0:
                part.write_parquet(path.with_suffix(".parquet"))
            else:
                part.write_ipc(path.with_suffix(".arrow"))
    return given


@pytest.mark.parametrize("seed", range(4))
def test_random_networks_from_folders(spark: SparkHost, seed: int, tmp_path: Path) -> None:
    net, inputs = random_case(seed + 300)
    given = recorded(inputs, tmp_path / "in", random.Random(seed))
    assert_same(backfill_on(spark, net, given, tmp_path / "out"), ef.fold(net, inputs))
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(
        f"{name}.parquet" for name in net.outputs
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_networks_a_stretch_after_the_other(
    spark: SparkHost, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOCAL_ROWS", 40)
    monkeypatch.setattr("evenflow.engine.runtime.backfill.recording.SAMPLED", 8)
    net, inputs = random_case(seed + 400)
    size = sum(int(rows.estimated_size()) for rows in inputs.values())
    shares: list[float] = []
    done = backfill_on(spark, net, inputs, tmp_path, batch_bytes=size // 3, progress=shares.append)
    assert_same(done, ef.fold(net, inputs))
    assert len({share for share in shares if share > module.READING}) >= 2, "it was not cut"
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_rows_are_refused_as_by_fold_and_kept_with_the_reason(spark: SparkHost, tmp_path: Path) -> None:
    net = ef.Network("late")
    rows = net.source("s", {"at": pl.Int64, "v": pl.Int64}, time="at", slack="1s")
    rows.window("1s").agg(n=ef.count()).output("n")
    second = 1_000_000
    frames = [
        pl.DataFrame({"at": [0, 5 * second], "v": [1, 2]}),
        pl.DataFrame({"at": [second, 4_500_000, None], "v": [3, 4, 5]}),
    ]
    (tmp_path / "in").mkdir()
    for i, frame in enumerate(frames):
        frame.write_parquet(tmp_path / "in" / f"{i}.parquet")
    with pytest.warns(UserWarning, match=r"source 's' refused 2 rows; row 2: its time is more than 1s behind"):
        done = backfill_on(spark, net, {"s": tmp_path / "in"}, tmp_path / "out")
    with pytest.warns(UserWarning, match="refused 2 rows"):
        whole = ef.fold(net, {"s": pl.concat(frames)})
    assert_same(done, whole)
    assert pl.read_parquet(done.rejected["s"]).equals(whole.rejected["s"])


def test_no_input_gives_empty_files(spark: SparkHost, tmp_path: Path) -> None:
    net, _ = random_case(5)
    assert_same(backfill_on(spark, net, {}, tmp_path), ef.fold(net, {}))


def test_a_row_function_that_raises_is_told_once_and_leaves_nothing(spark: SparkHost, tmp_path: Path) -> None:
    def boom(row: dict[str, int]) -> dict[str, int]:
        raise ValueError("no such thing")

    net = ef.Network("boom")
    net.source("s", {"v": pl.Int64}).map_rows(boom).output("out")
    with pytest.raises(TaskError, match=r"map_rows: .*boom\(\) .*raised ValueError\('no such thing'\) on .*'v': 1"):
        backfill_on(spark, net, {"s": pl.DataFrame({"tuple_time": [1], "v": [1]})}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


QUERY = """
import polars as pl
import evenflow as ef

def half(row):
    return {"v": row["v"] / 2}

net = ef.Network("halves")
net.source("s", {"v": pl.Float64}).map_rows(half).window("1s").agg(sum=ef.sum("v")).output("sums")
"""


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "query.py").write_text(QUERY)
    rows = pl.DataFrame({"tuple_time": [1, 2, 1_500_000], "v": [1.0, 2.0, 4.0]})
    rows.write_csv(tmp_path / "s.csv")
    command = ["backfill", "query.py", "--input", "s=s.csv", "--out", "results", "--master", "local[1]"]
    done = subprocess.run(
        [sys.executable, "-m", "evenflow", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "sums: 2 stable rows in results/sums.parquet" in done.stdout
    assert "100 %" in done.stderr
    assert pl.read_parquet(tmp_path / "results" / "sums.parquet")["sum"].to_list() == [1.5, 2.0]
