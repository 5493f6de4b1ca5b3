"""Relations of a single column to the target, and of rows with the same identifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

__all__ = [
    "OrderMeasures",
    "count_errors",
    "count_tree_errors",
    "measure_order",
    "measure_resemblance",
    "measure_tree_r2",
]

#: Largest number of values of a category that may determine the target.
_MAX_CATEGORIES = 50
#: Number of rows for each leaf of a tree on one numeric feature, and the largest number of leaves.
_ROWS_PER_LEAF, _MAX_LEAVES = 10, 64
#: Number of random orders with which the order of values is compared.
_N_ORDERS = 1000
#: Largest p-value of the relation of codes to the target, and smallest share of its variance.
_CODES_P_VALUE, _CODES_VARIANCE = 1e-4, 0.02
#: Smallest p-values of codes: of the order of the target, of the numbers of rows, and of both.
_ORDER_P_VALUE, _COUNT_P_VALUE, _BOTH_P_VALUES = 0.02, 0.01, 0.003
#: Smallest number of rows of a value that counts.
_MIN_CODE_ROWS = 4
#: Smallest deviation from chance of rows that resemble each other, in standard deviations.
_RESEMBLANCE_DEVIATIONS = 5.0


class OrderMeasures(NamedTuple):
    """Relation of integers to a target.

    `variance` is the share of the target's variance between the values, `p_value` that of the
    relation, `order_p_value` the share of random orders in which the target is as smooth as in the
    numeric order, and `count_p_value` the same for the number of rows of each value.
    """

    variance: float
    p_value: float
    order_p_value: float
    count_p_value: float

    @property
    def is_arbitrary(self) -> bool:
        """True if values are related to the target although their order is not."""
        is_related = self.p_value < _CODES_P_VALUE and self.variance >= _CODES_VARIANCE
        is_rough = self.order_p_value >= _ORDER_P_VALUE and self.count_p_value >= _COUNT_P_VALUE
        product = self.order_p_value * self.count_p_value
        return is_related and is_rough and product >= _BOTH_P_VALUES


def count_errors(column: pd.Series, codes: np.ndarray) -> int:
    """Return in how many rows a feature alone does not determine the class.

    Parameters
    ----------
    column : pandas.Series
        The feature.
    codes : ndarray of int
        Class of each row.

    Returns
    -------
    int
        Number of errors of a small decision tree on a numeric feature, or of the most frequent
        class of each category; the number of rows if there are too many categories.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return count_tree_errors(column.to_numpy(float, na_value=np.nan), codes)
    values, uniques = pd.factorize(column, use_na_sentinel=False)
    if not 1 < len(uniques) <= min(_MAX_CATEGORIES, len(codes) / 5):
        return len(codes)
    counts = np.zeros((len(uniques), codes.max() + 1), dtype=int)
    np.add.at(counts, (values, codes), 1)
    return int(len(codes) - counts.max(axis=1).sum())


