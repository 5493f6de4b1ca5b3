"""Rules as Prolog, run by the real tuProlog (2ppy) and compared with the rule set.

tuProlog computes with decimals of any length: comparisons with bounds are exact, sums are compared
to twelve digits.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from prolog_cases import LABELS as SPECIAL_LABELS
from prolog_cases import bordering_rows
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from skescore.registry import EXTRACTORS, make_extractor
from skescore.rules import (
    AtLeast,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)


def literal(value):
    if value is None or value != value:
        return "null"
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        return "'" + "".join(c if c > "\uffff" else f"\\x{ord(c):x}\\" for c in value) + "'"
    if isinstance(value, int | np.integer):
        return str(int(value))
    # Shortest digits that identify the float, like bounds in the theory.
    mantissa, _, exponent = np.format_float_scientific(value, unique=True, trim="0").partition("e")
    return f"{mantissa}e{int(exponent)}"


class Solver:
    """A tuProlog solver with one theory."""

    def __init__(self, theory):
        from tuprolog.core.parsing import parse_term
        from tuprolog.solve.prolog import prolog_solver
        from tuprolog.theory.parsing import parse_theory

        self._parse, self._solver = parse_term, prolog_solver(static_kb=parse_theory(theory))

    def ask(self, row):
        """Return the only result for a row; None where the query fails."""
        values = ", ".join(literal(value) for value in row)
        question = self._parse(f"prediction({values}{', ' if values else ''}Answer)")
        solutions = [s for s in self._solver.solve(question) if not s.is_no]
        assert len(solutions) <= 1
        if not solutions:
            return None
        assert solutions[0].is_yes, solutions[0]
        (answer,) = [
            v
            for k, v in zip(
                solutions[0].substitution.keys(), solutions[0].substitution.values(), strict=True
            )
            if str(k.name) == "Answer"
        ]
        if answer.is_integer:
            return int(str(answer.value))
        return float(str(answer.value)) if answer.is_number else str(answer.value)


def assert_answers_alike(ruleset, X):
    solver = Solver(ruleset.to_prolog())
    expected = ruleset.predict(X).tolist()
    for row, b in zip(X, expected, strict=True):
        a = solver.ask(row)
        if isinstance(b, float):
            b = "nan" if math.isnan(b) else pytest.approx(b, rel=1e-12, abs=1e-12)
        b = str(b).lower() if isinstance(b, bool) else b
        assert a == b, (list(row), a, b)


def test_tuprolog_matches_every_kind_of_condition():
    rng = np.random.default_rng(0)
    one, half = Interval(0, -1.0, 1e-05, True, False), Interval(1, upper=-0.5, upper_closed=False)
    rules = [
        Rule([one, Interval(2, 1e16, 2e16)], "far"),
        Rule([one, half, OneOf(3, ["red", "it's", 3])], "a"),
        Rule([Linear([(0, 0.1), (1, -0.3), (2, 0.7)], -0.5, 0.4, True, False)], "it's\n\\ größer"),
        Rule([OneOf(3, ["red", "größer", 2.5], negated=True), half], "c"),
        Rule([AtLeast(2, [one, half, OneOf(4, [True])])], "d"),
        Rule(
            [
                AtLeast(
                    2,
                    [
                        AtLeast(1, [Interval(0, 1), Linear([(1, -1)], upper=0)]),
                        OneOf(3, ["red"], negated=True),
                        Interval(2),
                        OneOf(4, [False], negated=True),
                    ],
                ),
                Interval(1, 1),
            ],
            "mod",
        ),
    ]
    ruleset = RuleSet(
        rules,
        ["a b", "a_b", "", "Output", "日"],
        task="classification",
        fallback=Fallback("a", "abstain"),
    )
    X = np.empty((100, 5), dtype=object)
    X[:, :3] = bordering_rows(ruleset, rng, len(X))[:, :3]
    values = ["red", "größer", "it's", 3, 2.5, "other", None]
    X[:, 3] = [values[i] for i in rng.integers(len(values), size=len(X))]
    X[:, 4] = [[True, False, None, 1, 0.0, 2][i] for i in rng.integers(6, size=len(X))]
    assert len(set(ruleset.assign(X))) >= 5
    assert_answers_alike(ruleset, X)


LABELS = [*SPECIAL_LABELS, "rem", "=", "\\+"]


def test_tuprolog_keeps_labels_of_all_kinds():
    rules = [Rule([OneOf(0, [label])], label) for label in LABELS]
    ruleset = RuleSet(
        rules, ["f"], task="classification", classes=[*LABELS, 3, 2**70], fallback=Fallback(2**70)
    )
    assert_answers_alike(ruleset, np.array([[*LABELS, 1, None]], dtype=object).T)


def test_tuprolog_returns_equal_numbers():
    rng = np.random.default_rng(1)
    rules = [
        Rule([Interval(0, upper=-1)], 3),
        Rule([Interval(0, upper=0)], LinearOutput(0.1, [(0, -1 / 3), (1, 1e-7), (2, 2.0)])),
        Rule([Interval(1, upper=0)], LinearOutput(-5.5)),
        Rule([Interval(1, upper=1)], 5e-324),
        Rule([Interval(1, upper=2)], -1.7976931348623157e308),
    ]
    ruleset = RuleSet(rules, ["x", "y", "z"], task="regression", fallback=Fallback(7, "abstain"))
    assert_answers_alike(ruleset, bordering_rows(ruleset, rng, 120))


def test_tuprolog_fails_without_fallback():
    rules = [Rule([Interval(0, 0)], "a")]
    ruleset = RuleSet(rules, ["x"], task="classification")
    assert [Solver(ruleset.to_prolog()).ask([x]) for x in (1.0, -1.0, None)] == ["a", None, None]
    assert Solver(ruleset[:0].to_prolog()).ask([1.0]) is None


@pytest.mark.parametrize("voting", ["votes", "probabilities", "logistic", "mean", "sum"])
def test_tuprolog_predicts_voting_rules(voting):
    rng = np.random.default_rng(3)
    classification = voting in ("votes", "probabilities", "logistic")
    rules = []
    for i in range(10):
        j, low = int(rng.integers(3)), round(float(rng.normal()), 1)
        premise, weight = [Interval(j, low, low + 2)], float(rng.normal() + 0.3)
        function = LinearOutput(weight, [(1, 0.5), (2, -0.1 * i)])
        if classification:
            statistics = RuleStatistics(9, tuple(rng.integers(0, 4, 3).tolist())) if i % 3 else None
            rules.append(
                Rule(premise, "abc"[i % 3], statistics, function if i % 7 == 0 else weight)
            )
        else:
            output = function if i % 6 == 0 else float(rng.normal())
            rules.append(Rule(premise, output, None, weight))
    ruleset = RuleSet(
        rules,
        list("xyz"),
        task="classification" if classification else "regression",
        classes=list("abc") if classification else None,
        ordered=False,
        voting=voting,
        fallback=Fallback("b" if classification else 0.5),
    )
    assert_answers_alike(ruleset, bordering_rows(ruleset, rng, 25))


def test_tuprolog_mean_has_all_digits():
    """The division of tuProlog stops after nine digits."""
    rules = [Rule([], 1.0, weight=1.0), Rule([], 2.0, weight=2.0)]
    ruleset = RuleSet(rules, [], task="regression", ordered=False, voting="mean")
    assert Solver(ruleset.to_prolog()).ask([]) == pytest.approx(5 / 3, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name, spec in EXTRACTORS.items() for task in spec.tasks]
)
def test_tuprolog_predicts_rules_of_every_extractor(name, task):
    load, forest = (
        (load_iris, RandomForestClassifier)
        if task == "classification"
        else (load_diabetes, RandomForestRegressor)
    )
    X, y = load(return_X_y=True, as_frame=True)
    X = X.iloc[:, :4]
    extractor = make_extractor(name, forest(n_estimators=5, max_depth=3, random_state=0))
    if "random_state" in extractor.get_params():
        extractor.set_params(random_state=0)
    ruleset = extractor.fit(X, y).rules_
    rng = np.random.default_rng(4)
    rows = np.vstack([X.to_numpy(float)[::15], bordering_rows(ruleset, rng, 25)])
    assert_answers_alike(ruleset, rows)
