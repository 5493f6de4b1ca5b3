"""Why a rule set answers a row as it does, and what would change its answer.

An explanation repeats what the rules themselves say: which of them hold, who among them answers,
and the least change found that gets the row another answer. Every such change has been put to
:meth:`RuleSet.predict` before it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from skescore._text import listed
from skescore._validation import python_value
from skescore.rules import _prediction as voting
from skescore.rules._columns import Table
from skescore.rules._conditions import AtLeast, Condition
from skescore.rules._counterfactuals import Change, Counterfactual, CounterfactualSearch
from skescore.rules._rule import LinearOutput
from skescore.rules._ruleset import RuleSet
from skescore.rules._text import feature_name, format_label, format_number

__all__ = ["Change", "CheckedCondition", "Counterfactual", "Explanation", "HeldRule", "explain"]


@dataclass(frozen=True)
class CheckedCondition:
    """A condition of a rule, and whether it holds for the row; `parts` are those it counts."""

    text: str
    holds: bool
    parts: tuple[CheckedCondition, ...] = ()


@dataclass(frozen=True)
class HeldRule:
    """A rule that holds for the row, by its index from 0.

    In a vote `weight` is its weight for this row, and `votes` what it adds to each class.
    """

    index: int
    text: str
    output: Any
    weight: float | None = None
    votes: Mapping[Any, float] | None = None


@dataclass(frozen=True)
class Explanation:
    """Why a row gets its answer; ``print`` it to read it.

    Attributes
    ----------
    answer : str, int, float or bool
        What :meth:`RuleSet.predict` answers.
    row : mapping of str to value
        The values of the features that the rules look at; None where missing.
    held : tuple of HeldRule
        The rules that hold, in order.
    rule : int or None
        Index of the answering rule; None for the fallback or a vote.
    reason : {"first", "purest", "vote", "nearest", "fallback"}
        Who answers: the first rule that holds, the purest, all that hold together, the one whose
        box is nearest, or the fallback.
    conditions : tuple of CheckedCondition
        Those of the answering rule. All hold, unless it only is the nearest.
    sums : mapping of label to float, or None
        Votes per class (log odds for ``voting="logistic"``), where classes are voted on.
    counterfactual : Counterfactual or None
        What would change the answer; None if nothing was found.
    """

    answer: Any
    row: Mapping[str, Any]
    held: tuple[HeldRule, ...]
    rule: int | None
    reason: str
    conditions: tuple[CheckedCondition, ...]
    sums: Mapping[Any, float] | None
    counterfactual: Counterfactual | None
    _numeric: bool = field(default=False, repr=False)

    @property
    def fallback(self) -> bool:
        """Whether the fallback's own answer is given."""
        return self.reason == "fallback"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        number = "" if self.rule is None else f"rule {self.rule + 1}"
        yield (
            f"answer: {self._said(self.answer)}, "
            + {
                "first": f"by {number}, the first that holds",
                "purest": f"by {number}, the purest that holds",
                "vote": "by the vote of all rules that hold",
                "nearest": f"by {number}, the nearest, since no rule holds",
                "fallback": "by the fallback, since "
                + ("the weights leave no mean" if self.held else "no rule holds"),
            }[self.reason]
        )
        if self.sums is not None and self.reason == "vote":
            sums = (f"{format_label(c)} {format_number(v)}" for c, v in self.sums.items())
            yield f"sums: {', '.join(sums)}"
        if self.held:
            yield "rules that hold:"
            yield from (f"  {held.index + 1}. {held.text}" for held in self.held)
        if self.conditions:
            yield f"conditions of {number}:"
            yield from _condition_lines(self.conditions, "  ")
        found = self.counterfactual
        if found is None:
            yield "no change found that gets another answer"
            return
        by = "" if found.rule is None else f", by rule {found.rule + 1}"
        yield f"nearest other answer: {self._said(found.answer)}{by}, if"
        for change in found.changes:
            before, after = _value_text(change.before), _value_text(change.after)
            yield f"  {feature_name([change.feature], 0)} were {after} instead of {before}"

    def _said(self, answer: Any) -> str:
        return format_number(answer) if self._numeric else format_label(answer)


def _condition_lines(checked: tuple[CheckedCondition, ...], indent: str) -> Iterator[str]:
    for condition in checked:
        yield f"{indent}{condition.text}: {'holds' if condition.holds else 'fails'}"
        yield from _condition_lines(condition.parts, indent + "  ")


def _value_text(value: Any) -> str:
    if value is None:
        return "missing"
    # In full: a value just beyond a bound would round to the bound.
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e16
    return format_label(int(value) if whole else value)


