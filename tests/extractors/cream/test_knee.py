"""The knee of a curve, beside another implementation of Kneedle."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kneed import KneeLocator

from skescore.extractors.cream._candidates import knee_of


def elsewhere(curve: np.ndarray) -> float | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions warn where there is no knee
        return KneeLocator(
            np.arange(len(curve)), curve, curve="convex", direction="decreasing", online=True
        ).knee_y


SHAPES = {
    "scattered": lambda random, n: random.exponential(size=n),
    "steps": lambda random, n: random.integers(0, 4, n).astype(float),
    "powers": lambda random, n: random.uniform(size=n) ** random.uniform(0.1, 9),
    "one far out": lambda random, n: np.append(random.uniform(size=n - 1), 1e6),
    "tiny": lambda random, n: np.abs(random.normal(size=n)).round(1) * 1e-300,
    "straight": lambda random, n: np.linspace(0, 1, n),
    "two bends": lambda random, n: np.concatenate(
        [10 + random.exponential(size=n // 2), random.exponential(size=n - n // 2)]
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("longest", [8, 120])
def test_random_curves(shape, longest):
    random = np.random.default_rng(0)
    for _ in range(100):
        curve = np.sort(SHAPES[shape](random, random.integers(3, longest)))[::-1]
        if curve[0] > curve[-1]:
            assert knee_of(curve) == elsewhere(curve)


@given(st.lists(st.integers(0, 6) | st.floats(0, 1e6), min_size=3, max_size=12))
@settings(max_examples=300)
def test_any_curve(heights):
    curve = np.sort(np.array(heights, dtype=float))[::-1]
    if curve[0] > curve[-1]:
        assert knee_of(curve) == elsewhere(curve)


@pytest.mark.parametrize("curve", [[], [1.0], [2.0, 1.0], [3.0, 3.0, 3.0], [3.0, 2.0, 1.0]])
def test_curves_without_a_knee(curve):
    assert knee_of(np.array(curve)) is None


def test_plots_are_not_imported():
    program = "import sys, skescore.extractors.cream; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
