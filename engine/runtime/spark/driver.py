"""The process that holds Spark: ``python -m evenflow.engine.runtime.spark.driver``, started by a ``SparkHost``.

It speaks JSON lines. Its first line on stdin is its settings. It says ``{"event": "ready", …}`` or ``{"event":
"failed", …}``, takes ``{"id", "function", "tasks"}``, ``{"op": "cancel", "id"}`` and ``{"op": "stop"}``, and answers
with ``{"id", "done", "of"}`` on the way and ``{"id", "ok", "results" | "error", "raised"}`` at the end (``raised``: a
task did that). It ends with its host.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn

from evenflow.engine.runtime.spark.errors import SparkError
from evenflow.engine.runtime.spark.java import Java, find_java
from evenflow.engine.runtime.spark.package import zipped
from evenflow.engine.runtime.spark.pickling import pickled
from evenflow.engine.runtime.spark.processes import POLL_S, descendants, kill, living, parent_of
from evenflow.engine.runtime.spark.reasons import reason
from evenflow.engine.runtime.spark.settings import SparkSettings, spark_conf
from evenflow.engine.runtime.spark.worker import run_task

TICK_S = 0.25
KEEP_WARM_S = 40.0
"""Spark ends Python workers that were idle for a minute; a small job before that keeps them."""
JOBS_MAX = 16
"""Jobs that run at once; further ones wait."""
END_S = 5.0


class Voice:
    """Where answers go: what was stdout. From now on everything else that is printed goes to the log."""

    def __init__(self, log: Path) -> None:
        self._out: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._lock = threading.Lock()
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.close(file)

    def say(self, **message: Any) -> None:
        # A host that is gone hears nothing: the reader of stdin ends this process.
        with self._lock, contextlib.suppress(OSError):
            self._out.write(json.dumps(message) + "\n")
            self._out.flush()


@dataclass(slots=True)
class Job:
    """A request on its way."""

    id: str
    of: int
    done: int = 0
    cancelled: bool = False


class Driver:
    """Spark, and the jobs that run on it."""

    def __init__(self, settings: SparkSettings, folder: Path, root: Path, voice: Voice) -> None:
        self._settings = settings
        self._folder = folder
        self._root = root
        """The host's whole folder: removed if the host does not live to do it."""
        self._host = os.getppid()
        self._voice = voice
        self._context: Any = None
        self._jobs: dict[str, Job] = {}
        self._threads = ThreadPoolExecutor(JOBS_MAX, thread_name_prefix="job")
        self._ending = threading.Lock()
        self._used_s = 0.0

    def start(self) -> None:
        """Start Spark and its Python workers, and say so."""
        began_s = time.monotonic()
        try:
            java = find_java(self._settings.java)
            self._context = self._started(java)
            threading.Thread(target=self._watch_jvm, daemon=True).start()
            self._warm_up()
        except Exception as error:
            self._voice.say(event="failed", error=_told(error))
            self.end()
        self._voice.say(
            event="ready",
            jvm_pid=self._context._gateway.proc.pid,
            spark=self._context.version,
            java=java.version,
            java_home=str(java.home),
            java_where=java.where,
            java_bundled=java.bundled,
            master=self._context.master,
            parallelism=self._context.defaultParallelism,
            seconds=round(time.monotonic() - began_s, 3),
            python=platform.python_version(),
        )
        threading.Thread(target=self._tick_for_ever, daemon=True).start()

    def _started(self, java: Java) -> Any:
        from pyspark import SparkConf, SparkContext

        conf = spark_conf(self._settings, self._folder)
        os.environ["JAVA_HOME"] = str(java.home)
        os.environ["PYSPARK_PYTHON"] = conf.get("spark.pyspark.python", sys.executable)
        # A context is all that is needed: a session on top of it takes another 2.5 s.
        context = SparkContext(conf=SparkConf().setAll(list(conf.items())))
        if not self._settings.local:
            context.addPyFile(str(zipped(self._folder)))
        return context

    def _warm_up(self) -> None:
        """Have Python workers started that have imported all they need."""
        tasks = [""] * min(self._context.defaultParallelism, 64)
        self._results("warm-up", pickled(str), tasks)

    def handle(self, message: Mapping[str, Any]) -> None:
        """Do what the host asks for; jobs run in threads of their own."""
        if message.get("op") == "stop":
            self.end()
        elif message.get("op") == "cancel":
            job = self._jobs.get(message["id"])
            if job is not None:
                # The next tick does it, and the ones after that: Spark may not know the job yet.
                job.cancelled = True
        else:
            job = Job(message["id"], len(message["tasks"]))
            self._jobs[job.id] = job
            self._threads.submit(self._run, job, Path(message["function"]), message["tasks"])

    def _run(self, job: Job, function: Path, tasks: Sequence[str]) -> None:
        answer: dict[str, Any]
        try:
            outcomes = [] if job.cancelled else self._results(job.id, function.read_bytes(), tasks)
            failed = [text for ok, text in outcomes if not ok]
            if failed:
                answer = {"ok": False, "error": failed[0], "raised": True}
            else:
                answer = {"ok": True, "results": [text for _, text in outcomes]}
            answer["parallelism"] = self._context.defaultParallelism
        except Exception as error:
            if self._gone():
                self._lost()
            answer = {"ok": False, "error": _told(error), "raised": False}
        self._jobs.pop(job.id, None)
        self._used_s = time.monotonic()
        self._voice.say(id=job.id, **answer)

    def _results(self, group: str, code: bytes, tasks: Sequence[str]) -> list[tuple[bool, str]]:
        """One Spark task for each of the tasks. As an RDD: half the overhead of a data frame of as many rows."""
        self._context.setJobGroup(group, "evenflow", interruptOnCancel=True)
        numbered = self._context.parallelize(list(enumerate(tasks)), len(tasks))
        outcomes: list[tuple[bool, str]] = numbered.map(partial(run_task, code)).collect()
        return outcomes

    def _gone(self) -> bool:
        """Whether Spark itself has ended, so that no further job can succeed."""
        try:
            return bool(self._context._jsc.sc().isStopped())
        except Exception:
            return True

    def _watch_jvm(self) -> None:
        self._context._gateway.proc.wait()
        self._lost()

    def _lost(self) -> NoReturn:
        """Tell the host that Spark is gone, and end."""
        jvm = self._context._gateway.proc
        with contextlib.suppress(subprocess.TimeoutExpired):
            jvm.wait(1.0)
        code = jvm.poll()
        if not self._ending.locked():
            why = "it stopped of itself" if code is None else f"its Java ended ({_ending(code)})"
            self._voice.say(event="failed", error=why)
        self.end()

    def _tick_for_ever(self) -> None:
        self._used_s = time.monotonic()
        while True:
            time.sleep(TICK_S)
            if os.getppid() != self._host:
                # Something that was forked from the host may hold our stdin open.
                self.end()
            if self._gone():
                self._lost()
            # A dying JVM makes this fail; the next tick sees to it.
            with contextlib.suppress(Exception):
                self._tick()

    def _tick(self) -> None:
        for job in list(self._jobs.values()):
            if job.cancelled:
                self._context.cancelJobGroup(job.id)
            done = self._done(job.id)
            if done > job.done:
                job.done = done
                self._voice.say(id=job.id, done=done, of=job.of)
        if not self._jobs and time.monotonic() - self._used_s > KEEP_WARM_S:
            self._warm_up()
            self._used_s = time.monotonic()

    def _done(self, group: str) -> int:
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)

    def end(self, orphaned: bool = False) -> NoReturn:
        """End Spark and all its processes, then this one."""
        self._ending.acquire()
        if self._context is not None and not self._settings.local:
            # A cluster is told, so that it can give the executors to others at once.
            stopping = threading.Thread(target=self._context.stop, daemon=True)
            stopping.start()
            stopping.join(END_S)
        self._end_processes()
        if orphaned or os.getppid() != self._host:
            shutil.rmtree(self._root, ignore_errors=True)
        os._exit(0)

    def _end_processes(self) -> None:
        """Python's workers end with the JVM, unless they hang. A JVM may just be about to start."""
        family: set[int] = set()
        deadline_s = time.monotonic() + END_S
        while True:
            family.update(descendants(os.getpid()))
            running = living(family)
            late = time.monotonic() > deadline_s
            if not running or late:
                kill(running)
                return
            kill(child for child in running if parent_of(child) == os.getpid())
            time.sleep(POLL_S)


def _told(error: Exception) -> str:
    """What went wrong in a few words, be it in Python or in Java."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    if isinstance(error, SparkError):
        return str(error)
    if isinstance(error, Py4JJavaError):
        return reason(str(error.java_exception.getMessage() or error.java_exception.toString()))
    return f"{type(error).__name__}: {str(error).strip()}"


def _ending(code: int) -> str:
    """How a process ended.

    >>> _ending(-9), _ending(3)
    ('killed by SIGKILL', 'exit code 3')
    """
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def main() -> NoReturn:
    """Serve one host until it is gone."""
    asked = json.loads(sys.stdin.readline())
    folder = Path(asked["folder"])
    voice = Voice(folder / "log")
    settings = SparkSettings(asked["master"], asked["java"], asked["conf"])
    driver = Driver(settings, folder, Path(asked["root"]), voice)
    for sign in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(sign, lambda *_: threading.Thread(target=driver.end).start())
    threading.Thread(target=driver.start, daemon=True).start()
    for line in sys.stdin:
        driver.handle(json.loads(line))
    # A host says stop before it closes the pipe, so this one was killed.
    driver.end(orphaned=True)


if __name__ == "__main__":
    main()
