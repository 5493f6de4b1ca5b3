"""Pruning compared with an exhaustive search for the best single step."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.metrics import volume_completeness
from skescore.rules import (
    Domain,
    Fallback,
    Interval,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
    as_ruleset,
)
from skescore.scorers import (
    RuleScorer,
    evaluate_rules,
    ice,
    knowledge,
    make_fire_scorer,
    make_ice_scorer,
    make_q_scorer,
    neg_fire,
)
from skescore.selection import prune

SCORERS: dict[str, RuleScorer] = {
    "ice": make_ice_scorer(),
    "ice on rows": make_ice_scorer(completeness="instances", rho=3),
    "ice of conditions": make_ice_scorer(size="conditions", uncovered="penalize"),
    "ice of accuracy": make_ice_scorer(rho=2, size="literals"),
    "q": make_q_scorer(),
    "q of squares": make_q_scorer(uncovered="penalize", completeness="instances"),
    "fire": make_fire_scorer(),
    "fire of steps": make_fire_scorer(psi=3, uncovered="ignore", size="literals"),
}


@st.composite
def problems(draw: st.DrawFn) -> tuple[RuleSet, np.ndarray, np.ndarray]:
    """Draw a few rules on two features, with rows and labels."""
    task = draw(st.sampled_from(["classification", "regression"]))
    outputs = ["a", "b"] if task == "classification" else [1.0, 2.0, LinearOutput(0.5, [(0, 0.5)])]
    rules = []
    gaps = draw(st.booleans())
    for _ in range(draw(st.integers(1, 5))):
        conditions = []
        for feature in range(2):
            low, high = draw(st.integers(0, 3)), draw(st.integers(1, 2))
            lower = -math.inf if draw(st.integers(0, 2)) == 0 else low
            upper = math.inf if draw(st.integers(0, 2)) == 0 else low + high
            conditions.append(Interval(feature, lower, upper, missing=gaps and draw(st.booleans())))
        counts = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        statistics = RuleStatistics(sum(counts), counts if task == "classification" else None)
        rules.append(Rule(conditions, draw(st.sampled_from(outputs)), statistics))
    ruleset = RuleSet(
        rules,
        ["x", "y"],
        task=task,
        classes=["a", "b"] if task == "classification" else None,
        domain=Domain((0, 0), (5, 5), missing=(0.5, 0.25) if gaps else ())
        if draw(st.booleans())
        else None,
        ordered=draw(st.booleans()),
        fallback=draw(st.sampled_from([None, Fallback("a" if task == "classification" else 1.5)])),
    )
    middles = [*(x + 0.5 for x in range(6)), math.nan]
    cell = np.array([(x, y) for x in middles for y in middles])
    matches = ruleset.match(cell)
    retained: list[int] = []
    if draw(st.booleans()):
        for i in range(len(ruleset)):
            if not (matches[:, retained].any(axis=1) & matches[:, i]).any():
                retained.append(i)
        ruleset = ruleset.replace(rules=[ruleset.rules[i] for i in retained], disjoint=True)
    n_rows = draw(st.integers(3, 30))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    X = np.round(rng.uniform(0, 5, (n_rows, 2)) * 2) / 2
    y: np.ndarray = np.where(X[:, 0] + rng.normal(size=n_rows) > 2, "b", "a")
    if task == "regression":
        y = X[:, 0] + rng.normal(size=n_rows)
    if gaps:
        X[rng.random(n_rows) < 0.3, 1] = math.nan
        # A missing x has no sum to score.
        X[rng.random(n_rows) < (0.3 if task == "classification" else 0), 0] = math.nan
    return ruleset, X, y


def score(scorer: Any, ruleset: RuleSet, X: Any, y: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        value = float(scorer(ruleset, X, y))
    return -math.inf if math.isnan(value) else value


def hull(one: Rule, other: Rule) -> Rule:
    """Return the smallest box around both rules, with the output of one and joint statistics."""
    conditions = []
    for mine in one.conditions:
        for theirs in other.conditions:
            assert isinstance(mine, Interval)
            assert isinstance(theirs, Interval)
            if mine.feature == theirs.feature:
                lower = min((i.lower, not i.lower_closed) for i in (mine, theirs))
                upper = max((i.upper, i.upper_closed) for i in (mine, theirs))
                bounds = lower[0], upper[0], not lower[1], upper[1]
                allowed = mine.missing or theirs.missing
                conditions.append(Interval(mine.feature, *bounds, missing=allowed))
    first, second = one.statistics, other.statistics
    assert first is not None
    assert second is not None
    counts = None
    if first.class_counts is not None and second.class_counts is not None:
        counts = tuple(np.add(first.class_counts, second.class_counts).tolist())
    return Rule(conditions, one.output, RuleStatistics(first.n_rows + second.n_rows, counts))


def all_steps(ruleset: RuleSet) -> list[RuleSet]:
    """Return every rule set that is one step away."""
    rules = list(ruleset.rules)
    created: list[list[Rule]] = []
    if len(rules) > 1:
        created += [rules[:i] + rules[i + 1 :] for i in range(len(rules))]
    for i, one in enumerate(rules):
        for k, other in enumerate(rules):
            if i != k and one.output == other.output:
                joint = hull(*((one, other) if i < k else (other, one)))
                created.append(
                    [joint if m == i else rule for m, rule in enumerate(rules) if m != k]
                )
        for at, c in enumerate(one.conditions):
            assert isinstance(c, Interval)
            others = one.conditions[:at] + one.conditions[at + 1 :]
            lower, upper = replace(c, upper=math.inf), replace(c, lower=-math.inf)
            for conditions in (others, (*others, lower), (*others, upper)):
                new = Rule(conditions, one.output, one.statistics)
                created.append([new if m == i else rule for m, rule in enumerate(rules)])
    sets = [ruleset.replace(rules=list(rule_list)) for rule_list in created]
    return [s for s in sets if not (ruleset.disjoint and _meet(s))]


def _meet(ruleset: RuleSet) -> bool:
    points = np.append(np.arange(-0.5, 8, 0.25), math.nan)
    grid = np.array(np.meshgrid(points, points)).reshape(2, -1).T
    return bool(ruleset.match(grid).sum(axis=1).max() > 1)


#: Rules of which the one with the lowest priority comes first, and two may be merged.
BY_PRIORITY = RuleSet(
    [
        Rule([], 1.0, RuleStatistics(0)),
        *[Rule([Interval(1, lower=2)], 1.0, RuleStatistics(0))] * 2,
        Rule([Interval(1, upper=1)], 2.0, RuleStatistics(1)),
    ],
    ["x", "y"],
    task="regression",
    ordered=False,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORERS)
@settings(deadline=None, max_examples=12)
@given(problem=problems())
def test_prune_takes_best_single_step(
    name: str, problem: tuple[RuleSet, np.ndarray, np.ndarray]
) -> None:
    if len(problem[0]):
        is_best_single_step(SCORERS[name], *problem)


@pytest.mark.parametrize("name", ["q", "fire"])
def test_prune_keeps_priority_of_merged_rules(name: str) -> None:
    X = np.array([[3.0, 1.5], [0.0, 0.0], [4.0, 4.5]])
    is_best_single_step(SCORERS[name], BY_PRIORITY, X, np.array([1.75, -0.6, 4.0]))


def is_best_single_step(scorer: Any, ruleset: RuleSet, X: np.ndarray, y: np.ndarray) -> None:
    now = score(scorer, ruleset, X, y)
    best = max((score(scorer, s, X, y) for s in all_steps(ruleset)), default=-math.inf)
    stepped = prune(ruleset, X, y, scorer, max_steps=1)
    reached = score(scorer, stepped, X, y)
    assert reached == pytest.approx(max(best, now), rel=1e-9, abs=1e-12)
    if best <= now:
        assert stepped is ruleset
    # Two single steps equal one call with two steps.
    once_more = prune(stepped, X, y, scorer, max_steps=1)
    assert score(scorer, prune(ruleset, X, y, scorer, max_steps=2), X, y) == pytest.approx(
        score(scorer, once_more, X, y), rel=1e-9, abs=1e-12
    )


@settings(deadline=None, max_examples=12)
@given(seed=st.integers(0, 1000))
def test_prune_is_locally_optimal_with_missing_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    colors = ("blue", "green", "red", "white")
    rules = []
    for _ in range(6):
        conditions: list[Any] = []
        low = rng.uniform(0, 3)
        if rng.random() < 0.7:
            conditions.append(Interval(0, low, low + 2, missing=bool(rng.integers(2))))
        if rng.random() < 0.7:
            values = rng.choice(colors, rng.integers(1, 3), replace=False)
            conditions.append(OneOf(1, values.tolist(), negated=bool(rng.integers(2))))
        rules.append(Rule(conditions, str(rng.choice(["a", "b"]))))
    ruleset = RuleSet(
        rules,
        ["x", "color"],
        task="classification",
        classes=["a", "b"],
        domain=Domain((0, 0), (5, 4), categories=[(1, colors)], missing=(0.25, 0.0)),
    )
    x = np.where(rng.random(40) < 0.25, np.nan, rng.uniform(0, 5, 40))
    X = pd.DataFrame({"x": x, "color": rng.choice(colors, 40)})
    y = np.where(np.nan_to_num(x) + rng.normal(size=40) > 2, "a", "b")
    pruned = prune(ruleset, X, y)
    now = score(ice, pruned, X, y)
    assert now >= score(ice, ruleset, X, y)
    left = list(pruned.rules)
    other_items = [left[:i] + left[i + 1 :] for i in range(len(left)) if len(left) > 1]
    for i, rule in enumerate(left):
        for c in rule.conditions:
            shorter = replace(rule, conditions=[d for d in rule.conditions if d is not c])
            other_items.append([*left[:i], shorter, *left[i + 1 :]])
    for candidate in other_items:
        assert score(ice, pruned.replace(rules=candidate), X, y) <= now * (1 + 1e-9) + 1e-12


@pytest.mark.slow
def test_prune_with_estimated_volumes_raises_score() -> None:
    rng = np.random.default_rng(0)
    rules = []
    for _ in range(60):
        used = rng.choice(40, 6, replace=False).tolist()
        sides, ends = rng.random(6) < 0.5, rng.uniform(0.3, 0.5, 6).tolist()
        rules.append(
            Rule(
                [
                    Interval(j, lower=end) if below else Interval(j, upper=1 - end)
                    for j, below, end in zip(used, sides, ends, strict=True)
                ],
                str(rng.choice(["a", "b"])),
            )
        )
    ruleset = RuleSet(
        rules,
        [f"x{j}" for j in range(40)],
        task="classification",
        classes=["a", "b"],
        domain=Domain((0,) * 40, (1,) * 40),
    )
    assert not volume_completeness(ruleset).exact
    X = rng.random((100, 40))
    y = np.where(X[:, 0] > 0.5, "a", "b")
    pruned = prune(ruleset, X, y)
    assert len(pruned) < len(ruleset)
    assert score(ice, pruned, X, y) > score(ice, ruleset, X, y)
    assert pruned == prune(ruleset, X, y)


def test_prune_may_place_merged_rule_at_either_position() -> None:
    low = Interval(1, upper=1)
    rules = [
        Rule((), "b", RuleStatistics(5, (2, 3))),
        Rule((low,), "a", RuleStatistics(6, (3, 3))),
        Rule((low,), "b", RuleStatistics(1, (1, 0))),  # with the first: six rows, half of them b
    ]
    ruleset = RuleSet(rules, ["x", "y"], task="classification", classes=["a", "b"], ordered=False)
    X, y = np.array([[3, 1.5], [0, 0], [4, 4.5]]), np.array(["b", "a", "b"])
    stepped = prune(ruleset, X, y, max_steps=1)
    assert [rule.output for rule in stepped.rules] == ["a", "b"]
    assert stepped.predict(X).tolist() == y.tolist()


@settings(deadline=None, max_examples=15)
@given(problem=problems(), name=st.sampled_from(sorted(SCORERS)))
def test_prune_is_reproducible_and_never_lowers_score(
    problem: tuple[RuleSet, np.ndarray, np.ndarray], name: str
) -> None:
    ruleset, X, y = problem
    pruned = prune(ruleset, X, y, SCORERS[name])
    if len(ruleset):
        assert score(SCORERS[name], pruned, X, y) >= score(SCORERS[name], ruleset, X, y)
        assert len(pruned) >= 1
    assert pruned == prune(ruleset, X, y, SCORERS[name])
    if ruleset.disjoint and len(ruleset):
        assert not _meet(pruned)
    assert (pruned.ordered, pruned.disjoint) == (ruleset.ordered, ruleset.disjoint)


@settings(deadline=None, max_examples=20)
@given(problem=problems(), name=st.sampled_from(sorted(SCORERS)))
def test_prune_by_incremental_score_equals_recomputed_score(
    problem: tuple[RuleSet, np.ndarray, np.ndarray], name: str
) -> None:
    ruleset, X, y = problem
    if not len(ruleset):
        return

    def called(rules: RuleSet, X: Any, y: Any) -> float:
        return float(SCORERS[name](rules, X, y))

    followed = prune(ruleset, X, y, SCORERS[name], max_steps=1)
    expected = prune(ruleset, X, y, called, max_steps=1)
    assert score(called, followed, X, y) == pytest.approx(
        score(called, expected, X, y), rel=1e-9, abs=1e-12
    )


@settings(deadline=None, max_examples=12)
@given(problem=problems(), name=st.sampled_from(sorted(SCORERS)))
def test_prune_of_many_steps_equals_repeated_single_steps(
    problem: tuple[RuleSet, np.ndarray, np.ndarray], name: str
) -> None:
    ruleset, X, y = problem
    if not len(ruleset):
        return
    stepped = ruleset
    for number in range(1, 6):
        stepped = prune(stepped, X, y, SCORERS[name], max_steps=1)
        at_once = prune(ruleset, X, y, SCORERS[name], max_steps=number)
        assert score(SCORERS[name], at_once, X, y) == pytest.approx(
            score(SCORERS[name], stepped, X, y), rel=1e-9, abs=1e-12
        )
        assert len(at_once) == len(stepped)


def test_prune_maximizes_ice_of_large_tree() -> None:
    X, y = load_iris(return_X_y=True)
    leaves = as_ruleset(DecisionTreeClassifier(random_state=0).fit(X, y))
    ruleset = leaves.replace(ordered=True, disjoint=False)
    pruned = prune(ruleset, X, y)
    assert len(pruned) <= 4 < len(ruleset)
    assert float(ice(pruned, X, y)) > float(ice(ruleset, X, y)) + 0.05
    assert prune(pruned, X, y) is pruned
    apart = prune(leaves, X, y)
    assert float(ice(apart, X, y)) > float(ice(leaves, X, y))


def test_prune_shortens_regression_rules() -> None:
    X, y = load_diabetes(return_X_y=True)
    tree = DecisionTreeRegressor(max_leaf_nodes=20, random_state=0).fit(X, y)
    ruleset = as_ruleset(tree).replace(domain=Domain.around(X))
    pruned = prune(ruleset, X, y, "ice")
    assert 1 <= len(pruned) < 20
    assert float(ice(pruned, X, y)) > float(ice(ruleset, X, y))


def test_prune_accepts_callables_and_treats_nan_as_worst() -> None:
    rules = [Rule([Interval(0, upper=1)], "a"), Rule([Interval(0, 1)], "b")]
    ruleset = RuleSet(rules, ["x"], task="classification")
    X, y = [[0.0], [2.0]], ["a", "b"]
    recorded = []

    def fewer(rules: RuleSet, X: Any, y: Any) -> float:
        recorded.append(len(rules))
        return math.nan if len(rules) == 2 and rules.n_literals == 2 else -rules.n_literals

    pruned = prune(ruleset, X, y, fewer)
    assert pruned.n_literals == 0
    assert recorded[0] == 2
    assert prune(ruleset, X, y, lambda *_: math.nan) is ruleset
    assert prune(ruleset, X, y, lambda *_: 1.0) is ruleset


def test_prune_keeps_last_rule() -> None:
    ruleset = RuleSet(
        [Rule([Interval(0, upper=1)], "a")], ["x"], task="classification", classes=["a", "b"]
    )
    assert len(prune(ruleset, [[0.0], [0.5]], ["b", "b"], make_fire_scorer(undefined=1.0))) == 1


def test_prune_drops_values_of_categories() -> None:
    rules = [
        Rule([Interval(0, upper=1), OneOf(1, ["red"])], "a"),
        Rule([Interval(0, upper=1), OneOf(1, ["blue"])], "a"),
        Rule([Interval(0, 1)], "b"),
    ]
    domain = Domain((0, 0), (2, 2), [(1, ["blue", "red"])])
    ruleset = RuleSet(rules, ["x", "color"], task="classification", domain=domain, ordered=False)
    X = np.array([[0.5, "red"], [0.6, "blue"], [1.5, "red"], [1.6, "blue"]], dtype=object)
    pruned = prune(ruleset, X, ["a", "a", "b", "b"])
    assert len(pruned) == 2
    assert pruned.predict(X).tolist() == ["a", "a", "b", "b"]


def test_prune_without_domain_uses_box_around_rows() -> None:
    X = pd.DataFrame({"color": ["red", "blue"] * 5, "a": range(10), "b": [0.0, 90.0] * 5})
    y = np.array(["p", "q"] * 5)
    rules = RuleSet(
        [Rule([OneOf(1, ["red"])], "p"), Rule([Interval(0, upper=3)], "q"), Rule([], "q")],
        ["a", "color"],
        task="classification",
    )
    assert prune(rules, X, y) == prune(rules.replace(domain=rules.domain_around(X)), X, y).replace(
        domain=None
    )


def test_prune_respects_max_steps_and_accepts_names() -> None:
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(len(y)) % 10 == 0, 2 - y, y)  # noise that short rules cannot describe
    tree = DecisionTreeClassifier(max_leaf_nodes=9, random_state=0).fit(X, y)
    ruleset = as_ruleset(tree).replace(ordered=True, disjoint=False)
    assert prune(ruleset, X, y, max_steps=0) is ruleset
    assert len(prune(ruleset, X, y, max_steps=1)) == len(ruleset) - 1
    for name in ("ice", "q", "neg_q", "fire", "neg_fire"):
        assert len(prune(ruleset, X, y, name)) < len(ruleset)
    by_black_box = make_ice_scorer(reference="black_box")  # y_black_box are its answers
    assert prune(ruleset, X, y, by_black_box) == prune(ruleset, X, y, "ice")


def test_prune_rejects_invalid_arguments() -> None:
    ruleset = RuleSet([Rule([Interval(0, upper=1)], "a")], ["x"], task="classification")
    with pytest.raises(TypeError, match=r"ruleset must be a RuleSet, got \[\]"):
        prune([], [[0.0]], ["a"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must hold one prediction per row, shape \(1,\)"):
        prune(ruleset, [[0.0]], ["a", "b"])
    with pytest.raises(ValueError, match="max_steps must be an integer of 0 or more"):
        prune(ruleset, [[0.0]], ["a"], max_steps=-1)
    with pytest.raises(TypeError, match="scorer must give one number, but knowledge"):
        prune(ruleset, [[0.0]], ["a"], knowledge)
    with pytest.raises(TypeError, match="scorer must give one number, got str"):
        prune(ruleset, [[0.0]], ["a"], lambda *_: "good")
    with pytest.raises(ValueError, match="There is no score 'nice'"):
        prune(ruleset, [[0.0]], ["a"], "nice")
    with pytest.raises(ValueError, match="None of the labels of y"):
        prune(ruleset, [[0.0]], ["c"], neg_fire)
    assert evaluate_rules(ruleset, [[0.0]], ["a"]).instances == 1.0


def counted_anew(pruned: RuleSet, X: Any, y: np.ndarray) -> list[RuleStatistics | None]:
    """Return the statistics of each rule on the rows assigned to it."""
    results: list[RuleStatistics | None] = []
    assigned = pruned.assign(X).tolist()
    for i in range(len(pruned)):
        labels = [answer for answer, rule in zip(y.tolist(), assigned, strict=True) if rule == i]
        if not labels:
            results.append(None)
        elif pruned.classes is not None:
            counts = tuple(sum(a == label for a in labels) for label in pruned.classes)
            results.append(RuleStatistics(len(labels), counts))
        else:
            mean = math.fsum(labels) / len(labels)
            square = math.fsum((a - mean) ** 2 for a in labels) / len(labels)
            results.append(
                RuleStatistics(len(labels), mean=mean, standard_deviation=math.sqrt(square))
            )
    return results


@settings(deadline=None, max_examples=20)
@given(problem=problems(), name=st.sampled_from(sorted(SCORERS)))
def test_prune_updates_statistics(
    problem: tuple[RuleSet, np.ndarray, np.ndarray], name: str
) -> None:
    ruleset, X, y = problem
    pruned = prune(ruleset, X, y, SCORERS[name])
    if pruned is ruleset or not (pruned.ordered or pruned.disjoint):
        return
    for rule, expected in zip(pruned.rules, counted_anew(pruned, X, y), strict=True):
        statistics = rule.statistics
        if statistics is None or expected is None:
            assert statistics is expected
            continue
        assert (statistics.n_rows, statistics.class_counts) == (
            expected.n_rows,
            expected.class_counts,
        )
        if pruned.task == "regression":
            assert statistics.mean == pytest.approx(expected.mean)
            assert statistics.standard_deviation == pytest.approx(
                expected.standard_deviation, abs=1e-9
            )


def test_prune_updates_statistics_of_remaining_rule() -> None:
    rules = [
        Rule([Interval(0, upper=1)], "a", RuleStatistics(2, (2, 0))),
        Rule([], "b", RuleStatistics(2, (0, 2))),
    ]
    ruleset = RuleSet(rules, ["x"], task="classification")
    X, y = [[0.0], [0.5], [2.0], [3.0]], np.array(["a", "b", "b", "b"])

    def fewer(rules: RuleSet, X: Any, y: Any) -> float:
        return float(rules[-1].output == "b") - rules.n_literals - len(rules)

    (rule,) = prune(ruleset, X, y, fewer)
    assert rule.statistics == RuleStatistics(4, (1, 3))
    assert str(rule) == "ALWAYS b   [4 rows, 75 % agree with the model]"
    strange = prune(ruleset, X, np.array(["a", "?", "b", "b"]), fewer)
    # Shares of known classes would hide that one label is unknown.
    assert [rule.statistics for rule in strange] == [RuleStatistics(4)]
    overlapping = ruleset.replace(ordered=False)
    assert prune(overlapping, X, y, fewer).rules[0].statistics == rules[1].statistics
