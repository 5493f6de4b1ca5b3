"""An extractor and a score that skescore has never heard of."""

from __future__ import annotations

from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, IntDistribution

from skescore.extractors import BaseExtractor
from skescore.rules import Interval, Rule, RuleSet, RuleStatistics
from skescore.scorers import ScoreSpec


def brief_score(loss: Any, size: Any) -> Any:
    """Errors, and a hundredth of an error per rule."""
    return loss + 0.01 * size


#: A score that skescore has never heard of.
BRIEF = ScoreSpec(
    "brief",
    brief_score,
    greater_is_better=False,
    prediction="loss",
    uses_completeness=False,
    metrics={"classification": "accuracy", "regression": "mean_absolute_error"},
)


class TheirExtractor(BaseExtractor):
    """Bands along the feature that tells most.

    Parameters
    ----------
    estimator : estimator
        The black box.
    n_bands : int, default=4
        How many bands to cut.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        n_bands: int = 4,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_bands = n_bands
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    @classmethod
    def search_space(cls, n_rows: int, y: np.ndarray, task: str) -> dict[str, BaseDistribution]:
        """Where a search shall look."""
        return {"n_bands": IntDistribution(2, 9 if task == "regression" else min(n_rows, 6))}

    @classmethod
    def starting_points(cls, n_outputs: int) -> list[dict[str, Any]]:
        """What a search shall try first."""
        return [{"n_bands": n_outputs + 1}]

    def _check_parameters(self) -> None:
        if not isinstance(self.n_bands, int | np.integer) or self.n_bands < 1:
            raise ValueError(f"n_bands must be an integer of at least 1, got {self.n_bands!r}.")

    def _extract(self, extraction: Any) -> RuleSet:
        X, answers = extraction.X, extraction.predictions
        cuts = [self._cuts(X[:, j]) for j in range(X.shape[1])]
        left_over = [self._variance_within(X[:, j], answers, c) for j, c in enumerate(cuts)]
        best = int(np.argmin(left_over))
        bands = np.digitize(X[:, best], cuts[best], right=True)
        edges = [-np.inf, *cuts[best], np.inf]
        rules = []
        for band in range(len(edges) - 1):
            inside = answers[bands == band]
            if len(inside):
                lower, upper = float(edges[band]), float(edges[band + 1])
                condition = Interval(best, lower=lower, upper=upper, lower_closed=False)
                rules.append(self._rule(condition, inside, extraction.classes))
        return RuleSet(rules, **extraction.settings)

    def _cuts(self, column: np.ndarray) -> np.ndarray:
        shares = np.linspace(0, 1, self.n_bands + 1)[1:-1]
        return np.unique(np.quantile(column, shares, method="lower"))

    @staticmethod
    def _variance_within(column: np.ndarray, answers: np.ndarray, cuts: np.ndarray) -> float:
        bands = np.digitize(column, cuts, right=True)
        parts = [answers[bands == band] for band in np.unique(bands)]
        return float(sum(len(part) * np.var(part) for part in parts))

    @staticmethod
    def _rule(condition: Interval, inside: np.ndarray, classes: Any) -> Rule:
        if classes is None:
            return Rule([condition], float(inside.mean()), RuleStatistics(len(inside)))
        counts = np.bincount(inside, minlength=len(classes))
        statistics = RuleStatistics(len(inside), class_counts=tuple(counts.tolist()))
        return Rule([condition], classes.tolist()[int(counts.argmax())], statistics)
