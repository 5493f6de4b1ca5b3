"""Comparing attribution maps with each other, and what is to be said of one by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr
from scipy.stats import rankdata

from skescore.metrics.attribution._containers import dense_maps
from skescore.metrics.attribution._maps import (
    MAPS_REMEDY,
    check_choice,
    same_shape,
    shares_of,
)

__all__ = ["AGREEMENTS", "attribution_agreement", "attribution_complexity", "row_correlation"]

Floats = NDArray[np.float64]
AGREEMENTS = ("feature", "rank", "sign", "signed_rank", "rank_correlation", "pairwise")


def attribution_agreement(
    attributions: Any, reference: Any, *, measure: str = "feature", top_k: int = 5
) -> Floats:
    """How far two attributions of the same rows name the same features.

    Use it to compare an explainer with a trusted one, or with the weights of a linear model.

    Parameters
    ----------
    attributions, reference : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps.
    measure : str, default="feature"
        What must agree: ``"feature"``, the sets of the top features; ``"rank"``, also their
        places; ``"sign"``, also their signs; ``"signed_rank"``, places and signs;
        ``"rank_correlation"``, Spearman's correlation over all features; ``"pairwise"``, the order
        of each pair of features.
    top_k : int, default=5
        How many features are at the top, at most all.

    Returns
    -------
    ndarray of shape (n_rows,)
        1 where they agree entirely; the correlation is NaN for a constant map.

    Raises
    ------
    ValueError
        If the maps do not fit, are not finite, or an option is out of its range.

    Notes
    -----
    Features are ordered by magnitude, of equal ones the later first, as in :func:`faithfulness`.
    The correlation and the pairs compare magnitudes as well; a pair agrees if both maps put it in
    the same order or both call it equal.

    References
    ----------
    S. Krishna et al.: The disagreement problem in explainable machine learning. TMLR, 2024.

    Examples
    --------
    >>> from skescore.metrics.attribution import attribution_agreement
    >>> attribution_agreement([[3, 2, 1]], [[2, 3, -1]], top_k=2).tolist()
    [1.0]
    >>> attribution_agreement([[3, 2, 1]], [[2, 3, -1]], measure="rank", top_k=2).tolist()
    [0.0]
    """
    check_choice("measure", measure, AGREEMENTS)
    left, right = same_shape(
        dense_maps("attributions", attributions, remedy=MAPS_REMEDY),
        dense_maps("reference", reference, remedy=MAPS_REMEDY),
    )
    if isinstance(top_k, bool) or not isinstance(top_k, (int, np.integer)) or top_k < 1:
        raise ValueError(
            f"top_k must be an integer of at least 1, got {top_k!r}. Pass how many features count."
        )
    n_features = left.shape[1]
    sizes = np.abs(left), np.abs(right)
    if measure == "rank_correlation":
        return row_correlation(*(rankdata(size, axis=1) for size in sizes))
    if measure == "pairwise":
        if n_features < 2:
            return np.full(len(left), np.nan)
        return np.array([_same_order(*pair) for pair in zip(*sizes, strict=True)])
    k = min(int(top_k), n_features)
    tops = [np.argsort(size, axis=1, kind="stable")[:, ::-1][:, :k] for size in sizes]
    signs = np.sign(left) == np.sign(right)
    if measure in ("rank", "signed_rank"):
        agree = tops[0] == tops[1]
        if measure == "signed_rank":
            agree &= np.take_along_axis(signs, tops[0], axis=1)
        return agree.mean(axis=1)
    member = [np.zeros(left.shape, dtype=bool) for _ in tops]
    for marks, top in zip(member, tops, strict=True):
        np.put_along_axis(marks, top, True, axis=1)
    both = member[0] & member[1]
    return (both & signs if measure == "sign" else both).sum(axis=1) / k


def attribution_complexity(attributions: Any, *, base: float = 2.0) -> Floats:
    """Entropy of the shares of the features: how many of them an attribution speaks of.

    Use it beside faithfulness: of two equally faithful maps the one of lower entropy is easier
    to read.

    Parameters
    ----------
    attributions : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps; signs are ignored.
    base : float, default=2.0
        Base of the logarithm. ``base ** value`` is the number of equally important features with
        the same entropy.

    Returns
    -------
    ndarray of shape (n_rows,)
        0 for a single feature up to the logarithm of their number; NaN for a map of zeros.

    Raises
    ------
    ValueError
        If a map is not finite, or `base` is not above 1.

    References
    ----------
    U. Bhatt, A. Weller, J. Moura: Evaluating and aggregating feature-based model explanations.
    IJCAI 2020.

    Examples
    --------
    >>> from skescore.metrics.attribution import attribution_complexity
    >>> attribution_complexity([[1, 0, 0, 0], [1, -1, 1, 1]]).tolist()
    [0.0, 2.0]
    """
    if not isinstance(base, (int, float)) or not 1 < base < np.inf:
        raise ValueError(f"base must be a finite number above 1, got {base!r}. Pass 2 for bits.")
    maps = np.abs(np.atleast_2d(dense_maps("attributions", attributions, remedy=MAPS_REMEDY)))
    shares, none = shares_of(maps, uniform=False)
    values = -rel_entr(shares, np.ones_like(shares)).sum(axis=1) / np.log(base) + 0.0
    values[none] = np.nan
    return values


def row_correlation(left: Floats, right: Floats) -> Floats:
    """Pearson's correlation of each row with its partner; NaN where one of them is constant."""
    if left.shape[1] < 2:
        return np.full(len(left), np.nan)
    # A constant row must not get a correlation out of the rounding of its mean.
    constant = (np.ptp(left, axis=1) == 0) | (np.ptp(right, axis=1) == 0)
    centred = [values - values.mean(axis=1, keepdims=True) for values in (left, right)]
    # By the largest entry first: squares of small or great numbers leave the range of floats.
    scaled = [
        values / np.where(constant, 1.0, np.abs(values).max(axis=1))[:, np.newaxis]
        for values in centred
    ]
    squares = (scaled[0] ** 2).sum(axis=1) * (scaled[1] ** 2).sum(axis=1)
    products = (scaled[0] * scaled[1]).sum(axis=1)
    values = np.full(len(left), np.nan)
    np.divide(products, np.sqrt(squares), out=values, where=~constant)
    return np.clip(values, -1.0, 1.0)


def _same_order(left: Floats, right: Floats) -> float:
    first, second = np.triu_indices(len(left), k=1)
    return float(
        np.mean(np.sign(left[first] - left[second]) == np.sign(right[first] - right[second]))
    )
