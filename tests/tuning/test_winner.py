"""What candidates are judged by; the winner is the smallest of those as good as the best."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.tuning import choose_winner, judged, mixed, mixed_score


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
    found = choose_winner(np.array(scores), *columns, standard_errors)
    assert found == winner_by_hand(scores, costs, standard_errors)


def choose(scores: np.ndarray, sizes: list[float], standard_errors: float) -> int:
    return choose_winner(scores, np.array(sizes), np.zeros(len(sizes)), standard_errors)


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
    assert choose_winner(scores, sizes, asked, 0) == 2
    assert choose_winner(scores[:2], sizes[:2], asked[:2], 0) == 1
    scores[3] = 1e-3  # better, so that what it asked does not matter
    assert choose_winner(scores[1:], sizes[1:], np.array([0.0, 0.0, 99.0]), 100.0) == 2


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
    held_out, on_all_rows = np.array([[0.9, 0.7], [0.8, 0.8]]), np.array([[0.5], [1.0]])
    # 0.632 * 0.9 + 0.368 * 0.5 = 0.7528, and so on.
    found = mixed(held_out, on_all_rows)
    assert found == pytest.approx(np.array([[0.7528, 0.6264], [0.8736, 0.8736]]))


@given(st.floats(-1e6, 1), st.floats(-1e6, 1), st.floats(1, 1e6), st.floats(1, 1e6))
def test_what_is_weighed_stays_in_its_range(a: float, b: float, c: float, d: float) -> None:
    # To the last bit: a performance above 1 would be refused.
    performance, size = mixed(np.array([a, c]), np.array([b, d]))
    assert performance <= 1 <= size
    assert mixed(np.array(1.0), np.array(1.0)) == 1
    assert mixed(np.array([a]), np.array(a)) == pytest.approx([a], rel=1e-15)


def test_rules_that_nobody_gets_are_no_better_than_those_that_one_gets() -> None:
    def parts(performance: list[float], size: list[float]) -> dict[str, np.ndarray]:
        return {"performance": np.array([performance]), "size": np.array([size])}

    def hill(parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return parts["performance"] ** 2 - np.abs(parts["size"] - 2.5)

    def steps(parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return parts["performance"] ** 2 - np.ceil(parts["size"])

    held_out, rest = parts([0.5, 0.5], [3, 2]), parts([1.0], [3])
    # As many rules: (0.632 * 0.5 + 0.368)² = 0.684² = 0.467856. Fewer: the weighed scores are
    # 0.632 * 0.25 + 0.368 = 0.526 without the rules; between 2 and 3 rules there are 2.368.
    found = mixed_score(held_out, rest, hill)
    assert found == pytest.approx(np.array([[0.467856 - 0.5, 0.526 - 0.5]]))
    found = mixed_score(held_out, rest, steps)
    assert found == pytest.approx(np.array([[0.467856 - 3, 0.467856 - 3]]))


def test_candidates_are_judged_by_both() -> None:
    scores, both = np.array([[0.9, 0.7], [0.8, 0.8]]), np.array([[0.6, 0.5], [0.9, 0.7]])
    assert judged(scores, both).tolist() == both.tolist()


#: Nothing was measured on all rows; there are no rules of all rows.
UNKNOWN, NONE = [math.nan, math.nan], [-math.inf, -math.inf]


def test_what_was_not_measured_on_all_rows() -> None:
    scores = np.array([[0.9, 0.7], [0.8, 0.8], [0.8, 0.7]])
    # The last is equalled on every fold by the first: it does not win ...
    both = np.array([[0.8, 0.6], [0.9, 0.9], UNKNOWN])
    found = judged(scores, both)
    assert found.tolist() == [*both[:2].tolist(), NONE]
    assert choose(found, [9, 9, 1], 100.0) != 2
    # ... the first is not by the others, as in a storage of an earlier version: held-out rows.
    both = np.array([UNKNOWN, [0.5, 0.5], [0.5, 0.4]])
    assert judged(scores, both).tolist() == scores.tolist()
    assert judged(scores, np.array([UNKNOWN] * 3)).tolist() == scores.tolist()


def test_what_has_no_rules_of_all_rows_never_wins() -> None:
    scores = np.array([[0.9, 0.7], [0.8, 0.8], [0.8, 0.7]])
    good, bad = [0.9, 0.9], [0.5, 0.4]
    for both in ([NONE, good, bad], [NONE, UNKNOWN, UNKNOWN], [NONE, UNKNOWN, bad]):
        found = judged(scores, np.array(both))
        assert choose(found, [1, 2, 2], 100.0) == 1
    # Nothing better is known.
    assert judged(scores, np.array([NONE] * 3)).tolist() == scores.tolist()
    assert choose(np.array([NONE] * 2), [1, 1], 0.5) == 0


def test_infinite_scores_do_not_take_all_rows_from_the_others() -> None:
    # As a score of one's own may be where candidates break a rule.
    scores = np.array([[-math.inf, 0.9], [-math.inf, 0.8], [0.5, 0.5], [0.6, 0.4], [math.inf, 1]])
    both = np.array([[-math.inf, 0.9], UNKNOWN, [0.6, 0.6], [0.8, 0.5], [math.inf, 1]])
    found = judged(scores, both)
    assert found[1:4].tolist() == [NONE, [0.6, 0.6], [0.8, 0.5]]
    assert choose(found, [1, 1, 2, 2, 1], 0.0) == 3
