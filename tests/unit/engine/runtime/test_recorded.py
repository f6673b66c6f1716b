"""Recorded input: what is read of which files, in which order, and what is refused."""

from __future__ import annotations

import datetime
from pathlib import Path

import polars as pl
import pytest

import evenflow as ef
from evenflow.engine.runtime.backfill.recording import Recording, stretches
from evenflow.engine.runtime.recorded import files_of, read, read_parts
from evenflow.operators.errors import InputError
from evenflow.operators.times import FINAL, START
from evenflow.queries.source import Source

NET = ef.Network("recorded")
SOURCE = NET.source("s", {"v": pl.Int64}).source
ROWS = pl.DataFrame({"tuple_time": [1, 2, 3], "v": [10, 20, 30]})


def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path) -> None:
    wide = ROWS.with_columns(other=pl.lit("not asked for"))
    wide.write_parquet(tmp_path / "a.parquet")
    wide.write_csv(tmp_path / "a.csv")
    wide.write_ndjson(tmp_path / "a.jsonl")
    wide.write_ipc(tmp_path / "a.arrow")
    for path in tmp_path.iterdir():
        assert read(path, SOURCE).equals(ROWS), path
        parts = [part for _, part in read_parts(path, SOURCE, 2)]
        assert pl.concat(parts).equals(ROWS), path


def test_times_in_text_files_are_parsed(tmp_path: Path) -> None:
    source = NET.source("dated", {"at": pl.Datetime("us"), "v": pl.Int64}, time="at").source
    (tmp_path / "a.csv").write_text("at,v\n2026-01-02T03:04:05,1\n")
    assert read(tmp_path / "a.csv", source)["at"].to_list() == [datetime.datetime(2026, 1, 2, 3, 4, 5)]  # noqa: DTZ001


def test_a_folder_is_read_by_the_names_of_its_files(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        ROWS.with_columns(v=pl.lit(ord(name)).cast(pl.Int64)).write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.crc").touch()
    assert [file.name for file in files_of(tmp_path)] == ["a.parquet", "b.parquet", "c.parquet"]
    assert read(tmp_path, SOURCE)["v"].unique(maintain_order=True).to_list() == [ord(name) for name in "abc"]


def test_mistakes_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file or folder .*nothing"):
        files_of(tmp_path / "nothing")
    with pytest.raises(InputError, match="there are no files in"):
        files_of(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match=r"notes\.txt: the ending '\.txt' is not known"):
        files_of(tmp_path)
    (tmp_path / "broken.parquet").write_text("hello")
    with pytest.raises(InputError, match=r"broken\.parquet: "):
        read(tmp_path / "broken.parquet", SOURCE)
    with pytest.raises(InputError, match=r"broken\.parquet: "):
        list(read_parts(tmp_path / "broken.parquet", SOURCE, 9))
    pl.DataFrame({"tuple_time": [1], "w": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"other\.parquet: source 's': the rows have no column 'v'"):
        list(recording(tmp_path).read(tmp_path / "other.parquet"))


def recording(folder: Path, source: Source = SOURCE) -> Recording:
    return Recording(source, folder, folder / "rejected.parquet")


def test_runs_that_overlap_come_out_in_order_and_equal_times_as_recorded(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.add(pl.DataFrame({"tuple_time": [5, 1, 3], "v": [1, 2, 3]}))
    made.add(pl.DataFrame({"tuple_time": [3, 9, 1], "v": [4, 5, 6]}))
    assert made.between(START, FINAL).rows() == [(1, 2), (1, 6), (3, 3), (3, 4), (5, 1), (9, 5)]
    assert made.between(3, 9).rows() == [(3, 3), (3, 4), (5, 1)]
    assert made.between(10, FINAL).rows() == []
    assert made.rows == 6


def test_refused_rows_are_counted_through_all_parts(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.add(pl.DataFrame({"tuple_time": [1, 2], "v": [1, 2]}))
    made.add(pl.DataFrame({"tuple_time": [None, 2, None], "v": [3, 4, 5]}))
    assert made.first_refused == "row 2: it has no time"
    assert made.refused is not None
    made.refused.finish()
    assert pl.read_parquet(tmp_path / "rejected.parquet")["row"].to_list() == [2, 4]


def test_time_is_cut_at_ends_of_buckets_into_stretches_of_about_the_wanted_size(tmp_path: Path) -> None:
    made = recording(tmp_path)
    made.add(pl.DataFrame({"tuple_time": range(100_000), "v": range(100_000)}))
    assert stretches([made], made.bytes, 100) == [FINAL]
    assert stretches([recording(tmp_path)], 1, 100) == [FINAL]
    cuts = stretches([made], made.bytes // 4, 100)
    assert cuts[-1] == FINAL
    assert all(cut % 100 == 0 for cut in cuts[:-1])
    sizes = [made.between(since, upto).height for since, upto in zip([START, *cuts], cuts, strict=False)]
    assert sum(sizes) == 100_000
    assert len(sizes) in (4, 5)
    assert max(sizes) < 28_000
