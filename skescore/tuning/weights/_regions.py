"""Winners of a search as functions of the weights: regions and stability."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy.ndimage import distance_transform_edt
from scipy.optimize import minimize_scalar

from skescore.tuning._candidates import Candidate, Candidates, as_candidates
from skescore.tuning.weights._weighing import (
    WEIGHTS,
    Cells,
    WeightedScores,
    best_of,
    check_score,
    check_weight,
    check_weights,
    chosen_weights,
    ranges_of,
)

_DOMINATED_REASON = "another candidate is at least as good on every fold"
_BEATEN_REASONS = {
    "fire": "another candidate is better for every psi in the range",
    "ice": "another candidate is better at every point of the grid",
}


def winning_regions(
    candidates: Any,
    score: str = "ice",
    *,
    within: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    completeness: str = "volume",
    resolution: int = 200,
) -> WinningRegions:
    r"""Compute the weights for which each candidate of a search wins.

    Use it before choosing weights: often one candidate wins for all sensible weights, or only two
    candidates can win. :func:`skescore.plots.winner_map` draws the result.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate, DataFrame or fitted search
        Measured candidates; a table has the columns of :meth:`Candidates.from_table`. As in the
        search, the score of a candidate is the mean of its scores on the folds.
    score : {"ice", "fire"}, default="ice"
        ICE has the weights phi and rho, FiRe has psi.
    within : (float, float) or dict of str to (float, float), optional
        Smallest and largest weight, or for ICE one pair for ``"phi"`` and one for ``"rho"``. By
        default from 0.1 to 10 for ICE, and from 0.1 to 100 for FiRe.
    completeness : {"volume", "instances"}, default="volume"
        Measure of completeness in ICE.
    resolution : int, default=200
        Number of points of the grid of ICE along each weight.

    Returns
    -------
    WinningRegions
        The table of winners, the winner for given weights, and intervals.

    Raises
    ------
    TypeError, ValueError
        If there are no candidates, or a parameter is invalid.

    Notes
    -----
    Ties (up to a relative 1e-12) are won by the candidate with fewer rules or the earlier one.
    Shares refer to the logarithmic range, in which doubling a weight counts like halving it.

    *FiRe* is a step function of psi: :math:`\lceil r/\psi \rceil` changes at
    :math:`\psi = r, r/2, r/3, \dots` only, and has the lower value there. So the table is
    exact, with intervals that are closed below and open above.

    *ICE* is evaluated at the points of a grid over :math:`\log\varphi` and :math:`\log\rho`. By
    default, neighboring points have the ratio 1.023 and shares are exact to about 0.001; a region
    narrower than a step of the grid may be missed. Intervals of one weight at a fixed value of the
    other do not depend on the grid: they end where two scores are equal.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
    ECAI 2023, doi:10.3233/FAIA230496. ICE: an evaluation metric to assess symbolic knowledge
    quality. 2024.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> from skescore.tuning import winning_regions
    >>> def measured(trial, performance, n_rules):
    ...     fold = dict(performance=performance, loss=1 - performance, loss_q=1 - performance,
    ...                 n_rules=n_rules, size=n_rules, completeness_volume=1.0,
    ...                 completeness_instances=1.0)
    ...     return Candidate.from_measures("cart", {"max_leaf_nodes": n_rules}, trial, (fold,))
    >>> candidates = Candidates([measured(0, 0.75, 1), measured(1, 0.95, 4), measured(2, 0.97, 12)])
    >>> by_psi = winning_regions(candidates, "fire")
    >>> by_psi.table[["low", "high", "n_rules", "loss", "share"]].round(2)
        low   high  n_rules  loss  share
    0   0.1   12.0      4.0  0.05   0.69
    1  12.0  100.0     12.0  0.03   0.31
    >>> by_ice = winning_regions(candidates)
    >>> by_ice.intervals(phi=1)[["low", "high", "n_rules"]].round(2)
        low   high  n_rules
    0  0.10   1.06      4.0
    1  1.06  10.00      1.0
    """
    members = as_candidates(candidates)
    check_score(score, completeness)
    if isinstance(resolution, bool) or not isinstance(resolution, int) or resolution < 2:
        raise ValueError(
            f"resolution must be a whole number of at least 2 points, got {resolution!r}. Pass 200."
        )
    return WinningRegions(members, score, ranges_of(score, within), completeness, resolution)


class WinningRegions:
    """Winners by weights, from :func:`winning_regions`.

    Attributes
    ----------
    table : pandas.DataFrame
        The winners. For FiRe, one row per interval of psi, in increasing order: ``low``, ``high``,
        ``closed_low``, ``closed_high``, ``candidate`` (its index), ``extractor``, ``n_rules``,
        ``loss`` and ``share`` of the logarithmic range. For ICE, one row per winner, the largest
        region first: ``candidate``, ``extractor``, ``n_rules``, ``performance``, ``completeness``,
        ``share`` of the points of the grid, ``phi`` and ``rho`` of the point farthest from the
        edges of the region, and the range of the region (``phi_low``, ``phi_high``, ``rho_low``,
        ``rho_high``), accurate to one step. Measures are means over the folds.
    nowhere : pandas.DataFrame
        Candidates that win for no weights in the range, with the reason, and with the candidate
        that beats them if it is the same for all weights.
    grid : ndarray of int, shape (resolution, resolution)
        For ICE, the index of the candidate that wins at each point: phi by rows, rho by columns.
    edges : dict of str to ndarray
        Edges of the cells around the points of the grid by weight, or of the steps of psi.
    candidates : Candidates
        The candidates.
    score : str
        Name of the score.
    within : dict of str to (float, float)
        Range of each weight.
    resolution : int
        Number of points of the grid along each weight.
    """

    def __init__(
        self,
        candidates: Candidates,
        score: str,
        within: dict[str, tuple[float, float]],
        completeness: str,
        resolution: int,
    ) -> None:
        self.candidates = candidates
        self.score = score
        self.within = within
        self.resolution = resolution
        self._completeness = completeness
        self._scores = WeightedScores(candidates, score, completeness)

    @cached_property
    def _cells(self) -> Cells:
        return self._scores.cells(self.within, self.resolution)

    @property
    def edges(self) -> dict[str, np.ndarray]:
        """Edges of the cells by weight; see the attributes of the class."""
        return dict(zip(WEIGHTS[self.score], self._cells.edges, strict=True))

    @cached_property
    def grid(self) -> np.ndarray:
        """Winner at each point of the grid; see the attributes of the class."""
        if self.score == "fire":
            raise AttributeError("FiRe has steps of psi instead of a grid: see table and edges.")
        winners = self._scores.members[best_of(self._cells.log_scores)]
        return winners.reshape(self.resolution, self.resolution)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Table of winners; see the attributes of the class."""
        return self._make_fire_table() if self.score == "fire" else self._make_ice_table()

    @cached_property
    def nowhere(self) -> pd.DataFrame:
        """Candidates that win for no weights; see the attributes of the class."""
        better = self._scores.dominators
        losers = np.setdiff1d(np.arange(len(self.candidates)), self.table["candidate"])
        reasons = [
            _DOMINATED_REASON if index in better else _BEATEN_REASONS[self.score]
            for index in losers
        ]
        beaten_by = pd.array([better.get(index) for index in losers.tolist()], dtype="Int64")
        return self._describe_candidates(losers).assign(reason=reasons, beaten_by=beaten_by)

    def _make_fire_table(self) -> pd.DataFrame:
        low, high = self.within["psi"]
        edges, winners = self._scores.line({}, "psi", low, high)
        table = pd.DataFrame({"low": edges[:-1], "high": edges[1:], "closed_low": True})
        # The greatest psi belongs to the last interval, even if that consists of it alone.
        table["closed_high"] = np.arange(len(winners)) == len(winners) - 1
        share = np.log(edges[1:] / edges[:-1]) / math.log(high / low)
        return table.join(self._describe_candidates(winners, "loss")).assign(share=share)

    def _make_ice_table(self) -> pd.DataFrame:
        """Return the region of the weights phi and rho in which each candidate wins, by share."""
        winners, counts = np.unique(self.grid, return_counts=True)
        rank = np.argsort(-counts, kind="stable")
        winners, counts = winners[rank], counts[rank]
        measure = f"completeness_{self._completeness}"
        table = self._describe_candidates(winners, "performance", measure)
        table = table.rename(columns={measure: "completeness"})
        table["share"] = counts / self.grid.size
        rows = []
        for index in winners:
            is_won = self.grid == index
            depth = distance_transform_edt(np.pad(is_won, 1))[1:-1, 1:-1]
            middle = np.unravel_index(int(np.argmax(depth)), depth.shape)
            row: dict[str, float] = {}
            for axis, (name, edges) in enumerate(self.edges.items()):
                won_indices = np.flatnonzero(is_won.any(axis=1 - axis))
                row[name] = math.sqrt(edges[middle[axis]] * edges[middle[axis] + 1])
                row[f"{name}_low"] = edges[won_indices[0]]
                row[f"{name}_high"] = edges[won_indices[-1] + 1]
            rows.append(row)
        order = ["phi", "rho", "phi_low", "phi_high", "rho_low", "rho_high"]
        return table.join(pd.DataFrame(rows)[order])

    def _describe_candidates(self, indices: np.ndarray, *measures: str) -> pd.DataFrame:
        table = pd.DataFrame(
            {
                "candidate": indices,
                "extractor": [self.candidates[int(index)].extractor for index in indices],
            }
        )
        for name in ("n_rules", *measures):
            table[name] = self.candidates.means(name)[indices]
        return table

    def winner(self, **weights: float) -> Candidate:
        """Return the winner for some weights, also outside the range of the table.

        Parameters
        ----------
        **weights : float
            ``psi`` for FiRe; ``phi`` and ``rho`` for ICE.

        Returns
        -------
        Candidate
            The winner.

        Raises
        ------
        TypeError, ValueError
            If a weight is missing, unknown or not positive.
        """
        return self.candidates[self.winner_index(**weights)]

    def winner_index(self, **weights: float) -> int:
        """Return the index of :meth:`winner` among the candidates, as in the table.

        Parameters
        ----------
        **weights : float
            ``psi`` for FiRe; ``phi`` and ``rho`` for ICE.

        Returns
        -------
        int
            The index.

        Raises
        ------
        TypeError, ValueError
            If a weight is missing, unknown or not positive.
        """
        return self._scores.winner(check_weights(self.score, weights))

    def intervals(self, **fixed: float) -> pd.DataFrame:
        """Return the winners along one weight of ICE for a fixed value of the other.

        Parameters
        ----------
        **fixed : float
            Either ``phi`` or ``rho``.

        Returns
        -------
        pandas.DataFrame
            One row per interval of the other weight, ascending: ``low``, ``high``, ``candidate``,
            ``extractor``, ``n_rules``, ``performance`` and ``share`` of the logarithmic range.
            Where two intervals meet, both candidates have the same score.

        Raises
        ------
        TypeError, ValueError
            If not exactly one weight is fixed, it is not positive, or the score is FiRe.
        """
        if self.score == "fire":
            raise TypeError(
                "intervals fixes one of the two weights of ICE, but FiRe has only the weight psi. "
                "The intervals of psi are the rows of `table`."
            )
        if len(fixed) != 1 or set(fixed) - set(WEIGHTS["ice"]):
            raise TypeError(f"intervals needs either phi or rho, got {fixed!r}. Pass one of them.")
        ((name, value),) = fixed.items()
        (other,) = set(WEIGHTS["ice"]) - {name}
        low, high = self.within[other]
        edges, winners = self._scores.line({name: check_weight(name, value)}, other, low, high)
        share = np.log(edges[1:] / edges[:-1]) / math.log(high / low)
        table = pd.DataFrame({"low": edges[:-1], "high": edges[1:]})
        return table.join(self._describe_candidates(winners, "performance")).assign(share=share)

    def __repr__(self) -> str:
        n_winners = self.table["candidate"].nunique()
        ranges = ", ".join(f"{n} {a:g} to {b:g}" for n, (a, b) in self.within.items())
        return (
            f"<{type(self).__name__} of {self.score}: {n_winners} of {len(self.candidates)} "
            f"candidates win, {ranges}>"
        )


