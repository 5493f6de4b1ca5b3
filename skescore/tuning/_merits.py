"""How good an extractor is by its trials, and how good it could be at most."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from skescore.metrics._knowledge import fire_score, ice_score, q_score
from skescore.scorers._evaluation import COMPLETENESSES
from skescore.scorers._rules import ice_of, negated_fire_of, negated_q_of
from skescore.tuning._objective import STOPPED
from skescore.tuning._pareto import hypervolume


def value_of(trial: FrozenTrial) -> float:
    """The score of a trial that was completed."""
    return float(trial.values[0])


def standing(trials: Sequence[FrozenTrial], scorer: Any) -> tuple[float, float]:
    """The best score of an extractor, and the bound of what it could reach.

    Parameters
    ----------
    trials : sequence of FrozenTrial
        Its trials.
    scorer : callable
        What they were scored by.

    Returns
    -------
    best : float
        Minus infinity without a score.
    bound : float
        Infinite if it is not known.
    """
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
    measure, settings = getattr(scorer, "measure", None), getattr(scorer, "settings", {})
    known = measure in (ice_of, negated_fire_of, negated_q_of)
    if not trials or not known or settings.get("completeness", "volume") not in COMPLETENESSES:
        return math.inf
    folds = list(zip(*(trial.user_attrs["folds"] for trial in trials), strict=True))

    def best(name: str, pick: Callable[[list[float]], float]) -> np.ndarray:
        return np.array([pick([result[name] for result in fold]) for fold in folds])

    size = best("size", min)
    if measure is negated_fire_of:
        return float(np.mean(-np.asarray(fire_score(best("loss", min), size, psi=settings["psi"]))))
    share = best(f"completeness_{settings['completeness']}", max)
    if measure is negated_q_of:
        return float(np.mean(-np.asarray(q_score(best("loss_q", min), size, share))))
    weights = {name: settings[name] for name in ("phi", "rho")}
    return float(np.mean(ice_score(best("performance", max), size, share, **weights)))


def contributions(done: Mapping[str, list[FrozenTrial]]) -> dict[str, float]:
    """What each extractor adds to the common front, by hypervolume.

    Parameters
    ----------
    done : dict of str to list of FrozenTrial
        Completed trials of several objectives, by extractor.

    Returns
    -------
    dict of str to float
        Minus infinity for those without a trial.
    """
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
