"""The benchmark of certificates: which ones count, and that no rules exceed the claims."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

from skescore import CARTExtractor
from skescore.certificates import certify
from skescore.metrics import ice_score
from skescore.optimal import SearchSpace

QUALITY = Path(__file__).parents[2] / "benchmarks" / "quality"
sys.path.append(str(QUALITY))

from certificates import is_counted  # noqa: E402

ROWS = list(csv.DictReader((QUALITY / "certificates.csv").read_text("utf-8").splitlines()))
PAGE = (QUALITY.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["tree", "list"])
def test_benchmark_page_counts_certificates(kind):
    rows = [row for row in ROWS if row["kind"] == kind]
    n_tables = len({row["table"] for row in rows})
    n_counted = sum(map(is_counted, rows))
    match = re.search(rf"{kind}s?: (\d+) of (\d+) certificates count", PAGE, flags=re.I)
    assert (int(match[1]), int(match[2])) == (n_counted, n_tables)


def test_benchmark_counts_no_exceeded_certificates():
    """A certificate must not count if any rules exceed its bound."""
    for row in filter(is_counted, ROWS):
        assert float(row["best"]) <= float(row["certified"]) + float(row["gap"]) + 1e-9, row
        assert int(row["cuts"]) >= 8, row
        assert not row["features"], row
    exceeded = {"cuts": "8", "features": "", "certified": "0.9", "gap": "0.001", "best": "0.95"}
    assert not is_counted(exceeded)
    assert is_counted(exceeded | {"best": "0.9005"})
    assert not is_counted(exceeded | {"best": "0.9", "cuts": "1"})
    assert not is_counted(exceeded | {"best": "0.9", "features": "4"})


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_certificate_bound_holds_for_trees_with_any_cuts(load):
    X, y = load(return_X_y=True)
    forest = RandomForestClassifier(30, random_state=0).fit(X, y)
    labels = forest.predict(X)
    rules = CARTExtractor(FrozenEstimator(forest), max_leaf_nodes=3, random_state=0).fit(X)
    certificate = certify(rules, X, space=SearchSpace(4, cuts=8), kinds=["tree"], tolerance=0.005)
    bound = max(certificate.interval("tree")[1], ice_score(1.0, 5, 1.0))
    best = 0.0
    for criterion in ("gini", "entropy"):
        for size in range(2, 17):
            tree = DecisionTreeClassifier(
                criterion=criterion, max_leaf_nodes=size, random_state=0
            ).fit(X, labels)
            f1 = f1_score(labels, tree.predict(X), average="weighted")
            best = max(best, ice_score(f1, int(tree.get_n_leaves()), 1.0))
    assert 0.9 < best <= bound + 1e-9
    assert np.isfinite(bound)
