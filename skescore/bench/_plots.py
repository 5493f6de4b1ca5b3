"""Critical-difference diagrams: average ranks, and who cannot be told apart."""

from __future__ import annotations

from typing import Any

from skescore._optional import import_optional
from skescore.bench._statistics import Comparison
from skescore.registry import extractor_label

__all__ = ["critical_difference_plot"]

_LINE, _GROUP = "#333333", "#0072B2"  # the blue of a palette for the colour-blind


def critical_difference_plot(
    comparison: Comparison, *, title: str | None = None, ax: Any = None
) -> Any:
    """Draw average ranks on a line; bars join extractors that cannot be told apart.

    Use it beside the tables of a benchmark over several data sets.

    Parameters
    ----------
    comparison : Comparison
        Of :func:`skescore.bench.rank_extractors`.
    title : str, optional
        What was ranked.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Where it was drawn; ``ax.figure.savefig`` writes it to a file.

    Raises
    ------
    ImportError
        If matplotlib is missing.

    Notes
    -----
    The best rank is on the left. The bar above the axis is Nemenyi's critical difference. Where
    Friedman's test finds no difference at all, one bar joins everybody.

    Examples
    --------
    >>> from skescore.bench import critical_difference_plot
    >>> ax = critical_difference_plot(comparison)  # doctest: +SKIP
    >>> ax.figure.savefig("ranks.svg")  # doctest: +SKIP
    """
    average = comparison.average_ranks
    names, values = [str(name) for name in average.index], average.to_numpy(dtype=float)
    n_names = len(names)
    half = (n_names + 1) // 2
    groups = comparison.groups
    if n_names > 1 and len(comparison.ranks) > 1 and not comparison.significant:
        groups = [names]
    height = 1.4 + 0.28 * half + 0.14 * len(groups)
    if ax is None:
        figures = import_optional("matplotlib.figure", extra="plots", purpose="Drawing ranks")
        figure = figures.Figure(figsize=(7.0, height), layout="constrained")
        ax = figure.add_subplot()
    most = max(n_names, 2)
    ax.set_axis_off()
    ax.set_xlim(1 - 0.75 * (most - 1) * 0.6, most + 0.75 * (most - 1) * 0.6)
    ax.hlines(0, 1, most, color=_LINE, linewidth=1.2)
    for rank in range(1, most + 1):
        ax.vlines(rank, 0, 0.12, color=_LINE, linewidth=1.2)
        ax.text(rank, 0.2, str(rank), ha="center", va="bottom", fontsize=9)
    below = 0.25 + 0.2 * len(groups)
    place = dict(zip(names, values, strict=True))
    for position, group in enumerate(groups):
        y = -0.2 - 0.2 * position
        start, end = place[group[0]], place[group[-1]]
        ax.plot(
            [start - 0.03, end + 0.03], [y, y], color=_GROUP, linewidth=4,
            solid_capstyle="round", label="cannot be told apart" if position == 0 else None,
        )  # fmt: skip
    margin = 0.04 * (most - 1)
    for index, (name, value) in enumerate(zip(names, values, strict=True)):
        left = index < half
        y = -below - 0.4 * ((index if left else n_names - 1 - index) + 0.5)
        end = 1 - margin if left else most + margin
        ax.plot([value, value, end], [0, y, y], color=_LINE, linewidth=0.9)
        label = extractor_label(name)
        text = f"{label}  {value:.2f}" if left else f"{value:.2f}  {label}"
        ax.text(
            end - margin / 2 if left else end + margin / 2, y, text,
            ha="right" if left else "left", va="center", fontsize=9,
        )  # fmt: skip
    top = 0.65
    difference = comparison.critical_difference
    if difference <= most - 1:
        ax.plot([1, 1 + difference], [0.75, 0.75], color=_LINE, linewidth=1.6, marker="|")
        ax.text(
            1 + difference / 2, 0.85, f"critical difference {difference:.2f}",
            ha="center", va="bottom", fontsize=9,
        )  # fmt: skip
        top = 1.3
    bottom = -below - 0.4 * half - 0.2
    if groups:
        bottom -= 0.3
        text = "bars join extractors that cannot be told apart"
        ax.text((1 + most) / 2, bottom + 0.1, text, ha="center", color=_GROUP, fontsize=9)
    ax.set_ylim(bottom, top)
    n_data = len(comparison.ranks)
    about = f"average rank over {n_data} data set{'' if n_data == 1 else 's'}, 1 is best"
    ax.set_title(about if title is None else f"{title}: {about}", fontsize=10)
    return ax
