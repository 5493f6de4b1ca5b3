"""Scores over all that they depend on: FiRe over losses, ICE over performance and size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skescore._validation import check_choice
from skescore.metrics._knowledge import (
    fire_score,
    ice_performance,
    ice_readability,
    ice_score,
)
from skescore.plots._results import results_table
from skescore.plots._scales import (
    checked_range,
    number,
    round_levels,
    sizes_with_steps,
    whole_ticks,
)
from skescore.plots._style import (
    SEQUENTIAL,
    axes_or_new,
    draw_points,
    groups_of,
    is_3d,
    legend_beside,
    markers_of,
    matplotlib_module,
    points_above,
    short,
)

__all__ = ["fire_surface", "ice_part_surface", "ice_surface"]

_ICE_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95)
_SIZE_LABEL = "readability loss r (number of rules)"


def fire_surface(
    results: Any = None,
    *,
    psi: float = 1.0,
    n_rules: tuple[float, float] | None = None,
    loss: tuple[float, float] | None = None,
    loss_label: str = "predictive loss p",
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    """Draw FiRe over the number of rules and the loss, with extractors as points.

    Use it to see what a step of psi rules does before you choose one. On axes with three
    dimensions (``subplot_kw={"projection": "3d"}``) it is a surface, otherwise a map of colours
    with lines of equal score.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or dict, optional
        What is drawn as points: a search, its candidates or leaderboard, rows of a benchmark, or a
        dict of label to (loss, number of rules).
    psi : float, default=1.0
        So many rules weigh as much as one.
    n_rules : (float, float), optional
        Range of the numbers of rules, from 1 on; by default from 1 to 20, or to hold all points.
    loss : (float, float), optional
        Range of the loss, from 0 on; by default from 0 to 1, or to hold all points.
    loss_label : str, default="predictive loss p"
        Name of the loss, with its unit: ``"mean absolute error (mg/dl)"``.
    colorbar : bool, default=True
        Whether a scale of the colours stands beside the map.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If results are none, or a weight or range is out of its domain.

    Notes
    -----
    Bright is good. The steps are where FiRe jumps, at multiples of psi; what lies between whole
    numbers of rules occurs for averages over folds. Compare Figure 1 of the paper.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
    ECAI 2023, doi:10.3233/FAIA230496.

    Examples
    --------
    >>> from skescore.plots import fire_surface
    >>> ax = fire_surface({"CART": (0.05, 3), "GridEx": (0.03, 8)}, psi=3)  # doctest: +SKIP
    >>> ax.figure.savefig("fire.png")  # doctest: +SKIP
    """
    table = None if results is None else results_table(results, plain=("loss", "n_rules"))
    low_r, high_r, low_p, high_p = 1.0, 20.0, 0.0, 1.0
    if table is not None:
        r, p = table["size"].to_numpy(float), table["loss"].to_numpy(float)
        high_r = max(5.0, float(np.ceil(1.15 * r.max())))
        high_p = 1.15 * float(p.max()) or 1.0
    low_r, high_r = checked_range("n_rules", n_rules, low_r, high_r, at_least=1.0)
    low_p, high_p = checked_range("loss", loss, low_p, high_p, at_least=0.0)
    fire_score(0.0, 1.0, psi=psi)  # so that a psi out of its domain is refused before a figure
    ax = axes_or_new(ax)
    sizes = sizes_with_steps(low_r, high_r, psi)
    losses = np.linspace(low_p, high_p, 200)
    grid = np.asarray(fire_score(losses[:, None], sizes[None, :], psi=psi))
    name = f"{number(psi)}-FiRe"
    if is_3d(ax):
        columns, lines = np.meshgrid(sizes, losses[::4])
        ax.plot_surface(
            columns, lines, grid[::4], cmap=f"{SEQUENTIAL}_r", rcount=50, ccount=len(sizes),
            linewidth=0, antialiased=False, rasterized=True,
        )  # fmt: skip
        ax.set_zlabel(name)
        height = None if table is None else np.asarray(fire_score(p, r, psi=psi))
    else:
        image = ax.pcolormesh(
            sizes, losses, grid, cmap=f"{SEQUENTIAL}_r", shading="nearest", rasterized=True
        )
        levels = round_levels(float(grid.min()), float(grid.max()))
        if levels:
            lines = ax.contour(sizes, losses, grid, levels=levels, colors="black", linewidths=0.6)
            ax.clabel(lines, fmt=number, fontsize="x-small")
        if colorbar:
            ax.figure.colorbar(
                image, ax=ax, location="left" if table is not None else "right",
                label=f"{name} (smaller is better)",
            )  # fmt: skip
        height = None
    if table is not None:
        draw_points(ax, table, r, p, z=height)
    ax.set_xlabel("rules r" if is_3d(ax) else _SIZE_LABEL)
    ax.set_ylabel(loss_label)
    ax.set_xlim(low_r, high_r)
    ax.set_ylim(low_p, high_p)
    whole_ticks(ax.xaxis)
    ax.set_title(f"FiRe with ψ = {number(psi)}")
    return ax


def ice_surface(
    results: Any = None,
    *,
    phi: float = 1.0,
    rho: float = 1.0,
    completeness: float | Sequence[float] | None = None,
    completeness_kind: str = "volume",
    performance: tuple[float, float] | None = None,
    n_rules: tuple[float, float] | None = None,
    performance_label: str = "predictive performance p",
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    """Draw ICE over performance and number of rules, with extractors as points.

    Use it to see how much performance a rule is worth with some weights. On axes with three
    dimensions (``subplot_kw={"projection": "3d"}``) completeness is the third, in layers.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or dict, optional
        What is drawn as points: a search, its candidates or leaderboard, rows of a benchmark, or a
        dict of label to (performance, number of rules, completeness).
    phi, rho : float, default=1.0
        Importance of performance and of few rules.
    completeness : float or sequence of float, optional
        Completeness of the map, 1 by default; of the layers, a quarter, a half, three quarters
        and 1 by default.
    completeness_kind : {"volume", "instances"}, default="volume"
        Which completeness of the results counts.
    performance : (float, float), optional
        Range of the performance, to 1 at most; from 0 to 1 by default, or to hold all points.
    n_rules : (float, float), optional
        Range of the numbers of rules; by default from 1 to 30, or to hold all points.
    performance_label : str, default="predictive performance p"
        Its name: ``"F1"`` or ``"R²"``.
    colorbar : bool, default=True
        Whether a scale of the colours stands beside it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    TypeError, ValueError
        If results are none, or a weight or range is out of its domain.

    Notes
    -----
    Colours go from 0 to 1 in every picture, so that pictures compare; bright is good. Points have
    the colour of their own score: one that is less complete than the map is darker than what
    is around it. Compare Figure 1 of the paper.

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024.

    Examples
    --------
    >>> from skescore.plots import ice_surface
    >>> ax = ice_surface({"CART": (0.89, 3, 1.0), "ITER": (0.92, 9, 0.75)})  # doctest: +SKIP
    """
    plain = ("performance", "n_rules", "completeness_volume")
    table = None if results is None else results_table(results, plain=plain)
    low_r, high_r, low_p = 1.0, 30.0, 0.0
    if table is not None:
        r, p = table["size"].to_numpy(float), table["performance"].to_numpy(float)
        column = f"completeness_{completeness_kind}"
        if column not in table:
            raise ValueError(
                f"completeness_kind must be 'volume' or 'instances' and measured in the results, "
                f"got {completeness_kind!r}."
            )
        share = table[column].to_numpy(float)
        high_r = max(10.0, float(np.ceil(1.15 * r.max())))
        low_p = min(low_p, float(p.min()) - 0.05)
    low_r, high_r = checked_range("n_rules", n_rules, low_r, high_r, at_least=1e-9)
    low_p, high_p = checked_range("performance", performance, low_p, 1.0, at_most=1.0)
    layers = _layers(completeness, ax)
    performances = np.linspace(low_p, high_p, 200)
    sizes = np.linspace(low_r, high_r, 200)
    own = None if table is None else np.asarray(ice_score(p, r, share, phi=phi, rho=rho))
    grids = [
        np.asarray(ice_score(performances[None, :], sizes[:, None], float(layer), phi=phi, rho=rho))
        for layer in layers
    ]
    ax = axes_or_new(ax)
    scale = {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": 1.0}
    if is_3d(ax):
        mappable = _stack(ax, performances, sizes, layers, grids)
        ax.set_zlim(0.0, 1.0)
        ax.set_zlabel("completeness c")
        places: tuple[Any, ...] = () if table is None else (p, r, share)
    else:
        mappable = ax.pcolormesh(
            performances, sizes, grids[0], shading="nearest", rasterized=True, **scale
        )
        lines = ax.contour(
            performances, sizes, grids[0], levels=_ICE_LEVELS, colors="black", linewidths=0.6
        )
        ax.clabel(lines, fmt=number, fontsize="x-small")
        places = () if table is None else (p, r)
    if table is not None:
        _scored_points(ax, table, places, own, scale)
    if colorbar:
        ax.figure.colorbar(
            mappable, ax=ax, location="right" if table is None else "left",
            label="ICE (greater is better)", shrink=0.7 if is_3d(ax) else 1.0,
        )  # fmt: skip
    ax.set_xlabel(performance_label)
    ax.set_ylabel("rules r" if is_3d(ax) else "size r (number of rules)")
    ax.set_xlim(low_p, high_p)
    ax.set_ylim(low_r, high_r)
    whole_ticks(ax.yaxis)
    at = "" if is_3d(ax) else f", c = {number(float(layers[0]))}"
    ax.set_title(f"ICE with φ = {number(phi)}, ρ = {number(rho)}{at}")
    return ax


def ice_part_surface(
    part: str = "performance",
    *,
    over: tuple[float, float] | None = None,
    weight: tuple[float, float] = (0.1, 5.0),
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    r"""Draw one of the two sigmoids of ICE over what it depends on and its weight.

    Use it to see where a sigmoid bends: before the white line more of the weight costs little,
    behind it nothing is left to lose.

    Parameters
    ----------
    part : {"performance", "readability"}, default="performance"
        Which one.
    over : (float, float), optional
        Range of the performance (by default from 0 to 1) or of the numbers of rules (from 1 to 50).
    weight : (float, float), default=(0.1, 5.0)
        Range of phi or rho.
    colorbar : bool, default=True
        Whether a scale of the colours stands beside it.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the part is unknown or a range out of its domain.

    Notes
    -----
    The white line is where the part is one half: :math:`p = 1 - 1/\varphi` or
    :math:`r = 5/(0.3 \rho)`, see :func:`skescore.metrics.ice_performance`. Compare Figure 2 of
    the paper.

    Examples
    --------
    >>> from skescore.plots import ice_part_surface
    >>> ax = ice_part_surface("readability")  # doctest: +SKIP
    """
    check_choice("part", part, ("performance", "readability"))
    low, high = checked_range("weight", weight, 0.1, 5.0, at_least=1e-9)
    weights = np.linspace(low, high, 250)[:, None]
    if part == "performance":
        ends = checked_range("over", over, 0.0, 1.0, at_most=1.0)
        values = np.linspace(*ends, 250)
        grid = np.asarray(ice_performance(values[None, :], phi=weights))
        labels = ("predictive performance p", "importance of performance φ", "P(p, φ)")
    else:
        ends = checked_range("over", over, 1.0, 50.0, at_least=1e-9)
        values = np.linspace(*ends, 250)
        grid = np.asarray(ice_readability(values[None, :], rho=weights))
        labels = ("size r (number of rules)", "importance of few rules ρ", "R(r, ρ)")
    ax = axes_or_new(ax)
    image = ax.pcolormesh(
        values, weights[:, 0], grid, cmap=SEQUENTIAL, vmin=0.0, vmax=1.0, shading="nearest",
        rasterized=True,
    )  # fmt: skip
    if grid.min() < 0.5 < grid.max():
        lines = ax.contour(
            values, weights[:, 0], grid, levels=[0.5], colors="white", linewidths=1.2
        )
        ax.clabel(lines, fmt=number, fontsize="x-small")
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label=f"{labels[2]} (greater is better)")
    ax.set_xlabel(labels[0])
    ax.set_ylabel(labels[1])
    ax.set_title(f"ICE: part of {part}")
    return ax


def _layers(completeness: Any, ax: Any) -> np.ndarray:
    if completeness is None:
        completeness = (0.25, 0.5, 0.75, 1.0) if is_3d(ax) else 1.0
    layers = np.atleast_1d(np.asarray(completeness, dtype=float))
    if layers.ndim != 1 or not len(layers) or not ((layers >= 0) & (layers <= 1)).all():
        raise ValueError(f"completeness must be from 0 to 1, got {completeness!r}.")
    if len(layers) > 1 and not is_3d(ax):
        raise ValueError(
            f"completeness must be one number on axes with two dimensions, got {completeness!r}. "
            "Several are layers of axes with three: subplot_kw={'projection': '3d'}."
        )
    return layers


def _stack(
    ax: Any, performances: np.ndarray, sizes: np.ndarray, layers: np.ndarray, grids: list[Any]
) -> Any:
    cm, colors = matplotlib_module("cm"), matplotlib_module("colors")
    mappable = cm.ScalarMappable(colors.Normalize(0.0, 1.0), SEQUENTIAL)
    x, y = np.meshgrid(performances[::5], sizes[::5])
    for layer, grid in zip(layers, grids, strict=True):
        ax.plot_surface(
            x, y, np.full_like(x, layer), facecolors=mappable.to_rgba(grid[::5, ::5]),
            rcount=len(x), ccount=len(x), shade=False, linewidth=0, antialiased=False, alpha=0.85,
            rasterized=True,
        )  # fmt: skip
    return mappable


def _scored_points(ax: Any, table: Any, places: Any, own: Any, scale: dict[str, Any]) -> None:
    """Points in the colours of their scores; their markers tell which is which."""
    if is_3d(ax):
        points_above(ax)
    crowd = len(table) > 60
    halo = matplotlib_module("patheffects").withStroke(
        linewidth=1.2 if crowd else 2.5, foreground="white"
    )
    groups = groups_of(table)
    names = list(dict.fromkeys(groups.tolist()))
    for name, marker in zip(names, markers_of(len(names)), strict=True):
        members = groups == name
        ax.scatter(
            *(place[members] for place in places), c=own[members], marker=marker,
            s=16 if crowd else 60, edgecolors="black", linewidths=0.4 if crowd else 1.0,
            label=short(name, 40), zorder=4, path_effects=[halo], **scale,
        )  # fmt: skip
    legend_beside(ax, None if len(names) == len(table) else "extractor")
