"""Query files: Python files that hold an ``app`` or a ``net``, and perhaps ``inputs(seed)``."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from evenflow.operators.errors import EvenflowError, InputError, nearest
from evenflow.queries.deployment import Deployment
from evenflow.queries.network import Network

READERS: Mapping[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": pl.read_parquet,
    ".csv": pl.read_csv,
    ".jsonl": pl.read_ndjson,
    ".ndjson": pl.read_ndjson,
    ".arrow": pl.read_ipc,
    ".ipc": pl.read_ipc,
}


class QueryFileError(EvenflowError):
    """A query file that cannot be used as one."""


@dataclass(frozen=True, slots=True)
class QueryFile:
    """What a query file declares."""

    path: Path
    network: Network
    deployment: Deployment | None
    inputs: Callable[..., Mapping[str, pl.DataFrame]] | None

    def generated(self, seed: int) -> dict[str, pl.DataFrame]:
        """The frames of the file's own ``inputs(seed)``."""
        if self.inputs is None:
            raise QueryFileError(f"{self.path} has no inputs(seed); give the input with --input name=path")
        return dict(self.inputs(seed))


def load(given: str) -> QueryFile:
    """Load ``FILE`` or ``FILE:name``."""
    file, _, name = given.partition(":")
    path = Path(file)
    if not path.is_file():
        raise QueryFileError(f"there is no file {file}")
    module = _execute(path)
    found = _named(path, module, name) if name else _default(path, module)
    deployment = found if isinstance(found, Deployment) else None
    network = found.network if isinstance(found, Deployment) else found
    return QueryFile(path, network, deployment, getattr(module, "inputs", None))


def _execute(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"evenflow_query_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise QueryFileError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _default(path: Path, module: ModuleType) -> Network | Deployment:
    for name in ("app", "net"):
        found = getattr(module, name, None)
        if isinstance(found, Network | Deployment):
            return found
    raise QueryFileError(f"{path} holds neither `app` (a Deployment) nor `net` (a Network); name one as {path}:NAME")


def _named(path: Path, module: ModuleType, name: str) -> Network | Deployment:
    found: Any = getattr(module, name, None)
    if isinstance(found, Network | Deployment):
        return found
    known = [key for key, value in vars(module).items() if isinstance(value, Network | Deployment)]
    raise QueryFileError(f"{path} holds no network or deployment {name!r}; {nearest(name, known)}")


def read_input(given: str) -> tuple[str, pl.DataFrame]:
    """Read ``name=path``: Parquet, CSV, JSON lines or Arrow by its ending."""
    name, equals, file = given.partition("=")
    if not equals or not name or not file:
        raise InputError(f"--input {given}: write it as name=path")
    path = Path(file)
    reader = READERS.get(path.suffix)
    if reader is None:
        raise InputError(f"--input {given}: {path.suffix or 'no'} ending is not known; {nearest(path.suffix, READERS)}")
    if not path.is_file():
        raise InputError(f"--input {given}: there is no file {file}")
    return name, reader(path)
