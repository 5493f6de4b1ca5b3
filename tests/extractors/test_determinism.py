"""Rules do not depend on the process, the workers or the batches."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableRegressor
from skescore.extractors import CARTExtractor, GridExExtractor

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

X, y = load_iris(return_X_y=True)
MODEL = FrozenEstimator(KNeighborsClassifier(9).fit(X, y))
EXTRACTORS: dict[str, Any] = {
    "cart": CARTExtractor(MODEL, max_features=1, random_state=7),
    "gridex": GridExExtractor(MODEL, min_examples=30, random_state=7),
}


@pytest.fixture(params=list(EXTRACTORS))
def extractor(request):
    return clone(EXTRACTORS[request.param])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_workers_give_the_same_rules(backend):
    expected = [clone(extractor).fit(X).rules_ for extractor in EXTRACTORS.values()]
    with Parallel(n_jobs=2, backend=backend) as parallel:
        result = parallel(delayed(clone(e).fit)(X) for e in [*EXTRACTORS.values()] * 3)
    assert [fitted.rules_ for fitted in result] == expected * 3


def test_searches_do_not_depend_on_n_jobs(extractor):
    grid = {"random_state": [0, 1], "uncovered": ["default", "nearest"]}
    with parallel_config(backend="threading"):
        one, two = (
            GridSearchCV(clone(extractor), grid, cv=2, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2)
        )
    assert one.best_params_ == two.best_params_
    assert one.best_estimator_.rules_ == two.best_estimator_.rules_
    for split in range(2):
        name = f"split{split}_test_score"
        np.testing.assert_array_equal(one.cv_results_[name], two.cv_results_[name])


@pytest.mark.parametrize("size", [13, 1000])
def test_batches_give_the_same_rules(extractor, size):
    expected = clone(extractor).fit(X).rules_
    assert extractor.set_params(batch_size=size).fit(X).rules_ == expected


def test_fit_ignores_global_generator(extractor):
    np.random.seed(3)
    state = np.random.get_state()
    one = clone(extractor).fit(X).rules_
    after = np.random.get_state()
    assert state[0] == after[0]
    np.testing.assert_array_equal(state[1], after[1])
    assert state[2:] == after[2:]
    np.random.seed(4)
    assert clone(extractor).fit(X).rules_ == one


def test_generator_as_random_state_gives_other_rules_each_time(extractor):
    extractor.set_params(random_state=np.random.RandomState(0))
    drawn = {extractor.fit(X).rules_ for _ in range(5)}
    assert len(drawn) > 1
    extractor.set_params(random_state=np.random.RandomState(0))
    assert extractor.fit(X).rules_ in drawn


# --- every registered extractor ---


@pytest.fixture
def rows(able):
    return (X, y) if able == "classification" else (X[:, :3], X[:, 3] + X[:, 0] * X[:, 1])


@pytest.mark.parametrize("size", [13, 1000])
def test_batches_give_the_same_rules_in_every_extractor(make, rows, size):
    expected = make().fit(*rows)
    batched = make(batch_size=size).fit(*rows)
    assert batched.rules_ == expected.rules_
    assert (batched.oracle_.n_calls > expected.oracle_.n_calls) == (size < len(X))


# Threads that change warning filters at the same time may drop those of scikit-learn.
@pytest.mark.filterwarnings("ignore:`sklearn.utils.parallel.delayed`:UserWarning")
def test_workers_give_the_same_rules_in_every_extractor(make, rows):
    expected = make().fit(*rows).rules_
    result = Parallel(n_jobs=2, backend="threading")(delayed(make().fit)(*rows) for _ in range(4))
    assert [fitted.rules_ for fitted in result] == [expected] * 4


def points_of(random_state, **options):
    """Return the points that GridEx queries."""
    queries = []

    def function(rows):
        queries.append(rows)
        return rows.sum(axis=1)

    whole_grid(
        CallableRegressor(function),
        threshold=0.1,
        min_examples=20,
        random_state=random_state,
        **options,
    ).fit(X)
    return np.vstack(queries[1:])


def test_seeds_decide_drawn_points():
    one, again, other = points_of(0), points_of(0), points_of(1)
    np.testing.assert_array_equal(one, again)
    assert len(one) > 100
    assert not np.isin(one, other).any()


def test_points_differ_without_a_seed():
    assert not np.isin(points_of(None), points_of(None)).any()


def test_points_of_a_cell_do_not_depend_on_other_cells():
    # One more distant row opens a new cell; the points of all others stay unchanged.
    queries = []

    def function(rows):
        queries.append(rows)
        return rows[:, 0]

    corners = np.array([[0.0, 0.0], [1.0, 1.0], [0.1, 0.1]])
    extractor = whole_grid(CallableRegressor(function), depth=1, min_examples=10, random_state=0)
    extractor.fit(corners)
    extractor.fit(np.vstack([corners, [[0.9, 0.1]]]))
    _, few, _, more = queries
    assert len(few) == 8 + 9
    assert len(more) == 8 + 9 + 9
    extra = more[(more[:, 0] >= 0.5) & (more[:, 1] < 0.5)]
    assert len(extra) == 9
    assert {tuple(p) for p in more} - {tuple(p) for p in extra} == {tuple(p) for p in few}


def test_seed_does_not_matter_without_drawn_points():
    tree = DecisionTreeClassifier(random_state=0)
    one, other, none = (
        GridExExtractor(tree, n_slices=3, random_state=seed).fit(X, y).rules_
        for seed in (0, 1, None)
    )
    assert one == other == none
