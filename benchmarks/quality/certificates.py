"""Certify the ICE score on the balanced KEEL tables, with a random forest as black box.

    python benchmarks/quality/certificates.py [--seconds 600] [--kinds tree list] [--check 60]
        [--cuts 8] [--features N] [--only NAME ...]

The tables are the complete tables of `skescore bench --suite keel-balanced`. Rows with missing
values are dropped, and texts are encoded as numbers in alphabetical order.

Prints a Markdown table, the smallest tables first, with these columns:

- rows, features, and cuts per feature (the cuts of CART's rules are always added; `--features`
  restricts the cuts to the features with the largest importance in the forest),
- ICE(1, 1) of the best known rules: the solver's rules, or the CART rules with the best size,
- the gap: how much larger ICE can be for rules of the same kind and any size (rules larger than the
  searched sizes are assumed to make no errors),
- the best rules of the kind that any method finds, with arbitrary cuts,
- wall time and CPU time in seconds,
- with `--check`, the verdict of the checker and its seconds.

The rows are also written to `certificates.csv`, from which the page `certificates.md` is made.

A certificate counts only if its space has at least 8 cuts of every feature and no rules of any
method exceed its bound, because a bound over few cuts does not cover rules with other cuts.
`tests/certificates/test_measured_certificates.py` checks the counts of the page.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from skescore.bench import suite_config
from skescore.certificates import certify, check_certificate
from skescore.datasets import read_packaged
from skescore.extractors import CARTExtractor, CREAMExtractor, ExACTExtractor
from skescore.metrics import ice_score
from skescore.optimal import Cuts, SearchSpace, SolverLimits, candidate_cuts
from skescore.rules import as_ruleset
from skescore.scorers import make_score_scorer

CSV = Path(__file__).with_name("certificates.csv")
COLUMNS = ("table", "kind", "cuts", "features", "size", "certified", "gap", "best", "method")
#: Smallest number of cuts per feature for a certificate to count.
MIN_CUTS = 8
#: Largest gap of a certificate that counts.
MAX_GAP = 0.005
#: Upper limit (exclusive) of the numbers of leaves of CART.
CART_LEAVES = 12


def read_table(source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features of a table as numbers, and its classes as codes."""
    table, target = read_packaged(source)
    table = table.dropna()
    codes = table.apply(
        lambda column: (
            column
            if pd.api.types.is_numeric_dtype(column)
            else pd.factorize(column.astype(str), sort=True)[0]
        )
    )
    classes = pd.factorize(table[target], sort=True)[0]
    return codes.drop(columns=target).to_numpy(float), classes


def best_known_rules(kind: str, X: np.ndarray, forest: Any) -> tuple[float, str]:
    """Return the largest ICE of rules of a kind with arbitrary cuts, and their method."""
    labels = forest.predict(X)
    candidates: dict[str, Any] = {}
    if kind == "tree":
        for criterion in ("gini", "entropy"):
            for size in range(2, 17):
                tree = DecisionTreeClassifier(
                    criterion=criterion, max_leaf_nodes=size, random_state=0
                )
                candidates[f"scikit-learn {criterion}, {size} leaves"] = tree.fit(X, labels)
    box = FrozenEstimator(forest)
    for size in range(1, CART_LEAVES):
        candidates[f"CART, {size} leaves"] = CARTExtractor(
            box, max_leaf_nodes=size, random_state=0
        ).fit(X)
    if kind == "list":
        candidates["CREAM"] = CREAMExtractor(box, random_state=0).fit(X)
        candidates["ExACT"] = ExACTExtractor(box, random_state=0).fit(X)
    scorer = make_score_scorer("ice")
    scores = {}
    for name, candidate in candidates.items():
        rules = as_ruleset(candidate)
        is_of_kind = kind == "tree" or all(rule.n_literals <= 2 for rule in rules.rules)
        if is_of_kind:
            scores[name] = float(scorer(rules.replace(domain=None), X, labels))
    best = max(scores, key=scores.__getitem__)
    return scores[best], best


def is_counted(row: Mapping[str, Any]) -> bool:
    """Return whether a certificate counts (enough cuts, a small gap, no better rules)."""
    has_enough_cuts = int(row["cuts"]) >= MIN_CUTS and not row["features"]
    bound = float(row["certified"]) + max(float(row["gap"]), 0.0)
    return (
        has_enough_cuts
        and float(row["gap"]) <= MAX_GAP + 1e-9
        and float(row["best"]) <= bound + 1e-9
    )


def append_row(row: Mapping[str, Any]) -> None:
    """Write a row; it replaces an earlier row of the same table, kind and space."""
    keys = ("table", "kind", "cuts", "features")
    rows = []
    if CSV.exists():
        with CSV.open(newline="", encoding="utf-8") as file:
            rows = [r for r in csv.DictReader(file) if any(r[k] != str(row[k]) for k in keys)]
    with CSV.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*rows, row])


