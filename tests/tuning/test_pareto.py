"""Fronts, their volume and their knee, compared with plain implementations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from measures import fold_measures

from skescore.scorers import measured_quantities
from skescore.tuning import Candidate, Candidates, hypervolume, knee, pareto_front, pareto_mask


def tables(
    least: int = 0, most: int = 12, objectives: tuple[int, int] = (1, 4)
) -> st.SearchStrategy[np.ndarray]:
    """Draw losses with many ties: small integers."""
    return st.integers(*objectives).flatmap(
        lambda m: hnp.arrays(
            float,
            st.tuples(st.integers(least, most), st.just(m)),
            elements=st.integers(0, 6).map(float),
        )
    )


def dominates(one: np.ndarray, other: np.ndarray) -> bool:
    return bool((one <= other).all() and (one < other).any())


# --- the front -----------------------------------------------------------------------------------


def mask_by_definition(losses: np.ndarray) -> list[bool]:
    return [
        not any(dominates(other, point) for other in losses)
        and not any((earlier == point).all() for earlier in losses[:index])
        for index, point in enumerate(losses)
    ]


@settings(max_examples=120)
@given(tables())
def test_pareto_mask_equals_definition(losses: np.ndarray) -> None:
    assert pareto_mask(losses).tolist() == mask_by_definition(losses)


@pytest.mark.parametrize("n_objectives", [1, 2, 3, 5])
def test_pareto_mask_of_many_points_equals_definition(n_objectives: int) -> None:
    losses = np.random.default_rng(n_objectives).normal(size=(400, n_objectives))
    mask = pareto_mask(losses)
    assert mask.tolist() == mask_by_definition(losses)
    assert mask[losses[:, 0].argmin()]


@settings(max_examples=50)
@given(tables(least=1), st.randoms(use_true_random=False))
def test_pareto_mask_does_not_depend_on_order(losses: np.ndarray, random: Any) -> None:
    order = list(range(len(losses)))
    random.shuffle(order)
    front, shuffled = losses[pareto_mask(losses)], losses[order][pareto_mask(losses[order])]
    assert sorted(map(tuple, front)) == sorted(map(tuple, shuffled))


def test_pareto_mask_keeps_the_first_of_equal_points() -> None:
    assert pareto_mask([[1, 2], [1, 2], [0, 3], [0, 3]]).tolist() == [True, False, True, False]
    assert pareto_mask([[0.0, 1.0], [-0.0, 1.0]]).tolist() == [True, False]
    assert pareto_mask([[3.0], [1.0], [1.0]]).tolist() == [False, True, False]


def test_pareto_mask_treats_infinite_losses_as_worst() -> None:
    losses = [[np.inf, 1], [1, np.inf], [2, 2], [np.inf, np.inf]]
    assert pareto_mask(losses).tolist() == [True, True, True, False]


def test_pareto_mask_and_hypervolume_accept_no_points() -> None:
    for n_objectives in (1, 2, 3):
        assert pareto_mask(np.empty((0, n_objectives))).tolist() == []
        assert hypervolume(np.empty((0, n_objectives)), np.ones(n_objectives)) == 0.0


@pytest.mark.parametrize("function", [pareto_mask, knee, lambda rows: hypervolume(rows, [9, 9])])
def test_invalid_losses_are_rejected(function: Any) -> None:
    with pytest.raises(ValueError, match=r"losses must not hold NaN.*\(1 of 2 rows\)"):
        function([[1, 2], [np.nan, 0]])
    with pytest.raises(ValueError, match=r"losses must be a table .* got shape \(2,\)"):
        function([1, 2])
    with pytest.raises(ValueError, match=r"at least one column per objective, got shape \(3, 0\)"):
        function(np.empty((3, 0)))
    with pytest.raises(ValueError, match=r"losses must hold numbers, got \[\['a', 'b'\]\]"):
        function([["a", "b"]])


# --- its volume ----------------------------------------------------------------------------------


def volume_by_inclusion_and_exclusion(losses: np.ndarray, reference: np.ndarray) -> float:
    """Measure of a union of boxes: those of ones, less those of pairs, and so on."""
    points = [point for point in losses if (point < reference).all()]
    return sum(
        (-1) ** (size + 1) * float(np.prod(reference - np.max(chosen, axis=0)))
        for size in range(1, len(points) + 1)
        for chosen in itertools.combinations(points, size)
    )


@settings(max_examples=80)
@given(tables(most=7, objectives=(1, 3)), st.integers(1, 8))
def test_hypervolume_equals_inclusion_exclusion(losses: np.ndarray, worst: int) -> None:
    reference = np.full(losses.shape[1], float(worst))
    expected = volume_by_inclusion_and_exclusion(losses, reference)
    assert hypervolume(losses, reference) == pytest.approx(expected)


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_hypervolume_equals_optuna(n_objectives: int) -> None:
    from optuna._hypervolume import compute_hypervolume

    random = np.random.default_rng(7)
    for n_points in (1, 2, 10, 80):
        losses = random.uniform(size=(n_points, n_objectives))
        losses /= np.linalg.norm(losses, axis=1, keepdims=True)  # most of them on the front
        reference = np.full(n_objectives, 1.1)
        expected = compute_hypervolume(losses, reference)
        assert hypervolume(losses, reference) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=50)
@given(tables(least=1, objectives=(2, 3)), st.data())
def test_hypervolume_never_decreases_with_another_point(losses: np.ndarray, data: Any) -> None:
    reference = np.full(losses.shape[1], 7.0)
    point = np.array(data.draw(st.lists(st.integers(0, 8), min_size=len(reference))))
    point = point[: len(reference)].astype(float)
    before, after = (
        hypervolume(rows, reference) for rows in (losses, np.vstack([losses, point[None]]))
    )
    assert after >= before
    is_new = (point < reference).all() and not (losses <= point).all(axis=1).any()
    assert (after > before) == is_new


def test_hypervolume_equals_manual_results() -> None:
    assert hypervolume([[1.0], [3.0]], [4]) == 3.0
    assert hypervolume([[0, 0]], [2, 3]) == 6.0
    assert hypervolume([[0, 1], [1, 0]], [2, 2]) == 3.0
    assert hypervolume([[0, 0, 1], [0, 1, 0], [1, 0, 0]], [2, 2, 2]) == 7.0
    assert hypervolume([[2, 0], [0, 2]], [2, 2]) == 0.0  # not below in every column
    assert hypervolume([[np.inf, 0], [1, 1]], [2, 2]) == 1.0


def test_hypervolume_rejects_invalid_references() -> None:
    for reference in ([1], [1, 2, 3], [1, np.inf], [1, np.nan], 3.0):
        with pytest.raises(ValueError, match="reference must be 2 finite numbers"):
            hypervolume([[0, 0]], reference)
    with pytest.raises(ValueError, match="reference must hold numbers, got 'worst'"):
        hypervolume([[0, 0]], "worst")
    with pytest.raises(ValueError, match="above minus infinity"):
        hypervolume([[0, -np.inf]], [1, 1])
    with pytest.raises(ValueError, match="up to 3 objectives, got 4; leave some out"):
        hypervolume([[0, 0, 0, 0]], [1, 1, 1, 1])


# --- its knee ------------------------------------------------------------------------------------


def knee_by_definition(losses: np.ndarray) -> int:
    rows = [row for row, is_on_front in enumerate(mask_by_definition(losses)) if is_on_front]
    distances = []
    for row in rows:
        total = 0.0
        for column in range(losses.shape[1]):
            values = [losses[other, column] for other in rows]
            if max(values) > min(values):
                total += ((losses[row, column] - min(values)) / (max(values) - min(values))) ** 2
        distances.append((round(total, 12), *losses[row]))
    return rows[min(range(len(rows)), key=lambda place: distances[place])]


@settings(max_examples=80)
@given(tables(least=1))
def test_knee_is_nearest_to_the_ideal(losses: np.ndarray) -> None:
    assert knee(losses) == knee_by_definition(losses)


@settings(max_examples=50)
@given(tables(least=1, objectives=(1, 3)), st.data())
def test_knee_does_not_depend_on_units(losses: np.ndarray, data: Any) -> None:
    scale = st.lists(st.sampled_from([1e-6, 0.3, 7.0, 1e6]), min_size=3, max_size=3)
    factors = np.array(data.draw(scale))[: losses.shape[1]]
    offsets = np.array(data.draw(scale))[: losses.shape[1]]
    assume((offsets < 1e4 * factors).all())  # otherwise the digits of the losses are lost
    assert knee(losses * factors + offsets) == knee(losses)


def test_knee_equals_manual_results() -> None:
    assert knee([[4.0, 2.0]]) == 0
    assert knee([[0.3, 2], [0.1, 8]]) == 1  # two ends: the better first objective
    assert knee([[0.3, 2], [0.1, 8], [0.11, 3]]) == 2
    assert knee([[0.3, 2], [0.1, 8], [0.29, 7]]) == 1  # the front is concave: an end
    assert knee([[0.0, 9.0], [5.0, 0.0], [5.0, 9.0], [9.0, -1.0]]) == 1
    assert knee([[2, 5, 0], [1, 5, 1], [0, 5, 2]]) == 1  # an objective with one value is ignored
    # The last objective differs by rounding only: it must not count as much as the others.
    assert knee([[0.1, 4, 1e-16 + 1], [0.5, 1, 1.0], [0.15, 2, 1 + 2e-16]]) == 2


def test_knee_rejects_empty_and_infinite_losses() -> None:
    with pytest.raises(ValueError, match="at least one point and finite values to have a knee"):
        knee(np.empty((0, 2)))
    with pytest.raises(ValueError, match="finite values to have a knee"):
        knee([[0, np.inf], [1, 1]])
    with pytest.raises(ValueError, match="a range that a float can hold"):
        knee([[-1.7e308, 1], [1.7e308, 0]])


# --- fronts of candidates ------------------------------------------------------------------------


def candidate(extractor: str, trial: int, *folds: dict[str, float]) -> Candidate:
    complete = {"completeness_volume": 1.0, "completeness_instances": 1.0}
    full = [complete | {"performance": 1 - fold["loss"]} | fold for fold in folds]
    return Candidate.from_measures(extractor, {"depth": trial}, trial, tuple(full))


FOUND = Candidates(
    [
        candidate("cart", 0, {"loss": 0.30, "n_rules": 2}, {"loss": 0.20, "n_rules": 2}),
        candidate("cart", 1, {"loss": 0.12, "n_rules": 3}, {"loss": 0.08, "n_rules": 4}),
        candidate("cart", 2, {"loss": 0.10, "n_rules": 4}, {"loss": 0.10, "n_rules": 3}),
        candidate("cart", 3, {"loss": 0.09, "n_rules": 20}, {"loss": 0.09, "n_rules": 20}),
        candidate("cart", 4, {"loss": 0.40, "n_rules": 9}, {"loss": 0.10, "n_rules": 9}),
        candidate(
            "iter",
            0,
            {"loss": 0.05, "n_rules": 2, "completeness_volume": 0.25},
            {"loss": 0.05, "n_rules": 2, "completeness_volume": 0.75},
        ),
    ]
)


def test_pareto_front_equals_manual_result() -> None:
    front = pareto_front(FOUND)
    assert front.columns.tolist() == [
        "extractor",
        "loss",
        "n_rules",
        "incompleteness",
        "performance",
        "completeness_volume",
        "completeness_instances",
        "params",
        "trial",
        "knee",
    ]
    # Trials 1 and 2 have the same means up to rounding: the earlier represents both.
    assert list(zip(front["extractor"], front["trial"], strict=True)) == [
        ("iter", 0),
        ("cart", 0),
        ("cart", 1),
        ("cart", 3),
    ]
    assert front["n_rules"].tolist() == [2.0, 2.0, 3.5, 20.0]
    assert front["loss"].tolist() == pytest.approx([0.05, 0.25, 0.1, 0.09])
    assert front["incompleteness"].tolist() == [0.5, 0.0, 0.0, 0.0]
    assert front["params"].tolist() == [{"depth": 0}, {"depth": 0}, {"depth": 1}, {"depth": 3}]
    assert front["knee"].dtype == bool
    assert front["knee"].tolist() == [False, False, True, False]


def test_pareto_front_accepts_other_objectives() -> None:
    # By rows nothing is uncovered, so that the two rules of ITER are best in every objective.
    front = pareto_front(FOUND, completeness="instances")
    assert front["extractor"].tolist() == ["iter"]
    assert front["completeness_volume"].tolist() == [0.5]
    assert front["incompleteness"].tolist() == [0.0]
    assert front["knee"].tolist() == [True]
    both = pareto_front(FOUND, ("incompleteness", "incompleteness_instances", "loss"))
    assert both["trial"].tolist() == [0, 3]  # those of ITER, and the most accurate complete ones
    assert both["incompleteness"].tolist() == [0.5, 0.0]
    assert both["incompleteness_instances"].tolist() == [0.0, 0.0]
    front = pareto_front(FOUND, ("loss",))
    assert front.columns.tolist()[:3] == ["extractor", "loss", "n_rules"]
    assert front["loss"].tolist() == pytest.approx([0.05])
    front = pareto_front(FOUND[:5], ["n_rules", "loss"])
    assert front["trial"].tolist() == [0, 1, 3]


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 4), st.integers(0, 4)),
        max_size=12,
    )
)
def test_pareto_front_contains_undominated_candidates(measured: list[tuple[int, ...]]) -> None:
    candidates = Candidates(
        candidate(
            "cart",
            trial,
            {"loss": loss / 5, "n_rules": rules, "completeness_volume": 1 - volume / 4}
            | {"completeness_instances": 1 - rows / 4},
        )
        for trial, (loss, rules, volume, rows) in enumerate(measured)
    )
    for completeness, index in (("volume", 2), ("instances", 3)):
        losses = np.array([[row[0], row[1], row[index]] for row in measured], dtype=float)
        expected = [trial for trial, on in enumerate(mask_by_definition(losses)) if on]
        front = pareto_front(candidates, completeness=completeness)
        assert sorted(front["trial"]) == expected
        assert front["n_rules"].is_monotonic_increasing
        assert front["knee"].sum() == bool(measured)


def test_pareto_front_of_a_study_equals_its_trials() -> None:
    from sklearn.datasets import load_iris
    from sklearn.neighbors import KNeighborsClassifier

    from skescore.tuning import ExtractorObjective

    X, y = load_iris(return_X_y=True)
    objective = ExtractorObjective(KNeighborsClassifier(9), X, y, extractor="cart", cv=3)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    front = pareto_front(Candidates.from_studies({"cart": study}))
    assert 1 <= len(front) < 12
    for _, row in front.iterrows():
        attributes = study.trials[row["trial"]].user_attrs
        assert row["loss"] == pytest.approx(attributes["loss"])
        assert row["n_rules"] == attributes["n_rules"]
        assert row["params"] == study.trials[row["trial"]].params
    complete = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
    best = front["loss"].min()
    assert best == pytest.approx(min(trial.user_attrs["loss"] for trial in complete))


def test_pareto_front_of_no_candidates_is_empty() -> None:
    front = pareto_front(Candidates([]))
    assert len(front) == 0
    assert {"extractor", "loss", "n_rules", "knee"} <= set(front.columns)
    assert front["knee"].dtype == bool


@pytest.mark.parametrize(
    "objectives", ["loss", (), ("loss", "loss"), ("performance",), ("loss", 3), None, {"loss": 1}]
)
def test_pareto_front_rejects_invalid_objectives(objectives: Any) -> None:
    with pytest.raises(ValueError, match=r"objectives must be .* use 'loss' instead of"):
        pareto_front(FOUND, objectives)


def test_pareto_front_accepts_all_known_objectives() -> None:
    names = [
        quantity.complement or quantity.name
        for quantity in measured_quantities().values()
        if quantity.complement or not quantity.greater_is_better
    ]
    assert len(names) >= 9
    fold = fold_measures() | dict.fromkeys(names, 1.0)
    front = pareto_front(Candidates([candidate("cart", 0, fold)]), names)
    assert set(names) <= set(front.columns)


def test_pareto_front_rejects_unmeasured_objectives() -> None:
    fold = {"loss": 0.1, "n_rules": 2, "seconds": 0.5, "black_box_calls": np.nan}
    candidates = Candidates(
        [candidate("cart", 0, fold), candidate("cart", 1, fold | {"seconds": 0.4})]
    )
    assert pareto_front(candidates, ("loss", "seconds"))["trial"].tolist() == [1]
    with pytest.raises(ValueError, match=r"objectives \['black_box_calls'\] were not measured"):
        pareto_front(candidates, ("loss", "black_box_calls"))
    with pytest.raises(ValueError, match=r"completeness must be one of .* got 'rows'"):
        pareto_front(candidates, completeness="rows")
