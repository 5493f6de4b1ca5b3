"""Measure how much of rules can be verified against forests and boosters of 100 trees.

    python benchmarks/verification/run.py [--tables NAME ...] [--models NAME ...] [--seconds 60]
        [--clock wall|cpu] [--rules search|cart] [--fresh-rows 1000000] [--folder DIR] [--csv FILE]

Ten tables are from KEEL, ten from the packages of `tox -e tables`; of more than 2000 rows, 2000 are
drawn. On each table a model is fitted, rules are extracted (`search`: the default search with at
most 8 rules; `cart`: CART with 8 leaves), and verified. Each line of the CSV has the bounds of the
disagreement near the data and by volume, the share of rules whose trusted part holds at least 25 %
of their rows, the statements that fresh rows contradict, and the disagreement on other generated
rows before and after `refine`. With --csv, tables that are already in the file are skipped, and
`python benchmarks/verification/run.py --summary FILE` prints the summary.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator

sys.path.insert(0, str(Path(__file__).parents[1] / "tables"))

from skescore.black_boxes import make_black_box
from skescore.datasets import Dataset, load_dataset
from skescore.extractors import CARTExtractor
from skescore.tuning import ExtractorSearchCV
from skescore.verification import (
    Verification,
    VerificationLimits,
    check_verification,
    refine,
    verify,
)

KEEL = (
    "australian",
    "breast",
    "bupa",
    "german",
    "heart",
    "iris",
    "mammographic",
    "phoneme",
    "titanic",
    "wdbc",
)
SHIPPED_TABLES = (
    "titanic_people.csv",
    "penguins.csv",
    "tips.csv",
    "mpg.csv",
    "taxi.csv",
    "diamonds.csv",
    "flights.csv",
    "adult.csv",
    "german_credit.csv",
    "titanic.csv",
)
MODELS = ("random-forest", "hist-gradient-boosting")
MAX_ROWS, MAX_RULES, ENOUGH_ROWS = 2000, 8, 0.25


def load(name: str, folder: Path) -> Dataset:
    """Load a table of KEEL, or one that a package ships."""
    if name in KEEL:
        data = load_dataset(f"keel:balanced/{name}")
        if len(data.X) > MAX_ROWS:
            data = load_dataset(f"keel:balanced/{name}", sample=MAX_ROWS)
        return data
    from shipped import SHIPPED

    request = SHIPPED[name](folder / name, folder)
    data = load_dataset(request.path, target=request.target)
    if len(data.X) > MAX_ROWS:
        data = load_dataset(request.path, target=request.target, sample=MAX_ROWS)
    return data


def extract(data: Dataset, model: Any, method: str) -> Any:
    """Return rules of the model."""
    frozen = FrozenEstimator(model)
    if method == "cart":
        return CARTExtractor(frozen, max_leaf_nodes=MAX_RULES, random_state=0).fit(data.X).rules_
    search = ExtractorSearchCV(frozen, max_rules=MAX_RULES, random_state=0)
    return search.fit(data.X, data.y).rules_


def measure(data: Dataset, model_name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Verify and repair the rules of a model; return the figures."""
    model = make_black_box(model_name, data.task, 0, data.categories).fit(data.X, data.y)
    rules = extract(data, model, options.rules)
    limits = VerificationLimits(time_limit=options.seconds, clock=options.clock)
    begin, begin_cpu = time.monotonic(), time.process_time()
    result = verify(rules, model, data.X, limits=limits)
    seconds, cpu_seconds = time.monotonic() - begin, time.process_time() - begin_cpu
    check = check_verification(
        result.to_json(), model, data.X, max_cells=1, n_rows=options.fresh_rows
    )
    better = refine(rules, result, model, data.X)
    before, after = disagreements(data, model, result, [rules, better])
    used = [rule for rule in result.rules if rule.near_rows > 0]
    enough = [r.trusted is not None and r.trusted.row_share >= ENOUGH_ROWS for r in used]
    return {
        "engine": result.engine,
        "n_rows": len(data.X),
        "n_features": data.X.shape[1],
        "n_rules": len(rules),
        "near_lower": result.near_disagreement.lower,
        "near_upper": result.near_disagreement.upper,
        "near_width": result.near_disagreement.width,
        "volume_lower": result.volume_disagreement.lower,
        "volume_upper": result.volume_disagreement.upper,
        "volume_width": result.volume_disagreement.width,
        "proven_near_width": result.near_disagreement.proven_upper
        - result.near_disagreement.proven_lower,
        "largest_near_width": max((rule.near_disagreement.width for rule in used), default=0.0),
        "trusted_rules": float(np.mean(enough)),
        "rules_without_witness": sum(rule.witness is None for rule in used),
        "contradictions": len(check.findings),
        "refined_rules": len(better),
        "near_before_refine": before,
        "near_after_refine": after,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }


