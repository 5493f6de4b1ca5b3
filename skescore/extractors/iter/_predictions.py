"""The black box's predictions as vectors that add up, and points to query inside strips.

A vector of numbers stands for every prediction. The mean vector of a set of predictions says what
they are on the whole, and how far they differ. Gaps and impurities are in whole units of `_UNIT`.
"""

from __future__ import annotations

import numpy as np

from skescore._random import combine

#: Gaps are measured in this unit (of the predictions' extent), so that rounding decides nothing.
_UNIT = 1e-9
#: Predictions beyond this are taken for this: their squares must not overflow.
_LARGEST_PREDICTION, _LARGEST_SCALED, _LEAST_SCALE = 1e150, 1e100, 1e-150


class Labels:
    """Class indices; the vector of a prediction is 1 for its class and 0 for the others."""

    def __init__(self, codes: np.ndarray, n_classes: int) -> None:
        self._codes = codes
        self.width = n_classes

    def encode(self, predictions: np.ndarray) -> np.ndarray:
        """Class indices stay as they are."""
        return predictions

    def rows(self, index: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Class counts of some rows, by group."""
        return self.sums(self._codes[index], group, n_groups)

    def sums(self, encoded: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Class counts, by group."""
        flat = np.bincount(group * self.width + encoded, minlength=n_groups * self.width)
        return flat.reshape(n_groups, self.width).astype(float)

    def gaps(self, means: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Share of predictions that would have to change for the same class probabilities."""
        return np.round(np.abs(means - mean).sum(axis=1) * (0.5 / _UNIT))

    def impurities(self, means: np.ndarray) -> np.ndarray:
        """Share outside the majority class."""
        return np.round((1 - means.max(axis=1)) / _UNIT)

    def outputs(self, means: np.ndarray) -> np.ndarray:
        """The majority class, of equally common ones the smallest index."""
        return means.argmax(axis=1)

    def limit(self, threshold: float) -> float:
        """The largest gap within a threshold; half a unit allows for rounding."""
        return min(threshold / _UNIT + 0.5, _LARGEST_SCALED)


class Numbers:
    """Numbers, shifted and scaled to -1 .. 1; the vector of a prediction is it and its square."""

    width = 2

    def __init__(self, predictions: np.ndarray) -> None:
        low, high = float(predictions.min()), float(predictions.max())
        self._centre = low / 2 + high / 2
        self._scale = max(high / 2 - low / 2, _LEAST_SCALE)
        self._values = self.encode(predictions)

    def encode(self, predictions: np.ndarray) -> np.ndarray:
        """Shift and scale."""
        scaled = np.clip(predictions, -_LARGEST_PREDICTION, _LARGEST_PREDICTION)
        scaled -= self._centre
        scaled /= self._scale
        return np.clip(scaled, -_LARGEST_SCALED, _LARGEST_SCALED, out=scaled)

    def rows(self, index: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Sums and sums of squares of some rows, by group."""
        return self.sums(self._values[index], group, n_groups)

    def sums(self, encoded: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Sums and sums of squares, by group."""
        result = np.empty((n_groups, 2))
        result[:, 0] = np.bincount(group, encoded, n_groups)
        result[:, 1] = np.bincount(group, encoded * encoded, n_groups)
        return result

    def gaps(self, means: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Distance of the means."""
        return np.round(np.abs(means[:, 0] - mean[0]) / _UNIT)

    def impurities(self, means: np.ndarray) -> np.ndarray:
        """Standard deviation."""
        variance = np.maximum(means[:, 1] - means[:, 0] ** 2, 0.0)
        return np.round(np.sqrt(variance) / _UNIT)

    def outputs(self, means: np.ndarray) -> np.ndarray:
        """The mean, in the target's units."""
        return means[:, 0] * self._scale + self._centre

    def limit(self, threshold: float) -> float:
        """The largest gap within a threshold in the target's units."""
        return min(threshold / self._scale / _UNIT + 0.5, _LARGEST_SCALED)


Predictions = Labels | Numbers


class PointSource:
    """Uniform points in boxes, the same for the same key whatever was drawn before.

    One Latin hypercube sample serves all boxes, each with a shift of its own: a hash of the seed
    and the box's key. So every point is uniform in its box, and a point costs a few additions.
    """

    def __init__(self, seed: int, n_points: int, n_features: int) -> None:
        self._features = np.arange(n_features)
        self._seed = seed
        numbers = np.arange(n_points)[:, None]
        strata = _uniform(combine(combine(seed, numbers), self._features)).argsort(axis=0)
        within = _uniform(combine(combine(seed + 1, numbers), self._features))
        self._sample = (strata + within) / max(n_points, 1)

    def draw(self, keys: np.ndarray, lower: np.ndarray, upper: np.ndarray, most: int) -> np.ndarray:
        """Points of boxes."""
        shift = _uniform(combine(combine(keys, self._seed)[:, None], self._features))
        share = self._sample[None, :most] + shift[:, None]
        share -= share >= 1.0
        share *= (upper - lower)[:, None]
        share += lower[:, None]
        return share


def _uniform(keys: np.ndarray) -> np.ndarray:
    return (keys >> np.uint64(11)) * 2.0**-53
