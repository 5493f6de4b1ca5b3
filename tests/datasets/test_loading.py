from __future__ import annotations

import dataclasses
import hashlib
import math
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.datasets

from skescore.datasets import (
    BUILT_IN,
    Dataset,
    DatasetError,
    DatasetNotFoundError,
    Preparation,
    load_dataset,
)

GOOD = "a,b,y\n1.5,2,no\n0.5,3,yes\n2.5,4,no\n"


@pytest.fixture
def write(tmp_path):
    def write(content: str, name: str = "data.csv") -> Path:
        path = tmp_path / name
        path.write_text(content, encoding="utf-8", newline="")
        return path

    return write


# Built-in data sets -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_datasets_are_valid(name):
    dataset = load_dataset(name)
    assert dataset.name == name
    assert dataset.task == BUILT_IN[name].task
    if name == "titanic":
        assert "Board of Trade, 1912" in dataset.source
        assert dataset.X.notna().all(axis=None)
    else:
        assert dataset.source.startswith("sklearn.datasets.")
        assert np.isfinite(dataset.X.to_numpy(dtype=float)).all()
    assert len(dataset.X) == len(dataset.y) > 100
    assert dataset.X.index.equals(dataset.y.index)
    assert dataset.n_rows_dropped == 0
    kinds = {type(value) for value in dataset.y.tolist()}
    assert kinds == ({str} if dataset.task == "classification" else {float})


# Sizes, columns and class frequencies as scikit-learn's user guide prints them ("Toy datasets").
@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("iris", (150, 4), {"setosa": 50, "versicolor": 50, "virginica": 50}),
        ("wine", (178, 13), {"class_0": 59, "class_1": 71, "class_2": 48}),
        ("breast_cancer", (569, 30), {"benign": 357, "malignant": 212}),
        ("diabetes", (442, 10), {}),
        ("friedman1", (1000, 10), {}),
        ("friedman2", (1000, 4), {}),
        ("friedman3", (1000, 4), {}),
        ("moons", (1000, 2), {"lower": 500, "upper": 500}),
        ("circles", (1000, 2), {"inner": 500, "outer": 500}),
    ],
)
def test_built_in_datasets_have_expected_sizes_and_classes(name, shape, counts):
    dataset = load_dataset(name)
    assert dataset.X.shape == shape
    assert dataset.class_counts == counts


def test_titanic_equals_counts_of_the_inquiry():
    """Totals of R. Dawson, Journal of Statistics Education 3(3), 1995."""
    people = load_dataset("titanic")
    saved = people.y == "yes"
    assert (len(people.X), saved.sum()) == (2201, 711)
    groups = {"class": [325, 285, 706, 885], "sex": [470, 1731], "age": [2092, 109]}
    survivors = {"class": [203, 118, 178, 212], "sex": [344, 367], "age": [654, 57]}
    for column, counts in groups.items():
        assert people.X[column].value_counts().sort_index().tolist() == counts
        assert people.X.loc[saved, column].value_counts().sort_index().tolist() == survivors[column]


def test_class_names_match_rows():
    codes = sklearn.datasets.load_breast_cancer().target
    assert (load_dataset("breast_cancer").y == np.where(codes == 0, "malignant", "benign")).all()
    moons = load_dataset("moons")
    assert moons.X["x1"][moons.y == "upper"].mean() > moons.X["x1"][moons.y == "lower"].mean()
    circles = load_dataset("circles")
    radius = np.hypot(circles.X["x0"], circles.X["x1"])
    assert radius[circles.y == "outer"].mean() > radius[circles.y == "inner"].mean()


