"""Trepan: the published algorithm, from predictions of the black box to printed rules."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier
from skescore.extractors.trepan import TrepanExtractor
from skescore.rules import AtLeast, Interval, OneOf, RuleSet

IRIS, SPECIES = load_iris(return_X_y=True)


def black_box(function):
    return CallableClassifier(lambda rows: np.asarray(function(np.asarray(rows)), dtype=int))


def bits(n, n_features, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, n_features)).astype(float)


def shop(n=300, seed=0):
    """Return rows with two categorical columns; two of three facts make a buyer."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "color": random.choice(["red", "green", "blue", "gray"], n),
            "weight": random.normal(50, 10, n),
            "size": pd.Categorical(random.choice(["S", "M", "L"], n)),
            "age": random.integers(18, 70, n),
        }
    )
    return frame, np.where(buys(frame), "buy", "leave")


def buys(frame):
    warm = frame["color"].isin(["red", "blue"]).to_numpy().astype(int)
    return warm + (frame["size"] == "L").to_numpy() + (frame["weight"].to_numpy() > 50) >= 2


# --- known black boxes ---


def test_trepan_expresses_three_of_five_as_one_test():
    """The textbook case of M-of-N: a tree of ordinary tests needs 20 leaves for it."""
    rows = bits(200, 5)
    extractor = TrepanExtractor(
        black_box(lambda X: X.sum(axis=1) >= 3), max_literals=5, random_state=0
    ).fit(rows)
    first, last = extractor.rules_
    ones = [Interval(j, lower=0.5) for j in range(5)]
    assert first.conditions == (AtLeast(3, ones),)
    assert (first.output, last.output, last.conditions) == (1, 0, ())
    assert extractor.n_splits_ == 1
    apart = clone(extractor).set_params(simplify=False).fit(rows)
    assert apart.rules_[1].conditions == (AtLeast(3, [Interval(j, upper=0.5) for j in range(5)]),)
    ordinary = clone(extractor).set_params(max_literals=1, max_nodes=None).fit(rows)
    assert ordinary.n_rules_ == 20
    assert not any(rule.non_intervals for rule in ordinary.rules_)


def test_trepan_expresses_two_of_three_facts_as_one_test():
    rows, labels = shop()
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["color", "size"]), remainder="passthrough"),
        RandomForestClassifier(30, random_state=0),
    )
    extractor = TrepanExtractor(model, max_nodes=1, random_state=0).fit(rows, labels)
    (condition,) = extractor.rules_[0].conditions
    assert isinstance(condition, AtLeast)
    color, weight, size = condition.conditions
    assert (condition.m, color, size) == (
        2,
        OneOf(0, ["green", "gray"]),
        OneOf(2, ["L"], negated=True),
    )
    assert weight.feature == 1
    assert weight.upper == pytest.approx(50, abs=2)
    assert extractor.fidelity(rows) > 0.98
    assert "at least 2 of (color in {gray, green}; weight ≤ " in str(extractor.rules_)


@pytest.mark.parametrize("simplify", [True, False])
def test_trivial_m_of_n_tests_are_plain_conditions(simplify):
    rows = np.random.default_rng(0).random((300, 3))
    extractor = TrepanExtractor(
        black_box(lambda X: (X[:, 0] > 0.5) & (X[:, 1] > 0.5)), random_state=0, simplify=simplify
    ).fit(rows)
    assert extractor.n_splits_ == 1
    both = next(rule for rule in extractor.rules_ if rule.output == 1)
    other = next(rule for rule in extractor.rules_ if rule.output == 0)
    assert [(type(c), c.feature) for c in both.conditions] == [(Interval, 0), (Interval, 1)]
    if simplify:
        assert other.conditions == ()
    else:
        (condition,) = other.conditions
        assert (condition.m, len(condition.conditions)) == (1, 2)


def test_categories_are_split_by_the_best_set():
    rows, _ = shop()
    warm = CallableClassifier(lambda X: X["color"].isin(["red", "blue"]).to_numpy().astype(int))
    extractor = TrepanExtractor(warm, random_state=0).fit(rows)
    assert extractor.n_rules_ == 2
    (condition,) = extractor.rules_[0].conditions
    assert condition in (
        OneOf(0, ["blue", "red"]),
        OneOf(0, ["blue", "red"], negated=True),
        OneOf(0, ["green", "gray"]),
        OneOf(0, ["green", "gray"], negated=True),
    )
    assert extractor.fidelity(rows) == 1.0


