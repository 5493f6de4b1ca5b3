"""Cross-validation on a cluster gives the same scores as in this process."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor
from skescore.scorers import ice, knowledge, make_fire_scorer

# Processes of a cluster need not find this module: some packages install a `tests` of their own.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
if not importlib.util.find_spec("distributed"):
    if "distributed" in os.environ.get("SKESCORE_ENGINES", "").split(","):
        raise ImportError("distributed is not installed")
    pytest.skip("distributed is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[int]]:
    """Start a cluster of two processes; yield their process ids."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made by the cluster
        from distributed import Client, LocalCluster

        made = LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            host="127.0.0.1",
        )
        with made, Client(made) as client:
            yield sorted(client.run(os.getpid).values())


class PlacedExtractor(CARTExtractor):
    """Extractor that records the process in which it was fitted."""

    def fit(self, X: np.ndarray, y: np.ndarray | None = None) -> PlacedExtractor:
        super().fit(X, y)
        self.process_ = os.getpid()
        return self


def place(extractor: PlacedExtractor, X: np.ndarray, y: np.ndarray) -> float:
    return float(extractor.process_)


def search() -> GridSearchCV:
    black_box = DecisionTreeClassifier(max_depth=4, random_state=0)
    return GridSearchCV(
        PlacedExtractor(black_box, random_state=0),
        {"max_leaf_nodes": [3, 5], "max_depth": [2, 4]},
        scoring={"ice": ice, "fire": make_fire_scorer(psi=3), "place": place},
        refit="ice",
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_grid_search_gives_the_same_scores_on_a_cluster(cluster: list[int]) -> None:
    X, y = load_iris(return_X_y=True)
    fitted = search().fit(X, y)
    with joblib.parallel_backend("dask"):
        there = search().fit(X, y)
    assert there.best_params_ == fitted.best_params_
    assert str(there.best_estimator_.rules_) == str(fitted.best_estimator_.rules_)
    for name in ("ice", "fire"):
        for fold in range(3):
            key = f"split{fold}_test_{name}"
            np.testing.assert_array_equal(there.cv_results_[key], fitted.cv_results_[key])
    positions = {
        place for fold in range(3) for place in there.cv_results_[f"split{fold}_test_place"]
    }
    assert positions <= set(cluster)
    assert os.getpid() not in positions


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_knowledge_scorer_gives_the_same_scores_on_a_cluster(cluster: list[int]) -> None:
    X, y = load_iris(return_X_y=True)
    there = search().set_params(scoring=knowledge, refit="neg_q")
    fitted = search().set_params(scoring=knowledge, refit="neg_q").fit(X, y)
    with joblib.parallel_backend("dask"):
        there.fit(X, y)
    for name in ("ice", "neg_fire", "neg_q", "n_rules", "completeness_volume"):
        key = f"mean_test_{name}"
        np.testing.assert_array_equal(there.cv_results_[key], fitted.cv_results_[key])
