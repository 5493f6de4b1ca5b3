"""Conversion of the JSON of the package decision-rules to rules with the same predictions."""

from __future__ import annotations

import copy
import json
import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skescore._optional import import_optional
from skescore._text import listed
from skescore._validation import (
    check_choice,
    check_integer,
    check_label,
    check_number,
    label_order,
    python_value,
)
from skescore.rules._conditions import AtLeast, Condition, Interval, Linear, OneOf
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet


def part(data: Any, key: str, kind: Any, location: str) -> Any:
    """Return a field of the JSON; raise a ValueError if it is missing or has another type."""
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = {Mapping: "an object", list: "a list", str: "a text", bool: "true or false"}
        raise ValueError(
            f"The JSON has a fault in {location}: {key!r} must be {names.get(kind, 'a number')}, "
            f"got {value!r}."
        )
    return value


class Premises:
    """Converter of premises to conditions."""

    def __init__(
        self,
        names: Sequence[str],
        categories: Mapping[str, Sequence[Any]] | None,
        *,
        as_evaluated: bool,
    ) -> None:
        self.names = names
        self.values = {}
        for name, values in (categories or {}).items():
            if name not in names:
                raise ValueError(
                    f"categories names {name!r}, which is not one of the features {listed(names)}."
                )
            self.values[names.index(name)] = {str(value): value for value in values}
        self.as_evaluated = as_evaluated
        self.numeric_texts: dict[str, str] = {}
        self.ignored_bounds: list[str] = []

    def conditions(self, data: Any, location: str) -> list[Condition]:
        """Convert a premise to a conjunction of conditions."""
        kind = part(data, "type", str, location)
        negated = bool(data.get("negated") or False)
        if kind == "compound":
            return self._compound(data, negated, location)
        features = [self._feature(index) for index in part(data, "attributes", list, location)]
        if kind == "elementary_numerical" and len(features) == 1:
            return self._interval(data, features[0], negated, location)
        if kind == "elementary_nominal" and len(features) == 1:
            values = [part(data, "value", str, location)]
        elif kind == "discrete_set" and len(features) == 1:
            values = part(data, "values_set", list, location)
        elif kind == "attributes" and len(features) == 2:
            return [_relation(features, part(data, "operator", str, location), negated)]
        else:
            raise ValueError(f"conditions of the type {kind!r} cannot be expressed in a RuleSet.")
        feature = features[0]
        return [OneOf(feature, tuple(self._value(feature, v) for v in values), negated=negated)]

    def _feature(self, index: Any) -> int:
        feature = check_integer("an attribute", index)
        if not 0 <= feature < len(self.names):
            raise ValueError(
                f"attributes must be column indices below {len(self.names)}, got {index!r}."
            )
        return feature

    def _compound(self, data: Any, negated: bool, location: str) -> list[Condition]:
        if negated:
            raise ValueError("a negated compound condition cannot be expressed in a RuleSet.")
        parts = [self.conditions(c, location) for c in part(data, "subconditions", list, location)]
        operator = part(data, "operator", str, location)
        if operator == "CONJUNCTION" and parts:
            return [condition for side in parts for condition in side]
        if operator == "CONJUNCTION":
            raise ValueError("without conditions it never holds in decision-rules: remove it.")
        if operator != "ALTERNATIVE":
            raise ValueError(f"operator must be CONJUNCTION or ALTERNATIVE, got {operator!r}.")
        if not parts or not all(parts):
            return []
        sides = [side[0] if len(side) == 1 else AtLeast(len(side), tuple(side)) for side in parts]
        return [AtLeast(1, tuple(sides))]

    def _interval(self, data: Any, feature: int, negated: bool, location: str) -> list[Condition]:
        lower = _bound(data.get("left"), -math.inf)
        upper = _bound(data.get("right"), math.inf)
        lower_closed = part(data, "left_closed", bool, location)
        upper_closed = part(data, "right_closed", bool, location)
        if self.as_evaluated and 0 in (lower, upper) and lower > -math.inf:
            self.ignored_bounds.append(location)
            lower = -math.inf
            # With both sides unbounded, the condition still requires an observed value.
            if upper == math.inf:
                upper, upper_closed = sys.float_info.max, True
        if not negated:
            return [Interval(feature, lower, upper, lower_closed, upper_closed)]
        sides = []
        if lower > -math.inf:
            sides.append(Interval(feature, upper=lower, upper_closed=not lower_closed))
        if upper < math.inf:
            sides.append(Interval(feature, lower=upper, lower_closed=not upper_closed))
        if not sides:
            raise ValueError("the negation of a condition without bounds never holds.")
        return [sides[0] if len(sides) == 1 else AtLeast(1, tuple(sides))]

    def _value(self, feature: int, text: Any) -> Any:
        values = self.values.get(feature)
        if values is None:
            if isinstance(text, str) and _looks_like_number(text):
                self.numeric_texts.setdefault(self.names[feature], text)
            return text
        if str(text) not in values:
            raise ValueError(
                f"{text!r} is not str(value) of any of the categories that were passed for "
                f"{self.names[feature]!r}: {listed(list(values.values()))}."
            )
        return values[str(text)]

    def warn(self) -> None:
        """Issue warnings about texts that look like numbers, and about ignored bounds."""
        if self.numeric_texts:
            examples = ", ".join(f"{name} = {text!r}" for name, text in self.numeric_texts.items())
            warnings.warn(
                f"Values of the JSON look like numbers but are read as texts ({examples}). Pass "
                "categories={name: values} with the values of these features.",
                UserWarning,
                stacklevel=3,
            )
        if self.ignored_bounds:
            warnings.warn(
                "decision-rules ignores a lower bound if a bound is 0, and so do the converted "
                f"rules ({listed(self.ignored_bounds, 3)}). Pass zero_bounds='written' to use "
                "these bounds.",
                UserWarning,
                stacklevel=3,
            )


