"""Rules from CatBoost's trees, missing values and statistics of categories and all."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
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
    Branch,
    Categories,
    Leaf,
    Numbers,
    above,
    additive_ruleset,
    below,
    feature_names_of,
    met,
    ways_to_leaves,
)
from skescore.rules.importers._sklearn import float32_cut

#: Losses by what their sums mean.
_BINARY = ("Logloss", "CrossEntropy", "Focal")
_MULTICLASS = ("MultiClass", "MultiClassOneVsAll")
_SUMS = ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "LogLinQuantile", "Lq", "Expectile")
#: Combinations of categories looked up for one split.
_MAX_COMBINATIONS = 100_000
_FEWER = "Fit it with a smaller max_ctr_complexity, or a greater one_hot_max_size."


def read_catboost(
    model: Any,
    *,
    X: Any = None,
    feature_names: Sequence[str] | None = None,
    domain: Domain | None = None,
) -> RuleSet:
    """Turn a model of CatBoost into one rule set whose rules add up.

    Parameters
    ----------
    model : CatBoostClassifier, CatBoostRegressor or CatBoost
        A fitted model with one output.
    X : DataFrame or array, optional
        The training rows, or rows that show all their categories. Needed for categorical features,
        of whose values the model keeps hashes alone.
    feature_names : sequence of str, optional
        Names for the rules; by default those the model was fitted with.
    domain : Domain, optional
        Box of the training rows, which the model does not remember.

    Returns
    -------
    RuleSet
        With ``voting="logistic"`` (classification) or ``"sum"`` (regression).

    Raises
    ------
    ValueError
        If the model has categorical features and `X` is not given or does not show one of their
        values; if it has text, embeddings, several outputs, a loss whose answers are no plain sum
        (such as "Poisson"), or combines too many categories.

    Notes
    -----
    CatBoost compares numbers after rounding them to float32. The rules hold the same float64 rows.
    Class probabilities of "MultiClassOneVsAll" are not the model's, labels are.
    It replaces categories by what it has counted for them (target statistics); the rules name the
    categories whose statistic is above the threshold of a split. Statistics of combinations of
    features become several rules per leaf.
    """
    names = feature_names_of(model.feature_names_, len(model.feature_names_), feature_names)
    dump = _dump(model, X)
    info = dump["features_info"]
    for kind in ("text_features", "embedding_features"):
        if info.get(kind):
            raise ValueError(f"The model uses {kind.replace('_', ' ')}, which no rule can.")
    loss = str(dump["model_info"]["params"]["loss_function"]["type"])
    features = _Features(dump, X)
    scale, start = dump["scale_and_bias"]
    classes = None
    if loss in (*_BINARY, *_MULTICLASS):
        classes = np.asarray(model.classes_).tolist()
        if len(classes) == 2 and loss in _BINARY:
            share = float(model.get_probability_threshold() or 0.5)
            start = [start[0] - float(np.log(share / (1 - share)))]
    elif loss not in _SUMS:
        raise ValueError(
            f"The model has the loss {loss!r}, whose answers are no plain sum of its leaves. Read "
            f"are {listed((*_BINARY, *_MULTICLASS, *_SUMS), limit=20)}."
        )
    return additive_ruleset(
        start, _leaves(dump, features, scale), names, classes=classes, domain=domain
    )


def _dump(model: Any, X: Any) -> dict[str, Any]:
    """What the model writes about itself, with the categories of the rows if there are any."""
    categorical = list(model.get_cat_feature_indices())
    pool = None
    if categorical:
        if X is None:
            some = listed([model.feature_names_[i] for i in categorical])
            raise ValueError(
                f"The model has categorical features ({some}) and keeps hashes of their values "
                "alone: pass the training rows, as_ruleset(model, X=X_train)."
            )
        # The library is there: it has brought the model.
        library = import_module(type(model).__module__.partition(".")[0])
        pool = library.Pool(X, cat_features=categorical)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        model.save_model(str(file), format="json", pool=pool)
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return result


class _Features:
    """The features of a model, and what its splits send to their two sides."""

    def __init__(self, dump: Mapping[str, Any], X: Any) -> None:
        info = dump["features_info"]
        self._numeric = info.get("float_features") or []
        self._categorical = info.get("categorical_features") or []
        text = {int(c["hash"]): str(c["value"]) for c in info.get("cat_features_hash") or []}
        self._atoms = [_atoms(column, text, X) for column in self._categorical]
        self._tables = dump.get("ctr_data") or {}
        self._statistics = [
            (statistic, border)
            for statistic in info.get("ctrs") or []
            for border in statistic["borders"]
        ]
        # Splits are numbered: those on numbers, on categories, on statistics of categories.
        self._first = sum(len(column["borders"] or ()) for column in self._numeric)
        self._first += sum(len(column.get("values") or ()) for column in self._categorical)
        self._known: dict[int, list[tuple[bool, dict[int, Any]]]] = {}

    def sides(self, split: Mapping[str, Any]) -> list[tuple[bool, dict[int, Any]]]:
        """Give which values go to which side: whether to the right, and values by feature."""
        number = int(split["split_index"])
        if number not in self._known:
            self._known[number] = list(self._sides(split, number))
        return self._known[number]

    def _sides(
        self, split: Mapping[str, Any], number: int
    ) -> Iterator[tuple[bool, dict[int, Any]]]:
        left: Any
        right: Any
        kind = split["split_type"]
        if kind == "FloatFeature":
            feature, left, right = self._number(split["float_feature_index"], split["border"])
        elif kind == "OneHotFeature":
            feature, left, right = self._category(split["cat_feature_index"], split["value"])
        elif kind == "OnlineCtr":
            yield from self._statistic(*self._statistics[number - self._first])
            return
        else:
            raise ValueError(f"The model splits on {kind}, which no rule can.")
        yield False, {feature: left}
        yield True, {feature: right}

    def _number(self, index: int, border: float) -> tuple[int, Numbers, Numbers]:
        """What is at most the border, after rounding, and what is above it."""
        column = self._numeric[index]
        missing = column["nan_value_treatment"] != "AsTrue"
        # Below the least of all float32 there are only missing values.
        lowest = border <= float(np.finfo(np.float32).min)
        cut = -np.inf if lowest else float32_cut(border)
        if border >= float(np.finfo(np.float32).max):
            cut = np.inf
        left = Numbers((), missing) if lowest else below(cut, missing=missing)
        return int(column["flat_feature_index"]), left, above(cut, missing=not missing)

    def _category(self, index: int, code: int) -> tuple[int, Categories, Categories]:
        """All categories but one, and this one."""
        feature = int(self._categorical[index]["flat_feature_index"])
        for values, known in self._atoms[index]:
            if known == code % 2**32:
                others = Categories(values.values, True, not values.missing)
                return feature, others, values
        name = self._categorical[index]["feature_id"]
        raise ValueError(
            f"X shows no row with one of the categories of {name!r} that the model asks for: pass "
            "all rows that it was trained on."
        )

    def _statistic(
        self, statistic: Mapping[str, Any], border: float
    ) -> Iterator[tuple[bool, dict[int, Any]]]:
        """Divide the categories by whether what was counted for them is above the border.

        Of several features, combinations are counted.
        """
        features: list[int] = []
        atoms: list[list[tuple[Any, int | None]]] = []
        both: list[Any]
        for element in statistic["elements"]:
            kind = element["combination_element"]
            if kind == "cat_feature_value":
                index = int(element["cat_feature_index"])
                features.append(int(self._categorical[index]["flat_feature_index"]))
                atoms.append([(v, _signed(code)) for v, code in self._atoms[index]])
                continue
            if kind == "float_feature":
                feature, *both = self._number(element["float_feature_index"], element["border"])
            else:
                feature, *both = self._category(element["cat_feature_index"], element["value"])
            features.append(feature)
            atoms.append([(both[0], 0), (both[1], 1)])
        if np.prod([float(len(some)) for some in atoms]) > _MAX_COMBINATIONS:
            raise ValueError(
                f"The model counts more than {_MAX_COMBINATIONS:,} combinations of categories. "
                f"{_FEWER}"
            )
        passes = _lookup(statistic, self._tables[statistic["identifier"]], border)
        for above_border, pieces in _pieces(
            [[v for v, _ in some] for some in atoms],
            [
                passes(codes)
                for codes in itertools.product(*([c for _, c in some] for some in atoms))
            ],
        ):
            values: dict[int, Any] | None = {}
            for feature, piece in zip(features, pieces, strict=True):
                values = None if values is None else met(values, {feature: piece})
            if values is not None:
                yield above_border, values


def _atoms(
    column: Mapping[str, Any], text: Mapping[int, str], X: Any
) -> list[tuple[Categories, int | None]]:
    """The categories of a feature with their hashes, and at last all others, without one."""
    position = int(column["flat_feature_index"])
    values = X.iloc[:, position] if hasattr(X, "iloc") else np.asarray(X, dtype=object)[:, position]
    known = map(python_value, pd.unique(pd.Series(values, dtype=object).dropna()))
    # CatBoost hashes texts, those of truth values being 0 and 1.
    shown = {str(int(v)) if isinstance(v, bool) else str(v): v for v in known}
    unknown = sorted(shown.keys() - set(text.values()))
    if unknown:
        raise ValueError(
            f"CatBoost writes values of {column['feature_id']!r} otherwise than they stand in X, "
            f"{unknown[0]!r} for one. Fit the model on texts: X[column].astype(str)."
        )
    atoms: list[tuple[Categories, int | None]] = [
        (Categories(frozenset([shown[name]]), False, False), code)
        for code, name in sorted(text.items())
        if name in shown
    ]
    return [*atoms, (Categories(frozenset(shown.values()), True, True), None)]


def _signed(code: int | None) -> int | None:
    """A hash of 32 bits as the 64 bits that CatBoost makes of it."""
    return None if code is None else (code - 2**32 if code >= 2**31 else code) % 2**64


_MIX = 0x4906BA494954CB65


def _lookup(statistic: Mapping[str, Any], table: Mapping[str, Any], border: float) -> Any:
    """Make a function that tells whether the statistic of a combination is above the border."""
    kind, stride = statistic["ctr_type"], int(table["hash_stride"])
    cells = table["hash_map"]
    counts = {int(cells[i]): cells[i + 1 : i + stride] for i in range(0, len(cells), stride)}
    numerator, denominator = (
        np.float32(statistic[f"prior_{name}"]) for name in ("numerator", "denomerator")
    )
    target = int(statistic["target_border_idx"])

    def passes(codes: Sequence[int | None]) -> bool:
        seen = None
        if None not in codes:
            mixed = 0
            for code in codes:
                assert code is not None
                mixed = _MIX * (mixed + _MIX * code) % 2**64
            seen = counts.get(mixed)
        if kind in ("Counter", "FeatureFreq"):
            good, total = (0 if seen is None else seen[0]), table["counter_denominator"]
        elif seen is None:
            good, total = 0, 0
        elif kind == "Borders":
            good, total = sum(seen[target + 1 :]), sum(seen)
        elif kind == "Buckets":
            good, total = seen[target], sum(seen)
        else:
            raise ValueError(f"The model counts {kind}, which is not read. {_FEWER}")
        share = (np.float32(good) + numerator) / (np.float32(total) + denominator)
        value = (share + np.float32(statistic["shift"])) * np.float32(statistic["scale"])
        return bool(value > np.float32(border))

    return passes


def _pieces(
    atoms: Sequence[Sequence[Any]], passed: Sequence[bool]
) -> Iterator[tuple[bool, tuple[Any, ...]]]:
    """Join combinations, which come in the order of their product, that pass or fail alike.

    The values of the first feature that go together with the same values of the others make one
    piece with these, and so on.
    """
    if not atoms:
        yield passed[0], ()
        return
    size = len(passed) // len(atoms[0])
    groups: dict[tuple[bool, ...], list[Any]] = {}
    for number, values in enumerate(atoms[0]):
        groups.setdefault(tuple(passed[number * size : (number + 1) * size]), []).append(values)
    for rest, together in groups.items():
        for answer, others in _pieces(atoms[1:], rest):
            yield answer, (_union(together), *others)


def _union(parts: Sequence[Any]) -> Any:
    """Join values of a feature that exclude each other."""
    missing = any(part.missing for part in parts)
    if isinstance(parts[0], Numbers):
        if len(parts) == 1:
            return parts[0]
        return above(-np.inf, missing=missing)  # both sides of a border
    named = frozenset().union(*(part.values for part in parts if not part.negated))
    for part in parts:
        if part.negated:
            return Categories(part.values - named, True, missing)
    return Categories(named, False, missing)


def _leaves(dump: Mapping[str, Any], features: _Features, scale: float) -> Iterator[Leaf]:
    for tree in dump.get("oblivious_trees") or []:
        splits = tree["splits"] or []
        values = np.reshape(tree["leaf_values"], (2 ** len(splits), -1))
        weights = tree.get("leaf_weights") or [None] * len(values)

        def level(node: tuple[int, int], splits: Any = splits) -> list[Branch]:
            depth, leaf = node
            if depth == len(splits):
                return []
            return [
                Branch(side, (depth + 1, leaf + (right << depth)))
                for right, side in features.sides(splits[depth])
            ]

        for (_, leaf), premises in ways_to_leaves((0, 0), level):
            for k, value in enumerate(values[leaf]):
                yield Leaf(premises, scale * float(value), k, weights[leaf])

    def branches_of(node: Mapping[str, Any]) -> list[Branch]:
        if "split" not in node:
            return []
        return [
            Branch(side, node["right" if right else "left"])
            for right, side in features.sides(node["split"])
        ]

    for tree in dump.get("trees") or []:
        for node, premises in ways_to_leaves(tree, branches_of):
            for k, value in enumerate(np.ravel(node["value"])):
                yield Leaf(premises, scale * float(value), k, node.get("weight"))
