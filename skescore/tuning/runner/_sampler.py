"""TPE sampler of searches that may be interrupted and resumed."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.trial import FrozenTrial

from skescore.tuning.runner._trials import _place


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


def _fixed(
    params: dict[str, Any], base: optuna.samplers.BaseSampler
) -> optuna.samplers.PartialFixedSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.samplers.PartialFixedSampler(params, base)
