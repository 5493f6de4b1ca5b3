"""Rules as sentences in correct English: one test per kind of rule."""

from __future__ import annotations

import pytest

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
    RuleStatistics,
)


def one(conditions, output="yes", statistics=None, names=("a", "b", "c"), **settings):
    """Return the sentence of a single rule, without its number."""
    task = settings.pop("task", "classification")
    classes = ["yes", "no"] if task == "classification" else None
    rule = Rule(conditions, output, statistics, settings.pop("weight", 1.0))
    ruleset = RuleSet([rule], names, task=task, classes=classes, **settings)
    (line,) = [x for x in ruleset.to_sentences().splitlines() if x.startswith("1. ")]
    return line.removeprefix("1. ")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Interval(0, upper=2.5), "a is at most 2.5"),
        (Interval(0, upper=2.5, upper_closed=False), "a is below 2.5"),
        (Interval(0, 1), "a is above 1"),
        (Interval(0, 1, lower_closed=True), "a is at least 1"),
        (Interval(0, 1, 2), "a is above 1 and at most 2"),
        (Interval(0, 1, 2, True, False), "a is at least 1 and below 2"),
        (Interval(0, 3, 3, True, True), "a is exactly 3"),
        (Interval(0, 1.000001, 1.000002), "a is above 1.000001 and at most 1.000002"),
        (Interval(0, upper=2.5, missing=True), "a is at most 2.5 or missing"),
        (Interval(0, 1, 2, missing=True), "a is above 1 and at most 2, or missing"),
        (Missing(0), "a is missing"),
        (Missing(0, negated=True), "a is known"),
        (OneOf(1, ["red"], missing=True), "b is red or missing"),
        (OneOf(1, ["red", "blue"], missing=True), "b is blue, red or missing"),
        (OneOf(1, ["red"], negated=True, missing=True), "b is not red, or missing"),
        (OneOf(1, ["missing"]), 'b is "missing"'),
        (OneOf(1, ["red"]), "b is red"),
        (OneOf(1, ["red"], negated=True), "b is not red"),
        (OneOf(1, ["red", "blue"]), "b is blue or red"),
        (OneOf(1, ["red", "blue"], negated=True), "b is neither blue nor red"),
        (OneOf(1, ["red", "blue", "green"]), "b is blue, green or red"),
        (OneOf(1, ["c", "b", "a"], negated=True), "b is neither a, b nor c"),
        (OneOf(1, ["red or blue", "x, y", "candy"]), 'b is candy, "red or blue" or "x, y"'),
        (OneOf(1, ['"a" or b']), 'b is "\\"a\\" or b"'),
        (OneOf(1, [True, 3, 0.5]), "b is 0.5, True or 3"),
        (Linear([(0, 0.5), (1, -2)], upper=3), "0.5 times a minus 2 times b is at most 3"),
        (Linear([(0, -1), (1, 1)], 1, 3), "minus a plus b is above 1 and at most 3"),
        (
            AtLeast(1, [Interval(0, 1), OneOf(1, ["x"])]),
            "at least one of the following holds: (a is above 1; b is x)",
        ),
        (
            AtLeast(2, [Interval(0, 1), OneOf(1, ["x"]), Interval(2)]),
            "at least two of the following hold: (a is above 1; b is x; c is any number)",
        ),
        (
            AtLeast(11, [Interval(0, i) for i in range(11)]),
            "at least 11 of the following hold: ("
            + "; ".join(f"a is above {i}" for i in range(11))
            + ")",
        ),
    ],
)
def test_sentences_describe_conditions(condition, text):
    assert one([condition]) == f"If {text}, then the prediction is yes."


def test_sentences_join_conditions_unambiguously():
    a, b, c = Interval(0, 1), Interval(1, 1, 2), OneOf(2, ["x"])
    start, end = "If a is above 1", ", then the prediction is yes."
    assert one([a, Interval(1, 5)]) == f"{start} and b is above 5{end}"
    assert one([a, b]) == f"{start}, and b is above 1 and at most 2{end}"
    assert one([a, Interval(1, 5), c]) == f"{start}, b is above 5, and c is x{end}"
    # Conditions with "or" are in parentheses, unless they stand alone.
    d, e = Interval(0, upper=1, missing=True), OneOf(2, ["x", "y"])
    assert one([d, b]) == f"If (a is at most 1 or missing), and b is above 1 and at most 2{end}"
    assert one([a, Interval(1, 5), e]) == f"{start}, b is above 5, and (c is x or y){end}"
    f, g = Interval(1, 1, 2, missing=True), OneOf(2, ["x", "y"], negated=True)
    assert (
        one([f, g]) == f"If (b is above 1 and at most 2, or missing) and c is neither x nor y{end}"
    )
    assert one([]) == "In every case, the prediction is yes."


