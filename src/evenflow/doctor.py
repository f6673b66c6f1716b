"""``evenflow doctor``: what was found on this machine, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenflow.engine.runtime.doctor.examine import Asked, examine
from evenflow.engine.runtime.doctor.finding import Finding

STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def show(asked: Asked, as_json: bool) -> bool:
    """Look, and print what was found; whether nothing is a problem."""
    with Console(stderr=True, highlight=False).status("") as status:
        findings = examine(asked, status.update)
    well = all(finding.level != "problem" for finding in findings)
    if as_json:
        print(json.dumps({"well": well, "findings": [asdict(finding) for finding in findings]}, allow_nan=False))
    else:
        tell(Console(highlight=False), findings)
    return well


def tell(console: Console, findings: Sequence[Finding]) -> None:
    """Print findings for people: each with what to do about it below."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was found, and what to do", overflow="fold")
    for finding in findings:
        style = STYLES[finding.level]
        said = Text(finding.found)
        if finding.advice:
            said.append(f"\n→ {finding.advice}", style)
        table.add_row(Text(finding.name), Text(finding.level, style), said)
    console.print(table)
    for finding in findings:
        if finding.detail:
            console.print(Text(f"\nThe end of the log of {finding.name}:\n{finding.detail}"), soft_wrap=True)
    console.print()
    console.print(_summary(findings))


def _summary(findings: Sequence[Finding]) -> Text:
    """
    >>> warned = [Finding("disk", "warning", ""), Finding("NTP", "warning", "")]
    >>> print(_summary([*warned, Finding("Java", "problem", "")]), _summary(warned), _summary([]), sep=" | ")
    1 problem, 2 warnings | no problems, 2 warnings | all is well
    """
    problems = sum(finding.level == "problem" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if not problems and not warnings:
        return Text("all is well", STYLES["ok"])
    worst = "problem" if problems else "warning"
    return Text(f"{_count(problems, 'problem')}, {_count(warnings, 'warning')}", STYLES[worst])


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
