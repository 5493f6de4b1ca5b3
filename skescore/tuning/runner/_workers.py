"""Evaluation of candidates in one process or in several."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import cloudpickle
from joblib import delayed, effective_n_jobs
from sklearn.utils.validation import _num_samples

from skescore._deadline import time_limit
from skescore._processes import parallel
from skescore.black_boxes import QueryCost, black_box_task
from skescore.tuning._fold_result import FoldResult
from skescore.tuning._objective import (
    Fold,
    evaluate_on_fold,
    knowledge_like,
)

#: Evaluator that this process has loaded, by its path.
_LOADED: dict[str, FoldEvaluator] = {}

#: Number of the fold whose training and test rows are all rows.
ALL_ROWS = -1


class FoldEvaluator:
    """Extract and score a candidate on one fold; an error becomes part of the result.

    Parameters
    ----------
    folds : list of Fold
        The folds.
    scorer : callable
        Scorer of the search.
    measures : mapping of str to callable
        Further scorers whose values are recorded.
    all_rows : Fold, optional
        All rows, for the candidates that may win.

    Attributes
    ----------
    deadline : float
        End of the search on the monotonic clock; infinite without a limit.
    """

    def __init__(
        self,
        folds: list[Fold],
        scorer: Any,
        measures: Mapping[str, Any],
        all_rows: Fold | None = None,
    ) -> None:
        self.folds = folds
        self.all_rows = all_rows
        self.scorer = scorer
        self.measures = measures
        self.deadline = math.inf
        # Created here, as other processes may not know the scores that the caller registered.
        self.knowledge = knowledge_like(scorer)

    @property
    def task(self) -> str:
        """Task of the black box."""
        return black_box_task(self.folds[0].black_box)

    def n_scored_rows(self, fold: int) -> int:
        """Return the number of rows on which the scores of a fold are measured."""
        rows = self.folds[fold]
        is_fidelity = self.knowledge.reference == "black_box" or not rows.has_target
        return _num_samples(rows.fidelity_rows[0] if is_fidelity else rows.X_test)

    def __call__(self, extractor: Any, fold: int) -> FoldResult:
        """Evaluate an extractor on a fold; on an error, the result holds its text."""
        rows = self.all_rows if fold == ALL_ROWS else self.folds[fold]
        assert rows is not None
        oracle = rows.black_box.oracle
        cost = oracle.cost
        return replace(self._evaluate(extractor, rows), query_cost=oracle.cost - cost)

    def _evaluate(self, extractor: Any, rows: Fold) -> FoldResult:
        seconds_left = self.deadline - time.monotonic()
        try:
            with time_limit(None if math.isinf(seconds_left) else max(seconds_left, 0.0)):
                return evaluate_on_fold(
                    extractor, rows, self.scorer, self.measures, knowledge=self.knowledge
                )
        except Exception as error:
            # A failed candidate becomes a row of the leaderboard and does not end the search.
            return FoldResult({}, failure=f"{type(error).__name__}: {error}")


class Workers:
    """Run evaluations in this process or in several; use it as a context manager.

    Parameters
    ----------
    evaluator : FoldEvaluator
        Evaluation of a candidate on a fold.
    n_jobs : int or None
        Number of processes, as in scikit-learn.

    Attributes
    ----------
    query_cost : QueryCost
        Rows that the black box was asked about, and the time that it took.
    """

    def __init__(self, evaluator: FoldEvaluator, n_jobs: int | None) -> None:
        self.evaluator = evaluator
        self.n_jobs = effective_n_jobs(n_jobs)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._path = ""
        self._parallel: Any = None
        self.query_cost = QueryCost()

    def __enter__(self) -> Workers:
        if self.n_jobs > 1:
            self._folder = tempfile.TemporaryDirectory(prefix="skescore-")
            path = Path(self._folder.name, "folds.pkl")
            # cloudpickle also stores functions and classes of the caller's script.
            path.write_bytes(cloudpickle.dumps(self.evaluator))
            self._path = str(path)
            self._parallel = parallel(self.n_jobs).__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._folder is not None:
            self._parallel.__exit__(kind, error, trace)
            self._folder.cleanup()

    def run(self, tasks: Sequence[tuple[Any, int]]) -> list[FoldResult]:
        """Evaluate pairs of an extractor and the number of a fold; return results in order."""
        if self.n_jobs == 1:
            results = [self.evaluator(*task) for task in tasks]
        else:
            calls = (delayed(_evaluate)(self._path, *task) for task in tasks)
            results = list(self._parallel(calls))
        self.query_cost = sum((result.query_cost for result in results), self.query_cost)
        return results


def _evaluate(path: str, extractor: Any, fold: int) -> FoldResult:
    if path not in _LOADED:
        _LOADED.clear()  # keep the rows of one search only
        _LOADED[path] = cloudpickle.loads(Path(path).read_bytes())
    return _LOADED[path](extractor, fold)
