"""Export of rules to sentences in plain English."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skescore.rules._conditions import Condition, Interval, Linear, Missing, OneOf, truth_table
from skescore.rules._rule import LinearOutput, Rule, RuleStatistics
from skescore.rules._text import (
    exact_number,
    feature_name,
    format_label,
    format_number,
    may_need_fallback,
    output_number,
    percent_text,
)

if TYPE_CHECKING:
    from skescore.rules._domain import Domain
    from skescore.rules._ruleset import RuleSet

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
#: Words that connect parts of sentences; values that contain them are quoted.
_CONNECTING_WORDS = re.compile(r"\b(and|or|nor|missing|known)\b")
_VOTING = {
    "votes": "All rules that hold vote together: each gives its weight to its class, and the class "
    "with the largest sum is the prediction.",
    "probabilities": "All rules that hold vote together: each divides its weight among the classes "
    "in proportion to its rows, and the class with the largest sum is the prediction.",
    "logistic": "All rules that hold vote together: each adds its weight to the log odds of its "
    "class, and the class with the largest sum is the prediction.",
    "mean": "All rules that hold predict together: the prediction is the weighted mean of their "
    "outputs.",
    "sum": "All rules that hold predict together: the prediction is the sum of their outputs, each "
    "times its weight.",
}
#: Text after the share of a rule's class, by the counted labels: for one row and for several.
_SHARE_WORDS = {
    "black_box": ("which agrees with the model", "agree with the model"),
    "data": ("right in the data", "right in the data"),
    None: ("of this class", "of this class"),
}
#: Text before the standard deviation of the labels, by the counted labels.
_SPREAD_WORDS = {
    "black_box": "predictions of the model with the standard deviation",
    "data": "target with the standard deviation",
    None: "standard deviation",
}


def to_sentences(ruleset: RuleSet) -> str:
    """Write a rule set as English sentences; see :meth:`RuleSet.to_sentences`."""
    return "\n".join(_lines(ruleset))


def _lines(ruleset: RuleSet) -> Iterator[str]:
    if ruleset.voting:
        yield _VOTING[ruleset.voting]
    elif not ruleset.ordered and not ruleset.disjoint and len(ruleset) > 1:
        yield (
            "Where several rules hold, the purest of them predicts; of equally pure rules, "
            "the one with the most rows, and then the first."
        )
    width = len(str(len(ruleset)))
    for position in range(len(ruleset)):
        yield f"{position + 1:>{width}}. {_sentence(ruleset, position)}"
    if not len(ruleset):
        yield "There are no rules."
    last = last_sentence(ruleset)
    if last:
        yield last


def last_sentence(ruleset: RuleSet) -> str:
    """Describe the fallback; return "" if there is none or a rule holds for every row."""
    fallback = ruleset.fallback
    if fallback is None or not may_need_fallback(ruleset):
        return ""
    where = "Where no rule holds"
    if ruleset.voting == "mean":
        where += " or the weights add up to 0 or less"
    if fallback.policy == "nearest" and len(ruleset):
        return f"{where}, the rule whose box is nearest predicts."
    if fallback.policy == "abstain":
        return f"{where}, there is no prediction."
    return f"{where}, the prediction is {_output(ruleset, fallback.output)}."


def _sentence(ruleset: RuleSet, position: int) -> str:
    rule = ruleset.rules[position]
    names = ruleset.feature_names
    output = _output(ruleset, rule.output)
    premise = _premise(rule.conditions, names)
    if ruleset.voting:
        verb = "predicts" if ruleset.classes is None else "votes for"
        conclusion = f"{verb} {output} with weight {_function(rule.weight, names)}."
        text = f"If {premise}, then it {conclusion}" if premise else f"It always {conclusion}"
    else:
        conclusion, later = f"the prediction is {output}.", ruleset.ordered and position > 0
        if premise:
            text = f"{'Otherwise, if' if later else 'If'} {premise}, then {conclusion}"
        else:
            text = f"{'Otherwise' if later else 'In every case'}, {conclusion}"
    statistics = _statistics(rule, ruleset.output_index(rule))
    return f"{text} ({statistics})" if statistics else text


def _output(ruleset: RuleSet, output: object) -> str:
    if ruleset.task == "regression":
        assert isinstance(output, LinearOutput | int | float)
        return _function(output, ruleset.feature_names, ruleset.domain)
    return _label(output)


def _label(value: object) -> str:
    """Return a value; it is quoted if it contains words that connect parts of sentences."""
    text = format_label(value)
    plain = text == str(value) and not _CONNECTING_WORDS.search(text)
    return text if plain else json.dumps(str(value), ensure_ascii=False)


def _statistics(rule: Rule, index: int | None) -> str:
    statistics = rule.statistics
    if statistics is None:
        return ""
    purity, correctness = rule.purity(index), rule.correctness(index)
    if purity is None and correctness is None:
        return f"{statistics.rows_text()}{_distances(statistics, rule.reference)}"
    is_single = statistics.n_rows == 1
    parts = [statistics.rows_text()]
    if purity is not None:
        points = statistics.n_points
        of_points = statistics.points_text(rule.reference)
        words = _SHARE_WORDS[rule.reference][0 if is_single and points is None else 1]
        parts.append(_share(purity, words, of_points, is_single=is_single and points is None))
    if correctness is not None:
        parts.append(_share(correctness, _SHARE_WORDS["data"][1], is_single=is_single))
    return ", ".join(parts)


def _distances(statistics: RuleStatistics, reference: str | None) -> str:
    """Describe the errors, or the standard deviation of the labels, of a rule for regression."""
    errors = [
        f"by {format_number(error)} from the {name}"
        for name, error in (("model", statistics.model_error), ("data", statistics.target_error))
        if error is not None
    ]
    if errors:
        return f", on average off {' and '.join(errors)}"
    if statistics.standard_deviation is None:
        return ""
    return f", {_SPREAD_WORDS[reference]} {format_number(statistics.standard_deviation)}"


def _share(share: float, words: str, of_points: str = "", *, is_single: bool) -> str:
    """Write the share of rows, such as ``all agree with the model``."""
    if share == 1 and is_single:
        return words
    if share in (0, 1):
        return f"{'all' if share else 'none'}{of_points} {words}"
    text = percent_text(share).replace("> ", "more than ").replace("< ", "less than ")
    return f"{text}{of_points} {words}"


def _premise(conditions: Sequence[Condition], names: Sequence[str] | None) -> str:
    parts = _parts(conditions, names)
    if len(parts) < 2:
        return "".join(parts)
    # A comma separates conditions from "above 1 and at most 2", which has no parentheses.
    pairs = zip(conditions, parts, strict=True)
    several = any(" and " in part for condition, part in pairs if not _contains_or(condition))
    comma = "," if len(parts) > 2 or several else ""
    return f"{', '.join(parts[:-1])}{comma} and {parts[-1]}"


def _parts(conditions: Sequence[Condition], names: Sequence[str] | None) -> list[str]:
    """Return all conditions; if there are several, those with "or" are in parentheses."""
    texts = [_condition(condition, names) for condition in conditions]
    if len(texts) < 2:
        return texts
    pairs = zip(conditions, texts, strict=True)
    return [f"({text})" if _contains_or(condition) else text for condition, text in pairs]


def _contains_or(condition: Condition) -> bool:
    if isinstance(condition, OneOf) and not condition.negated and len(condition.values) > 1:
        return True
    return isinstance(condition, Interval | OneOf) and truth_table(condition).missing


def _condition(condition: Condition, names: Sequence[str] | None) -> str:
    if isinstance(condition, Interval):
        name = feature_name(names, condition.feature)
        text = f"{name} is {_bounds(condition)}"
        return _or_missing(text, " and " in text) if truth_table(condition).missing else text
    if isinstance(condition, Missing):
        name = feature_name(names, condition.feature)
        return f"{name} is {'known' if condition.negated else 'missing'}"
    if isinstance(condition, Linear):
        sizes = [exact_number(abs(coefficient)) for _, coefficient in condition.terms]
        text = _terms(condition.terms, sizes, names)
        return f"{text} is {_bounds(condition)}"
    if isinstance(condition, OneOf):
        return _one_of(condition, feature_name(names, condition.feature))
    inner = "; ".join(_condition(c, names) for c in condition.conditions)
    count = _NUMBERS[condition.m] if condition.m < len(_NUMBERS) else str(condition.m)
    hold = "holds" if condition.m == 1 else "hold"
    return f"at least {count} of the following {hold}: ({inner})"


def premise_words(rule: Rule, ruleset: RuleSet) -> list[str]:
    """Write the conditions of a rule in words, such as ``age is above 30``."""
    return _parts(rule.conditions, ruleset.feature_names)


def _bounds(condition: Interval | Linear) -> str:
    lower, upper = condition.lower, condition.upper
    if math.isinf(lower) and math.isinf(upper):
        return "any number"
    if lower == upper:
        return f"exactly {exact_number(lower)}"
    parts = []
    if lower > -math.inf:
        parts.append(f"{'at least' if condition.lower_closed else 'above'} {exact_number(lower)}")
    if upper < math.inf:
        parts.append(f"{'at most' if condition.upper_closed else 'below'} {exact_number(upper)}")
    return " and ".join(parts)


def _one_of(condition: OneOf, name: str) -> str:
    values = [_label(value) for value in condition.values]
    accepts_missing = truth_table(condition).missing
    if accepts_missing and not condition.negated:
        values.append("missing")
    if len(values) == 1:
        text = f"{name} is {'not ' if condition.negated else ''}{values[0]}"
    else:
        listed, last = ", ".join(values[:-1]), values[-1]
        if not condition.negated:
            return f"{name} is {listed} or {last}"
        text = f"{name} is neither {listed} nor {last}"
    return _or_missing(text, True) if accepts_missing else text


def _or_missing(text: str, apart: bool) -> str:
    """Append "or missing", after a comma if it might otherwise be read as part of a bound."""
    return f"{text}{',' if apart else ''} or missing"


def _function(
    value: LinearOutput | float, names: Sequence[str] | None, domain: Domain | None = None
) -> str:
    """Return a number or an affine function in words."""
    if not isinstance(value, LinearOutput):
        return output_number(value)
    constant, sizes = value.number_texts(domain)
    first = "" if value.terms and value.intercept == 0 else constant
    return _terms(value.terms, sizes, names, first)


def _terms(
    terms: Sequence[tuple[int, float]],
    sizes: Sequence[str],
    names: Sequence[str] | None,
    text: str = "",
) -> str:
    """Write a sum, given the texts of the absolute values of its coefficients."""
    for (feature, coefficient), size in zip(terms, sizes, strict=True):
        name = feature_name(names, feature)
        term = name if size == "1" else f"{size} times {name}"
        if text:
            text += f" {'minus' if coefficient < 0 else 'plus'} {term}"
        else:
            text = f"minus {term}" if coefficient < 0 else term
    return text
