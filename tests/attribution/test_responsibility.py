"""Degrees of responsibility: every method compared with the definition."""

from __future__ import annotations

import itertools
import json
import tracemalloc
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from skescore.attribution import (
    Formula,
    Responsibilities,
    all_assignments,
    chain_formula,
    nearest_contrasts,
    paper_formula,
    random_formula,
    responsibility,
)

REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "attribution_formulas.json").read_text(encoding="utf-8")
)["formulas"]

# --- the definition, written out -----------------------------------------------------------------


def subsets(items):
    items = list(items)
    for size in range(len(items) + 1):
        yield from itertools.combinations(items, size)


def is_minimal(flips, members):
    """Return whether flipping all members changes the decision, but no part of them does."""
    return flips(members) and not any(
        flips(part) for part in subsets(members) if len(part) < len(members)
    )


def by_definition(flips, n):
    """Return the size of a smallest witness of each input, -1 without one.

    By Definition 4 of the paper, flipping a part of the witness W does not change the decision,
    and flipping W with the input does. For the smallest W, the set is then minimal.
    """
    sizes = []
    for i in range(n):
        witnesses = (
            len(w)
            for w in subsets(j for j in range(n) if j != i)
            if not any(flips(part) for part in subsets(w)) and flips((*w, i))
        )
        sizes.append(next(witnesses, -1))  # subsets are ordered by size
    return sizes


def flips_of(decide, row):
    """Return a function that states whether flipping some inputs of a row changes the decision."""
    row = np.asarray(row)
    memory = {}

    def flips(members):
        key = frozenset(members)
        if key not in memory:
            other = row.copy()
            other[list(members)] ^= 1
            memory[key] = bool(decide(other) != decide(row))
        return memory[key]

    return flips


def check_witnesses(attribution, flips_by_row):
    """Check that witnesses have the reported sizes and form a minimal flip set with their input."""
    for row, flips in enumerate(flips_by_row):
        for i, witness in enumerate(attribution.witnesses[row]):
            size = attribution.witness_sizes[row, i]
            assert (witness is None) == (size < 0)
            if witness is not None:
                assert i not in witness
                assert list(witness) == sorted(set(witness))
                assert len(witness) == size
                assert is_minimal(flips, (*witness, i))


formulas = st.builds(
    lambda arity, family, extra, seed: random_formula(
        arity, n_inputs=6, family=family, read_once=not extra, extra=extra, random_state=seed
    ),
    st.integers(2, 5),
    st.sampled_from(["monotone", "non-monotone"]),
    st.integers(0, 3),
    st.integers(0, 10_000),
)
rows6 = st.lists(st.integers(0, 1), min_size=6, max_size=6)

# --- reference cases -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: case["id"])
def test_responsibility_agrees_with_reference(case):
    formula = Formula.from_expr(case["expr"], 12)
    X = np.array([[int(c) for c in row["x"]] for row in case["cases"]])
    expected = np.array(
        [[-1 if size is None else size for size in row["witness_size"]] for row in case["cases"]]
    )
    methods = ["auto", "exhaustive"] + ["linear"] * case["read_once"]
    for method in methods:
        attribution = responsibility(formula, X, method=method, return_witnesses=True)
        np.testing.assert_array_equal(attribution.witness_sizes, expected)
        values = np.where(expected < 0, 0, 1 / (1.0 + np.maximum(expected, 0)))
        np.testing.assert_array_equal(attribution.values, values)
        assert attribution.resolved.all()
        assert attribution.n_queries == 0
        np.testing.assert_array_equal(responsibility(formula, X, method=method), values)
        for row, sizes, x in zip(attribution.witnesses, expected.tolist(), X, strict=True):
            assert [-1 if witness is None else len(witness) for witness in row] == sizes
            for i, witness in enumerate(row):
                if witness is not None:  # the set flips, and no part of it does
                    members = (*witness, i)
                    flips = flips_of(formula.evaluate, x)
                    assert flips(members)
                    assert not any(
                        flips(part) for part in itertools.combinations(members, len(members) - 1)
                    )


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        # Figure 1 of the paper, and its remarks on conjunctions and disjunctions of two.
        ("x1 & (x2 & x3)", "000", [1 / 3] * 3),
        ("x1 & x2", "11", [1, 1]),
        ("x1 & x2", "01", [1, 0]),
        ("x1 & x2", "00", [1 / 2, 1 / 2]),
        ("x1 | x2", "11", [1 / 2, 1 / 2]),
        ("x1 | x2", "00", [1, 1]),
        ("x1 ^ x2", "10", [1, 1]),
        ("~x1", "0", [1]),
        # if x1 then x2 else x3: without minimality x3 would count in the first row.
        ("(x1 & x2) | (~x1 & x3)", "110", [1, 1, 0]),
        ("(x1 & x2) | (~x1 & x3)", "111", [1 / 2, 1, 1 / 2]),
        ("x1 & ~x1", "1", [0]),
        ("x1 | ~x1 | x2", "01", [0, 0]),
    ],
)
def test_responsibility_equals_hand_computed_values(text, row, expected):
    formula = Formula.parse(text)
    assert responsibility(formula, [int(c) for c in row]).tolist() == expected


