"""Rows that stay where they are, counted by queries and in batches, against the loop over rows."""

from __future__ import annotations

import sqlite3
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from skescore.sources import count_source

#: How tables hold what a column of each kind does.
TYPES = {
    "number": pa.float64(),
    "code": pa.int64(),
    "text": pa.string(),
    "flag": pa.bool_(),
}


def in_duckdb(rows, folder):
    with duckdb.connect(str(folder / "some.db")) as connection:
        connection.register("given", rows)
        connection.execute("CREATE OR REPLACE TABLE some_rows AS SELECT * FROM given")
    return f"duckdb:///{folder}/some.db?table=some_rows"


def in_sqlite(rows, folder):
    kinds = {pa.float64(): "REAL", pa.string(): "TEXT"}
    declared = [
        f"`{f.name.replace('`', '``')}` {kinds.get(f.type, 'INTEGER')}" for f in rows.schema
    ]
    marks = ", ".join("?" * rows.num_columns)
    values = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    connection = sqlite3.connect(folder / "some.sqlite")
    with connection:
        connection.execute("DROP TABLE IF EXISTS some_rows")
        connection.execute(f"CREATE TABLE some_rows ({', '.join(declared)})")
        connection.executemany(f"INSERT INTO some_rows VALUES ({marks})", values)
    connection.close()
    return f"sqlite:///{folder}/some.sqlite?table=some_rows"


SOURCES = {
    "duckdb": in_duckdb,
    "sqlite": in_sqlite,
    "frames": lambda rows, _: [rows[:3].to_pandas(), rows[3:].to_pandas()],
    "frames of Arrow": lambda rows, _: [rows.to_pandas(types_mapper=pd.ArrowDtype)],
    "batches": lambda rows, _: rows.to_batches(max_chunksize=2),
    "polars": lambda rows, _: polars.from_arrow(rows).lazy(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_rows_are_counted_as_a_loop_counts_them(name, attack, tables, tmp_path):
    def check(rng):
        kinds, ruleset = tables.rule_set(rng)
        names = [f"{j}: {text}" for j, text in enumerate(ruleset.feature_names)]
        if "big" in kinds or "\0" in str((names, ruleset.classes, ruleset.rules)):
            return  # whether such numbers are rounded depends on types; no database stores NUL
        ruleset = ruleset.replace(feature_names=names)
        columns = [tables.column(rng, kind, 6) for kind in kinds]
        if "\0" in str(columns):
            return
        labels = list(ruleset.classes or (0.5, 1.0, 2.0))
        label = [labels[int(rng.integers(len(labels)))] for _ in range(6)] if labels else []
        if len({type(one) for one in label}) != 1:
            return
        arrays = [
            pa.array(held, TYPES[kind], from_pandas=False)
            for kind, held in zip(kinds, columns, strict=True)
        ]
        rows = pa.table([*arrays, pa.array(label)], names=[*names, "the label"])
        matched = [
            [all(tables.holds(c, row) for c in r.conditions) for r in ruleset]
            for row in zip(*columns, strict=True)
        ]
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # of sums of huge numbers
                counts = count_source(
                    ruleset, SOURCES[name](rows, tmp_path), "the label", rule_measures=False
                )
        except ValueError as error:
            if any(word in str(error) for word in ("SQL", "BIGINT", "database", "column of a")):
                return
            raise
        covered = sum(map(any, matched))
        assert counts.n_rows == (covered, 6 - covered), str(ruleset)
        alone = [sum(h[i] for h in matched if sum(h) == 1) for i in range(len(ruleset))]
        assert counts.alone.tolist() == alone, str(ruleset)
        if counts.classes is not None:
            result = Counter()
            for index, one in enumerate(counts.classes.labels):
                for rule, n in enumerate(counts.classes.by_rule[0, index].tolist()):
                    result[rule, one] += n
            expected = Counter(
                (i, one)
                for h, one in zip(matched, label, strict=True)
                for i, on in enumerate(h)
                if on
            )
            assert +result == expected, str(ruleset)

    attack(check, 8)
