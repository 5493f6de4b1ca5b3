"""Fidelity by group, on generated rows and near decision boundaries.

Fidelity is agreement with the black box: the share of equal predictions in classification, R² in
regression. The fallback predicts uncovered rows. Without a fallback, or if it abstains, they count
as wrong in classification, and as predictions of the black box's mean in regression.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import _safe_indexing

from skescore._random import child_generator
from skescore._rows import deviations_from_mean
from skescore._validation import (
    LARGEST_EXACT,
    TASKS,
    check_choice,
    check_integer,
    check_number,
    finite_numbers,
    one_dimension,
    own_rows,
    row_weights,
    whole_labels,
)
from skescore.metrics._prediction import common_codes, prediction_performance
from skescore.metrics._rule_counts import Flags, Floats, checked_weights, one_per_row
from skescore.rules import RuleSet, as_ruleset, convert_rows

__all__ = [
    "OFF_DATA",
    "FeatureAgreement",
    "GroupFidelity",
    "feature_agreement",
    "fidelity",
    "group_fidelity",
    "known_predictions",
    "rows_off_data",
]

#: Kinds of generated rows.
OFF_DATA = ("jittered", "interpolated", "uniform", "boundary")
_METRICS = {"classification": "accuracy", "regression": "r2"}
#: Bisection steps between two rows, and the relative distance to the boundary of drawn rows.
_HALVINGS, _NEAR = 8, 0.1
#: Streams of random numbers.
_ROWS, _PERMUTATIONS = 11, 12


def _predictor(black_box: Any) -> Callable[[Any], Any]:
    """Return a function that predicts copies of rows, as the black box may change them in place."""
    predict = getattr(black_box, "predict", black_box)
    if not callable(predict):
        raise TypeError(
            f"black_box must be a fitted model with predict, or a function of rows, got "
            f"{black_box!r}. Pass a fitted model."
        )

    def predicted(rows: Any) -> NDArray[Any]:
        predictions = one_dimension("The output of black_box", predict(own_rows(rows)))
        return (
            predictions[:, 0]
            if predictions.ndim == 2 and predictions.shape[1] == 1
            else predictions
        )

    return predicted


def known_predictions(ruleset: RuleSet, X: Any) -> tuple[NDArray[Any], Flags]:
    """Return the predictions of rules, and flags of the rows that have one."""
    fallback = ruleset.fallback
    if fallback is not None and fallback.policy != "abstain" and len(ruleset):
        predicted = np.asarray(ruleset.predict(X))
        return predicted, np.ones(len(predicted), dtype=bool)
    is_predicted = np.asarray(ruleset.covers(X), dtype=bool)
    if not len(ruleset):
        stand_in = 0.0 if ruleset.classes is None else (ruleset.classes or ("",))[0]
        return np.full(len(is_predicted), stand_in), is_predicted
    return np.asarray(ruleset.with_arbitrary_fallback().predict(X)), is_predicted


def _agreement(ruleset: RuleSet, X: Any, y_box: NDArray[Any], weights: Floats | None) -> float:
    predicted, is_predicted = known_predictions(ruleset, X)
    return prediction_performance(
        y_box,
        predicted,
        metric=_METRICS[ruleset.task],
        task=ruleset.task,
        covered=is_predicted,
        uncovered="penalize",
        sample_weight=weights,
    )


def _undefined(why: str) -> float:
    warnings.warn(f"The fidelity is undefined: {why}", UndefinedMetricWarning, stacklevel=3)
    return math.nan


def fidelity(
    rules: Any,
    black_box: Any,
    X: Any,
    *,
    where: str = "rows",
    n_rows: int = 1000,
    scale: float = 0.1,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> float:
    """Measure how well rules agree with a black box: on rows, off the data, or at its boundary.

    Use it to learn whether rules also describe the black box where there are no rows. FiRe and ICE
    evaluate only the rows, which may all lie far from the decision boundary.

    Parameters
    ----------
    rules : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        The rules.
    black_box : fitted model or callable
        Model whose predictions the rules should reproduce.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows with the columns of the black box.
    where : {"rows", "jittered", "interpolated", "uniform", "boundary"}, default="rows"
        Evaluate on the rows themselves, or on rows drawn by :func:`rows_off_data`.
    n_rows : int, default=1000
        Number of rows to draw.
    scale : float, default=0.1
        Size of the changes of jittered rows, see :func:`rows_off_data`.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; drawn rows start from rows drawn in proportion to it.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the drawn rows.

    Returns
    -------
    float
        Share of equal predictions (classification, 0 to 1) or R² (regression, at most 1); greater
        is better. NaN, with an ``UndefinedMetricWarning``, for the boundary of a black box that
        predicts one class for all rows.

    Raises
    ------
    TypeError
        If the black box is not callable and has no ``predict``.
    ValueError
        If `where` is unknown, ``"boundary"`` is used in regression, or the rows do not fit.

    Notes
    -----
    Most rules agree less near a boundary than on the rows, since drawn rows lie on both sides of
    it. Compare only figures of the same black box and data set.

    References
    ----------
    R. Guidotti et al.: A survey of methods for explaining black box models. ACM Computing Surveys
    51(5), 2018, doi:10.1145/3236009. Fidelity.

    M. Craven, J. Shavlik: Extracting tree-structured representations of trained networks. NIPS
    1995. Fidelity on drawn rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.metrics import fidelity
    >>> X, y = load_iris(return_X_y=True)
    >>> extractor = CARTExtractor(
    ...     KNeighborsClassifier(9), max_leaf_nodes=4, random_state=0
    ... ).fit(X, y)
    >>> rules, black_box = extractor.rules_, extractor.estimator_
    >>> [round(fidelity(rules, black_box, X, where=w), 2) for w in ("rows", "uniform", "boundary")]
    [0.97, 0.61, 0.69]
    """
    check_choice("where", where, ("rows", *OFF_DATA))
    ruleset, predict = as_ruleset(rules), _predictor(black_box)
    X = convert_rows(X)
    weights = checked_weights(sample_weight, _length(X))
    if where == "rows":
        return _agreement(ruleset, X, predict(X), weights)
    if where == "boundary" and ruleset.task == "regression":
        raise ValueError(
            "where='boundary' is for classes, but the rules predict numbers, which have no "
            "decision boundary. Choose where='interpolated'."
        )
    rows = rows_off_data(
        X,
        where,
        n_rows,
        black_box=black_box,
        scale=scale,
        sample_weight=weights,
        random_state=random_state,
    )
    if not _length(rows):
        return _undefined(
            "the black box predicts one class for all rows. Pass rows of other classes too."
        )
    return _agreement(ruleset, rows, predict(rows), None)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def rows_off_data(
    X: Any,
    where: str,
    n_rows: int = 1000,
    *,
    black_box: Any = None,
    scale: float = 0.1,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> Any:
    r"""Draw rows around, between or away from given rows, or near a black box's boundary.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows to start from, at least one.
    where : {"jittered", "interpolated", "uniform", "boundary"}
        ``"jittered"`` adds a normal deviate to every number, with `scale` times the standard
        deviation of its column, within the column's range. It replaces a category by that of a
        random row with probability `scale`. ``"interpolated"`` draws rows on the line between two
        rows, with the categories of one or the other. ``"uniform"`` draws every value independently
        from the range, or the categories, of its column. ``"boundary"`` draws rows close to the
        point where the prediction changes on the line between two rows with different predictions.
    n_rows : int, default=1000
        Number of rows to draw.
    black_box : fitted model or callable, optional
        Required for ``where="boundary"``.
    scale : float, default=0.1
        Size of the changes of jittered rows.
    sample_weight : array-like of shape (n_rows,), optional
        Relative probability of starting from each row.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the drawn rows.

    Returns
    -------
    array or DataFrame
        Rows of the same type as `X`; integers remain integers. Empty for the boundary of a black
        box that predicts one class.

    Raises
    ------
    ValueError
        If there are no rows, or a parameter is out of its range.
    TypeError
        If the boundary is requested without a black box.

    Notes
    -----
    Eight bisection steps locate the boundary on the line from :math:`a` to :math:`b`; rows are
    drawn at most a tenth of the line's length before and behind it. A category changes at a random
    point of the line.

    Examples
    --------
    >>> rows_off_data([[0, 10.0], [4, 30.0]], "interpolated", 2, random_state=1).shape
    (2, 2)
    """
    check_choice("where", where, OFF_DATA)
    check_integer("n_rows", n_rows, 1)
    check_number("scale", scale, 0.0, finite=True)
    X = convert_rows(X)
    table = _Rows(X)
    weights = checked_weights(sample_weight, len(table.frame))
    rng = child_generator(random_state, _ROWS)
    chances = None if weights is None else weights / weights.sum()
    if where == "boundary":
        if black_box is None:
            raise TypeError("where='boundary' needs the black box, but black_box is None; pass it.")
        return table.at_boundary(_predictor(black_box), n_rows, chances, rng)
    start = rng.choice(len(table.frame), n_rows, p=chances)
    if where == "jittered":
        return table.jittered(start, scale, rng)
    if where == "uniform":
        return table.uniform(n_rows, rng)
    end = rng.choice(len(table.frame), n_rows, p=chances)
    return table.between(start, end, rng.random(n_rows), rng.random((n_rows, table.width)))


class _Rows:
    """Rows from which new rows are generated, column by column."""

    def __init__(self, X: Any) -> None:
        self._like = X
        if isinstance(X, pd.DataFrame):
            self.frame = X
        elif hasattr(X, "to_pandas"):
            self.frame = X.to_pandas()
            for name, column in self._nullable_columns().items():
                # pandas would read integers as floats, and booleans as objects.
                if not column.dtype.is_float():
                    name_of_type = str(column.dtype).replace("Boolean", "boolean")
                    self.frame[name] = pd.Series(column.to_list(), dtype=name_of_type)
        else:
            self._like = np.asarray(X)
            if self._like.ndim != 2:
                raise ValueError(
                    f"X must be two-dimensional (rows, features), got shape {self._like.shape}. "
                    "Pass one row as X.iloc[[0]] of a frame, or X[[0]] of an array."
                )
            self.frame = pd.DataFrame(self._like).infer_objects()
        if not len(self.frame):
            raise ValueError("X must hold at least one row to generate rows from, got 0 rows.")
        self.width = self.frame.shape[1]

    @property
    def rows(self) -> Any:
        """The original rows."""
        return self._like

    def _nullable_columns(self) -> dict[str, Any]:
        """Return columns of a polars frame with nulls, of types that pandas has too, by name."""
        columns = self._like.get_columns() if hasattr(self._like, "get_columns") else []
        types = {"Boolean", "Float32", "Float64"}
        types |= {f"{sign}Int{size}" for sign in ("", "U") for size in (8, 16, 32, 64)}
        return {c.name: c for c in columns if c.null_count() and str(c.dtype) in types}

    def permuted(self, feature: int, order: NDArray[np.intp]) -> Any:
        """Return the rows with the values of one column permuted."""
        columns = [column.reset_index(drop=True) for column, _ in self._columns()]
        columns[feature] = _take_rows(columns[feature], order)
        return self._with_columns(columns)

    def _with_columns(self, columns: list[Any]) -> Any:
        names = range(self.width)
        frame = pd.DataFrame(dict(zip(names, columns, strict=True)), columns=list(names))
        frame.columns = self.frame.columns
        if isinstance(self._like, np.ndarray):
            return frame.to_numpy(dtype=self._like.dtype)
        if self.frame is self._like:
            return frame
        rows = type(self._like)(frame)
        nullable = self._nullable_columns().items()
        nulls = [rows[name].fill_nan(None) for name, column in nullable if column.dtype.is_float()]
        return rows.with_columns(nulls) if nulls else rows

    def _columns(self) -> list[tuple[pd.Series, Floats | None]]:
        """Return all columns, numeric ones with their numbers."""
        columns = []
        for feature in range(self.width):
            column = self.frame.iloc[:, feature]
            numeric = is_numeric_dtype(column) and not is_bool_dtype(column)
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan) if numeric else None
            columns.append((column, numbers))
        return columns

    def jittered(self, start: NDArray[np.intp], scale: float, rng: np.random.Generator) -> Any:
        """Generate rows with small random changes of the values."""
        result = []
        for column, numbers in self._columns():
            if numbers is None:
                is_replaced = rng.random(len(start)) < scale
                other = rng.integers(0, len(column), len(start))
                result.append(_take_rows(column, np.where(is_replaced, other, start)))
                continue
            observed_values = numbers[np.isfinite(numbers)]
            deviations = rng.standard_normal(len(start))
            values = numbers[start]
            if len(observed_values):
                moved_by = scale * observed_values.std() * deviations
                values = np.clip(values + moved_by, observed_values.min(), observed_values.max())
            result.append(_like(column, values))
        return self._with_columns(result)

    def uniform(self, n_rows: int, rng: np.random.Generator) -> Any:
        """Generate uniform rows in the bounding box of the rows."""
        result = []
        for column, numbers in self._columns():
            u, missing_draws = rng.random(n_rows), rng.random(n_rows)
            if numbers is None:
                first = np.flatnonzero(~column.duplicated().to_numpy())
                result.append(_take_rows(column, first[(u * len(first)).astype(np.intp)]))
                continue
            observed_values = numbers[np.isfinite(numbers)]
            values = np.full(n_rows, np.nan)
            if len(observed_values):
                low, high = observed_values.min(), observed_values.max()
                if is_integer_dtype(column):  # all integers are equally likely
                    values = low + np.floor(u * (high - low + 1))
                else:
                    values = np.clip(low * (1 - u) + high * u, low, high)
            values[missing_draws < 1 - len(observed_values) / len(numbers)] = np.nan
            result.append(_like(column, values))
        return self._with_columns(result)

    def between(
        self, start: NDArray[np.intp], end: NDArray[np.intp], position: Floats, switch: Floats
    ) -> Any:
        """Interpolate between pairs of rows; non-numeric values switch at a random point."""
        result = []
        for feature, (column, numbers) in enumerate(self._columns()):
            nearer = np.where(switch[:, feature] < position, end, start)
            if numbers is None:
                result.append(_take_rows(column, nearer))
                continue
            with np.errstate(invalid="ignore"):  # Columns may hold infinite numbers.
                first, second = numbers[start], numbers[end]
                values = first * (1 - position) + second * position
                values = np.clip(values, np.minimum(first, second), np.maximum(first, second))
            unknown = ~np.isfinite(values)
            values[unknown] = numbers[nearer[unknown]]
            result.append(_like(column, values))
        return self._with_columns(result)

    def at_boundary(
        self,
        predict: Callable[[Any], Any],
        n_rows: int,
        shares: Floats | None,
        rng: np.random.Generator,
    ) -> Any:
        """Generate rows near the decision boundary by bisection between pairs of rows."""
        class_codes, labels = pd.factorize(np.asarray(predict(self._like)))
        p = np.full(len(class_codes), 1 / len(class_codes)) if shares is None else shares
        mass = np.bincount(class_codes, p, len(labels))
        start = rng.choice(len(class_codes), n_rows, p=shares)
        start = start[mass[class_codes[start]] < 1 - 1e-12]  # another class has weight
        end = np.empty_like(start)
        for code in np.unique(class_codes[start]).tolist():
            mask, others = class_codes[start] == code, np.where(class_codes == code, 0.0, p)
            end[mask] = rng.choice(len(class_codes), int(mask.sum()), p=others / others.sum())
        low, high = np.zeros(len(start)), np.ones(len(start))
        switch = rng.random((len(start), self.width))
        if not len(start):
            return self._with_columns([column.iloc[:0] for column, _ in self._columns()])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            middle_labels = np.asarray(predict(self.between(start, end, middle, switch)))
            same = middle_labels == labels[class_codes[start]]
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        position = (low + high) / 2 + rng.uniform(-_NEAR, _NEAR, len(start))
        return self.between(start, end, np.clip(position, 0.0, 1.0), switch)


def _take_rows(column: pd.Series, rows: NDArray[np.intp]) -> pd.Series:
    return column.iloc[rows].reset_index(drop=True)


def _like(column: pd.Series, values: Floats) -> pd.Series:
    """Convert numbers to the dtype of the column."""
    if not is_integer_dtype(column):
        return pd.Series(values).astype(column.dtype)
    values = np.rint(values)
    if not (np.abs(values) >= LARGEST_EXACT).any():
        return pd.Series(values).astype(column.dtype)
    # Floats near the limits of 64-bit integers may exceed them.
    low, high = int(column.min()), int(column.max())
    integers = [
        None if math.isnan(value) else min(max(int(value), low), high) for value in values.tolist()
    ]
    return pd.Series(integers, dtype=object).astype(column.dtype)


@dataclass(frozen=True, eq=False)
class GroupFidelity:
    """Fidelity of groups of rows, as returned by :func:`group_fidelity`.

    Attributes
    ----------
    groups : tuple
        The groups, in the order in which they first occur.
    rows : ndarray of shape (n_groups,)
        Number of rows of each group, or the sum of their weights.
    values : ndarray of shape (n_groups,)
        Fidelity of each group.
    overall : float
        Fidelity on all rows, the mean of `values` weighted by `rows`.

    Examples
    --------
    >>> fidelity = group_fidelity(["a", "a", "b"], ["a", "b", "b"], task="classification")
    >>> dict(zip(fidelity.groups, fidelity.values.tolist()))
    {'a': 0.5, 'b': 1.0}
    """

    groups: tuple[Any, ...]
    rows: Floats
    values: Floats
    overall: float

    @property
    def gap(self) -> float:
        """Fidelity on all rows minus the fidelity of the worst group; 0 is best."""
        return max(self.overall - float(self.values.min()), 0.0)

    @property
    def mean_gap(self) -> float:
        """Mean absolute difference between pairs of groups; 0 is best; a single group has 0."""
        one, other = np.triu_indices(len(self.values), 1)
        distances = np.abs(self.values[one] - self.values[other])
        return float(distances.mean()) if len(one) else 0.0

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per group.

        Returns
        -------
        DataFrame
            ``rows`` and ``fidelity`` by group.
        """
        index = pd.Index(self.groups, name="group")
        return pd.DataFrame({"rows": self.rows, "fidelity": self.values}, index=index)


