"""Everyday tables are read, and later rows are read in the same way."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skescore.datasets import (
    ColumnReading,
    Conversion,
    DatasetError,
    Preparation,
    load_dataset,
    read_table,
)

NAN = np.nan


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "data.csv", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
        return path

    return write


def column(cells, **options) -> list:
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    (values,) = read_table(frame, **options).frame.to_dict("list").values()
    return values


# Numbers ------------------------------------------------------------------------------------------


# The meaning of each cell was written down by hand.
@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,234.50", "-$2.00", "($3.5)"], [1234.5, -2.0, -3.5]),
        (["1.234,50 €", "0,5 €", "-12 €"], [1234.5, 0.5, -12.0]),
        (["1.234.567", "1,5", "2"], [1234567.0, 1.5, 2.0]),
        (["1 234,5", "2\u202f000", "3\u00a0000,25"], [1234.5, 2000.0, 3000.25]),
        (["1'234.50", "12", "2\u2019000"], [1234.5, 12.0, 2000.0]),
        (["12.5%", "3 %", "?"], [12.5, 3.0, NAN]),
        (["USD 12", "CHF 13", "kr 14"], [12, 13, 14]),
        (["\u22121.5", "+2", "3e2", ".5"], [-1.5, 2.0, 300.0, 0.5]),
        (["True", "FALSE", "true"], [1, 0, 1]),
        ([True, None, False], [1.0, NAN, 0.0]),
        (["1", "unknown", "n/a", "-", "#DIV/0!", "2"], [1.0, NAN, NAN, NAN, NAN, 2.0]),
        (["1,234", "5,678"], [1234, 5678]),
        (["€ 1.234", "€ 567.890", "€ 12.000", "€ 950"], [1234, 567890, 12000, 950]),
        (["$1.234", "$5.67", "$12.000"], [1.234, 5.67, 12.0]),
        (["1.234 kg", "5.678 kg", "12.000 kg"], [1.234, 5.678, 12.0]),
        (["ca. 51", "~ 3,5", "approx. 12", "7"], [51, 3.5, 12, 7]),
        (["ca. 51 m²", "83 m²", "about 90"], [51, 83, 90]),
    ],
)
def test_read_table_reads_numbers_written_as_text(cells, numbers):
    np.testing.assert_array_equal(column(cells), numbers)


@pytest.mark.parametrize("decimal", [".", ","])
def test_decimal_parameter_sets_the_decimal_sign(decimal):
    expected = [1234, 5678] if decimal == "." else [1.234, 5.678]
    assert column(["1,234", "5,678"], decimal=decimal) == expected


@settings(max_examples=60)
@given(
    values=st.lists(st.integers(-(10**9), 10**9).map(lambda i: i / 100), min_size=3, max_size=9),
    style=st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", ".")]),
    mark=st.sampled_from(["{}", "${}", "{} €", "{}%"]),
)
def test_read_table_restores_numbers_of_any_style(values, style, mark):
    thousands, decimal = style
    signs = str.maketrans({",": thousands, ".": decimal})
    # A number whose style is unambiguous.
    cells = [mark.format(f"{value:,.2f}".translate(signs)) for value in [*values, 1234567.25]]
    assert column(cells)[:-1] == values


def test_read_table_reads_fractions_of_one_character():
    texts = pd.DataFrame({"dose": ["½", "1 ½", "2¼", "3", "-⅛"] * 6, "x": range(30)})
    assert read_table(texts).frame["dose"].tolist() == [0.5, 1.5, 2.25, 3.0, -0.125] * 6
    decimal_commas = pd.DataFrame({"dose": ["1½", "2,5", "1,25"] * 6, "x": range(18)})
    assert read_table(decimal_commas).frame["dose"].tolist() == [1.5, 2.5, 1.25] * 6


def test_read_table_reads_mostly_text_as_categories():
    assert column(["3+", "1", "2", "1", "3+", "2"] * 4)[:3] == ["3+", "1", "2"]
    assert column(["A1", "7", "B2"]) == ["A1", "7", "B2"]
    assert column(["none", "guarantor", "none"]) == ["none", "guarantor", "none"]
    assert pd.isna(column(["?", "a", "b"])[0])


def test_target_with_a_unit_is_a_number(tmp_path):
    path = tmp_path / "weights.csv"
    numbers = [f"{number}" for number in range(200, 230)]
    rows = [f"{row};{number[:2]},{number[2]} kg" for row, number in enumerate(numbers)]
    path.write_text("\n".join(["x;weight", *rows[:-1], "29;?"]), encoding="utf-8")
    dataset = load_dataset(path, target="weight")
    assert dataset.task == "regression"
    assert dataset.y.tolist() == [int(number) / 10 for number in numbers[:-1]]
    assert any("'weight' holds numbers with the unit 'kg'" in text for text in dataset.findings)
    path.write_text("x,pack\n" + "\n".join(f"{row},{row % 3 + 1} kg" for row in range(60)))
    assert load_dataset(path, target="pack").task == "classification"


@pytest.mark.parametrize(
    "formats", [("%d.%m.%Y", "%d. %B %Y", "%Y-%m-%d"), ("%d-%b-%y", "%d.%m.%Y")]
)
def test_dates_of_mixed_formats_are_read(formats):
    days = pd.date_range("2023-01-02", periods=60, freq="9D")
    cells = [day.strftime(formats[row % len(formats)]) for row, day in enumerate(days)]
    frame = read_table(pd.DataFrame({"on": cells})).frame
    assert frame["on: year"].tolist() == days.year.tolist()
    assert frame["on: month"].tolist() == days.month.tolist()


@pytest.mark.parametrize(
    ("formats", "reason"),
    [
        (["%d/%m/%Y", "%m/%d/%Y"], "and both orders occur; they are read with the day first"),
        (["%m/%d/%Y"], "and no other cell shows which; they are read with the month first"),
    ],
)
def test_ambiguous_days_and_months_are_reported(formats, reason):
    days = pd.date_range("2024-01-02", periods=120, freq="3D")
    if len(formats) == 1:
        days = days[days.day <= 12]
    cells = [day.strftime(formats[row % len(formats)]) for row, day in enumerate(days)]
    n_ambiguous = int(((days.day <= 12) & (days.day != days.month)).sum())
    (finding,) = (
        text for text in read_table(pd.DataFrame({"on": cells})).findings if "first, and" in text
    )
    assert finding.startswith(f"{n_ambiguous} cells of column 'on' such as ")
    assert finding.endswith(reason)


def test_unambiguous_days_and_months_are_not_reported():
    days = pd.date_range("2024-01-02", periods=120, freq="3D")
    first_days = pd.date_range("2024-01-01", periods=40, freq="MS")
    for form, dates in (("%d/%m/%Y", days), ("%d.%m.%Y", days), ("%Y-%m-%d", first_days)):
        findings = read_table(pd.DataFrame({"on": dates.strftime(form)})).findings
        assert not any("first, and" in text for text in findings)


def test_points_between_thousands_are_read(write):
    amounts = [7996, 1204, 12530, 631, 559, 808, 200, 999, 4100, 5200, 6300, 8400, 2500, 3600, 9700]
    texts = [f"{amount:,}".replace(",", ".") for amount in amounts]
    rows = "".join(f"{text};{i};{'ab'[i % 2]}\n" for i, text in enumerate(texts))
    dataset = load_dataset(write(f"amount;n;y\n{rows}"), target="y")
    assert dataset.X["amount"].tolist() == amounts
    assert "'.' is read as the thousands separator" in dataset.findings[0]
    decimals = [f"{i % 7 + 1}.{i:03d}" if i % 3 else str(i % 5) for i in range(60)]
    rows = "".join(f"{text};{i};{'ab'[i % 2]}\n" for i, text in enumerate(decimals))
    dataset = load_dataset(write(f"length;n;y\n{rows}"), target="y")
    assert dataset.X["length"].tolist() == list(map(float, decimals))


def test_decimal_comma_texts_become_numbers():
    cells = [7.1, 6.5, "6,9", 5.0, "7,25", 8.0]
    table = read_table(pd.DataFrame({"pH": pd.Series(cells, dtype=object)}))
    assert table.frame["pH"].tolist() == [7.1, 6.5, 6.9, 5.0, 7.25, 8.0]
    assert table.findings == (
        "2 texts such as '6,9' in column 'pH' are read with a decimal comma; other cells hold "
        "numbers",
    )


def test_times_become_hours():
    table = read_table(pd.DataFrame({"took": ["0:30", "1:45", "12:00:36"] * 5}))
    assert table.frame["took"].tolist() == [0.5, 1.75, 12.01] * 5
    assert table.findings == ("column 'took' holds times such as '0:30', read as hours (0.5)",)
    spans = pd.DataFrame({"took": pd.to_timedelta([6, 12, 36], unit="h"), "x": range(3)})
    table = read_table(spans)
    assert table.frame["took"].tolist() == [0.25, 0.5, 1.5]
    assert "column 'took' holds time spans, read as numbers of days" in table.findings


def test_converted_units_are_exact():
    table = read_table(pd.DataFrame({"took": ["1.5 h"] * 18 + ["90 min", "15 min"]}))
    assert table.frame["took"].tolist()[-2:] == [1.5, 0.25]


def test_missing_words_and_blanks_of_categories_are_reported():
    table = read_table(pd.DataFrame({"kind": ["a", " b", "n/a", "NULL", "a ", "b"] * 5}))
    assert table.frame["kind"].isna().sum() == 10
    assert table.findings == (
        "'n/a', 'NULL' in column 'kind' is read as missing (10 rows)",
        "blanks around the text of 10 cells of column 'kind' are cut",
    )


def test_omitted_texts_are_not_offered_as_numbers():
    texts = [f"{row}/{row + 30}" for row in range(40)]
    (finding,) = read_table(pd.DataFrame({"pressure": texts, "x": [1.5, 2] * 20})).findings
    assert finding == "left out: 'pressure' (identifiers); to keep one: --category NAME"


def test_different_units_are_noted():
    table = read_table(pd.DataFrame({"x": ["$1", "€2", "3"]}))
    assert table.findings == (
        "column 'x' holds numbers in several units, read without conversion: $, € and without",
    )


def test_ambiguous_separators_are_noted():
    frame = pd.DataFrame({"x": ["€ 1.234", "€ 567.890", "€ 12.000", "€ 950"], "n": [1, 5, 2, 3]})
    (note,) = read_table(frame).findings
    assert "'€ 1.234', in which '.' is read as the thousands separator" in note
    assert note.endswith("--decimal .")
    assert read_table(frame, decimal=".").frame["x"].tolist() == [1.234, 567.89, 12.0, 950.0]
    certain = frame.assign(x=["€ 1.234,50", "€ 567.890", "€ 12.000", "€ 950"])
    assert read_table(certain).findings == ()


def test_inexact_numbers_are_noted():
    (note,) = read_table(pd.DataFrame({"x": ["ca. 51", "83", "90"]})).findings
    assert note == "column 'x' holds inexact numbers such as 'ca. 51', which are read as exact"


@pytest.mark.parametrize("stray", ["03,04.2023 10:15", "soon"])
def test_read_table_treats_strays_among_dates_as_missing(stray):
    days = [f"{day:02d}.03.2023 {day % 24:02d}:15" for day in range(1, 29)]
    iso = [f"2023-05-{day:02d}" for day in range(1, 5)]
    table = read_table(pd.DataFrame({"at": [*days, stray, *iso]}))
    hours, months = table.frame["at: hour"], table.frame["at: month"]
    assert hours.tolist()[:2] == [1, 2]
    assert months.tolist()[-4:] == [5.0] * 4
    assert np.isnan(months[28])
    assert (
        f"{stray!r} in column 'at' is read as missing (1 of 33 rows, first data row 29)"
        in (table.findings[0])
    )
    later = pd.DataFrame({"at": ["07.03.2024 09:00", stray]})
    np.testing.assert_array_equal(
        read_table(later, preparation=table.preparation).frame["at: hour"], [9, NAN]
    )


def test_spellings_of_categories_are_noted():
    frame = pd.DataFrame({"plan": ["Basic", "basic", "Pro", "PRO ", "Team"] * 3})
    note, _ = read_table(frame).findings
    assert "differ only in upper case or blanks: 'Basic', 'basic', 'Pro', 'PRO'" in note
    assert read_table(frame.replace({"basic": "Basic", "PRO ": "Pro"})).findings == ()


def test_read_table_reads_decimal_commas(write):
    path = write("a;b;c;y\n1,5;1.200;7;p\n2,25;1.500.000;8;q\n3;12;9;p\n")
    dataset = load_dataset(path, target="y")
    assert dataset.X.to_dict("list") == {
        "a": [1.5, 2.25, 3.0],
        "b": [1200, 1500000, 12],
        "c": [7, 8, 9],
    }
    # Without any comma, points are decimal.
    plain = load_dataset(write("a;y\n1.200;p\n1.500;q\n"), target="y")
    assert plain.X["a"].tolist() == [1.2, 1.5]
    with_comma = load_dataset(write("a;y\n1.200;p\n1.500;q\n"), target="y", decimal=",")
    assert with_comma.X["a"].tolist() == [1200, 1500]


POINTS, COMMAS = "a\tb\tc\n1,234.5\t7\t0.5\n12,345\t8\t1.25\n", "a;b;c\n1.234,5;7;0,5\n2,25;8;2\n"


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [
        (POINTS, "a;b\n60,000;1,000\n", [60000, 1000]),
        (COMMAS, "a;b\n60.000;1.000\n", [60000, 1000]),
        (COMMAS, "a;c\n1,234;0,125\n", [1.234, 0.125]),
        # Unambiguous numbers of another file have precedence.
        (POINTS, "a;b\n1,25;60.000\n", [1.25, 60000]),
        (COMMAS, "a;c\n1.25;1.234\n", [1.25, 1.234]),
        (COMMAS, "a;c\n;1.234\n", [NAN, 1234]),
    ],
)
def test_preparation_resolves_ambiguous_decimal_signs(first, later, expected, write):
    preparation = read_table(write(first), numeric=["a", "b", "c"]).preparation
    restored = Preparation.from_dict(preparation.to_dict())
    read = read_table(write(later, "later.csv"), preparation=restored).frame
    np.testing.assert_array_equal(read.iloc[0], expected)


def test_comma_separates_thousands_with_decimal_points(write):
    table = read_table(write("a\tb\n60,000\t1.5\n1,234\t2.25\n"))
    assert table.frame["a"].tolist() == [60000, 1234]
    doubtful = read_table(write("a\tb\n60,000\t1\n1,234\t2\n"))
    assert doubtful.frame["a"].tolist() == [60, 1.234]
    assert doubtful.findings[0].startswith("60,000 in column 'a' is read with a decimal comma")


def test_decimals_are_not_read_again_as_thousands(write, monkeypatch):
    cells = ["0.376", "-1.25", "12.125", "7", "3"] * 5
    read_again = []
    monkeypatch.setattr(
        "skescore.datasets._files.FileTable.as_written",
        lambda self, names: read_again.extend(names) or pd.DataFrame(),
    )
    table = read_table(write("a;b\n" + "".join(f"{cell};x\n" for cell in cells)))
    assert table.frame["a"][:5].tolist() == [0.376, -1.25, 12.125, 7, 3]
    assert not read_again


def test_numbers_below_one_have_no_thousands(write):
    assert column(["0,376", "0,125"]) == [0.376, 0.125]
    assert read_table(write('a,b\n"0,376",1\n')).frame["a"].tolist() == [0.376]


def test_read_table_reads_points_and_commas_as_decimal_signs(write):
    cells = ["3,2", "4.75", "12,25", "unk", "0.125", "7", "1,5", "2.5"] * 5
    table = read_table(write("a;b\n" + "".join(f"{cell};x\n" for cell in cells)))
    numbers = [3.2, 4.75, 12.25, np.nan, 0.125, 7, 1.5, 2.5]
    np.testing.assert_array_equal(table.frame["a"][:8], numbers)
    assert table.findings[:2] == (
        "'unk' in column 'a' is read as missing (5 rows)",
        "column 'a' holds numbers with a decimal point such as '4.75' and with a decimal comma "
        "such as '3,2'; both are read as decimal signs",
    )
    # In later rows, a cell that could have thousands is no number.
    later = read_table(write("a;b\n8,5;x\n8.5;x\n1.234;x\n"), preparation=table.preparation)
    np.testing.assert_array_equal(later.frame["a"], [8.5, 8.5, np.nan])
    assert "'1.234' in column 'a' is read as missing (1 row)" in later.findings
    target = load_dataset(write("x;y\n1;3,5\n2;4.5\n3;1.25\n"), target="y")
    assert target.y.tolist() == [3.5, 4.5, 1.25]


def test_read_table_keeps_thousands_of_earlier_columns(write):
    values = [108_735, 202_279, 899, 31_004, 220_800] * 3
    amounts = ["€ " + f"{value:,}".replace(",", ".") for value in values]
    for rates in (["3,2", "4.75", "2.5"] * 5, ["3.2", "4.75", "2.5"] * 5):
        rows = "".join(f"{r};{a};x\n" for r, a in zip(rates, amounts, strict=True))
        table = read_table(write("rate;price;b\n" + rows))
        assert table.frame["price"].tolist() == values
        later = write("rate;price;b\n3.60;€ 202.279;x\n2.53;€ 220.800;x\n")
        later_table = read_table(later, preparation=table.preparation)
        assert later_table.frame["price"].tolist() == [202_279, 220_800]


@pytest.mark.parametrize(
    ("texts", "later", "expected"),
    [
        (["€ 1.395", "€ 2.777", "€ 3.002", "€ 865"] * 6, ["€ 3.431", "€ 950"], [3431, 950]),
        (
            [f"{i + 1000} g" if i % 3 else f"{i}.5 kg" for i in range(24)],
            ["1099 g", "1.2 kg"],
            [1099, 1200],
        ),
        (["36,3", "1,25", "7,5"] * 8, ["2,5", "1,5"], [2.5, 1.5]),
    ],
)
def test_target_of_later_tables_is_read_alike(write, texts, later, expected):
    rows = [f"{i};{text}" for i, text in enumerate(texts)]
    data = load_dataset(write("\n".join(["x;y", *rows])), target="y")
    preparation = Preparation.from_dict(data.preparation.to_dict())
    later_rows = [f"{i};{text}" for i, text in enumerate(later)]
    file = write("\n".join(["x;y", *later_rows]))
    table = load_dataset(file, target="y", preparation=preparation)
    assert table.y.tolist() == pytest.approx(expected)
    column = pd.Series([*later, None], name="y", dtype=object)
    assert preparation.read_target(column).tolist() == pytest.approx([*expected, NAN], nan_ok=True)
    with pytest.raises(DatasetError, match="'y' should hold finite numbers, but has 'many'"):
        preparation.read_target(pd.Series(["many"], name="y"))


@pytest.mark.parametrize(
    ("classes", "later", "expected"),
    [
        ([1, 2], ["1", "2 ", "?", "unlabeled", "n.a."], [1, 2, None, None, None]),
        ([1, 2], ["1", "2", "?", "c"], [1, 2, None, "c"]),
        ([1, 2], [2, -9, 1, 7], [2, None, 1, 7]),
        (["1", "2"], [2, -9, 1], ["2", None, "1"]),
        (["a", "b", "?"], ["a ", " b", "?", "unlabeled"], ["a", "b", "?", None]),
        ([False, True], ["True", "False", None], [True, False, None]),
    ],
)
def test_classes_of_later_tables_are_read_alike(classes, later, expected):
    preparation = Preparation((ColumnReading("x", "number"),), ("unlabeled", "-9"))
    preparation = preparation.with_classes(classes)
    column = pd.Series(later, name="y")
    labels = preparation.read_classes(column).astype(object)
    assert labels.where(labels.notna(), None).tolist() == expected
    table = pd.DataFrame({"x": range(len(later)), "y": column})
    options = {"target": "y", "task": "classification", "preparation": preparation}
    known = [label for label in expected if label is not None]
    assert load_dataset(table, **options).y.tolist() == known


@pytest.mark.parametrize("text", ["06.03.2022 01:47", "6.3.2022 1:47:30", "06.03.2022"])
def test_dates_with_full_stops_begin_with_the_day(text):
    days = pd.DataFrame({"on": pd.date_range("2021-01-01", periods=40, freq="9D")})
    preparation = read_table(days).preparation
    frame = read_table(pd.DataFrame({"on": [text]}), preparation=preparation).frame
    assert frame["on: month"].tolist() == [3]


def test_ambiguous_dates_of_later_tables_are_reported():
    days = pd.DataFrame({"on": pd.date_range("2021-01-01", periods=40, freq="9D")})
    preparation = read_table(days).preparation
    later = read_table(pd.DataFrame({"on": ["06/03/2022"]}), preparation=preparation)
    assert "could have the day or the month first" in later.findings[0]


def test_dates_are_no_numbers_of_an_earlier_table():
    first = read_table(pd.DataFrame({"on": [20240131, 20240201], "x": [1, 2]}))
    days = pd.DataFrame({"on": pd.to_datetime(["2024-01-31", None]), "x": [1, 2]})
    later = read_table(days, preparation=first.preparation)
    assert later.frame["on"].isna().all()
    assert "column 'on' holds dates, which are read as missing" in later.findings[0]


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
@pytest.mark.parametrize("word", ["None", "NA", "n/a"])
def test_words_read_as_missing_are_reported_and_kept(word, ending, tmp_path):
    path = tmp_path / f"alleys.{ending}"
    alleys = pd.DataFrame({"alley": ["paved", word, "gravel"] * 5, "m": [1.5, 2.5, 3.5] * 5})
    (alleys.to_csv if ending == "csv" else alleys.to_excel)(path, index=False)
    table = read_table(path)
    assert f"{word!r} in column 'alley' is read as missing (5 rows)" in table.findings
    preparation = Preparation.from_dict(table.preparation.to_dict())
    later = read_table(alleys, preparation=preparation)
    assert later.frame["alley"].tolist() == pytest.approx(["paved", NAN, "gravel"] * 5, nan_ok=True)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_category_none_is_kept_in_later_files(stored, ending, tmp_path):
    alleys = pd.DataFrame({"alley": ["paved", "None", "gravel"] * 5, "m": [1.5, 2.5, 3.5] * 5})
    preparation = Preparation.for_features(["alley", "m"], {"alley": None})
    preparation = preparation.with_words({"alley": ["None", "paved"]})
    if stored:
        preparation = Preparation.from_dict(read_table(alleys).preparation.to_dict())
    path = tmp_path / f"alleys.{ending}"
    (alleys.to_csv if ending == "csv" else alleys.to_excel)(path, index=False)
    later = read_table(path, preparation=preparation)
    assert later.frame["alley"].tolist() == alleys["alley"].tolist()


def test_leading_zeros_of_texts_are_reported():
    codes = pd.DataFrame({"code": ["01", "02", "?", "11"] * 9, "m": np.arange(36) + 0.5})
    findings = read_table(codes).findings
    assert any("leading zeros, first '01'" in finding for finding in findings)


def test_codes_of_missing_numbers_are_no_later_targets():
    preparation = Preparation((), ("-999", "y=0"))
    column = pd.Series([1.5, -999.0, 0.0], name="y")
    assert preparation.read_target(column).tolist() == pytest.approx([1.5, NAN, NAN], nan_ok=True)


def test_read_table_reports_ambiguous_points_and_commas(write):
    cells = [f"{i}.{i % 7 + 1}" for i in range(15)] + [f"{i},{i % 5 + 1}" for i in range(15)]
    rows = "".join(f"{cell};x\n" for cell in [*cells, "1.234"] * 2)
    table = read_table(write("a;b\n" + rows))
    assert table.frame["a"].dtype == object
    assert "decimal point such as '0.1', with a decimal comma such as '0,1'" in table.findings[0]
    assert "--numeric a --decimal=." in table.findings[0]
    read = read_table(write("a;b\n" + rows), numeric="a", decimal=".")
    assert read.frame["a"].notna().sum() == 32


def test_target_in_dollars_may_be_missing(write):
    path = write('x,y\n1,"$1,000.50"\n2,?\n3,$20\n4,$30.25\n')
    dataset = load_dataset(path, target="y")
    assert (dataset.task, dataset.y.tolist()) == ("regression", [1000.5, 20.0, 30.25])
    assert dataset.n_rows_dropped == 1
    assert dataset.X["x"].tolist() == [1, 3, 4]
    assert "1 of 4 rows is left out, because the target 'y' is missing there" in dataset.findings


def test_missing_class_is_no_class(write):
    dataset = load_dataset(write("x,y\n1,a\n2,?\n3,b\n4,none\n"), target="y")
    assert dataset.class_counts == {"a": 1, "b": 1, "none": 1}
    assert dataset.findings[0] == "'?' in column 'y' is read as missing (1 row)"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx"])
def test_load_dataset_keeps_classes_like_missing_values(tmp_path, suffix):
    frame = pd.DataFrame({"x": range(8), "y": ["a", "None", "NA", "", "a", "b", "NA", "?"]})
    path = tmp_path / f"table{suffix}"
    if suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    findings = load_dataset(path, target="y").findings
    assert (
        "read as missing in the target 'y': 'NA' (2 rows), 'None' (1 row); to keep them as "
        "classes: --labels NA=NA,None=None"
    ) in findings
    dataset = load_dataset(path, target="y", labels={"NA": "NA", "None": "nothing", "?": "?"})
    assert dataset.class_counts == {"?": 1, "NA": 2, "a": 2, "b": 1, "nothing": 1}
    assert "1 of 8 rows is left out, because the target 'y' is missing there" in dataset.findings
    later = load_dataset(path, target="y", preparation=dataset.preparation)
    assert later.class_counts == dataset.class_counts


# Dates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d.%m.%y",
        "%b %d, %Y",
        "%d %B %Y",
        "%d. %B %Y",
        "%d-%b-%y",
        "%Y/%m/%d",
    ],
)
def test_dates_are_read_in_many_formats(form):
    days = pd.to_datetime(["2023-12-30", "2024-01-15", "2024-05-31"])
    table = read_table(pd.DataFrame({"on": days.strftime(form)}))
    assert table.frame.to_dict("list") == {
        "on: year": [2023, 2024, 2024],
        "on: month": [12, 1, 5],
        "on: weekday": ["Saturday", "Monday", "Friday"],
        "on: days since 2023-12-30": [0, 16, 153],
    }
    assert "column 'on' holds dates" in table.findings[0]


def test_dates_give_only_parts_that_differ():
    hours = pd.date_range("2024-03-04 06:00", periods=5, freq="3h").astype(str)
    assert list(read_table(pd.DataFrame({"t": hours})).frame) == ["t: hour"]
    months = pd.date_range("2024-01-01", periods=5, freq="MS").astype(str)
    assert list(read_table(pd.DataFrame({"t": months})).frame) == [
        "t: month",
        "t: days since 2024-01-01",
    ]
    years = pd.date_range("1970-01-01", periods=5, freq="YS").astype(str)
    assert list(read_table(pd.DataFrame({"t": years})).frame) == ["t: year"]


def test_dates_may_be_missing():
    frame = pd.DataFrame({"on": ["2024-01-30", "unknown", None, "2024-02-01"]})
    table = read_table(frame)
    np.testing.assert_array_equal(table.frame["on: month"], [1, NAN, NAN, 2])
    assert table.frame["on: weekday"].isna().tolist() == [False, True, True, False]
    assert table.findings[0] == "'unknown' in column 'on' is read as missing (1 row)"


def test_words_like_dates_stay_texts():
    for cells in (
        ["12:75", "13:40:99"],
        ["10-12", "13-19"],
        ["1.2.3.4", "1.1.1.1"],
        ["may", "june"],
    ):
        assert column(cells) == cells


# Text ---------------------------------------------------------------------------------------------


def test_rare_categories_are_read_as_other():
    cells = [f"c{i}" for i in range(30) for _ in range(i + 1)]
    table = read_table(pd.DataFrame({"x": cells}))
    counts = table.frame["x"].value_counts()
    assert set(counts.index) == {f"c{i}" for i in range(10, 30)} | {"other"}
    assert counts["other"] == sum(range(1, 11))
    assert "the 20 most frequent are kept (88 % of the rows)" in table.findings[0]
    assert read_table(pd.DataFrame({"x": cells}), max_categories=30).frame["x"].nunique() == 30


# Files --------------------------------------------------------------------------------------------

TEXT = "größe,farbe\n1,grün\n2,weiß\n3,grün\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "iso-8859-1"])
def test_encodings_are_detected(write, encoding):
    table = read_table(write(TEXT, encoding=encoding))
    assert table.frame.to_dict("list") == {"größe": [1, 2, 3], "farbe": ["grün", "weiß", "grün"]}
    assert bool(table.findings) == (encoding not in ("utf-8", "utf-8-sig"))


def test_encoding_parameter_sets_the_encoding(write):
    path = write("x,y\nж,1\nю,2\n", encoding="cp1251")
    assert read_table(path, encoding="cp1251").frame["x"].tolist() == ["ж", "ю"]
    with pytest.raises(DatasetError, match="encoding must be one that Python knows"):
        read_table(path, encoding="cp-klingon")


def test_separators_are_detected_or_set(write):
    assert list(read_table(write("a b  c\n1 2   3\n4   5 6\n")).frame) == ["a", "b", "c"]
    path = write("a:b\n1:2\n3:4\n")
    assert list(read_table(path, sep=":").frame) == ["a", "b"]
    assert list(read_table(write("a\tb,c\n1\t2\n"), sep="tab").frame) == ["a", "b,c"]
    with pytest.raises(DatasetError, match="sep must be one character"):
        read_table(path, sep="::")


def test_duplicate_headers_are_numbered(write):
    table = read_table(write("a,a,b\n1,2,3\n4,5,6\n"))
    assert table.frame.to_dict("list") == {"a": [1, 4], "a.1": [2, 5], "b": [3, 6]}
    assert "the header has 'a' more than once" in table.findings[0]


def test_copies_with_the_same_name_are_omitted(write):
    dataset = load_dataset(write("y,a,a,y,b\np,1,1,p,3\nq,2,2,q,5\np,2,2,p,1\n"), target="y")
    assert dataset.X.columns.tolist() == ["a", "b"]
    assert "left out: 'a.1', 'y.1' (copies under the same name)" in dataset.findings[1]


def test_unnamed_index_and_empty_columns_are_omitted(write):
    table = read_table(write(",a,\n0,1,\n1,2,\n2,2,\n"))
    assert list(table.frame) == ["a"]
    assert table.findings == (
        "left out: 'Unnamed: 0' (row numbers); 'Unnamed: 2' (without any value); to keep one: "
        "--category NAME or --numeric NAME",
    )


def test_read_table_reads_excel_workbooks(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {
            "on": pd.to_datetime(["2024-01-30", "2024-02-01", "2024-02-05"]),
            "price": ["$1,000", "?", "$20"],
            "kind": ["a", "b", None],
            "code": ["A1", "B2", 3.0],
        }
    )
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        frame.to_excel(book, sheet_name="prices", index=False)
        frame.to_excel(book, sheet_name="more", index=False)
    table = read_table(path)
    assert table.findings[0] == "the first of 2 sheets is read, 'prices'"
    assert table.frame["on: days since 2024-01-30"].tolist() == [0, 2, 6]
    np.testing.assert_array_equal(table.frame["price"], [1000, NAN, 20])
    assert table.frame["kind"].tolist()[:2] == ["a", "b"]
    assert table.frame["code"].tolist() == ["A1", "B2", "3"]
    path.write_bytes(b"no workbook")
    with pytest.raises(DatasetError, match="is not an Excel workbook"):
        read_table(path)


def test_sample_parameter_draws_rows(write):
    path = write("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(500)))
    first, second = (load_dataset(path, target="y", sample=50) for _ in range(2))
    assert len(first.X) == 50
    pd.testing.assert_frame_equal(first.X, second.X)
    assert first.X["x"].is_monotonic_increasing
    assert "only a random sample of 50 of the 500 rows is used" in first.findings[0]
    other = load_dataset(path, target="y", sample=50, random_state=1)
    assert other.X["x"].tolist() != first.X["x"].tolist()
    assert len(load_dataset(path, target="y", sample=5000).X) == 500


# Other rows ---------------------------------------------------------------------------------------

SHOP = pd.DataFrame(
    {
        "when": pd.date_range("2024-01-30", periods=60, freq="13h").strftime("%d.%m.%Y %H:%M"),
        "price": [f"{i * 37.5:,.2f} €".translate(str.maketrans(",.", ".,")) for i in range(60)],
        "town": [f"t{i % 25}" if i % 3 else "t0" for i in range(60)],
        "id": [f"k{i}" for i in range(60)],
        "weight": [str(i) if i % 7 else "unknown" for i in range(60)],
    }
)


def test_preparation_reads_other_rows_in_the_same_way():
    table = read_table(SHOP)
    restored = Preparation.from_dict(json.loads(json.dumps(table.preparation.to_dict())))
    assert restored == table.preparation
    assert restored.features == tuple(table.frame.columns)
    for rows in (SHOP, SHOP.iloc[[7]], SHOP.iloc[40:], SHOP.iloc[::-1]):
        again = read_table(rows, preparation=restored).frame
        pd.testing.assert_frame_equal(
            again, table.frame.loc[rows.index].reset_index(drop=True), check_dtype=False
        )


def test_feature_names_determine_reading_of_new_rows():
    table = read_table(SHOP)
    towns = [*table.frame["town"].unique()]
    guessed = Preparation.for_features(
        table.frame.columns, {"town": towns, "when: weekday": ["Monday"]}
    )
    again = read_table(SHOP, preparation=guessed).frame
    pd.testing.assert_frame_equal(again[list(table.frame)], table.frame)


def test_conversions_name_column_and_kind():
    table = pd.DataFrame(
        {
            "weight": ["1.5 kg", "2 kg", "1 kg", "3 kg"] * 5,
            "city": ["Oslo", " Oslo", "n/a", "Rome"] * 5,
            "day": pd.date_range("2024-01-01", periods=20).strftime("%d.%m.%Y"),
        }
    )
    findings = read_table(table).findings
    conversions = [one for one in findings if isinstance(one, Conversion)]
    assert [(one.column, one.kind) for one in conversions] == [
        ("weight", "number"),
        ("city", "missing"),
        ("city", "text"),
        ("day", "date"),
    ]
    copies = pickle.loads(pickle.dumps(conversions))
    assert [one.to_dict() for one in copies] == [one.to_dict() for one in conversions]


def test_preparation_keeps_prepared_columns():
    table = read_table(SHOP)
    again = read_table(table.frame, preparation=table.preparation).frame
    pd.testing.assert_frame_equal(again[list(table.frame)], table.frame)


def test_preparation_handles_unseen_values():
    preparation = read_table(SHOP).preparation
    later = SHOP.iloc[:2].assign(town=["Rome", None], weight=["heavy", "7"])
    table = read_table(later, preparation=preparation)
    assert table.frame["town"].iloc[0] == "other"
    assert pd.isna(table.frame["town"].iloc[1])
    np.testing.assert_array_equal(table.frame["weight"], [NAN, 7])
    assert table.findings[0] == "'heavy' in column 'weight' is read as missing (1 row)"
    later = SHOP.iloc[:2].assign(when=["13/02/2024", SHOP["when"].iloc[1]])
    table = read_table(later, preparation=preparation)
    assert "'13/02/2024' in column 'when' is read as missing (1 row)" in table.findings


def test_pandas_dtypes_are_read_reproducibly():
    frame = pd.DataFrame(
        {
            "span": pd.to_timedelta([12, 36, None], unit="h"),
            "level": pd.Categorical([2, None, 3]),
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "flag": pd.array([True, None, False], dtype="boolean"),
            "text": pd.array(["a", None, "b"], dtype="string"),
            "month": pd.PeriodIndex(["2024-01", "2024-02", "2024-03"], freq="M"),
        }
    )
    table = read_table(frame)
    expected = {
        "span": [0.5, 1.5, NAN],
        "level": [2, NAN, 3],
        "whole": [1, NAN, 3],
        "flag": [1, NAN, 0],
        "text": ["a", NAN, "b"],
        "month: month": [1, 2, 3],
        "month: days since 2024-01-01": [0, 31, 60],
    }
    pd.testing.assert_frame_equal(table.frame, pd.DataFrame(expected), check_dtype=False)
    second_table = read_table(frame, preparation=table.preparation)
    pd.testing.assert_frame_equal(second_table.frame, table.frame)


def test_preparation_rejects_a_damaged_record():
    with pytest.raises(DatasetError, match="record of how a table was read is damaged"):
        Preparation.from_dict({"columns": [{"name": "a", "sort": "number"}]})


def test_features_parameter_accepts_parts_of_dates():
    frame = SHOP.assign(y=["a", "b"] * 30)
    dataset = load_dataset(frame, target="y", features=["when: hour", "price"])
    assert dataset.X.columns.tolist() == ["when: hour", "price"]
    with pytest.raises(DatasetError, match="features must be among the columns, got 'when: day'"):
        load_dataset(frame, target="y", features=["when: day"])


# The oracle reads the cells one by one.
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(
        st.sampled_from(["1", "2.5", "-3", "?", "", "NA", "unknown", "7e1"]),
        min_size=2,
        max_size=9,
    ).filter(lambda cells: any(cell[-1:].isdigit() for cell in cells))
)
def test_read_table_reads_numbers_and_gaps_cell_by_cell(write, cells):
    path = write("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    expected = [float(cell) if cell[-1:].isdigit() else NAN for cell in cells]
    np.testing.assert_array_equal(read_table(path, numeric="x").frame["x"], expected)
    np.testing.assert_array_equal(read_table(path).frame["x"], expected)


@pytest.mark.slow
def test_read_table_needs_no_writable_home_folder(write, tmp_path):
    """In containers, skrub, which detects dates, makes a folder there when it is imported."""
    path = write("day,word\n2024-01-02,a\n2024-02-03,b\n")
    read = f"from skescore.datasets import read_table; print(*read_table({str(path)!r})[0])"
    home = {"HOME": str(path), "USERPROFILE": str(path)}
    outcome = subprocess.run(
        [sys.executable, "-c", read], env={**os.environ, **home}, capture_output=True, text=True
    )
    assert (outcome.stdout, outcome.returncode) == (
        "day: month day: weekday day: days since 2024-01-02 word\n",
        0,
    ), outcome.stderr


#: Texts that pandas and skrub read as missing, apart from "None" and "none".
NULLS = [
    "null",
    "1.#QNAN",
    "#NA",
    "nan",
    "-1.#QNAN",
    "<NA>",
    "-1.#IND",
    "-nan",
    "n/a",
    "-NaN",
    "1.#IND",
    "NULL",
    "NA",
    "N/A",
    "#N/A",
    "NaN",
    "?",
    "...",
]


@pytest.mark.parametrize("text", [*NULLS, "#N/A N/A", "", "  "])
def test_texts_for_missing_values_are_missing(text):
    colors = ["red", "blue", text] * 5
    frame = read_table(pd.DataFrame({"color": colors, "x": range(15)})).frame
    assert frame["color"].isna().tolist() == [color == text for color in colors]


def test_missing_texts_equal_skrub():
    from skrub import Cleaner

    read_as_missing = [*NULLS, "#N/A N/A", "", "  ", "none", "None"]
    others = ["*", "x 1", "-", "n.a.", "NONE", "Null", "N/a"]
    column = pd.DataFrame({"x": pd.Series([*read_as_missing, *others], dtype=object)})
    cleaned = Cleaner(drop_null_fraction=None).fit_transform(column)["x"]
    assert column["x"][cleaned.isna()].tolist() == read_as_missing


@pytest.mark.parametrize("word", ["none", "a", "x-1", "N.A", "#1", "*", "for free"])
def test_texts_of_categories_are_kept(word):
    colors = ["red", "blue", word] * 5
    frame = read_table(pd.DataFrame({"color": colors, "x": range(15)})).frame
    assert frame["color"].tolist() == colors


@pytest.mark.parametrize(
    "date_format",
    ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%dT%H:%M:%S", "%b %d, %Y", "%d-%b-%Y", "%B %Y"],
)
def test_dates_are_detected(date_format):
    days = pd.date_range("2001-02-03", periods=60, freq="47D").strftime(date_format)
    frame = read_table(pd.DataFrame({"day": days, "x": range(60)})).frame
    assert frame["day: year"].tolist()[:2] == [2001, 2001]


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("{}. {} {}", "Januar Februar März April Mai Juni Juli August September Oktober November"),
        ("{}. {} {}", "Jan. Feb. Mrz. Apr. Mai Jun. Jul. Aug. Sep. Okt. Nov."),
        ("{} {} {}", "janvier février mars avril mai juin juillet août septembre octobre novembre"),
        ("{} de {} de {}", "enero febrero marzo abril mayo junio julio agosto septiembre octubre"),
    ],
)
def test_months_of_other_languages_are_read(form, names):
    months = names.split()
    days = pd.date_range("2019-01-03", "2023-12-30", freq="17D")
    days = days[days.month <= len(months)]
    days = days[: len(days) // 2 * 2]
    texts = [form.format(day.day, months[day.month - 1], day.year) for day in days]
    frame = read_table(pd.DataFrame({"on": texts})).frame
    assert frame["on: month"].tolist() == days.month.tolist()
    assert frame["on: year"].tolist() == days.year.tolist()
    table = pd.DataFrame({"on": texts, "a": range(len(texts)), "y": ["p", "q"] * (len(texts) // 2)})
    later = load_dataset(table, target="y", time="on", since=texts[5])
    assert later.X["a"].tolist() == list(range(5, len(texts)))


@pytest.mark.parametrize(
    "form",
    [
        *("%a %d %b %Y", "%A, %d.%m.%Y", "%A, %B %d, %Y", "%d %b %Y (%a)", "%Y-%m-%d %a"),
        *("%a %b %d %Y", "%a, %d %b %Y %H:%M:%S"),
    ],
)
def test_dates_with_weekdays_are_read(form):
    days = pd.date_range("2019-01-03", periods=80, freq="17D")
    frame = read_table(pd.DataFrame({"on": days.strftime(form)})).frame
    assert frame["on: month"].tolist() == days.month.tolist()
    assert frame["on: weekday"].tolist() == days.day_name().tolist()


def test_weekdays_of_other_languages_are_read():
    days = pd.date_range("2019-01-03", periods=80, freq="17D")
    names = ["Mo.", "Di.", "Mi.", "Do.", "Fr.", "Sa.", "So."]
    texts = [f"{names[day.day_of_week]} {day:%d.%m.%Y}" for day in days]
    names = ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"]
    french = [f"{names[day.day_of_week]} {day:%d/%m/%Y}" for day in days]
    frame = read_table(pd.DataFrame({"on": texts, "le": french})).frame
    assert frame["on: month"].tolist() == frame["le: month"].tolist() == days.month.tolist()


def test_words_like_weekdays_stay_texts():
    texts = pd.DataFrame({"place": ["sun 5", "mon 7", "sat 9"] * 9, "x": range(27)})
    assert read_table(texts).frame["place"].tolist() == texts["place"].tolist()


def test_read_table_needs_no_skrub_for_plain_words_and_dates():
    program = (
        "import sys, pandas as pd; from skescore.datasets import read_table; "
        "frame = pd.DataFrame({'x': ['for free', '?', 'none', '*'] * 5, 'y': range(20)}); "
        "frame['day'] = pd.date_range('2024-01-31', periods=20).strftime('%Y-%m-%d'); "
        "assert 'day: month' in read_table(frame).frame; "
        "print('skrub' in sys.modules, 'matplotlib' in sys.modules)"
    )
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (outcome.stdout, outcome.returncode) == ("False False\n", 0), outcome.stderr


def test_file_names_may_begin_with_a_tilde(write, tmp_path, monkeypatch):
    """Office names its lock files like this; it is no name of a user."""
    write("x,y\n1,2\n3,4\n", "~$rows.csv")
    monkeypatch.chdir(tmp_path)
    assert load_dataset("~$rows.csv", target="y", task="regression").X["x"].tolist() == [1, 3]
    with pytest.raises(DatasetError, match="neither a built-in data set nor an existing file"):
        load_dataset("~$rows", target="y")


@pytest.mark.parametrize("date_format", ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S"])
def test_unambiguous_dates_have_the_format_of_skrub(date_format):
    from skrub import Cleaner

    texts = pd.Series(pd.date_range("2001-02-03", periods=60, freq="47h").strftime(date_format))
    cleaner = Cleaner().fit(pd.DataFrame({"x": texts}))
    assert cleaner.all_processing_steps_["x"][-1].format_ == date_format
    [reading] = read_table(pd.DataFrame({"x": texts})).preparation.columns
    assert reading.format == date_format


@pytest.mark.parametrize("others", [[], ["1964-01-31"] * 3])
def test_years_of_two_digits_end_in_2040(others):
    texts = ["31.12.41", "24.8.63", "1.1.99", "15.6.00", "31.12.40", *others]
    frame = read_table(pd.DataFrame({"born": texts, "x": range(len(texts))})).frame
    years = [1941, 1963, 1999, 2000, 2040, *[1964] * len(others)]
    assert frame["born: year"].tolist() == years


def test_missing_words_and_blanks_of_a_file_are_reported(write):
    rows = ["n/a,1", "Rome,2", " Rome,3", "Oslo,4", "NULL,5", "Oslo,6"]
    content = "city,x,y\n" + "".join(f"{row},{'ab'[i % 2]}\n" for i, row in enumerate(rows * 4))
    dataset = load_dataset(write(content), target="y")
    assert dataset.X["city"].isna().sum() == 8
    assert dataset.findings == (
        "'n/a', 'NULL' in column 'city' is read as missing (8 rows)",
        "blanks around the text of 4 cells of column 'city' are cut",
    )
    spaced = "city, x, y\n" + "".join(f"Rome, {i}, {'ab'[i % 2]}\n" for i in range(20))
    assert not any("blanks" in text for text in load_dataset(write(spaced), target="y").findings)


@pytest.mark.parametrize("cells", [["$5", "$10"], ["5 %", "10 %"], ["ca. 5", "10"]])
def test_classes_of_later_rows_are_read_as_numbers(cells) -> None:
    preparation = Preparation((), classes=(5, 10))
    labels = preparation.read_classes(pd.Series([*cells, None, "?"]))
    assert labels.dropna().tolist() == [5, 10]
    assert preparation.read_classes(pd.Series(["05"])).tolist() != [5]


def test_numbers_without_a_multiplier_are_divided_or_no_numbers() -> None:
    table = read_table(pd.DataFrame({"v": ["1.5k", "2k", "300"] * 9, "kind": list("abc") * 9}))
    assert table.frame["v"].tolist()[:3] == [1.5, 2.0, 0.3]
    assert "numbers without it are divided by 1000" in table.findings[0]
    for cells in (["500", "2k"], [500, 2000]):
        later = pd.DataFrame({"v": cells, "kind": ["a", "b"]})
        assert read_table(later, preparation=table.preparation).frame["v"].tolist() == [0.5, 2.0]
    table = read_table(pd.DataFrame({"v": ["1.5M", "2M", "300"] * 9, "kind": list("abc") * 9}))
    assert table.frame["v"].tolist()[:3] == ["1.5M", "2M", "300"]
    target = Preparation((), target=ColumnReading("y", "number", unit="Mio."))
    assert target.read_target(pd.Series([5e5, 2e6])).tolist() == [0.5, 2.0]
    assert target.read_target(pd.Series(["500000", "2 Mio."], name="y")).tolist() == [0.5, 2.0]
    target = Preparation((), target=ColumnReading("y", "number", unit="K"))
    for column in (pd.Series([0.5, 1.5]), pd.Series(["0.5", "1.5"])):
        assert target.read_target(column).tolist() == [0.5, 1.5]
