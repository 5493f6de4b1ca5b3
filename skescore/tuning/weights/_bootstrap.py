"""Bootstrap of scores over rows and of winners over folds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils import check_random_state

from skescore._validation import as_numbers, check_integer
from skescore.scorers import (
    SCORE_SPECS,
    RuleEvaluation,
    RuleScorer,
    evaluate_rules,
    get_rule_scorer,
)
from skescore.tuning._candidates import as_candidates
from skescore.tuning.weights._weighing import TIE, chosen_weights, preference

#: Largest number of draws of folds that are enumerated instead of sampled.
_MAX_ENUMERATED_DRAWS = 20_000


@dataclass(frozen=True)
class ScoreInterval:
    """Score with its bootstrap interval, from :func:`score_interval`.

    Parameters
    ----------
    score : float
        Score on the original rows.
    low, high : float
        Ends of the percentile interval.
    standard_error : float
        Standard deviation of the resampled scores.
    confidence_level : float
        Confidence level of the interval.
    n_resamples : int
        Number of resamples with a defined score.
    n_undefined : int
        Number of resamples that are ignored because their score is undefined.
    """

    score: float
    low: float
    high: float
    standard_error: float
    confidence_level: float
    n_resamples: int
    n_undefined: int


def score_interval(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    scoring: Any = "ice",
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = None,
) -> ScoreInterval:
    """Bootstrap a score of fitted rules over rows to estimate its uncertainty.

    Use it on rows from which the rules were not extracted, before you interpret small differences
    between scores.

    Parameters
    ----------
    estimator : estimator or RuleSet
        A fitted extractor, a rule set, or a Pipeline or search with a fitted extractor.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        The target; scorers with ``reference="black_box"`` ignore it.
    scoring : str or RuleScorer, default="ice"
        A scorer of :mod:`skescore.scorers` that returns one number, or its name.
    confidence_level : float, default=0.95
        Share of the resampled scores in the interval.
    n_resamples : int, default=1000
        Number of resamples.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples.

    Returns
    -------
    ScoreInterval
        The score and the ends of the interval.

    Raises
    ------
    TypeError
        If the scorer is not one of :mod:`skescore.scorers`, or there are no rules.
    ValueError
        If a parameter is out of its range, or the score is undefined on the rows or on most of the
        resamples.

    Notes
    -----
    Percentile bootstrap: each resample draws as many rows as there are, with replacement. The rules
    are matched once, and the black box is queried once. The rules do not change, so the interval
    describes the uncertainty due to the test rows, not due to the extraction. Completeness by
    volume does not depend on the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.tuning import score_interval
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X[::2], y[::2])
    >>> interval = score_interval(tree, X[1::2], y[1::2], n_resamples=100, random_state=0)
    >>> interval.low < interval.score < interval.high
    True
    """
    level, n_resamples = _check_settings(confidence_level, n_resamples)
    scores, resamples = _resample_scores({"": estimator}, X, y, scoring, n_resamples, random_state)
    return _make_interval(float(scores[0]), resamples[0], level)


def compare_scores(
    estimators: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    scoring: Any = "ice",
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = None,
) -> pd.DataFrame:
    """Compare fitted rules by a paired bootstrap over rows.

    Use it for a few refitted candidates, on rows from which no rules were extracted.

    Parameters
    ----------
    estimators : mapping of str to estimator or RuleSet
        Fitted extractors or rule sets by name.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        The target.
    scoring : str or RuleScorer, default="ice"
        A scorer of :mod:`skescore.scorers` that returns one number, or its name.
    confidence_level : float, default=0.95
        Share of the resampled scores in an interval.
    n_resamples : int, default=1000
        Number of resamples.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples.

    Returns
    -------
    pandas.DataFrame
        One row per name, the best first: ``score``, ``low``, ``high``, ``probability_best`` (share
        of the resamples in which the rules are the best, divided equally among ties) and
        ``probability_beaten`` (share in which they are worse than the rules that are best on the
        original rows).

    Raises
    ------
    TypeError, ValueError
        As :func:`score_interval`; also if there are no estimators.

    Notes
    -----
    All rules are scored on the same resamples, so rows that are difficult for all of them do not
    affect the comparison.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.tuning import compare_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> trees = {
    ...     f"{n} leaves": DecisionTreeClassifier(max_leaf_nodes=n, random_state=0).fit(
    ...         X[::2], y[::2]
    ...     )
    ...     for n in (2, 3)
    ... }
    >>> table = compare_scores(trees, X[1::2], y[1::2], n_resamples=100, random_state=0)
    >>> table["probability_best"].to_dict()
    {'3 leaves': 1.0, '2 leaves': 0.0}
    """
    level, n_resamples = _check_settings(confidence_level, n_resamples)
    if not isinstance(estimators, Mapping) or not estimators:
        raise ValueError(
            f"estimators must map at least one name to a fitted estimator, got {estimators!r}."
        )
    scores, resamples = _resample_scores(estimators, X, y, scoring, n_resamples, random_state)
    defined_scores = resamples[:, ~np.isnan(resamples).any(axis=0)]
    intervals = [
        _make_interval(float(score), row, level)
        for score, row in zip(scores, resamples, strict=True)
    ]
    is_best = defined_scores >= defined_scores.max(axis=0) - TIE
    best_index = int(np.argmax(scores))
    table = pd.DataFrame(
        {
            "score": scores,
            "low": [interval.low for interval in intervals],
            "high": [interval.high for interval in intervals],
            "probability_best": (is_best / is_best.sum(axis=0)).mean(axis=1),
            "probability_beaten": (defined_scores < defined_scores[best_index] - TIE).mean(axis=1),
        },
        index=pd.Index(list(estimators), name="name"),
    )
    return table.sort_values("score", ascending=False, kind="stable")


def win_probability(
    candidates: Any,
    score: str = "ice",
    *,
    psi: float | None = None,
    phi: float | None = None,
    rho: float | None = None,
    completeness: str = "volume",
    n_resamples: int = 10_000,
    random_state: Any = None,
) -> pd.DataFrame:
    """Estimate the probability that each candidate wins, by a bootstrap over folds.

    Use it to check whether the first place of the leaderboard is due to chance, and which other
    candidates could have won.

    Parameters
    ----------
    candidates : Candidates, sequence of Candidate or fitted search
        Measured candidates.
    score : {"ice", "fire", "q"}, default="ice"
        Score that determines the winner.
    psi : float, optional
        Weight of FiRe, for ``score="fire"``; 1 by default.
    phi, rho : float, optional
        Weights of ICE, for ``score="ice"``; 1 by default.
    completeness : {"volume", "instances"}, default="volume"
        Measure of completeness in ICE and Q.
    n_resamples : int, default=10000
        Number of resamples if there are too many draws of folds to enumerate them.
    random_state : int, RandomState instance or None, default=None
        Seed of the resamples; not used with up to eight folds.

    Returns
    -------
    pandas.DataFrame
        The most probable winner first: ``candidate`` (its index), ``extractor``, ``n_rules``,
        ``score`` and ``probability``.

    Raises
    ------
    TypeError, ValueError
        If there are no candidates, or a name, weight or measure is out of its range.

    Notes
    -----
    The same folds, drawn with replacement, are used for all candidates. The candidate with the best
    mean wins; ties go to the candidate with fewer rules, then to the earlier candidate. If there
    are at most 20,000 multisets of folds, all are enumerated with their multinomial probabilities,
    so the result is exact. Folds share training rows, so probabilities are slightly too far from
    one half.

    Examples
    --------
    >>> from skescore.tuning import Candidate, Candidates
    >>> from skescore.tuning import win_probability
    >>> def measured(trial, losses):
    ...     folds = [dict(performance=1 - loss, loss=loss, loss_q=loss, n_rules=3, size=3,
    ...                   completeness_volume=1.0, completeness_instances=1.0) for loss in losses]
    ...     return Candidate.from_measures("cart", {}, trial, tuple(folds))
    >>> candidates = Candidates([measured(0, [0.1, 0.1]), measured(1, [0.0, 0.3])])
    >>> win_probability(candidates, "fire")["probability"].tolist()
    [0.75, 0.25]
    """
    members = as_candidates(candidates)
    weights = chosen_weights(score, {"psi": psi, "phi": phi, "rho": rho})
    scores = members.scores(score, completeness=completeness, **weights)
    n_resamples = check_integer("n_resamples", n_resamples, 2, remedy="Pass 1000.")
    order = preference(members)
    signed_scores = scores[order] * SCORE_SPECS[score].sign
    shares, probabilities = _draws_of_folds(scores.shape[1], n_resamples, random_state)
    probability = np.zeros(len(members))
    batch = max(1, 2_000_000 // len(members))
    for start in range(0, len(shares), batch):
        means = shares[start : start + batch] @ signed_scores.T
        best_means = means.max(axis=1, keepdims=True)
        winners = np.argmax(means >= best_means - TIE * np.abs(best_means), axis=1)
        np.add.at(probability, order[winners], probabilities[start : start + batch])
    means = scores.mean(axis=1)
    table = pd.DataFrame(
        {
            "candidate": np.arange(len(members)),
            "extractor": [candidate.extractor for candidate in members],
            "n_rules": members.means("n_rules"),
            "score": means,
            "probability": probability,
        }
    )
    rank = np.lexsort((-means * SCORE_SPECS[score].sign, -probability))
    return table.iloc[rank].reset_index(drop=True)


def _draws_of_folds(
    n_folds: int, n_resamples: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares of the folds in all draws and the probabilities of the draws."""
    if math.comb(2 * n_folds - 1, n_folds) > _MAX_ENUMERATED_DRAWS:
        random = check_random_state(random_state)
        counts = random.multinomial(n_folds, np.full(n_folds, 1 / n_folds), size=n_resamples)
        return counts / n_folds, np.full(n_resamples, 1 / n_resamples)
    draws = np.array(list(combinations_with_replacement(range(n_folds), n_folds)))
    counts = (draws[:, :, None] == np.arange(n_folds)).sum(axis=1)
    multiplicity = np.exp(gammaln(n_folds + 1) - gammaln(counts + 1).sum(axis=1))
    return counts / n_folds, multiplicity / multiplicity.sum()


