"""Measure the fidelity of small rule sets with and without query rows, for each generator.

    python benchmarks/quality/query_rows.py [--tables 24] [--output FILE]

A random forest of 100 trees is fitted on one half of a KEEL table. Trees of CART and Trepan with at
most 8 leaves, or one leaf per class if there are more classes, are trained on its predictions for
these rows and for 8,000 further rows of each generator. "Trepan, refined" has the settings that a
search for fidelity tries first. The agreement with the forest is measured on the other half. The
tables are every second one, by name, of the 43 balanced and the first 57 imbalanced tables.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator

from skescore import CARTExtractor, TrepanExtractor
from skescore.bench import split_rows, suite_config
from skescore.black_boxes import make_black_box
from skescore.datasets import load_dataset
from skescore.extractors import SAMPLINGS, has_categories, is_categorical

#: Trepan with the settings that a search for fidelity tries first.
REFINED_TREPAN = partial(
    TrepanExtractor, min_sample=5000, significance=0.001, purity=1.0, refinement_passes=5
)
EXTRACTORS = {
    "CART": CARTExtractor,
    "Trepan": TrepanExtractor,
    "Trepan, refined": REFINED_TREPAN,
}
FOLDER = Path(__file__).parent


def list_entries(n_tables: int) -> list:
    """Return entries of tables, evenly spaced by name over both suites."""
    balanced = suite_config("keel-balanced").data
    imbalanced = suite_config("keel-imbalanced").data[:57]
    candidates = sorted([*balanced, *imbalanced], key=lambda entry: entry.label)[::2]
    return candidates[:: max(1, len(candidates) // n_tables)][:n_tables]


def measure(entry) -> list[dict]:
    """Return the fidelity and correctness of all extractors and generators on one table."""
    data = load_dataset(entry.source, **entry.options)
    ((train, test),) = split_rows(data, 0, 1, 0.5)
    names = [name for name in data.X.columns if is_categorical(data.X[name])]
    model = make_black_box("random-forest", "classification", 0, names)
    X, X_test, y = data.X.iloc[train], data.X.iloc[test], np.asarray(data.y)
    model.fit(X, y[train])
    limit = max(8, len(np.unique(y[train])))
    rows = []
    for (label, make), sampling in itertools.product(EXTRACTORS.items(), (None, *SAMPLINGS)):
        extractor = make(
            FrozenEstimator(model), max_leaf_nodes=limit, sampling=sampling, random_state=0
        ).fit(X)
        predicted = extractor.predict(X_test)
        rows.append(
            {
                "table": entry.label,
                "extractor": label,
                "sampling": sampling or "none",
                "fidelity": np.mean(predicted == model.predict(X_test)),
                "correctness": np.mean(predicted == y[test]),
                "rules": extractor.n_rules_,
                "step": 1 / len(test),
                "categories": has_categories(X),
            }
        )
    return rows


def summarize(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per extractor and generator, compared with no query rows."""
    records = []
    for label, extractor_rows in results.groupby("extractor"):
        fidelity = extractor_rows.pivot(index="table", columns="sampling", values="fidelity")
        step = extractor_rows.groupby("table")["step"].first()
        for sampling in ("none", *SAMPLINGS):
            change = fidelity[sampling] - fidelity["none"]
            sampling_rows = extractor_rows[extractor_rows["sampling"] == sampling]
            records.append(
                {
                    "extractor": label,
                    "sampling": sampling,
                    "fidelity": sampling_rows["fidelity"].mean(),
                    "correctness": sampling_rows["correctness"].mean(),
                    "rules": sampling_rows["rules"].mean(),
                    "better": int((change > step / 2).sum()),
                    "equal": int((change.abs() <= step / 2).sum()),
                    "worse": int((change < -step / 2).sum()),
                }
            )
    return pd.DataFrame(records)


def format_table(table: pd.DataFrame) -> str:
    """Format a table as Markdown."""
    lines = ["| " + " | ".join(table.columns) + " |", "|" + " --- |" * len(table.columns)]
    for row in table.itertuples(index=False):
        cells = [f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all tables; write the summary and the tables with the largest effects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=24)
    parser.add_argument("--output", type=Path, default=FOLDER / "query_rows.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = pd.DataFrame(
        [row for entry in list_entries(options.tables) for row in measure(entry)]
    )
    fidelity = results[results["extractor"] == "CART"].pivot(
        index="table", columns="sampling", values="fidelity"
    )
    change = (fidelity["permute"] - fidelity["none"]).sort_values()
    extremes = pd.DataFrame(
        {
            "table": change.index,
            "CART, none": fidelity.loc[change.index, "none"].to_numpy(),
            "CART, permute": fidelity.loc[change.index, "permute"].to_numpy(),
        }
    )
    text = (
        "# Effect of query rows on fidelity\n\n"
        "Written by `python benchmarks/quality/query_rows.py` for "
        f"{results['table'].nunique()} KEEL tables. A random forest of 100 trees is fitted on one "
        "half of each table. Each extractor learns from the predictions of the forest for these "
        "rows and for 8,000 generated *query rows*, with at most 8 leaves, or one per class if "
        "there are more than 8 classes. *sampling* names the generator; with *none*, there are no "
        "query rows. *Trepan, refined* has the settings that a search for fidelity tries first. "
        "*fidelity* (agreement with the forest) and *correctness* (agreement with the data) are "
        "measured on the other half; both and the number of rules are means over the tables. "
        "*better*, *equal* and *worse* count the tables on which query rows increase, keep or "
        "reduce the fidelity; differences of less than half a held-out row count as equal.\n\n"
        + format_table(summarize(results))
        + "\nFidelity of CART on the three tables on which permuted rows reduce it most, and on "
        "the three on which they improve it most:\n\n"
        + format_table(pd.concat([extremes.head(3), extremes.tail(3)]))
    )
    options.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
