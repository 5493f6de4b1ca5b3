"""Plots of a search by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skescore._validation import check_choice
from skescore.plots._bars import score_bars
from skescore.plots._rules import parallel_rules
from skescore.plots._trade_off import pareto_plot, score_sensitivity, winner_map

__all__ = ["plot_search"]

_PLOTS: dict[str, Callable[..., Any]] = {
    "trade_off": pareto_plot,
    "scores": score_bars,
    "winners": winner_map,
    "sensitivity": score_sensitivity,
    "rules": parallel_rules,
}


def plot_search(search: Any, kind: str = "trade_off", *, ax: Any = None, **options: Any) -> Any:
    """Draw one of the plots of a fitted search.

    Parameters
    ----------
    search : fitted search
        The search.
    kind : {"trade_off", "scores", "winners", "sensitivity", "rules"}, default="trade_off"
        The plot, drawn by :func:`pareto_plot`, :func:`score_bars`, :func:`winner_map`,
        :func:`score_sensitivity` or :func:`parallel_rules`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.
    **options
        Options of that function.

    Returns
    -------
    matplotlib.axes.Axes
        The axes with the plot.

    Raises
    ------
    ValueError
        If there is no such kind.

    Examples
    --------
    >>> from skescore.plots import plot_search
    >>> ax = plot_search(search, "winners")  # doctest: +SKIP
    """
    check_choice("kind", kind, _PLOTS)
    return _PLOTS[kind](search, ax=ax, **options)
