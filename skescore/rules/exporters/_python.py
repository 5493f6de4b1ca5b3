"""Export of rule sets to Python functions without dependencies."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules._conditions import Condition, Interval, Linear, Missing, OneOf, truth_table
from skescore.rules._prediction import distance_units
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


_MAX_NAME = 40


class Variables:
    """Local variables of features: one per feature, or two if it is used as number and label."""

    def __init__(self, feature_names: Sequence[str], reserved: Iterable[str]) -> None:
        self._feature_names = feature_names
        self._taken = {*reserved, *dir(builtins), *keyword.kwlist, *keyword.softkwlist}
        self._names: dict[tuple[int, bool], str] = {}

    def number(self, feature: int) -> str:
        """Return the variable that holds a feature as a float."""
        return self._variable(feature, True)

    def label(self, feature: int) -> str:
        """Return the variable that holds a categorical feature."""
        return self._variable(feature, False)

    def reserve(self, conditions: Iterable[Condition], numbers: Iterable[int]) -> None:
        """Create the variables of all features in conditions or sums, in feature order."""
        pairs, missing_features = {(feature, True) for feature in numbers}, set()
        for condition in flatten_conditions(conditions):
            if isinstance(condition, Missing):
                missing_features.add(condition.feature)
            else:
                pairs |= {(f, not isinstance(condition, OneOf)) for f in condition.features}
        # A missing value can be tested on either variable; a label may be any value.
        pairs |= {(f, False) for f in missing_features if (f, True) not in pairs}
        for feature, as_number in sorted(pairs):
            self._variable(feature, as_number)

    def missing(self, feature: int, *, negated: bool = False) -> str:
        """Write a test whether a value is missing (or known, if negated)."""
        if (feature, True) in self._names:
            name = self.number(feature)
            return f"{name} {'==' if negated else '!='} {name}"
        return f"{self.label(feature)} is {'not ' if negated else ''}None"

    def items(self) -> list[tuple[str, int, bool]]:
        """Return all variables with their features and whether they are numbers."""
        return [(name, feature, as_number) for (feature, as_number), name in self._names.items()]

    def _variable(self, feature: int, as_number: bool) -> str:
        if (feature, as_number) not in self._names:
            name = base = _identifier(self._feature_names[feature], feature)
            count = 2
            while name in self._taken:
                name, count = f"{base}_{count}", count + 1
            self._taken.add(name)
            self._names[feature, as_number] = name
        return self._names[feature, as_number]


def _identifier(name: str, feature: int) -> str:
    """Return a lowercase ASCII name, because Python normalizes some other letters."""
    plain = to_ascii(name).lower()
    text = re.sub(r"[^a-z0-9]+", "_", plain)[:_MAX_NAME].strip("_")
    if not text:
        return f"x{feature}"
    return f"x_{text}" if text[0].isdigit() else text


def literal(value: Any) -> str:
    """Write a label or a key with the quotation marks that Python formatters use."""
    text = repr(value)
    if not isinstance(value, str) or text[0] == '"' or value.count('"') > value.count("'"):
        return text
    plain = text[1:-1].replace("\\'", "'").replace('"', '\\"')
    return f'"{plain}"'


def number(value: float) -> str:
    """Write a number that Python reads exactly."""
    value = float(value)
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def tuple_text(parts: Iterable[str]) -> str:
    """Write a tuple."""
    listed = list(parts)
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"


def summands(
    intercept: float | None, terms: Iterable[tuple[int, float]], names: Variables
) -> list[str]:
    """Return the terms of a linear sum as code; all but the first begin with a sign."""
    parts = [] if intercept is None else [number(intercept)]
    for feature, coefficient in terms:
        size, sign = abs(coefficient), "-" if coefficient < 0 else "+"
        term = names.number(feature)
        term = term if size == 1 else f"{number(size)} * {term}"
        if parts:
            parts.append(f"{sign} {term}")
        else:
            parts.append(f"-{term}" if sign == "-" else term)
    return parts


def affine(intercept: float | None, terms: Iterable[tuple[int, float]], names: Variables) -> str:
    """Write a sum of features, added in the given order."""
    return " ".join(summands(intercept, terms, names))


def condition_text(condition: Condition, names: Variables) -> str:
    """Write a condition as an expression that is True or False, even for missing values."""
    if isinstance(condition, Missing):
        return names.missing(condition.feature, negated=not truth_table(condition).missing)
    if isinstance(condition, Interval):
        name = names.number(condition.feature)
        comparison = _between(name, condition)
        return (
            f"({comparison} or {name} != {name})" if truth_table(condition).missing else comparison
        )
    if isinstance(condition, Linear):
        return _between(affine(None, condition.terms, names), condition)
    if isinstance(condition, OneOf):
        return _one_of(condition, names.label(condition.feature))
    inner = [condition_text(c, names) for c in condition.conditions]
    if condition.m == 1:
        return f"({' or '.join(inner)})"
    if condition.m == len(inner):
        return f"({' and '.join(inner)})"
    return f"{' + '.join(f'({text})' for text in inner)} >= {condition.m}"


def _between(value: str, bounds: Interval | Linear) -> str:
    lower, upper = bounds.lower, bounds.upper
    if math.isinf(lower) and math.isinf(upper):
        return f"{value} == {value}"  # False for NaN, which is between no bounds
    if lower == upper:
        return f"{value} == {number(lower)}"
    above, below = "<=" if bounds.lower_closed else "<", "<=" if bounds.upper_closed else "<"
    if math.isinf(lower):
        return f"{value} {below} {number(upper)}"
    if math.isinf(upper):
        return f"{value} {'>=' if bounds.lower_closed else '>'} {number(lower)}"
    return f"{number(lower)} {above} {value} {below} {number(upper)}"


def _one_of(condition: OneOf, value: str) -> str:
    if len(condition.values) == 1:
        text = f"{value} {'!=' if condition.negated else '=='} {literal(condition.values[0])}"
    else:
        listed = tuple_text(map(literal, condition.values))
        text = f"{value} {'not in' if condition.negated else 'in'} {listed}"
    if condition.negated == truth_table(condition).missing:  # None is not one of the values
        return text
    return (
        f"{value} is not None and {text}" if condition.negated else f"({value} is None or {text})"
    )


_WIDTH = 88
_RESERVED_NAMES = (
    "Any",
    "Fraction",
    "Mapping",
    "Sequence",
    "predictions",
    "box",
    "boxes",
    "by_name",
    "cells",
    "distance",
    "gap",
    "high",
    "i",
    "is_covered",
    "k",
    "label",
    "labels",
    "low",
    "nearest",
    "number",
    "penalties",
    "row",
    "smallest",
    "sums",
    "total",
    "unit",
    "value",
    "values",
    "weight",
    "weights",
    "winner",
)
_NUMBER_HELPER = """\
    def number(value: Any) -> float:
        return float("nan") if value is None else float(value)
