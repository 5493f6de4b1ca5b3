"""Effects state the changes by an edit with valid intervals."""

from __future__ import annotations

import itertools
import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier
from skescore.editing import (
    RuleEditor,
    apply_edit,
    contradictions,
    difference_of_means,
    difference_of_shares,
    predict_rows,
    replay,
    unreachable_rules,
)
from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet, as_ruleset
from skescore.scorers import SCORERS


@pytest.fixture(scope="module")
def editor() -> RuleEditor:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, model.predict(X))
    return RuleEditor(as_ruleset(tree), X, y, model, held_out=(X_new, y_new), author="Ann")


def test_effect_figures_equal_scikit_learn(editor: RuleEditor) -> None:
    before = editor.rules_
    effect = editor.merge(*same_output(before))
    after = editor.rules_
    X, y, model = editor.rows.X, editor.rows.y, editor.rows.model
    correctness, fidelity = effect.figures
    assert correctness.before == accuracy_score(y, before.predict(X))
    assert correctness.after == accuracy_score(y, after.predict(X))
    assert fidelity.after == accuracy_score(model, after.predict(X))
    assert "38 held-out rows" in correctness.label
    assert (
        effect.changed_rows.index.tolist()
        == np.flatnonzero(before.predict(X) != after.predict(X)).tolist()
    )
    for figure in effect.scores:
        sign = 1 if figure.greater_is_better else -1
        assert figure.after == pytest.approx(sign * SCORERS[figure.name](after, X, y))
        assert figure.difference.low <= figure.difference.estimate <= figure.difference.high
    assert "changed predictions" in str(effect)
    assert effect.to_json()["n_rows"] == 38


def same_output(rules: RuleSet) -> tuple[int, int]:
    return next(
        (i + 1, j + 1)
        for i, j in itertools.combinations(range(len(rules)), 2)
        if rules[i].output == rules[j].output
    )


@pytest.mark.parametrize(
    ("task", "outputs"), [("classification", "ab"), ("regression", (1.0, 2.0))]
)
def test_effect_counts_abstentions(task: str, outputs: Any) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], outputs[0]), Rule([Interval(0, 1, 2)], outputs[1])],
        ["x"],
        task=task,
        fallback=Fallback(outputs[0], "abstain"),
    )
    editor = RuleEditor(rules, [[0.5], [1.5], [9.0]], [*outputs, outputs[0]])
    assert editor.set_output(1, outputs[0]).n_without_prediction == 1


def test_recount_changes_statistics_only(editor: RuleEditor) -> None:
    before = editor.rules_
    effect = editor.recount()
    assert not effect.is_changed.any()
    assert sum(rule.statistics.n_rows for rule in editor.rules_) == 112
    assert [r.conditions for r in editor.rules_] == [r.conditions for r in before]
    assert editor.rules_.reference == "black_box"
    edit = editor.log_.records[-1].edit
    assert edit["action"] == "recount"
    with pytest.raises(ValueError, match="only the statistics"):
        apply_edit(before[:1], edit)


@pytest.mark.parametrize("n_rows", [1, 9])
def test_difference_of_shares_covers_exactly(n_rows: int) -> None:
    # All outcomes of pairs (gained, lost), with their probabilities: no simulation.
    intervals = {}
    for gained in range(n_rows + 1):
        for lost in range(n_rows + 1 - gained):
            same = n_rows - gained - lost
            before = np.array([False] * gained + [True] * lost + [True] * same)
            after = np.array([True] * gained + [False] * lost + [True] * same)
            intervals[gained, lost] = difference_of_shares(before, after)
    for p, q in itertools.product(np.linspace(0, 1, 9), repeat=2):
        if p + q > 1:
            continue
        covered = sum(
            stats.multinomial.pmf([*one, n_rows - sum(one)], n_rows, [p, q, max(0.0, 1 - p - q)])
            for one, d in intervals.items()
            if d.low - 1e-12 <= p - q <= d.high + 1e-12
        )
        assert covered >= 0.95 - 1e-9


def test_difference_of_shares_uses_pairs() -> None:
    before = np.arange(400) < 300
    after = np.arange(400) < 320
    difference = difference_of_shares(before, after)
    assert difference.estimate == 0.05
    assert difference.low > 0
    assert difference.p_value == pytest.approx(2 * 0.5**20)


def test_difference_of_means_equals_paired_t_test() -> None:
    before, after = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.5, 2.0, 3.0, 9.0])
    expected = stats.ttest_rel(after, before).confidence_interval()
    difference = difference_of_means(before, after)
    assert (difference.low, difference.high) == pytest.approx((expected.low, expected.high))


def test_regression_effect_has_mean_errors(cases: ModuleType) -> None:
    rules, X, y = cases.rule_set(np.random.default_rng(2), "regression list")
    editor = RuleEditor(rules.replace(fallback=None), X, y)
    effect = editor.set_output(1, 100.0)
    predictions, has_prediction = predict_rows(editor.rules_, X)
    errors = np.abs(y - np.where(has_prediction, predictions, y.mean()))
    assert effect.figures[0].after == pytest.approx(errors.mean())
    assert not effect.figures[0].greater_is_better
    assert effect.n_without_prediction == (~has_prediction).sum()
    assert ("no rule" in str(effect)) == (effect.n_without_prediction > 0)


