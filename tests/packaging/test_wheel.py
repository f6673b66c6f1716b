"""sdist → wheel → install in an empty environment → the command works."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_made_from_the_sdist_works_in_an_empty_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "build", "--sdist", "--outdir", str(tmp_path), str(ROOT), cwd=tmp_path)
    (sdist,) = tmp_path.glob("evenflow-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(unpacked), cwd=tmp_path)
    (wheel,) = tmp_path.glob("evenflow-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    modules = [
        path for folder in ("engine", "operators", "reconcile", "queries") for path in (ROOT / folder).glob("*.py")
    ]
    assert {f"evenflow/{path.parent.name}/{path.name}" for path in modules} <= set(names)
    assert "evenflow/py.typed" in names

    empty = tmp_path / "empty"
    run(sys.executable, "-m", "venv", str(empty), cwd=tmp_path)
    run(str(empty / "bin" / "python"), "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    assert run(str(empty / "bin" / "evenflow"), "--version", cwd=tmp_path).strip() == "0.1.0"
    query = ROOT / "queries" / "intrusion.py"
    assert "SUnion(monitor1, monitor2, monitor3)" in run(
        str(empty / "bin" / "evenflow"), "explain", str(query), cwd=tmp_path
    )
