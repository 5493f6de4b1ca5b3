"""Arguments of the knowledge measures: valid values, and messages for all others."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skescore.metrics import (
    confusion,
    fidelity,
    fire_score,
    group_fidelity,
    group_rates,
    ice_performance,
    ice_readability,
    ice_score,
    performance_value,
    prediction_agreement,
    prediction_loss,
    prediction_performance,
    q_score,
    rule_calibration,
    rule_overlap,
)
from skescore.rules import Interval, Rule, RuleSet
from skescore.scorers import ice

# --- valid input --


@pytest.mark.parametrize(
    "container",
    [
        list,
        tuple,
        np.array,
        lambda values: np.array(values, dtype=object),
        lambda values: pd.Series(values, index=[7, 5, 3]),
        lambda values: pd.Series(values, dtype="Int64"),
        lambda values: pl.Series(values),
        lambda values: np.array(values, dtype=np.uint8),
    ],
)
def test_q_score_accepts_every_container_of_numbers(container):
    scores = q_score(0.5, container([1, 2, 3]), 1.0)
    assert isinstance(scores, np.ndarray)
    assert scores.dtype == np.float64
    assert scores.tolist() == [0.5, 1.0, 1.5]


def test_fire_score_does_not_change_its_arguments():
    array = np.array([0.5, 0.25])
    fire_score(array, 3)
    assert array.tolist() == [0.5, 0.25]


def test_ice_score_of_empty_lists_is_empty():
    assert ice_score([], [], []).tolist() == []


# --- invalid input ---

GOOD = {
    fire_score: {"loss": 0.1, "n_rules": 3, "psi": 1.0},
    q_score: {"loss": 0.1, "n_rules": 3, "completeness": 0.5},
    ice_performance: {"performance": 0.9, "phi": 1.0},
    ice_readability: {"n_rules": 3, "rho": 1.0},
    ice_score: {"performance": 0.9, "n_rules": 3, "completeness": 0.5, "phi": 1.0, "rho": 1.0},
}
OUTSIDE = {
    "loss": [-1e-300, -1.0, np.inf, -np.inf, np.nan],
    "n_rules": [0, -1, np.inf, -np.inf, np.nan],
    "completeness": [-1e-9, 1 + 1e-9, 39.0, np.inf, -np.inf, np.nan],
    "performance": [1 + 1e-9, 95.0, np.inf, np.nan],
    "psi": [0, -1.0, np.inf, -np.inf, np.nan],
    "phi": [0, -1.0, np.inf, -np.inf, np.nan],
    "rho": [0, -1.0, np.inf, -np.inf, np.nan],
}
ARGUMENTS = [(function, name) for function, names in GOOD.items() for name in names]
OUTSIDE_CASES = [(function, name, bad) for function, name in ARGUMENTS for bad in OUTSIDE[name]]
OUTSIDE_CASES += [(fire_score, "n_rules", 0.999)]


def label(value: object) -> str:
    return getattr(value, "__name__", repr(value))


@pytest.mark.parametrize(("function", "name", "bad"), OUTSIDE_CASES, ids=label)
def test_scores_reject_values_outside_domain(function, name, bad):
    with pytest.raises(ValueError, match=rf"^{name} must be [<>]=? ") as caught:
        function(**GOOD[function] | {name: bad})
    assert f"got {float(bad)!r}. " in str(caught.value)

    inside = GOOD[function][name]
    with pytest.raises(ValueError, match=f"^{name} must be ") as caught:
        function(**GOOD[function] | {name: [inside, bad, inside, bad]})
    assert f"got {float(bad)!r} at position 1. " in str(caught.value)


def test_q_score_error_states_position_in_matrix():
    with pytest.raises(ValueError, match=r"got -2\.0 at position \(1, 0\)"):
        q_score([[0.0, 1.0], [-2.0, -3.0]], 3, 1.0)


NOT_NUMBERS = [True, np.True_, "3", b"3", None, 1j, Decimal(1), np.datetime64("2026-01-01"), {3}]


@pytest.mark.parametrize("bad", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize(("function", "name"), ARGUMENTS, ids=label)
def test_scores_reject_values_that_are_not_numbers(function, name, bad):
    with pytest.raises(TypeError, match=f"^{name} must be a number or an array of numbers, got "):
        function(**GOOD[function] | {name: bad})
    with pytest.raises(TypeError, match=f"^{name} must be a number or an array of numbers, got "):
        function(**GOOD[function] | {name: [GOOD[function][name], bad]})


@pytest.mark.parametrize(
    "bad",
    [
        np.array([True, False]),
        np.array(["1", "2"]),
        pd.Series([True, False]),
        pd.Series(["1", "2"]),
        pd.Series(["1", "2"], dtype="category"),
        pd.Series([1, None], dtype="object"),
        pd.Series(pd.to_datetime(["2026-01-01"])),
        pl.Series([True, False]),
        np.array([], dtype=bool),
        [[1, 2], [3]],
    ],
    ids=lambda bad: f"{type(bad).__name__} of {getattr(bad, 'dtype', 'lists')}",
)
def test_q_score_rejects_arrays_of_other_types(bad):
    with pytest.raises(TypeError, match=r"^n_rules must be a number or "):
        q_score(0.5, bad, 1.0)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (pd.Series([1.0, None]), "n_rules must be > 0 and finite, got nan at position 1"),
        (pl.Series([1, None]), "n_rules must be > 0 and finite, got nan at position 1"),
        (np.ma.array([1, 2], mask=[False, True]), "n_rules must have no masked entries"),
        (10**400, "n_rules must fit into a float"),
    ],
    ids=["pandas", "polars", "masked", "huge"],
)
def test_q_score_rejects_missing_and_huge_entries(bad, message):
    with pytest.raises(ValueError, match=message):
        q_score(0.5, bad, 1.0)


def test_scores_errors_state_rule_value_and_remedy():
    with pytest.raises(ValueError, match="loss must be") as caught:
        fire_score([0.1, -0.5], 3)
    assert str(caught.value) == (
        "loss must be >= 0 and finite, got -0.5 at position 1. Pass an error such as "
        "1 - accuracy or the mean absolute error, not a score."
    )
    with pytest.raises(ValueError, match="completeness must be") as caught:
        ice_score(0.9, 3, 39)
    assert str(caught.value) == (
        "completeness must be >= 0 and <= 1 and finite, got 39.0. Pass a share, not a percentage: "
        "0.39 for 39 %."
    )
    with pytest.raises(TypeError, match="psi must be") as caught:
        fire_score(0.1, 3, psi="2")
    assert str(caught.value) == (
        "psi must be a number or an array of numbers, got '2' of type str. "
        "Convert it to float first."
    )


def test_fire_score_error_names_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match=r"loss: \(2,\), n_rules: \(3,\), psi: \(\)"):
        fire_score([0.1, 0.2], [1, 2, 3])


def test_fire_score_rejects_overflow_of_rules_per_psi():
    with pytest.raises(ValueError, match=r"r / psi .* overflows for psi=1e-300"):
        fire_score(0.0, 1e10, psi=1e-300)


# --- weights of rows ---

HALVES = RuleSet(
    [Rule([Interval(0, upper=2)], "a"), Rule([Interval(0, lower=1)], "b")],
    ["x"],
    task="classification",
    ordered=False,
)
ROWS, LABELS = [[0.5], [1.5], [2.5], [3.5]], ["a", "a", "b", "a"]
WEIGHTED = {
    "overlap": lambda w: rule_overlap(HALVES, ROWS, w),
    "calibration": lambda w: rule_calibration(HALVES, ROWS, LABELS, w),
    "confusion": lambda w: confusion(HALVES, ROWS, LABELS, w),
    "performance": lambda w: prediction_performance(
        LABELS, LABELS, metric="accuracy", task="classification", sample_weight=w
    ),
    "loss": lambda w: prediction_loss(
        [1.0] * 4, [2.0] * 4, metric="mean_absolute_error", task="regression", sample_weight=w
    ),
    "kappa": lambda w: performance_value("cohen_kappa", LABELS, LABELS, sample_weight=w),
    "rates": lambda w: group_rates(HALVES, ROWS, list("uuvv"), w),
    "fidelity": lambda w: fidelity(HALVES, HALVES, ROWS, sample_weight=w),
    "group_fidelity": lambda w: group_fidelity(
        LABELS, LABELS, task="classification", sample_weight=w
    ),
    "agreement": lambda w: prediction_agreement(HALVES, HALVES, ROWS, w),
    "ice": lambda w: ice(HALVES, ROWS, LABELS, sample_weight=w),
}


@pytest.mark.parametrize("measure", WEIGHTED)
def test_sample_weight_must_have_finite_sum(measure):
    with pytest.raises(ValueError, match=r"finite sum, got weights up to 1e\+308. Divide the"):
        WEIGHTED[measure](np.full(4, 1e308))


@pytest.mark.parametrize(
    "weights",
    [
        np.array(["2024-01-01"] * 4, dtype="datetime64[D]"),
        np.array([1, 2, 3, 4], dtype="timedelta64[s]"),
        np.array([1, 2, 3, 4], dtype=complex),
        [1.0, 2.0, 3.0, 1j],
        ["1", "2", "3", "4"],
        np.array([1, "2", 3, 4], dtype=object),
        [b"1", 2.0, 3.0, 4.0],
        pd.to_datetime(["2024-01-01"] * 4),
        pd.Series(pd.to_timedelta([1, 2, 3, 4], unit="s")),
        pl.Series(["1", "2", "3", "4"]),
    ],
    ids=lambda weights: type(weights).__name__,
)
@pytest.mark.parametrize("measure", ["overlap", "performance", "rates", "ice"])
def test_sample_weight_must_hold_numbers(measure, weights):
    with pytest.raises(TypeError, match="sample_weight must hold numbers, got values of type"):
        WEIGHTED[measure](weights)


@pytest.mark.parametrize(
    "weights",
    [
        [1, 2, 3, 4],
        [True, False, True, True],
        [Decimal(1), 2, 3.5, np.float32(1)],
        pd.Series([1, 2, 3, 4], dtype="Int64"),
        pl.Series([1, 2, 3, 4]),
        np.array([1, 2, 3, 4], dtype=np.float16),
    ],
)
def test_sample_weight_accepts_all_types_of_numbers(weights):
    floats = np.array([float(weight) for weight in weights])
    assert rule_overlap(HALVES, ROWS, weights).overlap == rule_overlap(HALVES, ROWS, floats).overlap
