"""Compare sufficient subsets with Anchors: length, and agreement on fresh rows.

    python benchmarks/quality/sufficient.py [--tables 20] [--rows 10] [--seconds 600] [--page-only]

Needs `anchor-exp` and `lime`. A random forest is fitted on one half of a KEEL table of up to 20
numeric features. Both methods explain predictions for rows of the other half at a confidence of
0.95 with background rows of the first half. Agreement is then measured on 2,000 fresh rows drawn
from the other half. They keep the values (ours) or the bins (Anchors) of the explanation. Anchors
divides each feature by its quartiles and uses its recommended settings. Rows are appended to
`sufficient.csv` immediately, so an interrupted run resumes. `sufficient.md` is written at the end.
"""

from __future__ import annotations

import argparse
import copy
import csv
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from skescore.attribution import sufficient_subsets
from skescore.bench import suite_config
from skescore.datasets import load_dataset

CSV, PAGE = (Path(__file__).with_name(name) for name in ("sufficient.csv", "sufficient.md"))
CONFIDENCE = 0.95
N_FRESH = 2000
#: With more features, both methods take about a minute per row.
MAX_FEATURES = 20
COLUMNS = ("data", "row", "method", "length", "agreement", "seconds")


def list_tables(n_tables: int) -> Iterator[tuple[str, Any]]:
    """Yield the first tables of keel-balanced, by name, with few features, all of them numeric."""
    for entry in sorted(suite_config("keel-balanced").data, key=lambda entry: entry.label):
        data = load_dataset(entry.source, **entry.options)
        is_numeric = not data.categories and not data.X.isna().any(axis=None)
        if is_numeric and len(data.X) >= 150 and data.X.shape[1] <= MAX_FEATURES:
            yield entry.label, data
            n_tables -= 1
            if not n_tables:
                return


