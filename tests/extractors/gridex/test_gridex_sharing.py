"""Candidates of a search share cells and boxes, and nobody can tell from what they give."""

from __future__ import annotations

import copy
import math
import pickle
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import (
    CallableClassifier,
    CallableRegressor,
    GridExExtractor,
    RememberingBlackBox,
    gridex,
)
from skescore.extractors._oracle import ResultMemory, bytes_of
from skescore.extractors._sharing import Sharing, WatchedThreshold, digest
from skescore.extractors.gridex import GridRExExtractor, _grid

ROWS = np.random.default_rng(0).uniform(size=(150, 3)) * [1.0, 10.0, 0.1]


def classes_of(rows):
    rows = np.asarray(rows)
    return np.where(rows[:, 0] > 0.6, "c", np.where(rows[:, 1] * rows[:, 0] > 2, "b", "a"))


def numbers_of(rows):
    rows = np.asarray(rows)
    return np.sin(5 * rows[:, 0]) + 0.2 * rows[:, 1] * rows[:, 0] - rows[:, 2]


def learned(extractor):
    """All that an extraction gives, to the last bit, with the questions that it asked for."""
    rules = extractor.rules_
    kept = (
        rules.to_json(),
        repr(rules),
        extractor.importances_.tobytes(),
        extractor.coverage_,
        extractor.oracle_.n_calls,
        extractor.oracle_.n_rows,
        extractor.oracle_.n_rows_remembered,
    )
    if isinstance(extractor, GridRExExtractor):
        kept += (extractor.residuals_.tobytes(), extractor.threshold_)
        kept += (extractor.fidelity_loss_, extractor.dropped_coefficients_)
    return kept


def fitted(kind, black_box, parameters, rows=ROWS):
    return kind(black_box, **parameters).fit(rows)


# --- the same with and without -------------------------------------------------------------------

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


@settings(max_examples=25)
@given(st.lists(GRIDEX, min_size=2, max_size=8))
def test_classes_are_bit_identical_with_and_without_sharing(candidates):
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    for kind, parameters in candidates:
        alone = fitted(kind, CallableClassifier(classes_of), parameters)
        assert learned(fitted(kind, shared, parameters)) == learned(alone)


@settings(max_examples=20)
@given(st.lists(GRIDEX | GRIDREX, min_size=2, max_size=6))
def test_numbers_are_bit_identical_with_and_without_sharing(candidates):
    shared = RememberingBlackBox(CallableRegressor(numbers_of))
    for kind, parameters in candidates:
        alone = fitted(kind, CallableRegressor(numbers_of), parameters)
        assert learned(fitted(kind, shared, parameters)) == learned(alone)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_paths_of_thresholds_on_real_data(load):
    X, y = load(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    shared = RememberingBlackBox(tree)
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
    assert len(sizes) > 3  # the thresholds made a difference


def test_strategies_per_level_share_the_levels_that_they_have_in_common():
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    first, a, b = {"n_slices": 3}, {"n_slices": 2}, {"n_slices": 4, "importance_threshold": 0.5}
    for strategies in ([first], [first, a], [first, b], [first, a, b], [a, first], [first, a, b]):
        parameters = {"level_strategies": strategies, "threshold": 0.05}
        alone = fitted(GridExExtractor, CallableClassifier(classes_of), parameters)
        assert learned(fitted(GridExExtractor, shared, parameters)) == learned(alone)


def test_a_memory_without_room_changes_nothing_but_the_time():
    shared = RememberingBlackBox(CallableRegressor(numbers_of))
    for most in (0, 3000, 30000):
        shared.memory = ResultMemory(most)
        for threshold in (0.2, 0.3, 0.2):
            parameters = {"n_slices": 4, "threshold": threshold, "min_examples": 3}
            parameters["random_state"] = 0
            alone = fitted(GridExExtractor, CallableRegressor(numbers_of), parameters)
            assert learned(fitted(GridExExtractor, shared, parameters)) == learned(alone)
            assert shared.memory.n_bytes <= most


def test_threads_may_share():
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    candidates = [{"n_slices": n, "threshold": t} for n in (2, 3) for t in (0.05, 0.2)] * 4
    alone = [
        learned(fitted(GridExExtractor, CallableClassifier(classes_of), each))[:4]
        for each in candidates
    ]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda each: fitted(GridExExtractor, shared, each), candidates)
        assert [learned(each)[:4] for each in found] == alone


