"""Edits change rules like edits by hand, and never leave wrong statistics."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skescore.editing import RuleEditor, WrittenEdits, apply_edit, predict_rows
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
    as_ruleset,
    with_statistics,
)

ADULT = RuleSet(
    [
        Rule([Interval(0, upper=18)], "no"),
        Rule([Interval(1, lower=100), OneOf(2, ["red", "blue"])], "yes"),
        Rule([Interval(1, upper=20)], "no"),
    ],
    ["age", "income", "color"],
    task="classification",
    domain=Domain((0, 0, 0), (99, 200, 3), [(2, ["blue", "green", "red"])]),
    fallback=Fallback("yes"),
)


def texts(rules: RuleSet) -> list[str]:
    return [rule.to_text(rules.feature_names) for rule in rules]


def first_that_holds(rules: list[Rule], X: pd.DataFrame, otherwise: Any) -> list[Any]:
    """Predict by a loop over rows and rules."""
    predictions = []
    for i in range(len(X)):
        row = X.iloc[[i]]
        holds = [r for r in rules if r.holds(lambda j, row=row: row.iloc[:, j].to_numpy(), 1)[0]]
        predictions.append(holds[0].output if holds else otherwise)
    return predictions


@pytest.mark.parametrize("kind", ["list", "tree", "unordered", "voting"])
def test_edits_keep_only_valid_statistics(cases: ModuleType, kind: str) -> None:
    n_edits = n_remaining = 0
    for seed in range(9):
        random = np.random.default_rng(seed)
        rules, X, y = cases.rule_set(random, kind)
        for _ in range(6):
            try:
                rules = apply_edit(rules, cases.random_edit(random, rules))
            except ValueError:
                continue
            n_edits += 1
            if not (rules.ordered or rules.disjoint):
                continue
            recounted = with_statistics(rules, X, y)
            for rule, right in zip(rules, recounted, strict=True):
                if rule.statistics is not None:
                    n_remaining += 1
                    assert rule.statistics == right.statistics
    assert n_edits > 30
    assert n_remaining > 15 or kind in ("unordered", "voting")


def test_edits_keep_statistics_of_votes(cases: ModuleType) -> None:
    rules, _, _ = cases.rule_set(np.random.default_rng(3), "voting")
    edited = apply_edit(rules, {"action": "drop", "number": 1})
    assert [r.statistics for r in edited] == [r.statistics for r in rules[1:]]


def test_edits_of_lists_predict_like_a_loop(cases: ModuleType) -> None:
    for seed in range(2):
        random = np.random.default_rng(seed)
        rules, X, _ = cases.rule_set(random, "list")
        rules = rules.replace(fallback=Fallback("low"))
        by_hand = list(rules)
        moved = [*by_hand[1:], by_hand[0]]
        pairs = [
            ({"action": "drop", "number": len(rules)}, by_hand[:-1]),
            ({"action": "move", "number": 1, "to": len(rules)}, moved),
            (
                {"action": "set_output", "number": 1, "output": "high"},
                [replace(by_hand[0], output="high"), *by_hand[1:]],
            ),
        ]
        for edit, expected in pairs:
            edited = apply_edit(rules, edit)
            assert predict_rows(edited, X)[0].tolist() == first_that_holds(expected, X, "low")


def test_split_does_not_change_predictions(cases: ModuleType) -> None:
    n_splits = 0
    for seed in range(24):
        random = np.random.default_rng(seed)
        rules, X, _ = cases.rule_set(random, str(random.choice(["list", "tree"])))
        number = int(random.integers(1, len(rules) + 1))
        edit = {"action": "split", "number": number, "feature": "age", "bound": 4.0}
        if "color" in X and seed % 2:
            edit = {"action": "split", "number": number, "feature": "color", "values": ["red"]}
        try:
            edited = apply_edit(rules, edit)
        except ValueError:
            continue
        n_splits += 1
        assert len(edited) == len(rules) + 1
        before, after = predict_rows(rules, X), predict_rows(edited, X)
        np.testing.assert_array_equal(before[0], after[0])
        np.testing.assert_array_equal(before[1], after[1])
    assert n_splits > 8


def test_split_keeps_rows_with_missing_values() -> None:
    """Rows with and without values of each kind of premise are the oracle."""
    premises: list[list[Any]] = [
        [],
        [Interval(0, upper=5)],
        [Interval(0, upper=5, missing=True)],
        [Missing(0, negated=True)],
        [OneOf(1, ["u"])],
        [AtLeast(1, (Interval(0, upper=1), OneOf(1, ["u"])))],
        [AtLeast(2, (Interval(0, upper=4, missing=True), OneOf(1, ["u"], missing=True)))],
    ]
    ages, colors = [0.0, 1.0, 2.0, 3.0, 4.5, 9.0, np.nan], ["u", "v", None]
    X = pd.DataFrame([(a, c) for a in ages for c in colors], columns=["age", "color"])
    edits = [
        {"action": "split", "number": 1, "feature": "age", "bound": 2.0},
        {"action": "split", "number": 1, "feature": "color", "values": ["v"]},
    ]
    n_splits = 0
    for premise in premises:
        rules = RuleSet(
            [Rule(premise, "no")],
            ["age", "color"],
            task="classification",
            classes=["no", "yes"],
            fallback=Fallback("yes"),
        )
        for edit in edits:
            try:
                edited = apply_edit(rules, edit)
            except ValueError:
                continue  # one half would be empty
            n_splits += 1
            assert predict_rows(edited, X)[0].tolist() == predict_rows(rules, X)[0].tolist()
    assert n_splits >= 12


def test_split_names_missing_values_that_can_occur() -> None:
    rules = RuleSet([Rule([], "no")], ["age"], task="classification", classes=["no", "yes"])
    edit = {"action": "split", "number": 1, "feature": "age", "bound": 2.0}
    domain = Domain((0,), (9,))
    assert "missing" not in apply_edit(rules.replace(domain=domain), edit).to_text()
    assert "missing" in apply_edit(rules, edit).to_text()


def test_set_bound_moves_the_split_of_a_tree() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(200, 2)), columns=["a", "b"])
    y = np.where(X["a"] > 0.3, "x", np.where(X["b"] > 0, "y", "z"))
    model = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    rules = as_ruleset(model)
    root = float(model.tree_.threshold[0])
    feature = ["a", "b"][model.tree_.feature[0]]
    number, side = next(
        (i, side)
        for i, rule in enumerate(rules, 1)
        for side in ("lower", "upper")
        for c in rule.intervals
        if X.columns[c.feature] == feature and abs(getattr(c, side) - root) < 1e-6
    )
    edit = {"action": "set_bound", "number": number, "feature": feature, side: root + 0.25}
    edited = apply_edit(rules, edit)
    model.tree_.threshold[0] = root + 0.25
    assert edited.disjoint
    assert edited.predict(X).tolist() == model.predict(X).tolist()
    assert (edited.predict(X) != rules.predict(X)).any()


def test_set_bound_turns_overlapping_tree_into_a_list() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a"), Rule([Interval(0, lower=1)], "b")],
        ["x"],
        task="classification",
        ordered=False,
        disjoint=True,
    )
    edit = {"action": "set_bound", "number": 1, "feature": "x", "upper": 2.0, "shared": False}
    edited = apply_edit(rules, edit)
    assert (edited.ordered, edited.disjoint) == (True, False)
    assert edited.predict([[1.5], [2.5]]).tolist() == ["a", "b"]


def test_edits_change_named_parts() -> None:
    edits: list[tuple[dict[str, Any], int, str]] = [
        ({"action": "set_bound", "number": 1, "feature": "age", "upper": 21}, 0, "age ≤ 21"),
        (
            {
                "action": "set_bound",
                "number": 3,
                "feature": "age",
                "lower": 65,
                "lower_closed": True,
            },
            2,
            "age ≥ 65 AND income ≤ 20",
        ),
        (
            {"action": "set_categories", "number": 2, "feature": "color", "values": ["green"]},
            1,
            "income > 100 AND color = green",
        ),
        ({"action": "merge", "first": 1, "second": 3}, 0, "ALWAYS no"),
        ({"action": "forbid", "feature": "color"}, 1, "IF income > 100 THEN"),
    ]
    for edit, index, text in edits:
        assert text in texts(apply_edit(ADULT, edit))[index]
    fallback = apply_edit(ADULT, {"action": "set_fallback", "output": "no"}).fallback
    assert fallback == Fallback("no")


def test_merge_returns_the_smallest_rule_around_both() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, 1, 2), OneOf(1, ["red"])], "a"),
            Rule([Interval(0, 5, 7, lower_closed=True), OneOf(1, ["blue"])], "a"),
        ],
        ["x", "color"],
        task="classification",
    )
    merged = apply_edit(rules, {"action": "merge", "first": 2, "second": 1})
    assert texts(merged) == ["IF 1 < x ≤ 7 AND color in {blue, red} THEN a"]


def test_merge_weighs_outputs_by_rows() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1)], 10.0, RuleStatistics(10)),
            Rule([Interval(0, 1, 2)], 100, RuleStatistics(0)),
            Rule([], 5.0, RuleStatistics(1)),
        ],
        ["x"],
        task="regression",
    )
    merged = apply_edit(rules, {"action": "merge", "first": 1, "second": 2})
    assert merged[0].output == 10.0


def test_bounds_of_categories_are_rejected_without_a_step() -> None:
    rules = RuleSet(
        [Rule([OneOf(0, ["red"])], "a"), Rule([], "b")],
        ["color", "age"],
        task="classification",
        domain=Domain((0, 0), (2, 9), [(0, ["blue", "red"])]),
    )
    editor = RuleEditor(rules, pd.DataFrame({"color": ["red", "blue"], "age": [1, 2]}), ["a", "b"])
    with pytest.raises(ValueError, match="color has categories, which have no bounds"):
        editor.set_bound(2, "color", upper=3)
    assert (editor.rules_, len(editor.log_.records)) == (rules, 0)


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        (OneOf(0, ["red"]), OneOf(0, ["red"], negated=True), "IF x is known THEN a"),
        (OneOf(0, ["red"], missing=True), OneOf(0, ["red"], negated=True), "ALWAYS a"),
        (Interval(0, upper=2), Interval(0, lower=2), "IF x is known THEN a"),
        (Interval(0, upper=2), Missing(0), "IF x ≤ 2 or missing THEN a"),
        (Interval(0, upper=2), Missing(0, negated=True), "IF x is known THEN a"),
        (Missing(0), Missing(0, negated=True), "ALWAYS a"),
    ],
)
def test_merge_keeps_what_rules_say_of_missing_values(one, other, merged) -> None:
    rules = RuleSet([Rule([one], "a"), Rule([other], "a")], ["x"], task="classification")
    assert texts(apply_edit(rules, {"action": "merge", "first": 1, "second": 2})) == [merged]


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        ({"action": "dorp"}, "Did you mean 'drop'"),
        ({"action": "drop", "number": 4}, "from 1 to 3"),
        ({"action": "drop", "number": 0}, "number"),
        ({"action": "merge", "first": 1, "second": 2}, "different outputs"),
        ({"action": "set_output", "number": 1, "output": "maybe"}, "one of the classes"),
        ({"action": "set_bound", "number": 1, "feature": "agee", "upper": 3}, "Did you mean 'age'"),
        ({"action": "set_bound", "number": 2, "feature": "color", "upper": 3}, "set_categories"),
        (
            {"action": "set_bound", "number": 1, "feature": "age", "lower": 20},
            "cannot have these bounds",
        ),
        (
            {"action": "set_categories", "number": 2, "feature": "color", "values": ["rde"]},
            "Did you mean 'red'",
        ),
        ({"action": "split", "number": 1, "feature": "age", "bound": 30.0}, "empty"),
    ],
)
def test_apply_edit_rejects_impossible_edits_with_a_remedy(
    edit: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        apply_edit(ADULT, edit)


def test_forbid_rejects_combined_features() -> None:
    linear = Rule([Linear([(0, 1.0), (1, 2.0)], upper=3)], 1.0)
    affine = Rule([], LinearOutput(1.0, [(0, 2.0)]))
    for rule in (linear, affine):
        rules = RuleSet([rule], ["a", "b"], task="regression")
        with pytest.raises(ValueError, match="refit without"):
            apply_edit(rules, {"action": "forbid", "feature": "a"})


def test_edits_of_overlapping_rules_remove_invalid_errors() -> None:
    statistics = RuleStatistics(9, mean=5.0, model_error=0.5, target_error=1.0)
    premises = [Interval(0, upper=9)], [Interval(0, lower=5)]
    rules = [Rule(premise, 5.0, statistics) for premise in premises]
    before = RuleSet(rules, ["x"], task="regression", ordered=False)
    edit = {"action": "set_output", "number": 1, "output": 7.0}
    errors = [rule.statistics.model_error for rule in apply_edit(before, edit)]
    assert errors == [None, 0.5]
    moved = {"action": "set_bound", "number": 2, "feature": "x", "lower": 8}
    errors = [rule.statistics.target_error for rule in apply_edit(before, moved)]
    assert errors == [None, None]


@pytest.mark.parametrize(
    ("text", "values", "label"),
    [
        ("AT&T=x => a=>b", ("x",), "a=>b"),
        ("AT&T=x => b", ("x",), "b"),
        ('AT&T="x=>y" => b', ("x=>y",), "b"),
    ],
)
def test_written_rules_may_contain_operators_in_names(text, values, label) -> None:
    rules = RuleSet([Rule([], "b")], ["AT&T"], task="classification", classes=["a=>b", "b"])
    edited = apply_edit(rules, WrittenEdits(rules).read("add", text, rules))
    assert edited[1] == Rule([OneOf(0, values)], label)


def test_written_edits_may_quote_names_as_printed_rules_do() -> None:
    names = ["old, city", "x<1"]
    rules = RuleSet([Rule([], "b")], names, task="classification", classes=["a", "b"])
    text = '"old, city"=Ulm & "x<1"<=2 => a'
    edited = apply_edit(rules, WrittenEdits(rules).read("add", text, rules))
    assert '2. ELSE IF "x<1" ≤ 2 AND "old, city" = Ulm THEN a' in str(edited)
    edited = apply_edit(edited, WrittenEdits(edited).read("set", '2."x<1"<=3', edited))
    assert '"x<1" ≤ 3 AND' in str(edited)
