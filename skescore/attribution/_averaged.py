"""Degrees of responsibility averaged over several contrasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import check_integer
from skescore.attribution._brex import BReX
from skescore.attribution._contrasts import ContrastPairs, as_table, nearest_rows, select_values
from skescore.attribution._responsibility import responsibility

__all__ = ["AveragedResponsibility", "averaged_responsibility"]

#: Largest number of features that differ from a contrast for which all flips are tried.
_TABLE_LIMIT = 12
#: Number of pairs of row and contrast that are processed at a time.
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class AveragedResponsibility:
    """Degrees of responsibility averaged over several contrasts.

    ``np.asarray(result)`` returns `values`. Created by :func:`averaged_responsibility`. All arrays
    except `n_contrasts` have shape (n_rows, n_features).

    Parameters
    ----------
    values : ndarray of float
        Mean over the contrasts.
    std : ndarray of float
        Standard deviation over the contrasts; 0 for a single contrast.
    minimum, maximum : ndarray of float
        Smallest and largest degree over the contrasts.
    frequency : ndarray of float
        Fraction of the contrasts for which the feature has a positive responsibility.
    n_contrasts : ndarray of int, shape (n_rows,)
        Number of contrasts of each row.
    feature_names : tuple of str
        Names of the columns.
    """

    values: NDArray[np.float64]
    std: NDArray[np.float64]
    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    frequency: NDArray[np.float64]
    n_contrasts: NDArray[np.int64]
    feature_names: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def to_frame(self, row: int = 0) -> pd.DataFrame:
        """Return the results of one row as a table.

        Parameters
        ----------
        row : int, default=0
            Index of the row.

        Returns
        -------
        pandas.DataFrame
            One row per feature, the most responsible first.
        """
        names = ("values", "std", "minimum", "maximum", "frequency")
        table = pd.DataFrame(
            {name: getattr(self, name)[row] for name in names}, index=list(self.feature_names)
        ).rename(columns={"values": "mean"})
        return table.sort_values("mean", ascending=False, kind="stable")


def averaged_responsibility(
    model: Any,
    X: Any,
    background: Any,
    *,
    n_contrasts: int = 10,
    max_batch: int = 8192,
    random_state: Any = None,
) -> AveragedResponsibility:
    """Average degrees of responsibility over the nearest rows with another decision.

    The standard deviations show which degrees depend on the choice of the contrast.

    Parameters
    ----------
    model : estimator or callable
        The model, as in `responsibility`.
    X : array-like or DataFrame, shape (n_rows, n_features)
        Rows to explain.
    background : array-like or DataFrame, shape (n_background, n_features)
        Candidates for contrasts, such as the training rows.
    n_contrasts : int, default=10
        Maximum number of contrasts per row; the nearest rows are used.
    max_batch : int, default=8192
        Maximum number of rows per query of the model.
    random_state : int, Generator, SeedSequence or RandomState, optional
        Seed of the flip search for contrasts that differ in more than 12 features, see the Notes.

    Returns
    -------
    AveragedResponsibility
        Means, standard deviations, extremes and frequencies of the degrees.

    Raises
    ------
    ValueError
        If all background rows have the same decision as a row of `X`, or an argument is invalid.

    Notes
    -----
    Degrees are exact for contrasts that differ in at most 12 features; otherwise they are found by
    the flip search of `BReX`. Contrasts come from `nearest_contrasts`.

    Examples
    --------
    >>> from skescore.attribution import averaged_responsibility
    >>> def approved(X):
    ...     return (X[:, 0] > 50) & (X[:, 1] < 10)
    >>> background = [[60, 5], [45, 9], [52, 12], [20, 30]]
    >>> result = averaged_responsibility(approved, [[58, 8]], background)
    >>> result.values.round(3).tolist(), result.n_contrasts.tolist()
    ([[0.667, 0.667]], [3])
    >>> result.frequency.round(3).tolist()
    [[0.667, 0.667]]
    """
    remedy = "10 is the default."
    n_contrasts = check_integer("n_contrasts", n_contrasts, 1, remedy=remedy)
    max_batch = check_integer("max_batch", max_batch, 1, remedy="8192 is the default.")
    rows = as_table(X)
    all_rows, indices = nearest_rows(model, rows, background, max_batch, n_contrasts)
    owner, rank = np.nonzero(indices >= 0)
    degrees = np.empty((len(owner), rows.shape[1]))
    for start in range(0, len(owner), _BLOCK):
        part = slice(start, start + _BLOCK)
        part_rows = select_values(all_rows, owner[part])
        contrast = select_values(all_rows, indices[owner[part], rank[part]])
        degrees[part] = _degrees(model, part_rows, contrast, max_batch, random_state)
    counts = np.bincount(owner, minlength=len(rows))
    starts = np.cumsum(counts) - counts
    mean = np.add.reduceat(degrees, starts) / counts[:, None]
    squares = np.add.reduceat((degrees - mean[owner]) ** 2, starts) / counts[:, None]
    names = rows.columns if isinstance(rows, pd.DataFrame) else range(1, rows.shape[1] + 1)
    return AveragedResponsibility(
        mean,
        np.sqrt(squares),
        np.minimum.reduceat(degrees, starts),
        np.maximum.reduceat(degrees, starts),
        np.add.reduceat((degrees > 0).astype(float), starts) / counts[:, None],
        counts,
        tuple(str(name) if isinstance(rows, pd.DataFrame) else f"x{name}" for name in names),
    )


def _degrees(
    model: Any, rows: Any, other: Any, max_batch: int, random_state: Any
) -> NDArray[np.float64]:
    differs = ContrastPairs(model, rows, other, max_batch).differs
    if int(differs.sum(axis=1).max(initial=0)) <= _TABLE_LIMIT:
        exact = responsibility(
            model, rows, contrast=other, method="exhaustive", max_batch=max_batch
        )
        return np.asarray(exact, dtype=float)
    explainer = BReX(
        model, masking="sampled", contrast=other, max_batch=max_batch, random_state=random_state
    )
    return explainer.explain(rows).values
