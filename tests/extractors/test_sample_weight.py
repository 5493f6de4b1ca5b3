"""Weights of rows count as repeated rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.ensemble import AdaBoostClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import has_fit_parameter

from skescore.extractors import CARTExtractor, repeated_rows
from skescore.registry import EXTRACTORS, extractor_class
from skescore.rules import with_row_weights
from skescore.tuning import ExtractorSearchCV

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (90, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=90) > 0.5, "yes", "no")
WEIGHTS = RNG.integers(0, 4, 90)
REPEATED = np.repeat(np.arange(90), WEIGHTS)


CASES = {
    task: [(name, task) for name, spec in EXTRACTORS.items() if task in spec.tasks]
    for task in ("classification", "regression")
}


def made(name: str, black_box):
    kind = extractor_class(name)
    extractor = kind(black_box)
    if "random_state" in extractor.get_params():
        extractor.set_params(random_state=0)
    return extractor


@pytest.mark.parametrize("case", CASES["classification"], ids=lambda case: case[0])
@pytest.mark.parametrize(
    "black_box",
    [
        DecisionTreeClassifier(max_depth=4, random_state=0),
        KNeighborsClassifier(3),
    ],
)
def test_integer_weights_equal_repeated_rows(make, black_box) -> None:
    weighted = make(black_box).fit(X, Y, sample_weight=WEIGHTS)
    repeated = make(black_box).fit(X[REPEATED], Y[REPEATED])
    assert weighted.rules_ == repeated.rules_
    assert weighted.coverage_ == repeated.coverage_
    assert weighted.rules_ != make(black_box).fit(X, Y).rules_
    if hasattr(weighted, "labels_"):
        assert len(weighted.labels_) == len(X)


@pytest.mark.parametrize("case", CASES["regression"], ids=lambda case: case[0])
def test_integer_weights_equal_repeated_rows_in_regression(make) -> None:
    y = X[:, 0] ** 2 + X[:, 1]
    # A tree fitted on weights predicts means that round otherwise.
    black_box = FrozenEstimator(DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y))
    weighted = make(black_box).fit(X, y, sample_weight=WEIGHTS.astype(float))
    repeated = make(black_box).fit(X[REPEATED], y[REPEATED])
    assert weighted.rules_ == repeated.rules_


@pytest.mark.parametrize("case", CASES["classification"], ids=lambda case: case[0])
def test_statistics_count_exact_weights(make) -> None:
    weights = np.where(Y == "yes", 1.54, 1.0)  # the rules are learned from 5 and 3 copies
    extractor = make(KNeighborsClassifier(3)).fit(X, Y, sample_weight=weights)
    rules, labels = extractor.rules_, extractor.oracle_.query(X)
    is_covered = rules.covers(X)
    assert extractor.coverage_ == pytest.approx(np.average(is_covered, weights=weights))
    assigned = rules.assign(X) if rules.ordered or rules.disjoint else None
    for number, rule in enumerate(rules.rules):
        rows = rules.match(X)[:, number] if assigned is None else assigned == number
        statistics = rule.statistics
        assert statistics.weighted
        assert statistics.n_rows == pytest.approx(weights[rows].sum())
        target = [weights[rows & (label == Y)].sum() for label in rules.classes]
        assert statistics.target_counts == pytest.approx(target)
        if statistics.n_points is None:  # no queried points
            counts = [weights[rows & (labels == label)].sum() for label in rules.classes]
            assert statistics.class_counts == pytest.approx(counts)


@pytest.mark.parametrize("case", CASES["regression"], ids=lambda case: case[0])
def test_errors_are_means_by_exact_weights(make) -> None:
    y, weights = X[:, 0] ** 2 + X[:, 1], np.where(Y == "yes", 1.54, 1.0)
    model = FrozenEstimator(DecisionTreeRegressor(max_depth=5, random_state=0).fit(X, y))
    rules = make(model).fit(X, y, sample_weight=weights).rules_
    assigned, predicted, outputs = rules.assign(X), model.predict(X), rules.predict(X)
    assert rules.ordered or rules.disjoint
    for number, rule in enumerate(rules.rules):
        rows = assigned == number
        statistics = rule.statistics
        assert statistics.n_rows == pytest.approx(weights[rows].sum())
        for name, truth in (("target_error", y), ("model_error", predicted)):
            error = np.average(np.abs(truth - outputs)[rows], weights=weights[rows])
            assert getattr(statistics, name) == pytest.approx(error, abs=1e-9)


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 1e308])
def test_extreme_weights_are_divided_by_the_largest(weight) -> None:
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)
    extractor = CARTExtractor(tree, max_leaf_nodes=4, random_state=0)
    extractor.fit(X, sample_weight=np.full(len(X), weight))
    assert sum(rule.statistics.n_rows for rule in extractor.rules_) == pytest.approx(len(X))
    assert extractor.coverage_ == 1


@pytest.mark.parametrize("case", CASES["classification"], ids=lambda case: case[0])
def test_equal_weights_keep_statistics(make) -> None:
    extractor = make(KNeighborsClassifier(3)).fit(X, Y)
    labels = extractor.oracle_.query(X)
    assert with_row_weights(extractor.rules_, X, labels, np.ones(len(X))) == extractor.rules_


def test_row_order_does_not_matter_to_iter_and_cream() -> None:
    order = RNG.permutation(len(X))
    black_box = KNeighborsClassifier(3).fit(X, Y)
    for name in ("iter", "cream"):
        assert made(name, black_box).fit(X).rules_ == made(name, black_box).fit(X[order]).rules_


def test_weights_work_with_frames_and_fitted_black_boxes() -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["kind"] = np.where(X[:, 2] > 0.5, "u", "v")
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    rules = CARTExtractor(tree, max_depth=3).fit(X, sample_weight=WEIGHTS).rules_
    assert rules == CARTExtractor(tree, max_depth=3).fit(X[REPEATED]).rules_
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encoder = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    pipeline = make_pipeline(encoder, DecisionTreeClassifier(random_state=0))
    weighted = CARTExtractor(pipeline, max_depth=3).fit(frame, Y, sample_weight=WEIGHTS)
    repeated = CARTExtractor(pipeline, max_depth=3).fit(frame.iloc[REPEATED], Y[REPEATED])
    assert weighted.rules_ == repeated.rules_


def test_repeated_rows_rounds_weights() -> None:
    weights = np.array([0.5, 0.25, 0.0, 1e-9])
    counts = np.bincount(repeated_rows(weights, 4), minlength=4)
    assert counts.tolist() == [11, 5, 0, 1]
    assert (np.bincount(repeated_rows(weights * 1e300, 4), minlength=4) == counts).all()
    for wrong in ([0, 0], [1, -1], [1, np.nan], [1]):
        with pytest.raises(ValueError, match="sample_weight must"):
            repeated_rows(wrong, 2)


def test_repeated_rows_keeps_the_lightest_row() -> None:
    """Half a row would be rounded to none."""
    assert np.bincount(repeated_rows([0.5, 7.5], 2)).tolist() == [1, 15]


@given(
    arrays(float, st.integers(1, 60), elements=st.floats(0, 9, allow_subnormal=False)),
    st.integers(-9, 9),
)
def test_repeated_rows_bounds_the_rounding_error(weights: np.ndarray, exponent: int) -> None:
    weights = np.ldexp(weights, exponent)
    assume(weights.any() and (weights != np.round(weights)).any())
    n_rows = len(weights)
    counts = np.bincount(repeated_rows(weights, n_rows), minlength=n_rows)
    assert (counts[weights == 0] == 0).all()
    # A factor explains all counts up to half a row, and light rows occur once.
    heavy = counts > 1
    with np.errstate(over="ignore", divide="ignore"):
        most = np.min((counts + 0.5)[weights > 0] / weights[weights > 0])
        least = np.max((counts - 0.5)[heavy] / weights[heavy], initial=0.0)
    assert least <= most * (1 + 1e-12)
    assert most * weights.sum() >= 8 / 3 * n_rows * (1 - 1e-12)
    assert least * weights.sum() <= 8 * n_rows * (1 + 1e-12)


def test_sample_weight_is_a_fit_parameter_as_in_scikit_learn() -> None:
    tree = DecisionTreeClassifier(max_depth=4, random_state=0)
    for name in ("cart", "cream"):
        extractor = made(name, tree)
        assert has_fit_parameter(extractor, "sample_weight")
        positional = extractor.fit(X, Y, WEIGHTS).rules_
        assert positional == made(name, tree).fit(X, Y, sample_weight=WEIGHTS).rules_
    # An estimator that draws weights for its members passes them on.
    boosted = AdaBoostClassifier(CARTExtractor(tree, max_leaf_nodes=3), n_estimators=2)
    assert boosted.fit(X, Y).score(X, Y) > 0.7


def test_search_weights_black_box_extraction_and_scores() -> None:
    def search_of(**options) -> ExtractorSearchCV:
        black_box = DecisionTreeClassifier(max_depth=4, random_state=0)
        return ExtractorSearchCV(
            black_box, extractors=("cart",), n_trials=3, random_state=0, **options
        )

    train, test = np.arange(60), np.arange(60, 90)
    weighted = search_of(cv=[(train, test)]).fit(X, Y, sample_weight=WEIGHTS)
    copies = {int(row): np.flatnonzero(row == REPEATED) for row in range(90)}
    splits = [tuple(np.concatenate([copies[i] for i in part]) for part in (train, test))]
    repeated = search_of(cv=splits).fit(X[REPEATED], Y[REPEATED])
    for column in ("score", "performance", "loss", "completeness_instances"):
        assert weighted.leaderboard_[column].to_numpy() == pytest.approx(
            repeated.leaderboard_[column].to_numpy()
        )
    assert weighted.rules_ == repeated.rules_
    assert weighted.black_box_quality_ == pytest.approx(repeated.black_box_quality_)
    plain = search_of(cv=[(train, test)]).fit(X, Y)
    assert plain.leaderboard_["score"].tolist() != weighted.leaderboard_["score"].tolist()


def test_class_weight_balances_classes() -> None:
    rare = np.where(X[:, 0] > 0.93, "rare", "usual")
    common = {"extractors": ("cart",), "n_trials": 2, "cv": 2, "random_state": 0}
    black_box = DecisionTreeClassifier(max_depth=3, random_state=0)
    search = ExtractorSearchCV(black_box, class_weight="balanced", **common).fit(X, rare)
    counts = np.sum([rule.statistics.class_counts for rule in search.rules_.rules], axis=0)
    assert counts[0] == pytest.approx(counts[1], rel=0.05)
    with pytest.raises(ValueError, match="class_weight='balanced' is for classes"):
        ExtractorSearchCV(DecisionTreeRegressor(), class_weight="balanced", **common).fit(
            X, X[:, 0]
        )
