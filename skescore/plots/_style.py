"""What all plots share: colours that everyone can tell apart, axes, legends and their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skescore._optional import import_optional

#: Colours of Okabe and Ito, which people with any common colour blindness can tell apart.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#666666", "#F0E442",
)  # fmt: skip
#: Ten that differ in hue and lightness (after P. Tol's muted scheme), for more things than that.
MORE_COLOURS = (
    "#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255",
    "#AA4499", "#666666",
)  # fmt: skip
#: The second sign beside the colour, for prints in grey.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: Lightness rises steadily with the number, for every eye and in grey.
SEQUENTIAL = "cividis"
BETTER, WORSE = "#56B4E9", "#E69F00"

_PURPOSE = "Drawing a plot"


def matplotlib_module(name: str) -> Any:
    """Import a module of matplotlib, or say how to install it.

    Parameters
    ----------
    name : str
        Such as ``"pyplot"``.

    Returns
    -------
    module
        The module.
    """
    return import_optional(f"matplotlib.{name}", extra="plots", purpose=_PURPOSE)


def axes_or_new(ax: Any, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """Give the axes to draw on: those of the caller, or those of a new figure.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        What the caller passed.
    size : (float, float), default=(6.4, 4.4)
        Width and height of a new figure in inches.

    Returns
    -------
    matplotlib.axes.Axes
        Where to draw.

    Raises
    ------
    TypeError
        If it is something else, such as an array of axes or a figure.
    """
    if ax is None:
        return matplotlib_module("pyplot").subplots(figsize=size, layout="constrained")[1]
    axes = matplotlib_module("axes")
    if not isinstance(ax, axes.Axes):
        raise TypeError(
            f"ax must be the Axes of matplotlib to draw on, got {type(ax).__name__}: {ax!r}. Take "
            "one of `fig, axes = plt.subplots(...)`, or leave it out for a new figure."
        )
    return ax


def is_3d(ax: Any) -> bool:
    """Whether axes have three dimensions."""
    return getattr(ax, "name", "") == "3d"


def points_above(ax: Any) -> None:
    """Let points lie above surfaces, which hide them otherwise."""
    ax.computed_zorder = False


def colours_of(n: int) -> list[str]:
    """As many colours as there are things, different as far as eyes can tell.

    Parameters
    ----------
    n : int
        How many.

    Returns
    -------
    list of str
        As ``#rrggbb``. Up to eight are those of Okabe and Ito, nine and ten are others without an
        order; more are steps of one scale.
    """
    for palette in (COLOURS, MORE_COLOURS):
        if n <= len(palette):
            return list(palette[:n])
    colors, maps = matplotlib_module("colors"), matplotlib_module("cm")
    scale = maps.ScalarMappable(cmap="viridis").to_rgba(np.linspace(0.0, 1.0, n), norm=False)
    return [colors.to_hex(colour) for colour in scale]


def markers_of(n: int) -> list[str]:
    """As many markers as there are things; after eight they repeat."""
    return [MARKERS[i % len(MARKERS)] for i in range(n)]


def pale(colour: str, strength: float = 0.4) -> str:
    """Mix a colour with white, so that points and black text stay readable on it.

    Parameters
    ----------
    colour : str
        The colour.
    strength : float, default=0.4
        From 0 for white to 1 for the colour.

    Returns
    -------
    str
        As ``#rrggbb``.
    """
    colors = matplotlib_module("colors")
    mixed = strength * np.asarray(colors.to_rgb(colour)) + (1.0 - strength)
    return str(colors.to_hex(mixed))


def legend_beside(ax: Any, title: str | None = None, handles: Sequence[Any] | None = None) -> None:
    """Put the legend to the right of the axes, where it covers nothing.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The axes.
    title : str, optional
        Its title.
    handles : sequence of artists, optional
        What it lists; by default all that has a label.
    """
    found = list(handles) if handles is not None else ax.get_legend_handles_labels()[0]
    if not found:
        return
    beside = 1.14 if is_3d(ax) else 1.01
    ax.legend(
        handles=found, title=title, loc="upper left", bbox_to_anchor=(beside, 1.0),
        borderaxespad=0.0, frameon=False, fontsize="small", title_fontsize="small",
        ncols=1 + (len(found) - 1) // 24, alignment="left",
    )  # fmt: skip


def short(text: Any, longest: int = 28) -> str:
    """Shorten a text in its middle, where names of features differ least."""
    text = str(text) or '""'
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def contrast(colour: Any) -> str:
    """Black or white, whichever is easier to read on a colour."""
    channels = np.asarray(matplotlib_module("colors").to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ [0.2126, 0.7152, 0.0722])
    return "black" if (luminance + 0.05) ** 2 > 0.0525 else "white"


# --- candidates as points: which is which by colour, marker and legend ---------------------------

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
