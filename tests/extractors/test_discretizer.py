"""Discretizer: bins compared with plain loops and trees of scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore.extractors import Discretizer
from skescore.rules import Interval


@parametrize_with_checks(
    [
        Discretizer(),
        Discretizer("tree", joint=True),
        Discretizer("given", cut_points={0: [0.0, 1.0]}),
    ]
)
def test_discretizer_passes_scikit_learn_checks(estimator, check):
    check(estimator)


def cuts_of(values, y=None, **parameters):
    column = np.asarray(values, dtype=float)[:, None]
    return Discretizer(**parameters).fit(column, y).cut_points_[0].tolist()


# --- quantiles ---


def test_quantile_bins_are_equal_without_ties():
    values = np.random.default_rng(0).permutation(40)
    assert cuts_of(values, n_bins=4) == [9.5, 19.5, 29.5]


@settings(max_examples=40, deadline=None)
@given(
    # The halves of the smallest floats of all are rounded.
    st.lists(
        st.integers(0, 12) | st.floats(-1e300, 1e300, allow_subnormal=False),
        min_size=2,
        max_size=60,
    ),
    st.integers(2, 6),
    st.sampled_from([0.0, 0.02, 0.2, 0.5]),
)
def test_quantile_cuts_are_midpoints_of_large_bins(values, n_bins, share):
    cuts = cuts_of(values, n_bins=n_bins, min_bin_share=share)
    distinct = sorted(set(map(float, values)))
    assert len(cuts) <= n_bins - 1
    assert cuts == sorted(set(cuts))
    for cut in cuts:
        below = max(v for v in distinct if v <= cut)
        above = min(v for v in distinct if v > cut)
        assert below <= cut < above
        assert cut in (below / 2 + above / 2, below)
    sizes = [0] * (len(cuts) + 1)
    for value in values:
        sizes[sum(float(value) > cut for cut in cuts)] += 1
    assert min(sizes) >= max(1, share * len(values)) or not cuts


@pytest.mark.parametrize("strategy", ["quantile", "tree"])
@pytest.mark.parametrize(
    ("values", "cuts"),
    [
        ([3.0] * 10, []),
        ([1.0] * 5 + [2.0] * 5, [1.5]),
        ([0.0] * 2 + [7.0] * 6 + [9.0] * 2, [3.5, 8.0]),
    ],
    ids=["constant", "two values", "ties"],
)
def test_cuts_never_split_ties(strategy, values, cuts):
    labels = [str(v) for v in values]
    assert cuts_of(values, labels, strategy=strategy) == cuts


def test_neighboring_floats_are_separated():
    low = 1.0
    high = math.nextafter(low, 2)
    assert cuts_of([low] * 5 + [high] * 5) == [low]
    codes = Discretizer().fit_transform([[low], [low], [high], [high]])
    assert codes.ravel().tolist() == [0, 0, 1, 1]


# --- trees ---


def test_tree_cuts_of_iris_equal_published_thresholds():
    """The thresholds 0.8 and 1.75 of petal width: scikit-learn's user guide, "Decision Trees"."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    cuts = Discretizer("tree", n_bins=3).fit(X, y).cut_points_[3]
    np.testing.assert_allclose(cuts, [0.8, 1.75])


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", ["distinct", "ties"])
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_tree_cuts_equal_scikit_learn(task, kind, share):
    random = np.random.default_rng(3)
    values = random.normal(size=300) if kind == "distinct" else random.integers(0, 15, 300) / 4.0
    signal = np.sin(2 * values) + 0.3 * random.normal(size=300)
    if task == "classification":
        y = np.array(["low", "middle", "high"])[np.digitize(signal, [-0.4, 0.5])]
        tree = DecisionTreeClassifier
    else:
        y, tree = signal, DecisionTreeRegressor
    least = max(1, math.ceil(share * 300))
    slow = tree(max_leaf_nodes=5, min_samples_leaf=least, random_state=0)
    grown = slow.fit(values[:, None], y).tree_
    expected = np.sort(grown.threshold[grown.feature >= 0])
    result = cuts_of(values, y, strategy="tree", n_bins=5, min_bin_share=share)
    assert len(result) == 4
    np.testing.assert_allclose(result, expected, rtol=1e-6)  # trees round values to 32 bits


def gini_of_cut(values, labels, cut):
    total = 0.0
    for side in (values <= cut, values > cut):
        part = labels[side]
        total += len(part) * (1 - sum(np.mean(part == c) ** 2 for c in set(labels.tolist())))
    return total


def test_single_tree_cut_is_the_best_of_all():
    random = np.random.default_rng(5)
    values = random.normal(size=80)
    labels = (values + random.normal(size=80) > 0.3).astype(int)
    (cut,) = cuts_of(values, labels, strategy="tree", n_bins=2, min_bin_share=0.0)
    ordered = np.sort(values)
    middles = (ordered[1:] + ordered[:-1]) / 2
    best = min(gini_of_cut(values, labels, middle) for middle in middles)
    assert gini_of_cut(values, labels, cut) == pytest.approx(best, abs=1e-9)


