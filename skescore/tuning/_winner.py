"""A search answers like the extractor that won it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skescore.extractors import is_fitted
from skescore.rules import RuleSet
from skescore.tuning.goals import Goal


def _can_refit(search: Any) -> bool:
    return bool(search.refit) and is_classifier(search)


class Winner(MetaEstimatorMixin, BaseEstimator):
    """What of a search is its winner's: base class of :class:`ExtractorSearchCV`."""

    def _winner(self) -> Any:
        check_is_fitted(self, "leaderboard_")
        if not hasattr(self, "best_extractor_"):
            raise AttributeError(f"{type(self).__name__} was fitted with refit=False.")
        return self.best_extractor_

    @property
    def rules_(self) -> RuleSet:
        """The winner's rules."""
        return self._winner().rules_

    @property
    def oracle_(self) -> Any:
        """Asks the winner's black box."""
        return self._winner().oracle_

    def predict(self, X: Any) -> np.ndarray:
        """Answer rows by the winner's rules.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers.
        """
        return self._winner().predict(X)

    @available_if(_can_refit)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class shares of the winner's rule that answers each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        return self._winner().predict_proba(X)

    def covers(self, X: Any) -> np.ndarray:
        """Tell which rows some rule of the winner holds for.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
        """
        return self._winner().covers(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Score the winner's rules by `scoring`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            The target; the black box's answers by default.

        Returns
        -------
        float
            Greater is better.
        """
        winner = self._winner()
        y = winner.oracle_.ask(X) if y is None else y
        return float(Goal.of(self.scoring, choose_by(self)).scorer(winner, X, y))

    def fidelity(self, X: Any) -> float:
        """Accuracy or R² of the winner's rules against the black box's own answers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; the black box is asked about them.

        Returns
        -------
        float
            At most 1.
        """
        return self._winner().fidelity(X)

    @property
    def n_rules_(self) -> int:
        """Number of the winner's rules."""
        return len(self.rules_)

    @property
    def coverage_(self) -> float:
        """Share of the training rows that some rule of the winner covers."""
        return self._winner().coverage_

    @property
    def completeness_(self) -> float:
        """Share of the domain's volume that some rule of the winner covers."""
        return self._winner().completeness_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "leaderboard_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(self.estimator)
        except (AttributeError, TypeError):  # reported by fit, which can explain it
            return tags
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        if tags.classifier_tags is not None:  # whatever the black box can do, rules have one output
            tags.classifier_tags.multi_label = False
        tags.target_tags.required = not is_fitted(self.estimator)
        return tags


def choose_by(search: Any) -> Any:
    """The score that a search of several measures keeps beside them."""
    return search.refit if isinstance(search.refit, str) or callable(search.refit) else "ice"
