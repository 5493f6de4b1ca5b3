"""Compare first candidates of a search, and rules for choosing the winner, by held-out scores.

    python benchmarks/quality/choosing.py [--data wine moons] [--seeds 100 101]

Measures several settings of every extractor on splits that `tuners.py` does not use, and on five
further data sets: on the folds of one half, on all rows of this half, and on the other half. The
first table shows the distance of each setting from the best on the other half, in units of the
distance between the best and the median. The second table compares rules for choosing the winner.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import (
    load_diabetes,
    load_digits,
    make_classification,
    make_friedman2,
    make_moons,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from tuners_data import DATA, SCORES, WEIGHTS, Problem, make_problem, make_scorer
from tuners_ours import make_splitter

from skescore.extractors import CachedBlackBox
from skescore.registry import make_extractor
from skescore.tuning import (
    Candidate,
    Candidates,
    Fold,
    FoldResult,
    choose_winner,
    estimate_632,
    evaluate_on_fold,
    make_folds,
)

OTHER_DATA = ("diabetes", "friedman2", "digits", "classification", "moons")
#: Rules for choosing: the criterion, and the number of standard errors that count as equal.
CHOICE_RULES = [
    (criterion, errors)
    for criterion in ("held-out rows", "weighted scores", "weighted measurements")
    for errors in (0.0, 0.5, 1.0)
]
#: Larger distances are clipped to this value.
_MAX_DISTANCE = 3.0


class MeasuredSetting(NamedTuple):
    """Setting of an extractor, its candidate, and its scores on the other half."""

    setting: str
    candidate: Candidate
    held_out: dict[str, float]


def load_problem(data: str, seed: int) -> Problem:
    if data in DATA:
        return make_problem(data, seed)
    model: Any = RandomForestRegressor(50, random_state=0)
    if data == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    elif data == "friedman2":
        X, y = make_friedman2(600, noise=50, random_state=0)
    elif data == "digits":
        X, y = load_digits(return_X_y=True)
        has_similar_digit = np.isin(y, [3, 5, 8])
        X, y, model = (
            X[has_similar_digit],
            y[has_similar_digit].astype(str),
            RandomForestClassifier(50, random_state=0),
        )
    elif data == "classification":
        X, y = make_classification(500, 10, n_informative=5, n_classes=3, random_state=1)
        network = MLPClassifier((20,), max_iter=500, random_state=0)
        y, model = y.astype(str), make_pipeline(StandardScaler(), network)
    else:
        X, y = make_moons(400, noise=0.25, random_state=0)
        y, model = y.astype(str), KNeighborsClassifier(9)
    task = "regression" if data in ("diabetes", "friedman2") else "classification"
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y if task == "classification" else None
    )
    return Problem(model.fit(X_train, y_train), X_train, y_train, X_test, y_test, task)


def list_settings(task: str, y: np.ndarray) -> dict[str, dict[str, dict[str, Any]]]:
    """Return settings by extractor and name; n is the number of classes, or two in regression."""
    classifies = task == "classification"
    n, unit = (len(np.unique(y)), 1.0) if classifies else (2, float(np.std(y)))
    spread = 0.1 if classifies else 0.5 * unit
    settings: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for text, leaves, depth in (
        ("2", 2, 4),
        ("n", n, 4),
        ("n + 1", n + 1, 4),
        ("n + 3", n + 3, 4),
        ("8", 8, 3),
        ("16", 16, 6),
    ):
        settings["cart"][f"{text} leaves"] = {"max_leaf_nodes": leaves, "max_depth": depth}
    for text, slices, share, depth in (
        ("one feature in n", n, 0.99, 1),
        ("one feature in 2n", 2 * n, 0.99, 1),
        ("one feature in 8", 8, 0.99, 1),
        ("some features in 2", 2, 0.6, 2),
        ("all features in 2", 2, 0.0, 2),
    ):
        grid = {"n_slices": slices, "importance_threshold": share, "depth": depth}
        settings["gridex"][text] = grid | {"threshold": spread}
        if not classifies:
            settings["gridrex"][text] = grid | {"threshold": 0.25 * unit}
    for text, step, examples in (("steps of .2", 0.2, 100), ("steps of .1", 0.1, 250)):
        settings["iter"][text] = {
            "min_update": step,
            "min_examples": examples,
            "threshold": 0.3 if classifies else spread,
        }
    for name in ("cream", "exact"):
        for depth, components in ((1, 2), (2, 2), (3, 2), (2, 5)):
            clusters = {
                "depth": depth,
                "gauss_components": components,
                "error_threshold": 0.1 * unit,
            }
            for output in ("constant",) if classifies else ("constant", "linear"):
                text = f"{output}, depth {depth}, {components} components"
                settings[name][text] = clusters | ({} if classifies else {"output": output})
    if not classifies:
        return settings
    for text, rules, precision, tolerance, prune in (
        ("n + 3 rules", n + 3, 0.95, 0.01, "ice"),
        ("n rules", n, 0.95, 0.01, "ice"),
        ("n + 3 rough rules", n + 3, 0.85, 0.05, "ice"),
        ("50 rules", 50, 0.95, 0.01, "ice"),
        ("50 rules, not pruned", 50, 0.95, 0.01, None),
    ):
        settings["real"][text] = {
            "max_rules": rules,
            "min_precision": precision,
            "tolerance": tolerance,
            "prune": prune,
        }
    for text, leaves, literals, sample in (
        ("n leaves, 4 literals", n, 4, 200),
        ("n leaves, 2 literals", n, 2, 200),
        ("n leaves, 1 literal", n, 1, 200),
        ("n leaves, 4 literals, large sample", n, 4, 1000),
        ("n + 1 leaves, 4 literals", n + 1, 4, 200),
        ("n + 3 leaves, 1 literal", n + 3, 1, 200),
        ("16 leaves, 4 literals, large sample", 16, 4, 1000),
    ):
        settings["trepan"][text] = {
            "max_leaf_nodes": leaves,
            "max_literals": literals,
            "min_sample": sample,
        }
    return settings


def measure_settings(data: str, seed: int) -> list[MeasuredSetting]:
    problem = load_problem(data, seed)
    model = CachedBlackBox(clone(problem.model).fit(problem.X_train, problem.y_train))
    folds = make_folds(
        clone(problem.model),
        problem.X_train,
        problem.y_train,
        make_splitter(problem, seed),
        problem.task,
        fitted=False,
    )
    scorers = {score: make_scorer(score) for score in SCORES}
    all_rows, other_half = (
        Fold(model, problem.X_train, X, y, np.arange(len(y)))
        for X, y in ((problem.X_train, problem.y_train), (problem.X_test, problem.y_test))
    )
    measured = []
    for name, settings in list_settings(problem.task, problem.y_train).items():
        for text, params in settings.items():
            extractor = make_extractor(name, clone(problem.model), **params)
            if "random_state" in extractor.get_params(deep=False):
                extractor.set_params(random_state=seed)
            measurements = [
                evaluate_on_fold(extractor, fold, scorers[SCORES[0]], scorers)
                for fold in (*folds, all_rows, other_half)
            ]
            if not all(np.isfinite(result[score]) for result in measurements for score in SCORES):
                continue  # the rules of a fold cover no row
            candidate = Candidate(
                name, params, len(measured), tuple(measurements[:-2]), measurements[-2]
            )
            measured.append(MeasuredSetting(f"{name}: {text}", candidate, measurements[-1]))
    return measured


def distances_from_best(measured: list[MeasuredSetting], score: str) -> np.ndarray:
    """Return the distance of each setting from the best on the other half; the median has 1."""
    values = np.array([one.held_out[score] for one in measured])
    unit = values.max() - np.median(values)
    return np.minimum((values.max() - values) / max(unit, 1e-9), _MAX_DISTANCE)


def choose_index(measured: list[MeasuredSetting], score: str, criterion: str, errors: float) -> int:
    """Return the index of the setting that a search would choose."""
    candidates = Candidates(candidate.candidate for candidate in measured)
    kind = "fire" if score.startswith("fire") else "ice"
    sign = -1 if kind == "fire" else 1
    values = sign * candidates.scores(kind, **WEIGHTS[score])
    size, n_queries = candidates.means("size"), candidates.means("black_box_rows")
    order = np.lexsort([size, -values.mean(axis=1)])
    if criterion == "weighted scores":
        on_all_rows = Candidates(
            replace(candidate, folds=(candidate.all_rows or FoldResult({}),))
            for candidate in candidates
        ).scores(kind, **WEIGHTS[score])
        values = estimate_632(values, sign * on_all_rows)
    elif criterion == "weighted measurements":
        values = sign * candidates.scores_with_all_rows(kind, **WEIGHTS[score])
    return int(order[choose_winner(values[order], size[order], n_queries[order], errors)])


def print_table(rows: dict[str, dict[str, list[float]]], data: list[str], title: str) -> None:
    print(f"\n| {title} | {' | '.join(data)} | mean |")
    print("| :-- |" + " --: |" * (len(data) + 1))
    for name, row in rows.items():
        means = {d: float(np.mean(row[d])) for d in data if d in row}
        cells = [f"{means[d]:.2f}" if d in means else "-" for d in data]
        print(f"| {name} | {' | '.join(cells)} | {np.mean(list(means.values())):.2f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", nargs="+", choices=(*DATA, *OTHER_DATA), default=[*DATA, *OTHER_DATA]
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[100, 101, 102, 103])
    options = parser.parse_args()
    settings: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    distances_by_rule: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some settings do not suit all data
        for data in options.data:
            for seed in options.seeds:
                print(f"{data} {seed}", file=sys.stderr)
                measured = measure_settings(data, seed)
                for score in SCORES:
                    distances = distances_from_best(measured, score)
                    for item, value in zip(measured, distances, strict=True):
                        settings[item.setting][data].append(float(value))
                    for criterion, errors in CHOICE_RULES:
                        index = choose_index(measured, score, criterion, errors)
                        distances_by_rule[f"{criterion}, {errors:g} standard errors"][data].append(
                            distances[index]
                        )
    ordered = sorted(
        settings.items(),
        key=lambda pair: (
            pair[0].split(":")[0],
            np.mean([np.mean(values) for values in pair[1].values()]),
        ),
    )
    print_table(dict(ordered), options.data, "setting")
    print_table(distances_by_rule, options.data, "chosen by")
    return 0


if __name__ == "__main__":
    sys.exit(main())
