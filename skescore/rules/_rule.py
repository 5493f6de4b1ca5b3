"""Rules: a premise, a conclusion and statistics of the covered rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from skescore._validation import check_feature, check_flag, check_label, check_number
from skescore.rules._boxes import BoxTable
from skescore.rules._conditions import (
    Columns,
    Condition,
    Interval,
    OneOf,
    normalize,
    truth_table,
)
from skescore.rules._text import (
    NumberFormat,
    format_label,
    format_number,
    linear_text,
    output_number,
    percent_text,
    plain_number,
)


@dataclass(frozen=True, slots=True)
class LinearOutput:
    """Affine function of the features, as the output of a regression rule.

    Parameters
    ----------
    intercept : float
        Value if all features are 0.
    terms : iterable of (int, float), default=()
        Pairs of column index and coefficient. Coefficients of repeated features are summed, and
        zeros are dropped.

    Examples
    --------
    >>> print(LinearOutput(1.5, [(0, 2.0), (2, -0.25)]))
    1.5 + 2·x0 - 0.25·x2
    """

    intercept: float
    terms: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        summed: dict[int, float] = {}
        for feature, coefficient in self.terms:
            feature = check_feature(feature)
            coefficient = check_number("coefficient", coefficient, finite=True)
            summed[feature] = check_number(
                "the sum of coefficients", summed.get(feature, 0.0) + coefficient, finite=True
            )
        terms = tuple((f, c) for f, c in sorted(summed.items()) if c != 0)
        object.__setattr__(
            self, "intercept", check_number("intercept", self.intercept, finite=True)
        )
        object.__setattr__(self, "terms", terms)

    def evaluate(self, columns: Columns, n_rows: int) -> np.ndarray:
        """Evaluate the function on every row."""
        total = np.full(n_rows, self.intercept)
        for feature, coefficient in self.terms:
            total += coefficient * np.asarray(columns(feature), dtype=float)
        return total

    def number_texts(self, domain: Any = None) -> tuple[str, list[str]]:
        """Write the intercept and the absolute value of each coefficient.

        Parameters
        ----------
        domain : Domain, optional
            Domain of the function. The number of digits ensures that rounding changes no value in
            the domain by more than 1/1000 of the range of the function. By default, numbers have
            four significant digits.

        Returns
        -------
        tuple of str and list of str
        """
        if domain is None:
            texts = [format_number(abs(c)) for _, c in self.terms]
            return format_number(self.intercept), texts
        extent = sum(abs(c) * domain.ranges[f] for f, c in self.terms)
        allowed = extent / (2000 * (len(self.terms) + 1))

        def text(value: float, largest: float) -> str:
            short = format_number(value)
            if not 0 < largest < math.inf or not 0 < allowed < math.inf:
                return short
            if abs(float(short) - value) * largest <= allowed:
                return short
            return format_number(value, math.ceil(math.log10(largest) - math.log10(allowed)))

        sizes = [
            text(abs(c), max(abs(domain.lower[f]), abs(domain.upper[f]))) for f, c in self.terms
        ]
        return text(self.intercept, 1.0), sizes

    def to_text(self, names: Sequence[str] | None = None, domain: Any = None) -> str:
        """Write the function with the given feature names; see :meth:`number_texts`."""
        constant, sizes = self.number_texts(domain)
        if not self.terms:
            return constant
        text = linear_text(self.terms, sizes, names)
        if self.intercept == 0:
            return text
        return f"{constant} - {text[1:]}" if text.startswith("-") else f"{constant} + {text}"

    def __str__(self) -> str:
        return self.to_text()


#: Text after the share of a rule's class, by the labels that statistics are counted from.
REFERENCES = {
    "black_box": "agree with the model",
    "data": "right (data)",
    None: "of this class",
}

#: Text before the standard deviation of the counted labels.
_SPREADS = {"black_box": "predictions of the model ± ", "data": "target ± ", None: "± "}

#: Arrays of statistics in :class:`Conclusions`: one value or one row of class counts per rule.
_STATISTICS = (
    "n_rows",
    "class_counts",
    "mean",
    "standard_deviation",
    "target_counts",
    "model_error",
    "target_error",
)

#: Output of a rule: a class label, a number, or an affine function of the features.
Output: TypeAlias = str | int | float | bool | LinearOutput


@dataclass(frozen=True, slots=True)
class RuleStatistics:
    """Statistics of the rows that a rule predicts.

    In an unordered set whose rules may overlap, the statistics are of all rows that the rule
    covers.

    Parameters
    ----------
    n_rows : float
        Number of training rows of the rule (sum of weights if rows have weights).
    class_counts : tuple of float, optional
        Classification: number of training rows and queried points of each class, in the order of
        the rule set's classes. The rule set's `reference` states which labels were counted.
    mean, standard_deviation : float, optional
        Regression: mean and population standard deviation of the labels. Queried points, such as
        those for `min_examples` of a grid, are included unless rows have weights other than 1.
    target_counts : tuple of float, optional
        Classification, if `class_counts` count predictions of the black box, or are None because
        the target also has other labels: number of training rows of each class of the target.
    model_error, target_error : float, optional
        Regression: mean absolute difference between the output and the predictions of the black
        box, and between the output and the target, on the training rows of the rule.
    weighted : bool, default=False
        Whether rows were counted with weights.

    Notes
    -----
    Equality ignores `target_counts`, `model_error`, `target_error` and `weighted`.
    """

    n_rows: float
    class_counts: tuple[float, ...] | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    target_counts: tuple[float, ...] | None = field(default=None, compare=False)
    model_error: float | None = field(default=None, compare=False)
    target_error: float | None = field(default=None, compare=False)
    weighted: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "n_rows", _count("n_rows", self.n_rows))
        for name in ("class_counts", "target_counts"):
            counts = getattr(self, name)
            if counts is not None:
                put(self, name, tuple(_count(name, c) for c in counts))
        for name in ("mean", "standard_deviation", "model_error", "target_error"):
            value = getattr(self, name)
            if value is not None:
                put(self, name, check_number(name, value, finite=True))
        for name in ("standard_deviation", "model_error", "target_error"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} must be 0 or more, got {value!r}.")
        put(self, "weighted", check_flag("weighted", self.weighted))

    def rows_text(self) -> str:
        """Write the number of rows, such as ``50 rows`` or ``12.5 weighted rows``."""
        kind = "weighted row" if self.weighted else "row"
        return f"{format_number(self.n_rows)} {kind}{'' if self.n_rows == 1 else 's'}"

    def points_text(self, reference: str | None) -> str:
        """Describe the points that class counts refer to; empty if they are the rows."""
        if self.n_points is None:
            return ""
        if reference == "black_box":
            return f" of {format_number(self.n_points)} queried rows"
        return " of the weight"

    @property
    def n_points(self) -> float | None:
        """Sum of the class counts; None without counts, or if it equals the number of rows."""
        if self.class_counts is None:
            return None
        n_points = sum(self.class_counts)
        return None if math.isclose(n_points, self.n_rows) else n_points


def combine_statistics(
    one: RuleStatistics | None, other: RuleStatistics | None
) -> RuleStatistics | None:
    """Combine the statistics of two rules; return None if one of them has none.

    Numbers of rows and class counts are added. Means and errors are weighted by the numbers of
    rows, and standard deviations are pooled. Both rules must have the same output.
    """
    if one is None or other is None:
        return None
    counts = _add_counts(one.class_counts, other.class_counts)
    n_rows = one.n_rows + other.n_rows
    share = other.n_rows / n_rows if n_rows > 0 else 0.5
    mean = standard_deviation = None
    if one.mean is not None and other.mean is not None:
        # Rounding must not change equal means.
        mean = one.mean if one.mean == other.mean else (1 - share) * one.mean + share * other.mean
        if one.standard_deviation is not None and other.standard_deviation is not None:
            within = math.hypot(
                math.sqrt(1 - share) * one.standard_deviation,
                math.sqrt(share) * other.standard_deviation,
            )
            between = math.sqrt(share * (1 - share)) * abs(other.mean / 2 - one.mean / 2) * 2
            standard_deviation = math.hypot(within, between)
    errors = {
        name: None if a is None or b is None else (1 - share) * a + share * b
        for name in ("model_error", "target_error")
        for a, b in [(getattr(one, name), getattr(other, name))]
    }
    target_counts = _add_counts(one.target_counts, other.target_counts)
    return RuleStatistics(
        n_rows,
        counts,
        mean,
        standard_deviation,
        target_counts,
        **errors,
        weighted=one.weighted or other.weighted,
    )


def _add_counts(
    one: tuple[float, ...] | None, other: tuple[float, ...] | None
) -> tuple[float, ...] | None:
    """Add class counts; return None if either is unknown."""
    if one is None or other is None:
        return None
    return tuple(a + b for a, b in zip(one, other, strict=True))


def _count(name: str, value: Any) -> float:
    """Check a count; convert whole numbers to int."""
    value = check_number(name, value, finite=True)
    if value < 0:
        raise ValueError(f"{name} must be 0 or more, got {value!r}.")
    return int(value) if value.is_integer() else value


@dataclass(frozen=True, slots=True)
class Rule:
    """Conjunction of conditions (the premise) with an output (the conclusion).

    Parameters
    ----------
    conditions : iterable of conditions
        The premise; a rule without conditions always holds. Intervals on the same feature are
        intersected, and conditions that always hold are dropped.
    output : str, int, float, bool or LinearOutput
        The conclusion: a class label, a number or an affine function.
    statistics : RuleStatistics, optional
        Statistics of the rows that the rule predicts.
    weight : float or LinearOutput, default=1.0
        Weight of the rule's vote in a set with `voting`, see :class:`RuleSet`. An affine function
        gives each row its own weight. Ignored without voting.

    Raises
    ------
    ValueError
        If two conditions contradict each other, or the weight is not finite.

    Examples
    --------
    >>> rule = Rule([Interval(0, upper=2.45)], "setosa", RuleStatistics(50, (50, 0, 0)))
    >>> print(rule)
    IF x0 ≤ 2.45 THEN setosa   [50 rows, 100 % of this class]
    >>> print(rule.to_text(["petal length (cm)"]))
    IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % of this class]

    A rule of a rule set is printed like its line in the set, with the feature names of the set.
    """

    conditions: tuple[Condition, ...]
    output: Output
    statistics: RuleStatistics | None = None
    weight: float | LinearOutput = 1.0
    #: Rule set that contains the rule, and position in it; the rule set provides names and labels.
    _home: Any = field(default=None, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "conditions", normalize(self.conditions))
        if not isinstance(self.output, LinearOutput):
            object.__setattr__(self, "output", check_label("output", self.output))
        if not isinstance(self.weight, LinearOutput):
            object.__setattr__(self, "weight", check_number("weight", self.weight, finite=True))

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Interval conditions, which form a box."""
        return tuple(c for c in self.conditions if isinstance(c, Interval))

    @property
    def non_intervals(self) -> tuple[Condition, ...]:
        """Conditions that are not intervals."""
        return tuple(c for c in self.conditions if not isinstance(c, Interval))

    @property
    def n_conditions(self) -> int:
        """Number of conditions in the premise; a two-sided interval counts as one."""
        return len(self.conditions)

    @property
    def n_literals(self) -> int:
        """Number of literals in the premise.

        Literals are comparisons, listed values, terms of sums, and tests for missing values.
        """
        return sum(condition.n_literals for condition in self.conditions)

    @property
    def n_terms(self) -> int:
        """Number of literals in the premise plus the number of terms in a linear output."""
        terms = self.output.terms if isinstance(self.output, LinearOutput) else ()
        return self.n_literals + len(terms)

    def holds(self, columns: Columns, n_rows: int) -> np.ndarray:
        """Return for every row whether the premise holds."""
        result = np.ones(n_rows, dtype=bool)
        for condition in self.conditions:
            result &= condition.holds(columns)
        return result

    def premise_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the premise; the text is empty if there are no conditions.

        In a conjunction, conditions with "or" are in parentheses: ``(age ≤ 30 or missing) AND fare
        > 8``.
        """
        texts = [condition.to_text(names, number) for condition in self.conditions]
        if len(texts) > 1:
            texts = [
                f"({text})" if isinstance(c, Interval | OneOf) and truth_table(c).missing else text
                for c, text in zip(self.conditions, texts, strict=True)
            ]
        return " AND ".join(texts)

    def output_text(
        self,
        names: Sequence[str] | None = None,
        *,
        numeric: bool = False,
        domain: Any = None,
    ) -> str:
        """Write the conclusion.

        `numeric` distinguishes numbers from labels that look like numbers. `domain` determines the
        number of digits of a linear function.
        """
        if isinstance(self.output, LinearOutput):
            return self.output.to_text(names, domain)
        return output_number(float(self.output)) if numeric else format_label(self.output)

    def statistics_text(
        self,
        output_index: int | None = None,
        names: Sequence[str] | None = None,
        *,
        weighted: bool | None = None,
    ) -> str:
        """Write the statistics, such as ``50 rows, 100 % of this class``; empty if there are none.

        For a rule of a rule set, the set's `reference` determines how shares are described: ``50
        rows, 98 % agree with the model, 96 % right (data)``, or only one of these shares. The text
        begins with the weight of the rule if `weighted` is True or, by default, if the weight is
        not 1.
        """
        if self.weight != 1.0 if weighted is None else weighted:
            counted = self.statistics_text(output_index, weighted=False)
            return f"weight {self.weight_text(names)}{', ' if counted else ''}{counted}"
        statistics = self.statistics
        if statistics is None:
            return ""
        parts = [statistics.rows_text()]
        purity = self.purity(output_index)
        if purity is not None:
            # Points that were queried for the extraction are not training rows.
            of_points = statistics.points_text(self.reference)
            parts.append(f"{percent_text(purity)}{of_points} {REFERENCES[self.reference]}")
        correctness = self.correctness(output_index)
        if correctness is not None:
            parts.append(f"{percent_text(correctness)} {REFERENCES['data']}")
        errors = [
            f"{format_number(error)} ({name})"
            for name, error in (
                ("model", statistics.model_error),
                ("data", statistics.target_error),
            )
            if error is not None
        ]
        if errors:
            parts.append(f"mean error {', '.join(errors)}")
        elif purity is None and statistics.standard_deviation is not None:
            spread = format_number(statistics.standard_deviation)
            parts.append(f"{_SPREADS[self.reference]}{spread}")
        return ", ".join(parts)

    def correctness(self, output_index: int | None = None) -> float | None:
        """Return the share of the training rows whose target is the output of the rule.

        Return None if the target was not counted separately from the predictions of the black box.
        If the reference of the rule set is ``"data"``, :meth:`purity` is this share.
        """
        statistics = self.statistics
        counts = None if statistics is None else statistics.target_counts
        if statistics is None or counts is None or not statistics.n_rows > 0:
            return None
        index = output_index
        if index is None:
            index = int(np.argmax(statistics.class_counts or counts))
        # The counts may sum to less: the target may have labels that are not classes of the rules.
        return counts[index] / statistics.n_rows

    @property
    def reference(self) -> str | None:
        """Labels that the statistics were counted from; None if unknown, or outside a rule set."""
        return None if self._home is None else self._home[0].reference

    def weight_text(self, names: Sequence[str] | None = None) -> str:
        """Write the weight."""
        if isinstance(self.weight, LinearOutput):
            return self.weight.to_text(names)
        return format_number(self.weight)

    def purity(self, output_index: int | None = None) -> float | None:
        """Return the share of a class, by default the majority class, among the counted labels.

        Return None without class counts.
        """
        counts = None if self.statistics is None else self.statistics.class_counts
        if not counts or not sum(counts) > 0:
            return None
        return (max(counts) if output_index is None else counts[output_index]) / sum(counts)

    def to_text(
        self,
        names: Sequence[str] | None = None,
        number: NumberFormat = plain_number,
        *,
        numeric: bool | None = None,
        output_index: int | None = None,
        domain: Any = None,
        first: bool = True,
        weighted: bool | None = None,
    ) -> str:
        """Write the rule as one line.

        Parameters
        ----------
        names : sequence of str, optional
            Feature names; ``x0``, ``x1``, ... by default.
        number : callable, optional
            Function that formats bounds, given the index of the feature and the bound; by default
            bounds are exact.
        numeric : bool, optional
            Whether the output is a number instead of a label; by default floats are numbers.
        output_index : int, optional
            Index of the output among the classes, for the purity.
        domain : Domain, optional
            Domain of the rule, which determines the number of digits of a linear output.
        first : bool, default=True
            Whether the line begins with ``IF`` instead of ``ELSE IF``, as for the first rule.
        weighted : bool, optional
            Whether to write the weight. By default, it is written if it is not 1.
        """
        if numeric is None:
            numeric = isinstance(self.output, float)
        premise = self.premise_text(names, number)
        output = self.output_text(names, numeric=numeric, domain=domain)
        if premise:
            text = f"{'' if first else 'ELSE '}IF {premise} THEN {output}"
        else:
            text = f"ALWAYS {output}" if first else f"ELSE {output}"
        statistics = self.statistics_text(output_index, names, weighted=weighted)
        return f"{text}   [{statistics}]" if statistics else text

    def in_ruleset(self, ruleset: Any, position: int) -> Rule:
        """Return an equal rule with a reference to its rule set.

        Parameters
        ----------
        ruleset : RuleSet
            Rule set that contains the rule.
        position : int
            Index of the rule in the set, from 0.

        Returns
        -------
        Rule
            The rule. Pickles and copies of it do not contain the set.
        """
        parts = self.conditions, self.output, self.statistics, self.weight
        return _checked_rule(*parts, home=(ruleset, position))

    # Python before 3.11.3 adds its own __getstate__ to dataclasses with slots.
    def __reduce__(self) -> tuple[Any, ...]:
        return _checked_rule, (self.conditions, self.output, self.statistics, self.weight)

    def __str__(self) -> str:
        if self._home is None:
            return self.to_text()
        ruleset, position = self._home
        return ruleset.line(position)

    def __repr__(self) -> str:
        return f"<Rule: {self}>"


def _checked_rule(
    conditions: Any, output: Any, statistics: Any, weight: Any, home: Any = None
) -> Rule:
    """Create a rule from parts that have been checked."""
    rule = object.__new__(Rule)
    parts = conditions, output, statistics, weight, home
    for name, value in zip(
        ("conditions", "output", "statistics", "weight", "_home"), parts, strict=True
    ):
        object.__setattr__(rule, name, value)
    return rule


def check_rules(
    rules: Sequence[Rule], feature_names: Sequence[str], classes: Sequence[Any] | None
) -> None:
    """Raise a ValueError if a rule does not match the names or classes (None in regression)."""
    for number, rule in enumerate(rules, 1):
        used = [f for c in rule.conditions for f in c.features]
        for part in (rule.output, rule.weight):
            if isinstance(part, LinearOutput):
                used += [f for f, _ in part.terms]
        if used and max(used) >= len(feature_names):
            raise ValueError(
                f"Rule {number} uses feature {max(used)}, but there are only {len(feature_names)} "
                f"feature names: {', '.join(feature_names)}."
            )
        if classes is None:
            if isinstance(rule.output, str | bool):
                raise ValueError(
                    f"Rule {number} of a regression has the output {rule.output!r}; it must be a "
                    "number or a LinearOutput."
                )
            if isinstance(rule.weight, LinearOutput):
                raise ValueError(
                    f"Rule {number} of a regression has the weight {rule.weight}; it must be a "
                    "number. A value that depends on the row belongs in the output."
                )
            continue
        if rule.output not in classes:
            raise ValueError(
                f"Rule {number} concludes {rule.output!r}, which is not among the classes "
                f"{list(classes)}."
            )
        for name in ("class_counts", "target_counts"):
            counts = getattr(rule.statistics, name, None)
            if counts is not None and len(counts) != len(classes):
                raise ValueError(
                    f"Rule {number} has {len(counts)} {name} for {len(classes)} classes."
                )


def _read_only_copy(values: Any, dtype: Any = None) -> np.ndarray:
    """Return a read-only copy."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Conclusions:
    """Outputs and statistics of the rules of a set, as arrays.

    Parameters
    ----------
    outputs : ndarray of shape (n_rules,)
        Indices of classes (int), or numbers (float; NaN if the output is in `linear`).
    n_rows : ndarray of shape (n_rules,), optional
        Number of training rows assigned to each rule.
    class_counts : ndarray of shape (n_rules, n_classes), optional
        Classification: numbers of points of each class.
    mean, standard_deviation : ndarray of shape (n_rules,), optional
        Regression: mean and population standard deviation of the labels.
    linear : mapping of int to LinearOutput, optional
        Outputs that are affine functions, by the index of the rule.
    weights : ndarray of shape (n_rules,), optional
        Weight of each rule's vote in a set with `voting`; by default 1.
    target_counts : ndarray of shape (n_rules, n_classes), optional
        Classification: numbers of training rows of each class of the target.
    model_error, target_error : ndarray of shape (n_rules,), optional
        Regression: mean absolute differences, as in :class:`RuleStatistics`.
    weighted : bool, default=False
        Whether rows were counted with weights.
    """

    outputs: np.ndarray
    n_rows: np.ndarray | None = None
    class_counts: np.ndarray | None = None
    mean: np.ndarray | None = None
    standard_deviation: np.ndarray | None = None
    linear: Mapping[int, LinearOutput] = field(default_factory=dict)
    weights: np.ndarray | None = None
    target_counts: np.ndarray | None = None
    model_error: np.ndarray | None = None
    target_error: np.ndarray | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        for name in ("outputs", "weights", *_STATISTICS):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _read_only_copy(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Conclusions, (
            self.outputs,
            self.n_rows,
            self.class_counts,
            self.mean,
            self.standard_deviation,
            dict(self.linear),
            self.weights,
            self.target_counts,
            self.model_error,
            self.target_error,
            self.weighted,
        )

    def check(self, n_rules: int, n_classes: int | None) -> None:
        """Raise a ValueError unless the arrays match the numbers of rules and classes.

        Parameters
        ----------
        n_rules : int
            Number of rules.
        n_classes : int or None
            Number of classes; None in regression.
        """
        for name in ("outputs", "weights", *_STATISTICS):
            array = getattr(self, name)
            shape = (n_rules, n_classes) if name.endswith("_counts") else (n_rules,)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {array.shape}.")
        if self.weights is not None and not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be finite numbers, got {self.weights!r}.")
        statistics = [n for n in _STATISTICS if n != "n_rows" and getattr(self, n) is not None]
        if statistics and self.n_rows is None:
            raise ValueError(
                f"{statistics[0]} needs n_rows as well: the rows assigned to each rule."
            )
        stray = [i for i in self.linear if not 0 <= i < n_rules or n_classes is not None]
        if stray:
            raise ValueError(
                f"linear has the key {stray[0]}, which is not the index of a rule for regression."
            )
        if n_classes is None:
            unknown = ~np.isfinite(self.outputs)
            unknown[list(self.linear)] = False
            if unknown.any():
                raise ValueError(
                    f"Output {np.flatnonzero(unknown)[0]} must be a finite number, got "
                    f"{self.outputs[unknown][0].item()!r}."
                )
        elif len(self.outputs) and (
            self.outputs.dtype.kind not in "iu"
            or self.outputs.min() < 0
            or self.outputs.max() >= n_classes
        ):
            raise ValueError(
                f"outputs must be indices of the {n_classes} classes, got {self.outputs!r}."
            )

    @classmethod
    def from_rules(cls, rules: Sequence[Rule], classes: Sequence[Any] | None) -> Conclusions:
        """Collect the outputs and class counts of rules, without weights and other statistics."""
        if classes is not None:
            code = {label: i for i, label in enumerate(classes)}
            outputs = np.fromiter((code[r.output] for r in rules), np.intp, count=len(rules))
            counts = np.zeros((len(rules), len(classes)))
            for row, rule in zip(counts, rules, strict=True):
                if rule.statistics is not None and rule.statistics.class_counts is not None:
                    row[:] = rule.statistics.class_counts
            return cls(outputs, class_counts=counts)
        linear = {i: r.output for i, r in enumerate(rules) if isinstance(r.output, LinearOutput)}
        numbers = [np.nan if isinstance(r.output, LinearOutput) else r.output for r in rules]
        return cls(np.asarray(numbers, dtype=float), linear=linear)

    def rule(self, index: int, boxes: BoxTable, classes: Sequence[Any] | None) -> Rule:
        """Create one rule of a set whose premises are boxes."""
        output: Any = self.linear.get(index)
        if output is None:
            output = self.outputs[index].item()
            if classes is not None:
                output = classes[output]
        statistics = None
        if self.n_rows is not None:
            values: dict[str, Any] = {
                name: None if array is None else array[index].tolist()
                for name in _STATISTICS
                for array in [getattr(self, name)]
            }
            statistics = RuleStatistics(**values, weighted=self.weighted)
        weight = 1.0 if self.weights is None else self.weights[index]
        return Rule(boxes.intervals(index), output, statistics, weight)

    def class_probabilities(self, n_classes: int) -> np.ndarray:
        """Return each rule's class probabilities; without counts, 1 for its predicted class."""
        one_hot = np.zeros((len(self.outputs), n_classes))
        one_hot[np.arange(len(self.outputs)), self.outputs] = 1.0
        if self.class_counts is None:
            return one_hot
        total = self.class_counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, self.class_counts / np.where(total > 0, total, 1), one_hot)
