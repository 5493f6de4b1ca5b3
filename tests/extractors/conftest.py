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
    "cart": {"max_leaf_nodes": 6, "max_features": 1},
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


CASES = [(name, task) for name, spec in EXTRACTORS.items() for task in spec.tasks]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def case(request) -> tuple[str, str]:
    """A registered extractor and a task that it is able to do."""
    return request.param


@pytest.fixture
def name(case) -> str:
    return case[0]


@pytest.fixture
def able(case) -> str:
    return case[1]


@pytest.fixture
def make(name, able):
    """Make the extractor around a black box, by default the nearest neighbours."""

    def make(black_box: Any = None, **options: Any) -> Any:
        if black_box is None:
            kind = KNeighborsClassifier if able == "classification" else KNeighborsRegressor
            black_box = kind(9)
        return make_extractor(name, clone(black_box), **options)

    return make
