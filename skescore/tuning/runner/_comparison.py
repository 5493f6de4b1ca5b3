"""Comparison of extractors by their finished trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from skescore.scorers import SCORE_SPECS
from skescore.tuning._candidates import score_of_parts
from skescore.tuning._objective import (
    STOPPED,
)
from skescore.tuning._pareto import hypervolume


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
