"""GridEx: cells, levels, strategies, stops and queried points."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import GridExExtractor

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

random = np.random.default_rng(0)
SQUARE = random.uniform(size=(400, 2))
FIRST = CallableClassifier(lambda rows: np.where(np.asarray(rows)[:, 0] < 0.5, "left", "right"))
SUM = CallableRegressor(lambda rows: np.asarray(rows).sum(axis=1))


def grid(black_box, **parameters):
    return whole_grid(black_box, **{"depth": 1, **parameters})


def faces(extractor, feature):
    """Return the finite bounds of all rules along one feature in order."""
    table = extractor.rules_.boxes
    bounds = np.concatenate([table.lower[:, feature], table.upper[:, feature]])
    return np.unique(bounds[np.isfinite(bounds)])


# --- properties on any rows, also on edges and far from 0 ---


@st.composite
def awkward_rows(draw):
    """Draw rows on grids, close to each other, far from 0, tiny or huge."""
    n_rows, n_features = draw(st.integers(2, 30)), draw(st.integers(1, 3))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.integers(0, draw(st.integers(1, 12)), (n_rows, n_features)).astype(float)
    unit, offset = draw(
        st.sampled_from(
            [
                (1, 0),
                (0.1, 0),
                (1 / 3, -5),
                (1e-9, 1),
                (1e6, -3e6),
                (1e-300, 0),
                (1e150, 0),
                (1, 1e8),
            ]
        )
    )
    return X * unit + offset


@settings(max_examples=50)
@given(
    awkward_rows(),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([0, 1, 4]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore:The black box predicts")
def test_rules_are_disjoint_and_cover_all_rows(X, n_slices, depth, min_examples, classification):
    middle = np.median(X, axis=0)
    scale = np.ptp(X[:, 0]) or 1.0

    def number(rows):
        return (rows[:, 0] - middle[0]) / scale + (rows[:, -1] > middle[-1])

    black_box = (
        CallableClassifier(lambda rows: number(rows) > 0.3, classes=[False, True])
        if classification
        else CallableRegressor(number)
    )
    extractor = whole_grid(
        black_box, n_slices=n_slices, depth=depth, min_examples=min_examples, random_state=0
    ).fit(X)
    assert extractor.rules_.disjoint
    matches = extractor.rules_.match(X)
    assert (matches.sum(axis=1) == 1).all()
    # A rule holds for exactly the rows from which it was made.
    assert [r.statistics.n_rows for r in extractor.rules_] == matches.sum(axis=0).tolist()
    assert extractor.coverage_ == 1.0
    lower, upper = X.min(axis=0), X.max(axis=0)
    points = (
        random.uniform(size=(50, X.shape[1])) * (upper - lower) * 1.5
        + lower
        - (upper - lower) * 0.25
    )
    table = extractor.rules_.boxes
    anywhere = np.vstack(
        [points, *(np.where(np.isfinite(t), t, lower) for t in (table.lower, table.upper))]
    )
    assert (extractor.rules_.match(anywhere).sum(axis=1) <= 1).all()
    assert 0 < extractor.completeness_ <= 1


@pytest.mark.parametrize("n_slices", [2, 3, 5])
@pytest.mark.parametrize("base", [1.0, 1e8, -3.0])
def test_cells_separate_neighboring_floats(n_slices, base):
    steps = [base]
    for _ in range(3):
        steps.append(np.nextafter(steps[-1], np.inf))
    X = np.array(steps)[[0, 0, 1, 2, 3, 3]][:, None]
    answers = np.array([0.0, 0.0, 1.0, 2.0, 3.0, 3.0])
    extractor = grid(
        CallableRegressor(lambda rows: answers), n_slices=n_slices, threshold=0, depth=2
    ).fit(X)
    assert (extractor.rules_.match(X).sum(axis=1) == 1).all()
    rule_index = extractor.rules_.assign(X)
    for index, rule in enumerate(extractor.rules_):
        assert rule.output == pytest.approx(answers[rule_index == index].mean())


@settings(max_examples=30)
# One of five values of 0.125 has a standard deviation of exactly 0.05.
@example(seed=1916, n_slices=3, threshold=0.05)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.sampled_from([0.05, 0.2, 0.5]))
def test_rules_do_not_depend_on_row_order(seed, n_slices, threshold):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(60, 3))

    def stairs(rows):  # many ties, as in trees; sums of these are exact in any order
        return (rows[:, 0] > 0.4) * 0.25 + (rows[:, 2] > 0.7) * 0.25 + (rows[:, 1] > 0.9) * 0.125

    for black_box in (CallableRegressor(stairs), CallableClassifier(lambda r: stairs(r) > 0.2)):
        extractor = whole_grid(black_box, n_slices=n_slices, depth=2, threshold=threshold)
        one = extractor.fit(X).rules_
        other = clone(extractor).fit(X[random.permutation(60)]).rules_
        np.testing.assert_array_equal(one.boxes.lower, other.boxes.lower)
        np.testing.assert_array_equal(one.boxes.upper, other.boxes.upper)
        np.testing.assert_allclose(
            one.conclusions.outputs.astype(float), other.conclusions.outputs.astype(float)
        )


# --- cells and joins, compared with manual results ---


def test_cells_have_equal_sides_and_join_by_class():
    extractor = grid(FIRST, n_slices=4).fit(SQUARE)
    # All cells left of the middle have one prediction, and so have all others.
    assert extractor.n_rules_ == 2
    low, high = SQUARE.min(axis=0), SQUARE.max(axis=0)
    assert faces(extractor, 0) == pytest.approx([(low[0] + high[0]) / 2])
    assert len(faces(extractor, 1)) == 0
    assert sorted(rule.output for rule in extractor.rules_) == ["left", "right"]
    assert extractor.completeness_ == 1.0
    numbers = grid(SUM, n_slices=4, threshold=0).fit(SQUARE)
    assert numbers.n_rules_ == 16
    for feature in (0, 1):
        edges = low[feature] + (high - low)[feature] * np.array([0.25, 0.5, 0.75])
        assert faces(numbers, feature) == pytest.approx(edges)


def test_bounds_are_closed_below_and_open_above():
    table = grid(SUM, n_slices=3, threshold=0).fit(SQUARE).rules_.boxes
    assert (table.lower_closed == np.isfinite(table.lower)).all()
    assert not table.upper_closed.any()


def test_outer_faces_are_open_beyond_training_rows():
    extractor = grid(FIRST, n_slices=2).fit(SQUARE)
    far = np.array([[-1e9, -1e9], [-5, 5], [7, -7], [1e9, 1e9]])
    assert extractor.covers(far).all()
    assert extractor.predict(far).tolist() == ["left", "left", "right", "right"]


def test_joining_stays_inside_the_parent_box():
    # Predictions change at 0.75 only: the left half is final after the first level, the right one
    # is cut once more, and its left part must not join the left half.
    step = CallableClassifier(lambda rows: np.where(rows[:, 0] < 0.75, "low", "high"))
    X = np.linspace(0, 1, 101)[:, None]
    rules = whole_grid(step, n_slices=2, depth=2, threshold=0.1).fit(X).rules_
    assert [rule.output for rule in rules] == ["low", "low", "high"]
    assert faces(whole_grid(step, depth=2).fit(X), 0) == pytest.approx([0.5, 0.75])


def test_threshold_limits_joining_of_numbers_only():
    X = np.array([[0.1], [0.2], [0.3], [0.4], [0.6], [0.7], [0.8], [0.9], [0.0], [1.0]])
    labels = np.array([0, 0, 0, 1, 0, 0, 1, 1, 0, 0])
    classes = grid(CallableClassifier(lambda r: labels), threshold=0.01).fit(X)
    assert classes.n_rules_ == 1
    assert classes.rules_[0].statistics.class_counts == (7, 3)
    # The union deviates by the square root of 0.21.
    for threshold, n_rules in [(0.458, 2), (0.459, 1)]:
        numbers = grid(CallableRegressor(lambda r: labels), threshold=threshold).fit(X)
        assert numbers.n_rules_ == n_rules


def test_joining_starts_with_least_diverse_union():
    # Cells of 0, 1 and 1.5: the second pair is closer, and their union is too far from the first.
    X = np.array([[0.0], [0.501], [1.0]])
    answers = np.array([0.0, 1.0, 1.5])
    rules = grid(CallableRegressor(lambda r: answers), n_slices=3, threshold=0.6).fit(X).rules_
    assert sorted(rule.output for rule in rules) == [0.0, 1.25]
    # Equally close: the first pair in order joins.
    answers = np.array([0.0, 1.0, 2.0])
    rules = grid(CallableRegressor(lambda r: answers), n_slices=3, threshold=0.6).fit(X).rules_
    assert sorted(rule.output for rule in rules) == [0.5, 2.0]


def test_cells_without_rows_are_omitted():
    X = np.array([[0.1, 0.1], [0.9, 0.9], [0.0, 0.0], [1.0, 1.0]])
    extractor = grid(SUM, threshold=0).fit(X)
    assert extractor.n_rules_ == 2
    assert extractor.completeness_ == pytest.approx(0.5)
    assert extractor.covers([[0.1, 0.9], [0.9, 0.1], [0.2, 0.3]]).tolist() == [False, False, True]


# --- levels and stops ---


@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.3, 0.4, 0.5])
def test_refinement_stops_strictly_below_threshold(threshold):
    # Of the 10 rows in the first slice, the share of the rarer class is the threshold exactly.
    n_other = round(10 * threshold)
    X = np.linspace(0, 1, 20)[:, None]
    labels = np.array(["a"] * (10 - n_other) + ["b"] * n_other + ["c"] * 10)

    def fitted(threshold):
        return whole_grid(
            CallableClassifier(lambda r: labels),
            level_strategies=[{"n_slices": 2}, {"n_slices": 10}],
            threshold=threshold,
        ).fit(X)

    assert fitted(threshold).n_rules_ == 3
    assert fitted(np.nextafter(threshold, 1)).n_rules_ == 2


def test_first_level_always_cuts():
    constant = CallableRegressor(lambda rows: np.ones(len(rows)))
    # Nothing is below 0, so nothing joins.
    assert grid(constant, threshold=0, n_slices=3).fit(SQUARE).n_rules_ == 9
    assert grid(constant, threshold=5, n_slices=3).fit(SQUARE).n_rules_ == 1
    mixed = CallableClassifier(lambda rows: (rows[:, 0] > 0.5) * 1)
    assert grid(mixed, threshold=1.0).fit(SQUARE).n_rules_ == 2  # though 0.5 < 1


def test_depth_refines_cells_with_mixed_predictions():
    X = (np.arange(512)[:, None] + 0.5) / 512
    step = CallableRegressor(lambda rows: (rows[:, 0] > 0.7) * 1.0)
    edges = [0.5, 0.75, 0.625, 0.6875]  # the half that holds 0.7 is halved again and again
    for depth in (1, 2, 3, 4):
        extractor = whole_grid(step, n_slices=2, depth=depth, threshold=1e-9).fit(X)
        assert faces(extractor, 0) == pytest.approx(sorted(edges[:depth]), abs=2e-3)
    # In classification, the two quarters from 0.5 to 0.75 predict the same, so they join each time.
    step = CallableClassifier(lambda rows: rows[:, 0] > 0.7)
    for depth in (2, 3, 4):
        extractor = whole_grid(step, n_slices=2, depth=depth, threshold=1e-9).fit(X)
        assert faces(extractor, 0) == pytest.approx([0.5, 0.75], abs=2e-3)


def test_levels_without_work_are_skipped():
    extractor = whole_grid(FIRST, n_slices=2, depth=50, threshold=0.2).fit(SQUARE)
    assert extractor.rules_ == grid(FIRST, threshold=0.2).fit(SQUARE).rules_


# --- slices and strategies ---


@pytest.mark.parametrize("black_box", [SUM, FIRST])
def test_gridex_gives_one_rule_for_one_slice(black_box):
    extractor = whole_grid(black_box, n_slices=1, depth=3).fit(SQUARE)
    assert extractor.n_rules_ == 1
    assert extractor.rules_[0].conditions == ()
    assert extractor.rules_[0].statistics.n_rows == 400
    assert extractor.completeness_ == 1.0


@pytest.mark.parametrize("min_examples", [1, 30])
def test_gridex_gives_one_rule_for_equal_rows(min_examples):
    X = np.full((10, 3), 7.5)
    extractor = whole_grid(SUM, n_slices=3, min_examples=min_examples).fit(X)
    assert extractor.n_rules_ == 1
    assert extractor.predict(X).tolist() == [22.5] * 10
    assert extractor.importances_.tolist() == [0, 0, 0]
    assert extractor.completeness_ == 1.0


def test_constant_features_are_never_cut():
    with_constants = np.column_stack([np.full(400, 3.0), SQUARE, np.full(400, -1e6)])
    black_box = CallableRegressor(lambda rows: rows[:, 1] + rows[:, 2])
    extractor = grid(black_box, n_slices=3, threshold=0).fit(with_constants)
    plain = grid(SUM, n_slices=3, threshold=0).fit(SQUARE)
    np.testing.assert_array_equal(extractor.rules_.boxes.lower[:, 1:3], plain.rules_.boxes.lower)
    assert {c.feature for rule in extractor.rules_ for c in rule.conditions} == {1, 2}
    # Other values of a constant feature change nothing.
    moved = with_constants.copy()
    moved[:, 0] = 99
    np.testing.assert_array_equal(extractor.predict(moved), extractor.predict(with_constants))
    assert extractor.completeness_ == plain.completeness_ == 1.0


def test_duplicate_columns_keep_predictions():
    twice = np.column_stack([SQUARE[:, 0], SQUARE[:, 0]])
    extractor = grid(FIRST, n_slices=4, threshold=0).fit(twice)
    single = grid(FIRST, n_slices=4, threshold=0).fit(SQUARE[:, :1])
    np.testing.assert_array_equal(extractor.predict(twice), single.predict(SQUARE[:, :1]))
    assert extractor.coverage_ == 1.0
    # Only the cells on the diagonal have rows, and they touch at corners only.
    assert extractor.n_rules_ == 4
    assert extractor.completeness_ == pytest.approx(0.25)


def slices_made(n_slices, threshold, importances):
    """Return the number of slices per feature for rows on a fine line."""
    line = np.linspace(0, 1, 2521)  # slices of any of these numbers have rows
    created = []
    for importance in importances:
        extractor = whole_grid(
            CallableRegressor(lambda rows: rows[:, 0]),
            n_slices=n_slices,
            importance_threshold=threshold,
            importances=[importance],
            depth=1,
            threshold=0,
        )
        created.append(extractor.fit(line[:, None]).n_rules_)
    return created


@settings(max_examples=30)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.2, 0.33, 0.5, 0.67, 0.99, 1.0]), st.integers(1, 9)),
        min_size=1,
        max_size=4,
        unique_by=lambda pair: pair[0],
    ),
)
def test_slices_follow_the_last_threshold_reached(importances, pairs):
    limits, counts = zip(*sorted(pairs), strict=True)
    expected = []
    for importance in importances:
        k = 1
        for limit, count in zip(limits, counts, strict=True):
            if importance < limit:
                break
            k = count
        expected.append(k)
    assert slices_made(counts, limits, importances) == expected
    only = slices_made(counts[0], limits[0], importances)
    assert only == [counts[0] if i >= limits[0] else 1 for i in importances]
    assert set(slices_made(counts[0], None, importances)) == {counts[0]}


def test_adaptive_strategy_cuts_important_features_only():
    X = np.column_stack([SQUARE, random.uniform(size=400)])
    extractor = whole_grid(
        CallableRegressor(lambda rows: 4 * rows[:, 0] + rows[:, 1]),
        importance_threshold=0.5,
        n_slices=4,
        depth=1,
        threshold=0.01,
    ).fit(X)
    assert extractor.importances_[0] == 1
    assert extractor.importances_[1] < 0.5
    assert {c.feature for rule in extractor.rules_ for c in rule.conditions} == {0}
    assert extractor.n_rules_ == 4
    given_importances = clone(extractor).set_params(importances=[0.1, 0.2, 1.0]).fit(X)
    assert given_importances.importances_.tolist() == [0.1, 0.2, 1.0]
    cut = {c.feature for rule in given_importances.rules_ for c in rule.conditions}
    assert cut <= {2}
    fitted = clone(extractor).set_params(n_slices=[2, 4], importance_threshold=[0.0, 0.5]).fit(X)
    assert len(faces(fitted, 0)) == 3
    assert len(faces(fitted, 1)) == 1


def test_unimportant_features_give_one_rule():
    extractor = grid(SUM, importance_threshold=0.5, importances=[0.1, 0.2]).fit(SQUARE)
    assert extractor.n_rules_ == 1


def test_level_strategies_differ_between_levels():
    # One feature per level, which must not drop the other one from the rules.
    X, y = load_iris(return_X_y=True)
    extractor = whole_grid(
        DecisionTreeClassifier(random_state=0),
        importances=[0.0, 0.0, 1.0, 0.5],
        level_strategies=[
            {"n_slices": 3, "importance_threshold": 0.9},
            {"n_slices": [3, 1], "importance_threshold": [0.4, 0.9]},
        ],
        threshold=0.01,
        depth=77,  # the list has precedence
    ).fit(X, y)
    assert {c.feature for rule in extractor.rules_ for c in rule.conditions} == {2, 3}
    assert len(faces(extractor, 2)) == 2
    assert (extractor.rules_.match(X).sum(axis=1) == 1).all()
    assert extractor.score(X, y) > 0.93
    plain = [{"n_slices": 3}, {"n_slices": 3, "importance_threshold": None}]
    assert (
        clone(extractor).set_params(level_strategies=plain).fit(X, y).rules_
        == clone(extractor).set_params(level_strategies=None, n_slices=3, depth=2).fit(X, y).rules_
    )


def test_gridex_recovers_a_tree_on_a_grid():
    random = np.random.default_rng(3)
    X = random.uniform(size=(500, 2))
    X[0], X[1] = 0, 1  # the edges are at round numbers then
    y = np.where(X[:, 0] < 0.5, 1.0, np.where(X[:, 1] < 0.25, 5.0, 9.0))
    extractor = whole_grid(
        DecisionTreeRegressor(random_state=0), n_slices=4, depth=1, threshold=1e-6
    ).fit(X, y)
    assert extractor.n_rules_ == 3
    assert extractor.score(X, y) == pytest.approx(1.0)
    assert sorted(r.output for r in extractor.rules_) == pytest.approx([1, 5, 9])


def test_numbers_that_would_overflow_are_rejected():
    X = np.array([[-1.7e308], [-1e308], [0.0], [1e308], [1.7e308]])
    with pytest.raises(ValueError, match=r"Feature 'x0' holds numbers up to 1\.7e\+308"):
        grid(CallableRegressor(lambda rows: np.sign(rows[:, 0])), n_slices=3).fit(X)
    X = np.arange(5.0)[:, None]
    with pytest.raises(ValueError, match=r"predicts numbers up to 4e\+200.*Scale the target"):
        grid(CallableRegressor(lambda rows: rows[:, 0] * 1e200)).fit(X)


def test_default_threshold_follows_target():
    X = random.uniform(size=(300, 2))

    def rules(scale, **options):
        black_box = CallableRegressor(lambda rows: scale * np.sin(6 * rows[:, 0]))
        return grid(black_box, n_slices=4, **options).fit(X).rules_

    half = float(np.std(np.sin(6 * X[:, 0]))) / 2
    assert rules(1.0) == rules(1.0, threshold=half)
    small, large = rules(1.0), rules(1000.0)
    assert [r.conditions for r in small] == [r.conditions for r in large]
    assert 1 < len(small) < len(rules(1.0, threshold=half / 10))
