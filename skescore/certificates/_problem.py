"""Definition of a certificate: its rows, rules, score, search space and limits."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, NotRequired, TypedDict

import numpy as np

from skescore._names import metric_label
from skescore._rows import deviations_from_mean
from skescore._validation import (
    check_choice,
    check_number,
    one_dimension,
    python_value,
    row_weights,
)
from skescore.certificates._bounds import bound_weighted_f1
from skescore.metrics import PREDICTION_METRICS, prediction_loss, prediction_performance
from skescore.optimal import KINDS, Cuts, SearchSpace, SolverLimits
from skescore.rules import Interval, Missing, OneOf, RowTable, RuleSet
from skescore.scorers import SCORE_SPECS, RuleScorer, ScoreSpec, evaluate_rules, get_rule_scorer

#: Reference of rules that are compared with predictions instead of labels.
BLACK_BOX_REFERENCE = "the black box's predictions"
#: Loss from which each metric follows.
LOSS_OF_METRIC = {
    "accuracy": "errors",
    "f1_weighted": "errors",
    "r2": "squared_error",
    "mean_squared_error": "squared_error",
    "root_mean_squared_error": "squared_error",
    "mean_absolute_error": "absolute_error",
}
#: Largest default number of rules, and default number if more rules could have a better score.
_MAX_DEFAULT_RULES, _USUAL_RULES = 12, 6


class CertifiedRows(TypedDict):
    """Description of the rows of a certificate.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    task : {"classification", "regression"}
        Task of the rules.
    reference : str
        Reference of the rules: the name of the labels, or ``"the black box's predictions"``.
    weighted : bool
        Whether rows have weights.
    checksum : str
        See :func:`skescore.certificates.rows_checksum`.
    class_weights : list of float
        In classification: the weight of each class, by the sorted labels.
    squares : float
        In regression: the weighted sum of squares around the mean.
    """

    n_rows: int
    task: str
    reference: str
    weighted: bool
    checksum: str
    class_weights: NotRequired[list[float]]
    squares: NotRequired[float]


class GivenRules(TypedDict):
    """Rules that a certificate compares with the best possible rules.

    Attributes
    ----------
    n_rules : int
        Number of rules.
    completeness_volume, completeness_instances : float
        Share of the volume, and of the rows, for which some rule holds.
    metrics : dict of str to float
        Metrics of the predictions. A key consists of the metric and the policy for uncovered rows,
        such as ``"accuracy penalize"``.
    rules : RuleSet or None
        The rules; None if they cannot predict these rows without a conversion of units.
    """

    n_rules: int
    completeness_volume: float
    completeness_instances: float
    metrics: dict[str, float]
    rules: RuleSet | None


def completeness_of(rules: GivenRules, completeness: str) -> float:
    """Return the completeness of rules by volume or by rows (``"instances"``)."""
    if completeness == "volume":
        return rules["completeness_volume"]
    return rules["completeness_instances"]


class CertifiedScore(NamedTuple):
    """Score with its metric and weights.

    Parameters
    ----------
    spec : ScoreSpec
        Formula of the score.
    metric : str
        Metric of the predictions.
    weights : mapping of str to float
        Weights of the score.
    """

    spec: ScoreSpec
    metric: str
    weights: Mapping[str, float]

    def prediction_term(self, metric_value: float) -> float:
        """Return the performance or loss in the formula, from the value of the metric."""
        if self.spec.prediction == "loss" and PREDICTION_METRICS[self.metric].greater_is_better:
            return 1 - metric_value
        return metric_value

    @property
    def perfect_prediction(self) -> float:
        """Performance or loss of predictions without errors."""
        return 0.0 if self.spec.prediction == "loss" else 1.0

    def value(self, prediction: float, n_rules: float, completeness: float) -> float:
        """Return the score."""
        return float(self.spec.value(prediction, n_rules, completeness, self.weights))

    def signed(self, prediction: float, n_rules: float) -> float:
        """Return the score of complete rules, negated if smaller is better."""
        return float(self.spec.signed(self.value(prediction, n_rules, 1.0)))

    def signed_from_metric(self, metric_value: float, n_rules: float) -> float:
        """Return the signed score of complete rules from the value of the metric."""
        return self.signed(self.prediction_term(metric_value), n_rules)

    def best_signed(self, measured: Sequence[Mapping[str, float]]) -> float:
        """Return the best signed score of complete rules from their metrics."""
        return max(self.signed_from_metric(m[self.metric], m["n_rules"]) for m in measured)

    def bound_metric(
        self, loss: float, n_rules: int, rows: CertifiedRows, total_weight: float
    ) -> float:
        """Return the best value of the metric for losses of at least `loss`."""
        if self.metric == "f1_weighted":
            return bound_weighted_f1(rows["class_weights"], loss, n_rules)
        if self.metric == "accuracy":
            return 1 - loss / total_weight
        if self.metric == "r2":
            squares = rows["squares"]
            return 1 - loss / squares if squares > 0 else 1.0
        value = loss / total_weight
        return float(np.sqrt(value)) if self.metric == "root_mean_squared_error" else value


@dataclass(frozen=True, eq=False)
class CertificateProblem:
    """Rows, rules, score, search space and limits of a certificate.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    table : RowTable
        The rows with the names of the features.
    target : ndarray of shape (n_rows,)
        Labels, numbers or predictions that the rules should predict.
    weights : ndarray of shape (n_rows,)
        Weight of each row.
    is_weighted : bool
        Whether weights were passed.
    reference : str
        Name of the target.
    given_rules : GivenRules
        Rules that are compared with the best possible rules.
    score : CertifiedScore
        The score with its metric and weights.
    completeness : {"volume", "instances"}
        Measure of the completeness of the given rules.
    kinds : tuple of {"tree", "list"}
        Kinds of rules in the comparison.
    space : SearchSpace
        Search space, whose cuts include those of the given rules.
    cuts_per_feature : int or None
        Largest number of cuts of a feature in addition to those of the given rules.
    has_stated_cuts : bool
        Whether the cuts were stated one by one.
    tolerance : float or None
        Difference between scores up to which no proof is required.
    limits : SolverLimits
        Limits of the searches.
    """

    X: Any
    table: RowTable
    target: np.ndarray
    weights: np.ndarray
    is_weighted: bool
    reference: str
    given_rules: GivenRules
    score: CertifiedScore
    completeness: str
    kinds: tuple[str, ...]
    space: SearchSpace
    cuts_per_feature: int | None
    has_stated_cuts: bool
    tolerance: float | None
    limits: SolverLimits

    @classmethod
    def read(
        cls,
        search_or_rules: Any,
        X: Any,
        y: Any,
        *,
        scoring: Any,
        kinds: Sequence[str],
        space: SearchSpace,
        tolerance: float | None,
        limits: SolverLimits,
        sample_weight: Any,
    ) -> CertificateProblem:
        """Check the parameters of :func:`certify`, and measure the given rules."""
        if isinstance(kinds, str) or not kinds:
            raise ValueError(f"kinds must be a sequence of {KINDS}, got {kinds!r}.")
        for kind in kinds:
            check_choice("kinds", kind, KINDS)
        check_number("tolerance", tolerance, 0, optional=True)
        score, completeness = read_scoring(scoring)
        target, reference = _read_reference(search_or_rules, X, y)
        weights = None if sample_weight is None else row_weights(sample_weight, len(target))
        evaluation = evaluate_rules(search_or_rules, X, target, sample_weight=weights)
        ruleset = evaluation.ruleset
        if not len(ruleset):
            raise ValueError("search_or_rules holds 0 rules, so there is nothing to certify.")
        score = _resolve_metric(score, ruleset.task)
        given_rules = _measure_given_rules(evaluation, X, score.metric)
        metric_of_given_rules(score, given_rules)  # raises an error before the search
        uncovered = get_rule_scorer(scoring).settings["uncovered"]
        if uncovered != score.spec.uncovered and not evaluation.covered.all():
            raise ValueError(
                f"scoring has uncovered={uncovered!r}, but {score.spec.label} is certified with "
                f"uncovered={score.spec.uncovered!r}. The two differ here, because no given rule "
                f"holds for {int((~evaluation.covered).sum())} of the rows. Omit uncovered, or add "
                "a rule for these rows."
            )
        columns = getattr(X, "column_names", getattr(X, "columns", None))
        names = list(ruleset.feature_names) if columns is None else [str(c) for c in columns]
        cuts = space.cuts_of(X)
        has_stated_cuts = isinstance(space.cuts, Cuts)
        cuts_per_feature: Any = space.cuts
        if has_stated_cuts:
            cuts_per_feature = max(1, *map(len, cuts.thresholds.values()), 1)
        max_rules = space.max_rules or _choose_max_rules(score, given_rules, completeness)
        table = RowTable.of(X, names)
        return cls(
            X,
            table,
            evaluation.y_true,
            np.ones(len(target)) if weights is None else weights,
            weights is not None,
            reference,
            given_rules,
            score,
            completeness,
            tuple(kinds),
            replace(space, max_rules=max_rules, cuts=_add_cuts_of_rules(cuts, ruleset, table)),
            cuts_per_feature,
            has_stated_cuts,
            tolerance,
            limits,
        )

    @property
    def task(self) -> str:
        """Task of the rules: ``"classification"`` or ``"regression"``."""
        return "classification" if self.loss == "errors" else "regression"

    @property
    def loss(self) -> str:
        """Loss from which the metric follows."""
        return LOSS_OF_METRIC[self.score.metric]

    @cached_property
    def rows(self) -> CertifiedRows:
        """Description of the rows in the certificate."""
        weights = self.weights
        rows: CertifiedRows = {
            "n_rows": len(self.target),
            "task": self.task,
            "reference": self.reference,
            "weighted": self.is_weighted,
            "checksum": rows_checksum(self.X, self.target, weights if self.is_weighted else None),
        }
        if self.task == "classification":
            names = np.array(list(map(str, self.target.tolist())))
            labels, codes = np.unique(names, return_inverse=True)
            rows["class_weights"] = np.bincount(codes, weights, minlength=len(labels)).tolist()
        else:
            has_weight = weights > 0
            y, weights = self.target[has_weight], weights[has_weight]
            rows["squares"] = float((weights * deviations_from_mean(y, weights) ** 2).sum())
        return rows

    @cached_property
    def signed_score(self) -> float:
        """Signed score of the given rules."""
        value = score_given_rules(self.score, self.given_rules, self.completeness)
        return float(self.score.spec.signed(value))


def score_given_rules(score: CertifiedScore, given_rules: GivenRules, completeness: str) -> float:
    """Return the score of the given rules."""
    prediction = score.prediction_term(metric_of_given_rules(score, given_rules))
    return score.value(
        prediction, given_rules["n_rules"], completeness_of(given_rules, completeness)
    )


def metric_of_given_rules(score: CertifiedScore, given_rules: GivenRules) -> float:
    """Return the metric of the given rules in a score; raise an error if it is undefined."""
    key = f"{score.metric} {score.spec.uncovered}"
    if key not in given_rules["metrics"]:
        share = given_rules["completeness_instances"]
        raise ValueError(
            f"{score.spec.label} needs the {metric_label(score.metric)} of the rows that the "
            f"given rules cover, which is undefined: the rules cover {share:.3g} of the rows, and "
            "R² needs at least two. Pass more rows that the rules cover, or a score of all rows, "
            "such as scoring='fire'."
        )
    return given_rules["metrics"][key]


def measure_incumbent(
    rules: RuleSet, loss: str, X: Any, target: Any, sample_weight: Any
) -> dict[str, float]:
    """Measure complete rules with all defined metrics that follow from a loss.

    Parameters
    ----------
    rules : RuleSet
        Rules that hold for all rows.
    loss : str
        Loss, such as ``"errors"``.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    target : ndarray of shape (n_rows,)
        Labels or numbers of the rows.
    sample_weight : ndarray of shape (n_rows,) or None
        Weights of the rows.

    Returns
    -------
    dict of str to float
        Metrics by name, and ``n_rules``. R² of a single row is undefined and omitted.

    Examples
    --------
    >>> from skescore.rules import Rule, RuleSet
    >>> rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    >>> measure_incumbent(rules, "errors", [[0], [1]], np.array(["a", "b"]), None)["accuracy"]
    0.5
    """
    predictions = rules.predict(X)
    metrics: dict[str, float] = {}
    for name in (n for n, of_loss in LOSS_OF_METRIC.items() if of_loss == loss):
        is_performance = PREDICTION_METRICS[name].greater_is_better
        measure = prediction_performance if is_performance else prediction_loss
        metrics[name] = measure(
            target, predictions, metric=name, task=rules.task, sample_weight=sample_weight
        )
    # R² of a single row is undefined, and JSON has no NaN.
    json_metrics = {name: value for name, value in metrics.items() if not math.isnan(value)}
    return json_metrics | {"n_rules": len(rules)}


def read_scoring(scoring: Any) -> tuple[CertifiedScore, str]:
    """Return the score with its metric and weights, and the measure of completeness."""
    scorer = get_rule_scorer(scoring)
    spec = scorer.spec if isinstance(scorer, RuleScorer) else None
    if spec is None or SCORE_SPECS.get(spec.name) is not spec:
        raise ValueError(
            f"scoring must be one of {list(SCORE_SPECS)} or a scorer of one of them, got "
            f"{scoring!r}."
        )
    settings = scorer.settings
    if settings["size"] != "rules":
        raise ValueError(
            f"scoring must count rules as size, got size={settings['size']!r}; bounds of other "
            "sizes cannot be computed."
        )
    metric = settings[spec.prediction]
    completeness = settings.get("completeness", "volume")
    if not isinstance(metric, str) or not isinstance(completeness, str):
        raise ValueError(
            "scoring must use named measures, because a callable cannot be bounded, got "
            f"{metric!r} and {completeness!r}."
        )
    weights = spec.check_weights({name: settings[name] for name in spec.weight_names})
    return CertifiedScore(spec, metric.removeprefix("neg_"), weights), completeness


def _resolve_metric(score: CertifiedScore, task: str) -> CertifiedScore:
    """Return the score with a metric that can be bounded."""
    metric = score.spec.metric(task) if score.metric == "auto" else score.metric
    choices = [name for name in LOSS_OF_METRIC if task in PREDICTION_METRICS[name].tasks]
    if metric not in choices:
        raise ValueError(
            f"scoring uses the metric {metric!r}, which cannot be bounded. Choose one of "
            f"{', '.join(choices)}."
        )
    return score._replace(metric=metric)


def _read_reference(model: Any, X: Any, y: Any) -> tuple[np.ndarray, str]:
    """Return the target of the rules, and its name."""
    predict = getattr(y, "predict", y if callable(y) else None)
    if predict is not None:
        return one_dimension("The black box's predictions", predict(X)), BLACK_BOX_REFERENCE
    if y is not None:
        name = getattr(y, "name", None)
        return one_dimension("y", y), name if isinstance(name, str) and name else "y"
    oracle = getattr(model, "oracle_", None)
    if oracle is None:
        raise ValueError(
            "y must be passed for a rule set, which does not store its reference, got None. Pass "
            "labels or a fitted black box."
        )
    return np.asarray(oracle.query(X)), BLACK_BOX_REFERENCE


def _measure_given_rules(evaluation: Any, X: Any, metric: str) -> GivenRules:
    """Measure the given rules with all metrics that follow from the same loss."""
    ruleset = evaluation.ruleset
    task = ruleset.task
    metric_policies = {(metric, policy) for policy in ("ignore", "penalize")}
    for spec in SCORE_SPECS.values():
        default_metric = spec.metric(task)
        if LOSS_OF_METRIC.get(default_metric) == LOSS_OF_METRIC[metric]:
            metric_policies.add((default_metric, spec.uncovered))
    metrics = {}
    for name, policy in sorted(metric_policies):
        measure = (
            evaluation.performance
            if PREDICTION_METRICS[name].greater_is_better
            else evaluation.loss
        )
        value = float(measure(name, policy))
        if not math.isnan(value):  # metrics of covered rows are undefined if no row is covered
            metrics[f"{name} {policy}"] = value
    if ruleset.domain is None:  # the completeness by volume refers to this domain
        domain = ruleset.domain_around(evaluation.X, evaluation.sample_weight)
        ruleset = ruleset.replace(domain=domain)
    complete = ruleset if ruleset.fallback else ruleset.with_arbitrary_fallback()
    try:
        predicts_rows = bool((complete.predict(X) == evaluation.y_pred)[evaluation.covered].all())
    except (TypeError, ValueError):  # X is not in the units of the rules
        predicts_rows = False
    return {
        "n_rules": len(ruleset),
        "completeness_volume": evaluation.volume,
        "completeness_instances": evaluation.instances,
        "metrics": metrics,
        "rules": ruleset if predicts_rows else None,
    }


def _choose_max_rules(score: CertifiedScore, given_rules: GivenRules, completeness: str) -> int:
    """Return the largest size at which perfect rules beat the given ones; a default if large."""
    given_score = score.spec.signed(score_given_rules(score, given_rules, completeness))
    for size in range(2, _MAX_DEFAULT_RULES + 1):
        if score.signed(score.perfect_prediction, size + 1) <= given_score:
            return size
    return _USUAL_RULES


def _add_cuts_of_rules(cuts: Cuts, ruleset: RuleSet, table: RowTable) -> Cuts:
    """Add the cuts of the given rules, so that the space contains similar rules."""
    thresholds = {j: set(values) for j, values in cuts.thresholds.items()}
    sets = dict(cuts.category_sets)
    conditions = [c for rule in ruleset.rules for c in rule.conditions]
    for condition in conditions:  # nested conditions are appended
        conditions += getattr(condition, "conditions", ())
        if not isinstance(condition, Interval | OneOf):
            continue
        name = ruleset.feature_names[condition.feature]
        j = table.names.index(name) if name in table.names else -1
        if j < 0:
            continue
        categories = cuts.categories.get(j, ())
        if isinstance(condition, OneOf) or categories:
            values = getattr(condition, "values", ())
            if isinstance(condition, Interval):  # contains some categories, which are numbers
                holds = condition.holds({condition.feature: np.array(categories)}.__getitem__)
                values = tuple(np.array(categories, dtype=object)[holds].tolist())
            if values and values not in {(value,) for value in categories} | {*sets.get(j, ())}:
                sets[j] = (*sets.get(j, ()), values)
            continue
        feature_cuts = thresholds.setdefault(j, set())
        # x < c is equivalent to x ≤ the floating-point number before c.
        if np.isfinite(condition.upper):
            is_closed = condition.upper_closed
            feature_cuts.add(condition.upper if is_closed else _previous_float(condition.upper))
        if np.isfinite(condition.lower):
            is_closed = condition.lower_closed
            feature_cuts.add(_previous_float(condition.lower) if is_closed else condition.lower)
    n_missing = {j: table.holds(Missing(j)).sum() for j in {*thresholds, *sets}}
    missing_features = {j for j, n in n_missing.items() if 0 < n < len(table)}
    return replace(
        cuts,
        thresholds={j: tuple(sorted(values)) for j, values in thresholds.items()},
        missing_features=tuple(sorted(missing_features.union(cuts.missing_features))),
        category_sets=sets,
    )


def _previous_float(number: float) -> float:
    return float(np.nextafter(number, -np.inf))


def rows_checksum(X: Any, y: Any, sample_weight: Any = None) -> str:
    """Return a checksum of rows, their targets and their weights.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Targets of the rows.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows.

    Returns
    -------
    str
        SHA-256 of one JSON list per row: its values, its target and, if weights are passed, its
        weight. Numbers are floats, except for integers that no float represents; missing values are
        null.

    Raises
    ------
    ValueError
        If X, y and weights have different numbers of rows.

    Examples
    --------
    >>> from skescore.certificates import rows_checksum
    >>> rows_checksum([[1.5, 2.0]], ["a"])[:12], rows_checksum([[1.5, 2.0]], ["b"])[:12]
    ('790c85a6737f', 'b40580c70086')
    """
    # The attribute `columns` of an Arrow table holds its data.
    X_columns = getattr(X, "column_names", getattr(X, "columns", None))
    names = [str(c) for c in X_columns] if X_columns is not None else []
    table = RowTable.of(X, names or [f"x{j}" for j in range(np.shape(X)[1])])
    columns = [table.column(j).tolist() for j in range(len(table.names))]
    columns.append(one_dimension("y", y).tolist())
    if sample_weight is not None:
        columns.append(np.asarray(sample_weight, dtype=float).tolist())
    if len({len(column) for column in columns}) > 1:
        raise ValueError(
            f"X, y and sample_weight must have the same number of rows, got {len(table)} and "
            f"{', '.join(str(len(column)) for column in columns[len(table.names) :])}."
        )
    digest = hashlib.sha256()
    for row in zip(*columns, strict=True):
        digest.update(json.dumps([_json_value(value) for value in row]).encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _json_value(value: Any) -> Any:
    """Return a value of a row as the checksum represents it."""
    value = python_value(value)
    if isinstance(value, bool | str) or value is None:
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None if str(value) in ("<NA>", "NaT") else str(value)
    if isinstance(value, int) and number != value:  # beyond 2**53, floats skip integers
        return value
    return None if number != number else number
