"""REAL: rules compared with plain loops, known black boxes, categories and queries."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier
from skescore.extractors import Discretizer
from skescore.extractors.real import REALExtractor
from skescore.rules import Interval, OneOf

precise = partial(REALExtractor, min_precision=0.95)


def holds_for(premise, row) -> bool:
    return all(allowed[code] for allowed, code in zip(premise, row, strict=True))


# --- known black boxes ---


def grid_rows(n=400, d=4, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, d))


QUARTERS = {j: [-0.5, 0.0, 0.5] for j in range(4)}


def made_by(function, X, **options):
    options = {"discretizer": Discretizer("given", cut_points=QUARTERS), "tolerance": 0.0} | options
    return precise(CallableClassifier(function, classes=["no", "yes"]), **options).fit(X)


def test_real_finds_a_conjunction_exactly():
    def black_box(X):
        return np.where((X[:, 0] > 0) & (X[:, 2] <= 0.5), "yes", "no")

    extractor = made_by(black_box, grid_rows(), min_precision=1.0)
    premises = {(rule.conditions, rule.output) for rule in extractor.rules_}
    assert premises == {
        ((Interval(0, upper=0.0),), "no"),
        ((Interval(0, lower=0.0), Interval(2, upper=0.5)), "yes"),
        ((Interval(2, lower=0.5),), "no"),
    }
    X = grid_rows(seed=1)
    assert extractor.fidelity(X) == 1.0
    assert extractor.coverage_ == extractor.completeness_ == 1.0


def test_real_finds_middle_interval_and_union_exactly():
    def black_box(X):
        return np.where(np.abs(X[:, 1]) <= 0.5, "yes", "no")

    extractor = made_by(black_box, grid_rows(), min_precision=1.0)
    assert {(rule.conditions, rule.output) for rule in extractor.rules_} == {
        ((Interval(1, -0.5, 0.5),), "yes"),
        ((Interval(1, upper=-0.5),), "no"),
        ((Interval(1, lower=0.5),), "no"),
    }


def test_queries_distinguish_duplicated_features():
    """Two features are equal on all rows, but the black box depends on one of them only."""
    X = grid_rows()
    X[:, 0] = X[:, 3]

    def black_box(X):
        return np.where(X[:, 3] > 0, "yes", "no")

    queried = made_by(black_box, X, min_precision=1.0)
    assert {c.feature for rule in queried.rules_ for c in rule.conditions} == {3}
    unqueried = made_by(black_box, X, min_precision=1.0, n_variants=0)
    assert {c.feature for rule in unqueried.rules_ for c in rule.conditions} == {0}
    assert unqueried.oracle_.n_calls == 1


def test_predictions_come_from_first_matching_rule():
    X, y = load_wine(return_X_y=True)
    extractor = precise(KNeighborsClassifier(9)).fit(X, y)
    answers, rules = extractor.estimator_.predict(X), extractor.rules_
    assert rules.ordered
    counts = np.zeros((len(rules), 3), dtype=int)
    for row, answer, prediction in zip(X, answers, extractor.predict(X), strict=True):
        matching = [
            i
            for i, rule in enumerate(rules)
            if all(c.lower < row[c.feature] <= c.upper for c in rule.conditions)
        ]
        assert prediction == (rules[matching[0]].output if matching else rules.fallback.output)
        if matching:
            counts[matching[0], answer] += 1
    assert counts.sum() == round(extractor.coverage_ * len(X))
    for rule, row in zip(rules, counts.tolist(), strict=True):
        assert rule.statistics.class_counts == tuple(row)
        assert rule.statistics.n_rows == sum(row)
        assert 2 * row[rule.output] > sum(row)


# --- quality ---


@pytest.mark.parametrize(
    ("load", "black_box", "fidelity"),
    [
        (load_iris, KNeighborsClassifier(9), 0.94),
        (load_wine, DecisionTreeClassifier(random_state=0), 0.94),
        (load_breast_cancer, DecisionTreeClassifier(random_state=0), 0.92),
    ],
)
def test_rules_are_few_short_and_faithful(load, black_box, fidelity):
    X, y = load(return_X_y=True)
    shares, coverages = [], []
    for seed in range(3):
        train, test, y_train, _ = train_test_split(X, y, test_size=0.5, random_state=seed)
        extractor = precise(black_box).fit(train, y_train)
        assert extractor.n_rules_ <= 15
        assert extractor.rules_.n_conditions <= 4 * extractor.n_rules_
        assert extractor.coverage_ >= 0.98
        shares.append(extractor.fidelity(test))
        coverages.append(extractor.covers(test).mean())
    assert np.mean(shares) >= fidelity
    assert np.mean(coverages) >= 0.95


# --- queries ---


class Counting(DecisionTreeClassifier):
    """Tree that counts the calls of predict."""

    calls = 0

    def predict(self, X, check_input=True):
        type(self).calls += 1
        return super().predict(X, check_input)


@pytest.mark.parametrize("n_variants", [0, 20, 300])
def test_fit_queries_once_per_rule(n_variants):
    X, y = load_breast_cancer(return_X_y=True)
    Counting.calls = 0
    extractor = precise(Counting(random_state=0), n_variants=n_variants).fit(X, y)
    oracle = extractor.oracle_
    assert Counting.calls == oracle.n_calls == 1 + (n_variants > 0) * extractor.n_rules_made_
    assert oracle.n_rows == len(X) + n_variants * extractor.n_rules_made_
    assert extractor.n_rules_ <= extractor.n_rules_made_


def test_batch_size_changes_only_number_of_calls():
    X, y = load_iris(return_X_y=True)
    expected = precise(KNeighborsClassifier(9)).fit(X, y)
    batched = precise(KNeighborsClassifier(9), batch_size=7).fit(X, y)
    assert expected.rules_ == batched.rules_
    assert batched.oracle_.n_calls > expected.oracle_.n_calls


# --- parameters ---


def test_max_rules_and_tolerance_limit_rules():
    X, y = load_wine(return_X_y=True)
    full = precise(KNeighborsClassifier(9), tolerance=0.0, max_rules=None, max_candidates=None).fit(
        X, y
    )
    assert full.coverage_ == 1.0
    few = precise(KNeighborsClassifier(9), max_candidates=3).fit(X, y)
    assert few.n_rules_ <= few.n_rules_made_ == 3
    best = precise(KNeighborsClassifier(9), max_rules=3).fit(X, y)
    assert best.n_rules_made_ > best.n_rules_ == 3
    default = precise(KNeighborsClassifier(9)).fit(X, y)
    assert list(best.rules_) == list(default.rules_)[:3]
    loose = precise(KNeighborsClassifier(9), tolerance=0.2).fit(X, y)
    assert loose.coverage_ >= 0.8
    assert loose.n_rules_ < full.n_rules_


def test_fit_clones_discretizer():
    discretizer = Discretizer("quantile", n_bins=3)
    X, y = load_iris(return_X_y=True)
    extractor = precise(KNeighborsClassifier(9), discretizer=discretizer).fit(X, y)
    assert not hasattr(discretizer, "cut_points_")
    assert extractor.discretizer is discretizer
    bounds = {b for r in extractor.rules_ for c in r.conditions for b in (c.lower, c.upper)}
    cuts = {float(c) for cuts in extractor.discretizer_.cut_points_ for c in cuts}
    assert bounds - {-np.inf, np.inf} <= cuts
    assert extractor.discretizer_.n_bins_.tolist() == [3] * 4


def test_imprecise_bins_get_no_rule():
    X = np.arange(10.0)[:, None]
    extractor = precise(
        CallableClassifier(lambda X: (X[:, 0] > 5.5).astype(int), classes=[0, 1]),
        discretizer=Discretizer("given", cut_points=[[2.5]]),
    ).fit(X)
    (text,) = map(str, extractor.rules_)
    assert text == "IF x0 ≤ 2.5 THEN 0   [3 rows, 100 % agree with the model]"
    assert extractor.coverage_ == 0.3
    blind = clone(extractor).set_params(discretizer=Discretizer("given", cut_points={})).fit(X)
    assert len(blind.rules_) == 0
    assert blind.predict(X).tolist() == [0] * 10  # the fallback


def test_constant_black_box_gives_one_rule():
    X = grid_rows(30, 2)
    model = CallableClassifier(lambda X: np.zeros(len(X), dtype=int), classes=[0, 1])
    with pytest.warns(UserWarning, match="only one rule"):
        extractor = precise(model).fit(X)
    (text,) = map(str, extractor.rules_)
    assert text == "ALWAYS 0   [30 rows, 100 % agree with the model]"


@pytest.mark.parametrize(
    ("parameters", "error", "text"),
    [
        ({"discretizer": "tree"}, TypeError, "must be a Discretizer or None, got 'tree'"),
        ({"min_precision": 0.0}, ValueError, "min_precision must be a number above 0"),
        ({"min_precision": 1.1}, ValueError, "min_precision .*got 1.1"),
        ({"n_variants": -1}, ValueError, "n_variants must be an integer of 0 or more, got -1"),
        ({"max_rules": 0}, ValueError, "max_rules must be an integer of 1 or more or None"),
        ({"tolerance": 0.7}, ValueError, "tolerance .*from 0 to 0.5, got 0.7"),
        ({"subsumption": "yes"}, TypeError, "subsumption must be True or False"),
    ],
)
def test_parameters_reject_invalid_values(parameters, error, text):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(error, match=text):
        precise(KNeighborsClassifier(9), **parameters).fit(X, y)


def test_fit_rejects_regression():
    X = grid_rows(20, 2)
    with pytest.raises(ValueError, match=r"rules for classification only.*LinearRegression"):
        REALExtractor(LinearRegression()).fit(X, X[:, 0])


# --- categories ---


def shirts(n=300, *, kind="category"):
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "color": random.choice(["red", "green", "blue", "white"], n),
            "width": random.uniform(0, 10, n),
            "cloth": random.choice(["wool", "silk"], n),
        }
    )
    y = np.where(X["color"].isin(["red", "blue"]) & (X["width"] > 4), "dear", "cheap")
    if kind == "category":
        X = X.astype({"color": "category", "cloth": "category"})
    return X, y


def pipeline():
    encoder = make_column_transformer(
        (OneHotEncoder(), ["color", "cloth"]), remainder="passthrough"
    )
    return make_pipeline(encoder, DecisionTreeClassifier(random_state=0))


@pytest.mark.parametrize("kind", ["category", "str"])
def test_rules_name_categories(kind):
    X, y = shirts(kind=kind)
    # The tree cuts halfway between the widths of red and blue shirts around 4.
    widths = X["width"][X["color"].isin(["red", "blue"])]
    cut = (widths[widths <= 4].max() + widths[widths > 4].min()) / 2
    discretizer = Discretizer("given", cut_points={"width": [2.0, cut, 8.0]})
    extractor = precise(pipeline(), discretizer=discretizer, min_precision=1.0).fit(X, y)
    assert extractor.fidelity(X) == extractor.coverage_ == 1.0
    dear = [rule for rule in extractor.rules_ if rule.output == "dear"]
    assert len(dear) == 1
    assert dear[0].conditions == (Interval(1, lower=cut), OneOf(0, ["blue", "red"]))
    assert "color in {blue, red}" in str(dear[0])
    assert "cloth" not in str(extractor.rules_)
    cheap = {c for rule in extractor.rules_ if rule.output == "cheap" for c in rule.conditions}
    assert OneOf(0, ["green", "white"]) in cheap
    assert extractor.oracle_.n_calls == 1 + extractor.n_rules_made_


def test_cut_points_are_matched_by_name():
    X, y = shirts()
    discretizer = Discretizer("given", cut_points={"width": [4.0, 7.0]})
    extractor = precise(pipeline(), discretizer=discretizer).fit(X, y)
    bounds = {
        c.lower for rule in extractor.rules_ for c in rule.conditions if isinstance(c, Interval)
    }
    assert 4.0 in bounds
    assert extractor.discretizer_.feature_names_in_.tolist() == ["width"]


def test_categories_need_no_discretizer():
    X, _ = shirts()
    X = X[["color", "cloth"]]
    y = np.where((X["color"] == "red") & (X["cloth"] == "silk"), 1, 0)
    model = make_pipeline(OneHotEncoder(), DecisionTreeClassifier(random_state=0))
    extractor = precise(model, min_precision=1.0).fit(X, y)
    assert extractor.discretizer_ is None
    assert extractor.fidelity(X) == 1.0
    yes = [rule.conditions for rule in extractor.rules_ if rule.output == 1]
    assert yes == [(OneOf(0, ["red"]), OneOf(1, ["silk"]))]


# --- faults of the reference platform ---


def test_fit_ignores_global_random_state():
    X, y = load_iris(return_X_y=True)
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    precise(KNeighborsClassifier(9)).fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_second_fit_gives_same_rules():
    X, y = load_iris(return_X_y=True)
    extractor = precise(KNeighborsClassifier(9)).fit(X, y)
    first, rows = extractor.rules_, extractor.oracle_.n_rows
    precise(KNeighborsClassifier(3)).fit(X[:, :2], y)  # no memory shared by the class
    assert extractor.fit(X, y).rules_ == first
    assert extractor.oracle_.n_rows == rows


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**300])
def test_rules_do_not_depend_on_units(factor):
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    plain = precise(FrozenEstimator(model)).fit(X).rules_
    black_box = CallableClassifier(lambda X: model.predict(X / factor), classes=[0, 1, 2])
    scaled = precise(black_box).fit(X * factor).rules_
    assert len(plain) == len(scaled) > 2
    for rule, other in zip(plain, scaled, strict=True):
        assert rule.output == other.output
        assert [(c.feature, c.lower * factor, c.upper * factor) for c in rule.conditions] == [
            (c.feature, c.lower, c.upper) for c in other.conditions
        ]


@pytest.mark.parametrize("names", [["b", "a", "c"], [7, 3, 5], ["c", "b", "a"]])
def test_fit_accepts_any_labels_and_wrappers(names):
    X, y = load_iris(return_X_y=True)
    labels = np.array(names)[y]
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [9]}, cv=2)
    extractor = precise(make_pipeline(search)).fit(X, labels)
    numbers = precise(make_pipeline(search)).fit(X, y)
    assert extractor.classes_.tolist() == sorted(names)
    assert extractor.predict(X).tolist() == np.array(names)[numbers.predict(X)].tolist()
    assert [r.conditions for r in extractor.rules_] == [r.conditions for r in numbers.rules_]


def test_fit_discretizes_and_ignores_constants():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.full(len(X), 3.0)])
    extractor = precise(KNeighborsClassifier(9)).fit(X, y)
    assert extractor.fidelity(X) > 0.95
    assert not any(c.feature == 4 for rule in extractor.rules_ for c in rule.conditions)


def test_estimator_survives_clone_and_pickle():
    X, y = load_iris(return_X_y=True, as_frame=True)
    extractor = precise(KNeighborsClassifier(9), min_precision=0.9).fit(X, y)
    assert clone(extractor).get_params()["min_precision"] == 0.9
    other = pickle.loads(pickle.dumps(extractor))
    assert other.rules_ == extractor.rules_
    np.testing.assert_array_equal(other.predict(X), extractor.predict(X))
    assert extractor.rules_.feature_names == tuple(X.columns)
