"""Reading a table as its owner meant it: what each column is, and what was found on the way.

A column of a file becomes one of numbers, one of categories, or the parts of a date. How that was
done is a `Preparation`, so that other rows are read in the same way later.
"""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from skescore._io import at_home
from skescore._text import listed
from skescore.datasets._files import DatasetError, FileTable, check_unique, read_file

__all__ = [
    "MAX_CATEGORIES",
    "OTHER",
    "ColumnReading",
    "Preparation",
    "Problems",
    "Table",
    "note_equal",
    "prepare",
    "quoted",
    "read_raw",
    "read_table",
]

#: A text column with more values keeps that many, the most frequent; the rest is `OTHER`.
MAX_CATEGORIES = 20
OTHER = "other"

#: What stands for a missing value where it is the only text in a column of numbers, in lower case.
_WORDS = """
? - -- --- – — . .. ... * / # ! x na n.a. n.a n/a nan none null nil missing unknown unk undefined
empty blank not_available n.d. nd k.a. k.a unbekannt fehlt keine #div/0! #value! #ref! #num! #name?
#null! #n/a
"""
NULL_WORDS = frozenset([*_WORDS.split(), "not available", "not known", "keine angabe", "no data"])
_SKRUB_FOLDER = "SKB_DATA_DIRECTORY"
#: Words that Cleaner takes for missing, but which are values of many columns of text.
_VALUES_IN_TEXT = ("none", "None")

#: Rows by which the decimal sign of a file is found out.
_SEEN_ROWS = 2000
#: Fewer rows than these are numbered 1, 2, 3, ... by chance, and their texts differ by chance.
_MIN_COUNTED = 10
#: More values than these, on half of the rows, are identifiers or free text.
_MANY_NAMES = 20
#: The most frequent categories must make up so much of the rows to be worth a column.
_KEPT_SHARE = 0.1
#: Text in a column of numbers is a slip where it is so rare, or has so few values.
_RARE, _FEW = 0.05, 10
#: How often one number must occur, and how often the values of a category, to be told.
_MIN_SENTINEL = 2
_SENTINELS = (-9, -99, -999, -9999, -99999, 99, 999, 9999, 99999, 999999)

#: Numbers that names and codes are written as.
_PADDED = r"[+-]?0\d+"
#: Dates that skrub does not know, or only by their first row: years of two digits, and "May".
_SHORT_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2}|.*[^\W\d]{3}.*\d{4}")
_FORMATS = (
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d-%m-%y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%d %B %Y",
    "%d-%b-%Y",
    "%b %Y",
    "%B %Y",
)
#: A format that no text has.
_NO_DATES = "%Y-%m-%d no date"
_DIGIT = re.compile(r"\d")
_DATE_PART = re.compile(
    r"(?P<name>.*): (?P<part>year|month|weekday|hour|days since (?P<first>\d{4}-\d\d-\d\d))",
    re.DOTALL,
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: Names of identifiers: a word of its own, at the end of a word, or what programs call row numbers.
_ID_NAME = re.compile(
    r"(?i:(^|[\W_])(ids?|uuid|guid|nr|no|num(ber)?|nummer|key|index|idx|rows?|row_?names|rowid"
    r"|serial|record)$)"
    r"|[a-z](ID|Id|Nr|No|Key|UUID)$|(?i:nummer|identifier)$"
    r"|^X$|^level_\d$|(?i:^(id|index|row)[\W_]?\d*$)"
)
_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)*|\s*")


class Problems:
    """What speaks against a table, to be said at once."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._texts: list[str] = []
        self._options: list[str] = []
        self._misspelt: dict[str, str] = {}

    def add(self, text: str, *options: str, misspelt: Mapping[str, str] | None = None) -> None:
        """Add a problem, and what would mend it on the command line."""
        self._texts.append(text)
        self._options += options
        self._misspelt |= misspelt or {}

    def check(self) -> None:
        """Raise all of them as one error, if there are any."""
        if len(self._texts) == 1:
            text = f"{self.where}: {self._texts[0]}"
            raise DatasetError(text, self._options, self._misspelt)
        if self._texts:
            lines = "".join(f"\n- {text}" for text in self._texts)
            text = f"{self.where} has {len(self._texts)} faults:{lines}"
            raise DatasetError(text, self._options, self._misspelt)


@dataclass(frozen=True)
class ColumnReading:
    """How a column of a file becomes features.

    Parameters
    ----------
    name : str
        Of the column in the file.
    kind : {"number", "category", "date"}
        What its cells are.
    decimal, thousands : str
        Signs in numbers that are written as text.
    values : tuple of str, optional
        Categories that are kept; all others are ``"other"``. None keeps all.
    format : str, optional
        Of dates that are written as text.
    first : str, optional
        The day from which days are counted, as ``2024-01-31``.
    parts : tuple of str, default=()
        What is made of a date: ``"year"``, ``"month"``, ``"weekday"``, ``"hour"``, ``"days"``.
    """

    name: str
    kind: str
    decimal: str = "."
    thousands: str = ","
    values: tuple[str, ...] | None = None
    format: str | None = None
    first: str | None = None
    parts: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column becomes."""
        if self.kind != "date":
            return (self.name,)
        days = f"days since {self.first}"
        return tuple(f"{self.name}: {days if part == 'days' else part}" for part in self.parts)


