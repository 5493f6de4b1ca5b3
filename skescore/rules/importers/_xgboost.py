"""Rules from XGBoost's trees, missing values and all."""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from skescore._text import listed
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
    labels_by_code,
    two_way,
    ways_to_leaves,
)
from skescore.rules.importers._sklearn import float32_cut

#: Objectives by what their sums mean.
_BINARY = ("binary:logistic", "binary:hinge")
_MULTICLASS = ("multi:softmax", "multi:softprob")
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
    """Turn a model of XGBoost into one rule set whose rules add up.

    Parameters
    ----------
    model : XGBClassifier, XGBRegressor, XGBRanker, their random forests, or Booster
        A fitted model of trees, with one output. Of a model (not of a Booster, which predicts with
        all its trees) that was stopped early, the trees up to its best iteration are read.
    feature_names : sequence of str, optional
        Names for the rules; by default those the model was fitted with, else ``x0``, ``x1``, ...
    classes : sequence, optional
        Labels of a Booster's classes; by default 0, 1, ...
    categories : mapping of feature to sequence of labels, optional
        What the codes of categorical features mean. A model of XGBoost 3.1 or later that was fitted
        on a data frame knows it.
    domain : Domain, optional
        Box of the training rows, which the model does not remember.

    Returns
    -------
    RuleSet
        With ``voting="logistic"`` (classification) or ``"sum"`` (regression).

    Raises
    ------
    ValueError
        If the model has several outputs, no trees, an objective whose answers are no plain sum
        (such as "count:poisson"), or takes a number for a missing value.

    Notes
    -----
    XGBoost compares numbers after rounding them to float32. The rules hold the same float64 rows,
    also those within rounding of a threshold. XGBoost adds up float32 numbers, rule sets add
    doubles: sums agree but for some 1e-6 of the greatest of them, so that a label could only differ
    where two classes are nearer to each other than that. A hinge has no class probabilities; those
    of the rules read its margin as log odds.
    """
    booster = model if hasattr(model, "save_raw") else model.get_booster()
    missing = getattr(model, "missing", None)
    if missing is not None and not np.isnan(missing):
        raise ValueError(
            f"The model takes {missing!r} for a missing value. Write NaN in its place and fit with "
            "missing=numpy.nan: rules know NaN and None as missing values."
        )
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    sizes, objective = learner["learner_model_param"], learner["objective"]["name"]
    if int(sizes.get("num_target", 1)) > 1:
        raise ValueError(
            f"The model has {sizes['num_target']} outputs; rules have one. Fit one per output."
        )
    trees, scales = _trees(learner, best_only=booster is not model)
    names = feature_names_of(learner["feature_names"], int(sizes["num_feature"]), feature_names)
    labels = _labels(learner, names, labels_by_code(categories, names))
    n_outputs = max(1, int(sizes["num_class"]))
    if objective in (*_BINARY, *_MULTICLASS):
        known = getattr(model, "classes_", None) if classes is None else classes
        classes = list(np.asarray(known).tolist()) if known is not None else None
        classes = list(range(max(2, n_outputs))) if classes is None else classes
        if len(classes) != max(2, n_outputs):
            raise ValueError(
                f"classes must list the model's {max(2, n_outputs)} labels, got {classes!r}."
            )
    elif objective in _SUMS:
        classes = None
    else:
        raise ValueError(
            f"The model has the objective {objective!r}, whose answers are no plain sum of its "
            f"leaves. Read are {listed((*_BINARY, *_MULTICLASS, *_SUMS), limit=20)}."
        )
    return additive_ruleset(
        _start(sizes["base_score"], objective, n_outputs),
        _leaves(trees, scales, labels),
        names,
        classes=classes,
        domain=domain,
    )


def _start(text: str, objective: str, n_outputs: int) -> list[float]:
    """What sums start from: the model stores it on the scale of its predictions."""
    scores = np.broadcast_to(np.asarray(json.loads(text), dtype=np.float32).ravel(), n_outputs)
    if objective == "binary:logistic":
        scores = -np.log(np.float32(1) / scores - np.float32(1))
    return [float(score) for score in scores]


