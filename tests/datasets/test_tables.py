from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skescore.datasets import DatasetError, load_dataset


@pytest.fixture
def write(tmp_path):
    def write(content: str) -> Path:
        path = tmp_path / "data.csv"
        path.write_text(content, encoding="utf-8", newline="")
        return path

    return write


def refusal(path, **options) -> str:
    options.setdefault("target", "y")
    with pytest.raises(DatasetError) as caught:
        load_dataset(path, **options)
    assert Path(str(path)).name in str(caught.value)
    return str(caught.value)


# Tasks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "task", "values"),
    [
        (["no", "yes", "no"], "classification", ["no", "yes", "no"]),
        (["True", "False", "True"], "classification", [True, False, True]),
        (["0", "1", "1"], "classification", [0, 1, 1]),
        (["3.0", "1.0", "3.0"], "classification", [3, 1, 3]),
        (["0.5", "1", "2"], "regression", [0.5, 1.0, 2.0]),
        ([str(i) for i in [*range(20)] * 2], "classification", [*range(20)] * 2),
        (["3", "1", "2", "5", "4"], "classification", [3, 1, 2, 5, 4]),
        (["3", "1", "9", "5", "4", "7", "3"], "regression", [3.0, 1.0, 9.0, 5.0, 4.0, 7.0, 3.0]),
        ([str(i) for i in range(21)], "regression", [float(i) for i in range(21)]),
        (["1", "low", "high"], "classification", ["1", "low", "high"]),
    ],
)
def test_load_dataset_infers_task_and_type_of_labels(write, labels, task, values):
    path = write("x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate(labels)))
    dataset = load_dataset(path, target="y")
    assert dataset.task == task
    assert dataset.y.tolist() == values
    assert [type(value) for value in dataset.y.tolist()] == [type(value) for value in values]


def test_task_parameter_overrides_inference(write):
    counts = write("x,y\n" + "".join(f"{i},{i % 7}\n" for i in range(30)))
    assert load_dataset(counts, target="y").task == "classification"
    as_numbers = load_dataset(counts, target="y", task="regression")
    assert as_numbers.task == "regression"
    assert as_numbers.y.dtype == float
    assert as_numbers.class_counts == {}
    codes = write("x,y\n" + "".join(f"{i},{i % 25}\n" for i in range(50)))
    assert load_dataset(codes, target="y").task == "regression"
    assert load_dataset(codes, target="y", task="classification").class_counts[24] == 2


def test_task_parameter_must_fit_the_target(write):
    text = refusal(write("x,y\n1,2\n2,0.5\n3,4\n"), task="classification")
    assert "not whole, first 0.5 in data row 2 " in text
    assert "--task regression" in text
    text = refusal(write("x,y\n1,True\n2,False\n"), task="regression")
    assert "target 'y' is true or false" in text
    assert "task='classification' (on the command line: --task classification)" in text
    text = refusal(write("x,y\n1,2\n2,low\n3,4\n"), task="regression")
    assert "text in 1 of 3 rows, first 'low' in data row 2 " in text


def test_numbers_with_a_typo_are_not_taken_for_classes(write):
    path = write("x,y\n1,2.5\n2,7\n3,1O\n4,9\n")
    text = refusal(path)
    assert (
        "target 'y' should be numbers but has text in 1 of 4 rows, first '1O' in data row 3" in text
    )
    assert "--task classification" in text
    dataset = load_dataset(path, target="y", task="classification")
    assert dataset.y.tolist() == ["2.5", "7", "1O", "9"]


@pytest.mark.parametrize("dates", [("2024-01-31", "2024-02-01"), ("31.1.24", "1.2.24")])
def test_dates_are_classes_on_request_only(write, dates):
    path = write(f"x,y\n1,{dates[0]}\n2,{dates[1]}\n3,{dates[0]}\n")
    assert f"target 'y' looks like dates, such as {dates[0]!r}" in refusal(path)
    assert load_dataset(path, target="y", task="classification").class_counts[dates[0]] == 2
    mixed = write(f"x,y\n1,{dates[0]}\n2,never\n3,{dates[0]}\n")
    assert load_dataset(mixed, target="y").class_counts == {dates[0]: 2, "never": 1}


def test_singleton_classes_are_allowed_and_listed(write):
    dataset = load_dataset(write("x,y\n1,a\n2,a\n3,b\n4,c\n"), target="y")
    assert dataset.class_counts == {"a": 2, "b": 1, "c": 1}
    assert dataset.singleton_classes == ("b", "c")


def test_target_rejects_identifiers(write):
    rows = "".join(f"{i},id{i}\n" for i in range(21))
    text = refusal(write(f"x,y\n{rows}"))
    assert "a different class in each of the 21 rows, such as 'id0'" in text
    dataset = load_dataset(write(f"x,y\n{rows}22,id3\n"), target="y")
    assert dataset.class_counts["id3"] == 2
    assert "the target 'y' has 21 classes in 22 rows" in dataset.findings[-1]


# Features -----------------------------------------------------------------------------------------


def test_booleans_become_integers_and_constants_are_listed(write):
    path = write("flag,same,twin,x,y\nTrue,7,1,1,a\nFalse,7,2,2,b\nTrue,7,3,3,a\n")
    dataset = load_dataset(path, target="y")
    assert dataset.X["flag"].tolist() == [1, 0, 1]
    assert dataset.X["flag"].dtype == np.int64
    assert dataset.constant_columns == ("same",)
    assert dataset.X.shape == (3, 4)


def test_drop_parameter_accepts_one_or_more_names(write):
    path = write("name,a,b,y\nAnn,1,2,p\nBob,3,4,q\n")
    assert load_dataset(path, target="y", drop="name").X.columns.tolist() == ["a", "b"]
    assert load_dataset(path, target="y", drop=["name", "b"]).X.columns.tolist() == ["a"]


def test_numbers_beyond_64_bits_are_read(write):
    dataset = load_dataset(write(f"x,y\n{10**30},a\n3,b\n"), target="y")
    assert dataset.X["x"].tolist() == [1e30, 3.0]


HOLES = "a,b,y\n1,,p\n2,5,q\n,,p\n4,7,\n5,8,p\n"


def test_missing_error_counts_and_locates_cells(write):
    text = refusal(write(HOLES), missing="error")
    # The oracle counts cell by cell.
    rows = list(csv.DictReader(io.StringIO(HOLES)))
    for name, label in [("a", "column 'a'"), ("b", "column 'b'"), ("y", "the target column 'y'")]:
        positions = [number for number, row in enumerate(rows, start=1) if row[name] == ""]
        assert f"{label} {len(positions)} (first in data row {positions[0]})" in text
    assert "without the header" in text
    assert "missing='drop' (on the command line: --missing drop)" in text
    assert "3 of 5 rows" in text


def test_missing_drop_omits_and_counts_rows(write):
    dataset = load_dataset(write(HOLES), target="y", missing="drop")
    assert dataset.n_rows_dropped == 3
    assert dataset.X.to_dict("list") == {"a": [2, 5], "b": [5, 8]}
    assert dataset.y.tolist() == ["q", "p"]
    assert dataset.X.index.tolist() == dataset.y.index.tolist() == [0, 1]


def test_missing_drop_ignores_dropped_columns(write):
    path = write("a,b,y\n1,,p\n2,,q\n")
    dataset = load_dataset(path, target="y", drop="b", missing="drop")
    assert dataset.n_rows_dropped == 0
    assert "left out: 'b' (without any value)" in load_dataset(path, target="y").findings[0]
    assert load_dataset(path, target="y", missing="drop").X.columns.tolist() == ["a"]


def test_missing_drop_keeps_row_numbers_of_errors(write):
    text = refusal(write("a,y\n,p\n1,q\nz,p\n3,q\n"), missing="drop")
    assert "first 'z' in data row 3 " in text


def test_missing_drop_rejects_too_few_rows(write):
    text = refusal(write("a,b,y\n1,,p\n,2,q\n3,4,p\n"), missing="drop")
    assert "would leave 1 of 3 rows, but at least 2 are needed" in text


@pytest.mark.parametrize("word", ["NA", "NaN", "null", "None", "n/a", ""])
def test_missing_error_finds_words_for_missing(write, word):
    path = write(f"a,y\n1,p\n{word},q\n")
    assert "column 'a' 1 (first in data row 2)" in refusal(path, missing="error")
    np.testing.assert_array_equal(load_dataset(path, target="y").X["a"], [1, np.nan])


def test_missing_error_truncates_long_lists_of_columns(write):
    names = [f"c{i}" for i in range(20)]
    lines = [",".join([*names, "y"]), "," * 20 + "p", ",".join(["1"] * 20) + ",q", "," * 20 + "p"]
    text = refusal(write("\n".join(lines)), missing="error")
    assert "column 'c11' 2" in text
    assert "and 8 more columns" in text
    assert "'c12'" not in text


def test_infinite_values_are_missing_or_rejected(write):
    path = write("a,y\n1,p\n-inf,q\ninf,p\n")
    text = refusal(path, missing="error")
    assert "column 'a' has 2 infinite values, first -inf in data row 2 " in text
    dataset = load_dataset(path, target="y")
    np.testing.assert_array_equal(dataset.X["a"], [1, np.nan, np.nan])
    assert "2 infinite values in column 'a' are read as missing" in dataset.findings
    assert "infinite" in refusal(write("a,y\n1,2.5\n2,inf\n3,1\n"))


def test_text_in_a_numeric_column_is_rejected(write):
    path = write("a b,y\n1,p\n2,q\nabc,p\n4,q\nxyz,q\n")
    text = refusal(path)
    assert "column 'a b' should be numbers but has text in 2 of 5 rows" in text
    assert "first 'abc' in data row 3 (data rows are counted from 1, without the header)" in text
    assert "drop=('a b',) (on the command line: --drop 'a b')" in text
    dataset = load_dataset(path, target="y", na_values=["abc", "xyz"])
    np.testing.assert_array_equal(dataset.X["a b"], [1, 2, np.nan, 4, np.nan])
    dataset = load_dataset(path, target="y", numeric="a b")
    np.testing.assert_array_equal(dataset.X["a b"], [1, 2, np.nan, 4, np.nan])
    assert "'abc', 'xyz' in column 'a b' is read as missing (2 rows)" in dataset.findings
    assert load_dataset(path, target="y", categories="a b").X["a b"].tolist()[2:] == [
        "abc",
        "4",
        "xyz",
    ]


def test_error_lists_all_faults_and_options(write):
    path = write("a,b,y\n1,2,p\n2,b,q\nabc,3,p\n4,5,q\n5,6,q\n")
    with pytest.raises(
        DatasetError, match=r"has 2 faults:\n- column 'a' .*\n- column 'b'"
    ) as caught:
        load_dataset(path, target="y")
    assert caught.value.options == ("--na-values=abc", "--na-values=b")


# Columns and rows ---------------------------------------------------------------------------------


def test_target_is_required(write):
    text = refusal(write("a,b,y\n1.5,2,no\n0.5,3,yes\n"), target=None)
    assert "target is missing" in text
    assert "target='y' (on the command line: --target y)" in text
    assert "'a', 'b', 'y'" in text
    assert "looks like data" not in text


def test_unknown_target_gets_a_suggestion(write):
    path = write("length,width,species\n1,2,a\n2,3,b\n")
    text = refusal(path, target="specie")
    assert "target must be among the columns, got 'specie'. Did you mean 'species'?" in text
    assert "'length', 'width', 'species'" in text
    assert "Did you mean 'species'?" in refusal(path, target="SPECIES")
    assert "drop must be among the columns, got 'widht'. Did you mean 'width'?" in refusal(
        path, target="species", drop=["widht"]
    )
    assert "drop must not name the target, one of the features" in refusal(
        path, target="species", drop="species"
    )


def test_errors_truncate_long_lists_of_columns(write):
    names = ",".join(f"c{i}" for i in range(500))
    text = refusal(write(f"{names}\n" + (",".join(["1"] * 500) + "\n") * 2))
    assert "'c11' and 488 more" in text
    assert len(text) < 500


def test_missing_header_is_detected(write):
    lines = "5.1,3.5,1.4,Iris-setosa\n4.9,3.0,1.3,Iris-setosa\n7.0,3.2,4.7,Iris-versicolor\n"
    assert "The first line looks like data, not names" in refusal(write(lines), target="species")
    assert "The first line looks like data" in refusal(write("5.1,5.1,a\n1,2,b\n"), target="y")
    dataset = load_dataset(write("0,1,2,y\n1,2,3,a\n4,5,6,b\n"), target="y")
    assert dataset.X.columns.tolist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("a,y\n", "has a header but no data rows: at least 2 rows are needed"),
        ("a,y\n1,p\n", "has one data row only: at least 2 rows are needed"),
        ("y\np\nq\n", "no feature column is left besides the target 'y'"),
        ("a b y\n1 2 p\n3 4\n", "target must be among the columns, got 'y'"),
        ("a,y\n1,p\n2,p\n", "has only one class, 'p', in all 2 rows"),
        ("a,y\n1,1.5\n2,1.5\n", "is 1.5 in every row, so there is nothing to predict"),
    ],
)
def test_load_dataset_rejects_invalid_tables(write, content, part):
    assert part in refusal(write(content))


