"""Attribution maps: comparison with the truth and with each other, and their complexity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import binom, rel_entr
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from skescore._text import listed
from skescore._validation import check_choice, check_integer, check_number

__all__ = [
    "MAPS_REMEDY",
    "align_features",
    "attribution_agreement",
    "attribution_complexity",
    "dense_maps",
    "descending",
    "jensen_shannon_divergence",
    "numeric_array",
    "off_graph",
    "row_correlation",
    "top_k_accuracy",
    "zero_maps",
]

Floats = NDArray[np.float64]
MAPS_REMEDY = "Pass rows of numbers, with the features of both maps in the same order."
#: Magnitude above which sums may overflow, and the factor that rescales such rows first.
_LARGEST_SUMMED, _SCALE = 1e290, 2.0**-100
AGREEMENTS = ("feature", "rank", "sign", "signed_rank", "rank_correlation", "pairwise")


def dense_maps(name: str, maps: Any, *, remedy: str) -> Floats:
    """Return rows of maps, or a single map, as finite floats."""
    values = maps
    if hasattr(maps, "values") and not callable(maps.values):
        values = maps.values
    if sparse.issparse(values):
        values = values.toarray()
    array = numeric_array(name, values)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must be one map or rows of maps with at least one feature, got shape "
            f"{array.shape!r}. {remedy}"
        )
    if not np.isfinite(array).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(
            f"{name} must be finite, got {float(array[at])!r} at position "
            f"{at[0] if len(at) == 1 else at}. {remedy}"
        )
    return array


def align_features(name: str, maps: Any, reference_name: str, reference: Any) -> Any:
    """Put the features of maps into the order of a reference, if both have feature names.

    Raises
    ------
    ValueError
        If the names differ in more than their order.
    """
    names, expected_names = _feature_names(maps), _feature_names(reference)
    if names is None or expected_names is None or names == expected_names:
        return maps
    if len(set(names)) == len(names) == len(expected_names) and set(names) == set(expected_names):
        order = [names.index(feature) for feature in expected_names]
        if not hasattr(maps, "iloc"):
            return maps[:, order]
        return maps.iloc[:, order] if maps.ndim == 2 else maps.iloc[order]
    if any(side == [str(i) for i in range(len(side))] for side in (names, expected_names)):
        return maps  # columns that are only numbered have no names
    unknown = [feature for feature in names if feature not in expected_names] or names
    raise ValueError(
        f"{name} must have the features of {reference_name}, {listed(expected_names)}, got "
        f"{listed(names)}; {unknown[0]!r} differs. Rename the columns, or pass arrays."
    )


def _feature_names(maps: Any) -> list[str] | None:
    """Return the columns of a DataFrame or the index of a single map; None without names."""
    if hasattr(maps, "iloc"):
        return [str(feature) for feature in (maps.columns if maps.ndim == 2 else maps.index)]
    return list(maps.columns) if hasattr(maps, "get_column") else None


def off_graph(values: Any) -> Any:
    """Convert a tensor to an array; return other values unchanged."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu().numpy()
    return values


def numeric_array(name: str, values: Any) -> Floats:
    """Convert a container of numbers to an array of floats."""
    try:
        array = np.asarray(off_graph(values))
    except ValueError:
        raise ValueError(
            f"{name} must be rows of equal length, got {values!r:.200}. Pass one row of "
            "numbers for each row of X."
        ) from None
    if array.dtype == object and array.size:
        try:
            array = np.array(array.tolist())
        except ValueError:
            array = np.array(["ragged"])
    if array.dtype.kind not in "iufb":
        raise TypeError(
            f"{name} must hold numbers, got {values!r:.200} of type {type(values).__name__}. "
            "Convert it to floats first."
        )
    return array.astype(np.float64)


def descending(scores: Floats) -> NDArray[np.intp]:
    """Return the indices in order of decreasing score; ties are in reverse order of the indices."""
    # A stable sort returns the same order on every machine.
    return np.argsort(scores, kind="stable")[::-1]


