"""Searches whose figures are recomputed: 6 quick ones and 30 others.

They combine classes and numbers, weights, models from files, both references, and limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from recomputed import Run
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator

from skescore.black_boxes import load_black_box, make_black_box
from skescore.cli import main
from skescore.scorers import FidelityScorer, make_score_scorer
from skescore.tuning import ExtractorSearchCV

__all__ = ["FAST", "QUICK", "SLOW", "python_search", "run_search", "write_files"]

QUICK = ("--black-box", "decision-tree", "--extractors", "cart", "--trials", "1", "--cv", "2")
TABLE = ("TABLE", "--target", "risk", "--drop", "price")
NUMBERS = ("TABLE", "--target", "price", "--drop", "risk")
BALANCED, BY_MODEL = ("--class-weight", "balanced"), ("--reference", "black-box")
GIVEN = ("--black-box", "MODEL", "--trust")

#: Searches by name; TABLE, TEST and MODEL are files that `write_files` writes.
FAST = {
    "iris": ("iris", *QUICK, "--max-rules", "3"),
    "weighted": (*TABLE, *QUICK, *BALANCED, "--max-rules", "4", "--test", "TEST"),
    "given": (*TABLE, *QUICK[2:], *GIVEN, "--max-rules", "5"),
    "numbers": (*NUMBERS, *QUICK, "--max-rules", "4", "--test", "TEST"),
    "by-model": ("iris", *QUICK, *BY_MODEL, "--performance", "balanced_accuracy"),
    "fidelity": ("iris", *QUICK, "--scoring", "fidelity", "--max-rules", "2"),
}


def _slow_cases() -> dict[str, tuple[str, ...]]:
    """Combine data, extractors, weights, references, models and limits to further searches."""
    cases = {}
    for extractor in ("cart", "gridex", "iter", "real", "trepan", "cream"):
        quick = ("--black-box", "knn", "--extractors", extractor, "--trials", "2", "--cv", "3")
        cases[f"{extractor}-iris"] = ("iris", *quick, "--max-rules", "6")
        cases[f"{extractor}-table"] = (*TABLE, *quick, "--seed", "3", "--test", "TEST")
        cases[f"{extractor}-weighted"] = (*TABLE, *quick, *BALANCED, *BY_MODEL)
    for extractor in ("cart", "gridex", "gridrex", "cream"):
        quick = ("--black-box", "gradient-boosting", "--extractors", extractor, "--trials", "2")
        cases[f"{extractor}-numbers"] = (*NUMBERS, *quick, "--cv", "3", "--min-fidelity", "0.5")
        cases[f"{extractor}-by-model"] = (*NUMBERS, *quick, "--cv", "3", *BY_MODEL)
        given = (*NUMBERS, "--extractors", extractor, "--trials", "2", "--cv", "3")
        cases[f"{extractor}-given"] = (*given, *GIVEN, "--test", "TEST")
    return cases


SLOW = _slow_cases()


def write_files(folder: Path) -> Path:
    """Write a table of classes and numbers, test rows, and fitted models; return the folder."""
    random, n_rows = np.random.default_rng(5), 190
    table = pd.DataFrame(
        {
            "weight": random.normal(3000, 500, n_rows).round(),
            "age": random.integers(15, 45, n_rows),
            "smokes": random.choice(["yes", "no"], n_rows),
        }
    )
    price = table["weight"] / 100 + 8 * (table["smokes"] == "yes") + random.normal(0, 2, n_rows)
    table["price"] = price.round(2)
    table["risk"] = np.where(price > 38, "high", np.where(price > 30, "mid", "low"))
    table.iloc[:120].to_csv(folder / "table.csv", index=False)
    table.iloc[120:].to_csv(folder / "test.csv", index=False)
    X = table.iloc[:120][["weight", "age"]]
    for kind, target in ((RandomForestClassifier, "risk"), (RandomForestRegressor, "price")):
        model = kind(5, random_state=0).fit(X, table.iloc[:120][target])
        joblib.dump(model, folder / f"{target}.joblib")
    return folder


def run_search(arguments: Sequence[str], files: Path, out: Path, *more: str) -> Run:
    """Run a search of the command line into a folder; return its run, with the rows of --test."""
    target = "price" if "price" in arguments[:3] else "risk"
    names = {"TABLE": "table.csv", "TEST": "test.csv", "MODEL": f"{target}.joblib"}
    argv = [str(files / names[part]) if part in names else part for part in arguments]
    code = main(["tune", *argv, "--output", str(out), "--quiet", *more])
    reading = {}
    if "TABLE" in arguments:
        reading["drop"] = ["price" if target == "risk" else "risk"]
        if "MODEL" in arguments:
            reading = {"features": ["weight", "age"]}
    run = Run(out, argv[0], **reading)
    limits = run.board["within_limits"] if "within_limits" in run.board else pd.Series([True])
    assert code == (0 if limits.any() else 1)
    run.test = Run(out, str(files / "test.csv"), **reading) if "TEST" in arguments else None
    return run


def python_search(run: Run) -> ExtractorSearchCV:
    """Repeat a search of the command line in Python, with the settings of its run.json."""
    search, about = run.record["search"], run.record["black_box"]
    if run.trained_here:
        model = make_black_box(
            about["name"], run.record["data"]["task"], search["seed"], run.data.categories
        )
    else:
        model = FrozenEstimator(load_black_box(about["name"], trust=True))
    scoring = FidelityScorer()
    if search["scoring"] != "fidelity":
        metric = {} if search["performance"] is None else {"metric": search["performance"]}
        reference = search["reference"].replace("-", "_")
        scoring = make_score_scorer(search["scoring"], reference=reference, **metric)
    limits = {name: search[name] for name in ("max_rules", "min_performance", "min_fidelity")}
    result = ExtractorSearchCV(
        model,
        extractors=search["extractors"],
        scoring=scoring,
        n_trials=search["n_trials"],
        cv=run.splitter,
        class_weight=search["class_weight"],
        allocation=search["allocation"],
        random_state=search["seed"],
        **limits,
    )
    return result.fit(run.X, run.data.y)
