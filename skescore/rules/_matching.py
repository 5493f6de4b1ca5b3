"""Matching rows to rules, fast.

A rule whose conditions are intervals is a box. Per feature the faces of all boxes cut the axis
into a few pieces, and one more piece holds missing values; a table holds, for every piece, one bit
per box: does this box accept that piece? The boxes that hold a row are then the bitwise AND of one
table entry per feature, 64 boxes at a time, and the first rule that predicts is the lowest bit set.
A row costs one small comparison per cut and one look-up per few features, whatever the number of
conditions. Only columns that rules use are touched, and single precision is compared as it is.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from scipy import sparse

from skescore._text import listed
from skescore.rules._conditions import (
    Condition,
    Interval,
    Missing,
    as_numbers,
    interval_accepts_missing,
    is_missing,
    truth_table,
)
from skescore.rules._rule import LinearOutput, Rule, RuleStatistics


class Table:
    """Uniform access to an array or data frame.

    Parameters
    ----------
    X : array-like, sparse matrix, pandas or polars DataFrame of shape (n_rows, n_features)
        The rows. Columns of a frame are found by name, so their order does not matter and further
        columns are ignored; columns of an array, or of a frame whose columns are only numbered,
        are taken by position.
    names : sequence of str
        The feature names that the rules were made with.

    Raises
    ------
    ValueError
        If X is not two-dimensional, or columns are missing, ambiguous or too many.
    """

    def __init__(self, X: Any, names: Sequence[str]) -> None:
        self._names = names
        X = X if _is_arrow(X) else as_known_rows(X)
        self._frame: Any = X if _is_frame(X) or _is_arrow(X) else None
        self._sparse = sparse.issparse(X)  # columns that are looked at are written out
        self._cache: dict[int, np.ndarray] = {}
        self._coded: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._held: dict[Condition, np.ndarray] = {}
        if self._frame is not None:
            columns = self._frame.schema.names if _is_arrow(X) else self._frame.columns
            found = [str(c) for c in columns]
            known = set(found)
            missing = [n for n in names if n not in known]
            if not missing:
                self._position = _positions(names, found)
                self._n_rows = len(self._frame)
                return
            if any(isinstance(c, str) for c in columns):
                raise ValueError(
                    f"X lacks the feature{'s' if len(missing) > 1 else ''} {listed(missing)} "
                    f"that the rules were made with; its columns are {listed(found)}."
                )
            self._frame = None  # numbered columns are no names: by position, then
        array = X.tocsc() if self._sparse and X.ndim == 2 else _as_array(X)
        if array.ndim != 2:
            raise ValueError(
                f"X must be two-dimensional (rows, features), got shape {array.shape}. "
                "Reshape one row with X.reshape(1, -1)."
            )
        if array.shape[1] != len(names):
            raise ValueError(
                f"X has {array.shape[1]} features, but the rules were made with "
                f"{len(names)}: {listed(names)}."
            )
        self._array: Any = array
        self._n_rows = array.shape[0]

    @classmethod
    def of(cls, X: Any, names: Sequence[str]) -> Table:
        """Make a table of rows; one that is a table already stays as it is."""
        return X if isinstance(X, Table) else cls(X, names)

    def __len__(self) -> int:
        return self._n_rows

    @property
    def names(self) -> tuple[str, ...]:
        """The feature names."""
        return tuple(self._names)

    def column(self, feature: int) -> np.ndarray:
        """All values of one feature, as they came."""
        if self._frame is None and not self._sparse:
            return self._checked(feature, self._array[:, feature])
        if feature not in self._cache:
            values = (
                self._array[:, [feature]].toarray()[:, 0]
                if self._frame is None
                else self._series(feature)
            )
            self._cache[feature] = self._checked(feature, values)
        return self._cache[feature]

    def _series(self, feature: int) -> np.ndarray:
        frame, at = self._frame, self._position[feature]
        if _is_arrow(frame):  # only columns that are looked at are converted
            frame, at = as_known_rows(frame.select([at])), 0
        if not hasattr(frame, "iloc"):
            series = frame[:, at]
            wide = str(series.dtype).endswith("Int128")  # which NumPy lacks
            values = np.zeros(0) if wide else np.asarray(series.to_numpy())
            if wide or (series.dtype.is_integer() and _rounded(values)):
                values = np.array(series.to_list(), dtype=object)
            return values
        series = frame.iloc[:, at]
        values = np.asarray(series.to_numpy())
        if values.dtype.kind == "f" and _rounded(values) and _holds_integers(series):
            values = series.astype(object).to_numpy()
        return values

    def _checked(self, feature: int, values: np.ndarray) -> np.ndarray:
        if values.dtype.kind not in "biufOUT":
            raise ValueError(
                f"Rules know numbers and labels, but X holds {values.dtype} in feature "
                f"{self._names[feature]!r}. Convert that column to numbers or text."
            )
        return values

    def holds(self, condition: Condition, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Whether a condition holds for some rows.

        A condition on one column of text is put to the different values of that column, once.
        """
        feature = condition.features[0]
        if len(condition.features) > 1 or self.column(feature).dtype.kind not in "OUT":
            return condition.holds(lambda j: self.column(j)[rows])
        if feature not in self._coded:
            values = self.column(feature).astype(object)
            self._coded[feature] = pd.factorize(values, use_na_sentinel=False)
        codes, values = self._coded[feature]
        if condition not in self._held:
            self._held[condition] = condition.holds(lambda _: values)
        return np.asarray(self._held[condition][codes[rows]])

    def numbers(self, feature: int, rows: slice) -> np.ndarray:
        """Some values of one feature as contiguous floats."""
        values = self.column(feature)[rows]
        try:
            return np.ascontiguousarray(as_numbers(values))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The rules compare feature {self._names[feature]!r} with numbers, but X holds "
                f"{values.dtype} there: {error}. Convert that column to numbers."
            ) from error

    def floats(self, feature: int, rows: slice) -> np.ndarray:
        """The same, in single precision if they came so."""
        values = self.column(feature)
        if values.dtype == np.float32:
            return np.ascontiguousarray(values[rows])
        return self.numbers(feature, rows)

    def missing(self, feature: int, rows: slice) -> np.ndarray:
        """Whether some values of one feature are missing."""
        return is_missing(self.column(feature)[rows])

    def matrix(self, rows: np.ndarray, features: Sequence[int]) -> np.ndarray:
        """Some rows as one float matrix, NaN in all features but the given ones."""
        result = np.full((len(rows), len(self._names)), np.nan)
        for feature in features:
            result[:, feature] = self.numbers(feature, slice(None))[rows]
        return result


