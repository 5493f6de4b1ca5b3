"""Simplification of rules, without changed predictions or within a tolerance on given rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skescore._validation import check_number
from skescore.rules._row_table import RowTable
from skescore.rules.simplification._exact import simplify_exactly
from skescore.rules.simplification._merging import shorten_counts, without_covered_values
from skescore.rules.simplification._on_rows import RuleRows, Step, simplify_on_rows
from skescore.rules.simplification._standalone import standalone

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

__all__ = ["RuleRows", "Step", "shorten_counts", "simplify", "standalone", "without_covered_values"]


def simplify(ruleset: RuleSet, X: Any, tolerance: float) -> RuleSet:
    """Make rules fewer and shorter; see :meth:`RuleSet.simplify`."""
    remedy = "It is a share of the rows of X: 0.05 lets 5 % of the predictions change."
    tolerance = check_number("tolerance", tolerance, 0, below=1, remedy=remedy)
    if X is None:
        if tolerance > 0:
            raise ValueError(
                f"tolerance={tolerance!r} is a share of the rows of X: pass X, or "
                "tolerance=0 to change no prediction at all."
            )
        return simplify_exactly(ruleset, ruleset.domain)
    table = RowTable.of(X, ruleset.feature_names)
    if len(table) == 0:
        raise ValueError("X must hold at least one row to compare predictions on, got 0 rows.")
    return simplify_on_rows(ruleset, table, tolerance)