@dataclass(frozen=True)
class Preparation:
    """How a table was read, so that other rows can be read in the same way.

    Parameters
    ----------
    columns : tuple of ColumnReading
        Of all columns that became features.
    na_values : tuple of str, default=()
        What was read as missing beside the usual words.
    decimal : {".", ","}, optional
        The decimal sign of a text file. Where a number of another file could be read either way
        (``1,234``), it has the same. None where it is not known.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.datasets import Preparation, read_table
    >>> table = read_table(pd.DataFrame({"paid": ["$1,250.00", "$80.50"], "on": ["cash", "card"]}))
    >>> kept = table.preparation.to_dict()
    >>> later = pd.DataFrame({"paid": ["$1,000.00"], "on": ["cash"]})
    >>> read_table(later, preparation=Preparation.from_dict(kept)).frame
       paid    on
    0  1000  cash
    """

    columns: tuple[ColumnReading, ...]
    na_values: tuple[str, ...] = ()
    decimal: str | None = None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all features that it makes."""
        return tuple(name for column in self.columns for name in column.features)

    def to_dict(self) -> dict[str, Any]:
        """Give plain lists and texts, for JSON; what is at its default is left out."""
        plain = ColumnReading("", "")
        columns = [
            {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in asdict(column).items()
                if key in ("name", "kind") or value != getattr(plain, key)
            }
            for column in self.columns
        ]
        sign = {} if self.decimal is None else {"decimal": self.decimal}
        return {"columns": columns, "na_values": list(self.na_values), **sign}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Preparation:
        """Read what `to_dict` gave."""
        try:
            columns = []
            for column in data["columns"]:
                given: dict[str, Any] = {
                    k: tuple(v) if isinstance(v, list) else v for k, v in column.items()
                }
                columns.append(ColumnReading(**given))
            return cls(tuple(columns), tuple(data.get("na_values", ())), data.get("decimal"))
        except (KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                f"The record of how a table was read is damaged: {error}. Make the rules again, "
                "or take the record away to have the table read anew."
            ) from error

    @classmethod
    def for_features(
        cls, names: Iterable[str], categories: Mapping[str, Sequence[str] | None] | None = None
    ) -> Preparation:
        """Guess from the names of features how they were read out of a table.

        Parameters
        ----------
        names : iterable of str
            The features, such as those of rules. ``"paid on: month"`` is a part of the date
            ``"paid on"``, unless a table has a column of that name.
        categories : mapping, optional
            Features that hold categories, with their values or None. Where ``"other"`` is among
            the values, it stands for all values that are not.
        """
        found: dict[str, ColumnReading] = {}
        categories = {} if categories is None else categories
        for name in names:
            part = _DATE_PART.fullmatch(name)
            if part is not None:
                source, first = part["name"], part["first"]
                old = found.get(source, ColumnReading(source, "date"))
                parts = (*old.parts, "days" if first else part["part"])
                found[source] = ColumnReading(
                    source, "date", first=first or old.first, parts=tuple(dict.fromkeys(parts))
                )
            elif name in categories:
                values = categories[name]
                closed = values is not None and OTHER in values
                kept = tuple(v for v in values or () if v != OTHER) if closed else None
                found[name] = ColumnReading(name, "category", values=kept)
            else:
                found[name] = ColumnReading(name, "number")
        return cls(tuple(found.values()))


class Table(NamedTuple):
    """A table that was read.

    Parameters
    ----------
    frame : pandas.DataFrame
        Numbers as int64 or float64 with NaN where they are missing, categories as text.
    findings : tuple of str
        What a reader should know: columns that were left out, words that were read as missing.
    preparation : Preparation
        How other rows are read in the same way.
    """

    frame: pd.DataFrame
    findings: tuple[str, ...]
    preparation: Preparation


@dataclass
class _Cells:
    """A column of text, as its different values and where they are (-1: nowhere, it is missing)."""

    texts: pd.Series
    codes: np.ndarray
    counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    @classmethod
    def of(cls, column: pd.Series, na_values: Sequence[str]) -> _Cells:
        codes, values = pd.factorize(column)
        given = pd.Series([_text(value) for value in values], dtype=object)
        places, texts = pd.factorize(given)
        blank = np.array([t == "" or t in na_values for t in texts], dtype=bool)
        renumbered = np.where(blank, -1, np.cumsum(~blank) - 1)
        whole = np.append(renumbered[places] if len(places) else [], -1).astype(np.intp)
        kept = pd.Series(list(texts), dtype=object)[~blank].reset_index(drop=True)
        return cls(kept, whole[codes])

    def taken(self, values: np.ndarray, missing: Any) -> np.ndarray:
        """Values per text as values per row."""
        return np.append(values, [missing])[self.codes]

    def rows(self, which: np.ndarray) -> int:
        """How many rows hold one of these texts."""
        return int(self.counts[which].sum())


def _text(value: Any) -> str:
    """The text of a cell; whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _decimal_sign(raw: FileTable, known: str | None, findings: list[str]) -> str | None:
    """The sign before the decimals of a text file; None for other tables.

    Where none of its numbers tells, it is the `known` one of the table that was read before.
    """
    if raw.separator is None:
        return None
    comma = point = 0
    doubtful: dict[str, str] = {}
    for name, column in raw.frame.items():
        if pd.api.types.is_numeric_dtype(column):
            continue
        seen, us, german = _signs_of(column)
        if 2 * (us | german).sum() < len(seen):
            continue
        with_comma = np.array(["," in text for text in seen], dtype=bool)
        comma += int((with_comma & german & ~us).sum())
        point += int((with_comma & us & ~german).sum())
        if (both := with_comma & us & german).any():
            doubtful[str(name)] = seen[int(both.argmax())]
    if comma == point and (doubtful or known == ","):
        floats = raw.frame.select_dtypes("float").columns
        for _, column in raw.as_written(map(str, floats)).items():
            seen, us, german = _signs_of(column)
            with_point = np.array(["." in text for text in seen], dtype=bool)
            point += int((with_point & us & ~german).sum())
    if comma != point:
        return "," if comma > point else "."
    if known is not None:
        return known
    if not doubtful or raw.separator == ",":
        return "."
    name, text = next(iter(doubtful.items()))
    findings.append(
        f"{text} in column {name!r} is read with a decimal comma, as nothing else needs the comma; "
        "where it parts thousands: --decimal=."
    )
    return ","


