"""Rules in the notation of RuleKit, compared with the exact rules of the engine."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris

from skescore.rules import Interval, OneOf, Rule, RuleSet
from skescore.rules.importers import read_rulekit_text

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "data" / "rulekit_rules.json").read_text(encoding="utf-8")
)
CASES = [
    pytest.param(case, id=f"{case['dataset']}-{number}")
    for number, case in enumerate(REFERENCE["rule_sets"])
]


def data(case: Any) -> tuple[list[str], np.ndarray]:
    """Return names and rows on which the engine predicted."""
    bunch = load_iris() if case["dataset"] == "iris" else load_diabetes(scaled=False)
    names = [re.sub("[^A-Za-z0-9]+", "_", name).strip("_") for name in bunch.feature_names]
    X = np.asarray(bunch.data)
    return names, X if case["rows"] == "all" else X[::3]


def printed(rules: Any) -> str:
    """Return a list of rules with their statistics in the format of the engine."""
    return "\n".join(
        f"r{number}: {r['text']} (p={r['p']}, n={r['n']}, P={r['P']}, N={r['N']}, "
        f"weight={r['weight']}, pval={str(r['pvalue']).replace('e', 'E')})"
        for number, r in enumerate(rules, 1)
    )


def holds(rule: Any, row: dict[str, float]) -> bool:
    """Return whether the exact conditions hold for a row."""
    for name, lower, upper, lower_closed, upper_closed in rule["conditions"]:
        value = row[name]
        if lower is not None and not (value > lower or (lower_closed and value == lower)):
            return False
        if upper is not None and not (value < upper or (upper_closed and value == upper)):
            return False
    return True


def read_case(case: Any) -> RuleSet:
    names, _ = data(case)
    options = {"default": case["default"]} if case["task"] == "regression" else {}
    return read_rulekit_text(printed(case["rules"]), feature_names=names, **options)


@pytest.mark.parametrize("case", CASES)
def test_rulekit_text_keeps_printed_digits(case: Any) -> None:
    ours = read_case(case)
    assert ours.task == case["task"]
    assert ours.voting == ("votes" if case["task"] == "classification" else "mean")
    for rule, exact in zip(ours, case["rules"], strict=True):
        bounds: dict[str, list[float]] = {}
        for name, lower, upper, _, _ in exact["conditions"]:
            sides = bounds.setdefault(name, [-math.inf, math.inf])
            sides[0] = max(sides[0], -math.inf if lower is None else lower)
            sides[1] = min(sides[1], math.inf if upper is None else upper)
        assert {ours.feature_names[i.feature] for i in rule.intervals} == bounds.keys()
        for interval in rule.intervals:
            lower, upper = bounds[ours.feature_names[interval.feature]]
            assert interval.lower == pytest.approx(lower, abs=0.005 + 1e-9)
            assert interval.upper == pytest.approx(upper, abs=0.005 + 1e-9)
            assert (interval.lower_closed, interval.upper_closed) == (math.isfinite(lower), False)
        assert rule.weight == exact["weight"]
        assert rule.statistics.n_rows == exact["p"] + exact["n"]
        value = exact["consequent"]
        near = {"abs": 0.005 + 1e-9}
        assert rule.output == (value if isinstance(value, str) else pytest.approx(value, **near))


@pytest.mark.parametrize("case", CASES)
def test_rulekit_text_predicts_like_engine_unless_rounded(case: Any) -> None:
    ours = read_case(case)
    names, X = data(case)
    exact = np.array(
        [[holds(r, dict(zip(names, row, strict=True))) for r in case["rules"]] for row in X]
    )
    is_same = (ours.match(X) == exact).all(axis=1)
    assert is_same.mean() > 0.9
    answers, expected = ours.predict(X)[is_same], np.array(case["y_pred"])[is_same]
    if case["task"] == "classification":
        assert answers.tolist() == expected.tolist()
        assert is_same.all()
    else:
        np.testing.assert_allclose(answers, expected, atol=0.0051)


def test_rulekit_text_reads_report_of_engine() -> None:
    report = REFERENCE["report"]
    ours = read_rulekit_text(report["text"], feature_names=report["feature_names"])
    assert len(ours) == len(report["rules"])
    assert list(ours.classes) == report["classes"]
    negated = 0
    for rule, exact in zip(ours, report["rules"], strict=True):
        assert rule.output == exact["conclusion"]
        assert rule.weight == exact["weight"]
        assert rule.statistics.n_rows == exact["rows"]
        for interval, (lower, upper) in zip(rule.intervals, exact["width"], strict=True):
            # Below 0.1 two digits are printed.
            assert interval.lower == pytest.approx(lower, rel=0.05)
            assert interval.upper == pytest.approx(upper, rel=0.05)
        for condition, (values, complement) in zip(
            rule.non_intervals, exact["colour"], strict=True
        ):
            assert condition == OneOf(1, values, negated=complement)
            negated += complement
    assert negated


NAMES = ["width", "length of it", "colour", "AND", " blank", "a = {b} AND width", ""]


def read_rule(text: str, **options: Any) -> Rule:
    return read_rulekit_text(text, feature_names=NAMES, **options)[0]


@pytest.mark.parametrize(
    ("premise", "conditions"),
    [
        ("width = <0.8, 1.75)", [Interval(0, 0.8, 1.75, True, False)]),
        ("width = (-inf, 1.0E-4>", [Interval(0, upper=1e-4)]),
        ("width = (-2.50, inf)", [Interval(0, -2.5)]),
        ("length of it @= <.5,1>", [Interval(1, 0.5, 1, lower_closed=True)]),
        ("width = <1, inf) AND width = (-inf, 3)", [Interval(0, 1, 3, True, False)]),
        ("colour = {red}", [OneOf(2, ["red"])]),
        ("colour = !{red, dark}", [OneOf(2, ["red, dark"], negated=True)]),
        ("colour = {a} AND b}", [OneOf(2, ["a} AND b"])]),
        ("colour = {<1, 2) THEN}", [OneOf(2, ["<1, 2) THEN"])]),
        ("colour = {}", [OneOf(2, [""])]),
        ("colour = {4.9}", [OneOf(2, ["4.9"])]),
        (
            "[[width = <1, 2)]] AND [colour = {red}]",
            [Interval(0, 1, 2, True, False), OneOf(2, ["red"])],
        ),
        ("[[colour = {a]]}]]", [OneOf(2, ["a]]"])]),
        ("AND = <1, 2) AND AND = {red}", ValueError),
        ("AND = {x} AND AND = {red}", [OneOf(3, ["x"]), OneOf(3, ["red"])]),
        (" blank = {x} AND  blank = {y}", [OneOf(4, ["x"]), OneOf(4, ["y"])]),
        ("a = {b} AND width = <1, 2)", [Interval(5, 1, 2, True, False)]),
        (" = <1, 2)", [Interval(6, 1, 2, True, False)]),
        ("width = Any", []),
        ("width = ANY AND colour = {red}", [OneOf(2, ["red"])]),
        ("", []),
    ],
)
def test_rulekit_text_converts_premises(premise: str, conditions: Any) -> None:
    text = f"IF {premise} THEN kind = {{yes}}"
    if conditions is ValueError:
        with pytest.raises(ValueError, match="has bounds elsewhere, but is compared with 'red'"):
            read_rule(text)
        return
    assert list(read_rule(text).conditions) == conditions


def test_rulekit_text_reads_values_of_bounded_features() -> None:
    rules = read_rulekit_text(
        "IF width = {4.90} THEN k = {a}\nIF width = <1, 2) THEN k = {b}", feature_names=["width"]
    )
    assert rules[0].conditions == (Interval(0, 4.9, 4.9, True, True),)
    with pytest.raises(ValueError, match="Line 2: feature 0 has bounds elsewhere"):
        read_rulekit_text(
            "IF width = <1, 2) THEN k = {b}\nIF width = !{4.90} THEN k = {a}",
            feature_names=["width"],
        )


@pytest.mark.filterwarnings("ignore:.* has a negative weight")
@pytest.mark.parametrize(
    ("behind", "weight", "rows", "counts"),
    [
        ("", 1.0, None, None),
        (" (p=8.0, n=1.0, P=8.0, N=9.0, weight=0.5, pval=4.9E-41)", 0.5, 9, (8, 1)),
        (
            " (p = 8.0, n = 0.5, P = 8.0, N = 9.0, weight = -0.25, pvalue = 1.0)",
            -0.25,
            8.5,
            (8, 0.5),
        ),
        (" [p=8.0, n=1.0]", 1.0, 9, (8, 1)),
        ("  ", 1.0, None, None),
    ],
)
def test_rulekit_text_converts_statistics(
    behind: str, weight: float, rows: Any, counts: Any
) -> None:
    rule = read_rule(f"IF width = <1, 2) THEN k = {{b}}{behind}", classes=["c", "b"])
    assert rule.weight == weight
    if rows is None:
        assert rule.statistics is None
        return
    assert rule.statistics.n_rows == rows
    assert rule.statistics.class_counts == counts


def test_rulekit_text_keeps_class_counts_if_determined() -> None:
    text = "IF width = <1, 2) THEN k = {b} (p=8, n=1)\nIF width = <1, 3) THEN k = {a} (p=8, n=0)"
    # There may be a third label that no rule predicts.
    assert [
        rule.statistics.class_counts for rule in read_rulekit_text(text, feature_names=["width"])
    ] == [None, (8, 0)]
    three = read_rulekit_text(text, feature_names=["width"], classes=["a", "b", "c"])
    assert [rule.statistics.class_counts for rule in three] == [None, (8, 0, 0)]


def test_rulekit_text_converts_labels_and_defaults() -> None:
    text = "IF width = <1, 2) THEN k = {10}\nIF width = <5, 7) THEN k = {9}"
    names = ["width"]
    numbers = read_rulekit_text(text, feature_names=names, classes=[9, 10, 11])
    # RuleKit compares class names as texts, also where no rule holds.
    assert numbers.classes == (10, 11, 9)
    assert numbers.predict([[1.0], [5.0], [99.0]]).tolist() == [10, 9, 10]
    assert read_rulekit_text(text, feature_names=names).classes == ("10", "9")
    with_default = read_rulekit_text(text, feature_names=names, default="9")
    assert with_default.predict([[99.0]]).tolist() == ["9"]
    flags = read_rulekit_text(
        "IF width = <1, 2) THEN k = {True}", feature_names=names, classes=[True, False]
    )
    assert flags.predict([[1.0], [3.0]]).tolist() == [True, False]
    # Java compares UTF-16 units, so that an emoji sorts before some letters of the first plane.
    far_rules = read_rulekit_text(
        "IF width = <1, 2) THEN k = {\uff21}\nIF width = <1, 2) THEN k = {\U0001f600}",
        feature_names=names,
    )
    assert far_rules.classes == ("\U0001f600", "\uff21")
    assert far_rules.predict([[1.0]]).tolist() == ["\U0001f600"]


def test_rulekit_text_regression_has_no_fallback_by_default() -> None:
    text = "IF width = <1, 2) THEN k = {10.50} [8,12.50] (p=3, n=1, weight=0.5)"
    rules = read_rulekit_text(text, feature_names=["width"])
    assert rules.predict([[1.5]]).tolist() == [10.5]
    with pytest.raises(ValueError, match="has no fallback"):
        rules.predict([[3.0]])
    with_default = read_rulekit_text(text, feature_names=["width"], default=2.5)
    assert with_default.predict([[3.0]]).tolist() == [2.5]
    plain = read_rulekit_text(
        "IF width = <1, 2) THEN k = {-1.0E-4}", feature_names=["width"], task="regression"
    )
    assert plain[0].output == -1e-4


def test_rulekit_text_accepts_line_breaks_in_separate_texts() -> None:
    rules = read_rulekit_text(
        ["IF a\nb = {c\nd} THEN k = {e\nf}", "  IF a\nb = {g} THEN k = {h}"], feature_names=["a\nb"]
    )
    assert rules[0].conditions == (OneOf(0, ["c\nd"]),)
    assert [rule.output for rule in rules] == ["e\nf", "h"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "The text holds no rules"),
        ("Rules:\n\nIF width = <1, 2) THEN k = {a}", "The text holds no rules"),
        ("Rules:\nx\n\nRules:\n", "The text has 2 sections that begin with 'Rules:' (lines 1, 4)"),
        ("width = <1, 2)", "Line 1, column 1: expected 'IF', got 'width = <1, 2)'"),
        ("IF width = <1, 2) THEN k = {a}\n\nIFF", "Line 3, column 1: expected 'IF', got 'IFF'"),
        (
            "IF wdth = <1, 2) THEN k = {a}",
            "Line 1, column 4: expected the name of a feature and ' = ', got 'wdth",
        ),
        ("IF wdth = <1, 2) THEN k = {a}", "Did you mean 'width'?"),
        ("IF width = 3 THEN k = {a}", "column 12: expected a value such as '<0.8, 1.75)'"),
        ("IF width = <1; 2) THEN k = {a}", "column 12: expected a value"),
        ("IF width = <1,2 THEN k = {a}", "column 12: expected a value"),
        ("IF width = <2, 2) THEN k = {a}", "column 12: no number lies in '<2, 2)'"),
        (
            "IF width = <2, 3) OR width = <5, 6) THEN k = {a}",
            "column 18: expected ' AND ' or ' THEN '",
        ),
        ("IF width = <2, 3)", "column 18: expected ' AND ' or ' THEN ', got the end"),
        ("IF width = <2, 3) AND THEN k = {a}", "column 23: expected the name of a feature"),
        ("IF [[width = <2, 3)] THEN k = {a}", "column 20: expected ']]'"),
        ("IF width = <2, 3) THEN k = a", "column 24: expected a conclusion such as"),
        ("IF colour = {a THEN k = 3", "expected '}'"),
        ("IF width = <2, 3) THEN k = {a} (p=1, q)", "column 31: expected statistics"),
        ("IF width = <2, 3) THEN k = {a} (p=1, n=one)", "column 31: expected statistics"),
        ("IF width = <2, 3) THEN k = {a} more", "column 31: expected the end of the rule"),
        ("IF width = <2, 3) THEN k = {a} AND colour = {b}", "which looks like more than a label"),
        ("IF width = <2, 3) THEN k = {a} (weight=NaN)", "Line 1: weight must be a finite number"),
        ("IF width = <2, 3) AND width = <4, 5) THEN k = {a}", "Line 1: No number lies between"),
        (
            "IF width = <2, 3) THEN k = {a}\nIF width = <2, 3) THEN l = {a}",
            "Line 2 concludes 'l', Line 1 'k'",
        ),
        (
            "IF width = <2, 3) THEN k = {a} (weight=1)\nIF width = <2, 3) THEN k = {a}",
            "Line 2 has no weight, unlike Line 1",
        ),
        (
            "IF width = <2, 3) THEN k = {a}\nIF width = <2, 3) THEN k = {3} [1,5]",
            "Line 2 concludes a number, Line 1 does not",
        ),
        ("IF width = <2, 3) THEN k = {a} [1,5]", "a rule for regression must conclude a number"),
    ],
)
def test_rulekit_text_locates_faults(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        read_rule(text)


def test_rulekit_text_rejects_ambiguous_names() -> None:
    with pytest.raises(ValueError, match="Line 1, column 4: the names of two features match"):
        read_rulekit_text(
            "IF x = {a} AND b = {c} THEN k = {3}", feature_names=["x", "b", "x = {a} AND b"]
        )


def test_rulekit_text_rejects_invalid_options() -> None:
    text = "IF width = <1, 2) THEN k = {a}"
    ranged = "IF width = <1, 2) THEN k = {1} [0,2]"
    for bad, kind, fault in [
        ({"task": "ranking"}, ValueError, "task must be one of None"),
        ({"task": "regression", "classes": ["a"]}, ValueError, "classes are for classification"),
        (
            {"task": "regression"},
            ValueError,
            "a rule for regression must conclude",
        ),
        ({"classes": "ab"}, TypeError, "classes must be a sequence of labels, got 'ab'"),
        ({"classes": ["b"]}, ValueError, "concludes 'a', which is not str"),
        ({"classes": ["a", 1, "1"]}, ValueError, "differ from each other as texts"),
        ({"default": "b"}, ValueError, "The fallback predicts 'b'"),
        ({"feature_names": "width"}, TypeError, "feature_names must be a sequence of names"),
    ]:
        with pytest.raises(kind, match=fault):
            read_rulekit_text(text, **({"feature_names": ["width"]} | bad))
    with pytest.raises(ValueError, match="concludes a number with a range"):
        read_rulekit_text(ranged, feature_names=["width"], task="classification")
    with pytest.raises(TypeError, match="text must hold texts, got int"):
        read_rulekit_text([1], feature_names=["width"])


def written(rule: Rule, names: list[str]) -> str:
    """Return a rule in RuleKit's notation, with all digits."""
    parts = []
    for condition in rule.conditions:
        if isinstance(condition, OneOf):
            parts.append(
                f"{names[condition.feature]} = {'!' * condition.negated}{{{condition.values[0]}}}"
            )
            continue
        opened = "<" if condition.lower_closed else "("
        closed = ">" if condition.upper_closed else ")"
        bounds = f"{opened}{condition.lower!r}, {condition.upper!r}{closed}"
        parts.append(f"{names[condition.feature]} = {bounds}")
    return f"IF {' AND '.join(parts)} THEN kind = {{{rule.output}}} (weight={rule.weight!r})"


