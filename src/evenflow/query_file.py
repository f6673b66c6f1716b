"""Query files: Python files that hold an ``app`` or a ``net``, and perhaps ``inputs(seed)``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl

from evenflow.engine.runtime.recorded import read
from evenflow.operators.errors import EvenflowError, InputError, nearest
from evenflow.queries.deployment import Deployment
from evenflow.queries.network import Network


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
        try:
            return dict(self.inputs(seed))
        except EvenflowError:
            raise
        except Exception as error:
            raise _failed(self.path, error) from error


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
    try:
        spec.loader.exec_module(module)
    except EvenflowError:
        raise
    except Exception as error:
        raise _failed(path, error) from error
    return module


def _failed(path: Path, error: Exception) -> QueryFileError:
    """An error of the file's own code, with its line."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path.absolute()]
    line = frames[-1].lineno if frames else getattr(error, "lineno", None)
    where = f"{path}, line {line}" if line is not None else f"{path}, inputs(seed)"
    return QueryFileError(f"{where}: {type(error).__name__}: {error}")


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


def input_paths(network: Network, given: Sequence[str]) -> dict[str, Path]:
    """The files or folders of ``name=path`` arguments, by source."""
    paths: dict[str, Path] = {}
    for argument in given:
        name, equals, file = argument.partition("=")
        if not equals or not name or not file:
            raise InputError(f"--input {argument}: write it as name=path")
        if name not in network.sources:
            raise InputError(f"--input {argument}: there is no source {name!r}; {nearest(name, network.sources)}")
        if name in paths:
            raise InputError(f"--input {argument}: {name!r} was given before")
        paths[name] = Path(file)
    return paths


def read_inputs(network: Network, given: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Read ``name=path`` arguments: Parquet, CSV, JSON lines or Arrow by its ending, in the source's types."""
    return {name: _read(name, path, network) for name, path in input_paths(network, given).items()}


def _read(name: str, path: Path, network: Network) -> pl.DataFrame:
    try:
        return read(path, network.sources[name].source)
    except InputError as error:
        raise InputError(f"--input {name}={path}: {error}") from error
