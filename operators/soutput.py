"""SOutput: numbers the stable rows of a stream that leaves a node, and eliminates duplicates (Borealis §3.4).

A stable row's ``tuple_id`` is its position in the stream. After a restart from an older state the rows since then
are produced again; SOutput knows how far it had come and lets only what is new go out, through a second and third
recovery as well: what was sent is never un-sent.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from evenflow.operators.errors import InvariantError
from evenflow.operators.items import Boundary, Data
from evenflow.operators.kernel import Kernel
from evenflow.operators.times import START

R = TypeVar("R")


class SOutput(Generic[R]):
    """The stable lane of one output stream.

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
        self._kernel = kernel

    @property
    def eliminating(self) -> bool:
        """Whether rows are being produced that went out before."""
        return self.produced < self.sent_id

    def emit(self, rows: R, boundary: int) -> Data[R]:
        """Number stable rows; the item holds those that did not go out before."""
        known = min(max(self.sent_id - self.produced, 0), self._kernel.count(rows))
        fresh = self._kernel.skip(rows, known) if known else rows
        self.produced += self._kernel.count(rows)
        self.sent_id = max(self.sent_id, self.produced)
        self.boundary = max(self.boundary, boundary)
        first_id = self.sent_id - self._kernel.count(fresh) + 1
        return Data(fresh, first_id, Boundary(self.boundary, stable=True, last_id=self.sent_id))

    def resume(self, produced: int) -> None:
        """Go back to a state that had produced this many rows. What was sent stays sent."""
        if produced > self.sent_id:
            raise InvariantError(f"SOutput: cannot resume after row {produced}: only {self.sent_id} went out")
        self.produced = produced
