from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.bench import Cell, RowFile, csv_text, in_order, read_rows, row_columns

ROW = {
    "data": "iris",
    "task": "classification",
    "black_box": "knn",
    "extractor": "cart",
    "params": '{"max_leaf_nodes": 3}',
    "seed": 0,
    "fold": 1,
    "state": "complete",
    "error": "",
    "n_rules": 3,
    "ice": 0.1 + 0.2,
    "fire": math.nan,
}
BAD = ROW | {"fold": 2, "state": "failed", "error": 'E: "a",\nb\r\nand ± nan', "n_rules": None}


def write(path, *rows):
    file = RowFile(path)
    for row in rows:
        file.add(row)
    return path


def test_row_file_restores_rows(tmp_path):
    table = read_rows(str(write(tmp_path / "rows.csv", ROW, BAD)))
    assert tuple(table.columns) == row_columns()
    first, second = table.to_dict("records")
    assert first["ice"] == 0.1 + 0.2
    assert first["params"] == '{"max_leaf_nodes": 3}'
    assert (first["seed"], first["fold"], first["n_rules"]) == (0, 1, 3)
    assert math.isnan(first["fire"])
    assert second["error"] == 'E: "a", b and ± nan'
    assert second["warnings"] == ""
    assert math.isnan(second["n_rules"])
    assert (tmp_path / "rows.csv").read_bytes() == csv_text(table).encode()


def test_read_rows_keeps_names_like_na(tmp_path):
    row = ROW | {"data": "NA", "extractor": "null", "black_box": "1"}
    read = read_rows(write(tmp_path / "rows.csv", row)).iloc[0]
    assert (read["data"], read["extractor"], read["black_box"]) == ("NA", "null", "1")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_read_rows_skips_incomplete_line(tmp_path_factory, data):
    path = write(tmp_path_factory.mktemp("cut") / "rows.csv", ROW, BAD, ROW | {"fold": 3})
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    n_complete = max(content[:cut].count(b"\n") - 1, 0)
    file = RowFile(path)
    assert len(file.read()) == n_complete
    file.add(ROW | {"fold": 9})
    table = read_rows(path)
    assert table["fold"].tolist() == [*[1, 2, 3][:n_complete], 9]


@settings(max_examples=40, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_row_file_preserves_numbers(tmp_path_factory, value):
    path = write(tmp_path_factory.mktemp("float") / "rows.csv", ROW | {"ice": value})
    assert read_rows(path)["ice"].iloc[0] == value


def test_read_rows_rejects_other_files(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="begins with 'a,b' instead of"):
        RowFile(path)
    assert path.read_text() == "a,b\n1,2\n"
    with pytest.raises(ValueError, match="does not contain the rows of a benchmark"):
        read_rows(path)


def test_in_order_sorts_rows_by_cells(tmp_path):
    table = read_rows(write(tmp_path / "rows.csv", BAD, ROW, ROW | {"ice": 0.5}))
    cells = [Cell("iris", "knn", "cart", 0, fold) for fold in range(4)]
    ordered = in_order(table, cells)
    assert ordered["fold"].tolist() == [1, 2]
    assert ordered["ice"].iloc[0] == 0.5  # the last one, as after a failure that was repeated
    assert isinstance(ordered, pd.DataFrame)


def test_row_file_escapes_formulas(tmp_path):
    texts = ["=1+1", "+1", "-x", "@a", "'=1", "'", "plain", "-0.5"]
    file = RowFile(tmp_path / "rows.csv")
    for text in texts:
        file.add({"data": text, "error": text, "seed": 0, "fold": 0, "fidelity": -0.5})
    cells = [line.split(",") for line in file.path.read_text().splitlines()[1:]]
    assert not [row[0] for row in cells if row[0].lstrip('"').startswith(("=", "+", "-", "@"))]
    assert file.read()["data"].tolist() == texts
    assert file.read()["error"].tolist() == texts
    assert (file.read()["fidelity"] == -0.5).all()
    file.rewrite(file.read())
    assert file.read()["data"].tolist() == texts
