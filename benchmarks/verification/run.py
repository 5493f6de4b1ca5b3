"""Measure how precisely rules can be verified against forests and boosting models of 100 trees.

    python benchmarks/verification/run.py [--tables NAME ...] [--models NAME ...] [--seconds 60]
        [--clock wall|cpu] [--rules search|cart] [--fresh-rows 1000000] [--folder DIR] [--csv FILE]
    python benchmarks/verification/run.py --page

Ten tables are from KEEL, ten from the packages of `tox -e tables`. Tables with more than 2000 rows
are sampled. On each table, a model is fitted, and rules are extracted (`search`: the default search
with at most 8 rules; `cart`: CART with 8 leaves) and verified. Each line of the CSV has the bounds
of the disagreement near the data and by volume, the share of rules whose trusted part contains at
least 25 % of their rows, the number of statements contradicted by fresh rows, and the disagreement
on other generated rows before and after `refine`. Results are added to the CSV (by default
`results.csv` next to the script) after each model, and existing results are skipped. `--page` only
writes `results.md` next to the CSV.
"""

from __future__ import annotations

import argparse
import itertools
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
MAX_ROWS, MAX_RULES, MIN_TRUSTED_SHARE = 2000, 8, 0.25


def load_table(name: str, folder: Path) -> Dataset:
    """Load a table of KEEL or of a Python package."""
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
    """Extract rules from a model."""
    frozen = FrozenEstimator(model)
    if method == "cart":
        return CARTExtractor(frozen, max_leaf_nodes=MAX_RULES, random_state=0).fit(data.X).rules_
    search = ExtractorSearchCV(frozen, max_rules=MAX_RULES, random_state=0)
    return search.fit(data.X, data.y).rules_


