"""ExtractorSearchCV: the best rules of a black box, whatever extractor makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import indexable

from skescore.extractors import is_prefit
from skescore.registry import make_extractor
from skescore.tuning._candidates import Candidates
from skescore.tuning._evaluation import (
    black_box_quality,
    fold_of_all_rows,
    make_folds,
    target_or_answers,
)
from skescore.tuning._goals import Goal
from skescore.tuning._leaderboard import leaderboard
from skescore.tuning._objective import check_measures
from skescore.tuning._progress import SearchProgress
from skescore.tuning._runner import Runner
from skescore.tuning._search_checks import check_search
from skescore.tuning._search_setup import draw_seeds, make_runner, make_studies, spaces_of
from skescore.tuning._studies import quiet_optuna
from skescore.tuning._winner_parts import Winner
from skescore.tuning.spaces._ranges import Space


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
