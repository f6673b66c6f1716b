"""Our own package as a file, for workers that do not have it installed."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import evenflow

ROOT = Path(evenflow.__path__[0])


def zipped(folder: Path) -> Path:
    """Write the package's modules to a zip file that Python can import from."""
    path = folder / "evenflow.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        # In development, folders of the package are links.
        for where, folders, files in os.walk(ROOT, followlinks=True):
            folders[:] = sorted(name for name in folders if name not in ("__pycache__", "tests"))
            for name in sorted(files):
                if name.endswith(".py"):
                    archive.write(Path(where, name), Path("evenflow", os.path.relpath(where, ROOT), name))
    return path


def importable_from() -> str | None:
    """The folder that a Python of this environment must be told of to import the package, if any."""
    parent = str(ROOT.parent)
    return None if os.path.basename(parent) in ("site-packages", "dist-packages") else parent