# --- comparison of methods with the definition ---------------------------------------------------


@settings(max_examples=40)
@given(formulas, st.lists(rows6, min_size=1, max_size=3))
def test_responsibility_equals_definition_by_all_methods(formula, rows):
    X = np.array(rows)
    flips = [flips_of(formula.evaluate, row) for row in X]
    expected = [by_definition(f, 6) for f in flips]
    black_box = formula.predict
    results = {
        "auto": responsibility(formula, X, return_witnesses=True),
        "exhaustive": responsibility(formula, X, method="exhaustive", return_witnesses=True),
        "levels": responsibility(formula, X, method="levelwise", max_size=6, return_witnesses=True),
        "table": responsibility(black_box, X, return_witnesses=True),
        "contrast": responsibility(black_box, X, contrast=1 - X, return_witnesses=True),
    }
    if formula.is_read_once:
        results["linear"] = responsibility(formula, X, method="linear", return_witnesses=True)
        assert results["auto"].method == "linear"
    for result in results.values():
        assert result.witness_sizes.tolist() == expected
        assert result.resolved.all()
        np.testing.assert_array_equal(result.upper, result.values)
        check_witnesses(result, flips)


def all_flips(changes):
    """Return degrees of rows whose table (n_rows, 2**n) states which flips change the decision."""
    n_rows, n_sets = changes.shape
    n = n_sets.bit_length() - 1
    numbers = np.arange(n_rows)[:, None]
    rows, contrast = (np.hstack([np.full((n_rows, n), bit), numbers]) for bit in (0, 1))

    def decide(X):
        return changes[X[:, n], X[:, :n] @ (1 << np.arange(n))]

    attribution = responsibility(
        decide, rows, contrast=contrast, method="exhaustive", return_witnesses=True
    )
    assert (attribution.values[:, n] == 0).all()
    return replace(
        attribution,
        values=attribution.values[:, :n],
        witness_sizes=attribution.witness_sizes[:, :n],
    )


@pytest.mark.slow
def test_responsibility_linear_equals_exhaustive():
    """The linear algorithm equals the exhaustive one: one call per arity, with a row per case."""
    rng = np.random.default_rng(0)
    for arity in range(3, 11):
        masks = np.arange(1 << arity)
        changes, expected = [], []
        for number in range(400):
            formula = random_formula(
                arity,
                n_inputs=arity,
                family=("monotone", "non-monotone")[number % 2],
                shape=("uniform", "balanced", "chain", "uniform")[number % 4],
                random_state=rng,
            )
            table = formula.truth_table()
            code = int(rng.integers(1 << arity))
            row = code >> np.arange(arity) & 1
            expected.append(responsibility(formula, row, method="linear"))
            changes.append(table[code ^ masks] != table[code])
        np.testing.assert_array_equal(all_flips(np.array(changes)).values, expected)


