"""Rules from the texts that RuleKit prints."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from skescore._text import listed
from skescore._validation import check_label, check_number
from skescore.rules._conditions import Condition, Interval, OneOf
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules._settings import TASKS
from skescore.rules.importers._rulekit import engine_order
from skescore.rules.importers._rulekit_line import Line, Parsed


def read_rulekit_text(
    text: str | Iterable[str],
    *,
    feature_names: Sequence[str],
    task: str | None = None,
    classes: Sequence[Any] | None = None,
    default: Any = None,
    domain: Domain | None = None,
) -> RuleSet:
    """Read rules from the text that RuleKit prints or writes into its reports.

    Use it where the model itself is gone; :func:`skescore.rules.importers.read_rulekit` reads
    a model exactly. RuleKit rounds the bounds in its texts to two decimals (those below 0.1 to two
    digits), so that rows between a bound and its rounding are answered otherwise.

    Parameters
    ----------
    text : str or iterable of str
        One rule per line such as ``IF width = <0.8, 1.75) AND colour = {red} THEN label = {a}``,
        with or without a number in front (``r1:``) and statistics behind (``(p=8.0, n=0.0,
        P=8.0, N=9.0, weight=0.9, pval=0.01)``); or a whole report with the line ``Rules:`` before
        them and an empty line after. An iterable holds one rule in each text, which then may hold
        line breaks.
    feature_names : sequence of str
        Names of the columns, in order. The names in the text must be among them.
    task : {"classification", "regression"}, optional
        By default a regression if the conclusions have a range, as in ``{72.97} [46.95,98.99]``.
    classes : sequence of str, int, float or bool, optional
        The labels that the texts in the conclusions stand for: each must be ``str(label)`` of one.
        Their order does not matter. By default the labels are texts.
    default : label or number, optional
        What to answer where no rule holds. By default the class whose name sorts first, as RuleKit
        does; RuleKit's default of a regression is not in the text, so that without it such rows
        have no answer.
    domain : Domain, optional
        The box in which the rules are meant to answer.

    Returns
    -------
    RuleSet
        Voting rules: classes by votes, numbers by the weighted mean.

    Raises
    ------
    ValueError
        If a text is not such a rule, naming the line and what was expected there; a name is not
        among the features; two names fit one place; or only some rules have a weight.

    Notes
    -----
    - Rules without weights all weigh 1.
    - A value in braces is one text, also with a comma in it: RuleKit has no sets of values. It is
      a number where the same feature has bounds elsewhere.
    - The signs of expert rules (``[[...]]``, ``[...]``, ``@=``) are read over.
    - How often a rule met each class is known if two `classes` are given, or if it never erred.

    Examples
    --------
    >>> rules = read_rulekit_text(
    ...     "IF width = <0.8, 1.75) AND colour = {red} THEN label = {a} (p=8.0, n=1.0, weight=0.5)",
    ...     feature_names=["width", "colour"],
    ...     classes=["a", "b"],
    ... )
    >>> print(rules[0])
    IF 0.8 ≤ width < 1.75 AND colour = red THEN a   [weight 0.5, 9 rows, 89 % pure]
    """
    if task is not None and task not in TASKS:
        raise ValueError(f"task must be None or one of {TASKS}, got {task!r}.")
    if isinstance(feature_names, str):
        raise TypeError(f"feature_names must be a sequence of names, got {feature_names!r}.")
    names = [str(name) for name in feature_names]
    parsed = [Line(line, place, names).rule() for place, line in _rule_lines(text)]
    if not parsed:
        raise ValueError(
            "The text holds no rules; expected lines such as 'IF width = <1, 2) THEN label = {a}'."
        )
    _check_alike(parsed)
    if task is None:
        task = "regression" if parsed[0].is_number else "classification"
    elif task == "classification" and parsed[0].is_number:
        raise ValueError(
            "task='classification' does not go with conclusions that have a range, such as that of "
            f"{parsed[0].place}: leave out the task, or pass task='regression'."
        )
    numeric = {c.feature for rule in parsed for c in rule.conditions if isinstance(c, Interval)}
    settings: dict[str, Any] = {"task": task, "domain": domain, "ordered": False}
    if task == "regression":
        if classes is not None:
            raise ValueError("classes belong to classification; pass classes=None for regression.")
        settings |= {"voting": "mean"}
        outputs: list[Any] = [_number(rule) for rule in parsed]
        counts: list[Any] = [None] * len(parsed)
    else:
        labels = _labels(parsed, classes)
        ordered = [labels[value] for value in engine_order(labels)]
        settings |= {"voting": "votes", "classes": ordered}
        default = ordered[0] if default is None else default
        outputs = [labels[rule.value] for rule in parsed]
        known = [] if classes is None else ordered
        counts = [_class_counts(r, o, ordered, known) for r, o in zip(parsed, outputs, strict=True)]
    if default is not None:
        settings["fallback"] = Fallback(check_label("default", default))
    rules = []
    for rule, output, counted in zip(parsed, outputs, counts, strict=True):
        statistics = None if rule.n_rows is None else RuleStatistics(rule.n_rows, counted)
        weight = rule.statistics.get("weight", 1.0)
        try:
            conditions = tuple(_with_numbers(c, numeric) for c in rule.conditions)
            rules.append(Rule(conditions, output, statistics, weight))
        except ValueError as error:
            raise ValueError(f"{rule.place}: {error}") from error
    return RuleSet(rules, names, **settings)


def _rule_lines(text: str | Iterable[str]) -> Iterator[tuple[str, str]]:
    """The rules, each with the place where it stands."""
    if not isinstance(text, str):
        for number, item in enumerate(text, 1):
            if not isinstance(item, str):
                raise TypeError(f"text must hold texts, got {type(item).__name__}: {item!r}.")
            yield f"Rule {number}", item
        return
    lines = list(enumerate(text.split("\n"), 1))
    sections = [number for number, line in lines if line.strip() == "Rules:"]
    if len(sections) > 1:
        raise ValueError(
            f"The text has {len(sections)} parts that begin with 'Rules:' (lines "
            f"{listed(sections)}), each of another model: pass one of them."
        )
    if sections:
        lines = lines[sections[0] :]
        empty = [at for at, (_, line) in enumerate(lines) if not line.strip()]
        lines = lines[: empty[0]] if empty else lines
    for number, line in lines:
        if line.strip():
            yield f"Line {number}", line.rstrip("\r")


def _check_alike(parsed: Sequence[Parsed]) -> None:
    """Raise a ValueError unless the rules are of one model."""
    first = parsed[0]
    for rule in parsed[1:]:
        if rule.label != first.label:
            raise ValueError(
                f"{rule.place} concludes {rule.label!r}, {first.place} {first.label!r}: rules of "
                "one set must speak of one target."
            )
        if rule.is_number != first.is_number:
            raise ValueError(
                f"{rule.place} concludes {'a number' if rule.is_number else 'a class'}, "
                f"{first.place} does not: rules of one set must be of one task."
            )
        if ("weight" in rule.statistics) != ("weight" in first.statistics):
            has = "a" if "weight" in rule.statistics else "no"
            raise ValueError(
                f"{rule.place} has {has} weight, unlike {first.place}: either all rules must have "
                "one or none."
            )


def _number(rule: Parsed) -> float:
    try:
        return check_number("the conclusion", float(rule.value), finite=True)
    except ValueError:
        raise ValueError(
            f"{rule.place}: a regression needs a number as its conclusion, got {rule.value!r}."
        ) from None


def _labels(parsed: Sequence[Parsed], classes: Sequence[Any] | None) -> dict[str, Any]:
    """The label that each text stands for."""
    if classes is None:
        for rule in parsed:
            if set(rule.value) & set("{}"):
                raise ValueError(
                    f"{rule.place} concludes {rule.value!r}, which looks like more than a label: "
                    "pass classes=... if it is one."
                )
        return {rule.value: rule.value for rule in parsed}
    if isinstance(classes, str):
        raise TypeError(f"classes must be a sequence of labels, got {classes!r}.")
    labels = {str(label): check_label("classes", label) for label in classes}
    if len(labels) < len(classes):
        raise ValueError(f"classes must differ from each other as texts, got {list(classes)}.")
    for rule in parsed:
        if rule.value not in labels:
            raise ValueError(
                f"{rule.place} concludes {rule.value!r}, which is str(label) of none of the "
                f"classes {list(classes)}."
            )
    return labels


def _class_counts(
    rule: Parsed, output: Any, classes: Sequence[Any], known: Sequence[Any]
) -> tuple[float, ...] | None:
    """How often the rule met each class, where that follows from right and wrong."""
    if rule.n_rows is None:
        return None
    right, wrong = rule.statistics["p"], rule.statistics["n"]
    if wrong and len(known) != 2:
        return None
    return tuple(right if label == output else wrong for label in classes)


def _with_numbers(condition: Condition, numeric: set[int]) -> Condition:
    """A value of a feature that has bounds elsewhere is a number, not a text."""
    if not isinstance(condition, OneOf) or condition.feature not in numeric:
        return condition
    try:
        value = float(condition.values[0])
    except ValueError:
        value = math.nan
    if condition.negated or not math.isfinite(value):
        raise ValueError(
            f"feature {condition.feature} has bounds elsewhere, but is compared with "
            f"{condition.values[0]!r} here."
        )
    return Interval(condition.feature, value, value, lower_closed=True, upper_closed=True)
