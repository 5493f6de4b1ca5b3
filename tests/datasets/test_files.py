from __future__ import annotations

import csv
import gzip
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skescore.datasets import DatasetError, load_dataset

GOOD = "a,b,y\n1.5,2,no\n0.5,3,yes\n2.5,4,no\n"


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "data.csv") -> Path:
        path = tmp_path / name
        content = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
        return path

    return write


@pytest.fixture
def save(tmp_path):
    pytest.importorskip("pyarrow")

    def save(frame: pd.DataFrame, name: str = "data.parquet", **options) -> Path:
        frame.to_parquet(tmp_path / name, engine="pyarrow", **options)
        return tmp_path / name

    return save


def refusal(path, **options) -> str:
    options.setdefault("target", "y")
    with pytest.raises(DatasetError) as caught:
        load_dataset(path, **options)
    assert Path(str(path)).name in str(caught.value)
    return str(caught.value)


# Valid files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.csv.gz", "DATA.CSV", "data.txt"])
def test_load_dataset_detects_any_separator(write, name, separator):
    dataset = load_dataset(write(GOOD.replace(",", separator), name), target="y")
    assert dataset.X.to_dict("list") == {"a": [1.5, 0.5, 2.5], "b": [2, 3, 4]}
    assert dataset.y.tolist() == ["no", "yes", "no"]
    assert dataset.task == "classification"
    assert dataset.name.lower() == "data"


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_commas_in_names_and_numbers_do_not_separate(write, separator):
    rows = [["size, net", "age", "y"], ["1,5", "20", "a"], ["2,5", "30", "b"], ["0,5", "40", "a"]]
    table = "\n".join(separator.join(row) for row in rows)
    data = load_dataset(write(table.encode()), target="y")
    assert data.X["size, net"].tolist() == [1.5, 2.5, 0.5]


def test_separator_is_shared_by_header_and_rows(write):
    path = write("length, cm;width, cm;y\n1.5;2;a\n3;4;b\n")
    assert load_dataset(path, target="y").X.columns.tolist() == ["length, cm", "width, cm"]
    path = write('"a;b",c,y\n1,2,p\n3,4,q\n')
    assert load_dataset(path, target="y").X.columns.tolist() == ["a;b", "c"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n", "  \n"])
def test_load_dataset_accepts_any_line_ends_and_byte_order_mark(write, start, separator, end):
    lines = ["a, b, y", "1, 2, é", "", "3, 4, ü"]
    content = (start + end.join(lines)).replace(",", separator)
    dataset = load_dataset(write(content), target="y")
    assert dataset.X.to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    assert dataset.y.tolist() == ["é", "ü"]


def test_dataset_has_checksum_and_source_of_file(write):
    path = write(GOOD)
    dataset = load_dataset(str(path), target="y")
    assert dataset.checksum == hashlib.sha256(GOOD.encode()).hexdigest()
    assert dataset.source == str(path)


def test_load_dataset_expands_home_folder(write, tmp_path, monkeypatch):
    write(GOOD)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert load_dataset("~/data.csv", target="y").source == "~/data.csv"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.floats(-1e12, 1e12),
            st.integers(-(2**60), 2**60),
            st.booleans(),
            st.sampled_from(["p", "q;r", "s,t", 'u"v']),
        ),
        min_size=3,
        max_size=12,
    ).filter(lambda rows: len({row[3] for row in rows}) > 1),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
def test_load_dataset_restores_written_files(tmp_path, rows, separator):
    path = tmp_path / "round.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([["f", "i", "b", "y"], *rows])
    dataset = load_dataset(path, target="y")
    assert dataset.X["f"].tolist() == pytest.approx([row[0] for row in rows], rel=1e-15)
    assert dataset.X["i"].tolist() == [row[1] for row in rows]
    assert dataset.X["b"].tolist() == [int(row[2]) for row in rows]
    assert dataset.y.tolist() == [row[3] for row in rows]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.text(alphabet='y,;\t\n\r" ab12.-', max_size=60).map(lambda text: text.encode()),
        st.text(alphabet="1234.,\n nNaAx", max_size=60).map(lambda text: b"x,y\n" + text.encode()),
    ),
    missing=st.sampled_from(["keep", "error", "drop"]),
)
def test_load_dataset_reads_or_rejects_any_bytes(tmp_path, content, missing):
    path = tmp_path / "any.csv"
    path.write_bytes(content)
    try:
        dataset = load_dataset(path, target="y", missing=missing)
    except DatasetError:
        return
    assert {str(dtype) for dtype in dataset.X.dtypes} <= {"int64", "float64", "object"}
    for name, column in dataset.X.items():
        complete = column.dropna()
        if name in dataset.categories:
            assert {type(value) for value in complete} <= {str}
        else:
            assert np.isfinite(complete.to_numpy(float)).all()
        assert missing == "keep" or len(complete) == len(column)
    assert dataset.X.shape[1] > 0
    assert len(dataset.X) == len(dataset.y) > 1
    assert not dataset.y.isna().any()
    assert dataset.y.nunique() > 1


