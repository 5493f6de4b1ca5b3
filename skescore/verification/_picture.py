"""Picture of a disagreement: two features around a witness, all others as in its row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore.verification._branch import Target
from skescore.verification._grid import CellGrid
from skescore.verification._queries import PointQueries

#: Number of points per side of the picture, and of probes per column to choose two columns.
_SIDE, _N_PROBES = 32, 12
AGREE, DISAGREE, OTHER_RULE = range(3)


@dataclass(frozen=True)
class DisagreementMap:
    """Agreement of model and rule on a grid of two features.

    Parameters
    ----------
    rule : int
        Index of the rule; -1 for the fallback.
    features : tuple of str
        Names of the horizontal and the vertical feature.
    x_values, y_values : tuple of float
        Values of the grid.
    states : tuple of tuple of int
        For each y value, for each x value: 0 agreement, 1 disagreement, 2 another rule predicts.
    point : tuple of float
        Position of the witness.
    """

    rule: int
    features: tuple[str, str]
    x_values: tuple[float, ...]
    y_values: tuple[float, ...]
    states: tuple[tuple[int, ...], ...]
    point: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the map as JSON values."""
        return {
            "rule": self.rule,
            "features": list(self.features),
            "x_values": list(self.x_values),
            "y_values": list(self.y_values),
            "states": [list(row) for row in self.states],
            "point": list(self.point),
        }


def draw_map(
    grid: CellGrid, queries: PointQueries, target: Target, rule: int, point: np.ndarray
) -> DisagreementMap | None:
    """Query model and rules around a witness.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    queries : PointQueries
        Rules and model.
    target : Target
        Output of the rule.
    rule : int
        Index of the rule.
    point : ndarray of shape (n_features,)
        The witness.

    Returns
    -------
    DisagreementMap or None
        Map of the two numeric columns in which the agreement changes most; None if fewer vary.
    """
    candidates = [
        j
        for j in np.flatnonzero(~grid.is_category).tolist()
        if not np.isnan(point[j]) and grid.lower[j] < grid.upper[j]
    ]
    if len(candidates) < 2:
        return None
    changes = []
    for j in candidates:
        probes = np.repeat(point[None], _N_PROBES, axis=0)
        probes[:, j] = _values(grid, j, _N_PROBES)
        states = _states(queries, target, rule, probes)
        changes.append(min(np.mean(states == DISAGREE), np.mean(states != DISAGREE)))
    first, second = (candidates[i] for i in np.argsort(-np.array(changes), kind="stable")[:2])
    x_values, y_values = _values(grid, first, _SIDE), _values(grid, second, _SIDE)
    points = np.repeat(point[None], _SIDE * _SIDE, axis=0)
    points[:, first] = np.tile(x_values, _SIDE)
    points[:, second] = np.repeat(y_values, _SIDE)
    states = _states(queries, target, rule, points).reshape(_SIDE, _SIDE)
    return DisagreementMap(
        rule,
        (grid.codes.names[first], grid.codes.names[second]),
        tuple(x_values.tolist()),
        tuple(y_values.tolist()),
        tuple(tuple(row) for row in states.tolist()),
        (float(point[first]), float(point[second])),
    )


def _values(grid: CellGrid, j: int, n: int) -> np.ndarray:
    values = np.linspace(grid.lower[j], grid.upper[j], n)
    return np.round(values) if grid.codes.is_whole[j] else values


def _states(queries: PointQueries, target: Target, rule: int, points: np.ndarray) -> np.ndarray:
    """Return for each point whether the rule predicts it and the model agrees."""
    assigned, _ = queries.apply_rules(points)
    agrees = target.agrees(queries.predict(points), points)
    return np.where(assigned == rule, np.where(agrees, AGREE, DISAGREE), OTHER_RULE)
