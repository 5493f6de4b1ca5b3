"""The class behind all scorers, and how each score is put together."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.metadata_routing import MetadataRequest

from skescore.evaluation import FIRE_LOSS, RuleEvaluation, Size, evaluate_rules
from skescore.metrics.knowledge import fire_score, ice_score, q_score


class RuleScorer:
    """A score of rule sets that scikit-learn's searches and Optuna objectives can call.

    Made by :func:`make_fire_scorer`, :func:`make_q_scorer`, :func:`make_ice_scorer` and
    :func:`make_knowledge_scorer`.

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

    def _accept_sample_weight(self) -> bool:
        return True

    def set_score_request(self, **requests: Any) -> RuleScorer:
        """Ask metadata routing for ``sample_weight`` (True, False or an alias).

        Returns
        -------
        RuleScorer
            A copy with the request: the ready-made scorers stay as they are.

        Raises
        ------
        TypeError, ValueError
            If other metadata is asked for, or a request is neither bool nor a name.
        """
        unknown = set(requests) - {"sample_weight"}
        if unknown:
            raise TypeError(f"{self.name} takes sample_weight only, got {sorted(unknown)}.")
        clone = copy.copy(self)
        clone._requests = self._requests | requests
        clone.get_metadata_routing()  # names a bad request now
        return clone

    def get_metadata_routing(self) -> MetadataRequest:
        """Say which metadata the scorer wants.

        Returns
        -------
        MetadataRequest
            What scikit-learn's metadata routing asks for.
        """
        routing = MetadataRequest(owner=self)
        routing.score.add_request(param="sample_weight", alias=self._requests.get("sample_weight"))
        return routing

    def __repr__(self) -> str:
        # A function's repr holds its address, which would make messages differ between runs.
        shown = [f"{k}={getattr(v, '__name__', repr(v))}" for k, v in self.settings.items()]
        return f"{self.name}({', '.join([*shown, f'reference={self.reference!r}'])})"


def _undefined(value: float, why: str) -> float:
    if math.isnan(value):
        warnings.warn(
            f"{why} Pass undefined=... to choose another value.",
            UndefinedMetricWarning,
            stacklevel=6,
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