def disagreements(
    data: Dataset, model: Any, result: Verification, rule_sets: list[Any]
) -> list[float]:
    """Return the share of disagreement of rule sets on other rows near the data."""
    from skescore.extractors import Oracle

    rng = np.random.default_rng(99)
    rows = data.X.iloc[rng.integers(0, len(data.X), 50_000)].reset_index(drop=True)
    for column in result.domain:
        if column["kind"] == "category":
            continue
        values = data.X[column["name"]].to_numpy(float)
        reach = result.radius * np.nanstd(values)
        origin = rows[column["name"]].to_numpy(float)
        low = np.maximum(origin - reach, np.nanmin(values))
        high = np.minimum(origin + reach, np.nanmax(values))
        moved = low + rng.random(len(rows)) * (high - low)
        if column["kind"] == "integer":
            low, high = np.ceil(low), np.floor(high)
            moved = np.minimum(low + np.floor(rng.random(len(rows)) * (high - low + 1)), high)
            moved = moved.astype(data.X[column["name"]].dtype)
        rows[column["name"]] = moved
    predictions = Oracle(model, like=data.X).query(rows)
    shares = []
    for rules in rule_sets:
        outputs = rules.predict(rows)
        wrong = predictions != outputs
        if result.tolerance is not None:
            wrong = np.abs(predictions - outputs) > result.tolerance
        shares.append(float(np.mean(wrong)))
    return shares


def summary(table: pd.DataFrame) -> str:
    """Return the figures of all tables in sentences."""
    exact = table[table["engine"] == "leaf boxes"]
    changed = table["near_after_refine"] - table["near_before_refine"]
    lines = [
        f"{len(table)} rule lists on {table['table'].nunique()} tables; {len(exact)} models read "
        "exactly.",
        f"Width near the data at most .01: {(table['near_width'] <= 0.01).sum()}; by volume at "
        f"most .02: {(table['volume_width'] <= 0.02).sum()}.",
        f"Largest widths: {table['near_width'].max():.4f} and {table['volume_width'].max():.4f}.",
        f"Trusted parts with 25 % of the rows for at least half of the rules: "
        f"{(exact['trusted_rules'] >= 0.5).sum()} of {len(exact)} lists; mean share of rules "
        f"{exact['trusted_rules'].mean():.2f}.",
        f"Statements contradicted by fresh rows: {table['contradictions'].sum()}.",
        f"Refining with at most 2 more rules: lower on {(changed < 0).sum()}, higher on "
        f"{(changed > 0).sum()} lists; mean disagreement {table['near_before_refine'].mean():.4f} "
        f"before, {table['near_after_refine'].mean():.4f} after.",
        f"CPU seconds per list: mean {table['cpu_seconds'].mean():.1f}, largest "
        f"{table['cpu_seconds'].max():.1f}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=[*KEEL, *SHIPPED_TABLES])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--rules", choices=("search", "cart"), default="search")
    parser.add_argument("--fresh-rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--summary", type=Path)
    options = parser.parse_args()
    if options.summary:
        print(summary(pd.read_csv(options.summary)))
        return
    warnings.simplefilter("ignore")
    records = []
    if options.csv and options.csv.exists():
        records = pd.read_csv(options.csv).to_dict("records")
    measured = {(record["table"], record["model"]) for record in records}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for name in options.tables:
            for model in options.models:
                if (name, model) in measured:
                    continue
                figures = measure(load(name, folder), model, options)
                records.append({"table": name, "model": model, "rules": options.rules, **figures})
                print(pd.Series(records[-1]).to_frame().T.to_string(header=True), flush=True)
                if options.csv:
                    pd.DataFrame(records).to_csv(options.csv, index=False, float_format="%.6g")
    print(summary(pd.DataFrame(records)))


if __name__ == "__main__":
    main()
