"""Choice of the winner: the smallest candidate about as good as the best, by repeated folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from skescore.tuning._candidates import Candidate, Candidates
from skescore.tuning._fold_result import FoldResult
from skescore.tuning._search_objective import SearchObjective

#: Largest number of candidates that are compared on all rows or on repeated folds.
N_FINALISTS = 3
#: Largest distance of a finalist from the best candidate, in standard errors.
_STANDARD_ERRORS = 1.0
#: Share of the allowed distance within which equally small finalists are ties.
_TIE = 0.5
#: Largest number of decimals in which equal outcomes agree.
_DECIMALS = 9


def judged(scores: np.ndarray, with_all_rows: np.ndarray) -> np.ndarray:
    """Return the scores by which candidates are selected: .632 scores where they are known.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Scores on the held-out rows of each fold; greater is better.
    with_all_rows : ndarray of shape (n_candidates, n_folds)
        .632 scores, see :func:`mixed_score`; NaN without a result on all rows, minus infinity
        where the extraction from all rows failed.

    Returns
    -------
    ndarray of shape (n_candidates, n_folds)
        The .632 scores, if every candidate without a result on all rows is matched or exceeded on
        every fold by one with a result; otherwise `scores`. Candidates that cannot win have minus
        infinity.
    """
    failed = np.asarray(np.isneginf(with_all_rows).any(axis=1))
    is_unmeasured = np.asarray(np.isnan(with_all_rows).any(axis=1))
    has_final_rules = ~failed & ~is_unmeasured
    noise = 1e-12 * max(1.0, float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)))
    # Candidates with an infinite score on a fold cannot win.
    for candidate_index in np.flatnonzero(is_unmeasured & np.isfinite(scores).all(axis=1)):
        if not (scores[has_final_rules] >= scores[candidate_index] - noise).all(axis=1).any():
            return np.where(failed[:, np.newaxis], -np.inf, scores)
    if not has_final_rules.any():  # no candidate has rules of all rows
        return scores
    return np.where(has_final_rules[:, np.newaxis], with_all_rows, -np.inf)


def choose_winner(
    scores: np.ndarray, size: np.ndarray, queries: np.ndarray, standard_errors: float
) -> int:
    """Return the smallest of the candidates that are not clearly worse than the best.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Greater is better.
    size : ndarray of shape (n_candidates,)
        Sizes of the rule sets.
    queries : ndarray of shape (n_candidates,)
        Numbers of queried rows; an undefined one counts as infinite.
    standard_errors : float
        A candidate counts as good as the best if its mean is lower by at most this number of
        standard errors of the differences on the folds.

    Returns
    -------
    int
        Index of the candidate. Of equally small ones the one with the best mean, then the one with
        the fewest queries, then the first.

    Notes
    -----
    After the one-standard-error rule of Breiman et al. (Classification and Regression Trees, 1984),
    with the paired differences of the same folds. The best of many candidates owes part of its
    score to luck; the smallest of those that are no worse by more than chance owes less.
    """
    near = within(scores, standard_errors)
    keys = np.nan_to_num(queries, nan=np.inf), -_rounded(scores.mean(axis=1)), size.round(9)
    return int(near[np.lexsort([key[near] for key in keys])[0]])


def within(scores: np.ndarray, standard_errors: float) -> np.ndarray:
    """Return the indices of the candidates as good as the best, see :func:`choose_winner`."""
    finite_indices = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(finite_indices):  # the user's scores may be infinite
        return np.array([np.nan_to_num(scores.sum(axis=1), nan=-np.inf).argmax()])
    scores = scores[finite_indices]
    means = scores.mean(axis=1)
    best = int(_rounded(means).argmax())
    behind = scores[best] - scores
    n_folds = scores.shape[1]
    error = behind.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))
    noise = 1e-12 * max(1.0, abs(means[best]))
    return finite_indices[means[best] - means <= standard_errors * error + noise]


def _rounded(means: np.ndarray) -> np.ndarray:
    """Round means, as their last bits depend on the order of the sums."""
    scale = max(1.0, float(np.abs(means[np.isfinite(means)]).max(initial=0.0)))
    return (means / scale).round(12) * scale


def repeated_cv(cv: Any, task: str, seed: int) -> Any | None:
    """Return a splitter with other folds of the same number.

    It is None if `cv` is a splitter whose folds cannot be drawn again.
    """
    if isinstance(cv, KFold | StratifiedKFold) and cv.shuffle:
        return type(cv)(cv.n_splits, shuffle=True, random_state=seed)
    if cv is not None and not isinstance(cv, int | np.integer):
        return None
    kind = StratifiedKFold if task == "classification" else KFold
    return kind(5 if cv is None else int(cv), shuffle=True, random_state=seed)


def find_finalists(
    candidates: Candidates, winner: tuple[str, int], objective: SearchObjective
) -> list[Candidate]:
    """Return the winner and the candidates that are about as good as the best.

    Parameters
    ----------
    candidates : Candidates
        Candidates that may win.
    winner : tuple of str and int
        Extractor and trial of the winner.
    objective : SearchObjective
        Score of the search.

    Returns
    -------
    list of Candidate
        At most `N_FINALISTS` candidates with different outcomes: the winner, then by score.
    """
    if not len(candidates):
        return []
    scores = _judged_scores(candidates, objective)
    order = np.argsort(-scores.mean(axis=1), kind="stable")
    near = set(within(scores, _STANDARD_ERRORS).tolist())
    first = [c for c in candidates if (c.extractor, c.trial) == winner]
    ordered = first + [candidates[int(i)] for i in order if int(i) in near]
    finalists: dict[tuple[float, ...], Candidate] = {}
    for candidate in ordered:
        outcome = tuple(
            round(float(fold.get(name)), _DECIMALS)
            for fold in candidate.folds
            for name in ("score", "n_rules", "completeness_volume")
        )
        finalists.setdefault(outcome, candidate)
    return list(finalists.values())[:N_FINALISTS] if first else []


def compare_finalists(
    finalists: Sequence[Candidate],
    evaluate: Callable[[Sequence[Candidate]], Sequence[FoldResult]],
    objective: SearchObjective,
    standard_errors: float,
) -> tuple[int, np.ndarray]:
    """Evaluate finalists on further folds, and choose the winner by all folds.

    The smallest finalist that is not clearly worse than the best wins. Of equally small ones within
    half of that distance, the one that agrees most with the black box wins, then the best.

    Parameters
    ----------
    finalists : sequence of Candidate
        The winner so far, then others.
    evaluate : callable
        Returns the results of candidates on the further folds, one candidate after the other.
    objective : SearchObjective
        Score of the search.
    standard_errors : float
        Largest distance of the winner from the best finalist, in standard errors of the
        differences, see :func:`choose_winner`.

    Returns
    -------
    winner : int
        Index of the winner; 0 if a finalist failed.
    scores : ndarray of shape (n_finalists,)
        Mean scores over all folds; NaN for a finalist that failed.
    """
    results = evaluate(finalists)
    n_folds = len(results) // len(finalists)
    extended = [
        replace(c, folds=(*c.folds, *results[index * n_folds : (index + 1) * n_folds]))
        for index, c in enumerate(finalists)
    ]
    means = np.array([np.mean([fold.get("score") for fold in c.folds]) for c in extended])
    complete = np.flatnonzero(np.isfinite(means))
    if 0 not in complete:
        return 0, means
    remaining = Candidates(extended[i] for i in complete)
    scores = _judged_scores(remaining, objective)
    sizes = remaining.means("size").round(9)
    near = within(scores, standard_errors)
    smallest = near[sizes[near] == sizes[near].min()]
    tied = smallest[within(scores[smallest], _TIE * standard_errors)]
    fidelity = np.nan_to_num(remaining.means("fidelity"), nan=-np.inf).round(3)
    faithful = tied[fidelity[tied] == fidelity[tied].max()]
    queries = remaining.means("black_box_rows")
    # With equal sizes, the best mean wins, then the fewest queries, then the first.
    winner = choose_winner(scores[faithful], sizes[faithful], queries[faithful], 0.0)
    return int(complete[faithful[winner]]), means


def _judged_scores(candidates: Candidates, objective: SearchObjective) -> np.ndarray:
    """Return the scores by which the search selects, by candidate and fold."""
    return judged(
        candidates.measure("score"),
        np.array([objective.with_all_rows(c.folds, c.all_rows) for c in candidates]),
    )
