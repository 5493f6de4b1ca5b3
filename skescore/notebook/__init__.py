"""Widgets for notebooks: choose, try and edit rules in a cell, and continue in Python.

The objects of other packages (searches, rules, certificates and verifications) show themselves in
notebooks without this package.
"""

from skescore.notebook._widget import RulesWidget

__all__ = ["RulesWidget"]
