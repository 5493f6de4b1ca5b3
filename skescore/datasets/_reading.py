"""Reading of tables: the types of columns, missing values, dates and numbers written as text.

A column of a file becomes numbers, categories or the parts of a date. A `Preparation` records how,
so that other rows can be read in the same way.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import tempfile
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from skescore._column_names import is_code_name, is_identifier_name, is_time_name
from skescore._io import expand_home
from skescore._text import listed, nearest_names, percentage, plural
from skescore.datasets._files import (
    NULL_CELLS,
    Conversion,
    DatasetError,
    FileTable,
    LayoutOptions,
    check_unique,
    read_file,
)
from skescore.datasets._numbers import (
    EITHER_SIGN,
    QUALIFIER,
    as_numbers,
    fits,
    is_number,
    style_of,
    units_of,
)
from skescore.datasets._units import main_unit, plain_divisor, split_units, unit_factor

__all__ = [
    "MAX_CATEGORIES",
    "OTHER",
    "ColumnReading",
    "Preparation",
    "Problems",
    "ReadingOptions",
    "Table",
    "note_equal",
    "prepare",
    "quoted",
    "read_raw",
    "read_table",
]

#: Maximum number of values of a text column; all but the most frequent ones become `OTHER`.
MAX_CATEGORIES = 20
OTHER = "other"

#: Lower-case texts that mean a missing value in a column whose other cells are numbers.
_WORDS = """
? - -- --- – — . .. ... * / # ! x na n.a. n.a n/a nan none null nil missing unknown unk undefined
empty blank not_available n.d. nd k.a. k.a unbekannt fehlt keine #div/0! #value! #ref! #num! #name?
#null! #n/a
"""
NULL_WORDS = frozenset([*_WORDS.split(), "not available", "not known", "keine angabe", "no data"])
_SKRUB_FOLDER = "SKB_DATA_DIRECTORY"
#: Texts that mean a missing value in a column of text, as in pandas and skrub. "none" is not among
#: them, because it is a category of many columns.
_NULLS = """
null NULL NA N/A n/a #NA #N/A <NA> nan NaN -nan -NaN ? ... 1.#IND -1.#IND 1.#QNAN -1.#QNAN
"""
_NULL_TEXTS = frozenset([*_NULLS.split(), "#N/A N/A", ""])

#: Maximum number of rows that are used to detect the decimal sign of a file.
_SIGN_ROWS = 2000
#: Columns with fewer rows may contain 1, 2, 3, ... or unique texts by chance.
_MIN_ROWS_OF_UNIQUE = 10
#: Text columns with more values, and more than half as many as rows, are identifiers or free text.
_MAX_REPEATED_VALUES = 20
#: Minimum number of codes in a column, and minimum mean number of rows per code.
_MIN_CODES, _MIN_ROWS_OF_CODE = 3, 2
#: Maximum mean number of rows per value of an identifier that occurs in several rows.
_MAX_ROWS_OF_IDENTIFIER = 20
#: Surrounding blanks in a larger share of the cells are the style of the file and not reported.
_MAX_PADDED_SHARE = 0.9
#: Minimum share of the rows that the most frequent categories must cover.
_MIN_CATEGORY_SHARE = 0.1
#: Maximum share of rows with stray text in a column of numbers, and maximum number of such texts.
_STRAY_SHARE, _STRAY_VALUES = 0.05, 10
#: Minimum number of different texts with units for a target to be numeric instead of classes.
_MIN_QUANTITIES = 20
#: Minimum number of rows with a sentinel for it to be reported.
_MIN_SENTINEL = 2
_SENTINELS = (-9, -99, -999, -9999, -99999, 99, 999, 9999, 99999, 999999)
#: Codes of missing values in columns whose other values are 0 and 1, or 1 and 2.
_SENTINELS_OF_TWO = (9, 99, 999)

#: Numbers with leading zeros, as in names and codes.
_PADDED = r"[+-]?0\d+"
#: Dates whose order of day and month is unambiguous.
_YEAR_FIRST = re.compile(r"\s*\d{4}\D")
#: Parts of every date: a long number, or a number next to another one or to a word.
_LIKE_DATE = re.compile(r"\d{4}|\d\D+\d|\d.*[^\W\d]{3}|[^\W\d]{3}.*\d")
#: Unambiguous dates, and their formats.
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?")
_ISO_FORMATS = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S")
#: Dates that skrub cannot parse, or only in some rows: two-digit years, and names of months.
_SHORT_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2}|\d{1,2}-[^\W\d]{3}-\d{2}|.*[^\W\d]{3}.*\d{4}( [\d:]{4,8})?"
)
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
    "%d-%b-%y",
    "%d. %b %Y",
    "%d. %B %Y",
    "%b %d %Y",
    "%B %d %Y",
    "%d %b %Y %H:%M",
    "%d %b %Y %H:%M:%S",
    "%b %Y",
    "%B %Y",
)
#: German, French, Spanish, Italian, Dutch and Portuguese names of months with abbreviations; pandas
#: reads only English names.
_MONTH_NAMES = {
    "January": "januar jänner janvier enero gennaio januari janeiro janv ene gen",
    "February": "februar février fevrier febrero febbraio februari fevereiro févr fevr fev",
    "March": "märz maerz mars marzo maart março mär mrz mrt",
    "April": "avril abril aprile avr abr",
    "May": "mai mayo maggio mei maio mag",
    "June": "juni juin junio giugno junho giu",
    "July": "juli juillet julio luglio julho juil lug",
    "August": "août aout agosto augustus ago",
    "September": "septembre septiembre settembre setembro sept set",
    "October": "oktober octobre octubre ottobre outubro okt ott",
    "November": "novembre noviembre novembro",
    "December": "dezember décembre diciembre dicembre dezembro dez déc dic",
}
_ENGLISH_MONTHS = {name: month for month, names in _MONTH_NAMES.items() for name in names.split()}
#: Names in `_ENGLISH_MONTHS`, and abbreviations with three letters and a full stop.
_MONTH_WORD = re.compile(
    rf"\b(?:({'|'.join(_ENGLISH_MONTHS)})\b\.?|(jan|feb|apr|jun|jul|aug|sep|oct|nov|dec)\.)",
    re.IGNORECASE,
)
_ENGLISH_MONTHS |= {month[:3].lower(): month for month in _MONTH_NAMES}
#: Names of weekdays and their abbreviations, before or after a date. "mar" is March, not Tuesday.
_WEEKDAY_WORDS = """
    monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat
    sun montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag mo di mi do fr sa so
    lundi mardi mercredi jeudi vendredi samedi dimanche lun mer jeu ven sam dim lunes martes
    miércoles miercoles jueves viernes sábado sabado domingo mié mie jue vie sáb sab dom lunedì
    martedì mercoledì giovedì venerdì sabato domenica gio maandag dinsdag woensdag donderdag vrijdag
    zaterdag zondag segunda-feira terça-feira quarta-feira quinta-feira sexta-feira
"""
_WEEKDAY = re.compile(
    rf"^\s*(?:{'|'.join(_WEEKDAY_WORDS.split())})\b[.,]*\s+(?=[^\W_]+\b.*\d)"
    rf"|(?<=\d),?\s+\(?(?:{'|'.join(_WEEKDAY_WORDS.split())})\b\.?\)?\s*$",
    re.IGNORECASE,
)
#: Dates with full stops begin with the day in all languages.
_DAY_FIRST, _MONTH_FIRST = "%d.%m.%Y", "%m.%d.%Y"
#: Swaps day and month in a date format; no other letter of a format is d or m.
_SWAPPED_DAY = str.maketrans("dm", "md")
_DAY_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")
#: Date formats that may occur together in a column; ties between formats go to the first.
_MIXED_FORMATS = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%Y%m%d",
    "%d.%m.%y",
    *(f"{day} {time}" for day in _DAY_FORMATS for time in ("%H:%M", "%H:%M:%S")),
    *_FORMATS,
)
#: Later two-digit years belong to the previous century; 63 is more often 1963 than 2063.
_LAST_SHORT_YEAR = 2040
#: Separator of the formats of a column, and their maximum number.
_FORMAT_SIGN, _MAX_FORMATS = " | ", 4
#: Minimum number of texts for detecting several formats, and the pattern that all must match.
_MIN_MIXED = 5
_MIXED_DATE = re.compile(
    r"(\d{4}[-/]?\d{2}[-/]?\d{2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})( \d{1,2}:\d{2}(:\d{2})?)?"
    r"|\d{1,2}-[^\W\d]{3}-\d{2}|.*[^\W\d]{3}.*\d{4}"
)
_INEXACT = re.compile(QUALIFIER)
_DATE_PART = re.compile(
    r"(?P<name>.*): (?P<part>year|month|weekday|hour|days since (?P<first>\d{4}-\d\d-\d\d))",
    re.DOTALL,
)
#: Dates that order the rows must span more than this for the month to become a feature.
_TWO_YEARS = pd.Timedelta(days=730)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: Names of identifiers: a separate word, the end of a word, or a usual name of row numbers.
_ID_NAME = re.compile(
    r"(?i:(^|[\W_])(ids?|uuid|guid|nr|no|num(ber)?|nummer|key|index|idx|rows?|row_?names|rowid"
    r"|serial|record)$)"
    r"|[a-z](ID|Id|Nr|No|Key|UUID)$|(?i:nummer|identifier)$"
    r"|^X$|^level_\d$|(?i:^(id|index|row)[\W_]?\d*$)"
)
_UNNAMED = re.compile(r"Unnamed: \d+(\.\d+)*|\s*")


class Problems:
    """Problems of a table, which are reported together."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._texts: list[str] = []
        self._options: list[str] = []
        self._misspelled: dict[str, str] = {}

    def add(self, text: str, *options: str, misspelled: Mapping[str, str] | None = None) -> None:
        """Add a problem, with the command-line options that solve it."""
        self._texts.append(text)
        self._options += options
        self._misspelled |= misspelled or {}

    def check(self) -> None:
        """Raise all problems as one error, if there are any."""
        if len(self._texts) == 1:
            text = f"{self.where}: {self._texts[0]}"
            raise DatasetError(text, self._options, self._misspelled)
        if self._texts:
            lines = "".join(f"\n- {text}" for text in self._texts)
            text = f"{self.where} has {len(self._texts)} faults:{lines}"
            raise DatasetError(text, self._options, self._misspelled)


