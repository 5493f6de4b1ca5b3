"""Survival rules with premises of RuleKit predict like RuleKit's curves."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.rules import RuleSet, SurvivalRules
from skescore.rules.importers import read_rulekit_text

if "rulekit" not in os.environ.get("SKESCORE_ENGINES", "").split(","):
    pytest.importorskip("rulekit")


def patients(seed: int, n_rows: int = 150) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return rounded numbers, so that times and bounds often tie; about a third is censored."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n_rows).round(),
            "size": rng.integers(0, 5, n_rows).astype(float),
            "dose": rng.uniform(0, 100, n_rows).round(),
        }
    )
    risk = np.exp(0.08 * (X["age"] - 50) + 0.6 * (X["size"] > 2) - (X["dose"] > 60))
    event = rng.exponential(20 / risk).round() + 1
    end = rng.integers(1, 60, n_rows)
    return X, np.minimum(event, end).astype(float), event <= end


def fitted(X: pd.DataFrame, time: np.ndarray, event: np.ndarray, **settings: Any) -> Any:
    from rulekit.survival import SurvivalRules as TheirSurvivalRules

    model = TheirSurvivalRules(survival_time_attr="survival_time", **settings)
    status = pd.Series(event.astype(int).astype(str), name="survival_status")
    return model.fit(X.assign(survival_time=time), status)


def premises(model: Any, X: pd.DataFrame) -> RuleSet:
    """Return RuleKit's premises, whose texts have two decimals."""
    texts = [str(rule) for rule in model.model.rules]
    names = list(X.columns)
    if not texts:
        return RuleSet([], names, task="regression", ordered=False)
    return read_rulekit_text(texts, feature_names=names, task="survival")


def test_survival_curves_equal_rulekit() -> None:
    n_matching: set[int] = set()
    for seed, limit in [(7, 0), (1, 1), (2, 2)]:
        X, time, event = patients(seed)
        model = fitted(X, time, event, max_rule_count=limit)
        ours = SurvivalRules.fit(premises(model, X), X, (time, event))
        rng = np.random.default_rng(seed + 100)
        other_frame = pd.DataFrame({name: rng.permutation(X[name]) * 1.2 for name in X.columns})
        for rows in (X, other_frame):
            for row, curve in enumerate(model.predict(rows.assign(survival_time=1.0))):
                values = ours.predict_survival_function(rows.iloc[[row]], curve["times"])[0]
                np.testing.assert_allclose(values, curve["probabilities"], rtol=1e-12, atol=1e-15)
            n_matching |= set(ours.members(rows).sum(axis=1).tolist())
    assert n_matching >= {0, 1, 2, 3}  # including no rule, and several at once


def test_survival_p_values_equal_rulekit() -> None:
    pytest.importorskip("sksurv")
    from skescore.metrics import survival_report

    X, time, event = patients(7)
    model = fitted(X, time, event)
    ours = SurvivalRules.fit(premises(model, X), X, (time, event))
    theirs = np.array([rule.pvalue for rule in model.model.rules])
    # If rows of a group end before the last event, the engine still counts them afterwards.
    last = time[event].max()
    until_the_end = np.array(
        [min(time[rows].max(), time[~rows].max()) >= last for rows in ours.members(X).T]
    )
    assert until_the_end.sum() > 1
    report = survival_report(ours, X, (time, event))
    np.testing.assert_allclose(
        report["p_value"][until_the_end], theirs[until_the_end], rtol=1e-6, atol=3e-16
    )
