"""Spark, really started."""

from __future__ import annotations

import re
import socket

from evenflow.engine.runtime.doctor.finding import Finding, in_a_line
from evenflow.engine.runtime.spark.errors import SparkError
from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings

NAME = "Spark"
WITHOUT = "Until Spark starts, redo runs in the node only, and back-fill does not run."
STANDALONE = re.compile(r"spark://(.+)")
CONNECT_S = 3.0
GATEWAY = "JAVA_GATEWAY_EXITED"
RAISED = re.compile(r"(?:[A-Za-z_$][\w$]*\.)*[A-Z]\w*(?:Exception|Error): .+")


def begin(host: SparkHost) -> Finding | None:
    """Have Spark started in the background, unless it is clear that it will not."""
    # Spark itself would go on trying for two minutes.
    silence = _silence(host.settings.master)
    if silence is not None:
        return Finding(NAME, "problem", f"no master answers: {silence}", f"{_remedy(host.settings)} {WITHOUT}")
    host.start()
    return None


def check(host: SparkHost) -> Finding:
    """Start it, unless it runs, and wait until it has done a first job."""
    try:
        facts = host.wait_ready()
    except SparkError as error:
        return _failed(host.settings, error)
    tasks = "1 task" if facts.parallelism == 1 else f"{facts.parallelism} tasks"
    found = f"Spark {facts.spark} on {facts.master}, ready {facts.seconds:.1f} s after its start, {tasks} at once"
    return Finding(NAME, "ok", found)


def _failed(settings: SparkSettings, error: SparkError) -> Finding:
    found, _, log = str(error).partition("\n")
    log = log.partition("\n")[2]
    raised = RAISED.findall(log)
    if GATEWAY in found and raised:
        # PySpark only says that Java ended. Java says why.
        found = f"Spark did not start: {raised[-1].strip()}"
    return Finding(NAME, "problem", found, f"{_remedy(settings)} {WITHOUT}", log)


def _remedy(settings: SparkSettings) -> str:
    if settings.local:
        return "See the end of its log below; --java bundled tries another Java."
    return f"See that --master {settings.master} is right and its cluster has a core to spare, or leave it out."


def _silence(master: str) -> str | None:
    """Why none of a standalone cluster's masters can be reached, if so."""
    named = STANDALONE.fullmatch(master)
    whys = []
    for address in named[1].split(",") if named is not None else ():
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
            return None
        except (OSError, ValueError, OverflowError) as error:
            whys.append(f"{address} ({in_a_line(error)})")
    return ", ".join(whys) or None
