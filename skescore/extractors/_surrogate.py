"""Rules that any rule learner finds in the black box's predictions."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore._text import listed
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._sampling import N_QUERIES
from skescore.rules import Rule, RuleSet, as_ruleset
from skescore.rules.importers import AffineMap, in_user_units


@documented
class SurrogateExtractor(BaseExtractor):
    """Rules of a learner from another library that is fitted on the black box's predictions.

    Use it to compare rule learners with extractors on any table. The rules are read by
    :func:`skescore.rules.as_ruleset`.

    Parameters
    ----------
    {estimator}
    learner : estimator, callable or mapping, optional
        An estimator with ``fit(X, y)``, which is cloned; a function of ``(X, y, random_state)``
        that returns a fitted model or a :class:`~skescore.rules.RuleSet`; or a mapping from tasks
        to either, ``{{"classification": ..., "regression": ...}}``. X is a DataFrame of floats, and
        y holds class indices or floats. Rules may be on a subset of the columns, by name and in any
        order. None: a decision tree of scikit-learn with at most 8 leaves.
    {common}
    random_state : int, RandomState instance or None, default=None
        Passed on to functions, and to estimators whose parameter of this name is None.

    Attributes
    ----------
    rules_ : RuleSet
        The rules.
    {sizes}
    learner_ : object
        The fitted learner; None if the predictions of the black box are constant.
    {fitted}

    Notes
    -----
    The learner gets categories as ranks of their mean prediction. Missing values are filled in and
    marked in additional columns. The rules are converted back to the original table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.extractors import SurrogateExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=3)
    >>> extractor = SurrogateExtractor(KNeighborsClassifier(9), tree, random_state=0)
    >>> len(extractor.fit(data.data, labels).rules_)
    3
    """

    takes_categories = True
    _orders_categories = True
    #: Rounded bounds could change the predictions of the learner's rules.
    readable_bounds = False

    def __init__(
        self,
        estimator: Any,
        learner: Any = None,
        *,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.learner = learner
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        learner = self._learner(self._task())
        if not (callable(learner) or hasattr(learner, "fit")):
            raise TypeError(
                "learner must be an estimator with fit, a function of (X, y, random_state), a "
                f"mapping of either by task or None, got {self.learner!r}."
            )

        if hasattr(learner, "fit"):
            _check_clonable(learner)
        else:
            _check_signature(learner)

    def _learner(self, task: str) -> Any:
        if self.learner is None:
            kind = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
            return kind(max_leaf_nodes=8)
        if not isinstance(self.learner, dict):
            return self.learner
        if task not in self.learner:
            raise ValueError(
                f"learner must have an entry for {task}, but has entries for "
                f"{' and '.join(self.learner)}."
            )
        return self.learner[task]

    def _extract(self, extraction: Extraction) -> RuleSet:
        settings, classification = extraction.settings, extraction.task == "classification"
        present_codes, codes = np.unique(extraction.predictions, return_inverse=True)
        if len(present_codes) == 1:
            self.learner_ = None
            value = (
                settings["classes"][int(present_codes[0])]
                if classification
                else float(present_codes[0])
            )
            return RuleSet([Rule((), value)], **settings)
        y = codes if classification else extraction.predictions
        X = pd.DataFrame(
            extraction.X, columns=[f"x{j}" for j in range(extraction.X.shape[1])], copy=True
        )
        learner = self._learner(extraction.task)
        if hasattr(learner, "fit"):
            model = clone(learner)
            if model.get_params(deep=False).get("random_state", 0) is None:
                model.set_params(random_state=self.random_state)
            self.learner_ = model.fit(X, y)
        else:
            self.learner_ = learner(X, y, self.random_state)
        rules = as_ruleset(self.learner_)
        if rules.task != extraction.task:
            raise ValueError(
                f"learner must find rules for {extraction.task}, got rules for {rules.task} of "
                f"{type(self.learner_).__name__}."
            )
        rules = _convert_to_columns(rules, self.learner_, list(map(str, X.columns)))
        if classification:
            rules = _restore_classes(rules, present_codes, settings["classes"])
        fallback = settings["fallback"] if rules.fallback is None else rules.fallback
        return rules.replace(
            feature_names=settings["feature_names"], domain=settings["domain"], fallback=fallback
        )


def _check_clonable(learner: Any) -> None:
    """Raise a TypeError if scikit-learn cannot clone a learner."""
    if not hasattr(learner, "get_params"):
        name = type(learner).__name__
        raise TypeError(
            f"learner {name} has no get_params, so it cannot be cloned for each fit. Derive the "
            "class from sklearn.base.BaseEstimator, or pass a function: lambda X, y, random_state: "
            f"{name}().fit(X, y)."
        )


def _check_signature(function: Any) -> None:
    """Raise a TypeError if a function does not accept (X, y, random_state)."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have no signature
        return
    try:
        signature.bind(None, None, None)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise TypeError(
            f"learner {name}{signature} must accept the three arguments (X, y, random_state): "
            f"{error}."
        ) from error


