"""Mixtures and k-means, beside those of scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from skescore.extractors.cream import _candidates as _k_means
from skescore.extractors.cream._candidates import fit_mixture, k_means_labels


def table_of(seed: int) -> np.ndarray:
    """Two or three clumps in up to ten columns, sometimes of whole numbers, or far from 0."""
    random = np.random.default_rng(seed)
    n_rows = random.integers(6, 300)
    table = random.normal(size=(n_rows, random.integers(1, 11)))
    table += random.integers(0, 3, (n_rows, 1)) * random.uniform(0, 5)
    if seed % 4 == 0:
        table = table.round()
    return table * 10.0 ** (seed % 5) + 1000 * (seed % 3)


def scikit_learn_labels(table, n_clusters, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(n_clusters, n_init=1, random_state=seed).fit(table).labels_


@pytest.mark.parametrize("seed", range(40))
def test_clusters_are_those_of_scikit_learn(seed):
    table = table_of(seed)
    for n_clusters in (2, 3, 5):
        expected = scikit_learn_labels(table, n_clusters, seed)
        np.testing.assert_array_equal(k_means_labels(table, n_clusters, seed), expected)


def test_fewer_distinct_rows_than_clusters():
    table = np.repeat([[0.0, 1.0], [2.0, 5.0]], 6, axis=0)
    expected = scikit_learn_labels(table, 4, 0)
    np.testing.assert_array_equal(k_means_labels(table, 4, 0), expected)
    assert not k_means_labels(np.zeros((5, 2)), 2, 0).any()


@pytest.mark.parametrize("most_steps", [1, 2, 4])
def test_too_few_steps_end_with_the_nearest_centres(monkeypatch, most_steps):
    monkeypatch.setattr(_k_means, "_MOST_STEPS", most_steps)
    table = np.random.default_rng(0).uniform(size=(200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = KMeans(5, n_init=1, max_iter=most_steps, random_state=0).fit(table).labels_
    np.testing.assert_array_equal(k_means_labels(table, 5, 0), expected)


def scikit_learn_mixture(table, n_components, added_variance, seed):
    mixture = GaussianMixture(
        n_components, reg_covar=added_variance, max_iter=50, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mixture.fit(table)


def assert_same(table, n_components, added_variance, seed):
    expected = scikit_learn_mixture(table, n_components, added_variance, seed)
    found = fit_mixture(table, n_components, added_variance, seed)
    assert found is not None
    np.testing.assert_allclose(np.exp(found.log_weights), expected.weights_, rtol=1e-6)
    np.testing.assert_allclose(found.means, expected.means_, rtol=1e-6, atol=1e-9)
    assert found.bic(table) == pytest.approx(expected.bic(table), rel=1e-7)
    np.testing.assert_array_equal(found.components(table), expected.predict(table))
    shifted = table[::2] + 0.1
    np.testing.assert_array_equal(found.components(shifted), expected.predict(shifted))


@pytest.mark.parametrize("seed", range(40))
def test_mixtures_are_those_of_scikit_learn(seed):
    table = table_of(seed)
    for n_components in (2, 3, 5):
        assert_same(table, n_components, 1e-4 * 10.0 ** (2 * (seed % 5)), seed)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_real_data(load):
    X = load(return_X_y=True)[0]
    table = (X - X.mean(axis=0)) / X.std(axis=0)
    for n_components in (2, 4):
        assert_same(table, n_components, 1e-4, 7)


def test_as_many_components_as_rows_and_rows_that_are_equal():
    assert_same(np.arange(5.0)[:, None] ** 2, 5, 1e-4, 0)
    assert_same(np.repeat([[0.0, 1.0], [2.0, 5.0]], 6, axis=0), 3, 1e-4, 0)


def test_components_that_collapse():
    table = np.zeros((6, 2))
    with pytest.raises(ValueError, match="ill-defined empirical covariance"):
        scikit_learn_mixture(table, 2, 0.0, 0)
    assert fit_mixture(table, 2, 0.0, 0) is None
