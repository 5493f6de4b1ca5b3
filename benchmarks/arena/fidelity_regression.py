"""Measure the fidelity of at most 8 rules to a regression model on 28 tables.

    python benchmarks/arena/fidelity_regression.py [--methods CART ...] [--jobs 1] [--seconds 3600]
        [--seeds 0 1] [--black-boxes random-forest hist-gradient-boosting] [--output FILE]

The tables are those of the suite `regression`, with at most 2,000 rows. A black box is fitted on
one half of the rows. Every method learns from its predictions there. The other half measures R²
against the black box (fidelity) and against the data (correctness). "search, constants" uses only
extractors whose rules predict constants, like trees; the rules of the default search may also
predict by linear equations.

Rows are appended to `fidelity_regression.csv` immediately, so an interrupted run resumes. The
search is measured once per commit. `fidelity_regression.md` is written at the end.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from fidelity import BLACK_BOXES, N_QUERIES, Encoder, interpolate_rows, package_commit
from run import CACHE, load_cached
from scipy.stats import wilcoxon
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from skescore.bench import split_rows, suite_config
from skescore.black_boxes import fit_black_box, make_black_box
from skescore.tuning import ExtractorSearchCV

FOLDER = Path(__file__).parent
CSV, PAGE = FOLDER / "fidelity_regression.csv", FOLDER / "fidelity_regression.md"
LIMIT = 8
#: Extractors whose rules predict constants in all settings of the search space.
CONSTANT_EXTRACTORS = ("cart", "gridex", "iter", "optimal-tree")
SEARCHES = {"search, constants": CONSTANT_EXTRACTORS, "search": None}
METHODS = (*SEARCHES, "CART", "CART on queries", "FIGS")
KEYS = ["data", "black_box", "seed", "method"]
INTRO = """\
# Fidelity in regression

Written by `python benchmarks/arena/fidelity_regression.py` from
[fidelity_regression.csv](fidelity_regression.csv). Each table of the suite `regression` is divided
into two halves. A black box is fitted on the first half, and every method learns at most 8 rules
from its predictions there. FIGS, which adds the outputs of its trees, may have 8 leaves in total.
R² is measured on the other half, against the black box (fidelity) and the data (correctness).
A cell is one table, black box and seed. Fidelity and correctness are averaged over the cells of a
table; the first table below shows their medians over the tables, the mean number of rules over the
cells, and the median CPU time over the cells.

- *CART on queries* also queries the black box on 10,000 rows between random pairs of rows.
- *search, constants* is `ExtractorSearchCV(scoring="fidelity", max_rules=8)` with the extractors
  CART, GridEx, ITER and optimal trees.
- *search* has the default extractors. Their rules may predict by linear equations, so its results
  are not comparable with the results of trees.

The generators of query rows for the trees of both searches were selected on these tables, so the
comparison is not independent.
"""
COMPARISON = """\
*Higher* and *lower* count the tables on which the search has a higher or lower mean fidelity than
the other method. p is the p-value of Wilcoxon's signed-rank test. The *even half* contains the
tables at even positions in the order of their names, counted from 0. The search with the default
extractors may use linear equations, which the other methods cannot.
"""


def learn(method: str, cell: dict[str, Any]) -> tuple[Any, int]:
    """Return the prediction function that a method learned, and the number of rules."""
    X, model, seed = cell["X"], cell["model"], cell["seed"]
    if method in SEARCHES:
        extractors = SEARCHES[method]
        search = ExtractorSearchCV(
            FrozenEstimator(model),
            **({} if extractors is None else {"extractors": list(extractors)}),
            scoring="fidelity",
            max_rules=LIMIT,
            random_state=seed,
        ).fit(X, cell["y"])
        return search.predict, search.n_rules_
    encoder = Encoder(X, cell["categories"])
    numbers, target = encoder.transform(X), np.asarray(model.predict(X))
    if method == "FIGS":
        fitted, n_rules = fit_figs(numbers, target, seed)
        return lambda rows: fitted.predict(encoder.transform(rows)), n_rules
    if method == "CART on queries":
        queries = interpolate_rows(X, cell["categories"], N_QUERIES, seed)
        numbers = np.vstack([numbers, encoder.transform(queries)])
        target = np.concatenate([target, model.predict(queries)])
    tree = DecisionTreeRegressor(max_leaf_nodes=LIMIT, random_state=seed).fit(numbers, target)
    return lambda rows: tree.predict(encoder.transform(rows)), tree.get_n_leaves()


def fit_figs(numbers: np.ndarray, target: np.ndarray, seed: int) -> tuple[Any, int]:
    """Fit FIGS with as many splits as 8 leaves in all of its trees permit."""
    from imodels import FIGSRegressor

    for n_splits in range(LIMIT - 1, 0, -1):
        np.random.seed(seed)  # its stumps use the global generator
        model = FIGSRegressor(max_rules=n_splits, random_state=seed).fit(numbers, target)
        n_leaves = model.complexity_ + len(model.trees_)
        if n_leaves <= LIMIT:
            break
    return model, n_leaves


def measure(
    entry: Any, black_box: str, seed: int, methods: list[str], commit: str
) -> list[dict[str, Any]]:
    """Fit the black box on one half of a table and return the row of each method."""
    warnings.simplefilter("ignore")
    threadpool_limits(limits=1)
    table = entry.table
    train, test = next(split_rows(table, seed, 1, 0.5))
    X, X_test = (table.X.iloc[half].reset_index(drop=True) for half in (train, test))
    y, y_test = (table.y.iloc[half].reset_index(drop=True) for half in (train, test))
    estimator = make_black_box(black_box, table.task, seed, table.categories)
    model = fit_black_box(estimator, X, y)
    cell = {"X": X, "y": y, "model": model, "seed": seed, "categories": tuple(table.categories)}
    rows = []
    for method in methods:
        start, scores = time.process_time(), {}
        try:
            predict, n_rules = learn(method, cell)
            cpu_seconds = time.process_time() - start
            predictions = np.asarray(predict(X_test), dtype=float)
            scores = {
                "n_rules": n_rules,
                "fidelity": round(r2_score(model.predict(X_test), predictions), 6),
                "correctness": round(r2_score(y_test, predictions), 6),
                "cpu_seconds": round(cpu_seconds, 2),
            }
        except ValueError as error:  # for example, a peer may reject missing values
            scores = {"error": str(error).splitlines()[0][:100]}
        head = {"data": entry.label, "black_box": black_box, "seed": seed, "method": method}
        names = ("n_rules", "fidelity", "correctness", "cpu_seconds", "error")
        rows.append({**head, "commit": commit, **dict.fromkeys(names), **scores})
    return rows


def means_of_tables(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean fidelity by table (rows) and method (columns)."""
    return rows.pivot_table(index="data", columns="method", values="fidelity", aggfunc="mean")


