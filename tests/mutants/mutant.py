"""What a mutant is, and the tests that notice most of them."""

from __future__ import annotations

from typing import NamedTuple

HARD = "tests/simulation/test_hard_cases.py::test_"
POLICIES = "tests/simulation/test_policies.py::test_"
RECONCILE = "tests/simulation/test_reconcile.py::test_"
LIVENESS = "tests/simulation/test_liveness.py::test_"
REPLICAS = "tests/simulation/test_replicas.py::test_"
REPLAY = "tests/simulation/test_replay.py::test_"
CAMPAIGN = "tests/simulation/test_campaign.py"


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    test: str
