"""How sure a winner is: how far weights may move, and what other rows or folds would have said."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skescore.tuning._candidates import Candidate, Candidates, as_candidates
from skescore.tuning.weights._common import (
    check_score,
    chosen_weights,
    undominated,
    weight,
)
from skescore.tuning.weights._fire import fire_scores, fire_steps, first_best
from skescore.tuning.weights._ice import IcePlane
from skescore.tuning.weights._tree import along_line, nearest_change

__all__ = ["WeightStability", "weight_stability"]

#: The nearest weights are known to this much of a factor e.
_NEAREST = 1e-7
#: A weight that is so near to an edge lies on it.
_EDGE = 1e-12
_NO_CHANGE: dict[str, Any] = {"distance": math.inf, "weights": None, "candidate": None}


@dataclass(frozen=True)
class WeightStability:
    """How far weights may move before another candidate wins, from :func:`weight_stability`.

    Parameters
    ----------
    winner : Candidate
        Who wins with the weights as they are.
    place : int
        Its place among the candidates.
    table : pandas.DataFrame
        One row per weight and direction: ``weight``, ``direction`` (``"down"`` or ``"up"``),
        ``value`` from which on the winner is another, ``factor`` from the weight to it (at least
        1 in both directions), and ``candidate``, ``extractor`` and ``n_rules`` of the next winner.
        Where nobody else wins within reach the factor is infinite and the rest is missing.
    nearest : dict
        The least change of all weights together: ``distance`` in natural logarithms (Euclidean),
        the ``weights`` there, and the place ``candidate`` of who wins beyond. The distance is
        infinite, and the rest None, where nobody else wins within reach.
    reach : float
        Greatest factor that was looked at, either way.
    """

    winner: Candidate
    place: int
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
    """Tell how far weights may move before another candidate wins, and which one.

    Use it when weights have been chosen: a winner that survives a factor of 3 either way needs no
    discussion of the weights, one that falls at 1.05 does. The winner is the one with the best mean
    score; a search that prefers fewer rules among equally good ones may have chosen another.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate or fitted search
        What was measured.
    score : {"ice", "fire"}, default="ice"
        What decides.
    psi : float, optional
        Weight of FiRe, for ``score="fire"``; 1 by default.
    phi, rho : float, optional
        Weights of ICE, for ``score="ice"``; 1 by default.
    completeness : {"volume", "instances"}, default="volume"
        How completeness is measured, for ICE.
    reach : float, default=100.0
        Greatest factor to look at, either way.

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
    Factors of single weights are exact: a breakpoint of psi, or a zero of the difference of two ICE
    scores that is isolated by bounds and found to 1e-9 of the log-weight. The nearest change of
    both weights of ICE is found by bounds as well; its distance may be too long by 1e-7, never too
    short. It looks at a square of log-weights, as far as `reach` along each weight.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> from skescore.tuning import weight_stability
    >>> def measured(place, loss, n_rules):
    ...     fold = dict(performance=1 - loss, loss=loss, loss_q=loss, n_rules=n_rules,
    ...                 size=n_rules, completeness_volume=1.0, completeness_instances=1.0)
    ...     return Candidate("cart", {"max_leaf_nodes": n_rules}, place, (fold,))
    >>> found = Candidates([measured(0, 0.20, 2), measured(1, 0.05, 6)])
    >>> weight_stability(found).table[["weight", "direction", "factor", "candidate"]].round(3)
      weight direction  factor  candidate
    0    phi      down     inf       <NA>
    1    phi        up   1.753          1
    2    rho      down   1.716          1
    3    rho        up     inf       <NA>
    """
    found = as_candidates(candidates)
    check_score(score, completeness)
    weights = chosen_weights(score, {"psi": psi, "phi": phi, "rho": rho})
    furthest = weight("reach", reach)
    if furthest <= 1.0:
        raise ValueError(f"reach must be a factor > 1, got {reach!r}. Pass 10 or 100.")
    places, _ = undominated(found, score, completeness)
    if score == "fire":
        place = int(places[first_best(fire_scores(found, places, weights["psi"]))[0]])
        lines = {"psi": _along_psi(found, places, weights["psi"], furthest)}
    else:
        plane = IcePlane(found, completeness, places)
        point = np.log([weights["phi"], weights["rho"]])
        member = int(plane.winners(point[None])[0])
        place = int(places[member])
        lines = {
            name: _along_plane(plane, point, axis, math.log(furthest))
            for axis, name in enumerate(weights)
        }
    table = pd.DataFrame([
        _row(found, name, weights[name], direction, pieces, place)
        for name, pieces in lines.items()
        for direction in ("down", "up")
    ])  # fmt: skip
    table["candidate"] = table["candidate"].astype("Int64")
    if score == "fire":
        nearest = _nearest_of(table)
    else:
        nearest = _nearest_in_plane(plane, point, member, math.log(furthest))
    return WeightStability(found[place], place, table, dict(nearest), furthest)


#: Neighbouring intervals of a weight with the places of their winners.
Pieces = list[tuple[float, float, int]]


def _along_psi(candidates: Candidates, places: np.ndarray, psi: float, reach: float) -> Pieces:
    steps = fire_steps(candidates, places, psi / reach, psi * reach)
    winners = places[steps.winners]
    first = np.flatnonzero(np.append(True, winners[1:] != winners[:-1]))
    edges = np.append(steps.edges[first], steps.edges[-1])
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), winners[first].tolist(), strict=True))


def _along_plane(plane: IcePlane, point: np.ndarray, axis: int, reach: float) -> Pieces:
    ends = np.stack([point, point])
    ends[:, axis] += -reach, reach
    pieces = along_line(plane, *ends)
    return [(math.exp(a), math.exp(b), int(plane.places[who])) for a, b, who in pieces]


def _piece_of(pieces: Pieces, value: float, place: int) -> int:
    """Which piece a weight is in; on an edge that of the winner there."""
    near = [
        number
        for number, (low, high, _) in enumerate(pieces)
        if low * (1 - _EDGE) <= value <= high * (1 + _EDGE)
    ]
    return next((number for number in near if pieces[number][2] == place), near[0])


def _row(
    candidates: Candidates, name: str, value: float, direction: str, pieces: Pieces, place: int
) -> dict[str, Any]:
    row: dict[str, Any] = {"weight": name, "direction": direction, "value": math.nan,
                           "factor": math.inf, "candidate": None, "extractor": None,
                           "n_rules": math.nan}  # fmt: skip
    own = _piece_of(pieces, value, place)
    other = own + (1 if direction == "up" else -1)
    if not 0 <= other < len(pieces):
        return row
    edge = pieces[own][1 if direction == "up" else 0]
    following = candidates[pieces[other][2]]
    factor = max(1.0, edge / value if direction == "up" else value / edge)
    return row | {
        "value": edge, "factor": factor, "candidate": pieces[other][2],
        "extractor": following.extractor, "n_rules": following.mean("n_rules"),
    }  # fmt: skip


def _nearest_of(table: pd.DataFrame) -> dict[str, Any]:
    """With one weight the nearest change is the smaller of two factors."""
    row = table.iloc[int(np.argmin(table["factor"]))]
    if math.isinf(row["factor"]):
        return _NO_CHANGE
    return {
        "distance": math.log(row["factor"]), "weights": {row["weight"]: float(row["value"])},
        "candidate": int(row["candidate"]),
    }  # fmt: skip


def _nearest_in_plane(
    plane: IcePlane, point: np.ndarray, member: int, reach: float
) -> dict[str, Any]:
    change = nearest_change(plane, point, member, reach, _NEAREST)
    if change is None:
        return _NO_CHANGE
    distance, where, who = change
    phi, rho = np.exp(where).tolist()
    return {
        "distance": distance, "weights": {"phi": phi, "rho": rho},
        "candidate": int(plane.places[who]),
    }  # fmt: skip
