"""ITER: growth, gaps, queries, and faults of PSyKE."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from california import stand_in_for_california
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors.iter import ITERExtractor

SQUARE = np.random.default_rng(0).uniform(size=(300, 2))
SUM = CallableRegressor(lambda rows: np.asarray(rows).sum(axis=1))
SIDES = CallableClassifier(lambda rows: np.where(np.asarray(rows)[:, 0] < 0.5, "left", "right"))
IRIS = load_iris()


def iterate(black_box=SUM, **parameters):
    defaults = {
        "min_examples": 20,
        "n_points": 1,
        "max_rules": None,
        "n_features_to_select": None,
        "random_state": 0,
    }
    return ITERExtractor(black_box, **(defaults | parameters))


# --- growth ---


def test_boxes_grow_while_predictions_are_similar():
    extractor = iterate(SIDES, min_update=0.05).fit(SQUARE)
    first, second = extractor.rules_
    assert {first.output, second.output} == {"left", "right"}
    for rule in (first, second):
        (condition,) = rule.conditions
        assert condition.feature == 0
        bound = condition.upper if rule.output == "left" else condition.lower
        assert bound == pytest.approx(0.5, abs=0.05)
    assert extractor.completeness_ == 1.0
    assert extractor.fidelity(SQUARE) > 0.95


def test_larger_threshold_gives_fewer_rules():
    numbers = [iterate(threshold=t).fit(SQUARE).n_rules_ for t in (0.05, 0.2, 0.5, 2.0)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > 10
    assert numbers[-1] == 1


def test_default_threshold_follows_target():
    one = iterate().fit(SQUARE)
    other = iterate(CallableRegressor(lambda rows: 1000 * rows.sum(axis=1))).fit(SQUARE)
    assert one.n_rules_ > 2
    assert [r.conditions for r in one.rules_] == [r.conditions for r in other.rules_]
    spread = np.std(SUM.predict(SQUARE))
    assert iterate(threshold=spread / 2).fit(SQUARE).rules_ == one.rules_


def test_strips_without_points_or_rows_are_entered_evenly():
    # Two rows in opposite corners, without any rows between.
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    extractor = iterate(threshold=0.1, min_examples=0, max_iterations=7).fit(X)
    assert extractor.oracle_.n_calls == 1
    bounds = [(c.feature, round(c.upper, 6)) for c in extractor.rules_[0].conditions]
    assert bounds in ([(0, 0.1), (1, 0.1)], [(0, 0.5), (1, 0.4)], [(0, 0.5), (1, 0.5)])


@pytest.mark.parametrize("ignored", [[1], ["height"], np.array([1]), ("height", 1)])
def test_ignored_dimensions_are_in_no_rule(ignored):
    import pandas as pd

    frame = pd.DataFrame(SQUARE, columns=["width", "height"])
    extractor = iterate(DecisionTreeRegressor(random_state=0), ignore_dimensions=ignored)
    rules = extractor.fit(frame, SQUARE.sum(axis=1)).rules_
    assert len(rules) > 2
    assert {c.feature for rule in rules for c in rule.conditions} == {0}


def test_ignoring_all_dimensions_leaves_one_rule():
    rules = iterate(ignore_dimensions=[0, 1]).fit(SQUARE).rules_
    assert [rule.conditions for rule in rules] == [()]
    assert rules[0].output == pytest.approx(SQUARE.sum(axis=1).mean())


def test_constant_features_are_in_no_rule():
    wide = np.column_stack([np.full(300, 7.0), SQUARE, np.full(300, 1e9)])
    black_box = CallableRegressor(lambda rows: rows[:, 1] + rows[:, 2])
    rules = iterate(black_box).fit(wide).rules_
    assert len(rules) > 2
    assert {c.feature for rule in rules for c in rule.conditions} == {1, 2}


def test_iter_respects_max_iterations():
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [0.95, 1.0], [0.5, 0.0]])
    black_box = CallableRegressor(lambda r: np.round(r[:, 0] * 3) + np.round(r[:, 1] * 7))
    few, many = (iterate(black_box, threshold=0.1, max_iterations=n).fit(rows) for n in (2, 600))
    assert few.n_iterations_ == 2
    assert few.coverage_ < 1
    assert 2 < many.n_iterations_ < 600
    assert many.coverage_ == 1


# --- faults of PSyKE ---
def test_outputs_are_means_of_final_boxes():
    answers = SUM.predict(SQUARE)
    fresh = iterate(threshold=0.3).fit(SQUARE)
    stale = iterate(threshold=0.3, refresh_output=False).fit(SQUARE)
    for extractor in (fresh, stale):
        owner = extractor.rules_.assign(SQUARE)
        means = [answers[owner == i].mean() for i in range(extractor.n_rules_)]
        outputs = [rule.output for rule in extractor.rules_]
        assert [rule.statistics.mean for rule in extractor.rules_] == pytest.approx(means)
        assert (outputs == pytest.approx(means)) == (extractor is fresh)
    # The box that starts halfway keeps its first output: about halfway.
    halfway = (answers.min() + answers.max()) / 2
    assert stale.rules_[0].output == pytest.approx(halfway, abs=0.15)
    assert r2_score(answers, np.array(means)[owner]) > stale.fidelity(SQUARE) + 0.01


def test_fit_keeps_parameters():
    extractor = iterate(n_points=3)
    first = extractor.fit(SQUARE).rules_
    assert extractor.n_points == 3
    assert extractor.fit(SQUARE).rules_ == first


def test_fit_ignores_global_random_state():
    np.random.seed(5)
    expected = np.random.uniform(size=3)
    np.random.seed(5)
    iterate(random_state=1).fit(SQUARE)
    np.testing.assert_array_equal(np.random.uniform(size=3), expected)


@pytest.mark.parametrize("n_features", [2, 6])
def test_fit_queries_at_most_once_per_step(n_features):
    X = np.random.default_rng(1).uniform(size=(200, n_features))
    extractor = iterate(min_examples=50, threshold=0.4).fit(X)
    assert extractor.n_iterations_ > 20
    # Most steps need none, because points are shared.
    assert extractor.oracle_.n_calls <= 1 + 0.75 * extractor.n_iterations_
    # New queries for all strips of a box after each step would be more.
    assert extractor.oracle_.n_rows < 50 * n_features * extractor.n_iterations_
    nothing_to_ask = iterate(min_examples=0, threshold=0.4).fit(X)
    assert nothing_to_ask.oracle_.n_calls == 1


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**30])
def test_rules_do_not_depend_on_units(scale):
    black_box = CallableRegressor(lambda rows: rows[:, 0] * factor + rows[:, 1])
    rules = {}
    for factor in (1.0, 1 / scale):
        rules[factor] = iterate(black_box).fit(SQUARE / [factor, 1.0]).rules_
    one, other = rules.values()
    assert len(one) > 2
    np.testing.assert_allclose(other.boxes.lower * [1 / scale, 1.0], one.boxes.lower, rtol=1e-12)
    np.testing.assert_allclose(other.boxes.upper * [1 / scale, 1.0], one.boxes.upper, rtol=1e-12)


def test_boxes_share_exact_faces():
    rules = iterate(threshold=0.1).fit(SQUARE).rules_
    table = rules.boxes
    faces = [np.unique(np.concatenate([table.lower[:, j], table.upper[:, j]])) for j in (0, 1)]
    for bounds in faces:
        inner = bounds[np.isfinite(bounds)]
        assert len(inner) > 2
        assert (np.diff(inner) > 1e-5).all()  # no two faces that should be one
    probes = np.array(np.meshgrid(*(np.nan_to_num(f, posinf=2, neginf=-2) for f in faces)))
    n_rules = rules.match(probes.reshape(2, -1).T).sum(axis=1)
    assert (n_rules == 1).all()  # faces belong to exactly one of the adjacent boxes


# --- queries ---


def test_rules_do_not_depend_on_batch_size():
    full_fitted = iterate(threshold=0.2).fit(SQUARE)
    parts = iterate(threshold=0.2, batch_size=7).fit(SQUARE)
    assert full_fitted.rules_ == parts.rules_
    assert full_fitted.oracle_.n_rows == parts.oracle_.n_rows
    assert full_fitted.oracle_.n_calls < parts.oracle_.n_calls


def test_random_state_changes_only_drawn_points():
    fits = [iterate(threshold=0.1, min_examples=3, random_state=s).fit(SQUARE) for s in (0, 0, 1)]
    assert fits[0].rules_ == fits[1].rules_
    assert fits[0].rules_ != fits[2].rules_
    none = [iterate(threshold=0.1, min_examples=0, random_state=s).fit(SQUARE) for s in (0, 1)]
    assert none[0].rules_ == none[1].rules_


# --- any rows ---


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 25),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([(1, 0), (1 / 3, -5), (1e-9, 1), (1e-300, 0), (1e150, 0), (1e-8, 1e8)]),
    st.sampled_from([0, 4]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore:The black box predicts")
def test_rules_are_disjoint_and_cover_all_rows(n_rows, n_features, seed, place, wanted, classes):
    random = np.random.default_rng(seed)
    X = random.integers(0, 9, (n_rows, n_features)) * place[0] + place[1]
    middle = np.median(X[:, 0])
    black_box = (
        CallableClassifier(lambda rows: rows[:, 0] > middle, classes=[False, True])
        if classes
        else CallableRegressor(lambda rows: (rows[:, 0] > middle) * 1.0)
    )
    extractor = iterate(black_box, min_examples=wanted, min_update=0.3).fit(X)
    matches = extractor.rules_.match(X)
    assert (matches.sum(axis=1) == 1).all()
    assert [r.statistics.n_rows for r in extractor.rules_] == matches.sum(axis=0).tolist()
    assert extractor.coverage_ == 1.0
    assert 0 < extractor.completeness_ <= 1 + 1e-9


def test_fit_handles_predictions_of_any_scale():
    X = np.arange(30.0)[:, None]
    for scale in (1e-200, 1e-3, 1e140):
        black_box = CallableRegressor(lambda rows, scale=scale: np.floor(rows[:, 0] / 10) * scale)
        extractor = iterate(black_box, min_update=0.05).fit(X)
        assert extractor.fidelity(X) > 0.85


@pytest.mark.parametrize("where", ["feature", "answers"])
def test_numbers_that_would_overflow_are_rejected(where):
    X = SQUARE * (1e301 if where == "feature" else 1)
    black_box = CallableRegressor(lambda rows: rows[:, 0] * (1e200 if where == "answers" else 1))
    with pytest.raises(ValueError, match=r"overflow\. Scale the"):
        iterate(black_box).fit(X)


# --- parameters ---


@pytest.mark.parametrize(
    ("parameter", "value", "wrong", "message"),
    [
        ("min_update", 0, ValueError, "min_update must be a number above 0 and at most 1"),
        (
            "min_update",
            1.5,
            ValueError,
            "min_update must be a number above 0 and at most 1, got 1.5",
        ),
        ("min_update", "0.1", TypeError, "min_update must be a number .* got '0.1'"),
        ("n_points", 0, ValueError, "n_points must be an integer of 1 or more, got 0"),
        ("max_iterations", 0, ValueError, "max_iterations must be .* got 0"),
        ("max_iterations", 1.5, TypeError, "max_iterations must be .* got 1.5"),
        ("min_examples", -1, ValueError, "min_examples must be .* got -1"),
        ("threshold", -0.1, ValueError, "threshold must be .* got -0.1"),
        ("threshold", float("nan"), ValueError, "threshold must be .* got nan"),
        ("fill_gaps", "yes", TypeError, "fill_gaps must be True or False, got 'yes'"),
        ("refresh_output", None, TypeError, "refresh_output must be True or False"),
        ("ignore_dimensions", "x0", TypeError, "must be a sequence of .* got 'x0'"),
        ("ignore_dimensions", 0, TypeError, "must be a sequence of .* got 0"),
        ("ignore_dimensions", [2], ValueError, "column indices from 0 to 1, got 2"),
        ("ignore_dimensions", [-1], ValueError, "column indices from 0 to 1, got -1"),
        ("ignore_dimensions", [True], TypeError, "column indices or names, got True"),
        ("ignore_dimensions", ["x7"], ValueError, r"'x7' is none of \['x0', 'x1'\]"),
    ],
)
def test_parameters_reject_invalid_values(parameter, value, wrong, message):
    with pytest.raises(wrong, match=message):
        iterate(**{parameter: value}).fit(SQUARE)


# --- comparison with PSyKE ---

RECORDS = json.loads((Path(__file__).parents[2] / "data" / "iter_reference.json").read_text())


def record_data(name):
    if name != "calif":
        data = {"iris": load_iris, "wine": load_wine}[name]()
        model = (
            KNeighborsClassifier(9) if name == "iris" else DecisionTreeClassifier(random_state=0)
        )
        return data.data, data.target, model
    return *stand_in_for_california(), RandomForestRegressor(50, random_state=0)


@pytest.mark.parametrize("record", RECORDS["records"], ids=lambda r: f"{r['data']}-{r['seed']}")
def test_iter_needs_no_more_rules_than_psyke(record):
    X, y, model = record_data(record["data"])
    train, test, y_train, y_test = X, X, y, y
    if record["seed"] is not None:
        train, test, y_train, y_test = train_test_split(
            X,
            y,
            test_size=0.5,
            random_state=record["seed"],
            stratify=None if record["data"] == "calif" else y,
        )
    model.fit(train, y_train)
    extractor = ITERExtractor(
        FrozenEstimator(model),
        min_update=record["min_update"],
        min_examples=record["min_examples"],
        threshold=record.get("threshold", 0.3 if is_classifier(model) else None),
        n_points=1,
        max_rules=None,
        n_features_to_select=None,
        random_state=0,
    ).fit(train)
    measure = r2_score if record["data"] == "calif" else accuracy_score
    assert extractor.n_rules_ <= record["n_rules"]
    assert extractor.coverage_ == 1.0
    assert measure(model.predict(test), extractor.predict(test)) >= record.get("fidelity", 0) - 1e-6
    if record["data"] != "calif":
        assert measure(y_test, extractor.predict(test)) >= record["truth"] - 1e-6


def test_iter_limits_queries_for_thirty_features():
    X, y = load_breast_cancer(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0)
    options = {"n_points": 1, "threshold": 0.3, "n_features_to_select": None}
    extractor = iterate(tree, min_examples=25, **options).fit(X, y)
    assert extractor.n_iterations_ <= 600
    assert extractor.oracle_.n_calls <= 1 + extractor.n_iterations_
    assert extractor.n_rules_ <= 8
    assert extractor.score(X, y) > 0.85


def test_clone_gives_the_same_rules():
    extractor = iterate(SIDES, threshold=0.2, n_points=2).fit(SQUARE)
    assert clone(extractor).fit(SQUARE).rules_ == extractor.rules_
