"""The class behind all scorers, and how each score is put together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import _safe_indexing

from skescore.metrics._knowledge import fire_score, ice_score, q_score
from skescore.metrics._rule_counts import confusion
from skescore.metrics._rule_quality import MEASURES, Measure, rule_quality
from skescore.scorers._evaluation import (
    FIRE_LOSS,
    REFERENCES,
    RuleEvaluation,
    Size,
    evaluate_rules,
)
from skescore.scorers._routing import AsksForWeights

#: How the values of all rules become one; "weighted" is their mean by the rows of each.
AGGREGATES: dict[str, Callable[[np.ndarray], Any]] = {
    "mean": np.mean, "min": np.min, "median": np.median, "max": np.max,
}  # fmt: skip
#: Rows by which it is told whether y is in the units of the rules.
_COMPARED = 50


class RuleScorer(AsksForWeights):
    """A score of rule sets that scikit-learn's searches and Optuna objectives can call.

    Made by :func:`make_fire_scorer`, :func:`make_q_scorer`, :func:`make_ice_scorer`,
    :func:`make_knowledge_scorer` and :func:`make_rule_scorer`.

    Parameters
    ----------
    name : str
        What it is called in messages.
    measure : callable
        ``measure(evaluation, **settings)`` gives a float or a dict of floats, greater is better.
    reference : {"data", "black_box"}
        Compare with y, or with the black box's own answers.
    settings : dict
        Parameters of the measure.
    """

    def __init__(
        self, name: str, measure: Callable[..., Any], reference: str, settings: dict[str, Any]
    ) -> None:
        self.name = name
        self.measure = measure
        self.reference = reference
        self.settings = settings
        self._requests: dict[str, Any] = {}

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Score a fitted estimator on rows.

        Parameters
        ----------
        estimator : estimator or RuleSet
            A fitted extractor, or what holds one.
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            The truth; needed with ``reference="data"``.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        float or dict of float
            Greater is better.
        """
        evaluation = evaluate_rules(
            estimator, X, y, reference=self.reference, sample_weight=sample_weight
        )
        return self.score(evaluation)

    def score(self, evaluation: RuleEvaluation) -> Any:
        """Score an evaluation that has been made already."""
        return self.measure(evaluation, **self.settings)

    @property
    def gives_dict(self) -> bool:
        """Whether it gives several named scores at once."""
        return self.measure is knowledge_of

    def __repr__(self) -> str:
        shown = [f"{k}={_shown(v)}" for k, v in self.settings.items()]
        return f"{self.name}({', '.join([*shown, f'reference={self.reference!r}'])})"


def _shown(value: Any) -> str:
    # A function's repr holds its address, which would make messages differ between runs.
    if isinstance(value, Measure):
        return value.name
    return str(getattr(value, "__name__", repr(value)))


def _undefined(value: float, why: str, depth: int = 6) -> float:
    """Warn of a score that is NaN, `depth` calls above: where the scorer was called."""
    if math.isnan(value):
        warnings.warn(
            f"{why} Pass undefined=... to choose another value.",
            UndefinedMetricWarning,
            stacklevel=depth,
        )
    return value


def _missing(e: RuleEvaluation, name: str, measured: float, undefined: float) -> float | None:
    """The score where it is undefined, else None."""
    if len(e.ruleset) == 0:
        return _undefined(undefined, f"There are no rules, so {name} is undefined.")
    if math.isnan(measured):
        why = f"{len(e.y_true)} rows, {int(e.covered.sum())} covered by the {len(e.ruleset)} rules"
        return _undefined(undefined, f"{name} is undefined on these rows ({why}).")
    return None


def negated_fire_of(
    e: RuleEvaluation, *, psi: float, loss: Any, uncovered: str, size: Size, undefined: float
) -> float:
    """The negated FiRe score of an evaluation."""
    measured = e.loss(loss, uncovered, FIRE_LOSS) if len(e.ruleset) else math.nan
    missing = _missing(e, "FiRe", measured, undefined)
    return -fire_score(measured, e.size(size), psi=psi) if missing is None else missing


