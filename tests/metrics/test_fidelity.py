"""Fidelity by group, off the data and at boundaries, and agreement by feature."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import r2_score

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor
from skescore.metrics import (
    OFF_DATA,
    feature_agreement,
    fidelity,
    group_fidelity,
    prediction_performance,
    rows_off_data,
)
from skescore.rules import Fallback, Interval, LinearOutput, OneOf, Rule, RuleSet

HALVES = RuleSet(
    [Rule([Interval(0, upper=0.5)], "low"), Rule([Interval(0, lower=0.5)], "high")],
    ["x", "y"],
    task="classification",
)
RNG = np.random.default_rng(3)
SQUARE = RNG.random((200, 2))
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(3, 2, 60),
        "rooms": RNG.integers(1, 6, 60),
        "flag": RNG.random(60) < 0.3,
        "color": pd.Categorical(RNG.choice(["red", "blue"], 60), ["red", "blue", "green"]),
        "gap": np.where(RNG.random(60) < 0.4, np.nan, RNG.random(60)),
    },
    index=np.arange(60) * 7,
)


def halves(X: Any) -> np.ndarray:
    return np.where(np.asarray(X)[:, 0] <= 0.5, "low", "high")


@st.composite
def predictions(draw: st.DrawFn) -> tuple[Any, ...]:
    n = draw(st.integers(1, 12))
    task = draw(st.sampled_from(["classification", "regression"]))
    values = st.sampled_from("abc") if task == "classification" else st.integers(-3, 3)
    box, rules = (draw(st.lists(values, min_size=n, max_size=n)) for _ in range(2))
    groups = draw(st.lists(st.sampled_from(["n", "s", None]), min_size=n, max_size=n))
    weights = st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=n, max_size=n).filter(any)
    return task, box, rules, groups, draw(weights)


@given(case=predictions())
def test_group_fidelity_agrees_with_loop(case: Any) -> None:
    task, box, rules, groups, weights = case
    total = sum(weights)
    if task == "regression":
        mean = sum(w * b for b, w in zip(box, weights, strict=True)) / total
        spread = sum(w * abs(b - mean) for b, w in zip(box, weights, strict=True)) / total
    sums: dict[Any, list[float]] = {}
    for b, r, g, w in zip(box, rules, groups, weights, strict=True):
        if w:
            value = float(b == r)
            if task == "regression":
                value = 1 - abs(b - r) / spread if spread > 0 else (1.0 if b == r else -math.inf)
            sums.setdefault(g, [0.0, 0.0])
            sums[g][0] += w
            sums[g][1] += w * value
    fidelity_by_group = group_fidelity(box, rules, groups, task=task, sample_weight=weights)
    means = [v / w for w, v in sums.values()]
    assert [None if g != g else g for g in fidelity_by_group.groups] == list(sums)
    assert fidelity_by_group.values == pytest.approx(means)
    assert fidelity_by_group.rows == pytest.approx([w for w, _ in sums.values()])
    if math.inf in map(abs, means):
        return
    assert fidelity_by_group.overall == pytest.approx(
        np.average(means, weights=fidelity_by_group.rows)
    )
    assert fidelity_by_group.gap == pytest.approx(fidelity_by_group.overall - min(means), abs=1e-9)
    assert fidelity_by_group.gap >= 0
    pairs = [abs(a - b) for i, a in enumerate(means) for b in means[i + 1 :]]
    assert fidelity_by_group.mean_gap == pytest.approx(np.mean(pairs) if pairs else 0.0)
    assert fidelity_by_group.to_frame()["fidelity"].tolist() == fidelity_by_group.values.tolist()
    if task == "classification":
        by_class = group_fidelity(box, rules, task=task, sample_weight=weights)
        assert by_class.overall == pytest.approx(fidelity_by_group.overall)
        assert set(by_class.groups) == {b for b, w in zip(box, weights, strict=True) if w}
        assert 0 <= by_class.gap <= 1


def test_group_fidelity_of_constant_predictions_is_1_or_infinite() -> None:
    box = np.full(7, 2.13)  # the mean differs from 2.13 in the last bit
    rules = box + np.array([0, 0, 0, 0, 0, 0, 0.5])
    fidelity_by_group = group_fidelity(box, rules, [0, 0, 0, 1, 1, 1, 1], task="regression")
    assert fidelity_by_group.values.tolist() == [1.0, -np.inf]


def test_group_fidelity_rejects_invalid_input() -> None:
    with pytest.raises(ValueError, match="In regression, groups must state the group of each row"):
        group_fidelity([1.0], [1.0], task="regression")
    with pytest.raises(ValueError, match=r"equally long.*got shapes \(2,\) and \(1,\)"):
        group_fidelity([1, 2], [1], task="classification")
    with pytest.raises(ValueError, match="sample_weight must hold a positive number"):
        group_fidelity([1], [1], task="classification", sample_weight=[0])
    with pytest.raises(ValueError, match="task must be"):
        group_fidelity([1], [1], task="ranking")
    with pytest.raises(ValueError, match="y_black_box must hold a label in every row, but row 1"):
        group_fidelity(["a", np.nan], ["a", "b"], task="classification")
    fidelity_by_group = group_fidelity(["a", "b"], ["a", None], task="classification")
    assert fidelity_by_group.overall == 0.5  # rows without a prediction count as errors


@pytest.mark.parametrize("answers", [[[0], [1]], np.array([0, 1], dtype=object), pd.Series([0, 1])])
def test_fidelity_accepts_predictions_of_any_shape_and_type(answers: Any) -> None:
    black_box = CallableClassifier(lambda rows: answers, classes=[0, 1])
    X = [[0.0], [1.0]]
    extractor = CARTExtractor(black_box).fit(X)
    assert fidelity(extractor.rules_, lambda rows: answers, X) == 1.0
    assert extractor.fidelity(X) == 1.0


@pytest.mark.parametrize("where", OFF_DATA)
def test_rows_off_data_resemble_rows(where: str) -> None:
    def box(X: pd.DataFrame) -> np.ndarray:
        assert list(X.dtypes) == list(TABLE.dtypes)
        return np.where(X["color"].astype(str) == "red", X["rooms"] > 2, X["size"] > 3)

    sampled = rows_off_data(TABLE, where, 300, black_box=box, random_state=4)
    assert list(sampled.columns) == list(TABLE.columns)
    assert list(sampled.dtypes) == list(TABLE.dtypes)
    assert len(sampled) == 300
    for name in ("size", "rooms", "gap"):
        assert sampled[name].min() >= TABLE[name].min() - 1e-9
        assert sampled[name].max() <= TABLE[name].max() + 1e-9
    assert set(sampled["color"]) == {"red", "blue"}
    assert 0 < sampled["gap"].isna().mean() < 1
    second_result = rows_off_data(TABLE, where, 300, black_box=box, random_state=4)
    pd.testing.assert_frame_equal(sampled, second_result)
    other = rows_off_data(TABLE, where, 300, black_box=box, random_state=5)
    assert not sampled["size"].equals(other["size"])
    # Numeric arrays and object arrays are sampled in the same way.
    numbers = rows_off_data(TABLE[["size", "rooms"]].to_numpy(), where, 50, black_box=halves)
    assert numbers.shape == (50, 2)
    objects = TABLE[["size", "color"]].to_numpy(dtype=object)
    assert set(rows_off_data(objects, where, 50, black_box=halves)[:, 1]) <= {"red", "blue"}


@pytest.mark.parametrize("where", OFF_DATA)
def test_rows_off_data_keep_types_of_frames(where: str) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1.0, 2.0, 3.0, None], "b": [1, 2, 3, 4], "c": [*"xyxz"]})
    sampled = rows_off_data(frame, where, 20, black_box=lambda X: (X["b"] > 2).to_numpy())
    assert sampled.schema == frame.schema
    assert len(sampled) == 20
    nullable = pd.DataFrame(
        {
            "whole": pd.array([1, None, 7], dtype="Int64"),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "far": [np.inf, 1.0, 2.0],
            "day": pd.date_range("2020", periods=3),
        }
    )
    sampled = rows_off_data(nullable, where, 20, black_box=lambda X: X["flag"].fillna(True))
    assert list(sampled.dtypes) == list(nullable.dtypes)
    assert sampled["day"].isin(nullable["day"]).all()


@pytest.mark.parametrize("where", OFF_DATA)
def test_rows_off_data_keep_nulls_of_polars(where: str) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"size": [1.0, None, 2.5, 4.0], "flag": [True, None, False, True], "n": [3, 5, None, 9]}
    )
    queried = []

    def predict(rows):
        queried.append(rows)
        return rows["flag"].fill_null(False).to_numpy()

    sampled = rows_off_data(frame, where, 200, black_box=predict, random_state=0)
    for rows in [sampled, *queried]:
        assert rows.schema == frame.schema
        assert rows.select(polars.all().null_count() > 0).row(0) == (True, True, True)
        assert not rows["size"].is_nan().any()


def test_rows_off_data_follow_their_distributions() -> None:
    X = np.array([[0.0, 10.0], [4.0, 30.0], [9.0, 0.0]])
    still = rows_off_data(X, "jittered", 50, scale=0.0)
    assert {tuple(row) for row in still} == {tuple(row) for row in X}
    jittered = rows_off_data(SQUARE, "jittered", 4000, scale=0.05) - 0.5
    start = rows_off_data(SQUARE, "jittered", 4000, scale=0.0) - 0.5
    inside = (np.abs(start) < 0.3).all(axis=1)
    assert (jittered - start)[inside].std(axis=0) == pytest.approx(
        0.05 * SQUARE.std(axis=0), rel=0.1
    )
    # Between two rows, points lie on a line; in the second case, the first row has weight zero.
    for row in rows_off_data(X[:2], "interpolated", 20):
        assert row[1] == pytest.approx(10 + 5 * row[0])
    repeated = rows_off_data(X[:2], "interpolated", 20, sample_weight=[0, 1])
    assert (repeated == X[1]).all()
    cubes = rows_off_data(X, "uniform", 5000)
    assert np.corrcoef(cubes.T)[0, 1] == pytest.approx(0, abs=0.05)
    assert cubes.mean(axis=0) == pytest.approx([4.5, 15], rel=0.05)
    dice = rows_off_data(pd.DataFrame({"die": [1, 6]}), "uniform", 6000)["die"]
    assert dice.value_counts().min() > 850
    assert len(set(dice)) == 6


@pytest.mark.parametrize("where", ["jittered", "uniform", "interpolated"])
def test_rows_off_data_keep_dtypes_and_missing_values(where: str) -> None:
    nothing = np.full(60, np.nan)
    values = pd.array([*range(1, 31), *[None] * 30], dtype="Int64")
    large = np.arange(60, dtype=np.uint64) * 2**40 + np.uint64(2**63)
    frame = pd.DataFrame({"nothing": nothing, "some": values, "large": large})
    sampled = rows_off_data(frame, where, 200)
    assert sampled["large"].dtype == np.uint64
    assert sampled["large"].between(large[0], large[-1]).all()
    assert sampled["nothing"].isna().all()
    assert sampled["some"].dtype == "Int64"
    assert 0.2 < sampled["some"].isna().mean() < 0.8
    assert sampled["some"].dropna().between(1, 30).all()


def test_rows_off_data_at_boundary_are_on_both_sides() -> None:
    sampled = rows_off_data(SQUARE, "boundary", 500, black_box=halves)
    assert len(sampled) == 500
    assert np.abs(sampled[:, 0] - 0.5).max() <= 0.1 + 1 / 2**8
    assert np.mean(sampled[:, 0] > 0.5) == pytest.approx(0.5, abs=0.08)
    # Rules with a slightly shifted boundary differ most from the black box at that boundary.
    off = HALVES.replace(
        rules=[Rule([Interval(0, upper=0.52)], "low"), Rule([Interval(0, lower=0.52)], "high")]
    )
    by_place = {w: fidelity(off, halves, SQUARE, where=w) for w in ("rows", *OFF_DATA)}
    assert by_place["boundary"] < min(by_place[w] for w in by_place if w != "boundary")
    with pytest.warns(UndefinedMetricWarning, match="predicts one class for all rows"):
        assert math.isnan(fidelity(HALVES, lambda X: ["low"] * len(X), SQUARE, where="boundary"))
    # A class whose rows have weight zero has no boundary.
    weights = np.where(halves(SQUARE) == "low", 1.0, 0.0)
    sampled = rows_off_data(SQUARE, "boundary", 5, black_box=halves, sample_weight=weights)
    assert sampled.shape == (0, 2)
    names = rows_off_data(TABLE, "boundary", 40, black_box=lambda X: X["color"].astype(str))
    assert 0.2 < (names["color"] == "red").mean() < 0.8


@pytest.mark.parametrize("where", ["rows", *OFF_DATA])
def test_fidelity_of_equal_models_is_1_everywhere(where: str) -> None:
    assert fidelity(HALVES, halves, SQUARE, where=where) == 1.0
    numbers = RuleSet([Rule([], LinearOutput(1.0, [(0, 2.0)]))], ["x", "y"], task="regression")
    double = lambda X: 1 + 2 * np.asarray(X)[:, 0]  # noqa: E731
    if where == "boundary":
        with pytest.raises(ValueError, match="is for classes, but the rules predict numbers"):
            fidelity(numbers, double, SQUARE, where=where)
    else:
        assert fidelity(numbers, double, SQUARE, where=where) == pytest.approx(1.0)


@pytest.mark.parametrize("where", ["rows", *OFF_DATA])
@pytest.mark.parametrize("fallback", [None, Fallback("low"), Fallback("low", policy="abstain")])
def test_fidelity_counts_uncovered_rows_as_errors(where: str, fallback: Fallback | None) -> None:
    upper = HALVES.replace(rules=HALVES.rules[1:], classes=["low", "high"], fallback=fallback)
    rows = SQUARE if where == "rows" else rows_off_data(SQUARE, where, 400, black_box=halves)
    right = 0
    for row, label in zip(rows, halves(rows), strict=True):
        prediction = "high" if row[0] > 0.5 else None
        if prediction is None and fallback is not None and fallback.policy == "default":
            prediction = "low"
        right += prediction == label
    fidelity_value = fidelity(upper, halves, SQUARE, where=where, n_rows=400)
    assert fidelity_value == pytest.approx(right / len(rows))
    nothing = upper.replace(rules=[])
    assert fidelity(nothing, halves, SQUARE, where=where) == 0.0


def test_fidelity_of_single_class_counts_covered_rows() -> None:
    only = HALVES.replace(rules=HALVES.rules[:1], classes=["low"])
    assert fidelity(only, lambda X: ["low"] * len(X), SQUARE) == (SQUARE[:, 0] <= 0.5).mean()


def test_fidelity_predicts_mean_for_uncovered_rows() -> None:
    rules = RuleSet([Rule([Interval(0, upper=0.5)], 3.0)], ["x", "y"], task="regression")
    box = lambda X: 4 * np.asarray(X)[:, 1]  # noqa: E731
    weights = np.arange(200.0)
    said = np.where(SQUARE[:, 0] <= 0.5, 3.0, np.average(box(SQUARE), weights=weights))
    expected = r2_score(box(SQUARE), said, sample_weight=weights)
    assert fidelity(rules, box, SQUARE, sample_weight=weights) == pytest.approx(expected)


def test_feature_agreement_compares_permutation_importances() -> None:
    same = feature_agreement(HALVES, halves, SQUARE)
    assert same.agreement == 1.0
    assert same.black_box.tolist() == same.rules.tolist() == [1.0, 0.0]
    assert same.features == ("x", "y")
    other = lambda X: np.where(np.asarray(X)[:, 1] > 0.3, "low", "high")  # noqa: E731
    assert feature_agreement(HALVES, other, SQUARE).agreement == 0.0
    both = feature_agreement(
        HALVES, lambda X: np.where(np.asarray(X).sum(axis=1) > 1, "low", "high"), SQUARE
    )
    assert both.agreement == pytest.approx(0.5, abs=0.1)
    assert both.agreement == pytest.approx(1 - np.abs(both.black_box - both.rules).sum() / 2)
    constant = HALVES.replace(rules=[Rule([], "low")])
    assert feature_agreement(HALVES, lambda X: ["low"] * len(X), SQUARE).agreement == 0.0
    assert feature_agreement(constant, lambda X: ["low"] * len(X), SQUARE).agreement == 1.0
    assert feature_agreement(constant, halves, SQUARE).agreement == 0.0
    for few in (1, 20):
        assert feature_agreement(HALVES, halves, SQUARE, max_rows=few).agreement == 1.0
    assert same.to_frame().index.tolist() == ["x", "y"]


def test_feature_agreement_permutes_rows() -> None:
    X = np.array([[0.0, 5.0], [1.0, 5.0]])
    rules = RuleSet(
        [Rule([], LinearOutput(0.0, [(0, 3.0), (1, 1.0)]))], ["x", "y"], task="regression"
    )
    result = feature_agreement(rules, lambda X: np.asarray(X)[:, 0], X, n_repeats=20)
    assert result.rules.tolist() == [1.0, 0.0]  # a constant column has no influence
    few = RuleSet([Rule([Interval(0, upper=0.5)], 2.0)], ["x", "y"], task="regression")
    assert feature_agreement(few, lambda X: np.asarray(X)[:, 0], X).rules.tolist() == [0.0, 0.0]
    gaps = few.replace(rules=[Rule([Interval(0, upper=0.5)], 2.0), Rule([Interval(0, 3)], 7.0)])
    wide = np.array([[0.0, 5.0], [1.0, 5.0], [4.0, 5.0]])
    assert feature_agreement(gaps, lambda X: np.asarray(X)[:, 0], wide).rules.tolist() == [1.0, 0.0]
    texts = RuleSet(
        [Rule([OneOf(1, ["red"])], "a"), Rule([Interval(0, upper=3)], "b")],
        ["size", "color"],
        task="classification",
    )
    frame = TABLE[["color", "size", "rooms"]]
    box = lambda X: np.where(X["color"].astype(str) == "red", "a", "b")  # noqa: E731
    weighted = feature_agreement(texts, box, frame, sample_weight=np.ones(60))
    assert weighted.features == ("color", "size", "rooms")
    assert weighted.black_box.tolist() == [1.0, 0.0, 0.0]
    assert weighted.rules[0] > weighted.rules[1] > 0 == weighted.rules[2]


WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (fidelity, {"where": "far"}, ValueError, "where must be"),
    (fidelity, {"n_rows": 0, "where": "uniform"}, ValueError, "n_rows must be"),
    (fidelity, {"scale": -1, "where": "jittered"}, ValueError, "scale must be"),
    (fidelity, {"scale": np.inf, "where": "jittered"}, ValueError, "scale must be"),
    (fidelity, {"X": np.empty((0, 2))}, ValueError, "at least one row"),
    (fidelity, {"black_box": 3}, TypeError, "black_box must be a fitted model with predict"),
    (feature_agreement, {"n_repeats": 0}, ValueError, "n_repeats must be"),
    (feature_agreement, {"X": [0.5, 0.2]}, ValueError, "must be two-dimensional"),
]


@pytest.mark.parametrize(("function", "changes", "kind", "message"), WRONG)
def test_fidelity_rejects_invalid_arguments(
    function: Any, changes: Any, kind: type[Exception], message: str
) -> None:
    arguments = {"rules": HALVES, "black_box": halves, "X": SQUARE} | changes
    with pytest.raises(kind, match=message):
        function(**arguments)


def test_rows_off_data_at_boundary_need_black_box() -> None:
    with pytest.raises(ValueError, match="at least one row to generate rows from, got 0"):
        rows_off_data(np.empty((0, 2)), "uniform")
    with pytest.raises(TypeError, match="needs the black box, but black_box is None"):
        rows_off_data(SQUARE, "boundary")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(rows_off_data(SQUARE, "uniform", 3)) == 3


def test_fidelity_rejects_unknown_places() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification")
    with pytest.raises(ValueError, match="where must be one of 'rows'"):
        fidelity(rules, rules, [[0.0]], where="nowhere")
    with pytest.raises(ValueError, match="where must be one of"):
        rows_off_data([[0.0]], "rows")


def test_feature_agreement_names_columns_of_frames() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a")],
        ["x", "y"],
        task="classification",
        classes=["a", "b"],
        fallback=Fallback("b"),
    )
    X = pd.DataFrame({"y": np.arange(8.0) % 3, "x": np.arange(8.0)})
    result = feature_agreement(rules, rules, X, n_repeats=1, random_state=0)
    assert result.features == ("y", "x")
    assert result.rules.tolist() == [0.0, 1.0]


def test_rows_off_data_at_boundary_are_close_to_it() -> None:
    """A class that contains only the largest value has its boundary next to that value."""
    X = np.arange(5.0)[:, None]
    box = lambda rows: np.where(np.asarray(rows)[:, 0] >= 4, "most", "less")  # noqa: E731
    sampled = rows_off_data(X, "boundary", 200, black_box=box, random_state=0)
    assert len(sampled) == 200
    assert 3.9 < sampled.max() <= 4.0


@pytest.mark.parametrize(
    ("black_box", "rules"),
    [
        (np.array([2**53 + 1, 1]), np.array([2.0**53, 1.0])),
        (np.array([2.0**53, 1.0]), np.array([2**53 + 1, 1])),
        (np.array([2**63 + 1, 1], dtype=np.uint64), np.array([-1, 1])),
        (np.array([2**64 - 1, 1], dtype=np.uint64), np.array([2**63 - 1, 1])),
        (np.array([2**53 + 1, "a"], dtype=object), np.array([2**53, "a"], dtype=object)),
    ],
)
def test_group_fidelity_compares_labels_without_rounding(black_box: Any, rules: Any) -> None:
    fidelity = group_fidelity(black_box, rules, ["u", "v"], task="classification")
    assert fidelity.values.tolist() == [0.0, 1.0]
    options = {"metric": "accuracy", "task": "classification"}
    assert fidelity.overall == prediction_performance(black_box, rules, **options)


@pytest.mark.parametrize("where", ["jittered", "interpolated", "uniform"])
@pytest.mark.parametrize(
    "column",
    [
        pd.Series([2**63 - 1, 2**62]),
        pd.Series([-(2**63), -(2**63) + 5, 2**63 - 1]),
        pd.Series([2**64 - 1, 2**63], dtype="uint64"),
        pd.Series([2**53 + 1, 2**53 + 3]),
        pd.Series([2**63 - 1, 2**63 - 2, None], dtype="Int64"),
        pd.Series([2**63 - 1, 2**63 - 2], dtype="int64[pyarrow]"),
    ],
    ids=str,
)
def test_rows_off_data_keep_the_range_of_integers(column: pd.Series, where: str) -> None:
    sampled = rows_off_data(pd.DataFrame({"id": column}), where, 50)["id"]
    assert sampled.dtype == column.dtype
    assert column.min() <= sampled.min() <= sampled.max() <= column.max()


def test_rows_off_data_keep_the_range_of_integer_arrays() -> None:
    X = np.array([[2**63 - 1, 0], [2**62, 1]])
    sampled = rows_off_data(X, "jittered", 50)
    assert sampled.dtype == X.dtype
    assert (sampled.min(axis=0) >= X.min(axis=0)).all()
    assert (sampled.max(axis=0) <= X.max(axis=0)).all()


def test_group_fidelity_mean_gap_of_single_group_is_0() -> None:
    assert group_fidelity(["a", "a"], ["a", "b"], task="classification").mean_gap == 0.0


def test_feature_agreement_weights_equal_chosen_rows() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.uniform(size=(60, 2)), columns=["a", "b"])
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], "no"), Rule([], "yes")],
        ["a", "b"],
        task="classification",
        ordered=True,
    )
    # The model depends on a in the first half, and on b in the second.
    X["a"] += np.where(np.arange(60) < 30, 0.0, 10.0)

    def model(rows):
        values = np.where(rows["a"] < 5, rows["a"], rows["b"])
        return np.where(values <= 0.5, "no", "yes")

    weights = (np.arange(60) < 30).astype(float)
    weighted = feature_agreement(rules, model, X, sample_weight=weights, random_state=0)
    first = feature_agreement(rules, model, X[:30], random_state=0)
    assert weighted.black_box.argmax() == first.black_box.argmax() == 0
    assert weighted.black_box[1] == first.black_box[1] == 0.0


@pytest.mark.parametrize("where", ["interpolated", "uniform", "boundary"])
def test_rows_off_data_keep_constant_columns(where: str) -> None:
    X = np.column_stack([np.arange(20.0), np.full(20, 0.1), np.full(20, -7.3)])
    rows = rows_off_data(X, where, 500, black_box=lambda rows: rows[:, 0] > 9, random_state=0)
    assert (rows[:, 1:] == [0.1, -7.3]).all()
