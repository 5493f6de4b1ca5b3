"""Texts of numbers, labels, bounds, sums and rule sets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._names import VOTING_TEXTS

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: Function that formats a value, given the index of the feature and the value.
NumberFormat = Callable[[int, float], str]

_SIGNIFICANT_DIGITS = 4
#: Largest number of digits with which predicted numbers are written exactly.
_MAX_OUTPUT_DIGITS = 9
#: Largest number of decimals without an exponent.
_MAX_DECIMALS = 12
#: Range of the exact numbers that are written without an exponent.
_MIN_POSITIONAL, _MIN_WITH_EXPONENT = 1e-9, 1e16


def format_number(value: float, decimals: int | None = None) -> str:
    """Write a number in short form, without trailing zeros."""
    value = float(value)
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "NaN")
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    digits = _SIGNIFICANT_DIGITS
    if decimals is None:
        decimals = max(0, digits - 1 - magnitude)
    else:
        digits = min(17, max(digits, decimals + magnitude + 1))
    if decimals > _MAX_DECIMALS or magnitude >= 16:
        return f"{value:.{digits}g}"
    text = f"{value:.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def output_number(value: float) -> str:
    """Write a predicted number: exactly if it has few digits, otherwise with four digits."""
    text = exact_number(value)
    digits = text.replace(".", "").strip("-0")
    return (
        text if digits.isdecimal() and len(digits) <= _MAX_OUTPUT_DIGITS else format_number(value)
    )


def percent_text(share: float) -> str:
    """Write a share as a percentage, which is 100 or 0 only if it is exact."""
    text = format_number(100 * share, 1 if 0.99 < share < 1 or 0 < share < 0.01 else 0)
    if text == "100" and share < 1:
        text = "> 99.9"
    if text == "0" and share > 0:
        text = "< 0.1"
    return f"{text} %"


def exact_number(value: float) -> str:
    """Write a number with the fewest digits that identify the float, without trailing zeros."""
    value = float(value)
    if not math.isfinite(value) or value == 0:
        return format_number(value)
    if _MIN_POSITIONAL <= abs(value) < _MIN_WITH_EXPONENT:
        return np.format_float_positional(value, trim="-")
    return repr(value)


def plain_number(feature: int, value: float) -> str:
    """Write a bound exactly, so that the text holds for the same rows as the rule."""
    return exact_number(value)


def decimals_for_range(low: float, high: float) -> int | None:
    """Return the decimals that resolve 1/1000 of a range; None if it is empty or infinite."""
    span = float(high) - float(low)  # Python floats overflow without a warning
    if not (math.isfinite(span) and span > 0):
        return None
    return _SIGNIFICANT_DIGITS - 1 - math.floor(math.log10(span))


def format_label(label: Any) -> str:
    """Write a class label or category; it is quoted if it could be misread."""
    return _quote_ambiguous(str(label), ",;{}")


def feature_name(names: Sequence[str] | None, feature: int) -> str:
    """Return the name of a feature, quoted if ambiguous; without names, ``x0``, ``x1``, ..."""
    return f"x{feature}" if names is None else _quote_ambiguous(str(names[feature]), ",;{}<>=≤≥≠")


def _quote_ambiguous(text: str, signs: str) -> str:
    """Quote a text that is empty, has outer blanks, contains reserved signs or breaks the line."""
    plain = text and text == text.strip() and text.isprintable()
    plain = plain and not text.endswith(or_missing(""))
    if plain and not set(text) & set(signs):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    # JSON does not escape line separators that are not ASCII.
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in quoted)


def bounds_text(
    middle: str,
    lower: float,
    upper: float,
    lower_closed: bool,
    upper_closed: bool,
    write: Callable[[float], str],
) -> str:
    """Write bounds of an expression, such as ``1 < x0 ≤ 2``."""
    above = "≥" if lower_closed else ">"
    below = "≤" if upper_closed else "<"
    if math.isinf(lower) and math.isinf(upper):
        return f"{middle} is anything"
    if math.isinf(lower):
        return f"{middle} {below} {write(upper)}"
    if math.isinf(upper):
        return f"{middle} {above} {write(lower)}"
    if lower == upper:
        return f"{middle} = {write(lower)}"
    return f"{write(lower)} {'≤' if lower_closed else '<'} {middle} {below} {write(upper)}"


def or_missing(text: str) -> str:
    """Append "or missing" to the text of a condition."""
    return f"{text} or missing"


def linear_text(
    terms: Sequence[tuple[int, float]], sizes: Sequence[str], names: Sequence[str] | None = None
) -> str:
    """Write a weighted sum such as ``0.5·x0 - 2·x1``; `sizes` are texts of the coefficients."""
    parts: list[str] = []
    for (feature, coefficient), size in zip(terms, sizes, strict=True):
        sign, name = "-" if coefficient < 0 else "+", feature_name(names, feature)
        term = name if size == "1" else f"{size}·{name}"
        parts.append(f"{sign} {term}" if parts else (f"-{term}" if sign == "-" else term))
    return " ".join(parts)


# --- rule sets ------------------------------------------------------------------------------------


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


def may_need_fallback(ruleset: RuleSet) -> bool:
    """Return whether rows may get the fallback; False if some rule always predicts."""
    always = any(not rule.conditions for rule in ruleset.rules)
    if ruleset.voting == "mean":
        positive = all(isinstance(rule.weight, float) and rule.weight > 0 for rule in ruleset.rules)
        return not (always and positive)
    return not always


def closing_lines(ruleset: RuleSet) -> list[str]:
    """Write the lines below the rules: the voting and the fallback, if any."""
    lines = [f"together: {VOTING_TEXTS[ruleset.voting]}"] if ruleset.voting else []
    fallback = ruleset.fallback
    if fallback is None or not may_need_fallback(ruleset):
        return lines
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
    """Write a rule set, one numbered rule per line; see :meth:`RuleSet.to_text`."""
    n_shown = len(ruleset) if limit is None else min(limit, len(ruleset))
    width = len(str(n_shown))
    numbered = [f"{i + 1:>{width}}. {line(ruleset, i)}" for i in range(n_shown)]
    if n_shown < len(ruleset):
        numbered.append(f"... and {len(ruleset) - n_shown} more; to_text() gives all")
    return "\n".join([*(numbered or ["(no rules)"]), *closing_lines(ruleset)])


def table_head(ruleset: RuleSet) -> list[str]:
    """Return the column headings of a table of rules, except the rule number."""
    weight = ["Weight"] if ruleset.voting else []
    return ["Premise", "Conclusion", *weight, "Seen"]


def table_row(ruleset: RuleSet, position: int) -> list[str]:
    """Return the cells of one rule in a table, except the rule number."""
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
    """Write the caption of a table of rules: their number and how they predict."""
    text = f"{len(ruleset)} rule{'' if len(ruleset) == 1 else 's'}"
    if ruleset.ordered and len(ruleset) > 1:
        text += "; the first that holds gives the prediction"
    return "; ".join([text, *closing_lines(ruleset)])