@dataclass(frozen=True)
class ColumnReading:
    """How a column of a file is converted to features.

    Parameters
    ----------
    name : str
        Name of the column in the file.
    kind : {"number", "category", "date"}
        Type of its cells.
    decimal, thousands : str, default=".", ","
        Decimal sign and thousands separator of numbers written as text. ``".,"`` reads both points
        and commas as decimal signs.
    values : tuple of str, optional
        Categories to keep; all others become ``"other"``. None keeps all.
    format : str, optional
        Format of dates written as text.
    first : str, optional
        First day of the feature ``"days since ..."``, such as ``2024-01-31``.
    parts : tuple of str, default=()
        Date features: ``"year"``, ``"month"``, ``"weekday"``, ``"hour"``, ``"days"``.
    unit : str, default=""
        Unit written after the numbers.
    words : tuple of str, default=()
        Categories such as ``"None"``, which file readers treat as missing values.
    """

    name: str
    kind: str
    decimal: str = "."
    thousands: str = ","
    values: tuple[str, ...] | None = None
    format: str | None = None
    first: str | None = None
    parts: tuple[str, ...] = ()
    unit: str = ""
    words: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features derived from the column."""
        if self.kind != "date":
            return (self.name,)
        days = f"days since {self.first}"
        return tuple(f"{self.name}: {days if part == 'days' else part}" for part in self.parts)


@dataclass(frozen=True)
class Preparation:
    """Record of how a table was read, so that other rows can be read in the same way.

    Parameters
    ----------
    columns : tuple of ColumnReading
        Columns that became features.
    na_values : tuple of str, default=()
        Texts that were read as missing in addition to the usual words, in all columns or, as in
        ``"income=99"``, in one column.
    decimal : {".", ","}, optional
        Decimal sign of a text file, which determines how ambiguous numbers of another file
        (``1,234``) are read. None if it is unknown.
    labels : mapping of str to str, default={}
        New names of target classes. Keys such as ``"NA"`` are classes, not missing values.
    target : ColumnReading, optional
        How a numeric target was read, if its texts were converted to numbers or the task is
        regression. None for other targets.
    classes : tuple, default=()
        Classes that labels of other rows are matched to by their text. Not stored by `to_dict`.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.datasets import Preparation, read_table
    >>> table = read_table(pd.DataFrame({"paid": ["$1,250.00", "$80.50"], "on": ["cash", "card"]}))
    >>> record = table.preparation.to_dict()
    >>> later = pd.DataFrame({"paid": ["$1,000.00"], "on": ["cash"]})
    >>> read_table(later, preparation=Preparation.from_dict(record)).frame
       paid    on
    0  1000  cash
    """

    columns: tuple[ColumnReading, ...]
    na_values: tuple[str, ...] = ()
    decimal: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    target: ColumnReading | None = None
    classes: tuple[Any, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(name for column in self.columns for name in column.features)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and strings for JSON, without default values."""
        plain = ColumnReading("", "")

        def as_plain(reading: ColumnReading) -> dict[str, Any]:
            return {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in asdict(reading).items()
                if key in ("name", "kind") or value != getattr(plain, key)
            }

        data: dict[str, Any] = {"columns": list(map(as_plain, self.columns))}
        data["na_values"] = list(self.na_values)
        if self.decimal is not None:
            data["decimal"] = self.decimal
        if self.labels:
            data["labels"] = dict(self.labels)
        if self.target is not None:
            data["target"] = as_plain(self.target)
        return data

    def read_target(self, column: pd.Series) -> pd.Series:
        """Read a numeric target of other rows in the same way.

        Parameters
        ----------
        column : pandas.Series
            Cells of the target.

        Returns
        -------
        pandas.Series
            Numbers; NaN for missing cells.

        Raises
        ------
        DatasetError
            If a cell is not a finite number.

        Examples
        --------
        >>> import pandas as pd
        >>> from skescore.datasets import Preparation
        >>> Preparation(()).read_target(pd.Series(["$1,250", None, "80"])).tolist()
        [1250.0, nan, 80.0]
        """
        name = str(column.name)
        if pd.api.types.is_bool_dtype(column.dtype):
            column = column.astype(object)
        if pd.api.types.is_numeric_dtype(column.dtype):
            divisor = 1.0 if self.target is None else plain_divisor(self.target.unit)
            numbers = _without_codes(column, self.na_values)
            numbers = numbers if divisor == 1 or np.isnan(divisor) else numbers / divisor
        else:
            reading = self.target or self._target_reading(column) or ColumnReading(name, "number")
            reading = replace(reading, name=name)
            numbers = _read_prepared(column, reading, self.na_values, None, [])[name]
        texts, is_wrong = column.astype(str).str.strip(), np.isinf(numbers)
        if not pd.api.types.is_numeric_dtype(column.dtype):
            words = ["", *na_values_of(name, self.na_values)]
            is_missing = column.isna() | texts.str.lower().isin(NULL_WORDS) | texts.isin(words)
            if numbers.isna().all():  # plain numbers after K, which is kelvin or a thousand
                numbers = pd.to_numeric(texts.mask(is_missing), errors="coerce")
            # As in the first table, true and false are no quantities.
            is_truth = texts.str.lower().isin(("true", "false"))
            is_wrong = is_truth | np.isinf(numbers) | (numbers.isna() & ~is_missing)
        if is_wrong.any():
            raise DatasetError(
                f"The target {name!r} should hold finite numbers, but has "
                f"{texts[is_wrong].iloc[0]!r} in {plural(int(is_wrong.sum()), 'row')}. Correct "
                "these cells, or leave them empty."
            )
        return numbers

    def _target_reading(self, column: pd.Series) -> ColumnReading | None:
        """Return how the texts of a target are read as numbers in a table without preparation."""
        options, problems = ReadingOptions(na_values=self.na_values), Problems(str(column.name))
        reader = _Reader(column.to_frame(), problems, options, self.decimal == ",", [])
        return _convert_target(column, reader, ())[1]

    def read_classes(self, column: pd.Series) -> pd.Series:
        """Read a target with classes of other rows in the same way.

        Parameters
        ----------
        column : pandas.Series
            Cells of the target.

        Returns
        -------
        pandas.Series
            Labels renamed by `labels` and matched to `classes`, see `match_classes`; NaN for
            missing ones.

        Examples
        --------
        >>> import pandas as pd
        >>> from skescore.datasets import Preparation
        >>> Preparation((), na_values=("unlabeled",)).read_classes(
        ...     pd.Series(["yes ", "unlabeled", "?", "no"])
        ... ).tolist()
        ['yes', nan, nan, 'no']
        """
        column = _without_categorical(column)
        if pd.api.types.is_numeric_dtype(column.dtype):
            column = _without_codes(column, self.na_values)
        cells = _class_cells(column, self.na_values, self.labels)
        names = _classes_in(cells, column, self.labels)
        names = names.map(lambda name: self.labels.get(name, name), na_action="ignore")
        labels = self.match_classes(names)
        if all(isinstance(label, str) for label in self.classes):
            return labels
        # Labels that match no class keep the type that they have in the table.
        is_unknown = names.notna() & ~labels.isin(self.classes)
        return labels.mask(is_unknown, column.astype(object))

    def match_classes(self, labels: pd.Series) -> pd.Series:
        """Return labels with the type of `classes`: "1", "1.0" and "1 %" become the class 1.

        Parameters
        ----------
        labels : pandas.Series
            Labels, which may be missing.

        Returns
        -------
        pandas.Series
            For each label the class with the same text or number, or the label itself if there is
            none. Texts such as "01" are names, which are not compared as numbers.
        """
        present = labels.dropna()
        if not self.classes or present.isin(self.classes).all():
            return labels
        by_text = {_text(label): label for label in self.classes}
        texts = {_text(label): None for label in present if isinstance(label, str)}
        names = ("true", "false", *(text for text in texts if re.fullmatch(_PADDED, text)))
        others = [text for text in texts if text not in by_text and text.lower() not in names]
        if others:
            reading = replace(self.target or ColumnReading("", "number"), name="")
            column = pd.Series(others, name="", dtype=object)
            numbers = _read_prepared(column, reading, self.na_values, None, [])[""]
            classes = [by_text.get(_text(float(number))) for number in numbers]
            by_text |= {t: c for t, c in zip(others, classes, strict=True) if c is not None}
        classes_of_rows = [by_text.get(_text(label), label) for label in present]
        result = labels.astype(object)
        result[present.index] = pd.Series(classes_of_rows, index=present.index, dtype=object)
        return result.infer_objects()

    def with_classes(self, classes: Iterable[object]) -> Preparation:
        """Return a preparation that reads these labels as classes, even if they look missing.

        Parameters
        ----------
        classes : iterable
            The classes, such as those of a rule set.

        Returns
        -------
        Preparation
            The preparation with these `classes`. Classes that usually mean a missing value are also
            added to its `labels`.

        Examples
        --------
        >>> from skescore.datasets import Preparation
        >>> Preparation(()).with_classes(["NA", "oak"]).labels
        {'NA': 'NA'}
        """
        classes = tuple(classes)
        names = [str(name) for name in classes if isinstance(name, str)]
        null_like_names = {n: n for n in names if n.lower() in NULL_WORDS or n in _NULL_TEXTS}
        return replace(self, labels=null_like_names | dict(self.labels), classes=classes)

    def with_words(self, categories: Mapping[str, Collection[object]]) -> Preparation:
        """Return a preparation that keeps categories such as ``"None"``, which may look missing.

        Parameters
        ----------
        categories : mapping
            Categories that rules name, by column.

        Returns
        -------
        Preparation
            The preparation with these words in its columns.
        """
        columns = []
        for column in self.columns:
            texts = [v for v in categories.get(column.name, ()) if isinstance(v, str)]
            words = dict.fromkeys([*column.words, *_file_words(texts)])
            columns.append(replace(column, words=tuple(words)))
        return replace(self, columns=tuple(columns))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Preparation:
        """Restore a preparation from the result of `to_dict`."""
        try:
            columns = []
            for column in data["columns"]:
                fields: dict[str, Any] = {
                    k: tuple(v) if isinstance(v, list) else v for k, v in column.items()
                }
                columns.append(ColumnReading(**fields))
            na_values, labels = tuple(data.get("na_values", ())), dict(data.get("labels", ()))
            target = ColumnReading(**data["target"]) if "target" in data else None
            return cls(tuple(columns), na_values, data.get("decimal"), labels, target)
        except (KeyError, TypeError, AttributeError) as error:
            raise DatasetError(
                f"The record of how a table was read is damaged: {error}. Extract the rules again, "
                "or remove the record, so that the table is read without it."
            ) from error

    @classmethod
    def for_features(
        cls, names: Iterable[str], categories: Mapping[str, Sequence[str] | None] | None = None
    ) -> Preparation:
        """Infer from the names of features how a table was read.

        Parameters
        ----------
        names : iterable of str
            Names of features, such as those of rules. ``"paid on: month"`` is a part of the date
            ``"paid on"``, unless a table has a column of that name.
        categories : mapping, optional
            Categorical features, with their values or None. If the values include ``"other"``, it
            represents all values that are not listed.

        Returns
        -------
        Preparation
            The preparation. Features that are neither dates nor categorical are numbers.
        """
        readings: dict[str, ColumnReading] = {}
        categories = {} if categories is None else categories
        for name in names:
            match = _DATE_PART.fullmatch(name)
            if match is not None:
                source, first = match["name"], match["first"]
                previous = readings.get(source, ColumnReading(source, "date"))
                parts = (*previous.parts, "days" if first else match["part"])
                readings[source] = ColumnReading(
                    source, "date", first=first or previous.first, parts=tuple(dict.fromkeys(parts))
                )
            elif name in categories:
                values = categories[name]
                has_other = values is not None and OTHER in values
                kept_values = tuple(v for v in values or () if v != OTHER) if has_other else None
                readings[name] = ColumnReading(name, "category", values=kept_values)
            else:
                readings[name] = ColumnReading(name, "number")
        return cls(tuple(readings.values()))


class Table(NamedTuple):
    """Table with messages about it and the record of how it was read.

    Parameters
    ----------
    frame : pandas.DataFrame
        Numbers as int64 or float64, with NaN for missing values; categories as strings.
    findings : tuple of str
        Messages for the user, such as dropped columns and words that were read as missing.
    preparation : Preparation
        Record that lets other rows be read in the same way.
    identifiers : tuple of str, default=()
        Columns that were dropped because they identify rows.
    """

    frame: pd.DataFrame
    findings: tuple[str, ...]
    preparation: Preparation
    identifiers: tuple[str, ...] = ()


@dataclass
class _Cells:
    """Text column stored as unique texts and one code per row; the code -1 means missing."""

    texts: pd.Series
    codes: np.ndarray
    counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))

    @classmethod
    def of(cls, column: pd.Series, na_values: Sequence[str]) -> _Cells:
        na_values = na_values_of(column.name, na_values)
        codes, values = pd.factorize(column)
        cell_texts = pd.Series([_text(value) for value in values], dtype=object)
        text_codes, texts = pd.factorize(cell_texts)
        blank = np.array([t == "" or t in na_values for t in texts], dtype=bool)
        new_codes = np.where(blank, -1, np.cumsum(~blank) - 1)
        value_codes = np.append(new_codes[text_codes] if len(text_codes) else [], -1).astype(
            np.intp
        )
        nonblank_texts = pd.Series(list(texts), dtype=object)[~blank].reset_index(drop=True)
        return cls(nonblank_texts, value_codes[codes])

    def per_row(self, values: np.ndarray, missing: Any) -> np.ndarray:
        """Expand values per text to values per row."""
        return np.append(values, [missing])[self.codes]

    def count_rows(self, text_mask: np.ndarray) -> int:
        """Count the rows with one of the selected texts."""
        return int(self.counts[text_mask].sum())


