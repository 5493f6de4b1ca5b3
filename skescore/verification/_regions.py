"""Regions of rules: boxes of cells in which a rule, and no earlier one, predicts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skescore.rules import AtLeast, Condition, Rule
from skescore.verification._grid import CellBoxes, CellGrid, UnreadableModelError

#: Maximum number of boxes of a region.
_MAX_BOXES = 5000


def subtract_box(grid: CellGrid, boxes: CellBoxes, other: CellBoxes) -> CellBoxes:
    """Return disjoint boxes with all cells of `boxes` that are not in another box.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    boxes : CellBoxes
        Disjoint boxes.
    other : CellBoxes
        One box.

    Returns
    -------
    CellBoxes
        The remaining cells.
    """
    remaining = boxes.copy()
    parts = []
    for j in range(grid.n_features):
        for outside in _outside(grid, j, remaining, other):
            parts.append(outside.take(~grid.are_empty(outside)))
        remaining = _inside(grid, j, remaining, other)
    result = CellBoxes.concatenate(parts)
    if len(result) > _MAX_BOXES:
        raise UnreadableModelError(
            f"The region of a rule without earlier rules has more than {_MAX_BOXES} boxes."
        )
    return result


def _inside(grid: CellGrid, j: int, boxes: CellBoxes, other: CellBoxes) -> CellBoxes:
    """Intersect boxes with another box in column `j`."""
    result = boxes.copy()
    if grid.is_category[j]:
        result.words[:, grid.word_slices[j]] &= other.words[0, grid.word_slices[j]]
        return result
    result.low[:, j] = np.maximum(result.low[:, j], other.low[0, j])
    result.high[:, j] = np.maximum(
        np.minimum(result.high[:, j], other.high[0, j]), result.low[:, j]
    )
    result.missing[:, j] &= other.missing[0, j]
    return result


def _outside(grid: CellGrid, j: int, boxes: CellBoxes, other: CellBoxes) -> list[CellBoxes]:
    """Return the parts of boxes that are outside another box in column `j`."""
    if grid.is_category[j]:
        result = boxes.copy()
        result.words[:, grid.word_slices[j]] &= ~other.words[0, grid.word_slices[j]]
        return [result]
    below, above, missing = boxes.copy(), boxes.copy(), boxes.copy()
    is_empty = other.low[0, j] >= other.high[0, j]
    cut = boxes.high[:, j] if is_empty else other.low[0, j]
    below.high[:, j] = np.maximum(np.minimum(below.high[:, j], cut), below.low[:, j])
    above.low[:, j] = (
        above.high[:, j] if is_empty else np.maximum(above.low[:, j], other.high[0, j])
    )
    above.low[:, j] = np.minimum(above.low[:, j], above.high[:, j])
    below.missing[:, j] = above.missing[:, j] = False
    missing.high[:, j] = missing.low[:, j]
    missing.missing[:, j] &= not other.missing[0, j]
    return [below, above, missing]


@dataclass(frozen=True, eq=False)
class RuleRegion:
    """Cells in which a rule predicts.

    Parameters
    ----------
    premise : CellBoxes
        One box that contains the premise of the rule.
    boxes : CellBoxes
        Disjoint boxes: the premise without the cells of earlier rules.
    """

    premise: CellBoxes
    boxes: CellBoxes


def flat_conditions(conditions: Iterable[Condition]) -> list[Condition]:
    """Return the conditions, with M-of-N conditions replaced by the conditions they count."""
    result: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, AtLeast):
            result += flat_conditions(condition.conditions)
        else:
            result.append(condition)
    return result


def premise_boxes(grid: CellGrid, rule: Rule, columns: Sequence[int]) -> RuleRegion:
    """Convert the premise of a rule to boxes, several for M-of-N conditions.

    Parameters
    ----------
    grid : CellGrid
        The cells, with the cuts of the rule.
    rule : Rule
        The rule.
    columns : sequence of int
        Column of each feature of the rules.

    Returns
    -------
    RuleRegion
        The premise as disjoint boxes, and one box around them.

    Raises
    ------
    UnreadableModelError
        If a condition is oblique, or an M-of-N condition has too many combinations.
    """
    simple = [c for c in rule.conditions if not isinstance(c, AtLeast)]
    m_of_n_conditions = [c for c in rule.conditions if isinstance(c, AtLeast)]
    if math.prod(math.comb(len(c.conditions), c.m) for c in m_of_n_conditions) > _MAX_BOXES:
        raise UnreadableModelError(f"The rule `{rule}` has more than {_MAX_BOXES} combinations.")
    choices = [itertools.combinations(c.conditions, c.m) for c in m_of_n_conditions]
    premise = _conjunction(grid, simple, columns)
    boxes = premise.take(slice(0, 0))
    for combination in itertools.product(*choices):
        conditions = [*simple, *itertools.chain.from_iterable(combination)]
        part = _conjunction(grid, conditions, columns)
        part = part.take(~grid.are_empty(part))
        for i in range(len(boxes)):
            part = subtract_box(grid, part, boxes.take([i])) if len(part) else part
        boxes = CellBoxes.concatenate([boxes, part])
    return RuleRegion(premise, boxes)


def _conjunction(
    grid: CellGrid, conditions: Sequence[Condition], columns: Sequence[int]
) -> CellBoxes:
    """Return the box of conditions that hold together."""
    box = grid.whole_space().copy()
    for condition in conditions:
        grid.restrict(box, 0, columns, condition)
    return box


def rule_regions(
    grid: CellGrid, premises: Sequence[RuleRegion], with_uncovered: bool
) -> list[RuleRegion]:
    """Return the cells in which each rule predicts.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    premises : sequence of RuleRegion
        Premises of the rules in the order of their priority.
    with_uncovered : bool
        Whether to append the uncovered cells.

    Returns
    -------
    list of RuleRegion
        One region per rule, and one for the uncovered cells if requested.
    """
    space = grid.whole_space()
    wanted_regions = [*premises, *([RuleRegion(space, space)] if with_uncovered else [])]
    regions = []
    for i, region in enumerate(wanted_regions):
        boxes = region.boxes
        for earlier in premises[:i]:
            for k in range(len(earlier.boxes)):
                boxes = subtract_box(grid, boxes, earlier.boxes.take([k])) if len(boxes) else boxes
        regions.append(RuleRegion(region.premise, boxes))
    return regions
