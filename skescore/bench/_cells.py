"""Measurement of a cell: extraction on one fold and scores on its held-out rows."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import cloudpickle
import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from skescore._deadline import time_limit
from skescore._processes import end_with_parent
from skescore._splitters import make_time_splitter
from skescore.bench._configuration import BlackBoxEntry, ExtractorEntry, text_of_object
from skescore.bench._plan import Cell, split_rows
from skescore.black_boxes import fit_black_box, make_black_box
from skescore.datasets import Dataset
from skescore.extractors import Oracle
from skescore.metrics import fidelity, prediction_performance
from skescore.registry import make_extractor
from skescore.rules import RuleSet
from skescore.scorers import (
    SCORE_SPECS,
    RuleScorer,
    evaluate_rules,
    get_rule_scorer,
    knowledge,
    register_score,
)
from skescore.tuning import ExtractorSearchCV, group_options

__all__ = ["Group", "failed_row", "measure_group", "measure_limited", "work"]


class Group(NamedTuple):
    """Cells that share a black box, a data set, a seed and a fold."""

    dataset: Dataset
    data: str
    black_box: BlackBoxEntry
    seed: int
    fold: int
    folds: int
    test_size: float
    entries: tuple[ExtractorEntry, ...]
    model: FrozenEstimator | None = None
    scorer: RuleScorer = knowledge
    measures: tuple[tuple[str, Any], ...] = ()

    def cell(self, entry: ExtractorEntry) -> Cell:
        """Return the cell of an extractor."""
        return Cell(self.data, self.black_box.label, entry.label, self.seed, self.fold)


def measure_group(
    group: Group,
    *,
    limit: Callable[[], AbstractContextManager[None]] = nullcontext,
    on_fitted: Callable[[], None] = lambda: None,
) -> Iterator[dict[str, Any]]:
    """Fit the black box once and measure one extractor after the other.

    Parameters
    ----------
    group : Group
        The cells.
    limit : callable, optional
        Function that returns a context manager for each cell.
    on_fitted : callable, optional
        Function that is called once the black box is fitted.

    Notes
    -----
    Libraries use one thread, so sums are added in the same order for any number of processes, and
    times refer to one core.
    """
    for spec in group.scorer.specs:
        if spec.name not in SCORE_SPECS:  # in another process than the caller's
            register_score(spec)
    splits = split_rows(group.dataset, group.seed, group.folds, group.test_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rare classes have a note
        train, test = list(splits)[group.fold]
    X, y = group.dataset.X, group.dataset.y
    groups = None if group.dataset.groups is None else group.dataset.groups.iloc[train]
    rows = _Rows(X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test], groups)
    with threadpool_limits(limits=1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the rows contain the quality of the black box
                # A model from a file is frozen and is not fitted again.
                black_box = _black_box(group)
                options = group_options(black_box, groups)
                model = fit_black_box(black_box, rows.X_train, rows.y_train, **options)
                y_box = Oracle(model, like=rows.X_test).query(rows.X_test)
        except Exception as error:
            for entry in group.entries:
                yield failed_row(group, entry, error, "the black box cannot be trained: ")
            return
        task = group.dataset.task
        quality = prediction_performance(
            rows.y_test, y_box, metric=SCORE_SPECS["ice"].metric(task), task=task
        )
        on_fitted()
        for entry in group.entries:
            try:
                with limit():
                    row = _measure(group, entry, rows, model, y_box)
            except Exception as error:  # recorded as a row, so that the benchmark continues
                row = failed_row(group, entry, error)
            yield row | {"black_box_quality": quality}


class _Rows(NamedTuple):
    """The rows of a fold."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    groups_train: Any = None


def _black_box(group: Group) -> Any:
    box, dataset = group.black_box, group.dataset
    if group.model is not None:
        return group.model
    if box.kind == "object":
        return _set_seed(clone(box.estimator), group.seed)
    return make_black_box(
        box.name, dataset.task, group.seed, dataset.categories, scaled=box.scaled, params=box.params
    )


def _row_head(group: Group, entry: ExtractorEntry) -> dict[str, Any]:
    cell = group.cell(entry)._asdict()
    return {**cell, "task": group.dataset.task, "params": _params_text(entry.params)}


def failed_row(
    group: Group, entry: ExtractorEntry, error: Exception, prefix: str = ""
) -> dict[str, Any]:
    """Return the result row of a cell that failed, with the message of its error."""
    text = f"{prefix}{type(error).__name__}: {error}"
    return _row_head(group, entry) | {"state": "failed", "error": text}


