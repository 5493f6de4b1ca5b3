"""Optuna studies of a search, one for each extractor."""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import math
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from skescore.tuning._candidates import Limits, SearchObjective
from skescore.tuning._objective import (
    ExtractorObjective,
)
from skescore.tuning.runner._allocation import Standing
from skescore.tuning.runner._description import describe_study
from skescore.tuning.runner._sampler import _fixed, _SamplerByPlace
from skescore.tuning.runner._trials import INTERRUPTED, _begun, _is_given_up, _place, counts
from skescore.tuning.storage import (
    HEARTBEAT,
    PLACE,
    announce_worker,
    check_identity,
    patiently,
    retry_stale,
    stable_text,
)

#: In what searches that share a study of the caller's must agree: it may be gone on with by others.
_OF_GIVEN = ("rows", "black_box")
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


_T = TypeVar("_T")


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
