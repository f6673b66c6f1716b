"""Ways to break switching, restarts and snapshots."""

from __future__ import annotations

from mutant import CAMPAIGN, REPLICAS, Mutant

MUTANTS = [
    Mutant(
        "a silent replica is never taken for dead",
        "engine/ha_monitor.py",
        "heard_us is not None and now_us - heard_us <=",
        "heard_us is not None or now_us <=",
        "tests/unit/engine/test_ha_monitor.py",
    ),
    Mutant(
        "a consumer's own pause is held against its producers",
        "engine/ha_monitor.py",
        "if heard_us is not None and held_up_us > 0:",
        "if False:",
        "tests/unit/engine/test_ha_monitor.py",
    ),
    Mutant(
        "replicas are compared by their states only",
        "engine/switching.py",
        "    leaders = [name for name in order if _behind(able[current], able[name], time) >= margin_us]\n",
        "    leaders = []\n",
        REPLICAS + "a_link_that_one_replica_lacks_is_masked",
    ),
    Mutant(
        "tentative rows are taken though another replica has them stable",
        "engine/inputs.py",
        "return bool(others) and stable_elsewhere(",
        "return False and stable_elsewhere(",
        REPLICAS + "tentative_rows_of_a_replica_are_not_taken_while_another_one_has_them_stable",
    ),
    Mutant(
        "tentative rows are refused though nobody has them stable",
        "engine/switching.py",
        "max(time - margin_us, here + apart_us)",
        "time - margin_us",
        "tests/unit/engine/test_switching.py",
    ),
    Mutant(
        "a restart is not noticed",
        "engine/ha_monitor.py",
        "return before is not None and before.incarnation != pong.incarnation",
        "return False",
        "tests/unit/engine/test_ha_monitor.py",
    ),
    Mutant(
        "session numbers begin anew",
        "engine/node.py",
        "first_session=self._incarnation * SESSIONS_MAX",
        "first_session=0",
        REPLICAS + "a_node_without_partners_goes_on_from_its_checkpoint",
    ),
    Mutant(
        "numbering does not go on where the partner was",
        "operators/soutput.py",
        "        self.produced = self.sent_id = produced\n        self.boundary",
        "        self.boundary",
        REPLICAS + "a_restarted_replica_gets_its_state_from_a_partner",
    ),
    Mutant(
        "rows that wait are not part of a snapshot",
        "reconcile/heads.py",
        "f.sunion.waiting(), tuple(",
        "tuple(() for _ in f.sunion.boundaries), tuple(",
        REPLICAS + "all_replicas_crash_in_the_middle_of_a_failure",
    ),
    Mutant(
        "a snapshot has the state of the tentative head",
        "reconcile/undo.py",
        "        state = self._base\n        if self._history:",
        "        state = self._tentative_state\n        if self._history:",
        CAMPAIGN + "::test_every_invariant_holds_in_random_schedules[replicated_list-1]",
    ),
    Mutant(
        "rows are acknowledged before they are safe",
        "engine/node.py",
        "            yield from self.inputs.acknowledge(safe)",
        "            yield from self.inputs.acknowledge({n: p.next_id for n, p in self.inputs.ports.items()})",
        REPLICAS + "a_crash_right_behind_a_checkpoint",
    ),
    Mutant(
        "a dead replica keeps its rows in every log",
        "engine/publisher.py",
        "[name for name in names if name in living] or names for",
        "names for",
        REPLICAS + "a_replica_that_stayed_away_for_too_long_restarts_from_its_partner",
    ),
]