def test_fidelity_exceeds_that_of_a_tree_of_equal_size():
    gains = []
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        for seed in range(3):
            train, test, y_train, _ = train_test_split(X, y, test_size=0.5, random_state=seed)
            model = (
                KNeighborsClassifier(9)
                if load is load_iris
                else DecisionTreeClassifier(random_state=seed)
            ).fit(train, y_train)
            extractor = TrepanExtractor(FrozenEstimator(model), max_leaf_nodes=6, random_state=seed)
            extractor.fit(train)
            tree = DecisionTreeClassifier(max_leaf_nodes=extractor.n_rules_, random_state=seed)
            tree.fit(train, model.predict(train))
            gains.append(extractor.fidelity(test) - tree.score(test, model.predict(test)))
    assert np.mean(gains) > 0.005


# --- the tree ---


def test_min_sample_of_zero_queries_rows_only():
    extractor = TrepanExtractor(KNeighborsClassifier(9), min_sample=0, max_nodes=None)
    extractor.fit(IRIS, SPECIES)
    assert (extractor.oracle_.n_calls, extractor.oracle_.n_rows) == (1, 150)
    for number, rule in enumerate(extractor.rules_):
        inside = extractor.estimator_.predict(IRIS[extractor.rules_.assign(IRIS) == number])
        assert rule.statistics.n_rows == len(inside)
        assert rule.statistics.class_counts == tuple(np.bincount(inside, minlength=3))


@pytest.mark.parametrize("options", [{}, {"max_nodes": 3}, {"max_depth": 2}, {"max_leaf_nodes": 4}])
def test_trepan_queries_black_box_once_per_split(options):
    """Fault 8: one call per row, cell or merge."""
    extractor = TrepanExtractor(KNeighborsClassifier(9), random_state=0, **options)
    extractor.fit(IRIS, SPECIES)
    assert extractor.n_splits_ >= 2
    # The rows, the root, and both sides of a split together.
    assert extractor.oracle_.n_calls <= 2 + extractor.n_splits_
    fitted = clone(extractor).set_params(min_sample=1, max_nodes=3).fit(IRIS, SPECIES)
    assert fitted.oracle_.n_calls == 1


