"""Verification of XGBoost, LightGBM and CatBoost compared with an enumeration of cells."""

from __future__ import annotations

import pytest
from small_ensembles import make_problem
from verification_oracle import check_problem

from skescore.black_boxes import LabelCodingClassifier

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")
catboost = pytest.importorskip("catboost")

XGBOOST = {"max_depth": 3, "enable_categorical": True, "n_jobs": 1, "learning_rate": 0.8}
LIGHTGBM = {
    "verbose": -1,
    "n_jobs": 1,
    "min_child_samples": 3,
    "min_data_per_group": 2,
    "cat_smooth": 1.0,
    "cat_l2": 1.0,
}
CATBOOST = {"depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
CLASSIFIERS = {
    "xgboost": lambda n, seed: LabelCodingClassifier(
        xgboost.XGBClassifier(n_estimators=n, random_state=seed, **XGBOOST)
    ),
    "lightgbm": lambda n, seed: lightgbm.LGBMClassifier(
        n_estimators=n, random_state=seed, **LIGHTGBM
    ),
    "catboost": lambda n, seed: catboost.CatBoostClassifier(
        iterations=n, random_state=seed, **CATBOOST
    ),
}
REGRESSORS = {
    "xgboost": lambda n, seed: xgboost.XGBRegressor(n_estimators=n, random_state=seed, **XGBOOST),
    "lightgbm": lambda n, seed: lightgbm.LGBMRegressor(
        n_estimators=n, random_state=seed, **LIGHTGBM
    ),
    "catboost": lambda n, seed: catboost.CatBoostRegressor(
        iterations=n, random_state=seed, **CATBOOST
    ),
}


@pytest.mark.parametrize("seed", range(30))
def test_verify_matches_enumeration_of_boosters(seed: int) -> None:
    check_problem(make_problem(seed, (CLASSIFIERS, REGRESSORS)))
