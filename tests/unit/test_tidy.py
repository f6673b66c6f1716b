"""Small rules that a linter does not know."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 450
FUNCTION_LINES_MAX = 70


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split("\n") if name and (ROOT / name).is_file()]


PYTHON = [path for path in tracked("*.py") if not path.is_symlink()]
TEXT = tracked("*.py", "*.md", "*.toml", "Makefile", ".ci/run")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PYTHON, ids=name)
def test_files_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES_MAX
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < FUNCTION_LINES_MAX, node.name


@pytest.mark.parametrize("path", [p for p in PYTHON if "tests" not in p.parts], ids=name)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", TEXT, ids=name)
def test_nothing_is_left_to_do_and_no_machine_is_named(path: Path) -> None:
    if path == Path(__file__):
        return
    found = re.search(r"\b(TODO|FIXME|XXX)\b|/(home|root|work)/\w|/tmp/\w", path.read_text())
    assert found is None, found


@pytest.mark.parametrize("path", tracked("*.md"), ids=name)
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def test_folders_are_imported_through_the_package() -> None:
    for folder in ("engine", "operators", "reconcile", "queries"):
        link = ROOT / "src" / "evenflow" / folder
        assert link.is_symlink()
        assert link.resolve() == ROOT / folder
