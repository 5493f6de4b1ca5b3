"""The Python function runs and predicts like the rule set, row by row."""

from __future__ import annotations

import ast
import math
import subprocess
import sys
import textwrap
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.rules import (
    AtLeast,
    BoxTable,
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

INF, NAN = math.inf, math.nan
NAMES = ["petal length (cm)", "class"]


def exported_function(ruleset, **options):
    """Return the exported function."""
    namespace = {}
    exec(compile(ruleset.to_python(**options), "written.py", "exec"), namespace)
    return namespace[options.get("function_name", "predict")]


def rows(X):
    return X.to_dict("records")


def call(function, row):
    """Return the result of the function; None for NaN or if no rule holds."""
    try:
        answer = function(row)
    except ValueError as error:
        if str(error) != "No rule holds for this row.":
            raise
        return None
    return None if answer != answer else answer


def assert_same(function, ruleset, X, expected):
    """Check that results are equal in value and type (True is not 1)."""
    results = [call(function, row) for row in rows(X)]
    wrong = [
        (row, a, b)
        for row, a, b in zip(rows(X), results, expected, strict=True)
        if a != b or type(a) is not type(b)
    ]
    assert not wrong, f"{wrong[:3]}\n{ruleset!r}"


@settings(max_examples=25)
@given(data=st.data())
def test_python_predicts_like_arbitrary_rule_sets(arbitrary, data):
    ruleset = data.draw(arbitrary.rule_sets(policies=("default", "abstain")))
    X = arbitrary.border_rows(ruleset, 80, data.draw(st.integers(0, 99)))
    assert_same(exported_function(ruleset), ruleset, X, arbitrary.answers(ruleset, X))


@settings(max_examples=20)
@given(data=st.data())
def test_python_predicts_nearest_rule(arbitrary, data):
    ruleset = data.draw(arbitrary.rule_sets(policies=("nearest",), together=False))
    X = arbitrary.border_rows(ruleset, 60, data.draw(st.integers(0, 99)))
    assert_same(exported_function(ruleset), ruleset, X, arbitrary.answers(ruleset, X))


@pytest.mark.slow
def test_python_predicts_extracted_rules_on_10_000_rows(arbitrary, fitted):
    for (name, task), (ruleset, X) in fitted.items():
        rng = np.random.default_rng(0)
        shape = (8000, X.shape[1])
        anywhere = pd.DataFrame(rng.normal(size=shape) * [2, 20, 0.2], columns=X.columns)
        everything = pd.concat([anywhere, arbitrary.border_rows(ruleset, 2000)])
        expected = arbitrary.answers(ruleset, everything)
        assert_same(exported_function(ruleset), f"{name} {task}", everything, expected)
        assert len(set(expected)) > 1


def test_python_function_needs_no_package():
    ruleset = RuleSet([Rule([Interval(0, upper=2.5)], "é")], NAMES, task="classification")
    program = ruleset.to_python() + "\nimport sys\nassert 'numpy' not in sys.modules"
    program += "\nassert predict([1, 0]) == 'é' == predict({'petal length (cm)': '2.5'})\n"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)


