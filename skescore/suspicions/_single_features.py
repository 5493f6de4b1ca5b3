"""Relations of single columns to the target, and between rows with the same identifier."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

__all__ = [
    "OrderMeasures",
    "are_spaced_like_codes",
    "count_errors",
    "count_subject_columns",
    "count_tree_errors",
    "measure_order",
    "measure_resemblance",
    "measure_tree_r2",
    "row_distances",
]

#: Function of two arrays of row indices that returns the distances between the rows.
Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: Maximum number of categories of a feature that may determine the target.
_MAX_CATEGORIES = 50
#: Number of rows per leaf of a tree on one numeric feature, and maximum number of leaves.
_ROWS_PER_LEAF, _MAX_LEAVES = 10, 64
#: Number of random orders with which the order of values is compared.
_N_ORDERS = 1000
#: Maximum p-value of the relation of codes to the target, and minimum share of its variance.
_CODES_P_VALUE, _CODES_VARIANCE = 1e-4, 0.02
#: Maximum p-value of the difference between codes and ranges or a curve, for one feature and
#: multiplied by the number of tested features.
_MAX_REST_P_VALUE, _MAX_CORRECTED_P_VALUE = 0.02, 0.1
#: Minimum p-values of codes: `order_p_value`, `count_p_value`, and their product.
_ORDER_P_VALUE, _COUNT_P_VALUE, _BOTH_P_VALUES = 0.005, 0.002, 5e-4
#: Minimum number of rows of a value that is used.
_MIN_CODE_ROWS = 4
#: Minimum share of the integers in the range of codes that occur, unless all codes have the same
#: number of digits; and minimum number of these digits.
_DENSITY, _MIN_DIGITS = 0.25, 3
#: Number of ranges, and of powers of a curve, that are compared with all values; and maximum share
#: of the variance explained by codes that ranges or a curve may explain, in general and for few
#: codes.
_N_RANGES, _SMOOTH_SHARE, _FEW_SMOOTH_SHARE = 3, 0.9, 0.75
_FEW_CODES = 10
#: Minimum deviation from chance of the resemblance of rows, in standard deviations.
_RESEMBLANCE_DEVIATIONS = 5.0
#: Minimum number of values that may number subjects, and maximum share of the rows of one subject.
_MIN_SUBJECTS, _MAX_SUBJECT_SHARE = 20, 0.1
#: Maximum number of rows and of columns that are compared.
_MAX_COMPARED_ROWS, _MAX_COMPARED = 5000, 60
#: Minimum resemblance of rows of one subject, maximum resemblance of rows of subjects with
#: neighboring numbers, and minimum share and number of columns in which both hold.
_SUBJECT_RESEMBLANCE, _NEIGHBOR_RESEMBLANCE = 0.5, 0.2
_SUBJECT_COLUMNS, _MIN_SUBJECT_COLUMNS = 0.5, 3


class OrderMeasures(NamedTuple):
    """Relation of integers to a target.

    The integers explain the share `variance` of the target's variance, with the p-value `p_value`.
    `order_p_value` is the share of random orders of the integers in which the target is at least as
    smooth as in numeric order; `count_p_value` is the same for the number of rows of each integer.
    Three ranges, or a cubic curve, explain `smooth_share` of what all `n_values` integers explain;
    `rest_p_value` is the p-value of the difference.
    """

    variance: float
    p_value: float
    order_p_value: float
    count_p_value: float
    smooth_share: float = 1.0
    rest_p_value: float = 1.0
    n_values: int = 0

    @property
    def is_ordered(self) -> bool:
        """Whether the target is related to the order of the values."""
        return self.p_value < _CODES_P_VALUE and self.order_p_value < _ORDER_P_VALUE

    def is_arbitrary(self, n_features: int = 1) -> bool:
        """Return whether values are related to the target although their order is not.

        Parameters
        ----------
        n_features : int, default=1
            Number of tested features.

        Returns
        -------
        bool
            Whether the values look like codes, corrected for the number of tested features.
        """
        is_related = self.p_value < _CODES_P_VALUE and self.variance >= _CODES_VARIANCE
        is_rough = self.order_p_value >= _ORDER_P_VALUE and self.count_p_value >= _COUNT_P_VALUE
        product = self.order_p_value * self.count_p_value
        limit = _FEW_SMOOTH_SHARE if self.n_values < _FEW_CODES else _SMOOTH_SHARE
        is_nominal = self.smooth_share <= limit and self.rest_p_value < min(
            _MAX_REST_P_VALUE, _MAX_CORRECTED_P_VALUE / n_features
        )
        return is_related and is_rough and product >= _BOTH_P_VALUES and is_nominal


def count_errors(column: pd.Series, codes: np.ndarray, limit: float = np.inf) -> int:
    """Count the rows whose class a feature alone does not determine.

    Parameters
    ----------
    column : pandas.Series
        Values of the feature.
    codes : ndarray of int
        Class of each row.
    limit : float, default=inf
        Largest number of errors of interest.

    Returns
    -------
    int
        Number of errors of a small decision tree on a numeric feature, or of the most frequent
        class of each category; the number of rows if there are too many categories, or if it is
        clear that the errors exceed the limit.
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        return count_tree_errors(column.to_numpy(float, na_value=np.nan), codes, limit)
    values, uniques = pd.factorize(column, use_na_sentinel=False)
    if not 1 < len(uniques) <= min(_MAX_CATEGORIES, len(codes) / 5):
        return len(codes)
    counts = np.zeros((len(uniques), codes.max() + 1), dtype=int)
    np.add.at(counts, (values, codes), 1)
    return int(len(codes) - counts.max(axis=1).sum())


