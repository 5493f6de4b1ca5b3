"""Unusable input is rejected with an error that names the remedy."""

from __future__ import annotations

import decimal
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableRegressor
from skescore.extractors import BaseExtractor, CARTExtractor, GridExExtractor

X, y = load_iris(return_X_y=True)
NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(params=[CARTExtractor, GridExExtractor], ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


@pytest.fixture
def extractor(cls):
    return cls(DecisionTreeClassifier(random_state=0), random_state=0)


@pytest.fixture
def fitted(cls):
    return cls(DecisionTreeClassifier(random_state=0)).fit(FRAME, y)


def changed(value, *, frame=True):
    """Return the rows with another value in row 7, column c."""
    if frame:
        rows = FRAME.copy()
        rows["c"] = rows["c"].astype(object)
        rows.loc[7, "c"] = value
        return rows
    rows = X.copy()
    rows[7, 2] = value
    return rows


# --- rows ---


@pytest.mark.parametrize(("value", "value_text"), [(np.inf, "inf"), (-np.inf, "-inf")])
def test_infinite_values_are_rejected(extractor, fitted, value, value_text):
    message = (
        rf"Input X contains infinity: column 'c' holds {value_text} in row 7\. Rules need finite "
        r"numbers; replace or drop such rows\."
    )
    with pytest.raises(ValueError, match=message):
        extractor.fit(changed(value), y)
    with pytest.raises(ValueError, match=message):
        fitted.covers(changed(value))
    with pytest.raises(ValueError, match="Input X contains infinity"):
        extractor.fit(changed(value, frame=False), y)


@pytest.mark.parametrize("value", ["n/a", "1,5", "1.5", "", pd.Timestamp("2024-05-01"), (1, 2)])
def test_text_in_numeric_columns_is_rejected(cls, extractor, fitted, value):
    rows = FRAME.copy()
    column = list(rows["c"])
    column[7] = column[9] = value
    rows["c"] = pd.Series(column, dtype=object)
    message = (
        rf"{cls.__name__} needs numbers, but column 'c' holds {re.escape(repr(value))} in row 7 "
        r"\(2 of 150 rows"
    )
    with pytest.raises(ValueError, match=message):
        extractor.fit(rows, y)
    if value != "1.5":  # NumPy reads that as a number
        with pytest.raises(ValueError, match=message):
            fitted.predict(rows)


@pytest.mark.parametrize(
    ("column", "value_text"),
    [
        (pd.Series(["low"] * 150), "'low'"),
        (pd.Series(["low"] * 150, dtype="string"), "'low'"),
        (pd.Series(["low"] * 150, dtype="category"), "'low'"),
        (pd.Series(["1.5"] * 150, dtype="str"), r"'1\.5'"),
        (pd.Series(pd.date_range("2024-05-01", periods=150)), r"Timestamp\('2024-05-01"),
        (pd.Series(pd.to_timedelta(np.arange(150), unit="D")), "Timedelta"),
    ],
)
def test_columns_without_numbers_are_rejected(cls, extractor, column, value_text):
    if cls.takes_categories and value_text == "'low'":
        rows, _ = extractor.check_input(FRAME.assign(c=column), y, "classification")
        assert (rows[:, 2] == 0).all()  # the only category
        return
    with pytest.raises(
        ValueError, match=f"column 'c' holds {value_text}.* in row 0 .150 of 150 rows"
    ):
        extractor.fit(FRAME.assign(c=column), y)


def test_text_in_other_containers_is_rejected(extractor):
    polars = pl.DataFrame(X, schema=NAMES, orient="row").with_columns(pl.Series("c", ["1"] * 150))
    with pytest.raises(ValueError, match="column 'c' holds '1' in row 0"):
        extractor.fit(polars, y)
    array = X.astype(object)
    array[7, 2] = "low"
    with pytest.raises(ValueError, match="could not convert string to float: 'low'"):
        extractor.fit(array, y)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(X[:, 2], dtype=object),
        pd.Series((10 * X[:, 2]).astype(int), dtype="Int32"),
        pd.Series([decimal.Decimal(str(v)) for v in X[:, 2]]),
        pd.Series(X[:, 2].astype(np.float32)),
    ],
)
def test_numeric_columns_of_other_types_are_accepted(extractor, column):
    rows = FRAME.assign(c=column)
    fitted = extractor.fit(rows, y)
    expected = clone(extractor).fit(rows.astype(float), y)
    assert fitted.rules_ == expected.rules_
    np.testing.assert_array_equal(fitted.predict(rows), expected.predict(rows.astype(float)))


