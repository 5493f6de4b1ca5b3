"""Candidates of a search share the results of one cached black box without side effects."""

from __future__ import annotations

import copy
import math
import pickle
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CachedBlackBox, GridExExtractor, GridRExExtractor, ResultCache

ROWS = np.random.default_rng(0).uniform(size=(150, 3)) * [1.0, 10.0, 0.1]


def classes_of(rows):
    rows = np.asarray(rows)
    return np.where(rows[:, 0] > 0.6, "c", np.where(rows[:, 1] * rows[:, 0] > 2, "b", "a"))


def numbers_of(rows):
    rows = np.asarray(rows)
    return np.sin(5 * rows[:, 0]) + 0.2 * rows[:, 1] * rows[:, 0] - rows[:, 2]


def learned(extractor):
    """Return all results of an extraction and its number of queries."""
    rules = extractor.rules_
    statistics = (
        rules.to_json(),
        repr(rules),
        extractor.importances_.tobytes(),
        extractor.coverage_,
        extractor.oracle_.n_calls,
        extractor.oracle_.n_rows,
        extractor.oracle_.n_rows_cached,
    )
    if isinstance(extractor, GridRExExtractor):
        statistics += (extractor.residuals_.tobytes(), extractor.threshold_)
        statistics += (extractor.fidelity_loss_, extractor.dropped_coefficients_)
    return statistics


def fitted(kind, black_box, parameters, rows=ROWS):
    return kind(black_box, **parameters).fit(rows)


# --- results with and without sharing ------------------------------------------------------------

PARAMETERS = {
    "n_slices": st.integers(1, 5),
    "importance_threshold": st.sampled_from([None, 0.0, 0.1, 0.3, 0.9, 0.95, 1.0]),
    "depth": st.integers(1, 3),
    "threshold": st.sampled_from([None, 0.0, 0.1, 0.1000001, 0.3, 2.0]) | st.floats(0, 1),
    "min_examples": st.sampled_from([0, 1, 3, 12]),
    "batch_size": st.sampled_from([None, 7]),
    "random_state": st.integers(0, 1),
}
GRIDEX = st.tuples(st.just(GridExExtractor), st.fixed_dictionaries(PARAMETERS))
GRIDREX = st.tuples(
    st.just(GridRExExtractor),
    st.fixed_dictionaries(
        PARAMETERS | {"coefficient_tolerance": st.sampled_from([0.0, 0.05]), "depth": st.just(2)}
    ),
)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(GRIDEX, min_size=2, max_size=8))
def test_sharing_keeps_classes_bit_identical(candidates):
    shared = CachedBlackBox(CallableClassifier(classes_of))
    for kind, parameters in candidates:
        alone = fitted(kind, CallableClassifier(classes_of), parameters)
        assert learned(fitted(kind, shared, parameters)) == learned(alone)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.lists(GRIDEX | GRIDREX, min_size=2, max_size=6))
