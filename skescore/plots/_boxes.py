"""Rules as boxes in the plane of two features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skescore.plots._features import (
    Side,
    feature_index,
    further_conditions,
    side_of,
    two_features,
)
from skescore.plots._outputs import Palette
from skescore.plots._style import axes_or_new, contrast, matplotlib_module
from skescore.rules import RuleSet, as_ruleset
from skescore.rules._columns import Table

__all__ = ["rule_boxes"]

_RASTER = 120
#: A number is written into a box that has room for it: so many pixels to its nearest edge.
_ROOM = 2.5


def rule_boxes(
    rules: Any,
    X: Any = None,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the rules as boxes in the plane of two features, in the colours of their answers.

    Use it to see how rules divide the space, where they overlap, and what they leave open.

    Parameters
    ----------
    rules : RuleSet, fitted extractor or search, or anything that ``as_ruleset`` reads
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows that are drawn as points.
    y : array-like of shape (n_rows,), optional
        Their truth, for the colours of the points.
    features : sequence of two str or int, optional
        For the x axis and the y axis, by name or index; by default the two that most conditions
        use.
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
        If there are no rules, or a feature is unknown.

    Notes
    -----
    A box with a dashed line is a shadow: the rule asks for more than these two features, so that it
    holds only in a part of the box. Unbounded sides run out of the picture. Of an ordered list
    earlier rules lie above later ones, as they answer first. Numbers are those of the rules in
    their text; a linear answer has the colour of its mean. Values of a categorical feature that the
    rules and X do not know are not drawn.

    Examples
    --------
    >>> from skescore.plots import rule_boxes
    >>> ax = rule_boxes(extractor, X, y)  # doctest: +SKIP
    """
    ruleset: RuleSet = as_ruleset(rules)
    if not len(ruleset):
        raise ValueError("rules must hold at least one rule to draw, got none.")
    table = None if X is None else Table(X, ruleset.feature_names)
    names = ruleset.feature_names
    if len(names) == 1 and features is None:
        return _strips(ruleset, table, y, legend, ax)
    pair = two_features(features, names, [ruleset])
    sides = [side_of(feature, names, ruleset=ruleset, table=table) for feature in pair]
    palette = Palette(ruleset, y)
    ax = axes_or_new(ax)
    _draw(ax, ruleset, sides, palette)
    if table is not None:
        at = [side.scattered(table.column(side.feature), k) for k, side in enumerate(sides)]
        palette.points(ax, at[0], at[1], y)
    sides[1].dress(ax.yaxis)
    _finish(ax, sides, ruleset, palette, legend)
    return ax


def _strips(ruleset: RuleSet, table: Table | None, y: Any, legend: bool, ax: Any) -> Any:
    """Rules on one feature alone have no second side: they are strips."""
    first = side_of(feature_index(0, ruleset.feature_names), ruleset.feature_names,
                    ruleset=ruleset, table=table)  # fmt: skip
    sides = [first, Side(-1, "", 0.0, 1.0)]
    palette = Palette(ruleset, y)
    ax = axes_or_new(ax, (6.4, 2.2))
    _draw(ax, ruleset, sides, palette)
    if table is not None:
        places = first.scattered(table.column(0), 0)
        palette.points(ax, places, np.random.default_rng(0).uniform(0.1, 0.9, len(places)), y)
    ax.set_yticks([])
    _finish(ax, sides, ruleset, palette, legend)
    return ax


def _draw(ax: Any, ruleset: RuleSet, sides: list[Side], palette: Palette) -> None:
    patches = matplotlib_module("patches")
    shown = [side.feature for side in sides]
    n = len(ruleset)
    owner = np.full((_RASTER, _RASTER), -1)
    grid = [np.linspace(s.low, s.high, 2 * _RASTER + 1)[1::2] for s in sides]
    for i, rule in reversed(list(enumerate(ruleset.rules))):
        hidden = further_conditions(rule, shown)
        colour = palette.face(i)
        plain = 1.0 if ruleset.ordered or ruleset.disjoint else 0.55
        for x in sides[0].pieces(rule.conditions):
            for y in sides[1].pieces(rule.conditions):
                left, right = _ends(x, sides[0])
                low, high = _ends(y, sides[1])
                ax.add_patch(
                    patches.Rectangle(
                        (left, low), right - left, high - low, facecolor=colour,
                        alpha=0.75 if hidden else plain, linewidth=0,
                        zorder=1 + (n - i) / (n + 1), gid=f"rule {i + 1}",
                    )
                )  # fmt: skip
                # The outline apart, as the alpha of the face must not make it pale.
                ax.add_patch(
                    patches.Rectangle(
                        (left, low), right - left, high - low, facecolor="none",
                        edgecolor="black", linewidth=1.0, linestyle="--" if hidden else "-",
                        zorder=2 if hidden else 1 + (n - i) / (n + 1),
                    )
                )  # fmt: skip
                inside = (grid[0] > left) & (grid[0] < right)
                owner[np.ix_((grid[1] > low) & (grid[1] < high), inside)] = i
    _number(ax, owner, grid, palette)


def _ends(piece: tuple[float, float], side: Side) -> tuple[float, float]:
    """The ends of a side in the picture; a free one lies outside, so that its line is not seen."""
    beyond = 0.1 * (side.high - side.low)
    return max(piece[0], side.low - beyond), min(piece[1], side.high + beyond)


def _number(ax: Any, owner: np.ndarray, grid: list[np.ndarray], palette: Palette) -> None:
    from scipy.ndimage import distance_transform_edt

    for i in np.unique(owner[owner >= 0]).tolist():
        own = owner == i
        depth = distance_transform_edt(np.pad(own, 1))[1:-1, 1:-1]
        if depth.max() < _ROOM:
            continue
        row, column = np.unravel_index(int(np.argmax(depth)), depth.shape)
        ax.text(
            grid[0][column], grid[1][row], str(i + 1), ha="center", va="center", fontsize="small",
            color=contrast(palette.face(i)), zorder=5, clip_on=True,
            bbox={"boxstyle": "round,pad=0.15", "fc": palette.face(i), "ec": "none", "alpha": 0.8},
        )  # fmt: skip


def _finish(ax: Any, sides: list[Side], ruleset: RuleSet, palette: Palette, legend: bool) -> None:
    sides[0].dress(ax.xaxis)
    ax.set_xlim(sides[0].low, sides[0].high)
    ax.set_ylim(sides[1].low, sides[1].high)
    n = len(ruleset)
    ax.set_title(f"{n} rule{'' if n == 1 else 's'}" + (", the first that holds answers"
                 if ruleset.ordered and n > 1 else ""))  # fmt: skip
    if legend:
        lines = matplotlib_module("lines").Line2D
        shown = [side.feature for side in sides]
        extra = []
        if any(further_conditions(rule, shown) for rule in ruleset.rules):
            extra = [lines([], [], color="black", ls="--", lw=1.0, label="asks for more features")]
        palette.legend(ax, extra)