def test_python_code_is_readable():
    ruleset = RuleSet(
        [
            Rule([Interval(0, 1, 2.45), OneOf(1, ["a"])], "x", RuleStatistics(4, (3, 1))),
            Rule([OneOf(1, ["a", "b"], negated=True), Interval(0, lower=5)], "y"),
            Rule(
                [AtLeast(2, [Interval(0, upper=1), Interval(0, 2, 2, True), OneOf(1, ["c"])])], "x"
            ),
            Rule([Linear([(0, -2)], 1, 3)], "y"),
        ],
        NAMES,
        task="classification",
        fallback=Fallback("x"),
    )
    assert ruleset.to_python(function_name="species") == textwrap.dedent(
        '''\
        from collections.abc import Mapping, Sequence
        from typing import Any


        def species(row: Mapping[str, Any] | Sequence[Any]) -> str:
            """Predict one row by 4 rules.

            The row is a mapping from these feature names to values, or a sequence of
            all values in this order; None and NaN are missing values.

                0: 'petal length (cm)'
                1: 'class'

            The classes are
                'x'
                'y'
            """

            def number(value: Any) -> float:
                return float("nan") if value is None else float(value)

            def label(value: Any) -> Any:
                value = value.item() if hasattr(value, "item") else value  # NumPy's scalars
                if hasattr(value, "as_integer_ratio") and not isinstance(value, int):
                    value = float(value)  # for example, decimals of databases
                return None if value != value else value

            by_name = hasattr(row, "keys")
            if not by_name and len(row) != 2:
                raise ValueError(f"row must hold 2 values, got {len(row)}.")
            cells: Any = row  # indexed by name or by position
            petal_length_cm = number(cells["petal length (cm)"] if by_name else cells[0])
            class_2 = label(cells["class"] if by_name else cells[1])
            # Rule 1: 4 rows, 75 % of this class
            if 1.0 < petal_length_cm <= 2.45 and class_2 == "a":
                return "x"
            # Rule 2
            if petal_length_cm > 5.0 and class_2 is not None and class_2 not in ("a", "b"):
                return "y"
            # Rule 3
            if (petal_length_cm <= 1.0) + (petal_length_cm == 2.0) + (class_2 == "c") >= 2:
                return "x"
            # Rule 4
            if 1.0 < -2.0 * petal_length_cm <= 3.0:
                return "y"
            # No rule holds.
            return "x"
        '''
    )


def test_python_code_writes_long_sums_on_several_lines():
    names = [f"feature {j}" for j in range(5)]
    terms = [(j, (-1) ** j / 3) for j in range(5)]
    rules = [Rule([Interval(0, upper=1)], LinearOutput(0.1, terms))]
    rules.append(Rule([], LinearOutput(2, [(1, -1)])))
    ruleset = RuleSet(rules, names, task="regression")
    source = ruleset.to_python()
    third = "0.3333333333333333"
    assert source.endswith(
        f"""\
    if feature_0 <= 1.0:
        return (
            0.1
            + {third} * feature_0
            - {third} * feature_1
            + {third} * feature_2
            - {third} * feature_3
            + {third} * feature_4
        )
    # Rule 2
    return 2.0 - feature_1
"""
    )
    X = np.random.default_rng(3).normal(size=(50, 5))
    assert [exported_function(ruleset)(row) for row in X] == ruleset.predict(X).tolist()


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a", '"a"'),
        ("o'clock", '''"o'clock"'''),
        ('say "x"', """'say "x"'"""),
        ("'\"", r"""  "'\""  """),
        ("\\'\"", r"""  "\\'\""  """),
        ('\'""', r"""  '\'""'  """),
        ("\\", r'"\\"'),
        ("é\n", r'"é\n"'),
        ("", '""'),
    ],
)
def test_python_code_quotes_texts_like_formatters(text, written):
    ruleset = RuleSet([Rule([], text)], ["a"], task="classification")
    returned = ruleset.to_python().rpartition("return ")[2].strip()
    assert returned == written.strip()
    assert ast.literal_eval(returned) == text


@pytest.mark.parametrize(("names", "message"), [(["a"], "1 value,"), (["a", "b"], "2 values,")])
def test_python_function_rejects_rows_of_wrong_length(names, message):
    ruleset = RuleSet([Rule([Interval(0, 1)], 1.0)], names, task="regression")
    with pytest.raises(ValueError, match=f"row must hold {message} got 3"):
        exported_function(ruleset)([1, 2, 3])


