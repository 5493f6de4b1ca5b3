"""Candidates in this process and in others give the same results, whatever their code."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel
from optuna.distributions import IntDistribution
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.scorers import ice
from skescore.tuning import (
    ExtractorSearchCV,
    Fold,
    FoldEvaluator,
    FoldResult,
    Workers,
    evaluate_on_fold,
    make_folds,
)
from skescore.tuning.runner import Batch, Chain, Helper

X, Y = (part[::3] for part in load_iris(return_X_y=True))
BLACK_BOX = DecisionTreeClassifier(max_depth=3, random_state=0)
SPACES = {"cart": {"max_leaf_nodes": IntDistribution(3, 5)}}


class Shouting(DecisionTreeClassifier):
    """Black box that is defined in this file only."""

    def predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        return np.char.upper(super().predict(X).astype(str))


class ForestOfThreads(RandomForestClassifier):
    """A forest that records the number of its threads."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ForestOfThreads:
        # The pool of scikit-learn's forests.
        self.n_threads_ = Parallel(n_jobs=self.n_jobs, prefer="threads").n_jobs
        return super().fit(X, y, sample_weight)


def evaluator_of(black_box: Any = BLACK_BOX, y: Any = Y, scorer: Any = ice) -> FoldEvaluator:
    folds = make_folds(black_box, X, y, 3, "classification", fitted=False)
    return FoldEvaluator(folds, scorer, {})


def without_seconds(result: FoldResult) -> dict[str, Any]:
    return {name: value for name, value in result.to_dict().items() if name != "seconds"}


@pytest.mark.slow
def test_workers_return_results_in_order() -> None:
    evaluator = evaluator_of()
    candidates = [CARTExtractor(BLACK_BOX, max_leaf_nodes=n, random_state=0) for n in (3, 4)]
    candidates.append(GridExExtractor(BLACK_BOX, n_slices=3))
    tasks = [(candidate, fold) for candidate in candidates for fold in (2, 0, 1)]
    expected = [
        evaluate_on_fold(candidate, evaluator.folds[fold], ice, {}) for candidate, fold in tasks
    ]
    assert len({json.dumps(without_seconds(result)) for result in expected}) > 3
    for n_jobs in (None, 2):
        with Workers(evaluator, n_jobs) as workers:
            assert workers.n_jobs == (n_jobs or 1)
            results = [*workers.run(tasks[:2]), *workers.run(tasks[2:])]
        assert list(map(without_seconds, results)) == list(map(without_seconds, expected))


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_return_failures_as_results(n_jobs: int) -> None:
    with Workers(evaluator_of(), n_jobs) as workers:
        broken = GridExExtractor(BLACK_BOX, n_slices=0)
        failed, fine = workers.run([(broken, 0), (CARTExtractor(BLACK_BOX), 0)])
    text = "ValueError: n_slices must be an integer from 1 to 1000000, got 0."
    assert failed == FoldResult({}, failure=text)
    assert not fine.failure
    assert fine["score"] > 0.5


def test_workers_raise_interrupts() -> None:
    def interrupted(model: Any, X: Any, y: Any) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluator_of(scorer=interrupted)(CARTExtractor(BLACK_BOX), 0)


def test_workers_remove_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Workers(evaluator_of(), 2) as workers:
        folder = Path(workers._path).parent
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o077 == 0  # for no other user
    assert list(tmp_path.glob("skescore-*")) == []
    with pytest.raises(RuntimeError), Workers(evaluator_of(), 2):
        raise RuntimeError
    assert list(tmp_path.glob("skescore-*")) == []
    with Workers(evaluator_of(), 1):
        assert list(tmp_path.glob("skescore-*")) == []


@pytest.mark.slow
def test_workers_load_folds_of_each_search() -> None:
    # As many tasks as needed to reach every process.
    candidates = [CARTExtractor(BLACK_BOX, max_leaf_nodes=n, random_state=0) for n in range(2, 10)]
    tasks = [(candidate, fold) for candidate in candidates for fold in range(3)]
    for y in (Y, (Y == 2).astype(int)):
        evaluator = evaluator_of(y=y)
        with Workers(evaluator, 2) as workers:
            results = [without_seconds(result) for result in workers.run(tasks)]
        assert results == [without_seconds(evaluator(*task)) for task in tasks]


class ThreadAsHelper:
    """Thread instead of a process that is ready after its first call."""

    def __init__(self, pool: ThreadPoolExecutor, seconds: float) -> None:
        self.pool = pool
        self.ready: Future[Any] = pool.submit(time.sleep, seconds)
        self.is_broken = False


