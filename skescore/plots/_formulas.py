"""Plots of the functions FiRe and ICE: curves, isolines and surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skescore._validation import check_choice
from skescore.metrics import fire_score, ice_performance, ice_readability, ice_score
from skescore.plots._results import results_table
from skescore.plots._style import (
    BETTER,
    LINE_STYLES,
    SEQUENTIAL,
    WORSE,
    axes_or_new,
    checked_range,
    checked_weights,
    colors_of,
    draw_points,
    groups_of,
    is_3d,
    legend_beside,
    markers_of,
    matplotlib_module,
    number,
    points_above,
    round_levels,
    shorten,
    sizes_with_steps,
    whole_ticks,
)

__all__ = [
    "fire_curves",
    "fire_isolines",
    "fire_surface",
    "ice_part_curves",
    "ice_part_surface",
    "ice_surface",
]


def fire_curves(
    along: str = "n_rules",
    *,
    psi: Any = 1.0,
    fixed: Any = 1.0,
    over: tuple[float, float] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw FiRe as a function of the number of rules or of the loss.

    Use it to see the steps that psi causes, and the trade-off between loss and number of rules.

    Parameters
    ----------
    along : {"n_rules", "loss"}, default="n_rules"
        Variable of the horizontal axis.
    psi : float or sequence of float, default=1.0
        The number of rules is divided by `psi` and rounded up.
    fixed : float or sequence of float, default=1.0
        Fixed value of the other variable (loss or number of rules); one line per psi and value.
    over : (float, float), optional
        Range of the horizontal axis; by default 1 to 20 rules, or a loss from 0 to 10.
    legend : bool, default=True
        Whether to draw a legend beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If a name, weight, value or range is invalid.

    Notes
    -----
    Compare Figure 2 of F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation
    metrics: the FiRe score. ECAI 2023, doi:10.3233/FAIA230496.

    Examples
    --------
    >>> from skescore.plots import fire_curves
    >>> ax = fire_curves("n_rules", psi=[1, 3, 5, 10], fixed=5.0)  # doctest: +SKIP
    """
    check_choice("along", along, ("n_rules", "loss"))
    weights = checked_weights("psi", psi)
    values = np.atleast_1d(np.asarray(fixed, dtype=float)).tolist()
    of_rules = along == "n_rules"
    low, high = checked_range(
        "over", over, *((1.0, 20.0) if of_rules else (0.0, 10.0)), at_least=1.0 if of_rules else 0.0
    )
    lines = []
    for weight in weights:
        x_values = sizes_with_steps(low, high, weight) if of_rules else np.linspace(low, high, 200)
        for value in values:
            arguments = (value, x_values) if of_rules else (x_values, value)
            lines.append((weight, value, x_values, np.asarray(fire_score(*arguments, psi=weight))))
    ax = axes_or_new(ax)
    for i, ((weight, value, x_values, score), color) in enumerate(
        zip(lines, colors_of(len(lines)), strict=True)
    ):
        parts = [f"ψ = {number(weight)}"] if len(weights) > 1 or len(lines) == 1 else []
        if len(values) > 1 or len(lines) == 1:
            parts.append(f"{'p' if of_rules else 'r'} = {number(value)}")
        ax.plot(x_values, score, color=color, linestyle=LINE_STYLES[i % 4], label=", ".join(parts))
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0.0)
    ax.set_xlabel("readability loss r (number of rules)" if of_rules else "predictive loss p")
    ax.set_ylabel("FiRe (smaller is better)")
    if of_rules:
        whole_ticks(ax.xaxis)
    constants = []
    if len(weights) == 1:
        constants.append(f"ψ = {number(weights[0])}")
    if len(values) == 1:
        constants.append(f"{'p' if of_rules else 'r'} = {number(values[0])}")
    ax.set_title("FiRe" + (f" with {', '.join(constants)}" if constants else ""))
    if legend:
        legend_beside(ax)
    return ax


