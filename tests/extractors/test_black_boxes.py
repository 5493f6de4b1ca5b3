"""Frozen, fitted and unfitted black boxes, also in pipelines and in searches."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_iris, make_friedman1
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.rules import as_ruleset

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

X, y = load_iris(return_X_y=True)
EXTRACTORS = [
    CARTExtractor(GaussianNB(), max_leaf_nodes=4, random_state=0),
    whole_grid(GaussianNB(), n_slices=3, importance_threshold=0.5, depth=1),
]


@pytest.fixture(params=EXTRACTORS, ids=lambda e: type(e).__name__)
def extractor(request):
    return clone(request.param)


class Counting(ClassifierMixin, BaseEstimator):
    """Black box that counts its fits and queries in lists that clones share."""

    def __init__(self, fits=None, questions=None):
        self.fits = fits
        self.questions = questions

    def fit(self, X, y):
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.cut_ = np.median(np.asarray(X)[:, 2])
        self.most_ = self.classes_[np.bincount(codes).argmax()]
        self.n_seen_ = len(X)
        if self.fits is not None:
            self.fits.append(self)
        return self

    def predict(self, X):
        if self.questions is not None:
            self.questions.append(len(X))
        above = np.asarray(X)[:, 2] > self.cut_
        return np.where(above, self.classes_[-1], self.classes_[0])

    def __sklearn_clone__(self):
        return type(self)(self.fits, self.questions)


# --- frozen ---


def test_frozen_black_box_stays_the_same_object(extractor):
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    frozen = FrozenEstimator(model)
    trees = list(model.estimators_)
    extractor.set_params(estimator=frozen)
    for fitted in (extractor.fit(X), extractor.fit(X, y), clone(extractor).fit(X, y)):
        assert fitted.estimator is frozen
        assert fitted.estimator_ is frozen
        assert fitted.estimator_.estimator is model
    assert all(a is b for a, b in zip(model.estimators_, trees, strict=True))


def test_frozen_black_box_is_not_refitted_in_searches(extractor):
    fits, questions = [], []
    model = Counting(fits, questions).fit(X, y)
    extractor.set_params(estimator=FrozenEstimator(model), uncovered="default")
    scores = cross_val_score(extractor, X, y, cv=3)
    search = GridSearchCV(extractor, {"uncovered": ["default", "nearest"]}, cv=3).fit(X, y)
    assert fits == [model]
    assert search.best_estimator_.estimator_.estimator is model
    # A rule list fits this black box perfectly, so the errors are those of the black box.
    assert scores.mean() == pytest.approx(np.mean(model.predict(X) == y), abs=0.05)
    # The two candidates of each fold and the final one query the rows once each.
    assert questions.count(100) == 3 * (1 + 2)
    assert questions.count(150) == 1 + 1  # the line above queries as well


def test_frozen_black_box_survives_pickle(extractor, tmp_path):
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    extractor.set_params(estimator=FrozenEstimator(model)).fit(X)
    joblib.dump(extractor, tmp_path / "extractor.joblib")
    for other in (
        pickle.loads(pickle.dumps(extractor)),
        joblib.load(tmp_path / "extractor.joblib"),
        copy.deepcopy(extractor),
    ):
        assert isinstance(other.estimator, FrozenEstimator)
        assert other.estimator_ is other.estimator
        assert other.rules_ == extractor.rules_
        np.testing.assert_array_equal(other.estimator_.predict(X), model.predict(X))
        assert other.fit(X).rules_ == extractor.rules_


def test_frozen_black_box_needs_no_second_class_in_y(extractor):
    extractor.set_params(estimator=FrozenEstimator(GaussianNB().fit(X, y)))
    rules = extractor.fit(X).rules_
    assert extractor.fit(X, np.zeros(len(X), dtype=int)).rules_ == rules


def test_unfitted_frozen_black_box_is_rejected(extractor):
    extractor.set_params(estimator=FrozenEstimator(GaussianNB()))
    with pytest.raises(ValueError, match=r"is not fitted yet.*Pass fit\(X, y\), or a fitted"):
        extractor.fit(X)
    with pytest.raises(NotFittedError):
        extractor.fit(X, y)


# --- fitted, not frozen ---


def test_fitted_black_box_is_used_without_y(extractor):
    fits = []
    model = Counting(fits).fit(X, y)
    extractor.set_params(estimator=model).fit(X[:100])
    assert extractor.estimator_ is model
    assert fits == [model]
    assert extractor.classes_.tolist() == [0, 1, 2]  # of the black box, not of the rows


def test_fitted_black_box_is_refitted_with_y(extractor):
    fits = []
    model = Counting(fits).fit(X, y)
    extractor.set_params(estimator=model).fit(X[50:], y[50:])
    assert extractor.estimator_ is not model
    assert extractor.estimator_.n_seen_ == 100
    assert (model.n_seen_, len(fits)) == (150, 2)
    assert extractor.classes_.tolist() == [1, 2]


def test_unfitted_black_box_needs_y(extractor):
    with pytest.raises(
        ValueError,
        match=r"requires y to be passed, but the target y is None: the black box "
        r"GaussianNB is not fitted yet\. Pass fit\(X, y\), or a fitted black box\.",
    ):
        extractor.fit(X)


def test_clone_of_fitted_black_box_needs_y(extractor):
    extractor.set_params(estimator=DecisionTreeClassifier().fit(X, y)).fit(X)
    with pytest.raises(ValueError, match="DecisionTreeClassifier is not fitted yet"):
        clone(extractor).fit(X)


# --- pipelines and searches as black boxes ---

SEARCH = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 0.1]}, cv=2)
COMPOSED = [
    make_pipeline(FunctionTransformer(np.log1p), StandardScaler(), GaussianNB()),
    SEARCH,
    make_pipeline(StandardScaler(), SEARCH),
    VotingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier(random_state=0))]),
]


@pytest.mark.parametrize("model", COMPOSED, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("frame", [False, True])
def test_composed_black_boxes_equal_frozen_ones(extractor, model, frame):
    rows = pd.DataFrame(X, columns=["a", "b", "c", "d"]) if frame else X
    extractor.set_params(estimator=model).fit(rows, y)
    reference = clone(model).fit(rows, y)
    second_fitted = clone(extractor).set_params(estimator=FrozenEstimator(reference)).fit(rows)
    assert extractor.rules_ == second_fitted.rules_
    assert extractor.fidelity(rows) > 0.8
    assert extractor.classes_.tolist() == [0, 1, 2]
    assert pickle.loads(pickle.dumps(extractor)).rules_ == extractor.rules_
    fitted = clone(extractor).set_params(estimator=reference).fit(rows)  # without y
    assert fitted.estimator_ is reference
    assert fitted.rules_ == second_fitted.rules_


def test_pipeline_of_regressor_gives_regression_rules(extractor):
    X, y = make_friedman1(200, random_state=0)
    model = make_pipeline(StandardScaler(), DecisionTreeRegressor(random_state=0))
    extractor.set_params(estimator=model).fit(X, y)
    assert extractor.rules_.task == "regression"
    assert extractor.fidelity(X) > 0.25


# --- an extractor in a pipeline ---


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler((-3, 5))])
@pytest.mark.parametrize("frame", [False, True])
def test_rules_of_pipeline_use_units_of_its_input(extractor, scaler, frame):
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    rows = pd.DataFrame(X, columns=names) if frame else X
    if frame:
        scaler = clone(scaler).set_output(transform="pandas")
    pipeline = make_pipeline(scaler, extractor).fit(rows, y)
    rules = as_ruleset(pipeline)
    assert rules.feature_names == (tuple(names) if frame else ("x0", "x1", "x2", "x3"))
    np.testing.assert_allclose(rules.domain.lower, X.min(axis=0), atol=1e-8)
    np.testing.assert_allclose(rules.domain.upper, X.max(axis=0), atol=1e-8)
    # Rows that are on no bound of a rule: a bound may move by a rounding error.
    random = np.random.default_rng(0)
    points = random.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, (500, 4))
    points = pd.DataFrame(points, columns=names) if frame else points
    np.testing.assert_array_equal(rules.predict(points), pipeline.predict(points))
    np.testing.assert_array_equal(
        rules.covers(points), pipeline[-1].covers(pipeline[:-1].transform(points))
    )
    assert [r.output for r in rules] == [r.output for r in pipeline[-1].rules_]


def test_pipeline_with_frozen_black_box_needs_no_y(extractor):
    scaler = StandardScaler().fit(X)
    model = FrozenEstimator(GaussianNB().fit(scaler.transform(X), y))
    pipeline = make_pipeline(StandardScaler(), extractor.set_params(estimator=model)).fit(X)
    assert np.mean(pipeline.predict(X) == y) > 0.85


def test_search_tunes_extractor_and_black_box(extractor):
    grid = {"estimator__var_smoothing": [1e-9, 10.0], "uncovered": ["default", "nearest"]}
    search = GridSearchCV(extractor, grid, cv=3).fit(X, y)
    best = search.best_estimator_
    assert best.estimator_.var_smoothing == search.best_params_["estimator__var_smoothing"] == 1e-9
    np.testing.assert_array_equal(search.predict(X), best.predict(X))


def test_extractors_work_with_a_transformed_target():
    X, y = make_friedman1(300, random_state=0)
    y = np.exp(y / 5)
    for inner in (
        CARTExtractor(LinearRegression(), max_leaf_nodes=8, random_state=0),
        GridExExtractor(LinearRegression(), n_slices=2, depth=1),
    ):
        model = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp).fit(X, y)
        on_logarithms = clone(inner).fit(X, np.log(y))
        assert model.regressor_.rules_ == on_logarithms.rules_
        np.testing.assert_allclose(model.predict(X), np.exp(on_logarithms.predict(X)))


def test_extractor_explains_an_extractor():
    inner = CARTExtractor(
        RandomForestClassifier(10, random_state=0), max_leaf_nodes=8, random_state=0
    )
    outer = CARTExtractor(inner, max_leaf_nodes=8, max_depth=None, random_state=0).fit(X, y)
    assert outer.fidelity(X) == 1.0


def test_regressor_gives_rules_with_numbers():
    forest = RandomForestRegressor(5, random_state=0)
    for extractor in (CARTExtractor(forest), GridExExtractor(forest, depth=1)):
        extractor.fit(X, y)
        assert extractor.rules_.task == "regression"
        assert extractor.predict(X).dtype == float


# --- weights ---


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_fit_parameters_need_routing(extractor):
    with pytest.raises(ValueError, match=r"fit got \['check_input'\].*enable_metadata_routing"):
        extractor.fit(X, y, check_input=True)


@pytest.mark.usefixtures("routing")
def test_routing_passes_weights_to_black_box(extractor):
    weights = np.where(y == 1, 0.0, 1.0)
    model = DecisionTreeClassifier(random_state=0).set_fit_request(sample_weight=True)
    extractor.set_params(estimator=model).fit(X, y, sample_weight=weights)
    assert not (extractor.estimator_.predict(X) == 1).any()
    assert not (extractor.predict(X) == 1).any()
    refused = clone(extractor)
    refused.estimator.set_fit_request(sample_weight=False)
    with pytest.raises(TypeError, match="sample_weight"):
        refused.fit(X, y, sample_weight=weights)


@pytest.mark.usefixtures("routing")
def test_cross_validation_routes_weights_to_fit_and_score(extractor):
    weights = np.where(y == 1, 0.0, 1.0)
    model = DecisionTreeClassifier(random_state=0).set_fit_request(sample_weight=True)
    extractor.set_params(estimator=model).set_score_request(sample_weight=True)
    weighted = cross_validate(
        extractor, X, y, cv=3, params={"sample_weight": weights}, return_estimator=True
    )
    # The black box ignores class 1, and so does the score.
    assert weighted["test_score"].min() > 0.95
    for fitted in weighted["estimator"]:
        assert fitted.score(X[y == 1], y[y == 1]) == 0


@pytest.mark.usefixtures("routing")
def test_fitted_black_box_rejects_fit_parameters(extractor):
    model = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"\['check_input'\] for a black box that is already"):
        extractor.set_params(estimator=model).fit(X, check_input=True)
