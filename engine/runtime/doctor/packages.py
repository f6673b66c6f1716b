"""The Python that runs, and the packages that compute."""

from __future__ import annotations

import platform
from importlib import metadata

from evenflow.engine.runtime.doctor.finding import Finding
from evenflow.operators.fingerprint import kernel_fingerprint

NAME = "packages"
SHOWN = ("evenflow", "polars", "pyarrow", "numpy", "pandas")
PANDAS = "pip install 'pandas>=2.2,<3'"


def check() -> Finding:
    """Whether they are there, and whether PySpark can work with this pandas."""
    versions = {name: _version(name) for name in SHOWN}
    have = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    facts = f"Python {platform.python_version()}, {have}"
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        advice = "Install what Evenflow needs: pip install evenflow"
        return Finding(NAME, "problem", f"{' and '.join(missing)} not installed; {facts}", advice)
    if int((versions["pandas"] or "0").partition(".")[0]) >= 3:
        return Finding(NAME, "problem", facts, f"PySpark does not work with pandas 3: {PANDAS}")
    return Finding(NAME, "ok", f"{facts}; kernel {kernel_fingerprint().self_test}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
