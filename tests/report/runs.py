"""Write folders of runs without a search, with any candidates and rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from measures import fold_measures

from skescore.datasets import load_dataset
from skescore.report import candidates_json
from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet, RuleStatistics
from skescore.tuning import Candidate, Candidates


def random_candidates(count: int, n_folds: int = 5, seed: int = 0) -> Candidates:
    """Return candidates with widely different measures, some of them equal."""
    random = np.random.default_rng(seed)
    created = []
    for number in range(count):
        size = float(random.integers(1, 40))
        folds = []
        for _ in range(n_folds):
            loss = float(random.uniform(0, 0.6))
            folds.append(
                fold_measures()
                | {
                    "performance": 1 - loss * float(random.uniform(0.8, 1.2)),
                    "loss": loss,
                    "loss_q": loss * 0.99,
                    "n_rules": max(1.0, size + float(random.integers(-1, 2))),
                    "size": max(1.0, size + float(random.integers(-1, 2))),
                    "completeness_volume": float(random.uniform(0.3, 1)),
                    "completeness_instances": float(random.uniform(0.8, 1)),
                    "score": 0.5,
                    "seconds": float(random.uniform(0, 2)),
                    "black_box_calls": 3,
                    "black_box_rows": float(random.integers(100, 500)),
                }
            )
        if number % 7 == 6:  # ties are broken by the order
            folds = [fold.to_dict() for fold in created[-1].folds]
        if number % 3 == 2:  # unknown on all rows, like candidates that are worse on every fold
            folds = [_worse(fold.to_dict()) for fold in created[-1].folds]
        all_rows = None if number % 3 == 2 else _on_all_rows(folds[0], number % 2)
        if number % 12 == 9:
            all_rows = {"failure": "ValueError: no rules"}
        created.append(
            Candidate.from_measures(
                f"extractor{number % 4}",
                {"max_leaf_nodes": number, "tolerance": 0.01},
                number,
                tuple(folds),
                all_rows,
            )
        )
    return Candidates(created)


def _worse(fold: dict) -> dict:
    return fold | {
        "performance": fold["performance"] - 0.01,
        "loss": fold["loss"] + 0.01,
        "loss_q": fold["loss_q"] + 0.01,
        "completeness_volume": fold["completeness_volume"] * 0.99,
        "completeness_instances": fold["completeness_instances"] * 0.99,
    }


def _on_all_rows(fold: dict, more: int) -> dict:
    """Return measures better than a fold in some respects, worse in others, and with more rules."""
    return fold | {
        "performance": (1 + fold["performance"]) / 2,
        "loss": fold["loss"] / 2,
        "loss_q": fold["loss_q"] / 3,
        "size": fold["size"] + more,
        "completeness_volume": fold["completeness_volume"] ** 2,
        "completeness_instances": 1.0,
    }


def iris_rules(names: tuple[str, ...] | None = None) -> RuleSet:
    """Return an ordered list for iris with a fallback and the names of the data."""
    iris = load_dataset("iris")
    values = iris.X.to_numpy()
    return RuleSet(
        [
            Rule([Interval(2, upper=2.45)], "setosa", RuleStatistics(50, (50, 0, 0))),
            Rule(
                [Interval(2, 2.5, 4.95), Interval(3, upper=1.65)],
                "versicolor",
                RuleStatistics(48, (0, 47, 1)),
            ),
            Rule([Interval(3, lower=1.75)], "virginica", RuleStatistics(46, (0, 1, 45))),
        ],
        iris.X.columns.tolist() if names is None else names,
        task="classification",
        classes=["setosa", "versicolor", "virginica"],
        domain=Domain(tuple(values.min(axis=0)), tuple(values.max(axis=0))),
        fallback=Fallback("versicolor"),
    )


def write_run(
    folder: Path,
    candidates: Candidates | None = None,
    rules: RuleSet | None = None,
    *,
    winner: int = 0,
    picked: bool = False,
    about: dict[str, Any] | None = None,
    search: dict[str, Any] | None = None,
) -> Path:
    """Write a folder like ``skescore tune --output``, on iris unless `about` states otherwise."""
    candidates = random_candidates(20) if candidates is None else candidates
    rules = iris_rules() if rules is None else rules
    iris = load_dataset("iris")
    run = {
        "data": {
            "name": "iris",
            "source": iris.source,
            "checksum_sha256": iris.checksum,
            "task": "classification",
            "target": iris.y.name,
            "rows": len(iris.X),
            "rows_dropped": 0,
            "features": iris.X.columns.tolist(),
            "categories": [],
        }
        | (about or {}),
        "black_box": {"name": "knn", "trained_here": True, "quality": {"accuracy": 0.95}},
        "search": {
            "scoring": "ice",
            "weights": {"psi": 1.0, "phi": 1.0, "rho": 1.0},
            "completeness": "volume",
            "reference": "data",
            "extractors": ["cart"],
            "trials": 20,
            "cv": 5,
            "seed": 0,
            "seconds": 12.5,
        }
        | (search or {}),
        "run": {"command_line": ["skescore", "tune", "iris"], "versions": {"python": "3.11"}},
        "notes": [],
    }
    folder.mkdir(parents=True, exist_ok=True)
    first = candidates[winner]
    text = candidates_json(
        candidates,
        winner=(first.extractor, first.trial),
        standard_errors=1.0,
        extractor_seed=5,
        picked=picked,
    )
    (folder / "candidates.json").write_text(text, encoding="utf-8")
    (folder / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return folder
