"""What goes wrong with Spark, in words."""

from __future__ import annotations

from evenflow.operators.errors import EvenflowError


class SparkError(EvenflowError):
    """Spark did not start, died, ran out of time, or a task failed. Whatever it was to do can be done without it."""


class TaskError(SparkError):
    """What a task does raised an exception: it would do so again."""


class JavaError(SparkError):
    """There is no Java that Spark can run on. It says what to do."""
