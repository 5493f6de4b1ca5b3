"""How close certificates come on the balanced KEEL tables, with a random forest as black box.

    python benchmarks/quality/certificates.py [--seconds 600] [--kinds tree list] [--check 60]
        [--cuts 8] [--features N] [--only NAME ...]

The tables are those of `skescore bench --suite keel-balanced`, whole, which pip fetches once; rows
with gaps are left out, and texts are numbered in the order of the alphabet.

Prints a Markdown table, the smallest tables first: rows, cuts per feature (beside those of CART's
rules; with `--features` of those features only that matter most to the forest), ICE(1, 1) of the
best rules known (found, or CART's, of as many leaves as are best, which were given), the gap up to
which ICE may be greater for rules of the kind (of any size: those beyond the sizes that were
searched count as free of errors), and seconds, by the clock and of processors. With `--check` also
what the checker says of each certificate, and its seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from skescore.bench import suite_config
from skescore.certificates import certify, check_certificate
from skescore.datasets import read_packaged
from skescore.extractors import CARTExtractor
from skescore.metrics import ice_score
from skescore.optimal import Cuts, SearchSpace, SolverLimits, candidate_cuts
from skescore.scorers import make_score_scorer

#: A gap that is narrow enough.
NARROW = 0.005
#: Most leaves of CART's rules.
LEAVES = 12


def read(source: str) -> tuple[np.ndarray, np.ndarray]:
    """The features of a table as numbers, and the numbers of its classes."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="of each proof")
    parser.add_argument("--kinds", nargs="+", choices=["tree", "list"], default=["tree", "list"])
    parser.add_argument("--check", type=float, help="most seconds of each check")
    parser.add_argument("--cuts", type=int, default=8, help="per feature")
    parser.add_argument("--features", type=int, help="how many are cut; by default all")
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sources = [str(entry.source) for entry in suite_config("keel-balanced").data]
    tables = {
        source.rpartition("/")[2]: read(source)
        for source in sources
        if not options.only or source.rpartition("/")[2] in options.only
    }
    more = "" if options.check is None else " check | seconds |"
    print(
        f"| table | rows | features | cuts | kind | rules | ICE found | gap | seconds | CPU |{more}"
    )
    print(
        f"| :-- | --: | --: | --: | :-- | --: | --: | --: | --: | --: |{more and ' :-- | --: |'}",
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
                for n in range(2, LEAVES)
            ),
            key=lambda extractor: scorer(extractor, X),
        )
        score = scorer(rules, X)
        size = next(r for r in range(1, 30) if ice_score(1.0, r + 1, 1.0) <= score + NARROW)
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
                tolerance=NARROW,
                limits=SolverLimits(time_limit=options.seconds),
            )
            seconds, used = time.perf_counter() - began, time.process_time() - used
            reached, possible = certificate.interval(kind)
            reached = max(reached, certificate.given_score())
            gap = max(possible, ice_score(1.0, size + 1, 1.0)) - reached
            gap = max(gap, 0.0)
            narrow[kind] += gap <= NARROW + 1e-9
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
                f"| {reached:.4f} | {gap:.4f} | {seconds:.1f} | {used:.1f} |{checked}",
                flush=True,
            )
    for kind, count in narrow.items():
        print(f"\n{kind}: a gap of at most {NARROW} on {count} of {len(tables)} tables.")
        if options.check is not None:
            print(f"{kind}: the checker confirms {confirmed[kind]} certificates.")


if __name__ == "__main__":
    main()
