"""Shared fixtures of exporter tests: arbitrary rule sets, and those of every extractor."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from loaded_files import load_file
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor


@pytest.fixture(scope="session")
def arbitrary():
    """Return the module of arbitrary rule sets and rows."""
    return load_file("rules/exporters/arbitrary.py")


@pytest.fixture(scope="session")
def fitted():
    """Return the rules of every registered extractor for each of its tasks, with their rows.

    The result is a dict from (name, task) to (RuleSet, DataFrame).
    """
    extractors = load_file("extractors/conftest.py")
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
