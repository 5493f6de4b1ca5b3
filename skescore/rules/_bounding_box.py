"""The domain of rules that came without one, from rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._validation import label_order, python_value
from skescore.rules._columns import Table
from skescore.rules._conditions import AtLeast, Condition, OneOf
from skescore.rules._domain import Domain

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


def domain_around(ruleset: RuleSet, X: Any) -> Domain:
    """Give the box around rows in which rules may be measured.

    Use it for rules of other libraries, which do not remember their training rows:
    ``rules.replace(domain=domain_around(rules, X))``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.rules import OneOf, Rule, RuleSet
    >>> rules = RuleSet([Rule([OneOf(1, ["red"])], "a")], ["size", "colour"], task="classification")
    >>> X = pd.DataFrame({"size": [1.0, 3.0], "colour": ["red", "blue"]})
    >>> domain_around(rules, X).categories
    ((1, ('blue', 'red')),)
    """
    table = Table(X, ruleset.feature_names)
    if len(table) == 0:
        raise ValueError("X must hold at least one row to find a domain, got 0 rows.")
    listed, compared = _uses(c for rule in ruleset.rules for c in rule.conditions)
    ends = np.zeros((2, ruleset.n_features))
    categories = {}
    for j in range(ruleset.n_features):
        column = table.column(j)
        if j not in compared and (column.dtype.kind in "OUST" or j in listed):
            values = {python_value(v) for v in column.tolist() if v is not None and v == v}
            if values:
                categories[j] = tuple(sorted(values, key=label_order))
            continue
        numbers = table.numbers(j, slice(None))
        numbers = numbers[np.isfinite(numbers)]
        if len(numbers):
            ends[:, j] = numbers.min(), numbers.max()
    return Domain.around(ends, categories=categories)


def _uses(conditions: Iterable[Condition]) -> tuple[set[int], set[int]]:
    """The features whose values are listed, and those that are compared with numbers."""
    listed: set[int] = set()
    compared: set[int] = set()
    for condition in conditions:
        if isinstance(condition, AtLeast):
            inner_listed, inner_compared = _uses(condition.conditions)
            listed |= inner_listed
            compared |= inner_compared
        elif isinstance(condition, OneOf):
            listed.add(condition.feature)
        else:
            compared.update(condition.features)
    return listed, compared
