"""All checks, in their order; what waits for others is begun first."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evenflow.engine.runtime.doctor import disk, java, packages, spark, workers
from evenflow.engine.runtime.doctor.finding import Finding, aside, guarded, not_checked
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings

POOL = ("pool.ntp.org",)
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be looked at."""

    master: str | None = None
    """Where Spark is to run; None: within this machine."""
    java: str = "auto"
    ntp: Sequence[str] = POOL
    data: Path | None = None
    """None: the system's folder for temporary files."""
    spark: bool = True
    """Whether to start it, which takes some seconds."""


def examine(asked: Asked, tell: Tell = lambda _: None) -> list[Finding]:
    """Look at everything; ``tell`` hears what is waited for. Nothing that was started is left behind."""
    tell("looking at packages, the disk and Java")
    ntp_found = aside(partial(guarded, "NTP", lambda: _ntp(asked.ntp)))
    packages_found = guarded("packages", packages.check)
    # Before Spark starts, which writes too.
    disk_found = guarded("disk", lambda: disk.check(asked.data))
    java_found = guarded("Java", lambda: java.check(asked.java))
    spark_found, workers_found, zeromq_found = _while_spark_starts(asked, java_found, tell)
    tell(f"asking {', '.join(asked.ntp)} for the time")
    found = [packages_found, java_found, spark_found, workers_found, zeromq_found]
    return [*found, ntp_found.result(), disk_found]


def _while_spark_starts(asked: Asked, java_found: Finding, tell: Tell) -> tuple[Finding, Finding, Finding]:
    """Spark, its workers, and ZeroMQ meanwhile."""
    settings = SparkSettings(java=asked.java) if asked.master is None else SparkSettings(asked.master, asked.java)
    found = _not_to_start(asked, java_found)
    with contextlib.closing(SparkHost(settings)) as host:
        if found is None:
            tell(f"starting Spark on {settings.master}, which takes some seconds")
            found = guarded("Spark", lambda: spark.begin(host))
        zeromq_found = guarded("ZeroMQ", _zeromq)
        if found is None:
            found = guarded("Spark", lambda: spark.check(host))
        if found.level != "ok":
            return found, not_checked("workers", "Spark does not run", "See Spark."), zeromq_found
        tell("asking Spark's workers")
        return found, guarded("workers", lambda: workers.check(host)), zeromq_found


def _not_to_start(asked: Asked, java_found: Finding) -> Finding | None:
    """Why Spark is not to be started, if so."""
    if not asked.spark:
        return not_checked("Spark", "--no-spark was given", "Leave --no-spark out to have it started.")
    if java_found.level == "problem":
        return not_checked("Spark", "it needs Java", f"See Java. {spark.WITHOUT}")
    return None


# These import what may be broken, or not there: then that is what is found.


def _ntp(servers: Sequence[str]) -> Finding:
    from evenflow.engine.runtime.doctor import ntp

    return ntp.check(servers)


def _zeromq() -> Finding:
    from evenflow.engine.runtime.doctor import zeromq

    return zeromq.check()
