"""PSyKE's algorithms: their tasks, and their parameters with defaults and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from skescore import _validation as check
from skescore._text import did_you_mean
from skescore.extractors._discretizer import Discretizer

Check = Callable[[str, Any], object]

_BOTH_TASKS = ("classification", "regression")
_METRICS = {"classification": ("ACC", "F1"), "regression": ("R2", "MAE", "MSE")}


class Algorithm(NamedTuple):
    """Algorithm of PSyKE: its name, tasks and parameters.

    Each parameter has a default and a check, which raises an error for invalid values.
    """

    title: str
    tasks: tuple[str, ...]
    parameters: Mapping[str, tuple[Any, Check]]


def _integer(low: int, *, optional: bool = False) -> Check:
    return lambda name, value: check.check_integer(name, value, low, optional=optional)


def _number(low: float, high: float = float("inf"), *, optional: bool = False) -> Check:
    return lambda name, value: check.check_number(name, value, low, high, optional=optional)


def _choice(*choices: Any) -> Check:
    return lambda name, value: check.check_choice(name, value, choices)


def _positive_share(name: str, value: Any) -> None:
    check.check_number(name, value, high=1, above=0)


def _check_each(name: str, value: Any, inner: Check) -> None:
    if is_sequence(value):
        if not len(value):
            raise ValueError(f"{name} must not be an empty sequence, got {value!r}.")
        for part in value:
            inner(name, part)
    else:
        inner(name, value)


def _slices(name: str, value: Any) -> None:
    _check_each(name, value, _integer(2))


def _importance(name: str, value: Any) -> None:
    if value is None:
        return
    _check_each(name, value, _number(0.0, 1.0))
    if is_sequence(value) and any(a >= b for a, b in pairwise(value)):
        raise ValueError(f"{name} must increase if it is a sequence, got {value!r}.")


def _max_features(name: str, value: Any) -> None:
    if value is None or (isinstance(value, str) and value in ("sqrt", "log2")):
        return
    if isinstance(value, str):
        raise ValueError(f"{name} must be an int, a float, 'sqrt', 'log2' or None, got {value!r}.")
    if isinstance(value, float):
        _positive_share(name, value)
    else:
        check.check_integer(name, value, 1)


def _discretizer(name: str, value: Any) -> None:
    check.check_instance(name, value, Discretizer, optional=True)


def _features(name: str, value: Any) -> None:
    if value is not None and (not is_sequence(value) or not len(value)):
        raise TypeError(f"{name} must be a sequence of indices or names or None, got {value!r}.")


def _sigma(name: str, value: Any) -> None:
    check.check_number(name, value, above=0, finite=True)


def is_sequence(value: Any) -> bool:
    """Return whether the value of a parameter is a sequence."""
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


_Parameters = dict[str, tuple[Any, Check]]

_GRID: _Parameters = {
    "n_slices": (2, _slices),
    "importance_threshold": (None, _importance),
    "depth": (2, _integer(1)),
    "threshold": (None, _number(0.0, optional=True)),
    "min_examples": (1, _integer(0)),
}
_OUTPUT: _Parameters = {"output": ("constant", _choice("constant", "linear"))}
_CLUSTERS: _Parameters = {
    "depth": (3, _integer(1)),
    "error_threshold": (None, _number(0.0, optional=True)),
    "gauss_components": (2, _integer(2)),
    "ignore_threshold": (0.0, _number(0.0, 1.0)),
    **_OUTPUT,
}
_BOTTOM_UP: _Parameters = {
    "k": (5, _integer(1)),
    "patience": (15, _integer(1)),
    "close_to_center": (True, check.check_flag),
}
_GENETIC: _Parameters = {
    "features": (None, _features),
    "n_features": (2, _integer(1)),
    "max_slices": (1, _integer(1)),  # with more, PSyKE keeps the worst number of cuts
    "min_rules": (1, _integer(1)),
    "threshold": (None, _number(0.0, optional=True)),
    "output": ("linear", _choice("constant", "linear")),
    "metric": (None, _choice(None, *_METRICS["classification"], *_METRICS["regression"])),
    "n_gen": (50, _integer(1)),
    "n_pop": (50, _integer(2)),
    "alpha": (0.5, _number(0.0)),
    "indpb": (0.5, _number(0.0, 1.0)),
    "tournsize": (3, _integer(1)),
    "sigma": (0.1, _sigma),
}

ALGORITHMS: dict[str, Algorithm] = {
    "cart": Algorithm(
        "CART",
        _BOTH_TASKS,
        {
            "max_depth": (3, _integer(1, optional=True)),
            "max_leaves": (3, _integer(2, optional=True)),
            "max_features": (None, _max_features),
            "protected": (None, _features),
        },
    ),
    "cosmik": Algorithm(
        "COSMiK", ("regression",), {"max_components": (4, _integer(2)), **_BOTTOM_UP, **_OUTPUT}
    ),
    "cream": Algorithm("CReEPy with CREAM", _BOTH_TASKS, _CLUSTERS),
    "divine": Algorithm("DiViNE", ("classification",), _BOTTOM_UP),
    "exact": Algorithm("CReEPy with ExACT", _BOTH_TASKS, _CLUSTERS),
    "ginger": Algorithm("GInGER", _BOTH_TASKS, _GENETIC),
    "gridex": Algorithm("GridEx", _BOTH_TASKS, _GRID),
    "gridrex": Algorithm("GridREx", ("regression",), _GRID),
    # HEx also queries points in the many cells without rows.
    "hex": Algorithm("HEx", _BOTH_TASKS, {**_GRID, "min_examples": (0, _integer(0)), **_OUTPUT}),
    "iter": Algorithm(
        "ITER",
        _BOTH_TASKS,
        {
            "min_update": (0.1, _positive_share),
            "n_points": (1, _integer(1)),
            "max_iterations": (600, _integer(1)),
            "min_examples": (250, _integer(0)),
            "threshold": (None, _number(0.0, optional=True)),
            "fill_gaps": (True, check.check_flag),
        },
    ),
    "real": Algorithm("REAL", ("classification",), {"discretizer": (None, _discretizer)}),
    "trepan": Algorithm(
        "Trepan",
        ("classification",),
        {
            "discretizer": (None, _discretizer),
            "max_depth": (3, _integer(1)),
            "min_examples": (0, _integer(0)),
        },
    ),
}

#: Parameters of all algorithms.
PARAMETERS = frozenset(name for spec in ALGORITHMS.values() for name in spec.parameters)

#: Parameters of PSyKE that are not supported, with alternatives.
_UNSUPPORTED = {
    "grid": "Use n_slices, importance_threshold and depth.",
    "level_strategies": "PSyKE returns wrong rules if levels cut different features; use "
    "GridExExtractor.",
    "max_poly": "Rules cannot have conditions on powers of features; PSyKE's default of 1 is used.",
    "normalization": "Rules are in the units of the rows; put a scaler in the black box.",
    "ranks": "Importances are computed; use ignore_threshold.",
    "seed": "Use random_state.",
    "sigmas": "Use sigma, a share of each feature's range.",
}


def find_algorithm(name: Any) -> Algorithm:
    """Return an algorithm; raise a ValueError for unknown names."""
    if not isinstance(name, str) or name not in ALGORITHMS:
        raise ValueError(
            f"algorithm must be one of PSyKE's, got {name!r}. {did_you_mean(name, ALGORITHMS)}"
        )
    return ALGORITHMS[name]


def unknown_parameter(name: str, algorithm: str = "") -> str:
    """Return the error message for an unknown parameter."""
    parameter_names = ALGORITHMS[algorithm].parameters if algorithm else PARAMETERS
    owner = f"PSyKE's {algorithm!r}" if algorithm else "any of PSyKE's algorithms"
    hint = f" {_UNSUPPORTED[name]}" if name in _UNSUPPORTED else ""
    return (
        f"There is no parameter {name!r} for {owner}.{hint} {did_you_mean(name, parameter_names)}"
    )


def check_parameters(algorithm: str, parameters: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Check parameters and add the defaults of others.

    Parameters
    ----------
    algorithm : str
        One of :data:`ALGORITHMS`.
    parameters : mapping of str to Any
        The parameters that were set.
    task : {"classification", "regression"}
        The task.

    Returns
    -------
    dict of str to Any
        All parameters of the algorithm.

    Raises
    ------
    ValueError, TypeError
        For an unknown parameter or an invalid value.
    """
    spec = ALGORITHMS[algorithm]
    for name in parameters:
        if name not in spec.parameters:
            raise ValueError(unknown_parameter(name, algorithm))
    result = {name: default for name, (default, _) in spec.parameters.items()} | dict(parameters)
    for name, (_, check_value) in spec.parameters.items():
        check_value(name, result[name])
    if "n_slices" in result:
        _check_strategy(result["n_slices"], result["importance_threshold"])
    if task == "classification" and parameters.get("output") == "linear":
        raise ValueError(
            "output='linear' is for regression, but the black box is a classifier. Omit it."
        )
    if result.get("metric") is not None:
        check.check_choice("metric", result["metric"], (None, *_METRICS[task]))
    return result


def _check_strategy(n_slices: Any, importance: Any) -> None:
    lengths = [len(value) if is_sequence(value) else None for value in (n_slices, importance)]
    if lengths[0] != lengths[1]:
        raise ValueError(
            "n_slices and importance_threshold must both be one number or sequences of one "
            f"length, got {n_slices!r} and {importance!r}."
        )
