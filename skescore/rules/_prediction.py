"""Predictions of rule sets, by one rule per row or by all rules that hold (voting).

Sums over voting rules start with 0 and are computed in the order of the rules, so that all
implementations (this module, SQL, Prolog, Python) have the same rounding errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._text import listed, plural
from skescore.rules._boxes import nearest_box
from skescore.rules._conditions import Missing
from skescore.rules._domain import Fallback, label_array
from skescore.rules._matching import run_in_chunks
from skescore.rules._row_table import RowTable
from skescore.rules._rule import LinearOutput

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: Kinds of voting by task.
VOTINGS = {
    "classification": ("votes", "probabilities", "logistic"),
    "regression": ("mean", "sum"),
}
#: Number of pairs of rows and rules that are processed at a time.
_PAIRS = 1 << 22


def check_voting(voting: Any, task: str, *, ordered: bool) -> str | None:
    """Check that the kind of voting matches the task."""
    if voting is None:
        return None
    allowed = VOTINGS[task]
    if voting not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ValueError(f"voting must be None or, for {task}, one of {listed}, got {voting!r}.")
    if ordered:
        raise ValueError(
            f"voting={voting!r} lets all rules that hold predict together, but ordered=True lets "
            "only the first of them predict: pass ordered=False, or voting=None."
        )
    return str(voting)


def _pairs(ruleset: RuleSet, table: RowTable) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of rows, with all pairs of a row in the block and a rule that holds for the row.

    A block of rows is yielded once per block of rules; the rules of a row are in order.
    """
    blocks = ruleset.matcher.blocks
    size = max(1, _PAIRS // max(1, blocks[0][1].n_rules))
    for begin in range(0, len(table), size):
        rows = slice(begin, min(begin + size, len(table)))
        for first, block in blocks:
            row, rule = np.nonzero(block.match(table, rows))
            yield rows, row, rule + first


def _outputs_of_pairs(
    constants: np.ndarray,
    functions: dict[int, LinearOutput],
    table: RowTable,
    rows: slice,
    row: np.ndarray,
    rule: np.ndarray,
) -> np.ndarray:
    """Return the output of each pair's rule for its row."""
    result = constants[rule]
    for index, function in functions.items():
        pairs = np.flatnonzero(rule == index)
        if len(pairs):
            total = np.full(len(pairs), function.intercept)
            for feature, coefficient in function.terms:
                total += coefficient * table.numbers(feature, rows)[row[pairs]]
            result[pairs] = total
    return result


def _split_outputs(values: Any) -> tuple[np.ndarray, dict[int, LinearOutput]]:
    """Split values into an array of numbers and a mapping of linear functions."""
    functions = {i: value for i, value in enumerate(values) if isinstance(value, LinearOutput)}
    numbers = [np.nan if isinstance(value, LinearOutput) else value for value in values]
    return np.asarray(numbers, dtype=float), functions


def class_sums(ruleset: RuleSet, table: RowTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of weighted votes, shape (n_rows, n_classes), and a mask of covered rows."""
    n_classes = len(ruleset.classes or ())
    sums, covered = np.zeros((len(table), n_classes)), np.zeros(len(table), dtype=bool)
    constants, functions = _split_outputs(ruleset.weights)
    outputs = ruleset.conclusions.outputs.astype(np.intp)
    shares = (
        ruleset.conclusions.class_probabilities(n_classes)
        if ruleset.voting == "probabilities"
        else None
    )
    for rows, row, rule in _pairs(ruleset, table):
        covered[rows][row] = True
        weight = _outputs_of_pairs(constants, functions, table, rows, row, rule)
        weight[np.isnan(weight)] = 0.0  # weights that depend on a missing value count as 0
        # The pairs of a row are ordered by rule, and np.add.at adds in this order.
        if shares is None:
            np.add.at(sums[rows].reshape(-1), row * n_classes + outputs[rule], weight)
        else:
            for k in range(n_classes):
                voters = np.flatnonzero(shares[rule, k])  # avoids inf * 0
                np.add.at(sums[rows, k], row[voters], weight[voters] * shares[rule[voters], k])
    return sums, covered


def class_probabilities(voting: str, sums: np.ndarray) -> np.ndarray:
    """Convert sums to probabilities; if this is impossible, the largest sum gets 1."""
    winner = np.eye(sums.shape[1])[sums.argmax(axis=1)]
    with np.errstate(over="ignore", invalid="ignore"):
        total = sums.sum(axis=1, keepdims=True)
        top = sums.max(axis=1, keepdims=True)
        powers = np.exp(sums - top)
    if voting == "logistic":
        shares = powers / powers.sum(axis=1, keepdims=True)
        return np.asarray(np.where(np.isfinite(top), shares, winner))
    is_valid = (total > 0) & np.isfinite(total) & (sums >= 0).all(axis=1, keepdims=True)
    return np.where(is_valid, sums / np.where(is_valid, total, 1.0), winner)


def vote_numbers(ruleset: RuleSet, table: RowTable) -> tuple[np.ndarray, np.ndarray]:
    """Return predicted numbers (NaN without a prediction), and a mask of the predicted rows.

    A row has no prediction if no rule holds, or if the weights of a mean sum to 0 or less.
    """
    totals, total_weights = np.zeros(len(table)), np.zeros(len(table))
    predicted = np.zeros(len(table), dtype=bool)
    weights, _ = _split_outputs(ruleset.weights)
    conclusions = ruleset.conclusions
    linear = dict(conclusions.linear)
    for rows, row, rule in _pairs(ruleset, table):
        outputs = _outputs_of_pairs(conclusions.outputs, linear, table, rows, row, rule)
        predicted[rows][row] = True
        np.add.at(totals[rows], row, weights[rule] * outputs)
        if ruleset.voting == "mean":
            np.add.at(total_weights[rows], row, weights[rule])
    if ruleset.voting == "mean":
        predicted &= total_weights > 0
        totals /= np.where(predicted, total_weights, 1.0)
    return np.where(predicted, totals, np.nan), predicted


def assigned_rule(ruleset: RuleSet, table: RowTable) -> np.ndarray:
    """Return the index of the rule that predicts each row, possibly the nearest; -1 for none."""
    index = ruleset.assign(table)
    fallback = ruleset.fallback
    if fallback is not None and fallback.policy == "nearest" and len(ruleset):
        uncovered = np.flatnonzero(index < 0)
        if len(uncovered):
            scale, squares = distance_units(ruleset)
            features = np.flatnonzero(ruleset.boxes.bounded.any(axis=0)).tolist()
            rows = table.matrix(uncovered, features)
            penalties = _count_known_values(ruleset, table, uncovered)
            penalties = None if penalties is None else penalties * squares
            index[uncovered] = nearest_box(ruleset.boxes, rows, np.asarray(scale), penalties)
    return index


def distance_units(ruleset: RuleSet) -> tuple[tuple[float, ...], float]:
    """Return the units of the distance along each feature, and the penalty of an observed value.

    The units are the ranges of the domain, or their halves if a range exceeds the largest float.
    """
    domain = ruleset.domain
    if domain is None:
        return (1.0,) * ruleset.n_features, 1.0
    if np.isfinite(domain.ranges).all():
        return domain.ranges, 1.0
    pairs = zip(domain.lower, domain.upper, strict=True)
    return tuple(high / 2 - low / 2 for low, high in pairs), 4.0


def _count_known_values(ruleset: RuleSet, table: RowTable, rows: np.ndarray) -> np.ndarray | None:
    """Count, per row and rule, observed values that must be missing; None if rules are boxes."""
    if ruleset.boxes_only:
        return None
    result = np.zeros((len(rows), len(ruleset)))
    for i, rule in enumerate(ruleset.rules):
        for condition in rule.non_intervals:
            if isinstance(condition, Missing) and not condition.negated:
                result[:, i] += ~table.missing(condition.feature, slice(None))[rows]
    return result


def _fallback_for(ruleset: RuleSet, table: RowTable, uncovered: np.ndarray) -> Fallback:
    if ruleset.fallback is None:
        used = sorted(ruleset.used_features)
        gaps = [j for j in used if table.missing(j, slice(None))[uncovered].any()]
        hint = ""
        if gaps:
            hint = (
                f" Values of {listed([ruleset.feature_names[j] for j in gaps])} are missing there, "
                "and no rule covers missing values. If the rules were read from a tree of "
                "scikit-learn, read it with as_ruleset(tree, missing=True). If they were read from "
                "a model without support for missing values, such as those of imodels, impute them."
            )
        raise ValueError(
            f"No rule holds for {plural(len(uncovered), 'row')} and the rule set has "
            "no fallback. Use covers(X) to find those rows, or give the rule set a fallback: "
            f"ruleset.replace(fallback=Fallback(output)).{hint}"
        )
    return ruleset.fallback


def _predict_by_vote(ruleset: RuleSet, table: RowTable) -> np.ndarray:
    """Predict every row by voting rules."""
    if ruleset.task == "regression":
        values, predicted = vote_numbers(ruleset, table)
        uncovered = np.flatnonzero(~predicted)
        if len(uncovered):
            fallback = _fallback_for(ruleset, table, uncovered)
            values[uncovered] = np.nan if fallback.policy == "abstain" else fallback.output
        return values
    sums, covered = class_sums(ruleset, table)
    return _labels_of(ruleset, table, sums.argmax(axis=1), np.flatnonzero(~covered))


def predict(ruleset: RuleSet, table: RowTable, n_jobs: int | None = None) -> np.ndarray:
    """Predict every row; see :meth:`RuleSet.predict`."""
    if ruleset.voting is not None:
        return _predict_by_vote(ruleset, table)
    fallback = ruleset.fallback
    if (
        len(ruleset)
        and not ruleset.conclusions.linear
        and (fallback is None or fallback.policy == "default")
    ):
        return _predict_constants(ruleset, table, n_jobs)
    index = assigned_rule(ruleset, table)
    uncovered = np.flatnonzero(index < 0)
    if ruleset.task == "regression":
        result = _predict_numbers(ruleset, table, index)
        if len(uncovered):
            fallback = _fallback_for(ruleset, table, uncovered)
            result[uncovered] = np.nan if fallback.policy == "abstain" else fallback.output
        return result
    codes = np.append(ruleset.conclusions.outputs.astype(np.intp), 0)[index]
    return _labels_of(ruleset, table, codes, uncovered)


def _predict_constants(ruleset: RuleSet, table: RowTable, n_jobs: int | None) -> np.ndarray:
    """Predict every row by rules with constant outputs, a few rows at a time."""
    outputs = ruleset.conclusions.outputs
    if ruleset.classes is not None:
        outputs = label_array(list(ruleset.classes))[outputs.astype(np.intp)]
    # The last entry is for uncovered rows.
    outputs = np.concatenate([outputs[ruleset.assignment_order], outputs[:1]])
    if ruleset.fallback is not None:
        outputs[-1] = ruleset.fallback.output
    result = np.empty(len(table), dtype=outputs.dtype)
    uncovered: list[np.ndarray] = []

    def fill(rows: slice) -> None:
        first = ruleset.first(table, rows)
        outputs.take(first, out=result[rows], mode="clip")
        if ruleset.fallback is None and first.size and first.max() >= len(ruleset):
            uncovered.append(np.flatnonzero(first >= len(ruleset)) + rows.start)

    run_in_chunks(fill, len(table), n_jobs)
    if uncovered:
        _fallback_for(ruleset, table, np.concatenate(uncovered))  # raises an error
    return result


def _labels_of(
    ruleset: RuleSet, table: RowTable, codes: np.ndarray, uncovered: np.ndarray
) -> np.ndarray:
    """Return the labels of class codes, and the label of the fallback for uncovered rows."""
    labels: list[Any] = list(ruleset.classes or ())
    if len(uncovered):
        fallback = _fallback_for(ruleset, table, uncovered)
        if fallback.policy == "abstain":
            codes[uncovered] = len(labels)
            labels.append(fallback.abstention(labels))
        else:
            codes[uncovered] = labels.index(fallback.output)
    return label_array(labels)[codes]


def predict_proba(ruleset: RuleSet, table: RowTable) -> np.ndarray:
    """Return class probabilities; see :meth:`RuleSet.predict_proba`."""
    n_classes = len(ruleset.classes or ())
    if ruleset.voting is not None:
        sums, covered = class_sums(ruleset, table)
        result = class_probabilities(ruleset.voting, sums)
        uncovered = np.flatnonzero(~covered)
    else:
        index = assigned_rule(ruleset, table)
        nothing = np.full((1, n_classes), np.nan)
        result = np.vstack([ruleset.conclusions.class_probabilities(n_classes), nothing])[index]
        uncovered = np.flatnonzero(index < 0)
    if len(uncovered):
        result[uncovered] = _fallback_probabilities(
            ruleset, _fallback_for(ruleset, table, uncovered)
        )
    return result


def _fallback_probabilities(ruleset: RuleSet, fallback: Fallback) -> Any:
    classes = ruleset.classes or ()
    if fallback.policy == "abstain":
        return 1 / len(classes)
    if fallback.class_counts is not None and sum(fallback.class_counts) > 0:
        return np.asarray(fallback.class_counts) / sum(fallback.class_counts)
    return [float(label == fallback.output) for label in classes]


def _predict_numbers(ruleset: RuleSet, table: RowTable, index: np.ndarray) -> np.ndarray:
    """Return the outputs of the assigned rules; linear outputs are summed feature by feature."""
    conclusions = ruleset.conclusions
    constant = np.append(conclusions.outputs, np.nan)
    slopes: dict[int, np.ndarray] = {}
    for i, output in conclusions.linear.items():
        constant[i] = output.intercept
        for feature, coefficient in output.terms:
            slopes.setdefault(feature, np.zeros(len(constant)))[i] = coefficient
    result = constant[index]
    for feature in sorted(slopes):
        slope = slopes[feature][index]
        used = slope != 0  # a missing value must not affect outputs that ignore the feature
        values = table.numbers(feature, slice(None))
        result += slope * values if used.all() else slope * np.where(used, values, 0.0)
    return result
