"""Verification of rules of extractors: parameters, encoders, text, HTML and special rules."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import CallableClassifier
from skescore.black_boxes import make_black_box
from skescore.rules import (
    AtLeast,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)
from skescore.verification import (
    ShareInterval,
    VerificationLimits,
    check_verification,
    verify,
)

LIMITS = VerificationLimits(time_limit=20.0, max_splits=200, max_samples=20_000)


@pytest.fixture(scope="module")
def messy() -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with text, missing values and integers."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 150),
            "income": rng.normal(3000, 900, 150),
            "city": pd.Series(rng.choice(["Paris", "Rome", "São Paulo"], 150), dtype=object),
        }
    )
    X.loc[::9, "income"] = np.nan
    return X, np.where((X["age"] > 40) & (X["city"] != "Rome"), "yes", "no")


def test_text_claims_no_agreement_for_a_rule_with_disagreement(messy) -> None:
    X, _ = messy
    never = CallableClassifier(lambda rows: np.full(len(rows), "no"), classes=["no", "yes"])
    rules = RuleSet([Rule([], "yes")], list(X.columns), task="classification")
    result = verify(rules, never, X, limits=LIMITS)
    (rule,) = result.rules
    without_example = replace(result, rules=(replace(rule, witness=None, worst=None),))
    assert "no example of a disagreement was found" in without_example.to_text()
    none = replace(
        rule,
        witness=None,
        worst=None,
        near_disagreement=ShareInterval(0.0, 0.1, 0.0, 0.1),
        volume_disagreement=ShareInterval(0.0, 0.1, 0.0, 0.1),
    )
    assert "no disagreement was found" in replace(result, rules=(none,)).to_text()


@pytest.mark.parametrize("name", ["random-forest", "hist-gradient-boosting"])
def test_verify_reads_encoded_categories(messy, name: str) -> None:
    X, y = messy
    model = make_black_box(name, "classification", 0, ["city"], params={}).fit(X, y)
    rules = RuleSet(
        [
            Rule([OneOf(2, ["Rome"])], "no"),
            Rule([Interval(0, upper=40)], "no"),
            Rule([], "yes"),
        ],
        list(X.columns),
        task="classification",
    )
    result = verify(rules, FrozenEstimator(model), X, limits=LIMITS)
    assert result.engine == "leaf boxes", result.reason
    witnesses = [w for rule in result.rules for w in (rule.witness, rule.worst) if w]
    for witness in witnesses:
        row = pd.DataFrame([witness.row])
        assert isinstance(witness.row["age"], int)
        assert witness.row["city"] in ("Paris", "Rome", "São Paulo")
        assert model.predict(row)[0] == witness.prediction != witness.rule_output
    text, page = result.to_text(), result.to_html()
    assert "São Paulo" in page or "Rome" in page
    assert "read exactly" in text
    assert page.count('class="bar"') >= 3


def test_verify_treats_each_rule_without_earlier_ones() -> None:
    X = np.linspace(0, 1, 41)[:, None]
    model = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0.5)
    rules = RuleSet(
        [Rule([Interval(0, upper=0.25)], False), Rule([Interval(0, upper=0.5)], False)],
        ["x"],
        task="classification",
        fallback=Fallback(True),
    )
    result = verify(rules, model, X, limits=LIMITS)
    assert [rule.index for rule in result.rules] == [0, 1, -1]
    assert [round(rule.volume, 6) for rule in result.rules] == [0.25, 0.25, 0.5]
    assert sum(rule.near_rows for rule in result.rules) == pytest.approx(len(X))


def test_verify_expands_m_of_n_conditions() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, (X > 0.5).sum(1) >= 2)
    condition = AtLeast(2, [Interval(j, lower=0.5) for j in range(3)])
    rules = RuleSet([Rule([condition], True), Rule([], False)], list("abc"), task="classification")
    result = verify(rules, model, X, limits=LIMITS)
    points = rng.uniform(X.min(0), X.max(0), (50_000, 3))
    assigned, wrong = rules.assign(points), rules.predict(points) != model.predict(points)
    for rule in result.rules:
        own = assigned == rule.index
        share = wrong[own].mean()
        assert (
            rule.volume_disagreement.lower - 0.02 <= share <= rule.volume_disagreement.upper + 0.02
        )
        if rule.trusted:
            part = RuleSet([rule.trusted.rule], list("abc"), task="classification")
            assert not wrong[own & part.covers(points)].any()


def test_verify_bounds_linear_outputs() -> None:
    """New points of the domain are the oracle of shares, trusted parts and deviations."""
    rng = np.random.default_rng(0)
    X = rng.random((150, 2))
    X[:, 1] = np.round(10 * X[:, 1])
    model = RandomForestRegressor(10, random_state=0).fit(X, X[:, 0])
    rules = RuleSet(
        [Rule([Interval(1, upper=5)], LinearOutput(0.02, ((0, 1.0), (1, -0.005)))), Rule([], 0.5)],
        ["a", "b"],
        task="regression",
    )
    result = verify(rules, model, X, tolerance=0.1, limits=LIMITS)
    linear, constant = result.rules
    assert linear.near_disagreement.upper < 0.05 < constant.near_disagreement.lower
    assert constant.max_deviation <= 0.5 + 1e-6
    assert result.tolerance == 0.1
    points = np.column_stack(
        [rng.uniform(X[:, 0].min(), X[:, 0].max(), 200_000), rng.integers(0, 11, 200_000)]
    )
    own = rules.assign(points) == 0
    deviations = np.abs(model.predict(points[own]) - rules.predict(points[own]))
    assert 0.9 * linear.max_deviation <= deviations.max() <= linear.max_deviation
    shares = linear.volume_proven
    assert shares.agreeing > 0.5
    assert shares.agreeing <= np.mean(deviations <= 0.1) + 0.01
    assert shares.disagreeing <= np.mean(deviations > 0.1) + 0.01
    assert linear.trusted.row_share > 0.5
    part = RuleSet([linear.trusted.rule], list("ab"), task="regression")
    inside = part.covers(points[own])
    assert deviations[inside].max() <= 0.1
    assert np.allclose(part.predict(points[own][inside]), rules.predict(points[own][inside]))
    check = check_verification(result.to_json(), model, X, n_rows=20_000)
    assert check.verdict == "not refuted", check.findings


def test_verify_fits_unfitted_models() -> None:
    X = np.linspace(0, 1, 41)[:, None]
    rules = RuleSet([Rule([], True)], ["x"], task="classification", classes=[False, True])
    result = verify(rules, RandomForestClassifier(3, random_state=0), X, X[:, 0] > 0.25)
    assert result.near_disagreement.lower > 0.2


def test_verify_rejects_unsupported_rules() -> None:
    X = np.linspace(0, 1, 30)[:, None]
    model = RandomForestClassifier(2, random_state=0).fit(X, X[:, 0] > 0.5)
    rules = RuleSet([Rule([], True)], ["x"], task="classification", classes=[False, True])
    with pytest.raises(ValueError, match="tolerance is for regressions"):
        verify(rules, model, X, tolerance=0.1)
    with pytest.raises(ValueError, match="confidence"):
        verify(rules, model, X, confidence=1.0)
    with pytest.raises(ValueError, match="radius"):
        verify(rules, model, X, radius=-1)
    with pytest.raises(ValueError, match="near_width"):
        VerificationLimits(near_width=0.0)
    with pytest.raises(ValueError, match="voting"):
        verify(rules.replace(ordered=False, voting="votes"), model, X)
    with pytest.raises(ValueError, match="nearest"):
        verify(rules.replace(fallback=Fallback(True, "nearest")), model, X)
    oblique = Rule([Linear(((0, 1.0),), upper=0.5)], True)
    with pytest.raises(ValueError, match="not a bound"):
        verify(rules.replace(rules=[oblique]), model, X)
    with pytest.raises(ValueError, match="lacks the columns"):
        verify(rules, model, pd.DataFrame({"u": X[:, 0], "v": X[:, 0]}))


def test_share_interval_names_its_method() -> None:
    assert str(ShareInterval(0.1, 0.2, 0.1, 0.2)) == "10 % to 20 % (proven)"
    assert "samples, confidence" in str(ShareInterval(0.1, 0.2, 0.0, 0.9, 0.999, 50))
    assert str(ShareInterval(*[math.nan] * 4)) == "no mass"


@pytest.mark.parametrize("output", ["yes", "no"])
@pytest.mark.parametrize("name", ["tree", "forest"])
def test_verify_model_with_single_class(name: str, output: str) -> None:
    X = pd.DataFrame({"a": np.arange(6.0), "b": [0, 1] * 3})
    model = DecisionTreeClassifier() if name == "tree" else RandomForestClassifier(3)
    model.fit(X, ["yes"] * 6)
    rules = RuleSet([Rule([], output)], ["a", "b"], task="classification", classes=["no", "yes"])
    result = verify(rules, model, X)
    expected = 0.0 if output == "yes" else 1.0
    shares = result.rules[0].volume_disagreement
    assert (shares.proven_lower, shares.proven_upper) == (expected, expected)
    assert check_verification(result.to_json(), model, X).verdict == "confirmed"


def test_verify_trusts_no_cell_in_which_a_linear_output_deviates() -> None:
    X = pd.DataFrame({"x": np.linspace(0.0, 10.0, 21)})
    model = RandomForestRegressor(1, max_depth=1, random_state=0).fit(X, X["x"] > 5)
    rules = RuleSet([Rule([], LinearOutput(0.0, ((0, 0.1),)))], ["x"], task="regression")
    result = verify(rules, model, X, tolerance=0.2, limits=LIMITS)
    # The model is constant on both sides of one cut, but agrees with x / 10 only near the ends.
    assert result.rules[0].witness is not None
    assert result.rules[0].trusted is None
    assert check_verification(result.to_json(), model, X).verdict != "rejected"


def test_verify_bounds_outputs_in_parts_without_volume() -> None:
    X = np.column_stack([np.arange(16) / 15, np.tile([0.0, 0.25, 0.5, 1.0], 4)])
    model = DecisionTreeRegressor(max_leaf_nodes=4).fit(X, np.floor(3.99 * X[:, 0]))
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5), Interval(1, upper=1, upper_closed=False)], 0.5)],
        ["x", "z"],
        task="regression",
        fallback=Fallback(2.5),
    )
    rest = verify(rules, model, X, tolerance=0.6, limits=LIMITS).rules[1]
    # Rows with x ≤ 0.5 and z = 1 belong to the fallback, although they have no volume.
    assert model.predict([[0.0, 1.0]]) == 0.0
    assert rest.output_range.lower == pytest.approx(0.0, abs=1e-6)
    assert rest.max_deviation == pytest.approx(2.5, abs=1e-6)


def test_verify_ends_trusted_parts_before_large_cuts() -> None:
    ulp = 2.0**8  # distance of numbers beyond 2^60
    X = 2.0**60 + ulp * np.arange(12.0)[:, None]
    rules = RuleSet([Rule([], False)], ["x"], task="classification")
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=1)
    model.fit(X, X[:, 0] >= X[6, 0])
    result = verify(rules, model, X, limits=LIMITS)
    trusted = RuleSet([result.rules[0].trusted.rule], ["x"], task="classification")
    assert not model.predict(X)[trusted.covers(X)].any()
    assert check_verification(result.to_json(), model, X).verdict == "confirmed"


def test_check_counts_integers_above_open_bounds() -> None:
    X = np.arange(-4.0, 5.0)[:, None]
    model = DecisionTreeClassifier().fit(X, X[:, 0] > 1)
    bound = Interval(0, -2, upper=1, lower_closed=False)
    rules = RuleSet([Rule([bound], False)], ["x"], task="classification", fallback=Fallback(True))
    result = verify(rules, model, X, limits=LIMITS)
    assert result.rules[0].volume == pytest.approx(3 / 9)
    assert check_verification(result.to_json(), model, X).verdict == "confirmed"


@pytest.mark.parametrize("dtype", [object, "boolean"])
def test_verify_samples_missing_booleans(dtype):
    """Rows with missing booleans were sent to the model as True, so correct rules disagreed."""
    flags = pd.Series([True, False, None] * 40, dtype=dtype)
    X = pd.DataFrame({"smoker": flags, "age": np.arange(120)})

    def predict(rows):
        return np.where(rows["smoker"].isna(), "unknown", "known")

    rules = RuleSet(
        [Rule([Missing(0)], "unknown"), Rule([], "known")], ["smoker", "age"], task="classification"
    )
    rules = rules.replace(domain=rules.domain_around(X))
    black_box = CallableClassifier(predict, classes=["known", "unknown"])
    result = verify(rules, black_box, X, limits=VerificationLimits(time_limit=5))
    assert result.near_disagreement.lower == 0
    assert result.near_disagreement.upper < 0.05
