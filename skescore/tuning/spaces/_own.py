"""Where to look for our own extractors, and which settings to try first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from skescore.tuning.spaces._space import SearchSpace

_Points = list[dict[str, Any]]
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
    def std(self) -> float:
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


def impurities(problem: Problem) -> FloatDistribution:
    """How much predictions in a box may differ: a share of other classes, or a deviation."""
    most = 0.5 if problem.classifies else problem.std
    return FloatDistribution(0.02 * most, most, log=True)


def at_most(value: int, distribution: IntDistribution) -> int:
    """The value, or the largest one that there is."""
    return min(value, distribution.high)


def _cart(problem: Problem) -> SearchSpace:
    criteria: tuple[str, ...] = ("gini", "entropy")
    if not problem.classifies:  # the absolute error takes quadratic time
        criteria = ("squared_error", "absolute_error")[: 2 if problem.n_rows <= 5000 else 1]
    return SearchSpace(
        {
            "max_leaf_nodes": leaves(problem),
            "max_depth": IntDistribution(2, 8),
            "min_samples_leaf": IntDistribution(1, max(1, problem.n_rows // 20), log=True),
            "criterion": CategoricalDistribution(criteria),
        }
    )


def _cart_points(problem: Problem) -> _Points:
    default = {
        "max_leaf_nodes": at_most(8, leaves(problem)),  # as many as three levels can have
        "max_depth": 3,
        "min_samples_leaf": 1,
        "criterion": "gini" if problem.classifies else "squared_error",
    }
    n = problem.n_outputs
    # Two leaves, where there are more classes, for scores that would rather miss one than read on.
    few, fewest, more, most = (
        default | {"max_leaf_nodes": number, "max_depth": 4} for number in (n, 2, n + 1, n + 3)
    )
    return [few, fewest, more, default, most]


def _gridex(problem: Problem) -> SearchSpace:
    space = SearchSpace(
        {
            "n_slices": IntDistribution(2, 10, log=True),
            "importance_threshold": FloatDistribution(0.0, 1.0),
            "depth": IntDistribution(1, 3),
            "threshold": impurities(problem),
            "min_examples": CategoricalDistribution((1, 25)),
        }
    )
    if problem.n_features == 1:  # it is the most important one, and always cut
        space = space.without("importance_threshold")
    if problem.classifies:  # cells of one class join whatever it is
        space = space.when("threshold", depth=(2, 3))
    return space


def _gridex_points(problem: Problem) -> _Points:
    default = {
        "n_slices": 2,
        "importance_threshold": 0.0,
        "depth": 2,
        "threshold": 0.1 if problem.classifies else 0.5 * problem.std,
        "min_examples": 1,
    }
    return [*_one_feature(default, problem.n_outputs, 2 * problem.n_outputs), default]


def _gridrex(problem: Problem) -> SearchSpace:
    unit = problem.std
    return _gridex(problem) | {
        "threshold": FloatDistribution(0.01 * unit, 0.5 * unit, log=True),
        "coefficient_tolerance": CategoricalDistribution((0.0, 0.02, 0.05)),
    }


def _gridrex_points(problem: Problem) -> _Points:
    # By default the threshold is half the residual of a linear model, which is near this where the
    # model leaves half of the variance.
    default = _gridex_points(problem)[-1] | {
        "threshold": 0.25 * problem.std,
        "coefficient_tolerance": 0.0,
    }
    return [*_one_feature(default, 2, 3), default]


def _one_feature(default: dict[str, Any], *slices: int) -> _Points:
    """Settings that cut the most important feature once."""
    return [default | {"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in slices]


def _iter(problem: Problem) -> SearchSpace:
    # The gap between class probabilities, or between means in the target's units.
    low, high = (0.2, 0.8) if problem.classifies else (0.25 * problem.std, problem.std)
    return SearchSpace(
        {
            # Small steps query the black box hundreds of times.
            "min_update": FloatDistribution(0.1, 0.5, log=True),
            "n_points": IntDistribution(1, 3),
            "threshold": FloatDistribution(low, high, log=True),
            "min_examples": CategoricalDistribution((25, 100, 250)),
        }
    )


def _iter_points(problem: Problem) -> _Points:
    default = {
        "min_update": 0.1,
        "n_points": 1,
        "threshold": 0.3 if problem.classifies else 0.5 * problem.std,
        "min_examples": 250,
    }
    return [default | {"min_update": 0.2, "min_examples": 100}, default]


def _clusters(problem: Problem) -> SearchSpace:
    space = SearchSpace(
        {
            "depth": IntDistribution(1, 4),
            "error_threshold": impurities(problem),
            "gauss_components": IntDistribution(2, 5),
        }
    )
    if not problem.classifies:
        space = space.with_(output=CategoricalDistribution(("constant", "linear")))
    return space


def _clusters_points(problem: Problem) -> _Points:
    default = {
        "depth": 3,
        "error_threshold": 0.1 * (1 if problem.classifies else problem.std),
        "gauss_components": 2,
    }
    if problem.classifies:
        return [default | {"depth": 2}, default, default | {"depth": 1}]
    # Few rules leave much of a number unsaid unless their conclusions are linear models.
    linear = [default | {"output": "linear", "depth": depth} for depth in (1, 2)]
    return [*linear, default | {"output": "constant"}]


def _real(problem: Problem) -> SearchSpace:
    return SearchSpace(
        {
            "max_rules": leaves(problem, 50),
            "min_precision": FloatDistribution(0.8, 1.0),
            "tolerance": FloatDistribution(0.005, 0.2, log=True),
            # Its rules are narrow, which scores of completeness dislike, and few, so that widening
            # them takes little time.
            "prune": CategoricalDistribution((None, "ice")),
        }
    )


def _real_points(problem: Problem) -> _Points:
    default: dict[str, Any] = {
        "max_rules": at_most(50, leaves(problem, 50)),
        "min_precision": 0.95,
        "tolerance": 0.01,
        "prune": None,
    }
    pruned: dict[str, Any] = default | {"prune": "ice"}
    few = pruned | {"max_rules": problem.n_outputs + 3}
    return [few, few | {"min_precision": 0.85, "tolerance": 0.05}, pruned, default]


def _trepan(problem: Problem) -> SearchSpace:
    space = SearchSpace(
        {
            "max_leaf_nodes": leaves(problem, MOST_LEAVES // 2),
            "max_literals": IntDistribution(1, 4),
            "min_sample": CategoricalDistribution((200, 1000)),
        }
    )
    # A test uses each feature once at most.
    return space if problem.n_features > 1 else space.without("max_literals")


def _trepan_points(problem: Problem) -> _Points:
    default = {
        "max_leaf_nodes": at_most(16, leaves(problem, MOST_LEAVES // 2)),  # of 15 tests at most
        "max_literals": 4,
        "min_sample": 1000,
    }
    # One leaf per class whose tests may hold several literals; a sample of 200 has all that these
    # need.
    small = default | {"max_leaf_nodes": problem.n_outputs, "min_sample": 200}
    return [*(small | {"max_literals": m} for m in (4, 2, 1)), default]


#: Few rules, one per class or a little more, are hard to beat by scores that weigh size; one
#: well-chosen feature cut a few times is the grid's counterpart. The order follows held-out scores
#: on ten data sets (`benchmarks/README.md`, "Choosing"); the defaults are always among the points.
OWN_SEARCHES: dict[str, Search] = {
    "cart": Search(_cart, _cart_points),
    "cream": Search(_clusters, _clusters_points),
    "exact": Search(_clusters, _clusters_points),
    "gridex": Search(_gridex, _gridex_points),
    "gridrex": Search(_gridrex, _gridrex_points),
    "iter": Search(_iter, _iter_points),
    "real": Search(_real, _real_points),
    "trepan": Search(_trepan, _trepan_points),
}
