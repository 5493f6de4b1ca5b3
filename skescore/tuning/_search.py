"""ExtractorSearchCV: the best rules of a black box, whatever extractor makes them."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import optuna
import pandas as pd
from optuna.trial import FrozenTrial
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, indexable

from skescore.extractors import black_box_task, has_categories, is_fitted, is_prefit
from skescore.registry import extractor_spec, make_extractor, suitable_extractors
from skescore.rules import RuleSet
from skescore.scorers import SCORE_SPECS, ScoreSpec
from skescore.scorers._specs import all_weights, find_score, measured_names
from skescore.tuning._allocation import Allocation
from skescore.tuning._candidates import Candidate, Candidates
from skescore.tuning._evaluation import (
    Fold,
    black_box_quality,
    fold_of_all_rows,
    make_folds,
    target_or_answers,
)
from skescore.tuning._objective import ExtractorObjective, Goal, check_measures, check_space
from skescore.tuning._pareto import pareto_front
from skescore.tuning._progress import SearchProgress
from skescore.tuning._runner import FoldEvaluator, Runner
from skescore.tuning._studies import Studies, quiet_optuna
from skescore.tuning._winner import judged, winner, within
from skescore.tuning.spaces._ranges import Space
from skescore.tuning.spaces._spaces import search_space, starting_points
from skescore.tuning.storage._storages import open_storage

# --- what a finished search tells, and how it answers: like the extractor that won it ------------


def _can_refit(search: Any) -> bool:
    return bool(search.refit) and is_classifier(search)


class Winner(MetaEstimatorMixin, BaseEstimator):
    """A finished search: base class of :class:`ExtractorSearchCV`."""

    def _winner(self) -> Any:
        check_is_fitted(self, "leaderboard_")
        if not hasattr(self, "best_extractor_"):
            raise AttributeError(f"{type(self).__name__} was fitted with refit=False.")
        return self.best_extractor_

    @property
    def pareto_front_(self) -> pd.DataFrame:
        """The candidates that no other beats, fewest rules first."""
        check_is_fitted(self, "leaderboard_")
        names = Goal.of(self.scoring, choose_by(self)).objectives
        return pareto_front(self.candidates_, names or ("loss", "n_rules", "incompleteness"))

    @property
    def knee_(self) -> pd.Series:
        """The front's knee."""
        front = self.pareto_front_
        if not len(front):
            raise AttributeError("There is no finished candidate whose measures are all known.")
        return front[front["knee"]].iloc[0]

    def best_for(
        self,
        score: str | None = None,
        *,
        completeness: str = "volume",
        **weights: float,
    ) -> pd.Series:
        """Find the candidate that wins with other weights, without another extraction.

        It is chosen as the search chooses its winner (see `standard_errors`). Use it to try weights
        after a search; :func:`skescore.tuning.winning_regions` tells which weights matter, by the
        means on held-out rows alone.

        Parameters
        ----------
        score : str, optional
            The score, ``"ice"``, ``"fire"`` or ``"q"``; by default the one that has these weights.
        completeness : {"volume", "instances"}, default="volume"
            How completeness is measured, for ICE and Q.
        **weights : float
            ``psi`` of FiRe, ``phi`` and ``rho`` of ICE; 1 where none is given.

        Returns
        -------
        pandas.Series
            Row of :meth:`Candidates.table` with the new ``score``, FiRe and Q being negated;
            :meth:`make_candidate` makes the extractor.

        Raises
        ------
        ValueError
            If weights of both scores are given, none is, or one is out of its range, or there is no
            finished candidate whose measures are all known.
        """
        check_is_fitted(self, "leaderboard_")
        spec = _score_with(weights) if score is None else find_score(score)
        choice: dict[str, Any] = {"score": spec.name, "completeness": completeness}
        choice |= spec.check_weights(weights)
        if not len(self.candidates_):
            raise ValueError(
                "best_for needs a finished candidate whose measures are all known, and there is "
                "none: see the leaderboard for what failed."
            )
        scores = spec.signed(self.candidates_.scores(**choice))
        table = self.candidates_.table()
        table.insert(1, "score", scores.mean(axis=1))
        order = np.lexsort([table["size"], -table["score"]])  # ties go to the smaller, then earlier
        with_all_rows = spec.signed(self.candidates_.scores_with_all_rows(**choice))
        judged_by = judged(scores, with_all_rows)[order]
        size, asked = table["size"].to_numpy(), self.candidates_.means("black_box_rows")
        best = winner(judged_by, size[order], asked[order], self.standard_errors)
        return table.iloc[order[best]]

    def make_candidate(self, row: Any) -> Any:
        """Make the extractor of a row of the leaderboard, the front or :meth:`best_for`.

        Parameters
        ----------
        row : mapping, Series or Candidate
            Holds ``extractor`` and ``params``.

        Returns
        -------
        extractor
            Around the black box, not fitted.
        """
        check_is_fitted(self, "leaderboard_")
        if isinstance(row, Candidate):
            row = {"extractor": row.extractor, "params": row.params}
        candidate = make_extractor(row["extractor"], self.estimator)
        if "random_state" in candidate.get_params(deep=False):
            candidate.set_params(random_state=self._extractor_seed)
        return candidate.set_params(**row["params"])

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
        return float(Goal.of(self.scoring, choose_by(self)).scorer(winner, X, y))

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