def na_values_of(name: object, na_values: Iterable[str]) -> list[str]:
    """Return the texts that mean a missing value in a column; ``NAME=TEXT`` is for one column."""
    prefix = f"{name}="
    return [text.removeprefix(prefix) for text in na_values]


def _note_unknown_columns(
    na_values: Sequence[str], columns: Collection[str], findings: list[str]
) -> None:
    """Report entries ``NAME=TEXT`` without a column of that name; they are ordinary texts."""
    for text in na_values:
        name, sign, _ = text.rpartition("=")
        if sign and name and not any(text.startswith(f"{column}=") for column in columns):
            close = nearest_names(name, list(columns))
            guess = f" Did you mean {close}?" if close else ""
            findings.append(
                f"{text!r} in na_values names no column, so cells with exactly this text are read "
                f"as missing in all columns.{guess}"
            )


def _text(value: Any) -> str:
    """Return the text of a cell; integers have no decimal point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _detect_decimal_sign(
    raw: FileTable, previous_sign: str | None, findings: list[str]
) -> str | None:
    """Detect the decimal sign of a text file; return None for other tables.

    If all numbers are ambiguous, use `previous_sign`, the sign in a table that was read before.
    """
    if raw.separator is None:
        return None
    n_comma = n_point = 0
    ambiguous_texts: dict[str, str] = {}
    for name, column in raw.frame.items():
        if pd.api.types.is_numeric_dtype(column):
            continue
        texts, fits_point, fits_comma = _signs_of(column)
        if 2 * (fits_point | fits_comma).sum() < len(texts):
            continue
        with_comma = np.array(["," in text for text in texts], dtype=bool)
        n_comma += int((with_comma & fits_comma & ~fits_point).sum())
        n_point += int((with_comma & fits_point & ~fits_comma).sum())
        if (ambiguous := with_comma & fits_point & fits_comma).any():
            ambiguous_texts[str(name)] = texts[int(ambiguous.argmax())]
    if n_comma == n_point and (ambiguous_texts or previous_sign == ","):
        floats = raw.frame.select_dtypes("float").columns
        for _, column in raw.as_written(map(str, floats)).items():
            texts, fits_point, fits_comma = _signs_of(column)
            with_point = np.array(["." in text for text in texts], dtype=bool)
            n_point += int((with_point & fits_point & ~fits_comma).sum())
    if n_comma == n_point == 0 and _has_thousands(raw):
        return ","  # reported with the column
    if n_comma != n_point:
        return "," if n_comma > n_point else "."
    if previous_sign is not None:
        return previous_sign
    if not ambiguous_texts or raw.separator == ",":
        return "."
    name, text = next(iter(ambiguous_texts.items()))
    findings.append(
        Conversion(
            name,
            "number",
            f"{text} in column {name!r} is read with a decimal comma, because commas do not "
            "separate columns; if the comma separates thousands: --decimal=.",
        )
    )
    return ","


def _has_thousands(raw: FileTable) -> bool:
    """Return whether points separate thousands in some column of numbers."""
    candidates = []
    for name, column in raw.frame.select_dtypes("float").items():
        values = np.abs(column.dropna().to_numpy())
        is_whole = values == np.round(values)
        whole, others = values[is_whole], values[~is_whole]
        # If points separate thousands, 1204 was read as 1.204, next to larger numbers such as 631.
        # Other columns are not read again, because that takes time.
        if not len(whole) or not len(others) or others.min() < 1 or whole.max() < others.max():
            continue
        if np.allclose(1000 * values, np.round(1000 * values)):
            candidates.append(str(name))
    return any(
        style_of(column.dropna().head(_SIGN_ROWS).map(_text).unique().tolist()) == (",", ".")
        for _, column in raw.as_written(candidates).items()
    )


def _signs_of(column: pd.Series) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return unique texts of a column, and whether each fits a decimal point, and a comma."""
    texts = [_text(value) for value in column.dropna().head(_SIGN_ROWS).unique()]
    return texts, fits(texts, ".", ","), fits(texts, ",", ".")


@cache
def _cleaner() -> Any:
    """Import skrub's Cleaner on first use, because the import takes seconds."""
    try:
        from skrub import Cleaner
    except (OSError, RuntimeError):
        # skrub creates a data folder in the home folder, which may be missing or read-only.
        user_folder = os.environ.get(_SKRUB_FOLDER)
        os.environ[_SKRUB_FOLDER] = tempfile.gettempdir()
        try:
            from skrub import Cleaner
        finally:
            os.environ.pop(_SKRUB_FOLDER)
            if user_folder is not None:
                os.environ[_SKRUB_FOLDER] = user_folder
    return Cleaner


def _detect_date_format(texts: pd.Series) -> str | None:
    """Return the date format of all texts; None if there is no common one."""
    if not len(texts) or not all(map(_LIKE_DATE.search, texts)):
        return None
    if all(map(_ISO_DATE.fullmatch, texts)):  # the import of skrub takes seconds
        for date_format in _ISO_FORMATS:
            if _fits(texts, date_format):
                return date_format
    texts = _normalize_dates(texts)
    cleaner = _cleaner()(drop_null_fraction=None)
    dates = cleaner.fit_transform(pd.DataFrame({"x": texts}))["x"]
    if pd.api.types.is_datetime64_any_dtype(dates):
        detected = getattr(cleaner.all_processing_steps_["x"][-1], "format_", None)
        day_first = (detected or "").replace(_MONTH_FIRST, _DAY_FIRST)
        return day_first if day_first and _fits(texts, day_first) else detected
    if not all(_SHORT_DATE.fullmatch(text) for text in texts):
        return None
    for date_format in _FORMATS:
        if _fits(texts, date_format):
            return date_format
    return None


def _fits(texts: pd.Series, date_format: str) -> bool:
    return bool(pd.to_datetime(texts, format=date_format, errors="coerce").notna().all())


def _normalize_dates(texts: pd.Series) -> pd.Series:
    """Remove weekdays and *de* from dates, and translate names of months to English."""
    if texts.map(_WEEKDAY.search, na_action="ignore").any():
        texts = texts.str.replace(_WEEKDAY, "", regex=True)
    if not texts.map(_MONTH_WORD.search, na_action="ignore").any():
        return texts
    texts = texts.str.replace(" de ", " ", regex=False)
    return texts.str.replace(
        _MONTH_WORD, lambda match: _ENGLISH_MONTHS[(match[1] or match[2]).lower()], regex=True
    )


def _detect_mixed_formats(texts: pd.Series) -> str | None:
    """Return date formats that together cover all texts, joined by `_FORMAT_SIGN`, or None.

    Formats are chosen greedily by the number of remaining texts that they fit.
    """
    if len(texts) < _MIN_MIXED:
        return None
    texts = _normalize_dates(texts)
    if not all(map(_MIXED_DATE.fullmatch, texts)):
        return None
    fits = {
        date_format: pd.to_datetime(texts, format=date_format, errors="coerce").notna().to_numpy()
        for date_format in _MIXED_FORMATS
    }
    unread = np.ones(len(texts), dtype=bool)
    formats: list[str] = []
    while unread.any():
        best = max(fits, key=lambda date_format: int((fits[date_format] & unread).sum()))
        if not (fits[best] & unread).any():
            return None
        formats.append(best)
        unread &= ~fits[best]
    return _FORMAT_SIGN.join(formats) if len(formats) <= _MAX_FORMATS else None


def read_times(column: pd.Series, na_values: Sequence[str] = ()) -> pd.Series | None:
    """Return dates or numbers as sortable values; None if the column holds other text.

    Parameters
    ----------
    column : pandas.Series
        The cells.
    na_values : sequence of str
        Texts that mean a missing value.
    """
    name: Any = column.name
    if _is_dates(column):
        return _convert_dates(column, None, None).rename(name)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return _convert_numbers(column, na_values)
    cells = _Cells.of(column, na_values)
    texts = cells.texts[~_are_null_words(cells.texts)]
    style = style_of(texts.tolist())
    if len(texts) and not np.isnan(as_numbers(texts.tolist(), *style)).any():
        values = as_numbers(cells.texts.tolist(), *style)
        return _number_series(cells.per_row(values, np.nan), column.index).rename(name)
    date_format = _detect_date_format(texts) or _detect_mixed_formats(texts)
    if date_format is None:
        return None
    return _convert_dates(column, cells, date_format).rename(name)


def read_time(
    text: str | float, column: pd.Series, na_values: Sequence[str] = ()
) -> pd.Timestamp | float | None:
    """Parse a date or number like the cells of a column of times; return None if it is neither.

    Parameters
    ----------
    text : str or float
        Date or number; dates may always have the form 2026-05-01.
    column : pandas.Series
        Cells of the column, which determine whether 1.5.2026 is in May or in January.
    na_values : sequence of str
        Texts that mean a missing value.
    """
    times = read_times(column, na_values)
    if times is None or pd.api.types.is_numeric_dtype(times.dtype):
        try:
            return float(text)
        except ValueError:
            return None
    day_first = False
    if not _is_dates(column) and not _YEAR_FIRST.match(str(text)):
        texts = _Cells.of(column, na_values).texts
        texts = texts[~_are_null_words(texts)]
        date_format = _detect_date_format(texts) or _detect_mixed_formats(texts) or ""
        day_first = date_format.find("%d") < date_format.find("%m")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # 25.12. with the month first
        english = _normalize_dates(pd.Series([str(text)]))[0]
        timestamp = pd.to_datetime(english, dayfirst=day_first, utc=True, errors="coerce")
    return None if pd.isna(timestamp) else timestamp.tz_localize(None)


def _is_dates(column: pd.Series) -> bool:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    return kind in ("datetime64", "datetime", "date", "period")


def _convert_dates(column: pd.Series, cells: _Cells | None, date_format: str | None) -> pd.Series:
    """Convert a column to timestamps without a time zone."""
    if cells is not None:
        dates = _parse_dates(cells, date_format)
        values = dates.dt.tz_localize(None).to_numpy("datetime64[us]")
        return pd.Series(cells.per_row(values, np.datetime64("NaT", "us")), index=column.index)
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp()
    return pd.to_datetime(column, utc=True).dt.tz_localize(None)


def _parse_dates(cells: _Cells, date_format: str | None) -> pd.Series:
    if date_format is not None and _FORMAT_SIGN in date_format:
        columns = [_parse_format(cells.texts, f) for f in date_format.split(_FORMAT_SIGN)]
        dates = columns[0]
        for column in columns[1:]:
            dates = dates.fillna(column)
        return dates
    return _parse_format(cells.texts, date_format or "mixed")


def _parse_format(texts: pd.Series, date_format: str) -> pd.Series:
    """Parse dates of one format; two-digit years are from 1941 to 2040."""
    options: dict[str, Any] = {"format": date_format}
    texts = _normalize_dates(texts)
    dates = pd.to_datetime(texts, errors="coerce", utc=True, **options)
    if "%y" in date_format:
        is_late = dates.dt.year > _LAST_SHORT_YEAR
        dates = dates.where(~is_late, dates - pd.DateOffset(years=100))
    return dates