@st.composite
def chain_plans(draw: Any) -> list[tuple[int, int, int, float]]:
    """Draw length, certain calls, calls until the end and duration of the calls of each chain."""
    return draw(
        st.lists(
            st.tuples(
                st.integers(0, 6), st.integers(1, 6), st.integers(1, 7), st.sampled_from([0, 0.002])
            ),
            max_size=6,
        )
    )


def make_chains(plans: list[tuple[int, int, int, float]]) -> list[Chain]:
    def stops_after(n_calls: int) -> Callable[[list[Any]], bool]:
        return lambda results: len(results) < n_calls

    return [
        Chain(index, list(range(length)), index % 2, n_certain, stops_after(n_calls))
        for index, (length, n_certain, n_calls, _) in enumerate(plans)
    ]


@given(chain_plans(), st.integers(0, 2), st.sampled_from([0, 0.003]))
def test_batch_gives_the_results_of_a_loop(
    plans: list[tuple[int, int, int, float]], n_helpers: int, delay: float
) -> None:
    calls: list[tuple[int, int]] = []

    def call(chain: Chain, number: int) -> tuple[int, int]:
        time.sleep(plans[chain.subject][3])
        calls.append((chain.subject, number))
        return chain.subject, number

    chains = make_chains(plans)
    pools = [ThreadPoolExecutor(1) for _ in range(n_helpers)]
    Batch(chains, {}).run(
        call,
        lambda helper, chain, number: helper.pool.submit(call, chain, number),
        [ThreadAsHelper(pool, delay) for pool in pools],
    )
    for chain, (length, n_certain, n_calls, _) in zip(chains, plans, strict=True):
        n_needed = min(length, max(n_certain, n_calls))
        assert chain.results == [(chain.subject, number) for number in range(n_needed)]
    for pool in pools:
        pool.shutdown()
    assert len(set(calls)) == len(calls)


@pytest.mark.parametrize("fails_here", [True, False])
def test_batch_raises_errors_of_any_worker(fails_here: bool) -> None:
    def here(chain: Chain, number: int) -> int:
        if fails_here:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return number

    def there(number: int) -> int:
        if not fails_here:
            raise KeyError(number)
        return number

    with ThreadPoolExecutor(1) as pool, pytest.raises((KeyboardInterrupt, KeyError)):
        Batch([Chain(0, list(range(9)), None, 9)], {}).run(
            here,
            lambda helper, chain, number: helper.pool.submit(there, number),
            [ThreadAsHelper(pool, 0)],
        )


@pytest.mark.parametrize("n_before", [0, 1, 3])
def test_batch_reassigns_calls_of_a_broken_helper(n_before: int) -> None:
    n_made = 0

    def there(number: int) -> int:
        nonlocal n_made
        n_made += 1
        if n_made > n_before:
            raise BrokenProcessPool
        return number

    chains = [Chain(0, list(range(5)), family, 5) for family in ("a", "b")]
    with ThreadPoolExecutor(1) as pool:
        helper = ThreadAsHelper(pool, 0)
        Batch(chains, {}).run(
            lambda chain, number: time.sleep(0.005) or number,
            lambda helper, chain, number: helper.pool.submit(there, number),
            [helper],
        )
    assert helper.is_broken
    assert [chain.results for chain in chains] == [list(range(5))] * 2


@pytest.mark.slow
def test_workers_continue_without_a_killed_process() -> None:
    evaluator = evaluator_of()
    candidate = CARTExtractor(BLACK_BOX, max_leaf_nodes=3, random_state=0)
    tasks = [(candidate, fold) for fold in (0, 1, 2)] * 40
    expected = [without_seconds(evaluator(*task)) for task in tasks]
    with Workers(evaluator, 2) as workers:
        [helper] = workers._helpers
        helper.ready.result()
        helper.submit(os._exit, 1)
        with pytest.warns(UserWarning, match="ended unexpectedly"):
            results = workers.run(tasks)
        assert list(map(without_seconds, results)) == expected
        assert list(map(without_seconds, workers.run(tasks[:6]))) == expected[:6]
    with Workers(evaluator, 2) as workers:  # starts the process again
        assert list(map(without_seconds, workers.run(tasks))) == expected
        assert not any(helper.is_broken for helper in workers._helpers)


