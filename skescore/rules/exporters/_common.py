"""Order of rules, labels and votes, for all writers of programs."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from skescore.rules._conditions import AtLeast, Condition, Interval, Linear, Missing, OneOf
from skescore.rules._domain import label_array

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


def rules_in_order(ruleset: RuleSet) -> list[int]:
    """Return the indices of the rules that can predict, in the order in which they are tested.

    Unless rules vote, no rule after the first one without conditions can predict.
    """
    if ruleset.voting is not None:
        return list(range(len(ruleset)))
    order: list[int] = ruleset.assignment_order.tolist()
    for position, index in enumerate(order):
        if not ruleset.rules[index].conditions:
            return order[: position + 1]
    return order


def always_predicts(ruleset: RuleSet) -> bool:
    """Return whether some rule covers every row, so that the fallback never predicts."""
    return any(not rule.conditions for rule in ruleset.rules)


def flatten_conditions(
    conditions: Iterable[Condition],
) -> Iterator[Interval | OneOf | Missing | Linear]:
    """Yield conditions, with M-of-N conditions replaced by their parts."""
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from flatten_conditions(condition.conditions)
        else:
            yield condition


def to_ascii(name: str) -> str:
    """Convert a name to ASCII: ``Größe`` becomes ``Grosse``; other scripts are dropped."""
    name = name.replace("ß", "ss")
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()


def class_labels(ruleset: RuleSet) -> list[Any]:
    """Return the classes as predicted: integers are floats if other classes are floats."""
    return _labels(ruleset)[: len(ruleset.classes or ())]


def abstention(ruleset: RuleSet) -> Any:
    """Return the label that an abstaining rule set predicts in classification."""
    return _labels(ruleset)[-1]


def _labels(ruleset: RuleSet) -> list[Any]:
    """Return the classes, followed by the prediction of an abstaining rule set."""
    labels = list(ruleset.classes or ())
    fallback = ruleset.fallback
    if labels and fallback is not None and fallback.policy == "abstain":
        labels.append(fallback.abstention(labels))
    converted: list[Any] = label_array(labels).tolist()
    return converted


def class_votes(ruleset: RuleSet, index: int) -> list[tuple[int, float]]:
    """Return the classes that a rule votes for, each with its share of the rule's weight."""
    n_classes = len(ruleset.classes or ())
    if ruleset.voting != "probabilities":
        return [(int(ruleset.conclusions.outputs[index]), 1.0)]
    shares: list[float] = ruleset.conclusions.class_probabilities(n_classes)[index].tolist()
    return [(k, share) for k, share in enumerate(shares) if share]
