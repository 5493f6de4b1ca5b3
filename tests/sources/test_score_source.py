"""Rows that are scored in place have the same figures as in memory."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loaded_files import load_file

from skescore.extractors import CARTExtractor
from skescore.metrics import count_rows
from skescore.rules import Domain, Fallback, Interval, LinearOutput, Missing, OneOf, Rule, RuleSet
from skescore.scorers import knowledge
from skescore.sources import (
    DataSource,
    SourceError,
    count_source,
    extract_source,
    sample_source,
    score_source,
)

arbitrary = load_file("rules/exporters/arbitrary.py")
same_numbers = load_file("sources/comparing.py").same_numbers

DOMAIN = Domain([-3.0, 0.0], [3.0, 2.0], [(1, ["red", "blue"])])
CLASSES = RuleSet(
    [
        Rule([Interval(0, upper=0.5), OneOf(1, ["red"], missing=True)], "yes"),
        Rule([Interval(0, lower=0.0, missing=True)], "no"),
    ],
    ["size", "color"],
    task="classification",
    domain=DOMAIN,
    fallback=Fallback("no"),
)
NUMBERS = RuleSet(
    [
        Rule([Interval(0, upper=0.5), OneOf(1, ["red"], missing=True)], 1.0),
        Rule([Interval(0, lower=0.0)], LinearOutput(0.5, [(0, -1.0)])),
    ],
    ["size", "color"],
    task="regression",
    domain=DOMAIN,
    fallback=Fallback(0.25),
)


def table_of(ruleset: RuleSet, n_rows: int = 90, seed: int = 0) -> pd.DataFrame:
    """Return rows with categories, missing values, weights and a column that no rule uses."""
    rng = np.random.default_rng(seed)
    labels = ["yes", "no", "perhaps"] if ruleset.classes else [0.1, 0.5, 1.0, 1.25]
    return pd.DataFrame(
        {
            "other": rng.normal(size=n_rows),
            "size": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows)),
            "color": pd.Series(rng.choice(["red", "blue", None], n_rows), dtype=object),
            "label": rng.choice(labels, n_rows),
            "weight": rng.choice([0.0, 0.5, 1.0, 3.0], n_rows),
        }
    )


def arrow(frame: pd.DataFrame) -> pa.Table:
    """Return an Arrow table in which missing numbers are alternately NaN and NULL."""
    columns = {}
    for name in frame.columns:
        values = frame[name].to_numpy()
        if values.dtype.kind == "f":
            null = np.isnan(values) & (np.arange(len(values)) % 2 == 0)
            columns[name] = pa.array(values, mask=null, from_pandas=False)
        else:
            columns[name] = pa.array(values.tolist())
    return pa.table(columns)


def parquet(frame: pd.DataFrame, folder: Path, n_files: int = 1) -> Path:
    size = -(-len(frame) // n_files)
    for i in range(n_files):
        part = arrow(frame).slice(i * size, size)
        pyarrow.parquet.write_table(part, folder / f"part{i}.parquet")
    return folder


def in_duckdb(frame: pd.DataFrame, folder: Path) -> str:
    rows = arrow(frame)
    with duckdb.connect(str(folder / "some.db")) as connection:
        connection.register("given", rows)
        connection.execute('CREATE OR REPLACE TABLE "some rows" AS SELECT * FROM given')
    return f"duckdb:///{folder}/some.db?table=some rows"


def in_sqlite(frame: pd.DataFrame, folder: Path) -> str:
    with sqlite3.connect(folder / "some.sqlite") as connection:
        frame.to_sql("some_rows", connection, index=False, if_exists="replace")
    connection.close()
    return f"sqlite:///{folder}/some.sqlite?table=some_rows"


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "folder": lambda frame, folder: parquet(frame, folder, 3),
    "glob": lambda frame, folder: f"{parquet(frame, folder, 2)}/*.parquet",
    "file": lambda frame, folder: parquet(frame, folder) / "part0.parquet",
    "duckdb": in_duckdb,
    "sqlite": in_sqlite,
    "arrow dataset": lambda frame, folder: pa.dataset.dataset(parquet(frame, folder, 2)),
    "arrow table": lambda frame, folder: arrow(frame),
    "polars lazy frame": lambda frame, folder: polars.scan_parquet(parquet(frame, folder, 2)),
    "list of frames": lambda frame, folder: [frame[:40], frame[40:]],
    "function": lambda frame, folder: lambda: iter(arrow(frame).to_batches(max_chunksize=20)),
}


@pytest.mark.parametrize("ruleset", [CLASSES, NUMBERS], ids=["classes", "numbers"])
@pytest.mark.parametrize("name", SOURCES)
def test_count_source_equals_count_rows(name: str, ruleset: RuleSet, tmp_path: Path) -> None:
    frame = table_of(ruleset)
    source = SOURCES[name](frame, tmp_path)
    X, y, weights = frame[["size", "color"]], frame["label"], frame["weight"]
    counts = count_source(ruleset, DataSource(source, "label", "weight", batch_size=32))
    same_numbers(ruleset, counts, X, y, weights.to_numpy())


@pytest.mark.parametrize("ruleset", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_count_source_reads_parquet_without_duckdb(
    ruleset: RuleSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "duckdb" else result(name)
    )
    frame = table_of(ruleset)
    source = parquet(frame, tmp_path, 3)
    counts = count_source(ruleset, DataSource(source, "label", batch_size=16))
    same_numbers(ruleset, counts, frame[["size", "color"]], frame["label"])


def check_any_rules(
    data: Any, folder: Path, source: Callable[[pd.DataFrame, Path], Any], *, least: float = 0.0
) -> None:
    """Check random rules on rows at their bounds, with missing values, with and without weights."""
    ruleset = data.draw(arbitrary.rule_sets())
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    X = arbitrary.border_rows(ruleset, 60, infinite=False)
    numeric = X.select_dtypes("number")
    X[numeric.columns] = numeric.mask(numeric.abs() < least, 0.0)
    if not ruleset.classes:
        pool: list[Any] = [-3.0, 0.0, 0.1, 0.1, 2.5, 1e6]
    elif isinstance(ruleset.classes[0], bool):
        pool = [True, False]
    else:
        pool = [*ruleset.classes, "none of them" if isinstance(ruleset.classes[0], str) else 77]
    y = rng.choice(np.array(pool, dtype=object), len(X)).tolist()
    if ruleset.classes:
        y[0] = ruleset.classes[0]
        if any(isinstance(label, float) for label in pool):
            y = [float(label) for label in y]
    weights = rng.choice([0.0, 0.25, 1.0, 2.0], len(X))
    weights[0] = 1.0
    weighted = data.draw(st.booleans())
    frame = X.assign(**{"the label": y, "the weight": weights})
    weight = "the weight" if weighted else None
    counted = DataSource(source(frame, folder), "the label", weight, batch_size=25)
    counts = count_source(ruleset, counted)
    same_numbers(ruleset, counts, X, np.array(y), weights if weighted else None)


#: ``SKESCORE_CASES=200`` tests as many rule sets on as many tables, for each engine.
CASES = int(os.environ.get("SKESCORE_CASES", "0"))
KEEP = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(KEEP, max_examples=12)
@given(data=st.data())
@pytest.mark.parametrize("name", ["folder"])
def test_count_source_equals_rows_for_any_rules(name: str, data: Any, tmp_path: Path) -> None:
    check_any_rules(data, tmp_path, SOURCES[name])


@pytest.mark.slow
@settings(KEEP, max_examples=CASES or 70)
@given(data=st.data())
@pytest.mark.parametrize("name", ["file", "duckdb", "arrow dataset", "polars lazy frame"])
def test_count_source_equals_rows_for_many_rules(name: str, data: Any, tmp_path: Path) -> None:
    check_any_rules(data, tmp_path, SOURCES[name])


# --- counts ---------------------------------------------------------------------------------------


def test_count_source_accepts_more_rules_than_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.normal(size=(130, 2)), axis=1)
    rules = [Rule([Interval(0, *pair)], i % 3) for i, pair in enumerate(ends.tolist())]
    ruleset = RuleSet(rules, ["x"], task="classification", domain=Domain([-3.0], [3.0]))
    frame = pd.DataFrame({"x": rng.normal(size=300), "label": rng.integers(0, 3, 300)})
    counts = count_source(ruleset, parquet(frame, tmp_path), "label")
    same_numbers(ruleset, counts, frame[["x"]], frame["label"])


def test_count_source_accepts_many_disjoint_rules(tmp_path: Path) -> None:
    rules = [Rule([Interval(0, i, i + 1)], i % 3) for i in range(70)]
    ruleset = RuleSet(
        rules, ["x"], task="classification", disjoint=True, domain=Domain([0.0], [70.0])
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.uniform(-2, 72, 300), "label": rng.integers(0, 3, 300)})
    counts = count_source(ruleset, parquet(frame, tmp_path), "label")
    same_numbers(ruleset, counts, frame[["x"]], frame["label"])


@pytest.mark.parametrize("fallback", [Fallback(0.25), Fallback(-1e22), None])
def test_count_source_accepts_labels_far_from_predictions(
    fallback: Fallback | None, tmp_path: Path
) -> None:
    ruleset, frame = NUMBERS.replace(fallback=fallback), table_of(NUMBERS)
    frame["label"] = 1e6 + frame["label"] * 1e-3
    for source in (parquet(frame, tmp_path), [frame]):
        counts = count_source(ruleset, source, "label")
        same_numbers(ruleset, counts, frame[["size", "color"]], frame["label"])


def test_count_source_accepts_distant_labels_of_uncovered_rows(tmp_path: Path) -> None:
    ruleset, frame = NUMBERS.replace(fallback=None), table_of(NUMBERS)
    frame.loc[~ruleset.covers(frame[["size", "color"]]), "label"] = 1e7
    for source in (parquet(frame, tmp_path), [frame]):
        counts = count_source(ruleset, source, "label")
        same_numbers(ruleset, counts, frame[["size", "color"]], frame["label"])


def test_count_source_queries_black_box_in_batches(tmp_path: Path) -> None:
    sizes = []

    def black_box(X: Any) -> Any:
        sizes.append(len(X))
        assert list(X.columns) == ["size", "color"]
        return np.where(X["size"] > 0.25, "yes", "no")

    frame = table_of(CLASSES)
    X = frame[["size", "color"]]
    source = DataSource(parquet(frame, tmp_path), batch_size=40)
    counts = count_source(CLASSES, source, black_box=black_box)
    assert sum(sizes) == len(frame)
    assert max(sizes) <= 40
    assert counts.to_json() == count_rows(CLASSES, X, black_box(X)).to_json()


@pytest.mark.slow
def test_count_source_queries_black_box_in_processes(tmp_path: Path) -> None:
    def from_size(X: pd.DataFrame) -> Any:
        return np.where(X["size"] > 0.25, "yes", "no")

    def dying(X: pd.DataFrame) -> Any:
        os._exit(1)

    frame = table_of(CLASSES, 700)
    source = pa.dataset.dataset(parquet(frame, tmp_path, 3))
    results = {
        n_jobs: count_source(
            CLASSES, DataSource(source, batch_size=40, n_jobs=n_jobs), black_box=from_size
        )
        for n_jobs in (1, 2)
    }
    assert results[1].to_json() == results[2].to_json()
    X = frame[["size", "color"]]
    assert results[2].to_json() == count_rows(CLASSES, X, from_size(X)).to_json()

    in_processes = DataSource(source, batch_size=40, n_jobs=2)
    with pytest.raises(SourceError, match="no partial result was used: TerminatedWorkerError"):
        count_source(CLASSES, in_processes, black_box=dying)
    (tmp_path / "part2.parquet").unlink()
    with pytest.raises(SourceError, match="no partial result was used: FileNotFoundError"):
        count_source(CLASSES, in_processes, black_box=from_size)


def test_sample_source_joins_columns_by_position() -> None:
    """Categories of Arrow have no index, and those of other columns may be in any order."""
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "label": ["a", "b", "c", "d"]})
    colors = pa.array(["red", "blue", "green", "gray"]).dictionary_encode()
    frame["color"] = pd.Series(colors, dtype=pd.ArrowDtype(colors.type))
    moved = frame.set_axis([3, 2, 0, 1], axis=0)
    for source in (moved, [moved[:2], moved[2:]]):
        drawn = sample_source(source, "label").frame.sort_values("size")
        for name in frame.columns:
            assert drawn[name].tolist() == frame[name].tolist()


def test_score_source_equals_scores_of_rows(tmp_path: Path) -> None:
    frame = table_of(CLASSES)
    scored_source = score_source(CLASSES, parquet(frame, tmp_path), "label", psi=2.0)
    expected = knowledge(CLASSES, frame[["size", "color"]], frame["label"])
    assert scored_source.scores["ice"] == pytest.approx(expected["ice"], rel=1e-12)
    assert scored_source.scores["neg_fire"] != pytest.approx(expected["neg_fire"], rel=1e-3)
    assert len(scored_source.rule_report(measures="all")) == 2
    assert scored_source.characteristics()["n_rules"] == 2


def test_score_source_reads_an_iterator_once() -> None:
    frame = table_of(NUMBERS)
    expected = knowledge(NUMBERS, frame[["size", "color"]], frame["label"])
    result = score_source(NUMBERS, iter([frame]), "label", rule_measures=False).scores
    assert result == pytest.approx(expected, rel=1e-12)
    with pytest.raises(SourceError, match="more than once"):
        count_source(NUMBERS, iter([frame]), "label")


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["folder", "arrow dataset", "duckdb"])
def test_count_source_rejects_missing_labels_and_weights(name: str, tmp_path: Path) -> None:
    for index, (column, value) in enumerate(
        [("label", np.nan), ("weight", np.nan), ("weight", -1.0), ("weight", np.inf)]
    ):
        frame = table_of(NUMBERS)
        frame.loc[7, "weight"] = 1.0
        frame.loc[7, column] = value
        folder = tmp_path / str(index)
        folder.mkdir()
        with pytest.raises(SourceError, match=r"finite|label in every row"):
            count_source(NUMBERS, SOURCES[name](frame, folder), "label", sample_weight="weight")
    frame = table_of(CLASSES).assign(label=pd.Series(["yes", None] * 45, dtype=object))
    (tmp_path / "texts").mkdir()
    with pytest.raises(SourceError, match="label in every row"):
        count_source(CLASSES, SOURCES[name](frame, tmp_path / "texts"), "label")
    frame = table_of(CLASSES)[:2].assign(label=["yes", "no"], weight=[1.0, np.nan])
    (tmp_path / "alone").mkdir()
    source = SOURCES[name](frame, tmp_path / "alone")
    with pytest.raises(SourceError, match="finite and zero or more"):
        count_source(CLASSES, source, "label", sample_weight="weight")


@pytest.mark.parametrize("look", [count_source, sample_source, extract_source])
@pytest.mark.parametrize("name", ["folder", "arrow dataset", "duckdb"])
def test_nan_is_rejected_as_a_label(name: str, look: Callable[..., Any], tmp_path: Path) -> None:
    ruleset = RuleSet([Rule([Interval(0, upper=0)], 1), Rule([], 2)], ["x"], task="classification")
    frame = pd.DataFrame({"x": [-1.0, 1.0, 2.0, 3.0], "label": [1.0, 2.0, 2.0, np.nan]})
    source = SOURCES[name](frame, tmp_path)  # every other gap is NULL, and this one is not
    options: dict[str, Any] = {} if look is count_source else {"task": "classification"}
    arguments = {count_source: [ruleset], extract_source: [CARTExtractor(None)]}.get(look, [])
    with pytest.raises(SourceError, match="label in every row"):
        look(*arguments, source, "label", **options)


@pytest.mark.parametrize("column", ["size", "label", "weight"])
def test_texts_among_numbers_of_sqlite_are_rejected(column: str, tmp_path: Path) -> None:
    source = in_sqlite(table_of(NUMBERS), tmp_path)
    with sqlite3.connect(tmp_path / "some.sqlite") as connection:  # as .import writes gaps
        connection.execute(f"UPDATE some_rows SET {column} = '' WHERE rowid = 4")
    connection.close()
    match = f"'{column}' of .* must hold numbers, but it holds the text ''"
    options: dict[str, Any] = {"target": "label", "sample_weight": "weight"}
    with pytest.raises(ValueError, match=match):
        count_source(NUMBERS, source, **options)
    if column != "size":
        with pytest.raises(ValueError, match=match):
            extract_source(CARTExtractor(None), source, task="regression", **options)
        with pytest.raises(ValueError, match=match):
            sample_source(source, task="regression", **options)


def test_count_source_rejects_numbers_stored_as_texts(tmp_path: Path) -> None:
    source = in_sqlite(table_of(CLASSES).astype({"size": str}), tmp_path)
    with pytest.raises(ValueError, match=r"'size' of .* must hold numbers, but"):
        count_source(CLASSES, source, "label")


def test_count_source_rejects_empty_sources(tmp_path: Path) -> None:
    frame = table_of(CLASSES)
    for source in (parquet(frame[:0], tmp_path), [frame[:0]]):
        with pytest.raises(SourceError, match="at least one row"):
            count_source(CLASSES, source, "label")
    with pytest.raises(SourceError, match="with a positive weight"):
        count_source(CLASSES, [frame.assign(weight=0.0)], "label", sample_weight="weight")


@pytest.mark.parametrize("name", SOURCES)
def test_count_source_names_missing_columns(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](table_of(CLASSES), tmp_path)
    with pytest.raises((ValueError, SourceError), match="target 'lable'"):
        count_source(CLASSES, source, "lable")


def test_count_source_rejects_missing_columns(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no Parquet file"):
        count_source(CLASSES, tmp_path / "*.parquet", "label")
    with pytest.raises(SourceError, match="no database"):
        count_source(CLASSES, f"duckdb:///{tmp_path}/none.db?table=t", "label")
    with pytest.raises(SourceError, match="no database"):
        count_source(CLASSES, f"sqlite:///{tmp_path}/none.db?table=t", "label")
    with pytest.raises(ValueError, match="must name a table"):
        count_source(CLASSES, f"duckdb:///{tmp_path}/none.db", "label")
    with pytest.raises(SourceError, match=r"no partial result was used.*no_such"):
        count_source(
            CLASSES, in_duckdb(table_of(CLASSES), tmp_path).replace("some rows", "no_such"), "label"
        )
    with pytest.raises(TypeError, match="source must be"):
        count_source(CLASSES, 3, "label")
    with pytest.raises(ValueError, match="Either target"):
        count_source(CLASSES, [], black_box=len, target="label")
    with pytest.raises(ValueError, match="predicts batches of rows"):
        count_source(CLASSES, "duckdb:///some.db?table=t", black_box=len)


def test_count_source_detects_a_deleted_file(tmp_path: Path) -> None:
    folder = parquet(table_of(CLASSES), tmp_path, 3)
    source = pa.dataset.dataset(folder)
    (folder / "part2.parquet").unlink()
    with pytest.raises(SourceError, match="no partial result was used: FileNotFoundError"):
        count_source(CLASSES, source, "label")


HALVES = pd.DataFrame({"length": [0.5, 1.5, 2.5, 3.5], "price": [0.5, 0.5, 2.5, 2.5]})
WHOLES = pd.DataFrame({"length": [0, 1, 2, 3], "price": [0, 0, 2, 2]})


@pytest.mark.parametrize("first", [0, 1], ids=["whole numbers first", "fractions first"])
def test_score_source_keeps_types_of_each_file(first: int, tmp_path: Path) -> None:
    parts = [WHOLES, HALVES] if first == 0 else [HALVES, WHOLES]
    for index, part in enumerate(parts):
        part.to_parquet(tmp_path / f"{index}.parquet")
    pd.DataFrame({"length": [None], "price": [1.0]}).to_parquet(tmp_path / "2.parquet")
    ruleset = RuleSet(
        [Rule([Interval(0, upper=1)], 0.0), Rule([], 2.0)],
        ["length"],
        task="regression",
        domain=Domain([0.0], [4.0]),
    )
    expected = score_source(
        ruleset, [HALVES, WHOLES, pd.DataFrame({"length": [np.nan], "price": 1.0})], "price"
    )
    assert score_source(ruleset, tmp_path, "price").scores == pytest.approx(expected.scores)
    scored_source = score_source(
        ruleset, tmp_path, black_box=lambda rows: rows["length"].fillna(1).to_numpy()
    )
    everything = pd.concat([HALVES, WHOLES, pd.DataFrame({"length": [np.nan]})])
    there = score_source(
        ruleset, [everything.assign(price=everything["length"].fillna(1))], "price"
    )
    assert scored_source.scores == pytest.approx(there.scores)


def test_score_source_rejects_files_of_texts_and_numbers(tmp_path: Path) -> None:
    HALVES.to_parquet(tmp_path / "0.parquet")
    HALVES.astype({"length": str}).to_parquet(tmp_path / "1.parquet")
    ruleset = RuleSet([Rule([Interval(0, upper=1)], 0.0)], ["length"], task="regression")
    for options in ({"target": "price"}, {"black_box": lambda rows: np.zeros(len(rows))}):
        with pytest.raises(ValueError, match=r"'length' of .* must have one type in all files"):
            score_source(ruleset, tmp_path, **options)


@pytest.mark.parametrize(
    "weights", [["1", "2"], pd.to_datetime(["2024-01-01"] * 2), pd.to_timedelta([1, 2], unit="s")]
)
def test_count_source_requires_numeric_weights(weights: Any) -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification")
    frame = pd.DataFrame({"x": [1.0, 2.0], "label": "a", "weight": weights})
    with pytest.raises(ValueError, match=r"weights 'weight' of .* must be numbers"):
        count_source(rules, frame, target="label", sample_weight="weight")
    with pytest.raises(ValueError, match=r"'weight' of .* must hold numbers"):
        sample_source(frame, target="label", sample_weight="weight")


def test_count_source_treats_null_categories_as_missing() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", None]))
    table = pa.table({"x": column, "label": ["a"] * 4})
    rules = RuleSet([Rule([Missing(0)], "a")], ["x"], task="classification")
    assert count_source(rules, table, target="label").n_rows == (2, 2)
    assert count_source(rules, pyarrow.dataset.dataset(table), target="label").n_rows == (2, 2)


@pytest.mark.parametrize("library", ["pandas", "batches", "dask"])
def test_sources_read_frames_with_numbered_columns(library):
    rows = pd.DataFrame([[0.1, 0, 1.0], [0.7, 1, 2.0], [0.9, 0, 1.0]])  # columns 0, 1, 2
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], 0)], ["0"], task="classification", fallback=Fallback(1)
    )
    source = [rows] if library == "batches" else rows
    if library == "dask":
        source = pytest.importorskip("dask.dataframe").from_pandas(rows, npartitions=1)
    counts = count_source(rules, source, "1", sample_weight="2")
    assert counts.n_rows == (1, 2)
    assert counts.classes.by_rule[0].tolist() == [[1.0], [0.0]]
    assert sample_source(source, "1").frame["0"].tolist() == [0.1, 0.7, 0.9]
