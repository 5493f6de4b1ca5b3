"""Loop that spends the budget of a search."""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from skescore._text import plural
from skescore.tuning._candidates import SearchObjective, mean_of
from skescore.tuning._objective import (
    params_key,
)
from skescore.tuning.runner._allocation import Allocation, in_turns, in_turns_beside_others
from skescore.tuning.runner._comparison import _parts, contributions, standing, value_of
from skescore.tuning.runner._studies import Studies
from skescore.tuning.runner._workers import ALL_ROWS, FoldEvaluator, Workers
from skescore.tuning.storage import (
    Heartbeat,
    is_storage_failure,
)

#: Trials that are begun together in memory: few, so that the sampler learns, and always as many,
#: so that the number of processes changes nothing.
_TOGETHER = 4
#: Seconds between two looks at trials of other workers.
_PATIENCE = 0.5
#: Seconds of such looks before a word is said.
_SILENCE = 20.0


@dataclass
class _Open:
    """A trial that was begun."""

    name: str
    trial: optuna.Trial
    params: dict[str, Any]
    results: list[dict[str, Any]] = field(default_factory=list)
    all_rows: dict[str, Any] | None = None
    heartbeat: Heartbeat | None = None
    same_as: int | None = None
    stopped: bool = False


#: Of a trial that is done: its number, what was measured on the folds, and on all rows.
_Known = tuple[int, list[dict[str, Any]], dict[str, Any] | None]


