"""Data sets by name or from a file, checked before a model or an extractor sees them.

Files are read by `_files` and tables checked by `_tables`; here is what users see of both,
the data sets that come along with scikit-learn, and those of OpenML by their number.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
import os
import re
import shlex
import socket
import warnings
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from skescore._optional import import_optional
from skescore._text import did_you_mean, listed

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "Task",
    "check_table",
    "check_unique",
    "load_dataset",
    "nearest",
    "read_file",
]


# --- checking of tables, so that no score is ever computed on a table that was misread -----------
# Whatever a later step could trip over (holes, text among numbers, a lost header, a single class)
# is refused here, with the column, the row and the way out.

Task = Literal["classification", "regression"]

# Numbers with more distinct values than this are a quantity, not a set of classes.
MAX_NUMERIC_CLASSES = 20
SHOWN = 12
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2}")
ROW_NOTE = "(data rows are counted from 1, without the header)"
DROP = "drop (on the command line: --drop)"
CATEGORY = "categories (on the command line: --category)"


class DatasetError(ValueError):
    """A data set cannot be used as it is; the text says where the trouble is and what to do."""

    __module__ = "skescore.datasets"  # where users import it from


def check_table(
    table: pd.DataFrame,
    where: str,
    *,
    target: str | None,
    task: str,
    drop: tuple[str, ...],
    features: tuple[str, ...] | None,
    missing: str,
    categories: tuple[str, ...] = (),
) -> tuple[pd.DataFrame, pd.Series, Task, int]:
    """Return the features, the target, its task and the number of rows left out.

    Rows of `table` must be numbered from 0. For the parameters see `load_dataset`; `where` names
    the table in errors.
    """
    names = list(table.columns)
    if target is None:
        raise DatasetError(
            f"{where}: target is missing. Name the column to be predicted, for example "
            f"{_remedy('target', names[-1])}. {_columns(names)}"
        )
    kept = _kept_columns(names, where, target, drop, features, categories)
    chosen = features is not None
    unnamed = [name for name in kept[:-1] if re.fullmatch(r"Unnamed: \d+(\.\d+)*|\s*", name)]
    if unnamed:
        raise DatasetError(
            f"{where}: the header has no name for {listed(unnamed)}, usually row numbers that "
            "pandas saved along, or a separator at the line ends. Pass "
            f"{_others(unnamed, chosen)}, or name the column."
        )
    if len(table) < 2:
        content = "a header but no data rows" if table.empty else "one data row only"
        raise DatasetError(f"{where} has {content}: at least 2 rows are needed.")
    rows = _without_missing(table[kept], where, missing, chosen)
    columns = {
        str(name): _names(rows[name])
        if name in categories
        else _numbers(rows[name], f"{where}: column {name!r}", _others([name], chosen))
        for name in kept[:-1]
    }
    y, resolved = _resolve_target(rows[target], f"{where}: target {target!r}", task)
    X = pd.DataFrame(columns).reset_index(drop=True)
    return X, y.reset_index(drop=True), resolved, len(table) - len(rows)


def _kept_columns(
    names: list[str],
    where: str,
    target: str,
    drop: tuple[str, ...],
    features: tuple[str, ...] | None,
    categories: tuple[str, ...],
) -> list[str]:
    """Refuse names that do not fit the table; return the features and, last, the target."""
    for parameter, wanted in [
        ("target", (target,)),
        ("drop", drop),
        ("features", features or ()),
        ("categories", categories),
    ]:
        unknown = [name for name in wanted if name not in names]
        if unknown:
            close = nearest(unknown[0], names) if len(unknown) == 1 else ""
            guess = f" Did you mean {close}?" if close else ""
            raise DatasetError(
                f"{where}: {parameter} must be among the columns, got {listed(unknown)}.{guess} "
                f"{_columns(names)}"
            )
    torn = [name for name in (target, *(features or ()), *categories) if name in drop]
    if torn:
        raise DatasetError(
            f"{where}: drop must not name the target, one of the features or one of the "
            f"categories, got {listed(torn)}. Take that out of {DROP}."
        )
    if target in categories:
        raise DatasetError(
            f"{where}: categories are features, but {target!r} is the target, whose text is read "
            f"as classes anyway. Leave it out of {CATEGORY}."
        )
    if features is None:
        features = tuple(name for name in names if name != target and name not in drop)
        if not features:
            raise DatasetError(
                f"{where}: no feature column is left beside the target {target!r}. Drop fewer "
                "columns, and see that columns are separated by a comma, semicolon, tab or "
                "vertical bar."
            )
    elif target in features:
        raise DatasetError(
            f"{where}: features must not contain the target, got {target!r} as both. Take it out "
            "of features, or pass another target (on the command line: --target)."
        )
    elif len(set(features)) != len(features) or not features:
        raise DatasetError(
            f"{where}: features must name at least one column and none of them twice, got "
            f"{features!r}. Leave features out to take all columns but the target."
        )
    return [*features, target]


def check_unique(names: list[str], where: str) -> None:
    """Refuse a header that has a name twice; blank ones are dealt with by `check_table`."""
    counts = Counter(name for name in names if name.strip())
    doubles = sorted(name for name, count in counts.items() if count > 1)
    if doubles:
        raise DatasetError(
            f"{where}: the header has the duplicate column names {listed(doubles)}: give every "
            f"column a name of its own.{_header_hint(names)}"
        )


def _without_missing(table: pd.DataFrame, where: str, missing: str, chosen: bool) -> pd.DataFrame:
    """Return the rows without holes, under their old numbers."""
    target = table.columns[-1]
    holes = table.isna()
    counts = holes.sum()
    counts = counts[counts > 0]
    if counts.empty:
        return table
    rows = holes.any(axis=1)
    full = counts == len(table)
    empty = [str(name) for name in counts.index[full] if name != target]
    if empty:
        raise DatasetError(
            f"{where}: {listed(empty)} has no values at all. Pass {_others(empty, chosen)}."
        )
    places = [
        f"{'the target column' if name == target else 'column'} {name!r} {count} "
        f"(first in data row {int(holes[name].to_numpy().argmax()) + 1})"
        for name, count in counts.head(SHOWN).items()
    ]
    more = f" and {len(counts) - SHOWN} more columns" if len(counts) > SHOWN else ""
    summary = f"{where}: missing values in {', '.join(places)}{more} {ROW_NOTE}."
    fewer = "pass other features" if chosen else f"leave out columns with {DROP}"
    if missing == "error":
        raise DatasetError(
            f"{summary} Empty cells and NA, NaN, null or None count as missing. Fill them in, or "
            f"pass {_remedy('missing', 'drop')} to leave out the {int(rows.sum())} of {len(table)} "
            f"rows that have one, or {fewer}."
        )
    kept = table[~rows]
    if len(kept) < 2:
        raise DatasetError(
            f"{summary} missing='drop' would leave {len(kept)} of {len(table)} rows, at least 2 "
            f"are needed. Fill cells in, or {fewer}."
        )
    return kept


def _numbers(column: pd.Series, place: str, way_out: str) -> pd.Series:
    """Return float64 or int64; an error shows the first cell that is not a finite number."""
    _refuse_dates(column, place, way_out)
    numbers = _parsed(column)
    bad = numbers.isna().to_numpy()
    if bad.any():
        cell, value = _first_cell(column, bad)
        if bad.mean() > 0.5:
            raise DatasetError(
                f"{place} is text, first {cell}.{_cell_hint(value)} Declare it, "
                f"{_remedy('category', str(column.name))}, for extractors that read categories; "
                f"or encode it as numbers, such as one 0/1 column per value; or pass {way_out}."
            )
        raise DatasetError(
            f"{place} should be numbers but has text in {int(bad.sum())} of {len(bad)} rows, "
            f"first {cell}.{_cell_hint(value)} Correct the file, or pass {way_out}."
        )
    endless = np.isinf(numbers.to_numpy())
    if endless.any():
        cell, _ = _first_cell(numbers, endless)
        raise DatasetError(
            f"{place} has {int(endless.sum())} infinite values, first {cell}. Put a finite number "
            f"there, or leave the cell empty and pass {_remedy('missing', 'drop')}."
        )
    return numbers


def _names(column: pd.Series) -> pd.Series:
    """Return the values of a categorical column as text; whole numbers without a point."""
    if pd.api.types.is_float_dtype(column.dtype) and (column == np.floor(column)).all():
        column = column.astype("int64")
    return column.astype(str).astype(object)


def _parsed(column: pd.Series) -> pd.Series:
    """Return int64 or float64, with NaN where a cell is no number."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    numbers = pd.to_numeric(column, errors="coerce")
    whole = pd.api.types.is_bool_dtype(numbers) or pd.api.types.is_signed_integer_dtype(numbers)
    return numbers.astype("int64" if whole else "float64")


