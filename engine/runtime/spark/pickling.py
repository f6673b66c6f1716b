"""Functions as bytes that a worker can load, even if it cannot import the modules they come from."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from evenflow.engine.runtime.spark.errors import SparkError

_LOCK = threading.Lock()


def pickled(function: Callable[..., Any]) -> bytes:
    """A function as bytes. What it uses of the user's own modules goes with it."""
    cloudpickle = _cloudpickle()
    # Which modules go by value is a setting of the whole process.
    with _LOCK, _by_value(_own_modules()):
        try:
            return bytes(cloudpickle.dumps(function))
        except Exception as error:
            name = getattr(function, "__qualname__", repr(function))
            raise SparkError(
                f"{name} cannot be sent to Spark's workers ({type(error).__name__}: {error}): it must not hold on to "
                "what lives in this process only, such as open files, locks, sockets or threads"
            ) from error


def _cloudpickle() -> Any:
    """The one that comes with PySpark, which is without types."""
    from pyspark import cloudpickle

    return cloudpickle


@contextmanager
def _by_value(modules: list[ModuleType]) -> Iterator[None]:
    cloudpickle = _cloudpickle()
    already = cloudpickle.list_registry_pickle_by_value()
    added = [module for module in modules if module.__name__ not in already]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _own_modules() -> list[ModuleType]:
    """The loaded modules that a worker may not be able to import: those that nobody installed."""
    own = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        ours = name.partition(".")[0] in ("evenflow", "__main__")
        if isinstance(file, str) and not ours and module.__name__ == name and not _installed(file):
            own.append(module)
    return own


@cache
def _installed(file: str) -> bool:
    """Whether a module's file is part of Python or of an installed package. Compiled ones cannot go by value."""
    places = _places()
    return not file.endswith((".py", ".pyc")) or file.startswith(places) or os.path.realpath(file).startswith(places)


@cache
def _places() -> tuple[str, ...]:
    """The folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    found = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [*site.getsitepackages(), site.getusersitepackages()]
    found += [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]
    return tuple({os.path.join(form, "") for path in found for form in (path, os.path.realpath(path))})
