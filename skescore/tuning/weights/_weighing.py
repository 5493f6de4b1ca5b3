"""Scores of candidates as functions of the weights.

Weights are handled as logarithms, so doubling a weight counts like halving it. The range of the
weights is divided into cells. FiRe is a step function of psi: ``ceil(r / psi)`` changes only at
``psi = r, r/2, r/3, ...`` and has its lower value there, so the cells between these values are
exact. ICE is smooth in phi and rho: it is evaluated at the points of a grid, which are the centers
of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from skescore._validation import as_numbers, check_choice
from skescore.metrics import fire_score, ice_performance, ice_readability, ice_score
from skescore.scorers import COMPLETENESSES, SCORE_SPECS
from skescore.tuning._candidates import Candidates

#: Weights of each score in display order, and their ranges.
WEIGHTS = {name: SCORE_SPECS[name].weight_names for name in ("fire", "ice")}
#: Scores whose ratio differs from 1 by at most this value are equal up to rounding errors.
TIE = 1e-12
#: Values of psi whose relative difference is at most this value are equal up to rounding errors.
_PSI_TOLERANCE = 1e-13
#: Negative logarithm of a score of 0, instead of infinity.
_MAX_NEGATIVE_LOG = 1e6
#: Number of points along one weight of ICE between which crossings are searched.
_N_LINE_POINTS = 1000
_BLOCK_SIZE = 2_000_000


def check_score(score: Any, completeness: Any = "volume") -> None:
    """Raise an error for unknown scores and for Q, which has no weights."""
    if score not in WEIGHTS:
        hint = " Q has no weights to choose." if score in ("q", "neg_q") else ""
        raise ValueError(f"score must be one of {list(WEIGHTS)}, got {score!r}.{hint}")
    check_choice("completeness", completeness, COMPLETENESSES)


def check_weight(name: str, value: Any) -> float:
    """Return a weight as a float; raise an error if it is invalid."""
    if np.ndim(value):
        raise TypeError(f"{name} must be one number, got {value!r}. Pass one weight at a time.")
    return float(as_numbers(name, value, low=0.0, strict=True, remedy="Pass 1.0 for neutral."))


def chosen_weights(score: str, weights: Mapping[str, Any]) -> dict[str, float]:
    """Return the weights of a score, 1 by default; raise an error for weights of other scores."""
    names = WEIGHTS.get(score, ())
    unknown = [name for name, value in weights.items() if value is not None and name not in names]
    if unknown:
        owner = next(other_score for other_score, theirs in WEIGHTS.items() if unknown[0] in theirs)
        are_weights = "is a weight" if len(unknown) == 1 else "are weights"
        raise ValueError(
            f"{' and '.join(unknown)} {are_weights} of {owner!r}, not of {score!r}, got "
            f"{unknown[0]}={weights[unknown[0]]!r}. Pass score={owner!r}, or leave it out."
        )
    return {
        name: check_weight(name, 1.0 if weights[name] is None else weights[name]) for name in names
    }


def check_weights(score: str, weights: dict[str, Any]) -> dict[str, float]:
    """Return the weights as floats; raise an error unless exactly those of the score are given."""
    if set(weights) != set(WEIGHTS[score]):
        raise TypeError(
            f"The weights of {score!r} are {' and '.join(WEIGHTS[score])}, got {weights!r}. Pass "
            "each of them by name."
        )
    return {name: check_weight(name, weights[name]) for name in WEIGHTS[score]}


def ranges_of(score: str, within: Any) -> dict[str, tuple[float, float]]:
    """Return the range of each weight of a score from the parameter `within`."""
    ranges = {weight.name: weight.within for weight in SCORE_SPECS[score].weights}
    if within is None:
        return ranges
    if not isinstance(within, Mapping):
        return dict.fromkeys(ranges, _range("within", within))
    unknown = set(within) - set(ranges)
    if unknown:
        raise ValueError(
            f"within must name weights of {score!r} ({', '.join(ranges)}), got {within!r}."
        )
    return ranges | {name: _range(f"within[{name!r}]", value) for name, value in within.items()}


def _range(name: str, value: Any) -> tuple[float, float]:
    if np.shape(value) != (2,):
        raise ValueError(f"{name} must be a pair (low, high), got {value!r}.")
    low, high = (check_weight(name, end) for end in value)
    if not low < high:
        raise ValueError(f"{name} must be a pair (low, high) with low < high, got {value!r}.")
    return low, high


def preference(candidates: Candidates) -> np.ndarray:
    """Return the candidates in the order of tie-breaking: by fewer rules, then by position."""
    return np.lexsort((np.arange(len(candidates)), candidates.means("n_rules")))


def _drop_dominated(
    candidates: Candidates, score: str, completeness: str
) -> tuple[np.ndarray, dict[int, int]]:
    """Remove candidates that another candidate equals or beats on every fold.

    Returns the indices of the remaining candidates in the order of tie-breaking, and for each
    removed candidate the index of a remaining candidate that equals or beats it.
    """
    candidates.scores(score, completeness=completeness)  # raises an error for values out of range
    if score == "fire":
        loss, size = candidates.measure("loss"), candidates.measure("size")
        alignments = [np.stack([loss, np.where(loss == 0, 1.0, size)])]
    else:
        loss = 1.0 - candidates.measure("performance")
        size, share = candidates.measure("size"), candidates.measure(f"completeness_{completeness}")
        # Folds that score 0 for all weights are equal.
        scores_zero = np.isinf(loss) | (share == 0)
        costs = np.where(
            scores_zero,
            np.array([np.inf, np.inf, 0.0])[:, None, None],
            np.stack([loss, size, -share]),
        )
        # The mean score ignores the order of the folds, so sorted folds are compared too.
        order = np.lexsort(np.where(scores_zero, 0.0, np.stack([loss, size, share])), axis=-1)
        alignments = [costs, np.take_along_axis(costs, order[None], axis=-1)]
    order = preference(candidates)
    rank = np.argsort(order)
    better: dict[int, int] = {}
    for costs in map(_round_noise, alignments):
        for index in order.tolist():
            if index in better:
                continue
            is_no_worse = (costs <= costs[:, [index]]).all(axis=(0, 2))
            is_better = is_no_worse & (costs < costs[:, [index]]).any(axis=(0, 2))
            rivals = np.flatnonzero(is_better | (is_no_worse & (rank < rank[index])))
            if len(rivals):
                better[index] = int(rivals[0])
    for index in better:
        while better[index] in better:
            better[index] = better[better[index]]
    return np.array([index for index in order if index not in better]), better


def _round_noise(costs: np.ndarray) -> np.ndarray:
    """Round numbers, so that rounding errors do not determine the winner."""
    mantissas, exponents = np.frexp(costs)
    return np.ldexp(np.round(mantissas, 12), exponents)


@dataclass(frozen=True)
class Cells:
    """Cells of the range of the weights, each with one winner.

    `points` are log-weights within the cells, `area` the sizes of the cells in log-weights,
    `log_scores` the log-scores of the members at the points, and `edges` the bounds of the cells by
    weight.
    """

    points: np.ndarray
    area: np.ndarray
    log_scores: np.ndarray
    edges: tuple[np.ndarray, ...]


class WeightedScores:
    """Scores of candidates as functions of the weights.

    `members` are the indices of the candidates that can win. `dominators` maps the index of each
    other candidate to that of a member which equals or beats it on every fold.
    """

    def __init__(self, candidates: Candidates, score: str, completeness: str) -> None:
        self.candidates = candidates
        self.score = score
        self.members, self.dominators = _drop_dominated(candidates, score, completeness)
        names = (
            ("loss", "size")
            if score == "fire"
            else ("performance", "size", f"completeness_{completeness}")
        )
        self._folds = [candidates.measure(name)[self.members] for name in names]

    def log_scores(self, points: np.ndarray, members: Any = slice(None)) -> np.ndarray:
        """Return the scores of members at log-weights as logarithms; greater is better.

        The result has the shape (n_points, n_members).
        """
        folds = [values[members] for values in self._folds]
        block_length = max(1, _BLOCK_SIZE // folds[0].size)
        blocks = [
            np.exp(points[n : n + block_length])[..., None, None]
            for n in range(0, len(points), block_length)
        ]
        if self.score == "fire":
            means = [fire_score(*folds, psi=block[:, 0]).mean(axis=-1) for block in blocks]
        else:
            means = [
                ice_score(*folds, phi=block[:, 0], rho=block[:, 1]).mean(axis=-1)
                for block in blocks
            ]
        return self._logarithms(np.concatenate(means))

    def winners(self, points: np.ndarray) -> np.ndarray:
        """Return the number of the best member at each log-weight; the first if several tie."""
        return best_of(self.log_scores(points))

    def winner(self, weights: Mapping[str, float]) -> int:
        """Return the index of the winner."""
        # FiRe's steps start at weights with few digits, which logarithms would not preserve.
        if self.score == "fire":
            scores = self._logarithms(fire_score(*self._folds, **weights).mean(axis=-1))[None]
        else:
            scores = self.log_scores(np.log([list(weights.values())]))
        return int(self.members[best_of(scores)[0]])

    def cells(self, ranges: Mapping[str, tuple[float, float]], resolution: int) -> Cells:
        """Divide ranges of weights into cells: the steps of FiRe in psi, or a grid for ICE."""
        if self.score == "fire":
            return self._steps(*ranges["psi"])
        logs = [
            np.linspace(np.log(low), np.log(high), resolution + 1) for low, high in ranges.values()
        ]
        middles = [(log[:-1] + log[1:]) / 2 for log in logs]
        points = np.stack(np.meshgrid(*middles, indexing="ij"), axis=-1).reshape(-1, 2)
        area = np.full(len(points), np.prod([log[1] - log[0] for log in logs]))
        performance, size, share = (values[..., None] for values in self._folds)
        phi, rho = map(np.exp, middles)
        # On each fold, a score is the product of a function of phi and a function of rho.
        of_phi = np.asarray(ice_performance(performance, phi=phi)).swapaxes(1, 2)
        of_rho = np.asarray(ice_readability(size, rho=rho)) * share / share.shape[1]
        scores = (of_phi @ of_rho).reshape(len(self.members), -1).T
        return Cells(points, area, self._logarithms(scores), tuple(map(np.exp, logs)))

    def _steps(self, low: float, high: float) -> Cells:
        edges = _breakpoints(self._folds[1], low, high)
        logs = np.log(edges)
        points = ((logs[:-1] + logs[1:]) / 2)[:, None]
        return Cells(points, np.diff(logs), self.log_scores(points), (edges,))

    def line(
        self, weights: Mapping[str, float], name: str, low: float, high: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of intervals of one weight, and their winners, for a fixed other weight.

        For ICE, an edge is the weight at which two scores are equal, up to float precision. A
        winner between two points of the line is found only if it wins where the winners at these
        points are equally good.
        """
        if self.score == "fire":
            steps = self._steps(low, high)
            edges, winners = steps.edges[0], best_of(steps.log_scores)
            first_cells = np.flatnonzero(np.append(True, winners[1:] != winners[:-1]))
            return np.append(edges[first_cells], edges[-1]), self.members[winners[first_cells]]
        axis = WEIGHTS["ice"].index(name)
        point = np.log([weights.get(weight, 1.0) for weight in WEIGHTS["ice"]])
        points = np.tile(point, (_N_LINE_POINTS, 1))
        points[:, axis] = np.linspace(math.log(low), math.log(high), _N_LINE_POINTS)
        winners = self.winners(points)
        cuts, wins = [low], [int(winners[0])]
        for position in np.flatnonzero(winners[1:] != winners[:-1]):
            for cut, member in self._change_points(
                points[position], axis, points[position + 1, axis], int(winners[position + 1])
            ):
                cuts.append(math.exp(cut))
                wins.append(member)
        return np.array([*cuts, high]), self.members[wins]

    def _change_points(
        self, point: np.ndarray, axis: int, high: float, last_member: int
    ) -> list[tuple[float, int]]:
        """Return where the winner changes between two points of a line, and the new winners."""
        first_member = int(self.winners(point[None])[0])

        def lead(value: float) -> float:
            moved_point = point.copy()
            moved_point[axis] = value
            a, b = self.log_scores(moved_point[None], [first_member, last_member])[0]
            return float(a - b)

        low = float(point[axis])
        if lead(low) * lead(high) >= 0:  # one of the ends is a tie
            return [((low + high) / 2, last_member)]
        cut = float(brentq(lead, low, high, xtol=1e-15, rtol=1e-15))
        cut_point = point.copy()
        cut_point[axis] = cut
        third = int(self.winners(cut_point[None])[0])
        if third in (first_member, last_member):
            return [(cut, last_member)]
        return [
            *self._change_points(point, axis, cut, third),
            *self._change_points(cut_point, axis, high, last_member),
        ]

    def _logarithms(self, scores: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(scores), -_MAX_NEGATIVE_LOG)
        return -logs if self.score == "fire" else logs


def best_of(log_scores: np.ndarray) -> np.ndarray:
    """Return the index of the first maximum of each row, up to rounding errors."""
    return np.argmax(log_scores >= log_scores.max(axis=1, keepdims=True) - TIE, axis=1)


def _breakpoints(sizes: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the steps of ceil(rules/psi) in an interval of psi, with both ends.

    If a step begins at the upper end, this end is contained twice.
    """
    candidate_edges = [np.array([low, high])]
    for size in np.unique(sizes):
        # Only a few of the many steps at small psi are in the interval.
        candidate_edges.append(size / np.arange(max(1, int(size / high)), int(size / low) + 2))
    edges = np.unique(np.concatenate(candidate_edges))
    edges = edges[(edges >= low) & (edges <= high)]
    edges = edges[np.append(True, np.diff(edges) > _PSI_TOLERANCE * edges[:-1])]
    quotient = sizes / high
    begins = np.abs(quotient - np.maximum(np.rint(quotient), 1.0)) <= _PSI_TOLERANCE * quotient
    return np.append(edges, high) if begins.any() else np.append(edges[edges < high], high)
