"""Redo that runs elsewhere: what is handed out, what comes back, and who decides.

The stable head stays where it is while a job is away: the rows stay in the SUnion and the state is immutable, so a job
that is lost costs nothing but time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from evenflow.operators.plan import FoldFragment
from evenflow.reconcile.redo import Leaves

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class RedoJob(Generic[R]):
    """Complete buckets of one fragment up to ``upto``, to be folded onto ``state``."""

    number: int
    """The fragment's number in its node."""
    fragment: FoldFragment[R]
    state: Any
    rows: tuple[R, ...]
    upto: int
    n_rows: int


@dataclass(frozen=True, slots=True, eq=False)
class Replayed(Generic[R]):
    """What a job gave: just what ``fragment.step`` gives."""

    state: Any
    leaves: Leaves[R]


class Executor(Protocol[R]):
    """Where jobs run."""

    name: str

    def warm_up(self) -> None:
        """Get ready for jobs, in the background."""
        ...

    def run(self, job: RedoJob[R]) -> Replayed[R]:
        """Fold a job; raises ``ReplayError`` if that failed, and then nothing has happened."""
        ...


class InProcess(Generic[R]):
    """Folds a job here and now, in one step: what every other executor must equal."""

    name = "process"

    def warm_up(self) -> None:
        """There is nothing to get ready."""

    def run(self, job: RedoJob[R]) -> Replayed[R]:
        return Replayed(*job.fragment.step(job.state, job.rows, job.upto))


class Where(Enum):
    """Where a fragment's next buckets are corrected."""

    HERE = "here, in slices"
    INSTEAD = "here, for it failed elsewhere"
    ELSEWHERE = "in a job"
    WAIT = "not yet: more is on its way, and goes into the same job"


class How(NamedTuple):
    """How something was corrected: the method, where, and whether another way was asked for."""

    method: str
    executor: str
    fell_back: bool


class Dispatch(Protocol):
    """Decides where redo runs."""

    name: str
    """What the executor is called."""

    def where(self, number: int, rows: int, now_us: int) -> Where:
        """For a fragment that has so many rows in complete buckets to correct."""
        ...


class Here:
    """All redo runs in the node."""

    name = "local"

    def where(self, number: int, rows: int, now_us: int) -> Where:
        return Where.HERE
