"""Export of rule sets to DMN decision tables with expressions in FEEL."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from skescore.rules._conditions import (
    AtLeast,
    Condition,
    Interval,
    Linear,
    Missing,
    OneOf,
    truth_table,
)
from skescore.rules._rule import LinearOutput
from skescore.rules.exporters._common import (
    abstention,
    always_predicts,
    class_labels,
    rules_in_order,
    to_ascii,
)
from skescore.rules.exporters.standards._fields import (
    check_fallback,
    check_one_rule_per_row,
    check_xml_text,
    prediction_type,
    used_fields,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_NAMESPACE = "https://www.omg.org/spec/DMN/20191111/MODEL/"
_TYPES = {"text": "string", "integer": "number", "number": "number", "flag": "boolean"}
_RESERVED = set(
    re.findall(
        r"\w+",
        """
and between context date day days else every external false for function hour hours if in instance
item list month months not null number of or prediction return satisfies some string table then
time true year years duration
""",
    )
)
_ANY = "-"


def feel_number(value: float) -> str:
    """Write a number as a decimal without an exponent, which FEEL does not support."""
    if not math.isfinite(value):
        raise ValueError(f"FEEL has no number {value!r}. Give the rules finite numbers.")
    text = f"{Decimal(repr(float(value))):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def feel_text(text: str) -> str:
    """Write a text as a FEEL literal."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return f'"{"".join(escapes.get(c, c) for c in check_xml_text(text))}"'


