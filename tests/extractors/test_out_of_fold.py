"""Rules learned from labels of models that were fitted on other folds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor
from skescore.extractors._out_of_fold import out_of_fold_predictions
from skescore.extractors._sampling import draw_seed

X, Y = load_breast_cancer(return_X_y=True)


def test_out_of_fold_labels_define_rules():
    # A nearest neighbor repeats the label of every training row.
    black_box = KNeighborsClassifier(1)
    extractor = CARTExtractor(
        black_box, max_leaf_nodes=4, sampling="out-of-fold", simplify=False, random_state=0
    ).fit(X, Y)
    labels = np.empty_like(Y)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=draw_seed(0)).split(X, Y):
        labels[test] = clone(black_box).fit(X[train], Y[train]).predict(X[test])
    assert (labels != Y).any()
    tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, labels)
    np.testing.assert_array_equal(extractor.predict(X), tree.predict(X))
    # Statistics are those of the black box, which agrees with all labels.
    counts = extractor.rules_.conclusions.class_counts
    node = extractor.rules_.assign(X)
    expected = [[np.sum((node == r) & (c == Y)) for c in (0, 1)] for r in range(len(counts))]
    np.testing.assert_array_equal(counts, expected)


def test_out_of_fold_labels_weigh_as_repeated_rows():
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    extractor = CARTExtractor(DecisionTreeClassifier(random_state=0), sampling="out-of-fold")
    rules = clone(extractor).fit(X, Y, sample_weight=weights).rules_
    assert rules.conclusions.class_counts.sum() == len(rows)


def test_out_of_fold_accepts_regression():
    table = load_diabetes(as_frame=True)
    frame = table.data.assign(sex=np.where(table.data["sex"] > 0, "a", "b"))
    black_box = RandomForestRegressor(5, random_state=0)
    encoded = CARTExtractor(black_box, max_leaf_nodes=5, sampling="out-of-fold", random_state=0)
    rules = encoded.fit(frame.drop(columns="sex"), table.target).rules_
    assert len(rules) == 5
    assert np.isfinite(rules.conclusions.outputs.astype(float)).all()


def test_out_of_fold_predictions_accept_rare_classes():
    y = np.array(["a"] * 9 + ["b"])
    rows = pd.DataFrame({"x": np.arange(10.0)})
    labels = out_of_fold_predictions(
        DecisionTreeClassifier(random_state=0), rows, y, "classification"
    )
    assert labels.tolist() == ["a"] * 10


@pytest.mark.parametrize("is_frozen", [True, False])
def test_out_of_fold_needs_an_unfitted_black_box(is_frozen):
    model = RandomForestClassifier(5, random_state=0).fit(X, Y)
    extractor = CARTExtractor(FrozenEstimator(model) if is_frozen else model)
    extractor.set_params(sampling="out-of-fold")
    with pytest.raises(ValueError, match="Pass an unfitted estimator and y"):
        extractor.fit(X, Y if is_frozen else None)
