"""Calibrated rules: exact coverage, and the same predictions in SQL, Python and JSON."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from skescore.monitoring import CalibratedRules, conformal_rank
from skescore.rules import (
    Fallback,
    Interval,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

CLASSIFICATION = RuleSet(
    [
        Rule([Interval(0, upper=0.4), OneOf(1, ("a", "b"))], "no", RuleStatistics(9, (6, 1, 2))),
        Rule([Interval(0, lower=0.7)], "yes", RuleStatistics(9, (1, 3, 5))),
    ],
    ["x", "kind"],
    task="classification",
    classes=["no", "maybe", "yes"],
    fallback=Fallback("maybe"),
)
REGRESSION = RuleSet(
    [
        Rule([Interval(0, upper=0.4)], 1.0),
        Rule([Interval(0, upper=0.8)], LinearOutput(1.0, [(0, 2.0)])),
        Rule([Interval(0, upper=0.81)], 3.0),
    ],
    ["x", "kind"],
    task="regression",
    ordered=True,
    fallback=Fallback(5.0),
)


def rows(ruleset: RuleSet, n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.05, np.nan, rng.uniform(size=n)),
            "kind": rng.choice(np.array(["a", "b", "c"], dtype=object), n),
        }
    )
    if ruleset.classes is None:
        return X, ruleset.predict(X) + rng.normal(size=n)
    y = np.where(rng.random(n) < 0.6, ruleset.predict(X), rng.choice(list(ruleset.classes), n))
    return X, y


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
def test_coverage_is_exact_over_all_exchanges(level: float) -> None:
    """Every row of a sample is the new one once, and the covered ones are counted."""
    rng = np.random.default_rng(0)
    one = CLASSIFICATION.replace(rules=[Rule([], "no", RuleStatistics(9, (6, 1, 2)))])
    number = REGRESSION.replace(rules=[Rule([], 1.0)])
    for n in (2, 5, 10, 13):
        labels = rng.choice(["no", "maybe", "yes"], n, p=rng.dirichlet(np.ones(3)))
        numbers = rng.integers(-3, 4, n) / 2
        X = pd.DataFrame({"x": np.zeros(n), "kind": "a"})
        covered = [0, 0]
        for new in range(n):
            others = np.arange(n) != new
            sets = CalibratedRules.fit(one, X[others], labels[others], level=level)
            covered[0] += labels[new] in sets.predict_set(X[:1])[0]
            interval = CalibratedRules.fit(number, X[others], numbers[others], level=level)
            lower, upper = interval.predict_interval(X[:1])
            covered[1] += bool(lower[0] <= numbers[new] <= upper[0])
        assert min(covered) >= level * n - 1e-9


def test_conformal_rank_is_the_smallest_valid_one() -> None:
    for n in range(1, 60):
        for level in (0.5, 0.75, 0.9):
            rank = conformal_rank(n, level)
            assert rank / (n + 1) >= level - 1e-12 > (rank - 1) / (n + 1) - 1e-9


def test_calibrated_sets_equal_sorted_scores() -> None:
    X, y = rows(CLASSIFICATION, 500)
    calibrated = CalibratedRules.fit(CLASSIFICATION, X, y, level=0.8)
    assert calibrated.sets is not None
    orders = [["no", "yes", "maybe"], ["yes", "maybe", "no"], ["maybe", "no", "yes"]]
    rule = CLASSIFICATION.assign(X)
    for k, order in enumerate(orders[:2]):
        of_rule = y[rule == k]
        size = next(
            s
            for s in range(1, 4)
            if np.isin(of_rule, order[:s]).sum() >= math.ceil(0.8 * (len(of_rule) + 1))
        )
        assert calibrated.sets[k] == tuple(order[:size])
    frame = calibrated.coverage(X, y)
    assert frame["rows"].sum() == 500
    assert (frame["coverage"] >= 0.8).all()


@pytest.mark.parametrize("ruleset", [CLASSIFICATION, REGRESSION], ids=lambda r: r.task)
@pytest.mark.parametrize("has_fallback", [True, False])
def test_calibrated_rules_are_the_same_in_all_formats(ruleset: RuleSet, has_fallback: bool) -> None:
    if not has_fallback:
        ruleset = ruleset.replace(fallback=None)
    complete = ruleset.replace(fallback=Fallback("maybe" if ruleset.classes else 5.0))
    X, y = rows(complete, 400)
    calibrated = CalibratedRules.fit(ruleset, X, y)
    copy = CalibratedRules.from_json(calibrated.to_json())
    assert copy == calibrated
    new, _ = rows(complete, 300, seed=1)
    scope: dict[str, Any] = {}
    exec(calibrated.to_python(), scope)  # exported by skescore
    python = [scope["predict_set"](row) for row in new.to_dict(orient="records")]
    table = new.astype({"kind": object}).where(new.notna(), None)
    with duckdb.connect() as connection:
        connection.register("t", table)
        query = calibrated.to_sql(dialect="duckdb", table="t", exact=True)
        sql = connection.execute(query).fetchdf()
    if calibrated.sets is not None:
        expected = calibrated.predict_set(new).tolist()
        assert python == expected
        assert sql["prediction_set"].tolist() == [" | ".join(labels) for labels in expected]
        return
    assert any(calibrated.abstains)
    lower, upper = calibrated.predict_interval(new)
    np.testing.assert_allclose(np.array(python), np.column_stack([lower, upper]))
    for bound, column in ((lower, "lower_bound"), (upper, "upper_bound")):
        finite = np.where(np.isfinite(bound), bound, np.nan)
        np.testing.assert_allclose(sql[column].to_numpy(dtype=float), finite)


def test_calibration_rejects_missing_labels() -> None:
    X, y = rows(CLASSIFICATION, 20)
    y = y.astype(object)
    y[3] = None
    with pytest.raises(ValueError, match="a label in every row"):
        CalibratedRules.fit(CLASSIFICATION, X, y)
    with pytest.raises(ValueError, match="These are not calibrated rules"):
        CalibratedRules.from_json("{}")


@pytest.mark.parametrize(("label", "output"), [(-0.2, 0.7), (1e16 + 2, 3.0), (0.1, 0.3)])
def test_intervals_contain_labels_despite_rounding(label: float, output: float) -> None:
    rules = RuleSet([Rule([], output)], ["x"], task="regression")
    X, y = np.zeros((50, 1)), np.full(50, label)
    calibrated = CalibratedRules.fit(rules, X, y, level=0.9)
    assert calibrated.coverage(X, y)["coverage"].iloc[0] == 1.0
    assert calibrated.half_widths is not None
    assert calibrated.half_widths[0] == pytest.approx(abs(label - output), rel=1e-15)


def test_intervals_are_infinite_without_predictions() -> None:
    """Three of ten rows lack the value of a linear output."""
    rules = RuleSet([Rule([], LinearOutput(0.0, [(0, 1.0)]))], ["x"], task="regression")
    X = np.repeat([[1.0], [np.nan]], [70, 30], axis=0)
    calibrated = CalibratedRules.fit(rules, X, np.ones(100))
    assert (calibrated.half_widths, calibrated.abstains) == ((math.inf,) * 2, (True, True))
    assert calibrated.coverage(X, np.ones(100))["coverage"].iloc[0] == 1.0
    assert "(too few predictions for an interval)" in str(calibrated)
    functions: dict[str, Any] = {}
    exec(calibrated.to_python(), functions)
    assert functions["predict_set"]([math.nan]) == (-math.inf, math.inf)


def test_interval_coverage_reaches_rank_on_calibration_rows() -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        n, digits = int(random.integers(9, 60)), int(random.integers(0, 4))
        rules = RuleSet([Rule([], round(random.normal(), 1))], ["x"], task="regression")
        X, y = np.zeros((n, 1)), random.normal(size=n).round(digits)
        coverage = CalibratedRules.fit(rules, X, y, level=0.9).coverage(X, y)["coverage"]
        rank = conformal_rank(n, 0.9)
        assert rank > n or coverage.iloc[0] * n >= rank - 1e-9


def test_calibration_rejects_missing_labels_in_a_list_of_texts() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    with pytest.raises(ValueError, match="got 1 missing ones"):
        CalibratedRules.fit(rules, [[0]] * 3, ["a", float("nan"), "b"])


@pytest.mark.parametrize(("n", "n_unknown"), [(40, 8), (5, 1)])
def test_calibration_rejects_too_many_unknown_classes(n: int, n_unknown: int) -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    X, y = np.zeros((n, 1)), np.array(["a"] * (n - n_unknown) + ["c"] * n_unknown)
    with pytest.raises(ValueError, match=f"other labels in {n_unknown} of {n} rows of rule 1"):
        CalibratedRules.fit(rules, X, y)


def test_calibration_covers_few_unknown_classes() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    X, y = np.zeros((40, 1)), np.array(["a"] * 38 + ["c"] * 2)
    coverage = CalibratedRules.fit(rules, X, y).coverage(X, y)["coverage"]
    assert coverage.iloc[0] == pytest.approx(0.95)