def ice_part_curves(
    part: str = "performance",
    *,
    weights: Any = (0.5, 1.0, 2.0, 3.0, 5.0),
    derivative: int = 0,
    over: tuple[float, float] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    r"""Draw one of the two sigmoids of ICE, or a derivative, for several weights.

    Use it to see where a loss of performance, or a further rule, reduces the score most.

    Parameters
    ----------
    part : {"performance", "readability"}, default="performance"
        Sigmoid to draw.
    weights : float or sequence of float, default=(0.5, 1.0, 2.0, 3.0, 5.0)
        Values of phi or rho.
    derivative : {0, 1, 2}, default=0
        Order of the derivative; 0 draws the sigmoid.
    over : (float, float), optional
        Range of the performance (by default from 0 to 1) or of the numbers of rules (from 1 to 50).
    legend : bool, default=True
        Whether to draw a legend beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If a name, weight or range is invalid.

    Notes
    -----
    For a sigmoid :math:`S` with the factor :math:`k` in its exponent (:math:`k = 5 \varphi` or
    :math:`k = -0.3 \rho`), the derivatives are :math:`S' = k S (1 - S)` and
    :math:`S'' = k^2 S (1 - S) (1 - 2 S)`. Compare Figure 3 of F. Sabbatini, R. Calegari: ICE: an
    evaluation metric to assess symbolic knowledge quality. 2024.

    Examples
    --------
    >>> from skescore.plots import ice_part_curves
    >>> ax = ice_part_curves("performance", derivative=1)  # doctest: +SKIP
    """
    check_choice("part", part, ("performance", "readability"))
    check_choice("derivative", derivative, (0, 1, 2))
    checked_values = checked_weights("weights", weights)
    is_performance = part == "performance"
    name, x_name, sign = ("P", "p", "φ") if is_performance else ("R", "r", "ρ")
    low, high = (
        checked_range("over", over, 0.0, 1.0, at_most=1.0)
        if is_performance
        else checked_range("over", over, 1.0, 50.0, at_least=1e-9)
    )
    x_values = np.linspace(low, high, 400)
    curves = []
    for weight in checked_values:
        if is_performance:
            value, slope = np.asarray(ice_performance(x_values, phi=weight)), 5.0 * weight
        else:
            value, slope = np.asarray(ice_readability(x_values, rho=weight)), -0.3 * weight
        if derivative == 1:
            value = slope * value * (1.0 - value)
        elif derivative == 2:
            value = slope**2 * value * (1.0 - value) * (1.0 - 2.0 * value)
        curves.append(value)
    ax = axes_or_new(ax)
    for i, (weight, curve) in enumerate(zip(checked_values, curves, strict=True)):
        ax.plot(
            x_values,
            curve,
            color=colors_of(len(checked_values))[i],
            linestyle=LINE_STYLES[i % 4],
            label=f"{sign} = {number(weight)}",
        )
    symbol = {
        0: f"{name}({x_name}, {sign})",
        1: f"∂{name}/∂{x_name}",
        2: f"∂²{name}/∂{x_name}²",
    }[derivative]
    ax.set_xlim(low, high)
    ax.set_xlabel("predictive performance p" if is_performance else "size r (number of rules)")
    ax.set_ylabel(symbol)
    ax.set_title(f"ICE: part of {part}" if derivative == 0 else f"ICE: {symbol}")
    if derivative:
        ax.axhline(0.0, color="0.6", linewidth=0.6, zorder=0)
    if legend:
        legend_beside(ax)
    return ax


#: Largest number of points with a line each; of more points, only the best gets a line.
_LINES_AT_MOST = 12
_HATCHES = ("//", "\\\\", "..", "xx", "--", "||", "oo", "++")


def fire_isolines(
    results: Any = None,
    *,
    psi: Any = 1.0,
    reference: Any = None,
    level: float | None = None,
    regions: bool = True,
    n_rules: tuple[float, float] | None = None,
    loss: tuple[float, float] | None = None,
    loss_label: str = "predictive loss p",
    legend: bool = True,
    ax: Any = None,
) -> Any:
    r"""Draw isolines of FiRe through a given extractor, and the regions of better and worse scores.

    Use it to choose psi, or to compare extractors: points below an extractor's line are better.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or dict, optional
        Points to draw: a search, its candidates or leaderboard, rows of a benchmark, or a
        dict of label to (loss, number of rules).
    psi : float or sequence of float, default=1.0
        The number of rules is divided by `psi` and rounded up. Several values give one line
        each, through the reference.
    reference : str or (float, float), optional
        Extractor that others are compared with: a label of the results, or its loss and number of
        rules. Without `reference` and `level`, up to twelve points get a line each in their color;
        of more points, only the best gets a line. Without results, a few levels are drawn.
    level : float, optional
        Score of the line, instead of a reference.
    regions : bool, default=True
        Whether to shade the regions of better and worse scores if there is one line, or to hatch
        the regions of better scores if there are several psi.
    n_rules : (float, float), optional
        Range of the numbers of rules, at least 1; by default it contains all points.
    loss : (float, float), optional
        Range of the loss, at least 0; by default it contains all points.
    loss_label : str, default="predictive loss p"
        Name of the loss, with its unit: ``"mean absolute error (mg/dl)"``.
    legend : bool, default=True
        Whether to draw a legend beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If the results, a weight, level, reference or range are invalid.

    Notes
    -----
    The line of the score s is :math:`p = s / (\lceil r/\psi \rceil r^{0.05})`. It has steps after
    multiples of psi and falls slowly between them. Compare Figures 3, 4 and 5 of the paper.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge-extraction evaluation metrics: the FiRe score.
    ECAI 2023, doi:10.3233/FAIA230496.

    Examples
    --------
    >>> from skescore.plots import fire_isolines
    >>> points = {"one rule": (40.0, 1), "better": (5.0, 4), "worse": (12.0, 6)}
    >>> ax = fire_isolines(points, reference="one rule")  # doctest: +SKIP
    """
    weights = checked_weights("psi", psi)
    table = None if results is None else results_table(results, plain=("loss", "n_rules"))
    if reference is not None and level is not None:
        raise ValueError(f"Pass a reference or a level, not both, got {reference!r} and {level!r}.")
    point = None if reference is None else _reference(reference, table)
    lines = _lines(weights, point, level, table)
    if not lines:
        raise ValueError(
            f"Lines for several psi need a common point, got only psi={psi!r}. Pass reference=, a "
            "label or (loss, number of rules)."
        )
    high_r = [6.0] + ([] if point is None else [2.2 * point[1]])
    high_p = [s / fire_score(1.0, 1.0, psi=w) for w, s, _ in lines]
    if table is not None:
        high_r.append(1.25 * float(table["size"].max()))
        high_p = [float(table["loss"].max()), *([] if point is None else [point[0]])]
    top = 1.2 * max(high_p) if max(high_p) > 0 else 1.0
    low_r, high = checked_range("n_rules", n_rules, 1.0, float(np.ceil(max(high_r))), at_least=1.0)
    low_p, high_p_ = checked_range("loss", loss, 0.0, top, at_least=0.0)
    ax = axes_or_new(ax)
    of_points = (
        draw_points(
            ax, table, table["size"].to_numpy(float), table["loss"].to_numpy(float), legend=False
        )
        if table is not None
        else []
    )
    per_point = table is not None and len(lines) == len(table) and point is None and level is None
    colors = of_points if per_point else colors_of(max(2, len(lines)))[: len(lines)]
    for i, ((weight, score, name), color) in enumerate(zip(lines, colors, strict=True)):
        sizes = sizes_with_steps(low_r, high, weight)
        curve = score / np.asarray(fire_score(1.0, sizes, psi=weight))
        several = len(weights) > 1
        ax.plot(
            sizes,
            curve,
            color=color if len(lines) > 1 else "black",
            zorder=3,
            linestyle=LINE_STYLES[i % 4] if several else "-",
            label=name,
            linewidth=1.0 if per_point else 1.6,
        )
        if regions and len(lines) == 1:
            ax.fill_between(sizes, 0.0, curve, color=BETTER, alpha=0.3, lw=0, label="better")
            ax.fill_between(
                sizes,
                curve,
                max(high_p_, curve.max()),
                color=WORSE,
                alpha=0.3,
                lw=0,
                label="worse",
            )
        elif regions and several:
            ax.fill_between(
                sizes,
                0.0,
                curve,
                facecolor="none",
                edgecolor=color,
                alpha=0.6,
                lw=0,
                hatch=_HATCHES[i % len(_HATCHES)],
                label=f"better with ψ = {number(weight)}",
            )
    if point is not None and not isinstance(reference, str):
        ax.plot(
            point[1],
            point[0],
            marker="x",
            color="black",
            ms=9,
            mew=2,
            ls="",
            zorder=5,
            label="reference",
        )
    # Lines and points are drawn above hatches, whose appearance depends on the backend.
    ax.set_xlim(low_r - 0.03 * (high - low_r), high)
    ax.set_ylim(low_p, high_p_)
    whole_ticks(ax.xaxis)
    ax.set_xlabel("readability loss r (number of rules)")
    ax.set_ylabel(loss_label)
    through = f" through {shorten(reference)}" if isinstance(reference, str) else ""
    ax.set_title(
        f"Isolines of {' and '.join(f'{number(weight)}-FiRe' for weight in weights)}{through}"
    )
    if legend:
        handles = ax.get_legend_handles_labels()[0]
        line = matplotlib_module("lines").Line2D
        if per_point:  # lines have the colors of their points
            handles = [h for h in handles if not isinstance(h, line)]
        legend_beside(ax, None, handles)
    return ax


def _reference(reference: Any, table: pd.DataFrame | None) -> tuple[float, float]:
    if isinstance(reference, str):
        labels = [] if table is None else table["label"].tolist()
        if labels.count(reference) != 1 or table is None:
            raise ValueError(
                f"reference must be the label of one of the results or (loss, number of rules), "
                f"got {reference!r}; labels are {labels[:12]}."
            )
        row = table.iloc[labels.index(reference)]
        return float(row["loss"]), float(row["size"])
    values = np.asarray(reference, dtype=float)
    if values.shape != (2,):
        raise ValueError(f"reference must be (loss, number of rules), got {reference!r}.")
    fire_score(float(values[0]), float(values[1]))  # raises an error outside the domain
    return float(values[0]), float(values[1])


def _lines(
    weights: list[float],
    point: tuple[float, float] | None,
    level: float | None,
    table: pd.DataFrame | None,
) -> list[tuple[float, float, str]]:
    """Return the weight, score and name of every line."""

    def line(weight: float, score: float) -> tuple[float, float, str]:
        return weight, score, f"{number(weight)}-FiRe = {number(score)}"

    if level is not None:
        if not (np.isfinite(level) and level > 0):
            raise ValueError(f"level must be a positive finite score, got {level!r}.")
        return [line(weight, float(level)) for weight in weights]
    if point is not None:
        return [line(weight, float(fire_score(*point, psi=weight))) for weight in weights]
    if len(weights) > 1:
        return []
    if table is not None:
        losses, sizes = table["loss"].to_numpy(float), table["size"].to_numpy(float)
        scores = np.atleast_1d(fire_score(losses, sizes, psi=weights[0]))
        if len(scores) > _LINES_AT_MOST:
            weight, best, name = line(weights[0], float(scores.min()))
            return [(weight, best, f"the best: {name}")]
        return [line(weights[0], float(score)) for score in scores]
    return [line(weights[0], score) for score in (0.1, 0.2, 0.5, 1.0, 2.0)]


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
    """Draw FiRe as a function of the number of rules and the loss, with extractors as points.

    Use it to see the effect of psi before you choose it. On 3D axes (``subplot_kw={"projection":
    "3d"}``) the plot is a surface, otherwise a color map with isolines.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or dict, optional
        Points to draw: a search, its candidates or leaderboard, rows of a benchmark, or a
        dict of label to (loss, number of rules).
    psi : float, default=1.0
        The number of rules is divided by `psi` and rounded up.
    n_rules : (float, float), optional
        Range of the numbers of rules, at least 1; by default 1 to 20, or the range of points.
    loss : (float, float), optional
        Range of the loss, at least 0; by default from 0 to 1, or to contain all points.
    loss_label : str, default="predictive loss p"
        Name of the loss, with its unit: ``"mean absolute error (mg/dl)"``.
    colorbar : bool, default=True
        Whether to draw a color bar.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If the results, a weight or a range are invalid.

    Notes
    -----
    Bright colors are better. FiRe has steps at multiples of psi. Fractional numbers of rules occur
    as averages over folds. Compare Figure 1 of the paper.

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
    fire_score(0.0, 1.0, psi=psi)  # checks psi before a figure is created
    ax = axes_or_new(ax)
    sizes = sizes_with_steps(low_r, high_r, psi)
    losses = np.linspace(low_p, high_p, 200)
    grid = np.asarray(fire_score(losses[:, None], sizes[None, :], psi=psi))
    name = f"{number(psi)}-FiRe"
    if is_3d(ax):
        columns, lines = np.meshgrid(sizes, losses[::4])
        ax.plot_surface(
            columns,
            lines,
            grid[::4],
            cmap=f"{SEQUENTIAL}_r",
            rcount=50,
            ccount=len(sizes),
            linewidth=0,
            antialiased=False,
            rasterized=True,
        )
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
                image,
                ax=ax,
                location="left" if table is not None else "right",
                label=f"{name} (smaller is better)",
            )
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
    """Draw ICE as a function of performance and number of rules, with extractors as points.

    Use it to see the trade-off between performance and rules for given weights. On 3D axes
    (``subplot_kw={"projection": "3d"}``), completeness is the third dimension, in layers.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or dict, optional
        Points to draw: a search, its candidates or leaderboard, rows of a benchmark, or a
        dict of label to (performance, number of rules, completeness).
    phi, rho : float, default=1.0
        Weights of performance and of few rules.
    completeness : float or sequence of float, optional
        Completeness of the map (by default 1), or of the layers (by default 0.25, 0.5, 0.75 and 1).
    completeness_kind : {"volume", "instances"}, default="volume"
        Kind of completeness of the results.
    performance : (float, float), optional
        Range of the performance, at most 1; by default from 0 to 1, or to contain all points.
    n_rules : (float, float), optional
        Range of the numbers of rules; by default from 1 to 30, or to contain all points.
    performance_label : str, default="predictive performance p"
        Name of the performance, such as ``"F1"`` or ``"R²"``.
    colorbar : bool, default=True
        Whether to draw a color bar.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    TypeError, ValueError
        If the results, a weight or a range are invalid.

    Notes
    -----
    The color scale is always from 0 to 1, so that plots are comparable; bright colors are better.
    Points have the colors of their own scores: a point with a smaller completeness than the map is
    darker than its surroundings. Compare Figure 1 of the paper.

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
    point_scores = None if table is None else np.asarray(ice_score(p, r, share, phi=phi, rho=rho))
    grids = [
        np.asarray(ice_score(performances[None, :], sizes[:, None], float(layer), phi=phi, rho=rho))
        for layer in layers
    ]
    ax = axes_or_new(ax)
    scale = {"cmap": SEQUENTIAL, "vmin": 0.0, "vmax": 1.0}
    if is_3d(ax):
        mappable = _draw_layers(ax, performances, sizes, layers, grids)
        ax.set_zlim(0.0, 1.0)
        ax.set_zlabel("completeness c")
        positions: tuple[Any, ...] = () if table is None else (p, r, share)
    else:
        mappable = ax.pcolormesh(
            performances, sizes, grids[0], shading="nearest", rasterized=True, **scale
        )
        lines = ax.contour(
            performances, sizes, grids[0], levels=_ICE_LEVELS, colors="black", linewidths=0.6
        )
        ax.clabel(lines, fmt=number, fontsize="x-small")
        positions = () if table is None else (p, r)
    if table is not None:
        _draw_scored_points(ax, table, positions, point_scores, scale)
    if colorbar:
        ax.figure.colorbar(
            mappable,
            ax=ax,
            location="right" if table is None else "left",
            label="ICE (greater is better)",
            shrink=0.7 if is_3d(ax) else 1.0,
        )
    ax.set_xlabel(performance_label)
    ax.set_ylabel("rules r" if is_3d(ax) else "size r (number of rules)")
    ax.set_xlim(low_p, high_p)
    ax.set_ylim(low_r, high_r)
    whole_ticks(ax.yaxis)
    layer_text = "" if is_3d(ax) else f", c = {number(float(layers[0]))}"
    ax.set_title(f"ICE with φ = {number(phi)}, ρ = {number(rho)}{layer_text}")
    return ax


def ice_part_surface(
    part: str = "performance",
    *,
    over: tuple[float, float] | None = None,
    weight: tuple[float, float] = (0.1, 5.0),
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    r"""Draw one of the two sigmoids of ICE as a function of its argument and its weight.

    Use it to see where a sigmoid changes fast, which is near the white line.

    Parameters
    ----------
    part : {"performance", "readability"}, default="performance"
        Sigmoid to draw.
    over : (float, float), optional
        Range of the performance (by default from 0 to 1) or of the numbers of rules (from 1 to 50).
    weight : (float, float), default=(0.1, 5.0)
        Range of the weight (phi or rho).
    colorbar : bool, default=True
        Whether to draw a color bar.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ValueError
        If the part is unknown or a range is invalid.

    Notes
    -----
    On the white line, the sigmoid is one half: :math:`p = 1 - 1/\varphi` or
    :math:`r = 5/(0.3 \rho)`, see :func:`skescore.metrics.ice_performance` and the paper's Figure 2.

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
        values,
        weights[:, 0],
        grid,
        cmap=SEQUENTIAL,
        vmin=0.0,
        vmax=1.0,
        shading="nearest",
        rasterized=True,
    )
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
            f"completeness must be one number on 2D axes, got {completeness!r}. "
            "Several are layers on 3D axes: subplot_kw={'projection': '3d'}."
        )
    return layers


def _draw_layers(
    ax: Any, performances: np.ndarray, sizes: np.ndarray, layers: np.ndarray, grids: list[Any]
) -> Any:
    cm, colors = matplotlib_module("cm"), matplotlib_module("colors")
    mappable = cm.ScalarMappable(colors.Normalize(0.0, 1.0), SEQUENTIAL)
    x, y = np.meshgrid(performances[::5], sizes[::5])
    for layer, grid in zip(layers, grids, strict=True):
        ax.plot_surface(
            x,
            y,
            np.full_like(x, layer),
            facecolors=mappable.to_rgba(grid[::5, ::5]),
            rcount=len(x),
            ccount=len(x),
            shade=False,
            linewidth=0,
            antialiased=False,
            alpha=0.85,
            rasterized=True,
        )
    return mappable


def _draw_scored_points(
    ax: Any, table: Any, positions: Any, point_scores: Any, scale: dict[str, Any]
) -> None:
    """Draw points in the colors of their scores, with a marker for each extractor."""
    if is_3d(ax):
        points_above(ax)
    is_crowded = len(table) > 60
    halo = matplotlib_module("patheffects").withStroke(
        linewidth=1.2 if is_crowded else 2.5, foreground="white"
    )
    groups = groups_of(table)
    names = list(dict.fromkeys(groups.tolist()))
    for name, marker in zip(names, markers_of(len(names)), strict=True):
        members = groups == name
        ax.scatter(
            *(values[members] for values in positions),
            c=point_scores[members],
            marker=marker,
            s=16 if is_crowded else 60,
            edgecolors="black",
            linewidths=0.4 if is_crowded else 1.0,
            label=shorten(name, 40),
            zorder=4,
            path_effects=[halo],
            **scale,
        )
    legend_beside(ax, None if len(names) == len(table) else "extractor")
