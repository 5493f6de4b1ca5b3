"""Search for the extractor and hyperparameters with the best rules."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
from joblib import effective_n_jobs, parallel_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import TimeSeriesSplit
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted

from skescore._processes import SEARCH_MODULES, start_helpers
from skescore._validation import (
    check_choice,
    check_instance,
    check_integer,
    check_is_table,
    check_number,
)
from skescore._views import find_view
from skescore.black_boxes import black_box_task, is_fitted, is_prefit
from skescore.constraints import Constraints, RejectedRulesError, check_feasible
from skescore.extractors import has_categories
from skescore.registry import EXTRACTORS, extractor_spec, make_extractor, suitable_extractors
from skescore.rules import RuleSet, convert_rows
from skescore.scorers import (
    SCORE_SPECS,
    FidelityScorer,
    PerformanceScorer,
    ScoreSpec,
    all_weights,
    evaluate_rules,
    find_score,
    limited_quantities,
)
from skescore.suspicions import ResultFacts, SuspiciousDataWarning, TableFacts, find_suspicions
from skescore.tuning._candidates import Candidate, Candidates, SearchLimits, pareto_front
from skescore.tuning._folds import (
    REPAIRED,
    CountableSource,
    Fold,
    HeldOutExtraction,
    SearchableSource,
    SearchData,
    black_box_quality,
    evaluate_on_fold,
    mean_of,
)
from skescore.tuning._objective import (
    ExtractorObjective,
    SearchObjective,
    check_measures,
    check_scoring,
    further_scorers,
    spec_of,
)
from skescore.tuning._selection import (
    N_FINALISTS,
    READABLE_RULES,
    Alternative,
    choose_alternatives,
    choose_winner,
    compare_finalists,
    find_finalists,
    is_constant,
    leaderboard,
    make_alternatives,
    repeated_cv,
    selection_scores,
    tree_path,
)
from skescore.tuning.runner import (
    Allocation,
    FoldEvaluator,
    Runner,
    SearchCallback,
    SearchProgress,
    Studies,
    StudySettings,
    Workers,
    quiet_optuna,
)
from skescore.tuning.spaces import Space, check_space, extractor_name, search_space, starting_points
from skescore.tuning.storage import open_storage, search_identity

#: Largest number of rows that are permuted to find features that the black box does not use.
MAX_PERMUTED_ROWS = 2000
#: Largest number of candidates that may be tried instead of a winner whose rules use such features.
_MAX_REPLACEMENTS = 5
#: Generators of query rows for the trees that every search compares.
TREE_SAMPLINGS = (None, "permute")
#: Generators for regression if the rules are compared with the black box. The mean predictions of
#: leaves need query rows near the data (``benchmarks/arena/fidelity_regression.md``).
NEAR_TREE_SAMPLINGS = (None, "permute-mixed")
#: Largest share of the time limit for choosing the CART trees that every search compares.
_SHARE_OF_TREE_PATH = 0.5
#: Sizes of the trees that every search under constraints compares.
_CONSTRAINED_LEAVES = (2, 3, 5, 8, 12)
#: Extractors that make one linear equation of all rows with these hyperparameters.
_EQUATIONS: dict[str, dict[str, Any]] = {"gridrex": {"n_slices": 1, "max_terms": None}}
#: Columns in which candidates with the same rules agree.
_OUTCOME_COLUMNS = ["extractor", "score", "n_rules", "completeness_volume"]


def _can_predict_proba(search: ExtractorSearchCV) -> bool:
    return bool(search.refit) and is_classifier(search)


class ExtractorSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Search extractors and their hyperparameters for the rules with the best score.

    Each extractor has an Optuna study. Candidates are compared by cross-validation on held-out
    rows, and the winner is refitted on all rows. The black box is fitted once per fold and once on
    all rows, and its predictions are cached. Extractors that cannot catch up with the leader get no
    more trials; the leaderboard states the reason. After a search for any score, the trade-off
    between loss, size and completeness is available, and other weights can be tried without
    extracting rules again.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor. Wrap a fitted model in
        ``FrozenEstimator``.
    extractors : sequence of str, classes or extractors, optional
        Names of :func:`skescore.registry.extractor_names`, such as ``"cart"`` or
        ``"psyke:gridex"``; extractor classes; or extractors. A class has the search space of its
        registered name or of its method ``search_space(n_rows, y, task)``. For an extractor,
        parameters that differ from the defaults are kept, and the others are searched. None tries
        the built-in extractors that suit the task and the table, at most `n_trials` of them; see
        :func:`skescore.registry.suitable_extractors`.
    scoring : str, callable or sequence of str, default="ice"
        ``"ice"``, ``"neg_fire"``, ``"neg_q"`` or a scorer; greater is better. A sequence of names
        starts a multi-objective search for the Pareto front, which minimizes all of them. Valid
        names are ``"loss"``, ``"loss_q"``, ``"n_rules"``, ``"size"``, ``"incompleteness"``,
        ``"incompleteness_instances"``, ``"instability"`` (one minus the similarity of the rules of
        two halves of the rows), ``"group_gap:COLUMN"`` (the largest difference between the groups
        of a column in the predictions) and the losses of :data:`skescore.scorers.SET_MEASURES`.
    n_trials : int or None, default=20
        Total number of trials, at least one per extractor, including trials that the storage
        already contains. None requires a `timeout`. In addition, trees of 1 to 32 leaves are
        compared if ``"cart"`` is among the extractors, and one linear equation if ``"gridrex"`` is.
    timeout : float or None, default=None
        Seconds after which no further trial starts, counted after the black boxes are fitted. The
        comparison of CART's trees is included; fitting the winner is not.
        Running trials are stopped and fail with an
        :class:`skescore.extractors.ExtractionTimeoutError`. If ``"cart"`` is among the extractors,
        one tree is evaluated even if this takes longer. With a timeout, results depend on the speed
        of the machine.
    max_queries : int or None, default=None
        Number of rows for which candidates may query the black box. A candidate that needs more
        fails with a :class:`skescore.extractors.QueryLimitError`, and no further candidate starts.
        One tree is always evaluated; for a fitted black box, this needs about 2,000 rows per fold,
        on which fidelity is measured. Queries for the rules of the winner are not counted. With a
        limit, `n_jobs` is ignored, because several processes share no predictions.
    cv : int, splitter or iterable, default=5
        Cross-validation, as in scikit-learn. If :meth:`fit` gets groups, an int stands for folds
        that keep the rows of a group together (``StratifiedGroupKFold``, ``GroupKFold``). For rows
        in chronological order, pass a ``TimeSeriesSplit``.
    spaces : dict of str to dict, optional
        Search space per extractor, instead of the result of :func:`search_space`.
    measures : sequence of str or callable, default=()
        Further scorers that become columns of the leaderboard, such as ``"mean_rule_c2"``.
    allocation : {"halving", "even"}, default="halving"
        ``"halving"`` divides the trials into rounds, each with half as many extractors as the round
        before. An extractor is also stopped if a combination of the best loss, size and
        completeness of its trials would not beat the leader on held-out rows. ``"even"`` gives each
        extractor the same number of trials. With at most two trials per extractor, both are the
        same.
    standard_errors : float, optional
        Largest distance of the winner from the best candidate, in standard errors of the
        differences on the folds. Of the candidates within this distance, the one with the fewest
        rules wins; ties go to the best score. With 0, the best candidate wins, even if its lead is
        due to chance. The default is 0.5, or 0 if `max_rules` is set and `scoring` measures only
        predictions. Candidates are compared on held-out rows and by the rules extracted from all
        rows (see Notes), so the winner's `score` may be lower than other scores.
    n_repeats : int, default=1
        Number of repetitions of the cross-validation, with other folds, that compare the finalists.
        Finalists are the winner and up to two candidates with different results that are within one
        standard error of the best. All folds then determine the winner: the smallest finalist
        within `standard_errors` of the best. Among equally small finalists within half of that
        distance, the one that agrees most with the black box wins, then the one with the best
        score. Each repetition fits `estimator` once per fold, unless it is already fitted. There
        are no repetitions with groups, with several names in `scoring`, with a splitter as `cv`
        that does not shuffle, or if trials use a sample of the rows.
    class_weight : "balanced" or dict, optional
        Weights of classes, as in scikit-learn, multiplied by the `sample_weight` of :meth:`fit`.
        ``"balanced"`` gives every class the same total weight if no `sample_weight` is passed.
    features : sequence of str or int, optional
        Features that the rules of all extractors may use, by name or index. The black box always
        gets all columns.
    constraints : Constraints, optional
        Constraints that the rules must satisfy, see :class:`skescore.constraints.Constraints`.
        Extractors respect them while learning, or their rules are repaired; ``n_repaired`` in the
        leaderboard is the mean number of constraints that needed a repair. Candidates whose rules
        cannot be repaired fail. The winner satisfies all constraints on all rows. A `min_support`
        in rows refers to all rows; on a fold it becomes the same share of the fold's rows.
    max_rows : int or None, default=5_000
        Largest number of rows for trials. If there are more, trials use a random sample, stratified
        by class. The rules of the best three candidates are then extracted from all rows, and the
        candidate with the best score on all rows wins. With None, or with fixed splits as `cv`,
        trials use all rows.
    sample_rows : int, default=20_000
        Number of rows to draw if :meth:`fit` gets a data source; ignored for other input. The drawn
        rows are held in memory, and `max_rows` applies to them.
    max_rules : float, optional
        Largest number of rules that the winner may have. The default sampler treats it as a
        constraint. If `scoring` measures only predictions and ignores the size, trees with this
        number of leaves are tried first. If no candidate satisfies the limit, the best of all
        candidates wins, with a warning.
    min_performance : float, optional
        Smallest mean performance on held-out rows that the winner may have: the leaderboard's
        column ``performance``. It is treated like `max_rules`.
    min_fidelity : float, optional
        Smallest mean agreement with the black box that the winner may have: the leaderboard's
        column ``fidelity``. It is treated like `max_rules`.
    refit : bool, str or callable, default=True
        Whether to fit the best extractor on all rows, which is required to predict. If `scoring`
        has several names, True selects the knee of the front, and a score (str or callable)
        selects the candidate with the best value of that score.
    n_jobs : int or None, default=None
        Number of processes that evaluate candidates. Results do not depend on it, unless several
        searches share a storage.
    random_state : int, RandomState instance or None, default=None
        Seed of the samplers and extractors. Pass an int for reproducible results.
    sampler : optuna sampler, optional
        Sampler that is copied for each study; by default a tree-structured Parzen estimator.
    pruner : {"race", "bound"}, optuna pruner or None, default="race"
        Rule for pruning a trial between two folds. ``"race"`` prunes a trial if another candidate
        has a better score on the folds so far, and on none of them a larger loss, more rules or
        less completeness. After the first fold, the loss of the other candidate must be smaller by
        two standard errors; in regression, no trial is pruned at this point. A pruned trial is not
        part of the trade-off. ``"bound"`` prunes a trial only if its mean score could not become
        the best even with perfect rules on the remaining folds; it requires ICE, FiRe or Q as
        `scoring`. None prunes no trial.
    storage : str, path or optuna storage, optional
        Storage of the trials, see :func:`skescore.tuning.open_storage`. An interrupted search is
        resumed, and several processes or machines that call `fit` with the same data share the
        work. By default trials are in memory.
    study_name : str, default="skescore"
        Prefix of the names of studies in a storage, such as ``"skescore/cart"``.
    studies : dict of str to optuna.Study, optional
        Your own studies by extractor. They keep their samplers and pruners; a study that Optuna
        creates has a pruner by default.
    callbacks : callable or sequence of callable, optional
        Functions ``callback(study, trial)`` to call after every trial; ``study.stop()`` ends the
        trials of that extractor. A :class:`skescore.tuning.SearchCallback` is also called when the
        search begins to fit black boxes, to compare candidates and to extract the final rules.
    progress_bar : bool, default=False
        Whether to show a progress bar on a terminal or in a notebook, and lines elsewhere.
    keep_folds : bool, default=False
        Whether to keep the folds with their fitted black boxes in memory. Otherwise,
        :meth:`held_out_scores`, certificates and baselines fit the black boxes again.
    fit_n_jobs : int or None, default=None
        Number of threads for fitting a black box whose own `n_jobs` is None; by default `n_jobs`.

    Attributes
    ----------
    best_extractor_ : extractor
        The winner, fitted on all rows. Only with `refit`.
    best_estimator_ : extractor
        The winner, with the name that scikit-learn's searches use.
    best_index_ : int
        Row of the winner in ``leaderboard_`` and ``cv_results_``: always 0.
    best_name_ : str
        Registered name of the winner.
    best_params_ : dict
        Hyperparameters of the winner.
    best_score_ : float
        Mean cross-validated score of the winner.
    standard_errors_ : float
        Value of `standard_errors` that the search used.
    picked_ : bool
        True if the user picked the winner with :meth:`choose`.
    rules_ : RuleSet
        Rules of the winner.
    alternatives_ : tuple of Alternative
        Up to three rule lists to choose from: the best by `scoring`, the shortest whose correctness
        is within one standard error of the best, and the most faithful candidate with at most
        `max_rules` rules (by default 8, or the number of classes if that is more). Each states its
        correctness on held-out rows, its fidelity on held-out or generated rows, and the gain from
        more rules.
    extractors_ : tuple of str
        The extractors that were tried.
    n_rows_sampled_ : int or None
        Number of rows in the sample for trials; None if they used all rows. See `max_rows`.
    finalists_ : pandas.DataFrame or None
        Finalists compared on all rows of a data source, see :meth:`compare_on_source`. The
        attribute exists only if :meth:`fit` got a source and `refit` is set.
    suspicions_ : tuple of Suspicion
        Suspicious data and results, the most serious first, which :meth:`fit` also reports as
        warnings of the category :class:`skescore.suspicions.SuspiciousDataWarning`.
    data_ : SearchData
        Rows, target, groups and weights of :meth:`fit`, which :meth:`choose`,
        :meth:`held_out_scores`, reports and certificates use. The rows are referenced, not copied;
        a pickled search contains them.
    leaderboard_ : pandas.DataFrame
        One row per trial: the winner first, the others in order of the score. Columns: extractor;
        score and its standard deviation over the folds; means of the measured quantities and of
        `measures` over the folds; score of the rules extracted from all rows, on these rows; score
        of a finalist over all folds, including the repetitions; whether the candidate is within
        `standard_errors` of the best; parameters; trial number; state; number of an earlier trial
        with the same parameters; reason why the extractor was stopped; and error.
    cv_results_ : dict of str to array
        The leaderboard with the names that scikit-learn's searches use: ``params``,
        ``param_extractor``, ``param_...``, ``mean_test_score``, ``std_test_score``,
        ``split0_test_score`` ..., ``rank_test_score`` (by score alone) and ``mean_fit_time``, in
        the same order.
    extractor_seed_ : int
        Seed of the extractors.
    pareto_front_ : pandas.DataFrame
        The best trade-offs between loss, rules and incompleteness (or the measures of `scoring`),
        with the knee marked.
    knee_ : pandas.Series
        The knee of the front: a compromise if no weights are known.
    candidates_ : Candidates
        All finished candidates with their results on each fold.
    stopped_ : dict of str to str
        Reason why an extractor got fewer trials than others, by extractor.
    studies_ : dict of str to optuna.Study
        The studies by extractor.
    black_box_quality_ : dict of str to float
        Held-out performance of the black box; without `y`, it is perfect by definition.
    search_seconds_ : float
        Wall time of the search in seconds, without the refit.
    query_cost_ : QueryCost
        Number of rows that the black box predicted for the trees, trials and finalists of the
        search, and the time for these predictions. Rows that several candidates query count once
        per process. With several processes, both numbers depend on the speed of the processes.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Classification only.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Among equally good candidates, the one with fewer rules wins, then the one whose extractor comes
    first, then the earlier trial. Rules are extracted from all rows only for candidates that can
    win. A candidate cannot win if an earlier one is at least as good on every fold in all parts of
    the score.

    Measures on the held-out rows of a fold have the weight 0.632, and those of the rules extracted
    from all rows have the weight 0.368, as in the .632 estimator (Efron, Estimating the error rate
    of a prediction rule, 1983), because measures on held-out rows are noisy in small tables. For
    ICE, FiRe and Q, the score is computed from the weighted means of its parts. If the rules of a
    fold and the rules of all rows differ in number, the worse of two values is used: this score, or
    the weighted mean of the two scores. For other scores, the weighted mean is always used.

    A black box that was fitted before the search may have seen the labels of held-out rows.
    Extractors with many queries (Trepan, REAL, ITER) then look better than they are. To avoid this,
    pass an unfitted black box, or omit `y` to score fidelity.

    After an interrupt (Ctrl-C), the search refits the best of the finished candidates and raises
    the interrupt again. In a notebook, the search can then be used as if it had ended normally.

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

    leaderboard_: pd.DataFrame

    def __init__(
        self,
        estimator: Any,
        *,
        extractors: Sequence[Any] | None = None,
        scoring: Any = "ice",
        n_trials: int | None = 20,
        timeout: float | None = None,
        max_queries: int | None = None,
        cv: Any = 5,
        spaces: dict[str, Space] | None = None,
        measures: Sequence[Any] = (),
        allocation: str = "halving",
        standard_errors: float | None = None,
        n_repeats: int = 1,
        class_weight: Any = None,
        features: Any = None,
        constraints: Constraints | None = None,
        max_rows: int | None = 5_000,
        sample_rows: int = 20_000,
        max_rules: float | None = None,
        min_performance: float | None = None,
        min_fidelity: float | None = None,
        refit: Any = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        sampler: Any = None,
        pruner: Any = "race",
        storage: Any = None,
        study_name: str = "skescore",
        studies: Mapping[str, optuna.Study] | None = None,
        callbacks: Callable[..., None] | Sequence[Callable[..., None]] | None = None,
        progress_bar: bool = False,
        keep_folds: bool = False,
        fit_n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.extractors = extractors
        self.scoring = scoring
        self.n_trials = n_trials
        self.timeout = timeout
        self.max_queries = max_queries
        self.cv = cv
        self.spaces = spaces
        self.measures = measures
        self.allocation = allocation
        self.standard_errors = standard_errors
        self.n_repeats = n_repeats
        self.class_weight = class_weight
        self.features = features
        self.constraints = constraints
        self.max_rows = max_rows
        self.sample_rows = sample_rows
        self.max_rules = max_rules
        self.min_performance = min_performance
        self.min_fidelity = min_fidelity
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
        self.keep_folds = keep_folds
        self.fit_n_jobs = fit_n_jobs

    def fit(
        self, X: Any, y: Any = None, *, groups: Any = None, sample_weight: Any = None
    ) -> ExtractorSearchCV:
        """Search, then refit the winner on all rows.

        From a data source, the search draws a sample of `sample_rows` rows. The winner is then the
        finalist with the best score on all rows of the source, see :meth:`compare_on_source`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features), or DataSource
            The rows; or a :class:`skescore.sources.DataSource` with a target, whose rows need not
            fit into memory. Its columns hold labels and weights, so the other parameters must be
            None.
        y : array-like of shape (n_rows,), optional
            The target. Without it, the black box must be fitted, and its predictions are the target
            (fidelity).
        groups : array-like of shape (n_rows,), optional
            Groups of rows that belong together, such as the patient of each row. All rows of a
            group are in the same fold. A black box that is a ``GridSearchCV`` or
            ``RandomizedSearchCV`` gets the groups as well. With metadata routing enabled, the
            splitter of `cv` gets groups that an outer estimator, such as a pipeline, passes.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows for the black box, for extraction (as repeated rows) and for
            measures on held-out rows. A user's scorer gets them if it has a parameter
            `sample_weight`.

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
            If the search was interrupted; the attributes hold the results so far.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skescore.sources import DataSource
        >>> from skescore.tuning import ExtractorSearchCV
        >>> day = pd.DataFrame({"length": range(500), "size": ["small"] * 300 + ["large"] * 200})
        >>> source = DataSource([day, day], target="size")
        >>> search = ExtractorSearchCV(
        ...     DecisionTreeClassifier(random_state=0), extractors=["cart"], n_trials=3, cv=2,
        ...     sample_rows=200, random_state=0,
        ... ).fit(source)
        >>> len(search.data_), len(search.rules_)
        (200, 2)
        >>> source.count_rows(search.rules_)
        RuleCounts(2 rules, 1000 rows)
        """
        if isinstance(X, SearchableSource):
            return self._fit_source(X, y=y, groups=groups, sample_weight=sample_weight)
        check_is_table(X)
        for name in [n for n in vars(self) if n.endswith("_") and not n.endswith("__")]:
            delattr(self, name)  # results of an earlier fit must not remain
        for name in ("_alternatives", "_final_black_box"):
            self.__dict__.pop(name, None)
        task, X = black_box_task(self.estimator), convert_rows(X)
        self._extractors = self._check_extractors(task, X)
        self.extractors_ = tuple(self._extractors)
        objective = self._check_parameters()
        callbacks = self._all_callbacks(objective)
        self._announce("rows", callbacks)
        self.data_ = self._prepare_data(X, y, groups, sample_weight, self._check_rows(X, y, task))
        table_facts = TableFacts.from_arrays(
            self.data_.X,
            self.data_.y,
            task,
            groups=groups,
            is_shuffled=not isinstance(self.cv, TimeSeriesSplit),
        )
        self.suspicions_ = tuple(find_suspicions(table_facts))
        sampled_rows = self._draw_trial_sample(self.data_.target, task)
        self.n_rows_sampled_ = None if sampled_rows is None else len(sampled_rows)
        data = self.data_.take(sampled_rows)
        with callbacks[-1]:
            runner, all_rows, interrupt = self._search(data, task, objective, callbacks)
        if interrupt is not None and not (self.leaderboard_["state"] == "complete").any():
            raise interrupt
        self._choose_winner(objective)
        if interrupt is None and sampled_rows is None:
            self._compare_finalists_on_repeated_folds(data, runner, objective, callbacks)
        self.picked_ = False
        if sampled_rows is not None and (self.refit or interrupt is None):
            self._announce("all_rows", callbacks)
            with self._n_jobs_context():
                all_rows = self.data_.fold_of_all_rows()
        self._announce("winner", callbacks)
        if sampled_rows is not None and interrupt is None:
            self._compare_finalists_on_all_rows(all_rows)
        if self.refit:
            # The black box of `all_rows` was fitted on the same rows.
            self._refit(None if self.data_.is_fitted else all_rows.black_box)
            self._final_black_box = all_rows.black_box if self.keep_folds else None
            self._warn_of_constant()
            result_facts = self._result_facts(task, table_facts.target_name, objective)
            self.suspicions_ = (*self.suspicions_, *find_suspicions(result_facts))
        for suspicion in self.suspicions_:
            warnings.warn(str(suspicion), SuspiciousDataWarning, stacklevel=2)
        if interrupt is not None:
            raise interrupt
        return self

    def _all_callbacks(self, objective: SearchObjective) -> list[Any]:
        """Return the user's callbacks and the progress bar."""
        callbacks = [self.callbacks] if callable(self.callbacks) else self.callbacks or ()
        bar = SearchProgress(self.n_trials, objective.name, enabled=self.progress_bar)
        return [*callbacks, bar]

    def _announce(self, stage: str, callbacks: Sequence[Any]) -> None:
        """Report the beginning of a stage to the callbacks that follow all stages."""
        for callback in callbacks:
            if isinstance(callback, SearchCallback):
                callback.on_stage(self, stage)

    def _check_constraints(self, all_rows: Fold, task: str) -> None:
        """Raise an error if the constraints contradict each other on the rows of the search."""
        if self.constraints is None:
            return
        X, labels = all_rows.X_train, all_rows.black_box.predict(all_rows.X_train)
        names = getattr(self, "feature_names_in_", None)
        classes = getattr(all_rows.black_box, "classes_", None)
        if classes is None and task == "classification":
            classes = np.unique(labels)
        ruleset = RuleSet(
            [],
            [f"x{j}" for j in range(self.n_features_in_)] if names is None else list(names),
            task=task,
            classes=None if classes is None else np.asarray(classes).tolist(),
        )
        ruleset = ruleset.replace(domain=ruleset.domain_around(X))
        check_feasible(self.constraints, ruleset, X, labels)

    @property
    def candidate_constraints(self) -> Constraints | None:
        """Constraints of candidates, whose folds have fewer rows than the table.

        A `min_support` in rows becomes the same share of the rows.
        """
        constraints = self.constraints
        if constraints is None or constraints.min_support is None or constraints.min_support < 1:
            return constraints
        n_rows = len(self.data_) if hasattr(self, "data_") else 0
        if constraints.min_support >= n_rows:
            return constraints
        return constraints.replace(min_support=constraints.min_support / n_rows)

    def _result_facts(self, task: str, target_name: str, objective: SearchObjective) -> ResultFacts:
        """Return facts about the results for the checks of suspicious results."""
        has_target = self.data_.y is not None
        quality = self.black_box_quality_ | {"balanced_accuracy": self._balanced_accuracy}
        is_boosting = type(self.estimator).__name__.startswith("HistGradientBoosting")
        return ResultFacts(
            task,
            target_name,
            quality if has_target else {},
            self.data_.constant_quality() if has_target else {},
            float(self.leaderboard_.iloc[0].get("fidelity", math.nan)),
            len(self.rules_),
            is_fidelity_search=isinstance(objective.scorer, FidelityScorer),
            fidelity_rows=self.data_.fidelity_rows_label,
            quality_rows="these rows" if self.data_.is_fitted else "held-out rows",
            other_black_box="random-forest" if is_boosting else "hist-gradient-boosting",
            has_max_rules=self.max_rules is not None,
        )

    def _warn_of_constant(self) -> None:
        """Warn if the winner is a constant, and name an alternative that is not."""
        if not is_constant(self.rules_):
            return
        if len(self.data_) and len(pd.unique(np.ravel(self.oracle_.query(self.data_.X)))) < 2:
            return  # the black box is a constant itself, which is reported elsewhere
        alternatives = [a for a in self.alternatives_ if not a.is_constant]
        hint = "Allow more rules, or choose another score."
        if alternatives:
            hint = (
                f"search.alternatives_ holds a list of {len(alternatives[0].rules)} rules with a "
                f"fidelity of {alternatives[0].fidelity:.3f}."
            )
        warnings.warn(
            f"The best candidate by {self._objective().name} is a constant: it predicts the same "
            f"for all rows. {hint}",
            UserWarning,
            stacklevel=3,
        )

    def _fit_source(self, source: SearchableSource, **row_arguments: Any) -> ExtractorSearchCV:
        """Search a sample of a data source, and choose the winner on all of its rows."""
        for name, value in row_arguments.items():
            if value is not None:
                raise ValueError(
                    f"{name} must be None for a data source, whose own columns hold labels and "
                    f"weights, got {type(value).__name__}."
                )
        check_integer("sample_rows", self.sample_rows, 10)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        X, y, weights = source.draw_sample(
            self.sample_rows, task=black_box_task(self.estimator), random_state=int(seed)
        )
        self.fit(X, y, sample_weight=weights)
        if self.refit:
            self.finalists_ = self.compare_on_source(source)
        return self

    def compare_on_source(self, source: CountableSource) -> pd.DataFrame | None:
        """Compare the best candidates on all rows of a data source, and make the best the winner.

        :meth:`fit` calls this method if it gets a source. Call it yourself after a search on your
        own sample of a source. The finalists are the best three candidates of the leaderboard that
        satisfy the limits. Their rules are extracted from the rows of the search, and scored on all
        rows of the source.

        Parameters
        ----------
        source : DataSource
            All rows, with the columns of the search and the target.

        Returns
        -------
        DataFrame or None
            One row for each finalist with different rules: extractor, trial, number of rules and
            score on all rows (greater is better). None if `scoring` is not ICE, FiRe or Q, or if
            `class_weight` is set: the score cannot be computed from counts, and the winner does
            not change.
        """
        check_is_fitted(self, "leaderboard_")
        objective = self._objective()
        scorer = objective.scorer
        if objective.minimized or spec_of(scorer) is None or self.class_weight is not None:
            return None
        finalist_rows = self._finalist_rows()
        finalists: list[dict[str, Any]] = []
        compared_rules = set()
        best_row: Any = finalist_rows.iloc[0]
        try:
            for row in finalist_rows.to_dict(orient="records"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the winner is fitted again below
                    self._make_winner(row)
                if (rules_text := str(self.rules_)) in compared_rules:
                    continue
                compared_rules.add(rules_text)
                uses_black_box = scorer.reference == "black_box"
                black_box = self.best_extractor_.estimator_ if uses_black_box else None
                counts = source.count_rows(self.rules_, black_box)
                finalists.append(
                    {
                        "extractor": row["extractor"],
                        "trial": row["trial"],
                        "n_rules": len(self.rules_),
                        "score": scorer.score(evaluate_rules(self.rules_, counts)),
                    }
                )
            best_row = max(finalists, key=lambda finalist: finalist["score"])
        finally:
            self._make_winner(best_row)  # after an error, the best on the rows of the search
        self.picked_ = False
        return pd.DataFrame(finalists)

    def _prepare_data(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, checked_target: Any
    ) -> SearchData:
        return SearchData.prepare(
            self.estimator,
            X,
            y,
            checked_target=checked_target,
            groups=groups,
            sample_weight=sample_weight,
            class_weight=self.class_weight,
        )

    def _search(
        self, data: SearchData, task: str, objective: SearchObjective, callbacks: Sequence[Any]
    ) -> tuple[Runner, Fold, KeyboardInterrupt | None]:
        """Fit the black boxes, run the trials and store the results.

        Return the runner, the rows of the search with their black box, and the interrupt that ended
        the trials, if any.
        """
        begin = time.perf_counter()
        n_jobs = effective_n_jobs(self.n_jobs)
        if n_jobs > 1:  # helpers start while the black boxes are fitted
            start_helpers(n_jobs, SEARCH_MODULES)
        spaces = self._make_spaces(data.X, data.target, task)
        self._announce("black_boxes", callbacks)
        with self._n_jobs_context():
            folds, all_rows = data.folds(self.cv), data.fold_of_all_rows()
        self._search_folds = folds if self.keep_folds else None
        self._check_constraints(all_rows, task)
        quality = black_box_quality(folds, task)
        self._balanced_accuracy = quality.pop("balanced_accuracy", math.nan)
        self.black_box_quality_ = quality
        measures = further_scorers(objective, self.measures)
        evaluator = FoldEvaluator(folds, objective.scorer, measures, all_rows)
        with quiet_optuna():
            runner, interrupt = self._run_trials(data, objective, evaluator, spaces, callbacks)
            self.search_seconds_ = time.perf_counter() - begin
            self._store_results(runner, objective, interrupted=interrupt is not None)
        return runner, all_rows, interrupt

    def _run_trials(
        self,
        data: SearchData,
        objective: SearchObjective,
        evaluator: FoldEvaluator,
        spaces: dict[str, Space],
        callbacks: Sequence[Any],
    ) -> tuple[Runner, KeyboardInterrupt | None]:
        """Run the trials; return the runner, and the interrupt that ended the trials, if any."""
        start = time.monotonic()
        if self.timeout is not None:
            evaluator.deadline = start + self.timeout
        if self.max_queries is not None:
            evaluator.budget.n_left = self.max_queries
        runner = None
        self._trial_rows = evaluator.all_rows
        try:
            with Workers(evaluator, self._n_workers) as workers:
                studies = self._make_studies(data.X, data.target, objective, workers, spaces)
                runner = self._make_runner(studies, workers, start, callbacks)
                self._announce("trials", callbacks)
                runner.run()
        except KeyboardInterrupt as error:
            if runner is None:
                raise
            return runner, error
        finally:
            del self._trial_rows
        return runner, None

    def _make_runner(
        self, studies: Studies, workers: Workers, start: float, callbacks: Sequence[Any]
    ) -> Runner:
        objective = studies.objective
        front_priority = "share of the front's hypervolume"
        spec = None if objective.minimized else getattr(objective.scorer, "spec", None)
        return Runner(
            studies,
            Allocation(
                self.extractors_,
                self.n_trials,
                self.timeout,
                self.allocation,
                priority_label=front_priority if objective.minimized else "best",
                costly=() if objective.minimized else self._costly_extractors(),
                negated=spec is not None and not spec.greater_is_better,
            ),
            workers,
            start=start,
            pruner=self.pruner,
            callbacks=callbacks,
        )

    @property
    def _n_workers(self) -> int | None:
        """Number of processes; a single one, which shares all predictions, if queries are few."""
        return self.n_jobs if self.max_queries is None else 1

    def _costly_extractors(self) -> list[str]:
        """Return the built-in extractors of the search that are slow."""
        return [
            name
            for name, extractor in self._extractors.items()
            if extractor == name and name in EXTRACTORS and extractor_spec(name).is_costly
        ]

    def avoid_idle_features(self) -> list[str]:
        """Replace the winner if its rules use features that the black box does not use.

        This can happen if features are correlated. Call this method after :meth:`fit`; it queries
        the black box a few more times.

        Returns
        -------
        list of str
            Features that the winner's rules use although permuting their values changes no output
            of the black box, on at most 2,000 rows. Empty if there are none, or if another
            candidate without such features replaced the winner. Such a candidate is marked as
            ``tied`` with the best in the leaderboard, and does not have more rules.
        """
        probe_rows = self._probe_rows()
        winner = self._winner()
        idle_features: list[str] = winner.features_without_influence(probe_rows)
        board: pd.DataFrame = self.leaderboard_
        is_eligible = board["tied"].astype(bool) & (board["n_rules"] <= board["n_rules"].iloc[0])
        if not idle_features or not is_eligible.any():
            return idle_features
        replacements = board[is_eligible & ~board.duplicated(subset=_OUTCOME_COLUMNS)].drop(
            0, errors="ignore"
        )
        for _, row in replacements.head(_MAX_REPLACEMENTS).iterrows():
            self._make_winner(row)
            if not self._winner().features_without_influence(probe_rows):
                return []
        self.leaderboard_, self.best_extractor_ = board, winner
        self._set_best_attributes()
        return idle_features

    def _probe_rows(self) -> Any:
        """Return all rows, or a random sample in the same order if there are many."""
        rows = np.arange(len(self.data_))
        if len(rows) > MAX_PERMUTED_ROWS:
            random = np.random.default_rng(0)
            rows = np.sort(random.choice(rows, MAX_PERMUTED_ROWS, replace=False))
        return _safe_indexing(self.data_.X, rows)

    def _n_jobs_context(self) -> Any:
        """Return a context in which black boxes whose `n_jobs` is None use that of the search."""
        n_jobs = self.n_jobs if self.fit_n_jobs is None else self.fit_n_jobs
        if n_jobs is None:
            return contextlib.nullcontext()
        # Models that prefer threads, such as forests, ignore `n_jobs` without a backend.
        return parallel_config(backend="threading", n_jobs=n_jobs)

    def _draw_trial_sample(self, y: Any, task: str) -> np.ndarray | None:
        """Draw the rows for trials; return None if trials use all rows."""
        check_integer("max_rows", self.max_rows, 10, optional=True, remedy="None uses all rows.")
        has_fixed_splits = not isinstance(self.cv, Integral) and not hasattr(self.cv, "split")
        if self.max_rows is None or len(y) <= self.max_rows or (has_fixed_splits and self.cv):
            return None
        random = check_random_state(0 if self.random_state is None else self.random_state)
        random = np.random.RandomState(random.randint(2**31 - 1))
        labels = np.unique(y, return_inverse=True)[1] if task == "classification" else None
        if labels is None:
            return np.sort(random.choice(len(y), self.max_rows, replace=False))
        # The number of rows of a class is proportional to its frequency, and at least one.
        order = random.permutation(len(y))
        order = order[np.argsort(labels[order], kind="stable")]
        ends = np.concatenate([[0], np.cumsum(np.bincount(labels))])
        parts = [
            order[start : start + max(1, round((end - start) * self.max_rows / len(y)))]
            for start, end in itertools.pairwise(ends.tolist())
        ]
        return np.sort(np.concatenate(parts))

    def _finalist_rows(self) -> pd.DataFrame:
        """Return the best candidates with different outcomes that satisfy the limits."""
        complete = self.leaderboard_[self.leaderboard_["state"] == "complete"]
        if self._limits and complete["within_limits"].any():
            complete = complete[complete["within_limits"].astype(bool)]
        return complete[~complete.duplicated(subset=_OUTCOME_COLUMNS)].head(N_FINALISTS)

    def _mask_of(self, extractor: str, trial: int) -> pd.Series:
        """Return a mask that selects a trial of an extractor in the leaderboard."""
        board = self.leaderboard_
        return (board["extractor"] == extractor) & (board["trial"] == trial)

    def _move_to_top(self, mask: Any) -> None:
        """Move the row that a mask selects to the top of the leaderboard: it wins."""
        board = self.leaderboard_
        self.leaderboard_ = pd.concat([board[mask], board[~mask]], ignore_index=True)
        self._set_best_attributes()

    def _compare_finalists_on_repeated_folds(
        self,
        data: SearchData,
        runner: Runner,
        objective: SearchObjective,
        callbacks: Sequence[Any],
    ) -> None:
        """Compare the best candidates on repeated folds, and make the best of them the winner."""
        task, deadline = black_box_task(self.estimator), runner.evaluator.deadline
        seeds = [self.extractor_seed_ + n for n in range(1, self.n_repeats + 1)]
        splitters = [repeated_cv(self.cv, task, seed % 2**32) for seed in seeds]
        candidates = self.candidates_.within(self._limits)
        if (
            objective.minimized
            or data.groups is not None
            or None in splitters
            or not len(candidates)
        ):
            return
        finalists = find_finalists(candidates, self._winner_key(), objective)
        if len(finalists) < 2 or not splitters or runner.workers.is_spent:
            return
        self._announce("finalists", callbacks)
        with self._n_jobs_context():
            folds = [fold for splitter in splitters for fold in data.folds(splitter)]
        evaluator = FoldEvaluator(folds, objective.scorer, {})
        evaluator.deadline, evaluator.budget = deadline, runner.evaluator.budget
        with quiet_optuna(), Workers(evaluator, self._n_workers) as workers:
            winner, scores = compare_finalists(
                finalists,
                lambda candidates: workers.run(
                    [(self.make_candidate(c), k) for c in candidates for k in range(len(folds))]
                ),
                objective,
                self.standard_errors_,
            )
            self.query_cost_ += workers.query_cost
        for finalist, score in zip(finalists, scores, strict=True):
            is_finalist = self._mask_of(finalist.extractor, finalist.trial)
            self.leaderboard_.loc[is_finalist, "score_repeated"] = score
        if winner:
            self._move_to_top(self._mask_of(finalists[winner].extractor, finalists[winner].trial))

    def _compare_finalists_on_all_rows(self, all_rows: Fold) -> None:
        """Extract the best candidates from all rows, and make the best of them the winner."""
        board, scorer = self.leaderboard_, self._objective().scorer
        finalists = self._finalist_rows().index
        with Workers(FoldEvaluator([all_rows], scorer, {}), self.n_jobs) as workers:
            results = workers.run([(self.make_candidate(board.loc[f]), 0) for f in finalists])
            self.query_cost_ += workers.query_cost
        scores = [result.get("score") for result in results]  # NaN after an error, as in a trial
        board.loc[finalists, "score_on_all_rows"] = scores
        if np.isnan(scores).all():
            return
        self._move_to_top(board.index == finalists[int(np.nanargmax(np.round(scores, 12)))])

    def _refit(self, black_box: Any = None) -> None:
        """Fit the extractor of the first row on all rows, with a black box fitted on them.

        If its rules cannot satisfy the constraints on all rows, the next row wins.
        """
        while True:
            try:
                return self._fit_winner(black_box)
            except RejectedRulesError as error:
                board = self.leaderboard_
                is_complete = (board["state"] == "complete") & (board["error"] == "")
                if int(is_complete.sum()) <= 1:
                    raise
                board.loc[0, "error"] = str(error)
                rows = [*board.index[is_complete & (board.index > 0)]]
                rows += [row for row in board.index if row not in rows]
                self.leaderboard_ = board.loc[rows].reset_index(drop=True)
                self._set_best_attributes()

    def _fit_winner(self, black_box: Any) -> None:
        """Fit the extractor of the first row on all rows."""
        data = self.data_
        winner = self.make_candidate(self.leaderboard_.iloc[0])
        if self.constraints is not None:
            winner.set_constraints(self.constraints)
        if black_box is None and data.groups is not None and not data.is_fitted:
            black_box = data.fold_of_all_rows().black_box
        if data.y is None:
            winner.fit(data.X, **data.weight_options)
        else:
            winner.set_params(estimator=clone(self.estimator) if black_box is None else black_box)
            winner.fit(data.X, data.target, **data.weight_options)
            if black_box is not None:
                winner.set_params(estimator=clone(self.estimator))
                winner.estimator_ = winner.oracle_.estimator = black_box.estimator
        self.best_extractor_ = winner
        if is_classifier(self.estimator):
            self.classes_ = winner.classes_

    def choose(self, row: Any) -> ExtractorSearchCV:
        """Make another candidate the winner, and fit it on the rows of the search.

        Use it if another row of the trade-off suits your purpose better than the winner.

        Parameters
        ----------
        row : mapping, Series or Candidate
            Row of the leaderboard, the front or :meth:`best_for`, with ``extractor`` and ``trial``.

        Returns
        -------
        self
            The search with the candidate as winner, first row of the leaderboard and rules.

        Raises
        ------
        ValueError
            If the search has no such candidate.
        """
        check_is_fitted(self, "leaderboard_")
        self._make_winner(row)
        self.picked_ = True
        return self

    def _make_winner(self, row: Any) -> None:
        """Make a candidate the winner."""
        if isinstance(row, Candidate):
            row = {"extractor": row.extractor, "trial": row.trial}
        board, is_winner = self.leaderboard_, self._mask_of(row["extractor"], row["trial"])
        if not is_winner.any():
            raise ValueError(
                f"row must be a candidate of this search, which has no trial {row['trial']!r} of "
                f"{row['extractor']!r}. Pass a row of leaderboard_ or pareto_front_."
            )
        # The former winner is sorted like the others.
        other_candidates = board[~is_winner].sort_values(
            ["score", "n_rules"], ascending=[False, True], kind="stable", na_position="last"
        )
        self.leaderboard_ = pd.concat([board[is_winner], other_candidates], ignore_index=True)
        self._set_best_attributes()
        winner = getattr(self, "best_extractor_", None)
        # Every candidate explains the same black box, which is fitted already.
        self._refit(
            None if winner is None or self.data_.is_fitted else FrozenEstimator(winner.estimator_)
        )

    def _check_extractors(self, task: str, X: Any) -> dict[str, Any]:
        """Return the extractors to try by their names in the leaderboard."""
        extractors = self.extractors
        if extractors is None:
            suitable_names = suitable_extractors(
                task, categories=has_categories(X), n_rows=_num_samples(X)
            )
            # Each extractor needs a trial. An invalid number raises an error in _check_budget.
            names = suitable_names[: self.n_trials] if _is_count(self.n_trials) else suitable_names
            return {name: name for name in names}
        if isinstance(extractors, str) or not (
            isinstance(extractors, Sequence) and len(extractors)
        ):
            raise ValueError(
                "extractors must be a sequence of at least one name, class or extractor, such as "
                f"('cart', 'gridex'), or None for all suitable ones, got {extractors!r}."
            )
        for extractor in extractors:
            kind = extractor if isinstance(extractor, type) else type(extractor)
            if not isinstance(extractor, str) and not hasattr(kind, "get_params"):
                raise TypeError(
                    "extractors must hold names, extractor classes and extractors, got "
                    f"{extractor!r}. See skescore.registry.extractor_names()."
                )
        extractors_by_name = {extractor_name(extractor): extractor for extractor in extractors}
        if len(extractors_by_name) < len(extractors):
            raise ValueError(f"extractors must differ from each other, got {extractors!r}.")
        for name, extractor in extractors_by_name.items():
            extractor_tasks = (
                extractor_spec(name).tasks
                if extractor is name
                else getattr(extractor, "tasks", (task,))
            )
            if task not in extractor_tasks:
                raise ValueError(
                    f"The extractor {name!r} does {' and '.join(extractor_tasks)} only, but the "
                    f"black box {type(self.estimator).__name__} does {task}. Leave it out of "
                    "extractors."
                )
        return extractors_by_name

    def _make_extractor(self, name: str) -> Any:
        """Make the extractor of a name, with the user's parameters, around the black box."""
        source = self._extractors.get(name, name)
        if isinstance(source, str):
            extractor = make_extractor(source, self.estimator)
        elif isinstance(source, type):
            extractor = source(self.estimator)
        else:
            extractor = clone(source).set_params(estimator=self.estimator)
        if self.constraints is not None:
            if not hasattr(extractor, "set_constraints"):
                raise ValueError(
                    f"constraints are not supported by {name!r}, which has no set_constraints. "
                    "Leave it out of extractors, or repair its rules by constrain(...)."
                )
            extractor.set_constraints(self.candidate_constraints)
        if self.features is None:
            return extractor
        if "features" not in extractor.get_params(deep=False):
            raise ValueError(
                f"features={self.features!r} is not supported by {name!r}, which has no such "
                "parameter. Leave it out of extractors, or drop columns from X."
            )
        return extractor.set_params(features=self.features)

    def _check_parameters(self) -> SearchObjective:
        """Check the parameters, and return the objective."""
        self._check_budget()
        for parameter in ("spaces", "studies"):
            unknown = set(getattr(self, parameter) or {}) - set(self.extractors_)
            if unknown:
                raise ValueError(
                    f"{parameter} names {sorted(unknown)}, not among extractors "
                    f"{list(self.extractors_)}. Leave them out, or add them to extractors."
                )
        check_choice("allocation", self.allocation, ("halving", "even"))
        check_number("standard_errors", self.standard_errors, 0.0, finite=True, optional=True)
        check_integer("n_repeats", self.n_repeats, 0)
        check_instance("constraints", self.constraints, Constraints, optional=True)
        objective = self._objective()
        if isinstance(objective.scorer, PerformanceScorer):
            objective.scorer.check_task(black_box_task(self.estimator))
        has_fixed_size = self.max_rules is not None and not objective.depends_on_size
        self.standard_errors_ = 0.0 if has_fixed_size else 0.5
        if self.standard_errors is not None:
            self.standard_errors_ = float(self.standard_errors)
        self._limits = SearchLimits(**{name: getattr(self, name) for name in limited_quantities()})
        check_measures(self.measures)
        if not objective.minimized and not isinstance(self.refit, bool | np.bool_):
            raise ValueError(
                "refit must be True or False if scoring is a single score, which determines the "
                f"winner, got {self.refit!r}."
            )
        self._check_pruner(objective)
        return objective

    def _check_budget(self) -> None:
        if self.n_trials is None:
            if self.timeout is None:
                raise ValueError("n_trials=None needs a timeout in seconds.")
        elif not _is_count(self.n_trials) or self.n_trials < len(self.extractors_):
            raise ValueError(
                "n_trials must be an integer of at least one per extractor "
                f"({len(self.extractors_)}), got {self.n_trials!r}."
            )
        check_integer("max_queries", self.max_queries, 1, optional=True)
        if self.timeout is None:
            return
        if not _is_number(self.timeout):
            raise TypeError(f"timeout must be a number of seconds or None, got {self.timeout!r}.")
        if not 0 <= self.timeout < np.inf:
            raise ValueError(
                f"timeout must be a finite number of seconds or None, got {self.timeout!r}."
            )

    def _check_pruner(self, objective: SearchObjective) -> None:
        pruner = self.pruner
        if pruner is None:
            return
        is_named = isinstance(pruner, str) and pruner in ("race", "bound")
        if not is_named and not isinstance(pruner, optuna.pruners.BasePruner):
            raise TypeError(
                f"pruner must be 'race', 'bound', an Optuna pruner or None, got {pruner!r}."
            )
        if pruner == "race":
            return
        if objective.minimized:
            raise ValueError(
                "A pruner compares one score; with several measures pass pruner='race' or "
                "pruner=None."
            )
        if pruner == "bound" and objective.best_possible is None:
            labels = ", ".join(spec.label for spec in SCORE_SPECS.values())
            raise ValueError(
                f"pruner='bound' needs a score whose best value is known ({labels}), got "
                f"scoring={self.scoring!r}. Pass an Optuna pruner or None."
            )

    def _objective(self) -> SearchObjective:
        """Return the objective; with several measures, `refit` may name the score of the winner."""
        is_score = isinstance(self.refit, str) or callable(self.refit)
        reference = "black_box" if is_prefit(self.estimator) else None
        return SearchObjective.of(
            self.scoring, self.refit if is_score else "ice", reference=reference
        )

    def _check_rows(self, X: Any, y: Any, task: str) -> Any:
        """Check the rows as each extractor will, and return the checked target."""
        for name in self.extractors_:
            probe = self._make_extractor(name)
            if not hasattr(probe, "check_input"):  # extractors of other packages
                probe = make_extractor("cart", self.estimator)
            _, checked_target = probe.check_input(X, y, task)
        self.n_features_in_ = probe.n_features_in_
        if hasattr(probe, "feature_names_in_"):
            self.feature_names_in_ = probe.feature_names_in_
        return checked_target

    def _make_spaces(self, X: Any, y: Any, task: str) -> dict[str, Space]:
        """Return the search space of each extractor: the user's, or the default for the data."""
        spaces = {}
        for name, extractor in self._extractors.items():
            space = (self.spaces or {}).get(name)
            if space is None:
                space = search_space(extractor, X, y, task=task, max_rules=self.max_rules)
            spaces[name] = space
            check_space(spaces[name], self._make_extractor(name))
        return spaces

    def _make_studies(
        self,
        X: Any,
        y: Any,
        objective: SearchObjective,
        workers: Workers,
        spaces: dict[str, Space],
    ) -> Studies:
        """Make a study for each extractor in the storage of the search."""
        task = black_box_task(self.estimator)
        folds, all_rows = workers.evaluator.folds, workers.evaluator.all_rows
        assert all_rows is not None
        # Workers that share a storage must extract the same rules even without a seed.
        shared_seed = self.storage is not None and self.random_state is None
        random = check_random_state(
            zlib.crc32(self.study_name.encode()) if shared_seed else self.random_state
        )
        self.extractor_seed_, sampler_seed = (int(random.randint(2**31 - 1)) for _ in range(2))
        storage = None if self.storage is None else open_storage(self.storage)
        identity: dict[str, Any] = {}
        if storage is not None or self.studies:
            identity = {
                "scoring": f"{', '.join(objective.metric_names)} by {objective.scorer_text}",
                **search_identity(self.estimator, folds, all_rows),
                "measures": list(further_scorers(objective, self.measures)),
                "seed": self.extractor_seed_,
            }
            if self.constraints is not None:
                identity["constraints"] = self.constraints.to_json(indent=None)
        objectives = {
            name: ExtractorObjective.on_folds(
                folds,
                self._make_seeded_extractor(name),
                space,
                objective,
                measures=self.measures,
                name=name,
            )
            for name, space in spaces.items()
        }
        n_trials_each = (self.n_trials or 20 * len(objectives)) // len(objectives)
        max_rules = None if objective.depends_on_size else (self.max_rules or math.inf)
        points = {
            name: starting_points(
                self._extractors[name], space, np.asarray(y), task, max_rules=max_rules
            )
            for name, space in spaces.items()
        }
        baselines = self._baselines(workers, objective)
        study_settings = StudySettings(
            baselines=baselines,
            starting_points=points | {name: [] for name in baselines if name == "cart"},
            seed=sampler_seed,
            n_startup_trials=max(5, n_trials_each // 4),
            limits=self._limits,
            sampler=self.sampler,
            pruner=None if self.pruner in ("race", "bound") else self.pruner,
            storage=storage,
            study_name=self.study_name,
            identity=identity,
            user_studies=self.studies or {},
            description={"task": task, "X": X, "cv": self.cv},
        )
        return Studies(objectives, objective, study_settings)

    def _baselines(
        self, workers: Workers, objective: SearchObjective
    ) -> dict[str, list[dict[str, Any]]]:
        """Return the trees and the linear equation that every search compares, by extractor."""
        customized = {*(self.spaces or {}), *(self.studies or {})}  # by the user
        builtin = {k for k, extractor in self._extractors.items() if k == extractor} - customized
        equations: dict[str, list[dict[str, Any]]] = {}
        if not is_classifier(self.estimator) and self.constraints is None:
            equations = {name: [_EQUATIONS[name]] for name in _EQUATIONS if name in builtin}
        if "cart" not in builtin:
            return equations
        if self.constraints is not None:
            # The trees of CART's path need not satisfy the constraints, so these sizes are tried.
            merge_params = {"merge_leaves": True} if is_classifier(self.estimator) else {}
            return {
                "cart": [
                    {"max_leaf_nodes": n_leaves, "sampling": sampling, **merge_params}
                    for sampling in TREE_SAMPLINGS
                    for n_leaves in _CONSTRAINED_LEAVES
                ]
            }
        reference = getattr(objective.scorer, "reference", "data")
        samplings = TREE_SAMPLINGS
        if reference == "black_box" and not is_classifier(self.estimator):
            samplings = NEAR_TREE_SAMPLINGS
        points = tree_path(
            self._make_seeded_extractor("cart"),
            workers.evaluator.folds,
            samplings,
            reference=reference,
            max_rules=None if objective.depends_on_size else self.max_rules,
            timeout=None if self.timeout is None else _SHARE_OF_TREE_PATH * self.timeout,
            measure_folds=workers.measure_folds,
            allows_queries=workers.allows_queries,
        )
        return {"cart": points} | equations if points else equations

    def _store_results(
        self, runner: Runner, objective: SearchObjective, *, interrupted: bool
    ) -> None:
        studies = runner.studies
        if interrupted:
            studies.read_trials()
        self.studies_ = studies.by_name
        trials = {
            name: [trial for trial in studies.measured_trials(name) if trial.state.is_finished()]
            for name in self.studies_
        }
        self.stopped_ = runner.allocation.stop_reasons
        self.query_cost_ = runner.workers.query_cost
        self.candidates_ = Candidates.from_trials(trials)
        self.leaderboard_ = leaderboard(
            trials,
            objective,
            [
                *further_scorers(objective, self.measures),
                *([] if self.constraints is None else [REPAIRED]),
            ],
            self.stopped_,
            self.standard_errors_,
            self._limits,
        )
        if not len(self.leaderboard_) and not interrupted:
            raise ValueError(
                f"No trial was started within timeout={self.timeout!r} seconds; allow more time."
            )

    def _choose_winner(self, objective: SearchObjective) -> None:
        """Check that a candidate can win, and choose the knee if several measures are minimized."""
        board = self.leaderboard_
        if board.iloc[0]["state"] != "complete":
            errors = board["error"].unique().tolist()
            trials_text = (
                f"None of the {len(board)} trials" if len(board) > 1 else "The only trial has not"
            )
            raise ValueError(f"{trials_text} succeeded: {errors[0]}")
        is_complete = board["state"] == "complete"
        if self._limits and not board.loc[is_complete, "within_limits"].any():
            warnings.warn(
                f"No candidate has {self._limits}. The best of all was taken: it has "
                f"{board.iloc[0]['n_rules']:.3g} rules and a performance of "
                f"{board.iloc[0]['performance']:.3g}. Relax the limits, or try more candidates.",
                UserWarning,
                stacklevel=3,
            )
        front = pareto_front(self.candidates_.within(self._limits), self._front_names())
        if objective.minimized and isinstance(self.refit, bool | np.bool_) and len(front):
            knee = front[front["knee"]].iloc[0]
            self._move_to_top(self._mask_of(knee["extractor"], knee["trial"]))
        self._set_best_attributes()

    def _set_best_attributes(self) -> None:
        best_row = self.leaderboard_.iloc[0]
        self.best_index_ = 0
        self.best_name_ = str(best_row["extractor"])
        self.best_params_ = dict(best_row["params"])
        self.best_score_ = float(best_row["score"])

    @property
    def alternatives_(self) -> tuple[Alternative, ...]:
        """Up to three rule lists to choose from: best, shortest, most faithful.

        Their rules are extracted from all rows when the attribute is first read.
        """
        winner = self._winner()
        key = self._winner_key()
        if getattr(self, "_alternatives", (None, ()))[0] != key:
            limit = self.max_rules
            if limit is None:
                limit = max(READABLE_RULES, len(getattr(self, "classes_", ())))
            candidates = self.candidates_.within(self._limits)
            candidates = candidates if len(candidates) else self.candidates_
            rules = {key: winner.rules_}
            while True:  # rules of all rows may differ in number from those of the folds
                n_rules = {candidate: len(its_rules) for candidate, its_rules in rules.items()}
                choices = choose_alternatives(candidates, key, max_rules=limit, n_rules=n_rules)
                by_key = {(c.candidate.extractor, c.candidate.trial): c.candidate for c in choices}
                new_keys = by_key.keys() - rules.keys()
                if not new_keys:
                    break
                rules |= {k: self.fit_candidate(by_key[k]).rules_ for k in by_key if k in new_keys}
            self._alternatives = (
                key,
                make_alternatives(
                    choices,
                    lambda c: rules[c.extractor, c.trial],
                    self.data_.fidelity_rows_label,
                ),
            )
        return self._alternatives[1]

    def _winner_key(self) -> tuple[str, int]:
        """Return the extractor and trial of the winner; the earlier trial if it repeats another."""
        best_row = self.leaderboard_.iloc[0]
        trial = best_row["trial"] if pd.isna(best_row["same_as"]) else best_row["same_as"]
        return str(best_row["extractor"]), int(trial)

    def fit_candidate(self, candidate: Any) -> Any:
        """Extract the rules of a candidate from all rows, with the black box of the winner.

        During the search, callbacks may call this method to show the rules of a finished trial.
        They are then extracted from the rows of the search.

        Parameters
        ----------
        candidate : Candidate, mapping or Series
            A candidate, or a row of ``leaderboard_`` or ``pareto_front_``: ``extractor`` and
            ``params``.

        Returns
        -------
        estimator
            The fitted extractor. After the search, warnings of the extraction are suppressed,
            because the search has reported them.

        Raises
        ------
        Exception
            Any error of the extraction.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skescore.tuning import ExtractorSearchCV
        >>> X, y = load_iris(return_X_y=True)
        >>> tree = DecisionTreeClassifier(random_state=0)
        >>> search = ExtractorSearchCV(tree, extractors=["cart"], n_trials=2, cv=2, random_state=0)
        >>> shortest = search.fit(X, y).leaderboard_.sort_values("n_rules").iloc[0]
        >>> len(search.fit_candidate(shortest).rules_)
        1
        """
        data = self.data_
        trial_rows: Fold | None = getattr(self, "_trial_rows", None)
        if trial_rows is not None:
            extractor = self._make_seeded_extractor(candidate["extractor"]).set_params(
                **candidate["params"]
            )
            extractor.set_params(estimator=trial_rows.black_box)
            target = trial_rows.y_test if trial_rows.has_target else None  # all are test rows
            return extractor.fit(trial_rows.X_train, target, **trial_rows.weight_options)
        extractor = self.make_candidate(candidate)
        if not data.is_fitted:
            # The black box that the search retains knows its predictions for all rows.
            black_box = getattr(self, "_final_black_box", None)
            frozen_model = FrozenEstimator(self._winner().estimator_)
            extractor.set_params(estimator=frozen_model if black_box is None else black_box)
        target = None if data.y is None else data.target
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the search has reported them
            return extractor.fit(data.X, target, **data.weight_options)

    @property
    def pareto_front_(self) -> pd.DataFrame:
        """Candidates on the Pareto front, fewest rules first."""
        check_is_fitted(self, "leaderboard_")
        return pareto_front(self.candidates_, self._front_names())

    def _front_names(self) -> Sequence[str]:
        return self._objective().minimized or ("loss", "n_rules", "incompleteness")

    @property
    def knee_(self) -> pd.Series:
        """Knee of the front: a compromise if no weights are known."""
        front = self.pareto_front_
        if not len(front):
            raise AttributeError("There is no finished candidate whose measures are all known.")
        return front[front["knee"]].iloc[0]

    @property
    def cv_results_(self) -> dict[str, Any]:
        """The leaderboard in the format of scikit-learn's searches."""
        check_is_fitted(self, "leaderboard_")
        board = self.leaderboard_
        n_folds = max((len(c.folds) for c in self.candidates_), default=0)
        by_key = {(c.extractor, c.trial): c for c in self.candidates_}
        trials = board["same_as"].where(board["same_as"].notna(), board["trial"])
        rows = [by_key.get(key) for key in zip(board["extractor"], trials, strict=True)]

        def per_fold(name: str) -> np.ndarray:
            blank = [np.nan] * n_folds
            return np.array(
                [blank if row is None else [fold[name] for fold in row.folds] for row in rows],
                dtype=float,
            ).reshape(len(rows), n_folds)

        seconds, scores = per_fold("seconds"), per_fold("score")
        results: dict[str, Any] = {
            "mean_fit_time": seconds.mean(axis=1),
            "std_fit_time": seconds.std(axis=1),
            "param_extractor": np.ma.array(board["extractor"], dtype=object),
        }
        for name in dict.fromkeys(name for params in board["params"] for name in params):
            results[f"param_{name}"] = np.ma.array(
                [params.get(name) for params in board["params"]],
                mask=[name not in params for params in board["params"]],
                dtype=object,
            )
        results["params"] = list(board["params"])
        for fold in range(n_folds):
            results[f"split{fold}_test_score"] = scores[:, fold]
        results["mean_test_score"] = board["score"].to_numpy(float)
        results["std_test_score"] = scores.std(axis=1)
        ranks = board["score"].rank(ascending=False, method="min", na_option="bottom")
        results["rank_test_score"] = ranks.to_numpy(np.int32)
        return results

    def best_for(
        self,
        score: str | None = None,
        *,
        max_rules: float | None = None,
        min_performance: float | None = None,
        min_fidelity: float | None = None,
        completeness: str = "volume",
        **weights: float,
    ) -> pd.Series:
        """Return the candidate that wins with other weights or limits, without another extraction.

        The candidate is chosen like the winner of the search (see `standard_errors`). Use this
        method to try other weights after a search, or to set limits, such as at most five rules or
        a smallest performance. :func:`skescore.tuning.winning_regions` shows which weights lead to
        which winner, based only on the means on held-out rows.

        Parameters
        ----------
        score : str, optional
            The score: ``"ice"``, ``"fire"`` or ``"q"``. By default, the score that has the given
            weights. If only limits are given, the score of the search if it is one of these,
            otherwise ICE.
        max_rules : float, optional
            Largest number of rules extracted from all rows or, if these were not extracted, largest
            mean over the folds.
        min_performance : float, optional
            Smallest mean performance on held-out rows.
        min_fidelity : float, optional
            Smallest mean agreement with the black box on unseen rows.
        completeness : {"volume", "instances"}, default="volume"
            How completeness is measured, for ICE and Q.
        **weights : float
            ``psi`` of FiRe, ``phi`` and ``rho`` of ICE, by default 1.

        Returns
        -------
        pandas.Series
            Row of :meth:`Candidates.table` with the new ``score`` (FiRe and Q are negated).
            :meth:`make_candidate` makes its extractor.

        Raises
        ------
        ValueError
            If the weights do not belong to a single score, a weight is out of its range, or no
            finished candidate has all measures and satisfies the limits.
        """
        check_is_fitted(self, "leaderboard_")
        limits = SearchLimits(
            max_rules=max_rules, min_performance=min_performance, min_fidelity=min_fidelity
        )
        if score is None and not weights and limits:
            spec = spec_of(self._objective().scorer) or find_score("ice")
        else:
            spec = _find_score_by_weights(weights) if score is None else find_score(score)
        choice: dict[str, Any] = {"score": spec.name, "completeness": completeness}
        choice |= spec.check_weights(weights)
        if not len(self.candidates_):
            raise ValueError(
                "best_for needs a finished candidate with all measures, but there is none. See the "
                "column 'error' of leaderboard_."
            )
        candidates = self.candidates_.within(limits)
        if not len(candidates):
            table = self.candidates_.table()
            raise ValueError(
                f"No candidate has {limits}: the smallest has {table['n_rules'].min():.3g} rules, "
                f"the best a performance of {table['performance'].max():.3g}. Relax the limits."
            )
        scores = spec.signed(candidates.scores(**choice))
        table = candidates.table()
        table.insert(1, "score", scores.mean(axis=1))
        order = np.lexsort([table["size"], -table["score"]])  # ties go to the smaller, then earlier
        with_all_rows = spec.signed(candidates.scores_with_all_rows(**choice))
        scores_in_order = selection_scores(scores, with_all_rows)[order]
        size, n_queries = table["size"].to_numpy(), candidates.means("black_box_rows")
        best = choose_winner(scores_in_order, size[order], n_queries[order], self.standard_errors_)
        return table.iloc[order[best]]

    def make_candidate(self, row: Any) -> Any:
        """Make the unfitted extractor of a row of the leaderboard, the front or :meth:`best_for`.

        Parameters
        ----------
        row : mapping, Series or Candidate
            Row with ``extractor`` and ``params``.

        Returns
        -------
        extractor
            Extractor with the black box of the search.
        """
        check_is_fitted(self, "leaderboard_")
        if isinstance(row, Candidate):
            row = {"extractor": row.extractor, "params": row.params}
        return self._make_seeded_extractor(row["extractor"]).set_params(**row["params"])

    def held_out_scores(
        self,
        candidates: Sequence[Any],
        X: Any = None,
        y: Any = None,
        *,
        scoring: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> np.ndarray:
        """Return cross-validated scores of extractors, computed in the same way as in the search.

        Use it to compare the winner with extractors that were not searched, on the same splits. For
        each split, the black box is fitted and the rules are extracted on its training rows.

        Parameters
        ----------
        candidates : sequence of mapping, Series, Candidate or extractor
            Rows as for :meth:`make_candidate`, or extractors.
        X : array-like or DataFrame of shape (n_rows, n_features), optional
            Rows to use instead of the rows of the search, with their own `y`, `groups` and
            `sample_weight`.
        y : array-like of shape (n_rows,), optional
            Target of these rows; the predictions of the black box by default.
        scoring : str or scorer, optional
            Score to use instead of the score of the search.
        groups : array-like of shape (n_rows,), optional
            Groups of these rows.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of these rows.

        Returns
        -------
        ndarray of shape (n_candidates, n_splits)
            Greater is better.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            If a candidate, the score or the weights are invalid, or X and y have different numbers
            of rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skescore import ExtractorSearchCV
        >>> from skescore.extractors import CARTExtractor
        >>> X, y = load_iris(return_X_y=True)
        >>> black_box = DecisionTreeClassifier(max_depth=3, random_state=0)
        >>> search = ExtractorSearchCV(
        ...     black_box, extractors=["cart"], n_trials=3, cv=2, random_state=0
        ... ).fit(X, y)
        >>> stump = CARTExtractor(black_box, max_leaf_nodes=2, random_state=0)
        >>> search.held_out_scores([search.leaderboard_.iloc[0], stump]).round(2).tolist()
        [[0.98, 0.98], [0.93, 0.93]]
        """
        check_is_fitted(self, "leaderboard_")
        scorer = self._objective().scorer if scoring is None else check_scoring(scoring)
        extractors = [
            c if isinstance(c, BaseEstimator) else self.make_candidate(c) for c in candidates
        ]
        data = self.data_ if X is None else self._prepare_data(X, y, groups, sample_weight, y)
        folds = self._make_folds(data)
        return np.array(
            [[evaluate_on_fold(e, fold, scorer)["score"] for fold in folds] for e in extractors]
        )

    def extract_on_folds(self) -> list[HeldOutExtraction]:
        """Extract rules with the winner's hyperparameters from the training rows of each fold.

        Unless the black box was fitted before the search, it is fitted on the same training rows.
        Use the result for measurements on rows to which neither the rules nor the black box were
        fitted.

        Returns
        -------
        list of HeldOutExtraction
            One per fold, in the order of the folds.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from skescore import ExtractorSearchCV
        >>> X, y = load_iris(return_X_y=True)
        >>> black_box = DecisionTreeClassifier(max_depth=3, random_state=0)
        >>> search = ExtractorSearchCV(
        ...     black_box, extractors=["cart"], n_trials=3, cv=2, random_state=0
        ... ).fit(X, y)
        >>> [len(fold.X) for fold in search.extract_on_folds()]
        [75, 75]
        """
        check_is_fitted(self, "leaderboard_")
        return [
            HeldOutExtraction.from_fold(self.make_candidate(self.leaderboard_.iloc[0]), fold)
            for fold in self._make_folds(self.data_)
        ]

    def adopt(self, extractor: Any, *, name: str = "revised") -> ExtractorSearchCV:
        """Make an extractor that was not searched the winner, and measure it on the folds.

        Parameters
        ----------
        extractor : extractor
            An extractor that is fitted on all rows of the search, with its black box.
        name : str, default="revised"
            Name of its row in the leaderboard, which must be new.

        Returns
        -------
        self
            The search with the extractor as winner, first row of the leaderboard and rules.

        Raises
        ------
        ValueError
            If the search has an extractor of this name.
        """
        check_is_fitted(self, "leaderboard_")
        if name in self._extractors:
            raise ValueError(
                f"name must be new in this search, which already has an extractor {name!r}. Pass "
                "another name."
            )
        objective = self._objective()
        measures = further_scorers(objective, self.measures)
        prototype = clone(extractor).set_params(estimator=self.estimator)
        if self.constraints is not None:
            prototype.set_constraints(self.candidate_constraints)
        folds = [
            evaluate_on_fold(prototype, fold, objective.scorer, measures)
            for fold in self._make_folds(self.data_)
        ]
        self._extractors[name] = prototype
        candidate = Candidate(name, {}, 0, tuple(folds))
        self.candidates_ = Candidates([*self.candidates_, candidate])
        columns = [*folds[0].measures, *folds[0].user_measures]
        row: dict[str, Any] = {column: mean_of(folds, column) for column in columns}
        row |= {
            "extractor": name,
            "score_std": float(np.std([fold["score"] for fold in folds])),
            "tied": False,
            "within_limits": self._limits.allow(folds),
            "params": {},
            "trial": 0,
            "state": "complete",
            "same_as": None,
            "stopped": "",
            "error": "",
        }
        board = self.leaderboard_
        new_row = pd.DataFrame(
            [{column: row.get(str(column), np.nan) for column in board}], dtype=object
        )
        new_board = pd.concat([new_row, board.astype(object)], ignore_index=True)
        self.leaderboard_ = new_board.astype(board.dtypes.to_dict())
        self.best_extractor_, self.picked_ = extractor, False
        self._set_best_attributes()
        return self

    def _make_folds(self, data: SearchData) -> list[Fold]:
        """Return the folds of the search, or split other rows in the same way."""
        folds: list[Fold] | None = getattr(self, "_search_folds", None)
        if folds is not None and data is self.data_:
            return folds
        data = data.take(self._draw_trial_sample(data.target, black_box_task(self.estimator)))
        with self._n_jobs_context():
            return data.folds(self.cv)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_search_folds", "_final_black_box", "_trial_rows"):
            state.pop(name, None)  # copies compute them again
        return state

    def _make_seeded_extractor(self, name: str) -> Any:
        """Make an extractor with the seed of the search, unless the user set another one."""
        extractor = self._make_extractor(name)
        if extractor.get_params(deep=False).get("random_state", self) is None:
            extractor.set_params(random_state=self.extractor_seed_)
        return extractor

    def _winner(self) -> Any:
        check_is_fitted(self, "leaderboard_")
        if not hasattr(self, "best_extractor_"):
            raise AttributeError(f"{type(self).__name__} was fitted with refit=False.")
        return self.best_extractor_

    @property
    def best_estimator_(self) -> Any:
        """The winner, with the name that scikit-learn's searches use."""
        return self._winner()

    @property
    def rules_(self) -> RuleSet:
        """Rules of the winner, extracted from all rows."""
        return self._winner().rules_

    def plot(self, kind: str = "trade_off", *, ax: Any = None, **options: Any) -> Any:
        """Draw a plot of the search; see :mod:`skescore.plots`.

        Parameters
        ----------
        kind : str, default="trade_off"
            ``"trade_off"``: all candidates with the front (:func:`skescore.plots.pareto_plot`);
            ``"scores"``: the best of each extractor (:func:`skescore.plots.score_bars`);
            ``"winners"``: the winner for all weights (:func:`skescore.plots.winner_map`);
            ``"sensitivity"``: scores along a weight (:func:`skescore.plots.score_sensitivity`);
            ``"rules"``: the winner's rules (:func:`skescore.plots.parallel_rules`).
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; a new figure by default.
        **options
            Options of that function.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the plot.

        Raises
        ------
        ValueError
            If the kind is unknown.
        """
        check_is_fitted(self, "leaderboard_")
        return find_view("search.plot")(self, kind, ax=ax, **options)

    def _html_repr(self) -> str:
        """Return HTML for notebooks: the results, and below them the parameters."""
        diagram: str = super()._html_repr()
        if not hasattr(self, "best_extractor_"):
            return diagram
        return str(find_view("search.html")(self, diagram))

    def report(self, path: str | Path = "report.html", **options: Any) -> Path:
        """Write the search as one HTML page; see :func:`skescore.report.write_report`.

        Parameters
        ----------
        path : str or Path, default="report.html"
            The file.
        **options
            ``title``, ``certificate`` and further options of that function.

        Returns
        -------
        Path
            The file.
        """
        return Path(find_view("search.report")(self, path=path, **options))

    @property
    def oracle_(self) -> Any:
        """Oracle of the winner, which queries the black box."""
        return self._winner().oracle_

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the winner's rules.

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

    @available_if(_can_predict_proba)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the class probabilities of the rule that each row is assigned to.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities in the order of ``classes_``.
        """
        return self._winner().predict_proba(X)

    def covers(self, X: Any) -> np.ndarray:
        """Return which rows at least one rule of the winner covers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of bool, shape (n_rows,)
            True for covered rows.
        """
        return self._winner().covers(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Score the winner's rules by `scoring`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            The target; the black box's predictions by default.

        Returns
        -------
        float
            Greater is better.
        """
        winner = self._winner()
        y = winner.oracle_.query(X) if y is None else y
        return float(self._objective().scorer(winner, X, y))

    def fidelity(self, X: Any) -> float:
        """Return the accuracy or R² of the winner's rules relative to the black box's predictions.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, for which the black box is queried.

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
        """Share of the training rows that at least one rule of the winner covers."""
        return self._winner().coverage_

    @property
    def completeness_(self) -> float:
        """Share of the domain's volume that at least one rule of the winner covers."""
        return self._winner().completeness_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "leaderboard_")

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that the search and the splitter of `cv` request.

        Returns
        -------
        MetadataRouter
            The requests. A splitter such as ``GroupKFold`` requests ``groups`` by itself. With a
            number of folds as `cv`, call ``set_fit_request(groups=True)``.
        """
        request = copy.deepcopy(self._get_metadata_request())
        router = MetadataRouter(owner=self)
        if hasattr(self.cv, "get_metadata_routing"):
            if request.fit.requests.get("groups") is None:
                request.fit.requests.pop("groups", None)
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=mapping)
        return router.add_self_request(request)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # rules support NaN, the black box may not
        try:
            black_box_tags = get_tags(self.estimator)
        except (AttributeError, TypeError):  # fit raises an error that explains it
            return tags
        tags.estimator_type = black_box_tags.estimator_type
        tags.classifier_tags = black_box_tags.classifier_tags
        tags.regressor_tags = black_box_tags.regressor_tags
        if tags.classifier_tags is not None:  # rules have one output
            tags.classifier_tags.multi_label = False
        tags.target_tags.required = not is_fitted(self.estimator)
        return tags


def _find_score_by_weights(weights: Mapping[str, Any]) -> ScoreSpec:
    """Return the only score that has all of these weights."""
    all_weights(weights)  # raises an error for unknown weights
    matching_specs = [
        s for s in SCORE_SPECS.values() if weights and set(weights) <= set(s.weight_names)
    ]
    if len(matching_specs) == 1:
        return matching_specs[0]
    weights_by_score = "; ".join(
        f"{' and '.join(spec.weight_names)} of {spec.label}"
        for spec in SCORE_SPECS.values()
        if spec.weights
    )
    raise ValueError(
        f"best_for takes the weights of one score ({weights_by_score}), got {dict(weights)!r}. "
        "Pass the name of the score, or the weights of only one score."
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value > 0)