# --- something is shared -------------------------------------------------------------------------


@pytest.fixture
def work(monkeypatch):
    """Counts what is worked out: cells cut, cells joined, importances."""
    counts = {"cut": 0, "join": 0, "importances": 0}

    def counted(module, function, name):
        original = getattr(module, function)

        def counting(*args, **options):
            counts[name] += 1
            return original(*args, **options)

        monkeypatch.setattr(module, function, counting)

    counted(_grid, "slice_numbers", "cut")
    counted(_grid, "CellMerger", "join")
    counted(gridex, "feature_importances", "importances")
    return counts


def test_a_path_of_thresholds_cuts_the_first_level_once(work):
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    for threshold in np.linspace(0.01, 0.9, 30):
        parameters = {"n_slices": 3, "importance_threshold": 0.3, "depth": 1}
        fitted(GridExExtractor, shared, parameters | {"threshold": float(threshold)})
    assert work == {"cut": 1, "join": 1, "importances": 1}


def test_deeper_levels_are_cut_once_for_the_same_boxes(work):
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    outcomes = set()
    for threshold in np.linspace(0.01, 0.9, 30):
        candidate = fitted(
            GridExExtractor, shared, {"n_slices": 2, "threshold": float(threshold), "depth": 2}
        )
        outcomes.add(candidate.rules_.to_json())
    assert 2 < len(outcomes) < 8
    # One cut for the first level, one for each set of boxes that is cut further.
    assert work["cut"] == work["join"] <= 1 + len(outcomes)


def test_thresholds_of_importance_that_choose_the_same_features_share_everything(work):
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    first = fitted(GridExExtractor, shared, {"importance_threshold": 0.99})
    others = np.sort(first.importances_)[-2]
    before = dict(work)
    for share in np.linspace(others + 1e-9, 1, 5):
        again = fitted(GridExExtractor, shared, {"importance_threshold": float(share)})
        assert again.rules_ == first.rules_
    assert work == before
    fitted(GridExExtractor, shared, {"importance_threshold": float(others)})
    assert work["cut"] > before["cut"]


@pytest.mark.parametrize("kind", [GridExExtractor, GridRExExtractor])
def test_in_regression_thresholds_join_anew_only_where_that_makes_a_difference(kind, work):
    shared = RememberingBlackBox(CallableRegressor(numbers_of))
    outcomes = []
    for threshold in np.linspace(0.01, 1.5, 60):
        parameters = {"n_slices": 4, "depth": 1, "importance_threshold": 0.9}
        candidate = fitted(kind, shared, parameters | {"threshold": float(threshold)})
        outcomes.append(candidate.rules_.to_json())
    assert work["cut"] == work["importances"] == 1
    changes = sum(a != b for a, b in pairwise(outcomes))
    assert 0 < changes < work["join"] < 15


def test_grids_of_constants_and_of_planes_share_cells_but_never_boxes(work):
    shared = RememberingBlackBox(CallableRegressor(numbers_of))
    parameters = {"n_slices": 3, "depth": 1, "threshold": 0.3}
    for kind in (GridExExtractor, GridRExExtractor, GridRExExtractor):
        fitted(kind, shared, parameters)
    assert (work["cut"], work["join"]) == (1, 2)
    fitted(GridRExExtractor, shared, parameters | {"coefficient_tolerance": 0.05})
    assert (work["cut"], work["join"]) == (1, 3)


def test_an_ordinary_black_box_shares_nothing(work):
    black_box = FrozenEstimator(DecisionTreeClassifier().fit(ROWS, classes_of(ROWS)))
    for _ in range(2):
        fitted(GridExExtractor, black_box, {"importance_threshold": 0.3, "depth": 1})
    assert work == {"cut": 2, "join": 2, "importances": 2}


