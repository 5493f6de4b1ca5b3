"""Rules read from RuleKit's models predict like the engine, to the last row."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rulekit.classification import (
    ContrastSetRuleClassifier,
    ExpertRuleClassifier,
    RuleClassifier,
)
from rulekit.params import Measures
from rulekit.regression import ContrastSetRuleRegressor, ExpertRuleRegressor, RuleRegressor
from rulekit.survival import SurvivalRules
from sklearn.datasets import load_diabetes, load_iris

from skescore.rules import Interval, OneOf, RuleSet, as_ruleset
from skescore.rules.importers import read_rulekit, read_rulekit_text


def around(X: pd.DataFrame, n_rows: int = 700) -> pd.DataFrame:
    """Return random rows inside and outside of the range of X."""
    low, high = X.min() - 1, X.max() + 1
    rows = np.random.default_rng(5).uniform(low, high, (n_rows, X.shape[1]))
    return pd.DataFrame(rows, columns=X.columns)


def iris(labels: Any = ("setosa", "versicolor", "virginica")) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(labels)[y.to_numpy()]


def diabetes() -> tuple[pd.DataFrame, pd.Series]:
    """Return every third row, since the engine computes medians slowly."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return X[::3], y[::3]


def mixed(seed: int, *, missing: float = 0.0) -> tuple[pd.DataFrame, pd.Series]:
    """Return floats, whole numbers, booleans and texts, in that order."""
    rng = np.random.default_rng(seed)
    n_rows = 250
    X = pd.DataFrame(
        {
            "some number": rng.normal(size=n_rows),
            "count": rng.integers(0, 4, n_rows),
            "flag": rng.random(n_rows) < 0.5,
            "color": pd.Series(rng.choice(["red", "blue", "green", "a, b"], n_rows), dtype=object),
            "code": pd.Series(rng.choice(["0", "1", "2"], n_rows), dtype=object),
        }
    )
    right = (X["some number"] > 0) & X["flag"] | (X["color"] == "red")
    y = pd.Series(np.where(right, "yes", np.where(X["color"] == "blue", "no", "may be")), name="k")
    y[rng.random(n_rows) < 0.1] = "no"
    for name in ("some number", "color"):
        X.loc[rng.random(n_rows) < missing, name] = None if name == "color" else np.nan
    return X, y


def shuffled(X: pd.DataFrame, *, unseen: bool = False) -> pd.DataFrame:
    """Return rows that combine values of different rows."""
    rng = np.random.default_rng(9)
    rows = pd.DataFrame(
        {name: X[name].to_numpy()[rng.integers(0, len(X), 500)] for name in X.columns}
    ).astype({"color": object, "code": object})
    rows["some number"] *= 1.5
    if unseen:
        rows.loc[:150, "color"] = "purple"
    return rows[list(reversed(rows.columns))]


def assert_same(model: Any, ours: RuleSet, *tables: Any) -> None:
    for X in tables:
        np.testing.assert_array_equal(ours.predict(X), model.predict(X))


def assert_counted(model: Any, ours: RuleSet, X: Any, y: Any) -> None:
    """Compare statistics of rules with the engine's counts and a plain count."""
    matches = ours.match(X)
    for rule, rows, theirs in zip(ours, matches.T, model.model.rules, strict=True):
        assert rule.weight == theirs.weight
        assert rule.statistics.n_rows == theirs.weighted_p + theirs.weighted_n == rows.sum()
        if ours.classes is None:
            assert rule.statistics.mean == pytest.approx(np.mean(np.asarray(y)[rows]))
            assert rule.statistics.standard_deviation == pytest.approx(np.std(np.asarray(y)[rows]))
        else:
            counts = tuple((np.asarray(y)[rows] == label).sum() for label in ours.classes)
            assert rule.statistics.class_counts == counts
            assert counts[ours.classes.index(rule.output)] == theirs.weighted_p


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("measure", ["Correlation", "C2", "Precision"])
def test_rulekit_rules_predict_iris_like_engine(measure: str, limit: int) -> None:
    X, y = iris()
    model = RuleClassifier(voting_measure=Measures[measure], max_rule_count=limit).fit(X, y)
    ours = as_ruleset(model)
    assert (ours.voting, ours.ordered) == ("votes", False)
    assert_same(model, ours, X, around(X))
    assert_counted(model, ours, X, y)
    order = [list(model.label_unique_values).index(label) for label in ours.classes]
    np.testing.assert_allclose(
        ours.predict_proba(around(X)), model.predict_proba(around(X))[:, order], rtol=1e-12
    )