# Invalid files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "is empty: it needs a header line and data rows"),
        ("\n \n\n", "is empty: it needs a header line and data rows"),
        ("a,y\n1,p\n2,q,7\n", "line 3 (the header is line 1) has 3 cells, the header 2"),
        ("a,y\n1,p,3\n2,q,7\n", "data rows have more cells than the header, which has 2"),
        ('a,y\n1,p\n2,"q\n3,p\n', "a quotation mark opened in line 3 (the header is line 1)"),
        ("é,y\nä,ö\nü,p\n".encode() + b"1,caf\xe9\n", "encoding UTF-8: line 4 (the header is"),
        (b"a,\xc3\xa4\xc3\xb6\xe9,y\n1,2,p\n3,4,q\n", "line 1 (the header is line 1) has the byte"),
        ("a,y\n1,p\n2,q\n".encode("utf-16-le"), "--encoding utf-16-le"),
        (b"a,y\n\x00\x01\x02\x03", "is binary, not text"),
        (b"PAR1....", "is a Parquet file: rename it to end in .parquet"),
        (gzip.compress(b"a,y\n", mtime=0), "is compressed with gzip: rename it to end in .gz"),
        (b"PK\x03\x04rest", "is a zip archive or a spreadsheet"),
    ],
)
def test_load_dataset_rejects_invalid_files(write, content, part):
    assert part in refusal(write(content))


def test_load_dataset_detects_encoding_late_in_a_long_file(write):
    rows = b"".join(b"%d,p\n%d,q\n" % (i, i) for i in range(20_000))
    path = write(b"a,y\n" + rows + b"7,\xfc\n")
    assert load_dataset(path, target="y").y.iloc[-1] == "ü"
    text = refusal(path, encoding="utf-8")
    assert "line 40002 (the header is line 1) has the byte 0xfc" in text
    assert "--encoding cp1252" in text


def test_load_dataset_rejects_damaged_gzip(write, tmp_path):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(GOOD.encode() * 2000)[:-20])
    assert "damaged" in refusal(path)
    path.write_bytes(GOOD.encode())
    assert "damaged" in refusal(path)


def test_load_dataset_rejects_folders_and_forbidden_files(write, tmp_path, monkeypatch):
    assert "is a folder" in refusal(tmp_path)
    path = write(GOOD)

    def forbid(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", forbid)
    assert "cannot be read: Permission denied" in refusal(path)


def test_load_dataset_rejects_unknown_file_types(write):
    text = refusal(write(GOOD, "data.ods"))
    assert "unknown ending '.ods'" in text
    assert "Save the table as CSV" in text


# Parquet ------------------------------------------------------------------------------------------


def test_parquet_types_become_numbers_and_labels(save):
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, 2, 3], dtype="Int64"),
            "flag": pd.array([True, False, True], dtype="boolean"),
            "single": np.array([0.5, 1.5, 2.5], dtype=np.float32),
            "small": np.array([1, 2, 3], dtype=np.uint8),
            "levels": pd.Categorical([10, 20, 10]),
            "y": pd.Categorical(["p", "q", "p"]),
        }
    )
    dataset = load_dataset(save(frame), target="y")
    assert dataset.X.to_dict("list") == {
        "whole": [1, 2, 3],
        "flag": [1, 0, 1],
        "single": [0.5, 1.5, 2.5],
        "small": [1, 2, 3],
        "levels": [10, 20, 10],
    }
    assert {str(dtype) for dtype in dataset.X.dtypes} <= {"int64", "float64"}
    assert dataset.y.tolist() == ["p", "q", "p"]


