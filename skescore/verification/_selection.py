"""Verified disagreement of the candidates of a search, and a limit on it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from skescore._quantities import DISAGREEMENT
from skescore._validation import check_integer, check_number
from skescore.verification._limits import VerificationLimits
from skescore.verification._refine import WitnessSampling
from skescore.verification._result import Verification
from skescore.verification._verify import verify

if TYPE_CHECKING:
    import pandas as pd

    from skescore.tuning import ExtractorSearchCV

__all__ = ["UnverifiedCandidateWarning", "VerifiedChoice", "choose_verified"]

#: Shares of rows of disagreement among the query rows, which are tried in turn.
_WITNESS_SHARES = (0.02, 0.1)


class UnverifiedCandidateWarning(UserWarning):
    """Warning about a candidate whose rules could not be extracted or verified.

    It cannot win, although it may have a better score than the winner.

    Examples
    --------
    >>> import warnings
    >>> from skescore.verification import UnverifiedCandidateWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UnverifiedCandidateWarning)
    """

    __module__ = "skescore.verification"


@dataclass(frozen=True, eq=False)
class VerifiedChoice:
    """Winner of a search after verification.

    Attributes
    ----------
    verification : Verification
        Verification of the winner's rules.
    n_verified : int
        Number of candidates that were verified.
    is_within_limit : bool
        Whether the winner respects the limit.
    failures : mapping of tuple to str
        Reasons why candidates were not verified, by extractor and trial.
    """

    verification: Verification
    n_verified: int
    is_within_limit: bool
    failures: Mapping[tuple[str, int], str] = field(default_factory=dict)

    @property
    def disagreement(self) -> float:
        """Upper bound of the share of disagreement near the data."""
        return self.verification.near_disagreement.upper


def choose_verified(
    search: ExtractorSearchCV,
    *,
    max_disagreement: float | None = None,
    n_candidates: int = 5,
    use_witnesses: bool = False,
    limits: VerificationLimits | None = None,
    random_state: int = 0,
) -> VerifiedChoice:
    """Verify the winner of a search, and make a better verified candidate the winner if necessary.

    Candidates are verified in the order of the leaderboard, against the black box of the winner,
    until the upper bound of the disagreement near the data is at most `max_disagreement`. If no
    candidate respects this limit, the one with the least disagreement becomes the winner. The
    leaderboard gets a column ``disagreement``, with NaN for candidates that were not verified. If
    the extraction from all rows or the verification fails, the column ``error`` states the reason,
    and the next candidate is verified.

    Parameters
    ----------
    search : ExtractorSearchCV
        A finished search.
    max_disagreement : float, optional
        Largest share near the data in which rules and model may disagree. By default, only the
        winner is verified.
    n_candidates : int, default=5
        Largest number of candidates to verify.
    use_witnesses : bool, default=False
        Whether to repeat one extraction if no candidate respects the limit. The extraction with the
        least disagreement then gets further training rows on which its rules and the model
        disagree, see :class:`WitnessSampling`. The new rules win if they have less disagreement,
        and are added to the leaderboard with the name of the extractor and " + witnesses".
    limits : VerificationLimits, optional
        Limits of each verification; by default 20 seconds.
    random_state : int, default=0
        Seed of the samples.

    Returns
    -------
    VerifiedChoice
        The winner's verification, and whether the winner respects the limit.

    Raises
    ------
    ValueError
        If no candidate can be verified; without a limit, if the winner cannot be verified.

    Warns
    -----
    UnverifiedCandidateWarning
        For each candidate whose rules cannot be extracted or verified.

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
    threshold = math.inf if max_disagreement is None else max_disagreement
    results: dict[tuple[str, int], Verification] = {}
    failures: dict[tuple[str, int], str] = {}
    for row in _candidate_rows(search, max_disagreement is None):
        key = row["extractor"], row["trial"]
        try:
            result = _verify_candidate(search, row, [*results.values()], limits, random_state)
        except Exception as error:  # as in a trial, the candidate cannot win
            if max_disagreement is None:
                raise
            failures[key] = f"Not verified: {type(error).__name__}: {error}"
            warnings.warn(
                f"Trial {key[1]} of {key[0]} cannot win. {failures[key]}",
                UnverifiedCandidateWarning,
                stacklevel=2,
            )
            continue
        if result is not None:
            results[key] = result
            is_sufficient = result.near_disagreement.upper <= threshold
            if is_sufficient or len(results) >= n_candidates:
                break
    if not results:
        reason = next(iter(failures.values()))
        raise ValueError(f"No candidate of the search can be verified. {reason}")
    best = min(results, key=lambda key: results[key].near_disagreement.upper)
    _make_winner(search, *best)
    if use_witnesses and results[best].near_disagreement.upper > threshold:
        name, result = _extract_with_witnesses(search, results[best], limits, random_state)
        if result.near_disagreement.upper < results[best].near_disagreement.upper:
            best = name, 0
            results[best] = result
    _record(search.leaderboard_, results, failures)
    is_within_limit = results[best].near_disagreement.upper <= threshold
    return VerifiedChoice(results[best], len(results), is_within_limit, failures)


