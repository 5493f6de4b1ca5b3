"""Every parameter of every extractor, with values of the wrong type and out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import (
    CARTExtractor,
    CREAMExtractor,
    ExACTExtractor,
    GridExExtractor,
    GridRExExtractor,
    ITERExtractor,
    REALExtractor,
    TrepanExtractor,
)
from skescore.registry import EXTRACTORS, extractor_class

X, y = load_iris(return_X_y=True)

#: Values of the wrong type, then of the right type but out of range.
COMMON: dict[str, tuple[list[Any], list[Any]]] = {
    "uncovered": ([], [None, "majority", 0, ["default"]]),
    "abstain_label": ([["a"], {"a": 1}, b"a"], []),
    "batch_size": (["all", 2.0, True, [5]], [0, -3]),
    "prune": ([5, ["ice"], True], ["icee", ""]),
}
RANDOM: dict[str, tuple[list[Any], list[Any]]] = {"random_state": ([], ["seed", -1, 1.5])}
FLAG: tuple[list[Any], list[Any]] = (["no", None, 2, 0, 1], [])
CLUSTERS: dict[str, tuple[list[Any], list[Any]]] = {
    "depth": (["2", 2.0, None, True], [0, -1]),
    "error_threshold": (["0.1", True, [0.1]], [-0.1, np.nan]),
    "gauss_components": (["2", 2.0, None, True], [1, 0]),
    "criterion": ([], ["aic", None, 1]),
    "scale": FLAG,
    "max_samples": (["all", 5000.0, True], [0, -1]),
    "ignore_threshold": (["0.1", None, True], [-0.1, 1.5, np.nan]),
    "importances": ([], [{}, [1.0, 2.0], [1, 2, 3, np.nan], "abcd"]),
    "output": ([], ["plane", None]),
}
WRONG: dict[type, dict[str, tuple[list[Any], list[Any]]]] = {
    CARTExtractor: COMMON
    | RANDOM
    | {
        "max_leaf_nodes": (["3", 3.0, True, np.inf], [1, 0, -1]),
        "max_depth": (["3", 3.0, True, np.nan], [0, -1]),
        "max_features": ([[2], {}, True], ["all", 0, -1, 1.5]),
        "criterion": ([], ["mse", 1, "", "squared_error"]),
        "min_samples_leaf": (["1", None, True, [1]], [0, -1, 0.0, 1.5, np.nan]),
        "ccp_alpha": (["0", None, True], [-0.1, np.nan]),
        "simplify": FLAG,
    },
    CREAMExtractor: COMMON | RANDOM | CLUSTERS | {"weighted": FLAG},
    ExACTExtractor: COMMON | RANDOM | CLUSTERS,
    GridExExtractor: COMMON
    | RANDOM
    | {
        "n_slices": (["2", 2.0, None, True, [2.5], [[2]], {"a": 2}], [0, -2, [], [2, 3], 2**40]),
        "importance_threshold": (
            ["0.5", True, ["a"], [None], {"a": 1}],
            [-0.1, 1.1, np.nan, [], [0.1, 0.5]],
        ),
        "depth": (["2", 2.0, None, True], [0, -1]),
        "threshold": (["0.1", True, [0.1]], [-0.1, np.nan]),
        "min_examples": (["1", 1.0, None, True], [-1]),
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
        "importances": (
            [],
            [{}, [1.0, 2.0], 3.0, [1, 2, 3, np.nan], ["a", "b", "c", "d"], [[1, 2, 3, 4]], "abcd"],
        ),
    },
}
WRONG[GridRExExtractor] = WRONG[GridExExtractor] | {
    "coefficient_tolerance": (["0.1", None, True], [-0.1, np.nan]),
}
WRONG[ITERExtractor] = (
    COMMON
    | RANDOM
    | {
        "min_update": (["0.1", None, True], [0, -0.1, 1.5, np.nan]),
        "n_points": (["1", 1.0, None, True], [0, -1]),
        "max_iterations": (["1", 1.0, None, True], [0, -1]),
        "min_examples": (["1", 1.0, None, True], [-1]),
        "threshold": (["0.1", True, [0.1]], [-0.1, np.nan]),
        "fill_gaps": FLAG,
        "ignore_dimensions": ([5, 1.5, None, [1.5]], [[4], [-1], ["z"]]),
        "refresh_output": FLAG,
    }
)
WRONG[REALExtractor] = COMMON | {
    "discretiser": (["quantile", 4], []),
    "min_precision": (["0.9", None, True], [0, 1.1, np.nan]),
    "n_queries": (["1", 1.0, None, True], [-1]),
    "max_rules": (["1", 1.0, True], [0]),
    "tolerance": (["0.1", None, True], [-0.1, 0.6, np.nan]),
    "subsumption": FLAG,
}
WRONG[TrepanExtractor] = (
    COMMON
    | RANDOM
    | {
        "max_leaf_nodes": (["3", 3.0, True], [1, 0]),
        "max_nodes": (["3", 3.0, True], [0]),
        "max_depth": (["3", 3.0, True], [0]),
        "min_sample": (["3", 3.0, None, True], [-1]),
        "min_samples_leaf": (["3", 3.0, None, True], [-1]),
        "max_literals": (["3", 3.0, None, True], [0]),
        "beam_width": (["3", 3.0, None, True], [0]),
        "purity": (["0.9", None, True], [-0.1, 1.1, np.nan]),
        "confidence": (["0.9", None, True], [-0.1, 1.1, np.nan]),
        "significance": (["0.9", None, True], [-0.1, 1.1, np.nan]),
        "min_gain": (["0.9", None, True], [-0.1, np.nan]),
        "simplify": FLAG,
    }
)
CASES = [
    pytest.param(cls, name, value, error, id=f"{cls.__name__}-{name}-{value!r:.40}")
    for cls, table in WRONG.items()
    for name, (types, values) in table.items()
    for error, group in ((TypeError, types), (ValueError, values))
    for value in group
]


def test_every_parameter_is_tried():
    assert set(WRONG) == {extractor_class(name) for name in EXTRACTORS}
    for cls, table in WRONG.items():
        assert {"estimator", *table} == set(cls(None).get_params(deep=False))


@pytest.mark.parametrize(("cls", "name", "value", "error"), CASES)
def test_parameters(cls, name, value, error):
    options: dict[str, Any] = {name: value}
    if name == "abstain_label":
        options["uncovered"] = "abstain"
    if name == "importances" and cls in (CREAMExtractor, ExACTExtractor):
        options["ignore_threshold"] = 0.5
    black_box = DecisionTreeClassifier if "classification" in cls.tasks else DecisionTreeRegressor
    extractor = cls(black_box(random_state=0), **options)
    with pytest.raises((TypeError, ValueError)) as caught:
        extractor.fit(X, y)
    assert isinstance(caught.value, error)
    message = str(caught.value)
    names = [name]
    if name == "level_strategies":
        names.append("n_slices must be")  # of one level
        names.append("n_slices and importance_threshold must")
    assert any(n in message for n in names)
    if not isinstance(value, list | dict):
        assert repr(value) in message or str(value) in message


def test_criteria_follow_the_task():
    with pytest.raises(ValueError, match="criterion must be one of None, 'squared_error', "):
        CARTExtractor(LinearRegression(), criterion="gini").fit(X, y)


def test_thresholds_must_increase():
    extractor = GridExExtractor(LogisticRegression(), n_slices=[2, 3])
    for limits in ([0.5, 0.5], [0.7, 0.3]):
        with pytest.raises(ValueError, match="must have one length, the thresholds increasing"):
            extractor.set_params(importance_threshold=limits).fit(X, y)


@pytest.mark.parametrize("cls", [CARTExtractor, GridExExtractor])
def test_parameters_are_only_checked_by_fit(cls):
    extractor = cls(LogisticRegression(), uncovered="whatever", batch_size="big")
    assert extractor.get_params()["batch_size"] == "big"
    clone(extractor)


def test_numpy_numbers_will_do():
    model = DecisionTreeClassifier(random_state=0)
    CARTExtractor(
        model, max_leaf_nodes=np.int64(3), ccp_alpha=np.float64(0.01), simplify=np.bool_(True)
    ).fit(X, y)
    GridExExtractor(
        model,
        n_slices=np.array([2, 3]),
        importance_threshold=np.array([0.2, 0.8]),
        depth=np.int8(2),
        threshold=np.float32(0.25),
        min_examples=np.uint8(3),
        random_state=np.int64(3),
        importances=np.array([0, 0, 1, 1]),
    ).fit(X, y)


def test_no_count_is_beyond_all_bounds():
    with pytest.raises(
        ValueError, match=r"max_leaf_nodes must be at most 2147483647, got 10{30}\."
    ):
        CARTExtractor(LogisticRegression(), max_leaf_nodes=10**30).fit(X, y)
