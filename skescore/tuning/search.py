"""ExtractorSearchCV: the best rules of a black box, whatever extractor makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optuna
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, indexable

from skescore.extractors import black_box_task, is_fitted, is_prefit
from skescore.registry import extractor_spec, make_extractor
from skescore.rules import RuleSet
from skescore.scorers import get_rule_scorer
from skescore.tuning._ranges import Space
from skescore.tuning.folds import (
    MEASURES,
    Fold,
    black_box_quality,
    make_folds,
    target_or_answers,
)
from skescore.tuning.objective import (
    ExtractorObjective,
    check_scoring,
    check_space,
)
from skescore.tuning.spaces import search_space, starting_points
from skescore.tuning.studies import run_study

_COLUMNS = ("score_std", *MEASURES, "seconds", "black_box_calls", "black_box_rows")


def _can_refit(search: Any) -> bool:
    return bool(search.refit) and is_classifier(search)


class ExtractorSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search extractors and their hyper-parameters for the rules that score best.

    One Optuna study per extractor, each with its share of the trials; candidates are compared by
    cross-validation on held-out rows, and the winner is refitted on all rows. The black box is
    fitted once per fold and asked once about the same rows.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor; a fitted one in
        ``FrozenEstimator``.
    extractors : sequence of str, default=("cart", "gridex")
        Names of :func:`skescore.registry.extractor_names`: built-in ones, PSyKE's own such as
        ``"psyke:gridex"``, and those that installed packages register.
    scoring : str or callable, default="ice"
        ``"ice"``, ``"neg_fire"``, ``"neg_q"`` or a scorer; greater is better.
    n_trials : int, default=50
        Trials in all, shared out evenly; at least one per extractor.
    timeout : float or None, default=None
        Seconds after which each study starts no further trial. With it, results depend on the
        machine's speed.
    cv : int, splitter or iterable, default=5
        Cross-validation, as in scikit-learn.
    spaces : dict of str to dict, optional
        Search space per extractor, in place of :func:`search_space`.
    refit : bool, default=True
        Fit the best extractor on all rows; needed to predict.
    n_jobs : int or None, default=None
        Extractors that are searched at the same time, in processes of their own. Results do not
        depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the samplers and extractors. Pass an int for the same result on every run.
    callbacks : sequence of callable, optional
        Called as ``callback(study, trial)`` after every trial; with `n_jobs` above 1 in the
        processes that search, so that they must be picklable.

    Attributes
    ----------
    best_extractor_ : extractor
        The winner, fitted on all rows. Only with ``refit=True``.
    best_name_ : str
        Its registered name.
    best_params_ : dict
        Its hyper-parameters.
    best_score_ : float
        Its mean cross-validated score.
    rules_ : RuleSet
        Its rules.
    leaderboard_ : pandas.DataFrame
        One row per trial, the best first: extractor, score and its spread over the folds,
        performance, loss, n_rules, both completenesses, seconds, questions, parameters, trial
        number, state and error.
    studies_ : dict of str to optuna.Study
        The studies by extractor.
    black_box_quality_ : dict of str to float
        Held-out performance of the black box itself; perfect by definition without y.
    search_seconds_ : float
        Time that the search took, without the refit.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Classification only.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Of equally good candidates the one with fewer rules wins, then the one whose extractor is named
    first, then the earlier trial.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.tuning import ExtractorSearchCV
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> search = ExtractorSearchCV(KNeighborsClassifier(9), n_trials=10, random_state=0).fit(X, y)
    >>> len(search.rules_), search.best_score_ > 0.97
    (3, True)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        extractors: Sequence[str] = ("cart", "gridex"),
        scoring: Any = "ice",
        n_trials: int = 50,
        timeout: float | None = None,
        cv: Any = 5,
        spaces: dict[str, Space] | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        callbacks: Sequence[Callable[..., None]] | None = None,
    ) -> None:
        self.estimator = estimator
        self.extractors = extractors
        self.scoring = scoring
        self.n_trials = n_trials
        self.timeout = timeout
        self.cv = cv
        self.spaces = spaces
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callbacks = callbacks

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> ExtractorSearchCV:
        """Search, then refit the winner on all rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            The target. Without it the black box must be fitted, and candidates are compared with
            its answers (fidelity).
        groups : array-like of shape (n_rows,), optional
            Groups of rows that a splitter such as ``GroupKFold`` keeps together.

        Returns
        -------
        self
            The fitted search.

        Raises
        ------
        ValueError, TypeError
            If input or parameters cannot be used, or no trial succeeded.
        """
        for name in [n for n in vars(self) if n.endswith("_") and not n.endswith("__")]:
            delattr(self, name)  # nothing of an earlier fit may answer for this one
        task = self._check_parameters()
        # The winner's class checks the rows once more; a clear error should not wait for it, nor
        # for an extractor that cannot read columns of names.
        for name in self.extractors:
            probe = make_extractor(name, self.estimator)
            if not hasattr(
                probe, "check_input"
            ):  # not made of our base class: checked as a tree is
                probe = make_extractor("cart", self.estimator)
            _, checked = probe.check_input(X, y, task)
        self.n_features_in_ = probe.n_features_in_
        if hasattr(probe, "feature_names_in_"):
            self.feature_names_in_ = probe.feature_names_in_
        fitted = y is None or is_prefit(self.estimator)
        X, y = indexable(X, target_or_answers(self.estimator, X, checked))
        spaces = self._search_spaces(X, y, task)
        begin = time.perf_counter()
        folds = make_folds(self.estimator, X, y, self.cv, task, fitted=fitted, groups=groups)
        self.black_box_quality_ = black_box_quality(folds, task)
        self.studies_ = self._run_studies(X, y, task, folds, spaces)
        self.search_seconds_ = time.perf_counter() - begin
        self.leaderboard_ = self._leaderboard()
        self._choose()
        if self.refit:
            if checked is None:  # the black box as it is
                self.best_extractor_ = self._winning_candidate(self.estimator).fit(X)
            else:
                self.best_extractor_ = self._winning_candidate(clone(self.estimator)).fit(X, y)
            if task == "classification":
                self.classes_ = self.best_extractor_.classes_
        return self

    def _check_parameters(self) -> str:
        task = black_box_task(self.estimator)
        if isinstance(self.extractors, str) or not (
            isinstance(self.extractors, Sequence) and len(self.extractors)
        ):
            raise ValueError(
                "extractors must be a sequence of at least one name, such as ('cart', 'gridex'), "
                f"got {self.extractors!r}."
            )
        if len(set(self.extractors)) < len(self.extractors):
            raise ValueError(f"extractors must differ from each other, got {self.extractors!r}.")
        for name in self.extractors:
            if task not in (able := extractor_spec(name).tasks):
                raise ValueError(
                    f"The extractor {name!r} does {' and '.join(able)} only, but the black box "
                    f"{type(self.estimator).__name__} does {task}. Leave it out of extractors."
                )
        if not isinstance(self.n_trials, int | np.integer) or self.n_trials < len(self.extractors):
            raise ValueError(
                "n_trials must be an integer of at least one per extractor "
                f"({len(self.extractors)}), got {self.n_trials!r}."
            )
        unknown = set(self.spaces or {}) - set(self.extractors)
        if unknown:
            raise ValueError(f"spaces names {sorted(unknown)}, not among extractors.")
        check_scoring(self.scoring)
        return task

    def _winning_candidate(self, black_box: Any) -> Any:
        candidate = make_extractor(self.best_name_, black_box).set_params(**self.best_params_)
        if "random_state" in candidate.get_params(deep=False):
            candidate.set_params(random_state=self._extractor_seed)
        return candidate

    def _search_spaces(self, X: Any, y: Any, task: str) -> dict[str, Space]:
        spaces = {}
        for name in self.extractors:
            space = (self.spaces or {}).get(name)
            spaces[name] = search_space(name, X, y, task=task) if space is None else space
            check_space(spaces[name], make_extractor(name, self.estimator))
        return spaces

    def _run_studies(
        self, X: Any, y: Any, task: str, folds: list[Fold], spaces: dict[str, Space]
    ) -> dict[str, optuna.Study]:
        random = check_random_state(self.random_state)
        self._extractor_seed = int(random.randint(2**31 - 1))
        seeds = random.randint(2**31 - 1, size=len(self.extractors)).tolist()
        share, rest = divmod(self.n_trials, len(self.extractors))
        jobs = []
        for position, name in enumerate(self.extractors):
            objective = ExtractorObjective(
                self.estimator, X, y, extractor=make_extractor(name, self.estimator),
                scoring=self.scoring, space=spaces[name], random_state=self._extractor_seed,
                _folds=folds,
            )  # fmt: skip
            objective.name = name
            first = starting_points(name, spaces[name], np.asarray(y), task)
            n_trials = share + (position < rest)
            jobs.append((objective, n_trials, seeds[position], first, self.timeout, self.callbacks))
        studies = Parallel(n_jobs=self.n_jobs)(delayed(run_study)(*job) for job in jobs)
        return dict(zip(self.extractors, studies, strict=True))

    def _leaderboard(self) -> pd.DataFrame:
        records = []
        for name, study in self.studies_.items():
            for trial in study.get_trials(deepcopy=False):
                if not trial.state.is_finished():  # a starting point that there was no time for
                    continue
                state = trial.state.name.lower()
                record: dict[str, Any] = {
                    "extractor": name,
                    "score": trial.value if state == "complete" else np.nan,
                    **{c: trial.user_attrs.get(c, np.nan) for c in _COLUMNS},
                    "params": dict(trial.params),
                    "trial": trial.number,
                    "state": state,
                    "error": trial.user_attrs.get("error", ""),
                }
                records.append(record)
        if not records:
            raise ValueError(
                f"No trial was started within timeout={self.timeout!r} seconds; allow more time."
            )
        table = pd.DataFrame.from_records(records)
        return table.sort_values(
            ["score", "n_rules"], ascending=[False, True], kind="stable", na_position="last"
        ).reset_index(drop=True)

    def _choose(self) -> None:
        best = self.leaderboard_.iloc[0]
        if best["state"] != "complete":
            errors = self.leaderboard_["error"].unique().tolist()
            raise ValueError(f"None of the {len(self.leaderboard_)} trials succeeded: {errors[0]}")
        self.best_name_ = str(best["extractor"])
        self.best_params_ = dict(best["params"])
        self.best_score_ = float(best["score"])

    # --- answering by the winner -------------------------------------------------------------

    def _winner(self) -> Any:
        check_is_fitted(self, "leaderboard_")
        if not hasattr(self, "best_extractor_"):
            raise AttributeError(f"{type(self).__name__} was fitted with refit=False.")
        return self.best_extractor_

    @property
    def rules_(self) -> RuleSet:
        """The winner's rules."""
        return self._winner().rules_

    @property
    def oracle_(self) -> Any:
        """Asks the winner's black box."""
        return self._winner().oracle_

    def predict(self, X: Any) -> np.ndarray:
        """Answer rows by the winner's rules.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels or numbers.
        """
        return self._winner().predict(X)

    @available_if(_can_refit)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class shares of the winner's rule that answers each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        return self._winner().predict_proba(X)

    def covers(self, X: Any) -> np.ndarray:
        """Tell which rows some rule of the winner holds for.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
        """
        return self._winner().covers(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Score the winner's rules by `scoring`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            The target; the black box's answers by default.

        Returns
        -------
        float
            Greater is better.
        """
        winner = self._winner()
        y = winner.oracle_.ask(X) if y is None else y
        return float(get_rule_scorer(self.scoring)(winner, X, y))

    def fidelity(self, X: Any) -> float:
        """Accuracy or R² of the winner's rules against the black box's own answers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; the black box is asked about them.

        Returns
        -------
        float
            At most 1.
        """
        return self._winner().fidelity(X)

    @property
    def n_rules_(self) -> int:
        """Number of the winner's rules."""
        return len(self.rules_)

    @property
    def coverage_(self) -> float:
        """Share of the training rows that some rule of the winner covers."""
        return self._winner().coverage_

    @property
    def completeness_(self) -> float:
        """Share of the domain's volume that some rule of the winner covers."""
        return self._winner().completeness_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "leaderboard_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            inner = get_tags(self.estimator)
        except (AttributeError, TypeError):  # reported by fit, which can explain it
            return tags
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        if tags.classifier_tags is not None:  # whatever the black box can do, rules have one output
            tags.classifier_tags.multi_label = False
        tags.target_tags.required = not is_fitted(self.estimator)
        return tags
