"""Loop that spends the budget of a search, and its progress display."""

from __future__ import annotations

import copy
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skescore._text import plural
from skescore.registry import extractor_label
from skescore.tuning._folds import FoldResult, mean_of
from skescore.tuning._objective import SearchObjective, params_key
from skescore.tuning._selection import READABLE_RULES
from skescore.tuning.runner._allocation import (
    Allocation,
    FinishedTrial,
    ResultCache,
    alternate,
    bound_without_score,
    hypervolume_contributions,
    order_for_worker,
    raced_parts,
    score_and_bound,
    value_of,
)
from skescore.tuning.runner._studies import Studies, is_baseline, run_callbacks
from skescore.tuning.runner._workers import ALL_ROWS, Chain, Workers
from skescore.tuning.storage import Heartbeat, is_storage_failure

#: Seconds between two updates in a notebook.
_SECONDS_IN_NOTEBOOK = 0.5


class _NotebookBar:
    """Bar in the output of a notebook cell, which needs no widgets.

    The bar of rich needs ipywidgets, without which it shows nothing but a warning.
    """

    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display(self._content("searching", 0, None), raw=True, display_id=True)

    def show(self, text: str, n_done: int, total: int | None) -> None:
        """Replace the content of the output."""
        self._handle.update(self._content(text, n_done, total), raw=True)

    def _content(self, text: str, n_done: int, total: int | None) -> dict[str, str]:
        bar = f'<progress value="{n_done}" max="{total}"></progress> ' if total else ""
        return {"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}


class SearchCallback:
    """Base class of callbacks that also follow the stages of a search.

    Pass an instance as one of the `callbacks` of :class:`~skescore.tuning.ExtractorSearchCV`. A
    subclass overrides the methods that it needs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.tuning import ExtractorSearchCV, SearchCallback
    >>> class Stages(SearchCallback):
    ...     def on_stage(self, search, stage):
    ...         print(stage)
    >>> model, options = DecisionTreeClassifier(random_state=0), {"random_state": 0, "cv": 2}
    >>> search = ExtractorSearchCV(
    ...     model, extractors=["cart"], n_trials=2, callbacks=Stages(), **options
    ... ).fit(*load_iris(return_X_y=True))
    rows
    black_boxes
    trials
    winner
    """

    def on_stage(self, search: Any, stage: str) -> None:
        """Handle the beginning of a stage.

        Parameters
        ----------
        search : ExtractorSearchCV
            The search.
        stage : {"rows", "black_boxes", "trials", "finalists", "all_rows", "winner"}
            ``"rows"``: rows and parameters are checked. ``"black_boxes"``: the black box is fitted
            on the folds and on the rows of the search, or predicts them. ``"trials"``: candidates
            are compared, and ``search.fit_candidate`` is available from now on. ``"finalists"``:
            only if several candidates are about equally good, these are compared on other folds.
            ``"all_rows"``: only if trials used a sample, the black box is fitted on the whole
            table. ``"winner"``: the winner is chosen and, with `refit`, its rules are extracted.
        """

    def __call__(self, study: Any, trial: Any) -> None:
        """Handle a finished trial; ``study.stop()`` ends the trials of its extractor."""


class SearchProgress(SearchCallback):
    """Show the progress of a search: a bar on a terminal or in a notebook, lines elsewhere.

    In a notebook, the last state remains. Without a terminal, it writes a line every few seconds
    and one per extractor at the end.

    Use it as a context manager and as a callback of the studies.

    Parameters
    ----------
    total : int or None
        Number of trials; None if only the time is limited.
    label : str
        Name of the score.
    sign : int, default=1
        -1 if the search maximizes the negative of the score.
    enabled : bool, default=True
        False shows nothing.
    seconds : float, default=5.0
        Time between two lines.
    """

    def __init__(
        self,
        total: int | None,
        label: str,
        sign: int = 1,
        *,
        enabled: bool = True,
        seconds: float = 5.0,
    ) -> None:
        self._label, self._sign = label, sign
        self._best: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        #: Number of finished trials that belong to the total.
        self._n_budgeted = 0
        #: Numbers of finished candidates in addition to the total.
        self._n_further = {"tree": 0, "equation": 0}
        self._bar: Progress | None = None
        self._notebook_bar: _NotebookBar | None = None
        self._writes_lines = False
        self._total = total
        self._enabled = enabled
        self._seconds = seconds
        #: Work before the first trial or after the last one; empty during trials.
        self._activity = ""
        self._is_over = threading.Event()
        self._writer: threading.Thread | None = None

    def __enter__(self) -> SearchProgress:
        if self._enabled:
            console = Console(stderr=True)
            self._start = time.monotonic()
            if console.is_jupyter:
                self._notebook_bar = _NotebookBar()
                self._seconds = _SECONDS_IN_NOTEBOOK
            self._writes_lines = not (console.is_terminal or console.is_jupyter)
            if self._writes_lines or console.is_jupyter:
                self._writer = threading.Thread(target=self._write_lines, daemon=True)
                self._writer.start()
            else:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeElapsedColumn(),
                    console=console,
                    transient=True,
                )
                self._task = self._bar.add_task("searching", total=self._total)
                self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._writer is not None:
            self._is_over.set()
            self._writer.join()
        self._activity = ""
        if self._notebook_bar is not None:
            self._notebook_bar.show(self._status(), self._n_budgeted, self._total)
        if self._writes_lines and kind is None:
            for name, count in self._counts.items():
                sys.stderr.write(f"{plural(count, 'trial')} of {self._describe(name)}\n")

    def on_stage(self, search: Any, stage: str) -> None:
        """Show the work before the first trial and after the last one."""
        self._activity = _ACTIVITIES.get(stage, "")
        if stage == "black_boxes":
            self._activity = f"{'querying' if search.data_.is_fitted else 'fitting'} the model"
        if self._bar is not None:
            self._bar.update(self._task, description=self._activity or "searching")

    def __call__(self, study: Any, trial: Any) -> None:
        """Count a finished trial and advance the progress bar."""
        name = study.study_name.rpartition("/")[2]
        self._counts[name] = self._counts.get(name, 0) + 1
        is_budgeted = not is_baseline(trial)
        if is_budgeted:
            self._n_budgeted += 1
        else:
            self._n_further["tree" if name == "cart" else "equation"] += 1
        score = trial.user_attrs.get("score", math.nan)
        if trial.state.name == "COMPLETE" and not math.isnan(score):
            self._best[name] = max(self._best.get(name, -math.inf), score)
        if self._bar is not None:
            leader = max(self._best, key=lambda name: self._best[name], default=name)
            self._bar.update(
                self._task,
                advance=int(is_budgeted),
                description=f"searching {self._describe(leader)}",
            )

    def _write_lines(self) -> None:
        """Write the status every few seconds, also during a long trial."""
        while not self._is_over.wait(self._seconds):
            if self._notebook_bar is not None:
                self._notebook_bar.show(self._status(), self._n_budgeted, self._total)
            else:
                sys.stderr.write(f"{self._status()}\n")

    def _status(self) -> str:
        """Return the number of trials, the time and the best score."""
        period = f"after {time.monotonic() - self._start:.0f} s"
        if self._activity:
            return f"{self._activity}, {period}"
        best_scores = dict(self._best)
        n_trials = sum(self._counts.values())
        trials = plural(n_trials, "trial")
        if self._total:
            trials = f"{self._n_budgeted} of {plural(self._total, 'trial')}"
            further = [plural(n, noun) for noun, n in self._n_further.items() if n]
            trials = " and ".join(filter(None, [", ".join(further), trials]))
        leader = max(best_scores, key=lambda name: best_scores[name], default="")
        suffix = f"; {self._describe(leader)}" if leader else ""
        return f"{trials} {period}{suffix}"

    def _describe(self, name: str) -> str:
        """Return the label of an extractor with its best score."""
        label = extractor_label(name)
        if name not in self._best:
            return label
        return f"{label}, best {self._label} {self._sign * self._best[name]:.4g}"


