"""Trials of a search: which of them count, and their positions in it."""

from __future__ import annotations

import datetime

from optuna.trial import FrozenTrial, TrialState

from skescore.tuning.storage import HEARTBEAT, POSITION, RETRIED

#: User attribute of a trial that was interrupted: it does not count and may be repeated.
INTERRUPTED = "interrupted"
#: User attribute of a trial that every search makes in addition to its budget.
BASELINE = "baseline"


def counts(trial: FrozenTrial) -> bool:
    """Return whether a trial of the budget was started and will not be repeated."""
    is_retried = RETRIED in trial.user_attrs and trial.state == TrialState.FAIL
    is_waiting = trial.state == TrialState.WAITING
    is_excluded = INTERRUPTED in trial.user_attrs or BASELINE in trial.user_attrs
    return not (is_waiting or is_retried or is_excluded)


def is_baseline(trial: FrozenTrial) -> bool:
    """Return whether a trial is one that every search makes in addition to its budget."""
    return BASELINE in trial.user_attrs


def is_abandoned(trial: FrozenTrial) -> bool:
    """Return whether a trial does not count although it had all its hyperparameters."""
    return trial.state == TrialState.FAIL and HEARTBEAT in trial.user_attrs and not counts(trial)


def position_of(trial: FrozenTrial) -> int:
    """Return the number that the trial has in a search without interruptions."""
    return trial.user_attrs.get(POSITION, trial.number)


def start_key(name: str, trial: FrozenTrial) -> tuple[datetime.datetime, str, int]:
    """Return a key that sorts the trials of all extractors by start, alike for all workers."""
    return trial.datetime_start or datetime.datetime.max, name, trial.number


def value_of(trial: FrozenTrial) -> float:
    """Return the score of a complete trial."""
    return float(trial.values[0])
