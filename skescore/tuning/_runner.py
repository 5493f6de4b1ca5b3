"""The loop of a search: who comes next, extract and score, keep what was found."""

from __future__ import annotations

import copy
import math
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import cloudpickle
import numpy as np
import optuna
from joblib import Parallel, delayed, effective_n_jobs
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skescore.scorers import SCORE_SPECS
from skescore.tuning._allocation import Allocation, in_turns, in_turns_beside_others
from skescore.tuning._objective import STOPPED, Fold, evaluate_on_fold, knowledge_like, params_key
from skescore.tuning._pareto import hypervolume
from skescore.tuning._studies import Studies, call_back
from skescore.tuning._winner import SearchObjective, mean_of, score_of_parts
from skescore.tuning.storage import Heartbeat

# --- candidates evaluated here or in processes, which are handed the folds once ------------------

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
        #: Made here, as other processes may not know scores that were registered.
        self.knowledge = knowledge_like(scorer)

    def __call__(self, extractor: Any, fold: int) -> dict[str, Any]:
        """Evaluate an extractor on the fold of a number; ``failure`` holds an error's text."""
        rows = self.all_rows if fold == ALL_ROWS else self.folds[fold]
        assert rows is not None
        try:
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
            self._parallel = Parallel(n_jobs=self.n_jobs).__enter__()
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


# --- how good an extractor is by its trials, and how good it could be at most --------------------


def value_of(trial: FrozenTrial) -> float:
    """The score of a trial that was completed."""
    return float(trial.values[0])


def standing(trials: Sequence[FrozenTrial], scorer: Any) -> tuple[float, float]:
    """The best score of an extractor, and the bound of what it could reach."""
    done = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    cut_short = [trial for trial in trials if STOPPED in trial.user_attrs]
    best = max(map(value_of, done), default=-math.inf)
    if not cut_short:
        return best, _reach(done, scorer)
    # Of trials that were stopped between folds, less is known: no bound.
    partly = [float(trial.user_attrs["score"]) for trial in cut_short]
    return (best if done else max(partly)), math.inf


def _reach(trials: list[FrozenTrial], scorer: Any) -> float:
    """The score of the best of everything that trials had, on each fold; infinite if unknown."""
    of_parts = score_of_parts(scorer)
    if not trials or of_parts is None:
        return math.inf
    names, score = of_parts
    signs = _signs()
    folds = list(zip(*(trial.user_attrs["folds"] for trial in trials), strict=True))
    best = {
        name: np.array(
            [(max if signs[name] > 0 else min)([result[name] for result in fold]) for fold in folds]
        )
        for name in names
    }
    return float(np.mean(score(best)))


def contributions(done: Mapping[str, list[FrozenTrial]]) -> dict[str, float]:
    """What each extractor adds to the common front, by hypervolume."""
    points = {name: np.array([t.values for t in trials]) for name, trials in done.items()}
    some = {name: values for name, values in points.items() if len(values)}
    if not some:
        return dict.fromkeys(done, -math.inf)
    everything = np.concatenate(list(some.values()))
    reference = everything.max(axis=0) + 0.1 * np.ptp(everything, axis=0) + 1e-9
    unit = reference - everything.min(axis=0)

    def volume(values: list[np.ndarray]) -> float:
        if not values:
            return 0.0
        return hypervolume(np.concatenate(values) / unit, reference / unit)

    whole = volume(list(some.values()))
    result = dict.fromkeys(done, -math.inf)
    for name, values in some.items():
        others = [other for other_name, other in some.items() if other_name != name]
        # Of extractors that add nothing, the one with the better front of its own is ahead.
        result[name] = whole - volume(others) + 1e-3 * volume([values])
    return result


# --- The loop of a search: who comes next, extract and score, keep what was found ----------------