def group_fidelity(
    y_black_box: ArrayLike,
    y_rules: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    task: str,
    sample_weight: ArrayLike | None = None,
) -> GroupFidelity:
    r"""Measure how well rules agree with a black box for each class, or each group of rows.

    Use it to check that rules are as faithful for minorities as for the majority: a mean over all
    rows hides a class or group that the rules predict badly.

    Parameters
    ----------
    y_black_box, y_rules : array-like of shape (n_rows,)
        Predictions of the black box and of the rules.
    groups : array-like of shape (n_rows,), optional
        Group of each row, such as a column of the table. By default, in classification, the black
        box's prediction, which gives the fidelity by class.
    task : {"classification", "regression"}
        Task of the black box.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive.

    Returns
    -------
    GroupFidelity
        Fidelity of each group; groups whose rows all have weight 0 are omitted.

    Raises
    ------
    ValueError
        If the arrays differ in length or are empty, or `groups` is None in regression.

    Notes
    -----
    In classification, the fidelity :math:`f_g` of a group is the share of its rows with equal
    predictions. In regression, let :math:`b` be the predictions of the black box and :math:`r`
    those of the rules. Then :math:`f_g` is
    :math:`1 - \frac{\mathrm{mean}_g |b - r|}{\mathrm{mean} |b - \bar b|}`, where the denominator is
    computed on all rows. The best value is 1. Rules that always predict the mean have the value 0
    on all rows together. If the black box predicts a constant, rows for which the rules predict the
    same constant have the value 1, and other rows minus infinity. The overall :math:`f` is the mean
    of the groups, weighted by their numbers of rows.

    The gap :math:`f - \min_g f_g` is the "maximum fidelity gap from average" of Balagopalan and
    others; the mean gap :math:`\frac{2}{G(G - 1)} \sum_{g < h} |f_g - f_h|` is their "mean fidelity
    gap amongst subgroups". Both are at least 0, and in classification at most 1. Small groups
    differ by chance, so check the number of rows.

    References
    ----------
    A. Balagopalan et al.: The road to explainability is paved with bias: measuring the fairness of
    explanations. FAccT 2022, arXiv:2205.03295.

    Examples
    --------
    >>> from skescore.metrics import group_fidelity
    >>> fidelity = group_fidelity(
    ...     [1, 1, 0, 0], [1, 1, 1, 0], ["north", "north", "south", "south"],
    ...     task="classification",
    ... )
    >>> fidelity.overall, fidelity.gap, fidelity.mean_gap
    (0.75, 0.25, 0.5)
    """
    check_choice("task", task, TASKS)
    check_labels = whole_labels if task == "classification" else one_dimension
    box, rules = check_labels("y_black_box", y_black_box), one_dimension("y_rules", y_rules)
    if box.ndim != 1 or box.shape != rules.shape or not len(box):
        raise ValueError(
            "y_black_box and y_rules must be one-dimensional, equally long and not empty, got "
            f"shapes {box.shape} and {rules.shape}."
        )
    weights = np.ones(len(box)) if sample_weight is None else row_weights(sample_weight, len(box))
    if not weights.any():
        raise ValueError("sample_weight must hold a positive number. Pass None for equal weights.")
    if groups is None and task == "regression":
        raise ValueError(
            "In regression, groups must state the group of each row, got None. Pass a column, or "
            "intervals of the predictions."
        )
    has_weight = weights > 0
    group_labels = box if groups is None else one_per_row(groups, len(box))
    codes, group_names = pd.factorize(group_labels[has_weight], use_na_sentinel=False)
    box, rules, weights = box[has_weight], rules[has_weight], weights[has_weight]
    if task == "classification":
        box_codes, rules_codes = common_codes(box, rules)  # does not round integers
        values = np.asarray(box_codes == rules_codes, dtype=np.float64)
    else:
        box, rules = finite_numbers("y_black_box", box), finite_numbers("y_rules", rules)
        scale = np.average(np.abs(deviations_from_mean(box, weights)), weights=weights)
        error = np.abs(box - rules)
        # A constant has no scale, so only exact predictions agree with it.
        values = 1 - error / scale if scale > 0 else np.where(error == 0, 1.0, -math.inf)
    rows = np.bincount(codes, weights, len(group_names)).astype(np.float64)
    means = np.bincount(codes, weights * values, len(group_names)) / rows
    return GroupFidelity(
        tuple(np.asarray(group_names, dtype=object).tolist()),
        rows,
        means,
        float(np.average(values, weights=weights)),
    )