def test_drawn_points_reach_the_black_box_once_and_count_for_every_candidate():
    asked = []

    def answer(rows):
        asked.append(len(rows))
        return classes_of(rows)

    shared = RememberingBlackBox(CallableClassifier(answer))
    parameters = {"n_slices": 3, "depth": 1, "min_examples": 10, "random_state": 0}
    found = [
        fitted(GridExExtractor, shared, parameters | {"batch_size": 50, "threshold": threshold})
        for threshold in (0.1, 0.2, 0.3)
    ]
    drawn = found[0].oracle_.n_rows - len(ROWS)
    assert drawn > 100
    assert sum(asked) == len(ROWS) + drawn
    assert {each.oracle_.n_rows for each in found} == {len(ROWS) + drawn}
    assert {each.oracle_.n_calls for each in found} == {3 + math.ceil(drawn / 50)}


# --- nothing is shared that differs --------------------------------------------------------------


def test_rows_that_differ_share_nothing(work):
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    other = ROWS.copy()
    other[3, 1] = np.nextafter(other[3, 1], 0)
    frame = pd.DataFrame(ROWS, columns=list("abc"))
    for rows in (ROWS, other, ROWS[::-1], ROWS[:-1], ROWS[:, [0, 2, 1]], frame):
        fitted(GridExExtractor, shared, {"depth": 1, "importance_threshold": 0.1}, rows)
    assert work == {"cut": 6, "join": 6, "importances": 6}
    fitted(GridExExtractor, shared, {"depth": 1, "importance_threshold": 0.1}, ROWS.copy())
    assert work["cut"] == 6  # the content counts, not the object


def test_rows_changed_in_place_are_other_rows():
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    rows = ROWS.copy()
    fitted(GridExExtractor, shared, {}, rows)
    rows[:, 0] = rows[::-1, 0]
    alone = fitted(GridExExtractor, CallableClassifier(classes_of), {}, rows)
    assert learned(fitted(GridExExtractor, shared, {}, rows)) == learned(alone)


def test_black_boxes_share_nothing(work):
    for _ in range(2):
        fitted(GridExExtractor, RememberingBlackBox(CallableClassifier(classes_of)), {"depth": 1})
    assert (work["cut"], work["join"]) == (2, 2)


def test_seeds_share_nothing_where_points_are_drawn(work):
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    for min_examples, cuts in ((1, 1), (10, 3)):
        for seed in (0, 1):
            parameters = {"depth": 1, "min_examples": min_examples, "random_state": seed}
            fitted(GridExExtractor, shared, parameters)
        assert work["cut"] == cuts


def test_rounding_for_parity_shares_nothing(work):
    class Rounding(GridExExtractor):
        _reference_rounding = True

    shared = RememberingBlackBox(CallableClassifier(classes_of))
    plain = fitted(GridExExtractor, shared, {"n_slices": 3})
    rounded = fitted(Rounding, shared, {"n_slices": 3})
    alone = fitted(Rounding, CallableClassifier(classes_of), {"n_slices": 3})
    assert learned(rounded) == learned(alone) != learned(plain)


def test_what_a_user_changes_afterwards_reaches_nobody():
    shared = RememberingBlackBox(CallableClassifier(classes_of))
    parameters = {"importance_threshold": 0.1}
    first = fitted(GridExExtractor, shared, parameters)
    before = learned(first)
    first.importances_[:] = -1
    for array in (first.rules_.conclusions.n_rows, first.rules_.conclusions.class_counts):
        if array.flags.writeable:
            array[:] = -1
    assert learned(fitted(GridExExtractor, shared, parameters)) == before


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda box: pickle.loads(pickle.dumps(box))])
def test_copies_start_with_an_empty_memory_and_give_the_same(copied):
    X, y = load_wine(return_X_y=True)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    shared = RememberingBlackBox(forest)
    shared.memory.most_bytes = 10**6
    parameters = {"importance_threshold": 0.3, "threshold": 0.2}
    first = fitted(GridExExtractor, shared, parameters, X)
    assert len(shared.memory) > 2
    other = copied(shared)
    assert (len(other.memory), other.memory.n_bytes, other.memory.most_bytes) == (0, 0, 10**6)
    assert learned(fitted(GridExExtractor, other, parameters, X)) == learned(first)
    assert clone(shared).memory is shared.memory


