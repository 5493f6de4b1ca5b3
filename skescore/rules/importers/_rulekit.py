"""Rules from the models of RuleKit, whose answers they repeat.

The models live in Java; this module asks the objects it is given and imports nothing, so that
reading a model never starts a Java machine of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skescore._text import listed
from skescore._validation import check_label
from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet

#: RuleKit's sign of a free side: the largest float rather than infinity.
_FREE = float(np.finfo(float).max)


def read_rulekit(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    domain: Domain | None = None,
    exact: bool = True,
) -> RuleSet:
    """Turn a fitted model of RuleKit into rules that answer like it.

    Use it to score, compare, simplify or export rules that RuleKit found. The bounds are exact; in
    the texts that RuleKit prints they are rounded, see
    :func:`skescore.rules.importers.read_rulekit_text`.

    Parameters
    ----------
    model : RuleClassifier, RuleRegressor, ExpertRuleClassifier or ExpertRuleRegressor
        A fitted model, or the rule set in its attribute ``model``.
    feature_names : sequence of str, optional
        Other names for the features, in the order of the columns. By default those that the model
        was fitted with; of an array RuleKit names them ``att1``, ``att2``, ...
    classes : sequence, optional
        The labels, if they are not those that the model was fitted with: RuleKit turns labels into
        text, and each text must be ``str(label)`` of one of these. Their order does not matter.
    domain : Domain, optional
        The box in which the rules are meant to answer; by default the one around the training
        rows, which the model keeps.
    exact : bool, default=True
        True refuses what this package cannot repeat to the last row (see Notes); False reads the
        rules all the same.

    Returns
    -------
    RuleSet
        Voting rules with RuleKit's weights. The statistics are counted anew on the training rows.

    Raises
    ------
    TypeError
        If the model is not one of RuleKit's.
    ValueError
        If the model is not fitted; is a survival or contrast set model; has a weight that is no
        finite number; or, with `exact`, would answer otherwise than the rules read.

    Notes
    -----
    - Where no rule holds, the engine answers the class whose name sorts first (by UTF-16 units, as
      Java compares), whatever default class it stores; so does the fallback. The same order
      decides equal votes, so the classes stand in it: ``10`` before ``9``, as texts do. For a
      regression the fallback is the default value of the engine, a median of the training rows.
    - A missing value satisfies no condition of ours. In RuleKit it satisfies a complementary
      condition such as ``colour = !{red}``, and any condition after ``ignore_missing=True``. With
      `exact` a model is refused where its own training rows would show the difference. RuleKit
      keeps ``ignore_missing`` for the whole process: fitting another model changes the answers of
      those before. The rules read follow the model's own parameter.
    - With a negative weight (an expert's rule worse than chance) and no class whose votes add up
      to more than 0, the engine follows the order of the rules rather than the votes. With `exact`
      such a classification is refused.
    - An infinite value satisfies no numeric condition in RuleKit, not even of a free side.

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
    rules = [_rule(java, number, training) for number, java in enumerate(engine.getRules(), 1)]
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
        _check_exact(rules, engine, training)
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
    """Sort texts as Java does: by UTF-16 units."""
    return sorted(texts, key=lambda text: text.encode("utf-16-be", "surrogatepass"))


def _engine(model: Any) -> Any:
    """The Java object of a rule set that can be read."""
    ruleset = model
    if not hasattr(model, "_java_object") and hasattr(model, "model"):
        ruleset = model.model
        if ruleset is None:
            raise ValueError("The RuleKit model is not fitted: call fit(X, y) before.")
    engine = getattr(ruleset, "_java_object", None)
    if engine is None or not hasattr(engine, "getRules"):
        raise TypeError(
            f"model must be a fitted model of RuleKit or its rule set, got {type(model).__name__}."
        )
    kind = _kind(engine)
    contrast = engine.getTrainingHeader().getAttributes().getColumnByRole("contrast_attribute")
    if kind not in ("ClassificationRuleSet", "RegressionRuleSet") or contrast is not None:
        raise ValueError(
            "model must be a classification or a regression, got one of RuleKit whose rules are "
            f"{kind if contrast is None else 'contrast sets'}."
        )
    if kind == "RegressionRuleSet" and hasattr(model, "label_unique_values"):
        raise ValueError(
            "The RuleKit classifier was fitted on labels that it took for numbers, so that it "
            "cannot even predict: fit it with y as a NumPy array or a pandas Series of texts."
        )
    if not engine.getIsVoting():
        raise ValueError(
            "model must have rules that vote, got a RuleKit model of which one answers."
        )
    return engine


def _kind(java: Any) -> str:
    return str(java.getClass().getSimpleName())


@dataclass(frozen=True)
class _Training:
    """The training rows, which RuleKit keeps in its models."""

    names: list[str]
    #: By the names of RuleKit, which the conditions use.
    features: dict[str, int]
    columns: list[np.ndarray]
    categories: dict[int, tuple[str, ...]]
    labels: np.ndarray
    classes: tuple[str, ...] | None

    @classmethod
    def of(cls, engine: Any, feature_names: Sequence[str] | None) -> _Training:
        header = engine.getTrainingHeader().clone()
        # It cannot be asked for its columns in a model that comes out of a pickle.
        table = _field(header, "table")
        attributes = header.getAttributes()
        given: list[str] = []
        columns: list[np.ndarray] = []
        categories: dict[int, tuple[str, ...]] = {}
        for attribute in _iterated(attributes):
            column, values = _column(table, attribute)
            if values is not None:
                categories[len(given)] = values
            given.append(str(attribute.getName()))
            columns.append(column)
        labels, classes = _column(table, attributes.getLabel())
        names = given if feature_names is None else [str(name) for name in feature_names]
        if isinstance(feature_names, str) or len(names) != len(given):
            raise ValueError(
                f"feature_names must name the {len(given)} features that the model was fitted "
                f"with ({listed(given)}), got {feature_names!r}."
            )
        features = {name: index for index, name in enumerate(given)}
        return cls(names, features, columns, categories, labels, classes)

    def has_missing(self, feature: int) -> bool:
        return bool(pd.isna(self.columns[feature]).any())

    def domain(self) -> Domain | None:
        """The box around the rows; None if there is no such box."""
        lower: list[float] = []
        upper: list[float] = []
        for feature, column in enumerate(self.columns):
            if feature in self.categories:
                lower.append(0.0)
                upper.append(0.0)
                continue
            known = column[np.isfinite(column)]
            if not len(known):
                return None
            lower.append(float(known.min()))
            upper.append(float(known.max()))
        if not all(self.categories.values()):
            return None
        return Domain.around(np.array([lower, upper]), categories=self.categories)

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(dict(zip(self.names, self.columns, strict=True)))


def _iterated(java: Any) -> Iterable[Any]:
    iterator = java.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _column(table: Any, attribute: Any) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The training values of a column; for a nominal one as texts, with the values it may have."""
    column = table.column(attribute.getName())
    if hasattr(column, "asDoubleArray"):
        numbers = np.array(column.asDoubleArray(), dtype=float)
    else:  # what a pickle makes of numbers that are all missing or infinite
        numbers = np.array([float(str(text or "nan")) for text in column.asObjectArray()])
    if not attribute.isNominal():
        return numbers, None
    values = tuple(str(value) for value in attribute.getMapping().getValues())
    texts = np.full(len(numbers), None, dtype=object)
    known = ~np.isnan(numbers)
    texts[known] = np.array(values, dtype=object)[numbers[known].astype(int)]
    return texts, values


def _labels(texts: Sequence[str], model: Any, classes: Sequence[Any] | None) -> dict[str, Any]:
    """The label that each of RuleKit's texts stands for."""
    if isinstance(classes, str):
        raise TypeError(f"classes must be a sequence of labels, got {classes!r}.")
    given: Any = getattr(model, "label_unique_values", None) if classes is None else classes
    given = list(texts) if given is None or not len(given) else list(given)
    labels = {str(value): check_label("classes", value) for value in given}
    if set(labels) != set(texts):
        raise ValueError(
            f"classes must hold the labels whose str(label) is one of {listed(list(texts))}, got "
            f"{listed(given)}. Pass the labels of the data that the model was fitted with."
        )
    return labels


def _rule(java: Any, number: int, training: _Training) -> Rule:
    weight = float(java.getWeight())
    if not math.isfinite(weight):
        raise ValueError(
            f"Rule {number} of the RuleKit model has the weight {weight!r}, with which no votes "
            "can be counted. Fit the model with another voting_measure."
        )
    try:
        conditions = _conditions(java.getPremise(), training)
        consequent = java.getConsequence().getValueSet()
        if training.classes is None:
            return Rule(tuple(conditions), float(consequent.getValue()), None, weight)
        return Rule(tuple(conditions), str(consequent.getValueAsString()), None, weight)
    except ValueError as error:
        text = str(java.toString())
        raise ValueError(f"Rule {number} of the RuleKit model ({text}): {error}") from error


def _conditions(java: Any, training: _Training) -> list[Condition]:
    """The conditions that must all hold, where a Java condition must."""
    if java.isDisabled():
        return []
    if hasattr(java, "getSubconditions"):
        parts = [_conditions(part, training) for part in java.getSubconditions()]
        if str(_field(java, "operator")) == "CONJUNCTION":
            return [condition for part in parts for condition in part]
        if not parts or not all(parts):
            raise ValueError("it has an alternative with an empty side, which cannot be expressed")
        sides = [part[0] if len(part) == 1 else AtLeast(len(part), tuple(part)) for part in parts]
        return [AtLeast(1, tuple(sides))]
    return _elementary(training.features[str(java.getAttribute())], java.getValueSet())


def _elementary(feature: int, values: Any) -> list[Condition]:
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
            )
        ]
    if kind not in ("SingletonSet", "SingletonSetComplement"):
        raise ValueError(f"its condition of the kind {kind} is not known here")
    negated = kind == "SingletonSetComplement"
    if values.getMapping() is not None:
        return [OneOf(feature, (str(values.getValueAsString()),), negated=negated)]
    value = float(values.getValue())
    if not negated:
        return [Interval(feature, value, value, lower_closed=True, upper_closed=True)]
    sides = Interval(feature, upper=value, upper_closed=False), Interval(feature, lower=value)
    return [AtLeast(1, sides)]


