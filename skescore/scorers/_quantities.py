"""Quantities that a search can minimize."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from skescore._quantities import measured_quantities
from skescore.scorers._set_measures import SET_AXES, loss_of

__all__ = ["minimized_quantities"]


def minimized_quantities(*, costs: bool = True) -> dict[str, tuple[str, Callable[[Any], Any]]]:
    """Return what a search can minimize: by name, a measure and its conversion to a loss.

    Parameters
    ----------
    costs : bool, default=True
        Include the costs of extraction.

    Returns
    -------
    dict of str to (str, callable)
        Such as ``incompleteness``, which is one minus ``completeness_volume``.
    """
    losses: dict[str, tuple[str, Callable[[Any], Any]]] = {}
    for quantity in measured_quantities(costs=costs).values():
        if quantity.complement:
            losses[quantity.complement] = (quantity.name, _complement)
        elif not quantity.greater_is_better:
            losses[quantity.name] = (quantity.name, _unchanged)
    for axis, measure in SET_AXES.items():
        losses[axis] = (measure.scorer_name, functools.partial(loss_of, axis))
    return losses


def _complement(value: Any) -> Any:
    return 1.0 - value


def _unchanged(value: Any) -> Any:
    return value
