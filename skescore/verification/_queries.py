"""Queries of the rules and of the black box for points of the domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skescore.black_boxes import finite_predictions
from skescore.extractors import Oracle
from skescore.rules import RuleSet
from skescore.verification._rows import RowCodes

#: Maximum number of points that are converted to rows at a time.
_BATCH = 50_000


class PointQueries:
    """Queries of rules and black box for points, through their predict methods only.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    black_box : estimator
        The fitted model.
    codes : RowCodes
        Codes that convert points to rows.

    Attributes
    ----------
    n_queries : int
        Number of rows for which the model was queried.
    """

    def __init__(self, rules: RuleSet, black_box: Any, codes: RowCodes) -> None:
        self.rules = rules
        self.codes = codes
        self.black_box = black_box
        self._oracle = Oracle(black_box, like=codes.rows)
        self._is_regression = rules.task == "regression"

    @property
    def n_queries(self) -> int:
        """Number of rows for which the model was queried."""
        return self._oracle.n_rows

    def predict(self, points: np.ndarray) -> np.ndarray:
        """Return the predictions of the model."""
        parts = [
            self._oracle.query(self.codes.decode(points[begin : begin + _BATCH]), cache=False)
            for begin in range(0, len(points), _BATCH)
        ]
        if not parts:
            return np.empty(0)
        predictions = np.concatenate(parts)
        return finite_predictions(predictions) if self._is_regression else predictions

    def apply_rules(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the index of the rule that predicts each point, and the predictions."""
        assigned = self.rules.assign(self.codes.decode(points))
        outputs = np.full(len(points), np.nan if self._is_regression else None, dtype=object)
        is_predicted = (assigned >= 0) | (self.rules.fallback is not None)
        if is_predicted.any():
            selected = points[is_predicted]
            outputs[is_predicted] = self.rules.predict(self.codes.decode(selected))
        return assigned, outputs.astype(float) if self._is_regression else outputs

    def probabilities(self, points: np.ndarray) -> np.ndarray | None:
        """Return the probabilities of the classes; None if the model has none."""
        if self._is_regression or not hasattr(self.black_box, "predict_proba"):
            return None
        rows = self.codes.decode(points)
        names = getattr(self.black_box, "feature_names_in_", None)
        if hasattr(rows, "columns") and names is not None and set(names) <= set(rows.columns):
            rows = rows[list(names)]
        elif (
            hasattr(rows, "columns") and names is None and hasattr(self.black_box, "n_features_in_")
        ):
            rows = rows.to_numpy()
        elif not hasattr(rows, "columns") and names is not None:
            rows = pd.DataFrame(rows, columns=list(names))
        return np.asarray(self.black_box.predict_proba(rows), dtype=float)

    @property
    def classes(self) -> list[Any]:
        """Labels of the probabilities."""
        return list(np.asarray(self.black_box.classes_).tolist())
