"""SOutput: numbers the stable rows of a stream that leaves a node, and eliminates duplicates (Borealis §3.4).

A stable row's ``tuple_id`` is its position in the stream. After a restart from an older state the rows since then
are produced again; SOutput knows how far it had come and lets only what is new go out, through a second and third
recovery as well: what was sent is never un-sent.

On the tentative lane rows are known by time: only what lies beyond both boundaries goes out. The first stable item
after tentative ones is announced by an ``Undo``; when the stable rows have caught up, or a new failure cuts the
correction short, ``RecDone`` ends it. Corrections are marked here and nowhere else in a node.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from evenflow.operators.errors import InvariantError
from evenflow.operators.items import Boundary, Data, RecDone, Undo
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import START

R = TypeVar("R")


class SOutput(Generic[R]):
    """Both lanes of one output stream.

    >>> from evenflow.operators.kernel import ListKernel
    >>> output = SOutput(ListKernel())
    >>> output.emit([(1, "a"), (2, "b")], boundary=10).first_id
    1
    >>> output.resume(produced=1)
    >>> again = output.emit([(2, "b"), (11, "c")], boundary=20)
    >>> again.first_id, again.rows
    (3, [(11, 'c')])
    """

    def __init__(self, kernel: Kernel[R]) -> None:
        self.produced = 0
        """Stable rows that the fold behind has produced; part of a checkpoint."""
        self.sent_id = 0
        """The last stable id that went out."""
        self.boundary = START
        self.tentative_boundary = START
        """How far tentative rows went out since the lanes last met; ``START``: there are none."""
        self.correcting = False
        """Whether an ``Undo`` went out whose ``RecDone`` has not."""
        self._tentative_rows = 0
        self._seen = START
        """How far consumers know that time has passed."""
        self._kernel = kernel

    @property
    def tentative(self) -> bool:
        """Whether consumers have been told something that is not yet corrected."""
        return self.tentative_boundary > START

    @property
    def eliminating(self) -> bool:
        """Whether rows are being produced that went out before."""
        return self.produced < self.sent_id

    def emit(self, rows: R, boundary: int, seen: int | None = None) -> Data[R]:
        """Number stable rows; the item holds those that did not go out before."""
        known = min(max(self.sent_id - self.produced, 0), self._kernel.count(rows))
        fresh = self._kernel.skip(rows, known) if known else rows
        self.produced += self._kernel.count(rows)
        self.sent_id = max(self.sent_id, self.produced)
        self.boundary = max(self.boundary, boundary)
        self._seen = max(self._seen, seen or START)
        first_id = self.sent_id - self._kernel.count(fresh) + 1
        return Data(fresh, first_id, Boundary(self.boundary, True, self.sent_id, seen))

    def emit_tentative(
        self, rows: R, boundary: int, missing: frozenset[str], seen: int | None = None
    ) -> Data[R] | None:
        """Tentative rows that lie beyond both boundaries; None if they say nothing new, of time neither."""
        known = max(self.boundary, self.tentative_boundary)
        later = seen is not None and seen > self._seen
        if boundary < known or (boundary == known and not later):
            return None
        self._seen = max(self._seen, seen or START)
        _, fresh = self._kernel.split(rows, known)
        first_id = self.sent_id + self._tentative_rows + 1
        self._tentative_rows += self._kernel.count(fresh)
        self.tentative_boundary = boundary
        return Data(fresh, first_id, Boundary(boundary, False, self.sent_id, seen), missing)

    def undo(self) -> Undo | None:
        """The mark that a correction begins, once for each; to be sent before its first stable item."""
        if not self.tentative or self.correcting:
            return None
        self.correcting = True
        return Undo(self.sent_id)

    def rec_done(self, met: bool) -> RecDone | None:
        """The mark that a correction ends: because the lanes met, or because a new failure cut it short."""
        if not self.correcting and not (met and self.tentative):
            return None
        self.correcting = False
        if not met:
            return RecDone(self.boundary)
        upto = max(self.boundary, self.tentative_boundary)
        self.tentative_boundary = START
        self._tentative_rows = 0
        return RecDone(upto)

    def restore(self, produced: int, boundary: int) -> None:
        """Go on with the numbering of another replica."""
        self.produced = self.sent_id = produced
        self.boundary = boundary

    def resume(self, produced: int) -> None:
        """Go back to a state that had produced this many rows. What was sent stays sent."""
        if produced > self.sent_id:
            raise InvariantError(f"SOutput: cannot resume after row {produced}: only {self.sent_id} went out")
        self.produced = produced
