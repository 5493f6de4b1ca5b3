"""Where to look: the hyper-parameters of every extractor and their ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from skescore._text import did_you_mean
from skescore.metrics.prediction import TASKS
from skescore.registry import EXTRACTORS, PSYKE_EXTRACTORS, extractor_class, extractor_names
from skescore.tuning._psyke_spaces import PSYKE_SEARCHES
from skescore.tuning._ranges import MOST_LEAVES, Space, diversity, leaves, spread


def _cart(n_rows: int, y: np.ndarray, task: str) -> Space:
    return {
        "max_leaves": leaves(n_rows, y, task),
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
    return {
        "n_slices": IntDistribution(2, 10, log=True),
        "importance_threshold": FloatDistribution(0.0, 1.0),
        "depth": IntDistribution(1, 3),
        "threshold": diversity(y, task),
        "min_examples": CategoricalDistribution((1, 25)),
    }


def _gridrex(n_rows: int, y: np.ndarray, task: str) -> Space:
    unit = spread(y)
    return _gridex(n_rows, y, task) | {
        "threshold": FloatDistribution(0.01 * unit, 0.5 * unit, log=True),
        "coefficient_tolerance": CategoricalDistribution((0.0, 0.02, 0.05)),
    }


def _iter(n_rows: int, y: np.ndarray, task: str) -> Space:
    # The gap between shares of classes, or between means in the target's units.
    low, high = (0.2, 0.8) if task == "classification" else (0.25 * spread(y), spread(y))
    return {
        # Small steps ask the black box hundreds of times.
        "min_update": FloatDistribution(0.15, 0.5, log=True),
        "n_points": IntDistribution(1, 3),
        "threshold": FloatDistribution(low, high, log=True),
        "min_examples": CategoricalDistribution((25, 100)),
    }


def _clusters(n_rows: int, y: np.ndarray, task: str) -> Space:
    space: Space = {
        "depth": IntDistribution(1, 4),
        "error_threshold": diversity(y, task),
        "gauss_components": IntDistribution(2, 5),
    }
    if task == "regression":
        space["output"] = CategoricalDistribution(("constant", "linear"))
    return space


def _trepan(n_rows: int, y: np.ndarray, task: str) -> Space:
    return {
        "max_leaves": leaves(n_rows, y, task, MOST_LEAVES // 2),
        "max_literals": IntDistribution(1, 4),
        "min_sample": CategoricalDistribution((200, 1000)),
    }


def _real(n_rows: int, y: np.ndarray, task: str) -> Space:
    return {
        "max_rules": leaves(n_rows, y, task),
        "min_precision": FloatDistribution(0.8, 1.0),
        "tolerance": FloatDistribution(0.005, 0.2, log=True),
    }


class _Search(NamedTuple):
    """Where to look for one extractor, and settings worth trying first, per number of outputs."""

    space: Callable[[int, np.ndarray, str], Space]
    first: Callable[[int], list[dict[str, Any]]]


#: Few rules, one per class or a little more, are hard to beat by scores that weigh size; one
#: well-chosen feature cut a few times is the grid's counterpart.
_SEARCHES: dict[str, _Search] = {
    "cart": _Search(
        _cart, lambda n: [{"max_leaves": n + more, "max_depth": 4} for more in (0, 1, 3)]
    ),
    "cream": _Search(_clusters, lambda n: [{"depth": 2, "gauss_components": m} for m in (2, 5)]),
    "exact": _Search(
        _clusters, lambda n: [{"depth": min(max(n - 1, 1), 4), "gauss_components": 2}]
    ),
    "gridex": _Search(
        _gridex,
        lambda n: [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in (n, 8)],
    ),
    "gridrex": _Search(
        _gridrex,
        lambda n: [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in (2, 4)],
    ),
    "iter": _Search(_iter, lambda n: [{"min_update": 0.2, "n_points": 1}, {"min_update": 0.4}]),
    "real": _Search(_real, lambda n: [{"max_rules": n + more} for more in (0, 3)]),
    "trepan": _Search(
        _trepan,
        lambda n: [{"max_leaves": n + more, "max_literals": m} for more, m in ((0, 1), (1, 4))],
    ),
}


def search_space(name: str, X: Any, y: Any, *, task: str | None = None) -> Space:
    """Give the hyper-parameters of an extractor to search, and their ranges for some data.

    Parameters
    ----------
    name : str
        A registered extractor. That of an installed package is asked for its own
        ``search_space(n_rows, y, task)``, a class method or static method.
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
    TypeError
        If an installed package's extractor gives something else than a space.
    ImportError
        If an installed package's extractor cannot be imported.

    Examples
    --------
    >>> space = search_space("cart", [[0.0]] * 100, ["a", "b"] * 50)
    >>> space["max_leaves"]
    IntDistribution(high=32, log=True, low=2, step=1)
    """
    search = _search_of(name)
    if search is None:
        raise ValueError(
            f"There is no search space for {name!r}. {did_you_mean(name, extractor_names())}"
        )
    y = np.asarray(y)
    if task is None:
        task = "regression" if y.dtype.kind == "f" else "classification"
    if task not in TASKS:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    return search.space(len(X), y, task)


def starting_points(name: str, space: Space, y: np.ndarray, task: str) -> list[dict[str, Any]]:
    """Settings that are worth trying first, as far as they lie in the space.

    The sampler learns from them. Points that name a categorical parameter are left out.
    """
    n_outputs = len(np.unique(y)) if task == "classification" else 2
    search = _search_of(name)
    points = [] if search is None else search.first(n_outputs)
    return [p for p in points if all(_inside(space, k, v) for k, v in p.items())]


def _search_of(name: str) -> _Search | None:
    """Where to look for the extractor of a name; None for a name that is not known."""
    if name in EXTRACTORS:
        return _SEARCHES[name]
    if name in PSYKE_EXTRACTORS:
        return _Search(*PSYKE_SEARCHES[name.removeprefix("psyke:")])
    if name not in extractor_names():
        return None
    kind = extractor_class(name)

    def space(n_rows: int, y: np.ndarray, task: str) -> Space:
        if not hasattr(kind, "search_space"):
            raise ValueError(
                f"The extractor {name!r} has no search space: {kind.__name__} lacks "
                f"search_space(n_rows, y, task). Pass one of your own: spaces={{{name!r}: ...}} to "
                "ExtractorSearchCV, space=... to ExtractorObjective."
            )
        found = kind.search_space(n_rows, y, task)
        if not isinstance(found, dict) or not all(
            isinstance(key, str) and isinstance(value, BaseDistribution)
            for key, value in found.items()
        ):
            raise TypeError(
                f"{kind.__name__}.search_space must give a dict of parameter names and Optuna "
                f"distributions, got {found!r}. Report it to the authors of {kind.__module__!r}."
            )
        return dict(found)

    return _Search(space, getattr(kind, "starting_points", lambda n_outputs: []))


def _inside(space: Space, name: str, value: Any) -> bool:
    distribution = space.get(name)
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        return False
    steps = 0.0 if distribution.step is None else (value - distribution.low) / distribution.step
    on_step = math.isclose(steps, round(steps), abs_tol=1e-8)
    return on_step and distribution.low <= value <= distribution.high