def test_missing_drop_rejects_a_single_class(write):
    path = write("a,y\n1,p\n2,p\n,q\n")
    assert "only one class, 'p', in all 2 rows" in refusal(path, missing="drop")


def test_drop_parameter_accepts_an_unnamed_column(write):
    path = write(",a,y\n0,1,p\n1,2,q\n")
    assert load_dataset(path, target="y", drop="Unnamed: 0").X.columns.tolist() == ["a"]


# Features by name ---------------------------------------------------------------------------------

WIDE = ",name,b,when,a,gaps,y\n0,Ann,2,2024-01-31,1,,p\n1,Bob,4,2024-02-01,3,7,q\n"


def test_load_dataset_checks_named_features_in_order(write):
    dataset = load_dataset(write(WIDE), target="y", features=["a", "b"])
    assert dataset.X.columns.tolist() == ["a", "b"]
    assert dataset.X.to_dict("list") == {"a": [1, 3], "b": [2, 4]}
    assert dataset.y.tolist() == ["p", "q"]
    assert dataset.n_rows_dropped == 0
    assert load_dataset(write(WIDE), target="y", features="b").X.columns.tolist() == ["b"]
    names = np.array(["b", "a"])
    columns = load_dataset(write(WIDE), target="y", features=names).X.columns
    assert [(type(name), name) for name in columns] == [(str, "b"), (str, "a")]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.permutations("abcde").flatmap(lambda p: st.integers(1, 5).map(lambda n: p[:n])))
