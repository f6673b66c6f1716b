"""``evenflow simulate``: what it prints, draws and refuses."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evenflow import simulated
from evenflow.cli import app
from evenflow.engine.simulator import plot
from evenflow.operators.errors import EvenflowError

QUERY = """
import polars as pl
import evenflow as ef

net = ef.Network("doors")
a, b = (net.source(name, {"v": pl.Int64}) for name in ("a", "b"))
counted = net.union(a, b).named("both").window("1s").agg(n=ef.count()).named("counted")
counted.output("counted")
net.union(b).filter(pl.col("v") > 5).output("large")

app = ef.Deployment(net, bucket="100ms")
app.node("near", list(net.outputs.values()), x="1s", replicas=REPLICAS)

def inputs(seed):
    rows = pl.DataFrame({"tuple_time": range(0, 8_000_000, 50_000), "v": [i % 10 for i in range(160)]})
    return {"a": rows, "b": rows}
"""
CUT = ("--cut", "a@2s..5s", "--seed", "3")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "doors.py").write_text(QUERY.replace("REPLICAS", "1"))
    (tmp_path / "twice.py").write_text(QUERY.replace("REPLICAS", "2"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *arguments], catch_exceptions=False)


def facts(*arguments: str) -> dict[str, Any]:
    done = run(*arguments, "--json")
    found: dict[str, Any] = json.loads(done.stdout, parse_constant=pytest.fail)
    assert done.exit_code == (1 if found["violations"] else 0)
    return found


@pytest.mark.usefixtures("folder")
class TestFacts:
    def test_the_object_has_all_facts_under_stable_names(self) -> None:
        found = facts("doors.py", *CUT)
        assert list(found) == [
            "network", "seed", "start_us", "stopped_us", "finished", "faults", "outputs",
            "states", "output_states", "controls", "redos", "rejected", "violations",
        ]  # fmt: skip
        assert (found["network"], found["seed"], found["finished"]) == ("doors", 3, True)
        assert found["faults"] == [
            {"kind": "cut", "where": "a", "start_us": 2_000_000, "end_us": 5_000_000, "by_us": None}
        ]
        assert found["violations"] == []
        assert [redo["node"] for redo in found["redos"]] == ["near"]
        assert {"UP_FAILURE", "REC_REQUEST", "REC_DONE"} <= {control["kind"] for control in found["controls"]}

    def test_only_what_the_failure_reaches_is_tentative(self) -> None:
        outputs = facts("doors.py", *CUT)["outputs"]
        assert outputs["counted"]["missing"] == ["a"]
        assert outputs["counted"]["tentative_rows"] > 0
        assert outputs["counted"]["stable_rows"] == 8
        assert outputs["counted"]["undos"] == 1
        assert 0 < outputs["counted"]["delay_new_us"] < outputs["counted"]["delay_allowed_us"] == 1_000_000
        assert outputs["large"]["tentative_rows"] == outputs["large"]["undos"] == 0
        assert outputs["large"]["first_tentative_us"] is None

    def test_states_begin_and_end_stable(self) -> None:
        states = [change["state"] for change in facts("doors.py", *CUT)["states"]]
        assert states == ["STABLE", "UP_FAILURE", "STABILIZATION", "STABLE"]

    def test_the_same_seed_gives_the_same_run(self) -> None:
        assert run("doors.py", *CUT, "--json").stdout == run("doors.py", *CUT, "--json").stdout

    def test_every_kind_of_fault_is_taken_and_told(self) -> None:
        found = facts(
            "doors.py", "--cut", "a@1s..1.5s", "--cut", "near->client@6s..6.2s", "--stall", "b@2s..2.2s",
            "--slow", "a@3s..4s+300ms", "--pause", "near@5s..5.1s", "--skew", "b=-50ms",
        )  # fmt: skip
        assert [(fault["kind"], fault["by_us"]) for fault in found["faults"]] == [
            ("cut", None), ("cut", None), ("stall", None), ("slow", 300_000), ("pause", None), ("skew", -50_000),
        ]  # fmt: skip

    def test_a_network_alone_takes_x_and_bucket(self) -> None:
        found = facts("doors.py:net", *CUT, "--x", "1500ms", "--bucket", "50ms")
        assert found["outputs"]["counted"]["delay_allowed_us"] == 1_500_000
        assert found["states"][0]["node"] == "main"

    def test_until_stops_the_run(self) -> None:
        found = facts("doors.py", *CUT, "--until", "4s")
        assert not found["finished"]
        assert found["outputs"]["counted"]["stable_rows"] == 1
        assert "before the run had come to rest" in run("doors.py", *CUT, "--until", "4s").stdout

    def test_suspend_promises_no_delay(self, folder: Path) -> None:
        text = (folder / "doors.py").read_text().replace('x="1s"', 'x="1s", on_failure="suspend"')
        (folder / "patient.py").write_text(text)
        assert not facts("patient.py", *CUT)["outputs"]["counted"]["delay_promised"]
        assert "no bound" in run("patient.py", *CUT).stdout

    def test_rows_are_read_from_files(self, folder: Path) -> None:
        (folder / "a.csv").write_text("tuple_time,v\n1700000000100000,1\n1700000001200000,7\n")
        found = facts("doors.py", "--input", "a=a.csv")
        assert found["start_us"] == 1_700_000_000_000_000
        assert found["outputs"]["counted"]["stable_rows"] == 2


@pytest.mark.usefixtures("folder")
class TestStory:
    def test_it_tells_outputs_states_redo_and_invariants(self) -> None:
        told = run("doors.py", *CUT).stdout
        assert "doors, seed 3" in told
        assert "cut a from 2s to 5s" in told
        for word in ("counted", "large", "UP_FAILURE", "STABILIZATION", "redo: near reconciled once"):
            assert word in told
        assert "all invariants hold" in told

    def test_a_broken_invariant_is_listed_and_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real = simulated.simulate

        def wrong(*arguments: Any, **settings: Any) -> Any:
            result = real(*arguments, **settings)
            result.violations.append("1 equal: counted [has] other rows")
            return result

        monkeypatch.setattr(simulated, "simulate", wrong)
        done = run("doors.py", *CUT)
        assert done.exit_code == 1
        assert "1 equal: counted [has] other rows" in done.stdout
        assert "all invariants hold" not in done.stdout
        assert facts("doors.py", *CUT)["violations"] == ["1 equal: counted [has] other rows"]

    def test_skew_is_told(self) -> None:
        assert "SKEW (near, a)" in run("doors.py", "--skew", "b=600ms").stdout

    def test_several_replicas_are_simulated_without_a_warning(self, folder: Path) -> None:
        command = [sys.executable, "-m", "evenflow", "simulate", "twice.py", "--json"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert done.stderr == ""
        json.loads(done.stdout)


@pytest.mark.usefixtures("folder")
class TestPlot:
    def test_a_png_is_drawn_in_full_size(self, folder: Path) -> None:
        assert run("doors.py", *CUT, "--plot", "out.png").exit_code == 0
        data = (folder / "out.png").read_bytes()
        width, height = struct.unpack(">II", data[16:24])
        assert data.startswith(b"\x89PNG")
        assert width >= 1000
        assert height >= 800
        assert len(data) > 20_000

    def test_the_picture_shows_faults_outputs_and_states(self) -> None:
        faults = simulated.faults(["a@2s..5s"], (), (), ("near@6s..6.5s",), ("b=100ms",))
        asked = simulated.Asked("doors.py", faults, 3, (), None, None, None, None, None, None)
        drawn = plot.figure(simulated._result(simulated.load("doors.py"), asked), "doors")
        bands = [[label.get_text() for label in panel.get_yticklabels()] for panel in (drawn.axes[0], drawn.axes[-1])]
        assert bands == [["cut a", "pause near", "skew b +100ms"], ["near"]]
        titles = [panel.get_title(loc="left") for panel in drawn.axes]
        assert [title.partition(":")[0] for title in titles[1:-1]] == ["counted", "counted", "large", "large"]
        limit = next(line for line in drawn.axes[1].lines if line.get_linestyle() == "--")
        assert limit.get_ydata()[0] == pytest.approx(1.1)  # type: ignore[index]
        labels = [text.get_text() for text in drawn.legends[0].get_texts()]
        assert {"stable rows", "tentative rows", "UP_FAILURE", "STABILIZATION"} <= set(labels)

    @pytest.mark.parametrize(("ending", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
    def test_other_endings(self, folder: Path, ending: str, begins: bytes) -> None:
        assert run("doors.py", *CUT, "--plot", f"out.{ending}").exit_code == 0
        assert (folder / f"out.{ending}").read_bytes().startswith(begins)

    def test_importing_evenflow_does_not_import_matplotlib(self) -> None:
        code = "import sys, evenflow, evenflow.simulated; sys.exit('matplotlib' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cut", "a"], "--cut a: write it like monitor2@5s..15s"),
        (["--slow", "a@1s..2s"], "write it like monitor2@5s..15s+300ms"),
        (["--cut", "a@5s..2s"], "not after its start"),
        (["--cut", "aa@2s..5s"], "there is no source or link 'aa'"),
        (["--pause", "far@2s..5s"], "there is no node 'far'"),
        (["--skew", "a"], "write it like monitor2=300ms"),
        (["--x", "2s"], "a Deployment has its own x"),
        (["--until", "soon"], "is not a duration"),
        (["--plot", "out.gif"], "the ending '.gif' is not known"),
        (["--plot", "nowhere/out.png"], "there is no folder nowhere"),
        (["--input", "c=c.csv"], "there is no source 'c'"),
    ],
)
def test_mistakes_say_what_to_do(arguments: list[str], words: str) -> None:
    with pytest.raises(EvenflowError) as caught:
        run("doors.py", *arguments)
    assert words in str(caught.value)


def test_a_mistake_is_one_line_and_exit_code_2(folder: Path) -> None:
    command = [sys.executable, "-m", "evenflow", "simulate", "doors.py", "--plot", "out.gif"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_an_error_in_inputs_names_the_line(folder: Path) -> None:
    (folder / "broken.py").write_text(QUERY.replace("REPLICAS", "1").replace('return {"a"', 'return {1 / 0: 1, "a"'))
    with pytest.raises(EvenflowError, match=r"broken.py, line 16: ZeroDivisionError"):
        run("broken.py")
