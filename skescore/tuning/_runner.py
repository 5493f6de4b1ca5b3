"""The loop of a search: who comes next, extract and score, keep what was found."""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import itertools
import math
import sys
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import cloudpickle
import numpy as np
import optuna
from joblib import delayed, effective_n_jobs
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skescore._deadline import time_limit
from skescore._processes import parallel
from skescore._text import plural
from skescore.registry import extractor_label
from skescore.scorers import SCORE_SPECS
from skescore.tuning._candidates import Limits, SearchObjective, mean_of, score_of_parts
from skescore.tuning._objective import (
    STOPPED,
    ExtractorObjective,
    Fold,
    evaluate_on_fold,
    knowledge_like,
    params_key,
)
from skescore.tuning._pareto import hypervolume
from skescore.tuning.storage import (
    HEARTBEAT,
    PLACE,
    RETRIED,
    Heartbeat,
    announce_worker,
    check_identity,
    is_storage_failure,
    patiently,
    retry_stale,
    stable_text,
)

_T = TypeVar("_T")

#: With fewer trials per extractor than this, nobody is stopped: there is too little to go by.
_LEAST_TO_JUDGE = 2
#: So many extractors go on to the end: with one alone, the trade-off would be its own.
_LAST_ROUND = 2
#: With fewer trials, the best of everything that an extractor has shown says too little.
_LEAST_TO_BOUND = 3
#: The first round decides on the most extractors, and gets as much as this many of the others.
_FIRST_ROUND = 2


@dataclass(frozen=True)
class Standing:
    """What an extractor has done so far: trials that count, and the time that they took.

    Trials count if they were begun, and neither interrupted nor begun anew.
    """

    started: int
    seconds: float = 0.0


#: Judges names by their first trials: how good each is (greater is better), and how good it could
#: be at most (infinite if that is not known).
Judge = Callable[[Sequence[str], int | None], Mapping[str, tuple[float, float]]]


