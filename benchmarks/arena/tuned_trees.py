"""Compare the default search with trees tuned over 1 to 32 leaves by the same score and folds.

    python benchmarks/arena/tuned_trees.py [--every 1] [--first 0] [--scores ice neg_fire neg_q]
        [--suites keel-balanced keel-imbalanced regression categorical] [--jobs 1] [--seconds 3600]
        [--missing]

A random forest is explained on one half of a table. Among the trees of `CARTExtractor` with 1 to 32
leaves, the tuned tree has the best mean score on the folds of the search, so both choose by the
same held-out rows. Both are scored against the data on the other half of the table. Rows are
appended to `tuned_trees.csv` immediately with the commit of the package, so an interrupted run
resumes. With `--missing`, tables measured at earlier commits are skipped as well. At the end,
`tuned_trees.md` is written from the last row of each table and score. Times are CPU times and
include the fitting of the black boxes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from fidelity import package_commit
from scipy.stats import wilcoxon
from threadpoolctl import threadpool_limits

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
#: Smaller differences of scores are rounding errors.
ROUNDING_ERROR = 1e-9
KEYS = ["suite", "data", "score"]


def measure(entry, suite: str, scoring: str, commit: str) -> dict:
    """Return the held-out scores of the search and of the tuned tree on one table."""
    warnings.simplefilter("ignore")
    threadpool_limits(limits=1)
    data = load_dataset(entry.source, **entry.options)
    ((train, test),) = split_rows(data, 0, 1, 0.5)
    names = [name for name in data.X.columns if is_categorical(data.X[name])]
    black_box = make_black_box("random-forest", data.task, 0, names)
    X, X_test = data.X.iloc[train], data.X.iloc[test]
    y, y_test = data.y.iloc[train], data.y.iloc[test]
    start = time.process_time()
    search = ExtractorSearchCV(black_box, scoring=scoring, random_state=0).fit(X, y)
    search_cpu = time.process_time() - start
    trees = [
        CARTExtractor(black_box, max_leaf_nodes=size, random_state=0)
        for size in range(1, PATH_LEAVES + 1)
    ]
    start = time.process_time()
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
        "search_cpu": round(search_cpu, 2),
        "tree_cpu": round(time.process_time() - start, 2),
        "commit": commit,
    }


def format_page(results: pd.DataFrame) -> str:
    """Return the page with the wins, ties and losses of the search by suite and score."""
    results = results.drop_duplicates(KEYS, keep="last")
    commits = ", ".join(sorted(set(results["commit"])))
    lines = [
        "# The default search and tuned trees",
        "",
        "This page compares the default search with one CART tree whose number of leaves is tuned. "
        "It is written by `python benchmarks/arena/tuned_trees.py` from "
        "[tuned_trees.csv](tuned_trees.csv). Both explain the same random forest, choose by the "
        "same score on the same folds of one half of a table, and are scored against the data on "
        "the other half. *Ahead* counts the tables on which the search has the better score. p is "
        "the p-value of Wilcoxon's signed-rank test over tables. *Rules* are the mean numbers of "
        "rules or leaves; a linear equation of the search counts as one rule. *Time* is the median "
        "ratio of the CPU times of the search and of the tuned tree. "
        f"Commit of the search: {commits}.",
        "",
        "| suite | score | tables | ahead | equal | behind | p | rules, search | rules, tree "
        "| time |",
        "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |",
    ]
    for score in dict.fromkeys(results["score"]):
        score_rows = results[results["score"] == score]
        parts = [*score_rows.groupby("suite"), ("all", score_rows)]
        for suite, suite_rows in parts:
            change = (suite_rows["search"] - suite_rows["tree"]).dropna()
            counts = (
                (change > ROUNDING_ERROR).sum(),
                (change.abs() <= ROUNDING_ERROR).sum(),
                (change < -ROUNDING_ERROR).sum(),
            )
            p = wilcoxon(change).pvalue if (change.abs() > ROUNDING_ERROR).any() else 1.0
            cells = [suite, score, len(change), *counts, f"{p:.2g}"]
            cells += [f"{suite_rows[name].mean():.1f}" for name in ("search_rules", "tree_rules")]
            cells.append(f"{(suite_rows['search_cpu'] / suite_rows['tree_cpu']).median():.1f}")
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure the missing tables, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", nargs="+", default=SUITES)
    parser.add_argument("--scores", nargs="+", default=SCORES)
    parser.add_argument("--every", type=int, default=1, help="take every n-th table of a suite")
    parser.add_argument("--first", type=int, default=0, help="index of the first table")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no further table after this time"
    )
    parser.add_argument(
        "--missing", action="store_true", help="also skip tables measured at other commits"
    )
    options = parser.parse_args()
    commit = package_commit()
    rows = pd.read_csv(CSV, dtype={"commit": str}) if CSV.exists() else pd.DataFrame()
    if not rows.empty and not options.missing:
        rows = rows[rows["commit"] == commit]
    finished = set() if rows.empty else set(map(tuple, rows[KEYS].to_numpy()))
    end = time.monotonic() + options.seconds
    cells = (
        (entry, suite, score, commit)
        for score in options.scores
        for suite in options.suites
        for entry in list(suite_config(suite).data)[options.first :: options.every]
        if (suite, entry.label, score) not in finished and time.monotonic() < end
    )
    parallel = joblib.Parallel(
        options.jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
    )
    for row in parallel(joblib.delayed(measure)(*cell) for cell in cells):
        pd.DataFrame([row]).to_csv(CSV, mode="a", header=not CSV.exists(), index=False)
        print(*(row[name] for name in (*KEYS, "search", "tree", "search_cpu")), flush=True)
    PAGE.write_text(format_page(pd.read_csv(CSV, dtype={"commit": str})), encoding="utf-8")


if __name__ == "__main__":
    main()
