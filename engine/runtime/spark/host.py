"""Spark in a process of its own: a node is never harmed by it, and a dead one is simply started anew."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from evenflow.engine.runtime.spark.connection import Connection, SparkFacts
from evenflow.engine.runtime.spark.errors import SparkError
from evenflow.engine.runtime.spark.pickling import pickled
from evenflow.engine.runtime.spark.settings import SparkSettings

__all__ = ["SparkFacts", "SparkHost"]


class SparkHost:
    """Starts Spark when it is needed, keeps it warm, and runs functions on it. Threads may share one.

    ::

        with SparkHost(SparkSettings()) as spark:
            lengths = spark.run(lambda text: str(len(text)), ["a", "bc"], timeout_s=60)
    """

    def __init__(self, settings: SparkSettings | None = None) -> None:
        self.settings = settings or SparkSettings()
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._root: Path | None = None
        self._starts = 0
        self._closed = False
        self._owner = os.getpid()

    def start(self) -> None:
        """Have Spark started, unless it runs already. Returns at once: it is ready some seconds later."""
        self._living()

    def _living(self) -> Connection:
        with self._lock:
            if self._closed:
                raise SparkError("this Spark host is closed")
            if self._connection is None or not self._connection.alive:
                self._starts += 1
                root = self._folder()
                self._connection = Connection(self.settings, root, root / f"run-{self._starts}")
            return self._connection

    def _folder(self) -> Path:
        """The folder for everything that is to go with this host."""
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="evenflow-spark-"))
            atexit.register(self.close)
        return self._root

    @property
    def scratch(self) -> Path:
        """A folder that the workers see too."""
        if self.settings.scratch is not None:
            return self.settings.scratch
        if not self.settings.on_loopback:
            raise SparkError(
                f"the workers of {self.settings.master} may be elsewhere: name a scratch folder they share"
            )
        with self._lock:
            if self._closed:
                raise SparkError("this Spark host is closed")
            folder = self._folder() / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def alive(self) -> bool:
        """Whether its process runs, ready or not."""
        return self._connection is not None and self._connection.alive

    @property
    def ready(self) -> bool:
        """Whether a job would begin at once."""
        return self._connection is not None and self._connection.ready

    @property
    def pid(self) -> int | None:
        """The process that holds Spark."""
        return self._connection.pid if self._connection is not None else None

    @property
    def jvm_pid(self) -> int | None:
        """Spark's Java, once it is ready."""
        return self._connection.jvm_pid if self._connection is not None else None

    @property
    def parallelism(self) -> int:
        """The tasks that run at once: from the master's name, or as Spark says once it is ready; till then 1."""
        known = self._connection.parallelism if self._connection is not None else None
        return known or self.settings.parallelism or 1

    def wait_ready(self, timeout_s: float | None = None) -> SparkFacts:
        """Start Spark if need be and wait until it is ready: so long, or as long as the settings allow a start."""
        return self._living().wait_ready(timeout_s)

    def run(
        self,
        function: Callable[[str], str],
        tasks: Sequence[str],
        timeout_s: float,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[str]:
        """Run a function on each task, as one Spark task each, and give the results in order.

        Starts Spark if it does not run. ``timeout_s`` counts from when it is ready. ``progress`` is told how many tasks
        of how many are done, in the caller's thread. A worker that dies is replaced and its task tried again.
        """
        if not tasks:
            return []
        code = pickled(function)
        connection = self._living()
        connection.wait_ready(None)
        return connection.run(code, tasks, timeout_s, progress)

    def close(self) -> None:
        """End Spark and remove its files. Runs under way fail; there are no further ones."""
        if os.getpid() != self._owner:
            # A fork of the process that owns it.
            return
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
            root, self._root = self._root, None
        if connection is not None:
            connection.stop()
        if root is not None:
            shutil.rmtree(root, ignore_errors=True)
            atexit.unregister(self.close)

    def __enter__(self) -> SparkHost:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