"""
_LABEL_HELPER = """\
    def label(value: Any) -> Any:
        value = value.item() if hasattr(value, "item") else value  # NumPy's scalars
        if hasattr(value, "as_integer_ratio") and not isinstance(value, int):
            value = float(value)  # for example, decimals of databases
        return None if value != value else value
"""


def to_python(ruleset: RuleSet, function_name: str) -> str:
    """Write the source of one function; see :meth:`RuleSet.to_python`."""
    if not function_name.isidentifier() or keyword.iskeyword(function_name):
        raise ValueError(
            f"function_name must be a name that Python allows, got {function_name!r}. "
            "Use letters, digits and underscores, but no digit at the start."
        )
    return _Function(ruleset, function_name).source()


class _Function:
    """Writer of the function that predicts by a rule set."""

    def __init__(self, ruleset: RuleSet, name: str) -> None:
        self.ruleset, self.name = ruleset, name
        self.classes = class_labels(ruleset)
        self.rules = rules_in_order(ruleset)
        self.names = Variables(ruleset.feature_names, [*_RESERVED_NAMES, name])
        used_rules = [ruleset.rules[i] for i in self.rules]
        fallback = ruleset.fallback
        self.uses_nearest = (
            fallback is not None
            and fallback.policy == "nearest"
            and len(ruleset) > 0
            and not always_predicts(ruleset)
        )
        self.box_features, self.units = self._box_units() if self.uses_nearest else ([], [])
        numbers = list(self.box_features)
        for rule in used_rules:
            for part in (rule.output, rule.weight):
                if isinstance(part, LinearOutput):
                    numbers += [feature for feature, _ in part.terms]
        self.names.reserve([c for rule in used_rules for c in rule.conditions], numbers)

    def source(self) -> str:
        """Return the source of the function."""
        body = self._predict_by_vote() if self.ruleset.voting else self._predict_by_first_rule()
        parts = [
            "from collections.abc import Mapping, Sequence",
            "from typing import Any",
            "",
            "",
            f"def {self.name}(row: Mapping[str, Any] | Sequence[Any]) -> {self._return_type()}:",
            self._docstring(),
            *self._reading(),
            *body,
        ]
        return "\n".join(parts) + "\n"

    def _return_type(self) -> str:
        if self.ruleset.task == "regression":
            return "float"
        predictions = list(self.classes)
        if self.ruleset.fallback is not None and self.ruleset.fallback.policy == "abstain":
            predictions.append(abstention(self.ruleset))
        return " | ".join(sorted({type(label).__name__ for label in predictions})) or "Any"

    def _docstring(self) -> str:
        ruleset = self.ruleset
        count = f"{len(ruleset)} rule{'' if len(ruleset) == 1 else 's'}"
        lines = [f"Predict one row by {count}.", ""]
        lines.append("The row is a mapping from these feature names to values, or a sequence of")
        lines.append("all values in this order; None and NaN are missing values.")
        lines += ["", *(f"    {i}: {name!r}" for i, name in enumerate(ruleset.feature_names)), ""]
        if ruleset.task == "classification":
            lines += ["The classes are", *(f"    {label!r}" for label in self.classes), ""]
        text = "\n".join(f"    {line}".rstrip() for line in lines)
        # A name must not end the docstring or contain an escape.
        text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        return f'    """{text.strip()}\n    """'

    def _reading(self) -> list[str]:
        """Write statements that read the used values of the row."""
        variables = self.names.items()
        lines = [""] if variables else []
        if any(as_number for _, _, as_number in variables):
            lines.append(_NUMBER_HELPER)
        if not all(as_number for _, _, as_number in variables):
            lines.append(_LABEL_HELPER)
        n_features = self.ruleset.n_features
        count = f"{n_features} value{'' if n_features == 1 else 's'}"
        lines += [
            '    by_name = hasattr(row, "keys")',
            f"    if not by_name and len(row) != {n_features}:",
            f'        raise ValueError(f"row must hold {count}, got {{len(row)}}.")',
        ]
        if variables:
            lines.append("    cells: Any = row  # indexed by name or by position")
        for name, feature, as_number in variables:
            key = literal(self.ruleset.feature_names[feature])
            helper = "number" if as_number else "label"
            lines.append(f"    {name} = {helper}(cells[{key}] if by_name else cells[{feature}])")
        return lines

    def _predict_by_first_rule(self) -> list[str]:
        lines: list[str] = []
        for index in self.rules:
            rule = self.ruleset.rules[index]
            lines.append(self._comment(index))
            lines += self._where(rule, self._statement("return ", rule.output))
            if not rule.conditions:
                return lines
        return lines + self._fallback(1)

    def _comment(self, index: int) -> str:
        rule = self.ruleset.rules[index]
        output = None
        if self.ruleset.classes is not None:
            output = self.ruleset.classes.index(rule.output)
        statistics = rule.statistics_text(output, weighted=False)
        return f"    # Rule {index + 1}{': ' if statistics else ''}{statistics}"

    def _where(self, rule: Rule, statements: Iterable[str]) -> list[str]:
        """Write statements that are executed if a rule holds."""
        conditions = [condition_text(c, self.names) for c in rule.conditions]
        if not conditions:
            return [f"    {statement}" for statement in statements]
        line = f"    if {' and '.join(conditions)}:"
        lines = [line]
        if len(line) > _WIDTH and len(conditions) > 1:
            lines = ["    if (", f"        {conditions[0]}"]
            lines += [*(f"        and {text}" for text in conditions[1:]), "    ):"]
        return [*lines, *(f"        {statement}" for statement in statements)]

    def _statement(self, start: str, value: Any, *, brackets: bool = False) -> list[str]:
        """Write a statement that ends with a prediction; a long sum has one term per line."""
        if not isinstance(value, LinearOutput):
            return [f"{start}{self._constant(value)}"]
        parts = summands(value.intercept, value.terms, self.names)
        text = " ".join(parts)
        # Statements are indented by at most two levels.
        if len(start) + len(text) + 8 <= _WIDTH or len(parts) == 1:
            return [f"{start}({text})" if brackets else f"{start}{text}"]
        return [f"{start}(", *(f"    {part}" for part in parts), ")"]

    def _constant(self, output: Any) -> str:
        if self.ruleset.classes is None:
            return number(output)
        return literal(self.classes[self.ruleset.classes.index(output)])

    def _fallback(self, depth: int) -> list[str]:
        """Write the prediction for uncovered rows."""
        fallback, indent = self.ruleset.fallback, "    " * depth
        if self.uses_nearest:
            return self._nearest()
        if fallback is None:
            return [f'{indent}raise ValueError("No rule holds for this row.")']
        if fallback.policy == "abstain":
            regression = self.ruleset.classes is None
            prediction = number(np.nan) if regression else literal(abstention(self.ruleset))
        else:
            prediction = self._constant(fallback.output)
        return [f"{indent}# No rule holds.", f"{indent}return {prediction}"]

    def _box_units(self) -> tuple[list[int], list[float]]:
        """Return the features in the distance to a box, and the unit of each."""
        ruleset = self.ruleset
        scale, _ = distance_units(ruleset)
        bounded = np.asarray(ruleset.boxes.bounded.any(axis=0))
        used = [j for j, s in enumerate(scale) if bounded[j] and s > 0 and np.isfinite(s)]
        return used, [float(scale[j]) for j in used]

    def _nearest(self) -> list[str]:
        boxes, rules = self.ruleset.boxes, self.ruleset.rules
        lines = [
            "    # No rule holds: predict by the nearest box, in units of the features' ranges.",
            f"    values = {tuple_text(map(self.names.number, self.box_features)) or '()'}",
            "    boxes = (",
        ]
        for i in range(len(rules)):
            sides = (
                tuple_text(number(v) for v in (boxes.lower[i, j], boxes.upper[i, j], unit))
                for j, unit in zip(self.box_features, self.units, strict=True)
            )
            lines.append(f"        {tuple_text(sides)},")
        lines += ["    )"]
        known_checks = [self._checks_of_known_values(rule) for rule in rules]
        if any(known_checks):  # the distance between a known and a missing value is one range
            lines += ["    penalties = ("]
            _, squares = distance_units(self.ruleset)
            times = "" if squares == 1 else f"{number(squares)} * "
            sums = [" + ".join(f"{times}({text})" for text in g) for g in known_checks]
            lines += [f"        {text or 0}," for text in sums]
            lines += ["    )"]
        lines += ["    predictions = ("]
        for rule in rules:
            *before, last = self._statement("", rule.output)
            lines += [f"        {text}" for text in (*before, f"{last},")]
        lines += [
            "    )",
            '    nearest, smallest = 0, float("inf")',
            "    for i, box in enumerate(boxes):",
            f"        distance = 0.0{' + penalties[i]' if any(known_checks) else ''}",
            "        for value, (low, high, unit) in zip(values, box, strict=True):",
            "            gap = 0.0",
            "            if value < low:",
            "                gap = (low - value) / unit",
            "            elif value > high:",
            "                gap = (value - high) / unit",
            "            distance += gap * gap",
            "        if distance < smallest:",
            "            nearest, smallest = i, distance",
            "    if not 0.0 < smallest <= 1e300:  # squares over- or underflow: compute exactly",
            "        from fractions import Fraction",
            "",
            '        nearest, smallest = 0, float("inf")',
            "        for i, box in enumerate(boxes):",
            f"            distance = Fraction({'penalties[i]' if any(known_checks) else 0})",
            "            for value, (low, high, unit) in zip(values, box, strict=True):",
            "                if value < low or value > high:",
            '                    if abs(value) == float("inf"):',
            '                        distance = float("inf")',
            "                        break",
            "                    gap = Fraction(value) - Fraction(low if value < low else high)",
            "                    distance += (gap / Fraction(unit)) ** 2",
            "            if distance < smallest:",
            "                nearest, smallest = i, distance",
            "    return predictions[nearest]",
        ]
        return lines

    def _checks_of_known_values(self, rule: Rule) -> list[str]:
        """Write tests whether the values that a rule requires to be missing are known."""
        return [
            self.names.missing(c.feature, negated=True)
            for c in rule.non_intervals
            if isinstance(c, Missing) and not c.negated
        ]

    def _predict_by_vote(self) -> list[str]:
        votes = self.ruleset.task == "classification"
        mean = self.ruleset.voting == "mean"
        always_predicted = always_predicts(self.ruleset)
        tracks_coverage = not always_predicted and not mean
        lines = [f"    sums = [0.0] * {len(self.classes)}" if votes else "    total = 0.0"]
        lines += ["    weights = 0.0"] if mean else []
        lines += ["    is_covered = False"] if tracks_coverage else []
        for index in self.rules:
            rule = self.ruleset.rules[index]
            statements = ["is_covered = True"] if tracks_coverage and rule.conditions else []
            statements += self._votes(index) if votes else self._add_number(rule, mean)
            lines += [self._comment(index), *self._where(rule, statements)]
        if mean:
            lines += ["    if weights > 0.0:", "        return total / weights"]
            return lines + self._fallback(1)
        if tracks_coverage:
            lines += ["    if not is_covered:", *self._fallback(2)]
        if not votes:
            return [*lines, "    return total"]
        lines.append(f"    labels = {tuple_text(map(literal, self.classes))}")
        if any(isinstance(rule.weight, LinearOutput) for rule in self.ruleset.rules):
            # Infinite values may cancel to NaN, which counts as the largest value.
            key = "lambda k: (sums[k] != sums[k], sums[k])"
            return [
                *lines,
                f"    winner = max(range({len(self.classes)}), key={key})",
                "    return labels[winner]",
            ]
        return [*lines, "    return labels[sums.index(max(sums))]"]

    def _votes(self, index: int) -> list[str]:
        rule = self.ruleset.rules[index]
        statements: list[str] = []
        by_row = isinstance(rule.weight, LinearOutput)
        if isinstance(rule.weight, LinearOutput):
            statements += self._statement("weight = ", rule.weight)
            statements.append("weight = weight if weight == weight else 0.0  # missing values")
        for k, share in class_votes(self.ruleset, index):
            weight = "weight" if by_row else number(float(rule.weight) * share)  # type: ignore[arg-type]
            times = (
                f" * {number(share)}" if by_row and self.ruleset.voting == "probabilities" else ""
            )
            statements.append(f"sums[{k}] += {weight}{times}  # {self.classes[k]!r}")
        return statements

    def _add_number(self, rule: Rule, mean: bool) -> list[str]:
        assert not isinstance(rule.weight, LinearOutput)  # checked by the rule set
        if isinstance(rule.output, LinearOutput):
            times = "" if rule.weight == 1 else f"{number(rule.weight)} * "
            statements = self._statement(f"total += {times}", rule.output, brackets=True)
        else:
            statements = [f"total += {number(rule.weight * float(rule.output))}"]
        return [*statements, f"weights += {number(rule.weight)}"] if mean else statements