def test_unreachable_rules_equal_a_grid(cases: ModuleType) -> None:
    random = np.random.default_rng(0)
    n_unreachable = 0
    for _ in range(30):
        rules_list = []
        for _ in range(5):
            conditions = []
            for j in (0, 1):
                low, high = sorted(random.choice(np.arange(5), 2, replace=False).tolist())
                if random.random() < 0.7:
                    conditions.append(Interval(j, low, high))
            if random.random() < 0.4:
                conditions.append(OneOf(2, [str(random.choice(["a", "b"]))]))
            rules_list.append(Rule(conditions, str(random.choice(["yes", "no"]))))
        rules = RuleSet(
            rules_list,
            ["x", "y", "z"],
            task="classification",
            classes=["no", "yes"],
            domain=Domain((0, 0, 0), (4, 4, 2), [(2, ["a", "b"])]),
        )
        # Every cell between neighboring bounds, and the bounds themselves.
        values = np.arange(0, 4.25, 0.5)
        grid = np.array(list(itertools.product(values, values, ["a", "b"])), dtype=object)
        reached = set(rules.assign(grid)) - {-1}
        expected = tuple(i + 1 for i in range(5) if i not in reached)
        n_unreachable += len(expected)
        assert unreachable_rules(rules) == expected
    assert n_unreachable > 10


def test_unreachable_rules_consider_missing_values() -> None:
    """Without a domain, each feature may be missing: rows of all kinds are the oracle."""
    random = np.random.default_rng(1)
    values = np.array([*np.arange(0, 5.25, 0.5) - 0.5, np.nan])
    grid = np.array(list(itertools.product(values, values)))
    n_unreachable = n_only_missing = 0
    for _ in range(60):
        rules_list = []
        for _ in range(5):
            conditions = []
            for j in (0, 1):
                bounds = [(-np.inf, 2.0), (2.0, np.inf), (-np.inf, 3.0), (1.0, np.inf)]
                low, high = bounds[int(random.integers(4))]
                if random.random() < 0.6:
                    accepts = bool(random.random() < 0.2)
                    conditions.append(Interval(j, low, high, missing=accepts))
            rules_list.append(Rule(conditions, str(random.choice(["yes", "no"]))))
        rules = RuleSet(rules_list, ["x", "y"], task="classification", classes=["no", "yes"])
        reached = set(rules.assign(grid)) - {-1}
        reached_without = set(rules.assign(grid[~np.isnan(grid).any(axis=1)])) - {-1}
        expected = tuple(i + 1 for i in range(5) if i not in reached)
        n_unreachable += len(expected)
        n_only_missing += len(reached - reached_without)
        assert unreachable_rules(rules) == expected
    assert n_unreachable > 10
    assert n_only_missing > 10


def test_unreachable_rules_respect_domain_without_missing() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "no"), Rule([Interval(0, 2)], "yes"), Rule([], "rest")],
        ["age"],
        task="classification",
    )
    assert unreachable_rules(rules) == ()
    for share, expected in ((0.0, (3,)), (0.1, ())):
        domain = Domain((0,), (9,), missing=(share,))
        assert unreachable_rules(rules.replace(domain=domain)) == expected


def test_contradictions_concern_unordered_rules_only() -> None:
    rules = [
        Rule([Interval(0, upper=3)], "a"),
        Rule([Interval(0, lower=2)], "b"),
        Rule([Interval(0, lower=2.5)], "b"),
    ]
    unordered = RuleSet(rules, ["x"], task="classification", ordered=False)
    assert contradictions(unordered, [[1], [2.7], [9]]) == ((1, 2), (1, 3))
    assert contradictions(unordered.replace(ordered=True), [[1], [2.7], [9]]) == ()


def test_editor_rejects_unusable_input() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification")
    with pytest.raises(ValueError, match="black_box"):
        RuleEditor(rules, [[1]])
    with pytest.raises(ValueError, match="one value for each"):
        RuleEditor(rules, [[1]], ["a", "a"])
    editor = RuleEditor(rules, [[1]], ["a"])
    with pytest.raises(ValueError, match="upper"):
        editor.set_bound(1, "x", upper=math.nan)
    with pytest.raises(TypeError, match="because"):
        editor.set_bound(1, "x", upper=1, because=3)
    assert not editor.log_.records


@pytest.mark.parametrize("wrap", [None, CallableClassifier])
def test_editor_accepts_functions_as_black_box(wrap: Any) -> None:
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    rules = RuleSet(
        [Rule([Interval(0, upper=1.5)], "no"), Rule([], "yes")], ["x0"], task="classification"
    )

    def predict(rows: Any) -> Any:
        return np.where(rows[:, 0] > 2, "yes", "no")

    editor = RuleEditor(rules, X, black_box=wrap(predict) if wrap else predict)
    model = DecisionTreeClassifier().fit(X, predict(X))
    other = RuleEditor(rules, X, black_box=model)
    assert str(editor.drop(1)) == str(other.drop(1))


def test_recount_includes_rows_of_other_classes() -> None:
    premises = [Interval(0, upper=2)], []
    rules = RuleSet(list(map(Rule, premises, "ab")), ["x"], task="classification")
    rows, labels = [[1], [2], [2], [3], [4]], ["a", "new", "b", "b", "b"]
    editor = RuleEditor(rules, rows, labels)
    editor.recount()
    assert [rule.statistics_text(i) for i, rule in enumerate(editor.rules_)] == [
        "3 rows, 33 % right (data)",
        "2 rows, 100 % right (data)",
    ]
    assert editor.rules_ == replay(editor.log_.to_json())
    editor = RuleEditor(rules, rows, black_box=lambda X: np.array(labels))
    editor.recount()
    assert editor.rules_[0].statistics_text(0) == "3 rows"