def _resample_scores(
    estimators: Mapping[str, Any], X: Any, y: Any, scoring: Any, n_resamples: int, random_state: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores of all estimators on the rows and on the same resamples."""
    scorer = get_rule_scorer(scoring)
    if not isinstance(scorer, RuleScorer) or scorer.gives_dict:
        raise TypeError(
            f"scoring must be a rule scorer that returns one number, got {scoring!r}. Pass 'ice', "
            "'neg_fire', 'neg_q' or the result of make_ice_scorer or a similar function."
        )
    evaluations = [
        evaluate_rules(estimator, X, y, reference=scorer.reference)
        for estimator in estimators.values()
    ]
    scores = np.array([float(scorer.score(evaluation)) for evaluation in evaluations])
    if np.isnan(scores).any():
        name = list(estimators)[int(np.argmax(np.isnan(scores)))]
        raise ValueError(
            f"The score {scorer.name!r} {f'of {name!r} ' if name else ''}is undefined on these "
            f"{len(evaluations[0].y_true)} rows, so there is nothing to resample. Pass a scorer "
            "with undefined=..., which sets its value there."
        )
    random = check_random_state(random_state)
    n_rows = len(evaluations[0].y_true)
    resamples = np.empty((len(evaluations), n_resamples))
    with warnings.catch_warnings():
        # Failures are counted in the result instead.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for number in range(n_resamples):
            weights = random.multinomial(n_rows, np.full(n_rows, 1 / n_rows)).astype(float)
            for index, evaluation in enumerate(evaluations):
                resamples[index, number] = scorer.score(_reweight(evaluation, weights))
    n_undefined = np.isnan(resamples).any(axis=0).sum()
    if 2 * n_undefined > n_resamples:
        raise ValueError(
            f"The score {scorer.name!r} is undefined on {n_undefined} of {n_resamples} resamples, "
            "which leaves too few for an interval. Pass more rows, or a scorer with undefined=..."
        )
    return scores, resamples


def _reweight(evaluation: RuleEvaluation, weights: np.ndarray) -> RuleEvaluation:
    """Return an evaluation with other weights of the rows."""
    copy = replace(evaluation, sample_weight=weights)
    if "volume" in vars(evaluation):  # expensive, and independent of the rows
        vars(copy)["volume"] = evaluation.volume
    return copy


def _make_interval(score: float, resamples: np.ndarray, level: float) -> ScoreInterval:
    defined_scores = resamples[~np.isnan(resamples)]
    low, high = np.quantile(defined_scores, [(1 - level) / 2, (1 + level) / 2])
    error = float(defined_scores.std(ddof=1)) if len(defined_scores) > 1 else math.nan
    return ScoreInterval(
        score,
        float(low),
        float(high),
        error,
        level,
        len(defined_scores),
        len(resamples) - len(defined_scores),
    )


def _check_settings(confidence_level: Any, n_resamples: Any) -> tuple[float, int]:
    level = float(
        as_numbers(
            "confidence_level",
            confidence_level,
            low=0.0,
            high=1.0,
            strict=True,
            remedy="Pass a share such as 0.95.",
        )
    )
    if level >= 1.0:
        raise ValueError(
            f"confidence_level must be < 1, got {confidence_level!r}. Pass a share such as 0.95."
        )
    return level, check_integer("n_resamples", n_resamples, 2, remedy="Pass 1000.")
