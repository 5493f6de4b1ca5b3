"""Scores of rule sets as scikit-learn scorers.

Every scorer here is called as ``scorer(estimator, X, y)`` with a fitted extractor, or with anything
that holds one: a Pipeline, a search, a TransformedTargetRegressor. It goes into
``GridSearchCV(scoring=...)``, into a dict of scorers, into ``cross_validate``, and takes
``sample_weight`` with and without metadata routing. Scikit-learn's decision trees and bare
:class:`~skescore.rules.RuleSet` objects are scored as well.

A scorer needs the fitted estimator, so the tools of scikit-learn that hand over nothing but
predictions (``make_scorer``, ``TunedThresholdClassifierCV``) cannot use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any

from skescore._text import did_you_mean
from skescore.metrics._knowledge import fire_score, ice_score
from skescore.metrics._prediction import METRICS, UNCOVERED
from skescore.metrics._rule_quality import MEASURES
from skescore.scorers._evaluation import COMPLETENESSES, REFERENCES, SIZES, Size
from skescore.scorers._predictions import (
    PERFORMANCE_SCORERS,
    PerformanceScorer,
    make_performance_scorer,
)
from skescore.scorers._rules import (
    AGGREGATES,
    RuleScorer,
    ice_of,
    knowledge_of,
    make_rule_scorer,
    negated_fire_of,
    negated_q_of,
)

__all__ = [
    "PERFORMANCE_SCORERS",
    "SCORERS",
    "PerformanceScorer",
    "RuleScorer",
    "get_rule_scorer",
    "ice",
    "knowledge",
    "make_fire_scorer",
    "make_ice_scorer",
    "make_knowledge_scorer",
    "make_performance_scorer",
    "make_q_scorer",
    "make_rule_scorer",
    "neg_fire",
    "neg_q",
]


def _check(name: str, value: Any, choices: tuple[str, ...], callable_too: bool = True) -> None:
    if value in choices or (callable_too and callable(value)):
        return
    more = " or a callable" if callable_too else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}{more}, got {value!r}.")


def _check_measure(name: str, value: Any) -> None:
    """Name an unknown measure now; whether it suits the task shows when there are rules."""
    if value == "auto" or callable(value):
        return
    metric = METRICS.get(value.removeprefix("neg_")) if isinstance(value, str) else None
    if metric is None:
        raise ValueError(
            f"{name} must be 'auto', the name of a measure or a callable, got {value!r}. "
            f"{did_you_mean(value, METRICS)}"
        )
    if name == "performance" and not metric.greater_is_better:
        better = [key for key, known in METRICS.items() if known.greater_is_better]
        raise ValueError(
            f"performance must have the best value 1, but {value!r} is a loss. Choose one of "
            f"{', '.join(better)}, or a callable."
        )


def _check_shared(reference: str, uncovered: str, size: Any, undefined: Any) -> None:
    _check("reference", reference, REFERENCES, callable_too=False)
    _check("uncovered", uncovered, UNCOVERED, callable_too=False)
    _check("size", size, SIZES)
    if not isinstance(undefined, Real) or isinstance(undefined, bool):
        raise TypeError(f"undefined must be a number, NaN included, got {undefined!r}.")


def make_fire_scorer(
    psi: float = 1.0,
    *,
    loss: str | Callable[..., float] = "auto",
    reference: str = "data",
    uncovered: str = "penalise",
    size: Size = "rules",
    undefined: float = math.nan,
) -> RuleScorer:
    """Make a scorer of the negated FiRe score: few rules, few errors.

    Parameters
    ----------
    psi : float, default=1.0
        So many rules count as one; larger values care less about their number.
    loss : str or callable, default="auto"
        The predictive loss: 1 - accuracy (classification) and the mean absolute error
        (regression) by default; else a name of :data:`skescore.metrics.METRICS` (a performance
        counts as 1 less it) or ``loss(y_true, y_pred)``.
    reference : {"data", "black_box"}, default="data"
        Compare with y, or with the black box's own answers (fidelity).
    uncovered : {"penalise", "ignore"}, default="penalise"
        Rows without a rule count as wrong (classification) or as answered by the mean
        (regression), or are left out. FiRe does not know completeness, so leaving them out would
        call a list perfect that answers one easy row.
    size : {"rules", "conditions", "literals"} or callable, default="rules"
        What is counted as size; a callable gets the RuleSet.
    undefined : float, default=NaN
        The score where there are no rules or no rows left; NaN comes with an
        ``UndefinedMetricWarning``.

    Returns
    -------
    RuleScorer
        At most 0, greater is better.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
    ECAI 2023, equation 2. doi:10.3233/FAIA230496

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> X, y = load_iris(return_X_y=True)
    >>> search = GridSearchCV(
    ...     CARTExtractor(KNeighborsClassifier(9), random_state=0),
    ...     {"max_leaf_nodes": [3, 5, 8]},
    ...     scoring=make_fire_scorer(psi=1),
    ... )
    >>> search.fit(X, y).best_params_
    {'max_leaf_nodes': 3}
    """
    fire_score(0.0, 1, psi=psi)  # names a bad psi now rather than in the middle of a search
    _check_measure("loss", loss)
    _check_shared(reference, uncovered, size, undefined)
    settings = {
        "psi": psi, "loss": loss, "uncovered": uncovered, "size": size, "undefined": undefined,
    }  # fmt: skip
    return RuleScorer("neg_fire", negated_fire_of, reference, settings)


def make_q_scorer(
    *,
    loss: str | Callable[..., float] = "auto",
    completeness: str | Callable[..., float] = "volume",
    reference: str = "data",
    uncovered: str = "ignore",
    size: Size = "rules",
    undefined: float = math.nan,
) -> RuleScorer:
    """Make a scorer of the negated Q score: few rules, few errors, complete.

    Parameters
    ----------
    loss : str or callable, default="auto"
        The predictive loss: 1 - weighted F1 (classification) and the mean absolute error
        (regression) by default; else as in :func:`make_fire_scorer`.
    completeness : {"volume", "instances"} or callable, default="volume"
        Share of the domain's volume or of the rows; a callable gets the RuleSet and the rows.
    reference : {"data", "black_box"}, default="data"
        Compare with y, or with the black box's own answers (fidelity).
    uncovered : {"ignore", "penalise"}, default="ignore"
        Rows without a rule are left out, as completeness accounts for them, or penalised.
    size : {"rules", "conditions", "literals"} or callable, default="rules"
        What is counted as size; a callable gets the RuleSet.
    undefined : float, default=NaN
        The score where there are no rules or no rows left; NaN comes with an
        ``UndefinedMetricWarning``.

    Returns
    -------
    RuleScorer
        At most 0, greater is better.

    References
    ----------
    F. Sabbatini, R. Calegari: On the evaluation of the symbolic knowledge extracted from black
    boxes. AI and Ethics 4, 2024. doi:10.1007/s43681-023-00406-1

    Examples
    --------
    >>> make_q_scorer(completeness="instances").name
    'neg_q'
    """
    _check_measure("loss", loss)
    _check_shared(reference, uncovered, size, undefined)
    _check("completeness", completeness, COMPLETENESSES)
    settings = {
        "loss": loss, "completeness": completeness, "uncovered": uncovered, "size": size,
        "undefined": undefined,
    }  # fmt: skip
    return RuleScorer("neg_q", negated_q_of, reference, settings)


def make_ice_scorer(
    phi: float = 1.0,
    rho: float = 1.0,
    *,
    performance: str | Callable[..., float] = "auto",
    completeness: str | Callable[..., float] = "volume",
    reference: str = "data",
    uncovered: str = "ignore",
    size: Size = "rules",
    undefined: float = math.nan,
) -> RuleScorer:
    """Make a scorer of the ICE score: good predictions, few rules, complete.

    Parameters
    ----------
    phi, rho : float, default=1.0
        Importance of the predictions and of the size.
    performance : str or callable, default="auto"
        Weighted F1 (classification) and R² (regression) by default; else a performance of
        :data:`skescore.metrics.METRICS` or ``performance(y_true, y_pred)`` with best value 1.
    completeness : {"volume", "instances"} or callable, default="volume"
        Share of the domain's volume or of the rows; a callable gets the RuleSet and the rows.
    reference : {"data", "black_box"}, default="data"
        Compare with y, or with the black box's own answers (fidelity).
    uncovered : {"ignore", "penalise"}, default="ignore"
        Rows without a rule are left out, as completeness accounts for them, or penalised.
    size : {"rules", "conditions", "literals"} or callable, default="rules"
        What is counted as size; a callable gets the RuleSet.
    undefined : float, default=NaN
        The score where there are no rules or no rows left; NaN comes with an
        ``UndefinedMetricWarning``.

    Returns
    -------
    RuleScorer
        From 0 to less than 1, greater is better.

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024, equation 2.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> X, y = load_wine(return_X_y=True)
    >>> black_box = DecisionTreeClassifier(random_state=0)
    >>> extractor = CARTExtractor(black_box, max_leaf_nodes=4, random_state=0).fit(X, y)
    >>> round(make_ice_scorer()(extractor, X, y), 3)
    0.968
    """
    ice_score(1.0, 1, 1.0, phi=phi, rho=rho)  # names a bad weight now
    _check_measure("performance", performance)
    _check_shared(reference, uncovered, size, undefined)
    _check("completeness", completeness, COMPLETENESSES)
    settings = {
        "phi": phi, "rho": rho, "performance": performance, "completeness": completeness,
        "uncovered": uncovered, "size": size, "undefined": undefined,
    }  # fmt: skip
    return RuleScorer("ice", ice_of, reference, settings)


def make_knowledge_scorer(
    *,
    psi: float = 1.0,
    phi: float = 1.0,
    rho: float = 1.0,
    loss: str | Callable[..., float] = "auto",
    performance: str | Callable[..., float] = "auto",
    completeness: str | Callable[..., float] = "volume",
    reference: str = "data",
    size: Size = "rules",
    undefined: float = math.nan,
) -> RuleScorer:
    """Make a scorer that gives all scores and their parts at once, from one prediction.

    Use it as ``GridSearchCV(scoring=..., refit="ice")`` or in ``cross_validate``.

    Parameters
    ----------
    psi, phi, rho : float, default=1.0
        Weights of FiRe and ICE.
    loss, performance : str or callable, default="auto"
        The loss of FiRe and Q, and the performance of ICE; each score's own default by default.
    completeness : {"volume", "instances"} or callable, default="volume"
        The completeness of Q and ICE.
    reference : {"data", "black_box"}, default="data"
        Compare with y, or with the black box's own answers (fidelity).
    size : {"rules", "conditions", "literals"} or callable, default="rules"
        What is counted as size.
    undefined : float, default=NaN
        The scores where there are no rules or no rows left.

    Returns
    -------
    RuleScorer
        Gives a dict: ``ice``, ``neg_fire``, ``neg_q`` (greater is better), ``performance`` (that
        of ICE, on covered rows), ``loss`` (that of FiRe, rows without a rule penalised),
        ``loss_q`` (that of Q, on covered rows), ``n_rules``, ``completeness_volume`` and
        ``completeness_instances``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    >>> {name: round(value, 3) for name, value in make_knowledge_scorer()(tree, X, y).items()}
    {'ice': 0.976, 'neg_fire': -0.127, 'neg_q': -0.12, 'performance': 0.96, 'loss': 0.04,
     'loss_q': 0.04, 'n_rules': 3.0, 'completeness_volume': 1.0, 'completeness_instances': 1.0}
    """
    fire = make_fire_scorer(psi, loss=loss, size=size, undefined=undefined)
    q = make_q_scorer(loss=loss, completeness=completeness, size=size, undefined=undefined)
    ice = make_ice_scorer(
        phi, rho, performance=performance, completeness=completeness, size=size, undefined=undefined
    )
    _check("reference", reference, REFERENCES, callable_too=False)
    settings = {"fire": fire.settings, "q": q.settings, "ice": ice.settings}
    return RuleScorer("knowledge", knowledge_of, reference, settings)


#: Ready-made scorers at their papers' settings.
neg_fire = make_fire_scorer()
neg_q = make_q_scorer()
ice = make_ice_scorer()
knowledge = make_knowledge_scorer()

#: Names that searches and the command line understand.
SCORERS: dict[str, RuleScorer] = {
    "ice": ice, "neg_fire": neg_fire, "neg_q": neg_q, "knowledge": knowledge,
}  # fmt: skip


def get_rule_scorer(scoring: Any) -> Any:
    """Turn a name into a scorer; a callable is handed back.

    Parameters
    ----------
    scoring : str or callable
        ``"ice"``, ``"fire"`` or ``"neg_fire"``, ``"q"`` or ``"neg_q"``, ``"mean_rule_c2"`` and
        the like with the aggregates and measures of :func:`make_rule_scorer`, a measure of
        predictions as in :func:`make_performance_scorer`, with or without the ``neg_`` of a loss,
        or a scorer.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, greater is better.

    Raises
    ------
    ValueError
        If there is no such name.
    TypeError
        If it is neither a name nor a callable.

    Examples
    --------
    >>> get_rule_scorer("fire") is neg_fire
    True
    >>> get_rule_scorer("min_rule_precision").settings["aggregate"]
    'min'
    >>> get_rule_scorer("relative_error").name
    'neg_relative_error'
    """
    if callable(scoring):
        return scoring
    if not isinstance(scoring, str):
        raise TypeError(
            f"scoring must be a name or a scorer(estimator, X, y), got {scoring!r}. Known names: "
            f"{', '.join(SCORERS)}."
        )
    how, _, measure = scoring.partition("_rule_")
    if measure and how in (*AGGREGATES, "weighted"):
        return make_rule_scorer(measure, aggregate=how)
    known: dict[str, Any] = {**PERFORMANCE_SCORERS, **SCORERS}
    scorer = known.get(scoring) or known.get(f"neg_{scoring}")
    if scorer is None:
        hint = did_you_mean(scoring, known)
        if scoring in MEASURES:
            hint = f"As a measure of single rules it is called 'mean_rule_{scoring}'."
        raise ValueError(f"There is no score {scoring!r}. {hint}")
    return scorer