def _bound(value: Any, free: float) -> float:
    return free if value is None else check_number("a bound", value)


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("True", "False")
    return True


def _relation(features: Sequence[int], operator: str, negated: bool) -> Condition:
    """Return a comparison of two numeric features as a bound of their difference."""
    opposite = {"=": "!=", "!=": "=", ">": "<=", "<=": ">", "<": ">=", ">=": "<"}
    check_choice("operator", operator, opposite)
    operator = opposite[operator] if negated else operator
    terms = ((features[0], 1.0), (features[1], -1.0))
    below = Linear(terms, upper=0.0, upper_closed=operator == "<=")
    above = Linear(terms, lower=0.0, lower_closed=operator == ">=")
    if operator == "=":
        return Linear(terms, 0.0, 0.0, True, True)
    if operator == "!=":
        return AtLeast(1, (below, above))
    return below if operator in ("<", "<=") else above


STRATEGIES = ("vote", "best_rule", "first")
_STRATEGY_CLASSES = {
    "VotingPredictionStrategy": "vote",
    "BestRulePredictionStrategy": "best_rule",
    "FirstRuleCoveringStrategy": "first",
}
#: Magnitude up to which decision-rules ignores sums of votes.
_NEGLIGIBLE_VOTE = 1e-8


def read_decision_rules(
    model: Any,
    *,
    strategy: str | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    zero_bounds: str = "evaluated",
    domain: Domain | None = None,
) -> RuleSet:
    """Convert a rule set of decision-rules, or its JSON, to rules with the same predictions.

    Use it for the result of ``JSONSerializer.serialize(ruleset)`` of decision-rules, as a
    dictionary or text, for which the package is not required.

    Parameters
    ----------
    model : dict, str or rule set of decision-rules
        Rule set for classification or regression.
    strategy : {"vote", "best_rule", "first"}, optional
        Method of prediction, which is not in the JSON: all rules vote with their weights, the rule
        with the largest weight predicts, or the first rule that holds. By default the rule set's
        strategy; ``"vote"`` for JSON.
    categories : mapping from str to sequence, optional
        Values of categorical features, by name. Each text in the JSON is replaced by the value that
        ``str`` converts to it. By default values are texts, except for features of a rule set
        that are compared with sets of numbers (``DiscreteSetCondition``). ``NominalCondition``
        converts all values to text, so its numbers must be passed here.
    zero_bounds : {"evaluated", "written"}, default="evaluated"
        decision-rules 1.9 ignores the lower bound of a condition if its lower or upper bound is
        exactly 0: ``<0, 5)`` is evaluated as ``x < 5``. ``"evaluated"`` converts such conditions as
        they are evaluated, so that the predictions are the same; ``"written"`` as they are written.
    domain : Domain, optional
        Box for which the rules are intended.

    Returns
    -------
    RuleSet
        Voting rules, or an ordered list for the other strategies.

    Raises
    ------
    TypeError
        If the model is neither JSON nor a rule set.
    ValueError
        If the JSON is invalid (the message states the location); is for survival rules; lacks the
        weights that the strategy requires; or has content that a RuleSet cannot express: negated
        compound conditions, comparisons of nominal features, and weights that decision-rules counts
        differently.

    Warns
    -----
    UserWarning
        If rules with weight 0 are omitted, because decision-rules ignores them; if values look like
        numbers and their feature is not in `categories`; or if decision-rules ignores a bound.

    Notes
    -----
    - Of labels with equal votes, the one that sorts first is predicted, as in decision-rules. A
      disabled default conclusion becomes an abstaining fallback: ``""``, or NaN in regression.
    - decision-rules truncates a default label that is longer than all other predicted labels,
      treats missing values as the text ``nan``, and evaluates ``!=`` of two features as true if one
      is missing. The converted rules do not.
    - In decision-rules, votes that cancel each other out to within 1e-8 do not count.
    - In regression, decision-rules adds in another order, so predictions are only nearly equal.

    Examples
    --------
    >>> rules = read_decision_rules({
    ...     "meta": {"attributes": ["width"], "decision_attribute": "kind",
    ...              "decision_attribute_distribution": {"a": 8, "b": 9},
    ...              "default_conclusion": {"value": "b"}},
    ...     "rules": [{"premise": {"type": "elementary_numerical", "attributes": [0],
    ...                            "left": 1.5, "right": None,
    ...                            "left_closed": True, "right_closed": False},
    ...                "conclusion": {"value": "a"}, "coverage": {"p": 8, "n": 1},
    ...                "voting_weight": 0.5}],
    ... })
    >>> print(rules[0])
    IF width ≥ 1.5 THEN a   [weight 0.5, 9 rows, 89 % right (data)]
    """
    data, own_strategy, set_values = _json_of(model)
    if set_values:
        categories = set_values | dict(categories or {})
    strategy = own_strategy if strategy is None else strategy
    check_choice("strategy", strategy, STRATEGIES)
    check_choice("zero_bounds", zero_bounds, ("evaluated", "written"))
    meta = part(data, "meta", Mapping, "the JSON")
    names = [str(name) for name in part(meta, "attributes", list, "meta")]
    premises = Premises(names, categories, as_evaluated=zero_bounds == "evaluated")
    classification = "decision_attribute_distribution" in meta
    if not classification and "y_train_median" not in meta:
        raise ValueError(
            "The JSON is neither for classification (meta: decision_attribute_distribution) nor "
            "for regression (meta: y_train_median). Survival rules conclude no label or number."
        )
    rule_records = part(data, "rules", list, "the JSON")
    rules = [_rule(rule, f"rule {number}", premises) for number, rule in enumerate(rule_records, 1)]
    premises.warn()
    classes = None
    if classification:
        classes = _classes(meta, [rule.output for rule in rules])
        fallback = _default_class(meta, classes)
    else:
        fallback = _default_number(meta)
    rules = [
        Rule(rule.conditions, rule.output, _statistics(data, rule.output, classes))
        for rule, data in zip(rules, rule_records, strict=True)
    ]
    if strategy != "first":
        rules = _add_weights(rules, rule_records, strategy, classes)
    return RuleSet(
        rules,
        names,
        task="classification" if classification else "regression",
        classes=classes,
        domain=domain,
        ordered=strategy != "vote",
        fallback=fallback,
        voting=("votes" if classification else "mean") if strategy == "vote" else None,
        reference="data",
    )


