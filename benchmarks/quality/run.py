"""Compare the fidelity of our extractors with recorded results of PSyKE 1.0.4.

    python benchmarks/quality/run.py [--data iris wine] [--extractors cart iter]
        [--csv quality.csv]

Prints Markdown tables. Every extractor has the same parameters as in PSyKE. It is fitted on one
half of the data and scored on the other half. The verdict compares means over the splits for which
PSyKE's results are recorded (`psyke_records.json`). The last columns are means over ten splits.
Regression uses one split; for randomized extractors, both libraries take the mean over five seeds.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
import warnings
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

#: Smaller differences count as equal.
TOLERANCE = 0.005
#: Number of seeds of a randomized extractor on data with one split.
N_SEEDS = 5
CLASSES = {"iris": load_iris, "wine": load_wine, "wbc": load_breast_cancer}
REGRESSION = ("friedman5", "friedman10", "calif")
#: Measurements of both libraries.
MEASURES = ("n_rules", "fidelity", "truth", "coverage", "seconds")
TITLES = {
    "iris": "iris, nearest neighbors (9)",
    "wine": "wine, decision tree",
    "wbc": "breast_cancer, decision tree",
    "friedman5": "friedman1 with 5 features, random forest",
    "friedman10": "friedman1 with 10 features, random forest",
    "calif": "synthetic regression with 8 features, random forest",
}
LOCATIONS = {
    "cart": "skescore.extractors:CARTExtractor",
    "gridex": "skescore.extractors.gridex:GridExExtractor",
    "gridrex": "skescore.extractors.gridex:GridRExExtractor",
    "iter": "skescore.extractors.iter:ITERExtractor",
    "cream": "skescore.extractors.cream:CREAMExtractor",
    "exact": "skescore.extractors.cream:ExACTExtractor",
    "trepan": "skescore.extractors.trepan:TrepanExtractor",
    "real": "skescore.extractors.real:REALExtractor",
}


class Setting(NamedTuple):
    """Extractor with parameters, and the label of PSyKE's record of the same setting, if any."""

    extractor: str
    parameters: dict[str, Any]
    label: str = ""

    @property
    def description(self) -> str:
        hidden = ("random_state",)
        options = ", ".join(f"{k}={v}" for k, v in self.parameters.items() if k not in hidden)
        return f"{self.extractor}({options})"


def cart(depth: int, leaves: int) -> Setting:
    return Setting(
        "cart",
        {"max_depth": depth, "max_leaf_nodes": leaves, "random_state": 123},
        f"CART(depth{depth},leaves{leaves})",
    )


def grid(
    extractor: str,
    label: str,
    slices: int,
    share: float | None,
    depth: int,
    threshold: float,
    min_examples: int = 1,
) -> Setting:
    parameters: dict[str, Any] = {
        "n_slices": slices,
        "importance_threshold": share,
        "depth": depth,
        "threshold": threshold,
    }
    if min_examples > 1:
        parameters |= {"min_examples": min_examples, "random_state": 0}
    return Setting(extractor, parameters, label)


def boxes_by_growth(label: str, step: float, min_examples: int, threshold: float) -> Setting:
    return Setting(
        "iter",
        {
            "min_update": step,
            "n_points": 1,
            "max_iterations": 600,
            "min_examples": min_examples,
            "threshold": threshold,
            "random_state": 0,
        },
        label,
    )


def clusters(depth: int, components: int, label: str, **options: Any) -> list[Setting]:
    parameters = {
        "depth": depth,
        "error_threshold": 0.1,
        "gauss_components": components,
        **options,
        "random_state": 0,
    }
    return [Setting(name, parameters, label.format(name)) for name in ("cream", "exact")]


