"""Conversion of scikit-learn's histogram gradient boosting to rules, with missing values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skescore._validation import python_value
from skescore.rules._domain import Domain
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._boosted_trees import (
    AdditiveLeaf,
    Branch,
    CategorySet,
    additive_ruleset,
    binary_split,
    feature_names_of,
    reachable_leaves,
    threshold_split,
)

#: Losses for which the model predicts the exponential of the sum of its leaves.
_LOG_LINK = ("gamma", "poisson")


def read_hist_gradient_boosting(
    model: Any, *, feature_names: Sequence[str] | None = None, domain: Domain | None = None
) -> RuleSet:
    """Convert histogram gradient boosting to a rule set whose rules vote.

    Parameters
    ----------
    model : HistGradientBoostingClassifier or HistGradientBoostingRegressor
        A fitted model.
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those that the model was fitted with, or
        ``x0``, ``x1``, ...
    domain : Domain, optional
        Box around the training rows; the model does not store it.

    Returns
    -------
    RuleSet
        Rules with ``voting="logistic"`` (classification) or ``"sum"`` (regression). The initial
        value of boosting is a rule that always holds.

    Raises
    ------
    ValueError
        If the predictions are the exponential of a sum (losses "poisson" and "gamma").

    Notes
    -----
    Predictions agree with those of the model, even for missing values and for unseen categories,
    which the model treats as missing.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> X = np.array([[1.0], [2.0], [3.0], [np.nan]] * 20)
    >>> y = np.array([0.0, 0.0, 8.0, 8.0] * 20)
    >>> model = HistGradientBoostingRegressor(max_iter=1, learning_rate=0.5).fit(X, y)
    >>> rules = read_hist_gradient_boosting(model)
    >>> print(rules)
    1. ALWAYS 4   [weight 1]
    2. IF x0 ≤ 2.5 THEN -2   [weight 1, 40 rows]
    3. IF x0 > 2.5 or missing THEN 2   [weight 1, 40 rows]
    together: the weighted sum of all rules that hold
    >>> rules.predict([[2.0], [np.nan]]).tolist(), model.predict([[2.0], [np.nan]]).tolist()
    ([2.0, 6.0], [2.0, 6.0])
    """
    check_is_fitted(model)
    n_features = int(model.n_features_in_)
    names = feature_names_of(getattr(model, "feature_names_in_", None), n_features, feature_names)
    columns = _TreeColumns(model)
    classes = model.classes_.tolist() if hasattr(model, "classes_") else None
    if classes is None and model.loss in _LOG_LINK:
        raise ValueError(
            f"The model has loss={model.loss!r}: it predicts the exponential of the sum of its "
            "leaves, which voting rules cannot express. Fit it with loss='squared_error' on log(y)."
        )
    return additive_ruleset(
        np.ravel(model._baseline_prediction).tolist(),
        _leaves(model, columns),
        names,
        classes=classes,
        domain=domain,
    )


class _TreeColumns:
    """Mapping from the columns of the trees, in which categories come first, to those of X."""

    def __init__(self, model: Any) -> None:
        self.index = list(range(int(model.n_features_in_)))
        self.labels: dict[int, list[Any]] = {}
        if getattr(model, "_preprocessor", None) is None:
            return
        categorical = np.asarray(model.is_categorical_, dtype=bool)
        self.index = [*np.flatnonzero(categorical), *np.flatnonzero(~categorical)]
        encoder = model._preprocessor.named_transformers_["encoder"]
        for column, categories in enumerate(encoder.categories_):
            labels = [python_value(value) for value in categories.tolist()]
            self.labels[column] = [
                v for v in labels if v is not None and not (isinstance(v, float) and math.isnan(v))
            ]


def _leaves(model: Any, columns: _TreeColumns) -> Iterator[AdditiveLeaf]:
    for stage in model._predictors:
        for k, tree in enumerate(stage):
            nodes = tree.nodes

            def branches_of(i: int, nodes: Any = nodes, tree: Any = tree) -> list[Branch]:
                node = nodes[i]
                if node["is_leaf"]:
                    return []
                column, missing_left = int(node["feature_idx"]), bool(node["missing_go_to_left"])
                feature = int(columns.index[column])
                children = int(node["left"]), int(node["right"])
                if node["is_categorical"]:
                    bits = tree.raw_left_cat_bitsets[int(node["bitset_idx"])]
                    sides = _category_sides(columns.labels[column], bits, missing_left)
                    return binary_split(feature, *sides, *children)
                return threshold_split(
                    feature,
                    float(node["num_threshold"]),
                    missing_left=missing_left,
                    left_child=children[0],
                    right_child=children[1],
                )

            for i, premises in reachable_leaves(0, branches_of):
                yield AdditiveLeaf(premises, float(nodes[i]["value"]), k, int(nodes[i]["count"]))


def _category_sides(
    labels: Sequence[Any], bits: Any, missing_left: bool
) -> tuple[CategorySet, CategorySet]:
    """Return the categories on each side; unseen categories go to the side of missing values."""
    goes_left = [bool(int(bits[code // 32]) >> (code % 32) & 1) for code in range(len(labels))]
    left = frozenset(itertools.compress(labels, goes_left))
    right = frozenset(labels) - left
    if missing_left:
        return CategorySet(right, True, True), CategorySet(right, False, False)
    return CategorySet(left, False, False), CategorySet(left, True, True)
