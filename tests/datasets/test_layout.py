"""Title rows, merged headers, units and totals around the data of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skescore.datasets import DatasetError, load_dataset, read_table

RANDOM = np.random.default_rng(0)
N_ROWS = 24
AGES = RANDOM.integers(20, 80, N_ROWS).tolist()
WEIGHTS = RANDOM.normal(70, 10, N_ROWS).round(1).tolist()
OUTCOMES = RANDOM.choice(["ill", "well"], N_ROWS).tolist()
DATA = [list(row) for row in zip(AGES, WEIGHTS, OUTCOMES, strict=True)]
TOTAL = ["Total", round(sum(WEIGHTS), 1), ""]

#: Rows above and below the data, and the names of the columns.
SHEETS = {
    "titles": (
        [["Clinic report 2024", "", ""], ["", "", ""], ["age", "weight", "outcome"]],
        [],
    ),
    "totals": ([["age", "weight", "outcome"]], [["", "", ""], TOTAL]),
    "units": ([["age", "weight", "outcome"], ["[years]", "[kg]", ""]], []),
    "merged": ([["Patient", "", "Result"], ["age", "weight", "outcome"]], []),
    "everything": (
        [
            ["Clinic report", "", ""],
            ["Exported on 2024-01-31", "", ""],
            ["", "", ""],
            ["age", "weight", "outcome"],
            ["years", "kg", "-"],
        ],
        [TOTAL, ["", "", ""], ["Source: the ward's records of the year", "", ""]],
    ),
}
NAMES = {name: ["age", "weight", "outcome"] for name in SHEETS}
#: Names of the columns if cells above them are merged, which text does not show.
MERGED_NAMES = ["Patient age", "Patient weight", "Result outcome"]


def write_sheet(path: Path, rows: Sequence[Sequence[object]], merged: Sequence[str] = ()) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append([None if cell == "" else cell for cell in row])
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path)
    return path


def write_text(path: Path, rows: Sequence[Sequence[object]], separator: str = ";") -> Path:
    lines = [separator.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def assert_is_data(path: Path, name: str, **options: object) -> tuple[str, ...]:
    names = MERGED_NAMES if name == "merged" and path.suffix == ".xlsx" else NAMES[name]
    dataset = load_dataset(path, target=names[2], **options)
    assert list(dataset.X) == names[:2]
    assert dataset.X[names[0]].tolist() == AGES
    assert dataset.X[names[1]].tolist() == WEIGHTS
    assert dataset.y.tolist() == OUTCOMES
    return dataset.findings


@pytest.mark.parametrize("name", SHEETS)
def test_read_table_reads_excel_exports(name, tmp_path):
    above, below = SHEETS[name]
    merged = ["A1:B1"] if name == "merged" else []
    path = write_sheet(tmp_path / "export.xlsx", [*above, *DATA, *below], merged)
    assert assert_is_data(path, name)  # and reports it


@pytest.mark.parametrize("separator", [";", ",", "\t"])
@pytest.mark.parametrize("name", SHEETS)
def test_read_table_reads_text_exports(name, separator, tmp_path):
    above, below = SHEETS[name]
    path = write_text(tmp_path / "export.csv", [*above, *DATA, *below], separator)
    assert assert_is_data(path, name)


def test_titles_without_separators_are_omitted(tmp_path):
    rows = [["Clinic report, of all wards"], [], ["age", "weight", "outcome"], *DATA, ["Total", 3]]
    findings = assert_is_data(write_text(tmp_path / "export.csv", rows), "titles")
    assert "row above the header left out: 'Clinic report, of all wards'" in findings[0]
    assert "row below the data left out: 'Total'" in findings[1]


NAMED_BY_LEVELS = [["No.", "Na", "K", "Na", "K", "kind"]]
#: Headers in several rows, and the resulting names.
LEVELS = {
    "three rows": (
        [["", "Before", "", "After", "", ""], ["", "Blood", "", "Blood", "", ""], *NAMED_BY_LEVELS],
        ["No.", "Before Blood Na", "Before Blood K", "After Blood Na", "After Blood K"],
    ),
    "title and three rows": (
        [
            ["Ward report", "", "", "", "", ""],
            ["Patient", "2023", "", "2024", "", ""],
            ["", "Blood", "", "Blood", "", ""],
            *NAMED_BY_LEVELS,
        ],
        ["Patient No.", "2023 Blood Na", "2023 Blood K", "2024 Blood Na", "2024 Blood K"],
    ),
    "cells merged downwards": (
        [
            ["No.", "Measured", "", "", "", "kind"],
            ["", "Blood", "", "Urine", "", ""],
            ["", "Na", "K", "Na", "K", ""],
        ],
        ["No.", *(f"Measured {name}" for name in ("Blood Na", "Blood K", "Urine Na", "Urine K"))],
    ),
    "years": (
        [["", "2023", "", "2024", "", ""], *NAMED_BY_LEVELS],
        ["No.", "2023 Na", "2023 K", "2024 Na", "2024 K"],
    ),
    "title and two rows": (
        [["Ward report", "", "", "", "", ""], ["", "Blood", "", "Urine", "", ""], *NAMED_BY_LEVELS],
        ["No.", "Blood Na", "Blood K", "Urine Na", "Urine K"],
    ),
    "page and two rows": (
        [
            ["Ward report", "", "", "Page 1", "", ""],
            ["Patient", "Blood", "", "Urine", "", ""],
            *NAMED_BY_LEVELS,
        ],
        ["Patient No.", "Blood Na", "Blood K", "Urine Na", "Urine K"],
    ),
}


def test_units_below_a_stated_header_are_omitted(tmp_path):
    rows = [["table 3"], ["age", "weight"], ["[years]", "[kg]"], *[["41", "70.5"]] * 6]
    table = read_table(write_text(tmp_path / "stated.csv", rows), header=2)
    assert table.frame["weight"].tolist() == [70.5] * 6
    assert any("row 3 holds units" in text for text in table.findings)


@pytest.mark.parametrize(("kind", "has_units"), [("csv", False), ("csv", True), ("xlsx", False)])
@pytest.mark.parametrize("name", LEVELS)
def test_header_in_several_rows_is_joined(name, kind, has_units, tmp_path):
    above, names = LEVELS[name]
    rows = [[i % 7, a, w, 2 * a, w / 2, label] for i, (a, w, label) in enumerate(DATA)]
    units = [["", *["mmol/l"] * 4, ""]] if has_units else []
    write = write_sheet if kind == "xlsx" else write_text
    table = read_table(write(tmp_path / f"levels.{kind}", [*above, *units, *rows]))
    assert list(table.frame)[:5] == names
    assert list(table.frame)[5].endswith("kind")
    assert table.frame.iloc[:, 1].tolist() == AGES
    assert any("are joined to one header" in finding for finding in table.findings)
    is_title = above[0][0] == "Ward report"
    assert any("left out: 'Ward report" in one for one in table.findings) == is_title


UNIQUE = ["No.", "Na", "K", "Ca", "Mg", "kind"]
REPEATED = ["No.", "Na", "K", "Na", "K", "kind"]
#: Upper and lower names of a header in text, and the names that are read.
GROUP_ENDS = {
    "after the names that repeat": (
        ["", "Blood", "", "Urine", "", ""],
        REPEATED,
        ["No.", "Blood Na", "Blood K", "Urine Na", "Urine K", "kind"],
    ),
    "before further names": (
        ["", "Blood", "", "", "Urine", ""],
        ["No.", "Na", "K", "pH", "Na", "K"],
        ["No.", "Blood Na", "Blood K", "pH", "Urine Na", "Urine K"],
    ),
    "no groups are needed": (["Report", "", "", "North", "", ""], UNIQUE, UNIQUE),
    "names above two columns": (["Report", "North", "", "", "", ""], UNIQUE, UNIQUE),
    "groups would not tell names apart": (
        ["Report", "North", "", "", "", ""],
        REPEATED,
        ["No.", "Na", "K", "Na.1", "K.1", "kind"],
    ),
}


@pytest.mark.parametrize("name", GROUP_ENDS)
def test_group_names_in_text_end_by_evidence(name, tmp_path):
    upper, lower, names = GROUP_ENDS[name]
    rows = [[i % 7, a, w, 2 * a, w / 2, label] for i, (a, w, label) in enumerate(DATA)]
    path = write_text(tmp_path / "ends.csv", [upper, lower, *rows])
    table = read_table(path)
    assert list(table.frame) == names
    assert len(table.frame) == len(rows)
    joined = any("are joined" in finding for finding in table.findings)
    assert joined == names[1].startswith("Blood")
    title = " | ".join(filter(None, upper))
    assert joined or f"left out: '{title}'; the header is row 2" in table.findings[0]
    assert joined or "--header 1,2" in table.findings[0]


@pytest.mark.parametrize(
    ("merged", "names"),
    [
        (["B1:C1", "D1:E1"], ["No.", "Blood Na", "Blood K", "Urine Ca", "Urine Mg", "kind"]),
        (["B1:C1"], ["No.", "Blood Na", "Blood K", "Urine Ca", "Mg", "kind"]),
        ([], UNIQUE),
    ],
)
def test_group_names_of_merged_cells_fill_their_columns(merged, names, tmp_path):
    upper = ["", "Blood", "", "Urine", "", ""]
    rows = [[i % 7, a, w, 2 * a, w / 2, label] for i, (a, w, label) in enumerate(DATA)]
    path = write_sheet(tmp_path / "ends.xlsx", [upper, UNIQUE, *rows], merged)
    table = read_table(path)
    assert list(table.frame) == names
    assert table.frame.iloc[:, 1].tolist() == AGES


@pytest.mark.parametrize(
    "above",
    [
        ["Report", "", "2024", "", "", ""],
        ["Date:", "01.02.2024", "Ward:", "7", "", ""],
        ["Ward report", "", "", "", "", ""],
    ],
)
def test_titles_do_not_become_group_names(above, tmp_path):
    header = ["No.", "Na", "K", "Ca", "Mg", "kind"]
    rows = [[i % 7, a, w, 2 * a, w / 2, kind] for i, (a, w, kind) in enumerate(DATA)]
    table = read_table(write_text(tmp_path / "titled.csv", [above, header, *rows]))
    assert list(table.frame) == header


def test_header_parameter_states_rows(tmp_path):
    above = [["a", "b", "c"], ["1", "2", "3"], ["age", "weight", "outcome"]]
    path = write_text(tmp_path / "export.csv", [*above, *DATA])
    assert_is_data(path, "titles", header=3)
    assert_is_data(path, "titles", skip_rows=2)
    joined = read_table(path, header=[1, 3]).frame
    assert list(joined) == ["a age", "b weight", "c outcome"]
    with pytest.raises(DatasetError, match="header must be"):
        load_dataset(path, target="c", header=400)
    with pytest.raises(DatasetError, match="header must be numbers of rows"):
        load_dataset(path, target="c", header=0)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,p\n3,4,q\n5,6,p\n",
        ",value,y\n1,2,p\n2,4,q\n3,6,p\n",
        "name,kind\nTotal,oil\nShell,oil\nAral,gas\n",
        "kg,m,y\n1,2,p\n3,4,q\n",
        "size,unit\nkg,m\ncm,g\nkm,t\n",
        "a,b,c\nx,,\ny,,\nz,,1\n",
    ],
)
def test_read_table_does_not_change_plain_tables(text, tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text(text, encoding="utf-8")
    expected = pd.read_csv(path)
    table = read_table(path, categories=[n for n in expected if not n.startswith("Unnamed")])
    assert len(table.frame) == len(expected)
    words = ("above the header", "below the data", "holds units", "joined")
    assert not any(word in finding for finding in table.findings for word in words)


def test_totals_row_does_not_make_an_identifier_a_feature(tmp_path):
    rows = [[i + 1, *row] for i, row in enumerate(DATA)]
    for total in (["Total", "", 3, ""], ["all", "", 3, ""]):
        path = write_text(tmp_path / "t.csv", [["id", "age", "weight", "outcome"], *rows, total])
        for na_values in ((), ("Total",), ("all",)):
            dataset = load_dataset(path, target="outcome", na_values=na_values)
            assert list(dataset.X) == ["age", "weight"]
