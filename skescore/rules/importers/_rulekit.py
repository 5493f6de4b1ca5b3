"""Conversion of RuleKit's models and texts to rules.

The models are Java objects. This module only calls their methods and imports nothing, so reading a
model never starts a Java machine.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias

import numpy as np
import pandas as pd

from skescore._text import did_you_mean, listed
from skescore._validation import TASKS, check_choice, check_label, check_number, check_sequence
from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet

#: Largest float, by which RuleKit represents sides without a bound.
_FREE = float(np.finfo(float).max)


def read_rulekit(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    domain: Domain | None = None,
    exact: bool = True,
) -> RuleSet:
    """Convert a fitted model of RuleKit to rules with the same predictions.

    Use it to score, compare, simplify or export rules of RuleKit. The bounds are exact, unlike
    those in the texts that :func:`skescore.rules.importers.read_rulekit_text` reads.

    Parameters
    ----------
    model : RuleClassifier, RuleRegressor, ExpertRuleClassifier or ExpertRuleRegressor
        A fitted model, or its attribute ``model`` (the rule set).
    feature_names : sequence of str, optional
        New names of the features, in the order of the columns; by default those that the model
        was fitted with. RuleKit names the columns of arrays ``att1``, ``att2``, ...
    classes : sequence, optional
        Labels, in any order; by default those that the model was fitted with. RuleKit converts
        labels to text, and each text must be ``str(label)`` of one of them.
    domain : Domain, optional
        Box for which the rules are intended; by default the box around the training rows, which the
        model stores.
    exact : bool, default=True
        Whether to reject models whose predictions cannot be reproduced exactly, see Notes.

    Returns
    -------
    RuleSet
        Voting rules with RuleKit's weights, and statistics that are recounted on the training rows.

    Raises
    ------
    TypeError
        If the model is not from RuleKit.
    ValueError
        If the model is not fitted; is a survival or contrast set model; has a weight that is not
        finite; or, with `exact`, predicts differently from the rules.

    Notes
    -----
    - For uncovered rows, RuleKit predicts the class whose text sorts first (by UTF-16 units, as in
      Java), regardless of the default class that it stores. The fallback does the same. This order
      also decides between equal votes, so the classes are in this order: ``10`` before ``9``. In
      regression, the fallback is RuleKit's default value, a median of the training rows.
    - In RuleKit, a missing value satisfies a complementary condition such as ``color = !{red}``,
      and every condition after ``ignore_missing=True``. The rules state this (``color ≠ red or
      missing``) for features with missing values in training. RuleKit has one ``ignore_missing``
      for the whole process, which only classifiers set, so fitting a classifier changes the
      predictions of other models. The rules of a classifier follow its own parameter, and those of
      a regressor follow the value that was in force when it was fitted.
    - If a table lacks categories of the training rows, or has others, RuleKit confuses them. The
      rules compare values.
    - If a weight is negative (an expert's rule that is worse than chance) and no class has a
      positive sum of votes, RuleKit predicts by the order of the rules. With `exact`, such
      classifiers are rejected.
    - In RuleKit, an infinite value satisfies no numeric condition, not even one without bounds.

    References
    ----------
    A. Gudyś, M. Sikora, Ł. Wróbel: RuleKit: a comprehensive suite for rule-based learning.
    Knowledge-Based Systems 194, 2020.

    Examples
    --------
    ::

        from rulekit.classification import RuleClassifier

        model = RuleClassifier(max_rule_count=3).fit(X, y)
        rules = read_rulekit(model)
        assert (rules.predict(X) == model.predict(X)).all()
    """
    engine = _engine(model)
    training = _Training.of(engine, feature_names)
    ignored = _ignores_missing(engine, training)
    rules = [
        _rule(java, number, training, ignored) for number, java in enumerate(engine.getRules(), 1)
    ]
    if training.classes is None:
        settings: dict[str, Any] = {
            "voting": "mean",
            "fallback": Fallback(float(engine.getDefaultValue())),
        }
    else:
        labels = _labels(training.classes, model, classes)
        ordered = [labels[text] for text in engine_order(training.classes)]
        rules = [Rule(r.conditions, labels[str(r.output)], None, r.weight) for r in rules]
        settings = {"classes": ordered, "voting": "votes", "fallback": Fallback(ordered[0])}
    if exact:
        _check_exact(engine, training)
    ruleset = RuleSet(
        rules,
        training.names,
        task="regression" if training.classes is None else "classification",
        domain=training.domain() if domain is None else domain,
        ordered=False,
        **settings,
    )
    return _with_statistics(ruleset, training)


def engine_order(texts: Iterable[str]) -> list[str]:
    """Sort texts by UTF-16 units, as in Java."""
    return sorted(texts, key=lambda text: text.encode("utf-16-be", "surrogatepass"))


def _engine(model: Any) -> Any:
    """Return the Java object of the rule set; raise an error if it cannot be read."""
    ruleset = model
    if not hasattr(model, "_java_object") and hasattr(model, "model"):
        ruleset = model.model
        if ruleset is None:
            raise ValueError("The RuleKit model is not fitted: call fit(X, y) first.")
    engine = getattr(ruleset, "_java_object", None)
    if engine is None or not hasattr(engine, "getRules"):
        raise TypeError(
            f"model must be a fitted model of RuleKit or its rule set, got {type(model).__name__}."
        )
    kind = _kind(engine)
    contrast = engine.getTrainingHeader().getAttributes().getColumnByRole("contrast_attribute")
    if kind not in ("ClassificationRuleSet", "RegressionRuleSet") or contrast is not None:
        remedy = (
            " Read the premises by read_rulekit_text([str(rule) for rule in model.model.rules], "
            "feature_names=..., task='survival'), and fit their curves by SurvivalRules.fit."
        )
        raise ValueError(
            "model must be for classification or regression, got a RuleKit model with rules of the "
            f"kind {kind if contrast is None else 'contrast sets'}."
            f"{remedy if kind == 'SurvivalRuleSet' and contrast is None else ''}"
        )
    if kind == "RegressionRuleSet" and hasattr(model, "label_unique_values"):
        raise ValueError(
            "The RuleKit classifier was fitted on labels that it took for numbers, so it cannot "
            "predict. Fit it with y as a NumPy array or a pandas Series of texts."
        )
    if not engine.getIsVoting():
        raise ValueError(
            "model must have rules that vote, got a RuleKit model in which a single rule predicts."
        )
    return engine


def _kind(java: Any) -> str:
    return str(java.getClass().getSimpleName())


@dataclass(frozen=True)
class _Training:
    """Training rows, which RuleKit stores in its models."""

    names: list[str]
    #: Columns by RuleKit's names, which the conditions use.
    features: dict[str, int]
    columns: list[np.ndarray]
    categories: dict[int, tuple[str, ...]]
    labels: np.ndarray
    classes: tuple[str, ...] | None

    @classmethod
    def of(cls, engine: Any, feature_names: Sequence[str] | None) -> _Training:
        header = engine.getTrainingHeader().clone()
        # In unpickled models, the table does not list its columns.
        table = _field(header, "table")
        attributes = header.getAttributes()
        original_names: list[str] = []
        columns: list[np.ndarray] = []
        categories: dict[int, tuple[str, ...]] = {}
        for attribute in _iterated(attributes):
            column, values = _column(table, attribute)
            if values is not None:
                categories[len(original_names)] = values
            original_names.append(str(attribute.getName()))
            columns.append(column)
        labels, classes = _column(table, attributes.getLabel())
        names = original_names if feature_names is None else [str(name) for name in feature_names]
        if isinstance(feature_names, str) or len(names) != len(original_names):
            raise ValueError(
                f"feature_names must name the {len(original_names)} features that the model was "
                f"fitted with ({listed(original_names)}), got {feature_names!r}."
            )
        features = {name: index for index, name in enumerate(original_names)}
        return cls(names, features, columns, categories, labels, classes)

    def has_missing(self, feature: int) -> bool:
        return bool(pd.isna(self.columns[feature]).any())

    def domain(self) -> Domain | None:
        """Return the box around the rows; None if a column has no values."""
        lower: list[float] = []
        upper: list[float] = []
        for feature, column in enumerate(self.columns):
            if feature in self.categories:
                lower.append(0.0)
                upper.append(0.0)
                continue
            finite_values = column[np.isfinite(column)]
            if not len(finite_values):
                return None
            lower.append(float(finite_values.min()))
            upper.append(float(finite_values.max()))
        if not all(self.categories.values()):
            return None
        domain = Domain.around(np.array([lower, upper]), categories=self.categories)
        missing = tuple(float(pd.isna(column).mean()) for column in self.columns)
        return replace(domain, missing=missing)

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(dict(zip(self.names, self.columns, strict=True)))


def _ignores_missing(engine: Any, training: _Training) -> bool:
    """Return whether missing values satisfied all conditions when the rules were learned."""
    if training.classes is not None:
        return bool(engine.getParams().isIgnoreMissing())
    counts = [float(java.getWeighted_p() + java.getWeighted_n()) for java in engine.getRules()]
    rules = [_rule(java, i, training, False) for i, java in enumerate(engine.getRules(), 1)]
    ruleset = RuleSet(rules, training.names, task="regression", ordered=False)
    return counts != ruleset.match(training.table()).sum(axis=0).tolist()


def _iterated(java: Any) -> Iterable[Any]:
    iterator = java.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _column(table: Any, attribute: Any) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return the training values of a column, and the possible values if they are texts."""
    column = table.column(attribute.getName())
    if hasattr(column, "asDoubleArray"):
        numbers = np.array(column.asDoubleArray(), dtype=float)
    else:  # numbers of an unpickled model that are all missing or infinite
        numbers = np.array([float(str(text or "nan")) for text in column.asObjectArray()])
    if not attribute.isNominal():
        return numbers, None
    values = tuple(str(value) for value in attribute.getMapping().getValues())
    texts = np.full(len(numbers), None, dtype=object)
    is_present = ~np.isnan(numbers)
    texts[is_present] = np.array(values, dtype=object)[numbers[is_present].astype(int)]
    return texts, values


def _labels(texts: Sequence[str], model: Any, classes: Sequence[Any] | None) -> dict[str, Any]:
    """Return the label of each of RuleKit's texts."""
    if classes is not None:
        classes = check_sequence("classes", classes, "labels")
    label_values: Any = getattr(model, "label_unique_values", None) if classes is None else classes
    label_values = (
        list(texts) if label_values is None or not len(label_values) else list(label_values)
    )
    labels = {str(value): check_label("classes", value) for value in label_values}
    if set(labels) != set(texts):
        raise ValueError(
            f"classes must hold the labels whose str(label) is one of {listed(list(texts))}, got "
            f"{listed(label_values)}. Pass the labels of the data that the model was fitted with."
        )
    return labels


def _rule(java: Any, number: int, training: _Training, ignored: bool) -> Rule:
    weight = float(java.getWeight())
    if not math.isfinite(weight):
        raise ValueError(
            f"Rule {number} of the RuleKit model has the weight {weight!r}, with which no votes "
            "can be counted. Fit the model with another voting_measure."
        )
    try:
        conditions = _conditions(java.getPremise(), training, ignored)
        consequent = java.getConsequence().getValueSet()
        if training.classes is None:
            return Rule(tuple(conditions), float(consequent.getValue()), None, weight)
        return Rule(tuple(conditions), str(consequent.getValueAsString()), None, weight)
    except ValueError as error:
        text = str(java.toString())
        raise ValueError(f"Rule {number} of the RuleKit model ({text}): {error}") from error


def _conditions(java: Any, training: _Training, ignored: bool) -> list[Condition]:
    """Convert a Java condition to a conjunction of conditions.

    Missing values satisfy all conditions if they are `ignored`, otherwise complementary conditions.
    """
    if java.isDisabled():
        return []
    if hasattr(java, "getSubconditions"):
        parts = [_conditions(part, training, ignored) for part in java.getSubconditions()]
        if str(_field(java, "operator")) == "CONJUNCTION":
            return [condition for part in parts for condition in part]
        if not parts or not all(parts):
            raise ValueError("it has an alternative with an empty side, which cannot be expressed")
        sides = [part[0] if len(part) == 1 else AtLeast(len(part), tuple(part)) for part in parts]
        return [AtLeast(1, tuple(sides))]
    feature, values = training.features[str(java.getAttribute())], java.getValueSet()
    passes = ignored or _kind(values).endswith("Complement")
    return _single_condition(feature, values, passes and training.has_missing(feature))


def _single_condition(feature: int, values: Any, missing: bool) -> list[Condition]:
    kind = _kind(values)
    if kind in ("Universum", "AnyValueSet"):
        return []
    if kind == "Interval":
        lower, upper = float(values.getLeft()), float(values.getRight())
        return [
            Interval(
                feature,
                -math.inf if lower <= -_FREE else lower,
                math.inf if upper >= _FREE else upper,
                lower_closed=str(values.getLeftSign()) == ">=",
                upper_closed=str(values.getRightSign()) == "<=",
                missing=missing,
            )
        ]
    if kind not in ("SingletonSet", "SingletonSetComplement"):
        raise ValueError(f"its condition of the kind {kind} is not supported")
    negated = kind == "SingletonSetComplement"
    if values.getMapping() is not None:
        return [OneOf(feature, (str(values.getValueAsString()),), negated, missing)]
    value = float(values.getValue())
    if not negated:
        return [Interval(feature, value, value, True, True, missing)]
    below = Interval(feature, upper=value, upper_closed=False, missing=missing)
    return [AtLeast(1, (below, Interval(feature, lower=value, missing=missing)))]


def _field(java: Any, name: str) -> Any:
    """Return a field of a Java object without a getter."""
    field = java.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java)


