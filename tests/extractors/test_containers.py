"""Containers of rows: what the black box receives, and the feature names of rules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor, GridExExtractor

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
X, codes = load_iris(return_X_y=True)
y = np.array(["setosa", "versicolor", "virginica"])[codes]
PANDAS = pd.DataFrame(X, columns=NAMES)
POLARS = pl.DataFrame(X, schema=NAMES, orient="row")
FRAMES = {"pandas": PANDAS, "polars": POLARS}

EXTRACTORS = {
    "cart": lambda model: CARTExtractor(model, max_leaf_nodes=4, random_state=0),
    "gridex": lambda model: whole_grid(model, n_slices=2, min_examples=40, random_state=0),
}


@pytest.fixture(params=list(EXTRACTORS))
def make(request):
    return EXTRACTORS[request.param]


@pytest.fixture(params=list(FRAMES))
def library(request):
    return request.param


@pytest.fixture
def frame(library):
    return FRAMES[library]


class FramesOnly(ClassifierMixin, BaseEstimator):
    """Black box that accepts frames of one kind and the right columns only, and records them.

    It says nothing of names itself: the extractor's rows decide.
    """

    def __init__(self, kind=pd.DataFrame, names=tuple(NAMES)):
        self.kind = kind
        self.names = names

    def fit(self, X, y):
        self._check(X)
        self.classes_ = np.unique(y)
        self.shown_ = []
        return self

    def predict(self, X):
        self._check(X)
        self.shown_.append(X)
        width = np.asarray(X[self.names[3]])
        return self.classes_[(width > 0.8).astype(int) + (width > 1.7)]

    def _check(self, X):
        if not isinstance(X, self.kind) or list(X.columns) != list(self.names):
            raise AssertionError(f"was shown {type(X)}: {X}")


# --- a black box that was fitted on frames ---


def test_nameless_black_box_gets_the_container_of_fit(make, frame):
    extractor = make(FramesOnly(type(frame))).fit(frame, y)
    queries = extractor.estimator_.shown_
    assert queries[0].equals(frame)
    assert all(s.shape[1] == 4 for s in queries)
    if isinstance(extractor, GridExExtractor):
        assert len(queries) == 3  # the rows, and the points of two levels
    assert extractor.feature_names_in_.tolist() == NAMES
    assert extractor.rules_.feature_names == tuple(NAMES)
    assert "petal" in str(extractor.rules_)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        make_pipeline(StandardScaler(), LogisticRegression()),
        FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(PANDAS, y)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_named_black_box_never_warns_of_names(make, frame, model):
    # Warnings are errors in these tests; scikit-learn warns if such a model receives arrays.
    extractor = make(model).fit(frame, y)
    np.testing.assert_array_equal(extractor.covers(frame), extractor.rules_.covers(X))
    assert extractor.fidelity(frame) > 0.8
    assert set(extractor.predict(frame)) == {"setosa", "versicolor", "virginica"}


def test_arrays_and_frames_give_the_same_rules(make, frame):
    of_array = make(DecisionTreeClassifier(random_state=0)).fit(X, y).rules_
    of_frame = make(DecisionTreeClassifier(random_state=0)).fit(frame, y).rules_
    assert of_array.replace(feature_names=NAMES) == of_frame


def test_frozen_box_of_a_frame_gets_frames_for_arrays(make):
    model = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(PANDAS, y))
    extractor = make(model).fit(X)
    assert not hasattr(extractor, "feature_names_in_")
    assert extractor.rules_.feature_names == ("x0", "x1", "x2", "x3")
    assert extractor.fidelity(X) > 0.8


class ArraysOnly(FramesOnly):
    """Black box that is fitted on arrays and rejects frames."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return super().fit(X, y)

    def predict(self, X):
        self._check(X)
        self.shown_.append(X)
        return self.classes_[(X[:, 3] > 0.8).astype(int) + (X[:, 3] > 1.7)]

    def _check(self, X):
        if type(X) is not np.ndarray or X.dtype != float:
            raise AssertionError(f"was shown {type(X)}: {X}")