def _resolve_target(column: pd.Series, place: str, task: str) -> tuple[pd.Series, Task]:
    """Return labels or numbers to predict, and which of the two they are."""
    as_classes = _remedy("task", "classification")
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        if task == "regression":
            raise DatasetError(f"{place} is true or false, not a quantity. Pass {as_classes}.")
        return _checked_classes(column.astype(bool), place), "classification"
    _refuse_dates(column, place, "another target (on the command line: --target)")
    is_text = not pd.api.types.is_numeric_dtype(column)
    # Numbers with a slip of the pen must not turn into a class per number, nor dates into classes.
    if is_text and task == "auto":
        is_text = not 0.5 <= _parsed(column).notna().mean() < 1
        if all(isinstance(label, str) and re.match(DATE, label) for label in column.unique()):
            raise DatasetError(
                f"{place} looks like dates, such as {column.iloc[0]!r}. Turn them into numbers, "
                f"such as the year, or pass {as_classes} if each date is a class."
            )
    if is_text and task != "regression":
        return _checked_classes(column.astype(str).astype(object), place), "classification"
    numbers = _numbers(column, place, as_classes)
    values = numbers.to_numpy()
    broken = values != np.floor(values)
    if task == "auto":
        many = len(np.unique(values)) > MAX_NUMERIC_CLASSES
        task = "regression" if many or broken.any() else "classification"
    if task == "classification":
        if broken.any():
            cell, _ = _first_cell(numbers, broken)
            raise DatasetError(
                f"{place} has numbers that are not whole, first {cell}, so they cannot be classes. "
                f"Pass {_remedy('task', 'regression')}, or write the classes as words."
            )
        return _checked_classes(numbers.astype("int64"), place), "classification"
    if (values == values[0]).all():
        raise DatasetError(
            f"{place} is {values[0].item()!r} in every row, so there is nothing to predict. "
            "Choose another target (on the command line: --target)."
        )
    return numbers.astype("float64"), "regression"


