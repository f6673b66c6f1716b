"""Schedules in which campaigns found something broken, kept whole. What each found is told beside its seed."""

from __future__ import annotations

import pytest

from schedules import list_schedule

FOUND = {
    1_001_266: "a window's boundary, ahead of time, started deadlines of buckets that had not yet been",
    1_003_012: "the same, where the node processes",
    1_001_569: "each message of a burst folded a slice of redo before the live input was read",
    1_002_916: "two slices of redo on end kept tentative rows that were due",
    2_000_862: "behind a tentative window nobody heard that time passes until the next one closed",
    2_001_704: "the same, where two branches meet",
    2_002_483: "the same, in a chain of three",
}


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_stays_mended(seed: int) -> None:
    _, violations = list_schedule(seed).run()
    assert violations == [], FOUND[seed]