def _trees(learner: Mapping[str, Any], *, best_only: bool) -> tuple[list[Any], list[float]]:
    """The trees with which the model predicts, each with its number of the output, and scales."""
    booster = learner["gradient_booster"]
    scales = None
    if booster["name"] == "dart":
        scales = [float(scale) for scale in booster["weight_drop"]]
        booster = booster["gbtree"]
    if "model" not in booster or "trees" not in booster["model"]:
        raise ValueError(
            f"The model is made of {booster['name']!r}, not of trees. A linear model is its own "
            "explanation; fit with booster='gbtree' for trees."
        )
    held = booster["model"]
    trees = list(zip(held["trees"], held["tree_info"], strict=True))
    best = learner["attributes"].get("best_iteration")
    if best_only and best is not None:
        trees = trees[: held["iteration_indptr"][int(best) + 1]]
    return trees, scales or [1.0] * len(trees)


def _labels(
    learner: Mapping[str, Any], names: Sequence[str], given: dict[int, list[Any]]
) -> dict[int, list[Any]]:
    """Labels of categorical features that the model was fitted on, by the feature's index."""
    booster = learner["gradient_booster"]
    held = booster.get("gbtree", booster).get("model", {})
    encoded = held.get("cats", {}).get("enc") or [{"values": ()}] * len(names)
    result = dict(given)
    for feature, (column, kind) in enumerate(
        zip(encoded, learner["feature_types"] or (), strict=False)
    ):
        if kind != "c" or feature in given:
            continue
        values, why = column["values"], ""
        if "offsets" in column:
            text, ends = bytes(value % 256 for value in values), column["offsets"]
            if text.isascii():
                result[feature] = [text[a:b].decode() for a, b in itertools.pairwise(ends)]
            else:  # XGBoost 3.2 stores bytes, but counts characters
                why = "garbles labels that hold other signs than ASCII"
        elif len(values):
            result[feature] = list(values)
        # A model that knows no names was fitted on an array, whose categories are the codes.
        elif learner["feature_names"]:
            why = "has kept the codes of categories alone"
        if why:
            raise ValueError(
                f"XGBoost {why}: pass categories={{{names[feature]!r}: [...]}} with the labels in "
                "the order of X[column].cat.categories."
            )
    return result


def _leaves(
    trees: Sequence[tuple[Mapping[str, Any], int]],
    scales: Sequence[float],
    labels: Mapping[int, Sequence[Any]],
) -> Iterator[Leaf]:
    for (tree, output), scale in zip(trees, scales, strict=False):
        if int(tree["tree_param"].get("size_leaf_vector") or 1) > 1:
            raise ValueError(
                "The model's leaves hold several outputs each (multi_output_tree), which are not "
                "read. Fit with multi_strategy='one_output_per_tree'."
            )
        left, right = tree["left_children"], tree["right_children"]
        named = {
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
            named: Any = named,
        ) -> list[Branch]:
            if left[node] == -1:
                return []
            feature, missing = int(tree["split_indices"][node]), bool(tree["default_left"][node])
            children = int(left[node]), int(right[node])
            if node in named:  # the categories of a split go to its right, others to its left
                known = labels.get(feature)
                values = frozenset(c if known is None else known[c] for c in named[node])
                sides = Categories(values, True, missing), Categories(values, False, not missing)
                return two_way(feature, *sides, *children)
            # What is less than the threshold, after rounding, goes to the left.
            threshold = np.float32(tree["split_conditions"][node])
            cut = float32_cut(float(np.nextafter(threshold, np.float32(-np.inf))))
            return two_way(
                feature, below(cut, missing=missing), above(cut, missing=not missing), *children
            )

        for node, premises in ways_to_leaves(0, branches_of):
            value = float(np.float32(tree["split_conditions"][node]))
            yield Leaf(premises, value * scale, int(output))
