"""Pictures of scores, trade-offs and rules, by matplotlib (the extra ``plots``).

Every function draws on the ``ax`` that it is given, or on a new figure, and returns it;
``ax.figure.savefig("name.svg")`` saves. New figures make room for the legend beside the axes; for
axes of your own do as they do with ``plt.subplots(layout="constrained")``.
"""

from skescore.plots._boundaries import decision_boundaries, decision_boundary
from skescore.plots._boxes import rule_boxes
from skescore.plots._curves import fire_curves, ice_part_curves
from skescore.plots._isolines import fire_isolines
from skescore.plots._rules import overlap_matrix, parallel_rules
from skescore.plots._scores import score_bars
from skescore.plots._surfaces import fire_surface, ice_part_surface, ice_surface
from skescore.plots._trade_off import pareto_plot, score_sensitivity, winner_map

__all__ = [
    "decision_boundaries",
    "decision_boundary",
    "fire_curves",
    "fire_isolines",
    "fire_surface",
    "ice_part_curves",
    "ice_part_surface",
    "ice_surface",
    "overlap_matrix",
    "parallel_rules",
    "pareto_plot",
    "rule_boxes",
    "score_bars",
    "score_sensitivity",
    "winner_map",
]