def test_instances_of_a_node_satisfy_its_tests():
    queries = []

    def answer(rows):
        queries.append(rows)
        return (rows[:, :3] > 0).sum(axis=1) >= 2

    rows = np.random.default_rng(0).normal(size=(50, 5))
    extractor = TrepanExtractor(black_box(answer), max_nodes=1, min_sample=300, random_state=0)
    extractor.fit(rows)
    assert [len(part) for part in queries[:2]] == [50, 250]
    (condition,) = extractor.rules_[0].conditions
    is_covered = condition.holds(lambda j: queries[2][:, j])
    # First those for the side where the test holds, then those for the other one.
    assert (np.diff(is_covered.astype(int)) <= 0).all()
    assert 0 < is_covered.sum() < len(is_covered)
    assert len(queries) == 3
    everything = np.concatenate(queries[1:])
    assert (everything >= rows.min(axis=0) - 1e-6).all()
    assert (everything <= rows.max(axis=0) + 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("simplify", [True, False])
def test_joined_leaves_count_as_one(simplify):
    """The limit counts rules, so that no rule is wasted on two leaves of one class."""
    rows = np.random.default_rng(3).uniform(-1, 1, size=(400, 4))
    labels = (rows[:, 0] * rows[:, 1] > 0.1) + (rows[:, 2] > 0.3)
    options = {"max_literals": 1, "max_nodes": None, "simplify": simplify, "random_state": 0}
    sizes = {}
    for limit in range(3, 12):
        extractor = TrepanExtractor(KNeighborsClassifier(5), max_leaf_nodes=limit, **options)
        extractor.fit(rows, labels)
        sizes[limit] = extractor.n_rules_, extractor.n_splits_
    assert all(n_rules <= limit for limit, (n_rules, _) in sizes.items())
    assert all(n_rules >= limit - 1 for limit, (n_rules, _) in sizes.items())
    assert any(n_splits > n_rules - 1 for n_rules, n_splits in sizes.values())


def test_limits_bound_the_tree():
    def fit(**options):
        return TrepanExtractor(KNeighborsClassifier(9), random_state=0, **options).fit(
            IRIS, SPECIES
        )

    assert fit(max_nodes=4).n_splits_ == 4
    assert fit(max_leaf_nodes=3).n_splits_ == 2
    assert fit(max_leaf_nodes=3).n_rules_ == 3
    assert max(len(r.conditions) for r in fit(max_depth=1, max_literals=1).rules_) == 1
    assert fit(max_depth=1).n_rules_ == 2
    assert fit(min_gain=2.0).n_rules_ == 1
    assert fit(max_nodes=None, min_samples_leaf=0).n_splits_ > 15  # and comes to an end
    rows_below = [
        rule.statistics.n_rows for rule in fit(min_samples_leaf=10, max_nodes=None).rules_
    ]
    assert min(rows_below) >= 10


def test_pure_nodes_are_leaves():
    # 2 % of the answers differ.
    rows = np.linspace(0, 1, 2000)[:, None]
    rare = black_box(lambda X: X[:, 0] > 0.98)
    for purity, n_rules in ((0.97, 1), (0.99, 2)):
        assert TrepanExtractor(rare, purity=purity).fit(rows).n_rules_ == n_rules
    # With a higher confidence, 97.5 % is not certain.
    fitted = TrepanExtractor(rare, purity=0.975, confidence=0.9).fit(rows)
    doubtful = TrepanExtractor(rare, purity=0.975, confidence=0.999).fit(rows)
    assert (fitted.n_rules_, doubtful.n_rules_) == (1, 2)


# --- the rules ---


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    options=st.fixed_dictionaries(
        {
            "max_nodes": st.sampled_from([1, 4, None]),
            "max_literals": st.sampled_from([1, 2, 4]),
            "min_sample": st.sampled_from([0, 60, 200]),
            "min_samples_leaf": st.sampled_from([0, 1, 5]),
            "beam_width": st.sampled_from([1, 3]),
            "significance": st.sampled_from([0.01, 0.9]),
        }
    ),
)
@pytest.mark.filterwarnings("ignore:The black box predicts")
def test_lists_predict_like_leaves(seed, options):
    random = np.random.default_rng(seed)
    frame, _ = shop(80, seed)
    frame["age"] //= 10  # a number of few values
    weights = random.normal(size=6)

    def answer(rows):
        score = (
            weights[0] * (rows["weight"] - 50) / 10
            + weights[1] * rows["color"].isin(["red", "gray"])
            + weights[2] * (rows["size"] == "M")
            + weights[3] * rows["age"]
            + weights[4] * (rows["color"] == "red") * (rows["weight"] > 55)
        )
        return np.clip(np.floor(np.asarray(score, dtype=float)), 0, 2).astype(int)

    extractor = TrepanExtractor(
        CallableClassifier(answer, classes=[0, 1, 2]), random_state=seed, **options
    ).fit(frame)
    apart = clone(extractor).set_params(simplify=False).fit(frame)
    assert extractor.rules_.ordered
    assert apart.rules_.disjoint
    assert extractor.coverage_ == apart.coverage_ == 1.0
    cuts = [c.lower for r in apart.rules_ for c in r.intervals if c.feature == 1]
    cuts += [c.upper for r in apart.rules_ for c in r.intervals if c.feature == 1]
    cuts = [c for c in cuts if np.isfinite(c)] or [50.0]
    rows, _ = shop(150, seed + 1)
    rows["weight"] = np.where(random.random(150) < 0.5, random.choice(cuts, 150), rows["weight"])
    rows["age"] //= 10
    unseen = rows.assign(color="violet")
    for some in (frame, rows, unseen):
        assert (
            np.sum(
                [
                    r.holds(lambda j, f=some: f.iloc[:, j].to_numpy(), len(some))
                    for r in apart.rules_
                ],
                axis=0,
            )
            == 1
        ).all()
        np.testing.assert_array_equal(extractor.rules_.predict(some), apart.rules_.predict(some))
        np.testing.assert_array_equal(
            extractor.rules_.predict_proba(some), apart.rules_.predict_proba(some)
        )
    assert extractor.rules_[-1].conditions == ()
    assert extractor.rules_.n_literals <= apart.rules_.n_literals
    for rules in (extractor.rules_, apart.rules_):
        index = rules.assign(frame)
        counted = [r.statistics.n_rows for r in rules]
        assert counted == np.bincount(index, minlength=len(rules)).tolist()
        for rule in rules:
            counts = rule.statistics.class_counts
            assert rule.output == int(np.argmax(counts))  # ties: the smallest class
        assert RuleSet.from_json(rules.to_json()) == rules


def test_conditions_use_values_of_the_frame():
    rows, _ = shop()
    rows["size"] = pd.Categorical(rows["size"].map({"S": 10, "M": 20, "L": 30}).astype(int))
    large = CallableClassifier(lambda X: (X["size"].astype(int) == 30).to_numpy().astype(int))
    extractor = TrepanExtractor(large, random_state=0, simplify=False).fit(rows)
    assert {c.values for r in extractor.rules_ for c in r.conditions} == {(30,)}
    assert extractor.fidelity(rows) == 1.0


# --- reproducibility ---


@pytest.mark.slow
def test_batch_size_does_not_change_rules():
    full_fitted = TrepanExtractor(KNeighborsClassifier(9), random_state=0).fit(IRIS, SPECIES)
    parts = clone(full_fitted).set_params(batch_size=37).fit(IRIS, SPECIES)
    assert parts.rules_ == full_fitted.rules_
    assert parts.oracle_.n_calls > full_fitted.oracle_.n_calls