def test_duplicate_column_names_are_rejected(extractor, fitted):
    rows = FRAME.set_axis(["a", "b", "a", "b"], axis=1)
    message = "more than one column named 'a', 'b'"
    with pytest.raises(ValueError, match=message):
        extractor.fit(rows, y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(rows)
    with pytest.raises(ValueError, match="more than one column named '1'"):
        extractor.fit(FRAME.set_axis([1, "1", 2, 3], axis=1), y)


@pytest.mark.parametrize("rows", [sparse.csr_matrix(X), sparse.csc_array(X)])
def test_sparse_rows_are_rejected(extractor, rows):
    message = r"Sparse data was passed.*dense data is required"
    with pytest.raises(TypeError, match=message):
        extractor.fit(rows, y)
    extractor.fit(X, y)
    with pytest.raises(TypeError, match=message):
        extractor.predict(rows)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X[:, 0], "Expected 2D array, got 1D array instead"),
        (X[None], "Found array with dim 3, while dim <= 2 is required"),
        (X[:0], "Found array with 0 sample"),
        (X[:1], r"Found array with 1 sample.* while a minimum of 2 is required"),
        (X[:, :0], r"Found array with 0 feature.* while a minimum of 1 is required"),
        (FRAME[[]], r"0 feature|at least one array or dtype|minimum of 1 is required"),
        (5.0, "Expected 2D array, got scalar array instead"),
        ("a.csv", "Expected 2D array|could not convert"),
        (None, "Expected 2D array|array"),
        (X + 1j, "Complex data not supported"),
        (["a b", "c"], r"got a sequence of texts\. To explain a text classifier"),
        (np.array(["a b", "c"], dtype=object), "got a sequence of texts"),
        (pd.Series(["a b", "c"]), "got a sequence of texts"),
    ],
    ids=[
        "1-D",
        "3-D",
        "no rows",
        "one row",
        "no features",
        "no columns",
        "number",
        "name",
        "None",
        "complex",
        "list of texts",
        "array of texts",
        "series of texts",
    ],
)
def test_wrong_shapes_are_rejected(extractor, rows, message):
    labels = y if rows is None or np.ndim(rows) < 2 else y[: len(rows)]
    with pytest.raises(ValueError, match=message):
        extractor.fit(rows, labels)
    frozen = FrozenEstimator(DecisionTreeClassifier().fit(X, y))
    with pytest.raises(ValueError, match=message):
        extractor.set_params(estimator=frozen).fit(rows)


# --- y ---


def test_single_class_is_rejected(extractor):
    with pytest.raises(ValueError, match="only one class, 'a'"):
        extractor.fit(X, ["a"] * 150)


@pytest.mark.parametrize("labels", [y[:149], np.r_[y, y]])
def test_y_of_another_length_is_rejected(extractor, labels):
    with pytest.raises(
        ValueError, match=rf"inconsistent numbers of samples: \[150, {len(labels)}\]"
    ):
        extractor.fit(X, labels)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (y + 0.5 * X[:, 0], "Unknown label type: continuous"),
        (np.where(y == 1, np.nan, y), "Input y contains NaN"),
        (np.column_stack([y, y]), "y should be a 1d array"),
        (
            np.array([None, "a", "b"], dtype=object)[y],
            "y lacks a label in 50 of 150 rows",
        ),
    ],
    ids=["numbers", "NaN", "two columns", "None"],
)
def test_invalid_labels_are_rejected(extractor, labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        extractor.fit(X, labels)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (["low"] * 150, "could not convert string to float: .*low"),
        (np.where(y == 1, np.nan, y), "Input y contains NaN"),
        (np.where(y == 1, np.inf, y), "Input y contains infinity"),
        (np.column_stack([y, y]), "y should be a 1d array"),
    ],
    ids=["text", "NaN", "inf", "two columns"],
)
def test_invalid_target_numbers_are_rejected(cls, numbers, message):
    with pytest.raises(ValueError, match=message):
        cls(LinearRegression()).fit(X, numbers)


