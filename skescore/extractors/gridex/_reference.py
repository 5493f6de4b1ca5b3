"""The rounding of the reference platform, so that parity with it can be tested.

The platform rounds the domain box and every box that it copies to six decimals. A box that has
been joined once therefore often no longer touches its neighbours, and joining stops early. Of
equally common classes it takes the one met first in row order. Nothing but the parity tests uses
this.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from skescore.extractors.gridex._statistics import ClassCountsTable

_DECIMALS = 6
_MARGIN = 2e-6


def reference_domain(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The platform's box around the training rows."""
    return (
        np.round(X.min(axis=0) - _MARGIN, _DECIMALS),
        np.round(X.max(axis=0) + _MARGIN, _DECIMALS),
    )


class ReferenceRounding:
    """Edges of joined boxes as the platform has them.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_parents, n_features)
        The boxes that are being cut.
    n_slices : ndarray of int, shape (n_features,)
        Slices per feature.
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray, n_slices: np.ndarray) -> None:
        self._lower, self._upper = lower, upper
        self._cut = np.flatnonzero(n_slices > 1)
        self._values: list[list[list[float]]] = [
            [
                (a + np.arange(k + 1) * ((b - a) / k)).tolist()
                for a, b, k in zip(low, high, n_slices, strict=True)
                if k > 1
            ]
            for low, high in zip(lower, upper, strict=True)
        ]

    def join(
        self,
        parent: int,
        at: int,
        low: list[int],
        high: list[int],
        other_low: list[int],
        other_high: list[int],
    ) -> tuple[list[int], list[int], Iterable[int]]:
        """Edge numbers of a union: rounded copies of the first box's, but for feature `at`."""
        values = self._values[parent]

        def rounded(feature: int, edge: int) -> int:
            known = values[feature]
            value = round(known[edge], _DECIMALS)
            if value not in known:
                known.append(value)
            return known.index(value)

        new_low = [rounded(f, e) for f, e in enumerate(low)]
        new_high = [rounded(f, e) for f, e in enumerate(high)]
        new_low[at] = min(low[at], other_low[at], key=values[at].__getitem__)
        new_high[at] = max(high[at], other_high[at], key=values[at].__getitem__)
        return new_low, new_high, range(len(low))

    def boxes(
        self, parent: np.ndarray, low: np.ndarray, high: np.ndarray, joined: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of boxes, from their parents, edge numbers, and whether they have been joined."""
        lower, upper = self._lower[parent], self._upper[parent]
        lower[joined] = np.round(lower[joined], _DECIMALS)
        upper[joined] = np.round(upper[joined], _DECIMALS)
        lower[:, self._cut], upper[:, self._cut] = self._of(parent, low), self._of(parent, high)
        return lower, upper

    def _of(self, parent: np.ndarray, edges: np.ndarray) -> np.ndarray:
        rows = zip(parent.tolist(), edges.tolist(), strict=True)
        values = [[self._values[p][f][e] for f, e in enumerate(row)] for p, row in rows]
        return np.array(values).reshape(edges.shape)


def least_norm_slopes(n: np.ndarray, gram: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Slopes of least-squares planes; of equally good ones the least in the features' own units.

    Parameters
    ----------
    n : ndarray of shape (n_boxes,)
        Points in each box; they make no difference.
    gram : ndarray of shape (n_boxes, n_features + 1, n_features + 1)
        Products of the deviations from the mean, summed; the answers come last.
    unit : ndarray of shape (n_features,)
        The unit that each feature is given in.
    """
    moments = gram[:, :-1, :-1] * (unit[:, None] * unit)
    target = gram[:, :-1, -1:] * unit[:, None]
    slopes = np.linalg.pinv(moments, rcond=1e-10, hermitian=True) @ target
    return np.asarray(slopes[:, :, 0] * unit)


def collect_first_met(
    answers: np.ndarray, box: np.ndarray, n_boxes: int, n_classes: int
) -> ClassCountsTable:
    """Count classes; of equally common ones a box takes the one met first in row order."""
    counts = np.zeros((n_boxes, n_classes))
    first = np.full((n_boxes, n_classes), len(answers))
    np.add.at(counts, (box, answers), 1)
    np.minimum.at(first, (box, answers), np.arange(len(answers)))
    commonest = counts == counts.max(axis=1, keepdims=True)
    outputs = np.where(commonest, first, len(answers) + 1).argmin(axis=1)
    return ClassCountsTable(counts, outputs)