class Allocation:
    """Divides a budget between extractors.

    Successive halving: every round halves the number of extractors, down to two, so that most of
    the trials go to those that do best. Beside that, an extractor is stopped after a round if the
    best of all that it has shown, its smallest loss with its fewest rules and its greatest
    completeness, would not beat the best score so far.
    """

    def __init__(
        self,
        names: Sequence[str],
        n_trials: int | None,
        timeout: float | None,
        policy: str,
        *,
        priority: str = "best",
    ) -> None:
        self.names = list(names)
        self.n_trials = n_trials
        self.timeout = timeout
        self.priority = priority
        self.rounds = _rounds(len(self.names), n_trials, policy)
        self._halted: Collection[str] = ()
        #: Why extractors were stopped, as far as :meth:`allowed` knows.
        self.stopped: dict[str, str] = {}

    def allowed(
        self,
        standings: Mapping[str, Standing],
        judge: Judge,
        elapsed: float = 0.0,
        halted: Collection[str] = (),
    ) -> dict[str, int]:
        """Give how many further trials each extractor may start now."""
        self.stopped = {}
        self._halted = halted
        if self.timeout is not None and elapsed >= self.timeout:
            return {}
        if self.n_trials is None:
            return self._by_time(standings, judge, elapsed)
        left = self.n_trials - sum(standing.started for standing in standings.values())
        if left <= 0:
            self._go_through(standings, judge)
            return {}
        wanted = self._go_through(standings, judge)
        result = {}
        for name, number in wanted.items():
            if given := min(number, left):
                result[name] = given
                left -= given
        return result

    def _go_through(self, standings: Mapping[str, Standing], judge: Judge) -> dict[str, int]:
        """Go through the rounds up to the first that is not done."""
        live = [name for name in self.names if name not in self._halted]
        if not live:
            return {}
        quota = 0
        for number, (keep, each) in enumerate(self.rounds):
            if number:
                live = self._halved(live, keep, judge, quota)
            quota += each
            wanted = {
                name: quota - standings[name].started
                for name in live
                if standings[name].started < quota
            }
            if wanted:
                return wanted
        # What rounding left over, and what stopped extractors did not use.
        least = min(standings[name].started for name in live)
        return {name: 1 for name in live if standings[name].started == least}

    def _by_time(
        self, standings: Mapping[str, Standing], judge: Judge, elapsed: float
    ) -> dict[str, int]:
        """Rounds end when their share of the time is over; in one, the least served comes next."""
        assert self.timeout is not None
        weights = [_FIRST_ROUND, *[1] * (len(self.rounds) - 1)]
        live, end = [name for name in self.names if name not in self._halted], 0.0
        if not live:
            return {}
        for number, (keep, _) in enumerate(self.rounds):
            if number:
                live = self._halved(live, keep, judge, None)
            end += self.timeout * weights[number] / sum(weights)
            if elapsed < end:
                break
        fresh = [name for name in live if not standings[name].started]
        if fresh:
            return dict.fromkeys(fresh, 1)
        mean = sum(standings[name].seconds for name in live) / len(live)
        return {name: 1 for name in live if standings[name].seconds <= mean}

    def _halved(self, live: list[str], keep: int, judge: Judge, first: int | None) -> list[str]:
        """The extractors that go on, in their order; the others are told why they do not."""
        known = judge(live, first)
        ranked = sorted(live, key=lambda name: -known[name][0])  # stable: earlier named wins ties
        leader = ranked[0]
        best = known[leader][0]
        kept = {leader}
        after = "so far" if first is None else f"after {plural(first, 'trial')}"
        for rank, name in enumerate(ranked[1:], start=2):
            priority, bound = known[name]
            if priority == -math.inf:
                self.stopped[name] = f"no trial gave a score {after}"
            elif bound < best and (first is None or first >= _LEAST_TO_BOUND):
                self.stopped[name] = (
                    f"{after} its best loss with its fewest rules would give {bound:.4g}, and "
                    f"{extractor_label(leader)} had {best:.4g}"
                )
            elif rank > keep:
                self.stopped[name] = (
                    f"{after} its {self.priority} was {priority:.4g}, place {rank} of {len(live)}; "
                    f"the first {keep} went on ({extractor_label(leader)} had {best:.4g})"
                )
            else:
                kept.add(name)
        return [name for name in live if name in kept]


