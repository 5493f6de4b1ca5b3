"""Golden parity with PSyKE's GridEx and CART.

PSyKE (`tests/data/psyke_parity.json`) rounds the bounds of the domain and of joined boxes to six
decimals. With its rounding every list must be identical; without it the tables below say which
lists differ, and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from california import stand_in_for_california
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor, GridExExtractor

#: Every box is cut along all features at once, as published.
whole_tree = partial(CARTExtractor, n_features_to_select=None)
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

DATA = json.loads(
    (Path(__file__).parents[1] / "data" / "psyke_parity.json").read_text(encoding="utf-8")
)
RECORDS, SCORES_ONLY = DATA["records"], DATA["scores_only"]
GRIDEX = [record for record in RECORDS if "boxes" in record]
CART = [record for record in RECORDS if "tree" in record]


def name_of(record: dict[str, Any]) -> str:
    options = record.get("parameters", {})
    return "-".join(str(v) for v in [record["dataset"], record["seed"], *options.values()])


@cache
def black_box(dataset: str, seed: int | None) -> tuple[Any, pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return the fitted black box, rows to extract from, rows to predict, and their targets."""
    classification = {"iris": load_iris, "wine": load_wine, "wbc": load_breast_cancer}
    if dataset in classification:
        data = classification[dataset]()
        X, y = data.data, data.target_names[data.target].astype(str)
    elif dataset == "calif":
        X, y = stand_in_for_california()
    else:
        n_features = int(dataset.removeprefix("friedman"))
        X, y = make_friedman1(1000, n_features, noise=0.5, random_state=0)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    stratify = y if dataset in classification else None
    parts = (
        [frame, frame, y, y]
        if seed is None
        else train_test_split(frame, y, test_size=0.5, random_state=seed, stratify=stratify)
    )
    rows, others, y_rows, y_others = parts
    if dataset == "iris":
        model = KNeighborsClassifier(9)
    elif dataset in classification:
        model = DecisionTreeClassifier(random_state=0)
    else:
        model = RandomForestRegressor(50, random_state=0)
    return FrozenEstimator(model.fit(rows, y_rows)), rows, others, y_others


@cache
def extracted(index: int, rounding: Callable[[], Any] = nullcontext) -> GridExExtractor:
    record = GRIDEX[index]
    model, rows, *_ = black_box(record["dataset"], record["seed"])
    with rounding():
        return whole_grid(model, **record["parameters"]).fit(rows)


def domain_of(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    lower = np.round(rows.min().to_numpy() - 2e-6, 6)
    return lower, np.round(rows.max().to_numpy() + 2e-6, 6)


def published_boxes(
    record: dict[str, Any], lower: np.ndarray, upper: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, Any, float]]:
    """Return bounds, output and diversity of each box in units of the domain."""
    boxes = []
    for intervals, output, diversity in record["boxes"]:
        low, high = lower.copy(), upper.copy()
        for feature, (a, b) in intervals.items():
            low[int(feature)], high[int(feature)] = a, b
        boxes.append(
            ((low - lower) / (upper - lower), (high - lower) / (upper - lower), output, diversity)
        )
    return sorted(boxes, key=lambda box: tuple(np.round(np.concatenate(box[:2]), 4)))


def our_boxes(
    extractor: GridExExtractor, lower: np.ndarray, upper: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray, Any, float]]:
    boxes = []
    table = extractor.rules_.boxes
    for index, rule in enumerate(extractor.rules_):
        low = (np.maximum(table.lower[index], lower) - lower) / (upper - lower)
        high = (np.minimum(table.upper[index], upper) - lower) / (upper - lower)
        if rule.statistics.class_counts is not None:
            diversity = 1 - max(rule.statistics.class_counts) / sum(rule.statistics.class_counts)
        else:
            diversity = rule.statistics.standard_deviation
        boxes.append((low, high, rule.output, diversity))
    return sorted(boxes, key=lambda box: tuple(np.round(np.concatenate(box[:2]), 4)))


