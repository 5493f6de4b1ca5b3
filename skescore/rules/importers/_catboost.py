"""Conversion of CatBoost's models to rules, with missing values and statistics of categories."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skescore._text import listed
from skescore._validation import python_value
from skescore.rules._domain import Domain
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._boosted_trees import (
    AdditiveLeaf,
    Branch,
    CategorySet,
    NumberSet,
    Region,
    above,
    additive_ruleset,
    at_most,
    check_objective,
    feature_names_of,
    intersect_regions,
    reachable_leaves,
)
from skescore.rules.importers._sklearn import float32_cut

#: Losses whose sums of trees are log odds of two classes, log odds of more, and predictions.
_BINARY = ("Logloss", "CrossEntropy", "Focal")
_MULTICLASS = ("MultiClass", "MultiClassOneVsAll")
_SUMS = ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "LogLinQuantile", "Lq", "Expectile")
#: Largest number of combinations of categories that one split may distinguish.
_MAX_COMBINATIONS = 100_000
_FEWER_STATISTICS = "Fit it with a smaller max_ctr_complexity or a larger one_hot_max_size."
#: Multiplier with which CatBoost combines the hashes of several features.
_HASH_MULTIPLIER = 0x4906BA494954CB65
#: Hash in the unused slots of a table of statistics.
_EMPTY_SLOT = 2**64 - 1


def read_catboost(
    model: Any,
    *,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
    domain: Domain | None = None,
) -> RuleSet:
    """Convert a model of CatBoost to a rule set whose rules vote.

    Parameters
    ----------
    model : CatBoostClassifier, CatBoostRegressor or CatBoost
        A fitted model with one output.
    X : DataFrame or array, optional
        The training rows, or other rows with all their categories; required for categorical
        features, because the model stores only hashes of their values.
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those that the model was fitted with.
    domain : Domain, optional
        Box around the training rows, which the model does not store.

    Returns
    -------
    RuleSet
        Rules with ``voting="logistic"`` (classification) or ``"sum"`` (regression).

    Raises
    ------
    ValueError
        If the model has categorical features and `X` is missing or lacks one of their values; or if
        the model uses text or embeddings, has several outputs or a loss whose predictions are not a
        plain sum (such as "Poisson"), stores no loss, or combines too many categories.

    Notes
    -----
    CatBoost compares numbers after rounding them to float32; the rules are equivalent for float64
    rows. For "MultiClassOneVsAll", and for models with a probability threshold other than 0.5,
    labels agree with the model, but class probabilities do not. CatBoost replaces categories by
    target statistics; the rules list the categories whose statistic is above the threshold of a
    split. Combinations of features lead to several rules per leaf.
    """
    names = feature_names_of(model.feature_names_, len(model.feature_names_), feature_names)
    dump = _dump(model, X)
    info = dump["features_info"]
    for kind in ("text_features", "embedding_features"):
        if info.get(kind):
            raise ValueError(
                f"The model uses {kind.replace('_', ' ')}, which rules cannot express."
            )
    if "params" not in dump["model_info"]:
        raise ValueError(
            "The model does not store its loss function, like a sum of models (sum_models), so it "
            "is unknown what it predicts. Read the models that were added, one by one."
        )
    loss = str(dump["model_info"]["params"]["loss_function"]["type"])
    features = _SplitFeatures(dump, X)
    scale, start = dump["scale_and_bias"]
    classes = None
    if check_objective(loss, (*_BINARY, *_MULTICLASS), _SUMS, kind="loss"):
        classes = np.asarray(model.classes_).tolist()
        if len(classes) == 2 and loss in _BINARY:
            classifier = import_module("catboost").CatBoostClassifier  # CatBoost lacks the method
            share = float(classifier.get_probability_threshold(model) or 0.5)
            start = [start[0] - float(np.log(share / (1 - share)))]
    return additive_ruleset(
        start, _leaves(dump, features, scale), names, classes=classes, domain=domain
    )


def _dump(model: Any, X: Any) -> dict[str, Any]:
    """Return the model's JSON description, with the categories of the rows if it has any."""
    categorical = list(model.get_cat_feature_indices())
    pool = None
    if categorical:
        if X is None:
            names = listed([model.feature_names_[i] for i in categorical])
            raise ValueError(
                f"The model has categorical features ({names}) and stores only hashes of their "
                "values: pass the training rows, as_ruleset(model, X=X_train)."
            )
        pool = import_module("catboost").Pool(X, cat_features=categorical)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        try:
            model.save_model(str(file), format="json", pool=pool)
        except Exception as error:
            if "invalid float value" not in str(error):
                raise
            raise ValueError(
                "The model has an infinite border, because training rows exceed single precision "
                "(3.4e38), and CatBoost cannot describe the model. Scale such columns, and "
                "train again."
            ) from error
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