def negated_q_of(
    e: RuleEvaluation, *, loss: Any, completeness: Any, uncovered: str, size: Size, undefined: float
) -> float:
    """The negated Q score of an evaluation."""
    measured = e.loss(loss, uncovered) if len(e.ruleset) else math.nan
    missing = _missing(e, "Q", measured, undefined)
    if missing is not None:
        return missing
    return -q_score(measured, e.size(size), e.completeness(completeness))


def ice_of(
    e: RuleEvaluation,
    *,
    phi: float,
    rho: float,
    performance: Any,
    completeness: Any,
    uncovered: str,
    size: Size,
    undefined: float,
) -> float:
    """The ICE score of an evaluation."""
    measured = e.performance(performance, uncovered) if len(e.ruleset) else math.nan
    missing = _missing(e, "ICE", measured, undefined)
    if missing is not None:
        return missing
    return ice_score(measured, e.size(size), e.completeness(completeness), phi=phi, rho=rho)


def knowledge_of(
    e: RuleEvaluation,
    *,
    fire: dict[str, Any],
    q: dict[str, Any],
    ice: dict[str, Any],
) -> dict[str, float]:
    """All scores of an evaluation and what they are made of."""
    some = len(e.ruleset) > 0
    return {
        "ice": ice_of(e, **ice),
        "neg_fire": negated_fire_of(e, **fire),
        "neg_q": negated_q_of(e, **q),
        "performance": e.performance(ice["performance"], ice["uncovered"]) if some else math.nan,
        "loss": e.loss(fire["loss"], fire["uncovered"], FIRE_LOSS) if some else math.nan,
        "loss_q": e.loss(q["loss"], q["uncovered"]) if some else math.nan,
        "n_rules": float(len(e.ruleset)),
        "completeness_volume": e.volume,
        "completeness_instances": e.instances,
    }


def quality_of(
    e: RuleEvaluation,
    *,
    measure: str | Measure,
    aggregate: str | Callable[..., float],
    answering: bool,
    undefined: float,
    parameters: dict[str, float],
) -> float:
    """A measure of the single rules of an evaluation, made one number."""
    known = measure if isinstance(measure, Measure) else MEASURES[measure]
    if len(e.ruleset) == 0:
        return _undefined(undefined, f"There are no rules, so {known.name} is undefined.", 5)
    # A frame whose columns are not those of the rules is read by position, as extractors do.
    by_name = set(map(str, getattr(e.X, "columns", ()))) >= set(e.ruleset.feature_names)
    X = e.X if by_name else np.asarray(e.X)
    _check_units(e, X)
    counts = confusion(e.ruleset, X, e.y_true, e.sample_weight, answering=answering)
    values = counts.quality(known, **parameters)
    if not known.greater_is_better:
        values = -values
    weights = None
    if aggregate == "weighted":
        # What no row tells of has no weight, also where the measure would be undefined.
        values, weights = values[counts.covered > 0], counts.covered[counts.covered > 0]
    without = int(np.isnan(values).sum())
    values = np.where(np.isnan(values), undefined, values)
    if weights is not None:
        result: Any = np.average(values, weights=weights) if len(values) else math.nan
    else:
        result = aggregate(values) if callable(aggregate) else AGGREGATES[aggregate](values)
    if not isinstance(result, Real) or isinstance(result, bool | np.bool_):
        raise TypeError(
            f"aggregate must give one number for the values of all rules, but {_shown(aggregate)} "
            f"gave {result!r}."
        )
    if math.isnan(result):
        rules = f"{without} of {len(e.ruleset)} rules have no value on these {len(e.y_true)} rows"
        if weights is not None and not len(values):
            rules = f"no rule holds for any of these {len(e.y_true)} rows"
        return _undefined(undefined, f"{known.name} is undefined: {rules}.", 5)
    return float(result)


