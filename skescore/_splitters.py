"""Cross-validation splitters for shuffled, grouped and time-ordered rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["make_group_splitter", "make_time_splitter"]


def make_group_splitter(
    n_folds: int, groups: Any, y: Any = None, *, random_state: int | None = None
) -> Any:
    """Create a splitter that puts all rows of a group into the same fold.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    groups : array-like of shape (n_rows,)
        Group of each row.
    y : array-like of shape (n_rows,), optional
        Classes; each fold preserves their shares as far as the groups allow. None in regression.
    random_state : int, optional
        Seed for shuffling the groups; None does not shuffle them.

    Returns
    -------
    StratifiedGroupKFold or GroupKFold
        The splitter.

    Raises
    ------
    ValueError
        If there are fewer groups than folds.
    """
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    n_groups = len(pd.unique(np.asarray(groups)))
    if n_groups < n_folds:
        raise ValueError(
            f"groups must have at least as many different values as there are folds ({n_folds}), "
            f"got {n_groups}. Pass fewer folds (cv, or --cv on the command line) or other groups."
        )
    shuffled: dict[str, Any] = {"shuffle": random_state is not None, "random_state": random_state}
    can_stratify = False
    if y is not None:
        can_stratify = bool(pd.Series(np.asarray(y)).value_counts().max() >= n_folds)
    kind: Any = StratifiedGroupKFold if can_stratify else GroupKFold
    return kind(n_folds, **shuffled)


def make_time_splitter(n_folds: int, n_rows: int) -> Any:
    """Create a splitter whose held-out rows come after the training rows.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    n_rows : int
        Number of rows, which must be in chronological order.

    Returns
    -------
    TimeSeriesSplit
        The splitter.

    Raises
    ------
    ValueError
        If there are too few rows.
    """
    from sklearn.model_selection import TimeSeriesSplit

    if n_rows <= n_folds:
        raise ValueError(
            f"Chronological folds need more rows than folds ({n_folds}), got {n_rows} rows. "
            "Pass fewer folds (cv, or --cv on the command line)."
        )
    return TimeSeriesSplit(n_folds)