def _signs_of(column: pd.Series) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Different texts of a column, and which are numbers with a point, and with a comma."""
    seen = [_text(value) for value in column.dropna().head(_SEEN_ROWS).unique()]
    return seen, fits(seen, ".", ","), fits(seen, ",", ".")


def _cleaned(texts: pd.Series, date_format: str | None = None) -> tuple[pd.Series, str | None]:
    """Let skrub find missing values and dates; gives the format of the latter."""
    cleaner = _cleaner()(drop_null_fraction=None, datetime_format=date_format)
    result = cleaner.fit_transform(pd.DataFrame({"x": texts}))["x"]
    last = cleaner.all_processing_steps_["x"][-1]
    return result, getattr(last, "format_", None)


@cache
def _cleaner() -> Any:
    """The class of skrub, which takes seconds to import, and numbers need none of it."""
    try:
        from skrub import Cleaner
    except (OSError, RuntimeError):
        # It makes a folder for data sets of its own, where there may be no home, or none to write.
        before = os.environ.get(_SKRUB_FOLDER)
        os.environ[_SKRUB_FOLDER] = tempfile.gettempdir()
        try:
            from skrub import Cleaner
        finally:
            os.environ.pop(_SKRUB_FOLDER)
            if before is not None:
                os.environ[_SKRUB_FOLDER] = before
    return Cleaner


def _date_format(texts: pd.Series) -> str | None:
    """The format of texts that are dates, all of them."""
    if not len(texts) or not all(map(_DIGIT.search, texts)):
        return None
    cleaned, found = _cleaned(texts)
    if pd.api.types.is_datetime64_any_dtype(cleaned):
        return found
    if not all(_SHORT_DATE.fullmatch(text) for text in texts):
        return None
    for date_format in _FORMATS:
        if pd.to_datetime(texts, format=date_format, errors="coerce").notna().all():
            return date_format
    return None


def _is_dates(column: pd.Series) -> bool:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    return kind in ("datetime64", "datetime", "date", "period")


def _dates(column: pd.Series, cells: _Cells | None, date_format: str | None) -> pd.Series:
    """Points in time without a time zone."""
    if cells is not None:
        parsed = _parsed_dates(cells, date_format)
        values = parsed.dt.tz_localize(None).to_numpy("datetime64[us]")
        return pd.Series(cells.taken(values, np.datetime64("NaT", "us")), index=column.index)
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp()
    return pd.to_datetime(column, utc=True).dt.tz_localize(None)


def _parsed_dates(cells: _Cells, date_format: str | None) -> pd.Series:
    mixed: dict[str, Any] = {"format": date_format or "mixed"}
    return pd.to_datetime(cells.texts, errors="coerce", utc=True, **mixed)


def _parts_of(dates: pd.Series, reading: ColumnReading) -> dict[str, pd.Series]:
    """The features that a column of dates becomes."""
    first = None if reading.first is None else pd.Timestamp(reading.first)
    made: dict[str, pd.Series] = {}
    for name, part in zip(reading.features, reading.parts, strict=True):
        if part == "weekday":
            day = dates.dt.day_of_week
            names = np.array([*_WEEKDAYS, np.nan], dtype=object)
            values = names[day.fillna(len(_WEEKDAYS)).to_numpy(int)]
            made[name] = pd.Series(values, index=dates.index, dtype=object)
        elif part == "days":
            made[name] = _compact((dates.dt.normalize() - first).dt.days)
        else:
            made[name] = _compact(getattr(dates.dt, part))
    return made


def _compact(values: pd.Series) -> pd.Series:
    """Whole numbers as int64 unless one is missing."""
    if pd.api.types.is_float_dtype(values.dtype) and values.notna().all():
        whole = bool((values == np.floor(values)).all()) and bool(np.isfinite(values).all())
        return values.astype("int64" if whole and values.abs().max() < 2**53 else "float64")
    return values.astype("float64" if values.isna().any() else "int64")


def _apply(
    column: pd.Series, cells: _Cells | None, reading: ColumnReading, na_values: Sequence[str]
) -> dict[str, pd.Series]:
    """The features that a column becomes."""
    if reading.kind == "date":
        return _parts_of(_dates(column, cells, reading.format), reading)
    if reading.kind == "number":
        if cells is None:
            return {reading.name: _numbers(column, na_values)}
        values = as_numbers(cells.texts.tolist(), reading.decimal, reading.thousands)
        return {reading.name: _number_series(cells.taken(values, np.nan), column.index)}
    cells = _Cells.of(column, na_values) if cells is None else cells
    missing = _null_texts(cells.texts)
    values = np.where(missing, np.nan, cells.texts.to_numpy(object))
    if reading.values is not None:
        known = cells.texts.isin(reading.values).to_numpy()
        values = np.where(known | missing, values, OTHER)
    made = pd.Series(cells.taken(values, np.nan), index=column.index, dtype=object)
    if pd.to_numeric(made.dropna().drop_duplicates(), errors="coerce").notna().all():
        made = made.astype("category")  # names that are written as numbers have to be declared
    return {reading.name: made}


def _are_null_words(texts: pd.Series) -> np.ndarray:
    """Which texts stand for a missing value in a column of numbers or dates."""
    return np.array([text.lower() in NULL_WORDS for text in texts], dtype=bool)


def _null_texts(texts: pd.Series) -> np.ndarray:
    """Which texts stand for a missing value in a column of text."""
    if not len(texts):
        return np.zeros(0, dtype=bool)
    nulls = _cleaned(texts.astype(object), _NO_DATES)[0].isna().to_numpy()
    return nulls & ~texts.isin(_VALUES_IN_TEXT).to_numpy()


def is_read_as(text: str) -> bool:
    """Whether a cell of a column of text can be read as this text."""
    if text != text.strip() or not text:
        return False
    return text.lower() not in NULL_WORDS or not _null_texts(pd.Series([text])).any()


def _plain(column: pd.Series) -> pd.Series:
    """A column without the wrapping of pandas' categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Series(np.asarray(column), index=column.index, name=column.name)
    return column


