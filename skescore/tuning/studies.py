"""One Optuna study per extractor, quietly and with failures on record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import optuna

from skescore.tuning.objective import ExtractorObjective


@contextlib.contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Keep Optuna's line per trial out of the caller's log; it is in the leaderboard."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def run_study(
    objective: ExtractorObjective,
    n_trials: int,
    seed: int,
    first: list[dict[str, Any]],
    timeout: float | None,
    callbacks: Sequence[Callable[..., None]] | None,
) -> optuna.Study:
    """Search the hyper-parameters of one extractor.

    Parameters
    ----------
    objective : ExtractorObjective
        What is maximised.
    n_trials : int
        How many trials to run.
    seed : int
        Seed of the sampler.
    first : list of dict
        Parameters to try before the sampler chooses.
    timeout : float or None
        Seconds after which no further trial starts.
    callbacks : sequence of callable or None
        Called as ``callback(study, trial)`` after every trial.

    Returns
    -------
    optuna.Study
        The finished study; a candidate that failed has the user attribute ``error``.
    """

    def recorded(trial: optuna.trial.Trial) -> float:
        try:
            return objective(trial)
        except Exception as error:
            trial.set_user_attr("error", f"{type(error).__name__}: {error}")
            raise

    with _quiet_optuna():
        study = optuna.create_study(
            study_name=objective.name,
            direction="maximize",
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=max(5, n_trials // 4)),
        )
        for params in first[:n_trials]:
            study.enqueue_trial(params)
        # One candidate that fails is a row of the leaderboard, not the end of the search.
        study.optimize(
            recorded, n_trials=n_trials, timeout=timeout, catch=(Exception,), callbacks=callbacks
        )
    return study
