"""Fast matching compared with plain Python loops over rows, rules and conditions."""

from __future__ import annotations

import itertools
import math
import pickle
import sys
import threading
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_matrix, csr_array

from skescore.rules import (
    AtLeast,
    BoxTable,
    Conclusions,
    Condition,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    RowTable,
    Rule,
    RuleSet,
    RuleStatistics,
    _compiled,
)
from skescore.rules import (
    _matching as kernels,
)
from skescore.rules import (
    _row_table as row_table,
)
from skescore.rules._boxes import nearest_box
from skescore.rules._matching import lowest_bit, pack_bits, unpack_bits
from skescore.rules._rule import combine_statistics
from skescore.rules.importers._psyke import (
    Columns,
    Units,
    _complement,
    _intersection,
)
from skescore.rules.simplification import _exact as subtraction
from skescore.rules.simplification._exact import Budget, covering_boxes
from skescore.rules.simplification._merging import are_exclusive, disjunction, hull, implies
from skescore.rules.simplification._on_rows import RuleRows, Step, closest_pairs
from skescore.rules.simplification._standalone import (
    _intersect_lists,
    _intersect_premises,
    _merge_premises,
)

INF, NAN = math.inf, math.nan
LARGEST = sys.float_info.max
#: Rows lie on faces, right beside them, far away, and nowhere.
ROW_VALUES = [
    -INF,
    -LARGEST,
    -1.0,
    math.nextafter(0, -1),
    -0.0,
    0.0,
    math.nextafter(0, 1),
    math.nextafter(1, 0),
    1.0,
    math.nextafter(1, 2),
    1.5,
    2.0,
    3.0,
    LARGEST,
    INF,
    NAN,
]
FACES = [-INF, -LARGEST, -1.0, 0.0, math.nextafter(0, 1), 1.0, 2.0, LARGEST, INF]


# --- reference loops -------------------------------------------------------------------------


def between(value, c, missing=False):
    if value != value:
        return missing
    above = c.lower == -INF or (c.lower <= value if c.lower_closed else c.lower < value)
    below = c.upper == INF or (value <= c.upper if c.upper_closed else value < c.upper)
    return above and below


def holds(condition, row):
    if isinstance(condition, Interval):
        return between(row[condition.feature], condition, condition.missing)
    if isinstance(condition, Missing):
        value = row[condition.feature]
        return (value is None or value != value) != condition.negated
    if isinstance(condition, OneOf):
        value = row[condition.feature]
        if value is None or value != value:
            return condition.missing
        return (value in condition.values) != condition.negated
    if isinstance(condition, AtLeast):
        return sum(holds(c, row) for c in condition.conditions) >= condition.m
    return between(sum(k * row[f] for f, k in condition.terms), condition)


def slow_match(rules, rows):
    return [[all(holds(c, row) for c in rule.conditions) for rule in rules] for row in rows]


def slow_assign(ruleset, rows):
    answers = []
    for held in slow_match(ruleset.rules, rows):
        candidates = [i for i, yes in enumerate(held) if yes]
        if not ruleset.ordered and not ruleset.disjoint:
            best = -1
            for i in candidates:
                if best < 0 or better(ruleset, i, best):
                    best = i
            answers.append(best)
        else:
            answers.append(candidates[0] if candidates else -1)
    return answers


def better(ruleset, one, other):
    """Return whether the rule is purer, or equally pure with more rows."""

    def rank(rule):
        statistics = rule.statistics
        counts = statistics.class_counts if statistics else None
        purity = 0.0
        if counts and sum(counts) > 0:
            purity = counts[ruleset.classes.index(rule.output)] / sum(counts)
        return purity, statistics.n_rows if statistics else 0

    return rank(ruleset.rules[one]) > rank(ruleset.rules[other])


def assert_same(ruleset, X, rows=None):
    """Check that matches, coverage, assignment and predictions equal those of the loops."""
    rows = X.tolist() if rows is None else rows
    matched = slow_match(ruleset.rules, rows)
    matches = ruleset.match(X)
    assert matches.dtype == bool
    assert matches.shape == (len(rows), len(ruleset))
    assert matches.tolist() == matched
    assert ruleset.covers(X).tolist() == [any(row_matches) for row_matches in matched]
    assigned = slow_assign(ruleset, rows)
    assert ruleset.assign(X).tolist() == assigned
    fallback = ruleset.fallback.output
    expected = [ruleset.rules[i].output if i >= 0 else fallback for i in assigned]
    assert ruleset.predict(X).tolist() == expected


# --- strategies ------------------------------------------------------------------------------


@st.composite
def intervals(draw, n_features):
    feature = draw(st.integers(0, n_features - 1))
    lower, upper = sorted(draw(st.tuples(st.sampled_from(FACES), st.sampled_from(FACES))))
    if lower == upper:
        if math.isinf(lower):
            return Interval(feature)
        return Interval(feature, lower, upper, True, True, draw(st.booleans()))
    return Interval(feature, lower, upper, *(draw(st.booleans()) for _ in range(3)))


def conditions(n_features, depth=2):
    feature = st.integers(0, n_features - 1)
    values = st.sampled_from([-1.0, 0.0, 1.0, 2.0, INF]).filter(math.isfinite)
    kinds = [
        intervals(n_features),
        st.builds(Missing, feature, st.booleans()),
        st.builds(
            OneOf, feature, st.lists(values, min_size=1, max_size=3), st.booleans(), st.booleans()
        ),
        st.tuples(feature, st.sampled_from([-2.0, 0.5, 1.0]), feature, intervals(1)).map(
            lambda drawn: Linear(
                [(drawn[0], drawn[1]), (drawn[2], 4.0)],
                drawn[3].lower,
                drawn[3].upper,
                drawn[3].lower_closed,
                drawn[3].upper_closed,
            )
        ),
    ]
    if depth:
        inner = st.lists(conditions(n_features, depth - 1), min_size=1, max_size=3)
        kinds.append(
            inner.flatmap(lambda c: st.builds(AtLeast, st.integers(1, len(c)), st.just(c)))
        )
    return st.one_of(kinds)


def rules(n_features, kinds):
    def joined(parts_of_rule):
        premise, output, numbers = parts_of_rule
        consistent = []
        for condition in premise:  # skip conditions that contradict the others
            try:
                Rule([*consistent, condition], output)
            except ValueError:
                continue
            consistent.append(condition)
        return Rule(
            consistent,
            output,
            None if numbers is None else RuleStatistics(numbers[0], numbers[1:]),
        )

    counts = st.none() | st.tuples(*[st.integers(0, 3)] * 3)
    parts = st.tuples(st.lists(kinds(n_features), max_size=4), st.sampled_from("ab"), counts)
    return parts.map(joined)


@st.composite
def cases(draw, kinds, max_rules=8):
    n_features = draw(st.integers(1, 3))
    row = st.lists(st.sampled_from(ROW_VALUES), min_size=n_features, max_size=n_features)
    X = np.array(draw(st.lists(row, max_size=20)), dtype=float).reshape(-1, n_features)
    ruleset = RuleSet(
        draw(st.lists(rules(n_features, kinds), max_size=max_rules)),
        [f"x{j}" for j in range(n_features)],
        task="classification",
        classes=["a", "b"],
        ordered=draw(st.booleans()),
        disjoint=draw(st.integers(0, 3)) == 0,
        fallback=Fallback("b"),
    )
    return ruleset, X


# --- matching --------------------------------------------------------------------------------


@given(case=cases(intervals))
def test_match_agrees_with_loop_for_boxes(case):
    assert_same(*case)


@given(case=cases(conditions))
def test_match_agrees_with_loop_for_all_conditions(case):
    assert_same(*case)


@pytest.mark.slow
@given(case=cases(conditions), chunk=st.integers(1, 7))
def test_match_agrees_with_loop_in_chunks(case, chunk):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_CHUNK", chunk)
        patch.setattr(kernels, "_CHUNK_OF_THREADS", chunk)
        assert_same(*case)


