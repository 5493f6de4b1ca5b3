"""ExtractorSearchCV passes the estimator checks of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore.tuning import ExtractorSearchCV

SEARCHES = [
    ExtractorSearchCV(black_box(max_depth=3, random_state=0), n_trials=2, cv=2, random_state=0)
    for black_box in (DecisionTreeClassifier, DecisionTreeRegressor)
]


# Classes with fewer rows than folds, and as many classes as leaves, are part of the checks.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(SEARCHES)
def test_search_passes_scikit_learn_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.parametrize(
    ("search", "kind"), [(SEARCHES[0], "classifier"), (SEARCHES[1], "regressor")]
)
def test_tags_follow_the_black_box(search: ExtractorSearchCV, kind: str) -> None:
    tags = get_tags(search)
    assert tags.estimator_type == kind
    assert tags.target_tags.required
    assert not tags.target_tags.multi_output
    if kind == "classifier":
        assert not tags.classifier_tags.multi_label
