"""Smaller trees inside a fitted tree, compared with trees that are fitted separately."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import CARTExtractor
from skescore.extractors import (
    CachedBlackBox,
    equal_siblings,
    first_leaves,
    without_equal_siblings,
)


def table(seed, n_rows, n_classes):
    random = np.random.default_rng(seed)
    X = random.integers(0, 6, (n_rows, 3)) + random.random((n_rows, 3)).round(1)
    X[random.random(X.shape) < 0.1] = np.nan
    return X, random.integers(0, n_classes, n_rows)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(4, 80),
    st.integers(2, 4),
    st.integers(1, 12),
    st.sampled_from([DecisionTreeClassifier, DecisionTreeRegressor]),
    st.integers(1, 4),
)
def test_first_leaves_equals_a_smaller_fit(seed, n_rows, n_classes, n_leaves, kind, min_leaf):
    X, y = table(seed, n_rows, n_classes)
    options = {"random_state": seed % 7, "min_samples_leaf": min_leaf}
    small = first_leaves(kind(max_leaf_nodes=16, **options).fit(X, y), n_leaves)
    if n_leaves == 1:
        assert small.tree_.node_count == 1
        return
    fitted = kind(max_leaf_nodes=n_leaves, **options).fit(X, y).tree_
    for name in ("children_left", "children_right", "feature", "value", "missing_go_to_left"):
        inner = fitted.children_left >= 0
        one, other = getattr(small.tree_, name), getattr(fitted, name)
        if name == "missing_go_to_left":
            one, other = one[inner], other[inner]
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(small.tree_.threshold, fitted.threshold)
    assert small.tree_.max_depth == fitted.max_depth
    np.testing.assert_array_equal(
        small.predict(X), kind(max_leaf_nodes=n_leaves, **options).fit(X, y).predict(X)
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(4, 80), st.integers(2, 4))
def test_without_equal_siblings_keeps_predictions(seed, n_rows, n_classes):
    X, y = table(seed, n_rows, n_classes)
    tree = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0).fit(X, y)
    merged = without_equal_siblings(tree)
    np.testing.assert_array_equal(merged.predict(X), tree.predict(X))
    assert not equal_siblings(merged.tree_).any()
    assert merged.get_n_leaves() <= tree.get_n_leaves()


def test_search_candidates_share_one_tree():
    X, y = table(0, 60, 3)
    X = np.nan_to_num(X)
    model = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(X, y))
    black_box = CachedBlackBox(model)
    for n_leaves in (1, 4, 9, 3):
        options = {"max_leaf_nodes": n_leaves, "random_state": 0}
        shared = CARTExtractor(black_box, **options).fit(X)
        alone = CARTExtractor(model, **options).fit(X)
        assert str(shared.rules_) == str(alone.rules_)
        assert len(shared.rules_) <= n_leaves


@pytest.mark.parametrize("simplify", [True, False])
def test_merge_leaves_saves_rules_without_changing_predictions(simplify):
    X = np.random.default_rng(1).normal(size=(200, 4))
    y = (X[:, 0] > 1).astype(int) + (X[:, 1] > 1.5)
    model = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(X, y > 1))
    options = {"max_leaf_nodes": 12, "simplify": simplify, "random_state": 0}
    plain = CARTExtractor(model, **options).fit(X)
    merged = CARTExtractor(model, merge_leaves=True, **options).fit(X)
    np.testing.assert_array_equal(plain.predict(X), merged.predict(X))
    assert len(merged.rules_) <= len(plain.rules_)


def test_single_leaf_gives_one_rule():
    X, y = table(3, 40, 2)
    X = np.nan_to_num(X)
    extractor = CARTExtractor(DecisionTreeClassifier(), max_leaf_nodes=1, random_state=0)
    rules = extractor.fit(X, y).rules_
    assert len(rules) == 1
    assert not rules.rules[0].conditions