def test_features_parameter_equals_drop_and_sort(write, chosen):
    path = write("a,b,y,c,d,e\n1,2,p,3,4,5\n6,7,q,8,9,10\n")
    other_items = [name for name in "abcde" if name not in chosen]
    expected = load_dataset(path, target="y", drop=other_items)
    dataset = load_dataset(path, target="y", features=chosen)
    pd.testing.assert_frame_equal(dataset.X, expected.X[list(chosen)])
    pd.testing.assert_series_equal(dataset.y, expected.y)
    assert dataset.checksum == expected.checksum


def test_features_parameter_names_unknown_columns(write):
    path = write("length,width,y\n1,2,a\n2,3,b\n")
    text = refusal(path, features=["length", "Width"])
    assert "features must be among the columns, got 'Width'. Did you mean 'width'?" in text
    assert "The columns are 'length', 'width', 'y'." in text
    text = refusal(path, features=["depth", "width", "height"])
    assert "features must be among the columns, got 'depth', 'height'. The columns are" in text


def test_load_dataset_rejects_invalid_features(write):
    path = write(WIDE)
    assert "features must not contain the target, got 'y' as both" in refusal(
        path, features=["a", "y"]
    )
    text = refusal(path, features=["a", "b"], drop=["b", "name"])
    assert "drop must not name the target, one of the features or one of the" in text
    assert "got 'b'" in text
    assert "none of them twice, got ('a', 'b', 'a')" in refusal(path, features=["a", "b", "a"])
    assert "at least one column and none of them twice, got ()" in refusal(path, features=[])
    dataset = load_dataset(path, target="y", features=["a"], drop="name")
    assert dataset.X.columns.tolist() == ["a"]


def test_errors_of_named_features_do_not_suggest_drop(write):
    path = write(WIDE)
    text = refusal(path, features=["a", "gaps"], missing="error")
    assert "missing values in column 'gaps' 1 (first in data row 1)" in text
    assert text.endswith("or pass other features.")
    empty = write("a,b,y\n1,,p\n2,,q\n")
    assert load_dataset(empty, target="y", features=["b"]).X["b"].isna().all()


def test_missing_drop_ignores_columns_that_are_not_named(write):
    path = write("a,b,y\n1,,p\n,2,q\n3,,q\n4,5,\n")
    dataset = load_dataset(path, target="y", features=["a"], missing="drop")
    assert dataset.X.to_dict("list") == {"a": [1, 3]}
    assert dataset.n_rows_dropped == 2