def explain_by_subset(forest: Any, row: np.ndarray, X: np.ndarray) -> tuple[Any, Any]:
    """Return the features of a sufficient subset, and a function that draws fresh rows."""
    result = sufficient_subsets(forest, row, X, confidence=CONFIDENCE, random_state=0)
    features = list(result.subsets[0].features)

    def draw(fresh: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        rows = fresh[rng.integers(len(fresh), size=N_FRESH)]
        rows[:, features] = row[features]
        return rows

    return features, draw


def explain_by_anchor(forest: Any, row: np.ndarray, X: np.ndarray) -> tuple[Any, Any]:
    """Return the features of an anchor, and a function that draws fresh rows."""
    from anchor.anchor_base import AnchorBaseBeam
    from anchor.anchor_tabular import AnchorTabularExplainer

    np.random.seed(0)
    names = [f"x{j}" for j in range(X.shape[1])]
    explainer = AnchorTabularExplainer(list(forest.classes_), names, X.copy())
    sample, mapping = explainer.get_sample_fn(row, forest.predict)
    settings = {"delta": 0.1, "epsilon": 0.15, "batch_size": 100}  # as in explain_instance
    anchor = AnchorBaseBeam.anchor_beam(sample, desired_confidence=CONFIDENCE, **settings)
    predicates = list(anchor["feature"])

    def draw(fresh: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        fresh_explainer = copy.copy(explainer)
        fresh_explainer.train, fresh_explainer.d_train = fresh, explainer.disc.discretize(fresh)
        np.random.seed(int(rng.integers(2**31)))
        sample_fresh, _ = fresh_explainer.get_sample_fn(row, forest.predict)
        return sample_fresh(predicates, N_FRESH, compute_labels=False)[0]

    return sorted({mapping[i][0] for i in predicates}), draw


METHODS = {"sufficient subset": explain_by_subset, "Anchors": explain_by_anchor}


def measure(name: str, data: Any, n_rows: int, finished: set[Any]) -> Iterator[dict[str, Any]]:
    """Yield the measured explanations of some rows of a table."""
    X = data.X.to_numpy(float)
    y = data.y.astype(str).to_numpy()
    train, test, y_train, _ = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    train, test = (part[: min(len(part), 1000)] for part in (train, test))
    forest = RandomForestClassifier(30, random_state=0).fit(train, y_train[: len(train)])
    for i in range(n_rows):
        for method, explain in METHODS.items():
            if (name, i, method) in finished:
                continue
            start = time.perf_counter()
            features, draw = explain(forest, test[i], train)
            seconds = time.perf_counter() - start
            fresh = draw(test.copy(), np.random.default_rng([i, 1]))
            is_same = forest.predict(fresh) == forest.predict(test[i : i + 1])[0]
            yield {
                "data": name,
                "row": i,
                "method": method,
                "length": len(features),
                "agreement": round(float(np.mean(is_same)), 4),
                "seconds": round(seconds, 3),
            }


def run(options: argparse.Namespace) -> None:
    """Measure the missing explanations."""
    finished = set()
    if CSV.exists():
        rows = pd.read_csv(CSV)
        finished = set(rows[["data", "row", "method"]].itertuples(index=False, name=None))
    start = time.monotonic()
    for name, data in list_tables(options.tables):
        for row in measure(name, data, options.rows, finished):
            is_new = not CSV.exists()
            with CSV.open("a", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                if is_new:
                    writer.writeheader()
                writer.writerow(row)
            print(*row.values(), file=sys.stderr, flush=True)
            if time.monotonic() - start > options.seconds:
                return


def format_page(rows: pd.DataFrame) -> str:
    """Return the page with a table of methods and a table of pairs of explanations."""
    wide = rows.pivot(index=["data", "row"], columns="method", values=["length", "agreement"])
    wide = wide.dropna()
    lines = [
        "# Sufficient subsets and Anchors",
        "",
        "Written by `python benchmarks/quality/sufficient.py` from [sufficient.csv](sufficient.csv)"
        f". Both methods explain a random forest's predictions for {len(wide)} held-out rows of "
        f"{wide.index.get_level_values('data').nunique()} tables, at a confidence of {CONFIDENCE}. "
        f"*Agreement* is the share of {N_FRESH:,} new rows for which the prediction is the same; "
        "these rows have the values (ours) or bins (Anchors) of the explanation. *Shorter* and "
        "*longer* refer to the number of features.",
        "",
        "| method | features, mean | agreement, mean | share of explanations with an agreement of "
        "at least 0.95 | seconds, median |",
        "| :-- | --: | --: | --: | --: |",
    ]
    for method in METHODS:
        length, agreement = wide["length"][method], wide["agreement"][method]
        seconds = rows.loc[rows["method"] == method, "seconds"].median()
        share = (agreement >= CONFIDENCE).mean()
        cells = f"{length.mean():.2f} | {agreement.mean():.4f} | {share:.3f} | {seconds:.2f}"
        lines.append(f"| {method} | {cells} |")
    reaches = (wide["agreement"] >= CONFIDENCE).all(axis=1)
    texts = [("all rows", wide), ("rows on which both reach 0.95", wide[reaches])]
    lines += ["", "| rows | pairs | ours shorter | equal | longer | mean difference | p |"]
    lines += ["| :-- | --: | --: | --: | --: | --: | --: |"]
    for text, part in texts:
        change = part["length"]["sufficient subset"] - part["length"]["Anchors"]
        per_table = change.groupby("data").mean()
        p = wilcoxon(per_table).pvalue if (per_table != 0).sum() > 5 else float("nan")
        p_text = "" if np.isnan(p) else f"{p:.2g}"
        counts = (change < 0).sum(), (change == 0).sum(), (change > 0).sum()
        cells = " | ".join(map(str, counts))
        lines.append(f"| {text} | {len(part)} | {cells} | {change.mean():+.2f} | {p_text} |")
    lines += [
        "",
        "p is the p-value of Wilcoxon's signed-rank test of the mean differences per table. "
        "A subset fixes",
    ]
    lines += ["values and an anchor fixes bins, so an anchor of the same length covers more rows."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, default=10, help="number of rows per table")
    parser.add_argument(
        "--seconds", type=float, default=600, help="start no explanation after this time"
    )
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.page_only:
        run(options)
    PAGE.write_text(format_page(pd.read_csv(CSV)), encoding="utf-8")


if __name__ == "__main__":
    main()