def _score_with(weights: Mapping[str, Any]) -> ScoreSpec:
    """The one score that has all of these weights."""
    all_weights(weights)  # names those that no score has
    found = [s for s in SCORE_SPECS.values() if weights and set(weights) <= set(s.weight_names)]
    if len(found) == 1:
        return found[0]
    known = "; ".join(
        f"{' and '.join(spec.weight_names)} of {spec.label}"
        for spec in SCORE_SPECS.values()
        if spec.weights
    )
    raise ValueError(
        f"best_for takes the weights of one score ({known}), got {dict(weights)!r}. Pass its name "
        "as score, or weights of one score alone."
    )


def choose_by(search: Any) -> Any:
    """The score that a search of several measures keeps beside them."""
    return search.refit if isinstance(search.refit, str) or callable(search.refit) else "ice"


# --- what can be found wrong with a search before it starts, and what tells its data from --------


def check_search(search: Any, X: Any) -> tuple[str, tuple[str, ...], Goal]:
    """Raise for parameters of a search that cannot be used; tell what it is about.

    Parameters
    ----------
    search : ExtractorSearchCV
        The search.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.

    Returns
    -------
    task : {"classification", "regression"}
        What the black box does.
    names : tuple of str
        The extractors to try.
    goal : Goal
        What candidates are compared by.

    Raises
    ------
    ValueError, TypeError
        If one cannot be used.
    """
    task = black_box_task(search.estimator)
    names = _extractor_names(search, task, X)
    _check_budget(search, names)
    unknown = set(search.spaces or {}) - set(names)
    if unknown:
        raise ValueError(f"spaces names {sorted(unknown)}, not among extractors.")
    unknown = set(search.studies or {}) - set(names)
    if unknown:
        raise ValueError(f"studies names {sorted(unknown)}, not among extractors.")
    if search.allocation not in ("halving", "even"):
        raise ValueError(f"allocation must be 'halving' or 'even', got {search.allocation!r}.")
    if (
        not isinstance(search.standard_errors, Real)
        or isinstance(search.standard_errors, bool)
        or not 0 <= float(search.standard_errors) < np.inf
    ):
        raise ValueError(
            f"standard_errors must be a number of at least 0, got {search.standard_errors!r}."
        )
    goal = Goal.of(search.scoring, choose_by(search))
    check_measures(search.measures)
    if not goal.objectives and not isinstance(search.refit, bool | np.bool_):
        raise ValueError(
            "refit must be True or False where scoring is a single score, which chooses by "
            f"itself, got {search.refit!r}."
        )
    _check_pruner(search, goal)
    return task, names, goal


def _extractor_names(search: Any, task: str, X: Any) -> tuple[str, ...]:
    if search.extractors is None:
        suitable = suitable_extractors(task, categories=has_categories(X))
        # Each needs a trial; _check_budget complains about a number that is none.
        return suitable[: search.n_trials] if is_count(search.n_trials) else suitable
    if isinstance(search.extractors, str) or not (
        isinstance(search.extractors, Sequence) and len(search.extractors)
    ):
        raise ValueError(
            "extractors must be a sequence of at least one name, such as ('cart', 'gridex'), or "
            f"None for all that suit, got {search.extractors!r}."
        )
    if len(set(search.extractors)) < len(search.extractors):
        raise ValueError(f"extractors must differ from each other, got {search.extractors!r}.")
    for name in search.extractors:
        if task not in (able := extractor_spec(name).tasks):
            raise ValueError(
                f"The extractor {name!r} does {' and '.join(able)} only, but the black box "
                f"{type(search.estimator).__name__} does {task}. Leave it out of extractors."
            )
    return tuple(search.extractors)


