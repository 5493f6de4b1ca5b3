"""Measures of attributions as scorers, such as the faithfulness of an explainer to a model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from skescore._text import did_you_mean
from skescore._validation import row_weights
from skescore.metrics.attribution import FAITHFULNESS, PLAUSIBILITY, faithfulness, plausibility
from skescore.scorers._routing import AcceptsWeights

__all__ = ["AttributionReport", "AttributionScorer", "make_attribution_scorer"]


class AttributionReport(NamedTuple):
    """Measured attributions of some rows.

    Parameters
    ----------
    score : float
        Mean over the rows; greater is better.
    values : ndarray of shape (n_rows,)
        Measure of each row, as in :func:`skescore.metrics.attribution.faithfulness`.
    n_undefined : int
        Number of rows with an undefined measure, which the mean ignores.
    """

    score: float
    values: NDArray[np.float64]
    n_undefined: int


class AttributionScorer(AcceptsWeights):
    """A measure of attributions as a scorer for scikit-learn's searches and validations.

    Created by :func:`make_attribution_scorer`.

    Parameters
    ----------
    measure : str
        Name of the measure.
    explainer : callable
        ``explainer(estimator, X)`` returns the attributions of the rows.
    options : dict, optional
        Options of the measure.
    """

    def __init__(
        self,
        measure: str,
        explainer: Callable[[Any, Any], Any],
        options: dict[str, Any] | None = None,
    ) -> None:
        self.measure = measure
        self.explainer = explainer
        self.options = dict(options or {})
        self._requests: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Name in messages, with the prefix ``neg_`` if smaller is better."""
        return self.measure if FAITHFULNESS.get(self.measure, True) else f"neg_{self.measure}"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Explain the predictions of a fitted estimator and measure the explanations."""
        return self.report(estimator, X, y, sample_weight).score

    def report(
        self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None
    ) -> AttributionReport:
        """Score the explanations, and return the measure of each row.

        Parameters
        ----------
        estimator, X, y, sample_weight
            The same as in a call of the scorer.

        Returns
        -------
        AttributionReport
            Score, measure of each row, and number of rows with an undefined measure.
        """
        attributions = self.explainer(estimator, X)
        if self.measure in PLAUSIBILITY:
            if y is None:
                raise ValueError(
                    f"{self.name} compares with rationales, but y is None. Pass rows of 0 and 1 "
                    "as y."
                )
            values_by_measure = plausibility(
                attributions, y, measures=[self.measure], **self.options
            )
        else:
            values_by_measure = faithfulness(
                estimator, X, attributions, measures=[self.measure], **self.options
            )
        values = values_by_measure[self.measure]
        weights = np.ones(len(values))
        if sample_weight is not None:
            weights = row_weights(sample_weight, len(values))
        is_defined = ~np.isnan(values)
        total = float(weights[is_defined].sum())
        if total > 0:
            mean = float((values[is_defined] * weights[is_defined]).sum()) / total
        else:
            warnings.warn(
                f"{self.name} is undefined for all rows.", UndefinedMetricWarning, stacklevel=2
            )
            mean = np.nan
        sign = 1.0 if FAITHFULNESS.get(self.measure, True) else -1.0
        return AttributionReport(sign * mean, values, int((~is_defined).sum()))

    def __repr__(self) -> str:
        explainer = getattr(self.explainer, "__name__", type(self.explainer).__name__)
        arguments = [explainer, *(f"{key}={value!r}" for key, value in self.options.items())]
        return f"{self.name}({', '.join(arguments)})"


def make_attribution_scorer(
    measure: str, explainer: Callable[[Any, Any], Any], **options: Any
) -> AttributionScorer:
    """Create a scorer from an explainer and a measure of attributions.

    Use it in ``cross_validate`` or ``GridSearchCV(scoring=...)`` to find the models to which an
    explainer is faithful, or the most faithful explainer of a model.

    Parameters
    ----------
    measure : str
        A measure of :func:`skescore.metrics.attribution.faithfulness`, or of
        :func:`skescore.metrics.attribution.plausibility`, whose rationales are passed as y.
        ``"aopc_suff"`` and ``"prediction_gap_unimportant"`` are negated: smaller is better.
    explainer : callable
        ``explainer(estimator, X)`` returns the attributions of the rows in any form that the
        measure accepts, for example explanations of shap, LIME or captum.
    **options
        Options of the measure, such as ``removal`` and ``target``.

    Returns
    -------
    AttributionScorer
        Scorer with the signature ``scorer(estimator, X, y=None)``, which returns the mean over rows
        with a defined measure; greater is better. ``scorer.report(estimator, X)`` counts the rest.

    Raises
    ------
    ValueError
        If there is no such measure.
    TypeError
        If `explainer` is not callable, or an option is one that the scorer sets itself.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skescore.metrics.attribution import Target
    >>> from skescore.scorers import make_attribution_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), LogisticRegression())
    >>> def weights(model, X):
    ...     return model[-1].coef_[0] * model[:-1].transform(X)
    >>> target = Target(explains=1)
    >>> scorer = make_attribution_scorer("aopc_compr", weights, target=target, removal=X.mean(0))
    >>> cross_val_score(model, X, y, scoring=scorer, cv=3).round(1).tolist()
    [0.6, 0.5, 0.6]
    """
    names = (*FAITHFULNESS, *PLAUSIBILITY)
    if not isinstance(measure, str) or measure not in names:
        raise ValueError(f"Unknown measure {measure!r}. {did_you_mean(measure, names)}")
    if not callable(explainer):
        raise TypeError(
            f"explainer must be a function of an estimator and rows, got {explainer!r}. Wrap "
            "other explainers: lambda estimator, X: ..."
        )
    owned = {"measures", "return_details", "average"} & set(options)
    if owned:
        raise TypeError(f"{sorted(owned)[0]} is set by the scorer. Omit it.")
    function = plausibility if measure in PLAUSIBILITY else faithfulness
    possible = function.__kwdefaults__ or {}
    unknown = sorted(set(options) - set(possible))
    if unknown:
        raise TypeError(
            f"{measure} has no option {unknown[0]!r}. {did_you_mean(unknown[0], possible)}"
        )
    return AttributionScorer(measure, explainer, options)
