"""Compare counts with the rows that they count in every figure."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from skescore.metrics import (
    PREDICTION_METRICS,
    RuleCounts,
    characteristics,
    confusion,
    prediction_loss,
    prediction_performance,
    rule_report,
)
from skescore.rules import RuleSet
from skescore.scorers import evaluate_rules, make_rule_scorer, make_score_scorer

#: Rules and domains with the same completeness by volume, as it does not depend on rows.
RELATIVE, ABSOLUTE = 1e-12, 1e-12


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or that it is undefined."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call()
        except ValueError:
            return "refused"


def close(found: Any, expected: Any, what: Any) -> None:
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected, what
        return
    np.testing.assert_allclose(found, expected, RELATIVE, ABSOLUTE, err_msg=str(what))


def same_numbers(
    ruleset: RuleSet,
    counts: RuleCounts,
    X: Any,
    y: Any,
    weights: Any = None,
    *,
    rule_measures: bool = True,
) -> None:
    """Fail unless counts give the figures of the rows, exactly if weights are integers."""
    by_rows = outcome(lambda: evaluate_rules(ruleset, X, y, sample_weight=weights))
    by_counts = outcome(lambda: evaluate_rules(ruleset, counts))
    assert (by_rows == "refused") == (by_counts == "refused")
    if by_rows != "refused":
        close(by_counts.instances, by_rows.instances, "instances")
        for name, metric in PREDICTION_METRICS.items():
            if ruleset.task not in metric.tasks or name == "median_absolute_error":
                continue
            for uncovered in ("ignore", "penalize"):
                for measure in (prediction_loss, prediction_performance):
                    which = "loss" if measure is prediction_loss else "performance"
                    if which == "performance" and not metric.greater_is_better:
                        continue
                    close(
                        outcome(
                            lambda e=by_counts, w=which, n=name, u=uncovered: getattr(e, w)(n, u)
                        ),
                        outcome(
                            lambda e=by_rows, w=which, n=name, u=uncovered: getattr(e, w)(n, u)
                        ),
                        (name, uncovered, which),
                    )
        for score in ("ice", "fire", "q"):
            scorer = make_score_scorer(
                score, **({} if score == "fire" else {"completeness": "instances"})
            )
            expected = outcome(lambda s=scorer: s(ruleset, X, y, sample_weight=weights))
            close(outcome(lambda s=scorer: s(ruleset, counts)), expected, score)
    if not rule_measures:
        return
    is_exact = weights is None or (np.asarray(weights) % 0.25 == 0).all()
    for assigned in (False, True):
        expected = outcome(lambda a=assigned: confusion(ruleset, X, y, weights, assigned=a))
        result = outcome(lambda a=assigned: confusion(ruleset, counts, assigned=a))
        if isinstance(expected, str):
            assert result == expected
            continue
        for name in ("p", "n", "P", "N", "unique"):
            if is_exact:
                np.testing.assert_array_equal(
                    getattr(result, name), getattr(expected, name), err_msg=name
                )
            close(getattr(result, name), getattr(expected, name), name)
        for name in ("mean", "std", "label_std"):
            if getattr(expected, name) is not None:
                close(getattr(result, name), getattr(expected, name), name)
    expected = outcome(lambda: characteristics(ruleset, X, y, sample_weight=weights))
    result = outcome(lambda: characteristics(ruleset, counts))
    if isinstance(expected, str):
        assert result == expected
        return
    assert list(result) == list(expected)
    for name, value in expected.items():
        close(result[name], value, name)
    options = {"measures": ["c2", "lift", "correlation"]}
    pd.testing.assert_frame_equal(
        outcome(lambda: rule_report(ruleset, counts, **options)),
        outcome(lambda: rule_report(ruleset, X, y, sample_weight=weights, **options)),
        rtol=1e-11,
        atol=1e-12,
    )
    scorer = make_rule_scorer("precision", aggregate="weighted")
    expected = outcome(lambda: scorer(ruleset, X, y, sample_weight=weights))
    if not isinstance(expected, str):  # rows may have predictions that are not numeric
        close(outcome(lambda: scorer(ruleset, counts)), expected, "weighted precision")