def test_python_function_accepts_rows_of_many_types():
    ruleset = RuleSet(
        [Rule([Interval(0, upper=2.5), OneOf(1, [1])], 1.5), Rule([Interval(0, lower=4)], 2.5)],
        NAMES,
        task="regression",
        fallback=Fallback(0.0),
    )
    function = exported_function(ruleset)
    frame = pd.DataFrame([[2, 1], [5, 0]], columns=NAMES)
    series = pd.Series([1.0, 1.0], index=["class", "petal length (cm)"])
    assert function([2.5, 1]) == function((2.5, True)) == function(np.array([2.5, 1.0])) == 1.5
    assert function(series) == function(frame.iloc[0]) == function(frame.loc[0]) == 1.5
    assert function({"class": np.int64(1), "petal length (cm)": "2", "more": None}) == 1.5
    assert [function(row) for row in frame.to_numpy()] == ruleset.predict(frame).tolist()
    assert function([None, 1]) == function([NAN, None]) == function([2, np.float64("nan")]) == 0.0
    assert function({"petal length (cm)": np.float32(4.5), "class": None}) == 2.5
    with pytest.raises(ValueError, match="row must hold 2 values, got 3"):
        function([1, 2, 3])
    with pytest.raises(KeyError, match="class"):
        function({"petal length (cm)": 1})
    with pytest.raises(ValueError, match="could not convert"):
        function(["long", 1])


def test_python_function_counts_conditions_of_numpy_rows():
    # True + True is True in NumPy, but 2 in Python.
    inner = [OneOf(0, [1]), OneOf(1, ["a"]), OneOf(1, ["b"], negated=True)]
    ruleset = RuleSet([Rule([AtLeast(2, inner)], 1)], NAMES, task="regression")
    assert exported_function(ruleset)([np.float64(1), np.str_("a")]) == 1.0
    assert exported_function(ruleset)([np.bool_(True), np.str_("c")]) == 1.0
    assert call(exported_function(ruleset), [np.int64(2), np.str_("c")]) is None


def test_python_code_gives_each_feature_its_own_variable():
    names = [
        "a b",
        "a_b",
        "A B",
        "a-b",
        "ﬁ",
        "fi",
        "",
        "日本",
        "1st",
        "float",
        "row",
        "number",
        "if",
        "x6",
        "K",
        "a b_2",
        "predict",
        "sums",
        '"""',
        "\\",
    ]
    outputs = [
        Rule([Interval(j, 0, 1), *(Interval(k, upper=0) for k in range(j))], j)
        for j in range(len(names))
    ]
    ruleset = RuleSet(outputs, names, task="classification")
    function = exported_function(ruleset)
    for j in range(len(names)):
        row = dict.fromkeys(names, 0) | {names[j]: 0.5}
        assert function(row) == function(list(row.values())) == j
    used = {
        node.targets[0].id
        for node in ast.walk(ast.parse(ruleset.to_python()))
        if isinstance(node, ast.Assign)
    }
    assert len(used - {"by_name"}) == len(names)
    assert not used & {"float", "row", "number", "if"}
    assert all(name.isascii() for name in used)


def test_python_code_never_runs_names_or_labels():
    evil = '"""\nraise SystemExit(1)\n"""'
    ruleset = RuleSet(
        [Rule([OneOf(0, [evil])], evil), Rule([], "# \n\\")],
        [evil],
        task="classification",
        fallback=Fallback(evil),
    )
    assert exported_function(ruleset)([evil]) == exported_function(ruleset)({evil: evil}) == evil
    assert exported_function(ruleset)([""]) == "# \n\\"


def test_python_handles_missing_values_within_at_least():
    free = AtLeast(1, [Interval(0), Linear([(1, 2.0)])])
    ruleset = RuleSet([Rule([free], 1)], NAMES, task="regression", fallback=Fallback(0))
    X = [[NAN, NAN], [1, NAN], [NAN, 1], [math.inf, NAN], [1, 1]]
    assert ruleset.predict(X).tolist() == [0, 1, 1, 1, 1]
    assert [exported_function(ruleset)(row) for row in X] == [0, 1, 1, 1, 1]


