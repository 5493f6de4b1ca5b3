"""Responsibility of features under rules, compared with an enumeration of all cells."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier

from skescore.attribution import (
    RuleAttribution,
    all_assignments,
    local_faithfulness,
    random_formula,
    responsibility,
    rule_attribution,
)
from skescore.metrics.attribution import Removal, faithfulness
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
)

NAMES = ["a", "b", "c", "color"]
#: One value of every cell of thresholds at 1, 2 and 3: the thresholds and what lies between.
STRETCHES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5)
COLORS = ("blue", "green", "red")


def answers_of(ruleset: RuleSet, X: np.ndarray, by: str) -> list[Any]:
    """Return the values whose change counts as another output."""
    if by == "rule":
        return ruleset.assign(X).tolist()
    covered = ruleset.covers(X) | (ruleset.fallback is not None)
    outputs: list[Any] = ["nothing at all"] * len(X)
    if covered.any():
        for row, answer in zip(np.flatnonzero(covered), ruleset.predict(X[covered]), strict=True):
            outputs[row] = repr(answer)
    return outputs


def literal(
    ruleset: RuleSet, row: tuple[Any, ...], choices: list[tuple[Any, ...]], by: str = "prediction"
) -> tuple[list[float], set[tuple[int, ...]]]:
    """Return degrees and flip sets by definition: move each set of features to all other values."""
    n = len(row)
    other_items = [[v for v in choices[j] if v != row[j]] for j in range(n)]
    everything = list(product(*([row[j], *other_items[j]] for j in range(n))))
    is_moved = list(product(*([False, *[True] * len(other_items[j])] for j in range(n))))
    outputs = answers_of(ruleset, np.array(everything, dtype=object), by)
    # The first combination is the row itself.
    flip_sets = {
        tuple(np.flatnonzero(flags).tolist())
        for flags, answer in zip(is_moved, outputs, strict=True)
        if answer != outputs[0]
    }
    minimal = {s for s in flip_sets if not any(set(t) < set(s) for t in flip_sets)}
    values = [max((1 / len(s) for s in minimal if j in s), default=0.0) for j in range(n)]
    return values, minimal


def assert_as_literal(
    ruleset: RuleSet, row: tuple[Any, ...], choices: list[tuple[Any, ...]], **options: Any
) -> RuleAttribution:
    attribution = rule_attribution(ruleset, np.array([row], dtype=object), **options)
    values, minimal = literal(ruleset, row, choices, options.get("by", "prediction"))
    assert set(attribution.flip_sets[0]) == minimal
    assert attribution.values[0].tolist() == values
    assert attribution.resolved.all()
    assert (attribution.upper == attribution.values).all()
    assert attribution.exact
    return attribution


# --- comparison with the definition --------------------------------------------------------------


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    bounds = sorted(draw(st.lists(st.sampled_from([1, 2, 3]), min_size=1, max_size=2)))
    low, high = bounds if len(bounds) == 2 else draw(st.permutations([bounds[0], None]))
    closed = [True, True] if low == high else [draw(st.booleans()), draw(st.booleans())]
    return Interval(
        draw(st.integers(0, 2)),
        -np.inf if low is None else low,
        np.inf if high is None else high,
        lower_closed=closed[0],
        upper_closed=closed[1],
        missing=draw(st.integers(0, 3)) == 0,
    )


def lists_of_values() -> st.SearchStrategy[OneOf]:
    some = st.sets(st.sampled_from(COLORS), min_size=1, max_size=2)
    return st.builds(OneOf, st.just(3), some, st.booleans(), st.booleans())


@st.composite
def conditions(draw: st.DrawFn) -> Any:
    gaps = st.builds(Missing, st.integers(0, 3), st.booleans())
    single = st.one_of(intervals(), intervals(), lists_of_values(), gaps)
    if draw(st.integers(0, 3)):
        return draw(single)
    at_least = draw(st.lists(single, min_size=2, max_size=3))
    return AtLeast(draw(st.integers(1, len(at_least))), at_least)


@st.composite
def rules(draw: st.DrawFn, outputs: tuple[Any, ...]) -> Rule:
    output = draw(st.sampled_from(outputs))
    statistics = RuleStatistics(draw(st.integers(1, 9)))
    for _ in range(20):
        try:
            return Rule(draw(st.lists(conditions(), max_size=3)), output, statistics)
        except ValueError:  # the intervals contradict each other
            continue
    return Rule([], output, statistics)


@st.composite
def rulesets(draw: st.DrawFn) -> RuleSet:
    classification = draw(st.booleans())
    outputs = ("x", "y", "z") if classification else (1.0, 2.0, 3.0)
    rule_list = draw(st.lists(rules(outputs), min_size=1, max_size=4))
    policy = draw(st.sampled_from(["default", "abstain", None]))
    fallback = None if policy is None else Fallback(outputs[0], policy)
    domain = draw(
        st.sampled_from([None, Domain((1.5, 0.0, 1.0, 0.0), (9.0, 2.0, 9.0, 3.0), [(3, COLORS)])])
    )
    return RuleSet(
        rule_list,
        NAMES,
        task="classification" if classification else "regression",
        classes=("x", "y", "z") if classification else None,
        ordered=draw(st.booleans()),
        fallback=fallback,
        domain=domain,
    )


#: What each feature may move to, without and with the domain above.
FREE: list[tuple[Any, ...]] = [STRETCHES] * 3 + [(*COLORS, "another")]
BOUND: list[tuple[Any, ...]] = [
    (1.75, 2.0, 2.5, 3.0, 3.5),
    (0.5, 1.0, 1.5, 2.0),
    (1.0, 1.5, 2.0, 2.5, 3.0, 3.5),
    COLORS,
]


def rows() -> st.SearchStrategy[tuple[Any, ...]]:
    number = st.sampled_from([*STRETCHES, float("nan")])
    return st.tuples(number, number, number, st.sampled_from([*COLORS, "pink", None]))


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(rulesets(), rows(), st.sampled_from(["prediction", "rule"]), st.booleans())
def test_rule_attribution_equals_definition(
    ruleset: RuleSet, row: tuple[Any, ...], by: str, beyond: bool
) -> None:
    choices = FREE if beyond or ruleset.domain is None else BOUND
    if ruleset.domain is not None and beyond:
        choices = [*FREE[:3], COLORS]  # the domain excludes unknown categories
    # A move leaves the cell of the row, which its value represents.
    choices = [
        tuple(v for v in some if not _same_cell(v, value))
        for some, value in zip(choices, row, strict=True)
    ]
    assert_as_literal(ruleset, row, choices, by=by, beyond_domain=beyond)


def _same_cell(one: Any, two: Any) -> bool:
    if isinstance(one, str):
        return one == two or (one == "another" and two == "pink")
    return one == two or (one == 1.75 and two == 1.5)


@pytest.mark.parametrize("voting", [None, "votes"])
def test_rule_attribution_of_trees_and_votes_equals_definition(voting: str | None) -> None:
    generator = np.random.default_rng(5)
    X = generator.uniform(0, 4, size=(80, 3))
    y = (X[:, 0] > 1.3).astype(int) + ((X[:, 1] > 2.1) & (X[:, 2] > 1.1))
    tree = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, y))
    if voting is not None:
        other = as_ruleset(DecisionTreeClassifier(max_leaf_nodes=3, random_state=1).fit(X[::-1], y))
        pair = [
            Rule(r.conditions, r.output, weight=w)
            for rs, w in ((tree, 1.0), (other, 1.5))
            for r in rs
        ]
        tree = RuleSet(
            pair, tree.feature_names, task="classification", ordered=False, voting=voting
        )
    cuts = [
        sorted(
            {
                b
                for r in tree
                for c in r.conditions
                if c.feature == j
                for b in (c.lower, c.upper)
                if np.isfinite(b)
            }
        )
        for j in range(3)
    ]
    for x in X[:12]:
        choices = []
        for j in range(3):
            ends = [-1.0, *cuts[j], 5.0]
            positions = [
                *cuts[j],
                *((low + high) / 2 for low, high in pairwise(ends)),
            ]
            cell = np.searchsorted(cuts[j], x[j])
            choices.append(
                tuple(v for v in positions if v in cuts[j] or np.searchsorted(cuts[j], v) != cell)
            )
        assert_as_literal(tree, tuple(x.tolist()), choices)


@pytest.mark.parametrize("number", range(6))
def test_rule_attribution_of_formulas_equals_responsibility(number: int) -> None:
    formula = random_formula(4, n_inputs=5, random_state=number)
    X = all_assignments(5)
    premises = [
        [Interval(j, 0.5) if x[j] else Interval(j, upper=0.5) for j in formula.variables]
        for x in X[formula.evaluate(X)]
    ]
    rules = RuleSet(
        [Rule(premise, 1) for premise in premises],
        [f"x{j}" for j in range(5)],
        task="classification",
        classes=[0, 1],
        fallback=Fallback(0),
    )
    attribution = rule_attribution(rules, X)
    assert attribution.values.tolist() == responsibility(formula, X).tolist()
    # Listed values form cells like thresholds.
    listed_rules = [
        Rule([OneOf(c.feature, [int(c.lower == 0.5)]) for c in rule.conditions], 1)
        for rule in rules
    ]
    domain = Domain((0,) * 5, (2,) * 5, [(j, [0, 1]) for j in range(5)])
    listed = rules.replace(rules=listed_rules, domain=domain)
    assert rule_attribution(listed, X).values.tolist() == attribution.values.tolist()


# --- other outputs -------------------------------------------------------------------------------

LIST = RuleSet(
    [
        Rule([Interval(0, upper=1)], "x"),
        Rule([Interval(0, upper=2), Interval(1, upper=1)], "x"),
        Rule([Interval(1, upper=2)], "y"),
    ],
    ["a", "b"],
    task="classification",
    fallback=Fallback("y"),
)


def test_rule_attribution_ignores_rules_with_equal_output() -> None:
    row = [[0.5, 0.5]]
    assert rule_attribution(LIST, row).flip_sets == (((0,),),)
    assert rule_attribution(LIST, row, by="rule").flip_sets == (((0,),),)
    # From the second rule, only a leads to the first rule; a or b lead to another output.
    row = [[1.5, 0.5]]
    assert rule_attribution(LIST, row).flip_sets == (((0,), (1,)),)
    # Where no rule holds, the fallback predicts the same as the last rule.
    row = [[3.0, 3.0]]
    assert rule_attribution(LIST, row, by="rule").flip_sets == (((0,), (1,)),)
    assert rule_attribution(LIST, row).flip_sets == (((0,),),)


def test_rule_attribution_treats_abstention_as_prediction() -> None:
    one = RuleSet([Rule([Interval(0, upper=1)], "x")], ["a"], task="classification")
    for fallback, value in ((None, 1.0), (Fallback("x"), 0.0), (Fallback("x", "abstain"), 1.0)):
        attribution = rule_attribution(one.replace(fallback=fallback), [[0.0], [2.0]])
        assert attribution.values.tolist() == [[value], [value]]


def test_rule_attribution_respects_tolerance() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1)], 1.0),
            Rule([Interval(0, 1, 2)], 1.5),
            Rule([Interval(1, upper=1)], 4.0),
        ],
        ["a", "b"],
        task="regression",
        fallback=Fallback(1.2),
    )
    row = [[0.0, 0.0]]
    assert rule_attribution(rules, row).flip_sets == (((0,),),)
    # Above a tolerance of 0.4 only 1.5 and 4 differ from 1, above 0.6 only 4.
    assert rule_attribution(rules, row, tolerance=0.6).flip_sets == (((0,),),)
    high = [[0.0, 3.0]]
    assert rule_attribution(rules, high, tolerance=0.4).flip_sets == (((0,),),)
    assert rule_attribution(rules, high, tolerance=0.6).flip_sets == (((0, 1),),)
    assert rule_attribution(rules, high, tolerance=3.0).flip_sets == ((),)


def test_rule_attribution_compares_affine_functions() -> None:
    rising = LinearOutput(0.0, [(1, 1.0)])
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1)], rising),
            Rule([Interval(0, 1, 2)], LinearOutput(2.0)),
            Rule([Interval(0, lower=2)], rising),
        ],
        ["a", "b"],
        task="regression",
    )
    attribution = rule_attribution(rules, [[0.0, 5.0]])
    assert attribution.values.tolist() == [[1.0, 0.0]]  # b changes the number, but not the function
    same = rules.replace(rules=[rules[0], rules[2]], fallback=Fallback(2.0))
    assert rule_attribution(same, [[0.0, 5.0]], by="rule").values.tolist() == [[1.0, 0.0]]
    with pytest.raises(ValueError, match="rule 0 predicts a linear function"):
        rule_attribution(rules, [[0.0, 5.0]], tolerance=0.5)


def test_rule_attribution_stays_within_domain() -> None:
    rules = RuleSet(
        [Rule([Interval(0, 0, 1, lower_closed=True)], "x"), Rule([Interval(0, 1, 2)], "x")],
        ["a"],
        task="classification",
        classes=["x", "y"],
        fallback=Fallback("y"),
        domain=Domain((0.0,), (2.0,)),
    )
    assert rule_attribution(rules, [[0.5]]).values.tolist() == [[0.0]]
    assert rule_attribution(rules, [[0.5]], beyond_domain=True).values.tolist() == [[1.0]]
    # A row outside of the domain is moved into it.
    assert rule_attribution(rules, [[7.0]]).values.tolist() == [[1.0]]


# --- inexact values ------------------------------------------------------------------------------


def test_rule_attribution_marks_unfinished_searches() -> None:
    rules = RuleSet(
        [
            Rule([Interval(j, 0.5), Interval(j + 1, 0.5), Interval(j + 2, 0.5)], "x")
            for j in range(0, 9, 3)
        ],
        [f"f{j}" for j in range(10)],
        task="classification",
        classes=["x", "y"],
        fallback=Fallback("y"),
    )
    row = np.ones((1, 10))
    full_attribution = rule_attribution(rules, row)
    # One feature of each three must move.
    assert full_attribution.values.tolist() == [[1 / 3] * 9 + [0.0]]
    assert len(full_attribution.flip_sets[0]) == 27
    assert full_attribution.resolved.all()
    assert not full_attribution.exhausted.any()
    for steps in (1, 5, 12, 20):
        part = rule_attribution(rules, row, max_steps=steps)
        assert part.exhausted.all()
        assert (part.upper >= full_attribution.values).all()
        assert (part.values[part.resolved] == full_attribution.values[part.resolved]).all()
        assert part.resolved[0, 9]
        assert not part.resolved[0, :9].all()
        assert set(part.flip_sets[0]) <= set(full_attribution.flip_sets[0])


def test_rule_attribution_of_linear_conditions_is_not_exact() -> None:
    rules = RuleSet(
        [Rule([Linear([(0, 1.0), (1, 1.0)], upper=3.0), Interval(2, upper=1)], "x")],
        ["a", "b", "c", "d"],
        task="classification",
        classes=["x", "y"],
        fallback=Fallback("y"),
        domain=Domain((0.0,) * 4, (2.0,) * 4),
    )
    # From (0, 0), only a and b together exceed 3 in the domain; c does so alone.
    attribution = rule_attribution(rules, [[0.0, 0.0, 0.0, 0.0], [1.5, 0.0, 0.0, 0.0]])
    assert attribution.values.tolist() == [[0.5, 0.5, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]]
    assert not attribution.exact
    assert attribution.resolved.tolist() == [[False, False, True, True], [False, True, True, True]]
    assert attribution.upper.tolist() == [[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]]


def test_rule_attribution_of_nearest_policy_is_not_exact() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "x"), Rule([Interval(0, lower=3)], "y")],
        ["a"],
        task="classification",
        fallback=Fallback("x", "nearest"),
    )
    attribution = rule_attribution(rules, [[0.0]])
    assert attribution.values.tolist() == [[1.0]]
    assert not attribution.exact
    assert rule_attribution(rules, [[0.0]], by="rule").exact


def test_rule_attribution_supports_sums() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=1)], 1.0),
            Rule([Interval(1, upper=1)], 1.0),
            Rule([Interval(0, lower=1), Interval(1, lower=1)], 2.0),
        ],
        ["a", "b"],
        task="regression",
        ordered=False,
        voting="sum",
    )
    # Both rules, or the third one, give 2; one rule gives 1: every move of one feature changes it.
    attribution = rule_attribution(rules, [[0.0, 0.0], [2.0, 2.0]])
    assert attribution.flip_sets == (((0,), (1,)), ((0,), (1,)))
    assert attribution.exact
    assert rule_attribution(rules, [[0.0, 0.0]], tolerance=1.0).flip_sets == ((),)


# --- rows and parameters -------------------------------------------------------------------------


def test_rule_attribution_accepts_frames_in_any_order() -> None:
    frame = pd.DataFrame({"b": [0.5, 3.0, 0.5], "more": 1, "a": [1.5, 3.0, 1.5]}, index=[7, 8, 9])
    attribution = rule_attribution(LIST, frame)
    assert attribution.values.tolist() == [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    assert attribution.to_frame().columns.tolist() == ["a", "b"]
    assert attribution.witnesses[0] == ((), ())
    assert attribution.witnesses[1] == ((), None)
    backwards = rule_attribution(LIST, frame[::-1])
    assert (backwards.values == attribution.values[::-1]).all()


def test_rule_attribution_supports_missing_texts() -> None:
    rules = RuleSet(
        [Rule([Missing(0)], "p"), Rule([Interval(1, upper=1.0)], "q")],
        ["text", "x"],
        task="classification",
        ordered=False,
        voting="votes",
        fallback=Fallback("q"),
    )
    rows = np.array([["some", 0.0], [None, 2.0]], dtype=object)
    assert rule_attribution(rules, rows).values.tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_rule_attribution_accepts_no_rules_and_no_rows() -> None:
    nothing = RuleSet([], ["a"], task="classification", classes=["x"], fallback=Fallback("x"))
    assert rule_attribution(nothing, [[1.0], [2.0]]).values.tolist() == [[0.0], [0.0]]
    always = nothing.replace(rules=[Rule([], "x")])
    assert rule_attribution(always, [[1.0]], by="rule").flip_sets == ((),)
    assert rule_attribution(LIST, np.empty((0, 2))).values.shape == (0, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "label"}, "by must be one of 'prediction', 'rule', got 'label'"),
        ({"tolerance": -1}, "tolerance must be a finite number of 0 or more, got -1"),
        ({"max_steps": 0}, "max_steps must be an integer of 1 or more, got 0"),
    ],
    ids=["by", "tolerance", "max_steps"],
)
def test_rule_attribution_rejects_invalid_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rule_attribution(LIST, [[0.0, 0.0]], **options)


def test_rule_attribution_rejects_voting_rules_by_rule() -> None:
    voting = LIST.replace(ordered=False, voting="votes")
    with pytest.raises(ValueError, match="by='rule'"):
        rule_attribution(voting, [[0.0, 0.0]], by="rule")


# --- comparison with the black box ---------------------------------------------------------------


def test_local_faithfulness_prefers_features_of_black_box() -> None:
    X, y = load_iris(return_X_y=True)
    # The black box uses only petals; similar rules can be written for sepals.
    black_box = FunctionTransformer(lambda X: X[:, 2:]), DecisionTreeClassifier(random_state=0)
    model = make_pipeline(*black_box).fit(X, y)
    answers = model.predict(X)
    petals, sepals = (
        as_ruleset(DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X * mask, answers))
        for mask in ([0, 0, 1, 1], [1, 1, 0, 0])
    )
    # Rules on columns that were always 0 have no thresholds there.
    results = [local_faithfulness(rules, model, X) for rules in (petals, sepals)]
    means = [{name: np.nanmean(values) for name, values in each.items()} for each in results]
    assert means[0]["aopc_compr"] > 0.1
    assert means[1]["aopc_compr"] == 0.0
    assert means[0]["aopc_suff"] < means[1]["aopc_suff"]
    same = faithfulness(
        model, X, rule_attribution(petals, X), removal=Removal("median", reference=X)
    )
    assert all(
        (same[name] == values).all()
        for name, values in results[0].items()
        if not np.isnan(values).any()
    )


def test_local_faithfulness_of_uncovered_rows_is_undefined() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], 0)],
        ["a", "b"],
        task="classification",
        classes=[0, 1],
        fallback=Fallback(1),
    )

    def black_box(X: np.ndarray) -> np.ndarray:
        return np.column_stack([X[:, 0] <= 1, X[:, 0] > 1]).astype(float)

    X = np.array([[0.0, 1.0], [2.0, 1.0], [3.0, 0.0]])
    result = local_faithfulness(rules, black_box, X, removal=[9.0, 9.0])
    assert np.isnan(result["aopc_compr"]).tolist() == [False, True, True]
    explained = local_faithfulness(rules, black_box, X, removal=[0.0, 0.0], uncovered="explain")
    assert explained["aopc_compr"].tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r"uncovered must be one of 'ignore', .*got 'drop'"):
        local_faithfulness(rules, black_box, X, uncovered="drop")
