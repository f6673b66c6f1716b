"""Every example in a docstring is run."""

import doctest
import importlib
import pkgutil

import pytest

import evenflow

MODULES = [
    "evenflow",
    *(m.name for m in pkgutil.walk_packages(evenflow.__path__, "evenflow.") if "__main__" not in m.name),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert outcome.failed == 0