def _measure(
    group: Group, entry: ExtractorEntry, rows: _Rows, model: Any, y_box: np.ndarray
) -> dict[str, Any]:
    """Extract rules, and return their row with the rules and with scores for weights of 1."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        rules, cost = _extract(group, entry, rows, model)
        X_test = rows.X_test
        if isinstance(rules, RuleSet):  # by name, because the data may have more columns
            X_test = X_test[list(rules.feature_names)]
        evaluation = evaluate_rules(rules, X_test, rows.y_test)
        if evaluation.black_box is None:  # some measures query it, but imported rules have none
            query = Oracle(model, like=rows.X_test).query
            evaluation = replace(evaluation, rows=rows.X_test, black_box=query)
        scores = group.scorer.score(evaluation)
        for spec in group.scorer.specs:
            scores[spec.name] = spec.signed(scores.pop(spec.scorer_name))
        scores = scores | {
            "n_rules": int(scores["n_rules"]),
            "size": evaluation.size("rules"),
            "fidelity": (
                fidelity(evaluation.ruleset, lambda _: y_box, evaluation.X)
                if len(evaluation.ruleset)
                else math.nan
            ),
        }
        for name, measure in group.measures:
            is_evaluated = isinstance(measure, RuleScorer) and measure.reference == "data"
            scores[name] = float(
                measure.score(evaluation) if is_evaluated else measure(rules, X_test, rows.y_test)
            )
    texts = sorted({" ".join(str(w.message).split()) for w in caught})
    return (
        _row_head(group, entry)
        | {"state": "complete", "error": "", "warnings": " | ".join(texts)}
        | scores
        | cost
        | {"rules": evaluation.ruleset}
    )


def _extract(
    group: Group, entry: ExtractorEntry, rows: _Rows, model: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the rules, or the extractor that holds them, and the cost of the extraction."""
    begin = time.perf_counter()
    params = entry.params
    if entry.kind == "rules":
        ruleset = RuleSet.from_json(Path(entry.name).read_text(encoding="utf-8"))
        return ruleset, {"seconds": 0.0, "black_box_calls": 0, "black_box_rows": 0}
    if entry.kind == "search":
        # The black box is unfitted, so it has not seen the held-out rows of the inner folds.
        cv = params["cv"]
        if group.dataset.times is not None:
            cv = make_time_splitter(cv, len(rows.X_train))
        search = ExtractorSearchCV(
            _black_box(group),
            extractors=params["extractors"],
            scoring=get_rule_scorer(params["scoring"]),
            n_trials=params["trials"],
            cv=cv,
            random_state=group.seed,
        ).fit(rows.X_train, rows.y_train, groups=rows.groups_train)
        seconds = time.perf_counter() - begin
        board, best = search.leaderboard_, search.best_extractor_
        best_params = {"extractor": search.best_name_, **search.best_params_}
        queries = {
            name: _round_count(board[name].sum() * params["cv"] + getattr(best.oracle_, counter))
            for name, counter in (("black_box_calls", "n_calls"), ("black_box_rows", "n_rows"))
        }
        return best, {"params": _params_text(best_params), "seconds": seconds} | queries
    # Each extractor has its own copy, so it cannot use cached queries of other extractors.
    box = FrozenEstimator(model)
    if entry.kind == "extractor":
        extractor = make_extractor(entry.name, box, **params)
    elif isinstance(entry.extractor, type):
        extractor = entry.extractor(box, **params)
    else:
        extractor = clone(entry.extractor).set_params(estimator=box, **params)
    _set_seed(extractor, group.seed)
    begin = time.perf_counter()
    extractor.fit(rows.X_train)
    seconds = time.perf_counter() - begin
    oracle = getattr(extractor, "oracle_", None)  # other packages may not count queries
    calls, queried = (math.nan,) * 2 if oracle is None else (oracle.n_calls, oracle.n_rows)
    return extractor, {
        "seconds": seconds,
        "black_box_calls": calls,
        "black_box_rows": queried,
    }


def _set_seed(estimator: Any, seed: int) -> Any:
    """Set the seed of an estimator unless it has one, and return the estimator."""
    if estimator.get_params(deep=False).get("random_state", seed) is None:
        estimator.set_params(random_state=seed)
    return estimator