@settings(max_examples=30)
@given(st.integers(1, 5), st.integers(1, 70), st.integers(0, 10_000), st.booleans())
def test_responsibility_equals_definition_for_any_table(n, n_rows, seed, mostly_same):
    """The kernel works on arbitrary tables, and beyond 64 rows."""
    rng = np.random.default_rng(seed)
    changes = rng.random((n_rows, 1 << n)) < (0.15 if mostly_same else 0.5)
    changes[:, 0] = False
    result = all_flips(changes)
    for row in range(n_rows):

        def flips(members, row=row):
            return bool(changes[row, sum(1 << i for i in members)])

        minimal = [set(m) for m in subsets(range(n)) if is_minimal(flips, m)]
        for i in range(n):
            holding = [m for m in minimal if i in m]
            witness = result.witnesses[row][i]
            assert result.witness_sizes[row, i] == min(map(len, holding), default=0) - 1
            assert {i, *witness} in holding if holding else witness is None


def test_responsibility_is_equal_in_blocks(monkeypatch):
    formula = random_formula(7, read_once=False, random_state=3)
    X = all_assignments(12)[::5]
    expected = responsibility(formula, X, return_witnesses=True)
    monkeypatch.setattr("skescore.attribution._responsibility._BUDGET", 1 << 6)
    attribution = responsibility(formula, X, return_witnesses=True)
    np.testing.assert_array_equal(attribution.values, expected.values)
    assert attribution.witnesses == expected.witnesses
    read_once = random_formula(7, random_state=3)
    expected = responsibility(read_once, X, return_witnesses=True)
    monkeypatch.setattr("skescore.attribution._responsibility._BUDGET", 1 << 12)
    attribution = responsibility(read_once, X, return_witnesses=True)
    np.testing.assert_array_equal(attribution.values, expected.values)
    assert attribution.witnesses == expected.witnesses


def test_responsibility_of_all_assignments_needs_little_memory():
    X = all_assignments(12)
    read_once = random_formula(12, random_state=2)
    tracemalloc.start()
    attribution = responsibility(read_once, X, method="exhaustive")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(attribution, responsibility(read_once, X, method="linear"))
    assert peak < 100e6  # a plain enumeration would need 4096 x 4096 x 12 bytes
    general = random_formula(12, read_once=False, extra=6, random_state=2)
    attribution = responsibility(general, X, return_witnesses=True)
    single = np.array([general.evaluate(X ^ (np.arange(12) == i)) for i in range(12)]).T
    np.testing.assert_array_equal(attribution.values == 1, single != general.evaluate(X)[:, None])
    expected = responsibility(
        general, X[1234], method="levelwise", max_size=12, return_witnesses=True
    )
    np.testing.assert_array_equal(attribution.values[1234], expected.values)


# --- properties ----------------------------------------------------------------------------------


@given(formulas, rows6, st.randoms(use_true_random=False))
def test_responsibility_satisfies_identities(formula, row, random):
    rho = responsibility(formula, row)
    flips = flips_of(formula.evaluate, row)
    np.testing.assert_array_equal(rho == 1, [flips((i,)) for i in range(6)])
    inverse = np.divide(1, rho, out=np.zeros(6), where=rho > 0)
    np.testing.assert_array_equal(inverse, np.round(inverse))
    # Irrelevant inputs change nothing, wherever they are.
    wide = Formula.from_expr(formula.to_expr(), 9)
    np.testing.assert_array_equal(responsibility(wide, [*row, 1, 0, 1]), [*rho, 0, 0, 0])
    # Renaming inputs permutes the result.
    order = list(range(6))
    random.shuffle(order)
    gates = tuple(
        (kind, order[left] if kind == "var" else left, right) for kind, left, right in formula.gates
    )
    moved = np.zeros(6, dtype=int)
    moved[order] = row
    np.testing.assert_array_equal(responsibility(Formula(gates, 6), moved)[order], rho)
    # The dual on the opposite row, and the negation, have the same degrees.
    swap = {"and": "or", "or": "and"}
    if not any(kind == "xor" for kind, _, _ in formula.gates):
        dual = Formula(tuple((swap.get(kind, kind), a, b) for kind, a, b in formula.gates), 6)
        np.testing.assert_array_equal(responsibility(dual, 1 - np.array(row)), rho)
    np.testing.assert_array_equal(responsibility(~formula, row), rho)


