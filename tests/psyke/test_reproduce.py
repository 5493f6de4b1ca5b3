"""Tables of the papers, reproduced with the real PSyKE and the settings of its demonstrations."""

from __future__ import annotations

import warnings

import pytest

from skescore.cli import main
from skescore.reproduce import FIRE_TABLE, ICE_MEASURES, ICE_TABLE, reproduce_fire, reproduce_ice


@pytest.fixture(scope="module")
def fire_table():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return reproduce_fire(engines=("ours", "psyke"), n_splits=1)


@pytest.mark.slow
def test_fire_verdicts_cover_the_whole_table(fire_table):
    verdicts = {result["row"]: result for result in fire_table["verdicts"]}
    assert list(verdicts) == ["9-NN", *FIRE_TABLE]
    missing = {
        (name, figure)
        for name, result in verdicts.items()
        for figure, is_equal in result["figures"].items()
        if not is_equal
    }
    # No error rate is consistent with all three scores of this row.
    assert missing == {("GridEx, 4 x 4 slices", "fire_3")}
    assert all(result["verdict"].startswith("reproduced") for result in verdicts.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_errors", "n_counted"),
    [
        ("CART", 4, 75),
        ("ITER", 8, 70),
        ("clustering, 4 features", 5, 73),
        ("clustering, 2 features", 6, 70),
        ("GridEx, 4 x 4 slices", 2, 69),
    ],
)
def test_fire_rows_of_psyke_equal_public_split(name, n_errors, n_counted, fire_table):
    row = next(r for r in fire_table["rows"] if (r["row"], r["engine"]) == (name, "psyke"))
    measured = row["public"]
    assert (measured["n_errors"], measured["n_counted"]) == (n_errors, n_counted)
    assert measured["n_rules"] == FIRE_TABLE[name].n_rules


@pytest.mark.slow
def test_fire_command_runs_with_psyke(capsys):
    assert main(["reproduce", "fire", "--psyke", "--splits", "1", "--quiet"]) == 0
    assert "PSyKE, half, seed 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "extractor", "f1"),
    [
        ("wine", "exact", 0.7972),
        ("wine", "cream", 0.9493),
        ("breast_cancer", "cream", 0.9409),
        ("breast_cancer", "cart", 0.9408),
    ],
)
def test_ice_columns_of_psyke_match_the_paper(data, extractor, f1):
    table = reproduce_ice(
        data=[data], extractors=[extractor], n_trials=1, n_splits=1, engines=("ours", "psyke")
    )
    row, printed = table["rows"][0], ICE_TABLE[data, extractor]
    assert row["psyke"]["f1"] == pytest.approx(f1, abs=5e-5)
    assert row["psyke"]["n_rules"] == printed.n_rules
    assert tuple(f"{row['psyke'][name]:.3f}" for name in ICE_MEASURES) == printed.scores
    assert row["verdict"] == "reproduced with stated settings"