def _params_text(params: dict[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=text_of_object)


def _round_count(value: float) -> float | int:
    """Round a mean over folds times their number, which is an integer up to rounding."""
    return value if math.isnan(value) else round(value)


# --- cells in separate processes, which are killed if a cell takes too long ----------------------


#: Seconds after the time limit before the process of a cell is killed.
_GRACE = 2.0
#: Time limit of the training of a black box, in multiples of the limit of a cell.
_TRAINING_FACTOR = 4.0
_PROGRAM = """
import os, sys
sys.path[:] = sys.argv.pop(1).split(os.pathsep)
from skescore.bench._cells import work
work(int(sys.argv[1]))
"""


def measure_limited(
    groups: Sequence[Group], n_jobs: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """Measure groups of cells; a cell that exceeds the time limit gives a failed row.

    Parameters
    ----------
    groups : sequence of Group
        The cells.
    n_jobs : int
        Maximum number of processes.
    seconds : float
        Time limit of a cell in wall time, without the training of its black box.

    Yields
    ------
    dict
        Rows, in the order in which they are measured.
    """
    waiting: queue.SimpleQueue[Group] = queue.SimpleQueue()
    for group in groups:
        waiting.put(group)
    # None reports that a thread has finished; an error is raised in the caller.
    messages: queue.SimpleQueue[dict[str, Any] | BaseException | None] = queue.SimpleQueue()
    workers = [_Worker(seconds) for _ in range(min(n_jobs, len(groups)))]

    def serve(worker: _Worker) -> None:
        try:
            while not waiting.empty():
                for row in worker.measure(waiting.get_nowait()):
                    messages.put(row)
        except queue.Empty:
            pass
        except BaseException as error:
            messages.put(error)
        messages.put(None)

    threads = [threading.Thread(target=serve, args=(w,), daemon=True) for w in workers]
    for thread in threads:
        thread.start()
    n_active = len(threads)
    try:
        while n_active:
            row = messages.get()
            if row is None:
                n_active -= 1
            elif isinstance(row, BaseException):
                raise row
            else:
                yield row
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """Process that measures one group after the other and is restarted after it was killed."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = self._late = False

    def measure(self, group: Group) -> Iterator[dict[str, Any]]:
        """Yield the rows of a group."""
        remaining = list(group.entries)
        while remaining and not self._ended:
            process = self._start_if_needed()
            assert process.stdin is not None
            send(process.stdin, (group._replace(entries=tuple(remaining)), self._seconds))
            is_trained = False
            while remaining:
                limit = self._seconds + _GRACE if is_trained else _TRAINING_FACTOR * self._seconds
                message = self._next_message(process, limit)
                if message is None:
                    break
                is_trained = True
                if isinstance(message, dict):
                    remaining.pop(0)
                    yield message
            if remaining and not self._ended:
                code = self.end()
                self._ended = False
                reason: Exception = TimeoutError(
                    f"no rules within {self._seconds:g} s; its process was killed"
                )
                if code is not None:
                    reason = RuntimeError(f"its process ended with exit code {code}")
                failed = [remaining.pop(0)] if is_trained else remaining
                prefix = "" if is_trained else "the black box cannot be trained: "
                for entry in failed:
                    yield failed_row(group, entry, reason, prefix)
                if not is_trained:
                    return

    def _start_if_needed(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-P", "-c", _PROGRAM, os.pathsep.join(_module_paths())]
            self._process = subprocess.Popen(
                [*command, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        return self._process

    def _next_message(self, process: subprocess.Popen[bytes], limit: float) -> Any:
        """Return the next message; None after the time limit or the end of the process."""
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            return cloudpickle.load(process.stdout)  # written by a process of ours
        except (EOFError, pickle.UnpicklingError, OSError):
            self._late = not timer.is_alive()
            return None
        finally:
            timer.cancel()

    def end(self) -> int | None:
        """Kill the process; return its exit code, or None if it exceeded its time limit."""
        self._ended = True
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        code = process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return None if self._late else code


def _module_paths() -> list[str]:
    """Return the absolute folders of the module search path, this package's folder first."""
    package_folder = str(Path(__file__).parents[2])
    return [package_folder, *(str(Path(folder).absolute()) for folder in sys.path)]


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message and flush the stream."""
    stream.write(cloudpickle.dumps(message))
    stream.flush()


def work(parent: int) -> None:
    """Measure groups read from standard input; redirect output of libraries to standard error."""
    end_with_parent(parent)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    groups = os.fdopen(os.dup(0), "rb")
    while True:
        try:
            group, seconds = cloudpickle.load(groups)
        except EOFError:
            return
        limit = functools.partial(time_limit, seconds)
        for row in measure_group(group, limit=limit, on_fitted=lambda: send(results, "fitted")):
            send(results, row)
