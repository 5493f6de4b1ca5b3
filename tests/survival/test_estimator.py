"""The estimator of survival rules learns from residuals and predicts curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags

from skescore.rules import Interval, OneOf, Rule, RuleSet, SurvivalCurve
from skescore.survival import SurvivalRulesEstimator

outcomes = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=40)


def interval_rules(*bounds: tuple[float, float], ordered: bool) -> RuleSet:
    rules = [Rule([Interval(0, low, high)] if low < high else [], 0.0) for low, high in bounds]
    return RuleSet(rules, ["dose"], task="regression", ordered=ordered)


class Learner(DecisionTreeRegressor):
    """A learner that stores the targets of fit."""

    def fit(self, X: Any, y: Any) -> Learner:
        self.fitted_on_ = y
        return super().fit(X, y)


@given(outcomes.filter(lambda rows: any(event for _, event in rows)))
def test_fit_learns_from_martingale_residuals(
    rows: list[tuple[int, bool]],
) -> None:
    X, y = np.arange(float(len(rows)))[:, None], tuple(zip(*rows, strict=True))
    expected = []
    for end, event in rows:
        hazard = 0.0
        for moment in sorted({time for time, _ in rows if time <= end}):
            in_sight = sum(time >= moment for time, _ in rows)
            hazard += sum(happened and time == moment for time, happened in rows) / in_sight
        expected.append(event - hazard)
    fitted = SurvivalRulesEstimator(Learner(max_leaf_nodes=2)).fit(X, y)
    assert fitted.estimator_.fitted_on_ == pytest.approx(np.array(expected), abs=1e-12)


class Holder:
    """An object with rules and `fit` that is not a scikit-learn estimator."""

    rules_ = interval_rules((0, 5), ordered=True)

    def fit(self, X: Any, y: Any) -> None:
        raise AssertionError("fit must not be called")


def test_fit_reads_rules_that_cannot_be_cloned() -> None:
    X, y = [[1.0], [2.0], [9.0]], ([3.0, 4.0, 5.0], [1, 0, 1])
    assert SurvivalRulesEstimator(Holder()).fit(X, y).rules_.ruleset == Holder.rules_


def test_predict_takes_text_and_missing_values() -> None:
    X = pd.DataFrame({"dose": [1.0, np.nan, 7.0, 8.0], "drug": ["a", "b", "b", None]})
    y = ([1.0, 2.0, 3.0, 4.0], [True, True, True, False])
    ruleset = RuleSet(
        [Rule([OneOf(1, ["a"])], 0.0), Rule([Interval(0, lower=5)], 0.0)],
        ["dose", "drug"],
        task="regression",
    )
    model = SurvivalRulesEstimator(ruleset).fit(X, y)
    alone, others, all_rows = (
        SurvivalCurve.of(y[0][s], y[1][s]) for s in (slice(1), slice(2, 4), slice(4))
    )
    shares = model.predict_survival_function(X, return_array=True)
    assert shares.tolist() == [c.at(y[0]).tolist() for c in (alone, all_rows, others, others)]
    tags = get_tags(model)
    assert tags.no_validation
    assert tags.target_tags.required