def test_rulekit_uncovered_rows_get_first_class_name() -> None:
    X, y = iris(("c", "a", "b"))
    X, y = X[20:], y[20:]  # 30 rows of c, 50 of a, 50 of b
    names = {"c": "b", "a": "m", "b": "c"}
    y = np.array([names[label] for label in y])
    model = RuleClassifier(max_rule_count=1).fit(X, y)
    ours = as_ruleset(model)
    uncovered = around(X)[~ours.covers(around(X))]
    assert len(uncovered) > 100
    assert set(model.predict(uncovered)) == {"b"}
    assert ours.fallback.output == "b"
    assert_same(model, ours, uncovered)


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        ((9, 10, 11), (10, 11, 9)),
        ((2.5, -1.0, 10.0), (-1.0, 10.0, 2.5)),
        (("b c", "a", "B"), ("B", "a", "b c")),
        (("\uff21", "\U0001f600", "z"), ("z", "\U0001f600", "\uff21")),
    ],
)
def test_rulekit_labels_keep_type_and_order_of_names(labels: Any, order: Any) -> None:
    X, y = iris(labels)
    for target in (y, pd.Series(y, name="kind")):
        model = RuleClassifier(max_rule_count=1).fit(X, target)
        ours = as_ruleset(model)
        assert ours.classes == order
        assert ours.predict(X).dtype.kind == y.dtype.kind
        assert_same(model, ours, X, around(X))


def test_rulekit_accepts_boolean_labels() -> None:
    X, y = iris()
    model = RuleClassifier(max_rule_count=1).fit(X, y == "setosa")
    ours = as_ruleset(model)
    assert ours.classes == (False, True)
    assert ours.predict(X).dtype == bool
    # RuleKit returns them as texts.
    assert ours.predict(around(X)).astype(str).tolist() == model.predict(around(X)).tolist()
    unreadable = RuleClassifier(max_rule_count=1).fit(X, list(y == "setosa"))
    with pytest.raises(ValueError, match="labels that it took for numbers"):
        as_ruleset(unreadable)


@pytest.mark.parametrize(
    "settings",
    [{}, {"complementary_conditions": True}, {"max_rule_count": 1}, {"enable_pruning": False}],
)
def test_rulekit_rules_support_categories(settings: Any) -> None:
    X, y = mixed(1)
    model = RuleClassifier(**settings).fit(X, y)
    ours = as_ruleset(model)
    assert_same(model, ours, X)
    # Columns of a frame are matched by name in both libraries.
    assert_same(model, ours, shuffled(X), shuffled(X, unseen=True))
    assert_counted(model, ours, X, y)
    complements = [c for r in ours for c in r.non_intervals if isinstance(c, OneOf) and c.negated]
    assert bool(complements) == ("complementary_conditions" in settings)


def test_rulekit_missing_values_satisfy_no_condition() -> None:
    X, y = mixed(2, missing=0.2)
    model = RuleClassifier(max_rule_count=2).fit(X, y)
    ours = as_ruleset(model)
    assert_same(model, ours, X, shuffled(X))
    np.testing.assert_array_equal(ours.match(X), model.get_coverage_matrix(X))
    assert_counted(model, ours, X, y)


@pytest.mark.parametrize("settings", [{"complementary_conditions": True}, {"ignore_missing": True}])
def test_rulekit_missing_values_satisfy_engine_conditions(settings: Any) -> None:
    X, y = mixed(2, missing=0.2)
    model = RuleClassifier(**settings).fit(X, y)
    ours = as_ruleset(model)
    assert_same(model, ours, X, shuffled(X))
    np.testing.assert_array_equal(ours.match(X), model.get_coverage_matrix(X))
    assert "or missing" in str(ours)
    # Features without missing values in training have no conditions on missing values.
    X, y = mixed(2)
    model = RuleClassifier(**settings).fit(X, y)
    assert_same(model, as_ruleset(model), X)
    assert "missing" not in str(as_ruleset(model))
    RuleClassifier(ignore_missing=False).fit(X, y)  # the engine keeps this setting for all models


