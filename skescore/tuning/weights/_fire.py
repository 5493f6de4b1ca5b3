"""The FiRe score of candidates over psi, which is a sum of steps: nothing has to be searched.

``ceil(r / psi)`` changes at ``psi = r, r/2, r/3, ...`` only, and keeps its lower value at those
points themselves. Between two neighbouring ones of all candidates and folds all
scores are constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skescore.metrics._knowledge import fire_score
from skescore.tuning._candidates import Candidates

#: Scores whose ratio is nearer to 1 are equal: this much is float noise.
TIE = 1e-12
#: Values of psi that are nearer are one, computed from different sizes.
_SAME = 1e-13
_BLOCK = 200_000


@dataclass(frozen=True)
class Steps:
    """FiRe scores between neighbouring breakpoints of psi.

    Parameters
    ----------
    edges : ndarray of shape (n_steps + 1,)
        Step i holds ``edges[i] <= psi < edges[i + 1]``. The last edge belongs to the last step,
        which is that edge alone where the last two are equal.
    scores : ndarray of shape (n_steps, n_members)
        Mean scores over the folds; smaller is better.
    """

    edges: np.ndarray
    scores: np.ndarray

    @property
    def winners(self) -> np.ndarray:
        """The best member on each step; of equally good ones the first."""
        return first_best(self.scores)


def first_best(scores: np.ndarray) -> np.ndarray:
    """The first of the smallest scores in each row, but for float noise."""
    least = scores.min(axis=1, keepdims=True)
    return np.argmax(scores <= least * (1.0 + TIE), axis=1)


def breakpoints(sizes: np.ndarray, low: float, high: float) -> np.ndarray:
    """Where steps begin in an interval of psi, both ends with it."""
    found = [np.array([low, high])]
    for size in np.unique(sizes):
        # Few of the many steps of small psi are in the interval.
        counts = np.arange(max(1, int(size / high)), int(size / low) + 2)
        found.append(size / counts)
    edges = np.unique(np.concatenate(found))
    edges = edges[(edges >= low) & (edges <= high)]
    edges = edges[np.append(True, np.diff(edges) > _SAME * edges[:-1])]
    starts_at_high = (np.abs(found_near(sizes, high)) <= _SAME).any()
    return np.append(edges, high) if starts_at_high else np.append(edges[edges < high], high)


def found_near(sizes: np.ndarray, psi: float) -> np.ndarray:
    """How far psi is from a breakpoint of each size, relatively."""
    quotient = sizes / psi
    return (quotient - np.maximum(np.rint(quotient), 1.0)) / quotient


def fire_steps(candidates: Candidates, places: np.ndarray, low: float, high: float) -> Steps:
    """Score candidates on every step of an interval of psi.

    Parameters
    ----------
    candidates : Candidates
        At least one.
    places : ndarray of int
        Those that take part, in the order in which ties are broken.
    low, high : float
        Ends of the interval.

    Returns
    -------
    Steps
        Their scores.
    """
    loss, size = candidates.measure("loss")[places], candidates.measure("size")[places]
    edges = breakpoints(size, low, high)
    inside = np.sqrt(edges[:-1]) * np.sqrt(edges[1:])
    lot = max(1, _BLOCK // loss.size)
    scores = [
        np.asarray(fire_score(loss, size, psi=inside[at : at + lot, None, None])).mean(axis=-1)
        for at in range(0, len(inside), lot)
    ]
    return Steps(edges, np.concatenate(scores))


def fire_scores(candidates: Candidates, places: np.ndarray, psi: float) -> np.ndarray:
    """Mean FiRe scores of candidates with one psi, of shape (1, n_members)."""
    return candidates.scores("fire", psi=psi).mean(axis=1)[places][None]
