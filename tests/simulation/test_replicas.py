"""Nodes with replicas: failures that are masked, switches of §3.5, crashes and restarts, and ends that are even."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
import pytest

import evenflow as ef
from monitors import ROW, SECOND, SOURCES, assert_even, seen, steady

HOLD_US = 705_333
"""αX for X of 1 s."""


def app(edge: int = 2, site: int = 2, x: str = "1s", operator: str = "window") -> ef.Deployment:
    """Three sources merged by one node; another one counts."""
    net = ef.Network("replicas")
    merged = net.union(*(net.source(name, ROW) for name in SOURCES)).named("merged")
    if operator == "window":
        counts = merged.window("1s", by="k").agg(n=ef.count(), total=ef.sum("v"))
    else:
        counts = merged.running(by="k").agg(n=ef.count(), total=ef.sum("v"))
    counts.named("counts").output("out")
    deployed = ef.Deployment(net)
    deployed.node("edge", [merged], x=x, replicas=edge)
    deployed.node("site", [counts], x=x, replicas=site)
    return deployed


def run(faults: list[Any], deployed: ef.Deployment | None = None, seed: int = 3, seconds: int = 12) -> ef.Result:
    deployed = deployed or app()
    result = ef.simulate(deployed, steady(seconds), faults, seed=seed)
    assert_even(result)
    assert result.stable("out").equals(ef.fold(deployed.network, steady(seconds))["out"])
    return result


def told(result: ef.Result, kind: str, node: str | None = None) -> list[str]:
    found = result.controls.filter(pl.col("kind") == kind)
    return (found if node is None else found.filter(pl.col("node") == node))["detail"].to_list()


def longest_gap(result: ef.Result) -> int:
    """The longest time between two signs that time passes, in microseconds."""
    times = [time for time, item in result.items("out") if isinstance(item, ef.Boundary)]
    return max(after - before for before, after in pairwise(times))


MOMENTS = ("2.03s", "4.51s", "6.98s")


@pytest.mark.parametrize("replica", ["edge/1", "edge/2", "site/1", "site/2"])
@pytest.mark.parametrize("at", MOMENTS)
def test_a_crash_of_any_replica_is_masked(replica: str, at: str) -> None:
    """Not a single tentative row, and nobody waits as long as for an input that is missing."""
    result = run([ef.Crash(replica, at)], app(operator="running"))
    assert result.n_tentative("out") == 0
    assert longest_gap(result) < HOLD_US


@pytest.mark.parametrize("link", ["edge/1->site/1", "edge->site/1", "m2->edge/1", "m2->edge/2", "site/1->client"])
def test_a_link_that_one_replica_lacks_is_masked(link: str) -> None:
    """The first case of §3.5: from one stable neighbour to another one."""
    result = run([ef.Cut(link, "3s", "8s")])
    assert result.n_tentative("out") == 0


def test_tentative_rows_of_a_replica_are_not_taken_while_another_one_has_them_stable() -> None:
    """X is so short that a replica fails before its lag tells the client to leave it."""
    net = ef.Network("short")
    merged = net.union(*(net.source(name, ROW) for name in SOURCES))
    merged.output("out")
    deployed = ef.Deployment(net)
    deployed.node("edge", [merged], x="780ms", replicas=2)
    result = run([ef.Cut("m2->edge/1", "3s", "8s"), ef.Cut("m1->edge/2", "9s", "11s")], deployed)
    assert "UP_FAILURE" in result.states()["state"].to_list()
    assert result.n_tentative("out") == 0


def test_an_undisturbed_run_does_not_switch_before_its_end() -> None:
    result = run([])
    assert not [time for time, _ in _switches(result) if time < 11.5]


def _switches(result: ef.Result) -> list[tuple[float, str]]:
    found = result.controls.filter(pl.col("kind") == "SWITCH")
    return [(row["time_us"] / SECOND, row["detail"]) for row in found.iter_rows(named=True)]


def test_from_a_failed_neighbour_to_a_stable_one() -> None:
    """The second case: both replicas of edge lack m2; one gets it back much earlier, and corrects what both guessed."""
    result = run([ef.Cut("m2->edge/1", "3s", "5s"), ef.Cut("m2->edge/2", "3s", "9s")])
    assert result.n_tentative("out") > 0
    undo = seen(result, ef.Undo)
    assert len(undo) == 1
    assert undo[0][0] < 6.5


def test_among_failed_neighbours_tentative_rows_come_once() -> None:
    """The third case: m2 is gone for good while replicas of edge die and come back. No window is shown twice."""
    result = run([ef.Cut("m2", "2s", "10s"), ef.Crash("edge/1", "5s", "6s"), ef.Crash("edge/2", "7.5s", "8.5s")])
    rows = [row for _, item in seen(result, ef.Tentative) for row in item.rows.select("window_end", "k").rows()]
    assert len(rows) == len(set(rows))


def test_another_replica_goes_on_with_a_correction_whose_sender_dies() -> None:
    result = run([ef.Cut("m2", "2s", "6s"), ef.Crash("site/1", "6.05s"), ef.Crash("edge/1", "6.03s")])
    assert len(seen(result, ef.Undo)) == len(seen(result, ef.RecDone)) >= 1


@pytest.mark.parametrize("operator", ["window", "running"])
@pytest.mark.parametrize("replica", ["edge/2", "site/1"])
def test_a_restarted_replica_gets_its_state_from_a_partner(replica: str, operator: str) -> None:
    """The operator without a horizon too. It numbers on, and both replicas end alike (checked after every run)."""
    result = run([ef.Crash(replica, "4s", "6s")], app(operator=operator))
    node, _, number = replica.partition("/")
    assert told(result, "RECOVERED", node) == [f"from the state of {node}/{3 - int(number)}"]
    assert result.n_tentative("out") == 0


def test_a_restarted_replica_can_stand_in_for_its_partner_at_once() -> None:
    result = run([ef.Crash("site/1", "3s", "4s"), ef.Crash("site/2", "5s")], app(operator="running"))
    assert result.n_tentative("out") == 0


@pytest.mark.parametrize("operator", ["window", "running"])
def test_a_node_without_partners_goes_on_from_its_checkpoint(operator: str) -> None:
    result = run([ef.Crash("edge", "4s", "4.3s"), ef.Crash("site", "7s", "7.2s")], app(1, 1, operator=operator))
    assert told(result, "RECOVERED") == ["from its last checkpoint"] * 2


@pytest.mark.parametrize("at", ["4.13s", "4.37s", "4.71s", "4.99s"])
def test_a_crash_right_behind_a_checkpoint(at: str) -> None:
    """What came while it was written is not in it, and must still be in the logs."""
    run([ef.Crash("edge", at, "6s"), ef.Crash("site", at, "6.5s")], app(1, 1, operator="running"))


def test_before_the_first_checkpoint_it_goes_on_from_the_beginning() -> None:
    result = run([ef.Crash("edge", "40ms", "300ms")], app(1, 1))
    assert told(result, "RECOVERED")[0] in ("from its last checkpoint", "from the beginning")


def test_all_replicas_of_everything_crash_at_once() -> None:
    faults = [ef.Crash(name, "5s", "5.5s") for name in ("edge", "site", *SOURCES)]
    result = run(faults, app(operator="running"))
    assert told(result, "RECOVERED") == ["from its last checkpoint"] * 4


@pytest.mark.parametrize("replicas", [1, 2])
def test_all_replicas_crash_in_the_middle_of_a_failure(replicas: int) -> None:
    """Rows that wait for m2 in SUnions are part of the checkpoint: upstream does not have them any more."""
    faults = [ef.Cut("m2", "3s", "8s"), ef.Crash("edge", "5s", "5.5s"), ef.Crash("site", "6s", "6.3s")]
    run(faults, app(replicas, replicas, operator="running"))


def test_a_crash_during_the_restart() -> None:
    run([ef.Crash("site/1", "4s", "6s"), ef.Crash("site/1", "6.005s", "7s"), ef.Crash("site/2", "6.006s", "6.5s")])


@pytest.mark.parametrize("members", [{"edge/1"}, {"edge/1", "site/1"}, {"site"}, {"edge/1", "site/2", "m1"}])
def test_partitions_heal(members: set[str]) -> None:
    run([ef.Partition(members, "3s", "7s")])


def test_a_replica_that_stayed_away_for_too_long_restarts_from_its_partner() -> None:
    """Its partner lives, so nobody keeps rows for it for longer than the bound of three seconds."""
    result = run([ef.Partition({"site/1"}, "3s", "11s")], app(operator="running"), seconds=16)
    assert told(result, "RECOVERED", "site") == ["from the state of site/2"]
    kept = {who: sum(out.kept_rows for out in node.publishers.values()) for who, node in result.run.nodes.items()}
    assert max(kept["edge/1"], kept["edge/2"]) < 200


def test_three_replicas() -> None:
    faults = [ef.Crash("edge/1", "3s"), ef.Crash("edge/2", "5s"), ef.Crash("site/3", "4s"), ef.Crash("site/1", "6s")]
    result = run(faults, app(3, 3))
    assert result.n_tentative("out") == 0
