"""Ranges that the search spaces of several extractors share."""

from __future__ import annotations

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

Space = dict[str, BaseDistribution]

#: More rules than this are never the best trade-off by any of the scores.
MOST_LEAVES = 32


def leaves(n_rows: int, y: np.ndarray, task: str, most: int = MOST_LEAVES) -> IntDistribution:
    """Numbers of rules: more than classes, and no more than rows can fill."""
    n_outputs = len(np.unique(y)) if task == "classification" else 2
    return IntDistribution(2, max(min(most, n_rows // 2), n_outputs + 1, 3), log=True)


def spread(y: np.ndarray) -> float:
    """Standard deviation of a target: thresholds of a regression are in its units."""
    return float(np.std(np.asarray(y, dtype=float))) or 1.0


def diversity(y: np.ndarray, task: str) -> FloatDistribution:
    """How much the answers in a box may differ: a share of other classes, or a deviation."""
    most = 0.5 if task == "classification" else spread(y)
    return FloatDistribution(0.02 * most, most, log=True)
