"""The objective of a search, and Optuna objectives of single extractors."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import optuna
from sklearn.base import BaseEstimator, clone

from skescore._text import did_you_mean
from skescore.black_boxes import black_box_task, is_prefit
from skescore.registry import make_extractor
from skescore.scorers import (
    COMPLETENESSES,
    SIZES,
    FidelityScorer,
    MinimizedQuantity,
    PerformanceScorer,
    RuleScorer,
    ScoreSpec,
    axis_measure,
    get_rule_scorer,
    measured_quantities,
    minimized_quantities,
    minimized_quantity,
)
from skescore.tuning._folds import (
    FAILURE,
    REPAIRED,
    WARNINGS,
    Fold,
    FoldResult,
    estimate_632,
    evaluate_on_fold,
    make_folds,
    mean_of,
    score_632,
    several_scores_error,
    target_or_predictions,
)
from skescore.tuning.spaces import Space, as_search_space, check_space, extractor_name, search_space


@dataclass(frozen=True)
class SearchObjective:
    """The score or the measures that a search optimizes.

    Parameters
    ----------
    scorer : callable
        Scorer of a candidate on held-out rows; greater is better.
    name : str
        Name of the score.
    minimized : tuple of str, default=()
        Names of measures to minimize together; empty to maximize the score.
    """

    scorer: Any
    name: str
    minimized: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, scoring: Any, choose_by: Any = "ice", *, reference: str | None = None
    ) -> SearchObjective:
        """Make the objective from the parameter `scoring` of a search.

        Parameters
        ----------
        scoring : str, callable or sequence of str
            A score, or the names of measures to minimize together.
        choose_by : str or callable, default="ice"
            The score that is stored in addition to several measures.
        reference : {"data", "black_box"}, optional
            Reference of scores that are passed by name.

        Raises
        ------
        TypeError, ValueError
            If the score is unknown or returns several numbers.
        """
        if isinstance(scoring, str) or not isinstance(scoring, Sequence):
            scorer = check_scoring(scoring, reference)
            return cls(scorer, name_of(scoring, scorer))
        names = tuple(scoring)
        for name in names:
            if minimized_quantity(str(name), costs=False) is None:
                hint = did_you_mean(str(name), minimized_quantities(costs=False))
                raise ValueError(
                    f"scoring names {name!r}, which is not a measure that can be minimized. "
                    f"{hint} Pass a single score by its name: scoring='ice'."
                )
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError(
                "scoring must be one score, or at least two different measures such as "
                f"('loss', 'n_rules', 'incompleteness'), got {scoring!r}."
            )
        scorer = check_scoring(choose_by, reference)
        return cls(scorer, name_of(choose_by, scorer), names)

    @property
    def measures(self) -> dict[str, RuleScorer]:
        """Scorers of rule sets for the measures to minimize."""
        measures = filter(None, map(axis_measure, self.minimized))
        return {m.scorer_name: get_rule_scorer(m.scorer_name) for m in measures}

    @property
    def losses(self) -> list[MinimizedQuantity]:
        """Measures that are minimized together, with functions that convert them into losses."""
        losses = (minimized_quantity(name, costs=False) for name in self.minimized)
        return [loss for loss in losses if loss is not None]

    @property
    def directions(self) -> list[Literal["minimize", "maximize"]]:
        """Directions of an Optuna study with this objective."""
        return ["minimize" for _ in self.minimized] or ["maximize"]

    @property
    def metric_names(self) -> list[str]:
        """Names of the values of a trial."""
        return list(self.minimized) or [self.name]

    @property
    def depends_on_size(self) -> bool:
        """True unless the score measures only predictions and ignores the number of rules."""
        return bool(self.minimized) or not isinstance(self.scorer, PerformanceScorer)

    @property
    def scorer_text(self) -> str:
        """Text that identifies the scorer in every process."""
        if isinstance(self.scorer, RuleScorer):
            return repr(self.scorer)
        kind = self.scorer if hasattr(self.scorer, "__qualname__") else type(self.scorer)
        return f"{kind.__module__}.{kind.__qualname__}"

    @property
    def best_possible(self) -> float | None:
        """Largest score that any rules can have on a fold; None if it is unknown."""
        spec = spec_of(self.scorer)
        if spec is None:
            return None
        settings = self.scorer.settings
        # A size that the user defines may be below one.
        best_score = float(spec.signed(spec.best(settings, any_size=settings["size"] not in SIZES)))
        return float(settings["undefined"]) if settings["undefined"] > best_score else best_score

    def with_all_rows(self, folds: Sequence[FoldResult], all_rows: FoldResult | None) -> np.ndarray:
        """Return the .632 score of a candidate for each fold.

        It combines the held-out score with the training score of the rules extracted from all rows.

        Parameters
        ----------
        folds : sequence of FoldResult
            Score and measures on the held-out rows of each fold.
        all_rows : FoldResult or None
            Result on all rows, possibly a failure; None if the rules were not extracted.

        Returns
        -------
        ndarray of float, shape (n_folds,)
            Greater is better; NaN without a result on all rows, and minus infinity if the
            extraction from all rows failed. The parts of the score are combined if they are known
            (:func:`score_632`), otherwise the scores.
        """
        if all_rows is None:
            return np.full(len(folds), np.nan)
        on_all_rows = all_rows.get("score")
        if np.isnan(on_all_rows):
            return np.full(len(folds), -np.inf)
        scores = np.array([fold["score"] for fold in folds], dtype=float)
        with np.errstate(invalid="ignore"):  # the user's scores may be infinite
            combined_scores = estimate_632(scores, np.array(on_all_rows))
        combined_scores[np.isnan(combined_scores)] = -np.inf
        parts_and_formula = score_of_parts(self.scorer)
        if parts_and_formula is None:
            return combined_scores
        names, score = parts_and_formula
        held_out, final_parts = (
            {n: np.array([result.get(n) for result in results], float) for n in names}
            for results in (folds, [all_rows])
        )
        # Parts do not reproduce a score that the setting `undefined` replaces.
        is_reproduced = _is_reproduced(score, held_out, scores)
        is_reproduced &= _is_reproduced(score, final_parts, np.array([on_all_rows]))
        if is_reproduced.any():
            held_out = {name: values[is_reproduced] for name, values in held_out.items()}
            combined_scores[is_reproduced] = score_632(held_out, final_parts, score)
        return combined_scores

    def values(self, folds: Sequence[FoldResult]) -> tuple[float, ...]:
        """Return the values of a trial; undefined values are NaN."""
        if not self.minimized:
            return (mean_of(folds, "score"),)
        return tuple(float(loss_of(mean_of(folds, measure))) for measure, loss_of in self.losses)


def spec_of(scorer: Any) -> ScoreSpec | None:
    """Return the specification of a scorer's score; None if it has none."""
    return scorer.spec if isinstance(scorer, RuleScorer) else None


