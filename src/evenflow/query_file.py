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
from polars.datatypes import TemporalType

from evenflow.operators.errors import EvenflowError, InputError, nearest
from evenflow.operators.items import TUPLE_TIME
from evenflow.queries.deployment import Deployment
from evenflow.queries.network import Network
from evenflow.queries.source import Source

Types = dict[str, pl.DataType]


def _read_csv(path: Path, types: Types) -> pl.DataFrame:
    return _parsed(pl.read_csv(path, schema_overrides=_as_text(types), infer_schema_length=None), types)


def _read_jsonl(path: Path, types: Types) -> pl.DataFrame:
    return _parsed(pl.read_ndjson(path, schema_overrides=_as_text(types), infer_schema_length=None), types)


def _as_text(types: Types) -> Types:
    """Times are written as text in these files."""
    return {name: pl.String() if isinstance(dtype, TemporalType) else dtype for name, dtype in types.items()}


def _parsed(rows: pl.DataFrame, types: Types) -> pl.DataFrame:
    for name, dtype in types.items():
        if isinstance(dtype, TemporalType) and name in rows.columns:
            rows = rows.with_columns(pl.col(name).str.strptime(dtype, strict=True))
    return rows


READERS: Mapping[str, Callable[[Path, Types], pl.DataFrame]] = {
    ".parquet": lambda path, _: pl.read_parquet(path),
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".arrow": lambda path, _: pl.read_ipc(path),
    ".ipc": lambda path, _: pl.read_ipc(path),
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


def read_inputs(network: Network, given: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Read ``name=path`` arguments: Parquet, CSV, JSON lines or Arrow by its ending, in the source's types."""
    inputs: dict[str, pl.DataFrame] = {}
    for argument in given:
        name, equals, file = argument.partition("=")
        if not equals or not name or not file:
            raise InputError(f"--input {argument}: write it as name=path")
        if name not in network.sources:
            raise InputError(f"--input {argument}: there is no source {name!r}; {nearest(name, network.sources)}")
        if name in inputs:
            raise InputError(f"--input {argument}: {name!r} was given before")
        inputs[name] = _read(argument, Path(file), network.sources[name].source)
    return inputs


def _read(argument: str, path: Path, source: Source) -> pl.DataFrame:
    reader = READERS.get(path.suffix)
    if reader is None:
        known = nearest(path.suffix, READERS)
        raise InputError(f"--input {argument}: the ending {path.suffix!r} is not known; {known}")
    if not path.is_file():
        raise InputError(f"--input {argument}: there is no file {path}")
    types = dict(source.schema) | ({} if source.time is not None else {TUPLE_TIME: pl.Int64()})
    try:
        return reader(path, types)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"--input {argument}: {str(error).splitlines()[0]}") from error