def test_frozen_box_of_arrays_gets_arrays_for_frames(make, frame):
    model = ArraysOnly().fit(X, y)
    extractor = make(FrozenEstimator(model)).fit(frame)
    assert len(model.shown_) in (1, 3)
    assert extractor.rules_.feature_names == tuple(NAMES)
    real = make(FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(X, y))).fit(frame)
    assert real.fidelity(frame) > 0.8


def test_columns_of_several_types_become_floats(make):
    mixed = PANDAS.assign(flag=PANDAS["petal width"] > 1, count=np.arange(150))
    model = ArraysOnly().fit(mixed.to_numpy(dtype=float), y)
    extractor = make(FrozenEstimator(model)).fit(mixed)
    assert all(query.shape[1] == 6 for query in model.shown_)
    assert extractor.fidelity(mixed) > 0.8
    assert extractor.oracle_.n_rows_cached == 150


def test_function_receives_container_of_fit(make, library, frame):
    containers = []

    def function(rows):
        containers.append(type(rows))
        return np.where(np.asarray(rows)[:, 2] > 2.5, "long", "short")

    make(CallableClassifier(function)).fit(frame)
    assert set(containers) == {type(frame)}
    containers.clear()
    make(CallableClassifier(function)).fit(X.tolist())
    assert set(containers) == {np.ndarray}


# --- columns in another order, or with other names ---


def other_order(frame):
    return frame[NAMES[::-1]]


def test_black_box_gets_its_own_order_of_columns(make, frame):
    # Rules must mean the same for any order of the columns: also in the points
    # that GridEx draws.
    model = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(PANDAS, y))
    extractor = make(model).fit(other_order(frame))
    assert extractor.rules_.feature_names == tuple(NAMES[::-1])
    assert extractor.fidelity(other_order(frame)) > 0.8
    recorder = make(FramesOnly(type(frame)).fit(frame, y))
    recorder.set_params(estimator=FrozenEstimator(NamedFrames(type(frame)).fit(frame, y)))
    recorder.fit(other_order(frame))
    for rows in recorder.estimator_.estimator.shown_[1:]:
        assert list(rows.columns) == NAMES
        lower, upper = X.min(axis=0) - 1e-6, X.max(axis=0) + 1e-6
        assert ((np.asarray(rows) >= lower) & (np.asarray(rows) <= upper)).all()


class NamedFrames(FramesOnly):
    """Black box that checks its columns by name, as models of scikit-learn do."""

    def fit(self, X, y):
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        return super().fit(X, y)


def test_black_box_may_use_fewer_columns(make, frame):
    model = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(PANDAS[NAMES[2:]], y))
    extractor = make(model).fit(frame)
    assert extractor.rules_.feature_names == tuple(NAMES)
    assert extractor.fidelity(frame) > 0.8


def test_black_box_of_other_columns_is_rejected(make, frame):
    model = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(PANDAS, y))
    columns = ["a", "b", *NAMES[2:]]
    renamed = frame.rename(
        dict(zip(NAMES, columns, strict=True)),
        **({"axis": 1} if isinstance(frame, pd.DataFrame) else {}),
    )
    with pytest.raises(
        ValueError,
        match=r"DecisionTreeClassifier was fitted on the columns \['sepal length'.*but X has "
        r"\['a', 'b'.*\['sepal length', 'sepal width'\] are missing\. Rename",
    ):
        make(model).fit(renamed)


def test_black_box_of_more_columns_is_rejected(make):
    model = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(PANDAS, y))
    with pytest.raises(ValueError, match=r"must have one column for each of \['sepal length'"):
        make(model).fit(X[:, :3])


@pytest.mark.parametrize("use", ["predict", "covers", "predict_proba", "fidelity"])
def test_rows_with_columns_in_another_order_are_rejected(make, frame, use):
    extractor = make(DecisionTreeClassifier(random_state=0)).fit(frame, y)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        getattr(extractor, use)(other_order(frame))


@pytest.mark.parametrize("use", ["predict", "covers", "predict_proba", "fidelity"])
def test_rows_with_other_columns_are_rejected(make, use):
    extractor = make(DecisionTreeClassifier(random_state=0)).fit(PANDAS, y)
    with pytest.raises(ValueError, match=r"Feature names unseen at fit time:\n- leaf"):
        getattr(extractor, use)(PANDAS.rename(columns={"petal width": "leaf"}))
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        getattr(extractor, use)(PANDAS[NAMES[:3]])
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        make(DecisionTreeClassifier(random_state=0)).fit(X, y).predict(X[:, :3])