@given(formulas, st.lists(rows6, min_size=2, max_size=5), st.integers(1, 40))
def test_responsibility_ignores_batches_and_order(formula, rows, max_batch):
    X = np.array(rows)
    for method in ("exhaustive", "levelwise"):
        call = {"method": method, "max_size": 2, "return_witnesses": True}
        expected = responsibility(formula.predict, X, **call)
        attribution = responsibility(formula.predict, X[::-1], max_batch=max_batch, **call)
        np.testing.assert_array_equal(attribution.values[::-1], expected.values)
        np.testing.assert_array_equal(attribution.resolved[::-1], expected.resolved)
        assert attribution.witnesses[::-1] == expected.witnesses
        assert attribution.n_queries == expected.n_queries
        single = responsibility(formula.predict, X[:1], **call)
        np.testing.assert_array_equal(single.values, expected.values[:1])


@pytest.mark.parametrize("kind", ["array", "list", "bool", "frame", "float"])
def test_responsibility_accepts_rows_of_all_types(kind):
    formula = Formula.parse("(x1 & x2) | ~x3", 4)
    X = all_assignments(4)
    rows = {
        "array": X,
        "list": X.tolist(),
        "bool": X.astype(bool),
        "frame": pd.DataFrame(X, columns=list("abcd")),
        "float": X.astype(float),
    }[kind]
    expected = [by_definition(flips_of(formula.evaluate, row), 4) for row in X.astype(int)]
    for model in (formula, formula.predict, formula.as_classifier()):
        attribution = responsibility(model, rows, return_witnesses=True)
        assert attribution.witness_sizes.tolist() == expected


def test_responsibility_returns_smallest_witnesses():
    """x4 needs one of two ways to change the left side: x3 alone, or x1 with x2."""
    for text in ("((x1 | x2) & x3) | x4", "(x3 & (x1 | x2)) | x4"):
        for method in ("linear", "exhaustive"):
            attribution = responsibility(
                Formula.parse(text), [1, 1, 1, 1], method=method, return_witnesses=True
            )
            assert attribution.witnesses == ((1, 3), (0, 3), (3,), (2,))


def test_responsibility_accepts_one_row_and_no_rows():
    formula = Formula.parse("x1 & x2", 3)
    for model in (formula, formula.predict):
        attribution = responsibility(model, [0, 0, 1], return_witnesses=True)
        assert isinstance(attribution, Responsibilities)
        np.testing.assert_array_equal(np.asarray(attribution), attribution.values)
        assert attribution.values.tolist() == [0.5, 0.5, 0]
        assert attribution.witness_sizes.tolist() == [1, 1, -1]
        assert attribution.witnesses == ((1,), (0,), None)
        assert attribution.resolved.shape == attribution.upper.shape == (3,)
    assert responsibility(formula, np.zeros((0, 3))).shape == (0, 3)
    assert responsibility(formula, np.zeros((0, 3)), return_witnesses=True).witnesses == ()
    general = Formula.parse("x1 & x1", 3)
    assert responsibility(general, np.zeros((0, 3))).shape == (0, 3)


def test_responsibility_supports_wide_read_once_formulas():
    """With a thousand variables, only the linear algorithm is feasible."""
    conjunction = chain_formula(2, family="monotone", n_inputs=1000)
    for index in range(2, 1000):
        conjunction = conjunction & Formula((("var", index, -1),), 1000)
    row = np.ones(1000, dtype=int)
    row[:400] = 0
    attribution = responsibility(conjunction, [row, 1 - row, row | 1], return_witnesses=True)
    assert attribution.values[0].tolist() == [1 / 400] * 400 + [0] * 600
    assert attribution.values[1].tolist() == [0] * 400 + [1 / 600] * 600
    assert attribution.values[2].tolist() == [1] * 1000
    assert attribution.witnesses[0][7] == tuple(i for i in range(400) if i != 7)


# --- any black box, between a row and a contrast -------------------------------------------------


