"""Rows at prediction time that differ from the training rows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from skescore.datasets import read_table
from skescore.suspicions import ColumnProfile, count_outside, find_drift, profile_columns


def make_rows(n_rows: int = 189, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "bwt": random.normal(2900, 700, n_rows).clip(700, 4990).round(),
            "height": random.normal(1.7, 0.1, n_rows).round(2),
            "ward": random.choice(["a", "b", "c"], n_rows, p=[0.6, 0.3, 0.1]),
            "gap": np.where(random.random(n_rows) < 0.1, np.nan, random.normal(size=n_rows)),
        }
    )


PROFILES = profile_columns(make_rows())


@pytest.mark.parametrize("seed", range(1, 21))
@pytest.mark.parametrize("n_rows", [1, 10, 189])
def test_find_drift_accepts_similar_rows(seed, n_rows):
    assert find_drift(PROFILES, make_rows(n_rows, seed)) == []


@pytest.mark.parametrize(
    ("column", "factor", "expected"),
    [
        ("bwt", 0.001, "all 189 rows are below the training minimum of 'bwt'"),
        ("bwt", 1000, "all 189 rows are above the training maximum of 'bwt'"),
        ("height", 100, "all 189 rows are above the training maximum of 'height'"),
        ("height", 1 / 0.3048, "about 3.28 times that of the training rows"),
    ],
)
def test_find_drift_reports_other_units(column, factor, expected):
    rows = make_rows(seed=1)
    (text,) = find_drift(PROFILES, rows.assign(**{column: rows[column] * factor}))
    assert expected in text
    assert ": other units? (their median is" in text


def test_later_dates_are_no_other_units():
    days = pd.date_range("2015-01-01", periods=300, freq="D").to_series().reset_index(drop=True)
    table = read_table(pd.DataFrame({"paid": days, "x": np.random.default_rng(0).normal(size=300)}))
    later = pd.DataFrame({"paid": days + pd.Timedelta(days=700), "x": table.frame["x"]})
    rows = read_table(later, preparation=table.preparation).frame
    days_text = "all 300 rows are above the training maximum of 'paid: days since 2015-01-01' (299)"
    texts = find_drift(profile_columns(table.frame), rows)
    assert f"{days_text}: later dates" in texts
    assert "units" not in str(texts)
    profiles = {"year": ColumnProfile.from_limits(2015, 2019)}
    (text,) = find_drift(profiles, pd.DataFrame({"year": [2012] * 40}))
    assert text == "all 40 rows are below the training minimum of 'year' (2015): earlier dates"


def test_find_drift_reports_shifts_inside_of_the_range():
    rows = make_rows(seed=1)
    (text,) = find_drift(PROFILES, rows.assign(bwt=rows["bwt"].clip(3000, 3500)))
    assert text.startswith(
        "the distribution of 'bwt' differs from the training rows: its median is"
    )
    (text,) = find_drift(PROFILES, rows.assign(ward="c"))
    assert text.endswith("'c' in 100 % of the rows, in 7 % of the training rows")


def test_find_drift_reports_new_categories_and_fractions():
    rows = make_rows(seed=1)
    (text,) = find_drift(PROFILES, rows.assign(ward=rows["ward"].str.upper()))
    assert text.startswith("all 189 rows have categories of 'ward' that do not occur in")
    (text,) = find_drift(PROFILES, rows.assign(bwt=rows["bwt"] + 0.5))
    assert text.startswith("all 189 rows have fractions in 'bwt', which holds whole numbers")


def test_find_drift_reports_more_missing_values():
    (text,) = find_drift(PROFILES, make_rows(seed=1).assign(gap=np.nan))
    assert text.startswith("'gap' is missing in all 189 rows, but in")


def test_find_drift_reports_single_distant_rows():
    rows = make_rows(seed=1)
    rows["bwt"] = rows["bwt"].clip(1300, 4000)
    rows.loc[3, "bwt"] = 290_000
    (text,) = find_drift(PROFILES, rows)
    assert text.startswith("1 of 189 rows is above the training maximum of 'bwt'")
    assert count_outside(PROFILES, rows)["bwt"] == 1


def test_find_drift_accepts_single_values_of_a_long_tail():
    shares = (np.arange(400) + 0.5) / 400
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"income": shares ** (-1 / 0.7), "mass": random.normal(70, 9, 400)})
    profiles = profile_columns(rows)
    later = rows.assign(income=[12 * rows["income"].max(), *rows["income"][1:]])
    assert find_drift(profiles, later) == []
    (text,) = find_drift(profiles, rows.assign(mass=[12 * 70.0 + 1e3, *rows["mass"][1:]]))
    assert "above the training maximum of 'mass'" in text


def test_find_drift_expects_new_categories_of_rare_values():
    states = np.random.default_rng(0).permutation(np.repeat([f"S{k}" for k in range(50)], 2))
    profiles = profile_columns(pd.DataFrame({"state": states[:50]}))
    assert find_drift(profiles, pd.DataFrame({"state": states[50:]})) == []
    rows = pd.DataFrame({"state": np.where(np.arange(50) < 45, "elsewhere", states[50:])})
    assert "have categories of 'state'" in find_drift(profiles, rows)[0]


def test_profiles_survive_json():
    stored = json.loads(json.dumps({n: p.to_dict() for n, p in PROFILES.items()}))
    assert {n: ColumnProfile.from_dict(p) for n, p in stored.items()} == PROFILES


def test_limits_suffice_to_report_other_units():
    profiles = {"bwt": ColumnProfile.from_limits(700, 4990)}
    assert find_drift(profiles, make_rows(seed=1)) == []
    (text,) = find_drift(profiles, make_rows()[["bwt"]] / 1000)
    assert text == "all 189 rows are below the training minimum of 'bwt' (700): other units?"