def _date_features(dates: pd.Series, reading: ColumnReading) -> dict[str, pd.Series]:
    """Return the features derived from a column of dates."""
    first_day = None if reading.first is None else pd.Timestamp(reading.first)
    features: dict[str, pd.Series] = {}
    for name, part in zip(reading.features, reading.parts, strict=True):
        if part == "weekday":
            day = dates.dt.day_of_week
            names_or_nan = np.array([*_WEEKDAYS, np.nan], dtype=object)
            values = names_or_nan[day.fillna(len(_WEEKDAYS)).to_numpy(int)]
            features[name] = pd.Series(values, index=dates.index, dtype=object)
        elif part == "days":
            features[name] = _compact_type((dates.dt.normalize() - first_day).dt.days)
        else:
            features[name] = _compact_type(getattr(dates.dt, part))
    return features


def _compact_type(values: pd.Series) -> pd.Series:
    """Convert whole numbers to int64, other columns and those with missing values to float64."""
    if pd.api.types.is_float_dtype(values.dtype) and values.notna().all():
        are_integers = bool((values == np.floor(values)).all()) and bool(np.isfinite(values).all())
        return values.astype("int64" if are_integers and values.abs().max() < 2**53 else "float64")
    return values.astype("float64" if values.isna().any() else "int64")


def _make_features(
    column: pd.Series, cells: _Cells | None, reading: ColumnReading, na_values: Sequence[str]
) -> dict[str, pd.Series]:
    """Return the features derived from a column."""
    if reading.kind == "date":
        return _date_features(_convert_dates(column, cells, reading.format), reading)
    if reading.kind == "number":
        if cells is None:
            return {reading.name: _convert_numbers(column, na_values)}
        values = _parse_numbers(cells.texts.tolist(), reading)
        return {reading.name: _number_series(cells.per_row(values, np.nan), column.index)}
    cells = _Cells.of(column, na_values) if cells is None else cells
    is_missing = _null_texts(cells.texts)
    values = np.where(is_missing, np.nan, cells.texts.to_numpy(object))
    if reading.values is not None:
        kept_mask = cells.texts.isin(reading.values).to_numpy()
        values = np.where(kept_mask | is_missing, values, OTHER)
    category = pd.Series(cells.per_row(values, np.nan), index=column.index, dtype=object)
    if pd.to_numeric(category.dropna().drop_duplicates(), errors="coerce").notna().all():
        category = category.astype("category")  # texts of numbers must be declared as categories
    return {reading.name: category}


def _are_null_words(texts: pd.Series) -> np.ndarray:
    """Return a mask of the texts that mean a missing value in a column of numbers or dates."""
    return np.array([text.lower() in NULL_WORDS for text in texts], dtype=bool)


def _null_texts(texts: pd.Series) -> np.ndarray:
    """Return a mask of the texts that mean a missing value in a column of text."""
    return np.array([text.strip() in _NULL_TEXTS for text in texts], dtype=bool)


