"""Why a Spark job failed, in a line or two instead of two hundred."""

from __future__ import annotations

import re

LINE_MAX = 600
TRY_AGAIN = re.compile(r"TryAgainError: (.+?)(?:\n\s*\n|\n\tat |\n SQLSTATE|\Z)", re.DOTALL)
RECENT = re.compile(r"most recent failure: Lost task .*?\): (.+)", re.DOTALL)
PYTHON = re.compile(r"^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b.*$", re.MULTILINE)


def reason(message: str) -> str:
    """The part of Spark's message that says what happened.

    >>> reason("Job aborted …, most recent failure: Lost task 0.3 in stage 1.0 (TID 4) (here executor 1): "
    ...        "ExecutorLostFailure (executor 1 exited) Reason: gone\\nDriver stacktrace:")
    'ExecutorLostFailure (executor 1 exited) Reason: gone'
    """
    told = TRY_AGAIN.search(message)
    if told is not None:
        return _short(told[1])
    recent = RECENT.search(message)
    text = recent[1] if recent is not None else message
    python, _, _ = text.partition("\n\tat ")
    if "Traceback (most recent call last)" in python:
        raised = PYTHON.findall(python.partition("Traceback (most recent call last)")[2])
        if raised:
            return _short(raised[-1])
    if "Python worker exited unexpectedly" in text or "Python worker" in text.partition("\n")[0]:
        return "a Python worker died, again and again: killed, out of memory, or crashed in native code"
    return _short(text.strip().partition("\n")[0])


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= LINE_MAX else f"{text[:LINE_MAX]}…"
