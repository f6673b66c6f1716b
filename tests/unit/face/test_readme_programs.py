"""The README's programs, one after the other as a reader would type them, print what it shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import polars as pl

README = (Path(__file__).parents[3] / "README.md").read_text()


def test_every_program_prints_what_the_readme_shows() -> None:
    programs = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
    assert len(programs) == README.count("```python")
    names: dict[str, Any] = {}
    for program, shown in programs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), pl.Config(tbl_width_chars=85):
            exec(program, names)
        assert printed.getvalue().strip() == shown.strip()


def test_every_command_of_the_readme_exists() -> None:
    from typer.main import get_command

    from evenflow.cli import app

    known = get_command(app).commands  # type: ignore[attr-defined]
    for line in re.findall(r"^evenflow (.*)$", README, re.MULTILINE):
        name, *rest = line.partition("#")[0].split()
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options
