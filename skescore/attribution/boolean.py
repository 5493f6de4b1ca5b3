"""Boolean formulae: models whose every answer can be explained exactly.

A :class:`Formula` is built from :func:`variable` with ``& | ^ ~``, read from text or drawn at
random, and answers rows of zeros and ones, or of zeros, ones and Unassigned.
"""

from __future__ import annotations

from skescore.attribution._bits import all_assignments
from skescore.attribution._boolean_data import FormulaClassifier, make_boolean_dataset
from skescore.attribution._formula import Formula, variable
from skescore.attribution._generation import chain_formula, paper_formula, random_formula

__all__ = [
    "Formula",
    "FormulaClassifier",
    "all_assignments",
    "chain_formula",
    "make_boolean_dataset",
    "paper_formula",
    "random_formula",
    "variable",
]
