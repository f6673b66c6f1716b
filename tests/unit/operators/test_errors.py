"""One root for all errors, and hints that name what was meant."""

from __future__ import annotations

import pytest

import evenflow as ef
from evenflow.operators.errors import nearest


@pytest.mark.parametrize(
    "error", [ef.DeclarationError, ef.InputError, ef.OperatorError, ef.NotDeterministicError, ef.InvariantError]
)
def test_every_error_has_one_root(error: type[Exception]) -> None:
    assert issubclass(error, ef.EvenflowError)


def test_the_nearest_name_or_all_of_them() -> None:
    assert nearest("bytez", ["src", "bytes"]) == "did you mean 'bytes'?"
    assert nearest("zzz", ["src", "bytes"]) == "there is 'src', 'bytes'"
    assert nearest("zzz", []) == "there is none"
