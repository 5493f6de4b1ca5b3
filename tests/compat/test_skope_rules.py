"""SkopeRules is compared with results of skope-rules 1.0.1 and with slow loops over its rules."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.metrics import accuracy_score, precision_score, recall_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore import as_ruleset
from skescore.compat import Rule, SkopeRules, replace_feature_name

#: Rules of skope-rules 1.0.1 with scikit-learn 1.1.3 and random_state=1, by table and settings.
REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "skope_rules_1_0_1.json").read_text(encoding="utf-8")
)
SETTINGS = [
    {},
    {"max_depth": [1, 3], "n_estimators": 5, "precision_min": 0.3, "recall_min": 0.05},
    {
        "max_depth_duplication": 2,
        "n_estimators": 6,
        "bootstrap": True,
        "max_features": "sqrt",
        "min_samples_split": 0.05,
    },
]


def reference_table(name):
    if name == "iris1":
        X, y = load_iris(return_X_y=True)
        return X, (y == 1).astype(int)
    if name == "wine2":
        X, y = load_wine(return_X_y=True)
        return X, (y == 2).astype(int)
    if name == "bc":
        return load_breast_cancer(return_X_y=True)
    if name == "normal1":
        X = np.random.RandomState(1).normal(size=(400, 6)).round(2)
        return X, ((X[:, 0] > 0.3) & (X[:, 1] < 0.8) | (X[:, 2] > 1.5)).astype(int)
    X = np.random.RandomState(77).randint(0, 5, size=(500, 5)).astype(float)
    return X, ((X[:, 0] > 2) & (X[:, 3] < 2)).astype(int)


class MirroredSkopeRules(SkopeRules):
    """Measures rules on the rows on which skope-rules 1.0.1 measured them by mistake."""

    @staticmethod
    def _unseen_rows(samples, n_rows):
        return ~samples


@pytest.mark.parametrize("case", REFERENCE)
def test_skope_rules_equals_the_old_package(case):
    name, _, position = case.partition("/")
    X, y = reference_table(name)
    model = MirroredSkopeRules(random_state=1, **SETTINGS[int(position)]).fit(X, y)
    expected = dict(REFERENCE[case])
    assert len(model.rules_) == len(expected)
    for text, scores in model.rules_:
        assert scores == pytest.approx(expected[text], abs=1e-11)


def measured_by_loops(model, X, y):
    """Measure each rule of each tree with pandas, on the rows that the tree has not seen."""
    frame = pd.DataFrame(X, columns=model.feature_names_)
    seen: dict = {}
    trees = zip(model.estimators_, model.estimators_samples_, strict=True)
    for tree, samples in trees:
        rows = [i for i in range(len(X)) if i not in set(samples)]
        for text in set(model._tree_to_rules(tree, model.feature_names_)):
            covered = frame.iloc[rows].query(text).index
            scores = (0.0, 0.0)
            if len(covered) > 1 and y[covered].any():
                predicted = np.isin(rows, covered)
                scores = precision_score(y[rows], predicted), recall_score(y[rows], predicted)
            if scores[0] >= model.precision_min and scores[1] >= model.recall_min:
                seen.setdefault(str(Rule(text)), []).append(scores)
    return {text: (*np.mean(scores, axis=0), len(scores)) for text, scores in seen.items()}


def test_skope_rules_measure_unseen_rows():
    X, y = load_iris(return_X_y=True)
    y = (y == 1).astype(int)
    model = SkopeRules(n_estimators=4, random_state=3).fit(X, y)
    expected = measured_by_loops(model, X, y)
    assert dict(model.rules_) == {text: pytest.approx(s) for text, s in expected.items()}
    f1 = [model.f1_score(rule) for rule in model.rules_]
    assert f1 == sorted(f1, reverse=True)


def test_skope_rules_predict_by_their_rules():
    X, y = load_wine(return_X_y=True)
    model = SkopeRules(random_state=0).fit(X, y == 0)
    frame = pd.DataFrame(X, columns=model.feature_names_)
    holds = np.zeros((len(X), len(model.rules_)))
    for k, (text, _) in enumerate(model.rules_without_feature_names_):
        holds[frame.query(text).index, k] = 1
    precisions = np.array([scores[0] for _, scores in model.rules_])
    np.testing.assert_array_equal(model.decision_path(X), holds)
    np.testing.assert_allclose(model.decision_function(X), holds @ precisions)
    np.testing.assert_array_equal(model.rules_vote(X), holds.sum(axis=1))
    first = [next((len(row) - k for k, hit in enumerate(row) if hit), 0) for row in holds]
    np.testing.assert_array_equal(model.score_top_rules(X), first)
    np.testing.assert_array_equal(model.predict(X), holds.any(axis=1))
    np.testing.assert_array_equal(model.predict_top_rules(X, 2), holds[:, :2].any(axis=1))
    np.testing.assert_array_equal(as_ruleset(model).predict(X), model.predict(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_skope_rules_find_outliers():
    X = [[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1], [6, 3], [4, -7]]
    rows = [*X[:6], [10, 5], [5, -7]]
    with pytest.warns(UserWarning, match="A tree was fitted on all rows"):
        model = SkopeRules(random_state=0, max_samples=1.0).fit(X, [0] * 6 + [1] * 2)
    for scores in (model.decision_function, model.rules_vote, model.score_top_rules):
        assert scores(rows)[-2:].min() > scores(rows)[:-2].max()
    assert model.predict(rows).tolist() == [0] * 6 + [1] * 2


def test_skope_rules_are_accurate():
    X, y = make_blobs(n_samples=1000, random_state=0, centers=2)
    rows = np.flatnonzero((y == 0) | (np.arange(1000) < 100))
    X, y = X[rows], y[rows]
    model = SkopeRules(random_state=0).fit(X.tolist(), y.tolist())
    assert accuracy_score(y, model.predict(X)) > 0.83


def test_deduplicate_keeps_the_best_of_each_part():
    rules = [
        ("a <= 2 and b > 45 and c <= 3 and a > 4", (1, 1, 0)),
        ("a > 2 and b > 45", (0.5, 0.3, 0)),
        ("a > 2 and b > 40", (0.5, 0.2, 0)),
        ("a <= 2 and b <= 45", (1, 1, 0)),
        ("b > 45", (1, 1, 0)),
    ]
    model = SkopeRules(max_depth_duplication=2)
    parts = model._find_similar_rulesets(rules)
    assert sorted(rule for part in parts for rule in part) == sorted(rules)
    assert [rules[1], rules[2]] in parts
    assert set(model.deduplicate(rules)) == {rules[i] for i in (0, 1, 3, 4)}


def test_f1_score_is_zero_without_hits():
    model = SkopeRules()
    assert [model.f1_score(("a", scores)) for scores in [(0, 0), (0.5, 0.5), (0.5, 0)]] == [
        0,
        0.5,
        0,
    ]


def test_names_come_from_the_table_or_the_parameter():
    X, y = load_iris(return_X_y=True, as_frame=True)
    named = SkopeRules(random_state=0, n_estimators=3).fit(X, y == 1)
    renamed = SkopeRules(list("abcd"), random_state=0, n_estimators=3).fit(X, y == 1)
    assert "petal width (cm) <=" in named.rules_[0][0]
    assert "d <=" in renamed.rules_[0][0]
    assert as_ruleset(renamed).feature_names == ("a", "b", "c", "d")
    assert named.get_rules()["precision"].between(0.5, 1).all()
    assert named.rules_without_feature_names_ == renamed.rules_without_feature_names_


@pytest.mark.filterwarnings("ignore:A tree was fitted on all rows")
def test_skope_rules_reject_bad_parameters():
    X, y = load_iris(return_X_y=True)
    y = y != 0
    for size in (-1, 0.0, 2.0, 1.5, "all"):
        with pytest.raises(ValueError, match="max_samples must be"):
            SkopeRules(max_samples=size).fit(X, y)
    with pytest.warns(UserWarning, match="the number of rows is used instead"):
        SkopeRules(max_samples=1000, n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match="max_depth_duplication"):
        SkopeRules(max_depth_duplication=1.5).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        SkopeRules().fit(X, [1] * len(X))
    with pytest.raises(ValueError, match="feature_names must name 4"):
        SkopeRules(["a"]).fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        SkopeRules(n_estimators=1).fit(X, y).predict(X[:, 1:])


def test_sample_weights_change_the_regressors_only():
    X, y = load_iris(return_X_y=True)
    y = (y == 1).astype(int)
    weights = np.random.default_rng(0).integers(1, 9, len(X))
    plain, weighted = (
        SkopeRules(n_estimators=3, random_state=0).fit(X, y, sample_weight=w)
        for w in (None, weights)
    )
    for k, (tree, other) in enumerate(zip(plain.estimators_, weighted.estimators_, strict=True)):
        same = np.array_equal(tree.tree_.value, other.tree_.value)
        assert same == (k < 3)


@pytest.mark.slow
@parametrize_with_checks(
    [SkopeRules(n_estimators=2)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "weights shape trees only, as before"
    },
)
@pytest.mark.filterwarnings("ignore:y holds the labels", "ignore:A tree was fitted on all rows")
def test_skope_rules_pass_estimator_checks(estimator, check):
    check(estimator)


def test_rules_merge_comparisons():
    assert Rule("a <= 10 and a <= 12 and a > 3") == Rule("a > 3 and a <= 10")
    assert Rule("a <= 10 and b > 3 and b > 6") == Rule("b > 6 and a <= 10")
    assert len({Rule("a <= 3 and b <= 2"), Rule("b <= 2 and a <= 3"), Rule("b <= 2")}) == 2
    assert str(Rule("a == a and a == a")) == "a == a"
    assert tuple(Rule("a <= 2", args=(1, 2))) == ("a <= 2.0", (1, 2))
    with pytest.raises(ValueError, match="must join comparisons"):
        Rule("a <= 10 or b")
    names = {"__C__1": "$b", "__C__10": "c(4)"}
    assert replace_feature_name("__C__1 <= 3 and __C__10 > 4", names) == "$b <= 3 and c(4) > 4"
