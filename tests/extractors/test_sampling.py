"""Query rows: generated rows resemble the table, and rules explain the model on them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from skescore import CallableClassifier, CallableRegressor, CARTExtractor
from skescore.extractors import SAMPLINGS, CachedBlackBox, RowGenerator, generate_rows
from skescore.registry import EXTRACTORS, make_extractor

WITHOUT_MODEL = [name for name in SAMPLINGS if name != "boundary"]


def messy_table(n_rows=60, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "count": random.integers(0, 20, n_rows),
            "size": random.normal(size=n_rows).round(3),
            "color": random.choice(["red", "green", "blue"], n_rows),
            "is_old": random.random(n_rows) < 0.5,
            "grade": pd.Categorical(random.choice(["low", "high"], n_rows)),
        }
    )
    frame.loc[random.random(n_rows) < 0.2, "size"] = np.nan
    frame.loc[random.random(n_rows) < 0.2, "color"] = None
    return frame


@pytest.mark.parametrize("sampling", WITHOUT_MODEL)
def test_generated_rows_keep_types_and_values(sampling):
    X = messy_table()
    rows = generate_rows(X, 200, sampling, random_state=0)
    assert list(rows.columns) == list(X.columns)
    assert rows.dtypes.tolist() == X.dtypes.tolist()
    for name in ("color", "is_old", "grade"):
        assert set(rows[name].dropna()) <= set(X[name].dropna())
    assert rows["count"].between(X["count"].min(), X["count"].max()).all()
    assert rows["size"].dropna().between(X["size"].min(), X["size"].max()).all()
    assert 0.05 < rows["size"].isna().mean() < 0.4


@pytest.mark.parametrize("sampling", ["permute", "permute-near", "permute-mixed"])
def test_permuted_values_occur_in_their_column(sampling):
    X = np.random.default_rng(0).normal(size=(40, 3))
    rows = generate_rows(X, 100, sampling, random_state=1)
    for column, values in zip(rows.T, X.T, strict=True):
        assert np.isin(column, values).all()


def test_permuted_rows_have_two_parents():
    X = np.arange(30.0).reshape(10, 3)
    for row in generate_rows(X, 50, "permute", random_state=0):
        assert len({int(value) // 3 for value in row}) <= 2


def test_mixed_rows_are_half_near_and_half_far():
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(0, 0.1, (30, 2)), random.normal(100, 0.1, (30, 2))])
    rows = generate_rows(X, 401, "permute-mixed", random_state=0)
    assert np.array_equal(rows[:200], generate_rows(X, 200, "permute", random_state=0))
    assert np.array_equal(rows[200:], generate_rows(X, 201, "permute-near", random_state=0))


def test_interpolated_rows_are_between_neighbors():
    random = np.random.default_rng(0)
    X = np.vstack([random.normal(0, 0.1, (30, 2)), random.normal(100, 0.1, (30, 2))])
    rows = generate_rows(X, 300, "interpolate", random_state=0)
    assert not ((rows > 1).all(axis=1) & (rows < 99).all(axis=1)).any()


def test_boundary_rows_are_close_to_the_boundary():
    X = np.random.default_rng(0).uniform(size=(200, 2))
    generator = RowGenerator(X, {}, seed=0)
    rows = generator.boundary(600, lambda points: points[:, 0] > 0.5)
    distance_of_rows = np.abs(rows[400:, 0] - 0.5).mean()
    assert distance_of_rows < 0.5 * np.abs(X[:, 0] - 0.5).mean()


@settings(deadline=None, max_examples=30)
@given(
    st.integers(2, 30),
    st.integers(1, 4),
    st.integers(0, 2**31 - 1),
    st.sampled_from(WITHOUT_MODEL),
)
def test_generated_rows_ignore_the_order_of_rows(n_rows, n_features, seed, sampling):
    random = np.random.default_rng(seed)
    X = random.integers(0, 5, (n_rows, n_features)) + random.normal(size=(n_rows, n_features))
    one = generate_rows(X, 20, sampling, random_state=seed)
    other = generate_rows(X[random.permutation(n_rows)], 20, sampling, random_state=seed)
    np.testing.assert_array_equal(one, other)
    assert (one >= X.min(axis=0)).all()
    assert (one <= X.max(axis=0)).all()


def test_uniform_integers_are_equally_likely():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    rows = generate_rows(X, 8000, "uniform", random_state=0)[:, 0]
    shares = np.unique(rows, return_counts=True)[1] / len(rows)
    assert np.abs(shares - 0.25).max() < 0.02


@pytest.mark.parametrize("name", [n for n in EXTRACTORS if n != "gridrex"])
def test_extractors_query_and_count_training_rows(name):
    X = np.random.default_rng(0).uniform(size=(80, 3))
    black_box = CallableClassifier(lambda rows: (rows[:, 0] > 0.5).astype(int))
    extractor = make_extractor(name, black_box).set_params(sampling="permute", n_queries=150)
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=0)
    extractor.fit(X)
    assert extractor.oracle_.n_rows >= 80 + 150
    assert extractor.oracle_.n_calls >= 2
    rules = extractor.rules_
    counts = [rule.statistics.n_rows for rule in rules]
    if rules.ordered or rules.disjoint:
        assigned = rules.assign(X)
        assert counts == [int((assigned == k).sum()) for k in range(len(rules))]
    else:
        assert counts == rules.match(X).sum(axis=0).tolist()
    assert extractor.fidelity(X) > 0.9


def test_sampling_finds_the_boundary_between_rows():
    # Two rows per side do not determine the cut at 0.3, but the model does.
    X = np.repeat([[0.0, 0.0], [0.1, 1.0], [0.9, 0.0], [1.0, 1.0]], 5, axis=0)
    black_box = CallableClassifier(lambda rows: (rows[:, 0] > 0.3).astype(int))
    cuts = {}
    for sampling in (None, "uniform"):
        extractor = CARTExtractor(black_box, max_leaf_nodes=2, sampling=sampling, random_state=0)
        cuts[sampling] = extractor.fit(X).rules_.rules[0].conditions[0].upper
    assert cuts[None] == pytest.approx(0.5, abs=0.1)
    assert cuts["uniform"] == pytest.approx(0.3, abs=0.01)


def test_sampling_accepts_a_function():
    X = messy_table()
    black_box = CallableClassifier(lambda rows: rows["count"].to_numpy() > 7)
    calls = []

    def draw(rows, n_rows, random_state):
        calls.append((len(rows), n_rows, random_state))
        return rows.sample(n_rows, replace=True, random_state=random_state)

    extractor = CARTExtractor(black_box, sampling=draw, n_queries=30, random_state=3).fit(X)
    assert [entry[:2] for entry in calls] == [(60, 30)]
    assert extractor.oracle_.n_rows == 90


def test_sampling_function_gets_a_frame_with_its_columns():
    X = pd.DataFrame({"a": [1, 2, 3, 4], "b": [0.5, 1.5, 2.5, 3.5]})
    black_box = CallableClassifier(lambda rows: rows["a"].to_numpy() > 2)
    extractor = CARTExtractor(black_box, sampling=lambda X, n, seed: X[X["a"] > 1])
    assert extractor.fit(X).oracle_.n_rows == 7


def test_sampling_function_with_unknown_category_is_rejected():
    X = messy_table()
    black_box = CallableClassifier(lambda rows: rows["count"].to_numpy() > 7)
    extractor = CARTExtractor(black_box, sampling=lambda X, n, seed: X.assign(color="pink"))
    with pytest.raises(ValueError, match="'pink'"):
        extractor.fit(X)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda X, n, seed: X[:0], "at least one row"),
        (lambda X, n, seed: X[:, :1], "2 columns"),
        (lambda X, n, seed: X + np.inf, "finite"),
    ],
)
def test_sampling_function_with_invalid_rows_is_rejected(draw, message):
    X = np.random.default_rng(0).uniform(size=(20, 2))
    black_box = CallableClassifier(lambda rows: (rows[:, 0] > 0.5).astype(int))
    with pytest.raises(ValueError, match=message):
        CARTExtractor(black_box, sampling=draw).fit(X)


def test_unknown_generator_is_rejected():
    black_box = CallableClassifier(lambda rows: (rows[:, 0] > 0.5).astype(int))
    with pytest.raises(ValueError, match="'permute'"):
        CARTExtractor(black_box, sampling="shuffle").fit(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="black box"):
        generate_rows(np.zeros((3, 1)), 5, "boundary")


def test_candidates_share_query_rows_and_count_them():
    X = np.random.default_rng(0).uniform(size=(50, 3))
    model = DecisionTreeClassifier(random_state=0).fit(X, X[:, 0] > 0.4)
    black_box = CachedBlackBox(FrozenEstimator(model))
    extractor = CARTExtractor(black_box, sampling="permute", n_queries=200, random_state=0)
    first, again = extractor.fit(X).oracle_.n_rows, extractor.fit(X).oracle_.n_rows
    assert first == again == 250
    assert black_box.oracle.n_rows == 250


def test_sampling_separates_shared_results():
    # The predictions of all samples are equal, but the rows are not.
    X = np.random.default_rng(0).uniform(size=(50, 2))
    black_box = CachedBlackBox(FrozenEstimator(DecisionTreeClassifier().fit(X, X[:, 0] > 0.5)))
    rules = {}
    for sampling in (None, "permute", "uniform", "permute", None):
        extractor = CARTExtractor(black_box, max_leaf_nodes=3, sampling=sampling, random_state=0)
        text = str(extractor.fit(X).rules_)
        assert rules.setdefault(sampling, text) == text


def test_integer_weights_repeat_rows_of_the_generator():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 3))
    weight = random.integers(1, 4, 40)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    extractor = CARTExtractor(DecisionTreeClassifier(random_state=0), random_state=0)
    extractor.set_params(sampling="permute", n_queries=300)
    weighted = extractor.fit(X, y, sample_weight=weight).rules_
    index = random.permutation(np.repeat(np.arange(40), weight))
    repeated = extractor.fit(X[index], y[index]).rules_
    assert str(repeated) == str(weighted).replace("weighted rows", "rows")


def test_query_rows_raise_the_fidelity_of_small_trees():
    gains = []
    for seed in range(5):
        random = np.random.default_rng(seed)
        X = random.normal(size=(400, 6))
        y = (X[:, 0] * X[:, 1] + random.normal(0, 0.5, 400) > 0).astype(int)
        forest = RandomForestClassifier(30, random_state=seed).fit(X[:200], y[:200])
        fidelity = [
            CARTExtractor(
                FrozenEstimator(forest), max_leaf_nodes=8, sampling=sampling, random_state=0
            )
            .fit(X[:200])
            .fidelity(X[200:])
            for sampling in (None, "permute")
        ]
        gains.append(fidelity[1] - fidelity[0])
    assert np.mean(gains) > 0


def test_generators_draw_different_rows():
    X = np.random.default_rng(0).normal(size=(40, 3))
    rows = {name: generate_rows(X, 30, name, random_state=0) for name in WITHOUT_MODEL}
    for one, other in itertools.combinations(rows.values(), 2):
        assert not np.array_equal(one, other)


@pytest.mark.parametrize("sampling", [None, "permute", "interpolate", "boundary", "uniform"])
@pytest.mark.parametrize("has_missing", [False, True])
def test_generated_rows_have_the_types_of_the_table(sampling, has_missing) -> None:
    rng = np.random.default_rng(0)
    numbers = {
        name: pd.array(rng.integers(0, 50, 120), dtype=name)
        for name in ("int8", "uint16", "Int64", "int64[pyarrow]")
    }
    numbers |= {
        name: pd.array(rng.normal(size=120).astype(np.float32), dtype=name)
        for name in ("float32", "Float32", "Float64", "double[pyarrow]")
    }
    table = pd.DataFrame(numbers | {"bool": rng.random(120) < 0.5, "float64": rng.normal(size=120)})
    if has_missing:
        for position, name in enumerate(["Int64", "int64[pyarrow]", "Float32", "double[pyarrow]"]):
            table.loc[position : position + 20, name] = pd.NA
    label = np.where((table["int8"] > 20) & (table["float64"] > 0), "a", "b")
    seen = set()

    class Model(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_, self.feature_names_in_ = np.unique(y), np.array(X.columns, dtype=object)
            return self

        def predict(self, X):
            seen.add(tuple(map(str, X.dtypes)))
            return np.where((X["int8"] > 20) & (X["float64"] > 0), "a", "b")

    model = FrozenEstimator(Model().fit(table, label))
    CARTExtractor(model, sampling=sampling, n_queries=200, random_state=0).fit(table)
    assert seen == {tuple(map(str, table.dtypes))}
    generated = generate_rows(table, 20, random_state=0)
    assert generated.dtypes.equals(table.dtypes)
    assert bool(generated["Int64"].isna().any()) == has_missing


def test_generate_rows_rejects_dates() -> None:
    table = pd.DataFrame({"day": pd.date_range("2026-01-01", periods=9), "x": range(9)})
    with pytest.raises(ValueError, match="generate_rows needs numbers, but column 'day' holds"):
        generate_rows(table, 3, random_state=0)


@pytest.mark.parametrize("sampling", [None, "permute", "interpolate", "boundary", "uniform"])
@pytest.mark.parametrize("has_text", [False, True])
def test_generated_rows_keep_nulls_and_types_of_polars(sampling, has_text) -> None:
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    ages = [None if rng.random() < 0.3 else int(age) for age in rng.integers(0, 10, 200)]
    columns = {
        "age": polars.Series(ages, dtype=polars.Int16),
        "size": polars.Series(rng.normal(size=200).tolist(), dtype=polars.Float32),
        "nan": polars.Series(np.where(rng.random(200) < 0.3, np.nan, 1.5)),
    }
    if has_text:
        columns["color"] = polars.Series(rng.choice(["red", "blue"], 200).tolist())
    table = polars.DataFrame(columns)
    seen = set()

    def predict(X):
        seen.add((*X.schema.items(), X["nan"].null_count(), X["nan"].is_nan().any()))
        # A comparison with null is null, but NaN is greater than all numbers in polars.
        return np.where((X["age"] > 4).fill_null(False).to_numpy(), "old", "young")

    model = CallableClassifier(predict, classes=["old", "young"])
    extractor = CARTExtractor(model, sampling=sampling, n_queries=300, random_state=0).fit(table)
    assert seen == {(*table.schema.items(), 0, True)}
    assert extractor.fidelity(table) == 1
    if sampling in WITHOUT_MODEL:
        assert generate_rows(table, 20, sampling, random_state=0).schema == table.schema


@pytest.mark.parametrize("dtype", [object, "boolean", "bool[pyarrow]", "polars", "codes", "text"])
@pytest.mark.parametrize("sampling", WITHOUT_MODEL)
def test_generated_rows_keep_missing_booleans(sampling, dtype) -> None:
    """Rows with missing values were sent to the black box as True."""
    random = np.random.default_rng(0)
    values = random.choice(np.array([True, False, None], dtype=object), 90)
    if dtype == "polars":
        polars = pytest.importorskip("polars")
        X = polars.DataFrame({"a": values.tolist(), "b": random.integers(0, 5, 90)})
    else:
        if dtype == "bool[pyarrow]":
            pytest.importorskip("pyarrow")
        if dtype in ("codes", "text"):
            names = {True: 7, False: 3} if dtype == "codes" else {True: "x", False: "y"}
            values, dtype = np.array([names.get(v) for v in values], dtype=object), object
        X = pd.DataFrame({"a": pd.Series(values, dtype=dtype), "b": random.integers(0, 5, 90)})
    rows = generate_rows(X, 3000, sampling, random_state=0)
    assert rows["a"].dtype == X["a"].dtype
    generated, observed = rows["a"].to_list(), X["a"].to_list()
    # pandas compares pd.NA with no value, so types are compared as well.
    assert {(type(v), str(v)) for v in generated} == {(type(v), str(v)) for v in observed}
    n_missing = sum(v is None or v is pd.NA for v in observed)
    share = sum(v is None or v is pd.NA for v in generated) / 3000
    assert share == pytest.approx(n_missing / 90, abs=0.05)


@pytest.mark.parametrize("name", ["cart", "trepan"])
@pytest.mark.parametrize("dtype", [object, "boolean", "polars"])
def test_rules_for_missing_booleans_agree_with_the_model(name, dtype) -> None:
    values = [True, False, None] * 40
    X = pd.DataFrame({"a": pd.Series(values, dtype=object if dtype == "polars" else dtype)})
    if dtype == "polars":
        X = pytest.importorskip("polars").DataFrame({"a": values})

    def predict(rows):
        return np.array(["yes" if v is True else "no" for v in rows["a"].to_list()])

    black_box = CallableClassifier(predict, classes=["no", "yes"])
    extractor = make_extractor(name, black_box, sampling="uniform", random_state=0).fit(X)
    assert extractor.fidelity(X) == 1


@pytest.mark.parametrize("value", [0.1, 3.5, -7.3])
def test_points_between_rows_keep_constant_columns(value) -> None:
    """A linear output had a coefficient of 10^13 for a column that only varied by rounding."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 8, 200) * 1000 + 2.0**31, np.full(200, value)])

    def predict(rows):
        return rows[:, 0] / 1000 + 100 * (rows[:, 1] != value)

    for sampling in ("interpolate", "boundary"):
        black_box = CallableRegressor(predict)
        extractor = make_extractor(
            "cream", black_box, depth=1, output="linear", sampling=sampling, n_queries=500
        ).fit(X)
        assert extractor.predict(X) == pytest.approx(predict(X), rel=1e-6)
        outputs = [rule.output for rule in extractor.rules_]
        assert all(f == 0 for output in outputs for f, _ in getattr(output, "terms", ()))
