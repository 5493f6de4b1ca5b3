"""Rules of every kind on tables of every kind, compared with a plain loop over rows."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from attempts import pick

from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

INF, LARGEST, TINY = math.inf, sys.float_info.max, 5e-324
NUMBERS = [
    -LARGEST,
    -1e200,
    -(2.0**53),
    -1.0,
    -TINY,
    -0.0,
    0.0,
    TINY,
    sys.float_info.min,
    0.1,
    float(np.float32(0.1)),
    0.5,
    1.0,
    2.45,
    3.0,
    16777217.0,
    2.0**53,
    2.0**63,
    1e154,
    LARGEST,
]
CODES = [0, 1, 2, 3, -1, 255]
BIG = [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 1]
TEXTS = ["red", "it's", "", " ", "nan", "NA", "None", "1", "1.0", "straße", "\0", "a\0", "日本"]
KINDS = {"number": NUMBERS, "code": CODES, "big": BIG, "text": TEXTS, "flag": [True, False]}
NAMES = ["x", "it's", "petal length (cm)", "0", "1", "", "select", "日本", "nan", "2.0"]
VOTINGS = {"classification": ["votes", "probabilities", "logistic"], "regression": ["mean", "sum"]}
CLASSES = [["no", "yes", "it's"], [0, 1, 2**53 + 1], [0.5, -1.0, 3.0], [False, True], ["", "\0"]]


# --- rules ------------------------------------------------------------------------------------


def interval(rng, feature):
    low, high = sorted([pick(rng, NUMBERS), pick(rng, NUMBERS)])
    shape = rng.integers(4)
    low, high = (-INF if shape == 1 else low), (INF if shape == 2 else high)
    closed = rng.random(2) < 0.5
    return Interval(
        feature, low, high, *(closed if low < high else (True, True)), rng.random() < 0.3
    )


def condition(rng, kinds, depth=0):
    numeric = [j for j, kind in enumerate(kinds) if kind in ("number", "code", "big")]
    form = rng.integers(10 if depth < 2 else 9)
    feature = int(rng.integers(len(kinds)))
    if form == 9:
        inner = [condition(rng, kinds, depth + 1) for _ in range(rng.integers(1, 5))]
        return AtLeast(int(rng.integers(1, len(inner) + 1)), inner)
    if form == 8 and numeric:
        used = rng.permutation(numeric)[:3].tolist()
        bounds = interval(rng, 0)
        return Linear(
            [(j, pick(rng, [-2.0, 0.1, 1.0, 1e-300, 1e300])) for j in used],
            bounds.lower,
            bounds.upper,
            bounds.lower_closed,
            bounds.upper_closed,
        )
    if form == 7:
        return Missing(feature, bool(rng.integers(2)))
    if feature in numeric and rng.random() < 0.7:
        return interval(rng, feature)
    pool = KINDS[kinds[feature]]
    values = [pick(rng, pool) for _ in range(rng.integers(1, 4))]
    return OneOf(feature, values, bool(rng.integers(2)), rng.random() < 0.3)


def affine(rng, numeric):
    used = rng.permutation(numeric)[: rng.integers(0, 3)].tolist()
    return LinearOutput(pick(rng, [0.0, 0.1, -3.0]), [(j, pick(rng, [0.7, -2.0])) for j in used])


def rule_set(rng):
    kinds = [pick(rng, list(KINDS)) for _ in range(rng.integers(1, 6))]
    numeric = [j for j, kind in enumerate(kinds) if kind in ("number", "code", "big")]
    task = pick(rng, list(VOTINGS))
    voting = pick(rng, [None, None, *VOTINGS[task]])
    classes = pick(rng, CLASSES) if task == "classification" else None
    rules: list[Rule] = []
    for _ in range(int(rng.integers(0, 9))):
        premise = [condition(rng, kinds) for _ in range(rng.integers(0, 4))]
        output = pick(rng, classes) if classes else pick(rng, [1.5, -0.0, 3, affine(rng, numeric)])
        counts = rng.integers(0, 4, len(classes)).tolist() if classes else None
        statistics = RuleStatistics(int(rng.integers(9)), counts) if rng.random() < 0.5 else None
        weight = pick(rng, [1.0, 0.1, -0.3, 0.0, 2.0]) if voting else 1.0
        try:
            rules.append(Rule(premise, output, statistics, weight))
        except ValueError:  # conditions that contradict each other
            continue
    fallback = None
    if rng.random() < 0.7:
        default = pick(rng, classes) if classes else 7.25
        fallback = Fallback(default)
    return kinds, RuleSet(
        rules,
        rng.permutation(NAMES)[: len(kinds)].tolist(),
        task=task,
        classes=classes,
        ordered=voting is None and bool(rng.integers(2)),
        voting=voting,
        fallback=fallback,
    )


# --- rows and their tables --------------------------------------------------------------------


def column(rng, kind, n_rows):
    """Return values of one feature as Python objects, None if missing."""
    pool = KINDS[kind]
    if kind == "number":
        near = [math.nextafter(v, to) for v in NUMBERS for to in (-INF, INF)]
        pool = [*NUMBERS, *near, INF, -INF]
    elif kind == "text":
        pool = [*TEXTS, "unseen"]
    gaps = rng.random() < 0.6
    return [None if gaps and rng.random() < 0.2 else pick(rng, pool) for _ in range(n_rows)]


def as_pandas(rng, kind, values):
    """Return a column in one of the types of pandas, and the values that it then holds."""
    has_missing = any(v is None for v in values)
    ways = ["object", "category"]
    if kind == "number":
        ways += ["float64", "float32", "Float64", "Float32", "double[pyarrow]", "nan object"]
    elif kind in ("code", "big"):
        small = [] if kind == "big" else ["Int16", "uint8"]
        ways += ["Int64", "int64[pyarrow]", *small, *([] if has_missing else ["int64"])]
        ways += ["uint64"] if not has_missing and min(values, default=0) >= 0 else []
    elif kind == "flag":
        ways += ["boolean", "bool[pyarrow]", *([] if has_missing else ["bool"])]
    else:
        ways += ["string", "str", *([] if has_missing else ["U"])]
    way = pick(rng, ways)
    if way == "uint8" and (has_missing or min(values, default=0) < 0):
        way = "Int16"
    if way in ("float32", "Float32"):
        with np.errstate(over="ignore"):
            values = [None if v is None else float(np.float32(v)) for v in values]
    if way == "float64" or way == "float32":
        numbers = [math.nan if v is None else v for v in values]
        return pd.Series(np.array(numbers, dtype=way)), values
    if way == "nan object":
        return pd.Series([math.nan if v is None else v for v in values], dtype=object), values
    if way == "category":
        values_without_missing = list(dict.fromkeys(v for v in values if v is not None))
        codes = [-1 if v is None else values_without_missing.index(v) for v in values]
        held = pd.Index(values_without_missing, dtype=object if rng.random() < 0.5 else None)
        values = [None if k < 0 else held[k] for k in codes]  # without a dtype pandas may round
        values = [v.item() if isinstance(v, np.generic) else v for v in values]
        return pd.Series(pd.Categorical.from_codes(codes, held)), values
    if way == "U":
        if any(v.endswith("\0") for v in values):
            way = "object"
        else:
            return pd.Series(np.array(values, dtype=str), dtype=object), values
    return pd.Series(values, dtype=way), values


def table(rng, names, kinds, columns):
    """Return the columns in some container, and the values that it holds."""
    columns = [list(values) for values in columns]
    n_rows = len(columns[0])
    way = pick(rng, ["pandas"] * 4 + ["polars", "arrow", "object", "lists", "float", "numbered"])
    if way == "float" and not all(kind in ("number", "code") for kind in kinds):
        way = "object"
    if way in ("polars", "arrow"):
        types = {
            "number": (pl.Float64, pa.float64()),
            "code": (pl.Int64, pa.int64()),
            "big": (pl.Int64, pa.int64()),
            "text": (pl.String, pa.string()),
            "flag": (pl.Boolean, pa.bool_()),
        }
        order = rng.permutation(len(names)).tolist()
        if way == "polars":
            X = pl.DataFrame(
                {names[j]: pl.Series(columns[j], dtype=types[kinds[j]][0]) for j in order}
            )
        else:
            X = pa.table({names[j]: pa.array(columns[j], types[kinds[j]][1]) for j in order})
        return X, columns
    if way in ("object", "lists", "float", "numbered"):
        X = np.empty((n_rows, len(names)), dtype=object)
        for j, values in enumerate(columns):
            X[:, j] = values
        if way == "float":
            kind = pick(rng, [np.float64, np.float32])
            with np.errstate(over="ignore"):
                X = X.astype(kind)
            columns = [[None if v != v else v for v in holds.tolist()] for holds in X.T]
            X = np.asfortranarray(X) if rng.random() < 0.3 else X
        # Rules whose names are numbers find numbered columns by them.
        if way == "numbered" and not set(names) <= set(map(str, range(len(names)))):
            X = pd.DataFrame(X)
        # An empty list has no width to be checked.
        return (X.tolist() if way == "lists" and n_rows else X), columns
    holds = []
    for j, kind in enumerate(kinds):
        series, columns[j] = as_pandas(rng, kind, columns[j])
        holds.append(series.rename(names[j]))
    further = pd.Series([0] * n_rows, name="further")
    holds = [holds[j] for j in rng.permutation(len(holds))]
    X = pd.concat([*holds, further, further] if rng.random() < 0.5 else holds, axis=1)
    if rng.random() < 0.3:
        X.index = [7] * n_rows
    return X, columns


# --- oracle -----------------------------------------------------------------------------------


def between(value, c, missing=False):
    if value is None or value != value:
        return missing
    value = float(value)
    above = c.lower == -INF or (c.lower <= value if c.lower_closed else c.lower < value)
    below = c.upper == INF or (value <= c.upper if c.upper_closed else value < c.upper)
    return above and below


def total(start, terms, row):
    for feature, coefficient in terms:
        value = row[feature]
        start += coefficient * (math.nan if value is None else float(value))
    return start


def holds(c, row):
    if isinstance(c, Interval):
        return between(row[c.feature], c, c.missing)
    if isinstance(c, Missing):
        return (row[c.feature] is None) != c.negated
    if isinstance(c, OneOf):
        return c.missing if row[c.feature] is None else (row[c.feature] in c.values) != c.negated
    if isinstance(c, AtLeast):
        return sum(holds(inner, row) for inner in c.conditions) >= c.m
    return between(total(0.0, c.terms, row), c)


def rank(ruleset, rule):
    statistics = rule.statistics
    counts = statistics.class_counts if statistics else None
    has_counts = ruleset.classes is not None and counts and sum(counts) > 0
    purity = counts[ruleset.classes.index(rule.output)] / sum(counts) if has_counts else 0.0
    return purity, statistics.n_rows if statistics else 0


def first(ruleset, held):
    candidates = [i for i, yes in enumerate(held) if yes]
    if not candidates:
        return -1
    if ruleset.ordered:
        return candidates[0]
    return max(candidates, key=lambda i: (*rank(ruleset, ruleset[i]), -i))


def said(output, row):
    return (
        total(output.intercept, output.terms, row) if isinstance(output, LinearOutput) else output
    )


def predicted(ruleset, held, row):
    """Return the prediction of a row; the fallback or None without a rule."""
    silent = None if ruleset.fallback is None else ruleset.fallback.output
    if not any(held):
        return silent
    if ruleset.voting is None:
        return said(ruleset[first(ruleset, held)].output, row)
    rules = [rule for rule, yes in zip(ruleset, held, strict=True) if yes]
    if ruleset.classes is None:
        above, below = 0.0, 0.0
        for rule in rules:
            above, below = above + rule.weight * said(rule.output, row), below + rule.weight
        if ruleset.voting == "sum":
            return above
        return above / below if below > 0 else silent
    sums = [0.0] * len(ruleset.classes)
    for rule in rules:
        counts = rule.statistics.class_counts if rule.statistics else None
        for k, label in enumerate(ruleset.classes):
            part = float(label == rule.output)
            if ruleset.voting == "probabilities" and counts and sum(counts) > 0:
                part = counts[k] / sum(counts)
            sums[k] += rule.weight * part
    return ruleset.classes[sums.index(max(sums))]


def same(one, other):
    return one == other or (one != one and other != other)


# --- checks -----------------------------------------------------------------------------------


def check_answers(rng):
    kinds, ruleset = rule_set(rng)
    n_rows = int(rng.integers(1, 13))
    columns = [column(rng, kind, n_rows) for kind in kinds]
    X, columns = table(rng, ruleset.feature_names, kinds, columns)
    rows = [list(row) for row in zip(*columns, strict=True)]
    expected = [[all(holds(c, row) for c in rule.conditions) for rule in ruleset] for row in rows]
    matches = ruleset.match(X)
    assert matches.dtype == bool
    assert matches.tolist() == expected, (str(ruleset), X, rows)
    assert ruleset.covers(X).tolist() == [any(row_matches) for row_matches in expected]
    if ruleset.voting is None:
        assert ruleset.assign(X).tolist() == [
            first(ruleset, row_matches) for row_matches in expected
        ]
    predictions = [
        predicted(ruleset, row_matches, row)
        for row_matches, row in zip(expected, rows, strict=True)
    ]
    if None in predictions:
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="no fallback"):
            ruleset.predict(X)
        return
    with np.errstate(all="ignore"):
        answers = ruleset.predict(X).tolist()
    assert all(map(same, answers, predictions)), (str(ruleset), X, answers, predictions)


def test_predictions_equal_loop_over_rows(attack):
    attack(check_answers, 120)


def check_refusals(rng):
    """Check that tables that lack a column, repeat one or have a wrong shape are rejected."""
    kinds, ruleset = rule_set(rng)
    n_rows = int(rng.integers(0, 4))
    frame = pd.DataFrame(
        {
            name: pd.Series(column(rng, kind, n_rows), dtype=object)
            for name, kind in zip(ruleset.feature_names, kinds, strict=True)
        }
    )
    name = pick(rng, list(frame.columns))
    fault = rng.integers(5)
    if fault == 0:
        X = frame.drop(columns=name).assign(other=1)
    elif fault == 1:
        X = pd.concat([frame, frame[[name]]], axis=1)
    elif fault == 2:
        X = frame.to_numpy()[:, 1:]
    elif fault == 3:
        X = frame.to_numpy().reshape(-1)
    else:
        X = np.concatenate([frame.to_numpy(), frame.to_numpy()], axis=1)
    with pytest.raises(ValueError, match=r"lacks|more than one column|features|two-dimensional"):
        ruleset.match(X)


def test_unsuitable_tables_are_rejected(attack):
    attack(check_refusals, 40)


def exact_distance(ruleset, rule, row):
    """Return the squared distance of a row from the box of a rule, or None if infinite."""
    domain, result = ruleset.domain, Fraction(0)
    for c in rule.conditions:
        value = row[c.feature]
        if isinstance(c, Missing):
            result += value is not None and not c.negated
        elif isinstance(c, Interval) and value is not None:
            value = float(value)
            unit = Fraction(1)
            if domain is not None:
                unit = Fraction(domain.upper[c.feature]) - Fraction(domain.lower[c.feature])
            if math.isinf(value):
                if (c.upper if value > 0 else -c.lower) < INF and unit:
                    return None
            elif unit:
                below = Fraction(c.lower) - Fraction(value) if c.lower > -INF else 0
                above = Fraction(value) - Fraction(c.upper) if c.upper < INF else 0
                result += (max(below, above, Fraction(0)) / unit) ** 2
    return result


def check_nearest(rng):
    """Check that uncovered rows are assigned to a nearest box, however far or near."""
    n = int(rng.integers(1, 4))
    rules = []
    for i in range(int(rng.integers(1, 5))):
        used = rng.permutation(n)[: rng.integers(1, n + 1)].tolist()
        few = [Missing(j) if rng.random() < 0.1 else interval(rng, j) for j in used]
        rules.append(Rule([c for c in few if not c.is_trivial] or [Missing(0)], float(i)))
    domain = None
    if rng.random() < 0.5:
        ends = [sorted([pick(rng, NUMBERS), pick(rng, NUMBERS)]) for _ in range(n)]
        domain = Domain(*zip(*ends, strict=True))
    names = [f"x{j}" for j in range(n)]
    ruleset = RuleSet(
        rules, names, task="regression", domain=domain, fallback=Fallback(-1.0, "nearest")
    )
    columns = [column(rng, "number", 4) for _ in range(n)]
    X = np.array(columns, dtype=float).T
    answers = ruleset.predict(X).tolist()
    for row, matches, answer in zip(
        zip(*columns, strict=True), ruleset.match(X), answers, strict=True
    ):
        if matches.any():
            assert answer == float(matches.argmax())
            continue
        distances = [exact_distance(ruleset, rule, row) for rule in ruleset]
        result = distances[int(answer)]
        finite = [d for d in distances if d is not None]
        assert (result is None) == (not finite), (str(ruleset), row, answer)
        if finite:  # floats cannot represent smaller differences
            assert result <= min(finite) * (1 + Fraction(1, 10**12)), (str(ruleset), row, answer)


def test_nearest_box_is_the_nearest(attack):
    attack(check_nearest, 80)


def check_simplify(rng):
    """Check that simplified rules predict the same on all rows or on those that count."""
    kinds, ruleset = rule_set(rng)
    if ruleset.voting is not None:
        return
    ruleset = ruleset.replace(
        fallback=ruleset.fallback or Fallback(ruleset.classes[0] if ruleset.classes else 7.25)
    )
    X = pd.DataFrame(
        {
            name: pd.Series(column(rng, kind, 12), dtype=object)
            for name, kind in zip(ruleset.feature_names, kinds, strict=True)
        }
    )
    with np.errstate(all="ignore"):
        values = ruleset.predict(X).tolist()
        for simple in (ruleset.simplify(), ruleset.simplify(X)):
            assert len(simple) <= len(ruleset)
            result = simple.predict(X).tolist()
            assert all(map(same, result, values)), (str(ruleset), str(simple), X, result, values)


def test_simplified_rules_predict_alike(attack):
    attack(check_simplify, 30)
