"""Tables with one row per condition: handwritten, from rules and back, and as CSV files."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.tree import DecisionTreeClassifier

from skescore import as_ruleset
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)
from skescore.rules.importers import read_table

BY_HAND = """\
rule,feature,operator,value,class
1,size,>,1.5,yes
1,size,<=,3,yes
1,color,in,"[""red"", ""blue""]",yes
1,shape,!=,round,yes
2,shape,=,round,no
3,,,,maybe
otherwise,,,,no
"""


def through_csv(table: pd.DataFrame) -> pd.DataFrame:
    with warnings.catch_warnings():
        # Older releases of pandas round by default, newer ones warn about the option.
        warnings.simplefilter("ignore", DeprecationWarning)
        return pd.read_csv(io.StringIO(table.to_csv(index=False)), float_precision="round_trip")


def test_table_written_by_hand_becomes_rules():
    rules = as_ruleset(pd.read_csv(io.StringIO(BY_HAND)))
    assert rules.feature_names == ("size", "color", "shape")
    assert rules.ordered
    assert rules.to_text().splitlines() == [
        "1. IF 1.5 < size ≤ 3 AND color in {blue, red} AND shape ≠ round THEN yes",
        "2. ELSE IF shape = round THEN no",
        "3. ELSE maybe",
    ]
    assert rules.fallback == Fallback("no")
    frame = pd.DataFrame({"shape": ["oval", "round", "oval"], "size": [2.0, 2.0, 9.0]})
    frame["color"] = "red"
    assert rules.predict(frame).tolist() == ["yes", "no", "maybe"]


def test_read_table_accepts_records_and_other_spellings():
    rules = read_table(
        [
            {"rule": "a", "feature": "x", "operator": "≥", "value": 1, "number": 2.5, "rows": 7},
            {"rule": "a", "feature": "x", "operator": "<", "value": "2", "number": None},
            {"rule": "b", "feature": "x", "operator": "==", "value": 5, "number": 3},
        ],
        feature_names=["w", "x"],
        domain=Domain((0, 0), (9, 9)),
        ordered=False,
    )
    assert rules.rules == (
        Rule([Interval(1, 1, 2, lower_closed=True, upper_closed=False)], 2.5, RuleStatistics(7)),
        Rule([Interval(1, 5, 5, lower_closed=True)], 3),
    )
    assert rules.task == "regression"
    assert not rules.ordered


def test_table_restores_rules_of_tree():
    data = load_wine(as_frame=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=9, random_state=0).fit(
        data.data, data.target_names[data.target]
    )
    rules = as_ruleset(tree)
    table = through_csv(rules.to_conditions())
    second_rules = as_ruleset(table, feature_names=rules.feature_names, ordered=False)
    assert [r.conditions for r in second_rules] == [r.conditions for r in rules]
    assert second_rules.predict(data.data).tolist() == rules.predict(data.data).tolist()
    assert [r.statistics.n_rows for r in second_rules] == [r.statistics.n_rows for r in rules]


def test_table_restores_weights():
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a", weight=0.1 + 0.2), Rule([], "b", weight=2)],
        ["x"],
        task="classification",
        ordered=False,
        voting="votes",
    )
    table = through_csv(rules.to_conditions())
    assert as_ruleset(table, voting="votes") == rules
    with pytest.raises(ValueError, match="rules vote: pass voting='votes'"):
        as_ruleset(table)


labels = (
    st.text(max_size=6)
    | st.booleans()
    | st.integers(-99, 99)
    | st.sampled_from(
        ["1", "true", "nan", "NA", "", " x ", "otherwise", "null", "a,b", '"', "[1]", "é\n", "1e5"]
    )
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    names = draw(st.lists(st.text(max_size=5), min_size=2, max_size=3, unique=True))
    rules = []
    for _ in range(draw(st.integers(1, 4))):
        conditions: list[Any] = []
        if draw(st.booleans()):
            low, high = sorted([draw(finite), draw(finite)])
            conditions.append(Interval(0, low, high, True, True, draw(st.booleans())))
        if draw(st.booleans()):
            values = draw(st.lists(labels, min_size=1, max_size=3))
            conditions.append(OneOf(1, values, draw(st.booleans()), draw(st.booleans())))
        if not conditions and draw(st.booleans()):
            conditions = [Missing(draw(st.integers(0, 1)), draw(st.booleans()))]
        rules.append(Rule(conditions, draw(labels)))
    classes = list({(type(r.output), r.output): r.output for r in rules}.values())
    retained = [c for i, c in enumerate(classes) if c not in classes[:i]]  # 1 equals True
    rules = [r for r in rules if any(r.output is c or type(r.output) is type(c) for c in retained)]
    fallback = Fallback(rules[0].output) if draw(st.booleans()) else None
    return RuleSet(rules, names, task="classification", classes=retained, fallback=fallback)


@given(rule_sets())
def test_table_restores_names_and_labels_of_any_kind(rules: RuleSet):
    settings = {"feature_names": rules.feature_names, "classes": rules.classes}
    for table in (rules.to_conditions(), through_csv(rules.to_conditions())):
        second_rules = as_ruleset(table, **settings)
        assert second_rules == rules
        assert [type(r.output) for r in second_rules] == [type(r.output) for r in rules]


def test_table_has_operators_for_missing_values():
    rows = [
        {"rule": 1, "feature": "age", "operator": "≤ OR  missing", "value": 30, "number": 1},
        {"rule": 1, "feature": "age", "operator": "> or missing", "value": 20, "number": 1},
        {"rule": 2, "feature": "age", "operator": "Is missing", "number": 2},
        {"rule": 3, "feature": "age", "operator": "is known", "number": 3},
        {"rule": 4, "feature": "sex", "operator": "= or missing", "value": "f", "number": 4},
    ]
    rules = as_ruleset(pd.DataFrame(rows))
    assert [rule.conditions for rule in rules] == [
        (Interval(0, 20, 30, missing=True),),
        (Missing(0),),
        (Missing(0, negated=True),),
        (OneOf(1, ["f"], missing=True),),
    ]
    assert rules.to_conditions()["operator"].tolist() == [
        "> or missing",
        "<= or missing",
        "is missing",
        "is known",
        "in or missing",
    ]


@example("{}")
@given(labels | finite)
def test_table_cells_keep_values_and_types(value: Any):
    rules = RuleSet([Rule([], value)], ["x"], task="classification")
    label = as_ruleset(rules.to_conditions(), feature_names=["x"])[0].output
    assert (type(label), label) == (type(value), value)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Rule([Linear([(0, 1), (1, 2)], upper=3)], "a"), r"Rule 1 has the condition x \+ 2·y"),
        (Rule([AtLeast(1, [Interval(0, 1), Interval(1, 1)])], "a"), "use to_json|Use to_json"),
    ],
)
def test_to_conditions_rejects_unsupported_rules(rule: Rule, message: str):
    with pytest.raises(ValueError, match=message):
        RuleSet([rule], ["x", "y"], task="classification").to_conditions()


def test_to_conditions_rejects_linear_outputs_and_nearest():
    line = RuleSet([Rule([], LinearOutput(1, [(0, 2)]))], ["x"], task="regression")
    with pytest.raises(ValueError, match=r"Rule 1 .* sum of features"):
        line.to_conditions()
    ruleset = RuleSet([Rule([], 1.0)], ["x"], task="regression", fallback=Fallback(1, "nearest"))
    with pytest.raises(ValueError, match="policy='nearest'"):
        ruleset.to_conditions()


def record(**changes: Any) -> dict[str, Any]:
    return {"rule": 1, "feature": "x", "operator": "<", "value": 1, "class": "a"} | changes


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([record(rule=None)], "Row 1 of the table has no rule"),
        ([record(), record(**{"class": "b"})], "Row 2 of the table has class='b', but other rows"),
        ([record(**{"class": None})], "Row 1 of the table has no 'class'"),
        ([record(operator="~")], "Row 1 of the table has the operator '~'; known are <, <="),
        ([record(value="tall")], "Row 1 of the table: < compares with numbers, got 'tall'"),
        ([record(operator="is missing")], "'x' is missing, which has no value, got 1"),
        ([record(operator="is missing or missing")], "the operator 'is missing or missing'"),
        ([record(value=None)], "Row 1 of the table compares 'x' with nothing"),
        ([record(feature=None)], "Row 1 of the table has a condition, but no feature"),
        ([record(), record(operator=">", value=5)], "Rule 1 of the table, on 'x': No number lies"),
        ([record(rule="otherwise")], "gives the rule 'otherwise' a condition"),
        ([record(rows=-3)], "Rule 1 of the table, on 'x': n_rows must be 0 or more, got -3"),
        ([record(rows="many")], "Rule 1 of the table, on 'x': n_rows must be a number, got 'many'"),
        ([record(operator="in", value="{a, b}")], r"a list such as \["),
        ([record(operator="in", value="a; b")], "Row 1 of the table: 'in' compares with a list"),
        ([record(extra=1)], "unknown column 'extra'"),
        ([{"rule": 1}], "lacks the column|must have one column of outputs"),
        ([record(number=3)], "one column of outputs, 'class' for classification or 'number'"),
        ([record(weight=2)], "rules vote: pass voting="),
        ([], "holds no row"),
    ],
)
def test_read_table_errors_name_row(records: list[dict[str, Any]], message: str):
    with pytest.raises(ValueError, match=message):
        read_table(records)


def test_read_table_ignores_case_of_keywords():
    rules = read_table(
        [
            record(operator="IN", value='["a", "b"]', **{"class": "one"}),
            {"rule": "Otherwise", "class": "other"},
        ]
    )
    assert rules.fallback == Fallback("other")
    assert [rule.conditions for rule in rules] == [(OneOf(0, ("a", "b")),)]


def test_read_table_rejects_repeated_feature_names():
    with pytest.raises(ValueError, match=r"must differ from each other, got \['x'\] twice"):
        read_table([record()], feature_names=["x", "x"])


def test_read_table_rejects_unknown_features_and_containers():
    with pytest.raises(ValueError, match="conditions on 'x', which is none of the feature_names"):
        read_table([record()], feature_names=["y"])
    with pytest.raises(TypeError, match="must be a DataFrame or a list of records"):
        read_table(["x < 1"])
