"""Held-out rows of all folds of a search, with the predictions of their folds' rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skescore.metrics import decide_rows, has_default, predict_all_rows
from skescore.rules import RowTable, as_ruleset

if TYPE_CHECKING:
    from skescore.tuning import HeldOutExtraction

__all__ = ["HeldOutRows"]


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Held-out rows in the order of the table, each of them once.

    Attributes
    ----------
    table : RowTable
        The rows.
    predictions : ndarray of shape (n_rows,)
        Predictions of rules that were extracted without the fold of the row.
    is_predicted : ndarray of bool, shape (n_rows,)
        Whether these rules predict the row.
    is_outside : ndarray of bool, shape (n_rows,)
        Whether a value of the row is outside the domain of these rules.
    labels : ndarray of shape (n_rows,) or None
        Targets of the rows; None if the search has none.
    model_predictions : ndarray of shape (n_rows,)
        Predictions of models that were fitted without the fold of the row.
    """

    table: RowTable
    predictions: NDArray[Any]
    is_predicted: NDArray[np.bool_]
    is_outside: NDArray[np.bool_]
    labels: NDArray[Any] | None
    model_predictions: NDArray[Any]

    @classmethod
    def from_folds(
        cls, folds: Sequence[HeldOutExtraction], feature_names: Sequence[str]
    ) -> HeldOutRows:
        """Predict the held-out rows of each fold; the first fold of a row counts."""
        columns: list[list[NDArray[Any]]] = [[] for _ in range(5)]
        for fold in folds:
            rules = as_ruleset(fold.extractor.rules_)
            decisions = decide_rows(rules, fold.X)
            is_covered = decisions.rule < len(rules)
            parts = (
                predict_all_rows(rules, RowTable.of(fold.X, rules.feature_names)),
                is_covered | has_default(rules),
                decisions.is_outside,
                np.asarray([] if fold.y is None else fold.y),
                fold.model_predictions,
            )
            for column, part in zip(columns, parts, strict=True):
                column.append(np.asarray(part))
        _, order = np.unique(np.concatenate([f.rows for f in folds]), return_index=True)
        predictions, is_predicted, is_outside, labels, model = map(np.concatenate, columns)
        return cls(
            RowTable.of(_take_rows([fold.X for fold in folds], order), feature_names),
            predictions[order],
            is_predicted[order],
            is_outside[order],
            labels[order] if len(labels) else None,
            model[order],
        )


def _take_rows(parts: Sequence[Any], order: NDArray[np.intp]) -> Any:
    """Concatenate tables of one kind and reorder their rows."""
    import pandas as pd

    if all(isinstance(part, pd.DataFrame) for part in parts):
        return pd.concat(parts, ignore_index=True).iloc[order]
    return np.concatenate([np.asarray(part) for part in parts])[order]