def _json_of(model: Any) -> tuple[Mapping[str, Any], str, dict[str, list[Any]]]:
    """Return the JSON, and the strategy and numbers in sets, which only a rule set contains."""
    if isinstance(model, str):
        try:
            model = json.loads(model)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(
                f"model must be JSON of decision-rules, got text that is no JSON: {error}"
            ) from error
        if not isinstance(model, Mapping):
            raise ValueError(f"The JSON must hold an object, got {type(model).__name__}.")
    if isinstance(model, Mapping):
        return model, "vote", {}
    if type(model).__module__.partition(".")[0] != "decision_rules":
        raise TypeError(
            "model must be a rule set of decision-rules or its JSON (dict or str), got "
            f"{type(model).__name__}."
        )
    if not hasattr(model, "rules") or type(model).__name__ == "SurvivalRuleSet":
        raise ValueError(
            "model must be a classification or regression rule set of decision-rules, got "
            f"{type(model).__name__}."
        )
    strategy_class = getattr(model, "_prediction_strategy_class", None)
    strategy = "vote"
    if strategy_class is not None:
        strategy = _STRATEGY_CLASSES.get(strategy_class.__name__, strategy_class.__name__)
    package = import_optional(
        "decision_rules.serialization", extra="decision-rules", purpose="Reading its rule sets"
    )
    set_values: dict[str, list[Any]] = {}
    if any(
        not isinstance(v, str) for condition in _set_conditions(model) for v in condition.values_set
    ):
        model = copy.deepcopy(model)
        for condition in _set_conditions(model):
            values = [python_value(value) for value in condition.values_set]
            set_values.setdefault(str(model.column_names[condition.column_index]), []).extend(
                values
            )
            condition.values_set = {str(value) for value in values}
    try:
        return package.JSONSerializer.serialize(model), strategy, set_values
    except (TypeError, ValueError, AttributeError) as error:  # pydantic reports missing values
        raise ValueError(
            f"The rule set of decision-rules ({type(model).__name__}) cannot be converted to "
            f"JSON: {type(error).__name__}: {error}. Compute finite weights and coverages by "
            "update(...), or pass its JSON."
        ) from error