@dataclass(frozen=True, eq=False)
class FeatureAgreement:
    """Feature importance to rules and to the black box, returned by :func:`feature_agreement`.

    Attributes
    ----------
    features : tuple of str
        Names of the columns.
    black_box, rules : ndarray of shape (n_features,)
        Share of each column in the total change of predictions when columns are permuted; all zero
        if no column matters.
    agreement : float
        Agreement of the two importances.

    Examples
    --------
    >>> import numpy as np
    >>> FeatureAgreement(("a", "b"), np.array([0.5, 0.5]), np.array([1.0, 0.0]), 0.5).to_frame()
             black_box  rules
    feature
    a              0.5    1.0
    b              0.5    0.0
    """

    features: tuple[str, ...]
    black_box: Floats
    rules: Floats
    agreement: float

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per feature, most important to the black box first.

        Returns
        -------
        DataFrame
            ``black_box`` and ``rules`` by feature.
        """
        index = pd.Index(self.features, name="feature")
        frame = pd.DataFrame({"black_box": self.black_box, "rules": self.rules}, index=index)
        return frame.sort_values("black_box", ascending=False, kind="stable")


def feature_agreement(
    rules: Any,
    black_box: Any,
    X: Any,
    *,
    n_repeats: int = 3,
    max_rows: int = 1000,
    sample_weight: ArrayLike | None = None,
    random_state: Any = 0,
) -> FeatureAgreement:
    r"""Measure whether rules and the black box depend on the same features.

    Use it to find rules that make the same predictions for other reasons, for example because they
    use a column that is correlated with the column that the black box uses.

    Parameters
    ----------
    rules : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        The rules.
    black_box : fitted model or callable
        Model whose feature importance is compared.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows with the columns of the black box.
    n_repeats : int, default=3
        Number of permutations of each column.
    max_rows : int, default=1000
        Number of rows to draw, with replacement, if there are more rows or weights.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; rows are drawn in proportion to it.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the permutations.

    Returns
    -------
    FeatureAgreement

    Raises
    ------
    TypeError
        If the black box is not callable and has no ``predict``.
    ValueError
        If there are no rows, or a parameter is out of its range.

    Notes
    -----
    The importance of a feature is how often a prediction changes (in regression, by how much) when
    its column is permuted. Rules and black box get the same rows and permutations. With the shares
    :math:`w_j` of the black box and :math:`v_j` of the rules, the agreement is
    :math:`\sum_j \min(w_j, v_j)`, from 0 (different features) to 1 (equal importances), which is 1
    minus the total variation distance. It is 1 if neither depends on any feature. The black box
    predicts ``n_features * n_repeats + 1`` times. Correlated features share their importance
    arbitrarily.

    References
    ----------
    L. Breiman: Random forests. Machine Learning 45, 2001, doi:10.1023/A:1010933404324. Permutation
    importance, defined on the error.

    A. Fisher, C. Rudin, F. Dominici: All models are wrong, but many are useful. JMLR 20(177), 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.metrics import feature_agreement
    >>> X, y = load_iris(return_X_y=True)
    >>> extractor = CARTExtractor(
    ...     KNeighborsClassifier(9), max_leaf_nodes=4, random_state=0
    ... ).fit(X, y)
    >>> round(feature_agreement(extractor.rules_, extractor.estimator_, X).agreement, 2)
    0.59
    """
    check_integer("n_repeats", n_repeats, 1)
    check_integer("max_rows", max_rows, 1)
    ruleset, predict = as_ruleset(rules), _predictor(black_box)
    X = convert_rows(X)
    table = _Rows(X)
    weights = checked_weights(sample_weight, len(table.frame))
    rng = child_generator(random_state, _PERMUTATIONS)
    if weights is not None or len(table.frame) > max_rows:
        probabilities = None if weights is None else weights / weights.sum()
        drawn_rows = rng.choice(len(table.frame), max_rows, p=probabilities)
        table = _Rows(_safe_indexing(X, drawn_rows))
    permutations = [
        [rng.permutation(len(table.frame)) for _ in range(n_repeats)] for _ in range(table.width)
    ]

    def of_rules(rows: Any) -> NDArray[Any]:
        predicted, is_predicted = known_predictions(ruleset, rows)
        if ruleset.task == "regression":
            return np.where(is_predicted, predicted.astype(np.float64), np.nan)
        objects = predicted.astype(object)
        objects[~is_predicted] = None
        return objects

    def of_black_box(rows: Any) -> NDArray[Any]:
        return np.asarray(predict(rows))

    shares = []
    for function in (of_black_box, of_rules):
        before = function(table.rows)
        changes = np.array(
            [
                np.mean([_change(before, function(table.permuted(j, p)), ruleset) for p in orders])
                for j, orders in enumerate(permutations)
            ]
        )
        shares.append(changes / changes.sum() if changes.sum() > 0 else changes)
    box_shares, rule_shares = shares
    agreement = 1.0
    if box_shares.any() or rule_shares.any():
        agreement = float(np.minimum(box_shares, rule_shares).sum())
    names = tuple(str(name) for name in table.frame.columns)
    if not isinstance(X, pd.DataFrame) and len(names) == len(ruleset.feature_names):
        names = tuple(ruleset.feature_names)
    return FeatureAgreement(names, box_shares, rule_shares, min(agreement, 1.0))


def _change(before: NDArray[Any], after: NDArray[Any], ruleset: RuleSet) -> float:
    if ruleset.task == "classification":
        return float(np.mean(before != after))
    # Uncovered rows are predicted by the mean.
    mean = float(np.nanmean(before)) if not np.isnan(before.astype(float)).all() else 0.0
    one, other = (np.nan_to_num(side.astype(np.float64), nan=mean) for side in (before, after))
    return float(np.mean(np.abs(one - other)))