def test_friedman1_equals_formula_plus_noise():
    dataset = load_dataset("friedman1")
    assert dataset.X.columns.tolist() == [f"x{i}" for i in range(10)]
    x = dataset.X.to_numpy()
    clean = 10 * np.sin(math.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    noise = dataset.y - (clean + 10 * x[:, 3] + 5 * x[:, 4])
    assert noise.std() == pytest.approx(0.5, abs=0.04)
    assert abs(noise.mean()) < 0.06


def test_diabetes_keeps_units_of_measurements():
    X = load_dataset("diabetes").X
    assert X["age"].between(18, 80).all()
    assert X["bmi"].between(15, 45).all()


def test_checksum_of_built_in_data_equals_csv():
    iris = sklearn.datasets.load_iris()
    lines = [",".join([*iris.feature_names, "species"])]
    lines += [
        ",".join([*map(repr, row.tolist()), str(iris.target_names[code])])
        for row, code in zip(iris.data, iris.target, strict=True)
    ]
    content = ("\n".join(lines) + "\n").encode()
    assert load_dataset("iris").checksum == hashlib.sha256(content).hexdigest()
    assert load_dataset("iris", drop="sepal width (cm)").checksum == load_dataset("iris").checksum


def test_built_in_name_wins_over_a_file_but_not_over_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("iris").write_text(GOOD)
    assert len(load_dataset("iris").X) == 150
    with pytest.raises(DatasetError, match="unknown ending ''"):
        load_dataset("./iris", target="y")
    with pytest.raises(DatasetError, match="unknown ending ''"):
        load_dataset(Path("iris"), target="y")


def test_built_in_datasets_check_options():
    assert load_dataset("iris", target="species", drop=("sepal width (cm)",)).X.shape == (150, 3)
    with pytest.raises(DatasetError, match=r"target must be 'species' or left out .* got 'y'"):
        load_dataset("iris", target="y")
    with pytest.raises(DatasetError, match=r"task='regression' does not fit .* 'iris'"):
        load_dataset("iris", task="regression")
    with pytest.raises(DatasetError, match="drop must be among the columns, got 'petal'"):
        load_dataset("iris", drop="petal")


def test_constant_columns_of_digits_are_listed():
    dataset = load_dataset("digits")
    spread = dataset.X.max() - dataset.X.min()
    assert dataset.constant_columns == tuple(spread.index[spread == 0])
    assert "pixel_0_0" in dataset.constant_columns
    assert sorted(dataset.class_counts) == list("0123456789")


def test_dataset_is_frozen_and_survives_pickle():
    dataset = load_dataset("iris")
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.task = "regression"
    copy = pickle.loads(pickle.dumps(dataset))
    pd.testing.assert_frame_equal(copy.X, dataset.X)
    assert (copy.checksum, copy.class_counts) == (dataset.checksum, dataset.class_counts)
    assert "sepal" not in repr(dataset)


def test_features_parameter_selects_built_in_columns():
    dataset = load_dataset("wine", features=["proline", "alcohol"])
    assert dataset.X.columns.tolist() == ["proline", "alcohol"]
    assert dataset.checksum == load_dataset("wine").checksum
    with pytest.raises(DatasetError, match="wine: features must not contain the target"):
        load_dataset("wine", features=["proline", "cultivar"])


# Finding files ------------------------------------------------------------------------------------


def test_unknown_name_suggests_built_in_names():
    with pytest.raises(DatasetNotFoundError) as caught:
        load_dataset("irsi")
    assert isinstance(caught.value, DatasetError)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, FileNotFoundError)
    text = str(caught.value)
    assert "'irsi' is neither a built-in data set nor an existing file." in text
    assert "Did you mean 'iris'?" in text
    assert "friedman1" in text


def test_unknown_file_error_suggests_similar_files(write, tmp_path):
    write(GOOD, "flowers.csv")
    with pytest.raises(DatasetNotFoundError, match=r"Similar in .*: 'flowers\.csv'"):
        load_dataset(tmp_path / "flower.csv", target="y")
    with pytest.raises(DatasetNotFoundError, match="does not exist or cannot be read"):
        load_dataset(tmp_path / "nowhere" / "flower.csv", target="y")
    with pytest.raises(DatasetNotFoundError, match="download the file first"):
        load_dataset("https://example.org/flowers.csv", target="y")


