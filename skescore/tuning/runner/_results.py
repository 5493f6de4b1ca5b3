"""Results of finished trials, which other trials are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial

from skescore.tuning._fold_result import FoldResult, read_all_rows, read_folds
from skescore.tuning._objective import params_key
from skescore.tuning.runner._comparison import measured_parts


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
