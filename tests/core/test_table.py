"""The table that the Python interface returns."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sf_explore_go.core.table import Table

ROWS = Table([{"a": 1, "b": 2.5}, {"a": 3, "c": "x"}])


def test_columns_in_the_order_in_which_they_occur() -> None:
    assert ROWS.columns == ["a", "b", "c"]
    assert Table().columns == []


def test_pandas_gets_rows_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    def frame(rows: list[dict[str, Any]], columns: list[str]) -> Any:
        return rows, columns

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
    assert ROWS.to_pandas() == (list(ROWS), ["a", "b", "c"])


def test_without_pandas_a_sentence_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match="pip install pandas"):
        ROWS.to_pandas()