def test_tree_cuts_of_many_values_are_exact():
    random = np.random.default_rng(0)
    values = random.permutation(20_000) / 7.0
    labels = np.digitize(values, [700.05, 1900.01])
    result = cuts_of(values, labels, strategy="tree", n_bins=3)
    ordered = np.sort(values)
    places = np.searchsorted(ordered, [700.05, 1900.01])
    np.testing.assert_allclose(result, (ordered[places - 1] + ordered[places]) / 2, rtol=1e-12)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_tree_cuts_of_grouped_values_are_exact(share):
    n_rows = 10_000  # more values than a tree distinguishes at first
    values = np.random.default_rng(2).normal(size=n_rows)
    labels = np.digitize(values, [-0.4, 0.9])
    grouped = cuts_of(values, labels, strategy="tree", n_bins=3, min_bin_share=share)
    codes = np.searchsorted(grouped, values)
    assert np.bincount(codes).min() >= share * n_rows
    if share < 0.1:  # sharp classes are cut at their ends
        ends = [(values[labels <= k].max() + values[labels > k].min()) / 2 for k in (0, 1)]
        np.testing.assert_allclose(grouped, ends, rtol=1e-12)
    exact = DecisionTreeClassifier(
        max_leaf_nodes=3, min_samples_leaf=math.ceil(share * n_rows), random_state=0
    ).fit(values[:, None], labels)
    assert len(grouped) == exact.get_n_leaves() - 1


def test_regression_groups_find_the_step():
    values = np.random.default_rng(2).permutation(10_000).astype(float)
    assert cuts_of(values, 5.0 * (values > 4123), strategy="tree", n_bins=2) == [4123.5]


def checkerboard(n_rows=400):
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, 2))
    return X, (X[:, 0] > 0) != (X[:, 1] > 0.3)


@pytest.mark.parametrize("target", [bool, str, float])
def test_joint_cuts_find_interacting_features(target):
    X, y = checkerboard()
    joint = Discretizer("tree", n_bins=2, joint=True).fit(X, y.astype(target))
    alone = Discretizer("tree", n_bins=2).fit(X, y.astype(target))
    for j, border in enumerate((0.0, 0.3)):
        below, above = X[X[:, j] <= border, j].max(), X[X[:, j] > border, j].min()
        # Halfway between neighbors among the rows on both sides, so in the gap of all rows.
        assert any(below <= cut < above for cut in joint.cut_points_[j])
        assert len(alone.cut_points_[j]) < len(joint.cut_points_[j])
        assert (np.diff(joint.cut_points_[j]) > 0).all()
        codes = joint.transform(X)[:, j]
        assert np.bincount(codes, minlength=joint.n_bins_[j]).all()  # no bin without rows


def test_joint_cuts_contain_thresholds_of_one_tree():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=32, random_state=0).fit(X, y).tree_
    joint = Discretizer("tree", joint=True).fit(X, y)
    alone = Discretizer("tree").fit(X, y)
    for j in range(4):
        together = tree.threshold[tree.feature == j]
        gap = {np.sum(X[:, j] <= cut) for cut in together}
        other_items = [cut for cut in alone.cut_points_[j] if np.sum(X[:, j] <= cut) not in gap]
        expected = np.sort([*together, *other_items])
        np.testing.assert_allclose(joint.cut_points_[j], expected, rtol=1e-6)


def test_joint_cuts_sample_many_rows():
    X, y = checkerboard(40_000)
    many = Discretizer("tree", joint=True).fit(X, y)
    fitted = Discretizer("tree", joint=True).fit(X[::2], y[::2])
    alone = Discretizer("tree").fit(X[::2], y[::2])
    for j in range(2):
        added = set(fitted.cut_points_[j]) - set(alone.cut_points_[j])
        assert added <= set(many.cut_points_[j])


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("factor", [2.0**-40, 2.0**700])
def test_cut_points_scale_with_features(factor, joint):
    X, y = load_iris(return_X_y=True)
    plain, scaled = (Discretizer("tree", joint=joint).fit(X * f, y) for f in (1.0, factor))
    for cuts, other in zip(plain.cut_points_, scaled.cut_points_, strict=True):
        np.testing.assert_array_equal(cuts * factor, other)


def test_tree_cuts_do_not_depend_on_label_type():
    X, y = load_iris(return_X_y=True)
    numbers = Discretizer("tree").fit(X, y)
    names = Discretizer("tree").fit(X, np.array(["a", "b", "c"], dtype=object)[y])
    for cuts, other in zip(numbers.cut_points_, names.cut_points_, strict=True):
        np.testing.assert_array_equal(cuts, other)


# --- given cuts ---