def same_answers(record: dict[str, Any], extractor: Any, others: pd.DataFrame) -> bool:
    """Return whether the first rows get the published predictions, and no rule without one."""
    head = others.iloc[: len(record["predictions_head"])]
    answers, covered = extractor.predict(head).tolist(), extractor.covers(head).tolist()
    return all(
        (published is None and not is_covered)
        or (published is not None and is_covered and agrees(answer, published))
        for answer, is_covered, published in zip(
            answers, covered, record["predictions_head"], strict=True
        )
    )


def agrees(answer: Any, published: Any) -> bool:
    if isinstance(published, str):
        return answer == published
    return bool(np.isclose(answer, published, rtol=1e-5, atol=0))  # 6 digits are published


def check_scores(record: dict[str, Any], extractor: Any, others: pd.DataFrame, y: Any) -> None:
    """Compare scores on all test rows."""
    model, *_ = black_box(record["dataset"], record["seed"])
    covered = extractor.covers(others)
    assert covered.mean() == pytest.approx(record["cov_inst"], abs=1e-6)
    answers, truth = extractor.predict(others)[covered], np.asarray(y)[covered]
    black = model.predict(others)[covered]
    if "fid_cov" in record:
        assert np.mean(answers == black) == pytest.approx(record["fid_cov"], abs=1e-6)
        assert np.mean(answers == truth) == pytest.approx(record["acc_cov"], abs=1e-6)
    else:
        measured = mean_absolute_error(black, answers), mean_absolute_error(truth, answers)
        published = record["fid_mae_cov"], record["mae_cov"]
        assert measured == pytest.approx(published, rel=1e-5)


def test_parity_records_are_complete():
    assert len(GRIDEX) == 31
    assert len(CART) == 11
    assert len(SCORES_ONLY) == 19


# --- GridEx, rounding as PSyKE does ---


@pytest.mark.parametrize("index", range(len(GRIDEX)), ids=[name_of(r) for r in GRIDEX])
def test_gridex_equals_psyke_with_its_rounding(index, psyke_rounding):
    record = GRIDEX[index]
    _, rows, others, y = black_box(record["dataset"], record["seed"])
    extractor = extracted(index, psyke_rounding)
    assert extractor.n_rules_ == record["n_rules"]
    domain = domain_of(rows)
    ours, published = our_boxes(extractor, *domain), published_boxes(record, *domain)
    for (low, high, output, diversity), (low0, high0, output0, diversity0) in zip(
        ours, published, strict=True
    ):
        np.testing.assert_allclose(low, low0, rtol=0, atol=1e-6)
        np.testing.assert_allclose(high, high0, rtol=0, atol=1e-6)
        assert output == (output0 if isinstance(output0, str) else pytest.approx(output0, abs=1e-6))
        assert diversity == pytest.approx(diversity0, abs=1e-6)
    assert same_answers(record, extractor, others)
    check_scores(record, extractor, others, y)
    assert extractor.completeness_ == pytest.approx(record["cov_vol"], abs=2e-5)


# --- GridEx, exact ---

#: Reasons why a list may differ without rounding.
JOINED = "a box that PSyKE has joined once has rounded bounds, so it joins no further"
ON_EDGE = "rows lie exactly on an edge, and the margin around the rows decides on their side"
TIE = "PSyKE gives equally common classes to the one met first, we to the smallest"

#: Lists that differ: number of our rules, number of test rows with other predictions, reasons.
DIFFERENT: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "iris-None-4-0.5-2-0.1-1": (7, 0, (JOINED,)),
    "iris-None-2-None-1-0.1-1": (6, 20, (ON_EDGE,)),
    "iris-1-4-0.5-2-0.1-1": (7, 9, (ON_EDGE, TIE)),
    "iris-1-2-None-1-0.1-1": (4, 11, (ON_EDGE,)),
    "iris-2-4-0.5-2-0.1-1": (8, 13, (ON_EDGE,)),
    "iris-2-2-None-1-0.1-1": (5, 16, (ON_EDGE,)),
    "wine-0-2-0.75-1-0.1-1": (3, 10, (TIE,)),
}