def test_python_code_tests_missing_values_plainly():
    ruleset = RuleSet(
        [
            Rule([Interval(0, upper=30, missing=True), OneOf(1, ["f"], missing=True)], "a"),
            Rule([Missing(0), Missing(1, negated=True)], "b"),
            Rule([Missing(2)], "a"),
        ],
        ["age", "sex", "fare"],
        task="classification",
        fallback=Fallback("b"),
    )
    source = ruleset.to_python()
    assert source[source.index("    # Rule 1") :] == (
        "    # Rule 1\n"
        '    if (age <= 30.0 or age != age) and (sex is None or sex == "f"):\n'
        '        return "a"\n'
        "    # Rule 2\n"
        "    if age != age and sex is not None:\n"
        '        return "b"\n'
        "    # Rule 3\n"
        "    if fare is None:\n"
        '        return "a"\n'
        "    # No rule holds.\n"
        '    return "b"\n'
    )


@pytest.mark.slow
def test_python_predicts_hostile_rows(arbitrary):
    X = arbitrary.hostile_rows()
    for ruleset in arbitrary.hostile_sets():
        assert_same(exported_function(ruleset), ruleset, X, arbitrary.answers(ruleset, X))


def test_python_nearest_rule_counts_unexpected_values(arbitrary):
    ruleset = RuleSet(
        [Rule([Missing(1), Interval(0, upper=1)], 1.0), Rule([Interval(0, 4)], 2.0)],
        ["x", "kind"],
        task="regression",
        domain=Domain((0, 0), (5, 2), [(1, ["a", "b"])]),
        fallback=Fallback(0.0, "nearest"),
    )
    X = pd.DataFrame({"x": [0.0, 2.0, 2.0, NAN, NAN], "kind": ["a", "a", None, None, "b"]})
    # A range of x is nearer than a value that should be missing.
    assert ruleset.predict(X).tolist() == [2.0, 2.0, 1.0, 1.0, 2.0]
    assert_same(exported_function(ruleset), ruleset, X, [2.0, 2.0, 1.0, 1.0, 2.0])


def test_python_function_raises_without_prediction():
    ruleset = RuleSet([Rule([Interval(0, upper=1)], 1.0)], NAMES, task="regression")
    with pytest.raises(ValueError, match="No rule holds for this row"):
        exported_function(ruleset)([2, 0])
    with pytest.raises(ValueError, match="No rule holds for this row"):
        exported_function(RuleSet([], NAMES, task="classification", classes=[]))([2, 0])


def test_python_function_abstains():
    rules = [Rule([Interval(0, upper=1)], True)]
    settings_ = {"feature_names": NAMES, "task": "classification", "classes": [True, False]}
    ruleset = RuleSet(rules, fallback=Fallback(True, "abstain", None, "?"), **settings_)
    assert exported_function(ruleset)([2, 0]) == "?"
    assert "-> bool | str:" in ruleset.to_python()
    assert exported_function(ruleset)([1, 0]) is True


def test_python_nearest_rule_works_without_usable_feature():
    # Both features of the domain are constant, so that all boxes are equally near.
    ruleset = RuleSet(
        [Rule([Interval(0, upper=1)], 1), Rule([Interval(0, lower=9)], LinearOutput(1, [(1, 2)]))],
        NAMES,
        task="regression",
        domain=Domain((1, 1), (1, 1)),
        fallback=Fallback(0, "nearest"),
    )
    assert exported_function(ruleset)([5, 5]) == ruleset.predict([[5, 5]])[0] == 1.0


def test_python_nearest_rule_survives_overflow_of_squares():
    ruleset = RuleSet(
        [
            Rule([Interval(0, upper=1)], 1),
            Rule([Interval(0, lower=-5, upper=0), Interval(1, 2, 3)], 2),
            Rule([Interval(0, lower=5e299)], 3),
        ],
        NAMES,
        task="regression",
        domain=Domain((0, 0), (2, 2)),
        fallback=Fallback(0, "nearest"),
    )
    function = exported_function(ruleset)
    X = [
        [4e299, 0],
        [2e299, 0],
        [2e160, 9e200],
        [INF, 0],
        [1 + 1e-180, 5.0],
        [1, INF],
        [-3, -1e308],
    ]
    assert [function(row) for row in X] == ruleset.predict(X).tolist()
    assert function(X[0]) == 3


