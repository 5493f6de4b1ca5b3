"""Groups and times of rows, and the folds that follow them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore._splitters import make_group_splitter, make_time_splitter
from skescore.bench import split_rows
from skescore.datasets import DatasetError, load_dataset


@pytest.fixture
def visits() -> pd.DataFrame:
    """Return two rows per patient, on days that are not in order."""
    random = np.random.default_rng(0)
    days = pd.date_range("2019-01-01", periods=120).strftime("%d.%m.%Y")
    table = pd.DataFrame(
        {
            "patient": np.repeat([f"P{i}" for i in range(60)], 2),
            "day": days,
            "age": random.integers(20, 80, 120),
            "ill": random.choice(["no", "yes"], 120),
        }
    )
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


def test_groups_are_kept_but_are_no_feature(visits):
    dataset = load_dataset(visits, target="ill", groups="patient")
    assert dataset.groups.tolist() == visits["patient"].tolist()
    assert "patient" not in dataset.X
    chosen = load_dataset(visits, target="ill", groups="patient", features=["patient", "age"])
    assert list(chosen.X) == ["patient", "age"]


def test_rows_without_a_group_are_groups_of_their_own(visits):
    visits.loc[[3, 9], "patient"] = None
    dataset = load_dataset(visits, target="ill", groups="patient")
    assert dataset.groups[[3, 9]].nunique() == 2
    assert any("2 rows have no 'patient'" in text for text in dataset.findings)


def test_time_parameter_sorts_rows_and_removes_the_trend(visits):
    dataset = load_dataset(visits, target="ill", time="day")
    order = pd.to_datetime(visits["day"], format="%d.%m.%Y").sort_values(kind="stable").index
    assert dataset.X["age"].tolist() == visits.loc[order, "age"].tolist()
    assert dataset.times.is_monotonic_increasing
    assert list(dataset.X) == ["patient", "day: weekday", "age"] or "day: month" not in dataset.X


def test_rows_without_a_time_are_omitted(visits):
    visits.loc[5, "day"] = None
    dataset = load_dataset(visits, target="ill", time="day")
    assert len(dataset.X) == 119
    assert any("their time ('day') is missing" in text for text in dataset.findings)


def test_time_parameter_accepts_numbers_and_rejects_texts(visits):
    visits["step"] = np.arange(120)[::-1]
    dataset = load_dataset(visits, target="ill", time="step")
    assert dataset.times.tolist() == list(range(120))
    assert "step" not in dataset.X
    with pytest.raises(DatasetError, match="time must be a column of dates or numbers"):
        load_dataset(visits, target="ill", time="patient")


@pytest.mark.parametrize("parameter", ["groups", "time"])
def test_unknown_columns_get_a_suggestion(visits, parameter):
    with pytest.raises(DatasetError, match="Did you mean 'patient'"):
        load_dataset(visits, target="ill", **{parameter: "Patientt"})
    with pytest.raises(DatasetError, match="must not be the target"):
        load_dataset(visits, target="ill", **{parameter: "ill"})


@given(st.lists(st.integers(0, 9), min_size=12, max_size=60), st.integers(2, 4), st.booleans())
def test_group_splitter_never_divides_a_group(groups, n_folds, has_classes):
    y = np.arange(len(groups)) % 2 if has_classes else None
    if len(set(groups)) < n_folds:
        with pytest.raises(ValueError, match="at least as many different values"):
            make_group_splitter(n_folds, groups, y)
        return
    splitter = make_group_splitter(n_folds, groups, y, random_state=0)
    rows = np.zeros((len(groups), 1))
    tested = []
    for train, test in splitter.split(rows, y, groups):
        assert not {groups[i] for i in train} & {groups[i] for i in test}
        tested += test.tolist()
    assert sorted(tested) == list(range(len(groups)))


def test_time_splitter_holds_out_later_rows_only():
    for train, test in make_time_splitter(3, 20).split(np.zeros((20, 1))):
        assert train.max() < test.min()
    with pytest.raises(ValueError, match="more rows than folds"):
        make_time_splitter(5, 5)


@pytest.mark.parametrize("folds", [1, 3])
def test_bench_splits_keep_groups_and_time(visits, folds):
    grouped = load_dataset(visits, target="ill", groups="patient")
    for train, test in split_rows(grouped, 0, folds, 0.5):
        assert not {*grouped.groups[train]} & {*grouped.groups[test]}
    timed = load_dataset(visits, target="ill", time="day")
    for train, test in split_rows(timed, 0, folds, 0.5):
        assert train.max() < test.min()


@pytest.mark.parametrize("style", ["%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%d", "%d.%m.%Y %H:%M", "number"])
def test_since_parameter_omits_earlier_rows(style: str) -> None:
    """The oracle is a loop; dates are written like those of the column, or year first."""
    days = pd.date_range("2026-01-15", periods=60)
    frame = pd.DataFrame({"x": range(60), "y": ["no", "yes"] * 30})
    frame["day"] = range(60) if style == "number" else days.strftime(style)
    first = 48  # the 4th of March, which is the 3rd of April elsewhere
    expected = [row for row in range(60) if days[row] >= pd.Timestamp("2026-03-04")]
    assert expected[0] == first
    texts = ["48", 47.5] if style == "number" else [days[first].strftime(style), "2026-03-04"]
    for since in texts:
        shuffled = frame.sample(frac=1.0, random_state=0)
        dataset = load_dataset(shuffled, target="y", time="day", since=since, features=["x"])
        assert dataset.X["x"].tolist() == expected
        assert f"48 rows before {since} are left out" in dataset.findings
        assert dataset.n_rows_dropped == 0  # no value is missing


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"since": "2026-01-01"}, "needs the column of the time"),
        ({"since": "soon", "time": "day"}, "since must be a date"),
        ({"since": "2027-01-01", "time": "day"}, "leaves 0 of 10 rows"),
        ({"since": "soon", "time": "x"}, "since must be a number"),
    ],
)
def test_since_parameter_rejects_invalid_values(options: dict[str, str], text: str) -> None:
    frame = pd.DataFrame({"x": range(10), "y": ["no", "yes"] * 5})
    frame["day"] = pd.date_range("2026-01-15", periods=10).strftime("%d.%m.%Y")
    with pytest.raises(DatasetError, match=text):
        load_dataset(frame, target="y", **options)