class _SplitFeatures:
    """Features of a model, and the regions on the two sides of its splits."""

    def __init__(self, dump: Mapping[str, Any], X: Any) -> None:
        info = dump["features_info"]
        self._numeric = info.get("float_features") or []
        self._categorical = info.get("categorical_features") or []
        text = {int(c["hash"]): str(c["value"]) for c in info.get("cat_features_hash") or []}
        self._names = {
            int(c["flat_feature_index"]): str(c["feature_id"]) for c in self._categorical
        }
        self._categories = [_hash_categories(column, text, X) for column in self._categorical]
        self._tables = dump.get("ctr_data") or {}
        self._statistics = [
            (statistic, border)
            for statistic in info.get("ctrs") or []
            for border in statistic["borders"]
        ]
        # The order of splits is: on numbers, on categories, on statistics.
        self._first_statistic = sum(len(column["borders"] or ()) for column in self._numeric)
        self._first_statistic += sum(
            len(column.get("values") or ()) for column in self._categorical
        )
        self._sides_by_split: dict[int, list[tuple[bool, Region]]] = {}

    def sides(self, split: Mapping[str, Any]) -> list[tuple[bool, Region]]:
        """Return the regions that a split separates, and whether each is on the right."""
        number = int(split["split_index"])
        if number not in self._sides_by_split:
            self._sides_by_split[number] = list(self._compute_sides(split, number))
        return self._sides_by_split[number]

    def _compute_sides(
        self, split: Mapping[str, Any], number: int
    ) -> Iterator[tuple[bool, Region]]:
        left: Any
        right: Any
        kind = split["split_type"]
        if kind == "FloatFeature":
            feature, left, right = self._split_numbers(
                split["float_feature_index"], split["border"]
            )
        elif kind == "OneHotFeature":
            feature, left, right = self._split_category(split["cat_feature_index"], split["value"])
        elif kind == "OnlineCtr":
            yield from self._split_statistic(*self._statistics[number - self._first_statistic])
            return
        else:
            raise ValueError(f"The model splits on {kind}, which rules cannot express.")
        yield False, {feature: left}
        yield True, {feature: right}

    def _split_numbers(self, index: int, border: float) -> tuple[int, NumberSet, NumberSet]:
        """Return the feature, the region of numbers up to the border, and the region above."""
        column = self._numeric[index]
        missing_left = column["nan_value_treatment"] != "AsTrue"
        # The smallest and the largest float32 number are borders that separate missing values and
        # also larger numbers, which become infinite.
        cut = float32_cut(border)
        left = at_most(cut, missing=missing_left)
        return int(column["flat_feature_index"]), left, above(cut, missing=not missing_left)

    def _split_category(self, index: int, code: int) -> tuple[int, CategorySet, CategorySet]:
        """Return the feature, the region of all categories but one, and the region of this one."""
        feature = int(self._categorical[index]["flat_feature_index"])
        for category, category_hash in self._categories[index]:
            if category_hash == code % 2**32:
                complement = CategorySet(category.values, True, not category.missing)
                return feature, complement, category
        name = self._categorical[index]["feature_id"]
        raise ValueError(
            f"X lacks a category of {name!r} that the model splits on: pass all rows that the "
            "model was trained on."
        )

    def _split_statistic(
        self, statistic: Mapping[str, Any], border: float
    ) -> Iterator[tuple[bool, Region]]:
        """Divide (combinations of) categories by whether their statistic is above the border."""
        features: list[int] = []
        categories: list[list[tuple[Any, int | None]]] = []
        sides: list[Any]
        for element in statistic["elements"]:
            kind = element["combination_element"]
            if kind == "cat_feature_value":
                index = int(element["cat_feature_index"])
                features.append(int(self._categorical[index]["flat_feature_index"]))
                categories.append([(v, _extend_sign(code)) for v, code in self._categories[index]])
                continue
            if kind == "float_feature":
                feature, *sides = self._split_numbers(
                    element["float_feature_index"], element["border"]
                )
            else:
                feature, *sides = self._split_category(
                    element["cat_feature_index"], element["value"]
                )
            features.append(feature)
            categories.append([(sides[0], 0), (sides[1], 1)])
        if np.prod([float(len(pairs)) for pairs in categories]) > _MAX_COMBINATIONS:
            raise ValueError(
                f"The model counts more than {_MAX_COMBINATIONS:,} combinations of categories. "
                f"{_FEWER_STATISTICS}"
            )
        counts = _read_counts(self._tables[statistic["identifier"]])
        passes = _statistic_test(statistic, self._tables[statistic["identifier"]], counts, border)
        value_sets = [[values for values, _ in pairs] for pairs in categories]
        combinations = list(
            itertools.product(*([code for _, code in pairs] for pairs in categories))
        )
        if not counts.keys() <= {_EMPTY_SLOT, *map(_combine_hashes, combinations)}:
            names = [str(column["feature_id"]) for column in self._categorical]
            raise ValueError(
                f"X lacks categories of {listed(names)} that the model was trained on, or has them "
                "in another form, such as 1 for 01: pass all rows that it was trained on."
            )
        results = [passes(codes) for codes in combinations]
        for goes_right, combination in _merge_combinations(value_sets, results):
            region: Region | None = {}
            for feature, values in zip(features, combination, strict=True):
                region = None if region is None else intersect_regions(region, {feature: values})
            if region is not None:
                yield goes_right, region


