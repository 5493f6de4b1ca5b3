"""Every registered extractor with light settings, for the tests that concern all of them."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from skescore.registry import EXTRACTORS, extractor_class

#: Settings under which each extractor is quick on some hundred rows, and draws random numbers if
#: it ever does. A new extractor needs an entry.
SETTINGS: dict[str, dict[str, Any]] = {
    "cart": {"max_leaves": 6, "max_features": 1},
    "cream": {"depth": 2, "max_samples": 100},
    "exact": {"depth": 2, "max_samples": 100},
    "gridex": {"n_slices": 3, "depth": 1, "min_examples": 30},
    "gridrex": {"n_slices": 2, "depth": 1, "min_examples": 30},
    "iter": {"min_examples": 30, "max_iterations": 60, "min_update": 0.2},
    "real": {},
    "trepan": {"max_nodes": 5, "min_sample": 200},
}


def make_extractor(name: str, black_box: Any, **options: Any) -> Any:
    extractor = extractor_class(name)(black_box, **(SETTINGS[name] | options))
    if "random_state" in extractor.get_params() and "random_state" not in options:
        extractor.set_params(random_state=7)
    return extractor


@pytest.fixture(params=list(EXTRACTORS))
def name(request) -> str:
    return request.param


@pytest.fixture(params=["classification", "regression"])
def able(request, name) -> str:
    """A task that the extractor is able to do."""
    if request.param not in EXTRACTORS[name].tasks:
        pytest.skip(f"{name} does no {request.param}")
    return request.param


@pytest.fixture
def make(name, able):
    """Make the extractor around a black box, by default the nearest neighbours."""

    def make(black_box: Any = None, **options: Any) -> Any:
        if black_box is None:
            kind = KNeighborsClassifier if able == "classification" else KNeighborsRegressor
            black_box = kind(9)
        return make_extractor(name, clone(black_box), **options)

    return make
