"""Rules as text, tables, HTML and JSON; JSON is read back without loss."""

from __future__ import annotations

import io
import json
import math
import string
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.rules import (
    AtLeast,
    BoxTable,
    Conclusions,
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

FIRST_VERSION = Path(__file__).parents[2] / "data" / "ruleset_version_1.json"
IRIS = RuleSet(
    [
        Rule([Interval(0, upper=2.45)], "setosa", RuleStatistics(50, (50, 0, 0))),
        Rule([Interval(1, upper=1.75)], "versicolor", RuleStatistics(54, (0, 49, 5))),
        Rule([], "virginica", RuleStatistics(46, (0, 1, 45))),
    ],
    ["petal length (cm)", "petal width (cm)"],
    task="classification",
    domain=Domain((1.0, 0.1), (6.9, 2.5)),
    fallback=Fallback("setosa"),
)
NUMBERS = RuleSet(
    [
        Rule(
            [Interval(0, upper=0.5)],
            1.23456,
            RuleStatistics(3, mean=1.23456, standard_deviation=0.5),
        ),
        Rule([Interval(1, 2, 3)], LinearOutput(1, [(0, 2)])),
    ],
    ["a", "b"],
    task="regression",
    ordered=False,
    fallback=Fallback(0.33333),
)


# --- text ------------------------------------------------------------------------------------


def test_text_describes_ordered_rules():
    assert IRIS.to_text().splitlines() == [
        "1. IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % of this class]",
        "2. ELSE IF petal width (cm) ≤ 1.75 THEN versicolor   [54 rows, 91 % of this class]",
        "3. ELSE virginica   [46 rows, 98 % of this class]",
    ]
    assert str(IRIS) == IRIS.to_text()


def test_text_describes_unordered_rules():
    assert NUMBERS.to_text().splitlines() == [
        "1. IF a ≤ 0.5 THEN 1.23456   [3 rows, ± 0.5]",
        "2. IF 2 < b ≤ 3 THEN 1 + 2·a",
        "otherwise, where no rule holds: 0.33333",
    ]
    apart = IRIS.replace(ordered=False).to_text().splitlines()
    assert apart[1].startswith("2. IF petal width")
    assert apart[2].startswith("3. ALWAYS virginica")


@pytest.mark.parametrize(
    ("fallback", "line"),
    [
        (Fallback("setosa"), "setosa"),
        (Fallback("setosa", "nearest"), "the rule whose box is nearest"),
        (Fallback("setosa", "abstain"), "no prediction"),
    ],
)
def test_text_last_line_states_fallback(fallback, line):
    text = IRIS[:2].replace(fallback=fallback).to_text()
    assert text.splitlines()[2:] == [f"otherwise, where no rule holds: {line}"]
    assert len(IRIS[:2].replace(fallback=None).to_text().splitlines()) == 2
    # With a rule that always holds, no row needs the fallback.
    assert len(IRIS.replace(fallback=fallback).to_text().splitlines()) == 3


def test_text_of_empty_rule_set_states_fallback():
    empty = IRIS[:0]
    assert str(empty) == "(no rules)\notherwise, where no rule holds: setosa"
    nearest = empty.replace(fallback=Fallback("setosa", "nearest"))
    assert str(nearest) == str(empty)
    assert str(empty.replace(fallback=None)) == "(no rules)"
    assert len(empty.to_frame()) == 0
    assert "0 rules" in empty._repr_html_()


def test_text_purity_refers_to_output_of_rule():
    rule = Rule([], "b", RuleStatistics(10, (9, 1)))
    ruleset = RuleSet([rule], ["x"], task="classification", classes=["a", "b"])
    assert str(ruleset) == "1. ALWAYS b   [10 rows, 10 % of this class]"
    assert ruleset.to_frame()["purity"].tolist() == [0.1]


def test_text_writes_numeric_labels_and_outputs_exactly():
    labels = RuleSet([Rule([], 12345.678)], ["x"], task="classification")
    assert str(labels) == "1. ALWAYS 12345.678"
    numbers = RuleSet([Rule([], 12345.678)], ["x"], task="regression")
    assert str(numbers) == "1. ALWAYS 12345.678"


def test_text_writes_bounds_exactly():
    rules = [Rule([Interval(0, 1000.123456, 1000.9), Interval(1, upper=0.00012345)], 1)]
    ruleset = RuleSet(rules, ["a", "b"], task="regression")
    assert "1000.123456 < a ≤ 1000.9 AND b ≤ 0.00012345" in str(ruleset)
    sums = RuleSet([Rule([Linear([(0, 1 / 3)], upper=724.5)], 1)], ["a"], task="regression")
    assert str(sums) == "1. IF 0.3333333333333333·a ≤ 724.5 THEN 1"


def test_text_digits_of_linear_outputs_suit_domain():
    function = LinearOutput(-1234567.25, [(0, 617.23456)])
    ruleset = RuleSet([Rule([], function)], ["year"], task="regression")
    assert str(ruleset) == "1. ALWAYS -1234567 + 617.2·year"
    changed_rules = ruleset.replace(domain=Domain((1990,), (2020,)))
    assert str(changed_rules) == "1. ALWAYS -1234567 + 617.235·year"
    # With four digits the coefficient would be off by 69, for a function that varies by 18517.
    assert abs(-1234567 + 617.235 * 2020 - (function.intercept + 617.23456 * 2020)) < 18517 / 1000


def test_text_distinguishes_close_bounds():
    near = [2.45, 2.4500001, 2.4499999, 3.0]
    rules = [Rule([Interval(0, upper=b)], i) for i, b in enumerate(near)]
    rules.append(Rule([AtLeast(1, [Interval(0, lower=3.0000001)])], 9))
    lines = str(RuleSet(rules, ["a"], task="regression")).splitlines()
    bounds = [line.partition(" THEN")[0].split()[-1].rstrip(")") for line in lines]
    assert bounds == ["2.45", "2.4500001", "2.4499999", "3", "3.0000001"]
    # The same bound has the same text on both sides.
    split = [Rule([Interval(0, upper=b)], 0) for b in near]
    split += [Rule([Interval(0, lower=b)], 0) for b in near]
    text = str(RuleSet(split, ["a"], task="regression", domain=Domain((0,), (100,))))
    assert text.count("2.4500001 ") == 2
    assert text.count("2.45 ") == 2


def test_text_never_shows_interval_as_empty():
    one = RuleSet([Rule([Interval(0, 1.00001, 1.00002)], 1)], ["a"], task="regression")
    for ruleset in (one, one.replace(domain=Domain((0,), (1e6,)))):
        assert str(ruleset) == "1. IF 1.00001 < a ≤ 1.00002 THEN 1"


def test_text_keeps_names_and_labels_in_any_script():
    rule = Rule([Interval(0, upper=1), OneOf(1, ["größer", "красный"])], "是")
    ruleset = RuleSet([rule], ["Länge (µm)", "цвет"], task="classification")
    assert str(ruleset) == "1. IF Länge (µm) ≤ 1 AND цвет in {größer, красный} THEN 是"


# --- long rule sets --------------------------------------------------------------------------


def long_set(n_rules):
    upper = np.arange(1.0, n_rules + 1)[:, None]
    boxes = BoxTable(upper - 1, upper, np.zeros_like(upper), np.ones_like(upper))
    return RuleSet.from_boxes(
        boxes, Conclusions(upper[:, 0]), ["x"], task="regression", fallback=Fallback(0)
    )


def test_repr_shortens_long_rule_sets():
    ruleset = long_set(1234)
    lines = str(ruleset).splitlines()
    assert len(lines) == 1235
    assert lines[0] == "   1. IF 0 < x ≤ 1 THEN 1"
    assert lines[1233] == "1234. ELSE IF 1233 < x ≤ 1234 THEN 1234"
    repr_lines = repr(ruleset).splitlines()
    assert repr_lines[0] == "<RuleSet: 1234 ordered rules for regression on 1 feature>"
    assert repr_lines[60] == "60. ELSE IF 59 < x ≤ 60 THEN 60"
    assert repr_lines[61:] == [
        "... and 1174 more; to_text() gives all",
        "otherwise, where no rule holds: 0",
    ]
    html = ruleset._repr_html_()
    assert html.count("<tr>") == 1 + 60 + 1 + 1
    assert "... and 1174 more; to_frame() returns all" in html
    assert len(ruleset.to_frame()) == 1234
    assert "more" not in repr(long_set(60))
    assert "more" not in long_set(60)._repr_html_()


# --- tables ----------------------------------------------------------------------------------


def test_to_frame_describes_classification_rules():
    frame = IRIS.to_frame()
    assert frame.index.tolist() == [1, 2, 3]
    assert frame.index.name == "rule"
    assert frame["premise"].tolist() == [
        "petal length (cm) ≤ 2.45",
        "petal width (cm) ≤ 1.75",
        "(always)",
    ]
    assert frame["output"].tolist() == ["setosa", "versicolor", "virginica"]
    assert frame["conditions"].tolist() == [1, 1, 0]
    assert frame["rows"].tolist() == [50, 54, 46]
    assert frame["purity"].tolist() == [1.0, 49 / 54, 45 / 46]
    measures = ["purity", "correctness"]
    assert list(frame.columns) == ["premise", "output", "conditions", "rows", *measures]


def test_to_frame_describes_regression_rules():
    frame = NUMBERS.to_frame()
    assert list(frame.columns) == [
        "premise",
        "output",
        "conditions",
        "rows",
        "mean",
        "standard_deviation",
        "model_error",
        "target_error",
    ]
    assert frame["output"].tolist() == [1.23456, "1 + 2·a"]
    assert frame["mean"].iloc[0] == 1.23456
    assert frame["standard_deviation"].iloc[0] == 0.5
    assert pd.isna(frame["rows"].iloc[1])
    assert list(NUMBERS[:0].to_frame().columns) == list(frame.columns)


# --- HTML ------------------------------------------------------------------------------------


class Cells(HTMLParser):
    """Parser that collects the texts of a table and checks that every tag is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.rows, self.caption = [], [], ""

    def handle_starttag(self, tag, attributes):
        assert tag in {"table", "caption", "thead", "tbody", "tr", "th", "td"}
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"th", "td"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] == "caption":
            self.caption += data
        else:
            self.rows[-1][-1] += data


def cells(ruleset):
    parser = Cells()
    parser.feed(ruleset.to_html())
    parser.close()
    assert parser.open == []
    return parser


def test_tables_and_html_show_missing_conditions():
    rules = RuleSet(
        [
            Rule([Interval(0, upper=30, missing=True), OneOf(1, ["f"], missing=True)], "a"),
            Rule([Missing(0), Missing(1, negated=True)], "b"),
        ],
        ["age", "sex"],
        task="classification",
        domain=Domain((0, 0), (80, 2), [(1, ["f", "m"])], (0.2, 0.1)),
    )
    premises = [
        "(age ≤ 30 or missing) AND (sex = f or missing)",
        "age is missing AND sex is known",
    ]
    assert rules.to_frame()["premise"].tolist() == premises
    assert rules.to_frame()["conditions"].tolist() == [2, 2]
    assert rules.n_literals == 2 + 2 + 1 + 1
    for written in (rules.to_markdown(), rules.to_html(), rules.to_html(standalone=True)):
        assert all(premise in written for premise in premises)
    # A text that ends like a condition is quoted.
    assert str(OneOf(1, ["f or missing"])) == 'x1 = "f or missing"'


def test_html_shows_caption_and_rows():
    table = cells(IRIS)
    assert table.caption == "3 rules; the first that holds gives the prediction"
    assert table.rows == [
        ["", "Premise", "Conclusion", "Seen"],
        ["1", "if petal length (cm) ≤ 2.45", "setosa", "50 rows, 100 % of this class"],
        ["2", "else if petal width (cm) ≤ 1.75", "versicolor", "54 rows, 91 % of this class"],
        ["3", "else", "virginica", "46 rows, 98 % of this class"],
    ]
    assert cells(NUMBERS).caption == "2 rules; otherwise, where no rule holds: 0.33333"
    assert [row[1] for row in cells(IRIS.replace(ordered=False)).rows[1:]] == [
        "if petal length (cm) ≤ 2.45",
        "if petal width (cm) ≤ 1.75",
        "always",
    ]
    assert cells(IRIS[2:]).rows[1][1] == "always"
    assert cells(IRIS[2:]).caption == "1 rule"


def test_html_escapes_names_and_labels():
    name, label = '<b>"a" & b</b>', "<script>alert('x')</script>"
    ruleset = RuleSet(
        [Rule([Interval(0, upper=1), OneOf(1, ["<i>"])], label, RuleStatistics(1, (1,)))],
        [name, "&amp;"],
        task="classification",
        fallback=Fallback(label),
    )
    table = cells(ruleset)
    assert table.rows[1][1:3] == [f'if {json.dumps(name)} ≤ 1 AND "&amp;" = <i>', label]
    assert table.caption == f"1 rule; otherwise, where no rule holds: {label}"
    assert "<script" not in ruleset._repr_html_()


# --- HTML, a complete page --------------------------------------------------------------------


class Page(HTMLParser):
    """Parser that collects the elements of a page in order; all must be closed."""

    def __init__(self):
        super().__init__()
        self.open, self.elements = [], []

    def handle_starttag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])
        if tag != "meta":
            self.open.append(self.elements[-1])

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open:
            self.open[-1][2] += data

    def all(self, tag):
        return [element for element in self.elements if element[0] == tag]

    def texts(self, tag):
        return [text for _, _, text in self.all(tag)]


def page(ruleset, **settings):
    text = ruleset.to_html(standalone=True, **settings)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    parser = Page()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return parser


def test_html_page_is_complete_and_self_contained():
    elements = page(IRIS)
    assert elements.texts("title") == elements.texts("h1") == ["Rules for classification"]
    assert elements.texts("caption") == ["3 rules; the first that holds gives the prediction"]
    scopes = [(attributes["scope"], text) for _, attributes, text in elements.all("th")]
    assert scopes == [
        *[("col", text) for text in ("Rule", "Premise", "Conclusion", "Seen")],
        *[("row", text) for text in "123"],
    ]
    assert elements.texts("td")[3:6] == [
        "else if petal width (cm) ≤ 1.75",
        "versicolor",
        "54 rows, 91 % of this class",
    ]
    # No script runs, nothing is loaded, and dark screens stay dark.
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "h1",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    assert {tag for tag, _, _ in elements.elements} == allowed
    names = {name for _, attributes, _ in elements.elements for name in attributes}
    assert names == {"lang", "charset", "name", "content", "scope"}
    (style,) = elements.texts("style")
    assert "color-scheme: light dark" in style
    assert "url(" not in style
    assert "@import" not in style


def test_html_page_shows_every_rule_and_escapes_title():
    elements = page(long_set(200), title="<b>Prices & {braces}")
    assert elements.texts("title") == elements.texts("h1") == ["<b>Prices & {braces}"]
    assert len(elements.all("tr")) == 201
    name = "<script>alert('{x}')</script>"
    rule = Rule([Interval(0, upper=1)], name)
    elements = page(RuleSet([rule], [name], task="classification"))
    assert elements.texts("td") == [f"if {json.dumps(name)} ≤ 1", json.dumps(name), ""]
    assert page(IRIS[:0]).texts("caption") == ["0 rules; otherwise, where no rule holds: setosa"]


# --- voting rules -----------------------------------------------------------------------------

VOTES = RuleSet(
    [
        Rule([Interval(0, upper=1)], "a", RuleStatistics(4, (3, 1)), 0.8),
        Rule([Interval(0, lower=0)], "b", weight=LinearOutput(0.5, [(1, -2)])),
    ],
    ["x", "y"],
    task="classification",
    ordered=False,
    voting="votes",
    fallback=Fallback("b"),
)


def test_text_describes_voting_rules():
    assert str(VOTES).splitlines() == [
        "1. IF x ≤ 1 THEN a   [weight 0.8, 4 rows, 75 % of this class]",
        "2. IF x > 0 THEN b   [weight 0.5 - 2·y]",
        "together: all rules that hold vote with their weights",
        "otherwise, where no rule holds: b",
    ]
    assert str(VOTES.replace(voting=None)).splitlines() == [
        "1. IF x ≤ 1 THEN a   [4 rows, 75 % of this class]",
        "2. IF x > 0 THEN b",
        "otherwise, where no rule holds: b",
    ]


def test_tables_show_weights_of_voting_rules():
    frame = VOTES.to_frame()
    measures = ["weight", "purity", "correctness"]
    assert list(frame.columns) == ["premise", "output", "conditions", "rows", *measures]
    assert frame["weight"].tolist() == [0.8, "0.5 - 2·y"]
    assert "weight" not in VOTES.replace(voting=None).to_frame()
    table = cells(VOTES)
    assert table.caption == (
        "2 rules; together: all rules that hold vote with their weights; "
        "otherwise, where no rule holds: b"
    )
    assert table.rows == [
        ["", "Premise", "Conclusion", "Weight", "Seen"],
        ["1", "if x ≤ 1", "a", "0.8", "4 rows, 75 % of this class"],
        ["2", "if x > 0", "b", "0.5 - 2·y", ""],
    ]
    assert "and 1 more" in VOTES.to_html(limit=1)
    assert 'colspan="5"' in VOTES.to_html(limit=1)


@pytest.mark.parametrize(
    ("weights", "expected"), [((1, 1), False), ((1, 0), True), ((2, -1), True), ((0, 1), True)]
)
def test_text_of_mean_states_fallback_if_weights_may_vanish(weights, expected):
    rules = [Rule([], 1, weight=weights[0]), Rule([Interval(0, 1)], 2, weight=weights[1])]
    ruleset = RuleSet(
        rules, ["x"], task="regression", ordered=False, voting="mean", fallback=Fallback(7)
    )
    lines = str(ruleset).splitlines()[2:]
    assert lines[0] == "together: the weighted mean of all rules that hold"
    assert lines[1:] == expected * [
        "otherwise, where no rule holds or the weights add up to 0 or less: 7"
    ]
    assert len(str(ruleset.replace(voting="sum")).splitlines()) == 3


# --- JSON, round trip ------------------------------------------------------------------------

ODD = [0.1 + 0.2, 5e-324, -0.0, 0.0, 1e308, -1e-300, 1 / 3, 2.0**60, 3.0]
finite = st.sampled_from(ODD) | st.floats(allow_nan=False, allow_infinity=False)
bounds = st.sampled_from([-math.inf, math.inf]) | finite
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@st.composite
def pairs_of_bounds(draw):
    lower, upper = sorted([draw(bounds), draw(bounds)])
    if lower == upper:
        return (lower, upper, True, True) if math.isfinite(lower) else (-math.inf, math.inf)
    return lower, upper, draw(st.booleans()), draw(st.booleans())


def conditions(n_features):
    features = st.integers(0, n_features - 1)
    values = st.lists(texts | st.integers() | finite | st.booleans(), min_size=1, max_size=4)
    terms = st.dictionaries(features, finite.filter(lambda c: c != 0), min_size=1, max_size=3)
    simple = st.one_of(
        st.builds(lambda f, b, m: Interval(f, *b, m), features, pairs_of_bounds(), st.booleans()),
        st.builds(OneOf, features, values, st.booleans(), st.booleans()),
        st.builds(Missing, features, st.booleans()),
        st.builds(lambda t, b: Linear(t.items(), *b), terms, pairs_of_bounds()),
    )
    return st.recursive(
        simple,
        lambda inner: st.lists(inner, min_size=1, max_size=3).flatmap(
            lambda c: st.builds(AtLeast, st.integers(1, len(c)), st.just(c))
        ),
        max_leaves=5,
    )


LABELS = {
    "str": texts,
    "int": st.integers(-(10**30), 10**30),
    "float": finite,
    "bool": st.booleans(),
    "mixed": texts | st.integers() | st.booleans() | finite,
}


@st.composite
def rule_sets(draw):
    names = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    classification = draw(st.booleans())
    counts = classes = None
    if classification:
        kind = draw(st.sampled_from(sorted(LABELS)))
        classes = draw(st.lists(LABELS[kind], min_size=1, max_size=4, unique=True))
        outputs = st.sampled_from(classes)
        class_counts = st.lists(st.floats(0, 1e9), min_size=len(classes), max_size=len(classes))
        counts = st.none() | class_counts
    else:
        term = st.tuples(st.integers(0, len(names) - 1), st.floats(-1e9, 1e9))
        outputs = finite | st.integers() | st.builds(LinearOutput, finite, st.lists(term))
    amount = st.floats(0, 1e9) | st.integers(0, 100)
    statistics = st.none() | (
        st.builds(RuleStatistics, amount, counts)
        if classification
        else st.builds(RuleStatistics, amount, st.none(), st.none() | finite, st.none() | amount)
    )
    rules = []
    for _ in range(draw(st.integers(0, 3))):
        premise = []
        for condition in draw(st.lists(conditions(len(names)), max_size=3)):
            try:
                Rule([*premise, condition], 0)
            except ValueError:  # the conditions contradict each other
                continue
            premise.append(condition)
        rules.append(Rule(premise, draw(outputs), draw(statistics)))
    sides = [sorted([draw(finite), draw(finite)]) for _ in names]
    gaps = [draw(st.just(0.0) | st.floats(0, 1)) for _ in names]
    fallback = None
    if draw(st.booleans()):
        label = "\N{SNOWMAN} abstained" if draw(st.booleans()) else None
        answer = draw(outputs.filter(lambda o: not isinstance(o, LinearOutput)))
        policy = draw(st.sampled_from(["default", "nearest", "abstain"]))
        row_counts = None if counts is None else draw(counts)
        fallback = Fallback(answer, policy, row_counts, label)
    return RuleSet(
        rules,
        names,
        task="classification" if classification else "regression",
        classes=classes,
        domain=draw(st.none() | st.just(Domain(*zip(*sides, strict=True), missing=gaps))),
        ordered=draw(st.booleans()),
        disjoint=draw(st.booleans()),
        fallback=fallback,
    )


def refuse(literal):
    raise AssertionError(f"{literal} is not JSON")


@given(ruleset=rule_sets(), indent=st.sampled_from([None, 2]))
def test_json_restores_arbitrary_rule_sets(ruleset, indent):
    text = ruleset.to_json(indent=indent)
    json.loads(text, parse_constant=refuse)
    back = RuleSet.from_json(text)
    assert back == ruleset
    assert hash(back) == hash(ruleset)
    # The repr also distinguishes values that compare equal: -0.0 and 0.0, True and 1, 1 and 1.0.
    assert repr(back._key) == repr(ruleset._key)
    assert back.to_json(indent=indent) == text


def test_json_contains_all_parts():
    ruleset = RuleSet(
        [
            Rule(
                [Interval(0, upper=0.1 + 0.2), OneOf(1, ["é", 2])], "a", RuleStatistics(2, (2, 0))
            ),
            Rule([AtLeast(1, [Interval(0, -0.0, 5e-324), Linear([(0, 2)], 1)])], "b"),
        ],
        ["x", "y"],
        task="classification",
        domain=Domain((0, 1), (2, 3)),
        fallback=Fallback("a", "abstain", (3, 1), "?"),
    )
    assert json.loads(ruleset.to_json()) == {
        "format": "skescore.RuleSet",
        "version": 1,
        "task": "classification",
        "feature_names": ["x", "y"],
        "classes": ["a", "b"],
        "ordered": True,
        "disjoint": False,
        "domain": {"lower": [0.0, 1.0], "upper": [2.0, 3.0]},
        "fallback": {
            "policy": "abstain",
            "output": "a",
            "class_counts": [3.0, 1.0],
            "abstain_label": "?",
        },
        "rules": [
            {
                "if": [
                    {
                        "type": "interval",
                        "feature": 0,
                        "upper": 0.30000000000000004,
                        "upper_closed": True,
                    },
                    {"type": "one_of", "feature": 1, "values": [2, "é"], "negated": False},
                ],
                "then": "a",
                "statistics": {"n_rows": 2, "class_counts": [2, 0]},
            },
            {
                "if": [
                    {
                        "type": "at_least",
                        "m": 1,
                        "conditions": [
                            {
                                "type": "interval",
                                "feature": 0,
                                "lower": -0.0,
                                "lower_closed": False,
                                "upper": 5e-324,
                                "upper_closed": True,
                            },
                            {
                                "type": "linear",
                                "terms": [[0, 2.0]],
                                "lower": 1.0,
                                "lower_closed": False,
                            },
                        ],
                    },
                ],
                "then": "b",
            },
        ],
    }
    assert "é" in ruleset.to_json()


def test_json_writes_missing_conditions_in_version_2():
    ruleset = RuleSet(
        [
            Rule([Interval(0, upper=30, missing=True), OneOf(1, ["a"], missing=True)], 1),
            Rule([Missing(0), Missing(1, negated=True)], 2),
        ],
        ["age", "sex"],
        task="regression",
    )
    data = json.loads(ruleset.to_json())
    # Conditions on missing values require the version that supports them.
    assert data["version"] == 2
    assert [rule["if"] for rule in data["rules"]] == [
        [
            {
                "type": "interval",
                "feature": 0,
                "upper": 30.0,
                "upper_closed": True,
                "missing": True,
            },
            {"type": "one_of", "feature": 1, "values": ["a"], "negated": False, "missing": True},
        ],
        [
            {"type": "missing", "feature": 0, "negated": False},
            {"type": "missing", "feature": 1, "negated": True},
        ],
    ]
    assert RuleSet.from_json(ruleset.to_json()) == ruleset
    within = RuleSet(
        [Rule([AtLeast(1, [Missing(0), Interval(1, 0)])], 1)], ["x", "y"], task="regression"
    )
    assert json.loads(within.to_json())["version"] == 2


@pytest.mark.slow
def test_json_preserves_predictions_on_hostile_rows(arbitrary):
    X = arbitrary.hostile_rows()
    for ruleset in arbitrary.hostile_sets():
        back = RuleSet.from_json(ruleset.to_json())
        assert back == ruleset
        assert (back.match(X) == ruleset.match(X)).all()
        assert arbitrary.answers(back, X) == arbitrary.answers(ruleset, X)


def test_json_reads_first_version():
    # The file was written before the second version existed.
    text = FIRST_VERSION.read_text(encoding="utf-8")
    ruleset = RuleSet.from_json(text)
    assert json.loads(text)["version"] == 1
    assert ruleset == RuleSet(
        [
            Rule(
                [Interval(0, 1.5, 30, lower_closed=True), OneOf(1, ["f", "m"], negated=True)],
                "yes",
                RuleStatistics(12, (2, 10)),
            ),
            Rule(
                [AtLeast(1, [Interval(2, upper=0.1), Linear([(0, 1), (2, -2)], 0.5)])],
                "no",
                RuleStatistics(7, (6, 1)),
            ),
        ],
        ["age", "sex", "fare"],
        task="classification",
        domain=Domain((0, 0, 0.25), (80, 2, 512.5), [(1, ["f", "m"])]),
        ordered=False,
        fallback=Fallback("no", "abstain", (8, 11), "?"),
    )
    # Sets without conditions on missing values keep the old version for earlier releases.
    assert json.loads(ruleset.to_json()) == json.loads(text)


# --- JSON, errors ----------------------------------------------------------------------------

GOOD = json.loads(
    RuleSet(
        [
            Rule([Interval(0, 0, 1), OneOf(1, ["a"]), Linear([(0, 1), (1, 2)], 0, 1)], 1),
            Rule([AtLeast(1, [Interval(0, 2)])], LinearOutput(1, [(0, 2)]), RuleStatistics(3)),
        ],
        ["x", "y"],
        task="regression",
        domain=Domain((0, 0), (1, 1)),
        fallback=Fallback(0),
    ).to_json()
)
GONE = object()


def changed(path, value):
    """Return the valid JSON with one value changed or left out."""
    data = json.loads(json.dumps(GOOD))
    parent = data
    for key in path[:-1]:
        parent = parent[key]
    if value is GONE:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return json.dumps(data)


def test_json_example_is_valid():
    assert len(RuleSet.from_json(json.dumps(GOOD))) == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "This is not JSON"),
        ("IF x > 1 THEN a", "This is not JSON"),
        ('{"format": "skescore.RuleSet"', "This is not JSON"),
        ("[" * 100_000, "This is not JSON"),
        ('{"format": NaN}', "This is not JSON: NaN is not a finite number"),
        ('{"format": -Infinity}', "This is not JSON: -Infinity is not a finite number"),
        ('{"format": 1e999}', "This is not JSON: 1e999 is not a finite number"),
        (f'{{"format": {"9" * 5000}}}', "This is not JSON"),
        ("[]", "not a rule set: its 'format' must be 'skescore.RuleSet', got 'list'"),
        ("null", "got 'NoneType'"),
        ("3", "got 'int'"),
        ("{}", "got None.*written by RuleSet.to_json"),
        (changed(["format"], "other"), "got 'other'"),
        (
            changed(["version"], 3),
            "version 3, but this skescore reads versions 1 and 2.*--upgrade",
        ),
        (changed(["version"], True), "has version True"),
        (changed(["version"], "1"), "has version '1'"),
        (changed(["version"], GONE), "has version None"),
    ],
    ids=range(17),
)
def test_from_json_rejects_other_texts(text, error):
    with pytest.raises(ValueError, match=error):
        RuleSet.from_json(text)


@pytest.mark.parametrize(
    ("path", "value", "location", "error"),
    [
        (["rules"], GONE, "the rule set", "the rule set lacks the field 'rules'"),
        (["task"], GONE, "the rule set", "lacks the field 'task'"),
        (["task"], "ranking", "the rule set", "task must be"),
        (["note"], "mine", "the rule set", "unknown field 'note'; known: format, version, task"),
        (["feature_names"], "xy", "the rule set", "feature_names must be a list, got 'xy'"),
        (["feature_names"], [1, 2], "the rule set", "feature_names must be texts"),
        (["feature_names"], ["x"], "the rule set", "domain has 2 features, feature_names has 1"),
        (["classes"], [0, 1], "the rule set", "pass classes=None for regression"),
        (["classes"], "ab", "the rule set", "classes must be a list"),
        (["ordered"], "no", "the rule set", "ordered must be True or False, got 'no'"),
        (["disjoint"], 1, "the rule set", "disjoint must be True or False, got 1"),
        (["domain"], {}, "the rule set", "domain lacks the field 'lower'"),
        (["domain"], [0, 1], "the rule set", "domain must be an object"),
        (["domain", "lower"], 0, "the rule set", "lower must be a list, got 0"),
        (["domain", "lower"], ["0", 0], "the rule set", "lower must be a number, got '0'"),
        (["domain", "upper"], [-1, 1], "the rule set", "lower <= upper"),
        (["fallback"], "a", "the rule set", "fallback must be an object, got 'a'"),
        (["fallback", "output"], None, "the rule set", "fallback's output must be a str"),
        (["fallback", "policy"], "ask", "the rule set", "uncovered must be one of"),
        (["fallback", "class_counts"], 3, "the rule set", "class_counts must be a list, got 3"),
        (["rules"], {"a": 1}, "the rule set", "rules must be a list"),
        (["rules", 1], "x > 1", "rule 2", "a rule must be an object, got 'x > 1'"),
        (["rules", 0, "then"], GONE, "rule 1", "a rule lacks the field 'then'"),
        (["rules", 0, "then"], None, "rule 1", "output must be a str"),
        (["rules", 0, "then"], [1], "rule 1", "output must be a str"),
        (["rules", 0, "then"], "a", "the rule set", "Rule 1 of a regression has the output 'a'"),
        (
            ["rules", 0, "else"],
            1,
            "rule 1",
            "unknown field 'else'; known: if, then, weight, statistics",
        ),
        (["rules", 0, "if"], {"type": "interval"}, "rule 1", "'if' must be a list"),
        (["rules", 0, "if", 0], "x > 1", "rule 1", "condition 1: a condition must be an object"),
        (
            ["rules", 0, "if", 1, "type"],
            "near",
            "rule 1",
            "condition 2: unknown type of condition 'near'; known: interval, one_of, missing",
        ),
        (["rules", 0, "if", 1, "type"], ["near"], "rule 1", "condition 2: unknown type"),
        (["rules", 0, "if", 0, "feature"], GONE, "rule 1", "condition 1: .* lacks the field 'fea"),
        (["rules", 0, "if", 0, "feature"], 7, "the rule set", "Rule 1 uses feature 7"),
        (["rules", 0, "if", 0, "feature"], -1, "rule 1", "feature must be .* 0 or more, got -1"),
        (["rules", 0, "if", 0, "feature"], 0.0, "rule 1", "feature must be an integer"),
        (["rules", 0, "if", 0, "feature"], True, "rule 1", "feature must be an integer"),
        (["rules", 0, "if", 0, "lower"], "0", "rule 1", "condition 1: lower must be a number"),
        (["rules", 0, "if", 0, "lower"], None, "rule 1", "condition 1: lower must be a number"),
        (["rules", 0, "if", 0, "lower"], 5, "rule 1", "condition 1: No number lies between"),
        (["rules", 0, "if", 0, "closed"], True, "rule 1", "unknown field 'closed'"),
        (["rules", 0, "if", 0, "lower_closed"], "yes", "rule 1", "must be True or False"),
        (["rules", 0, "if", 1, "values"], "abc", "rule 1", "condition 2: values must be a list"),
        (["rules", 0, "if", 1, "values"], [], "rule 1", "at least one value"),
        (["rules", 0, "if", 1, "values"], [[1]], "rule 1", "values must be a str"),
        (["rules", 0, "if", 2, "terms"], [[0]], "rule 1", "condition 3: a term must be a pair"),
        (["rules", 0, "if", 2, "terms"], [0], "rule 1", "condition 3: a term must be a list"),
        (["rules", 0, "if", 2, "terms"], [[0, "1"]], "rule 1", "coefficient must be a number"),
        (["rules", 1, "if", 0, "m"], 2, "rule 2", "condition 1: m must lie between 1 and"),
        (["rules", 1, "if", 0, "m"], "1", "rule 2", "condition 1: m must be an integer"),
        (["rules", 1, "if", 0, "conditions", 0], 3, "rule 2", "condition 1: condition 1: a cond"),
        (["rules", 1, "then", "terms"], GONE, "rule 2", "linear output lacks the field 'terms'"),
        (["rules", 1, "then", "intercept"], "1", "rule 2", "intercept must be a number, got '1'"),
        (["rules", 1, "statistics", "n_rows"], -1, "rule 2", "n_rows must be 0 or more"),
        (["rules", 1, "statistics", "n_rows"], GONE, "rule 2", "statistics lacks the field"),
        (["rules", 1, "statistics", "rows"], 1, "rule 2", "unknown field 'rows'"),
        (["rules", 1, "statistics"], [3], "rule 2", "statistics must be an object"),
    ],
)
def test_from_json_locates_faults(path, value, location, error):
    with pytest.raises(ValueError, match=f"The JSON has a fault in {location}: .*{error}"):
        RuleSet.from_json(changed(path, value))


def test_from_json_rejects_deep_nesting():
    depth = 900
    inner = '{"type": "interval", "feature": 0, "lower": 1}'
    for _ in range(depth):
        inner = f'{{"type": "at_least", "m": 1, "conditions": [{inner}]}}'
    text = changed(["rules", 0, "if"], "HERE").replace('"HERE"', f"[{inner}]")
    with pytest.raises(ValueError, match=r"nested too deeply|nested more than 50|not JSON"):
        RuleSet.from_json(text)


@given(text=st.text(string.printable) | st.text('{}[]",:0123456789.eE+-nulltruefalse '))
def test_from_json_rejects_arbitrary_text(text):
    with pytest.raises(ValueError, match="This"):
        RuleSet.from_json(text)


values = st.recursive(
    st.sampled_from([None, True, False, -1, 0, 1, 2.5, "", "a", math.inf]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


def paths(data, prefix=()):
    yield from ((*prefix,),) if prefix else ()
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from paths(value, (*prefix, key))
        else:
            yield (*prefix, key)


@given(path=st.sampled_from(sorted(paths(GOOD), key=str)), value=values)
def test_from_json_reads_or_rejects_any_change(path, value):
    try:
        ruleset = RuleSet.from_json(changed(path, value))
    except ValueError as error:
        message = str(error)
    else:
        assert RuleSet.from_json(ruleset.to_json()) == ruleset
        return
    assert message.startswith(("The JSON has a fault in", "This", "The rule set has"))


def test_to_conditions_names_unsupported_condition():
    at_least = AtLeast(2, [Interval(0, upper=2), Interval(1, lower=3)])
    ruleset = RuleSet([Rule([at_least], "a")], ["size", "age (years)"], task="classification")
    with pytest.raises(ValueError, match=r"Rule 1 .* of \(size ≤ 2; age \(years\) > 3\)"):
        ruleset.to_conditions()


@pytest.mark.parametrize(
    "text", ["=1+1", "+x", "-", "@sum", "10-20", "3/4", "5 %", "1.000,5", "2024-01-31", "12:30"]
)
def test_to_conditions_quotes_spreadsheet_formulas(text):
    ruleset = RuleSet([Rule([OneOf(0, [text])], text)], [text], task="classification")
    row = ruleset.to_conditions().iloc[0]
    assert row["class"] == row["feature"] == f'"{text}"'
    table = ruleset.to_conditions().to_csv(index=False)
    back = as_ruleset(pd.read_csv(io.StringIO(table), dtype=str, keep_default_na=False))
    assert (back.feature_names, back.classes) == ((text,), (text,))
    assert back[0].conditions == ruleset[0].conditions