def count_tree_errors(values: np.ndarray, codes: np.ndarray) -> int:
    """Return the number of errors of a small decision tree on one numeric feature.

    Parameters
    ----------
    values : ndarray of float
        The feature; NaN is missing.
    codes : ndarray of int
        Class of each row.

    Returns
    -------
    int
        Number of errors on these rows, with few more leaves than classes.
    """
    from sklearn.tree import DecisionTreeClassifier

    values = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(values).all():
        return len(codes)
    n_leaves = int(min(codes.max() + 3, max(2, len(codes) // _ROWS_PER_LEAF)))
    tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, min_samples_leaf=2, random_state=0)
    predicted = tree.fit(values[:, None], codes).predict(values[:, None])
    return int((predicted != codes).sum())


def measure_tree_r2(values: np.ndarray, target: np.ndarray) -> float:
    """Return the R² of a decision tree, or of a straight line, on one numeric feature.

    Parameters
    ----------
    values : ndarray of float
        The feature; NaN is missing.
    target : ndarray of float
        The target.

    Returns
    -------
    float
        The larger of both.
    """
    from sklearn.tree import DecisionTreeRegressor

    values = np.where(np.isfinite(values), values, np.nan)
    observed = ~np.isnan(values)
    spread = float(((target - target.mean()) ** 2).sum())
    if observed.sum() < 3 or len(np.unique(values[observed])) < 3 or spread == 0:
        return 0.0
    line = 0.0
    if observed.all():
        line = float(np.corrcoef(values, target)[0, 1] ** 2) if np.ptp(target) else 0.0
    n_leaves = int(np.clip(len(values) // _ROWS_PER_LEAF, 2, _MAX_LEAVES))
    tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves, min_samples_leaf=3, random_state=0)
    predicted = tree.fit(values[:, None], target).predict(values[:, None])
    return max(line, 1 - float(((target - predicted) ** 2).sum()) / spread)


def measure_order(values: np.ndarray, outcomes: Sequence[np.ndarray]) -> OrderMeasures:
    """Measure whether a target depends on integers, and on their order.

    Parameters
    ----------
    values : ndarray of float
        The integers; NaN is missing.
    outcomes : sequence of ndarray of float
        The target, or one indicator for each of its classes.

    Returns
    -------
    OrderMeasures
        The measures, of all outcomes together.
    """
    best = OrderMeasures(0.0, 1.0, 0.0, 0.0)
    observed_values, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    frequent = observed_values[counts >= _MIN_CODE_ROWS]
    observed = np.isin(values, frequent)
    codes, uniques = pd.factorize(values[observed], sort=True)
    sizes = np.bincount(codes).astype(float)
    if len(uniques) < 5 or sizes.max() > sizes.sum() / 2:
        return best
    count_p_value = _order_p_value(np.log(sizes)[:, None], np.ones(len(sizes)))
    y = np.column_stack([outcome[observed] for outcome in outcomes])
    y = y[:, y.std(axis=0) > 0]
    if not y.shape[1]:
        return best
    y = y / y.std(axis=0) if y.shape[1] == 1 else y
    sums = np.zeros((len(uniques), y.shape[1]))
    np.add.at(sums, codes, y)
    means = sums / sizes[:, None]
    between = float((sizes[:, None] * (means - y.mean(axis=0)) ** 2).sum())
    total = float(((y - y.mean(axis=0)) ** 2).sum())
    within = max(total - between, 1e-12)
    n_outcomes = max(y.shape[1] - 1, 1)  # shares of classes add up to 1
    freedom = (n_outcomes * (len(uniques) - 1), n_outcomes * (len(y) - len(uniques)))
    p_value = float(stats.f.sf(between / freedom[0] / (within / freedom[1]), *freedom))
    variance = 1 - (within / (len(y) - len(uniques))) / (total / (len(y) - 1))
    return OrderMeasures(variance, p_value, _order_p_value(means, sizes), count_p_value)


def _order_p_value(means: np.ndarray, sizes: np.ndarray) -> float:
    """Return the share of random orders of values in which neighbors are as alike."""
    generator = np.random.default_rng(0)
    weights = np.minimum(sizes[1:], sizes[:-1])[:, None]
    orders = generator.permuted(np.tile(np.arange(len(means)), (_N_ORDERS, 1)), axis=1)
    numeric = float((weights * np.diff(means, axis=0) ** 2).sum())
    roughness = (weights * np.diff(means[orders], axis=1) ** 2).sum(axis=(1, 2))
    return float((roughness <= numeric).mean())


def measure_resemblance(labels: np.ndarray, columns: pd.DataFrame) -> tuple[float, str]:
    """Measure how much more rows of one group resemble each other than other rows do.

    Parameters
    ----------
    labels : ndarray of int
        Group of each row.
    columns : DataFrame
        Features and target.

    Returns
    -------
    resemblance : float
        Greatest resemblance in a column: 1 if rows of a group are equal, 0 if they differ as much
        as rows of different groups, or if the difference may be chance.
    name : str
        The column.
    """
    generator = np.random.default_rng(0)
    order = np.argsort(labels, kind="stable")
    first, second = order[:-1], order[1:]
    same = labels[first] == labels[second]
    first, second = first[same], second[same]
    shuffled = generator.permutation(len(labels))
    best, best_name = 0.0, ""
    for name, column in columns.items():
        distances = _distances(column)
        apart = distances(shuffled[:-1], shuffled[1:])
        near = distances(first, second)
        expected, deviation = float(apart.mean()), float(apart.std())
        if expected == 0 or deviation == 0:
            continue
        resemblance = 1 - float(near.mean()) / expected
        is_clear = resemblance * expected * np.sqrt(len(near)) / deviation
        if resemblance > best and is_clear >= _RESEMBLANCE_DEVIATIONS:
            best, best_name = resemblance, str(name)
    return best, best_name


def _distances(column: pd.Series) -> Any:
    """Return a function of the distances between rows: of ranks, or whether categories differ."""
    if pd.api.types.is_numeric_dtype(column.dtype) and column.nunique() > 2:
        ranks = column.astype(float).rank().fillna(0).to_numpy()
        return lambda a, b: np.abs(ranks[a] - ranks[b])
    codes = pd.factorize(column)[0]
    return lambda a, b: (codes[a] != codes[b]).astype(float)
