"""What a rule set is told beside its rules, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skescore._validation import check_flag, check_label
from skescore.rules._domain import Domain, Fallback
from skescore.rules._prediction import check_voting

TASKS = ("classification", "regression")


def checked_settings(
    *,
    feature_names: Sequence[str],
    task: str,
    classes: Sequence[Any] | None,
    domain: Domain | None,
    ordered: bool,
    disjoint: bool,
    fallback: Fallback | None,
    voting: str | None,
) -> dict[str, Any]:
    """Give the settings of a rule set in the form in which it keeps them.

    The parameters are those of :class:`~skescore.rules.RuleSet`; `classes` must be there for
    classification.

    Raises
    ------
    TypeError, ValueError
        If one cannot be used, or two do not go together.
    """
    if isinstance(feature_names, str):
        raise TypeError(f"feature_names must be a sequence of names, got {feature_names!r}.")
    names = tuple(str(name) for name in feature_names)
    if task not in TASKS:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    if len(set(names)) != len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValueError(f"feature_names must differ from each other, got {twice} twice.")
    if not isinstance(domain, Domain | None):
        raise TypeError(f"domain must be a Domain or None, got {domain!r}.")
    if not isinstance(fallback, Fallback | None):
        raise TypeError(f"fallback must be a Fallback or None, got {fallback!r}.")
    if domain is not None and len(domain.lower) != len(names):
        raise ValueError(
            f"domain has {len(domain.lower)} features, feature_names has {len(names)}."
        )
    labels = _labels(task, classes)
    if fallback is not None:
        fallback.check(labels)
    ordered, disjoint = check_flag("ordered", ordered), check_flag("disjoint", disjoint)
    voting = check_voting(voting, task, ordered=ordered)
    if voting is not None and fallback is not None and fallback.policy == "nearest":
        raise ValueError(
            f"A fallback by policy='nearest' lets one rule answer, which does not go with "
            f"voting={voting!r}: choose policy='default' or 'abstain'."
        )
    return {
        "feature_names": names,
        "task": task,
        "classes": labels,
        "domain": domain,
        "ordered": ordered,
        "disjoint": disjoint,
        "fallback": fallback,
        "voting": voting,
    }


def _labels(task: str, classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    if task != "classification":
        if classes is not None:
            raise ValueError("classes belong to classification; pass classes=None for regression.")
        return None
    if classes is None or isinstance(classes, str):
        raise TypeError(f"classes must be a sequence of labels, got {classes!r}.")
    labels = tuple(check_label("classes", c) for c in classes)
    if len(set(labels)) != len(labels):
        raise ValueError(f"classes must differ from each other, got {list(labels)}.")
    return labels
