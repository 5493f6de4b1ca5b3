"""Plots of rules: boxes in a plane, parallel coordinates, overlap and groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skescore._text import plural
from skescore._validation import check_integer, label_order, python_value
from skescore.metrics import group_shares
from skescore.plots._features import (
    Side,
    feature_counts,
    feature_index,
    has_further_conditions,
    side_of,
    two_features,
)
from skescore.plots._style import (
    SEQUENTIAL,
    axes_or_new,
    colors_of,
    contrast,
    draw_rows,
    legend_beside,
    matplotlib_module,
    pale,
    shorten,
)
from skescore.rules import (
    Interval,
    LinearOutput,
    Missing,
    OneOf,
    RowTable,
    Rule,
    RuleSet,
    as_ruleset,
    truth_table,
)
from skescore.rules._text import format_number

__all__ = ["group_heatmap", "overlap_matrix", "parallel_rules", "rule_boxes"]


class Palette:
    """Colors of the rules of a set and of rows."""

    def __init__(self, ruleset: RuleSet, y: Any = None) -> None:
        self._ruleset = ruleset
        truth = [] if y is None else [python_value(v) for v in np.asarray(y).tolist()]
        self.is_classes = ruleset.task == "classification"
        if self.is_classes:
            self.labels = sorted({*(ruleset.classes or ()), *truth}, key=label_order)
            self._colors = colors_of(len(self.labels))
            return
        self.values = np.array([output_number(rule, ruleset) for rule in ruleset.rules])
        everything = np.concatenate([self.values, np.asarray(truth, dtype=float)])
        everything = everything[np.isfinite(everything)]
        low, high = (everything.min(), everything.max()) if len(everything) else (0.0, 1.0)
        colors, cm = matplotlib_module("colors"), matplotlib_module("cm")
        if low == high:
            low, high = low - 0.5, high + 0.5
        self._scale = cm.ScalarMappable(colors.Normalize(float(low), float(high)), SEQUENTIAL)

    def color(self, rule: int) -> str:
        """Return the color of a rule's output as ``#rrggbb``."""
        if self.is_classes:
            return self._colors[self.labels.index(self._ruleset.rules[rule].output)]
        value = self.values[rule]
        if not np.isfinite(value):
            return "#999999"
        return str(matplotlib_module("colors").to_hex(self._scale.to_rgba(value)))

    def face(self, rule: int) -> str:
        """Return the color of areas, which is pale for classes so that points are visible."""
        return pale(self.color(rule)) if self.is_classes else self.color(rule)

    def points(self, ax: Any, x: np.ndarray, y: np.ndarray, truth: Any) -> None:
        """Draw rows as points in the colors of their true outputs; gray if these are unknown."""
        values = None if truth is None else np.asarray(truth)
        if values is not None and values.shape != (len(x),):
            raise ValueError(f"y must hold one value per row, {len(x)}, got shape {values.shape}.")
        if self.is_classes:
            draw_rows(ax, x, y, values, labels=self.labels)
        else:
            draw_rows(ax, x, y, values, norm=self._scale.norm)

    def legend(self, ax: Any, dashed: str = "", *, faces: bool = True) -> None:
        """Draw a legend of the colors, and of dashed lines with the meaning `dashed`."""
        if self.is_classes:
            patch = matplotlib_module("patches").Patch
            handles = [
                patch(fc=pale(color) if faces else color, ec="black", lw=0.5, label=shorten(label))
                for label, color in zip(self.labels, self._colors, strict=True)
            ]
            if dashed:
                line = matplotlib_module("lines").Line2D
                handles.append(line([], [], color="black", ls="--", lw=1.0, label=dashed))
            legend_beside(ax, "output", handles)
            return
        more = f" (dashed: {dashed})" if dashed else ""
        ax.figure.colorbar(self._scale, ax=ax, label=f"output of the rule{more}")


