"""Parquet files are found, named and typed alike by all packages that read them."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from skescore.rules import Interval, OneOf, Rule, RuleSet
from skescore.sources import DataSource, SourceError, count_source, sample_source

POSITIVE = RuleSet([Rule([Interval(0, lower=0)], 1)], ["x"], task="classification", classes=[0, 1])


@pytest.fixture(params=["duckdb", "pyarrow"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read Parquet files by DuckDB, or by Arrow as if DuckDB were not installed."""
    if request.param == "pyarrow":
        find_spec = importlib.util.find_spec
        hidden = ("duckdb",)
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name: None if name in hidden else find_spec(name)
        )
    return str(request.param)


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


def covered(source: Any, rules: RuleSet = POSITIVE, **options: Any) -> tuple[int, int]:
    """Return the numbers of covered and of other rows."""
    return count_source(rules, DataSource(source, "label", **options)).n_rows


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "it's", "{a,b}", "h=5", "a\\b", "é"])
def test_file_names_are_literal(name: str, reader: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"{name}.parquet", x=[1.0, 1.0, -1.0], label=[1, 0, 0])
    for other in ("a1", "ab", "a", "ax"):
        write(tmp_path / f"{other}.parquet", x=[1.0] * 7, label=[1] * 7)
    assert covered(path) == (2, 1)
    assert covered(str(path)) == (2, 1)


def test_folders_contain_the_files_that_pyarrow_finds(reader: str, tmp_path: Path) -> None:
    folder = tmp_path / "_data"
    names = ["a.parquet", "b.PARQUET", "part-0001", "c.parq", "deep/er/d.parquet", "x=5/e.parquet"]
    names += [".b.parquet", "_b.parquet", "_temporary/f.parquet", ".hidden/g.parquet", "deep/_h"]
    for exponent, name in enumerate(names):
        write(folder / name, x=[1.0] * 2**exponent, label=[1] * 2**exponent)
    write(tmp_path / "elsewhere" / "i.parquet", x=[1.0] * 2**11, label=[1] * 2**11)
    os.symlink(tmp_path / "elsewhere", folder / "link")
    (folder / "_SUCCESS").touch()
    expected = pyarrow.dataset.dataset(folder, format="parquet").count_rows()
    assert covered(folder) == (expected, 0)
    assert expected == 0b100000111111
    os.symlink(folder, folder / "deep" / "loop")
    assert covered(folder) == (expected, 0)


