"""Candidates of CREAM and ExACT share mixtures, dense parts and faces without side effects."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CachedBlackBox, CREAMExtractor, ExACTExtractor

ROWS = np.random.default_rng(0).uniform(size=(150, 3)) * [1.0, 10.0, 0.1]


def classes_of(rows):
    rows = np.asarray(rows)
    return np.where(rows[:, 0] > 0.6, "c", np.where(rows[:, 1] * rows[:, 0] > 2, "b", "a"))


def numbers_of(rows):
    rows = np.asarray(rows)
    return np.sin(5 * rows[:, 0]) + 0.2 * rows[:, 1] * rows[:, 0] - rows[:, 2]


KINDS = {
    "labels": (CallableClassifier, classes_of, ["constant"]),
    "numbers": (CallableRegressor, numbers_of, ["constant", "linear"]),
}


def learned(extractor):
    """Return all results of an extraction and its number of queries."""
    return (
        extractor.rules_.to_json(),
        extractor.labels_.tobytes(),
        extractor.importances_.tobytes(),
        extractor.oracle_.n_calls,
        extractor.oracle_.n_rows,
    )


def candidates(outputs):
    return st.tuples(
        st.sampled_from([CREAMExtractor, ExACTExtractor]),
        st.fixed_dictionaries(
            {
                "depth": st.integers(1, 4),
                "error_threshold": st.sampled_from([None, 0.0, 0.05, 0.2]),
                "gauss_components": st.integers(2, 5),
                "criterion": st.sampled_from(["bic", "bic/m"]),
                "scale": st.booleans(),
                "max_samples": st.sampled_from([10, 30, 5000, None]),
                "ignore_threshold": st.sampled_from([0.0, 0.5]),
                "output": st.sampled_from(outputs),
                "random_state": st.integers(0, 1),
            }
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_bytes", [32 * 2**20, 10_000, 0])
@settings(max_examples=3)
@given(st.data())
def test_sharing_keeps_results_bit_identical(kind, max_bytes, data):
    wrapper, function, outputs = KINDS[kind]
    shared = CachedBlackBox(wrapper(function))
    shared.cache.max_bytes = max_bytes
    for cls, parameters in data.draw(st.lists(candidates(outputs), min_size=2, max_size=6)):
        alone = cls(wrapper(function), **parameters).fit(ROWS)
        assert learned(cls(shared, **parameters).fit(ROWS)) == learned(alone)
        assert shared.cache.n_bytes <= max_bytes


@pytest.mark.slow
def test_sharing_separates_different_rows():
    shared = CachedBlackBox(CallableRegressor(numbers_of))
    other = ROWS.copy()
    other[3, 1] = np.nextafter(other[3, 1], 0)
    for rows in (ROWS, other, ROWS[::-1], ROWS[:-1], ROWS[:, [0, 2, 1]]):
        alone = CREAMExtractor(CallableRegressor(numbers_of), random_state=0).fit(rows)
        candidate = CREAMExtractor(shared, random_state=0).fit(rows)
        assert learned(candidate) == learned(alone)


@pytest.mark.slow
def test_threads_share_one_cache():
    shared = CachedBlackBox(CallableClassifier(classes_of))
    options = [{"depth": d, "gauss_components": m} for d in (2, 3) for m in (2, 4)] * 4
    alone = [
        learned(CREAMExtractor(CallableClassifier(classes_of), random_state=0, **each).fit(ROWS))
        for each in options
    ]
    with ThreadPoolExecutor(4) as pool:
        result = pool.map(lambda o: CREAMExtractor(shared, random_state=0, **o).fit(ROWS), options)
        assert [learned(each)[:3] for each in result] == [each[:3] for each in alone]


@pytest.fixture
def fitted(monkeypatch):
    """Return the fitted mixtures by their number of components."""
    results = []
    fit = KMeans.fit  # each mixture starts from its clusters

    def watched(self, X, y=None):
        results.append(self.n_clusters)
        return fit(self, X, y)

    monkeypatch.setattr(KMeans, "fit", watched)
    return results


def test_sharing_repeats_no_work_across_parameters_of_cream(fitted):
    shared = CachedBlackBox(CallableRegressor(numbers_of))
    options = {"random_state": 0, "error_threshold": 0.0}
    CREAMExtractor(shared, depth=3, **options).fit(ROWS)
    assert len(fitted) == 7
    n_results = len(shared.cache)
    for changes in ({"depth": 1}, {"depth": 2}, {"error_threshold": 0.3}, {"weighted": False}):
        CREAMExtractor(shared, **(options | changes | {"depth": 1})).fit(ROWS)
    CREAMExtractor(shared, depth=1, output="linear", **options).fit(ROWS)
    assert (len(fitted), len(shared.cache)) == (7, n_results)
    CREAMExtractor(shared, depth=1, **(options | {"random_state": 1})).fit(ROWS)
    assert len(fitted) == 8


def test_sharing_fits_only_new_mixtures(fitted):
    shared = CachedBlackBox(CallableClassifier(classes_of))
    for most in (2, 3, 5, 4):
        CREAMExtractor(shared, depth=1, gauss_components=most, random_state=0).fit(ROWS)
    assert fitted == [2, 3, 4, 5]


def test_exact_shares_first_mixtures_between_depths(fitted):
    shared = CachedBlackBox(CallableClassifier(classes_of))
    ExACTExtractor(shared, depth=3, error_threshold=0.6, random_state=0).fit(ROWS)
    ExACTExtractor(shared, depth=1, random_state=0).fit(ROWS)
    assert fitted == [2]


def test_cream_and_exact_draw_rows_in_different_orders(fitted):
    shared = CachedBlackBox(CallableClassifier(classes_of))
    CREAMExtractor(shared, depth=1, random_state=0).fit(ROWS)
    ExACTExtractor(shared, depth=1, random_state=0).fit(ROWS)
    assert fitted == [2, 2]


def test_ordinary_black_box_shares_nothing(fitted):
    for _ in range(2):
        CREAMExtractor(CallableClassifier(classes_of), depth=1, random_state=0).fit(ROWS)
    assert fitted == [2, 2]
