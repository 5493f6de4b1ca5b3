"""Maps of attributions: reading them, comparing them with the truth and with each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import binom, rel_entr
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from skescore._validation import check_choice, check_integer, check_number

__all__ = [
    "MAPS_REMEDY",
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
MAPS_REMEDY = "Pass rows of numbers, the same features in the same order for both maps."
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


def off_graph(values: Any) -> Any:
    """Take a tensor off its graph and device; anything else stays as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu().numpy()
    return values


def numeric_array(name: str, values: Any) -> Floats:
    """Return numbers of any container as floats."""
    try:
        array = np.asarray(off_graph(values))
    except ValueError:
        raise ValueError(
            f"{name} must be rows of equal length here, got {values!r:.200}. Pass one row of "
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
    """Indices from the highest score down; of equal scores the later comes first."""
    # A stable sort: the order must not depend on the machine's sorting routine.
    return np.argsort(scores, kind="stable")[::-1]


def jensen_shannon_divergence(
    p: Any, q: Any, *, base: float = 2.0, zero: str = "max", signed: str = "clip"
) -> Any:
    r"""Jensen-Shannon divergence of attribution maps, row by row.

    Use it to compare a map with another or with the truth where only the shares of the features
    matter: the scale of either map does not.

    Parameters
    ----------
    p, q : array-like, DataFrame or explanation of shape (n_rows, n_features) or (n_features,)
        The maps. A single map is compared with all rows of the other.
    base : float, default=2.0
        Base of the logarithm: 2 gives bits and a greatest value of 1, ``math.e`` gives nats and a
        greatest value of ln 2.
    zero : {"max", "uniform", "nan"}, default="max"
        What a map without a single entry above 0 is worth beside one that has some: the greatest
        value, the divergence with equal shares in its place, or NaN.
    signed : {"clip", "abs"}, default="clip"
        Entries below 0 count nothing, or as much as positive ones.

    Returns
    -------
    ndarray of shape (n_rows,) or float
        Per row, 0 where the shares are equal; a float for two single maps.

    Raises
    ------
    ValueError
        If the maps do not fit together or are not finite; if an option is unknown.
    TypeError
        If the maps do not hold numbers.

    Notes
    -----
    With :math:`p` and :math:`q` divided by their sums and :math:`m = (p+q)/2` it is
    :math:`\frac12 KL(p \| m) + \frac12 KL(q \| m)`. SciPy's
    ``scipy.spatial.distance.jensenshannon`` is its square root, in nats. Two maps that are both
    zero say the same, so that their divergence is 0 under each policy. See :func:`zero_maps` for
    how many there are.

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
        for name, maps in (("p", p), ("q", q))
    )
    single = left.ndim == right.ndim == 1
    left, right = _same_shape(left, right)
    shares_p, none_p = _shares(left, uniform=zero == "uniform")
    shares_q, none_q = _shares(right, uniform=zero == "uniform")
    middle = (shares_p + shares_q) / 2
    nats = (rel_entr(shares_p, middle) + rel_entr(shares_q, middle)).sum(axis=1) / 2
    # Rounding must not leave the range of the divergence.
    values = np.clip(nats, 0.0, np.log(2.0)) / np.log(base)
    if zero != "uniform":
        values[none_p ^ none_q] = np.log(2.0) / np.log(base) if zero == "max" else np.nan
    return float(values[0]) if single else values


def zero_maps(attributions: Any, *, signed: str = "clip") -> NDArray[np.bool_]:
    """Return which attribution maps say nothing at all.

    Use it beside :func:`jensen_shannon_divergence`, whose mean hides them or is made by them: the
    share of zero maps belongs into every report of it.

    Parameters
    ----------
    attributions : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps.
    signed : {"clip", "abs"}, default="clip"
        Entries below 0 count nothing, or as much as positive ones.

    Returns
    -------
    ndarray of bool of shape (n_rows,)
        True where no entry counts.

    Examples
    --------
    >>> from skescore.metrics.attribution import zero_maps
    >>> zero_maps([[0, 0], [0, 1], [-1, 0]]).tolist()
    [True, False, True]
    """
    check_choice("signed", signed, ("clip", "abs"))
    maps = np.atleast_2d(dense_maps("attributions", attributions, remedy=MAPS_REMEDY))
    counting = np.asarray((_positive_part(maps, signed) > 0).any(axis=1))
    return ~counting


def top_k_accuracy(
    attributions: Any,
    relevant: Any,
    *,
    ties: str = "strict",
    but_for: bool = False,
    random_state: Any = None,
) -> Floats:
    """Whether the highest attributions of each row are exactly those of the relevant features.

    Use it where the truth is a set of features, for instance those with a responsibility.

    Parameters
    ----------
    attributions : array-like, DataFrame or explanation of shape (n_rows, n_features)
        The maps to judge.
    relevant : array-like of shape (n_rows, n_features)
        Marks of the relevant features, or their true responsibilities: relevant is what is
        above 0.
    ties : {"strict", "random", "expected"}, default="strict"
        Where relevant and irrelevant features share the value at the border: no hit, a draw that
        `random_state` decides, or the chance that a fair draw is a hit.
    but_for : bool, default=False
        Count as relevant only what has responsibility 1: a flip of the feature alone changes the
        decision.
    random_state : int, RandomState instance or None, default=None
        Decides the draws of ``ties="random"``.

    Returns
    -------
    ndarray of shape (n_rows,)
        1 for a hit, 0 for none, NaN where no feature is relevant.

    Raises
    ------
    ValueError
        If shapes do not fit, numbers are not finite, `relevant` is below 0 or above 1, or `ties`
        is unknown.

    Notes
    -----
    A row with k relevant features is a hit if its k largest entries are these. Ties are never
    broken by the order of the features: where irrelevant features come last, that alone raises
    the accuracy.

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
    truth = np.atleast_2d(dense_maps("relevant", relevant, remedy=MAPS_REMEDY))
    if maps.shape != truth.shape:
        raise ValueError(
            f"attributions and relevant must have the same shape, got {maps.shape} and "
            f"{truth.shape}. {MAPS_REMEDY}"
        )
    if truth.min(initial=0.0) < 0 or truth.max(initial=0.0) > 1 + 1e-9:
        raise ValueError(
            "relevant must be marks or responsibilities from 0 to 1, got values from "
            f"{truth.min():g} to {truth.max():g}. Pass `relevant > 0` for other numbers."
        )
    members = truth > (1 - 1e-9 if but_for else 0.0)
    lowest = np.where(members, maps, np.inf).min(axis=1)
    highest = np.where(members, -np.inf, maps).max(axis=1)
    hits = (lowest > highest).astype(np.float64)
    if ties != "strict":
        at_border = maps == lowest[:, np.newaxis]
        # A fair order of the tied is right if the relevant among them come first.
        chance = 1 / binom(at_border.sum(axis=1), (at_border & members).sum(axis=1))
        tied = (lowest == highest) & members.any(axis=1)
        if ties == "random":
            # One number for each row, so that rows without ties do not shift the others.
            chance = check_random_state(random_state).uniform(size=len(maps)) < chance
        hits[tied] = chance[tied]
    hits[~members.any(axis=1)] = np.nan
    return hits


def _positive_part(maps: Floats, signed: str) -> Floats:
    return np.abs(maps) if signed == "abs" else np.maximum(maps, 0.0)


def _same_shape(left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Two matrices of maps, a single map repeated for all rows of the other."""
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
    """Rows that sum to one, and which of them are zero."""
    peak = maps.max(axis=1, initial=0.0)
    none = peak == 0
    # By the largest entry first, so that neither sums overflow nor tiny maps vanish.
    scaled = maps / np.where(none, 1.0, peak)[:, np.newaxis]
    if uniform:
        scaled = np.where(none[:, np.newaxis], 1.0, scaled)
    total = scaled.sum(axis=1)
    return scaled / np.where(total == 0, 1.0, total)[:, np.newaxis], none


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
    left, right = _same_shape(
        dense_maps("attributions", attributions, remedy=MAPS_REMEDY),
        dense_maps("reference", reference, remedy=MAPS_REMEDY),
    )
    check_integer("top_k", top_k, 1, remedy="Pass how many features count.")
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
    base = check_number("base", base, above=1, finite=True, remedy="Pass 2 for bits.")
    maps = np.abs(np.atleast_2d(dense_maps("attributions", attributions, remedy=MAPS_REMEDY)))
    shares, none = _shares(maps, uniform=False)
    values = -rel_entr(shares, np.ones_like(shares)).sum(axis=1) / np.log(base) + 0.0
    values[none] = np.nan
    return values


def row_correlation(left: Floats, right: Floats) -> Floats:
    """Pearson's correlation of each row with its partner; NaN where one of them is constant."""
    if left.shape[1] < 2:
        return np.full(len(left), np.nan)
    # A constant row must not get a correlation out of the rounding of its mean.
    constant = (np.ptp(left, axis=1) == 0) | (np.ptp(right, axis=1) == 0)
    centered = [values - values.mean(axis=1, keepdims=True) for values in (left, right)]
    # By the largest entry first: squares of small or great numbers leave the range of floats.
    scaled = [
        values / np.where(constant, 1.0, np.abs(values).max(axis=1))[:, np.newaxis]
        for values in centered
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
