"""The paper's hard cases, and those that a prototype stumbled over, each by name."""

from __future__ import annotations

import polars as pl
import pytest

import evenflow as ef
from monitors import ROW, SECOND, assert_even, chain, counted, kinds, rows, seen, states, steady


def test_the_story_of_one_failure() -> None:
    result = ef.simulate(chain(1), steady(20), [ef.Cut("m2", "5s", "10s")], seed=1)
    assert_even(result)
    assert kinds(result) == ["Stable", "Tentative", "Undo", "Stable", "RecDone", "Stable"]
    assert states(result, "n0") == ["STABLE", "UP_FAILURE", "STABILIZATION", "STABLE"]
    assert {frozenset(item.missing) for _, item in seen(result, ef.Tentative)} == {frozenset({"m2"})}
    controls = result.controls["kind"].to_list()
    assert controls == ["UP_FAILURE", "REC_REQUEST", "REC_DONE"]


def test_an_operator_sees_new_tentative_rows_before_the_undo() -> None:
    """§3.5: the second node gets new tentative rows while the corrections of older ones are still on their way."""
    result = ef.simulate(chain(2, x="1s"), steady(20), [ef.Cut("m2", "4s", "12s")], seed=2, replay_speed=3)
    assert_even(result)
    healed = 12.1
    undo = seen(result, ef.Undo)[0][0]
    between = [time for time, _ in seen(result, ef.Tentative) if healed < time < undo]
    assert between, "no tentative row came between the healing and the undo"


def test_duplicates_are_eliminated_through_a_second_recovery() -> None:
    faults = [ef.Cut("m2", "3s", "6s"), ef.Cut("m1", "6.1s", "9s"), ef.Cut("m3", "9.1s", "11s")]
    result = ef.simulate(chain(2, x="1s"), steady(20), faults, seed=3)
    assert_even(result)
    ids = result.stable("out")["tuple_id"].to_list()
    assert ids == list(range(1, len(ids) + 1))
    assert states(result, "n0").count("STABILIZATION") >= 2


def test_rec_done_is_forced_between_the_last_stable_and_the_first_tentative_row() -> None:
    """A second input fails while the first is being corrected, so that the heads never meet."""
    faults = [ef.Cut("m2", "3s", "8s"), ef.Cut("m1", "7s", "14s")]
    result = ef.simulate(chain(1, x="1s"), steady(20), faults, seed=4)
    assert_even(result)
    assert states(result, "n0")[1:4] == ["UP_FAILURE", "STABILIZATION", "UP_FAILURE"]
    shown = kinds(result)
    first = shown.index("RecDone")
    assert shown[first - 2 : first + 2] == ["Undo", "Stable", "RecDone", "Tentative"]


def test_stable_boundaries_are_withheld_until_corrected() -> None:
    result = ef.simulate(chain(1, x="1s"), steady(20), [ef.Cut("m2", "5s", "10s")], seed=5)
    stable = [(time, item.time) for time, item in seen(result, ef.Boundary) if item.stable]
    during = [boundary / SECOND for time, boundary in stable if 5.5 < time < 10]
    assert all(boundary <= 5.1 for boundary in during)
    assert any(not item.stable and 6 < time < 10 for time, item in seen(result, ef.Boundary))


def test_a_window_over_a_sparse_input_closes() -> None:
    """m1 has a row at 0.2 s and then only boundaries; m2 and m3 are cut. The window must still come out."""
    inputs = {"m1": rows([0.2, 9.5]), "m2": rows([0.1, 9]), "m3": rows([])}
    faults = [ef.Cut("m2", 0 + 1, "8s"), ef.Cut("m3", "0.05s", "8s")]
    result = ef.simulate(counted(), inputs, faults, seed=6, x="1s")
    assert_even(result)
    time, item = seen(result, ef.Tentative)[0]
    assert item.rows["window_end"].to_list() == [SECOND]
    assert time < 1 + 1
    assert item.missing == {"m2", "m3"}


