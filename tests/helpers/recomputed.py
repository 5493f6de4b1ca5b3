"""Figures of a run of ``skescore tune``, recomputed from rows and predictions.

Rules are evaluated from their JSON text by loops over rules, without the package's matching,
metrics and scorers. The black box is fitted again, because it is the subject of the figures.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.class_weight import compute_sample_weight

from skescore.black_boxes import fit_weighted, load_black_box, make_black_box
from skescore.datasets import load_dataset
from skescore.extractors import generate_rows
from skescore.registry import make_extractor


def condition_holds(condition: dict[str, Any], X: pd.DataFrame) -> np.ndarray:
    """Return for every row whether a condition of a JSON rule holds."""
    if condition["type"] == "at_least":
        parts = [condition_holds(part, X) for part in condition["conditions"]]
        return np.sum(parts, axis=0) >= condition["m"]
    column = X.iloc[:, condition["feature"]]
    is_missing = column.isna().to_numpy()
    if condition["type"] == "missing":
        return is_missing != condition["negated"]
    if condition["type"] == "one_of":
        is_member = np.array([value in condition["values"] for value in column])
        holds = is_member != condition["negated"]
    else:
        values = column.to_numpy(float, na_value=np.nan)
        lower, upper = condition.get("lower", -math.inf), condition.get("upper", math.inf)
        above = values >= lower if condition.get("lower_closed") else values > lower
        below = values <= upper if condition.get("upper_closed") else values < upper
        holds = (above | (lower == -math.inf)) & (below | (upper == math.inf))
    return np.where(is_missing, condition.get("missing", False), holds)


def rule_of_rows(rules: dict[str, Any], X: pd.DataFrame) -> np.ndarray:
    """Return the index of the rule that predicts each row; -1 for none."""
    order = range(len(rules["rules"]))
    if not (rules["ordered"] or rules["disjoint"]):
        order = sorted(order, key=lambda k: _priority(rules, k))
    result = np.full(len(X), -1)
    for k in order:
        holds = np.ones(len(X), dtype=bool)
        for condition in rules["rules"][k]["if"]:
            holds &= condition_holds(condition, X)
        result[holds & (result < 0)] = k
    return result


def _priority(rules: dict[str, Any], k: int) -> tuple[float, float]:
    rule = rules["rules"][k]
    counts = rule["statistics"]["class_counts"]
    own = counts[rules["classes"].index(rule["then"])]
    return -own / max(sum(counts), 1e-300), -rule["statistics"]["n_rows"]


def predict(rules: dict[str, Any], X: pd.DataFrame) -> np.ndarray:
    """Return the prediction of JSON rules for every row."""
    assigned = rule_of_rows(rules, X)
    predictions = [rules["fallback"]["output"]] * len(X)
    for row, k in enumerate(assigned.tolist()):
        if k >= 0:
            predictions[row] = _output(rules["rules"][k]["then"], X.iloc[row])
    return np.array(predictions)


def _output(then: Any, row: pd.Series) -> Any:
    if not isinstance(then, dict):
        return then
    return then["intercept"] + sum(slope * row.iloc[j] for j, slope in then["terms"])


def share_equal(one: Any, other: Any, weights: np.ndarray) -> float:
    """Return the weighted share of equal labels."""
    return float(np.average([a == b for a, b in zip(one, other, strict=True)], weights=weights))


def explained(truth: Any, predicted: Any, weights: np.ndarray) -> float:
    """Return R²."""
    truth, predicted = np.asarray(truth, float), np.asarray(predicted, float)
    around = np.average((truth - np.average(truth, weights=weights)) ** 2, weights=weights)
    return float(1 - np.average((truth - predicted) ** 2, weights=weights) / around)


def weighted_f1(truth: Any, predicted: Any, weights: np.ndarray) -> float:
    """Return the mean F1 of the classes, by their weight."""
    truth, predicted, total = np.asarray(truth), np.asarray(predicted), 0.0
    for label in np.unique(truth):
        hit = weights[(truth == label) & (predicted == label)].sum()
        both = weights[truth == label].sum() + weights[predicted == label].sum()
        total += weights[truth == label].sum() * (2 * hit / both if both else 0.0)
    return total / weights.sum()


def balanced_accuracy(truth: Any, predicted: Any, weights: np.ndarray) -> float:
    """Return the mean share of rows of each class that are predicted as such."""
    truth, predicted = np.asarray(truth), np.asarray(predicted)
    classes = [truth == label for label in np.unique(truth)]
    return float(
        np.mean([share_equal(truth[own], predicted[own], weights[own]) for own in classes])
    )


def sampled_volume(rules: dict[str, Any], n_points: int = 4000) -> float:
    """Estimate the share of the domain that rules cover, by uniform points."""
    random, domain = np.random.default_rng(0), rules["domain"]
    categories = dict(map(tuple, domain.get("categories", [])))
    columns = {
        name: random.choice(np.array(categories[j], dtype=object), n_points)
        if j in categories
        else random.uniform(domain["lower"][j], domain["upper"][j], n_points)
        for j, name in enumerate(rules["feature_names"])
    }
    return float(np.mean(rule_of_rows(rules, pd.DataFrame(columns)) >= 0))


def generated_rows(X: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the rows on which a given model is queried instead of held-out rows."""
    kinds = ("permute", "permute-near")
    parts = [generate_rows(X, 1000, sampling=kind, random_state=seed) for kind in kinds]
    return pd.concat(parts, ignore_index=True)


