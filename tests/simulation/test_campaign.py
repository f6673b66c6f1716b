"""Random schedules: whatever fails when, the stable output is that of a run without failures, and all invariants hold.

What the schedules reached is printed at the end of the test run. A failing seed is reproduced, shrunk, with
``python tests/simulation/campaign.py --first SEED --seeds 1 --kind list``.
"""

from __future__ import annotations

import pytest

from simulation.campaign import Tally, report, run_one

BATCH = 30
KINDS = {"list": 4, "frame": 2, "replayed_list": 2, "replayed_frame": 1, "replicated_list": 3, "replicated_frame": 1}
BATCHES = [(kind, i) for kind, batches in KINDS.items() for i in range(batches)]


@pytest.mark.parametrize(("kind", "batch"), BATCHES)
def test_every_invariant_holds_in_random_schedules(
    kind: str, batch: int, record_property: pytest.RecordProperty
) -> None:
    tally = Tally()
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        one, violations = run_one(kind, seed)
        tally.update(one)
        if violations:
            pytest.fail(report(kind, seed, violations))
    record_property("tally", dict(tally))
    # Replicas mask many a failure.
    assert tally["with tentative rows"] >= BATCH * (0.3 if kind.startswith("replicated") else 2 / 3)
