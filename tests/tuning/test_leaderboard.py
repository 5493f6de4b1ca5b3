"""The table of all trials, and the winner: the smallest of those as good as the best."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import IntDistribution
from optuna.trial import TrialState, create_trial

from skescore.tuning.goals import Goal
from skescore.tuning.leaderboard import judged, leaderboard, winner

GOAL = Goal.of("ice")


def winner_by_hand(
    scores: list[list[float]], costs: list[tuple[float, ...]], standard_errors: float
) -> int:
    """Every candidate is compared with the best by itself."""
    n_folds = len(scores[0])
    means = [statistics.fmean(row) for row in scores]
    best = means.index(max(means))
    near = []
    for place, row in enumerate(scores):
        differences = [a - b for a, b in zip(scores[best], row, strict=True)]
        error = statistics.stdev(differences) / math.sqrt(n_folds) if n_folds > 1 else 0.0
        if means[best] - means[place] <= standard_errors * error + 1e-12:
            near.append(place)

    def key(place: int) -> tuple[Any, ...]:
        size, asked = costs[place]
        return (size, -means[place], math.inf if math.isnan(asked) else asked, place)

    return min(near, key=key)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[float]], list[tuple[float, ...]]]:
    n_folds = draw(st.integers(1, 5))
    # Eighths have exact sums, so that ties are ties.
    score = st.integers(-16, 16).map(lambda eighths: eighths / 8)
    row = st.lists(score, min_size=n_folds, max_size=n_folds)
    scores = draw(st.lists(row, min_size=1, max_size=7))
    cost = st.tuples(st.integers(1, 3).map(float), st.sampled_from([10.0, 20.0, math.nan]))
    return scores, [draw(cost) for _ in scores]


@given(tables(), st.sampled_from([0.0, 0.4, 1.0, 2.5, 100.0]))
def test_the_winner_is_that_of_comparing_one_by_one(
    table: tuple[list[list[float]], list[tuple[float, ...]]], standard_errors: float
) -> None:
    scores, costs = table
    columns = [np.array(column) for column in zip(*costs, strict=True)]
    found = winner(np.array(scores), *columns, standard_errors)
    assert found == winner_by_hand(scores, costs, standard_errors)


def choose(scores: np.ndarray, sizes: list[float], standard_errors: float) -> int:
    return winner(scores, np.array(sizes), np.zeros(len(sizes)), standard_errors)


def test_the_rule_by_hand() -> None:
    # Differences to the best 0.1, 0.3, 0.2: mean 0.2, standard error 0.1 / sqrt(3) = 0.0577.
    scores = np.array([[0.9, 0.9, 0.9], [0.8, 0.6, 0.7]])
    assert choose(scores, [5, 2], 3.4) == 0  # 3.4 * 0.0577 = 0.196
    assert choose(scores, [5, 2], 3.5) == 1  # 3.5 * 0.0577 = 0.202
    assert choose(scores[::-1], [2, 5], 3.4) == 1
    assert choose(scores, [5, 2], 0) == 0
    # One that is as much behind on every fold is behind for sure.
    assert choose(np.array([[0.9, 0.9], [0.8, 0.8]]), [5, 2], 3.4) == 0


def test_size_weighs_most_and_unknown_questions_are_the_most() -> None:
    scores = np.zeros((4, 3))
    sizes, asked = np.array([3.0, 2.0, 2.0, 2.0]), np.array([0.0, math.nan, 50.0, 50.0])
    assert winner(scores, sizes, asked, 0) == 2
    assert winner(scores[:2], sizes[:2], asked[:2], 0) == 1
    scores[3] = 1e-3  # better, so that what it asked does not matter
    assert winner(scores[1:], sizes[1:], np.array([0.0, 0.0, 99.0]), 100.0) == 2


def test_of_equally_small_ones_near_the_best_the_best_mean_wins() -> None:
    scores = np.array([[1.0, 0.0], [0.5, 0.25], [0.0, 0.5]])
    assert choose(scores, [9, 2, 2], 1.0) == 1
    assert choose(scores, [2, 2, 2], 1.0) == 0


def test_with_one_fold_only_the_best_counts() -> None:
    assert choose(np.array([[0.9], [0.9], [0.89]]), [3, 2, 1], 100.0) == 1


def test_rounding_of_sums_makes_no_difference() -> None:
    scores = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2]])
    assert len(set(scores.mean(axis=1))) > 1  # equal but for the last bit
    for order in itertools.permutations(range(3)):
        assert choose(scores[list(order)], [2, 2, 2], 0) == 0
        sizes = [3.0 - place for place in order]
        assert order[choose(scores[list(order)], sizes, 0)] == 2


def test_held_out_rows_and_all_rows_are_weighed() -> None:
    scores = np.array([[0.9, 0.7], [0.8, 0.8]])
    found = judged(scores, np.array([0.5, 1.0]))
    # 0.632 * 0.9 + 0.368 * 0.5 = 0.7528, and so on.
    assert found == pytest.approx(np.array([[0.7528, 0.6264], [0.8736, 0.8736]]))


def test_what_was_not_measured_on_all_rows() -> None:
    scores = np.array([[0.9, 0.7], [0.8, 0.8], [0.8, 0.7]])
    # The last is equalled on every fold by the first: it does not win ...
    found = judged(scores, np.array([0.5, 1.0, math.nan]))
    assert found[2].tolist() == [-math.inf, -math.inf]
    assert choose(found, [9, 9, 1], 100.0) != 2
    # ... the first is not by the others, as in a storage of an earlier version: held-out rows.
    assert judged(scores, np.array([math.nan, 0.1, 0.1])).tolist() == scores.tolist()
    assert judged(scores, np.full(3, math.nan)).tolist() == scores.tolist()


def test_what_has_no_rules_of_all_rows_never_wins() -> None:
    scores = np.array([[0.9, 0.7], [0.8, 0.8], [0.8, 0.7]])
    none = -math.inf
    for on_all_rows in ([none, 1.0, 0.1], [none, math.nan, math.nan], [none, math.nan, 0.1]):
        found = judged(scores, np.array(on_all_rows))
        assert choose(found, [1, 2, 2], 100.0) == 1
    # Nothing better is known.
    assert judged(scores, np.full(3, none)).tolist() == scores.tolist()
    assert choose(np.full((2, 2), none), [1, 1], 0.5) == 0


# --- the table -----------------------------------------------------------------------------------


def a_trial(
    number: int,
    scores: list[float],
    size: float = 3,
    rows: float = 50,
    state: TrialState = TrialState.COMPLETE,
    **attributes: Any,
) -> optuna.trial.FrozenTrial:
    kept = {
        "extractor": "cart", "folds": [{"score": score} for score in scores],
        "score": statistics.fmean(scores), "n_rules": size, "size": size, "black_box_rows": rows,
    }  # fmt: skip
    complete = state == TrialState.COMPLETE
    trial = create_trial(
        state=state, params={"max_leaves": number + 2},
        distributions={"max_leaves": IntDistribution(2, 99)},
        user_attrs=kept | attributes,
        value=0.5 if complete else None,
    )  # fmt: skip
    trial.number = number
    return trial


def a_failure(number: int) -> optuna.trial.FrozenTrial:
    return create_trial(
        state=TrialState.FAIL, params={"max_leaves": 2},
        distributions={"max_leaves": IntDistribution(2, 99)}, user_attrs={"error": "Oops: 1"},
    )  # fmt: skip


def order_of(board: Any) -> list[tuple[str, int]]:
    return list(zip(board["extractor"], board["trial"], strict=True))


def test_the_winner_comes_first_then_the_best_scores() -> None:
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
        board = leaderboard(trials, GOAL, [], {}, standard_errors)
        assert order_of(board) == order
        assert board.index.tolist() == [0, 1, 2, 3]


def test_what_asked_less_wins_among_equals() -> None:
    trials = {"trepan": [a_trial(0, [0.5], rows=900)], "cart": [a_trial(0, [0.5], rows=90)]}
    assert order_of(leaderboard(trials, GOAL, [], {}, 0))[0] == ("cart", 0)


def test_of_full_ties_the_first_named_and_the_earliest_wins() -> None:
    trials = {name: [a_trial(n, [0.5, 0.5]) for n in range(3)] for name in ("real", "cart")}
    expected = [(name, n) for name in ("real", "cart") for n in range(3)]
    assert order_of(leaderboard(trials, GOAL, [], {}, 1)) == expected


def test_trials_without_a_score_are_last_and_never_win() -> None:
    trials = {
        "cart": [
            a_failure(0),
            a_trial(1, [1.0, 1.0], size=1, state=TrialState.PRUNED, error="Stopped."),
        ],
        "gridex": [a_trial(0, [0.1, 0.3])],
    }
    board = leaderboard(trials, GOAL, [], {"cart": "too late"}, 100)
    assert board["state"].tolist() == ["complete", "pruned", "fail"]
    assert board["score"].isna().tolist() == [False, True, True]
    assert board["stopped"].tolist() == ["", "too late", "too late"]
    assert board["error"].tolist() == ["", "Stopped.", "Oops: 1"]
    assert board["params"].tolist() == [{"max_leaves": n} for n in (2, 3, 2)]
    assert leaderboard({"cart": [a_failure(0)]}, GOAL, [], {}, 1)["state"].tolist() == ["fail"]


def test_further_measures_are_columns() -> None:
    trials = {"cart": [a_trial(0, [0.5], mean_rule_c2=0.25), a_trial(1, [0.4])]}
    board = leaderboard(trials, GOAL, ["mean_rule_c2"], {}, 0)
    assert board.columns.tolist().index("mean_rule_c2") < board.columns.tolist().index("seconds")
    assert board["mean_rule_c2"].tolist()[0] == 0.25
    assert math.isnan(board["mean_rule_c2"].tolist()[1])


def test_with_several_measures_a_candidate_without_a_score_is_still_complete() -> None:
    goal = Goal.of(("loss", "n_rules"))
    undefined = a_trial(0, [math.nan, 0.5])
    trials = {"cart": [undefined, a_failure(1), a_trial(2, [0.5, 0.5])]}
    board = leaderboard(trials, goal, [], {}, 1)
    assert board["trial"].tolist()[:2] == [2, 0]
    assert board["state"].tolist() == ["complete", "complete", "fail"]


def test_an_empty_table_has_its_columns() -> None:
    # A search that was interrupted before its first trial asks for them.
    board = leaderboard({"cart": []}, GOAL, ["mean_rule_c2"], {}, 1)
    assert len(board) == 0
    assert {"extractor", "score", "params", "state", "mean_rule_c2"} <= set(board.columns)


@pytest.mark.parametrize("standard_errors", [0.0, 1.0])
def test_an_order_of_trials_that_differs_changes_no_winner(standard_errors: float) -> None:
    rng = np.random.default_rng(0)
    trials = [a_trial(n, rng.uniform(0.7, 0.8, 4).tolist(), size=n % 5) for n in range(12)]
    expected = leaderboard({"cart": trials}, GOAL, [], {}, standard_errors).iloc[0]
    for _ in range(5):
        mixed = [trials[place] for place in rng.permutation(12)]
        found = leaderboard({"cart": mixed}, GOAL, [], {}, standard_errors).iloc[0]
        assert found["trial"] == expected["trial"]
