"""Discretization of numeric features into a few bins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skescore._validation import check_choice, check_flag, check_integer, check_number, plain_target
from skescore.extractors._input import check_columns, check_labels
from skescore.optimal._cuts import halfway
from skescore.rules import Interval

_STRATEGIES = ("quantile", "tree", "given")

#: Largest number of groups of neighboring values that trees distinguish at first.
_MAX_GROUPS = 4096
#: Largest numbers of leaves and of rows of the joint tree on all features.
_MAX_JOINT_LEAVES, _MAX_JOINT_ROWS = 32, 20_000


def quantile_boundaries(ordered: np.ndarray, n_bins: int, min_rows: int) -> np.ndarray:
    """Return positions in sorted values after which to cut for bins with similar numbers of rows.

    Cuts are placed only between different values: at an end of the run of equal values that
    contains the quantile, if possible the nearer one.
    """
    n_rows = len(ordered)
    cuts: list[int] = []
    begin = 0
    for k in range(1, n_bins):
        target_position = n_rows * k / n_bins
        value = ordered[min(int(target_position), n_rows - 1)]
        sides = [int(np.searchsorted(ordered, value, side)) for side in ("left", "right")]
        # The lower one of equally near positions is used.
        for cut in sorted(sides, key=lambda side: abs(side - target_position)):
            if cut - begin >= min_rows and n_rows - cut >= min_rows:
                cuts.append(cut - 1)
                begin = cut
                break
    return np.array(cuts, dtype=np.intp)


def tree_boundaries(
    ordered: np.ndarray, target: np.ndarray, n_bins: int, min_rows: int
) -> np.ndarray:
    """Return positions in sorted values after which to cut for bins that are leaves of a tree.

    `target` holds a float or a class index for each of the sorted values. Many distinct values are
    first grouped with their neighbors; then each cut is moved to the best position within the
    groups on both sides.
    """
    ends = np.flatnonzero(ordered[:-1] < ordered[1:])  # last positions of distinct values
    coarse = ends
    if len(ends) > _MAX_GROUPS:
        positions = np.arange(1, _MAX_GROUPS) * (len(ordered) / _MAX_GROUPS)
        coarse = np.unique(
            ends[np.searchsorted(ends, positions.astype(np.intp)).clip(0, len(ends) - 1)]
        )
    chosen = _find_boundaries(coarse, target, n_bins, min_rows)
    if len(coarse) == len(ends):
        return coarse[chosen]
    edges = np.concatenate([[-1], coarse, [len(ordered) - 1]])
    fine = []
    for position in chosen:
        begin, end = edges[position] + 1, edges[position + 2]
        inner = ends[(ends >= begin) & (ends < end)]
        cut = _find_boundaries(inner - begin, target[begin : end + 1], 2, 1)
        fine.append(inner[cut[0]] if len(cut) else coarse[position])
    bins = np.diff(fine, prepend=-1, append=len(ordered) - 1)
    return np.array(fine, dtype=np.intp) if (bins >= min_rows).all() else coarse[chosen]


def _find_boundaries(
    ends: np.ndarray, target: np.ndarray, n_leaves: int, min_rows: int
) -> np.ndarray:
    """Return the indices of the `ends` between the leaves of a tree that is grown on the groups."""
    n_rows, n_groups = len(target), len(ends) + 1
    sizes = np.diff(ends, prepend=-1, append=n_rows - 1)
    group = np.repeat(np.arange(n_groups), sizes)
    if target.dtype.kind == "f":
        kind, weights = DecisionTreeRegressor, sizes.astype(float)
        values = np.bincount(group, weights=target) / sizes  # variance within groups is constant
        group = np.arange(n_groups)
    else:
        n_labels = int(target.max()) + 1
        counts = np.bincount(group * n_labels + target, minlength=n_groups * n_labels)
        cells = np.flatnonzero(counts)
        kind, weights = DecisionTreeClassifier, counts[cells].astype(float)
        group, values = np.divmod(cells, n_labels)
    tree = kind(
        max_leaf_nodes=n_leaves,
        # Half a row is subtracted, so that rounding errors do not exclude bins of this size.
        min_weight_fraction_leaf=(min_rows - 0.5) / n_rows,
        random_state=0,  # has no effect with a single feature
    )
    grown = _fit_tree(tree, group[:, None], values, weights).tree_
    return np.unique(np.floor(grown.threshold[grown.feature >= 0]).astype(np.intp))


def _fit_tree(tree: Any, rows: np.ndarray, target: np.ndarray, weights: Any = None) -> Any:
    """Fit a tree on integers without input checks, which would take longer than the fit."""
    with sklearn.config_context(skip_parameter_validation=True):
        return tree.fit(rows.astype(np.float32), target, sample_weight=weights, check_input=False)


def joint_cuts(rows: np.ndarray, target: np.ndarray) -> list[np.ndarray]:
    """Return the cuts of each feature in one tree on all features, fitted to a part of the rows."""
    if len(rows) > _MAX_JOINT_ROWS:
        row_index = np.arange(_MAX_JOINT_ROWS) * len(rows) // _MAX_JOINT_ROWS
        rows, target = rows[row_index], target[row_index]
    # scikit-learn's trees use single precision, which represents ranks exactly.
    ranks = np.column_stack([np.unique(column, return_inverse=True)[1] for column in rows.T])
    kind = DecisionTreeRegressor if target.dtype.kind == "f" else DecisionTreeClassifier
    tree = _fit_tree(kind(max_leaf_nodes=_MAX_JOINT_LEAVES, random_state=0), ranks, target)
    reached = tree.decision_path(ranks).tocsc()
    cuts: list[list[float]] = [[] for _ in rows.T]
    for node in np.flatnonzero(tree.tree_.feature >= 0):
        members = reached.indices[reached.indptr[node] : reached.indptr[node + 1]]
        j = tree.tree_.feature[node]
        left = ranks[members, j] <= tree.tree_.threshold[node]
        values = rows[members, j]
        cuts[j].append(float(halfway(values[left].max(), values[~left].min())))
    return [np.unique(feature_cuts) for feature_cuts in cuts]


def merge_cuts(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Merge two sets of cuts; keep only the first cut between the same two values."""
    cuts = np.concatenate([first, second])
    positions = np.searchsorted(np.sort(values), cuts, side="right")
    return cuts[np.unique(positions, return_index=True)[1]]


class Discretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace the values of numeric features by bin numbers.

    Use it before an extractor or model that requires discrete columns; :class:`REALExtractor` has
    it as a parameter. Bins are adjacent and the outer ones are unbounded, so all finite numbers
    have bins.

    Parameters
    ----------
    strategy : {"quantile", "tree", "given"}, default="quantile"
        Method that finds the cuts. ``"quantile"``: bins with similar numbers of rows. ``"tree"``: a
        small decision tree per feature on y, so that y differs between bins; pass the black box's
        predictions as y. ``"given"``: the cuts in `cut_points`.
    n_bins : int, default=4
        Largest number of bins per feature, at least 2. Features with few distinct values get fewer
        bins, and constant features get one. Not used by ``"given"``.
    min_bin_share : float, default=0.02
        Smallest share of rows in a bin, from 0 to 0.5. Not used by ``"given"``.
    joint : bool, default=False
        For ``"tree"``: whether to add the cuts of a single tree with 32 leaves on all features,
        which detects interactions. There may then be more than `n_bins` bins.
    cut_points : mapping or sequence of sequences, optional
        For ``"given"``: increasing numbers per feature, as a mapping from the feature's index or
        name (other features are not cut), or as one sequence for each feature.

    Attributes
    ----------
    cut_points_ : list of ndarray
        Increasing cuts of each feature; a value equal to a cut is in the bin below it.
    n_bins_ : ndarray of int, shape (`n_features_in_`,)
        Number of bins of each feature, which is the number of its cuts plus 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if X had string column names.

    Notes
    -----
    Cuts lie halfway between two neighboring values of the data, and trees are fitted to ranks, so
    the scale of a feature does not matter. More than 4096 distinct values are first divided into
    4096 groups of neighbors; the cuts are then refined within the adjacent groups. The joint tree
    is fitted to at most 20000 evenly spaced rows. Trees are regression trees if y holds floats,
    otherwise classification trees (Gini impurity), and grow best first to `n_bins` leaves. Nothing
    is random.

    Text columns raise an error. Exclude them with ``ColumnTransformer(...,
    remainder="passthrough")``. Extractors that accept categories pass it only the numeric columns.

    References
    ----------
    J. Dougherty, R. Kohavi, M. Sahami: Supervised and unsupervised discretization of continuous
    features. ICML 1995.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.extractors import Discretizer
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> discretizer = Discretizer(strategy="tree", n_bins=3).fit(X, y)
    >>> for condition in discretizer.intervals("petal width (cm)"):
    ...     print(condition.to_text(list(X.columns)))
    petal width (cm) ≤ 0.8
    0.8 < petal width (cm) ≤ 1.75
    petal width (cm) > 1.75
    >>> discretizer.transform(X)[::50]
    array([[0, 2, 0, 0],
           [2, 1, 1, 1],
           [2, 1, 2, 2]])
    """

    def __init__(
        self,
        strategy: str = "quantile",
        *,
        n_bins: int = 4,
        min_bin_share: float = 0.02,
        joint: bool = False,
        cut_points: Any = None,
    ) -> None:
        self.strategy = strategy
        self.n_bins = n_bins
        self.min_bin_share = min_bin_share
        self.joint = joint
        self.cut_points = cut_points

    def fit(self, X: Any, y: Any = None) -> Discretizer:
        """Find the cuts of every feature.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; finite numbers.
        y : array-like of shape (n_rows,), optional
            Target of the trees of ``strategy="tree"``; not used by the other strategies.

        Returns
        -------
        self
            The fitted discretizer.

        Raises
        ------
        ValueError, TypeError
            If the rows or a parameter are invalid; the message states the remedy.
        """
        self._check_parameters()
        check_columns(X, type(self).__name__)
        if self.strategy != "tree":
            rows = validate_data(self, X, dtype=float)
            target = None
        elif y is None:
            raise ValueError(
                "strategy='tree' requires y to be passed, but the target y is None. Pass the "
                "black box's predictions as y, or choose strategy='quantile'."
            )
        else:
            rows, target = validate_data(self, X, plain_target(y), dtype=float)
            if target.dtype.kind != "f":
                check_labels(target)
                check_classification_targets(target)
                target = np.unique(target, return_inverse=True)[1]
        if self.strategy == "given":
            self.cut_points_ = self._check_cut_points(rows.shape[1])
        else:
            self.cut_points_ = [self._cuts(column, target) for column in rows.T]
        if self.joint and target is not None:
            columns_and_cuts = zip(rows.T, joint_cuts(rows, target), self.cut_points_, strict=True)
            self.cut_points_ = [merge_cuts(*parts) for parts in columns_and_cuts]
        self.n_bins_ = np.array([len(cuts) + 1 for cuts in self.cut_points_])
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the bin of every value.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; finite numbers.

        Returns
        -------
        ndarray of int, shape (n_rows, n_features)
            Bin numbers from 0; a DataFrame if ``set_output`` requests one.
        """
        check_is_fitted(self, "cut_points_")
        rows = validate_data(self, X, reset=False, dtype=float)
        codes = np.empty(rows.shape, dtype=np.intp)
        for j, cuts in enumerate(self.cut_points_):
            codes[:, j] = np.searchsorted(cuts, rows[:, j], side="left")
        return codes

    def intervals(self, feature: int | str) -> list[Interval]:
        """Return the bins of a feature as conditions.

        Parameters
        ----------
        feature : int or str
            Index or name of the feature.

        Returns
        -------
        list of Interval
            Intervals ``lower < x <= upper``, one per bin; together they cover all numbers.

        Raises
        ------
        ValueError
            If there is no such feature.
        """
        check_is_fitted(self, "cut_points_")
        index = self._index(feature, "feature")
        bounds = [-math.inf, *self.cut_points_[index].tolist(), math.inf]
        return [Interval(index, low, high) for low, high in pairwise(bounds)]

    def _check_parameters(self) -> None:
        check_choice("strategy", self.strategy, _STRATEGIES)
        check_integer("n_bins", self.n_bins, 2)
        check_number("min_bin_share", self.min_bin_share, 0.0, 0.5)
        check_flag("joint", self.joint)
        if self.joint and self.strategy != "tree":
            raise ValueError(f"joint=True needs strategy='tree', got strategy={self.strategy!r}.")
        if (self.cut_points is None) == (self.strategy == "given"):
            raise ValueError(
                "cut_points must be given for strategy='given' and for no other, got "
                f"strategy={self.strategy!r} and cut_points={self.cut_points!r}."
            )

    def _cuts(self, values: np.ndarray, target: np.ndarray | None) -> np.ndarray:
        min_rows = max(1, math.ceil(self.min_bin_share * len(values)))
        if target is None:
            ordered = np.sort(values)
            last = quantile_boundaries(ordered, self.n_bins, min_rows)
            return halfway(ordered[last], ordered[last + 1])
        order = np.argsort(values, kind="stable")
        ordered, target = values[order], target[order]
        last = tree_boundaries(ordered, target, self.n_bins, min_rows)
        return halfway(ordered[last], ordered[last + 1])

    def _check_cut_points(self, n_features: int) -> list[np.ndarray]:
        result = [np.empty(0) for _ in range(n_features)]
        if isinstance(self.cut_points, Mapping):
            cuts_by_feature = [
                (self._index(f, "cut_points"), cuts) for f, cuts in self.cut_points.items()
            ]
            if len({index for index, _ in cuts_by_feature}) < len(cuts_by_feature):
                raise ValueError(
                    "cut_points must name each feature once, by its index or its name, got "
                    f"{list(self.cut_points)!r}."
                )
        elif isinstance(self.cut_points, Sequence | np.ndarray) and not isinstance(
            self.cut_points, str
        ):
            cuts_by_feature = list(enumerate(self.cut_points))
            if len(cuts_by_feature) != n_features:
                raise ValueError(
                    f"cut_points must hold one sequence for each of the {n_features} features, "
                    f"got {len(cuts_by_feature)}. Use a mapping to cut some features only."
                )
        else:
            raise TypeError(
                "cut_points must be a mapping from features to cut points or a sequence with one "
                f"sequence per feature, got {self.cut_points!r}."
            )
        for index, cuts in cuts_by_feature:
            result[index] = _check_cuts(cuts, index)
        return result

    def _index(self, feature: Any, parameter: str) -> int:
        """Return the index of a feature given by index or name."""
        names = getattr(self, "feature_names_in_", None)
        if isinstance(feature, str):
            if names is not None and feature in names:
                return int(np.flatnonzero(names == feature)[0])
        elif (
            isinstance(feature, Integral)
            and not isinstance(feature, bool)
            and 0 <= int(feature) < self.n_features_in_
        ):
            return int(feature)
        name_hint = "" if names is None else f" or one of the names {[str(n) for n in names]}"
        raise ValueError(
            f"{parameter} must name a feature by an index from 0 to {self.n_features_in_ - 1}"
            f"{name_hint}, got {feature!r}."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.strategy == "tree"
        tags.transformer_tags.preserves_dtype = []  # bins are integers
        return tags


def _check_cuts(cuts: Any, feature: int) -> np.ndarray:
    requirement = f"cut_points of feature {feature} must be finite, increasing numbers"
    if isinstance(cuts, str) or not isinstance(cuts, Sequence | np.ndarray):
        raise TypeError(f"{requirement} in a sequence, got {cuts!r}.")
    if any(not isinstance(c, Real) or isinstance(c, bool | np.bool_) for c in cuts):
        raise TypeError(f"{requirement}, got {cuts!r}.")
    array = np.array(cuts, dtype=float)
    if not np.isfinite(array).all() or (np.diff(array) <= 0).any():
        raise ValueError(f"{requirement}, got {cuts!r}. Sort them and drop duplicates.")
    return array
