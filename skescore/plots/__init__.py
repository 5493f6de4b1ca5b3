"""Plots of scores, trade-offs and rules with matplotlib (the extra ``plots``).

Functions draw on ``ax`` or create a new figure, and return the axes; ``ax.figure.savefig("a.svg")``
saves the plot. If matplotlib is missing, they raise an ImportError with the installation command.
New figures have space for a legend beside the axes; for your own axes, use
``plt.subplots(layout="constrained")``. Other plots can use the same colors, markers and legends:
`COLORS`, `MARKERS`, :func:`colors_of`, :func:`pale`, :func:`contrast`, :func:`legend_beside`.
"""

from skescore.plots._bars import score_bars
from skescore.plots._boundaries import decision_boundaries, decision_boundary
from skescore.plots._displays import (
    CorridorDisplay,
    DecisionBoundaryDisplay,
    ParetoDisplay,
    RulesDisplay,
    ScoreBarsDisplay,
    plot_search,
)
from skescore.plots._formulas import (
    fire_curves,
    fire_isolines,
    fire_surface,
    ice_part_curves,
    ice_part_surface,
    ice_surface,
)
from skescore.plots._rules import group_heatmap, overlap_matrix, parallel_rules, rule_boxes
from skescore.plots._style import COLORS, MARKERS, colors_of, contrast, legend_beside, pale
from skescore.plots._trade_off import pareto_plot, proven_corridor, score_sensitivity, winner_map

__all__ = [
    "COLORS",
    "MARKERS",
    "CorridorDisplay",
    "DecisionBoundaryDisplay",
    "ParetoDisplay",
    "RulesDisplay",
    "ScoreBarsDisplay",
    "colors_of",
    "contrast",
    "decision_boundaries",
    "decision_boundary",
    "fire_curves",
    "fire_isolines",
    "fire_surface",
    "group_heatmap",
    "ice_part_curves",
    "ice_part_surface",
    "ice_surface",
    "legend_beside",
    "overlap_matrix",
    "pale",
    "parallel_rules",
    "pareto_plot",
    "plot_search",
    "proven_corridor",
    "rule_boxes",
    "score_bars",
    "score_sensitivity",
    "winner_map",
]
