"""Plots of the trade-off of a search: its Pareto front, and the winners for all weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skescore._validation import check_choice, check_instance
from skescore.certificates import Certificate
from skescore.plots._results import (
    MEASURES,
    candidate_label,
    finished,
    one_task_only,
    results_candidates,
    results_table,
    score_values,
    weights_shown,
)
from skescore.plots._style import (
    LINE_STYLES,
    PALE_COLORS,
    SEQUENTIAL,
    axes_or_new,
    checked_range,
    colors_of,
    draw_points,
    groups_of,
    legend_beside,
    log_ticks,
    markers_of,
    matplotlib_module,
    number,
    shorten,
    whole_ticks,
)
from skescore.registry import extractor_label
from skescore.scorers import SCORE_SPECS, all_weights, measured_quantities
from skescore.tuning import Candidate, Candidates, WinningRegions, pareto_front, winning_regions
from skescore.tuning._candidates import check_objectives

__all__ = ["pareto_plot", "proven_corridor", "score_sensitivity", "winner_map"]

#: Ratio of the ends of an axis above which it is logarithmic.
_WIDE = 30.0
#: Smallest width of a region that contains a label.
_WIDE_SHARE, _WIDE_STRIP = 0.04, 0.12


def pareto_plot(
    results: Any,
    x: str = "n_rules",
    y: str = "loss",
    *,
    color: str = "extractor",
    completeness: str = "volume",
    log: bool | None = None,
    legend: bool = True,
    ax: Any = None,
    **weights: float,
) -> Any:
    """Draw the candidates of a search, the Pareto front and its knee.

    Use it to see by how much a further rule reduces the loss.

    Parameters
    ----------
    results : fitted search, Candidates or DataFrame
        A search, its candidates or leaderboard, or rows of a benchmark on one data set and black
        box (averaged over seeds and folds).
    x, y : str, default="n_rules", "loss"
        Objectives to minimize: ``"loss"`` (of FiRe), ``"loss_q"``, ``"n_rules"``, ``"size"``,
        ``"incompleteness"``, ``"incompleteness_instances"``; for searches also ``"seconds"``,
        ``"black_box_calls"`` and ``"black_box_rows"``.
    color : {"extractor", "ice", "fire", "q"}, default="extractor"
        Meaning of the colors: the extractor, or a score.
    completeness : {"volume", "instances"}, default="volume"
        Kind of completeness.
    log : bool, optional
        Whether the x axis is logarithmic; by default only if the ratio of its ends exceeds 30.
    legend : bool, default=True
        Whether to draw a legend (or color bar) beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.
    **weights : float
        Weights of the scores for the colors, such as ``psi``, ``phi`` and ``rho``; by default 1.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there are no results, results of several data sets, or a name is unknown.

    Notes
    -----
    The front considers only the two objectives on the axes: a candidate that is not on it may be
    best in another objective, such as completeness. :func:`skescore.tuning.knee` defines the knee.

    Examples
    --------
    >>> from skescore.plots import pareto_plot
    >>> ax = pareto_plot(search)  # doctest: +SKIP
    >>> ax.figure.savefig("front.svg")  # doctest: +SKIP
    """
    check_objectives((x, y))
    check_choice("color", color, ("extractor", *SCORE_SPECS))
    candidates = _measured(results, x, y, completeness)
    front = pareto_front(candidates, (x, y), completeness=completeness)
    table = candidates.table()
    table["label"] = [extractor_label(name) for name in table["extractor"]]
    xs, ys = _values(candidates, x, completeness), _values(candidates, y, completeness)
    scores = None
    if color != "extractor":
        scores = score_values(table, color, completeness=completeness, **weights)
    ax = axes_or_new(ax, (7.0, 4.4))
    if scores is None:
        draw_points(ax, table, xs, ys, legend=False)
    else:
        points = _scored(ax, table, xs, ys, scores, color)
        if legend:
            spec = SCORE_SPECS[color]
            sign = "greater" if spec.greater_is_better else "smaller"
            weight_texts = weights_shown(spec, all_weights(weights))
            weights_text = f" ({', '.join(weight_texts)})" if weight_texts else ""
            # The color bar is next to the axes, the legend to its right.
            ax.figure.colorbar(
                points,
                cax=ax.inset_axes((1.02, 0.0, 0.04, 1.0)),
                label=f"{spec.label}{weights_text}, {sign} is better",
            )
    _draw_front(ax, front, x, y)
    wide = xs.min() > 0 and xs.max() / xs.min() > _WIDE
    if wide if log is None else log:
        ax.set_xscale("log")
        log_ticks(ax.xaxis)
    elif (quantity := measured_quantities().get(x)) is not None and quantity.is_count:
        whole_ticks(ax.xaxis)
    kind = "volume" if completeness == "volume" else "rows"
    ax.set_xlabel(_axis_label(x, kind))
    ax.set_ylabel(_axis_label(y, kind))
    ax.set_title(
        f"{len(table)} candidate{'' if len(table) == 1 else 's'}, {len(front)} on the front"
    )
    if legend:
        legend_beside(ax)
    return ax


def _draw_front(ax: Any, front: pd.DataFrame, x: str, y: str) -> None:
    """Draw the Pareto front as a staircase, and a ring around its knee."""
    order = np.lexsort([front[y], front[x]])
    front_x, front_y = front[x].to_numpy(float)[order], front[y].to_numpy(float)[order]
    knee = front["knee"].to_numpy(bool)[order]
    ax.plot(
        front_x,
        front_y,
        color="black",
        lw=1.2,
        drawstyle="steps-post",
        zorder=3,
        label="Pareto front",
    )
    ax.scatter(
        front_x[knee],
        front_y[knee],
        s=190,
        facecolors="none",
        edgecolors="black",
        linewidths=1.6,
        zorder=5,
        label=f"knee: {x} = {number(front_x[knee][0])}, {y} = {number(front_y[knee][0])}",
    )


def _axis_label(objective: str, completeness: str) -> str:
    """Return the label of an axis that shows an objective."""
    for quantity in measured_quantities().values():
        if objective == quantity.complement:
            return quantity.complement_label.format(completeness=completeness)
        if objective == quantity.name:
            return quantity.label
    return objective.replace("_", " ")


def winner_map(
    results: Any,
    score: str = "ice",
    *,
    within: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    completeness: str = "volume",
    ax: Any = None,
) -> Any:
    """Draw the best candidate for all weights: in the plane of phi and rho, or along psi.

    Use it before you choose weights: often one candidate is best for all reasonable weights.

    Parameters
    ----------
    results : fitted search, Candidates, DataFrame or WinningRegions
        A search, its candidates or leaderboard (whose means are then used instead of folds), rows
        of a benchmark on one data set and black box, or the regions.
    score : {"ice", "fire"}, default="ice"
        Score that determines the best candidate; ignored for WinningRegions.
    within : (float, float) or dict of str to (float, float), optional
        Ranges of the weights, see :func:`skescore.tuning.winning_regions`.
    completeness : {"volume", "instances"}, default="volume"
        Kind of completeness.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there are no results, they are of several data sets, a name is unknown, or a weight is
        out of its range.

    Examples
    --------
    >>> from skescore.plots import winner_map
    >>> ax = winner_map(search, "ice")  # doctest: +SKIP
    """
    regions = results
    if not isinstance(results, WinningRegions):
        candidates = results_candidates(results)
        regions = winning_regions(candidates, score, within=within, completeness=completeness)
    if regions.score == "fire":
        return _draw_strip(regions, ax)
    return _draw_plane(regions, ax)


def _draw_strip(regions: WinningRegions, ax: Any) -> Any:
    """Draw the winners along psi."""
    table: Any = regions.table
    labels, colors = _winners(regions)
    ax = axes_or_new(ax, (9.0, max(2.6, 0.6 + 0.25 * len(labels))))
    row: Any
    for row in table.itertuples():
        ax.axvspan(row.low, row.high, facecolor=colors[row.candidate], edgecolor="black", lw=0.5)
        if row.share >= _WIDE_STRIP:
            ax.text(
                math.sqrt(row.low * row.high),
                0.5,
                labels[row.candidate].replace(", ", "\n"),
                ha="center",
                va="center",
                transform=ax.get_xaxis_transform(),
            )
    ax.set_xscale("log")
    ax.set_xlim(*regions.within["psi"])
    log_ticks(ax.xaxis)
    ax.set_yticks([])
    ax.set_xlabel(_axis_of_weight("psi"))
    ax.set_title("Winners by FiRe")
    return _legend_of_winners(ax, labels, colors, table.groupby("candidate")["share"].sum())


def _draw_plane(regions: WinningRegions, ax: Any) -> Any:
    """Draw the winners in the plane of phi and rho."""
    ax = axes_or_new(ax, (9.0, 5.6))
    table: Any = regions.table.set_index("candidate")
    labels, colors = _winners(regions)
    number = {index: n for n, index in enumerate(labels)}
    image = np.vectorize(number.__getitem__, otypes=[int])(regions.grid.T)
    ax.pcolormesh(
        regions.edges["phi"],
        regions.edges["rho"],
        image,
        cmap=matplotlib_module("colors").ListedColormap(list(colors.values())),
        vmin=-0.5,
        vmax=len(labels) - 0.5,
        rasterized=True,
    )
    for index, label in labels.items():
        if table["share"][index] >= _WIDE_SHARE:
            ax.text(
                table["phi"][index],
                table["rho"][index],
                label.replace(", ", "\n"),
                ha="center",
                va="center",
            )
    ax.plot(1.0, 1.0, marker="+", color="black", markersize=10)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*regions.within["phi"])
    ax.set_ylim(*regions.within["rho"])
    ax.set_xlabel(_axis_of_weight("phi"))
    ax.set_ylabel(_axis_of_weight("rho"))
    log_ticks(ax.xaxis)
    log_ticks(ax.yaxis)
    ax.set_title("Winners by ICE (+ neutral weights)")
    return _legend_of_winners(ax, labels, colors, table["share"])


def _winners(regions: WinningRegions) -> tuple[dict[int, str], dict[int, str]]:
    """Return the labels and colors of the winners, by index in the order of the table."""
    indices = regions.table["candidate"].drop_duplicates().tolist()
    labels = {index: _label_of(regions.candidates[index]) for index in indices}
    return labels, {i: PALE_COLORS[n % len(PALE_COLORS)] for n, i in enumerate(indices)}


def _legend_of_winners(ax: Any, labels: dict[int, str], colors: dict[int, str], shares: Any) -> Any:
    patch = matplotlib_module("patches").Patch
    handles = [
        patch(
            facecolor=colors[index],
            edgecolor="black",
            linewidth=0.5,
            label=f"{index}: {label} ({shares[index]:.1%})",
        )
        for index, label in labels.items()
    ]
    legend_beside(ax, "candidate: extractor, size (share)", handles)
    return ax


def proven_corridor(
    certificate: Certificate, y: str = "score", *, legend: bool = True, ax: Any = None
) -> Any:
    """Draw the proven bounds on the best rules of each size, and the given rules.

    Use it to see the largest possible gain by a further rule, and which proofs are incomplete.

    Parameters
    ----------
    certificate : Certificate
        Certificate of :func:`skescore.certificates.certify`; pass ``certificate.with_score(...)``
        for other weights.
    y : {"score", "loss"}, default="score"
        Measure on the y axis: the score, or the bounded loss.
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
        If `certificate` is not a Certificate, or `y` is unknown.

    Examples
    --------
    >>> from skescore.certificates import certify
    >>> from skescore.plots import proven_corridor
    >>> ax = proven_corridor(certify(search, X))  # doctest: +SKIP
    """
    check_instance("certificate", certificate, Certificate)
    check_choice("y", y, ("score", "loss"))
    ax = axes_or_new(ax)
    n_kinds = len(certificate.kinds)
    given_size = certificate.given_rules["n_rules"]
    given_value = certificate.given_score() if y == "score" else certificate.given_loss()
    drawn_values = [given_value]
    for i, (frontier, color, marker) in enumerate(
        zip(certificate.frontiers, colors_of(n_kinds), markers_of(n_kinds), strict=True)
    ):
        name = f"{frontier.kind}s"
        incumbents, bounds = frontier.upper, frontier.lower
        if y == "score":
            incumbents, bounds = np.array(certificate.corridor(frontier.kind)).T
        # The bounds are steps, because sizes are integers.
        edges = np.repeat(np.arange(len(incumbents) + 1) + 0.5, 2)[1:-1]
        low, high = (np.repeat(values, 2) for values in (incumbents, bounds))
        style: dict[str, Any] = {"color": color, "linewidth": 1.2, "zorder": 3}
        if (incumbents != bounds).any():
            ax.fill_between(edges, low, high, color=color, alpha=0.25, linewidth=0, zorder=2)
            ax.plot(edges, high, linestyle="--", label=f"{name}: proven bound", **style)
        ax.plot(edges, low, **style)
        shifted_sizes = frontier.sizes + np.full(len(incumbents), 0.3 * (i - (n_kinds - 1) / 2))
        ax.plot(
            shifted_sizes,
            incumbents,
            color=color,
            marker=marker,
            linestyle="none",
            zorder=4,
            label=f"{name}: best found",
        )
        # The bounds for one rule are often far away and would compress the other bounds.
        start = 1 if y == "score" and len(incumbents) > 2 and given_size > 1 else 0
        drawn_values += [*incumbents[start:], *bounds[start:]]
    ax.plot(
        [given_size],
        [given_value],
        color="black",
        marker="*",
        markersize=13,
        markeredgecolor="white",
        linestyle="none",
        zorder=5,
        label="given rules",
    )
    pad = 0.06 * (max(drawn_values) - min(drawn_values)) or 0.5
    ax.set_ylim(min(drawn_values) - pad, max(drawn_values) + pad)
    whole_ticks(ax.xaxis)
    label = SCORE_SPECS[certificate.score].label
    ax.set_xlabel("number of rules")
    ax.set_ylabel(label if y == "score" else certificate.frontiers[0].loss.replace("_", " "))
    ax.set_title("proven bounds on the best rules")
    if legend:
        legend_beside(ax)
    return ax


def score_sensitivity(
    results: Any,
    weight: str = "phi",
    *,
    within: tuple[float, float] | None = None,
    completeness: str = "volume",
    top: int = 6,
    legend: bool = True,
    ax: Any = None,
    **weights: float,
) -> Any:
    """Draw the scores of the candidates along one weight.

    Use it to see how the ranking depends on a weight; ranks change where lines cross.

    Parameters
    ----------
    results : fitted search, Candidates or DataFrame
        A search, its candidates or leaderboard (whose means are then used instead of folds), or
        rows of a benchmark on one data set and black box.
    weight : {"phi", "rho", "psi"}, default="phi"
        Weight on the x axis: of ICE for phi and rho, of FiRe for psi.
    within : (float, float), optional
        Range of the weight on a logarithmic axis; by default from 0.1 to 10 (psi: 100).
    completeness : {"volume", "instances"}, default="volume"
        Kind of completeness of ICE.
    top : int, default=6
        Largest number of named candidates: those that are best for some weight, then those with the
        best scores for the current weights. Others are gray.
    legend : bool, default=True
        Whether to draw a legend beside the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; by default a new figure.
    **weights : float
        Current weights, such as ``psi``, ``phi`` and ``rho``; by default 1. A line marks the
        current value of `weight`; the other weights are fixed.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    TypeError, ValueError
        If there are no results, they are of several data sets, a name is unknown, or a weight is
        out of its range.

    Notes
    -----
    As in a search, the score of a candidate is the mean of its scores on the folds.

    Examples
    --------
    >>> from skescore.plots import score_sensitivity
    >>> ax = score_sensitivity(search, "rho", phi=3)  # doctest: +SKIP
    """
    check_choice("weight", weight, all_weights())
    if not isinstance(top, int) or top < 1:
        raise ValueError(f"top must be a whole number of at least 1, got {top!r}.")
    spec = next(spec for spec in SCORE_SPECS.values() if weight in spec.weight_names)
    varied = next(
        candidate_weight for candidate_weight in spec.weights if candidate_weight.name == weight
    )
    low, high = checked_range("within", within, *varied.within, at_least=1e-9)
    candidates = results_candidates(results)
    current_weights = all_weights(weights)

    def scores_at(weights: dict[str, float]) -> np.ndarray:
        return candidates.scores(spec.name, completeness=completeness, **weights).mean(axis=1)

    xs = np.geomspace(low, high, 241)
    curves = np.empty((len(candidates), len(xs)))
    for i, value in enumerate(xs):
        curves[:, i] = scores_at(current_weights | {weight: float(value)})
    sign = spec.sign
    current_scores = sign * scores_at(current_weights)
    leads = np.bincount((sign * curves).argmax(axis=0), minlength=len(candidates))
    labeled = np.lexsort([-current_scores, -leads])[:top]
    ax = axes_or_new(ax, (7.5, 4.4))
    unnamed = np.setdiff1d(np.arange(len(candidates)), labeled)
    for index in unnamed:
        ax.plot(
            xs,
            curves[index],
            color="0.8",
            lw=0.7,
            zorder=1,
            label="others" if index == unnamed[0] else "_nolegend_",
        )
    for i, (index, color) in enumerate(zip(labeled, colors_of(len(labeled)), strict=True)):
        share = leads[index] / len(xs)
        text = f"{index}: {_label_of(candidates[int(index)])}" + (
            f" (leads {share:.0%})" if share else ""
        )
        ax.plot(xs, curves[index], color=color, ls=LINE_STYLES[i % 4], lw=1.8, label=text, zorder=3)
    ax.axvline(current_weights[weight], color="black", lw=0.8, ls=":", zorder=2, label="weight now")
    ax.set_xscale("log")
    if spec.prediction == "loss" and curves.min() > 0:
        ax.set_yscale("log")
    ax.set_xlim(low, high)
    log_ticks(ax.xaxis)
    ax.set_xlabel(_axis_of_weight(weight))
    ax.set_ylabel(f"{spec.label} ({'greater' if sign > 0 else 'smaller'} is better)")
    weight_texts = weights_shown(spec, current_weights, without=weight)
    ax.set_title(", ".join([f"{spec.label} along {varied.symbol or weight}", *weight_texts]))
    if legend:
        legend_beside(ax, "candidate: extractor, size")
    return ax


def _measured(results: Any, x: str, y: str, completeness: str) -> Candidates:
    """Return candidates with their means as the only fold, even for incomplete benchmarks."""
    if not isinstance(results, pd.DataFrame):
        return results_candidates(results)
    one_task_only(finished(results))
    costs = {name for name, quantity in measured_quantities().items() if quantity.is_cost}
    needed = {x, y} & costs & set(results)
    if needed:
        raise ValueError(
            f"{sorted(needed)} cannot be drawn from a data frame: pass the search or its "
            "candidates_."
        )
    table = results_table(results)
    names = {
        "incompleteness": f"completeness_{completeness}",
        "incompleteness_instances": "completeness_instances",
    }
    missing_columns = [names.get(n, n) for n in (x, y) if names.get(n, n) not in table]
    if missing_columns:
        raise ValueError(
            f"results lacks the columns {missing_columns}, got {list(results.columns)}."
        )
    blank = dict.fromkeys(MEASURES, float("nan"))
    return Candidates(
        Candidate.from_measures(
            str(r["extractor"]), {}, i, (blank | {k: r[k] for k in blank if k in r},)
        )
        for i, r in enumerate(table.to_dict("records"))
    )


def _values(candidates: Candidates, name: str, completeness: str) -> np.ndarray:
    if name == "incompleteness":
        return 1.0 - candidates.means(f"completeness_{completeness}")
    if name == "incompleteness_instances":
        return 1.0 - candidates.means("completeness_instances")
    return candidates.means(name)


def _scored(
    ax: Any, table: Any, xs: np.ndarray, ys: np.ndarray, scores: np.ndarray, color: str
) -> Any:
    groups = groups_of(table)
    names = list(dict.fromkeys(groups.tolist()))
    finite_scores = scores[np.isfinite(scores)]
    ends = (
        (float(finite_scores.min()), float(finite_scores.max()))
        if len(finite_scores)
        else (0.0, 1.0)
    )
    points = None
    for name, marker in zip(names, markers_of(len(names)), strict=True):
        in_group = groups == name
        points = ax.scatter(
            xs[in_group],
            ys[in_group],
            c=scores[in_group],
            marker=marker,
            s=40,
            edgecolors="black",
            linewidths=0.5,
            cmap=SEQUENTIAL + ("" if SCORE_SPECS[color].sign > 0 else "_r"),
            vmin=ends[0],
            vmax=ends[1],
            label=shorten(name, 40),
            zorder=4,
            plotnonfinite=True,
        )
    return points


def _label_of(candidate: Candidate) -> str:
    return candidate_label(candidate.extractor, candidate.mean("n_rules"))


def _axis_of_weight(weight: str) -> str:
    spec = next(spec for spec in SCORE_SPECS.values() if weight in spec.weight_names)
    varied = next(
        candidate_weight for candidate_weight in spec.weights if candidate_weight.name == weight
    )
    return f"{varied.symbol or weight}: {varied.text}"