def settings_for(dataset: str) -> list[Setting]:
    if dataset == "iris":
        return [
            cart(3, 3),
            grid("gridex", "GridEx it1 fixed2 me1 t.1", 2, None, 1, 0.1),
            grid("gridex", "GridEx it1 top1x8 me1 t.1", 8, 0.99, 1, 0.1),
            grid("gridex", "GridEx it2 top1x2 me1 t.1", 2, 0.99, 2, 0.1),
            grid("gridex", "GridEx it2 top2x4 me1 t.1", 4, 0.5, 2, 0.1),
            boxes_by_growth("ITER(.07,1,600,75,.1)", 0.07, 75, 0.1),
            *clusters(2, 2, "{} d2 t.1 g2 4f"),
            *clusters(2, 2, "{} d2 t.1 g2 2f", ignore_threshold=0.5),
            *clusters(2, 5, "{} d2 t.1 g5"),
            *trees_and_rules(3),
        ]
    if dataset in CLASSES:
        iter_label, rows = {
            "wine": ("ITER(.1,1,600,me100,.1)", 100),
            "wbc": ("ITER(.1,1,600,me25,.1)", 25),
        }[dataset]
        return [
            cart(3, 3),
            grid("gridex", "GridEx it1 (.75,2) me1 t.1", 2, 0.75, 1, 0.1),
            grid("gridex", "GridEx it1 top1x3 me1 t.1", 3, 0.99, 1, 0.1),
            grid("gridex", "GridEx it2 (.5,2) me1 t.1", 2, 0.5, 2, 0.1),
            boxes_by_growth(iter_label, 0.1, rows, 0.1),
            *clusters(2, 2, "{} d2 t.1 g2"),
            *clusters(3, 5, "{} d3 t.1 g5"),
            *trees_and_rules(4),
        ]
    threshold = 0.2 if dataset == "calif" else 1.0
    return [
        cart(3, 3),
        cart(5, 16),
        grid("gridex", "GridEx it1 (.5,2) me1 t1", 2, 0.5, 1, threshold),
        grid("gridex", "GridEx it2 (.5,2) me25 t1", 2, 0.5, 2, threshold, 25),
        grid("gridrex", "GridREx it1 (.5,2) me1 t1", 2, 0.5, 1, threshold),
        grid("gridrex", "GridREx it2 (.5,2) me25 t1", 2, 0.5, 2, threshold, 25),
        boxes_by_growth("ITER(.1,1,600,50,thr1)", 0.1, 50, threshold),
        *clusters(3, 2, "{} d3 t.1 g2 const", output="constant"),
        *clusters(3, 2, "{} d3 t.1 g2 linear", output="linear"),
    ]


def trees_and_rules(leaves: int) -> list[Setting]:
    """Return settings of Trepan and REAL; PSyKE needs discretized columns, so none are recorded."""
    return [
        Setting("trepan", {"max_leaf_nodes": leaves, "random_state": 0}),
        Setting("real", {}),
    ]


# --- data and black boxes ------------------------------------------------------------------------


def synthetic() -> tuple[np.ndarray, np.ndarray]:
    """Return noisy data in the unit cube of 8 features: a slope, a bump and a corner."""
    random = np.random.RandomState(0)
    a = random.uniform(size=(2000, 8))
    bump = np.exp(-((a[:, 6] - 0.3) ** 2 + (a[:, 7] - 0.6) ** 2) / 0.05)
    corner = 0.5 * (a[:, 6] > 0.7) * (a[:, 7] < 0.4)
    slope = 2 * a[:, 0] + 0.3 * a[:, 1] - 0.4 * a[:, 5] ** 2
    return a, slope + bump + corner + 0.1 * random.normal(size=2000)


class Split(NamedTuple):
    """Fitted black box, training rows, test rows with labels, and test predictions."""

    black_box: Any
    X_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    predictions: np.ndarray


@cache
def split(dataset: str, seed: int) -> Split:
    if dataset in CLASSES:
        data = CLASSES[dataset]()
        X, y = data.data, data.target_names[data.target].astype(str)
        model = KNeighborsClassifier(9) if dataset == "iris" else None
        model = model or DecisionTreeClassifier(random_state=0)
    else:
        n_features = dataset.removeprefix("friedman")
        X, y = (
            synthetic()
            if dataset == "calif"
            else make_friedman1(1000, int(n_features), noise=0.5, random_state=0)
        )
        model = RandomForestRegressor(50, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y if dataset in CLASSES else None
    )
    model.fit(X_train, y_train)
    return Split(FrozenEstimator(model), X_train, X_test, y_test, model.predict(X_test))


