"""Measure the coverage of calibrated rules on 40 KEEL tables, per rule and with one quantile.

    python benchmarks/monitoring/conformal.py [--tables 40] [--splits 5] [--cache FILE]

In each split, a random forest of 50 trees is fitted on one half of the rows, and CART extracts at
most 8 rules from its predictions. A quarter of the rows is used to calibrate the rules, and another
quarter to measure their coverage. Coverage per rule is compared with conformal prediction that has
one quantile for all rows. The tables are the first 40 by name of the suite `keel-balanced`.
`--cache` reads pairs of names and data sets from a joblib file.
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skescore import CARTExtractor
from skescore.black_boxes import make_black_box
from skescore.extractors import is_categorical
from skescore.monitoring import CalibratedRules, conformal_rank
from skescore.rules import with_statistics

FOLDER = Path(__file__).parent
LEVEL = 0.9
MIN_ROWS = 30


def load_tables(n_tables: int, cache: Path | None) -> list:
    """Return pairs of names and data sets of the balanced KEEL suite."""
    if cache is not None:
        import joblib

        tables = [(name, data) for name, data in joblib.load(cache) if "balanced/" in name]
        return [pair for pair in tables if "imbalanced/" not in pair[0]][:n_tables]
    from skescore.bench import suite_config
    from skescore.datasets import load_dataset

    entries = sorted(suite_config("keel-balanced").data, key=lambda entry: entry.label)
    return [(e.label, load_dataset(e.source, **e.options)) for e in entries[:n_tables]]


def unconditional_sizes(rules, X, y, X_test) -> tuple[np.ndarray, np.ndarray]:
    """Return set sizes and memberships (rows x classes) with one quantile for all rows."""
    classes = list(rules.classes)
    scores = 1 - rules.predict_proba(X)
    label_scores = scores[np.arange(len(y)), [classes.index(label) for label in y]]
    rank = conformal_rank(len(label_scores), LEVEL)
    bound = np.sort(label_scores)[rank - 1] if rank <= len(label_scores) else math.inf
    is_member = 1 - rules.predict_proba(X_test) <= bound + 1e-12
    return is_member.sum(axis=1), is_member


def measure(name: str, data, split: int) -> list[dict]:
    """Return one line per rule with the coverage and set sizes of both methods."""
    y = np.asarray(data.y)
    index = np.arange(len(y))
    try:
        train, remaining = train_test_split(index, test_size=0.5, random_state=split, stratify=y)
    except ValueError:  # a class with a single row
        train, remaining = train_test_split(index, test_size=0.5, random_state=split)
    calibration, test = remaining[::2], remaining[1::2]
    names = [column for column in data.X.columns if is_categorical(data.X[column])]
    model = make_black_box("random-forest", "classification", split, names)
    model.set_params(
        **{key: 50 for key in model.get_params() if key.split("__")[-1] == "n_estimators"}
    )
    model.fit(data.X.iloc[train], y[train])
    extractor = CARTExtractor(FrozenEstimator(model), max_leaf_nodes=8, random_state=0)
    extractor.fit(data.X.iloc[train])
    classes = sorted(set(y.tolist()), key=str)
    rules = extractor.rules_.replace(classes=classes, fallback=None)
    rules = with_statistics(rules.replace(rules=rules.rules), data.X.iloc[train], y[train])
    calibrated = CalibratedRules.fit(rules, data.X.iloc[calibration], y[calibration], level=LEVEL)
    coverage = calibrated.coverage(data.X.iloc[test], y[test])
    sizes, is_member = unconditional_sizes(
        rules, data.X.iloc[calibration], y[calibration], data.X.iloc[test]
    )
    codes = np.array([classes.index(label) for label in y[test]])
    is_covered = is_member[np.arange(len(test)), codes]
    rule = rules.assign(data.X.iloc[test])
    lines = []
    for k in range(len(rules)):
        is_of_rule = rule == k
        lines.append(
            {
                "table": name.split("/")[-1],
                "split": split,
                "rule": k + 1,
                "classes": len(classes),
                "calibration_rows": int(coverage["calibration_rows"].iloc[k]),
                "rows": int(is_of_rule.sum()),
                "covered": round(
                    float(np.nan_to_num(coverage["coverage"].iloc[k]) * is_of_rule.sum())
                ),
                "size": coverage["size"].iloc[k],
                "covered_by_one_quantile": int(is_covered[is_of_rule].sum()),
                "size_by_one_quantile": float(sizes[is_of_rule].mean())
                if is_of_rule.any()
                else math.nan,
            }
        )
    return lines


def main() -> None:
    """Measure the tables, and write one line per rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for name, data in load_tables(options.tables, options.cache):
        for split in range(options.splits):
            lines += measure(name, data, split)
        print(name, flush=True)
        pd.DataFrame(lines).round(4).to_csv(FOLDER / "conformal.csv", index=False)


if __name__ == "__main__":
    main()
