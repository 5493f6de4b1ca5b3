"""The .632 estimator: held-out rows weighed with the rows that rules were extracted from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

#: Weight of all rows in the .632 estimator; the rest is that of held-out rows.
SHARE_OF_ALL_ROWS = 0.368


def mixed(held_out: np.ndarray, on_all_rows: np.ndarray) -> np.ndarray:
    """Combine measures on held-out rows with those of the rules of all rows, by fixed weights.

    Parameters
    ----------
    held_out : ndarray
        Measures on the held-out rows of each fold.
    on_all_rows : ndarray
        Measures on all rows, in a shape that broadcasts.

    Returns
    -------
    ndarray
        The weighted means.

    Notes
    -----
    The weights are those of the .632 estimator (Efron, Estimating the error rate of a prediction
    rule, 1983). Held-out rows measure rules similar to the final ones, with much noise where rows
    are few; all rows measure the final rules, with little noise but optimistically.
    """
    return (1 - SHARE_OF_ALL_ROWS) * held_out + SHARE_OF_ALL_ROWS * on_all_rows


def mixed_score(
    held_out: Mapping[str, np.ndarray],
    on_all_rows: Mapping[str, np.ndarray],
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
) -> np.ndarray:
    """Return scores of combined parts, see :func:`mixed`.

    Parameters
    ----------
    held_out : dict of str to ndarray
        Parts of the score on the held-out rows of each fold, ``size`` included.
    on_all_rows : dict of str to ndarray
        Parts of the score on all rows, in shapes that broadcast.
    score : callable
        Formula of the score; greater is better.

    Returns
    -------
    ndarray
        Scores of the shape of `held_out`.

    Notes
    -----
    The estimator is one of errors. Scores are nonlinear in them (ICE by a sigmoid), so the mean of
    two scores differs from the score of the mean errors; therefore the parts are combined.

    Where a fold has more or fewer rules than the rows in all, the mean size is that of no rule set.
    There the lower one counts: the score of the combined parts or the combined score. So an
    extractor whose number of rules changes with the rows is judged with more caution than one that
    always returns as many. Of two such candidates, the one with fewer rules on a fold may have the
    lower score.
    """
    parts = {name: mixed(values, on_all_rows[name]) for name, values in held_out.items()}
    of_parts, weighed = score(parts), mixed(score(held_out), score(on_all_rows))
    as_many = held_out["size"] == on_all_rows["size"]
    return np.where(as_many, of_parts, np.minimum(of_parts, weighed))