def format_page(rows: pd.DataFrame) -> str:
    """Return the page, which compares methods on all tables and on tables at even positions."""
    rows = rows.drop_duplicates(KEYS, keep="last")
    commits = rows[rows["method"].isin(SEARCHES)].groupby("method", sort=False)["commit"].unique()
    commit_texts = "; ".join(f"*{name}* at {', '.join(part)}" for name, part in commits.items())
    lines = [INTRO, f"Measured commits: {commit_texts}.", ""]
    lines += ["| method | cells | fidelity | correctness | rules | CPU seconds |"]
    lines += ["| --- | --: | --: | --: | --: | --: |"]
    for method in METHODS:
        part = rows[(rows["method"] == method) & rows["error"].isna()]
        tables = part.groupby("data")[["fidelity", "correctness"]].mean().median()
        cells = [f"{tables[name]:.3f}" for name in ("fidelity", "correctness")]
        cells += [f"{part['n_rules'].mean():.1f}", f"{part['cpu_seconds'].median():.2f}"]
        lines.append("| " + " | ".join([method, str(len(part)), *cells]) + " |")
    lines += ["", "## Fidelity of the searches compared with other methods", "", COMPARISON]
    head = ["search", "method", "tables", "higher", "lower", "p"]
    head += ["higher, even half", "lower, even half"]
    lines += ["| " + " | ".join(head) + " |", "| --- | --- | --: | --: | --: | --: | --: | --: |"]
    means = means_of_tables(rows)
    for search, rival in itertools.product(SEARCHES, ("CART", "CART on queries", "FIGS")):
        change = (means[search] - means[rival]).dropna()
        even = change[[list(means.index).index(name) % 2 == 0 for name in change.index]]
        counts = [len(change), (change > 0).sum(), (change < 0).sum()]
        halves = [(even > 0).sum(), (even < 0).sum()]
        cells = [search, rival, *counts, f"{wilcoxon(change).pvalue:.2g}", *halves]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def read_rows(path: Path) -> pd.DataFrame:
    """Return the measured rows; an empty table if the file is missing."""
    return pd.read_csv(path, dtype={"commit": str}) if path.exists() else pd.DataFrame()


def main() -> None:
    """Measure the missing cells, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--black-boxes", nargs="+", choices=BLACK_BOXES, default=BLACK_BOXES)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="start no further table after this time"
    )
    parser.add_argument("--output", type=Path, default=CSV)
    options = parser.parse_args()
    commit, rows = package_commit(), read_rows(options.output)
    if not rows.empty:
        rows = rows[~rows["method"].isin(SEARCHES) | (rows["commit"] == commit)]
    finished = set() if rows.empty else set(map(tuple, rows[KEYS].to_numpy()))
    entries = load_cached("regression", suite_config("regression").data, CACHE)
    end = time.monotonic() + options.seconds
    groups = (
        (entry, box, seed, missing, commit)
        for seed, box, entry in itertools.product(options.seeds, options.black_boxes, entries)
        if (missing := [m for m in options.methods if (entry.label, box, seed, m) not in finished])
        and time.monotonic() < end
    )
    parallel = joblib.Parallel(
        options.jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
    )
    for part in parallel(joblib.delayed(measure)(*group) for group in groups):
        table = pd.DataFrame(part)
        table.to_csv(options.output, mode="a", header=not options.output.exists(), index=False)
        print(table.drop(columns=["seed", "commit", "error"]).to_string(header=False), flush=True)
    PAGE.write_text(format_page(read_rows(options.output)), encoding="utf-8")


if __name__ == "__main__":
    main()