def measure(data: Dataset, model_name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Extract, verify and refine the rules of a model; return the measurements."""
    model = make_black_box(model_name, data.task, 0, data.categories).fit(data.X, data.y)
    rules = extract(data, model, options.rules)
    limits = VerificationLimits(time_limit=options.seconds, clock=options.clock)
    wall_start, cpu_start = time.monotonic(), time.process_time()
    result = verify(rules, model, data.X, limits=limits)
    seconds, cpu_seconds = time.monotonic() - wall_start, time.process_time() - cpu_start
    check = check_verification(
        result.to_json(), model, data.X, max_cells=1, n_rows=options.fresh_rows
    )
    refined = refine(rules, result, model, data.X)
    share_before, share_after = measure_disagreements(data, model, result, [rules, refined])
    used_rules = [rule for rule in result.rules if rule.near_rows > 0]
    is_trusted = [
        r.trusted is not None and r.trusted.row_share >= MIN_TRUSTED_SHARE for r in used_rules
    ]
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
        "largest_near_width": max(
            (rule.near_disagreement.width for rule in used_rules), default=0.0
        ),
        "trusted_rules": float(np.mean(is_trusted)),
        "rules_without_witness": sum(rule.witness is None for rule in used_rules),
        "contradictions": len(check.findings),
        "refined_rules": len(refined),
        "near_before_refine": share_before,
        "near_after_refine": share_after,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
    }


def measure_disagreements(
    data: Dataset, model: Any, result: Verification, rule_sets: list[Any]
) -> list[float]:
    """Return the disagreement of rule sets with the model on other rows near the data."""
    from skescore.extractors import Oracle

    rng = np.random.default_rng(99)
    rows = data.X.iloc[rng.integers(0, len(data.X), 50_000)].reset_index(drop=True)
    for column in result.domain:
        if column["kind"] == "category":
            continue
        values = data.X[column["name"]].to_numpy(float)
        distance = result.radius * np.nanstd(values)
        origin = rows[column["name"]].to_numpy(float)
        low = np.maximum(origin - distance, np.nanmin(values))
        high = np.minimum(origin + distance, np.nanmax(values))
        moved_values = low + rng.random(len(rows)) * (high - low)
        if column["kind"] == "integer":
            low, high = np.ceil(low), np.floor(high)
            moved_values = np.minimum(
                low + np.floor(rng.random(len(rows)) * (high - low + 1)), high
            )
            moved_values = moved_values.astype(data.X[column["name"]].dtype)
        rows[column["name"]] = moved_values
    predictions = Oracle(model, like=data.X).query(rows)
    shares = []
    for rules in rule_sets:
        outputs = rules.predict(rows)
        is_wrong = predictions != outputs
        if result.tolerance is not None:
            is_wrong = np.abs(predictions - outputs) > result.tolerance
        shares.append(float(np.mean(is_wrong)))
    return shares


def write_page(path: Path) -> None:
    """Write the page of results and the comparison with VERITAS next to the CSV."""
    results = pd.read_csv(path)
    n_trusted = results["trusted_rules"] * results["n_rules"]
    changes = results["near_after_refine"] - results["near_before_refine"]
    by_table = changes.groupby(results["table"])
    n_lists, n_tables = len(results), results["table"].nunique()
    lines = [
        "# Verification of rules",
        "",
        "Measured by `python benchmarks/verification/run.py --clock cpu` and written by",
        "`python benchmarks/verification/run.py --page`: models of 100 trees, rules of the default "
        "search with at",
        f"most {MAX_RULES} rules, 60 CPU seconds per rule list on one core. `results.csv` has all "
        "figures.",
        "",
        f"{n_lists} of 40 rule lists on {n_tables} of 20 tables; "
        f"{(results['engine'] == 'leaf boxes').sum()} models read exactly."
        + (" The others have not been measured." if n_lists < 40 else ""),
        "",
        "| target | reached |",
        "| --- | --- |",
        _target_row("width near the data at most .01", results["near_width"] <= 0.01),
        _target_row("width by volume at most .02", results["volume_width"] <= 0.02),
        f"| trusted part with 25 % of the rows, for half of the rules | {n_trusted.sum():.0f} of "
        f"{results['n_rules'].sum()} rules |",
        f"| no statement contradicted by 10⁶ fresh rows | {results['contradictions'].sum()} "
        "contradictions |",
        f"| less disagreement near the data after `refine` with at most 2 more rules | lower on "
        f"{(changes < 0).sum()} lists ({(by_table.mean() < 0).sum()} tables), equal on "
        f"{(changes == 0).sum()}, higher on {(changes > 0).sum()} |",
        "",
        f"Largest widths: {results['near_width'].max():.4f} near the data, "
        f"{results['volume_width'].max():.4f} by volume. Mean disagreement near the data: "
        f"{results['near_before_refine'].mean():.4f} before `refine`, "
        f"{results['near_after_refine'].mean():.4f} after.",
        f"CPU seconds per list: mean {results['cpu_seconds'].mean():.1f}, largest "
        f"{results['cpu_seconds'].max():.1f}. Rules without a witness, whether or not they "
        f"disagree with the model: {results['rules_without_witness'].sum()}.",
        "",
        "*near* and *volume* are the intervals of disagreement with confidence 1 − 10⁻⁶; *trusted* "
        "is the share of rules whose",
        "trusted part contains at least 25 % of their rows; *before* and *after* are disagreements "
        "on 50,000 generated rows.",
        "",
        "| table | model | rows × columns | rules | near | volume | trusted | before | after "
        "| CPU s |",
        "| --- | --- | --- | --: | --- | --- | --: | --: | --: | --: |",
    ]
    for row in results.sort_values(["table", "model"]).to_dict("records"):
        lines.append(
            f"| {row['table']} | {row['model']} | {row['n_rows']} × {row['n_features']} "
            f"| {row['n_rules']} | {row['near_lower']:.4f} – {row['near_upper']:.4f} "
            f"| {row['volume_lower']:.4f} – {row['volume_upper']:.4f} "
            f"| {row['trusted_rules']:.2f} | {row['near_before_refine']:.4f} "
            f"| {row['near_after_refine']:.4f} | {row['cpu_seconds']:.1f} |"
        )
    if (peer := path.with_name("veritas.csv")).exists():
        lines += peer_section(pd.read_csv(peer))
    path.with_name("results.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _target_row(target: str, reached: pd.Series) -> str:
    """Return the row of a target that each rule list can reach."""
    return f"| {target} | {reached.sum()} of {len(reached)} lists |"


def peer_section(peer: pd.DataFrame) -> list[str]:
    """Return the lines of the comparison with VERITAS."""
    lines = [
        "",
        "## Witnesses of VERITAS",
        "",
        "Measured by `python benchmarks/verification/veritas_peer.py`: random forests and gradient "
        "boosting of 100 trees, numeric",
        "columns, 8 leaves of CART, 2 seconds of VERITAS per rule and 10 CPU seconds of our "
        "verification per list. A row counts if it is valid,",
        "belongs to the rule, and the model contradicts the rule there. VERITAS maximizes the "
        "output, and many of its solutions are",
        "not integers in integer columns, so this is not a comparison of solvers.",
        "",
        f"VERITAS has a witness for {peer['veritas'].sum()} of {peer['rules'].sum()} rules, our "
        f"verification for {peer['ours'].sum()}. For {peer['only_veritas'].sum()} rules, only "
        "VERITAS has one.",
        "",
        "| table | model | rows × columns | rules | VERITAS | ours | VERITAS only |",
        "| --- | --- | --- | --: | --: | --: | --: |",
    ]
    return lines + [
        f"| {row['table']} | {row['model']} | {row['rows']} × {row['columns']} | {row['rules']} "
        f"| {row['veritas']} | {row['ours']} | {row['only_veritas']} |"
        for row in peer.to_dict("records")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=[*KEEL, *SHIPPED_TABLES])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--rules", choices=("search", "cart"), default="search")
    parser.add_argument("--fresh-rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--csv", type=Path, default=Path(__file__).parent / "results.csv")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        write_page(options.csv)
        return
    warnings.simplefilter("ignore")
    records = pd.read_csv(options.csv).to_dict("records") if options.csv.exists() else []
    finished = {(record["table"], record["model"]) for record in records}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for name, model in itertools.product(options.tables, options.models):
            if (name, model) in finished:
                continue
            figures = measure(load_table(name, folder), model, options)
            records.append({"table": name, "model": model, "rules": options.rules, **figures})
            print(pd.Series(records[-1]).to_frame().T.to_string(header=True), flush=True)
            pd.DataFrame(records).to_csv(options.csv, index=False, float_format="%.6g")
    write_page(options.csv)


if __name__ == "__main__":
    main()
