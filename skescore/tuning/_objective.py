"""An Optuna objective: hyper-parameters in, cross-validated score of the rules out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import optuna
from sklearn.base import BaseEstimator, clone

from skescore._text import did_you_mean
from skescore.extractors import black_box_task, is_prefit
from skescore.registry import make_extractor
from skescore.scorers import RuleScorer, ScoreSpec, get_rule_scorer
from skescore.scorers._evaluation import SIZES
from skescore.scorers._specs import COMPLETENESSES, measured_names
from skescore.tuning._evaluation import (
    Fold,
    evaluate_on_fold,
    make_folds,
    mean_of,
    several_scores,
    target_or_answers,
)
from skescore.tuning._winner import mixed, mixed_score
from skescore.tuning.spaces._space import Space, as_search_space, check_space
from skescore.tuning.spaces._spaces import extractor_name, search_space

# --- what a search is after: one score to maximise, or several measures to minimise --------------

#: Measures that a search of the whole trade-off may minimise, from the results on the folds.
OBJECTIVES: dict[str, Callable[[list[dict[str, Any]]], float]] = {
    "loss": lambda folds: mean_of(folds, "loss"),
    "loss_q": lambda folds: mean_of(folds, "loss_q"),
    "n_rules": lambda folds: mean_of(folds, "n_rules"),
    "size": lambda folds: mean_of(folds, "size"),
    "incompleteness": lambda folds: 1.0 - mean_of(folds, "completeness_volume"),
    "incompleteness_instances": lambda folds: 1.0 - mean_of(folds, "completeness_instances"),
}


@dataclass(frozen=True)
class SearchObjective:
    """What candidates are compared by.

    Parameters
    ----------
    scorer : callable
        Gives the score of a candidate on held-out rows; greater is better.
    name : str
        What to call that score.
    minimised : tuple of str, default=()
        Names of :data:`OBJECTIVES` to minimise together; none to maximise the score.
    """

    scorer: Any
    name: str
    minimised: tuple[str, ...] = ()

    @classmethod
    def of(cls, scoring: Any, choose_by: Any = "ice") -> SearchObjective:
        """Read the parameter `scoring`.

        Parameters
        ----------
        scoring : str, callable or sequence of str
            A score, or the names of measures to minimise together.
        choose_by : str or callable, default="ice"
            The score that is kept beside several measures.

        Raises
        ------
        TypeError, ValueError
            If it is unknown, or is known to give several numbers.
        """
        if isinstance(scoring, str) or not isinstance(scoring, Sequence):
            scorer = check_scoring(scoring)
            return cls(scorer, name_of(scoring, scorer))
        names = tuple(scoring)
        for name in names:
            if name not in OBJECTIVES:
                raise ValueError(
                    f"scoring names {name!r}, which is no measure to minimise. "
                    f"{did_you_mean(str(name), OBJECTIVES)} A single score is given by its name "
                    "alone: scoring='ice'."
                )
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError(
                "scoring must be one score, or at least two different measures such as "
                f"('loss', 'n_rules', 'incompleteness'), got {scoring!r}."
            )
        scorer = check_scoring(choose_by)
        return cls(scorer, name_of(choose_by, scorer), names)

    @property
    def directions(self) -> list[Literal["minimize", "maximize"]]:
        """Directions of an Optuna study after it."""
        return ["minimize" for _ in self.minimised] or ["maximize"]

    @property
    def metric_names(self) -> list[str]:
        """What to call the values of a trial."""
        return list(self.minimised) or [self.name]

    @property
    def shown(self) -> str:
        """The scorer as text, the same in every process."""
        if isinstance(self.scorer, RuleScorer):
            return repr(self.scorer)
        kind = self.scorer if hasattr(self.scorer, "__qualname__") else type(self.scorer)
        return f"{kind.__module__}.{kind.__qualname__}"

    @property
    def best_possible(self) -> float | None:
        """The greatest score that any rules can have on a fold; None if that is not known."""
        spec = spec_of(self.scorer)
        if spec is None:
            return None
        settings = self.scorer.settings
        # A size of the caller's own may be below one.
        best = float(spec.signed(spec.best(settings, any_size=settings["size"] not in SIZES)))
        return float(settings["undefined"]) if settings["undefined"] > best else best

    def with_all_rows(
        self, folds: Sequence[Mapping[str, Any]], all_rows: Mapping[str, Any] | None
    ) -> np.ndarray:
        """Score what was measured on each fold, weighed with the rules of all rows on these rows.

        Parameters
        ----------
        folds : sequence of dict
            Score and measures on the held-out rows of each fold.
        all_rows : dict or None
            The same on all rows, or why there are none; None if that was not tried.

        Returns
        -------
        ndarray of float, shape (n_folds,)
            Greater is better; NaN where nothing was measured on all rows, and minus infinity where
            there are no rules of all rows. What scores are made of is weighed where that is known,
            see :func:`skescore.tuning._winner.mixed_score`, else the scores themselves.
        """
        if all_rows is None:
            return np.full(len(folds), np.nan)
        on_all_rows = float(all_rows.get("score", np.nan))
        if np.isnan(on_all_rows):
            return np.full(len(folds), -np.inf)
        scores = np.array([fold["score"] for fold in folds], dtype=float)
        with np.errstate(invalid="ignore"):  # of infinite scores of the caller's own
            found = mixed(scores, np.array(on_all_rows))
        found[np.isnan(found)] = -np.inf
        of_parts = score_of_parts(self.scorer)
        if of_parts is None:
            return found
        names, score = of_parts
        held_out, rest = (
            {n: np.array([one.get(n, np.nan) for one in some], float) for n in names}
            for some in (folds, [all_rows])
        )
        # Elsewhere a score is made of something else, such as a number that stands in for it.
        follows = _follows(score, held_out, scores)
        follows &= _follows(score, rest, np.array([on_all_rows]))
        if follows.any():
            held_out = {name: values[follows] for name, values in held_out.items()}
            found[follows] = mixed_score(held_out, rest, score)
        return found

    def values(self, folds: list[dict[str, Any]]) -> tuple[float, ...]:
        """The values of a trial, of which some may be NaN."""
        if not self.minimised:
            return (mean_of(folds, "score"),)
        return tuple(OBJECTIVES[name](folds) for name in self.minimised)


def spec_of(scorer: Any) -> ScoreSpec | None:
    """The row of a scorer's score; None of a scorer that has none."""
    return scorer.spec if isinstance(scorer, RuleScorer) else None


