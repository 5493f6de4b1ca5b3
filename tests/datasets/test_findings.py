"""Findings about the features of a table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skescore.datasets import load_dataset, read_table

RANDOM = np.random.default_rng(0)
MEASURED = RANDOM.normal(size=40)


def found(columns: dict, **options) -> list[str]:
    X = pd.DataFrame(columns)
    of_table = list(read_table(X, **options).findings)
    dataset = load_dataset(X.assign(y=["a", "b"] * (len(X) // 2)), target="y", **options)
    assert list(dataset.findings) == of_table
    return of_table


def test_findings_of_sound_features_are_empty():
    counts = RANDOM.poisson(5, size=40)
    fractions = np.arange(40) + 0.5  # in order, but no row numbers
    twice = np.repeat(np.arange(20), 2)
    gap = np.r_[0:39, 40]
    columns = {"m": MEASURED, "c": counts, "f": fractions, "t": twice, "g": gap}
    assert found(columns) == []


def test_findings_join_constant_columns():
    (note,) = found({"m": MEASURED, "one": np.ones(40), "two": ["same"] * 40})
    assert note.startswith("2 columns with a single value")
    assert note.endswith("'one', 'two'")


def test_findings_name_option_for_equal_columns():
    (note,) = found({"m": MEASURED, "other": -MEASURED, "my copy": MEASURED.copy()})
    assert "'m' and 'my copy' are equal" in note
    assert note.endswith("--drop 'my copy'")


def test_findings_ignore_type_and_sign_of_zero():
    integers = RANDOM.integers(0, 9, size=40)
    floats = np.where(integers == 0, -0.0, integers)
    (note,) = found({"whole": integers, "floats": floats})
    assert "'whole' and 'floats' are equal" in note


def test_findings_report_renamed_categories_as_equal():
    codes = RANDOM.integers(0, 3, size=40)
    columns = {"m": MEASURED, "a": np.array(["x", "y", "z"])[codes]}
    (note,) = found({**columns, "b": np.array(["p", "q", "r"])[codes]})
    assert "'a' and 'b' are equal" in note


@pytest.mark.parametrize("start", [0, 1, 1000])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", ["id", "PassengerId", "row_names", "Kundennummer", "Unnamed: 0"])
def test_named_row_numbers_are_omitted(start, shuffled, name):
    numbers = np.arange(start, start + 40)
    numbers = RANDOM.permutation(numbers) if shuffled else numbers
    (note,) = found({"m": MEASURED, name: numbers})
    assert note.startswith(f"left out: {name!r} (")
    assert load_dataset(
        pd.DataFrame({"m": MEASURED, name: numbers, "y": ["a", "b"] * 20}), target="y"
    ).X.columns.tolist() == ["m"]


def test_findings_name_option_for_other_row_numbers():
    for numbers in (np.arange(1, 41), np.arange(1950, 1990), RANDOM.permutation(40)):
        (note,) = found({"m": MEASURED, "step": numbers})
        assert "'step' looks like row numbers" in note
        assert note.endswith("--drop step")


def test_categories_that_hardly_repeat_are_omitted():
    many = [f"n{i // 2}" for i in range(2000)]
    (note,) = found({"m": RANDOM.normal(size=2000), "plane": many})
    assert note.startswith("left out: 'plane' (categories that hardly ever repeat)")


def test_findings_ignore_consecutive_values_of_few_rows():
    assert found({"m": MEASURED[:8], "level": np.arange(8)}) == []


def test_named_columns_are_kept():
    columns = {"m": MEASURED, "id": RANDOM.permutation(40), "name": [f"n{i}" for i in range(40)]}
    (note,) = found(columns)
    assert note == (
        "left out: 'id', 'name' (identifiers); to keep one: --category NAME or --numeric NAME"
    )
    table = read_table(pd.DataFrame(columns), numeric="id", categories="name")
    assert table.frame.columns.tolist() == ["m", "id", "name"]
    assert table.findings[0].startswith("column 'name' has 40 categories; the 20 most frequent")


def test_identifiers_are_kept_if_nothing_else_remains():
    names = pd.DataFrame({"name": [f"n{i}" for i in range(15)], "y": [0, 1, 1] * 5})
    assert load_dataset(names, target="y").X.columns.tolist() == ["name"]


@pytest.mark.parametrize(
    ("mark", "others", "noted"),
    [
        (-999, [0, 5, 17, 3], True),
        (-999, [-998, 5, 17, 3], False),
        (-999, [-12.5, 5, 17, 31], True),  # degrees Celsius
        (-99, [-60, 5, 17, 31], False),
        (-9, [0.5, 3.5, 2.0, 1.0], True),
        (9999, [1, 5, 17, 3], True),
        (99, [60, 70, 80, 98], False),
        (999, [0, 1, 0, 1], True),
        (99, [1, 2, 1, 2], True),
        (9, [0, 1, 0, 1], True),
        (9, [0, 1, 2, 3], False),
        (99, [0, 3, 0, 3], False),
    ],
)
def test_findings_report_sentinels(mark, others, noted):
    column = [mark, mark, *others * 5]
    findings = read_table(pd.DataFrame({"x": column, "m": MEASURED[: len(column)]})).findings
    assert bool(findings) is noted
    if noted:
        option = f"={mark}" if mark < 0 else f" x={mark}"
        assert findings[0].endswith(f"to read it as missing: --na-values{option}")
        frame = pd.DataFrame({"x": column})
        assert read_table(frame, na_values=str(mark)).frame["x"].isna().sum() == 2


def test_findings_report_sentinels_of_the_target():
    for values, option in (([-9999, 1.5, 2.5, 7], "=-9999"), ([9, 0, 1, 1], " y=9")):
        frame = pd.DataFrame({"x": MEASURED[:20], "y": values * 5})
        (finding,) = load_dataset(frame, target="y").findings
        assert finding.endswith(f"to read it as missing: --na-values{option}")
        assert not load_dataset(frame, target="y", na_values=option.strip(" =")).findings[1:]


def test_sentinels_are_reported_among_words():
    cells = ["-9", "-9", "unk", *map(str, [0.5, 3.5, 2.0, 1.25])] * 4
    findings = read_table(pd.DataFrame({"x": cells})).findings
    assert findings[0] == "'unk' in column 'x' is read as missing (4 rows)"
    assert findings[1].startswith("-9 in column 'x' (8 rows) may stand for a missing value")


def test_na_values_of_one_column():
    numbers = [99, 1, 0, 1, 0] * 4
    frame = pd.DataFrame({"hiv": numbers, "age": numbers, "sex": [*map(str, numbers[:-1]), "unk"]})
    table = read_table(frame, na_values=["hiv=99", "sex=unk", "sx=unk"])
    assert table.frame["hiv"].isna().sum() == 4
    assert table.frame["age"].isna().sum() == 0
    assert table.frame["sex"].isna().sum() == 1
    assert (
        "'sx=unk' in na_values names no column, so cells with exactly this text are read as missing"
        in str(table.findings)
    )
    later = read_table(frame, preparation=table.preparation)
    pd.testing.assert_frame_equal(later.frame, table.frame)
    dataset = load_dataset(frame, target="hiv", na_values="hiv=99")
    assert dataset.class_counts == {0: 8, 1: 8}
