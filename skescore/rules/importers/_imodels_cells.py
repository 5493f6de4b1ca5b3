"""imodels' boosted regression: the weighted median of trees, which no sum can say.

The answer is constant wherever a row reaches the same leaf of every tree. So the space is cut into
these boxes, the model is asked once in each, and touching boxes of one answer are joined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import Interval
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._imodels_parts import Frame, conjunction, reachable_leaves

#: More boxes than these would be no rules to read.
_MAX_CELLS = 5000


def boosted_regressor(model: Any, about: Frame) -> RuleSet:
    """Read boosted regression trees, box by box."""
    check_is_fitted(model, "estimators_")
    cells: list[tuple[Interval, ...]] = [()]
    for inner in model.estimators_:
        if not hasattr(inner, "tree_"):
            raise TypeError(
                f"{type(model).__name__} boosts {type(inner).__name__}, which skescore cannot "
                "read; it reads boosted decision trees."
            )
        leaves = [conditions for _, conditions in reachable_leaves(inner.tree_)]
        parts = (conjunction((*cell, *leaf)) for cell in cells for leaf in leaves)
        cells = [part for part in parts if part is not None]
        if len(cells) > _MAX_CELLS:
            raise ValueError(
                f"The model answers the weighted median of {len(model.estimators_)} trees, which "
                f"cut the space into more than {_MAX_CELLS} boxes. Fit it with fewer or smaller "
                "trees (n_estimators, estimator=DecisionTreeRegressor(max_depth=1))."
            )
    rows = np.array([_row(cell, len(about.feature_names)) for cell in cells])
    names = getattr(model, "feature_names_in_", None)
    answers = model.predict(rows if names is None else pd.DataFrame(rows, columns=names))
    rules = [Rule(cell, float(answer)) for cell, answer in zip(cells, answers, strict=True)]
    return about.ruleset(rules, None, ordered=False, disjoint=True).simplify()


def _row(cell: Iterable[Interval], n_features: int) -> list[float]:
    """Give a row inside the box: its upper bounds belong to it, its lower bounds do not."""
    row = [0.0] * n_features
    for side in cell:
        inside = side.upper if side.upper < math.inf else math.nextafter(side.lower, math.inf)
        row[side.feature] = inside
    return row