def jensen_shannon_divergence(
    p: Any, q: Any, *, base: float = 2.0, zero: str = "max", signed: str = "clip"
) -> Any:
    r"""Compute the Jensen-Shannon divergence of attribution maps, row by row.

    Use it to compare a map with another map or with the truth. It depends only on the share of each
    feature in the sum of its map, not on the scale.

    Parameters
    ----------
    p, q : array-like, DataFrame or explanation of shape (n_rows, n_features) or (n_features,)
        The maps. A single map is compared with all rows of the other. Columns of two DataFrames
        are aligned by name.
    base : float, default=2.0
        Base of the logarithm: 2 gives bits and a maximum of 1, ``math.e`` gives nats and a
        maximum of ln 2.
    zero : {"max", "uniform", "nan"}, default="max"
        Divergence between a map without positive entries and a map with positive entries: the
        largest value, the divergence from equal shares, or NaN.
    signed : {"clip", "abs"}, default="clip"
        Whether negative entries count as 0 or by their absolute value.

    Returns
    -------
    ndarray of shape (n_rows,) or float
        Divergence of each row, 0 where the shares are equal; a float for two single maps.

    Raises
    ------
    ValueError
        If shapes or names of the maps do not match, they are not finite, or an option is unknown.
    TypeError
        If the maps do not hold numbers.

    Notes
    -----
    With :math:`p` and :math:`q` divided by their sums and :math:`m = (p+q)/2`, the divergence is
    :math:`\frac12 KL(p \| m) + \frac12 KL(q \| m)`. SciPy's
    ``scipy.spatial.distance.jensenshannon`` is its square root in nats. The divergence of two maps
    without positive entries is always 0. :func:`zero_maps` finds such maps.

    References
    ----------
    J. Lin: Divergence measures based on the Shannon entropy. IEEE Transactions on Information
    Theory 37, 1991.

    Examples
    --------
    >>> from skescore.metrics.attribution import jensen_shannon_divergence
    >>> jensen_shannon_divergence([[1, 1, 0], [1, 0, 0]], [[2, 2, 0], [0, 0, 3]]).tolist()
    [0.0, 1.0]
    >>> round(jensen_shannon_divergence([1, 1], [1, 0], base=2.718281828459045), 4)
    0.2158
    """
    check_choice("zero", zero, ("max", "uniform", "nan"))
    check_choice("signed", signed, ("clip", "abs"))
    remedy = "Pass 2 for bits or math.e for nats."
    base = check_number("base", base, above=1, finite=True, remedy=remedy)
    left, right = (
        _positive_part(dense_maps(name, maps, remedy=MAPS_REMEDY), signed)
        for name, maps in (("p", p), ("q", align_features("q", q, "p", p)))
    )
    single = left.ndim == right.ndim == 1
    left, right = _same_shape(left, right)
    shares_p, is_zero_p = _shares(left, uniform=zero == "uniform")
    shares_q, is_zero_q = _shares(right, uniform=zero == "uniform")
    middle = (shares_p + shares_q) / 2
    nats = (rel_entr(shares_p, middle) + rel_entr(shares_q, middle)).sum(axis=1) / 2
    # Rounding errors must not leave the range of the divergence.
    values = np.clip(nats, 0.0, np.log(2.0)) / np.log(base)
    if zero != "uniform":
        values[is_zero_p ^ is_zero_q] = np.log(2.0) / np.log(base) if zero == "max" else np.nan
    return float(values[0]) if single else values


def zero_maps(attributions: Any, *, signed: str = "clip") -> NDArray[np.bool_]:
    """Return for each attribution map whether it has no positive entry.

    Use it with :func:`jensen_shannon_divergence`: report the share of zero maps along with the
    mean, which they may dominate.

    Parameters
    ----------
    attributions : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps.
    signed : {"clip", "abs"}, default="clip"
        Whether negative entries count as 0 or by their absolute value.

    Returns
    -------
    ndarray of bool of shape (n_rows,)
        True for maps without positive entries.

    Examples
    --------
    >>> from skescore.metrics.attribution import zero_maps
    >>> zero_maps([[0, 0], [0, 1], [-1, 0]]).tolist()
    [True, False, True]
    """
    check_choice("signed", signed, ("clip", "abs"))
    maps = np.atleast_2d(dense_maps("attributions", attributions, remedy=MAPS_REMEDY))
    return ~np.asarray((_positive_part(maps, signed) > 0).any(axis=1))


