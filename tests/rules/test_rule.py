"""Single rules: outputs, statistics and texts."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest

from skescore.rules import (
    AtLeast,
    Domain,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleStatistics,
)

NAMES = ["length", "width", "color"]


# --- affine conclusions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (LinearOutput(1.5), "1.5"),
        (LinearOutput(0), "0"),
        (LinearOutput(0, [(0, 2.0)]), "2·x0"),
        (LinearOutput(0, [(0, -2.0)]), "-2·x0"),
        (LinearOutput(1.5, [(2, -0.25), (0, 1)]), "1.5 + x0 - 0.25·x2"),
        (LinearOutput(-3, [(0, -1)]), "-3 - x0"),
    ],
)
def test_linear_output_describes_itself(output, text):
    assert str(output) == text


@pytest.mark.parametrize(
    ("intercept", "extent", "text"),
    [
        (1234.5, 2000, "1234 + x0"),  # off by 1/4000 of what the function varies, as is allowed
        (1234.5, 1990, "1234.5 + x0"),
        (1234.56, 1, "1234.56 + x0"),
        (0.5, 1, "0.5 + x0"),
    ],
)
def test_linear_output_text_has_digits_for_its_domain(intercept, extent, text):
    assert LinearOutput(intercept, [(0, 1.0)]).to_text(domain=Domain((0,), (extent,))) == text


def test_linear_output_merges_terms():
    output = LinearOutput(np.float32(1), [(1, 0), (np.int64(2), 1.0), (0, 3), (2, 1.0)])
    assert output == LinearOutput(1.0, ((0, 3.0), (2, 2.0)))
    assert hash(output) == hash(LinearOutput(1.0, ((0, 3.0), (2, 2.0))))
    assert output.terms == ((0, 3.0), (2, 2.0))
    assert type(output.intercept) is float


def test_linear_output_evaluates():
    columns = np.array([[1.0, 2.0, math.nan], [9.0, 9.0, 9.0], [0.5, -1.0, 0.0]])
    values = LinearOutput(10, [(0, 2), (2, -4)]).evaluate(lambda j: columns[j], 3)
    assert values[:2].tolist() == [10 + 2 - 2, 10 + 4 + 4]
    assert math.isnan(values[2])
    assert LinearOutput(7).evaluate(lambda j: columns[j], 2).tolist() == [7.0, 7.0]


# --- statistics ------------------------------------------------------------------------------


def test_statistics_convert_whole_counts_to_int():
    statistics = RuleStatistics(np.float64(50.0), np.array([49.0, 0.5, 0.0]), np.float32(0.5), 0)
    assert statistics == RuleStatistics(50, (49, 0.5, 0), 0.5, 0.0)
    kinds = [
        type(v)
        for v in (
            statistics.n_rows,
            *statistics.class_counts,
            statistics.mean,
            statistics.standard_deviation,
        )
    ]
    assert kinds == [int, int, float, int, float, float]


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: LinearOutput(math.nan), ValueError, "intercept must be a finite number, got nan"),
        (lambda: LinearOutput("1"), TypeError, "intercept must be a number, got '1'"),
        (lambda: LinearOutput(0, [(0, math.inf)]), ValueError, "coefficient must be a finite"),
        (lambda: LinearOutput(0, [(0, 1e308), (0, 1e308)]), ValueError, "sum of coefficients"),
        (
            lambda: LinearOutput(0, [(-1, 1)]),
            ValueError,
            "feature must be an integer of 0 or more, got -1",
        ),
        (lambda: LinearOutput(0, [(0.5, 1)]), TypeError, "feature must be an integer"),
        (lambda: RuleStatistics(-1), ValueError, "n_rows must be 0 or more, got -1.0"),
        (lambda: RuleStatistics(math.nan), ValueError, "n_rows must be a finite number, got nan"),
        (lambda: RuleStatistics(math.inf), ValueError, "n_rows must be a finite number, got inf"),
        (lambda: RuleStatistics(None), TypeError, "n_rows must be a number, got None"),
        (lambda: RuleStatistics(1, (1, -1)), ValueError, "class_counts must be 0 or more"),
        (lambda: RuleStatistics(1, mean=math.nan), ValueError, "mean must be a finite number"),
        (
            lambda: RuleStatistics(1, standard_deviation=-0.1),
            ValueError,
            "standard_deviation must be 0 or more, got -0.1",
        ),
        (lambda: Rule([], None), TypeError, "output must be a str, int, float or bool, got None"),
        (lambda: Rule([], b"a"), TypeError, "output must be a str, int, float or bool, got b'a'"),
        (lambda: Rule([], np.datetime64("2020-01-01")), TypeError, "output must be a str"),
        (lambda: Rule([], math.nan), ValueError, "output must not be NaN or infinite, got nan"),
        (lambda: Rule([], -math.inf), ValueError, "output must not be NaN or infinite, got -inf"),
        (lambda: Rule(["x0 < 1"], 1), TypeError, "conditions must be Interval, OneOf"),
        (lambda: Rule([Interval(0, 1), Interval(0, upper=1)], 1), ValueError, "feature 0 could"),
    ],
)
def test_rule_rejects_invalid_parameters(make, error, text):
    with pytest.raises(error, match=text):
        make()


# --- rules -----------------------------------------------------------------------------------


def test_rule_normalizes_conditions():
    rule = Rule(iter([OneOf(2, ["red"]), Interval(1, 3), Interval(0), Interval(1, upper=5)]), "a")
    assert rule.conditions == (Interval(1, 3, 5), OneOf(2, ["red"]))
    assert rule == Rule((Interval(1, 3, 5), OneOf(2, ["red"])), "a")
    assert hash(rule) == hash(Rule((Interval(1, 3, 5), OneOf(2, ["red"])), "a"))
    assert rule.intervals == (Interval(1, 3, 5),)
    assert rule.non_intervals == (OneOf(2, ["red"]),)
    assert rule.n_conditions == 2
    assert rule.n_literals == 3


@pytest.mark.parametrize(
    ("output", "kind"),
    [(np.int64(3), int), (np.float32(0.5), float), (np.True_, bool), (np.str_("a"), str)],
)
def test_rule_converts_outputs_to_python(output, kind):
    assert type(Rule([], output).output) is kind
    assert Rule([], output).output == output


def test_rule_holds_where_all_conditions_hold():
    columns = [np.array([1.0, 2.0, math.nan, 1.0]), np.array([0.0, 0.0, 0.0, 9.0])]
    rule = Rule([Interval(0, upper=1), Interval(1, upper=5)], 1)
    assert rule.holds(lambda j: columns[j], 4).tolist() == [True, False, False, False]
    assert Rule([], 1).holds(lambda j: columns[j], 4).tolist() == [True] * 4


@pytest.mark.parametrize(
    ("rule", "settings", "text"),
    [
        (Rule([], "a"), {}, "ALWAYS a"),
        (Rule([], "a"), {"first": False}, "ELSE a"),
        (Rule([Interval(0, 1)], "a"), {}, "IF length > 1 THEN a"),
        (Rule([Interval(0, 1)], "a"), {"first": False}, "ELSE IF length > 1 THEN a"),
        (
            Rule([OneOf(2, ["red"]), Interval(0, 1, 2)], True),
            {},
            "IF 1 < length ≤ 2 AND color = red THEN True",
        ),
        (
            Rule([AtLeast(1, [Interval(0, 1), Linear([(0, 1), (1, -1)], 0)])], 3),
            {},
            "IF at least 1 of (length > 1; length - width > 0) THEN 3",
        ),
        # A float is a number unless it is a label; an int is a label unless it is a number.
        (Rule([], 1234.5678), {}, "ALWAYS 1234.5678"),
        (Rule([], 2.0), {"numeric": False}, "ALWAYS 2.0"),
        (Rule([], 2), {"numeric": True}, "ALWAYS 2"),
        (Rule([], LinearOutput(1, [(1, 2)])), {}, "ALWAYS 1 + 2·width"),
        # Statistics of the rule.
        (Rule([], "a", RuleStatistics(1)), {}, "ALWAYS a   [1 row]"),
        (Rule([], "a", RuleStatistics(0)), {}, "ALWAYS a   [0 rows]"),
        (Rule([], "a", RuleStatistics(12.5)), {}, "ALWAYS a   [12.5 rows]"),
        (Rule([], "a", RuleStatistics(123456)), {}, "ALWAYS a   [123456 rows]"),
        (Rule([], "a", RuleStatistics(4, (1, 3))), {}, "ALWAYS a   [4 rows, 75 % of this class]"),
        (
            Rule([], "a", RuleStatistics(4, (1, 3))),
            {"output_index": 0},
            "ALWAYS a   [4 rows, 25 % of this class]",
        ),
        (Rule([], "a", RuleStatistics(4, (0, 0))), {}, "ALWAYS a   [4 rows]"),
        (
            Rule([], 3.0, RuleStatistics(10, mean=3.0, standard_deviation=0.12345)),
            {},
            "ALWAYS 3   [10 rows, ± 0.1235]",
        ),
        (Rule([], 3.0, RuleStatistics(10, mean=3.0)), {}, "ALWAYS 3   [10 rows]"),
    ],
)
def test_rule_describes_itself(rule, settings, text):
    assert rule.to_text(NAMES, **settings) == text


def test_rule_text_matches_documented_example():
    rule = Rule([Interval(0, upper=2.45)], "setosa", RuleStatistics(50, (50, 0, 0)))
    text = "IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % of this class]"
    assert rule.to_text(["petal length (cm)"]) == text
    assert str(rule) == text.replace("petal length (cm)", "x0")


def test_rule_purity_uses_class_counts():
    counted = Rule([], "a", RuleStatistics(10, (2, 6)))
    assert counted.purity() == 0.75
    assert counted.purity(0) == 0.25
    assert Rule([], "a").purity() is None
    assert Rule([], "a", RuleStatistics(3)).purity() is None
    assert Rule([], "a", RuleStatistics(3, (0, 0))).purity(1) is None


@pytest.mark.parametrize(
    "value",
    [
        Rule([Interval(0, 1, 2), OneOf(1, ["a"])], "a", RuleStatistics(3, (1, 2))),
        LinearOutput(1, [(0, 2)]),
        RuleStatistics(3, mean=1.0, standard_deviation=0.5),
    ],
    ids=lambda v: type(v).__name__,
)
def test_rule_is_immutable_and_copyable(value):
    for field in dataclasses.fields(value):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, field.name, None)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(value, field.name)
    for twin in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):
        assert twin == value
        assert hash(twin) == hash(value)


def test_rule_equality_compares_all_parts():
    rule = Rule([Interval(0, 1)], "a", RuleStatistics(3))
    other_items = [
        Rule([Interval(0, 2)], "a", RuleStatistics(3)),
        Rule([Interval(0, 1)], "b", RuleStatistics(3)),
        Rule([Interval(0, 1)], "a", RuleStatistics(4)),
        Rule([Interval(0, 1)], "a"),
    ]
    assert all(rule != other for other in other_items)
    assert len({rule, *other_items}) == 5


def test_rule_correctness_is_a_share_of_targets():
    counted = Rule([], "a", RuleStatistics(10, (2, 8), target_counts=(4, 6)))
    assert [counted.correctness(index) for index in (0, 1, None)] == [0.4, 0.6, 0.6]
    assert Rule([], "a", RuleStatistics(10, (2, 8))).correctness(0) is None