def _check_units(e: RuleEvaluation, X: Any) -> None:
    """Refuse a transformed target: rows near a rule's number can only be counted in its units."""
    rows = np.flatnonzero(e.covered)[:_COMPARED]
    if e.ruleset.task == "classification" or not len(rows):
        return
    said = e.ruleset.predict(_safe_indexing(X, rows))
    answers = e.y_pred[rows].astype(float)
    # Extractors may answer a few rows otherwise than their rules do, but not most of them.
    same = np.isclose(said, answers, rtol=1e-6)
    if same.mean() < 0.5:
        raise ValueError(
            f"y and the answers are in other units than the rules: the rules say "
            f"{float(said[~same][0])!r} where the answer is "
            f"{float(answers[~same][0])!r}. Measures of single rules need the target that "
            "the rules were made with: score the inner regressor (regressor_) on the transformed y."
        )


def make_rule_scorer(
    measure: str | Measure = "c2",
    *,
    aggregate: str | Callable[..., float] = "mean",
    reference: str = "data",
    answering: bool = False,
    undefined: float = math.nan,
    **parameters: float,
) -> RuleScorer:
    """Make a scorer of the single rules: how good they are by a measure, on average or at worst.

    Use it where a person reads the rules one by one. It does not know how many rules there are, nor
    how many rows are left without one.

    Parameters
    ----------
    measure : str or Measure, default="c2"
        A name in :data:`skescore.metrics.MEASURES`, or a measure of your own; a loss is
        negated.
    aggregate : {"mean", "min", "median", "max", "weighted"} or callable, default="mean"
        What is made of the values of all rules, greater being better; "weighted" is the mean
        weighted by the rows that each rule holds for. A callable gets the array of values.
    reference : {"data", "black_box"}, default="data"
        Compare with y, or with the black box's own answers (fidelity).
    answering : bool, default=False
        False judges each rule by all rows that it holds for; True by those that it answers, which
        matters in ordered rule sets, whose later rules mean "else".
    undefined : float, default=NaN
        The value of a rule for which the measure is not defined, such as the precision of a rule
        that holds for no row, and the score where there are no rules. A score of NaN comes with an
        ``UndefinedMetricWarning``.
    **parameters : float
        Parameters of the measure.

    Returns
    -------
    RuleScorer
        Called ``mean_rule_c2`` and the like, ``neg_`` before it for a loss; greater is better.

    Raises
    ------
    ValueError
        If there is no such measure, aggregate or reference, or a parameter is out of its range.
    TypeError
        If the measure has no such parameter, or something is no number.

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
    if not isinstance(rule_quality(measure, 1, 1, 2, 2, **parameters), float):
        raise TypeError(f"Parameters of {measure!r} must be single numbers, got {parameters!r}.")
    known = measure if isinstance(measure, Measure) else MEASURES[measure]
    ways = (*AGGREGATES, "weighted")
    if not callable(aggregate) and aggregate not in ways:
        raise ValueError(
            f"aggregate must be one of {', '.join(map(repr, ways))} or a callable, got "
            f"{aggregate!r}."
        )
    if reference not in REFERENCES:
        raise ValueError(
            f"reference must be one of {', '.join(map(repr, REFERENCES))}, got {reference!r}."
        )
    if not isinstance(answering, bool):
        raise TypeError(f"answering must be True or False, got {answering!r}.")
    if not isinstance(undefined, Real) or isinstance(undefined, bool):
        raise TypeError(f"undefined must be a number, NaN included, got {undefined!r}.")
    settings = {
        # By name where there is one: functions of the catalogue cannot be pickled.
        "measure": known.name if MEASURES.get(known.name) is known else known,
        "aggregate": aggregate, "answering": answering, "undefined": float(undefined),
        "parameters": parameters,
    }  # fmt: skip
    sign = "" if known.greater_is_better else "neg_"
    how = aggregate if isinstance(aggregate, str) else _shown(aggregate)
    return RuleScorer(f"{sign}{how}_rule_{known.name}", quality_of, reference, settings)
