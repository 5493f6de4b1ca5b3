"""Sufficient subsets compared with an exhaustive enumeration and with fresh rows."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier

from skescore import CARTExtractor
from skescore.attribution import (
    Formula,
    SufficientSubset,
    random_formula,
    sufficient_subsets,
)

X, Y = load_wine(return_X_y=True, as_frame=True)
FOREST = RandomForestClassifier(10, random_state=0).fit(X, Y)


def minimal_subsets(formula, x):
    """Return all minimal sets whose values determine the decision, by trying all rows."""
    n = len(x)
    decision = formula.evaluate(x)
    rows = np.array(list(itertools.product((0, 1), repeat=n)))
    outputs = formula.evaluate(rows)

    def suffices(subset):
        same = (rows[:, list(subset)] == np.asarray(x)[list(subset)]).all(axis=1)
        return (outputs[same] == decision).all()

    sufficient = [
        set(subset)
        for size in range(n + 1)
        for subset in itertools.combinations(range(n), size)
        if suffices(subset)
    ]
    return [s for s in sufficient if not any(other < s for other in sufficient)]


def check_formula(seed, largest):
    random = np.random.default_rng(seed)
    n = int(random.integers(1, largest + 1))
    formula = random_formula(n, random_state=seed)
    x = random.integers(0, 2, formula.n_inputs)
    result = sufficient_subsets(formula, x)
    expected = minimal_subsets(formula, x)
    assert {s.features for s in result.subsets} == {tuple(sorted(s)) for s in expected}
    assert set(result.necessary) == set.intersection(*expected)
    assert all(subset.is_proven for subset in result.subsets)
    sizes = [len(subset) for subset in result.subsets]
    assert sizes == sorted(sizes)


@pytest.mark.slow
def test_sufficient_subsets_of_formulas_equal_enumeration():
    for seed in range(15):
        check_formula(seed, 6)


@pytest.mark.slow
def test_sufficient_subsets_of_1000_formulas_are_exact():
    for seed in range(1000):
        check_formula(seed, 8)


def test_sufficient_subsets_of_constant_formula_are_empty():
    result = sufficient_subsets(Formula.parse("x1 | ~x1"), [0])
    assert [subset.features for subset in result.subsets] == [()]
    assert str(result) == "0 of 1 value suffice for 1: no value (for all values of the others)"


def agreement_on_fresh_rows(row, features, seed, n_rows=2000):
    rows = X.sample(n_rows, replace=True, random_state=seed).reset_index(drop=True)
    for j in features:
        rows[X.columns[j]] = row.iloc[0, j]
    return int((FOREST.predict(rows) == FOREST.predict(row)[0]).sum())


@pytest.mark.slow
def test_sufficient_subsets_of_forest_hold_on_fresh_rows():
    n_agreeing = n_rows = 0
    for i in range(0, len(X), 36):
        row = X.iloc[[i]]
        (subset,) = sufficient_subsets(FOREST, row, X, n_samples=1000).subsets
        assert subset.values == tuple(row.iloc[0, j] for j in subset.features)
        assert subset.agreement >= 0.95
        assert subset.interval[0] <= subset.agreement <= subset.interval[1]
        n_agreeing += agreement_on_fresh_rows(row, subset.features, seed=i + 1)
        n_rows += 2000
    assert binomtest(n_agreeing, n_rows, 0.94, alternative="less").pvalue > 0.001


def test_sufficient_subsets_interval_equals_clopper_pearson():
    (subset,) = sufficient_subsets(FOREST, X.iloc[[70]], X, n_samples=500).subsets
    exact = binomtest(round(subset.agreement * 500), 500).proportion_ci(0.95, "exact")
    assert subset.interval == pytest.approx((exact.low, exact.high))


def test_sufficient_subsets_are_disjoint():
    rows = np.random.default_rng(0).normal(size=(200, 5))
    result = sufficient_subsets(
        lambda rows: (rows[:, 1] > 1) | (rows[:, 3] + rows[:, 4] > 1),
        [0.0, 1.5, 0.0, 4.0, 4.0],
        rows,
        n_subsets=4,
    )
    assert result.subsets[0].features == (1,)
    assert [set(subset.features) <= {3, 4} for subset in result.subsets[1:]] == [True, True]
    features = [j for subset in result.subsets for j in subset.features]
    assert len(set(features)) == len(features)
    assert result.necessary == ()


def test_sufficient_subsets_contain_necessary_features():
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": ([0] * 5 + [1] * 5) * 10, "c": range(100)})
    result = sufficient_subsets(
        lambda rows: (rows["a"] == 1) & (rows["b"] == 1), frame.iloc[[9]], frame
    )
    assert result.prediction is True
    assert result.necessary == (0, 1)
    assert [subset.features for subset in result.subsets] == [(0, 1)]


def test_sufficient_subsets_omit_features_that_no_subset_needs():
    """The empty set suffices for 99 % of rows, but not all values except those of c."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 10, (500, 3)), columns=list("abc"))
    row = pd.DataFrame({"a": [0], "b": [0], "c": [7]})
    result = sufficient_subsets(
        lambda rows: (rows["a"] == 0) & (rows["b"] == 0) & (rows["c"] < 5), row, frame
    )
    assert [subset.features for subset in result.subsets] == [()]
    assert result.necessary == ()
    assert "necessary" not in str(result)


def test_sufficient_subsets_quote_ambiguous_names():
    frame = pd.DataFrame({"a": [0, 1] * 50, "a, b": [0, 0, 1, 1] * 25})
    result = sufficient_subsets(
        lambda rows: (rows["a"] == 1) & (rows["a, b"] == 1), frame.iloc[[3]], frame
    )
    assert '2 of 2 values suffice for True: a = 1 AND "a, b" = 1 (100.0 %' in str(result)
    assert str(result).endswith('do not suffice: a, "a, b"')


