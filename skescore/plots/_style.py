"""Common style of all plots: distinguishable colors, axes, ranges, legends and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skescore._optional import import_optional
from skescore._validation import python_value
from skescore.registry import extractor_label

#: Colors of Okabe and Ito, which are distinguishable with all common color vision deficiencies.
COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#666666",
    "#F0E442",
)
#: Ten colors that differ in hue and lightness (after P. Tol's muted scheme), for more items.
MORE_COLORS = (
    "#332288",
    "#88CCEE",
    "#44AA99",
    "#117733",
    "#999933",
    "#DDCC77",
    "#CC6677",
    "#882255",
    "#AA4499",
    "#666666",
)
#: Colors of regions that differ in hue and lightness and are pale enough for black text.
PALE_COLORS = (
    "#88ccee",
    "#ddcc77",
    "#cc6677",
    "#44aa99",
    "#aa88cc",
    "#999933",
    "#ee9955",
    "#6699cc",
    "#bbbbbb",
    "#ee88aa",
    "#66aa55",
    "#bb9977",
)
#: Markers, which distinguish points in addition to colors, for example in grayscale prints.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINE_STYLES = ("-", "--", "-.", ":")
#: Color map whose lightness increases monotonically with the number.
SEQUENTIAL = "cividis"
BETTER, WORSE = "#56B4E9", "#E69F00"

#: Largest number of rows that are drawn; of more rows, a subset is drawn.
_MAX_ROWS = 600
_PURPOSE = "Drawing a plot"


def matplotlib_module(name: str) -> Any:
    """Import a module of matplotlib; raise an ImportError with the installation command."""
    return import_optional(f"matplotlib.{name}", extra="plots", purpose=_PURPOSE)


def axes_or_new(ax: Any, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """Return the caller's axes, or the axes of a new figure."""
    if ax is None:
        return matplotlib_module("pyplot").subplots(figsize=size, layout="constrained")[1]
    axes = matplotlib_module("axes")
    if not isinstance(ax, axes.Axes):
        raise TypeError(
            f"ax must be the Axes of matplotlib to draw on, got {type(ax).__name__}: {ax!r}. Use "
            "one of `fig, axes = plt.subplots(...)`, or omit it for a new figure."
        )
    return ax


def is_3d(ax: Any) -> bool:
    """Return whether axes have three dimensions."""
    return getattr(ax, "name", "") == "3d"


def points_above(ax: Any) -> None:
    """Configure 3D axes to draw points above surfaces, which would hide them."""
    ax.computed_zorder = False


def colors_of(n: int) -> list[str]:
    """Return distinguishable colors.

    Parameters
    ----------
    n : int
        Number of colors.

    Returns
    -------
    list of str
        Hexadecimal colors.

    Examples
    --------
    >>> from skescore.plots import colors_of
    >>> colors_of(2)
    ['#0072B2', '#E69F00']
    """
    for palette in (COLORS, MORE_COLORS):
        if n <= len(palette):
            return list(palette[:n])
    colors, maps = matplotlib_module("colors"), matplotlib_module("cm")
    scale = maps.ScalarMappable(cmap="viridis").to_rgba(np.linspace(0.0, 1.0, n), norm=False)
    return [colors.to_hex(color) for color in scale]


def markers_of(n: int) -> list[str]:
    """Return n markers, which repeat after eight."""
    return [MARKERS[i % len(MARKERS)] for i in range(n)]


def pale(color: str, strength: float = 0.4) -> str:
    """Mix a color with white, so that points and black text are readable on it.

    Parameters
    ----------
    color : str
        Any color of matplotlib.
    strength : float, default=0.4
        Share of the color: 0 is white.

    Returns
    -------
    str
        Hexadecimal color.
    """
    colors = matplotlib_module("colors")
    mixed = strength * np.asarray(colors.to_rgb(color)) + (1.0 - strength)
    return str(colors.to_hex(mixed))


#: Width of a color bar beside the axes, with its numbers and label.
_SCALE_INCHES = 0.95


