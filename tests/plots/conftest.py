"""Plot tests draw without a screen and close all figures."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_screen() -> Iterator[None]:
    if importlib.util.find_spec("matplotlib") is None:
        yield
        return
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    yield
    pyplot.close("all")
