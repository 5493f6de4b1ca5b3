"""Tree ensembles as sums: one leaf of every tree adds its values to the scores of a row.

Leaves come from the readers of :func:`skescore.rules.as_ruleset`, which describe them exactly, with
thresholds rounded to float32, missing values and categories as the model treats them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skescore._validation import python_value
from skescore.black_boxes import CategoricalColumns, LabelCodingClassifier
from skescore.rules import LinearOutput, OneOf, RuleSet, as_ruleset
from skescore.rules.importers import affine_map, in_user_units, options_from_rows
from skescore.verification._grid import CellBoxes, CellGrid, UnreadableModelError

#: Relative rounding error of sums: of float64 numbers, and of float32 numbers per summand.
_DOUBLE_ERROR, _SINGLE_ERROR = 1e-10, 2.0**-23


@dataclass(frozen=True, eq=False)
class ReadModel:
    """Rules that represent a model, and the columns that their features read.

    Parameters
    ----------
    ruleset : RuleSet
        Rules with the predictions of the model.
    columns : list of int
        Column of the verified rows for each feature of the rules.
    adds_single : bool
        Whether the model sums the values of its leaves in single precision.
    """

    ruleset: RuleSet
    columns: list[int]
    adds_single: bool


def read_model(model: Any, X: Any, names: Sequence[str]) -> ReadModel:
    """Read a tree model as rules.

    Parameters
    ----------
    model : estimator
        A fitted model, or a Pipeline or wrapper of one.
    X : DataFrame or ndarray
        Rows in the container that the model accepts.
    names : sequence of str
        Names of the columns of X.

    Returns
    -------
    ReadModel
        Rules of the model.

    Raises
    ------
    UnreadableModelError
        If the model is not supported.
    """
    from skescore.verification._rows import column_positions

    try:
        ruleset = _read_rules(model, X)
        columns = column_positions(ruleset.feature_names, names)
    except (TypeError, ValueError, AttributeError) as error:
        raise UnreadableModelError(f"The model cannot be read as trees: {error}") from error
    inner_module = type(_innermost(model)).__module__.partition(".")[0]
    return ReadModel(ruleset, columns, inner_module in ("xgboost", "catboost"))


def _innermost(model: Any) -> Any:
    """Return the model inside wrappers."""
    while True:
        if isinstance(model, Pipeline):
            model = model[-1]
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, LabelCodingClassifier):
            model = model.estimator_
        else:
            return model


def _read_rules(model: Any, X: Any) -> RuleSet:
    """Return rules that predict like the model, on the features of the caller."""
    if isinstance(model, FrozenEstimator):
        return _read_rules(model.estimator, X)
    if hasattr(model, "best_estimator_"):
        return _read_rules(model.best_estimator_, X)
    if isinstance(model, LabelCodingClassifier):
        return _with_labels(_read_rules(model.estimator_, X), model.classes_)
    if isinstance(model, Pipeline) and len(model) > 1:
        first, remaining_steps = model[0], model[1:]
        if first is None or first == "passthrough":
            return _read_rules(remaining_steps, X)
        rules = _read_rules(remaining_steps, first.transform(X))
        if isinstance(first, CategoricalColumns):
            return _with_missing_text(rules) if first.as_text else rules
        mapping = affine_map(first)
        # Without the transformer, bounds would be converted up to rounding only.
        return in_user_units(rules, mapping, partial(mapping.transform_numbers, first))
    if isinstance(model, Pipeline) and len(model) == 1:
        return _read_rules(model[-1], X)
    return as_ruleset(model, **options_from_rows(model, X))


def _with_labels(ruleset: RuleSet, labels: np.ndarray) -> RuleSet:
    """Replace codes of classes by labels."""
    label_of = {code: python_value(label) for code, label in enumerate(labels)}
    rules = [replace(rule, output=label_of[int(str(rule.output))]) for rule in ruleset.rules]
    classes = [label_of[int(str(code))] for code in ruleset.classes or ()]
    return ruleset.replace(rules=rules, classes=classes)


def _with_missing_text(ruleset: RuleSet) -> RuleSet:
    """Replace the string that represents a missing category by the missing value."""
    rules = []
    for rule in ruleset.rules:
        conditions = [
            replace(condition, missing=("missing" in condition.values) != condition.negated)
            if isinstance(condition, OneOf)
            else condition
            for condition in rule.conditions
        ]
        rules.append(replace(rule, conditions=tuple(conditions)))
    return ruleset.replace(rules=rules)


@dataclass(frozen=True, eq=False)
class LeafEnsemble:
    """Leaves of all trees as boxes of cells, with the values that they add.

    Parameters
    ----------
    boxes : CellBoxes
        The leaves, tree by tree.
    values : ndarray of shape (n_leaves, n_outputs)
        Values that a leaf adds to the score of each class, or to the predicted number.
    tree_starts : ndarray of int
        Index of the first leaf of each tree.
    may_skip : ndarray of bool, shape (n_trees,)
        Trees in which some rows reach no leaf, because leaves that add 0 are omitted.
    classes : tuple or None
        Labels of the outputs; None in regression.
    link : {"probabilities", "logistic", "votes", "sum"}
        Kind of the scores.
    rounding : float
        Largest rounding error of a score.
    """

    boxes: CellBoxes
    values: np.ndarray
    tree_starts: np.ndarray
    may_skip: np.ndarray
    classes: tuple[Any, ...] | None
    link: str
    rounding: float

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.tree_starts)


def leaf_ensemble(model: ReadModel, grid: CellGrid) -> LeafEnsemble:
    """Convert the rules of a model to leaves of trees.

    Parameters
    ----------
    model : ReadModel
        The rules.
    grid : CellGrid
        Cells with the cuts of the rules.

    Returns
    -------
    LeafEnsemble
        Leaves of trees whose sums are the scores of the model.

    Raises
    ------
    UnreadableModelError
        If the rules are not additive.
    """
    ruleset = model.ruleset
    if ruleset.voting is None:
        ruleset = _as_votes(ruleset)
    if any(isinstance(rule.weight, LinearOutput) for rule in ruleset.rules) or any(
        isinstance(rule.output, LinearOutput) for rule in ruleset.rules
    ):
        raise UnreadableModelError("The model has linear functions in its leaves.")
    boxes = grid.boxes_of_rules(ruleset.rules, model.columns)
    used = np.flatnonzero(~grid.are_empty(boxes))
    boxes = boxes.take(used)
    values = _leaf_values(ruleset)[used]
    starts = _tree_starts(boxes, grid)
    counts = grid.count_cells(boxes)
    n_cells = grid.count_cells(grid.whole_space())[0]
    ends = np.append(starts[1:], len(boxes))
    may_skip = np.array(
        [sum(counts[a:b]) != n_cells for a, b in zip(starts.tolist(), ends.tolist(), strict=True)],
        dtype=bool,
    )
    link = str(ruleset.voting)
    if link == "mean":
        if may_skip.any():
            raise UnreadableModelError("The model averages rules that do not cover all rows.")
        link = "sum"
    largest = np.maximum.reduceat(np.abs(values).max(axis=1), starts).sum() if len(starts) else 0.0
    error = _SINGLE_ERROR * (len(starts) + 8) if model.adds_single else _DOUBLE_ERROR
    return LeafEnsemble(
        boxes, values, starts, may_skip, ruleset.classes, link, float(error * largest)
    )


def _as_votes(ruleset: RuleSet) -> RuleSet:
    """Return a single tree as an ensemble of one."""
    if ruleset.ordered or not ruleset.disjoint:
        raise UnreadableModelError("The model is a list of rules that overlap.")
    if ruleset.task == "regression":
        return ruleset.replace(ordered=False, voting="sum", fallback=None)
    return ruleset.replace(ordered=False, voting="probabilities", fallback=None)


def _leaf_values(ruleset: RuleSet) -> np.ndarray:
    """Return the values that each rule adds, shape (n_rules, n_outputs)."""
    weights = np.asarray(ruleset.weights, dtype=float)
    if ruleset.classes is None:
        outputs = np.array([rule.output for rule in ruleset.rules], dtype=float)
        if ruleset.voting == "mean":
            return (outputs * weights / _number_of_votes(ruleset, weights))[:, None]
        return (outputs * weights)[:, None]
    n_classes = len(ruleset.classes)
    if ruleset.voting == "probabilities":
        shares = ruleset.conclusions.class_probabilities(n_classes)
        return np.asarray(weights[:, None] * shares)
    values = np.zeros((len(ruleset), n_classes))
    outputs = ruleset.conclusions.outputs.astype(np.intp)
    values[np.arange(len(ruleset)), outputs] = weights
    return values


def _number_of_votes(ruleset: RuleSet, weights: np.ndarray) -> float:
    """Return the number of rules with equal weight that cover each row."""
    if (weights != weights[0]).any():
        raise UnreadableModelError("The model averages rules of different weights.")
    # Every row reaches one leaf per tree, so one row determines the number of trees.
    return float(ruleset.match(np.zeros((1, ruleset.n_features))).sum() * weights[0])


def _tree_starts(boxes: CellBoxes, grid: CellGrid) -> np.ndarray:
    """Divide consecutive leaves into groups in which at most one leaf contains any row."""
    starts = [0] if len(boxes) else []
    numbers = np.flatnonzero(~grid.is_category)
    low, high, missing = (
        np.ascontiguousarray(part[:, numbers]) for part in (boxes.low, boxes.high, boxes.missing)
    )
    for i in range(1, len(boxes)):
        group = slice(starts[-1], i)
        overlap = ((low[group] < high[i]) & (high[group] > low[i])) | (missing[group] & missing[i])
        meets = overlap.all(axis=1)
        if meets.any():
            for position in grid.word_slices.values():
                shared_words = boxes.words[group, position] & boxes.words[i, position]
                meets &= shared_words.any(axis=1)
        if meets.any():
            starts.append(i)
    return np.array(starts, dtype=np.intp)