def test_load_dataset_rejects_invalid_parameters(write):
    path = write(GOOD)
    with pytest.raises(DatasetError, match=r"task must be one of 'auto', .* got 'cluster'"):
        load_dataset(path, target="y", task="cluster")
    with pytest.raises(
        DatasetError, match="missing must be one of 'keep', 'error', 'drop', got 'mean'"
    ):
        load_dataset(path, target="y", missing="mean")
    with pytest.raises(TypeError, match=r"data must be the name .* got list"):
        load_dataset([[1, 2]], target="a")


def test_errors_state_the_public_module():
    # It is in every traceback, so it should be the name to import from.
    assert DatasetError.__module__ == DatasetNotFoundError.__module__ == "skescore.datasets"


def test_load_dataset_checks_data_frames_like_files(write):
    path = write(GOOD)
    read = load_dataset(path, target="y")
    frame = pd.read_csv(path).set_index(pd.Index(range(5, 5 + len(read.X))))
    dataset = load_dataset(frame, target="y")
    pd.testing.assert_frame_equal(dataset.X, read.X)
    pd.testing.assert_series_equal(dataset.y, read.y)
    assert (dataset.name, dataset.source) == ("data", "a data frame")
    assert dataset.checksum != load_dataset(frame.assign(a=0), target="y").checksum
    with pytest.raises(DatasetError, match="the data frame"):
        load_dataset(frame, target="z")


# Speed --------------------------------------------------------------------------------------------


def test_load_dataset_needs_no_loop_over_rows(write):
    def calls(n_rows: int) -> int:
        rows = "".join(f"{i},{i / 7},{bool(i % 2)},{'pq'[i % 2]}\n" for i in range(n_rows))
        path = write("a,b,c,y\n" + rows, f"{n_rows}.csv")
        count = 0

        def profile(*_):
            nonlocal count
            count += 1

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            load_dataset(path, target="y")
        finally:
            sys.setprofile(before)
        return count

    calls(100)  # first imports and caches
    assert calls(5000) < calls(101) + 1000


def test_dataset_accepts_its_fields():
    X = pd.DataFrame({"a": [1, 1], "b": [2, 3]})
    dataset = Dataset(X, pd.Series([True, False], name="y"), "classification", "n", "s", "c")
    assert dataset.constant_columns == ("a",)
    assert dataset.class_counts == {False: 1, True: 1}


# --- categories ---


def test_declared_categories_are_text(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("colour,floor,size,price\nred,1,3.5,10.5\nblue,2,4,11.25\nred,1,5,12.5\n")
    houses = load_dataset(path, target="price", categories=["colour", "floor"])
    assert houses.categories == ("colour", "floor")
    assert houses.X["colour"].tolist() == ["red", "blue", "red"]
    assert houses.X["floor"].tolist() == ["1", "2", "1"]
    assert houses.X["size"].tolist() == [3.5, 4.0, 5.0]
    assert load_dataset(path, target="price", categories="colour").categories == ("colour",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"categories": "shape"}, "categories must be among the columns, got 'shape'"),
        ({"categories": "price"}, "'price' is the target"),
        ({"categories": "colour", "drop": "colour"}, "drop must not name the target"),
    ],
)
def test_categories_parameter_rejects_invalid_columns(tmp_path, options, message):
    path = tmp_path / "houses.csv"
    path.write_text("colour,price\nred,10.5\nblue,11.25\n")
    with pytest.raises(DatasetError, match=message):
        load_dataset(path, target="price", **options)


def test_categories_of_floats_lose_their_point(tmp_path):
    path = tmp_path / "houses.csv"
    path.write_text("zone,price\n1,10.5\n2,11.25\n,9.5\n")
    houses = load_dataset(path, target="price", categories="zone", missing="drop")
    assert houses.X["zone"].tolist() == ["1", "2"]


