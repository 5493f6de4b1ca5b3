"""The black box as PSyKE wants it: frames with plain names in, text labels or numbers out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from skescore.extractors._base import Extraction
from skescore.extractors.psyke._runtime import Containment
from skescore.extractors.real._codes import CodedFeature, code_rows


class Predictor(BaseEstimator):
    """Predicts from its cache where it can: PSyKE queries the same rows over and over."""

    def __init__(self, extraction: Extraction, containment: Containment) -> None:
        self.extraction = extraction
        self.containment = containment
        rows = np.ascontiguousarray(extraction.X, dtype=float)
        self._known = dict(zip(_keys(rows), extraction.predictions.tolist(), strict=True))

    def y_pred(self, points: np.ndarray) -> np.ndarray:
        """Class indices or numbers, one per point."""
        points = np.ascontiguousarray(points, dtype=float)
        keys = _keys(points)
        unknown = {key: i for i, key in enumerate(keys) if key not in self._known}
        if unknown:
            with self.containment.outside():
                found = self.extraction.query(points[list(unknown.values())], cache=False)
            self._known.update(zip(unknown, found.tolist(), strict=True))
        return np.array([self._known[key] for key in keys], dtype=self.extraction.predictions.dtype)


def _keys(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in rows]


class LabelPredictor(ClassifierMixin, Predictor):
    """PSyKE knows a classifier by its base class, and wants text for labels."""

    @property
    def labels(self) -> np.ndarray:
        """The text for each class, in an order that sorting keeps."""
        assert self.extraction.classes is not None
        return class_texts(len(self.extraction.classes))

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Texts that stand for classes."""
        return self.labels[self.y_pred(frame.to_numpy())]


class NumberPredictor(RegressorMixin, Predictor):
    """And a regressor by not being a classifier."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.y_pred(frame.to_numpy())


class BinPredictor(LabelPredictor):
    """Predicts for rows of zeros and ones, one column per bin of every feature.

    A row stands for the point that has in every feature the middle value of the rows in that bin.
    """

    def __init__(self, extraction: Extraction, containment: Containment, bins: Bins) -> None:
        super().__init__(extraction, containment)
        self.bins = bins

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return self.labels[self.y_pred(self.bins.points(frame))]


class RowPredictor(LabelPredictor):
    """Predicts for the training rows, in whatever form they are shown."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        assert len(frame) == len(self.extraction.predictions)
        return self.labels[self.extraction.predictions]


class Bins:
    """Rows as zeros and ones: one column per bin of every feature that has more than one."""

    def __init__(self, X: np.ndarray, cuts: Any) -> None:
        codes, self.features = code_rows(X, dict(enumerate(cuts)), {})
        self._middle = X[0].copy()  # of features with a single bin
        self._columns: dict[int, list[str]] = {}
        columns = {}
        for j, feature in enumerate(self.features):
            self._middle[j] = feature.examples[0]
            if len(feature.counts) > 1:
                self._columns[j] = bin_names(j, feature)
                for k, name in enumerate(self._columns[j]):
                    columns[name] = (codes[j] == k).astype(int)
        self.frame = pd.DataFrame(columns, index=range(len(X)))

    def points(self, frame: pd.DataFrame) -> np.ndarray:
        """The points that rows of zeros and ones stand for."""
        points = np.repeat(self._middle[None, :], len(frame), axis=0)
        for j, names in self._columns.items():
            chosen = frame[names].to_numpy(dtype=float).argmax(axis=1)
            points[:, j] = self.features[j].examples[chosen]
        return points


def bin_names(index: int, feature: CodedFeature) -> list[str]:
    """The columns for the bins of a feature."""
    return [f"x{index}_{k}" for k in range(len(feature.counts))]


def class_texts(n_classes: int) -> np.ndarray:
    """Texts that stand for the classes; sorted, they are in the order of the classes."""
    width = len(str(max(0, n_classes - 1)))
    return np.array([f"c{k:0{width}d}" for k in range(n_classes)], dtype=object)
