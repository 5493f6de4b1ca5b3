"""Types of the features and predictions of a rule set, for typed languages."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skescore.rules._conditions import Interval, Linear, OneOf
from skescore.rules._rule import LinearOutput
from skescore.rules.exporters._common import (
    abstention,
    always_predicts,
    class_labels,
    flatten_conditions,
    rules_in_order,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_MAX_INTEGER = 2**63 - 1


@dataclass
class Field:
    """Feature that rules use.

    Parameters
    ----------
    name : str
        Name of the feature.
    is_text : bool
        Whether its values are texts instead of numbers.
    is_number : bool
        Whether its values are numbers or flags; False if the rules and the domain do not show it.
    is_computed : bool
        Whether intervals or sums use it as a number.
    values : list
        Values that conditions list, in the order of the rules.
    bounds : list of float
        Finite bounds of intervals.
    """

    name: str
    is_text: bool = False
    is_number: bool = False
    is_computed: bool = False
    values: list[Any] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)

    @property
    def is_flag(self) -> bool:
        """True if rules compare the feature only with true and false."""
        has_flags = bool(self.values) and all(isinstance(value, bool) for value in self.values)
        return has_flags and not self.is_computed

    @property
    def may_be_flag(self) -> bool:
        """True if conditions compare the feature only with numbers from 0 to 1, or with flags."""
        compared = (*self.values, *self.bounds)
        return not self.is_text and bool(compared) and all(0 <= value <= 1 for value in compared)

    def float_of(self, value: Any) -> float:
        """Convert a listed value to a float; raise a ValueError if no float equals it."""
        try:
            number = float(value)
        except OverflowError:
            number = float("nan")
        if number != value:
            raise ValueError(
                f"Rules compare {self.name!r} with {value!r}, which no 64-bit float equals. Turn "
                "the feature into a text."
            )
        return number


def used_fields(ruleset: RuleSet, language: str) -> dict[int, Field]:
    """Return the features that rules use, by index; the first feature if they use none."""
    rules = [ruleset.rules[i] for i in rules_in_order(ruleset)]
    names, fields = ruleset.feature_names, {}
    outputs = (part for rule in rules for part in (rule.output, rule.weight))
    numeric = {f for part in outputs if isinstance(part, LinearOutput) for f, _ in part.terms}
    conditions = list(flatten_conditions(c for rule in rules for c in rule.conditions))
    features = numeric | {f for condition in conditions for f in condition.features}
    for feature in sorted(features) or [0]:
        fields[feature] = Field(names[feature])
    # Rules that never predict also determine the types of features.
    for condition in flatten_conditions(c for rule in ruleset.rules for c in rule.conditions):
        if isinstance(condition, Interval | Linear):
            numeric.update(condition.features)
            if isinstance(condition, Interval) and condition.feature in fields:
                ends = (condition.lower, condition.upper)
                fields[condition.feature].bounds += filter(math.isfinite, ends)
        elif isinstance(condition, OneOf) and condition.feature in fields:
            fields[condition.feature].values += condition.values
    for feature, entry in fields.items():
        entry.is_computed = feature in numeric
        entry.is_text = _holds_texts(ruleset, feature, entry, feature in numeric, language)
        domain = ruleset.domain
        in_numeric_domain = domain is not None and domain.values_of(feature) is None
        is_compared = feature in numeric or bool(entry.values)
        entry.is_number = not entry.is_text and (is_compared or in_numeric_domain)
    return fields


def _holds_texts(
    ruleset: RuleSet, feature: int, entry: Field, is_numeric: bool, language: str
) -> bool:
    values: Iterable[Any] = entry.values
    if not entry.values and not is_numeric and ruleset.domain is not None:
        values = ruleset.domain.values_of(feature) or ()
    kinds = {isinstance(value, str) for value in values} | ({False} if is_numeric else set())
    if len(kinds) > 1:
        raise ValueError(
            f"Rules compare {entry.name!r} with numbers and with texts, but a feature has one type "
            f"in {language}. Convert all its values to texts, or all to numbers."
        )
    return kinds == {True}


def predicted_labels(ruleset: RuleSet) -> list[Any]:
    """Return all labels that rules for classification may predict."""
    labels = class_labels(ruleset)
    if ruleset.fallback is not None and ruleset.fallback.policy == "abstain":
        labels.append(abstention(ruleset))
    return labels


def prediction_type(ruleset: RuleSet, language: str) -> str:
    """Return ``"text"``, ``"integer"``, ``"number"`` or ``"flag"``: the type of predictions."""
    if ruleset.classes is None:
        return "number"
    names = {str: "text", int: "integer", float: "number", bool: "flag"}
    labels = predicted_labels(ruleset)
    kinds = {names[type(label)] for label in labels}
    if len(kinds) != 1:
        raise ValueError(
            f"The predictions {labels!r} are of different types, but {language} has one type per "
            "output. Use labels of one type."
        )
    if kinds == {"integer"} and any(abs(label) > _MAX_INTEGER for label in labels):
        raise ValueError(
            f"The classes {labels!r} exceed 2**63 - 1 in absolute value. Make the classes texts."
        )
    return kinds.pop()


def check_fallback(ruleset: RuleSet, language: str, *, needs_one: bool) -> None:
    """Raise a ValueError for a fallback that a language cannot express."""
    fallback = ruleset.fallback
    is_needed = ruleset.voting == "mean" or not always_predicts(ruleset)
    if not is_needed:
        return
    if fallback is None and needs_one:
        raise ValueError(
            f"{language} needs a prediction for every row, but there is none if no rule holds. "
            "Set a fallback: ruleset.replace(fallback=Fallback(output))."
        )
    if fallback is not None and fallback.policy == "nearest" and len(ruleset):
        raise ValueError(
            f"{language} does not compute the nearest box, but the fallback has "
            "policy='nearest'. Choose another one: ruleset.replace(fallback=Fallback("
            f"{fallback.output!r})) predicts {fallback.output!r} if no rule holds."
        )


def check_one_rule_per_row(ruleset: RuleSet, language: str) -> None:
    """Raise a ValueError for rules that vote, in languages in which one rule predicts."""
    if ruleset.voting is not None and len(ruleset):
        raise ValueError(
            f"In {language}, one rule predicts each row, but voting={ruleset.voting!r} lets all "
            "rules that hold predict. Write 'onnx', 'sql', 'python', 'java' or 'javascript'."
        )


def check_xml_text(text: str, language: str = "XML") -> str:
    """Return a text; raise a ValueError if a format based on XML cannot contain it."""
    is_allowed = all(
        character in "\t\n\r"
        or (character >= " " and not "\ud800" <= character <= "\udfff" and character < "\ufffe")
        or character > "\uffff"
        for character in text
    )
    if not is_allowed:
        raise ValueError(
            f"The text {text!r} contains a control character or half a surrogate pair, which "
            f"{language} does not allow. Rename it without this character."
        )
    return text