def write_page() -> None:
    """Write the page from all rows."""
    with CSV.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = [
        "# Certificates of KEEL tables",
        "",
        "Written by `python benchmarks/quality/certificates.py` from "
        "[certificates.csv](certificates.csv). *Cuts* is the number of cuts per feature, to which "
        "the cuts of CART's rules are added. *Rules* is the largest number of rules searched: "
        "larger rule sets, even without errors, would exceed the ICE of CART's rules by at most "
        f"{MAX_GAP}. *ICE* is the score of the best rules found in this space, with the "
        "predictions of a random forest as labels. *Gap* is a proven bound on how much larger the "
        "ICE of other trees (or lists) over these cuts can be, whatever their number of rules. "
        "*Best* is the score of the best rules that any method found, with arbitrary cuts: trees "
        "of scikit-learn with 2 to 16 leaves by Gini and entropy, our CART with 1 to 11 leaves, "
        "and, for lists, CREAM and ExACT with at most 2 conditions per rule.",
        "",
    ]
    for kind in ("tree", "list"):
        part = [row for row in rows if row["kind"] == kind]
        if not part:
            continue
        n_counted = sum(map(is_counted, part))
        text = (
            f"{kind.capitalize()}s: {n_counted} of {len(part)} certificates count. They have at "
            f"least {MIN_CUTS} cuts of every feature and a gap of at most {MAX_GAP}, and no rules "
            "of any method exceed their bound."
        )
        lines += [text, "", "| table | cuts | rules | ICE | gap | best | by | counts |"]
        lines.append("| :-- | --: | --: | --: | --: | --: | :-- | :-- |")
        for row in part:
            cuts = row["cuts"] + (f" of {row['features']}" if row["features"] else "")
            figures = " | ".join(f"{float(row[c]):.4f}" for c in ("certified", "gap", "best"))
            verdict = "yes" if is_counted(row) else "no"
            cells = f"{cuts} | {row['size']} | {figures} | {row['method']} | {verdict}"
            lines.append(f"| {row['table']} | {cells} |")
        lines.append("")
    CSV.with_suffix(".md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="time limit of each proof")
    parser.add_argument("--kinds", nargs="+", choices=["tree", "list"], default=["tree", "list"])
    parser.add_argument("--check", type=float, help="time limit of each check in seconds")
    parser.add_argument("--cuts", type=int, default=8, help="number of cuts per feature")
    parser.add_argument("--features", type=int, help="number of features with cuts (default: all)")
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sources = [str(entry.source) for entry in suite_config("keel-balanced").data]
    tables = {
        source.rpartition("/")[2]: read_table(source)
        for source in sources
        if not options.only or source.rpartition("/")[2] in options.only
    }
    more = "" if options.check is None else " check | seconds |"
    print(
        f"| table | rows | features | cuts | kind | rules | ICE found | gap | best of any | by "
        f"| counts | seconds | CPU |{more}"
    )
    print(
        f"| :-- | --: | --: | --: | :-- | --: | --: | --: | --: | :-- | :-- | --: | --: |"
        f"{more and ' :-- | --: |'}",
        flush=True,
    )
    confirmed = dict.fromkeys(options.kinds, 0)
    narrow = dict.fromkeys(options.kinds, 0)
    for name, (X, y) in sorted(tables.items(), key=lambda item: item[1][0].size):
        forest = RandomForestClassifier(random_state=0).fit(X, y)
        scorer = make_score_scorer("ice", reference="black_box")
        rules = max(
            (
                CARTExtractor(forest, max_leaf_nodes=n, random_state=0).fit(X)
                for n in range(2, CART_LEAVES)
            ),
            key=lambda extractor: scorer(extractor, X),
        )
        score = scorer(rules, X)
        size = next(r for r in range(1, 30) if ice_score(1.0, r + 1, 1.0) <= score + MAX_GAP)
        all_cuts = candidate_cuts(X, options.cuts)
        chosen = np.argsort(-forest.feature_importances_)[: options.features].tolist()
        cuts = Cuts(X.shape[1], {j: all_cuts.thresholds[j] for j in sorted(chosen)}, {})
        for kind in options.kinds:
            began, used = time.perf_counter(), time.process_time()
            certificate = certify(
                rules,
                X,
                space=SearchSpace(size, cuts=options.cuts if options.features is None else cuts),
                kinds=[kind],
                tolerance=MAX_GAP,
                limits=SolverLimits(time_limit=options.seconds),
            )
            seconds, used = time.perf_counter() - began, time.process_time() - used
            reached, possible = certificate.interval(kind)
            reached = max(reached, certificate.given_score())
            gap = max(possible, ice_score(1.0, size + 1, 1.0)) - reached
            gap = max(gap, 0.0)
            best, method = best_known_rules(kind, X, forest)
            row = {
                "table": name,
                "kind": kind,
                "cuts": options.cuts,
                "features": options.features or "",
                "size": size,
                "certified": f"{reached:.6f}",
                "gap": f"{gap:.6f}",
                "best": f"{best:.6f}",
                "method": method,
            }
            append_row(row)
            narrow[kind] += is_counted(row)
            cuts_text = f"{options.cuts}" + (f" of {options.features}" if options.features else "")
            checked = ""
            if options.check is not None:
                began = time.perf_counter()
                y_box, limit = forest.predict(X), options.check
                verdict = check_certificate(
                    certificate.to_json(), X, y_box, time_limit=limit
                ).verdict
                confirmed[kind] += verdict == "confirmed"
                checked = f" {verdict} | {time.perf_counter() - began:.1f} |"
            print(
                f"| {name} | {X.shape[0]} | {X.shape[1]} | {cuts_text} | {kind} | {size} "
                f"| {reached:.4f} | {gap:.4f} | {best:.4f} | {method} "
                f"| {'yes' if is_counted(row) else 'no'} | {seconds:.1f} | {used:.1f} |{checked}",
                flush=True,
            )
    write_page()
    for kind, count in narrow.items():
        print(
            f"\n{kind}: {count} of {len(tables)} certificates count: at least {MIN_CUTS} cuts of "
            f"every feature, a gap of at most {MAX_GAP}, no rules of any method exceed the bound."
        )
        if options.check is not None:
            print(f"{kind}: the checker confirms {confirmed[kind]} certificates.")


if __name__ == "__main__":
    main()