def score_of_parts(
    scorer: Any,
) -> tuple[tuple[str, ...], Callable[[Mapping[str, np.ndarray]], np.ndarray]] | None:
    """Return the names of the parts of a score and its formula; None if they are unknown."""
    spec = spec_of(scorer)
    if spec is None:
        return None
    completeness = scorer.settings.get("completeness", "volume")
    if completeness not in COMPLETENESSES:
        return None

    def score(parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(spec.signed(spec.of_parts(parts, scorer.settings, completeness)))

    return spec.parts(completeness), score


def _is_reproduced(
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
    parts: Mapping[str, np.ndarray],
    scores: np.ndarray,
) -> np.ndarray:
    """Return on which folds the formula reproduces the scores from their parts."""
    mask = np.all([np.isfinite(values) for values in parts.values()], axis=0)
    if mask.any():
        recomputed_scores = score({name: values[mask] for name, values in parts.items()})
        mask[mask] = np.isclose(recomputed_scores, scores[mask], rtol=1e-9, atol=0)
    return mask


def check_scoring(scoring: Any, reference: str | None = None) -> Any:
    """Return the scorer that `scoring` names; raise an error unless it returns one number.

    `reference` replaces the reference of a scorer that is passed by name.
    """
    if isinstance(scoring, Mapping) and len(scoring) != 1:
        raise ValueError(
            f"scoring must hold one score, {{'name': scorer}}, got {list(scoring)}. Pass the "
            "others as measures."
        )
    scorer = get_rule_scorer(scoring)
    if isinstance(scorer, RuleScorer) and scorer.gives_dict:
        raise several_scores_error(scorer)
    is_named = isinstance(scoring, str) and not isinstance(scorer, FidelityScorer)
    if is_named and reference is not None and scorer.reference != reference:
        scorer = copy.copy(scorer)
        scorer.reference = reference
    return scorer


def name_of(scoring: Any, scorer: Any) -> str:
    """Return the name of a score that the user passed as a name or a scorer."""
    if isinstance(scoring, str | Mapping):
        return scoring if isinstance(scoring, str) else str(next(iter(scoring)))
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", None) or "score")


#: Columns before and after the columns of measured quantities and of the user's measures.
FIRST_COLUMNS = ("extractor", "score", "score_std")
LAST_COLUMNS = (
    "score_on_all_rows",
    "score_repeated",
    "tied",
    "within_limits",
    "params",
    "trial",
    "state",
    "same_as",
    "stopped",
    "error",
)
COLUMNS = (*FIRST_COLUMNS, *LAST_COLUMNS)


class ExtractorObjective:
    """Optuna objective that returns the cross-validated score of an extractor's rules.

    The black box is fitted once per fold and queried once on the same rows, regardless of the
    number of trials. Every trial stores the means of all measured quantities over the folds as user
    attributes (:func:`skescore.scorers.measured_quantities`), and the results on each fold as
    ``folds``, so that other scores can be computed without another extraction. Rules are not
    extracted again for hyperparameters that were tried before; ``same_as`` is the number of the
    earlier trial.

    Parameters
    ----------
    estimator : estimator
        The black box. Wrap a fitted model in ``FrozenEstimator``.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,) or None
        The target with which scores compare predictions. With None, the black box must be fitted,
        and its own predictions are the target (fidelity).
    extractor : str or extractor, default="cart"
        A registered name, or an extractor. Its parameters outside of `space` are kept. The default
        space omits parameters that differ from the extractor's defaults.
    scoring : str, callable or sequence of str, default="ice"
        ``"ice"``, ``"neg_fire"``, ``"neg_q"`` or a scorer; greater is better, so the study must
        maximize. Several names of ``"loss"``, ``"loss_q"``, ``"n_rules"``, ``"size"``,
        ``"incompleteness"``, ``"incompleteness_instances"``, ``"instability"`` and the losses of
        :data:`skescore.scorers.SET_MEASURES` are minimized together, by a study with one direction
        per name. For a fitted black box, scores that are passed by name compare with its
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
        is_fitted = not has_target or is_prefit(estimator)
        y = target_or_predictions(estimator, X, y)
        if space is None:
            space = search_space(extractor, X, y, task=task)
        check_space(space, prototype)
        reference = "black_box" if is_fitted else None
        objective = SearchObjective.of(scoring, reference=reference)
        scorers = further_scorers(objective, measures)
        folds = make_folds(estimator, X, y, cv, task, fitted=is_fitted, has_target=has_target)
        self._set_attributes(folds, prototype, space, objective, scorers, extractor_name(extractor))

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
        scorers = further_scorers(objective, measures)
        new_objective._set_attributes(folds, prototype, space, objective, scorers, name)
        return new_objective

    def _set_attributes(
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
        """Extract rules with these parameters on every fold, and score them.

        Parameters
        ----------
        params : dict of str to value
            Parameters for the extractor.

        Returns
        -------
        list of FoldResult
            One per fold.
        """
        return list(self._iter_folds(params))

    def _iter_folds(self, params: dict[str, Any]) -> Iterator[FoldResult]:
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
        for step, result in enumerate(self._iter_folds(params)):
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
            nan_names = {name for name, v in zip(names, values, strict=True) if math.isnan(v)}
            nan_results = [result for result in results if not _is_defined(result, nan_names)]
            reasons = sorted({text for result in nan_results for text in result.warnings})
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
            Total number of folds.

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
        repair_names = [REPAIRED] if results and REPAIRED in results[0] else []
        for name in (*measured_quantities(), *self.measures, *repair_names):
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


def further_scorers(
    objective: SearchObjective, measures: Sequence[Any] | Mapping[str, Any]
) -> dict[str, Any]:
    """Return the scorers that the objective needs, and those of `measures`, by name."""
    return objective.measures | check_measures(measures)


def check_measures(measures: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the scorers of `measures` by name; raise an error if they cannot be used."""
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
        if name in named_scorers or name in (*measured_quantities(), *COLUMNS, *_RESERVED_NAMES):
            raise ValueError(
                f"measures must have names that are not in use, got {name!r}. Pass "
                "{'another name': scorer} instead."
            )
        named_scorers[name] = scorer
    return named_scorers


#: User attribute of a trial that was pruned: the number of folds that it was evaluated on.
STOPPED = "stopped_after"
#: Further names that measures must not have: attributes of trials and fields of their results.
_RESERVED_NAMES = ("folds", "all_rows", STOPPED, REPAIRED, WARNINGS, FAILURE)


def _is_defined(result: FoldResult, names: Collection[str]) -> bool:
    """Return whether the measures behind the values of a trial are defined on a fold."""
    losses = [minimized_quantity(name, costs=False) for name in names]
    measures = (loss.measure if loss else name for name, loss in zip(names, losses, strict=True))
    return not any(math.isnan(result.get(measure)) for measure in measures)
