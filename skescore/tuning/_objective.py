"""Optuna objective: the cross-validated score of an extractor with some hyperparameters."""

from __future__ import annotations

import copy
import inspect
import json
import math
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import optuna
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from skescore._rows import repeated_rows, take_rows
from skescore._splitters import make_group_splitter
from skescore._validation import plain_target
from skescore.black_boxes import (
    accepts_groups,
    black_box_task,
    fit_weighted,
    is_prefit,
    is_unsupervised,
)
from skescore.extractors import CachedBlackBox, Oracle, generate_rows
from skescore.metrics import prediction_performance
from skescore.registry import make_extractor
from skescore.scorers import (
    FidelityScorer,
    RuleEvaluation,
    RuleScorer,
    evaluate_rules,
    make_knowledge_scorer,
    measured_quantities,
    minimized_quantity,
)
from skescore.tuning._fold_result import FoldResult, mean_of
from skescore.tuning._leaderboard import COLUMNS
from skescore.tuning._search_objective import (
    SearchObjective,
    check_scoring,
    name_of,
    several_scores,
)
from skescore.tuning.spaces import Space, as_search_space, check_space, extractor_name, search_space

#: Number of generated rows per fold on which the fidelity to a model of the user is measured.
_N_UNSEEN = 2000
#: Seed of the generated rows among all rows; those of folds are numbered.
_SEED_OF_ALL_ROWS = 1_000_003


#: Column with the mean number of constraints that repairs have satisfied.
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
        Their targets.
    test : ndarray of int
        Their indices.
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
    def fidelity_rows(self) -> tuple[Any, np.ndarray | None]:
        """Rows on which fidelity is measured, with their weights."""
        return (self.X_test, self.test_weight) if self.X_unseen is None else (self.X_unseen, None)

    def fix_rows(self) -> None:
        """Let the candidates in this process share what is computed from the rows alone."""
        for rows in (self.X_train, self.X_test, self.X_unseen):
            if rows is not None:
                self.black_box.fixed_rows.add(rows)


