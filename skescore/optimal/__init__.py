"""Optimal rules: the fewest errors that any rules of a stated kind can have, proven.

A :class:`Frontier` holds, for every number of rules, a proven lower bound of the loss, the least
loss found, and rules that have it. It speaks of the rows it was made on, never of new ones.
"""

from skescore.optimal._cuts import Cuts, Tests, candidate_cuts
from skescore.optimal._frontier import Frontier
from skescore.optimal._lists import optimal_lists
from skescore.optimal._trees import optimal_trees

__all__ = ["Cuts", "Frontier", "Tests", "candidate_cuts", "optimal_lists", "optimal_trees"]
