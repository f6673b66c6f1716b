"""Every error that Evenflow raises on purpose has one root, :class:`EvenflowError`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class EvenflowError(Exception):
    """The root: catch this to catch whatever Evenflow itself reports."""


class DeclarationError(EvenflowError):
    """A mistake in a declared network, found before anything runs. It says what to change."""


class InputError(EvenflowError):
    """Input that does not fit its source's schema: a missing column or a wrong type."""


class OperatorError(EvenflowError):
    """A user's own function or expression failed while rows were folded."""


class NotDeterministicError(OperatorError):
    """A user's function gave other rows when the same input was cut elsewhere, so replicas would disagree."""


class InvariantError(EvenflowError):
    """The engine found itself in a state that must not be. It stops instead of emitting a wrong row."""


class ReplayError(EvenflowError):
    """Redo that ran elsewhere failed. Nothing is lost: the node still has its state and the input."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint naming the closest known name, and otherwise what there is to choose from.

    >>> nearest("bytez", ["src", "bytes"])
    "did you mean 'bytes'?"
    """
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there is {', '.join(map(repr, names))}" if names else "there is none"
