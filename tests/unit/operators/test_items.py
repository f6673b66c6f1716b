"""Stream items and the header that a user sees."""

from __future__ import annotations

import polars as pl
import pytest

from evenflow.operators.items import Boundary, Data, RecDone, TupleType, Undo, with_header


def test_the_header_comes_first_and_numbers_the_rows() -> None:
    rows = pl.DataFrame({"v": [7, 8], "tuple_time": [1, 2], "w": ["a", "b"]})
    out = with_header(rows, 5, TupleType.TENTATIVE)
    assert out.columns == ["tuple_id", "tuple_time", "tuple_type", "v", "w"]
    assert out.select("tuple_id", "tuple_type").rows() == [(5, "TENTATIVE"), (6, "TENTATIVE")]
    assert out.schema["tuple_id"] == pl.Int64


def test_no_rows_have_the_same_columns() -> None:
    out = with_header(pl.DataFrame(schema={"tuple_time": pl.Int64, "v": pl.String}), 1, TupleType.INSERTION)
    assert out.height == 0
    assert out.columns == ["tuple_id", "tuple_time", "tuple_type", "v"]


def test_rows_are_as_stable_as_their_boundary() -> None:
    assert Data([], 1, Boundary(5)).stable
    tentative = Data([], 1, Boundary(5, stable=False), frozenset({"a"}))
    assert not tentative.stable
    assert tentative.missing == {"a"}


@pytest.mark.parametrize("item", [Boundary(1), Undo(3), RecDone(4)])
def test_items_are_values(item: object) -> None:
    assert item == type(item)(*[getattr(item, name) for name in item.__slots__])  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        setattr(item, item.__slots__[0], 0)  # type: ignore[attr-defined]


def test_the_tuple_types_are_the_paper_s() -> None:
    assert [kind.value for kind in TupleType] == ["INSERTION", "TENTATIVE", "BOUNDARY", "UNDO", "REC_DONE"]
