"""Rules from LightGBM's trees, missing values and all."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from skescore._text import listed
from skescore.rules._domain import Domain
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._boosted_trees import (
    Branch,
    Categories,
    Leaf,
    Numbers,
    above,
    additive_ruleset,
    below,
    feature_names_of,
    labels_by_code,
    two_way,
    ways_to_leaves,
)

#: Objectives by what their sums mean.
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
#: LightGBM takes numbers up to this for 0 where 0 means a missing value, and writes infinite
#: thresholds as the other.
_ZERO, _INFINITY = 1.0000000180025095e-35, 1e300


def read_lightgbm(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    categories: Mapping[Hashable, Sequence[Any]] | None = None,
    domain: Domain | None = None,
) -> RuleSet:
    """Turn a model of LightGBM into one rule set whose rules add up.

    Parameters
    ----------
    model : LGBMClassifier, LGBMRegressor, LGBMRanker or Booster
        A fitted model. Of one that was stopped early, the trees up to its best iteration are read,
        with which it predicts.
    feature_names : sequence of str, optional
        Names for the rules; by default those the model was fitted with, in which LightGBM writes
        blanks as underscores.
    classes : sequence, optional
        Labels of a Booster's classes; by default 0, 1, ...
    categories : mapping of feature to sequence of labels, optional
        What the codes of categorical features mean. A model that was fitted on a data frame's
        categorical columns knows it.
    domain : Domain, optional
        Box of the training rows, which the model does not remember.

    Returns
    -------
    RuleSet
        With ``voting="logistic"`` (classification) or ``"sum"`` (regression).

    Raises
    ------
    ValueError
        If the model has linear functions in its leaves, an objective whose answers are no plain sum
        (such as "poisson"), or categorical features of which it does not tell the labels.

    Notes
    -----
    Answers are those of the model: LightGBM adds doubles, as rule sets do; class probabilities are
    not, where each class is told from all others ("multiclassova"). Where a feature lacked no value
    in training, LightGBM takes missing values for 0, and so do the rules.
    """
    booster = model if hasattr(model, "dump_model") else model.booster_
    dump = booster.dump_model()
    names = feature_names_of(dump["feature_names"], int(dump["max_feature_idx"]) + 1, feature_names)
    objective, _, settings = str(dump.get("objective") or "").partition(" ")
    labels = _labels(dump, names, labels_by_code(categories, names))
    n_outputs = int(dump["num_tree_per_iteration"])
    if objective in _CLASSIFIERS:
        known = getattr(model, "classes_", None) if classes is None else classes
        classes = list(range(max(2, n_outputs))) if known is None else _plain(known)
        if len(classes) != max(2, n_outputs):
            raise ValueError(
                f"classes must list the model's {max(2, n_outputs)} labels, got {classes!r}."
            )
    elif objective in _SUMS and settings != "sqrt":
        classes = None
    else:
        raise ValueError(
            f"The model has the objective {dump.get('objective') or 'of its own'!r}, whose answers "
            f"are no plain sum of its leaves. Read are "
            f"{listed((*_CLASSIFIERS, *_SUMS), limit=20)}."
        )
    # Log odds are the sums times this.
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


def _plain(labels: Any) -> list[Any]:
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def _labels(
    dump: Mapping[str, Any], names: Sequence[str], given: dict[int, list[Any]]
) -> dict[int, list[Any]]:
    """Labels of the categorical features of a data frame, by the feature's index."""
    stored = dump.get("pandas_categorical") or []
    known = dump["feature_names"]
    categorical = [i for i, n in enumerate(known) if dump["feature_infos"].get(n, {}).get("values")]
    missing = [i for i in categorical if i not in given]
    if len(stored) == len(categorical):
        return dict(zip(categorical, stored, strict=True)) | given
    if stored and missing:
        listing = ", ".join(f"{names[i]!r}: [...]" for i in missing)
        raise ValueError(
            "The model was fitted on a data frame with categorical columns and does not tell which "
            f"labels belong to which: pass categories={{{listing}}} with the labels in the order "
            "of X[column].cat.categories."
        )
    return given


def _leaves(
    trees: Sequence[Mapping[str, Any]],
    n_outputs: int,
    divisor: float,
    labels: Mapping[int, Sequence[Any]],
) -> Iterator[Leaf]:
    def branches_of(node: Mapping[str, Any]) -> list[Branch]:
        if "split_feature" not in node:
            return []
        feature = int(node["split_feature"])
        children = node["left_child"], node["right_child"]
        if node["decision_type"] == "==":
            codes = [int(code) for code in str(node["threshold"]).split("||")]
            known = labels.get(feature)
            values = frozenset(codes if known is None else (known[c] for c in codes))
            sides = Categories(values, False, False), Categories(values, True, True)
            return two_way(feature, *sides, *children)
        return two_way(feature, *_sides(node), *children)

    for number, tree in enumerate(trees):
        for leaf, premises in ways_to_leaves(tree["tree_structure"], branches_of):
            if "leaf_const" in leaf:
                raise ValueError(
                    "The model has linear functions in its leaves (linear_tree=True), which are "
                    "not read. Fit it without."
                )
            value = float(leaf["leaf_value"]) / divisor
            yield Leaf(premises, value, number % n_outputs, leaf.get("leaf_count"))


def _sides(node: Mapping[str, Any]) -> tuple[Numbers, Numbers]:
    """What a split on a number sends to its left and to its right."""
    cut, kind = float(node["threshold"]), node["missing_type"]
    cut = math.copysign(math.inf, cut) if abs(cut) >= _INFINITY else cut
    if kind == "NaN":
        missing = bool(node["default_left"])
    elif kind == "None":  # a missing value counts as 0
        missing = cut >= 0
    else:
        return _zero_is_missing(cut, bool(node["default_left"]))
    return below(cut, missing=missing), above(cut, missing=not missing)


def _zero_is_missing(cut: float, goes_left: bool) -> tuple[Numbers, Numbers]:
    """Sides of a split where 0 goes where missing values go, wherever the cut is."""
    zero = Numbers(((-_ZERO, _ZERO, True, True),), True)
    others = Numbers(
        ((-math.inf, -_ZERO, False, False), (_ZERO, math.inf, False, False)), missing=False
    )
    left, right = below(cut, missing=False).meet(others), above(cut, missing=False).meet(others)
    if goes_left:
        return Numbers(_joined([*left.spans, *zero.spans]), True), right
    return left, Numbers(_joined([*right.spans, *zero.spans]), True)


def _joined(spans: list[tuple[float, float, bool, bool]]) -> tuple[Any, ...]:
    """Join intervals that touch."""
    result: list[tuple[float, float, bool, bool]] = []
    for span in sorted(spans):
        if result and result[-1][1] == span[0] and (result[-1][3] or span[2]):
            result[-1] = (result[-1][0], span[1], result[-1][2], span[3])
        else:
            result.append(span)
    return tuple(result)
