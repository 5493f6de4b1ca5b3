"""The .632 estimator: held-out rows weighed with the rows that rules were extracted from."""

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
    are few; all rows judge the rules themselves, with little noise, but too favorably.
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