#: Work at each stage that has no trials.
_ACTIVITIES = {
    "rows": "checking the rows",
    "finalists": "comparing the best candidates on other folds",
    "all_rows": "fitting the model on all rows",
    "winner": "choosing the winner",
}
#: Number of trials that start together in memory. It is small, so that the sampler learns from
#: earlier trials, and does not depend on the number of processes, as results must not either.
_BATCH_SIZE = 4
#: Pruners that compare a trial with finished trials only.
_BUILTIN_PRUNERS = ("race", "bound")
#: Seconds between two checks for trials of other workers.
_POLL_SECONDS = 0.5
#: Seconds of waiting for other workers before a warning.
_SECONDS_BEFORE_WARNING = 20.0


@dataclass
class _RunningTrial:
    """A trial that was started and is not finished yet."""

    name: str
    trial: optuna.Trial
    params: dict[str, Any]
    results: list[FoldResult] = field(default_factory=list)
    all_rows: FoldResult | None = None
    heartbeat: Heartbeat | None = None
    same_as: int | None = None
    is_pruned: bool = False
    #: Whether all evaluations are done, so that the trial can be finished.
    is_evaluated: bool = False

    @property
    def failure(self) -> str:
        """Text of the first error; empty if there was none."""
        return next((result.failure for result in self.results if result.failure), "")


