"""Isolines of FiRe: which extractors are better, worse or as good as one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skescore.metrics._knowledge import fire_score
from skescore.plots._results import results_table
from skescore.plots._scales import (
    checked_range,
    checked_weights,
    number,
    sizes_with_steps,
    whole_ticks,
)
from skescore.plots._style import (
    BETTER,
    WORSE,
    axes_or_new,
    colours_of,
    draw_points,
    legend_beside,
    matplotlib_module,
    short,
)

__all__ = ["fire_isolines"]

#: So many points get a line each; of more only the best one does.
_LINES_AT_MOST = 12
_HATCHES = ("//", "\\\\", "..", "xx", "--", "||", "oo", "++")
_LINES = ("-", "--", "-.", ":")


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
    r"""Draw where FiRe is as good as a given extractor's, and the regions of better and worse.

    Use it to choose psi, or to see by how much one extractor is ahead of another: what lies under
    the line of an extractor is better than it.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or dict, optional
        What is drawn as points: a search, its candidates or leaderboard, rows of a benchmark, or a
        dict of label to (loss, number of rules).
    psi : float or sequence of float, default=1.0
        So many rules weigh as much as one. Several give one line each, through the reference.
    reference : str or (float, float), optional
        The extractor that others are compared with: a label of the results, or loss and number of
        rules. Without it, and without `level`, up to twelve points get a line each, of their own
        colour, and of more the best does; without results there are lines of a few levels.
    level : float, optional
        Draw the line of this score, in place of a reference.
    regions : bool, default=True
        With one line: shade what is better and what is worse. With one line for each of several
        psi: hatch what is better.
    n_rules : (float, float), optional
        Range of the numbers of rules, from 1 on; by default to hold all points.
    loss : (float, float), optional
        Range of the loss, from 0 on; by default to hold all points.
    loss_label : str, default="predictive loss p"
        Name of the loss, with its unit: ``"mean absolute error (mg/dl)"``.
    legend : bool, default=True
        Whether a legend stands beside the axes.
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
        If results are none, or a weight, level, reference or range is out of its domain.

    Notes
    -----
    The line of the score s is :math:`p = s / (\lceil r/\psi \rceil r^{0.05})`: it falls
    in jumps behind multiples of psi, and slowly between them. Compare Figures 3, 4 and 5 of the
    paper.

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
            "Several psi need the one extractor that their lines go through: pass reference=, a "
            f"label or (loss, number of rules), got psi={psi!r} alone."
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
    of_points = draw_points(
        ax, table, table["size"].to_numpy(float), table["loss"].to_numpy(float), legend=False
    ) if table is not None else []  # fmt: skip
    per_point = table is not None and len(lines) == len(table) and point is None and level is None
    colours = of_points if per_point else colours_of(max(2, len(lines)))[: len(lines)]
    for i, ((weight, score, name), colour) in enumerate(zip(lines, colours, strict=True)):
        sizes = sizes_with_steps(low_r, high, weight)
        curve = score / np.asarray(fire_score(1.0, sizes, psi=weight))
        several = len(weights) > 1
        ax.plot(
            sizes, curve, color=colour if len(lines) > 1 else "black", zorder=3,
            linestyle=_LINES[i % len(_LINES)] if several else "-", label=name,
            linewidth=1.0 if per_point else 1.6,
        )  # fmt: skip
        if regions and len(lines) == 1:
            ax.fill_between(sizes, 0.0, curve, color=BETTER, alpha=0.3, lw=0, label="better")
            ax.fill_between(
                sizes, curve, max(high_p_, curve.max()), color=WORSE, alpha=0.3, lw=0,
                label="worse",
            )  # fmt: skip
        elif regions and several:
            ax.fill_between(
                sizes, 0.0, curve, facecolor="none", edgecolor=colour, alpha=0.6, lw=0,
                hatch=_HATCHES[i % len(_HATCHES)], label=f"better with ψ = {number(weight)}",
            )  # fmt: skip
    if point is not None and not isinstance(reference, str):
        ax.plot(point[1], point[0], marker="x", color="black", ms=9, mew=2, ls="", zorder=5,
                label="reference")  # fmt: skip
    # A hatch is drawn anew by every device; lines and points are kept sharp above it.
    ax.set_xlim(low_r - 0.03 * (high - low_r), high)
    ax.set_ylim(low_p, high_p_)
    whole_ticks(ax.xaxis)
    ax.set_xlabel("readability loss r (number of rules)")
    ax.set_ylabel(loss_label)
    through = f" through {short(reference)}" if isinstance(reference, str) else ""
    ax.set_title(
        f"Isolines of {' and '.join(f'{number(weight)}-FiRe' for weight in weights)}{through}"
    )
    if legend:
        handles = ax.get_legend_handles_labels()[0]
        line = matplotlib_module("lines").Line2D
        if per_point:  # the points' colours say whose the lines are
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
    fire_score(float(values[0]), float(values[1]))  # refuses what is out of the domain
    return float(values[0]), float(values[1])


def _lines(
    weights: list[float],
    point: tuple[float, float] | None,
    level: float | None,
    table: pd.DataFrame | None,
) -> list[tuple[float, float, str]]:
    """Weight, score and name of every line."""

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