@pytest.mark.parametrize(
    ("statistics", "text"),
    [
        (RuleStatistics(50, (50, 0)), "(50 rows, all of this class)"),
        (RuleStatistics(1, (1, 0)), "(1 row, of this class)"),
        (RuleStatistics(1, (0, 1)), "(1 row, none of this class)"),
        (RuleStatistics(4, (3, 1)), "(4 rows, 75 % of this class)"),
        (RuleStatistics(1e6, (1e6 - 1, 1)), "(1000000 rows, more than 99.9 % of this class)"),
        (RuleStatistics(1e6, (1, 1e6 - 1)), "(1000000 rows, less than 0.1 % of this class)"),
        (RuleStatistics(2.5), "(2.5 rows)"),
        (RuleStatistics(0, (0, 0)), "(0 rows)"),
    ],
)
def test_sentences_state_statistics(statistics, text):
    assert one([], statistics=statistics) == f"In every case, the prediction is yes. {text}"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (1.23456, "1.23456"),
        (1.2345678912, "1.235"),
        (3, "3"),
        (LinearOutput(1, [(0, 2), (1, -1), (2, 0.5)]), "1 plus 2 times a minus b plus 0.5 times c"),
        (LinearOutput(0, [(0, -1)]), "minus a"),
        (LinearOutput(-2), "-2"),
    ],
)
def test_sentences_describe_numeric_outputs(output, text):
    assert one([], output, task="regression") == f"In every case, the prediction is {text}."
    statistics = RuleStatistics(3, mean=1, standard_deviation=0.5)
    assert one([], output, statistics, task="regression").endswith(
        f" {text}. (3 rows, standard deviation 0.5)"
    )


RULES = [Rule([Interval(0, upper=1)], "a"), Rule([Interval(1, 2)], "b"), Rule([], "c")]


def test_sentences_describe_order_of_rules():
    ordered = RuleSet(RULES, ["x", "y"], task="classification", fallback=Fallback("a"))
    assert ordered.to_sentences().splitlines() == [
        "1. If x is at most 1, then the prediction is a.",
        "2. Otherwise, if y is above 2, then the prediction is b.",
        "3. Otherwise, the prediction is c.",
    ]
    unordered = ordered.replace(ordered=False).to_sentences().splitlines()
    assert unordered[0].startswith("Where several rules hold, the purest of them predicts;")
    assert unordered[2:] == [
        "2. If y is above 2, then the prediction is b.",
        "3. In every case, the prediction is c.",
    ]
    # Disjoint rules and single rules need no such line.
    assert len(ordered.replace(ordered=False, disjoint=True).to_sentences().splitlines()) == 3
    assert len(ordered[:1].replace(ordered=False).to_sentences().splitlines()) == 2
    many = RuleSet([Rule([Interval(0, i)], "a") for i in range(10)], ["x"], task="classification")
    assert many.to_sentences().splitlines()[0].startswith(" 1. If x")


@pytest.mark.parametrize(
    ("fallback", "last"),
    [
        (Fallback("a"), ["Where no rule holds, the prediction is a."]),
        (
            Fallback("a", "nearest"),
            ["Where no rule holds, the rule whose box is nearest predicts."],
        ),
        (Fallback("a", "abstain"), ["Where no rule holds, there is no prediction."]),
        (None, []),
    ],
)
def test_sentences_state_fallback(fallback, last):
    ruleset = RuleSet(RULES[:1], ["x"], task="classification", classes=["a", "b", "c"])
    assert ruleset.replace(fallback=fallback).to_sentences().splitlines()[1:] == last
    nothing = ruleset[:0].replace(fallback=fallback).to_sentences().splitlines()
    assert nothing[0] == "There are no rules."


@pytest.mark.parametrize("voting", ["votes", "probabilities", "logistic"])
def test_sentences_describe_voting_rules(voting):
    rules = [
        Rule([Interval(0, 1)], "a", weight=0.8),
        Rule([], "b", RuleStatistics(4, (1, 3)), LinearOutput(0.5, [(0, -2)])),
    ]
    ruleset = RuleSet(
        rules, ["x"], task="classification", ordered=False, voting=voting, fallback=Fallback("a")
    )
    lines = ruleset.to_sentences().splitlines()
    assert lines[0].startswith("All rules that hold vote together: ")
    assert lines[1:] == [
        "1. If x is above 1, then it votes for a with weight 0.8.",
        "2. It always votes for b with weight 0.5 minus 2 times x. (4 rows, 75 % of this class)",
    ]


def test_sentences_describe_sums_and_means():
    rules = [Rule([Interval(0, 1)], 3, weight=0.5), Rule([], LinearOutput(1, [(0, 2)]))]
    total = RuleSet(rules, ["x"], task="regression", ordered=False, voting="sum")
    assert total.to_sentences().splitlines() == [
        "All rules that hold predict together: the prediction is the sum of their outputs, each "
        "times its weight.",
        "1. If x is above 1, then it predicts 3 with weight 0.5.",
        "2. It always predicts 1 plus 2 times x with weight 1.",
    ]
    mean = total.replace(voting="mean", fallback=Fallback(7))
    assert "the weighted mean of their outputs." in mean.to_sentences()
    assert mean.to_sentences() == mean.replace(fallback=None).to_sentences()
    last_sentence = "Where no rule holds or the weights add up to 0 or less, the prediction is 7."
    assert mean[:1].to_sentences().splitlines()[-1] == last_sentence
    negative = mean.replace(rules=[Rule([Interval(0, 1)], 3, weight=-1), rules[1]])
    assert negative.to_sentences().splitlines()[-1] == last_sentence