def _set_conditions(model: Any) -> Iterator[Any]:
    """Yield the conditions of a rule set that compare with sets of values."""
    stack = [rule.premise for rule in model.rules]
    while stack:
        condition = stack.pop()
        stack += getattr(condition, "subconditions", ())
        if hasattr(condition, "values_set"):
            yield condition


def _rule(data: Any, location: str, premises: Premises) -> Rule:
    """Return a rule without weight and statistics."""
    conclusion = part(data, "conclusion", Mapping, location)
    try:
        output = check_label("its conclusion", python_value(conclusion.get("value")))
        conditions = premises.conditions(part(data, "premise", Mapping, location), location)
        return Rule(tuple(conditions), output)
    except RecursionError as error:
        raise ValueError(f"The JSON has a fault in {location}: it is nested too deeply.") from error
    except (TypeError, ValueError) as error:
        if str(error).startswith("The JSON"):
            raise
        raise ValueError(f"The JSON has a fault in {location}: {error}") from error


def _statistics(
    data: Mapping[str, Any], output: Any, classes: Sequence[Any] | None
) -> RuleStatistics | None:
    """Return the training statistics, with class counts if the JSON determines them."""
    coverage = data.get("coverage")
    if not isinstance(coverage, Mapping) or coverage.get("p") is None or coverage.get("n") is None:
        return None
    right, wrong = _number("p", coverage["p"]), _number("n", coverage["n"])
    if classes is None:
        mean, standard_deviation = (
            value if isinstance(value, int | float) and math.isfinite(value) else None
            for value in (
                data["conclusion"].get(f"train_covered_y_{name}") for name in ("mean", "std")
            )
        )
        return RuleStatistics(right + wrong, None, mean, standard_deviation)
    counts = None
    if not wrong or len(classes) == 2:
        counts = tuple(right if label == output else wrong for label in classes)
    return RuleStatistics(right + wrong, counts)


def _classes(meta: Mapping[str, Any], outputs: Sequence[Any]) -> list[Any]:
    """Return all labels, in the order that decides between equal votes."""
    labels = list(outputs)
    for key in part(meta, "decision_attribute_distribution", Mapping, "meta"):
        labels.append(_label(python_value(key), outputs))
    default = _default(meta)
    if default not in (None, ""):
        labels.append(check_label("The value of default_conclusion", default))
    return sorted(set(labels), key=label_order)