def _is_arrow(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("columns", "to_pandas", "schema")) and not _is_frame(X)


def _rounded(values: np.ndarray) -> bool:
    """Whether whole numbers, made floats for the gaps among them, are no longer exact."""
    return values.dtype.kind == "f" and bool((np.abs(values) >= 2.0**53).any())


def _holds_integers(series: pd.Series) -> bool:
    kind = series.cat.categories.dtype if hasattr(series, "cat") else series.dtype
    return pd.api.types.is_integer_dtype(kind)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_column"))


def as_known_rows(X: Any) -> Any:
    """Give tables of other libraries as data frames: an array of them would lose their names.

    Raises
    ------
    TypeError
        If such a table is none of pandas, polars or Arrow.
    """
    if isinstance(X, np.ma.MaskedArray):  # what is masked is missing
        numbers = np.ma.filled(X.astype(float), np.nan) if X.dtype.kind in "biuf" else None
        if numbers is not None and (X.dtype.kind == "f" or not _rounded(numbers)):
            return numbers
        values = np.array(X, dtype=object)
        values[np.ma.getmaskarray(X)] = None
        return values
    if not hasattr(X, "columns") or _is_frame(X) or isinstance(X, np.ndarray | Table):
        return X
    if _is_arrow(X):
        frame = X.to_pandas()
        for i, kind in enumerate(X.schema.types):
            name = str(kind).replace("i", "I").replace("u", "U")  # as pandas calls it
            if name.startswith(("Int", "UInt")) and _rounded(frame.iloc[:, i].to_numpy()):
                frame.isetitem(i, pd.Series(X.column(i).to_pylist(), frame.index, dtype=name))
        return frame
    raise TypeError(
        f"X must be an array or a data frame of pandas or polars, got a {type(X).__name__} of "
        f"{type(X).__module__.partition('.')[0]}. Turn it into a pandas data frame first."
    )


def _as_array(X: Any) -> np.ndarray:
    if hasattr(X, "toarray"):
        raise TypeError(
            f"X must be a sparse matrix of SciPy with rows and columns, got {type(X).__name__} of "
            f"shape {getattr(X, 'shape', None)}. Pass X.toarray()."
        )
    array = np.asarray(X)
    if not isinstance(X, np.ndarray) and (array.dtype.kind in "US" or _rounded(array)):
        array = np.asarray(
            X, dtype=object
        )  # numbers among texts, or among floats, stay what they are
    return array


