"""ONNX, PMML, DMN and Excel run in other engines and predict like the rule sets.

The engines are ONNX Runtime, jpmml-evaluator, and feelin and hyperformula from npm (NODE_PATH).
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from foreign_programs import (
    has_node_package,
    run_dmn,
    run_formulas,
    run_onnx,
    run_pmml,
    run_workbooks,
)
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from skescore.rules import (
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)
from skescore.rules.exporters import to_dmn, to_excel, to_excel_formula, to_onnx, to_pmml

pytestmark = pytest.mark.engine


def _require(is_there, name):
    if not is_there:
        required = name in os.environ.get("SKESCORE_ENGINES", "").split(",")
        (pytest.fail if required else pytest.skip)(f"needs {name}")


def require(format_name):
    """Skip a test if its engine is missing, or fail if the environment promises it."""
    if format_name == "onnx":
        _require(importlib.util.find_spec("onnxruntime"), "onnxruntime")
        _require(importlib.util.find_spec("onnx"), "onnx")
    elif format_name == "pmml":
        _require(importlib.util.find_spec("jpmml_evaluator"), "jpmml_evaluator")
        _require(shutil.which("javac"), "javac")
    else:
        package = "feelin" if format_name == "dmn" else "hyperformula"
        _require(has_node_package(package), package)


def rows_of(X):
    return X.astype(object).where(X.notna(), None).to_dict("records")


def predicted(format_name, rulesets, tables, folder):
    """Return the predictions of exported rules on the rows of each table."""
    if format_name == "onnx":
        models = map(to_onnx, rulesets)
        return [run_onnx([m], X)[0] for m, X in zip(models, tables, strict=True)]
    if format_name == "pmml":  # all tables are joined, so that one virtual machine suffices
        return run_pmml(list(map(to_pmml, rulesets)), rows_of(tables[0]), folder)
    rows = [rows_of(X) for X in tables]
    if format_name == "dmn":
        return run_dmn(list(map(to_dmn, rulesets)), rows, folder)
    if format_name == "excel":
        return run_workbooks(
            [to_excel(r, len(X)) for r, X in zip(rulesets, rows, strict=True)], rows, folder
        )
    formulas = [
        (lambda row, rules=rules: to_excel_formula(rules, row), rules.feature_names)
        for rules in rulesets
    ]
    return run_formulas(formulas, rows, folder)


def with_fallback(ruleset):
    if ruleset.fallback is not None:
        return ruleset
    return ruleset.replace(fallback=Fallback(ruleset.classes[0] if ruleset.classes else 0.5))


def hostile_cases(arbitrary, format_name, n_sets, n_rows, seed=0):
    """Return rule sets and rows that a format can express."""
    rulesets, X = arbitrary.hostile_sets(n_sets, seed), arbitrary.hostile_rows(n_rows)
    # The domain shows that the feature contains texts, although rules only test for missing values.
    domain = next(rules.domain for rules in rulesets if rules.domain is not None)
    rulesets = [rules.replace(domain=domain) for rules in rulesets]
    if format_name == "onnx":
        return list(map(with_fallback, rulesets)), X
    rulesets = [rules for rules in rulesets if rules.voting is None]
    if format_name != "pmml":  # neither FEEL nor Excel has infinite numbers
        X = X.replace([np.inf, -np.inf], np.nan)
    if format_name.startswith("excel"):  # Excel has 15 digits and no empty texts
        X = X.mask(X.map(lambda value: isinstance(value, float) and abs(value) > 1e200)).round(10)
        X["sex"] = X["sex"].replace("", "x")
    return rulesets, X


def assert_same(rulesets, tables, results, answers):
    for ruleset, X, result in zip(rulesets, tables, results, strict=True):
        rows = zip(rows_of(X), result, answers(ruleset, X), strict=True)
        wrong = [(row, a, b) for row, a, b in rows if a != b]
        assert not wrong, f"{len(wrong)} differ: {wrong[:3]}\n{ruleset}"


FORMATS = ["onnx", "pmml", "dmn", "excel", "excel-formula"]


@pytest.mark.parametrize("format_name", FORMATS)
def test_standards_predict_hostile_rows(format_name, arbitrary, tmp_path):
    require(format_name)
    rulesets, X = hostile_cases(arbitrary, format_name, 21, 100)
    tables = [X] * len(rulesets)
    results = predicted(format_name, rulesets, tables, tmp_path)
    assert_same(rulesets, tables, results, arbitrary.answers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("format_name", "n_rows"), [("onnx", 10_000), ("pmml", 10_000), ("dmn", 60)]
)
def test_standards_predict_200_rule_sets(format_name, n_rows, arbitrary, tmp_path):
    require(format_name)
    n_sets = 200 if format_name == "onnx" else 450  # four of nine need only one rule to predict
    rulesets, X = hostile_cases(arbitrary, format_name, n_sets, n_rows, 5)
    assert len(rulesets) >= 200
    tables = [X] * len(rulesets)
    results = predicted(format_name, rulesets, tables, tmp_path)
    assert_same(rulesets, tables, results, arbitrary.answers)


@pytest.mark.parametrize("format_name", ["onnx", "pmml", "dmn"])
@settings(max_examples=2, phases=[Phase.generate])
@given(data=st.data())
def test_standards_predict_arbitrary_rules(format_name, arbitrary, data):
    require(format_name)
    labels = ("str", "int", "float", "bool")
    strategy = arbitrary.rule_sets(
        policies=("default", "abstain"), together=format_name == "onnx", labels=labels
    )
    rulesets, tables = [], []
    for i in range(40 if format_name == "onnx" else 12):
        rules = data.draw(strategy)
        if not rules.classes and rules.task == "classification":
            continue
        if format_name == "onnx":
            rules = with_fallback(rules)
        if format_name == "pmml":
            if any(isinstance(rule.output, LinearOutput) for rule in rules):
                continue
            # No two sets share a feature, so that one list of rows suits all.
            rules = rules.replace(feature_names=[f"{name} {i}" for name in rules.feature_names])
        rulesets.append(rules)
        tables.append(arbitrary.border_rows(rules, 40, infinite=format_name != "dmn"))
    if format_name == "pmml" and tables:
        joined = pd.concat(tables, axis=1)
        tables = [joined] * len(tables)
        answers = lambda rules, X: arbitrary.answers(rules, X[list(rules.feature_names)])  # noqa: E731
    else:
        answers = arbitrary.answers
    with tempfile.TemporaryDirectory() as folder:
        results = predicted(format_name, rulesets, tables, Path(folder)) if rulesets else []
    assert_same(rulesets, tables, results, answers)


def test_onnx_states_the_rule():
    require("onnx")
    import onnxruntime

    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a"), Rule([OneOf(1, ["red"])], "b")],
        ["rule", "color"],
        task="classification",
        fallback=Fallback("a"),
    )
    session = onnxruntime.InferenceSession(rules.to("onnx"))
    colors = np.array([["red"], ["red"], ["<missing>"]], dtype=object)
    feeds = {"rule": np.array([[0.0], [np.nan], [2.0]]), "color": colors}
    assert [output.name for output in session.get_outputs()] == ["prediction", "rule_"]
    prediction, index = session.run(None, feeds)
    assert prediction.tolist() == ["a", "b", "a"]
    assert index.tolist() == [0, 1, -1]
    nothing = {"rule": np.empty((0, 1)), "color": np.empty((0, 1), dtype=object)}
    assert session.run(["prediction"], nothing)[0].shape == (0,)


def test_onnx_features_have_the_names_of_internal_nodes():
    require("onnx")
    import onnxruntime

    names = ["constant_0", "Gather_1", "prediction"]
    rules = RuleSet(
        [Rule([Interval(0, upper=1), Interval(1, lower=2)], LinearOutput(1.0, [(2, 2.0)]))],
        names,
        task="regression",
        fallback=Fallback(0.5),
    )
    X = pd.DataFrame([[1.0, 3.0, 4.0], [2.0, 3.0, 4.0]], columns=names)
    session = onnxruntime.InferenceSession(to_onnx(rules))
    feeds = {name: X[[name]].to_numpy() for name in names}
    assert session.run(["prediction_"], feeds)[0].tolist() == rules.predict(X).tolist()


def test_onnx_example_feeds_columns_of_every_type():
    require("onnx")
    rules = RuleSet(
        [
            Rule([Interval(0, upper=2), OneOf(1, [True])], "a"),
            Rule([OneOf(2, ["red"]), Interval(3, lower=1)], "b"),
            Rule([OneOf(2, ["blue"]), Interval(4, lower=0.5)], "c"),
        ],
        ["count", "vip", "color", "nullable", "truth"],
        task="classification",
        ordered=True,
        fallback=Fallback("d"),
    )
    X = pd.DataFrame(
        {
            "count": [1, 2, 3, 4, 5, 6],
            "vip": [True, False, True, True, True, False],
            "color": pd.Categorical(["red", "red", None, "blue", "blue", "blue"]),
            "nullable": pd.array([1, 2, None, 3, None, 4], dtype="Int64"),
            "truth": pd.array([True, False, None, True, None, False], dtype="boolean"),
        }
    )
    names = {"rules": rules, "X": X}
    examples = doctest.DocTestParser().get_examples(to_onnx.__doc__)
    for example in examples:
        exec(example.source, names)
    assert names["prediction"].tolist() == rules.predict(X).tolist() == list("abdcdd")


def test_onnx_rejects_unsupported_rules():
    require("onnx")
    rules = RuleSet([Rule([OneOf(0, ["a"])], 1)], ["x"], task="classification")
    with pytest.raises(ValueError, match="Set a fallback"):
        to_onnx(rules)
    with pytest.raises(ValueError, match="missing='a'"):
        to_onnx(rules.replace(fallback=Fallback(1)), missing="a")
    mixed = RuleSet([Rule([OneOf(0, ["a", 1])], 1), Rule([], 2)], ["x"], task="classification")
    with pytest.raises(ValueError, match="numbers and with texts"):
        to_onnx(mixed)
    codes = RuleSet([Rule([OneOf(0, [2**53 + 1])], 1), Rule([], 2)], ["x"], task="classification")
    with pytest.raises(ValueError, match="no 64-bit float"):
        to_onnx(codes)


@pytest.mark.parametrize("write", [to_pmml, to_dmn, to_excel, to_excel_formula])
def test_tables_reject_unsupported_rules(write):
    joint = RuleSet(
        [Rule([Missing(0)], 1.0)], ["x"], task="regression", ordered=False, voting="sum"
    )
    with pytest.raises(ValueError, match="one rule predicts each row"):
        write(joint)
    nearest = RuleSet(
        [Rule([Interval(0, upper=1)], 1.0)],
        ["x"],
        task="regression",
        fallback=Fallback(1.0, "nearest"),
    )
    with pytest.raises(ValueError, match="nearest"):
        write(nearest)


@pytest.mark.parametrize("format_name", ["excel", "excel-formula"])
def test_excel_reads_truth_values_as_numbers(format_name, tmp_path):
    require(format_name)
    premises = [
        [Interval(0, lower=0.5)],
        [OneOf(0, [1], negated=True)],
        [OneOf(0, [True], missing=True)],
        [Linear([(0, 2.0), (1, 1.0)], upper=2), Interval(0, lower=0)],
        [Missing(0, negated=True)],
    ]
    rulesets = [
        RuleSet([Rule(premise, 1)], ["vip", "size"], task="regression", fallback=Fallback(0))
        for premise in premises
    ]
    X = pd.DataFrame({"vip": [True, False, None, 1, 0], "size": [0.5, 1, 2, 3, 4]}, dtype=object)
    tables = [X] * len(rulesets)
    results = predicted(format_name, rulesets, tables, tmp_path)
    assert_same(rulesets, tables, results, lambda rules, X: rules.predict(X).tolist())


def test_excel_formula_rejects_long_rules():
    rules = [Rule([Interval(0, i, i + 1)], i) for i in range(65)]
    ruleset = RuleSet(rules, ["x"], task="regression")
    with pytest.raises(ValueError, match="Write the workbook"):
        to_excel_formula(ruleset)
    assert to_excel_formula(ruleset[:64]).count("IF(") == 64
