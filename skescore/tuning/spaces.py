"""Where to look: the hyper-parameters of every extractor and their ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from skescore._text import did_you_mean
from skescore.metrics.prediction import TASKS

Space = dict[str, BaseDistribution]

#: More rules than this are never the best trade-off by any of the scores.
_MOST_LEAVES = 32


def _cart(n_rows: int, y: np.ndarray, task: str) -> Space:
    n_outputs = len(np.unique(y)) if task == "classification" else 2
    most = max(min(_MOST_LEAVES, n_rows // 2), n_outputs + 1, 3)
    return {
        "max_leaves": IntDistribution(2, most, log=True),
        "max_depth": IntDistribution(2, 8),
        "min_samples_leaf": IntDistribution(1, max(1, n_rows // 20), log=True),
        "criterion": CategoricalDistribution(
            ("gini", "entropy")
            if task == "classification"
            else ("squared_error", "absolute_error")
            if n_rows <= 5000  # the absolute error takes quadratic time
            else ("squared_error",)
        ),
    }


def _gridex(n_rows: int, y: np.ndarray, task: str) -> Space:
    if task == "classification":
        low, high = 0.01, 0.5
    else:
        # The threshold is a standard deviation in the target's units.
        spread = float(np.std(np.asarray(y, dtype=float))) or 1.0
        low, high = 0.02 * spread, spread
    return {
        "n_slices": IntDistribution(2, 10, log=True),
        "importance_threshold": FloatDistribution(0.0, 1.0),
        "depth": IntDistribution(1, 3),
        "threshold": FloatDistribution(low, high, log=True),
        "min_examples": CategoricalDistribution((1, 25)),
    }


_SPACES: dict[str, Callable[[int, np.ndarray, str], Space]] = {"cart": _cart, "gridex": _gridex}


def search_space(name: str, X: Any, y: Any, *, task: str | None = None) -> Space:
    """Give the hyper-parameters of an extractor to search, and their ranges for some data.

    Parameters
    ----------
    name : str
        A registered extractor.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; their number bounds sizes.
    y : array-like of shape (n_rows,)
        The target; its spread scales thresholds.
    task : {"classification", "regression"}, optional
        By default regression for a float target, classification for any other.

    Returns
    -------
    dict of str to optuna.distributions.BaseDistribution
        May be changed freely and handed to :class:`ExtractorObjective`.

    Raises
    ------
    ValueError
        If there is no search space of that name, or no such task.

    Examples
    --------
    >>> space = search_space("cart", [[0.0]] * 100, ["a", "b"] * 50)
    >>> space["max_leaves"]
    IntDistribution(high=32, log=True, low=2, step=1)
    """
    if name not in _SPACES:
        raise ValueError(f"There is no search space for {name!r}. {did_you_mean(name, _SPACES)}")
    y = np.asarray(y)
    if task is None:
        task = "regression" if y.dtype.kind == "f" else "classification"
    if task not in TASKS:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    return _SPACES[name](len(X), y, task)


def starting_points(name: str, space: Space, y: np.ndarray, task: str) -> list[dict[str, Any]]:
    """Settings that are worth trying first; the sampler learns from them.

    Few leaves, one per class or a little more, are hard to beat by scores that weigh size; one
    well-chosen feature cut a few times is the grid's counterpart.
    """
    points: list[dict[str, Any]] = []
    n_outputs = len(np.unique(y)) if task == "classification" else 2
    if name == "cart":
        points = [{"max_leaves": n_outputs + more, "max_depth": 4} for more in (0, 1, 3)]
    elif name == "gridex":
        points = [{"n_slices": n, "importance_threshold": 0.99, "depth": 1} for n in (n_outputs, 8)]
    return [p for p in points if all(_inside(space, k, v) for k, v in p.items())]


def _inside(space: Space, name: str, value: Any) -> bool:
    distribution = space.get(name)
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        return False
    steps = 0.0 if distribution.step is None else (value - distribution.low) / distribution.step
    on_step = math.isclose(steps, round(steps), abs_tol=1e-8)
    return on_step and distribution.low <= value <= distribution.high