class Runner:
    """Spends the budget of a search."""

    def __init__(
        self,
        studies: Studies,
        allocation: Allocation,
        evaluator: FoldEvaluator,
        *,
        n_jobs: int | None = None,
        pruner: Any = None,
        callbacks: Sequence[Callable[..., None]] = (),
    ) -> None:
        self.studies = studies
        self.allocation = allocation
        self.evaluator = evaluator
        self.n_jobs = n_jobs
        self.pruner = pruner
        self.callbacks = list(callbacks)
        self.objective: SearchObjective = studies.objective
        self._halted: set[str] = set()
        self._known: dict[tuple[str, str], _Known] = {}
        self._read: dict[str, int] = {}
        self._parts: dict[tuple[str, int], np.ndarray] = {}
        #: Whether the trials last read are all there are: nobody else was at work in the storage.
        self._up_to_date = False
        #: Whether others ever were at work; after that it takes few trials at a time to the end.
        self._has_company = False
        self._waits_since: float | None = None
        self._has_told = False
        #: Trials that could not be ended, as the storage did not answer.
        self._unended: list[_Open] = []
        #: Whether this process has not begun anything: another may have ended in the midst of it.
        self._is_new = True
        #: The extractors of this worker's last trials.
        self._last: Collection[str] = ()

    def run(self) -> None:
        """Search until the budget is spent."""
        begin = time.perf_counter()
        if self.allocation.timeout is not None:
            self.evaluator.stops_at = time.monotonic() + self.allocation.timeout
        with Workers(self.evaluator, self.n_jobs) as workers:
            while self.studies.patiently(lambda: self._step(begin, workers)):
                pass

    def _step(self, begin: float, workers: Workers) -> bool:
        """Go on with a search whose storage may have failed; return whether there is more to do."""
        self._give_back()
        if self._go_on(begin, workers):
            return True
        self.studies.read()
        return False

    def _go_on(self, begin: float, workers: Workers) -> bool:
        """Work at what comes next, or wait for others; return whether there is more to do."""
        if batch := self._next_batch(time.perf_counter() - begin, workers.n_jobs):
            self._waits_since = None
            if not self._work_at(batch, workers):
                time.sleep(_PATIENCE)  # others were quicker, or have another clock
            return True
        if self.studies.shared and self._others(time.perf_counter() - begin):
            self._tell_of_waiting()
            time.sleep(_PATIENCE)
            return True
        return False

    def _give_back(self) -> None:
        """End the trials that could not be ended while the storage did not answer."""
        while self._unended:
            one = self._unended[0]
            if one.results:
                self._close(one)
            else:
                self.studies.interrupt(one.name, one.trial)
            self._unended.pop(0)
            self._up_to_date = False

    def _tell_of_waiting(self) -> None:
        """Say a word, once, where others take long: one of them may have been killed."""
        now = time.monotonic()
        self._waits_since = now if self._waits_since is None else self._waits_since
        if now - self._waits_since > _SILENCE and not self._has_told:
            self._has_told = True
            warnings.warn(
                f"All that is left is {plural(self.studies.unfinished(), 'trial')} of other "
                "processes, which are waited for. One that is killed on another machine is given "
                "up after 120 s without a sign of life, and its trial tried again.",
                UserWarning,
                stacklevel=5,
            )

    def _others(self, elapsed: float) -> bool:
        """Whether trials of other workers may still come to something."""
        if len(self._halted) == len(self.studies.studies):
            return False
        timeout = self.allocation.timeout
        return (timeout is None or elapsed < timeout) and bool(self.studies.running())

    def _next_batch(self, elapsed: float, n_jobs: int) -> list[str]:
        """Names of the extractors whose trials come next."""
        # Who has joined since the last trials began is seen when the next ones have begun.
        if not self._up_to_date:
            self.studies.read()
            if self.studies.shared:
                self.studies.retry_stale()
        standings = self.studies.standings()
        allowed = self.allocation.allowed(standings, self.judge, elapsed, self._halted)
        if self._up_to_date and not allowed:
            self._up_to_date = False
            return self._next_batch(elapsed, n_jobs)
        running = self.studies.running()
        self._has_company = self._has_company or (self.studies.shared and bool(running))
        if allowed and self.studies.shared:
            # First what a broken-off search had begun: the next trials learn from it.
            most = max(1, n_jobs) if self._has_company else max(_TOGETHER, len(standings), n_jobs)
            again = in_turns(self.studies.waiting())
            if not self._has_company and (again or self._is_new):
                again += self.studies.left_to_begin()  # what it was about to begin with them
            self._is_new = False
            if again:
                return again[: min(most, sum(allowed.values()))]
        if self._has_company:
            # Others are at work as well: take no more than can be begun at once.
            seconds = {name: self._seconds(name) for name in allowed}
            names = in_turns_beside_others(allowed, seconds, running, self._last)
            return names[: max(1, n_jobs)]
        if not allowed:
            return []
        if not any(standing.started for standing in standings.values()):
            return list(allowed)  # with little time, every extractor has one trial at least
        each = math.ceil(_TOGETHER / len(allowed))
        return in_turns({name: min(number, each) for name, number in allowed.items()})

    def _work_at(self, names: list[str], workers: Workers) -> bool:
        """Ask for trials and see them through; return whether any of them was granted."""
        self._last = set(names)
        opened: list[_Open] = []
        closed = 0
        # As of now, so that the number of processes makes no difference.
        self._learn()
        rivals = list(self._parts.values())
        with ExitStack() as alive:
            try:
                started, queued = self.studies.number_started(), self.studies.waiting()
                fresh = [name for name in names if _is_fresh(queued, name)]
                if self.studies.shared and fresh and len(names) > 1:
                    self.studies.plan(fresh)
                for name in names:
                    opened.append(_Open(name, *self.studies.ask(name)))
                    if self.studies.shared:
                        beats = Heartbeat(opened[-1].trial)
                        opened[-1].heartbeat = alive.enter_context(beats)
                if self.studies.shared:
                    self.studies.read()
                    nobody = self.studies.unfinished() == len(opened)
                    # Callbacks may queue trials in the studies.
                    self._up_to_date = nobody and not (self._has_company or self.callbacks)
                    self._learn()
                    if self.studies.number_started() > started + len(opened):  # by others as well
                        opened = self._granted(opened)
                # In one process a trial is kept as soon as it is measured, in several all together;
                # also in one where a pruner could see a difference.
                alone = workers.n_jobs == 1 and not any(map(self._may_stop, opened))
                for part in [[one] for one in opened] if alone else [opened]:
                    if time.monotonic() >= self.evaluator.stops_at:
                        for one in part:
                            self.studies.interrupt(one.name, one.trial, again=False)
                        closed += len(part)
                        continue
                    self._evaluate(part, workers)
                    self._judge_on_all_rows(part, rivals, workers)
                    for one in part:
                        trial = self._close(one)
                        closed += 1
                        if trial is None:
                            self._up_to_date = False
                        elif call_back(self.callbacks, self._study(one), trial):
                            self._halted.add(one.name)
            except BaseException as error:
                if self.studies.shared and is_storage_failure(error):
                    self._unended += opened[closed:]
                    raise
                for one in opened[closed:]:
                    # What has been measured is not lost because a callback failed.
                    if isinstance(error, KeyboardInterrupt) or not one.results:
                        self.studies.interrupt(one.name, one.trial)
                    else:
                        self._close(one)
                raise
        return bool(opened)

    def _granted(self, opened: list[_Open]) -> list[_Open]:
        """The trials within the budget: workers may have begun some at one moment."""
        if self.allocation.n_trials is None:
            return opened
        granted: list[_Open] = []
        rejected: set[tuple[str, int]] = set()
        for one in opened:
            trial = self.studies.trials[one.name][one.trial.number]
            standings = self.studies.standings((one.name, trial), without=rejected)
            allocation = copy.copy(self.allocation)
            if "fixed_params" in trial.system_attrs or one.name in allocation.allowed(
                standings, self.judge, 0, self._halted
            ):  # what was queued is within the budget where it was taken up
                granted.append(one)
            else:
                self.studies.interrupt(one.name, one.trial, again=False)
                rejected.add((one.name, trial.number))
                self._up_to_date = False
        return granted

    def _evaluate(self, opened: list[_Open], workers: Workers) -> None:
        """Fill in the results; fold after fold if a trial may be stopped between them."""
        first: dict[tuple[str, str], _Open] = {}
        repeats: list[tuple[_Open, _Open]] = []
        todo = []
        for one in opened:
            key = one.name, params_key(one.params)
            if (known := self._known.get(key)) is not None:
                one.same_as, one.results, one.all_rows = known
            elif key in first:
                repeats.append((one, first[key]))
            else:
                first[key] = one
                todo.append((one, self.studies.objectives[one.name].candidate(one.params)))
        n_folds = len(self.evaluator.folds)
        whole = [(one, c) for one, c in todo if not self._may_stop(one)]
        results = workers.run([(c, k) for _, c in whole for k in range(n_folds)])
        for index, (one, _) in enumerate(whole):
            one.results += results[index * n_folds : (index + 1) * n_folds]
        going = [(one, c) for one, c in todo if self._may_stop(one)]
        for k in range(n_folds):
            results = workers.run([(c, k) for _, c in going])
            for (one, _), result in zip(going, results, strict=True):
                one.results.append(result)
                one.stopped = k + 1 < n_folds and self._hopeless(one)
            going = [(one, c) for one, c in going if not one.stopped and not _failure(one.results)]
        for one, other in repeats:
            one.same_as, one.results = other.trial.number, other.results
            one.stopped = other.stopped

    def _judge_on_all_rows(
        self, opened: list[_Open], rivals: list[np.ndarray], workers: Workers
    ) -> None:
        """Extract from all rows what may win: what no rival equals on every fold in every part."""

        def may_win(one: _Open) -> bool:
            if one.same_as is not None or one.stopped or _failure(one.results):
                return False
            if math.isnan(mean_of(one.results, "score")):  # without a score nothing wins
                return False
            parts = _parts(one.results)
            return not any((rival >= parts).all() for rival in rivals)

        if self.evaluator.all_rows is None:
            return
        going = [one for one in opened if may_win(one)]
        candidates = [self.studies.objectives[one.name].candidate(one.params) for one in going]
        results = workers.run([(candidate, ALL_ROWS) for candidate in candidates])
        for one, result in zip(going, results, strict=True):
            one.all_rows = result  # with a failure in it: not to win
        made = {(one.name, one.trial.number): one.all_rows for one in going}
        for one in opened:
            if one.same_as is not None and one.all_rows is None:
                one.all_rows = made.get((one.name, one.same_as))

    def _may_stop(self, one: _Open) -> bool:
        return self.pruner is not None or self.studies.has_pruner(one.name)

    def _hopeless(self, one: _Open) -> bool:
        """Whether a trial should be stopped after the folds it has seen."""
        if _failure(one.results) or math.isnan(score := mean_of(one.results, "score")):
            return False
        if self.pruner != "bound":
            one.trial.report(score, len(one.results) - 1)
            return one.trial.should_prune()
        best_possible = self.objective.best_possible
        best = max((self._best(name) for name in self.studies.studies), default=-math.inf)
        if best_possible is None or best == -math.inf:
            return False
        n_folds, seen = len(self.evaluator.folds), len(one.results)
        reach = (score * seen + best_possible * (n_folds - seen)) / n_folds
        return bool(reach < best)

    def _close(self, one: _Open) -> FrozenTrial | None:
        """Keep what was measured; None if another worker has taken the trial for lost."""
        if one.heartbeat is not None and one.heartbeat.lost:
            return None
        objective, study = self.studies.objectives[one.name], self._study(one)
        state, values, failure = TrialState.COMPLETE, None, _failure(one.results)
        try:
            if failure:
                one.trial.set_user_attr("extractor", one.name)
                one.trial.set_user_attr("error", failure)
                state = TrialState.FAIL
            elif one.stopped:
                raise objective.stopped(one.trial, one.results, len(self.evaluator.folds))
            else:
                values = objective.record(
                    one.trial, one.results, same_as=one.same_as, all_rows=one.all_rows
                )
        except optuna.TrialPruned:
            state = TrialState.PRUNED
        except UpdateFinishedTrialError:
            return None
        trial = study.tell(one.trial, values, state=state, skip_if_finished=True)
        self.studies.trials[one.name][trial.number] = trial
        if len(one.results) == len(self.evaluator.folds) and one.same_as is None and not failure:
            known = one.trial.number, one.results, one.all_rows
            self._known.setdefault((one.name, params_key(one.params)), known)
        return trial

    def _study(self, one: _Open) -> optuna.Study:
        return self.studies.studies[one.name]

    def _learn(self) -> None:
        """Remember what was measured in the trials that were read."""
        for name, trials in self.studies.trials.items():
            index = self._read.get(name, 0)
            while index < len(trials) and trials[index].state.is_finished():
                self._learn_of(name, trials[index])
                index += 1
            self._read[name] = index
            for trial in trials[index:]:
                if trial.state.is_finished():
                    self._learn_of(name, trial)

    def _learn_of(self, name: str, trial: FrozenTrial) -> None:
        folds = trial.user_attrs.get("folds", ())
        if len(folds) == len(self.evaluator.folds) and "same_as" not in trial.user_attrs:
            all_rows = trial.user_attrs.get("all_rows")
            key = name, params_key(trial.params)
            self._known.setdefault(key, (trial.number, list(folds), all_rows))
            # What has no rules of all rows, or had none made, wins over nothing.
            score = (all_rows or {}).get("score", math.nan)
            if math.isfinite(score) and (name, trial.number) not in self._parts:
                self._parts[name, trial.number] = _parts(folds)

    def _complete(self, name: str, first: int | None) -> list[FrozenTrial]:
        trials = self.studies.counted(name)[:first]
        return [trial for trial in trials if trial.state == TrialState.COMPLETE]

    def _seconds(self, name: str) -> float:
        """What an extraction takes; what extractors take is not known before the first."""
        taken = [trial.user_attrs["seconds"] for trial in self._complete(name, None)]
        return float(np.mean(taken)) if taken else math.inf

    def _best(self, name: str) -> float:
        return max(map(value_of, self._complete(name, None)), default=-math.inf)

    def judge(self, names: Sequence[str], first: int | None) -> Mapping[str, tuple[float, float]]:
        """Give how good extractors are by their first trials, and how good they could be."""
        if self.objective.minimized:
            done = {name: self._complete(name, first) for name in names}
            return {name: (priority, math.inf) for name, priority in contributions(done).items()}
        scorer = self.objective.scorer
        return {name: standing(self.studies.counted(name)[:first], scorer) for name in names}


def _is_fresh(queued: dict[str, int], name: str) -> bool:
    """Whether the next trial of an extractor is none that is queued; counts it off if it is."""
    left = queued.get(name, 0)
    queued[name] = left - 1
    return left <= 0


def _failure(results: list[dict[str, Any]]) -> str:
    return next((result["failure"] for result in results if "failure" in result), "")


def call_back(
    callbacks: Sequence[Callable[..., None]], study: optuna.Study, trial: FrozenTrial
) -> bool:
    """Call what the caller wants called after a trial; return whether it stopped the study."""
    # A callback may call study.stop(), which Optuna allows inside of its own loop only.
    local = study._thread_local
    before = local.in_optimize_loop
    local.in_optimize_loop = True
    study._stop_flag = False
    try:
        for callback in callbacks:
            callback(study, trial)
    finally:
        local.in_optimize_loop = before
    return study._stop_flag
