"""Stability of a winner under changes of the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

from skescore.tuning._candidates import Candidate, as_candidates
from skescore.tuning.weights._weighing import Weighing, check_score, chosen_weights, weight

#: Numbers of rays and of points per ray in the search for the nearest change of two weights.
_RAYS, _POINTS = 180, 100
#: A weight at this relative distance from an edge lies on it.
_EDGE = 1e-12
_NO_CHANGE: dict[str, Any] = {"distance": math.inf, "weights": None, "candidate": None}


@dataclass(frozen=True)
class WeightStability:
    """Largest changes of the weights without another winner, from :func:`weight_stability`.

    Parameters
    ----------
    winner : Candidate
        Candidate that wins with the given weights.
    index : int
        Its index among the candidates.
    table : pandas.DataFrame
        One row per weight and direction: ``weight``, ``direction`` (``"down"`` or ``"up"``),
        ``value`` at which another candidate starts to win, ``factor`` between the weight and this
        value (at least 1 in both directions), and ``candidate``, ``extractor`` and ``n_rules`` of
        the next winner. If no other candidate wins within reach, the factor is infinite and the
        other columns are missing.
    nearest : dict
        Smallest joint change of all weights: Euclidean ``distance`` of their natural logarithms,
        the ``weights`` there, and the index ``candidate`` of the next winner. If no other candidate
        wins within reach, the distance is infinite and the others are None.
    reach : float
        Largest factor that was examined, in both directions.
    """

    winner: Candidate
    index: int
    table: pd.DataFrame
    nearest: dict[str, Any]
    reach: float


def weight_stability(
    candidates: Any,
    score: str = "ice",
    *,
    psi: float | None = None,
    phi: float | None = None,
    rho: float | None = None,
    completeness: str = "volume",
    reach: float = 100.0,
) -> WeightStability:
    """Compute how far weights can change before another candidate wins, and which one.

    Use it after choosing weights. If the same candidate wins for weights that are three times
    larger or smaller, the weights need no discussion; if another one wins at a factor of 1.05, they
    do. The winner is the candidate with the best mean score. A search may have chosen another one,
    because it prefers fewer rules among equally good candidates.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate, DataFrame or fitted search
        Measured candidates; a table has the columns of :meth:`Candidates.from_table`.
    score : {"ice", "fire"}, default="ice"
        Score that determines the winner.
    psi : float, optional
        Weight of FiRe, for ``score="fire"``; 1 by default.
    phi, rho : float, optional
        Weights of ICE, for ``score="ice"``; 1 by default.
    completeness : {"volume", "instances"}, default="volume"
        Measure of completeness in ICE.
    reach : float, default=100.0
        Largest factor to examine, in both directions.

    Returns
    -------
    WeightStability
        The winner, a table by weight and direction, and the nearest change.

    Raises
    ------
    TypeError, ValueError
        If there are no candidates, or a name, weight or measure is out of its range.

    Notes
    -----
    Factors of single weights are exact: they are breakpoints of psi, or zeros of the difference of
    two ICE scores. The nearest change of both weights of ICE is searched along 180 rays of 100
    points in the plane of the logarithms of the weights, and then refined between them. A region
    between all of these points is missed.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> from skescore.tuning import weight_stability
    >>> def measured(trial, loss, n_rules):
    ...     fold = dict(performance=1 - loss, loss=loss, loss_q=loss, n_rules=n_rules,
    ...                 size=n_rules, completeness_volume=1.0, completeness_instances=1.0)
    ...     return Candidate.from_measures("cart", {"max_leaf_nodes": n_rules}, trial, (fold,))
    >>> candidates = Candidates([measured(0, 0.20, 2), measured(1, 0.05, 6)])
    >>> weight_stability(candidates).table[["weight", "direction", "factor", "candidate"]].round(3)
      weight direction  factor  candidate
    0    phi      down     inf       <NA>
    1    phi        up   1.753          1
    2    rho      down   1.716          1
    3    rho        up     inf       <NA>
    """
    members = as_candidates(candidates)
    check_score(score, completeness)
    weights = chosen_weights(score, {"psi": psi, "phi": phi, "rho": rho})
    furthest = weight("reach", reach)
    if furthest <= 1.0:
        raise ValueError(f"reach must be a factor > 1, got {reach!r}. Pass 10 or 100.")
    weighing = Weighing(members, score, completeness)
    index = weighing.winner(weights)
    rows = []
    for name, value in weights.items():
        edges, winners = weighing.line(weights, name, value / furthest, value * furthest)
        interval = _interval_of(edges, winners, value, index)
        for direction, other in (("down", interval - 1), ("up", interval + 1)):
            row: dict[str, Any] = {
                "weight": name,
                "direction": direction,
                "value": math.nan,
                "factor": math.inf,
                "candidate": None,
                "extractor": None,
                "n_rules": math.nan,
            }
            if 0 <= other < len(winners):
                edge = float(edges[max(interval, other)])
                following = members[int(winners[other])]
                factor = edge / value if direction == "up" else value / edge
                row |= {
                    "value": edge,
                    "factor": max(1.0, factor),
                    "candidate": int(winners[other]),
                    "extractor": following.extractor,
                    "n_rules": following.mean("n_rules"),
                }
            rows.append(row)
    table = pd.DataFrame(rows)
    table["candidate"] = table["candidate"].astype("Int64")
    nearest = _nearest_along_one(table, weights)
    if score == "ice":
        nearest = min(
            nearest,
            _nearest_around(weighing, weights, index, furthest),
            key=lambda change: change["distance"],
        )
    return WeightStability(members[index], index, table, nearest, furthest)


def _interval_of(edges: np.ndarray, winners: np.ndarray, value: float, index: int) -> int:
    """Return the interval that contains a weight; on an edge, that of the winner."""
    near = np.flatnonzero((edges[:-1] * (1 - _EDGE) <= value) & (value <= edges[1:] * (1 + _EDGE)))
    return int(next((number for number in near if winners[number] == index), near[0]))


def _nearest_along_one(table: pd.DataFrame, weights: dict[str, float]) -> dict[str, Any]:
    row = table.iloc[int(np.argmin(table["factor"]))]
    if math.isinf(row["factor"]):
        return dict(_NO_CHANGE)
    return {
        "distance": math.log(row["factor"]),
        "weights": weights | {row["weight"]: float(row["value"])},
        "candidate": int(row["candidate"]),
    }


def _nearest_around(
    weighing: Weighing, weights: dict[str, float], index: int, reach: float
) -> dict[str, Any]:
    """Return the nearest change of the winner in the plane of both log-weights."""
    center = np.log(list(weights.values()))
    radii = np.linspace(0.0, math.log(reach), _POINTS + 1)[1:]

    def winners(angles: np.ndarray, distances: np.ndarray) -> np.ndarray:
        steps = distances[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        minimum = weighing.winners((center + steps).reshape(-1, 2))
        return weighing.members[minimum].reshape(distances.shape)

    def first_changes(angles: np.ndarray) -> np.ndarray:
        """Return the distance along each ray at which the winner first changes."""
        points = np.tile(radii, (len(angles), 1))
        changed = winners(np.repeat(angles[:, None], len(radii), axis=1), points) != index
        first = changed.argmax(axis=1)
        high = np.where(changed.any(axis=1), radii[first], math.inf)
        low = np.where(first > 0, radii[first - 1], 0.0)
        is_finite = np.isfinite(high)
        for _ in range(50):
            middle = np.where(is_finite, (low + high) / 2, 0.0)
            changed = winners(angles, middle) != index
            high = np.where(is_finite & changed, middle, high)
            low = np.where(is_finite & ~changed, middle, low)
        return high

    angles = np.linspace(0.0, 2 * math.pi, _RAYS, endpoint=False)
    changes = first_changes(angles)
    best = int(np.argmin(changes))
    if math.isinf(changes[best]):
        return dict(_NO_CHANGE)
    step = angles[1]
    minimum = minimize_scalar(
        lambda angle: first_changes(np.array([angle]))[0],
        method="bounded",
        bounds=(angles[best] - step, angles[best] + step),
        options={"xatol": 1e-6},
    )
    angle, distance = angles[best], changes[best]
    if minimum.fun < distance:
        angle, distance = minimum.x, minimum.fun
    phi, rho = np.exp(center + distance * np.array([math.cos(angle), math.sin(angle)])).tolist()
    return {
        "distance": float(distance),
        "weights": {"phi": phi, "rho": rho},
        "candidate": int(winners(np.array([angle]), np.array([distance]))[0]),
    }
