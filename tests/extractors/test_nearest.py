"""The nearest rows are those of all distances, whatever the number of features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from skescore.extractors import _nearest
from skescore.extractors._nearest import nearest_row_search


@pytest.mark.parametrize("n_features", [1, 8, 9, 40])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_nearest_rows_have_the_smallest_distance(
    n_features: int, offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_nearest, "_MAX_DISTANCES", 1000)  # several blocks
    rng = np.random.default_rng(n_features)
    rows = offset + rng.normal(size=(300, n_features))
    points = offset + rng.normal(size=(50, n_features))
    distances = cdist(points, rows)
    chosen = nearest_row_search(rows)(points)
    np.testing.assert_allclose(distances[np.arange(50), chosen], distances.min(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(nearest_row_search(rows)(points[:0]), [])


def test_first_of_equally_near_rows_is_chosen() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (60, 12)).astype(float)
    points = np.vstack([rows, rng.integers(0, 2, (200, 12)) + 0.5 * rng.integers(0, 2, (200, 12))])
    expected = cdist(points, rows, "sqeuclidean").argmin(axis=1)  # sums of quarters are exact
    np.testing.assert_array_equal(nearest_row_search(rows)(points), expected)
