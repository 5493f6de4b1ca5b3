"""Formulas: parsing, printing, and evaluation with two and three values."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from skescore.attribution import Formula, FormulaClassifier, all_assignments, variable

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "attribution_formulas.json").read_text(encoding="utf-8")
)["formulas"]
N = 5

# --- oracles -------------------------------------------------------------------------------------


def truth(expr, row):
    """Return the value of nested lists on a row of booleans, one gate at a time."""
    operator, *operands = expr
    if operator == "var":
        return bool(row[operands[0]])
    values = [truth(operand, row) for operand in operands]
    if operator == "not":
        return not values[0]
    if operator == "xor":
        return values[0] != values[1]
    return all(values) if operator == "and" else any(values)


def kleene(expr, row):
    """Return the value in strong Kleene logic over False, None and True."""
    operator, *operands = expr
    if operator == "var":
        return row[operands[0]]
    values = [kleene(operand, row) for operand in operands]
    if operator == "not":
        return None if values[0] is None else not values[0]
    if operator == "xor":
        return None if None in values else values[0] != values[1]
    decisive = operator == "or"  # this value decides the gate for any other operand
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def coded(value):
    return {False: -1, None: 0, True: 1}[value]


def grow(children):
    pair = st.tuples(children, children)
    return st.one_of(
        children.map(lambda e: ["not", e]),
        *(pair.map(lambda p, op=op: [op, *p]) for op in ("and", "or", "xor")),
    )


expressions = st.recursive(st.integers(0, N - 1).map(lambda i: ["var", i]), grow, max_leaves=9)
rows_of_three = st.lists(st.sampled_from([False, None, True]), min_size=N, max_size=N)
ALL = all_assignments(N)

# --- reference cases -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["id"])
def test_formula_agrees_with_reference(case):
    formula = Formula.parse(case["text"], n_inputs=12)
    assert formula == Formula.from_expr(case["expr"], n_inputs=12)
    assert formula.to_expr() == case["expr"]
    assert formula.is_read_once == case["read_once"]
    assert (formula.arity, formula.n_leaves) == (case["arity"], case["leaves"])
    assert case["family"] != "monotone" or formula.is_monotone
    X = np.array([[int(c) for c in row["x"]] for row in case["cases"]])
    expected = [row["value"] for row in case["cases"]]
    np.testing.assert_array_equal(formula.evaluate(X), expected)
    np.testing.assert_array_equal(formula.predict(X), expected)
    codes = np.array([["0u1".index(c) - 1 for c in row["x"]] for row in case["kleene"]])
    expected = [0 if row["value"] is None else 2 * row["value"] - 1 for row in case["kleene"]]
    np.testing.assert_array_equal(formula.evaluate_kleene(codes), expected)
    np.testing.assert_array_equal(formula.kleene(codes > 0, codes == 0), expected)


# --- text and lists ------------------------------------------------------------------------------


@given(expressions)
def test_formula_round_trips_through_text_and_lists(expr):
    formula = Formula.from_expr(expr, n_inputs=N)
    assert formula.to_expr() == expr
    assert Formula.parse(str(formula), n_inputs=N) == formula
    namespace = {"Formula": Formula}
    text, _, n_inputs = repr(formula).removeprefix("Formula.parse(").rpartition(", n_inputs=")
    assert namespace["Formula"].parse(text.strip("'"), int(n_inputs.rstrip(")"))) == formula


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("x1 & x2 | x3", "(x1 & x2) | x3"),
        ("x1 | x2 & x3", "x1 | (x2 & x3)"),
        ("x1 ^ x2 & x3", "x1 ^ (x2 & x3)"),
        ("x1 | x2 ^ x3", "x1 | (x2 ^ x3)"),
        ("~x1 & x2", "(~x1) & x2"),
        ("x1 & x2 & x3", "(x1 & x2) & x3"),
        ("x1 ^ x2 ^ x3", "(x1 ^ x2) ^ x3"),
        ("not x1 and x2 xor x3 or x4", "(((~x1) & x2) ^ x3) | x4"),
        ("NOT X1 Or X2", "~x1 | x2"),
        ("¬x1 ∧ x2 ⊕ x3 \N{LOGICAL OR} x4", "~x1 & x2 ^ x3 | x4"),
        ("~~x1", "~(~x1)"),
        ("x1&~(x2|x3)", " x1 \n & ~ ( x2 | x3 ) "),
        ("((x1))", "x1"),
    ],
)
def test_parse_respects_precedence(text, same):
    assert Formula.parse(text) == Formula.parse(same)


@given(expressions)
def test_formula_operators_bind_like_python(expr):
    names = {f"x{i + 1}": variable(i, N) for i in range(N)}
    text = str(Formula.from_expr(expr, N))
    assert eval(text, names) == Formula.parse(text, N)


def test_formula_str_and_repr_can_be_read_back():
    assert str(Formula.parse("((x1 & x2) & x3) & ~(x4 | ~x5)")) == "x1 & x2 & x3 & ~(x4 | ~x5)"
    assert str(Formula.parse("x1 & (x2 & x3)")) == "x1 & (x2 & x3)"
    assert str(Formula.parse("x1 & x2 | x3")) == "(x1 & x2) | x3"
    assert repr(Formula.parse("~~x2", 3)) == "Formula.parse('~~x2', n_inputs=3)"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the text ends where a variable is expected at position 1"),
        ("   ", "a variable is expected at position 4"),
        ("x1 &", "a variable is expected at position 5"),
        ("(x1 & x2", "without a closing bracket at position 1"),
        ("x1 & (x2 | (x3)", "without a closing bracket at position 6"),
        ("x1 & x2)", "without an opening bracket at position 8"),
        ("x1 x2", "'x2' instead of an operator at position 4"),
        ("x1 NOT x2", "'NOT' instead of an operator at position 4"),
        ("x1 ~ x2", "'~' instead of an operator at position 4"),
        ("x1 & | x2", "'|' instead of a variable at position 6"),
        ("x1 + x2", r"unknown token '\+' at position 4"),
        ("x1 & y", "unknown token 'y' at position 6"),
        ("x1 & x", "unknown token 'x' at position 6"),
        ("True & x1", "unknown token 'True' at position 1"),
        ("x1 & x0", "the first variable is x1, at position 6"),
        ("x01", "unknown token 'x01'"),
        ("()", "'\\)' instead of a variable at position 2"),
    ],
)
def test_parse_rejects_invalid_texts(text, says):
    with pytest.raises(ValueError, match=says.replace("|", "\\|")):
        Formula.parse(text)


@pytest.mark.parametrize(
    "expr",
    [
        None,
        "x1",
        [],
        ["var"],
        ["var", -1],
        ["var", 1.0],
        ["var", True],
        ["var", "x1"],
        ["and", ["var", 0]],
        ["and", ["var", 0], ["var", 1], ["var", 2]],
        ["nand", ["var", 0], ["var", 1]],
        ["not", ["var", 0], ["var", 1]],
        ["not", "x1"],
        [["var", 0]],
        [None, 1],
    ],
    ids=repr,
)
def test_from_expr_rejects_invalid_lists(expr):
    with pytest.raises(ValueError, match="expr must be"):
        Formula.from_expr(expr)


def test_from_expr_accepts_tuples():
    assert Formula.from_expr(("and", ("var", 0), ("var", 1))) == Formula.parse("x1 & x2")


def test_formula_accepts_any_depth():
    text = "~(" * 20_000 + "x1" + ")" * 20_000 + " & x2" * 20_000
    formula = Formula.parse(text)
    assert Formula.from_expr(formula.to_expr()) == formula
    assert Formula.parse(str(formula)) == formula
    assert formula.evaluate([[1, 1], [0, 1], [1, 0]]).tolist() == [True, False, False]
    assert formula.kleene([1, 1], [0, 1]) == 0


def test_parse_rejects_lists():
    with pytest.raises(TypeError, match=r"Formula\.from_expr"):
        Formula.parse(["var", 0])


# --- equality, copies and immutability -----------------------------------------------------------


@given(expressions, expressions)
def test_formula_operators_build_formulas(left, right):
    a, b = Formula.from_expr(left, N), Formula.from_expr(right, N)
    assert (a & b).to_expr() == ["and", left, right]
    assert (a | b).to_expr() == ["or", left, right]
    assert (a ^ b).to_expr() == ["xor", left, right]
    assert (~a).to_expr() == ["not", left]
    assert (a == b) == (left == right)
    assert a != b or hash(a) == hash(b)


def test_formula_is_immutable_and_pickles():
    formula = Formula.parse("x1 & ~x2", 4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        formula.n_inputs = 3
    assert formula.variables == (0, 1)  # the cache must not affect copies
    for other in (
        copy.deepcopy(formula),
        pickle.loads(pickle.dumps(formula)),
        clone(formula, safe=False),
    ):
        assert other == formula
        assert hash(other) == hash(formula)
    assert formula != Formula.parse("x1 & ~x2", 5)
    assert formula != "x1 & ~x2"


def test_formula_infers_number_of_inputs():
    assert Formula.parse("x2 | x7").n_inputs == 7
    assert variable(3).n_inputs == 4
    assert Formula.parse("x2 | x7", 9).variables == (1, 6)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Formula.parse("x1 & x5", 4), "n_inputs must exceed .* got 4 with x5"),
        (lambda: Formula.parse("x1", 0), "n_inputs must be an integer of 1 or more, got 0"),
        (lambda: Formula.parse("x1", 2.0), r"got 2\.0"),
        (lambda: variable(-1), "index must be an integer of 0 or more, got -1"),
        (lambda: variable(2, 2), "n_inputs must exceed"),
        (lambda: variable(0, 2) & variable(0, 3), "same n_inputs, got 2 and 3"),
        (lambda: Formula((), 1), "gates must be one tree"),
        (lambda: Formula((("var", 0, -1), ("var", 0, -1)), 1), "gates must be one tree"),
        (lambda: Formula((("var", 0, -1), ("and", 0, 0)), 1), "gates must be one tree"),
        (lambda: Formula((("var", 0, -1), ("not", 1, -1)), 1), "gates must be one tree"),
        (lambda: Formula((("var", 0, -1), ("nor", 0, -1)), 1), "gates must be one tree"),
    ],
)
def test_formula_rejects_invalid_arguments(make, says):
    with pytest.raises((TypeError, ValueError), match=says):
        make()


def test_formula_has_no_truth_value():
    a, b = variable(0, 2), variable(1, 2)
    with pytest.raises(TypeError, match="no truth value"):
        a and b  # noqa: B018
    with pytest.raises(TypeError, match="unsupported operand"):
        a & True


# --- evaluation ----------------------------------------------------------------------------------


@given(expressions)
def test_evaluate_agrees_with_truth_tables(expr):
    formula = Formula.from_expr(expr, N)
    expected = [truth(expr, row) for row in ALL]
    for X in (ALL, ALL.astype(bool), ALL.astype(float), pd.DataFrame(ALL), ALL.tolist()):
        values = formula.evaluate(X)
        assert values.dtype == bool
        np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(formula.truth_table(), expected)
    assert formula.evaluate(ALL[7]) == expected[7]
    assert formula.evaluate(ALL[:0]).shape == (0,)


@given(expressions, st.lists(rows_of_three, min_size=1, max_size=6))
def test_evaluate_kleene_agrees_with_kleene_logic(expr, rows):
    formula = Formula.from_expr(expr, N)
    codes = np.array([[coded(value) for value in row] for row in rows])
    values = formula.evaluate_kleene(codes)
    assert values.dtype == np.int8
    assert values.tolist() == [coded(kleene(expr, row)) for row in rows]
    np.testing.assert_array_equal(formula.kleene(codes == 1, codes == 0), values)
    assert formula.evaluate_kleene(codes[0]) == values[0]


@given(expressions, rows_of_three)
def test_evaluate_kleene_agrees_with_all_completions(expr, row):
    formula = Formula.from_expr(expr, N)
    choices = [[value] if value is not None else [False, True] for value in row]
    completions = {truth(expr, choice) for choice in itertools.product(*choices)}
    value = formula.evaluate_kleene([coded(v) for v in row])
    if value != 0:
        assert completions == {value > 0}
    elif formula.is_read_once:
        assert completions == {False, True}


def test_evaluate_kleene_leaves_repeated_variables_unassigned():
    assert Formula.parse("x1 | ~x1").evaluate_kleene([0]) == 0


def test_kleene_broadcasts_masks_and_rows():
    formula = Formula.parse("x1 & x2")
    X, masks = [[0, 1], [1, 1]], [[0, 1], [1, 0], [0, 0]]
    assert formula.kleene(X, [0, 1]).tolist() == [-1, 0]
    assert formula.kleene([1, 1], masks).tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match=r"mask must have the shape of X, \(2, 2\)"):
        formula.kleene(X, masks)


def test_evaluate_returns_new_arrays():
    formula = Formula.parse("x1", 2)
    X = np.array([[True, False]])
    formula.evaluate(X)[:] = False
    V = np.array([[1, 0]], dtype=np.int8)
    formula.evaluate_kleene(V)[:] = 0
    assert X[0, 0]
    assert V[0, 0] == 1


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ([[0, 2]], "X must hold 0 or 1, got 2 in row 0, column 1"),
        ([[0, 1], [1, -1]], r"got -1 in row 1, column 1\. \(X \+ 1\) / 2"),
        ([[0, np.nan]], "got nan in row 0, column 1"),
        ([0, 0.5], r"got 0\.5 in column 1"),
        ([["0", "1"]], "got '0' in row 0, column 0"),
        ([[0, None]], "got None"),
        ([[0, 1, 1]], r"X must have shape \(n_rows, 2\), got \(1, 3\)"),
        ([[[0, 1]]], r"got \(1, 1, 2\)"),
        (1, r"got \(\)"),
    ],
)
def test_evaluate_rejects_invalid_rows(X, says):
    formula = Formula.parse("x1 & x2")
    for call in (formula.evaluate, formula.predict, lambda X: formula.kleene(X, [0, 0])):
        with pytest.raises(ValueError, match=says):
            call(X)


def test_evaluate_kleene_rejects_invalid_values():
    formula = Formula.parse("x1 & x2")
    with pytest.raises(
        ValueError, match=r"V must hold -1 \(false\), 0 .* got 2 in row 0, column 1"
    ):
        formula.evaluate_kleene([[0, 2]])
    with pytest.raises(ValueError, match="got nan"):
        formula.evaluate_kleene([[np.nan, 1]])
    with pytest.raises(ValueError, match="mask must hold 0 or 1, got 2"):
        formula.kleene([[0, 1]], [[0, 2]])


# --- truth tables --------------------------------------------------------------------------------


def test_all_assignments_count_in_binary():
    assert all_assignments(0).shape == (1, 0)
    for code, row in enumerate(all_assignments(6)):
        assert [int(bit) for bit in f"{code:06b}"[::-1]] == row.tolist()
    formula = Formula.parse("x2 & ~x4", 4)
    table = formula.truth_table(variables=(3, 1))
    assert table.tolist() == [False, False, True, False]  # x4 first, then x2
    assert formula.truth_table(variables=()).tolist() == [False]


@given(expressions)
def test_formula_finds_relevant_variables_and_monotonicity(expr):
    formula = Formula.from_expr(expr, N)
    values = {tuple(row): truth(expr, row) for row in ALL.tolist()}
    relevant, monotone = set(), True
    for row, value in values.items():
        for i in range(N):
            other = values[(*row[:i], 1 - row[i], *row[i + 1 :])]
            if other != value:
                relevant.add(i)
                monotone &= bool(value) == bool(row[i])
    assert formula.relevant_variables == tuple(sorted(relevant))
    assert formula.is_monotone == monotone
    assert set(formula.relevant_variables) <= set(formula.variables)


def test_truth_table_rejects_too_many_inputs():
    wide = Formula.parse(" & ".join(f"x{i + 1}" for i in range(40)))
    with pytest.raises(ValueError, match="at most 24 inputs, got 40"):
        wide.truth_table()
    with pytest.raises(ValueError, match="n_inputs must be at most 24, got 25"):
        all_assignments(25)
    with pytest.raises(ValueError, match="distinct and from 0 to 39"):
        wide.truth_table(variables=(1, 1))
    with pytest.raises(ValueError, match="distinct and from 0 to 39"):
        wide.truth_table(variables=(40,))
    assert wide.is_monotone  # since it has only conjunctions
    assert len(wide.relevant_variables) == 40
    assert wide.truth_table(variables=(0, 1)).tolist() == [False] * 4


# --- scikit-learn --------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", ["01", "+-1"])
def test_as_classifier_follows_scikit_learn(coding):
    formula = Formula.parse("(x1 & x2) | ~x3", 5)
    X = ALL.astype(float) if coding == "01" else 2.0 * ALL - 1
    model = formula.as_classifier(coding=coding)
    expected = formula.evaluate(ALL).astype(int)
    assert is_classifier(model)
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 5
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict_proba(X), np.column_stack([1 - expected, expected]))
    assert model.score(X, expected) == 1
    assert clone(model).get_params() == {"formula": formula, "coding": coding}
    assert cross_val_score(clone(model), X, expected, cv=3).tolist() == [1, 1, 1]
    tree = DecisionTreeClassifier(random_state=0).fit(X, model.predict(X))
    assert tree.score(X, expected) == 1


def test_as_classifier_rejects_invalid_arguments():
    formula = Formula.parse("x1 & x2")
    with pytest.raises(ValueError, match=r"coding must be one of '01', '\+-1', got '-1'"):
        formula.as_classifier(coding="-1")
    with pytest.raises(TypeError, match="formula must be a Formula, got 'x1'"):
        FormulaClassifier("x1").fit()
    with pytest.raises(ValueError, match=r"X must hold -1 or \+1, got \[0, 1\]"):
        formula.as_classifier(coding="+-1").predict([[0, 1]])
    with pytest.raises(ValueError, match="X must hold 0 or 1, got -1"):
        formula.as_classifier().predict([[-1, 1]])
