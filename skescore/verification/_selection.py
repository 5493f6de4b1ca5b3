"""Verified disagreement of the candidates of a search, and a limit on it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._validation import check_integer, check_number
from skescore.rules import RuleSet
from skescore.verification._limits import VerificationLimits
from skescore.verification._result import Verification
from skescore.verification._verify import verify

if TYPE_CHECKING:
    import pandas as pd

    from skescore.tuning import ExtractorSearchCV

__all__ = ["DISAGREEMENT", "VerifiedChoice", "choose_verified"]

#: Column of the leaderboard: upper bound of the disagreement near the data.
DISAGREEMENT = "disagreement"


@dataclass(frozen=True, eq=False)
class VerifiedChoice:
    """Winner of a search after verification.

    Attributes
    ----------
    verification : Verification
        Result for the rules of the winner.
    n_verified : int
        Number of candidates that were verified.
    is_within_limit : bool
        Whether the winner keeps the limit.
    """

    verification: Verification
    n_verified: int
    is_within_limit: bool

    @property
    def disagreement(self) -> float:
        """Upper bound of the share of the neighborhood of the data that disagrees."""
        return self.verification.near_disagreement.upper


def choose_verified(
    search: ExtractorSearchCV,
    *,
    max_disagreement: float | None = None,
    n_candidates: int = 5,
    limits: VerificationLimits | None = None,
    random_state: int = 0,
) -> VerifiedChoice:
    """Verify the winner of a search, and make a better verified candidate the winner if necessary.

    Candidates are verified in the order of the leaderboard, against the black box of the winner,
    until one has at most the allowed disagreement near the data, by its upper bound. If none has,
    the one with the least becomes the winner. The leaderboard gets a column ``disagreement``, with
    NaN for candidates that were not verified.

    Parameters
    ----------
    search : ExtractorSearchCV
        A finished search.
    max_disagreement : float, optional
        Largest share of the neighborhood of the data in which rules and model may disagree. Without
        it, only the winner is verified.
    n_candidates : int, default=5
        Largest number of candidates to verify.
    limits : VerificationLimits, optional
        Limits of each verification; 20 seconds by default.
    random_state : int, default=0
        Seed of the samples.

    Returns
    -------
    VerifiedChoice

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore import ExtractorSearchCV
    >>> from skescore.verification import choose_verified
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    >>> search = ExtractorSearchCV(tree, extractors=["cart"], n_trials=3, cv=2, random_state=0)
    >>> choice = choose_verified(search.fit(X, y), max_disagreement=0.01)
    >>> choice.is_within_limit, choice.disagreement <= 0.01
    (True, True)
    """
    check_number("max_disagreement", max_disagreement, 0.0, 1.0, optional=True)
    check_integer("n_candidates", n_candidates, 1)
    limits = VerificationLimits(time_limit=20.0) if limits is None else limits
    X, model = search.data_.X, search.best_extractor_.estimator_
    threshold = math.inf if max_disagreement is None else max_disagreement
    bounds: dict[tuple[Any, Any], float] = {}
    best: tuple[float, pd.Series, Verification] | None = None
    for row, rules in _different_rules(search):
        result = verify(rules, model, X, limits=limits, random_state=random_state)
        upper = result.near_disagreement.upper
        bounds[row["extractor"], row["trial"]] = upper
        if best is None or upper < best[0]:
            best = upper, row, result
        if upper <= threshold or len(bounds) >= n_candidates:
            break
    assert best is not None  # the winner at least has been verified
    if len(bounds) > 1:
        was_picked = search.picked_
        search.choose(best[1])
        search.picked_ = was_picked
    board = search.leaderboard_
    keys = zip(board["extractor"], board["trial"], strict=True)
    board[DISAGREEMENT] = [bounds.get(key, np.nan) for key in keys]
    return VerifiedChoice(best[2], len(bounds), best[0] <= threshold)


def _different_rules(search: ExtractorSearchCV) -> Iterator[tuple[pd.Series, RuleSet]]:
    """Yield the candidates of the leaderboard with their rules of all rows, the winner first."""
    board = search.leaderboard_
    yield board.iloc[0], search.rules_
    allowed = board[(board["state"] == "complete") & board["same_as"].isna()]
    if "within_limits" in allowed and allowed["within_limits"].any():
        allowed = allowed[allowed["within_limits"].astype(bool)]
    texts = {str(search.rules_)}
    for _, row in allowed.drop(index=0, errors="ignore").iterrows():
        rules = _extract_rules(search, row)
        if rules is not None and str(rules) not in texts:
            texts.add(str(rules))
            yield row, rules


def _extract_rules(search: ExtractorSearchCV, row: pd.Series) -> RuleSet | None:
    """Extract the rules of a candidate from all rows; None if that fails."""
    try:
        rules: RuleSet = search.fit_candidate(row).rules_
    except Exception:  # as in a trial, it cannot win
        return None
    return rules