def _check_exact(engine: Any, training: _Training) -> None:
    """Raise a ValueError if the rules would predict differently from the model."""
    remedy = "Pass exact=False to read the rules anyway."
    negative = [number for number, java in enumerate(engine.getRules(), 1) if java.getWeight() < 0]
    if negative and training.classes is not None:
        raise ValueError(
            f"The RuleKit model has rules with negative weights ({listed(negative)}). If no class "
            "has a positive sum of votes, RuleKit predicts by the order of its rules, which voting "
            f"rules cannot reproduce. {remedy}"
        )


def _with_statistics(ruleset: RuleSet, training: _Training) -> RuleSet:
    """Count the training rows of every rule."""
    if not len(training.labels) or not len(ruleset):
        return ruleset
    matches = ruleset.match(training.table())
    rules = []
    for rule, rows in zip(ruleset, matches.T, strict=True):
        labels = training.labels[rows]
        if ruleset.classes is None:
            mean_and_deviation = (
                [float(np.mean(labels)), float(np.std(labels))] if len(labels) else [None, None]
            )
            statistics = RuleStatistics(len(labels), None, *mean_and_deviation)
        else:
            counts = tuple(float(np.sum(labels == str(label))) for label in ruleset.classes)
            statistics = RuleStatistics(len(labels), counts)
        rules.append(Rule(rule.conditions, rule.output, statistics, rule.weight))
    return ruleset.replace(rules=rules, reference="data")


