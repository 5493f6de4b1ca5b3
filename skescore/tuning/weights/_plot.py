"""Drawings of who wins for which weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from skescore._optional import import_optional
from skescore.tuning.weights._ice import IcePlane

#: Colours that differ in hue and in lightness, pale enough for black text on them.
_COLOURS = (
    "#88ccee", "#ddcc77", "#cc6677", "#44aa99", "#aa88cc", "#999933", "#ee9955", "#6699cc",
    "#bbbbbb", "#ee88aa", "#66aa55", "#bb9977",
)  # fmt: skip
_PIXELS = 500
#: A label is written into a region that is at least so wide.
_WIDE_SHARE, _WIDE_STRIP = 0.04, 0.12


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    pyplot = import_optional("matplotlib.pyplot", extra="plots", purpose="Drawing winning regions")
    if ax is not None:
        return ax
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _colours(labels: dict[int, str]) -> dict[int, str]:
    return {place: _COLOURS[i % len(_COLOURS)] for i, place in enumerate(labels)}


def _legend(ax: Any, labels: dict[int, str], shares: pd.Series) -> None:
    patches = import_optional(
        "matplotlib.patches", extra="plots", purpose="Drawing winning regions"
    )
    colours = _colours(labels)
    handles = [
        patches.Patch(
            facecolor=colours[place], edgecolor="black", linewidth=0.5,
            label=f"{place}: {label} ({shares[place]:.1%})",
        )
        for place, label in labels.items()
    ]  # fmt: skip
    ax.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False,
        title="candidate: extractor, size (share)",
    )  # fmt: skip


def plot_intervals(table: pd.DataFrame, labels: dict[int, str], ax: Any) -> Any:
    """Draw a strip of psi with one colour per winner.

    Parameters
    ----------
    table : pandas.DataFrame
        The intervals.
    labels : dict of int to str
        Names of the winners by place.
    ax : matplotlib.axes.Axes or None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.
    """
    ax = _axes(ax, (9.0, max(2.2, 0.6 + 0.25 * len(labels))))
    colours = _colours(labels)
    columns = (table[name].tolist() for name in ("low", "high", "candidate", "share"))
    for low, high, place, share in zip(*columns, strict=True):
        ax.axvspan(low, high, facecolor=colours[place], edgecolor="black", lw=0.5)
        if share >= _WIDE_STRIP:
            ax.text(
                math.sqrt(low * high), 0.5, labels[place].replace(", ", "\n"),
                ha="center", va="center", transform=ax.get_xaxis_transform(),
            )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlim(table["low"].iloc[0], table["high"].iloc[-1])
    ax.set_yticks([])
    ax.set_xlabel("psi: so many rules weigh as much as one")
    ax.set_title("Who wins by FiRe")
    _legend(ax, labels, table.groupby("candidate")["share"].sum())
    return ax


def plot_plane(
    plane: IcePlane,
    within: dict[str, tuple[float, float]],
    table: pd.DataFrame,
    labels: dict[int, str],
    ax: Any,
) -> Any:
    """Draw the plane of phi and rho with one colour per winner.

    Parameters
    ----------
    plane : IcePlane
        The scores of the winners.
    within : dict of str to (float, float)
        Ranges of the weights.
    table : pandas.DataFrame
        The winners.
    labels : dict of int to str
        Names of the winners by place.
    ax : matplotlib.axes.Axes or None
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.
    """
    ax = _axes(ax, (9.0, 5.6))
    colors = import_optional("matplotlib.colors", extra="plots", purpose="Drawing winning regions")
    phi, rho = (
        np.linspace(math.log(low), math.log(high), _PIXELS)
        for low, high in (within["phi"], within["rho"])
    )
    points = np.stack(np.meshgrid(phi, rho), axis=-1).reshape(-1, 2)
    lots = np.array_split(points, max(1, len(points) * len(plane.places) // 100_000))
    places = plane.places[np.concatenate([plane.winners(lot) for lot in lots])]
    rank = {place: number for number, place in enumerate(labels)}
    image = np.array([rank[place] for place in places.tolist()]).reshape(len(rho), len(phi))
    colours = _colours(labels)
    ax.pcolormesh(
        np.exp(phi), np.exp(rho), image, cmap=colors.ListedColormap(list(colours.values())),
        vmin=-0.5, vmax=len(labels) - 0.5, shading="nearest", rasterized=True,
    )  # fmt: skip
    for number, (place, label) in enumerate(labels.items()):
        own = image == number
        if float(table.set_index("candidate")["share"][place]) >= _WIDE_SHARE and own.any():
            row, column = _inside(own)
            ax.text(np.exp(phi[column]), np.exp(rho[row]), label.replace(", ", "\n"),
                    ha="center", va="center")  # fmt: skip
    ax.plot(1.0, 1.0, marker="+", color="black", markersize=10)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*within["phi"])
    ax.set_ylim(*within["rho"])
    ax.set_xlabel("phi: importance of performance")
    ax.set_ylabel("rho: importance of few rules")
    ax.set_title("Who wins by ICE (+ neutral weights)")
    _legend(ax, labels, table.set_index("candidate")["share"])
    return ax


def _inside(own: np.ndarray) -> tuple[int, int]:
    """The point of a region that is furthest from its edge, where a label has most room."""
    from scipy.ndimage import distance_transform_edt

    depth = distance_transform_edt(np.pad(own, 1))[1:-1, 1:-1]
    margin = own.shape[1] // 8
    if own[:, margin:-margin].any():  # half of a label fits beside the edge
        depth[:, :margin] = depth[:, -margin:] = 0.0
    row, column = np.unravel_index(int(np.argmax(depth)), depth.shape)
    return int(row), int(column)