def _convert_to_columns(ruleset: RuleSet, learner: Any, names: list[str]) -> RuleSet:
    """Convert rules on some columns, in any order, to rules on all columns."""
    rule_names = list(ruleset.feature_names)
    n_fitted = getattr(learner, "n_features_in_", len(names))
    nameless = n_fitted != len(names) and not hasattr(learner, "feature_names_in_")
    unknown = [name for name in rule_names if name not in names]
    if nameless or (unknown and len(rule_names) != len(names)):
        raise ValueError(
            f"learner must find rules about the {len(names)} columns of X, got {len(rule_names)}, "
            f"{listed(rule_names)}. Fit it on a data frame of the columns that it uses, so that "
            "they keep their names."
        )
    if unknown or rule_names == names:  # other names for all columns in order, or the same names
        return ruleset
    column_index = [names.index(name) for name in rule_names]
    return in_user_units(ruleset, AffineMap.identity(tuple(names)).take(column_index))


def _label_code(label: Any) -> int:
    """Convert a label, which may be text, to an integer; return -1 if it is not an integer."""
    try:
        return int(label) if float(label).is_integer() else -1
    except ValueError:
        return -1


def _restore_classes(ruleset: RuleSet, present_codes: np.ndarray, classes: list[Any]) -> RuleSet:
    """Replace the predicted labels 0, 1, ... of rules by the original classes."""
    code_of = {label: _label_code(label) for label in ruleset.classes or ()}
    if invalid_labels := [
        label for label, code in code_of.items() if code not in range(len(present_codes))
    ]:
        raise ValueError(
            f"learner must predict the labels of y, 0 to {len(present_codes) - 1}, got "
            f"{listed(invalid_labels)}. Let the rules predict these numbers; fit replaces them by "
            "the classes."
        )
    class_index = [int(present_codes[code]) for code in code_of.values()]

    def expand_counts(counts: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if counts is None:
            return None
        result = [0.0] * len(classes)
        for index, count in zip(class_index, counts, strict=True):
            result[index] = count
        return tuple(result)

    def name(label: Any) -> Any:
        return classes[int(present_codes[code_of[label]])]

    rules = [
        replace(
            rule,
            output=name(rule.output),
            statistics=rule.statistics
            and replace(
                rule.statistics,
                class_counts=expand_counts(rule.statistics.class_counts),
                target_counts=expand_counts(rule.statistics.target_counts),
            ),
        )
        for rule in ruleset.rules
    ]
    fallback = ruleset.fallback
    if fallback is not None:
        fallback = replace(
            fallback,
            output=name(fallback.output),
            class_counts=expand_counts(fallback.class_counts),
        )
    return ruleset.replace(rules=rules, classes=classes, fallback=fallback)