# Names and values may contain any text, even parts of rules. If a way of parsing does not reach the
# end of the text, the next one is tried (backtracking).

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_START = re.compile(r"\s*(?:r?\d+\s*:\s*)?IF(?=\s|$)")
_EQUALS = re.compile(r"\s*@?=\s*")
_BOUNDS = re.compile(rf"([<(])\s*(-inf|{_NUMBER})\s*,\s*(inf|{_NUMBER})\s*([>)])")
_ANYTHING = re.compile(r"Any\b|ANY\b")
_AND = re.compile(r"\s+AND\s+")
_THEN = re.compile(r"\s+THEN(?:\s+|$)")
_CONCLUSION = re.compile(r"(?P<label>.*?)\s*=\s*\{(?P<value>.*)\}(?P<rest>[^}]*)", re.DOTALL)
_RANGE = re.compile(rf"\s*\[\s*({_NUMBER}|NaN)\s*,\s*({_NUMBER}|NaN)\s*\]")
_STATISTICS = re.compile(r"\s*(?:\(([^()\[\]]*)\)|\[([^()\[\]]*)\])")
_BLANK = re.compile(r"\s+")
_PAIR = re.compile(r"\s*([A-Za-z-]+)\s*=\s*(\S+)\s*")

#: Conclusion of rules for survival, if any.
_UNKNOWN = "NaN"
#: Conditions, name and value of the target, whether it has a range, and statistics.
_Ending: TypeAlias = tuple[tuple[Condition, ...], str, str, bool, dict[str, float]]


