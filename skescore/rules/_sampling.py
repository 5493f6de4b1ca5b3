"""Random points in boxes, and intervals for the shares that they estimate."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from skescore.rules._geometry import box_volumes, first_box

__all__ = ["clopper_pearson", "sampling_stream"]

Floats = NDArray[np.float64]
Seed = int | np.random.Generator | np.random.RandomState | None


def clopper_pearson(hits: int, n_samples: int, confidence: float = 0.99) -> tuple[float, float]:
    """Interval for a probability from counted hits that never falls short of its confidence.

    Use it for shares estimated by random points, also when none or all of them hit.

    Parameters
    ----------
    hits : int
        Number of successes, 0 to `n_samples`.
    n_samples : int
        Number of independent trials, at least 1.
    confidence : float, default=0.99
        Probability, in (0, 1), with which the interval holds the truth at least.

    Returns
    -------
    tuple of two floats
        Lower and upper end, equal tails.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    C. J. Clopper, E. S. Pearson: The use of confidence or fiducial limits illustrated in the case
    of the binomial. Biometrika 26(4), 1934.

    Examples
    --------
    >>> from skescore.rules._sampling import clopper_pearson
    >>> low, high = clopper_pearson(0, 100, 0.95)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    check_count("n_samples", n_samples)
    check_confidence(confidence)
    if not 0 <= hits <= n_samples:
        raise ValueError(f"`hits` must lie between 0 and n_samples={n_samples!r}, got {hits!r}.")
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if hits == 0 else float(betaincinv(hits, n_samples - hits + 1, tail))
    high = 1.0 if hits == n_samples else float(betaincinv(hits + 1, n_samples - hits, 1.0 - tail))
    return low, high


def sampling_stream(random_state: Seed) -> np.random.Generator:
    """Random generator for points in a domain, apart from the streams that data come from.

    Use it instead of ``np.random.default_rng``: synthetic rows are often drawn with a small seed
    such as 0. Points of the very same stream would repeat those rows, and rules drawn around the
    rows would seem to cover more than they do.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A seed, or a generator to draw from as it is. None is a fresh seed.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    ValueError
        If a seed is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.rules._sampling import sampling_stream
    >>> bool(sampling_stream(0).random() == np.random.default_rng(0).random())
    False
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    if random_state is not None and (
        not isinstance(random_state, Integral) or isinstance(random_state, bool) or random_state < 0
    ):
        raise ValueError(
            "`random_state` must be a whole number of 0 or more, a Generator, a RandomState or "
            f"None, got {random_state!r}."
        )
    return np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(1991,)))


def sampled_volume(
    low: Floats,
    high: Floats,
    n_samples: int,
    confidence: float,
    random_state: Seed,
) -> tuple[float, float, float]:
    """Estimate the volume of a union of boxes; return it with the ends of its interval.

    None of the boxes may be empty. For the scheme see `skescore.rules._volumes.union_volume`.
    """
    volumes = box_volumes(low, high)
    order = np.argsort(-volumes, kind="stable")
    low, high, volumes = low[order], high[order], volumes[order]
    total = math.fsum(volumes)
    floor, ceiling = low.min(axis=0), high.max(axis=0)
    outer = float(box_volumes(floor[None], ceiling[None])[0])
    by_box = total < outer
    scale = total if by_box else outer
    if scale == 0.0:
        return 0.0, 0.0, 0.0
    rng = sampling_stream(random_state)
    logs = np.log(high - low).sum(axis=1)
    shares = np.exp(logs - logs.max())  # of volumes that may be too small for a float64
    batch = max(1, 2_000_000 // low.shape[1])
    hits = 0
    for start in range(0, n_samples, batch):
        points = rng.random((min(batch, n_samples - start), low.shape[1]))
        if by_box:
            drawn = rng.choice(len(low), size=len(points), p=shares / shares.sum())
            points = low[drawn] + points * (high[drawn] - low[drawn])
            points = np.minimum(points, high[drawn])  # rounding must not lift a point out
            hits += int(np.count_nonzero(first_box(points, low, high) == drawn))
        else:
            points = floor + points * (ceiling - floor)
            hits += int(np.count_nonzero(first_box(points, low, high) < len(low)))
    bottom, top = clopper_pearson(hits, n_samples, confidence)
    bottom = max(bottom * scale, float(volumes[0]))
    top = max(min(top * scale, total), bottom)
    return min(max(hits / n_samples * scale, bottom), top), bottom, top


def check_count(name: str, number: int) -> None:
    """Refuse what is not a whole number of at least 1."""
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {number!r}.")


def check_confidence(confidence: float) -> None:
    """Refuse what is not strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"`confidence` must lie strictly between 0 and 1, got {confidence!r}.")
