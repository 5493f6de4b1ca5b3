"""Common parts of programs in JavaScript and Java: variables, conditions and predictions."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from skescore.rules._conditions import Condition, Interval, Linear, Missing, OneOf, truth_table
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules.exporters._common import (
    abstention,
    always_predicts,
    class_labels,
    class_votes,
    flatten_conditions,
    rules_in_order,
    to_ascii,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_MAX_NAME_LENGTH = 40
#: Longest condition on one line.
_WIDTH = 88


def camel_case(name: str) -> str:
    """Return a name of ASCII letters and digits such as ``petalLengthCm``; it may be empty."""
    words = re.findall(r"[A-Za-z0-9]+", to_ascii(name))
    if not words:
        return ""
    first, *others = words
    first = first.lower() if first.isupper() else first[0].lower() + first[1:]
    name = (first + "".join(word[0].upper() + word[1:] for word in others))[:_MAX_NAME_LENGTH]
    return f"x{name}" if name[0].isdigit() else name


class BraceProgram(ABC):
    """Writer of a rule set as a program; subclasses implement the syntax of a language.

    A feature has one variable, or two if rules use it as a number and as a label.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    used_names : iterable of str
        Names that variables must not have.
    """

    #: Name of the language in messages.
    language: ClassVar[str]
    #: Operators that compare numbers or labels.
    equal: ClassVar[str]
    unequal: ClassVar[str]
    #: Function that returns whether a number is NaN.
    is_nan: ClassVar[str]

    def __init__(self, ruleset: RuleSet, used_names: Iterable[str]) -> None:
        self.ruleset = ruleset
        self.rule_order = rules_in_order(ruleset)
        self.classes = class_labels(ruleset)
        fallback = ruleset.fallback
        if (
            fallback is not None
            and fallback.policy == "nearest"
            and len(ruleset)
            and not always_predicts(ruleset)
        ):
            raise ValueError(
                f"{self.language} code does not compute the nearest box, but the fallback has "
                "policy='nearest'. Choose another one: ruleset.replace(fallback=Fallback("
                f"{fallback.output!r})) predicts {fallback.output!r} if no rule holds."
            )
        self._used_names = set(used_names)
        self._variables: dict[tuple[int, bool], str] = {}
        self._name_variables()

    # --- variables --------------------------------------------------------------------------------

    def _name_variables(self) -> None:
        """Create the variables of all features that rules use, in feature order."""
        rules = [self.ruleset.rules[i] for i in self.rule_order]
        parts = (part for rule in rules for part in (rule.output, rule.weight))
        functions = (part for part in parts if isinstance(part, LinearOutput))
        pairs = {(feature, True) for function in functions for feature, _ in function.terms}
        missing_features = set()
        for condition in flatten_conditions(c for rule in rules for c in rule.conditions):
            if isinstance(condition, Missing):
                missing_features.add(condition.feature)
            else:
                pairs |= {(f, not isinstance(condition, OneOf)) for f in condition.features}
        # A label may have any type, so it is used if only missing values are tested.
        pairs |= {(f, False) for f in missing_features if (f, True) not in pairs}
        for feature, is_number in sorted(pairs):
            base = camel_case(self.ruleset.feature_names[feature]) or f"x{feature}"
            name, count = base, 2
            while name in self._used_names:
                name, count = f"{base}{count}", count + 1
            self._used_names.add(name)
            self._variables[feature, is_number] = name

    def variables(self) -> list[tuple[str, int, bool]]:
        """Return all variables with their features and whether they hold numbers."""
        return [(name, feature, flag) for (feature, flag), name in self._variables.items()]

    # --- literals ---------------------------------------------------------------------------------

    @abstractmethod
    def number(self, value: float) -> str:
        """Write a floating-point number without loss."""

    @abstractmethod
    def label(self, value: Any) -> str:
        """Write a class label that the program returns."""

    @abstractmethod
    def is_one_of(self, name: str, values: tuple[Any, ...], *, negated: bool) -> str:
        """Write a test whether a label is one of the values, or none if negated; null is none."""

    @abstractmethod
    def count(self, conditions: list[str]) -> str:
        """Write the number of conditions that hold."""

    # --- expressions ------------------------------------------------------------------------------

    def condition(self, condition: Condition) -> str:
        """Write a condition as an expression that can be joined with ``&&``."""
        if isinstance(condition, Missing):
            return self._is_missing(condition.feature, negated=not truth_table(condition).missing)
        if isinstance(condition, Interval):
            name = self._variables[condition.feature, True]
            comparison = self._within(name, condition)
            accepts_missing = truth_table(condition).missing
            return f"({comparison} || {self.is_nan}({name}))" if accepts_missing else comparison
        if isinstance(condition, Linear):
            return self._within(self.linear(None, condition.terms), condition)
        if isinstance(condition, OneOf):
            return self._one_of(condition)
        parts = [self.condition(part) for part in condition.conditions]
        if condition.m == 1:
            # Compilers warn if conjunctions and disjunctions are mixed without parentheses.
            return f"({' || '.join(f'({p})' if '&&' in p else p for p in parts)})"
        if condition.m == len(parts):
            return f"({' && '.join(parts)})"
        return f"{self.count(parts)} >= {condition.m}"

    def premise(self, rule: Rule) -> list[str]:
        """Write the conditions of a rule."""
        return [self.condition(condition) for condition in rule.conditions]

    def _is_missing(self, feature: int, *, negated: bool) -> str:
        if (feature, True) in self._variables:
            return f"{'!' if negated else ''}{self.is_nan}({self._variables[feature, True]})"
        return f"{self._variables[feature, False]} {self.unequal if negated else self.equal} null"

    def _within(self, value: str, bounds: Interval | Linear) -> str:
        lower, upper = bounds.lower, bounds.upper
        if math.isinf(lower) and math.isinf(upper):
            return f"!{self.is_nan}({value})"
        if lower == upper:
            return f"{value} {self.equal} {self.number(lower)}"
        above = f"{value} {'>=' if bounds.lower_closed else '>'} {self.number(lower)}"
        below = f"{value} {'<=' if bounds.upper_closed else '<'} {self.number(upper)}"
        if math.isinf(lower):
            return below
        return above if math.isinf(upper) else f"{above} && {below}"

    def _one_of(self, condition: OneOf) -> str:
        name, negated = self._variables[condition.feature, False], condition.negated
        text = self.is_one_of(name, condition.values, negated=negated)
        if negated == truth_table(condition).missing:
            return text
        if negated:
            return f"{name} {self.unequal} null && {text}"
        return f"({name} {self.equal} null || {text})"

    def linear(self, intercept: float | None, terms: Iterable[tuple[int, float]]) -> str:
        """Write a sum of features, added in the given order."""
        parts = [] if intercept is None else [self.number(intercept)]
        for feature, coefficient in terms:
            name, sign = self._variables[feature, True], "-" if coefficient < 0 else "+"
            size = abs(coefficient)
            term = name if size == 1 else f"{self.number(size)} * {name}"
            if parts:
                parts.append(f"{sign} {term}")
            else:
                parts.append(f"-{term}" if sign == "-" else term)
        return " ".join(parts)

    # --- predictions ------------------------------------------------------------------------------

    def output(self, output: Any) -> str:
        """Write the output of a rule or of the fallback."""
        if isinstance(output, LinearOutput):
            return self.linear(output.intercept, output.terms)
        if self.ruleset.classes is None:
            return self.number(float(output))
        return self.label(self.classes[self.ruleset.classes.index(output)])

    def fallback(self) -> str | None:
        """Write the prediction for uncovered rows; None if there is none."""
        fallback = self.ruleset.fallback
        if fallback is None:
            return None
        if fallback.policy != "abstain":
            return self.output(fallback.output)
        if self.ruleset.classes is None:
            return self.number(math.nan)
        return self.label(abstention(self.ruleset))

    def votes(self, index: int) -> list[str]:
        """Write the statements that add the votes of a rule to ``sums``."""
        rule, statements = self.ruleset.rules[index], []
        if isinstance(rule.weight, LinearOutput):
            weight = self.linear(rule.weight.intercept, rule.weight.terms)
            statements.append(f"weight = {weight};")
        for k, share in class_votes(self.ruleset, index):
            if not isinstance(rule.weight, LinearOutput):
                text = self.number(float(rule.weight) * share)
            else:  # a weight that depends on a missing value counts as 0
                text = f"({self.is_nan}(weight) ? {self.number(0.0)} : weight)"
                if self.ruleset.voting == "probabilities":
                    text += f" * {self.number(share)}"
            statements.append(f"sums[{k}] += {text};")
        return statements

    def summands(self, index: int) -> list[str]:
        """Write the statements that add the output of a rule to ``total``."""
        rule = self.ruleset.rules[index]
        assert not isinstance(rule.weight, LinearOutput)  # RuleSet rejects it in regression
        if isinstance(rule.output, LinearOutput):
            factor = "" if rule.weight == 1 else f"{self.number(rule.weight)} * "
            statements = [f"total += {factor}({self.output(rule.output)});"]
        else:
            statements = [f"total += {self.number(rule.weight * float(rule.output))};"]
        if self.ruleset.voting == "mean":
            statements.append(f"weights += {self.number(rule.weight)};")
        return statements

    @property
    def needs_cover(self) -> bool:
        """True if the program must store whether any voting rule holds."""
        return self.ruleset.voting != "mean" and not always_predicts(self.ruleset)

    @property
    def has_linear_weights(self) -> bool:
        """True if the weight of a vote depends on the row."""
        return any(isinstance(rule.weight, LinearOutput) for rule in self.ruleset.rules)

    def contribution_statements(self, index: int) -> list[str]:
        """Write the statements that add the contribution of a rule that holds."""
        is_vote = self.ruleset.task == "classification"
        statements = ["covered = true;"] if self.needs_cover else []
        return statements + (self.votes(index) if is_vote else self.summands(index))

    def comment(self, index: int) -> str:
        """Write the number of a rule and its statistics."""
        rule = self.ruleset.rules[index]
        output = None
        if self.ruleset.classes is not None:
            output = self.ruleset.classes.index(rule.output)
        statistics = rule.statistics_text(output, weighted=False)
        return f"Rule {index + 1}{': ' if statistics else ''}{statistics}"

    def title(self) -> str:
        """Describe the program in one line."""
        n_rules = len(self.ruleset)
        text = f"{n_rules} rule{'' if n_rules == 1 else 's'} for {self.ruleset.task}"
        return f"{text}; {'all that hold' if self.ruleset.voting else 'the first that holds'}"


def conjunction(conditions: list[str], indent: int, start: str, end: str) -> list[str]:
    """Write a statement around conditions; a long statement has one condition per line."""
    line = f"{' ' * indent}{start}{' && '.join(conditions) or 'true'}{end}"
    if len(line) <= _WIDTH or len(conditions) < 2:
        return [line]
    first, *others = conditions
    deeper = " " * (indent + 4)
    lines = [f"{' ' * indent}{start}{first}", *(f"{deeper}&& {text}" for text in others)]
    lines[-1] += end
    return lines