# --- the parts -----------------------------------------------------------------------------------


class SlowMemory:
    """A list of keys, the least recently used first."""

    def __init__(self, most):
        self.most, self.kept = most, OrderedDict()

    def get(self, key):
        if key not in self.kept:
            return None
        self.kept[key] = self.kept.pop(key)
        return self.kept[key]

    def put(self, key, value):
        self.kept.pop(key, None)
        if value.nbytes + 512 <= self.most / 4:
            self.kept[key] = value
        while sum(v.nbytes + 512 for v in self.kept.values()) > self.most:
            del self.kept[next(iter(self.kept))]


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 7), st.integers(0, 2000)), max_size=60),
    st.integers(0, 12000),
)
def test_the_memory_against_a_slow_one(steps, most):
    memory, slow = ResultMemory(most), SlowMemory(most)
    for putting, key, size in steps:
        if putting:
            value = np.zeros(size, np.uint8)
            memory.put(key, value)
            slow.put(key, value)
        else:
            assert memory.get(key) is slow.get(key)
    assert len(memory) == len(slow.kept)
    assert memory.n_bytes == sum(v.nbytes + 512 for v in slow.kept.values()) <= most
    assert all(memory.get(key) is value for key, value in slow.kept.items())


def test_bytes_are_those_of_all_arrays_inside():
    array = np.zeros((3, 4))
    table = _grid.ClassCountsTable(array)
    assert bytes_of(array) == 96
    assert bytes_of(table) == 96 + table.outputs.nbytes
    assert bytes_of((0.5, (array, "text"), None)) == 96


LEVELS = st.floats(-5, 5) | st.integers(-3, 3).map(float)


@given(st.lists(LEVELS), st.lists(LEVELS), LEVELS, st.lists(LEVELS, max_size=5))
@example([math.nan, 1.0], [], 0.5, [0.9])
def test_a_watched_threshold_knows_all_thresholds_that_compare_alike(array, single, at, others):
    watched = WatchedThreshold(at)
    numbers = np.array(array, dtype=float)
    assert (numbers < watched).tolist() == (numbers < at).tolist()
    assert [x >= watched for x in single] == [x >= at for x in single]
    assert watched.above < at <= watched.up_to
    for other in [*others, watched.up_to, np.nextafter(watched.above, math.inf)]:
        alike = (numbers < other).tolist() == (numbers < at).tolist() and [
            x >= other for x in single
        ] == [x >= at for x in single]
        assert alike == (watched.above < other <= watched.up_to)


def test_results_for_thresholds_hold_up_to_the_numbers_compared():
    sharing = Sharing(ResultMemory(), "rows")
    for value in (0.5, 0.9):
        watched = WatchedThreshold(value)
        assert (np.array([0.1, 0.4, 0.7]) < watched).sum() == (2 if value < 0.7 else 3)
        sharing.put_for_threshold("key", watched, value)
    up, down = math.inf, -math.inf
    for threshold, found in [
        (0.4, None), (np.nextafter(0.4, up), 0.5), (0.7, 0.5), (np.nextafter(0.7, up), 0.9),
        (up, 0.9), (np.nextafter(0.4, down), None),
    ]:  # fmt: skip
        assert sharing.get_for_threshold("key", threshold) == found
        assert sharing.get_for_threshold("another", threshold) is None
        assert Sharing(sharing._memory, "others").get_for_threshold("key", threshold) is None


def test_digests_tell_content_type_and_shape_apart():
    arrays = [
        np.zeros(4),
        np.zeros(4, np.int64),
        np.zeros((2, 2)),
        np.zeros((4, 1)),
        np.array([0, 0, 0, -0.0]),
        np.zeros(0),
        np.zeros((0, 2)),
    ]
    assert len({digest(array) for array in arrays}) == len(arrays)
    assert digest(np.arange(6.0)[::2]) == digest(np.array([0.0, 2.0, 4.0]))
    assert digest(np.zeros(1), np.zeros(2)) != digest(np.zeros(2), np.zeros(1))
