"""What a finished search tells, and how it answers: like the extractor that won it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skescore.extractors import is_fitted
from skescore.registry import make_extractor
from skescore.rules import RuleSet
from skescore.tuning._candidates import Candidate
from skescore.tuning._goals import Goal
from skescore.tuning._pareto import pareto_front
from skescore.tuning._winner import judged, winner


def _can_refit(search: Any) -> bool:
    return bool(search.refit) and is_classifier(search)


class Winner(MetaEstimatorMixin, BaseEstimator):
    """A finished search: base class of :class:`ExtractorSearchCV`."""

    def _winner(self) -> Any:
        check_is_fitted(self, "leaderboard_")
        if not hasattr(self, "best_extractor_"):
            raise AttributeError(f"{type(self).__name__} was fitted with refit=False.")
        return self.best_extractor_

    @property
    def pareto_front_(self) -> pd.DataFrame:
        """The candidates that no other beats, fewest rules first."""
        check_is_fitted(self, "leaderboard_")
        names = Goal.of(self.scoring, choose_by(self)).objectives
        return pareto_front(self.candidates_, names or ("loss", "n_rules", "incompleteness"))

    @property
    def knee_(self) -> pd.Series:
        """The front's knee."""
        front = self.pareto_front_
        if not len(front):
            raise AttributeError("There is no finished candidate whose measures are all known.")
        return front[front["knee"]].iloc[0]

    def best_for(
        self,
        *,
        psi: float | None = None,
        phi: float | None = None,
        rho: float | None = None,
        completeness: str = "volume",
    ) -> pd.Series:
        """Find the candidate that wins with other weights, without another extraction.

        It is chosen as the search chooses its winner (see `standard_errors`). Use it to try weights
        after a search; :func:`skescore.tuning.winning_regions` tells which weights matter, by the
        means on held-out rows alone.

        Parameters
        ----------
        psi : float, optional
            Weight of FiRe.
        phi, rho : float, optional
            Weights of ICE; one alone leaves the other at 1.
        completeness : {"volume", "instances"}, default="volume"
            How ICE measures completeness.

        Returns
        -------
        pandas.Series
            Row of :meth:`Candidates.table` with the new ``score``, FiRe's being negated;
            :meth:`make_candidate` makes the extractor.

        Raises
        ------
        ValueError
            If weights of both scores are given, none is, or one is out of its range, or there is no
            finished candidate whose measures are all known.
        """
        check_is_fitted(self, "leaderboard_")
        ice = phi is not None or rho is not None
        if ice == (psi is not None):
            raise ValueError(
                "best_for takes psi, the weight of FiRe, or phi and rho, those of ICE; got "
                f"psi={psi!r}, phi={phi!r}, rho={rho!r}."
            )
        if ice:
            weights = {"phi": 1.0 if phi is None else phi, "rho": 1.0 if rho is None else rho}
            choice: dict[str, Any] = {"score": "ice", "completeness": completeness, **weights}
        else:
            assert psi is not None
            choice = {"score": "fire", "completeness": completeness, "psi": psi}
        if not len(self.candidates_):
            raise ValueError(
                "best_for needs a finished candidate whose measures are all known, and there is "
                "none: see the leaderboard for what failed."
            )
        sign = 1 if ice else -1
        scores = sign * self.candidates_.scores(**choice)
        table = self.candidates_.table()
        table.insert(1, "score", scores.mean(axis=1))
        order = np.lexsort([table["size"], -table["score"]])  # ties go to the smaller, then earlier
        judged_by = judged(scores, sign * self.candidates_.scores_with_all_rows(**choice))[order]
        size, asked = table["size"].to_numpy(), self.candidates_.means("black_box_rows")
        best = winner(judged_by, size[order], asked[order], self.standard_errors)
        return table.iloc[order[best]]

    def make_candidate(self, row: Any) -> Any:
        """Make the extractor of a row of the leaderboard, the front or :meth:`best_for`.

        Parameters
        ----------
        row : mapping, Series or Candidate
            Holds ``extractor`` and ``params``.

        Returns
        -------
        extractor
            Around the black box, not fitted.
        """
        check_is_fitted(self, "leaderboard_")
        if isinstance(row, Candidate):
            row = {"extractor": row.extractor, "params": row.params}
        candidate = make_extractor(row["extractor"], self.estimator)
        if "random_state" in candidate.get_params(deep=False):
            candidate.set_params(random_state=self._extractor_seed)
        return candidate.set_params(**row["params"])

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