@dataclass(frozen=True)
class ParsedRule:
    """Content of the text of a rule."""

    location: str
    conditions: tuple[Condition, ...]
    label: str
    value: str
    #: Whether a range follows the value, which is then a number.
    is_number: bool
    statistics: dict[str, float]

    @property
    def n_rows(self) -> float | None:
        """Number of training rows that the rule covered; None if the text does not report it."""
        if {"p", "n"} <= self.statistics.keys():
            return self.statistics["p"] + self.statistics["n"]
        return None


class Line:
    """Parser of the text of a rule; `location` identifies it in error messages."""

    def __init__(self, text: str, location: str, names: Sequence[str]) -> None:
        self.text = text
        self.location = location
        self.names = names
        self.endings: dict[tuple[int, str], _Ending | None] = {}
        self.furthest = (0, "'IF'")
        #: Positive while an unlikely way of parsing is tried, which errors do not mention.
        self.doubts = 0

    def rule(self) -> ParsedRule:
        """Parse the text."""
        start = _START.match(self.text)
        if start is None:
            self._fail()
        at = start.end()
        try:
            ending = self._conclusion_at(_THEN.match(self.text, at)) or self._premise_at(at + 1)
            blank = _BLANK.match(self.text, at)
            if ending is None and blank is not None:
                ending = self._premise_at(blank.end())
        except RecursionError as error:
            raise ValueError(f"{self.location} has too many conditions to be read.") from error
        if ending is None:
            self._fail()
        return ParsedRule(self.location, *ending)

    def _premise_at(self, at: int, group: str = "") -> _Ending | None:
        """Parse the rest of a rule from the start of a condition; None if that is not possible.

        Within brackets around several conditions, `group` is the opening bracket.
        """
        key = at, group
        if key not in self.endings:
            endings = (self._from(*start, group) for start in self._features(at))
            possible_endings = [ending for ending in endings if ending is not None]
            if len(possible_endings) > 1 and any(
                other != possible_endings[0] for other in possible_endings
            ):
                raise ValueError(
                    f"{self.location}, column {at + 1}: the names of two features match "
                    f"{self.text[at : at + 40]!r}. Rename them, or read the model itself instead."
                )
            self.endings[key] = possible_endings[0] if possible_endings else None
        return self.endings[key]

    def _features(self, at: int) -> Iterator[tuple[int, int, str]]:
        """Yield features whose names match, the start of their values, and opening brackets."""
        opened = next((sign for sign in ("[[", "[") if self.text.startswith(sign, at)), "")
        has_feature = False
        for sign in dict.fromkeys((opened, "")):
            begin = at + len(sign)
            for feature, name in enumerate(self.names):
                equals = _EQUALS.match(self.text, begin + len(name))
                if self.text.startswith(name, begin) and equals is not None:
                    has_feature = True
                    yield feature, equals.end(), sign
        if not has_feature:
            self._expect(at, "the name of a feature and ' = '")

    def _from(self, feature: int, at: int, sign: str, group: str) -> _Ending | None:
        """Parse the rest from a feature's value, with the shortest value that the rest allows."""
        before, shut = self.doubts, "]" * len(sign)
        try:
            for condition, end in self._values(feature, at):
                for stop, open_group in self._ends(end, sign, group):
                    ending = self._parse_after_condition(stop, open_group)
                    if ending is not None:
                        return (condition + ending[0], *ending[1:])
                if self.text.startswith(shut, end):
                    self.doubts += 1
                else:
                    self._expect(end, repr(shut))
        finally:
            self.doubts = before
        return None

    def _ends(self, end: int, sign: str, group: str) -> Iterator[tuple[int, str]]:
        """Yield the possible ends of a condition after its value, and the open group of each."""
        if sign:
            if self.text.startswith("]" * len(sign), end):
                yield end + len(sign), group
            if not group:  # brackets around several conditions
                yield end, sign
            return
        yield end, group
        if group and self.text.startswith("]" * len(group), end):
            yield end + len(group), ""

    def _parse_after_condition(self, at: int, group: str = "") -> _Ending | None:
        """Parse the rest of a rule from the end of a condition."""
        joint, close = _AND.match(self.text, at), _THEN.match(self.text, at)
        if joint is None and close is None:
            self._expect(at, "' AND ' or ' THEN '")
        if joint is not None:
            # Names may begin with blanks, so only the first blank belongs to the word before.
            first = self.text.index("AND", at) + 4
            return self._premise_at(first, group) or (
                None if joint.end() == first else self._premise_at(joint.end(), group)
            )
        if group:
            self._expect(at, repr("]" * len(group)))
            return None
        return self._conclusion_at(close)

    def _values(self, feature: int, at: int) -> Iterator[tuple[tuple[Condition, ...], int]]:
        """Yield the conditions that a value may mean (none for any value), and their ends."""
        bounds, anything = _BOUNDS.match(self.text, at), _ANYTHING.match(self.text, at)
        negated = self.text.startswith("!{", at)
        if bounds is not None:
            yield (self._interval(feature, bounds),), bounds.end()
        elif anything is not None:
            yield (), anything.end()
        elif not negated and not self.text.startswith("{", at):
            self._expect(at, "a value such as '<0.8, 1.75)', '{red}' or '!{red}'")
        else:
            begin = at + 1 + negated
            end = self.text.find("}", begin)
            if end < 0:
                self._expect(begin, "'}'")
            while end >= 0:
                yield (OneOf(feature, (self.text[begin:end],), negated=negated),), end + 1
                end = self.text.find("}", end + 1)

    def _interval(self, feature: int, bounds: re.Match[str]) -> Interval:
        left, lower, upper, right = bounds.groups()
        closed_flags = {"lower_closed": left == "<", "upper_closed": right == ">"}
        try:
            return Interval(feature, float(lower), float(upper), **closed_flags)
        except ValueError as error:
            raise ValueError(
                f"{self.location}, column {bounds.start() + 1}: no number lies in {bounds[0]!r} "
                "(perhaps because of rounding). Read the model instead of its text."
            ) from error

    def _conclusion_at(self, close: re.Match[str] | None) -> _Ending | None:
        """Parse the conclusion after ' THEN '."""
        conclusion = None if close is None else self._conclusion(close.end())
        return None if conclusion is None else ((), *conclusion)

    def _conclusion(self, at: int) -> tuple[str, str, bool, dict[str, float]] | None:
        if not self.text[at:].strip():
            return "", _UNKNOWN, False, {}
        match = _CONCLUSION.fullmatch(self.text, at)
        if match is None:
            self._expect(at, "a conclusion such as 'label = {a}'")
            return None
        at = match.start("rest")
        ranged = _RANGE.match(self.text, at)
        if ranged is not None:
            at = ranged.end()
        statistics: dict[str, float] = {}
        listing = _STATISTICS.match(self.text, at)
        if listing is not None:
            for piece in (listing[1] if listing[1] is not None else listing[2]).split(","):
                pair = _PAIR.fullmatch(piece)
                try:
                    assert pair is not None
                    statistics[pair[1]] = float(pair[2])
                except (AssertionError, ValueError):
                    self._expect(at, "statistics such as '(p=8.0, n=0.0, weight=0.9)'")
                    return None
            at = listing.end()
        if self.text[at:].strip():
            self._expect(at, "the end of the rule, or statistics such as '(p=8.0, weight=0.9)'")
            return None
        return match["label"], match["value"], ranged is not None, statistics

    def _expect(self, at: int, expectation: str) -> None:
        if at >= self.furthest[0] and not self.doubts:
            self.furthest = (at, expectation)

    def _fail(self) -> NoReturn:
        at, expectation = self.furthest
        remaining_text = self.text[at : at + 40]
        actual = f"{remaining_text!r}" if remaining_text.strip() else "the end"
        hint = ""
        if expectation.startswith("the name"):
            name = re.split(r"\s*@?=", self.text[at:].lstrip("["), maxsplit=1)[0]
            hint = f" {did_you_mean(name, self.names)}"
        raise ValueError(
            f"{self.location}, column {at + 1}: expected {expectation}, got {actual}.{hint}"
        )