def _feel_label(value: Any) -> str:
    if isinstance(value, str):
        return feel_text(value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else feel_number(value)


class _DecisionTable:
    """Writer of the DMN document."""

    def __init__(self, ruleset: RuleSet, name: str) -> None:
        check_one_rule_per_row(ruleset, "a decision table")
        check_fallback(ruleset, "DMN", needs_one=False)
        prediction_type(ruleset, "DMN")
        self.ruleset, self.name = ruleset, check_xml_text(name)
        self.fields = used_fields(ruleset, "DMN")
        self.classes = class_labels(ruleset)
        self.variables: dict[int, str] = {}
        for feature, entry in self.fields.items():
            self.variables[feature] = self._variable(check_xml_text(entry.name), feature)
        #: Expression, type and label of each column, by feature or sum and repetition, or by
        #: expression.
        self.inputs: dict[Any, tuple[str, str, str]] = {}

    def _variable(self, name: str, feature: int) -> str:
        base = re.sub(r"\W+", "_", to_ascii(name), flags=re.ASCII).strip("_").lower()
        base = base or f"x{feature}"
        if base in _RESERVED or not base[0].isalpha():
            base = f"x_{base}"
        variable, count = base, 2
        while variable in self.variables.values():
            variable, count = f"{base}_{count}", count + 1
        return variable

    def build(self) -> str:
        """Return the document."""
        root = ET.Element(
            "definitions",
            {
                "xmlns": _NAMESPACE,
                "id": "definitions",
                "name": self.name,
                "namespace": "urn:skescore:rules",
            },
        )
        for feature, entry in self.fields.items():
            attributes = {"id": f"input_data_{feature}", "name": self.variables[feature]}
            data = ET.SubElement(root, "inputData", attributes | {"label": entry.name})
            variable = {"name": self.variables[feature], "typeRef": self._type(feature)}
            ET.SubElement(data, "variable", variable)
        decision = ET.SubElement(root, "decision", {"id": "decision", "name": "prediction"})
        kind = _TYPES[prediction_type(self.ruleset, "DMN")]
        ET.SubElement(decision, "variable", {"name": "prediction", "typeRef": kind})
        for feature in self.fields:
            requirement = ET.SubElement(decision, "informationRequirement")
            ET.SubElement(requirement, "requiredInput", {"href": f"#input_data_{feature}"})
        decision.append(self._table(kind))
        ET.indent(root)
        text = ET.tostring(root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'

    def _type(self, feature: int) -> str:
        entry = self.fields[feature]
        return "string" if entry.is_text else "boolean" if entry.is_flag else "number"

    def _table(self, kind: str) -> ET.Element:
        for feature, entry in self.fields.items():
            expression = self.variables[feature]
            self.inputs[feature, 0] = (expression, self._type(feature), entry.name)
        rules = []
        for index in rules_in_order(self.ruleset):
            rule = self.ruleset.rules[index]
            output = self._output(rule.output)
            rules.append((f"Rule {index + 1}", self._cells(rule.conditions), output))
        fallback = None if always_predicts(self.ruleset) else self._fallback()
        if fallback is not None:
            rules.append(("Where no rule holds", {}, fallback))
        table = ET.Element("decisionTable", {"id": "table", "hitPolicy": "FIRST"})
        for number, (expression, type_name, label) in enumerate(self.inputs.values()):
            column = ET.SubElement(table, "input", {"id": f"input_{number}", "label": label})
            attributes = {"id": f"input_expression_{number}", "typeRef": type_name}
            _text(ET.SubElement(column, "inputExpression", attributes), expression)
        ET.SubElement(table, "output", {"id": "output", "name": "prediction", "typeRef": kind})
        for number, (description, cells, output) in enumerate(rules):
            row = ET.SubElement(table, "rule", {"id": f"rule_{number}"})
            ET.SubElement(row, "description").text = description
            for position, key in enumerate(self.inputs):
                attributes = {"id": f"cell_{number}_{position}"}
                _text(ET.SubElement(row, "inputEntry", attributes), cells.get(key, _ANY))
            _text(ET.SubElement(row, "outputEntry", {"id": f"output_{number}"}), output)
        return table

    def _cells(self, conditions: Sequence[Condition]) -> dict[Any, str]:
        """Write the tests of a rule by column; further tests of the same value get a new column."""
        cells: dict[Any, str] = {}
        for condition in conditions:
            key: Any
            if isinstance(condition, AtLeast):
                key = self.expression(condition)
                label = condition.to_text(self.ruleset.feature_names)
                self.inputs.setdefault(key, (key, "boolean", label))
                cells[key] = "true"
                continue
            if isinstance(condition, Linear):
                value: Any = self.linear(None, condition.terms)
                self.inputs.setdefault((value, 0), (value, "number", value))
                test = _within(condition)
            else:
                value, test = condition.feature, self.unary_test(condition)
            count = 0
            while (value, count) in cells:
                count += 1
            key = (value, count)
            self.inputs.setdefault(key, self.inputs[value, 0])
            cells[key] = test
        return cells

    # --- tests and expressions --------------------------------------------------------------------

    def unary_test(self, condition: Interval | OneOf | Missing) -> str:
        """Write the test of a cell; a missing value is null."""
        accepts = truth_table(condition).missing
        if isinstance(condition, Missing):
            return "null" if accepts else "not(null)"
        if isinstance(condition, Interval):
            test = _within(condition)
            return f"null, {test}" if accepts else test
        values = [self._category(condition.feature, value) for value in condition.values]
        if condition.negated != accepts:  # in the other case, null is not among the values
            values.insert(0, "null")
        text = ", ".join(values)
        return f"not({text})" if condition.negated else text

    def expression(self, condition: Condition) -> str:
        """Write a condition as an expression: true if it holds, otherwise false or null."""
        if isinstance(condition, AtLeast):
            parts = [self.expression(part) for part in condition.conditions]
            counted = " + ".join(f"(if {part} then 1 else 0)" for part in parts)
            return f"({counted}) >= {condition.m}"
        if isinstance(condition, Linear):
            return _comparison(f"({self.linear(None, condition.terms)})", condition)
        name, accepts = self.variables[condition.feature], truth_table(condition).missing
        if isinstance(condition, Missing):
            return f"{name} {'=' if accepts else '!='} null"
        if isinstance(condition, Interval):
            text = _comparison(name, condition)
        else:
            values = [self._category(condition.feature, value) for value in condition.values]
            sign, word = ("!=", " and ") if condition.negated else ("=", " or ")
            text = f"({word.join(f'{name} {sign} {value}' for value in values)})"
        return f"({name} = null or {text})" if accepts else f"({name} != null and {text})"

    def linear(self, intercept: float | None, terms: Sequence[tuple[int, float]]) -> str:
        """Write a sum of features."""
        text = "" if intercept is None else feel_number(intercept)
        for feature, coefficient in terms:
            term = f"{feel_number(abs(coefficient))} * {self.variables[feature]}"
            sign = "-" if coefficient < 0 else "+"
            text = f"{text} {sign} {term}" if text else f"{'-' if sign == '-' else ''}{term}"
        return text

    def _category(self, feature: int, value: Any) -> str:
        entry = self.fields[feature]
        if entry.is_text or entry.is_flag:
            return _feel_label(value)
        return feel_number(entry.float_of(value))

    # --- predictions ------------------------------------------------------------------------------

    def _output(self, output: Any) -> str:
        if isinstance(output, LinearOutput):
            return self.linear(output.intercept, output.terms)
        if self.ruleset.classes is None:
            return feel_number(float(output))
        return _feel_label(self.classes[self.ruleset.classes.index(output)])

    def _fallback(self) -> str | None:
        fallback = self.ruleset.fallback
        if fallback is None:
            return None
        if fallback.policy != "abstain":
            return self._output(fallback.output)
        return None if self.ruleset.classes is None else _feel_label(abstention(self.ruleset))


def _text(parent: ET.Element, text: str) -> None:
    ET.SubElement(parent, "text").text = text


def _within(bounds: Interval | Linear) -> str:
    """Write bounds as the test of a cell."""
    low, high = bounds.lower, bounds.upper
    if math.isinf(low) and math.isinf(high):
        return "not(null)"
    if low == high:
        return feel_number(low)
    if math.isinf(low):
        return f"{'<=' if bounds.upper_closed else '<'} {feel_number(high)}"
    if math.isinf(high):
        return f"{'>=' if bounds.lower_closed else '>'} {feel_number(low)}"
    left, right = "[" if bounds.lower_closed else "(", "]" if bounds.upper_closed else ")"
    return f"{left}{feel_number(low)}..{feel_number(high)}{right}"


def _comparison(value: str, bounds: Interval | Linear) -> str:
    """Write bounds as a comparison with an expression."""
    low, high = bounds.lower, bounds.upper
    if math.isinf(low) and math.isinf(high):
        return f"{value} != null"
    if low == high:
        return f"{value} = {feel_number(low)}"
    parts = []
    if math.isfinite(low):
        parts.append(f"{value} {'>=' if bounds.lower_closed else '>'} {feel_number(low)}")
    if math.isfinite(high):
        parts.append(f"{value} {'<=' if bounds.upper_closed else '<'} {feel_number(high)}")
    return f"({' and '.join(parts)})"


def to_dmn(ruleset: RuleSet, name: str = "rules") -> str:
    """Write a rule set as a DMN 1.3 decision table.

    Use it to deploy rules to a decision engine such as Camunda or Drools. Analysts see the rules as
    a table with one row per rule and one column per feature.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, without voting.
    name : str, default="rules"
        Name of the document.

    Returns
    -------
    str
        The document. The table has the hit policy FIRST. Inputs have ASCII names
        (``petal_length_cm``) and are labeled with the names of the features; a missing value is
        null. M-of-N and oblique conditions are columns with an expression.

    Raises
    ------
    ValueError
        If rules vote, if the fallback is the nearest rule, if a feature is compared with numbers
        and texts, or if XML or FEEL cannot contain a value.

    Notes
    -----
    The prediction is null for uncovered rows without a fallback, or if rules for regression
    abstain. Many engines compute with decimals, so sums of features may differ from those of
    `predict` in the last digit. FEEL has no infinite numbers.
    Pass true and false as 1 and 0 in features that rules compare with numbers.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> from skescore.rules.exporters import to_dmn
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, 1, 2.5)], "setosa")],
    ...     ["petal length (cm)"], task="classification", fallback=Fallback("versicolor"),
    ... )
    >>> document = to_dmn(rules)
    >>> start = document.index('        <inputEntry id="cell_0_0"')
    >>> print(document[start:document.index("      </rule>")].rstrip())
            <inputEntry id="cell_0_0">
              <text>(1..2.5]</text>
            </inputEntry>
            <outputEntry id="output_0">
              <text>"setosa"</text>
            </outputEntry>
    """
    return _DecisionTable(ruleset, name).build()
