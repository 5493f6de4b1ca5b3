"""Compare the default search with trees tuned over 1 to 32 leaves by the same score and folds.

    python benchmarks/arena/tuned_trees.py [--every 1] [--first 0] [--scores ice neg_fire neg_q]
        [--suites keel-balanced keel-imbalanced regression categorical] [--seconds 3600]

A random forest is explained on one half of a table. The tuned tree is the one of `CARTExtractor`
with 1 to 32 leaves that has the best mean score on the folds of the search; both choose by the
same held-out rows. The other half of the table measures the score of both against the data. Rows
are appended to `tuned_trees.csv` at once, so that an interrupted run resumes; `tuned_trees.md` is
written at the end.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from skescore import CARTExtractor, ExtractorSearchCV
from skescore.bench import split_rows, suite_config
from skescore.black_boxes import make_black_box
from skescore.datasets import load_dataset
from skescore.extractors import PATH_LEAVES, is_categorical
from skescore.scorers import get_rule_scorer

FOLDER = Path(__file__).parent
CSV, PAGE = FOLDER / "tuned_trees.csv", FOLDER / "tuned_trees.md"
SUITES = ("keel-balanced", "keel-imbalanced", "regression", "categorical")
SCORES = ("ice", "neg_fire", "neg_q")
#: Differences of scores below this are rounding errors.
EQUAL = 1e-9


def measure(entry, suite: str, scoring: str) -> dict:
    """Return the held-out scores of the search and of the tuned tree on one table."""
    data = load_dataset(entry.source, **entry.options)
    ((train, test),) = split_rows(data, 0, 1, 0.5)
    names = [name for name in data.X.columns if is_categorical(data.X[name])]
    black_box = make_black_box("random-forest", data.task, 0, names)
    X, X_test = data.X.iloc[train], data.X.iloc[test]
    y, y_test = data.y.iloc[train], data.y.iloc[test]
    begin, used = time.perf_counter(), time.process_time()
    search = ExtractorSearchCV(black_box, scoring=scoring, random_state=0).fit(X, y)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - used
    trees = [
        CARTExtractor(black_box, max_leaf_nodes=size, random_state=0)
        for size in range(1, PATH_LEAVES + 1)
    ]
    begin = time.perf_counter()
    means = search.held_out_scores(trees).mean(axis=1)
    tree = trees[int(np.nanargmax(np.round(means, 12)))]
    tree.set_params(estimator=search.best_extractor_.estimator_).fit(X)
    scorer = get_rule_scorer(scoring)
    return {
        "suite": suite,
        "data": entry.label,
        "score": scoring,
        "search": scorer(search.best_extractor_, X_test, y_test),
        "tree": scorer(tree, X_test, y_test),
        "search_rules": search.n_rules_,
        "tree_rules": tree.n_rules_,
        "extractor": search.best_name_,
        "search_seconds": round(seconds, 2),
        "search_cpu": round(cpu, 2),
        "tree_seconds": round(time.perf_counter() - begin, 2),
    }


def page(results: pd.DataFrame) -> str:
    """Write the wins, ties and losses of the search by suite and score."""
    lines = [
        "# The default search and tuned trees",
        "",
        "This page compares the default search with one CART tree whose number of leaves is tuned. "
        "It is written by `python benchmarks/arena/tuned_trees.py` from "
        "[tuned_trees.csv](tuned_trees.csv). Both explain the same random forest, choose by the "
        "same score on the same folds of one half of a table, and are scored against the data on "
        "the other half. *Ahead* counts the tables on which the search has the better score. p is "
        "the p-value of Wilcoxon's signed-rank test over tables. The last two columns are mean "
        "numbers of rules or leaves. A linear equation of the search counts as one rule. Only some "
        "tables of these suites have been measured.",
        "",
        "| suite | score | tables | ahead | equal | behind | p | rules, search | rules, tree |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for score in SCORES:
        of_score = results[results["score"] == score]
        parts = [*of_score.groupby("suite"), ("all", of_score)]
        for suite, part in parts:
            change = (part["search"] - part["tree"]).dropna()
            counts = (change > EQUAL).sum(), (change.abs() <= EQUAL).sum(), (change < -EQUAL).sum()
            p = wilcoxon(change).pvalue if (change.abs() > EQUAL).any() else 1.0
            cells = [suite, score, len(change), *counts, f"{p:.2g}"]
            cells += [f"{part[name].mean():.1f}" for name in ("search_rules", "tree_rules")]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", nargs="+", default=SUITES)
    parser.add_argument("--scores", nargs="+", default=SCORES)
    parser.add_argument("--every", type=int, default=1, help="take every n-th table of a suite")
    parser.add_argument("--first", type=int, default=0, help="index of the first table")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing later")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = pd.read_csv(CSV).to_dict("records") if CSV.exists() else []
    done = {(row["suite"], row["data"], row["score"]) for row in rows}
    begin = time.monotonic()
    cells = [
        (entry, suite, score)
        for suite in options.suites
        for entry in list(suite_config(suite).data)[options.first :: options.every]
        for score in options.scores
    ]
    for entry, suite, score in cells:
        if time.monotonic() - begin > options.seconds:
            break
        if (suite, entry.label, score) not in done:
            row = measure(entry, suite, score)
            rows.append(row)
            pd.DataFrame([row]).to_csv(CSV, mode="a", header=not CSV.exists(), index=False)
            print(suite, entry.label, score, row["search"], row["tree"], row["search_cpu"])
    PAGE.write_text(page(pd.DataFrame(rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
