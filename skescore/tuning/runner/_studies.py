"""Optuna studies of a search, one for each extractor, and their trials."""

from __future__ import annotations

import contextlib
import copy
import datetime
import itertools
import math
import types
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from skescore.scorers import limited_quantities
from skescore.tuning._candidates import SearchLimits
from skescore.tuning._folds import FoldResult, read_all_rows, read_folds
from skescore.tuning._objective import ExtractorObjective, SearchObjective, params_key
from skescore.tuning.runner._allocation import TrialUsage
from skescore.tuning.storage import (
    HEARTBEAT,
    POSITION,
    RETRIED,
    announce_worker,
    call_with_retries,
    check_identity,
    retry_stale,
    stable_text,
)

#: User attribute of a trial that was interrupted: it is not counted and may be repeated.
INTERRUPTED = "interrupted"
#: User attribute of a trial that every search makes in addition to its budget.
BASELINE = "baseline"


def is_counted(trial: FrozenTrial) -> bool:
    """Return whether a trial of the budget was started and will not be repeated."""
    is_retried = RETRIED in trial.user_attrs and trial.state == TrialState.FAIL
    is_waiting = trial.state == TrialState.WAITING
    is_excluded = INTERRUPTED in trial.user_attrs or BASELINE in trial.user_attrs
    return not (is_waiting or is_retried or is_excluded)


def is_baseline(trial: FrozenTrial) -> bool:
    """Return whether a trial is one that every search makes in addition to its budget."""
    return BASELINE in trial.user_attrs


def is_abandoned(trial: FrozenTrial) -> bool:
    """Return whether a trial failed without being counted, after all its parameters were drawn."""
    return (
        trial.state == TrialState.FAIL and HEARTBEAT in trial.user_attrs and not is_counted(trial)
    )


def position_of(trial: FrozenTrial) -> int:
    """Return the number that a trial would have in a search without interruptions."""
    return trial.user_attrs.get(POSITION, trial.number)


def start_key(name: str, trial: FrozenTrial) -> tuple[datetime.datetime, str, int]:
    """Return a key that sorts the trials of all extractors by start, alike for all workers."""
    return trial.datetime_start or datetime.datetime.max, name, trial.number