@pytest.mark.parametrize(
    "cut_points",
    [
        {"age": [18, 65.5], "size": [0.0]},
        {0: [18, 65.5], "size": (0.0,)},
        {2: np.array([0.0]), 0: [18, 65.5], 1: []},
        [[18, 65.5], [], [0.0]],
    ],
    ids=["names", "both", "indices", "sequence"],
)
def test_given_cut_points_define_codes(cut_points):
    X = pd.DataFrame({"age": [18.0, 19.0, 70.0], "weight": [1, 2, 3], "size": [0.0, 0.1, -1]})
    discretizer = Discretizer("given", cut_points=cut_points).fit(X)
    assert [c.tolist() for c in discretizer.cut_points_] == [[18, 65.5], [], [0.0]]
    assert discretizer.n_bins_.tolist() == [3, 1, 2]
    assert discretizer.transform(X).tolist() == [[0, 0, 0], [1, 0, 1], [2, 0, 0]]


@pytest.mark.parametrize(
    ("cut_points", "error", "text"),
    [
        ({"height": [1]}, ValueError, "cut_points must name a feature .*'a', 'b'.*got 'height'"),
        ({2: [1]}, ValueError, "index from 0 to 1.*got 2"),
        ({True: [1]}, ValueError, "got True"),
        ({0: [1], "a": [2]}, ValueError, "each feature once"),
        ({0: [2, 1]}, ValueError, r"feature 0 must be finite, increasing.*got \[2, 1\]"),
        ({0: [1, 1]}, ValueError, "drop duplicates"),
        ({0: [math.nan]}, ValueError, "finite"),
        ({0: ["1"]}, TypeError, "increasing numbers"),
        ({0: 1.5}, TypeError, "in a sequence, got 1.5"),
        ([[1]], ValueError, "each of the 2 features, got 1"),
        (3, TypeError, "mapping from features.*got 3"),
    ],
)
def test_cut_points_reject_invalid_values(cut_points, error, text):
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    with pytest.raises(error, match=text):
        Discretizer("given", cut_points=cut_points).fit(X)


# --- transforming ---


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), max_size=5, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
)
def test_codes_match_intervals(cuts, values):
    cuts = sorted(cuts)
    discretizer = Discretizer("given", cut_points=[cuts]).fit([[0.0], [1.0]])
    values = [*values, *cuts]
    intervals = discretizer.intervals(0)
    assert len(intervals) == len(cuts) + 1 == discretizer.n_bins_[0]
    column = np.array(values)
    matches = np.array([interval.holds(lambda j: column) for interval in intervals])
    codes = discretizer.transform(column[:, None]).ravel()
    for i, value in enumerate(values):
        assert np.flatnonzero(matches[:, i]).tolist() == [codes[i]]
        assert codes[i] == sum(value > cut for cut in cuts)


def test_intervals_accept_feature_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    discretizer = Discretizer("tree", n_bins=3).fit(X, y)
    low, high = discretizer.cut_points_[3]
    expected = [Interval(3, upper=low), Interval(3, low, high), Interval(3, lower=high)]
    assert discretizer.intervals("petal width (cm)") == discretizer.intervals(3) == expected
    with pytest.raises(ValueError, match=r"feature must name a feature .*got 'petal'"):
        discretizer.intervals("petal")


def test_set_output_returns_frame():
    X = load_iris(as_frame=True).data
    discretizer = Discretizer().set_output(transform="pandas").fit(X)
    frame = discretizer.transform(X)
    assert list(frame.columns) == list(X.columns) == discretizer.get_feature_names_out().tolist()
    assert all(dtype.kind == "i" for dtype in frame.dtypes)
    np.testing.assert_array_equal(frame, clone(discretizer).set_output().fit_transform(X))


# --- bad input ---


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"strategy": "kmeans"}, ValueError, "'quantile', 'tree', 'given', got 'kmeans'"),
        ({"n_bins": 1}, ValueError, "n_bins must be an integer of 2 or more, got 1"),
        ({"n_bins": 2.0}, TypeError, "n_bins must be an integer"),
        ({"min_bin_share": 0.6}, ValueError, "min_bin_share .*from 0 to 0.5, got 0.6"),
        ({"joint": "yes"}, TypeError, "joint must be True or False, got 'yes'"),
        ({"joint": True}, ValueError, "joint=True needs strategy='tree', got strategy='quantile'"),
        ({"strategy": "given"}, ValueError, "cut_points must be given"),
        ({"cut_points": {}}, ValueError, "and for no other, got strategy='quantile'"),
    ],
)
def test_parameters_reject_invalid_values(parameters, error, text):
    with pytest.raises(error, match=text):
        Discretizer(**parameters).fit([[1.0], [2.0]])


def test_tree_strategy_requires_y():
    with pytest.raises(ValueError, match="Pass the black box's predictions as y"):
        Discretizer("tree").fit([[1.0], [2.0]])


def test_text_columns_are_rejected_by_name():
    X = pd.DataFrame({"size": [1.0, 2.0], "color": ["red", "blue"]})
    with pytest.raises(ValueError, match="Discretizer needs numbers, but column 'color'"):
        Discretizer().fit(X)
