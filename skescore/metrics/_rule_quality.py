"""Measures of a single rule, from how many rows of which kind it covers.

The catalogue is that of RuleKit, a well-known learner of rules, as a table: one entry per measure.
All are functions of four counts, and greater is better for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from skescore._text import did_you_mean
from skescore.metrics import _quality_formulas as formulas
from skescore.metrics._arguments import as_numbers, check_shapes, plain
from skescore.metrics._counts import Numbers, as_counts, check_magnitude
from skescore.metrics._quality_formulas import Limits, between

__all__ = ["MEASURES", "Measure", "rule_quality"]

_COUNTS_REMEDY = "Bounds are known where there are positives and negatives."
_PARAMETER_REMEDY = "See MEASURES for the default."


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a single rule.

    An instance of your own may be passed to :func:`rule_quality` in place of a name.

    Parameters
    ----------
    name : str
        What to call it.
    function : callable
        ``function(counts, **parameters)``; `counts` has the arrays ``p``, ``n``, ``P``, ``N``,
        ``covered``, ``uncovered``, ``total``, ``missed`` (P - p), ``rejected`` (N - n) and
        ``difference`` (pN - nP). The answer is an array, NaN where the measure is undefined.
    formula : str
        The same to be read, with c = p + n, T = P + N, u = T - c, D = pN - nP.
    range : str
        The values that it takes where P, N >= 1, with the default parameters; a round bracket
        stands at a bound that is not reached.
    limits : callable
        ``limits(P, N, **parameters)``: the least and the greatest value.
    parameters : mapping of str to float, optional
        Names and defaults. All parameters are numbers of 0 or more.
    greater_is_better : bool, default=True
        False for a loss.
    symmetric : bool, default=False
        True if a rule far worse than chance is rewarded as well.
    source : str, default=""
        Who proposed it, or where it comes from.

    Examples
    --------
    >>> from skescore.metrics import MEASURES
    >>> measure = MEASURES["m_estimate"]
    >>> measure.formula, dict(measure.parameters)
    ('(p + m P/T) / (c + m)', {'m': 2.0})
    >>> MEASURES["novelty"].bounds(50, 50)
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
        """The least and the greatest value for so many positives and negatives.

        Parameters
        ----------
        P, N : float or array-like, > 0
            All positives and negatives.
        **parameters : float or array-like
            As for :func:`rule_quality`.

        Returns
        -------
        low, high : float or ndarray of float
            Every value of a rule that covers a row lies between them; `high` may be infinity.

        Raises
        ------
        ValueError
            If an argument lies outside its domain.
        TypeError
            If something is no number, or there is no such parameter.
        """
        arrays = self._settings(parameters)
        for name, value in (("P", P), ("N", N)):
            arrays[name] = as_numbers(name, value, low=0.0, strict=True, remedy=_COUNTS_REMEDY)
            check_magnitude(name, arrays[name])
        check_shapes(**arrays)
        shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        low, high = self.limits(**arrays)
        return _filled(low, shape), _filled(high, shape)

    def _settings(self, parameters: Mapping[str, ArrayLike]) -> dict[str, Numbers]:
        """Fill in the defaults and check what was passed."""
        for name in parameters:
            if name not in self.parameters:
                raise TypeError(
                    f"The measure {self.name!r} has no parameter {name!r}. "
                    f"{did_you_mean(name, self.parameters)}"
                )
        settings = {
            name: as_numbers(name, value, low=0.0, remedy=_PARAMETER_REMEDY)
            for name, value in {**self.parameters, **parameters}.items()
        }
        for name, array in settings.items():
            check_magnitude(name, array)
        return settings


def _filled(values: ArrayLike, shape: tuple[int, ...]) -> float | Numbers:
    """Give every measure the shape of its arguments, even one that ignores some of them."""
    array = np.asarray(values, dtype=np.float64)
    return plain(array if array.shape == shape else np.broadcast_to(array, shape).copy())


@overload
def rule_quality(
    measure: str | Measure,
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
    measure: str | Measure,
    p: ArrayLike,
    n: ArrayLike,
    P: ArrayLike,
    N: ArrayLike,
    *,
    undefined: float = ...,
    **parameters: ArrayLike,
) -> float | Numbers: ...
def rule_quality(
    measure: str | Measure,
    p: ArrayLike,
    n: ArrayLike,
    P: ArrayLike,
    N: ArrayLike,
    *,
    undefined: float = np.nan,
    **parameters: ArrayLike,
) -> float | Numbers:
    """How good a rule is by one of the measures; greater is better.

    Use it to compare, to prune or to weigh rules. Counts may be sums of weights and need not be
    whole. Arguments broadcast against each other.

    Parameters
    ----------
    measure : str or Measure
        A name of :data:`MEASURES`, or a measure of your own.
    p, n : float or array-like, >= 0
        Positives and negatives that the rule covers. Positives have what the rule concludes.
    P, N : float or array-like, >= 0
        All positives and negatives, covered or not.
    undefined : float, default=NaN
        The value where a measure has none, such as the precision of a rule that covers nothing.
        0.0 is what an uninformative rule has by every measure that is built on pN - nP.
    **parameters : float or array-like, >= 0
        Parameters of the measure, such as ``beta`` of ``"f_measure"``; see
        ``MEASURES[...].parameters`` for names and defaults.

    Returns
    -------
    float or ndarray of float
        A Python float when all arguments are scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    ValueError
        If there is no such measure, a count is negative or not finite, p > P, n > N, P = N = 0, a
        parameter is negative or not finite, or the shapes do not broadcast. Counts and parameters
        other than 0 must lie between 1e-60 and 1e60, where no product of them is lost.
    TypeError
        If something is no number (booleans included), or the measure has no such parameter.

    Notes
    -----
    Formulas are in ``MEASURES[...].formula``. Where one is 0/0 but has a limit, the limit is the
    value: 0 ln 0 is 0. Differences and sums of logarithms are taken in a form that keeps them
    accurate for counts of any size: the sign of pN - nP is always right.

    RuleKit 2.1.24 answers NaN for some values that have a limit, minus infinity for the
    correlation of a rule that covers every row, and plus infinity for the weighted Laplace
    estimate without positives. All its finite values are reproduced.

    Three quotients add `smoothing` to the denominator; with 0 they have their textbook form.

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
    chosen = measure if isinstance(measure, Measure) else _named(measure)
    if not isinstance(undefined, Real) or isinstance(undefined, bool):
        raise TypeError(f"undefined must be a number, NaN included, got {undefined!r}.")
    counts = as_counts(p, n, P, N)
    settings = chosen._settings(parameters)
    check_shapes(counts=counts.p, **settings)
    shape = np.broadcast_shapes(counts.p.shape, *(array.shape for array in settings.values()))
    values = np.asarray(chosen.function(counts, **settings), dtype=np.float64)
    return _filled(np.where(np.isnan(values), float(undefined), values), shape)


