"""The four counts that measures of a rule are made of, checked, and what follows from them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlog1py

from skescore.metrics._arguments import as_numbers, check_shapes

__all__ = ["Counts", "as_counts", "check_magnitude", "divergence", "ratio"]

Numbers = NDArray[np.float64]

# Formulas multiply up to four counts: within these bounds nothing over- or underflows, and a
# product is 0 only if a factor is.
_SMALLEST, _LARGEST = 1e-60, 1e60
_EXACT = 2.0**53  # whole numbers up to here are exact in a float
_SPLITTER = 2.0**27 + 1  # cuts a float into two halves whose products are exact
_SERIES_LIMIT = 0.01
# (1 + r) ln(1 + r) - r = r² (1/2 - r/6 + r²/12 - ...), highest power first for Horner's scheme.
_SERIES = [(-1) ** k / ((k + 1) * (k + 2)) for k in range(6, -1, -1)]


class Counts:
    """What a rule covers, and what there is; all arrays broadcast to one shape.

    Parameters
    ----------
    p, n : ndarray of float
        Positives and negatives that the rule covers.
    P, N : ndarray of float
        All positives and negatives.
    """

    def __init__(self, p: Numbers, n: Numbers, P: Numbers, N: Numbers) -> None:
        self.p, self.n, self.P, self.N = np.broadcast_arrays(p, n, P, N)

    @cached_property
    def covered(self) -> Numbers:
        return self.p + self.n

    @cached_property
    def missed(self) -> Numbers:
        """Positives outside the rule."""
        return self.P - self.p

    @cached_property
    def rejected(self) -> Numbers:
        """Negatives outside the rule."""
        return self.N - self.n

    @cached_property
    def uncovered(self) -> Numbers:
        # Not T - c, whose rounding could leave a trifle where nothing is left.
        return self.missed + self.rejected

    @cached_property
    def total(self) -> Numbers:
        return self.P + self.N

    @cached_property
    def difference(self) -> Numbers:
        """D = pN - nP. Rounding keeps its sign, and it is exactly 0 for proportional counts."""
        left, right = self.p * self.N, self.n * self.P
        difference = left - right
        if max(left.max(initial=0), right.max(initial=0)) > _EXACT:
            # The two products no longer fit into floats, and might cancel to nothing but noise.
            difference = difference + (
                _lost_by_product(self.p, self.N, left) - _lost_by_product(self.n, self.P, right)
            )
        return difference

    @cached_property
    def information(self) -> Numbers:
        """Total information of the rule about the class, in nats: T times mutual information."""
        inside = divergence(self, self.covered)
        return inside + divergence(self, self.uncovered, outside=True)


def as_counts(p: ArrayLike, n: ArrayLike, P: ArrayLike, N: ArrayLike) -> Counts:
    """Check four counts against each other.

    Parameters
    ----------
    p, n, P, N : array-like
        As for :func:`skescore.metrics.rule_quality`.

    Returns
    -------
    Counts
        The counts, of one shape.

    Raises
    ------
    ValueError
        If there is a negative count or one that is not finite, p > P, n > N, or P = N = 0.
    TypeError
        If something is no number.
    """
    remedy = "Counts are numbers of rows, or sums of their weights."
    given = {"p": p, "n": n, "P": P, "N": N}
    arrays = {name: as_numbers(name, x, low=0.0, remedy=remedy) for name, x in given.items()}
    for name, array in arrays.items():
        check_magnitude(name, array)
    check_shapes(**arrays)
    counts = Counts(**arrays)
    for part, whole in (("p", "P"), ("n", "N")):
        small, large = getattr(counts, part), getattr(counts, whole)
        if (small > large).any():
            at = tuple(np.argwhere(small > large)[0])
            raise ValueError(
                f"{part} must not exceed {whole}, got {part}={float(small[at])!r} and "
                f"{whole}={float(large[at])!r}{_position(at)}. A rule covers no more than there "
                f"is; if only rounding of summed weights is to blame, pass min({part}, {whole})."
            )
    nothing = counts.total == 0
    if nothing.any():
        raise ValueError(
            f"P + N must be above 0, got P=0.0 and N=0.0{_position(np.argwhere(nothing)[0])}. "
            "No rule can be judged on no rows: drop it."
        )
    return counts


def check_magnitude(name: str, array: Numbers) -> None:
    """Raise a ValueError for numbers so large or small that products of them leave the floats."""
    wrong = (array > _LARGEST) | ((array < _SMALLEST) & (array > 0))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise ValueError(
            f"{name} must be 0 or lie between {_SMALLEST:g} and {_LARGEST:g}, got "
            f"{float(array[at])!r}{_position(at)}. Divide all weights by their mean."
        )


def _position(at: ArrayLike) -> str:
    index = tuple(int(i) for i in np.asarray(at))
    return f" at position {index[0] if len(index) == 1 else index}" if index else ""


# --- tools ---------------------------------------------------------------------------------------


def ratio(numerator: Numbers, denominator: Numbers, otherwise: float = np.nan) -> Numbers:
    """Divide, and answer `otherwise` where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    result = np.full(shape, otherwise)
    return np.divide(numerator, denominator, out=result, where=np.asarray(denominator) != 0)


def divergence(k: Counts, side: Numbers, outside: bool = False) -> Numbers:
    """Sum of O ln(O/E) - O + E over both classes in or outside the rule.

    O are the observed counts and E those expected of a rule no better than chance. The last two
    terms cancel in the sum, but make every addend positive, so that nothing else cancels.
    """
    parts = []
    for whole, sign in ((k.P, 1.0), (k.N, -1.0)):
        expected = side * whole / k.total
        excess = (-sign if outside else sign) * ratio(k.difference, side * whole, 0.0)
        # An empty cell has an excess of -1, and must not lie below by rounding.
        parts.append(expected * _relative_divergence(np.maximum(excess, -1.0)))
    return parts[0] + parts[1]


def _relative_divergence(r: Numbers) -> Numbers:
    """(1 + r) ln(1 + r) - r for r >= -1, accurate for small r as well."""
    near = np.abs(r) < _SERIES_LIMIT
    small = np.where(near, r, 0.0)
    return np.where(near, small**2 * np.polyval(_SERIES, small), xlog1py(1 + r, r) - r)


def _lost_by_product(a: Numbers, b: Numbers, product: Numbers) -> Numbers:
    """What rounding took from a product (Dekker 1971)."""
    a_high, b_high = a * _SPLITTER, b * _SPLITTER
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
