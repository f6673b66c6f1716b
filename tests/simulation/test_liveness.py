"""What kept a node from getting even, or made it go on without need: each found by review or by a campaign."""

from __future__ import annotations

from typing import Any

import pytest

import evenflow as ef
from evenflow.engine.linear import Stable, Tentative
from evenflow.engine.simulator.checks import check
from evenflow.engine.simulator.layout import Layout, NodeChoices, Settings
from evenflow.engine.simulator.run import Run, run
from evenflow.engine.simulator.seen import n_tentative, new_rows
from evenflow.engine.simulator.world import Costs
from evenflow.reconcile.job import InProcess
from list_plans import KERNEL, Join, ListPlan, Pass, Running, fold_layout

S, MS = 1_000_000, 1_000
Plans = dict[str, ListPlan]


def rows(source: int, seconds: float, rate: int) -> list[Any]:
    return [(int((j + 0.5) * S / rate), j % 4, j % 1000, source, j) for j in range(int(seconds * rate))]


def layout(
    plans: Plans, choices: dict[str, NodeChoices], rates: list[int], seconds: float, settings: Settings | None = None
) -> Layout[Any]:
    sources = {f"s{i}": (i, rows(i, seconds, rate)) for i, rate in enumerate(rates)}
    outputs = {name: node for node, plan in plans.items() for name in plan.outputs if name.startswith("out")}
    return Layout(KERNEL, plans, choices, sources, outputs, settings or Settings())


def even(laid: Layout[Any], faults: list[Any], seed: int = 1, **how: Any) -> Run[Any]:
    done = run(laid, faults, seed, **how)
    assert check(done, fold_layout(laid)) == []
    assert done.finished
    return done


def changes(done: Run[Any], who: str, output: str | None = None) -> list[tuple[float, str]]:
    """A node's changes of state, or an output's, with the second."""
    return [
        (round((time - done.start_us) / S, 1), str(change.state))
        for time, node, change in done.states
        if node == f"{who}/1" and change.output == output
    ]


def shown(done: Run[Any], kind: type, output: str = "out") -> list[float]:
    return [(time - done.start_us) / S for time, show in done.shown[output] if isinstance(show.item, kind)]


def one_node(operator: Pass, n: int = 2) -> Plans:
    plan = ListPlan({i: f"s{i}" for i in range(n)})
    plan.outputs["out"] = plan.add(operator, *range(n))
    return {"main": plan}


def two_nodes() -> tuple[Plans, ListPlan, ListPlan]:
    names = {i: f"s{i}" for i in range(3)}
    up, down = ListPlan(names), ListPlan(names)
    return {"up": up, "down": down}, up, down


@pytest.mark.parametrize("policy", ["process", "suspend"])
def test_a_replay_that_is_the_last_thing_on_its_lane_ends(policy: Any) -> None:
    """The producer fails while its replay is on the way: no live row follows, but heartbeats do."""
    plans, up, down = two_nodes()
    middle = up.outputs["mid"] = up.add(Pass(), 0, 1, name="mid")
    down.outputs["out"] = down.add(Running(), middle, 2)
    choices = {"up": NodeChoices(S, "checkpoint"), "down": NodeChoices(S, "checkpoint", "process", policy)}
    laid = layout(plans, choices, [20] * 3, 22)
    done = even(laid, [ef.Cut("up->down", "2s", "5s"), ef.Cut("s1", "4s", "20s")])
    assert any(5 < time < 7 and state == "UP_FAILURE" for time, state in changes(done, "down"))
    assert sum(6 < time < 20 for time in shown(done, Tentative)) > 50
    assert any(5 < time < 7 for time in shown(done, Stable)), "what was missed is corrected at once"


@pytest.mark.parametrize("policy", ["process", "suspend"])
def test_a_correction_of_one_branch_ends_while_another_is_blocked(policy: Any) -> None:
    """Its output was in UP_FAILURE all the time."""
    plans, up, down = two_nodes()
    merged, alone = up.add(Pass(), 0, 1), up.add(Pass(), 2)
    middle = up.outputs["mid"] = up.add(Pass(), merged, alone, name="mid")
    down.outputs["out"] = down.add(Pass(), middle)
    choices = {"up": NodeChoices(S, "checkpoint"), "down": NodeChoices(S, "checkpoint", "process", policy)}
    done = even(layout(plans, choices, [20] * 3, 22), [ef.Cut("s2", "2s", "6s"), ef.Cut("s0", "4s", "20s")])
    assert sum(7 < time < 20 for time in shown(done, Tentative)) > 50
    assert (22, "STABILIZATION") not in changes(done, "down")


def test_a_pause_is_no_failure_of_the_inputs() -> None:
    """Two seconds, twice X: what has arrived is read before deadlines are looked at."""
    for seed in range(10):
        laid = layout(one_node(Pass(), 3), {"main": NodeChoices(S, "checkpoint")}, [50] * 3, 8, Settings(phases=True))
        done = even(laid, [ef.Pause("main", "2s", "4s")], seed)
        assert n_tentative(done, "out") == 0, seed
        assert changes(done, "main") == []


