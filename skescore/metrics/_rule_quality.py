"""Quality measures of a single rule, computed from its confusion counts.

The catalog contains the measures of RuleKit, a rule learner. All measures are functions of four
counts; greater is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, xlog1py, xlogy

from skescore._aliases import RULEKIT_RULE_MEASURES, AliasedTable
from skescore._text import did_you_mean
from skescore._validation import as_numbers, check_number_or_nan, check_shapes, plain

__all__ = ["RULE_MEASURES", "Counts", "RuleMeasure", "as_counts", "rule_quality"]


Numbers = NDArray[np.float64]

_SERIES_LIMIT = 0.01
# (1 + r) ln(1 + r) - r = r² (1/2 - r/6 + r²/12 - ...), highest power first for Horner's scheme.
_SERIES = [(-1) ** k / ((k + 1) * (k + 2)) for k in range(6, -1, -1)]


class Counts:
    """Covered and all positives and negatives, broadcast to one shape."""

    def __init__(self, p: Numbers, n: Numbers, P: Numbers, N: Numbers) -> None:
        self.p, self.n, self.P, self.N = np.broadcast_arrays(p, n, P, N)

    @cached_property
    def covered(self) -> Numbers:
        return self.p + self.n

    @cached_property
    def missed(self) -> Numbers:
        """Positives that the rule does not cover."""
        return self.P - self.p

    @cached_property
    def rejected(self) -> Numbers:
        """Negatives that the rule does not cover."""
        return self.N - self.n

    @cached_property
    def uncovered(self) -> Numbers:
        # T - c could leave rounding errors where the result should be 0.
        return self.missed + self.rejected

    @cached_property
    def total(self) -> Numbers:
        return self.P + self.N

    @cached_property
    def difference(self) -> Numbers:
        """D = pN - nP; exact for whole counts with products below 2**53."""
        return self.p * self.N - self.n * self.P

    @cached_property
    def information(self) -> Numbers:
        """T times the mutual information of rule and class, in nats."""
        inside = _divergence(self, self.covered)
        return inside + _divergence(self, self.uncovered, outside=True)


def as_counts(p: ArrayLike, n: ArrayLike, P: ArrayLike, N: ArrayLike) -> Counts:
    """Check that four counts are possible and consistent, and broadcast them to one shape."""
    remedy = "Counts are numbers of rows, or sums of their weights."
    arguments = {"p": p, "n": n, "P": P, "N": N}
    arrays = {name: as_numbers(name, x, low=0.0, remedy=remedy) for name, x in arguments.items()}
    check_shapes(**arrays)
    counts = Counts(**arrays)
    for part, total_name in (("p", "P"), ("n", "N")):
        small, large = getattr(counts, part), getattr(counts, total_name)
        if (small > large).any():
            at = tuple(np.argwhere(small > large)[0])
            raise ValueError(
                f"{part} must not exceed {total_name}, got {part}={float(small[at])!r} and "
                f"{total_name}={float(large[at])!r}{_position(at)}. A rule cannot cover more than "
                f"all rows; if rounding is the cause, pass min({part}, {total_name})."
            )
    nothing = counts.total == 0
    if nothing.any():
        raise ValueError(
            f"P + N must be above 0, got P=0.0 and N=0.0{_position(np.argwhere(nothing)[0])}. "
            "No rule can be judged without rows: drop it."
        )
    return counts


def _position(at: ArrayLike) -> str:
    index = tuple(int(i) for i in np.asarray(at))
    return f" at position {index[0] if len(index) == 1 else index}" if index else ""


def _ratio(numerator: Numbers, denominator: Numbers, otherwise: float = np.nan) -> Numbers:
    """Divide; return `otherwise` where the denominator is 0."""
    shape = np.broadcast_shapes(np.shape(numerator), np.shape(denominator))
    result = np.full(shape, otherwise)
    return np.divide(numerator, denominator, out=result, where=np.asarray(denominator) != 0)


def _divergence(k: Counts, side: Numbers, outside: bool = False) -> Numbers:
    """Sum O ln(O/E) - O + E over both classes inside (or `outside`) the rule.

    O are the observed counts and E the counts expected of a random rule. The last two terms cancel
    in the sum, but keep every summand positive, so no digits cancel.
    """
    parts = []
    for total, sign in ((k.P, 1.0), (k.N, -1.0)):
        expected = side * total / k.total
        excess = (-sign if outside else sign) * _ratio(k.difference, side * total, 0.0)
        # An empty cell has the excess -1; rounding must not fall below it.
        parts.append(expected * _relative_divergence(np.maximum(excess, -1.0)))
    return parts[0] + parts[1]


def _relative_divergence(r: Numbers) -> Numbers:
    """Compute (1 + r) ln(1 + r) - r for r >= -1, accurate for small r too."""
    is_small = np.abs(r) < _SERIES_LIMIT
    small = np.where(is_small, r, 0.0)
    return np.where(is_small, small**2 * np.polyval(_SERIES, small), xlog1py(1 + r, r) - r)


# Formulas take :class:`Counts` and parameters as arrays, and return NaN exactly where they are
# undefined. They avoid removable singularities, mostly by using the difference D = pN - nP, which
# is 0 for a random rule.

Limits = Callable[..., tuple[ArrayLike, ArrayLike]]


def _entropy(a: Numbers, b: Numbers) -> Numbers:
    """Compute the entropy of two counts in bits, times their sum; 0 for no counts."""
    return -(rel_entr(a, a + b) + rel_entr(b, a + b)) / np.log(2)


def _positives_times_log_lift(k: Counts) -> Numbers:
    """Compute p ln(pT / (cP)), 0 if p = 0."""
    baseline = k.covered * k.P
    excess = _ratio(k.difference, baseline, 0.0)
    is_near = np.abs(excess) < 0.5  # near 1, the logarithm loses its digits
    lift_ = _ratio(k.p * k.total, baseline, 1.0)
    return np.where(is_near, xlog1py(k.p, np.where(is_near, excess, 0.0)), xlogy(k.p, lift_))


_COUNTS_REMEDY = "Bounds exist only with positives and negatives."
_PARAMETER_REMEDY = "See RULE_MEASURES for the default."


@dataclass(frozen=True, slots=True)
class RuleMeasure:
    """A measure of a single rule.

    Pass an instance instead of a name to use your own measure in :func:`rule_quality`.

    Parameters
    ----------
    name : str
        Name of the measure.
    function : callable
        ``function(counts, **parameters)``, which returns an array with NaN where the measure is
        undefined; `counts` has the arrays ``p``, ``n``, ``P``, ``N``, ``covered``, ``uncovered``,
        ``total``, ``missed`` (P - p), ``rejected`` (N - n) and ``difference`` (pN - nP).
    formula : str
        Formula as text, with c = p + n, T = P + N, u = T - c, D = pN - nP.
    range : str
        Interval of values for P, N >= 1 with default parameters; a round bracket marks a bound that
        is not reached.
    limits : callable
        ``limits(P, N, **parameters)`` returns the smallest and the largest value.
    parameters : mapping of str to float, optional
        Names and defaults of the parameters, all of them numbers of at least 0.
    greater_is_better : bool, default=True
        False for a loss.
    symmetric : bool, default=False
        True if a rule far worse than chance also gets a high value.
    source : str, default=""
        Author or origin of the measure.

    Examples
    --------
    >>> from skescore.metrics import RULE_MEASURES
    >>> measure = RULE_MEASURES["m_estimate"]
    >>> measure.formula, dict(measure.parameters)
    ('(p + m P/T) / (c + m)', {'m': 2.0})
    >>> RULE_MEASURES["novelty"].bounds(50, 50)
    (-0.25, 0.25)
    """

    name: str
    function: Callable[..., Numbers]
    formula: str
    range: str
    limits: Limits
    parameters: Mapping[str, float] = field(default_factory=dict)
    greater_is_better: bool = True
    symmetric: bool = False
    source: str = ""

    def bounds(
        self, P: ArrayLike, N: ArrayLike, **parameters: ArrayLike
    ) -> tuple[float | Numbers, float | Numbers]:
        """Return the smallest and the largest value for given numbers of positives and negatives.

        Parameters
        ----------
        P, N : float or array-like, > 0
            Numbers of all positives and negatives.
        **parameters : float or array-like
            Parameters of the measure, see :func:`rule_quality`.

        Returns
        -------
        low, high : float or ndarray of float
            Bounds for rules that cover at least one row; `high` may be infinite.

        Raises
        ------
        ValueError
            If an argument lies outside its domain.
        TypeError
            If an argument is not a number, or there is no such parameter.
        """
        arrays = self.settings_of(parameters)
        for name, value in (("P", P), ("N", N)):
            arrays[name] = as_numbers(name, value, low=0.0, strict=True, remedy=_COUNTS_REMEDY)
        check_shapes(**arrays)
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        low, high = self.limits(**arrays)
        return _broadcast(low, shape), _broadcast(high, shape)

    def settings_of(self, parameters: Mapping[str, ArrayLike]) -> dict[str, Numbers]:
        """Check the parameters and fill in the defaults."""
        for name in parameters:
            if name not in self.parameters:
                raise TypeError(
                    f"The measure {self.name!r} has no parameter {name!r}. "
                    f"{did_you_mean(name, self.parameters)}"
                )
        return {
            name: as_numbers(name, value, low=0.0, remedy=_PARAMETER_REMEDY)
            for name, value in {**self.parameters, **parameters}.items()
        }


def _broadcast(values: ArrayLike, shape: tuple[int, ...]) -> float | Numbers:
    """Broadcast the values to the shape of the arguments; return a float for scalars."""
    array = np.asarray(values, dtype=np.float64)
    return plain(array if array.shape == shape else np.broadcast_to(array, shape).copy())


_MEASURES: dict[str, RuleMeasure] = {}
#: Quality measures of single rules, functions of the counts p, n, P and N. RuleKit's names, such
#: as ``"FMeasure"``, are aliases.
RULE_MEASURES: Mapping[str, RuleMeasure] = AliasedTable(_MEASURES, RULEKIT_RULE_MEASURES)


def _measure(
    formula: str,
    value_range: str,
    limits: Limits,
    parameters: Mapping[str, float] = MappingProxyType({}),
    **properties: Any,
) -> Callable[[Callable[..., Numbers]], Callable[..., Numbers]]:
    """Return a decorator that adds a function of counts to the catalog under its name."""

    def declare(function: Callable[..., Numbers]) -> Callable[..., Numbers]:
        name = function.__name__
        _MEASURES[name] = RuleMeasure(
            name, function, formula, value_range, limits, parameters, **properties
        )
        return function

    return declare


def between(low: float, high: float) -> Limits:
    return lambda P, N: (low, high)


def prior_entropy(P: Numbers, N: Numbers) -> Numbers:
    """Compute the entropy of the class in bits."""
    return _entropy(P, N) / (P + N)


def most_divergent(P: Numbers, N: Numbers) -> Numbers:
    """Compute half the CN2 significance of a rule that covers exactly one class."""
    return np.maximum(P * np.log1p(N / P), N * np.log1p(P / N))


def binary_entropy_limits(P: Numbers, N: Numbers) -> tuple[ArrayLike, ArrayLike]:
    return 1 - prior_entropy(P, N), 1.0


def information_limits(P: Numbers, N: Numbers) -> tuple[ArrayLike, ArrayLike]:
    entropy = prior_entropy(P, N)
    return -entropy, entropy


def novelty_limits(P: Numbers, N: Numbers) -> tuple[ArrayLike, ArrayLike]:
    limit = P * N / (P + N) ** 2
    return -limit, limit


def product_limits(P: Numbers, N: Numbers, smoothing: Numbers) -> tuple[ArrayLike, ArrayLike]:
    return 0.0, _ratio(P * N, smoothing, np.inf)


def relative_risk_limits(P: Numbers, N: Numbers, smoothing: Numbers) -> tuple[ArrayLike, ArrayLike]:
    # The best pure rule covers all positives or, with a large `smoothing`, almost nothing.
    return 0.0, np.maximum(_ratio(N, smoothing, np.inf), (P + N) / (P + smoothing))


def klosgen_limits(P: Numbers, N: Numbers, omega: Numbers) -> tuple[ArrayLike, ArrayLike]:
    total = P + N

    def greatest(kind: Numbers) -> Numbers:
        # The best rule covers a whole class; if size dominates, it covers other rows too.
        covered = np.maximum(kind, total * (1 - _ratio(np.ones_like(omega), omega, np.inf)))
        return (covered / total) ** omega * kind * (1 / covered - 1 / total)

    return -greatest(N), greatest(P)


def m_estimate_limits(P: Numbers, N: Numbers, m: Numbers) -> tuple[ArrayLike, ArrayLike]:
    prior = P / (P + N)
    return m * prior / (N + m), (P + m * prior) / (P + m)


_LAVRAC = "N. Lavrač, P. Flach, B. Zupan: rule evaluation measures, 1999"
_FLACH = "J. Fürnkranz, P. Flach: ROC 'n' rule learning, 2005"
_BRUHA = "I. Bruha: quality of decision rules, 1997"
_YAO = "Y. Yao, N. Zhong: quantitative measures associated with rules, 1999"
_TABLE = "statistics of two-by-two tables"
_RULEKIT = "catalog of RuleKit"
_SHARE, _SIGNED = between(0, 1), between(-1, 1)


@_measure("p - n", "[-N, P]", lambda P, N: (-N, P), source=_FLACH)
def accuracy(k: Counts) -> Numbers:
    return k.p - k.n


@_measure(
    "1 - (c H(p, n) + u H(P - p, N - n)) / T",
    "[1 - H(P, N), 1]",
    binary_entropy_limits,
    symmetric=True,
    source="entropy of two counts in bits",
)
def binary_entropy(k: Counts) -> Numbers:
    return 1 - (_entropy(k.p, k.n) + _entropy(k.missed, k.rejected)) / k.total


@_measure(
    "coleman (2 + kappa) / 3", "(-2P/(3N), 1]", lambda P, N: (-2 * P / (3 * N), 1.0), source=_BRUHA
)
def c1(k: Counts) -> Numbers:
    return coleman(k) * (2 + kappa(k)) / 3


@_measure("coleman (P + p) / (2P)", "[-P/(2N), 1]", lambda P, N: (-P / (2 * N), 1.0), source=_BRUHA)
def c2(k: Counts) -> Numbers:
    return coleman(k) * _ratio(k.P + k.p, 2 * k.P)


@_measure(
    "p log2(pT / (cP))",
    "(-P/(e ln 2), P log2(T/P)]",
    lambda P, N: (-P / (np.e * np.log(2)), P * np.log1p(N / P) / np.log(2)),
    source="J. R. Quinlan: FOIL, 1990",
)
def cfoil(k: Counts) -> Numbers:
    return _positives_times_log_lift(k) / np.log(2)


@_measure(
    "2 (p ln(pT / (cP)) + n ln(nT / (cN)))",
    "[0, 2 max(P ln(T/P), N ln(T/N))]",
    lambda P, N: (0.0, 2 * most_divergent(P, N)),
    symmetric=True,
    source="P. Clark, T. Niblett: CN2, 1989",
)
def cn2_significance(k: Counts) -> Numbers:
    return 2 * _divergence(k, k.covered)


@_measure("D / (N c)", "[-P/N, 1]", lambda P, N: (-P / N, 1.0), source=_BRUHA)
def coleman(k: Counts) -> Numbers:
    return _ratio(k.difference, k.N * k.covered)


@_measure("D / sqrt(P N c u)", "[-1, 1]", _SIGNED, source=_FLACH)
def correlation(k: Counts) -> Numbers:
    value = _ratio(k.difference, np.sqrt(k.P * k.N * k.covered * k.uncovered))
    return np.clip(value, -1.0, 1.0)  # the root may round down


@_measure("p / P", "[0, 1]", _SHARE, source=_TABLE)
def coverage(k: Counts) -> Numbers:
    return sensitivity(k)


@_measure("D / (pN + nP)", "[-1, 1]", _SIGNED, source="J. Kemeny, P. Oppenheim 1952")
def f_bayesian_confirmation(k: Counts) -> Numbers:
    return _ratio(k.difference, k.p * k.N + k.n * k.P)


@_measure(
    "(1 + beta²) p / (beta² P + c)",
    "[0, 1]",
    lambda P, N, beta: (0.0, 1.0),
    {"beta": 2.0},
    source="C. J. van Rijsbergen 1979",
)
def f_measure(k: Counts, beta: Numbers) -> Numbers:
    return _ratio((1 + beta**2) * k.p, beta**2 * k.P + k.covered)


@_measure("c / T", "[0, 1]", _SHARE, source=_TABLE)
def full_coverage(k: Counts) -> Numbers:
    return k.covered / k.total


@_measure("sqrt((p/P) (1 - n/N))", "[0, 1]", _SHARE, source=_RULEKIT)
def geo_rss(k: Counts) -> Numbers:
    return np.sqrt(sensitivity(k) * specificity(k))


@_measure(
    "p / (c + g)", "[0, P/(P + g)]", lambda P, N, g: (0.0, P / (P + g)), {"g": 2.0}, source=_FLACH
)
def g_measure(k: Counts, g: Numbers) -> Numbers:
    return _ratio(k.p, k.covered + g)


@_measure(
    "±(H(P, N) - (c H(p, n) + u H(P - p, N - n)) / T), minus if D < 0",
    "[-H(P, N), H(P, N)]",
    information_limits,
    source="entropy of two counts in bits",
)
def information_gain(k: Counts) -> Numbers:
    gain = k.information / (k.total * np.log(2))
    return np.where(k.difference < 0, -gain, gain)


@_measure(
    "cn2_significance / (2T)",
    "[0, max(P ln(T/P), N ln(T/N)) / T]",
    lambda P, N: (0.0, most_divergent(P, N) / (P + N)),
    symmetric=True,
    source="P. Smyth, R. Goodman 1992",
)
def j_measure(k: Counts) -> Numbers:
    return _divergence(k, k.covered) / k.total


@_measure(
    "2D / (Nc + Pu)",
    "[-2PN/(P² + N²), 1]",
    lambda P, N: (-2 * P * N / (P**2 + N**2), 1.0),
    source="J. Cohen 1960",
)
def kappa(k: Counts) -> Numbers:
    return _ratio(2 * k.difference, k.N * k.covered + k.P * k.uncovered)


@_measure(
    "(c/T)^omega (p/c - P/T)",
    "[-PN/T², PN/T²]",
    klosgen_limits,
    {"omega": 1.0},
    source="W. Klösgen: Explora, 1996",
)
def klosgen(k: Counts, omega: Numbers) -> Numbers:
    value = full_coverage(k) ** omega * _ratio(k.difference, k.covered * k.total)
    # The value approaches 0 for small rules, unless size has no influence.
    return np.where((k.covered == 0) & (omega > 0), 0.0, value)


@_measure(
    "(p + 1) / (c + 2)",
    "[1/(N + 2), (P + 1)/(P + 2)]",
    lambda P, N: (1 / (N + 2), (P + 1) / (P + 2)),
    source="P. Clark, R. Boswell 1991",
)
def laplace(k: Counts) -> Numbers:
    return (k.p + 1) / (k.covered + 2)


@_measure(
    "(p/c) / (P/T)", "[0, T/P]", lambda P, N: (0.0, (P + N) / P), source="S. Brin et al. 1997"
)
def lift(k: Counts) -> Numbers:
    return _ratio(k.p * k.total, k.covered * k.P)


@_measure(
    "pN / (nP + smoothing)",
    "[0, PN]",
    product_limits,
    {"smoothing": 1.0},
    source="R. Duda et al.: PROSPECTOR, 1979",
)
def logical_sufficiency(k: Counts, smoothing: Numbers) -> Numbers:
    return _ratio(k.p * k.N, k.n * k.P + smoothing)


@_measure(
    "(p + m P/T) / (c + m)",
    "[(mP/T)/(N + m), (P + mP/T)/(P + m)]",
    m_estimate_limits,
    {"m": 2.0},
    source="B. Cestnik 1990",
)
def m_estimate(k: Counts, m: Numbers) -> Numbers:
    return _ratio(k.p + m * k.P / k.total, k.covered + m)


@_measure("p / (n + P)", "[0, 1]", _SHARE, source=_YAO)
def mutual_support(k: Counts) -> Numbers:
    return _ratio(k.p, k.n + k.P)


@_measure("p/T - P c/T²", "[-PN/T², PN/T²]", novelty_limits, source=_LAVRAC)
def novelty(k: Counts) -> Numbers:
    return k.difference / k.total**2


@_measure(
    "p (N - n) / (n (P - p) + smoothing)",
    "[0, PN]",
    product_limits,
    {"smoothing": 1.0},
    source=_TABLE,
)
def odds_ratio(k: Counts, smoothing: Numbers) -> Numbers:
    return _ratio(k.p * k.rejected, k.n * k.missed + smoothing)


@_measure(
    "(p/c) ln(lift)",
    "[-P/(eT), ln(T/P)]",
    lambda P, N: (-P / (np.e * (P + N)), np.log1p(N / P)),
    source=_YAO,
)
def one_way_support(k: Counts) -> Numbers:
    return _ratio(_positives_times_log_lift(k), k.covered)


@_measure(
    "D / (pT + Pc)",
    "[-1, N/(T + P)]",
    lambda P, N: (-1.0, N / (P + N + P)),
    source="Z. Pawlak 2002",
)
def pawlak_dependency_factor(k: Counts) -> Numbers:
    return _ratio(k.difference, k.p * k.total + k.P * k.covered)


@_measure("(p/P - n/N) (1 - n/N)", "[-1/4, 1]", between(-0.25, 1), source=_RULEKIT)
def q2(k: Counts) -> Numbers:
    return rss(k) * specificity(k)


@_measure("p / c", "[0, 1]", _SHARE, source=_FLACH)
def precision(k: Counts) -> Numbers:
    return _ratio(k.p, k.covered)


@_measure(
    "(p/c) u / (P - p + smoothing)",
    "[0, N]",
    relative_risk_limits,
    {"smoothing": 1.0},
    source=_TABLE,
)
def relative_risk(k: Counts, smoothing: Numbers) -> Numbers:
    return _ratio(k.p * k.uncovered, k.covered * (k.missed + smoothing))


@_measure("(p - n) / c", "[-1, 1]", _SIGNED, source="W. Cohen 1995")
def ripper(k: Counts) -> Numbers:
    return _ratio(k.p - k.n, k.covered)


@_measure(
    "D / T",
    "[-PN/T, PN/T]",
    lambda P, N: (-P * N / (P + N), P * N / (P + N)),
    source="G. Piatetsky-Shapiro 1991",
)
def rule_interest(k: Counts) -> Numbers:
    return k.difference / k.total


@_measure("p/P - n/N", "[-1, 1]", _SIGNED, source=_RULEKIT)
def rss(k: Counts) -> Numbers:
    return _ratio(k.difference, k.P * k.N)


@_measure("p/c - (P - p)/u", "[-1, 1]", _SIGNED, source="D. Christensen 1999")
def s_bayesian(k: Counts) -> Numbers:
    return _ratio(k.difference, k.covered * k.uncovered)


@_measure("p / P", "[0, 1]", _SHARE, source=_TABLE)
def sensitivity(k: Counts) -> Numbers:
    return _ratio(k.p, k.P)


@_measure("(N - n) / N", "[0, 1]", _SHARE, source=_TABLE)
def specificity(k: Counts) -> Numbers:
    return _ratio(k.rejected, k.N)


@_measure(
    "(p/T) ln(lift)",
    "(-P/(eT), (P/T) ln(T/P)]",
    lambda P, N: (-P / (np.e * (P + N)), P * np.log1p(N / P) / (P + N)),
    source=_YAO,
)
def two_way_support(k: Counts) -> Numbers:
    return _positives_times_log_lift(k) / k.total


@_measure(
    "(p + 1) T / ((c + 2) P)",
    "[T/((N + 2)P), (P + 1)T/((P + 2)P)]",
    lambda P, N: ((P + N) / ((N + 2) * P), (P + 1) * (P + N) / ((P + 2) * P)),
    source=_RULEKIT,
)
def weighted_laplace(k: Counts) -> Numbers:
    return _ratio((k.p + 1) * k.total, (k.covered + 2) * k.P)


@_measure("(c/T) (p/c - P/T)", "[-PN/T², PN/T²]", novelty_limits, source=_LAVRAC)
def weighted_relative_accuracy(k: Counts) -> Numbers:
    return novelty(k)


@_measure(
    "(1/2 + prec/4) prec + (1/2 - prec/4) p/P, prec = p/c", "[0, 1]", _SHARE, source="L. Torgo 1993"
)
def yails(k: Counts) -> Numbers:
    purity = precision(k)
    return (0.5 + purity / 4) * purity + (0.5 - purity / 4) * sensitivity(k)


@overload
def rule_quality(
    measure: str | RuleMeasure,
    p: float,
    n: float,
    P: float,
    N: float,
    *,
    undefined: float = ...,
    **parameters: float,
) -> float: ...
@overload
def rule_quality(
    measure: str | RuleMeasure,
    p: ArrayLike,
    n: ArrayLike,
    P: ArrayLike,
    N: ArrayLike,
    *,
    undefined: float = ...,
    **parameters: ArrayLike,
) -> float | Numbers: ...
def rule_quality(
    measure: str | RuleMeasure,
    p: ArrayLike,
    n: ArrayLike,
    P: ArrayLike,
    N: ArrayLike,
    *,
    undefined: float = np.nan,
    **parameters: ArrayLike,
) -> float | Numbers:
    """Compute a quality measure of rules from their counts; greater is better.

    Use it to compare, prune or weight rules. Counts may be sums of weights, not only integers.
    Arguments broadcast against each other.

    Parameters
    ----------
    measure : str or RuleMeasure
        A name of :data:`RULE_MEASURES`, or a user-defined measure.
    p, n : float or array-like, >= 0
        Positives and negatives that the rule covers. A positive row has the rule's output.
    P, N : float or array-like, >= 0
        All positives and negatives, covered or not.
    undefined : float, default=NaN
        Value where the measure is undefined, such as the precision of a rule that covers nothing.
        0.0 is the value of an uninformative rule for all measures built on pN - nP.
    **parameters : float or array-like, >= 0
        Parameters of the measure, such as ``beta`` of ``"f_measure"``; see
        ``RULE_MEASURES[...].parameters`` for names and defaults.

    Returns
    -------
    float or ndarray of float
        A Python float when all arguments are scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    ValueError
        If there is no such measure, a count is negative or not finite, p > P, n > N, P = N = 0, a
        parameter is negative or not finite, or the shapes do not broadcast.
    TypeError
        If an argument is not a number (booleans included), or the measure has no such parameter.

    Notes
    -----
    Formulas are in ``RULE_MEASURES[...].formula``. Where a formula is 0/0 but has a limit, the
    value is the limit: 0 ln 0 is 0. Differences and sums of logarithms are computed in a form that
    is accurate for counts of any size; the sign of pN - nP is always right.

    RuleKit 2.1.24 returns NaN for some values that have a limit, minus infinity for the correlation
    of a rule that covers every row, and plus infinity for the weighted Laplace estimate without
    positives. All its finite values are reproduced. Three quotients add `smoothing` to the
    denominator; ``smoothing=0`` gives the textbook form.

    References
    ----------
    A. Gudyś, M. Sikora, Ł. Wróbel: RuleKit: a comprehensive suite for rule-based learning.
    Knowledge-Based Systems 194, 2020. arXiv:1908.01031.

    Examples
    --------
    >>> from skescore.metrics import rule_quality
    >>> rule_quality("precision", p=30, n=10, P=50, N=100)
    0.75
    >>> rule_quality("f_measure", 30, 10, 50, 100, beta=1)
    0.6666666666666666
    >>> rule_quality("precision", [30, 0], [10, 0], 50, 100, undefined=0.0).tolist()
    [0.75, 0.0]
    """
    checked_measure = measure if isinstance(measure, RuleMeasure) else _find_measure(measure)
    otherwise = check_number_or_nan("undefined", undefined)
    counts = as_counts(p, n, P, N)
    settings = checked_measure.settings_of(parameters)
    check_shapes(counts=counts.p, **settings)
    shape = np.broadcast_shapes(counts.p.shape, *(array.shape for array in settings.values()))
    values = np.asarray(checked_measure.function(counts, **settings), dtype=np.float64)
    return _broadcast(np.where(np.isnan(values), otherwise, values), shape)


def _find_measure(name: object) -> RuleMeasure:
    named_measure = RULE_MEASURES.get(name) if isinstance(name, str) else None
    if named_measure is None:
        raise ValueError(
            f"There is no measure of rules {name!r}. {did_you_mean(name, RULE_MEASURES)}"
        )
    return named_measure
