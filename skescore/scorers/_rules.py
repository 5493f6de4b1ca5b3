"""Scores of rule sets as scikit-learn scorers.

Scorers are called as ``scorer(estimator, X, y)`` with a fitted extractor, an estimator that
contains one (Pipeline, search, TransformedTargetRegressor), a decision tree of scikit-learn, or a
:class:`~skescore.rules.RuleSet`. Use them in ``GridSearchCV(scoring=...)``, in a dict of scorers or
in ``cross_validate``. They accept ``sample_weight`` with and without metadata routing.

A scorer requires the fitted estimator, so tools of scikit-learn that provide only predictions
(``make_scorer``, ``TunedThresholdClassifierCV``) cannot use it.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from skescore._quantities import measured_quantities
from skescore._scores import (
    COMPLETENESSES,
    SCORE_SPECS,
    UNCOVERED,
    ScoreSpec,
    all_weights,
    find_score,
)
from skescore._text import did_you_mean
from skescore._validation import check_choice, check_flag, check_number_or_nan
from skescore.metrics import (
    PERFORMANCE_METRICS,
    PREDICTION_METRICS,
    RULE_MEASURES,
    RuleMeasure,
    confusion,
    rule_quality,
)
from skescore.scorers._evaluation import REFERENCES, SIZES, RuleEvaluation, Size, evaluate_rules
from skescore.scorers._predictions import PERFORMANCE_SCORERS, FidelityScorer
from skescore.scorers._routing import AcceptsWeights
from skescore.scorers._set_measures import (
    SET_MEASURES,
    SetMeasure,
    find_set_measure,
    named_set_measure,
)

__all__ = [
    "SCORERS",
    "SET_SCORERS",
    "RuleScorer",
    "get_rule_scorer",
    "ice",
    "knowledge",
    "make_fire_scorer",
    "make_ice_scorer",
    "make_knowledge_scorer",
    "make_q_scorer",
    "make_rule_scorer",
    "make_score_scorer",
    "make_set_scorer",
    "neg_fire",
    "neg_q",
    "register_score",
]

#: Aggregates of the values of all rules; "weighted" is the mean weighted by rows.
AGGREGATES: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": np.mean,
    "min": np.min,
    "median": np.median,
    "max": np.max,
}
#: Options that make a warning point to the line of the caller, from Python 3.12 on.
_AT_CALLER: dict[str, Any] = {"stacklevel": 2}
if sys.version_info >= (3, 12):
    _AT_CALLER = {"skip_file_prefixes": (str(Path(__file__).parents[1]),)}


class RuleScorer(AcceptsWeights):
    """A score of rule sets as a scorer for scikit-learn's searches and Optuna objectives.

    Created by :func:`make_score_scorer`, :func:`make_knowledge_scorer` and
    :func:`make_rule_scorer`.

    Parameters
    ----------
    name : str
        Name in messages.
    measure : ScoreSpec or callable
        Declaration of the score, or ``measure(evaluation, **settings)``, which returns a float or a
        dict of floats for which greater is better.
    reference : {"data", "black_box"}
        Whether to compare with y, or with the black box's predictions.
    settings : dict
        Weights and other settings of the measure.
    """

    def __init__(
        self,
        name: str,
        measure: ScoreSpec | Callable[..., Any],
        reference: str,
        settings: dict[str, Any],
    ) -> None:
        self.name = name
        self.measure = measure
        self.reference = reference
        self.settings = settings
        self._requests: dict[str, Any] = {}

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Score a fitted estimator on rows."""
        evaluation = evaluate_rules(
            estimator, X, y, reference=self.reference, sample_weight=sample_weight
        )
        return self.score(evaluation)

    def score(self, evaluation: RuleEvaluation) -> Any:
        """Score an existing evaluation."""
        if isinstance(self.measure, ScoreSpec):
            return _score(evaluation, self.measure, self.settings)
        return self.measure(evaluation, **self.settings)

    @property
    def spec(self) -> ScoreSpec | None:
        """Declaration of the score; None unless the scorer returns a single score."""
        return self.measure if isinstance(self.measure, ScoreSpec) else None

    @property
    def gives_dict(self) -> bool:
        """Whether the scorer returns a dict of several named scores."""
        return isinstance(self.measure, _Knowledge)

    @property
    def specs(self) -> tuple[ScoreSpec, ...]:
        """Declarations of all scores that the scorer returns."""
        if isinstance(self.measure, _Knowledge):
            return self.measure.specs
        return () if self.spec is None else (self.spec,)

    def __repr__(self) -> str:
        arguments = [f"{k}={_setting_text(v)}" for k, v in self.settings.items()]
        return f"{self.name}({', '.join([*arguments, f'reference={self.reference!r}'])})"


