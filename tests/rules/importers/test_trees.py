"""Rules of scikit-learn's trees predict like the trees, bit for bit."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from skescore.rules import Domain, Fallback, Interval, Rule, RuleStatistics, as_ruleset

N_ROWS = 20_000
FLOAT32_MAX = float(np.finfo(np.float32).max)
#: A tie between the largest float32 and the place of the next, which is infinity.
OVERFLOWS = FLOAT32_MAX + 2.0**103


# --- thresholds ------------------------------------------------------------------------------


#: A tree with one threshold, which the tests change.
STUMP = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])


def float32_cut(threshold):
    """Return the bound that is read from one threshold."""
    STUMP.tree_.threshold[0] = threshold
    rule, other = as_ruleset(STUMP, domain=None)
    (condition,), (beside,) = rule.conditions, other.conditions
    assert condition == Interval(0, upper=condition.upper)
    assert beside == Interval(0, lower=condition.upper)
    return condition.upper


def passes(value, threshold):
    """Return whether a tree sends the value left; it rounds the value, not the threshold."""
    with np.errstate(over="ignore"):
        return float(np.float32(value)) <= threshold


def neighbors(value, steps=4):
    """Return floats near a value, and near the ends and middles of its float32 cell."""
    with np.errstate(over="ignore"):
        center = np.float32(value)
        grid = [center, np.nextafter(center, np.float32(-np.inf))]
        grid.append(np.nextafter(center, np.float32(np.inf)))
        grid += [
            np.nextafter(grid[1], np.float32(-np.inf)),
            np.nextafter(grid[2], np.float32(np.inf)),
        ]
    middles = [float(a) / 2 + float(b) / 2 for a in grid for b in grid]
    for start in [value, *middles, OVERFLOWS, -OVERFLOWS]:
        low = high = start
        yield start
        for _ in range(steps):
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
            yield from (low, high)


thresholds = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(width=32, allow_nan=False, allow_infinity=False)
    | st.floats(-10, 10)
    | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-45, -1e-45, 7e-46, -7e-46, 1e39, -1e39])
    | st.sampled_from([FLOAT32_MAX, -FLOAT32_MAX, OVERFLOWS, -OVERFLOWS, 2.0**128, -(2.0**128)])
)


@given(threshold=thresholds)
@example(2.449999988079071)
@example(0.1)
@example(16777217.0)
def test_tree_cuts_are_exact_near_thresholds(threshold):
    cut = float32_cut(threshold)
    assert type(cut) is float
    assert passes(cut, threshold)
    assert not passes(math.nextafter(cut, math.inf), threshold)
    for value in neighbors(threshold):
        if not math.isnan(value):
            assert (value <= cut) == passes(value, threshold)


@given(threshold=st.floats(-1e30, 1e30), values=st.lists(st.floats(-1e30, 1e30)))
def test_tree_cuts_are_exact_anywhere(threshold, values):
    cut = float32_cut(threshold)
    assert [v <= cut for v in values] == [passes(v, threshold) for v in values]


# --- predictions -----------------------------------------------------------------------------


def training_rows(seed=0, n=300, d=4):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) * [1, 1000, 1e-3, 1][:d]
    X[:, -1] = np.round(X[:, -1])
    score = X[:, 0] + X[:, 1] / 1000 + np.sin(9 * X[:, 2] * 1000) + generator.normal(size=n) / 2
    return X, score


def trying_rows(tree, X, seed=1):
    """Return random rows, many of them at or right next to thresholds."""
    generator = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    rows = generator.uniform(low - 1, high + 1, (N_ROWS, X.shape[1]))
    inner = np.flatnonzero(tree.tree_.feature >= 0)
    for node in inner:
        feature, threshold = tree.tree_.feature[node], tree.tree_.threshold[node]
        near = np.array([v for v in neighbors(threshold) if abs(v) < 1e30])
        at = generator.integers(0, N_ROWS, 4 * len(near))
        rows[at, feature] = np.tile(near, 4)
    return rows


def labels_of(score, labels):
    return np.asarray(labels)[np.digitize(score, np.quantile(score, [0.3, 0.7]))]


def assert_same_answers(tree, ruleset, X):
    rows = trying_rows(tree, X)
    expected = tree.predict(rows)
    predictions = ruleset.predict(rows)
    assert predictions.dtype.kind == expected.dtype.kind
    assert np.array_equal(predictions, expected)
    if ruleset.classes is not None:
        assert np.allclose(ruleset.predict_proba(rows), tree.predict_proba(rows), 0, 1e-11)
    assert ruleset.covers(rows).all()
    if ruleset.disjoint:
        assert (ruleset.match(rows).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    "labels",
    [["low", "middle", "high"], [10, -1, 7], [True, False, True], [1.0, 1.0, 2.0]],
    ids=["str", "int", "bool", "float"],
)
@pytest.mark.parametrize("simplify", [False, True])
def test_tree_rules_predict_classes_like_tree(labels, simplify):
    X, score = training_rows()
    y = labels_of(score, labels)
    tree = DecisionTreeClassifier(max_leaf_nodes=40, random_state=0).fit(X, y)
    ruleset = as_ruleset(tree, simplify=simplify)
    assert len(ruleset) == tree.get_n_leaves()
    assert ruleset.classes == tuple(tree.classes_.tolist())
    assert [type(c) for c in ruleset.classes] == [type(c) for c in tree.classes_.tolist()]
    assert (ruleset.ordered, ruleset.disjoint) == (simplify, not simplify)
    assert_same_answers(tree, ruleset, X)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DecisionTreeClassifier(random_state=0),
        lambda: DecisionTreeClassifier(max_depth=3, criterion="entropy", random_state=0),
        lambda: DecisionTreeClassifier(max_leaf_nodes=12, random_state=0, class_weight="balanced"),
        lambda: DecisionTreeClassifier(ccp_alpha=0.01, random_state=0),
        lambda: DecisionTreeClassifier(max_leaf_nodes=2, random_state=0),
        lambda: DecisionTreeClassifier(min_samples_leaf=1000, random_state=0),
        lambda: ExtraTreeClassifier(random_state=0),
    ],
)
def test_tree_rules_support_all_classifiers(make):
    X, score = training_rows()
    tree = make().fit(X, labels_of(score, ["a", "b", "c"]))
    for simplify in (False, True):
        assert_same_answers(tree, as_ruleset(tree, simplify=simplify), X)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_tree_rules_count_sample_weights(scale):
    X, score = training_rows()
    y = labels_of(score, ["a", "b", "c"])
    weights = np.random.default_rng(3).random(len(X)) * scale
    weights[:50] = 0
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y, sample_weight=weights)
    ruleset = as_ruleset(tree)
    assert_same_answers(tree, ruleset, X)
    for rule, rows in zip(ruleset, ruleset.match(X).T, strict=True):
        counts = [weights[rows & (y == label)].sum() for label in ruleset.classes]
        assert rule.statistics.class_counts == pytest.approx(counts, rel=1e-9, abs=1e-12 * scale)
        assert rule.statistics.n_rows == (rows & (weights > 0)).sum()


@pytest.mark.parametrize(
    "criterion", ["squared_error", "friedman_mse", "absolute_error", "poisson"]
)
@pytest.mark.parametrize("simplify", [False, True])
def test_tree_rules_predict_numbers_like_tree(criterion, simplify):
    X, score = training_rows()
    y = np.exp(score)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # friedman_mse will be removed
        tree = DecisionTreeRegressor(criterion=criterion, max_leaf_nodes=30, random_state=0)
        tree.fit(X, y)
    ruleset = as_ruleset(tree, simplify=simplify)
    assert ruleset.task == "regression"
    assert_same_answers(tree, ruleset, X)
    assigned = ruleset.assign(X)
    for i, rule in enumerate(ruleset):
        inside = y[assigned == i]
        assert rule.statistics.n_rows == len(inside)
        if criterion == "absolute_error":
            assert rule.output == pytest.approx(np.median(inside))
            assert rule.statistics.mean is None
        else:
            assert rule.statistics.mean == pytest.approx(inside.mean())
        if criterion in ("squared_error", "friedman_mse"):
            assert rule.statistics.standard_deviation == pytest.approx(inside.std(), abs=1e-6)
        else:
            assert rule.statistics.standard_deviation is None


def test_tree_rules_support_extra_tree_regressors():
    X, score = training_rows()
    tree = ExtraTreeRegressor(random_state=0).fit(X, score)
    assert_same_answers(tree, as_ruleset(tree), X)
    assert_same_answers(tree, as_ruleset(tree, simplify=True), X)


@pytest.mark.parametrize("simplify", [False, True])
def test_tree_rules_describe_single_leaf(simplify):
    X = np.zeros((4, 2))
    tree = DecisionTreeClassifier().fit(X, ["a", "a", "b", "a"])
    ruleset = as_ruleset(tree, simplify=simplify)
    assert ruleset.rules == (Rule([], "a", RuleStatistics(4, (3, 1))),)
    assert ruleset.predict([[9, 9], [math.nan, 0]]).tolist() == ["a", "a"]
    constant = as_ruleset(DecisionTreeRegressor().fit(X, [2.5] * 4), simplify=simplify)
    assert constant.rules == (Rule([], 2.5, RuleStatistics(4, mean=2.5, standard_deviation=0.0)),)


def test_tree_rules_of_large_numbers_have_no_deviation():
    X = np.arange(12.0)[:, None]
    tree = DecisionTreeRegressor(max_leaf_nodes=2).fit(X, np.where(X[:, 0] < 6, 1e6 + 3.4, 1e6))
    assert [rule.statistics.standard_deviation for rule in as_ruleset(tree)] == [0.0, 0.0]


def test_tree_rules_count_whole_rows():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    leaf = tree.apply(X)
    ruleset = as_ruleset(tree)
    for rule, node in zip(ruleset, np.unique(leaf), strict=True):
        counts = np.bincount(y[leaf == node], minlength=3).tolist()
        assert rule.statistics == RuleStatistics(sum(counts), tuple(counts))
        assert all(type(c) is int for c in rule.statistics.class_counts)


def test_tree_rules_are_written_as_text():
    X, y = load_iris(return_X_y=True, as_frame=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    tree = DecisionTreeClassifier(max_depth=1, random_state=0)
    tree.fit(X[["petal length (cm)"]], labels)
    text = "IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % right (data)]"
    rules = as_ruleset(tree)
    assert str(rules.shorten(X[["petal length (cm)"]], reach=0.001)).splitlines()[0] == f"1. {text}"
    # As it predicts: the tree rounds rows to 32 bits.
    assert str(rules[0]) == text.replace("2.45", "2.4499999284744263")


# --- shorter lists ---------------------------------------------------------------------------


@given(seed=st.integers(0, 2**16), leaves=st.integers(2, 25))
def test_tree_rules_simplified_predict_alike(seed, leaves):
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 6, (80, 3)).astype(float)
    tree = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0)
    tree.fit(X, generator.normal(size=80))
    full, short = as_ruleset(tree), as_ruleset(tree, simplify=True)
    rows = np.stack(np.meshgrid(*[np.arange(-0.5, 6.5, 0.5)] * 3), axis=-1).reshape(-1, 3)
    assert short.assign(rows).tolist() == full.assign(rows).tolist()
    assert [r.output for r in short] == [r.output for r in full]
    assert short[-1].conditions == ()
    assert all(rule.conditions for rule in short[:-1])
    assert short.n_conditions <= full.n_conditions


def test_tree_rules_of_chain_need_one_condition_each():
    X = np.arange(5.0)[:, None]
    tree = DecisionTreeRegressor(random_state=0).fit(X, [1e4, 1e3, 1e2, 1e1, 0])
    assert [r.n_literals for r in as_ruleset(tree)] == [1, 2, 2, 2, 1]
    short = as_ruleset(tree, simplify=True)
    assert [r.n_literals for r in short] == [1, 1, 1, 1, 0]
    cuts = [float32_cut(v) for v in (0.5, 1.5, 2.5, 3.5)]
    assert [r.conditions for r in short[:4]] == [(Interval(0, upper=c),) for c in cuts]


def test_tree_rules_follow_paths():
    X = np.arange(4.0)[:, None]
    tree = DecisionTreeRegressor(random_state=0).fit(X, [0.0, 1.0, 10.0, 11.0])
    low, middle, high = (float32_cut(v) for v in (0.5, 1.5, 2.5))
    assert [(r.conditions, r.output) for r in as_ruleset(tree)] == [
        ((Interval(0, upper=low),), 0.0),
        ((Interval(0, low, middle),), 1.0),
        ((Interval(0, middle, high),), 10.0),
        ((Interval(0, high),), 11.0),
    ]
    # The left part of a node is already covered once its leaves are listed.
    short = as_ruleset(tree, simplify=True)
    expected = [(Interval(0, upper=cut),) for cut in (low, middle, high)]
    assert [r.conditions for r in short] == [*expected, ()]


# --- names, settings, errors -----------------------------------------------------------------


def test_tree_rules_keep_feature_names():
    X, y = np.array([[0.0, 1], [1, 0], [2, 5]]), ["a", "b", "b"]
    assert as_ruleset(DecisionTreeClassifier().fit(X, y)).feature_names == ("x0", "x1")
    frame = pd.DataFrame(X, columns=["größe", "b"])
    tree = DecisionTreeClassifier().fit(frame, y)
    assert as_ruleset(tree).feature_names == ("größe", "b")
    assert as_ruleset(tree).predict(frame[["b", "größe"]]).tolist() == y
    assert as_ruleset(tree, feature_names=["u", "v"]).feature_names == ("u", "v")
    for names in (["u"], ["u", "v", "w"]):
        with pytest.raises(ValueError, match="must name the tree's 2 features, got"):
            as_ruleset(tree, feature_names=names)


def test_tree_rules_accept_domain_and_fallback():
    tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    domain, fallback = Domain((0,), (1,)), Fallback(0.5)
    ruleset = as_ruleset(tree, domain=domain, fallback=fallback)
    assert (ruleset.domain, ruleset.fallback) == (domain, fallback)


def test_tree_rules_map_class_indices_to_labels():
    X = np.arange(4.0)[:, None]
    tree = DecisionTreeClassifier().fit(X, [1, 1, 3, 3])  # the tree saw two of four classes
    ruleset = as_ruleset(tree, classes=np.array(["a", "b", "c", "d"]))
    assert ruleset.classes == ("a", "b", "c", "d")
    assert ruleset.predict(X).tolist() == ["b", "b", "d", "d"]
    assert [r.statistics.class_counts for r in ruleset] == [(0, 2, 0, 0), (0, 0, 0, 2)]
    assert ruleset.predict_proba(X)[0].tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("simplify", [False, True])
def test_tree_rules_part_missing_values_between_equal_numbers(simplify):
    x = np.array([16777216.0, 16777218.0, np.nan] * 20)[:, np.newaxis]
    tree = DecisionTreeRegressor().fit(x, [1.0, 2.0, 3.0] * 20)
    inner = np.flatnonzero(tree.tree_.children_left != -1)
    assert len(inner) == 2
    # Random thresholds may lie between the same two float32 numbers.
    tree.tree_.threshold[inner] = [16777217.6, 16777217.2]
    tree.tree_.missing_go_to_left[inner] = [1, 0]
    ruleset = as_ruleset(tree, missing=True, simplify=simplify)
    assert ruleset.predict(x).tolist() == tree.predict(x).tolist()
    without = as_ruleset(tree, missing=False, simplify=simplify)
    assert without.predict(x[:2]).tolist() == tree.predict(x[:2]).tolist()


def test_tree_rules_reject_missing_values_by_default():
    X = np.array([[0.0], [1.0], [math.nan], [math.nan]])
    tree = DecisionTreeClassifier().fit(X, ["a", "b", "b", "b"])
    assert as_ruleset(tree).covers([[math.nan]]).tolist() == [False]
    assert as_ruleset(tree).covers([[0.0], [7.0]]).tolist() == [True, True]


def test_tree_rules_reject_several_outputs():
    tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="The tree has 2 outputs; rules have one"):
        as_ruleset(tree)


@pytest.mark.parametrize("tree", [DecisionTreeClassifier(), DecisionTreeRegressor()])
def test_tree_rules_reject_unfitted_trees(tree):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        as_ruleset(tree)


def test_tree_rules_bounds_equal_cuts():
    tree = DecisionTreeRegressor().fit([[0.1], [0.3]], [0.0, 1.0])
    (rule, other) = as_ruleset(tree)
    cut = float32_cut(float(tree.tree_.threshold[0]))
    assert rule.conditions == (Interval(0, upper=cut),)
    assert other.conditions == (Interval(0, lower=cut),)
