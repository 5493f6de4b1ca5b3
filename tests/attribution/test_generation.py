"""Random formulas, fixed formulas of the paper, and rows generated for them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.attribution import (
    Formula,
    all_assignments,
    chain_formula,
    make_boolean_dataset,
    paper_formula,
    random_formula,
)

seeds = st.integers(0, 2**32)


def operators(formulas):
    return Counter(operator for formula in formulas for operator, _, _ in formula.gates)


# --- random formulas -----------------------------------------------------------------------------


@given(st.integers(1, 10), st.sampled_from(["monotone", "non-monotone"]), seeds)
def test_random_formula_is_read_once_by_default(arity, family, seed):
    formula = random_formula(arity, family=family, random_state=seed)
    assert formula.n_inputs == 12
    assert formula.arity == formula.n_leaves == arity
    assert formula.is_read_once
    if family == "monotone":
        assert set(operators([formula])) <= {"var", "and", "or"}
    assert formula == random_formula(arity, family=family, random_state=seed)


@settings(max_examples=40)
@given(st.integers(3, 8), st.sampled_from(["monotone", "non-monotone"]), st.integers(1, 4), seeds)
def test_random_formula_repeats_variables_on_request(arity, family, extra, seed):
    formula = random_formula(arity, family=family, read_once=False, extra=extra, random_state=seed)
    assert formula.n_leaves == arity + extra
    assert not formula.is_read_once
    # Every variable matters: flipping it changes the value for some row.
    table = dict(zip(map(tuple, all_assignments(12)), formula.truth_table(), strict=True))
    for i in formula.variables:
        assert any(
            value != table[(*row[:i], 1 - row[i], *row[i + 1 :])] for row, value in table.items()
        )
    assert formula.arity == arity


def test_random_formula_has_three_extra_leaves():
    assert random_formula(4, read_once=False, random_state=0).n_leaves == 7


def test_random_formula_draws_inputs_and_operators_uniformly():
    formulas = [random_formula(4, random_state=seed) for seed in range(3000)]
    counts = operators(formulas)
    binary = sum(counts[operator] for operator in ("and", "or", "xor"))
    assert binary == 3 * 3000
    for operator in ("and", "or", "xor"):  # 0.01 is two standard deviations and more
        assert counts[operator] / binary == pytest.approx(1 / 3, abs=0.015)
    assert counts["not"] / (7 * 3000) == pytest.approx(0.25, abs=0.01)
    inputs = Counter(index for formula in formulas for index in formula.variables)
    assert sorted(inputs) == list(range(12))
    assert min(inputs.values()) > 900  # 1000 expected
    assert max(inputs.values()) < 1100
    firsts = Counter(formula.gates[0][1] for formula in formulas)
    assert min(firsts.values()) > 190  # 250 expected if leaves have no preferred order


def test_random_formula_splits_leaves_uniformly():
    """The left part of the root has 1, 2 or 3 of four leaves, with equal frequency."""
    sizes = Counter()
    for seed in range(1500):
        formula = random_formula(4, family="monotone", random_state=seed)
        root = formula.gates[-1]
        sizes[sum(kind == "var" for kind, _, _ in formula.gates[: root[1] + 1])] += 1
    assert set(sizes) == {1, 2, 3}
    assert min(sizes.values()) > 430  # 500 expected, standard deviation 18


def depth(formula):
    depths = []
    for kind, left, right in formula.gates:
        below = [] if kind == "var" else [depths[left]] + ([depths[right]] if right >= 0 else [])
        depths.append(max(below, default=-1) + (kind != "not"))
    return depths[-1]


@pytest.mark.parametrize(("arity", "balanced"), [(1, 0), (2, 1), (8, 3), (9, 4), (12, 4)])
def test_random_formula_respects_shape(arity, balanced):
    for seed in range(20):
        assert depth(random_formula(arity, shape="balanced", random_state=seed)) == balanced
        chain = random_formula(arity, shape="chain", random_state=seed)
        assert depth(chain) == arity - 1
        for kind, _, right in chain.gates:  # left-deep: every right operand is a leaf
            if kind in {"and", "or", "xor"}:
                assert chain.gates[right][0] == "var" or chain.gates[right - 1][0] == "var"


def test_random_formula_respects_weights_and_negations():
    draw = {"arity": 8, "random_state": 1}
    only = random_formula(weights={"xor": 2}, p_not=0, **draw)
    assert set(operators([only])) == {"var", "xor"}
    all_negated = random_formula(p_not=1, **draw)
    assert operators([all_negated])["not"] == 8 + 7
    assert random_formula(weights={"or": 3, "and": 3}, family="monotone", **draw) == (
        random_formula(family="monotone", **draw)
    )
    formulas = [random_formula(8, weights={"and": 3, "or": 1}, random_state=s) for s in range(300)]
    counts = operators(formulas)
    assert counts["and"] / (counts["and"] + counts["or"]) == pytest.approx(0.75, abs=0.03)


def test_random_formula_is_stable_per_seed():
    """Benchmarks identify formulas by their seeds, so the formulas must not change."""
    assert str(random_formula(5, random_state=0)) == "x1 & ~((x12 & x11 & x5) | ~x10)"
    assert str(random_formula(5, family="monotone", random_state=7)) == "x3 | x5 | (x2 & x10) | x7"
    assert (
        str(random_formula(4, read_once=False, extra=2, random_state=3))
        == "((~(x10 & ~x7) | ~x10) & ~x6) | (x6 & x8)"
    )


def test_random_formula_accepts_all_random_states():
    expected = random_formula(6, random_state=5)
    assert random_formula(6, random_state=np.int64(5)) == expected
    assert random_formula(6, random_state=np.random.SeedSequence(5)) == expected
    generator = np.random.default_rng(0)
    first, second = (random_formula(6, random_state=generator) for _ in range(2))
    assert first != second  # a generator continues
    assert random_formula(6, random_state=np.random.default_rng(0)) == first
    legacy = [random_formula(6, random_state=np.random.RandomState(3)) for _ in range(2)]
    assert legacy[0] == legacy[1]
    assert len({random_formula(6) for _ in range(5)}) > 1
    children = np.random.SeedSequence(5).spawn(2)
    assert random_formula(6, random_state=children[0]) != random_formula(
        6, random_state=children[1]
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arity": 0}, "arity must be an integer of 1 or more, got 0"),
        ({"arity": 2.5}, r"got 2\.5"),
        ({"arity": 13}, "arity must be at most n_inputs, got 13 of 12 inputs. Pass n_inputs=13"),
        ({"n_inputs": 0}, "n_inputs must be an integer of 1 or more"),
        ({"family": "monoton"}, "Did you mean 'monotone'"),
        ({"family": "non_monotone"}, "Did you mean 'non-monotone'"),
        ({"shape": "tree"}, "shape must be one of 'balanced', 'chain', 'uniform', got 'tree'"),
        ({"extra": 2}, "got 2 with read_once=True. Pass read_once=False"),
        ({"extra": 0, "read_once": False}, "at least 1 for others, got 0"),
        ({"extra": -1, "read_once": False}, "extra must be an integer of 0 or more"),
        ({"weights": {"nand": 1}}, "an operator of weights must be one of"),
        ({"weights": {"and": -1}}, "must be a finite number of 0 or more, got -1"),
        ({"weights": {"and": float("nan")}}, "got nan"),
        ({"weights": {"and": 0}}, "weights must have a positive sum"),
        ({"weights": {"xor": 1}, "family": "monotone"}, "must not include 'xor'"),
        ({"p_not": 1.5}, r"p_not must be a number from 0 to 1, got 1\.5"),
        ({"random_state": -1}, "random_state must be None, an integer >= 0"),
        ({"random_state": "0"}, "got '0'"),
        ({"arity": 30, "n_inputs": 40, "read_once": False}, "arity must be at most 24"),
    ],
    ids=repr,
)
def test_random_formula_rejects_invalid_arguments(arguments, says):
    with pytest.raises((TypeError, ValueError), match=says):
        random_formula(**{"arity": 3, **arguments})


def test_random_formula_rejects_impossible_formulas():
    """One variable and exclusive or yield only constants."""
    with pytest.raises(ValueError, match="random formulas with arity=1 and extra=1"):
        random_formula(1, read_once=False, extra=1, weights={"xor": 1}, random_state=0)


def test_random_formula_supports_hundreds_of_variables():
    formula = random_formula(300, n_inputs=400, random_state=0)
    assert (formula.arity, formula.n_inputs) == (300, 400)


# --- fixed formulas ------------------------------------------------------------------------------


def test_paper_formula_returns_formulas_of_paper():
    a, b, c, d, *_ = all_assignments(12).T.astype(bool)
    expected = {"and": a & b, "or": a | b, "xor": a ^ b, "xor-and-xor": (a ^ b) & (c ^ d)}
    for name, values in expected.items():
        formula = paper_formula(name)
        assert formula.n_inputs == 12
        np.testing.assert_array_equal(formula.truth_table(), values)
    assert paper_formula("or", n_inputs=2).n_inputs == 2
    with pytest.raises(ValueError, match=r"name must be one of .* got 'nor'"):
        paper_formula("nor")
    with pytest.raises(ValueError, match="n_inputs must exceed"):
        paper_formula("xor-and-xor", n_inputs=3)


def test_chain_formula_returns_chains_of_paper():
    monotone = Formula.parse("((((x1 & x2) | x3) & x4) | x5) & x6", 12)
    assert chain_formula(6, family="monotone") == monotone
    assert chain_formula(5) == Formula.parse("(((x1 ^ x2) & x3) ^ x4) & x5", 12)
    assert chain_formula(2, n_inputs=2) == Formula.parse("x1 ^ x2")
    assert chain_formula(15).n_inputs == 15
    for arity in range(2, 11):
        assert chain_formula(arity).is_read_once
        assert chain_formula(arity).variables == tuple(range(arity))
        assert chain_formula(arity, family="monotone").is_monotone
    with pytest.raises(ValueError, match="arity must be an integer of 2 or more, got 1"):
        chain_formula(1)
    with pytest.raises(ValueError, match="n_inputs must exceed"):
        chain_formula(5, n_inputs=4)
    with pytest.raises(ValueError, match="family must be one of"):
        chain_formula(5, family="linear")


# --- rows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("coding", ["01", "+-1"])
def test_boolean_dataset_contains_all_assignments(coding):
    formula = Formula.parse("(x1 & x2) | ~x3", 5)
    X, y = make_boolean_dataset(formula, coding=coding)
    np.testing.assert_array_equal(X > 0, all_assignments(5) > 0)
    assert set(np.unique(X)) == ({0, 1} if coding == "01" else {-1, 1})
    np.testing.assert_array_equal(y, formula.truth_table())
    assert set(np.unique(y)) == {0, 1}
    np.testing.assert_array_equal(formula.as_classifier(coding=coding).predict(X), y)


@given(seeds, st.integers(1, 64))
def test_boolean_dataset_rows_are_distinct(seed, n_samples):
    formula = Formula.parse("x1 ^ x6")
    X, y = make_boolean_dataset(formula, n_samples, random_state=seed)
    assert X.shape == (n_samples, 6)
    assert len({tuple(row) for row in X.tolist()}) == n_samples
    np.testing.assert_array_equal(y, X[:, 0] ^ X[:, 5])
    again, _ = make_boolean_dataset(formula, n_samples, random_state=seed)
    np.testing.assert_array_equal(X, again)


def test_boolean_dataset_rows_are_uniform():
    X, _ = make_boolean_dataset(Formula.parse("x1", 12), 2000, random_state=0)
    np.testing.assert_allclose(X.mean(axis=0), 0.5, atol=0.04)
    codes, counts = np.unique(
        make_boolean_dataset(Formula.parse("x1", 3), 4000, replace=True, random_state=0)[0],
        axis=0,
        return_counts=True,
    )
    assert len(codes) == 8
    np.testing.assert_allclose(counts, 500, atol=90)


def test_boolean_dataset_supports_many_inputs():
    wide = Formula.parse("x1 & x60", 60)
    X, y = make_boolean_dataset(wide, 300, coding="+-1", random_state=0)
    assert len(np.unique(X, axis=0)) == 300
    np.testing.assert_array_equal(y, (X[:, 0] > 0) & (X[:, 59] > 0))
    middling = Formula.parse("x1", 25)  # too many to list, few enough to collide
    X, _ = make_boolean_dataset(middling, 20_000, random_state=0)
    assert len(np.unique(X @ (1 << np.arange(25)))) == 20_000


def test_boolean_dataset_is_independent_of_formula():
    """The rows of a benchmark must not depend on the formula, nor the formula on the rows."""
    formula = random_formula(5, random_state=0)
    X, _ = make_boolean_dataset(formula, 50, random_state=0)
    other, _ = make_boolean_dataset(random_formula(9, random_state=0), 50, random_state=0)
    np.testing.assert_array_equal(X, other)
    from_the_stream_of_formulas = np.random.default_rng(
        np.random.SeedSequence(0, spawn_key=(0,))
    ).choice(4096, 50, replace=False)
    assert (X @ (1 << np.arange(12)) != from_the_stream_of_formulas).any()


def test_boolean_dataset_rejects_invalid_arguments():
    formula = Formula.parse("x1 & x2", 3)
    with pytest.raises(ValueError, match=r"at most 2\*\*n_inputs = 8 distinct rows, got 9"):
        make_boolean_dataset(formula, 9)
    assert make_boolean_dataset(formula, 9, replace=True)[0].shape == (9, 3)
    with pytest.raises(ValueError, match="n_samples must be an integer of 1 or more, got 0"):
        make_boolean_dataset(formula, 0)
    with pytest.raises(ValueError, match="coding must be"):
        make_boolean_dataset(formula, coding="tf")
    with pytest.raises(TypeError, match="formula must be a Formula, got 'x1'"):
        make_boolean_dataset("x1")
    with pytest.raises(ValueError, match="n_inputs must be at most 24, got 30"):
        make_boolean_dataset(Formula.parse("x30"))
