"""Conversion of LightGBM's models to rules, with missing values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from skescore.rules._domain import Domain
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._boosted_trees import (
    AdditiveLeaf,
    Branch,
    CategorySet,
    NumberSet,
    above,
    additive_ruleset,
    at_most,
    binary_split,
    category_labels,
    check_estimator,
    check_objective,
    class_labels_of,
    feature_names_of,
    reachable_leaves,
)

#: Objectives for which sums are log odds of classes, and those for which they are the predictions.
_CLASSIFIERS = ("binary", "multiclass", "multiclassova")
_SUMS = (
    "regression",
    "regression_l1",
    "huber",
    "fair",
    "quantile",
    "mape",
    "lambdarank",
    "rank_xendcg",
)
#: If 0 represents a missing value, LightGBM treats numbers up to this magnitude as 0.
_ZERO = 1.0000000180025095e-35
#: Number by which LightGBM represents infinite thresholds.
_INFINITY = 1e300


def read_lightgbm(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    categories: Mapping[Hashable, Sequence[Any]] | None = None,
    domain: Domain | None = None,
    X: pd.DataFrame | None = None,
) -> RuleSet:
    """Convert a LightGBM model to rules whose outputs are added.

    Parameters
    ----------
    model : LGBMClassifier, LGBMRegressor, LGBMRanker or Booster
        A fitted model of trees. If it was stopped early, only the trees up to its best iteration
        are read, as in its predictions.
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those of `X`, or those of the model, in which
        LightGBM replaces blanks with underscores.
    classes : sequence, optional
        Labels of a Booster's classes; by default 0, 1, ...
    categories : mapping of feature to sequence of labels, optional
        Labels of the codes of categorical features. A model that was fitted on a data frame stores
        them, but not the columns that they belong to.
    domain : Domain, optional
        Box around the training rows, which the model does not store.
    X : DataFrame, optional
        The training rows, or other rows with the same categorical columns. They identify the
        columns to which the stored labels belong; without them, the columns are derived from the
        ranges of the values, and the model is rejected if several assignments are plausible.

    Returns
    -------
    RuleSet
        Rules with ``voting="logistic"`` (classification) or ``"sum"`` (regression).

    Raises
    ------
    ValueError
        If the model has linear functions in its leaves, an objective whose predictions are not a
        plain sum (such as "poisson"), or categorical columns whose labels cannot be assigned, or
        is a regressor with an objective for classification or the reverse.

    Notes
    -----
    Predictions equal those of the model, because both add float64 numbers. Class probabilities
    differ for the one-versus-all objective ("multiclassova"). If a feature had no missing values in
    training, LightGBM treats missing values as 0, and so do the rules.
    """
    booster = model if hasattr(model, "dump_model") else model.booster_
    dump = booster.dump_model()
    if feature_names is None and X is not None:
        feature_names = [str(name) for name in X.columns]
    names = feature_names_of(dump["feature_names"], int(dump["max_feature_idx"]) + 1, feature_names)
    objective, _, settings = str(dump.get("objective") or "").partition(" ")
    labels = _labels_of_codes(dump, names, category_labels(categories, names), X)
    n_outputs = int(dump["num_tree_per_iteration"])
    # With reg_sqrt, LightGBM predicts the square of the sum.
    is_plain_sum = bool(objective) and settings != "sqrt"
    checked_objective = objective if is_plain_sum else str(dump.get("objective") or "custom")
    classifies = check_objective(checked_objective, _CLASSIFIERS, _SUMS, kind="objective")
    check_estimator(model, objective, classifies=classifies)
    classes = class_labels_of(model, classes, n_outputs) if classifies else None
    # The log odds of the second class are the sum times this factor.
    scale = float(settings.rpartition("sigmoid:")[2] or 1) if objective == "binary" else 1.0
    trees = dump["tree_info"]
    n_rounds = max(1, len(trees) // n_outputs) if dump.get("average_output") else 1
    return additive_ruleset(
        [0.0] * n_outputs,
        _leaves(trees, n_outputs, n_rounds / scale, labels),
        names,
        classes=classes,
        domain=domain,
    )


def _labels_of_codes(
    dump: Mapping[str, Any],
    names: Sequence[str],
    user_labels: dict[int, list[Any]],
    X: pd.DataFrame | None,
) -> dict[int, list[Any]]:
    """Return the labels of the codes of categorical features, by the feature's index."""
    stored_labels = dump.get("pandas_categorical") or []
    if X is not None:
        columns = [i for i, kind in enumerate(X.dtypes) if not is_numeric_dtype(kind)]
        if len(columns) != len(stored_labels) or X.shape[1] != len(names):
            raise ValueError(
                f"X must have the {len(names)} columns of the training rows, of which "
                f"{len(stored_labels)} are categorical; got {X.shape[1]} and {len(columns)}."
            )
        return dict(zip(columns, stored_labels, strict=True)) | user_labels
    infos = [dump["feature_infos"].get(name) for name in dump["feature_names"]]
    codes = {
        i: set(info["values"]) - {-1} for i, info in enumerate(infos) if info and info["values"]
    }
    # Ordered categories are split like numbers, by their codes.
    n_codes = max(map(len, stored_labels), default=0)
    may_be_ordered = any(_fits(info, n_codes) for info in infos if info and not info["values"])
    is_complete = len(stored_labels) <= len(user_labels) or not may_be_ordered
    if not stored_labels or (is_complete and codes.keys() <= user_labels.keys()):
        return user_labels
    assigned_labels = _assign_labels(infos, codes, stored_labels)
    if assigned_labels is None:
        listing = ", ".join(f"{names[i]!r}: [...]" for i in codes) or "column: [...]"
        raise ValueError(
            f"The model was fitted on a data frame with {len(stored_labels)} categorical columns "
            "and does not store which labels belong to which column, or which columns are ordered: "
            f"pass X=X_train, the frame of the training rows, or categories={{{listing}}} for all "
            "of them, with the labels in the order of X[column].cat.categories."
        )
    return assigned_labels | user_labels