def test_file_of_another_format_is_rejected(reader: str, tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", x=[1.0], label=[1])
    (tmp_path / "notes.txt").write_text("none of the rows")
    with pytest.raises(SourceError, match="no partial result was used"):
        covered(tmp_path)


def test_globs_skip_hidden_names_unless_spelled_out(reader: str, tmp_path: Path) -> None:
    for exponent, name in enumerate(["a", "_b", ".c", "_old/d", "new/e"]):
        write(tmp_path / f"{name}.parquet", x=[1.0] * 2**exponent, label=[1] * 2**exponent)
    assert covered(f"{tmp_path}/**/*.parquet") == (0b10001, 0)
    assert covered(f"{tmp_path}/*.parquet") == (0b1, 0)
    assert covered(f"{tmp_path}/_*.parquet") == (0b10, 0)


def test_column_names_are_case_sensitive(reader: str, tmp_path: Path) -> None:
    columns = {"x": [1.0, -1.0, -1.0], "X": [1.0, 1.0, -1.0], "x_1": [1.0, 1.0, 1.0]}
    path = write(tmp_path / "a.parquet", **columns, label=[1, 0, 0])
    for name, values in columns.items():
        rules = POSITIVE.replace(feature_names=[name])
        assert covered(path, rules)[0] == sum(value > 0 for value in values)
    assert sorted(sample_source(path, "label").frame.columns) == sorted([*columns, "label"])
    lower = write(tmp_path / "b" / "b.parquet", x=[1.0], label=[1])
    with pytest.raises(ValueError, match=r"feature 'X'.*Did you mean 'x'"):
        covered(lower, POSITIVE.replace(feature_names=["X"]))


def test_hive_folders_do_not_replace_columns(reader: str, tmp_path: Path) -> None:
    for value in (-5, 5):
        write(tmp_path / f"x={value}" / "label=7" / "a.parquet", x=[1.0], label=[1], w=[2.0])
        write(tmp_path / f"x={value}" / "w=0" / "a.parquet", x=[-1.0], label=[0], w=[1.0])
    assert covered(tmp_path) == (2, 2)
    counts = count_source(POSITIVE, tmp_path, "label", sample_weight="w")
    assert counts.alone.tolist() == [4.0]
    with pytest.raises(ValueError, match="must not have the name of the column 'x'"):
        covered(tmp_path, partitioning="hive")


def test_hive_folders_are_columns_on_request(reader: str, tmp_path: Path) -> None:
    for value, kind in ((-5, "a b"), (5, "01"), ("__HIVE_DEFAULT_PARTITION__", "é%20")):
        write(tmp_path / f"x={value}" / f"kind={kind}" / "part", label=[1, 1])
    with pytest.raises(ValueError, match="feature 'x'"):
        covered(tmp_path)
    assert covered(tmp_path, partitioning="hive") == (2, 4)
    rules = RuleSet([Rule([OneOf(0, ["01", "a b"])], 1)], ["kind"], task="classification")
    assert covered(tmp_path, rules, partitioning="hive") == (4, 2)
    write(tmp_path / "part", label=[1])
    with pytest.raises(ValueError, match="in one folder x="):
        covered(tmp_path, partitioning="hive")
    with pytest.raises(ValueError, match="partitioning must be"):
        DataSource(tmp_path, "label", partitioning="directory")


BIG = 2**53
SPLIT = RuleSet(
    [Rule([OneOf(0, [BIG + 1])], 1), Rule([OneOf(0, [BIG])], 0)],
    ["x"],
    task="classification",
    classes=[0, 1],
)


def test_integers_beyond_floats_stay_distinct(reader: str, tmp_path: Path) -> None:
    values = [BIG, BIG + 1, BIG + 1, BIG + 2, None]
    write(tmp_path / "a.parquet", x=values, label=[1] * 5)
    for source in (tmp_path, pa.table({"x": values, "label": [1] * 5})):
        assert count_source(SPLIT, source, "label").alone.tolist() == [2, 1]
    labels = write(tmp_path / "b" / "b.parquet", x=[1.0] * 4, label=values[:4])
    assert count_source(POSITIVE, labels, "label").classes.labels == (
        0,
        1,
        *sorted(set(values[:4])),
    )


def test_integers_and_floats_are_not_merged(reader: str, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    write(folder / "0.parquet", x=[BIG, BIG + 1], label=[1, 1])
    write(folder / "1.parquet", x=[float(BIG), 0.5], label=[1, 1])
    with pytest.raises(ValueError, match=r"one type in all files.*cannot represent"):
        covered(folder)
    write(folder / "0.parquet", x=[BIG, 7], label=[1, 1])
    assert count_source(SPLIT, folder, "label").alone.tolist() == [0, 2]
    write(folder / "1.parquet", x=pa.array([2**63 - 1, BIG], pa.uint64()), label=[1, 1])
    assert count_source(SPLIT, folder, "label").alone.tolist() == [0, 2]


def test_differing_columns_are_rejected(reader: str, tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", x=[1.0], label=[1], y=["a"])
    write(tmp_path / "1.parquet", y=["a"], x=[1.0], label=[1], z=[1])
    assert covered(tmp_path) == (2, 0)
    with pytest.raises(ValueError, match=r"must have the same columns.*'z'"):
        sample_source(tmp_path, "label")
    write(tmp_path / "1.parquet", y=["a"], label=[1])
    with pytest.raises(ValueError, match=r"must have the column 'x', but .*1\.parquet has none"):
        covered(tmp_path)
    for values in (["1"], [True], [pd.Timestamp("2024-01-01")]):
        write(tmp_path / "1.parquet", x=values, label=[1])
        with pytest.raises(ValueError, match="one type in all files"):
            covered(tmp_path)


def test_texts_are_not_compared_with_numbers(reader: str, tmp_path: Path) -> None:
    texts = ["1", "01", "1.0", " 1", "x"]
    path = write(tmp_path / "a.parquet", x=texts, label=[1] * 5)
    rules = RuleSet([Rule([OneOf(0, [1])], 1)], ["x"], task="classification", classes=[0, 1])
    if reader == "pyarrow":
        with pytest.warns(UserWarning, match="Rules compare x0 with numbers"):
            assert covered(path, rules) == (0, 5)
        return
    with pytest.raises(ValueError, match="'x' with numbers, but it holds texts"):
        covered(path, rules)
    assert covered(path, rules.replace(rules=[Rule([OneOf(0, ["1"])], 1)])) == (1, 4)
    numbers = write(tmp_path / "b.parquet", x=[1.0, 2.0], label=[1, 1])
    with pytest.raises(ValueError, match="'x' with texts, but it holds numbers"):
        covered(numbers, rules.replace(rules=[Rule([OneOf(0, ["1"])], 1)]))


def test_changed_files_are_an_error(reader: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", x=[1.0], label=[1])
    with (
        pytest.raises(SourceError, match=r"a.parquet changed while it was read"),
        DataSource(path, "label").open(["x"]),
    ):
        write(path, x=[1.0, 2.0], label=[1, 1])


def test_decimals_are_read_and_dates_rejected(reader: str, tmp_path: Path) -> None:
    decimals = pa.array(["0.10000000000000000001", "5.00000000000000000001", "-1", None])
    path = write(
        tmp_path / "a.parquet",
        x=decimals.cast(pa.decimal128(38, 20)),
        day=pd.to_datetime(["2024-01-01"] * 4),
        label=[1] * 4,
    )
    rules = [[Interval(0, upper=5, lower=0)], [OneOf(0, [0.1])]]
    results = [covered(path, POSITIVE.replace(rules=[Rule(c, 1)])) for c in rules]
    assert results == [(2, 2), (1, 3)]  # decimals are the nearest floats
    with pytest.raises((ValueError, SourceError), match="Convert"):
        covered(path, POSITIVE.replace(feature_names=["day"]))
    with pytest.raises(ValueError, match="must hold strings, numbers"):
        count_source(POSITIVE, path, "day")


def test_integers_of_several_files_must_fit_64_bits(reader: str, tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", x=[1, None], label=[1, 1])
    write(tmp_path / "1.parquet", x=pa.array([2**63 - 1], pa.uint64()), label=[1])
    rules = RuleSet(
        [Rule([OneOf(0, [2**63 - 1])], 1)], ["x"], task="classification", classes=[0, 1]
    )
    assert covered(tmp_path, rules) == (1, 2)
    write(tmp_path / "1.parquet", x=pa.array([2**63], pa.uint64()), label=[1])
    message = "Write the files with one type" if reader == "duckdb" else "not in range"
    with pytest.raises(SourceError, match=message):
        covered(tmp_path, rules)
