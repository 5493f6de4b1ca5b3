"""Candidates of REAL and Trepan share codes, queries and nodes without side effects."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.black_boxes import CallableClassifier
from skescore.extractors import (
    CachedBlackBox,
    CREAMExtractor,
    Discretizer,
    GridExExtractor,
    REALExtractor,
    TrepanExtractor,
)

ROWS = np.random.default_rng(0).uniform(size=(150, 3)) * [1.0, 10.0, 0.1]


def classes_of(rows):
    rows = np.asarray(rows, dtype=float)
    return np.where(rows[:, 0] > 0.6, "c", np.where(rows[:, 1] * rows[:, 0] > 2, "b", "a"))


def learned(extractor):
    """Return all results of an extraction and its number of queries."""
    kind = getattr(extractor, "discretizer_", None)
    cuts = None if kind is None else [each.tobytes() for each in kind.cut_points_]
    return (
        extractor.rules_.to_json(),
        extractor.oracle_.n_calls,
        extractor.oracle_.n_rows,
        getattr(extractor, "n_rules_made_", None),
        getattr(extractor, "n_splits_", None),
        cuts,
    )


def alone(cls, **parameters):
    return cls(CallableClassifier(classes_of), **parameters)


REAL = st.fixed_dictionaries(
    {
        "max_rules": st.sampled_from([1, 2, 4, None]),
        "min_precision": st.sampled_from([0.8, 0.95, 1.0]),
        "tolerance": st.sampled_from([0.0, 0.01, 0.2]),
        "n_queries": st.sampled_from([1, 5, 50]),
        "subsumption": st.booleans(),
        "prune": st.sampled_from([None, "ice"]),
        "batch_size": st.sampled_from([None, 17]),
    }
)
TREPAN = st.fixed_dictionaries(
    {
        "max_leaf_nodes": st.sampled_from([None, 3, 5]),
        "max_nodes": st.sampled_from([1, 3, 8]),
        "max_depth": st.sampled_from([None, 1, 2]),
        "min_sample": st.sampled_from([0, 100, 200]),
        "max_literals": st.sampled_from([1, 3]),
        "min_samples_leaf": st.sampled_from([0, 5]),
        "purity": st.sampled_from([0.7, 0.99]),
        "significance": st.sampled_from([0.05, 0.5]),
        "batch_size": st.sampled_from([None, 17]),
        "random_state": st.integers(0, 1),
    }
)
CANDIDATES = st.tuples(st.just(REALExtractor), REAL) | st.tuples(st.just(TrepanExtractor), TREPAN)


@pytest.mark.slow
@pytest.mark.parametrize("max_bytes", [32 * 2**20, 20_000, 0])
@settings(max_examples=10)
@given(st.lists(CANDIDATES, min_size=2, max_size=8))
@pytest.mark.filterwarnings("ignore:max_leaf_nodes")
def test_sharing_keeps_results_bit_identical(max_bytes, candidates):
    shared = CachedBlackBox(CallableClassifier(classes_of))
    shared.cache.max_bytes = max_bytes
    for cls, parameters in candidates:
        fitted = cls(shared, **parameters).fit(ROWS)
        assert learned(fitted) == learned(alone(cls, **parameters).fit(ROWS))
        assert shared.cache.n_bytes <= max_bytes


@pytest.mark.parametrize("cls", [REALExtractor, TrepanExtractor])
def test_sharing_separates_different_rows(cls):
    options = {"random_state": 0} if cls is TrepanExtractor else {}
    shared = CachedBlackBox(CallableClassifier(classes_of))
    other = ROWS.copy()
    other[3, 1] = np.nextafter(other[3, 1], 0)
    names = pd.DataFrame(ROWS, columns=["x", "y", "z"])
    for rows in (ROWS, other, ROWS[::-1], ROWS[:-1], ROWS[:, [0, 2, 1]], names):
        assert learned(cls(shared, **options).fit(rows)) == learned(alone(cls, **options).fit(rows))


@pytest.mark.parametrize("cls", [REALExtractor, TrepanExtractor])
def test_sharing_separates_codes_of_categories(cls):
    options = {"random_state": 0} if cls is TrepanExtractor else {}
    values = np.where(ROWS[:, 0] > 0.6, "high", np.where(ROWS[:, 0] > 0.3, "middle", "low"))

    def answer(frame):
        return np.where(frame["level"].astype(str) == "high", "yes", "no")

    shared = CachedBlackBox(CallableClassifier(answer))
    for order in (["low", "middle", "high"], ["high", "low", "middle"]):
        frame = pd.DataFrame({"level": pd.Categorical(values, order), "x": ROWS[:, 1]})
        single = cls(CallableClassifier(answer), **options).fit(frame)
        assert learned(cls(shared, **options).fit(frame)) == learned(single)


@pytest.mark.slow
def test_sharing_supports_categories_and_missing_values():
    level = np.where(ROWS[:, 0] > 0.6, "high", np.where(ROWS[:, 0] > 0.3, "middle", "low"))
    frame = pd.DataFrame({"level": level, "x": ROWS[:, 1], "y": ROWS[:, 2]})
    frame.loc[::7, "level"], frame.loc[::5, "x"] = np.nan, np.nan

    def answer(rows):
        high = rows["level"].isna() | (rows["level"] == "high")
        return np.where(high & ~(rows["x"] > 4), "yes", np.where(rows["y"] > 0.05, "no", "well"))

    shared, calls = CachedBlackBox(CallableClassifier(answer)), 0
    trepan = {"random_state": 0, "min_sample": 100}
    candidates = [(TrepanExtractor, trepan | {"max_leaf_nodes": n}) for n in (3, 5)]
    candidates += [(REALExtractor, {"max_rules": n}) for n in (2, 9)]
    candidates += [(CREAMExtractor, {"depth": n, "random_state": 0}) for n in (1, 2)]
    candidates += [(GridExExtractor, {"depth": n, "max_rules": 9}) for n in (1, 2)]
    for rows in (
        frame,
        frame.assign(level=frame["level"].replace("low", "tall")),
        frame[["x", "y", "level"]],
    ):
        for cls, options in candidates:
            single = cls(CallableClassifier(answer), **options).fit(rows)
            calls += single.oracle_.n_calls
            assert learned(cls(shared, **options).fit(rows)) == learned(single)
    assert shared.oracle.n_calls < 0.7 * calls


@pytest.mark.parametrize("cls", [REALExtractor, TrepanExtractor])
def test_threads_share_one_cache(cls):
    shared = CachedBlackBox(CallableClassifier(classes_of))
    if cls is REALExtractor:
        options = [{"max_rules": m, "min_precision": p} for m in (1, 3, None) for p in (0.9, 1)] * 3
    else:
        options = [{"max_nodes": m, "random_state": 0} for m in (1, 3, 5)] * 4
    expected = [learned(alone(cls, **each).fit(ROWS)) for each in options]
    with ThreadPoolExecutor(4) as pool:
        result = pool.map(lambda each: cls(shared, **each).fit(ROWS), options)
        assert [learned(each) for each in result] == expected


def test_real_continues_from_shared_rules(monkeypatch):
    fits = []
    fit = Discretizer.fit
    monkeypatch.setattr(Discretizer, "fit", lambda *given: fits.append(given) or fit(*given))
    shared = CachedBlackBox(CallableClassifier(classes_of))
    first = REALExtractor(shared, max_candidates=2).fit(ROWS)
    n_calls = shared.oracle.n_calls
    second = REALExtractor(shared, max_candidates=4).fit(ROWS)
    assert shared.oracle.n_calls == n_calls + 2
    assert len(fits) == 1
    assert second.oracle_.n_calls > first.oracle_.n_calls
    first.discretizer_.cut_points_[0][:] = np.nan  # its own
    REALExtractor(shared, discretizer=Discretizer(n_bins=3)).fit(ROWS)
    assert np.isfinite(
        REALExtractor(shared, max_candidates=2).fit(ROWS).discretizer_.cut_points_[0]
    ).all()