def legend_beside(ax: Any, title: str | None = None, handles: Sequence[Any] | None = None) -> None:
    """Draw the legend to the right of the axes.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        The axes.
    title : str, optional
        Title of the legend.
    handles : sequence of artists, optional
        Artists in the legend; by default all artists with a label.
    """
    legend_handles = list(handles) if handles is not None else ax.get_legend_handles_labels()[0]
    if not legend_handles:
        return
    x_anchor = 1.14 if is_3d(ax) else 1.01
    transform = ax.transAxes
    if ax.child_axes:  # a color bar, which the legend must not cover
        translation = matplotlib_module("transforms").ScaledTranslation
        transform = transform + translation(_SCALE_INCHES, 0.0, ax.figure.dpi_scale_trans)
    ax.legend(
        handles=legend_handles,
        title=title,
        loc="upper left",
        bbox_to_anchor=(x_anchor, 1.0),
        bbox_transform=transform,
        borderaxespad=0.0,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        ncols=1 + (len(legend_handles) - 1) // 24,
        alignment="left",
    )


def shorten(text: Any, longest: int = 28) -> str:
    """Shorten a long text in the middle, where names of features differ least."""
    text = str(text) or '""'
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def contrast(color: Any) -> str:
    """Return black or white, whichever is more readable on a color.

    Parameters
    ----------
    color : color
        Any color of matplotlib.

    Returns
    -------
    str
        ``"black"`` or ``"white"``.
    """
    channels = np.asarray(matplotlib_module("colors").to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ [0.2126, 0.7152, 0.0722])
    return "black" if (luminance + 0.05) ** 2 > 0.0525 else "white"


def draw_rows(
    ax: Any,
    x: np.ndarray,
    y: np.ndarray,
    truth: np.ndarray | None,
    *,
    labels: Sequence[Any] | None = None,
    norm: Any = None,
) -> None:
    """Draw rows as points in the colors of their true outputs; gray if these are unknown.

    `labels` are the classes; without classes, outputs are numbers with the scale `norm`. Of many
    rows, an evenly spaced subset is drawn, so that the background is visible.
    """
    n = len(x)
    drawn_rows = (
        np.unique(np.linspace(0, n - 1, min(n, _MAX_ROWS)).astype(int)) if n else np.arange(0)
    )
    x, y = x[drawn_rows], y[drawn_rows]
    style: dict[str, Any] = {"s": 14, "edgecolors": "black", "linewidths": 0.4, "zorder": 4}
    if truth is None:
        ax.scatter(x, y, c="0.5", **style)
    elif labels is None:
        style["edgecolors"] = "white"
        ax.scatter(x, y, c=truth[drawn_rows].astype(float), cmap=SEQUENTIAL, norm=norm, **style)
    else:
        values = [python_value(value) for value in truth[drawn_rows].tolist()]
        n = len(labels)
        for label, color, marker in zip(labels, colors_of(n), markers_of(n), strict=True):
            has_label = np.array([value == label for value in values], dtype=bool)
            ax.scatter(x[has_label], y[has_label], c=color, marker=marker, **style)


#: Largest number of candidates with separate colors; more candidates are colored by extractor.
_MAX_COLORED = 8


def groups_of(table: pd.DataFrame) -> np.ndarray:
    """Return the group of each row: its label if there are few, otherwise its extractor."""
    has_few_labels = table["label"].nunique() <= _MAX_COLORED
    if has_few_labels:
        return table["label"].astype(str).to_numpy()
    return np.array([extractor_label(str(name)) for name in table["extractor"]])