def _checked_classes(labels: pd.Series, place: str) -> pd.Series:
    n_classes, example = labels.nunique(), labels.tolist()[0]
    if n_classes == 1:
        raise DatasetError(
            f"{place} has only one class, {example!r}, in all {len(labels)} rows; classification "
            "needs two or more. Choose another target (on the command line: --target)."
        )
    if n_classes == len(labels) > MAX_NUMERIC_CLASSES:
        raise DatasetError(
            f"{place} has a class of its own in each of the {len(labels)} rows, such as "
            f"{example!r}, as identifiers and dates do. Choose another target (on the command "
            f"line: --target), or pass {_remedy('task', 'regression')} if it is a quantity."
        )
    return labels


def _refuse_dates(column: pd.Series, place: str, way_out: str) -> None:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"):
        raise DatasetError(
            f"{place} holds dates or times. Turn them into numbers, such as the year or the days "
            f"since a start, or pass {way_out}."
        )


# Wording ------------------------------------------------------------------------------------------


def _first_cell(column: pd.Series, where: np.ndarray) -> tuple[str, object]:
    """Return the first cell marked in `where`, in words and as it is."""
    first = int(where.argmax())
    value = column.iloc[first]
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value!r} in data row {column.index[first] + 1} {ROW_NOTE}", value


def _cell_hint(value: object) -> str:
    if not isinstance(value, str):
        return ""
    if re.fullmatch(r"[+-]?[\d.]*\d,\d+", value):
        return " Numbers are written with a decimal point and no other comma, as 1234.5."
    if value in ("?", "-", "--", ".", "*"):
        return f" If {value!r} stands for a missing value, leave the cell empty."
    if re.match(DATE, value):
        return " It looks like dates: turn them into numbers, such as the year."
    return ""


def _header_hint(names: Sequence[str]) -> str:
    numeric = [name for name in names if re.fullmatch(r"[+-]?\d*\.?\d+([eE][+-]?\d+)?", name)]
    if 2 * len(numeric) >= len(names) and any("." in name for name in numeric):
        return " The first line looks like data, not names: put a header line above it."
    return ""


def _others(columns: Sequence[str], chosen: bool) -> str:
    """Return what to pass so that these columns are not asked for."""
    return "other features" if chosen else _remedy("drop", *columns)


