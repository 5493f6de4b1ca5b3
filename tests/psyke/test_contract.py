"""PSyKEExtractor follows the contracts of scikit-learn and skescore, with the real PSyKE."""

from __future__ import annotations

import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore import PSyKEExtractor
from skescore.testing import parametrize_with_extractor_checks

pytestmark = pytest.mark.filterwarnings("ignore")  # these checks use very few rows


def too_many_features(extractor):
    if extractor.algorithm != "gridex":
        return {}
    reason = "30 features make more cells than PSyKE can look at"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@parametrize_with_checks(
    [
        PSyKEExtractor(DecisionTreeClassifier(random_state=0), "cart"),
        PSyKEExtractor(DecisionTreeRegressor(random_state=0), "cart"),
        PSyKEExtractor(DecisionTreeClassifier(random_state=0), "gridex"),
    ],
    expected_failed_checks=too_many_features,
)
def test_extractor_passes_checks_of_scikit_learn(estimator, check):
    check(estimator)


@parametrize_with_extractor_checks(
    [PSyKEExtractor(DecisionTreeClassifier(random_state=0), "cart", random_state=0)],
    exclude=("check_hash_seed",),
)
def test_extractor_passes_checks_of_skescore(extractor, check):
    check(extractor)