def read_rulekit_text(
    text: str | Iterable[str],
    *,
    feature_names: Sequence[str],
    task: str | None = None,
    classes: Sequence[Any] | None = None,
    default: Any = None,
    domain: Domain | None = None,
) -> RuleSet:
    """Read rules from the text that RuleKit prints or writes to reports.

    Use it if the model is not available; :func:`skescore.rules.importers.read_rulekit` reads a
    model exactly. In texts, RuleKit rounds bounds to two decimals (those below 0.1 to two digits),
    so predictions differ for rows between a bound and its rounded value.

    Parameters
    ----------
    text : str or iterable of str
        One rule per line such as ``IF width = <0.8, 1.75) AND color = {red} THEN label = {a}``,
        optionally with a number before it (``r1:``) and statistics after it (``(p=8.0, n=0.0,
        P=8.0, N=9.0, weight=0.9, pval=0.01)``); or a whole report with the line ``Rules:`` (or
        ``Rules``) before the rules and an empty line after them. In an iterable, each text holds
        one rule, which may have line breaks.
    feature_names : sequence of str
        Names of the columns, in order, which must include the names in the text.
    task : {"classification", "regression", "survival"}, optional
        By default regression if the conclusions have a range such as ``{72.97} [46.95,98.99]``,
        otherwise classification. "survival" reads the premises of rules without a conclusion (or
        with ``{NaN}``), whose output is 0; :meth:`skescore.rules.SurvivalRules.fit` fits their
        curves.
    classes : sequence of str, int, float or bool, optional
        Labels, in any order. Each text in the conclusions must be ``str(label)`` of one of them. By
        default labels are texts.
    default : label or number, optional
        Prediction for uncovered rows. By default the class whose text sorts first, as in RuleKit.
        In regression, RuleKit's default is not in the text, so there is no prediction without this
        parameter.
    domain : Domain, optional
        Box for which the rules are intended.

    Returns
    -------
    RuleSet
        Voting rules, which predict classes by votes and numbers by the weighted mean.

    Raises
    ------
    ValueError
        If a text is not such a rule (the message states the location and the expected text); a name
        is not among the features; two names match the same text; only some rules have a weight; or
        rules for survival are read without ``task="survival"``.

    Warns
    -----
    UserWarning
        If rules for classification have negative weights: if no class has a positive sum of votes,
        RuleKit predicts by the order of its rules, and the result by votes.

    Notes
    -----
    - Rules without weights have the weight 1.
    - A value in braces is one text, even with a comma, because RuleKit has no sets of values. It is
      a number if the same feature has bounds elsewhere.
    - The markers of expert rules (``[[...]]``, ``[...]``, ``@=``), around one or several
      conditions, are ignored.
    - Class counts are determined if there are two `classes`, or if the rule makes no errors.

    Examples
    --------
    >>> rules = read_rulekit_text(
    ...     "IF width = <0.8, 1.75) AND color = {red} THEN label = {a} (p=8.0, n=1.0, weight=0.5)",
    ...     feature_names=["width", "color"],
    ...     classes=["a", "b"],
    ... )
    >>> print(rules[0])
    IF 0.8 ≤ width < 1.75 AND color = red THEN a   [weight 0.5, 9 rows, 89 % right (data)]
    """
    check_choice("task", task, (None, *TASKS, "survival"))
    names = [str(name) for name in check_sequence("feature_names", feature_names, "names")]
    parsed = [Line(line, location, names).rule() for location, line in _rule_lines(text)]
    if not parsed:
        raise ValueError(
            "The text holds no rules; expected lines such as 'IF width = <1, 2) THEN label = {a}'."
        )
    _check_alike(parsed)
    numeric = {c.feature for rule in parsed for c in rule.conditions if isinstance(c, Interval)}
    if task == "survival":
        return _survival_rules(parsed, names, numeric, domain)
    task = _infer_task(parsed, task, classes)
    settings: dict[str, Any] = {"task": task, "domain": domain, "ordered": False}
    if task == "regression":
        if classes is not None:
            raise ValueError("classes are for classification; pass classes=None for regression.")
        settings |= {"voting": "mean"}
        outputs: list[Any] = [_number(rule) for rule in parsed]
        counts: list[Any] = [None] * len(parsed)
    else:
        labels = _labels_in_text(parsed, classes)
        ordered = [labels[value] for value in engine_order(labels)]
        settings |= {"voting": "votes", "classes": ordered, "reference": "data"}
        default = ordered[0] if default is None else default
        outputs = [labels[rule.value] for rule in parsed]
        known_classes = [] if classes is None else ordered
        counts = [
            _class_counts(r, o, ordered, known_classes)
            for r, o in zip(parsed, outputs, strict=True)
        ]
        _warn_of_negative_weights(parsed)
    if default is not None:
        settings["fallback"] = Fallback(check_label("default", default))
    rules = [
        _make_rule(rule, output, counted, rule.statistics.get("weight", 1.0), numeric)
        for rule, output, counted in zip(parsed, outputs, counts, strict=True)
    ]
    return RuleSet(rules, names, **settings)


