"""Coverage of calibrated rules on 40 KEEL tables, compared with conformal prediction for all rows.

    python benchmarks/monitoring/conformal.py [--tables 40] [--splits 5] [--cache FILE]

In each split, a random forest of 50 trees is fitted on one half of the rows, and CART extracts at
most 8 rules from its predictions. A quarter of the rows calibrates the rules, the other quarter
measures the coverage. The tables are the 43 of the suite `keel-balanced`, without the last by name.
`--cache` is a joblib file with pairs of names and data sets, instead of loading them.
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

HERE = Path(__file__).parent
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
    """Return the sizes and the sets of conformal prediction with one quantile for all rows."""
    classes = list(rules.classes)
    scores = 1 - rules.predict_proba(X)
    own = scores[np.arange(len(y)), [classes.index(label) for label in y]]
    rank = conformal_rank(len(own), LEVEL)
    bound = np.sort(own)[rank - 1] if rank <= len(own) else math.inf
    member = 1 - rules.predict_proba(X_test) <= bound + 1e-12
    return member.sum(axis=1), member


def measure(name: str, data, split: int) -> list[dict]:
    """Return one line per rule: coverage and set sizes of both ways."""
    y = np.asarray(data.y)
    index = np.arange(len(y))
    try:
        train, rest = train_test_split(index, test_size=0.5, random_state=split, stratify=y)
    except ValueError:  # a class with a single row
        train, rest = train_test_split(index, test_size=0.5, random_state=split)
    calibration, test = rest[::2], rest[1::2]
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
    frame = calibrated.coverage(data.X.iloc[test], y[test])
    sizes, member = unconditional_sizes(
        rules, data.X.iloc[calibration], y[calibration], data.X.iloc[test]
    )
    codes = np.array([classes.index(label) for label in y[test]])
    is_covered = member[np.arange(len(test)), codes]
    rule = rules.assign(data.X.iloc[test])
    lines = []
    for k in range(len(rules)):
        rows = rule == k
        lines.append(
            {
                "table": name.split("/")[-1],
                "split": split,
                "rule": k + 1,
                "classes": len(classes),
                "calibration_rows": int(frame["calibration_rows"].iloc[k]),
                "rows": int(rows.sum()),
                "covered": round(float(np.nan_to_num(frame["coverage"].iloc[k]) * rows.sum())),
                "size": frame["size"].iloc[k],
                "covered_by_one_quantile": int(is_covered[rows].sum()),
                "size_by_one_quantile": float(sizes[rows].mean()) if rows.any() else math.nan,
            }
        )
    return lines


def main() -> None:
    """Measure the tables and write the lines of all rules."""
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
        pd.DataFrame(lines).round(4).to_csv(HERE / "conformal.csv", index=False)


if __name__ == "__main__":
    main()
