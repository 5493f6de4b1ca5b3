"""Where to look for the reference platform's algorithms; used where their names are asked for.

They differ from our own of the same name: their thresholds do not follow the target's units by
themselves, and some take long for settings that ours are quick with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

_Space = dict[str, BaseDistribution]
_First = Callable[[int], list[dict[str, Any]]]


def _spread(y: np.ndarray) -> float:
    return float(np.std(np.asarray(y, dtype=float))) or 1.0


def _threshold(y: np.ndarray, task: str) -> FloatDistribution:
    """How much answers in a box may differ: a share of other classes, or a deviation."""
    spread = 0.5 if task == "classification" else _spread(y)
    return FloatDistribution(0.02 * spread, spread, log=True)


def _grid(n_rows: int, y: np.ndarray, task: str) -> _Space:
    return {
        "n_slices": IntDistribution(2, 6, log=True),
        "importance_threshold": FloatDistribution(0.0, 1.0),
        "depth": IntDistribution(1, 2),
        "threshold": _threshold(y, task),
        # Cells with fewer rows are filled with points, of which each is asked for by itself.
        "min_examples": CategoricalDistribution((1, 25)),
    }


def _cart(n_rows: int, y: np.ndarray, task: str) -> _Space:
    n_outputs = len(np.unique(y)) if task == "classification" else 2
    return {
        "max_leaves": IntDistribution(2, max(min(32, n_rows // 2), n_outputs + 1, 3), log=True),
        "max_depth": IntDistribution(2, 8),
    }


def _iter(n_rows: int, y: np.ndarray, task: str) -> _Space:
    return {
        "min_update": FloatDistribution(0.15, 0.5, log=True),
        "n_points": IntDistribution(1, 3),
        "threshold": _threshold(y, task),
        "min_examples": CategoricalDistribution((25, 100)),
    }


def _with_output(space: _Space, task: str) -> _Space:
    """Regression may have linear outputs."""
    outputs = CategoricalDistribution(("constant", "linear"))
    return space | {"output": outputs} if task == "regression" else space


def _hex(n_rows: int, y: np.ndarray, task: str) -> _Space:
    return _with_output(_grid(n_rows, y, task), task)


def _clusters(n_rows: int, y: np.ndarray, task: str) -> _Space:
    space: _Space = {
        "depth": IntDistribution(1, 4),
        "error_threshold": _threshold(y, task),
        "gauss_components": IntDistribution(2, 5),
    }
    return _with_output(space, task)


def _bottom_up(n_rows: int, y: np.ndarray, task: str) -> _Space:
    return {"k": IntDistribution(2, 15), "patience": IntDistribution(5, 30)}


def _cosmik(n_rows: int, y: np.ndarray, task: str) -> _Space:
    space = {"max_components": IntDistribution(2, 8)} | _bottom_up(n_rows, y, task)
    return _with_output(space, task)


def _ginger(n_rows: int, y: np.ndarray, task: str) -> _Space:
    return {
        "n_features": IntDistribution(1, 3),
        "max_slices": IntDistribution(2, 4),
        # Each individual of each generation is an extraction of its own.
        "n_gen": IntDistribution(5, 20),
        "n_pop": IntDistribution(10, 30),
    }


def _trepan(n_rows: int, y: np.ndarray, task: str) -> _Space:
    return {"max_depth": IntDistribution(1, 5), "min_examples": CategoricalDistribution((0, 20))}


#: By algorithm: the space for some data, and settings worth trying first.
PSYKE_SEARCHES: dict[str, tuple[Callable[[int, np.ndarray, str], _Space], _First]] = {
    "cart": (_cart, lambda n: [{"max_leaves": n + more, "max_depth": 4} for more in (0, 1)]),
    "cream": (_clusters, lambda n: [{"depth": 2, "gauss_components": 2}]),
    "cosmik": (_cosmik, lambda n: [{"max_components": 4}]),
    "divine": (_bottom_up, lambda n: [{"k": 5, "patience": 15}]),
    "exact": (_clusters, lambda n: [{"depth": min(max(n - 1, 1), 4), "gauss_components": 2}]),
    "ginger": (_ginger, lambda n: [{"n_features": 2, "max_slices": 2}]),
    "gridex": (
        _grid,
        lambda n: [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in (n, 5)],
    ),
    "gridrex": (
        _grid,
        lambda n: [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in (2, 4)],
    ),
    "hex": (
        _hex,
        lambda n: [{"n_slices": m, "importance_threshold": 0.99, "depth": 1} for m in (n, 5)],
    ),
    "iter": (_iter, lambda n: [{"min_update": 0.2, "n_points": 1}]),
    # All it has is a discretiser; one trial shows what it finds.
    "real": (lambda n_rows, y, task: {}, lambda n: []),
    "trepan": (_trepan, lambda n: [{"max_depth": 3}]),
}
