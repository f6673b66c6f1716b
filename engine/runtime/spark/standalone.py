"""A real Spark cluster on this machine: a master and workers, started from what PySpark ships. For tests and trials."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType

from evenflow.engine.runtime.spark.errors import SparkError
from evenflow.engine.runtime.spark.java import find_java
from evenflow.engine.runtime.spark.processes import await_end, command_line, descendants, kill, living
from evenflow.engine.runtime.spark.settings import QUICK

START_S = 60.0
END_S = 5.0
POLL_S = 0.05
MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
LEADING = re.compile(r"New state: ALIVE")
REGISTERED = re.compile(r"Successfully registered with master")
EXECUTOR = "CoarseGrainedExecutorBackend"


class StandaloneCluster:
    """A master and some workers on 127.0.0.1, for as long as the ``with`` lasts."""

    def __init__(self, workers: int = 2, cores: int = 1, memory: str = "1g", java: str = "auto") -> None:
        self._workers = workers
        self._cores = cores
        self._memory = memory
        self._java = java
        self._folder: Path | None = None
        self._daemons: list[subprocess.Popen[bytes]] = []
        self.master = ""
        """Where it is reached: spark://127.0.0.1:PORT."""

    def __enter__(self) -> StandaloneCluster:
        self._folder = Path(tempfile.mkdtemp(prefix="evenflow-cluster-"))
        atexit.register(self.close)
        try:
            self._start(self._folder, _environment(self._folder, self._java))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, folder: Path, env: dict[str, str]) -> None:
        where = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        log = self._launch("master", ["org.apache.spark.deploy.master.Master", *where], env)
        self.master = self._await(log, MASTER)[1]
        # It turns workers away until it knows that it leads.
        self._await(log, LEADING)
        size = ["--cores", str(self._cores), "--memory", self._memory]
        logs = []
        for number in range(self._workers):
            name = f"worker-{number}"
            place = ["--work-dir", str(folder / name)]
            command = ["org.apache.spark.deploy.worker.Worker", *where, *size, *place, self.master]
            logs.append(self._launch(name, command, env))
        for log in logs:
            self._await(log, REGISTERED)

    def _launch(self, name: str, command: list[str], env: dict[str, str]) -> Path:
        log = Path(env["TMPDIR"]) / f"{name}.log"
        with log.open("wb") as file:
            daemon = subprocess.Popen(
                [Path(env["SPARK_HOME"], "bin", "spark-class"), *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=env["TMPDIR"],
                env=env,
                start_new_session=True,
            )
        self._daemons.append(daemon)
        return log

    def _await(self, log: Path, said: re.Pattern[str]) -> re.Match[str]:
        """Wait until a daemon says something in its log."""
        deadline_s = time.monotonic() + START_S
        while time.monotonic() < deadline_s and all(daemon.poll() is None for daemon in self._daemons):
            found = said.search(log.read_text(errors="replace"))
            if found is not None:
                return found
            time.sleep(POLL_S)
        tail = "\n".join(f"  {line}" for line in log.read_text(errors="replace").splitlines()[-12:])
        raise SparkError(f"a standalone Spark cluster did not start; the log of its {log.stem} ends with:\n{tail}")

    def executor_pids(self) -> list[int]:
        """The executors that run now, one for each worker and application."""
        below = [pid for daemon in self._daemons for pid in descendants(daemon.pid)]
        return [pid for pid in below if EXECUTOR in command_line(pid)]

    def pids(self) -> list[int]:
        """All of its processes: master, workers, executors and their Python."""
        own = [daemon.pid for daemon in self._daemons]
        return living([*own, *(below for pid in own for below in descendants(pid))])

    def close(self) -> None:
        """End all of its processes and remove its files."""
        family = self.pids()
        executors = self.executor_pids()
        kill(daemon.pid for daemon in self._daemons if daemon.poll() is None)
        # Their Python workers end with them.
        kill(executors)
        for daemon in self._daemons:
            daemon.wait()
        kill(await_end(family, END_S))
        self._daemons.clear()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
        atexit.unregister(self.close)


def _environment(folder: Path, java: str) -> dict[str, str]:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkError("PySpark is not installed: pip install pyspark")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return env | {
        "SPARK_HOME": str(Path(spec.origin).parent),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        # The one way to tell executors too, whose options are the application's.
        "JAVA_TOOL_OPTIONS": f"{env.get('JAVA_TOOL_OPTIONS', '')} -Djava.io.tmpdir={folder}".strip(),
        "SPARK_LAUNCHER_OPTS": QUICK,
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(find_java(java).home),
        "TMPDIR": str(folder),
    }
