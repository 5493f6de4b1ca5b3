"""Pinned rules: rules that a rule set must contain unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skescore._rule_readers import RULESET_FORMAT
from skescore._validation import check_instance, check_integer, check_sequence
from skescore.rules import AtLeast, Condition, Linear, LinearOutput, Rule, RuleSet


@dataclass(frozen=True, slots=True)
class PinnedRule:
    """Rule that a rule set must contain unchanged.

    A rule in the set must have the same conditions, output and weight. Its statistics may differ.

    Parameters
    ----------
    rule : Rule
        The rule.
    feature_names : sequence of str
        Names of the features, in the order of the column indices in the rule.
    position : int, optional
        Index that the rule must have, from 0. Rules before it may then decide some, but not all, of
        the rows that it covers. By default the rule may have any index but must decide all rows
        that it covers, except rows that an earlier pinned rule decides.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule
    >>> pinned = PinnedRule(Rule([Interval(0, upper=17)], "refuse"), ["age"], position=0)
    >>> print(pinned)
    IF age ≤ 17 THEN refuse (rule 1)
    """

    rule: Rule
    feature_names: tuple[str, ...]
    position: int | None = None

    def __post_init__(self) -> None:
        check_instance("rule", self.rule, Rule)
        check_integer("position", self.position, 0, optional=True)
        names = check_sequence("feature_names", self.feature_names, "names")
        used = rule_features(self.rule)
        if used and max(used) >= len(names):
            raise ValueError(
                f"feature_names must have a name for feature {max(used)}, which the pinned rule "
                f"uses, got {len(names)} names. Pass the names of all columns of the table."
            )
        # Features are ordered by name, so that equal rules of different tables are equal.
        ordered = sorted(used, key=lambda feature: str(names[feature]))
        index = {feature: i for i, feature in enumerate(ordered)}
        rule = Rule(self.rule.conditions, self.rule.output, weight=self.rule.weight)
        object.__setattr__(self, "rule", _with_features(rule, index))
        object.__setattr__(self, "feature_names", tuple(str(names[f]) for f in ordered))

    @classmethod
    def from_ruleset(
        cls, ruleset: RuleSet, index: int, *, keep_position: bool = False
    ) -> PinnedRule:
        """Pin a rule of a rule set.

        Parameters
        ----------
        ruleset : RuleSet
            The rule set.
        index : int
            Index of the rule, from 0.
        keep_position : bool, default=False
            Whether the rule must also keep its index.

        Returns
        -------
        PinnedRule
            The pinned rule.

        Raises
        ------
        ValueError
            If there is no such rule.

        Examples
        --------
        >>> from skescore.rules import Interval, Rule, RuleSet
        >>> rules = RuleSet([Rule([Interval(0, upper=17)], "refuse")], ["age"],
        ...                 task="classification")
        >>> print(PinnedRule.from_ruleset(rules, 0))
        IF age ≤ 17 THEN refuse
        """
        check_integer("index", index, 0)
        if index >= len(ruleset):
            raise ValueError(
                f"index must be below the number of rules, {len(ruleset)}, got {index}. Rules are "
                "counted from 0."
            )
        position = index if keep_position else None
        return cls(ruleset.rules[index], ruleset.feature_names, position)

    def in_table(self, feature_names: Sequence[str]) -> Rule:
        """Return the rule with the column indices of a table.

        Parameters
        ----------
        feature_names : sequence of str
            Names of the columns of the table.

        Returns
        -------
        Rule
            The rule, without statistics.
        """
        names = list(feature_names)
        return _with_features(
            self.rule, {i: names.index(name) for i, name in enumerate(self.feature_names)}
        )

    def is_rule(self, rule: Rule, feature_names: Sequence[str]) -> bool:
        """Return whether a rule of a table is the pinned rule, ignoring statistics."""
        expected = self.in_table(feature_names)
        return (
            set(expected.conditions) == set(rule.conditions)
            and expected.output == rule.output
            and expected.weight == rule.weight
        )

    def __str__(self) -> str:
        text = self.rule.to_text(self.feature_names)
        return text if self.position is None else f"{text} (rule {self.position + 1})"

    def to_dict(self) -> dict[str, Any]:
        """Return the pinned rule as JSON data, with features by name."""
        task = "regression" if isinstance(self.rule.output, LinearOutput) else "classification"
        names = self.feature_names or ("x0",)
        data = json.loads(RuleSet([self.rule], names, task=task).to_json())["rules"][0]
        data = _renamed(data, lambda index: names[index])
        return data if self.position is None else data | {"position": self.position}

    @classmethod
    def from_dict(cls, data: Any) -> PinnedRule:
        """Read a pinned rule from JSON data.

        Raises
        ------
        ValueError
            If the data do not describe a rule.
        """
        if not isinstance(data, dict):
            raise ValueError(f'a pinned rule must be an object with "if" and "then", got {data!r}.')
        data = dict(data)
        position = data.pop("position", None)
        names: dict[str, int] = {}

        def index_of(name: Any) -> int:
            if not isinstance(name, str):
                raise ValueError(f"features of a pinned rule must be names, got {name!r}.")
            return names.setdefault(name, len(names))

        numbered = _renamed(data, index_of)
        is_linear = isinstance(data.get("then"), dict)
        document = {
            "format": RULESET_FORMAT,
            "version": 2,
            "task": "regression" if is_linear else "classification",
            "feature_names": list(names) or ["x0"],
            "classes": None if is_linear else [data.get("then")],
            "ordered": True,
            "rules": [numbered],
        }
        ruleset = RuleSet.from_json(json.dumps(document))
        return cls(ruleset.rules[0], ruleset.feature_names, position)


def rule_features(rule: Rule) -> set[int]:
    """Return the features in the conditions, the output and the weight of a rule."""
    used = {feature for condition in rule.conditions for feature in condition.features}
    for part in (rule.output, rule.weight):
        if isinstance(part, LinearOutput):
            used.update(feature for feature, _ in part.terms)
    return used


def _with_features(rule: Rule, index: Mapping[int, int]) -> Rule:
    """Replace the column indices of a rule."""

    def with_terms(part: Any) -> Any:
        if not isinstance(part, LinearOutput):
            return part
        return LinearOutput(part.intercept, tuple((index[f], c) for f, c in part.terms))

    def in_condition(condition: Condition) -> Condition:
        if isinstance(condition, AtLeast):
            return AtLeast(condition.m, tuple(map(in_condition, condition.conditions)))
        if isinstance(condition, Linear):
            return replace(condition, terms=tuple((index[f], c) for f, c in condition.terms))
        return replace(condition, feature=index[condition.feature])

    conditions = tuple(map(in_condition, rule.conditions))
    return Rule(conditions, with_terms(rule.output), rule.statistics, with_terms(rule.weight))


def _renamed(data: Any, rename: Any) -> Any:
    """Rename the features in the JSON data of conditions and outputs."""
    if isinstance(data, list):
        return [_renamed(item, rename) for item in data]
    if not isinstance(data, dict):
        return data
    result = {}
    for name, value in data.items():
        if name == "feature":
            result[name] = rename(value)
        elif name == "terms" and isinstance(value, list):
            result[name] = [[rename(t[0]), *t[1:]] if isinstance(t, list) else t for t in value]
        elif name == "values":
            result[name] = value
        else:
            result[name] = _renamed(value, rename)
    return result