def unseen_rows(X: Any, sample_weight: np.ndarray | None, seed: int) -> Any:
    """Generate rows, similar to held-out rows, that neither the model nor the rules have seen.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        Held-out rows.
    sample_weight : ndarray or None
        Their weights.
    seed : int
        Seed.

    Returns
    -------
    array-like or DataFrame or None
        The rows; None if rows of this kind cannot be generated.
    """
    if sample_weight is not None:
        if not sample_weight.any():
            return None
        X = take_rows(X, repeated_rows(sample_weight, len(sample_weight)))
    try:
        return generate_rows(X, _N_UNSEEN, "permute-mixed", random_state=seed)
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
    """Split the data and fit the black box on each training part.

    Unless `fitted` is true, the black box is cloned and fitted for each split. `cv` is as in
    scikit-learn: an int stratifies in classification. With `groups`, an int keeps the rows of a
    group together, and a black box that accepts groups gets the groups of its training rows.
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
        unseen = unseen_rows(X_test, weights[1], len(folds)) if has_unseen else None
        fold = Fold(CachedBlackBox(model), X_train, X_test, y_test, np.asarray(test), *weights)
        folds.append(replace(fold, X_unseen=unseen, has_target=has_target))
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
    unseen = unseen_rows(X, sample_weight, _SEED_OF_ALL_ROWS) if has_unseen else None
    return Fold(
        CachedBlackBox(model),
        X,
        X,
        y,
        row_indices,
        sample_weight,
        sample_weight,
        X_unseen=unseen,
        has_target=has_target,
    )


def black_box_quality(folds: list[Fold], task: str) -> dict[str, float]:
    """Return the mean held-out performance of the black box over the folds."""
    classification = ("accuracy", "f1_weighted", "balanced_accuracy")
    names = classification if task == "classification" else ("r2",)
    predictions = [fold.black_box.predict(fold.X_test) for fold in folds]
    result = {}
    for name in names:
        values = [
            prediction_performance(
                fold.y_test,
                predicted,
                metric=name,
                task=task,
                sample_weight=fold.test_weight,
            )
            for fold, predicted in zip(folds, predictions, strict=True)
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
    knowledge = knowledge_like(scorer) if knowledge is None else knowledge
    score_names = [spec.scorer_name for spec in knowledge.specs]
    fold.fix_rows()
    # The black box is replaced before cloning, because clones share a cached black box.
    candidate = clone(copy.copy(extractor).set_params(estimator=fold.black_box))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        if fold.train_weight is None:
            candidate.fit(fold.X_train)
        else:
            candidate.fit(fold.X_train, sample_weight=fold.train_weight)
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
                score = _called(function, candidate, fold)
            if isinstance(score, dict):
                raise several_scores(function)
            scores[name] = float(score)
        if (result := getattr(candidate, "constrained_rules_", None)) is not None:
            scores[REPAIRED] = float(result.n_repaired)
        size = evaluation.size(getattr(scorer, "settings", {}).get("size", "rules"))
    measured = {name: value for name, value in parts.items() if name not in score_names}
    measured |= agreement
    costs = {"seconds": seconds, "black_box_calls": calls, "black_box_rows": rows}
    return FoldResult(
        {"score": scores.pop("score"), **measured, "size": size, **costs},
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
    """Return the agreement of the rules with the data (NaN without any) and with the model."""
    is_fidelity = reference == "black_box" or not fold.has_target
    task = evaluation.ruleset.task
    metric = "accuracy" if task == "classification" else "r2"
    if not len(evaluation.ruleset):
        return {"correctness": math.nan, "fidelity": math.nan}
    own = evaluation.agreement(metric)
    if is_fidelity and not fold.has_target:
        return {"correctness": math.nan, "fidelity": own}
    if fold.X_unseen is None and hasattr(candidate, "oracle_"):  # the same rows
        truth = fold.y_test if is_fidelity else candidate.oracle_.query(fold.X_test)
        other = evaluation.compared_with(truth)
    else:
        other = _evaluate(candidate, fold, "data" if is_fidelity else "black_box")
    other_agreement = other.agreement(metric)
    names = ("fidelity", "correctness") if is_fidelity else ("correctness", "fidelity")
    return dict(zip(names, (own, other_agreement), strict=True))


def _called(scorer: Any, candidate: Any, fold: Fold) -> Any:
    """Call a scorer on the held-out rows, with their weights if it accepts weights."""
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


def knowledge_like(scorer: Any) -> RuleScorer:
    """Return a scorer of all measures, with the settings of this scorer for its score."""
    score_scorers = [scorer] if isinstance(scorer, RuleScorer) and scorer.spec is not None else []
    return make_knowledge_scorer(
        reference=getattr(scorer, "reference", "data"), scorers=score_scorers
    )


class ExtractorObjective:
    """Optuna objective that returns the cross-validated score of an extractor's rules.

    The black box is fitted once per fold and queried once on the same rows, whatever the number of
    trials. Every trial stores the means of all measured quantities over the folds as user
    attributes (:func:`skescore.scorers.measured_quantities`), and the results on each fold as
    ``folds``, so that other scores can be computed without another extraction. Rules are not
    extracted again for hyperparameters that were tried before; ``same_as`` is the number of the
    earlier trial.

    Parameters
    ----------
    estimator : estimator
        The black box; a fitted one in ``FrozenEstimator``.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,) or None
        The target with which scores compare predictions. With None, the black box must be fitted,
        and its own predictions are the target (fidelity).
    extractor : str or extractor, default="cart"
        A registered name, or an extractor. Its parameters outside of `space` are kept; those that
        differ from their defaults are not searched by default.
    scoring : str, callable or sequence of str, default="ice"
        ``"ice"``, ``"neg_fire"``, ``"neg_q"`` or a scorer; greater is better, so the study must
        maximize. Several names of ``"loss"``, ``"loss_q"``, ``"n_rules"``, ``"size"``,
        ``"incompleteness"``, ``"incompleteness_instances"``, ``"instability"`` and the losses of
        :data:`skescore.scorers.SET_MEASURES` are minimized together, by a study of as many
        directions. For a fitted black box, scores that are given by name compare with its
        predictions for rows that are generated from held-out rows, as in the search.
    cv : int, splitter or iterable, default=5
        Cross-validation, as in scikit-learn.
    space : dict of str to optuna distribution, optional
        The hyperparameters to search; by default :func:`search_space` of the extractor.
    measures : sequence of str or callable, default=()
        Further scorers whose means each trial stores, such as ``"mean_rule_c2"``.
    random_state : int, RandomState instance or None, default=None
        Seed of the extractor, if it has a parameter `random_state`.

    Raises
    ------
    TypeError
        If the black box is neither a classifier nor a regressor, or `scoring` or `space` cannot be
        used.
    ValueError
        If a name is unknown, or `space` contains a parameter that the extractor does not have.

    Examples
    --------
    >>> import optuna
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.tuning import ExtractorObjective
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> X, y = load_iris(return_X_y=True)
    >>> objective = ExtractorObjective(KNeighborsClassifier(9), X, y, extractor="cart")
    >>> study = optuna.create_study(
    ...     direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
    ... )
    >>> study.optimize(objective, n_trials=5)
    >>> study.best_value > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        extractor: Any = "cart",
        scoring: Any = "ice",
        cv: Any = 5,
        space: Space | None = None,
        measures: Sequence[Any] = (),
        random_state: Any = None,
    ) -> None:
        task = black_box_task(estimator)
        if isinstance(extractor, str):
            prototype = make_extractor(extractor, estimator)
        else:
            prototype = clone(extractor)
        if "random_state" in prototype.get_params(deep=False) and random_state is not None:
            prototype.set_params(random_state=random_state)
        has_target = y is not None
        fitted = not has_target or is_prefit(estimator)
        y = target_or_predictions(estimator, X, y)
        if space is None:
            space = search_space(extractor, X, y, task=task)
        check_space(space, prototype)
        reference = "black_box" if fitted else None
        objective = SearchObjective.of(scoring, reference=reference)
        measured = measured_beside(objective, measures)
        folds = make_folds(estimator, X, y, cv, task, fitted=fitted, has_target=has_target)
        self._set(folds, prototype, space, objective, measured, extractor_name(extractor))

    @classmethod
    def on_folds(
        cls,
        folds: list[Fold],
        prototype: Any,
        space: Space,
        objective: SearchObjective,
        *,
        measures: Sequence[Any] = (),
        name: str,
    ) -> ExtractorObjective:
        """Create an objective on existing folds, which several objectives can share.

        Parameters
        ----------
        folds : list of Fold
            Folds with their black boxes.
        prototype : extractor
            Its parameters outside of `space` are kept.
        space : dict of str to optuna distribution
            The hyperparameters to search.
        objective : SearchObjective
            Objective of the search.
        measures : sequence of str or callable, default=()
            Further scorers.
        name : str
            Name of the extractor.

        Returns
        -------
        ExtractorObjective
            The objective.
        """
        new_objective = cls.__new__(cls)
        measured = measured_beside(objective, measures)
        new_objective._set(folds, prototype, space, objective, measured, name)
        return new_objective

    def _set(
        self,
        folds: list[Fold],
        prototype: BaseEstimator,
        space: Space,
        objective: SearchObjective,
        measures: dict[str, Any],
        name: str,
    ) -> None:
        self.folds = folds
        self.prototype = prototype
        self.space = space
        self.objective = objective
        self.scorer = objective.scorer
        self.measures = measures
        self.name = name
        self._results: dict[tuple[str, str], tuple[int, list[FoldResult]]] = {}

    def suggest(self, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        """Suggest a value of every hyperparameter for a trial.

        Parameters
        ----------
        trial : optuna.trial.BaseTrial
            The trial.

        Returns
        -------
        dict of str to value
            Parameters for the extractor.
        """
        return as_search_space(self.space).suggest(trial)

    def candidate(self, params: dict[str, Any]) -> Any:
        """Return an unfitted copy of the extractor with some parameters.

        Parameters
        ----------
        params : dict of str to value
            Parameters for the extractor.

        Returns
        -------
        extractor
            A copy.
        """
        return clone(self.prototype).set_params(**params)

    def evaluate(self, params: dict[str, Any]) -> list[FoldResult]:
        """Extract rules with some parameters on every fold, and score them.

        Parameters
        ----------
        params : dict of str to value
            Parameters for the extractor.

        Returns
        -------
        list of FoldResult
            One per fold.
        """
        return list(self._on_folds(params))

    def _on_folds(self, params: dict[str, Any]) -> Iterator[FoldResult]:
        candidate = self.candidate(params)
        for fold in self.folds:
            yield evaluate_on_fold(candidate, fold, self.scorer, self.measures)

    def __call__(self, trial: optuna.trial.Trial) -> float | tuple[float, ...]:
        """Score one trial."""
        study = getattr(trial, "study", None)
        self._check_directions(study)
        params = self.suggest(trial)
        # Trial numbers are unique within a study only.
        key = getattr(study, "study_name", ""), params_key(params)
        if key in self._results:  # small spaces suggest the same parameters repeatedly
            first, results = self._results[key]
            return self.record(trial, results, same_as=first)
        results = []
        for step, result in enumerate(self._on_folds(params)):
            results.append(result)
            score = mean_of(results, "score")
            if study is None or self.objective.minimized or math.isnan(score):
                continue
            trial.report(score, step)
            if step + 1 < len(self.folds) and trial.should_prune():
                raise self.stopped(trial, results, len(self.folds))
        self._results[key] = (trial.number, results)
        return self.record(trial, results)

    def record(
        self,
        trial: Any,
        results: list[FoldResult],
        *,
        same_as: int | None = None,
        all_rows: FoldResult | None = None,
    ) -> float | tuple[float, ...]:
        """Store the results of a trial.

        Parameters
        ----------
        trial : optuna.trial.Trial
            The trial.
        results : list of FoldResult
            Results on the folds, see :meth:`evaluate`.
        same_as : int, optional
            Number of the trial with the same hyperparameters.
        all_rows : FoldResult, optional
            Result of the rules that are extracted from all rows, on these rows.

        Returns
        -------
        float or tuple of float
            The trial's value or values.

        Raises
        ------
        optuna.TrialPruned
            If a value is undefined.
        """
        if same_as is not None:
            trial.set_user_attr("same_as", same_as)
        if all_rows is not None:
            trial.set_user_attr("all_rows", all_rows.to_dict())
        self._store(trial, results)
        values = self.objective.values(results)
        if any(map(math.isnan, values)):
            names = ["score"] if not self.objective.minimized else list(self.objective.minimized)
            undefined = {name for name, v in zip(names, values, strict=True) if math.isnan(v)}
            failures = [result for result in results if not _is_defined(result, undefined)]
            reasons = sorted({text for result in failures for text in result.warnings})
            text = f"The score is undefined on some fold: {' '.join(reasons)}"
            trial.set_user_attr("error", text)
            raise optuna.TrialPruned(text)
        return values if self.objective.minimized else values[0]

    def stopped(self, trial: Any, results: list[FoldResult], n_folds: int) -> optuna.TrialPruned:
        """Store the results of a pruned trial, and return the exception to raise.

        Parameters
        ----------
        trial : optuna.trial.Trial
            The trial.
        results : list of FoldResult
            Results on the first folds.
        n_folds : int
            Number of all folds.

        Returns
        -------
        optuna.TrialPruned
            The exception.
        """
        self._store(trial, results)
        trial.set_user_attr(STOPPED, len(results))
        text = f"Stopped by the pruner after {len(results)} of {n_folds} folds."
        trial.set_user_attr("error", text)
        return optuna.TrialPruned(text)

    def _store(self, trial: Any, results: list[FoldResult]) -> None:
        trial.set_user_attr("extractor", self.name)
        repaired = [REPAIRED] if results and REPAIRED in results[0] else []
        for name in (*measured_quantities(), *self.measures, *repaired):
            trial.set_user_attr(name, mean_of(results, name))
        trial.set_user_attr("score", mean_of(results, "score"))
        trial.set_user_attr("score_std", float(np.std([r["score"] for r in results])))
        trial.set_user_attr("folds", [result.to_dict() for result in results])

    def _check_directions(self, study: optuna.Study | None) -> None:
        if study is None:
            return
        directions = [direction.name.lower() for direction in study.directions]
        if directions == self.objective.directions:
            return
        if not self.objective.minimized:
            raise ValueError(
                f"study must maximize the score, which is greater for better rules, got the "
                f"directions {directions}. Use optuna.create_study(direction='maximize')."
            )
        raise ValueError(
            f"study must minimize {', '.join(self.objective.minimized)}, got the directions "
            f"{directions}. Use optuna.create_study(directions={self.objective.directions!r})."
        )


def params_key(params: dict[str, Any]) -> str:
    """Return a text that is equal for equal parameters."""
    return json.dumps(params, sort_keys=True, default=repr)


def measured_beside(
    objective: SearchObjective, measures: Sequence[Any] | Mapping[str, Any]
) -> dict[str, Any]:
    """Return the further scorers by name; those that the objective needs come first."""
    return objective.measures | check_measures(measures)


def check_measures(measures: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the further scorers by name."""
    if isinstance(measures, str):
        raise TypeError(
            f"measures must be a sequence of scorers, such as ('mean_rule_c2',), got {measures!r}."
        )
    named_scorers: dict[str, Any] = {}
    if isinstance(measures, Mapping):
        measures = [{name: measure} for name, measure in measures.items()]
    for measure in measures:
        scorer = check_scoring(measure)
        name = name_of(measure, scorer)
        if getattr(scorer, "name", None) == f"neg_{name}":  # the column holds the negated loss
            name = scorer.name
        if name in named_scorers or name in (*measured_quantities(), *COLUMNS, *_ATTRIBUTES):
            raise ValueError(f"measures must have names that are not in use, got {name!r} again.")
        named_scorers[name] = scorer
    return named_scorers


#: User attribute of a trial that was pruned: the number of folds that it was evaluated on.
STOPPED = "stopped_after"
#: Names of user attributes of trials that are not columns of the leaderboard.
_ATTRIBUTES = ("folds", "all_rows", "warnings")


def _is_defined(result: FoldResult, names: Collection[str]) -> bool:
    """Return whether the measures behind the values of a trial are defined on a fold."""
    losses = [minimized_quantity(name, costs=False) for name in names]
    measures = (loss.measure if loss else name for name, loss in zip(names, losses, strict=True))
    return not any(math.isnan(result.get(measure)) for measure in measures)
