"""The two clusterers, and the search for dense parts beside scikit-learn's DBSCAN."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore.extractors.cream import CREAMClusterer, ExACTClusterer
from skescore.extractors.cream import _candidates as density
from skescore.extractors.cream._candidates import (
    FaceMover,
    Reachability,
    dense_parts,
    densest_cluster,
    first_radius,
    mixture_components,
)
from skescore.extractors.cream._clustering import (
    LabelTarget,
    NumberTarget,
    _box_around,
    _fit_plane,
    column_moments,
)
from skescore.rules import RuleSet

CLUSTERERS = [CREAMClusterer, ExACTClusterer]


@parametrize_with_checks([CREAMClusterer(), ExACTClusterer()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- all radii at once, beside one DBSCAN after the other ---


def points_of(seed: int, n_rows: int, n_features: int = 2) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(3, n_features)) * 4
    points = centres[random.integers(0, 3, n_rows)] + random.normal(size=(n_rows, n_features))
    points[: n_rows // 10] *= 3  # some lie far out
    return points


def dbscan(points: np.ndarray, radius: float) -> np.ndarray:
    return DBSCAN(eps=radius, min_samples=5, algorithm="kd_tree").fit_predict(points)


@pytest.mark.parametrize("kept_rows", [10_000, 0])
@given(st.integers(0, 10**6), st.integers(1, 60), st.floats(0.05, 5))
@settings(max_examples=40)
def test_labels_are_those_of_dbscan(kept_rows, seed, n_rows, radius):
    points = points_of(seed, n_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(density, "_KEPT_ROWS", kept_rows)  # 0: distances are computed when needed
        reach = Reachability(points)
    expected = dbscan(points, radius)
    np.testing.assert_array_equal(reach.labels(radius), expected)
    assert reach.n_labels(np.array([radius]))[0] == len(np.unique(expected))
    assert reach.n_noise(np.array([radius]))[0] == (expected == -1).sum()


def slowly_densest(points: np.ndarray, radius: float, most_labels: int) -> np.ndarray:
    for step in range(2000):
        labels = dbscan(points, radius * (1 + 0.1 * step))
        if len(np.unique(labels)) <= most_labels and np.mean(labels == -1) <= 0.005:
            sizes = [np.sum(labels == k) for k in range(labels.max() + 1)]
            return labels == int(np.argmax(sizes))
    return np.ones(len(points), bool)


@pytest.mark.parametrize("seed", range(3))
def test_the_densest_cluster_is_that_of_radii_tried_in_turn(seed):
    points = points_of(seed, 120)
    for most_labels in (1, 2, 3):
        found = densest_cluster(points, 0.2, most_labels)
        np.testing.assert_array_equal(found, slowly_densest(points, 0.2, most_labels))


def test_a_radius_that_starts_too_small_still_finds_a_cluster():
    points = np.repeat(np.arange(20.0)[:, None], 6, axis=0)  # DBSCAN gives 20 clusters below 1
    assert densest_cluster(points, 1e-6, 2).all()


def test_too_few_rows_for_a_cluster_are_taken_all():
    assert densest_cluster(np.arange(4.0)[:, None] * 100, 0.1, 2).all()


def test_fault_16_noise_is_no_cluster():
    random = np.random.default_rng(0)
    scattered = random.uniform(-1e4, 1e4, size=(2, 2))
    points = np.vstack([random.normal(size=(500, 2)), scattered])  # 0.4 % of the rows
    found = densest_cluster(points, 0.5, 2)
    assert found[:500].mean() > 0.99
    assert not found[500:].any()


@pytest.mark.parametrize("n_features", [1, 3])
def test_the_first_radius_is_a_distance_of_neighbours(n_features):
    table = points_of(0, 120, n_features)
    distances = np.sqrt(((table[:, None] - table[None]) ** 2).sum(axis=2))
    means = np.sort(distances, axis=1)[:, : 2 * n_features].mean(axis=1)
    radius = first_radius(table, 1.0)
    assert np.abs(means - radius).min() < 1e-6


@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_equal_rows_have_a_least_radius(n_rows):
    assert first_radius(np.zeros((n_rows, 2)), 3.0) == 0.003


def test_fault_15_the_criterion_is_bic_unless_asked_for():
    table = make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)[0]
    bic = {
        m: GaussianMixture(m, reg_covar=1e-4, max_iter=50, random_state=3).fit(table).bic(table)
        for m in range(2, 7)
    }
    assert min(bic, key=bic.get) != min(bic, key=lambda m: bic[m] / m)
    assert mixture_components(table, 6, "bic", 3)[0] == min(bic, key=bic.get)
    assert mixture_components(table, 6, "bic/m", 3)[0] == min(bic, key=lambda m: bic[m] / m)


def test_rows_that_no_mixture_fits_have_no_parts():
    assert mixture_components(np.zeros((1, 2)), 5, "bic", 0) is None
    assert dense_parts(np.zeros((1, 2)), 2, 5, "bic", 0, 1.0) == []


# --- faces that are moved, beside all of them tried in turn ---


def scattering(target, X, lower, upper, inner_weight: float) -> float:
    """Diversity inside and outside of a box, times the rows there."""
    inside = ((lower <= X) & (upper >= X)).all(axis=1)
    total = 0.0
    for rows, weight in ((inside, inner_weight), (~inside, 1.0)):
        if isinstance(target, LabelTarget):
            counts = np.bincount(target._codes[rows])
            total += weight * (rows.sum() - (counts**2).sum() / max(1, rows.sum()))
        elif rows.any():
            values = target._values[rows] / target._values.std()
            total += weight * rows.sum() * values.std()
    return total


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_no_other_interval_of_a_feature_would_be_much_better(seed, kind):
    random = np.random.default_rng(seed)
    X = random.integers(0, 9, size=(150, 3)).astype(float)
    if kind == "labels":
        target = LabelTarget((X[:, 0] > 4).astype(int) + random.integers(0, 2, 150), 3)
    else:
        target = NumberTarget(X, X[:, 0] * (X[:, 1] > 3) + random.normal(size=150), False)
    weight, rows = (1.0, 0.5)[seed % 2], np.arange(150)
    mover = FaceMover(X, target.moments(rows), target.scatter, weight)
    start = np.array([1.5, 1.5, 2.5]), np.array([6.5, 7.5, 6.5])
    lower, upper = mover.move(*start, np.full(3, -np.inf), np.full(3, np.inf))
    found = scattering(target, X, lower, upper, weight)
    assert found < scattering(target, X, *start, weight)
    open_box = np.full(3, np.inf)
    least = 0.002 * scattering(target, X, -open_box, open_box, 1.0)
    faces = [-np.inf, *(np.arange(8) + 0.5), np.inf]
    for j in range(3):
        for below, above in itertools.combinations(faces, 2):
            other = lower.copy(), upper.copy()
            other[0][j], other[1][j] = below, above
            inside = ((other[0] <= X) & (other[1] >= X)).all(axis=1)
            if 0 < inside.sum() < 150:
                assert scattering(target, X, *other, weight) >= found - 3 * least


def test_faces_that_do_nothing_are_taken_away():
    X = np.random.default_rng(0).uniform(size=(400, 4))
    target = LabelTarget((X[:, 1] > 0.5).astype(int), 2)
    mover = FaceMover(X, target.moments(np.arange(400)), target.scatter, 1.0)
    outer = np.full(4, -np.inf), np.full(4, np.inf)
    lower, upper = mover.move(np.full(4, 0.01), np.full(4, 0.6), *outer)
    assert np.flatnonzero((lower > -np.inf) | (upper < np.inf)).tolist() == [1]


def test_moved_faces_leave_rows_on_both_sides_and_stay_in_the_outer_box():
    X = np.repeat([[0.0, 0.0], [1.0, 5.0]], 20, axis=0)  # the second column says the same
    target = LabelTarget(np.repeat([0, 1], 20), 2)
    mover = FaceMover(X, target.moments(np.arange(40)), target.scatter, 1.0)
    outer = np.array([-2.0, -7.0]), np.array([3.0, 9.0])
    lower, upper = mover.move(*outer, *outer)
    inside = ((lower <= X) & (upper >= X)).all(axis=1)
    assert inside.sum() == 20
    assert (lower >= outer[0]).all()
    assert (upper <= outer[1]).all()


# --- small helpers beside loops ---


@given(st.integers(0, 10**6), st.integers(2, 30))
@settings(max_examples=30)
def test_a_box_has_its_faces_half_way_to_the_next_row(seed, n_rows):
    random = np.random.default_rng(seed)
    rows = random.integers(0, 6, size=(n_rows, 3)).astype(float)
    part = np.flatnonzero(random.random(n_rows) < 0.5)
    part = part if len(part) else np.array([0])
    lower, upper = _box_around(rows, part, np.full(3, -9.0), np.full(3, 9.0))
    for j in range(3):
        low, high = min(rows[i, j] for i in part), max(rows[i, j] for i in part)
        below = [v for v in rows[:, j] if v < low]
        above = [v for v in rows[:, j] if v > high]
        assert lower[j] == ((low + max(below)) / 2 if below else -9.0)
        assert upper[j] == ((high + min(above)) / 2 if above else 9.0)


def test_a_box_between_neighbouring_floats_leaves_the_neighbour_out():
    rows = np.array([[1.0], [np.nextafter(1.0, 2)]])
    for part in (0, 1):
        lower, upper = _box_around(rows, np.array([part]), np.array([-np.inf]), np.array([np.inf]))
        inside = (rows >= lower) & (rows <= upper)
        assert inside[:, 0].tolist() == [part == 0, part == 1]


def test_moments_of_columns_keep_their_digits():
    X = np.random.default_rng(0).normal(size=(1000, 3)) * [1, 1e-8, 0] + [0, 1e3, 0.1]
    rows = np.arange(0, 1000, 3)
    mean, deviation = column_moments(X, rows)
    np.testing.assert_allclose(mean, X[rows].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(deviation[:2], X[rows, :2].std(axis=0), rtol=1e-6)
    assert deviation[2] == 0.0


def test_planes_are_least_squares():
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 4)) * [1, 1e6, 1e-3, 1] + [0, 5e6, 0, 3]
    X[:, 3] = 7.0  # constant
    values = X @ [2, 1e-6, 300, 0] + random.normal(size=80) + 10
    rows = np.arange(60)
    intercept, slopes = _fit_plane(X, values, rows)
    design = np.column_stack([np.ones(60), X[:60, :3]])
    expected = np.linalg.lstsq(design, values[:60], rcond=None)[0]
    np.testing.assert_allclose([intercept, *slopes[:3]], expected, rtol=1e-6)
    assert slopes[3] == 0.0


def test_planes_through_few_rows_are_shrunk():
    X = np.random.default_rng(2).normal(size=(6, 5))
    values = np.array([1.0, -1, 1, -1, 1, -1])
    intercept, slopes = _fit_plane(X, values, np.arange(6))
    assert np.abs(values - intercept - X @ slopes).mean() > 0.2  # not through all of them
    assert np.abs(slopes).max() < 1


# --- the clusterers ---


@pytest.fixture(params=CLUSTERERS, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


def answers_slowly(rules: RuleSet, X: np.ndarray) -> list[int]:
    def holds(rule, row):
        return all(c.lower <= row[c.feature] <= c.upper for c in rule.conditions)

    return [next(i for i, rule in enumerate(rules) if holds(rule, row)) for row in X]


def test_clusters_of_labels_are_the_rules_in_order(cls):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    clusterer = cls(depth=2, random_state=0)
    labels = clusterer.fit_predict(X, names)
    assert clusterer.explain() is clusterer.rules_
    assert labels.tolist() == clusterer.labels_.tolist()
    assert labels.tolist() == answers_slowly(clusterer.rules_, X)
    assert clusterer.predict(X).tolist() == labels.tolist()
    assert np.unique(labels).tolist() == list(range(clusterer.n_clusters_))
    for number, rule in enumerate(clusterer.rules_):
        counts = [int(np.sum(names[labels == number] == c)) for c in np.unique(names)]
        assert rule.statistics.class_counts == tuple(counts)
        assert rule.output == np.unique(names)[int(np.argmax(counts))]
    assert clusterer.rules_.ordered
    assert not clusterer.rules_[-1].conditions


def test_fit_predict_looks_at_the_target(cls):
    X = np.random.default_rng(0).uniform(size=(200, 2))
    y = (X[:, 0] > 0.5).astype(int)
    clusterer = cls(random_state=0)
    np.testing.assert_array_equal(clusterer.fit_predict(X, y), clusterer.fit(X, y).labels_)
    assert list(clusterer.rules_.classes) == [0, 1]


def test_clusters_without_a_target_are_those_that_are_there():
    X, truth = make_blobs(300, centers=[[0, 0], [20, 0], [60, 9]], random_state=0)
    clusterer = CREAMClusterer(random_state=0).fit(X)
    assert adjusted_rand_score(truth, clusterer.labels_) == 1.0
    assert [rule.output for rule in clusterer.rules_] == [0, 1, 2]
    assert [rule.statistics.n_rows for rule in clusterer.rules_] == [100, 100, 100]
    # The other one never splits what lies outside of a box.
    chain = ExACTClusterer(random_state=0).fit(X)
    assert adjusted_rand_score(truth == 2, chain.labels_) == 1.0


def test_clusters_of_numbers_conclude_their_mean(cls):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    y = np.where(X[:, 0] > 0.5, 10.0, 2.0)
    clusterer = cls(random_state=0).fit(X, y)
    assert clusterer.rules_.task == "regression"
    for number, rule in enumerate(clusterer.rules_):
        assert rule.output == pytest.approx(y[clusterer.labels_ == number].mean())
    assert np.abs(clusterer.rules_.predict(X) - y).mean() < 0.4


def test_planes_are_in_the_units_of_the_features():
    random = np.random.default_rng(0)
    X = random.uniform(size=(400, 2)) * [1000, 1e-3]
    y = 3 + 0.02 * X[:, 0] - 5000 * X[:, 1]
    clusterer = CREAMClusterer(output="linear", random_state=0).fit(X, y)
    assert len(clusterer.rules_) == 1  # a plane says it all
    output = clusterer.rules_[0].output
    assert output.intercept == pytest.approx(3)
    assert dict(output.terms) == pytest.approx({0: 0.02, 1: -5000})


@pytest.mark.parametrize(
    "relabel",
    [lambda y: y, lambda y: y == 1, lambda y: np.array(["a", "b"])[y], lambda y: y * 7 - 3],
    ids=["ints", "bools", "strings", "other ints"],
)
def test_labels_of_any_kind_give_the_same_clusters(cls, relabel):
    X = np.random.default_rng(0).uniform(size=(150, 2))
    y = (X.sum(axis=1) > 1).astype(int)
    expected = cls(random_state=0).fit(X, y).labels_
    np.testing.assert_array_equal(cls(random_state=0).fit(X, relabel(y)).labels_, expected)


def test_the_task_may_be_said():
    X = np.random.default_rng(0).uniform(size=(150, 2))
    y = (X[:, 0] > 0.5).astype(int)
    assert CREAMClusterer(task="regression").fit(X, y).rules_.task == "regression"
    assert CREAMClusterer(task="classification").fit(X, y / 2).rules_.classes == (0.0, 0.5)


def test_frames_give_their_names(cls):
    frame = pd.DataFrame({"width": np.arange(60.0) % 30, "height": np.arange(60.0)})
    clusterer = cls(random_state=0).fit(frame, np.arange(60) < 30)
    assert clusterer.rules_.feature_names == ("width", "height")
    np.testing.assert_array_equal(clusterer.predict(frame), clusterer.labels_)


def test_rows_far_outside_have_a_cluster(cls):
    X, y = load_iris(return_X_y=True)
    clusterer = cls(random_state=0).fit(X, y)
    assert (clusterer.predict(X * 1000 - 500) >= 0).all()


def test_constant_features_and_equal_rows_do_not_matter(cls):
    X, y = load_iris(return_X_y=True)
    more = np.column_stack([X, np.full(150, 3.0)])
    one, other = cls(random_state=0).fit(X, y), cls(random_state=0).fit(more, y)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    same = cls(random_state=0).fit(np.ones((20, 2)), np.arange(20) % 2)
    assert len(same.rules_) == 1
    assert same.rules_[0].statistics.class_counts == (10, 10)


def test_features_to_ignore_follow_the_clusters_without_a_target(cls):
    random = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0.0, 50.0], 60) + random.normal(size=120), np.zeros(120)])
    X[:, 1] = random.normal(size=120)
    clusterer = cls(depth=1, ignore_threshold=0.5, random_state=0).fit(X)
    assert clusterer.importances_[0] == 1.0 > clusterer.importances_[1]
    assert {c.feature for rule in clusterer.rules_ for c in rule.conditions} == {0}


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"depth": 0}, None, "depth must be an integer of 1 or more, got 0"),
        ({"error_threshold": -1.0}, None, "error_threshold must be a number of 0.0 or more"),
        ({"gauss_components": 1}, None, "gauss_components must be an integer of 2 or more, got 1"),
        ({"criterion": "aic"}, None, "criterion must be one of 'bic', 'bic/m', got 'aic'"),
        ({"scale": "yes"}, None, "scale must be one of True, False, got 'yes'"),
        ({"max_samples": 9}, None, "max_samples must be an integer of 10 or more or None, got 9"),
        ({"ignore_threshold": 2.0}, None, "ignore_threshold must be a number from 0.0 to 1.0"),
        ({"importances": [1.0]}, None, "importances must hold one number for each of the 2"),
        ({"output": "plane"}, None, "output must be one of 'constant', 'linear', got 'plane'"),
        ({"task": "both"}, None, "task must be one of None, 'classification', 'regression'"),
        ({"output": "linear"}, None, "output='linear' is for numbers as target, but y holds noth"),
        ({"output": "linear"}, [0, 1] * 10, "but y holds labels"),
        ({"task": "regression"}, ["a", "b"] * 10, "y must hold numbers for task='regression'"),
        ({}, [np.nan, 1.0] * 10, "y holds nan in row 0"),
        ({"task": "classification"}, [np.nan, 1.0] * 10, "y lacks a label"),
        ({}, [1e120, 1.0] * 10, "y holds numbers up to 1e[+]120, more than 1e[+]100"),
    ],
)
def test_what_cannot_be_used_is_named(cls, options, y, message):
    X = np.random.default_rng(0).uniform(size=(20, 2))
    with pytest.raises(ValueError, match=message):
        cls(**options).fit(X, y)


def test_numbers_that_would_overflow_are_named(cls):
    with pytest.raises(ValueError, match="Feature 'x1' holds numbers up to"):
        cls().fit(np.array([[0, 1e200], [1, 0], [2, 3]]))


def test_nothing_can_be_asked_before_fit(cls):
    for ask in (lambda c: c.predict([[0.0]]), lambda c: c.explain(), lambda c: c.n_clusters_):
        with pytest.raises(NotFittedError):
            ask(cls())


def test_parameters_are_keywords_and_documented(cls):
    text = inspect.getdoc(cls)
    for name, parameter in inspect.signature(cls).parameters.items():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert f"\n{name} : " in text