def _cells_of(column: pd.Series) -> pd.Series:
    """The column of a feature, spans of time in days."""
    column = _plain(column)
    if pd.api.types.infer_dtype(column, skipna=True) in ("timedelta", "timedelta64"):
        column = pd.to_timedelta(column).dt.total_seconds() / 86400.0
    return column


def _number_series(values: np.ndarray, index: pd.Index) -> pd.Series:
    series = pd.Series(values, index=index, dtype="float64")
    whole = len(values) > 0 and np.isfinite(values).all() and (values == np.floor(values)).all()
    return series.astype("int64") if whole and np.abs(values).max() < 2**53 else series


def _numbers(column: pd.Series, na_values: Sequence[str]) -> pd.Series:
    """Numbers or booleans as int64 or float64."""
    marks = [float(word) for word in na_values if is_number(word)]
    if marks:
        column = column.mask(column.isin(marks))
    kind = column.dtype
    whole = pd.api.types.is_bool_dtype(kind) or pd.api.types.is_signed_integer_dtype(kind)
    small = isinstance(kind, np.dtype) and kind.kind == "u" and kind.itemsize < 8
    if (whole or small) and not column.isna().any():
        return column.astype("int64")
    return pd.Series(column.to_numpy(dtype=float, na_value=np.nan), index=column.index)


_Read: TypeAlias = tuple[ColumnReading, dict[str, pd.Series]] | None


@dataclass
class _Reader:
    """Reads the columns of a table one by one, and gathers what it finds."""

    frame: pd.DataFrame
    problems: Problems
    na_values: tuple[str, ...]
    numeric: tuple[str, ...]
    categories: tuple[str, ...]
    decimal: str | None
    comma_first: bool
    max_categories: int
    findings: list[str]
    left_out: dict[str, list[str]] = field(default_factory=dict)

    def read(self, name: str, *, chosen: bool) -> _Read:
        """Find out what a column is; None if it is left out."""
        column = _cells_of(self.frame[name])
        forced = name in self.numeric or name in self.categories
        if name in self.categories:
            return self._category(name, column, _Cells.of(column, self.na_values), True)
        if _is_dates(column):
            return self._date(name, column, None, None)
        if pd.api.types.is_numeric_dtype(column.dtype):
            return self._number(name, column, chosen or forced)
        cells = _Cells.of(column, self.na_values)
        if not len(cells.texts):
            return self._number(name, pd.Series(np.nan, index=column.index), chosen or forced)
        texts = cells.texts.tolist()
        style = style_of(texts, self.decimal, comma_first=self.comma_first)
        values = as_numbers(texts, *style)
        known = ~np.isnan(values)
        if name in self.numeric or self._is_numeric(name, cells, known):
            _note_words(name, cells, ~known, self.findings)
            self._note_units(name, cells.texts[known].tolist())
            made = _number_series(cells.taken(values, np.nan), column.index)
            return ColumnReading(name, "number", *style), {name: made}
        words = _are_null_words(cells.texts)
        date_format = _date_format(cells.texts[~words])
        if date_format is not None:
            _note_words(name, cells, words, self.findings)
            return self._date(name, column, cells, date_format)
        return self._category(name, column, cells, chosen)

    def _is_numeric(self, name: str, cells: _Cells, known: np.ndarray) -> bool:
        """Whether a column of text is meant to hold numbers."""
        stray = ~(known | _are_null_words(cells.texts))
        n_numbers, n_stray = cells.rows(known), cells.rows(stray)
        if not n_numbers or not n_stray:
            return n_numbers > 0
        n_rows = n_numbers + n_stray
        few = len(cells.texts) <= _FEW and n_rows >= 3 * len(cells.texts)
        names = few and n_stray > _RARE * n_rows
        only_truth = cells.texts[known].str.lower().isin(("true", "false")).all()
        if only_truth or names or n_numbers < n_stray:
            return False
        if stray.sum() > _FEW and n_stray > _RARE * n_rows:
            return False
        words = cells.texts[stray].tolist()
        first = int(np.isin(cells.codes, np.flatnonzero(stray)).argmax())
        row = self.frame.index[first] + 1
        shown = cells.texts[cells.codes[first]]
        options = (
            [f"--na-values={word}" for word in words] if len(words) <= _FEW else ["--numeric", name]
        )
        self.problems.add(
            f"column {name!r} should be numbers but has text in {n_stray} of {n_rows} rows, first "
            f"{shown!r} in data row {row} (data rows are counted from 1, without the header). "
            f"Correct the file, read the text as missing with na_values={words[:_FEW]!r} (on the "
            f"command line: --na-values) or the column as names with categories=({name!r},) (on "
            f"the command line: --category {quoted(name)}), or leave it out with drop=({name!r},) "
            f"(on the command line: --drop {quoted(name)}).",
            *options,
        )
        return True

    def _note_units(self, name: str, texts: Sequence[str]) -> None:
        units, bare = units_of(texts)
        if len(units) > 1 or (units == ["%"] and bare):
            shown = ", ".join(units) + (" and without" if bare else "")
            self.findings.append(
                f"column {name!r} holds numbers in several units, read as they stand: {shown}"
            )

    def _number(self, name: str, column: pd.Series, keep: bool) -> _Read:
        values = _numbers(column, self.na_values)
        reading = ColumnReading(name, "number", *_USUAL["," if self.comma_first else "."])
        if not keep:
            if values.isna().all():
                return self.leave(name, "without any value")
            if _UNNAMED.fullmatch(name) and (_all_different(values) or _counts_rows(values)):
                return self.leave(name, "row numbers")
            if _is_identifier(name, values):
                return self.leave(name, "identifiers")
        self._note_sentinel(name, values)
        return reading, {name: values}

    def _note_sentinel(self, name: str, values: pd.Series) -> None:
        """Note a number far from all others that usually stands for a missing value."""
        known = values.to_numpy(float)
        known = known[np.isfinite(known)]
        for mark in _SENTINELS:
            count = int((known == mark).sum())
            others = known[known != mark]
            if count < _MIN_SENTINEL or not len(others):
                continue
            far = (
                others.min() > mark and others.min() >= 0
                if mark < 0
                else (
                    others.max() < mark and mark > 2 * others.max() and len(np.unique(others)) > 2
                )
            )
            if far:
                self.findings.append(
                    f"{mark} in column {name!r} ({count} rows) may stand for a missing value; to "
                    f"read it so: --na-values={mark}"
                )

    def _category(self, name: str, column: pd.Series, cells: _Cells, keep: bool) -> _Read:
        null = _null_texts(cells.texts)
        counts = pd.Series(cells.counts[~null], index=cells.texts[~null])
        n_rows, n_values = int(counts.sum()), len(counts)
        if not keep:
            if not n_values:
                return self.leave(name, "without any value")
            unique = n_values == n_rows >= _MIN_COUNTED
            if unique or (n_values > _MANY_NAMES and n_values > n_rows / 2):
                return self.leave(name, "identifiers")
        kept = None
        if n_values > self.max_categories:
            order = sorted(counts.index, key=lambda value: (-counts[value], value))
            kept = tuple(order[: self.max_categories])
            share = counts[list(kept)].sum() / n_rows
            if share < _KEPT_SHARE and not keep:
                return self.leave(name, "categories that hardly ever repeat")
            self.findings.append(
                f"column {name!r} has {n_values} categories; the {self.max_categories} most "
                f"frequent are kept ({share:.0%} of the rows), the others read as {OTHER!r}"
            )
        reading = ColumnReading(name, "category", values=kept)
        return reading, _apply(column, cells, reading, self.na_values)

    def _date(
        self, name: str, column: pd.Series, cells: _Cells | None, date_format: str | None
    ) -> _Read:
        dates = _dates(column, cells, date_format)
        first = dates.min()
        if pd.isna(first):
            return self.leave(name, "without any value")
        parts = [part for part in ("year", "month") if getattr(dates.dt, part).nunique() > 1]
        if (dates.dt.normalize() != dates)[dates.notna()].any() and dates.dt.hour.nunique() > 1:
            parts.append("hour")
        # Where only years or months are told, their first days say no more.
        yearly = bool((dates.dropna().dt.day_of_year == 1).all())
        monthly = bool((dates.dropna().dt.day == 1).all())
        if dates.dt.day_of_week.nunique() > 1 and not monthly:
            parts.append("weekday")
        if dates.dt.normalize().nunique() > 1 and not yearly:
            parts.append("days")
        reading = ColumnReading(
            name, "date", format=date_format, first=f"{first:%Y-%m-%d}", parts=tuple(parts)
        )
        shown = f" (written as {date_format})" if date_format else ""
        if not parts:
            return self.leave(name, "one point in time only")
        self.findings.append(
            f"column {name!r} holds dates{shown}, read as {listed(reading.features)}"
        )
        return reading, _parts_of(dates, reading)

    def leave(self, name: str, reason: str) -> _Read:
        """Leave a column out."""
        self.left_out.setdefault(reason, []).append(name)
        return None

    def take_back(self) -> list[str]:
        """Read nothing as identifiers where nothing else would be left."""
        back = [name for names in self.left_out.values() for name in names]
        self.left_out.clear()
        return back

    def note_left_out(self) -> None:
        """Say in one sentence which columns are left out."""
        if self.left_out:
            told = "; ".join(f"{listed(names)} ({why})" for why, names in self.left_out.items())
            self.findings.append(
                f"left out: {told}; to keep one: --category NAME or --numeric NAME"
            )