def explain(ruleset: RuleSet, x: Any) -> Explanation:
    r"""Explain the answer to one row.

    Use it to show a person why the answer is what it is, and what would have to be otherwise.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    x : mapping, sequence, Series or DataFrame of one row
        The values by feature name, or in the order of the features.

    Returns
    -------
    Explanation

    Raises
    ------
    ValueError
        If x is not one row or lacks features, or no rule holds and there is no fallback.

    Notes
    -----
    The distance of a change is :math:`\sum_j |x'_j - x_j| / r_j` with the ranges :math:`r_j` of the
    domain, 1 without a domain; another category, or a value for one that was missing, counts 1.
    Three kinds of changes are looked at: every change of one feature that makes a difference to an
    interval or list of values; the least change that makes a rule hold; and, if none of these gets
    another answer, pairs of them. Sums of features are not solved for. In a regression it is
    another answer if other rules give it and it differs by more than float noise. Values stand a
    little inside of open bounds, so that they can be written with few digits.

    References
    ----------
    S. Wachter, B. Mittelstadt, C. Russell: Counterfactual explanations without opening the black
    box. Harvard Journal of Law & Technology 31(2), 2018.

    Examples
    --------
    >>> from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2.5)], "setosa"), Rule([Interval(1, 1.75)], "virginica")],
    ...     ["length", "width"], task="classification", domain=Domain((1, 0), (7, 2.5)),
    ...     fallback=Fallback("versicolor"),
    ... )
    >>> print(explain(rules, {"length": 4.5, "width": 1.5}))
    answer: versicolor, by the fallback, since no rule holds
    nearest other answer: virginica, by rule 2, if
      width were 1.76 instead of 1.5
    """
    search = CounterfactualSearch(ruleset, _one_row(ruleset, x))
    table = search.table([{}])
    answer = python_value(ruleset.predict(table)[0])
    held = np.flatnonzero(ruleset.match(table)[0]).tolist()
    sums = None
    if ruleset.voting is not None and ruleset.classes is not None:
        said = voting.class_sums(ruleset, table)[0][0].tolist()
        sums = dict(zip(ruleset.classes, said, strict=True))
    index = search.answering(table)[0]
    rule = None if index < 0 else int(index)
    if rule is not None:
        one = "first" if ruleset.ordered or ruleset.disjoint else "purest"
        reason = one if rule in held else "nearest"
    else:
        reason = "vote" if held and search.by_rules(table)[0] else "fallback"
    conditions = () if rule is None else ruleset.rules[rule].conditions
    names = ruleset.feature_names
    return Explanation(
        answer,
        {names[j]: search.values[j] for j in search.used},
        tuple(_held_rule(ruleset, i, table) for i in held),
        rule,
        reason,
        tuple(_checked(ruleset, condition, table) for condition in conditions),
        sums,
        search.nearest(answer),
        ruleset.task == "regression",
    )


def _one_row(ruleset: RuleSet, x: Any) -> Table:
    """The row as a table; a mapping or series by name, everything else by position."""
    names = ruleset.feature_names
    if isinstance(x, pd.Series) and all(isinstance(name, str) for name in x.index):
        x = x.to_dict()
    if isinstance(x, Mapping):
        missing = [name for name in names if name not in x]
        if missing:
            raise ValueError(
                f"x lacks {listed(missing)}, which the rules were made with. Pass None for a value "
                "that is not known."
            )
        x = [x[name] for name in names]
    if not hasattr(x, "columns") and np.ndim(x) == 1:
        values = np.empty((1, len(x)), dtype=object)
        values[0] = [None if value is pd.NA else python_value(value) for value in x]
        x = values
    table = Table(x, names)
    if len(table) != 1:
        raise ValueError(
            f"x must be one row, got {len(table)} rows. Pass one of them, such as X.iloc[[0]] or "
            "X[0]."
        )
    return table


def _held_rule(ruleset: RuleSet, index: int, table: Table) -> HeldRule:
    rule, text = ruleset.rules[index], ruleset.line(index)
    output: Any = rule.output
    if isinstance(output, LinearOutput):
        output = float(output.evaluate(table.column, 1)[0])
    if ruleset.voting is None:
        return HeldRule(index, text, output)
    weight = rule.weight
    if isinstance(weight, LinearOutput):
        # What a missing value leaves unknown has no say, see class_sums.
        weight = float(np.nan_to_num(weight.evaluate(table.column, 1)[0]))
    votes = None
    if ruleset.classes is not None:
        votes = {output: weight}
        if ruleset.voting == "shares":
            shares = ruleset.conclusions.shares(len(ruleset.classes))[index].tolist()
            votes = {c: weight * s for c, s in zip(ruleset.classes, shares, strict=True) if s}
    return HeldRule(index, text, output, weight, votes)


def _checked(ruleset: RuleSet, condition: Condition, table: Table) -> CheckedCondition:
    inner = condition.conditions if isinstance(condition, AtLeast) else ()
    return CheckedCondition(
        condition.to_text(ruleset.feature_names, ruleset.number),
        bool(condition.holds(table.column)[0]),
        tuple(_checked(ruleset, part, table) for part in inner),
    )