# --- other containers of rows ---


def test_index_of_frame_does_not_change_rules(make):
    # Whole numbers in floats: a frame could take 0.0:50.0 for labels.
    labeled = PANDAS.set_axis(np.arange(150)[::-1] * 1.0)
    plain = make(DecisionTreeClassifier(random_state=0)).fit(PANDAS, y)
    extractor = make(DecisionTreeClassifier(random_state=0)).set_params(batch_size=50)
    assert extractor.fit(labeled, y).rules_ == plain.rules_
    assert extractor.oracle_.n_calls >= 3


@pytest.mark.parametrize(
    "container",
    [
        lambda rows: rows.tolist(),
        np.asfortranarray,
        lambda rows: rows.astype(object),
        lambda rows: np.repeat(rows, 2, axis=0)[::2],
        lambda rows: pd.DataFrame(rows),  # columns 0 to 3
        lambda rows: pd.DataFrame(rows, columns=NAMES).astype("Float64"),
        lambda rows: pd.DataFrame(rows, columns=NAMES).astype("float64[pyarrow]"),
    ],
    ids=["list", "fortran", "object", "strided", "numbered columns", "Float64", "pyarrow"],
)
def test_fit_gives_the_same_rules_for_all_containers(make, container):
    expected = make(DecisionTreeClassifier(random_state=0)).fit(X, y)
    extractor = make(DecisionTreeClassifier(random_state=0)).fit(container(X), y)
    names = extractor.rules_.feature_names
    assert extractor.rules_ == expected.rules_.replace(feature_names=names)
    np.testing.assert_array_equal(extractor.predict(container(X)), expected.predict(X))


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint16, np.float32, bool])
def test_fit_gives_the_same_rules_for_numeric_types(make, kind):
    rows = (X.mean(axis=0) < X) if kind is bool else np.round(10 * X).astype(kind)
    model = DecisionTreeClassifier(random_state=0)
    extractor = make(model).fit(rows, y)
    as_floats = make(model).fit(rows.astype(float), y)
    assert extractor.rules_ == as_floats.rules_
    np.testing.assert_array_equal(extractor.predict(rows), as_floats.predict(rows.astype(float)))


@pytest.mark.parametrize(
    "labels", [y.tolist(), pd.Series(y), pd.Series(y, index=range(150, 0, -1)), pl.Series(y)]
)
def test_label_containers_give_the_same_rules(make, labels):
    expected = make(DecisionTreeClassifier(random_state=0)).fit(PANDAS, y).rules_
    assert make(DecisionTreeClassifier(random_state=0)).fit(PANDAS, labels).rules_ == expected


def test_refit_on_array_forgets_feature_names(make):
    frame = pd.DataFrame(np.arange(40.0).reshape(20, 2) % 7, columns=["a", "b"])
    model = FrozenEstimator(DecisionTreeClassifier().fit(frame.to_numpy(), [0, 1] * 10))
    extractor = make(model).fit(frame)
    assert extractor.feature_names_in_.tolist() == ["a", "b"]
    extractor.fit(frame.to_numpy())
    assert not hasattr(extractor, "feature_names_in_")
    assert extractor.rules_.feature_names == ("x0", "x1")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones((3, 1)), "X has 1 features, but .* is expecting 2"),
        (np.ones(3), "Expected 2D array"),
        (np.ones((0, 2)), "0 sample"),
        (np.array([[1.0, np.inf]]), "contains infinity"),
        (np.array([[1.0, -np.inf]]), "contains infinity"),
    ],
)
def test_predict_rejects_invalid_arrays(rows, message):
    plane = np.arange(40.0).reshape(20, 2)
    extractor = GridExExtractor(DecisionTreeClassifier()).fit(plane, [0] * 10 + [1] * 10)
    for use in (extractor.predict, extractor.covers, extractor.predict_proba):
        with pytest.raises(ValueError, match=message):
            use(rows)
