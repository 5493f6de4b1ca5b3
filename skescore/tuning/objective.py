"""An Optuna objective: hyper-parameters in, cross-validated score of the rules out."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from sklearn.base import BaseEstimator, clone

from skescore.extractors import black_box_task, is_prefit
from skescore.registry import make_extractor, registered_name
from skescore.scorers import RuleScorer, get_rule_scorer
from skescore.tuning._ranges import Space
from skescore.tuning.folds import (
    MEASURES,
    Fold,
    evaluate_candidate,
    make_folds,
    mean_of,
    several_scores,
    target_or_answers,
)
from skescore.tuning.spaces import search_space


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
        A registered name, or an extractor whose parameters outside of `space` are kept.
    scoring : str or callable, default="ice"
        ``"ice"``, ``"neg_fire"``, ``"neg_q"`` or a scorer; greater is better, so the study must
        maximise.
    cv : int, splitter or iterable, default=5
        Cross-validation, as in scikit-learn.
    space : dict of str to optuna distribution, optional
        The hyper-parameters to search; by default :func:`search_space` of the name.
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
        random_state: Any = None,
        _folds: list[Fold] | None = None,
    ) -> None:
        task = black_box_task(estimator)
        if isinstance(extractor, str):
            name, prototype = extractor, make_extractor(extractor, estimator)
        else:
            name = registered_name(extractor) or type(extractor).__name__
            prototype = clone(extractor)
        fitted = y is None or is_prefit(estimator)
        y = target_or_answers(estimator, X, y)
        if space is None:
            space = search_space(name, X, y, task=task)
        check_space(space, prototype)
        if "random_state" in prototype.get_params(deep=False) and random_state is not None:
            prototype.set_params(random_state=random_state)
        self.name = name
        self.prototype: BaseEstimator = prototype
        self.space = space
        self.scorer = check_scoring(scoring)
        if _folds is None:
            _folds = make_folds(estimator, X, y, cv, task, fitted=fitted)
        self.folds = _folds
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
        return {name: _suggest(trial, name, d) for name, d in self.space.items()}

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
        return evaluate_candidate(
            clone(self.prototype).set_params(**params), self.folds, self.scorer
        )

    def __call__(self, trial: optuna.trial.Trial) -> float:
        """Score one trial.

        Parameters
        ----------
        trial : optuna.trial.Trial
            The trial; what is measured becomes its user attributes.

        Returns
        -------
        float
            Mean score over the folds, greater is better.

        Raises
        ------
        ValueError
            If the study does not maximise.
        optuna.TrialPruned
            If the score is undefined on some fold, as where the rules cover none of its rows:
            the study goes on, and the trial keeps the reason in its attribute ``error``.
        """
        study = getattr(trial, "study", None)
        if study is not None and study.directions != [optuna.study.StudyDirection.MAXIMIZE]:
            raise ValueError(
                "The score is greater for better rules, so the study must maximise it: "
                'optuna.create_study(direction="maximize").'
            )
        params = self.suggest(trial)
        # The number of an earlier trial says something in its own study only.
        key = getattr(study, "study_name", ""), json.dumps(params, sort_keys=True, default=repr)
        if key in self._known:  # small spaces repeat themselves; the answer would be the same
            first, results = self._known[key]
            trial.set_user_attr("same_as", first)
        else:
            results = self.evaluate(params)
            self._known[key] = (trial.number, results)
        trial.set_user_attr("extractor", self.name)
        for measure in (*MEASURES, "seconds", "black_box_calls", "black_box_rows"):
            trial.set_user_attr(measure, mean_of(results, measure))
        trial.set_user_attr("score_std", float(np.std([r["score"] for r in results])))
        trial.set_user_attr("folds", results)
        score = mean_of(results, "score")
        if math.isnan(score):
            where = [result for result in results if math.isnan(result["score"])]
            why = sorted({text for result in where for text in result["warnings"]})
            text = f"The score is undefined on some fold: {' '.join(why)}"
            trial.set_user_attr("error", text)
            raise optuna.TrialPruned(text)
        return score


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
    scorer = get_rule_scorer(scoring)
    if isinstance(scorer, RuleScorer) and scorer.gives_dict:
        raise several_scores(scorer)
    return scorer


def check_space(space: Space, extractor: Any) -> None:
    """Raise unless a space holds distributions of parameters that the extractor has."""
    known = set(extractor.get_params(deep=False)) - {"estimator"}
    unknown = {name for name in set(space) - known if not _takes(extractor, name)}
    if unknown:
        raise ValueError(
            f"space names {sorted(unknown)}, which {type(extractor).__name__} does not have; "
            f"its parameters are {sorted(known)}. The black box is fixed in a search of its rules."
        )
    for name, distribution in space.items():
        if not isinstance(distribution, BaseDistribution):
            raise TypeError(
                f"space[{name!r}] must be an Optuna distribution, got {distribution!r}. Import "
                "them from optuna.distributions."
            )


def _takes(extractor: Any, name: str) -> bool:
    """Whether a parameter that is not listed can be set: PSyKE's are listed once they are set."""
    if "__" in name or name == "estimator":
        return False
    try:
        clone(extractor).set_params(**{name: None})
    except ValueError:
        return False
    return True


def _suggest(trial: optuna.trial.BaseTrial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, IntDistribution):
        step, log = distribution.step, distribution.log
        return trial.suggest_int(name, distribution.low, distribution.high, step=step, log=log)
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    raise TypeError(f"space[{name!r}] must be an Optuna distribution, got {distribution!r}.")