def test_sufficient_subsets_explain_rules_with_categories():
    frame = pd.DataFrame({"color": list("rgb") * 40, "size": np.arange(120.0)})
    labels = np.where((frame["color"] == "r") & (frame["size"] > 50), "yes", "no")
    rules = CARTExtractor(RandomForestClassifier(10, random_state=0), random_state=0)
    with pytest.raises(ValueError, match="could not convert"):
        rules.fit(frame, labels)  # forests accept no texts, but rules do
    box = CARTExtractor(_Frames(), max_leaf_nodes=4, random_state=0).fit(frame)
    result = sufficient_subsets(box.rules_, frame.iloc[[1]], frame)
    assert [(s.names, s.values) for s in result.subsets] == [(("color",), ("g",))]


class _Frames(RandomForestClassifier):
    """A fitted black box that accepts frames with categories."""

    classes_ = np.array(["no", "yes"])

    def predict(self, X):
        return np.where((X["color"] == "r") & (X["size"] > 50), "yes", "no")

    def __sklearn_is_fitted__(self):
        return True


def test_sufficient_subsets_accept_neutral_values():
    # With the other inputs at neutral values, the first input suffices for any data.
    result = sufficient_subsets(
        lambda rows: rows[:, 0] + rows[:, 1] > 1.5, [2.0, 1.0, 9.0], neutral=[0.0, 0.0, 0.0]
    )
    assert [subset.features for subset in result.subsets] == [(0,)]
    assert result.subsets[0].is_proven
    assert str(result.subsets[0]) == "x0 = 2 (with the neutral values of the others)"


def test_sufficient_subsets_may_be_none_within_max_size():
    result = sufficient_subsets(FOREST, X.iloc[[70]], X, confidence=1.0, max_size=1)
    assert result.subsets == ()
    assert "No subset" in str(result)


@pytest.mark.slow
def test_sufficient_subsets_are_reproducible():
    row = X.iloc[[130]]
    first, second = (
        sufficient_subsets(FOREST, row, X, n_samples=200, random_state=1) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"x": [1.0]}, "X must hold the rows"),
        ({"x": [1.0], "X": X}, "x must be one row with 13 values"),
        ({"x": X.iloc[0], "X": X, "confidence": 1.5}, "confidence must be"),
        ({"x": X.iloc[0], "X": X, "n_subsets": 0}, "n_subsets must be"),
    ],
)
def test_sufficient_subsets_reject_bad_arguments(arguments, match):
    with pytest.raises(ValueError, match=match):
        sufficient_subsets(FOREST, **arguments)


def test_sufficient_subsets_accept_arrow_tables():
    arrow = pytest.importorskip("pyarrow")
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 6, "c": ["u", "v", "w", "u"] * 6})

    def predict(rows):
        return np.where(rows["x"] > 2, "yes", "no")

    table = arrow.Table.from_pandas(X, preserve_index=False)
    options = {"n_samples": 50, "random_state": 0}
    expected = sufficient_subsets(predict, X[:1], X, **options)
    assert str(sufficient_subsets(predict, table[:1], table, **options)) == str(expected)


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_sufficient_subsets_align_columns_by_name(convert):
    row = X.iloc[[60]]
    expected = str(sufficient_subsets(FOREST, row, X))
    other_order = row[X.columns[::-1]]
    columns = list(other_order.columns)
    assert str(sufficient_subsets(FOREST, convert(other_order), convert(X))) == expected
    assert str(sufficient_subsets(FOREST, other_order.iloc[0], X)) == expected
    assert list(other_order.columns) == columns  # The caller's row does not change.
    neutral = X.iloc[[0]][X.columns[::-1]]
    expected = str(sufficient_subsets(FOREST, row, neutral=X.iloc[0].to_numpy()))
    for values in (convert(neutral), neutral.iloc[0]):
        assert str(sufficient_subsets(FOREST, row, neutral=values)) == expected


def test_sufficient_subsets_do_not_round_values_of_the_row():
    for rows in ({"X": [[1, 2], [3, 4], [9, 9]]}, {"neutral": [0, 0]}):
        result = sufficient_subsets(lambda table: table[:, 0] > 5.5, [5.9, 3.0], **rows)
        assert result.prediction
        assert result.subsets[0].values == (5.9,)
    table = pd.DataFrame({"kind": pd.Categorical(["a", "b"])})
    with pytest.raises(ValueError, match="x must fit the columns of X, got 'new'"):
        sufficient_subsets(lambda rows: rows["kind"] == "a", pd.DataFrame({"kind": ["new"]}), table)


def test_agreement_below_one_is_not_printed_as_100_percent():
    shares = {1.0: "100.0 %", 0.9995: "> 99.9 %", 0.971: "97.1 %"}
    for agreement, text in shares.items():
        subset = SufficientSubset((0,), ("age",), (3,), agreement, (0.9, 1.0), 2000)
        assert str(subset) == f"age = 3 ({text} of 2000 generated rows)"


def test_sufficient_subsets_keep_types_of_text_columns() -> None:
    X = pd.DataFrame({"color": pd.Series(["red", None, "blue"] * 20, dtype=object), "n": range(60)})

    def predict(rows):
        assert rows["color"].dtype == object
        return np.array(["none" if value is None else "some" for value in rows["color"]])

    for row, prediction in ((0, "some"), (1, "none")):
        result = sufficient_subsets(predict, X.iloc[[row]], X)
        assert result.prediction == prediction
        assert [subset.features for subset in result.subsets] == [(0,)]