def test_sharing_keeps_numbers_bit_identical(candidates):
    shared = CachedBlackBox(CallableRegressor(numbers_of))
    for kind, parameters in candidates:
        alone = fitted(kind, CallableRegressor(numbers_of), parameters)
        assert learned(fitted(kind, shared, parameters)) == learned(alone)


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_sharing_keeps_paths_of_thresholds_on_real_data(load):
    X, y = load(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    shared = CachedBlackBox(tree)
    sizes = set()
    for share in (0.5, 0.7):
        for threshold in np.geomspace(0.01, 0.5, 5):
            parameters = {
                "n_slices": 3,
                "importance_threshold": share,
                "threshold": float(threshold),
                "depth": 3,
                "min_examples": 3,
                "random_state": 0,
            }
            alone = fitted(GridExExtractor, FrozenEstimator(tree), parameters, X)
            candidate = fitted(GridExExtractor, shared, parameters, X)
            assert learned(candidate) == learned(alone)
            sizes.add(candidate.n_rules_)
    assert len(sizes) > 3  # the thresholds have an effect


def test_small_cache_changes_no_result():
    shared = CachedBlackBox(CallableRegressor(numbers_of))
    for most in (0, 3000, 30000):
        shared.cache.max_bytes = most
        for threshold in (0.2, 0.3, 0.2):
            parameters = {"n_slices": 4, "threshold": threshold, "min_examples": 3}
            parameters["random_state"] = 0
            alone = fitted(GridExExtractor, CallableRegressor(numbers_of), parameters)
            assert learned(fitted(GridExExtractor, shared, parameters)) == learned(alone)
            assert shared.cache.n_bytes <= most


def test_threads_share_one_cache():
    shared = CachedBlackBox(CallableClassifier(classes_of))
    candidates = [{"n_slices": n, "threshold": t} for n in (2, 3) for t in (0.05, 0.2)] * 4
    alone = [
        learned(fitted(GridExExtractor, CallableClassifier(classes_of), each))[:4]
        for each in candidates
    ]
    with ThreadPoolExecutor(4) as pool:
        result = pool.map(lambda each: fitted(GridExExtractor, shared, each), candidates)
        assert [learned(each)[:4] for each in result] == alone


def test_drawn_points_are_queried_once_for_all_candidates():
    queries = []

    def answer(rows):
        queries.append(len(rows))
        return classes_of(rows)

    shared = CachedBlackBox(CallableClassifier(answer))
    parameters = {"n_slices": 3, "depth": 1, "min_examples": 10, "random_state": 0}
    parameters["max_rules"] = None
    results = [
        fitted(GridExExtractor, shared, parameters | {"batch_size": 50, "threshold": threshold})
        for threshold in (0.1, 0.2, 0.3)
    ]
    drawn = results[0].oracle_.n_rows - len(ROWS)
    assert drawn > 100
    assert sum(queries) == len(ROWS) + drawn
    assert {each.oracle_.n_rows for each in results} == {len(ROWS) + drawn}
    assert {each.oracle_.n_calls for each in results} == {3 + math.ceil(drawn / 50)}


# --- different results are not shared ------------------------------------------------------------


def test_different_rows_share_nothing():
    shared = CachedBlackBox(CallableClassifier(classes_of))
    other = ROWS.copy()
    other[3, 1] = np.nextafter(other[3, 1], 0)
    frame = pd.DataFrame(ROWS, columns=list("abc"))
    for rows in (ROWS, other, ROWS[::-1], ROWS[:-1], ROWS[:, [0, 2, 1]], frame):
        parameters = {"depth": 1, "importance_threshold": 0.1}
        alone = fitted(GridExExtractor, CallableClassifier(classes_of), parameters, rows)
        assert learned(fitted(GridExExtractor, shared, parameters, rows)) == learned(alone)


def test_rows_changed_in_place_share_nothing():
    shared = CachedBlackBox(CallableClassifier(classes_of))
    rows = ROWS.copy()
    fitted(GridExExtractor, shared, {}, rows)
    rows[:, 0] = rows[::-1, 0]
    alone = fitted(GridExExtractor, CallableClassifier(classes_of), {}, rows)
    assert learned(fitted(GridExExtractor, shared, {}, rows)) == learned(alone)


def test_shared_state_survives_changes_of_results():
    shared = CachedBlackBox(CallableClassifier(classes_of))
    parameters = {"importance_threshold": 0.1}
    first = fitted(GridExExtractor, shared, parameters)
    before = learned(first)
    first.importances_[:] = -1
    for array in (first.rules_.conclusions.n_rows, first.rules_.conclusions.class_counts):
        if array.flags.writeable:
            array[:] = -1
    assert learned(fitted(GridExExtractor, shared, parameters)) == before


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda box: pickle.loads(pickle.dumps(box))])
def test_copies_start_with_an_empty_cache(copied):
    X, y = load_wine(return_X_y=True)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    shared = CachedBlackBox(forest)
    shared.cache.max_bytes = 10**6
    parameters = {"importance_threshold": 0.3, "threshold": 0.2}
    first = fitted(GridExExtractor, shared, parameters, X)
    assert len(shared.cache) > 0
    other = copied(shared)
    assert (len(other.cache), other.cache.n_bytes, other.cache.max_bytes) == (0, 0, 10**6)
    assert learned(fitted(GridExExtractor, other, parameters, X)) == learned(first)
    assert clone(shared).cache is shared.cache


# --- the cache -----------------------------------------------------------------------------------


class SlowCache:
    """List of keys, the least recently used first."""

    def __init__(self, most):
        self.most, self.kept = most, OrderedDict()

    def get(self, key):
        if key not in self.kept:
            return None
        self.kept[key] = self.kept.pop(key)
        return self.kept[key]

    def put(self, key, value):
        self.kept.pop(key, None)
        if value.nbytes + 512 <= self.most / 2:
            self.kept[key] = value
        while sum(v.nbytes + 512 for v in self.kept.values()) > self.most:
            del self.kept[next(iter(self.kept))]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 7), st.integers(0, 2000)), max_size=60),
    st.integers(0, 12000),
)
def test_result_cache_equals_slow_cache(steps, most):
    cache, slow = ResultCache(most), SlowCache(most)
    for putting, key, size in steps:
        if putting:
            value = np.zeros(size, np.uint8)
            cache.put(key, value)
            slow.put(key, value)
        else:
            assert cache.get(key) is slow.get(key)
    assert len(cache) == len(slow.kept)
    assert cache.n_bytes == sum(v.nbytes + 512 for v in slow.kept.values()) <= most
    assert all(cache.get(key) is value for key, value in slow.kept.items())