@pytest.mark.parametrize("reconcile", ["checkpoint", "undo"])
def test_a_bucket_whose_missing_input_turns_out_to_be_empty(reconcile: str) -> None:
    inputs = steady(15)
    inputs["m2"] = inputs["m2"].filter((pl.col("tuple_time") < 4 * SECOND) | (pl.col("tuple_time") > 11 * SECOND))
    result = ef.simulate(chain_of(reconcile), inputs, [ef.Cut("m2", "5s", "10s")], seed=7)
    assert_even(result)
    assert result.n_tentative("out") > 0
    folded = result.redos["rows"].sum()
    assert folded == 0 if reconcile == "undo" else folded > 0


def chain_of(reconcile: str) -> ef.Deployment:
    net = ef.Network("one")
    net.union(*(net.source(name, ROW) for name in ("m1", "m2", "m3"))).named("u").output("out")
    app = ef.Deployment(net)
    app.node("n0", [net.outputs["out"]], x="2s", reconcile=reconcile)
    return app


def test_all_inputs_are_cut_at_once() -> None:
    faults = [ef.Cut(name, "5s", "10s") for name in ("m1", "m2", "m3")]
    result = ef.simulate(chain(1, x="1s"), steady(15), faults, seed=8)
    assert_even(result)
    last = max(item.rows["tuple_time"].max() for time, item in seen(result, ef.Stable) if time < 5.5)
    shown = [item for time, item in seen(result, ef.Tentative) if time < 9]
    assert all(item.rows["tuple_time"].min() >= last for item in shown)


def test_a_cut_shorter_than_a_heartbeat_loses_one_message() -> None:
    """Of 60 places for a cut of 16 ms some hit exactly one message; ids must reveal each loss."""
    lost = 0
    for i in range(60):
        start = 3 * SECOND + i * 7_000
        faults = [ef.Cut("m2", start, start + 16_000)]
        result = ef.simulate(chain(1), steady(5), faults, seed=i)
        assert_even(result)
        assert result.n_tentative("out") == 0
        lost += result.run.nodes["n0/1"].inputs.ports[1].session > 1
    assert lost > 3


def test_a_failure_during_reconciliation_and_another_on_top() -> None:
    faults = [
        ef.Cut("m1", "3s", "8s"),
        ef.Cut("m1", "8.2s", "11s"),
        ef.Cut("m2", "8.1s", "12s"),
        ef.Stall("m3", "9s", "13s"),
    ]
    for reconcile in ("checkpoint", "undo", "auto"):
        result = ef.simulate(counted("500ms"), steady(20), faults, seed=9, x="1s", reconcile=reconcile, replay_speed=4)
        assert_even(result)


def test_a_redo_slower_than_its_input_is_overloaded() -> None:
    """60 rows a second at 15 ms each leave no time to catch up; it says so, keeps X, and recovers when input ends."""
    result = ef.simulate(chain(1), steady(30), [ef.Cut("m2", "5s", "10s")], seed=10, redo_cost=20_000)
    assert_even(result)
    overloaded = result.controls.filter(pl.col("kind") == "OVERLOADED")
    assert overloaded.height >= 1
    assert "rows wait" in overloaded["detail"][0]
    quick = ef.simulate(chain(1), steady(30), [ef.Cut("m2", "5s", "10s")], seed=10)
    assert "OVERLOADED" not in quick.controls["kind"].to_list()


def test_live_sources_that_are_skewed_are_reported() -> None:
    skewed = ef.simulate(chain(1, x="2s"), steady(10), [ef.Skew("m1", "1.2s")], seed=11)
    assert {"m2", "m3"} <= set(skewed.controls.filter(pl.col("kind") == "SKEW")["stream"])
    assert skewed.violations == []
    slightly = ef.simulate(chain(1, x="2s"), steady(10), [ef.Skew("m1", "300ms")], seed=11)
    assert "SKEW" not in slightly.controls["kind"].to_list()
    assert slightly.n_tentative("out") == 0