def _columns(names: Sequence[str]) -> str:
    return f"The columns are {listed(names)}.{_header_hint(names)}"


def _remedy(parameter: str, *values: Any) -> str:
    """Return one remedy for both doors: the Python parameter and the command-line flag."""
    listing = {"drop": "drop", "category": "categories"}
    given = repr(values) if parameter in listing else repr(values[0])
    flags = " ".join(f"--{parameter} {shlex.quote(str(value))}" for value in values)
    return f"{listing.get(parameter, parameter)}={given} (on the command line: {flags})"


def nearest(name: object, known: Sequence[str]) -> str:
    """Return the names most like this one, in quotation marks and joined by "or"."""
    folded = {each.casefold(): each for each in reversed(known)}
    near = difflib.get_close_matches(str(name).casefold(), folded)
    return " or ".join(repr(folded[each]) for each in near)


# --- reading tables from files: text in several dialects, and Parquet ----------------------------
# What is read is handed on as it is in the file. Only what would be misread is refused here, with
# the file, the line and the way out.

# The usual separator of each kind of text file; the header line may show another one.
TEXT_KINDS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET_KINDS = (".parquet", ".pq")
SEPARATORS = (",", ";", "\t", "|")
LINE_NOTE = "(the header is line 1)"


def read_file(path: Path, where: str) -> tuple[pd.DataFrame, str]:
    """Return the table as it is in the file, with rows numbered from 0, and the checksum.

    `where` names the file in errors, as its user did.
    """
    try:
        with path.open("rb") as raw:
            start = raw.read(4096)
            raw.seek(0)
            checksum = hashlib.file_digest(raw, "sha256").hexdigest()
    except FileNotFoundError:
        raise  # only the caller knows what else the name could have meant
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and path.is_dir():
            raise DatasetError(f"{where} is a folder: pass one of the files in it.") from error
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(
            f"{where} cannot be read: {reason}. Check its name and its access rights."
        ) from error
    if not start:
        raise DatasetError(f"{where} is empty: it needs a header line and data rows.")
    stem = path.name.lower().removesuffix(".gz")
    suffix, compressed = Path(stem).suffix, stem != path.name.lower()
    if suffix in PARQUET_KINDS and not compressed:
        return _read_parquet(path, where, start), checksum
    if suffix in TEXT_KINDS:
        return _read_text(path, where, TEXT_KINDS[suffix], compressed), checksum
    raise DatasetError(
        f"{where} has the unknown ending {path.suffix!r}: it must be .csv, .tsv, .tab, .txt (each "
        "also with .gz), .parquet or .pq. Save the table as CSV."
    )


def _read_parquet(path: Path, where: str, start: bytes) -> pd.DataFrame:
    if not start.startswith(b"PAR1"):
        raise DatasetError(f"{where} is not a Parquet file: rename it by what it is, such as .csv.")
    try:
        parquet = import_optional(
            "pyarrow.parquet", extra="parquet", purpose="Reading a Parquet file"
        )
    except ImportError as error:
        raise DatasetError(f"{where} cannot be read. {error}") from error
    # An open file, because from a path pyarrow would also read columns out of folder names.
    with path.open("rb") as raw:
        try:
            names = list(parquet.read_schema(raw).names)
            check_unique(names, where)
            raw.seek(0)
            table = pd.read_parquet(raw, engine="pyarrow")
        except DatasetError:
            raise
        except (ValueError, OSError, NotImplementedError) as error:
            raise DatasetError(f"{where} is a damaged Parquet file: {error}") from error
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    table.columns = pd.Index([str(column) for column in table.columns])
    return table.reset_index(drop=True)