def test_labels_parameter_merges_classes_of_one_name(write):
    path = write("a,y\n1.5,Well\n2,well\n3,ill\n4,\n")
    data = load_dataset(path, target="y", labels={"Well": "well"})
    assert data.y.tolist() == ["well", "well", "ill"]
    numbers = write("a,y\n1.5,0\n2,1\n3,0\n4,\n", "numbers.csv")
    data = load_dataset(numbers, target="y", labels={"0": "no", "1": "yes"})
    assert (data.y.tolist(), data.task) == (["no", "yes", "no"], "classification")
    data = load_dataset(path, target="y", labels={"Well": "1", "well": "1", "ill": "0"})
    assert data.y.tolist() == [1, 1, 0]  # the classes of a model whose labels were encoded


def test_labels_parameter_rejects_unknown_classes(write):
    path = write("a,y\n1.5,well\n2,ill\n")
    with pytest.raises(DatasetError, match=r"no class 'wel' .*\. Did you mean 'well'"):
        load_dataset(path, target="y", labels={"wel": "well"})
    training = load_dataset(write("a,y\n1,Well\n2,ill\n", "t.csv"), target="y")
    later = load_dataset(
        path, target="y", labels={"Well": "well"}, preparation=training.preparation
    )
    assert later.y.tolist() == ["well", "ill"]  # a rare class may be absent from later rows


def test_labels_parameter_rejects_quantities_and_single_class(write):
    path = write("a,y\n1.5,1.25\n2,2.5\n3,3.75\n")
    with pytest.raises(DatasetError, match="'y' is numeric"):
        load_dataset(path, target="y", labels={"1.25": "7"})
    path = write("a,y\n1.5,well\n2,ill\n", "two.csv")
    with pytest.raises(DatasetError, match="at least 2 classes are needed"):
        load_dataset(path, target="y", labels={"well": "ill"})


def test_labels_parameter_renames_one_of_two_numbers(write):
    path = write("a,y\n1.5,0\n2,1\n3,0\n4,\n")
    assert load_dataset(path, target="y", labels={"0": "no"}).y.tolist() == ["no", "1", "no"]


def test_preparation_renames_classes_of_later_rows(write):
    path = write("a,y\n1.5,Well\n2,well\n3,ill\n")
    first = load_dataset(path, target="y", labels={"Well": "well"})
    stored = Preparation.from_dict(first.preparation.to_dict())
    assert load_dataset(path, target="y", preparation=stored).y.tolist() == ["well", "well", "ill"]


def test_drop_duplicates_removes_rows_with_their_groups(write):
    path = write("who,a,b,y\np,1.5,x,no\nq,2,x,yes\nr,1.5,x,no\ns,1.5,x,yes\nt,,x,no\nu,,x,no\n")
    data = load_dataset(path, target="y", groups="who", drop_duplicates=True)
    assert data.X["a"].tolist()[:3] == [1.5, 2.0, 1.5]
    assert data.y.tolist() == ["no", "yes", "yes", "no"]
    assert data.groups.tolist() == ["p", "q", "s", "t"]
    assert data.n_rows_dropped == 0  # no value is missing
    assert any(text.startswith("2 of 6 rows are left out") for text in data.findings)


@pytest.mark.parametrize("are_plain", [False, True])
def test_later_target_must_have_the_unit_of_the_earlier_one(are_plain: bool) -> None:
    numbers: list[object] = [f"${1000 + 10 * k:,}.50" for k in range(30)]
    if are_plain:
        numbers = [1000.5 + 10 * k for k in range(30)]
    first = load_dataset(pd.DataFrame({"a": range(30), "y": numbers}), target="y")
    later = pd.DataFrame({"a": range(30), "y": [f"{1 + 0.01 * k:.3f}k" for k in range(30)]})
    with pytest.raises(DatasetError, match=r"1\.000k"):
        load_dataset(later, target="y", task="regression", preparation=first.preparation)
    assert first.preparation.read_target(pd.Series(["$5", " ", ""], name="y"))[1:].isna().all()
