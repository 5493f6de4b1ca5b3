"""Parts of CREAM and ExACT compared with libraries and slow loops."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kneed import KneeLocator
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.cluster import DBSCAN
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier

from skescore.extractors.cream import CREAMExtractor, ExACTExtractor, _boxes
from skescore.extractors.cream._boxes import (
    BoxGrower,
    BoxParameters,
    FaceMover,
    dense_parts,
    densest_cluster,
    first_radius,
    fit_mixture,
    knee_of,
    mixture_components,
)
from skescore.extractors.cream._targets import (
    LabelTarget,
    NumberTarget,
    column_moments,
    fit_linear_model,
)

# --- knee of a curve, compared with another implementation of Kneedle


def elsewhere(curve: np.ndarray) -> float | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions warn where there is no knee
        return KneeLocator(
            np.arange(len(curve)), curve, curve="convex", direction="decreasing", online=True
        ).knee_y


SHAPES = {
    "scattered": lambda random, n: random.exponential(size=n),
    "steps": lambda random, n: random.integers(0, 4, n).astype(float),
    "powers": lambda random, n: random.uniform(size=n) ** random.uniform(0.1, 9),
    "one far out": lambda random, n: np.append(random.uniform(size=n - 1), 1e6),
    "tiny": lambda random, n: np.abs(random.normal(size=n)).round(1) * 1e-300,
    "straight": lambda random, n: np.linspace(0, 1, n),
    "two bends": lambda random, n: np.concatenate(
        [10 + random.exponential(size=n // 2), random.exponential(size=n - n // 2)]
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("longest", [8, 120])
def test_knee_of_equals_reference_on_random_curves(shape, longest):
    random = np.random.default_rng(0)
    for _ in range(100):
        curve = np.sort(SHAPES[shape](random, random.integers(3, longest)))[::-1]
        if curve[0] > curve[-1]:
            assert knee_of(curve) == elsewhere(curve)


@given(st.lists(st.integers(0, 6) | st.floats(0, 1e6), min_size=3, max_size=12))
@settings(max_examples=120)
def test_knee_of_equals_reference_on_any_curve(heights):
    curve = np.sort(np.array(heights, dtype=float))[::-1]
    if curve[0] > curve[-1]:
        assert knee_of(curve) == elsewhere(curve)


@pytest.mark.parametrize("curve", [[], [1.0], [2.0, 1.0], [3.0, 3.0, 3.0], [3.0, 2.0, 1.0]])
def test_knee_of_returns_none_without_knee(curve):
    assert knee_of(np.array(curve)) is None


@pytest.mark.slow
def test_cream_does_not_import_matplotlib():
    program = "import sys, skescore.extractors.cream; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


# --- all radii at once, compared with single runs of DBSCAN -


def points_of(seed: int, n_rows: int, n_features: int = 2) -> np.ndarray:
    random = np.random.default_rng(seed)
    centers = random.normal(size=(3, n_features)) * 4
    points = centers[random.integers(0, 3, n_rows)] + random.normal(size=(n_rows, n_features))
    points[: n_rows // 10] *= 3  # some are outliers
    return points


def dbscan(points: np.ndarray, radius: float) -> np.ndarray:
    return DBSCAN(eps=radius, min_samples=5, algorithm="kd_tree").fit_predict(points)


def slowly_densest(points: np.ndarray, radius: float, most_labels: int) -> np.ndarray:
    for step in range(2000):
        labels = dbscan(points, radius * (1 + 0.1 * step))
        if len(np.unique(labels)) <= most_labels and np.mean(labels == -1) <= 0.005:
            sizes = [np.sum(labels == k) for k in range(labels.max() + 1)]
            return labels == int(np.argmax(sizes))
    return np.ones(len(points), bool)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_densest_cluster_equals_search_over_radii(seed):
    points, most_labels = points_of(seed, 20 + 30 * seed), 1 + seed % 3
    result = densest_cluster(points, 0.2, most_labels)
    np.testing.assert_array_equal(result, slowly_densest(points, 0.2, most_labels))


def test_densest_cluster_enlarges_radius_that_is_too_small():
    points = np.repeat(np.arange(20.0)[:, None], 6, axis=0)  # DBSCAN gives 20 clusters below 1
    assert densest_cluster(points, 1e-6, 2).all()


def test_densest_cluster_takes_all_of_too_few_rows():
    assert densest_cluster(np.arange(4.0)[:, None] * 100, 0.1, 2).all()


def test_densest_cluster_excludes_noise():
    random = np.random.default_rng(0)
    scattered = random.uniform(-1e4, 1e4, size=(2, 2))
    points = np.vstack([random.normal(size=(500, 2)), scattered])  # 0.4 % of the rows
    result = densest_cluster(points, 0.5, 2)
    assert result[:500].mean() > 0.99
    assert not result[500:].any()


@pytest.mark.parametrize("n_features", [1, 3])
def test_first_radius_is_a_mean_distance_of_neighbors(n_features):
    table = points_of(0, 120, n_features)
    distances = np.sqrt(((table[:, None] - table[None]) ** 2).sum(axis=2))
    means = np.sort(distances, axis=1)[:, : 2 * n_features].mean(axis=1)
    radius = first_radius(table, 1.0)
    assert np.abs(means - radius).min() < 1e-6


@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_first_radius_of_equal_rows_is_positive(n_rows):
    assert first_radius(np.zeros((n_rows, 2)), 3.0) == 0.003


@given(
    st.integers(0, 10**6),
    st.integers(20, 200),
    st.integers(1, 6),
    st.integers(2, 5),
    st.sampled_from(["normal", "clusters", "few values"]),
)
def test_mixture_equals_scikit_learn(seed, n_rows, n_columns, n_components, kind):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n_rows, n_columns))
    if kind == "clusters":
        rows += random.integers(0, 4, n_rows)[:, None]
    elif kind == "few values":
        rows = rows.round()
    expected = GaussianMixture(n_components, reg_covar=1e-4, max_iter=50, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has not converged
        expected.fit(rows)
    mixture = fit_mixture(rows, n_components, 1e-4, seed)
    assert mixture.bic(rows) == pytest.approx(expected.bic(rows), rel=1e-6)
    log_densities = mixture.log_densities(rows)
    assert_allclose(np.exp(log_densities), _densities(expected, rows), rtol=1e-6, atol=1e-9)
    assert (mixture.predict(rows) == log_densities.argmax(axis=1)).all()


def _densities(mixture: GaussianMixture, rows: np.ndarray) -> np.ndarray:
    return np.column_stack(
        [
            weight * multivariate_normal(mean, covariance).pdf(rows)
            for weight, mean, covariance in zip(
                mixture.weights_, mixture.means_, mixture.covariances_, strict=True
            )
        ]
    )


def test_mixture_components_minimize_criterion():
    table = make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)[0]
    bic = {
        m: GaussianMixture(m, reg_covar=1e-4, max_iter=50, random_state=3).fit(table).bic(table)
        for m in range(2, 7)
    }
    assert min(bic, key=bic.get) != min(bic, key=lambda m: bic[m] / m)
    assert mixture_components(table, 6, "bic", 3)[0] == min(bic, key=bic.get)
    assert mixture_components(table, 6, "bic/m", 3)[0] == min(bic, key=lambda m: bic[m] / m)


def test_dense_parts_is_empty_if_no_mixture_fits():
    assert mixture_components(np.zeros((1, 2)), 5, "bic", 0) is None
    assert dense_parts(np.zeros((1, 2)), 2, 5, "bic", 0, 1.0) == []


# --- moved faces, compared with all faces ---------------------


def scattering(target, X, lower, upper, inner_weight: float) -> float:
    """Return the impurity inside and outside of a box, times the numbers of rows there."""
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
def test_face_mover_finds_nearly_optimal_intervals(seed, kind):
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
    result = scattering(target, X, lower, upper, weight)
    assert result < scattering(target, X, *start, weight)
    open_box = np.full(3, np.inf)
    least = 0.002 * scattering(target, X, -open_box, open_box, 1.0)
    faces = [-np.inf, *(np.arange(8) + 0.5), np.inf]
    for j in range(3):
        for below, above in itertools.combinations(faces, 2):
            other = lower.copy(), upper.copy()
            other[0][j], other[1][j] = below, above
            inside = ((other[0] <= X) & (other[1] >= X)).all(axis=1)
            if 0 < inside.sum() < 150:
                assert scattering(target, X, *other, weight) >= result - 3 * least


def test_face_mover_removes_useless_faces():
    X = np.random.default_rng(0).uniform(size=(400, 4))
    target = LabelTarget((X[:, 1] > 0.5).astype(int), 2)
    mover = FaceMover(X, target.moments(np.arange(400)), target.scatter, 1.0)
    outer = np.full(4, -np.inf), np.full(4, np.inf)
    lower, upper = mover.move(np.full(4, 0.01), np.full(4, 0.6), *outer)
    assert np.flatnonzero((lower > -np.inf) | (upper < np.inf)).tolist() == [1]


def test_face_mover_keeps_rows_on_both_sides():
    X = np.repeat([[0.0, 0.0], [1.0, 5.0]], 20, axis=0)  # the second column is equivalent
    target = LabelTarget(np.repeat([0, 1], 20), 2)
    mover = FaceMover(X, target.moments(np.arange(40)), target.scatter, 1.0)
    outer = np.array([-2.0, -7.0]), np.array([3.0, 9.0])
    lower, upper = mover.move(*outer, *outer)
    inside = ((lower <= X) & (upper >= X)).all(axis=1)
    assert inside.sum() == 20
    assert (lower >= outer[0]).all()
    assert (upper <= outer[1]).all()


# --- helpers compared with loops ---


@given(st.integers(0, 10**6), st.integers(2, 30))
@settings(max_examples=30)
def test_box_around_has_faces_halfway_to_next_rows(seed, n_rows):
    random = np.random.default_rng(seed)
    rows = random.integers(0, 6, size=(n_rows, 3)).astype(float)
    part = np.flatnonzero(random.random(n_rows) < 0.5)
    part = part if len(part) else np.array([0])
    lower, upper = _boxes._box_around(rows, part, np.full(3, -9.0), np.full(3, 9.0))
    for j in range(3):
        low, high = min(rows[i, j] for i in part), max(rows[i, j] for i in part)
        below = [v for v in rows[:, j] if v < low]
        above = [v for v in rows[:, j] if v > high]
        assert lower[j] == ((low + max(below)) / 2 if below else -9.0)
        assert upper[j] == ((high + min(above)) / 2 if above else 9.0)


def test_box_around_separates_neighboring_floats():
    rows = np.array([[1.0], [np.nextafter(1.0, 2)]])
    for part in (0, 1):
        lower, upper = _boxes._box_around(
            rows, np.array([part]), np.array([-np.inf]), np.array([np.inf])
        )
        inside = (rows >= lower) & (rows <= upper)
        assert inside[:, 0].tolist() == [part == 0, part == 1]


def test_column_moments_keep_their_precision():
    X = np.random.default_rng(0).normal(size=(1000, 3)) * [1, 1e-8, 0] + [0, 1e3, 0.1]
    rows = np.arange(0, 1000, 3)
    mean, deviation = column_moments(X, rows)
    np.testing.assert_allclose(mean, X[rows].mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(deviation[:2], X[rows, :2].std(axis=0), rtol=1e-6)
    assert deviation[2] == 0.0


def test_linear_model_equals_least_squares():
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 4)) * [1, 1e6, 1e-3, 1] + [0, 5e6, 0, 3]
    X[:, 3] = 7.0  # constant
    values = X @ [2, 1e-6, 300, 0] + random.normal(size=80) + 10
    rows = np.arange(60)
    intercept, slopes = fit_linear_model(X, values, rows)
    design = np.column_stack([np.ones(60), X[:60, :3]])
    expected = np.linalg.lstsq(design, values[:60], rcond=None)[0]
    np.testing.assert_allclose([intercept, *slopes[:3]], expected, rtol=1e-6)
    assert slopes[3] == 0.0


def test_linear_model_shrinks_slopes_of_few_rows():
    X = np.random.default_rng(2).normal(size=(6, 5))
    values = np.array([1.0, -1, 1, -1, 1, -1])
    intercept, slopes = fit_linear_model(X, values, np.arange(6))
    assert np.abs(values - intercept - X @ slopes).mean() > 0.2  # not through all of them
    assert np.abs(slopes).max() < 1


# --- selection of boxes ---


def parameters(**changes) -> BoxParameters:
    return BoxParameters.of(
        CREAMExtractor(None, random_state=0).set_params(
            **{"depth": 1, "max_samples": None} | changes
        ),
        split_outside=True,
    )


def chain_parameters(**changes) -> BoxParameters:
    extractor = ExACTExtractor(None, random_state=0, max_samples=None)
    return BoxParameters.of(extractor.set_params(**{"depth": 1} | changes), split_outside=False)


def test_box_grower_selects_box_with_least_impurity(monkeypatch):
    X = np.arange(12.0)[:, None]
    codes = np.array([0] * 4 + [1] * 8)
    parts = [np.arange(6, 12), np.arange(4), np.arange(2)]
    monkeypatch.setattr(_boxes, "dense_parts", lambda *_: parts)
    _, upper = BoxGrower(X, LabelTarget(codes, 2), parameters()).grow()
    assert upper[0, 0] == 3.5  # the one that holds all of class 0


def leave_faces(monkeypatch) -> None:
    """Keep the faces of boxes, so that boxes differ only in the respect under test."""
    monkeypatch.setattr(_boxes.FaceMover, "move", lambda self, lower, upper, *_: (lower, upper))


def chosen_face(monkeypatch, codes: list[int], parts: list[int], weighted: bool) -> float:
    """Return the upper face of the selected box among those around the first rows of a line."""
    X = np.arange(float(len(codes)))[:, None]
    leave_faces(monkeypatch)
    monkeypatch.setattr(_boxes, "dense_parts", lambda *_: [np.arange(n) for n in parts])
    grower = BoxGrower(X, LabelTarget(np.array(codes), 2), parameters(weighted=weighted))
    return float(grower.grow()[1][0, 0])


def test_box_grower_weights_impurities(monkeypatch):
    # Two rows leave errors of 0/2 and 4/18, eight leave 2/8 and 0/12.
    codes = [1, 1, 1, 1, 0, 0, 1, 1] + [0] * 12
    assert chosen_face(monkeypatch, codes, [2, 8], weighted=True) == 7.5
    assert chosen_face(monkeypatch, codes, [2, 8], weighted=False) == 1.5


@pytest.mark.parametrize("parts", [[2, 4], [4, 2]])
def test_box_grower_prefers_smallest_of_equal_boxes(monkeypatch, parts):
    # One error of twelve remains either way; sums of rounded shares would differ.
    codes = [1, 1, 0, 1] + [0] * 8
    assert chosen_face(monkeypatch, codes, parts, weighted=True) == 1.5


def test_box_grower_of_chains_selects_largest_useful_box(monkeypatch):
    X = np.arange(12.0)[:, None]
    codes = np.array([0] * 4 + [1] * 8)
    parts = [np.arange(4), np.arange(11), np.arange(5)]
    leave_faces(monkeypatch)
    monkeypatch.setattr(_boxes, "dense_parts", lambda *_: parts)
    _, upper = BoxGrower(X, LabelTarget(codes, 2), chain_parameters()).grow()
    # Rows 0 to 10 form the largest box but separate hardly anything.
    assert upper[0, 0] == 4.5


def test_box_grower_rejects_worse_linear_models(monkeypatch):
    # Halves of 8 rows with 4 coefficients: 8 / (8 - 4) times the residual, against 16 / (16 - 4).
    random = np.random.default_rng(0)
    X = random.uniform(size=(16, 3))
    target = NumberTarget(X, X[:, 0] + 0.1 * random.normal(size=16), True)
    leave_faces(monkeypatch)
    monkeypatch.setattr(_boxes, "dense_parts", lambda *_: [np.argsort(X[:, 1])[:8]])
    for given_parameters in (parameters, chain_parameters):
        grower = BoxGrower(X, target, given_parameters(error_threshold=0.0))
        assert len(grower.grow()[0]) == 1


def test_scatter_counts_most_at_open_ends_of_chains(monkeypatch):
    # Of three classes on a line, ExACT must exclude one, not include one.
    weights = []
    mover = _boxes.FaceMover

    def watched(features, moments, scatter, inner_weight):
        weights.append(inner_weight)
        return mover(features, moments, scatter, inner_weight)

    monkeypatch.setattr(_boxes, "FaceMover", watched)
    X = np.random.default_rng(0).uniform(size=(300, 2))
    target = NumberTarget(X, np.sin(9 * X[:, 0]) + X[:, 1], False)
    BoxGrower(X, target, chain_parameters(depth=3, error_threshold=0.0)).grow()
    assert weights == [1 / 3, 1 / 2, 1]


@pytest.mark.parametrize("cls", [CREAMExtractor, ExACTExtractor])
def test_boxes_without_rows_are_omitted(cls, monkeypatch):
    lower = np.array([[-np.inf], [8.0], [3.0], [-np.inf]])
    upper = np.array([[4.0], [np.inf], [9.0], [np.inf]])  # no rows remain for the last one
    monkeypatch.setattr(BoxGrower, "grow", lambda self: (lower, upper))
    X = np.arange(12.0)[:, None]
    extractor = cls(KNeighborsClassifier(1)).fit(X, X[:, 0] > 4)
    assert [rule.statistics.n_rows for rule in extractor.rules_] == [5, 4, 3]
    assert not extractor.rules_[-1].conditions  # the rows from 5 to 7, and possibly others
    assert extractor.completeness_ == 1.0
    np.testing.assert_array_equal(extractor.labels_, [0] * 5 + [2] * 3 + [1] * 4)


def test_samples_depend_on_node_only(monkeypatch):
    keys = []

    def no_parts(table, n_features, most, criterion, seed, unit, sharing):
        keys.append(seed)
        return [np.arange(len(table) // 2)]

    monkeypatch.setattr(_boxes, "dense_parts", no_parts)
    for n_rows in (40, 64):  # other rows, the same places
        random = np.random.default_rng(n_rows)
        target = NumberTarget(X := random.normal(size=(n_rows, 1)), X[:, 0], False)
        BoxGrower(X, target, parameters(depth=2, error_threshold=0.0)).grow()
    assert len(set(keys[:3])) == 3  # every node has its own key
    assert keys[:3] == keys[3:6]


def test_targets_have_same_codes_in_all_nodes():
    codes = np.array([2, 0, 1, 1, 2, 0, 2])
    target = LabelTarget(codes, 3)
    for rows in ([0, 1, 2], [2, 1, 0], [4, 5]):
        np.testing.assert_array_equal(target.columns(np.array(rows), False)[:, 0], codes[rows])
    scaled = target.columns(np.arange(7), True)[:, 0]
    assert scaled.mean() == pytest.approx(0, abs=1e-12)
    assert scaled.std() == pytest.approx(1)
    np.testing.assert_array_equal(target.columns(np.array([4, 5]), True)[:, 0], scaled[[4, 5]])


def test_box_grower_breaks_ties_by_rows(monkeypatch):
    X = np.array([0.0, 1, 2, 3, 4, 4, 5, 5, 6, 7, 8])[:, None]
    target = NumberTarget(X, np.zeros(11), False)
    grower = BoxGrower(X, target, chain_parameters())
    judged = [_boxes._CandidateBox(0.0, -1.0, n) for n in (3, 5, 4)]
    assert grower._choose(judged, 1.0) == 1