def _read_text(path: Path, where: str, separator: str, compressed: bool) -> pd.DataFrame:
    opener: Any = gzip.open if compressed else open
    try:
        with opener(path, "rb") as raw:
            _refuse_binary(raw.read(4096), where)
        with opener(path, "rt", encoding="utf-8-sig", newline="") as text:
            separator, header = _sniff(text, separator)
        check_unique(header, where)
        with warnings.catch_warnings():
            # pandas only warns when all rows have more cells than the header, and cuts them off.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                sep=separator,
                compression="gzip" if compressed else None,
                encoding="utf-8",
                engine="c",
                low_memory=False,  # one type per column, however long the file
                index_col=False,
                skipinitialspace=True,
            )
    except UnicodeDecodeError as error:
        raise DatasetError(_not_utf8(path, where, opener)) from error
    except pd.errors.EmptyDataError as error:
        raise DatasetError(f"{where} is empty: it needs a header line and data rows.") from error
    except pd.errors.ParserWarning as error:
        raise DatasetError(
            f"{where}: the data rows have more cells than the header, which has {len(header)}. "
            f"Name every column, and put cells that hold {separator!r} in quotation marks."
        ) from error
    except (pd.errors.ParserError, csv.Error) as error:
        raise DatasetError(_malformed(str(error), where, separator)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{where} is damaged or cannot be read: {error}") from error


def _sniff(text: Any, usual: str) -> tuple[str, list[str]]:
    """Return the separator for which header and first row agree, and the names in the header."""
    heads: dict[str, list[list[str]]] = {}
    for separator in dict.fromkeys((usual, *SEPARATORS)):
        text.seek(0)
        records = csv.reader(text, delimiter=separator, skipinitialspace=True)
        # Like pandas, skip blank lines; a line of nothing but separators is not blank.
        filled = (record for record in records if len(record) > 1 or any(record))
        heads[separator] = list(islice(filled, 2)) or [[]]
        widths = {len(record) for record in heads[separator]}
        if len(widths) == 1 and min(widths) > 1:
            return separator, heads[separator][0]
    best = max(heads, key=lambda separator: len(heads[separator][0]))
    return best, heads[best][0]


def _refuse_binary(start: bytes, where: str) -> None:
    disguises = {
        b"PAR1": "a Parquet file: rename it to end in .parquet",
        b"\x1f\x8b": "compressed with gzip: rename it to end in .gz",
        b"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or save the sheet as CSV",
        b"\xff\xfe": "text in the encoding UTF-16: save it as UTF-8",
        b"\xfe\xff": "text in the encoding UTF-16: save it as UTF-8",
    }
    for magic, meaning in disguises.items():
        if start.startswith(magic):
            raise DatasetError(f"{where} is {meaning}.")
    if b"\0" in start:
        raise DatasetError(f"{where} is binary, not text: save the table as CSV in UTF-8.")


def _not_utf8(path: Path, where: str, opener: Any) -> str:
    """Find the first line that is not UTF-8; only read once the quick way has failed."""
    place = ""
    with opener(path, "rb") as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                place = f": line {number} {LINE_NOTE} has the byte 0x{line[error.start]:02x}"
                break
    return (
        f"{where} is not in the encoding UTF-8{place}. Save it as UTF-8; if it comes from an older "
        f"Windows program: iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(where)}"
    )


def _malformed(message: str, where: str, separator: str) -> str:
    """Say the tokenizer's complaint in terms of the file."""
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if found:
        expected, line, saw = found.groups()
        return (
            f"{where}: line {line} {LINE_NOTE} has {saw} cells, the header {expected}. Put cells "
            f"that hold {separator!r} in quotation marks, or take the extra cell away."
        )
    found = re.search(r"EOF inside string starting at row (\d+)", message)
    if found:
        line = str(int(found[1]) + 1)
        return f"{where}: a quotation mark opened in line {line} {LINE_NOTE} is never closed."
    return f"{where} cannot be read as a table: {message.strip()}. Save it as CSV again."


# --- Data sets by name or from a file, checked before a model or an extractor sees them ----------


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """The name is neither a built-in data set nor an existing file."""

    __module__ = "skescore.datasets"  # where users import it from


class BuiltIn(NamedTuple):
    """Where a built-in data set comes from and what its target means.

    `function` and `options` name a maker of `sklearn.datasets`; `classes` are the class names in
    the order of its integer codes, where scikit-learn has none of its own.
    """

    function: str
    task: Task
    target: str
    summary: str
    options: Mapping[str, Any] = MappingProxyType({})
    classes: tuple[str, ...] | None = None

    @property
    def source(self) -> str:
        """The call that makes the data."""
        options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"sklearn.datasets.{self.function}({options})"


# Noise of 125 and 0.1 gives Friedman's second and third problem his signal-to-noise ratio of three
# to one. Circles at the default factor of 0.8 would drown in the noise, hence 0.5. Diabetes keeps
# the units of the measurements, since a rule on standardised ages tells a reader nothing.
BUILT_IN: Mapping[str, BuiltIn] = MappingProxyType(
    {
        "iris": BuiltIn("load_iris", "classification", "species", "three species of iris flowers"),
        "wine": BuiltIn("load_wine", "classification", "cultivar", "chemistry of three cultivars"),
        "breast_cancer": BuiltIn(
            "load_breast_cancer", "classification", "diagnosis", "cell nuclei of breast tumours"
        ),
        "digits": BuiltIn(
            "load_digits", "classification", "digit", "handwritten digits, 8 x 8 pixels"
        ),
        "diabetes": BuiltIn(
            "load_diabetes",
            "regression",
            "progression",
            "progression of diabetes after one year",
            {"scaled": False},
        ),
        "friedman1": BuiltIn(
            "make_friedman1",
            "regression",
            "y",
            "Friedman's first function, five of ten features matter",
            {"n_samples": 1000, "n_features": 10, "noise": 0.5, "random_state": 0},
        ),
        "friedman2": BuiltIn(
            "make_friedman2",
            "regression",
            "y",
            "Friedman's second function: impedance of a circuit",
            {"n_samples": 1000, "noise": 125.0, "random_state": 0},
        ),
        "friedman3": BuiltIn(
            "make_friedman3",
            "regression",
            "y",
            "Friedman's third function: phase angle of a circuit",
            {"n_samples": 1000, "noise": 0.1, "random_state": 0},
        ),
        "moons": BuiltIn(
            "make_moons",
            "classification",
            "moon",
            "two interleaving half circles",
            {"n_samples": 1000, "noise": 0.2, "random_state": 0},
            ("upper", "lower"),
        ),
        "circles": BuiltIn(
            "make_circles",
            "classification",
            "circle",
            "a circle inside a circle",
            {"n_samples": 1000, "noise": 0.2, "factor": 0.5, "random_state": 0},
            ("outer", "inner"),
        ),
    }
)


#: What comes before the number of a data set of OpenML, and the seconds to wait for its server.
_OPENML, _PATIENCE = "openml:", 30.0


@dataclass(frozen=True, eq=False)
class Dataset:
    """A checked table: features, a target, and where both came from.

    Made by `load_dataset`. Frozen, so its parts cannot be exchanged; treat the frames as read-only.

    Parameters
    ----------
    X : pandas.DataFrame
        Features, each column float64 or int64 (text if declared as categories), without missing or
        infinite cells.
    y : pandas.Series
        Labels (str, int or bool) or a float64 target; same index as `X`.
    task : {"classification", "regression"}
        What `y` is for.
    name : str
        Short name, for titles.
    source : str
        The path as given, or the scikit-learn call behind a built-in data set.
    checksum : str
        SHA-256 of the bytes of the file; for a built-in data set of `X` and `y` written as one CSV
        (no index, newline as line end, UTF-8), before columns are left out.
    n_rows_dropped : int, default=0
        Rows left out because of missing cells.
    """

    X: pd.DataFrame = field(repr=False)
    y: pd.Series = field(repr=False)
    task: Task
    name: str
    source: str
    checksum: str
    n_rows_dropped: int = 0

    @property
    def categories(self) -> tuple[str, ...]:
        """Feature columns that hold names of things, as text."""
        return tuple(str(n) for n, c in self.X.items() if not pd.api.types.is_numeric_dtype(c))

    @cached_property
    def constant_columns(self) -> tuple[str, ...]:
        """Feature columns with one value only; extractors have nothing to split there."""
        values = ((str(name), column.to_numpy()) for name, column in self.X.items())
        return tuple(name for name, column in values if (column == column[0]).all())

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """Rows per class, in the order of the labels; empty for regression."""
        if self.task == "regression":
            return {}
        labels, counts = np.unique(self.y.to_numpy(), return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    @property
    def singleton_classes(self) -> tuple[Any, ...]:
        """Classes with one row only: allowed, but cross-validation cannot stratify them."""
        return tuple(label for label, count in self.class_counts.items() if count == 1)


def load_dataset(
    data: str | os.PathLike[str] | pd.DataFrame,
    *,
    target: str | None = None,
    task: str = "auto",
    drop: str | Sequence[str] = (),
    missing: str = "error",
    features: str | Sequence[str] | None = None,
    categories: str | Sequence[str] = (),
) -> Dataset:
    """Load a data set by name, from a file or from a data frame, and check it.

    Use it wherever a person names the data: on the command line, in a notebook, in a benchmark. The
    result goes straight into scikit-learn; whatever could not is an error that says what to do.

    Parameters
    ----------
    data : str, path-like or pandas.DataFrame
        A data frame with the target among its columns, a name in `BUILT_IN`, or a path ending in
        .csv, .tsv, .tab, .txt (each also with .gz), .parquet or .pq. A built-in name wins over a
        file so named: write ``./iris`` for the file. ``"openml:61"`` is the data set of that number
        at OpenML, which scikit-learn fetches and keeps in its data folder.
    target : str or None, default=None
        The column to be predicted. Required for files and data frames; built-in data sets know
        theirs, as do most of OpenML.
    task : {"auto", "classification", "regression"}, default="auto"
        What to do with the target. "auto" takes numbers for a quantity (regression) when one of
        them is not whole or when more than 20 distinct ones occur; text, booleans and fewer whole
        numbers are classes. Pass the task when that guess is wrong, as for counts from 0 to 10.
    drop : str or sequence of str, default=()
        Columns to leave out before anything is checked.
    missing : {"error", "drop"}, default="error"
        "error" refuses missing cells, "drop" leaves out every row that has one in a kept column.
    features : str, sequence of str or None, default=None
        The columns to become features, in this order. All others, text and missing cells in them
        too, are ignored: name those that a model or saved rules were made with to use a wider
        table. None takes every column but the target and those to `drop`.
    categories : str or sequence of str, default=()
        Features whose values are names of things, in text or numbers. They are kept as text, for
        extractors that read categories and black boxes that encode them.

    Returns
    -------
    Dataset
        Features, target, task, checksum and the number of rows left out.

    Raises
    ------
    DatasetError
        A ValueError: the file cannot be read, or its content cannot be used in that way.
    DatasetNotFoundError
        A DatasetError and a FileNotFoundError: nothing has that name.
    TypeError
        `data` is not a name, a path or a data frame.

    Notes
    -----
    Text files are UTF-8, with or without byte order mark; comma, semicolon, tab and vertical bar
    are told apart by the header line. Empty cells and the usual words for them (NA, NaN, null,
    None) are missing. Boolean features become 0 and 1. Text is never encoded behind the reader's
    back. Class labels stay text, booleans or integers; whole-numbered floats become integers. A
    target in which at least half of the rows, but not all, are numbers is taken for a damaged
    quantity and refused, unless `task` says otherwise. A named Parquet index is read as a column,
    an unnamed one is forgotten. Classes with a single row are allowed, see
    `Dataset.singleton_classes`, as are constant columns, see `Dataset.constant_columns`. Features
    that OpenML says are nominal are categories.

    Examples
    --------
    >>> from skescore.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> iris.X.shape, iris.task, iris.class_counts
    ((150, 4), 'classification', {'setosa': 50, 'versicolor': 50, 'virginica': 50})
    >>> load_dataset("friedman1", features=["x4", "x0"]).X.columns.tolist()
    ['x4', 'x0']
    """
    _check_choice("task", task, ("auto", "classification", "regression"))
    _check_choice("missing", missing, ("error", "drop"))
    drop = (drop,) if isinstance(drop, str) else tuple(drop)
    categories = (categories,) if isinstance(categories, str) else tuple(categories)
    if features is not None:
        features = (features,) if isinstance(features, str) else tuple(features)
    if isinstance(data, str) and data in BUILT_IN:
        spec = BUILT_IN[data]
        if target not in (None, spec.target):
            raise DatasetError(
                f"target must be {spec.target!r} or left out for the built-in data set {data!r}, "
                f"got {target!r}."
            )
        if task not in ("auto", spec.task):
            raise DatasetError(
                f"task={task!r} does not fit the built-in data set {data!r}, which is for "
                f"{spec.task}. Leave task out (on the command line: leave out --task)."
            )
        where, name, source = data, data, spec.source
        target, task = spec.target, spec.task
        table = _make_built_in(spec)
        content = table.to_csv(index=False, lineterminator="\n").encode()
        checksum = hashlib.sha256(content).hexdigest()
    elif isinstance(data, str) and data.startswith(_OPENML):
        where = source = data
        table, target, nominal, name = _fetch_openml(data, target)
        categories = tuple(dict.fromkeys([*categories, *nominal]))
        content = table.to_csv(index=False, lineterminator="\n").encode()
        checksum = hashlib.sha256(content).hexdigest()
        categories = tuple(
            n for n in categories if n not in drop and (features is None or n in features)
        )
    elif isinstance(data, str | os.PathLike):
        path = Path(data).expanduser()
        where = source = os.fspath(data)
        name = re.sub(r"(\.[a-z]+)(\.gz)?$", "", path.name, flags=re.IGNORECASE)
        try:
            table, checksum = read_file(path, where)
        except FileNotFoundError as error:
            raise DatasetNotFoundError(_not_found(path, where)) from error
    elif isinstance(data, pd.DataFrame):
        where, name, source = "the data frame", "data", "a data frame"
        table = data.reset_index(drop=True).rename(columns=str)
        check_unique(list(table.columns), where)
        content = table.to_csv(index=False, lineterminator="\n").encode()
        checksum = hashlib.sha256(content).hexdigest()
    else:
        raise TypeError(
            "data must be the name of a built-in data set, a path or a data frame, got "
            f"{type(data).__name__}."
        )
    X, y, resolved, n_dropped = check_table(
        table,
        where,
        target=target,
        task=task,
        drop=drop,
        features=features,
        missing=missing,
        categories=categories,
    )
    return Dataset(X, y, resolved, name, source, checksum, n_dropped)


def _make_built_in(spec: BuiltIn) -> pd.DataFrame:
    """Return the features with the target, in words where it is a class, as last column."""
    import sklearn.datasets

    function = getattr(sklearn.datasets, spec.function)
    names: Any = spec.classes
    if spec.function.startswith("load_"):
        bunch = function(as_frame=True, **spec.options)
        table, target = bunch.data.copy(), bunch.target.to_numpy()
        names = bunch.get("target_names")
    else:
        values, target = function(**spec.options)
        table = pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])
    if spec.task == "classification":
        target = pd.Series([str(names[code]) for code in target], dtype=object)
    table[spec.target] = target
    return table


