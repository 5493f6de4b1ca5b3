"""Measuring a cell: rules of one fold, scored on the rows held out; within a time limit or not."""

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
from skescore.tuning import ExtractorSearchCV

__all__ = ["Group", "failed_row", "measure_group", "measure_limited", "work"]


class Group(NamedTuple):
    """Cells that share a black box: one data set, one seed, one fold."""

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
        """The cell of an extractor."""
        return Cell(self.data, self.black_box.label, entry.label, self.seed, self.fold)


def measure_group(
    group: Group,
    *,
    limit: Callable[[], AbstractContextManager[None]] = nullcontext,
    ready: Callable[[], None] = lambda: None,
) -> Iterator[dict[str, Any]]:
    """Fit the black box once and measure one extractor after the other.

    Parameters
    ----------
    group : Group
        What to measure.
    limit : callable, optional
        Gives a context for each cell.
    ready : callable, optional
        Called once the black box is fitted.

    Notes
    -----
    Libraries compute with one thread: sums are then added in the same order however many processes
    there are, and times are those of one core.
    """
    for spec in group.scorer.specs:
        if spec.name not in SCORE_SPECS:  # in a process of its own
            register_score(spec)
    splits = split_rows(group.dataset, group.seed, group.folds, group.test_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # rare classes have a note
        train, test = list(splits)[group.fold]
    X, y = group.dataset.X, group.dataset.y
    rows = _Rows(X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test])
    with threadpool_limits(limits=1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the black box; its quality is in the rows
                # A model from a file is frozen: this leaves it as it is.
                model = fit_black_box(_black_box(group), rows.X_train, rows.y_train)
                y_box = Oracle(model, like=rows.X_test).query(rows.X_test)
        except Exception as error:
            for entry in group.entries:
                yield failed_row(group, entry, error, "the black box cannot be trained: ")
            return
        task = group.dataset.task
        quality = prediction_performance(
            rows.y_test, y_box, metric=SCORE_SPECS["ice"].metric(task), task=task
        )
        ready()
        for entry in group.entries:
            try:
                with limit():
                    row = _measured(group, entry, rows, model, y_box)
            except Exception as error:  # a row of the results, not the end of the benchmark
                row = failed_row(group, entry, error)
            yield row | {"black_box_quality": quality}


class _Rows(NamedTuple):
    """The rows of a fold."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any


def _black_box(group: Group) -> Any:
    box, dataset = group.black_box, group.dataset
    if group.model is not None:
        return group.model
    if box.kind == "object":
        return _seeded(clone(box.estimator), group.seed)
    return make_black_box(
        box.name, dataset.task, group.seed, dataset.categories, scaled=box.scaled, params=box.params
    )


def _start(group: Group, entry: ExtractorEntry) -> dict[str, Any]:
    cell = group.cell(entry)._asdict()
    return {**cell, "task": group.dataset.task, "params": _text_of(entry.params)}


def failed_row(
    group: Group, entry: ExtractorEntry, error: Exception, where: str = ""
) -> dict[str, Any]:
    """The row of a cell that gave no rules, with the reason."""
    text = f"{where}{type(error).__name__}: {error}"
    return _start(group, entry) | {"state": "failed", "error": text}


def _measured(
    group: Group, entry: ExtractorEntry, rows: _Rows, model: Any, y_box: np.ndarray
) -> dict[str, Any]:
    """Extract, then score with weights of 1, as a search does; the rules are in the row as well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)
        rules, cost = _extract(group, entry, rows, model)
        X_test = rows.X_test
        if isinstance(rules, RuleSet):  # read by name: the data may have further columns
            X_test = X_test[list(rules.feature_names)]
        evaluation = evaluate_rules(rules, X_test, rows.y_test)
        if evaluation.black_box is None:  # rules of others do not know it, but measures ask it
            query = Oracle(model, like=rows.X_test).query
            evaluation = replace(evaluation, rows=rows.X_test, black_box=query)
        parts = group.scorer.score(evaluation)
        for spec in group.scorer.specs:
            parts[spec.name] = spec.signed(parts.pop(spec.scorer_name))
        scores = parts | {
            "n_rules": int(parts["n_rules"]),
            "size": evaluation.size("rules"),
            "fidelity": (
                fidelity(evaluation.ruleset, lambda _: y_box, evaluation.X)
                if len(evaluation.ruleset)
                else math.nan
            ),
        }
        for name, measure in group.measures:
            of_rules = isinstance(measure, RuleScorer) and measure.reference == "data"
            found = measure.score(evaluation) if of_rules else measure(rules, X_test, rows.y_test)
            scores[name] = float(found)
    texts = sorted({" ".join(str(w.message).split()) for w in caught})
    return (
        _start(group, entry)
        | {"state": "complete", "error": "", "warnings": " | ".join(texts)}
        | scores
        | cost
        | {"rules": evaluation.ruleset}
    )


