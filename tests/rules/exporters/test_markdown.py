"""Rules as Markdown, parsed by a real Markdown parser."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from skescore.rules import Fallback, Interval, LinearOutput, OneOf, Rule, RuleSet, RuleStatistics

IRIS = RuleSet(
    [
        Rule([Interval(0, upper=2.45)], "setosa", RuleStatistics(50, (50, 0, 0))),
        Rule([Interval(1, upper=1.75)], "versicolor", RuleStatistics(54, (0, 49, 5))),
        Rule([], "virginica", RuleStatistics(46, (0, 1, 45))),
    ],
    ["petal length (cm)", "petal width (cm)"],
    task="classification",
)


class Shown(HTMLParser):
    """Parser that collects the paragraph and cells that a browser shows; other elements fail."""

    def __init__(self):
        super().__init__()
        self.rows, self.paragraphs, self.texts = [], [], []

    def handle_starttag(self, tag, attributes):
        assert tag in {"p", "table", "thead", "tbody", "tr", "th", "td"}, tag
        assert all(name == "style" for name, _ in attributes)
        if tag == "tr":
            self.rows.append([])
        elif tag in {"th", "td", "p"}:
            self.texts = self.rows[-1] if tag != "p" else self.paragraphs
            self.texts.append("")

    def handle_data(self, data):
        if self.texts and (data.strip() or self.texts[-1]):
            self.texts[-1] += data

    def handle_endtag(self, tag):
        if tag in {"th", "td", "p"}:
            self.texts = []


def parse(ruleset):
    parser = Shown()
    parser.feed(
        MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(ruleset.to_markdown())
    )
    parser.close()
    return parser


def test_markdown_writes_table():
    assert IRIS.to_markdown() == (
        "3 rules; the first that holds gives the prediction\n"
        "\n"
        "| Rule | Premise | Conclusion | Seen |\n"
        "| ---: | --- | --- | --- |\n"
        "| 1 | if petal length (cm) ≤ 2.45 | setosa | 50 rows, 100 % of this class |\n"
        "| 2 | else if petal width (cm) ≤ 1.75 | versicolor | 54 rows, 91 % of this class |\n"
        "| 3 | else | virginica | 46 rows, 98 % of this class |\n"
    )


def test_markdown_caption_states_fallback():
    assert parse(IRIS).paragraphs == ["3 rules; the first that holds gives the prediction"]
    abstaining = IRIS[:1].replace(fallback=Fallback("setosa", "abstain"))
    assert parse(abstaining).paragraphs == ["1 rule; otherwise, where no rule holds: no prediction"]
    empty = IRIS[:0].replace(fallback=Fallback("setosa"))
    assert parse(empty).paragraphs == ["0 rules; otherwise, where no rule holds: setosa"]
    assert len(parse(empty).rows) == 1


def test_markdown_shows_weights_of_voting_rules():
    rules = [
        Rule([Interval(0, 1)], "a", RuleStatistics(4, (3, 1)), 0.8),
        Rule([], "b", weight=LinearOutput(1, [(0, -2)])),
    ]
    ruleset = RuleSet(rules, ["x_1"], task="classification", ordered=False, voting="votes")
    table = parse(ruleset)
    assert table.paragraphs == ["2 rules; together: all rules that hold vote with their weights"]
    assert table.rows == [
        ["Rule", "Premise", "Conclusion", "Weight", "Seen"],
        ["1", "if x_1 > 1", "a", "0.8", "4 rows, 75 % of this class"],
        ["2", "always", "b", "1 - 2·x_1", ""],
    ]


SIGNS = st.text("ab 12|\\`*_[]()<>&;:~$#!@^={}\"'/-+.\n\r\t\u2028é", max_size=12)


@given(names=st.lists(SIGNS, min_size=2, max_size=2, unique=True), labels=st.tuples(SIGNS, SIGNS))
@pytest.mark.filterwarnings("error")
def test_markdown_escapes_names_and_labels(names, labels):
    rules = [Rule([Interval(0, upper=1), OneOf(1, labels)], label) for label in labels]
    ruleset = RuleSet(rules, names, task="classification", fallback=Fallback(labels[0]))
    table = parse(ruleset)
    assert len(table.rows) == 1 + 2
    outputs = [rule.output_text(names) for rule in rules]
    caption = "2 rules; the first that holds gives the prediction; otherwise, where no rule holds: "
    assert table.paragraphs == [(caption + outputs[0]).strip()]
    for i, row in enumerate(table.rows[1:]):
        premise = rules[i].premise_text(names)
        assert row == [str(i + 1), f"{'else ' * i}if {premise}", outputs[i], ""]


def test_markdown_escapes_emojis_and_links():
    rule = Rule([Interval(0, 1)], "http://example.org")
    text = RuleSet([rule], [":smile:"], task="classification").to_markdown()
    assert "\\:smile" in text
    assert "http\\://example.org" in text