def ice(performance: float, n_rules: int, completeness: float) -> float:
    """Return ICE with the default weights, as in its paper."""
    losses = 1 + math.exp(5 * (1 - performance) - 5)
    return completeness / (losses * (1 + math.exp(0.3 * n_rules - 5)))


def fire(loss: float, n_rules: int) -> float:
    """Return FiRe with the default weight, as in its paper."""
    return loss * n_rules * n_rules**0.05


def paired_shares(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the change of a share, from quantiles of beta distributions."""

    def limits(hits: int, trials: int, error: float) -> tuple[float, float]:
        low = stats.beta.ppf(error / 2, hits, trials - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - error / 2, hits + 1, trials - hits) if hits < trials else 1.0
        return low, high

    gained, changed = int((after & ~before).sum()), int((after != before).sum())
    share = limits(changed, len(before), 0.01)
    direction = limits(gained, changed, 0.04) if changed else (0.0, 1.0)
    ends = [d * (2 * p - 1) for d in share for p in direction]
    return min(ends), max(ends)


def paired_means(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the change of a mean."""
    differences = after - before
    half = stats.t.ppf(0.975, len(before) - 1) * stats.sem(differences)
    return differences.mean() - half, differences.mean() + half


def benjamini_hochberg(p_values: list[float]) -> list[float]:
    """Return p-values that are corrected for false discoveries; NaN is no test."""
    tested = sorted(p for p in p_values if not math.isnan(p))
    corrected = [p * len(tested) / rank for rank, p in enumerate(tested, 1)]
    return [p if math.isnan(p) else min(corrected[tested.index(p) :]) for p in p_values]


class Run:
    """A folder of ``skescore tune --output`` with its rows and black box."""

    def __init__(self, folder: Path, source: str, **reading: Any) -> None:
        self.record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.rules = json.loads((folder / "rules.json").read_text(encoding="utf-8"))
        self.board = pd.read_csv(folder / "leaderboard.csv")
        candidates = json.loads((folder / "candidates.json").read_text(encoding="utf-8"))
        self.extractor_seed = candidates["extractor_seed"]
        about, search = self.record["data"], self.record["search"]
        self.data = load_dataset(source, target=about["target"], task=about["task"], **reading)
        self.X, self.y = self.data.X, self.data.y.to_numpy()
        self.is_classification = about["task"] == "classification"
        self.trained_here = self.record["black_box"]["trained_here"]
        self.weights = np.ones(len(self.y))
        if search["class_weight"] is not None:
            self.weights = compute_sample_weight(search["class_weight"], self.y)
        self.is_weighted = search["class_weight"] is not None
        #: The rows of --test, if the search has some.
        self.test: Run | None = None

    def fit(self, rows: np.ndarray) -> Any:
        """Return the black box fitted on some rows, or the model of a file."""
        name = self.record["black_box"]["name"]
        if not self.trained_here:
            return load_black_box(name, trust=True)
        model = make_black_box(
            name,
            self.record["data"]["task"],
            self.record["search"]["seed"],
            self.data.categories,
        )
        weights = self.weights[rows] if self.is_weighted else None
        return fit_weighted(model, self.X.iloc[rows], self.data.y.iloc[rows], weights)

    @cached_property
    def model(self) -> Any:
        """The black box of all rows."""
        return self.fit(np.arange(len(self.y)))

    @cached_property
    def answers(self) -> np.ndarray:
        """Predictions of the black box for all rows."""
        return np.asarray(self.model.predict(self.X))

    @cached_property
    def folds(self) -> list[tuple[np.ndarray, np.ndarray, Any]]:
        """Training rows, held-out rows and black box of each fold."""
        splits = self.splitter.split(self.X, self.y)
        return [(train, test, self.fit(train)) for train, test in splits]

    @property
    def splitter(self) -> StratifiedKFold | KFold:
        """The splitter of the search."""
        search = self.record["search"]
        kind = StratifiedKFold if self.is_classification else KFold
        return kind(search["cv"], shuffle=True, random_state=search["seed"])

    def agreement(self, truth: Any, predicted: Any, weights: np.ndarray) -> float:
        """Return accuracy or R²."""
        return (share_equal if self.is_classification else explained)(truth, predicted, weights)

    def held_out(self, extractor: str, params: dict[str, Any]) -> dict[str, float]:
        """Return means over the folds for rules that are extracted again."""
        figures = self.on_folds(extractor, params)
        return {name: float(np.mean(values)) for name, values in figures.items()}

    def on_folds(self, extractor: str, params: dict[str, Any]) -> dict[str, list[float]]:
        """Return the figures of each fold for rules that are extracted again."""
        figures: dict[str, list[float]] = {}
        for seed, (train, test, model) in enumerate(self.folds):
            rules = self._extract(extractor, params, train, model)
            measured = self._on_fold(rules, test, model, seed)
            for name, value in measured.items():
                figures.setdefault(name, []).append(float(value))
        return figures

    def _extract(
        self, extractor: str, params: dict[str, Any], train: np.ndarray, model: Any
    ) -> dict[str, Any]:
        """Return the JSON rules that an extractor makes from the training rows of a fold."""
        made = make_extractor(extractor, FrozenEstimator(model)).set_params(**params)
        if "random_state" in made.get_params(deep=False):
            made.set_params(random_state=self.extractor_seed)
        if self.record["search"]["features"]:
            made.set_params(features=self.record["search"]["features"])
        options = {"sample_weight": self.weights[train]} if self.is_weighted else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the search has reported them
            rules = made.fit(self.X.iloc[train], **options).rules_
        result: dict[str, Any] = json.loads(rules.to_json())
        return result

    def _on_fold(
        self, rules: dict[str, Any], test: np.ndarray, model: Any, seed: int
    ) -> dict[str, float]:
        """Measure rules on the held-out rows of a fold, and on generated ones for a given model."""
        X, y, weights = self.X.iloc[test], self.y[test], self.weights[test]
        predicted = predict(rules, X)
        measured = {
            "correctness": self.agreement(y, predicted, weights),
            "n_rules": len(rules["rules"]),
            "completeness_volume": sampled_volume(rules),
        }
        if not self.is_classification:
            measured["error"] = np.mean(np.abs(y - predicted))
            measured["explained"] = explained(y, predicted, weights)
        by_model, truth = self.record["search"]["reference"] == "black-box", y
        unseen, unseen_weights = X, weights
        if not self.trained_here:
            unseen = generated_rows(X, seed)
            unseen_weights = np.ones(len(unseen))
        answers, answered = np.asarray(model.predict(unseen)), predict(rules, unseen)
        measured["fidelity"] = self.agreement(answers, answered, unseen_weights)
        if not self.is_classification:
            measured["model_error"] = np.mean(np.abs(answers - answered))
        if by_model:
            X, truth, predicted, weights = unseen, answers, answered, unseen_weights
        covered = rule_of_rows(rules, X) >= 0
        measured["completeness_instances"] = np.average(covered, weights=weights)
        measured["performance"] = self.performance(
            truth[covered], predicted[covered], weights[covered]
        )
        measured["loss"] = self.loss(truth, predicted, covered, weights)
        volume, n_rules = measured["completeness_volume"], len(rules["rules"])
        measured["score"] = ice(measured["performance"], n_rules, volume)
        return measured

    def performance(self, truth: Any, predicted: Any, weights: np.ndarray) -> float:
        """Return the metric that the search scores."""
        if not self.is_classification:
            return explained(truth, predicted, weights)
        name = self.record["search"]["performance"]
        if name == "balanced_accuracy":
            return balanced_accuracy(truth, predicted, weights)
        assert name is None
        return weighted_f1(truth, predicted, weights)

    def loss(self, truth: Any, predicted: Any, covered: np.ndarray, weights: np.ndarray) -> float:
        """Return the share of rows that no rule predicts rightly, or the mean error."""
        if self.is_classification:
            return 1 - float(np.average((truth == predicted) & covered, weights=weights))
        return float(np.average(np.abs(truth - predicted), weights=weights))

    def rule_measures(self) -> list[dict[str, float]]:
        """Measure each rule against the data: by the rows that it decides in a list, else by all.

        Rows of its class are positive, or numbers within a standard deviation of its output.
        """
        rules, y = self.rules["rules"], self.y
        holds = self.holding()
        assigned, result = rule_of_rows(self.rules, self.X), []
        for k, rule in enumerate(rules):
            own = assigned == k if self.rules["ordered"] else holds[k]
            if self.is_classification:
                positive, p_value = y == rule["then"], math.nan
            else:
                said = [_output(rule["then"], row) for _, row in self.X.iterrows()]
                deviation = np.std(y[own]) if own.any() else -1.0
                noise = 1e-9 * np.abs(said)
                positive = np.abs(y - np.array(said)) <= deviation + noise
                free = int(own.sum()) - 1
                ratio = free * deviation**2 / np.var(y, ddof=1)
                p_value = float(stats.chi2.cdf(ratio, free)) if free > 0 else math.nan
            p, n = int((positive & own).sum()), int((~positive & own).sum())
            P, N = int(positive.sum()), int((~positive).sum())
            if self.is_classification:
                p_value = float(stats.hypergeom.sf(p - 1, P + N, P, p + n))
            alone = holds[k] & (holds.sum(axis=0) == 1)
            precision, coverage = (p / (p + n) if p + n else math.nan), (p / P if P else math.nan)
            coleman = ((P + N) * precision - P) / N if N else math.nan
            result.append(
                {"p": p, "rows": p + n, "precision": precision, "coverage": coverage}
                | {"p_value": p_value, "c2": coleman * (1 + coverage) / 2}
                | {"holds": int(holds[k].sum()), "unique_rows": int(alone.sum())}
            )
        corrected = benjamini_hochberg([one["p_value"] for one in result])
        return [one | {"fdr": value} for one, value in zip(result, corrected, strict=True)]

    def holding(self) -> np.ndarray:
        """Return for every rule the rows for which it holds."""
        every = np.ones(len(self.X), dtype=bool)
        return np.array(
            [
                np.all([every, *(condition_holds(c, self.X) for c in rule["if"])], axis=0)
                for rule in self.rules["rules"]
            ]
        )

    def black_box_quality(self) -> dict[str, float]:
        """Return what the black box gets right: on held-out rows, or on all rows."""
        folds = self.folds
        if not self.trained_here:
            folds = [(np.arange(0), test, model) for _, test, model in folds]
        quality: dict[str, list[float]] = {}
        for _, test, model in folds:
            predicted, weights = np.asarray(model.predict(self.X.iloc[test])), self.weights[test]
            if self.is_classification:
                quality.setdefault("accuracy", []).append(
                    share_equal(self.y[test], predicted, weights)
                )
                quality.setdefault("weighted F1", []).append(
                    weighted_f1(self.y[test], predicted, weights)
                )
            else:
                quality.setdefault("R²", []).append(explained(self.y[test], predicted, weights))
        return {name: float(np.mean(values)) for name, values in quality.items()}

    def statistics(self, rules: dict[str, Any]) -> list[dict[str, float]]:
        """Count the training rows of each rule by their weights."""
        assigned, predicted = rule_of_rows(rules, self.X), predict(rules, self.X)
        result = []
        for k in range(len(rules["rules"])):
            own = assigned == k
            weights = self.weights[own]
            figures: dict[str, float] = {"rows": float(weights.sum())}
            if self.is_classification:
                figures["right"] = share_equal(self.y[own], predicted[own], weights)
                figures["agree"] = share_equal(self.answers[own], predicted[own], weights)
            else:
                for name, truth in (("target_error", self.y), ("model_error", self.answers)):
                    errors = np.abs(truth[own] - predicted[own])
                    figures[name] = float(np.average(errors, weights=weights))
            result.append(figures)
        return result


def is_rounded(text: str, value: float) -> bool:
    """Return whether a printed number is a value, rounded to the digits that it has."""
    text = text.strip().rstrip(".")
    if text.startswith((">", "<")):
        bound = float(text[1:])
        return value > bound if text[0] == ">" else 0 < value < bound
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    return abs(float(text) - value) <= 0.5000001 * 10.0**-decimals + 1e-9 * abs(value)


#: Numbers in a text, with their sign.
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