def _rounds(n_names: int, n_trials: int | None, policy: str) -> list[tuple[int, int]]:
    """Number of extractors in each round, and the trials of each of them."""
    if policy == "even" or n_names == 1 or (n_trials or math.inf) < _LEAST_TO_JUDGE * n_names:
        return [(n_names, 0 if n_trials is None else n_trials // n_names)]
    sizes = [n_names]
    while sizes[-1] > min(_LAST_ROUND, n_names - 1):
        sizes.append(math.ceil(sizes[-1] / 2))
    if n_trials is None:
        return [(size, 0) for size in sizes]
    unit = n_trials / (len(sizes) - 1 + _FIRST_ROUND)
    first = max(int(unit * _FIRST_ROUND / n_names), _LEAST_TO_JUDGE)
    unit = (n_trials - first * n_names) / (len(sizes) - 1)
    later = [(n, int(unit / n)) for n in sizes[1:] if unit >= n]
    if not later:  # nobody would go on
        return [(n_names, n_trials // n_names)]
    return [(n_names, first), *later]


def in_turns(allowed: Mapping[str, int]) -> list[str]:
    """Name every extractor as often as it may start a trial, one after another."""
    turns = range(max(allowed.values(), default=0))
    return [name for turn in turns for name, number in allowed.items() if number > turn]


def in_turns_beside_others(
    allowed: Mapping[str, int],
    seconds: Mapping[str, float],
    running: Collection[str],
    last: Collection[str],
) -> list[str]:
    """Name the extractors as :func:`in_turns`, in an order for one of several workers.

    What nobody else works at (`running`) comes first, of this what the worker has been at
    (`last`), and then where most work is left by the `seconds` of a trial, infinite if not
    known. So most extractors have one worker, in whose memory lies what their trials share and
    whose sampler knows of all before; and the long ones are begun early.
    """

    def rank(name: str) -> tuple[bool, float]:
        return name not in last, -allowed[name] * seconds[name]

    order = sorted(allowed, key=rank)
    free = {name: allowed[name] for name in order if name not in running}
    others = {name: allowed[name] for name in order if name in running}
    return [*in_turns(free), *in_turns(others)]


#: Measures whose names here are better known to programs than to people.
_SHOWN = {"n_rules": "rules"}
#: What a table of studies has room for.
_MOST_LETTERS = 200


def describe_study(
    study: optuna.Study,
    *,
    scoring: Any,
    extractor: str | None = None,
    task: str | None = None,
    data: str | None = None,
    X: Any = None,
    cv: Any = None,
) -> None:
    """Name a study's objectives, and note what it is about, as short texts for people.

    Use it once after making a study that others will look at. Workers that join may call it again:
    only what is new or different is written.

    Parameters
    ----------
    study : optuna.Study
        The study.
    scoring : str, scorer or sequence of str
        What the trials' values are: one score, such as ``"ice"``, or as many measures as the study
        has objectives, such as ``("loss", "n_rules", "incompleteness")``.
    extractor : str, optional
        Name of the extractor.
    task : str, optional
        Such as ``"classification"``.
    data : str, optional
        Name of the data.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The rows, of which only the numbers of rows and features are noted.
    cv : int, splitter or iterable, optional
        Cross-validation, as in scikit-learn.

    Raises
    ------
    ValueError
        If `scoring` names more or fewer values than the study has objectives.

    Notes
    -----
    The names are the study's ``metric_names``, which plots and tables show. The rest are its user
    attributes ``scoring``, ``extractor``, ``task``, ``data`` and ``cv``.

    Examples
    --------
    >>> import numpy as np, optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(directions=["minimize"] * 3)
    >>> describe_study(study, scoring=("loss", "n_rules", "incompleteness"), data="iris",
    ...                X=np.zeros((150, 4)), cv=5)
    >>> study.metric_names
    ['loss', 'rules', 'incompleteness']
    >>> study.user_attrs["data"]
    'iris (150 rows, 4 features)'
    """
    single = isinstance(scoring, str) or not isinstance(scoring, Sequence)
    names = [_name_of(part) for part in ([scoring] if single else scoring)]
    if len(names) != len(study.directions):
        raise ValueError(
            f"scoring must name each of the study's {len(study.directions)} objectives, got "
            f"{scoring!r}."
        )
    if study.metric_names != names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            study.set_metric_names(names)
    texts = {
        # A scorer's settings matter, and only its representation shows them.
        "scoring": str(scoring) if single else ", ".join(names),
        "extractor": extractor,
        "task": task,
        "data": _data_text(data, X),
        "cv": _cv_text(cv),
    }
    known = study.user_attrs
    for key, text in texts.items():
        if text is not None and known.get(key) != (text := _shortened(text)):
            study.set_user_attr(key, text)


def _name_of(scoring: Any) -> str:
    if isinstance(scoring, str):
        return _SHOWN.get(scoring, scoring)
    for attribute in ("name", "__name__"):
        if isinstance(found := getattr(scoring, attribute, None), str):
            return found
    return str(scoring)


def _data_text(name: str | None, X: Any) -> str | None:
    if X is None:
        return name
    shape = getattr(X, "shape", None) or (len(X), len(X[0]) if len(X) else 0)
    text = f"{shape[0]} rows, {shape[1]} features"
    return text if name is None else f"{name} ({text})"


def _cv_text(cv: Any) -> str | None:
    if cv is None or isinstance(cv, str):
        return cv
    if isinstance(cv, int):
        return f"{cv} folds"
    if hasattr(cv, "split"):
        return " ".join(str(cv).split())  # scikit-learn's splitters name their parameters
    return f"{len(cv)} given splits" if hasattr(cv, "__len__") else "given splits"


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"


#: In what searches that share a study of the caller's must agree: it may be gone on with by others.
_OF_GIVEN = ("rows", "black_box")
#: Marks trials that were stopped by hand: they count for nothing and are tried again.
INTERRUPTED = "interrupted"
#: User attribute of a search's first study: the extractors whose trials are begun together, and
#: how many places each has when they are.
_TO_BEGIN = "to_begin"


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna's line per trial out of the caller's log; it is in the leaderboard."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


class _SamplerByPlace(optuna.samplers.TPESampler):
    """A sampler to which trials have the numbers of an unbroken search, and are in their order.

    What it draws depends on the order of trials, and one that is tried again has a later number.
    """

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """Draw a hyper-parameter."""
        seen: Any = _StudyByPlace(study)
        return super().sample_independent(seen, _numbered(trial), param_name, param_distribution)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, Any]
    ) -> dict[str, Any]:
        """Draw hyper-parameters together."""
        seen: Any = _StudyByPlace(study)
        return super().sample_relative(seen, _numbered(trial), search_space)


class _StudyByPlace:
    """A study whose trials are numbered by their places."""

    def __init__(self, study: optuna.Study) -> None:
        self._study = study

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def _get_trials(self, *args: Any, **options: Any) -> list[FrozenTrial]:
        trials = self._study._get_trials(*args, **options)
        return sorted(map(_numbered, trials), key=_place)


def _numbered(trial: FrozenTrial) -> FrozenTrial:
    """A trial whose number is its place."""
    if _place(trial) == trial.number:
        return trial
    trial = copy.copy(trial)
    trial.number = _place(trial)
    return trial


class Studies:
    """The studies of a search."""

    def __init__(
        self,
        objectives: Mapping[str, ExtractorObjective],
        objective: SearchObjective,
        *,
        first: Mapping[str, list[dict[str, Any]]],
        seed: int,
        n_startup: int,
        limits: Limits | None = None,
        sampler: Any = None,
        pruner: Any = None,
        storage: Any = None,
        study_name: str = "",
        settings: Mapping[str, Any] | None = None,
        given: Mapping[str, optuna.Study] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.objectives = objectives
        self.objective = objective
        self.first = first
        self.seed = seed
        self.n_startup = n_startup
        self.limits = limits or Limits()
        self.sampler = sampler
        self.shared = storage is not None
        self.studies: dict[str, optuna.Study] = {}
        self.given = dict(given or {})
        self.storage = storage
        for name in objectives:
            opening = functools.partial(
                self._opened, name, study_name, pruner, settings or {}, about or {}
            )
            self.studies[name] = self.patiently(opening)
        #: All trials of every extractor, as they were when they were last read.
        self.trials: dict[str, list[FrozenTrial]] = {}
        self.patiently(self.read)

    def _opened(
        self,
        name: str,
        study_name: str,
        pruner: Any,
        settings: Mapping[str, Any],
        about: Mapping[str, Any],
    ) -> optuna.Study:
        """An extractor's study, which is found, made or given."""
        study = self.given.get(name)
        if study is not None:
            _check_directions(study, name, self.objective)
            _check_folds(study, name, len(self.objectives[name].folds))
        else:
            study = optuna.create_study(
                study_name=f"{study_name}/{name}" if self.shared else name,
                storage=self.storage,
                directions=self.objective.directions,
                pruner=pruner,
                sampler=copy.deepcopy(self.sampler)
                if self.sampler or not self.limits
                else self._sampler(),
                load_if_exists=self.shared,
            )
        if self.shared or name in self.given:
            _check_directions(study, name, self.objective)
            space = {key: repr(d) for key, d in self.objectives[name].space.items()}
            kept = stable_text(self.objectives[name].prototype, {*space, "estimator"})
            about_it = {**settings, "space": space, "extractor": kept}
            check_identity(study, about_it, only=_OF_GIVEN if name in self.given else None)
        scoring = self.objective.minimized or self.objective.name
        describe_study(study, scoring=scoring, extractor=name, **about)
        return study

    def patiently(self, action: Callable[[], _T]) -> _T:
        """Do something with the studies; where their storage fails, again for a while."""
        return patiently(action, self.storage) if self.shared else action()

    def read(self, *names: str) -> None:
        """Read the trials of some extractors anew, or of all: each costs a storage a query."""
        for name in names or self.studies:
            self.trials[name] = list(self.studies[name].get_trials(deepcopy=False))

    def ask(self, name: str) -> tuple[optuna.Trial, dict[str, Any]]:
        """Begin a trial of an extractor; gives it and its hyper-parameters."""
        study = self.studies[name]
        if self.shared:
            announce_worker(study)
        trial = study.ask()
        before = study.sampler
        try:
            # By the trial's place: a search that was broken off goes on as it would have, and
            # workers draw differently.
            self.read(name)
            while self._comes_later(name, trial):
                self.interrupt(name, trial, asked=False)
                trial = study.ask()
                self.read(name)
            place = self._placed(name, trial)
            if self.sampler is None and name not in self.given:
                study.sampler = self._default_sampler(name, place)
            first = self.first.get(name, [])
            if place < len(first):
                study.sampler = _fixed(first[place], study.sampler)
            for other in self.trials[name]:
                if _place(other) == place and _is_given_up(other):
                    study.sampler = _fixed(other.params, study.sampler)
            return trial, self.objectives[name].suggest(trial)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self.interrupt(name, trial, asked=False)
            else:
                study.tell(trial, state=TrialState.FAIL)
            raise
        finally:
            study.sampler = before

    def _comes_later(self, name: str, trial: optuna.Trial) -> bool:
        """Whether a trial that was queued is to come before one that is tried again."""
        place = trial.user_attrs.get(PLACE, -1)
        waiting = self._in_state(name, TrialState.WAITING)
        return any(other.user_attrs.get(PLACE, place) < place for other in waiting)

    def _placed(self, name: str, trial: optuna.Trial) -> int:
        """The place of a trial that has begun: the one it had before, or the first that is free."""
        if (given := trial.user_attrs.get(PLACE)) is not None:
            return given
        held, ahead = self._places(name, before=trial.number)
        free = (place for place in itertools.count() if place not in held)
        place = next(itertools.islice(free, ahead, None))
        if place != trial.number:
            trial.set_user_attr(PLACE, place)
        return place

    def _places(self, name: str, before: float = math.inf) -> tuple[set[int], int]:
        """The places that are held, and how many trials before one are about to be given theirs."""
        held, ahead = set(), 0
        for trial in self.trials[name]:
            is_begun = HEARTBEAT in trial.user_attrs and trial.state == TrialState.RUNNING
            is_placed = is_begun or PLACE in trial.user_attrs
            if not is_placed and trial.state in (TrialState.RUNNING, TrialState.WAITING):
                ahead += trial.number < before
            elif counts(trial) or trial.state == TrialState.WAITING:
                held.add(_place(trial))
        return held, ahead

    def interrupt(
        self, name: str, trial: optuna.Trial, *, again: bool = True, asked: bool = True
    ) -> None:
        """End a trial that does not count; in a storage its parameters may be tried again.

        Where not all of them had been asked for, those are that it was queued with; if there are
        none, the next one in its place is given the same.
        """
        study = self.studies[name]
        with contextlib.suppress(UpdateFinishedTrialError):
            trial.set_user_attr(INTERRUPTED, True)
            study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
            if again and self.shared:
                self.read(name)
                params = self.trials[name][trial.number].system_attrs.get("fixed_params", {})
                place = {key: value for key, value in trial.user_attrs.items() if key == PLACE}
                if asked:
                    params, place = params | trial.params, {PLACE: trial.number} | place
                if asked or params:
                    study.enqueue_trial(params, user_attrs=place)

    def has_pruner(self, name: str) -> bool:
        """Whether a study of the caller's stops trials between folds."""
        pruner = self.studies[name].pruner
        single = not self.objective.minimized
        return single and name in self.given and not isinstance(pruner, optuna.pruners.NopPruner)

    def _default_sampler(self, name: str, index: int) -> optuna.samplers.BaseSampler:
        words = [self.seed, zlib.crc32(name.encode()), index]
        return self._sampler(int(np.random.SeedSequence(words).generate_state(1)[0]))

    def _sampler(self, seed: int | None = None) -> optuna.samplers.BaseSampler:
        """The sampler of a search that was given none; also keeps what limits say of a trial."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            # Deprecated in Optuna 5, and the one way that there is in Optuna 4.
            warnings.filterwarnings("ignore", "`constraints_func`", FutureWarning)
            return _SamplerByPlace(
                seed=seed,
                n_startup_trials=self.n_startup,
                constant_liar=True,
                constraints_func=self._violations if self.limits else None,
            )

    def _violations(self, trial: FrozenTrial) -> tuple[float, ...]:
        kept = trial.user_attrs
        return self.limits.violations(kept.get("folds") or [{}], kept.get("all_rows"))

    def counted(self, name: str) -> list[FrozenTrial]:
        """The trials of an extractor that were begun, but for those that are to be repeated.

        They are in the order of an unbroken search.
        """
        return sorted(filter(counts, self.trials[name]), key=_place)

    def standings(
        self,
        before: tuple[str, FrozenTrial] | None = None,
        without: Collection[tuple[str, int]] = (),
    ) -> dict[str, Standing]:
        """What every extractor has done; by the trials begun before one, without some others."""
        result = {}
        for name in self.studies:
            trials = [trial for trial in self.counted(name) if (name, trial.number) not in without]
            if before is not None:
                trials = [trial for trial in trials if _begun(name, trial) < _begun(*before)]
            spent = [trial.duration.total_seconds() for trial in trials if trial.duration]
            result[name] = Standing(len(trials), sum(spent))
        return result

    def number_started(self) -> int:
        """How many trials were begun that count."""
        return sum(standing.started for standing in self.standings().values())

    def retry_stale(self) -> None:
        """Queue the trials anew that nobody works at any more."""
        for name, study in self.studies.items():
            if retry_stale(study, running=self._in_state(name, TrialState.RUNNING)):
                self.read(name)

    def waiting(self) -> dict[str, int]:
        """How many trials are queued that an earlier worker had begun, where there are some."""
        return self._number(TrialState.WAITING)

    def running(self) -> dict[str, int]:
        """How many trials are being worked at, where there are some; between batches by others."""
        return self._number(TrialState.RUNNING)

    def plan(self, names: list[str]) -> None:
        """Write down what is about to begin, should this process end in the midst of it."""
        until = {name: self._number_of_places(name) + names.count(name) for name in names}
        self._first().set_user_attr(_TO_BEGIN, {"names": names, "until": until})

    def left_to_begin(self) -> list[str]:
        """What a broken-off search was about to begin, and did not or lost."""
        planned = self._first().user_attrs.get(_TO_BEGIN) or {}
        left = {
            name: number - self._number_of_places(name)
            for name, number in planned.get("until", {}).items()
            if name in self.studies
        }
        result: list[str] = []
        for name in reversed(planned.get("names", [])):
            if left.get(name, 0) > 0:
                left[name] -= 1
                result.insert(0, name)
        return result

    def _number_of_places(self, name: str) -> int:
        held, ahead = self._places(name)
        return len(held) + ahead

    def _first(self) -> optuna.Study:
        return next(iter(self.studies.values()))

    def unfinished(self) -> int:
        """How many trials are queued or being worked at."""
        return sum(self.waiting().values()) + sum(self.running().values())

    def _number(self, state: TrialState) -> dict[str, int]:
        found = {name: len(self._in_state(name, state)) for name in self.studies}
        return {name: number for name, number in found.items() if number}

    def _in_state(self, name: str, state: TrialState) -> list[FrozenTrial]:
        return [trial for trial in self.trials[name] if trial.state == state]


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


def counts(trial: FrozenTrial) -> bool:
    """Whether a trial was begun, and is not to be repeated."""
    given_up = RETRIED in trial.user_attrs and trial.state == TrialState.FAIL
    waits = trial.state == TrialState.WAITING
    return not (waits or given_up or INTERRUPTED in trial.user_attrs)


def _is_given_up(trial: FrozenTrial) -> bool:
    """Whether a trial does not count that had been given all its hyper-parameters."""
    return trial.state == TrialState.FAIL and HEARTBEAT in trial.user_attrs and not counts(trial)


def _place(trial: FrozenTrial) -> int:
    return trial.user_attrs.get(PLACE, trial.number)


def _begun(name: str, trial: FrozenTrial) -> tuple[datetime.datetime, str, int]:
    """By which trials of all extractors are in one order, the same for all workers."""
    return trial.datetime_start or datetime.datetime.max, name, trial.number


def _fixed(
    params: dict[str, Any], base: optuna.samplers.BaseSampler
) -> optuna.samplers.PartialFixedSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.samplers.PartialFixedSampler(params, base)


def _check_folds(study: optuna.Study, name: str, n_folds: int) -> None:
    """Raise if a study of the caller's holds trials that cannot be compared with these."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        if len(trial.user_attrs.get("folds", ())) != n_folds:
            raise ValueError(
                f"studies[{name!r}] holds trials that were not measured on {n_folds} folds by "
                f"ExtractorObjective, such as trial {trial.number}. Pass a study without trials, "
                "or one of the same search."
            )


def _check_directions(study: optuna.Study, name: str, objective: SearchObjective) -> None:
    directions = [direction.name.lower() for direction in study.directions]
    if directions != objective.directions:
        raise ValueError(
            f"The study {study.study_name!r} of {name!r} has the directions {directions}, but the "
            f"search of {', '.join(objective.metric_names)} needs {objective.directions}. Give "
            "this search a study name of its own, or make the study with these directions."
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


def _parts(results: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """What was measured on each fold, greater being better."""
    return np.array([[sign * r[name] for name, sign in _signs().items()] for r in results])


def _signs() -> dict[str, int]:
    """What scores are made of: 1 if greater is better, -1 if less is."""
    parts = {s.kept_as: -1 if s.prediction == "loss" else 1 for s in SCORE_SPECS.values()}
    return {
        "score": 1,
        **parts,
        "size": -1,
        "completeness_volume": 1,
        "completeness_instances": 1,
    }


class SearchProgress:
    """Shows how far a search is: a bar on a terminal or in a notebook, elsewhere lines.

    Beside a terminal there is a line every few seconds, and one per extractor at the end.

    Use it as a context and as a callback of the studies.

    Parameters
    ----------
    total : int or None
        Number of trials; None where they cannot be counted.
    label : str
        Name of the score.
    sign : int, default=1
        -1 if what is maximized is the score's negative.
    shown : bool, default=True
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
        shown: bool = True,
        seconds: float = 5.0,
    ) -> None:
        self._label, self._sign = label, sign
        self._best: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._bar: Progress | None = None
        self._lines = False
        self._total = total
        self._shown = shown
        self._seconds = seconds
        self._over = threading.Event()
        self._teller: threading.Thread | None = None

    def __enter__(self) -> SearchProgress:
        if self._shown:
            console = Console(stderr=True)
            self._lines = not (console.is_terminal or console.is_jupyter)
            if self._lines:
                self._begin = time.perf_counter()
                self._teller = threading.Thread(target=self._tell, daemon=True)
                self._teller.start()
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
        if self._teller is not None:
            self._over.set()
            self._teller.join()
        if self._lines and kind is None:
            for name in self._counts:
                count = self._counts[name]
                sys.stderr.write(f"{plural(count, 'trial')} of {self._named(name)}\n")

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

    def _tell(self) -> None:
        """Write a line from time to time, also while one trial takes long."""
        while not self._over.wait(self._seconds):
            best = dict(self._best)
            done = sum(self._counts.values())
            trials = (
                f"{done} of {plural(self._total, 'trial')}"
                if self._total
                else (plural(done, "trial"))
            )
            leader = max(best, key=lambda name: best[name], default="")
            shown = f"; {self._named(leader)}" if leader else ""
            elapsed = time.perf_counter() - self._begin
            sys.stderr.write(f"{trials} after {elapsed:.0f} s{shown}\n")

    def _named(self, name: str) -> str:
        label = extractor_label(name)
        if name not in self._best:
            return label
        return f"{label}, best {self._label} {self._sign * self._best[name]:.4g}"
