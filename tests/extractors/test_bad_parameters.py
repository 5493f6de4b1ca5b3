"""Every parameter of every extractor, with values of the wrong type and out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.registry import extractor_class

X, y = load_iris(return_X_y=True)


def test_parameters_reject_invalid_values(extractor_name, parameter, wrong_value, error):
    options: dict[str, Any] = {parameter: wrong_value}
    if parameter == "abstain_label":
        options["uncovered"] = "abstain"
    cls = extractor_class(extractor_name)
    if parameter == "importances" and "ignore_threshold" in cls(None).get_params():
        options["ignore_threshold"] = 0.5
    black_box = DecisionTreeClassifier if "classification" in cls.tasks else DecisionTreeRegressor
    extractor = cls(black_box(random_state=0), **options)
    with pytest.raises((TypeError, ValueError)) as caught:
        extractor.fit(X, y)
    assert isinstance(caught.value, error)
    message = str(caught.value)
    names = [parameter]
    if parameter == "level_strategies":
        names.append("n_slices must be")  # of one level
        names.append("n_slices and importance_threshold must")
    assert any(n in message for n in names)
    if not isinstance(wrong_value, list | dict):
        assert repr(wrong_value) in message or str(wrong_value) in message


def test_criterion_must_suit_the_task():
    with pytest.raises(ValueError, match="criterion must be one of None, 'squared_error', "):
        CARTExtractor(LinearRegression(), criterion="gini").fit(X, y)


def test_importance_thresholds_must_increase():
    extractor = GridExExtractor(LogisticRegression(), n_slices=[2, 3])
    for limits in ([0.5, 0.5], [0.7, 0.3]):
        with pytest.raises(ValueError, match="must have the same length, and the thresholds"):
            extractor.set_params(importance_threshold=limits).fit(X, y)


@pytest.mark.parametrize("cls", [CARTExtractor, GridExExtractor])
def test_parameters_are_checked_by_fit_only(cls):
    extractor = cls(LogisticRegression(), uncovered="whatever", batch_size="big")
    assert extractor.get_params()["batch_size"] == "big"
    clone(extractor)


def test_parameters_accept_numpy_numbers():
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


def test_max_leaf_nodes_rejects_huge_counts():
    with pytest.raises(
        ValueError, match=r"max_leaf_nodes must be at most 2147483647, got 10{30}\."
    ):
        CARTExtractor(LogisticRegression(), max_leaf_nodes=10**30).fit(X, y)
