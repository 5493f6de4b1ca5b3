"""Declaration of the constraints that rules must satisfy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from skescore._text import nearest
from skescore._validation import (
    check_choice,
    check_instance,
    check_integer,
    check_label,
    check_number,
    check_sequence,
)
from skescore.constraints._json import constraints_from_json, constraints_to_json
from skescore.constraints._options import read_options
from skescore.constraints._parts import named_features, select, split
from skescore.constraints._pinned import PinnedRule
from skescore.constraints._thresholds import (
    EVERY_FEATURE,
    AllowedThresholds,
    Rounding,
    check_thresholds,
)
from skescore.rules import RuleSet

#: One limit for all classes, or a limit per class (by its label as text).
ClassLimit: TypeAlias = int | Mapping[str, int]


@dataclass(frozen=True)
class Constraints:
    """Conditions that a rule set has to satisfy, independent of the extractor.

    Features are named as in the rules; for arrays without names they are ``"x0"``, ``"x1"``, ...

    Parameters
    ----------
    forbidden : sequence of str, default=()
        Features that no rule may use, neither in a condition nor in a linear output.
    required : sequence of str, default=()
        Features that at least one rule has to use.
    feature_costs : mapping of str to float, default={}
        Cost of each feature; 0 for features that are not named. Requires `max_cost`.
    max_cost : float, optional
        Largest sum of the costs of the features in the rules. Requires `feature_costs`.
    monotone : mapping of str to {"+", "-"}, default={}
        ``"+"``: a larger value of the feature, all else equal, never lowers the prediction;
        ``"-"``: never raises it. Checked for all rows of the rules' domain, or for all possible
        rows without a domain. Rows without a value of the feature are not compared.
    class_order : sequence of labels, optional
        The classes from the lowest to the highest, for `monotone` and `max_gap`. With two classes
        the default is their order in the rules, so that the second one is the positive class; with
        more classes `monotone` requires it.
    pinned : sequence of PinnedRule, default=()
        Rules that must be present unchanged.
    thresholds : mapping of str to list of float or Rounding, default={}
        Allowed bounds in conditions on a feature: a list of numbers, or numbers with a maximum
        number of decimals or significant digits (``{"decimals": 1}``, ``{"digits": 2}``). The key
        ``"*"`` is for all features that are not named.
    together : mapping of str to list of lists of values, default={}
        Categories of a feature that conditions may not separate: each condition accepts all values
        of a list or none.
    apart : mapping of str to list of lists of values, default={}
        Categories of a feature that no condition may accept together.
    max_conditions : int or mapping of label to int, optional
        Largest number of conditions per rule; with a mapping, per rule of that class.
    max_features : int or mapping of label to int, optional
        Largest number of different features in all rules; with a mapping, in the rules of a class.
    max_rules : int, optional
        Largest number of rules.
    max_rules_per_class : int or mapping of label to int, optional
        Largest number of rules of each class.
    min_support : int or float, optional
        Smallest number of rows that each rule decides; a number between 0 and 1 is a share.
    min_precision : float, optional
        Smallest share of the rows that a rule decides whose label is the class of the rule, from 0
        to 1; each rule must then decide at least one row. Classification only. Labels are those
        passed with the rows: the black box's predictions in :func:`constrain` and in searches.
    max_gap : mapping of str to float, default={}
        Largest difference between the groups of a column (its values) in the share of rows that are
        predicted as the highest class of `class_order` (of any class, if there are more than two
        and no `class_order`), or in the mean prediction of a regression. Rows without a prediction
        count for no class; in regression they are ignored, as are groups of only such rows. A gap
        may exceed the limit by a rounding error of 10⁻¹² of the larger share or mean.

    Raises
    ------
    ValueError, TypeError
        If a parameter is invalid; the message names it, its value, the rule and the remedy.

    Examples
    --------
    >>> from skescore.constraints import Constraints
    >>> constraints = Constraints(
    ...     forbidden=["age"], monotone={"income": "+"}, thresholds={"income": {"digits": 2}}
    ... )
    >>> print(constraints)
    forbidden: age
    monotone: income +
    thresholds: income 2 digits
    >>> Constraints.from_json(constraints.to_json()) == constraints
    True
    """

    forbidden: Sequence[str] = ()
    required: Sequence[str] = ()
    feature_costs: Mapping[str, float] = field(default_factory=dict)
    max_cost: float | None = None
    monotone: Mapping[str, str] = field(default_factory=dict)
    class_order: Sequence[Any] | None = None
    pinned: Sequence[PinnedRule] = ()
    thresholds: Mapping[str, AllowedThresholds] = field(default_factory=dict)
    together: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    apart: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    max_conditions: ClassLimit | None = None
    max_features: ClassLimit | None = None
    max_rules: int | None = None
    max_rules_per_class: ClassLimit | None = None
    min_support: float | None = None
    min_precision: float | None = None
    max_gap: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("forbidden", "required"):
            put(self, name, _check_names(name, getattr(self, name)))
        put(self, "feature_costs", _check_numbers("feature_costs", self.feature_costs))
        put(self, "max_gap", _check_numbers("max_gap", self.max_gap))
        if bool(self.feature_costs) != (self.max_cost is not None):
            raise ValueError(
                "feature_costs and max_cost require each other, got "
                f"feature_costs={self.feature_costs!r} and max_cost={self.max_cost!r}."
            )
        put(self, "monotone", _check_mapping("monotone", self.monotone))
        for feature, direction in self.monotone.items():
            check_choice(f"monotone[{feature!r}]", direction, ("+", "-"))
        put(self, "class_order", _check_class_order(self.class_order))
        put(self, "pinned", check_sequence("pinned", self.pinned, "pinned rules"))
        for pinned in self.pinned:
            check_instance("pinned", pinned, PinnedRule)
        thresholds = _check_mapping("thresholds", self.thresholds)
        put(self, "thresholds", {f: check_thresholds(f, t) for f, t in thresholds.items()})
        for name in ("together", "apart"):
            groups = _check_mapping(name, getattr(self, name))
            put(self, name, {f: _check_groups(f"{name}[{f!r}]", g) for f, g in groups.items()})
        self._check_limits()

    def _check_limits(self) -> None:
        """Check all numbers that limit sizes and shares."""
        put = object.__setattr__
        for name in ("max_conditions", "max_features", "max_rules_per_class"):
            put(self, name, _check_class_limit(name, getattr(self, name)))
        put(self, "max_rules", check_integer("max_rules", self.max_rules, 1, optional=True))
        if self.max_cost is not None:
            put(self, "max_cost", check_number("max_cost", self.max_cost, 0, finite=True))
        if self.min_support is not None:
            put(self, "min_support", _check_support(self.min_support))
        if self.min_precision is not None:
            share = check_number("min_precision", self.min_precision, 0, 1)
            put(self, "min_precision", share)

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __bool__(self) -> bool:
        return bool(self.parts())

    def __str__(self) -> str:
        return "\n".join(self.parts()) or "no constraints"

    def parts(self) -> dict[str, Constraints]:
        """Split into single constraints.

        Returns
        -------
        dict of str to Constraints
            Single constraints by the label that violations and conflicts use.

        Examples
        --------
        >>> list(Constraints(forbidden=["age", "sex"], min_support=10).parts())
        ['forbidden: age', 'forbidden: sex', 'min_support: 10']
        """
        return split(self)

    def only(self, labels: Iterable[str]) -> Constraints:
        """Keep some of the single constraints.

        Parameters
        ----------
        labels : iterable of str
            Labels of :meth:`parts`.

        Returns
        -------
        Constraints
            Constraints without the others.

        Raises
        ------
        ValueError
            If a label does not exist.

        Examples
        --------
        >>> print(Constraints(forbidden=["age", "sex"], min_support=10).only(["forbidden: sex"]))
        forbidden: sex
        """
        return select(self, labels)

    def without(self, *labels: str) -> Constraints:
        """Drop some of the single constraints.

        Parameters
        ----------
        *labels : str
            Labels of :meth:`parts`.

        Returns
        -------
        Constraints
            Constraints without these.

        Examples
        --------
        >>> print(Constraints(forbidden=["age", "sex"], min_support=10).without("forbidden: sex"))
        forbidden: age
        min_support: 10
        """
        self.only(labels)  # reports a label that does not exist
        return self.only([label for label in self.parts() if label not in labels])

    def replace(self, **changes: Any) -> Constraints:
        """Return a copy with some parameters changed.

        Examples
        --------
        >>> print(Constraints(forbidden=["age"]).replace(required=["income"]))
        forbidden: age
        required: income
        """
        return replace(self, **changes)

    def affords(self, features: Iterable[str]) -> bool:
        """Return whether rules may use features together, given their costs.

        A sum may exceed `max_cost` by a rounding error of 10⁻¹².

        Examples
        --------
        >>> Constraints(feature_costs={"a": 0.1, "b": 0.2}, max_cost=0.3).affords(["a", "b"])
        True
        """
        if self.max_cost is None:
            return True
        total = sum(self.feature_costs.get(feature, 0.0) for feature in features)
        return total <= self.max_cost * (1 + 1e-12)

    def allowed_thresholds(self, feature: str) -> AllowedThresholds | None:
        """Return the allowed bounds in conditions on a feature; None if all are allowed."""
        return self.thresholds.get(feature, self.thresholds.get(EVERY_FEATURE))

    def smallest_support(self, n_rows: int) -> int:
        """Return the smallest number of rows per rule, given the number of all rows.

        Examples
        --------
        >>> Constraints(min_support=0.05).smallest_support(150)
        8
        """
        from math import ceil

        if self.min_support is None:
            return 0
        if self.min_support >= 1:
            return int(self.min_support)
        return max(1, ceil(round(self.min_support * n_rows, 9)))

    def check_names(
        self, feature_names: Sequence[str], classes: Sequence[Any] | None, columns: Any = None
    ) -> None:
        """Raise a ValueError if a constraint names a feature or class that does not exist.

        Parameters
        ----------
        feature_names : sequence of str
            Names of the features of the rules.
        classes : sequence of labels or None
            Classes of the rules; None for a regression.
        columns : sequence of str, optional
            Names of the columns of the rows, for `max_gap`.
        """
        for label, feature in named_features(self):
            if feature not in feature_names:
                raise unknown_name(f"The constraint {label!r}", "feature", feature, feature_names)
        for column in self.max_gap:
            if columns is not None and column not in columns:
                raise unknown_name("max_gap", "column", column, columns)
        self._check_classes(classes)

    def _check_classes(self, classes: Sequence[Any] | None) -> None:
        if classes is None:
            for name in ("class_order", "max_rules_per_class", "min_precision"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"{name} is for classification, but the rules predict numbers: omit it."
                    )
        labels = [] if classes is None else [str(label) for label in classes]
        for name in ("max_conditions", "max_features", "max_rules_per_class"):
            limit = getattr(self, name)
            for label in limit if isinstance(limit, Mapping) else ():
                if label not in labels:
                    raise unknown_name(name, "class", label, labels)
        if classes is None:
            return
        order = self.class_order
        if order is not None and (len(order) != len(classes) or set(order) != set(classes)):
            raise ValueError(
                f"class_order must list every class once, from the lowest to the highest: "
                f"{list(classes)!r}, got {list(order)!r}."
            )
        if self.monotone and order is None and len(classes) > 2:
            raise ValueError(
                f"monotone requires class_order with the {len(classes)} classes {list(classes)!r} "
                "from the lowest to the highest, got None."
            )

    def ranked_classes(self, ruleset: RuleSet) -> tuple[Any, ...] | None:
        """Return the classes of rules from the lowest to the highest; None for a regression."""
        if ruleset.classes is None:
            return None
        return tuple(ruleset.classes if self.class_order is None else self.class_order)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the constraints as JSON, without loss; parameters with defaults are omitted."""
        return constraints_to_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Constraints:
        """Read constraints from JSON.

        Parameters
        ----------
        text : str
            JSON object whose fields are the parameters of the class.

        Returns
        -------
        Constraints
            The constraints.

        Raises
        ------
        ValueError
            If the text is not JSON, or has an unknown field or an invalid value.

        Examples
        --------
        >>> text = '{"forbidden": ["age"], "monotone": {"income": "+"}, "min_support": 20}'
        >>> print(Constraints.from_json(text))
        forbidden: age
        monotone: income +
        min_support: 20
        """
        return constraints_from_json(cls, text)

    @classmethod
    def from_options(cls, **options: Any) -> Constraints:
        """Read constraints from options of the command line.

        Parameters
        ----------
        **options
            ``constraints``: path of a JSON file, which the other options extend or override.
            ``forbid``, ``require``: feature names. ``feature_cost``: ``"age:2"``. ``monotone``:
            ``"income:+"``. ``class_order``: ``"low,mid,high"``. ``thresholds``: ``"age:18,65"``,
            ``"income:2 digits"`` or ``"*:1 decimal"``. ``together``, ``apart``:
            ``"color:red,blue"``. ``pin``: ``"RULES.json:2"`` for rule 2 of a file, and
            ``"RULES.json:2@1"`` to pin it at position 1. ``max_gap``: ``"sex:0.1"``. Limits are
            numbers, or numbers by class: ``"yes:3,no:2"``. None and empty options are ignored.

        Returns
        -------
        Constraints
            The constraints; classes and categories are numbers if they look like 2 or 0.5, and
            otherwise strings, such as the code 02.

        Raises
        ------
        ValueError
            If an option cannot be read.

        Examples
        --------
        >>> options = {"forbid": ["age"], "monotone": ["income:+"], "max_conditions": "3"}
        >>> print(Constraints.from_options(**options))
        forbidden: age
        monotone: income +
        max_conditions: 3
        """
        return read_options(cls, options)


