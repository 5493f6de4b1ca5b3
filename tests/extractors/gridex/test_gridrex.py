"""GridREx: parity with published records, comparison with plain loops, and planes."""

from __future__ import annotations

import itertools
import json
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from california import stand_in_for_california
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors.gridex import GridRExExtractor
from skescore.rules import LinearOutput

#: Every box is cut along all features at once, as published.
whole_grid = partial(
    GridRExExtractor, max_rules=None, n_features_to_select=None, depth=2, max_terms=None
)

DATA = json.loads(
    (Path(__file__).parents[2] / "data" / "psyke_gridrex.json").read_text(encoding="utf-8")
)


def answering(answers: Any) -> CallableRegressor:
    """Return a black box that gives these predictions for the rows, its only queries."""
    return CallableRegressor(lambda rows: answers)


def plane_of(output: Any, n_features: int) -> tuple[float, np.ndarray]:
    if not isinstance(output, LinearOutput):
        return output, np.zeros(n_features)
    slopes = np.zeros(n_features)
    for feature, slope in output.terms:
        slopes[feature] = slope
    return output.intercept, slopes


# --- parity (PSyKE 1.0.4, tests/data/psyke_gridrex.json) ---


@cache
def black_box(dataset: str) -> tuple[Any, pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return the fitted black box, rows to extract from, rows to predict, and their targets."""
    if dataset == "calif":
        X, y = stand_in_for_california()
    else:
        n_features = int(dataset.removeprefix("friedman"))
        X, y = make_friedman1(1000, n_features, noise=0.5, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    rows, others, y_rows, y_others = train_test_split(frame, y, test_size=0.5, random_state=0)
    model = RandomForestRegressor(50, random_state=0).fit(rows, y_rows)
    return FrozenEstimator(model), rows, others, y_others


def by_place(boxes: list[tuple[np.ndarray, np.ndarray, Any]]) -> list[Any]:
    return sorted(boxes, key=lambda b: tuple(np.round(np.concatenate(b[:2]), 4)))


def check_scores(extractor: Any, record: dict[str, Any]) -> None:
    model, _, others, y = black_box(record["dataset"])
    assert extractor.covers(others).mean() == record["cov_inst"]
    answers, truth = extractor.predict(others), model.predict(others)
    assert mean_absolute_error(truth, answers) == pytest.approx(record["fid_mae_cov"], rel=1e-5)
    assert r2_score(truth, answers) == pytest.approx(record["fid_r2_cov"], rel=1e-5)
    assert mean_absolute_error(y, answers) == pytest.approx(record["mae_cov"], rel=1e-5)
    head = answers[: len(record["predictions_head"])]
    np.testing.assert_allclose(head, record["predictions_head"], rtol=1e-5)
    assert extractor.completeness_ == pytest.approx(record["cov_vol"], abs=2e-5)


@pytest.mark.parametrize("rounding", [True, False])
@pytest.mark.parametrize("record", DATA["records"], ids=lambda r: r["dataset"])
def test_gridrex_reproduces_published_records(record, rounding, psyke_rounding):
    model, rows, *_ = black_box(record["dataset"])
    with psyke_rounding() if rounding else nullcontext():
        extractor = whole_grid(model, **record["parameters"]).fit(rows)
    assert extractor.n_rules_ == record["n_rules"]
    low, high = rows.min().to_numpy() - 2e-6, rows.max().to_numpy() + 2e-6
    table = extractor.rules_.boxes
    ours = by_place(
        [
            (np.maximum(table.lower[i], low), np.minimum(table.upper[i], high), (rule.output, r))
            for i, (rule, r) in enumerate(zip(extractor.rules_, extractor.residuals_, strict=True))
        ]
    )
    published = by_place(
        [
            (*np.array([sides[str(j)] for j in range(rows.shape[1])]).T, (output, diversity))
            for sides, output, diversity in record["boxes"]
        ]
    )
    for one, other in zip(ours, published, strict=True):
        np.testing.assert_allclose(one[:2], other[:2], rtol=0, atol=1e-6)
        intercept, slopes = plane_of(one[2][0], rows.shape[1])
        assert intercept == pytest.approx(other[2][0]["intercept"], rel=1e-6)
        np.testing.assert_allclose(slopes, other[2][0]["coef"], rtol=1e-6)
        assert one[2][1] == pytest.approx(other[2][1], rel=1e-6)
    check_scores(extractor, record)


def cut_four_of_ten(n: int) -> tuple[GridRExExtractor, pd.DataFrame, np.ndarray]:
    names = [f"x{j}" for j in range(10)]
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.uniform(size=(n, 10)), columns=names)
    fresh = random.uniform(size=(min(n, 10_000), 10))
    learnt = pd.DataFrame(random.uniform(size=(1000, 10)), columns=names)
    value = 2 * learnt["x0"] + learnt["x1"] ** 2 + random.normal(scale=0.1, size=1000)
    tree = DecisionTreeRegressor(max_depth=8, random_state=0).fit(learnt, value)
    extractor = whole_grid(
        FrozenEstimator(tree),
        importance_threshold=0.5,
        importances=[1] * 4 + [0] * 6,
        depth=1,
        threshold=0.1,
    )
    return extractor, rows, fresh


@pytest.mark.parametrize("rounding", [True, False])
@pytest.mark.parametrize("record", DATA["tree"], ids=lambda r: str(r["n"]))
def test_sixteen_cells_join_as_in_psyke(record, rounding, psyke_rounding):
    extractor, rows, fresh = cut_four_of_ten(record["n"])
    with psyke_rounding() if rounding else nullcontext():
        extractor.fit(rows)
    assert extractor.n_rules_ == record["n_rules"]

    def sides(bounds, free):
        values = [bounds.get(str(j), free) for j in range(10)]
        return np.nan_to_num(values, posinf=9.0, neginf=-9.0)

    published = by_place(
        [(sides(b["lower"], -9.0), sides(b["upper"], 9.0), b) for b in record["boxes"]]
    )
    table = extractor.rules_.boxes
    lower, upper = (np.clip(bounds, -9, 9) for bounds in (table.lower, table.upper))
    ours = by_place([(lower[i], upper[i], rule) for i, rule in enumerate(extractor.rules_)])
    for one, other in zip(ours, published, strict=True):
        np.testing.assert_allclose(one[:2], other[:2], rtol=0, atol=1e-6)
        intercept, slopes = plane_of(one[2].output, 10)
        assert intercept == pytest.approx(other[2]["intercept"], rel=1e-6)
        np.testing.assert_allclose(slopes, other[2]["coef"], rtol=1e-6, atol=1e-12)
    head = extractor.predict(pd.DataFrame(fresh, columns=rows.columns)[:20])
    np.testing.assert_allclose(head, record["predictions_head"], rtol=1e-5)


@pytest.mark.parametrize("record", DATA["random"], ids=lambda r: r["dataset"])
def test_random_points_reach_published_fidelity(record):
    model, rows, others, _ = black_box(record["dataset"])
    for seed in range(3):
        extractor = whole_grid(model, **record["parameters"], random_state=seed).fit(rows)
        assert extractor.n_rules_ == record["n_rules"]
        assert extractor.fidelity(others) == pytest.approx(record["fid_r2_cov"], abs=0.01)


# --- plain loops ---


class SlowGridREx:
    """Plain implementation of the description that tries all pairs of cells."""

    def __init__(self, X, answers, threshold):
        margin = 1e-9 * np.ptp(X, axis=0)
        self.low, self.high = X.min(axis=0) - margin, X.max(axis=0) + margin
        self.X, self.answers, self.threshold = X, answers, threshold
        self.unit = np.where(self.high > self.low, self.high - self.low, 1.0)

    def plane(self, rows):
        X, z = (self.X[rows] - self.low) / self.unit, self.answers[rows]
        n, varies = len(rows), np.ptp(X, axis=0) > 0
        X = X[:, varies] - X[:, varies].mean(axis=0)
        target, d = z - z.mean(), X.shape[1]
        if d and n < 2 * (d + 2):
            ridge = np.sqrt(d * X.var(axis=0).mean())
            X, target = np.vstack([X, ridge * np.eye(d)]), np.append(target, np.zeros(d))
        slopes = np.zeros(len(varies))
        slopes[varies] = np.linalg.lstsq(X, target, rcond=None)[0] if d else 0.0
        slopes /= self.unit
        return z.mean() - slopes @ self.X[rows].mean(axis=0), slopes

    def diversity(self, rows):
        intercept, slopes = self.plane(rows)
        total = 0.0
        for i in rows:
            total += abs(self.answers[i] - intercept - slopes @ self.X[i])
        return total / len(rows)

    def extract(self, levels):
        frontier, done = [(list(zip(self.low, self.high, strict=True)), range(len(self.X)))], []
        for number, slices in enumerate(levels):
            following = []
            for intervals, rows in frontier:
                if number and self.diversity(list(rows)) < self.threshold:
                    done.append((intervals, list(rows)))
                else:
                    following += self.joined(self.cells(intervals, rows, slices), intervals, slices)
            frontier = following
        return done + frontier

    def cells(self, intervals, rows, slices):
        results: dict[tuple[int, ...], list[int]] = {}
        for i in rows:
            place = tuple(
                min(k - 1, int((x - a) / ((b - a) / k))) if b > a else 0
                for x, (a, b), k in zip(self.X[i], intervals, slices, strict=True)
            )
            results.setdefault(place, []).append(i)
        return [([(p, p + 1) for p in place], results[place]) for place in sorted(results)]

    def joined(self, cells, intervals, slices):
        while True:
            best = None
            for i, j in itertools.combinations(range(len(cells)), 2):
                apart = [(a, b) for a, b in zip(cells[i][0], cells[j][0], strict=True) if a != b]
                if len(apart) != 1 or not (
                    apart[0][0][1] == apart[0][1][0] or apart[0][1][1] == apart[0][0][0]
                ):
                    continue
                rows = cells[i][1] + cells[j][1]
                diversity = self.diversity(rows)
                rank = round(diversity / np.ptp(self.answers), 8)
                if diversity < self.threshold and (best is None or rank < best[0]):
                    best = rank, i, j
            if best is None:
                break
            one, other = cells[best[1]], cells[best[2]]
            union = (
                [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(one[0], other[0], strict=True)],
                one[1] + other[1],
            )
            cells = [c for k, c in enumerate(cells) if k not in best[1:]] + [union]
        return [
            (
                [
                    (a + p * (b - a) / k, b if q == k else a + q * (b - a) / k)
                    for (a, b), (p, q), k in zip(intervals, index, slices, strict=True)
                ],
                rows,
            )
            for index, rows in cells
        ]


@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 70),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.lists(st.integers(1, 3), min_size=3, max_size=3),
    st.integers(1, 2),
    st.sampled_from([0.0, 0.02, 0.1, 0.3]),
)
def test_gridrex_equals_plain_loops(seed, n_rows, slices, others, depth, threshold):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n_rows, len(slices))) * 10.0 ** random.integers(-3, 3, len(slices))
    z = np.abs(X[:, 0] / np.ptp(X[:, 0]) - 0.4) + random.normal(size=n_rows) * 0.1
    levels = [slices, others[: len(slices)]][:depth]
    ranks = (np.arange(len(slices)) + 1) / 10
    extractor = whole_grid(
        answering(z),
        threshold=threshold,
        importances=ranks,  # so that each feature has slices of its own
        level_strategies=[{"n_slices": k, "importance_threshold": ranks} for k in levels],
    ).fit(X)
    slow = SlowGridREx(X, z, threshold).extract(levels)
    assert extractor.n_rules_ == len(slow)
    rows_of = extractor.rules_.assign(X)
    ours = {tuple(np.flatnonzero(rows_of == i)): i for i in range(len(slow))}
    fits = SlowGridREx(X, z, threshold)
    for intervals, rows in slow:
        i = ours[tuple(sorted(rows))]
        rule = extractor.rules_[i]
        low, high = np.array(intervals).T
        table = extractor.rules_.boxes
        inner = np.isfinite(table.lower[i])
        np.testing.assert_allclose(table.lower[i][inner], low[inner], rtol=1e-9)
        inner = np.isfinite(table.upper[i])
        np.testing.assert_allclose(table.upper[i][inner], high[inner], rtol=1e-9)
        intercept, slopes = plane_of(rule.output, X.shape[1])
        expected = fits.plane(rows)
        scale = np.ptp(z) / np.ptp(X, axis=0)
        np.testing.assert_allclose(slopes / scale, expected[1] / scale, rtol=1e-6, atol=1e-9)
        assert intercept == pytest.approx(expected[0], rel=1e-9, abs=1e-8)
        assert extractor.residuals_[i] == pytest.approx(fits.diversity(rows), abs=1e-9)
        assert rule.statistics.n_rows == len(rows)
        assert rule.statistics.mean == pytest.approx(z[rows].mean(), abs=1e-12)
        assert rule.statistics.standard_deviation == pytest.approx(z[rows].std(), abs=1e-9)


# --- planes ---


def test_plane_gives_one_rule_in_units_of_user():
    random = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"metres": random.uniform(1e6, 2e6, 300), "share": random.uniform(0, 1e-3, 300)}
    )
    extractor = whole_grid(
        CallableRegressor(lambda r: 5 + 2e-6 * r["metres"] - 4000 * r["share"]), depth=3
    ).fit(rows)
    assert extractor.n_rules_ == 1
    assert str(extractor.rules_[0]).startswith("ALWAYS 5 + 0.000002·metres - 4000·share")
    assert extractor.score(rows, 5 + 2e-6 * rows["metres"] - 4000 * rows["share"]) > 1 - 1e-12
    assert extractor.dropped_coefficients_ == 0
    assert extractor.fidelity_loss_ == 0.0


def test_kink_gives_two_rules():
    X = np.linspace(0, 1, 401)[:, None]
    extractor = whole_grid(answering(np.abs(X[:, 0] - 0.5)), n_slices=2, depth=3).fit(X)
    assert extractor.n_rules_ == 2
    slopes = sorted(plane_of(rule.output, 1)[1][0] for rule in extractor.rules_)
    assert slopes == pytest.approx([-1, 1], abs=1e-2)


def test_predictions_equal_linear_equations():
    X, y = make_friedman1(400, 6, random_state=0)
    extractor = whole_grid(DecisionTreeRegressor(max_depth=5), n_slices=2, depth=1).fit(X, y)
    fresh = np.random.default_rng(0).uniform(-0.5, 1.5, size=(500, 6))
    index = extractor.rules_.assign(fresh)
    assert extractor.n_rules_ > 3
    for row, i, answer in zip(fresh, index, extractor.predict(fresh), strict=True):
        if i >= 0:
            intercept, slopes = plane_of(extractor.rules_[i].output, 6)
            assert answer == pytest.approx(intercept + slopes @ row, rel=1e-12)
        else:
            assert answer == extractor.rules_.fallback.output


def test_level_planes_are_plain_numbers():
    X = np.linspace(0, 1, 100)[:, None]
    step = np.where(X[:, 0] < 0.5, 3.0, 8.0)
    rules = whole_grid(answering(step), depth=1).fit(X).rules_
    assert [rule.output for rule in rules] == [3.0, 8.0]
    same = whole_grid(answering(np.full(100, 7.0))).fit(X)
    assert [rule.output for rule in same.rules_] == [7.0]
    assert 0 < same.threshold_ < 1e-300


def test_default_threshold_follows_target():
    random = np.random.default_rng(0)
    X = random.uniform(size=(500, 2))
    z = np.sin(6 * X[:, 0]) + X[:, 1]
    design = np.column_stack([np.ones(500), X])
    residual = np.abs(z - design @ np.linalg.lstsq(design, z, rcond=None)[0]).mean()
    one = whole_grid(answering(z)).fit(X)
    assert one.threshold_ == pytest.approx(residual / 2)
    other = whole_grid(answering(1000 * z)).fit(X)
    assert other.threshold_ == pytest.approx(500 * residual)
    assert [r.conditions for r in one.rules_] == [r.conditions for r in other.rules_]
    plane = whole_grid(answering(2 * X[:, 0])).fit(X)
    assert plane.threshold_ == pytest.approx(0.01 * np.std(2 * X[:, 0]))


def test_distant_and_tiny_features_are_well_conditioned():
    random = np.random.default_rng(0)
    unit = random.uniform(size=(400, 3))
    z = np.abs(unit[:, 0] - 0.5) + 0.3 * unit[:, 1] - unit[:, 2]
    z += 0.01 * np.sin(20 * unit[:, 1])
    plain = whole_grid(answering(z), depth=1, threshold=0.02).fit(unit)
    assert plain.n_rules_ == 2
    for scale, offset in [(1e-9, 0), (1e9, -1e9), (1e-3, 1e3), (1e200, 0), (1e-200, 0)]:
        X = unit * scale + offset
        moved = whole_grid(answering(z), depth=1, threshold=0.02).fit(X)
        assert [r.statistics.n_rows for r in moved.rules_] == [
            r.statistics.n_rows for r in plain.rules_
        ]
        np.testing.assert_allclose(moved.residuals_, plain.residuals_, rtol=0, atol=1e-9)
        np.testing.assert_allclose(moved.predict(X), plain.predict(unit), atol=1e-8)


@pytest.mark.filterwarnings("ignore:The black box predicts")
def test_features_without_measurable_range_have_no_slope():
    X = np.array([[0.0, 5e-324], [0.0, 0.0], [1.0, 1e-310], [2.0, 0.0], [3.0, 5e-324]] * 3)
    extractor = whole_grid(answering(X[:, 0]), n_slices=1, depth=1).fit(X)
    intercept, slopes = plane_of(extractor.rules_[0].output, 2)
    assert slopes[1] == 0
    assert intercept + slopes[0] * 1.2 == pytest.approx(1.2)


# --- dropped coefficients ---


def test_small_coefficients_are_dropped_and_their_loss_measured():
    random = np.random.default_rng(0)
    X = random.uniform(size=(1000, 3)) * [10, 1, 1]
    z = np.where(X[:, 0] < 5, 3 * X[:, 0] + 2 * X[:, 1], 40 - X[:, 0] + 0.1 * X[:, 2])
    z = z + 0.05 * X[:, 1] * X[:, 2]
    fitted = whole_grid(answering(z), importances=[1, 0, 0], importance_threshold=0.5).fit(X)
    assert (fitted.dropped_coefficients_, fitted.fidelity_loss_) == (0, 0.0)
    assert all(len(rule.output.terms) == 3 for rule in fitted.rules_)
    # Effects across a box are those along its side, not along the whole range.
    tolerance = 0.02
    some = clone(fitted).set_params(coefficient_tolerance=tolerance).fit(X)
    table, span = some.rules_.boxes, np.ptp(z)
    assert [r.conditions for r in some.rules_] == [r.conditions for r in fitted.rules_]
    n_dropped = 0
    rows_of = some.rules_.assign(X)
    for i, (full, rule) in enumerate(zip(fitted.rules_, some.rules_, strict=True)):
        low, high = np.maximum(table.lower[i], X.min(axis=0)), table.upper[i]
        side = np.minimum(high, X.max(axis=0)) - low
        slopes = plane_of(full.output, 3)[1]
        is_kept = np.abs(slopes) * side >= tolerance * span
        n_dropped += int(np.sum(~is_kept))
        inside = rows_of == i
        design = np.column_stack([np.ones(inside.sum()), X[inside][:, is_kept]])
        expected = np.linalg.lstsq(design, z[inside], rcond=None)[0]
        intercept, result = plane_of(rule.output, 3)
        assert intercept == pytest.approx(expected[0])
        np.testing.assert_allclose(result[is_kept], expected[1:], rtol=1e-8)
        assert not result[~is_kept].any()
        residual = np.abs(z[inside] - design @ expected).mean()
        assert some.residuals_[i] == pytest.approx(residual)
    assert some.dropped_coefficients_ == n_dropped > 0
    loss = r2_score(z, fitted.predict(X)) - r2_score(z, some.predict(X))
    assert some.fidelity_loss_ == pytest.approx(loss)
    assert 0 < loss < 0.01
    constants = clone(fitted).set_params(coefficient_tolerance=9.0).fit(X)
    assert [rule.output for rule in constants.rules_] == pytest.approx(
        [rule.statistics.mean for rule in constants.rules_]
    )


# --- invalid input ---


@pytest.mark.parametrize(
    ("value", "wrong"), [(-0.1, ValueError), (np.nan, ValueError), ("0", TypeError)]
)
def test_coefficient_tolerance_rejects_invalid_values(value, wrong):
    X = np.arange(10.0)[:, None]
    with pytest.raises(wrong, match="coefficient_tolerance"):
        whole_grid(answering(X[:, 0]), coefficient_tolerance=value).fit(X)


@pytest.mark.parametrize(
    "model", [LogisticRegression(), CallableClassifier(lambda r: ["a"] * len(r))]
)
def test_gridrex_rejects_classification(model):
    with pytest.raises(ValueError, match="GridRExExtractor extracts rules for regression only"):
        whole_grid(model).fit([[0.0], [1.0]], ["a", "b"])


# --- faults of the reference platform (numbers as in the specification) ---------------------


class Asked:
    def __init__(self, answer):
        self.answer, self.points = answer, []

    def __call__(self, rows):
        self.points.append(np.asarray(rows))
        return self.answer(rows)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_fit_queries_once_per_level(depth):
    X = np.random.default_rng(0).uniform(size=(200, 3))
    for min_examples, most in [(1, 1), (30, 1 + depth)]:
        function = Asked(lambda r: np.sin(5 * r[:, 0]) * r[:, 1])
        extractor = whole_grid(
            CallableRegressor(function), depth=depth, min_examples=min_examples, random_state=0
        ).fit(X)
        assert extractor.oracle_.n_calls == len(function.points) <= most
        everything = np.vstack(function.points)
        owner = extractor.rules_.assign(everything)
        answers = function.answer(everything)
        for i, rule in enumerate(extractor.rules_):
            inside = owner == i
            assert inside.sum() >= min_examples
            # The plane is that of rows and points together.
            intercept, slopes = plane_of(rule.output, 3)
            residual = np.abs(answers - intercept - everything @ slopes)[inside].mean()
            assert extractor.residuals_[i] == pytest.approx(residual, abs=1e-9)
            assert rule.statistics.mean == pytest.approx(answers[inside].mean())
            assert rule.statistics.n_rows == np.sum(owner[:200] == i)


def test_empty_cells_are_not_created():
    X = np.random.default_rng(0).uniform(size=(60, 40))  # 2**40 possible cells
    extractor = whole_grid(answering(X[:, 0]), depth=1, threshold=0).fit(X)
    assert extractor.n_rules_ == 60
    np.testing.assert_allclose(extractor.predict(X), X[:, 0])


def test_ignored_features_can_return():
    X = np.random.default_rng(0).uniform(size=(500, 2))
    z = np.abs(X[:, 0] - 0.5) + np.abs(X[:, 1] - 0.5)
    extractor = whole_grid(
        answering(z),
        importances=[1.0, 0.5],
        level_strategies=[
            {"n_slices": 2, "importance_threshold": 0.9},
            {"n_slices": [2, 1], "importance_threshold": [0.4, 0.9]},
        ],
        threshold=0.01,
    ).fit(X)
    assert {c.feature for rule in extractor.rules_ for c in rule.conditions} == {0, 1}
    assert (extractor.rules_.match(X).sum(axis=1) == 1).all()
    assert extractor.n_rules_ == 4
    # The edges are slightly off the middle, where the kinks are.
    assert extractor.score(X, z) > 0.995
    assert clone(extractor).fit(X).rules_ == extractor.fit(X).rules_


def test_second_fit_gives_same_rules():
    X = np.random.default_rng(0).uniform(size=(100, 2))
    extractor = whole_grid(answering(X[:, 0] ** 2), depth=1).fit(X)
    first = extractor.rules_
    assert extractor.fit(X).rules_ == first


def test_tiny_ranges_are_not_constant():
    X = np.linspace(0, 1e-7, 101)[:, None]
    extractor = whole_grid(answering(np.abs(X[:, 0] - 5e-8)), depth=1).fit(X)
    assert extractor.n_rules_ == 2
    slopes = sorted(plane_of(rule.output, 1)[1][0] for rule in extractor.rules_)
    assert slopes == pytest.approx([-1, 1], abs=0.05)


def test_joined_boxes_touch_neighbors(psyke_rounding):
    # Edges at multiples of 1/18: rounded to six decimals, most of them are not matched.
    random = np.random.default_rng(0)
    X = random.uniform(size=(900, 2)) / 3
    z = np.abs(X[:, 0] - 0.2) + np.where(X[:, 1] > 0.2, X[:, 1], 0) + random.normal(size=900) * 0.01
    extractor = whole_grid(answering(z), n_slices=6, depth=1, threshold=0.05)
    assert extractor.fit(X).n_rules_ == 4
    with psyke_rounding():
        assert extractor.fit(X).n_rules_ == 12


def test_small_cells_keep_residuals_above_zero():
    # Each cell has two rows: a line through them has no residual, and all would be final.
    random = np.random.default_rng(0)
    X = np.concatenate([np.array([i + 0.3, i + 0.7]) for i in range(10)])[:, None]
    z = random.normal(size=20)
    X, z = np.append(X, [[0.0], [10.0]], axis=0), np.append(z, [0.0, 0.0])
    extractor = whole_grid(answering(z), n_slices=10, depth=1, threshold=0).fit(X)
    assert extractor.n_rules_ == 10
    assert (extractor.residuals_ > 0.1 * extractor.rules_.conclusions.standard_deviation).all()


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([0.02, 0.1, None]))
def test_rules_do_not_depend_on_row_order_or_batches(seed, n_slices, threshold):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(80, 3))
    function = CallableRegressor(lambda r: np.abs(r[:, 0] - 0.4) + r[:, 1] * r[:, 2])
    extractor = whole_grid(
        function, n_slices=n_slices, threshold=threshold, min_examples=5, random_state=0
    )
    one = clone(extractor).fit(X)
    other = clone(extractor).set_params(batch_size=7).fit(X[random.permutation(80)])
    np.testing.assert_array_equal(one.rules_.boxes.lower, other.rules_.boxes.lower)
    np.testing.assert_array_equal(one.rules_.boxes.upper, other.rules_.boxes.upper)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-9)
