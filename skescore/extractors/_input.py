"""Checks of rows and targets, and encoding of categorical columns."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from skescore._text import repeated
from skescore._validation import python_value
from skescore.extractors._oracle import FrameKinds, first_missing
from skescore.rules import Condition, Interval, LinearOutput, OneOf, Rule, RuleSet


def frame_column(X: Any, position: int) -> pd.Series:
    """Return a column of a pandas or polars frame."""
    if hasattr(X, "iloc"):
        return X.iloc[:, position]
    column = X.to_series(position)
    if column.dtype.is_numeric():
        return pd.Series(column.to_numpy())
    is_boolean = str(column.dtype) == "Boolean" and column.null_count() > 0
    return pd.Series(column.to_list(), dtype="boolean" if is_boolean else None)


def column_numbers(column: pd.Series) -> np.ndarray:
    """Return a column as floats: NaN for missing values, time units since 1970 for dates."""
    numbers = column.to_numpy(dtype=float, na_value=np.nan)
    if column.dtype.kind in "mM":  # pandas converts NaT to the smallest integer
        numbers = np.where(column.isna(), np.nan, numbers)
    return numbers


def check_columns(
    X: Any, extractor: str, categorical: Container[int] = (), only: Container[int] | None = None
) -> None:
    """Raise a ValueError if a data frame has invalid columns.

    The columns at the positions `categorical` need not be numeric; columns that are not in `only`
    are not checked. Arrays are left to the checks of scikit-learn.
    """
    if not (hasattr(X, "columns") and hasattr(X, "shape")):
        return
    names = [str(c) for c in X.columns]
    duplicates = repeated(names)
    if duplicates:
        raise ValueError(
            f"X has more than one column named {', '.join(map(repr, duplicates))}, so rules "
            "would be ambiguous. Rename or drop them."
        )
    for position, name in enumerate(names):
        if only is not None and position not in only:
            continue
        column = frame_column(X, position)
        if position not in categorical:
            _check_column(column, name, extractor)


def _check_column(column: pd.Series, name: str, extractor: str) -> None:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        is_wrong = [not isinstance(v, Real | Decimal) for v in column] & column.notna().to_numpy()
        if is_wrong.any():
            row = int(np.flatnonzero(is_wrong)[0])
            names = is_wrong.all() and pd.to_numeric(column, errors="coerce").isna().all()
            hint = " The extractors of skescore accept categorical columns." if names else ""
            value = python_value(column.iloc[row])
            raise ValueError(
                f"{extractor} needs numbers, but column {name!r} holds {value!r} in row {row} "
                f"({int(is_wrong.sum())} of {len(column)} rows are not numbers). Encode the column "
                f"as numbers or drop it.{hint}"
            )
    values = column.to_numpy(dtype=float, na_value=np.nan)
    infinite = np.isinf(values)
    if infinite.any():
        row = int(np.flatnonzero(infinite)[0])
        raise ValueError(
            f"Input X contains infinity: column {name!r} holds {values[row]} in row {row}. Rules "
            "need finite numbers; replace or drop such rows."
        )


def check_labels(y: np.ndarray) -> None:
    """Raise a ValueError if class labels are missing or cannot be sorted."""
    if y.dtype != object:
        return
    missing = np.flatnonzero(pd.isna(y))
    if len(missing):
        raise ValueError(
            f"y lacks a label in {len(missing)} of {len(y)} rows, the first in row {missing[0]} "
            f"({y[missing[0]]!r}). Drop these rows, or give them a separate label."
        )
    kinds = sorted({type(label).__name__ for label in y if not isinstance(label, Real)})
    if len(kinds) > 1 or (kinds and any(isinstance(label, Real) for label in y)):
        raise ValueError(
            f"y mixes labels of different types ({', '.join(kinds)} and numbers or others). Make "
            "them all text, or all numbers."
        )


def is_plain(X: Any, n_features: int | None = None, *, min_rows: int = 1) -> bool:
    """Return whether rows are an array that passes all checks of scikit-learn."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) >= min_rows
        and (X.shape[1] > 0 if n_features is None else X.shape[1] == n_features)
        and bool(np.isfinite(X).all())
    )