#: Limits that PSyKE's extractors do not have.
_ALL_FEATURES: dict[str, Any] = {"n_features_to_select": None}
UNLIMITED: dict[str, dict[str, Any]] = {
    "gridex": _ALL_FEATURES | {"max_rules": None},
    "gridrex": _ALL_FEATURES | {"max_rules": None, "max_terms": None},
    "iter": _ALL_FEATURES | {"max_rules": None},
    "cream": _ALL_FEATURES | {"max_terms": None},
    "exact": _ALL_FEATURES | {"max_terms": None},
}


# --- measuring -----------------------------------------------------------------------------------


def measure(setting: Setting, extractor_class: Any, dataset: str, seed: int) -> dict[str, float]:
    data = split(dataset, seed)
    parameters = UNLIMITED.get(setting.extractor, {}) | setting.parameters
    extractor = extractor_class(data.black_box, **parameters)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        extractor.fit(data.X_train)
    seconds = time.perf_counter() - start
    predictions, is_covered = extractor.predict(data.X_test), extractor.covers(data.X_test)
    measurements = {
        "seconds": seconds,
        "n_rules": extractor.n_rules_,
        "coverage": is_covered.mean(),
    }
    if dataset in CLASSES:
        return measurements | {
            "fidelity": np.mean(is_covered & (predictions == data.predictions)),
            "truth": weighted_f1(data.y_test[is_covered], predictions[is_covered]),
            "score_black_box": weighted_f1(data.predictions, predictions),
            "score_truth": weighted_f1(data.y_test, predictions),
        }
    return measurements | {
        "fidelity": r2_score(data.predictions[is_covered], predictions[is_covered]),
        "truth": r2_score(data.y_test[is_covered], predictions[is_covered]),
        "score_black_box": r2_score(data.predictions, predictions),
        "score_truth": r2_score(data.y_test, predictions),
    }


def measure_mean(
    setting: Setting, extractor_class: Any, dataset: str, seed: int
) -> dict[str, float]:
    """Measure an extractor; take the mean over seeds if it is randomized and there is one split."""
    if dataset in CLASSES or setting.parameters.get("random_state") != 0:
        return measure(setting, extractor_class, dataset, seed)
    measurements = [
        measure(
            setting._replace(parameters=setting.parameters | {"random_state": random_state}),
            extractor_class,
            dataset,
            seed,
        )
        for random_state in range(N_SEEDS)
    ]
    return {key: mean(measurements, key) for key in measurements[0]}


def weighted_f1(truth: Any, predictions: Any) -> float:
    return f1_score(truth, predictions, average="weighted", zero_division=0)