def test_batch_returns_calls_to_the_same_worker() -> None:
    homes: dict[Any, int] = {("a", 0): 1, ("a", 1): 1, ("b", 0): 0, ("b", 1): 0}
    families: dict[int, list[str]] = {0: [], 1: []}

    def call(worker: int, chain: Chain) -> None:
        time.sleep(0.005)
        families[worker].append(chain.family)

    with ThreadPoolExecutor(1) as pool:
        Batch([Chain(0, [0, 1], family, 2) for family in ("a", "b")], homes).run(
            lambda chain, _: call(0, chain),
            lambda helper, chain, _: helper.pool.submit(call, 1, chain),
            [ThreadAsHelper(pool, 0)],
        )
    assert families[0][0] == "b"
    assert families[1][0] == "a"
    assert sorted(families[0] + families[1]) == ["a", "a", "b", "b"]


@pytest.fixture
def by_value() -> Iterator[None]:
    """Pickle the definitions of this file by value: other processes need not find the file."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.usefixtures("by_value")
@pytest.mark.parametrize(
    "kind",
    [
        "scorer",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("of a file", "local", "function")),
    ],
)
def test_workers_receive_code_of_the_caller(kind: str, tmp_path: Path) -> None:
    threshold = 2.5

    def by_petals(rows: Any) -> np.ndarray:
        return np.where(np.asarray(rows)[:, 2] < threshold, "small", "large")

    def few_rules(model: Any, X: Any, y: Any) -> float:
        return -len(model.rules_) / threshold

    class Local(Shouting):  # as a class of a script, it cannot be imported elsewhere
        pass

    black_box: Any = {
        "local": Local(max_depth=3, random_state=0),
        "of a file": Shouting(max_depth=3, random_state=0),
        "function": CallableClassifier(by_petals, classes=["large", "small"]),
        "scorer": BLACK_BOX,
    }[kind]
    labels = np.array(["A", "B", "C"])[Y]
    target = None if kind == "function" else labels
    boards = []
    for n_jobs, storage in ((1, None), (2, None), (2, tmp_path / "search.journal")):
        search = ExtractorSearchCV(
            black_box,
            extractors=["cart"],
            scoring=few_rules if kind == "scorer" else "ice",
            n_trials=4,
            cv=3,
            spaces=SPACES,
            n_jobs=n_jobs,
            random_state=0,
            storage=storage,
        )
        search.fit(X, target)
        assert (search.leaderboard_["state"] == "complete").all()
        boards.append(search.leaderboard_.drop(columns="seconds"))
    pd.testing.assert_frame_equal(boards[0], boards[1])
    if kind != "scorer":
        pd.testing.assert_frame_equal(boards[0], boards[2])
    assert not math.isnan(boards[0]["score"].iloc[0])


@pytest.mark.parametrize(("n_jobs", "own", "n_threads"), [(2, None, 2), (2, 1, 1), (None, None, 1)])
def test_search_fits_black_box_with_its_n_jobs(
    n_jobs: int | None, own: int | None, n_threads: int
) -> None:
    forest = ForestOfThreads(3, n_jobs=own, random_state=0)
    search = ExtractorSearchCV(
        forest, extractors=["cart"], n_trials=1, cv=2, n_repeats=0, spaces=SPACES, random_state=0
    )
    # A single process evaluates the candidates, as on the command line.
    search.set_params(fit_n_jobs=n_jobs)
    assert search.fit(X, Y).best_extractor_.estimator_.n_threads_ == n_threads


@pytest.mark.slow
def test_helper_keeps_large_tables() -> None:
    def grow(n_bytes: int) -> int:  # a local function, because helpers need not find the tests
        sys.modules["kept memory"] = bytearray(n_bytes)  # type: ignore[assignment]
        return os.getpid()

    helper = Helper(1, ["skescore.tuning"])
    try:
        numbers = set()
        for n_bytes in (0, 400_000_000, 400_000_000, 0):
            numbers.add(helper.submit(grow, n_bytes).result())
            time.sleep(1.1)  # loky looks at the memory once a second
        assert len(numbers) == 1
    finally:
        helper.kill()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_measure_folds_in_order(n_jobs: int) -> None:
    def held_out_predictions(extractor: CARTExtractor, fold: Fold) -> list[int]:
        assert extractor.estimator is None
        predictions: list[int] = fold.black_box.predict(fold.X_test).tolist()
        return predictions

    evaluator = evaluator_of()
    with Workers(evaluator, n_jobs) as workers:
        results = workers.measure_folds(CARTExtractor(None), held_out_predictions)
        n_rows = workers.query_cost.n_rows
    assert results == [held_out_predictions(CARTExtractor(None), f) for f in evaluator.folds]
    assert n_rows == len(X)