def score_of_parts(
    scorer: Any,
) -> tuple[tuple[str, ...], Callable[[Mapping[str, np.ndarray]], np.ndarray]] | None:
    """What a score is made of and how, greater being better; None if that is not known."""
    spec = spec_of(scorer)
    if spec is None:
        return None
    completeness = scorer.settings.get("completeness", "volume")
    if completeness not in COMPLETENESSES:
        return None

    def score(parts: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(spec.signed(spec.of_parts(parts, scorer.settings, completeness)))

    return spec.parts(completeness), score


def _follows(
    score: Callable[[Mapping[str, np.ndarray]], np.ndarray],
    parts: Mapping[str, np.ndarray],
    scores: np.ndarray,
) -> np.ndarray:
    """Where the parts give these scores."""
    known = np.all([np.isfinite(values) for values in parts.values()], axis=0)
    if known.any():
        again = score({name: values[known] for name, values in parts.items()})
        known[known] = np.isclose(again, scores[known], rtol=1e-9, atol=0)
    return known


def check_scoring(scoring: Any) -> Any:
    """Turn a name into a scorer of one number.

    Parameters
    ----------
    scoring : str or callable
        See :func:`skescore.scorers.get_rule_scorer`.

    Returns
    -------
    callable
        The scorer.

    Raises
    ------
    TypeError, ValueError
        If it is unknown, or is known to give several numbers.
    """
    if isinstance(scoring, Mapping) and len(scoring) != 1:
        raise ValueError(
            f"scoring must hold one score, {{'name': scorer}}, got {list(scoring)}. Pass the "
            "others as measures."
        )
    scorer = get_rule_scorer(scoring)
    if isinstance(scorer, RuleScorer) and scorer.gives_dict:
        raise several_scores(scorer)
    return scorer


def name_of(scoring: Any, scorer: Any) -> str:
    """What to call a score that was given as a name or a scorer."""
    if isinstance(scoring, str | Mapping):
        return scoring if isinstance(scoring, str) else str(next(iter(scoring)))
    return str(getattr(scorer, "name", None) or getattr(scorer, "__name__", None) or "score")


# --- An Optuna objective: hyper-parameters in, cross-validated score of the rules out ------------


class ExtractorObjective:
    """Cross-validated score of an extractor's rules, for an Optuna study of your own.

    The black box is fitted once per fold and asked once about the same rows, whatever the number
    of trials. Every trial keeps, as user attributes, the mean over the folds of ``performance``,
    ``loss`` (FiRe's), ``loss_q``, ``n_rules``, ``size`` (as the score counts it),
    ``completeness_volume``, ``completeness_instances``, ``seconds``,
    ``black_box_calls`` and ``black_box_rows``, and in ``folds`` the same per fold, so that other
    scores can be computed without another extraction. A trial whose hyper-parameters have been
    tried before in the study is not extracted again; ``same_as`` names the earlier trial.

    Parameters
    ----------
    estimator : estimator
        The black box; a fitted one in ``FrozenEstimator``.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,) or None
        The target that scores compare with. With None the black box must be fitted, and its own
        answers stand for the target (fidelity).
    extractor : str or extractor, default="cart"
        A registered name, or an extractor whose parameters outside of `space` are kept; what was
        set on it is not searched by default.
    scoring : str, callable or sequence of str, default="ice"
        ``"ice"``, ``"neg_fire"``, ``"neg_q"`` or a scorer; greater is better, so the study must
        maximise. Several names of ``"loss"``, ``"loss_q"``, ``"n_rules"``, ``"size"``,
        ``"incompleteness"`` and ``"incompleteness_instances"`` are minimised together, by a study
        of as many directions.
    cv : int, splitter or iterable, default=5
        Cross-validation, as in scikit-learn.
    space : dict of str to optuna distribution, optional
        The hyper-parameters to search; by default :func:`search_space` of the extractor.
    measures : sequence of str or callable, default=()
        Further scorers whose means each trial keeps, such as ``"mean_rule_c2"``.
    random_state : int, RandomState instance or None, default=None
        Handed to the extractor, if it takes one.

    Raises
    ------
    TypeError
        If the black box is no classifier or regressor, or `scoring` or `space` cannot be used.
    ValueError
        If a name is unknown, or `space` names what the extractor does not have.

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
        fitted = y is None or is_prefit(estimator)
        y = target_or_answers(estimator, X, y)
        if space is None:
            space = search_space(extractor, X, y, task=task)
        check_space(space, prototype)
        objective, measured = SearchObjective.of(scoring), check_measures(measures)
        folds = make_folds(estimator, X, y, cv, task, fitted=fitted)
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
        """Make an objective on folds that others share, as a search of several extractors does.

        Parameters
        ----------
        folds : list of Fold
            With their black boxes.
        prototype : extractor
            Its parameters outside of `space` are kept.
        space : dict of str to optuna distribution
            The hyper-parameters to search.
        objective : SearchObjective
            What candidates are compared by.
        measures : sequence of str or callable, default=()
            Further scorers.
        name : str
            What to call the extractor.

        Returns
        -------
        ExtractorObjective
            Like any other.
        """
        made = cls.__new__(cls)
        made._set(folds, prototype, space, objective, check_measures(measures), name)
        return made

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
        self._known: dict[tuple[str, str], tuple[int, list[dict[str, Any]]]] = {}

    def suggest(self, trial: optuna.trial.BaseTrial) -> dict[str, Any]:
        """Ask a trial for one value of every hyper-parameter.

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
        """Make the extractor with some parameters, not fitted.

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

    def evaluate(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Extract and score with some parameters on every fold.

        Parameters
        ----------
        params : dict of str to value
            Parameters for the extractor.

        Returns
        -------
        list of dict
            One per fold.
        """
        return list(self._on_folds(params))

    def _on_folds(self, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        candidate = self.candidate(params)
        for fold in self.folds:
            yield evaluate_on_fold(candidate, fold, self.scorer, self.measures)

    def __call__(self, trial: optuna.trial.Trial) -> float | tuple[float, ...]:
        """Score one trial.

        Parameters
        ----------
        trial : optuna.trial.Trial
            The trial; what is measured becomes its user attributes.

        Returns
        -------
        float or tuple of float
            Mean score over the folds, greater is better; or the means of the measures that
            `scoring` names, smaller is better.

        Raises
        ------
        ValueError
            If the study has other directions.
        optuna.TrialPruned
            If the score is undefined on some fold, as where the rules cover none of its rows:
            the study goes on, and the trial keeps the reason in its attribute ``error``. Also if
            the study's pruner stops it between two folds.
        """
        study = getattr(trial, "study", None)
        self._check_directions(study)
        params = self.suggest(trial)
        # The number of an earlier trial says something in its own study only.
        key = getattr(study, "study_name", ""), params_key(params)
        if key in self._known:  # small spaces repeat themselves; the answer would be the same
            first, results = self._known[key]
            return self.record(trial, results, same_as=first)
        results = []
        for step, result in enumerate(self._on_folds(params)):
            results.append(result)
            score = mean_of(results, "score")
            if study is None or self.objective.minimised or math.isnan(score):
                continue
            trial.report(score, step)
            if step + 1 < len(self.folds) and trial.should_prune():
                raise self.stopped(trial, results, len(self.folds))
        self._known[key] = (trial.number, results)
        return self.record(trial, results)

    def record(
        self,
        trial: Any,
        results: list[dict[str, Any]],
        *,
        same_as: int | None = None,
        all_rows: dict[str, Any] | None = None,
    ) -> float | tuple[float, ...]:
        """Keep what was measured in a trial.

        Parameters
        ----------
        trial : optuna.trial.Trial
            The trial.
        results : list of dict
            What :meth:`evaluate` gave.
        same_as : int, optional
            Number of the trial that measured it.
        all_rows : dict, optional
            The same of the rules that are extracted from all rows, on these rows.

        Returns
        -------
        float or tuple of float
            The trial's value or values.

        Raises
        ------
        optuna.TrialPruned
            If one of them is undefined.
        """
        if same_as is not None:
            trial.set_user_attr("same_as", same_as)
        if all_rows is not None:
            trial.set_user_attr("all_rows", all_rows)
        self._keep(trial, results)
        values = self.objective.values(results)
        if any(map(math.isnan, values)):
            names = ["score"] if not self.objective.minimised else list(self.objective.minimised)
            undefined = {name for name, v in zip(names, values, strict=True) if math.isnan(v)}
            where = [result for result in results if not _is_defined(result, undefined)]
            why = sorted({text for result in where for text in result["warnings"]})
            text = f"The score is undefined on some fold: {' '.join(why)}"
            trial.set_user_attr("error", text)
            raise optuna.TrialPruned(text)
        return values if self.objective.minimised else values[0]

    def stopped(
        self, trial: Any, results: list[dict[str, Any]], n_folds: int
    ) -> optuna.TrialPruned:
        """Keep what was measured before a trial was stopped, and make the exception that says so.

        Parameters
        ----------
        trial : optuna.trial.Trial
            The trial.
        results : list of dict
            What was measured on the first folds.
        n_folds : int
            Number of all folds.

        Returns
        -------
        optuna.TrialPruned
            To be raised.
        """
        self._keep(trial, results)
        trial.set_user_attr(STOPPED, len(results))
        text = f"Stopped by the pruner after {len(results)} of {n_folds} folds."
        trial.set_user_attr("error", text)
        return optuna.TrialPruned(text)

    def _keep(self, trial: Any, results: list[dict[str, Any]]) -> None:
        trial.set_user_attr("extractor", self.name)
        kept = (*measured_names(), *self.measures, "seconds", "black_box_calls", "black_box_rows")
        for name in kept:
            trial.set_user_attr(name, mean_of(results, name))
        trial.set_user_attr("score", mean_of(results, "score"))
        trial.set_user_attr("score_std", float(np.std([r["score"] for r in results])))
        trial.set_user_attr("folds", results)

    def _check_directions(self, study: optuna.Study | None) -> None:
        if study is None:
            return
        directions = [direction.name.lower() for direction in study.directions]
        if directions == self.objective.directions:
            return
        if not self.objective.minimised:
            raise ValueError(
                "The score is greater for better rules, so the study must maximise it: "
                'optuna.create_study(direction="maximize").'
            )
        raise ValueError(
            f"The study must minimise {', '.join(self.objective.minimised)}: "
            f"optuna.create_study(directions={self.objective.directions!r})."
        )


def params_key(params: dict[str, Any]) -> str:
    """Text that is equal for equal parameters."""
    return json.dumps(params, sort_keys=True, default=repr)


def check_measures(measures: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Name the further scorers whose values candidates keep.

    Parameters
    ----------
    measures : sequence of str or callable, or dict of str to either
        Scorers of one number, or their names; a dict says what to call them.

    Returns
    -------
    dict of str to callable
        Scorers by the names of their columns.

    Raises
    ------
    TypeError, ValueError
        If one is unknown, or a name stands for something else already.
    """
    if isinstance(measures, str):
        raise TypeError(
            f"measures must be a sequence of scorers, such as ('mean_rule_c2',), got {measures!r}."
        )
    known: dict[str, Any] = {}
    if isinstance(measures, Mapping):
        measures = [{name: measure} for name, measure in measures.items()]
    for measure in measures:
        scorer = check_scoring(measure)
        name = name_of(measure, scorer)
        if name in known or name in (*measured_names(), *RESERVED):
            raise ValueError(f"measures must have names of their own, got {name!r} once more.")
        known[name] = scorer
    return known


#: Marks a trial that was stopped between folds, by their number.
STOPPED = "stopped_after"
#: Names of what every candidate keeps beside measures, which no further measure may have.
RESERVED = frozenset({
    "score", "score_std", "seconds", "black_box_calls", "black_box_rows", "warnings",
    "extractor", "params", "trial", "state", "stopped", "error", "folds", "same_as", "all_rows",
    "score_on_all_rows",
})  # fmt: skip


def _is_defined(result: dict[str, Any], names: set[str]) -> bool:
    parts = {"incompleteness": "completeness_volume"}
    parts["incompleteness_instances"] = "completeness_instances"
    return not any(math.isnan(result[parts.get(name, name)]) for name in names)
