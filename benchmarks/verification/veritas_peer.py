"""Witnesses that VERITAS knows, and whether our verification has one for the same rule.

    python benchmarks/verification/veritas_peer.py [--seconds 10]     (needs dtai-veritas)

VERITAS (Devos, Meert and Davis, ICML 2021) searches the box of a rule for the largest or smallest
output of a random forest or gradient boosting of 100 trees. A row of its solution is a witness if
it belongs to the rule and the model, when called, predicts the other class. The tables are those of
KEEL with numbers and two classes; the rules are the leaves of CART, whose regions are boxes.
Columns that hold no numbers are left out. `veritas.csv` has one line per table and model; those in
the file are not measured again. The exit code is 1 if VERITAS has a witness for a rule for which
our verification has none.
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

HERE = Path(__file__).parent
TABLES = (
    *("australian", "bupa", "german", "heart", "mammographic"),
    *("phoneme", "wdbc", "pima", "sonar", "ionosphere"),
)
MAX_ROWS, MAX_RULES, N_TREES = 2000, 8, 100
MODELS = {
    "random-forest": RandomForestClassifier,
    "gradient-boosting": GradientBoostingClassifier,
}
#: Seconds of VERITAS for each rule.
PEER_SECONDS = 2.0


def load_numbers(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Load the complete rows of the numeric columns of a table of KEEL."""
    data = load_dataset(f"keel:balanced/{name}")
    if len(data.X) > MAX_ROWS:
        data = load_dataset(f"keel:balanced/{name}", sample=MAX_ROWS)
    X = data.X.select_dtypes("number")
    is_complete = X.notna().all(axis=1)
    labels = pd.factorize(data.y[is_complete], sort=True)[0]
    # VERITAS and the forests of scikit-learn compare 32-bit numbers.
    return X[is_complete].to_numpy(np.float32).astype(float), labels


def find_peer_witness(
    model: Any, rules: RuleSet, k: int, at: Any, is_whole: np.ndarray
) -> np.ndarray | None:
    """Return a row of a rule on which the model predicts the other class, or None.

    Columns of whole numbers get whole numbers, as a valid row has.
    """
    import veritas

    rule, domain = rules.rules[k], rules.domain
    bounds = {j: [domain.lower[j], domain.upper[j]] for j in range(rules.n_features)}
    for condition in rule.conditions:
        low, high = bounds[condition.feature]
        if isinstance(condition, Interval):
            bounds[condition.feature] = [max(low, condition.lower), min(high, condition.upper)]
        else:  # one value of two
            bounds[condition.feature] = [condition.values[0], condition.values[0]]
    box = [
        # Intervals of VERITAS exclude their upper end.
        veritas.Interval(np.float32(low), np.nextafter(np.float32(high), np.float32(np.inf)))
        for low, high in bounds.values()
    ]
    is_one = rule.output == 1
    kind = veritas.HeuristicType
    config = veritas.Config(kind.MIN_OUTPUT if is_one else kind.MAX_OUTPUT)
    search = config.get_search(at, box)
    search.step_for(PEER_SECONDS, 1000)
    for i in range(search.num_solutions()):
        intervals = search.get_solution(i).box()
        row = np.empty(len(bounds))
        for j, (low, high) in bounds.items():
            if j in intervals:
                low, high = max(intervals[j].lo, low), min(intervals[j].hi, high)
            middle = np.float32((low + high) / 2)
            row[j] = np.ceil(low) if is_whole[j] else middle  # rejected below if beyond the box
        is_of_rule = rules.assign(row[None])[0] == k
        if is_of_rule and model.predict(row[None])[0] != rule.output:
            return row
    return None


def compare(table: str, model_name: str, seconds: float) -> dict[str, Any]:
    """Return how many rules of a model have a witness, by VERITAS and by our verification."""
    import veritas

    X, y = load_numbers(table)
    model = MODELS[model_name](n_estimators=N_TREES, random_state=0).fit(X, y)
    extractor = CARTExtractor(model, max_leaf_nodes=MAX_RULES, simplify=False, random_state=0)
    rules = extractor.fit(X).rules_
    begin = time.process_time()
    limits = VerificationLimits(time_limit=seconds, clock="cpu")
    result = verify(rules, model, X, limits=limits)
    ours = {rule.index for rule in result.rules if rule.witness is not None and rule.index >= 0}
    our_seconds = time.process_time() - begin
    begin = time.process_time()
    at = veritas.get_addtree(model, silent=True)
    is_whole = (np.round(X) == X).all(axis=0)
    peers = {
        k for k in range(len(rules)) if find_peer_witness(model, rules, k, at, is_whole) is not None
    }
    return {
        "table": table,
        "model": model_name,
        "rows": len(X),
        "columns": X.shape[1],
        "rules": len(rules),
        "veritas": len(peers),
        "ours": len(ours),
        "only_veritas": len(peers - ours),
        "veritas_cpu_seconds": round(time.process_time() - begin, 1),
        "our_cpu_seconds": round(our_seconds, 1),
    }


def main() -> int:
    """Compare on all tables, and write one line per table and model."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of our verification")
    parser.add_argument("--csv", type=Path, default=HERE / "veritas.csv")
    options = parser.parse_args()
    lines = pd.read_csv(options.csv).to_dict("records") if options.csv.exists() else []
    measured = {(line["table"], line["model"]) for line in lines}
    for table, model_name in itertools.product(TABLES, MODELS):
        if (table, model_name) in measured:
            continue
        lines.append(compare(table, model_name, options.seconds))
        print(lines[-1], flush=True)
        pd.DataFrame(lines).to_csv(options.csv, index=False)
    return int(any(line["only_veritas"] for line in lines))


if __name__ == "__main__":
    sys.exit(main())
