"""Bootstrap intervals of scores, and probabilities to win."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from measures import fold_measures
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor
from skescore.rules import Interval, Rule, RuleSet
from skescore.scorers import get_rule_scorer, make_fire_scorer, make_ice_scorer
from skescore.tuning import Candidate, Candidates, compare_scores, score_interval, win_probability

X, Y = load_wine(return_X_y=True)
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)


def tree(leaves: int) -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X[TRAIN], Y[TRAIN])


def repeated_rows(estimator: Any, X: Any, y: Any, scorer: Any, n: int, seed: int) -> list[float]:
    """Return scores of resamples with rows repeated as drawn."""
    random = np.random.RandomState(seed)
    scores = []
    for _ in range(n):
        counts = random.multinomial(len(y), np.full(len(y), 1 / len(y)))
        rows = np.repeat(np.arange(len(y)), counts)
        scores.append(scorer(estimator, X[rows], y[rows]))
    return scores


@pytest.mark.parametrize(
    "scoring",
    ["ice", "fire", "q", make_fire_scorer(3), make_ice_scorer(2, completeness="instances")],
    ids=lambda scoring: getattr(scoring, "name", scoring),
)
def test_score_interval_equals_repeated_rows(scoring: Any) -> None:
    model = tree(4)
    interval = score_interval(
        model,
        X[TEST],
        Y[TEST],
        scoring=scoring,
        n_resamples=25,
        confidence_level=0.8,
        random_state=3,
    )
    scorer = get_rule_scorer(scoring)
    expected = repeated_rows(model, X[TEST], Y[TEST], scorer, 25, 3)
    assert interval.score == pytest.approx(scorer(model, X[TEST], Y[TEST]))
    assert (interval.low, interval.high) == pytest.approx(tuple(np.quantile(expected, [0.1, 0.9])))
    assert interval.standard_error == pytest.approx(np.std(expected, ddof=1))
    assert (interval.n_resamples, interval.n_undefined, interval.confidence_level) == (25, 0, 0.8)


def test_score_interval_accepts_regression_and_pipelines() -> None:
    data, target = load_diabetes(return_X_y=True)
    rows = slice(0, 120)
    model = DecisionTreeRegressor(max_leaf_nodes=5, random_state=0).fit(data[120:], target[120:])
    interval = score_interval(model, data[rows], target[rows], n_resamples=20, random_state=0)
    expected = repeated_rows(model, data[rows], target[rows], get_rule_scorer("ice"), 20, 0)
    assert (interval.low, interval.high) == pytest.approx(
        tuple(np.quantile(expected, [0.025, 0.975]))
    )

    box = make_pipeline(StandardScaler(), KNeighborsClassifier())
    extractor = CARTExtractor(box, max_leaf_nodes=4, random_state=0).fit(X[TRAIN], Y[TRAIN])
    scoring = make_ice_scorer(reference="black_box")
    interval = score_interval(
        extractor, X[TEST], Y[TEST], scoring=scoring, n_resamples=20, random_state=0
    )
    assert interval.score == pytest.approx(scoring(extractor, X[TEST], Y[TEST]))
    assert interval.low <= interval.score <= interval.high


def test_score_interval_depends_on_the_seed() -> None:
    model = tree(3)
    first, same, other = (
        score_interval(model, X[TEST], Y[TEST], n_resamples=20, random_state=seed)
        for seed in (0, 0, 1)
    )
    assert first == same != other


def narrow_rules(high: float) -> RuleSet:
    rule = Rule([Interval(0, upper=high)], 0)
    return RuleSet(
        [rule],
        feature_names=["a"],
        task="classification",
        classes=(0, 1),
    )


def test_score_interval_counts_undefined_resamples() -> None:
    # Of 20 rows two are covered: none of them is drawn with probability (18 / 20)**20 = 0.12.
    rows, labels = np.arange(20.0)[:, None], np.array([0] * 10 + [1] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interval = score_interval(narrow_rules(1.5), rows, labels, n_resamples=200, random_state=0)
    assert 8 <= interval.n_undefined <= 44
    assert interval.n_resamples + interval.n_undefined == 200
    with (
        pytest.raises(ValueError, match="'ice' is undefined on these 18 rows"),
        pytest.warns(UndefinedMetricWarning),
    ):
        score_interval(narrow_rules(1.5), rows[2:], labels[2:], n_resamples=10)


def test_score_interval_rejects_many_undefined_resamples() -> None:
    def loss(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        # Defined if a row is drawn five times, about one time in four.
        return math.nan if sample_weight is not None and sample_weight.max() < 5 else 0.1

    with pytest.raises(ValueError, match=r"'neg_fire' is undefined on [5-9]\d of 100 resamples"):
        score_interval(
            tree(3),
            X[TEST],
            Y[TEST],
            scoring=make_fire_scorer(loss=loss),
            n_resamples=100,
            random_state=0,
        )


def test_compare_scores_pairs_resamples() -> None:
    models = {"two": tree(2), "three": tree(3), "four": tree(4)}
    table = compare_scores(models, X[TEST], Y[TEST], n_resamples=60, random_state=0)
    scorer = get_rule_scorer("ice")
    plain = {
        name: repeated_rows(model, X[TEST], Y[TEST], scorer, 60, 0)
        for name, model in models.items()
    }
    values = np.array([plain[name] for name in table.index])
    assert (np.diff(table["score"]) <= 0).all()
    for name in models:
        assert table.loc[name, "score"] == pytest.approx(scorer(models[name], X[TEST], Y[TEST]))
        assert table.loc[name, "low"] == pytest.approx(np.quantile(plain[name], 0.025))
    best = np.isclose(values, values.max(axis=0), rtol=1e-12, atol=1e-12)
    assert table["probability_best"].tolist() == pytest.approx(
        (best / best.sum(axis=0)).mean(axis=1).tolist()
    )
    assert table["probability_best"].sum() == pytest.approx(1.0)
    beaten = (values < values[0] - 1e-12).mean(axis=1)
    assert table["probability_beaten"].tolist() == pytest.approx(beaten.tolist())
    alone = score_interval(models["four"], X[TEST], Y[TEST], n_resamples=60, random_state=0)
    assert (alone.low, alone.high) == (table.loc["four", "low"], table.loc["four", "high"])


def test_compare_scores_shares_probability_of_ties() -> None:
    table = compare_scores(
        {"a": tree(3), "b": tree(3)}, X[TEST], Y[TEST], n_resamples=10, random_state=0
    )
    assert table["probability_best"].tolist() == [0.5, 0.5]
    assert table["probability_beaten"].tolist() == [0.0, 0.0]


# --- folds ---


def measured(place: int, losses: list[float], rules: float = 3) -> Candidate:
    return Candidate.from_measures(
        "cart",
        {},
        place,
        tuple(fold_measures(1 - loss, rules, loss=loss, loss_q=loss) for loss in losses),
    )


@pytest.mark.parametrize(
    ("score", "weights"), [("ice", {"phi": 2, "rho": 0.5}), ("fire", {"psi": 2}), ("q", {})]
)
def test_win_probability_enumerates_few_folds(score: str, weights: dict[str, float]) -> None:
    random = np.random.default_rng(0)
    candidates = Candidates(
        measured(i, random.uniform(0.05, 0.2, size=4).tolist(), int(random.integers(3, 5)))
        for i in range(6)
    )
    values = candidates.scores(score, **weights)
    wins = np.zeros(6)
    for draw in itertools.product(range(4), repeat=4):
        means = values[:, draw].mean(axis=1)
        wins[np.argmax(means if score == "ice" else -means)] += 1 / 4**4
    table = win_probability(candidates, score, **weights)
    assert table.sort_values("candidate")["probability"].tolist() == pytest.approx(wins.tolist())
    assert (np.diff(table["probability"]) <= 1e-15).all()
    assert table["score"].tolist() == pytest.approx(
        values.mean(axis=1)[table["candidate"]].tolist()
    )


def test_win_probability_rejects_weights_of_other_scores() -> None:
    candidates = [measured(0, [0.1, 0.2]), measured(1, [0.2, 0.1])]
    with pytest.raises(ValueError, match="psi is a weight of 'fire', not of 'ice', got psi=3"):
        win_probability(candidates, psi=3)
    with pytest.raises(ValueError, match="phi and rho are weights of 'ice', not of 'q'"):
        win_probability(candidates, "q", phi=1, rho=1)


def test_win_probability_samples_many_folds() -> None:
    # The second wins if its one good fold is drawn: 1 - (9 / 10)**10.
    results = [measured(0, [0.1] * 10), measured(1, [0.0] + [0.1001] * 9)]
    table = win_probability(results, "q", random_state=0)
    assert table["candidate"].tolist() == [1, 0]
    assert table["probability"][0] == pytest.approx(1 - 0.9**10, abs=0.015)
    assert table.equals(win_probability(results, "q", random_state=0))


def test_win_probability_breaks_ties_by_rules() -> None:
    results = [measured(0, [0.0, 0.0], 4), measured(1, [0.0, 0.0], 2)]
    assert win_probability(results, "fire")["candidate"].tolist() == [1, 0]
    assert win_probability(results, "fire")["probability"].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"confidence_level": 95}, ValueError, "confidence_level must be > 0 and <= 1"),
        ({"confidence_level": 1.0}, ValueError, "confidence_level must be < 1, got 1.0"),
        ({"n_resamples": 1}, ValueError, "n_resamples must be an integer of 2 or more, got 1"),
        ({"n_resamples": 10.0}, TypeError, "got 10.0"),
        ({"scoring": "knowledge"}, TypeError, "returns one number, got 'knowledge'"),
        ({"scoring": len}, TypeError, "must be a rule scorer"),
        ({"scoring": "icy"}, ValueError, "no score 'icy'"),
        ({"estimator": KNeighborsClassifier().fit(X, Y)}, TypeError, "no rule set to score"),
    ],
)
def test_score_interval_rejects_invalid_parameters(
    change: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        score_interval(**{"estimator": tree(3), "X": X, "y": Y, "n_resamples": 5} | change)


def test_comparisons_need_candidates_and_a_known_score() -> None:
    with pytest.raises(ValueError, match=r"at least one name to a fitted estimator, got \{\}"):
        compare_scores({}, X, Y)
    with pytest.raises(ValueError, match="score must be one of"):
        win_probability([measured(0, [0.1])], "mae")
