"""Evaluation of candidates in one process or in several."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import cloudpickle
from joblib import delayed, effective_n_jobs

from skescore._deadline import time_limit
from skescore._processes import parallel
from skescore.tuning._objective import (
    Fold,
    evaluate_on_fold,
    knowledge_like,
)

#: What this process has read last: the path, and what was there.
_READ: dict[str, FoldEvaluator] = {}


#: Number of the fold that has all rows on both sides.
ALL_ROWS = -1


class FoldEvaluator:
    """Extracts and scores a candidate on one fold; what goes wrong is part of the result."""

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
        #: The moment at which the time of the search is over, on a clock that nobody sets.
        self.stops_at = math.inf
        #: Made here, as other processes may not know scores that were registered.
        self.knowledge = knowledge_like(scorer)

    def __call__(self, extractor: Any, fold: int) -> dict[str, Any]:
        """Evaluate an extractor on the fold of a number; ``failure`` holds an error's text."""
        rows = self.all_rows if fold == ALL_ROWS else self.folds[fold]
        assert rows is not None
        left = self.stops_at - time.monotonic()
        try:
            with time_limit(None if math.isinf(left) else max(left, 0.0)):
                return evaluate_on_fold(
                    extractor, rows, self.scorer, self.measures, knowledge=self.knowledge
                )
        except Exception as error:
            # A candidate that fails is a row of the leaderboard, not the end of the search.
            return {"failure": f"{type(error).__name__}: {error}"}


class Workers:
    """Runs evaluations in this process, or in several; used as a context."""

    def __init__(self, evaluator: FoldEvaluator, n_jobs: int | None) -> None:
        self.evaluator = evaluator
        self.n_jobs = effective_n_jobs(n_jobs)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._path = ""
        self._parallel: Any = None

    def __enter__(self) -> Workers:
        if self.n_jobs > 1:
            self._folder = tempfile.TemporaryDirectory(prefix="skescore-")
            path = Path(self._folder.name, "folds.pkl")
            # Functions and classes of the caller's own script are written as well.
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

    def run(self, tasks: Sequence[tuple[Any, int]]) -> list[dict[str, Any]]:
        """Evaluate pairs of an extractor and the number of a fold, in their order."""
        if self.n_jobs == 1:
            return [self.evaluator(*task) for task in tasks]
        return list(self._parallel(delayed(_evaluate)(self._path, *task) for task in tasks))


def _evaluate(path: str, extractor: Any, fold: int) -> dict[str, Any]:
    if path not in _READ:
        _READ.clear()  # one search at a time
        _READ[path] = cloudpickle.loads(Path(path).read_bytes())
    return _READ[path](extractor, fold)