def _field(java: Any, name: str) -> Any:
    """A field of a Java object for which there is no getter."""
    field = java.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java)


def _check_exact(rules: Sequence[Rule], engine: Any, training: _Training) -> None:
    """Refuse what would be answered otherwise."""
    remedy = "Pass exact=False to read the rules all the same."
    negative = [number for number, java in enumerate(engine.getRules(), 1) if java.getWeight() < 0]
    if negative and training.classes is not None:
        raise ValueError(
            f"The RuleKit model has rules with negative weights ({listed(negative)}). Where no "
            "votes above 0 are left, RuleKit then answers by the order of its rules, which a rule "
            f"set with votes cannot repeat. {remedy}"
        )
    ignored = bool(engine.getParams().isIgnoreMissing())
    unlike = {
        feature
        for rule in rules
        for condition in rule.conditions
        if ignored or isinstance(condition, AtLeast) or getattr(condition, "negated", False)
        for feature in condition.features
        if training.has_missing(feature)
    }
    if unlike:
        names = listed([training.names[feature] for feature in sorted(unlike)])
        what = "all conditions (ignore_missing=True)" if ignored else "complementary conditions"
        raise ValueError(
            f"The RuleKit model was fitted on missing values in {names}, which satisfy {what} "
            f"there but no condition of a RuleSet. {remedy}"
        )


def _with_statistics(ruleset: RuleSet, training: _Training) -> RuleSet:
    """Count the training rows of every rule."""
    if not len(training.labels) or not len(ruleset):
        return ruleset
    held = ruleset.match(training.table())
    rules = []
    for rule, rows in zip(ruleset, held.T, strict=True):
        labels = training.labels[rows]
        if ruleset.classes is None:
            known = [float(np.mean(labels)), float(np.std(labels))] if len(labels) else [None, None]
            statistics = RuleStatistics(len(labels), None, *known)
        else:
            counts = tuple(float(np.sum(labels == str(label))) for label in ruleset.classes)
            statistics = RuleStatistics(len(labels), counts)
        rules.append(Rule(rule.conditions, rule.output, statistics, rule.weight))
    return ruleset.replace(rules=rules)