def _hash_categories(
    column: Mapping[str, Any], text: Mapping[int, str], X: Any
) -> list[tuple[CategorySet, int | None]]:
    """Return the categories of a feature with their hashes; the last entry is for all others."""
    position = int(column["flat_feature_index"])
    values = X.iloc[:, position] if hasattr(X, "iloc") else np.asarray(X, dtype=object)[:, position]
    distinct = map(python_value, pd.unique(pd.Series(values, dtype=object).dropna()))
    # CatBoost hashes texts; the text of a bool is 0 or 1.
    value_of_text = {str(int(v)) if isinstance(v, bool) else str(v): v for v in distinct}
    unknown = sorted(value_of_text.keys() - set(text.values()))
    if unknown:
        raise ValueError(
            f"CatBoost does not write the values of {column['feature_id']!r} as X does, "
            f"for example {unknown[0]!r}. Fit the model on texts: X[column].astype(str)."
        )
    categories: list[tuple[CategorySet, int | None]] = [
        (CategorySet(frozenset([value_of_text[name]]), False, False), code)
        for code, name in sorted(text.items())
        if name in value_of_text
    ]
    return [*categories, (CategorySet(frozenset(value_of_text.values()), True, True), None)]


def _extend_sign(code: int | None) -> int | None:
    """Extend a hash of 32 bits to 64 bits by its sign, as CatBoost does."""
    return None if code is None else (code - 2**32 if code >= 2**31 else code) % 2**64


def _read_counts(table: Mapping[str, Any]) -> dict[int, Any]:
    """Return the counts of a statistic by the hash of the combination of categories."""
    cells, stride = table["hash_map"], int(table["hash_stride"])
    return {int(cells[i]): cells[i + 1 : i + stride] for i in range(0, len(cells), stride)}


def _combine_hashes(codes: Sequence[int | None]) -> int | None:
    """Return the hash of a combination of categories; None if one of them is unknown."""
    combined_hash = 0
    for code in codes:
        if code is None:
            return None
        combined_hash = _HASH_MULTIPLIER * (combined_hash + _HASH_MULTIPLIER * code) % 2**64
    return combined_hash


