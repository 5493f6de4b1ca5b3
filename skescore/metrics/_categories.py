"""Conditions on categorical features as intervals, so that they have a volume.

The values that a domain knows of a categorical feature stand in a line, one unit of length each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore.rules._conditions import OneOf
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet

Floats = NDArray[np.float64]

#: A rule that falls into more boxes than this is left to sampling.
_MOST_PARTS = 1024


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes that stand for rules.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_boxes, n_features)
        Bounds, in units of length along categorical features.
    pure : ndarray of bool, shape (n_boxes,)
        Whether the box says all that the rule asks for; otherwise the rule holds in a part of it.
    """

    lower: Floats
    upper: Floats
    pure: NDArray[np.bool_]


def category_boxes(ruleset: RuleSet) -> Boxes:
    """Give one or more boxes for every rule; none where no known category satisfies it.

    Parameters
    ----------
    ruleset : RuleSet
        Rules with a domain.

    Returns
    -------
    Boxes
        Disjoint ones for each rule.
    """
    lower, upper = ruleset.boxes.lower, ruleset.boxes.upper
    if ruleset.boxes_only:
        return Boxes(lower, upper, np.ones(len(lower), dtype=bool))
    parts: list[tuple[Floats, Floats, bool]] = []
    for rule, low, high in zip(ruleset.rules, lower, upper, strict=True):
        runs, pure = _runs(rule, ruleset)
        if np.prod([len(r) for r in runs.values()], initial=1.0) > _MOST_PARTS:
            runs, pure = {}, False
        for chosen in product(*runs.values()):
            part_low, part_high = low.copy(), high.copy()
            for feature, (first, last) in zip(runs, chosen, strict=True):
                part_low[feature], part_high[feature] = first, last
            parts.append((part_low, part_high, pure))
    if not parts:
        return Boxes(lower[:0], upper[:0], np.empty(0, dtype=bool))
    lows, highs, flags = zip(*parts, strict=True)
    return Boxes(np.array(lows), np.array(highs), np.array(flags))


def _runs(rule: Rule, ruleset: RuleSet) -> tuple[dict[int, list[tuple[int, int]]], bool]:
    """Stretches of known values that a rule allows, per feature, and whether that says it all."""
    assert ruleset.domain is not None
    allowed: dict[int, np.ndarray] = {}
    pure = True
    for condition in rule.others:
        values = ruleset.domain.values_of(condition.features[0])
        if not isinstance(condition, OneOf) or values is None:
            pure = False
            continue
        column = pd.Series(list(values), dtype=object).to_numpy()
        held = condition.holds(lambda _: column)  # noqa: B023
        feature = condition.feature
        allowed[feature] = allowed.get(feature, np.ones(len(values), dtype=bool)) & held
    runs = {}
    for feature, held in allowed.items():
        edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(np.int8), [0]])))
        runs[feature] = [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
    return runs, pure


def category_frame(ruleset: RuleSet) -> Callable[[Floats], Any]:
    """Give what turns points of the domain into rows with the names of categories."""
    assert ruleset.domain is not None
    categories = ruleset.domain.categories
    if not categories:
        return lambda points: points

    def named(points: Floats) -> pd.DataFrame:
        frame = pd.DataFrame(points, columns=list(ruleset.feature_names))
        for feature, values in categories:
            code = np.minimum(points[:, feature].astype(np.intp), len(values) - 1)
            labels = pd.Series(list(values), dtype=object).to_numpy()
            frame[ruleset.feature_names[feature]] = labels[code]
        return frame

    return named
