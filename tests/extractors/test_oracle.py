"""The oracle counts, batches and caches queries, and extractors query no more than needed."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CachedBlackBox, CARTExtractor, GridExExtractor, Oracle
from skescore.registry import extractor_class

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

X, y = make_classification(300, 4, n_informative=4, n_redundant=0, random_state=0)


class Recorder:
    """Function that records its queries."""

    def __init__(self, answer=lambda rows: rows.sum(axis=1)):
        self.answer = answer
        self.shown = []

    def __call__(self, rows):
        rows = np.asarray(rows)
        self.shown.append(rows)
        return self.answer(rows)

    @property
    def sizes(self):
        return [len(rows) for rows in self.shown]


# --- oracle ---


def test_oracle_counts_queries_and_caches_rows():
    function = Recorder()
    oracle = Oracle(CallableRegressor(function))
    assert (oracle.n_calls, oracle.n_rows, oracle.n_rows_cached, oracle.seconds) == (0, 0, 0, 0)
    first = oracle.query(X)
    np.testing.assert_array_equal(first, X.sum(axis=1))
    assert (oracle.n_calls, oracle.n_rows, oracle.n_rows_cached) == (1, 300, 0)
    assert oracle.seconds > 0
    first[:] = 0  # the caller owns the returned array
    second_result = oracle.query(X.copy())  # the content counts, not the object
    np.testing.assert_array_equal(second_result, X.sum(axis=1))
    assert (oracle.n_calls, oracle.n_rows, oracle.n_rows_cached) == (1, 300, 300)
    second_result[:] = 0
    np.testing.assert_array_equal(oracle.query(np.asfortranarray(X)), X.sum(axis=1))
    oracle.query(X[:299])
    assert (oracle.n_calls, oracle.n_rows, oracle.n_rows_cached) == (2, 599, 600)
    assert "2 calls, 599 rows, 600 rows from the cache" in repr(oracle)
    assert "CallableRegressor" in repr(oracle)


@pytest.mark.parametrize(
    "other",
    [
        X[::-1],
        X.T.reshape(300, 4),
        X + 1e-12,
        X[:, [1, 0, 2, 3]],
        pd.DataFrame(X, columns=list("abcd")),
    ],
)
def test_oracle_does_not_confuse_other_rows(other):
    function = Recorder()
    oracle = Oracle(CallableRegressor(function))
    oracle.query(X)
    np.testing.assert_allclose(oracle.query(other), np.asarray(other).sum(axis=1))
    assert function.sizes == [300, 300]


def test_oracle_cache_separates_texts_from_numbers():
    oracle = Oracle(CallableRegressor(lambda X: [float(isinstance(v, str)) for v in X["a"]]))
    for row, text in ((["1", 1], 1.0), ([1, "1"], 0.0), ([1, 1], 0.0), (["1", "1"], 1.0)):
        frame = pd.DataFrame([row], columns=["a", "b"], dtype=object)
        assert oracle.query(frame).tolist() == [text]


@pytest.mark.parametrize("form", ["text", "category", "mixed", "array", "polars"])
def test_oracle_separates_codes_that_equal_as_numbers(form):
    codes = [1, "1", "a"] if form == "mixed" else ["1", "01", "1.0", "nan", None]
    forms = {
        "category": lambda rows: pd.DataFrame({"code": pd.Categorical(rows)}),
        "array": lambda rows: np.array(rows, dtype=object)[:, None],
        "polars": lambda rows: pl.DataFrame({"code": pl.Series(rows, dtype=pl.String)}),
    }
    make = forms.get(form, lambda rows: pd.DataFrame({"code": pd.Series(rows, dtype=object)}))

    def place(X):
        rows = X if isinstance(X, np.ndarray) else X.to_numpy()
        return [codes.index(None if v is None or v != v else v) for v in rows[:, 0].tolist()]

    oracle = Oracle(CallableClassifier(place), like=make(codes))
    queries = [[code] for code in codes] if form != "mixed" else [[1, "1", "a"], ["1", 1, "a"]]
    for rows in queries:
        assert oracle.query(make(rows)).tolist() == [codes.index(code) for code in rows]


def test_texts_stay_texts_for_array_models():
    rows = np.array([["1"], ["01"], ["001"]] * 2, dtype=object)
    box = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier())
    box.fit(rows, [0, 1, 2] * 2)
    frame = pd.DataFrame({"code": pd.Categorical(rows[:, 0])})
    assert CARTExtractor(FrozenEstimator(box)).fit(frame).predict(frame).tolist() == [0, 1, 2] * 2


def test_oracle_separates_shapes_types_and_names():
    oracle = Oracle(CallableRegressor(Recorder()))
    zeros = np.zeros((4, 2))
    assert len(oracle.query(zeros)) == 4
    assert len(oracle.query(zeros.reshape(2, 4))) == 2
    assert len(oracle.query(np.zeros((4, 2), dtype=np.int64))) == 4
    assert oracle.n_rows_cached == 0
    named = pd.DataFrame(zeros, columns=["a", "b"])
    oracle.query(named)
    oracle.query(named.rename(columns={"a": "b", "b": "a"}))
    assert oracle.n_rows_cached == 0
    assert len(oracle.query(named)) == oracle.n_rows_cached == 4


@pytest.mark.parametrize("size", [1, 7, 299, 300, 301, None])
@pytest.mark.parametrize("frame", [False, True])
def test_oracle_queries_in_batches(size, frame):
    rows = pd.DataFrame(X, columns=list("abcd"), index=np.arange(300)[::-1]) if frame else X
    function = Recorder()
    oracle = Oracle(CallableRegressor(function), like=rows, batch_size=size)
    np.testing.assert_array_equal(oracle.query(rows), X.sum(axis=1))
    n_full, rest = divmod(300, size or 300)
    assert function.sizes == [size or 300] * n_full + [rest] * (rest > 0)
    assert (oracle.n_calls, oracle.n_rows) == (len(function.sizes), 300)
    np.testing.assert_array_equal(np.vstack(function.shown), X)


def test_oracle_pickle_omits_cache():
    oracle = Oracle(DecisionTreeRegressor(max_depth=1).fit(X, y))
    empty = len(pickle.dumps(oracle))
    for shift in range(10):
        oracle.query(X + shift)
    other = pickle.loads(pickle.dumps(oracle))
    assert len(pickle.dumps(oracle)) < empty + 100
    assert (other.n_calls, other.n_rows) == (10, 3000)
    np.testing.assert_array_equal(other.query(X), oracle.query(X))
    assert (other.n_calls, oracle.n_calls) == (11, 10)


class TwoOutputs:
    def predict(self, rows):
        return np.zeros((len(rows), 2))


def test_oracle_rejects_several_outputs():
    with pytest.raises(
        ValueError, match=r"TwoOutputs must predict one label or number per row, .*shape \(300, 2\)"
    ):
        Oracle(TwoOutputs()).query(X)


# --- queries of extractors ---


@pytest.mark.parametrize("size", [1, 50, 299])
@pytest.mark.parametrize("adapter", [CallableClassifier, CallableRegressor])
@pytest.mark.parametrize("min_examples", [1, 30])
def test_batch_size_does_not_change_rules(size, adapter, min_examples):
    functions = {
        CallableClassifier: lambda rows: np.where(rows[:, 0] * rows[:, 1] > 0, "plus", "minus"),
        CallableRegressor: lambda rows: rows[:, 0] * rows[:, 1],
    }
    # Each cell is queried in its own chunks if necessary, with the same results.
    expected = whole_grid(
        adapter(functions[adapter]), min_examples=min_examples, random_state=0
    ).fit(X)
    extractor = clone(expected).set_params(batch_size=size).fit(X)
    assert extractor.rules_ == expected.rules_
    assert extractor.oracle_.n_rows == expected.oracle_.n_rows
    assert extractor.oracle_.n_calls > expected.oracle_.n_calls


def test_cart_queries_once():
    function = Recorder()
    extractor = CARTExtractor(CallableRegressor(function)).fit(X)
    assert function.sizes == [300]
    assert (extractor.oracle_.n_calls, extractor.oracle_.n_rows) == (1, 300)


@pytest.mark.parametrize("min_examples", [0, 1])
@pytest.mark.parametrize("depth", [1, 3])
def test_gridex_without_points_queries_rows_only(min_examples, depth):
    function = Recorder()
    whole_grid(CallableRegressor(function), min_examples=min_examples, depth=depth, n_slices=3).fit(
        X
    )
    assert function.sizes == [300]
    np.testing.assert_array_equal(function.shown[0], X)


@pytest.mark.parametrize("answer", [lambda r: r.sum(axis=1), lambda r: np.sign(r.prod(axis=1))])
def test_gridex_queries_once_per_level(answer):
    function = Recorder(answer)
    extractor = whole_grid(
        CallableRegressor(function), min_examples=50, depth=3, threshold=0.1, random_state=0
    ).fit(X)
    assert function.sizes[0] == 300
    assert 2 <= len(function.sizes) <= 1 + 3
    assert extractor.oracle_.n_calls == len(function.sizes)
    assert extractor.oracle_.n_rows == sum(function.sizes)
    # The first level has at most 16 cells with rows, each filled up to 50 rows.
    middle = (X.max(axis=0) + X.min(axis=0)) / 2
    cells = np.unique(middle <= X, axis=0, return_counts=True)[1]
    assert function.sizes[1] == np.maximum(0, 50 - cells).sum()


def test_gridex_skips_queries_of_full_cells():
    function = Recorder()
    rows = np.random.default_rng(0).uniform(size=(400, 1))
    whole_grid(CallableRegressor(function), min_examples=50, depth=1, n_slices=4).fit(rows)
    assert function.sizes == [400]


def test_gridex_stops_queries_at_final_boxes():
    function = Recorder(lambda rows: (rows[:, 0] > 0.5) * 1.0)
    # Two rows at the ends, so that the middle of the domain is 0.5.
    rows = np.array([[0.0], [0.1], [0.9], [1.0]])
    extractor = whole_grid(
        CallableRegressor(function), min_examples=20, depth=5, random_state=0
    ).fit(rows)
    assert function.sizes == [4, 36]
    assert extractor.n_rules_ == 2


def test_gridex_cells_never_outnumber_rows():
    # A grid of 2**40 cells, of which only those with rows may be created.
    rows = np.random.default_rng(0).normal(size=(120, 40))
    for black_box in (
        CallableClassifier(lambda r: (r[:, 0] > 0) * 1 + (r[:, 1] > 0)),
        CallableRegressor(lambda r: r.sum(axis=1)),
    ):
        for depth in (1, 3):
            extractor = whole_grid(black_box, n_slices=2, depth=depth).fit(rows)
            assert extractor.n_rules_ <= 120
            assert extractor.coverage_ == 1.0
    extractor = whole_grid(black_box, n_slices=2, depth=1, min_examples=3).fit(rows)
    assert extractor.oracle_.n_rows <= 3 * 120


# --- cached black box ---


def test_cached_black_box_is_queried_once():
    function = Recorder(lambda rows: (rows[:, 0] > 0) * 1)
    model = CachedBlackBox(CallableClassifier(function))
    for extractor in (CARTExtractor(model), whole_grid(model), whole_grid(model)):
        extractor.fit(X, y)
        assert extractor.estimator_ is model
    assert function.sizes == [300]
    assert (model.oracle.n_calls, model.oracle.n_rows_cached) == (1, 600)
    search = GridSearchCV(whole_grid(model), {"n_slices": [2, 3], "depth": [1, 2]}, cv=3)
    search.fit(X, y)
    assert sorted(function.sizes) == [200, 200, 200, 300]


def test_cached_black_box_is_frozen():
    tree = KNeighborsClassifier().fit(X, y)
    model = CachedBlackBox(tree)
    assert clone(model) is model
    assert model.fit(X, 1 - y) is model
    assert model.estimator is tree
    np.testing.assert_array_equal(model.predict(X), tree.predict(X))
    assert model.classes_.tolist() == [0, 1]
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(X), tree.predict(X))


def test_cached_black_box_has_tags_of_frozen_estimator():
    for model in (DecisionTreeClassifier(), DecisionTreeRegressor().fit([[0.0], [1.0]], [0, 1])):
        assert get_tags(CachedBlackBox(model)) == get_tags(FrozenEstimator(model))
        assert not get_tags(model)._skip_test


def test_cached_black_box_accepts_frames_and_arrays():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = CachedBlackBox(KNeighborsClassifier().fit(frame, y))
    # scikit-learn would warn of rows without names, which is an error here.
    whole_grid(model, min_examples=20, random_state=0).fit(frame)
    whole_grid(model, min_examples=20, random_state=0).fit(X)


def test_oracle_keeps_rows_in_cache_despite_many_points():
    queries = []

    class BlackBox(BaseEstimator):
        def predict(self, X):
            queries.append(len(X))
            return X.sum(axis=1)

    rows = np.arange(20.0).reshape(10, 2)
    cached = CachedBlackBox(BlackBox())
    oracle = Oracle(cached)
    oracle.query(rows)
    for i in range(200):
        points = rows[:3] + i + 0.5
        np.testing.assert_array_equal(oracle.query(points, cache=False), points.sum(axis=1))
    assert (oracle.n_calls, oracle.n_rows) == (201, 610)
    oracle.query(rows)
    Oracle(cached).query(rows)  # another candidate of the same search
    assert queries == [10] + [3] * 200
    assert (oracle.n_calls, oracle.n_rows_cached) == (201, 10)


@pytest.mark.parametrize("dtype", ["object", "bool", "boolean"])
def test_oracle_restores_booleans_of_drawn_points(dtype):
    flags = pd.Series([True, False, True], dtype=dtype)
    frame = pd.DataFrame({"flag": flags, "size": [1.0, 2.0, 3.0]})
    queries = []

    def function(rows):
        queries.append(rows)
        return np.zeros(len(rows))

    oracle = Oracle(CallableRegressor(function), like=frame)
    oracle.query(np.array([[0.2, 1.25], [0.7, 2.5]]))
    assert queries[0]["flag"].tolist() == [False, True]
    assert queries[0]["flag"].dtype == frame["flag"].dtype
    assert queries[0]["size"].tolist() == [1.25, 2.5]


@pytest.mark.parametrize("name", ["iter", "real", "trepan"])
def test_extractors_accept_booleans_as_objects(name):
    random = np.random.default_rng(1)
    X = pd.DataFrame(
        {"smoker": np.array([True, False] * 60, dtype=object), "n": random.normal(size=120)}
    )
    y = np.where((X["n"] > 0) ^ X["smoker"].astype(bool), "a", "b")
    columns = make_column_transformer((OneHotEncoder(), ["smoker"]), remainder="passthrough")
    black_box = make_pipeline(columns, DecisionTreeClassifier(random_state=0))
    extractor = extractor_class(name)(black_box).fit(X, y)
    assert extractor.fidelity(X) >= 0.9
    assert extractor.oracle_.n_calls > 1


class FrameKeeper(BaseEstimator):
    """Model that keeps the frame of its last query."""

    def predict(self, X):
        self.frame = X
        return np.zeros(len(X))


@given(
    st.lists(
        st.sampled_from(
            ["float64", "float32", "Float32", "int64", "int8", "Int64", "bool", "object"]
        ),
        min_size=1,
    ),
    st.lists(st.sampled_from([0.0, 1.0, -3.0, 0.5, np.nan, np.inf, 2.0**53]), max_size=4),
    st.integers(0, 2**32),
)
def test_oracle_gives_points_the_types_of_rows(kinds, values, seed):
    rng = np.random.default_rng(seed)
    names = [f"column {j}" for j in range(len(kinds))]
    like = pd.DataFrame(
        {n: pd.Series([0, 1, 1]).astype(k) for n, k in zip(names, kinds, strict=True)}
    )
    points = rng.choice([0.0, 1.0, *values], size=(3, len(kinds)))
    model = FrameKeeper()
    Oracle(model, like=like).query(points)
    frame = model.frame
    assert list(frame.columns) == names
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        numbers = points[:, j]
        is_missing = np.isnan(numbers) & (kind in ("Int64", "Float32"))
        rest = numbers[~is_missing]
        is_whole = np.isfinite(rest).all() and (rest % 1 == 0).all()
        if kind in ("bool", "object"):
            assert frame[name].dtype == kind
        elif kind in ("float32", "Float32"):
            assert str(frame[name].dtype) == kind
            values = frame[name].to_numpy(dtype=float, na_value=np.nan)
            assert np.array_equal(values, numbers.astype(np.float32), equal_nan=True)
        elif kind == "float64" or not is_whole or abs(rest).max(initial=0) >= 2.0**53:
            assert frame[name].dtype == np.float64
            assert np.array_equal(frame[name], numbers, equal_nan=True)
        else:
            assert str(frame[name].dtype) == kind
            assert frame[name].isna().tolist() == is_missing.tolist()
            assert frame[name][~is_missing].tolist() == rest.tolist()