# --- the black box ---


@pytest.mark.parametrize(
    "estimator",
    [
        StandardScaler(),
        None,
        "random-forest",
        3,
        lambda rows: rows,
        DecisionTreeClassifier().fit(X, y).predict,
        FrozenEstimator(StandardScaler().fit(X)),
    ],
    ids=lambda e: type(e).__name__,
)
def test_estimators_that_do_not_predict_are_rejected(cls, estimator):
    with pytest.raises(
        TypeError,
        match=r"^estimator must be a scikit-learn classifier, regressor, clusterer or outlier "
        r"detector, got .*Wrap any other model's function: CallableClassifier\(model\.predict\) "
        r"or CallableRegressor",
    ) as caught:
        cls(estimator).fit(X, y)
    assert repr(estimator) in str(caught.value)


def test_estimator_class_is_rejected(cls):
    with pytest.raises(TypeError, match=r"instance .*LinearRegression"):
        cls(LinearRegression).fit(X, y)


def test_extractors_with_unusable_black_box_have_a_repr(cls):
    for estimator in (None, LinearRegression, "random-forest"):
        extractor = cls(estimator)
        assert cls.__name__ in repr(extractor)
        assert not hasattr(extractor, "predict_proba")


class OnlyRegression(BaseExtractor):
    tasks = ("regression",)

    def __init__(self, estimator, *, uncovered="default", abstain_label=None, batch_size=None):
        self.estimator = estimator
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_parameters(self):
        pass

    def _extract(self, extraction):
        raise AssertionError


def test_unsupported_task_is_rejected():
    with pytest.raises(
        ValueError,
        match="OnlyRegression extracts rules for regression only, but the black box "
        "LogisticRegression is for classification",
    ):
        OnlyRegression(LogisticRegression()).fit(X, y)


class TwoOutputs(DecisionTreeRegressor):
    def predict(self, X):
        return np.zeros((len(X), 2))


def test_black_box_with_several_outputs_is_rejected(cls):
    with pytest.raises(
        ValueError, match=r"one label or number per row, .* \(150, 2\).*one output at a time"
    ):
        cls(TwoOutputs()).fit(X, y)


def test_black_box_without_predict_is_rejected(cls):
    class OnlyProba(ClassifierMixin, BaseEstimator):
        def predict_proba(self, X):
            return np.tile([0.5, 0.5], (len(X), 1))

    with pytest.raises(TypeError, match="estimator must have predict, which OnlyProba lacks"):
        cls(OnlyProba()).fit(X, y)


def test_missing_or_mixed_labels_are_rejected(extractor):
    labels = np.array(["a", "b"] * 75, dtype=object)
    labels[7] = None
    with pytest.raises(ValueError, match=r"y lacks a label in 1 of 150 rows, the first in row 7"):
        extractor.fit(X, labels)
    labels[7] = 3
    with pytest.raises(ValueError, match="y mixes labels of different types"):
        extractor.fit(X, labels)


@pytest.mark.parametrize("gone", [np.nan, pd.NA, 3])
def test_missing_labels_in_lists_are_rejected(extractor, gone):
    with pytest.raises(ValueError, match=r"y (lacks a label|mixes labels)"):
        extractor.fit(X, ["a", "b"] * 74 + ["a", gone])


def test_cart_rejects_features_too_large_for_a_tree():
    rows = X.copy()
    rows[3, 1] = 1e200
    with pytest.raises(ValueError, match=r"Feature 'x1' holds numbers up to 1e\+200.*Scale the"):
        CARTExtractor(CallableRegressor(lambda rows: rows[:, 0])).fit(rows)


def test_complex_predictions_are_rejected():
    black_box = CallableRegressor(lambda rows: rows[:, 0] + 1j)
    with pytest.raises(ValueError, match=r"predicted .*j.*not a number"):
        CARTExtractor(black_box).fit(X)


def test_cart_rejects_predictions_with_infinite_squares():
    with pytest.raises(ValueError, match=r"predicts numbers up to .*Scale the target"):
        CARTExtractor(CallableRegressor(lambda rows: rows[:, 0] * 1e200)).fit(X)