def _fetch_openml(data: str, target: str | None) -> tuple[pd.DataFrame, str | None, list[str], str]:
    """Return features and target, the target's name, nominal features, and the data set's name."""
    from sklearn.datasets import fetch_openml

    number = data.removeprefix(_OPENML)
    if not re.fullmatch(r"[1-9]\d{0,8}", number):
        raise DatasetError(
            f"{data!r} names no data set: after 'openml:' must come its number, such as openml:61."
        )
    column = "default-target" if target is None else target
    waits = socket.getdefaulttimeout()
    try:
        if waits is None:  # where a firewall swallows everything, nothing ever comes back
            socket.setdefaulttimeout(_PATIENCE)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A network error")
            bunch = fetch_openml(
                data_id=int(number), target_column=column, as_frame=True, parser="auto",
                n_retries=1, delay=0.1,
            )  # fmt: skip
    except KeyError as error:
        about = f"there is no column {target!r} for target" if target else "its record is damaged"
        raise DatasetError(f"{data} cannot be used: {about}: {error.args[0]}") from error
    except ImportError:
        raise
    except OSError as error:  # also what urllib raises
        reason = getattr(error, "reason", None) or error
        raise DatasetError(
            f"{data} cannot be fetched from OpenML: {reason}. Check the network and the number; "
            "where there is no network, save the data set as CSV elsewhere, and pass that file "
            "with its target."
        ) from error
    except ValueError as error:
        raise DatasetError(f"{data} cannot be used: {error}") from error
    finally:
        socket.setdefaulttimeout(waits)
    table = bunch.frame.reset_index(drop=True)
    nominal = [str(n) for n, c in table.items() if isinstance(c.dtype, pd.CategoricalDtype)]
    table = table.astype(dict.fromkeys(nominal, object))
    if target is None and len(bunch.target_names) == 1:
        target = str(bunch.target_names[0])
    return table, target, [n for n in nominal if n != target], str(bunch.details["name"])


def _not_found(path: Path, where: str) -> str:
    try:
        files = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
        close = nearest(path.name, files)
        near = f" Similar in {os.fspath(path.parent)!r}: {close}." if close else ""
    except OSError:
        near = f" There is no folder {os.fspath(path.parent)!r} that can be read."
    if "://" in where:
        near = " Addresses are not read: download the file first."
    return (
        f"{where!r} is neither a built-in data set nor an existing file.{near} "
        f"{did_you_mean(where, BUILT_IN)}"
    )


def _check_choice(parameter: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise DatasetError(f"{parameter} must be one of {listed}, got {value!r}.")