# Algorithms get categorical values as codes 0, 1, ...; the black box and the rules have the values.


def category_order(
    codes: np.ndarray, predictions: np.ndarray, n_values: int, n_classes: int | None
) -> np.ndarray:
    """Order the values of a categorical feature, so that a tree can split them by thresholds.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        Code of each row's value; all codes occur.
    predictions : ndarray of shape (n_rows,)
        Predictions of the black box: numbers, or indices of classes.
    n_values : int
        Number of values.
    n_classes : int or None
        Number of classes; None for a regression.

    Returns
    -------
    ndarray of int, shape (n_values,)
        Codes of the values, in order.

    Notes
    -----
    In regression and with two classes, the values are ordered by their mean prediction; the best
    split into two sets is then a threshold. With more classes, the values are ordered along the
    first principal component of their class probabilities, which usually gives the best split.

    References
    ----------
    L. Breiman, J. Friedman, C. Stone, R. Olshen: Classification and Regression Trees, 1984,
    section 4.2; D. Coppersmith, S. Hong, J. Hosking: Partitioning nominal attributes in decision
    trees. Data Mining and Knowledge Discovery 3, 1999.

    Examples
    --------
    >>> from skescore.extractors import category_order
    >>> category_order(np.array([0, 1, 2, 1]), np.array([5.0, 9.0, 1.0, 7.0]), 3, None)
    array([2, 0, 1])
    """
    total = np.bincount(codes, minlength=n_values)
    if n_classes is None:
        sums = np.bincount(codes, weights=predictions, minlength=n_values)[:, None]
    else:
        counts = np.bincount(codes * n_classes + predictions, minlength=n_values * n_classes)
        sums = counts.reshape(n_values, n_classes)
    return order_of_means(total, sums)