def lattice_flips(predict, row, contrast):
    def flips(members):
        other = np.array(row)
        other[list(members)] = np.asarray(contrast)[list(members)]
        return bool(predict(other[None, :])[0] != predict(np.array(row)[None, :])[0])

    memory = {}

    def remembered(members):
        key = frozenset(members)
        if key not in memory:
            memory[key] = flips(members)
        return memory[key]

    return remembered


def test_responsibility_supports_several_classes():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(8, max_depth=3, random_state=0).fit(X, y)
    rows, contrast = X[[0, 60, 70, 110, 140]], X[[120, 3, 133, 70, 20]]
    contrast[3, 2] = rows[3, 2]  # equal values are never responsible
    flips = [lattice_flips(model.predict, *pair) for pair in zip(rows, contrast, strict=True)]
    expected = [by_definition(f, 4) for f in flips]
    assert len({tuple(row) for row in expected}) >= 3
    for method in ("auto", "exhaustive", "levelwise"):
        attribution = responsibility(
            model, rows, contrast=contrast, method=method, max_size=4, return_witnesses=True
        )
        assert attribution.witness_sizes.tolist() == expected
        check_witnesses(attribution, flips)
        assert attribution.resolved.all()
    assert attribution.witness_sizes[3, 2] == -1
    names = np.array(["setosa", "versicolor", "virginica"])
    for other in (model.predict_proba, lambda Z: names[model.predict(Z)]):
        attribution = responsibility(other, rows, contrast=contrast, return_witnesses=True)
        assert attribution.witness_sizes.tolist() == expected
    median = np.median(X, axis=0)
    shared = responsibility(model, rows, contrast=median)
    repeated = responsibility(model, rows, contrast=np.tile(median, (5, 1)))
    np.testing.assert_array_equal(shared, repeated)
    np.testing.assert_array_equal(
        shared, [responsibility(model, row, contrast=median) for row in rows]
    )


def test_responsibility_passes_frames_unchanged_to_model():
    frame = pd.DataFrame(
        {
            "color": pd.Categorical(["red", "blue", "red", "green"] * 5),
            "size": [1, 2, 3, 4] * 5,
            "kind": ["a", "b", "b", "a"] * 5,
            "weight": np.linspace(0, 1, 20),
        }
    )
    y = ((frame["color"] == "red") & (frame["size"] > 1)) | (frame["kind"] == "a")
    queries = []

    class Model:
        def predict(self, X):
            queries.append(X)
            return ((X["color"] == "red") & (X["size"] > 1)) | (X["kind"] == "a")

    rows = frame.iloc[[0, 1, 2]]
    attribution = responsibility(Model(), rows, contrast=frame.iloc[3])
    # The contrast is (green, 4, a). The first row has "a" as well; the second one becomes "a"; the
    # third one stays true unless it is no longer red, or else becomes "a".
    assert attribution.tolist() == [[0] * 4, [0, 0, 1, 0], [1, 0, 0, 0]]
    for X in queries:
        pd.testing.assert_series_equal(X.dtypes, frame.dtypes)
    contrast = pd.DataFrame({"weight": [0.5], "kind": ["b"], "size": [1.5], "color": ["blue"]})
    attribution = responsibility(Model(), rows, contrast=contrast, return_witnesses=True)
    assert attribution.values.tolist() == [[0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    model = make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(random_state=0)
    ).fit(frame, y)
    flips = lattice_flips(
        lambda Z: model.predict(pd.DataFrame(Z, columns=frame.columns)),
        rows.iloc[2].to_numpy(),
        frame.iloc[3].to_numpy(),
    )
    attribution = responsibility(
        model, rows.iloc[2:], contrast=frame.iloc[3], return_witnesses=True
    )
    assert attribution.witness_sizes[0].tolist() == by_definition(flips, 4)
    with pytest.raises(ValueError, match="contrast must fit the columns of X, got 'pink'"):
        responsibility(model, rows, contrast=["pink", 1, "a", 0.5])
    for column, value in enumerate(["pink", "heavy"]):  # the first row fits, the last does not
        contrasts = frame.iloc[: len(rows)].astype(object)
        contrasts.iloc[-1, column] = value
        with pytest.raises(ValueError, match=f"columns of X, got '{value}'"):
            responsibility(model, rows, contrast=contrasts)
    with pytest.raises(ValueError, match="but 'weight' is missing"):
        responsibility(model, rows, contrast=frame.iloc[:1].drop(columns="weight"))


def test_responsibility_keeps_names_of_one_row_of_frame():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [0.5, 1.5]})

    def predict(X):
        assert list(X.columns) == ["a", "b", "c"]
        assert pd.api.types.is_integer_dtype(X["a"].dtype)
        return (X["a"] > 1) & (X["b"] == "y")

    assert responsibility(predict, frame.iloc[1], contrast=frame.iloc[0]).tolist() == [1, 1, 0]
    assert responsibility(predict, frame.iloc[0], contrast=frame.iloc[1]).tolist() == [0.5, 0.5, 0]


