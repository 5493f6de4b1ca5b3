"""Evaluation of candidates in this process and in helper processes."""

from __future__ import annotations

import functools
import math
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import cloudpickle
from joblib import cpu_count, effective_n_jobs
from sklearn.utils.validation import _num_samples

from skescore._deadline import QueryBudget, query_limit, time_limit
from skescore._processes import SEARCH_MODULES, Helper, borrowed_helpers
from skescore.black_boxes import QueryCost, black_box_task
from skescore.tuning._folds import Fold, FoldResult, evaluate_on_fold, knowledge_scorer_like


@dataclass
class Chain:
    """Sequence of calls that may end early, depending on the results so far.

    Parameters
    ----------
    subject : object
        Common argument of all calls, such as a candidate.
    calls : sequence
        Argument of each call, such as the number of a fold.
    family : hashable, default=None
        Chains of one family share intermediate results of calls with equal arguments.
    n_certain : int, default=1
        Number of first calls that are always needed.
    continues : callable, optional
        Returns from the results so far whether the next call is needed.
    may_speculate : callable, optional
        Returns whether a call may be made before it is known to be needed. By default, every call
        may.

    Attributes
    ----------
    results : list
        Results so far, except those of unnecessary calls.
    n_started : int
        Number of calls that workers have started.
    has_ended : bool
        Whether no further call is needed.
    """

    subject: Any
    calls: Sequence[Any]
    family: Hashable = None
    n_certain: int = 1
    continues: Callable[[list[Any]], bool] | None = None
    may_speculate: Callable[[Any], bool] | None = None
    results: list[Any] = field(default_factory=list)
    n_started: int = 0
    has_ended: bool = False
    _pending_results: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.has_ended = not self.calls

    @property
    def unused(self) -> list[Any]:
        """Results of calls that turned out to be unnecessary."""
        return list(self._pending_results.values())

    def is_open(self, speculative: bool) -> bool:
        """Return whether a needed call can start; if `speculative`, any call that may be made."""
        if self.has_ended or self.n_started == len(self.calls):
            return False
        if speculative:
            return self.may_speculate is None or self.may_speculate(self.calls[self.n_started])
        return self.n_started < self.n_certain

    def keep(self, number: int, result: Any) -> None:
        """Store the result of a call, and decide whether further calls are needed."""
        self._pending_results[number] = result
        while not self.has_ended and len(self.results) in self._pending_results:
            self.results.append(self._pending_results.pop(len(self.results)))
            n_done = len(self.results)
            if n_done >= self.n_certain and n_done < len(self.calls):
                self.has_ended = self.continues is not None and not self.continues(self.results)
                self.n_certain = n_done + 1
            self.has_ended |= n_done == len(self.calls)


