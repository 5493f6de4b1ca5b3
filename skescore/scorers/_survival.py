"""Scores of survival rules as scorers for scikit-learn's searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from skescore._scores import SCORE_SPECS, all_weights
from skescore._text import did_you_mean
from skescore.metrics import integrated_brier_score, survival_scores
from skescore.metrics._survival import check_settings
from skescore.rules import RuleSet, SurvivalRules
from skescore.scorers._evaluation import unwrap

__all__ = ["SurvivalScorer", "make_survival_scorer"]


def _directions() -> dict[str, bool]:
    """Return the survival scores by name, and whether a greater value is better."""
    scores = {name: spec.greater_is_better for name, spec in SCORE_SPECS.items()}
    return {"brier": False, "skill": True, **scores}


class SurvivalScorer:
    """A score of survival rules as a scorer for searches: ``scorer(estimator, X, y)``.

    Created by :func:`make_survival_scorer`.

    Parameters
    ----------
    score : str
        Name of a score of :func:`survival_scores`; a loss is negated.
    curves : tuple or None
        Rows and outcomes from which curves of rules without curves are estimated.
    settings : dict
        Parameters of :func:`survival_scores`.
    """

    def __init__(
        self, score: str, curves: tuple[Any, Any] | None, settings: dict[str, Any]
    ) -> None:
        self.score = score
        self.curves = curves
        self.settings = settings

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Score fitted rules on rows."""
        rules, transform = _rules_of(estimator)
        if isinstance(rules, RuleSet):
            if self.curves is None:
                raise TypeError(
                    f"{type(estimator).__name__} has rules without survival curves. Score "
                    "SurvivalRules.fit(rules, X_train, y_train), store them as rules_, or pass "
                    "rows for the curves: make_survival_scorer(..., curves=(X, y))."
                )
            rows, outcomes = self.curves
            rules = SurvivalRules.fit(rules, transform(rows), outcomes)
        if self.score == "brier":
            brier_settings = {k: v for k, v in self.settings.items() if k in ("times", "uncovered")}
            return -integrated_brier_score(rules, transform(X), y, **brier_settings)
        value = survival_scores(rules, transform(X), y, **self.settings)[self.score]
        return value if _directions()[self.score] else -value

    def _accept_sample_weight(self) -> bool:
        return False  # scikit-survival's estimators accept no weights

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata that the scorer requests: none."""
        return MetadataRequest(owner=self)

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        more = "" if self.curves is None else ", curves=..."
        return f"make_survival_scorer({self.score!r}{arguments}{more})"


def make_survival_scorer(
    score: str = "brier", *, curves: tuple[Any, Any] | None = None, **settings: Any
) -> SurvivalScorer:
    """Create a scorer of survival rules for ``GridSearchCV`` and similar tools.

    Parameters
    ----------
    score : {"brier", "skill", "ice", "fire", "q", ...}, default="brier"
        Score of :func:`survival_scores`; losses (Brier, FiRe and Q) are negated.
    curves : tuple (X, y), optional
        For estimators whose ``rules_`` are a plain RuleSet: rows and outcomes from which curves are
        estimated. They must not be among the rows that the search scores.
    **settings
        Further parameters of :func:`survival_scores`: ``times``, ``uncovered``, ``completeness``,
        ``psi``, ``phi`` and ``rho``.

    Returns
    -------
    SurvivalScorer
        Scorer of :class:`SurvivalRules`, or of estimators that have them as ``rules_``, also at the
        end of a Pipeline or search.

    Raises
    ------
    ValueError
        If there is no such score, or a setting has an invalid value.
    TypeError
        If there is no such setting, or `curves` is not a pair.

    Notes
    -----
    Censoring is estimated from the rows of the curves, in cross-validation the training folds.
    Without `times`, every fold has its own range, which depends on the outcomes of its rows;
    candidates are still compared on the same ranges.

    Examples
    --------
    >>> from skescore.scorers import make_survival_scorer
    >>> make_survival_scorer("fire", psi=2.0)
    make_survival_scorer('fire', psi=2.0)
    """
    if score not in (directions := _directions()):
        raise ValueError(f"There is no survival score {score!r}. {did_you_mean(score, directions)}")
    names = ("times", "uncovered", "completeness", *all_weights())
    unknown = sorted(set(settings) - set(names))
    if unknown:
        raise TypeError(
            f"make_survival_scorer has no setting {unknown[0]!r}. {did_you_mean(unknown[0], names)}"
        )
    # Checked here, since a search treats an error while scoring as a failed candidate.
    check_settings(**settings)
    if curves is not None and not (isinstance(curves, tuple) and len(curves) == 2):
        raise TypeError(f"curves must be a pair (X, y), got {type(curves).__name__}.")
    return SurvivalScorer(score, curves, settings)


def _rules_of(estimator: Any) -> tuple[SurvivalRules | RuleSet, Callable[[Any], Any]]:
    """Find the rules of a fitted model, and the transformation of rows before them."""
    model, transform, _ = unwrap(estimator)
    rules = getattr(model, "rules_", model)
    if not isinstance(rules, SurvivalRules | RuleSet):
        raise TypeError(
            f"{type(estimator).__name__} has no rules to score: pass SurvivalRules, a fitted model "
            "that has them as rules_, or a Pipeline or search (refit=True) that ends in one."
        )
    return rules, transform
