"""What the tests of writers share: arbitrary rule sets, and those of every extractor."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor


def _module(path: Path):
    # The tests are no package (--import-mode=importlib), so that files are loaded by their place.
    spec = importlib.util.spec_from_file_location(f"shared_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def arbitrary():
    """The module of arbitrary rule sets and rows."""
    return _module(Path(__file__).with_name("arbitrary.py"))


@pytest.fixture(scope="session")
def fitted():
    """The rules of every registered extractor for each of its tasks, with the rows they came from.

    A dict from (name, task) to (RuleSet, DataFrame).
    """
    extractors = _module(Path(__file__).parents[2] / "extractors" / "conftest.py")
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        rng.normal(size=(150, 3)) * [1, 10, 0.1], columns=["length (cm)", "it's wide", "class"]
    )
    y = X["length (cm)"] + X["it's wide"] / 10
    result = {}
    for name, task in extractors.CASES:
        kind = KNeighborsClassifier if task == "classification" else KNeighborsRegressor
        target = y
        if task == "classification":
            target = np.array(["low", "middle", "high's"])[np.digitize(y, [-0.5, 0.8])]
        extractor = extractors.make_extractor(name, kind(5)).fit(X, target)
        result[name, task] = extractor.rules_, X
    return result
