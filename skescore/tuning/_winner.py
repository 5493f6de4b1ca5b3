"""What candidates are judged by, and which of them wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

#: Share of all rows in what candidates are judged by, the rest being that of held-out rows; see
#: :func:`mixed`.
SHARE_OF_ALL_ROWS = 0.368


def mixed(held_out: np.ndarray, on_all_rows: np.ndarray) -> np.ndarray:
    """Weigh what was measured on held-out rows with the same of the rules of all rows, on these.

    Parameters
    ----------
    held_out : ndarray
        On the held-out rows of each fold.
    on_all_rows : ndarray
        On all rows, of a shape that fits.

    Returns
    -------
    ndarray
        The weighted means.

    Notes
    -----
    The weights are those of the .632 estimator (Efron, Estimating the error rate of a prediction
    rule, 1983). Held-out rows judge rules like those that one will get, with much noise where rows
    are few; all rows judge the rules themselves, with little noise, but too favourably.
    """
    return (1 - SHARE_OF_ALL_ROWS) * held_out + SHARE_OF_ALL_ROWS * on_all_rows


def mixed_score(
    held_out: Mapping[str, np.ndarray],
    on_all_rows: Mapping[str, np.ndarray],
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
) -> np.ndarray:
    """Score held-out rows and all rows together, see :func:`mixed`.

    Parameters
    ----------
    held_out : dict of str to ndarray
        What the score is made of, ``size`` among it, on the held-out rows of each fold.
    on_all_rows : dict of str to ndarray
        The same on all rows, of shapes that fit.
    score : callable
        Gives the score of parts; greater is better.

    Returns
    -------
    ndarray
        Scores of the shape of `held_out`.

    Notes
    -----
    The estimator is one of errors. Scores bend them (ICE by a sigmoid), so that the mean of two
    scores is another number than the score of the mean errors; hence the parts are weighed.

    But where a fold has more or fewer rules than there are of all rows, they are other rules:
    nobody will ever get the number between, nor one of the two with the mean errors of both. There
    the lower one counts, the score of the weighed parts or the weighed score. So an extractor whose
    number of rules changes with the rows is judged with more caution than one that always gives as
    many; of two such candidates, the one with fewer rules on a fold may come out lower.
    """
    parts = {name: mixed(values, on_all_rows[name]) for name, values in held_out.items()}
    of_parts, weighed = score(parts), mixed(score(held_out), score(on_all_rows))
    as_many = held_out["size"] == on_all_rows["size"]
    return np.where(as_many, of_parts, np.minimum(of_parts, weighed))


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
    unknown = np.asarray(np.isnan(with_all_rows).any(axis=1))
    known = ~failed & ~unknown
    noise = 1e-12 * max(1.0, float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)))
    # What is infinite on a fold does not win anyway.
    for place in np.flatnonzero(unknown & np.isfinite(scores).all(axis=1)):
        if not (scores[known] >= scores[place] - noise).all(axis=1).any():
            return np.where(failed[:, np.newaxis], -np.inf, scores)
    if not known.any():  # nothing has rules of all rows
        return scores
    return np.where(known[:, np.newaxis], with_all_rows, -np.inf)


def winner(scores: np.ndarray, size: np.ndarray, asked: np.ndarray, standard_errors: float) -> int:
    """Choose a candidate: the smallest of those that are as good as the best, as far as one knows.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Greater is better.
    size : ndarray of shape (n_candidates,)
        How much there is to read.
    asked : ndarray of shape (n_candidates,)
        Questions to the black box; undefined ones count as infinitely many.
    standard_errors : float
        Candidates whose mean is less than so many standard errors (of the differences on the
        folds) below the best count as good as it.

    Returns
    -------
    int
        Of equally small candidates the one with the best mean, then the one that asked least, then
        the first.

    Notes
    -----
    After the one-standard-error rule of Breiman et al. (Classification and Regression Trees, 1984),
    with the paired differences of the same folds. The best of many candidates owes part of its
    score to luck; the smallest of those that are no worse by more than chance owes less.
    """
    near = within(scores, standard_errors)
    keys = np.nan_to_num(asked, nan=np.inf), -_rounded(scores.mean(axis=1)), size.round(9)
    return int(near[np.lexsort([key[near] for key in keys])[0]])


def within(scores: np.ndarray, standard_errors: float) -> np.ndarray:
    """Give the places of the candidates that are as good as the best, see :func:`winner`."""
    places = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(places):  # scores of one's own may be infinite
        return np.array([np.nan_to_num(scores.sum(axis=1), nan=-np.inf).argmax()])
    scores = scores[places]
    means = scores.mean(axis=1)
    best = int(_rounded(means).argmax())
    behind = scores[best] - scores
    n_folds = scores.shape[1]
    error = behind.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))
    noise = 1e-12 * max(1.0, abs(means[best]))
    return places[means[best] - means <= standard_errors * error + noise]


def _rounded(means: np.ndarray) -> np.ndarray:
    """Means without their last bits, which hang on the order of the sums."""
    scale = max(1.0, float(np.abs(means[np.isfinite(means)]).max(initial=0.0)))
    return (means / scale).round(12) * scale