def is_count(n_trials: Any) -> bool:
    """Whether this is a number of trials that a search can make."""
    if isinstance(n_trials, bool) or not isinstance(n_trials, int | np.integer):
        return False
    return int(n_trials) > 0


def _check_budget(search: Any, names: tuple[str, ...]) -> None:
    if search.n_trials is None:
        if search.timeout is None:
            raise ValueError("n_trials=None needs a timeout in seconds.")
    elif not is_count(search.n_trials) or search.n_trials < len(names):
        raise ValueError(
            "n_trials must be an integer of at least one per extractor "
            f"({len(names)}), got {search.n_trials!r}."
        )
    if search.timeout is None:
        return
    if not isinstance(search.timeout, Real) or isinstance(search.timeout, bool):
        raise TypeError(f"timeout must be a number of seconds or None, got {search.timeout!r}.")
    if not 0 <= float(search.timeout) < np.inf:
        raise ValueError(
            f"timeout must be a finite number of seconds or None, got {search.timeout!r}."
        )


def _check_pruner(search: Any, goal: Goal) -> None:
    if search.pruner is None:
        return
    if search.pruner != "bound" and not isinstance(search.pruner, optuna.pruners.BasePruner):
        raise TypeError(f"pruner must be 'bound', an Optuna pruner or None, got {search.pruner!r}.")
    if goal.objectives:
        raise ValueError("A pruner compares one score; with several measures pass pruner=None.")
    if search.pruner == "bound" and goal.best_possible is None:
        raise ValueError(
            f"pruner='bound' needs a score whose best value is known (ICE, FiRe or Q), got "
            f"scoring={search.scoring!r}. Pass an Optuna pruner or None."
        )


def digest_of(folds: list[Fold]) -> str:
    """Text that tells other rows, or other splits of them, from these."""
    digest = hashlib.sha256()
    for fold in folds:
        digest.update(np.asarray(fold.test, dtype=np.int64).tobytes())
        digest.update(_content(fold.X_test))
        digest.update(_content(fold.y_test))
    return digest.hexdigest()[:16]


def _content(values: Any) -> bytes:
    array = np.asarray(values)
    # Names are hashed as text: an array of objects holds no more than their addresses.
    return repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()


# --- what a search is made of before its first trial: spaces, seeds, studies and the loop --------


def spaces_of(search: Any, X: Any, y: Any, task: str) -> dict[str, Space]:
    """The caller's space of each extractor, or the one that suits the data.

    Parameters
    ----------
    search : ExtractorSearchCV
        Its parameters have been checked.
    X, y : array-like
        The data.
    task : {"classification", "regression"}
        What the black box does.

    Returns
    -------
    dict of str to space
        By extractor.
    """
    spaces = {}
    for name in search.extractors_:
        space = (search.spaces or {}).get(name)
        spaces[name] = search_space(name, X, y, task=task) if space is None else space
        check_space(spaces[name], make_extractor(name, search.estimator))
    return spaces


def draw_seeds(search: Any) -> tuple[int, int]:
    """Seeds of the extractors and of the samplers.

    Parameters
    ----------
    search : ExtractorSearchCV
        Its ``random_state`` decides.

    Returns
    -------
    of_extractors, of_samplers : int
        The same for all workers that share a storage.
    """
    # Workers that share a storage must make the same rules, also where nobody named a seed.
    shared_seed = search.storage is not None and search.random_state is None
    random = check_random_state(
        zlib.crc32(search.study_name.encode()) if shared_seed else search.random_state
    )
    return int(random.randint(2**31 - 1)), int(random.randint(2**31 - 1))


