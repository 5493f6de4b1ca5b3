"""Candidates: read from studies, and judged anew with any weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import IntDistribution
from optuna.trial import TrialState, create_trial
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from skescore.tuning import Candidate, Candidates, ExtractorObjective

FOLD: dict[str, Any] = {
    "performance": 0.9, "loss": 0.1, "loss_q": 0.2, "n_rules": 3, "size": 4,
    "completeness_volume": 0.5, "completeness_instances": 1.0,
}  # fmt: skip
MEASURED = tuple(FOLD)

a_fold = st.fixed_dictionaries(
    {
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
        Candidate("cart", {"max_leaf_nodes": place}, place, tuple(folds))
        for place, folds in enumerate(results)
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
    kept = {"extractor": "cart", "folds": [FOLD | {"n_rules": leaves}] * n_folds} | attributes
    return create_trial(
        state=state,
        value=0.5 if state == TrialState.COMPLETE else None,
        params={"max_leaf_nodes": leaves},
        distributions={"max_leaf_nodes": IntDistribution(2, 9)},
        user_attrs=kept,
    )


# --- from studies --------------------------------------------------------------------------------


def test_only_what_was_measured_throughout_is_a_candidate() -> None:
    study = study_of(
        a_trial(2),
        a_trial(3, TrialState.FAIL),
        a_trial(4, TrialState.PRUNED),
        a_trial(5, TrialState.RUNNING),
        a_trial(2, same_as=0),
        *(a_trial(6, folds=[FOLD, FOLD | {name: math.nan}]) for name in MEASURED),
        a_trial(6, folds=[FOLD, FOLD | {"loss": math.inf}]),
        a_trial(6, folds=[FOLD, FOLD | {"size": 0}]),
        a_trial(6, folds=[]),
        a_trial(7),
    )
    foreign = create_trial(value=1.0, params={}, distributions={})
    study.add_trial(foreign)
    found = Candidates.from_studies({"cart": study})
    assert [candidate.params for candidate in found] == [
        {"max_leaf_nodes": 2},
        {"max_leaf_nodes": 7},
    ]
    assert [candidate.trial for candidate in found] == [0, len(study.trials) - 2]
    assert found[0] == Candidate("cart", {"max_leaf_nodes": 2}, 0, (FOLD | {"n_rules": 2},) * 2)
    assert repr(found) == "<Candidates: 2>"
    assert len(Candidates.from_studies({"cart": study_of(foreign)})) == 0


def test_the_order_is_that_of_the_studies_then_of_the_trials() -> None:
    first, second = study_of(a_trial(3), a_trial(2)), study_of(a_trial(4, extractor="gridex"))
    found = Candidates.from_studies({"gridex": second, "cart": first})
    assert [(c.extractor, c.trial) for c in found] == [("gridex", 0), ("cart", 0), ("cart", 1)]
    # Their own names need not differ for studies in memory; in a sequence they must.
    assert Candidates.from_studies([first])[0].params == {"max_leaf_nodes": 3}


def test_a_trial_that_changes_later_changes_no_candidate() -> None:
    study = study_of(a_trial(2))
    found = Candidates.from_studies({"cart": study})
    found[0].params["max_leaf_nodes"] = 9
    assert study.trials[0].params == {"max_leaf_nodes": 2}


def test_other_numbers_of_folds_cannot_be_compared() -> None:
    study = study_of(a_trial(2), a_trial(3, n_folds=3))
    with pytest.raises(ValueError, match=r"same folds.*\[2, 3\]. Compare candidates of one search"):
        Candidates.from_studies({"cart": study})
    one, other = Candidate("cart", {}, 0, (FOLD,)), Candidate("cart", {}, 1, (FOLD,) * 5)
    with pytest.raises(ValueError, match=r"\[1, 5\]"):
        Candidates([one, other])


def test_real_trials_give_what_the_objective_measured() -> None:
    X, y = (part[::3] for part in load_iris(return_X_y=True))
    objective = ExtractorObjective(
        DecisionTreeClassifier(max_depth=3, random_state=0), X, y,
        space={"max_leaf_nodes": IntDistribution(3, 4)}, cv=3, random_state=0,
    )  # fmt: skip
    study = study_of()
    for leaves in (3, 4, 3):
        study.enqueue_trial({"max_leaf_nodes": leaves})
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study.optimize(objective, n_trials=3)
    optuna.logging.set_verbosity(before)
    found = Candidates.from_studies([study])
    assert [candidate.params["max_leaf_nodes"] for candidate in found] == [3, 4]
    for candidate, trial in zip(found, study.trials, strict=False):
        again = objective.evaluate(trial.params)
        for name in MEASURED:
            assert [fold[name] for fold in candidate.folds] == [fold[name] for fold in again]
            assert candidate.mean(name) == pytest.approx(trial.user_attrs[name])
    assert found.scores("ice").mean(axis=1) == pytest.approx([t.value for t in study.trials[:2]])


# --- judged anew ---------------------------------------------------------------------------------


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
def test_scores_are_the_formulas_of_the_papers(
    results: list[list[dict[str, Any]]], psi: float, phi: float, rho: float, kind: str
) -> None:
    found = candidates_of(results)
    by_hand = {
        "fire": [[fire_by_hand(fold, psi) for fold in folds] for folds in results],
        "q": [[q_by_hand(fold, kind) for fold in folds] for folds in results],
        "ice": [[ice_by_hand(fold, phi, rho, kind) for fold in folds] for folds in results],
    }
    for name, expected in by_hand.items():
        scores = found.scores(name, psi=psi, phi=phi, rho=rho, completeness=kind)
        assert scores.shape == (len(results), len(results[0]))
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-300)


def judged_by_hand(
    formula: Callable[[dict[str, Any]], float],
    fold: dict[str, Any],
    rows: dict[str, Any],
    worse: Any,
) -> float:
    both = {k: 0.632 * fold[k] + 0.368 * rows[k] for k in fold}
    if fold["size"] == rows["size"]:
        return formula(both | {"size": rows["size"]})
    return worse(
        # Decimals as in ours: ceil(size / psi) jumps.
        formula(both | {"size": round(both["size"], 9)}),
        0.632 * formula(fold) + 0.368 * formula(rows),
    )


@given(
    some_candidates,
    st.lists(st.none() | st.just({"failure": "ValueError"}) | a_fold, min_size=5, max_size=5),
    st.sampled_from(["volume", "instances"]),
)
def test_all_rows_are_weighed_in_what_scores_are_made_of(
    results: list[list[dict[str, Any]]], on_all_rows: list[dict[str, Any] | None], kind: str
) -> None:
    found = Candidates(
        Candidate("cart", {}, place, tuple(folds), rows)
        for place, (folds, rows) in enumerate(zip(results, on_all_rows, strict=False))
    )
    by_hand: dict[str, Any] = {
        "fire": lambda parts: fire_by_hand(parts, 3.0),
        "q": lambda parts: q_by_hand(parts, kind),
        "ice": lambda parts: ice_by_hand(parts, 2.0, 0.5, kind),
    }
    for name, formula in by_hand.items():
        scores = found.scores_with_all_rows(name, psi=3.0, phi=2.0, rho=0.5, completeness=kind)
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


def test_only_what_a_score_is_made_of_must_be_known_of_all_rows() -> None:
    rows = FOLD | {"performance": math.nan}
    found = Candidates([Candidate("cart", {}, 0, (FOLD, FOLD), rows)])
    # 4 rules on the folds and of all rows, with a loss of 0.1: 0.1 * 4 * 4**0.05.
    assert found.scores_with_all_rows("fire").ravel() == pytest.approx([0.428709] * 2, abs=1e-6)
    assert found.scores_with_all_rows("ice").tolist() == [[-math.inf] * 2]


@given(some_candidates)
def test_measures_and_means(results: list[list[dict[str, Any]]]) -> None:
    found = candidates_of(results)
    table = found.table()
    for name in MEASURED:
        expected = [[fold[name] for fold in folds] for folds in results]
        assert found.measure(name).tolist() == expected
        means = [sum(row) / len(row) for row in expected]
        np.testing.assert_allclose(found.means(name), means, rtol=1e-12, atol=1e-300)
        assert table[name].tolist() == [candidate.mean(name) for candidate in found]
    shares = found.means("completeness_volume")
    assert found.means("incompleteness").tolist() == (1.0 - shares).tolist()
    assert table["trial"].tolist() == list(range(len(results)))
    assert table["params"].tolist() == [{"max_leaf_nodes": n} for n in range(len(results))]
    assert table.columns.tolist() == ["extractor", *MEASURED, "params", "trial"]


def test_weights_that_differ_put_candidates_in_another_order() -> None:
    exact, short = FOLD | {"loss": 0.05, "size": 9}, FOLD | {"loss": 0.3, "size": 2}
    found = candidates_of([[exact], [short]])
    # 0.05 * 9 * 9**0.05 = 0.502 against 0.3 * 2 * 2**0.05 = 0.621, then 0.056 against 0.311.
    assert found.scores("fire", psi=1).ravel() == pytest.approx([0.50226, 0.62116], abs=1e-5)
    assert found.scores("fire", psi=9).ravel() == pytest.approx([0.05581, 0.31058], abs=1e-5)


def test_a_part_of_them_is_candidates_too() -> None:
    found = candidates_of([[FOLD], [FOLD | {"loss": 0.3}], [FOLD]])
    part = found[1:]
    assert isinstance(part, Candidates)
    assert part[0] is found[1]
    assert part.means("loss").tolist() == [0.3, 0.1]
    assert found[-1] is found[2]
    assert found[1] in found


def test_of_none_there_is_nothing() -> None:
    none = Candidates([])
    assert (len(none), none.scores("ice").size, none.means("loss").size) == (0, 0, 0)
    assert none.scores_with_all_rows("ice").size == 0
    assert none.table().columns.tolist() == ["extractor", *MEASURED, "params", "trial"]


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
def test_scores_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        candidates_of([[FOLD]]).scores(**options)
