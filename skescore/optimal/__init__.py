"""Optimal rules: trees and lists with the smallest loss in a stated space of rules, with a proof.

A :class:`Frontier` holds a proven lower bound on the loss, the smallest loss found, and rules with
this loss, for every number of rules. An :class:`F1Bound` holds a proven upper bound on the weighted
F1 of trees. Both apply only to the rows that they were computed on, not to new rows.
"""

from skescore.optimal._cuts import Cuts, Tests, candidate_cuts
from skescore.optimal._f1_trees import F1Bound, bound_f1_of_trees
from skescore.optimal._frontier import KINDS, Frontier
from skescore.optimal._lists import optimal_lists
from skescore.optimal._problem import SearchSpace, SolverLimits, losses_of_partitions
from skescore.optimal._trees import grow_trees, optimal_trees

#: Search for each kind of rules; all searches have the same signature.
SOLVERS = dict(zip(KINDS, (optimal_trees, optimal_lists), strict=True))

__all__ = [
    "KINDS",
    "SOLVERS",
    "Cuts",
    "F1Bound",
    "Frontier",
    "SearchSpace",
    "SolverLimits",
    "Tests",
    "bound_f1_of_trees",
    "candidate_cuts",
    "grow_trees",
    "losses_of_partitions",
    "optimal_lists",
    "optimal_trees",
]