def count_tree_errors(values: np.ndarray, codes: np.ndarray, limit: float = np.inf) -> int:
    """Return the number of errors of a small decision tree on one numeric feature.

    Parameters
    ----------
    values : ndarray of float
        Values of the feature; NaN is missing.
    codes : ndarray of int
        Class of each row.
    limit : float, default=inf
        Largest number of errors of interest.

    Returns
    -------
    int
        Number of errors on these rows of a tree with at most two leaves more than classes; the
        number of rows if all values are missing, or if no such tree has at most `limit` errors.
    """
    from sklearn.tree import DecisionTreeClassifier

    values = np.where(np.isfinite(values), values, np.nan)
    if np.isnan(values).all():
        return len(codes)
    n_leaves = int(min(codes.max() + 3, max(2, len(codes) // _ROWS_PER_LEAF)))
    # In the order of the values, a leaf is a run of rows, and one of them may have missing values
    # as a second run. A row of another class splits a run into at most three runs of equal classes.
    n_runs = np.count_nonzero(np.diff(codes[np.lexsort((codes, values))])) + 1
    if n_runs > n_leaves + 1 + 2 * limit:
        return len(codes)
    tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, min_samples_leaf=2, random_state=0)
    predicted = tree.fit(values[:, None], codes).predict(values[:, None])
    return int((predicted != codes).sum())


def measure_tree_r2(values: np.ndarray, target: np.ndarray) -> float:
    """Return the R² of a decision tree or a straight line on one numeric feature.

    Parameters
    ----------
    values : ndarray of float
        Values of the feature; NaN is missing.
    target : ndarray of float
        The target.

    Returns
    -------
    float
        The larger R² (a line requires complete values); 0 with a constant target or few values.
    """
    from sklearn.tree import DecisionTreeRegressor

    values = np.where(np.isfinite(values), values, np.nan)
    is_known = ~np.isnan(values)
    spread = float(((target - target.mean()) ** 2).sum())
    if is_known.sum() < 3 or len(np.unique(values[is_known])) < 3 or spread == 0:
        return 0.0
    line = 0.0
    if is_known.all():
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
        Measures for all outcomes together.
    """
    no_relation = OrderMeasures(0.0, 1.0, 0.0, 0.0)
    observed_values, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    frequent_values = observed_values[counts >= _MIN_CODE_ROWS]
    is_frequent = np.isin(values, frequent_values)
    codes, uniques = pd.factorize(values[is_frequent], sort=True)
    sizes = np.bincount(codes).astype(float)
    if len(uniques) < 5 or sizes.max() > sizes.sum() / 2:
        return no_relation
    count_p_value = _order_p_value(np.log(sizes)[:, None], np.ones(len(sizes)))
    y = np.column_stack([outcome[is_frequent] for outcome in outcomes])
    y = y[:, y.std(axis=0) > 0]
    if not y.shape[1]:
        return no_relation
    sums = np.zeros((len(uniques), y.shape[1]))
    np.add.at(sums, codes, y)
    means = sums / sizes[:, None]
    explained = float((sizes[:, None] * (means - y.mean(axis=0)) ** 2).sum())
    total = float(((y - y.mean(axis=0)) ** 2).sum())
    n_outcomes = max(y.shape[1] - 1, 1)  # shares of classes sum to 1
    n_free = len(y) - len(uniques)
    error = max(total - explained, 1e-12) / n_free
    smooth = max(_explained_by_ranges(sums, sizes), _explained_by_curve(uniques, means, sizes))
    unexplained = explained - smooth
    n_unexplained = max(len(uniques) - _N_RANGES, 1)
    p_values = [
        float(stats.f.sf(squares / size / error, n_outcomes * size, n_outcomes * n_free))
        for squares, size in ((explained, len(uniques) - 1), (unexplained, n_unexplained))
    ]
    signal = explained - (len(uniques) - 1) * error
    share = 1 - (unexplained - n_unexplained * error) / signal if signal > 0 else 1.0
    variance = 1 - error / (total / (len(y) - 1))
    order_p_value = _order_p_value(means, sizes)
    return OrderMeasures(
        variance, p_values[0], order_p_value, count_p_value, share, p_values[1], len(uniques)
    )


def _explained_by_ranges(sums: np.ndarray, sizes: np.ndarray) -> float:
    """Return the largest sum of squares between three ranges of ordered values.

    Parameters
    ----------
    sums : ndarray of shape (n_values, n_outcomes)
        Sums of the outcomes in the rows of each value.
    sizes : ndarray of shape (n_values,)
        Numbers of rows.
    """
    totals = np.vstack([np.zeros(sums.shape[1]), np.cumsum(sums, axis=0)])
    counts = np.concatenate([[0.0], np.cumsum(sizes)])
    totals_above = totals[-1] - totals
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.nan_to_num((totals**2).sum(axis=1) / counts)
        high = np.nan_to_num((totals_above**2).sum(axis=1) / (counts[-1] - counts))
        squares = (totals**2).sum(axis=1)
        middle = squares[:, None] + squares[None, :] - 2 * totals @ totals.T
        middle = np.nan_to_num(middle / (counts[None, :] - counts[:, None]), posinf=0.0, neginf=0.0)
    gains = np.triu(low[:, None] + middle + high[None, :], k=1)
    return float(gains.max() - squares[-1] / counts[-1])


def _explained_by_curve(values: np.ndarray, means: np.ndarray, sizes: np.ndarray) -> float:
    """Return the sum of squares explained by a cubic polynomial of the values."""
    x = 2 * (values - values[0]) / (values[-1] - values[0]) - 1
    roots = np.sqrt(sizes)[:, None]
    centered = roots * (means - (sizes @ means) / sizes.sum())
    terms = roots * np.polynomial.polynomial.polyvander(x, _N_RANGES)
    residuals = centered - terms @ np.linalg.lstsq(terms, centered, rcond=None)[0]
    return float((centered**2).sum() - (residuals**2).sum())


def are_spaced_like_codes(values: np.ndarray) -> bool:
    """Return whether different integers are as dense as codes, or have the same number of digits.

    Parameters
    ----------
    values : ndarray of float
        Different integers in increasing order.

    Returns
    -------
    bool
        False for fewer than 10 values with a common step above 1, such as 10, 20 and 30, which are
        amounts. For more values, the common step counts as 1 in the density.
    """
    steps = np.diff(values).astype(np.int64)
    if len(steps) == 0 or values[0] < 0:
        return False
    step = int(np.gcd.reduce(steps))
    if step > 1 and len(values) < _FEW_CODES:
        return False
    n_digits = {len(str(int(value))) for value in (values[0], values[-1])}
    is_dense = len(values) >= _DENSITY * ((values[-1] - values[0]) / step + 1)
    return is_dense or (step == 1 and len(n_digits) == 1 and min(n_digits) >= _MIN_DIGITS)


def _order_p_value(means: np.ndarray, sizes: np.ndarray) -> float:
    """Return the share of random orders of values in which neighbors are at least as similar."""
    generator = np.random.default_rng(0)
    orders = generator.permuted(np.tile(np.arange(len(means)), (_N_ORDERS, 1)), axis=1)
    orders = np.vstack([np.arange(len(means)), orders])
    weights = np.minimum(sizes[orders[:, 1:]], sizes[orders[:, :-1]])
    squares = (np.diff(means[orders], axis=1) ** 2).sum(axis=2)
    roughness = (weights * squares).sum(axis=1) / weights.sum(axis=1)
    return float((roughness[1:] <= roughness[0]).mean())


def measure_resemblance(labels: np.ndarray, columns: pd.DataFrame) -> dict[str, float]:
    """Measure how much more rows of one group resemble each other than other rows do.

    Parameters
    ----------
    labels : ndarray of int
        Group of each row.
    columns : DataFrame
        Features and target.

    Returns
    -------
    dict of str to float
        Resemblance by column: 1 if rows of a group are equal, 0 if they differ as much as rows of
        different groups. Columns without a significant difference are omitted, and so are columns
        with exactly one distinct value for each group.
    """
    generator = np.random.default_rng(0)
    first, second, is_same_group = _neighboring_rows(labels)
    first, second = first[is_same_group], second[is_same_group]
    random_order = generator.permutation(len(labels))
    result = {}
    for name, column in columns.items():
        distance = row_distances(column)
        random_distances = distance(random_order[:-1], random_order[1:])
        group_distances = distance(first, second)
        mean_distance, deviation = float(random_distances.mean()), float(random_distances.std())
        if mean_distance == 0 or deviation == 0:
            continue
        resemblance = 1 - float(group_distances.mean()) / mean_distance
        z_score = resemblance * mean_distance * np.sqrt(len(group_distances)) / deviation
        if z_score >= _RESEMBLANCE_DEVIATIONS and not _is_alias(labels, column):
            result[str(name)] = resemblance
    return result


def count_subject_columns(
    values: np.ndarray, columns: pd.DataFrame, distances: Mapping[Hashable, Distances]
) -> tuple[int, int]:
    """Count the columns whose values show that integers number subjects with several rows each.

    In such a column, rows with the same integer are similar, but rows with neighboring integers are
    not. This distinguishes the number of a subject from a quantity that is related to the column.

    Parameters
    ----------
    values : ndarray of float of shape (n_rows,)
        The integers; NaN is missing.
    columns : DataFrame of shape (n_rows, n_columns)
        Other features, and the target.
    distances : mapping of column name to callable
        Result of :func:`row_distances` for each column.

    Returns
    -------
    tuple of (int, int)
        Number of such columns and of different integers; both 0 if integers do not number subjects.
    """
    observed = np.flatnonzero(np.isfinite(values))
    labels, uniques = pd.factorize(values[observed], sort=True)
    n_rows_each = len(observed) / max(len(uniques), 1)
    if len(uniques) < _MIN_SUBJECTS or n_rows_each < 2:
        return 0, 0
    if np.bincount(labels).max() > _MAX_SUBJECT_SHARE * len(labels):
        return 0, 0
    if len(observed) > _MAX_COMPARED_ROWS:
        # A range of subjects is compared, so that neighboring subjects remain neighbors.
        n_compared = int(_MAX_COMPARED_ROWS / n_rows_each)
        start = (len(uniques) - n_compared) // 2
        is_compared = (labels >= start) & (labels < start + n_compared)
        observed, labels = observed[is_compared], labels[is_compared]
    first, second, same = _neighboring_rows(labels)
    shuffled = observed[np.random.default_rng(0).permutation(len(labels))]
    first, second = observed[first], observed[second]
    n_alike = n_varying = 0
    names = columns.columns[:_MAX_COMPARED]
    for n_left, name in zip(range(len(names), 0, -1), names, strict=True):
        if n_alike + n_left < _SUBJECT_COLUMNS * (n_varying + n_left):
            return 0, 0
        distance = distances[name]
        expected = float(distance(shuffled[:-1], shuffled[1:]).mean())
        if expected == 0:
            continue
        n_varying += 1
        pairs = distance(first, second)
        is_alike = pairs[same].mean() <= (1 - _SUBJECT_RESEMBLANCE) * expected
        is_alike &= pairs[~same].mean() >= (1 - _NEIGHBOR_RESEMBLANCE) * expected
        n_alike += int(is_alike) and not _is_alias(labels, columns[name].iloc[observed])
    if n_alike < max(_MIN_SUBJECT_COLUMNS, _SUBJECT_COLUMNS * n_varying):
        return 0, 0
    return n_alike, len(uniques)


def _neighboring_rows(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return pairs of successive rows in the order of labels, and whether labels are equal."""
    order = np.argsort(labels, kind="stable")
    first, second = order[:-1], order[1:]
    return first, second, labels[first] == labels[second]


def _is_alias(labels: np.ndarray, column: pd.Series) -> bool:
    """Return whether a column has exactly one distinct value for each group."""
    pairs = pd.DataFrame({"group": labels, "value": pd.factorize(column)[0]}).drop_duplicates()
    return not (pairs["group"].duplicated().any() or pairs["value"].duplicated().any())


def row_distances(column: pd.Series) -> Distances:
    """Return a function of the distances between rows of a column.

    Parameters
    ----------
    column : Series of shape (n_rows,)
        Numbers, whose ranks are compared, or categories, which are equal or not.

    Returns
    -------
    callable
        ``distance(first, second)`` of two arrays of row indices, as an array of floats.
    """
    if pd.api.types.is_numeric_dtype(column.dtype) and column.nunique() > 2:
        ranks = column.astype(float).rank().fillna(0).to_numpy()
        return lambda a, b: np.abs(ranks[a] - ranks[b])
    codes = pd.factorize(column)[0]
    return lambda a, b: (codes[a] != codes[b]).astype(float)
