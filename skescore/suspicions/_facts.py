"""Facts that checks for suspicious data examine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["ResultFacts", "TableFacts"]

#: Maximum number of rows on which single features are compared with the target.
_MAX_ROWS = 5000


@dataclass(frozen=True, eq=False)
class TableFacts:
    """Rows of a search, and how its folds treat them.

    Parameters
    ----------
    X : DataFrame of shape (n_rows, n_features)
        Features: numbers, or strings for categories.
    y : Series of shape (n_rows,) or None
        The target; None if there are only predictions of the black box.
    task : {"classification", "regression"}
        The task.
    groups : array-like of shape (n_rows,), optional
        Groups of rows that the folds keep together.
    is_shuffled : bool, default=True
        Whether rows are assigned to folds without regard to their order.
    identifiers : DataFrame of shape (n_rows, n_identifiers), optional
        Columns that are not features because they identify rows.
    test : DataFrame, optional
        Test rows with the same features.
    """

    X: pd.DataFrame
    y: pd.Series | None
    task: str
    groups: Any = None
    is_shuffled: bool = True
    identifiers: pd.DataFrame | None = None
    test: pd.DataFrame | None = None

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any, task: str, *, groups: Any = None, is_shuffled: bool = True
    ) -> TableFacts:
        """Create facts from the rows and the target of a search.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or None
            The target.
        task : {"classification", "regression"}
            The task.
        groups : array-like of shape (n_rows,), optional
            Groups of rows.
        is_shuffled : bool, default=True
            Whether rows are assigned to folds without regard to their order.

        Returns
        -------
        TableFacts
            The facts.
        """
        if hasattr(X, "columns"):
            columns = {str(name): np.asarray(X[name]) for name in X.columns}
            frame = pd.DataFrame(columns)
        else:
            values = np.asarray(X)
            frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])
        frame = frame.infer_objects()
        target = None
        if y is not None:
            target = pd.Series(np.ravel(np.asarray(y)), name=getattr(y, "name", None) or "y")
        return cls(frame, target, task, groups, is_shuffled)

    @property
    def target_name(self) -> str:
        """Name of the target."""
        return "y" if self.y is None else str(self.y.name)

    @cached_property
    def sampled_rows(self) -> np.ndarray:
        """Indices of the rows on which features are compared with the target: all, or a sample."""
        n_rows = len(self.X)
        if n_rows <= _MAX_ROWS:
            return np.arange(n_rows)
        return np.sort(np.random.default_rng(0).choice(n_rows, _MAX_ROWS, replace=False))

    @cached_property
    def numeric_features(self) -> dict[str, np.ndarray]:
        """Values of the numeric features, as floats, by name."""
        return {
            str(name): column.to_numpy(float, na_value=np.nan)
            for name, column in self.X.items()
            if pd.api.types.is_numeric_dtype(column.dtype)
        }


@dataclass(frozen=True)
class ResultFacts:
    """Measures of a finished search.

    Parameters
    ----------
    task : {"classification", "regression"}
        The task.
    target_name : str
        Name of the target.
    black_box_quality : mapping of str to float
        ``accuracy``, ``f1_weighted`` and ``balanced_accuracy``, or ``r2``, of the black box.
    constant_quality : mapping of str to float
        The same measures of the best constant prediction.
    fidelity : float
        Agreement of the rules with the black box on held-out or generated rows: a share, or R².
    n_rules : int
        Number of rules.
    is_fidelity_search : bool, default=False
        Whether the search maximized agreement with the black box.
    fidelity_rows : str, default="held-out rows"
        Description of the rows of `fidelity`.
    quality_rows : str, default="held-out rows"
        Description of the rows of `black_box_quality`.
    other_black_box : str, optional
        Name of another kind of black box on the command line.
    has_max_rules : bool, default=False
        Whether the number of rules was limited.
    """

    task: str
    target_name: str
    black_box_quality: Mapping[str, float]
    constant_quality: Mapping[str, float]
    fidelity: float
    n_rules: int
    is_fidelity_search: bool = False
    fidelity_rows: str = "held-out rows"
    quality_rows: str = "held-out rows"
    other_black_box: str | None = None
    has_max_rules: bool = False
