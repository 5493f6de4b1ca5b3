"""Rules are learned with constraints or repaired, and the result states which."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from constraint_cases import EXTRACTORS
from constraint_oracle import broken
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.constraints import (
    Constraints,
    PinnedRule,
    RejectedRulesError,
    bounds_on_steps,
    constrain,
    find_conflict,
    step_columns,
    violations,
)
from skescore.editing import RuleEditor
from skescore.extractors import CARTExtractor, CREAMExtractor
from skescore.registry import make_extractor
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    OneOf,
    Rule,
    RuleSet,
    with_statistics,
)

RANDOM = np.random.default_rng(0)
X = pd.DataFrame(RANDOM.uniform(0, 100, (240, 4)), columns=["age", "income", "debt", "size"])
SCORE = X["income"] - X["debt"] + 0.3 * X["age"] + RANDOM.normal(0, 15, 240)
Y = np.where(SCORE.median() < SCORE, "yes", "no")
CLASSIFIER = FrozenEstimator(RandomForestClassifier(20, random_state=0).fit(X, Y))
REGRESSOR = FrozenEstimator(RandomForestRegressor(20, random_state=0).fit(X, SCORE))
CONSTRAINTS = Constraints(
    forbidden=["size"],
    required=["age"],
    monotone={"income": "+", "debt": "-"},
    thresholds={"*": {"digits": 1}},
    max_conditions=3,
    max_rules=5,
    min_support=0.05,
)


@pytest.mark.parametrize("name", [name for name in EXTRACTORS if name != "gridrex"])
def test_classification_extractors_satisfy_constraints(name: str) -> None:
    extractor = make_extractor(name, CLASSIFIER, **EXTRACTORS[name])
    result = constrain(extractor, CONSTRAINTS, X)
    assert result.ruleset is not None
    assert broken(result.ruleset, CONSTRAINTS, X, CLASSIFIER.predict(X)) == set()
    assert result.outcomes["forbidden: size"] == "native"
    assert set(result.outcomes) == set(CONSTRAINTS.parts())
    agreement = np.mean(result.ruleset.predict(X) == CLASSIFIER.predict(X))
    assert agreement > 0.65


@pytest.mark.parametrize("name", ["cart", "gridrex", "iter"])
def test_regression_extractors_satisfy_constraints(name: str) -> None:
    extractor = make_extractor(name, REGRESSOR, **EXTRACTORS[name])
    result = constrain(extractor, CONSTRAINTS, X)
    assert result.ruleset is not None
    assert broken(result.ruleset, CONSTRAINTS, X, REGRESSOR.predict(X)) == set()


def test_cart_satisfies_directions_and_thresholds_natively() -> None:
    extractor = CARTExtractor(CLASSIFIER, max_leaf_nodes=8, random_state=0)
    constraints = Constraints(
        monotone={"income": "+", "debt": "-"}, thresholds={"*": {"decimals": 0}}
    )
    result = constrain(extractor, constraints, X)
    assert result.outcomes["thresholds: * 0 decimals"] == "native"
    assert set(result.outcomes.values()) <= {"native", "repaired"}
    assert result.ruleset is not None
    # A tree without directions, whose outputs are changed, must not be worse than monotone splits.
    labels = CLASSIFIER.predict(X)
    monotone = DecisionTreeClassifier(
        max_leaf_nodes=8, monotonic_cst=[0, 1, -1, 0], random_state=0
    ).fit(X.round(), labels)
    agreement = np.mean(result.ruleset.predict(X) == labels)
    assert agreement >= np.mean(monotone.predict(X.round()) == labels) - 0.02


def test_pinned_rules_come_first_and_decide_their_rows() -> None:
    pinned = PinnedRule(Rule([Interval(0, upper=20.5)], "no"), list(X.columns))
    result = constrain(
        CREAMExtractor(CLASSIFIER, depth=3, random_state=0), Constraints(pinned=[pinned]), X
    )
    assert result.ruleset is not None
    assert pinned.is_rule(result.ruleset[0], X.columns)
    young = X["age"] <= 20.5
    assert set(result.ruleset.predict(X[young])) == {"no"}
    assert result.ruleset[0].statistics is not None
    assert result.ruleset[0].statistics.n_rows == young.sum()


def test_clones_and_pickles_keep_constraints() -> None:
    extractor = CARTExtractor(CLASSIFIER, max_leaf_nodes=5).set_constraints(CONSTRAINTS)
    for copy in (clone(extractor), pickle.loads(pickle.dumps(extractor))):
        assert violations(copy.fit(X).rules_, CONSTRAINTS, X) == []
    fitted = clone(extractor).set_constraints(None).fit(X)
    assert not hasattr(fitted, "constrained_rules_")
    assert fitted.rules_ == CARTExtractor(CLASSIFIER, max_leaf_nodes=5).fit(X).rules_


def test_constrain_repairs_models() -> None:
    tree = DecisionTreeClassifier(max_leaf_nodes=12, random_state=0).fit(X, Y)
    constraints = Constraints(monotone={"income": "+"}, max_rules=6, class_order=["no", "yes"])
    result = constrain(tree, constraints, X, black_box=tree)
    assert result.ruleset is not None
    assert broken(result.ruleset, constraints, X, Y) == set()
    assert np.mean(result.ruleset.predict(X) == tree.predict(X)) > 0.85


def test_constrain_returns_satisfied_rules_unchanged() -> None:
    rules = CARTExtractor(CLASSIFIER, max_leaf_nodes=3, random_state=0).fit(X).rules_
    result = constrain(rules, Constraints(max_rules=3), X, Y)
    assert result.ruleset is rules
    assert result.outcomes == {"max_rules: 3": "satisfied"}


def test_constrain_accepts_empty_constraints() -> None:
    extractor = CARTExtractor(CLASSIFIER, max_leaf_nodes=3, random_state=0)
    result = constrain(extractor, Constraints(), X, Y)
    assert result.ruleset == clone(extractor).fit(X, Y).rules_
    assert result.outcomes == {}


def test_constrain_rewrites_conditions_of_trepan() -> None:
    inner = [Interval(0, upper=33.3), Interval(1, lower=44.4), Interval(2, upper=1.23)]
    rules = RuleSet(
        [Rule([AtLeast(2, inner)], "yes")],
        list(X.columns),
        task="classification",
        classes=["no", "yes"],
        domain=Domain((0,) * 4, (100,) * 4),
        fallback=Fallback("no"),
    )
    constraints = Constraints(thresholds={"*": {"digits": 1}}, forbidden=["debt"])
    result = constrain(rules, constraints, X, Y)
    assert (
        str(result.ruleset).startswith("1. IF age ≤ 30 or income > 40")
        or violations(result.ruleset, constraints) == []
    )


def test_repair_splits_conditions_on_one_feature_together() -> None:
    frame = pd.DataFrame({"size": range(8), "color": ["red", "green", "blue", "pink"] * 2})
    labels = np.array(list("abbaabba"))
    conditions = [OneOf(1, ["blue"], negated=True), OneOf(1, ["green"], negated=True)]
    rules = RuleSet(
        [Rule(conditions, "a")],
        list(frame),
        task="classification",
        fallback=Fallback("b"),
        classes=["a", "b"],
    )
    result = constrain(rules, Constraints(apart={"color": [["red", "pink"]]}), frame, labels)
    assert result.ruleset is not None
    assert [rule.conditions for rule in result.ruleset] == [
        (OneOf(1, ["red"]),),
        (OneOf(1, ["pink"]),),
    ]
    assert result.ruleset.predict(frame).tolist() == labels.tolist()


GROUPED = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "sex": list("ffmfmmfm")})


def test_cost_equal_to_limit_is_allowed() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1.5)], "a"), Rule([Interval(1, upper=1.5)], "a"), Rule([], "b")],
        ["x", "z"],
        task="classification",
    )
    constraints = Constraints(feature_costs={"x": 0.1, "z": 0.2}, max_cost=0.3, required=["x", "z"])
    assert not violations(rules, constraints)
    X = pd.DataFrame({"x": [1.0, 1, 2, 2, 3, 3], "z": [1.0, 2, 1, 2, 1, 2]})
    assert constrain(rules, constraints, X, list("aaabab")).ruleset.rules == rules.rules


def test_gap_equal_to_limit_is_allowed() -> None:
    rules = RuleSet(
        [Rule([Interval(1, lower=0.5)], "yes"), Rule([], "no")],
        ["g", "x"],
        task="classification",
        classes=["no", "yes"],
    )
    for a in range(1, 11):
        for b in range(a):
            x = np.repeat([1.0, 0.0, 1.0, 0.0], [a, 10 - a, b, 10 - b])
            X = pd.DataFrame({"g": np.repeat(["u", "v"], 10), "x": x})
            assert not violations(rules, Constraints(max_gap={"g": (a - b) / 10}), X)
            assert violations(rules, Constraints(max_gap={"g": (a - b) / 10 - 1e-9}), X)


def test_max_gap_counts_missing_predictions_as_no_class() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "n"), Rule([Interval(0, lower=5)], "p")],
        ["a", "sex"],
        task="classification",
        classes=["n", "p"],
    )
    # Of four rows each, two with sex = m and one with sex = f are predicted as p.
    (violation,) = violations(rules, Constraints(max_gap={"sex": 0.2}), GROUPED)
    assert "0.5 for sex = m and 0.25 for sex = f" in violation.evidence
    assert not violations(rules, Constraints(max_gap={"sex": 0.25}), GROUPED)
    # With an order of classes, the share of its last class counts: of n, 0.5 and 0.
    by_order = Constraints(max_gap={"sex": 0.4}, class_order=["p", "n"])
    (violation,) = violations(rules, by_order, GROUPED)
    assert "0.5 for sex = f and 0 for sex = m" in violation.evidence


def test_max_gap_omits_missing_predictions_of_regression() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=3)], 1.0), Rule([Interval(0, lower=6)], 4.0)],
        ["a", "sex"],
        task="regression",
    )
    # f: 1, 1 and 4 of the rows 1, 2 and 7; m: 1 and 4 of the rows 3 and 8.
    (violation,) = violations(rules, Constraints(max_gap={"sex": 0.4}), GROUPED)
    assert "2.5 for sex = m and 2 for sex = f" in violation.evidence
    only_f = rules.replace(rules=[Rule([Interval(0, upper=2)], 1.0)])
    assert not violations(only_f, Constraints(max_gap={"sex": 0.0}), GROUPED)


@pytest.mark.parametrize("limit", [0.25, 0.1])
def test_constrain_limits_gap_of_rules_without_fallback(limit: float) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "n"), Rule([Interval(0, lower=5)], "p")],
        ["a", "sex"],
        task="classification",
        classes=["n", "p"],
    )
    constraints = Constraints(max_gap={"sex": limit})
    result = constrain(rules, constraints, GROUPED, list("nnnnpppp"))
    assert result.ruleset is not None
    assert not violations(result.ruleset, constraints, GROUPED)
    is_p = np.array([v == "p" for v in _predictions(result.ruleset)])
    is_m = (GROUPED["sex"] == "m").to_numpy()
    assert abs(is_p[is_m].mean() - is_p[~is_m].mean()) <= limit
    assert (result.ruleset.fallback is None) == (limit == 0.25)  # only a repair adds one


def _predictions(rules: RuleSet) -> list[str | None]:
    """Return the prediction of each row, None without one."""
    covers = rules.covers(GROUPED) | (rules.fallback is not None)
    return [
        rules.predict(GROUPED.iloc[[i]])[0] if is_covered else None
        for i, is_covered in enumerate(covers.tolist())
    ]


@pytest.mark.parametrize("group", [["x", "z"], ["z", "x"], ["x", "w"]])
def test_repair_separates_values_that_do_not_occur(group: list[str]) -> None:
    frame = pd.DataFrame({"g": ["y", "z", "y"]})
    rules = RuleSet(
        [Rule([OneOf(0, ["y"], negated=True)], "p"), Rule([], "n")],
        ["g"],
        task="classification",
        classes=["n", "p"],
    )
    constraints = Constraints(apart={"g": [group]})
    result = constrain(rules, constraints, frame, ["n", "p", "n"])
    assert result.ruleset is not None
    assert broken(result.ruleset, constraints, frame, np.array(["n", "p", "n"])) == set()
    assert result.ruleset.predict(frame).tolist() == ["n", "p", "n"]
    unseen = pd.DataFrame({"g": group})
    assert result.ruleset.predict(unseen).tolist() == ["p", "p"]


def test_constrain_limits_gap_between_groups() -> None:
    frame = X.assign(group=np.where(X["age"] > 50, "old", "young"))
    model = FrozenEstimator(RandomForestClassifier(20, random_state=0).fit(X, Y))
    rules = CARTExtractor(model, max_leaf_nodes=6, random_state=0).fit(X).rules_
    loose, tight = (Constraints(max_gap={"group": gap}) for gap in (0.9, 0.02))
    assert constrain(rules, loose, frame, Y).outcomes == {"max_gap: group 0.9": "satisfied"}
    result = constrain(rules, tight, frame, Y)
    assert result.ruleset is not None
    assert broken(result.ruleset, tight, frame, Y) == set()


def test_constrain_balances_numbers_of_groups() -> None:
    frame = pd.DataFrame({"size": range(30), "color": ["red", "green", "blue"] * 10})
    numbers = np.where(frame["color"] == "red", 5.0, np.arange(30) / 10)
    pinned = [
        PinnedRule(Rule([Interval(0, upper=14), OneOf(1, ["red"])], 9.0), list(frame)),
        PinnedRule(Rule([Interval(0, upper=8), OneOf(1, ["blue"])], 3.0), list(frame)),
        PinnedRule(Rule([Interval(0, lower=20)], -1.6), list(frame)),
    ]
    constraints = Constraints(pinned=pinned, max_gap={"color": 0.01})
    rules = RuleSet(
        [Rule([OneOf(1, ["red"])], 5.0)], list(frame), task="regression", fallback=Fallback(1.0)
    )
    result = constrain(rules, constraints, frame, numbers)
    assert result.ruleset is not None
    means = pd.Series(result.ruleset.predict(frame)).groupby(frame["color"]).mean()
    assert np.ptp(means) <= 0.01


def test_rejection_is_reported_with_violations() -> None:
    pinned = PinnedRule(Rule([Interval(0, upper=50)], "yes"), list(X.columns), 1)
    constraints = Constraints(pinned=[pinned], max_rules=2, min_precision=0.62)
    rules = CARTExtractor(CLASSIFIER, max_leaf_nodes=4, random_state=0).fit(X).rules_
    result = constrain(rules, constraints, X, CLASSIFIER.predict(X))
    if result.is_rejected:
        error = RejectedRulesError(result)
        assert "rejected" in result.outcomes.values()
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
    else:
        assert result.ruleset is not None
        assert broken(result.ruleset, constraints, X, CLASSIFIER.predict(X)) == set()


@pytest.mark.parametrize("groups", [{"together": [[1, 2]]}, {"apart": [[1, 3]]}])
def test_groups_of_numbers_limit_bounds(groups: dict[str, list[list[int]]]) -> None:
    X = pd.DataFrame({"region": [1, 2, 3, 4] * 20, "b": np.arange(80) % 7})
    y = np.where((X["region"] == 1) | (X["b"] < 3), "yes", "no")
    constraints = Constraints(**{name: {"region": group} for name, group in groups.items()})
    bound = 1 if "together" in groups else 3
    premises = [[Interval(0, upper=bound)], [Interval(1, upper=2)], []]
    rules = RuleSet(map(Rule, premises, ["yes", "yes", "no"]), list(X), task="classification")
    (violation,) = violations(rules, constraints)
    assert violation.rule_index == 0
    result = constrain(rules, constraints, X, y)
    assert set(result.outcomes.values()) == {"repaired"}
    assert result.ruleset is not None
    assert not violations(result.ruleset, constraints)
    if "together" in groups:
        assert result.ruleset[0].conditions == (Interval(0, upper=2),)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["0", "1", float("nan"), "1"], "a label in every row, but row 2 has none"),
        ([0, 1, 0, 1], "labels of the type of the classes"),
    ],
)
def test_labels_must_be_complete_and_of_the_type_of_the_classes(labels, message) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "0"), Rule([], "1")], ["x"], task="classification"
    )
    rows, precise = [[1], [2], [1], [2]], Constraints(min_precision=1.0)
    for check in (violations, constrain):
        with pytest.raises(ValueError, match=message):
            check(rules, precise, rows, labels)
    with pytest.raises(ValueError, match=message):
        find_conflict(precise, rules, rows, labels)
    with pytest.raises(ValueError, match=message):
        RuleEditor(rules, rows, labels)
    with pytest.raises(ValueError, match="black_box must hold labels"):
        RuleEditor(rules, rows, black_box=lambda X: np.zeros(len(X), dtype=int))


@pytest.mark.parametrize("name", ["cream", "exact", "gridex", "iter", "real"])
def test_allowed_thresholds_do_not_change_counted_rows(name: str) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.integers(0, 8, 150), "b": rng.normal(0, 5, 150)})
    y = np.where((rows["a"] > 3) ^ (rows["b"] > 1), "yes", "no")
    allowed = {"a": {"decimals": 0}, "b": [-5.0, 0.0, 2.5, 30.0]}
    rules = (
        make_extractor(name, DecisionTreeClassifier(random_state=0), **EXTRACTORS[name])
        .set_constraints(Constraints(thresholds=allowed))
        .fit(rows, y)
        .rules_
    )
    positions = rules.assign(rows)
    matches = rules.match(rows)
    for i, rule in enumerate(rules):
        is_counted = positions == i if rules.ordered or rules.disjoint else matches[:, i]
        assert rule.statistics is not None
        assert rule.statistics.n_rows == is_counted.sum()
        assert rule.statistics.target_counts == tuple(
            np.count_nonzero(y[is_counted] == label) for label in ("no", "yes")
        )


@pytest.mark.parametrize("allowed", [{"decimals": 0}, {"digits": 1}, [-3.0, 0.0, 2.5, 4.0, 9.0]])
def test_bounds_on_steps_accept_the_same_rows(allowed: Any) -> None:
    rng = np.random.default_rng(0)
    constraints = Constraints(thresholds={"a": allowed})
    domain = Domain((-6.0,), (6.0,), missing=(0.1,))
    bounds = [-math.inf, -7.0, -3.0, -0.5, 0.0, 0.3, 2.5, 3.0, 5.7, 6.0, 8.0, math.inf]
    for values in (rng.normal(0, 2, 200), rng.integers(-4, 6, 50).astype(float)):
        column = np.append(values, [np.nan, 5.7])[:, None]
        steps = step_columns(column, constraints, ["a"], {})
        for low, high in itertools.combinations_with_replacement(bounds, 2):
            for *closed, missing in itertools.product([False, True], repeat=3):
                try:
                    interval = Interval(0, low, high, *closed, missing)
                except ValueError:  # no number is in the interval
                    continue
                rules = [Rule([interval], 1.0), Rule([], 0.0)]
                options = {"task": "regression", "domain": domain, "ordered": True}
                learned = RuleSet(rules, ["a"], **options)
                moved = bounds_on_steps(learned, constraints, column)
                np.testing.assert_array_equal(moved.predict(column), learned.predict(steps))
                used = {b for rule in moved for c in rule.conditions for b in finite_bounds(c)}
                assert all(map(constraints.thresholds["a"].allows, used))


def finite_bounds(condition: Any) -> list[float]:
    bounds = (getattr(condition, "lower", math.inf), getattr(condition, "upper", math.inf))
    return [bound for bound in bounds if math.isfinite(bound)]


@pytest.mark.parametrize("is_regression", [False, True])
def test_monotone_trees_count_labels_of_rows(is_regression: bool) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame(rng.integers(0, 6, (100, 3)), columns=["a", "b", "c"]).astype(float)
        score = rows["a"] - 0.5 * rows["b"] + rng.normal(0, 2, 100)
        y = score.to_numpy() if is_regression else np.where(score > 1, "yes", "no")
        tree = (DecisionTreeRegressor if is_regression else DecisionTreeClassifier)(random_state=0)
        extractor = CARTExtractor(tree, max_leaf_nodes=8, random_state=0)
        extractor.set_constraints(Constraints(monotone={"a": "+", "b": "+"})).fit(rows, y)
        labels = extractor.estimator_.predict(rows)
        for rule, expected in zip(
            extractor.rules_, with_statistics(extractor.rules_, rows, labels), strict=True
        ):
            assert rule.statistics is not None
            assert expected.statistics is not None
            assert rule.statistics.class_counts == expected.statistics.class_counts
            assert rule.statistics.mean == pytest.approx(expected.statistics.mean)