@pytest.mark.parametrize("in_force", [False, True])
def test_rulekit_regressor_leaves_missing_values_as_they_are(in_force: bool) -> None:
    X, y = mixed(2, missing=0.2)
    RuleClassifier(ignore_missing=in_force, max_rule_count=1).fit(X, y)
    rows, numbers = X[["some number"]], X["some number"].fillna(0.0).rename("k")
    model = RuleRegressor(ignore_missing=not in_force, max_rule_count=3).fit(rows, numbers)
    ours = as_ruleset(model)
    np.testing.assert_allclose(ours.predict(rows), model.predict(rows))
    assert_counted(model, ours, rows, numbers)
    RuleClassifier(ignore_missing=False, max_rule_count=1).fit(X, y)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_rule_count": 4},
        {"mean_based_regression": False, "max_rule_count": 2, "minsupp_new": 0.2},
        {"max_rule_count": 3, "voting_measure": Measures.RSS},
    ],
)
def test_rulekit_rules_predict_diabetes_like_engine(settings: Any) -> None:
    X, y = diabetes()
    model = RuleRegressor(**settings).fit(X, y)
    ours = as_ruleset(model)
    assert (ours.task, ours.voting) == ("regression", "mean")
    assert ours.fallback.output == np.sort(y)[len(y) // 2]
    assert_same(model, ours, X, around(X))
    assert (~ours.covers(around(X))).any()
    assert_counted(model, ours, X, y)


def test_rulekit_zero_weight_sum_gives_default() -> None:
    X, y = diabetes()
    coverage = {f"{name}_measure": Measures.Coverage for name in ("induction", "pruning")}
    model = RuleRegressor(voting_measure=Measures.RSS, max_rule_count=8, **coverage).fit(X, y)
    ours = as_ruleset(model)
    below = np.array([rule.weight < 0 for rule in ours])
    matches = ours.match(around(X))
    is_negative = matches.any(axis=1) & ~matches[:, ~below].any(axis=1)
    assert is_negative.any()
    assert set(ours.predict(around(X))[is_negative]) == {ours.fallback.output}
    assert_same(model, ours, X, around(X))


def test_rulekit_reads_expert_regressors() -> None:
    X, y = diabetes()
    model = ExpertRuleRegressor(induce_using_automatic=True, max_rule_count=3)
    model.fit(
        X,
        y,
        expert_rules=[("r1", "IF [[bmi = <20, 24)]] THEN")],
        expert_preferred_conditions=[],
        expert_forbidden_conditions=[],
    )
    ours = as_ruleset(model)
    assert Interval(2, 20, 24, lower_closed=True, upper_closed=False) in ours[0].conditions
    assert_same(model, ours, X, around(X))


def test_rulekit_reads_expert_classifiers() -> None:
    X, y = mixed(3)
    model = ExpertRuleClassifier(extend_using_automatic=True, induce_using_automatic=True)
    model.fit(
        X,
        y,
        expert_rules=[
            ("a", "IF [[some number = (-inf, 3)]] AND [[color = {red}]] THEN k = {yes}"),
            ("b", "IF [[some number @= (-inf, 0.5)]] THEN k = {may be}"),
            ("c", "IF [[color = !{red}]] THEN k = {no}"),
        ],
        expert_preferred_conditions=[],
        expert_forbidden_conditions=[],
    )
    ours = as_ruleset(model)
    assert OneOf(3, ["red"], negated=True) in {c for rule in ours for c in rule.conditions}
    assert_same(model, ours, X, shuffled(X, unseen=True))


def test_rulekit_rejects_negative_weights_unless_inexact() -> None:
    X, y = mixed(3)
    model = ExpertRuleClassifier(
        extend_using_preferred=False,
        extend_using_automatic=False,
        induce_using_preferred=False,
        induce_using_automatic=False,
    )
    model.fit(
        X,
        y,
        expert_rules=[("a", "IF [[color = {red}]] THEN k = {may be}")],
        expert_preferred_conditions=[],
        expert_forbidden_conditions=[],
    )
    assert model.model.rules[0].weight < 0
    with pytest.raises(ValueError, match=r"negative weights \(1\)"):
        as_ruleset(model)
    inexact = as_ruleset(model, exact=False)
    differs = inexact.predict(X) != model.predict(X)
    assert differs.any()  # otherwise there would be no reason to reject it
    assert (differs == (X["color"] == "red")).all()


def test_rulekit_accepts_arrays_names_and_classes() -> None:
    X, y = iris()
    model = RuleClassifier(max_rule_count=1).fit(X.to_numpy(), y)
    ours = as_ruleset(model)
    assert ours.feature_names == ("att1", "att2", "att3", "att4")
    assert_same(model, ours, X.to_numpy())
    renamed = read_rulekit(model, feature_names=X.columns)
    assert renamed.feature_names == tuple(X.columns)
    assert renamed.predict(X).tolist() == model.predict(X.to_numpy()).tolist()
    with pytest.raises(ValueError, match="feature_names must name the 4 features"):
        read_rulekit(model, feature_names=["a"])
    # The engine's rule set contains labels only as texts.
    X, y = iris((9, 10, 11))
    model = RuleClassifier(max_rule_count=1).fit(X, y)
    assert as_ruleset(model.model).classes == ("10", "11", "9")
    assert as_ruleset(model.model, classes=[9, 10, 11]) == as_ruleset(model)
    for classes in ([9, 10], [9, 10, 11, 12], ["9", 9, 10]):
        with pytest.raises(ValueError, match="classes must hold the labels whose str"):
            read_rulekit(model, classes=classes)


def test_rulekit_keeps_unusual_names() -> None:
    X, y = mixed(4)
    X.columns = ["IF x THEN", "ü = {", "AND", 'say "yes"', "select *"]
    model = RuleClassifier(max_rule_count=2).fit(X, y)
    ours = as_ruleset(model)
    assert ours.feature_names == tuple(X.columns)
    assert_same(model, ours, X)


def test_rulekit_domain_bounds_training_rows() -> None:
    X, y = mixed(1)
    domain = as_ruleset(RuleClassifier(max_rule_count=1).fit(X, y)).domain
    assert sorted(domain.values_of(3)) == ["a, b", "blue", "green", "red"]
    low, high = X["some number"].min(), X["some number"].max()
    assert (domain.lower[0], domain.upper[0]) == pytest.approx((low, high))
    assert domain.lower[0] <= low
    assert domain.upper[0] >= high


def test_rulekit_pickled_model_has_equal_rules() -> None:
    X, y = mixed(1, missing=0.1)
    X["unknown"] = np.nan
    X["endless"] = X["count"].astype(float).replace(3, np.inf)
    models = [
        RuleClassifier(max_rule_count=2).fit(X, y),
        RuleRegressor(max_rule_count=2).fit(X, (X["count"] + X["flag"] * 1.5).rename("k")),
        RuleClassifier(max_rule_count=1).fit(X[["count"]], X["flag"].rename("k").to_numpy()),
    ]
    for model in models:
        assert as_ruleset(pickle.loads(pickle.dumps(model))) == as_ruleset(model)


def test_rulekit_text_equals_model_within_digits() -> None:
    X, y = mixed(1)
    model = RuleClassifier(complementary_conditions=True).fit(X, y)
    exact = as_ruleset(model)
    texts = [str(rule) + str(rule.stats) for rule in model.model.rules]
    for text in (str(model.model), texts):
        read = read_rulekit_text(text, feature_names=list(X.columns), classes=exact.classes)
        assert [r.output for r in read] == [r.output for r in exact]
        assert [r.weight for r in read] == [r.weight for r in exact]
        assert [r.non_intervals for r in read] == [r.non_intervals for r in exact]
        for one, other in zip(read, exact, strict=True):
            assert [i.feature for i in one.intervals] == [i.feature for i in other.intervals]
            for rounded, interval in zip(one.intervals, other.intervals, strict=True):
                for side in ("lower", "upper"):
                    value = getattr(interval, side)
                    assert getattr(rounded, side) == pytest.approx(value, rel=0.05, abs=1e-9)
                assert rounded.lower_closed == interval.lower_closed
        assert read.fallback == exact.fallback


def test_rulekit_keeps_closed_and_open_bounds() -> None:
    X, y = iris()
    model = RuleClassifier().fit(X, y)
    ours = as_ruleset(model)
    bounds = {
        (interval.feature, bound)
        for rule in ours
        for interval in rule.intervals
        for bound in (interval.lower, interval.upper)
        if np.isfinite(bound)
    }
    middle = X.median()
    rows = []
    for feature, bound in bounds:
        for value in (np.nextafter(bound, -np.inf), bound, np.nextafter(bound, np.inf)):
            row = middle.to_numpy().copy()
            row[feature] = value
            rows.append(row)
    table = pd.DataFrame(rows, columns=X.columns)
    np.testing.assert_array_equal(ours.match(table), model.get_coverage_matrix(table))
    closed = {i.lower_closed for r in ours for i in r.intervals if np.isfinite(i.lower)}
    assert closed == {True}
    assert all(isinstance(c, Interval) for r in ours for c in r.conditions)


def test_rulekit_reader_rejects_unsupported_models() -> None:
    X, y = mixed(1)
    with pytest.raises(ValueError, match="not fitted"):
        as_ruleset(RuleClassifier())
    with pytest.raises(TypeError, match="must be a fitted model of RuleKit"):
        read_rulekit(3)
    times = pd.Series(np.arange(1.0, len(X) + 1), name="survival_time")
    survival = SurvivalRules(survival_time_attr="survival_time").fit(
        X[["some number"]].assign(survival_time=times),
        pd.Series((y == "no").astype(int).astype(str), name="event"),
    )
    with pytest.raises(ValueError, match=r"SurvivalRuleSet.*task='survival'"):
        as_ruleset(survival)
    for contrast, target in [
        (ContrastSetRuleClassifier(), y),
        (ContrastSetRuleRegressor(), X["count"].rename("k")),
    ]:
        contrast.fit(X, target, contrast_attribute="code")
        with pytest.raises(ValueError, match="whose rules are contrast sets"):
            as_ruleset(contrast)
