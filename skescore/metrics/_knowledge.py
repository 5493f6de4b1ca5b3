"""The scores FiRe, Q_s and ICE as functions of measured numbers.

Each combines the quality of the predictions and the number of rules, Q_s and ICE also the share of
the feature space that the rules cover. :data:`skescore.scorers.SCORE_SPECS` declares the formulas.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore._scores import (
    ICE_PERFORMANCE,
    ICE_READABILITY,
    SCORE_SPECS,
    evaluate_formula,
    find_score,
)

__all__ = [
    "fire_score",
    "ice_performance",
    "ice_readability",
    "ice_score",
    "q_score",
    "score_slopes",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def fire_score(loss: float, n_rules: float, *, psi: float = ...) -> float: ...
@overload
def fire_score(
    loss: ArrayLike, n_rules: ArrayLike, *, psi: ArrayLike = ...
) -> float | NDArray[np.float64]: ...
def fire_score(
    loss: ArrayLike, n_rules: ArrayLike, *, psi: ArrayLike = 1.0
) -> float | NDArray[np.float64]:
    r"""Compute FiRe: loss times a function of the number of rules; 0 is perfect.

    Use it to rank rule sets by errors and readability if all of them predict the same rows, because
    it ignores completeness. Smaller is better. Arguments broadcast against each other.

    Parameters
    ----------
    loss : float or array-like, >= 0
        Predictive loss: 1 - accuracy for classification, mean absolute error for regression, or
        any other error. The score has the same unit.
    n_rules : float or array-like, >= 1
        Number of rules, the readability loss; an average over folds may be fractional.
    psi : float or array-like, > 0, default=1.0
        Length of a step: up to `psi` rules are on the first step. Larger values allow more rules.

    Returns
    -------
    float or ndarray of float
        A Python float if all arguments are scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is NaN, infinite or outside its domain, or the shapes do not broadcast.
    TypeError
        If an argument is not numeric (booleans included).

    Notes
    -----
    With loss :math:`p` and :math:`r` rules,

    .. math:: FiRe(\psi, p, r) = p \lceil r / \psi \rceil r^{0.05}

    The last factor separates rule sets on the same step. A quotient that is an integer up to
    rounding counts as that integer: 21 rules at `psi=0.7` are 30 steps, although ``21 / 0.7`` is
    30.000000000000004 in floats. A score above the largest float is `inf`.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
    ECAI 2023, doi:10.3233/FAIA230496. Equations 1 and 2.

    Examples
    --------
    >>> from skescore.metrics import fire_score
    >>> round(fire_score(12.0, 6), 1)
    78.7
    >>> round(fire_score(1.0, 4, psi=6), 2)
    1.07
    >>> fire_score([0.5, 0.25], 1).tolist()
    [0.5, 0.25]
    """
    try:
        return _score("fire", loss, n_rules, psi=psi)
    except (TypeError, ValueError) as error:
        if np.ndim(loss) != 1 or np.ndim(n_rules) != 1:
            raise
        raise type(error)(
            f"{error} If these are labels and predictions that a scorer passes: for GridSearchCV, "
            "write scoring=skescore.scorers.make_fire_scorer() instead of make_scorer(fire_score)."
        ) from None


def _explain_missing_completeness(score: _Function) -> _Function:
    """Let `score` raise an error that names the scorer to use if completeness is missing."""
    name = score.__name__

    @functools.wraps(score)
    def checked(*args: Any, **options: Any) -> Any:
        if len(args) == 2 and "completeness" not in options:
            raise TypeError(
                f"{name}() needs completeness, the share of the space that the rules cover, which "
                "a scorer of labels and predictions does not have. For GridSearchCV, write "
                f"scoring=skescore.scorers.make_{name.removesuffix('_score')}_scorer() instead of "
                f"make_scorer({name})."
            )
        return score(*args, **options)

    return cast(_Function, checked)


@overload
def q_score(loss: float, n_rules: float, completeness: float) -> float: ...
@overload
def q_score(
    loss: ArrayLike, n_rules: ArrayLike, completeness: ArrayLike
) -> float | NDArray[np.float64]: ...
@_explain_missing_completeness
def q_score(
    loss: ArrayLike, n_rules: ArrayLike, completeness: ArrayLike
) -> float | NDArray[np.float64]:
    """Compute Q_s: loss times number of rules times incompleteness; 0 is perfect.

    Use it when completeness matters and no weights should be chosen. Smaller is better. Arguments
    broadcast against each other.

    Parameters
    ----------
    loss : float or array-like, >= 0
        Predictive loss: 1 - F1, mean absolute error, or any other error.
    n_rules : float or array-like, > 0
        Readability loss: number of rules.
    completeness : float or array-like, from 0 to 1
        Share of the feature space, or of the rows, that the rules cover.

    Returns
    -------
    float or ndarray of float
        A Python float when all arguments are scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is NaN, infinite or outside its domain, or the shapes do not broadcast.
    TypeError
        If an argument is not numeric (booleans included), or `completeness` is missing, as in a
        scorer made by :func:`sklearn.metrics.make_scorer`.

    Notes
    -----
    With loss :math:`p`, :math:`r` rules and completeness :math:`c`, :math:`Q_s = p r (2 - c)`.
    The completeness loss is :math:`2 - c` because with :math:`1 - c` every complete rule set would
    be perfect, whatever its errors. A score above the largest float is `inf`.

    References
    ----------
    F. Sabbatini, R. Calegari: On the evaluation of the symbolic knowledge extracted from black
    boxes. AI and Ethics 4, 2024, doi:10.1007/s43681-023-00406-1.

    Examples
    --------
    >>> from skescore.metrics import q_score
    >>> q_score(0.5, 4, 0.75)
    2.5
    """
    return _score("q", loss, n_rules, completeness)


@overload
def ice_performance(performance: float, *, phi: float = ...) -> float: ...
@overload
def ice_performance(
    performance: ArrayLike, *, phi: ArrayLike = ...
) -> float | NDArray[np.float64]: ...
def ice_performance(performance: ArrayLike, *, phi: ArrayLike = 1.0) -> float | NDArray[np.float64]:
    r"""Compute the predictive part of ICE, a sigmoid of the performance; greater is better.

    Use it with `ice_readability` to see which part lowers an ICE score most.

    Parameters
    ----------
    performance : float or array-like, <= 1
        A score whose best value is 1: F1, accuracy, R2. Minus infinity is accepted and gives 0.
    phi : float or array-like, > 0, default=1.0
        Importance of predictive performance. Larger values penalize low performance more.

    Returns
    -------
    float or ndarray of float
        From 0 to :math:`1 / (1 + e^{-5})`, about 0.9933.

    Raises
    ------
    ValueError
        If an argument is NaN or outside its domain, or the shapes do not broadcast.
    TypeError
        If an argument is not numeric (booleans included).

    Notes
    -----
    .. math:: P(p, \varphi) = \frac{1}{1 + e^{5 (\varphi (1 - p) - 1)}}

    It is one half at :math:`p = 1 - 1 / \varphi`. The paper gives 1 as the limit for
    :math:`p \to 1` (equation 8) and :math:`\varphi \to 0` (equation 10), but by its own formula
    both are :math:`1 / (1 + e^{-5})`, about 0.9933. We keep the formula of the paper, and with it
    the published scores.

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024. Equations 3, 4 and 7 to 15.

    Examples
    --------
    >>> from skescore.metrics import ice_performance
    >>> round(ice_performance(1.0), 4)
    0.9933
    >>> ice_performance(0.5, phi=2.0)
    0.5
    """
    arguments = {"p": ("performance", performance), "phi": ("phi", phi)}
    return evaluate_formula(ICE_PERFORMANCE, arguments)


@overload
def ice_readability(n_rules: float, *, rho: float = ...) -> float: ...
@overload
def ice_readability(n_rules: ArrayLike, *, rho: ArrayLike = ...) -> float | NDArray[np.float64]: ...
def ice_readability(n_rules: ArrayLike, *, rho: ArrayLike = 1.0) -> float | NDArray[np.float64]:
    r"""Compute the readability part of ICE, a sigmoid that falls with the number of rules.

    Use it with `ice_performance` to see which part lowers an ICE score most. Greater is better.

    Parameters
    ----------
    n_rules : float or array-like, > 0
        Number of rules; an average over folds may be fractional.
    rho : float or array-like, > 0, default=1.0
        Importance of readability. Larger values penalize every further rule more.

    Returns
    -------
    float or ndarray of float
        From 0 to :math:`1 / (1 + e^{-5})`, about 0.9933.

    Raises
    ------
    ValueError
        If an argument is NaN, infinite or outside its domain, or the shapes do not broadcast.
    TypeError
        If an argument is not numeric (booleans included).

    Notes
    -----
    .. math:: R(r, \rho) = \frac{1}{1 + e^{0.3 \rho r - 5}}

    It is one half at :math:`r = 5 / (0.3 \rho)`, between 16 and 17 rules for `rho=1`. The paper
    gives 1 as the limit for :math:`r \to 0` (equation 17) and :math:`\rho \to 0` (equation 19), but
    by its own formula both are :math:`1 / (1 + e^{-5})`.

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024. Equations 5, 6 and 16 to 23.

    Examples
    --------
    >>> from skescore.metrics import ice_readability
    >>> [round(value, 3) for value in ice_readability([3, 10, 30]).tolist()]
    [0.984, 0.881, 0.018]
    """
    arguments = {"r": ("n_rules", n_rules), "rho": ("rho", rho)}
    return evaluate_formula(ICE_READABILITY, arguments)


@overload
def ice_score(
    performance: float,
    n_rules: float,
    completeness: float,
    *,
    phi: float = ...,
    rho: float = ...,
) -> float: ...
@overload
def ice_score(
    performance: ArrayLike,
    n_rules: ArrayLike,
    completeness: ArrayLike,
    *,
    phi: ArrayLike = ...,
    rho: ArrayLike = ...,
) -> float | NDArray[np.float64]: ...
@_explain_missing_completeness
def ice_score(
    performance: ArrayLike,
    n_rules: ArrayLike,
    completeness: ArrayLike,
    *,
    phi: ArrayLike = 1.0,
    rho: ArrayLike = 1.0,
) -> float | NDArray[np.float64]:
    r"""Compute ICE: performance, readability and completeness in one score between 0 and 1.

    Use it when all three matter and the first two should be weighted. Greater is better. Arguments
    broadcast against each other.

    Parameters
    ----------
    performance : float or array-like, <= 1
        A score whose best value is 1: F1, accuracy, R2. Minus infinity is accepted and gives 0.
    n_rules : float or array-like, > 0
        Number of rules; an average over folds may be fractional.
    completeness : float or array-like, from 0 to 1
        Share of the feature space, or of the rows, that the rules cover.
    phi : float or array-like, > 0, default=1.0
        Importance of predictive performance; above 1 it counts more than completeness.
    rho : float or array-like, > 0, default=1.0
        Importance of readability; above 1 it counts more than completeness.

    Returns
    -------
    float or ndarray of float
        A Python float if all arguments are scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is NaN, infinite (except `performance=-inf`) or outside its domain, or the
        shapes do not broadcast.
    TypeError
        If an argument is not numeric (booleans included), or `completeness` is missing, as in a
        scorer made by :func:`sklearn.metrics.make_scorer`.

    See Also
    --------
    ice_performance : The part that depends on `performance` and `phi`.
    ice_readability : The part that depends on `n_rules` and `rho`.

    Notes
    -----
    .. math:: ICE(p, r, c, \varphi, \rho) = P(p, \varphi) \cdot R(r, \rho) \cdot c

    Neither sigmoid reaches 1: the least upper bound of the score is :math:`(1 + e^{-5})^{-2}`,
    about 0.9867, not 1 as in equation 28 of the paper. One perfect rule over the whole space scores
    0.984 with neutral weights. A performance of minus infinity, which R² can approach, gives the
    limit 0 (equation 7). An infinite `n_rules` is rejected as a mistake, because large counts
    already yield the limit 0 (equation 16).

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024. Equations 1 to 28.

    Examples
    --------
    >>> from skescore.metrics import ice_score
    >>> round(ice_score(0.95, 4, 1.0), 3)
    0.97
    >>> round(ice_score(0.95, 4, 1.0, rho=3.0), 3)
    0.795
    """
    return _score("ice", performance, n_rules, completeness, phi=phi, rho=rho)


def _score(
    name: str,
    prediction: ArrayLike,
    n_rules: ArrayLike,
    completeness: ArrayLike | None = None,
    **weights: ArrayLike,
) -> Any:
    return SCORE_SPECS[name].value(prediction, n_rules, completeness, weights)


def score_slopes(
    score: str,
    prediction: ArrayLike,
    n_rules: ArrayLike,
    completeness: ArrayLike | None = None,
    **weights: ArrayLike,
) -> dict[str, float | NDArray[np.float64]]:
    r"""Compute the partial derivatives of a score.

    Use it to see whether one point of accuracy or one rule changes the score more.

    Parameters
    ----------
    score : str
        Name of a score in :data:`skescore.scorers.SCORE_SPECS`, such as ``"fire"`` or ``"ice"``.
    prediction : float or array-like
        The loss (FiRe, Q) or the performance (ICE).
    n_rules : float or array-like
        Number of rules.
    completeness : float or array-like, optional
        Share of the space that the rules cover, for scores that use it.
    **weights : float or array-like, default=1.0
        Weights of the score: `psi` of FiRe, `phi` and `rho` of ICE.

    Returns
    -------
    dict of str to float or ndarray of float
        Partial derivatives by argument: ``"loss"`` or ``"performance"``, ``"n_rules"``,
        ``"completeness"`` and the weights. FiRe's derivatives by `n_rules` and `psi` are NaN where
        their quotient is an integer, because the number of steps jumps there.

    Raises
    ------
    ValueError, TypeError
        If the score or a weight is unknown, or an argument lies outside its domain.

    Notes
    -----
    The derivatives of FiRe are equations 6 and 7 of its paper. ICE is the product :math:`P R c`, so
    its derivative by the performance is :math:`R c \, \partial P / \partial p`, with equations 11
    and 12 of its paper for P, and 20 and 21 for R.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
    ECAI 2023, doi:10.3233/FAIA230496. Equations 6 and 7.
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024. Equations 11, 12, 20 and 21.

    Examples
    --------
    >>> from skescore.metrics import score_slopes
    >>> slopes = score_slopes("fire", 0.1, 5, psi=2)
    >>> round(slopes["loss"], 2), round(slopes["n_rules"], 4)
    (3.25, 0.0033)
    >>> {name: round(slope, 3) for name, slope in score_slopes("ice", 0.9, 10, 1.0).items()}
    {'performance': 0.048, 'n_rules': -0.031, 'completeness': 0.871, 'phi': -0.005, 'rho': -0.312}
    """
    spec = find_score(score)
    neutral = spec.check_weights(dict.fromkeys(weights, 1.0))  # rejects unknown weights
    return spec.slopes(prediction, n_rules, completeness, neutral | weights)