#: Labels of measures whose names are meant for programs.
_MEASURE_LABELS = {"n_rules": "rules"}
#: Length of the longest text that fits in a table of studies.
_MAX_TEXT_LENGTH = 200


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
    """Name the objectives of a study and describe the study in short texts for people.

    Call it once after creating a study that people will inspect. Other workers may call it again:
    only new or different texts are stored.

    Parameters
    ----------
    study : optuna.Study
        The study.
    scoring : str, scorer or sequence of str
        Meaning of the values of the trials: one score, such as ``"ice"``, or one measure per
        objective of the study, such as ``("loss", "n_rules", "incompleteness")``.
    extractor : str, optional
        Name of the extractor.
    task : str, optional
        ``"classification"`` or ``"regression"``.
    data : str, optional
        Name of the data.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The rows; only their number and the number of features are stored.
    cv : int, splitter or iterable, optional
        Cross-validation, as in scikit-learn.

    Raises
    ------
    ValueError
        If the number of names in `scoring` differs from the number of objectives.

    Notes
    -----
    The names become the study's ``metric_names``, which plots and tables show. The other texts
    become its user attributes ``scoring``, ``extractor``, ``task``, ``data`` and ``cv``.

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
    is_single = isinstance(scoring, str) or not isinstance(scoring, Sequence)
    names = [_objective_name(objective) for objective in ([scoring] if is_single else scoring)]
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
        # The representation of a scorer shows its settings as well.
        "scoring": str(scoring) if is_single else ", ".join(names),
        "extractor": extractor,
        "task": task,
        "data": _data_text(data, X),
        "cv": _cv_text(cv),
    }
    attrs = study.user_attrs
    for key, text in texts.items():
        if text is not None and attrs.get(key) != (text := _shorten(text)):
            study.set_user_attr(key, text)


def _objective_name(scoring: Any) -> str:
    if isinstance(scoring, str):
        return _MEASURE_LABELS.get(scoring, scoring)
    for attribute in ("name", "__name__"):
        if isinstance(name := getattr(scoring, attribute, None), str):
            return name
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
        return " ".join(str(cv).split())  # the representation may have several lines
    return f"{len(cv)} given splits" if hasattr(cv, "__len__") else "given splits"


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_LENGTH else f"{text[: _MAX_TEXT_LENGTH - 1]}…"


#: States of the trials that TPE learns from.
_OBSERVED_STATES = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)


class ResumableTPESampler(optuna.samplers.TPESampler):
    """TPE sampler that draws the same hyperparameters whether or not a search was interrupted.

    The draws of TPE depend on the order of the trials, and a repeated trial has a later number than
    the trial it replaces. This sampler shows TPE the trials in the order of their positions. It
    reads them from the storage once per trial, not once per hyperparameter. One sampler serves one
    study.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._ordered: dict[int, tuple[optuna.Study, FrozenTrial]] = {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: Any
    ) -> Any:
        """Draw one hyperparameter."""
        study, trial = self._order_by_position(study, trial)
        return super().sample_independent(study, trial, param_name, param_distribution)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, Any]
    ) -> dict[str, Any]:
        """Draw several hyperparameters jointly."""
        if not search_space:
            return {}
        study, trial = self._order_by_position(study, trial)
        return super().sample_relative(study, trial, search_space)

    def _order_by_position(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> tuple[optuna.Study, FrozenTrial]:
        """Call the function `_order_by_position`, and cache its result for each trial."""
        if trial.number not in self._ordered:
            self._ordered[trial.number] = _order_by_position(study, trial)
        return self._ordered[trial.number]

    def after_trial(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Forget the order of the trials at a trial that has ended."""
        super().after_trial(study, trial, state, values)
        self._ordered.pop(trial.number, None)


def _order_by_position(study: optuna.Study, trial: FrozenTrial) -> tuple[optuna.Study, FrozenTrial]:
    """Return a study whose trials are numbered by their positions, and the trial in it.

    If the numbers already equal the positions, as in every search without interruptions, this is
    the study itself. Otherwise, it is a copy in memory.
    """
    trials = study.get_trials(deepcopy=False)
    if all(position_of(t) == t.number for t in trials):
        return study, trial
    observed_trials = sorted((t for t in trials if t.state in _OBSERVED_STATES), key=position_of)
    ordered_study = optuna.create_study(directions=study.directions)
    ordered_study.add_trials(map(_without_user_attrs, observed_trials))
    index = [t.number for t in observed_trials].index(trial.number)
    return ordered_study, ordered_study.get_trials(deepcopy=False)[index]


def _without_user_attrs(trial: FrozenTrial) -> FrozenTrial:
    """Copy a trial without the measurements in its user attributes, which TPE does not use."""
    trial = copy.copy(trial)
    trial.user_attrs = {}
    return trial


def fix_params(
    params: dict[str, Any], base: optuna.samplers.BaseSampler
) -> optuna.samplers.PartialFixedSampler:
    """Return a sampler that sets `params` and draws other parameters from `base`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.samplers.PartialFixedSampler(params, base)


_T = TypeVar("_T")
#: Parts of the identity in which searches that share a study of the user must agree.
_USER_STUDY_IDENTITY = ("rows", "black_box")
#: User attribute of a search's first study: the trials that were about to start together.
_PLANNED = "planned"


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Silence Optuna's log line for every trial, which repeats the leaderboard."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)


@dataclass(frozen=True)
class StudySettings:
    """Settings shared by all studies of a search.

    Attributes
    ----------
    starting_points : mapping of str to list of dict
        Hyperparameters of the first trials of each extractor.
    seed : int
        Seed of the default samplers.
    baselines : mapping of str to list of dict
        Hyperparameters that are evaluated in addition to the budget, by extractor.
    n_startup_trials : int
        Number of random trials before the default sampler learns from trials.
    limits : SearchLimits
        Limits of the search, which the default sampler treats as constraints.
    sampler, pruner : optional
        Optuna's sampler and pruner.
    storage : optuna storage, optional
        Storage shared with other workers and later searches; None keeps the studies in memory.
    study_name : str
        Prefix of the names of the studies in the storage.
    identity : mapping
        Description of the search; a study in the storage with another description is refused.
    user_studies : mapping of str to optuna.Study
        Studies of the user, by extractor.
    description : mapping
        Arguments of :func:`describe_study`.
    """

    starting_points: Mapping[str, list[dict[str, Any]]]
    seed: int
    n_startup_trials: int
    baselines: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    limits: SearchLimits = field(default_factory=SearchLimits)
    sampler: Any = None
    pruner: Any = None
    storage: Any = None
    study_name: str = ""
    identity: Mapping[str, Any] = field(default_factory=dict)
    user_studies: Mapping[str, optuna.Study] = field(default_factory=dict)
    description: Mapping[str, Any] = field(default_factory=dict)


class Studies:
    """Studies of a search, one for each extractor.

    Parameters
    ----------
    objectives : mapping of str to ExtractorObjective
        Objective of each extractor.
    objective : SearchObjective
        Objective of the search.
    settings : StudySettings
        Settings of the studies.

    Attributes
    ----------
    by_name : dict of str to optuna.Study
        Study of each extractor.
    trials : dict of str to list of FrozenTrial
        Trials of each extractor, as they were last read from the storage.
    """

    def __init__(
        self,
        objectives: Mapping[str, ExtractorObjective],
        objective: SearchObjective,
        settings: StudySettings,
    ) -> None:
        self.objectives = objectives
        self.objective = objective
        self.settings = settings
        self.is_shared = settings.storage is not None
        self.by_name: dict[str, optuna.Study] = {
            name: self.call_with_retries(lambda name=name: self._open_study(name))  # type: ignore[misc]
            for name in objectives
        }
        self.trials: dict[str, list[FrozenTrial]] = {}
        self.call_with_retries(self.read_trials)

    def _open_study(self, name: str) -> optuna.Study:
        """Return the study of an extractor: the user's, a stored one or a new one."""
        settings = self.settings
        study = settings.user_studies.get(name)
        if study is not None:
            _check_directions(study, name, self.objective)
            _check_folds(study, name, len(self.objectives[name].folds))
        else:
            uses_default_sampler = not settings.sampler and settings.limits
            study = optuna.create_study(
                study_name=f"{settings.study_name}/{name}" if self.is_shared else name,
                storage=settings.storage,
                directions=self.objective.directions,
                pruner=settings.pruner,
                sampler=self._make_sampler()
                if uses_default_sampler
                else copy.deepcopy(settings.sampler),
                load_if_exists=self.is_shared,
            )
        is_user_study = name in settings.user_studies
        if self.is_shared or is_user_study:
            _check_directions(study, name, self.objective)
            space = {key: repr(d) for key, d in self.objectives[name].space.items()}
            extractor = stable_text(self.objectives[name].prototype, {*space, "estimator"})
            identity = {**settings.identity, "space": space, "extractor": extractor}
            check_identity(study, identity, only=_USER_STUDY_IDENTITY if is_user_study else None)
        scoring = self.objective.minimized or self.objective.name
        describe_study(study, scoring=scoring, extractor=name, **settings.description)
        return study

    def call_with_retries(self, action: Callable[[], _T]) -> _T:
        """Call `action`; if the storage of the studies fails, repeat the call for a while."""
        return call_with_retries(action, self.settings.storage) if self.is_shared else action()

    def read_trials(self, *names: str) -> None:
        """Read the trials of some extractors, or of all, with one query per extractor."""
        for name in names or self.by_name:
            self.trials[name] = list(self.by_name[name].get_trials(deepcopy=False))

    def start_trial(self, name: str) -> tuple[optuna.Trial, dict[str, Any]]:
        """Start a trial of an extractor and return it with its hyperparameters.

        The sampler is seeded by the trial's position, so that an interrupted search continues as
        it would have without the interruption and workers draw different hyperparameters.
        """
        study = self.by_name[name]
        if self.is_shared:
            announce_worker(study)
        trial = study.ask()
        original_sampler = study.sampler
        try:
            self.read_trials(name)
            while self._has_earlier_waiting_trial(name, trial):
                self.interrupt(name, trial, has_params=False)
                trial = study.ask()
                self.read_trials(name)
            study.sampler = self._sampler_at(name, self._assign_position(name, trial))
            return trial, self.objectives[name].suggest(trial)
        except BaseException:
            self.interrupt(name, trial, has_params=False)
            raise
        finally:
            study.sampler = original_sampler

    def _has_earlier_waiting_trial(self, name: str, trial: optuna.Trial) -> bool:
        """Return whether a queued trial has an earlier position than one that was started."""
        position = trial.user_attrs.get(POSITION, -1)
        waiting_trials = self._trials_in_state(name, TrialState.WAITING)
        return any(t.user_attrs.get(POSITION, position) < position for t in waiting_trials)

    def _assign_position(self, name: str, trial: optuna.Trial) -> int:
        """Return the position of a started trial: its earlier position, or the next free one."""
        if (position := trial.user_attrs.get(POSITION)) is not None:
            return position
        positions, n_ahead = self._occupied_positions(name, before=trial.number)
        free_positions = (number for number in itertools.count() if number not in positions)
        position = next(itertools.islice(free_positions, n_ahead, None))
        if position != trial.number:
            trial.set_user_attr(POSITION, position)
        return position

    def _occupied_positions(self, name: str, before: float = math.inf) -> tuple[set[int], int]:
        """Return the occupied positions, and the number of trials that will get a position next.

        The latter includes only trials with a number less than `before`.
        """
        positions, n_ahead = set(), 0
        for trial in self.trials[name]:
            is_started = HEARTBEAT in trial.user_attrs and trial.state == TrialState.RUNNING
            has_position = is_started or POSITION in trial.user_attrs
            if not has_position and trial.state in (TrialState.RUNNING, TrialState.WAITING):
                n_ahead += trial.number < before
            elif is_counted(trial) or is_baseline(trial) or trial.state == TrialState.WAITING:
                positions.add(position_of(trial))
        return positions, n_ahead

    def interrupt(
        self, name: str, trial: optuna.Trial, *, repeat: bool = True, has_params: bool = True
    ) -> None:
        """End a trial so that it does not count, and queue its hyperparameters again.

        Parameters
        ----------
        name : str
            The extractor.
        trial : optuna.Trial
            The trial.
        repeat : bool, default=True
            Whether to queue the trial again. Trials in memory are never queued again.
        has_params : bool, default=True
            Whether all hyperparameters were suggested. Otherwise, only those it was queued with are
            queued again; without any, the next trial at its position gets the same hyperparameters.
        """
        study = self.by_name[name]
        with contextlib.suppress(UpdateFinishedTrialError):
            trial.set_user_attr(INTERRUPTED, True)
            study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
            if repeat and self.is_shared:
                self.read_trials(name)
                params = self.trials[name][trial.number].system_attrs.get("fixed_params", {})
                attrs = {key: value for key, value in trial.user_attrs.items() if key == POSITION}
                if has_params:
                    params, attrs = params | trial.params, {POSITION: trial.number} | attrs
                if has_params or params:
                    study.enqueue_trial(params, user_attrs=attrs)

    def has_pruner(self, name: str) -> bool:
        """Return whether a study of the user prunes trials between folds."""
        pruner = self.by_name[name].pruner
        return (
            not self.objective.minimized
            and name in self.settings.user_studies
            and not isinstance(pruner, optuna.pruners.NopPruner)
        )

    def _sampler_at(self, name: str, position: int) -> optuna.samplers.BaseSampler:
        """Return the sampler for the trial at a position."""
        sampler = self.by_name[name].sampler
        if self.settings.sampler is None and name not in self.settings.user_studies:
            words = [self.settings.seed, zlib.crc32(name.encode()), position]
            sampler = self._make_sampler(int(np.random.SeedSequence(words).generate_state(1)[0]))
        starting_points = self.settings.starting_points.get(name, [])
        n_ahead = sum(map(is_baseline, self.trials[name]))
        if 0 <= position - n_ahead < len(starting_points):
            sampler = fix_params(starting_points[position - n_ahead], sampler)
        for trial in self.trials[name]:
            if position_of(trial) == position and is_abandoned(trial):
                sampler = fix_params(trial.params, sampler)
        return sampler

    def _make_sampler(self, seed: int | None = None) -> optuna.samplers.BaseSampler:
        """Return the default sampler, which treats the limits of the search as constraints."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            # Optuna 5 deprecates the argument, and Optuna 4 has no other.
            warnings.filterwarnings("ignore", "`constraints_func`", FutureWarning)
            return ResumableTPESampler(
                seed=seed,
                n_startup_trials=self.settings.n_startup_trials,
                constant_liar=True,
                constraints_func=self._violations if self.settings.limits else None,
            )

    def _violations(self, trial: FrozenTrial) -> tuple[float, ...]:
        attrs = trial.user_attrs
        folds = read_folds(attrs.get("folds")) or (FoldResult({}),)
        return self.settings.limits.violations(folds, read_all_rows(attrs.get("all_rows")))

    def counted_trials(self, name: str) -> list[FrozenTrial]:
        """Return the started trials of an extractor that will not be repeated, by position."""
        return sorted(filter(is_counted, self.trials[name]), key=position_of)

    def measured_trials(self, name: str) -> list[FrozenTrial]:
        """Return the trials of an extractor that are results of the search, baselines first.

        Several workers may have stored the same baseline at the same time; the first one counts.
        """
        baselines = {params_key(t.params): t for t in reversed(self.trials[name]) if is_baseline(t)}
        unique_baselines = sorted(baselines.values(), key=lambda trial: trial.number)
        return [*unique_baselines, *self.counted_trials(name)]

    def find_baseline(self, name: str, params: dict[str, Any]) -> FrozenTrial | None:
        """Return the first baseline of an extractor with these hyperparameters, if any."""
        key = params_key(params)
        baselines = filter(is_baseline, self.trials[name])
        return next((trial for trial in baselines if params_key(trial.params) == key), None)

    def compared_measures(self) -> dict[str, float]:
        """Return the measures, besides the parts of scores, by which candidates are compared.

        These are measures of the objective and of the limits. The value of each is 1 if greater is
        better, else -1.
        """
        result = {}
        for measure, loss_of in self.objective.losses:
            result[measure] = math.copysign(1.0, loss_of(0.0) - loss_of(1.0))
        quantities = limited_quantities()
        for limit in self.settings.limits.values:
            result[quantities[limit].name] = quantities[limit].sign
        return result

    def make_baseline(self, name: str, params: dict[str, Any]) -> FrozenTrial:
        """Return a trial in addition to the budget, with the state FAIL until it is evaluated."""
        space = self.objectives[name].space
        return optuna.trial.create_trial(
            state=TrialState.FAIL,
            params=params,
            distributions={
                key: _distribution_containing(space, key, value) for key, value in params.items()
            },
            user_attrs={BASELINE: True},
        )

    def add_baseline(self, name: str, trial: FrozenTrial) -> None:
        """Store a trial in addition to the budget."""
        if self.settings.limits and trial.state != TrialState.FAIL:
            # Optuna's samplers with constraints store this attribute in their trials.
            trial.system_attrs = {"constraints": list(self._violations(trial))}
        self.by_name[name].add_trial(trial)

    def usage(
        self,
        before: tuple[str, FrozenTrial] | None = None,
        without: Collection[tuple[str, int]] = (),
    ) -> dict[str, TrialUsage]:
        """Return the budget that each extractor has used.

        Parameters
        ----------
        before : tuple of (str, FrozenTrial), optional
            An extractor and its trial; only trials that started earlier are included.
        without : collection of (str, int), default=()
            Extractors and numbers of trials that are left out.
        """
        result = {}
        for name in self.by_name:
            trials = [t for t in self.counted_trials(name) if (name, t.number) not in without]
            if before is not None:
                trials = [t for t in trials if start_key(name, t) < start_key(*before)]
            seconds = [trial.duration.total_seconds() for trial in trials if trial.duration]
            result[name] = TrialUsage(len(trials), sum(seconds))
        return result

    def n_started(self) -> int:
        """Return the number of started trials that count."""
        return sum(entry.n_started for entry in self.usage().values())

    def retry_stale(self) -> None:
        """Queue trials again whose worker has ended."""
        for name, study in self.by_name.items():
            if retry_stale(study, running=self._trials_in_state(name, TrialState.RUNNING)):
                self.read_trials(name)

    def n_waiting(self) -> dict[str, int]:
        """Return the number of queued trials of each extractor that has any."""
        return self._count_trials(TrialState.WAITING)

    def n_running(self) -> dict[str, int]:
        """Return the number of running trials of each extractor that has any."""
        return self._count_trials(TrialState.RUNNING)

    def n_unfinished(self) -> int:
        """Return the number of queued and running trials."""
        return sum(self.n_waiting().values()) + sum(self.n_running().values())

    def record_plan(self, names: list[str]) -> None:
        """Store which trials are about to start together, in case this process ends first."""
        n_positions = {name: self._n_positions(name) + names.count(name) for name in names}
        self._first_study().set_user_attr(_PLANNED, {"names": names, "n_positions": n_positions})

    def planned_trials(self) -> list[str]:
        """Return the extractors of planned trials that an interrupted search has not started."""
        plan = self._first_study().user_attrs.get(_PLANNED) or {}
        n_missing = {
            name: n_positions - self._n_positions(name)
            for name, n_positions in plan.get("n_positions", {}).items()
            if name in self.by_name
        }
        result: list[str] = []
        for name in reversed(plan.get("names", [])):
            if n_missing.get(name, 0) > 0:
                n_missing[name] -= 1
                result.insert(0, name)
        return result

    def _n_positions(self, name: str) -> int:
        positions, n_ahead = self._occupied_positions(name)
        return len(positions) + n_ahead

    def _first_study(self) -> optuna.Study:
        return next(iter(self.by_name.values()))

    def _count_trials(self, state: TrialState) -> dict[str, int]:
        numbers = {name: len(self._trials_in_state(name, state)) for name in self.by_name}
        return {name: number for name, number in numbers.items() if number}

    def _trials_in_state(self, name: str, state: TrialState) -> list[FrozenTrial]:
        return [trial for trial in self.trials[name] if trial.state == state]


def _distribution_containing(space: Mapping[str, Any], key: str, value: Any) -> Any:
    """Return the distribution of a parameter, widened to contain a value."""
    distribution = space.get(key)
    if distribution is None:
        return optuna.distributions.CategoricalDistribution((value,))
    if isinstance(distribution, optuna.distributions.IntDistribution):
        low, high = min(distribution.low, value), max(distribution.high, value)
        return optuna.distributions.IntDistribution(low, high, log=distribution.log)
    return distribution


def run_callbacks(
    callbacks: Sequence[Callable[..., None]], study: optuna.Study, trial: FrozenTrial
) -> bool:
    """Call the callbacks after a trial and return whether one of them stopped the study."""
    request = _StopRequest(study)
    study.stop = request  # type: ignore[method-assign]
    try:
        for callback in callbacks:
            callback(study, trial)
    finally:
        del study.stop
    return request.is_made


class _StopRequest:
    """Replacement for `Study.stop`, which Optuna allows inside of `Study.optimize` only."""

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self.is_made = False

    def __call__(self) -> None:
        self.is_made = True

    def __reduce__(self) -> tuple[Any, ...]:
        """Restore Optuna's own method in a study that a callback copies or pickles."""
        return types.MethodType, (optuna.Study.stop, self.study)


def _check_folds(study: optuna.Study, name: str, n_folds: int) -> None:
    """Raise an error if a study of the user has trials that were not measured on these folds."""
    for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
        if len(trial.user_attrs.get("folds", ())) != n_folds:
            raise ValueError(
                f"studies[{name!r}] holds trials that were not measured on {n_folds} folds by "
                f"ExtractorObjective, such as trial {trial.number}. Pass a study without trials, "
                "or one of the same search."
            )


def _check_directions(study: optuna.Study, name: str, objective: SearchObjective) -> None:
    """Raise an error if a study has other directions than the objective of the search."""
    directions = [direction.name.lower() for direction in study.directions]
    if directions != objective.directions:
        raise ValueError(
            f"The study {study.study_name!r} of {name!r} has the directions {directions}, but the "
            f"search of {', '.join(objective.metric_names)} needs {objective.directions}. Choose "
            "another study name for this search, or create the study with these directions."
        )
