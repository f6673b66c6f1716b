"""``evenflow doctor``: what it prints."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from evenflow import doctor
from evenflow.cli import app
from evenflow.engine.runtime.doctor import examine, ntp
from evenflow.engine.runtime.doctor.finding import Finding

NAMES = ["packages", "Java", "Spark", "workers", "ZeroMQ", "NTP", "disk"]


@pytest.fixture(autouse=True)
def out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked for the time, or nobody answers."""
    monkeypatch.setattr(examine, "POOL", ())
    monkeypatch.setattr(ntp, "TIMEOUT_S", 0.05)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", "--no-spark", *arguments], catch_exceptions=False)


class TestCommand:
    def test_json_is_one_object_on_one_line(self, tmp_path: Path) -> None:
        done = run("--json", "--ntp", "127.0.0.1:1", "--ntp", "127.0.0.2:1", "--data", str(tmp_path))
        assert done.stdout.count("\n") == 1
        told = json.loads(done.stdout, parse_constant=pytest.fail)
        assert told["well"] is True
        assert done.exit_code == 0
        assert [finding["name"] for finding in told["findings"]] == NAMES
        assert all(list(one) == ["name", "level", "found", "advice", "detail"] for one in told["findings"])
        assert all((one["level"] == "ok") == (one["advice"] == "") for one in told["findings"])
        assert told["findings"][2]["found"] == "not checked: --no-spark was given"
        assert (
            told["findings"][5]["found"] == "127.0.0.1:1: no answer within 0.05 s; 127.0.0.2:1: no answer within 0.05 s"
        )

    def test_a_problem_is_exit_code_1(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        done = run("--json", "--data", str(tmp_path / "file"))
        assert (done.exit_code, json.loads(done.stdout)["well"]) == (1, False)
        assert run("--data", str(tmp_path / "file")).exit_code == 1
        assert run("--data", str(tmp_path)).exit_code == 0


FINDINGS = [
    Finding("packages", "ok", "Python 3.11.7, evenflow 0.1.0, polars 2.1.0, pyarrow 26.0.1, numpy 2.4.6, pandas 2.3.3"),
    Finding("NTP", "warning", "[/bold]: no answer within 1 s", "The local clock [/bold] is used as it is. " * 4),
    Finding(
        "Spark", "problem", "Spark did not start: [JAVA_GATEWAY_EXITED]", "Until it starts, …", f"a log {'x' * 200}"
    ),
]


class TestTable:
    @pytest.mark.parametrize("width", [60, 80, 120])
    def test_no_word_is_lost_or_cut(self, width: int) -> None:
        printed = io.StringIO()
        doctor.tell(Console(file=printed, width=width, highlight=False), FINDINGS)
        text = printed.getvalue()
        assert all(len(line) <= width for line in text.splitlines() if not line.startswith("a log"))
        words = text.split()
        for finding in FINDINGS:
            said = f"{finding.name} {finding.level} {finding.found}"
            assert contains(words, said.split())
            assert contains(words, finding.advice.split())
            assert contains(words, finding.detail.split())
        assert words[-4:] == ["1", "problem,", "1", "warning"]

    def test_levels_have_colours(self) -> None:
        printed = io.StringIO()
        doctor.tell(Console(file=printed, width=80, force_terminal=True, color_system="standard"), FINDINGS)
        assert "\x1b[33mwarning" in printed.getvalue()
        assert "\x1b[1;31mproblem" in printed.getvalue()


def contains(words: list[str], part: list[str]) -> bool:
    """Whether the words come in this order, others between them or not, and neighbours stay neighbours."""
    if len(part) < 2:
        return set(part) <= set(words)
    return set(pairwise(part)) <= set(pairwise(words))
