"""Candidates are read from studies and scored again with any weights."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from measures import RULE_QUANTITIES, fold_measures
from optuna.distributions import IntDistribution
from optuna.trial import TrialState, create_trial
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from skescore.metrics import fire_score, ice_score
from skescore.tuning import (
    Candidate,
    Candidates,
    ExtractorObjective,
    choose_winner,
    estimate_632,
    score_632,
    selection_scores,
    winning_regions,
)

FOLD = fold_measures(0.9, 4, loss=0.1, loss_q=0.2, n_rules=3, completeness_volume=0.5)

a_fold = st.fixed_dictionaries(
    dict.fromkeys(RULE_QUANTITIES, st.floats(0, 1))
    | {
        "performance": st.floats(-2, 1),
        "loss": st.floats(0, 5),
        "loss_q": st.floats(0, 5),
        "n_rules": st.integers(1, 30),
        "size": st.integers(1, 5) | st.integers(1, 60),
        "completeness_volume": st.floats(0, 1),
        "completeness_instances": st.floats(0, 1),
    }
)
some_candidates = st.integers(1, 4).flatmap(
    lambda n_folds: st.lists(
        st.lists(a_fold, min_size=n_folds, max_size=n_folds), min_size=1, max_size=5
    )
)


def candidates_of(results: list[list[dict[str, Any]]]) -> Candidates:
    return Candidates(
        Candidate.from_measures("cart", {"max_leaf_nodes": index}, index, tuple(folds))
        for index, folds in enumerate(results)
    )


def study_of(*trials: optuna.trial.FrozenTrial) -> optuna.Study:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(study_name="given", direction="maximize")
    optuna.logging.set_verbosity(before)
    study.add_trials(trials)
    return study


def a_trial(
    leaves: int, state: TrialState = TrialState.COMPLETE, n_folds: int = 2, **attributes: Any
) -> optuna.trial.FrozenTrial:
    user_attrs = {"extractor": "cart", "folds": [FOLD | {"n_rules": leaves}] * n_folds} | attributes
    return create_trial(
        state=state,
        value=0.5 if state == TrialState.COMPLETE else None,
        params={"max_leaf_nodes": leaves},
        distributions={"max_leaf_nodes": IntDistribution(2, 9)},
        user_attrs=user_attrs,
    )


# --- from studies --------------------------------------------------------------------------------


def test_candidates_exclude_unmeasured_trials() -> None:
    study = study_of(
        a_trial(2),
        a_trial(3, TrialState.FAIL),
        a_trial(4, TrialState.PRUNED),
        a_trial(5, TrialState.RUNNING),
        a_trial(2, same_as=0),
        *(a_trial(6, folds=[FOLD, FOLD | {name: math.nan}]) for name in RULE_QUANTITIES),
        a_trial(6, folds=[FOLD, FOLD | {"loss": math.inf}]),
        a_trial(6, folds=[FOLD, FOLD | {"size": 0}]),
        a_trial(6, folds=[]),
        a_trial(7),
    )
    foreign = create_trial(value=1.0, params={}, distributions={})
    study.add_trial(foreign)
    candidates = Candidates.from_studies({"cart": study})
    assert [candidate.params for candidate in candidates] == [
        {"max_leaf_nodes": 2},
        {"max_leaf_nodes": 7},
    ]
    assert [candidate.trial for candidate in candidates] == [0, len(study.trials) - 2]
    assert candidates[0] == Candidate.from_measures(
        "cart", {"max_leaf_nodes": 2}, 0, (FOLD | {"n_rules": 2},) * 2
    )
    assert repr(candidates) == "<Candidates: 2>"
    assert len(Candidates.from_studies({"cart": study_of(foreign)})) == 0


def test_candidates_keep_order_of_studies() -> None:
    first, second = study_of(a_trial(3), a_trial(2)), study_of(a_trial(4, extractor="gridex"))
    candidates = Candidates.from_studies({"gridex": second, "cart": first})
    assert [(c.extractor, c.trial) for c in candidates] == [("gridex", 0), ("cart", 0), ("cart", 1)]
    # Names of studies in memory need not differ, but in a sequence they must.
    assert Candidates.from_studies([first])[0].params == {"max_leaf_nodes": 3}


def test_candidates_do_not_share_params_with_trials() -> None:
    study = study_of(a_trial(2))
    candidates = Candidates.from_studies({"cart": study})
    candidates[0].params["max_leaf_nodes"] = 9
    assert study.trials[0].params == {"max_leaf_nodes": 2}


def test_candidates_reject_different_numbers_of_folds() -> None:
    study = study_of(a_trial(2), a_trial(3, n_folds=3))
    with pytest.raises(ValueError, match=r"same folds.*\[2, 3\]. Compare candidates of one search"):
        Candidates.from_studies({"cart": study})
    one, other = (
        Candidate.from_measures("cart", {}, 0, (FOLD,)),
        Candidate.from_measures("cart", {}, 1, (FOLD,) * 5),
    )
    with pytest.raises(ValueError, match=r"\[1, 5\]"):
        Candidates([one, other])


def test_candidates_read_scores_of_real_trials() -> None:
    X, y = (part[::3] for part in load_iris(return_X_y=True))
    objective = ExtractorObjective(
        DecisionTreeClassifier(max_depth=3, random_state=0),
        X,
        y,
        space={"max_leaf_nodes": IntDistribution(3, 4)},
        cv=3,
        random_state=0,
    )
    study = study_of()
    for leaves in (3, 4, 3):
        study.enqueue_trial({"max_leaf_nodes": leaves})
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study.optimize(objective, n_trials=3)
    optuna.logging.set_verbosity(before)
    candidates = Candidates.from_studies([study])
    assert [candidate.params["max_leaf_nodes"] for candidate in candidates] == [3, 4]
    for candidate, trial in zip(candidates, study.trials, strict=False):
        second_result = objective.evaluate(trial.params)
        for name in RULE_QUANTITIES:
            assert [fold[name] for fold in candidate.folds] == [
                fold[name] for fold in second_result
            ]
            assert candidate.mean(name) == pytest.approx(trial.user_attrs[name])
    assert candidates.scores("ice").mean(axis=1) == pytest.approx(
        [t.value for t in study.trials[:2]]
    )


# --- scores with other weights -------------------------------------------------------------------


def fire_by_hand(fold: dict[str, Any], psi: float) -> float:
    return fold["loss"] * math.ceil(fold["size"] / psi) * fold["size"] ** 0.05


def q_by_hand(fold: dict[str, Any], kind: str) -> float:
    return fold["loss_q"] * fold["size"] * (2 - fold[f"completeness_{kind}"])


def ice_by_hand(fold: dict[str, Any], phi: float, rho: float, kind: str) -> float:
    predictive = 1 / (1 + math.exp(5 * (phi * (1 - fold["performance"]) - 1)))
    readable = 1 / (1 + math.exp(0.3 * rho * fold["size"] - 5))
    return predictive * readable * fold[f"completeness_{kind}"]


@given(
    some_candidates,
    st.sampled_from([0.5, 1.0, 2.0, 3.0, 7.0]),  # no float noise in the quotient
    st.floats(0.1, 5),
    st.floats(0.1, 5),
    st.sampled_from(["volume", "instances"]),
)
def test_scores_equal_formulas_of_papers(
    results: list[list[dict[str, Any]]], psi: float, phi: float, rho: float, kind: str
) -> None:
    candidates = candidates_of(results)
    by_hand = {
        "fire": [[fire_by_hand(fold, psi) for fold in folds] for folds in results],
        "q": [[q_by_hand(fold, kind) for fold in folds] for folds in results],
        "ice": [[ice_by_hand(fold, phi, rho, kind) for fold in folds] for folds in results],
    }
    for name, expected in by_hand.items():
        scores = candidates.scores(name, psi=psi, phi=phi, rho=rho, completeness=kind)
        assert scores.shape == (len(results), len(results[0]))
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-300)


def judged_by_hand(
    formula: Callable[[dict[str, Any]], float],
    fold: dict[str, Any],
    rows: dict[str, Any],
    worse: Any,
) -> float:
    pair = {k: 0.632 * fold[k] + 0.368 * rows[k] for k in fold}
    if fold["size"] == rows["size"]:
        return formula(pair | {"size": rows["size"]})
    return worse(
        # Decimals as in ours: ceil(size / psi) jumps.
        formula(pair | {"size": round(pair["size"], 9)}),
        0.632 * formula(fold) + 0.368 * formula(rows),
    )


@given(
    some_candidates,
    st.lists(st.none() | st.just({"failure": "ValueError"}) | a_fold, min_size=5, max_size=5),
    st.sampled_from(["volume", "instances"]),
)
def test_scores_with_all_rows_weight_their_parts(
    results: list[list[dict[str, Any]]], on_all_rows: list[dict[str, Any] | None], kind: str
) -> None:
    candidates = Candidates(
        Candidate.from_measures("cart", {}, index, tuple(folds), rows)
        for index, (folds, rows) in enumerate(zip(results, on_all_rows, strict=False))
    )
    by_hand: dict[str, Any] = {
        "fire": lambda parts: fire_by_hand(parts, 3.0),
        "q": lambda parts: q_by_hand(parts, kind),
        "ice": lambda parts: ice_by_hand(parts, 2.0, 0.5, kind),
    }
    for name, formula in by_hand.items():
        scores = candidates.scores_with_all_rows(name, psi=3.0, phi=2.0, rho=0.5, completeness=kind)
        assert scores.shape == (len(results), len(results[0]))
        for folds, rows, row in zip(results, on_all_rows, scores, strict=False):
            if rows is None:
                assert np.isnan(row).all()
            elif "failure" in rows:
                assert (row == (-math.inf if name == "ice" else math.inf)).all()
            else:
                worse = min if name == "ice" else max
                expected = [judged_by_hand(formula, fold, rows, worse) for fold in folds]
                np.testing.assert_allclose(row, expected, rtol=1e-7, atol=1e-300)


def test_scores_with_all_rows_need_own_parts_only() -> None:
    rows = FOLD | {"performance": math.nan}
    candidates = Candidates([Candidate.from_measures("cart", {}, 0, (FOLD, FOLD), rows)])
    # 4 rules on the folds and of all rows, with a loss of 0.1: 0.1 * 4 * 4**0.05.
    assert candidates.scores_with_all_rows("fire").ravel() == pytest.approx(
        [0.428709] * 2, abs=1e-6
    )
    assert candidates.scores_with_all_rows("ice").tolist() == [[-math.inf] * 2]


@given(some_candidates)
def test_candidates_report_measures_and_means(results: list[list[dict[str, Any]]]) -> None:
    candidates = candidates_of(results)
    table = candidates.table()
    for name in RULE_QUANTITIES:
        expected = [[fold[name] for fold in folds] for folds in results]
        assert candidates.measure(name).tolist() == expected
        means = [sum(row) / len(row) for row in expected]
        np.testing.assert_allclose(candidates.means(name), means, rtol=1e-12, atol=1e-300)
        assert table[name].tolist() == [candidate.mean(name) for candidate in candidates]
    shares = candidates.means("completeness_volume")
    assert candidates.means("incompleteness").tolist() == (1.0 - shares).tolist()
    assert table["trial"].tolist() == list(range(len(results)))
    assert table["params"].tolist() == [{"max_leaf_nodes": n} for n in range(len(results))]
    assert table.columns.tolist() == ["extractor", *RULE_QUANTITIES, "params", "trial"]


def test_scores_rank_candidates_by_weights() -> None:
    exact, short = FOLD | {"loss": 0.05, "size": 9}, FOLD | {"loss": 0.3, "size": 2}
    candidates = candidates_of([[exact], [short]])
    # 0.05 * 9 * 9**0.05 = 0.502 against 0.3 * 2 * 2**0.05 = 0.621, then 0.056 against 0.311.
    assert candidates.scores("fire", psi=1).ravel() == pytest.approx([0.50226, 0.62116], abs=1e-5)
    assert candidates.scores("fire", psi=9).ravel() == pytest.approx([0.05581, 0.31058], abs=1e-5)


def test_candidates_slice_to_candidates() -> None:
    candidates = candidates_of([[FOLD], [FOLD | {"loss": 0.3}], [FOLD]])
    part = candidates[1:]
    assert isinstance(part, Candidates)
    assert part[0] is candidates[1]
    assert part.means("loss").tolist() == [0.3, 0.1]
    assert candidates[-1] is candidates[2]
    assert candidates[1] in candidates


def test_empty_candidates_have_empty_results() -> None:
    none = Candidates([])
    assert (len(none), none.scores("ice").size, none.means("loss").size) == (0, 0, 0)
    assert none.scores_with_all_rows("ice").size == 0
    assert none.table().columns.tolist() == ["extractor", *RULE_QUANTITIES, "params", "trial"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "neg_fire"}, r"score must be one of \['ice', 'fire', 'q'\], got 'neg_fire'"),
        ({"completeness": "rows"}, "one of 'volume', 'instances', got 'rows'"),
        ({"score": "fire", "psi": 0}, "psi"),
        ({"score": "fire", "psi": math.nan}, "psi"),
        ({"phi": -1}, "phi"),
        ({"rho": math.inf}, "rho"),
    ],
)
def test_scores_reject_invalid_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        candidates_of([[FOLD]]).scores(**options)


def winner_by_hand(
    scores: list[list[float]], costs: list[tuple[float, ...]], standard_errors: float
) -> int:
    """Compare every candidate with the best one separately."""
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
        size, n_queries = costs[place]
        return (size, -means[place], math.inf if math.isnan(n_queries) else n_queries, place)

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
def test_choose_winner_equals_pairwise_comparison(
    table: tuple[list[list[float]], list[tuple[float, ...]]], standard_errors: float
) -> None:
    scores, costs = table
    columns = [np.array(column) for column in zip(*costs, strict=True)]
    result = choose_winner(np.array(scores), *columns, standard_errors)
    assert result == winner_by_hand(scores, costs, standard_errors)


def choose(scores: np.ndarray, sizes: list[float], standard_errors: float) -> int:
    return choose_winner(scores, np.array(sizes), np.zeros(len(sizes)), standard_errors)


def test_choose_winner_applies_standard_errors() -> None:
    # Differences to the best 0.1, 0.3, 0.2: mean 0.2, standard error 0.1 / sqrt(3) = 0.0577.
    scores = np.array([[0.9, 0.9, 0.9], [0.8, 0.6, 0.7]])
    assert choose(scores, [5, 2], 3.4) == 0  # 3.4 * 0.0577 = 0.196
    assert choose(scores, [5, 2], 3.5) == 1  # 3.5 * 0.0577 = 0.202
    assert choose(scores[::-1], [2, 5], 3.4) == 1
    assert choose(scores, [5, 2], 0) == 0
    # A candidate that is behind by the same amount on every fold is certainly behind.
    assert choose(np.array([[0.9, 0.9], [0.8, 0.8]]), [5, 2], 3.4) == 0


def test_choose_winner_compares_size_then_queries() -> None:
    scores = np.zeros((4, 3))
    sizes, n_queries = np.array([3.0, 2.0, 2.0, 2.0]), np.array([0.0, math.nan, 50.0, 50.0])
    assert choose_winner(scores, sizes, n_queries, 0) == 2
    assert choose_winner(scores[:2], sizes[:2], n_queries[:2], 0) == 1
    scores[3] = 1e-3  # better, so that its queries do not matter
    assert choose_winner(scores[1:], sizes[1:], np.array([0.0, 0.0, 99.0]), 100.0) == 2


def test_choose_winner_breaks_ties_by_mean() -> None:
    scores = np.array([[1.0, 0.0], [0.5, 0.25], [0.0, 0.5]])
    assert choose(scores, [9, 2, 2], 1.0) == 1
    assert choose(scores, [2, 2, 2], 1.0) == 0


def test_choose_winner_takes_the_best_of_one_fold() -> None:
    assert choose(np.array([[0.9], [0.9], [0.89]]), [3, 2, 1], 100.0) == 1


def test_choose_winner_ignores_rounding_of_sums() -> None:
    scores = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2]])
    assert len(set(scores.mean(axis=1))) > 1  # equal but for the last bit
    for order in itertools.permutations(range(3)):
        assert choose(scores[list(order)], [2, 2, 2], 0) == 0
        sizes = [3.0 - index for index in order]
        assert order[choose(scores[list(order)], sizes, 0)] == 2


def test_estimate_632_weights_held_out_and_all_rows() -> None:
    held_out, on_all_rows = np.array([[0.9, 0.7], [0.8, 0.8]]), np.array([[0.5], [1.0]])
    # 0.632 * 0.9 + 0.368 * 0.5 = 0.7528, and so on.
    result = estimate_632(held_out, on_all_rows)
    assert result == pytest.approx(np.array([[0.7528, 0.6264], [0.8736, 0.8736]]))


@given(st.floats(-1e6, 1), st.floats(-1e6, 1), st.floats(1, 1e6), st.floats(1, 1e6))
def test_estimate_632_stays_within_range(a: float, b: float, c: float, d: float) -> None:
    # Exactly: a performance above 1 would be rejected.
    performance, size = estimate_632(np.array([a, c]), np.array([b, d]))
    assert performance <= 1 <= size
    assert estimate_632(np.array(1.0), np.array(1.0)) == 1
    assert estimate_632(np.array([a]), np.array(a)) == pytest.approx([a], rel=1e-15)


def test_rules_on_folds_do_not_outrank_final_rules() -> None:
    def parts(performance: list[float], size: list[float]) -> dict[str, np.ndarray]:
        return {"performance": np.array([performance]), "size": np.array([size])}

    def hill(parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return parts["performance"] ** 2 - np.abs(parts["size"] - 2.5)

    def steps(parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return parts["performance"] ** 2 - np.ceil(parts["size"])

    held_out, rest = parts([0.5, 0.5], [3, 2]), parts([1.0], [3])
    # As many rules: (0.632 * 0.5 + 0.368)² = 0.684² = 0.467856. Fewer: the weighed scores are
    # 0.632 * 0.25 + 0.368 = 0.526 without the rules; between 2 and 3 rules there are 2.368.
    result = score_632(held_out, rest, hill)
    assert result == pytest.approx(np.array([[0.467856 - 0.5, 0.526 - 0.5]]))
    result = score_632(held_out, rest, steps)
    assert result == pytest.approx(np.array([[0.467856 - 3, 0.467856 - 3]]))


def test_selection_scores_use_scores_with_all_rows() -> None:
    scores, both = np.array([[0.9, 0.7], [0.8, 0.8]]), np.array([[0.6, 0.5], [0.9, 0.7]])
    assert selection_scores(scores, both).tolist() == both.tolist()


#: Nothing was measured on all rows; there are no rules of all rows.
UNKNOWN, NONE = [math.nan, math.nan], [-math.inf, -math.inf]


def test_selection_scores_stay_without_all_rows() -> None:
    scores = np.array([[0.9, 0.7], [0.8, 0.8], [0.8, 0.7]])
    # The last one equals the first on every fold, so it does not win ...
    both = np.array([[0.8, 0.6], [0.9, 0.9], UNKNOWN])
    result = selection_scores(scores, both)
    assert result.tolist() == [*both[:2].tolist(), NONE]
    assert choose(result, [9, 9, 1], 100.0) != 2
    # ... the others do not equal the first, as in a storage of an earlier version: held-out rows.
    both = np.array([UNKNOWN, [0.5, 0.5], [0.5, 0.4]])
    assert selection_scores(scores, both).tolist() == scores.tolist()
    assert selection_scores(scores, np.array([UNKNOWN] * 3)).tolist() == scores.tolist()


def test_candidate_without_rules_never_wins() -> None:
    scores = np.array([[0.9, 0.7], [0.8, 0.8], [0.8, 0.7]])
    good, bad = [0.9, 0.9], [0.5, 0.4]
    for both in ([NONE, good, bad], [NONE, UNKNOWN, UNKNOWN], [NONE, UNKNOWN, bad]):
        result = selection_scores(scores, np.array(both))
        assert choose(result, [1, 2, 2], 100.0) == 1
    # Nothing better is available.
    assert selection_scores(scores, np.array([NONE] * 3)).tolist() == scores.tolist()
    assert choose(np.array([NONE] * 2), [1, 1], 0.5) == 0


def test_selection_scores_isolate_infinite_scores() -> None:
    # As custom scores may be for candidates that violate a rule.
    scores = np.array([[-math.inf, 0.9], [-math.inf, 0.8], [0.5, 0.5], [0.6, 0.4], [math.inf, 1]])
    both = np.array([[-math.inf, 0.9], UNKNOWN, [0.6, 0.6], [0.8, 0.5], [math.inf, 1]])
    result = selection_scores(scores, both)
    assert result[1:4].tolist() == [NONE, [0.6, 0.6], [0.8, 0.5]]
    assert choose(result, [1, 1, 2, 2, 1], 0.0) == 3


def test_from_table_scores_candidates_by_their_figures() -> None:
    table = pd.DataFrame(
        {"performance": [0.9, 0.6], "n_rules": [5, 2], "completeness": [0.8, 1.0]}, ["a", "b"]
    )
    candidates = Candidates.from_table(table)
    assert [candidate.extractor for candidate in candidates] == ["a", "b"]
    scores = candidates.scores("ice", phi=2, rho=3).ravel()
    assert scores == pytest.approx([ice_score(*row, phi=2, rho=3) for row in table.to_numpy()])
    fire = candidates.scores("fire", psi=2).ravel()
    assert fire == pytest.approx([fire_score(0.1, 5, psi=2), fire_score(0.4, 2, psi=2)])
    losses = Candidates.from_table(table.assign(loss=[12.0, 3.0]))
    assert losses.scores("fire").ravel() == pytest.approx([fire_score(12, 5), fire_score(3, 2)])


def test_winning_regions_accept_a_table() -> None:
    table = pd.DataFrame({"performance": [0.99, 0.7], "n_rules": [12, 2]}, ["long", "short"])
    regions = winning_regions(table, "ice")
    assert {regions.winner(phi=9, rho=0.1).extractor, regions.winner(phi=0.1, rho=9).extractor} == {
        "long",
        "short",
    }


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"performance": [0.5], "rules": [3]}, "unknown column 'rules'"),
        ({"performance": [0.5]}, "must have the column 'n_rules'"),
        ({"n_rules": [3]}, "at least one of 'performance' and 'loss'"),
        ({"performance": [1.5], "n_rules": [3]}, r"candidates\['performance'\] must be"),
        ({"performance": [0.5], "n_rules": [float("nan")]}, r"candidates\['n_rules'\] must be"),
    ],
)
def test_from_table_rejects_invalid_columns(columns: dict[str, list[float]], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Candidates.from_table(pd.DataFrame(columns))
