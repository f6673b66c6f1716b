"""The two heads of one fragment: the stable one folds complete buckets, the tentative one what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from evenflow.operators.errors import InvariantError
from evenflow.operators.plan import FoldFragment
from evenflow.operators.sunion import SUnion
from evenflow.operators.times import START, floor
from evenflow.reconcile.job import RedoJob, Replayed
from evenflow.reconcile.redo import Leaves, Redo, Stepped
from evenflow.reconcile.state import State
from evenflow.reconcile.tentative import Gaps, TentativeHead

R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One input of a fragment: the name it has as an input of the node (None: made in the node), and what is above."""

    name: str | None
    above: frozenset[str]


class FragmentHeads(Generic[R]):
    """A fragment, the SUnion before it, its stable head and perhaps a tentative one."""

    def __init__(self, fragment: FoldFragment[R], sunion: SUnion[R], redo: Redo[R], places: Sequence[Place]) -> None:
        self.fragment = fragment
        self.sunion = sunion
        self.redo = redo
        self.places = tuple(places)
        self.tentative: TentativeHead | None = None
        self.wanted = START
        """How far results were wanted before they could be stable."""
        self.corrected_us: int | None = None
        """When the stable head last moved in this failure."""
        self.arriving = False
        """Whether more corrections of its inputs are on their way."""
        self.away: RedoJob[R] | None = None
        """Redo that runs elsewhere; meanwhile the stable head stays where it is."""
        self._gaps = Gaps(len(places))
        self._alive = [START] * len(places)
        """How far each input came with anything at all in it."""

    @property
    def failing(self) -> bool:
        """Whether results are wanted that cannot be stable yet."""
        return self.sunion.cursor < self.wanted

    @property
    def reached(self) -> int:
        """How far either head has folded."""
        return self.sunion.cursor if self.tentative is None else max(self.tentative.cursor, self.sunion.cursor)

    @property
    def blocked(self) -> bool:
        """Whether results are wanted that cannot even be tentative, for an input is missing altogether."""
        return self.failing and self.fragment.blocking and self.wanted > self._limit(self.wanted)

    def alive_up_to(self, boundaries: Sequence[int]) -> None:
        """How far each input had come where this one goes on."""
        self._alive = list(boundaries)

    def insert(self, place: int, rows: R, boundary: int) -> None:
        self.sunion.insert(place, rows, boundary)
        self._gaps.supersede(place, boundary)
        self._alive[place] = max(self._alive[place], boundary)

    def insert_tentative(self, place: int, rows: R, boundary: int, missing: frozenset[str]) -> None:
        self.sunion.insert_tentative(place, rows, boundary)
        self._gaps.record(place, boundary, missing)
        if not missing >= self.places[place].above:
            self._alive[place] = max(self._alive[place], boundary)

    def clear_tentative(self, place: int, upto: int) -> None:
        self.sunion.clear_tentative(place, upto)
        if upto >= self.sunion.reached(place):
            self._gaps.clear(place)

    @property
    def can_correct(self) -> bool:
        """Whether the stable head can go on here."""
        return self.away is None and self.redo.ready(self.sunion, self.arriving)

    def correct(self, rows_max: int | None, now_us: int) -> Stepped[R] | None:
        """Move the stable head, if it can move."""
        if not self.can_correct:
            return None
        if self.failing:
            self.corrected_us = now_us
        return self.redo.correct(self.sunion, rows_max, self.arriving)

    @property
    def can_send_off(self) -> bool:
        """Whether all complete buckets could be folded elsewhere: there is a state to fold them onto."""
        return self.away is None and self.redo.can_begin and self.sunion.complete_upto > self.sunion.cursor

    def send_off(self, number: int) -> RedoJob[R]:
        """Hand out the complete buckets; they stay here until they come back folded."""
        upto, n_rows = self.sunion.complete_upto, self.sunion.complete_rows
        self.away = RedoJob(number, self.fragment, self.redo.state, self.sunion.look(upto), upto, n_rows)
        return self.away

    def came_back(self, replayed: Replayed[R], now_us: int) -> Stepped[R]:
        """The job that was away is done: the stable head goes where it ended."""
        job = self.away
        if job is None:
            raise InvariantError("redo came back that was not away")
        self.away = None
        self.sunion.drop(job.upto)
        self.redo.replayed(replayed.state, job.upto, job.rows)
        if self.failing:
            self.corrected_us = now_us
        return Stepped(replayed.leaves, job.n_rows)

    def meet(self) -> bool:
        """Drop the tentative head when the stable one has reached it."""
        if not self.failing:
            self.corrected_us = None
        if self.tentative is None or self.sunion.cursor < self.tentative.cursor:
            return False
        self.tentative = None
        self.redo.met()
        return True

    def want(self, upto: int) -> None:
        """Results up to a time are due, whether or not anything may be released."""
        if any(place.name is not None for place in self.places):
            self.wanted = max(self.wanted, self._target(upto))

    def work(self, released: int) -> tuple[Leaves[R], frozenset[str]] | None:
        """Move the tentative head as far as the node's inputs were released; gives what came out and what it lacks."""
        upto = self._target(released)
        if upto <= self.sunion.cursor:
            return None
        self.wanted = max(self.wanted, upto)
        upto = self._limit(upto)
        head = self.tentative
        if upto <= (self.sunion.cursor if head is None else head.cursor):
            return None
        if head is None and (self.away is not None or self.can_correct):
            return None  # nothing tentative was shown: let it come out stable, wherever it is folded
        if head is None:
            head = self.tentative = TentativeHead(self.redo.begin(), self.sunion.cursor, self.sunion.cursor)
        since, rows = head.cursor, self.sunion.peek(head.cursor, upto)
        missing = head.missing(upto, self._missing(since, upto), self.fragment.horizon)
        head.state, leaves = self.fragment.step(head.state, rows, upto)
        head.cursor = upto
        self.redo.worked(since, upto, rows, head.state, leaves)
        return leaves, missing

    def rebase(self) -> None:
        """Corrections stopped short of the tentative head: let it go on from the newest stable state."""
        self.corrected_us = None
        if self.tentative is not None and self.redo.can_begin and self.sunion.cursor > self.tentative.based_on:
            self.tentative = None
            self.redo.met()

    def state(self, now_us: int, patience_us: int, correcting: Sequence[bool] = ()) -> State:
        """Corrections count as stopped only after ``patience_us`` without progress.

        ``correcting`` tells of each input whether its own corrections are on their way: as long as the input that
        the stable head waits for is being corrected, so is this fragment, however long the next part takes.
        """
        if not self.failing:
            return State.STABLE
        if self.away is not None:
            return State.STABILIZATION
        boundaries = self.sunion.boundaries
        coming = bool(correcting) and correcting[boundaries.index(min(boundaries))]
        lately = self.corrected_us is not None and (coming or now_us - self.corrected_us < patience_us)
        return State.STABILIZATION if lately or self.can_correct else State.UP_FAILURE

    def _target(self, released: int) -> int:
        """How far tentative work can go: ``released`` on the node's inputs, the boundaries of either lane inside."""
        sunion = self.sunion
        if all(place.name is not None for place in self.places):
            return released
        reach = [
            sunion.reached(i) if place.name is None else max(sunion.boundaries[i], released)
            for i, place in enumerate(self.places)
        ]
        upto = floor(min(reach), sunion.bucket_us)
        return upto if self.tentative is not None or upto > sunion.complete_upto else START

    def _limit(self, upto: int) -> int:
        """Where a blocking operator stops: it waits for an input that is missing altogether."""
        return min(upto, floor(min(self._alive), self.sunion.bucket_us)) if self.fragment.blocking else upto

    def _missing(self, since: int, upto: int) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for i, place in enumerate(self.places):
            found |= self._gaps.between(i, since, upto)
            if place.name is not None and self.sunion.reached(i) < upto:
                found |= {place.name}
        return found
