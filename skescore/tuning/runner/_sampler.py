"""TPE sampler of searches that may be interrupted and resumed."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.trial import FrozenTrial, TrialState

from skescore.tuning.runner._trials import position_of

#: States of the trials that TPE learns from.
_OBSERVED_STATES = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING)


class ResumableTPESampler(optuna.samplers.TPESampler):
    """TPE sampler that draws the same hyperparameters in a resumed search as in an unbroken one.

    The draws of TPE depend on the order of the trials, and a repeated trial has a later number
    than the one it replaces. This sampler shows TPE the trials in the order of their positions.
    It reads them from the storage once per trial, not once per hyperparameter. One sampler serves
    one study.
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
        """Return the study and the trial ordered at the first hyperparameter of the trial."""
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

    The study itself is returned if its numbers are the positions already, as in every search
    without interruptions. Otherwise, it is a copy in memory.
    """
    trials = study.get_trials(deepcopy=False)
    if all(position_of(other) == other.number for other in trials):
        return study, trial
    observed = sorted((t for t in trials if t.state in _OBSERVED_STATES), key=position_of)
    ordered_study = optuna.create_study(directions=study.directions)
    ordered_study.add_trials(map(_without_user_attrs, observed))
    index = [other.number for other in observed].index(trial.number)
    return ordered_study, ordered_study.get_trials(deepcopy=False)[index]


def _without_user_attrs(trial: FrozenTrial) -> FrozenTrial:
    """Copy a trial without the measurements in its user attributes, which TPE does not use."""
    trial = copy.copy(trial)
    trial.user_attrs = {}
    return trial


def fix_params(
    params: dict[str, Any], base: optuna.samplers.BaseSampler
) -> optuna.samplers.PartialFixedSampler:
    """Return a sampler that sets `params` and draws the others from `base`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.samplers.PartialFixedSampler(params, base)
