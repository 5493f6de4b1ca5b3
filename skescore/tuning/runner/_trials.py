"""Trials of a search: which of them count, and their positions in it."""

from __future__ import annotations

import datetime

from optuna.trial import FrozenTrial, TrialState

from skescore.tuning.storage import (
    HEARTBEAT,
    PLACE,
    RETRIED,
)

#: Marks trials that were stopped by hand: they count for nothing and are tried again.
INTERRUPTED = "interrupted"


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
