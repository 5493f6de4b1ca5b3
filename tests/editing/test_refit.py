"""Refits keep pinned rules, and suggestions restore the stated rows."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.constraints import Constraints, violations
from skescore.editing import RuleEditor, apply_edit, predict_rows, refit, replay
from skescore.optimal import SolverLimits
from skescore.rules import Interval, OneOf, Rule, RuleSet, as_ruleset


@pytest.fixture(scope="module")
def cancer() -> tuple[RuleSet, pd.DataFrame, pd.Series, RandomForestClassifier]:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:300, :6]
    y = y.iloc[:300].map({0: "malignant", 1: "benign"})
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, model.predict(X))
    rules = as_ruleset(tree)
    return rules.replace(ordered=True, disjoint=False), X, y, model


def test_refit_keeps_pinned_rules_in_place(cancer: tuple) -> None:
    rules, X, _, model = cancer
    labels = model.predict(X)
    for pinned in ([0], [1, 3], [2]):
        refitted = refit(rules, X, labels, pinned=pinned)
        for index in pinned:
            assert refitted[index].conditions == rules[index].conditions
            assert refitted[index].output == rules[index].output
        assert len(refitted) <= len(rules)


def test_reoptimize_finds_better_rules(cancer: tuple) -> None:
    rules, X, y, model = cancer
    editor = RuleEditor(rules, X, y, model, author="Ann")
    editor.set_output(1, next(c for c in rules.classes if c != rules[0].output))
    result = editor.reoptimize(pinned=[1])
    assert result.is_better
    assert editor.rules_[0].conditions == rules[0].conditions
    assert result.distance > 0
    assert "Refit around rule 1" in str(result)
    assert replay(editor.log_.to_json()) == editor.rules_
    n_steps = len(editor.log_.records)
    assert not editor.reoptimize(pinned=[1]).is_better
    assert len(editor.log_.records) == n_steps


def test_reoptimize_satisfies_constraints(cancer: tuple) -> None:
    rules, X, y, model = cancer
    feature = X.columns[rules[0].conditions[0].feature]
    wishes = Constraints(forbidden=[feature], thresholds={"*": {"digits": 2}})
    editor = RuleEditor(rules, X, y, model, constraints=wishes)
    effect = editor.forbid(feature)
    assert effect.violations
    assert not editor.reoptimize().effect.violations
    bounds = [b for r in editor.rules_ for c in r.intervals for b in (c.lower, c.upper)]
    assert all(float(f"{b:.2g}") == b for b in bounds)


def test_repair_satisfies_constraints(cancer: tuple) -> None:
    rules, X, y, model = cancer
    wishes = Constraints(thresholds={"*": {"digits": 2}})
    editor = RuleEditor(rules, X, y, model, constraints=wishes)
    effect = editor.repair(because="readable")
    assert not effect.violations
    assert not effect.is_changed.all()
    assert editor.log_.records[0].reason == "readable"
    with pytest.raises(ValueError, match="no constraints"):
        RuleEditor(rules, X, y, model).repair()


def test_suggestions_restore_the_stated_rows(cancer: tuple) -> None:
    rules, X, y, model = cancer
    editor = RuleEditor(rules, X, y, model)
    editor.set_output(1, next(c for c in rules.classes if c != rules[0].output))
    suggestions = editor.suggestions(limit=3)
    assert suggestions
    labels = model.predict(X)
    errors = [(predict_rows(r, X)[0] != labels).sum() for r in (rules, editor.rules_)]
    for suggestion in suggestions:
        edited = apply_edit(editor.rules_, suggestion.edit)
        n_errors = (predict_rows(edited, X)[0] != labels).sum()
        assert suggestion.restored == pytest.approx(
            (errors[1] - n_errors) / (errors[1] - errors[0])
        )
        assert suggestion.restored >= 0.9
        changed = predict_rows(edited, X)[0] != predict_rows(editor.rules_, X)[0]
        assert suggestion.n_rows_changed == changed.sum()
    costs = [s.n_rows_changed for s in suggestions]
    assert costs == sorted(costs)
    assert all(s.edit.get("number") != 1 for s in editor.suggestions(pinned=[1]))


def test_suggestions_are_empty_without_loss(cancer: tuple) -> None:
    rules, X, y, model = cancer
    assert RuleEditor(rules, X, y, model).suggestions() == []


def test_reoptimize_accepts_categories_and_regression(cases: ModuleType) -> None:
    random = np.random.default_rng(4)
    X = cases.table(random, 150)
    y = cases.labels(random, X, numeric=False)
    rules = RuleSet(
        [Rule([OneOf(2, ["red"])], "high"), Rule([Interval(0, upper=3)], "low"), Rule([], "low")],
        list(X),
        task="classification",
        classes=["high", "low", "middle"],
    )
    editor = RuleEditor(rules, X, y)
    assert editor.reoptimize(pinned=[1], max_rules=4).is_better
    assert editor.rules_[0].conditions == rules[0].conditions
    numbers = cases.labels(random, X, numeric=True)
    regression = RuleSet(
        [Rule([OneOf(2, ["red"])], 9.0), Rule([], 1.0)], list(X), task="regression"
    )
    editor = RuleEditor(regression, X, numbers)
    assert editor.reoptimize(pinned=[1], max_rules=3).distance > 0


def test_refit_rejects_votes_and_small_limits(cases: ModuleType) -> None:
    rules, X, y = cases.rule_set(np.random.default_rng(0), "voting")
    with pytest.raises(ValueError, match="one rule predicts"):
        RuleEditor(rules, X, y).reoptimize()
    rules, X, y = cases.rule_set(np.random.default_rng(0), "list")
    with pytest.raises(ValueError, match="max_rules"):
        refit(rules, X, y, pinned=[0, 1], max_rules=1)


@pytest.mark.parametrize("pinned", [1, 2])
def test_suggestions_do_not_move_bounds_of_pinned_rules(pinned: int) -> None:
    premises = [Interval(0, upper=40)], [Interval(0, lower=40)]
    rules = RuleSet(
        map(Rule, premises, ["no", "yes"]), ["age"], task="classification", disjoint=True
    )
    X = np.arange(10.0, 60)[:, None]
    editor = RuleEditor(rules, X, rules.predict(X))
    editor.set_bound(1, "age", upper=20)
    assert editor.suggestions()
    for suggestion in editor.suggestions(pinned=[pinned]):
        assert editor.rules_[pinned - 1] in list(apply_edit(editor.rules_, suggestion.edit))


def test_reoptimize_limits_checks_of_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    n_checks = 0

    def count(*arguments: object) -> list[object]:
        nonlocal n_checks
        n_checks += 1
        return violations(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("skescore.editing._constrained_trees.violations", count)
    X = pd.DataFrame(np.random.default_rng(0).random((60, 2)), columns=["a", "b"])
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], 0), Rule([], 1)], ["a", "b"], task="classification"
    )
    one_feature = Constraints(max_features=1)
    editor = RuleEditor(rules, X, (X.sum(axis=1) > 1).astype(int), constraints=one_feature)
    editor.reoptimize(max_rules=4, limits=SolverLimits(max_work=0.1))
    assert 0 < n_checks < 300


@pytest.mark.parametrize("labels", [[0.0, 1.0], [0.0, 1.0, 2.0]])
def test_reoptimize_predicts_classes_that_are_floats(labels: list[float]) -> None:
    X = pd.DataFrame(np.random.default_rng(0).random((60, 2)), columns=["a", "b"])
    y = np.digitize(X.sum(axis=1), [0.8, 1.2][: len(labels) - 1]).astype(float)
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], 0.0), Rule([], 1.0)], ["a", "b"], task="classification"
    )
    editor = RuleEditor(rules.replace(classes=labels), X, y)
    assert editor.reoptimize(max_rules=4).is_better
    assert set(editor.rules_.predict(X)) <= set(labels)


@pytest.mark.parametrize("pinned", [[], [1]])
def test_reoptimize_respects_the_largest_number_of_rules(pinned: list[int]) -> None:
    X = pd.DataFrame({"a": np.arange(40.0)})
    rules = as_ruleset(DecisionTreeClassifier(random_state=0).fit(X, X["a"] // 10 % 2))
    editor = RuleEditor(rules, X, 1 - X["a"] // 10 % 2, constraints=Constraints(max_rules=2))
    editor.reoptimize(pinned)
    assert len(editor.rules_) == 2


def test_reoptimize_counts_the_support_in_all_rows() -> None:
    X = pd.DataFrame({"a": np.arange(40.0)})
    y = np.where(X["a"] > 33, "yes", "no")
    rules = [Rule([Interval(0, upper=19)], "yes"), Rule([], "yes")]
    constraints = Constraints(min_support=0.25)
    editor = RuleEditor(
        RuleSet(rules, ["a"], task="classification", classes=["no", "yes"]),
        X,
        y,
        constraints=constraints,
    )
    assert editor.reoptimize([1], max_rules=3).is_better
    assert violations(editor.rules_, constraints, X, y) == []


def test_reoptimize_orders_classes_like_the_rules() -> None:
    X = pd.DataFrame({"a": np.repeat(np.arange(6.0), 4)})
    y = np.where(X["a"] <= 1, "yes", "no")
    rules = RuleSet(
        [Rule([Interval(0, upper=3)], "yes"), Rule([], "no")], ["a"], task="classification"
    )
    rules = rules.replace(classes=["yes", "no"])
    editor = RuleEditor(rules, X, y, constraints=Constraints(monotone={"a": "+"}))
    assert editor.reoptimize().is_better
    np.testing.assert_array_equal(editor.rules_.predict(X), y)


def test_reoptimize_around_rules_that_cover_a_class() -> None:
    X = pd.DataFrame({"a": np.repeat(np.arange(6.0), 4)})
    y = np.where(X["a"] <= 1, "yes", "no")
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "yes"), Rule([], "yes")], ["a"], task="classification"
    )
    constraints = Constraints(
        monotone={"a": "-"}, class_order=["no", "yes"], max_conditions={"yes": 1}
    )
    editor = RuleEditor(rules.replace(classes=["no", "yes"]), X, y, constraints=constraints)
    assert editor.reoptimize([1]).is_better
    np.testing.assert_array_equal(editor.rules_.predict(X), y)


def test_reoptimize_keeps_groups_of_numbers_together() -> None:
    X = pd.DataFrame({"a": [1, 2, 3, 4] * 20, "b": np.arange(80) % 7})
    y = np.where((X["a"] == 1) | ((X["a"] == 2) & (X["b"] < 4)), "yes", "no")
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "yes"), Rule([], "no")], list(X), task="classification"
    )
    editor = RuleEditor(rules, X, y, constraints=Constraints(together={"a": [[1, 2]]}))
    result = editor.reoptimize(max_rules=3)
    assert not result.effect.violations
    assert "ICE" in str(result)
