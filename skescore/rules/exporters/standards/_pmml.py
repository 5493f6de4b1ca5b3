"""Export of rule sets to PMML, as a tree whose root has one child per rule."""

from __future__ import annotations

import itertools
import math
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
from skescore.rules._text import exact_number
from skescore.rules.exporters._common import abstention, class_labels, rules_in_order
from skescore.rules.exporters.standards._fields import (
    check_fallback,
    check_one_rule_per_row,
    check_xml_text,
    predicted_labels,
    prediction_type,
    used_fields,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

_NAMESPACE = "http://www.dmg.org/PMML-4_4"
_DATA_TYPES = {"text": "string", "integer": "integer", "number": "double", "flag": "boolean"}
#: Largest integer that engines read, and largest integer up to which floats are exact.
_MAX_INTEGER, _MAX_EXACT_FLOAT = 2**31 - 1, 2**53
#: Largest number of choices of m conditions, whose disjunction expresses an M-of-N condition.
_MAX_CHOICES = 500


class _Pmml:
    """Writer of the PMML document."""

    def __init__(self, ruleset: RuleSet, model_name: str) -> None:
        check_one_rule_per_row(ruleset, "PMML")
        check_fallback(ruleset, "PMML", needs_one=False)
        self.ruleset, self.name = ruleset, check_xml_text(model_name)
        self.fields = used_fields(ruleset, "PMML")
        self.kind = self._prediction_type()
        self.classes = class_labels(ruleset)
        self.sums: dict[tuple[tuple[int, float], ...], str] = {}
        names = {check_xml_text(entry.name) for entry in self.fields.values()}
        self.target = "prediction"
        while self.target in names:
            self.target += "_"
        self.names = names | {self.target}

    def _prediction_type(self) -> str:
        kind = prediction_type(self.ruleset, "PMML")
        largest = max(map(abs, predicted_labels(self.ruleset))) if kind == "integer" else 0
        if largest > _MAX_EXACT_FLOAT:
            raise ValueError(
                f"The class {largest} is beyond 2**53, up to which PMML's numbers are exact. Make "
                "the classes texts."
            )
        return "number" if largest > _MAX_INTEGER else kind

    def build(self) -> str:
        """Return the document."""
        root = ET.Element("PMML", {"xmlns": _NAMESPACE, "version": "4.4"})
        header = ET.SubElement(root, "Header", {"description": f"{len(self.ruleset)} rules"})
        ET.SubElement(header, "Application", {"name": "skescore"})
        self._dictionary(root)
        is_regression = self.ruleset.task == "regression"
        model = ET.SubElement(
            root,
            "TreeModel",
            {
                "modelName": self.name,
                "functionName": "regression" if is_regression else "classification",
                "missingValueStrategy": "none",
                "noTrueChildStrategy": "returnLastPrediction"
                if self._fallback() is not None
                else "returnNullPrediction",
                "splitCharacteristic": "multiSplit",
            },
        )
        self._schema(model)
        tree = self._tree()
        if self.sums:
            self._transformations(model)
        model.append(tree)
        ET.indent(root)
        text = ET.tostring(root, encoding="unicode", short_empty_elements=True)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'

    def _dictionary(self, root: ET.Element) -> None:
        dictionary = ET.SubElement(root, "DataDictionary")
        for entry in self.fields.values():
            kind = "text" if entry.is_text else "flag" if entry.is_flag else "number"
            ET.SubElement(
                dictionary,
                "DataField",
                {
                    "name": entry.name,
                    "optype": "continuous" if kind == "number" else "categorical",
                    "dataType": _DATA_TYPES[kind],
                },
            )
        is_regression = self.ruleset.task == "regression"
        target = ET.SubElement(
            dictionary,
            "DataField",
            {
                "name": self.target,
                "optype": "continuous" if is_regression else "categorical",
                "dataType": _DATA_TYPES[self.kind],
            },
        )
        for label in [] if is_regression else predicted_labels(self.ruleset):
            ET.SubElement(target, "Value", {"value": self._label(label)})

    def _schema(self, model: ET.Element) -> None:
        schema = ET.SubElement(model, "MiningSchema")
        for entry in self.fields.values():
            # Values that no rule names are also valid.
            attributes = {"name": entry.name, "invalidValueTreatment": "asIs"}
            ET.SubElement(schema, "MiningField", attributes)
        ET.SubElement(schema, "MiningField", {"name": self.target, "usageType": "target"})
        self._output_fields(model)

    def _output_fields(self, model: ET.Element) -> None:
        """Declare the prediction and the number of the rule; some engines return only these."""
        output = ET.SubElement(model, "Output")
        is_regression = self.ruleset.task == "regression"
        fields = (
            ("predicted_value", "predictedValue", _DATA_TYPES[self.kind], is_regression),
            ("rule", "entityId", "string", False),
        )
        for name, feature, data_type, is_continuous in fields:
            attributes = {
                "name": self._new_name(name),
                "optype": "continuous" if is_continuous else "categorical",
                "dataType": data_type,
                "feature": feature,
            }
            ET.SubElement(output, "OutputField", attributes)

    def _new_name(self, name: str) -> str:
        """Return a name that differs from all fields."""
        while name in self.names:
            name += "_"
        self.names.add(name)
        return name

    def _tree(self) -> ET.Element:
        attributes = {"id": "otherwise"}
        if self._fallback() is not None:
            attributes["score"] = str(self._fallback())
        root = ET.Element("Node", attributes)
        ET.SubElement(root, "True")
        for index in rules_in_order(self.ruleset):
            rule = self.ruleset.rules[index]
            node = ET.SubElement(
                root, "Node", {"id": str(index + 1), "score": self._output(rule.output)}
            )
            if rule.statistics is not None:
                node.set("recordCount", exact_number(rule.statistics.n_rows))
            node.append(self._all([self._predicate(c) for c in rule.conditions]))
        if len(root) == 1 and self._fallback() is None:  # a leaf must have a score
            ET.SubElement(ET.SubElement(root, "Node", {"id": "none"}), "False")
        return root

    # --- predictions ------------------------------------------------------------------------------

    def _label(self, label: Any) -> str:
        if isinstance(label, bool):
            return str(label).lower()
        return check_xml_text(label) if isinstance(label, str) else repr(label)

    def _output(self, output: Any) -> str:
        if isinstance(output, LinearOutput):
            raise ValueError(
                "The nodes of a PMML tree predict constants, but a rule predicts "
                f"{output.to_text(self.ruleset.feature_names)}. Write 'onnx', 'sql', 'dmn', "
                "'excel', 'python', 'java' or 'javascript'."
            )
        if self.ruleset.classes is not None:
            return self._label(self.classes[self.ruleset.classes.index(output)])
        if not math.isfinite(output):
            raise ValueError(f"PMML has no number {output!r}. Give that rule a finite output.")
        return repr(float(output))

    def _fallback(self) -> str | None:
        fallback = self.ruleset.fallback
        if fallback is None:
            return None
        if fallback.policy == "abstain":
            return None if self.ruleset.classes is None else self._label(abstention(self.ruleset))
        return self._output(fallback.output)

    # --- predicates -------------------------------------------------------------------------------

    def _predicate(self, condition: Condition) -> ET.Element:
        """Write a condition; a comparison with a missing value is unknown, not true."""
        if isinstance(condition, AtLeast):
            return self._at_least(condition)
        if isinstance(condition, Linear):
            return self._within(self._sum(condition), condition)
        name = self.fields[condition.feature].name
        accepts_missing = truth_table(condition).missing
        if isinstance(condition, Missing):
            return _simple(name, "isMissing" if accepts_missing else "isNotMissing")
        if isinstance(condition, Interval):
            comparison = self._within(name, condition)
        else:
            comparison = self._one_of(condition)
        return (
            _compound("or", [_simple(name, "isMissing"), comparison])
            if (accepts_missing)
            else comparison
        )

    def _all(self, predicates: list[ET.Element]) -> ET.Element:
        return _compound("and", predicates) if predicates else ET.Element("True")

    def _within(self, name: str, bounds: Interval | Linear) -> ET.Element:
        if math.isinf(bounds.lower) and math.isinf(bounds.upper):
            return _simple(name, "isNotMissing")
        if bounds.lower == bounds.upper:
            return _simple(name, "equal", repr(bounds.lower))
        parts = []
        if math.isfinite(bounds.lower):
            operator = "greaterOrEqual" if bounds.lower_closed else "greaterThan"
            parts.append(_simple(name, operator, repr(bounds.lower)))
        if math.isfinite(bounds.upper):
            operator = "lessOrEqual" if bounds.upper_closed else "lessThan"
            parts.append(_simple(name, operator, repr(bounds.upper)))
        return _compound("and", parts)

    def _one_of(self, condition: OneOf) -> ET.Element:
        entry = self.fields[condition.feature]
        operator, join = ("notEqual", "and") if condition.negated else ("equal", "or")
        values = []
        for value in condition.values:
            is_number = not (entry.is_text or entry.is_flag)
            values.append(repr(entry.float_of(value)) if is_number else self._label(value))
        return _compound(join, [_simple(entry.name, operator, value) for value in values])

    def _at_least(self, condition: AtLeast) -> ET.Element:
        if math.comb(len(condition.conditions), condition.m) > _MAX_CHOICES:
            raise ValueError(
                f"PMML does not count conditions, and there are more than {_MAX_CHOICES} ways to "
                f"choose {condition.m} of {len(condition.conditions)}. Write 'onnx' or 'sql'."
            )
        choices = itertools.combinations(condition.conditions, condition.m)
        return _compound(
            "or", [self._all([self._predicate(c) for c in choice]) for choice in choices]
        )

    # --- sums -------------------------------------------------------------------------------------

    def _sum(self, condition: Linear) -> str:
        if condition.terms not in self.sums:
            self.sums[condition.terms] = self._new_name(f"sum {len(self.sums) + 1}")
        return self.sums[condition.terms]

    def _transformations(self, model: ET.Element) -> None:
        """Define the sums that oblique conditions compare, term by term."""
        transformations = ET.SubElement(model, "LocalTransformations")
        for terms, name in self.sums.items():
            attributes = {"name": name, "optype": "continuous", "dataType": "double"}
            entry = ET.SubElement(transformations, "DerivedField", attributes)
            total: ET.Element | None = None
            for feature, coefficient in terms:
                # Infinite values may cancel to NaN, which is between no bounds.
                treatment = {"invalidValueTreatment": "asMissing"}
                product = ET.Element("Apply", {"function": "*", **treatment})
                constant = ET.SubElement(product, "Constant", {"dataType": "double"})
                constant.text = repr(coefficient)
                ET.SubElement(product, "FieldRef", {"field": self.fields[feature].name})
                if total is None:
                    total = product
                else:
                    longer = ET.Element("Apply", {"function": "+", **treatment})
                    longer.extend([total, product])
                    total = longer
            assert total is not None  # sums have terms
            entry.append(total)


def _simple(field: str, operator: str, value: str | None = None) -> ET.Element:
    attributes = {"field": field, "operator": operator}
    return ET.Element("SimplePredicate", attributes | ({} if value is None else {"value": value}))


def _compound(operator: str, parts: list[ET.Element]) -> ET.Element:
    if len(parts) == 1:
        return parts[0]
    predicate = ET.Element("CompoundPredicate", {"booleanOperator": operator})
    predicate.extend(parts)
    return predicate


def to_pmml(ruleset: RuleSet, model_name: str = "rules") -> str:
    """Write a rule set as a PMML 4.4 document.

    Use it to deploy rules to a scoring engine that reads PMML, such as JPMML.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, without voting and with constant outputs.
    model_name : str, default="rules"
        Name of the model in the document.

    Returns
    -------
    str
        A TreeModel whose root has one node per rule, by priority. The active fields are the
        features that the rules use. The target is ``prediction``; the output field
        ``predicted_value`` repeats it for engines that return only declared outputs. The output
        field ``rule`` is the number of the rule that predicts, from 1, or ``otherwise``.

    Raises
    ------
    ValueError
        If rules vote or have linear outputs, if the fallback is the nearest rule, if a feature is
        compared with numbers and texts, or if XML cannot contain a name.

    Notes
    -----
    The prediction of uncovered rows is null without a fallback, or if regression rules abstain.
    Pass true and false as 1 and 0 in features that rules compare with numbers.

    Examples
    --------
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> from skescore.rules.exporters import to_pmml
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa")],
    ...     ["petal length (cm)"], task="classification", fallback=Fallback("versicolor"),
    ... )
    >>> document = to_pmml(rules)
    >>> print(document[document.index("    <Node id"):document.index("  </TreeModel>")].rstrip())
        <Node id="otherwise" score="versicolor">
          <True />
          <Node id="1" score="setosa">
            <SimplePredicate field="petal length (cm)" operator="lessOrEqual" value="2.5" />
          </Node>
        </Node>
    """
    return _Pmml(ruleset, model_name).build()