def _extract(
    group: Group, entry: ExtractorEntry, rows: _Rows, model: Any
) -> tuple[Any, dict[str, Any]]:
    """The rules (or what holds them), and what they cost."""
    begin = time.perf_counter()
    params = entry.params
    if entry.kind == "rules":
        ruleset = RuleSet.from_json(Path(entry.name).read_text(encoding="utf-8"))
        return ruleset, {"seconds": 0.0, "black_box_calls": 0, "black_box_rows": 0}
    if entry.kind == "search":
        # Unfitted: its own folds must not be scored by a black box that has seen them.
        search = ExtractorSearchCV(
            _black_box(group),
            extractors=tuple(params["extractors"]),
            scoring=get_rule_scorer(params["scoring"]),
            n_trials=params["trials"],
            cv=params["cv"],
            random_state=group.seed,
        ).fit(rows.X_train, rows.y_train)
        seconds = time.perf_counter() - begin
        board, best = search.leaderboard_, search.best_extractor_
        found = {"extractor": search.best_name_, **search.best_params_}
        queries = {
            name: _whole(board[name].sum() * params["cv"] + getattr(best.oracle_, counter))
            for name, counter in (("black_box_calls", "n_calls"), ("black_box_rows", "n_rows"))
        }
        return best, {"params": _text_of(found), "seconds": seconds} | queries
    # Each extractor queries a black box of its own: nobody profits from the queries of another.
    box = FrozenEstimator(model)
    if entry.kind == "extractor":
        extractor = make_extractor(entry.name, box, **params)
    elif isinstance(entry.extractor, type):
        extractor = entry.extractor(box, **params)
    else:
        extractor = clone(entry.extractor).set_params(estimator=box, **params)
    _seeded(extractor, group.seed)
    begin = time.perf_counter()
    extractor.fit(rows.X_train)
    seconds = time.perf_counter() - begin
    oracle = getattr(extractor, "oracle_", None)  # not every package's extractor counts
    calls, queried = (math.nan,) * 2 if oracle is None else (oracle.n_calls, oracle.n_rows)
    return extractor, {
        "seconds": seconds,
        "black_box_calls": calls,
        "black_box_rows": queried,
    }


def _seeded(estimator: Any, seed: int) -> Any:
    """An estimator whose random numbers come from the seed, unless it has one of its own."""
    if estimator.get_params(deep=False).get("random_state", seed) is None:
        estimator.set_params(random_state=seed)
    return estimator


def _text_of(params: dict[str, Any]) -> str:
    return json.dumps(params, sort_keys=True, default=text_of_object)


def _whole(value: float) -> float | int:
    """Means over folds times their number are whole, but for rounding."""
    return value if math.isnan(value) else round(value)


# --- cells in processes of their own, which are ended where a cell takes too long -----------------


#: Seconds that a cell may take beyond its limit to end by itself and say so.
_GRACE = 2.0
#: The training of a black box may take so many times the limit of a cell.
_TRAINING = 4.0
_PROGRAM = """
import os, sys
sys.path[:] = sys.argv.pop(1).split(os.pathsep)
from skescore.bench._cells import work
work(int(sys.argv[1]))
"""


def measure_limited(
    groups: Sequence[Group], n_jobs: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """Measure groups of cells; a cell that takes longer gives a failed row that says so.

    Parameters
    ----------
    groups : sequence of Group
        What to measure.
    n_jobs : int
        Processes.
    seconds : float
        Wall-clock time that a cell may take, that of its black box apart.

    Yields
    ------
    dict
        Rows, as they come.
    """
    waiting: queue.SimpleQueue[Group] = queue.SimpleQueue()
    for group in groups:
        waiting.put(group)
    # None: a thread is done; an error is raised here.
    found: queue.SimpleQueue[dict[str, Any] | BaseException | None] = queue.SimpleQueue()
    workers = [_Worker(seconds) for _ in range(min(n_jobs, len(groups)))]

    def serve(worker: _Worker) -> None:
        try:
            while not waiting.empty():
                for row in worker.measure(waiting.get_nowait()):
                    found.put(row)
        except queue.Empty:
            pass
        except BaseException as error:
            found.put(error)
        found.put(None)

    threads = [threading.Thread(target=serve, args=(w,), daemon=True) for w in workers]
    for thread in threads:
        thread.start()
    at_work = len(threads)
    try:
        while at_work:
            row = found.get()
            if row is None:
                at_work -= 1
            elif isinstance(row, BaseException):
                raise row
            else:
                yield row
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that measures one group after the other, and is begun anew where it was ended."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = self._late = False

    def measure(self, group: Group) -> Iterator[dict[str, Any]]:
        left = list(group.entries)
        while left and not self._ended:
            process = self._running()
            assert process.stdin is not None
            send(process.stdin, (group._replace(entries=tuple(left)), self._seconds))
            trained = False
            while left:
                limit = self._seconds + _GRACE if trained else _TRAINING * self._seconds
                message = self._next(process, limit)
                if message is None:
                    break
                trained = True
                if isinstance(message, dict):
                    left.pop(0)
                    yield message
            if left and not self._ended:
                code = self.end()
                self._ended = False
                reason: Exception = TimeoutError(
                    f"no rules within {self._seconds:g} s; its process was ended"
                )
                if code is not None:
                    reason = RuntimeError(f"its process ended by itself, with exit code {code}")
                lost = [left.pop(0)] if trained else left
                where = "" if trained else "the black box cannot be trained: "
                for entry in lost:
                    yield failed_row(group, entry, reason, where)
                if not trained:
                    return

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-P", "-c", _PROGRAM, os.pathsep.join(_module_paths())]
            self._process = subprocess.Popen(
                [*command, str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        return self._process

    def _next(self, process: subprocess.Popen[bytes], limit: float) -> Any:
        """The next message; None if there is none in time, or no process any more."""
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            return cloudpickle.load(process.stdout)  # our own process wrote it
        except (EOFError, pickle.UnpicklingError, OSError):
            self._late = not timer.is_alive()
            return None
        finally:
            timer.cancel()

    def end(self) -> int | None:
        """End the process; gives its exit code, or None if it was ended for being late."""
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
    """Where modules are looked for, this package first, the current folder by its name."""
    own = str(Path(__file__).parents[2])
    return [own, *(str(Path(place).absolute()) for place in sys.path)]


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message whole."""
    stream.write(cloudpickle.dumps(message))
    stream.flush()


def work(parent: int) -> None:
    """Measure groups that come over standard input; what libraries print goes to the errors."""
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
        for row in measure_group(group, limit=limit, ready=lambda: send(results, "ready")):
            send(results, row)
