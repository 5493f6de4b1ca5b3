"""Every registered extractor, for the tests that concern all of them.

A new extractor is found through the registry. It may have an entry in `SETTINGS`, and parameters of
its own may have entries in `WRONG`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from skescore.extractors import BaseExtractor
from skescore.registry import EXTRACTORS, extractor_class
from skescore.testing import parametrize_with_extractor_checks

#: Settings with which an extractor is quick on some hundred rows, returns several rules, and draws
#: random numbers if it can.
SETTINGS: dict[str, dict[str, Any]] = {
    "cart": {"max_leaf_nodes": 6, "max_features": 1},
    "cream": {"depth": 2, "max_samples": 100},
    "exact": {"depth": 2, "max_samples": 100},
    "gridex": {"n_slices": 3, "depth": 1, "min_examples": 30},
    "gridrex": {"n_slices": 2, "depth": 1, "min_examples": 30},
    "iter": {"min_examples": 30, "max_iterations": 60, "min_update": 0.2},
    "optimal-list": {"max_rules": 3, "cuts_per_feature": 4, "max_nodes": 40},
    "optimal-tree": {"max_leaf_nodes": 3, "max_nodes": 20},
    "real": {},
    "trepan": {"max_nodes": 5, "min_sample": 200},
}

FLAG: tuple[list[Any], list[Any]] = (["no", None, 2, 0, 1], [])
#: For every parameter, values of the wrong type, then of the right type but out of range; under
#: "extractor.parameter", those of one extractor with other valid values.
WRONG: dict[str, tuple[list[Any], list[Any]]] = {
    "abstain_label": ([["a"], {"a": 1}, b"a"], []),
    "batch_size": (["all", 2.0, True, [5]], [0, -3]),
    "beam_width": (["3", 3.0, None, True], [0]),
    "ccp_alpha": (["0", None, True], [-0.1, np.nan]),
    "coefficient_tolerance": (["0.1", None, True], [-0.1, np.nan]),
    "confidence": (["0.9", None, True], [-0.1, 1.1, np.nan]),
    "criterion": ([], ["aic", 1]),
    "cuts_per_feature": (["8", 8.0, True], [0]),
    "cart.criterion": ([], ["mse", 1, "", "squared_error"]),
    "depth": (["2", 2.0, None, True], [0, -1]),
    "discretizer": (["quantile", 4], []),
    "error_threshold": (["0.1", True, [0.1]], [-0.1, np.nan]),
    "fill_gaps": FLAG,
    "gauss_components": (["2", 2.0, None, True], [1, 0]),
    "ignore_dimensions": ([5, 1.5, None, [1.5]], [[4], [-1], ["z"]]),
    "features": (["x0", 1], [[], ["no such feature"], [99]]),
    "ignore_threshold": (["0.1", None, True], [-0.1, 1.5, np.nan]),
    "importance_threshold": (
        ["0.5", True, ["a"], [None], {"a": 1}],
        [-0.1, 1.1, np.nan, [], [0.1, 0.5]],
    ),
    "importances": (
        [],
        [{}, [1.0, 2.0], 3.0, [1, 2, 3, np.nan], ["a", "b", "c", "d"], [[1, 2, 3, 4]], "abcd"],
    ),
    "level_strategies": (
        [5, "ab", [5], [None], ["n_slices"]],
        [
            [],
            {},
            {"n_slices": 2},
            [{}],
            [{"importance_threshold": 0.5}],
            [{"n_slices": 2, "depth": 1}],
            [{"n_slices": 2}, {"n_slices": 0}],
            [{"n_slices": [2, 3], "importance_threshold": 0.5}],
            [{"n_slices": [2, 3], "importance_threshold": [0.5, 0.5]}],
        ],
    ),
    "max_conditions": (["1", 1.0, None, True], [0, 4]),
    "max_candidates": (["1", 1.0, True], [0]),
    "max_depth": (["3", 3.0, True, np.nan], [0, -1]),
    "max_features": ([[2], {}, True], ["all", 0, -1, 1.5]),
    "max_iterations": (["1", 1.0, None, True], [0, -1]),
    "max_leaf_nodes": (["3", 3.0, True, np.inf], [0, -1]),
    "max_literals": (["3", 3.0, None, True], [0]),
    "max_nodes": (["3", 3.0, True], [0]),
    "max_work": (["1", True], [-1, np.nan]),
    "max_rules": (["1", 1.0, True], [0]),
    "optimal-list.max_rules": (["1", 1.0, None, True], [0]),
    "max_terms": (["3", 3.0, True], [0]),
    "max_samples": (["all", 5000.0, True], [0, -1]),
    "min_examples": (["1", 1.0, None, True], [-1]),
    "min_gain": (["0.9", None, True], [-0.1, np.nan]),
    "min_precision": (["0.9", None, True], [0, 1.1, np.nan]),
    "min_sample": (["3", 3.0, None, True], [-1]),
    "min_samples_leaf": (["3", 3.0, None, True], [-1]),
    "cart.min_samples_leaf": (["1", None, True, [1]], [0, -1, 0.0, 1.5, np.nan]),
    "min_update": (["0.1", None, True], [0, -0.1, 1.5, np.nan]),
    "n_points": (["1", 1.0, None, True], [0, -1]),
    "n_features_to_select": (["3", 3.0, True], [0]),
    "n_queries": (["1", 1.0, None, True], [-1]),
    "n_slices": (["2", 2.0, None, True, [2.5], [[2]], {"a": 2}], [0, -2, [], [2, 3], 2**40]),
    "output": ([], ["plane", None]),
    "prune": ([5, ["ice"], True], ["icee", ""]),
    "purity": (["0.9", None, True], [-0.1, 1.1, np.nan]),
    "random_state": ([], ["seed", -1, 1.5]),
    "refresh_output": FLAG,
    "scale": FLAG,
    "significance": (["0.9", None, True], [-0.1, 1.1, np.nan]),
    "simplify": FLAG,
    "start": (["rules", 5, [1]], []),
    "subsumption": FLAG,
    "threshold": (["0.1", True, [0.1]], [-0.1, np.nan]),
    "time_limit": (["1", True], [-1, np.nan]),
    "tolerance": (["0.1", None, True], [-0.1, 0.6, np.nan]),
    "uncovered": ([], [None, "majority", 0, ["default"]]),
    "weighted": FLAG,
}


#: Tests of an algorithm check the bounds that it computes, not their rounding for readers, which
#: ``test_readable_rules.py`` checks.
AS_COMPUTED = {"cream", "gridex", "iter", "real", "trepan", "test_cart.py", "test_parity.py"}


@pytest.fixture(scope="module", autouse=True)
def bounds_as_computed(request):
    """Leave bounds as they were computed in the tests of single algorithms."""
    with pytest.MonkeyPatch.context() as patch:
        if AS_COMPUTED & {request.path.name, request.path.parent.name}:
            patch.setattr(BaseExtractor, "readable_bounds", False)
        yield


def make_extractor(name: str, black_box: Any, **options: Any) -> Any:
    extractor = extractor_class(name)(black_box, **(SETTINGS.get(name, {}) | options))
    if "random_state" in extractor.get_params() and "random_state" not in options:
        extractor.set_params(random_state=7)
    return extractor


CASES = [(name, task) for name, spec in EXTRACTORS.items() for task in spec.tasks]


def wrong_values() -> list[Any]:
    """Return parameters: an extractor, a parameter, an invalid value and the error it raises."""
    return [
        pytest.param(name, parameter, value, error, id=f"{name}-{parameter}-{value!r:.40}")
        for name in EXTRACTORS
        for parameter in extractor_class(name)(None).get_params(deep=False)
        if parameter != "estimator"
        for error, group in zip(
            (TypeError, ValueError),
            WRONG.get(f"{name}.{parameter}") or WRONG.get(parameter, ([], [])),
            strict=True,
        )
        for value in group
    ]


def pytest_generate_tests(metafunc) -> None:
    """Parametrize the tests that concern all extractors."""
    if {"extractor_name", "wrong_value"} <= set(metafunc.fixturenames):
        names = ("extractor_name", "parameter", "wrong_value", "error")
        metafunc.parametrize(names, wrong_values())
    if metafunc.function.__name__ == "test_extractors_keep_the_contract":
        boxes = {"classification": KNeighborsClassifier(), "regression": KNeighborsRegressor()}
        mark = parametrize_with_extractor_checks(
            [make_extractor(name, clone(boxes[task])) for name, task in CASES],
            exclude=["check_hash_seed"],  # test_faults.py starts two processes for all at once
        )
        metafunc.parametrize(*mark.args)


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def case(request) -> tuple[str, str]:
    """Return a registered extractor and a task that it supports."""
    return request.param


@pytest.fixture
def name(case) -> str:
    return case[0]


@pytest.fixture
def able(case) -> str:
    return case[1]


@pytest.fixture
def make(name, able):
    """Make the extractor around a black box, by default the nearest neighbors."""

    def make(black_box: Any = None, **options: Any) -> Any:
        if black_box is None:
            kind = KNeighborsClassifier if able == "classification" else KNeighborsRegressor
            black_box = kind(9)
        return make_extractor(name, clone(black_box), **options)

    return make
