"""Ways to break the protocol, each with the test that notices.

A mutant replaces one piece of text in a copy of the code. ``make mutants`` makes each copy, runs the named test in it,
and reports those that survive.
"""

from __future__ import annotations

from typing import NamedTuple

HARD = "tests/simulation/test_hard_cases.py::test_"
POLICIES = "tests/simulation/test_policies.py::test_"
RECONCILE = "tests/simulation/test_reconcile.py::test_"
LIVENESS = "tests/simulation/test_liveness.py::test_"
REPLAY = "tests/simulation/test_replay.py::test_"
CAMPAIGN = "tests/simulation/test_campaign.py"


class Mutant(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS = [
    Mutant(
        "a client is not told to undo",
        "engine/linear.py",
        "        yield Show(Undo(self.last_id))\n",
        "",
        HARD + "the_story_of_one_failure",
    ),
    Mutant(
        "an undo reaches one row too far",
        "engine/linear.py",
        "Show(Undo(self.last_id))",
        "Show(Undo(self.last_id - 1))",
        HARD + "the_story_of_one_failure",
    ),
    Mutant(
        "stable rows are shown behind tentative ones",
        "engine/linear.py",
        "        if not self._tentative_rows:\n            yield from self._release()",
        "        if True:\n            yield from self._release()",
        HARD + "the_story_of_one_failure",
    ),
    Mutant(
        "tentative rows that survive a correction are not shown again",
        "engine/linear.py",
        "        for item in self.shown:\n            yield from self._show(item, resent=True)\n",
        "",
        "tests/unit/engine/test_linear.py",
    ),
    Mutant(
        "the correction is not marked when a new failure cuts it short",
        "engine/node.py",
        "yield from self._rec_done(name, False, now_us)",
        "yield from ()",
        HARD + "rec_done_is_forced_between_the_last_stable_and_the_first_tentative_row",
    ),
    Mutant(
        "the correction is not marked when the heads meet",
        "engine/node.py",
        "yield from self._rec_done(name, True, now_us)",
        "yield from ()",
        "tests/unit/engine/test_node.py",
    ),
    Mutant(
        "the undo is not marked on the stream",
        "operators/soutput.py",
        "        return Undo(self.sent_id)",
        "        return None",
        "tests/unit/operators/test_soutput.py",
    ),
    Mutant(
        "stable rows are renumbered",
        "operators/soutput.py",
        "        first_id = self.sent_id - self._kernel.count(fresh) + 1\n",
        "        first_id = self.sent_id - self._kernel.count(fresh) + 2\n",
        HARD + "the_story_of_one_failure",
    ),
    Mutant(
        "tentative rows go out again after they went out",
        "operators/soutput.py",
        "        known = max(self.boundary, self.tentative_boundary)\n",
        "        known = self.boundary\n",
        "tests/unit/operators/test_soutput.py",
    ),
    Mutant(
        "a bucket that one input completes counts as complete",
        "operators/sunion.py",
        "floor(min(self.boundaries), self.bucket_us)",
        "floor(max(self.boundaries), self.bucket_us)",
        HARD + "the_story_of_one_failure",
    ),
    Mutant(
        "the second part of a bucket is forgotten",
        "operators/sunion.py",
        "                mine += theirs\n",
        "                mine += theirs[:1]\n",
        CAMPAIGN,
    ),
    Mutant(
        "stable rows do not supersede tentative ones",
        "operators/sunion.py",
        "        self.boundaries[place] = boundary\n        self._supersede(place, boundary)\n",
        "        self.boundaries[place] = boundary\n",
        "tests/unit/operators/test_sunion.py",
    ),
    Mutant(
        "buckets are released at once",
        "engine/release.py",
        "now_us + self._hold_us)",
        "now_us)",
        POLICIES + "a_failure_shorter_than_alpha_x_gives_no_tentative_row",
    ),
    Mutant(
        "a final boundary counts as a sign of time",
        "engine/release.py",
        "        if START < seen < FINAL:\n",
        "        if START < seen:\n",
        "tests/unit/engine/test_release.py",
    ),
    Mutant(
        "process waits for inputs that have failed",
        "engine/release.py",
        "alive = [time for time in reached if upto <= time < FINAL]",
        "alive = [time for time in reached if time < FINAL]",
        POLICIES + "delay_gives_fewer_tentative_rows_than_process",
    ),
    Mutant(
        "rows without a boundary behind them are not released",
        "engine/release.py",
        "        if latest > START:\n",
        "        if False:\n",
        "tests/unit/engine/test_release.py",
    ),
    Mutant(
        "a gap in ids goes unnoticed",
        "engine/port.py",
        "        return item.first_id <= self.next_id and item",
        "        return item",
        "tests/unit/engine/test_port.py",
    ),
    Mutant(
        "a lost message goes unnoticed",
        "engine/session.py",
        "Heard.NEXT if message.number == self._next[on_tentative_lane(message.item)] else Heard.LOST",
        "Heard.NEXT",
        "tests/unit/engine/test_port.py",
    ),
    Mutant(
        "rows that are known are taken again",
        "engine/port.py",
        "        rows = self._kernel.skip(item.rows, known) if known else item.rows\n",
        "        rows = item.rows\n",
        CAMPAIGN,
    ),
    Mutant(
        "a message of an old session is taken",
        "engine/session.py",
        "        if message.session != self.number:",
        "        if False:",
        "tests/unit/engine/test_port.py",
    ),
    Mutant(
        "a replay begins one row late",
        "engine/publisher.py",
        "        begin = max(next_id - self._replay.overlap, 1)",
        "        begin = max(next_id - self._replay.overlap, 1) + 1",
        HARD + "a_cut_shorter_than_a_heartbeat_loses_one_message",
    ),
    Mutant(
        "the log forgets what one consumer still needs",
        "engine/publisher.py",
        "        least = min(self._acked.values())",
        "        least = max(self._acked.values())",
        "tests/unit/engine/test_publisher.py",
    ),
    Mutant(
        "a stale tentative lane is not cleared on subscription",
        "engine/publisher.py",
        "            yield self._send(consumer, RecDone(known), now_us)\n            known = START\n",
        "            known = START\n",
        "tests/unit/engine/test_publisher.py",
    ),
    Mutant(
        "the tentative head is kept when the heads meet",
        "reconcile/fragment_heads.py",
        "        if self.tentative is None or self.sunion.cursor < self.tentative.cursor:\n",
        "        if True:\n",
        RECONCILE + "a_second_failure_starts_from_the_stable_state",
    ),
    Mutant(
        "corrections count as stopped at once",
        "reconcile/fragment_heads.py",
        "(coming or now_us - self.corrected_us < patience_us)",
        "False",
        POLICIES + "suspend_in_stabilization_breaks_x_after_long_failures_only",
    ),
    Mutant(
        "a blocking operator does not wait",
        "reconcile/fragment_heads.py",
        " if self.fragment.blocking else upto\n",
        " if False else upto\n",
        HARD + "a_join_without_one_side_blocks_and_says_so",
    ),
    Mutant(
        "tentative work goes on from an old state",
        "reconcile/fragment_heads.py",
        "self.redo.can_begin and self.sunion.cursor > self.tentative.based_on",
        "False",
        RECONCILE + "tentative_rows_rest_on_what_has_been_corrected_meanwhile",
    ),
    Mutant(
        "rows do not say what they lack",
        "reconcile/fragment_heads.py",
        "                found |= {place.name}\n",
        "                pass\n",
        HARD + "missing_goes_through_operators_and_nodes",
    ),
    Mutant(
        "undo takes changed steps for unchanged",
        "reconcile/undo.py",
        "        if not all(map(self._kernel.same, rows, done.rows)):",
        "        if False:",
        RECONCILE + "both_methods_give_the_same_stable_rows",
    ),
    Mutant(
        "undo keeps no input history",
        "reconcile/undo.py",
        "        if self._horizon_us:\n            self._history.append((upto, rows))\n",
        "",
        RECONCILE + "both_methods_give_the_same_stable_rows",
    ),
    Mutant(
        "undo compares nothing and always folds again",
        "reconcile/undo.py",
        "        if not all(map(self._kernel.same, rows, done.rows)):",
        "        if True:",
        RECONCILE + "undo_folds_fewer_rows_where_only_one_branch_changed",
    ),
    Mutant(
        "redo is not cut into slices",
        "engine/node.py",
        "self._advance(now_us, self.config.slice_rows)",
        "self._advance(now_us, 10**9)",
        "tests/unit/engine/test_node.py",
    ),
    Mutant(
        "redo goes before the inputs that wait",
        "engine/node.py",
        "redo_rows: int = 0",
        "redo_rows: int = 1_000",
        "tests/unit/engine/test_node.py",
    ),
    Mutant(
        "corrections on their way are forgotten between their parts",
        "reconcile/fragment_heads.py",
        "(coming or now_us - self.corrected_us < patience_us)",
        "(now_us - self.corrected_us < patience_us)",
        POLICIES + "a_slow_replay_does_not_make_outputs_flap",
    ),
    Mutant(
        "a window's boundary counts as a sign of time",
        "operators/items.py",
        "        return self.time if self.seen is None else min(self.seen, self.time)\n",
        "        return self.time\n",
        HARD + "a_window_that_runs_ahead_of_time_is_no_sign_that_time_has_passed",
    ),
    Mutant(
        "heartbeats go on the tentative lane only",
        "engine/publisher.py",
        "(False, True) if session.sent[True] or replaying else (False,)",
        "(True,)",
        "tests/unit/engine/test_publisher.py",
    ),
    Mutant(
        "what was blocked is guessed though it is complete",
        "reconcile/fragment_heads.py",
        "        if head is None and (self.away is not None or self.can_correct):",
        "        if False:",
        HARD + "a_join_without_one_side_blocks_and_says_so",
    ),
    Mutant(
        "everything below a failure is called failed",
        "engine/consistency_manager.py",
        "for i in self._heads.path_numbers(output))",
        "for i in range(len(self._fragments)))",
        HARD + "a_join_without_one_side_blocks_and_says_so",
    ),
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
