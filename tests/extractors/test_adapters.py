"""Functions as black boxes."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor, GridExExtractor

X = np.random.default_rng(0).uniform(size=(60, 2))


def word(rows):
    return np.where(rows[:, 0] > 0.5, "high", "low")


def two_scores(rows):
    return np.column_stack([rows[:, 0], 1 - rows[:, 0]])


def double(rows):
    return 2 * rows[:, 0]


class Network:
    """Stand-in for a neural network whose method is the function and that must not be copied."""

    def __init__(self, columns):
        self.columns = columns
        self.asked = 0

    def predict(self, rows):
        self.asked += 1
        scores = np.asarray(rows)[:, 0]
        return np.column_stack([scores, 1 - scores]) if self.columns == 2 else scores[:, None]

    def __deepcopy__(self, memo):
        raise AssertionError("the model was copied")


class FirstColumn:
    """Function of rows in any container whose repr is the same in every process."""

    def __init__(self, label=False):
        self.label = label

    def __call__(self, rows):
        values = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
        return (values[:, 0] > 0).astype(int) if self.label else values[:, 0]

    def __repr__(self):
        return f"FirstColumn({self.label})"


# --- properties ---


def what_fitting_alone_could_meet(adapter):
    return {
        "check_supervised_y_no_nan": "labels are not looked at",
        "check_classifiers_classes": "classes are those of the function",
    }


@parametrize_with_checks(
    [CallableClassifier(FirstColumn(True), classes=[0, 1]), CallableRegressor(FirstColumn())],
    expected_failed_checks=what_fitting_alone_could_meet,
)
def test_adapters_pass_scikit_learn_checks(estimator, check):
    check(estimator)


def test_adapters_are_fitted_estimators_of_their_kind():
    classifier, regressor = CallableClassifier(word), CallableRegressor(double)
    assert is_classifier(classifier)
    assert not is_regressor(classifier)
    assert is_regressor(regressor)
    for adapter in (classifier, regressor):
        check_is_fitted(adapter)
        assert adapter.fit(X) is adapter
        assert adapter.fit(X, [0] * 60) is adapter
    assert classifier.get_params() == {
        "function": word,
        "classes": None,
        "threshold": None,
    }
    assert regressor.get_params() == {"function": double}
    assert not hasattr(classifier, "classes_")
    assert CallableClassifier(word, classes=["low", "high"]).classes_.tolist() == ["low", "high"]


def test_clones_hold_the_same_function():
    network = Network(2)
    function = network.predict
    for adapter in (
        CallableClassifier(function, classes=["yes", "no"]),
        CallableRegressor(function),
    ):
        copied = clone(adapter)
        assert copied is not adapter
        assert copied.function is function
        assert copied.get_params() == adapter.get_params()
        assert clone(CARTExtractor(adapter)).estimator.function is function


def test_extraction_never_copies_model_of_method():
    network = Network(2)
    black_box = CallableClassifier(network.predict, classes=["yes", "no"])
    y = np.where(X[:, 0] > 0.5, "yes", "no")
    for extractor in (CARTExtractor(black_box), GridExExtractor(black_box, n_slices=2)):
        extractor.fit(X)
        assert network.asked > 0
        assert extractor.fit(X, y).score(X, y) > 0.9
        assert extractor.classes_.tolist() == ["yes", "no"]
        cross_val_score(extractor, X, y, cv=2)
        GridSearchCV(extractor, {"uncovered": ["default", "nearest"]}, cv=2).fit(X, y)


def test_adapters_with_importable_functions_survive_pickle():
    extractor = CARTExtractor(CallableClassifier(word)).fit(X)
    other = pickle.loads(pickle.dumps(extractor))
    assert other.rules_ == extractor.rules_
    assert other.estimator_.function is word
    assert other.fidelity(X) == 1.0


# --- predictions ---


def test_callable_classifier_accepts_labels_and_scores():
    rows = np.array([[0.2, 0], [0.8, 0]])
    assert CallableClassifier(word).predict(rows).tolist() == ["low", "high"]
    scores = CallableClassifier(two_scores, classes=["yes", "no"])
    assert scores.predict(rows).tolist() == ["no", "yes"]
    # Equal scores: the first of the classes.
    assert scores.predict(np.array([[0.5, 0]])).tolist() == ["yes"]
    column = CallableClassifier(lambda rows: word(rows)[:, None])
    assert column.predict(rows).tolist() == ["low", "high"]
    as_list = CallableClassifier(lambda rows: ["a" if r[0] < 0.5 else "b" for r in rows])
    assert as_list.predict(rows).tolist() == ["a", "b"]


def test_callable_regressor_accepts_any_shape_of_numbers():
    rows = np.array([[1.0, 0], [2.0, 0]])
    for function in (double, lambda r: double(r)[:, None], lambda r: double(r).tolist()):
        answers = CallableRegressor(function).predict(rows)
        assert answers.tolist() == [2.0, 4.0]
        assert answers.dtype == float
    assert CallableRegressor(lambda r: np.array([1, 2])).predict(rows).dtype == float


@pytest.mark.parametrize("columns", [1, 2])
def test_callable_regressor_requires_one_output(columns):
    network = Network(columns)
    black_box = CallableRegressor(network.predict)
    if columns == 2:
        with pytest.raises(ValueError, match=r"one number per row.*shape \(60, 2\).*one output at"):
            CARTExtractor(black_box).fit(X)
    else:
        assert CARTExtractor(black_box, max_leaf_nodes=None).fit(X).fidelity(X) > 0.99


def test_undeclared_classes_come_from_predictions_and_y():
    extractor = CARTExtractor(CallableClassifier(word))
    assert extractor.fit(X).classes_.tolist() == ["high", "low"]
    y = np.where(X[:, 1] > 0.5, "middle", "low")
    assert extractor.fit(X, y).classes_.tolist() == ["high", "low", "middle"]


# --- errors ---


@pytest.mark.parametrize("adapter", [CallableClassifier, CallableRegressor])
@pytest.mark.parametrize("function", [None, "model.predict", 3])
def test_adapters_reject_values_that_are_not_callable(adapter, function):
    message = rf"function must be callable on rows, got {function!r}\. Pass for example "
    with pytest.raises(TypeError, match=message + rf"{adapter.__name__}\(model\.predict\)"):
        adapter(function).predict(X)
    with pytest.raises(TypeError, match=message):
        GridExExtractor(adapter(function)).fit(X)


@pytest.mark.parametrize("adapter", [CallableClassifier, CallableRegressor])
@pytest.mark.parametrize(
    ("answer", "shape"),
    [
        (lambda rows: np.zeros(len(rows) - 1), (59,)),
        (lambda rows: 1.0, ()),
        (lambda rows: None, ()),
        (lambda rows: np.zeros((len(rows), 1, 1)), (60, 1, 1)),
        (lambda rows: np.zeros((1, len(rows))), (1, 60)),
    ],
)
def test_callable_must_predict_every_row(adapter, answer, shape):
    pattern = re.escape(str(shape))
    with pytest.raises(ValueError, match=f"predict every row, but for 60 rows .*shape {pattern}"):
        CARTExtractor(adapter(answer)).fit(X)


@pytest.mark.parametrize("classes", [None, ["a", "b", "c"]])
def test_scores_require_one_class_per_column(classes):
    message = f"2 scores per row, but classes lists {len(classes or [])} labels"
    with pytest.raises(
        ValueError, match=rf"{message}\. Pass CallableClassifier\(function, classes"
    ):
        CARTExtractor(CallableClassifier(two_scores, classes=classes)).fit(X)


@pytest.mark.parametrize("classes", [[], ["a"], ["a", "a"], "ab", 3, [["a", "b"]]])
def test_classes_reject_invalid_lists(classes):
    with pytest.raises(ValueError, match=r"classes must list at least 2 labels, each of them once"):
        CARTExtractor(CallableClassifier(two_scores, classes=classes)).fit(X)


def test_scores_with_nan_are_rejected():
    def gap(rows):
        scores = two_scores(rows)
        scores[3, 1] = np.nan
        return scores

    with pytest.raises(ValueError, match=r"NaN among the scores of row 3 \(1 of 60 rows\)"):
        CARTExtractor(CallableClassifier(gap, classes=["a", "b"])).fit(X)


def test_undeclared_labels_are_rejected():
    black_box = CallableClassifier(word, classes=["low", "middle"])
    with pytest.raises(
        ValueError,
        match=r"predicted 'high', which is not among the classes \['low', 'middle'\]\. If it is a "
        r"CallableClassifier, pass classes=",
    ):
        CARTExtractor(black_box).fit(X[X[:, 0].argsort()[::-1]])


def test_new_labels_at_drawn_points_are_rejected():
    rows = np.vstack([X[X[:, 0] > 0.8], X[X[:, 0] < 0.2]])

    def three(rows):
        return np.where(np.abs(rows[:, 0] - 0.5) < 0.25, "middle", word(rows))

    extractor = GridExExtractor(CallableClassifier(three), min_examples=60, random_state=0)
    with pytest.raises(ValueError, match=r"predicted 'middle', which is not among .*pass classes="):
        extractor.fit(rows)
    extractor.estimator.set_params(classes=["high", "low", "middle"])
    assert extractor.fit(rows).classes_.tolist() == ["high", "low", "middle"]
    CARTExtractor(CallableClassifier(three)).fit(rows)  # queries the rows only


@pytest.mark.parametrize(
    ("answer", "y"),
    [
        (lambda rows: rows[:, 0], None),  # probabilities of one class
        (lambda rows: rows[:, :1], None),
        (word, np.arange(60) % 2),
        (lambda rows: np.arange(len(rows)) % 2, np.repeat(["a", "b"], 30)),
        (lambda rows: [None] * len(rows), None),
        (lambda rows: np.where(rows[:, 0] > 0.5, np.nan, 1.0), None),
    ],
    ids=["probabilities", "one column", "text for numbers", "numbers for text", "None", "NaN"],
)
def test_callable_must_predict_valid_labels(answer, y):
    with pytest.raises(
        ValueError,
        match=r"not a valid label.*needs classes=",
    ):
        CARTExtractor(CallableClassifier(answer)).fit(X, y)


@pytest.mark.parametrize(
    ("value", "pattern"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")]
)
def test_callable_regressor_rejects_numbers_that_are_not_finite(value, pattern):
    def gap(rows):
        return np.where(np.arange(len(rows)) % 20 == 5, value, 1.0)

    with pytest.raises(ValueError, match=rf"predicted {pattern} for row 5 \(3 of 60 rows\)"):
        CARTExtractor(CallableRegressor(gap)).fit(X)


@pytest.mark.parametrize("answer", [word, lambda rows: ["1"] * len(rows)])
def test_callable_regressor_rejects_text(answer):
    with pytest.raises(ValueError, match=r"is a regressor but predicted .*CallableClassifier"):
        CARTExtractor(CallableRegressor(answer)).fit(X)
