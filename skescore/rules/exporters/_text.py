"""Rules for people: text, tables and HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skescore._names import VOTING_TEXTS
from skescore.rules._rule import LinearOutput
from skescore.rules._text import format_label, output_number

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


def line(ruleset: RuleSet, position: int) -> str:
    """Write one rule of a rule set."""
    rule = ruleset.rules[position]
    return rule.to_text(
        ruleset.feature_names,
        domain=ruleset.domain,
        numeric=ruleset.task == "regression",
        output_index=ruleset.output_index(rule),
        first=not ruleset.ordered or position == 0,
        weighted=ruleset.voting is not None,
    )


def can_be_lost(ruleset: RuleSet) -> bool:
    """Whether the fallback may have to predict, as far as a glance at the rules tells."""
    always = any(not rule.conditions for rule in ruleset.rules)
    if ruleset.voting == "mean":
        positive = all(
            not isinstance(rule.weight, LinearOutput) and rule.weight > 0 for rule in ruleset.rules
        )
        return not (always and positive)
    return not always


def closing_lines(ruleset: RuleSet) -> list[str]:
    """How rules predict together, and what is predicted without them; both only where needed."""
    lines = [f"together: {VOTING_TEXTS[ruleset.voting]}"] if ruleset.voting else []
    fallback = ruleset.fallback
    if fallback is None or not can_be_lost(ruleset):
        return lines  # there is none, or a rule that always holds leaves it nothing to predict
    if fallback.policy == "nearest" and len(ruleset):
        prediction = "the rule whose box is nearest"
    elif fallback.policy == "abstain":
        prediction = "no prediction"
    elif ruleset.task == "regression":
        prediction = output_number(fallback.output)
    else:
        prediction = format_label(fallback.output)
    where = "no rule holds"
    if ruleset.voting == "mean":
        where += " or the weights add up to 0 or less"
    return [*lines, f"otherwise, where {where}: {prediction}"]


def to_text(ruleset: RuleSet, limit: int | None = None) -> str:
    """Write a rule set, one numbered rule per line; only the first `limit` rules if given."""
    shown = len(ruleset) if limit is None else min(limit, len(ruleset))
    width = len(str(shown))
    numbered = [f"{i + 1:>{width}}. {line(ruleset, i)}" for i in range(shown)]
    if shown < len(ruleset):
        numbered.append(f"... and {len(ruleset) - shown} more; to_text() gives all")
    return "\n".join([*(numbered or ["(no rules)"]), *closing_lines(ruleset)])


def table_head(ruleset: RuleSet) -> list[str]:
    """The headings of a table of rules, without that of their numbers."""
    weight = ["Weight"] if ruleset.voting else []
    return ["Premise", "Conclusion", *weight, "Seen"]


def table_row(ruleset: RuleSet, position: int) -> list[str]:
    """What a table says of one rule, without its number."""
    rule = ruleset.rules[position]
    premise = rule.premise_text(ruleset.feature_names)
    word = "if" if not ruleset.ordered or position == 0 else "else if"
    if not premise:
        word = "else" if position and ruleset.ordered else "always"
    return [
        f"{word} {premise}".strip(),
        rule.output_text(
            ruleset.feature_names, numeric=ruleset.task == "regression", domain=ruleset.domain
        ),
        *([rule.weight_text(ruleset.feature_names)] if ruleset.voting else []),
        rule.statistics_text(ruleset.output_index(rule), weighted=False),
    ]


def caption(ruleset: RuleSet) -> str:
    """What stands with a table of rules: how many there are, and how they predict."""
    text = f"{len(ruleset)} rule{'' if len(ruleset) == 1 else 's'}"
    if ruleset.ordered and len(ruleset) > 1:
        text += ", the first that holds predicts"
    return "; ".join([text, *closing_lines(ruleset)])