def test_a_join_without_one_side_blocks_and_says_so() -> None:
    net = ef.Network("join")
    left, right = net.source("left", ROW), net.source("right", ROW)
    left.join(right, on="k", within="500ms").output("joined")
    left.filter(pl.col("v") >= 0).output("plain")
    inputs = steady(15, names=("left", "right"))
    result = ef.simulate(net, inputs, [ef.Cut("right", "5s", "10s")], seed=12, x="1s")
    assert_even(result)
    assert result.n_tentative("joined") == 0
    outputs = result.output_states()
    assert outputs.filter((pl.col("output") == "joined") & pl.col("blocked")).height > 0
    assert outputs.filter(pl.col("output") == "plain").height == 0, "a path that the failure does not touch"
    assert result.n_tentative("plain") == 0
    assert result.delay_new("plain") < SECOND


def test_missing_goes_through_operators_and_nodes() -> None:
    net = ef.Network("missing")
    merged = net.union(*(net.source(name, ROW) for name in ("m1", "m2", "m3"))).named("merged")
    counts = merged.window("500ms", by="k").agg(n=ef.count()).named("counts")
    counts.filter(pl.col("n") > 0).output("out")
    app = ef.Deployment(net)
    app.node("edge", [merged], x="1s")
    app.node("site", [net.outputs["out"]], x="1s")
    one = ef.simulate(app, steady(15), [ef.Cut("m2", "4s", "10s")], seed=13)
    assert_even(one)
    assert {item.missing for _, item in seen(one, ef.Tentative)} == {frozenset({"m2"})}
    link = ef.simulate(app, steady(15), [ef.Cut("edge->site", "4s", "10s")], seed=13)
    assert_even(link)
    assert all(item.missing == {"merged"} for _, item in seen(link, ef.Tentative))


def test_an_input_that_heals_more_slowly_than_real_time() -> None:
    result = ef.simulate(chain(1), steady(20), [ef.Cut("m2", "3s", "9s")], seed=14, replay_speed=0.5)
    assert_even(result)
    assert result.delay_new("out") < 2 * SECOND


def test_a_paused_node_reads_its_inputs_before_it_calls_them_failed() -> None:
    result = ef.simulate(chain(1), steady(15), [ef.Pause("n0", "4s", "9s")], seed=15)
    assert_even(result)
    assert result.n_tentative("out") == 0


def test_the_same_seed_gives_the_same_run() -> None:
    faults = [ef.Cut("m2", "3s", "7s"), ef.Slow("m1", "4s", "9s", "200ms")]
    one, two, other = (ef.simulate(chain(2), steady(12), faults, seed=seed) for seed in (1, 1, 2))
    times = [[time for time, _ in result.items("out")] for result in (one, two, other)]
    assert times[0] == times[1] != times[2]
    assert one.stable("out").equals(other.stable("out"))


def test_a_window_that_runs_ahead_of_time_is_no_sign_that_time_has_passed() -> None:
    """One node counts over 5 s, the next merges the counts with a plain stream: its X may be shorter than 5 s."""
    net = ef.Network("ahead")
    one, other = net.source("m1", ROW), net.source("m2", ROW)
    counts = one.window("5s").agg(k=ef.count(), v=ef.max("v")).select("k", "v").named("counts")
    net.union(counts, other).output("out")
    app = ef.Deployment(net)
    app.node("counting", [counts], x="1s")
    app.node("merging", [net.outputs["out"]], x="1s")
    inputs = steady(15, names=("m1", "m2"))
    well = ef.simulate(app, inputs, seed=1)
    assert_even(well)
    assert well.n_tentative("out") == 0
    assert well.controls.height == 0
    cut = ef.simulate(app, inputs, [ef.Cut("m2", "4s", "8s")], seed=1)
    assert_even(cut)
    assert cut.delay_new("out") < 2 * SECOND
