"""Candidates as points: which is which by colour, marker and legend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skescore.plots._style import colours_of, legend_beside, markers_of, points_above, short

#: So many candidates get a colour and a name each; more are told apart by their extractor.
_NAMED = 8


def groups_of(table: pd.DataFrame) -> np.ndarray:
    """Name the group of each row: its label while there are few, its extractor otherwise.

    Parameters
    ----------
    table : DataFrame
        With the columns ``label`` and ``extractor``.

    Returns
    -------
    ndarray of str
        One per row.
    """
    few = table["label"].nunique() <= _NAMED
    return table["label" if few else "extractor"].astype(str).to_numpy()


def _rings(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Sizes by which points at one place stay visible: those drawn later are smaller."""
    places = list(zip(x.tolist(), y.tolist(), strict=True))
    left = dict.fromkeys(places, 0)
    sizes = np.ones(len(places))
    for i in reversed(range(len(places))):
        sizes[i] += 0.9 * left[places[i]]
        left[places[i]] = min(left[places[i]] + 1, 4)
    return sizes


def draw_points(
    ax: Any,
    table: pd.DataFrame,
    x: np.ndarray,
    y: np.ndarray,
    *,
    z: np.ndarray | None = None,
    legend: bool = True,
    zorder: float = 4.0,
) -> list[str]:
    """Draw candidates as points, with a legend beside the axes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        Where.
    table : DataFrame
        With the columns ``label`` and ``extractor``.
    x, y, z : ndarray of float
        The positions; z on axes with three dimensions only.
    legend : bool, default=True
        Whether a legend is made.
    zorder : float, default=4.0
        What is drawn above.

    Returns
    -------
    list of str
        The colour of each row.
    """
    groups = groups_of(table)
    names = list(dict.fromkeys(groups.tolist()))
    colours = dict(zip(names, colours_of(len(names)), strict=True))
    markers = dict(zip(names, markers_of(len(names)), strict=True))
    crowd = len(table) > 60
    sizes = np.full(len(table), 22.0) if crowd else 60.0 * _rings(x, y)
    if z is not None:
        points_above(ax)
    for name in names:
        own = groups == name
        places = [x[own], y[own]] + ([] if z is None else [z[own]])
        ax.scatter(
            *places, s=sizes[own], c=colours[name], marker=markers[name],
            edgecolors="black", linewidths=0.3 if crowd else 0.8, alpha=0.75 if crowd else 1.0,
            label=short(name, 40), zorder=zorder,
        )  # fmt: skip
    if legend:
        legend_beside(ax, None if len(names) == len(table) else "extractor")
    return [colours[name] for name in groups.tolist()]
