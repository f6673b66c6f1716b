"""One Spark for all tests of this folder: a start takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenflow.engine.runtime.spark.host import SparkHost
from evenflow.engine.runtime.spark.settings import SparkSettings


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkHost]:
    """A local Spark with two cores. A test may kill it: it comes back."""
    with SparkHost(SparkSettings("local[2]")) as host:
        yield host