def mean(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def load_records() -> dict[tuple[str, str, bool], dict[int, dict[str, Any]]]:
    """Return PSyKE's results by data set, label and scaling, then by split (means over seeds)."""
    content = json.loads(Path(__file__).with_name("psyke_records.json").read_text(encoding="utf-8"))
    runs: dict[tuple[str, str, bool, int], list[dict[str, Any]]] = defaultdict(list)
    for values in content["rows"]:
        run = dict(zip(content["columns"], values, strict=True))
        runs[run["dataset"], run["extractor"], run["scaled"], run["seed"]].append(run)
    records: dict[tuple[str, str, bool], dict[int, dict[str, Any]]] = defaultdict(dict)
    for (dataset, label, scaled, split_seed), split_runs in runs.items():
        failed_runs = [run for run in split_runs if run["error"]]
        means = (
            failed_runs[0]
            if failed_runs
            else {key: mean(split_runs, key) for key in MEASURES} | {"error": None}
        )
        records[dataset, label, scaled][split_seed] = means
    return records


def verdict(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> str:
    """Return whether the fidelity is no worse, and the difference in the number of rules."""
    fewer = mean(theirs, "n_rules") - mean(ours, "n_rules")
    better = mean(ours, "fidelity") - mean(theirs, "fidelity")
    rules = (
        "" if abs(fewer) < 0.05 else f", {abs(fewer):.1f} rules {'fewer' if fewer > 0 else 'more'}"
    )
    if abs(better) < TOLERANCE:
        return "yes: equal" + rules
    return ("yes: better" if better > 0 else "NO: worse") + rules


def find_class(name: str) -> Any | None:
    """Return the class of an extractor, or None if the extractor is not available."""
    module, _, attribute = LOCATIONS[name].partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError:
        return None


# --- tables --------------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*CLASSES, *REGRESSION]
    parser.add_argument("--data", nargs="+", choices=names, default=names)
    parser.add_argument("--extractors", nargs="+", choices=LOCATIONS, default=list(LOCATIONS))
    parser.add_argument("--splits", type=int, default=10, help="number of splits in classification")
    parser.add_argument("--csv", type=Path, help="file for all results")
    options = parser.parse_args()
    records, lines, n_worse = load_records(), [], 0
    for name in options.extractors:
        if find_class(name) is None:
            print(f"skipped {name}: {LOCATIONS[name]} is not available", file=sys.stderr)
    for dataset in options.data:
        score = "F1" if dataset in CLASSES else "R²"
        fidelity = "agreement with black box" if dataset in CLASSES else "R² against black box"
        n_splits = options.splits if dataset in CLASSES else 1
        print(f"\n### {TITLES[dataset]}\n")
        print(
            f"| extractor | splits | rules, ours | PSyKE | {fidelity}, ours | PSyKE "
            f"| {score} against truth, ours | PSyKE | covered, ours | PSyKE | seconds, ours "
            f"| PSyKE | no worse? | all {n_splits} splits: rules | {score} against black box "
            f"| {score} against truth |"
        )
        print("| :-- |" + " --: |" * 11 + " :-- |" + " --: |" * 3, flush=True)
        for setting in settings_for(dataset):
            extractor_class = find_class(setting.extractor)
            if setting.extractor not in options.extractors or extractor_class is None:
                continue
            try:
                ours = {
                    s: measure_mean(setting, extractor_class, dataset, s) for s in range(n_splits)
                }
            except Exception as error:  # the other extractors are still measured
                print(f"| {setting.description} | {type(error).__name__}: {error} |" + " - |" * 14)
                n_worse += 1
                continue
            for scaled in (False, True):
                record = records.get((dataset, setting.label, scaled))
                if record is None and scaled:
                    continue
                line = {"dataset": dataset, "extractor": setting.description, "scaled": scaled}
                line |= compare(ours, record or {})
                n_worse += str(line["verdict"]).startswith("NO")
                lines.append(line)
                print_line(line)
    print(f"\n{n_worse} of {len(lines)} rows are worse than PSyKE's records or failed")
    if options.csv and lines:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)
    return 1 if n_worse else 0


def compare(ours: dict[int, dict[str, float]], record: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """Return one table row: means over the common splits, then our means over all splits."""
    finished = {s: r for s, r in record.items() if not r["error"] and s in ours}
    common = [ours[s] for s in finished] or list(ours.values())
    theirs = list(finished.values())
    line: dict[str, Any] = {"splits": ", ".join(map(str, finished or ours))}
    for key in MEASURES:
        line[f"{key}_ours"] = mean(common, key)
        line[f"{key}_psyke"] = mean(theirs, key) if theirs else None
    n_failed = sum(bool(r["error"]) for r in record.values())
    line["verdict"] = verdict(common, theirs) if theirs else "no record"
    if n_failed:
        line["verdict"] += f" (PSyKE over 60 s on {n_failed} of {len(record)} splits)"
    for key in ("n_rules", "score_black_box", "score_truth"):
        line[f"{key}_all"] = mean(list(ours.values()), key)
    return line


def print_line(line: dict[str, Any]) -> None:
    def number(key: str, digits: str) -> str:
        return "-" if line[key] is None else format(line[key], digits)

    cells = [line["extractor"] + (", PSyKE on scaled data" if line["scaled"] else "")]
    cells.append(
        line["splits"] if len(line["splits"]) < 12 else f"all {line['splits'].count(',') + 1}"
    )
    for key, digits in zip(MEASURES, (".1f", ".3f", ".3f", ".3f", ".3f"), strict=True):
        cells += [number(f"{key}_ours", digits), number(f"{key}_psyke", digits)]
    cells.append(line["verdict"])
    cells += [number("n_rules_all", ".1f"), number("score_black_box_all", ".3f")]
    cells.append(number("score_truth_all", ".3f"))
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