def order_of_means(total: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Order values by their mean prediction, given numbers of rows and sums of predictions.

    The sums have the shape (n_values, 1), or (n_values, n_classes) with the counts of classes.
    Values without rows are ordered by the prediction of all rows.
    """
    means = np.where(
        (total > 0)[:, None], sums / np.maximum(total, 1)[:, None], sums.sum(axis=0) / total.sum()
    )
    if sums.shape[1] == 1:
        position = means[:, 0]
    else:
        probabilities = means
        centered = probabilities - np.average(probabilities, axis=0, weights=total)
        scatter = (centered * total[:, None]).T @ centered
        direction = np.linalg.eigh(scatter)[1][:, -1]
        # The sign of an eigenvector is arbitrary, so its largest component is made positive.
        direction *= np.sign(direction[np.argmax(np.abs(direction))])
        position = centered @ direction
    extent = np.ptp(position)
    if extent > 0:  # rounding errors must not decide
        position = np.round(position / extent, 9)
    return np.argsort(position, kind="stable")


def name_categories(ruleset: RuleSet, values: Mapping[int, tuple[Any, ...]]) -> RuleSet:
    """Convert intervals of category ranks to sets of values.

    The conditions become ``color in {blue, red}``. A set of more than half of the values is written
    as its complement, ``color ≠ green``, which also holds for unseen values. Rules that hold for no
    value are dropped.

    Raises
    ------
    ValueError
        If a linear output or condition uses a rank.
    """
    rules = []
    for rule in ruleset.rules:
        for part in (rule.output, rule.weight):
            terms = part.terms if isinstance(part, LinearOutput) else ()
            if ranked := [ruleset.feature_names[j] for j, _ in terms if j in values]:
                raise ValueError(
                    f"A rule multiplies {ranked[0]!r} by a number, but the column holds "
                    "categories. Tell the learner to leave out linear terms (imodels' RuleFit: "
                    "include_linear=False), or encode the column as numbers."
                )
        conditions: list[Condition] = []
        for condition in rule.conditions:
            if isinstance(condition, Interval) and condition.feature in values:
                replacement = _one_of(condition, values[condition.feature])
                if replacement is False:
                    break
                conditions += [] if replacement is True else [replacement]
            else:
                conditions.append(condition)
        else:
            rules.append(Rule(tuple(conditions), rule.output, rule.statistics, rule.weight))
    return ruleset.replace(rules=rules)


def _one_of(interval: Interval, values: tuple[Any, ...]) -> OneOf | bool:
    """Return a condition on the values in an interval of ranks; a bool for all or no values."""
    ranks = np.arange(len(values), dtype=float)
    held_ranks = interval.holds(lambda _: ranks)
    inside = [v for v, holds in zip(values, held_ranks, strict=True) if holds]
    outside = [v for v, holds in zip(values, held_ranks, strict=True) if not holds]
    if not (inside and outside):
        return bool(inside)
    if len(outside) < len(inside) and len(inside) > 1:
        return OneOf(interval.feature, tuple(outside), negated=True)
    return OneOf(interval.feature, tuple(inside))


def without_vacuous_conditions(ruleset: RuleSet) -> RuleSet:
    """Drop conditions on categories that hold for all values of the domain.

    For example, ``sex in {female, male}`` always holds in a column without missing values and other
    categories.
    """
    domain = ruleset.domain
    if domain is None or not domain.categories:
        return ruleset
    values_of = {
        feature: values
        for feature, values in domain.categories
        if not (domain.missing and domain.missing[feature])
    }

    def is_vacuous(condition: Condition) -> bool:
        if not isinstance(condition, OneOf) or condition.feature not in values_of:
            return False
        return all(
            (value in condition.values) != condition.negated
            for value in values_of[condition.feature]
        )

    if not any(is_vacuous(c) for rule in ruleset.rules for c in rule.conditions):
        return ruleset
    rules = [
        replace(rule, conditions=tuple(c for c in rule.conditions if not is_vacuous(c)))
        for rule in ruleset.rules
    ]
    return ruleset.replace(rules=rules)


class CategoryEncoder:
    """Encoder of the categorical columns of a data frame.

    Columns with categorical types, booleans or text are categorical. `categories` maps the index of
    each to its sorted values.

    Parameters
    ----------
    X : array-like or DataFrame
        The rows; an array has no categorical columns.

    Raises
    ------
    ValueError
        If the categories of a column are neither all text nor all numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.extractors import CategoryEncoder
    >>> X = pd.DataFrame({"size": [1.5, 2.0, 1.0], "color": ["red", "blue", "red"]})
    >>> encoder = CategoryEncoder(X)
    >>> encoder.categories
    {1: ('blue', 'red')}
    >>> encoder.codes(X)["color"].tolist()
    [1.0, 0.0, 1.0]
    """

    def __init__(self, X: Any) -> None:
        self.categories: dict[int, tuple[Any, ...]] = {}
        self._names: list[Any] = []
        self._labels: dict[int, np.ndarray] = {}
        self._missing: dict[int, Any] = {}
        self._types: dict[int, Any] = {}
        self._kinds = FrameKinds(X)
        if not (hasattr(X, "columns") and hasattr(X, "shape")):
            return
        self._names = list(X.columns)
        self._polars = not hasattr(X, "iloc")
        for position in range(len(self._names)):
            column = frame_column(X, position)
            if is_categorical(column):
                values = self.categories[position] = _category_values(
                    column, str(self._names[position])
                )
                # A column without any value decodes to missing values.
                labels = list(values) or [np.nan]
                self._labels[position] = pd.Series(labels, dtype=object).to_numpy()
                self._missing[position] = first_missing(column)
                self._types[position] = X.dtypes[position] if self._polars else column.dtype

    def __bool__(self) -> bool:
        return bool(self.categories)

    def codes(self, X: Any) -> pd.DataFrame:
        """Return the rows with codes instead of values, and NaN for missing ones."""
        columns = {}
        for position, name in enumerate(X.columns):
            column = frame_column(X, position)
            values = self.categories.get(position)
            if values is None:
                columns[name] = column_numbers(column)
                continue
            # With objects, pandas does not convert text to an Arrow array first.
            values_of_rows = pd.Index(column.to_numpy(dtype=object), dtype=object)
            codes = pd.Index(values, dtype=object).get_indexer(values_of_rows)
            columns[name] = np.where(codes < 0, np.nan, codes)
        return pd.DataFrame(columns)

    def frame(self, X: Any) -> Any:
        """Convert rows without column names to a frame with the columns of training."""
        rows = np.asarray(X, dtype=object)
        if rows.ndim != 2 or rows.shape[1] != len(self._names):
            return X  # scikit-learn's check reports the error
        frame = pd.DataFrame(rows, columns=self._names)
        numeric = [n for position, n in enumerate(self._names) if position not in self.categories]
        return frame.astype(dict.fromkeys(numeric, float))

    def decode(self, points: np.ndarray) -> Any:
        """Convert points with codes to a frame with the columns and values of training."""
        columns = {}
        for position, name in enumerate(self._names):
            column: Any = points[:, position]
            labels = self._labels.get(position)
            if labels is not None:
                is_missing = np.isnan(column)
                column = labels[np.where(is_missing, 0, column).astype(np.intp)]
                column[is_missing] = None if self._polars else self._missing[position]
                if not self._polars:
                    column = pd.Series(column, dtype=self._types[position])
            columns[name] = column
        if not self._polars:
            return self._kinds.restore(pd.DataFrame(columns))
        import polars

        series = [
            polars.Series(str(name), column.tolist(), dtype=self._types.get(position))
            for position, (name, column) in enumerate(columns.items())
        ]
        return self._kinds.restore_polars(polars.DataFrame(series))


def has_categories(X: Any) -> bool:
    """Return whether a data frame has categorical columns.

    Parameters
    ----------
    X : array-like or DataFrame
        The rows; an array has no categorical columns.

    Returns
    -------
    bool
        True if there is one.
    """
    if not (hasattr(X, "columns") and hasattr(X, "shape")):
        return False
    return any(is_categorical(frame_column(X, position)) for position in range(len(X.columns)))


def is_categorical(column: pd.Series) -> bool:
    """Return whether a column holds declared categories, only text, or only booleans.

    Columns that mix numbers and text, and columns of numbers written as text, are not categorical.

    Parameters
    ----------
    column : Series
        The column.

    Returns
    -------
    bool
        True for a categorical column.
    """
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column.dtype):
        return True
    if pd.api.types.is_numeric_dtype(column.dtype):
        return False
    observed = column.dropna()
    if not len(observed) or pd.api.types.infer_dtype(observed) != "string":
        return False
    # In Arrow columns, pandas does not recognize the NaN of texts that are not numbers.
    distinct_values = observed.drop_duplicates().to_numpy(dtype=object)
    return bool(pd.isna(pd.to_numeric(distinct_values, errors="coerce")).any())


def _category_values(column: pd.Series, name: str) -> tuple[Any, ...]:
    values = [python_value(value) for value in column.dropna().unique().tolist()]
    text = [isinstance(value, str) for value in values]
    unsupported = [v for v in values if not isinstance(v, str | Real) or isinstance(v, Decimal)]
    if unsupported or (any(text) and not all(text)):
        raise ValueError(
            f"The categories of column {name!r} must all be text, or all numbers, but they include "
            f"{unsupported[0] if unsupported else values[text.index(False)]!r}. Make them all text "
            f"with X[{name!r}].astype(str)."
        )
    return tuple(sorted(values))
