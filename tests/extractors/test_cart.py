"""CART: the tree on the black box's predictions, read as rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor
from skescore.rules import as_ruleset

IRIS, SPECIES = load_iris(return_X_y=True)


def answers_like_its_tree(extractor, rows):
    answers = extractor.tree_.predict(rows)
    if extractor.rules_.task == "classification":
        answers = extractor.classes_[answers.astype(int)]
    np.testing.assert_array_equal(extractor.predict(rows), answers)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    options=st.fixed_dictionaries(
        {
            "max_depth": st.sampled_from([1, 3, None]),
            "max_leaf_nodes": st.sampled_from([2, 3, 7, None]),
            "min_samples_leaf": st.sampled_from([1, 4, 0.1]),
            "ccp_alpha": st.sampled_from([0.0, 0.02]),
            "simplify": st.booleans(),
        }
    ),
    classification=st.booleans(),
)
@pytest.mark.filterwarnings("ignore:max_leaf_nodes=. is less than", "ignore:The black box predicts")
def test_cart_rules_predict_like_the_tree(seed, options, classification):
    random = np.random.default_rng(seed)
    X = random.integers(-5, 6, (60, 3)) * random.choice([1.0, 0.1, 1e6])

    def number(rows):
        return np.round(rows[:, 0] / np.abs(X).max() + (rows[:, 1] > rows[:, 2]), 1)

    black_box = (
        CallableClassifier(lambda rows: (number(rows) * 2).astype(int))
        if classification
        else CallableRegressor(number)
    )
    extractor = CARTExtractor(black_box, random_state=0, **options).fit(X)
    assert extractor.n_rules_ == extractor.tree_.get_n_leaves()
    assert extractor.coverage_ == 1.0
    assert extractor.completeness_ == pytest.approx(1.0, rel=1e-12)
    thresholds = np.unique(extractor.tree_.tree_.threshold)
    near = random.choice(thresholds, (100, 3))  # rows on the bounds, and as close as possible
    rows = np.vstack([X, near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf), near + 1])
    answers_like_its_tree(extractor, rows)
    rules = extractor.rules_
    assert rules.ordered == options["simplify"]
    assert rules.disjoint == (not options["simplify"])
    if options["simplify"]:
        assert rules[-1].conditions == ()
    else:
        assert (rules.match(rows).sum(axis=1) == 1).all()


def test_cart_fits_its_tree_with_given_parameters():
    model = KNeighborsClassifier(9)
    extractor = CARTExtractor(
        model,
        max_leaf_nodes=5,
        max_depth=4,
        max_features=2,
        criterion="entropy",
        min_samples_leaf=3,
        ccp_alpha=0.001,
        random_state=3,
    ).fit(IRIS, SPECIES)
    expected = DecisionTreeClassifier(
        max_leaf_nodes=5,
        max_depth=4,
        max_features=2,
        criterion="entropy",
        min_samples_leaf=3,
        ccp_alpha=0.001,
        random_state=3,
    ).fit(IRIS, clone(model).fit(IRIS, SPECIES).predict(IRIS))
    assert extractor.tree_.get_params() == expected.get_params()
    assert extractor.rules_.replace(reference="data") == as_ruleset(
        expected, simplify=True, domain=extractor.rules_.domain, fallback=extractor.rules_.fallback
    )


def test_cart_of_regressor_equals_tree():
    X, y = load_diabetes(return_X_y=True)
    model = KNeighborsRegressor(9)
    for criterion in (None, "squared_error", "poisson"):
        extractor = CARTExtractor(model, max_leaf_nodes=6, criterion=criterion, random_state=0)
        extractor.fit(X, y)
        expected = DecisionTreeRegressor(
            max_leaf_nodes=6, criterion=criterion or "squared_error", random_state=0
        ).fit(X, clone(model).fit(X, y).predict(X))
        np.testing.assert_array_equal(extractor.predict(X), expected.predict(X))
        answers = extractor.estimator_.predict(X)
        index = extractor.rules_.assign(X)
        for number, rule in enumerate(extractor.rules_):
            assert rule.output == pytest.approx(answers[index == number].mean())


def test_simplified_list_drops_redundant_conditions():
    model = DecisionTreeClassifier(random_state=0)
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, random_state=0)
    ordered = CARTExtractor(model, max_depth=5, random_state=0).fit(X, y)
    alone = CARTExtractor(model, max_depth=5, random_state=0, simplify=False).fit(X, y)
    points = np.random.default_rng(0).uniform(-4, 4, (2000, 5))
    np.testing.assert_array_equal(ordered.predict(points), alone.predict(points))
    np.testing.assert_array_equal(ordered.predict_proba(points), alone.predict_proba(points))
    assert ordered.n_rules_ == alone.n_rules_
    assert ordered.rules_.n_literals < alone.rules_.n_literals
    # Rules of the list have no conditions that their leaves lack.
    for rule, leaf in zip(ordered.rules_, alone.rules_, strict=True):
        assert rule.output == leaf.output
        of_leaf = {c.feature: c for c in leaf.conditions}
        for c in rule.conditions:
            assert c.lower in (-np.inf, of_leaf[c.feature].lower)
            assert c.upper in (np.inf, of_leaf[c.feature].upper)


def test_simplify_drops_implied_half_of_an_interval():
    # The leaf in the middle is 4.5 < x0 <= 6.5, but earlier rules cover values up to 4.5.
    X = np.arange(9.0)[:, None]
    words = np.array(["a"] * 5 + ["b"] * 2 + ["c"] * 2)
    black_box = CallableClassifier(lambda rows: words)
    ordered = CARTExtractor(black_box, random_state=0).fit(X).rules_.shorten(X, reach=0.001)
    assert [rule.premise_text() for rule in ordered] == ["x0 ≤ 4.5", "x0 ≤ 6.5", ""]
    alone = CARTExtractor(black_box, random_state=0, simplify=False).fit(X).rules_
    alone = alone.shorten(X, reach=0.001)
    assert [r.premise_text() for r in alone] == ["x0 ≤ 4.5", "4.5 < x0 ≤ 6.5", "x0 > 6.5"]


def test_max_leaf_nodes_and_max_depth_limit_rules():
    X, y = make_classification(300, 5, n_informative=4, n_redundant=0, random_state=0)
    model = DecisionTreeClassifier(random_state=0)
    sizes = [
        CARTExtractor(model, max_leaf_nodes=n, max_depth=None).fit(X, y).n_rules_
        for n in (2, 3, 5, 8)
    ]
    assert sizes == [2, 3, 5, 8]
    for depth in (1, 2, 3):
        extractor = CARTExtractor(model, max_depth=depth, simplify=False).fit(X, y)
        assert extractor.n_rules_ <= 2**depth
        assert max(rule.n_literals for rule in extractor.rules_) <= depth
    assert CARTExtractor(model, max_leaf_nodes=None).fit(X, y).fidelity(X) == 1.0


def test_max_leaf_nodes_default_depends_on_max_depth():
    rows = np.random.default_rng(0).uniform(size=(600, 2))
    for n_classes, leaves in ((2, 6), (7, 7), (30, 8)):
        black_box = CallableClassifier(lambda r, n=n_classes: (np.arange(len(r)) % n).astype(int))
        assert CARTExtractor(black_box, random_state=0).fit(rows).n_rules_ == leaves
    black_box = CallableRegressor(lambda r: np.sin(20 * r).sum(axis=1))
    assert CARTExtractor(black_box).fit(rows).n_rules_ == 6
    assert CARTExtractor(black_box, max_depth=4).fit(rows).n_rules_ == 2**4
    assert CARTExtractor(black_box, max_leaf_nodes=20).fit(rows).n_rules_ == 20
    assert CARTExtractor(black_box, max_leaf_nodes=5, max_depth=2).fit(rows).n_rules_ == 4
    # No memory is reserved for leaves that no row needs.
    all_leaves = CARTExtractor(black_box, max_leaf_nodes=10**9).fit(rows).rules_
    assert len(all_leaves) == len(CARTExtractor(black_box, max_leaf_nodes=None).fit(rows).rules_)
    with pytest.raises(TypeError, match='"auto" is 6 to 8, or None if max_depth is given'):
        CARTExtractor(black_box, max_leaf_nodes="many").fit(rows)


def test_cart_gives_one_rule_for_equal_rows():
    X = np.full((10, 2), 3.0)
    extractor = CARTExtractor(CallableRegressor(lambda rows: rows.sum(axis=1))).fit(X)
    assert extractor.n_rules_ == 1
    assert extractor.rules_[0].conditions == ()
    assert extractor.predict([[9.0, 9.0]]).tolist() == [6.0]
    assert extractor.completeness_ == 1.0


def test_classes_absent_from_rows_get_no_share():
    model = DecisionTreeClassifier(random_state=0).fit(IRIS, SPECIES)
    extractor = CARTExtractor(model, random_state=0).fit(IRIS[50:])
    assert extractor.classes_.tolist() == [0, 1, 2]
    shares = extractor.predict_proba(IRIS)
    assert shares.shape == (150, 3)
    assert (shares[:, 0] == 0).all()
    assert set(extractor.predict(IRIS)) == {1, 2}
