"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import polars as pl

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_first_program_prints_what_the_readme_shows() -> None:
    program, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL).groups()  # type: ignore[union-attr]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pl.Config(tbl_width_chars=85):
        exec(program, {})
    assert printed.getvalue().strip() == shown.strip()
