"""JavaScript and Java run in Node.js and the JVM, and predict like the rule sets."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from foreign_programs import run_java, run_javascript
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from skescore.rules import (
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
)
from skescore.rules.exporters import to_java, to_javascript

LANGUAGES = [
    pytest.param(
        "javascript", marks=pytest.mark.skipif(not shutil.which("node"), reason="needs node")
    ),
    pytest.param(
        "java",
        marks=[
            pytest.mark.skipif(not shutil.which("javac"), reason="needs javac"),
            pytest.mark.slow,  # starts a compiler and a virtual machine
        ],
    ),
]


def predicted(language, rulesets, rows, folder):
    """Return the predictions of exported rules."""
    if language == "javascript":
        return run_javascript(list(map(to_javascript, rulesets)), rows, folder)
    sources = [to_java(ruleset, f"Rules{i}") for i, ruleset in enumerate(rulesets)]
    return run_java(sources, rows, folder)


def assert_same(language, rulesets, X, answers, folder):
    rows = X.to_dict("records")
    results = predicted(language, rulesets, rows, folder)
    for ruleset, result in zip(rulesets, results, strict=True):
        expected = answers(ruleset, X)
        wrong = [(row, a, b) for row, a, b in zip(rows, result, expected, strict=True) if a != b]
        assert not wrong, f"{len(wrong)} differ: {wrong[:3]}\n{ruleset}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_predict_hostile_rows(language, arbitrary, tmp_path):
    rulesets = arbitrary.hostile_sets(21)
    X = arbitrary.hostile_rows(400)
    assert_same(language, rulesets, X, arbitrary.answers, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_predict_200_rule_sets(language, arbitrary, tmp_path):
    rulesets, X = arbitrary.hostile_sets(200, 5), arbitrary.hostile_rows(10_000)
    assert_same(language, rulesets, X, arbitrary.answers, tmp_path)


@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=2, phases=[Phase.generate])
@given(data=st.data())
def test_programs_predict_arbitrary_rules(language, arbitrary, data):
    """The rules are of all kinds, with hostile names and categories, and have their own rows."""
    strategy = arbitrary.rule_sets(policies=("default", "abstain"))
    drawn = [data.draw(strategy) for _ in range(25)]
    rulesets = [  # no two sets share a feature, so that one list of rows suits all
        rules.replace(feature_names=[f"{name} {i}" for name in rules.feature_names])
        for i, rules in enumerate(drawn)
    ]
    tables = [arbitrary.border_rows(ruleset, 40) for ruleset in rulesets]
    names = {name: None for table in tables for name in table}
    rows = [names | row for table in tables for row in table.to_dict("records")]
    with tempfile.TemporaryDirectory() as folder:
        results = predicted(language, rulesets, rows, Path(folder))
    for i, (ruleset, table) in enumerate(zip(rulesets, tables, strict=True)):
        result = results[i][40 * i : 40 * (i + 1)]
        assert result == arbitrary.answers(ruleset, table), ruleset


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs_compare_large_integers(language, arbitrary, tmp_path):
    codes = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**62, -(2**63), 2**63 - 1, 0, 1]
    rulesets = [
        RuleSet(
            [Rule([OneOf(0, [code])], f"is {code}") for code in codes[:-1]],
            ["code"],
            task="classification",
            fallback=Fallback("is 0"),
        ),
        RuleSet(
            [Rule([Interval(0, lower=float(2**53))], 1.5)],
            ["code"],
            task="regression",
            fallback=Fallback(-0.0),
        ),
        RuleSet(
            [Rule([OneOf(0, [1e22, 2.0**53, True], negated=True)], 1)],
            ["code"],
            task="classification",
            classes=[0, 1],
            fallback=Fallback(0),
        ),
    ]
    X = pd.DataFrame({"code": np.array(codes, dtype=np.int64)})
    assert_same(language, rulesets, X, arbitrary.answers, tmp_path)
    floats = pd.DataFrame({"code": [2.0**53, 1e22, 1.0, -0.0, 5e-324, np.inf, np.nan]})
    assert_same(language, rulesets, floats, arbitrary.answers, tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("javac"), reason="needs javac")
def test_java_compares_decimals_as_floats(tmp_path):
    rules = [Rule([OneOf(0, [0.1, 2**53])], 1), Rule([OneOf(0, [0.3], negated=True)], 2)]
    ruleset = RuleSet(rules, ["x"], task="regression", fallback=Fallback(3))
    rows = [{"x": Decimal(text)} for text in ("0.1", "0.3", "0.10", "9007199254740993", "7")]
    expected = ruleset.predict(pd.DataFrame(rows)).tolist()
    assert predicted("java", [ruleset], rows, tmp_path) == [expected] == [[1, 3, 1, 1, 2]]


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_javascript_rejects_bad_rows(tmp_path):
    rules = RuleSet([Rule([Interval(0, upper=2)], "a")], ["size"], task="classification")
    calls = ["{}", '{"size": "1"}', "[1, 2]", '{"size": 3}', "[2]"]
    program = to_javascript(rules) + "".join(
        f"try {{ console.log(JSON.stringify(predict({call}))) }} "
        "catch (error) { console.log(JSON.stringify(error.message)) }\n"
        for call in calls
    )
    (tmp_path / "rules.js").write_text(program, encoding="utf-8")
    printed = subprocess.run(
        [shutil.which("node"), "rules.js"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert list(map(json.loads, printed.stdout.splitlines())) == [
        "The row has no feature size; use null if missing.",
        "size must be a number, null or NaN, got string 1.",
        "The row must hold 1 value, got 2.",
        "No rule holds for this row.",
        "a",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("javac"), reason="needs javac")
def test_java_holds_many_rules(tmp_path):
    rules = [Rule([Interval(0, i, i + 1)], "even" if i % 2 else "odd") for i in range(4000)]
    rulesets = [
        RuleSet(rules, ["x"], task="classification", ordered=not voting, voting=voting)
        for voting in (None, "votes")
    ]
    rows = [{"x": x} for x in (0.5, 2999.5, 4000.0)]
    for result in predicted("java", rulesets, rows, tmp_path):
        assert result == ["odd", "even", "even"]
    with pytest.raises(ValueError, match="at most 5000 rules"):
        to_java(RuleSet(rules + rules, ["x"], task="classification"))


@pytest.mark.parametrize("write", [to_javascript, to_java])
def test_programs_reject_unsupported_rules(write):
    rules = RuleSet(
        [Rule([Linear([(0, 1)], upper=1)], LinearOutput(1, [(0, 2)]))],
        ["x"],
        task="regression",
        fallback=Fallback(1.0, "nearest"),
    )
    with pytest.raises(ValueError, match="nearest"):
        write(rules)
    for name in ("2nd", "a-b", "class", ""):
        with pytest.raises(ValueError, match="_name must be a name"):
            write(rules.replace(fallback=None), name)
    huge = RuleSet([Rule([], 10**20)], ["x"], task="classification")
    with pytest.raises(ValueError, match="Make the classes texts"):
        write(huge)
    with pytest.raises(ValueError, match="package"):
        to_java(rules.replace(fallback=None), package="com.class")
