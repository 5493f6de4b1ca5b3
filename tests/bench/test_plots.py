from __future__ import annotations

import pandas as pd
import pytest

from skescore.bench import compare_ranks, critical_difference_plot

figures = pytest.importorskip("matplotlib.figure")

RANKS = [[1.0, 2.0, 3.0, 4.0]] * 9


def compared(rows):
    return compare_ranks(pd.DataFrame(rows, columns=["cart", "iter", "real", "gridex"]))


def bars(ax):
    """Return the ends of the thick lines that join extractors."""
    return [tuple(map(float, line.get_xdata())) for line in ax.lines if line.get_linewidth() == 4]


def test_plot_joins_groups_by_bars():
    comparison = compared(RANKS)
    ax = critical_difference_plot(comparison, title="ICE")
    texts = {text.get_text() for text in ax.texts}
    assert {"CART  1.00", "ITER  2.00", "3.00  REAL", "4.00  GridEx", "1", "4"} <= texts
    assert f"critical difference {comparison.critical_difference:.2f}" in texts
    assert [tuple(round(x) for x in ends) for ends in bars(ax)] == [(1, 2), (2, 3), (3, 4)]
    assert ax.get_title() == "ICE: average rank over 9 data sets, 1 is best"
    marks = [line for line in ax.lines if line.get_marker() == "|"]
    low, high = marks[0].get_xdata()
    assert high - low == pytest.approx(comparison.critical_difference)


def test_plot_without_significant_difference_has_one_bar():
    comparison = compared([[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]])
    ax = critical_difference_plot(comparison)
    assert len(bars(ax)) == 1
    assert not any("critical" in text.get_text() for text in ax.texts)


def test_plot_uses_given_axes(tmp_path):
    figure = figures.Figure()
    ax = figure.add_subplot()
    assert critical_difference_plot(compared(RANKS[:1]), ax=ax) is ax
    assert bars(ax) == []  # one data set is not significant
    figure.savefig(tmp_path / "ranks.svg")
    assert (tmp_path / "ranks.svg").stat().st_size > 1000