@pytest.mark.slow
def test_nearest_contrasts_agree_with_loop():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    rows = X[::11]
    contrasts = nearest_contrasts(model, rows, X, max_batch=20)
    scale = X.std(axis=0)
    for row, contrast in zip(rows, contrasts, strict=True):
        other_items = [
            (float((np.abs(row - other) / scale).sum()), i)
            for i, other in enumerate(X)
            if model.predict([other]) != model.predict([row])
        ]
        nearest = min(distance for distance, _ in other_items)
        assert (np.abs(row - contrast) / scale).sum() == pytest.approx(nearest)
        assert model.predict([contrast]) != model.predict([row])
    # Between two decisions, some feature is responsible.
    assert (responsibility(model, rows, contrast=contrasts).max(axis=1) > 0).all()


def test_nearest_contrasts_accept_frames():
    frame = pd.DataFrame(
        {"kind": ["a", "b", "b", "c"], "n": [1, 1, 3, 5], "same": [7, 7, 7, 7]}, index=[9, 8, 7, 6]
    )

    def predict(X):
        return X["n"] > 2

    contrasts = nearest_contrasts(predict, frame.iloc[[0, 2]], frame)
    pd.testing.assert_frame_equal(contrasts, frame.iloc[[2, 1]].reset_index(drop=True))
    # Columns that are constant in the background do not affect distances.
    outlier = frame.iloc[[1]].assign(same=10**9)
    assert nearest_contrasts(predict, outlier, frame)["kind"].tolist() == ["b"]
    with pytest.raises(ValueError, match="labels differently than row 1 of X"):
        nearest_contrasts(predict, frame.iloc[[0, 3]], frame.iloc[2:])
    with pytest.raises(ValueError, match="background must have the columns of X, but"):
        nearest_contrasts(predict, frame, frame.drop(columns="n"))
    with pytest.raises(ValueError, match=r"background must be rows of 2 features, got shape"):
        nearest_contrasts(lambda Z: Z[:, 0], [[0, 1]], [[0, 1, 1], [1, 1, 1]])
    with pytest.raises(ValueError, match=r"X must be rows of features, got shape \(2,\)"):
        nearest_contrasts(lambda Z: Z[:, 0], [0, 1], [[0, 1], [1, 1]])


def test_responsibility_treats_missing_as_value():
    def model(X):
        return ~np.isnan(X[:, 0]) & (X[:, 1] > 0)

    attribution = responsibility(model, [[np.nan, 1.0, 2.0]], contrast=[np.nan, -1.0, 3.0])
    assert attribution.tolist() == [[0, 0, 0]]
    attribution = responsibility(model, [[1.0, 1.0, 2.0]], contrast=[np.nan, 1.0, 3.0])
    assert attribution.tolist() == [[1, 0, 0]]