LETTERS = st.text(
    st.characters(exclude_characters="{}\n\r=", exclude_categories=["Cs"]), max_size=6
)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
CONDITION = st.one_of(
    st.builds(
        lambda feature, bounds, low, high: Interval(feature, *sorted(bounds), low, high),
        st.integers(0, 1),
        st.lists(NUMBER, min_size=2, max_size=2, unique=True),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        lambda f, value, negated: OneOf(f, [value], negated),
        st.integers(2, 3),
        LETTERS,
        st.booleans(),
    ),
)


@pytest.mark.filterwarnings("ignore:.* has a negative weight")
@given(
    st.lists(LETTERS.map(lambda name: f"n{name}n"), min_size=4, max_size=4, unique=True),
    st.lists(CONDITION, min_size=1, max_size=4, unique_by=lambda c: c.feature),
    LETTERS,
    NUMBER,
)
@example(["nan", "nbn", "ncn", "ndn"], [OneOf(2, ["a"], False)], "NaN", 0.0)
def test_rulekit_text_restores_written_rules(
    names: list[str], conditions: list[Any], label: str, weight: float
) -> None:
    rule = Rule(tuple(conditions), label, None, weight)
    # Without classes, "NaN" would be the output of a survival rule.
    classes = [label] if label == "NaN" else None
    (back,) = read_rulekit_text([written(rule, names)], feature_names=names, classes=classes)
    assert back == rule


