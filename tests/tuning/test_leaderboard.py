"""Table of all trials with the winner first."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import IntDistribution
from optuna.trial import TrialState, create_trial

from skescore.tuning import SearchObjective, leaderboard

OBJECTIVE = SearchObjective.of("ice")


def a_trial(
    number: int,
    scores: list[float],
    size: float = 3,
    rows: float = 50,
    state: TrialState = TrialState.COMPLETE,
    **attributes: Any,
) -> optuna.trial.FrozenTrial:
    retained = {
        "extractor": "cart",
        "folds": [{"score": score} for score in scores],
        "score": statistics.fmean(scores),
        "n_rules": size,
        "size": size,
        "black_box_rows": rows,
    }
    complete = state == TrialState.COMPLETE
    trial = create_trial(
        state=state,
        params={"max_leaf_nodes": number + 2},
        distributions={"max_leaf_nodes": IntDistribution(2, 99)},
        user_attrs=retained | attributes,
        value=0.5 if complete else None,
    )
    trial.number = number
    return trial


def a_failure(number: int) -> optuna.trial.FrozenTrial:
    return create_trial(
        state=TrialState.FAIL,
        params={"max_leaf_nodes": 2},
        distributions={"max_leaf_nodes": IntDistribution(2, 99)},
        user_attrs={"error": "Oops: 1"},
    )


def order_of(board: Any) -> list[tuple[str, int]]:
    return list(zip(board["extractor"], board["trial"], strict=True))


def test_leaderboard_puts_the_winner_before_best_scores() -> None:
    trials = {
        "cart": [a_trial(0, [0.9, 0.5], size=9), a_trial(1, [0.5, 0.7], size=3)],
        "gridex": [a_trial(0, [0.4, 0.1], size=1), a_trial(1, [0.8, 0.6], size=4)],
    }
    # Behind gridex 1, with standard errors: cart 0 by 0 with 0.1, cart 1 by 0.1 with 0.2, gridex 0
    # by 0.45 with 0.05.
    expected = {
        0.0: [("gridex", 1), ("cart", 0), ("cart", 1), ("gridex", 0)],  # a tie: fewer rules
        0.49: [("gridex", 1), ("cart", 0), ("cart", 1), ("gridex", 0)],
        0.51: [("cart", 1), ("gridex", 1), ("cart", 0), ("gridex", 0)],
        8.9: [("cart", 1), ("gridex", 1), ("cart", 0), ("gridex", 0)],
        9.1: [("gridex", 0), ("gridex", 1), ("cart", 0), ("cart", 1)],
    }
    for standard_errors, order in expected.items():
        board = leaderboard(trials, OBJECTIVE, [], {}, standard_errors)
        assert order_of(board) == order
        assert board.index.tolist() == [0, 1, 2, 3]


def test_leaderboard_prefers_fewer_queries() -> None:
    trials = {"trepan": [a_trial(0, [0.5], rows=900)], "cart": [a_trial(0, [0.5], rows=90)]}
    assert order_of(leaderboard(trials, OBJECTIVE, [], {}, 0))[0] == ("cart", 0)


def test_leaderboard_breaks_ties_by_extractor_and_trial() -> None:
    trials = {name: [a_trial(n, [0.5, 0.5]) for n in range(3)] for name in ("real", "cart")}
    expected = [(name, n) for name in ("real", "cart") for n in range(3)]
    assert order_of(leaderboard(trials, OBJECTIVE, [], {}, 1)) == expected


def test_leaderboard_puts_trials_without_score_last() -> None:
    trials = {
        "cart": [
            a_failure(0),
            a_trial(1, [1.0, 1.0], size=1, state=TrialState.PRUNED, error="Stopped."),
        ],
        "gridex": [a_trial(0, [0.1, 0.3])],
    }
    board = leaderboard(trials, OBJECTIVE, [], {"cart": "too late"}, 100)
    assert board["state"].tolist() == ["complete", "pruned", "fail"]
    assert board["score"].isna().tolist() == [False, True, True]
    assert board["stopped"].tolist() == ["", "too late", "too late"]
    assert board["error"].tolist() == ["", "Stopped.", "Oops: 1"]
    assert board["params"].tolist() == [{"max_leaf_nodes": n} for n in (2, 3, 2)]
    assert leaderboard({"cart": [a_failure(0)]}, OBJECTIVE, [], {}, 1)["state"].tolist() == ["fail"]


def test_leaderboard_has_columns_for_further_measures() -> None:
    trials = {"cart": [a_trial(0, [0.5], mean_rule_c2=0.25), a_trial(1, [0.4])]}
    board = leaderboard(trials, OBJECTIVE, ["mean_rule_c2"], {}, 0)
    assert board.columns.tolist().index("mean_rule_c2") < board.columns.tolist().index("seconds")
    assert board["mean_rule_c2"].tolist()[0] == 0.25
    assert math.isnan(board["mean_rule_c2"].tolist()[1])


def test_leaderboard_completes_candidates_without_score() -> None:
    objective = SearchObjective.of(("loss", "n_rules"))
    undefined = a_trial(0, [math.nan, 0.5])
    trials = {"cart": [undefined, a_failure(1), a_trial(2, [0.5, 0.5])]}
    board = leaderboard(trials, objective, [], {}, 1)
    assert board["trial"].tolist()[:2] == [2, 0]
    assert board["state"].tolist() == ["complete", "complete", "fail"]


def test_leaderboard_without_trials_has_its_columns() -> None:
    # A search that is interrupted before its first trial needs them.
    board = leaderboard({"cart": []}, OBJECTIVE, ["mean_rule_c2"], {}, 1)
    assert len(board) == 0
    assert {"extractor", "score", "params", "state", "mean_rule_c2"} <= set(board.columns)


@pytest.mark.parametrize("standard_errors", [0.0, 1.0])
def test_leaderboard_winner_does_not_depend_on_order(standard_errors: float) -> None:
    rng = np.random.default_rng(0)
    trials = [a_trial(n, rng.uniform(0.7, 0.8, 4).tolist(), size=n % 5) for n in range(12)]
    expected = leaderboard({"cart": trials}, OBJECTIVE, [], {}, standard_errors).iloc[0]
    for _ in range(5):
        mixed = [trials[index] for index in rng.permutation(12)]
        result = leaderboard({"cart": mixed}, OBJECTIVE, [], {}, standard_errors).iloc[0]
        assert result["trial"] == expected["trial"]
