"""Edits of rule sets: functions from a rule set and JSON arguments to another rule set.

Every edit depends only on the rules and its arguments, never on rows. So a log of edits can be
replayed anywhere, and the resulting rules are bit-identical.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from skescore._text import did_you_mean
from skescore._validation import check_integer
from skescore.editing._premises import (
    are_disjoint,
    hull_of,
    interval_of,
    may_be_missing,
    move_shared_bound,
    with_condition,
    with_interval,
    without_feature,
)
from skescore.rules import Condition, Fallback, Interval, Missing, OneOf, Rule, RuleSet
from skescore.rules._rule import combine_statistics


def apply_edit(rules: RuleSet, edit: Mapping[str, Any]) -> RuleSet:
    """Apply one edit.

    Parameters
    ----------
    rules : RuleSet
        The rules.
    edit : mapping
        Name of the edit as ``"action"``, and its arguments as JSON values.

    Returns
    -------
    RuleSet
        Edited rules. Statistics are kept only if they still describe the same rows.

    Raises
    ------
    ValueError, TypeError
        If the edit or its arguments are invalid.

    Examples
    --------
    >>> from skescore.editing import apply_edit
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> edit = {"action": "set_bound", "number": 1, "feature": "age", "upper": 18}
    >>> print(apply_edit(rules, edit))
    1. IF age ≤ 18 THEN no
    2. ELSE yes
    """
    arguments = dict(edit)
    action = str(arguments.pop("action", ""))
    if action not in EDITS:
        raise ValueError(f"There is no edit {action!r}. {did_you_mean(action, EDITS)}")
    try:
        edited = EDITS[action](rules, **arguments)
    except TypeError as error:
        if "argument" not in str(error):
            raise
        raise TypeError(f"Invalid arguments of the edit {action!r}: {error}.") from error
    if action in WHOLE_EDITS:
        return edited
    return _with_valid_statistics(rules, _with_valid_order(rules, edited))


# --- order and statistics -------------------------------------------------------------------------


def _with_valid_order(rules: RuleSet, edited: RuleSet) -> RuleSet:
    """Turn rules that are no longer disjoint into an ordered list with the same predictions.

    Of disjoint rules, the first match predicts, so the list keeps their order.
    """
    if not edited.disjoint or edited.voting is not None:
        return edited
    old_premises = {rule.conditions for rule in rules}
    changed = [i for i, rule in enumerate(edited) if rule.conditions not in old_premises]
    for i in changed:
        for j, other in enumerate(edited):
            if i != j and not are_disjoint(edited[i].conditions, other.conditions):
                return edited.replace(ordered=True, disjoint=False)
    premises = [rule.conditions for rule in edited]
    if len(set(premises)) < len(premises):
        return edited.replace(ordered=True, disjoint=False)
    return edited


def _with_valid_statistics(rules: RuleSet, edited: RuleSet) -> RuleSet:
    """Remove statistics of rules whose rows may have changed.

    If several rules may cover a row, the counts that determine which of them predicts are kept.
    """
    if edited.voting is not None or not (edited.ordered or edited.disjoint):
        before = None if _premises(rules) != _premises(edited) else rules
        return edited.replace(
            rules=[*map(_with_valid_errors, edited, before or [None] * len(edited))]
        )
    same_kind = (rules.ordered, rules.disjoint) == (edited.ordered, edited.disjoint)
    statistics = dict(zip(_regions(rules), rules, strict=True)) if same_kind else {}
    result = []
    for region, rule in zip(_regions(edited), edited, strict=True):
        before = statistics.get(region)
        stats = None if before is None else before.statistics
        if stats is not None and before is not None and before.output != rule.output:
            stats = replace(stats, model_error=None, target_error=None)
        result.append(replace(rule, statistics=stats))
    return edited.replace(rules=result)


def _premises(rules: RuleSet) -> list[Any]:
    return [rule.conditions for rule in rules]


def _with_valid_errors(rule: Rule, before: Rule | None) -> Rule:
    """Remove the errors of a rule, unless it had the same output and rows before."""
    if rule.statistics is None or (before is not None and before.output == rule.output):
        return rule
    return replace(rule, statistics=replace(rule.statistics, model_error=None, target_error=None))


def _regions(rules: RuleSet) -> list[Any]:
    """Return the conditions that select the rows of each rule: its premise and those before it."""
    if not rules.ordered:
        return [rule.conditions for rule in rules]
    regions, earlier = [], Counter[Any]()
    for rule in rules:
        regions.append((frozenset(earlier), rule.conditions))
        earlier[rule.conditions] += 1
    return regions


# --- arguments ------------------------------------------------------------------------------------


def rule_index(rules: RuleSet, number: Any, name: str = "number") -> int:
    """Return the index of the rule with a number from 1, as in the text of rules."""
    check_integer(name, number, 1)
    if number > len(rules):
        raise ValueError(
            f"{name} must be the number of a rule, from 1 to {len(rules)}, got {number!r}."
        )
    return int(number) - 1


def feature_index(rules: RuleSet, feature: Any) -> int:
    """Return the index of a feature, given by its name or index."""
    if isinstance(feature, int) and not isinstance(feature, bool):
        if 0 <= feature < rules.n_features:
            return feature
    elif feature in rules.feature_names:
        return rules.feature_names.index(feature)
    raise ValueError(
        f"There is no feature {feature!r}. {did_you_mean(str(feature), rules.feature_names)}"
    )


def rule_to_json(rules: RuleSet, rule: Rule) -> dict[str, Any]:
    """Return a rule in the format of :meth:`RuleSet.to_json`."""
    data: dict[str, Any] = json.loads(rules.replace(rules=[rule]).to_json(indent=None))
    written: dict[str, Any] = data["rules"][0]
    return written


def rules_from_json(rules: RuleSet, data: Sequence[Any]) -> tuple[Rule, ...]:
    """Convert the output of :func:`rule_to_json` back to rules."""
    whole = json.loads(rules.replace(rules=()).to_json(indent=None))
    return RuleSet.from_json(json.dumps(whole | {"rules": list(data), "version": 2})).rules


def _check_output(rules: RuleSet, output: Any) -> Any:
    """Check that an output is a class of the rules, or a number."""
    if rules.classes is not None:
        if output not in rules.classes:
            raise ValueError(
                f"output must be one of the classes {list(rules.classes)}, got {output!r}."
            )
        return rules.classes[rules.classes.index(output)]
    if isinstance(output, bool) or not isinstance(output, int | float | dict):
        raise ValueError(f"output of a regression rule must be a number, got {output!r}.")
    if isinstance(output, int | float) and not math.isfinite(output):
        raise ValueError(f"output must be a finite number, got {output!r}.")
    return output


# --- edits ----------------------------------------------------------------------------------------


def _drop(rules: RuleSet, number: int) -> RuleSet:
    index = rule_index(rules, number)
    if len(rules) == 1:
        raise ValueError("The last rule cannot be dropped; change it, or add another one first.")
    return rules.replace(rules=[rule for i, rule in enumerate(rules) if i != index])


def _add(rules: RuleSet, rule: Mapping[str, Any], number: int | None = None) -> RuleSet:
    position = len(rules) + 1 if number is None else number
    check_integer("number", position, 1)
    if position > len(rules) + 1:
        raise ValueError(f"number must be from 1 to {len(rules) + 1}, got {number!r}.")
    result = list(rules)
    result[position - 1 : position - 1] = rules_from_json(rules, [rule])
    return rules.replace(rules=result)


def _move(rules: RuleSet, number: int, to: int) -> RuleSet:
    index, target = rule_index(rules, number), rule_index(rules, to, "to")
    if not (rules.ordered or rules.disjoint):
        raise ValueError(
            "These rules have no order: statistics determine which of several rules predicts. "
            "rules.replace(ordered=True) makes them an ordered list."
        )
    result = list(rules)
    result.insert(target, result.pop(index))
    return rules.replace(rules=result)


def _merge(rules: RuleSet, first: int, second: int) -> RuleSet:
    one, other = rule_index(rules, first, "first"), rule_index(rules, second, "second")
    if one == other:
        raise ValueError(f"first and second must be two rules, got {first!r} twice.")
    a, b = rules[one], rules[other]
    output = _merged_output(a, b, rules.task)
    if output is None:
        raise ValueError(
            f"Rules {first} and {second} have different outputs, {a.output!s} and {b.output!s}; "
            "give both the same output with set_output first."
        )
    premise = hull_of(rules, a.conditions, b.conditions)
    merged_rule = Rule(premise, output, combine_statistics(a.statistics, b.statistics), a.weight)
    result = [merged_rule if i == one else rule for i, rule in enumerate(rules) if i != other]
    return rules.replace(rules=result)


def _merged_output(a: Rule, b: Rule, task: str) -> Any:
    """Return the output of two merged rules, averaging numbers; None if the outputs differ."""
    if a.output == b.output:
        return a.output
    is_constant = all(isinstance(rule.output, int | float) for rule in (a, b))
    if task != "regression" or not is_constant:
        return None
    n_rows = [rule.statistics.n_rows for rule in (a, b) if rule.statistics is not None]
    total = sum(n_rows) if len(n_rows) == 2 else 0.0
    share = n_rows[1] / total if total > 0 else 0.5
    return (1 - share) * float(a.output) + share * float(b.output)  # type: ignore[arg-type]


def _split(
    rules: RuleSet,
    number: int,
    feature: str,
    bound: float | None = None,
    values: Sequence[Any] | None = None,
) -> RuleSet:
    index, j = rule_index(rules, number), feature_index(rules, feature)
    if (bound is None) == (values is None):
        raise ValueError("Split a rule either by a bound or by values: pass only one.")
    rule = rules[index]
    # Rows without a value must remain in one of the halves.
    accepts_missing = may_be_missing(rules, rule, j)
    halves: tuple[Condition, Condition]
    if values is not None:
        first = tuple(values)
        halves = OneOf(j, first), OneOf(j, first, negated=True, missing=accepts_missing)
    else:
        assert bound is not None
        halves = Interval(j, upper=bound), Interval(j, lower=bound, missing=accepts_missing)
    try:
        split_rules = [replace(rule, conditions=(*rule.conditions, half)) for half in halves]
    except ValueError as error:
        raise ValueError(
            f"Rule {number} cannot be split there, as one half would be empty: {error}"
        ) from error
    if any(part.conditions == rule.conditions for part in split_rules):
        raise ValueError(f"Rule {number} cannot be split there, as one half would be empty.")
    return rules.replace(rules=[*rules[:index], *split_rules, *rules[index + 1 :]])


def _set_bound(
    rules: RuleSet,
    number: int,
    feature: str,
    *,
    shared: bool | None = None,
    **bounds: Any,
) -> RuleSet:
    index, j = rule_index(rules, number), feature_index(rules, feature)
    allowed = {"lower", "upper", "lower_closed", "upper_closed", "missing"}
    if not bounds or bounds.keys() - allowed:
        raise ValueError(f"Pass one of {', '.join(sorted(allowed))}, got {sorted(bounds)}.")
    rule = rules[index]
    if any(isinstance(c, OneOf | Missing) and c.feature == j for c in rule.conditions):
        raise ValueError(
            f"Rule {number} compares {rules.feature_names[j]} with values or tests whether it is "
            "missing, and not with bounds; use set_categories, or a condition such as x=4|5."
        )
    if rules.domain is not None and j in dict(rules.domain.categories):
        raise ValueError(
            f"{rules.feature_names[j]} has categories, which have no bounds; use "
            "set_categories, or a condition such as x=a|b."
        )
    old = interval_of(rule, j)
    for side, unbounded in (("lower", -math.inf), ("upper", math.inf)):
        if side in bounds and bounds[side] is None:
            bounds[side] = unbounded
    # A new bound is open below and closed above unless stated otherwise.
    for side, default in (("lower", False), ("upper", True)):
        is_new = side in bounds and math.isinf(getattr(old, side))
        if is_new and f"{side}_closed" not in bounds:
            bounds[f"{side}_closed"] = default
    try:
        new = replace(old, **bounds)
        edited = with_interval(rule, old, new)
    except ValueError as error:
        name = rules.feature_names[j]
        reason = _contradiction(number, name, old, bounds) or str(error)
        raise ValueError(f"Rule {number} cannot have these bounds: {reason}") from error
    result = [edited if i == index else other for i, other in enumerate(rules)]
    if rules.disjoint if shared is None else shared:
        result = move_shared_bound(rules, result, index, old, new)
    return rules.replace(rules=result)


def _contradiction(number: int, name: str, old: Interval, bounds: Mapping[str, Any]) -> str | None:
    """Explain why a new bound contradicts the other bound, with a remedy; None if it does not."""
    new = asdict(old) | dict(bounds)
    changed_sides = [side for side in ("lower", "upper") if side in bounds]
    if len(changed_sides) != 1 or new["lower"] < new["upper"]:
        return None
    lower = f"{'≥' if new['lower_closed'] else '>'} {new['lower']:.6g}"
    upper = f"{'≤' if new['upper_closed'] else '<'} {new['upper']:.6g}"
    other, sign = ("lower", ">") if changed_sides == ["upper"] else ("upper", "<=")
    return (
        f"no {name} is {lower} and {upper}. Remove the {other} bound first, with {other}=None (on "
        f'the command line: --set "{number}.{name}{sign}none").'
    )


def _set_categories(
    rules: RuleSet,
    number: int,
    feature: str,
    values: Sequence[Any] | None,
    *,
    negated: bool = False,
    missing: bool | None = None,
) -> RuleSet:
    index, j = rule_index(rules, number), feature_index(rules, feature)
    rule = rules[index]
    if any(c.feature == j for c in rule.intervals):
        raise ValueError(
            f"Rule {number} compares {rules.feature_names[j]} with bounds; use set_bound, or a "
            "condition such as x<=4."
        )
    domain_values = None if rules.domain is None else rules.domain.values_of(j)
    unknown = [v for v in values or () if domain_values is not None and v not in domain_values]
    if unknown and domain_values is not None:
        raise ValueError(
            f"{rules.feature_names[j]} has no value {unknown[0]!r}. "
            f"{did_you_mean(str(unknown[0]), list(map(str, domain_values)))}"
        )
    old = next((c for c in rule.conditions if isinstance(c, OneOf) and c.feature == j), None)
    accepts = old is not None and old.missing if missing is None else missing
    new = None if values is None else OneOf(j, tuple(values), negated, accepts)
    edited = with_condition(rule, j, new)
    return rules.replace(rules=[edited if i == index else r for i, r in enumerate(rules)])


def _set_output(rules: RuleSet, number: int, output: Any) -> RuleSet:
    index = rule_index(rules, number)
    output = _check_output(rules, output)
    if isinstance(output, dict):
        data = rule_to_json(rules, rules[index]) | {"then": output}
        edited = rules_from_json(rules, [data])[0]
    else:
        edited = replace(rules[index], output=output)
    return rules.replace(rules=[edited if i == index else r for i, r in enumerate(rules)])


def _set_fallback(rules: RuleSet, output: Any) -> RuleSet:
    output = _check_output(rules, output)
    if isinstance(output, dict):
        raise ValueError(f"The fallback of regression rules must be a number, got {output}.")
    return rules.replace(fallback=Fallback(output))


def _forbid(rules: RuleSet, feature: str) -> RuleSet:
    j = feature_index(rules, feature)
    result = [without_feature(rules, rule, number, j) for number, rule in enumerate(rules, start=1)]
    return rules.replace(rules=result)


def _replace_rules(rules: RuleSet, rules_json: Mapping[str, Any]) -> RuleSet:
    """Replace all rules, as a new extraction does."""
    result = RuleSet.from_json(json.dumps(rules_json))
    if (result.feature_names, result.task) != (rules.feature_names, rules.task):
        raise ValueError("The other rules must have the same features and task.")
    return result


def _recount(rules: RuleSet, rules_json: Mapping[str, Any]) -> RuleSet:
    """Replace the statistics of all rules, and their reference."""
    result = _replace_rules(rules, rules_json)
    bare = [
        ruleset.replace(rules=[replace(rule, statistics=None) for rule in ruleset], reference=None)
        for ruleset in (rules, result)
    ]
    if bare[0] != bare[1]:
        raise ValueError("The edit 'recount' may change only the statistics of rules.")
    return result


#: Edits that state all rules with their statistics.
WHOLE_EDITS = ("replace_rules", "recount")
#: Edits by name. Their arguments are JSON values; features are names, and rules are numbers from 1.
EDITS: Mapping[str, Callable[..., RuleSet]] = {
    "drop": _drop,
    "add": _add,
    "move": _move,
    "merge": _merge,
    "split": _split,
    "set_bound": _set_bound,
    "set_categories": _set_categories,
    "set_output": _set_output,
    "set_fallback": _set_fallback,
    "forbid": _forbid,
    "replace_rules": _replace_rules,
    "recount": _recount,
}
