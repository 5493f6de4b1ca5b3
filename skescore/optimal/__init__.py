"""Optimal rules: the fewest errors that any rules of a stated kind can have, proven.

A :class:`Frontier` holds, for every number of rules, a proven lower bound of the loss, the least
loss found, and rules that have it. An :class:`F1Bound` holds what weighted F1 trees can have at
most. Both speak of the rows they were made on, never of new ones.
"""

from skescore.optimal._cuts import Cuts, Tests, candidate_cuts
from skescore.optimal._f1_trees import F1Bound, most_f1_of_trees
from skescore.optimal._frontier import Frontier
from skescore.optimal._lists import optimal_lists
from skescore.optimal._trees import optimal_trees

__all__ = [
    "Cuts",
    "F1Bound",
    "Frontier",
    "Tests",
    "candidate_cuts",
    "most_f1_of_trees",
    "optimal_lists",
    "optimal_trees",
]
