"""The rules one by one, as ``skescore score --measures`` shows them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skescore.cli._output import Printer, number, plural
from skescore.metrics._rule_quality import MEASURES

#: Characters of a table of measures; it goes on below where there are more of them.
_WIDTH = 96
#: What is counted in rows.
_COUNTS = ("p", "n", "P", "N", "unique_rows", "voting_conflicts", "negative_voting_conflicts")

#: Figures of the rule set with what they mean; those of other tasks are left out.
_FIGURES = {
    "conditions_per_rule": "features that a rule names",
    "literals_per_rule": "comparisons that it makes",
    "avg_rule_coverage": "share of all rows that a rule holds for",
    "avg_rule_precision": "share of its rows that are right",
    "avg_rule_quality": "c2: precision beyond chance, and share of the right rows found",
    "fraction_significant": "share of tested rules that succeed beyond chance",
    "fraction_fdr_significant": "the same, corrected for the number of rules (false discoveries)",
    "fraction_fwer_significant": "the same, corrected for any false one among them",
    "rules_per_example": "rules that hold for a row",
    "voting_conflicts": "rows that rules of different classes hold for",
    "negative_voting_conflicts": "those of them that are answered wrongly",
}
_NAMES = {
    "avg_rule_coverage": "coverage",
    "avg_rule_precision": "precision",
    "avg_rule_quality": "quality",
    "fraction_significant": "significant",
    "fraction_fdr_significant": "significant (FDR)",
    "fraction_fwer_significant": "significant (FWER)",
    "rules_per_example": "rules per row",
    "voting_conflicts": "conflicts",
    "negative_voting_conflicts": "wrong conflicts",
}


def print_rules(printer: Printer, result: Mapping[str, Any]) -> None:
    """Write every rule by itself: its text, its counts, its measures; then the averages.

    Rules are often longer than a line, so that they are listed first, and tables go by number.

    Parameters
    ----------
    printer : Printer
        Where to.
    result : mapping
        With ``rules_by_themselves``, ``measures``, ``answered_rows`` and ``characteristics``.
    """
    rules, measures = result["rules_by_themselves"], result["measures"]
    printer.heading(f"rules by themselves: {plural(len(rules), 'rule')}")
    texts = [f"{rule['number']}. {rule['text']}".replace("\n", "\\n") for rule in rules]
    printer.verbatim("\n".join(texts))
    printer.heading("rows of each rule")
    _table(printer, rules, {
        "right": "p", "wrong": "n", "all right": "P", "all wrong": "N", "overlap": "overlap",
        "alone": "unique_rows", "p-value": "p_value", "FDR": "fdr_p_value", "FWER": "fwer_p_value",
        "significant": "significant",
    })  # fmt: skip
    right = "of its class" if result["data"]["task"] == "classification" else (
        "whose number is within a standard deviation of what it says"
    )  # fmt: skip
    counted = "all rows that it holds for, also where another rule answers"
    if result["answered_rows"]:
        counted = "the rows that it answers"
    printer.line(
        f"(Every rule counts by itself, with {counted}. Right rows are those {right}. Overlap is "
        "the share of its rows that other rules hold for as well, alone the number of the others. "
        "Significant: corrected for false discoveries (FDR), the p-value is at most 0.05; FWER is "
        "that of any false one.)"
    )
    for position, names in enumerate(_parts(rules, measures)):
        printer.heading("measures" if position == 0 else "measures, continued")
        _table(printer, rules, {name: name for name in names})
    losses = [name for name in measures if not MEASURES[name].greater_is_better]
    but = f", but for {', '.join(losses)}" if losses else ""
    printer.line(f"(Greater is better{but}; - where a measure is not defined.)")
    printer.heading("the rule set: means over rules, and how they meet")
    if result["answered_rows"]:
        printer.line("(Here all rows that rules hold for count.)")
    figures = result["characteristics"]
    rows = [
        [_NAMES.get(name, name.replace("_", " ")), _cell(name, figures[name]), meaning]
        for name, meaning in _FIGURES.items()
        if name in figures
    ]
    printer.table(["figure", "value", "meaning"], rows, left=("figure", "meaning"))


def _cell(name: str, value: Any) -> str:
    """A number for a table; counts as whole numbers where they are."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in _COUNTS and math.isfinite(value):
        return f"{value:g}" if value % 1 else f"{value:.0f}"
    return number(value)


def _table(
    printer: Printer, rules: Sequence[Mapping[str, Any]], columns: Mapping[str, str]
) -> None:
    rows = [
        [str(rule["number"]), *(_cell(name, rule[name]) for name in columns.values())]
        for rule in rules
    ]
    printer.table(["rule", *columns], rows)


def _parts(rules: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> Iterator[list[str]]:
    """As many measures at a time as fit beside each other, at least one."""
    part: list[str] = []
    start = room = _WIDTH - max(4, len(str(len(rules))))
    for name in measures:
        width = 2 + max(len(name), *(len(_cell(name, rule[name])) for rule in rules))
        if part and width > room:
            yield part
            part, room = [], start
        part.append(name)
        room -= width
    yield part
