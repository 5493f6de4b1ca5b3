"""Compare the witnesses of VERITAS with the witnesses of our verification.

    python benchmarks/verification/veritas_peer.py [--seconds 10]     (needs dtai-veritas)

VERITAS (Devos, Meert and Davis, ICML 2021) searches the box of a rule for the largest or smallest
output of a random forest or gradient boosting model of 100 trees. A row of its solution is a
witness if it belongs to the rule and the model predicts the other class for it. The tables are KEEL
tables with numeric columns and two classes; other columns are dropped. The rules are the leaves of
CART, whose regions are boxes. `veritas.csv` has one line per table and model; existing lines are
not measured again. The exit code is 1 if VERITAS has a witness for a rule for which our
verification has none.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

from skescore.datasets import load_dataset
from skescore.extractors import CARTExtractor
from skescore.rules import Interval, RuleSet
from skescore.verification import VerificationLimits, verify

FOLDER = Path(__file__).parent
TABLES = (
    *("australian", "bupa", "german", "heart", "mammographic"),
    *("phoneme", "wdbc", "pima", "sonar", "ionosphere"),
)
MAX_ROWS, MAX_RULES, N_TREES = 2000, 8, 100
MODELS = {
    "random-forest": RandomForestClassifier,
    "gradient-boosting": GradientBoostingClassifier,
}
#: Time limit of VERITAS per rule in seconds.
PEER_SECONDS = 2.0


def load_numbers(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the numeric columns and labels of a KEEL table, without incomplete rows."""
    data = load_dataset(f"keel:balanced/{name}")
    if len(data.X) > MAX_ROWS:
        data = load_dataset(f"keel:balanced/{name}", sample=MAX_ROWS)
    X = data.X.select_dtypes("number")
    is_complete = X.notna().all(axis=1)
    labels = pd.factorize(data.y[is_complete], sort=True)[0]
    # VERITAS and the forests of scikit-learn compare 32-bit numbers.
    return X[is_complete].to_numpy(np.float32).astype(float), labels


def find_peer_witness(
    model: Any, rules: RuleSet, rule_index: int, ensemble: Any, is_integer: np.ndarray
) -> np.ndarray | None:
    """Return a row of a rule on which the model predicts the other class, or None.

    Values of integer columns are rounded up, because valid rows have integers there.
    """
    import veritas

    rule, domain = rules.rules[rule_index], rules.domain
    bounds = {j: [domain.lower[j], domain.upper[j]] for j in range(rules.n_features)}
    for condition in rule.conditions:
        low, high = bounds[condition.feature]
        if isinstance(condition, Interval):
            bounds[condition.feature] = [max(low, condition.lower), min(high, condition.upper)]
        else:  # one of two values
            bounds[condition.feature] = [condition.values[0], condition.values[0]]
    box = [
        # Intervals of VERITAS exclude their upper end.
        veritas.Interval(np.float32(low), np.nextafter(np.float32(high), np.float32(np.inf)))
        for low, high in bounds.values()
    ]
    is_class_one = rule.output == 1
    kind = veritas.HeuristicType
    config = veritas.Config(kind.MIN_OUTPUT if is_class_one else kind.MAX_OUTPUT)
    search = config.get_search(ensemble, box)
    search.step_for(PEER_SECONDS, 1000)
    for i in range(search.num_solutions()):
        intervals = search.get_solution(i).box()
        row = np.empty(len(bounds))
        for j, (low, high) in bounds.items():
            if j in intervals:
                low, high = max(intervals[j].lo, low), min(intervals[j].hi, high)
            middle = np.float32((low + high) / 2)
            row[j] = np.ceil(low) if is_integer[j] else middle  # rejected below if outside the box
        is_of_rule = rules.assign(row[None])[0] == rule_index
        if is_of_rule and model.predict(row[None])[0] != rule.output:
            return row
    return None


def compare(table: str, model_name: str, seconds: float) -> dict[str, Any]:
    """Count the rules of a model with a witness by VERITAS and by our verification."""
    import veritas

    X, y = load_numbers(table)
    model = MODELS[model_name](n_estimators=N_TREES, random_state=0).fit(X, y)
    extractor = CARTExtractor(model, max_leaf_nodes=MAX_RULES, simplify=False, random_state=0)
    rules = extractor.fit(X).rules_
    start = time.process_time()
    limits = VerificationLimits(time_limit=seconds, clock="cpu")
    result = verify(rules, model, X, limits=limits)
    our_rules = {
        rule.index for rule in result.rules if rule.witness is not None and rule.index >= 0
    }
    our_seconds = time.process_time() - start
    start = time.process_time()
    ensemble = veritas.get_addtree(model, silent=True)
    is_integer = (np.round(X) == X).all(axis=0)
    peer_rules = {
        k
        for k in range(len(rules))
        if find_peer_witness(model, rules, k, ensemble, is_integer) is not None
    }
    return {
        "table": table,
        "model": model_name,
        "rows": len(X),
        "columns": X.shape[1],
        "rules": len(rules),
        "veritas": len(peer_rules),
        "ours": len(our_rules),
        "only_veritas": len(peer_rules - our_rules),
        "veritas_cpu_seconds": round(time.process_time() - start, 1),
        "our_cpu_seconds": round(our_seconds, 1),
    }


def main() -> int:
    """Compare on all tables, and write one line per table and model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="time limit of our verification"
    )
    parser.add_argument("--csv", type=Path, default=FOLDER / "veritas.csv")
    options = parser.parse_args()
    lines = pd.read_csv(options.csv).to_dict("records") if options.csv.exists() else []
    finished = {(line["table"], line["model"]) for line in lines}
    for table, model_name in itertools.product(TABLES, MODELS):
        if (table, model_name) in finished:
            continue
        lines.append(compare(table, model_name, options.seconds))
        print(lines[-1], flush=True)
        pd.DataFrame(lines).to_csv(options.csv, index=False)
    return int(any(line["only_veritas"] for line in lines))


if __name__ == "__main__":
    sys.exit(main())