def test_consumers_of_a_node_that_is_busy_with_redo_do_not_subscribe_again() -> None:
    plans, up, down = two_nodes()
    left = up.outputs["left"] = up.add(Pass(), 0, 1, name="left")
    right = up.outputs["right"] = up.add(Pass(), 2, name="right")
    down.outputs["out"] = down.add(Pass(), left, right)
    choices = {"up": NodeChoices(20 * S, "checkpoint"), "down": NodeChoices(3 * S, "checkpoint")}
    laid = layout(plans, choices, [50] * 3, 80, Settings(costs=Costs(4_000.0)))
    done = even(laid, [ef.Cut("s1", "2s", "30s"), ef.Cut("up->down", "10s", "30s")])
    assert max(port.session for port in done.nodes["down/1"].inputs.ports.values()) <= 6


class Long(Pass):
    """Rows as they are, and a history of five seconds to rebuild a state that is none."""

    horizon = 5 * S


@pytest.mark.parametrize("method", ["checkpoint", "undo"])
def test_redo_keeps_to_its_slices(method: str) -> None:
    chosen = NodeChoices(3 * S, method, "delay", "process")
    laid = layout(one_node(Long()), {"main": chosen}, [200, 200], 40, Settings(costs=Costs(333.0)))
    done = even(laid, [ef.Cut("s1", "12s", "22s")])
    bucket_us = 40 * 333
    assert done.busy_us_max["main/1"] <= laid.slice_us("main") + bucket_us
    assert max(new.delay_us for new in new_rows(done, "out")) <= 3 * S


@pytest.mark.parametrize("method", ["checkpoint", "undo"])
def test_a_complete_prefix_is_corrected_though_the_input_fails_again(method: str) -> None:
    """The first tentative step reaches beyond what was complete when the input failed for the second time."""
    laid = layout(one_node(Pass()), {"main": NodeChoices(10 * S, method)}, [20, 20], 70, Settings(replay_speed=2.0))
    done = even(laid, [ef.Cut("s1", "5s", "20s"), ef.Cut("s1", "23s", "60s")])
    before = [
        show.item.rows[-1][0] / S for time, show in done.shown["out"] if isinstance(show.item, Stable) and time < 50 * S
    ]
    assert max(before) > 9


def test_every_fragment_gets_its_share_of_redo() -> None:
    """One has much to correct and the other next to nothing; in which order they stand does not matter."""
    for order in (("outa", "outb"), ("outb", "outa")):
        plan = ListPlan({i: f"s{i}" for i in range(4)})
        for name in order:
            plan.outputs[name] = plan.add(Pass(), *((0, 1) if name == "outa" else (2, 3)))
        choices = {"main": NodeChoices(S, "checkpoint")}
        laid = layout({"main": plan}, choices, [200, 200, 5, 5], 60, Settings(costs=Costs(2_000.0)))
        done = run(laid, [ef.Cut("s1", "3s", "20s"), ef.Cut("s3", "5s", "20s")], 1)
        stable = [time for time, state in changes(done, "main", "outb") if state == "STABLE"]
        assert stable[0] < 23, order


def test_redo_that_gains_on_its_input_is_not_called_overloaded() -> None:
    plan = ListPlan({i: f"s{i}" for i in range(4)})
    plan.outputs["outa"], plan.outputs["outb"] = plan.add(Pass(), 0, 1), plan.add(Pass(), 2, 3)
    laid = layout(
        {"main": plan}, {"main": NodeChoices(S, "checkpoint")}, [100, 100, 600, 5], 60, Settings(costs=Costs(2_000.0))
    )
    done = run(laid, [ef.Cut("s1", "3s", "20s"), ef.Cut("s3", "15s", "58s")], 1)
    between = [c.kind for time, _, c in done.controls if time < 50 * S]
    assert "OVERLOADED" not in between


def test_what_was_blocked_waits_for_the_job_that_folds_it() -> None:
    """A join lacked a side and nothing was shown: the node does not guess what a job is folding."""
    tentative = {}
    for replay in ("local", "spark"):
        chosen = NodeChoices(2 * S, "checkpoint", "process", "process", replay)  # type: ignore[arg-type]
        laid = layout(one_node(Join(300 * MS)), {"main": chosen}, [50, 50], 60, Settings(costs=Costs(10.0, 5 * S, 0.1)))
        done = even(laid, [ef.Cut("s1", "5s", "40s")], executor=InProcess())
        tentative[replay] = n_tentative(done, "out")
    assert tentative == {"local": 0, "spark": 0}


def test_the_cost_of_a_row_is_not_measured_over_idle_time() -> None:
    """A second failure, two minutes after the first: redo is as cheap as it was, and stays in the node."""
    chosen = NodeChoices(2 * S, "checkpoint", replay="auto")
    laid = layout(one_node(Pass()), {"main": chosen}, [20, 20], 130, Settings(costs=Costs(10.0, 3 * S, 5.0)))
    done = even(laid, [ef.Cut("s1", "5s", "10s"), ef.Cut("s1", "100s", "105s")], executor=InProcess())
    assert [control.kind for _, _, control in done.controls if control.kind == "REPLAY"] == []
    assert done.nodes["main/1"].dispatcher.rates.local_us_per_row == pytest.approx(10.0, rel=0.5)