def _note_words(name: str, cells: _Cells, words: np.ndarray, findings: list[str]) -> None:
    """Note which words of a column are read as missing."""
    count = cells.rows(words)
    if count:
        findings.append(
            f"{listed(cells.texts[words].tolist(), 5)} in column {name!r} is read as missing "
            f"({count} {'row' if count == 1 else 'rows'})"
        )


def _all_different(values: pd.Series) -> bool:
    known = values.dropna()
    return len(known) > 0 and known.is_unique


def _is_whole(values: pd.Series) -> bool:
    known = values.dropna()
    return bool(np.isfinite(known).all()) and bool((known == np.floor(known)).all())


def _is_identifier(name: str, values: pd.Series) -> bool:
    """Whether whole numbers under a name such as "id" hardly ever repeat."""
    known = values.dropna()
    if len(known) < _MIN_COUNTED or not _ID_NAME.search(name) or not _is_whole(known):
        return False
    n_values = known.nunique()
    return n_values == len(known) or (n_values > _MANY_NAMES and n_values > len(known) / 2)


def _counts_rows(values: pd.Series) -> bool:
    """Whether integers are 1, 2, 3, ..., in any order and from any start."""
    numbers = values.to_numpy()
    if numbers.dtype.kind != "i" or len(numbers) < _MIN_COUNTED:
        return False
    return bool(numbers.max() - numbers.min() == len(numbers) - 1) and values.is_unique


def note_equal(frame: pd.DataFrame) -> list[str]:
    """Findings about columns that say the same as another, or the same in every row."""
    findings: list[str] = []
    constant = [str(n) for n, c in frame.items() if c.nunique(dropna=False) == 1]
    if constant:
        word = "column" if len(constant) == 1 else "columns"
        findings.append(
            f"{len(constant)} {word} with a single value, of no use: {listed(constant)}"
        )
    seen: dict[bytes, str] = {}
    coded: dict[bytes, str] = {}
    for name, column in frame.items():
        name = str(name)
        if name in constant:
            continue
        twin = name
        codes, values = pd.factorize(column)
        if column.dtype.kind in "if":
            twin = seen.setdefault((column.to_numpy(float) + 0.0).tobytes(), name)
        if column.dtype == object or len(values) <= _MANY_NAMES:
            same = coded.setdefault(codes.tobytes(), name)
            # Two columns of numbers may order the rows differently.
            if twin == name and object in (column.dtype, frame[same].dtype):
                twin = same
        if twin != name:
            findings.append(
                f"columns {twin!r} and {name!r} are equal, and rules may use either; to leave one "
                f"out: --drop {quoted(name)}"
            )
        if column.dtype.kind == "i" and _counts_rows(column):
            findings.append(
                f"column {name!r} looks like row numbers, on which rules mean nothing for other "
                f"rows; to leave it out: --drop {quoted(name)}"
            )
    return findings


