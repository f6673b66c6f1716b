"""Faults, as users write them. Times count from the start of the run."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from evenflow.operators.errors import DeclarationError
from evenflow.operators.times import readable
from evenflow.queries.durations import Duration, microseconds


@dataclass(frozen=True, slots=True)
class _Span:
    """A fault of something, from ``start`` to ``end``."""

    where: str
    start: Duration
    end: Duration

    @property
    def span_us(self) -> tuple[int, int]:
        name = f"{type(self).__name__}({self.where!r})"
        start, end = (microseconds(t, f"{name}: time", zero=True) for t in (self.start, self.end))
        if end <= start:
            raise DeclarationError(f"{name} ends at {readable(end)}, not after its start at {readable(start)}")
        return start, end


@dataclass(frozen=True, slots=True)
class Cut(_Span):
    """Nothing passes on a link, or on all links of a source: ``Cut("monitor2", "5s", "15s")``, ``"edge->site"``."""


@dataclass(frozen=True, slots=True)
class Stall(_Span):
    """A source sends nothing though it is connected; afterwards it sends all of it."""


@dataclass(frozen=True, slots=True)
class Pause(_Span):
    """A node does nothing; what reaches it waits."""


@dataclass(frozen=True, slots=True)
class Slow(_Span):
    """What is sent on a link, or by a source, takes ``by`` longer."""

    by: Duration = "1s"

    @property
    def by_us(self) -> int:
        return microseconds(self.by, f"Slow({self.where!r}): by")


@dataclass(frozen=True, slots=True)
class Skew:
    """A source's clock is ahead by this much, or behind (``"-300ms"``): its rows and boundaries come early, or late."""

    where: str
    by: Duration

    @property
    def by_us(self) -> int:
        if isinstance(self.by, int) and self.by < 0:
            return self.by
        if isinstance(self.by, str) and self.by.strip().startswith("-"):
            return -microseconds(self.by.strip()[1:], f"Skew({self.where!r}): by")
        return microseconds(self.by, f"Skew({self.where!r}): by", zero=True)


@dataclass(frozen=True, slots=True)
class Crash:
    """A replica, or all of a node's, or a source, loses what it had in memory, and is started anew, or never."""

    where: str
    at: Duration
    restart: Duration | None = None

    @property
    def span_us(self) -> tuple[int, int]:
        """Until the restart; a replica that stays away counts as healed at once."""
        name = f"Crash({self.where!r})"
        at_us = microseconds(self.at, f"{name}: at", zero=True)
        if self.restart is None:
            return at_us, at_us
        restart_us = microseconds(self.restart, f"{name}: restart")
        if restart_us <= at_us:
            raise DeclarationError(f"{name} restarts at {readable(restart_us)}, not after its crash")
        return at_us, restart_us


@dataclass(frozen=True, slots=True)
class Partition:
    """Nothing passes between these replicas, nodes or sources and the others: ``Partition({"edge/1"}, "5s", "9s")``."""

    members: Collection[str]
    start: Duration
    end: Duration

    @property
    def where(self) -> str:
        return ", ".join(sorted(self.members))

    @property
    def span_us(self) -> tuple[int, int]:
        return _Span(self.where, self.start, self.end).span_us


Fault = Cut | Stall | Pause | Slow | Skew | Crash | Partition
_SPAN = re.compile(r"(?P<where>[^@]+)@(?P<start>[^.@+]+(?:\.\d+\w+)?)\.\.(?P<end>[^+@]+)(?:\+(?P<by>.+))?")


def parse_span(kind: type[Cut] | type[Stall] | type[Pause] | type[Slow], text: str) -> Cut | Stall | Pause | Slow:
    """A fault of the command line: ``monitor2@5s..15s``, or for Slow ``monitor2@5s..15s+300ms``.

    >>> parse_span(Cut, "monitor2@5s..15s")
    Cut(where='monitor2', start='5s', end='15s')
    """
    match = _SPAN.fullmatch(text.strip())
    option = kind.__name__.lower()
    if match is None or (match["by"] is not None) != (kind is Slow):
        example = "monitor2@5s..15s+300ms" if kind is Slow else "monitor2@5s..15s"
        raise DeclarationError(f"--{option} {text}: write it like {example}")
    fault = Slow(match["where"], match["start"], match["end"], match["by"]) if kind is Slow else None
    found = fault if fault is not None else kind(match["where"], match["start"], match["end"])
    _ = found.span_us
    return found


def parse_skew(text: str) -> Skew:
    """``monitor2=300ms``"""
    where, equals, by = text.partition("=")
    if not equals:
        raise DeclarationError(f"--skew {text}: write it like monitor2=300ms")
    skew = Skew(where, by)
    _ = skew.by_us
    return skew


def parse_crash(text: str) -> Crash:
    """``edge/1@5s``, or with a restart ``edge/1@5s..7s``.

    >>> parse_crash("edge/1@5s..7s"), parse_crash("edge@1.5s")
    (Crash(where='edge/1', at='5s', restart='7s'), Crash(where='edge', at='1.5s', restart=None))
    """
    where, sign, when = text.strip().partition("@")
    at, _, restart = when.partition("..")
    if not (where and sign and at):
        raise DeclarationError(f"--crash {text}: write it like edge/1@5s, or with a restart edge/1@5s..7s")
    crash = Crash(where, at, restart or None)
    _ = crash.span_us
    return crash


def parse_partition(text: str) -> Partition:
    """``edge/1,site/1@5s..9s``: these against the rest."""
    members, sign, when = text.strip().partition("@")
    start, dots, end = when.partition("..")
    if not (members and sign and dots):
        raise DeclarationError(f"--partition {text}: write it like edge/1,site/1@5s..9s")
    partition = Partition(frozenset(name.strip() for name in members.split(",")), start, end)
    _ = partition.span_us
    return partition


def merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that touch as one.

    >>> merged([(5, 9), (1, 3), (2, 4)])
    [(1, 4), (5, 9)]
    """
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(end, out[-1][1]))
        else:
            out.append((start, end))
    return out
