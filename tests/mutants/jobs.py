"""Ways to break turns, slices, redo in jobs, and passes over partitions."""

from __future__ import annotations

from mutant import CAMPAIGN, LIVENESS, REPLAY, Mutant

MUTANTS = [
    Mutant(
        "deadlines are looked at before what has arrived is read",
        "engine/node.py",
        "now_us if self._read_all else START",
        "now_us",
        LIVENESS + "a_pause_is_no_failure_of_the_inputs",
    ),
    Mutant(
        "a driver wakes a node before it has read what arrived",
        "engine/simulator/world.py",
        "if isinstance(event, Wake | Again) and actor.inbox and type(event) not in actor.put_behind:",
        "if False:",
        LIVENESS + "a_pause_is_no_failure_of_the_inputs",
    ),
    Mutant(
        "a replay never ends without a live row",
        "engine/session.py",
        "            self.replaying = message.replayed\n",
        "            self.replaying = message.replayed or (self.replaying and not hasattr(message.item, 'rows'))\n",
        LIVENESS + "a_replay_that_is_the_last_thing_on_its_lane_ends",
    ),
    Mutant(
        "a correction ends only with its node's",
        "engine/node.py",
        "elif state == State.UP_FAILURE and not self.manager.correcting(name):",
        "elif False:",
        LIVENESS + "a_correction_of_one_branch_ends_while_another_is_blocked",
    ),
    Mutant(
        "slices last as long as X allows, whatever consumers think",
        "engine/threshold.py",
        "min(self.margin_us // REDO_SHARE // SLICES, heartbeat_us)",
        "self.margin_us // REDO_SHARE",
        LIVENESS + "consumers_of_a_node_that_is_busy_with_redo_do_not_subscribe_again",
    ),
    Mutant(
        "undo rebuilds all of its history at once",
        "reconcile/undo.py",
        "while self._rebuilding and (rows_max is None or not parts or folded < rows_max):",
        "while self._rebuilding:",
        LIVENESS + "redo_keeps_to_its_slices",
    ),
    Mutant(
        "undo waits for the rest of a tentative step for ever",
        "reconcile/undo.py",
        "        if not self._given or not arriving:",
        "        if not self._given:",
        LIVENESS + "a_complete_prefix_is_corrected_though_the_input_fails_again",
    ),
    Mutant(
        "the first fragment takes all of a slice",
        "reconcile/heads.py",
        "self._advance(number, share, now_us",
        "self._advance(number, rows_max and max(0, rows_max - done.corrected), now_us",
        LIVENESS + "every_fragment_gets_its_share_of_redo",
    ),
    Mutant(
        "idle time counts as the cost of a row",
        "engine/node.py",
        "(done.corrected if done.more else 0), now_us",
        "done.corrected, now_us",
        LIVENESS + "the_cost_of_a_row_is_not_measured_over_idle_time",
    ),
    Mutant(
        "the stable head moves while a job is away",
        "reconcile/fragment_heads.py",
        "return self.away is None and self.redo.ready(",
        "return self.redo.ready(",
        CAMPAIGN + "::test_every_invariant_holds_in_random_schedules[replayed_list-0]",
    ),
    Mutant(
        "what a job folded stays in the SUnion",
        "reconcile/fragment_heads.py",
        "        self.sunion.drop(job.upto)\n",
        "",
        REPLAY + "a_job_corrects_and_the_node_folds_what_came_meanwhile",
    ),
    Mutant(
        "the state that a job brought is not taken",
        "reconcile/checkpoint.py",
        "        self.state = state\n",
        "        pass\n",
        REPLAY + "a_job_corrects_and_the_node_folds_what_came_meanwhile",
    ),
    Mutant(
        "a job that failed stays away",
        "engine/node.py",
        "            fragment.away = None\n",
        "            pass\n",
        REPLAY + "a_job_that_fails_is_tried_again",
    ),
    Mutant(
        "a job that fails is tried for ever",
        "engine/dispatch.py",
        "        if memory.failed >= TRIES:",
        "        if False:",
        REPLAY + "when_it_fails_again_the_node_folds_it_and_says_so",
    ),
    Mutant(
        "undo forgets what a job folded",
        "reconcile/undo.py",
        "        self._tentative_state = None\n        self._remember(upto, rows)\n\n    def begin",
        "        self._tentative_state = None\n\n    def begin",
        "tests/unit/reconcile/test_undo.py",
    ),
    Mutant(
        "parts are stacked instead of merged",
        "reconcile/partition.py",
        "    if not in_order and len(files) > 1:",
        "    if False:",
        "tests/property/test_replay.py",
    ),
    Mutant(
        "operators with other keys stay in the same pass",
        "reconcile/lowering.py",
        "fits = draft.keys == origin if draft.spread == Spread.KEYS else draft.spread == Spread.ONE",
        "fits = True",
        "tests/property/test_replay.py",
    ),
]
