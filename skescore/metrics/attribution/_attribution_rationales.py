"""From scores of features to rationales: the most important ones at each of some thresholds.

Ordered from the highest score down, every rationale is a beginning of that order. So a rationale
is known by its length alone, and two are equal if their lengths are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.metrics.attribution._maps import check_choice

__all__ = ["check_thresholds", "descending", "rationale_lengths"]

BY = ("fraction", "count", "score")
_DEFAULT_STEPS = 10


def descending(scores: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices from the highest score down; of equal scores the later comes first.

    A stable sort: the order must not depend on the machine's sorting routine.
    """
    return np.argsort(scores, kind="stable")[::-1]


def check_thresholds(thresholds: Any, by: str) -> NDArray[np.float64] | None:
    """Thresholds as numbers that make sense for what they count; None for the default ones."""
    check_choice("by", by, BY)
    if thresholds is None:
        if by == "fraction":
            return None
        raise ValueError(
            f"thresholds must be given with by={by!r}, got None. Pass for instance [1, 2, 5] for "
            "counts, [0.1, 0.5] for scores."
        )
    try:
        array = np.asarray(thresholds, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if by == "fraction":
        fits, rule = (array > 0) & (array <= 1), "above 0 and at most 1"
    elif by == "count":
        fits, rule = (array >= 1) & (array == np.floor(array)), "whole numbers of at least 1"
    else:
        fits, rule = np.ones(array.shape, dtype=bool), "finite"
    if array.ndim != 1 or not len(array) or not fits.all() or not np.isfinite(array).all():
        raise ValueError(
            f"thresholds with by={by!r} must be a list of numbers, {rule}, got {thresholds!r}. "
            'Leave them out for 10 %, 20 %, … 100 % of the features with by="fraction".'
        )
    return array


def rationale_lengths(
    scores: NDArray[np.float64],
    thresholds: NDArray[np.float64] | None,
    by: str,
    *,
    only_positive: bool,
    dedupe: bool,
) -> Sequence[int]:
    """How long each rationale is, in the order of the thresholds."""
    n = len(scores)
    if by == "score":
        # Chosen by its value: whoever asks for scores above -1 means them.
        lengths = (scores[np.newaxis, :] > thresholds[:, np.newaxis]).sum(axis=1).tolist()  # type: ignore[index]
    else:
        if thresholds is None:
            # In integers: no float noise decides how many features 30 % are.
            counts = [(step * n) // _DEFAULT_STEPS for step in range(1, _DEFAULT_STEPS + 1)]
        elif by == "fraction":
            counts = [int(count) for count in np.floor(thresholds * n + 1e-9)]
        else:
            counts = [min(int(count), n) for count in thresholds]
        most = int((scores > 0).sum()) if only_positive else n
        lengths = [min(count, most) for count in counts]
        lengths = [length for length in lengths if length]
    if not dedupe:
        return lengths
    return [
        length for place, length in enumerate(lengths) if not place or length != lengths[place - 1]
    ]
