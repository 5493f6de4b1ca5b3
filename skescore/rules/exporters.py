"""Rules for people: text, tables and HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules.conditions import AtLeast, Condition, Interval
from skescore.rules.formatting import (
    NumberFormat,
    distinct_numbers,
    format_label,
    format_number,
    number_format,
    plain_number,
)
from skescore.rules.rule import LinearOutput

if TYPE_CHECKING:
    import pandas as pd

    from skescore.rules.ruleset import RuleSet


def number_for(ruleset: RuleSet) -> NumberFormat:
    """Make the formatter of a rule set's bounds; see :attr:`RuleSet.number`."""
    write: NumberFormat = plain_number
    if ruleset.domain is not None:
        write = number_format(ruleset.domain.lower, ruleset.domain.upper)
    boxes = ruleset.boxes
    bounds: dict[int, set[float]] = {}
    for j in np.flatnonzero(boxes.bounded.any(axis=0)).tolist():
        both = np.concatenate([boxes.lower[:, j], boxes.upper[:, j]])
        bounds[j] = set(both[np.isfinite(both)].tolist())
    if not ruleset.boxes_only:
        for interval in _inner_intervals(c for rule in ruleset.rules for c in rule.others):
            known = bounds.setdefault(interval.feature, set())
            known.update(b for b in (interval.lower, interval.upper) if math.isfinite(b))
    return distinct_numbers(write, bounds)


def _inner_intervals(conditions: Iterable[Condition]) -> Iterator[Interval]:
    """The intervals that other conditions are made of."""
    for condition in conditions:
        if isinstance(condition, Interval):
            yield condition
        elif isinstance(condition, AtLeast):
            yield from _inner_intervals(condition.conditions)


def line(ruleset: RuleSet, position: int) -> str:
    """Write one rule of a rule set."""
    rule = ruleset.rules[position]
    return rule.to_text(
        ruleset.feature_names,
        ruleset.number,
        numeric=ruleset.task == "regression",
        output_index=None if ruleset.classes is None else ruleset.classes.index(rule.output),
        first=not ruleset.ordered or position == 0,
    )


def _fallback_line(ruleset: RuleSet) -> str | None:
    fallback = ruleset.fallback
    if fallback is None or any(not rule.conditions for rule in ruleset.rules):
        return None  # there is none, or a rule that always holds leaves it nothing to answer
    if fallback.policy == "nearest" and len(ruleset):
        answer = "the rule whose box is nearest"
    elif fallback.policy == "abstain":
        answer = "no answer"
    elif ruleset.task == "regression":
        answer = format_number(fallback.output)
    else:
        answer = format_label(fallback.output)
    return f"otherwise, where no rule holds: {answer}"


def to_text(ruleset: RuleSet, limit: int | None = None) -> str:
    """Write a rule set, one numbered rule per line; only the first `limit` rules if given."""
    shown = len(ruleset) if limit is None else min(limit, len(ruleset))
    width = len(str(shown))
    numbered = [f"{i + 1:>{width}}. {line(ruleset, i)}" for i in range(shown)]
    if shown < len(ruleset):
        numbered.append(f"... and {len(ruleset) - shown} more; to_text() gives all")
    fallback = _fallback_line(ruleset)
    return "\n".join([*(numbered or ["(no rules)"]), *([fallback] if fallback else [])])


def to_frame(ruleset: RuleSet) -> pd.DataFrame:
    """Give a rule set as a table, one row per rule."""
    import pandas as pd

    number, numeric = ruleset.number, ruleset.task == "regression"
    records = []
    for rule in ruleset.rules:
        output = rule.output
        record: dict[str, Any] = {
            "premise": rule.premise_text(ruleset.feature_names, number) or "(always)",
            "output": rule.output_text(ruleset.feature_names, numeric=numeric)
            if isinstance(output, LinearOutput)
            else output,
            "conditions": rule.n_conditions,
            "rows": None if rule.statistics is None else rule.statistics.n_rows,
        }
        if ruleset.classes is not None:
            record["purity"] = rule.purity(ruleset.classes.index(output))
        else:
            record["mean"] = None if rule.statistics is None else rule.statistics.mean
            record["spread"] = None if rule.statistics is None else rule.statistics.spread
        records.append(record)
    columns = ["premise", "output", "conditions", "rows"]
    columns += ["purity"] if ruleset.classes is not None else ["mean", "spread"]
    index = pd.RangeIndex(1, len(records) + 1, name="rule")
    return pd.DataFrame.from_records(records, columns=columns).set_axis(index)


def to_html(ruleset: RuleSet, limit: int | None = None) -> str:
    """Write a rule set as an HTML table, for notebooks; only the first `limit` rules if given."""
    number, numeric = ruleset.number, ruleset.task == "regression"
    rows = []
    for position, rule in enumerate(ruleset.rules[:limit]):
        premise = rule.premise_text(ruleset.feature_names, number)
        word = "if" if not ruleset.ordered or position == 0 else "else if"
        if not premise:
            word = "else" if position and ruleset.ordered else "always"
        index = None if ruleset.classes is None else ruleset.classes.index(rule.output)
        cells = (
            str(position + 1),
            f"{word} {premise}".strip(),
            rule.output_text(ruleset.feature_names, numeric=numeric),
            rule.statistics_text(index),
        )
        rows.append("<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + "</tr>")
    if len(rows) < len(ruleset):
        more = f"... and {len(ruleset) - len(rows)} more; to_frame() gives all"
        rows.append(f'<tr><td colspan="4">{more}</td></tr>')
    head = "".join(f'<th scope="col">{c}</th>' for c in ("", "Premise", "Conclusion", "Seen"))
    fallback = _fallback_line(ruleset)
    caption = f"{len(ruleset)} rule{'' if len(ruleset) == 1 else 's'}"
    if ruleset.ordered and len(ruleset) > 1:
        caption += ", the first that holds answers"
    if fallback:
        caption += f"; {fallback}"
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