def test_fit_ignores_global_random_state():
    """Fault 6: the global generator was seeded."""
    before = np.random.get_state()[1].copy()
    first, again, other = (
        TrepanExtractor(KNeighborsClassifier(9), random_state=seed).fit(IRIS, SPECIES).rules_
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    np.testing.assert_array_equal(np.random.get_state()[1], before)


# --- invalid input ---


def test_fit_needs_no_discretized_columns():
    """Fault 23: without a table of discretized columns PSyKE crashed."""
    extractor = TrepanExtractor(KNeighborsClassifier(9), random_state=0).fit(IRIS, SPECIES)
    assert extractor.fidelity(IRIS) > 0.96


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 1e290])
def test_rules_do_not_depend_on_units(scale):
    """Fault 12: absolute epsilons let features of small range collapse."""
    rows = np.random.default_rng(0).random((100, 3)) * scale
    extractor = TrepanExtractor(
        black_box(lambda X: (X[:, :2] > 0.5 * scale).any(axis=1)), random_state=0
    ).fit(rows)
    assert extractor.n_splits_ == 1
    assert extractor.fidelity(rows) == 1.0


def test_constant_features_never_occur_in_rules():
    rows = np.column_stack([np.full(150, 3.0), IRIS, np.zeros(150)])
    extractor = TrepanExtractor(KNeighborsClassifier(9), random_state=0).fit(rows, SPECIES)
    used = {f for rule in extractor.rules_ for c in rule.conditions for f in c.features}
    assert used <= {1, 2, 3, 4}
    assert extractor.fidelity(rows) > 0.95


@pytest.mark.filterwarnings("ignore:The black box predicts 1 for all")
def test_constant_black_box_gives_one_rule():
    extractor = TrepanExtractor(black_box(lambda X: np.ones(len(X)))).fit(IRIS)
    assert str(extractor.rules_) == (
        "1. ALWAYS 1   [150 rows, 100 % of 1000 queried rows agree with the model]"
    )


def test_max_leaf_nodes_below_number_of_classes_warns():
    """Fault 19: three leaves whatever the number of classes."""
    with pytest.warns(UserWarning, match="max_leaf_nodes=2 is less than the 3 classes"):
        TrepanExtractor(KNeighborsClassifier(9), max_leaf_nodes=2).fit(IRIS, SPECIES)


def test_fit_rejects_regression():
    with pytest.raises(ValueError, match="TrepanExtractor extracts rules for classification only"):
        TrepanExtractor(LinearRegression()).fit(IRIS, SPECIES)


def test_fit_rejects_numbers_beyond_all_distances():
    rows = IRIS.copy()
    rows[0, 2] = -1e305
    with pytest.raises(ValueError, match=r"Feature 'x2' holds numbers up to 1e\+305.*Scale"):
        TrepanExtractor(black_box(lambda X: X[:, 3] > 1)).fit(rows)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("max_leaf_nodes", 1, ValueError),
        ("max_nodes", 0, ValueError),
        ("max_nodes", 2.0, TypeError),
        ("max_depth", 0, ValueError),
        ("min_sample", -1, ValueError),
        ("min_sample", None, TypeError),
        ("min_samples_leaf", -1, ValueError),
        ("max_literals", 0, ValueError),
        ("beam_width", 0, ValueError),
        ("beam_width", True, TypeError),
        ("purity", 1.01, ValueError),
        ("purity", "high", TypeError),
        ("confidence", -0.1, ValueError),
        ("significance", float("nan"), ValueError),
        ("min_gain", -1, ValueError),
        ("simplify", "yes", TypeError),
        ("random_state", -1, ValueError),
    ],
)
def test_parameters_reject_invalid_values(name, value, error):
    with pytest.raises(error, match=f"{name} must be .*got {value!r}"):
        TrepanExtractor(KNeighborsClassifier(9), **{name: value}).fit(IRIS, SPECIES)


def test_fit_prints_nothing_and_forgets_earlier_fits(capsys):
    """Fault 11: results of earlier extractions accumulated in the object."""
    extractor = TrepanExtractor(KNeighborsClassifier(9), random_state=0, max_nodes=4)
    first = extractor.fit(IRIS, SPECIES).rules_
    extractor.fit(IRIS[:, :2], SPECIES)
    assert extractor.fit(IRIS, SPECIES).rules_ == first
    assert capsys.readouterr() == ("", "")


def test_fit_needs_little_memory():
    rows = np.random.default_rng(0).normal(size=(100_000, 8))
    extractor = TrepanExtractor(
        black_box(lambda X: X[:, 0] + X[:, 1] * X[:, 2] > 0.5), max_nodes=3, random_state=0
    )
    tracemalloc.start()
    extractor.fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * rows.nbytes