def _candidate_rows(search: ExtractorSearchCV, only_winner: bool) -> Iterator[pd.Series]:
    """Yield rows of the leaderboard that may win, the winner first."""
    board = search.leaderboard_
    yield board.iloc[0]
    candidates = board[(board["state"] == "complete") & board["same_as"].isna()]
    if "within_limits" in candidates and candidates["within_limits"].any():
        candidates = candidates[candidates["within_limits"].astype(bool)]
    if not only_winner:
        for _, row in candidates.drop(index=0, errors="ignore").iterrows():
            yield row


def _verify_candidate(
    search: ExtractorSearchCV,
    row: pd.Series,
    earlier_results: list[Verification],
    limits: VerificationLimits,
    random_state: int,
) -> Verification | None:
    """Extract the rules of a candidate from all rows and verify them; None if they are not new."""
    is_winner = row.name == 0
    rules = search.rules_ if is_winner else search.fit_candidate(row).rules_
    if any(str(rules) == str(result.ruleset) for result in earlier_results):
        return None
    model = search.best_extractor_.estimator_
    return verify(rules, model, search.data_.X, limits=limits, random_state=random_state)


def _extract_with_witnesses(
    search: ExtractorSearchCV,
    verification: Verification,
    limits: VerificationLimits,
    random_state: int,
) -> tuple[str, Verification]:
    """Extract the rules of the winner again with rows of disagreement; adopt better rules."""
    winner, data = search.best_extractor_, search.data_
    model = winner.estimator_
    options = {} if data.row_weights is None else {"sample_weight": data.row_weights}
    extractors = [
        clone(winner)
        .set_params(
            estimator=FrozenEstimator(model), sampling=WitnessSampling(verification, model, share)
        )
        .fit(data.X, None if data.y is None else data.target, **options)
        for share in _WITNESS_SHARES
    ]
    results = [
        verify(extractor.rules_, model, data.X, limits=limits, random_state=random_state)
        for extractor in extractors
    ]
    best = int(np.argmin([result.near_disagreement.upper for result in results]))
    name = f"{search.best_name_} + witnesses"
    if results[best].near_disagreement.upper < verification.near_disagreement.upper:
        was_picked = search.picked_
        search.adopt(extractors[best], name=name)
        search.picked_ = was_picked
    return name, results[best]


def _make_winner(search: ExtractorSearchCV, extractor: str, trial: int) -> None:
    """Make a candidate the winner, without recording it as a choice of the user."""
    winner = search.leaderboard_.iloc[0]
    if (winner["extractor"], winner["trial"]) != (extractor, trial):
        was_picked = search.picked_
        search.choose({"extractor": extractor, "trial": trial})
        search.picked_ = was_picked


def _record(
    board: pd.DataFrame,
    results: Mapping[tuple[str, int], Verification],
    failures: Mapping[tuple[str, int], str],
) -> None:
    """Add upper bounds of the disagreement and reasons of failures to the leaderboard."""
    keys = list(zip(board["extractor"], board["trial"], strict=True))
    board[DISAGREEMENT.name] = [
        results[key].near_disagreement.upper if key in results else np.nan for key in keys
    ]
    board["error"] = [
        failures.get(key, error) for key, error in zip(keys, board["error"], strict=True)
    ]