def quoted(name: str) -> str:
    """A name as the command line takes it in its lists."""
    return shlex.quote(f'"{name}"' if "," in name else name)


def prepare(
    raw: FileTable,
    where: str,
    *,
    target: str | None = None,
    decimal: str | None = None,
    na_values: tuple[str, ...] = (),
    numeric: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    features: tuple[str, ...] | None = None,
    sample: int | None = None,
    random_state: int = 0,
    max_categories: int = MAX_CATEGORIES,
    preparation: Preparation | None = None,
    problems: Problems | None = None,
) -> Table:
    """Read a table of raw cells; see `read_table`.

    The index of the result counts the rows of the file. Where `problems` are given, they are
    gathered there rather than raised.
    """
    own = Problems(where) if problems is None else problems
    findings = list(raw.findings)
    known = None if preparation is None else preparation.decimal
    sign = decimal or _decimal_sign(raw, known, findings)
    comma = sign == ","
    if comma:
        raw = raw.with_decimal_comma()
    named = set(categories)
    if preparation is not None:
        named |= {each.name for each in preparation.columns if each.kind == "category"}
    named -= set(numeric)
    frame = raw.frame.assign(**_named(raw, named, target, findings)).rename(columns=str)
    if sample is not None and sample < len(frame):
        findings.append(f"a sample of {sample} of {len(frame)} rows is read, drawn at random")
        frame = frame.sample(sample, random_state=random_state).sort_index()
    columns = [str(name) for name in frame.columns]
    out: dict[str, pd.Series] = {}
    reader = _Reader(
        frame, own, na_values, numeric, categories, decimal, comma, max_categories, findings
    )
    readings: list[ColumnReading] = []
    if preparation is not None:
        marks = (*preparation.na_values, *na_values)
        for reading in _as_there(preparation, columns):
            for kind, names in (("category", categories), ("number", numeric)):
                if reading.name in names and reading.kind != kind:
                    reading = ColumnReading(reading.name, kind)
            if features is None or {*reading.features} & {*features}:
                other = sign if sign != known else None
                out |= _again(_cells_of(frame[reading.name]), reading, marks, other, findings)
    else:
        wanted = columns if features is None else _sources(features, columns)
        wanted = [name for name in wanted if name != target and name not in drop]
        for name in wanted:
            if features is None and _is_copy(frame, name):
                reader.leave(name, "copies under the same name")
                continue
            found = reader.read(name, chosen=features is not None)
            if found is not None:
                readings.append(found[0])
                out |= found[1]
        if not out and wanted:
            for name in reader.take_back():
                found = reader.read(name, chosen=True)
                if found is not None:
                    readings.append(found[0])
                    out |= found[1]
        reader.note_left_out()
    if target is not None and target in columns:
        out[target] = _target(_plain(frame[target]), reader)
    if problems is None:
        own.check()
    prepared = preparation
    if prepared is None:
        prepared = Preparation(tuple(readings), na_values, sign)
    return Table(pd.DataFrame(out, index=frame.index), tuple(findings), prepared)


def _named(
    raw: FileTable, names: set[str], target: str | None, findings: list[str]
) -> dict[str, pd.Series]:
    """Columns of numbers that are names, as they are written: 01 and 1 differ."""
    if raw.texts is None:  # the numbers were never text
        return {}
    whole = [str(n) for n, c in raw.frame.items() if raw.may_pad and _may_be_padded(c)]
    written = raw.as_written({*names, *whole})
    made = {}
    for name in map(str, written.columns):
        padded = written[name].str.fullmatch(_PADDED).fillna(False)
        if name in names:
            made[name] = written[name]
        elif name == target:
            texts, values = written[name].nunique(), raw.frame[name].nunique()
            if padded.any() and (texts > values or values <= MAX_CATEGORIES):
                made[name] = written[name]
        elif padded.any():
            first = written[name][padded].iloc[0]
            findings.append(
                f"column {name!r} holds numbers with leading zeros, first {first!r}, which are "
                f"read without them; if they are names: --category {quoted(name)}"
            )
    return made


def _may_be_padded(column: pd.Series) -> bool:
    """Whether numbers may have been written with leading zeros: they are whole."""
    if pd.api.types.is_integer_dtype(column.dtype):
        return True
    is_float = pd.api.types.is_float_dtype(column.dtype)
    return is_float and bool(column.isna().any()) and _is_whole(column)


