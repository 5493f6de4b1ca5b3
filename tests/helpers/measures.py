"""Results of folds for tests, with a value of every quantity that searches measure of rules."""

from __future__ import annotations

from typing import Any

from skescore.scorers import measured_quantities

#: Quantities of rules that every fold has; the costs of extraction may be absent.
RULE_QUANTITIES = tuple(measured_quantities(costs=False))


def fold_measures(performance: float = 0.9, size: float = 3, **values: Any) -> dict[str, Any]:
    """Return the measures of one fold: losses are 1 - performance, counts are the size."""
    fold: dict[str, Any] = {}
    for quantity in measured_quantities(costs=False).values():
        if quantity.is_count:
            fold[quantity.name] = size
        else:
            fold[quantity.name] = 1.0 if quantity.greater_is_better else 1 - performance
    return fold | {"performance": performance} | values
