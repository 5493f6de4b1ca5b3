"""Codes that look like numbers: 01 and 1 are different."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skescore.black_boxes import make_black_box
from skescore.datasets import DatasetError, Preparation, load_dataset, read_table
from skescore.registry import make_extractor

ZIPS = ["01234", "1234", "00501", "501"] * 8


@pytest.fixture
def codes(tmp_path: Path) -> Path:
    path = tmp_path / "codes.csv"
    labels = {"01234": "01", "1234": "1", "00501": "001", "501": "1"}
    lines = [f"{zip_},{i % 5 + 1},{i % 3}.5,{labels[zip_]}" for i, zip_ in enumerate(ZIPS)]
    path.write_text("\n".join(["zip,code,x,y", *lines]) + "\n")
    return path


def test_declared_columns_keep_leading_zeros(codes: Path) -> None:
    assert read_table(codes, categories="zip").frame["zip"].tolist() == ZIPS
    with_comma = read_table(codes, categories=["zip"], decimal=",").frame
    assert with_comma["zip"].tolist() == ZIPS


def test_labels_with_leading_zeros_are_distinct_classes(codes: Path) -> None:
    data = load_dataset(codes, target="y", categories="zip")
    assert data.class_counts == {"001": 8, "01": 8, "1": 16}
    plain = load_dataset(codes, target="code", drop="y", categories="zip")
    assert plain.y.dtype == "int64"  # numbers stay unchanged


def test_labels_with_leading_zeros_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("x,y\n1,01\n2,?\n3,02\n4,01\n", encoding="utf-8")
    assert load_dataset(path, target="y").y.tolist() == ["01", "02", "01"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_leading_zeros_are_found_in_any_encoding(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("x,y,z\n1,01,NA\n2,02,b\n3,01,b\n4,02,c\n5,01,c\n", encoding=encoding)
    data = load_dataset(path, target="y", encoding=encoding)
    assert data.y.tolist() == ["01", "02", "01", "02", "01"]
    assert "'NA' in column 'z' is read as missing (1 row)" in data.findings


def test_preparation_reads_codes_of_texts_as_texts(codes: Path) -> None:
    preparation = Preparation.for_features(["x", "zip"], {"zip": ["00501", "01234"]})
    assert read_table(codes, preparation=preparation).frame["zip"].tolist() == ZIPS
    trained = read_table(codes, categories="zip").preparation
    second_table = read_table(codes, preparation=Preparation.from_dict(trained.to_dict()))
    assert second_table.frame["zip"].tolist() == ZIPS


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1000", "10.5", "1000"], ["1000", "10.5", "1000"]),
        (["1", "2", "", "2"], ["1", "2", np.nan, "2"]),
        (["1.0", "2.0", "", "2.0"], ["1", "2", np.nan, "2"]),  # whole numbers, some missing
        (["1.0", "1", "1.10", "1.1"], ["1.0", "1", "1.10", "1.1"]),  # versions
        (["+1", "1", "1e3", "1000"], ["+1", "1", "1e3", "1000"]),
    ],
)
def test_codes_keep_written_form(cells: list[str], read: list[object], tmp_path: Path) -> None:
    path = tmp_path / "codes.csv"
    path.write_text("\n".join(["code,x", *(f"{cell},{i}.5" for i, cell in enumerate(cells))]))
    values = read_table(path, categories="code").frame["code"].tolist()
    assert pd.Series(values, dtype=object).equals(pd.Series(read, dtype=object))


def test_lost_leading_zeros_are_reported(codes: Path) -> None:
    findings = load_dataset(codes, target="y").findings
    assert any("'zip'" in text and "--category zip" in text for text in findings)
    assert any(
        "'code' holds 5 different integers and is named like a code" in text for text in findings
    )


def test_workbooks_keep_codes_that_are_texts(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "codes.xlsx"
    pd.DataFrame({"zip": ZIPS, "x": range(len(ZIPS))}).to_excel(path, index=False)
    assert read_table(path, categories="zip").frame["zip"].tolist() == ZIPS


@pytest.mark.parametrize("name", ["cart", "trepan", "real"])
def test_extractors_explain_declared_number_codes(name: str, codes: Path) -> None:
    data = load_dataset(codes, target="y", categories=["zip", "code"])
    assert data.categories == ("zip", "code")
    black_box = make_black_box("decision-tree", data.task, 0, data.categories)
    extractor = make_extractor(name, black_box).fit(data.X, data.y)
    assert (extractor.predict(data.X) == data.y).all()
    assert {v for rule in extractor.rules_ for c in rule.conditions for v in c.values} <= {*ZIPS}


def test_load_dataset_rejects_pipes_and_devices(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes with names")
    os.mkfifo(tmp_path / "data.csv")
    for path in (tmp_path / "data.csv", Path("/dev/zero")):
        with pytest.raises(DatasetError, match="a device or a pipe"):
            load_dataset(path, target="y")
