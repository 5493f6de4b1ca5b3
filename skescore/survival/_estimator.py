"""Scikit-learn estimator of survival rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skescore._optional import import_optional
from skescore.rules import SurvivalCurve, SurvivalRules, read_outcomes

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class SurvivalRulesEstimator(BaseEstimator):
    """Estimator of survival rules, for scikit-learn's searches and scikit-survival's metrics.

    Use it to select rule sets or the settings of their learner by cross-validation. The curves are
    estimated on each training part.

    Parameters
    ----------
    rules : estimator, RuleSet or object that :func:`skescore.as_ruleset` reads
        Rules whose premises are used. An estimator that learns rules is cloned and fitted, see
        Notes; one in a ``FrozenEstimator`` is used as it is.

    Attributes
    ----------
    rules_ : SurvivalRules
        Rules with their curves.
    unique_times_ : ndarray of float, shape (n_times,)
        Distinct times of the training rows.
    event_times_ : ndarray of float, shape (n_event_times,)
        Times at which an event happened.
    estimator_ : estimator
        The fitted learner of the premises, if `rules` is an estimator.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the features, if the rows had names.

    Notes
    -----
    An estimator is fitted on martingale residuals: the events of a row (0 or 1) minus the expected
    events, the cumulative hazard of all rows at its time. Rows with an early event have large
    residuals. To use a risk model instead, pass an extractor with the black box
    ``CallableRegressor(forest.predict)``. The predicted risk is the mean time lost until the last
    training time: the area above the curve.

    References
    ----------
    T. M. Therneau, P. M. Grambsch, T. R. Fleming: Martingale-based residuals for survival models.
    Biometrika 77, 1990.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.survival import SurvivalRulesEstimator
    >>> ruleset = RuleSet(
    ...     [Rule([Interval(0, lower=60)], 1.0), Rule([Interval(0, upper=60)], 0.0)],
    ...     ["age"], task="regression",
    ... )
    >>> X = [[40.0], [50.0], [70.0], [80.0]]
    >>> y = [9.0, 7.0, 2.0, 3.0], [False, True, True, True]
    >>> model = SurvivalRulesEstimator(ruleset).fit(X, y)
    >>> model.predict([[45.0], [75.0]]).tolist()  # lost time out of 9
    [1.0, 6.5]
    """

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def fit(self, X: Any, y: Any) -> SurvivalRulesEstimator:
        """Learn the premises if `rules` is an estimator, and estimate the curve of each rule.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : structured array, or pair (time, event)
            Outcomes of the rows, see :func:`skescore.rules.read_outcomes`.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        TypeError
            If `rules` contains no rules, or `y` is in another format.
        ValueError
            If the outcomes do not fit the rows, or there is no event.
        """
        validate_data(self, X, skip_check_array=True)
        time, event = read_outcomes(y, _num_samples(X))
        rules = self.rules
        if hasattr(rules, "fit") and hasattr(rules, "get_params"):
            rules = self.estimator_ = clone(rules).fit(X, _martingale_residuals(time, event))
        self.rules_ = SurvivalRules.fit(rules, X, (time, event))
        self.unique_times_ = self.rules_.fallback.times
        self.event_times_ = self.unique_times_[self.rules_.fallback.events > 0]
        return self

    def predict(self, X: Any) -> Floats:
        """Return the risk: the mean time lost until the last training time.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of float, shape (n_rows,)
            Risk from 0 to the last training time.
        """
        lost = 1 - self.predict_survival_function(X, return_array=True)
        # A curve keeps its value until the next time.
        return np.asarray(lost[:, :-1] @ np.diff(self.unique_times_))

    def predict_survival_function(self, X: Any, return_array: bool = False) -> Any:
        """Return the survival curve of every row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        return_array : bool, default=False
            Whether to return the values at ``unique_times_`` instead of functions.

        Returns
        -------
        ndarray
            ``StepFunction`` objects of scikit-survival, shape (n_rows,); or floats, shape
            (n_rows, n_times).

        Raises
        ------
        ImportError
            If functions are requested and scikit-survival is not installed.
        """
        check_is_fitted(self)
        times = self.unique_times_
        validate_data(self, X, reset=False, skip_check_array=True)
        values = self.rules_.predict_survival_function(X, times)
        if return_array:
            return values
        functions = import_optional(
            "sksurv.functions", extra="survival", purpose="Survival curves as functions"
        )
        curves = np.empty(len(values), dtype=object)
        for row, steps in enumerate(values):
            curves[row] = functions.StepFunction(times, steps, domain=(0.0, None))
        return curves

    def score(self, X: Any, y: Any) -> float:
        """Return Harrell's concordance index: the share of pairs that the risk orders correctly.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : structured array, or pair (time, event)
            Outcomes of the rows.

        Returns
        -------
        float
            Index from 0 to 1; 0.5 is chance.

        Raises
        ------
        ImportError
            If scikit-survival is not installed.
        """
        metrics = import_optional(
            "sksurv.metrics", extra="survival", purpose="The index of concordance"
        )
        # Divided by the last time, because scikit-survival treats differences of 1e-8 as ties.
        risk = self.predict(X) / max(float(self.unique_times_[-1]), np.finfo(float).tiny)
        time, event = read_outcomes(y, len(risk))
        return float(metrics.concordance_index_censored(event, time, risk)[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.no_validation = True  # the rules determine which values rows may contain
        return tags


def _martingale_residuals(time: Floats, event: Flags) -> Floats:
    """Return the events minus the events expected by the Nelson-Aalen hazard of all rows."""
    curve = SurvivalCurve.of(time, event)
    hazard = np.cumsum(curve.events / curve.at_risk)
    return np.asarray(event - hazard[np.searchsorted(curve.times, time)])