class Batch:
    """Chains of calls that this process and its helpers execute together.

    A worker prefers calls that it made before for the same family, then calls that no worker made
    before, then calls of other workers. Calls that may be unnecessary come last. If the process of
    a helper ends unexpectedly, another worker repeats its call.

    Parameters
    ----------
    chains : sequence of Chain
        The chains.
    last_workers : dict
        Last worker by family and call, which is updated. Worker 0 is this process, and helpers are
        numbered from 1.
    """

    def __init__(self, chains: Sequence[Chain], last_workers: dict[Hashable, int]) -> None:
        self.chains = chains
        self._last_workers = last_workers
        self._error: BaseException | None = None
        self._changed = threading.Condition(threading.RLock())
        self._idle: dict[int, Callable[[], None]] = {}
        #: Calls of helpers whose processes have ended, to be repeated.
        self._lost_calls: list[tuple[Chain, int]] = []

    def run(
        self,
        call_here: Callable[[Chain, Any], Any],
        submit: Callable[[Helper, Chain, Any], Future[Any]],
        helpers: Sequence[Helper],
    ) -> None:
        """Make all calls that are needed.

        Parameters
        ----------
        call_here : callable
            Makes a call of a chain in this process.
        submit : callable
            Submits a call of a chain to a helper.
        helpers : sequence of Helper
            Helper processes. Until a helper is ready, other workers make its calls.
        """
        for worker, helper in enumerate(helpers, start=1):
            self._start_helper(worker, helper, submit)
        try:
            while (call := self._wait_for_call()) is not None:
                chain, number = call
                self._store_result(chain, number, call_here(chain, chain.calls[number]))
        except BaseException as error:
            self._stop(error)
            raise
        if self._error is not None:
            raise self._error

    def _has_ended(self) -> bool:
        return self._error is not None or all(chain.has_ended for chain in self.chains)

    def _wait_for_call(self) -> tuple[Chain, int] | None:
        """Wait for the next call of this process; return None when all chains have ended."""
        with self._changed:
            while not self._has_ended():
                if (call := self._take_call(0)) is not None:
                    return call
                self._changed.wait()
        return None

    def _take_call(self, worker: int) -> tuple[Chain, int] | None:
        """Return the next call of a worker; None if there is none at present."""
        with self._changed:
            if self._has_ended():
                return None
            if self._lost_calls:
                return self._lost_calls.pop()
            for speculative in (False, True):
                open_chains = [
                    (self._distance(worker, chain), position)
                    for position, chain in enumerate(self.chains)
                    if chain.is_open(speculative)
                ]
                if open_chains:
                    chain = self.chains[min(open_chains)[1]]
                    self._last_workers[chain.family, chain.calls[chain.n_started]] = worker
                    chain.n_started += 1
                    return chain, chain.n_started - 1
        return None

    def _distance(self, worker: int, chain: Chain) -> int:
        """Return 0 for a call that the worker made before, 1 for a new one, 2 for another's."""
        last_worker = self._last_workers.get((chain.family, chain.calls[chain.n_started]))
        return 1 if last_worker is None else 2 * (last_worker != worker)

    def _store_result(self, chain: Chain, number: int, result: Any) -> None:
        with self._changed:
            chain.keep(number, result)
        self._wake_idle_helpers()

    def _wake_idle_helpers(self) -> None:
        """Let idle workers take calls."""
        with self._changed:
            idle_helpers, self._idle = list(self._idle.values()), {}
            self._changed.notify()
        for continue_helper in idle_helpers:
            continue_helper()

    def _start_helper(
        self, worker: int, helper: Helper, submit: Callable[[Helper, Chain, Any], Future[Any]]
    ) -> None:
        """Let a helper make one call after another as soon as it is ready."""

        def work_on(future: Future[Any] | None, last_call: tuple[Chain, int] | None = None) -> None:
            """Store the result of a finished call, and start the next one."""
            call = last_call
            try:
                if future is not None:
                    result = future.result()
                    if last_call is not None:
                        self._store_result(*last_call, result)
                with self._changed:
                    call = self._take_call(worker)
                    if call is None:
                        self._idle[worker] = functools.partial(work_on, None)
                        return
                chain, number = call
                helper.ready = next_future = submit(helper, chain, chain.calls[number])
                next_future.add_done_callback(lambda future: work_on(future, (chain, number)))
            except BrokenExecutor:
                helper.is_broken = True
                if call is not None:
                    self._lost_calls.append(call)
                self._wake_idle_helpers()
            except BaseException as error:  # in a thread that nobody observes
                self._stop(error)

        helper.ready.add_done_callback(work_on)

    def _stop(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify()


#: Evaluator that this process has loaded, by its path.
_EVALUATORS: dict[str, FoldEvaluator] = {}
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
    budget : QueryBudget
        Queries that are left, counted in this process; infinite without a limit.
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
        self.deadline, self.budget = math.inf, QueryBudget()
        self._stops = True  # candidates that exceed the budget
        # Created here, because other processes may not know the scores that the caller registered.
        self.knowledge = knowledge_scorer_like(scorer)

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
        result, cost = _measure_cost(lambda: self._evaluate(extractor, rows), rows)
        return replace(result, query_cost=cost)

    def measure(self, function: Callable[[Fold], Any], fold: int) -> tuple[Any, QueryCost]:
        """Return the result of a function for a fold, and the cost of its queries."""
        rows = self.folds[fold]
        with query_limit(self.budget, stops=False):
            return _measure_cost(lambda: function(rows), rows)

    def without_limits(self, tasks: Sequence[tuple[Any, int]]) -> list[FoldResult]:
        """Evaluate pairs of an extractor and the number of a fold without limits."""
        evaluator = copy(self)
        evaluator.deadline, evaluator._stops = math.inf, False
        return [evaluator(extractor, fold) for extractor, fold in tasks]

    def _evaluate(self, extractor: Any, rows: Fold) -> FoldResult:
        seconds_left = self.deadline - time.monotonic()
        try:
            with (
                time_limit(None if math.isinf(seconds_left) else max(seconds_left, 0.0)),
                query_limit(self.budget, stops=self._stops),
            ):
                return evaluate_on_fold(
                    extractor, rows, self.scorer, self.measures, knowledge=self.knowledge
                )
        except Exception as error:
            # A failed candidate becomes a row of the leaderboard and does not end the search.
            return FoldResult({}, failure=f"{type(error).__name__}: {error}")


def _measure_cost(call: Callable[[], Any], rows: Fold) -> tuple[Any, QueryCost]:
    """Return the result of a call, and the cost of its queries of a fold's black box."""
    oracle = rows.black_box.oracle
    cost = oracle.cost
    return call(), oracle.cost - cost


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
        Number of rows that the black box predicted, and the time for these predictions. Several
        processes query more rows than one, because they share no predictions and start evaluations
        that turn out to be unnecessary.
    """

    def __init__(self, evaluator: FoldEvaluator, n_jobs: int | None) -> None:
        self.evaluator = evaluator
        self.n_jobs = effective_n_jobs(n_jobs)
        self._context = ExitStack()
        self._path = ""
        self._helpers: list[Helper] = []
        self._last_workers: dict[Hashable, int] = {}
        self.query_cost = QueryCost()

    @property
    def is_spent(self) -> bool:
        """Whether the time or the queries of the search are used up."""
        return time.monotonic() >= self.evaluator.deadline or self.evaluator.budget.is_spent

    def allows_queries(self, n_rows: int) -> bool:
        """Return whether the black box may be queried for as many further rows."""
        return n_rows <= self.evaluator.budget.n_left

    def __enter__(self) -> Workers:
        if self.n_jobs > 1:
            self._start()
        return self

    def _start(self) -> None:
        """Start the other processes, and pass the folds to them."""
        from threadpoolctl import threadpool_limits

        with ExitStack() as context:
            folder = context.enter_context(tempfile.TemporaryDirectory(prefix="skescore-"))
            path = Path(folder, "folds.pkl")
            # cloudpickle also stores functions and classes of the caller's script.
            path.write_bytes(cloudpickle.dumps(self.evaluator))
            self._path = str(path)
            self._helpers = context.enter_context(borrowed_helpers(self.n_jobs, SEARCH_MODULES))
            for helper in self._helpers:
                helper.prepare(_prepare, self._path, sys.path)
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

        Without the limits, this process makes all evaluations, because the others apply them.
        """
        evaluator = self.evaluator
        if not is_limited and math.isfinite(min(evaluator.deadline, evaluator.budget.n_left)):
            results = evaluator.without_limits(tasks)
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
            Number of first folds on which it is always evaluated.
        continues : callable, optional
            Returns from the results so far whether it is evaluated on the next fold.
        """
        return Chain(candidate, folds, _family(candidate), n_certain, continues, _may_speculate)

    def run_chains(self, chains: Sequence[Chain]) -> None:
        """Make the evaluations of chains."""
        self._run(chains, _evaluate)
        results = [result for chain in chains for result in (*chain.results, *chain.unused)]
        self.query_cost = sum((result.query_cost for result in results), self.query_cost)

    def measure_folds(self, extractor: Any, function: Callable[[Any, Fold], Any]) -> list[Any]:
        """Return the results of a function of an extractor and a fold for all folds, in order."""
        measure = functools.partial(function, extractor)
        folds = range(len(self.evaluator.folds))
        chains = [Chain(measure, [fold], _family(extractor)) for fold in folds]
        self._run(chains, _measure)
        self.query_cost = sum((chain.results[0][1] for chain in chains), self.query_cost)
        return [chain.results[0][0] for chain in chains]

    def _run(self, chains: Sequence[Chain], call: Callable[[FoldEvaluator, Any, int], Any]) -> None:
        """Make the calls of chains with the evaluator, the subject and the number of a fold."""
        if self._helpers:
            Batch(chains, self._last_workers).run(
                lambda chain, fold: call(self.evaluator, chain.subject, fold),
                lambda helper, chain, fold: helper.submit(
                    _call, self._path, call, chain.subject, fold
                ),
                self._helpers,
            )
            self._leave_broken_helpers()
        for chain in chains:
            while not chain.has_ended:
                fold = chain.calls[len(chain.results)]
                chain.keep(len(chain.results), call(self.evaluator, chain.subject, fold))

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


def _family(extractor: Any) -> Hashable:
    """Return a key that extractors with shared intermediate results have in common."""
    return tuple(type(extractor).__module__.split(".")[:3])


def _evaluate(evaluator: FoldEvaluator, extractor: Any, fold: int) -> FoldResult:
    return evaluator(extractor, fold)


def _measure(
    evaluator: FoldEvaluator, function: Callable[[Fold], Any], fold: int
) -> tuple[Any, QueryCost]:
    return evaluator.measure(function, fold)


def _may_speculate(fold: int) -> bool:
    """Return whether to evaluate on a fold before it is known to be needed.

    All rows take longer than a fold, and only few candidates need them.
    """
    return fold != ALL_ROWS


def _load(path: str) -> FoldEvaluator:
    """Return the evaluator of a file, which this process reads once."""
    if path not in _EVALUATORS:
        _EVALUATORS.clear()  # keep the rows of one search only
        _EVALUATORS[path] = cloudpickle.loads(Path(path).read_bytes())
    return _EVALUATORS[path]


def _prepare(path: str, search_path: list[str]) -> None:
    """Read an evaluator, whose modules may have become importable since this process started."""
    sys.path[:] = search_path
    _load(path)


def _call(path: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function with the evaluator of a file."""
    return call(_load(path), *arguments)
