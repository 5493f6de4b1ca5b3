"""The table that stands in for California's houses in the records of PSyKE."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

#: Digest of the target on processors without AVX-512.
_WITHOUT_AVX512 = "046fb358ce60b4d1c7590b74ac7e3f87"


def stand_in_for_california() -> tuple[np.ndarray, np.ndarray]:
    """Two bumps and a slope on the unit cube of 8 features.

    The last digits of the target decide between equally good splits of the forest. With AVX-512, on
    which the records were made, NumPy's `exp` has other last digits, and the forest is another one.
    """
    random = np.random.RandomState(0)
    a = random.uniform(size=(2000, 8))
    y = (
        2 * a[:, 0]
        + np.exp(-((a[:, 6] - 0.3) ** 2 + (a[:, 7] - 0.6) ** 2) / 0.05)
        + 0.5 * (a[:, 6] > 0.7) * (a[:, 7] < 0.4)
        + 0.3 * a[:, 1]
        - 0.4 * a[:, 5] ** 2
        + 0.1 * random.normal(size=2000)
    )
    if hashlib.md5(y.tobytes()).hexdigest() == _WITHOUT_AVX512:
        pytest.skip("the record needs the last digits of NumPy's exp with AVX-512")
    return a, y
