"""One Optuna study per extractor: opened, asked, told, and read again."""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.exceptions import ExperimentalWarning, UpdateFinishedTrialError
from optuna.trial import FrozenTrial, TrialState

from skescore.tuning._allocation import Standing
from skescore.tuning._objective import ExtractorObjective
from skescore.tuning._winner import SearchObjective
from skescore.tuning.storage import RETRY_OF, retry_stale

# --- what a study says of itself to whoever opens it later, as in optuna-dashboard ---------------

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


# --- One Optuna study per extractor: opened, asked, told, and read again -------------------------

#: Where a study keeps what it was made with, so that nobody continues another search by mistake.
_SETTINGS = "skescore"
#: Marks trials that were stopped by hand: they count for nothing and are tried again.
INTERRUPTED = "interrupted"


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna's line per trial out of the caller's log; it is in the leaderboard."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


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
        self.sampler = sampler
        self.shared = storage is not None
        self.studies: dict[str, optuna.Study] = {}
        self.given = dict(given or {})
        for name in objectives:
            study = self.given.get(name)
            if study is not None:
                _check_directions(study, name, objective)
                _check_folds(study, name, len(objectives[name].folds))
            else:
                study = optuna.create_study(
                    study_name=f"{study_name}/{name}" if self.shared else name,
                    storage=storage, directions=objective.directions, pruner=pruner,
                    sampler=copy.deepcopy(sampler), load_if_exists=self.shared,
                )  # fmt: skip
            if self.shared:
                space = {key: repr(d) for key, d in objectives[name].space.items()}
                _check_settings(study, name, {**(settings or {}), "space": space}, objective)
            scoring = objective.minimised or objective.name
            describe_study(study, scoring=scoring, extractor=name, **(about or {}))
            self.studies[name] = study
        #: All trials of every extractor, as they were when they were last read.
        self.trials: dict[str, list[FrozenTrial]] = {}
        self.read()

    def read(self, *names: str) -> None:
        """Read the trials of some extractors anew, or of all: each costs a storage a query."""
        for name in names or self.studies:
            self.trials[name] = list(self.studies[name].get_trials(deepcopy=False))

    def ask(self, name: str) -> tuple[optuna.Trial, dict[str, Any]]:
        """Begin a trial of an extractor; gives it and its hyper-parameters."""
        study = self.studies[name]
        trial = study.ask()
        before = study.sampler
        try:
            # By the trial's index among those that count: a search that was broken off goes on as
            # it would have, and workers draw differently.
            self.read(name)
            index = sum(other.number < trial.number for other in self.counted(name))
            if self.sampler is None and name not in self.given:
                study.sampler = self._default_sampler(name, index)
            first = self.first.get(name, [])
            if index < len(first):
                study.sampler = _fixed(first[index], study.sampler)
            return trial, self.objectives[name].suggest(trial)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                self.interrupt(name, trial)
            else:
                study.tell(trial, state=TrialState.FAIL)
            raise
        finally:
            study.sampler = before

    def interrupt(self, name: str, trial: optuna.Trial, *, again: bool = True) -> None:
        """End a trial that does not count; in a storage its parameters may be tried again."""
        study = self.studies[name]
        with contextlib.suppress(UpdateFinishedTrialError):
            trial.set_user_attr(INTERRUPTED, True)
            study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
            if again and self.shared:
                self.read(name)
                fixed = self.trials[name][trial.number].system_attrs.get("fixed_params", {})
                study.enqueue_trial(fixed | trial.params)

    def has_pruner(self, name: str) -> bool:
        """Whether a study of the caller's stops trials between folds."""
        pruner = self.studies[name].pruner
        single = not self.objective.minimised
        return single and name in self.given and not isinstance(pruner, optuna.pruners.NopPruner)

    def _default_sampler(self, name: str, index: int) -> optuna.samplers.BaseSampler:
        words = [self.seed, zlib.crc32(name.encode()), index]
        seed = int(np.random.SeedSequence(words).generate_state(1)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            return optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=self.n_startup, constant_liar=True
            )

    def counted(self, name: str) -> list[FrozenTrial]:
        """The trials of an extractor that were begun, but for those that are to be repeated."""
        trials = self.trials[name]
        again = {trial.user_attrs[RETRY_OF] for trial in trials if RETRY_OF in trial.user_attrs}
        return [
            trial
            for trial in trials
            if trial.state != TrialState.WAITING
            and INTERRUPTED not in trial.user_attrs
            and trial.number not in again
        ]

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


def _check_settings(
    study: optuna.Study, name: str, settings: dict[str, Any], objective: SearchObjective
) -> None:
    """Raise if a stored study belongs to another search."""
    _check_directions(study, name, objective)
    wanted = json.loads(json.dumps(settings, default=repr))
    known = study.user_attrs.get(_SETTINGS)
    if known is None:
        study.set_user_attr(_SETTINGS, wanted)
        return
    different = [key for key in wanted if known.get(key) != wanted[key]]
    if different:
        told = "; ".join(
            "other rows, target or folds"
            if key == "rows"
            else f"{key} {known.get(key)!r}, now {wanted[key]!r}"
            for key in different
        )
        raise ValueError(
            f"The stored study {study.study_name!r} belongs to another search ({told}). Give this "
            "search a study name of its own, or repeat that one with the same data, black box "
            "(with its random_state), folds, scoring, spaces and seed."
        )
