"""Rows that arrive as JSON or from a form, checked column by column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from skescore._text import listed, nearest
from skescore.rules import RuleSet
from skescore.rules._domain import text_features


@dataclass(frozen=True)
class RowError:
    """Value of a row that cannot be used.

    Parameters
    ----------
    row : int
        Number of the row, from 1.
    column : str or None
        Name of the column; None if the row itself cannot be used.
    value : JSON value
        The value.
    message : str
        What the value must be, and how to correct it.
    """

    row: int
    column: str | None
    value: Any
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON values."""
        return asdict(self)


class RowReader:
    """Turn rows of a request into a table for the rules.

    Parameters
    ----------
    ruleset : RuleSet
        The rules. Only columns that they use are read.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.serving import RowReader
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> RowReader(rules).read([{"age": "old"}])[1][0].message
    "'age' of row 1 must be a number, or null if it is missing, got 'old'. Write a number such as \
12.5."
    """

    def __init__(self, ruleset: RuleSet) -> None:
        self._names = ruleset.feature_names
        #: Columns that rules use.
        self.columns = tuple(self._names[feature] for feature in sorted(ruleset.used_features))
        texts = text_features(ruleset)
        #: Values of columns with text, None if they are not all known.
        self.categories = {name: texts[name] for name in self.columns if name in texts}

    def read(self, rows: Sequence[Any]) -> tuple[pd.DataFrame, list[RowError]]:
        """Check rows and return them as a table.

        Parameters
        ----------
        rows : sequence
            Mappings of columns to JSON values. Columns that no rule uses are ignored.

        Returns
        -------
        table : DataFrame
            All columns of the rules; meaningless if there are errors.
        errors : list of RowError
            All values that cannot be used.
        """
        errors: list[RowError] = []
        records = [self._read_row(number, row, errors) for number, row in enumerate(rows, 1)]
        table = pd.DataFrame(records, columns=list(self._names), index=range(len(records)))
        for name in self._names:
            dtype = object if name in self.categories else float
            table[name] = table[name].astype(dtype) if not errors else table[name]
        return table, errors

    def _read_row(self, number: int, row: Any, errors: list[RowError]) -> dict[str, Any]:
        if not isinstance(row, Mapping):
            message = f"Row {number} must be an object of columns and values, got {row!r:.60}."
            errors.append(RowError(number, None, row, message))
            return {}
        record = {}
        for name in self.columns:
            try:
                if name not in row:
                    raise ValueError(self._missing_column(number, name, row))
                record[name] = self._value(number, name, row[name])
            except ValueError as error:
                errors.append(RowError(number, name, row.get(name), str(error)))
        return record

    def _missing_column(self, number: int, name: str, row: Mapping[str, Any]) -> str:
        similar = nearest(name, [column for column in row if column not in self._names])
        hint = f"Rename {similar!r}." if similar else "Write null if its value is missing."
        return f"Row {number} has no column {name!r}, which the rules use. {hint}"

    def _value(self, number: int, name: str, value: Any) -> Any:
        if value is None:
            return None if name in self.categories else math.nan
        place = f"{name!r} of row {number}"
        if name not in self.categories:
            return self._number(place, value)
        known_values = self.categories[name]
        text = value if isinstance(value, str) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Tables are read in the same way: whole numbers without a point.
            text = str(int(value)) if float(value).is_integer() else str(value)
        if text is None:
            raise ValueError(
                f"{place} must be a text, or null if it is missing, got {value!r:.60}. Write it in "
                "quotation marks."
            )
        if known_values is not None and text not in known_values:
            raise ValueError(
                f"{place} must be one of {listed(known_values)}, got {text!r}. The "
                "rules were not made with other values."
            )
        return text

    def _number(self, place: str, value: Any) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                if math.isfinite(float(value)):
                    return float(value)
            except OverflowError:
                pass
            raise ValueError(f"{place} must be finite, got {value!r:.60}. Write null if missing.")
        raise ValueError(
            f"{place} must be a number, or null if it is missing, got {value!r:.60}. Write a "
            "number such as 12.5."
        )
