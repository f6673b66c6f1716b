"""How Spark is started: the few settings that are ours, and the whole configuration that comes of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TRIES = 4
"""How often a task is tried. Spark's default in local mode is once."""
CORES_MAX = 4
"""Of the cores, how many a local Spark takes unless told otherwise: each has a Python worker of 150 MB or so."""
SOCKET_PATH_MAX = 100
"""What an address of a Unix socket may be long, with some to spare."""
QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
"""A Java that starts quickly and leaves no file behind."""
JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
LOOPBACK = re.compile(r"spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:|$)")
LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:\s*,\s*(\d+))?\])?$")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def local_master() -> str:
    """Spark within this machine, on at most four cores."""
    return f"local[{min(cores(), CORES_MAX)},{TRIES}]"


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where Spark runs and how it is started."""

    master: str = field(default_factory=local_master)
    java: str = "auto"
    """``"auto"``, ``"bundled"`` or a JAVA_HOME: see :func:`~evenflow.engine.runtime.spark.java.find_java`."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings; they win over ours."""
    start_timeout_s: float = 120.0
    scratch: Path | None = None
    """A folder that driver and workers share. None: a temporary one, which does for workers on this machine."""

    @property
    def local(self) -> bool:
        """Whether the tasks run on this machine, with nothing but what this process has."""
        return LOCAL.match(self.master) is not None

    @property
    def on_loopback(self) -> bool:
        return self.local or LOOPBACK.match(self.master) is not None

    @property
    def parallelism(self) -> int | None:
        """The tasks that run at once, if the master says so."""
        found = LOCAL.match(self.master)
        if found is None:
            return None
        count = found[1] or "1"
        return cores() if count == "*" else int(count)


def spark_master(settings: SparkSettings) -> str:
    """The master with more than one try for a task.

    >>> spark_master(SparkSettings("local[2]")), spark_master(SparkSettings("spark://there:7077"))
    ('local[2,4]', 'spark://there:7077')
    """
    found = LOCAL.match(settings.master)
    return f"local[{settings.parallelism},{found[2] or TRIES}]" if found else settings.master


def spark_conf(settings: SparkSettings, folder: Path) -> dict[str, str]:
    """All of Spark's settings, for a driver that keeps its files in ``folder``."""
    conf = {
        "spark.app.name": "evenflow",
        "spark.master": spark_master(settings),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Progress is asked for: every task that is done is to count at once.
        "spark.ui.liveUpdate.period": "0",
        # That a cluster has no room for the job is a mere warning.
        "spark.log.level": "ERROR" if settings.local else "WARN",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder),
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": f"{QUICK} -Djava.io.tmpdir={folder}",
        "spark.executor.extraJavaOptions": QUICK,
        # A small job is not to wait for a large one.
        "spark.scheduler.mode": "FAIR",
        "spark.task.maxFailures": str(TRIES),
        "spark.python.worker.reuse": "true",
        # A task has one core, and adds floats up in one order.
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.executorEnv.POLARS_NO_PARTITION": "1",
    }
    if settings.on_loopback:
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if settings.local and len(str(folder)) + len("/.01234567-89ab-cdef-0123-456789abcdef.sock") <= SOCKET_PATH_MAX:
        # Over TCP, each task waits some 40 ms for a delayed acknowledgement.
        conf |= {
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(folder),
        }
    # Java takes the last of two options that disagree, and needs the others still.
    both = {name: f"{conf[name]} {value}" for name, value in settings.conf.items() if name in JAVA_OPTIONS}
    return conf | dict(settings.conf) | both
