"""Rules from sums of rows equal those of rows in memory for every storage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.dataset
import pytest
from loaded_files import load_file
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import (
    BaseExtractor,
    CARTExtractor,
    GridExExtractor,
    GridRExExtractor,
    OptimalListExtractor,
    OptimalTreeExtractor,
)
from skescore.metrics import confusion
from skescore.optimal import Cuts, SearchSpace, SolverLimits, optimal_trees
from skescore.rules import Interval, LinearOutput, RuleSet, RuleStatistics
from skescore.rules.exporters import readable_outputs
from skescore.sources import (
    DataSource,
    SourceError,
    count_source,
    extract_source,
    sample_source,
    score_source,
)

SOURCES = load_file("sources/test_score_source.py").SOURCES
FEATURES = ["size", "age", "whole", "color"]


def table_of(task: str, n_rows: int = 400, seed: int = 0, *, gaps: bool = True) -> pd.DataFrame:
    """Return numbers of several kinds, a category, missing values, weights and labels."""
    rng = np.random.default_rng(seed)
    size, age = rng.normal(size=n_rows), rng.gamma(2.0, 1e3, n_rows)
    integers = rng.integers(0, 12, n_rows).astype(float)
    color: Any = rng.choice(["red", "blue", "green", "gray"], n_rows)
    score = size + (color == "blue") - (age > 2000) * (integers > 5) + rng.normal(0, 0.4, n_rows)
    if task == "classification":
        label: Any = np.array(["low", "middle", "top"])[np.digitize(score, [-0.5, 0.7])]
    else:  # in eighths, so that sums in any order are exact
        label = np.round(score * 8) / 8
    color = pd.Series(color, dtype=object)
    if gaps:
        size = np.where(rng.random(n_rows) < 0.1, np.nan, size)
        color = color.mask(rng.random(n_rows) < 0.1, None)
    return pd.DataFrame(
        {
            "size": size,
            "age": age,
            "whole": integers,
            "color": color,
            "label": label,
            "weight": rng.choice([0.0, 0.5, 1.0, 3.0], n_rows),
        }
    )


def same(found: RuleSet, expected: RuleSet) -> None:
    """Fail unless two rule sets are exactly equal."""
    assert found.replace(reference=expected.reference).to_json() == expected.to_json()


TASKS = pytest.mark.parametrize("task", ["classification", "regression"])


#: Storages whose results are the reference for others.
_ALIKE = ("glob", "file", "arrow dataset", "function")
#: One storage of each kind with numbers as labels, all storages with classes.
BOTH = [
    pytest.param(name, "classification", marks=[pytest.mark.slow] * (name in _ALIKE))
    for name in SOURCES
] + [(name, "regression") for name in ("folder", "sqlite", "arrow table", "list of frames")]


@pytest.mark.parametrize(("name", "task"), BOTH)
def test_extract_source_rules_are_equal_for_all_sources(
    name: str, task: str, tmp_path: Path
) -> None:
    frame = table_of(task)
    extractor = CARTExtractor(None, max_leaf_nodes=7, max_depth=None, min_samples_leaf=5)
    options: dict[str, Any] = {"cuts": 12, "task": task, "sample_weight": "weight"}
    expected = extract_source(extractor, frame, "label", **options)
    source = SOURCES[name](frame, tmp_path)
    data = DataSource(source, "label", "weight", batch_size=180)
    extraction = extract_source(extractor, data, cuts=12, task=task)
    same(extraction.rules, expected.rules)
    assert extraction.cuts == expected.cuts
    assert extraction.n_rows == (frame["weight"] > 0).sum()
    assert len(extraction.rules) == 7
    # The learned statistics equal those of the rows.
    score = score_source(extraction.rules, source, "label", sample_weight="weight")
    weights = [rule.statistics.n_rows for rule in extraction.rules if rule.statistics]
    covered = confusion(extraction.rules, score.counts, assigned=True).covered
    assert covered.tolist() == weights


def in_memory(
    extractor: BaseExtractor, frame: pd.DataFrame, cuts: Mapping[str, Sequence[float]]
) -> RuleSet:
    """Return the rules of the bin numbers, expressed by the columns themselves."""
    features = [name for name in frame.columns if name not in ("label", "weight")]
    X = frame[features].copy()
    for name, thresholds in cuts.items():
        codes = np.searchsorted(thresholds, frame[name]).astype(float)
        X[name] = np.where(frame[name].isna(), np.nan, codes)
    labels = frame["label"].to_numpy()
    kind = CallableRegressor if labels.dtype.kind == "f" else CallableClassifier
    fitted = clone(extractor).set_params(estimator=kind(lambda _: labels))
    # Numbers of bins must not be rounded for readers.
    fitted.readable_bounds = False
    rules = fitted.fit(X).rules_

    def in_units(condition: Any) -> Any:
        if not isinstance(condition, Interval):
            return condition
        thresholds = cuts[features[condition.feature]]
        bins = np.flatnonzero(condition.holds(lambda _: np.arange(len(thresholds) + 1.0)))
        low = -math.inf if bins[0] == 0 else thresholds[bins[0] - 1]
        high = math.inf if bins[-1] == len(thresholds) else thresholds[bins[-1]]
        return Interval(condition.feature, low, high, missing=condition.missing)

    rules = rules.replace(
        rules=[
            replace(rule, conditions=tuple(map(in_units, rule.conditions))) for rule in rules.rules
        ]
    )
    rules = rules.without_repeated_end()
    return rules if rules.classes else readable_outputs(rules, labels)


def _without(rules: RuleSet, digits: int | None = None) -> RuleSet:
    """Return rules without domain and standard deviations, with rounded means."""

    def shown(statistics: RuleStatistics) -> RuleStatistics:
        mean = statistics.mean
        if mean is not None and digits is not None:  # those of joined boxes are rounded in memory
            mean = round(mean, digits)
        return replace(statistics, mean=mean, standard_deviation=None)

    rules_with_statistics = [
        replace(rule, statistics=shown(rule.statistics)) for rule in rules if rule.statistics
    ]
    return rules.replace(rules=rules_with_statistics, domain=None)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"max_depth": 5, "simplify": False, "min_samples_leaf": 6},
    {"max_depth": None, "min_samples_leaf": 0.05},
    {"max_leaf_nodes": 9, "max_depth": None},
    {"max_leaf_nodes": 6, "max_depth": 3, "min_samples_leaf": 7, "simplify": False},
    {"criterion": "entropy", "max_depth": None, "max_leaf_nodes": 12},
    {"n_features_to_select": 2},
]


#: Grids, over all of the features or some.
GRIDS: list[dict[str, Any]] = [
    {},
    {"max_rules": 6, "n_slices": 3, "depth": 2},
    {"n_features_to_select": 2, "max_rules": 30, "threshold": 0.02},
    {"n_slices": 5, "max_rules": 9, "n_features_to_select": None},
    {"importances": [1, 0.5, 0.2, 0.9], "n_slices": [2, 3], "importance_threshold": [0.4, 0.8]},
]


@TASKS
@pytest.mark.parametrize(
    "index", [0, 4, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2, 3))]
)
def test_grids_equal_bins_in_memory(index: int, task: str) -> None:
    gaps = index % 2 == 0 and "importances" not in GRIDS[index]
    frame = table_of(task, seed=index, gaps=gaps).drop(columns="weight")
    extractor = GridExExtractor(None, random_state=0, **GRIDS[index])
    extraction = extract_source(extractor, frame, "label", cuts=15, task=task)
    expected = in_memory(extractor, frame, extraction.cuts)
    same(*(_without(rules, 9) for rules in (extraction.rules, expected)))
    assert len(extraction.rules) > 3
    if index == 0:  # boxes that will probably be cut are counted together
        assert extraction.n_passes < len(extraction.rules) - 3


@pytest.mark.parametrize(
    "name",
    ["sqlite", *(pytest.param(n, marks=pytest.mark.slow) for n in ("folder", "arrow table"))],
)
def test_extract_source_grids_are_equal_for_all_sources(name: str, tmp_path: Path) -> None:
    frame = table_of("regression")
    options: dict[str, Any] = {"cuts": 12, "task": "regression", "sample_weight": "weight"}
    source = SOURCES[name](frame, tmp_path)
    for extractor in (GridExExtractor(None, max_rules=7), GridRExExtractor(None, max_rules=7)):
        expected = extract_source(extractor, frame, "label", **options)
        data = DataSource(source, "label", "weight", batch_size=180)
        extraction = extract_source(extractor, data, cuts=12, task="regression")
        same(extraction.rules, expected.rules)
        score = score_source(extraction.rules, source, "label", sample_weight="weight")
        weights = [rule.statistics.n_rows for rule in extraction.rules if rule.statistics]
        covered = confusion(extraction.rules, score.counts, assigned=True).covered
        assert covered.tolist() == weights


#: Grids with equations.
LINEAR_GRIDS: list[dict[str, Any]] = [
    {},
    {"max_terms": 1, "threshold": 0.6},
    {"n_slices": 4, "depth": 2, "max_terms": None, "max_rules": 7},
    {"coefficient_tolerance": 0.1},
]


@pytest.mark.parametrize("settings", LINEAR_GRIDS)
def test_linear_grids_equal_rows_in_memory(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(0, 16, (900, 3)), columns=["a", "b", "c"])
    X.loc[[0, 1]] = [[0.0] * 3, [16.0] * 3]  # so that cuts of the grid are cuts of the bins
    X["a"] += 1e6
    y = np.where(X["a"] < 1e6 + 8, 2 * X["b"] + X["c"], 20 - X["b"] + np.abs(X["c"] - 8) * 2)
    y += rng.normal(0, 0.1, len(y))
    cuts = {name: (np.arange(1.0, 16) + 1e6 * (name == "a")).tolist() for name in X}
    extractor = GridRExExtractor(None, **settings)
    extraction = extract_source(extractor, X.assign(label=y), "label", cuts=cuts)
    fitted = clone(extractor).set_params(estimator=CallableRegressor(lambda _: y)).fit(X)
    assert len(extraction.rules) == len(fitted.rules_) >= 3
    rule_index = extraction.rules.assign(X)
    assert (rule_index == fitted.rules_.assign(X)).all()
    for rule, other in zip(extraction.rules, fitted.rules_, strict=True):
        assert type(rule.output) is type(other.output)
        assert rule.statistics is not None
        assert other.statistics is not None
        assert rule.statistics.n_rows == other.statistics.n_rows
    apart = np.abs(extraction.rules.predict(X) - fitted.predict(X))
    assert apart.max() < 1e-3 * np.ptp(y)  # digits beyond the text are dropped
    learned = extraction.extractor
    assert learned.residuals_ == pytest.approx(fitted.residuals_, rel=1e-7)
    assert learned.threshold_ == pytest.approx(fitted.threshold_, rel=1e-7)
    assert learned.dropped_coefficients_ == fitted.dropped_coefficients_
    assert learned.fidelity_loss_ == pytest.approx(fitted.fidelity_loss_, abs=1e-12)
    assert (learned.dropped_coefficients_ > 0) == ("coefficient_tolerance" in settings)
    # Histograms, the sums of products, and residuals of several boxes at a time.
    assert extraction.n_passes < 3 * len(extraction.rules) + 4


def test_linear_grids_use_numbers_that_all_rows_have() -> None:
    frame = table_of("regression")
    extractor = GridRExExtractor(None, max_rules=6, max_terms=None)
    extraction = extract_source(extractor, frame, "label", cuts=8, sample_weight="weight")
    complete = ["age", "whole"]
    rows = frame[frame["weight"] > 0].reset_index(drop=True)
    rule_index = extraction.rules.assign(rows)
    assert (rule_index >= 0).all()
    errors = []
    for number, rule in enumerate(extraction.rules):
        inside = rows[rule_index == number]
        root = np.sqrt(inside["weight"].to_numpy())
        design = np.column_stack([np.ones(len(inside)), inside[complete]])
        best, *_ = np.linalg.lstsq(design * root[:, None], inside["label"] * root, rcond=None)
        predicted = extraction.rules.predict(inside[FEATURES])
        errors.append(float(np.abs(design @ best - predicted).max()))
        of_rule = np.average(np.abs(inside["label"] - design @ best), weights=inside["weight"])
        assert extraction.extractor.residuals_[number] == pytest.approx(of_rule, rel=1e-6)
        assert rule.statistics is not None
        assert rule.statistics.n_rows == inside["weight"].sum()
    assert max(errors) < 0.01  # coefficients have the digits of their text
    assert len(errors) > 3
    whole = frame.assign(weight=np.floor(frame["weight"]))
    repeated = whole.loc[whole.index.repeat(whole["weight"].astype(int))]
    options: dict[str, Any] = {"cuts": extraction.cuts}
    weighted = extract_source(extractor, whole, "label", sample_weight="weight", **options)
    second_extraction = extract_source(
        extractor, repeated.drop(columns="weight"), "label", **options
    )
    assert str(weighted.rules) == str(second_extraction.rules)


@pytest.mark.parametrize("case", ["one row", "constant label", "no numbers", "gaps alone"])
def test_linear_grids_accept_little_data(case: str) -> None:
    frame = table_of("regression", 60).drop(columns="weight")
    if case == "one row":
        frame = frame[["age", "whole", "label"]][3:4]
    elif case == "constant label":
        frame = frame.assign(label=7.25)
    elif case == "no numbers":
        frame = frame[["color", "label"]]
    else:
        frame = frame[["size", "label"]]
    extraction = extract_source(GridRExExtractor(None), frame, "label", cuts=9)
    outputs = [rule.output for rule in extraction.rules]
    assert not any(isinstance(output, LinearOutput) for output in outputs)
    if case in ("one row", "constant label"):
        assert outputs == [frame["label"].iloc[0]]
    else:  # constants, which are the means of their rows
        rule_index = extraction.rules.assign(frame)
        means = frame["label"].groupby(rule_index).mean()
        assert outputs == pytest.approx(means.tolist(), abs=0.01)
        assert len(outputs) > 1


@TASKS
@pytest.mark.parametrize("index", range(len(SETTINGS)))
def test_extract_source_equals_bins_in_memory(index: int, task: str) -> None:
    settings = SETTINGS[index]
    if task == "regression" and "criterion" in settings:
        settings = settings | {"criterion": "squared_error"}
    frame = table_of(task, seed=index, gaps=index % 2 == 0).drop(columns="weight")
    extractor = CARTExtractor(None, random_state=0, **settings)
    extraction = extract_source(extractor, frame, "label", cuts=15, task=task)
    expected = in_memory(extractor, frame, extraction.cuts)
    deviations = [
        [rule.statistics.standard_deviation for rule in rules if rule.statistics]
        for rules in (extraction.rules, expected)
    ]
    if task == "regression":  # which scikit-learn rounds on the way
        assert deviations[0] == pytest.approx(deviations[1], rel=1e-9)
    same(*(_without(rules) for rules in (extraction.rules, expected)))
    X = frame[FEATURES]
    assert (extraction.extractor.predict(X) == extraction.rules.predict(X)).all()


def test_extract_source_domain_equals_rows() -> None:
    frame = table_of("classification")
    extraction = extract_source(CARTExtractor(None), frame, "label")
    black_box = CallableClassifier(lambda _: frame["label"].to_numpy())
    fitted = CARTExtractor(black_box).fit(frame.drop(columns="label"))
    assert extraction.rules.domain == fitted.rules_.domain


def test_extract_source_reads_once_per_level() -> None:
    frame = table_of("classification", gaps=False)
    reads = []

    def batches() -> Any:
        reads.append(1)
        return iter([frame[:150], frame[150:]])

    cuts = {"size": [-0.5, 0.0, 0.5], "age": [1000, 2000], "whole": [5.5], "weight": [1]}
    extraction = extract_source(CARTExtractor(None, max_depth=3), batches, "label", cuts=cuts)
    assert extraction.n_passes == 3  # the leaves of the fourth level follow from their parents
    assert len(reads) == 3 + 2  # the names of columns, and their types
    assert extraction.cuts["age"] == (1000.0, 2000.0)


def test_extract_source_weights_equal_repeated_rows() -> None:
    frame = table_of("regression")
    frame["weight"] = np.floor(frame["weight"])
    cuts = {"size": [-1, 0, 1], "age": [500, 1000, 2000, 3000], "whole": [2.5, 5.5, 7.5]}
    options: dict[str, Any] = {"cuts": cuts, "task": "regression"}
    extractor = CARTExtractor(None, min_samples_leaf=20)
    weighted = extract_source(extractor, frame, "label", sample_weight="weight", **options)
    repeated = frame.loc[frame.index.repeat(frame["weight"].astype(int))].drop(columns="weight")
    same(weighted.rules, extract_source(extractor, repeated, "label", **options).rules)


def test_extract_source_queries_black_box_in_batches() -> None:
    frame = table_of("classification", gaps=False)[["size", "age", "label"]]
    black_box = DecisionTreeClassifier(max_depth=2).fit(frame[["size", "age"]], frame["label"])
    extractor = CARTExtractor(black_box, features=["size", "age"])
    extraction = extract_source(extractor, [frame[:200], frame[200:]])
    labeled = frame.assign(label=black_box.predict(frame[["size", "age"]]))
    same(extraction.rules, extract_source(extractor, labeled, "label").rules)


def test_labels_far_from_zero_keep_their_precision() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    label = 1e9 + np.where(x > 0.5, 3.5, 1.25) + rng.choice([-0.5, 0.5], 300)
    frame = pd.DataFrame({"x": x, "label": label})
    extraction = extract_source(
        CARTExtractor(None, max_depth=1), frame, "label", cuts={"x": [0.0, 0.5]}, task="regression"
    )
    assert [rule.conditions for rule in extraction.rules] == [(Interval(0, upper=0.5),), ()]
    moments = [rule.statistics for rule in extraction.rules]
    for statistics, rows in zip(moments, (label[x <= 0.5], label[x > 0.5]), strict=True):
        assert statistics is not None
        assert statistics.mean == math.fsum(rows) / len(rows)
        assert statistics.standard_deviation == pytest.approx(rows.std(), rel=1e-9)


@pytest.mark.parametrize("case", ["normal", "tails", "whole", "constant", "two"])
def test_cuts_are_round_and_near_quantiles(case: str) -> None:
    rng = np.random.default_rng(0)
    values = {
        "normal": rng.normal(size=3000),
        "tails": np.exp(rng.normal(0, 4, 3000)),
        "whole": rng.integers(0, 20, 3000).astype(float),
        "constant": np.full(3000, 7.0),
        "two": rng.choice([0.1, 0.7], 3000),
    }[case]
    frame = pd.DataFrame({"x": values, "label": rng.choice(["a", "b"], 3000)})
    cuts = extract_source(CARTExtractor(None), frame, "label", cuts=9).cuts["x"]
    if case in ("normal", "tails"):
        shares = np.searchsorted(np.sort(values), cuts, side="right") / len(values)
        assert np.abs(shares - np.arange(1, 10) / 10).max() < 0.03
        assert max(len(repr(cut)) for cut in cuts) <= 8
    elif case == "whole":
        assert all(cut == round(cut) for cut in cuts)
        assert len(cuts) == 9
    else:
        assert cuts == {"constant": (), "two": (0.4,)}[case]


def test_bins_separate_numbers_next_to_cuts() -> None:
    """However close or large the cuts are, a number equal to one lies below it."""
    rng = np.random.default_rng(0)
    sets: list[list[float]] = [
        [0.0],
        [0.1, 0.2, 0.30000000000000004],
        [1e-300, 1.0, 1e300],
        [1.0, float(np.nextafter(1.0, 2.0)), 2.0],
        [-5e-324, 0.0, 5e-324],
        np.sort(rng.normal(size=64)).tolist(),
        np.cumsum(rng.gamma(1, 1, 300)).tolist(),
    ]
    for cuts in sets:
        beside = [np.nextafter(cuts, way) for way in (-np.inf, np.inf)]
        values = np.concatenate([cuts, *beside, rng.normal(size=50), [np.nan]])
        bins = np.where(np.isnan(values), -1, np.searchsorted(cuts, values))
        frame = pd.DataFrame({"x": values, "label": bins.astype(float)})
        rules = extract_source(
            CARTExtractor(None, max_leaf_nodes=None),
            frame,
            "label",
            cuts={"x": cuts},
            task="regression",
        ).rules
        assert (rules.predict(frame[["x"]]) == bins).all()


def test_extract_source_accepts_polars_and_decimals() -> None:
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "label": [0.1, 0.1, 2.0, 2.0]})
    expected = extract_source(CARTExtractor(None), frame, "label", task="classification").rules
    exact = frame.assign(label=[Decimal("0.10")] * 2 + [Decimal("2.00")] * 2)
    several = polars.from_pandas(exact)
    for source in ([several[:2], several[2:]], several, exact, pa.Table.from_pandas(exact)):
        rules = extract_source(CARTExtractor(None), source, "label", task="classification").rules
        assert list(rules) == list(expected)
        counted = confusion(rules, count_source(rules, source, "label"), assigned=True)
        assert (counted.p.tolist(), counted.n.tolist()) == ([2, 2], [0, 0])
        drawn = sample_source(source, "label")
        assert drawn.strata == {0.1: (2, 2), 2: (2, 2)}
        assert drawn.frame["label"].tolist() == [0.1, 0.1, 2, 2]


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["folder", "sqlite", "arrow table", "list of frames"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sample_source_draws_class_by_class(name: str, weighted: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.array(["rare"] * 40 + ["few"] * 360 + ["many"] * 3600)
    frame = pd.DataFrame({"x": np.arange(4000.0), "label": labels, "w": 2.0})
    frame = frame.iloc[rng.permutation(4000)].reset_index(drop=True)
    source = SOURCES[name](frame.assign(color=labels), tmp_path)
    data = DataSource(source, "label", "w" if weighted else None, batch_size=700)
    sample = sample_source(data, n_rows=1000, features=["x"])
    assert sample.strata == {"few": (100, 360), "many": (900, 3600), "rare": (40, 40)}
    drawn = sample.frame
    assert list(drawn.columns) == ["x", "label", *(["w"] if weighted else [])]
    assert drawn["x"].is_unique
    assert (labels[drawn["x"].astype(int)] == drawn["label"]).all()
    assert sample.weights is not None
    assert sample.weights.sum() == pytest.approx(4000 * (2 if weighted else 1))
    # No part of the table is preferred.
    assert abs(drawn.loc[drawn["label"] == "many", "x"].mean() - 2200) < 150
    assert sample.missed(0.95)["few"] == pytest.approx(1 - 0.05**0.01)


@pytest.mark.slow
def test_source_sample_missed_bounds_unseen_groups() -> None:
    """A group as large as the bound is missed about as often as the bound states."""
    frame = pd.DataFrame({"x": np.arange(5000.0), "label": "a"})
    sample = sample_source(frame, "label", n_rows=50)
    size = int(sample.missed(0.8)["a"] * 5000)
    missed = [
        not (sample_source(frame, "label", n_rows=50, random_state=i).frame["x"] < size).any()
        for i in range(200)
    ]
    assert 0.12 < np.mean(missed) < 0.28


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("sqlite", "classification"),
        ("folder", "regression"),
        pytest.param("list of frames", "classification", marks=pytest.mark.slow),
        pytest.param("sqlite", "regression", marks=pytest.mark.slow),
    ],
)
def test_extract_source_optimal_tree_equals_memory(name: str, task: str, tmp_path: Path) -> None:
    frame = table_of(task, 300)[["size", "color", "whole", "label"]]
    extractor = OptimalTreeExtractor(None, max_leaf_nodes=4, cuts_per_feature=6)
    data = DataSource(SOURCES[name](frame, tmp_path), "label", batch_size=90)
    extraction = extract_source(extractor, data, task=task)
    cuts = Cuts(
        3,
        {0: extraction.cuts["size"], 2: extraction.cuts["whole"]},
        {1: ("blue", "green", "gray", "red")},
        (0, 1),
    )
    expected = optimal_trees(
        frame.drop(columns="label"),
        frame["label"],
        SearchSpace(4, cuts=cuts),
        loss="errors" if task == "classification" else "squared_error",
        limits=SolverLimits(max_work=2),
    )
    assert len(extraction.cuts["size"]) == 6
    assert extraction.extractor.lower_bounds_.tolist() == pytest.approx(
        expected.lower.tolist(), rel=1e-9
    )
    assert expected.status[-1] == "optimal"
    assert extraction.extractor.status_ == "optimal over all cuts between bins"
    of_memory = expected.rules[-1]
    assert of_memory is not None
    if task == "regression":
        of_memory = readable_outputs(of_memory, frame["label"].to_numpy())
    learned = _without(extraction.rules).replace(fallback=of_memory.fallback)
    same(learned, _without(of_memory))
    assert extraction.n_passes == (2 if task == "classification" else 4)


def test_extract_source_rejects_too_many_cells() -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 16)), columns=[f"x{j}" for j in range(16)])
    frame = wide.assign(label=np.where(wide["x0"] > 0, "a", "b"))
    with pytest.raises(ValueError, match=r"at most 262144 cells.* fewer cuts"):
        extract_source(OptimalTreeExtractor(None), frame, "label")
    extraction = extract_source(OptimalTreeExtractor(None, features=["x0", "x1"]), frame, "label")
    assert len(extraction.rules) >= 2


@TASKS
def test_extract_source_uses_a_sample_for_other_extractors(task: str, tmp_path: Path) -> None:
    frame = table_of(task, 3000, gaps=False).drop(columns=["color", "weight"])
    source = SOURCES["folder"](frame, tmp_path)
    kind = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    extractor = OptimalListExtractor(kind(max_depth=4), max_rules=3)
    extraction = extract_source(extractor, source, "label", sample_size=600)
    assert extraction.sample is not None
    assert len(extraction.sample.frame) == pytest.approx(600, abs=5)
    assert (extraction.n_rows, extraction.n_passes, len(extraction.rules)) == (3000, 0, 3)
    second_extraction = extract_source(extractor, source, "label", sample_size=600)
    same(extraction.rules, second_extraction.rules)
    fitted = kind(max_depth=4).fit(frame.drop(columns="label"), frame["label"])
    frozen = extract_source(
        OptimalListExtractor(fitted, max_rules=3), source, "label", sample_size=600
    )
    assert frozen.extractor.estimator_ is fitted
    assert score_source(extraction.rules, source, "label").counts.n_rows[0] == 3000


def test_extract_source_rejects_invalid_samples() -> None:
    frame = table_of("classification")
    with pytest.raises(ValueError, match=r"OptimalListExtractor needs more than sums.*estimator"):
        extract_source(OptimalListExtractor(None), frame, "label")
    with pytest.raises(TypeError, match="must be an extractor"):
        extract_source(DecisionTreeClassifier(), frame, "label")
    with pytest.raises(SourceError, match="at least one row"):
        sample_source(frame[:0], "label")
    with pytest.raises(SourceError, match="label in every row"):
        sample_source(frame.assign(label=None), "label")
    with pytest.raises(ValueError, match="n_rows must be"):
        sample_source(frame, "label", n_rows=0)


# --- errors ---------------------------------------------------------------------------------------


def test_extract_source_rejects_invalid_input() -> None:
    frame = table_of("classification")
    extract = extract_source
    plain = CARTExtractor(None)
    with pytest.raises(ValueError, match="target 'lable'"):
        extract(plain, frame, "lable")
    with pytest.raises(ValueError, match=r"feature 'colur'.*Did you mean 'color'"):
        extract(CARTExtractor(None, features=["colur"]), frame, "label")
    with pytest.raises(ValueError, match="Either target must name"):
        extract(plain, frame)
    with pytest.raises(ValueError, match="task must be given"):
        extract(plain, frame, "whole")
    with pytest.raises(ValueError, match="cuts names the column 'color'"):
        extract(plain, frame, "label", cuts={"color": [1]})
    with pytest.raises(ValueError, match="cuts must increase"):
        extract(plain, frame, "label", cuts={"size": [1, 1]})
    with pytest.raises(ValueError, match="cuts must be"):
        extract(plain, frame, "label", cuts=0)
    with pytest.raises(ValueError, match=r"for regression only, but task is 'classification'"):
        extract(GridRExExtractor(None), frame, "label", task="classification")
    with pytest.raises(ValueError, match=r"must hold numbers"):
        extract(GridRExExtractor(None), frame, "label")
    with pytest.raises(ValueError, match="predicts batches"):
        extract(CARTExtractor(DummyClassifier()), "duckdb:///x.db?table=t")
    settings: list[dict[str, Any]] = [{"max_features": 2}, {"ccp_alpha": 0.1}, {"prune": "ice"}]
    for setting in settings:
        with pytest.raises(ValueError, match=f"{next(iter(setting))}=.* needs the rows"):
            extract(CARTExtractor(None, **setting), frame, "label")
    with pytest.raises(ValueError, match=r"'age' of the DataFrame must hold finite numbers"):
        extract(plain, frame.assign(age=np.inf), "label")
    with pytest.raises(ValueError, match="must hold numbers or categories"):
        extract(plain, frame.assign(age=pd.Timestamp("2020-01-01")), "label")


@pytest.mark.parametrize("name", ["folder", "list of frames"])
def test_dates_are_rejected_as_labels(name: str, tmp_path: Path) -> None:
    frame = table_of("classification")
    frame["label"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(frame["whole"], "D")
    source = SOURCES[name](frame, tmp_path)
    for options in ({}, {"task": "classification"}):
        with pytest.raises(ValueError, match=r"must hold strings, numbers .*Convert it"):
            extract_source(CARTExtractor(None), source, "label", **options)


def test_extract_source_accepts_arrow_categories_of_pandas() -> None:
    frame = table_of("classification")
    table = pa.table(
        {
            name: pa.array(values).dictionary_encode() if name == "color" else pa.array(values)
            for name, values in frame.items()
        }
    )
    extraction = extract_source(
        CARTExtractor(None), table.to_pandas(types_mapper=pd.ArrowDtype), "label", cuts=8
    )
    same(extraction.rules, extract_source(CARTExtractor(None), frame, "label", cuts=8).rules)
    assert "color" in str(extraction.rules)


@pytest.mark.parametrize("name", ["folder", "duckdb", "sqlite", "list of frames"])
def test_missing_labels_and_invalid_weights_are_rejected(name: str, tmp_path: Path) -> None:
    frame = table_of("classification")
    cases: list[tuple[str, Any]] = [("label", None), ("weight", -1.0)]
    for index, (column, value) in enumerate(cases):
        folder = tmp_path / str(index)
        folder.mkdir()
        wrong = frame.copy()
        wrong.loc[7, "weight"] = 1.0
        wrong[column] = wrong[column].astype(object if value is None else float)
        wrong.loc[7, column] = value
        source = SOURCES[name](wrong, folder)
        with pytest.raises(SourceError, match=r"label in every row|finite and not negative"):
            extract_source(CARTExtractor(None), source, "label", sample_weight="weight")
        with pytest.raises(SourceError, match=r"label in every row|finite and not negative"):
            sample_source(source, "label", sample_weight="weight")


@pytest.mark.parametrize("weight", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["folder", "duckdb", "sqlite", "list of frames"])
def test_sample_source_rejects_infinite_and_missing_weights(
    name: str, weight: float, tmp_path: Path
) -> None:
    frame = table_of("classification")
    frame.loc[7, "weight"] = weight
    source = SOURCES[name](frame, tmp_path)
    for target, task in (("label", "classification"), ("age", "regression")):
        with pytest.raises(SourceError, match=r"not negative, but they (are missing|range)"):
            sample_source(source, target, task=task, sample_weight="weight")


def test_extract_source_detects_a_changed_table() -> None:
    frame, calls = table_of("classification"), []

    def batches() -> Any:
        calls.append(1)
        return iter([frame if len(calls) < 5 else frame[:300]])

    cuts = {name: [frame[name].median()] for name in ("size", "age", "whole", "weight")}
    with pytest.raises(SourceError, match="changed while it was read"):
        extract_source(CARTExtractor(None), batches, "label", cuts=cuts)


def test_extract_source_detects_a_deleted_file(tmp_path: Path) -> None:
    source = pa.dataset.dataset(SOURCES["folder"](table_of("classification"), tmp_path))
    (tmp_path / "part2.parquet").unlink()
    with pytest.raises(SourceError, match="no partial result was used: FileNotFoundError"):
        extract_source(CARTExtractor(None), source, "label")


def test_extract_source_and_sample_source_detect_dangling_links(tmp_path: Path) -> None:
    folder = SOURCES["folder"](table_of("classification"), tmp_path)
    (folder / "part9.parquet").symlink_to(folder / "gone.parquet")
    calls: list[Any] = [
        lambda: extract_source(CARTExtractor(None), folder, "label"),
        lambda: sample_source(folder, "label"),
    ]
    for call in calls:
        with pytest.raises(SourceError, match="no partial result was used"):
            call()


def test_extract_source_rejects_iterators() -> None:
    with pytest.raises(SourceError, match="several times"):
        extract_source(CARTExtractor(None), iter([table_of("classification")]), "label")


def test_extract_source_respects_types_of_a_database(tmp_path: Path) -> None:
    """Decimals are numbers, booleans are categories, and dates are neither."""
    with duckdb.connect(str(tmp_path / "some.db")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT CAST(i AS DECIMAL(9, 2)) / 4 AS price, i % 3 = 0 AS flag, "
            "DATE '2020-01-01' AS day, NULL AS nothing, i % 3 = 0 AND i > 50 AS label "
            "FROM range(100) AS numbers(i)"
        )
    url = f"duckdb:///{tmp_path}/some.db?table=t"
    with pytest.raises(ValueError, match=r"'day'.*must hold numbers or categories, but .* DATE"):
        extract_source(CARTExtractor(None), url, "label")
    for kind in ("[i]", "{'a': i}", "uuid()"):
        with duckdb.connect(str(tmp_path / "some.db")) as connection:
            connection.execute(
                f"CREATE OR REPLACE TABLE u AS SELECT {kind} AS other, 'a' AS label "
                "FROM range(9) AS numbers(i)"
            )
        with pytest.raises(ValueError, match=r"'other'.*must hold numbers or categories"):
            extract_source(CARTExtractor(None), f"{url[:-1]}u", "label")
    extractor = CARTExtractor(None, features=["price", "flag", "nothing"])
    rules = extract_source(extractor, url, "label").rules
    assert rules.classes == (False, True)
    assert len(rules) == 3
    assert {rules.feature_names[j] for j in rules.used_features} == {"price", "flag"}


def test_extract_source_separates_codes_that_equal_as_numbers() -> None:
    codes = pd.DataFrame({"code": ["01", "1", "2", "02"] * 2, "kind": ["a", "b", "b", "a"] * 2})
    flags = pd.DataFrame({"code": [True, False] * 2, "kind": ["a", "b"] * 2})
    for rows in (flags, codes):
        batches = [rows, pa.Table.from_pandas(rows)]
        first, second = (extract_source(CARTExtractor(None), [b], "kind").rules for b in batches)
        assert str(first) == str(second)
    assert first.predict(codes[["code"]]).tolist() == codes["kind"].tolist()


def test_large_labels_stay_distinct() -> None:
    rows = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "kind": 2**53 + np.array([0, 0, 1, 1])})
    rules = extract_source(
        CARTExtractor(None), [rows, rows], "kind", cuts=4, task="classification"
    ).rules
    assert rules.predict(rows[["x"]]).tolist() == rows["kind"].tolist()


def test_extract_source_ignores_signs_of_zeros() -> None:
    zeros = pd.DataFrame({"x": [-0.0, 0.0], "z": [1.0, 2.0], "label": ["a", "b"]})
    batches = [zeros[:1], zeros[1:]]
    results = [extract_source(CARTExtractor(None), b, "label") for b in (batches, batches[::-1])]
    assert results[0].rules.to_json() == results[1].rules.to_json()
    assert "-0.0" not in results[0].rules.to_json()


def test_extract_source_ignores_signs_of_zero_labels() -> None:
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0], "label": [-0.0, 0.0, 5.0]})
    parts = [rows[:1], rows[1:2], rows[2:]]
    found, expected = (
        extract_source(CARTExtractor(None), batches, "label", task="regression", cuts=2).rules
        for batches in (parts, parts[::-1])
    )
    assert found.to_json() == expected.to_json()
    assert "-0.0" not in found.to_json()


def test_extract_source_rejects_labels_and_categories_of_several_types() -> None:
    texts = pd.DataFrame({"x": ["a", "b"], "label": ["1", "2"]})
    flags = pd.DataFrame({"x": [True, False], "label": ["1", "2"]})
    numbers = pd.DataFrame({"x": ["a", "b"], "label": [1, 2]})
    with pytest.raises(SourceError, match="either strings or numbers, but it holds '1' and 1"):
        extract_source(CARTExtractor(None), [texts, numbers], "label", task="classification")
    with pytest.raises(ValueError, match=r"'x'.*numbers or categories, but it holds both"):
        extract_source(CARTExtractor(None), [texts, flags], "label")


def test_sample_source_reads_columns_of_lists() -> None:
    rows = pd.DataFrame({"tags": [["a"], [], ["a", "b"]], "label": ["p", "q", "p"]})
    assert sample_source(rows, "label").frame["tags"].tolist() == rows["tags"].tolist()