def _named(name: object) -> Measure:
    known = MEASURES.get(name) if isinstance(name, str) else None
    if known is None:
        raise ValueError(f"There is no measure of rules {name!r}. {did_you_mean(name, MEASURES)}")
    return known


# --- the catalogue -------------------------------------------------------------------------------

_LAVRAC = "N. Lavrač, P. Flach, B. Zupan: rule evaluation measures, 1999"
_FLACH = "J. Fürnkranz, P. Flach: ROC 'n' rule learning, 2005"
_BRUHA = "I. Bruha: quality of decision rules, 1997"
_YAO = "Y. Yao, N. Zhong: quantitative measures associated with rules, 1999"
_TABLE = "statistics of two-by-two tables"
_RULEKIT = "catalogue of RuleKit"

_SHARE, _SIGNED = between(0, 1), between(-1, 1)

#: The measures by name; adding one is one entry.
MEASURES: Mapping[str, Measure] = MappingProxyType({measure.name: measure for measure in (
    Measure("accuracy", formulas.accuracy, "p - n", "[-N, P]", lambda P, N: (-N, P), source=_FLACH),
    Measure(
        "binary_entropy", formulas.binary_entropy, "1 - (c H(p, n) + u H(P - p, N - n)) / T",
        "[1 - H(P, N), 1]", formulas.binary_entropy_limits, symmetric=True,
        source="entropy of two counts in bits",
    ),
    Measure(
        "c1", formulas.c1, "coleman (2 + kappa) / 3", "(-2P/(3N), 1]",
        lambda P, N: (-2 * P / (3 * N), 1.0), source=_BRUHA,
    ),
    Measure(
        "c2", formulas.c2, "coleman (P + p) / (2P)", "[-P/(2N), 1]",
        lambda P, N: (-P / (2 * N), 1.0), source=_BRUHA,
    ),
    Measure(
        "cfoil", formulas.cfoil, "p log2(pT / (cP))", "(-P/(e ln 2), P log2(T/P)]",
        lambda P, N: (-P / (np.e * np.log(2)), P * np.log1p(N / P) / np.log(2)),
        source="J. R. Quinlan: FOIL, 1990",
    ),
    Measure(
        "cn2_significance", formulas.cn2_significance, "2 (p ln(pT / (cP)) + n ln(nT / (cN)))",
        "[0, 2 max(P ln(T/P), N ln(T/N))]", lambda P, N: (0.0, 2 * formulas.most_divergent(P, N)),
        symmetric=True, source="P. Clark, T. Niblett: CN2, 1989",
    ),
    Measure(
        "coleman", formulas.coleman, "D / (N c)", "[-P/N, 1]", lambda P, N: (-P / N, 1.0),
        source=_BRUHA,
    ),
    Measure(
        "correlation", formulas.correlation, "D / sqrt(P N c u)", "[-1, 1]", _SIGNED, source=_FLACH,
    ),
    Measure("coverage", formulas.sensitivity, "p / P", "[0, 1]", _SHARE, source=_TABLE),
    Measure(
        "f_bayesian_confirmation", formulas.f_bayesian_confirmation, "D / (pN + nP)", "[-1, 1]",
        _SIGNED, source="J. Kemeny, P. Oppenheim 1952",
    ),
    Measure(
        "f_measure", formulas.f_measure, "(1 + beta²) p / (beta² P + c)", "[0, 1]",
        lambda P, N, beta: (0.0, 1.0), {"beta": 2.0}, source="C. J. van Rijsbergen 1979",
    ),
    Measure("full_coverage", formulas.full_coverage, "c / T", "[0, 1]", _SHARE, source=_TABLE),
    Measure(
        "geo_rss", formulas.geo_rss, "sqrt((p/P) (1 - n/N))", "[0, 1]", _SHARE, source=_RULEKIT,
    ),
    Measure(
        "g_measure", formulas.g_measure, "p / (c + g)", "[0, P/(P + g)]",
        lambda P, N, g: (0.0, P / (P + g)), {"g": 2.0}, source=_FLACH,
    ),
    Measure(
        "information_gain", formulas.information_gain,
        "±(H(P, N) - (c H(p, n) + u H(P - p, N - n)) / T), minus if D < 0", "[-H(P, N), H(P, N)]",
        formulas.information_limits, source="entropy of two counts in bits",
    ),
    Measure(
        "j_measure", formulas.j_measure, "cn2_significance / (2T)",
        "[0, max(P ln(T/P), N ln(T/N)) / T]",
        lambda P, N: (0.0, formulas.most_divergent(P, N) / (P + N)), symmetric=True,
        source="P. Smyth, R. Goodman 1992",
    ),
    Measure(
        "kappa", formulas.kappa, "2D / (Nc + Pu)", "[-2PN/(P² + N²), 1]",
        lambda P, N: (-2 * P * N / (P**2 + N**2), 1.0), source="J. Cohen 1960",
    ),
    Measure(
        "klosgen", formulas.klosgen, "(c/T)^omega (p/c - P/T)", "[-PN/T², PN/T²]",
        formulas.klosgen_limits, {"omega": 1.0}, source="W. Klösgen: Explora, 1996",
    ),
    Measure(
        "laplace", formulas.laplace, "(p + 1) / (c + 2)", "[1/(N + 2), (P + 1)/(P + 2)]",
        lambda P, N: (1 / (N + 2), (P + 1) / (P + 2)), source="P. Clark, R. Boswell 1991",
    ),
    Measure(
        "lift", formulas.lift, "(p/c) / (P/T)", "[0, T/P]", lambda P, N: (0.0, (P + N) / P),
        source="S. Brin et al. 1997",
    ),
    Measure(
        "logical_sufficiency", formulas.logical_sufficiency, "pN / (nP + smoothing)", "[0, PN]",
        formulas.product_limits, {"smoothing": 1.0}, source="R. Duda et al.: PROSPECTOR, 1979",
    ),
    Measure(
        "m_estimate", formulas.m_estimate, "(p + m P/T) / (c + m)",
        "[(mP/T)/(N + m), (P + mP/T)/(P + m)]", formulas.m_estimate_limits, {"m": 2.0},
        source="B. Cestnik 1990",
    ),
    Measure(
        "mutual_support", formulas.mutual_support, "p / (n + P)", "[0, 1]", _SHARE, source=_YAO,
    ),
    Measure(
        "novelty", formulas.novelty, "p/T - P c/T²", "[-PN/T², PN/T²]", formulas.novelty_limits,
        source=_LAVRAC,
    ),
    Measure(
        "odds_ratio", formulas.odds_ratio, "p (N - n) / (n (P - p) + smoothing)", "[0, PN]",
        formulas.product_limits, {"smoothing": 1.0}, source=_TABLE,
    ),
    Measure(
        "one_way_support", formulas.one_way_support, "(p/c) ln(lift)", "[-P/(eT), ln(T/P)]",
        lambda P, N: (-P / (np.e * (P + N)), np.log1p(N / P)), source=_YAO,
    ),
    Measure(
        "pawlak_dependency_factor", formulas.pawlak_dependency_factor, "D / (pT + Pc)",
        "[-1, N/(T + P)]", lambda P, N: (-1.0, N / (P + N + P)), source="Z. Pawlak 2002",
    ),
    Measure(
        "q2", formulas.q2, "(p/P - n/N) (1 - n/N)", "[-1/4, 1]", between(-0.25, 1), source=_RULEKIT,
    ),
    Measure("precision", formulas.precision, "p / c", "[0, 1]", _SHARE, source=_FLACH),
    Measure(
        "relative_risk", formulas.relative_risk, "(p/c) u / (P - p + smoothing)", "[0, N]",
        formulas.relative_risk_limits, {"smoothing": 1.0}, source=_TABLE,
    ),
    Measure("ripper", formulas.ripper, "(p - n) / c", "[-1, 1]", _SIGNED, source="W. Cohen 1995"),
    Measure(
        "rule_interest", formulas.rule_interest, "D / T", "[-PN/T, PN/T]",
        lambda P, N: (-P * N / (P + N), P * N / (P + N)), source="G. Piatetsky-Shapiro 1991",
    ),
    Measure("rss", formulas.rss, "p/P - n/N", "[-1, 1]", _SIGNED, source=_RULEKIT),
    Measure(
        "s_bayesian", formulas.s_bayesian, "p/c - (P - p)/u", "[-1, 1]", _SIGNED,
        source="D. Christensen 1999",
    ),
    Measure("sensitivity", formulas.sensitivity, "p / P", "[0, 1]", _SHARE, source=_TABLE),
    Measure("specificity", formulas.specificity, "(N - n) / N", "[0, 1]", _SHARE, source=_TABLE),
    Measure(
        "two_way_support", formulas.two_way_support, "(p/T) ln(lift)", "(-P/(eT), (P/T) ln(T/P)]",
        lambda P, N: (-P / (np.e * (P + N)), P * np.log1p(N / P) / (P + N)), source=_YAO,
    ),
    Measure(
        "weighted_laplace", formulas.weighted_laplace, "(p + 1) T / ((c + 2) P)",
        "[T/((N + 2)P), (P + 1)T/((P + 2)P)]",
        lambda P, N: ((P + N) / ((N + 2) * P), (P + 1) * (P + N) / ((P + 2) * P)), source=_RULEKIT,
    ),
    Measure(
        "weighted_relative_accuracy", formulas.novelty, "(c/T) (p/c - P/T)", "[-PN/T², PN/T²]",
        formulas.novelty_limits, source=_LAVRAC,
    ),
    Measure(
        "yails", formulas.yails, "(1/2 + prec/4) prec + (1/2 - prec/4) p/P, prec = p/c", "[0, 1]",
        _SHARE, source="L. Torgo 1993",
    ),
)})  # fmt: skip