def _ring_sizes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the sizes of points; later points at the same position are smaller."""
    positions = list(zip(x.tolist(), y.tolist(), strict=True))
    n_drawn = dict.fromkeys(positions, 0)
    sizes = np.ones(len(positions))
    for i in reversed(range(len(positions))):
        sizes[i] += 0.9 * n_drawn[positions[i]]
        n_drawn[positions[i]] = min(n_drawn[positions[i]] + 1, 4)
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
    """Draw candidates as points, with a legend beside the axes."""
    groups = groups_of(table)
    names = list(dict.fromkeys(groups.tolist()))
    colors = dict(zip(names, colors_of(len(names)), strict=True))
    markers = dict(zip(names, markers_of(len(names)), strict=True))
    is_crowded = len(table) > 60
    sizes = np.full(len(table), 22.0) if is_crowded else 60.0 * _ring_sizes(x, y)
    if z is not None:
        points_above(ax)
    for name in names:
        in_group = groups == name
        position = [x[in_group], y[in_group]] + ([] if z is None else [z[in_group]])
        ax.scatter(
            *position,
            s=sizes[in_group],
            c=colors[name],
            marker=markers[name],
            edgecolors="black",
            linewidths=0.3 if is_crowded else 0.8,
            alpha=0.75 if is_crowded else 1.0,
            label=shorten(name, 40),
            zorder=zorder,
        )
    if legend:
        legend_beside(ax, None if len(names) == len(table) else "extractor")
    return [colors[name] for name in groups.tolist()]


#: Largest number of steps of FiRe in a plot.
_MAX_STEPS = 2000


def checked_range(
    name: str,
    ends_of_user: Any,
    low: float,
    high: float,
    *,
    at_least: float = -np.inf,
    at_most: float = np.inf,
) -> tuple[float, float]:
    """Check the user's range and return it, or the default range."""
    if ends_of_user is None:
        return low, high
    try:
        ends = np.asarray(ends_of_user, dtype=float)
    except (TypeError, ValueError):
        ends = np.empty(0)
    fits = ends.shape == (2,) and bool(np.isfinite(ends).all())
    if not fits or not at_least <= ends[0] < ends[1] <= at_most:
        limits = f", from {at_least:g} on" if np.isfinite(at_least) else ""
        limits += f", up to {at_most:g}" if np.isfinite(at_most) else ""
        raise ValueError(
            f"{name} must be two increasing finite numbers (low, high){limits}, got "
            f"{ends_of_user!r}."
        )
    return float(ends[0]), float(ends[1])


def checked_weights(name: str, user_weights: Any) -> list[float]:
    """Check one or several positive weights, and return them as a list."""
    try:
        values = np.atleast_1d(np.asarray(user_weights, dtype=float))
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(
            f"{name} must be a positive number or several of them, got {user_weights!r}. "
            "Pass 1.0 for a neutral weight."
        )
    return [float(value) for value in values]


def sizes_with_steps(low: float, high: float, psi: float, n: int = 400) -> np.ndarray:
    """Return numbers of rules between two ends, including both sides of every step of FiRe."""
    even = np.linspace(low, high, n)
    if (high - low) / psi > _MAX_STEPS:
        return even
    edges = psi * np.arange(np.ceil(low / psi), np.floor(high / psi) + 1)
    # The distance from a step must exceed rounding errors.
    sizes = np.concatenate([even, edges, edges * (1 + 1e-9)])
    return np.unique(sizes[(sizes >= low) & (sizes <= high)])


def whole_ticks(axis: Any) -> None:
    """Set ticks only on integers."""
    axis.set_major_locator(matplotlib_module("ticker").MaxNLocator(integer=True))


def log_ticks(axis: Any) -> None:
    """Set ticks on 1, 2, 5, 10, 20, 50, ... of a logarithmic axis, as plain numbers."""
    ticker = matplotlib_module("ticker")
    axis.set_major_locator(ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def round_levels(low: float, high: float) -> list[float]:
    """Return up to seven levels 1, 2, 5, 10, ... between two positive values."""
    if not high > 0:
        return []
    low = max(low, high / 1e4)
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    levels = np.sort(np.outer(powers, [1.0, 2.0, 5.0]).ravel())
    return [float(level) for level in levels[(levels > low) & (levels < high)][-7:]]


def number(value: float) -> str:
    """Format a number with three digits."""
    return f"{value:.3g}"