def top_k_accuracy(
    attributions: Any,
    relevant: Any,
    *,
    ties: str = "strict",
    but_for: bool = False,
    random_state: Any = None,
) -> Floats:
    """Check whether exactly the relevant features of each row have the highest attributions.

    Use it if the truth is a set of features, such as those with a positive responsibility.

    Parameters
    ----------
    attributions : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps.
    relevant : array-like of shape (n_rows, n_features)
        Indicators or true responsibilities: features with a value above 0 are relevant. Columns of
        two DataFrames are aligned by name.
    ties : {"strict", "random", "expected"}, default="strict"
        Result if relevant and irrelevant features share the value at the boundary: no hit, a
        random hit, or the probability of a hit under a random order of the tied features.
    but_for : bool, default=False
        Whether only features with responsibility 1 are relevant: those that change the decision if
        they alone are flipped.
    random_state : int, RandomState instance or None, default=None
        Seed of ``ties="random"``.

    Returns
    -------
    ndarray of shape (n_rows,)
        1 for a hit, 0 for no hit, NaN if no feature is relevant. With ``ties="expected"``, the
        probability of a hit for rows with ties.

    Raises
    ------
    ValueError
        If shapes or names do not match, numbers are not finite, `relevant` is below 0 or above 1,
        or `ties` is unknown.

    Notes
    -----
    A row with k relevant features is a hit if these have its k largest entries. Ties are never
    broken by the order of the features, which would raise the accuracy if irrelevant features
    come last.

    References
    ----------
    J. Tritscher et al.: Evaluation of post-hoc XAI approaches through synthetic tabular data.
    ISMIS 2020.

    Examples
    --------
    >>> from skescore.metrics.attribution import top_k_accuracy
    >>> maps = [[0.9, 0.5, 0.1], [0.9, 0.5, 0.5]]
    >>> top_k_accuracy(maps, [[1, 0.5, 0], [1, 0.5, 0]]).tolist()
    [1.0, 0.0]
    >>> top_k_accuracy(maps, [[1, 0.5, 0], [1, 0.5, 0]], ties="expected").tolist()
    [1.0, 0.5]
    >>> top_k_accuracy(maps, [[1, 0.5, 0], [1, 0.5, 0]], but_for=True).tolist()
    [1.0, 1.0]
    """
    check_choice("ties", ties, ("strict", "random", "expected"))
    maps = np.atleast_2d(dense_maps("attributions", attributions, remedy=MAPS_REMEDY))
    relevant = align_features("relevant", relevant, "attributions", attributions)
    truth = np.atleast_2d(dense_maps("relevant", relevant, remedy=MAPS_REMEDY))
    if maps.shape != truth.shape:
        raise ValueError(
            f"attributions and relevant must have the same shape, got {maps.shape} and "
            f"{truth.shape}. {MAPS_REMEDY}"
        )
    if truth.min(initial=0.0) < 0 or truth.max(initial=0.0) > 1 + 1e-9:
        raise ValueError(
            "relevant must be indicators or responsibilities from 0 to 1, got values from "
            f"{truth.min():g} to {truth.max():g}. Pass `relevant > 0` for other numbers."
        )
    members = truth > (1 - 1e-9 if but_for else 0.0)
    lowest = np.where(members, maps, np.inf).min(axis=1)
    highest = np.where(members, -np.inf, maps).max(axis=1)
    hits = (lowest > highest).astype(np.float64)
    if ties != "strict":
        at_border = maps == lowest[:, np.newaxis]
        # A random order of the tied features is a hit if the relevant ones come first.
        chance = 1 / binom(at_border.sum(axis=1), (at_border & members).sum(axis=1))
        tied = (lowest == highest) & members.any(axis=1)
        if ties == "random":
            # One number per row, so the draw of a row does not depend on ties in other rows.
            chance = check_random_state(random_state).uniform(size=len(maps)) < chance
        hits[tied] = chance[tied]
    hits[~members.any(axis=1)] = np.nan
    return hits


def _positive_part(maps: Floats, signed: str) -> Floats:
    return np.abs(maps) if signed == "abs" else np.maximum(maps, 0.0)


