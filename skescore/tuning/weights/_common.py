"""What everything about weights shares: reading of arguments, order of ties, dominance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skescore.metrics._arguments import as_numbers
from skescore.scorers._evaluation import COMPLETENESSES
from skescore.tuning._candidates import Candidates
from skescore.tuning.weights._fire import fire_scores
from skescore.tuning.weights._ice import folds_of

#: Weights of each score, in the order in which they are shown.
WEIGHTS = {"fire": ("psi",), "ice": ("phi", "rho")}
WITHIN = {"fire": (0.1, 100.0), "ice": (0.1, 10.0)}


def check_score(score: Any, completeness: Any = "volume") -> None:
    """Refuse names that are unknown, and Q, which has no weights."""
    if score not in WEIGHTS:
        hint = " Q has no weights to choose." if score in ("q", "neg_q") else ""
        raise ValueError(f"score must be one of {list(WEIGHTS)}, got {score!r}.{hint}")
    if completeness not in COMPLETENESSES:
        raise ValueError(
            f"completeness must be one of {list(COMPLETENESSES)}, got {completeness!r}."
        )


def weight(name: str, value: Any) -> float:
    """Check one weight."""
    if np.ndim(value):
        raise TypeError(f"{name} must be one number, got {value!r}. Ask for one weight at a time.")
    return float(as_numbers(name, value, low=0.0, strict=True, remedy="Pass 1.0 for neutral."))


def chosen_weights(score: str, given: Mapping[str, Any]) -> dict[str, float]:
    """The weights of a score, 1 where none was chosen; those of another score are an error."""
    names = WEIGHTS.get(score, ())
    others = [name for name, value in given.items() if value is not None and name not in names]
    if others:
        owner = next(known for known, theirs in WEIGHTS.items() if others[0] in theirs)
        weighs = f"{' and '.join(others)} weigh{'s' if len(others) == 1 else ''}"
        raise ValueError(
            f"{weighs} {owner!r}, not {score!r}, got "
            f"{others[0]}={given[others[0]]!r}. Pass score={owner!r}, or leave it out."
        )
    return {name: weight(name, 1.0 if given[name] is None else given[name]) for name in names}


def weights_of(score: str, given: dict[str, Any]) -> dict[str, float]:
    """Check that the weights of a score are given, and no others."""
    unknown = {name: value for name, value in given.items() if name not in WEIGHTS[score]}
    missing = [name for name in WEIGHTS[score] if name not in given]
    if unknown or missing:
        raise TypeError(
            f"The weights of {score!r} are {' and '.join(WEIGHTS[score])}, got {given!r}. Pass "
            "each of them by name."
        )
    return {name: weight(name, given[name]) for name in WEIGHTS[score]}


def interval(name: str, value: Any) -> tuple[float, float]:
    """Check the ends of an interval of weights."""
    if np.shape(value) != (2,):
        raise ValueError(f"{name} must be a pair (low, high), got {value!r}.")
    low, high = (weight(name, end) for end in value)
    if not low < high:
        raise ValueError(f"{name} must be a pair (low, high) with low < high, got {value!r}.")
    return low, high


def ranges_of(score: str, within: Any) -> dict[str, tuple[float, float]]:
    """The range of each weight of a score, from what was passed as within."""
    ranges = dict.fromkeys(WEIGHTS[score], WITHIN[score])
    if within is None:
        return ranges
    if not isinstance(within, Mapping):
        return dict.fromkeys(ranges, interval("within", within))
    unknown = set(within) - set(ranges)
    if unknown:
        raise ValueError(
            f"within must name weights of {score!r} ({', '.join(ranges)}), got {within!r}."
        )
    return ranges | {name: interval(f"within[{name!r}]", pair) for name, pair in within.items()}


def preference(candidates: Candidates) -> np.ndarray:
    """Places in the order in which ties are broken: fewer rules first, then the earlier one."""
    return np.lexsort((np.arange(len(candidates)), candidates.means("n_rules")))


def _without_noise(costs: np.ndarray) -> np.ndarray:
    """Numbers that differ by their last bits alone are the same, or neither of two would win."""
    mantissas, exponents = np.frexp(costs)
    return np.ldexp(np.round(mantissas, 12), exponents)


def undominated(
    candidates: Candidates, score: str, completeness: str
) -> tuple[np.ndarray, dict[int, int]]:
    """Leave out candidates that another one is as good as on every fold.

    Parameters
    ----------
    candidates : Candidates
        At least one.
    score : {"fire", "ice"}
        What decides.
    completeness : {"volume", "instances"}
        How completeness is measured, for ICE.

    Returns
    -------
    ndarray of int, dict of int to int
        Places of the others in the order in which ties are broken, and for every place that is
        left out that of a better candidate which is not.
    """
    if score == "fire":
        loss, size = candidates.measure("loss"), candidates.measure("size")
        alignments = [np.stack([loss, np.where(loss == 0, 1.0, size)])]
        fire_scores(candidates, np.arange(len(candidates)), 1.0)  # names what is out of its range
    else:
        candidates.scores("ice", completeness=completeness)  # likewise
        alignments = []
        for is_sorted in (False, True):
            loss, size, share = folds_of(candidates, completeness, is_sorted=is_sorted)
            # A fold without a score is canonically one of size 0, which must not be a merit.
            alive = share > 0
            loss, size = np.where(alive, loss, np.inf), np.where(alive, size, np.inf)
            alignments.append(np.stack([loss, size, -share]))
    order = preference(candidates)
    better: dict[int, int] = {}
    for costs in map(_without_noise, alignments):
        for rank, place in enumerate(order):
            if int(place) in better:
                continue
            no_worse = (costs <= costs[:, [place]]).all(axis=(0, 2))
            strictly = no_worse & (costs < costs[:, [place]]).any(axis=(0, 2))
            earlier = np.zeros(len(candidates), bool)
            earlier[order[:rank]] = True
            rivals = np.flatnonzero(strictly | (no_worse & earlier))
            if len(rivals):
                better[int(place)] = int(rivals[0])
    for place in better:
        while better[place] in better:
            better[place] = better[better[place]]
    return np.array([place for place in order if place not in better]), better
