"""What a rule set answers: the answering rule's output, or what the fallback says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules import _prediction as voting
from skescore.rules._columns import Table
from skescore.rules._domain import Fallback, label_array
from skescore.rules._matching import nearest_box

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


def _answering_rule(ruleset: RuleSet, table: Table) -> np.ndarray:
    """The answering rule of every row, by the nearest-box policy if asked for; -1 for none."""
    index = ruleset.assign(table)
    fallback = ruleset.fallback
    if fallback is not None and fallback.policy == "nearest" and len(ruleset):
        lost = np.flatnonzero(index < 0)
        if len(lost):
            scale = ruleset.domain.ranges if ruleset.domain else (1.0,) * ruleset.n_features
            features = np.flatnonzero(ruleset.boxes.bounded.any(axis=0)).tolist()
            rows = table.matrix(lost, features)
            index[lost] = nearest_box(ruleset.boxes, rows, np.asarray(scale))
    return index


def _fallback_for(ruleset: RuleSet, n_lost: int) -> Fallback:
    if ruleset.fallback is None:
        raise ValueError(
            f"No rule holds for {n_lost} row{'s' if n_lost > 1 else ''} and the rule set has "
            "no fallback. Use covers(X) to find those rows, or give the rule set one: "
            "ruleset.replace(fallback=Fallback(output))."
        )
    return ruleset.fallback


def _vote(ruleset: RuleSet, table: Table) -> np.ndarray:
    """Answer every row where rules answer together."""
    if ruleset.task == "regression":
        values, answered = voting.numbers(ruleset, table)
        lost = np.flatnonzero(~answered)
        if len(lost):
            fallback = _fallback_for(ruleset, len(lost))
            values[lost] = np.nan if fallback.policy == "abstain" else fallback.output
        return values
    sums, covered = voting.class_sums(ruleset, table)
    return _labelled(ruleset, sums.argmax(axis=1), np.flatnonzero(~covered))


def predict(ruleset: RuleSet, table: Table) -> np.ndarray:
    """Answer every row; see :meth:`RuleSet.predict`."""
    if ruleset.voting is not None:
        return _vote(ruleset, table)
    index = _answering_rule(ruleset, table)
    lost = np.flatnonzero(index < 0)
    if ruleset.task == "regression":
        result = _numbers(ruleset, table, index)
        if len(lost):
            fallback = _fallback_for(ruleset, len(lost))
            result[lost] = np.nan if fallback.policy == "abstain" else fallback.output
        return result
    return _labelled(
        ruleset, np.append(ruleset.conclusions.outputs.astype(np.intp), 0)[index], lost
    )


def _labelled(ruleset: RuleSet, codes: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Labels of the classes with the given codes, and the fallback's for rows without any."""
    labels: list[Any] = list(ruleset.classes or ())
    if len(lost):
        fallback = _fallback_for(ruleset, len(lost))
        if fallback.policy == "abstain":
            codes[lost] = len(labels)
            labels.append(fallback.abstention(labels))
        else:
            codes[lost] = labels.index(fallback.output)
    return label_array(labels)[codes]


def predict_proba(ruleset: RuleSet, table: Table) -> np.ndarray:
    """Class shares of the answering rule; see :meth:`RuleSet.predict_proba`."""
    n_classes = len(ruleset.classes or ())
    if ruleset.voting is not None:
        sums, covered = voting.class_sums(ruleset, table)
        result = voting.class_shares(ruleset.voting, sums)
        lost = np.flatnonzero(~covered)
    else:
        index = _answering_rule(ruleset, table)
        nothing = np.full((1, n_classes), np.nan)
        result = np.vstack([ruleset.conclusions.shares(n_classes), nothing])[index]
        lost = np.flatnonzero(index < 0)
    if len(lost):
        result[lost] = _fallback_shares(ruleset, _fallback_for(ruleset, len(lost)))
    return result


def _fallback_shares(ruleset: RuleSet, fallback: Fallback) -> Any:
    classes = ruleset.classes or ()
    if fallback.policy == "abstain":
        return 1 / len(classes)
    if fallback.class_counts is not None and sum(fallback.class_counts) > 0:
        return np.asarray(fallback.class_counts) / sum(fallback.class_counts)
    return [float(label == fallback.output) for label in classes]


def _numbers(ruleset: RuleSet, table: Table, index: np.ndarray) -> np.ndarray:
    """Outputs of the answering rules; linear ones feature by feature for all rules at once."""
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
        used = slope != 0  # a missing value must not spoil the answers that do not need it
        values = table.numbers(feature, slice(None))
        result += slope * values if used.all() else slope * np.where(used, values, 0.0)
    return result