def unknown_name(owner: str, kind: str, name: str, names: Iterable[str]) -> ValueError:
    """Return the error for a name that does not exist, with a suggestion."""
    name_texts = [str(n) for n in names]
    suggestion = nearest(name, name_texts)
    hint = f" Did you mean {suggestion!r}?" if suggestion else ""
    shown = ", ".join(name_texts[:20]) + (", ..." if len(name_texts) > 20 else "")
    plural = "classes" if kind == "class" else f"{kind}s"
    return ValueError(f"{owner} names the {kind} {name!r}, but the {plural} are {shown}.{hint}")


def _check_name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(
            f"{name} must name features by strings, got {value!r}. Columns without names are "
            "'x0', 'x1', ..."
        )
    return str(value)


def _check_names(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of feature names, got {value!r}: use [{value!r}].")
    names = check_sequence(name, value, "feature names")
    return tuple(dict.fromkeys(_check_name(name, n) for n in names))


def _check_mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping with feature names as keys, got {value!r}.")
    return {_check_name(name, feature): entry for feature, entry in value.items()}


def _check_numbers(name: str, value: Any) -> dict[str, float]:
    return {
        feature: check_number(f"{name}[{feature!r}]", number, 0, finite=True)
        for feature, number in _check_mapping(name, value).items()
    }


def _check_class_order(value: Any) -> tuple[Any, ...] | None:
    if value is None:
        return None
    labels = check_sequence("class_order", value, "class labels")
    labels = tuple(check_label("class_order", label) for label in labels)
    if len(set(labels)) != len(labels) or len(labels) < 2:
        raise ValueError(
            f"class_order must hold at least two different labels, got {list(labels)!r}."
        )
    return labels


def _check_groups(name: str, value: Any) -> tuple[tuple[Any, ...], ...]:
    remedy = f"Write {name}=[['a', 'b'], ...]."
    groups = check_sequence(name, value, "lists of values", remedy=remedy)
    checked = []
    for group in groups:
        values = check_sequence(name, group, "values", remedy=remedy)
        values = tuple(dict.fromkeys(check_label(name, v) for v in values))
        if len(values) < 2:
            raise ValueError(f"{name} must list at least two values per group, got {group!r}.")
        checked.append(values)
    return tuple(checked)


def _check_class_limit(name: str, value: Any) -> ClassLimit | None:
    smallest = 0 if name == "max_rules_per_class" else 1
    if isinstance(value, Mapping):
        limits = {str(k): check_integer(f"{name}[{k!r}]", v, smallest) for k, v in value.items()}
        return limits or None
    return check_integer(name, value, 1, optional=True)


def _check_support(value: Any) -> float:
    number = check_number("min_support", value, 0, finite=True)
    if number >= 1 and not number.is_integer():
        raise ValueError(
            f"min_support must be an integer number of rows or a share below 1, got {value!r}."
        )
    if number == 0:
        raise ValueError("min_support must be more than 0, got 0; omit it for no limit.")
    return int(number) if number >= 1 else number


__all__ = ["ClassLimit", "Constraints", "Rounding", "unknown_name"]