def _assign_labels(
    infos: Sequence[Mapping[str, Any] | None],
    codes: Mapping[int, set[int]],
    stored_labels: Sequence[list[Any]],
) -> dict[int, list[Any]] | None:
    """Assign stored labels to columns; return None if the assignment is ambiguous."""
    # The stored labels have the order of the columns. Assigning them to the earliest and to the
    # latest possible columns gives the same result only if the assignment is unique.
    earliest, latest = (
        [next((i for i in columns if _fits(infos[i], len(labels))), -1) for labels in ordered]
        for columns, ordered in (
            (iter(range(len(infos))), stored_labels),
            (iter(reversed(range(len(infos)))), stored_labels[::-1]),
        )
    )
    if earliest == latest[::-1] and -1 not in earliest:
        return dict(zip(earliest, stored_labels, strict=True))
    # By default, LightGBM declares exactly the unordered categorical columns as categorical.
    by_default = dict(zip(codes, stored_labels, strict=False))
    fits_default = len(codes) == len(stored_labels) and all(
        _fits(infos[i], len(labels)) for i, labels in by_default.items()
    )
    # Rules with wrong text labels raise errors. Wrong numeric labels would not be noticed.
    are_texts = all(isinstance(label, str) for labels in stored_labels for label in labels)
    if not fits_default or not are_texts:
        return None
    # If a user declared an integer column as categorical, its values are rarely exactly the codes
    # 0, 1, ..., n - 1 of n labels.
    has_all_codes = all(codes[i] == set(range(len(by_default[i]))) for i in codes)
    sizes = {len(labels) for labels in stored_labels}
    has_other_codes = any(
        info and not info["values"] and info["min_value"] == 0 and info["max_value"] + 1 in sizes
        for info in infos
    )
    return by_default if has_all_codes or not has_other_codes else None


def _fits(info: Mapping[str, Any] | None, n_codes: int) -> bool:
    """Return whether a column can have that many codes; constant columns have no `info`."""
    if info is None:
        return True
    if info["values"]:
        return bool(max(info["values"]) < n_codes)
    bounds = info["min_value"], info["max_value"]
    return bool(bounds[0] >= 0 and bounds[1] < n_codes and all(b == int(b) for b in bounds))


