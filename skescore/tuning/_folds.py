"""Rows of a search, their folds, and measurements of rules on the folds."""

from __future__ import annotations

import copy
import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _num_samples, indexable

from skescore._rows import repeated_rows, take_rows
from skescore._splitters import make_group_splitter
from skescore._validation import plain_target, row_weights
from skescore.black_boxes import (
    QueryCost,
    accepts_groups,
    black_box_task,
    fit_weighted,
    is_prefit,
    is_unsupervised,
)
from skescore.extractors import (
    CachedBlackBox,
    Oracle,
    generate_rows,
)
from skescore.metrics import RuleCounts, prediction_performance
from skescore.rules import RuleSet
from skescore.scorers import (
    FidelityScorer,
    RuleEvaluation,
    RuleScorer,
    evaluate_rules,
    make_knowledge_scorer,
    measured_quantities,
)

#: Fields of stored results that are not measures.
WARNINGS, FAILURE = "warnings", "failure"


@dataclass(frozen=True)
class FoldResult:
    """Measurements of the rules of one candidate on one fold, or the error of the extraction.

    ``result["n_rules"]`` returns a measure by name.

    Parameters
    ----------
    measures : mapping of str to float
        ``score`` and measured quantities by name (:class:`skescore.scorers.MeasuredQuantity`).
    user_measures : mapping of str to float, optional
        Values of the scorers that the user passed as `measures`.
    warnings : tuple of str, default=()
        Texts of the warnings that the evaluation raised.
    failure : str, default=""
        Text of the error; empty if there was none.
    query_cost : QueryCost, optional
        Rows that the black box predicted; not stored with the trial.

    Examples
    --------
    >>> result = FoldResult({"loss": 0.25, "n_rules": 3}, {"mean_rule_c2": 0.5})
    >>> result["loss"], result["mean_rule_c2"], result.get("size")
    (0.25, 0.5, nan)
    """

    measures: Mapping[str, float]
    user_measures: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    failure: str = ""
    query_cost: QueryCost = field(default=QueryCost(), compare=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> FoldResult:
        """Return the result of a record that :meth:`to_dict` wrote.

        Parameters
        ----------
        record : mapping of str to value
            Measures by name, and possibly ``warnings`` or ``failure``.

        Returns
        -------
        FoldResult
            The result.
        """
        quantity_names = {"score", *measured_quantities()}
        values = {k: v for k, v in record.items() if k not in (WARNINGS, FAILURE)}
        return cls(
            {name: value for name, value in values.items() if name in quantity_names},
            {name: value for name, value in values.items() if name not in quantity_names},
            tuple(record.get(WARNINGS, ())),
            record.get(FAILURE, ""),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a flat dict, as trials store it.

        Returns
        -------
        dict of str to value
            Measures by name and ``warnings``, or ``failure`` alone.
        """
        if self.failure:
            return {FAILURE: self.failure}
        return {**self.measures, **self.user_measures, WARNINGS: list(self.warnings)}

    def __getitem__(self, name: str) -> float:
        return self.measures[name] if name in self.measures else self.user_measures[name]

    def __contains__(self, name: object) -> bool:
        return name in self.measures or name in self.user_measures

    def get(self, name: str, default: float = math.nan) -> float:
        """Return a measure by name.

        Parameters
        ----------
        name : str
            Name of the measure.
        default : float, default=NaN
            Value to return if it was not measured.

        Returns
        -------
        float
            The measure.
        """
        return self.measures.get(name, self.user_measures.get(name, default))

    def replace(self, **measures: float) -> FoldResult:
        """Return a copy with other values of some measures.

        Parameters
        ----------
        **measures : float
            Values by name.

        Returns
        -------
        FoldResult
            The copy.
        """
        return self.from_dict(self.to_dict() | measures)


def mean_of(results: Sequence[FoldResult], name: str) -> float:
    """Return the mean of a measure over the folds; NaN if it is undefined on one of them."""
    return math.fsum(result.get(name) for result in results) / len(results)


def read_folds(records: Iterable[Mapping[str, Any]] | None) -> tuple[FoldResult, ...]:
    """Read the results of a stored trial on the folds; empty if it was not measured."""
    return tuple(FoldResult.from_dict(record) for record in records or ())


def read_all_rows(record: Mapping[str, Any] | None) -> FoldResult | None:
    """Read the result of a stored trial on all rows; None if it was not measured."""
    return None if record is None else FoldResult.from_dict(record)


#: Weight of all rows in the .632 estimator; held-out rows have the remaining weight.
SHARE_OF_ALL_ROWS = 0.368


def estimate_632(held_out: np.ndarray, on_all_rows: np.ndarray) -> np.ndarray:
    """Return the .632 estimate of measures: a weighted mean over held-out rows and all rows.

    Parameters
    ----------
    held_out : ndarray
        Measures of each fold's rules on its held-out rows.
    on_all_rows : ndarray
        Measures of the rules of all rows on the same rows, in a shape that broadcasts.

    Returns
    -------
    ndarray
        The weighted means.

    Notes
    -----
    The weights are those of the .632 estimator (Efron, Estimating the error rate of a prediction
    rule, 1983). Held-out rows measure rules similar to the final rules, with much noise if rows are
    few; all rows measure the final rules, with little noise but optimistically.
    """
    return (1 - SHARE_OF_ALL_ROWS) * held_out + SHARE_OF_ALL_ROWS * on_all_rows


def score_632(
    held_out: Mapping[str, np.ndarray],
    on_all_rows: Mapping[str, np.ndarray],
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
) -> np.ndarray:
    """Return .632 scores, computed from the .632 estimates of the score's parts.

    Parameters
    ----------
    held_out : dict of str to ndarray
        Parts of the score on the held-out rows of each fold, including ``size``.
    on_all_rows : dict of str to ndarray
        Parts of the score on all rows, in shapes that broadcast.
    score : callable
        Formula of the score; greater is better.

    Returns
    -------
    ndarray
        Scores of the shape of `held_out`.

    Notes
    -----
    The .632 estimator combines errors. Scores are nonlinear functions of errors (ICE contains a
    sigmoid), so the parts are combined instead of the scores.

    Where a fold and all rows yield different numbers of rules, no rule set has the mean size.
    In this case, the lower of two values counts: the score of the combined parts or the combined
    score. Thus, an extractor whose number of rules depends on the rows is judged more cautiously
    than an extractor with a constant number of rules. Of two such candidates, the one with fewer
    rules on a fold may have the lower score.
    """
    parts = {name: estimate_632(values, on_all_rows[name]) for name, values in held_out.items()}
    from_parts, from_scores = score(parts), estimate_632(score(held_out), score(on_all_rows))
    is_same_size = held_out["size"] == on_all_rows["size"]
    return np.where(is_same_size, from_parts, np.minimum(from_parts, from_scores))


def several_scores_error(scorer: Any) -> TypeError:
    """Return the error for a scorer that returns a dict although candidates must be ranked."""
    return TypeError(
        f"scoring must return one number per candidate, but {scorer!r} returns a dict: choose one "
        "of its scores, for example scoring='ice'."
    )


#: Number of generated rows per fold on which the fidelity to a fitted model is measured.
_N_UNSEEN_ROWS = 2000
#: Seed of rows that are generated from all rows; the seeds of folds are their indices.
_SEED_OF_ALL_ROWS = 1_000_003
#: Column with the mean number of constraints that needed a repair.
REPAIRED = "n_repaired"


@dataclass(eq=False)
class Fold:
    """A split with a black box fitted on the training rows, and held-out rows for scoring.

    Parameters
    ----------
    black_box : CachedBlackBox
        The black box.
    X_train : array-like or DataFrame
        Rows to extract rules from.
    X_test : array-like or DataFrame
        Held-out rows.
    y_test : array-like
        Targets of the held-out rows.
    test : ndarray of int
        Indices of the held-out rows.
    train_weight, test_weight : ndarray, optional
        Weights of the rows.
    X_unseen : array-like or DataFrame, optional
        Rows on which the black box was not fitted, to measure fidelity. None if the held-out rows
        are such rows, or if the black box labels its own training rows, as clusterers do.
    has_target : bool, default=True
        True if `y_test` is from the data, False if it is from the black box.
    """

    black_box: CachedBlackBox
    X_train: Any
    X_test: Any
    y_test: Any
    test: np.ndarray
    train_weight: np.ndarray | None = None
    test_weight: np.ndarray | None = None
    X_unseen: Any = None
    has_target: bool = True

    @property
    def weight_options(self) -> dict[str, np.ndarray]:
        """Weights of the training rows as an argument of `fit`, if there are any."""
        return {} if self.train_weight is None else {"sample_weight": self.train_weight}

    @property
    def fidelity_rows(self) -> tuple[Any, np.ndarray | None]:
        """Rows on which fidelity is measured, with their weights."""
        return (self.X_test, self.test_weight) if self.X_unseen is None else (self.X_unseen, None)

    def fix_rows(self) -> None:
        """Let the candidates in this process share results that depend only on the rows."""
        for rows in (self.X_train, self.X_test, self.X_unseen):
            if rows is not None:
                self.black_box.fixed_rows.add(rows)


def generate_unseen_rows(X: Any, sample_weight: np.ndarray | None, seed: int) -> Any:
    """Generate rows, similar to those of X, that neither the model nor the rules have seen.

    Return None if all weights are 0 or such rows cannot be generated.
    """
    if sample_weight is not None:
        if not sample_weight.any():
            return None
        X = take_rows(X, repeated_rows(sample_weight, len(sample_weight)))
    try:
        return generate_rows(X, _N_UNSEEN_ROWS, "permute-mixed", random_state=seed)
    except (TypeError, ValueError):  # values that are neither numbers nor categories
        return None


def target_or_predictions(black_box: Any, X: Any, y: Any) -> Any:
    """Return y, or the predictions of a fitted black box if there is no y."""
    return Oracle(black_box, like=X).query(X) if y is None else plain_target(y)


def make_folds(
    black_box: Any,
    X: Any,
    y: Any,
    cv: Any,
    task: str,
    *,
    fitted: bool,
    groups: Any = None,
    sample_weight: np.ndarray | None = None,
    has_target: bool = True,
) -> list[Fold]:
    """Split the data and, unless `fitted` is true, fit a black box on each training part.

    `cv` is as in scikit-learn: an int stratifies in classification. With `groups`, an int keeps the
    rows of a group together, and a black box that accepts groups gets those of its training rows.
    """
    has_unseen = fitted and not is_unsupervised(black_box)
    folds: list[Fold] = []
    for train, test in _splitter(cv, y, task, groups).split(X, y, groups):
        X_train = _safe_indexing(X, train)
        weights = (
            (None, None) if sample_weight is None else (sample_weight[train], sample_weight[test])
        )
        model = black_box
        if not fitted:
            options = group_options(black_box, groups, train)
            y_train = _safe_indexing(y, train)
            model = fit_weighted(black_box, X_train, y_train, weights[0], **options)
        X_test, y_test = _safe_indexing(X, test), _safe_indexing(y, test)
        X_unseen = generate_unseen_rows(X_test, weights[1], len(folds)) if has_unseen else None
        fold = Fold(CachedBlackBox(model), X_train, X_test, y_test, np.asarray(test), *weights)
        folds.append(replace(fold, X_unseen=X_unseen, has_target=has_target))
    return folds


def _splitter(cv: Any, y: Any, task: str, groups: Any) -> Any:
    """Return the splitter of `cv`; a number of folds keeps the rows of a group together."""
    is_classification = task == "classification"
    if groups is not None and (cv is None or isinstance(cv, Integral)):
        n_folds = 5 if cv is None else int(cv)
        return make_group_splitter(n_folds, groups, y if is_classification else None)
    return check_cv(cv, y, classifier=is_classification)


def group_options(black_box: Any, groups: Any, rows: np.ndarray | None = None) -> dict[str, Any]:
    """Return the groups of rows as an argument of `fit` if the black box accepts groups."""
    if groups is None or not accepts_groups(black_box):
        return {}
    return {"groups": groups if rows is None else _safe_indexing(groups, rows)}


def fold_of_all_rows(
    black_box: Any,
    X: Any,
    y: Any,
    *,
    fitted: bool,
    groups: Any = None,
    sample_weight: np.ndarray | None = None,
    has_target: bool = True,
) -> Fold:
    """Return a split in which all rows are both training rows and scored rows."""
    model = black_box
    if not fitted:
        options = group_options(black_box, groups)
        model = fit_weighted(black_box, X, y, sample_weight, **options)
    row_indices = np.arange(len(y))
    X, y = _safe_indexing(X, row_indices), _safe_indexing(y, row_indices)
    has_unseen = fitted and not is_unsupervised(black_box)
    X_unseen = generate_unseen_rows(X, sample_weight, _SEED_OF_ALL_ROWS) if has_unseen else None
    return Fold(
        CachedBlackBox(model),
        X,
        X,
        y,
        row_indices,
        sample_weight,
        sample_weight,
        X_unseen=X_unseen,
        has_target=has_target,
    )


def black_box_quality(folds: list[Fold], task: str) -> dict[str, float]:
    """Return the mean held-out performance of the black box over the folds."""
    classification_metrics = ("accuracy", "f1_weighted", "balanced_accuracy")
    names = classification_metrics if task == "classification" else ("r2",)
    predictions = [fold.black_box.predict(fold.X_test) for fold in folds]
    result = {}
    for name in names:
        values = [
            prediction_performance(
                fold.y_test,
                y_pred,
                metric=name,
                task=task,
                sample_weight=fold.test_weight,
            )
            for fold, y_pred in zip(folds, predictions, strict=True)
        ]
        result[name] = float(np.mean(values))
    return result


def evaluate_on_fold(
    extractor: Any,
    fold: Fold,
    scorer: Any,
    measures: Mapping[str, Any] | None = None,
    knowledge: RuleScorer | None = None,
) -> FoldResult:
    """Extract rules from the training rows of a fold and score them on the held-out rows.

    Parameters
    ----------
    extractor : extractor
        The extractor; a clone with the black box of the fold is fitted.
    fold : Fold
        The split.
    scorer : callable
        Scorer of a fitted extractor.
    measures : dict of str to callable, optional
        Further scorers.
    knowledge : RuleScorer, optional
        Scorer of all measures. Pass it to other processes, in which registered scores may be
        missing.

    Returns
    -------
    FoldResult
        The score, the parts of all scores, the further measures, the costs of the extraction
        (including queries whose results were cached), and the warnings.
    """
    knowledge = knowledge_scorer_like(scorer) if knowledge is None else knowledge
    score_names = [spec.scorer_name for spec in knowledge.specs]
    fold.fix_rows()
    # The black box is replaced before cloning, because clones share a cached black box.
    candidate = clone(copy.copy(extractor).set_params(estimator=fold.black_box))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        candidate.fit(fold.X_train, **fold.weight_options)
        seconds = time.perf_counter() - begin
        # Queries of this extractor, also if their results were cached by earlier extractors.
        oracle = getattr(candidate, "oracle_", None)  # extractors of other packages may not count
        calls, rows = (math.nan, math.nan) if oracle is None else (oracle.n_calls, oracle.n_rows)
        evaluation = _evaluate(candidate, fold, knowledge.reference)
        parts = knowledge.score(evaluation)
        agreement = _measure_agreement(candidate, fold, evaluation, knowledge.reference)
        scores = {}
        for name, function in {"score": scorer, **(measures or {})}.items():
            shares_evaluation = (
                isinstance(function, RuleScorer) and function.reference == knowledge.reference
            )
            if isinstance(function, FidelityScorer) and not math.isnan(agreement["fidelity"]):
                score: Any = agreement["fidelity"]
            elif shares_evaluation:
                score = function.score(evaluation)
            else:
                score = _call_scorer(function, candidate, fold)
            if isinstance(score, dict):
                raise several_scores_error(function)
            scores[name] = float(score)
        if (result := getattr(candidate, "constrained_rules_", None)) is not None:
            scores[REPAIRED] = float(result.n_repaired)
        size = evaluation.size(getattr(scorer, "settings", {}).get("size", "rules"))
    quantities = {name: value for name, value in parts.items() if name not in score_names}
    quantities |= agreement
    costs = {"seconds": seconds, "black_box_calls": calls, "black_box_rows": rows}
    return FoldResult(
        {"score": scores.pop("score"), **quantities, "size": size, **costs},
        scores,
        tuple(sorted({str(warning.message) for warning in caught})),
    )


def _evaluate(candidate: Any, fold: Fold, reference: str) -> RuleEvaluation:
    """Evaluate rules against the data on held-out rows, or against the model on unseen rows."""
    X, weights = fold.X_test, fold.test_weight
    if reference == "black_box" or not fold.has_target:
        X, weights = fold.fidelity_rows
        reference = "black_box"
    y = fold.y_test if reference == "data" else None
    # Extractors of other packages may not know their black box.
    black_box = None if hasattr(candidate, "oracle_") else fold.black_box.predict
    return evaluate_rules(
        candidate, X, y, reference=reference, sample_weight=weights, black_box=black_box
    )


def _measure_agreement(
    candidate: Any, fold: Fold, evaluation: RuleEvaluation, reference: str
) -> dict[str, float]:
    """Return the agreement of the rules with the target and with the model.

    The former is NaN without a target, and both are NaN without rules.
    """
    is_fidelity = reference == "black_box" or not fold.has_target
    task = evaluation.ruleset.task
    metric = "accuracy" if task == "classification" else "r2"
    if not len(evaluation.ruleset):
        return {"correctness": math.nan, "fidelity": math.nan}
    agreement = evaluation.agreement(metric)
    if is_fidelity and not fold.has_target:
        return {"correctness": math.nan, "fidelity": agreement}
    if fold.X_unseen is None and hasattr(candidate, "oracle_"):
        # Both are measured on the same rows.
        reference_values = fold.y_test if is_fidelity else candidate.oracle_.query(fold.X_test)
        other_evaluation = evaluation.compared_with(reference_values)
    else:
        other_evaluation = _evaluate(candidate, fold, "data" if is_fidelity else "black_box")
    other_agreement = other_evaluation.agreement(metric)
    names = ("fidelity", "correctness") if is_fidelity else ("correctness", "fidelity")
    return dict(zip(names, (agreement, other_agreement), strict=True))


def _call_scorer(scorer: Any, candidate: Any, fold: Fold) -> Any:
    """Call a scorer on the rows that its reference requires, with weights if it accepts them."""
    options = {}
    if fold.test_weight is not None:
        # A scorer of scikit-learn passes weights to its metric, which may not accept them.
        metric = getattr(scorer, "_score_func", scorer)
        if "sample_weight" in inspect.signature(metric).parameters:
            options["sample_weight"] = fold.test_weight
    if getattr(scorer, "reference", "data") == "black_box" or not fold.has_target:
        X, weights = fold.fidelity_rows
        if weights is None:
            options = {}
        return scorer(candidate, X, fold.black_box.predict(X), **options)
    return scorer(candidate, fold.X_test, fold.y_test, **options)


def knowledge_scorer_like(scorer: Any) -> RuleScorer:
    """Return a scorer of all measures that has the reference and the settings of a scorer."""
    score_scorers = [scorer] if isinstance(scorer, RuleScorer) and scorer.spec is not None else []
    return make_knowledge_scorer(
        reference=getattr(scorer, "reference", "data"), scorers=score_scorers
    )


@dataclass(frozen=True, eq=False)
class SearchData:
    """Rows that a search was fitted with; rows are referenced, not copied.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,) or None
        The target as the user passed it.
    target : array-like of shape (n_rows,)
        The checked target, or the predictions of the black box without one.
    estimator : estimator
        The black box as the user passed it.
    groups : array-like of shape (n_rows,) or None
        Groups of rows for cross-validation.
    row_weights : ndarray of shape (n_rows,) or None
        Weights of the rows, including class weights; None if all weights are 1.
    is_weighted : bool
        Whether the user passed `sample_weight`.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    target: Any = field(repr=False)
    estimator: Any
    groups: Any = field(repr=False)
    row_weights: np.ndarray | None = field(repr=False)
    is_weighted: bool

    @classmethod
    def prepare(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        checked_target: Any,
        groups: Any,
        sample_weight: Any,
        class_weight: Any,
    ) -> SearchData:
        """Query the black box for a missing target, and combine the weights of rows and classes."""
        X, target = indexable(X, target_or_predictions(estimator, X, checked_target))
        weights = None if sample_weight is None else row_weights(sample_weight, _num_samples(X))
        if class_weight is not None:
            if black_box_task(estimator) != "classification":
                raise ValueError(
                    f"class_weight={class_weight!r} is for classes, but the black box does "
                    "regression. Pass sample_weight to fit."
                )
            class_weights = compute_sample_weight(class_weight, target)
            weights = class_weights if weights is None else class_weights * weights
        return cls(X, y, target, estimator, groups, weights, sample_weight is not None)

    def __len__(self) -> int:
        return _num_samples(self.X)

    @property
    def weight_options(self) -> dict[str, np.ndarray]:
        """Weights of the rows as an argument of `fit`, if there are any."""
        return {} if self.row_weights is None else {"sample_weight": self.row_weights}

    @property
    def is_fitted(self) -> bool:
        """True if the user fitted the black box."""
        return self.y is None or is_prefit(self.estimator)

    @property
    def has_generated_rows(self) -> bool:
        """True if agreement with the black box is measured on rows that are generated."""
        return self.is_fitted and not is_unsupervised(self.estimator)

    @property
    def fidelity_rows_label(self) -> str:
        """Rows on which agreement with the black box is measured, for people."""
        if self.has_generated_rows:
            return "generated rows"
        return "held-out rows" if self.row_weights is None else "weighted held-out rows"

    def take(self, rows: np.ndarray | None) -> SearchData:
        """Return the data of some rows, or of all rows if `rows` is None."""
        if rows is None:
            return self
        return replace(
            self,
            X=_safe_indexing(self.X, rows),
            y=None if self.y is None else _safe_indexing(self.y, rows),
            target=_safe_indexing(self.target, rows),
            groups=None if self.groups is None else _safe_indexing(self.groups, rows),
            row_weights=None if self.row_weights is None else self.row_weights[rows],
        )

    def constant_quality(self) -> dict[str, float]:
        """Return the performance of the best constant prediction, by measure."""
        if black_box_task(self.estimator) == "regression":
            return {"r2": 0.0}
        target = np.ravel(np.asarray(self.target))
        weights = np.ones(len(target)) if self.row_weights is None else self.row_weights
        codes = np.unique(target, return_inverse=True)[1]
        share = float(np.bincount(codes, weights=weights).max() / weights.sum())
        return {
            "accuracy": share,
            "f1_weighted": share * 2 * share / (1 + share),
            "balanced_accuracy": 1 / (codes.max() + 1),
        }

    def folds(self, cv: Any) -> list[Fold]:
        """Split the rows, and fit the black box on each training part unless it is fitted."""
        return make_folds(
            self.estimator,
            self.X,
            self.target,
            cv,
            black_box_task(self.estimator),
            fitted=self.is_fitted,
            groups=self.groups,
            sample_weight=self.row_weights,
            has_target=self.y is not None,
        )

    def fold_of_all_rows(self) -> Fold:
        """Return a fold of all rows, and fit the black box on them unless it is fitted."""
        return fold_of_all_rows(
            self.estimator,
            self.X,
            self.target,
            fitted=self.is_fitted,
            groups=self.groups,
            sample_weight=self.row_weights,
            has_target=self.y is not None,
        )


class CountableSource(Protocol):
    """Rows outside of memory that can be counted for the scores of rules."""

    def count_rows(self, rules: RuleSet, black_box: Any = None) -> RuleCounts:
        """Count all rows, with the labels of the source or the predictions of a black box."""


@runtime_checkable
class SearchableSource(CountableSource, Protocol):
    """Rows outside of memory that :meth:`ExtractorSearchCV.fit` accepts."""

    def draw_sample(self, n_rows: int, task: str, random_state: int) -> tuple[Any, Any, Any]:
        """Draw a sample; return its features, its labels, and its weights or None."""


@dataclass(frozen=True, eq=False)
class HeldOutExtraction:
    """An extractor fitted on the training rows of a fold, and the held-out rows of the fold.

    Parameters
    ----------
    extractor : extractor
        The fitted extractor.
    rows : ndarray of int
        Indices of the held-out rows among the rows that trials used.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The held-out rows.
    y : array-like of shape (n_rows,) or None
        Target of the held-out rows; None if the search has no target.
    model_predictions : ndarray of shape (n_rows,)
        Predictions of the black box of the fold.
    """

    extractor: Any
    rows: np.ndarray
    X: Any
    y: Any
    model_predictions: np.ndarray

    @classmethod
    def from_fold(cls, extractor: Any, fold: Fold) -> HeldOutExtraction:
        """Fit a clone of an extractor on the training rows of a fold."""
        # The black box is replaced before cloning, because clones share a cached black box.
        extractor = clone(copy.copy(extractor).set_params(estimator=fold.black_box))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the search has reported them
            extractor.fit(fold.X_train, **fold.weight_options)
        return cls(
            extractor,
            fold.test,
            fold.X_test,
            fold.y_test if fold.has_target else None,
            np.asarray(fold.black_box.predict(fold.X_test)),
        )