def _statistic_test(
    statistic: Mapping[str, Any],
    table: Mapping[str, Any],
    counts: Mapping[int, Any],
    border: float,
) -> Callable[[Sequence[int | None]], bool]:
    """Return a function that tests whether the statistic of a combination is above the border."""
    kind = statistic["ctr_type"]
    numerator, denominator = (
        np.float32(statistic[f"prior_{name}"]) for name in ("numerator", "denomerator")
    )
    target = int(statistic["target_border_idx"])

    def passes(codes: Sequence[int | None]) -> bool:
        combined_hash = _combine_hashes(codes)
        combination_counts = None if combined_hash is None else counts.get(combined_hash)
        if kind in ("Counter", "FeatureFreq"):
            total = table["counter_denominator"]
            positives = 0 if combination_counts is None else combination_counts[0]
        elif combination_counts is None:
            positives, total = 0, 0
        elif kind == "Borders":
            positives, total = sum(combination_counts[target + 1 :]), sum(combination_counts)
        elif kind == "Buckets":
            positives, total = combination_counts[target], sum(combination_counts)
        else:
            raise ValueError(
                f"The model uses the statistic {kind}, which cannot be read. {_FEWER_STATISTICS}"
            )
        share = (np.float32(positives) + numerator) / (np.float32(total) + denominator)
        value = (share + np.float32(statistic["shift"])) * np.float32(statistic["scale"])
        return bool(value > np.float32(border))

    return passes


def _merge_combinations(
    value_sets: Sequence[Sequence[Any]], results: Sequence[bool]
) -> Iterator[tuple[bool, tuple[Any, ...]]]:
    """Merge combinations with the same result; `results` are in the order of their product.

    Values of the first feature are merged if they have the same results with all values of the
    later features, which are merged in the same way.
    """
    if not value_sets:
        yield results[0], ()
        return
    size = len(results) // len(value_sets[0])
    groups: dict[tuple[bool, ...], list[Any]] = {}
    for number, values in enumerate(value_sets[0]):
        groups.setdefault(tuple(results[number * size : (number + 1) * size]), []).append(values)
    for group_results, group in groups.items():
        for result, later_values in _merge_combinations(value_sets[1:], group_results):
            yield result, (_union(group), *later_values)


def _union(parts: Sequence[Any]) -> Any:
    """Return the union of disjoint sets of values of a feature."""
    missing = any(part.missing for part in parts)
    if isinstance(parts[0], NumberSet):
        if len(parts) == 1:
            return parts[0]
        return above(-np.inf, missing=missing)  # both sides of a border
    listed_values = frozenset().union(*(part.values for part in parts if not part.negated))
    for part in parts:
        if part.negated:
            return CategorySet(part.values - listed_values, True, missing)
    return CategorySet(listed_values, False, missing)


def _leaves(
    dump: Mapping[str, Any], features: _SplitFeatures, scale: float
) -> Iterator[AdditiveLeaf]:
    for tree in dump.get("oblivious_trees") or []:
        splits = tree["splits"] or []
        values = np.reshape(tree["leaf_values"], (2 ** len(splits), -1))
        weights = tree.get("leaf_weights") or [None] * len(values)

        # In an oblivious tree, all nodes at the same depth have the same split.
        def branches_of_level(node: tuple[int, int], splits: Any = splits) -> list[Branch]:
            depth, leaf = node
            if depth == len(splits):
                return []
            return [
                Branch(region, (depth + 1, leaf + (goes_right << depth)))
                for goes_right, region in features.sides(splits[depth])
            ]

        for (_, leaf), premises in reachable_leaves((0, 0), branches_of_level):
            for k, value in enumerate(values[leaf]):
                yield AdditiveLeaf(premises, scale * float(value), k, weights[leaf])

    def branches_of(node: Mapping[str, Any]) -> list[Branch]:
        if "split" not in node:
            return []
        return [
            Branch(region, node["right" if goes_right else "left"])
            for goes_right, region in features.sides(node["split"])
        ]

    for tree in dump.get("trees") or []:
        for node, premises in reachable_leaves(tree, branches_of):
            for k, value in enumerate(np.ravel(node["value"])):
                yield AdditiveLeaf(premises, scale * float(value), k, node.get("weight"))