def _label(key: Any, outputs: Sequence[Any]) -> Any:
    """Return the label of a key, because keys in JSON are always texts."""
    kinds = {type(output) for output in outputs}
    if not isinstance(key, str) or str in kinds or len(kinds) != 1:
        return key
    try:
        label = json.loads(key.lower() if key in ("True", "False") else key)
    except (ValueError, RecursionError):
        return key
    if not isinstance(label, bool | int | float):
        return key
    kind = kinds.pop()
    return float(label) if kind is float and type(label) is int else label


def _default(meta: Mapping[str, Any]) -> Any:
    conclusion = meta.get("default_conclusion")
    if conclusion is None:
        return None
    if not isinstance(conclusion, Mapping):
        raise ValueError(
            "The JSON has a fault in meta: 'default_conclusion' must be an object, got "
            f"{conclusion!r}."
        )
    value = python_value(conclusion.get("value"))
    if not isinstance(value, str | bool | int | float | None):
        raise ValueError(
            "The JSON has a fault in meta: the value of default_conclusion must be a str, int, "
            f"float or bool, got {value!r}."
        )
    return value


def _number(name: str, value: Any, *, finite: bool = False) -> Any:
    """Return a number of the JSON."""
    try:
        return check_number(name, python_value(value), finite=finite)
    except TypeError as error:
        raise ValueError(f"The JSON has a fault: {error}") from error


def _default_class(meta: Mapping[str, Any], classes: Sequence[Any]) -> Fallback:
    default = _default(meta)
    if default in classes:
        return Fallback(default)
    counts = dict.fromkeys(classes, 0.0)
    for key, count in meta["decision_attribute_distribution"].items():
        counts[_label(python_value(key), classes)] = _number("a count", count)
    majority = max(reversed(classes), key=lambda label: counts[label])
    if default is None:
        return Fallback(majority)
    return Fallback(majority, policy="abstain", abstain_label="")


def _default_number(meta: Mapping[str, Any]) -> Fallback:
    median = _number("y_train_median", meta["y_train_median"], finite=True)
    if meta.get("default_conclusion") is None:
        return Fallback(median)
    default = _default(meta)
    if default is None or default != default:
        return Fallback(median, policy="abstain")
    return Fallback(_number("the default conclusion", default, finite=True))


def _add_weights(
    rules: Sequence[Rule], rule_records: Sequence[Any], strategy: str, classes: Sequence[Any] | None
) -> list[Rule]:
    """Return the rules with the weights that the strategy uses."""
    weights = [python_value(rule.get("voting_weight")) for rule in rule_records]
    for number, weight in enumerate(weights, 1):
        if weight is None:
            raise ValueError(
                f"Rule {number} of the JSON has no voting_weight, which strategy={strategy!r} "
                "needs: serialize in the mode 'full' after update(...), or pass strategy='first'."
            )
        _number(f"voting_weight of rule {number}", weight, finite=True)
    if classes is None and strategy == "vote":
        return [_with_weight(rule, weight) for rule, weight in zip(rules, weights, strict=True)]
    pairs = [(r, weight) for r, weight in zip(rules, weights, strict=True) if weight != 0]
    without_weight = [number for number, weight in enumerate(weights, 1) if weight == 0]
    # If every class has a rule that votes for it, a class with a negative sum is never predicted.
    may_be_negative = strategy == "vote" and {r.output for r, _ in pairs} == set(classes or ())
    bad = [w for _, w in pairs if abs(w) <= _NEGLIGIBLE_VOTE or (w < 0 and not may_be_negative)]
    if bad:
        raise ValueError(
            f"A rule of the JSON has the voting_weight {bad[0]!r}, which decision-rules counts in "
            "a way that a RuleSet cannot repeat. Remove the rule, or pass strategy='first'."
        )
    if without_weight:
        warnings.warn(
            f"Rules with the voting_weight 0 are omitted ({listed(without_weight)}): "
            "decision-rules predicts its default if no other rule holds.",
            UserWarning,
            stacklevel=3,
        )
    if strategy == "best_rule":
        return [rule for rule, _ in sorted(pairs, key=lambda pair: -pair[1])]
    return [_with_weight(*pair) for pair in pairs]


def _with_weight(rule: Rule, weight: float) -> Rule:
    return Rule(rule.conditions, rule.output, rule.statistics, weight)
