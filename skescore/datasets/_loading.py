"""Data sets by name or from a file, checked before a model or an extractor sees them.

Files are read by `_files` and tables checked by `_tables`; here is what users see of both,
the data sets that come along with scikit-learn, and those of OpenML by their number.
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
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skescore._text import did_you_mean
from skescore.datasets._tables import (
    DatasetError,
    Task,
    check_table,
    check_unique,
    nearest,
    read_file,
)

__all__ = ["BUILT_IN", "BuiltIn", "Dataset", "DatasetError", "DatasetNotFoundError", "load_dataset"]


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
