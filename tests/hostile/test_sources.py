"""Rows of every storage are counted in place and compared with a loop that uses fractions."""

from __future__ import annotations

import math
import re
import runpy
import warnings
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from stored_tables import (
    FOLDS_NAMES,
    LABEL,
    REFUSALS,
    STORAGES,
    WEIGHT,
    StoredColumn,
    StoredTable,
    pick,
    postgresql_storage,
    spark_storage,
)

from skescore.sources import DataSource, SourceError, count_source, sample_source

TESTS = Path(__file__).parents[1]
SERVER = TESTS / "tuning" / "storage" / "conftest.py"
LABELS = {str: "text", bool: "flag", float: "number", int: "big"}


def stored_case(rng, tables, name):
    """Return a rule set and a table that the storage can hold."""
    while True:
        ruleset, table = drawn_case(rng, tables, name)
        texts = repr(([rule.conditions for rule in ruleset], ruleset.classes, table))
        # SQLite reads tiny numbers inexactly, and no database stores NUL.
        is_tiny = name == "sqlite" and re.search(r"e-3\d\d", texts)
        if not is_tiny and "\\x00" not in texts:
            return ruleset, table


def drawn_case(rng, tables, name):
    """Return a rule set and a table of any kinds."""
    kinds, ruleset = tables.rule_set(rng)
    # Names that differ only in case require databases that distinguish them.
    prefixes = [f"{j}" for j in range(len(kinds))]
    if name not in FOLDS_NAMES and len(kinds) > 1:
        prefixes[:2] = ["x ", "X "]
        names = [ruleset.feature_names[0]] * 2 + list(ruleset.feature_names[2:])
    else:
        names = ruleset.feature_names
    names = [f"{prefix}: {text}" for prefix, text in zip(prefixes, names, strict=True)]
    ruleset = ruleset.replace(feature_names=names)
    n_rows = int(rng.integers(1, 10))
    features = [
        StoredColumn(text, kind, tables.column(rng, kind, n_rows))
        for text, kind in zip(names, kinds, strict=True)
    ]
    pool = [*(ruleset.classes or ()), *pick(rng, OTHER_LABELS)]
    if ruleset.classes is None:
        pool = pick(rng, [[-3.0, 0.0, 0.1, 2.5, 1e6], [0, 1, 2, 7]])
    pool = [v for v in pool if type(v) is type(pool[0])]
    label = StoredColumn(LABEL, LABELS[type(pool[0])], [pick(rng, pool) for _ in range(n_rows)])
    weight = None
    if rng.random() < 0.5:
        values = [pick(rng, [0.0, 0.25, 1.0, 3.0, 2.0**-30, 1e6]) for _ in range(n_rows)]
        weight = StoredColumn(WEIGHT, "number", [*values[:-1], 2.0])
    table = StoredTable(features, label, weight)
    return ruleset, table


#: Labels that rules do not predict; some are equal only after careless conversion.
OTHER_LABELS = [
    ["NO", "no ", "nö", "No"],
    [2**53, 2**53 + 1, 2**53 + 2, -1],
    [0.1, 0.30000000000000004, 1e300],
    [True],
]


def expected_counts(ruleset, table, tables):
    """Return counts of a loop over rows: rows, weights by rule and label, in fractions."""
    rows = list(zip(*(column.values for column in table.features), strict=True))
    labels = table.label.values
    weights = (
        [Fraction(w) for w in table.weight.values] if table.weight else [Fraction(1)] * len(rows)
    )
    counts, alone, assigned, sums = Counter(), Counter(), Counter(), Counter()
    n_covered = 0
    for row, label, weight in zip(rows, labels, weights, strict=True):
        if not weight:
            continue
        matches = [all(tables.holds(c, row) for c in rule.conditions) for rule in ruleset]
        n_covered += any(matches)
        for i in (i for i, holds in enumerate(matches) if holds):
            counts[i, label] += weight
            sums[i] += weight
            if sum(matches) == 1:
                alone[i] += weight
        if any(matches) and ruleset.voting is None:
            assigned[tables.first(ruleset, matches), label] += weight
    n_rows = sum(weight > 0 for weight in weights)
    return (n_covered, n_rows - n_covered), counts, alone, assigned, sums


