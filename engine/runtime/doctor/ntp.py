"""How far this machine's clock is from those of NTP servers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import ntplib

from evenflow.engine.runtime.doctor.finding import Finding, aside, in_a_line
from evenflow.operators.errors import EvenflowError

NAME = "NTP"
SAMPLES = 4
FAILURES_MAX = 2
TIMEOUT_S = 1.0
PAUSE_S = 0.1
DEADLINE_S = 8.0
"""For all servers together: the look-up of a name has no time limit of its own."""
OFFSET_MAX_S = 0.05
ROUNDING_S = 0.001
"""An answer that seems to come earlier than its question, by no more than this, came at once."""
NOT_SYNCHRONISED = 3
STRATUM_END = 16


@dataclass(frozen=True, slots=True)
class Measured:
    """What a server says of our clock."""

    server: str
    offset_s: float
    """What to add to our clock: it is behind if this is positive."""
    bound_s: float
    """How wrong the offset can be."""
    stratum: int

    def __str__(self) -> str:
        side = "behind" if self.offset_s >= 0 else "ahead"
        about = f"give or take {_span(self.bound_s)}, stratum {self.stratum}"
        return f"{self.server}: this clock is {_span(abs(self.offset_s))} {side} ({about})"


class NoTimeError(EvenflowError):
    """A server does not answer, or does not know the time either."""


def check(servers: Sequence[str]) -> Finding:
    """Ask all of them at the same time; the surest answer is named first."""
    asked = {server: aside(partial(measure, server)) for server in servers}
    deadline_s = time.monotonic() + DEADLINE_S
    measured, silent = [], []
    for server, answer in asked.items():
        try:
            measured.append(answer.result(max(deadline_s - time.monotonic(), 0.0)))
        except NoTimeError as error:
            silent.append(f"{server}: {error}")
        except TimeoutError:
            silent.append(f"{server}: no answer within {DEADLINE_S:g} s")
    measured.sort(key=lambda one: one.bound_s)
    advice = []
    if any(abs(one.offset_s) > OFFSET_MAX_S for one in measured):
        advice.append("Have chrony, ntpd or systemd-timesyncd set the clock: times given here are off by as much.")
    if not measured:
        advice.append("The local clock is used as it is.")
    if silent:
        advice.append("Let UDP port 123 out, or name a server that answers with --ntp.")
    found = "; ".join([*map(str, measured), *silent])
    return Finding(NAME, "warning" if advice else "ok", found or "no server to ask", " ".join(advice))


def measure(server: str) -> Measured:
    """Ask a server, ``HOST`` or ``HOST:PORT``, some times; of its answers the quickest is the surest."""
    host, port = address(server)
    answers: list[ntplib.NTPStats] = []
    failures: list[str] = []
    while len(answers) + len(failures) < SAMPLES and len(failures) < FAILURES_MAX:
        try:
            answer = ntplib.NTPClient().request(host, version=4, port=port, timeout=TIMEOUT_S)
        except (ntplib.NTPException, OSError) as error:
            unanswered = isinstance(error.__context__, TimeoutError)
            failures.append(f"no answer within {TIMEOUT_S:g} s" if unanswered else in_a_line(error))
            continue
        refusal = unusable(answer)
        if refusal is not None:
            # One that is asked too often says so in this way.
            failures.append(refusal)
            break
        answers.append(answer)
        time.sleep(PAUSE_S)
    if not answers:
        raise NoTimeError(failures[-1])
    best = min(answers, key=lambda answer: float(answer.delay))
    bound_s = max(best.delay, 0.0) / 2 + best.root_delay / 2 + best.root_dispersion
    return Measured(server, best.offset, bound_s, best.stratum)


def unusable(answer: ntplib.NTPStats) -> str | None:
    """Why an answer says nothing about the time, if it does not."""
    if answer.leap == NOT_SYNCHRONISED:
        return "it is not synchronised itself (leap 3)"
    if not 0 < answer.stratum < STRATUM_END:
        return f"it is not synchronised itself (stratum {answer.stratum})"
    if answer.delay < -ROUNDING_S:
        return "its answer came before the question, by its own times"
    return None


def address(server: str) -> tuple[str, str]:
    """
    >>> address("pool.ntp.org"), address("localhost:1123"), address("::1"), address("[::1]:1123")
    (('pool.ntp.org', 'ntp'), ('localhost', '1123'), ('::1', 'ntp'), ('::1', '1123'))
    """
    if server.startswith("["):
        host, _, port = server[1:].partition("]")
        return host, port.removeprefix(":") or "ntp"
    host, _, port = server.partition(":")
    return (server, "ntp") if ":" in port else (host, port or "ntp")


def _span(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"