def _survival_rules(
    parsed: Sequence[ParsedRule], names: Sequence[str], numeric: set[int], domain: Domain | None
) -> RuleSet:
    """Create a rule set from the premises of survival rules."""
    for rule in parsed:
        if rule.value != _UNKNOWN:
            raise ValueError(
                f"{rule.location} concludes {rule.value!r}, unlike rules for survival: "
                "leave out task='survival'."
            )
    rules = [_make_rule(rule, 0.0, None, 1.0, numeric) for rule in parsed]
    return RuleSet(rules, names, task="regression", domain=domain, ordered=False)


def _infer_task(
    parsed: Sequence[ParsedRule], task: str | None, classes: Sequence[Any] | None
) -> str:
    """Return the task; raise a ValueError if the conclusions contradict `task`."""
    first = parsed[0]
    without_conclusion = [rule.location for rule in parsed if rule.value == _UNKNOWN]
    if without_conclusion and (classes is None or _UNKNOWN not in map(str, classes)):
        raise ValueError(
            f"{without_conclusion[0]} has no conclusion, like rules for survival: pass "
            "task='survival' to read the premises, and fit the survival curves of the rules with "
            "SurvivalRules.fit(rules, X, y)."
        )
    if task is None:
        return "regression" if first.is_number else "classification"
    if task == "classification" and first.is_number:
        raise ValueError(
            f"{first.location} concludes a number with a range, but task is 'classification'. "
            "Omit task, or pass task='regression'."
        )
    return task