def _drawable_rules(rules: Any) -> RuleSet:
    """Return the rules of a model; raise a ValueError if there are no rules."""
    ruleset: RuleSet = as_ruleset(rules)
    if not len(ruleset):
        raise ValueError("rules must hold at least one rule to draw, got none.")
    return ruleset


def output_number(rule: Rule, ruleset: RuleSet) -> float:
    """Return the output of a rule, or the mean of a linear output."""
    output = rule.output
    if not isinstance(output, LinearOutput):
        return float(output)
    if rule.statistics is not None and rule.statistics.mean is not None:
        return float(rule.statistics.mean)
    if ruleset.domain is None:
        return float("nan") if output.terms else output.intercept
    bounds = {c.feature: (c.lower, c.upper) for c in rule.intervals}
    total = output.intercept
    for feature, coefficient in output.terms:
        low, high = bounds.get(feature, (-np.inf, np.inf))
        low = max(low, ruleset.domain.lower[feature])
        high = min(high, ruleset.domain.upper[feature])
        total += coefficient * (low + high) / 2
    return float(total)


_RASTER_SIZE = 120
#: Smallest distance in pixels between the number of a rule and the edges of its box.
_MIN_EDGE_DISTANCE = 2.5


def rule_boxes(
    rules: Any,
    X: Any = None,
    y: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw rules as boxes in the plane of two features, in the colors of their outputs.

    Use it to see how rules divide the space, where they overlap, and which regions are uncovered.

    Parameters
    ----------
    rules : RuleSet, fitted extractor or search, or anything that ``as_ruleset`` reads
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows to draw as points.
    y : array-like of shape (n_rows,), optional
        True outputs of the rows, for the colors of points.
    features : sequence of two str or int, optional
        Features on the x and y axes, by name or index; by default the two with the most conditions.
    legend : bool, default=True
        Whether to draw a legend beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there are no rules, or a feature is unknown.

    Notes
    -----
    A box with a dashed line is a projection: the rule has conditions on other features and holds
    only in a part of the box. Unbounded sides extend beyond the plot. In an ordered list, earlier
    rules are drawn above later ones. Rules are numbered as in their text; a linear output has the
    color of its mean. Categories that occur neither in the rules nor in X are not drawn.

    Examples
    --------
    >>> from skescore.plots import rule_boxes
    >>> ax = rule_boxes(extractor, X, y)  # doctest: +SKIP
    """
    ruleset = _drawable_rules(rules)
    table = None if X is None else RowTable(X, ruleset.feature_names)
    names = ruleset.feature_names
    if len(names) == 1 and features is None:
        return _draw_strips(ruleset, table, y, legend, ax)
    pair = two_features(features, names, [ruleset])
    sides = [side_of(feature, names, ruleset=ruleset, table=table) for feature in pair]
    palette = Palette(ruleset, y)
    ax = axes_or_new(ax)
    _draw_boxes(ax, ruleset, sides, palette)
    if table is not None:
        xy = [side.scattered(table.column(side.feature), k) for k, side in enumerate(sides)]
        palette.points(ax, xy[0], xy[1], y)
    sides[1].label_axis(ax.yaxis)
    _finish(ax, sides, ruleset, palette, legend)
    return ax


def _draw_strips(ruleset: RuleSet, table: RowTable | None, y: Any, legend: bool, ax: Any) -> Any:
    """Draw rules on a single feature as strips."""
    first = side_of(
        feature_index(0, ruleset.feature_names), ruleset.feature_names, ruleset=ruleset, table=table
    )
    sides = [first, Side(-1, "", 0.0, 1.0)]
    palette = Palette(ruleset, y)
    ax = axes_or_new(ax, (6.4, 2.2))
    _draw_boxes(ax, ruleset, sides, palette)
    if table is not None:
        x = first.scattered(table.column(0), 0)
        palette.points(ax, x, np.random.default_rng(0).uniform(0.1, 0.9, len(x)), y)
    ax.set_yticks([])
    _finish(ax, sides, ruleset, palette, legend)
    return ax


def _draw_boxes(ax: Any, ruleset: RuleSet, sides: list[Side], palette: Palette) -> None:
    patches = matplotlib_module("patches")
    drawn_features = [side.feature for side in sides]
    n = len(ruleset)
    owner = np.full((_RASTER_SIZE, _RASTER_SIZE), -1)
    grid = [np.linspace(s.low, s.high, 2 * _RASTER_SIZE + 1)[1::2] for s in sides]
    for i, rule in reversed(list(enumerate(ruleset.rules))):
        is_projection = has_further_conditions(rule, drawn_features)
        color = palette.face(i)
        alpha = 1.0 if ruleset.ordered or ruleset.disjoint else 0.55
        for x in sides[0].pieces(rule.conditions):
            for y in sides[1].pieces(rule.conditions):
                left, right = _clip_to_plot(x, sides[0])
                low, high = _clip_to_plot(y, sides[1])
                ax.add_patch(
                    patches.Rectangle(
                        (left, low),
                        right - left,
                        high - low,
                        facecolor=color,
                        alpha=0.75 if is_projection else alpha,
                        linewidth=0,
                        zorder=1 + (n - i) / (n + 1),
                        gid=f"rule {i + 1}",
                    )
                )
                # The outline is a separate patch, which must not be transparent.
                ax.add_patch(
                    patches.Rectangle(
                        (left, low),
                        right - left,
                        high - low,
                        facecolor="none",
                        edgecolor="black",
                        linewidth=1.0,
                        linestyle="--" if is_projection else "-",
                        zorder=2 if is_projection else 1 + (n - i) / (n + 1),
                    )
                )
                in_columns = (grid[0] > left) & (grid[0] < right)
                owner[np.ix_((grid[1] > low) & (grid[1] < high), in_columns)] = i
    _number_boxes(ax, owner, grid, palette)


def _clip_to_plot(interval: tuple[float, float], side: Side) -> tuple[float, float]:
    """Return the ends of a side of a box; unbounded ends are outside of the plot."""
    margin = 0.1 * (side.high - side.low)
    return max(interval[0], side.low - margin), min(interval[1], side.high + margin)


def _number_boxes(ax: Any, owner: np.ndarray, grid: list[np.ndarray], palette: Palette) -> None:
    from scipy.ndimage import distance_transform_edt

    for i in np.unique(owner[owner >= 0]).tolist():
        own_pixels = owner == i
        depth = distance_transform_edt(np.pad(own_pixels, 1))[1:-1, 1:-1]
        if depth.max() < _MIN_EDGE_DISTANCE:
            continue
        row, column = np.unravel_index(int(np.argmax(depth)), depth.shape)
        ax.text(
            grid[0][column],
            grid[1][row],
            str(i + 1),
            ha="center",
            va="center",
            fontsize="small",
            color=contrast(palette.face(i)),
            zorder=5,
            clip_on=True,
            bbox={"boxstyle": "round,pad=0.15", "fc": palette.face(i), "ec": "none", "alpha": 0.8},
        )


def _finish(ax: Any, sides: list[Side], ruleset: RuleSet, palette: Palette, legend: bool) -> None:
    sides[0].label_axis(ax.xaxis)
    ax.set_xlim(sides[0].low, sides[0].high)
    ax.set_ylim(sides[1].low, sides[1].high)
    n = len(ruleset)
    ax.set_title(
        f"{n} rule{'' if n == 1 else 's'}"
        + ("; the first that holds gives the prediction" if ruleset.ordered and n > 1 else "")
    )
    if legend:
        drawn_features = [side.feature for side in sides]
        more = any(has_further_conditions(rule, drawn_features) for rule in ruleset.rules)
        palette.legend(ax, "needs more features" if more else "")


#: Largest number of rules for which the cells of a matrix contain numbers.
_MAX_RULES_WITH_NUMBERS = 15
#: Width of a feature's cell in :func:`parallel_rules`.
_CELL = 0.8
#: Height below the rules for names of categories, in rows.
_ROWS_BELOW = 1.8


def parallel_rules(
    rules: Any,
    X: Any = None,
    *,
    features: Sequence[str | int] | None = None,
    max_rules: int = 20,
    max_features: int = 12,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    """Draw every rule as a row with a bar for each condition in the column of its feature.

    Use it for rules with more than two features.

    Parameters
    ----------
    rules : RuleSet, fitted extractor or search, or anything that ``as_ruleset`` reads
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows that determine the ranges of features if the rules have no domain.
    features : sequence of str or int, optional
        Features from left to right; by default up to `max_features` features with the most
        conditions, in the order of the columns.
    max_rules : int, default=20
        Largest number of rules; of more rules, the first are drawn.
    max_features : int, default=12
        Largest number of features by default.
    legend : bool, default=True
        Whether to draw a legend beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there are no rules, or a feature is unknown.

    Notes
    -----
    The column of a feature represents its range. A bar covers the values for which the rule holds,
    in the color of its output. A rule without a bar in a column does not use the feature. Symbols
    mark conditions on missing values; a plus marks conditions that are not drawn: on other
    features, on several features, or of the kind "at least m of".

    Examples
    --------
    >>> from skescore.plots import parallel_rules
    >>> ax = parallel_rules(extractor)  # doctest: +SKIP
    """
    ruleset = _drawable_rules(rules)
    for name, value in (("max_rules", max_rules), ("max_features", max_features)):
        check_integer(name, value, 1)
    names = ruleset.feature_names
    indices = _feature_indices(features, ruleset, max_features, max_rules)
    table = None if X is None else RowTable(X, names)
    sides = [side_of(j, names, ruleset=ruleset, table=table, margin=0.0) for j in indices]
    rules = ruleset.rules[:max_rules]
    palette = Palette(ruleset)
    label_rows = _ROWS_BELOW if any(side.values is not None for side in sides) else 0.2
    size = (min(15.0, 3.6 + 1.3 * len(sides)), 1.6 + 0.27 * (len(rules) + label_rows))
    ax = axes_or_new(ax, size)
    rectangle = matplotlib_module("patches").Rectangle
    for k in range(len(sides)):
        ax.add_patch(
            rectangle((k - 0.5 * _CELL, -0.5), _CELL, len(rules), facecolor="0.95", lw=0, zorder=0)
        )
    ax.hlines(np.arange(len(rules)), -0.5, len(sides) - 0.5, color="0.85", lw=0.6, zorder=1)
    signs: dict[str, None] = {}
    labels = []
    for i, rule in enumerate(rules):
        for k, side in enumerate(sides):
            for low, high in _drawn_pieces(side, rule):
                ends = [k + _CELL * (_scaled(end, side) - 0.5) for end in (low, high)]
                width = max(ends[1] - ends[0], 0.02)
                start = min(ends[0], k + 0.5 * _CELL - width)
                ax.add_patch(
                    rectangle(
                        (start, i - 0.32),
                        width,
                        0.64,
                        facecolor=palette.color(i),
                        lw=0,
                        zorder=3,
                        gid=f"rule {i + 1}",
                    )
                )
            if sign := _missing_sign(rule, side.feature):
                signs[sign] = None
                _write_sign(ax, k, i, sign)
        suffix = "" if not has_further_conditions(rule, indices, missing=True) else " +"
        signs |= {"+ has further conditions": None} if suffix else {}
        labels.append(f"{_label_of_rule(ruleset, i, 18)}{suffix}")
    ax.set_yticks(range(len(rules)), labels, fontsize="small" if len(rules) <= 25 else "x-small")
    _parallel_axes(ax, sides, len(rules))
    ax.set_ylim(len(rules) + label_rows, -0.6)
    ax.set_xlabel(",   ".join(signs), fontsize="small")
    n = len(ruleset)
    count = f"the first {len(rules)} of {n} rules" if len(rules) < n else plural(n, "rule")
    first = "; the first that holds gives the prediction" if ruleset.ordered and n > 1 else ""
    ax.set_title(f"{count}{first}")
    if legend:
        palette.legend(ax, faces=False)
    return ax


def _write_sign(ax: Any, column: int, row: int, sign: str) -> None:
    """Write a symbol at the left of a feature's cell."""
    ax.text(
        column - 0.5 * _CELL - 0.02,
        row,
        sign.partition(" ")[0],
        ha="right",
        va="center",
        fontsize="small",
        zorder=4,
    )


def _drawn_pieces(side: Side, rule: Rule) -> list[tuple[float, float]]:
    """Return the intervals of a rule on a feature; none if it has no condition on it."""
    pieces = side.pieces(rule.conditions)
    return [] if pieces == [(-np.inf, np.inf)] else pieces


def _missing_sign(rule: Rule, feature: int) -> str:
    """Return the symbol of a condition on missing values; empty if they do not satisfy it."""
    for condition in rule.conditions:
        if isinstance(condition, Missing) and condition.feature == feature:
            return "✓ is not missing" if condition.negated else "∅ is missing"
        if isinstance(condition, Interval | OneOf) and condition.feature == feature:
            return "∘ or missing" if truth_table(condition).missing else ""
    return ""


def overlap_matrix(
    rules: Any,
    X: Any = None,
    *,
    share: bool = True,
    max_rules: int = 60,
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the overlap of all pairs of rules as a matrix, with the coverage of each rule.

    Use it to find rules that are nearly equal, and rules that cover few rows.

    Parameters
    ----------
    rules : RuleSet, fitted extractor or search, or anything that ``as_ruleset`` reads
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows to count. Without X, the overlap of two rules is the share of the domain that both
        cover; the rules must then be boxes.
    share : bool, default=True
        Whether to draw shares of the rows instead of numbers of rows, which need X.
    max_rules : int, default=60
        Largest number of rules to draw; further rules are omitted.
    colorbar : bool, default=True
        Whether to draw a color bar beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there are no rules or no rows, or if X is None and the rules are not boxes in a domain.

    Notes
    -----
    The order of the rules does not matter. Where rules of a list overlap, the earlier one predicts.

    Examples
    --------
    >>> from skescore.plots import overlap_matrix
    >>> ax = overlap_matrix(extractor, X)  # doctest: +SKIP
    """
    ruleset = _drawable_rules(rules)
    check_integer("max_rules", max_rules, 1)
    n = min(len(ruleset), max_rules)
    if X is None:
        if not share:
            raise ValueError("share=False counts rows, so it needs X.")
        matrix, unit = _common_volume(ruleset, n), "share of the domain's volume"
    else:
        matrix = _common_rows(ruleset, X, n)
        unit = "share of the rows" if share else "rows"
        if share:
            matrix = matrix / len(RowTable(X, ruleset.feature_names))
    ax = axes_or_new(ax, (min(11.0, 4.2 + 0.36 * n), min(9.0, 3.0 + 0.32 * n)))
    # The overlap of a rule with itself would dominate the color scale.
    pairs = np.ma.masked_array(matrix, np.eye(n, dtype=bool))
    top = float(pairs.max()) if n > 1 else 0.0
    image = ax.imshow(pairs, cmap="Blues", vmin=0.0, vmax=top or 1.0, aspect="auto")
    ax.set_facecolor("0.85")
    if n <= _MAX_RULES_WITH_NUMBERS:
        _write_numbers(ax, image, pairs, share)
    step = 1 + (n - 1) // 30
    numbers = range(0, n, step)
    labels = [f"{_label_of_rule(ruleset, i, 20)} ({_amount(matrix[i, i], share)})" for i in numbers]
    ax.set_xticks(numbers, [str(i + 1) for i in numbers])
    ax.set_yticks(numbers, labels)
    ax.set_xlabel("rule")
    ax.set_ylabel(f"rule: its output ({unit})")
    first = f" (first {n} of {len(ruleset)})" if n < len(ruleset) else ""
    ax.set_title(f"Overlap of two rules{first}")
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label=unit)
    return ax


def group_heatmap(
    rules: Any,
    X: Any,
    groups: Any,
    *,
    sample_weight: Any = None,
    max_rules: int = 60,
    colorbar: bool = True,
    ax: Any = None,
) -> Any:
    """Draw the share of each group's rows, such as women and men, that each rule predicts.

    Use it to see which rules treat the groups of a protected attribute differently.

    Parameters
    ----------
    rules : RuleSet, fitted extractor or search, or anything that ``as_ruleset`` reads
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows to count.
    groups : str or array-like of shape (n_rows,)
        Name of a column of X, or the group of each row.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    max_rules : int, default=60
        Largest number of rules; of more rules, the first are drawn.
    colorbar : bool, default=True
        Whether to draw a color bar beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there are no rules, or the groups are invalid.

    See Also
    --------
    skescore.metrics.group_shares : Table with these shares.

    Examples
    --------
    >>> from skescore.plots import group_heatmap
    >>> ax = group_heatmap(extractor, X, "sex")  # doctest: +SKIP
    """
    ruleset = _drawable_rules(rules)
    check_integer("max_rules", max_rules, 1)
    n = min(len(ruleset), max_rules)
    table = group_shares(ruleset, X, groups, sample_weight)
    is_needed = table.iloc[-1].max() > 0  # the row "no rule"
    shares = table.to_numpy()[[*range(n), *([-1] if is_needed else [])]]
    labels = [_label_of_rule(ruleset, i, 20) for i in range(n)]
    labels += [str(table.index[-1])] if is_needed else []
    height, width = shares.shape
    ax = axes_or_new(ax, (min(11.0, 4.2 + 0.6 * width), min(9.0, 2.0 + 0.32 * height)))
    image = ax.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    if height <= _MAX_RULES_WITH_NUMBERS:
        _write_numbers(ax, image, shares, share=True)
    ax.set_xticks(range(width), [shorten(str(group), 20) for group in table.columns])
    ax.set_yticks(range(height), labels)
    name = groups if isinstance(groups, str) else "group"
    ax.set_xlabel(name)
    ax.set_ylabel("rule: its output")
    covers = "decides" if ruleset.voting is None else "covers"
    ax.set_title(f"Share of each group's rows that a rule {covers}")
    if colorbar:
        ax.figure.colorbar(image, ax=ax, label="share of the group's rows")
    return ax


def _write_numbers(ax: Any, image: Any, matrix: np.ndarray, share: bool) -> None:
    """Write the numbers of a matrix into the cells of its image, except masked cells."""
    for (row, column), value in np.ma.ndenumerate(matrix):
        color = contrast(image.cmap(image.norm(value)))
        text = _amount(float(value), share)
        ax.text(column, row, text, ha="center", va="center", fontsize="x-small", color=color)


def _label_of_rule(ruleset: RuleSet, index: int, length: int) -> str:
    """Return the number and the shortened output of a rule, for the axis of a plot."""
    return (
        f"{index + 1}: {shorten(_output_text(ruleset.rules[index].output, ruleset.task), length)}"
    )


def _amount(value: float, share: bool) -> str:
    """Format a number of the matrix; positive shares are never displayed as zero."""
    text = format_number(float(value), 2 if share else 0) if value else "0"
    return "<.01" if share and text == "0" and value else text


def _output_text(output: Any, task: str) -> str:
    if isinstance(output, LinearOutput):
        return "linear" if output.terms else format_number(output.intercept)
    return format_number(output) if task == "regression" else str(output)


def _common_rows(ruleset: RuleSet, X: Any, n: int) -> np.ndarray:
    table = RowTable(X, ruleset.feature_names)
    if not len(table):
        raise ValueError("X must hold at least one row to count, got 0 rows.")
    holds = ruleset.match(table)[:, :n].astype(float)
    return np.asarray(holds.T @ holds)


def _common_volume(ruleset: RuleSet, n: int) -> np.ndarray:
    domain = ruleset.domain
    if domain is None or not ruleset.boxes_only:
        raise ValueError(
            "Without X the common volume of rules is drawn. This needs rules that are boxes and a "
            f"domain; got domain={domain!r} and boxes_only={ruleset.boxes_only}. Pass X."
        )
    low, high = np.asarray(domain.lower), np.asarray(domain.upper)
    varies = high > low  # a constant feature has no length
    width, missing = np.where(varies, high - low, 1.0), np.asarray(domain.missing)
    boxes = ruleset.boxes
    lower, upper = np.clip(boxes.lower[:n], low, high), np.clip(boxes.upper[:n], low, high)
    holds = (boxes.lower < low) | (boxes.lower_closed & (boxes.lower == low))
    holds &= (low < boxes.upper) | (boxes.upper_closed & (boxes.upper == low))
    nan_ok, holds = boxes.accepts_missing[:n], holds[:n]
    matrix = np.empty((n, n))
    for i in range(n):
        sides = np.minimum(upper, upper[i]) - np.maximum(lower, lower[i])
        shares = np.where(varies, np.clip(sides, 0.0, None) / width, holds & holds[i])
        matrix[i] = np.prod(shares * (1 - missing) + missing * (nan_ok & nan_ok[i]), axis=1)
    return matrix


def _feature_indices(features: Any, ruleset: RuleSet, max_features: int, n_rules: int) -> list[int]:
    if features is not None:
        if isinstance(features, str) or not len(features):
            raise ValueError(f"features must be a list of names or indices, got {features!r}.")
        indices = [feature_index(feature, ruleset.feature_names) for feature in features]
        if len(set(indices)) < len(indices):
            raise ValueError(f"features must be different, got {features!r}.")
        return indices
    counts = feature_counts(ruleset, n_rules)
    order = np.argsort(-counts, kind="stable")
    used = [int(j) for j in order if counts[j] > 0][:max_features]
    return sorted(used) or [0]


def _scaled(value: float, side: Side) -> float:
    width = side.high - side.low
    return float(np.clip((value - side.low) / width, 0.0, 1.0)) if width > 0 else 0.5


def _format_end(value: float, side: Side) -> str:
    """Format the end of an axis with the digits that its length requires."""
    width = side.high - side.low
    if width <= 0:
        return format_number(value)
    decimals = max(0, 2 - int(np.floor(np.log10(width))))
    return format_number(round(value, decimals) + 0.0, decimals)  # no negative zero


def _parallel_axes(ax: Any, sides: list[Side], n_rules: int) -> None:
    style: dict[str, Any] = {"fontsize": "x-small", "color": "0.35", "va": "top"}
    for k, side in enumerate(sides):
        if side.values is None:
            for end, x, edge in ((side.low, -0.5, "left"), (side.high, 0.5, "right")):
                ax.text(k + _CELL * x, n_rules - 0.35, _format_end(end, side), ha=edge, **style)
            continue
        step = 1 + (len(side.values) - 1) // 12
        for code in range(0, len(side.values), step):
            ax.text(
                k + _CELL * (_scaled(float(code), side) - 0.5),
                n_rules - 0.35,
                shorten(side.values[code], 12),
                ha="center",
                rotation=90,
                **style,
            )
    texts = [shorten(side.name, 24) for side in sides]
    tilted = max(map(len, texts)) > 14
    ax.set_xticks(
        range(len(texts)), texts, rotation=20 if tilted else 0, ha="left" if tilted else "center"
    )
    ax.tick_params(axis="x", length=0, labeltop=True, labelbottom=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(-0.56, len(sides) - 0.44)
    for name in ("left", "right", "top", "bottom"):
        ax.spines[name].set_visible(False)
