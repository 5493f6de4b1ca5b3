"""Choice of the winner: the smallest of the candidates that are about as good as the best."""

from __future__ import annotations

import numpy as np


def judged(scores: np.ndarray, with_all_rows: np.ndarray) -> np.ndarray:
    """Give what candidates are judged by: held-out rows and all rows, if all rows are known.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        On the held-out rows of each fold; greater is better.
    with_all_rows : ndarray of shape (n_candidates, n_folds)
        The same, weighed with all rows by :func:`mixed_score`; NaN where nothing was measured on
        all rows, minus infinity where there are no rules of all rows.

    Returns
    -------
    ndarray of shape (n_candidates, n_folds)
        These scores. Candidates that were not measured on all rows have minus infinity if each of
        them is equalled on every fold by one that was; else all have their `scores`. Those without
        rules of all rows never win.
    """
    failed = np.asarray(np.isneginf(with_all_rows).any(axis=1))
    is_unmeasured = np.asarray(np.isnan(with_all_rows).any(axis=1))
    has_final_rules = ~failed & ~is_unmeasured
    noise = 1e-12 * max(1.0, float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)))
    # What is infinite on a fold does not win anyway.
    for candidate_index in np.flatnonzero(is_unmeasured & np.isfinite(scores).all(axis=1)):
        if not (scores[has_final_rules] >= scores[candidate_index] - noise).all(axis=1).any():
            return np.where(failed[:, np.newaxis], -np.inf, scores)
    if not has_final_rules.any():  # nothing has rules of all rows
        return scores
    return np.where(has_final_rules[:, np.newaxis], with_all_rows, -np.inf)


def choose_winner(
    scores: np.ndarray, size: np.ndarray, queries: np.ndarray, standard_errors: float
) -> int:
    """Choose a candidate: the smallest of those that are as good as the best, as far as one knows.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Greater is better.
    size : ndarray of shape (n_candidates,)
        How much there is to read.
    queries : ndarray of shape (n_candidates,)
        Rows on which the black box was queried; undefined ones count as infinitely many.
    standard_errors : float
        Candidates whose mean is less than so many standard errors (of the differences on the
        folds) below the best count as good as it.

    Returns
    -------
    int
        Of equally small candidates the one with the best mean, then the one that queried least,
        then the first.

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
    """Give the places of the candidates that are as good as the best, see :func:`choose_winner`."""
    finite_indices = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(finite_indices):  # scores of one's own may be infinite
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
    """Means without their last bits, which hang on the order of the sums."""
    scale = max(1.0, float(np.abs(means[np.isfinite(means)]).max(initial=0.0)))
    return (means / scale).round(12) * scale