def test_parquet_digit_texts_stay_texts(save):
    frame = pd.DataFrame({"x": [1, 2, 3], "y": ["1", "2", "1"]})
    dataset = load_dataset(save(frame), target="y")
    assert dataset.y.tolist() == ["1", "2", "1"]


def test_parquet_booleans_may_be_missing(save):
    frame = pd.DataFrame({"x": [1, 2, 3], "y": pd.array([True, None, False], dtype="boolean")})
    path = save(frame)
    assert "the target column 'y' 1 (first in data row 2)" in refusal(path, missing="error")
    assert load_dataset(path, target="y").y.tolist() == [True, False]
    dataset = load_dataset(path, target="y", missing="drop")
    assert dataset.y.tolist() == [True, False]
    assert dataset.y.dtype == bool


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2024-01-30", "2024-02-01"]),
        pd.to_datetime(["2024-01-30", "2024-02-01"]).tz_localize("UTC"),
        pd.Series(pd.to_datetime(["2024-01-30", "2024-02-01"])).dt.date,
    ],
)
def test_parquet_dates_are_split_into_parts(save, values):
    path = save(pd.DataFrame({"when": values, "x": [1, 2], "y": ["p", "q"]}))
    assert load_dataset(path, target="y").X.to_dict("list") == {
        "when: month": [1, 2],
        "when: weekday": ["Tuesday", "Thursday"],
        "when: days since 2024-01-30": [0, 2],
        "x": [1, 2],
    }
    assert "target 'when' holds dates" in refusal(path, target="when", drop="y")


def test_parquet_time_spans_become_days(save):
    spans = pd.to_timedelta([12, 36], unit="h")
    path = save(pd.DataFrame({"span": spans, "y": ["p", "q"]}))
    assert load_dataset(path, target="y").X["span"].tolist() == [0.5, 1.5]


def test_parquet_named_index_becomes_a_column(save):
    frame = pd.DataFrame({"x": [1, 2], "y": ["p", "q"]})
    named = frame.set_index(pd.Index([5, 6], name="key"))
    assert load_dataset(save(named), target="y").X.to_dict("list") == {"key": [5, 6], "x": [1, 2]}
    unnamed = frame.set_index(pd.Index([5, 6]))
    assert load_dataset(save(unnamed), target="y").X.to_dict("list") == {"x": [1, 2]}


def test_parquet_ignores_partition_like_folder_names(save, tmp_path):
    (tmp_path / "year=2020").mkdir()
    path = save(pd.DataFrame({"x": [1, 2], "y": ["p", "q"]}), "year=2020/data.parquet")
    assert load_dataset(path, target="y").X.columns.tolist() == ["x"]


def test_parquet_duplicate_names_are_rejected(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "twice.parquet"
    parquet.write_table(pa.table([[1, 2], [3, 4], ["p", "q"]], names=["a", "a", "y"]), path)
    assert "duplicate column names 'a'" in refusal(path)


def test_parquet_files_with_damage_are_rejected(write, save):
    assert "is not a Parquet file" in refusal(write(GOOD, "data.parquet"))
    assert "damaged Parquet file" in refusal(write(b"PAR1" + b"garbage" * 10, "data.parquet"))
    path = save(pd.DataFrame({"x": [1, 2], "y": ["p", "q"]}))
    path.write_bytes(path.read_bytes()[:-30])
    assert "damaged Parquet file" in refusal(path)


def test_parquet_metadata_with_damage_is_rejected(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_pandas(pd.DataFrame({"x": [1.5, 2.0], "y": ["p", "q"]}))
    notes = table.schema.metadata[b"pandas"].replace(b'"float64"', b'"no type"')
    path = tmp_path / "data.parquet"
    parquet.write_table(table.replace_schema_metadata({b"pandas": notes}), path)
    assert "damaged Parquet file" in refusal(path)


def test_parquet_without_pyarrow_states_command(write, monkeypatch):
    def without_pyarrow(module):
        raise ModuleNotFoundError(f"No module named {module!r}", name="pyarrow")

    monkeypatch.setattr("skescore._optional.importlib.import_module", without_pyarrow)
    text = refusal(write(b"PAR1....", "data.parquet"))
    assert "'pyarrow', which is not installed" in text
    assert 'pip install "pyarrow>=16"' in text
