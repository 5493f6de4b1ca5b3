"""The compiled kernel of the extra `fast` compared with NumPy kernels, with the real numba."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from skescore.rules import RuleSet, _compiled, as_ruleset
from skescore.rules import _matching as kernels

NAMES = [f"x{j}" for j in range(6)]


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 6))
    X[:, 3] = np.round(X[:, 3])
    X[rng.random(X.shape) < 0.01] = np.nan
    X[rng.random(X.shape) < 0.01] = np.inf
    X[rng.random(X.shape) < 0.01] = -np.inf
    X[rng.random(X.shape) < 0.01] = -0.0
    return X


@pytest.fixture(scope="module", params=[40, 300])
def ruleset(request: pytest.FixtureRequest, rows: np.ndarray) -> RuleSet:
    X = np.nan_to_num(rows[:20_000], posinf=5, neginf=-5).astype(np.float32)
    y = (X.sum(axis=1) > 0).astype(int) + (X[:, 1] * X[:, 2] > 0.5)
    tree = DecisionTreeClassifier(max_leaf_nodes=request.param, random_state=0).fit(X, y)
    return as_ruleset(tree, feature_names=NAMES, missing=True)


def test_numba_compiles_the_kernel() -> None:
    assert _compiled.IS_COMPILED
    assert len(_compiled.match_boxes.signatures) == 2


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", ["row-major", "column-major", "float32", "frame", "arrow"])
def test_compiled_kernel_equals_numpy(
    rows: np.ndarray,
    ruleset: RuleSet,
    kind: str,
    n_jobs: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pd.DataFrame(rows, columns=NAMES)
    X = {
        "row-major": rows,
        "column-major": np.asfortranarray(rows),
        "float32": rows.astype(np.float32),
        "frame": frame,
        "arrow": pa.Table.from_pandas(frame),
    }[kind]
    monkeypatch.setattr(kernels.kernel_loader, "_is_decided", True)
    monkeypatch.setattr(kernels.kernel_loader, "_kernel", None)
    expected = ruleset.assign(X)
    matched = ruleset.match(X)
    monkeypatch.setattr(kernels.kernel_loader, "_kernel", _compiled.match_boxes)
    assert (ruleset.assign(X, n_jobs=n_jobs) == expected).all()
    assert (ruleset.match(X) == matched).all()


@pytest.mark.parametrize("setting", ["0", "1"])
def test_environment_variable_decides_on_numba(setting: str) -> None:
    program = """
import sys
from skescore.rules import Fallback, Interval, Rule, RuleSet
rules = [Rule([Interval(0, upper=1)], "a")]
ruleset = RuleSet(rules, ["x", "y"], task="classification", fallback=Fallback("b"))
assert ruleset.predict([[0.5, 0.0], [1.5, 0.0]]).tolist() == ["a", "b"]
print("numba" in sys.modules)
"""
    environment = {**os.environ, "SKESCORE_NUMBA": setting}
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert output.stdout.split() == [str(setting == "1")]