def _file_words(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that only file readers treat as missing values, such as None."""
    return tuple(text for text in texts if text in NULL_CELLS and text not in _NULL_TEXTS)


def is_read_as(text: str) -> bool:
    """Return whether a cell of a text column can be read as this text."""
    if text != text.strip() or not text:
        return False
    return text.lower() not in NULL_WORDS or not _null_texts(pd.Series([text])).any()


def _without_categorical(column: pd.Series) -> pd.Series:
    """Convert a categorical pandas column to a plain one."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Series(np.asarray(column), index=column.index, name=column.name)
    return column


def _decimal_commas(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and values of texts with a decimal comma in a column of numbers."""
    no_rows = np.empty(0, dtype=np.intp), np.empty(0)
    if column.dtype != object:
        return no_rows
    is_text = column.map(lambda cell: isinstance(cell, str)).to_numpy(bool)
    is_number_cell = column.map(lambda cell: isinstance(cell, float | int)).to_numpy(bool)
    texts = column[is_text].tolist()
    if not texts or (is_number_cell & column.notna().to_numpy()).sum() <= len(texts):
        return no_rows
    values = as_numbers(texts, ",", ".")
    is_comma = np.array(["," in text for text in texts]) & np.isfinite(values)
    if fits(texts, ".", ",")[is_comma].any():
        return no_rows
    return np.flatnonzero(is_text)[is_comma], values[is_comma]


def _convert_cells(column: pd.Series) -> pd.Series:
    """Return the column of a feature, with time spans in days and decimal commas as numbers."""
    column = _without_categorical(column)
    rows, values = _decimal_commas(column)
    if len(rows):
        column = column.copy()
        column.iloc[rows] = values
    if pd.api.types.infer_dtype(column, skipna=True) in ("timedelta", "timedelta64"):
        column = pd.to_timedelta(column).dt.total_seconds() / 86400.0
    return column


def _number_series(values: np.ndarray, index: pd.Index) -> pd.Series:
    series = pd.Series(values, index=index, dtype="float64")
    are_integers = (
        len(values) > 0 and np.isfinite(values).all() and (values == np.floor(values)).all()
    )
    return series.astype("int64") if are_integers and np.abs(values).max() < 2**53 else series


def _without_codes(column: pd.Series, na_values: Sequence[str]) -> pd.Series:
    """Replace the numbers that mean a missing value by NaN."""
    words = na_values_of(column.name, na_values)
    codes = [float(word) for word in words if is_number(word)]
    return column.mask(column.isin(codes)) if codes else column


def _convert_numbers(column: pd.Series, na_values: Sequence[str]) -> pd.Series:
    """Convert numbers or booleans to int64 or float64."""
    column = _without_codes(column, na_values)
    kind = column.dtype
    is_integer = pd.api.types.is_bool_dtype(kind) or pd.api.types.is_signed_integer_dtype(kind)
    is_small_unsigned = isinstance(kind, np.dtype) and kind.kind == "u" and kind.itemsize < 8
    if (is_integer or is_small_unsigned) and not column.isna().any():
        return column.astype("int64")
    return pd.Series(column.to_numpy(dtype=float, na_value=np.nan), index=column.index)


#: Reasons for dropping a column that identifies rows.
_IDENTIFYING = ("identifiers", "row numbers")

_Read: TypeAlias = tuple[ColumnReading, dict[str, pd.Series]] | None


@dataclass
class _Reader:
    """Reader of the columns of a table that collects messages."""

    frame: pd.DataFrame
    problems: Problems
    options: ReadingOptions
    comma_first: bool
    findings: list[str]
    left_out: dict[str, list[str]] = field(default_factory=dict)
    #: Function that returns the text columns as written, with blanks and words for missing values.
    written: Any = None
    #: Entries ``NAME=WORD`` for words that the file reader treated as missing categories.
    words_of_file: list[str] = field(default_factory=list)

    @cached_property
    def written_texts(self) -> pd.DataFrame:
        """Rows of the text columns as written; without columns if nothing differs."""
        if self.written is None:
            return self.frame.iloc[:, :0]
        texts: pd.DataFrame = self.written()
        return texts.iloc[self.frame.index] if len(texts) > self.frame.index.max() else texts[:0]

    def read_all(
        self, target: str | None
    ) -> tuple[tuple[ColumnReading, ...], dict[str, pd.Series]]:
        """Read all features, and report the columns that are dropped."""
        features, columns = self.options.features, list(self.frame.columns)
        names = columns if features is None else _sources(features, columns)
        names = [name for name in names if name != target and name not in self.options.drop]
        results: list[tuple[ColumnReading, dict[str, pd.Series]]] = []
        for name in names:
            if features is None and name == self.options.groups:
                self.findings.append(f"column {name!r} holds groups of rows and is not a feature")
            elif features is None and _is_copy(self.frame, name):
                self.leave(name, "copies under the same name")
            elif (result := self.read(name, is_requested=features is not None)) is not None:
                results.append(result)
        if not results:  # if no feature is left, read identifiers
            restored = (self.read(name, is_requested=True) for name in self.restore_left_out())
            results = [result for result in restored if result is not None]
        self.note_left_out()
        features_by_name = {name: c for _, made_of in results for name, c in made_of.items()}
        return tuple(reading for reading, _ in results), features_by_name

    def read(self, name: str, *, is_requested: bool) -> _Read:
        """Read a column; return None if it is dropped, such as numbers that order the rows."""
        result = self._read_column(name, is_requested=is_requested)
        if result is None or is_requested or name != self.options.time:
            return result
        if result[0].kind == "date":
            return result
        self.findings.append(f"column {name!r} holds the time of the rows and is not a feature")
        return None

    def _read_column(self, name: str, *, is_requested: bool) -> _Read:
        """Detect the type of a column and read it; return None if it is dropped."""
        column = _convert_cells(self.frame[name])
        self._note_cells(name)
        has_stated_type = name in self.options.numeric or name in self.options.categories
        if name in self.options.categories:
            return self._category(name, column, _Cells.of(column, self.options.na_values), True)
        is_order = name == self.options.time and not is_requested
        if _is_dates(column):
            return self._date(name, _convert_dates(column, None, None), None, is_order=is_order)
        if pd.api.types.is_numeric_dtype(column.dtype):
            return self._number(name, column, is_requested or has_stated_type)
        cells = _Cells.of(column, self.options.na_values)
        if not len(cells.texts):
            return self._number(
                name, pd.Series(np.nan, index=column.index), is_requested or has_stated_type
            )
        reading = self._number_reading(name, cells)
        values = _parse_numbers(cells.texts.tolist(), reading)
        number_mask = ~np.isnan(values)
        if name in self.options.numeric or self._is_numeric(name, cells, number_mask):
            numbers = _number_series(cells.per_row(values, np.nan), column.index)
            if not (is_requested or has_stated_type) and _is_identifier(name, numbers):
                return self.leave(name, "identifiers")
            self._note_strays(name, cells, number_mask)
            _note_padded(name, cells.texts[number_mask], self.findings)
            self._note_units(reading, cells, number_mask)
            self.note_sentinel(name, numbers)
            return reading, {name: numbers}
        words = _are_null_words(cells.texts)
        date_format = _detect_date_format(cells.texts[~words])
        if date_format is None:
            date_format = _detect_mixed_formats(cells.texts[~words])
        if date_format is None and not is_requested:
            date_format = self._date_format_with_strays(name, cells, ~words)
        if date_format is not None:
            _note_words(name, cells, words, self.findings)
            _note_day_order(name, cells, date_format, self.findings)
            dates = _convert_dates(column, cells, date_format)
            return self._date(name, dates, date_format, is_order=is_order)
        self._note_ambiguous_signs(name, cells)
        return self._category(name, column, cells, is_requested)

    def note_conversion(self, column: str, kind: str, text: str) -> None:
        """Add a finding about the cells of a column that are converted."""
        self.findings.append(Conversion(column, kind, text))

    def _note_ambiguous_signs(self, name: str, cells: _Cells) -> None:
        """Report points and commas in a column that cannot all be read as decimal signs."""
        points, commas = (fits(cells.texts.tolist(), *style) for style in _STYLE_OF.values())
        only_points, only_commas = points & ~commas, commas & ~points
        if not (only_points.any() and only_commas.any()):
            return
        if 2 * cells.count_rows(points | commas) < len(cells.codes):
            return
        first_point, first_comma = (
            cells.texts[mask].iloc[0] for mask in (only_points, only_commas)
        )
        self.note_conversion(
            name,
            "category",
            f"column {name!r} holds numbers with a decimal point such as {first_point!r}, with a "
            f"decimal comma such as {first_comma!r}, and with a sign that may separate thousands, "
            "so it is read as categories; use one decimal sign in the file, or read only numbers "
            f"with a decimal point: --numeric {quoted(name)} --decimal=.",
        )

    def _note_cells(self, name: str) -> None:
        """Report time spans, and texts among numbers that are read with a decimal comma."""
        column = _without_categorical(self.frame[name])
        if pd.api.types.infer_dtype(column, skipna=True).startswith("timedelta"):
            self.note_conversion(
                name, "number", f"column {name!r} holds time spans, read as numbers of days"
            )
        rows, _ = _decimal_commas(column)
        if len(rows):
            self.note_conversion(
                name,
                "number",
                f"{plural(len(rows), 'text')} such as {column.iloc[rows[0]]!r} in column {name!r} "
                f"{'is' if len(rows) == 1 else 'are'} read with a decimal comma; other cells hold "
                "numbers",
            )

    def _date_format_with_strays(self, name: str, cells: _Cells, mask: np.ndarray) -> str | None:
        """Return the date format of most cells, and report the few cells that are no dates."""
        like_date = np.array([_MIXED_DATE.fullmatch(text) is not None for text in cells.texts])
        date_mask = mask & like_date
        n_stray = cells.count_rows(mask & ~like_date)
        if not n_stray or n_stray > _STRAY_SHARE * cells.count_rows(mask):
            return None
        texts = cells.texts[date_mask]
        date_format = _detect_date_format(texts) or _detect_mixed_formats(texts)
        if date_format is not None:
            strays = cells.texts[mask & ~like_date].tolist()
            first_row = int(np.isin(cells.codes, np.flatnonzero(mask & ~like_date)).argmax())
            self.note_conversion(
                name,
                "missing",
                f"{listed(strays, 5)} in column {name!r} is read as missing ({n_stray} of "
                f"{len(cells.codes)} rows, first data row {self.frame.index[first_row] + 1}), "
                "because all other values are dates",
            )
        return date_format

    def _is_numeric(self, name: str, cells: _Cells, number_mask: np.ndarray) -> bool:
        """Return whether a text column is supposed to contain numbers."""
        stray_mask = ~(number_mask | _are_null_words(cells.texts))
        n_numbers, n_stray = cells.count_rows(number_mask), cells.count_rows(stray_mask)
        if not n_numbers or not n_stray:
            return n_numbers > 0
        n_rows = n_numbers + n_stray
        are_repeated = n_rows >= 3 * len(cells.texts)
        has_few_texts = len(cells.texts) <= _STRAY_VALUES and are_repeated
        is_categorical = has_few_texts and n_stray > _STRAY_SHARE * n_rows
        numbers_alone = cells.texts[number_mask]
        only_truth = numbers_alone.str.lower().isin(("true", "false")).all()
        are_names = (
            n_rows == len(cells.texts) >= _MIN_ROWS_OF_UNIQUE and numbers_alone.str.isdigit().all()
        )
        if only_truth or is_categorical or are_names or n_numbers < n_stray:
            return False
        if stray_mask.sum() > _STRAY_VALUES and n_stray > _STRAY_SHARE * n_rows:
            return False
        is_single_word = stray_mask.sum() == 1 and n_rows >= _MIN_ROWS_OF_UNIQUE
        if is_single_word or n_stray <= _STRAY_SHARE * n_rows:
            return True  # read as missing, and reported
        words = cells.texts[stray_mask].tolist()
        first_row = int(np.isin(cells.codes, np.flatnonzero(stray_mask)).argmax())
        row = self.frame.index[first_row] + 1
        first_text = cells.texts[cells.codes[first_row]]
        options = [f"--na-values={word}" for word in words]
        if are_repeated and numbers_alone.str.isdigit().all():  # such as 9, 10, J, Q
            options = ["--category", name]
        elif len(words) > _STRAY_VALUES:
            options = ["--numeric", name]
        self.problems.add(
            f"column {name!r} should be numbers but has text in {n_stray} of {n_rows} rows, first "
            f"{first_text!r} in data row {row} (data rows are counted from 1, without the header). "
            f"Correct the file, read the text as missing with na_values={words[:_STRAY_VALUES]!r} "
            "(on the command line: --na-values) or the column as categories with "
            f"categories=({name!r},) (on the command line: --category {quoted(name)}), or leave it "
            f"out with drop=({name!r},) (on the command line: --drop {quoted(name)}).",
            *options,
        )
        return True

    def _number_reading(self, name: str, cells: _Cells) -> ColumnReading:
        """Detect the style of the numbers in a text column, and the unit after them."""
        texts = cells.texts.tolist()
        options: dict[str, Any] = {"comma_first": self.comma_first}
        style = style_of(texts, self.options.decimal, **options)
        n_plain = cells.count_rows(fits(texts, *style))
        unit_texts = split_units(texts)
        unit = main_unit(unit_texts.units, cells.counts)
        numbers = [text for text in unit_texts.numbers if text]
        if unit is None or n_plain >= cells.count_rows(np.array(unit_texts.units) != ""):
            return ColumnReading(name, "number", *style)
        style = style_of(numbers, self.options.decimal, **options)
        return ColumnReading(name, "number", *style, unit=unit)

    def quantities(self, name: str, cells: _Cells) -> tuple[np.ndarray, ColumnReading] | None:
        """Read a target of many texts, all numbers with units; return None for other targets."""
        if len(cells.texts) < _MIN_QUANTITIES:
            return None
        reading = self._number_reading(name, cells)
        if not reading.unit:
            return None
        values = _parse_numbers(cells.texts.tolist(), reading)
        number_mask = ~np.isnan(values)
        words = _are_null_words(cells.texts)
        if not (number_mask | words).all():
            return None
        _note_words(name, cells, words & ~number_mask, self.findings)
        self._note_units(reading, cells, number_mask)
        return values, reading

    def _note_strays(self, name: str, cells: _Cells, number_mask: np.ndarray) -> None:
        """Report the words in a column of numbers, which are read as missing."""
        null_mask = _are_null_words(cells.texts)
        _note_words(name, cells, ~number_mask & null_mask, self.findings)
        stray_mask = ~(number_mask | null_mask)
        count = cells.count_rows(stray_mask)
        if count and name in self.options.numeric:
            _note_words(name, cells, stray_mask, self.findings)
        elif count:
            row = int(np.isin(cells.codes, np.flatnonzero(stray_mask)).argmax())
            self.note_conversion(
                name,
                "missing",
                f"{listed(cells.texts[stray_mask].tolist(), 5)} in column {name!r} is read as "
                f"missing ({count} of {len(cells.codes)} rows, first data row "
                f"{self.frame.index[row] + 1}), because the other values are numbers; to read "
                f"the column as categories: --category {quoted(name)}",
            )

    def _note_units(self, reading: ColumnReading, cells: _Cells, number_mask: np.ndarray) -> None:
        """Report units, times, inexact numbers and ambiguous signs in a column of numbers."""
        texts = cells.texts[number_mask].tolist()
        inexact = [text for text in texts if _INEXACT.match(text)]
        if inexact:
            self.note_conversion(
                reading.name,
                "number",
                f"column {reading.name!r} holds inexact numbers such as {inexact[0]!r}, which are "
                "read as exact",
            )
        if reading.unit:
            other_units = sorted(
                {unit for unit in split_units(texts).units if unit} - {reading.unit}
            )
            conversion_note = f"; {listed(other_units)} is converted to it" if other_units else ""
            divisor = plain_divisor(reading.unit)
            if divisor != 1 and not all(split_units(texts).units):
                conversion_note += f"; numbers without it are divided by {divisor:.0f}"
            if times := [text for text in texts if ":" in text]:
                hours = _parse_numbers(times[:1], reading)[0]
                self.note_conversion(
                    reading.name,
                    "number",
                    f"column {reading.name!r} holds times such as {times[0]!r}, read as "
                    f"{'hours' if reading.unit == 'h' else reading.unit} ({hours:.4g})",
                )
                return
            self.note_conversion(
                reading.name,
                "number",
                f"column {reading.name!r} holds numbers with the unit {reading.unit!r}, read "
                f"without it{conversion_note}",
            )
            return
        self.note_separator(reading.name, texts, (reading.decimal, reading.thousands))
        units, has_unitless = units_of(texts)
        if len(units) > 1 or (units == ["%"] and has_unitless):
            unit_list = ", ".join(units) + (" and without" if has_unitless else "")
            self.note_conversion(
                reading.name,
                "number",
                f"column {reading.name!r} holds numbers in several units, read without conversion: "
                f"{unit_list}",
            )

    def note_separator(self, name: str, texts: Sequence[str], style: tuple[str, str]) -> None:
        """Report ambiguous thousands separators, and columns with both decimal signs."""
        decimal, thousands = style
        if style == EITHER_SIGN:
            points, commas = ([text for text in texts if sign in text] for sign in ".,")
            self.note_conversion(
                name,
                "number",
                f"column {name!r} holds numbers with a decimal point such as {points[0]!r} and "
                f"with a decimal comma such as {commas[0]!r}; both are read as decimal signs",
            )
            return
        ambiguous = [text for text in texts if thousands in text and decimal not in text]
        is_certain = thousands not in ".," or self.options.decimal is not None
        if ambiguous and not is_certain and fits(texts, thousands, decimal).all():
            self.note_conversion(
                name,
                "number",
                f"column {name!r} holds numbers such as {ambiguous[0]!r}, in which {thousands!r} "
                "is read as the thousands separator; to read it as the decimal sign: --decimal "
                f"{thousands}",
            )

    def _number(self, name: str, column: pd.Series, keep: bool) -> _Read:
        """Convert a column of numbers; leave out identifiers unless they are requested (`keep`)."""
        values = _convert_numbers(column, self.options.na_values)
        reading = ColumnReading(name, "number", *_STYLE_OF["," if self.comma_first else "."])
        if not keep:
            if values.isna().all():
                return self.leave(name, "without any value")
            if _UNNAMED.fullmatch(name) and (values.dropna().is_unique or _counts_rows(values)):
                return self.leave(name, "row numbers")
            if _is_identifier(name, values):
                return self.leave(name, "identifiers")
        self.note_sentinel(name, values)
        return reading, {name: values}

    def note_sentinel(self, name: str, values: pd.Series) -> None:
        """Report usual codes of missing values that are far from all other numbers."""
        if not pd.api.types.is_numeric_dtype(values.dtype):
            return
        finite = values.to_numpy(float, na_value=np.nan)
        finite = finite[np.isfinite(finite)]
        for sentinel in dict.fromkeys((*_SENTINELS, *_SENTINELS_OF_TWO)):
            count = int((finite == sentinel).sum())
            other_numbers = finite[finite != sentinel]
            if count < _MIN_SENTINEL or not len(other_numbers):
                continue
            if _is_distant(sentinel, np.unique(other_numbers)):
                # In other columns 99 may be an ordinary number, which is unlikely for -99.
                option = f"={sentinel}" if sentinel < 0 else f" {quoted(f'{name}={sentinel}')}"
                self.findings.append(
                    f"{sentinel} in column {name!r} ({count} rows) may stand for a missing value; "
                    f"to read it as missing: --na-values{option}"
                )

    def _category(self, name: str, column: pd.Series, cells: _Cells, keep: bool) -> _Read:
        missing_mask = _null_texts(cells.texts)
        counts = pd.Series(cells.counts[~missing_mask], index=cells.texts[~missing_mask])
        n_rows, n_values = int(counts.sum()), len(counts)
        if not keep:
            if not n_values:
                return self.leave(name, "without any value")
            is_unique = n_values == n_rows >= _MIN_ROWS_OF_UNIQUE
            is_unique |= _is_repeated_identifier(name, n_values, n_rows)
            if is_unique or (n_values > _MAX_REPEATED_VALUES and n_values > n_rows / 2):
                return self.leave(name, "identifiers")
        self._note_spellings(name, counts)
        self._note_altered_texts(name, column, cells)
        kept_values = None
        if n_values > self.options.max_categories:
            order = sorted(counts.index, key=lambda value: (-counts[value], value))
            kept_values = tuple(order[: self.options.max_categories])
            share = counts[list(kept_values)].sum() / n_rows
            if share < _MIN_CATEGORY_SHARE and not keep:
                return self.leave(name, "categories that hardly ever repeat")
            self.note_conversion(
                name,
                "category",
                f"column {name!r} has {n_values} categories; the {self.options.max_categories} "
                f"most frequent are kept ({percentage(share)} of the rows), the others are read as "
                f"{OTHER!r}",
            )
        words = _file_words(counts.index if kept_values is None else kept_values)
        reading = ColumnReading(name, "category", values=kept_values, words=words)
        return reading, _make_features(column, cells, reading, self.options.na_values)

    def _note_altered_texts(self, name: str, column: pd.Series, cells: _Cells) -> None:
        """Report words that are read as missing, and blanks that are stripped."""
        words = _null_texts(cells.texts)
        if name in self.written_texts.columns and len(self.written_texts):
            column = self.written_texts[name]
            cells = _Cells.of(column, self.options.na_values)
            words = _null_texts(cells.texts)
            # Later tables that are not text files, such as data frames, may contain the text None.
            is_null_cell = ~words & cells.texts.isin(NULL_CELLS).to_numpy()
            self.words_of_file += [f"{name}={word}" for word in cells.texts[is_null_cell]]
            words = words | is_null_cell
        _note_words(name, cells, words, self.findings)
        n_padded = sum(isinstance(cell, str) and cell != cell.strip() for cell in column)
        if 0 < n_padded <= _MAX_PADDED_SHARE * len(column):  # more is the style of the file
            self.note_conversion(
                name,
                "text",
                f"blanks around the text of {plural(n_padded, 'cell')} of column {name!r} are cut",
            )

    def _note_spellings(self, name: str, counts: pd.Series) -> None:
        """Report categories that differ only in upper case or blanks."""
        spellings: dict[str, list[str]] = {}
        for value in counts.index:
            spellings.setdefault(" ".join(str(value).casefold().split()), []).append(value)
        similar = [text for names in spellings.values() if len(names) > 1 for text in names]
        if similar:
            self.findings.append(
                f"column {name!r} has categories that differ only in upper case or blanks: "
                f"{listed(similar, 6)}; they stay different categories, so spell them the same way "
                "if they mean the same"
            )

    def _date(
        self, name: str, dates: pd.Series, date_format: str | None, *, is_order: bool
    ) -> _Read:
        """Read dates; if they order the rows, keep only parts that repeat in the future."""
        first_date = dates.min()
        if pd.isna(first_date):
            return self.leave(name, "without any value")
        parts = [part for part in ("year", "month") if getattr(dates.dt, part).nunique() > 1]
        if (dates.dt.normalize() != dates)[dates.notna()].any() and dates.dt.hour.nunique() > 1:
            parts.append("hour")
        # Dates given as years or months have no information about days.
        yearly = bool((dates.dropna().dt.day_of_year == 1).all())
        monthly = bool((dates.dropna().dt.day == 1).all())
        if dates.dt.day_of_week.nunique() > 1 and not monthly:
            parts.append("weekday")
        if dates.dt.normalize().nunique() > 1 and not yearly:
            parts.append("days")
        if is_order:
            periodic_parts = [
                *(("month",) if dates.max() - first_date > _TWO_YEARS else ()),
                "weekday",
                "hour",
            ]
            parts = [part for part in parts if part in periodic_parts]
        reading = ColumnReading(
            name, "date", format=date_format, first=f"{first_date:%Y-%m-%d}", parts=tuple(parts)
        )
        format_note = f" (written as {date_format})" if date_format else ""
        if not parts and is_order:
            self.findings.append(f"column {name!r} holds the time of the rows and is not a feature")
            return None
        if not parts:
            return self.leave(name, "one point in time only")
        self.note_conversion(
            name,
            "date",
            f"column {name!r} holds dates{format_note}, read as {listed(reading.features)}",
        )
        return reading, _date_features(dates, reading)

    def leave(self, name: str, reason: str) -> _Read:
        """Record that a column is dropped, with the reason."""
        self.left_out.setdefault(reason, []).append(name)
        return None

    def restore_left_out(self) -> list[str]:
        """Return the names of all dropped columns, and no longer regard them as dropped."""
        names = [name for names in self.left_out.values() for name in names]
        self.left_out.clear()
        return names

    def note_left_out(self) -> None:
        """Report all dropped columns in one message."""
        if self.left_out:
            columns = "; ".join(
                f"{listed(names)} ({reason})" for reason, names in self.left_out.items()
            )
            options = "--category NAME or --numeric NAME"
            if self.has_only_texts(self.left_out):
                options = "--category NAME"
            self.findings.append(f"left out: {columns}; to keep one: {options}")

    def has_only_texts(self, left_out: Mapping[str, Sequence[str]]) -> bool:
        """Return whether no cell of the dropped columns is a number."""
        names = [name for names in left_out.values() for name in names]
        columns = [
            _convert_cells(self.frame[name]) for name in names if not _is_copy(self.frame, name)
        ]
        return bool(columns) and not any(
            pd.api.types.is_numeric_dtype(column.dtype)
            or _is_dates(column)
            or is_number(_text(column.dropna().iloc[0] if column.notna().any() else 0))
            for column in columns
        )


def _is_distant(sentinel: int, others: np.ndarray) -> bool:
    """Return whether a code of missing values is far from the other numbers of a column."""
    low, high = others.min(), others.max()
    if sentinel < 0:
        is_below = low >= 0 or (len(others) > 2 and sentinel < 2 * low - high)
        return bool(low > sentinel and is_below)
    if len(others) > 2:
        return bool(sentinel in _SENTINELS and sentinel > 2 * high)
    return sentinel in _SENTINELS_OF_TWO and others.tolist() in ([0, 1], [1, 2])


def _note_words(name: str, cells: _Cells, words: np.ndarray, findings: list[str]) -> None:
    """Report the words of a column that are read as missing."""
    count = cells.count_rows(words)
    if count:
        findings.append(
            Conversion(
                name,
                "missing",
                f"{listed(cells.texts[words].tolist(), 5)} in column {name!r} is read as missing "
                f"({count} {'row' if count == 1 else 'rows'})",
            )
        )


def _note_day_order(name: str, cells: _Cells, date_format: str, findings: list[str]) -> None:
    """Report dates whose day could be the month, unless other dates prove the order."""
    formats = date_format.split(_FORMAT_SIGN)
    texts = _normalize_dates(cells.texts)
    for used in formats:
        swapped = used.translate(_SWAPPED_DAY)
        is_iso = used.startswith("%Y") and swapped not in formats  # the month always comes first
        if swapped == used or used == _DAY_FIRST or is_iso:
            continue
        dates, others = (pd.to_datetime(texts, format=f, errors="coerce") for f in (used, swapped))
        is_ambiguous = (others.notna() & (dates != others) & dates.notna()).to_numpy()
        is_proven = (others.isna() & dates.notna()).any() and swapped not in formats
        if is_proven or not is_ambiguous.any():
            continue
        order = "day" if used.find("%d") < used.find("%m") else "month"
        text = (
            f"{plural(cells.count_rows(is_ambiguous), 'cell')} of column {name!r} such as "
            f"{texts[is_ambiguous].iloc[0]!r} could have the day or the month first, and "
            f"{'both orders occur' if swapped in formats else 'no other cell shows which'}; they "
            f"are read with the {order} first"
        )
        findings.append(Conversion(name, "date", text))
        return


def _is_whole(values: pd.Series) -> bool:
    present = values.dropna()
    return bool(np.isfinite(present).all()) and bool((present == np.floor(present)).all())


def _is_identifier(name: str, values: pd.Series) -> bool:
    """Return whether a column with a name such as "id" has integers that rarely repeat."""
    present = values.dropna()
    if len(present) < _MIN_ROWS_OF_UNIQUE or not _is_whole(present):
        return False
    n_values = present.nunique()
    if _is_repeated_identifier(name, n_values, len(present)):
        return True
    if not _ID_NAME.search(name):
        return False
    return n_values == len(present) or (
        n_values > _MAX_REPEATED_VALUES and n_values > len(present) / 2
    )


def _is_repeated_identifier(name: str, n_values: int, n_rows: int) -> bool:
    """Return whether a column named like an identifier has many values with few rows each."""
    has_few_rows_each = n_rows <= _MAX_ROWS_OF_IDENTIFIER * n_values
    return is_identifier_name(name) and n_values > _MAX_REPEATED_VALUES and has_few_rows_each


def _counts_rows(values: pd.Series) -> bool:
    """Return whether integers are consecutive and unique, in any order; some may be missing."""
    present = values.dropna()
    if len(present) < max(_MIN_ROWS_OF_UNIQUE, 0.95 * len(values)) or not _is_whole(present):
        return False
    n_values = present.max() - present.min() + 1
    return bool(len(present) <= n_values <= len(values)) and bool(present.is_unique)


def note_equal(frame: pd.DataFrame) -> list[str]:
    """Report columns that equal another one, have a single value, or look like row numbers."""
    findings: list[str] = []
    constant = [str(n) for n, c in frame.items() if c.nunique(dropna=False) == 1]
    if constant:
        word = "column" if len(constant) == 1 else "columns"
        findings.append(
            f"{len(constant)} {word} with a single value, which rules cannot use: "
            f"{listed(constant)}"
        )
    name_of_numbers: dict[bytes, str] = {}
    name_of_codes: dict[bytes, str] = {}
    for name, column in frame.items():
        name = str(name)
        if name in constant:
            continue
        twin = name
        codes, values = pd.factorize(column)
        if column.dtype.kind in "if":
            twin = name_of_numbers.setdefault((column.to_numpy(float) + 0.0).tobytes(), name)
        if column.dtype == object or len(values) <= _MAX_REPEATED_VALUES:
            same_codes = name_of_codes.setdefault(codes.tobytes(), name)
            # Numeric columns with equal codes may still order the rows differently.
            if twin == name and object in (column.dtype, frame[same_codes].dtype):
                twin = same_codes
        if twin != name:
            findings.append(
                f"columns {twin!r} and {name!r} are equal, and rules may use either; to leave one "
                f"out: --drop {quoted(name)}"
            )
        if column.dtype.kind in "if" and _counts_rows(column):
            findings.append(_row_number_text(name))
    return findings


def _row_number_text(name: str) -> str:
    """Return a message about consecutive integers, which may number the rows or their times."""
    if is_time_name(name) and not _DATE_PART.fullmatch(name):
        return (
            f"column {name!r} has a different value in each row, so rules that use it do not apply "
            f"to later rows; to hold out later rows instead: --time {quoted(name)}"
        )
    return (
        f"column {name!r} looks like row numbers, so rules that use it do not apply to other rows; "
        f"to leave it out: --drop {quoted(name)}"
    )


def quoted(name: str) -> str:
    """Quote a column name for an option of the command line that takes a list."""
    return shlex.quote(f'"{name}"' if "," in name else name)


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a table, shared by `read_table` and `load_dataset`.

    Parameters
    ----------
    decimal : {".", ","}, optional
        Decimal sign. By default it is detected from the numbers.
    na_values : str or sequence of str, default=()
        Further texts that mean a missing value, such as ``"-999"`` in all columns or
        ``"income=99"`` in the column income.
    numeric : str or sequence of str, default=()
        Columns to read as numbers; other text in them is missing. They are never dropped.
    categories : str or sequence of str, default=()
        Columns to read as categories although they contain numbers or rarely repeat. They are never
        dropped. Other columns of text are always categories.
    drop : str or sequence of str, default=()
        Columns to drop.
    features : str, sequence of str or None, default=None
        Columns to read, or parts of dates such as ``"paid on: month"``; all others, and their
        problems, are ignored. None reads all columns except those in `drop` and identifiers.
    sample : int, optional
        Number of rows to draw at random. By default all rows are read.
    random_state : int, default=0
        Seed of the sample.
    max_categories : int, default=20
        Maximum number of categories; the most frequent ones are kept, others become ``"other"``.
    preparation : Preparation, optional
        Record of another table. Exactly its columns are read, in the same way.
    groups : str, optional
        Column with the groups of rows that belong together, such as patients. It is a feature only
        if `features` names it.
    time : str, optional
        Column of dates or numbers by which rows are ordered. Of dates, only month, weekday and
        hour become features; numbers become a feature only if `features` names the column.
    since : str or float, optional
        First date or number of `time` to read; earlier rows are dropped.
    header : int or sequence of int, optional
        Rows of a file with the names of the columns, counted from 1; names of several rows are
        joined. By default, the header is detected, and titles above it, units below it and totals
        below the data are dropped.
    skip_rows : int, optional
        Number of rows above the header.
    labels : mapping of str to str, default={}
        New names of target classes, such as ``{"Well": "well"}``; classes with the same new name
        are merged, other classes keep their names. A class that is written like a missing value is
        kept if it is named here, as in ``{"NA": "NA"}``.
    drop_duplicates : bool, default=False
        Whether to drop rows that equal an earlier one in all features and the target.

    Examples
    --------
    >>> from skescore.datasets import ReadingOptions
    >>> ReadingOptions(drop="name").drop
    ('name',)
    """

    decimal: str | None = None
    na_values: str | Sequence[str] = ()
    numeric: str | Sequence[str] = ()
    categories: str | Sequence[str] = ()
    drop: str | Sequence[str] = ()
    features: str | Sequence[str] | None = None
    sample: int | None = None
    random_state: int = 0
    max_categories: int = MAX_CATEGORIES
    preparation: Preparation | None = None
    groups: str | None = None
    time: str | None = None
    since: str | float | None = None
    header: int | Sequence[int] | None = None
    skip_rows: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    drop_duplicates: bool = False

    @property
    def layout(self) -> LayoutOptions:
        """Options for the rows of the header."""
        header = self.header
        if header is not None:
            header = (header,) if isinstance(header, int) else tuple(header)
        return LayoutOptions(header, self.skip_rows)

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise DatasetError(f"decimal must be '.' or ',', got {self.decimal!r} (--decimal).")
        if self.since is not None and self.time is None:
            raise DatasetError(
                f"since={self.since!r} needs the column of the time: pass time=... (on the command "
                "line: --time)."
            )
        numbers = (*(self.layout.header or ()), (self.skip_rows or 0) + 1)
        if not all(isinstance(n, int) and n >= 1 for n in numbers):
            raise DatasetError(
                "header must be numbers of rows from 1 (--header), and skip_rows an integer of at "
                f"least 0 (--skip-rows), got {self.header!r} and {self.skip_rows!r}."
            )
        for name in ("na_values", "numeric", "categories", "drop"):
            object.__setattr__(self, name, _tuple(getattr(self, name)))
        if self.features is not None:
            object.__setattr__(self, "features", _tuple(self.features))


def prepare(
    raw: FileTable,
    where: str,
    options: ReadingOptions,
    *,
    target: str | None = None,
    problems: Problems | None = None,
) -> Table:
    """Read a table of raw cells; see `read_table`.

    The index of the result counts the rows of the file. Problems are added to `problems`, or
    raised if it is None.
    """
    table_problems = Problems(where) if problems is None else problems
    findings = list(raw.findings)
    preparation = options.preparation
    previous_sign = None if preparation is None else preparation.decimal
    sign = options.decimal or _detect_decimal_sign(raw, previous_sign, findings)
    if sign == ",":
        raw = raw.with_decimal_comma()
    categories = set(options.categories)
    if preparation is not None:
        categories |= {column.name for column in preparation.columns if column.kind == "category"}
    categories -= set(options.numeric)
    if preparation is None:
        codes = _code_columns(raw.frame, options, target)
        categories |= {name for name, _ in codes}
        options = replace(options, categories=(*options.categories, *(name for name, _ in codes)))
        findings += [
            Conversion(
                name,
                "category",
                f"column {name!r} holds {count} different integers and is named like a code, so "
                f"it is read as categories; to read it as numbers: --numeric {quoted(name)}",
            )
            for name, count in codes
        ]
    classes = () if preparation is None else preparation.classes
    padded_names = _restore_padded_names(raw, categories, target, classes, findings)
    frame = raw.frame.assign(**padded_names).rename(columns=str)
    for reading in () if preparation is None else preparation.columns:
        if reading.words and reading.name in frame.columns:
            frame[reading.name] = raw.with_words(frame[reading.name], reading.words)
    class_names = {*options.labels, *(() if preparation is None else preparation.labels)}
    missing_labels = pd.Series(dtype=object)
    if target is not None and target in frame.columns:
        frame[target] = raw.with_words(frame[target], class_names)
        missing_labels = raw.missing_texts(frame[target])
    if options.sample is not None and options.sample < len(frame):
        size = f"{options.sample} of the {len(frame)} rows"
        findings.append(f"only a random sample of {size} is used")
        frame = frame.sample(options.sample, random_state=options.random_state).sort_index()
    reader = _Reader(frame, table_problems, options, sign == ",", findings, written=raw.written)
    if preparation is None:
        _note_unknown_columns(options.na_values, list(frame.columns), findings)
        readings, columns = reader.read_all(target)
        na_values = (*options.na_values, *reader.words_of_file)
        preparation = Preparation(readings, na_values, sign)
    else:
        changed_sign = sign if sign != previous_sign else None
        columns = _read_as_prepared(frame, preparation, options, changed_sign, findings)
    if target is not None and target in frame.columns:
        columns[target], target_reading = _convert_target(frame[target], reader, class_names)
        if preparation.target is None:
            preparation = replace(preparation, target=target_reading)
        if options.preparation is None:
            reader.note_sentinel(target, columns[target])
        if not pd.api.types.is_numeric_dtype(columns[target]):
            missing_labels = missing_labels[missing_labels.index.isin(frame.index)]
            _note_missing_labels(target, missing_labels, findings, options)
    if problems is None:
        table_problems.check()
    identifiers = tuple(n for why in _IDENTIFYING for n in reader.left_out.get(why, ()))
    table = pd.DataFrame(columns, index=frame.index)
    return Table(table, tuple(findings), preparation, identifiers)


def _code_columns(
    frame: pd.DataFrame, options: ReadingOptions, target: str | None
) -> list[tuple[str, int]]:
    """Return columns of integers that are named like codes, with their numbers of values."""
    if options.features is not None:
        return []
    excluded = {target, options.groups, options.time, *options.drop}
    excluded |= {*options.numeric, *options.categories}
    codes = []
    for name, column in frame.items():
        is_number = pd.api.types.is_numeric_dtype(column.dtype) and column.dtype != bool
        if str(name) in excluded or not is_number or not is_code_name(str(name)):
            continue
        values = column.dropna().astype(float)
        n_values = int(values.nunique())
        if _is_whole(values) and _MIN_CODES <= n_values <= len(values) / _MIN_ROWS_OF_CODE:
            codes.append((str(name), n_values))
    return codes


def _read_as_prepared(
    frame: pd.DataFrame,
    preparation: Preparation,
    options: ReadingOptions,
    decimal: str | None,
    findings: list[str],
) -> dict[str, pd.Series]:
    """Read the columns that an earlier table had, possibly with another decimal sign."""
    columns: dict[str, pd.Series] = {}
    na_values = (*preparation.na_values, *options.na_values)
    # If one column contains both decimal signs, other columns may use either of them.
    if any((c.decimal, c.thousands) == EITHER_SIGN for c in preparation.columns):
        decimal = options.decimal
    for reading in _readings_in(preparation, list(frame.columns)):
        for kind, names in (("category", options.categories), ("number", options.numeric)):
            if reading.name in names and reading.kind != kind:
                reading = ColumnReading(reading.name, kind)
        if options.features is None or {*reading.features} & {*options.features}:
            column = _convert_cells(frame[reading.name])
            # A column whose sign differs from that of the earlier table keeps its sign.
            is_own = reading.decimal != (preparation.decimal or ".")
            sign = options.decimal if is_own else decimal
            columns |= _read_prepared(column, reading, na_values, sign, findings)
    return columns


def _restore_padded_names(
    raw: FileTable,
    names: set[str],
    target: str | None,
    classes: Collection[object],
    findings: list[str],
) -> dict[str, pd.Series]:
    """Return the texts of the columns of numbers that are names, because 01 differs from 1."""
    if raw.texts is None:  # the numbers were never text
        return {}
    integer_columns = [str(n) for n, c in raw.frame.items() if raw.may_pad and _may_be_padded(c)]
    padded_classes = [c for c in classes if isinstance(c, str) and re.fullmatch(_PADDED, c)]
    has_padded = bool(padded_classes) and raw.may_pad and target in raw.frame.columns
    texts = raw.as_written({*names, *integer_columns, *([str(target)] if has_padded else ())})
    columns = {}
    for name in map(str, texts.columns):
        if name in names:
            columns[name] = texts[name]
        elif name == target:
            has_classes = bool(texts[name].isin(padded_classes).any())
            if has_classes or _are_padded_names(texts[name], raw.frame[name]):
                columns[name] = texts[name]
        else:
            _note_padded(name, texts[name].dropna(), findings)
    return columns


def _note_padded(name: str, texts: pd.Series, findings: list[str]) -> None:
    """Report leading zeros, which are lost when texts are read as numbers."""
    padded = texts[texts.str.fullmatch(_PADDED).astype(bool)]
    if len(padded):
        text = (
            f"column {name!r} holds numbers with leading zeros, first {padded.iloc[0]!r}, which "
            f"are read without them; if they are names: --category {quoted(name)}"
        )
        findings.append(Conversion(name, "number", text))


def _are_padded_names(texts: pd.Series, numbers: Any) -> bool:
    """Return whether numbers with leading zeros are names: few values, or 01 as well as 1."""
    present = texts.dropna()
    if not present.str.fullmatch(_PADDED).any() or not present.str.fullmatch(r"[+-]?\d+").all():
        return False
    n_values = pd.Series(numbers).nunique()
    return bool(texts.nunique() > n_values or n_values <= MAX_CATEGORIES)


def _may_be_padded(column: pd.Series) -> bool:
    """Return whether all numbers are integers, which may be written with leading zeros."""
    if pd.api.types.is_integer_dtype(column.dtype):
        return True
    is_float = pd.api.types.is_float_dtype(column.dtype)
    return is_float and bool(column.isna().any()) and _is_whole(column)


def _is_copy(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column equals another one with the same name in the header."""
    original = re.sub(r"\.\d+$", "", name)
    return original != name and original in frame.columns and frame[name].equals(frame[original])


def _readings_in(preparation: Preparation, columns: Sequence[str]) -> Iterator[ColumnReading]:
    """Yield the readings of columns of a table; parts of dates may be separate columns."""
    for reading in preparation.columns:
        if reading.name in columns:
            yield reading
        elif reading.kind == "date":
            for name, part in zip(reading.features, reading.parts, strict=True):
                if name in columns:
                    yield ColumnReading(name, "category" if part == "weekday" else "number")


#: Decimal sign and thousands separator, by decimal sign.
_STYLE_OF = {".": (".", ","), ",": (",", ".")}


def _read_prepared(
    column: pd.Series,
    reading: ColumnReading,
    na_values: Sequence[str],
    decimal: str | None,
    findings: list[str],
) -> dict[str, pd.Series]:
    """Read a column as in an earlier table, possibly with another decimal sign."""
    cells = None
    if not (pd.api.types.is_numeric_dtype(column.dtype) or _is_dates(column)):
        cells = _Cells.of(column, na_values)
    if reading.kind == "number" and cells is not None and len(cells.texts):
        style = (reading.decimal, reading.thousands)
        if decimal and style != EITHER_SIGN:
            style = _STYLE_OF[decimal]
        texts = cells.texts.tolist()
        detected_style = style_of(texts)
        readings = [
            replace(reading, decimal=signs[0], thousands=signs[1])
            for signs in dict.fromkeys((style, detected_style))
        ]
        missing_masks = [np.isnan(_parse_numbers(texts, candidate)) for candidate in readings]
        index = int(np.argmin([mask.sum() for mask in missing_masks]))
        reading = readings[index]
        _note_words(reading.name, cells, missing_masks[index], findings)
    elif (
        column.notna().any()
        and pd.api.types.is_numeric_dtype(column.dtype)
        and (divisor := plain_divisor(reading.unit)) != 1
    ):
        effect = "read as in this unit" if np.isnan(divisor) else f"divided by {divisor:.0f}"
        column = column if np.isnan(divisor) else column / divisor
        findings.append(
            f"column {reading.name!r} holds numbers without the unit {reading.unit!r} of the "
            f"earlier table, {effect}"
        )
    if reading.kind == "number" and _is_dates(column) and column.notna().any():
        findings.append(
            f"column {reading.name!r} holds dates, which are read as missing, because the earlier "
            f"table has numbers in this column ({plural(int(column.notna().sum()), 'row')})"
        )
        column = pd.Series(np.nan, index=column.index)
    if reading.kind == "date" and not _is_dates(column):
        cells = _Cells.of(column, na_values)
        if reading.format is None:
            dates = cells.texts[~_are_null_words(cells.texts)]
            date_format = _detect_date_format(dates) or _detect_mixed_formats(dates)
            if date_format is not None:
                _note_day_order(reading.name, cells, date_format, findings)
            reading = replace(reading, format=date_format)
        date_mask = _parse_dates(cells, reading.format).notna().to_numpy()
        _note_words(reading.name, cells, ~date_mask, findings)
    return _make_features(column, cells, reading, na_values)


def _sources(features: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the columns from which features are read; a part of a date is read from its date."""
    sources = []
    for name in features:
        match = None if name in columns else _DATE_PART.fullmatch(name)
        source = name if match is None else match["name"]
        if source in columns:
            sources.append(source)
    return list(dict.fromkeys(sources))


def _note_missing_labels(
    target: str, texts: pd.Series, findings: list[str], options: ReadingOptions
) -> None:
    """Report the words of a categorical target that are read as missing, but may be classes."""
    if not len(texts):
        return
    counts = texts.value_counts()
    words = ", ".join(f"{word!r} ({plural(n, 'row')})" for word, n in counts.items())
    labels = shlex.quote(",".join(f"{word}={word}" for word in counts.index))
    # Saved rules contain the classes of the first table, so later tables cannot add classes.
    is_first_table = options.preparation is None
    remedy = f"; to keep them as classes: --labels {labels}" if is_first_table else ""
    findings.append(f"read as missing in the target {target!r}: {words}{remedy}")


def _convert_target(
    column: pd.Series, reader: _Reader, class_names: Collection[str]
) -> tuple[pd.Series, ColumnReading | None]:
    """Read the target: as numbers if all its texts are numbers, otherwise unchanged.

    Texts among `class_names` are classes even if they usually mean a missing value. Also return how
    texts were read as numbers, if they were: if possible, as in an earlier table.
    """
    column = _without_categorical(column)
    name, earlier = str(column.name), reader.options.preparation
    na_values = (*reader.options.na_values, *(() if earlier is None else earlier.na_values))
    earlier_target = None if earlier is None else earlier.target
    if earlier is not None and earlier_target is not None and not _is_dates(column):
        with contextlib.suppress(DatasetError):  # other cells are handled below
            return replace(earlier, na_values=na_values).read_target(column), earlier_target
    if pd.api.types.is_numeric_dtype(column.dtype) or _is_dates(column):
        return _without_codes(column, na_values), None
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind == "boolean" or kind.startswith("timedelta"):
        return column, None
    cells = _class_cells(column, na_values, class_names)
    if not len(cells.texts):
        return column.astype(object).mask(column.notna()), None
    texts = cells.texts.tolist()
    style = style_of(texts, reader.options.decimal, comma_first=reader.comma_first)
    values = as_numbers(texts, *style)
    number_mask = ~np.isnan(values)
    is_class = cells.texts.isin(class_names).to_numpy()
    only_words = (number_mask | (_are_null_words(cells.texts) & ~is_class)).all()
    has_booleans = cells.texts.str.lower().isin(("true", "false")).any()
    are_plain_numbers = pd.to_numeric(cells.texts, errors="coerce").notna().all()
    # As in `_restore_padded_names`: 01 and 1 differ, and few numbers with leading zeros are names.
    has_names = _are_padded_names(cells.texts[number_mask], values[number_mask])
    is_quantity = not (has_booleans or are_plain_numbers or has_names)
    # Texts are classes if they do not fit an earlier target, or if rules have classes such as "$5".
    texts_of_classes = (
        set() if earlier is None else {c for c in earlier.classes if isinstance(c, str)}
    )
    is_quantity &= earlier_target is None and texts_of_classes.isdisjoint(texts)
    if number_mask.any() and only_words and is_quantity:
        _note_words(name, cells, ~number_mask, reader.findings)
        reader.note_separator(name, cells.texts[number_mask].tolist(), style)
        numbers = _number_series(cells.per_row(values, np.nan), column.index)
        return numbers, ColumnReading(name, "number", *style)
    # An earlier target may have another unit or none, so these numbers may not be comparable.
    may_have_units = earlier_target is None and not has_booleans
    quantities = reader.quantities(name, cells) if may_have_units else None
    if quantities is not None:
        values, reading = quantities
        return _number_series(cells.per_row(values, np.nan), column.index), reading
    _note_words(name, cells, _missing_classes(cells, class_names), reader.findings)
    return _classes_in(cells, column, class_names), None


def _class_cells(
    column: pd.Series, na_values: Sequence[str], class_names: Collection[str]
) -> _Cells:
    """Return the cells of a target of classes; names of classes never mean a missing value."""
    words = na_values_of(column.name, na_values)
    return _Cells.of(column, [word for word in words if word not in class_names])


def _missing_classes(cells: _Cells, class_names: Collection[str]) -> np.ndarray:
    """Return a mask of missing labels: question marks, or all null words if labels are numbers."""
    is_class = cells.texts.isin(class_names).to_numpy()
    is_word = _are_null_words(cells.texts) & ~is_class
    others = cells.texts[~is_word].tolist()
    has_booleans = any(text.lower() in ("true", "false") for text in others)
    if has_booleans or not others or np.isnan(as_numbers(others, *style_of(others))).any():
        return is_word & (cells.texts == "?").to_numpy()
    return is_word


def _classes_in(cells: _Cells, column: pd.Series, class_names: Collection[str]) -> pd.Series:
    """Return the classes of a column, with NaN for missing ones."""
    is_missing = _missing_classes(cells, class_names)
    labels = np.where(is_missing, np.nan, cells.texts.to_numpy(object))
    return pd.Series(cells.per_row(labels, np.nan), index=column.index, dtype=object)


def read_cells(
    path: Path,
    where: str,
    *,
    separator: str | None,
    encoding: str | None,
    layout: LayoutOptions | None,
    decimal: str | None,
    preparation: Preparation | None,
) -> FileTable:
    """Read the cells of a file; if there is a preparation, numbers may have a decimal comma.

    The decimal sign is in the attributes of the frame.
    """
    table = read_file(path, where, separator=separator, encoding=encoding, layout=layout)
    if preparation is None:
        return table
    sign = decimal or _detect_decimal_sign(table, preparation.decimal, [])
    table = table.with_decimal_comma() if sign == "," else table
    frame = table.frame.copy()
    frame.attrs["decimal"] = sign
    return replace(table, frame=frame)


def read_raw(
    data: str | os.PathLike[str] | pd.DataFrame,
    *,
    sep: str | None,
    encoding: str | None,
    layout: LayoutOptions,
) -> tuple[FileTable, str]:
    """Read a file or a data frame; also return its name in messages."""
    if isinstance(data, pd.DataFrame):
        frame = data.reset_index(drop=True).rename(columns=str)
        check_unique(list(frame.columns), "the data frame")
        return FileTable(frame, ""), "the data frame"
    if isinstance(data, str | os.PathLike):
        where = os.fspath(data)
        path = expand_home(data)
        table = read_file(path, where, separator=sep, encoding=encoding, layout=layout)
        return table, where
    raise TypeError(f"data must be a path or a data frame, got {type(data).__name__}.")


def read_table(
    data: str | os.PathLike[str] | pd.DataFrame,
    *,
    target: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> Table:
    """Read a table that people have written, and detect the type of each column.

    Use it for files with decimal commas, currencies, words for missing values, dates or
    identifiers. `load_dataset` calls it and also checks the target.

    Parameters
    ----------
    data : str, path-like or pandas.DataFrame
        A data frame, or a path ending in .csv, .tsv, .tab, .txt (each also with .gz), .xlsx,
        .parquet or .pq.
    target : str, optional
        Column to predict. It is never dropped, all its classes are kept, and it is not one of the
        `columns` of the preparation.
    sep : str, optional
        Separator of the columns of a text file: one character, ``"tab"`` or ``"space"``. By
        default, comma, semicolon, tab, vertical bar or blanks are detected.
    encoding : str, optional
        Encoding of a text file. By default UTF-8, UTF-16 with its byte order mark, or Windows-1252
        is detected.
    **options : object
        Types of columns, missing values and further options, see :class:`ReadingOptions`.

    Returns
    -------
    Table
        Frame, messages and preparation.

    Raises
    ------
    DatasetError
        If the file cannot be read as a table, or a column of numbers contains text.

    Notes
    -----
    Numbers may have a currency, a percent sign or thousands separators (``$1,234.50``,
    ``1.234,50 €``). If the only text in a column of numbers is ``?`` or ``unknown``, it is missing.
    Booleans become 0 and 1. Dates become year, month, weekday, hour and days since the first date,
    as far as these vary. Other text is categorical. Row numbers, identifiers and text that rarely
    repeats are dropped. ``skrub.Cleaner`` detects the formats of dates.

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
    reading = ReadingOptions(**options)
    raw, where = read_raw(data, sep=sep, encoding=encoding, layout=reading.layout)
    columns = [str(name) for name in raw.frame.columns]
    for parameter in ("numeric", "categories", "drop", "features"):
        names = getattr(reading, parameter) or ()
        unknown = [n for n in names if n not in columns and not _sources([n], columns)]
        if unknown:
            close = nearest_names(unknown[0], columns)
            guess = f" Did you mean {close}?" if close else ""
            raise DatasetError(
                f"{where}: {parameter} must be among the columns, got {listed(unknown)}.{guess} "
                f"The columns are {listed(columns)}."
            )
    table = prepare(raw, where, reading, target=target)
    frame = table.frame.reset_index(drop=True)
    inputs = frame.drop(columns=[] if target is None else [target])
    further = note_equal(inputs) if reading.preparation is None else ()
    return table._replace(frame=frame, findings=(*table.findings, *further))


def _tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(map(str, names))


def _parse_numbers(texts: Sequence[str], reading: ColumnReading) -> np.ndarray:
    """Convert texts to numbers in the unit of a column; NaN if a text or its unit does not fit."""
    values = as_numbers(texts, reading.decimal, reading.thousands)
    if not reading.unit:
        return values
    values /= plain_divisor(reading.unit)
    split_texts = split_units(texts)
    unread = np.flatnonzero(np.isnan(values) & (np.array(split_texts.units, dtype=object) != ""))
    numbers = as_numbers(
        [split_texts.numbers[int(i)] for i in unread], reading.decimal, reading.thousands
    )
    factors = [unit_factor(split_texts.units[int(i)], reading.unit) for i in unread]
    # 90 / 60 is rounded once; 90 * (1 / 60) would be rounded twice.
    multipliers = np.array([np.nan if f is None else f.numerator for f in factors], dtype=float)
    divisors = np.array([1 if f is None else f.denominator for f in factors], dtype=float)
    values[unread] = numbers * multipliers / divisors
    return values
