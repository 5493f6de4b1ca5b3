"""Figures on the pages of the arena follow from its cells, and the referee notices errors."""

from __future__ import annotations

import math
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau, rankdata

ARENA = Path(__file__).parents[1] / "benchmarks" / "arena"
sys.path.append(str(ARENA))  # the scripts of the folder import each other

from referee import PAGES, referee  # noqa: E402
from referee_cells import (  # noqa: E402
    correct_by_holm,
    fire_of,
    ice_of,
    kendall,
    ordinal_ranks,
    q_of,
    rank_biserial,
)
from referee_pages import Page, Rounded, agrees  # noqa: E402

from skescore.metrics import fire_score, ice_score, q_score  # noqa: E402


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "what" in name else name for name in PAGES],
)
def test_pages_follow_from_cells(name):
    page = referee(name)
    assert not page.differences
    assert page.n_figures > 30


@pytest.fixture
def copied_arena(tmp_path):
    """Return a copy of the pages and cells that a test may change."""
    folder = tmp_path / "benchmarks" / "arena"
    folder.mkdir(parents=True)
    for name in ("fidelity", "equal_budgets", "tuned_trees"):
        shutil.copy(ARENA / f"{name}.md", folder)
        shutil.copy(ARENA / f"{name}.csv", folder)
    return folder


@pytest.mark.parametrize("name", ["fidelity.md", "equal_budgets.md", "tuned_trees.md"])
def test_referee_notices_changed_figures(copied_arena, name):
    """The last digit of one figure in every line is changed by two."""
    path = copied_arena / name
    lines = path.read_text(encoding="utf-8").splitlines()
    rng = np.random.default_rng(0)
    changed = []
    for i, line in enumerate(lines):
        figures = list(re.finditer(r"(?<=\| )[-+]?\d[\d.]*(?= \|)", line))
        if not figures:
            continue
        figure = figures[rng.integers(len(figures))]
        last = int(figure[0][-1])
        text = figure[0][:-1] + str(last - 2 if last > 1 else last + 2)
        lines[i] = line[: figure.start()] + text + line[figure.end() :]
        changed.append(text)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    differences = referee(name, copied_arena).differences
    assert len(changed) >= 5
    assert len(differences) == len(changed)
    for text in changed:
        assert any(f": {text!r} should be" in difference for difference in differences), text


def test_referee_notices_a_changed_cell(copied_arena):
    path = copied_arena / "tuned_trees.csv"
    head, first, *rest = path.read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    cells[5] = str(int(cells[5]) + 9)  # more rules of the search
    path.write_text("\n".join([head, ",".join(cells), *rest]) + "\n", encoding="utf-8")
    differences = referee("tuned_trees.md", copied_arena).differences
    assert any(f"{cells[0]}, {cells[2]}, rules, search" in text for text in differences)


def test_referee_notices_unchecked_figures(copied_arena):
    path = copied_arena / "fidelity.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nIt is 17 % better.\n", encoding="utf-8")
    (difference,) = referee("fidelity.md", copied_arena).differences
    assert "no check covers '17'" in difference


def test_referee_notices_missing_rows(copied_arena):
    path = copied_arena / "tuned_trees.md"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith("| keel-balanced | ice")]
    path.write_text("\n".join(lines), encoding="utf-8")
    (difference,) = referee("tuned_trees.md", copied_arena).differences
    assert "lacks the row keel-balanced | ice" in difference


@pytest.mark.parametrize(
    ("printed", "value", "is_equal"),
    [
        ("0.12", 0.1249, True),
        ("0.12", 0.1251, False),
        ("1.2e-05", 1.249e-5, True),
        ("1.2e-05", 1.26e-5, False),
        ("2,000", 2000, True),
        ("−0.08", -0.0799, True),
        ("", math.nan, True),
        ("0.5", math.nan, False),
        ("0.5", Rounded(0.504, 2), True),
        ("0.5", Rounded(0.52, 2), False),
    ],
)
def test_agrees_within_half_a_unit(printed, value, is_equal):
    assert agrees(printed, value) is is_equal


def test_claim_reads_numbers_in_text(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("# A\n\nOf 12 tables,\n3 are small.\n", encoding="utf-8")
    page = Page(path)
    page.claim("Of ", 12, " tables, ", 4, " are small")
    assert "should be 'Of 12 tables, 4 are small'" in page.differences[0]


def test_referee_statistics_equal_scipy_and_the_package():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 6, (2, 40)).astype(float)
    assert kendall(a, b) == pytest.approx(kendalltau(a, b).statistic)
    assert ordinal_ranks([(0.0, value) for value in a]) == list(rankdata(a))
    p, r, c = rng.random(50), rng.integers(1, 30, 50), rng.random(50)
    for i in range(50):
        assert ice_of(p[i], r[i], c[i], 2, 0.3) == pytest.approx(
            ice_score(p[i], int(r[i]), c[i], phi=2, rho=0.3)
        )
        assert fire_of(p[i], r[i], 3) == pytest.approx(fire_score(p[i], int(r[i]), psi=3))
        assert q_of(p[i], r[i], c[i]) == pytest.approx(q_score(p[i], int(r[i]), c[i]))


def test_rank_biserial_compares_rank_sums():
    assert rank_biserial([1.0, 2.0, 3.0]) == 1
    assert rank_biserial([-1.0, 2.0, 3.0, 0.0]) == pytest.approx((2 + 3 - 1) / 6)
    assert rank_biserial([0.0]) == 0


def test_holm_corrects_for_the_number_of_tests():
    corrected = correct_by_holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": math.nan})
    assert corrected["a"] == pytest.approx(0.03)
    assert corrected["b"] == corrected["c"] == pytest.approx(0.06)
    assert math.isnan(corrected["d"])
