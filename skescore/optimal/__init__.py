"""Optimal rules: trees and lists with the least loss in a stated space of rules, with a proof.

A :class:`Frontier` holds, for every number of rules, a proven lower bound of the loss, the least
loss found, and rules that have it. An :class:`F1Bound` holds a proven upper bound of the weighted
F1 of trees. Both hold for the rows they were computed on, never for new ones.
"""

from skescore.optimal._cuts import Cuts, Tests, candidate_cuts
from skescore.optimal._f1_trees import F1Bound, bound_f1_of_trees
from skescore.optimal._frontier import KINDS, Frontier
from skescore.optimal._lists import optimal_lists
from skescore.optimal._problem import SearchSpace, SolverLimits, losses_of_partitions
from skescore.optimal._trees import grow_trees, optimal_trees

#: Search for the rules of each kind; all of them have the same signature.
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