def _warn_of_negative_weights(parsed: Sequence[ParsedRule]) -> None:
    """Issue a warning if the weight of a rule is negative."""
    negative = [rule.location for rule in parsed if rule.statistics.get("weight", 1.0) < 0]
    if negative:
        warnings.warn(
            f"{negative[0]} has a negative weight. If no class has positive votes, RuleKit "
            "predicts by the order of its rules, but the converted rules by their votes.",
            UserWarning,
            stacklevel=3,
        )


def _make_rule(
    rule: ParsedRule, output: Any, counts: Any, weight: float, numeric: set[int]
) -> Rule:
    try:
        statistics = None if rule.n_rows is None else RuleStatistics(rule.n_rows, counts)
        conditions = tuple(_with_numbers(c, numeric) for c in rule.conditions)
        return Rule(conditions, output, statistics, weight)
    except ValueError as error:
        raise ValueError(f"{rule.location}: {error}") from error


def _rule_lines(text: str | Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the text of each rule with its line or number."""
    if not isinstance(text, str):
        for number, item in enumerate(text, 1):
            if not isinstance(item, str):
                raise TypeError(f"text must hold texts, got {type(item).__name__}: {item!r}.")
            yield f"Rule {number}", item
        return
    lines = list(enumerate(text.split("\n"), 1))
    sections = [number for number, line in lines if line.strip() in ("Rules:", "Rules")]
    if len(sections) > 1:
        raise ValueError(
            f"The text has {len(sections)} sections that begin with 'Rules:' (lines "
            f"{listed(sections)}), one per model: pass a single section."
        )
    if sections:
        lines = lines[sections[0] :]
        empty = [at for at, (_, line) in enumerate(lines) if not line.strip()]
        lines = lines[: empty[0]] if empty else lines
    for number, line in lines:
        if line.strip():
            yield f"Line {number}", line.rstrip("\r")


def _check_alike(parsed: Sequence[ParsedRule]) -> None:
    """Raise a ValueError unless all rules may be from the same model."""
    first = parsed[0]
    for rule in parsed[1:]:
        if rule.label != first.label:
            raise ValueError(
                f"{rule.location} concludes {rule.label!r}, {first.location} {first.label!r}: all "
                "rules must have the same target."
            )
        if rule.is_number != first.is_number:
            raise ValueError(
                f"{rule.location} concludes {'a number' if rule.is_number else 'a class'}, "
                f"{first.location} does not: all rules must have the same task."
            )
        if ("weight" in rule.statistics) != ("weight" in first.statistics):
            has = "a" if "weight" in rule.statistics else "no"
            raise ValueError(
                f"{rule.location} has {has} weight, unlike {first.location}: either all rules must "
                "have one or none."
            )


def _number(rule: ParsedRule) -> float:
    try:
        return check_number("the conclusion", float(rule.value), finite=True)
    except ValueError:
        raise ValueError(
            f"{rule.location}: a rule for regression must conclude a number, got {rule.value!r}."
        ) from None


def _labels_in_text(parsed: Sequence[ParsedRule], classes: Sequence[Any] | None) -> dict[str, Any]:
    """Return the label of each text."""
    if classes is None:
        for rule in parsed:
            if set(rule.value) & set("{}"):
                raise ValueError(
                    f"{rule.location} concludes {rule.value!r}, which looks like more than a "
                    "label: pass classes=... if it is one."
                )
        return {rule.value: rule.value for rule in parsed}
    classes = check_sequence("classes", classes, "labels")
    labels = {str(label): check_label("classes", label) for label in classes}
    if len(labels) < len(classes):
        raise ValueError(f"classes must differ from each other as texts, got {list(classes)}.")
    for rule in parsed:
        if rule.value not in labels:
            raise ValueError(
                f"{rule.location} concludes {rule.value!r}, which is not str(label) of any of the "
                f"classes {list(classes)}."
            )
    return labels


def _class_counts(
    rule: ParsedRule, output: Any, classes: Sequence[Any], all_classes: Sequence[Any]
) -> tuple[float, ...] | None:
    """Return the class counts of a rule; None if its numbers of errors do not determine them."""
    if rule.n_rows is None:
        return None
    right, wrong = rule.statistics["p"], rule.statistics["n"]
    if wrong and len(all_classes) != 2:
        return None
    return tuple(right if label == output else wrong for label in classes)


def _with_numbers(condition: Condition, numeric: set[int]) -> Condition:
    """Convert the value of a feature that has bounds elsewhere from text to a number."""
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