@pytest.mark.parametrize("signs", ["[]", "[[]]"])
def test_rulekit_text_ignores_brackets_around_conditions(signs):
    opened, shut = signs[: len(signs) // 2], signs[len(signs) // 2 :]
    names = ["PD", "MM116", "BA", "x]"]
    plain = "IF PD = <0.50, inf) AND MM116 = (-inf, 1) AND BA = {a]} THEN c = {1}"
    expected = read_rulekit_text(plain, feature_names=names)
    for text in (
        f"IF {opened}PD = <0.50, inf) AND MM116 = (-inf, 1){shut} AND BA = {{a]}} THEN c = {{1}}",
        f"IF PD = <0.50, inf) AND {opened}MM116 = (-inf, 1) AND BA = {{a]}}{shut} THEN c = {{1}}",
        f"IF {opened}PD = <0.50, inf){shut} AND MM116 = (-inf, 1) AND BA = {{a]}} THEN c = {{1}}",
    ):
        assert read_rulekit_text(text, feature_names=names) == expected
    for text in (
        f"IF {opened}PD = <0.50, inf) AND MM116 = (-inf, 1) THEN c = {{1}}",
        f"IF PD = <0.50, inf) AND MM116 = (-inf, 1){shut} THEN c = {{1}}",
    ):
        with pytest.raises(ValueError, match="expected"):
            read_rulekit_text(text, feature_names=names)


def test_rulekit_text_accepts_headers_without_colon():
    report = "Model\n\nRules\nr1: IF a = <0, 1) THEN class = {x}\n\nMeasures: 3\n"
    assert len(read_rulekit_text(report, feature_names=["a"])) == 1


SURVIVAL = "IF age = (-inf, 57.13) THEN "


@pytest.mark.parametrize("end", ["", " ", "survival_status = {NaN} (p=8.0, n=0.0, weight=0.9)"])
def test_rulekit_text_reads_survival_rules_as_premises(end):
    text = SURVIVAL.rstrip() + " " * bool(end) + end
    rules = read_rulekit_text(text, feature_names=["age"], task="survival")
    assert rules[0].conditions == (Interval(0, upper=57.13, upper_closed=False),)
    assert (rules.task, rules.voting) == ("regression", None)
    with pytest.raises(ValueError, match="Line 1 has no conclusion, like rules for survival"):
        read_rulekit_text(text, feature_names=["age"])
    with pytest.raises(ValueError, match="concludes 'a', unlike rules for survival"):
        read_rulekit_text(SURVIVAL + "c = {a}", feature_names=["age"], task="survival")


def test_rulekit_text_checks_weights_and_counts():
    for weight in ("NaN", "inf"):
        with pytest.raises(ValueError, match="Line 1: weight must be a finite number"):
            read_rulekit_text(SURVIVAL + f"c = {{a}} (weight={weight})", feature_names=["age"])
    with pytest.raises(ValueError, match="Line 1: n_rows must be 0 or more"):
        read_rulekit_text(SURVIVAL + "c = {a} (p=-3, n=0)", feature_names=["age"])
    with pytest.warns(UserWarning, match="Line 1 has a negative weight"):
        read_rulekit_text(SURVIVAL + "c = {a} (weight=-0.5)", feature_names=["age"])
