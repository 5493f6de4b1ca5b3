"""Choice of the winner: the smallest of the candidates that are about as good as the best."""

from __future__ import annotations

import numpy as np


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
