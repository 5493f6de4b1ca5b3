"""Goals of a search: one score, or several measures that are minimized together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures import fold_measures
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor
from skescore.metrics import fire_score, ice_score, q_score
from skescore.scorers import (
    get_rule_scorer,
    ice,
    knowledge,
    make_fire_scorer,
    make_ice_scorer,
    make_knowledge_scorer,
    make_q_scorer,
    make_rule_scorer,
    neg_fire,
)
from skescore.tuning import ExtractorSearchCV, FoldResult, SearchObjective

FOLDS: list[dict[str, Any]] = [
    fold_measures(0.75, 7, n_rules=3, score=0.5, loss_q=0.5, completeness_volume=0.75),
    fold_measures(0.5, 8, n_rules=4, score=0.75, loss_q=0.25)
    | {"completeness_volume": 0.5, "completeness_instances": 0.5},
]


def results_of(folds: list[dict[str, Any]]) -> list[FoldResult]:
    return [FoldResult.from_dict(fold) for fold in folds]


def scores_with_all_rows(
    objective: SearchObjective, folds: list[dict[str, Any]], all_rows: dict[str, Any] | None
) -> np.ndarray:
    result = None if all_rows is None else FoldResult.from_dict(all_rows)
    return objective.with_all_rows(results_of(folds), result)


def own_score(model: Any, X: Any, y: Any) -> float:
    return 0.0


# --- one score -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scoring", "name"),
    [
        ("ice", "ice"),
        ("neg_fire", "neg_fire"),
        ("fire", "fire"),  # as named by the caller
        (make_fire_scorer(psi=3), "neg_fire"),
        ("mean_rule_c2", "mean_rule_c2"),
        (own_score, "own_score"),
    ],
)
def test_objective_maximizes_one_score(scoring: Any, name: str) -> None:
    objective = SearchObjective.of(scoring)
    assert (objective.name, objective.minimized) == (name, ())
    assert objective.directions == ["maximize"]
    assert objective.metric_names == [name]
    assert objective.values(results_of(FOLDS)) == (0.625,)
    assert callable(objective.scorer)


def test_nameless_scorer_is_called_score() -> None:
    class Nameless:
        def __call__(self, model: Any, X: Any, y: Any) -> float:
            return 0.0

    assert SearchObjective.of(Nameless()).name == "score"


def test_objective_keeps_settings_of_scorers() -> None:
    scorer = make_fire_scorer(psi=3, size="conditions")
    assert SearchObjective.of(scorer).scorer is scorer
    assert SearchObjective.of("neg_fire").scorer.measure is neg_fire.measure


def test_objective_is_undefined_if_a_fold_is() -> None:
    assert math.isnan(
        SearchObjective.of("ice").values(results_of([*FOLDS, FOLDS[0] | {"score": math.nan}]))[0]
    )


# --- several measures ----------------------------------------------------------------------------


def test_objective_minimizes_several_measures_in_order() -> None:
    objective = SearchObjective.of(["n_rules", "loss", "incompleteness"])
    assert objective.minimized == ("n_rules", "loss", "incompleteness")
    assert objective.directions == ["minimize"] * 3
    assert objective.metric_names == ["n_rules", "loss", "incompleteness"]
    assert objective.values(results_of(FOLDS)) == (3.5, 0.375, 0.375)
    assert objective.scorer.measure is ice.measure  # the score that is stored in addition
    assert SearchObjective.of(("loss", "n_rules"), "neg_fire").name == "neg_fire"
    assert SearchObjective.of(("loss", "n_rules"), own_score).scorer is own_score


def test_objective_averages_measures_over_folds() -> None:
    expected = {
        "loss": 0.375,
        "loss_q": 0.375,
        "n_rules": 3.5,
        "size": 7.5,
        "incompleteness": 0.375,
        "incompleteness_instances": 0.25,
    }
    names = tuple(expected)
    assert (
        dict(zip(names, SearchObjective.of(names).values(results_of(FOLDS)), strict=True))
        == expected
    )
    undefined = [FOLDS[0], FOLDS[1] | {"completeness_volume": math.nan}]
    values = dict(zip(names, SearchObjective.of(names).values(results_of(undefined)), strict=True))
    assert [name for name in names if math.isnan(values[name])] == ["incompleteness"]


# --- upper bounds of scores ----------------------------------------------------------------------


def test_best_possible_equals_manual_results() -> None:
    # The loss is zero at best; ICE is largest for one rule without errors over the whole space.
    for scorer in (neg_fire, make_fire_scorer(psi=0.5), make_q_scorer(size="literals")):
        assert SearchObjective.of(scorer).best_possible == 0.0
    by_hand = 1 / (1 + math.exp(-5)) / (1 + math.exp(0.3 - 5))
    assert SearchObjective.of("ice").best_possible == pytest.approx(by_hand, rel=1e-12)
    assert by_hand == pytest.approx(0.984354, abs=1e-6)
    heavy = make_ice_scorer(phi=2, rho=5)
    expected = 1 / (1 + math.exp(-5)) / (1 + math.exp(1.5 - 5))
    assert SearchObjective.of(heavy).best_possible == pytest.approx(expected, rel=1e-12)
    # A custom size may be below one, but not zero.
    own = make_ice_scorer(size=lambda model: 0.001)
    limit = (1 + math.exp(-5)) ** -2
    assert SearchObjective.of(own).best_possible == pytest.approx(limit, rel=1e-9)


def test_best_possible_includes_undefined_score() -> None:
    assert SearchObjective.of(make_fire_scorer(undefined=3.0)).best_possible == 3.0
    assert SearchObjective.of(make_fire_scorer(undefined=-3.0)).best_possible == 0.0
    assert SearchObjective.of(make_ice_scorer(undefined=3.0)).best_possible == 3.0


@pytest.mark.parametrize("scoring", [own_score, "mean_rule_c2", "accuracy", make_rule_scorer("c2")])
def test_best_possible_is_none_for_other_scores(scoring: Any) -> None:
    assert SearchObjective.of(scoring).best_possible is None


@given(
    st.floats(-10, 1),
    st.floats(0, 100),
    st.integers(1, 300),
    st.floats(0, 1),
    st.floats(0.01, 50),
    st.floats(0.01, 50),
    st.floats(0.01, 50),
)
def test_best_possible_bounds_all_scores(
    performance: float, loss: float, size: int, share: float, phi: float, rho: float, psi: float
) -> None:
    def best(scorer: Any) -> float:
        value = SearchObjective.of(scorer).best_possible
        assert value is not None
        return value

    score = ice_score(performance, size, share, phi=phi, rho=rho)
    assert score <= best(make_ice_scorer(phi=phi, rho=rho))
    assert -fire_score(loss, size, psi=psi) <= best(make_fire_scorer(psi=psi))
    assert -q_score(loss, size, share) <= best(make_q_scorer())


def test_best_possible_is_reached() -> None:
    assert SearchObjective.of(make_ice_scorer(phi=3, rho=0.5)).best_possible == ice_score(
        1.0, 1, 1.0, phi=3, rho=0.5
    )
    assert -fire_score(0.0, 1) == SearchObjective.of("neg_fire").best_possible


# --- all rows ------------------------------------------------------------------------------------

PARTS = FOLDS
ALL_ROWS = fold_measures(1.0, 10, n_rules=4, loss_q=0.125) | {
    "completeness_volume": 0.25,
    "completeness_instances": 0.75,
}
#: The scores of such parts, by their papers' formulas.
FORMULAS: list[tuple[Any, Any]] = [
    (
        make_ice_scorer(phi=2, rho=0.5),
        lambda p: ice_score(p["performance"], p["size"], p["completeness_volume"], phi=2, rho=0.5),
    ),
    (
        make_ice_scorer(completeness="instances", size="literals"),
        lambda p: ice_score(p["performance"], p["size"], p["completeness_instances"]),
    ),
    (make_fire_scorer(psi=3), lambda p: -fire_score(p["loss"], p["size"], psi=3)),
    ("neg_q", lambda p: -q_score(p["loss_q"], p["size"], p["completeness_volume"])),
]


@pytest.mark.parametrize(("scoring", "formula"), FORMULAS)
def test_scores_with_all_rows_weight_parts(scoring: Any, formula: Any) -> None:
    folds = [fold | {"score": formula(fold)} for fold in PARTS]
    for size in (7, 8, 20):
        rest = ALL_ROWS | {"size": size}
        result = scores_with_all_rows(
            SearchObjective.of(scoring), folds, rest | {"score": formula(rest)}
        )
        expected = []
        for fold in folds:
            of_parts = formula({k: 0.632 * fold[k] + 0.368 * rest[k] for k in rest})
            weighed = 0.632 * fold["score"] + 0.368 * formula(rest)
            expected.append(of_parts if fold["size"] == size else min(of_parts, weighed))
        assert result.tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("scoring", "change"),
    [
        (own_score, {}),
        ("mean_rule_c2", {}),
        (make_ice_scorer(completeness=lambda rules, X: 0.5), {}),
        # A number may replace an undefined score.
        (make_ice_scorer(undefined=0.5), {"performance": math.nan}),
        (make_fire_scorer(undefined=-9.0), {"size": 0, "loss": math.nan}),
    ],
)
def test_scores_with_all_rows_weight_other_scores_as_a_whole(
    scoring: Any, change: dict[str, float]
) -> None:
    expected = [0.632 * 0.5 + 0.368 * 0.25, 0.632 * 0.75 + 0.368 * 0.25]
    for folds, all_rows in (
        ([fold | change for fold in PARTS], ALL_ROWS),
        (PARTS, ALL_ROWS | change),
    ):
        result = scores_with_all_rows(
            SearchObjective.of(scoring), folds, all_rows | {"score": 0.25}
        )
        assert result.tolist() == pytest.approx(expected, rel=1e-12)


def test_scores_with_all_rows_weight_each_fold_separately() -> None:
    score = FORMULAS[0][1]
    objective = SearchObjective.of(make_ice_scorer(phi=2, rho=0.5, undefined=0.5))
    folds = [PARTS[0] | {"performance": math.nan}, PARTS[1] | {"score": score(PARTS[1])}]
    rest = ALL_ROWS | {"size": 8}
    result = scores_with_all_rows(objective, folds, rest | {"score": score(rest)})
    both = {k: 0.632 * PARTS[1][k] + 0.368 * rest[k] for k in rest}
    expected = [0.632 * 0.5 + 0.368 * score(rest), score(both | {"size": 8})]
    assert result.tolist() == pytest.approx(expected, rel=1e-12)


def test_infinite_custom_scores_stay_infinite() -> None:
    folds = [{"score": math.inf}, {"score": -math.inf}, {"score": 0.5}]
    objective = SearchObjective.of(own_score)
    result = scores_with_all_rows(objective, folds, {"score": 0.5}).tolist()
    assert result == [math.inf, -math.inf, pytest.approx(0.5)]
    result = scores_with_all_rows(objective, folds, {"score": -math.inf}).tolist()
    assert result == [-math.inf, -math.inf, -math.inf]


def test_scores_with_all_rows_handle_missing_results() -> None:
    objective = SearchObjective.of("ice")
    assert np.isnan(scores_with_all_rows(objective, PARTS, None)).tolist() == [True, True]
    for none in ({"failure": "ValueError: no rules"}, ALL_ROWS | {"score": math.nan}):
        assert scores_with_all_rows(objective, PARTS, none).tolist() == [-math.inf, -math.inf]


# --- invalid goals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scoring", "kind", "message"),
    [
        (("loss", "n_rule"), ValueError, "'n_rule', .*Did you mean 'n_rules'"),
        (("loss", "ice"), ValueError, "'ice', which is not a measure.*scoring='ice'"),
        (("loss", 3), ValueError, "names 3, which is not a measure"),
        (("loss",), ValueError, r"at least two different measures.*got \('loss',\)"),
        ((), ValueError, r"at least two different measures.*got \(\)"),
        (("loss", "loss"), ValueError, r"at least two different measures.*got \('loss', 'loss'\)"),
        ("los", ValueError, "'los'"),
        (None, TypeError, "None"),
        (3, TypeError, "3"),
        ({"loss", "n_rules"}, TypeError, "n_rules"),  # without order
        (np.array(["loss", "n_rules"]), TypeError, "n_rules"),
        (knowledge, TypeError, r"one number per candidate.*choose one.*scoring='ice'"),
        (make_knowledge_scorer(psi=2), TypeError, "one number per candidate"),
    ],
)
def test_search_objective_rejects_invalid_goals(
    scoring: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        SearchObjective.of(scoring)


def test_scorer_of_several_measures_is_checked() -> None:
    with pytest.raises(ValueError, match=r"no score 'icee'\. Did you mean 'ice'"):
        SearchObjective.of(("loss", "n_rules"), "icee")
    with pytest.raises(TypeError, match="one number per candidate"):
        SearchObjective.of(("loss", "n_rules"), "knowledge")
    assert SearchObjective.of("ice").scorer.measure is ice.measure


# --- measures that scores ignore as objectives ---------------------------------------------------


def test_objective_minimizes_losses_of_rule_sets() -> None:
    objective = SearchObjective.of(("loss", "negative_overlap", "instability"))
    assert list(objective.measures) == ["neg_negative_overlap", "stability"]
    folds = [
        FOLDS[0] | {"neg_negative_overlap": -0.25, "stability": 0.5},
        FOLDS[1] | {"neg_negative_overlap": 0.0, "stability": 1.0},
    ]
    assert objective.values(results_of(folds)) == (0.375, 0.125, 0.25)
    assert math.isnan(objective.values(results_of(FOLDS))[1])
    assert SearchObjective.of(("loss", "n_rules")).measures == {}
    with pytest.raises(ValueError, match="'stability', which is not a measure"):
        SearchObjective.of(("loss", "stability"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_leaf_nodes")
def test_search_trades_errors_for_stability() -> None:
    X, y = load_iris(return_X_y=True)
    box = FrozenEstimator(DecisionTreeClassifier(random_state=0).fit(X, y))
    search = ExtractorSearchCV(
        box,
        extractors=("cart",),
        scoring=("loss", "instability", "terms_per_rule"),
        n_trials=3,
        cv=2,
        measures=("neg_redundant_rules",),
        random_state=0,
    ).fit(X, y)
    board = search.leaderboard_
    own = ["stability", "neg_terms_per_rule", "neg_redundant_rules"]
    assert [name for name in board if name in own] == own
    # The same rules again without the search; pruned trials have no measures of all folds.
    for row in board[board["state"] == "complete"].to_dict(orient="records"):
        candidate = CARTExtractor(box, random_state=search.extractor_seed_, **row["params"])
        folds = StratifiedKFold(2).split(X, y)
        measured = []
        for train, test in folds:
            fitted = clone(candidate).fit(X[train])
            measured.append([get_rule_scorer(name)(fitted, X[test], y[test]) for name in own])
        assert [row[name] for name in own] == pytest.approx(np.mean(measured, axis=0))
    front = search.pareto_front_
    rows_by_trial = {row["trial"]: row for row in board.to_dict(orient="records")}
    for row in front.to_dict(orient="records"):
        its = rows_by_trial[row["trial"]]
        assert row["instability"] == pytest.approx(1 - its["stability"])
        assert row["terms_per_rule"] == pytest.approx(-its["neg_terms_per_rule"])
    values = search.studies_["cart"].trials[0].values
    assert values == pytest.approx(
        [
            rows_by_trial[0]["loss"],
            1 - rows_by_trial[0]["stability"],
            -rows_by_trial[0]["neg_terms_per_rule"],
        ]
    )
