"""Evaluation of candidates in one process or in several."""

from __future__ import annotations

import math
import tempfile
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import cloudpickle
from joblib import cpu_count, effective_n_jobs
from sklearn.utils.validation import _num_samples

from skescore._deadline import time_limit
from skescore.black_boxes import QueryCost, black_box_task
from skescore.tuning._fold_result import FoldResult
from skescore.tuning._objective import (
    Fold,
    evaluate_on_fold,
    knowledge_like,
)
from skescore.tuning.runner._helpers import Batch, Chain, Helper, borrowed_helpers

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

    def without_limit(self, tasks: Sequence[tuple[Any, int]]) -> list[FoldResult]:
        """Evaluate pairs of an extractor and the number of a fold without the time limit."""
        evaluator = copy(self)
        evaluator.deadline = math.inf
        return [evaluator(extractor, fold) for extractor, fold in tasks]

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
    """Run evaluations in this process and in others; use it as a context manager.

    The same process evaluates related extractors on a fold, because they share intermediate
    results, unless another process has nothing else to do.

    Parameters
    ----------
    evaluator : FoldEvaluator
        Evaluation of a candidate on a fold.
    n_jobs : int or None
        Number of processes, as in scikit-learn.

    Attributes
    ----------
    query_cost : QueryCost
        Rows that the black box was asked about, and the time that it took. Several processes ask
        about more rows than one, because they share no predictions and begin evaluations that turn
        out not to be needed.
    """

    def __init__(self, evaluator: FoldEvaluator, n_jobs: int | None) -> None:
        self.evaluator = evaluator
        self.n_jobs = effective_n_jobs(n_jobs)
        self._context = ExitStack()
        self._path = ""
        self._helpers: list[Helper] = []
        self._homes: dict[Hashable, int] = {}
        self.query_cost = QueryCost()

    def __enter__(self) -> Workers:
        if self.n_jobs > 1:
            self._start()
        return self

    def _start(self) -> None:
        """Start the other processes, and give them the folds."""
        from threadpoolctl import threadpool_limits

        with ExitStack() as context:
            folder = context.enter_context(tempfile.TemporaryDirectory(prefix="skescore-"))
            path = Path(folder, "folds.pkl")
            # cloudpickle also stores functions and classes of the caller's script.
            path.write_bytes(cloudpickle.dumps(self.evaluator))
            self._path = str(path)
            self._helpers = context.enter_context(borrowed_helpers(self.n_jobs - 1, self.n_jobs))
            for helper in self._helpers:
                helper.prepare(_prepare, self._path)
            context.enter_context(threadpool_limits(max(1, cpu_count() // self.n_jobs)))
            self._context = context.pop_all()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._context.__exit__(kind, error, trace)

    def run(self, tasks: Sequence[tuple[Any, int]], *, is_limited: bool = True) -> list[FoldResult]:
        """Evaluate pairs of an extractor and the number of a fold; return results in order.

        Without the time limit, this process makes all evaluations, because the others know it.
        """
        if not is_limited and math.isfinite(self.evaluator.deadline):
            results = self.evaluator.without_limit(tasks)
            self.query_cost = sum((result.query_cost for result in results), self.query_cost)
            return results
        chains = [self.chain(candidate, [fold]) for candidate, fold in tasks]
        self.run_chains(chains)
        return [result for chain in chains for result in chain.results]

    def chain(
        self,
        candidate: Any,
        folds: Sequence[int],
        n_certain: int = 1,
        continues: Callable[[list[FoldResult]], bool] | None = None,
    ) -> Chain:
        """Return the evaluations of an extractor on folds, one after another.

        Parameters
        ----------
        candidate : extractor
            The extractor.
        folds : sequence of int
            Numbers of the folds.
        n_certain : int, default=1
            Number of folds on which it is evaluated anyway.
        continues : callable, optional
            Returns from the results so far whether it is evaluated on the next fold.
        """
        # Extractors of one package or module share intermediate results.
        family = type(candidate).__module__.split(".")[:3]
        return Chain(candidate, folds, tuple(family), n_certain, continues, _may_hurry)

    def run_chains(self, chains: Sequence[Chain]) -> None:
        """Make the evaluations of chains."""
        if self._helpers:
            Batch(chains, self._homes).run(
                lambda chain, fold: self.evaluator(chain.subject, fold),
                lambda helper, chain, fold: helper.submit(
                    _evaluate, self._path, chain.subject, fold
                ),
                self._helpers,
            )
            self._leave_broken_helpers()
        for chain in chains:
            while not chain.has_ended:
                fold = chain.calls[len(chain.results)]
                chain.keep(len(chain.results), self.evaluator(chain.subject, fold))
        results = [result for chain in chains for result in (*chain.results, *chain.unused)]
        self.query_cost = sum((result.query_cost for result in results), self.query_cost)

    def _leave_broken_helpers(self) -> None:
        """Continue without processes that have ended unexpectedly."""
        if any(helper.is_broken for helper in self._helpers):
            self._helpers = [helper for helper in self._helpers if not helper.is_broken]
            warnings.warn(
                "A process of the search ended unexpectedly, perhaps because memory ran out. The "
                "search continues without it, with the same result. One process (n_jobs=1, or "
                "--n-jobs 1) needs less memory.",
                UserWarning,
                stacklevel=2,
            )


def _may_hurry(fold: int) -> bool:
    """Return whether to evaluate on a fold before it is known to be needed.

    All rows take longer than a fold, and only few candidates need them.
    """
    return fold != ALL_ROWS


def _load(path: str) -> FoldEvaluator:
    """Return the evaluator of a file, which this process reads once."""
    if path not in _LOADED:
        _LOADED.clear()  # keep the rows of one search only
        _LOADED[path] = cloudpickle.loads(Path(path).read_bytes())
    return _LOADED[path]


def _prepare(path: str) -> None:
    """Read an evaluator without sending it back to the caller."""
    _load(path)


def _evaluate(path: str, extractor: Any, fold: int) -> FoldResult:
    return _load(path)(extractor, fold)