def check_case(rng, tables, name, store, folder, results):
    ruleset, table = stored_case(rng, tables, name)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            source = DataSource(
                store(rng, table, folder),
                LABEL,
                WEIGHT if table.weight else None,
                batch_size=int(rng.integers(1, 9)),
                **table.options,
            )
            counts = count_source(ruleset, source, rule_measures=False)
    except (ValueError, SourceError) as error:
        reason = REFUSALS.search(str(error))
        assert reason, (str(ruleset), table)
        results["refused"] += 1
        results[f"refused: {reason[0]}"] += 1
        return
    results["compared"] += 1
    if rng.random() < 0.1:
        check_sample(ruleset, table, source)
    n_rows, by_label, alone, assigned, sums = expected_counts(ruleset, table, tables)
    case = (str(ruleset), table)
    rules = range(len(ruleset))
    assert counts.n_rows == n_rows, case
    assert counts.alone.tolist() == [float(alone[i]) for i in rules], case
    if counts.classes is not None:
        for kind, expected in enumerate([by_label] if ruleset.voting else [by_label, assigned]):
            result = Counter()
            for index, label in enumerate(counts.classes.labels):
                for i in rules:
                    result[i, label] += Fraction(counts.classes.by_rule[kind, index, i])
            assert +result == +expected, case
        return
    np.testing.assert_array_equal(counts.numbers.by_rule[0, 0], [float(sums[i]) for i in rules])
    for i in rules:
        exact = sum(
            w * (Fraction(y) - Fraction(counts.numbers.center))
            for (j, y), w in by_label.items()
            if j == i
        )
        size = sum(
            w * abs(Fraction(y) - Fraction(counts.numbers.center))
            for (j, y), w in by_label.items()
            if j == i
        )
        assert math.isclose(
            counts.numbers.by_rule[0, 1, i], exact, rel_tol=1e-12, abs_tol=1e-12 * size
        ), case


def check_sample(ruleset, table, source):
    """Check that all rows are drawn, and that different labels have different strata."""
    is_regression = ruleset.classes is None
    task = "regression" if is_regression else "classification"
    weights = table.weight.values if table.weight else [1.0] * table.n_rows
    rows = [i for i, weight in enumerate(weights) if weight]
    labels = [table.label.values[i] for i in rows]
    sample = sample_source(source, n_rows=100, task=task, least_per_class=0)
    expected = {None: len(labels)} if is_regression else Counter(labels)
    assert {label: n for label, (_, n) in sample.strata.items()} == expected, table
    assert Counter(sample.frame[LABEL].tolist()) == Counter(labels), table
    texts = [column for column in table.columns if column.kind in ("text", "flag")]
    values = [sample.frame[column.name].astype(object) for column in texts]
    drawn_rows = [
        tuple(None if pd.isna(v) else v for v in row) for row in zip(*values, strict=True)
    ]
    stored_rows = [tuple(column.values[i] for column in texts) for i in rows]
    assert not texts or Counter(drawn_rows) == Counter(stored_rows), table
    for column in table.features:
        drawn = [None if pd.isna(v) else v for v in sample.frame[column.name].tolist()]
        if column.kind in ("text", "flag", "code"):
            assert Counter(drawn) == Counter(column.values[i] for i in rows), column


@pytest.fixture(scope="module")
def server():
    with runpy.run_path(str(SERVER))["running_postgresql"]() as running:
        yield running


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    engines = runpy.run_path(str(TESTS / "interop" / "test_sources.py"))
    with engines["running_spark"](tmp_path_factory.mktemp("spark")) as session:
        yield session


NAMES = [
    *(name for name in STORAGES if name != "dask"),
    pytest.param("dask", marks=pytest.mark.engine),
    pytest.param("postgresql", marks=pytest.mark.engine),
    pytest.param("spark", marks=pytest.mark.engine),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_count_source_equals_a_loop(name, attack, tables, tmp_path, request):
    if name == "postgresql":
        store = postgresql_storage(request.getfixturevalue("server").new_database())
    elif name == "spark":
        store = spark_storage(request.getfixturevalue("spark"))
    elif name == "dask":
        pytest.importorskip("dask.dataframe")
        store = STORAGES[name]
    else:
        store = STORAGES[name]
    results = Counter()
    attack(
        lambda rng: check_case(rng, tables, name, store, tmp_path, results),
        12,
        share=0.01 if name == "spark" else 1.0,
    )
    print(f"{name}: {dict(results)}")
    assert results["compared"] > results["refused"] / 2
