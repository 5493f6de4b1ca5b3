"""The declarations of PMML documents; `test_standards` evaluates them with JPMML."""

import re
from xml.etree import ElementTree as ET

import pytest

from skescore.rules import (
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)
from skescore.rules.exporters import to_pmml


def output_fields(rules):
    """Return the attributes of the output fields by feature."""
    root = ET.fromstring(to_pmml(rules))
    fields = [field.attrib for field in root.iter("{http://www.dmg.org/PMML-4_4}OutputField")]
    return {field["feature"]: field for field in fields}


@pytest.mark.parametrize(
    ("output", "fallback", "optype", "data_type"),
    [
        ("a", "b", "categorical", "string"),
        (1, 0, "categorical", "integer"),
        (True, False, "categorical", "boolean"),
        (1.5, 0.5, "continuous", "double"),
    ],
)
def test_pmml_output_declares_prediction(output, fallback, optype, data_type):
    task = "regression" if isinstance(output, float) else "classification"
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], output)], ["x"], task=task, fallback=Fallback(fallback)
    )
    assert output_fields(rules) == {
        "predictedValue": {
            "name": "predicted_value",
            "optype": optype,
            "dataType": data_type,
            "feature": "predictedValue",
        },
        "entityId": {
            "name": "rule",
            "optype": "categorical",
            "dataType": "string",
            "feature": "entityId",
        },
    }


def test_pmml_output_fields_differ_from_features():
    names = ["rule", "predicted_value", "prediction"]
    rules = RuleSet(
        [Rule([Interval(i, upper=1) for i in range(3)], "a")],
        names,
        task="classification",
        fallback=Fallback("b"),
    )
    outputs = {field["name"] for field in output_fields(rules).values()}
    assert outputs == {"predicted_value_", "rule_"}


def test_pmml_suggests_formats_for_linear_outputs():
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], LinearOutput(1.0, [(0, 2.0)]))],
        ["x"],
        task="regression",
        fallback=Fallback(0.5),
    )
    with pytest.raises(ValueError, match="predict constants") as caught:
        to_pmml(rules)
    formats = re.findall(r"'(\w+)'", str(caught.value))
    assert {"dmn", "excel", "python", "sql"} <= set(formats)
    for name in {*formats} - {"onnx", "excel"}:  # these need further packages
        assert rules.to(name)


def test_pmml_record_count_is_exact():
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], 1.0, RuleStatistics(1_234_567, mean=1.0))],
        ["x"],
        task="regression",
        fallback=Fallback(0.5),
    )
    assert 'recordCount="1234567"' in to_pmml(rules)


def test_pmml_reads_flags_that_are_compared_with_numbers_as_numbers():
    for condition in (Interval(0, upper=0.5), Linear([(0, 2.0)], upper=1)):
        rules = RuleSet(
            [Rule([OneOf(0, [True])], "a"), Rule([condition], "b")],
            ["vip"],
            task="classification",
            fallback=Fallback("c"),
        )
        document = to_pmml(rules)
        assert '<DataField name="vip" optype="continuous" dataType="double" />' in document
        assert '<SimplePredicate field="vip" operator="equal" value="1.0" />' in document