#: Numbers of rays and of points per ray in the search for the nearest change of two weights.
_N_RAYS, _N_POINTS_PER_RAY = 180, 100

#: A weight whose relative distance from an edge is at most this value lies on the edge.
_EDGE_TOLERANCE = 1e-12
_NO_CHANGE: dict[str, Any] = {"distance": math.inf, "weights": None, "candidate": None}


@dataclass(frozen=True)
class WeightStability:
    """Largest changes of the weights without another winner, from :func:`weight_stability`.

    Parameters
    ----------
    winner : Candidate
        Candidate that wins with the given weights.
    index : int
        Index of the winner among the candidates.
    table : pandas.DataFrame
        One row per weight and direction: ``weight``, ``direction`` (``"down"`` or ``"up"``),
        ``value`` at which another candidate starts to win, ``factor`` between the weight and this
        value (at least 1 in both directions), and ``candidate``, ``extractor`` and ``n_rules`` of
        the next winner. If no other candidate wins within reach, the factor is infinite and the
        other columns are missing.
    nearest : dict
        Smallest joint change of all weights: Euclidean ``distance`` of their natural logarithms,
        the ``weights`` there, and the index ``candidate`` of the next winner. If no other candidate
        wins within reach, the distance is infinite and the other values are None.
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
    larger or smaller, the weights need no discussion; if another candidate wins at a factor of
    1.05, they do. The winner is the candidate with the best mean score. A search may have chosen
    another candidate, because it prefers fewer rules among equally good candidates.

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
    max_factor = check_weight("reach", reach)
    if max_factor <= 1.0:
        raise ValueError(f"reach must be a factor > 1, got {reach!r}. Pass 10 or 100.")
    scores = WeightedScores(members, score, completeness)
    index = scores.winner(weights)
    rows = []
    for name, value in weights.items():
        edges, winners = scores.line(weights, name, value / max_factor, value * max_factor)
        interval = _interval_of(edges, winners, value, index)
        for direction, neighbor in (("down", interval - 1), ("up", interval + 1)):
            row: dict[str, Any] = {
                "weight": name,
                "direction": direction,
                "value": math.nan,
                "factor": math.inf,
                "candidate": None,
                "extractor": None,
                "n_rules": math.nan,
            }
            if 0 <= neighbor < len(winners):
                edge = float(edges[max(interval, neighbor)])
                next_winner = members[int(winners[neighbor])]
                factor = edge / value if direction == "up" else value / edge
                row |= {
                    "value": edge,
                    "factor": max(1.0, factor),
                    "candidate": int(winners[neighbor]),
                    "extractor": next_winner.extractor,
                    "n_rules": next_winner.mean("n_rules"),
                }
            rows.append(row)
    table = pd.DataFrame(rows)
    table["candidate"] = table["candidate"].astype("Int64")
    nearest = _nearest_change_of_one(table, weights)
    if score == "ice":
        nearest = min(
            nearest,
            _nearest_change_of_both(scores, weights, index, max_factor),
            key=lambda change: change["distance"],
        )
    return WeightStability(members[index], index, table, nearest, max_factor)


def _interval_of(edges: np.ndarray, winners: np.ndarray, value: float, index: int) -> int:
    """Return the interval that contains a weight; on an edge, the interval of the winner."""
    matches = np.flatnonzero(
        (edges[:-1] * (1 - _EDGE_TOLERANCE) <= value) & (value <= edges[1:] * (1 + _EDGE_TOLERANCE))
    )
    return int(next((number for number in matches if winners[number] == index), matches[0]))


def _nearest_change_of_one(table: pd.DataFrame, weights: dict[str, float]) -> dict[str, Any]:
    """Return the smallest change of a single weight that leads to another winner."""
    row = table.iloc[int(np.argmin(table["factor"]))]
    if math.isinf(row["factor"]):
        return dict(_NO_CHANGE)
    return {
        "distance": math.log(row["factor"]),
        "weights": weights | {row["weight"]: float(row["value"])},
        "candidate": int(row["candidate"]),
    }


def _nearest_change_of_both(
    scores: WeightedScores, weights: dict[str, float], index: int, reach: float
) -> dict[str, Any]:
    """Return the smallest change of both weights that leads to another winner."""
    center = np.log(list(weights.values()))
    radii = np.linspace(0.0, math.log(reach), _N_POINTS_PER_RAY + 1)[1:]

    def winners(angles: np.ndarray, distances: np.ndarray) -> np.ndarray:
        steps = distances[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        member_numbers = scores.winners((center + steps).reshape(-1, 2))
        return scores.members[member_numbers].reshape(distances.shape)

    def first_changes(angles: np.ndarray) -> np.ndarray:
        """Return the distance along each ray at which the winner first changes."""
        points = np.tile(radii, (len(angles), 1))
        has_changed = winners(np.repeat(angles[:, None], len(radii), axis=1), points) != index
        first_index = has_changed.argmax(axis=1)
        high = np.where(has_changed.any(axis=1), radii[first_index], math.inf)
        low = np.where(first_index > 0, radii[first_index - 1], 0.0)
        is_finite = np.isfinite(high)
        for _ in range(50):
            middle = np.where(is_finite, (low + high) / 2, 0.0)
            has_changed = winners(angles, middle) != index
            high = np.where(is_finite & has_changed, middle, high)
            low = np.where(is_finite & ~has_changed, middle, low)
        return high

    angles = np.linspace(0.0, 2 * math.pi, _N_RAYS, endpoint=False)
    changes = first_changes(angles)
    best_index = int(np.argmin(changes))
    if math.isinf(changes[best_index]):
        return dict(_NO_CHANGE)
    step = angles[1]
    minimum = minimize_scalar(
        lambda angle: first_changes(np.array([angle]))[0],
        method="bounded",
        bounds=(angles[best_index] - step, angles[best_index] + step),
        options={"xatol": 1e-6},
    )
    angle, distance = angles[best_index], changes[best_index]
    if minimum.fun < distance:
        angle, distance = minimum.x, minimum.fun
    phi, rho = np.exp(center + distance * np.array([math.cos(angle), math.sin(angle)])).tolist()
    return {
        "distance": float(distance),
        "weights": {"phi": phi, "rho": rho},
        "candidate": int(winners(np.array([angle]), np.array([distance]))[0]),
    }