def make_studies(
    search: Any,
    X: Any,
    y: Any,
    task: str,
    goal: Goal,
    folds: list[Fold],
    spaces: Mapping[str, Space],
    seeds: tuple[int, int],
) -> Studies:
    """A study for each extractor, where the search keeps them.

    Parameters
    ----------
    search : ExtractorSearchCV
        The search.
    X, y : array-like
        The data.
    task : {"classification", "regression"}
        What the black box does.
    goal : Goal
        What candidates are compared by.
    folds : list of Fold
        What they are measured on.
    spaces : dict of str to space
        By extractor.
    seeds : (int, int)
        Of :func:`draw_seeds`.

    Returns
    -------
    Studies
        Opened, with the first hyper-parameters queued.
    """
    seed_of_extractors, seed_of_samplers = seeds
    storage = None if search.storage is None else open_storage(search.storage)
    settings: dict[str, Any] = {}
    if storage is not None:
        settings = {
            "scoring": f"{', '.join(goal.metric_names)} by {goal.shown}",
            "rows": digest_of(folds),
            "black_box": {k: round(v, 6) for k, v in search.black_box_quality_.items()},
            "measures": list(check_measures(search.measures)),
            "seed": seed_of_extractors,
        }
    objectives = {}
    for name, space in spaces.items():
        objectives[name] = ExtractorObjective(
            search.estimator, X, y, extractor=make_extractor(name, search.estimator), space=space,
            measures=search.measures, random_state=seed_of_extractors, _folds=folds, _goal=goal,
        )  # fmt: skip
        objectives[name].name = name
    each = (search.n_trials or 20 * len(objectives)) // len(objectives)
    pruner = None if search.pruner == "bound" else search.pruner
    return Studies(
        objectives, goal, seed=seed_of_samplers, n_startup=max(5, each // 4),
        sampler=search.sampler,
        first={
            name: starting_points(name, space, np.asarray(y), task)
            for name, space in spaces.items()
        },
        pruner=pruner, storage=storage, study_name=search.study_name, settings=settings,
        given=search.studies, about={"task": task, "X": X, "cv": search.cv},
    )  # fmt: skip


def make_runner(search: Any, studies: Studies, folds: list[Fold], all_rows: Fold) -> Runner:
    """The loop that spends the budget of a search.

    Parameters
    ----------
    search : ExtractorSearchCV
        The search.
    studies : Studies
        Where trials are kept.
    folds : list of Fold
        What candidates are measured on.
    all_rows : Fold
        What the rules of those that may win are made of.

    Returns
    -------
    Runner
        Not yet run.
    """
    goal = studies.goal
    return Runner(
        studies,
        Allocation(
            list(studies.objectives),
            search.n_trials,
            search.timeout,
            search.allocation,
            merit="share of the front's hypervolume" if goal.objectives else "best",
        ),
        FoldEvaluator(folds, goal.scorer, check_measures(search.measures), all_rows),
        n_jobs=search.n_jobs,
        pruner=search.pruner,
        callbacks=list(search.callbacks or ()),
    )


# --- every trial of a search in one table, the best first ----------------------------------------

_COSTS = ("seconds", "black_box_calls", "black_box_rows")


def leaderboard(
    trials: Mapping[str, Sequence[FrozenTrial]],
    goal: Goal,
    measures: Sequence[str],
    stopped: Mapping[str, str],
    standard_errors: float,
) -> pd.DataFrame:
    """Put the trials of all extractors into one table.

    Parameters
    ----------
    trials : dict of str to sequence of FrozenTrial
        By extractor, finished.
    goal : Goal
        Decides the order: by score, then by fewer rules, then by extractor and trial.
    measures : sequence of str
        Further columns.
    stopped : dict of str to str
        Why extractors got no more trials.
    standard_errors : float
        How far from the best score the winner may be, see
        :func:`skescore.tuning._winner.winner`.

    Returns
    -------
    pandas.DataFrame
        One row per trial: the winner, then by score; trials without a score are last.
    """
    kept_means = ("score_std", *measured_names())
    records = []
    measured = []
    for name, found in trials.items():
        for trial in found:
            kept = trial.user_attrs
            state = trial.state.name.lower()
            record: dict[str, Any] = {
                "tied": False,
                "extractor": name,
                "score": kept.get("score", np.nan) if state == "complete" else np.nan,
                **{c: kept.get(c, np.nan) for c in (*kept_means, *measures, *_COSTS)},
                "score_on_all_rows": (kept.get("all_rows") or {}).get("score", np.nan),
                "params": dict(trial.params),
                "trial": trial.number,
                "state": state,
                "same_as": kept.get("same_as"),
                "stopped": stopped.get(name, ""),
                "error": kept.get("error", ""),
            }
            records.append(record)
            measured.append((kept.get("folds", ()), kept.get("all_rows")))
    columns = [
        "extractor", "score", *kept_means, *measures, *_COSTS, "score_on_all_rows", "tied",
        "params", "trial", "state", "same_as", "stopped", "error",
    ]  # fmt: skip
    table = pd.DataFrame(records, columns=columns)
    # As objects, or the number of a trial would turn from 3 into 3.0.
    table["same_as"] = pd.Series([record["same_as"] for record in records], dtype=object)
    if not len(table):
        return table
    table = table.sort_values(
        ["score", "n_rules"], ascending=[False, True], kind="stable", na_position="last"
    )
    if goal.objectives:
        # A candidate may have all its measures and yet no score.
        table = table.sort_values("state", key=lambda s: s != "complete", kind="stable")
    else:
        done = table.index[table["score"].notna()]
        if len(done):
            scores = judged(
                np.array([[fold["score"] for fold in measured[n][0]] for n in done], dtype=float),
                np.array([goal.with_all_rows(*measured[n]) for n in done]),
            )
            size = table.loc[done, "size"].to_numpy(float)
            table.loc[done[within(scores, standard_errors)], "tied"] = True
            asked = table.loc[done, "black_box_rows"].to_numpy(float)
            first = done[winner(scores, size, asked, standard_errors)]
            table = table.loc[[first, *table.index.drop(first)]]
    return table.reset_index(drop=True)


# --- ExtractorSearchCV: the best rules of a black box, whatever extractor makes them -------------


class ExtractorSearchCV(Winner):
    """Search extractors and their hyper-parameters for the rules that score best.

    One Optuna study per extractor; candidates are compared by cross-validation on held-out rows,
    and the winner is refitted on all rows. The black box is fitted once per fold, once on all rows
    and once for the winner, and asked once about the same rows. Extractors that cannot catch up get
    no more trials, and the leaderboard says why. Whatever the search was after, the whole trade-off
    between loss, size and completeness can be looked at, and other weights tried, without another
    extraction.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor; a fitted one in
        ``FrozenEstimator``.
    extractors : sequence of str, optional
        Names of :func:`skescore.registry.extractor_names`: built-in ones, PSyKE's own such as
        ``"psyke:gridex"``, and those that installed packages register. None tries all built-in
        ones that suit the task and the columns; the first `n_trials` of them if there are more.
    scoring : str, callable or sequence of str, default="ice"
        ``"ice"``, ``"neg_fire"``, ``"neg_q"`` or a scorer; greater is better. Several names out of
        ``"loss"``, ``"loss_q"``, ``"n_rules"``, ``"size"``, ``"incompleteness"`` and
        ``"incompleteness_instances"`` are minimised together, for the whole front.
    n_trials : int or None, default=50
        Trials in all; at least one per extractor. With a storage those that are there already
        count. None needs a `timeout`.
    timeout : float or None, default=None
        Seconds after which no further trial starts. With it, results depend on the machine's
        speed.
    cv : int, splitter or iterable, default=5
        Cross-validation, as in scikit-learn.
    spaces : dict of str to dict, optional
        Search space per extractor, in place of :func:`search_space`.
    measures : sequence of str or callable, default=()
        Further scorers that become columns of the leaderboard, such as ``"mean_rule_c2"``.
    allocation : {"halving", "even"}, default="halving"
        ``"halving"`` divides the trials in rounds, each among half as many extractors as the one
        before, and stops those whose best parts together could not beat the leader on held-out
        rows. ``"even"`` gives each the same number. With fewer than two trials per extractor, or no
        more than two, both are the same.
    standard_errors : float, default=0.5
        How far below the best the winner may be, in standard errors of the differences on the
        folds: of the candidates within, which are as good as the best as far as one can tell, the
        one with the fewest rules wins, then the best. 0 lets the best win, lucky or not.
        Candidates are judged by held-out rows and by the rules that they extract from all rows, on
        these rows (see Notes), so that the winner's `score` may be below that of others.
    refit : bool, str or callable, default=True
        Fit the best extractor on all rows; needed to predict. With several measures the best is
        the knee of the front, or the one with the best score of this name.
    n_jobs : int or None, default=None
        Processes that evaluate candidates at the same time. Results do not depend on it, unless
        several searches share a storage.
    random_state : int, RandomState instance or None, default=None
        Seed of the samplers and extractors. Pass an int for the same result on every run.
    sampler : optuna sampler, optional
        Copied for each study; by default a tree-structured Parzen estimator.
    pruner : optuna pruner or "bound", optional
        Stops a trial between two folds. ``"bound"`` stops one only if flawless rules on the other
        folds could not make its held-out mean the best; it needs ICE, FiRe or Q as `scoring`. By
        default every trial is seen through, as stopped ones are missing from the trade-off.
    storage : str, path or optuna storage, optional
        Where trials are kept, see :func:`skescore.tuning.open_storage`: a search that was broken
        off goes on, and several processes or machines that call `fit` with the same data share
        the work. By default in memory.
    study_name : str, default="skescore"
        Studies in a storage are called after it and their extractor: ``"skescore/cart"``.
    studies : dict of str to optuna.Study, optional
        Studies of your own by extractor, which keep their samplers and pruners. (Optuna's studies
        have a pruner by default.)
    callbacks : sequence of callable, optional
        Called as ``callback(study, trial)`` after every trial; ``study.stop()`` stops the trials
        of that extractor.
    progress_bar : bool, default=False
        Show a bar on a terminal or in a notebook.

    Attributes
    ----------
    best_extractor_ : extractor
        The winner, fitted on all rows. Only with `refit`.
    best_name_ : str
        Its registered name.
    best_params_ : dict
        Its hyper-parameters.
    best_score_ : float
        Its mean cross-validated score.
    rules_ : RuleSet
        Its rules.
    extractors_ : tuple of str
        The extractors that were tried.
    leaderboard_ : pandas.DataFrame
        One row per trial, the winner, then the best scores: extractor, score and its spread over
        the folds, performance, loss, n_rules, both completenesses, further measures, seconds of an
        extraction and questions (means over the folds), score of the rules of all rows on these
        rows, whether it is as good as the best as far as one can tell, parameters, trial number,
        state, number of the trial that it repeats, why the extractor was stopped, and error.
    pareto_front_ : pandas.DataFrame
        The candidates that no other beats in loss, rules and incompleteness (or in the measures of
        `scoring`), with the knee marked.
    knee_ : pandas.Series
        The front's knee: a compromise as long as no weights are known.
    candidates_ : Candidates
        All finished candidates with what was measured on each fold.
    stopped_ : dict of str to str
        Extractors that got fewer trials than others, and why.
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
    first, then the earlier trial. Rules of all rows are made of those candidates alone that no
    earlier one equals on every fold in all that scores are made of; others do not win.

    What was measured on the held-out rows of a fold weighs 0.632, the same of the rules of all rows
    0.368, as in the .632 estimator (Efron, Estimating the error rate of a prediction rule, 1983):
    held-out rows alone judge with much noise where rows are few. Of ICE, FiRe and Q it is what they
    are made of that is weighed and then scored; where the rules of a fold are more or fewer than
    those of all rows, the lower one counts of this and of the weighed mean of both scores. Other
    scores are weighed themselves.

    A black box that is handed over fitted may have learned the labels of held-out rows. Extractors
    that ask it much (Trepan, REAL, ITER) then look better than they are: pass it unfitted, or no y,
    so that fidelity is scored.

    An interrupt (Ctrl-C) ends the search, keeps what was finished, refits the best of it and is
    raised again: in a notebook the search can be used as if it had ended.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.tuning import ExtractorSearchCV
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> search = ExtractorSearchCV(
    ...     KNeighborsClassifier(9), extractors=("cart", "gridex"), n_trials=10, random_state=0
    ... ).fit(X, y)
    >>> len(search.rules_), search.best_score_ > 0.97
    (3, True)
    >>> front = search.pareto_front_
    >>> bool(front["loss"].is_monotonic_decreasing)  # more rules, fewer errors
    True
    >>> search.best_for(psi=1)["extractor"] in ("cart", "gridex")
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        extractors: Sequence[str] | None = None,
        scoring: Any = "ice",
        n_trials: int | None = 50,
        timeout: float | None = None,
        cv: Any = 5,
        spaces: dict[str, Space] | None = None,
        measures: Sequence[Any] = (),
        allocation: str = "halving",
        standard_errors: float = 0.5,
        refit: Any = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        sampler: Any = None,
        pruner: Any = None,
        storage: Any = None,
        study_name: str = "skescore",
        studies: Mapping[str, optuna.Study] | None = None,
        callbacks: Sequence[Callable[..., None]] | None = None,
        progress_bar: bool = False,
    ) -> None:
        self.estimator = estimator
        self.extractors = extractors
        self.scoring = scoring
        self.n_trials = n_trials
        self.timeout = timeout
        self.cv = cv
        self.spaces = spaces
        self.measures = measures
        self.allocation = allocation
        self.standard_errors = standard_errors
        self.refit = refit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.sampler = sampler
        self.pruner = pruner
        self.storage = storage
        self.study_name = study_name
        self.studies = studies
        self.callbacks = callbacks
        self.progress_bar = progress_bar

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
            If input or parameters cannot be used, no trial succeeded, or the storage holds another
            search of that name.
        KeyboardInterrupt
            If it was interrupted; the attributes then tell what was found so far.
        """
        for name in [n for n in vars(self) if n.endswith("_") and not n.endswith("__")]:
            delattr(self, name)  # nothing of an earlier fit may answer for this one
        task, self.extractors_, goal = check_search(self, X)
        # The winner's class checks the rows once more; a clear error should not wait for it, nor
        # for an extractor that cannot read columns of names.
        for name in self.extractors_:
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
        spaces = spaces_of(self, X, y, task)
        begin = time.perf_counter()
        folds = make_folds(self.estimator, X, y, self.cv, task, fitted=fitted, groups=groups)
        self.black_box_quality_ = black_box_quality(folds, task)
        all_rows = fold_of_all_rows(self.estimator, X, y, fitted=fitted)
        interrupt = None
        with quiet_optuna():
            self._extractor_seed, sampler_seed = draw_seeds(self)
            studies = make_studies(
                self, X, y, task, goal, folds, spaces, (self._extractor_seed, sampler_seed)
            )
            runner = make_runner(self, studies, folds, all_rows)
            bar = SearchProgress(self.n_trials, goal.name, shown=self.progress_bar)
            runner.callbacks.append(bar)
            try:
                with bar:
                    runner.run()
            except KeyboardInterrupt as error:
                interrupt = error
            self.search_seconds_ = time.perf_counter() - begin
            self._keep(runner, goal, interrupted=interrupt is not None)
        if interrupt is not None and not (self.leaderboard_["state"] == "complete").any():
            raise interrupt  # there is nothing to choose from
        self._choose(goal)
        if self.refit:
            if checked is None:  # the black box as it is
                self.best_extractor_ = self.make_candidate(self.leaderboard_.iloc[0]).fit(X)
            else:
                self.best_extractor_ = self._winning_candidate(clone(self.estimator)).fit(X, y)
            if task == "classification":
                self.classes_ = self.best_extractor_.classes_
        if interrupt is not None:
            raise interrupt
        return self

    def _winning_candidate(self, black_box: Any) -> Any:
        return self.make_candidate(self.leaderboard_.iloc[0]).set_params(estimator=black_box)

    # --- after the search --------------------------------------------------------------------

    def _keep(self, runner: Runner, goal: Goal, *, interrupted: bool) -> None:
        studies = runner.studies
        studies.read()
        self.studies_ = studies.studies
        trials = {
            name: [trial for trial in studies.counted(name) if trial.state.is_finished()]
            for name in self.studies_
        }
        self.stopped_ = runner.allocation.stopped
        self.candidates_ = Candidates.from_trials(trials)
        self.leaderboard_ = leaderboard(
            trials, goal, list(check_measures(self.measures)), self.stopped_, self.standard_errors
        )
        if not len(self.leaderboard_) and not interrupted:
            raise ValueError(
                f"No trial was started within timeout={self.timeout!r} seconds; allow more time."
            )

    def _choose(self, goal: Goal) -> None:
        board = self.leaderboard_
        if board.iloc[0]["state"] != "complete":
            errors = board["error"].unique().tolist()
            raise ValueError(f"None of the {len(board)} trials succeeded: {errors[0]}")
        front = self.pareto_front_
        if goal.objectives and isinstance(self.refit, bool | np.bool_) and len(front):
            best = self.knee_
            first = (board["extractor"] == best["extractor"]) & (board["trial"] == best["trial"])
            board = pd.concat([board[first], board[~first]], ignore_index=True)
            self.leaderboard_ = board
        best = board.iloc[0]
        self.best_name_ = str(best["extractor"])
        self.best_params_ = dict(best["params"])
        self.best_score_ = float(best["score"])