#: Trials that are begun together in memory: few, so that the sampler learns, and always as many,
#: so that the number of processes changes nothing.
_TOGETHER = 4
#: Seconds between two looks at trials of other workers.
_PATIENCE = 0.5


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
        #: Whether nobody else was at work in a storage when this worker last looked; and whether
        #: somebody ever was, after which it takes few trials at a time to the end.
        self._alone = self._joined = False
        #: Whether callbacks of the caller's may queue trials in the studies.
        self._called = bool(callbacks)
        #: The extractors of this worker's last trials.
        self._last: Collection[str] = ()

    def run(self) -> None:
        """Search until the budget is spent."""
        begin = time.perf_counter()
        with Workers(self.evaluator, self.n_jobs) as workers:
            while True:
                if batch := self._next_batch(time.perf_counter() - begin, workers.n_jobs):
                    if not self._work_at(batch, workers):
                        time.sleep(_PATIENCE)  # others were quicker, or have another clock
                elif self.studies.shared and self._others(time.perf_counter() - begin):
                    time.sleep(_PATIENCE)
                else:
                    return

    def _others(self, elapsed: float) -> bool:
        """Whether trials of other workers may still come to something."""
        if len(self._halted) == len(self.studies.studies):
            return False
        timeout = self.allocation.timeout
        return (timeout is None or elapsed < timeout) and bool(self.studies.running())

    def _next_batch(self, elapsed: float, n_jobs: int) -> list[str]:
        """Names of the extractors whose trials come next."""
        # Who has joined since the last trials began is seen when the next ones have begun.
        if not self._alone:
            self.studies.read()
            if self.studies.shared:
                self.studies.retry_stale()
        standings = self.studies.standings()
        allowed = self.allocation.allowed(standings, self.judge, elapsed, self._halted)
        if self._alone and not allowed:
            self._alone = False
            return self._next_batch(elapsed, n_jobs)
        running = self.studies.running()
        self._joined = self._joined or (self.studies.shared and bool(running))
        if allowed and self.studies.shared and (waiting := self.studies.waiting()):
            # First what a broken-off search had begun: the next trials learn from it.
            most = max(1, n_jobs) if self._joined else max(_TOGETHER, len(standings), n_jobs)
            return in_turns(waiting)[: min(most, sum(allowed.values()))]
        if self._joined:
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

    # --- one batch ---------------------------------------------------------------------------

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
                for name in names:
                    opened.append(_Open(name, *self.studies.ask(name)))
                    if self.studies.shared:
                        opened[-1].heartbeat = alive.enter_context(Heartbeat(opened[-1].trial))
                if self.studies.shared:
                    self.studies.read()
                    nobody = self.studies.unfinished() == len(opened)
                    self._alone = nobody and not (self._joined or self._called)
                    self._learn()
                    opened = self._granted(opened)
                # In one process a trial is kept as soon as it is measured, in several all together;
                # also in one where a pruner could see a difference.
                alone = workers.n_jobs == 1 and not any(map(self._may_stop, opened))
                for part in [[one] for one in opened] if alone else [opened]:
                    self._evaluate(part, workers)
                    self._judge_on_all_rows(part, rivals, workers)
                    for one in part:
                        trial = self._close(one)
                        closed += 1
                        if trial is None:
                            self._alone = False
                        elif call_back(self.callbacks, self._study(one), trial):
                            self._halted.add(one.name)
            except BaseException as error:
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
                self._alone = False
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

    # --- who does how well -------------------------------------------------------------------

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
        if self.objective.minimised:
            done = {name: self._complete(name, first) for name in names}
            return {name: (merit, math.inf) for name, merit in contributions(done).items()}
        scorer = self.objective.scorer
        return {name: standing(self.studies.counted(name)[:first], scorer) for name in names}


def _failure(results: list[dict[str, Any]]) -> str:
    return next((result["failure"] for result in results if "failure" in result), "")


def _parts(results: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """What was measured on each fold, greater being better."""
    return np.array([[sign * r[name] for name, sign in _signs().items()] for r in results])


def _signs() -> dict[str, int]:
    """What scores are made of: 1 if greater is better, -1 if less is."""
    parts = {s.kept_as: -1 if s.prediction == "loss" else 1 for s in SCORE_SPECS.values()}
    return {
        "score": 1, **parts, "size": -1, "completeness_volume": 1, "completeness_instances": 1,
    }  # fmt: skip


# --- how far it is -------------------------------------------------------------------------------


class SearchProgress:
    """Shows how far a search is: a bar on a terminal or in a notebook, elsewhere lines at the end.

    Use it as a context and as a callback of the studies.

    Parameters
    ----------
    total : int or None
        Number of trials; None where they cannot be counted.
    label : str
        Name of the score.
    sign : int, default=1
        -1 if what is maximised is the score's negative.
    shown : bool, default=True
        False shows nothing.
    """

    def __init__(self, total: int | None, label: str, sign: int = 1, *, shown: bool = True) -> None:
        self._label, self._sign = label, sign
        self._best: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._bar: Progress | None = None
        self._lines = False
        self._total = total
        self._shown = shown

    def __enter__(self) -> SearchProgress:
        if self._shown:
            console = Console(stderr=True)
            self._lines = not (console.is_terminal or console.is_jupyter)
            if not self._lines:
                self._bar = Progress(
                    TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                    TimeElapsedColumn(), console=console, transient=True,
                )  # fmt: skip
                self._task = self._bar.add_task("searching", total=self._total)
                self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._lines and kind is None:
            for name in self._counts:
                count = self._counts[name]
                trials = "1 trial" if count == 1 else f"{count} trials"
                sys.stderr.write(f"{trials} of {self._named(name)}\n")

    def __call__(self, study: Any, trial: Any) -> None:
        """Count a trial."""
        name = study.study_name.rpartition("/")[2]
        self._counts[name] = self._counts.get(name, 0) + 1
        score = trial.user_attrs.get("score", math.nan)
        if trial.state.name == "COMPLETE" and not math.isnan(score):
            self._best[name] = max(self._best.get(name, -math.inf), score)
        if self._bar is not None:
            leader = max(self._best, key=lambda name: self._best[name], default=name)
            self._bar.update(self._task, advance=1, description=f"searching {self._named(leader)}")

    def _named(self, name: str) -> str:
        if name not in self._best:
            return name
        return f"{name}, best {self._label} {self._sign * self._best[name]:.4g}"
