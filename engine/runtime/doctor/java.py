"""The Java that Spark would run on."""

from __future__ import annotations

from evenflow.engine.runtime.doctor.finding import Finding, in_a_line
from evenflow.engine.runtime.spark.errors import JavaError
from evenflow.engine.runtime.spark.java import ADVICE, VECTOR, find_java

NAME = "Java"


def check(wanted: str) -> Finding:
    """Which one, from where, and whether Spark runs on it as it is."""
    try:
        java = find_java(wanted)
    except JavaError as error:
        found = in_a_line(error).removesuffix(ADVICE).rstrip(".: ")
        return Finding(NAME, "problem", found, f"{ADVICE[0].upper()}{ADVICE[1:]}")
    kind = "bundled" if java.bundled else "this machine's own"
    # A wrapper stands in a folder of ours; where it was found is always said of the Java itself.
    as_it_is = java.where.endswith(f": {java.home}")
    used = "used as it is" if as_it_is else f"wrapped, for it lacks {VECTOR}"
    return Finding(NAME, "ok", f"Java {java.version}, {kind} ({java.where}), {used}")
