"""Totals, headings and repeated headers among the rows of a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skescore.datasets import DatasetError, load_dataset, read_table

NAMES = ["shop", "staff", "sales", "kind"]


def make_rows(n_rows: int, seed: int, *, has_kind: bool = True) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [
        [
            f"Shop {i}",
            str(random.integers(1, 40)),
            f"{random.uniform(1, 9e4):.2f}",
            str(random.choice(["a", "b"])) if has_kind else "",
        ]
        for i in range(n_rows)
    ]


def total_of(rows: list[list[str]], label: str, statistic=sum) -> list[str]:
    """Return the row of totals, by the plainest loop."""
    staff = statistic([int(row[1]) for row in rows])
    sales = statistic([float(row[2]) for row in rows])
    return [label, f"{staff:.4f}".rstrip("0").rstrip("."), f"{sales:.2f}", ""]


def mean(values):
    return sum(values) / len(values)


def read_staff(rows: list[list[str]], folder: Path) -> tuple[list[float], str]:
    """Return the staff of each row that is read from a file, and what is reported."""
    path = folder / "shops.csv"
    names = NAMES[: len(rows[0])]
    path.write_text("\n".join(map(",".join, [names, *rows])) + "\n", encoding="utf-8")
    table = read_table(path, features="staff")
    return table.frame["staff"].tolist(), "; ".join(table.findings)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(2, 9), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([("Total of {}", sum), ("{} Subtotal", sum), ("Average {}", mean)]),
)
def test_read_table_omits_totals_after_blocks_only(tmp_path, seed, sizes, has_kind, form):
    label, statistic = form
    rows, staff = [], []
    for number, size in enumerate(sizes):
        block = make_rows(size, seed % 2**31 + number, has_kind=has_kind)
        rows += block
        staff += [int(row[1]) for row in block]
        rows.append(total_of(block, label.format(f"block {number}"), statistic))
    rows += make_rows(3, seed % 2**31 + 99, has_kind=has_kind)
    staff += [int(row[1]) for row in rows[-3:]]
    columns = slice(len(NAMES) if has_kind else 3)
    staff_read, finding = read_staff([row[columns] for row in rows], tmp_path)
    assert staff_read == staff
    assert "among the data left out (sums or means of other rows): " in finding


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.integers(5, 40), st.sampled_from(["Total", "Sum", "Mean"]))
def test_read_table_keeps_data_named_like_a_total(tmp_path, seed, n_rows, name):
    rows = make_rows(n_rows, seed)
    rows[-1][3] = rows[0][3]  # a word that another row has in the same column
    rows[seed % n_rows][0] = name
    staff, finding = read_staff(rows, tmp_path)
    assert staff == [int(row[1]) for row in rows]
    assert "left out" not in finding


@pytest.mark.parametrize("is_last_sum", [True, False])
def test_load_dataset_omits_sums_without_a_label(tmp_path, is_last_sum):
    numbers = np.random.default_rng(0).normal(20, 5, 40).round(2)
    rows = [f"{kind},{number}" for kind, number in zip("ab" * 20, numbers, strict=True)]
    path = tmp_path / "sums.csv"
    last = numbers.sum() if is_last_sum else numbers.sum() + 1
    path.write_text("\n".join(["kind,y", *rows, f",{last:.2f}"]), encoding="utf-8")
    dataset = load_dataset(path, target="y")
    text = "the last row is left out, because it holds only sums of the rows above"
    assert (text in dataset.findings) == is_last_sum
    assert len(dataset.y) == 41 - is_last_sum


@pytest.mark.parametrize(("separator", "suffix"), [(",", "csv"), (";", "csv"), ("\t", "tsv")])
def test_load_dataset_omits_subtotals(separator, suffix, tmp_path):
    blocks = [make_rows(12, seed) for seed in range(3)]
    plain, printed = [NAMES], [NAMES]
    for number, block in enumerate(blocks):
        plain += block
        printed += [*block, total_of(block, f"Subtotal {number}"), [""] * 4, NAMES]
    printed += [
        total_of([*blocks[0], *blocks[1], *blocks[2]], "Grand total"),
        ["* unaudited", "", "", ""],
    ]
    frames, findings = [], []
    for name, rows in (("plain", plain), ("printed", printed)):
        path = tmp_path / f"{name}.{suffix}"
        path.write_text("\n".join(separator.join(row) for row in rows), encoding="utf-8")
        dataset = load_dataset(path, target="kind")
        frames.append(dataset.X)
        findings.append("; ".join(dataset.findings))
    assert frames[0].equals(frames[1])
    assert "(sums or means of other rows): 'Subtotal 0', 'Subtotal 1'" in findings[1]
    assert "(repeated header)" in findings[1]
    assert "among the data left out" not in findings[0]


def test_read_table_omits_headings_of_groups(tmp_path):
    rows = [["North", "", "", ""], *make_rows(6, 0), ["South", "", "", ""], *make_rows(6, 1)]
    staff, finding = read_staff(rows, tmp_path)
    assert staff == [int(row[1]) for row in rows if row[1]]
    assert "2 rows among the data left out (headings of the rows below them)" in finding
    gaps = [*make_rows(6, 0), ["Shop 9", "", "", ""], *make_rows(6, 1)]  # a row without values
    assert len(read_staff(gaps, tmp_path)[0]) == len(gaps)


@pytest.mark.parametrize("is_merged", [False, True])
def test_load_dataset_repeats_labels_of_blocks(tmp_path, is_merged):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["region", *NAMES])
    for region, start in (("North", 2), ("South", 14), ("West", 26)):
        for i, (shop, staff, sales, kind) in enumerate(make_rows(12, start)):
            book.active.append([None if i else region, shop, int(staff), float(sales), kind])
        if is_merged:
            book.active.merge_cells(f"A{start}:A{start + 11}")
    book.save(tmp_path / "blocks.xlsx")
    dataset = load_dataset(tmp_path / "blocks.xlsx", target="kind")
    assert dataset.X["region"].tolist() == ["North"] * 12 + ["South"] * 12 + ["West"] * 12
    expected = "repeated in the rows below it (3 blocks)"
    if is_merged:
        expected = "3 merged cells of column 'region' are repeated in the rows below"
    assert expected in dataset.findings[0]


def test_load_dataset_repeats_merged_cells_in_any_column(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["depth", "batch", "soil", "y"])
    for row in range(24):
        first = row % 8 == 0
        soil = ["clay", "sand", None][row // 8]
        sheet.append([row / 2, row // 8 if first else None, soil if first else None, "ab"[row % 2]])
    for start in (2, 10, 18):
        sheet.merge_cells(f"B{start}:B{start + 7}")
        sheet.merge_cells(f"C{start}:C{start + 7}")
    sheet.row_dimensions[5].hidden = sheet.row_dimensions[6].hidden = True
    book.save(tmp_path / "merged.xlsx")
    dataset = load_dataset(tmp_path / "merged.xlsx", target="y")
    assert dataset.X["batch"].tolist() == [0] * 8 + [1] * 8 + [2] * 8
    assert dataset.X["soil"].fillna("").tolist() == ["clay"] * 8 + ["sand"] * 8 + [""] * 8
    assert list(dataset.findings[:3]) == [
        "2 hidden rows of the sheet are read as well",
        "3 merged cells of column 'batch' are repeated in the rows below",
        "2 merged cells of column 'soil' are repeated in the rows below",
    ]


def test_error_names_the_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "cover"
    for row in (["project", "sample"], [1, 2], [3, 4]):
        book.active.append(row)
    book.create_sheet("data").append(["x", "y"])
    book.save(tmp_path / "book.xlsx")
    with pytest.raises(DatasetError, match=r"sheet 'cover' \(the first of 2\): target must be"):
        load_dataset(tmp_path / "book.xlsx", target="y")


@pytest.mark.parametrize("form", ["csv", "xlsx"])
def test_load_dataset_omits_rows_of_years_that_are_sums(tmp_path, form):
    rng = np.random.default_rng(0)
    rows = []
    for branch in "ABCD":
        months = [
            (branch, month, int(rng.integers(10, 99)), int(rng.integers(100, 999)))
            for month in ("Jan", "Feb", "Mar", "Apr", "May", "Jun")
        ]
        sums = [sum(row[j] for row in months) for j in (2, 3)]
        rows += [(*row, "ab"[row[2] % 2]) for row in months] + [(branch, "Year", *sums, "a")]
    table = pd.DataFrame(rows, columns=["branch", "month", "n", "sales", "y"])
    path = tmp_path / f"years.{form}"
    (table.to_csv if form == "csv" else table.to_excel)(path, index=False)
    dataset = load_dataset(path, target="y")
    assert len(dataset.X) == 24
    assert "3 rows among the data left out (sums or means of other rows)" in dataset.findings[0]
    table.loc[table["month"] == "Year", ["n", "sales"]] += 5  # no longer sums
    (table.to_csv if form == "csv" else table.to_excel)(path, index=False)
    assert len(load_dataset(path, target="y").X) == 28


def test_read_table_keeps_company_named_total(tmp_path):
    path = tmp_path / "oil.csv"
    rows = [
        f"{name},{kind},{i + 3}"
        for i, (name, kind) in enumerate(
            zip(["Aral", "Esso", "Shell", "BP", "Jet", "Total"], ["oil", "gas"] * 3, strict=True)
        )
    ]
    path.write_text("\n".join(["company,kind,size", *rows]), encoding="utf-8")
    frame = read_table(path, categories="company").frame
    assert frame["company"].tolist()[-1] == "Total"
