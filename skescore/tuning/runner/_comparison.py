"""Comparison of trials and extractors by their finished trials."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from skescore.scorers import measured_quantities
from skescore.tuning._fold_result import FoldResult, read_all_rows, read_folds
from skescore.tuning._objective import STOPPED, params_key
from skescore.tuning._pareto import hypervolume
from skescore.tuning._search_objective import score_of_parts
from skescore.tuning.runner._trials import value_of


def score_and_bound(
    trials: Sequence[FrozenTrial], scorer: Any, *, is_race: bool = False
) -> tuple[float, float]:
    """Return the best score of an extractor and an upper bound on the score it can reach.

    In a race, an extractor whose trials were all pruned has no score: minus infinity.
    """
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    pruned = [trial for trial in trials if STOPPED in trial.user_attrs]
    best = max(map(value_of, complete), default=-math.inf)
    if not pruned:
        return best, _upper_bound(complete, scorer)
    # Trials that were stopped between folds are not measured on all of them: there is no bound.
    if not complete and not is_race:
        best = max(float(trial.user_attrs["score"]) for trial in pruned)
    return best, math.inf


def _upper_bound(trials: list[FrozenTrial], scorer: Any) -> float:
    """Return the score of the best value of every part on each fold; infinite if unknown."""
    parts_and_score = score_of_parts(scorer)
    if not trials or parts_and_score is None:
        return math.inf
    names, score = parts_and_score
    signs = _part_signs()
    folds = list(zip(*(read_folds(trial.user_attrs["folds"]) for trial in trials), strict=True))
    best = {
        name: np.array(
            [(max if signs[name] > 0 else min)([result[name] for result in fold]) for fold in folds]
        )
        for name in names
    }
    return float(np.mean(score(best)))


def hypervolume_contributions(trials: Mapping[str, list[FrozenTrial]]) -> dict[str, float]:
    """Return the hypervolume that each extractor adds to the front of all complete trials."""
    values = {
        name: np.array([t.values for t in complete])
        for name, complete in trials.items()
        if complete
    }
    result = dict.fromkeys(trials, -math.inf)
    if not values:
        return result
    all_values = np.concatenate(list(values.values()))
    reference = all_values.max(axis=0) + 0.1 * np.ptp(all_values, axis=0) + 1e-9
    unit = reference - all_values.min(axis=0)

    def volume(fronts: list[np.ndarray]) -> float:
        if not fronts:
            return 0.0
        return hypervolume(np.concatenate(fronts) / unit, reference / unit)

    total = volume(list(values.values()))
    for name, own_values in values.items():
        other_values = [array for other, array in values.items() if other != name]
        # Of extractors that add nothing, the one with the better front of its own is ahead.
        result[name] = total - volume(other_values) + 1e-3 * volume([own_values])
    return result


def measured_parts(
    results: Sequence[FoldResult], measures: Mapping[str, float] | None = None
) -> np.ndarray:
    """Return the parts of the score on each fold, one row per fold; greater is better.

    `measures` are further columns: their names, and 1 if greater is better, else -1.
    """
    signs = _part_signs() | {**(measures or {})}
    return np.array([[sign * r.get(name) for name, sign in signs.items()] for r in results])


#: Measures in which a candidate must be worse to lose a race. Measures of covered rows alone are
#: left out, because rules that cover few rows are always good in them.
_RACED = ("score", "loss", "size", "completeness_volume")


def raced_parts(parts: np.ndarray) -> np.ndarray:
    """Return the columns of :func:`measured_parts` that decide a race, the loss second.

    Further measures, in the last columns, decide as well.
    """
    names = list(_part_signs())
    further = range(len(names), parts.shape[1])
    return parts[:, [*(names.index(name) for name in _RACED), *further]]


def _part_signs() -> dict[str, float]:
    """Return the parts of scores: 1 if greater is better, -1 if less is better."""
    parts = {q.name: q.sign for q in measured_quantities(costs=False).values()}
    del parts["n_rules"]  # no score depends on it: `size` is the number that scores count
    return {"score": 1.0, **parts}


@dataclass(frozen=True)
class FinishedTrial:
    """Measurements of a trial on all folds, which a trial with equal hyperparameters shares."""

    number: int
    results: list[FoldResult]
    all_rows: FoldResult | None


class ResultCache:
    """Results of the finished trials of a search.

    Parameters
    ----------
    n_folds : int
        Number of folds; trials that were measured on fewer folds are not included.
    measures : mapping of str to float, optional
        Further measures by which trials are compared: 1 if greater is better, -1 if less is.
    """

    def __init__(self, n_folds: int, measures: Mapping[str, float] | None = None) -> None:
        self.n_folds = n_folds
        self.measures = measures or {}
        self._by_params: dict[tuple[str, str], FinishedTrial] = {}
        self._parts: dict[tuple[str, int], np.ndarray] = {}
        self._n_read: dict[str, int] = {}

    def get(self, name: str, params: dict[str, Any]) -> FinishedTrial | None:
        """Return the first finished trial of an extractor with these hyperparameters."""
        return self._by_params.get((name, params_key(params)))

    def add(self, name: str, params: dict[str, Any], finished: FinishedTrial) -> None:
        """Add a trial unless there is one with equal hyperparameters."""
        self._by_params.setdefault((name, params_key(params)), finished)

    def parts_of(self, results: Sequence[FoldResult]) -> np.ndarray:
        """Return the measures by which trials are compared; see :func:`measured_parts`."""
        return measured_parts(results, self.measures)

    def rivals(self) -> list[np.ndarray]:
        """Return the measures of all trials whose rules, extracted from all rows, have a score."""
        return list(self._parts.values())

    def update(self, trials: Mapping[str, Sequence[FrozenTrial]]) -> None:
        """Add the finished trials among those that were read from the storage."""
        for name, read_trials in trials.items():
            n_read = self._n_read.get(name, 0)
            while n_read < len(read_trials) and read_trials[n_read].state.is_finished():
                self._add_trial(name, read_trials[n_read])
                n_read += 1
            self._n_read[name] = n_read
            for trial in read_trials[n_read:]:
                if trial.state.is_finished():
                    self._add_trial(name, trial)

    def _add_trial(self, name: str, trial: FrozenTrial) -> None:
        folds = read_folds(trial.user_attrs.get("folds"))
        if len(folds) != self.n_folds or "same_as" in trial.user_attrs:
            return
        all_rows = read_all_rows(trial.user_attrs.get("all_rows"))
        self.add(name, trial.params, FinishedTrial(trial.number, list(folds), all_rows))
        # A trial whose rules could not be extracted from all rows cannot win.
        score = math.nan if all_rows is None else all_rows.get("score")
        if math.isfinite(score) and (name, trial.number) not in self._parts:
            self._parts[name, trial.number] = self.parts_of(folds)
