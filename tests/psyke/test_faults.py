"""Faults of PSyKE 1.0.4, shown in PSyKE itself, and avoided or repaired here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.datasets import load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import Discretizer
from skescore.extractors.psyke import PSyKEExtractor, contained, load_psyke

X, y = load_iris(return_X_y=True)
TREE = DecisionTreeClassifier(max_depth=4, random_state=0)
NUMBERS = DecisionTreeRegressor(max_depth=5, random_state=0)
ROWS = np.random.default_rng(0).uniform(size=(100, 3))
TARGET = 10 * ROWS[:, 0] + ROWS[:, 1] ** 2


class Texts(ClassifierMixin, BaseEstimator):
    """A black box for direct calls of PSyKE."""

    def __init__(self, model=None):
        self.model = model

    def predict(self, frame):
        answers = self.model.predict(np.asarray(frame))
        return np.array([f"c{k}" for k in answers], dtype=object)


class Plain(RegressorMixin, BaseEstimator):
    def __init__(self, model=None):
        self.model = model

    def predict(self, frame):
        return self.model.predict(np.asarray(frame))


def frame_of(rows, target):
    return pd.DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])]).assign(y=target)


def by_hand(make, model, rows, target):
    """Extract rules with PSyKE itself, including its exceptions."""
    psyke = load_psyke("")
    with contained(0):
        extractor = make(psyke, model)
        extractor.extract(frame_of(rows, target))
    return extractor


def test_cart_regression_works_with_new_numpy():
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        with pytest.raises(TypeError, match="0-dimensional"):
            by_hand(lambda p, m: p.Extractor.cart(m), Plain(NUMBERS.fit(ROWS, TARGET)), ROWS, 0.0)
    fitted = PSyKEExtractor(NUMBERS, "cart", max_leaves=6).fit(ROWS, TARGET)
    assert fitted.n_rules_ == 6
    assert fitted.score(ROWS, TARGET) > 0.9


def test_cart_warns_about_fewer_leaves_than_classes():
    four = np.digitize(X[:, 2], [2, 4, 5])
    with pytest.warns(UserWarning, match="max_leaves=3 is less than the 4 classes"):
        PSyKEExtractor(TREE, "cart").fit(X, four)


def make_iter(psyke, model, min_update=0.2):
    return psyke.Extractor.iter(
        model, min_update=min_update, n_points=3, min_examples=20, max_iterations=200
    )


ITER = {"min_update": 0.2, "n_points": 3, "min_examples": 20, "max_iterations": 200}


def test_iter_labels_boxes_in_gaps():
    rows = X[:, 2:]
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows, y)
    theirs = by_hand(make_iter, Texts(model), rows, "c")
    with contained(0):
        labels = list(theirs.predict(frame_of(rows, "c").iloc[:, :-1]))
    assert "" in labels  # no label of the black box
    fitted = PSyKEExtractor(FrozenEstimator(model), "iter", random_state=123, **ITER).fit(rows, y)
    assert {rule.output for rule in fitted.rules_} <= {0, 1, 2}
    # PSyKE's unlabeled boxes prevent merging, so that it has many more rules.
    assert fitted.n_rules_ < theirs.n_rules / 2
    assert fitted.coverage_ == 1


def test_iter_boxes_have_majority_labels():
    fitted = PSyKEExtractor(TREE, "iter", random_state=123, **ITER).fit(X[:, 2:], y)
    for rule in fitted.rules_:
        if rule.statistics.n_rows:
            assert rule.purity(rule.output) >= 0.5


@pytest.mark.slow
def test_iter_ignores_hash_seed_of_process():
    code = f"""
        import json, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        from test_faults import *
        rows = X[:, 2:]
        model = TREE.fit(rows, y)
        theirs = by_hand(lambda p, m: make_iter(p, m, 0.1), Texts(model), rows, "c").n_rules
        given = ITER | {{"min_update": 0.1}}
        ours = PSyKEExtractor(TREE, "iter", random_state=123, **given).fit(rows, y).rules_
        print(json.dumps([theirs, ours.to_text()]))
    """
    answers = [
        json.loads(
            subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code)],
                check=True,
                timeout=120,
                capture_output=True,
                text=True,
                env=os.environ | {"PYTHONHASHSEED": seed},
            ).stdout
        )
        for seed in ("0", "1")
    ]
    assert answers[0][0] != answers[1][0]
    assert answers[0][1] == answers[1][1]


def test_iter_can_be_fitted_again():
    psyke = load_psyke("iter")
    with contained(0):
        theirs = psyke.Extractor.iter(Texts(TREE.fit(X, y)), n_points=1, min_examples=5)
        theirs.extract(frame_of(X, "c"))
        with pytest.raises(Exception, match="InvalidAttributeValue"):
            theirs.extract(frame_of(X, "c"))
    extractor = PSyKEExtractor(TREE, "iter", random_state=0, min_examples=5)
    assert extractor.fit(X, y).rules_ == extractor.fit(X, y).rules_
    assert extractor.params == {"min_examples": 5}


def test_trepan_stops_at_small_nodes():
    model = TREE.fit(X, y)
    cuts = Discretizer("given", cut_points={2: [2.45, 4.75], 3: [1.75]})
    fitted = PSyKEExtractor(
        FrozenEstimator(model), "trepan", discretizer=cuts, min_examples=60
    ).fit(X, y)
    assert fitted.n_rules_ >= 2
    deeper = PSyKEExtractor(FrozenEstimator(model), "trepan", discretizer=cuts).fit(X, y)
    assert deeper.n_rules_ > fitted.n_rules_

    from psyke.schema import DiscreteFeature, GreaterThan, LessThan

    bins = frame_of(np.column_stack([X[:, 2] <= 2.45, X[:, 2] > 2.45]).astype(int), "c")
    meaning = [DiscreteFeature("z", {"x0": LessThan(2.45), "x1": GreaterThan(2.45)})]

    class ByRow(Texts):
        def predict(self, frame):
            return np.array([f"c{k}" for k in y], dtype=object)

    with contained(0), pytest.raises(NotImplementedError):
        load_psyke("").Extractor.trepan(ByRow(), meaning, min_examples=120).extract(bins)


@pytest.mark.parametrize("name", ["real", "trepan"])
def test_real_and_trepan_accept_undiscretized_columns(name):
    with pytest.raises((IndexError, TypeError)):
        by_hand(lambda p, m: getattr(p.Extractor, name)(m), Texts(TREE.fit(X, y)), X, "c")
    fitted = PSyKEExtractor(TREE, name).fit(X, y)
    assert fitted.rules_.feature_names == ("x0", "x1", "x2", "x3")
    assert fitted.score(X, y) > 0.8


def test_real_covers_values_on_cut():
    """By default, no interval of PSyKE includes the last cut of a feature."""
    cuts = Discretizer("given", cut_points={2: [1.9, 4.7, 4.9]})  # values of the data
    fitted = PSyKEExtractor(TREE, "real", discretizer=cuts).fit(X, y)
    assert fitted.coverage_ == 1


def test_real_leaves_nothing_in_cache_of_psyke():
    PSyKEExtractor(TREE, "real").fit(X, y)
    from psyke.extraction.real import REAL

    assert REAL._get_or_set.cache_info().currsize == 0


def test_real_rejects_too_many_combinations_of_bins():
    wine = load_wine()
    with pytest.raises(ValueError, match=r"8192 combinations of bins.*at most 1000.*REALExtractor"):
        PSyKEExtractor(TREE, "real", discretizer=Discretizer(n_bins=2)).fit(wine.data, wine.target)
    fitted = PSyKEExtractor(TREE, "real").fit(wine.data, wine.target)
    assert len({f for rule in fitted.rules_ for c in rule.conditions for f in c.features}) < 13


def test_cosmik_extracts_rules_where_psyke_crashes():
    with pytest.raises(TypeError, match="NoneType"):
        by_hand(lambda p, m: p.Extractor.cosmik(m), Plain(NUMBERS.fit(ROWS, TARGET)), ROWS, 0.0)
    assert PSyKEExtractor(NUMBERS, "cosmik", random_state=0).fit(ROWS, TARGET).n_rules_ > 0


@pytest.mark.parametrize("output", ["constant", "linear"])
def test_cosmik_never_outputs_0_for_boxes_without_rows(output):
    target = TARGET + 100
    for seed in range(3):
        fitted = PSyKEExtractor(NUMBERS, "cosmik", random_state=seed, output=output)
        rules = fitted.fit(ROWS, target).rules_
        assert (rules.predict(ROWS)[rules.covers(ROWS)] > 50).all()


@pytest.mark.parametrize("name", ["cream", "exact"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_creepy_gives_unsplit_root_output(name, task):
    # With all rows at one point, no box separates them.
    rows = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    black_box = DecisionTreeClassifier() if task == "classification" else DecisionTreeRegressor()
    target = np.array([7, 7, 7, 9])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The black box predicts 7 for all")
        fitted = PSyKEExtractor(black_box, name).fit(rows, target)
    assert fitted.n_rules_ == 1
    assert fitted.predict(rows).tolist() == [7 if task == "classification" else 7.5] * 4


@pytest.mark.parametrize("name", ["cream", "exact"])
def test_creepy_accepts_nodes_too_small_for_mixture(name):
    few = [0, 60, 120]
    fitted = PSyKEExtractor(
        DecisionTreeRegressor(), name, random_state=0, depth=5, error_threshold=0.0
    ).fit(X[few], X[few, 2])
    assert fitted.predict(X[few]).tolist() == X[few, 2].tolist()


def test_hex_outputs_mean_of_all_rows():
    rows, target = X[:, :3], X[:, 3]
    model = DecisionTreeRegressor(max_depth=6, random_state=0).fit(rows, target)
    threshold = float(np.std(model.predict(rows))) / 2

    def make(psyke, black_box):
        from psyke.extraction.hypercubic import Grid
        from psyke.extraction.hypercubic.strategy import FixedStrategy

        grid = Grid(2, FixedStrategy(2))
        return psyke.Extractor.hex(black_box, grid, min_examples=0, threshold=threshold)

    theirs = by_hand(make, Plain(model), rows, 0.0)
    mean = model.predict(rows).mean()
    assert theirs.n_rules == 1
    assert abs(theirs._hypercubes[0].output - mean) > threshold
    fitted = PSyKEExtractor(FrozenEstimator(model), "hex", threshold=threshold).fit(rows, target)
    assert fitted.n_rules_ == 1
    np.testing.assert_allclose(fitted.predict(rows), mean, atol=1e-6)


def test_ginger_warns_about_keeping_worst_individual():
    quick = {"n_gen": 2, "n_pop": 4, "n_features": 1}
    with pytest.warns(UserWarning, match="keeps the one that scores worst. Set max_slices=1"):
        PSyKEExtractor(TREE, "ginger", max_slices=2, **quick).fit(X, y)
    assert PSyKEExtractor(TREE, "ginger", max_slices=1, **quick).fit(X, y).n_rules_ == 2


def test_ginger_takes_features_by_name_or_index():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    quick = {"n_gen": 2, "n_pop": 4, "max_slices": 1}
    fitted = PSyKEExtractor(TREE, "ginger", features=["d", 2], **quick).fit(frame, y)
    assert {f for rule in fitted.rules_ for c in rule.conditions for f in c.features} <= {2, 3}
    for wrong in (["e"], [4], [True], ["a", 0]):
        with pytest.raises(ValueError, match="features must"):
            PSyKEExtractor(TREE, "ginger", features=wrong, **quick).fit(frame, y)


def test_gridex_with_one_strategy_keeps_all_bounds():
    """Features ignored by PSyKE are those without conditions in any rule."""
    fitted = PSyKEExtractor(
        TREE, "gridex", n_slices=[2, 3], importance_threshold=[0.5, 0.9], threshold=0.0
    ).fit(X, y)
    assert fitted.rules_.match(X).sum(axis=1).tolist() == [1] * 150
    assert fitted.score(X, y) > 0.9


def test_gridex_and_hex_reject_too_many_cells():
    wine = load_wine()
    with pytest.raises(ValueError, match=r"cuts a box into 1594323 cells.*GridExExtractor"):
        PSyKEExtractor(TREE, "gridex", n_slices=3).fit(wine.data, wine.target)
    with pytest.raises(ValueError, match="at most 1000 are allowed"):
        PSyKEExtractor(TREE, "hex", n_slices=6).fit(X, y)


@pytest.mark.parametrize(("factor", "text"), [(1e-6, "has a range of"), (1e9, "holds numbers up")])
@pytest.mark.parametrize("name", ["gridex", "cream", "iter", "divine"])
def test_extractor_rejects_features_beyond_precision(factor, text, name):
    rows = X * [1, 1, factor, 1]
    frame = pd.DataFrame(rows, columns=["a", "b", "tiny or huge", "d"])
    with pytest.raises(ValueError, match=f"'tiny or huge' {text}.*precision of 0.000001"):
        PSyKEExtractor(TREE, name).fit(frame, y)


def test_cart_and_real_accept_features_of_any_scale():
    rows = X * [1, 1, 1e-6, 1]
    for name in ("cart", "real"):
        # scikit-learn trees treat numbers closer than 1e-7 as equal.
        assert PSyKEExtractor(TREE, name).fit(rows, y).score(rows, y) > 0.9


def test_divine_rejects_more_neighbors_than_rows():
    with pytest.raises(ValueError, match=r"k must be at most the number of rows \(6\).*got 7"):
        PSyKEExtractor(TREE, "divine", k=7).fit(X[::25], y[::25])


def test_divine_warns_if_it_finds_no_rules():
    with pytest.warns(UserWarning, match="'divine' found no rule.*uncovered='default'"):
        fitted = PSyKEExtractor(TREE, "divine").fit(X[::25], y[::25])
    assert (fitted.n_rules_, fitted.coverage_) == (0, 0)
    assert set(fitted.predict(X)) == {0}


def test_extractor_accepts_constant_features_and_predictions():
    rows = np.column_stack([X[:, 2], np.ones(150)])
    for name in ("gridex", "cream", "cart", "real", "trepan", "hex", "iter"):
        options = {"importance_threshold": 0.5} if name in ("gridex", "hex") else {}
        fitted = PSyKEExtractor(TREE, name, random_state=0, **options).fit(rows, y)
        assert fitted.score(rows, y) > 0.6
        used = {f for rule in fitted.rules_ for c in rule.conditions for f in c.features}
        assert used == {0}
    same = FrozenEstimator(DecisionTreeRegressor().fit(X, np.full(150, 4.0)))
    for name in ("gridex", "gridrex", "iter", "cart"):
        fitted = PSyKEExtractor(same, name, **({"min_examples": 0} if name == "iter" else {}))
        np.testing.assert_allclose(fitted.fit(X, X[:, 2]).predict(X), 4.0, atol=1e-6)
        assert fitted.n_rules_ <= 4


@pytest.mark.parametrize("name", ["gridrex", "cream"])
def test_linear_models_reject_features_with_gaps(name):
    rows = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    rows.loc[::7, "b"] = np.nan
    options = {} if name == "gridrex" else {"output": "linear"}
    model = HistGradientBoostingRegressor(max_iter=3)
    with pytest.raises(
        ValueError, match=r"Feature 'b' has missing values, and PSyKE's linear models"
    ):
        PSyKEExtractor(model, name, random_state=0, **options).fit(rows, TARGET)