def test_python_nearest_rule_works_in_many_dimensions():
    rng = np.random.default_rng(1)
    low = rng.normal(size=(12, 9))
    boxes = BoxTable(low, low + 0.3, np.zeros((12, 9)), np.ones((12, 9)))
    ruleset = RuleSet(
        [Rule(boxes.intervals(i), i) for i in range(12)],
        [f"f{j}" for j in range(9)],
        task="regression",
        domain=Domain([-3.0] * 9, np.linspace(1, 3, 9)),
        fallback=Fallback(-1, "nearest"),
    )
    X = rng.normal(size=(500, 9))
    X[rng.random(X.shape) < 0.1] = NAN
    function = exported_function(ruleset)
    assert [function(row) for row in X] == ruleset.predict(X).tolist()
    is_uncovered = ~ruleset.covers(X)
    assert set(ruleset.predict(X[is_uncovered])) >= {0, 1, 2, 3}


def test_python_sums_round_like_numpy():
    # The value of 0.1 + 0.2 + 0.3 depends on the order: 0.6000000000000001 from the left.
    rules = [Rule([Interval(0, lower=0)], v) for v in (0.1, 0.2, 0.3)]
    summed = RuleSet(rules, NAMES, task="regression", ordered=False, voting="sum")
    assert exported_function(summed)([1, 1]) == summed.predict([[1, 1]])[0] == 0.6000000000000001


def test_python_compares_decimals_as_floats():
    rules = [Rule([OneOf(0, [0.1, 2**53])], 1), Rule([OneOf(0, [0.3], negated=True)], 2)]
    ruleset = RuleSet(rules, NAMES, task="regression", fallback=Fallback(3))
    values = [Decimal(text) for text in ("0.1", "0.3", "0.10", "9007199254740993", "NaN", "7")]
    rows = [[value, 0] for value in values]
    expected = ruleset.predict(np.array(rows, dtype=object)).tolist()
    assert [exported_function(ruleset)(row) for row in rows] == expected == [1, 3, 1, 1, 3, 2]


def test_python_votes_handle_infinite_weights():
    rules = [
        Rule([], "a", None, LinearOutput(0, [(0, 1)])),
        Rule([], "b", None, LinearOutput(0, [(0, 1)])),
        Rule([], "b", None, LinearOutput(0, [(1, 1)])),
    ]
    for voting in ("votes", "probabilities"):
        ruleset = RuleSet(rules, NAMES, task="classification", ordered=False, voting=voting)
        X = [[math.inf, -math.inf], [math.inf, 1], [NAN, 1], [-math.inf, NAN], [1, -math.inf]]
        with np.errstate(invalid="ignore"):
            expected = ruleset.predict(X).tolist()
        assert [exported_function(ruleset)(row) for row in X] == expected
        assert set(expected) == {"a", "b"}


def test_python_code_of_many_rules_compiles():
    rules = [Rule([Interval(0, i, i + 1)], i) for i in range(1500)]
    settings_ = {"feature_names": NAMES, "task": "regression", "fallback": Fallback(-1)}
    assert exported_function(RuleSet(rules, **settings_))([1499.5, 0]) == 1499
    together = RuleSet(rules, ordered=False, voting="sum", **settings_)
    assert exported_function(together)([1499.5, 0]) == 1499


def test_python_code_shortens_numbers_with_rows():
    ruleset = RuleSet([Rule([Interval(0, upper=2.4499)], 1)], NAMES, task="regression")
    assert "petal_length_cm <= 2.4499:" in ruleset.to_python()
    assert "petal_length_cm <= 2.0:" in ruleset.to_python(X=[[1.9, 0], [3.0, 0]])


@pytest.mark.parametrize("name", ["", "two words", "class", "1st", "f()"])
def test_python_rejects_invalid_function_names(name):
    ruleset = RuleSet([], NAMES, task="regression")
    with pytest.raises(ValueError, match="function_name must be a name that Python allows"):
        ruleset.to_python(function_name=name)