def _same_shape(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Broadcast the maps to matrices of the same shape."""
    try:
        if left.shape[-1] != right.shape[-1]:
            raise ValueError
        shape = np.broadcast_shapes(np.atleast_2d(left).shape, np.atleast_2d(right).shape)
        if left.ndim == right.ndim == 2 and left.shape != right.shape:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"The two maps must have the same shape, got {left.shape} and {right.shape}. "
            f"{MAPS_REMEDY}"
        ) from None
    return np.broadcast_to(left, shape), np.broadcast_to(right, shape)


def _shares(maps: Floats, *, uniform: bool) -> tuple[Floats, NDArray[np.bool_]]:
    """Return rows divided by their sums, and which rows are zero."""
    peak = maps.max(axis=1, initial=0.0)
    is_zero = peak == 0
    # Division by the largest entry avoids overflow and underflow.
    scaled = maps / np.where(is_zero, 1.0, peak)[:, np.newaxis]
    if uniform:
        scaled = np.where(is_zero[:, np.newaxis], 1.0, scaled)
    total = scaled.sum(axis=1)
    return scaled / np.where(total == 0, 1.0, total)[:, np.newaxis], is_zero


def attribution_agreement(
    attributions: Any, reference: Any, *, measure: str = "feature", top_k: int = 5
) -> Floats:
    """Measure how well two attributions of the same rows agree on the important features.

    Use it to compare an explainer with a reference explainer or the weights of a linear model.

    Parameters
    ----------
    attributions, reference : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps. Columns of two DataFrames are aligned by name.
    measure : str, default="feature"
        Kind of agreement: ``"feature"``, the sets of the top features; ``"rank"``, also their
        ranks; ``"sign"``, also their signs; ``"signed_rank"``, ranks and signs;
        ``"rank_correlation"``, Spearman's correlation over all features; ``"pairwise"``, the order
        of each pair of features.
    top_k : int, default=5
        Number of top features; larger numbers mean all features.

    Returns
    -------
    ndarray of shape (n_rows,)
        1 for complete agreement. The correlation is NaN for a constant map, and the correlation and
        the pairs are NaN for a single feature.

    Raises
    ------
    ValueError
        If shapes or names of the maps do not match, they are not finite, or an option is invalid.

    Notes
    -----
    Features are ranked by magnitude; of equal ones, the later ranks first, as in
    :func:`faithfulness`. The correlation and the pairs compare magnitudes as well; a pair agrees if
    it has the same order, or is tied, in both maps.

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
    reference = align_features("reference", reference, "attributions", attributions)
    left, right = _same_shape(
        dense_maps("attributions", attributions, remedy=MAPS_REMEDY),
        dense_maps("reference", reference, remedy=MAPS_REMEDY),
    )
    check_integer("top_k", top_k, 1, remedy="Pass the number of top features.")
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
    shared_members = member[0] & member[1]
    return (shared_members & signs if measure == "sign" else shared_members).sum(axis=1) / k


def attribution_complexity(attributions: Any, *, base: float = 2.0) -> Floats:
    """Compute the entropy of the shares of the features.

    Use it together with faithfulness: of two equally faithful maps, the one with the lower entropy
    is easier to read.

    Parameters
    ----------
    attributions : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps; signs are ignored.
    base : float, default=2.0
        Base of the logarithm. ``base ** value`` is the effective number of features: the number of
        equally important features with the same entropy.

    Returns
    -------
    ndarray of shape (n_rows,)
        From 0 for a single feature to the logarithm of n_features; NaN for a map of zeros.

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
    base = check_number("base", base, above=1, finite=True, remedy="Pass 2 for bits.")
    maps = np.abs(np.atleast_2d(dense_maps("attributions", attributions, remedy=MAPS_REMEDY)))
    shares, is_zero = _shares(maps, uniform=False)
    values = -rel_entr(shares, np.ones_like(shares)).sum(axis=1) / np.log(base) + 0.0
    values[is_zero] = np.nan
    return values


def row_correlation(left: Floats, right: Floats) -> Floats:
    """Return Pearson's correlation of each pair of rows; NaN if one is constant."""
    if left.shape[1] < 2:
        return np.full(len(left), np.nan)
    left, right = _without_overflow(left), _without_overflow(right)
    # A rounding error of the mean must not give a constant row a correlation.
    constant = (np.ptp(left, axis=1) == 0) | (np.ptp(right, axis=1) == 0)
    centered = [values - values.mean(axis=1, keepdims=True) for values in (left, right)]
    # Division by the largest entry avoids overflow and underflow of the squares.
    scaled = [
        values / np.where(constant, 1.0, np.abs(values).max(axis=1))[:, np.newaxis]
        for values in centered
    ]
    squares = (scaled[0] ** 2).sum(axis=1) * (scaled[1] ** 2).sum(axis=1)
    products = (scaled[0] * scaled[1]).sum(axis=1)
    values = np.full(len(left), np.nan)
    np.divide(products, np.sqrt(squares), out=values, where=~constant)
    return np.clip(values, -1.0, 1.0)


def _without_overflow(maps: Floats) -> Floats:
    """Multiply rows by a power of two if their sums could overflow."""
    is_large = np.abs(maps).max(axis=1, initial=0.0) > _LARGEST_SUMMED
    if not is_large.any():
        return maps
    return maps * np.where(is_large, _SCALE, 1.0)[:, np.newaxis]


def _same_order(left: Floats, right: Floats) -> float:
    """Return the share of pairs of features with the same order in both maps."""
    first, second = np.triu_indices(len(left), k=1)
    return float(
        np.mean(np.sign(left[first] - left[second]) == np.sign(right[first] - right[second]))
    )