class Runner:
    """Spend the budget of a search.

    Parameters
    ----------
    studies : Studies
        Studies of the extractors.
    allocation : Allocation
        Budget and its division between extractors.
    workers : Workers
        Processes that evaluate candidates on folds.
    start : float
        Value of ``time.monotonic`` when the time limit of the search began.
    pruner : optional
        Optuna's pruner, ``"race"`` to stop a trial that another candidate dominates, or ``"bound"``
        to stop a trial that cannot reach the best score.
    callbacks : sequence of callable, default=()
        Called with study and trial after every trial.
    """

    def __init__(
        self,
        studies: Studies,
        allocation: Allocation,
        workers: Workers,
        *,
        start: float,
        pruner: Any = None,
        callbacks: Sequence[Callable[..., None]] = (),
    ) -> None:
        self.studies = studies
        self.allocation = allocation
        self.workers = workers
        self.evaluator = workers.evaluator
        self._start = start
        self.pruner = pruner
        self.callbacks = list(callbacks)
        self.objective: SearchObjective = studies.objective
        self._results = ResultCache(len(self.evaluator.folds), studies.compared_measures())
        #: Extractors whose studies a callback has stopped.
        self._stopped_by_callback: set[str] = set()
        #: Whether the trials in memory are up to date, because no other worker uses the storage.
        self._is_up_to_date = False
        #: Whether another worker was seen. From then on, few trials start at a time.
        self._has_other_workers = False
        self._waiting_since: float | None = None
        self._has_warned = False
        #: Trials that could not be finished because the storage failed.
        self._unfinished: list[_RunningTrial] = []
        #: Whether this process has started no trial yet. An earlier process may have left trials.
        self._is_first_batch = True
        #: Extractors of the last batch.
        self._previous: Collection[str] = ()

    def run(self) -> None:
        """Search until the budget is spent."""
        self.studies.call_with_retries(self._run_baselines)
        while self.studies.call_with_retries(self._step):
            pass

    def _run_baselines(self) -> None:
        """Evaluate the candidates that every search has in addition to its budget.

        The time limit does not apply to the largest readable tree or, without trees, to the linear
        equation, so that the search has a result.
        """
        baselines = self.studies.settings.baselines
        points = next(iter(baselines.values()), [])
        readable = [p for p in points if p.get("max_leaf_nodes", math.inf) <= READABLE_RULES]
        unlimited_params = (readable or points or [{}])[-1]
        for name, points in baselines.items():
            for params in points:
                if params is not unlimited_params and self.workers.is_spent:
                    continue
                if name in self._stopped_by_callback:
                    break
                if self.studies.is_shared:
                    self.studies.read_trials(name)
                if self.studies.find_baseline(name, params) is None:
                    self._run_baseline(name, params, is_limited=params is not unlimited_params)

    def _run_baseline(self, name: str, params: dict[str, Any], *, is_limited: bool) -> None:
        """Evaluate a candidate on all folds and on all rows, and store it."""
        objective = self.studies.objectives[name]
        candidate, n_folds = objective.candidate(params), len(self.evaluator.folds)
        tasks = [(candidate, fold) for fold in range(n_folds)]
        if self.evaluator.all_rows is not None:
            tasks.append((candidate, ALL_ROWS))
        results = self.workers.run(tasks, is_limited=is_limited)
        all_rows = results.pop() if len(results) > n_folds else None
        baseline = self.studies.make_baseline(name, params)
        try:
            if failure := next((result.failure for result in results if result.failure), ""):
                baseline.user_attrs |= {"extractor": name, "error": failure}
            else:
                values = objective.record(baseline, results, all_rows=all_rows)
                baseline.values = list(values) if isinstance(values, tuple) else [values]
                baseline.state = TrialState.COMPLETE
        except optuna.TrialPruned:
            baseline.state = TrialState.PRUNED
        if self.studies.is_shared:
            self.studies.read_trials(name)
            if self.studies.find_baseline(name, params) is not None:
                return  # another worker was faster
        self.studies.add_baseline(name, baseline)
        self.studies.read_trials(name)
        trial = self.studies.find_baseline(name, params)
        assert trial is not None
        if run_callbacks(self.callbacks, self.studies.by_name[name], trial):
            self._stopped_by_callback.add(name)

    def _step(self) -> bool:
        """Run the next batch or wait for other workers; return False when the search is over.

        May be called again after a failure of the storage.
        """
        self._finish_unfinished()
        batch: list[str] = []
        if not self.evaluator.budget.is_spent:
            batch = self._next_batch(time.monotonic() - self._start, self.workers.n_jobs)
        if batch:
            self._waiting_since = None
            if not self._run_batch(batch):
                # Other workers have started all remaining trials in the meantime.
                time.sleep(_POLL_SECONDS)
            return True
        if self.studies.is_shared and self._awaits_other_workers(time.monotonic() - self._start):
            self._warn_of_waiting()
            time.sleep(_POLL_SECONDS)
            return True
        self.studies.read_trials()
        return False

    def _finish_unfinished(self) -> None:
        """Finish the trials that could not be finished while the storage failed."""
        while self._unfinished:
            running = self._unfinished[0]
            if running.is_evaluated:
                self._finish(running)
            else:
                self.studies.interrupt(running.name, running.trial)
            self._unfinished.pop(0)
            self._is_up_to_date = False

    def _warn_of_waiting(self) -> None:
        """Warn once if other workers take long, as one of them may have been killed."""
        now = time.monotonic()
        self._waiting_since = now if self._waiting_since is None else self._waiting_since
        if now - self._waiting_since > _SECONDS_BEFORE_WARNING and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"Waiting for {plural(self.studies.n_unfinished(), 'trial')} of other processes; "
                "all others are finished. The trial of a process that was killed on another "
                "machine is repeated after 120 s without a heartbeat.",
                UserWarning,
                stacklevel=4,
            )

    def _awaits_other_workers(self, elapsed: float) -> bool:
        """Return whether trials of other workers may still finish within the budget."""
        if len(self._stopped_by_callback) == len(self.studies.by_name):
            return False
        timeout = self.allocation.timeout
        return (timeout is None or elapsed < timeout) and bool(self.studies.n_running())

    def _next_batch(self, elapsed: float, n_jobs: int) -> list[str]:
        """Return the extractors of the trials that start next."""
        # Workers that have joined since the last batch started are seen when the next one starts.
        if not self._is_up_to_date:
            self.studies.read_trials()
            if self.studies.is_shared:
                self.studies.retry_stale()
        usage = self.studies.usage()
        allowed = self.allocation.next_trials(usage, self.rank, elapsed, self._stopped_by_callback)
        if self._is_up_to_date and not allowed:
            self._is_up_to_date = False
            return self._next_batch(elapsed, n_jobs)
        running = self.studies.n_running()
        self._has_other_workers |= self.studies.is_shared and bool(running)
        if allowed and self.studies.is_shared:
            # Trials of an interrupted search come first: later ones learn from them.
            repeated_names = self._trials_to_repeat()
            if repeated_names:
                batch_size = max(1, n_jobs)
                if not self._has_other_workers:
                    batch_size = max(_BATCH_SIZE, len(usage), n_jobs)
                return repeated_names[: min(batch_size, sum(allowed.values()))]
        if self._has_other_workers:
            # Start no more trials than can run at once, so that other workers get their share.
            seconds = {name: self._mean_seconds(name) for name in allowed}
            return order_for_worker(allowed, seconds, running, self._previous)[: max(1, n_jobs)]
        if not allowed:
            return []
        if not any(entry.n_started for entry in usage.values()):
            return list(allowed)  # even with little time, every extractor gets one trial
        n_each = math.ceil(_BATCH_SIZE / len(allowed))
        return alternate({name: min(number, n_each) for name, number in allowed.items()})

    def _trials_to_repeat(self) -> list[str]:
        """Return the extractors of trials that an interrupted search had started or planned."""
        names = alternate(self.studies.n_waiting())
        if not self._has_other_workers and (names or self._is_first_batch):
            names += self.studies.planned_trials()
        self._is_first_batch = False
        return names

    def _run_batch(self, names: list[str]) -> bool:
        """Run one trial for each of the names; return whether any was within the budget."""
        self._previous = set(names)
        started: list[_RunningTrial] = []
        # Only trials before the batch are rivals, so the number of processes has no effect.
        self._results.update(self.studies.trials)
        rivals = self._results.rivals()
        n_finished = 0
        with ExitStack() as heartbeats:
            try:
                granted = self._start_trials(names, started, heartbeats)
                started[:] = granted
                for group in self._group_trials(granted):
                    if self.workers.is_spent:
                        self._interrupt(group)
                        n_finished += len(group)
                        continue
                    self._evaluate(group, rivals)
                    for running in group:
                        trial = self._finish(running)
                        n_finished += 1
                        self._run_callbacks(running, trial)
            except BaseException as error:
                self._abort(started[n_finished:], error)
                raise
        return bool(started)

    def _start_trials(
        self, names: list[str], started: list[_RunningTrial], heartbeats: ExitStack
    ) -> list[_RunningTrial]:
        """Append a new trial for each of the names to `started`; return those within the budget."""
        studies = self.studies
        n_started, n_waiting = studies.n_started(), studies.n_waiting()
        if studies.is_shared and len(names) > 1:
            new_names = _without_waiting(names, n_waiting)
            if new_names:
                studies.record_plan(new_names)
        for name in names:
            running = _RunningTrial(name, *studies.start_trial(name))
            started.append(running)
            if studies.is_shared:
                running.heartbeat = heartbeats.enter_context(Heartbeat(running.trial))
        if not studies.is_shared:
            return list(started)
        studies.read_trials()
        is_alone = studies.n_unfinished() == len(started)
        # Callbacks may queue trials in the studies.
        self._is_up_to_date = is_alone and not (self._has_other_workers or self.callbacks)
        self._results.update(studies.trials)
        if studies.n_started() > n_started + len(started):
            return self._within_budget(started)
        return list(started)

    def _group_trials(self, started: list[_RunningTrial]) -> list[list[_RunningTrial]]:
        """Divide the trials into groups that are evaluated and finished together.

        A single process finishes every trial immediately, unless this could change a pruner's
        decision.
        """
        if self.workers.n_jobs == 1 and not any(map(self._may_prune, started)):
            return [[running] for running in started]
        return [started]

    def _interrupt(self, group: list[_RunningTrial]) -> None:
        """Interrupt trials that cannot be evaluated within the budget of the search."""
        for running in group:
            self.studies.interrupt(running.name, running.trial, repeat=False)

    def _run_callbacks(self, running: _RunningTrial, trial: FrozenTrial | None) -> None:
        """Call the callbacks after a trial, unless another worker has marked it as failed."""
        if trial is None:
            self._is_up_to_date = False
        elif run_callbacks(self.callbacks, self.studies.by_name[running.name], trial):
            self._stopped_by_callback.add(running.name)

    def _abort(self, unfinished: list[_RunningTrial], error: BaseException) -> None:
        """End the unfinished trials of a batch after an error."""
        if self.studies.is_shared and is_storage_failure(error):
            self._unfinished += unfinished
            return
        for running in unfinished:
            # Measurements are not lost because the callback of another trial failed.
            if isinstance(error, KeyboardInterrupt) or not running.is_evaluated:
                self.studies.interrupt(running.name, running.trial)
            else:
                self._finish(running)

    def _within_budget(self, started: list[_RunningTrial]) -> list[_RunningTrial]:
        """Return the trials within the budget, because several workers may start trials at once.

        The others are interrupted.
        """
        granted_trials: list[_RunningTrial] = []
        rejected_keys: set[tuple[str, int]] = set()
        for running in started:
            trial = self.studies.trials[running.name][running.trial.number]
            usage = self.studies.usage((running.name, trial), without=rejected_keys)
            allocation = copy.copy(self.allocation)
            # Queued trials were within the budget when they were queued.
            if "fixed_params" in trial.system_attrs or running.name in allocation.next_trials(
                usage, self.rank, 0, self._stopped_by_callback
            ):
                granted_trials.append(running)
            else:
                self.studies.interrupt(running.name, running.trial, repeat=False)
                rejected_keys.add((running.name, trial.number))
                self._is_up_to_date = False
        return granted_trials

    def _evaluate(self, started: list[_RunningTrial], rivals: list[np.ndarray]) -> None:
        """Evaluate the trials on the folds, and on all rows if they may win.

        A trial may be pruned after each fold.
        """
        originals: dict[tuple[str, str], _RunningTrial] = {}
        duplicates: list[tuple[_RunningTrial, _RunningTrial]] = []
        new_trials = []
        for running in started:
            key = running.name, params_key(running.params)
            finished_trial = self._results.get(running.name, running.params)
            if finished_trial is not None:
                running.same_as, running.results = finished_trial.number, finished_trial.results
                running.all_rows = finished_trial.all_rows
            elif key in originals:
                duplicates.append((running, originals[key]))
            else:
                originals[key] = running
                new_trials.append(running)
        if self.pruner not in _BUILTIN_PRUNERS:
            self._evaluate_for_optuna([r for r in new_trials if self._may_prune(r)])
        chains = [self._remaining_evaluations(running, rivals) for running in new_trials]
        self.workers.run_chains(chains)
        for running, chain in zip(new_trials, chains, strict=True):
            results = dict(zip(chain.calls, chain.results, strict=False))  # fewer results if pruned
            running.all_rows = results.pop(ALL_ROWS, None)  # a trial with a failure cannot win
            running.results = list(results.values()) or running.results
        for running, original in duplicates:
            running.same_as, running.results = original.trial.number, original.results
            running.is_pruned, running.all_rows = original.is_pruned, original.all_rows
        for running in started:
            running.is_evaluated = True

    def _evaluate_for_optuna(self, active: list[_RunningTrial]) -> None:
        """Evaluate trials fold after fold, because Optuna's pruners compare them after each."""
        n_folds = len(self.evaluator.folds)
        for k in range(n_folds):
            results = self.workers.run([(self._candidate(running), k) for running in active])
            for running, result in zip(active, results, strict=True):
                running.results.append(result)
                running.is_pruned = k + 1 < n_folds and self._should_prune(running)
            active = [r for r in active if not r.is_pruned and not r.failure]

    def _candidate(self, running: _RunningTrial) -> Any:
        return self.studies.objectives[running.name].candidate(running.params)

    def _remaining_evaluations(self, running: _RunningTrial, rivals: list[np.ndarray]) -> Chain:
        """Return the evaluations of a trial that remain: on the folds, and on all rows."""
        n_folds = len(self.evaluator.folds)
        on_all_rows = [] if self.evaluator.all_rows is None else [ALL_ROWS]
        if running.results:  # on the folds
            may_win = not running.is_pruned and self._may_win(running, rivals)
            return self.workers.chain(self._candidate(running), on_all_rows if may_win else [])

        def continues(results: list[FoldResult]) -> bool:
            running.results = list(results)
            if len(results) == n_folds:
                return self._may_win(running, rivals)
            running.is_pruned = self._should_prune(running)
            return not (running.is_pruned or running.failure)

        n_certain = 1 if self._may_prune(running) else n_folds
        folds = [*range(n_folds), *on_all_rows]
        return self.workers.chain(self._candidate(running), folds, n_certain, continues)

    def _may_win(self, running: _RunningTrial, rivals: list[np.ndarray]) -> bool:
        """Return whether no rival is at least as good in every part of the score on every fold."""
        if running.failure or math.isnan(mean_of(running.results, "score")):
            return False  # a trial without a score cannot win
        parts = self._results.parts_of(running.results)
        return not any((rival >= parts).all() for rival in rivals)

    def _may_prune(self, running: _RunningTrial) -> bool:
        return self.pruner is not None or self.studies.has_pruner(running.name)

    def _should_prune(self, running: _RunningTrial) -> bool:
        """Return whether to prune a trial after the folds it was evaluated on."""
        if running.failure or math.isnan(score := mean_of(running.results, "score")):
            return False
        if self.pruner == "race":
            return self._is_dominated(running)
        if self.pruner != "bound":
            running.trial.report(score, len(running.results) - 1)
            return running.trial.should_prune()
        best_possible = self.objective.best_possible
        best = max((self._best_score(name) for name in self.studies.by_name), default=-math.inf)
        if best_possible is None or best == -math.inf:
            return False
        n_folds, n_done = len(self.evaluator.folds), len(running.results)
        upper_bound = (score * n_done + best_possible * (n_folds - n_done)) / n_folds
        return bool(upper_bound < best)

    def _is_dominated(self, running: _RunningTrial) -> bool:
        """Return whether another trial is better, and worse in no part, on all folds so far.

        On a single fold, its loss must be smaller by more than chance.
        """
        n_done = len(running.results)
        own = raced_parts(self._results.parts_of(running.results))
        margin = self._margin_on_first_fold(running.results[0]) if n_done == 1 else 0.0
        for rival_parts in self._results.rivals():
            rival = raced_parts(rival_parts[:n_done])
            gains = (rival - own).mean(axis=0)
            if (rival >= own).all() and gains[0] > 0 and gains[1] >= margin:
                return True
        return False

    def _margin_on_first_fold(self, result: FoldResult) -> float:
        """Return two standard errors of the difference of two losses; infinite in regression."""
        loss = result["loss"]
        if self.evaluator.task != "classification" or not 0 <= loss <= 1:
            return math.inf  # losses of numbers have no known spread on a single fold
        return 2 * math.sqrt(2 * loss * (1 - loss) / max(1, self.evaluator.n_scored_rows(0)))

    def _finish(self, running: _RunningTrial) -> FrozenTrial | None:
        """Store the results of a trial; return None if another worker has marked it as failed."""
        if running.heartbeat is not None and running.heartbeat.lost:
            return None
        objective = self.studies.objectives[running.name]
        n_folds, failure = len(self.evaluator.folds), running.failure
        state, values = TrialState.COMPLETE, None
        try:
            if failure:
                running.trial.set_user_attr("extractor", running.name)
                running.trial.set_user_attr("error", failure)
                state = TrialState.FAIL
            elif running.is_pruned:
                raise objective.stopped(running.trial, running.results, n_folds)
            else:
                values = objective.record(
                    running.trial,
                    running.results,
                    same_as=running.same_as,
                    all_rows=running.all_rows,
                )
        except optuna.TrialPruned:
            state = TrialState.PRUNED
        except UpdateFinishedTrialError:
            return None
        study = self.studies.by_name[running.name]
        trial = study.tell(running.trial, values, state=state, skip_if_finished=True)
        self.studies.trials[running.name][trial.number] = trial
        if len(running.results) == n_folds and running.same_as is None and not failure:
            finished_trial = FinishedTrial(running.trial.number, running.results, running.all_rows)
            self._results.add(running.name, running.params, finished_trial)
        return trial

    def _complete_trials(self, name: str, n_first: int | None) -> list[FrozenTrial]:
        trials = self.studies.counted_trials(name)[:n_first]
        return [trial for trial in trials if trial.state == TrialState.COMPLETE]

    def _mean_seconds(self, name: str) -> float:
        """Return the mean duration of an extraction; infinite before the first one."""
        seconds = [trial.user_attrs["seconds"] for trial in self._complete_trials(name, None)]
        return float(np.mean(seconds)) if seconds else math.inf

    def _best_score(self, name: str) -> float:
        return max(map(value_of, self._complete_trials(name, None)), default=-math.inf)

    def rank(self, names: Sequence[str], n_first: int | None) -> Mapping[str, tuple[float, float]]:
        """Return priority and upper bound of each extractor by its first trials."""
        if self.objective.minimized:
            complete = {name: self._complete_trials(name, n_first) for name in names}
            bounds = {
                name: math.inf
                if complete[name]
                else bound_without_score(self.studies.counted_trials(name)[:n_first])
                for name in names
            }
            contributions = hypervolume_contributions(complete)
            return {name: (contributions[name], bounds[name]) for name in names}
        result = {}
        for name in names:
            baselines = [t for t in self.studies.trials[name] if is_baseline(t)]
            trials_of_name = [*baselines, *self.studies.counted_trials(name)[:n_first]]
            result[name] = score_and_bound(
                trials_of_name, self.objective.scorer, is_race=self.pruner == "race"
            )
        return result


def _without_waiting(names: Sequence[str], n_waiting: Mapping[str, int]) -> list[str]:
    """Return the names of the trials that are not queued already."""
    n_left = dict(n_waiting)
    result = []
    for name in names:
        if n_left.get(name, 0) > 0:
            n_left[name] -= 1
        else:
            result.append(name)
    return result
