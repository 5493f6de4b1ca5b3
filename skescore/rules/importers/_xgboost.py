"""Conversion of XGBoost's models to rules, with missing values."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from skescore._xgboost_categories import stored_categories
from skescore.rules._domain import Domain
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._boosted_trees import (
    AdditiveLeaf,
    Branch,
    CategorySet,
    additive_ruleset,
    binary_split,
    category_labels,
    check_estimator,
    check_objective,
    class_labels_of,
    feature_names_of,
    reachable_leaves,
    threshold_split,
)
from skescore.rules.importers._sklearn import float32_cut

#: Objectives whose sums of leaves are log odds of classes, and those whose sums are predictions.
_CLASSIFIERS = ("binary:logistic", "binary:hinge", "multi:softmax", "multi:softprob")
_SUMS = (
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "reg:squaredlogerror",
    "rank:ndcg",
    "rank:pairwise",
    "rank:map",
)


def read_xgboost(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    categories: Mapping[Hashable, Sequence[Any]] | None = None,
    domain: Domain | None = None,
) -> RuleSet:
    """Convert a model of XGBoost to a rule set whose rules vote.

    Parameters
    ----------
    model : XGBClassifier, XGBRegressor, XGBRanker, their random forests, or Booster
        A fitted model of trees with one output. If an estimator stopped early, the trees up to its
        best iteration are read. A Booster predicts with all its trees, so all are read.
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those that the model was fitted with, or
        ``x0``, ``x1``, ... if it has none.
    classes : sequence, optional
        Labels of a Booster's classes; by default 0, 1, ...
    categories : mapping of feature to sequence of labels, optional
        Labels of the integer codes of categorical features, in the order of the codes. Only models
        of XGBoost 3.1 or later that were fitted on a data frame store them.
    domain : Domain, optional
        Box around the training rows, which the model does not store.

    Returns
    -------
    RuleSet
        Rules with ``voting="logistic"`` (classification) or ``"sum"`` (regression).

    Raises
    ------
    ValueError
        If the model has several outputs or no trees, treats a number as a missing value, has an
        objective whose predictions are not a plain sum (such as "count:poisson"), or is a regressor
        with an objective for classification or the reverse.

    Notes
    -----
    XGBoost rounds numbers to float32 before it compares them with a threshold. The thresholds of
    the rules take this into account, so the rules cover exactly the same float64 rows. XGBoost adds
    float32 numbers, while rule sets add float64 numbers. The sums agree up to a relative error of
    about 1e-6, so labels can differ only if the sums of two classes are that close. A hinge
    objective has no class probabilities; the rules interpret its margin as log odds.

    The rules treat a category that did not occur in training as different from all others, as
    XGBoost does with codes in arrays. For data frames, XGBoost 3 looks up categories by binary
    search. It treats an unknown category like the next larger one, or raises an error.

    XGBoost treats absent entries of a sparse matrix as missing values. The rules treat them as 0.
    """
    booster = model if hasattr(model, "save_raw") else model.get_booster()
    missing = getattr(model, "missing", None)
    if missing is not None and not np.isnan(missing):
        raise ValueError(
            f"The model treats {missing!r} as a missing value, but rules treat NaN and None as "
            "missing values. Replace it with NaN and fit with missing=numpy.nan."
        )
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    sizes, objective = learner["learner_model_param"], learner["objective"]["name"]
    if int(sizes.get("num_target", 1)) > 1:
        raise ValueError(
            f"The model has {sizes['num_target']} outputs, but rules have one. Fit one model per "
            "output."
        )
    trees, scales = _trees(learner, best_only=booster is not model)
    names = feature_names_of(learner["feature_names"], int(sizes["num_feature"]), feature_names)
    labels = _labels_of_codes(learner, names, category_labels(categories, names))
    n_outputs = max(1, int(sizes["num_class"]))
    classifies = check_objective(objective, _CLASSIFIERS, _SUMS, kind="objective")
    check_estimator(model, objective, classifies=classifies)
    classes = class_labels_of(model, classes, n_outputs) if classifies else None
    return additive_ruleset(
        _initial_values(sizes["base_score"], objective, n_outputs),
        _leaves(trees, scales, labels),
        names,
        classes=classes,
        domain=domain,
    )


def _initial_values(base_score: str, objective: str, n_outputs: int) -> list[float]:
    """Return the initial sums, which the model stores on the scale of its predictions."""
    scores = np.asarray(json.loads(base_score), dtype=np.float32).ravel()
    scores = np.broadcast_to(scores, n_outputs)
    if objective == "binary:logistic":
        scores = -np.log(np.float32(1) / scores - np.float32(1))
    return [float(score) for score in scores]


def _trees(learner: Mapping[str, Any], *, best_only: bool) -> tuple[list[Any], list[float]]:
    """Return the trees that the model uses, each with the index of its output, and their scales."""
    booster = learner["gradient_booster"]
    scales = None
    if booster["name"] == "dart":
        scales = [float(scale) for scale in booster["weight_drop"]]
        booster = booster["gbtree"]
    if "model" not in booster or "trees" not in booster["model"]:
        raise ValueError(
            f"The model has the booster {booster['name']!r}, which has no trees. A linear model "
            "needs no rules as explanation; fit with booster='gbtree' for trees."
        )
    tree_model = booster["model"]
    trees = list(zip(tree_model["trees"], tree_model["tree_info"], strict=True))
    best_iteration = learner["attributes"].get("best_iteration")
    if best_only and best_iteration is not None:
        trees = trees[: tree_model["iteration_indptr"][int(best_iteration) + 1]]
    return trees, scales or [1.0] * len(trees)


def _labels_of_codes(
    learner: Mapping[str, Any], names: Sequence[str], user_labels: dict[int, list[Any]]
) -> dict[int, list[Any]]:
    """Return the labels of the codes of categorical features, by the feature's index."""
    result = dict(user_labels)
    for feature, labels in stored_categories(learner).items():
        if feature in user_labels:
            continue
        if isinstance(labels, list):
            result[feature] = labels
        # A model without feature names was fitted on an array, where the codes are the categories.
        elif learner["feature_names"]:
            raise ValueError(
                f"XGBoost {labels}: pass categories={{{names[feature]!r}: [...]}} with the labels "
                "in the order of X[column].cat.categories."
            )
    return result


