"""The cells and types of DMN documents; `test_standards` evaluates them with feelin."""

from xml.etree import ElementTree as ET

from skescore.rules import Fallback, Interval, Linear, OneOf, Rule, RuleSet
from skescore.rules.exporters import to_dmn

_SPACE = "{https://www.omg.org/spec/DMN/20191111/MODEL/}"


def test_dmn_tests_every_condition_on_a_sum():
    total = [(0, 1.0), (1, 1.0)]
    rules = RuleSet(
        [
            Rule([Linear(total, lower=1), Linear(total, upper=5)], "a"),
            Rule([Linear(total, upper=9)], "b"),
        ],
        ["x", "y"],
        task="classification",
        fallback=Fallback("c"),
    )
    root = ET.fromstring(to_dmn(rules))
    inputs = [e.findtext(f".//{_SPACE}text") for e in root.iter(f"{_SPACE}input")]
    cells = [
        [entry.findtext(f"{_SPACE}text") for entry in rule.iter(f"{_SPACE}inputEntry")]
        for rule in root.iter(f"{_SPACE}rule")
    ]
    assert inputs == ["x", "y", "1 * x + 1 * y", "1 * x + 1 * y"]
    assert [row[2:] for row in cells] == [["> 1", "<= 5"], ["<= 9", "-"], ["-", "-"]]


def test_dmn_reads_flags_that_are_compared_with_numbers_as_numbers():
    rules = RuleSet(
        [Rule([OneOf(0, [True])], "a"), Rule([Interval(0, upper=0.5)], "b")],
        ["vip"],
        task="classification",
        fallback=Fallback("c"),
    )
    document = to_dmn(rules)
    assert '<variable name="vip" typeRef="number" />' in document
    assert "<text>1</text>" in document
    flags_only = rules.replace(rules=rules.rules[:1])
    assert '<variable name="vip" typeRef="boolean" />' in to_dmn(flags_only)