def _setting_text(value: Any) -> str:
    # A function's repr contains its address, so messages would differ between runs.
    if isinstance(value, RuleMeasure):
        return value.name
    return str(getattr(value, "__name__", repr(value)))


def _undefined(value: float, reason: str) -> float:
    """Return the value of an undefined score; warn if it is NaN."""
    if math.isnan(value):
        warnings.warn(
            f"{reason} Pass undefined=... to choose another value.",
            UndefinedMetricWarning,
            **_AT_CALLER,
        )
    return value


def _check_unless_callable(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if not callable(value):
        check_choice(name, value, choices, remedy="Or pass a callable.")


def _predicted(e: RuleEvaluation, spec: ScoreSpec, settings: Mapping[str, Any]) -> float:
    """Measure the prediction as the score requires; NaN without rules or rows."""
    if not len(e.ruleset):
        return math.nan
    measure = e.loss if spec.prediction == "loss" else e.performance
    metric = spec.metric(e.ruleset.task, settings[spec.prediction])
    return measure(metric, settings["uncovered"])


def _score(e: RuleEvaluation, spec: ScoreSpec, settings: Mapping[str, Any]) -> float:
    """Compute the score of an evaluation; greater is better."""
    prediction = _predicted(e, spec, settings)
    if not len(e.ruleset):
        reason = f"There are no rules, so {spec.label} is undefined."
        return _undefined(settings["undefined"], reason)
    if math.isnan(prediction):
        covered, n_rows = e.n_rows
        rows = f"{n_rows} rows, {covered} covered by the {len(e.ruleset)} rules"
        reason = f"{spec.label} is undefined on these rows ({rows})."
        return _undefined(settings["undefined"], reason)
    share = e.completeness(settings["completeness"]) if spec.uses_completeness else None
    return float(spec.signed(spec.value(prediction, e.size(settings["size"]), share, settings)))


def _check_metric(spec: ScoreSpec, value: Any) -> None:
    """Reject an unknown metric; whether it fits the task is checked with the rules."""
    if callable(value) or (isinstance(value, str) and value == "auto"):
        return
    metric = PREDICTION_METRICS.get(value.removeprefix("neg_")) if isinstance(value, str) else None
    if metric is None:
        raise ValueError(
            f"{spec.prediction} must be 'auto', the name of a measure or a callable, got "
            f"{value!r}. {did_you_mean(value, PREDICTION_METRICS)}"
        )
    if spec.prediction == "performance" and not metric.greater_is_better:
        better = [
            key for key, candidate in PREDICTION_METRICS.items() if candidate.greater_is_better
        ]
        raise ValueError(
            f"performance must have best value 1, but {value!r} is a loss. Choose one of "
            f"{', '.join(better)}, or a callable."
        )


def make_score_scorer(
    score: str | ScoreSpec,
    *,
    metric: str | Callable[..., float] = "auto",
    completeness: str | Callable[..., float] = "volume",
    reference: str = "data",
    uncovered: str | None = None,
    size: Size = "rules",
    undefined: float = math.nan,
    **weights: float,
) -> RuleScorer:
    """Create a scorer of any score of rule sets.

    Parameters
    ----------
    score : str or ScoreSpec
        A name in :data:`SCORE_SPECS`, or a user-defined score.
    metric : str or callable, default="auto"
        Measure of the prediction: a name of :data:`skescore.metrics.PREDICTION_METRICS` (a
        performance x becomes the loss 1 - x), or ``metric(y_true, y_pred)`` with the best value 0
        for a loss, 1 for a performance. "auto": the score determines it for each task.
    completeness : {"volume", "instances"} or callable, default="volume"
        Share of the domain's volume or of the rows; a callable gets the RuleSet and the rows.
        Ignored by scores without completeness.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions (fidelity).
    uncovered : {"ignore", "penalize"}, optional
        Whether uncovered rows are ignored, or count as wrong (classification) or as predicted by
        the mean (regression); by default as the score declares.
    size : {"rules", "conditions", "literals", "terms"} or callable, default="rules"
        Unit of the size. Literals are comparisons with a bound or with a category; terms are
        literals and the features in linear outputs. A callable gets the RuleSet.
    undefined : float, default=NaN
        Score if there are no rules or no rows; NaN comes with an ``UndefinedMetricWarning``.
    **weights : float
        Weights of the score.

    Returns
    -------
    RuleScorer
        Scorer for which greater is better; losses are negated.

    Raises
    ------
    ValueError
        If there is no such score, metric or option, or a weight is out of its range.
    TypeError
        If the score has no such weight, or a weight is not a number.

    Examples
    --------
    >>> from skescore.scorers import make_score_scorer
    >>> make_score_scorer("q", completeness="instances").name
    'neg_q'
    """
    spec = find_score(score)
    settings: dict[str, Any] = spec.check_weights(weights)
    _check_metric(spec, metric)
    check_choice("reference", reference, REFERENCES)
    uncovered = spec.uncovered if uncovered is None else uncovered
    check_choice("uncovered", uncovered, UNCOVERED)
    _check_unless_callable("size", size, SIZES)
    check_number_or_nan("undefined", undefined)
    _check_unless_callable("completeness", completeness, COMPLETENESSES)
    settings[spec.prediction] = metric
    if spec.uses_completeness:
        settings["completeness"] = completeness
    settings |= {"uncovered": uncovered, "size": size, "undefined": undefined}
    return RuleScorer(spec.scorer_name, spec, reference, settings)


def make_fire_scorer(
    psi: float = 1.0,
    *,
    loss: str | Callable[..., float] = "auto",
    reference: str = "data",
    uncovered: str = "penalize",
    size: Size = "rules",
    undefined: float = math.nan,
) -> RuleScorer:
    """Create a scorer of the negated FiRe score, which favors few rules with few errors.

    Parameters
    ----------
    psi : float, default=1.0
        The size is divided by `psi` and rounded up, so larger values penalize rules less.
    loss : str or callable, default="auto"
        ``"auto"`` is 1 - accuracy (classification) or the mean absolute error (regression).
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions (fidelity).
    uncovered : {"penalize", "ignore"}, default="penalize"
        Treatment of uncovered rows. FiRe does not include completeness, so with ``"ignore"``, a
        list that covers a single row and predicts it correctly has a perfect score.
    size : {"rules", "conditions", "literals", "terms"} or callable, default="rules"
        Unit of the size.
    undefined : float, default=NaN
        Score if there are no rules or no rows.

    Returns
    -------
    RuleScorer
        Scorer with values of at most 0; greater is better.

    Raises
    ------
    ValueError
        If there is no such metric or option, or `psi` is not above 0.
    TypeError
        If `psi` is not a number.

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
    return make_score_scorer(
        "fire",
        psi=psi,
        metric=loss,
        reference=reference,
        uncovered=uncovered,
        size=size,
        undefined=undefined,
    )


def make_q_scorer(
    *,
    loss: str | Callable[..., float] = "auto",
    completeness: str | Callable[..., float] = "volume",
    reference: str = "data",
    uncovered: str = "ignore",
    size: Size = "rules",
    undefined: float = math.nan,
) -> RuleScorer:
    """Create a scorer of the negated Q score: few rules, few errors, complete.

    Parameters
    ----------
    loss : str or callable, default="auto"
        By default 1 - weighted F1 (classification) or the mean absolute error (regression).
    completeness : {"volume", "instances"} or callable, default="volume"
        Share of the domain's volume or of the rows.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions (fidelity).
    uncovered : {"ignore", "penalize"}, default="ignore"
        Treatment of uncovered rows, which completeness already accounts for.
    size : {"rules", "conditions", "literals", "terms"} or callable, default="rules"
        Unit of the size.
    undefined : float, default=NaN
        Score if there are no rules or no rows.

    Returns
    -------
    RuleScorer
        Scorer with values of at most 0; greater is better.

    Raises
    ------
    ValueError
        If there is no such metric or option.

    References
    ----------
    F. Sabbatini, R. Calegari: On the evaluation of the symbolic knowledge extracted from black
    boxes. AI and Ethics 4, 2024. doi:10.1007/s43681-023-00406-1

    Examples
    --------
    >>> make_q_scorer(completeness="instances").name
    'neg_q'
    """
    return make_score_scorer(
        "q",
        metric=loss,
        completeness=completeness,
        reference=reference,
        uncovered=uncovered,
        size=size,
        undefined=undefined,
    )


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
    """Create a scorer of the ICE score: good predictions, few rules, complete.

    Parameters
    ----------
    phi, rho : float, default=1.0
        Importance of the predictions and of the size.
    performance : str or callable, default="auto"
        By default weighted F1 (classification) or R² (regression).
    completeness : {"volume", "instances"} or callable, default="volume"
        Share of the domain's volume or of the rows.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions (fidelity).
    uncovered : {"ignore", "penalize"}, default="ignore"
        Treatment of uncovered rows, which completeness already accounts for.
    size : {"rules", "conditions", "literals", "terms"} or callable, default="rules"
        Unit of the size.
    undefined : float, default=NaN
        Score if there are no rules or no rows.

    Returns
    -------
    RuleScorer
        Scorer with values from 0 to less than 1; greater is better.

    Raises
    ------
    ValueError
        If there is no such metric or option, or a weight is not above 0.
    TypeError
        If a weight is not a number.

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
    return make_score_scorer(
        "ice",
        phi=phi,
        rho=rho,
        metric=performance,
        completeness=completeness,
        reference=reference,
        uncovered=uncovered,
        size=size,
        undefined=undefined,
    )


@dataclass(frozen=True)
class _Knowledge:
    """Measure that returns all scores of an evaluation and their parts."""

    specs: tuple[ScoreSpec, ...]

    def __call__(self, e: RuleEvaluation, **settings: Mapping[str, Any]) -> dict[str, float]:
        specs_and_settings = [(spec, settings[spec.name]) for spec in self.specs]
        return {
            **{spec.scorer_name: _score(e, spec, its) for spec, its in specs_and_settings},
            **{spec.kept_as: _predicted(e, spec, its) for spec, its in specs_and_settings},
            "n_rules": float(len(e.ruleset)),
            "completeness_volume": _volume_or_nan(e),
            "completeness_instances": e.instances,
        }


def _volume_or_nan(e: RuleEvaluation) -> float:
    """Return the completeness by volume; NaN if it is undefined, as with unknown categories."""
    try:
        return e.volume
    except ValueError:  # scores that require the volume have raised it before
        return math.nan


def make_knowledge_scorer(
    *,
    loss: str | Callable[..., float] = "auto",
    performance: str | Callable[..., float] = "auto",
    completeness: str | Callable[..., float] = "volume",
    reference: str = "data",
    size: Size = "rules",
    undefined: float = math.nan,
    scorers: Sequence[RuleScorer] = (),
    **weights: float,
) -> RuleScorer:
    """Create a scorer that returns all scores and their parts from one prediction.

    Use it as ``GridSearchCV(scoring=..., refit="ice")`` or in ``cross_validate``.

    Parameters
    ----------
    loss, performance : str or callable, default="auto"
        Metrics of scores that use a loss (FiRe, Q) and of scores that use a performance (ICE); by
        default, each score uses its own metric.
    completeness : {"volume", "instances"} or callable, default="volume"
        Share of the domain's volume or of the rows.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions (fidelity).
    size : {"rules", "conditions", "literals", "terms"} or callable, default="rules"
        Unit of the size.
    undefined : float, default=NaN
        Score if there are no rules or no rows.
    scorers : sequence of RuleScorer, default=()
        Further scorers of single scores with other settings; the scores need not be registered.
    **weights : float
        Weights of the scores: ``psi`` of FiRe, ``phi`` and ``rho`` of ICE.

    Returns
    -------
    RuleScorer
        Scorer that returns a dict: the scores of :data:`SCORE_SPECS` by the names of their scorers,
        ``ice``, ``neg_fire``, ``neg_q`` (greater is better); their measures of the prediction,
        ``performance`` (of ICE, on covered rows), ``loss`` (of FiRe, with uncovered rows penalized)
        and ``loss_q`` (of Q, on covered rows); ``n_rules``, ``completeness_volume`` (NaN if no
        score needs it and it cannot be computed) and ``completeness_instances``.

    Raises
    ------
    ValueError
        If there is no such metric or option, or a weight is out of its range.
    TypeError
        If no score has such a weight, or a weight is not a number.

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
    chosen_weights = all_weights(weights)
    metrics = {"loss": loss, "performance": performance}
    settings = {
        spec.name: make_score_scorer(
            spec,
            metric=metrics[spec.prediction],
            completeness=completeness,
            reference=reference,
            size=size,
            undefined=undefined,
            **{name: chosen_weights[name] for name in spec.weight_names},
        ).settings
        for spec in SCORE_SPECS.values()
    }
    specs = dict(SCORE_SPECS)
    for scorer in scorers:
        if scorer.spec is None:
            raise TypeError(f"scorers must be scorers of a single score, got {scorer!r}.")
        specs[scorer.spec.name] = scorer.spec
        settings[scorer.spec.name] = scorer.settings
    return RuleScorer("knowledge", _Knowledge(tuple(specs.values())), reference, settings)


def _rule_score(
    e: RuleEvaluation,
    *,
    measure: str | RuleMeasure,
    aggregate: str | Callable[..., float],
    assigned: bool,
    undefined: float,
    parameters: dict[str, float],
) -> float:
    """Aggregate a measure of the single rules of an evaluation."""
    rule_measure = measure if isinstance(measure, RuleMeasure) else RULE_MEASURES[measure]
    if len(e.ruleset) == 0:
        return _undefined(undefined, f"There are no rules, so {rule_measure.name} is undefined.")
    e.check_units()
    counts = confusion(e.ruleset, e.X, e.y_true, e.sample_weight, assigned=assigned)
    values = counts.quality(rule_measure, **parameters)
    if not rule_measure.greater_is_better:
        values = -values
    weights = None
    if aggregate == "weighted":
        # Rules without rows have no weight, even if the measure is undefined.
        values, weights = values[counts.covered > 0], counts.covered[counts.covered > 0]
    n_undefined = int(np.isnan(values).sum())
    values = np.where(np.isnan(values), undefined, values)
    if weights is not None:
        result: Any = np.average(values, weights=weights) if len(values) else math.nan
    else:
        result = aggregate(values) if callable(aggregate) else AGGREGATES[aggregate](values)
    if not isinstance(result, Real) or isinstance(result, bool | np.bool_):
        raise TypeError(
            "aggregate must return one number for the values of all rules, but "
            f"{_setting_text(aggregate)} returned {result!r}."
        )
    if math.isnan(result):
        rules = f"{n_undefined} of {len(e.ruleset)} rules have no value on these {e.n_rows[1]} rows"
        if weights is not None and not len(values):
            rules = f"no rule covers any of these {e.n_rows[1]} rows"
        return _undefined(undefined, f"{rule_measure.name} is undefined: {rules}.")
    return float(result)


def make_rule_scorer(
    measure: str | RuleMeasure | Mapping[str, Callable[..., Any]] = "c2",
    *,
    aggregate: str | Callable[..., float] = "mean",
    reference: str = "data",
    assigned: bool = False,
    undefined: float = math.nan,
    **parameters: float,
) -> RuleScorer:
    """Create a scorer of the quality of single rules, such as their mean or the worst.

    Use it if people read the rules one by one. The score ignores the number of rules and uncovered
    rows.

    Parameters
    ----------
    measure : str, RuleMeasure or dict of one name to a callable, default="c2"
        A name in :data:`skescore.metrics.RULE_MEASURES` (a loss is negated), or a measure
        ``{"name": function}`` with ``function(p, n, P, N)`` of arrays, for which greater is better.
    aggregate : {"mean", "min", "median", "max", "weighted"} or callable, default="mean"
        Aggregate of the values of all rules; "weighted" is the mean weighted by the rows that each
        rule covers. A callable gets the array of values; greater must be better.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions (fidelity).
    assigned : bool, default=False
        Whether to evaluate each rule on the rows assigned to it instead of all rows it covers. This
        matters for ordered rule sets, in which later rules mean "else".
    undefined : float, default=NaN
        Value of a rule for which the measure is undefined, such as the precision of a rule that
        covers no row, and score without rules. A score of NaN comes with an
        ``UndefinedMetricWarning``.
    **parameters : float
        Parameters of the measure.

    Returns
    -------
    RuleScorer
        Scorer with a name such as ``mean_rule_c2`` (prefix ``neg_`` for a loss); greater is better.

    Raises
    ------
    ValueError
        If there is no such measure, aggregate or reference, or a parameter is out of its range.
    TypeError
        If the measure has no such parameter, or an argument is not a number.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.scorers import make_rule_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    >>> round(make_rule_scorer("precision", aggregate="min")(tree, X, y), 3)
    0.907
    """
    if isinstance(measure, Mapping):
        measure = _user_measure(measure)
    if not isinstance(rule_quality(measure, 1, 1, 2, 2, **parameters), float):
        raise TypeError(f"Parameters of {measure!r} must be single numbers, got {parameters!r}.")
    rule_measure = measure if isinstance(measure, RuleMeasure) else RULE_MEASURES[measure]
    _check_unless_callable("aggregate", aggregate, (*AGGREGATES, "weighted"))
    check_choice("reference", reference, REFERENCES)
    check_flag("assigned", assigned)
    check_number_or_nan("undefined", undefined)
    settings = {
        # Keep the name of a registered measure, since its function cannot be pickled.
        "measure": rule_measure.name
        if RULE_MEASURES.get(rule_measure.name) is rule_measure
        else rule_measure,
        "aggregate": aggregate,
        "assigned": assigned,
        "undefined": float(undefined),
        "parameters": parameters,
    }
    sign = "" if rule_measure.greater_is_better else "neg_"
    how = aggregate if isinstance(aggregate, str) else _setting_text(aggregate)
    return RuleScorer(f"{sign}{how}_rule_{rule_measure.name}", _rule_score, reference, settings)


def _measure_set(
    e: RuleEvaluation, *, measure: str | SetMeasure, undefined: float, options: dict[str, Any]
) -> float:
    """Compute a measure of the rule set of an evaluation; greater is better."""
    set_measure = find_set_measure(measure, options)
    value = math.nan
    if len(e.ruleset) and e.ruleset.task in set_measure.tasks:
        value = float(set_measure.function(e, **options))
    if math.isnan(value):
        scope = f"{len(e.ruleset)} rules of {e.ruleset.task} and {e.n_rows[1]} rows"
        return _undefined(undefined, f"{set_measure.name} is undefined for {scope}.")
    return value if set_measure.greater_is_better else 0.0 - value


def make_set_scorer(
    measure: str | SetMeasure,
    *,
    reference: str = "data",
    undefined: float = math.nan,
    **options: Any,
) -> RuleScorer:
    """Create a scorer of a property that FiRe, Q and ICE ignore, such as overlap or stability.

    Use it in addition to a score, as a further column of a search or a benchmark.

    Parameters
    ----------
    measure : str or SetMeasure
        A name in :data:`SET_MEASURES`, or a user-defined measure. A loss is negated.
    reference : {"data", "black_box"}, default="data"
        Origin of labels for ``calibration_error`` and ``calibrated_rules``; others use no labels.
    undefined : float, default=NaN
        Score if the measure is undefined, such as without rules; NaN comes with an
        ``UndefinedMetricWarning``.
    **options
        Options of the measure: ``n_rows``, ``scale`` and ``random_state`` of generated rows,
        ``n_repeats`` and ``max_rows`` of permutations, ``n_splits`` and ``n_bins`` of stability,
        ``confidence`` of intervals.

    Returns
    -------
    RuleScorer
        Scorer with the name of the measure (prefix ``neg_`` for a loss); greater is better.

    Raises
    ------
    ValueError
        If there is no such measure or reference.
    TypeError
        If the measure has no such option, or `undefined` is not a number.

    Notes
    -----
    Measures of the black box require an extractor. Stability extracts rules again from random
    halves of the scored rows, twice for each of ``n_splits``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.scorers import make_set_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> extractor = CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=4, random_state=0)
    >>> extractor = extractor.fit(X[::2], y[::2])
    >>> round(make_set_scorer("fidelity_jittered")(extractor, X[1::2], y[1::2]), 2)
    0.96
    >>> make_set_scorer("redundant_rules")(extractor, X[1::2], y[1::2])
    0.0
    """
    set_measure = find_set_measure(measure, options)
    check_choice("reference", reference, REFERENCES)
    check_number_or_nan("undefined", undefined)
    settings = {
        # Keep the name of a registered measure, since searches print and copy it.
        "measure": set_measure.name
        if SET_MEASURES.get(set_measure.name) is set_measure
        else set_measure,
        "undefined": float(undefined),
        "options": options,
    }
    return RuleScorer(set_measure.scorer_name, _measure_set, reference, settings)


class _CountsFunction(NamedTuple):
    """Measure of a user: a function of p, n, P and N, called with the counts of a rule."""

    function: Callable[..., Any]

    def __call__(self, counts: Any) -> np.ndarray:
        return np.asarray(self.function(counts.p, counts.n, counts.P, counts.N), dtype=float)


def _no_limits(P: Any, N: Any) -> tuple[float, float]:
    return -math.inf, math.inf


def _user_measure(measure: Mapping[str, Any]) -> RuleMeasure:
    names = list(measure)
    if len(names) != 1 or not isinstance(names[0], str) or not callable(measure[names[0]]):
        raise TypeError(
            f"measure must be {{'name': function(p, n, P, N)}} with one name, got {measure!r}."
        )
    formula: Any = _CountsFunction(measure[names[0]])
    return RuleMeasure(names[0], formula, names[0], "(-inf, inf)", _no_limits)


#: Ready-made scorers of :data:`SCORE_SPECS` with default weights, and of all scores at once.
SCORERS: dict[str, RuleScorer] = {
    **{spec.scorer_name: make_score_scorer(spec) for spec in SCORE_SPECS.values()},
    "knowledge": make_knowledge_scorer(),
}
ice, neg_fire, neg_q = (SCORERS[name] for name in ("ice", "neg_fire", "neg_q"))
knowledge = SCORERS["knowledge"]

#: Ready-made scorers of :data:`SET_MEASURES`.
SET_SCORERS: dict[str, RuleScorer] = {
    measure.scorer_name: make_set_scorer(measure) for measure in SET_MEASURES.values()
}


def register_score(spec: ScoreSpec) -> None:
    """Register a score of rule sets for scorers, searches, benchmarks, command line and reports.

    Register it before the runs that use it, because they record its measure of the prediction.

    Parameters
    ----------
    spec : ScoreSpec
        Score to register. Registering the same score again has no effect.

    Raises
    ------
    ValueError
        If its name or the name of its column is taken.

    See Also
    --------
    make_score_scorer : Create a scorer of a score without registering it.

    Examples
    --------
    >>> from skescore.scorers import SCORE_SPECS, register_score
    >>> register_score(SCORE_SPECS["fire"])
    """
    if SCORE_SPECS.get(spec.name) == spec:
        return
    reserved_names = {
        *SCORE_SPECS,
        *SCORERS,
        *PERFORMANCE_SCORERS,
        *SET_MEASURES,
        *SET_SCORERS,
        *PREDICTION_METRICS,
        *_RESERVED_COLUMNS,
        *measured_quantities(),
        "pareto",
    }
    for name in (spec.name, spec.scorer_name, spec.kept_as):
        if name in reserved_names:
            raise ValueError(f"The name {name!r} is taken. Choose another one for the score.")
    SCORE_SPECS[spec.name] = spec
    SCORERS[spec.scorer_name] = make_score_scorer(spec)
    SCORERS["knowledge"] = make_knowledge_scorer()


#: Entry-point group in which installed packages declare scores.
SCORE_ENTRY_POINTS = "skescore.scores"


def register_installed_scores() -> tuple[str, ...]:
    """Register the scores of installed packages, as the command line does.

    A package declares a :class:`ScoreSpec` in the table of entry points of its ``pyproject.toml``::

        [project.entry-points."skescore.scores"]
        their-score = "their_package:THEIR_SCORE"

    Returns
    -------
    tuple of str
        Names of the registered scores.

    Raises
    ------
    ImportError
        If a score cannot be imported.
    TypeError
        If an entry is not a :class:`ScoreSpec`.
    ValueError
        If a name is taken.

    See Also
    --------
    register_score : Add a score in the running program.

    Examples
    --------
    >>> from skescore.scorers import SCORE_SPECS, register_installed_scores
    >>> set(register_installed_scores()) <= set(SCORE_SPECS)
    True
    """
    names = []
    for entry in sorted(entry_points(group=SCORE_ENTRY_POINTS), key=lambda entry: entry.name):
        package = getattr(entry.dist, "name", "without a name")
        label = f"The score {entry.name!r} of the package {package!r} ({entry.value!r})"
        try:
            spec = entry.load()
        except Exception as error:  # the import of a package may raise anything
            raise ImportError(
                f"{label} cannot be imported ({type(error).__name__}: {error}). Reinstall, upgrade "
                "or uninstall that package."
            ) from error
        if not isinstance(spec, ScoreSpec):
            raise TypeError(
                f"{label} must be a skescore.scorers.ScoreSpec, got {spec!r}. Upgrade or uninstall "
                "that package."
            )
        register_score(spec)
        names.append(spec.name)
    return tuple(names)


#: Reserved column names of runs, besides the names of measured quantities.
_RESERVED_COLUMNS = ("score", "fidelity", "params", "extractor", "data", "rank")


def get_rule_scorer(scoring: Any) -> Any:
    """Return a scorer by its name; a callable is returned unchanged.

    Parameters
    ----------
    scoring : str, callable or dict of one name to a callable
        ``"ice"``, ``"fire"`` or ``"neg_fire"``, ``"q"`` or ``"neg_q"``; ``"mean_rule_c2"`` and
        similar names, with the aggregates and measures of :func:`make_rule_scorer`; a measure of
        predictions as in :func:`make_performance_scorer`, or of rule sets as in
        :func:`make_set_scorer` (or ``"group_gap:COLUMN"``, the largest difference between the
        predictions for the groups of a column), with or without the prefix ``neg_`` of a loss;
        ``"fidelity"``; or a scorer.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, greater is better.

    Raises
    ------
    ValueError
        If there is no such name.
    TypeError
        If `scoring` is neither a name nor a callable.

    Examples
    --------
    >>> get_rule_scorer("fire") is neg_fire
    True
    >>> get_rule_scorer("min_rule_precision").settings["aggregate"]
    'min'
    >>> get_rule_scorer("relative_error").name, get_rule_scorer("overlap").name
    ('neg_relative_error', 'neg_overlap')
    """
    if isinstance(scoring, Mapping) and len(scoring) == 1:
        return get_rule_scorer(*scoring.values())
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
    if scoring == "fidelity":
        return FidelityScorer()
    scorers: dict[str, Any] = {**SET_SCORERS, **PERFORMANCE_SCORERS, **SCORERS}
    scorer = scorers.get(scoring) or scorers.get(f"neg_{scoring}")
    if scorer is None and (measure_of_set := named_set_measure(scoring.removeprefix("neg_"))):
        scorer = make_set_scorer(measure_of_set)
    if scorer is None and scoring in PERFORMANCE_METRICS:  # an alias
        scorer = PERFORMANCE_SCORERS.get(PERFORMANCE_METRICS[scoring].scorer_name)
    if scorer is None:
        hint = did_you_mean(scoring, scorers)
        if scoring in RULE_MEASURES:
            hint = f"The measure of single rules is 'mean_rule_{scoring}'."
        raise ValueError(f"There is no score {scoring!r}. {hint}")
    return scorer