def _positions(names: Sequence[str], found: Sequence[str]) -> list[int]:
    """Where each name is; found twice, it would be anyone's guess."""
    place = {name: at for at, name in enumerate(found)}
    if len(place) < len(found):
        twice = [n for n in names if found.count(n) > 1]
        if twice:
            raise ValueError(
                f"X has more than one column {listed(twice)}: rename or drop all but one of each."
            )
    return [place[name] for name in names]


@dataclass(frozen=True, eq=False)
class BoxTable:
    """Boxes as arrays, one row per rule and one column per feature.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_rules, n_features)
        Bounds; -inf and inf mark free sides.
    lower_closed, upper_closed : ndarray of bool, same shape
        Whether the face itself belongs to the box.
    missing : ndarray of bool, same shape, optional
        Whether a missing value too lies within the bounds of a feature; False by default. A side
        without bounds holds missing values in any case, so its flag is set to False.

    Raises
    ------
    ValueError
        If the shapes differ, a bound is NaN or a box is empty.
    """

    lower: np.ndarray
    upper: np.ndarray
    lower_closed: np.ndarray
    upper_closed: np.ndarray
    missing: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.missing is None:
            object.__setattr__(self, "missing", np.zeros(np.shape(self.lower), dtype=bool))
        for name in ("lower", "upper", "lower_closed", "upper_closed", "missing"):
            kind = float if name in ("lower", "upper") else bool
            given = getattr(self, name)
            array = np.asarray(given, dtype=kind)
            if array is given and array.flags.writeable:
                array = array.copy()  # the caller may go on to change it
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        shape = self.lower.shape
        if self.lower.ndim != 2 or any(
            a.shape != shape
            for a in (self.upper, self.lower_closed, self.upper_closed, self.missing)
        ):
            raise ValueError(
                "lower, upper and their flags must have one shape (n_rules, n_features), got "
                f"{self.lower.shape}, {self.upper.shape}, {self.lower_closed.shape}, "
                f"{self.upper_closed.shape} and {self.missing.shape}."
            )
        if (self.missing & ~self.bounded).any():
            flags = self.missing & self.bounded
            flags.flags.writeable = False
            object.__setattr__(self, "missing", flags)
        closed = self.lower_closed & self.upper_closed
        filled = (self.lower < self.upper) | ((self.lower == self.upper) & closed)
        if not filled.all():
            row, feature = np.argwhere(~filled)[0].tolist()
            raise ValueError(
                f"Box {row} holds no number along feature {feature}: "
                f"lower={self.lower[row, feature].item()!r}, "
                f"upper={self.upper[row, feature].item()!r}, "
                f"lower_closed={self.lower_closed[row, feature].item()}, "
                f"upper_closed={self.upper_closed[row, feature].item()}. "
                "Leave that box out, or exchange or close its bounds."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays would be writable; the constructor locks them.
        return BoxTable, (
            self.lower,
            self.upper,
            self.lower_closed,
            self.upper_closed,
            self.missing,
        )

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def from_intervals(cls, rules: Sequence[Sequence[Interval]], n_features: int) -> BoxTable:
        """Collect the intervals of many rules."""
        shape = (len(rules), n_features)
        lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        lower_closed, upper_closed, missing = (np.zeros(shape, bool) for _ in range(3))
        for row, intervals in enumerate(rules):
            for interval in intervals:
                at = row, interval.feature
                lower[at], upper[at] = interval.lower, interval.upper
                lower_closed[at], upper_closed[at] = interval.lower_closed, interval.upper_closed
                missing[at] = interval.missing
        return cls(lower, upper, lower_closed, upper_closed, missing)

    @property
    def bounded(self) -> np.ndarray:
        """Whether each box has a bound along each feature, shape (n_rules, n_features)."""
        return (self.lower > -np.inf) | (self.upper < np.inf)

    @property
    def accepts_missing(self) -> np.ndarray:
        """Acceptance of a missing value by each side, shape (n_rules, n_features).

        A side without bounds has no condition and accepts any value.
        """
        return np.asarray(interval_accepts_missing(self) | ~self.bounded)

    def intervals(self, row: int) -> tuple[Interval, ...]:
        """The bounded sides of one box, in feature order."""
        bounded = np.flatnonzero((self.lower[row] > -np.inf) | (self.upper[row] < np.inf))
        return tuple(
            Interval(
                int(j),
                float(self.lower[row, j]),
                float(self.upper[row, j]),
                bool(self.lower_closed[row, j]),
                bool(self.upper_closed[row, j]),
                bool(self.missing[row, j]),
            )
            for j in bounded
        )

    def take(self, rows: np.ndarray | slice) -> BoxTable:
        """Some of the boxes, in the given order."""
        return BoxTable(
            self.lower[rows],
            self.upper[rows],
            self.lower_closed[rows],
            self.upper_closed[rows],
            self.missing[rows],
        )

    def entry_cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """Rewrite all boxes as ``start <= x < stop`` on floating-point numbers, exactly.

        ``x > b`` and ``x <= b`` become ``x >= next`` and ``x < next`` with the float after b. A
        stop of inf can mean either a free side or one that keeps out infinity alone: ``upper``
        tells which.
        """
        with np.errstate(over="ignore"):  # infinity comes after the largest float
            start = np.where(self.lower_closed, self.lower, np.nextafter(self.lower, np.inf))
            stop = np.where(self.upper_closed, np.nextafter(self.upper, np.inf), self.upper)
        return np.where(self.lower == -np.inf, -np.inf, start), stop


def accepted_states(
    boxes: BoxTable, others: Sequence[Sequence[Condition]]
) -> tuple[np.ndarray, np.ndarray]:
    """Mark the states of each feature that premises accept by intervals and `Missing` conditions.

    Parameters
    ----------
    boxes : BoxTable
        The intervals of each premise.
    others : sequence of sequences of conditions
        Its other conditions.

    Returns
    -------
    observed, missing : ndarray of bool, shape (n_rules, n_features)
        Acceptance of observed values (within the bounds), and of missing values.
    """
    observed, missing = np.ones(boxes.lower.shape, dtype=bool), boxes.accepts_missing
    for i, conditions in enumerate(others):
        for condition in conditions:
            if isinstance(condition, Missing):
                truth = truth_table(condition)
                observed[i, condition.feature] &= truth.passing
                missing[i, condition.feature] &= truth.missing
    return observed, missing


def _locked(values: Any, dtype: Any = None) -> np.ndarray:
    """A copy that cannot be written to."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What each rule of a set concludes and what was seen there, as arrays.

    Parameters
    ----------
    outputs : ndarray of shape (n_rules,)
        Index of the class (int), or the number (float; NaN where `linear` has the output).
    n_rows : ndarray of shape (n_rules,), optional
        Training rows assigned to each rule.
    class_counts : ndarray of shape (n_rules, n_classes), optional
        Classification: the black box's predictions there.
    mean, standard_deviation : ndarray of shape (n_rules,), optional
        Regression: mean and population standard deviation of the black box's predictions there.
    linear : mapping of int to LinearOutput, optional
        The rules that conclude an affine function.
    weights : ndarray of shape (n_rules,), optional
        How much each rule says where rules predict together; 1 by default.
    """

    outputs: np.ndarray
    n_rows: np.ndarray | None = None
    class_counts: np.ndarray | None = None
    mean: np.ndarray | None = None
    standard_deviation: np.ndarray | None = None
    linear: Mapping[int, LinearOutput] = field(default_factory=dict)
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("outputs", "n_rows", "class_counts", "mean", "standard_deviation", "weights"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _locked(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Conclusions, (
            self.outputs,
            self.n_rows,
            self.class_counts,
            self.mean,
            self.standard_deviation,
            dict(self.linear),
            self.weights,
        )

    def check(self, n_rules: int, n_classes: int | None) -> None:
        """Raise a ValueError unless the arrays fit a number of rules and classes.

        Parameters
        ----------
        n_rules : int
            Number of boxes.
        n_classes : int or None
            Number of classes; None for a regression.
        """
        for name in ("outputs", "n_rows", "class_counts", "mean", "standard_deviation", "weights"):
            array = getattr(self, name)
            shape = (n_rules, n_classes) if name == "class_counts" else (n_rules,)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {array.shape}.")
        if self.weights is not None and not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be finite numbers, got {self.weights!r}.")
        seen = [
            n
            for n in ("class_counts", "mean", "standard_deviation")
            if getattr(self, n) is not None
        ]
        if seen and self.n_rows is None:
            raise ValueError(f"{seen[0]} needs n_rows as well: the rows assigned to each rule.")
        stray = [i for i in self.linear if not 0 <= i < n_rules or n_classes is not None]
        if stray:
            raise ValueError(
                f"linear gives rule {stray[0]} an affine output, but there is no such rule of a "
                "regression."
            )
        if n_classes is None:
            unknown = ~np.isfinite(self.outputs)
            unknown[list(self.linear)] = False
            if unknown.any():
                raise ValueError(
                    f"Output {np.flatnonzero(unknown)[0]} must be a finite number, got "
                    f"{self.outputs[unknown][0].item()!r}."
                )
        elif len(self.outputs) and (
            self.outputs.dtype.kind not in "iu"
            or self.outputs.min() < 0
            or self.outputs.max() >= n_classes
        ):
            raise ValueError(
                f"outputs must be indices of the {n_classes} classes, got {self.outputs!r}."
            )

    @classmethod
    def from_rules(cls, rules: Sequence[Rule], classes: Sequence[Any] | None) -> Conclusions:
        """Collect the outputs of rules; their statistics stay with the rules."""
        if classes is not None:
            code = {label: i for i, label in enumerate(classes)}
            outputs = np.fromiter((code[r.output] for r in rules), np.intp, count=len(rules))
            counts = np.zeros((len(rules), len(classes)))
            for row, rule in zip(counts, rules, strict=True):
                if rule.statistics is not None and rule.statistics.class_counts is not None:
                    row[:] = rule.statistics.class_counts
            return cls(outputs, class_counts=counts)
        linear = {i: r.output for i, r in enumerate(rules) if isinstance(r.output, LinearOutput)}
        numbers = [np.nan if isinstance(r.output, LinearOutput) else r.output for r in rules]
        return cls(np.asarray(numbers, dtype=float), linear=linear)

    def rule(self, index: int, boxes: BoxTable, classes: Sequence[Any] | None) -> Rule:
        """Make one rule of a set whose premises are all boxes."""
        output: Any = self.linear.get(index)
        if output is None:
            output = self.outputs[index].item()
            if classes is not None:
                output = classes[output]
        statistics = None
        if self.n_rows is not None:
            counts = self.class_counts
            statistics = RuleStatistics(
                self.n_rows[index],
                None if counts is None else tuple(counts[index].tolist()),
                None if self.mean is None else self.mean[index],
                None if self.standard_deviation is None else self.standard_deviation[index],
            )
        weight = 1.0 if self.weights is None else self.weights[index]
        return Rule(boxes.intervals(index), output, statistics, weight)

    def class_probabilities(self, n_classes: int) -> np.ndarray:
        """Class probabilities per rule; a rule without counts is sure of its class."""
        certain = np.zeros((len(self.outputs), n_classes))
        certain[np.arange(len(self.outputs)), self.outputs] = 1.0
        if self.class_counts is None:
            return certain
        total = self.class_counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, self.class_counts / np.where(total > 0, total, 1), certain)


#: Rules in one table: it holds a bit per rule for every cut, and large forests have a cut per rule,
#: so that without blocks the memory would grow with the square of the number of rules.
_BLOCK = 1024
#: Rows worked on at a time: a column of them stays in a core's cache.
_CHUNK = 65536
#: Up to so many cuts are counted one by one (vectorized); more are searched by bisection.
_COUNTED_CUTS = 96
_WORD = 64
#: Pieces of several features that have a table together: it stays in a core's cache.
_TOGETHER = 16384


class _FeatureCuts:
    """The cuts of one feature and the boxes that accept each piece between them."""

    def __init__(
        self,
        feature: int,
        start: np.ndarray,
        stop: np.ndarray,
        free_below: np.ndarray,
        free_above: np.ndarray,
        accepts_missing: np.ndarray,
        accepts_known: np.ndarray,
        n_words: int,
    ) -> None:
        self.feature = feature
        self.cuts = np.unique(np.concatenate([start[~free_below], stop[~free_above]]))
        # Piece number k lies after the first k cuts; one more piece holds missing values.
        first = np.searchsorted(self.cuts, start, side="right")  # 0 where start is -inf
        after = np.searchsorted(self.cuts, stop, side="right")
        after[free_above] = len(self.cuts) + 1
        piece = np.arange(len(self.cuts) + 1)[:, None]
        accepted = (piece >= first) & (piece < after) & accepts_known
        self.masks = pack_bits(np.vstack([accepted, accepts_missing]), n_words)
        # Of single precision, just those numbers are at least a cut that are at least this one.
        with np.errstate(over="ignore"):
            near = self.cuts.astype(np.float32)
            above = np.nextafter(near, np.float32(np.inf))
        self._single = np.where(near.astype(np.float64) < self.cuts, above, near)

    def pieces(self, table: Table, rows: slice) -> np.ndarray:
        """Number of the piece that holds each value."""
        n_cuts = len(self.cuts)
        result: np.ndarray
        if n_cuts == 0:  # only whether the value is missing counts, which may be a text
            return table.missing(self.feature, rows).astype(np.uint8)
        values = table.floats(self.feature, rows)
        cuts = self._single if values.dtype == np.float32 else self.cuts
        if n_cuts <= _COUNTED_CUTS:
            result = np.empty(len(values), dtype=np.uint8)
            np.greater_equal(values, cuts[0], out=result.view(bool))
            flags = np.empty(len(values), dtype=bool)
            for cut in cuts[1:]:
                np.greater_equal(values, cut, out=flags)
                result += flags.view(np.uint8)
        else:
            result = np.searchsorted(cuts, values, side="right")
        if len(values) and np.isnan(values.min()):
            result[np.isnan(values)] = n_cuts + 1
        return result


class _JointCuts:
    """Features with few pieces together, so that one look-up tells which boxes accept all."""

    def __init__(self, features: list[_FeatureCuts]) -> None:
        self._features = features
        self.masks = features[0].masks
        for feature in features[1:]:
            both = self.masks[:, None, :] & feature.masks[None, :, :]
            self.masks = both.reshape(-1, both.shape[2])

    @classmethod
    def of(cls, features: Sequence[_FeatureCuts], n_words: int) -> list[_JointCuts]:
        """Put features together into few tables, of about the same length, that stay small."""
        most = max(2, _TOGETHER // n_words)
        ordered = sorted(features, key=lambda f: -len(f.masks))
        filled = sum(min(1.0, math.log(len(f.masks), most)) for f in ordered)
        n_groups = max(1, math.ceil(filled))
        while True:
            groups: list[tuple[int, int, list[_FeatureCuts]]] = [
                (1, k, []) for k in range(n_groups)
            ]
            for feature in ordered:
                size, k, group = groups[0]
                group.append(feature)
                heapq.heapreplace(groups, (size * len(feature.masks), k, group))
            if all(size <= most or len(group) == 1 for size, _, group in groups):
                return [cls(group) for _, _, group in groups if group]
            n_groups += 1 + n_groups // 4

    def pieces(self, table: Table, rows: slice) -> np.ndarray:
        """Number of the line of the table that each row has."""
        result = self._features[0].pieces(table, rows)
        if len(self._features) == 1:
            return result
        result = result.astype(np.uint16)
        for feature in self._features[1:]:
            result *= np.uint16(len(feature.masks))
            np.add(result, feature.pieces(table, rows), out=result, casting="unsafe")
        return result


def pack_bits(flags: np.ndarray, n_words: int) -> np.ndarray:
    """Pack a boolean matrix into words of 64 bits, lowest bit first."""
    padded = np.zeros((len(flags), n_words * _WORD), dtype=bool)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack_bits(words: np.ndarray, n_flags: int) -> np.ndarray:
    """Undo :func:`pack_bits`."""
    as_bytes = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, count=n_flags, bitorder="little").astype(bool)


class Matcher:
    """Boxes and other conditions (mostly none), prepared for matching many rows.

    Its `blocks` are some rules at a time, each with the index of the first of them.
    """

    def __init__(self, boxes: BoxTable, others: Sequence[tuple[Condition, ...]]) -> None:
        self.n_rules = len(boxes)
        starts = range(0, max(1, self.n_rules), _BLOCK)
        pieces = [slice(begin, begin + _BLOCK) for begin in starts]
        self.blocks = tuple((p.start, Block(boxes.take(p), others[p])) for p in pieces)

    def match(self, table: Table, rows: slice | None = None) -> np.ndarray:
        """Every rule on every row (or a slice of them), shape (n_rows, n_rules)."""
        if len(self.blocks) == 1:
            return self.blocks[0][1].match(table, rows)
        n_rows = len(table) if rows is None else rows.stop - rows.start
        result = np.empty((n_rows, self.n_rules), dtype=bool)
        for begin, block in self.blocks:
            result[:, begin : begin + block.n_rules] = block.match(table, rows)
        return result

    def covers(self, table: Table) -> np.ndarray:
        """Rows that some rule holds for."""
        result = self.blocks[0][1].covers(table)
        for _, block in self.blocks[1:]:
            result |= block.covers(table)
        return result

    def first(self, table: Table, rows: slice) -> np.ndarray:
        """Index of the first rule that holds for each of some rows, `n_rules` or more for none."""
        result = self.blocks[0][1].first(table, rows)
        for begin, block in self.blocks[1:]:
            further = np.add(block.first(table, rows), begin, dtype=np.intp)
            result = np.where(result < begin, result, further)
        return result


class Block:
    """Some rules of a matcher, in tables of their own."""

    def __init__(self, boxes: BoxTable, others: Sequence[tuple[Condition, ...]]) -> None:
        self.n_rules = len(boxes)
        self.n_words = max(1, -(-self.n_rules // _WORD))
        start, stop = boxes.entry_cuts()
        below, above = boxes.lower == -np.inf, boxes.upper == np.inf
        used = np.asarray(boxes.bounded.any(axis=0))
        known, missing = accepted_states(boxes, others)
        self._others: dict[int, list[Condition]] = {}
        for i, conditions in enumerate(others):
            for condition in conditions:
                if isinstance(condition, Missing):
                    used[condition.feature] = True
                else:
                    self._others.setdefault(i, []).append(condition)
        cuts = [
            _FeatureCuts(
                j,
                start[:, j],
                stop[:, j],
                below[:, j],
                above[:, j],
                missing[:, j],
                known[:, j],
                self.n_words,
            )
            for j in np.flatnonzero(used).tolist()
        ]
        self._cuts = _JointCuts.of(cuts, self.n_words)
        all_rules = np.ones((1, self.n_rules), dtype=bool)
        self._all = pack_bits(all_rules, self.n_words)[0]

    def _words(self, table: Table, rows: slice) -> np.ndarray:
        """The matching rules of some rows as bits, shape (n_rows, n_words)."""
        n_rows = rows.stop - rows.start
        words = None
        for feature in self._cuts:
            # All pieces have a line, so that nothing is to be checked.
            held = feature.masks.take(feature.pieces(table, rows), axis=0, mode="clip")
            words = held if words is None else np.bitwise_and(words, held, out=words)
        if words is None:
            words = np.broadcast_to(self._all, (n_rows, self.n_words)).copy()
        for index, conditions in self._others.items():
            word, bit = divmod(index, _WORD)
            flag = np.uint64(1 << bit)
            reached = np.flatnonzero(words[:, word] & flag)
            if len(reached) == 0:
                continue
            held = np.ones(len(reached), dtype=bool)
            for condition in conditions:
                held &= table.holds(condition, rows.start + reached)
            words[reached[~held], word] &= ~flag
        return words

    def _chunks(self, stop: int, start: int = 0) -> Iterator[slice]:
        # Many rules make long words; fewer rows at a time then keep the memory level.
        size = max(1, _CHUNK // min(max(1, self.n_words // 4), 16))
        return (slice(i, min(i + size, stop)) for i in range(start, stop, size))

    def match(self, table: Table, rows: slice | None = None) -> np.ndarray:
        """Every rule on every row (or a slice of them), shape (n_rows, n_rules)."""
        start, stop = (0, len(table)) if rows is None else (rows.start, rows.stop)
        result = np.empty((stop - start, self.n_rules), dtype=bool)
        for part in self._chunks(stop, start):
            words = self._words(table, part)
            result[part.start - start : part.stop - start] = unpack_bits(words, self.n_rules)
        return result

    def covers(self, table: Table) -> np.ndarray:
        """Rows that some rule holds for."""
        result = np.empty(len(table), dtype=bool)
        for rows in self._chunks(len(table)):
            result[rows] = self._words(table, rows).any(axis=1)
        return result

    def first(self, table: Table, rows: slice) -> np.ndarray:
        """Index of the first rule that holds for each of some rows, `n_rules` or more for none."""
        parts = list(self._chunks(rows.stop, rows.start))
        if len(parts) == 1:
            return first_bit(self._words(table, rows))
        return np.concatenate([first_bit(self._words(table, part)) for part in parts])


def for_each_part(work: Callable[[slice], None], n_rows: int, n_jobs: int | None) -> None:
    """Carry out some work for a few rows at a time, in threads if wanted."""

    def some(begin: int, end: int) -> None:
        for start in range(begin, end, _CHUNK):
            work(slice(start, min(start + _CHUNK, end)))

    n_chunks = -(-n_rows // _CHUNK)
    threads = min(1 if n_jobs is None else effective_n_jobs(n_jobs), n_chunks)
    if threads <= 1:
        some(0, n_rows)
        return
    ends = [n_chunks * i // threads * _CHUNK for i in range(1, threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, [0, *ends], [*ends, n_rows]))


def first_bit(words: np.ndarray) -> np.ndarray:
    """Index of the lowest bit set in each row of words, the number of all bits for none."""
    word, index = words[:, 0], None
    if words.shape[1] > 1:
        index = (words != 0).argmax(axis=1)
        word = words[np.arange(len(words)), index]
        index[word == 0] = words.shape[1] - 1
    # The bits below the lowest one set number its index; of no bit all 64 are.
    below = word - np.uint64(1)
    np.bitwise_and(below, np.bitwise_not(word), out=below)
    number = np.bitwise_count(below)
    return number if index is None else index * _WORD + number


def nearest_box(
    boxes: BoxTable, X: np.ndarray, scale: np.ndarray, more: np.ndarray | None = None
) -> np.ndarray:
    """Index of the box with the nearest surface, the first of equally near ones.

    Distances are in units of `scale`; features of scale 0 and missing values add none. The squares
    of what else parts row and box come as `more`, shape (n_rows, n_rules).
    """
    used = np.flatnonzero((scale > 0) & np.isfinite(scale) & boxes.bounded.any(axis=0))
    lower, upper, scale = boxes.lower[:, used], boxes.upper[:, used], scale[used]
    result = np.empty(len(X), dtype=np.intp)
    size = max(1, int(4e6 // (len(boxes) * max(1, len(used)))))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size, used][:, None, :]
        part = np.zeros((len(rows), len(boxes))) if more is None else more[begin : begin + size]
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.maximum(np.maximum(lower - rows, rows - upper), 0)
            # An infinite value is at no distance from a free side.
            np.nan_to_num(gap, copy=False, nan=0.0, posinf=math.inf)
            # Feature by feature, so that ties are ties however the processor adds.
            total = part + 0.0
            for k in range(len(used)):
                total += (gap[:, :, k] / scale[k]) * (gap[:, :, k] / scale[k])
        result[begin : begin + size] = total.argmin(axis=1)
        least = total.min(axis=1)
        beyond = np.flatnonzero((least == 0) | (least > _LARGEST_SQUARE))
        if len(beyond):
            distances = _scaled_distances(rows[beyond], lower, upper, scale, part[beyond])
            result[begin + beyond] = distances.argmin(axis=1)
    return result


#: Sums of squares beyond it are compared by mantissas and exponents.
_LARGEST_SQUARE = 1e300


def _scaled_distances(
    rows: np.ndarray, lower: np.ndarray, upper: np.ndarray, scale: np.ndarray, more: np.ndarray
) -> np.ndarray:
    """Squared distances whose squares are no floats: of each row as multiples of a power of two."""
    nowhere = 10**6  # an exponent beyond all of floats
    with np.errstate(over="ignore", invalid="ignore"):
        gap = np.maximum(np.maximum(lower - rows, rows - upper), 0)
        half = np.maximum(np.maximum(lower / 2 - rows / 2, rows / 2 - upper / 2), 0)
        long = np.isinf(gap) & np.isfinite(half)
        size, power = np.frexp(np.nan_to_num(np.where(long, half, gap), nan=0.0, posinf=math.inf))
        unit, unit_power = np.frexp(scale)
        size, power = size / unit, power.astype(np.int64) + long - unit_power
        power = np.where(size == 0, -nowhere, np.where(np.isinf(size), nowhere, power))
        extra = np.where(more > 0, np.frexp(more)[1] // 2, -nowhere)
        greatest = np.max(power, axis=2, initial=-nowhere)
        first = np.maximum(greatest, extra).min(axis=1, keepdims=True)
        total = np.ldexp(more, np.clip(-2 * first, -2000, 2000).astype(np.int32))
        shift = np.clip(power - first[:, :, None], -2000, 2000).astype(np.int32)
        for k in range(size.shape[2]):
            total += np.ldexp(size[:, :, k], shift[:, :, k]) ** 2
    return np.asarray(total)
