"""Widgets for notebooks: select, try and edit rules in a cell, and continue in Python.

Objects of other packages (searches, rules, certificates and verifications) have notebook views of
their own, without this package.
"""

from skescore.notebook._widget import RulesWidget

__all__ = ["RulesWidget"]