@pytest.mark.parametrize("index", range(len(GRIDEX)), ids=[name_of(r) for r in GRIDEX])
def test_gridex_without_rounding_differs_only_where_listed(index, psyke_rounding):
    record = GRIDEX[index]
    _, rows, others, _ = black_box(record["dataset"], record["seed"])
    extractor, rounded = extracted(index), extracted(index, psyke_rounding)
    n_rules, n_different, reasons = DIFFERENT.get(name_of(record), (record["n_rules"], 0, ()))
    assert extractor.n_rules_ == n_rules
    answers, published = extractor.predict(others), rounded.predict(others)
    if extractor.rules_.task == "classification":
        assert int(np.sum(answers != published)) == n_different
    else:
        np.testing.assert_allclose(answers, published, rtol=1e-5)
    if not n_different:
        assert same_answers(record, extractor, others)
        assert extractor.completeness_ == pytest.approx(record["cov_vol"], abs=2e-5)
    assert extractor.coverage_ == 1.0  # whatever the reason, no training row is lost
    if ON_EDGE in reasons:
        assert n_on_edge(record, rows) > 0


def n_on_edge(record: dict[str, Any], rows: pd.DataFrame) -> int:
    """Count the values that lie within rounding distance of an inner edge of the grid."""
    X = rows.to_numpy()
    parts = record["parameters"]["n_slices"] ** record["parameters"]["depth"]
    share = (X - X.min(axis=0)) / np.ptp(X, axis=0) * parts
    edge = np.round(share)
    return int(np.sum((edge > 0) & (edge < parts) & (np.abs(share - edge) < 1e-9)))


# --- CART ---


@pytest.mark.parametrize("simplify", [True, False])
@pytest.mark.parametrize("index", range(len(CART)), ids=[name_of(r) for r in CART])
def test_cart_equals_psyke(index, simplify):
    record = CART[index]
    model, rows, others, y = black_box(record["dataset"], record["seed"])
    extractor = CARTExtractor(
        model,
        max_depth=3,
        max_leaf_nodes=3,
        n_features_to_select=None,
        random_state=123,
        simplify=simplify,
    ).fit(rows)
    published, tree = record["tree"], extractor.tree_.tree_
    assert tree.feature.tolist() == published["feature"]
    assert tree.children_left.tolist() == published["left"]
    assert tree.children_right.tolist() == published["right"]
    np.testing.assert_allclose(tree.threshold, published["threshold"], rtol=1e-12)
    value = tree.value[:, 0]
    if extractor.rules_.task == "classification":
        outputs = extractor.classes_[value.argmax(axis=1)].tolist()
        assert outputs == published["output"]
    else:
        outputs = value[:, 0].tolist()
        assert outputs == pytest.approx(published["output"], abs=1e-6)
    # One rule per leaf, in the platform's order.
    assert extractor.n_rules_ == record["n_rules"]
    leaves = [o for o, left in zip(outputs, published["left"], strict=True) if left == -1]
    assert [rule.output for rule in extractor.rules_] == leaves
    assert same_answers(record, extractor, others)
    check_scores(record, extractor, others, y)
    assert extractor.completeness_ == record["cov_vol"] == 1.0


# --- records without boxes or trees ---


@pytest.mark.parametrize("record", SCORES_ONLY, ids=name_of)
def test_counts_and_scores_equal_published_values(record, psyke_rounding):
    model, rows, others, y = black_box(record["dataset"], record["seed"])
    extractor_class = {"cart": whole_tree, "gridex": whole_grid}[record["algorithm"]]
    with psyke_rounding() if record["algorithm"] == "gridex" else nullcontext():
        extractor = extractor_class(model, **record["parameters"]).fit(rows)
    assert extractor.n_rules_ == record["n_rules"]
    # PSyKE's box is wider than the rows by 2e-6, which is much for wbc's narrow features.
    assert extractor.completeness_ == pytest.approx(record["cov_vol"], abs=5e-5)
    check_scores(record, extractor, others, y)
