"""Evaluation of fitted rules on rows, from which :mod:`skescore.scorers` computes all scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from numbers import Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from skescore._validation import one_dimension, own_rows, row_weights
from skescore.metrics import (
    RuleCounts,
    prediction_loss,
    prediction_performance,
    volume_completeness,
)
from skescore.metrics._prediction import common_codes, metric_of_sums
from skescore.rules import RowTable, RuleSet, SurvivalRules, as_ruleset, convert_rows
from skescore.rules.importers import options_from_rows

__all__ = ["SIZES", "RuleEvaluation", "evaluate_rules"]

Size = str | Callable[[RuleSet], float]
#: Units of the size of a rule set.
SIZES = ("rules", "conditions", "literals", "terms")
REFERENCES = ("data", "black_box")
Value = TypeVar("Value")
#: Maximum number of rows for the test whether y has the units of the rules.
_COMPARED = 50


@dataclass(eq=False)
class RuleEvaluation:
    """Evaluation of a rule set on rows, from which all scores are computed.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or RuleCounts
        The rows, in the units of the rules; or counts of rows.
    y_true, y_pred : ndarray of shape (n_rows,)
        True and predicted values, in the units of y. For counts, one entry per pair of true and
        predicted class, whose weight is its count; empty in regression.
    covered : ndarray of bool, shape (n_rows,)
        Whether at least one rule covers the row.
    default : float or None
        Prediction for uncovered rows in regression, in the units of y.
    sample_weight : ndarray or None
        Weights of the rows.
    model : object, optional
        Object that contains the rules: a fitted extractor, a tree, or a rule set.
    rows : array-like, optional
        The rows in the form that `model` and its black box accept.
    black_box : callable, optional
        Function that returns the black box's predictions for rows.
    reference : {"data", "black_box"}, optional
        Origin of the true values, if known.
    """

    ruleset: RuleSet
    X: Any
    y_true: np.ndarray
    y_pred: np.ndarray
    covered: np.ndarray
    default: float | None
    sample_weight: np.ndarray | None
    model: Any = None
    rows: Any = None
    black_box: Callable[[Any], Any] | None = None
    reference: str | None = None

    def __post_init__(self) -> None:
        # Several scores use the same measures.
        self._measured: dict[tuple[Any, ...], float] = {}
        self._shared_values: dict[Any, Any] = {}

    def compute_once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Compute a value that several measures share, and cache it under `key`."""
        if key not in self._shared_values:
            self._shared_values[key] = compute()
        value: Value = self._shared_values[key]
        return value

    def compared_with(self, y_true: Any) -> RuleEvaluation:
        """Compare the same predictions with other true values.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            True values, such as the black box's predictions for the same rows.

        Returns
        -------
        RuleEvaluation
            Copy of the evaluation with other true values.

        Raises
        ------
        ValueError
            If there is not one value per row, or the rules cannot predict such values.
        """
        checked = _check_truth(one_dimension("y", y_true), self.ruleset, self.y_pred.shape)
        return replace(self, y_true=checked, reference=None)

    def check_units(self) -> None:
        """Raise a ValueError if y is transformed, because single rules have their own units."""
        if isinstance(self.X, RuleCounts):  # Counts use the units of their own target.
            return
        rows = np.flatnonzero(self.covered)[:_COMPARED]
        if self.ruleset.task == "classification" or not len(rows):
            return
        by_rules = self.ruleset.predict(_safe_indexing(self.X, rows))
        y_pred = self.y_pred[rows].astype(float)
        # Extractors may predict a few rows differently from their rules, but not most rows.
        same = np.isclose(by_rules, y_pred, rtol=1e-6)
        if same.mean() < 0.5:
            raise ValueError(
                "y and the predictions have other units than the rules: for one row, the rules "
                f"predict {float(by_rules[~same][0])!r}, but the estimator predicts "
                f"{float(y_pred[~same][0])!r}. Measures of single rules need the target from which "
                "the rules were extracted: score the inner regressor (regressor_) on the "
                "transformed y."
            )

    def _check_predictions(self) -> None:
        """Raise a ValueError if a covered row with positive weight has no finite prediction.

        This happens if a linear rule needs a missing value. The error names the first such row.
        """
        counts = self.covered
        if self.sample_weight is not None:
            counts = counts & (self.sample_weight > 0)
        rows = np.flatnonzero(counts)
        bad_rows = rows[~np.isfinite(self.y_pred[rows].astype(float))]
        if len(bad_rows):
            raise ValueError(
                "y_pred must hold finite numbers, but the rules predict "
                f"{self.y_pred[bad_rows[0]]!s} in row {bad_rows[0]}, because a value that a linear "
                f"rule needs is missing there. {len(bad_rows)} of {len(self.y_pred)} rows are "
                "affected. Impute the values, or drop such rows (on the command line: --missing "
                "drop)."
            )

    def _predicted(self, measure: Callable[..., float], metric: Any, uncovered: str) -> float:
        if not isinstance(metric, str):  # a user's function may return anything
            return self._measure(measure, metric, uncovered)
        key = measure, metric, uncovered
        if key not in self._measured:
            self._measured[key] = self._measure(measure, metric, uncovered)
        return self._measured[key]

    def _measure(self, measure: Callable[..., float], metric: Any, uncovered: str) -> float:
        if isinstance(self.X, RuleCounts) and self.X.numbers is not None:
            sums = self.X.numbers.label_sums(uncovered, self.X.n_rows)
            return metric_of_sums(sums, metric, loss=measure is prediction_loss)
        y_true, y_pred = self.y_true, self.y_pred
        if isinstance(metric, str):
            if self.ruleset.task == "regression":
                self._check_predictions()
            else:
                y_true, y_pred = self._codes
        return measure(
            y_true,
            y_pred,
            metric=metric,
            task=self.ruleset.task,
            covered=self.covered,
            uncovered=uncovered,
            default=self.default,
            sample_weight=self.sample_weight,
        )

    @cached_property
    def _codes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return true and predicted labels as numbers, which metrics compare faster."""
        return common_codes(self.y_true, self.y_pred)

    def performance(self, metric: Any, uncovered: str) -> float:
        """Return the performance of the predictions (1 is best); NaN if no row counts."""
        return self._predicted(prediction_performance, metric, uncovered)

    def loss(self, metric: Any, uncovered: str) -> float:
        """Return the loss of the predictions (0 is best); NaN if no row counts."""
        return self._predicted(prediction_loss, metric, uncovered)

    def agreement(self, metric: str) -> float:
        """Return the performance of all predictions, including the fallback's (1 is best).

        If the rules have no fallback or abstain, uncovered rows count as wrong (classification) or
        as predicted by `default` (regression).
        """
        fallback = self.ruleset.fallback
        if self.covered.all() or fallback is None or fallback.policy == "abstain":
            return self.performance(metric, "penalize")
        return replace(self, covered=np.ones_like(self.covered)).performance(metric, "ignore")

    def size(self, kind: Size) -> float:
        """Return the size of the rule set; at least 1 if there are rules."""
        if callable(kind):
            return float(kind(self.ruleset))
        n_rules = len(self.ruleset)
        if kind == "rules" or n_rules == 0:
            return float(n_rules)
        # A rule set without any condition has size 1.
        return float(max(1, getattr(self.ruleset, f"n_{kind}")))

    @cached_property
    def volume(self) -> float:
        """Share of the domain's volume that at least one rule covers.

        Rules without a domain use the box around the rows.
        """
        ruleset = self.ruleset
        if ruleset.domain is None:
            if isinstance(self.X, RuleCounts):
                raise ValueError(
                    "Completeness by volume needs the domain of the rules, which counts of rows do "
                    "not contain. Pass rules.replace(domain=rules.domain_around(sample))."
                )
            # Imported rules have no training rows, so the domain contains the scored rows.
            domain = ruleset.domain_around(self.X, self.sample_weight)
            ruleset = ruleset.replace(domain=domain)
        return float(volume_completeness(ruleset))

    @cached_property
    def instances(self) -> float:
        """Share of the rows that at least one rule covers."""
        if isinstance(self.X, RuleCounts):
            return self.X.coverage
        return float(np.average(self.covered, weights=self.sample_weight))

    @property
    def n_rows(self) -> tuple[int, int]:
        """Numbers of covered rows and of all rows."""
        if isinstance(self.X, RuleCounts):
            return self.X.n_rows[0], sum(self.X.n_rows)
        return int(self.covered.sum()), len(self.covered)

    def completeness(self, kind: str | Callable[[RuleSet, Any], float]) -> float:
        """Return the share of volume or instances, or the value of a function of rules and rows."""
        if callable(kind):
            return float(kind(self.ruleset, self.X))
        return self.volume if kind == "volume" else self.instances


class Unwrapped(NamedTuple):
    """Innermost model of an estimator, with functions that convert rows and predictions.

    `transform` converts rows of the outer estimator to rows of `model`, and `to_outer` converts
    predictions of `model` to predictions of the outer estimator.
    """

    model: Any
    transform: Callable[[Any], Any]
    to_outer: Callable[[Any], Any]


def unwrap(estimator: Any) -> Unwrapped:
    """Return the model with rules inside a pipeline, search, frozen or target-transformed model."""
    row_steps: list[Callable[[Any], Any]] = []
    output_steps: list[Callable[[Any], Any]] = []
    model = estimator
    while isinstance(model, FrozenEstimator) or not isinstance(
        getattr(model, "rules_", model), RuleSet | SurvivalRules
    ):
        if isinstance(model, Pipeline):
            check_is_fitted(model)
            if len(model) > 1:
                row_steps.append(_transform_of(model[:-1]))
            model = model[-1]
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, TransformedTargetRegressor):
            check_is_fitted(model)
            output_steps.insert(0, _inverse_target(model))
            model = model.regressor_
        else:
            break

    def compose(steps: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        return lambda values: reduce(lambda result, step: step(result), steps, values)

    return Unwrapped(model, compose(row_steps), compose(output_steps))


def _transform_of(steps: Pipeline) -> Callable[[Any], Any]:
    """Return a function that applies steps to rows without changing them in place."""
    return lambda X: steps.transform(own_rows(X))


def _inverse_target(model: Any) -> Callable[[Any], Any]:
    def inverse(values: Any) -> Any:
        array = np.asarray(values, dtype=float)
        return model.transformer_.inverse_transform(array.reshape(-1, 1)).reshape(array.shape)

    return inverse


def rows_of_rules(ruleset: RuleSet, X: Any) -> Any:
    """Select the features of the rules by name from a frame that has them, otherwise by index."""
    by_name = set(map(str, getattr(X, "columns", ()))) >= set(ruleset.feature_names)
    return X if by_name or isinstance(X, RowTable) else np.asarray(X)


def _evaluated_counts(estimator: Any, counts: RuleCounts, y: Any, weights: Any) -> RuleEvaluation:
    """Build the evaluation of rules from counts of rows."""
    if y is not None or weights is not None:
        raise ValueError(
            "Counts of rows already contain labels and weights, but y or sample_weight was passed "
            "too. Pass only the counts."
        )
    ruleset = as_ruleset(unwrap(estimator).model)
    counts.check(ruleset)
    if counts.classes is None:
        nothing = np.empty(0)
        return RuleEvaluation(ruleset, counts, nothing, nothing, nothing.astype(bool), None, None)
    y_true, y_pred, covered, cell_weights = counts.classes.cells(ruleset.classes or ())
    return RuleEvaluation(ruleset, counts, y_true, y_pred, covered, None, cell_weights)


def evaluate_rules(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    reference: str = "data",
    sample_weight: Any = None,
    black_box: Callable[[Any], Any] | None = None,
) -> RuleEvaluation:
    """Evaluate fitted rules on rows, as input for scores.

    Parameters
    ----------
    estimator : estimator or RuleSet
        A rule set, a fitted extractor, or an estimator that contains one.
    X : array-like or DataFrame of shape (n_rows, n_features), or RuleCounts
        The rows; or counts of rows, which contain labels and weights.
    y : array-like of shape (n_rows,), optional
        True values; ignored with ``reference="black_box"``.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions (fidelity).
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.
    black_box : callable, optional
        Function that returns the black box's predictions for rows, such as ``model.predict``. It is
        required only for rules without an extractor.

    Returns
    -------
    RuleEvaluation
        The evaluation, which computes size, completeness and performance on demand.

    Raises
    ------
    TypeError
        If there is no rule set, or no black box to compare with.
    NotFittedError
        If the estimator is not fitted yet.
    ValueError
        If there are no rows, y or the weights have a wrong shape, or y has no class of the rules.
    """
    if isinstance(X, RuleCounts):
        if reference == "black_box":
            raise ValueError(
                "reference='black_box' needs rows for which the black box can be queried, but got "
                "counts of rows. Count the rows with the black box's predictions as labels."
            )
        return _evaluated_counts(estimator, X, y, sample_weight)
    model, transform, to_outer = unwrap(estimator)
    X = convert_rows(X)
    X_inner = transform(X)
    ruleset = _read_rules(estimator, model, X_inner)
    if isinstance(estimator, RuleSet) and estimator.fallback is None and len(estimator):
        # Measures ignore this prediction of uncovered rows, but predict requires a value.
        estimator = estimator.with_arbitrary_fallback()
    X_rules = rows_of_rules(ruleset, X_inner)
    # Extractors read columns of a frame as in fit.
    has_covers = hasattr(model, "covers") and not isinstance(model, RuleSet)
    covered = model.covers(X_inner) if has_covers else ruleset.covers(X_rules)
    n_rows = len(covered)
    if n_rows == 0:
        raise ValueError("X must hold at least one row to score rules on, got 0 rows.")
    y_pred = np.empty(n_rows, dtype=object)
    if len(ruleset):  # pipeline steps may modify rows in place
        y_pred = np.asarray(estimator.predict(X if estimator is model else own_rows(X)))
    if black_box is None:
        black_box = _query_of(model)
    if reference == "black_box":
        y_true = np.asarray(to_outer(_require_black_box(black_box, model)(X_inner)))
    elif y is None:
        raise ValueError("reference='data' compares with y, but y is None; pass y.")
    else:
        y_true = one_dimension("y", convert_rows(y))
    y_true = _check_truth(y_true, ruleset, y_pred.shape)
    default = None
    if ruleset.task == "regression" and ruleset.fallback is not None:
        default = float(to_outer(np.asarray(ruleset.fallback.output, dtype=float)))
    weights = None if sample_weight is None else row_weights(sample_weight, n_rows)
    if weights is not None and not weights.any():
        raise ValueError(
            f"sample_weight must hold a positive number, got {n_rows} zeros. Pass None to give all "
            "rows the same weight."
        )
    return RuleEvaluation(
        ruleset,
        X_rules,
        y_true,
        y_pred,
        covered,
        default,
        weights,
        model,
        X_inner,
        black_box,
        reference,
    )


def _read_rules(estimator: Any, model: Any, X: Any) -> RuleSet:
    """Convert the model that holds the rules of an estimator to a rule set."""
    try:
        return as_ruleset(model, **options_from_rows(model, X))
    except TypeError as error:
        raise TypeError(
            f"{type(estimator).__name__} has no rule set to score: pass a fitted extractor, a "
            "decision tree, or a Pipeline or search (refit=True) that ends in one. Ensembles of "
            "extractors have no single rule set."
        ) from error


def _require_black_box(black_box: Callable[[Any], Any] | None, model: Any) -> Callable[[Any], Any]:
    """Return the black box, or raise an error if there is none."""
    if black_box is None:
        raise TypeError(
            f"reference='black_box' needs an extractor with a black box (oracle_), but "
            f"{type(model).__name__} has none; pass black_box=model.predict, or use "
            "reference='data' with y from the black box."
        )
    return black_box


def _query_of(model: Any) -> Callable[[Any], Any] | None:
    oracle = getattr(model, "oracle_", None)
    query: Callable[[Any], Any] | None = getattr(oracle, "query", None)
    return query


def _check_truth(y_true: np.ndarray, ruleset: RuleSet, shape: tuple[int, ...]) -> np.ndarray:
    """Return the true values; raise a ValueError if they do not fit the rules."""
    if y_true.shape != shape:
        raise ValueError(f"y must have shape {shape}, one prediction per row, got {y_true.shape}.")
    if ruleset.task == "regression":
        return _numbers(y_true)
    if len(ruleset):
        _check_labels(y_true, ruleset)
    return y_true


def _numbers(y_true: np.ndarray) -> np.ndarray:
    # Measures do not check the values of uncovered rows.
    if y_true.dtype.kind in "fiub":
        wrong = y_true[~np.isfinite(y_true)].tolist()
    else:
        wrong = [v for v in y_true.tolist() if not (isinstance(v, Real) and math.isfinite(v))]
    if wrong:
        raise ValueError(
            f"The rules predict numbers, so y must hold finite numbers, got {wrong[0]!r}. Drop "
            "such rows, or score rules of a classifier."
        )
    return y_true.astype(float)


def _check_labels(y_true: np.ndarray, ruleset: RuleSet) -> None:
    labels = set(y_true.tolist())  # a set, as labels of several types cannot be sorted
    if not labels & set(ruleset.classes or ()):
        examples = ", ".join(sorted(map(repr, labels))[:5])
        raise ValueError(
            f"None of the labels of y ({examples}) is a class of the rules "
            f"({', '.join(map(repr, (ruleset.classes or ())[:5]))}). Encode y in the same way as "
            "for the extraction."
        )
    missing_rows = np.flatnonzero(pd.isna(y_true))
    if len(missing_rows):  # they would count as another class that is never predicted
        raise ValueError(
            f"y must hold a label in every row, but row {int(missing_rows[0])} has none. Drop such "
            "rows first."
        )
