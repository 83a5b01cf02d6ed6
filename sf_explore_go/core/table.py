"""Rows of numbers, as the functions of the package's Python interface return them."""

import importlib
from typing import Any


class Table(list[dict[str, Any]]):
    """A list of rows; a row maps the names of its columns to numbers or words."""

    @property
    def columns(self) -> list[str]:
        """All names, in the order in which they first occur."""
        return list(dict.fromkeys(name for row in self for name in row))

    def to_pandas(self) -> Any:
        """The same as a pandas DataFrame, if pandas is installed; this package does not install it."""
        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("to_pandas() needs pandas, which is not installed: pip install pandas") from error
        return pandas.DataFrame(list(self), columns=self.columns)
