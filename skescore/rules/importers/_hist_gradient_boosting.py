"""Rules from scikit-learn's gradient boosting on histograms, missing values and all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skescore._validation import python_value
from skescore.rules._domain import Domain
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._boosted_trees import (
    Branch,
    Categories,
    Leaf,
    above,
    additive_ruleset,
    below,
    feature_names_of,
    two_way,
    ways_to_leaves,
)

#: Losses whose sum of leaves is the logarithm of the answer, which no voting of rules says.
_LOG_LINK = ("gamma", "poisson")


def read_hist_gradient_boosting(
    model: Any, *, feature_names: Sequence[str] | None = None, domain: Domain | None = None
) -> RuleSet:
    """Turn gradient boosting on histograms into one rule set whose rules add up.

    Parameters
    ----------
    model : HistGradientBoostingClassifier or HistGradientBoostingRegressor
        A fitted model.
    feature_names : sequence of str, optional
        Names for the rules; by default those the model was fitted with, else ``x0``, ``x1``, ...
    domain : Domain, optional
        Box of the training rows, which the model does not remember.

    Returns
    -------
    RuleSet
        With ``voting="logistic"`` (classification) or ``"sum"`` (regression). The value that
        boosting starts from is a rule that always holds.

    Raises
    ------
    ValueError
        If the answers are the exponential of a sum (losses "poisson" and "gamma").

    Notes
    -----
    Answers are those of the model, for missing values and for categories that it has not seen too:
    it treats these as missing.

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
    columns = _Columns(model)
    classes = model.classes_.tolist() if hasattr(model, "classes_") else None
    if classes is None and model.loss in _LOG_LINK:
        raise ValueError(
            f"The model has loss={model.loss!r}: it answers the exponential of the sum of its "
            "leaves, which no voting of rules says. Fit it with loss='squared_error' on log(y)."
        )
    return additive_ruleset(
        np.ravel(model._baseline_prediction).tolist(),
        _leaves(model, columns),
        names,
        classes=classes,
        domain=domain,
    )


class _Columns:
    """The caller's columns behind those that the trees see, where categories come first."""

    def __init__(self, model: Any) -> None:
        self.index = list(range(int(model.n_features_in_)))
        self.labels: dict[int, list[Any]] = {}
        if getattr(model, "_preprocessor", None) is None:
            return
        categorical = np.asarray(model.is_categorical_, dtype=bool)
        self.index = [*np.flatnonzero(categorical), *np.flatnonzero(~categorical)]
        encoder = model._preprocessor.named_transformers_["encoder"]
        for place, known in enumerate(encoder.categories_):
            labels = [python_value(value) for value in known.tolist()]
            self.labels[place] = [
                v for v in labels if v is not None and not (isinstance(v, float) and math.isnan(v))
            ]


def _leaves(model: Any, columns: _Columns) -> Iterator[Leaf]:
    for stage in model._predictors:
        for k, tree in enumerate(stage):
            nodes = tree.nodes

            def branches_of(i: int, nodes: Any = nodes, tree: Any = tree) -> list[Branch]:
                node = nodes[i]
                if node["is_leaf"]:
                    return []
                place, missing = int(node["feature_idx"]), bool(node["missing_go_to_left"])
                left: Any
                right: Any
                if node["is_categorical"]:
                    bits = tree.raw_left_cat_bitsets[int(node["bitset_idx"])]
                    left, right = _sides(columns.labels[place], bits, missing)
                else:
                    cut = float(node["num_threshold"])
                    left, right = below(cut, missing=missing), above(cut, missing=not missing)
                feature = int(columns.index[place])
                return two_way(feature, left, right, int(node["left"]), int(node["right"]))

            for i, premises in ways_to_leaves(0, branches_of):
                yield Leaf(premises, float(nodes[i]["value"]), k, int(nodes[i]["count"]))


def _sides(labels: Sequence[Any], bits: Any, missing: bool) -> tuple[Categories, Categories]:
    """Divide categories; what the model does not know goes where missing values go."""
    named = [bool(int(bits[code // 32]) >> (code % 32) & 1) for code in range(len(labels))]
    left = frozenset(label for label, there in zip(labels, named, strict=True) if there)
    right = frozenset(labels) - left
    if missing:
        return Categories(right, True, True), Categories(right, False, False)
    return Categories(left, False, False), Categories(left, True, True)