@pytest.mark.parametrize("number", [float, np.float32])
@pytest.mark.parametrize("n_used", [1, 3, 4, 8])
def test_row_major_columns_that_are_copied_in_pieces_match_like_frames(n_used, number):
    rng = np.random.default_rng(n_used)
    X = rng.normal(size=(501, 8)).astype(number)
    X[rng.random(X.shape) < 0.1] = np.nan
    used = rng.permutation(8)[:n_used].tolist()
    rules = [
        Rule([Interval(j, -1, 1, missing=j % 2 == 0) for j in used[: n_used - i]], i)
        for i in range(n_used)
    ]
    names = [f"x{j}" for j in range(8)]
    ruleset = RuleSet(rules, names, task="classification", ordered=True, fallback=Fallback(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels.kernel_loader, "_kernel", None)
        patch.setattr(kernels.kernel_loader, "_is_decided", True)
        patch.setattr(row_table, "_COPIED_BYTES", 1)
        patch.setattr(row_table, "_MIN_COPIED_ROWS", 50)
        assert_same(ruleset, X)
    assert_same(ruleset, pd.DataFrame(X, columns=names), rows=X.tolist())


@contextmanager
def compiled_kernel():
    """Match rows with the kernel for numba, which runs as Python where numba is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels.kernel_loader, "_kernel", _compiled.match_boxes)
        patch.setattr(kernels.kernel_loader, "_is_decided", True)
        yield


@given(case=cases(intervals))
def test_compiled_kernel_agrees_with_loop_for_boxes(case):
    with compiled_kernel():
        assert_same(*case)


@given(case=cases(conditions), chunk=st.integers(1, 7))
def test_compiled_kernel_agrees_with_loop_in_chunks(case, chunk):
    with compiled_kernel(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_CHUNK", chunk)
        patch.setattr(kernels, "_CHUNK_OF_THREADS", chunk)
        patch.setattr(_compiled, "_ROWS", 3)
        assert_same(*case)


@pytest.mark.parametrize("number", [float, np.float32])
@pytest.mark.parametrize("n_cuts", [1, 4, 5, 8, 9, 12, 20, 127, 128, 129, 300])
def test_kernels_agree_for_any_number_of_thresholds(n_cuts, number):
    rng = np.random.default_rng(n_cuts)
    cuts = np.sort(rng.normal(size=n_cuts)).astype(number)
    edges = [-math.inf, *cuts.tolist(), math.inf]
    rules = [
        Rule([Interval(0, low, high, missing=i % 50 == 0)], i % 3)
        for i, (low, high) in enumerate(itertools.pairwise(edges))
    ]
    ruleset = RuleSet(rules, ["x"], task="classification", ordered=True, fallback=Fallback(0))
    around = [cuts, np.nextafter(cuts, number(np.inf)), np.nextafter(cuts, number(-np.inf))]
    values = np.concatenate([*around, [np.nan, -9, 9]]).astype(number)
    X = rng.permutation(values)[:, np.newaxis]
    expected = ruleset.match(X)
    assert expected.any()
    with compiled_kernel():
        np.testing.assert_array_equal(ruleset.match(X), expected)


def test_kernels_agree_without_thresholds():
    rules = [Rule([Missing(0), Interval(1, upper=0)], 0), Rule([Missing(0, negated=True)], 1)]
    ruleset = RuleSet(rules, ["x", "y"], task="classification", ordered=True, fallback=Fallback(0))
    X = np.array([[np.nan, -1], [np.nan, 1], [3, -1], [-3, np.nan]])
    expected = ruleset.match(X)
    with compiled_kernel():
        np.testing.assert_array_equal(ruleset.match(X), expected)


def row_containers(X):
    """Yield the same rows as arrays of several layouts and as tables of several dtypes."""
    names = [f"x{j}" for j in range(X.shape[1])]
    middle = len(X) // 2
    arrow = pa.table({name: X[:, j] for j, name in enumerate(names)})
    frame = pl.DataFrame({name: X[:, j].copy() for j, name in enumerate(names)})
    return {
        "column-major": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[::-1, ::2][::-1],
        "swapped": X.astype(X.dtype.newbyteorder()),
        "frame": pd.DataFrame(X, columns=names),
        "view": pd.DataFrame(X, columns=names, copy=False),
        "columns": pd.DataFrame({name: X[:, j].copy() for j, name in enumerate(names)}),
        "arrow": pa.concat_tables([arrow[:middle], arrow[:0], arrow[middle:]]),
        "batch": pa.RecordBatch.from_pydict({n: X[:, j] for j, n in enumerate(names)}),
        "polars": pl.concat([frame[:middle], frame[middle:]], rechunk=False),
    }


@pytest.mark.parametrize("number", [float, np.float32])
@pytest.mark.parametrize("n_rules", [5, 80])
@pytest.mark.parametrize("n_cuts", [3, 7, 60])
def test_kernels_agree_on_all_containers(n_rules, n_cuts, number):
    rng = np.random.default_rng(n_rules + n_cuts)
    boxes, grid = random_boxes(rng, n_rules, 3, n_cuts)
    X = rng.choice([*ROW_VALUES, *grid.ravel()], size=(75, 3))
    with np.errstate(over="ignore"):
        X = X.astype(number)
    names = [f"x{j}" for j in range(3)]
    rules = [Rule(boxes.intervals(i), i % 2) for i in range(n_rules)]
    ruleset = RuleSet(rules, names, task="classification", fallback=Fallback(0))
    expected = slow_match(ruleset.rules, X.astype(float).tolist())
    for name, rows in {"row-major": X, **row_containers(X)}.items():
        assert ruleset.match(rows).tolist() == expected, name
        with compiled_kernel():
            assert ruleset.match(rows).tolist() == expected, name


def test_kernels_read_other_numbers_and_gaps():
    """Integers, booleans, objects and gaps become floats; text may only be missing or listed."""
    columns = {
        "whole": [1, 2, 3, 4, 5],
        "flag": [True, False, True, False, True],
        "gap": [0.5, None, NAN, 2.5, INF],
        "text": ["a", None, "b", "a", "b"],
    }
    rules = [
        Rule([Interval(0, 1, 4), Interval(2, upper=2, missing=True)], "a"),
        Rule([Interval(1, 0.5), Missing(3, negated=True)], "b"),
        Rule([Missing(2)], "a"),
        Rule([OneOf(3, ["a"]), Interval(0, upper=3)], "b"),
    ]
    ruleset = RuleSet(rules, list(columns), task="classification", fallback=Fallback("b"))
    frame = pd.DataFrame(columns)
    gaps = [NAN if value is None else value for value in columns["gap"]]
    values = {**columns, "gap": gaps}
    expected = slow_match(rules, list(zip(*values.values(), strict=True)))
    expected = [[bool(value) for value in row] for row in expected]
    tables = [frame, frame.convert_dtypes(), pa.Table.from_pandas(frame), pl.DataFrame(columns)]
    for table in [*tables, frame.astype(object)]:
        assert ruleset.match(table).tolist() == expected
        with compiled_kernel():
            assert ruleset.match(table).tolist() == expected


def test_row_table_returns_views_of_columns():
    X = np.random.default_rng(0).normal(size=(6, 2))
    names = ["x0", "x1"]
    for name, rows in row_containers(X).items():
        table = RowTable(rows, names)
        values = [table.floats(1, slice(1, 3)) for _ in range(2)]
        assert (values[0] == X[1:3, 1]).all()
        assert np.shares_memory(*values) == (name not in ("strided", "swapped", "view")), name
        assert table.floats(0, slice(6, 6)).tolist() == []


def test_kernel_loader_counts_rows(monkeypatch):
    monkeypatch.setattr(kernels.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(_compiled, "IS_COMPILED", True)
    monkeypatch.setattr(kernels, "_ROWS_WITH_NUMBA", 150)
    monkeypatch.setattr(kernels, "_ROWS_WITHOUT_NUMBA", 1500)
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    loader, other = kernels.KernelLoader(), kernels.KernelLoader()
    assert [loader.load(1500), other.load(100), other.load(0)] == [None] * 3
    assert loader.load(1) is loader.load(0) is _compiled.match_boxes
    monkeypatch.setitem(sys.modules, "numba", object())  # imported already, which costs nothing
    assert other.load(50) is None
    assert other.load(1) is other.load(0) is _compiled.match_boxes


@pytest.mark.parametrize(("setting", "is_loaded"), [("0", False), ("1", True)])
def test_kernel_loader_obeys_environment(monkeypatch, setting, is_loaded):
    monkeypatch.setattr(kernels.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(_compiled, "IS_COMPILED", True)
    monkeypatch.setenv("SKESCORE_NUMBA", setting)
    assert (kernels.KernelLoader().load(10**9 * (1 - int(setting))) is not None) == is_loaded


def test_kernel_loader_returns_none_without_numba(monkeypatch):
    monkeypatch.setattr(kernels.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("SKESCORE_NUMBA", "1")
    assert kernels.KernelLoader().load(10**9) is None


#: Beside what single precision holds, and what it rounds to.
SINGLE = [
    -INF,
    -LARGEST,
    -3.5e38,
    float(np.finfo(np.float32).min),
    -1.0,
    -0.1,
    float(np.float32(-0.1)),
    -1e-46,
    -0.0,
    0.0,
    1e-46,
    1e-45,
    0.1,
    float(np.float32(0.1)),
    1.0,
    1.0 + 1e-9,
    16777217.0,
    float(np.finfo(np.float32).max),
    3.4028235e38,
    3.4028236e38,
    LARGEST,
    INF,
]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("n_cuts", [2, 200])
def test_match_compares_single_precision_exactly(closed, n_cuts):
    pairs = [(low, high) for low in SINGLE for high in SINGLE if low < high]
    rules = [
        Rule([Interval(0, low, high, closed, not closed), Interval(1, low)], i % 2)
        for i, (low, high) in enumerate(pairs[:: 1 if n_cuts > 2 else 17])
    ]
    ruleset = RuleSet(rules, ["x", "y"], task="classification", fallback=Fallback(0))
    with np.errstate(over="ignore"):
        cuts = np.array([*SINGLE, NAN], dtype=np.float32)
        beside = [np.nextafter(cuts, np.float32(way)) for way in (-INF, INF)]
    column = np.concatenate([cuts, *beside])
    X = np.column_stack([column, column[::-1]])
    assert X.dtype == np.float32
    for rows in (X, np.asfortranarray(X), pd.DataFrame(X, columns=["x", "y"])):
        assert (ruleset.match(rows) == ruleset.match(X.astype(float))).all()
        assert (ruleset.predict(rows) == ruleset.predict(X.astype(float))).all()


@given(case=cases(conditions), chunk=st.integers(1, 7), n_jobs=st.sampled_from([2, 3, -1]))
def test_predict_is_equal_with_threads(case, chunk, n_jobs):
    ruleset, X = case
    expected = ruleset.assign(X)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_CHUNK_OF_THREADS", chunk)
        patch.setattr(kernels, "_ROWS_PER_THREAD", chunk)
        assert (ruleset.assign(X, n_jobs=n_jobs) == expected).all()


def test_predict_raises_equally_with_threads(monkeypatch):
    monkeypatch.setattr(kernels, "_CHUNK_OF_THREADS", 10)
    monkeypatch.setattr(kernels, "_ROWS_PER_THREAD", 20)
    rules = [Rule([Interval(0, i, i + 1)], f"class {i % 3}") for i in range(40)]
    X = np.random.default_rng(0).uniform(-5, 45, (300, 1))
    labeled = RuleSet(rules, ["x"], task="classification", disjoint=True)
    covered = labeled.covers(X)
    expected = np.array([f"class {math.ceil(x - 1) % 3}" for x in X[:, 0]])
    for n_jobs in (None, 1, 2, 5):
        assert (labeled.predict(X[covered], n_jobs=n_jobs) == expected[covered]).all()
        with pytest.raises(ValueError, match=f"No rule holds for {(~covered).sum()} rows"):
            labeled.predict(X, n_jobs=n_jobs)
        abstaining = labeled.replace(fallback=Fallback("class 0", "abstain"))
        assert (abstaining.predict(X, n_jobs=n_jobs)[~covered] == "no rule").all()
        predictions = labeled.replace(fallback=Fallback("class 1")).predict(X, n_jobs=n_jobs)
        assert (predictions == np.where(covered, expected, "class 1")).all()
    with pytest.raises(ValueError, match="n_jobs must be"):
        labeled.predict(X, n_jobs=-2)
    with pytest.raises(ValueError, match="n_jobs must be"):
        labeled.assign(X, n_jobs=-2)


@pytest.mark.parametrize("kind", [pa.Table, pa.RecordBatch])
def test_match_skips_unused_arrow_columns(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2)).astype(np.float32)
    texts = rng.choice(["red", "blue"], 50)
    columns = {
        "x": pa.array(X[:, 0]),
        "odd": pa.array([{"a": [1, 2]}] * 50),
        "y": pa.array(X[:, 1], mask=X[:, 1] > 1),
        "color": pa.array(texts).dictionary_encode(),
    }
    rules = [
        Rule([Interval(0, upper=0.1), Interval(2, upper=0.5, missing=True)], "a"),
        Rule([OneOf(3, ["red"])], "b"),
    ]
    ruleset = RuleSet(rules, list(columns), task="classification", fallback=Fallback("b"))
    first = (X[:, 0] <= 0.1) & ((X[:, 1] <= 0.5) | (X[:, 1] > 1))
    matches = ruleset.match(kind.from_pydict(columns))
    assert (matches == np.column_stack([first, texts == "red"])).all()
    with pytest.raises(ValueError, match="lacks the feature 'color'"):
        ruleset.match(kind.from_pydict({n: c for n, c in columns.items() if n != "color"}))


@pytest.mark.parametrize("n_rules", [5, 64, 150])
def test_match_agrees_with_loop_for_joint_lookup_tables(n_rules):
    """Several features share one lookup table as long as the table is small."""
    rng = np.random.default_rng(n_rules)
    ends = np.sort(rng.integers(0, 6, (n_rules, 9, 2)), axis=2) + np.array([0, 0.5])
    rules = [
        Rule(
            [Interval(j, *pair, missing=bool((i + j) % 5 == 0)) for j, pair in enumerate(row)]
            + [Missing(9 + i % 2, negated=bool(i % 3))],
            i % 4,
        )
        for i, row in enumerate(ends.tolist())
    ]
    names = [f"x{j}" for j in range(11)]
    ruleset = RuleSet(rules, names, task="classification", fallback=Fallback(0))
    X = rng.integers(0, 13, (400, 11)) / 2
    X[rng.random(X.shape) < 0.1] = NAN
    assert_same(ruleset, X)


@given(case=cases(conditions), block=st.integers(1, 3))
def test_match_agrees_with_loop_for_blocks_of_rules(case, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_BLOCK", block)
        assert_same(*case)


@given(case=cases(intervals))
def test_bisection_agrees_with_comparisons(case):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_COMPARED_THRESHOLDS", 1)
        assert_same(*case)


def random_boxes(generator, n_rules, n_features, n_cuts):
    """Return boxes and rows on one grid, so that rows often lie on faces."""
    grid = np.linspace(-1, 1, n_cuts)
    shape = (n_rules, n_features)
    low, high = np.sort(generator.integers(0, n_cuts, (2, *shape)), axis=0)
    lower, upper = grid[low], grid[high]
    lower[generator.random(shape) < 0.3] = -INF
    upper[generator.random(shape) < 0.3] = INF
    closed = generator.random((2, *shape)) < 0.5
    closed[:, lower == upper] = True
    X = grid[generator.integers(0, n_cuts, (60, n_features))]
    X[generator.random(X.shape) < 0.05] = NAN
    X[generator.random(X.shape) < 0.05] = INF
    X[generator.random(X.shape) < 0.05] = -INF
    return BoxTable(lower, upper, *closed), X


@pytest.mark.parametrize("n_rules", [1, 63, 64, 65, 128, 129, 200])
@pytest.mark.parametrize("ordered", [True, False])
def test_match_agrees_with_loop_beyond_one_word_of_rules(n_rules, ordered):
    generator = np.random.default_rng(n_rules)
    boxes, X = random_boxes(generator, n_rules, 3, 12)
    counts = generator.integers(0, 3, (n_rules, 2))
    conclusions = Conclusions(counts.argmax(axis=1), n_rows=counts.sum(axis=1), class_counts=counts)
    ruleset = RuleSet.from_boxes(
        boxes,
        conclusions,
        ["a", "b", "c"],
        task="classification",
        classes=[10, 20],
        ordered=ordered,
        fallback=Fallback(20),
    )
    assert_same(ruleset, X)
    # With the last word alone, no rule of the first words may match.
    tail = ruleset[64:]
    assert tail.match(X).tolist() == ruleset.match(X)[:, 64:].tolist()


@pytest.mark.parametrize("n_cuts", [90, 96, 97, 98, 255, 256, 300])
def test_match_agrees_with_loop_for_many_thresholds(n_cuts):
    generator = np.random.default_rng(n_cuts)
    edges = np.arange(n_cuts, dtype=float)
    shape = (n_cuts, 1)
    upper = generator.permutation(edges)
    ruleset = RuleSet.from_boxes(
        BoxTable(np.full(shape, -INF), upper[:, None], np.zeros(shape), np.ones(shape)),
        Conclusions(upper),
        ["x"],
        task="regression",
        fallback=Fallback(-1.0),
    )
    X = np.concatenate(
        [edges, np.nextafter(edges, -INF), np.nextafter(edges, INF), [NAN, INF, -INF]]
    )
    assert_same(ruleset, X[:, None])


@pytest.mark.parametrize("n_rules", [1025, 2049])
def test_match_handles_partly_filled_blocks(n_rules):
    rules = [Rule([Interval(0, i, i + 1)], float(i)) for i in range(n_rules)]
    ruleset = RuleSet(rules, ["x"], task="regression", fallback=Fallback(-1.0))
    X = np.array([[0.5], [1023.5], [n_rules - 0.5], [n_rules + 0.5]])
    assert ruleset.predict(X).tolist() == [0, 1023, n_rules - 1, -1]
    assert ruleset.assign(X).tolist() == [0, 1023, n_rules - 1, -1]


def test_match_agrees_with_loop_for_many_non_intervals():
    generator = np.random.default_rng(0)
    premises = [[OneOf(1, [i % 3]), Interval(0, upper=i / 10)] for i in range(140)]
    premises[70] = [AtLeast(2, [Interval(0, 2), OneOf(1, [1, 2]), Linear([(0, 1), (1, 1)], 9)])]
    ruleset = RuleSet(
        [Rule(premise, i) for i, premise in enumerate(premises)],
        ["x", "color"],
        task="regression",
        fallback=Fallback(-1),
    )
    X = np.column_stack([generator.integers(0, 150, 80) / 10, generator.integers(0, 4, 80)])
    assert_same(ruleset, X)


def test_match_agrees_with_loop_without_rules_or_rows():
    empty = RuleSet([], ["x"], task="regression", fallback=Fallback(4.5))
    assert_same(empty, np.zeros((3, 1)))
    assert_same(empty, np.zeros((0, 1)))
    one = RuleSet([Rule([Interval(0, 1)], 2.0)], ["x"], task="regression", fallback=Fallback(4.5))
    assert_same(one, np.zeros((0, 1)))
    always = RuleSet([Rule([], 2.0)] * 70, ["x"], task="regression", fallback=Fallback(4.5))
    assert_same(always, np.array([[NAN], [1.0]]))


def test_match_rejects_missing_values_by_default():
    ruleset = RuleSet(
        [Rule([Interval(0, upper=1)], 0), Rule([Interval(1, lower=0)], 1), Rule([], 2)],
        ["a", "b"],
        task="regression",
    )
    X = [[NAN, 1.0], [0.0, NAN], [NAN, NAN]]
    assert ruleset.match(X).tolist() == [
        [False, True, True],
        [True, False, True],
        [False, False, True],
    ]
    assert ruleset.predict(X).tolist() == [1, 0, 2]
    # A rule without conditions on a feature ignores the bounds of other rules on it.
    assert ruleset[:2].covers(X).tolist() == [True, True, False]


@pytest.mark.parametrize(
    "colors",
    [
        np.array(["red", None, "blue", NAN], dtype=object),
        pd.Series(["red", None, "blue", pd.NA], dtype="string"),
        pd.Series(["red", None, "blue", NAN], dtype="category"),
    ],
    ids=["objects", "string", "category"],
)
def test_match_accepts_missing_values_if_declared(colors):
    ruleset = RuleSet(
        [
            Rule([Interval(0, upper=30, missing=True)], 0),
            Rule([Missing(0)], 1),
            Rule([Missing(1)], 2),
            Rule([OneOf(1, ["red"], missing=True), Missing(0, negated=True)], 3),
        ],
        ["age", "color"],
        task="regression",
    )
    ages = pd.array([20, None, 40, None], dtype="Int64")
    X = pd.DataFrame({"age": ages, "color": colors})
    expected = [
        [True, False, False, True],
        [True, True, True, False],
        [False, False, False, False],
        [True, True, True, False],
    ]
    assert ruleset.match(X).tolist() == expected
    rows = np.array([[20, "red"], [None, None], [40, "blue"], [pd.NA, pd.NA]], dtype=object)
    assert ruleset.match(rows).tolist() == expected
    assert ruleset.n_literals == 2 + 1 + 1 + 3
    assert str(ruleset).splitlines()[:4] == [
        "1. IF age ≤ 30 or missing THEN 0",
        "2. ELSE IF age is missing THEN 1",
        "3. ELSE IF color is missing THEN 2",
        "4. ELSE IF age is known AND (color = red or missing) THEN 3",
    ]


def test_match_distinguishes_infinity_from_largest_float():
    premises = [
        [Interval(0, upper=LARGEST)],
        [Interval(0, lower=LARGEST)],
        [Interval(0, upper=-LARGEST, upper_closed=False)],
        [Interval(0, lower=-LARGEST, lower_closed=True)],
    ]
    ruleset = RuleSet([Rule(p, 0) for p in premises], ["x"], task="regression")
    assert ruleset.match([[INF], [LARGEST], [-LARGEST], [-INF], [NAN]]).tolist() == [
        [False, True, False, True],
        [True, False, False, True],
        [True, False, False, True],
        [True, False, True, False],
        [False, False, False, False],
    ]


# --- assignment ------------------------------------------------------------------------------


def unordered(*conclusions):
    return RuleSet(
        [Rule([], output, statistics) for output, statistics in conclusions],
        ["x"],
        task="classification",
        classes=["a", "b"],
        ordered=False,
    )


@pytest.mark.parametrize(
    ("conclusions", "winner"),
    [
        ([("a", RuleStatistics(9, (5, 4))), ("b", RuleStatistics(2, (0, 2)))], 1),
        ([("a", RuleStatistics(2, (2, 0))), ("b", RuleStatistics(3, (0, 3)))], 1),
        ([("a", RuleStatistics(3, (3, 0))), ("b", RuleStatistics(3, (0, 3)))], 0),
        # The count of the predicted class matters, not that of the most frequent class.
        ([("a", RuleStatistics(9, (1, 8))), ("b", RuleStatistics(9, (4, 5)))], 1),
        ([("a", None), ("b", RuleStatistics(2, (1, 1)))], 1),
        ([("a", RuleStatistics(3)), ("b", RuleStatistics(5))], 1),
        ([("a", None), ("b", None)], 0),
    ],
)
def test_assign_prefers_purity_then_rows(conclusions, winner):
    assert unordered(*conclusions).assign([[0.0]]).tolist() == [winner]
    assert unordered(*conclusions).replace(ordered=True).assign([[0.0]]).tolist() == [0]
    # Disjoint rules need no comparison of statistics.
    assert unordered(*conclusions).replace(disjoint=True).assign([[0.0]]).tolist() == [0]


def test_assign_prefers_rules_with_more_rows_in_regression():
    statistics = [RuleStatistics(3), RuleStatistics(8), RuleStatistics(8)]
    ruleset = RuleSet(
        [Rule([], i, s) for i, s in enumerate(statistics)], ["x"], task="regression", ordered=False
    )
    assert ruleset.assign([[0.0]]).tolist() == [1]


# --- bits ------------------------------------------------------------------------------------


@given(data=st.data(), n_flags=st.integers(0, 200))
def test_unpack_bits_inverts_pack_bits(data, n_flags):
    n_rows = data.draw(st.integers(0, 3))
    seed = data.draw(st.integers(0, 2**32 - 1))
    flags = np.random.default_rng(seed).random((n_rows, n_flags)) < 0.1
    n_words = max(1, -(-n_flags // 64))
    words = pack_bits(flags, n_words)
    assert words.shape == (n_rows, n_words)
    assert words.dtype == np.uint64
    assert unpack_bits(words, n_flags).tolist() == flags.tolist()
    expected = [row.index(True) if any(row) else 64 * n_words for row in flags.tolist()]
    assert lowest_bit(words).tolist() == expected
    as_numbers = [sum(1 << i for i, flag in enumerate(row) if flag) for row in flags.tolist()]
    assert [sum(int(w) << 64 * i for i, w in enumerate(row)) for row in words] == as_numbers


def test_lowest_bit_of_empty_words():
    assert lowest_bit(np.zeros((2, 3), dtype=np.uint64)).tolist() == [192, 192]


@pytest.mark.parametrize("n_jobs", [None, 1])
def test_one_job_starts_no_thread(n_jobs):
    threads, rows = set(), []

    def process(part):
        threads.add(threading.get_ident())
        rows.extend(range(part.start, part.stop))

    n_rows = 2 * kernels._ROWS_PER_THREAD + 1
    kernels.run_in_chunks(process, n_rows, n_jobs)
    assert threads == {threading.get_ident()}
    assert rows == list(range(n_rows))


def test_match_skips_conditions_of_excluded_rows():
    conditions = [Interval(0, lower=1), Linear([(0, 1.0), (1, 1.0)], lower=0)]
    rules = RuleSet([Rule(conditions, 1.0)], ["a", "b"], task="regression")
    X = np.array([[0, "no number"], [2, 3.0]], dtype=object)
    assert rules.match(X).tolist() == [[False], [True]]


# --- the nearest box -------------------------------------------------------------------------


def slow_distances(boxes, row, scale):
    result = []
    for i in range(len(boxes)):
        total = 0.0
        for j, value in enumerate(row):
            if not (0 < scale[j] < INF) or value != value:
                continue
            low, high = boxes.lower[i, j], boxes.upper[i, j]
            gap = 0.0
            if value < low:
                gap = (low - value) / scale[j]
            if value > high:
                gap = (value - high) / scale[j]
            total += gap * gap
        result.append(math.sqrt(total))
    return result


@given(seed=st.integers(0, 2**32 - 1), n_rules=st.integers(1, 70), scale=st.sampled_from([0, 1, 2]))
def test_nearest_box_agrees_with_loop(seed, n_rules, scale):
    generator = np.random.default_rng(seed)
    boxes, X = random_boxes(generator, n_rules, 3, 7)
    X[:, :2] *= 3
    scales = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 0.25], [0.0, 0.0, 0.0]][scale])
    nearest = nearest_box(boxes, X, scales)
    for row, index in zip(X.tolist(), nearest.tolist(), strict=True):
        distances = slow_distances(boxes, row, scales.tolist())
        smallest = min(distances)
        assert distances[index] == pytest.approx(smallest, rel=1e-12)
        assert all(d > smallest * (1 - 1e-12) for d in distances[:index] if d != distances[index])
        if smallest in (0, INF):  # exact ties go to the first rule
            assert index == distances.index(smallest)


def test_nearest_policy_scales_by_domain_ranges():
    premises = [[Interval(0, upper=1)], [Interval(1, lower=100)], [Interval(0, 8)]]
    ruleset = RuleSet(
        [Rule(p, i) for i, p in enumerate(premises)],
        ["a", "b", "constant"],
        task="regression",
        domain=Domain((0, 0, 7), (10, 1000, 7)),
        fallback=Fallback(-1, "nearest"),
    )
    X = [[2, 50, 7], [3, 95, 0], [7.5, 0, 99], [1.5, 99, 7], [5, 150, 7]]
    # Distances of the first row: 0.1, 0.05 and 0.6; the constant does not count.
    assert ruleset.predict(X).tolist() == [1, 1, 2, 1, 1]
    assert ruleset.covers(X).tolist() == [False, False, False, False, True]
    assert ruleset.assign(X).tolist() == [-1, -1, -1, -1, 1]
    without_domain = ruleset.replace(domain=None)
    assert without_domain.predict(X).tolist() == [0, 0, 2, 0, 1]


def test_nearest_box_handles_missing_and_infinite_values():
    boxes = BoxTable(
        np.array([[0.0, 0.0], [5.0, -INF]]),
        np.array([[1.0, 1.0], [6.0, INF]]),
        np.zeros((2, 2)),
        np.ones((2, 2)),
    )
    X = np.array([[2.0, NAN], [NAN, NAN], [4.0, INF], [-INF, 0.0], [2.0, -INF]] * 3)
    assert nearest_box(boxes, X, np.ones(2)).tolist() == [0, 0, 1, 0, 1] * 3


def test_nearest_policy_penalizes_observed_values():
    ruleset = RuleSet(
        [
            Rule([Missing(0)], "gone"),
            Rule([Interval(0, 1, 2, missing=True)], "low"),
            Rule([Missing(1), Interval(0, 8)], "both"),
        ],
        ["x", "color"],
        task="classification",
        domain=Domain((0, 0), (10, 2), [(1, ["a", "b"])]),
        fallback=Fallback("low", "nearest"),
    )
    rows = [[2.5, "a"], [7.0, "a"], [7.9, "a"], [7.9, None], [13.0, "b"], [None, "b"]]
    X = np.array(rows, dtype=object)
    assert ruleset.assign(X).tolist() == [-1, -1, -1, -1, -1, 0]
    # Value 13 is one range from a missing value, and 1.1 is two ranges from 2.
    assert ruleset.predict(X).tolist() == ["low", "low", "low", "both", "gone", "gone"]


@pytest.mark.parametrize(
    ("upper", "row", "scale", "more"),
    [
        # Distances of more than the largest float, which differ.
        ([[-LARGEST], [-0.6 * LARGEST]], [0.95 * LARGEST], [1.0], None),
        # Gaps of 2 and 1 on features whose units differ: distances of 2 and 4/3.
        ([[-2e-200, INF], [INF, -1e-200]], [0.0, 0.0], [1.0, 0.75], None),
        # Further distances so large that gaps hardly add to them.
        ([[-3e152], [-1e152]], [0.0], [1.0], [[1e305, 1e305]]),
    ],
    ids=["long", "short", "more"],
)
def test_nearest_box_of_extreme_distances(upper, row, scale, more):
    flags = np.zeros(np.shape(upper))
    boxes = BoxTable(np.full(flags.shape, -INF), np.array(upper), flags, flags)
    further = None if more is None else np.array(more)
    assert nearest_box(boxes, np.array([row]), np.array(scale), further).tolist() == [1]


def test_nearest_policy_ignores_text_columns():
    ruleset = RuleSet(
        [Rule([OneOf(1, ["red"]), Interval(0, upper=1)], "a"), Rule([Interval(0, 5)], "b")],
        ["x", "color", "comment"],
        task="classification",
        fallback=Fallback("b", "nearest"),
    )
    X = [[2.0, "red", "?"], [4.0, "red", "!"], [0.0, "blue", ""]]
    assert ruleset.predict(X).tolist() == ["a", "b", "a"]


# --- combined conditions and rules ---


@given(
    st.lists(st.sampled_from("pqr"), min_size=1),
    st.booleans(),
    st.lists(st.sampled_from("pqr"), min_size=1),
    st.booleans(),
)
def test_implies_exclude_united_agree_with_enumeration(
    v: list[str], n: bool, w: list[str], m: bool
) -> None:
    one, other = OneOf(0, v, n), OneOf(0, w, m)
    values = np.array(["p", "q", "r", "unseen", None], dtype=object)
    a, b = (c.holds(lambda _: values) for c in (one, other))
    assert implies(one, other) == (not (a & ~b).any())
    assert are_exclusive([one], [other]) == (not (a & b).any())
    both = disjunction(one, other)
    if both is not None:
        assert both.holds(lambda _: values).tolist() == (a | b).tolist()
    else:
        assert (a | b).tolist() == [True, True, True, True, False]


@given(
    st.lists(st.floats(-5, 5), min_size=1, max_size=6),
    st.lists(st.floats(-5, 5), min_size=1, max_size=6),
)
def test_combined_pools_moments_of_statistics(one: list[float], other: list[float]) -> None:
    parts = [
        RuleStatistics(len(v), mean=float(np.mean(v)), standard_deviation=float(np.std(v)))
        for v in (one, other)
    ]
    both = combine_statistics(*parts)
    assert both is not None
    assert both.n_rows == len(one) + len(other)
    assert both.mean == pytest.approx(np.mean(one + other), abs=1e-9)
    assert both.standard_deviation == pytest.approx(np.std(one + other), abs=1e-7)


def test_covering_check_stops_at_its_step_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [
        Rule([Interval(0, upper=2), Interval(1, upper=2)], "b"),
        Rule([Interval(0, upper=2), Interval(1, 2)], "b"),
    ]
    ruleset = RuleSet(
        [*rules, Rule([Interval(0, upper=1)], "a")],
        ["x", "y"],
        task="classification",
        classes=["a", "b"],
        domain=Domain((0, 0), (4, 4)),
    )
    monkeypatch.setattr(subtraction, "_STEPS", 0)
    assert [rule.output for rule in ruleset.simplify().rules] == ["b", "a"]
    monkeypatch.undo()
    assert [rule.output for rule in ruleset.simplify().rules] == ["b"]


# --- units and sets of numbers, as used to read PSyKE -----------------


@given(
    mean=st.floats(-1e9, 1e9),
    scale=st.floats(1e-9, 1e9),
    ends=st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)).map(sorted),
    flags=st.tuples(st.booleans(), st.booleans()),
    free=st.sampled_from(["neither", "lower", "upper"]),
    value=st.floats(-1e6, 1e6),
)
def test_units_preserve_comparisons(mean, scale, ends, flags, free, value):
    low = -math.inf if free == "lower" else ends[0]
    high = math.inf if free == "upper" else ends[1]
    assume(low < high or all(flags))
    after = Interval(0, low, high, *flags)
    before = Units({"a": (mean, scale)}).interval("a", after)
    x = value * scale + mean
    hair = 1e-12 * max(abs(end * scale) + abs(mean) for end in (*ends, value))
    assume(all(abs(x - (end * scale + mean)) > hair for end in ends))

    def column(value: float):
        return lambda _: np.array([value])

    assert before.holds(column(x))[0] == after.holds(column((x - mean) / scale))[0]


def test_units_convert_outputs():
    units = Units.of({"a": (1.0, 2.0), "b": (0.5, 4.0), "target": (10.0, 3.0)})
    assert units.output(2.0) == 16.0
    assert units.number("a", 3.0) == 7.0
    assert units.number("unknown", 3.0) == 3.0
    output = units.linear(0.25, [("a", 2, 0.5), ("b", 0, -1.0), ("c", 1, 2.0)])
    for row in np.random.default_rng(0).normal(size=(20, 3)):
        b, c, a = row
        scaled = 0.25 + 0.5 * (a - 1.0) / 2.0 - (b - 0.5) / 4.0 + 2.0 * c
        ours = output.intercept + sum(k * row[j] for j, k in output.terms)
        assert ours == pytest.approx(scaled * 3.0 + 10.0)
    assert Units.of(None) == Units.of({}) == Units({})


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_units_reject_nonpositive_scales(scale):
    with pytest.raises(ValueError, match=f"got {scale} for 'a'"):
        Units.of({"a": (0.0, scale)})


cuts = st.tuples(st.integers(0, 5).map(float), st.integers(0, 1))
regions = st.lists(cuts, max_size=6, unique=True).map(
    lambda c: [(a, b) for a, b in zip(sorted(c)[::2], sorted(c)[1::2], strict=False)]
)


def within(region, x: float) -> bool:
    return any(start < (x, 0.5) < stop for start, stop in region)


@given(regions, regions)
def test_complement_and_intersection_agree_with_enumeration(one, other):
    for x in np.arange(-1, 7, 0.5).tolist():
        assert within(_complement(one), x) == (not within(one, x))
        assert within(_intersection(one, other), x) == (within(one, x) and within(other, x))


def test_columns_maps_names_to_positions():
    assert Columns.of(["b", "a"], None).names == ("b", "a")
    assert Columns.of(["b", "a"], ["a", "c", "b"]).index_of == {"b": 2, "a": 0}
    assert Columns.of(["b", "a"], ["x", "y"]).index_of == {"b": 0, "a": 1}


INF, NAN = math.inf, math.nan
BOX_FACES = [-INF, -1.0, 0.0, 5e-324, 1.0, np.finfo(float).max.item(), INF]
VALUES = [-INF, -1.0, math.nextafter(-1, 0), 0.0, 5e-324, 1.0, math.nextafter(1, 2), BOX_FACES[-2]]


def box_table(lower, upper, lower_closed=False, upper_closed=True):
    lower, upper = np.atleast_2d(lower), np.atleast_2d(upper)
    return BoxTable(
        lower, upper, np.full(lower.shape, lower_closed), np.full(lower.shape, upper_closed)
    )


@given(
    bounds=st.tuples(st.sampled_from(BOX_FACES[:-1]), st.sampled_from(BOX_FACES[1:])).filter(
        lambda pair: pair[0] < pair[1]
    ),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_box_table_half_open_bounds_are_exact(bounds, flags):
    boxes = box_table(*bounds, *flags)
    (start,), (stop,) = (cut[0].tolist() for cut in boxes.half_open_bounds())
    condition = Interval(0, *bounds, *flags)
    expected = condition.holds(lambda j: np.array(VALUES)).tolist()
    assert [start <= v < stop for v in VALUES] == expected


def test_box_table_round_trips_intervals():
    rules = [
        (Interval(1, 0, 1, True, False),),
        (),
        (Interval(0, upper=3), Interval(2, lower=5, lower_closed=True)),
    ]
    boxes = BoxTable.from_intervals(rules, 3)
    assert len(boxes) == 3
    assert [boxes.intervals(i) for i in range(3)] == rules
    assert boxes.bounded.tolist() == [[False, True, False], [False] * 3, [True, False, True]]
    assert [boxes.take(np.array([2, 0])).intervals(i) for i in range(2)] == [rules[2], rules[0]]
    assert boxes.take(slice(1, None)).intervals(1) == rules[2]
    assert len(BoxTable.from_intervals([], 3)) == 0


@pytest.mark.parametrize(
    ("lower", "upper", "closed", "text"),
    [
        (
            [0.0, 2.0],
            [1.0, 1.0],
            True,
            "Box 0 holds no number along feature 1: lower=2.0, upper=1.0",
        ),
        ([1.0], [1.0], False, "lower_closed=False, upper_closed=True"),
        ([NAN], [1.0], True, "lower=nan"),
        ([0.0], [NAN], True, "upper=nan"),
    ],
)
def test_box_table_rejects_empty_boxes(lower, upper, closed, text):
    with pytest.raises(ValueError, match=text):
        box_table(lower, upper, closed)


def test_box_table_clears_flags_of_unbounded_sides():
    boxes = BoxTable([[-INF, 0.0]], [[INF, 1.0]], [[0, 0]], [[0, 1]], [[True, True]])
    assert boxes.missing.tolist() == [[False, True]]
    assert not boxes.missing.flags.writeable


def test_predict_reports_uncovered_rows():
    rules = RuleSet([Rule([Interval(0, upper=1)], "a")], ["x"], task="classification")
    X = np.zeros((65_540, 1))  # more rows than one block
    X[-1] = np.nan
    with pytest.raises(ValueError, match=r"No rule holds for 1 row .*Values of 'x' are missing"):
        rules.predict(X)


def test_box_table_rejects_unequal_shapes():
    with pytest.raises(ValueError, match=r"same shape .* got \(1, 2\), \(1, 3\)"):
        BoxTable(np.zeros((1, 2)), np.ones((1, 3)), np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="same shape"):
        BoxTable(np.zeros(2), np.ones(2), np.ones(2), np.ones(2))


def test_box_table_arrays_are_read_only():
    lower = np.zeros((1, 1))
    boxes = BoxTable(lower, lower + 1, np.zeros((1, 1)), np.ones((1, 1)))
    outputs = np.array([0])
    conclusions = Conclusions(outputs, n_rows=np.array([3]), class_counts=np.array([[3, 0]]))
    lower[0, 0] = 9
    outputs[0] = 1
    for twin in (boxes, pickle.loads(pickle.dumps(boxes))):
        assert twin.lower.tolist() == [[0.0]]
        with pytest.raises(ValueError, match="read-only"):
            twin.lower[0, 0] = 0.5
        with pytest.raises(AttributeError):
            twin.lower = lower
    for twin in (conclusions, pickle.loads(pickle.dumps(conclusions))):
        assert twin.outputs.tolist() == [0]
        for array in (twin.outputs, twin.n_rows, twin.class_counts):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0


def test_conclusions_build_rules():
    boxes = box_table([[0.0], [1.0]], [[1.0], [INF]])
    labeled = Conclusions(
        np.array([1, 0]), n_rows=np.array([2, 3]), class_counts=np.array([[0, 2], [2, 1]])
    )
    assert [labeled.rule(i, boxes, ("a", "b")) for i in range(2)] == [
        Rule([Interval(0, 0, 1)], "b", RuleStatistics(2, (0, 2))),
        Rule([Interval(0, 1)], "a", RuleStatistics(3, (2, 1))),
    ]
    line = LinearOutput(1, [(0, 2)])
    numbers = Conclusions(
        np.array([0.5, NAN]),
        n_rows=np.array([2, 3]),
        mean=np.array([0.5, 2]),
        standard_deviation=np.array([0, 0.5]),
        linear={1: line},
    )
    assert [numbers.rule(i, boxes, None) for i in range(2)] == [
        Rule([Interval(0, 0, 1)], 0.5, RuleStatistics(2, mean=0.5, standard_deviation=0)),
        Rule([Interval(0, 1)], line, RuleStatistics(3, mean=2, standard_deviation=0.5)),
    ]
    assert Conclusions(np.array([1.0, 2.0])).rule(1, boxes, None) == Rule([Interval(0, 1)], 2.0)


def test_conclusions_compute_class_probabilities():
    conclusions = Conclusions(
        np.array([0, 1, 1]),
        n_rows=np.array([4, 0, 2]),
        class_counts=np.array([[3, 1, 0], [0, 0, 0], [0, 1, 1]]),
    )
    # A rule that counts no rows has probability 1 for its class.
    assert conclusions.class_probabilities(3).tolist() == [
        [0.75, 0.25, 0],
        [0, 1, 0],
        [0, 0.5, 0.5],
    ]
    assert Conclusions(np.array([1])).class_probabilities(2).tolist() == [[0, 1]]
    assert Conclusions(np.array([], dtype=int)).class_probabilities(2).shape == (0, 2)


@pytest.mark.parametrize(
    ("conclusions", "n_classes", "text"),
    [
        (Conclusions(np.array([0])), 2, r"outputs must have the shape \(2,\), got \(1,\)"),
        (Conclusions(np.array([0, 2])), 2, "outputs must be indices of the 2 classes"),
        (Conclusions(np.array([0, -1])), 2, "outputs must be indices of the 2 classes"),
        (Conclusions(np.array([0.0, 1.0])), 2, "outputs must be indices of the 2 classes"),
        (
            Conclusions(np.array([0, 1]), n_rows=np.ones(2), class_counts=np.ones((2, 3))),
            2,
            r"class_counts must have the shape \(2, 2\), got \(2, 3\)",
        ),
        (Conclusions(np.array([0, 1]), class_counts=np.ones((2, 2))), 2, "needs n_rows as well"),
        (Conclusions(np.zeros(2, int), linear={1: LinearOutput(1)}), 2, "linear has the key 1"),
        (Conclusions(np.zeros(2), linear={2: LinearOutput(1)}), None, "linear has the key 2"),
        (Conclusions(np.ones(2), mean=np.ones(2)), None, "mean needs n_rows as well"),
        (Conclusions(np.array([0, NAN])), None, "Output 1 must be a finite number, got nan"),
    ],
)
def test_conclusions_reject_wrong_shapes(conclusions, n_classes, text):
    with pytest.raises(ValueError, match=text):
        conclusions.check(2, n_classes)


def test_conclusions_accept_linear_outputs():
    Conclusions(np.array([0, NAN]), linear={1: LinearOutput(1)}).check(2, None)


NAMES = ["length", "width", "color"]
ROWS = [[1.0, 5.0, 0], [2.0, 4.0, 1], [3.0, 3.0, 2], [4.0, 2.0, 0]]
RULES = RuleSet(
    [
        Rule([Interval(0, upper=2), OneOf(2, [0])], 0),
        Rule([AtLeast(1, [Interval(1, upper=2), OneOf(2, [2])])], 1),
        Rule([Linear([(0, 1), (1, 1)], 5)], 2),
    ],
    NAMES,
    task="regression",
    fallback=Fallback(-1),
)
MATCHES = [[True, False, True], [False, False, True], [False, True, True], [False, True, True]]


def with_gaps():
    wide = np.full((8, 6), -99.0)
    wide[::2, ::2] = ROWS
    return wide[::2, ::2]


CONTAINERS = {
    "lists": ROWS,
    "tuples": tuple(map(tuple, ROWS)),
    "floats": np.array(ROWS),
    "Fortran order": np.asfortranarray(ROWS),
    "not contiguous": with_gaps(),
    "reversed": np.array(ROWS)[::-1][::-1],
    "read only": np.broadcast_to(np.array(ROWS), (4, 3)),
    "float32": np.array(ROWS, dtype=np.float32),
    "float16": np.array(ROWS, dtype=np.float16),
    "integers": np.array(ROWS, dtype=int),
    "unsigned": np.array(ROWS, dtype=np.uint8),
    "objects": np.array(ROWS, dtype=object),
    "pandas": pd.DataFrame(ROWS, columns=NAMES),
    "pandas permuted, with more": pd.DataFrame(ROWS, columns=NAMES, index=[7, 7, 1, 0]).assign(
        more="x"
    )[["color", "more", "width", "length"]],
    "pandas numbered": pd.DataFrame(ROWS),
    "pandas own types": pd.DataFrame(ROWS, columns=NAMES).convert_dtypes(),
    "pandas objects": pd.DataFrame(ROWS, columns=NAMES, dtype=object),
    "polars": pl.DataFrame(ROWS, schema=NAMES, orient="row"),
    "polars permuted, with more": pl.DataFrame(ROWS, schema=NAMES, orient="row").select(
        pl.lit("x").alias("more"), "color", "length", "width"
    ),
}


@pytest.mark.parametrize("X", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_match_is_equal_for_all_containers(X):
    assert RULES.match(X).tolist() == MATCHES
    assert RULES.assign(X).tolist() == [0, 2, 1, 1]
    assert RULES.covers(X).tolist() == [True] * 4
    assert RULES.predict(X).tolist() == [0, 2, 1, 1]


def test_match_compares_short_floats_exactly():
    rules = RuleSet([Rule([Interval(0, upper=0.1)], 1)], ["a"], task="regression")
    short = np.array([[0.1], [math.nextafter(0.1, 0)]], dtype=np.float32)
    assert float(short[0, 0]) > 0.1
    assert rules.covers(short).tolist() == [False, False]
    assert rules.covers(short.astype(float)).tolist() == [False, False]
    assert rules.covers([[0.1]]).tolist() == [True]


def test_match_reads_booleans_as_numbers():
    rules = RuleSet([Rule([Interval(0, 0.5), OneOf(1, [False])], 1)], ["a", "b"], task="regression")
    X = np.array([[True, False], [True, True], [False, False]])
    assert rules.covers(X).tolist() == [True, False, False]
    assert rules.covers(pd.DataFrame(X, columns=["a", "b"])).tolist() == [True, False, False]
    assert rules.covers(pl.DataFrame(X, schema=["a", "b"])).tolist() == [True, False, False]


COLORED = RuleSet(
    [
        Rule([OneOf(0, ["red"]), Interval(1, upper=2)], "a"),
        Rule([OneOf(0, ["red", "blue"], negated=True)], "b"),
        Rule([Interval(1, 2)], "c"),
    ],
    ["color", "size"],
    task="classification",
)
MIXED = [["red", 1.5], ["red", 2.5], ["green", 1.0], [None, 3.0], ["blue", math.nan]]
FRAME = pd.DataFrame(MIXED, columns=["color", "size"])


@pytest.mark.parametrize(
    "X",
    [
        MIXED,
        np.array(MIXED, dtype=object),
        FRAME,
        FRAME.astype({"color": "category", "size": "Float64"}),
        FRAME.astype({"color": object}),
        FRAME.astype({"color": "string"}),
        FRAME.convert_dtypes(),
        pl.DataFrame(MIXED, schema=["color", "size"], orient="row", strict=False),
        pl.DataFrame(
            MIXED, schema={"color": pl.Categorical, "size": pl.Float64}, orient="row", strict=False
        ),
        pl.DataFrame(
            [[a, None if b != b else b] for a, b in MIXED], schema=["color", "size"], orient="row"
        ),
    ],
    ids=[
        "lists",
        "objects",
        "pandas",
        "pandas categories",
        "pandas objects",
        "pandas strings",
        "pandas own types",
        "polars",
        "polars categories",
        "polars nulls",
    ],
)
def test_match_reads_object_columns_with_missing_values(X):
    assert COLORED.match(X).tolist() == [
        [True, False, False],
        [False, False, True],
        [False, True, False],
        [False, False, True],
        [False, False, False],
    ]


def test_match_keeps_numbers_in_mixed_lists():
    rules = RuleSet([Rule([OneOf(1, [1]), OneOf(0, ["1"])], 0)], ["a", "b"], task="regression")
    assert rules.covers([["1", 1], ["1", 2], ["2", 1]]).tolist() == [True, False, False]


def test_match_reads_integers_with_missing_values():
    rules = RuleSet([Rule([Interval(0, 1)], 0)], ["a"], task="regression")
    assert rules.covers(pd.DataFrame({"a": [1, 2, None]}, dtype="Int64")).tolist() == [0, 1, 0]
    assert rules.covers(pl.DataFrame({"a": [1, 2, None]})).tolist() == [0, 1, 0]


def test_row_table_rejects_invalid_rows():
    for X, text in [
        ([1.0, 2.0, 3.0], r"two-dimensional .*got shape \(3,\).*X.iloc\[\[0\]\]"),
        (np.zeros((2, 2, 3)), r"two-dimensional .*got shape \(2, 2, 3\)"),
        (pd.Series([1.0, 2.0, 3.0]), "two-dimensional"),
        (5, r"two-dimensional .*got shape \(\)"),
        (np.zeros((2, 2)), "X has 2 features, but .* 3: 'length', 'width', 'color'"),
        (np.zeros((0, 4)), "X has 4 features"),
        (pd.DataFrame(np.zeros((2, 4))), "X has 4 features"),
        (pd.DataFrame({"length": [1], "color": [1]}), "lacks the feature 'width' .* 'color'"),
        (pd.DataFrame({"Length": [1]}), "lacks the features 'length', 'width', 'color'"),
        (pl.DataFrame({"length": [1], "width": [1]}), "lacks the feature 'color' .* Add them"),
        (
            pd.DataFrame([[1, 2, 3, 4]], columns=["length", "width", "width", "color"]),
            "more than one column 'width'",
        ),
    ]:
        for method in (RULES.match, RULES.assign, RULES.covers, RULES.predict):
            with pytest.raises(ValueError, match=text):
                method(X)
    with pytest.raises(TypeError, match=r"sparse matrix of SciPy.*X.toarray\(\)"):
        RULES.predict(coo_array(np.ones(3)))


def test_missing_feature_is_not_taken_for_another_feature():
    rules = RuleSet([Rule([], "a")], ["f1", "f31"], task="classification", ordered=True)
    with pytest.raises(ValueError, match=r"'f31', 'F1'\. Did you mean 'F1' for 'f1'"):
        rules.predict(pd.DataFrame({"f31": [1], "F1": [1]}))
    with pytest.raises(ValueError, match=r"its columns are 'f31'\. Add them"):
        rules.predict(pd.DataFrame({"f31": [1]}))


def test_row_table_ignores_repeated_unused_columns():
    X = pd.DataFrame([[9, *ROWS[0], 9]], columns=["more", *NAMES, "more"])
    assert RULES.assign(X).tolist() == [0]


TWO_FEATURES = [Rule([Interval(0, upper=2)], 1), Rule([], 0)]


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["('a', 'x')", "('a', 'y')"], pd.MultiIndex.from_tuples([("a", "y"), ("a", "z")])),
        (["0", "1"], [1, 2]),
        (["a", "b"], [1, 0]),
        (["a", "b"], [0, 2]),
        (["a", "b"], [0.5, 1.5]),
        (["a", "b"], [False, True]),
        (["a", "b"], pd.to_datetime(["2024-01-01", "2024-01-02"])),
        (["a", "b"], [None, 1]),
    ],
)
def test_row_table_rejects_frames_without_the_names(names, columns):
    rules = RuleSet(TWO_FEATURES, names, task="regression")
    with pytest.raises(ValueError, match=r"X lacks the features? .* of the rules"):
        rules.predict(pd.DataFrame([[1.0, 9.0]], columns=columns))


@pytest.mark.parametrize(
    "columns",
    [None, [0, 1], pd.RangeIndex(2), np.arange(2, dtype="u1"), pd.Index([0, 1], dtype="O")],
)
def test_row_table_takes_numbered_columns_by_position(columns):
    rules = RuleSet(TWO_FEATURES, ["a", "b"], task="regression")
    assert rules.predict(pd.DataFrame([[1.0, 9.0]], columns=columns)).tolist() == [1.0]


def test_row_table_shortens_names_in_messages():
    rules = RuleSet([], [f"f{j}" for j in range(40)], task="regression")
    with pytest.raises(ValueError, match="'f11' and 28 more"):
        rules.covers(np.zeros((1, 3)))


@pytest.mark.parametrize(
    "X",
    [
        [["tall", 1.0, 0]],
        np.array([["tall", "1.0", "0"]]),
        pd.DataFrame([["tall", 1.0, 0]], columns=NAMES),
        pl.DataFrame([["tall", 1.0, 0]], schema=NAMES, orient="row"),
    ],
)
def test_match_rejects_text_for_intervals(X):
    with pytest.raises(ValueError, match="compare feature 'length' with numbers, but X holds"):
        RULES.predict(X)


TEXTS_OF_NUMBERS = {
    "objects": np.array(["1", None], dtype=object),
    "mixed": np.array([2.0, "1"], dtype=object),
    "nan": np.array(["nan"], dtype=object),
    "texts": np.array(["1", "2"]),
    "strings": np.array(["1", "2"], dtype=np.dtypes.StringDType()),
    "bytes": np.array([b"1"], dtype=object),
    "date": np.array([np.datetime64("2024-01-01"), 1.0], dtype=object),
    "duration": np.array([np.timedelta64(1, "s")], dtype=object),
    "arrow": pa.array(["1", "2"]),
    "polars": pl.Series(["1", "2"]),
    "pandas": pd.Series(["1", "2"], dtype="str"),
    "categories": pd.Series(["1", "2"], dtype="category"),
    "dictionary": pa.array(["1", "2"]).dictionary_encode(),
}


@pytest.mark.parametrize("column", TEXTS_OF_NUMBERS.values(), ids=TEXTS_OF_NUMBERS)
@pytest.mark.parametrize(
    "conditions",
    [
        [Interval(0, upper=3)],
        [Interval(0, upper=0, missing=True)],
        [Linear([(0, 1.0)], upper=3)],
        [AtLeast(1, [Interval(0, upper=3), Missing(0)])],
        [OneOf(1, ["a"]), AtLeast(1, [Interval(0, lower=3), OneOf(1, ["a"])])],
    ],
)
def test_match_never_reads_texts_as_numbers(conditions, column):
    rules = RuleSet([Rule(conditions, 1)], ["x", "y"], task="regression")
    others = ["a"] * len(column)
    if isinstance(column, pa.Array):
        frame = pa.table({"x": column, "y": others})
    elif isinstance(column, pl.Series):
        frame = pl.DataFrame({"x": column, "y": others})
    else:
        frame = pd.DataFrame({"x": column, "y": others})
    with pytest.raises(ValueError, match="Convert that column to numbers"):
        rules.match(frame)


@pytest.mark.parametrize("more", [[], [OneOf(0, ["b"])]])
def test_match_does_not_read_the_text_nan_as_missing(more):
    rules = [Rule([condition], 1) for condition in [Missing(0), Missing(0, negated=True), *more]]
    frame = pd.DataFrame({"x": np.array(["nan", None], dtype=object)})
    matches = RuleSet(rules, ["x"], task="regression").match(frame)
    assert matches[:, :2].tolist() == [[False, True], [True, False]]


def test_match_reads_all_numbers_of_objects():
    values = [1, 2.5, True, Decimal("0.5"), np.int8(3), np.float32(4), None, pd.NA, NAN, 2**70]
    rules = RuleSet([Rule([Interval(0, upper=3)], 1)], ["x"], task="regression")
    for column in (values, values[:3], values[3:4], values[6:8], [*values, 1 + 0j][:-1]):
        frame = pd.DataFrame({"x": pd.Series(column, dtype=object)})
        expected = [not pd.isna(v) and v <= 3 for v in column]
        assert rules.match(frame)[:, 0].tolist() == expected


def test_match_rejects_text_for_nested_intervals():
    rules = RuleSet([Rule([AtLeast(1, [Interval(0, 1)])], 1)], ["a"], task="regression")
    with pytest.raises(ValueError, match=r"feature 0 with numbers, .*'tall'.*Convert that column"):
        rules.covers([["tall"]])


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]", complex, "V3", "S3"])
def test_match_rejects_unknown_types(kind):
    X = np.zeros((2, 1), dtype=kind)
    for condition in (Interval(0, 1), OneOf(0, [1])):
        rules = RuleSet([Rule([condition], 1)], ["a"], task="regression")
        with pytest.raises(ValueError, match=r"Rules compare numbers and labels, but X .* 'a'"):
            rules.covers(X)


@pytest.mark.parametrize(
    "values",
    [
        [date(2020, 1, 1), None],
        [datetime(2020, 1, 1)],
        [time(1)],
        [timedelta(1)],
        [b"2020-01-01", None],
        [pd.Period("2020")],
    ],
)
def test_match_rejects_dates_and_bytes_in_sets(values):
    rules = RuleSet([Rule([OneOf(0, ["2020-01-01"])], 1)], ["x"], task="regression")
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    with pytest.raises(ValueError, match="Convert that column to numbers or strings"):
        rules.match(frame)


@pytest.mark.parametrize("negated", [False, True])
def test_row_table_evaluates_text_conditions_once(negated):
    texts = np.array(["a", "b", None, "a", np.nan, "c"], dtype=object)
    table = RowTable(pd.DataFrame({"t": texts, "n": np.arange(6.0)}), ["t", "n"])
    for condition in (OneOf(0, ["a", "d"], negated), Missing(0, negated), Interval(1, 1, 3)):
        expected = condition.holds(table.column)
        assert table.holds(condition).tolist() == expected.tolist()
        rows = np.array([5, 2, 0])
        assert table.holds(condition, rows).tolist() == expected[rows].tolist()


def test_row_table_returns_columns_and_rows():
    table = RowTable(pd.DataFrame(ROWS, columns=NAMES)[NAMES[::-1]], NAMES)
    assert len(table) == 4
    assert table.column(1)[1:3].tolist() == [4.0, 3.0]
    assert table.numbers(2, slice(0, 4)).dtype == float
    matrix = table.matrix(np.array([3, 0]), [0, 2])
    assert matrix[:, [0, 2]].tolist() == [[4.0, 0.0], [1.0, 0.0]]
    assert np.isnan(matrix[:, 1]).all()
    assert RULES.assign(table).tolist() == RULES.assign(ROWS).tolist()


@pytest.mark.parametrize("kind", ["table", "batch"])
def test_row_table_reads_arrow_by_name(kind):
    pa = pytest.importorskip("pyarrow")
    arrow_rows = (pa.table if kind == "table" else pa.RecordBatch.from_pydict)(
        {"b": [1.0, 9.0], "c": ["x", "y"], "a": [5.0, 0.0]}
    )
    rules = RuleSet(
        [Rule((Interval(0, upper=3.0),), "low"), Rule((), "high")],
        ["a", "b"],
        task="classification",
    )
    assert rules.predict(arrow_rows).tolist() == ["high", "low"]
    assert rules.predict(arrow_rows.to_pandas()).tolist() == ["high", "low"]


def test_row_table_rejects_unknown_table_types():
    class Strange:
        columns = ("b", "a")

        def __array__(self, *_, **__):
            return np.array([[1.0, 5.0], [9.0, 0.0]])

    rules = RuleSet(
        [Rule((Interval(0, upper=3.0),), "low"), Rule((), "high")],
        ["a", "b"],
        task="classification",
    )
    with pytest.raises(TypeError, match="a Strange of"):
        rules.predict(Strange())


@pytest.mark.parametrize("kind", [csr_array, csc_matrix, coo_array])
@pytest.mark.parametrize("number", [float, np.float32, np.int64])
def test_row_table_reads_sparse_rows(kind, number):
    rng = np.random.default_rng(0)
    dense = (rng.integers(-3, 4, (500, 40)) * (rng.random((500, 40)) < 0.2)).astype(number)
    rules = [
        Rule([Interval(3, upper=-0.5), Interval(39, upper=1)], "a"),
        Rule([Interval(3, lower=0, lower_closed=True)], "b"),
    ]
    ruleset = RuleSet(
        rules,
        [f"x{j}" for j in range(40)],
        task="classification",
        fallback=Fallback("c"),
    )
    rows = kind(dense)
    assert set(ruleset.predict(dense)) == {"a", "b", "c"}
    np.testing.assert_array_equal(ruleset.predict(rows), ruleset.predict(dense))
    np.testing.assert_array_equal(ruleset.assign(rows, n_jobs=2), ruleset.assign(dense))
    with pytest.raises(ValueError, match="X has 39 features"):
        ruleset.predict(kind(dense[:, 1:]))


def test_row_table_reads_masked_numbers_as_missing():
    rows = np.ma.MaskedArray([[1.0, 5.0], [9.0, 0.0]], [[False, False], [True, False]])
    rules = RuleSet([Rule((Interval(0, lower=0.0),), 1.0)], ["a", "b"], task="regression")
    assert rules.covers(rows).tolist() == [True, False]
    assert rules.covers(rows.astype(int)).tolist() == [True, False]


@pytest.mark.parametrize("kind", [str, object, np.dtypes.StringDType()])
def test_row_table_reads_masked_texts_as_missing(kind):
    rows = np.ma.MaskedArray(np.array([["a"], ["b"], ["b"]], dtype=kind), [[0], [0], [1]])
    not_a = Rule((OneOf(0, ("a",), negated=True),), "no")
    rules = RuleSet([not_a, Rule((Missing(0),), "gone")], ["c"], task="classification")
    assert rules.match(rows).tolist() == [[False, False], [True, False], [False, True]]


@pytest.mark.parametrize(
    "values",
    [
        pa.table({"a": pa.array([Decimal("0.10"), Decimal(2), None], pa.decimal128(9, 2))}),
        pl.DataFrame({"a": [Decimal("0.10"), Decimal(2), None]}),
        pd.DataFrame({"a": [Decimal("0.10"), Decimal(2), Decimal("NaN")]}),
        pl.DataFrame({"a": [0.1, 2.0, None]}),
    ],
)
def test_match_compares_exact_decimals_with_sets(values):
    rules = RuleSet(
        [Rule([OneOf(0, [0.1, 2])], 1.0), Rule([Missing(0)], 2.0)], ["a"], task="regression"
    )
    assert rules.match(values).tolist() == [[True, False], [True, False], [False, True]]


def test_row_table_reads_wide_integers_and_numpy_texts():
    wide = pl.DataFrame({"a": [2**53, 2**53 + 1, None]}, schema={"a": pl.Int128})
    texts = np.array([["x"], ["y"], [None]], dtype=np.dtypes.StringDType(na_object=None))
    for X, value in ((wide, 2**53 + 1), (texts, "y")):
        rules = [Rule([OneOf(0, [value])], 1.0), Rule([Missing(0)], 2.0)]
        matches = RuleSet(rules, ["a"], task="regression").match(X)
        assert matches.tolist() == [[False, False], [True, False], [False, True]]


def test_row_table_keeps_large_masked_integers_exact():
    rows = np.ma.MaskedArray([[2**53], [2**53 + 1], [2**53 + 1]], [[0], [0], [1]])
    rules = RuleSet([Rule((OneOf(0, (2**53 + 1,)),), 1.0)], ["a"], task="regression")
    assert rules.covers(rows).tolist() == [False, True, False]


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64, object])
def test_match_compares_large_integers_with_sets_exactly(kind):
    one = OneOf(0, (2**53 + 1,))
    column = np.array([2**53, 2**53 + 1, 2**53 + 2], dtype=kind)
    expected = [int(value) == 2**53 + 1 for value in column]
    rules = RuleSet([Rule((one,), 1.0)], ["a"], task="regression")
    assert rules.covers(column[:, None]).tolist() == expected
    further = range(-99, 99)  # many enough for the sort of NumPy
    mixed = RuleSet([Rule((OneOf(0, (2**53 + 1, 0.5, *further)),), 1.0)], ["a"], task="regression")
    assert mixed.covers(column[:, None]).tolist() == expected


def test_row_table_keeps_large_nullable_integers_exact():
    values = [2**53, 2**53 + 1, None]
    column = pd.Series(values, dtype="Int64", name="a")
    tables = {
        "nullable": column.to_frame(),
        "of Arrow": column.astype("int64[pyarrow]").to_frame(),
        "category": column.astype("category").to_frame(),
        "polars": pl.DataFrame({"a": values}),
        "Arrow": pa.table({"a": values}),
        "lists": [[2**53, 0.5], [2**53 + 1, 0.5], [None, 0.5]],
    }
    for name, X in tables.items():
        names = ["a", "b"] if name == "lists" else ["a"]
        rules = RuleSet([Rule([OneOf(0, [2**53 + 1])], 1.0)], names, task="regression")
        assert rules.covers(X).tolist() == [False, True, False], name


def test_nearest_policy_survives_overflow_of_distances():
    for scale in (1e-200, 1e160, LARGEST / 4):
        rules = [
            Rule([Interval(0, -scale, scale)], 0.0),
            Rule([Interval(0, 3 * scale, 4 * scale)], 1.0),
        ]
        nearest = RuleSet(rules, ["a"], task="regression", fallback=Fallback(9.0, "nearest"))
        assert nearest.predict([[1.5 * scale], [2.5 * scale]]).tolist() == [0.0, 1.0], scale
    domain = Domain((-LARGEST, 0.0), (LARGEST, 1.0))
    rules = [Rule([Interval(0, upper=-LARGEST / 2)], 0.0), Rule([Interval(1, lower=0.9)], 1.0)]
    nearest = RuleSet(
        rules, ["a", "b"], task="regression", domain=domain, fallback=Fallback(9.0, "nearest")
    )
    assert nearest.predict([[LARGEST, 0.8], [0.0, 0.1]]).tolist() == [1.0, 0.0]
    # The sides are 1.25 and 1.2 times the largest float away.
    rules = [Rule([Interval(0, lower=LARGEST / 4)], 0.0), Rule([Interval(1, LARGEST / 1.25)], 1.0)]
    nearest = RuleSet(
        rules,
        ["a", "b"],
        task="regression",
        fallback=Fallback(9.0, "nearest"),
        domain=Domain((-LARGEST, -LARGEST), (LARGEST, LARGEST)),
    )
    assert nearest.predict([[-LARGEST, -0.4 * LARGEST]]).tolist() == [1.0]


def test_match_reads_nullable_numbers_with_missing_values():
    rules = [Rule([Interval(0, upper=2)], "few"), Rule([Missing(0)], "none"), Rule([], "many")]
    rules = RuleSet(rules, ["x"], task="classification")
    for kind in ("Int64", "Float64", "UInt8"):
        X = pd.DataFrame({"x": pd.array([1, None, 3], dtype=kind)})
        assert rules.predict(X).tolist() == ["few", "none", "many"], kind


@pytest.mark.parametrize("labels", [[2**53 + 1, 0.5], [2**63, 2**53 + 1], ["a", "a\0"]])
def test_predict_preserves_label_types(labels):
    first, second = labels
    rules = [Rule((Interval(0, upper=0.0),), first), Rule((), second)]
    predictions = RuleSet(rules, ["a"], task="classification").predict([[-1.0], [1.0]])
    assert predictions.tolist() == labels


@pytest.mark.parametrize("values", [["a", None, "b"], ["1", None, "nan"]])
@pytest.mark.parametrize("is_batch", [False, True])
def test_match_reads_nulls_among_arrow_categories(values, is_batch):
    codes = pa.array([0, 1, 2, None, 0])
    column = pa.DictionaryArray.from_arrays(codes, pa.array(values))
    make = pa.record_batch if is_batch else pa.table
    table = make({"x": column, "y": pa.array([1.0] * 5)})
    conditions = [Missing(0), OneOf(0, [values[0]]), OneOf(0, [values[0]], negated=True)]
    rules = RuleSet([Rule([c], 1) for c in conditions], ["x", "y"], task="regression")
    plain = pd.DataFrame({"x": column.to_pylist(), "y": 1.0})
    expected = [[pd.isna(v), v == values[0], not pd.isna(v) and v != values[0]] for v in plain["x"]]
    assert rules.match(table).tolist() == rules.match(plain).tolist() == expected


def test_match_rejects_lazy_frames():
    dask = pytest.importorskip("dask.dataframe")
    rows = dask.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1)
    rules = RuleSet([Rule([Interval(0, upper=2)], 1)], ["a"], task="regression")
    for method in (rules.predict, rules.match, rules.covers):
        with pytest.raises(
            TypeError, match=r"got a DataFrame of dask.*X.compute\(\), or .*sources"
        ):
            method(rows)


# --- parts of simplification ---------------------------------------------------------------------

KNOWN = Missing(0, negated=True)


@pytest.mark.parametrize(
    ("one", "other", "is_implied"),
    [
        (Interval(0, 1, 2), Interval(0, 0, 3), True),
        (Interval(0, 0, 3), Interval(0, 1, 2), False),
        (Interval(0, 0, 2), Interval(0, 1, 3), False),
        (Interval(0, 1, 2), Interval(0, 1, 2, True), True),
        (Interval(0, 1, 2, True), Interval(0, 1, 2), False),
        (Interval(0, 1, 2, missing=True), Interval(0, 0, 3), False),
        (Interval(0, 1, 2), Interval(1, 0, 3), False),
    ],
)
def test_intervals_imply_wider_ones(one: Condition, other: Condition, is_implied: bool) -> None:
    assert implies(one, other) is is_implied


@pytest.mark.parametrize(
    ("one", "other", "is_excluded"),
    [
        (Missing(0), KNOWN, True),
        (Missing(0), Interval(0, 1), True),
        (Missing(0), Interval(0, 1, missing=True), False),
        (Missing(0), OneOf(0, ["p"]), True),
        (Missing(0), Linear([(0, 1.0)], upper=1), True),
        (KNOWN, Interval(0, 1), False),
        (Interval(0, 0, 1), Interval(0, 1, 2), True),
        (Interval(0, 0, 1), Interval(0, 1, 2, True), False),
        (Interval(0, 0, 1), Interval(0, 2, 3), True),
    ],
)
def test_conditions_exclude_each_other(one: Condition, other: Condition, is_excluded: bool) -> None:
    assert are_exclusive([one], [other]) == are_exclusive([other], [one]) == is_excluded


@pytest.mark.parametrize(
    ("one", "other", "union"),
    [
        (Interval(0, 0, 1), Interval(0, 1, 2), Interval(0, 0, 2)),
        (Interval(0, 0, 1, upper_closed=False), Interval(0, 1, 2), None),
        (Interval(0, 0, 1), Interval(0, 3, 4), None),
        (Interval(0, upper=1), Interval(0, lower=0), KNOWN),
    ],
)
def test_touching_intervals_are_united(
    one: Condition, other: Condition, union: Condition | None
) -> None:
    assert disjunction(one, other) == disjunction(other, one) == union


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([Missing(0)], [OneOf(0, ["p"])], [OneOf(0, ["p"], missing=True)]),
        ([Missing(0)], [Interval(0, 1, 2)], [Interval(0, 1, 2, missing=True)]),
        ([Missing(0)], [Interval(1, 1, 2)], []),
        ([OneOf(0, ["p"])], [OneOf(0, ["q"])], [OneOf(0, ["p", "q"])]),
        ([Linear([(0, 1.0)], upper=1)], [OneOf(0, ["q"])], []),
    ],
)
def test_hull_unites_sides(
    one: list[Condition], other: list[Condition], expected: list[Condition]
) -> None:
    assert list(hull(Rule(one, "a"), Rule(other, "a")).conditions) == expected
    assert list(hull(Rule(other, "a"), Rule(one, "a")).conditions) == expected


def test_hull_keeps_shared_conditions() -> None:
    shared = AtLeast(1, [Interval(0, upper=1), Interval(1, 2)])
    rules = [Rule([shared, Interval(0, i, i + 1)], "a") for i in (0, 4)]
    assert set(hull(*rules).conditions) == {shared, Interval(0, 0, 5)}


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (OneOf(0, ["p", "q"], missing=True), OneOf(0, ["q", "r"]), (OneOf(0, ["q"]),)),
        (
            OneOf(0, ["p", "q"], missing=True),
            OneOf(0, ["q", "r"], missing=True),
            (OneOf(0, ["q"], missing=True),),
        ),
        (OneOf(0, ["p"], missing=True), OneOf(0, ["q"], missing=True), (Missing(0),)),
        (OneOf(0, ["p"]), OneOf(0, ["q"]), None),
        (OneOf(0, ["p"], True, missing=True), OneOf(0, ["q"], True), (OneOf(0, ["p", "q"], True),)),
    ],
)
def test_intersection_of_premises_on_values(
    one: OneOf, other: OneOf, both: tuple[Condition, ...] | None
) -> None:
    assert _intersect_premises((one,), (other,)) == _intersect_premises((other,), (one,)) == both


def test_intersection_of_lists_accepts_missing_if_both_do() -> None:
    one, both = OneOf(0, ["p", "q"], missing=True), OneOf(0, ["q"], missing=True)
    assert _intersect_lists(one, both) == both
    assert _intersect_lists(one, OneOf(0, ["q"])) == OneOf(0, ["q"])
    assert _intersect_lists(OneOf(0, ["q"]), one) == OneOf(0, ["q"])


BESIDE, FURTHER = Interval(1, 5), Interval(1, upper=-5)


@pytest.mark.parametrize(
    ("one", "other", "union"),
    [
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 1, 2), BESIDE), (Interval(0, 0, 2), BESIDE)),
        ((OneOf(0, ["p"]), BESIDE), (OneOf(0, ["p"], True), BESIDE), (BESIDE,)),
        ((Interval(0, upper=1), BESIDE), (Interval(0, 1), BESIDE), (BESIDE,)),
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 3, 4), BESIDE), None),
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 1, 2), FURTHER), None),
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 1, 2),), None),
    ],
)
def test_premises_that_differ_in_one_condition_merge(
    one: tuple[Condition, ...],
    other: tuple[Condition, ...],
    union: tuple[Condition, ...] | None,
) -> None:
    assert _merge_premises(one, other, set()) == union
    assert _merge_premises(other, one, set()) == union


def test_premises_merge_unless_values_are_missing() -> None:
    sides = (Interval(0, upper=1), BESIDE), (Interval(0, 1, math.inf), BESIDE)
    assert _merge_premises(*sides, {0}) == (BESIDE, KNOWN)


def test_covering_boxes_are_found_within_their_steps() -> None:
    low = np.array(list(itertools.product([0, 1], repeat=2)))
    space = np.zeros(2, dtype=int), np.full(2, 2)
    budget = Budget(100, 50)
    allowed = np.zeros(4, dtype=bool)
    assert covering_boxes(*space, low, low + 1, allowed, budget) == [0, 1, 2, 3]
    assert covering_boxes(*space, low[:3], low[:3] + 1, allowed[:3], budget) is None
    left = budget.total
    assert covering_boxes(low[0], low[0] + 1, low, low + 1, allowed, budget) == [0]
    assert budget.total == left - 1


def test_step_saves_rules_and_literals() -> None:
    rule = Rule([Interval(0, 1, 2), Interval(1, upper=3)], "a")
    assert Step((rule,), None, 0, None).saved == 4
    shorter = Rule([Interval(1, upper=3)], "a")
    assert Step((rule,), 0, None, shorter).saved == 2
    assert Step((rule, shorter), 0, 1, shorter).saved == 4


def slow_pairs(ruleset: RuleSet, same_output: bool) -> list[tuple[int, int]]:
    """All pairs of rules to merge, by fractions: touching ones first, then by what they add."""
    sides = []
    for feature in range(ruleset.n_features):
        lower, upper = (
            [Fraction(v) if math.isfinite(v) else None for v in bounds[:, feature].tolist()]
            for bounds in (ruleset.boxes.lower, ruleset.boxes.upper)
        )
        finite = {v for v in lower + upper if v is not None}
        start, length = (min(finite), max(finite) - min(finite)) if len(finite) > 1 else (0, 1)
        least, most = free = Fraction(-0.1), Fraction(1.1)
        ends = []
        for end, bounds in zip(free, (lower, upper), strict=True):
            scaled = [end if v is None else (v - start) / length for v in bounds]
            ends.append([min(max(v, least), most) for v in scaled])
        sides.append(list(zip(*ends, strict=True)))
    outputs = [rule.output for rule in ruleset.rules]
    numbers = [Fraction(v) for v in outputs if isinstance(v, float)]
    spread = (max(numbers) - min(numbers) if numbers else 0) or 1
    found = []
    for one, other in itertools.combinations(range(len(ruleset)), 2):
        pairs = [(side[one], side[other]) for side in sides]
        gap = Fraction(0)
        if outputs[one] != outputs[other]:
            if same_output or not all(isinstance(outputs[i], float) for i in (one, other)):
                continue
            gap = abs(Fraction(outputs[one]) - Fraction(outputs[other])) / spread
        growth = sum(
            max(a[1], b[1]) - min(a[0], b[0]) - max(a[1] - a[0], b[1] - b[0]) for a, b in pairs
        )
        touch = all(a[0] <= b[1] and b[0] <= a[1] for a, b in pairs)
        adjacent = touch and sum(a != b for a, b in pairs) <= 1
        found.append((not adjacent, round(float(growth + gap), 9), one, other))
    return [(one, other) for *_, one, other in sorted(found)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("same_output", [False, True])
def test_closest_pairs_agree_with_loop(seed: int, same_output: bool) -> None:
    rng = np.random.default_rng(seed)
    shape = 7, 3
    lower = rng.integers(1, 5, shape).astype(float)
    upper = lower + rng.integers(1, 5, shape)
    lower[:, 2], upper[:, 2] = -np.inf, np.where(rng.random(7) < 0.5, 5.0, np.inf)
    for bounds, free in ((lower, -np.inf), (upper, np.inf)):
        bounds[rng.random(shape) < 0.3] = free
    outputs = [1.0, 3.0, 4.0, LinearOutput(1, [(0, 1.0)]), LinearOutput(2, [(0, 1.0)])]
    rules = [
        Rule([Interval(j, *ends) for j, ends in enumerate(zip(*box, strict=True))], outputs[i])
        for box, i in zip(zip(lower, upper, strict=True), rng.integers(0, 5, 7), strict=True)
    ]
    ruleset = RuleSet(rules, list("xyz"), task="regression")
    rows = RuleRows(ruleset, RowTable(np.zeros((1, 3)), ruleset.feature_names))
    expected = slow_pairs(ruleset, same_output)
    assert closest_pairs(rows, 100, same_output) == expected
    assert closest_pairs(rows, 2, same_output) == expected[:2]


def test_closest_pairs_of_bounds_that_halves_cannot_tell_apart() -> None:
    rules = [Rule([Interval(0, upper=0)], "a"), Rule([Interval(0, lower=5e-324)], "a")]
    rows = RuleRows(RuleSet(rules, ["x"], task="classification"), RowTable([[1.0]], ["x"]))
    assert closest_pairs(rows, 9, True) == [(0, 1)]


def test_combined_statistics_of_a_rule_without_rows():
    one = RuleStatistics(1, mean=4.0, standard_deviation=0.0)
    other = RuleStatistics(0, mean=8.0, standard_deviation=0.0)
    assert combine_statistics(one, other) == combine_statistics(other, one) == one
    assert combine_statistics(other, RuleStatistics(0, mean=4.0)).mean == 6.0
    assert (
        combine_statistics(one, RuleStatistics(1))
        == combine_statistics(RuleStatistics(1), one)
        == RuleStatistics(2)
    )
