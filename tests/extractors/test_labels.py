"""Class labels of every kind, and predictions of uncovered rows."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_friedman1
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor, GridExExtractor, ITERExtractor
from skescore.registry import extractor_class

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

random = np.random.default_rng(0)
X = random.uniform(size=(240, 3))
#: Three groups along the diagonal of the first two features.
GROUP = (X[:, 0] + X[:, 1] > 0.8).astype(int) + (X[:, 0] + X[:, 1] > 1.2)


@pytest.fixture(params=["cart", "gridex", "gridex with points"])
def extractor(request):
    model = DecisionTreeClassifier(random_state=0)
    if request.param == "cart":
        return CARTExtractor(model, max_depth=6, random_state=0)
    if request.param == "gridex":
        return whole_grid(model, n_slices=3)
    return whole_grid(model, n_slices=3, min_examples=20, random_state=0)


LABELS = {
    "str": ["low", "middle", "high"],
    "int": [0, 1, 2],
    "not consecutive": [7, -3, 1000],
    "int8": np.array([-1, 0, 1], dtype=np.int8),
    "uint8": np.array([9, 4, 200], dtype=np.uint8),
    "float-coded": [1.0, 2.0, 5.0],
    "bool": [False, True, True],
    "object": np.array(["b", "c", "a"], dtype=object),
    "digits": ["10", "9", "1"],
    "long": ["a", "a much longer label, with commas", ""],
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_extractors_accept_labels_of_every_kind(extractor, labels):
    labels = np.asarray(labels)
    y = labels[GROUP]
    extractor.fit(X, y)
    assert extractor.classes_.tolist() == sorted(set(labels.tolist()))
    assert extractor.classes_.dtype == extractor.estimator_.classes_.dtype
    answers = extractor.predict(X)
    assert answers.dtype == extractor.classes_.dtype == y.dtype
    assert accuracy_score(y, answers) > 0.85
    assert extractor.score(X, y) == accuracy_score(y, answers)
    assert type(extractor.rules_[0].output) is type(labels.tolist()[0])
    # Labels are names: rules depend only on their order.
    assert_same_but_for_labels(extractor, labels)


def assert_same_but_for_labels(extractor, labels):
    plain = clone(extractor).fit(X, GROUP) if len(set(labels.tolist())) == 3 else None
    if plain is None or list(labels) != sorted(labels):
        return
    assert [r.conditions for r in plain.rules_] == [r.conditions for r in extractor.rules_]
    assert [labels[r.output] for r in plain.rules_] == [r.output for r in extractor.rules_]


def test_predict_proba_agrees_with_predict(extractor):
    labels = np.array(["middle", "low", "high"])
    extractor.fit(X, labels[GROUP])
    points = random.uniform(-0.2, 1.2, size=(500, 3))
    shares = extractor.predict_proba(points)
    assert shares.shape == (500, 3)
    assert ((shares >= 0) & (shares <= 1)).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    # The prediction is the most frequent class; of equally frequent ones the smallest.
    expected = extractor.classes_[shares.argmax(axis=1)]
    np.testing.assert_array_equal(extractor.predict(points), expected)


def test_extractors_accept_many_classes(extractor):
    y = np.minimum((X[:, 0] * 30).astype(int), 29)
    names = np.array([f"class {i:02d}" for i in range(30)])
    if isinstance(extractor, GridExExtractor):
        extractor.set_params(n_slices=30, importance_threshold=0.99, depth=1)
    else:
        extractor.set_params(max_depth=None, max_leaf_nodes=None)
    extractor.fit(X, names[y])
    assert extractor.classes_.tolist() == names.tolist()
    assert extractor.n_rules_ >= 25
    assert extractor.score(X, names[y]) > 0.8
    assert extractor.predict_proba(X).shape == (240, 30)


class Declares(ClassifierMixin, BaseEstimator):
    """Model that predicts by a threshold and declares classes in its own order."""

    def __init__(self, classes=("x",), answers=("x", "x")):
        self.classes = classes
        self.answers = answers

    def fit(self, X, y=None):
        self.classes_ = np.array(self.classes)
        return self

    def predict(self, X):
        return np.where(X[:, 0] < 0.5, *self.answers)


def test_classes_keep_the_order_of_the_black_box(extractor):
    model = Declares(("high", "absent", "low"), ("low", "high")).fit(X)
    extractor.set_params(estimator=model).fit(X)
    assert extractor.classes_.tolist() == ["high", "absent", "low"]
    shares = extractor.predict_proba([[0.1, 0.5, 0.5], [0.9, 0.5, 0.5]])
    assert shares[:, 1].tolist() == [0, 0]
    assert shares.argmax(axis=1).tolist() == [2, 0]


def test_undeclared_prediction_is_rejected(extractor):
    model = Declares(("high", "low"), ("low", "surprise")).fit(X)
    with pytest.raises(
        ValueError, match=r"predicted 'surprise', which is not among the classes \['high', 'low'\]"
    ):
        extractor.set_params(estimator=model).fit(X)


def test_single_predicted_class_gives_warning(extractor):
    model = Declares(("high", "low"), ("low", "low")).fit(X)
    with pytest.warns(UserWarning, match="predicts 'low' for all 240 rows"):
        extractor.set_params(estimator=model).fit(X)
    assert set(extractor.predict(X)) == {"low"}
    assert extractor.score(X, ["low"] * 240) == 1.0


def test_cart_warns_of_fewer_leaves_than_classes():
    extractor = CARTExtractor(DecisionTreeClassifier(), max_leaf_nodes=2)
    with pytest.warns(UserWarning, match="max_leaf_nodes=2 is less than the 3 classes"):
        extractor.fit(X, GROUP)


# --- uncovered rows ---
# Two clusters in opposite corners of a square: the other corners are in no cell.

CORNERS = np.vstack([random.uniform(0, 1, (30, 2)), random.uniform(9, 10, (20, 2))])
CORNER_LABELS = np.repeat(["near", "far"], [30, 20])
EMPTY = np.array([[0.5, 9.4], [9.6, 0.5], [1.0, 6.0]])


def corners(**options):
    model = DecisionTreeClassifier(random_state=0)
    return whole_grid(model, n_slices=2, depth=1, **options).fit(CORNERS, CORNER_LABELS)


def test_uncovered_default_predicts_majority():
    extractor = corners()
    assert extractor.n_rules_ == 2
    assert extractor.covers(EMPTY).tolist() == [False] * 3
    assert extractor.predict(EMPTY).tolist() == ["near"] * 3
    assert extractor.predict_proba(EMPTY).tolist() == [[0.4, 0.6]] * 3
    assert extractor.completeness_ == pytest.approx(0.5)
    assert extractor.coverage_ == 1.0


def test_uncovered_nearest_uses_nearest_box():
    extractor = corners(uncovered="nearest")
    # The boxes end at about 5 along both axes, and are open outwards.
    points = [[1.0, 6.0], [6.0, 1.0], [4.0, 9.0], [9.0, 4.0]]
    assert extractor.covers(points).tolist() == [False] * 4
    assert extractor.predict(points).tolist() == ["near", "near", "far", "far"]
    assert extractor.predict_proba([[1.0, 6.0]]).tolist() == [[0.0, 1.0]]
    assert extractor.n_rules_ == 2


def test_uncovered_abstain_counts_as_error():
    extractor = corners(uncovered="abstain")
    assert extractor.predict(EMPTY).tolist() == ["no rule"] * 3
    assert extractor.predict([[0.5, 0.5], [9.5, 9.5]]).tolist() == ["near", "far"]
    assert extractor.predict_proba(EMPTY).tolist() == [[0.5, 0.5]] * 3
    assert corners(uncovered="abstain", abstain_label="?").predict(EMPTY).tolist() == ["?"] * 3
    # A missing prediction is a wrong one.
    rows, truth = np.vstack([CORNERS, EMPTY]), [*CORNER_LABELS, "near", "near", "near"]
    assert extractor.score(rows, truth) == pytest.approx(50 / 53)
    assert extractor.fidelity(CORNERS) == 1.0


@pytest.mark.parametrize(
    ("labels", "abstain_label", "answer"),
    [
        ([3, 8], None, -1),
        ([3, 8], 0, 0),
        ([1.0, 2.0], None, -1.0),
        ([3, 8], "none", "none"),
        ([False, True], "none", "none"),
        (["yes", "no"], -1, -1),
    ],
)
def test_abstain_label_is_predicted_and_scored_as_error(labels, abstain_label, answer):
    y = np.array(labels)[(CORNER_LABELS == "far").astype(int)]
    extractor = whole_grid(
        DecisionTreeClassifier(random_state=0),
        depth=1,
        uncovered="abstain",
        abstain_label=abstain_label,
    ).fit(CORNERS, y)
    assert extractor.predict(EMPTY).tolist() == [answer] * 3
    assert extractor.predict(CORNERS).tolist() == y.tolist()
    weights = np.r_[np.ones(50), np.full(3, 50 / 3)]
    rows, truth = np.vstack([CORNERS, EMPTY]), np.r_[y, y[:3]]
    assert extractor.score(rows, truth) == pytest.approx(50 / 53)
    assert extractor.score(rows, truth, sample_weight=weights) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("labels", "abstain_label", "message"),
    [
        ([False, True], None, "no label left besides True and False: pass abstain_label="),
        ([-1, 1], None, "would predict -1, which is one of the classes: pass abstain_label="),
        (["no rule", "b"], None, "would predict 'no rule', which is one of the classes"),
        (["a", "b"], "a", "abstain_label must not be one of the classes, got 'a'"),
        ([0, 1], 1.0, r"abstain_label must not be one of the classes, got 1\.0"),
        ([False, True], False, "abstain_label must not be one of the classes, got False"),
    ],
)
def test_abstain_label_rejects_classes(extractor, labels, abstain_label, message):
    extractor.set_params(uncovered="abstain", abstain_label=abstain_label)
    with pytest.raises(ValueError, match=message):
        extractor.fit(X, np.array(labels)[np.minimum(GROUP, 1)])


def test_uncovered_options_differ_in_regression():
    X, y = make_friedman1(100, random_state=0)
    model = FrozenEstimator(KNeighborsRegressor(3).fit(X, y))
    answers = model.predict(X)
    points = np.random.default_rng(0).uniform(size=(300, 10))

    def fitted(uncovered):
        return whole_grid(model, n_slices=2, depth=1, uncovered=uncovered).fit(X)

    default, nearest, abstain = map(fitted, ("default", "nearest", "abstain"))
    covered = default.covers(points)
    assert 0.02 < covered.mean() < 0.5
    np.testing.assert_allclose(default.predict(points)[~covered], answers.mean(), rtol=5.1e-4)
    assert np.isnan(abstain.predict(points)[~covered]).all()
    assert len(set(nearest.predict(points)[~covered])) > 10
    for other in (nearest, abstain):
        np.testing.assert_array_equal(
            other.predict(points)[covered], default.predict(points)[covered]
        )
    # In the score, a missing prediction counts as the mean.
    truth = model.predict(points)
    assert abstain.score(points, truth) == default.score(points, truth)
    assert default.score(points, truth) == r2_score(truth, default.predict(points))
    assert math.isfinite(abstain.fidelity(points))


@pytest.mark.parametrize("name", ["iter", "real"])
def test_fallback_is_the_majority_of_uncovered_rows(name):
    X, y = load_iris(return_X_y=True)
    rows = np.r_[0:50, 50:80, 100:120]  # half of them are setosa
    extractor = extractor_class(name)(KNeighborsClassifier(5), max_rules=1).fit(X[rows], y[rows])
    labels = extractor.estimator_.predict(X[rows])
    uncovered = ~extractor.covers(X[rows])
    counts = np.bincount(labels[uncovered], minlength=3)
    assert uncovered.sum() > 10
    assert counts.argmax() != np.bincount(labels).argmax()
    assert extractor.rules_.fallback.output == counts.argmax()
    assert extractor.rules_.fallback.class_counts == tuple(counts)
    assert (extractor.predict(X[rows])[uncovered] == counts.argmax()).all()


def test_fallback_is_the_mean_of_uncovered_rows():
    X, y = make_friedman1(200, random_state=0)
    extractor = ITERExtractor(KNeighborsRegressor(3), max_rules=1, random_state=0).fit(X, y)
    uncovered = ~extractor.covers(X)
    assert 10 < uncovered.sum() < 190
    expected = extractor.estimator_.predict(X)[uncovered].mean()
    assert extractor.rules_.fallback.output == pytest.approx(expected, rel=1e-3)