def test_responsibility_shares_table_between_rows():
    formula = random_formula(6, read_once=False, random_state=0)
    X = all_assignments(12)[::7]
    queries = []

    def predict(Z):
        queries.append(len(Z))
        return formula.predict((Z + 1) // 2)

    coded = 2 * X.astype(int) - 1
    attribution = responsibility(
        predict, coded, contrast=-coded, max_batch=1000, return_witnesses=True
    )
    np.testing.assert_array_equal(attribution.values, responsibility(formula, X))
    assert queries == [1000] * 4 + [96]
    assert attribution.n_queries == 4096
    # Rows that equal the contrast in some inputs share the table as well.
    contrast = np.full(12, -1)
    attribution = responsibility(predict, coded, contrast=contrast, return_witnesses=True)
    expected = [responsibility(predict, row, contrast=contrast) for row in coded[::60]]
    np.testing.assert_array_equal(attribution.values[::60], expected)
    assert attribution.n_queries == 4096


# --- limited budgets -----------------------------------------------------------------------------


@settings(max_examples=30)
@given(formulas, rows6, st.integers(1, 5), st.integers(1, 60))
def test_responsibility_levelwise_bounds_unresolved_values(formula, row, max_size, max_queries):
    exact = responsibility(formula, row, return_witnesses=True)
    attribution = responsibility(
        formula,
        row,
        method="levelwise",
        max_size=max_size,
        max_queries=max_queries,
        return_witnesses=True,
    )
    np.testing.assert_array_equal(
        attribution.values[attribution.resolved], exact.values[attribution.resolved]
    )
    assert (attribution.values[~attribution.resolved] == 0).all()
    assert (attribution.upper >= exact.values).all()
    assert attribution.n_queries <= max_queries + 1  # and one query for the row itself
    assert [w is None for w in attribution.witnesses] == (attribution.values == 0).tolist()


def test_responsibility_warns_about_wide_black_boxes():
    """Among a hundred features, one pair and one group of four decide."""

    def predict(X):
        return (X[:, 3] & X[:, 50]) | (X[:, 7] & X[:, 8] & X[:, 9] & X[:, 10])

    X = np.zeros((2, 100), dtype=int)
    X[1, [3, 50]] = 1
    with pytest.warns(RuntimeWarning, match="of 200 degrees of .* are set to 0; .* most 0.33"):
        values = responsibility(predict, X)
    expected = np.zeros((2, 100))
    expected[0, [3, 50]] = 0.5
    expected[1, [3, 50]] = 1
    np.testing.assert_array_equal(values, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attribution = responsibility(predict, X, return_witnesses=True)
    assert attribution.method == "levelwise"
    assert attribution.witnesses[0][3] == (50,)
    # The 100 single features and 4950 pairs fit into the budget; triples of the first row do not.
    assert attribution.n_queries == 2 + 2 * 100 + 4950 + 98 * 97 // 2
    np.testing.assert_array_equal(attribution.resolved, attribution.values > 0)
    assert attribution.upper[0, 7] == 1 / 3
    attribution = responsibility(predict, X, max_queries=99, return_witnesses=True)
    assert attribution.n_queries == 0  # a size is tried completely or not at all
    assert not attribution.resolved.any()
    assert (attribution.upper == 1).all()


def test_responsibility_levelwise_stops_early():
    """Each differing feature is a flip set, so that no larger set is minimal."""
    formula = Formula.parse("x1 ^ x2 ^ x3", 30)
    attribution = responsibility(
        formula,
        np.zeros(30, dtype=int),
        contrast=[1] * 3 + [0] * 27,
        method="levelwise",
        max_size=1,
        return_witnesses=True,
    )
    assert attribution.resolved.all()
    assert attribution.n_queries == 4
    assert attribution.values.tolist() == [1] * 3 + [0] * 27
    # After the flip of both features, no larger set is left.
    levels = {"method": "levelwise", "max_size": 2, "return_witnesses": True}
    attribution = responsibility(lambda X: 0 * X[:, 0], [0, 0], **levels)
    assert attribution.resolved.all()
    assert attribution.n_queries == 1 + 2 + 1
    # Every feature is in a pair that flips, so that larger sets are not needed.
    pairs = Formula.parse("(x1 & x2) | (x3 & x4) | (x5 & x6)")
    attribution = responsibility(pairs, [0] * 6, **levels | {"max_size": 6})
    assert attribution.values.tolist() == [0.5] * 6
    assert attribution.n_queries == 1 + 6 + 15


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"method": "fast"}, "method must be one of 'auto', 'exhaustive', 'levelwise', 'linear'"),
        ({"model": Formula.parse("x1 & x1", 2), "method": "linear"}, "requires read-once formulas"),
        ({"model": lambda X: X[:, 0], "method": "linear"}, "requires the gates"),
        ({"contrast": [0, 0], "method": "linear"}, "requires the gates"),
        ({"X": [[0, 2]]}, "X must hold 0 or 1, got 2"),
        ({"X": [[0, 1, 1]]}, r"X must have shape \(n_rows, 2\), got \(1, 3\)"),
        ({"X": [[[0, 1]]]}, "X must"),
        ({"X": 1}, "X must"),
        ({"model": lambda X: X[:, 0], "X": [[0, 2]]}, "zeros and ones if contrast is None"),
        ({"model": lambda X: X[:, 0], "X": [["a", "b"]]}, "zeros and ones if contrast is None"),
        ({"model": lambda X: X[:, 0], "X": np.zeros((0, 2))}, r"got shape \(0, 2\)"),
        ({"contrast": [0, 0, 1]}, r"one row of 2 features or 1 of them, got shape \(3,\)"),
        ({"contrast": [[0, 0]] * 3}, r"got shape \(3, 2\)"),
        ({"model": lambda X: X[:, 0] / 3, "contrast": [5, 5]}, "predict labels, got"),
        ({"model": lambda X: X[:, 0] * np.nan}, "got NaN"),
        ({"model": lambda X: np.zeros(7)}, r"one label for each of . rows, .* \(7,\)"),
        ({"max_size": 0}, "max_size must be an integer of 1 or more, got 0"),
        ({"max_queries": 1.5}, r"max_queries must be .* got 1\.5"),
        ({"max_batch": True}, "max_batch must be .* got True"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_responsibility_rejects_invalid_arguments(arguments, says):
    call = {"model": Formula.parse("x1 & x2"), "X": [[0, 1]], **arguments}
    with pytest.raises((TypeError, ValueError), match=says):
        responsibility(call.pop("model"), call.pop("X"), **call)


def test_responsibility_rejects_invalid_models():
    with pytest.raises(TypeError, match="model must be a Formula, a fitted classifier"):
        responsibility("x1 & x2", [[0, 1]])
    with pytest.raises(TypeError, match="instance rather than its class"):
        responsibility(DecisionTreeClassifier, [[0, 1]])
    with pytest.raises(TypeError, match="must decide between classes, got the regressor"):
        responsibility(LinearRegression(), [[0, 1]])


def test_responsibility_exhaustive_rejects_many_variables():
    wide = Formula.parse(" & ".join(f"x{i + 1}" for i in range(21)) + " & x1")
    ones = np.ones(21, dtype=int)
    with pytest.raises(ValueError, match="at most 20 variables if some occur twice, got 21"):
        responsibility(wide, ones)
    assert responsibility(wide, ones, method="levelwise", max_size=1).tolist() == [1] * 21
    with pytest.raises(ValueError, match=r"at most 20 features that differ .* with 21"):
        responsibility(wide.predict, ones, method="exhaustive")


def test_responsibility_equals_example_of_paper():
    """In (x1 xor x2) and (x3 xor x4), some inputs decide alone, others only in pairs."""
    formula = paper_formula("xor-and-xor", n_inputs=4)
    X = [[1, 0, 1, 0], [1, 1, 1, 0], [1, 1, 0, 0]]
    assert responsibility(formula, X).tolist() == [[1] * 4, [1, 1, 0, 0], [0.5] * 4]


def test_responsibility_aligns_polars_contrasts_by_name():
    rows = pd.DataFrame({"a": [5.0], "b": [8.0]})
    contrast = pl.DataFrame({"b": [8.0], "a": [1.0]})
    degrees = responsibility(lambda X: X["a"] > 2, rows, contrast=contrast)
    assert np.asarray(degrees).tolist() == [[1.0, 0.0]]
