"""Where to look for the reference platform's algorithms; used where their names are asked for.

They differ from our own of the same name: their thresholds do not follow the target's units by
themselves, and some take long for settings that ours are quick with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from skescore.tuning._ranges import Space, diversity, leaves, spread

_First = Callable[[int], list[dict[str, Any]]]


def _cart(n_rows: int, y: np.ndarray, task: str) -> Space:
    return {"max_leaves": leaves(n_rows, y, task), "max_depth": IntDistribution(2, 8)}


def _gridex(n_rows: int, y: np.ndarray, task: str) -> Space:
    # A feature that is cut multiplies the cells, and each asks the black box by itself.
    return {
        "n_slices": IntDistribution(2, 6, log=True),
        "importance_threshold": FloatDistribution(0.3, 1.0),
        "depth": IntDistribution(1, 2),
        "threshold": diversity(y, task),
        "min_examples": CategoricalDistribution((1, 25)),
    }


def _gridrex(n_rows: int, y: np.ndarray, task: str) -> Space:
    unit = spread(y)
    return _gridex(n_rows, y, task) | {
        "threshold": FloatDistribution(0.01 * unit, 0.5 * unit, log=True)
    }


def _hex(n_rows: int, y: np.ndarray, task: str) -> Space:
    # Cells without rows are kept, so that there are more of them.
    space = _gridex(n_rows, y, task) | {
        "n_slices": IntDistribution(2, 3),
        "importance_threshold": FloatDistribution(0.6, 1.0),
    }
    del space["min_examples"]
    return _with_output(space, task)


def _iter(n_rows: int, y: np.ndarray, task: str) -> Space:
    space: Space = {
        "min_update": FloatDistribution(0.2, 0.5, log=True),
        "n_points": IntDistribution(1, 3),
        # All strips are asked about anew at every step, some minutes long with more of either.
        "min_examples": CategoricalDistribution((25,)),
        "max_iterations": CategoricalDistribution((100,)),
    }
    if task == "regression":  # gaps between labels are 0 or 1, whatever the threshold
        space["threshold"] = FloatDistribution(0.25 * spread(y), spread(y), log=True)
    return space


def _with_output(space: Space, task: str) -> Space:
    """Regression may have linear outputs."""
    outputs = CategoricalDistribution(("constant", "linear"))
    return space | {"output": outputs} if task == "regression" else space


def _clusters(n_rows: int, y: np.ndarray, task: str) -> Space:
    space: Space = {
        "depth": IntDistribution(1, 4),
        "error_threshold": diversity(y, task),
        "gauss_components": IntDistribution(2, 5),
    }
    return _with_output(space, task)


def _divine(n_rows: int, y: np.ndarray, task: str) -> Space:
    return {
        "k": IntDistribution(2, min(15, max(3, n_rows // 10))),
        "patience": IntDistribution(5, 30),
    }


def _cosmik(n_rows: int, y: np.ndarray, task: str) -> Space:
    space = {"max_components": IntDistribution(2, 6)} | _divine(n_rows, y, task)
    return _with_output(space, task)


def _ginger(n_rows: int, y: np.ndarray, task: str) -> Space:
    return {
        "n_features": IntDistribution(1, 2),
        # Of several numbers of cuts it would keep the worst.
        "max_slices": CategoricalDistribution((1,)),
        # Each individual of each generation is an extraction of its own.
        "n_gen": IntDistribution(5, 20),
        "n_pop": IntDistribution(10, 30),
    }


def _trepan(n_rows: int, y: np.ndarray, task: str) -> Space:
    return {
        "max_depth": IntDistribution(1, 4),
        "min_examples": IntDistribution(0, max(1, n_rows // 10)),
    }


def _grids(*slices: int) -> list[dict[str, Any]]:
    """The most important feature cut once."""
    return [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in slices]


#: By algorithm: the space for some data, and settings worth trying first per number of outputs.
PSYKE_SEARCHES: dict[str, tuple[Callable[[int, np.ndarray, str], Space], _First]] = {
    "cart": (_cart, lambda n: [{"max_leaves": n + more, "max_depth": 4} for more in (0, 1, 3)]),
    "cream": (_clusters, lambda n: [{"depth": 2, "gauss_components": m} for m in (2, 5)]),
    "cosmik": (_cosmik, lambda n: [{"max_components": 4}]),
    "divine": (_divine, lambda n: [{"k": 5, "patience": 15}]),
    "exact": (_clusters, lambda n: [{"depth": min(max(n - 1, 1), 4), "gauss_components": 2}]),
    "ginger": (_ginger, lambda n: [{"n_features": 1}]),
    "gridex": (_gridex, lambda n: _grids(n, 5)),
    "gridrex": (_gridrex, lambda n: _grids(2, 4)),
    "hex": (_hex, lambda n: _grids(2)),
    "iter": (_iter, lambda n: [{"min_update": 0.3, "n_points": 1}]),
    # All it has is a discretiser; one trial shows what it finds.
    "real": (lambda n_rows, y, task: {}, lambda n: []),
    "trepan": (_trepan, lambda n: [{"max_depth": 2}]),
}
