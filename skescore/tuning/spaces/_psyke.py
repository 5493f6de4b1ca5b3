"""Where to look for PSyKE's algorithms; used where their names are given.

They differ from our own of the same name: their thresholds do not follow the target's units by
themselves, and some take long for settings that ours are quick with.
"""

from __future__ import annotations

from typing import Any

from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from skescore.tuning.spaces._own import Problem, Search, impurities, leaves
from skescore.tuning.spaces._space import Space

_Points = list[dict[str, Any]]


def _cart(problem: Problem) -> Space:
    return {"max_leaves": leaves(problem), "max_depth": IntDistribution(2, 8)}


def _gridex(problem: Problem) -> Space:
    # A feature that is cut multiplies the cells, and each queries the black box by itself.
    return {
        "n_slices": IntDistribution(2, 6, log=True),
        "importance_threshold": FloatDistribution(0.3, 1.0),
        "depth": IntDistribution(1, 2),
        "threshold": impurities(problem),
        "min_examples": CategoricalDistribution((1, 25)),
    }


def _gridrex(problem: Problem) -> Space:
    unit = problem.std
    return _gridex(problem) | {"threshold": FloatDistribution(0.01 * unit, 0.5 * unit, log=True)}


def _hex(problem: Problem) -> Space:
    # Cells without rows are kept, so that there are more of them.
    space = _gridex(problem) | {
        "n_slices": IntDistribution(2, 3),
        "importance_threshold": FloatDistribution(0.6, 1.0),
    }
    del space["min_examples"]
    return _with_output(space, problem)


def _iter(problem: Problem) -> Space:
    space: Space = {
        "min_update": FloatDistribution(0.2, 0.5, log=True),
        "n_points": IntDistribution(1, 3),
        # All strips are queried anew at every step, some minutes long with more of either.
        "min_examples": CategoricalDistribution((25,)),
        "max_iterations": CategoricalDistribution((100,)),
    }
    if not problem.classifies:  # gaps between labels are 0 or 1, whatever the threshold
        space["threshold"] = FloatDistribution(0.25 * problem.std, problem.std, log=True)
    return space


def _with_output(space: Space, problem: Problem) -> Space:
    """Regression may have linear outputs."""
    outputs = CategoricalDistribution(("constant", "linear"))
    return space if problem.classifies else space | {"output": outputs}


def _clusters(problem: Problem) -> Space:
    space: Space = {
        "depth": IntDistribution(1, 4),
        "error_threshold": impurities(problem),
        "gauss_components": IntDistribution(2, 5),
    }
    return _with_output(space, problem)


def _divine(problem: Problem) -> Space:
    return {
        "k": IntDistribution(2, min(15, max(3, problem.n_rows // 10))),
        "patience": IntDistribution(5, 30),
    }


def _cosmik(problem: Problem) -> Space:
    space = {"max_components": IntDistribution(2, 6)} | _divine(problem)
    return _with_output(space, problem)


def _ginger(problem: Problem) -> Space:
    return {
        "n_features": IntDistribution(1, 2),
        # Of several numbers of cuts it would keep the worst.
        "max_slices": CategoricalDistribution((1,)),
        # Each individual of each generation is an extraction of its own.
        "n_gen": IntDistribution(5, 20),
        "n_pop": IntDistribution(10, 30),
    }


def _trepan(problem: Problem) -> Space:
    return {
        "max_depth": IntDistribution(1, 4),
        "min_examples": IntDistribution(0, max(1, problem.n_rows // 10)),
    }


def _cart_points(problem: Problem) -> _Points:
    n = problem.n_outputs
    default = {"max_leaves": 3, "max_depth": 3}
    return [default] + [{"max_leaves": n + more, "max_depth": 4} for more in (0, 1, 3)]


def _cluster_points(problem: Problem, *others: dict[str, Any]) -> _Points:
    """The defaults, and others that differ from them."""
    default: dict[str, Any] = {
        "depth": 3,
        "error_threshold": 0.1 * (1 if problem.classifies else problem.std),
        "gauss_components": 2,
    }
    if not problem.classifies:
        default["output"] = "constant"
    return [default] + [default | other for other in others]


def _cream_points(problem: Problem) -> _Points:
    return _cluster_points(problem, {"depth": 2}, {"depth": 2, "gauss_components": 5})


def _exact_points(problem: Problem) -> _Points:
    return _cluster_points(problem, {"depth": min(max(problem.n_outputs - 1, 1), 4)})


def _grids(*slices: int) -> _Points:
    """The most important feature cut once; the default, to cut all of them, may never end."""
    return [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in slices]


#: By algorithm: the space for some data, and settings worth trying first.
PSYKE_SEARCHES: dict[str, Search] = {
    "cart": Search(_cart, _cart_points),
    "cream": Search(_clusters, _cream_points),
    "cosmik": Search(_cosmik, lambda problem: [{"max_components": 4, "k": 5, "patience": 15}]),
    "divine": Search(_divine, lambda problem: [{"k": 5, "patience": 15}]),
    "exact": Search(_clusters, _exact_points),
    "ginger": Search(_ginger, lambda problem: [{"n_features": 1}]),
    "gridex": Search(_gridex, lambda problem: _grids(problem.n_outputs, 5)),
    "gridrex": Search(_gridrex, lambda problem: _grids(2, 4)),
    "hex": Search(_hex, lambda problem: _grids(2)),
    "iter": Search(_iter, lambda problem: [{"min_update": 0.3, "n_points": 1}]),
    # All it has is a discretiser; one trial shows what it finds.
    "real": Search(lambda problem: {}, lambda problem: []),
    "trepan": Search(
        _trepan, lambda problem: [{"max_depth": d, "min_examples": 0} for d in (3, 2)]
    ),
}
