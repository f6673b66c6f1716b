"""A driver process as its host sees it: started, asked, listened to, ended."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenflow.engine.runtime.spark.errors import SparkError, TaskError
from evenflow.engine.runtime.spark.package import importable_from
from evenflow.engine.runtime.spark.processes import descendants, kill, living
from evenflow.engine.runtime.spark.settings import QUICK, SparkSettings

DRIVER = "evenflow.engine.runtime.spark.driver"
KEPT = ("SPARK_CONF_DIR",)
"""What a cluster may need of the variables that otherwise could turn our Spark into the user's."""
LOG_TAIL_LINES = 12
LOG_BYTES_MAX = 8 << 20
END_S = 15.0
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SparkFacts:
    """What started."""

    spark: str
    java: int
    java_home: str
    java_where: str
    java_bundled: bool
    master: str
    parallelism: int
    seconds: float
    """From the start of the process to the first job done."""
    python: str


class Connection:
    """One driver process, from its start to its end."""

    def __init__(self, settings: SparkSettings, root: Path, folder: Path) -> None:
        self._settings = settings
        self._folder = folder
        self._log = folder / "log"
        self._lock = threading.Lock()
        self._waiting: dict[str, queue.SimpleQueue[dict[str, Any] | None]] = {}
        self._count = 0
        self._changed = threading.Event()
        """Set once it is ready or has ended."""
        self._ended = threading.Event()
        self._why: str | None = None
        self._stopping = False
        self.facts: SparkFacts | None = None
        self.jvm_pid: int | None = None
        self.parallelism = settings.parallelism
        self._began_s = time.monotonic()
        folder.mkdir(parents=True)
        self._process = self._started(root)
        self.pid = self._process.pid
        threading.Thread(target=self._listen, name="spark-host", daemon=True).start()

    def _started(self, root: Path) -> subprocess.Popen[str]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", DRIVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
                env=environment(self._settings, self._folder),
                # Ctrl-C in the terminal is the host's to handle.
                start_new_session=True,
            )
        self._process = process
        self._send(
            folder=str(self._folder),
            root=str(root),
            master=self._settings.master,
            java=self._settings.java,
            conf=dict(self._settings.conf),
        )
        return process

    @property
    def alive(self) -> bool:
        return not self._stopping and not self._ended.is_set() and self._process.poll() is None

    @property
    def ready(self) -> bool:
        return self.facts is not None and self.alive

    def wait_ready(self, timeout_s: float | None) -> SparkFacts:
        """Wait until it is ready. A start that takes longer than the settings allow is given up."""
        left_s = self._began_s + self._settings.start_timeout_s - time.monotonic()
        self._changed.wait(max(left_s, 0.0) if timeout_s is None else max(min(timeout_s, left_s), 0.0))
        if self.facts is not None and not self._ended.is_set():
            return self.facts
        if self._ended.is_set() or self._why is not None:
            self._ended.wait(END_S)
            raise self._death()
        if timeout_s is not None and timeout_s < left_s:
            raise SparkError(f"Spark is not ready after {timeout_s:g} s; it is still starting")
        tail = self._tail()
        self.stop(at_once=True)
        raise SparkError(f"Spark did not start within {self._settings.start_timeout_s:g} s{tail}")

    def run(self, function: bytes, tasks: Sequence[str], timeout_s: float, progress: Progress | None) -> list[str]:
        """Have a job done: one Spark task for each of the tasks, results in their order."""
        with self._lock:
            self._count += 1
            name = f"job-{self._count}"
            answers = self._waiting[name] = queue.SimpleQueue()
        path = self._folder / f"{name}.function"
        try:
            path.write_bytes(function)
            self._trim_log()
            self._send(id=name, function=str(path), tasks=list(tasks))
            return self._await(name, answers, timeout_s, progress)
        except OSError as error:
            # The process ended, and its folder may be gone with it.
            self._ended.wait(END_S)
            raise self._death() from error
        finally:
            with self._lock:
                self._waiting.pop(name, None)
            path.unlink(missing_ok=True)

    def _await(
        self,
        name: str,
        answers: queue.SimpleQueue[dict[str, Any] | None],
        timeout_s: float,
        progress: Progress | None,
    ) -> list[str]:
        deadline_s = time.monotonic() + timeout_s
        while not self._ended.is_set():
            try:
                answer = answers.get(timeout=max(deadline_s - time.monotonic(), 0.0))
            except queue.Empty:
                self._send(op="cancel", id=name)
                raise SparkError(f"a Spark job was not done within {timeout_s:g} s, and was cancelled") from None
            if answer is None:
                break
            if "done" in answer:
                if progress is not None:
                    progress(answer["done"], answer["of"])
            elif answer["ok"]:
                return list(answer["results"])
            else:
                kind = TaskError if answer["raised"] else SparkError
                raise kind(f"a Spark job failed: {answer['error']}")
        raise self._death()

    def stop(self, at_once: bool = False) -> None:
        """End the process and everything it started. Whoever waits for a job is told."""
        self._stopping = True
        family = [self.pid, *descendants(self.pid)]
        with contextlib.suppress(OSError):
            self._send(op="stop")
        self._hang_up()
        try:
            self._process.wait(1.0 if at_once else END_S)
        except subprocess.TimeoutExpired:
            kill([self.pid, *descendants(self.pid)])
            self._process.wait()
        kill(living(family))
        self._ended.wait(END_S)

    def _send(self, **message: Any) -> None:
        with self._lock:
            if self._process.stdin is None or self._process.stdin.closed:
                raise BrokenPipeError("the driver process was stopped")
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def _hang_up(self) -> None:
        # What could not be sent is of no use to a process that has ended.
        with contextlib.suppress(OSError), self._lock:
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            self._hear(json.loads(line))
        self._process.wait()
        self._hang_up()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._why = self._why or f"its process ended with code {self._process.returncode}"
        self._why += self._tail()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._ended.set()
        self._changed.set()
        with self._lock:
            for answers in self._waiting.values():
                answers.put(None)

    def _hear(self, message: dict[str, Any]) -> None:
        self.parallelism = message.pop("parallelism", self.parallelism)
        event = message.pop("event", None)
        if event == "ready":
            self.jvm_pid = message.pop("jvm_pid")
            self.facts = SparkFacts(parallelism=self.parallelism or 1, **message)
            self._changed.set()
        elif event == "failed":
            self._why = self._why or message["error"]
        else:
            with self._lock:
                answers = self._waiting.get(message["id"])
            # One that timed out is not waited for any more.
            if answers is not None:
                answers.put(message)

    def _death(self) -> SparkError:
        if self._stopping:
            return SparkError("the Spark host was closed")
        return SparkError(f"Spark {'did not start' if self.facts is None else 'died'}: {self._why}")

    def _tail(self) -> str:
        """The end of what Spark printed, for an error."""
        try:
            lines = self._log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        except OSError:
            return ""
        return "\nIts log ends with:\n" + "\n".join(f"  {line[:300]}" for line in lines) if lines else ""

    def _trim_log(self) -> None:
        """Failing tasks fill the log; everyone appends to it, so it can be emptied."""
        if self._log.stat().st_size > LOG_BYTES_MAX:
            os.truncate(self._log, 0)


def environment(settings: SparkSettings, folder: Path) -> dict[str, str]:
    """The variables of the driver process: ours, without what the user has set for a Spark of their own."""
    kept = () if settings.local else KEPT
    env = {name: value for name, value in os.environ.items() if name in kept or not _spark_s(name)}
    paths = [importable_from(), env.get("PYTHONPATH")]
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    # The folder that we happen to be in must not hide modules from the workers.
    env["PYTHONSAFEPATH"] = "1"
    env["TMPDIR"] = str(folder)
    env["SPARK_LOCAL_DIRS"] = str(folder)
    env["SPARK_LAUNCHER_OPTS"] = QUICK
    if settings.on_loopback:
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
    return env


def _spark_s(name: str) -> bool:
    return name.startswith(("SPARK_", "PYSPARK_"))
