"""Ranges that the search spaces of several extractors share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

Space = dict[str, BaseDistribution]

#: More rules than this are never the best trade-off by any of the scores.
MOST_LEAVES = 32


class Problem(NamedTuple):
    """What the ranges depend on.

    Parameters
    ----------
    n_rows, n_features : int
        Size of the data.
    y : ndarray of shape (n_rows,)
        The target.
    task : {"classification", "regression"}
        What the rules are for.
    """

    n_rows: int
    n_features: int
    y: np.ndarray
    task: str

    @property
    def classifies(self) -> bool:
        """Whether rules conclude classes."""
        return self.task == "classification"

    @property
    def n_outputs(self) -> int:
        """Classes, or the two means that the least of regressions tells apart."""
        return len(np.unique(self.y)) if self.classifies else 2

    @property
    def spread(self) -> float:
        """Standard deviation of the target: thresholds of a regression are in its units."""
        return float(np.std(np.asarray(self.y, dtype=float))) or 1.0


class Search(NamedTuple):
    """Where to look for an extractor, and which settings to try first, the best known ahead."""

    space: Callable[[Problem], Mapping[str, BaseDistribution]]
    points: Callable[[Problem], list[dict[str, Any]]]


def leaves(problem: Problem, most: int = MOST_LEAVES) -> IntDistribution:
    """Numbers of rules: more than classes, and no more than rows can fill."""
    most = max(min(most, problem.n_rows // 2), problem.n_outputs + 1, 3)
    return IntDistribution(2, most, log=True)


def diversity(problem: Problem) -> FloatDistribution:
    """How much the answers in a box may differ: a share of other classes, or a deviation."""
    most = 0.5 if problem.classifies else problem.spread
    return FloatDistribution(0.02 * most, most, log=True)


def at_most(value: int, distribution: IntDistribution) -> int:
    """The value, or the largest one that there is."""
    return min(value, distribution.high)