def _leaves(
    trees: Sequence[tuple[Mapping[str, Any], int]],
    scales: Sequence[float],
    labels: Mapping[int, Sequence[Any]],
) -> Iterator[AdditiveLeaf]:
    for (tree, output), scale in zip(trees, scales, strict=False):
        if int(tree["tree_param"].get("size_leaf_vector") or 1) > 1:
            raise ValueError(
                "Each leaf of the model has several outputs (multi_output_tree), but a rule has "
                "one. Fit with multi_strategy='one_output_per_tree'."
            )
        left, right = tree["left_children"], tree["right_children"]
        categories_of = {
            node: tree["categories"][begin : begin + size]
            for node, begin, size in zip(
                tree["categories_nodes"],
                tree["categories_segments"],
                tree["categories_sizes"],
                strict=True,
            )
        }

        def branches_of(
            node: int,
            tree: Any = tree,
            left: Any = left,
            right: Any = right,
            categories_of: Any = categories_of,
        ) -> list[Branch]:
            if left[node] == -1:
                return []
            feature = int(tree["split_indices"][node])
            missing_left = bool(tree["default_left"][node])
            children = int(left[node]), int(right[node])
            if node in categories_of:  # listed categories go to the right, others to the left
                code_labels = labels.get(feature)
                values = frozenset(
                    code if code_labels is None else code_labels[code]
                    for code in categories_of[node]
                )
                sides = (
                    CategorySet(values, True, missing_left),
                    CategorySet(values, False, not missing_left),
                )
                return binary_split(feature, *sides, *children)
            # Numbers that are less than the threshold after rounding go to the left.
            threshold = np.float32(tree["split_conditions"][node])
            return threshold_split(
                feature,
                float32_cut(float(np.nextafter(threshold, np.float32(-np.inf)))),
                missing_left=missing_left,
                left_child=children[0],
                right_child=children[1],
            )

        for node, premises in reachable_leaves(0, branches_of):
            value = float(np.float32(tree["split_conditions"][node]))
            yield AdditiveLeaf(premises, value * scale, int(output))