def _leaves(
    trees: Sequence[Mapping[str, Any]],
    n_outputs: int,
    divisor: float,
    labels: Mapping[int, Sequence[Any]],
) -> Iterator[AdditiveLeaf]:
    def branches_of(node: Mapping[str, Any]) -> list[Branch]:
        if "split_feature" not in node:
            return []
        feature = int(node["split_feature"])
        children = node["left_child"], node["right_child"]
        if node["decision_type"] == "==":
            codes = [int(code) for code in str(node["threshold"]).split("||")]
            code_labels = labels.get(feature)
            values = frozenset(codes if code_labels is None else (code_labels[c] for c in codes))
            sides = CategorySet(values, False, False), CategorySet(values, True, True)
            return binary_split(feature, *sides, *children)
        number_sides = _number_sides(node)
        if feature in labels:  # codes of ordered categories
            sides = _sides_of_codes(labels[feature], *number_sides)
            return binary_split(feature, *sides, *children)
        return binary_split(feature, *number_sides, *children)

    for number, tree in enumerate(trees):
        for leaf, premises in reachable_leaves(tree["tree_structure"], branches_of):
            if "leaf_const" in leaf:
                raise ValueError(
                    "The model has linear functions in its leaves (linear_tree=True), which cannot "
                    "be read. Fit it with linear_tree=False."
                )
            value = float(leaf["leaf_value"]) / divisor
            yield AdditiveLeaf(premises, value, number % n_outputs, leaf.get("leaf_count"))


def _number_sides(node: Mapping[str, Any]) -> tuple[NumberSet, NumberSet]:
    """Return the values that a split on a number sends to the left and to the right."""
    threshold, missing_type = float(node["threshold"]), node["missing_type"]
    if abs(threshold) >= _INFINITY:
        threshold = math.copysign(math.inf, threshold)
    elif -_ZERO <= threshold < _ZERO:  # numbers up to this magnitude count as 0
        threshold = math.nextafter(-_ZERO, -math.inf) if threshold < 0 else _ZERO
    if missing_type == "NaN":
        missing_left = bool(node["default_left"])
    elif missing_type == "None":  # a missing value counts as 0
        missing_left = threshold >= 0
    else:
        return _sides_with_zero_as_missing(threshold, bool(node["default_left"]))
    return at_most(threshold, missing=missing_left), above(threshold, missing=not missing_left)


def _sides_of_codes(
    labels: Sequence[Any], left: NumberSet, right: NumberSet
) -> tuple[CategorySet, CategorySet]:
    """Return the labels of the codes on each side; unknown labels count as missing."""
    points = [NumberSet(((code, code, True, True),), False) for code in range(len(labels))]
    is_left = [bool(left.intersect(point).spans) for point in points]
    values = frozenset(itertools.compress(labels, is_left)), frozenset(labels)
    sides = [(left, values[0], values[1] - values[0]), (right, values[1] - values[0], values[0])]
    first, second = (
        CategorySet(others if side.missing else own, side.missing, side.missing)
        for side, own, others in sides
    )
    return first, second


def _sides_with_zero_as_missing(
    threshold: float, missing_left: bool
) -> tuple[NumberSet, NumberSet]:
    """Return the sides of a split that sends 0 to the side of missing values."""
    zero = NumberSet(((-_ZERO, _ZERO, True, True),), True)
    nonzero = NumberSet(
        ((-math.inf, -_ZERO, False, False), (_ZERO, math.inf, False, False)), missing=False
    )
    left = at_most(threshold, missing=False).intersect(nonzero)
    right = above(threshold, missing=False).intersect(nonzero)
    if missing_left:
        return NumberSet(_merge_spans([*left.spans, *zero.spans]), True), right
    return left, NumberSet(_merge_spans([*right.spans, *zero.spans]), True)


def _merge_spans(spans: list[tuple[float, float, bool, bool]]) -> tuple[Any, ...]:
    """Join intervals that touch."""
    result: list[tuple[float, float, bool, bool]] = []
    for span in sorted(spans):
        if result and result[-1][1] == span[0] and (result[-1][3] or span[2]):
            result[-1] = (result[-1][0], span[1], result[-1][2], span[3])
        else:
            result.append(span)
    return tuple(result)
