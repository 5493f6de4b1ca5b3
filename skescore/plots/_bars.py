"""Bar charts of scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skescore._validation import check_choice
from skescore.plots._results import (
    finished,
    results_candidates,
    results_table,
    score_values,
    weights_shown,
)
from skescore.plots._style import (
    axes_or_new,
    colors_of,
    legend_beside,
    matplotlib_module,
    number,
    pale,
    shorten,
)
from skescore.registry import extractor_label
from skescore.scorers import SCORE_SPECS, all_weights, measured_quantities

__all__ = ["score_bars"]

_BEST, _WORST = "*", "x"
#: Share of the tallest bar that all bars must exceed for an axis that begins above 0.
_TALL = 0.5
#: Largest number of readable bars.
_MAX_BARS = 40


def score_bars(
    results: Any,
    score: str = "ice",
    *,
    completeness: str = "volume",
    by: str | None = None,
    group: str | None = None,
    annotate: bool = True,
    zoom: bool = True,
    legend: bool = True,
    ax: Any = None,
    **weights: float,
) -> Any:
    """Draw a score of each extractor as a bar, and mark the best and the worst.

    Use it to compare a few extractors; use :func:`pareto_plot` for many candidates.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or dict
        For a search, its candidates or its leaderboard, the best candidate of each extractor is
        drawn; error bars show the standard deviation of the score over folds (not for a
        leaderboard). For rows of a benchmark, means over seeds and folds are drawn, with their
        standard deviation. A dict maps each label to (performance, number of rules, completeness);
        the loss is then one minus the performance.
    score : str, default="ice"
        ``"ice"``, ``"fire"`` or ``"q"``, or one of the measures: ``"performance"``, ``"loss"``,
        ``"loss_q"``, ``"n_rules"``, ``"size"``, ``"completeness_volume"``,
        ``"completeness_instances"``.
    completeness : {"volume", "instances"}, default="volume"
        Kind of completeness that the scores use.
    by : str, optional
        Column of a data frame with one bar for each value; by default ``"extractor"``.
    group : str, optional
        Column of a data frame with one group of bars for each value; by default ``"data"`` if
        there are several data sets.
    annotate : bool, default=True
        Whether to hatch the best bar of each group with stars and the worst with crosses, and to
        write the scores above at most twelve bars.
    zoom : bool, default=True
        Whether to start the axis above 0 if all bars are tall, so that their differences are
        visible; the axis label states it.
    legend : bool, default=True
        Whether to draw a legend beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.
    **weights : float
        Weights of the scores, such as ``psi``, ``phi`` and ``rho``; by default 1.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If the results, a name or a weight are invalid.

    Notes
    -----
    All bars with the best or worst score are marked, unless all bars are equal. Of more than forty
    bars, only the forty best are drawn in descending order, and the title states it. For a
    benchmark, the scores of all seeds and folds are averaged, which differs from the score of
    averaged measures. The plot follows Figure 4 of the paper.

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024.

    Examples
    --------
    >>> from skescore.plots import score_bars
    >>> ax = score_bars({"CREAM": (0.95, 4, 1), "ITER": (0.92, 9, 0.75)}, phi=3)  # doctest: +SKIP
    """
    check_choice("score", score, (*SCORE_SPECS, *measured_quantities(costs=False)))
    weights = all_weights(weights)
    table = _bars(results, score, weights, completeness, by, group)
    n_bars = len(table)
    if n_bars > _MAX_BARS:
        best = table.sort_values("value", ascending=not _is_greater_better(score), kind="stable")
        table = best[:_MAX_BARS].reset_index(drop=True)
    groups = list(dict.fromkeys(table["group"]))
    names = list(dict.fromkeys(table["bar"]))
    size = max(4.2, 1.6 + 0.55 * len(table)) + (1.8 if len(groups) > 1 else 0.0)
    ax = axes_or_new(ax, (min(size, 14.0), 4.0))
    colors = dict(zip(names, colors_of(len(names)), strict=True))
    grouped = len(groups) > 1
    greater = _is_greater_better(score)
    for i, name in enumerate(groups):
        members = table[table["group"] == name]
        hatches = _hatches(members["value"].to_numpy(float), greater) if annotate else {}
        if n_bars > len(table):  # the worst bar is not drawn
            hatches = {k: sign for k, sign in hatches.items() if sign == _BEST}
        for k, (_, row) in enumerate(members.iterrows()):
            width = 0.8 / len(names) if grouped else 0.7
            center = i - 0.4 + width * (names.index(row["bar"]) + 0.5) if grouped else float(k)
            bars = ax.bar(
                center,
                row["value"],
                width,
                color=pale(colors[row["bar"]], 0.7),
                edgecolor="black",
                linewidth=0.7,
                hatch=hatches.get(k),
                label="_nolegend_",
                yerr=row["spread"] if np.isfinite(row["spread"]) else None,
                error_kw={"elinewidth": 1.0, "capsize": 2.5},
            )
            if annotate and len(table) <= 12 and np.isfinite(row["value"]):
                ax.bar_label(bars, fmt=number, fontsize="x-small", padding=2)
    ax.set_xlim(-0.6, (len(groups) if grouped else len(table)) - 0.4)
    tick_labels = groups if grouped else table["bar"].tolist()
    texts = [shorten(text, 22) for text in tick_labels]
    tilted = len(texts) * max(map(len, texts)) > 60
    turned = (90 if len(texts) > 20 else 30) if tilted else 0
    ax.set_xticks(
        range(len(texts)), texts, rotation=turned, ha="right" if turned == 30 else "center"
    )
    _name_axis(ax, score, weights)
    if n_bars > len(table):
        ax.set_title(f"{ax.get_title()}: the best {_MAX_BARS} of {n_bars}")
    _set_limits(ax, table, zoom=zoom)
    ax.axhline(0.0, color="black", lw=0.8)
    if legend:
        spread = bool(np.isfinite(table["spread"]).any())
        marked = annotate and len(table) > 1
        _legend(ax, colors if grouped else {}, marked, n_bars == len(table), spread)
    return ax


def _set_limits(ax: Any, table: pd.DataFrame, *, zoom: bool) -> None:
    """Set the range of the y axis, which begins above 0 with `zoom` if all bars are tall."""
    tops = table["value"] + table["spread"].fillna(0.0)
    low = float((table["value"] - table["spread"].fillna(0.0)).min())
    high = float(tops.max())
    if zoom and low > _TALL * high > 0 and high > low:
        start = max(0.0, low - 0.5 * (high - low))
        step = 10.0 ** np.floor(np.log10(high - start))
        start = float(step * np.floor(start / step))
        ax.set_ylim(start, high + 0.2 * (high - start))
        ax.set_ylabel(f"{ax.get_ylabel()}, axis from {number(start)}")
    elif table["value"].min() >= 0:
        ax.set_ylim(0.0, 1.15 * high or 1.0)
    else:
        ax.margins(y=0.15)


def _bars(
    results: Any,
    score: str,
    weights: dict[str, float],
    completeness: str,
    by: str | None,
    group: str | None,
) -> pd.DataFrame:
    """Return one row per bar: name, group, value and standard deviation of the value."""
    if isinstance(results, pd.DataFrame) and ("fold" in results or "seed" in results):
        return _scores_of_rows(finished(results), score, weights, completeness, by, group)
    plain = ("performance", "n_rules", "completeness_volume")
    if isinstance(results, pd.DataFrame) or hasattr(results, "keys"):
        table = results_table(results, plain=plain)
        if not isinstance(results, pd.DataFrame):
            loss = 1.0 - table["performance"]
            share = table["completeness_volume"]
            table = table.assign(loss=loss, loss_q=loss, completeness_instances=share)
        elif by is not None and by in results:
            table[by] = finished(results)[by].to_numpy()
        elif group is not None and group in results:
            table[group] = finished(results)[group].to_numpy()
        table["value"] = _scored(table, score, weights, completeness)
    else:
        candidates = results_candidates(results)
        table = candidates.table()
        if score in SCORE_SPECS:
            folds = candidates.scores(score, completeness=completeness, **weights)
            table["value"] = folds.mean(axis=1)
            if folds.shape[1] > 1:
                table["spread"] = folds.std(axis=1, ddof=1)
        else:
            table["value"] = candidates.means(score)
    bar = by or ("label" if hasattr(results, "keys") and "label" in results else "extractor")
    table = table.assign(bar=_column(table, bar).astype(str).map(extractor_label))
    if "spread" not in table:
        table["spread"] = np.nan
    grouping = group or ("data" if "data" in table and table["data"].nunique() > 1 else None)
    table["group"] = "" if grouping is None else _column(table, grouping).astype(str)
    table = table[np.isfinite(table["value"])]
    best = table.sort_values("value", ascending=not _is_greater_better(score), kind="stable")
    best = best.drop_duplicates(["group", "bar"])
    return best.loc[[i for i in table.index if i in set(best.index)]].reset_index(drop=True)


def _scores_of_rows(
    rows: pd.DataFrame,
    score: str,
    weights: dict[str, float],
    completeness: str,
    by: str | None,
    group: str | None,
) -> pd.DataFrame:
    if "size" not in rows and "n_rules" in rows:
        rows = rows.assign(size=rows["n_rules"])
    rows = rows.assign(value=_scored(rows, score, weights, completeness))
    grouping = group or ("data" if "data" in rows and rows["data"].nunique() > 1 else None)
    rows["group"] = "" if grouping is None else _column(rows, grouping).astype(str)
    rows["bar"] = _column(rows, by or "extractor").astype(str).map(extractor_label)
    grouped_values = rows.groupby(["group", "bar"], sort=False)["value"]
    table = grouped_values.mean().rename("value").to_frame()
    return table.assign(spread=grouped_values.std(ddof=1)).reset_index()


def _scored(
    table: pd.DataFrame, score: str, weights: dict[str, float], completeness: str
) -> np.ndarray:
    if score in SCORE_SPECS:
        return score_values(table, score, completeness=completeness, **weights)
    return _column(table, score).to_numpy(dtype=float)


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table:
        columns = [c for c in table if c not in ("value", "spread")]
        raise ValueError(f"There is no column {name!r} among the results; there are {columns}.")
    return table[name]


def _hatches(values: np.ndarray, greater: bool) -> dict[int, str]:
    """Return the hatches of the best and the worst bars by index."""
    if not len(values) or np.ptp(values) <= 1e-12 * np.abs(values).max():
        return {}
    low, high = values.min(), values.max()
    noise = 1e-12 * np.abs(values).max()
    best, worst = (high, low) if greater else (low, high)
    marks = {int(k): _WORST for k in np.flatnonzero(np.abs(values - worst) <= noise)}
    return marks | {int(k): _BEST for k in np.flatnonzero(np.abs(values - best) <= noise)}


def _name_axis(ax: Any, score: str, weights: dict[str, float]) -> None:
    sign = "greater" if _is_greater_better(score) else "smaller"
    spec = SCORE_SPECS.get(score)
    name = measured_quantities()[score].label if spec is None else spec.label
    ax.set_ylabel(f"{name} ({sign} is better)")
    ax.set_title(", ".join([name, *([] if spec is None else weights_shown(spec, weights))]))


def _is_greater_better(score: str) -> bool:
    """Return whether a score or another measure is better if it is greater."""
    described: Any = SCORE_SPECS if score in SCORE_SPECS else measured_quantities()
    return bool(described[score].greater_is_better)


def _legend(ax: Any, colors: dict[str, str], marked: bool, with_worst: bool, spread: bool) -> None:
    patch = matplotlib_module("patches").Patch
    handles = [
        patch(facecolor=pale(color, 0.7), edgecolor="black", label=shorten(name, 40))
        for name, color in colors.items()
    ]
    if marked:
        handles += [
            patch(facecolor="white", edgecolor="black", hatch=hatch * 2, label=text)
            for hatch, text in ((_BEST, "best"), (_WORST, "worst"))
            if with_worst or hatch == _BEST
        ]
    if spread:
        line = matplotlib_module("lines").Line2D
        handles.append(line([], [], color="black", lw=1.0, marker="|", label="± deviation"))
    legend_beside(ax, None, handles)
