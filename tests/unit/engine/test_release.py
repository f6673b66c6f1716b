"""Release: evidence of time starts a bucket's clock; policies say what follows when it has run out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenflow.engine.release import POLICIES, Release, delay, process, suspend
from evenflow.engine.threshold import Threshold
from evenflow.operators.times import FINAL, START

HOLD_US, BUCKET_US = 900, 100


def release() -> Release:
    return Release(Threshold(x_us=1_000, hold_us=HOLD_US), BUCKET_US)


def test_nothing_is_due_without_evidence() -> None:
    due = release()
    assert due.next_us is None
    assert due.expire(10**9, START) == START


def test_a_boundary_is_evidence_for_the_buckets_it_has_passed() -> None:
    due = release()
    due.arrived(seen=250, latest=START, now_us=260)
    assert due.next_us == 260 + HOLD_US
    assert due.expire(260 + HOLD_US - 1, START) == START
    assert due.expire(260 + HOLD_US, START) == 200
    assert due.next_us is None


def test_a_row_without_a_boundary_behind_its_bucket_waits_a_bucket_longer() -> None:
    due = release()
    due.arrived(seen=START, latest=250, now_us=260)
    assert due.next_us == 260 + HOLD_US + BUCKET_US
    assert due.expire(260 + HOLD_US + BUCKET_US - 1, START) == START
    assert due.expire(260 + HOLD_US + BUCKET_US, START) == 300


def test_the_boundary_behind_a_row_brings_its_deadline_forward() -> None:
    due = release()
    due.arrived(seen=200, latest=250, now_us=260)
    due.arrived(seen=300, latest=START, now_us=310)
    assert due.expire(260 + HOLD_US, START) == 200
    assert due.next_us == 310 + HOLD_US
    assert due.expire(310 + HOLD_US, START) == 300


def test_the_first_evidence_counts() -> None:
    due = release()
    due.arrived(seen=200, latest=START, now_us=210)
    due.arrived(seen=200, latest=START, now_us=500)
    due.arrived(seen=150, latest=START, now_us=500)
    assert due.expire(210 + HOLD_US, START) == 200
    assert due.next_us is None


def test_the_final_boundary_is_no_sign_of_time() -> None:
    due = release()
    due.arrived(seen=FINAL, latest=START, now_us=0)
    assert due.next_us is None
    due.arrived(seen=FINAL, latest=250, now_us=0)
    assert due.expire(10**9, START) == 300


def test_everything_up_to_the_largest_expired_bucket_is_due() -> None:
    """1. A boundary passes bucket 5. 2. A replay puts a late row into bucket 1. 3. Bucket 5 expires: all are due."""
    due = release()
    due.arrived(seen=500, latest=START, now_us=0)
    due.arrived(seen=START, latest=120, now_us=800)
    due.arrived(seen=600, latest=START, now_us=850)
    assert due.expire(HOLD_US, START) == 500
    assert due.next_us == 850 + HOLD_US


def test_buckets_that_were_folded_stable_never_become_due() -> None:
    due = release()
    due.arrived(seen=200, latest=START, now_us=0)
    due.arrived(seen=300, latest=START, now_us=100)
    assert due.expire(0, stable=200) == START
    assert due.next_us == 100 + HOLD_US
    assert due.expire(5_000, stable=300) == START


def test_what_is_due_stays_so_until_it_has_come_out_stable() -> None:
    due = release()
    due.arrived(seen=200, latest=START, now_us=0)
    due.expire(HOLD_US, START)
    assert due.expire(HOLD_US, START) == due.due == 200
    due.arrived(seen=200, latest=150, now_us=HOLD_US)
    assert due.next_us is None
    due.reset()
    assert due.due == START


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(-1, 1_000), st.integers(0, 300)), max_size=12))
def test_deadlines_are_those_of_the_simple_rule(story: list[tuple[int, int, int]]) -> None:
    due, now_us = release(), 0
    rule: list[tuple[int, int]] = []
    for boundary, row, wait_us in story:
        now_us += wait_us
        latest = START if row < 0 else row
        due.arrived(boundary, latest, now_us)
        rule.append((now_us + HOLD_US, boundary // 100 * 100))
        if row >= 0:
            rule.append((now_us + HOLD_US + BUCKET_US, row // 100 * 100 + 100))
    for at_us in sorted({deadline + d for deadline, _ in rule for d in (-1, 0)}):
        assert due.expire(at_us, START) == max((end for deadline, end in rule if deadline <= at_us), default=START)


def test_suspend_releases_nothing() -> None:
    assert suspend(500, START, [600, 700], 700, BUCKET_US) == START
    assert suspend(500, 300, [600, 700], 700, BUCKET_US) == 300


def test_delay_releases_what_is_due_and_no_more() -> None:
    assert delay(START, START, [600], 600, BUCKET_US) == START
    assert delay(500, 300, [600, 700], 700, BUCKET_US) == 500
    assert delay(500, 600, [600, 700], 700, BUCKET_US) == 600


@pytest.mark.parametrize(
    ("due", "released", "reached", "expected"),
    [
        (START, START, [600, 700], START),  # before the first expiry nothing is released
        (500, START, [100, 700, 899], 700),  # the input at 100 has failed; the others have reached 700
        (500, START, [500, 700], 500),  # one that is just there is alive
        (500, START, [499, 750], 700),  # one that a release passed has failed, and the part of a bucket waits
        (500, 700, [600, 950], 900),  # it stays failed until it catches up with what was released
        (500, 700, [700, 950], 700),  # now it has caught up, and is waited for again
        (500, START, [100, 200], 500),  # all have failed: what is due, and no more
        (500, START, [100, FINAL], 500),  # an ended input says nothing of time
        (500, START, [100, FINAL, 800], 800),
        (500, START, [START, 800], 800),  # nor does one that never spoke
    ],
)
def test_process_waits_only_for_inputs_that_have_not_failed(
    due: int, released: int, reached: list[int], expected: int
) -> None:
    assert process(due, released, reached, max(t for t in reached if t < FINAL), BUCKET_US) == expected


def test_no_policy_ever_takes_a_release_back() -> None:
    for policy in POLICIES.values():
        assert policy(START, 700, [100, 650], 650, BUCKET_US) == 700


def test_process_releases_no_bucket_that_time_has_not_come_to() -> None:
    """The boundary behind a window says 900 when time is at 420: the bucket of the present, and no more."""
    assert process(300, START, [100, 900], 420, BUCKET_US) == 500
    assert process(300, 600, [100, 900], 420, BUCKET_US) == 600