def _is_copy(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column repeats another one that the header calls the same."""
    first = re.sub(r"\.\d+$", "", name)
    return first != name and first in frame.columns and frame[name].equals(frame[first])


def _as_there(preparation: Preparation, columns: Sequence[str]) -> Iterator[ColumnReading]:
    """The readings of columns that a table has; parts of dates may be columns of their own."""
    for reading in preparation.columns:
        if reading.name in columns:
            yield reading
        elif reading.kind == "date":
            for name, part in zip(reading.features, reading.parts, strict=True):
                if name in columns:
                    yield ColumnReading(name, "category" if part == "weekday" else "number")


#: Signs before decimals and between thousands, by the former.
_USUAL = {".": (".", ","), ",": (",", ".")}


def _again(
    column: pd.Series,
    reading: ColumnReading,
    na_values: Sequence[str],
    sign: str | None,
    findings: list[str],
) -> dict[str, pd.Series]:
    """Read the cells of a column as those of another table were, but for another decimal sign."""
    cells = None
    if not (pd.api.types.is_numeric_dtype(column.dtype) or _is_dates(column)):
        cells = _Cells.of(column, na_values)
    if reading.kind == "number" and cells is not None and len(cells.texts):
        style = _USUAL[sign] if sign else (reading.decimal, reading.thousands)
        texts = cells.texts.tolist()
        other = style_of(texts)
        lost = {each: np.isnan(as_numbers(texts, *each)) for each in (style, other)}
        style = other if lost[other].sum() < lost[style].sum() else style
        reading = ColumnReading(reading.name, "number", *style)
        _note_words(reading.name, cells, lost[style], findings)
    if reading.kind == "date" and not _is_dates(column):
        cells = _Cells.of(column, na_values)
        if reading.format is None:
            dates = cells.texts[~_are_null_words(cells.texts)]
            reading = replace(reading, format=_date_format(dates))
        known = _parsed_dates(cells, reading.format).notna().to_numpy()
        _note_words(reading.name, cells, ~known, findings)
    return _apply(column, cells, reading, na_values)


def _sources(features: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns that features come from: themselves, or the date that they are a part of."""
    sources = []
    for name in features:
        part = None if name in columns else _DATE_PART.fullmatch(name)
        source = name if part is None else part["name"]
        if source in columns:
            sources.append(source)
    return list(dict.fromkeys(sources))


def _target(column: pd.Series, reader: _Reader) -> pd.Series:
    """The column to be predicted: numbers where all its text is numbers, else as it is."""
    if pd.api.types.is_numeric_dtype(column.dtype) or _is_dates(column):
        marks = [float(word) for word in reader.na_values if is_number(word)]
        return column.mask(column.isin(marks)) if marks else column
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "boolean" or kind.startswith("timedelta"):
        return column
    cells = _Cells.of(column, reader.na_values)
    if not len(cells.texts):
        return column.astype(object).mask(column.notna())
    texts = cells.texts.tolist()
    values = as_numbers(texts, *style_of(texts, reader.decimal, comma_first=reader.comma_first))
    known = ~np.isnan(values)
    only_words = (known | _are_null_words(cells.texts)).all()
    truth = cells.texts.str.lower().isin(("true", "false")).any()
    written = pd.to_numeric(cells.texts, errors="coerce").notna().all()
    if known.any() and only_words and not truth and not written:
        _note_words(str(column.name), cells, ~known, reader.findings)
        return _number_series(cells.taken(values, np.nan), column.index)
    unknown = (cells.texts == "?").to_numpy()
    _note_words(str(column.name), cells, unknown, reader.findings)
    labels = np.where(unknown, np.nan, cells.texts.to_numpy(object))
    return pd.Series(cells.taken(labels, np.nan), index=column.index, dtype=object)


def read_raw(
    data: str | os.PathLike[str] | pd.DataFrame, *, sep: str | None, encoding: str | None
) -> tuple[FileTable, str]:
    """Read a file, or take a data frame; gives what names it in errors."""
    if isinstance(data, pd.DataFrame):
        table = data.reset_index(drop=True).rename(columns=str)
        check_unique(list(table.columns), "the data frame")
        return FileTable(table, ""), "the data frame"
    if isinstance(data, str | os.PathLike):
        where = os.fspath(data)
        return read_file(at_home(data), where, separator=sep, encoding=encoding), where
    raise TypeError(f"data must be a path or a data frame, got {type(data).__name__}.")


def read_table(
    data: str | os.PathLike[str] | pd.DataFrame,
    *,
    target: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    na_values: str | Sequence[str] = (),
    numeric: str | Sequence[str] = (),
    categories: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    features: str | Sequence[str] | None = None,
    sample: int | None = None,
    random_state: int = 0,
    max_categories: int = MAX_CATEGORIES,
    preparation: Preparation | None = None,
) -> Table:
    """Read a table as its owner meant it.

    Use it where a file was made for people: with decimal commas, currencies, words for missing
    values, dates, identifiers. `load_dataset` reads by it, and checks the target as well.

    Parameters
    ----------
    data : str, path-like or pandas.DataFrame
        A data frame, or a path ending in .csv, .tsv, .tab, .txt (each also with .gz), .xlsx,
        .parquet or .pq.
    target : str, optional
        A column that is to be predicted: never left out or grouped, and without a part in
        `preparation`.
    sep : str, optional
        Separator of the columns of a text file: one character, ``"tab"`` or ``"space"``. By default
        comma, semicolon, tab, vertical bar and blanks are told apart by header and first rows.
    decimal : {".", ","}, optional
        The decimal sign. By default it is found out from the numbers.
    encoding : str, optional
        Of a text file. By default UTF-8, UTF-16 with its mark, or Windows-1252 are told apart.
    na_values : str or sequence of str, default=()
        What else stands for a missing value, in all columns, such as ``"-999"``.
    numeric, categories, drop : str or sequence of str, default=()
        Columns to be read as numbers (other text in them is missing), to be read as categories,
        and to be left out. Columns named in the first two are never left out.
    features : str, sequence of str or None, default=None
        Columns, or parts of dates such as ``"paid on: month"``, to be read; by default all.
    sample : int, optional
        Read so many rows only, drawn at random.
    random_state : int, default=0
        For `sample`.
    max_categories : int, default=20
        A column with more keeps the most frequent ones; the others become ``"other"``.
    preparation : Preparation, optional
        How another table was read: its columns are read in the same way, and only they.

    Returns
    -------
    Table
        The frame, the findings and the preparation.

    Raises
    ------
    DatasetError
        The file cannot be read as a table, or a column of numbers has text in it.

    Notes
    -----
    Numbers may have a currency, a percent sign or thousands (``$1,234.50``, ``1.234,50 €``).
    Words such as ``?`` and ``unknown`` are missing where they are the only text of a column of
    numbers. Booleans become 0 and 1. Dates become year, month, weekday, hour and days since the
    first, as far as they differ. All other text is a category. Row numbers, identifiers and text
    that hardly ever repeats are left out. Missing text, and dates, are found by
    ``skrub.Cleaner``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.datasets import read_table
    >>> table = read_table(pd.DataFrame({
    ...     "paid on": ["31.01.2024", "02.02.2024", "03.02.2024"],
    ...     "price": ["1.234,50 €", "?", "80,00 €"],
    ... }))
    >>> table.frame["price"].tolist()
    [1234.5, nan, 80.0]
    >>> list(table.frame)
    ['paid on: month', 'paid on: weekday', 'paid on: days since 2024-01-31', 'price']
    >>> table.findings[1]
    "'?' in column 'price' is read as missing (1 row)"
    """
    if decimal not in (None, ".", ","):
        raise DatasetError(f"decimal must be '.' or ',', got {decimal!r} (--decimal).")
    raw, where = read_raw(data, sep=sep, encoding=encoding)
    named = {
        "numeric": _tuple(numeric),
        "categories": _tuple(categories),
        "drop": _tuple(drop),
        "features": () if features is None else _tuple(features),
    }
    columns = [str(name) for name in raw.frame.columns]
    for parameter, names in named.items():
        unknown = [n for n in names if n not in columns and not _sources([n], columns)]
        if unknown:
            raise DatasetError(
                f"{where}: {parameter} must be among the columns, got {listed(unknown)}. The "
                f"columns are {listed(columns)}."
            )
    table = prepare(
        raw,
        where,
        target=target,
        decimal=decimal,
        na_values=_tuple(na_values),
        numeric=named["numeric"],
        categories=named["categories"],
        drop=named["drop"],
        features=None if features is None else named["features"],
        sample=sample,
        random_state=random_state,
        max_categories=max_categories,
        preparation=preparation,
    )
    frame = table.frame.reset_index(drop=True)
    inputs = frame.drop(columns=[] if target is None else [target])
    more = note_equal(inputs) if preparation is None else ()
    return table._replace(frame=frame, findings=(*table.findings, *more))


def _tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(map(str, names))


# --- numbers as people write them -----------------------------------------------------------------

_CURRENCY = (
    r"US\$|R\$|A\$|C\$|[$€£¥₹₽₩₺₪฿]|kr\.?|zł|Fr\.|"
    r"(?:USD|EUR|GBP|CHF|JPY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|CNY|BRL)\b"
)
_UNIT = re.compile(rf"%|{_CURRENCY}")
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_TRUTH = {"true": 1.0, "false": 0.0}
#: A decimal sign, and the one between thousands; of two that fit equally well, the first.
_STYLES = ((".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
#: Texts by which the style is chosen.
_SEEN = 1000
#: Signs for which there are several.
_SIGNS = str.maketrans("\u2212\u2019\u00a0\u202f\u2009", "-'   ")


@cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """A line that is a number in this style, in groups; or any line, and empty groups."""
    d, t = re.escape(decimal), re.escape(thousands)
    core = rf"[1-9]\d{{0,2}}(?:{t}\d{{3}})+(?:{d}\d*)?|(?:\d+(?:{d}\d*)?|{d}\d+){_EXPONENT}"
    return re.compile(
        rf"^(?:(\()?[ ]*([+-])?[ ]*(?:{_CURRENCY})?[ ]*([+-])?[ ]*({core})[ ]*"
        rf"(?:%|{_CURRENCY})?[ ]*\)?$|.*$)",
        re.MULTILINE,
    )


def _lines(texts: Sequence[str]) -> str:
    """All texts in one, a line each: one search in it is faster than many in each."""
    return "\n".join(re.sub(r"[\r\n]", "\0", t) if "\n" in t else t for t in texts).translate(
        _SIGNS
    )


def fits(texts: Sequence[str], decimal: str, thousands: str) -> np.ndarray:
    """Whether each text is a number in this style."""
    found = _pattern(decimal, thousands).findall(_lines(texts))
    return np.array([row[3] != "" for row in found[: len(texts)]], dtype=bool)


def style_of(
    texts: Sequence[str], decimal: str | None = None, *, comma_first: bool = False
) -> tuple[str, str]:
    """Return the signs before decimals and between thousands that fit most of the texts."""
    seen = texts[:: len(texts) // _SEEN + 1]
    styles = [style for style in _STYLES if decimal in (None, style[0])]
    if comma_first:
        styles.sort(key=lambda style: style[0] != ",")
    return max(styles, key=lambda style: int(fits(seen, *style).sum()))


def as_numbers(texts: Sequence[str], decimal: str = ".", thousands: str = ",") -> np.ndarray:
    """Read numbers, and booleans as 0 and 1; NaN for all other text."""
    result = np.full(len(texts), np.nan)
    if decimal == ".":
        result = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(
            float, copy=True
        )
    left = np.flatnonzero(np.isnan(result))
    if not len(left):
        return result
    rest = [texts[int(i)] for i in left]
    found = _pattern(decimal, thousands).findall(_lines(rest))[: len(rest)]
    cores = "\n".join(row[3] for row in found).replace(thousands, "").replace(decimal, ".")
    values = pd.to_numeric(pd.Series(cores.split("\n"), dtype=object), errors="coerce")
    negative = np.array([row[0] != "" or "-" in row[1:3] for row in found], dtype=bool)
    result[left] = np.where(negative, -1.0, 1.0) * values.to_numpy(float)
    for i, text in zip(left, rest, strict=True):
        if len(text) < 6 and np.isnan(result[i]):
            result[i] = _TRUTH.get(text.lower(), np.nan)
    return result


def units_of(texts: Sequence[str]) -> tuple[list[str], bool]:
    """Return currencies and percent signs among numbers, and whether some have none."""
    found = _UNIT.findall("\n".join(texts))
    return sorted(set(found)), len(found) < len(texts)


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
