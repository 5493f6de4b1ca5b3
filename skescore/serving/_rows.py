"""Rows that arrive as JSON or from a form, checked column by column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from skescore._text import listed, nearest
from skescore.datasets import ColumnReading, Preparation, read_table
from skescore.datasets._reading import OTHER
from skescore.rules import RuleSet
from skescore.rules._domain import text_features

#: Format of dates without a recorded format, and an example.
_ISO_FORMAT, _EXAMPLE_DATE = "ISO8601", pd.Timestamp(2026, 3, 31, 14, 30)


@dataclass(frozen=True)
class RowError:
    """Invalid value in a row.

    Parameters
    ----------
    row : int
        Number of the row, from 1.
    column : str or None
        Name of the column; None if the row itself is invalid.
    value : JSON value
        Invalid value.
    message : str
        Requirement and remedy.
    """

    row: int
    column: str | None
    value: Any
    message: str

    def to_dict(self) -> dict[str, Any]:
        """Return the error as JSON values."""
        return asdict(self)


class RowReader:
    """Converter of the rows of a request to a table to which rules are applied.

    Parameters
    ----------
    ruleset : RuleSet
        The rules. Only columns that they use are read.
    preparation : Preparation, optional
        Record of how the training table was read. By default it is inferred from the names and
        categories of the features.

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

    def __init__(self, ruleset: RuleSet, preparation: Preparation | None = None) -> None:
        self._names = ruleset.feature_names
        texts = text_features(ruleset)
        if preparation is None:
            preparation = Preparation.for_features(self._names, texts)
        readings = {name: column for column in preparation.columns for name in column.features}
        used = [self._names[feature] for feature in sorted(ruleset.used_features)]
        sources = {name: self._column_of(name, readings.get(name)) for name in used}
        #: Columns that rules use; features that are parts of a date come from one column.
        self.columns = tuple(dict.fromkeys(sources.values()))
        #: Values of categorical columns; None if they are not all known.
        self.categories = {name: texts[name] for name in used if name in texts}
        #: Columns of dates, and how they were read.
        self.dates = {
            source: replace(readings[name], format=readings[name].format or _ISO_FORMAT)
            for name, source in sources.items()
            if source != name
        }
        self._parts = {
            date: [name for name, source in sources.items() if source == date]
            for date in self.dates
        }
        self._has_other = {name for name in used if name in readings and readings[name].values}

    def _column_of(self, feature: str, reading: ColumnReading | None) -> str:
        """Return the column of a feature: its date, or the feature itself."""
        if reading is None or reading.kind != "date" or reading.name in self._names:
            return feature
        return reading.name

    def read(self, rows: Sequence[Any]) -> tuple[pd.DataFrame, list[RowError]]:
        """Check rows and return them as a table.

        Parameters
        ----------
        rows : sequence
            Mappings of columns to JSON values. Columns that no rule uses are ignored.

        Returns
        -------
        table : DataFrame
            One column per feature of the rules; meaningless if there are errors.
        errors : list of RowError
            All invalid values.
        """
        errors: list[RowError] = []
        records = [self._read_row(number, row, errors) for number, row in enumerate(rows, 1)]
        for column in self.dates:
            self._read_dates(column, records, errors)
        errors.sort(key=lambda error: error.row)
        table = pd.DataFrame(records, columns=list(self._names), index=range(len(records)))
        for name in self._names:
            dtype = object if name in self.categories else float
            table[name] = table[name].astype(dtype) if not errors else table[name]
        return table, errors

    def _read_row(self, number: int, row: Any, errors: list[RowError]) -> dict[str, Any]:
        if not isinstance(row, Mapping):
            message = f"Row {number} must be an object of names and values, got {row!r:.60}."
            errors.append(RowError(number, None, row, message))
            return {}
        record = {}
        for name in self._expected_columns(row):
            try:
                if name not in row:
                    raise ValueError(self._missing_column(number, name, row))
                record[name] = self._parse_value(number, name, row[name])
            except ValueError as error:
                errors.append(RowError(number, name, row.get(name), str(error)))
        return record

    def _expected_columns(self, row: Mapping[str, Any]) -> list[str]:
        """Return the columns to read from a row, which may contain the parts of a date instead."""
        columns: list[str] = []
        for column in self.columns:
            parts = self._parts.get(column, [])
            has_parts = column not in row and any(part in row for part in parts)
            columns += parts if has_parts else [column]
        return columns

    def _read_dates(
        self, column: str, records: list[dict[str, Any]], errors: list[RowError]
    ) -> None:
        """Replace the dates of a column by the features that rules use."""
        texts = {i: record.pop(column) for i, record in enumerate(records) if column in record}
        if not texts:
            return
        cells = pd.DataFrame({column: list(texts.values())}, dtype=object)
        features = read_table(cells, preparation=Preparation((self.dates[column],))).frame
        for (i, text), values in zip(texts.items(), features.to_dict("records"), strict=True):
            records[i] |= {part: values[part] for part in self._parts[column]}
            if text is not None and pd.isna(values[self._parts[column][0]]):
                message = self._wrong_date(i + 1, column, text)
                errors.append(RowError(i + 1, column, text, message))

    def example_date(self, column: str) -> str:
        """Return a date in the format of a column."""
        first_format = str(self.dates[column].format).partition(" | ")[0]
        if first_format != _ISO_FORMAT:
            return _EXAMPLE_DATE.strftime(first_format)
        has_hours = "hour" in self.dates[column].parts
        return _EXAMPLE_DATE.strftime("%Y-%m-%d %H:%M" if has_hours else "%Y-%m-%d")

    def _wrong_date(self, number: int, column: str, value: Any) -> str:
        return (
            f"{column!r} of row {number} must be a date such as {self.example_date(column)!r}, or "
            f"null if it is missing, got {value!r:.60}. Write it in this format."
        )

    def _missing_column(self, number: int, name: str, row: Mapping[str, Any]) -> str:
        suggestion = nearest(name, [column for column in row if column not in self._names])
        if suggestion:
            hint = f"Rename {suggestion!r}."
        elif name in self.dates:
            hint = f"Write a date such as {self.example_date(name)!r}, or null if it is missing."
        else:
            hint = "Write null if its value is missing."
        return f"Row {number} has no column {name!r}, which the rules use. {hint}"

    def _parse_value(self, number: int, name: str, value: Any) -> Any:
        if value is None:
            return None if name in self.categories or name in self.dates else math.nan
        if name in self.dates:
            if not isinstance(value, str):
                raise ValueError(self._wrong_date(number, name, value))
            return value
        cell = f"{name!r} of row {number}"
        if name not in self.categories:
            return self._parse_number(cell, value)
        known_values = self.categories[name]
        text = value if isinstance(value, str) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            # As in tables, integers have no decimal point.
            text = str(int(value)) if float(value).is_integer() else str(value)
        if text is None:
            raise ValueError(
                f"{cell} must be a string, or null if it is missing, got {value!r:.60}. Write it "
                "in quotation marks."
            )
        if known_values is not None and text not in known_values:
            if name in self._has_other and OTHER in known_values:
                return OTHER
            raise ValueError(
                f"{cell} must be one of {listed(known_values)}, got {text!r}. "
                "The rules were extracted with these values."
            )
        return text

    def _parse_number(self, cell: str, value: Any) -> float:
        if isinstance(value, int | float):  # true and false are 1 and 0
            try:
                if math.isfinite(float(value)):
                    return float(value)
            except OverflowError:
                pass
            raise ValueError(f"{cell} must be finite, got {value!r:.60}. Write null if missing.")
        remedy = "Write a number such as 12.5."
        if isinstance(value, str) and value.strip().lower() in ("true", "false"):
            remedy = f"Write {value.strip().lower()} without quotation marks."
        raise ValueError(
            f"{cell} must be a number, or null if it is missing, got {value!r:.60}. {remedy}"
        )
