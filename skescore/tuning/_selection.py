"""Selection of candidates: trees of CART's path, leaderboard, winner, and alternatives."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from optuna.trial import FrozenTrial
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from skescore._deadline import time_limit
from skescore._text import plural
from skescore.black_boxes import black_box_task
from skescore.extractors import PATH_LEAVES, ExtractionTimeoutError, equal_siblings
from skescore.rules import LinearOutput, RuleSet
from skescore.scorers import measured_quantities
from skescore.tuning._candidates import Candidate, Candidates, SearchLimits
from skescore.tuning._folds import Fold, FoldResult, mean_of, read_all_rows, read_folds
from skescore.tuning._objective import FIRST_COLUMNS, LAST_COLUMNS, SearchObjective

#: Number of rules that people can read easily; the default limit of the most faithful list.
READABLE_RULES = 8
#: Smallest relative reduction of the errors by which a larger tree becomes a candidate.
_MIN_GAIN = 0.02
#: Number of rules up to which trees with slightly more errors than a smaller one are candidates.
_MAX_RULES_OF_SMALL_TREES = 6


def tree_path(
    prototype: Any,
    folds: Sequence[Fold],
    samplings: Sequence[Any],
    *,
    reference: str,
    max_rules: float | None = None,
    timeout: float | None = None,
    measure_folds: Callable[..., list[Any]] | None = None,
    allows_queries: Callable[[int], bool] | None = None,
) -> list[dict[str, Any]]:
    """Return the parameters of the trees with 1 to 32 leaves that no other tree dominates.

    Parameters
    ----------
    prototype : CARTExtractor
        Extractor whose parameters are used, including the seed, unless the results replace them.
    folds : sequence of Fold
        Folds on which the trees are compared.
    samplings : sequence
        Generators of query rows to compare; None generates no rows.
    reference : {"data", "black_box"}
        Labels with which predictions are compared.
    max_rules : float, optional
        Largest number of rules, as a rounded mean over the folds.
    timeout : float, optional
        Seconds after which generators that are not measured yet are omitted. The first generator
        is always measured.
    measure_folds : callable, optional
        Function that calls ``function(extractor, fold)`` for every fold, for example in several
        processes, and returns the results. By default, this process makes all calls.
    allows_queries : callable, optional
        Function that returns whether the black box may be queried for a number of rows; generators
        that would need more are omitted, except for the first.

    Returns
    -------
    list of dict
        Parameters of CART, ordered by size. A smaller tree dominates a larger one unless the larger
        one has over 2 % fewer errors, on average over the folds. Trees with up to six rules are
        also included if they have more errors than a smaller tree by less than 2 % of the errors of
        the tree with one leaf. This tree and the smallest tree with the fewest errors are always
        included, except for trees with more than `max_rules` rules.
    """
    errors: dict[tuple[Any, int], float] = {}
    sizes: dict[tuple[Any, int], float] = {}
    start = time.monotonic()
    if measure_folds is None:
        measure_folds = partial(_measure_folds, folds)
    for sampling in samplings:
        deadline = math.inf if timeout is None or not errors else start + timeout
        n_queries = len(folds) * prototype.n_queries
        if errors and allows_queries is not None and not allows_queries(n_queries):
            continue
        # The black box of each fold replaces the black box of the prototype.
        extractor = clone(prototype).set_params(
            estimator=None,
            max_leaf_nodes=PATH_LEAVES,
            sampling=sampling,
            simplify=False,
            merge_leaves=False,
            prune=None,
        )
        try:
            results = measure_folds(
                extractor, partial(_measure_path_until, reference=reference, deadline=deadline)
            )
        except ExtractionTimeoutError:
            break  # the trees so far are compared
        fold_measures = [result for result in results if isinstance(result, np.ndarray)]
        if len(fold_measures) < len(results):
            failure = next(result for result in results if isinstance(result, str))
            if sampling is not None:  # otherwise the candidates of the search report the error
                warnings.warn(
                    f"Trees with sampling={sampling!r} are not compared: {failure}",
                    UserWarning,
                    stacklevel=3,
                )
            continue
        n_sizes = min(result.shape[1] for result in fold_measures)
        means = np.mean([result[:, :n_sizes] for result in fold_measures], axis=0)
        for position in range(n_sizes):
            errors[sampling, position + 1], sizes[sampling, position + 1] = means[:, position]
    order = sorted(errors, key=lambda key: (round(sizes[key], 9), round(errors[key], 12)))
    candidates, smallest_errors = [], np.inf
    min_errors = min(errors.values(), default=0.0)
    for key in order:
        is_best = errors[key] <= min_errors + 1e-12 < smallest_errors
        limit = (1 - _MIN_GAIN) * smallest_errors - 1e-12
        if sizes[key] <= _MAX_RULES_OF_SMALL_TREES:
            # Thresholds are rounded for each size separately, so a few rows may change sides.
            limit = smallest_errors + _MIN_GAIN * errors[order[0]]
        if is_best or errors[key] < limit:
            candidates.append(key)
            smallest_errors = min(smallest_errors, errors[key])
    if max_rules is not None and candidates:
        candidates = [k for k in candidates if sizes[k] <= max_rules + 0.5] or candidates[:1]
    return [_tree_params(prototype, sampling, n_leaves) for sampling, n_leaves in candidates]


def _tree_params(prototype: Any, sampling: Any, n_leaves: int) -> dict[str, Any]:
    params: dict[str, Any] = {"max_leaf_nodes": n_leaves, "sampling": sampling}
    if black_box_task(prototype.estimator) == "classification":
        params["merge_leaves"] = True
    return params


def _measure_folds(
    folds: Sequence[Fold], extractor: Any, function: Callable[[Any, Fold], Any]
) -> list[Any]:
    return [function(extractor, fold) for fold in folds]


def _measure_path_until(
    extractor: Any, fold: Fold, *, reference: str, deadline: float
) -> np.ndarray | str:
    """Measure the trees of a path on a fold, until a time of the monotonic clock.

    The result is that of `_measure_path`.
    """
    with time_limit(None if math.isinf(deadline) else deadline - time.monotonic()):
        return _measure_path(clone(extractor), fold, reference)


def _measure_path(extractor: Any, fold: Fold, reference: str) -> np.ndarray | str:
    """Measure the trees of all sizes of a path on a fold: their errors and numbers of rules.

    The result has the shape (2, n_sizes). If no tree can be fitted, the result is the text of the
    error.
    """
    extractor.estimator = fold.black_box
    fold.fix_rows()
    try:
        extractor.fit(fold.X_train, **fold.weight_options)
    except ExtractionTimeoutError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    tree = extractor.tree_.tree_
    leaves = np.flatnonzero(tree.children_left < 0)
    if len(leaves) != len(extractor.rules_):
        return f"the tree has {len(leaves)} leaves, but there are {len(extractor.rules_)} rules."
    X, weights = fold.X_test, fold.test_weight
    target = fold.y_test
    if reference == "black_box" or not fold.has_target:
        X, weights = fold.fidelity_rows
        target = extractor.oracle_.query(X)
    node = leaves[extractor.rules_.assign(extractor.rows_of_rules(X))]
    is_classification = hasattr(extractor, "classes_")
    if is_classification:
        labels = np.asarray(extractor.tree_.classes_)[tree.value[:, 0].argmax(axis=1)]
        outputs = extractor.classes_[labels.astype(int)]
    else:
        outputs = tree.value[:, 0, 0]
    return _errors_by_size(tree, node, outputs, np.asarray(target), weights, is_classification)


def _errors_by_size(
    tree: Any,
    node: np.ndarray,
    outputs: np.ndarray,
    target: np.ndarray,
    weights: Any,
    is_classification: bool,
) -> np.ndarray:
    """Return the errors and the number of rules of the trees with 1, 2, ... leaves."""
    n_leaves = (tree.node_count + 1) // 2
    parent = np.full(tree.node_count, -1)
    for children in (tree.children_left, tree.children_right):
        inner_nodes = np.flatnonzero(children >= 0)
        parent[children[inner_nodes]] = inner_nodes
    result = np.empty((2, n_leaves))
    for size in range(n_leaves, 0, -1):
        n_nodes = 2 * size - 1
        while (is_beyond := node >= n_nodes).any():
            node = np.where(is_beyond, parent[node], node)
        y_pred = outputs[node]
        if is_classification:
            losses = (y_pred != target).astype(float)
            n_rules = size - int(np.count_nonzero(equal_siblings(tree, n_nodes)))
        else:
            losses, n_rules = (y_pred - target.astype(float)) ** 2, size
        result[:, size - 1] = np.average(losses, weights=weights), n_rules
    return result


#: Results of a trial on the folds, and result of its rules from all rows on all rows.
_Results = tuple[tuple[FoldResult, ...], FoldResult | None]


def leaderboard(
    trials: Mapping[str, Sequence[FrozenTrial]],
    objective: SearchObjective,
    measures: Sequence[str],
    stopped: Mapping[str, str],
    standard_errors: float,
    limits: SearchLimits | None = None,
) -> pd.DataFrame:
    """Return a table of the trials of all extractors.

    Parameters
    ----------
    trials : dict of str to sequence of FrozenTrial
        Finished trials of each extractor.
    objective : SearchObjective
        Determines the order: by score, then by fewer rules, then by extractor and trial.
    measures : sequence of str
        Further columns.
    stopped : dict of str to str
        Reasons for extractors that got no further trials.
    standard_errors : float
        Largest distance of the winner from the best score, see
        :func:`skescore.tuning.choose_winner`.
    limits : SearchLimits, optional
        Limits that the winner must satisfy. If there are any, the table has a column
        ``within_limits``.

    Returns
    -------
    pandas.DataFrame
        One row per trial: the winner first, then by score; trials without a score are last.
    """
    quantities = measured_quantities().values()
    means = [quantity.name for quantity in quantities if not quantity.is_cost]
    costs = [quantity.name for quantity in quantities if quantity.is_cost]
    columns = [*FIRST_COLUMNS, *means, *measures, *costs, *LAST_COLUMNS]
    limits = limits or SearchLimits()
    records: list[dict[str, Any]] = []
    results: list[_Results] = []
    for name, extractor_trials in trials.items():
        for trial in extractor_trials:
            attributes = trial.user_attrs
            folds = read_folds(attributes.get("folds"))
            all_rows = read_all_rows(attributes.get("all_rows"))
            state = trial.state.name.lower()
            record = {column: attributes.get(column, np.nan) for column in columns}
            records.append(
                record
                | {
                    "extractor": name,
                    "score": record["score"] if state == "complete" else np.nan,
                    "score_on_all_rows": np.nan if all_rows is None else all_rows.get("score"),
                    "tied": False,
                    "within_limits": bool(folds) and limits.allow(folds, all_rows),
                    "params": dict(trial.params),
                    "trial": trial.number,
                    "state": state,
                    "same_as": attributes.get("same_as"),
                    "stopped": stopped.get(name, ""),
                    "error": attributes.get("error", ""),
                }
            )
            results.append((folds, all_rows))
    table = pd.DataFrame(records, columns=columns)
    # A column of objects, because missing values would turn trial numbers into floats.
    table["same_as"] = pd.Series([record["same_as"] for record in records], dtype=object)
    if not limits:
        table = table.drop(columns="within_limits")
    table = table.sort_values(
        ["score", "n_rules"], ascending=[False, True], kind="stable", na_position="last"
    )
    if objective.minimized:
        # A candidate without a score may have all measures.
        table = table.sort_values("state", key=lambda s: s != "complete", kind="stable")
    else:
        table = _winner_first(table, results, objective, standard_errors)
    return table.reset_index(drop=True)


def _winner_first(
    table: pd.DataFrame,
    results: Sequence[_Results],
    objective: SearchObjective,
    standard_errors: float,
) -> pd.DataFrame:
    """Mark the candidates that are tied with the best, and move the winner to the top."""
    rows = table.index[table["score"].notna()]
    if "within_limits" in table and table.loc[rows, "within_limits"].any():
        rows = rows[table.loc[rows, "within_limits"].astype(bool)]
    if not len(rows):
        return table
    scores = selection_scores(
        np.array([[fold["score"] for fold in results[row][0]] for row in rows], dtype=float),
        np.array([objective.with_all_rows(*results[row]) for row in rows]),
    )
    size = table.loc[rows, "size"].to_numpy(float)
    n_queries = table.loc[rows, "black_box_rows"].to_numpy(float)
    table.loc[rows[tied_with_best(scores, standard_errors)], "tied"] = True
    winner = rows[choose_winner(scores, size, n_queries, standard_errors)]
    return table.loc[[winner, *table.index.drop(winner)]]


#: Largest number of candidates that are compared on all rows or on repeated folds.
N_FINALISTS = 3
#: Largest distance of a finalist from the best candidate, in standard errors.
_FINALIST_STANDARD_ERRORS = 1.0
#: Share of the allowed distance within which equally small finalists are ties.
_TIE_SHARE = 0.5
#: Number of decimals to which outcomes are rounded before they are compared.
_OUTCOME_DECIMALS = 9


def selection_scores(scores: np.ndarray, with_all_rows: np.ndarray) -> np.ndarray:
    """Return the scores by which candidates are selected: .632 scores where they are known.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Scores on the held-out rows of each fold; greater is better.
    with_all_rows : ndarray of shape (n_candidates, n_folds)
        .632 scores, see :func:`score_632`; NaN without a result on all rows, minus infinity
        where the extraction from all rows failed.

    Returns
    -------
    ndarray of shape (n_candidates, n_folds)
        The .632 scores, if every candidate without a result on all rows is matched or exceeded on
        every fold by one with a result; otherwise `scores`. Candidates that cannot win have minus
        infinity.
    """
    has_failed = np.asarray(np.isneginf(with_all_rows).any(axis=1))
    is_unmeasured = np.asarray(np.isnan(with_all_rows).any(axis=1))
    has_final_rules = ~has_failed & ~is_unmeasured
    noise = 1e-12 * max(1.0, float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)))
    # Candidates with an infinite score on a fold cannot win.
    for candidate_index in np.flatnonzero(is_unmeasured & np.isfinite(scores).all(axis=1)):
        if not (scores[has_final_rules] >= scores[candidate_index] - noise).all(axis=1).any():
            return np.where(has_failed[:, np.newaxis], -np.inf, scores)
    if not has_final_rules.any():  # no candidate has rules of all rows
        return scores
    return np.where(has_final_rules[:, np.newaxis], with_all_rows, -np.inf)


def choose_winner(
    scores: np.ndarray, size: np.ndarray, queries: np.ndarray, standard_errors: float
) -> int:
    """Return the smallest of the candidates that are not clearly worse than the best.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Greater is better.
    size : ndarray of shape (n_candidates,)
        Sizes of the rule sets.
    queries : ndarray of shape (n_candidates,)
        Numbers of queried rows; NaN counts as infinite.
    standard_errors : float
        A candidate counts as good as the best if its mean is lower by at most this number of
        standard errors of the differences on the folds.

    Returns
    -------
    int
        Index of the candidate. Of equally small candidates, the one with the best mean wins, then
        the one with the fewest queries, then the first.

    Notes
    -----
    This is the one-standard-error rule of Breiman et al. (Classification and Regression Trees,
    1984), with paired differences on the same folds. The score of the best of many candidates is
    optimistic. The score of the smallest candidate that is not clearly worse is less optimistic.
    """
    near_best = tied_with_best(scores, standard_errors)
    keys = np.nan_to_num(queries, nan=np.inf), -_round_means(scores.mean(axis=1)), size.round(9)
    return int(near_best[np.lexsort([key[near_best] for key in keys])[0]])


def tied_with_best(
    scores: np.ndarray, standard_errors: float, *, largest_ratio: float = math.inf
) -> np.ndarray:
    """Return the indices of the candidates that count as good as the best.

    `standard_errors` is explained in :func:`choose_winner`. The standard error of the difference
    from the best counts as at most `largest_ratio` times the standard error of the best.
    """
    finite_indices = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(finite_indices):  # the user's scores may be infinite
        return np.array([np.nan_to_num(scores.sum(axis=1), nan=-np.inf).argmax()])
    scores = scores[finite_indices]
    means = scores.mean(axis=1)
    best_index = int(_round_means(means).argmax())
    gaps = scores[best_index] - scores
    n_folds = scores.shape[1]
    standard_error = (
        gaps.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))
    )
    error_of_best = scores[best_index].std(ddof=1) / np.sqrt(n_folds) if n_folds > 1 else 0.0
    if error_of_best > 0:
        standard_error = np.minimum(standard_error, largest_ratio * error_of_best)
    noise = 1e-12 * max(1.0, abs(means[best_index]))
    return finite_indices[means[best_index] - means <= standard_errors * standard_error + noise]


def _round_means(means: np.ndarray) -> np.ndarray:
    """Round means, because their last bits depend on the order of the sums."""
    scale = max(1.0, float(np.abs(means[np.isfinite(means)]).max(initial=0.0)))
    return (means / scale).round(12) * scale


def repeated_cv(cv: Any, task: str, seed: int) -> Any | None:
    """Return a splitter that draws as many folds as `cv`, with another seed.

    Return None if the folds of `cv` cannot be drawn again.
    """
    if isinstance(cv, KFold | StratifiedKFold) and cv.shuffle:
        return type(cv)(cv.n_splits, shuffle=True, random_state=seed)
    if cv is not None and not isinstance(cv, int | np.integer):
        return None
    kind = StratifiedKFold if task == "classification" else KFold
    return kind(5 if cv is None else int(cv), shuffle=True, random_state=seed)


def find_finalists(
    candidates: Candidates, winner: tuple[str, int], objective: SearchObjective
) -> list[Candidate]:
    """Return the winner, then by score the candidates that are about as good as the best.

    At most `N_FINALISTS` candidates with different results are returned; none if the winner is not
    among the candidates. `winner` is an extractor and a trial.
    """
    if not len(candidates):
        return []
    scores = _score_candidates(candidates, objective)
    order = np.argsort(-scores.mean(axis=1), kind="stable")
    near_best = set(tied_with_best(scores, _FINALIST_STANDARD_ERRORS).tolist())
    winners = [c for c in candidates if (c.extractor, c.trial) == winner]
    ordered_candidates = winners + [candidates[int(i)] for i in order if int(i) in near_best]
    finalists: dict[tuple[float, ...], Candidate] = {}
    for candidate in ordered_candidates:
        outcome = tuple(
            round(float(fold.get(name)), _OUTCOME_DECIMALS)
            for fold in candidate.folds
            for name in ("score", "n_rules", "completeness_volume")
        )
        finalists.setdefault(outcome, candidate)
    return list(finalists.values())[:N_FINALISTS] if winners else []


def compare_finalists(
    finalists: Sequence[Candidate],
    evaluate: Callable[[Sequence[Candidate]], Sequence[FoldResult]],
    objective: SearchObjective,
    standard_errors: float,
) -> tuple[int, np.ndarray]:
    """Evaluate finalists on further folds, and choose the winner by all folds.

    The smallest finalist that is not clearly worse than the best wins. Of equally small finalists
    within half of that distance, the one that agrees most with the black box wins, then the best.

    `evaluate` returns the results of candidates on the further folds, one candidate after another.
    Returns the index of the winner and the mean scores over all folds. A finalist that failed has
    the score NaN; if the first finalist failed, it remains the winner.
    """
    results = evaluate(finalists)
    n_folds = len(results) // len(finalists)
    extended_finalists = [
        replace(c, folds=(*c.folds, *results[index * n_folds : (index + 1) * n_folds]))
        for index, c in enumerate(finalists)
    ]
    means = np.array([np.mean([fold.get("score") for fold in c.folds]) for c in extended_finalists])
    finite_indices = np.flatnonzero(np.isfinite(means))
    if 0 not in finite_indices:
        return 0, means
    remaining = Candidates(extended_finalists[i] for i in finite_indices)
    scores = _score_candidates(remaining, objective)
    sizes = remaining.means("size").round(9)
    near_best = tied_with_best(scores, standard_errors)
    smallest = near_best[sizes[near_best] == sizes[near_best].min()]
    ties = smallest[tied_with_best(scores[smallest], _TIE_SHARE * standard_errors)]
    fidelity = np.nan_to_num(remaining.means("fidelity"), nan=-np.inf).round(3)
    faithful = ties[fidelity[ties] == fidelity[ties].max()]
    queries = remaining.means("black_box_rows")
    # With equal sizes, the best mean wins, then the fewest queries, then the first.
    winner = choose_winner(scores[faithful], sizes[faithful], queries[faithful], 0.0)
    return int(finite_indices[faithful[winner]]), means


def _score_candidates(candidates: Candidates, objective: SearchObjective) -> np.ndarray:
    """Return the scores by which the search selects, by candidate and fold."""
    return selection_scores(
        candidates.measure("score"),
        np.array([objective.with_all_rows(c.folds, c.all_rows) for c in candidates]),
    )


#: Largest distance of the shortest list from the best correctness, in standard errors.
_SHORTEST_TOLERANCE = 1.0
#: Largest standard error of a difference, relative to the standard error of the best: that of two
#: independent lists with the same spread. A list that fails on some folds is not as right as the
#: best, although its difference from the best has a large standard error.
_LARGEST_RATIO = math.sqrt(2)
#: Smallest gain of a larger list that is reported.
_LEAST_GAIN = 0.001
#: Roles of the alternatives, in their order.
ROLES = ("best", "shortest", "most faithful")


@dataclass(frozen=True)
class Alternative:
    """A rule list of a search with the figures that people need to choose it.

    Parameters
    ----------
    roles : tuple of str
        ``"best"`` by the score of the search, ``"shortest"`` of the lists whose correctness (or
        fidelity, without a target) is within one standard error of the best, or ``"most faithful"``
        within the limit of rules.
    extractor : str
        Registered name.
    params : dict
        Hyperparameters.
    trial : int
        Number of the trial.
    n_rules : float
        Number of rules.
    correctness : float
        Agreement with the data on held-out rows: accuracy or R²; NaN without a target.
    fidelity : float
        Agreement with the black box on rows that it was not fitted on: accuracy or R².
    next_rules, next_correctness, next_fidelity : float
        The same figures of the smallest candidate with more rules and a higher correctness (or
        fidelity, without a target); NaN if there is none. If its rules were not extracted from all
        rows, their number is the mean over the folds.
    rules : RuleSet
        The rules, extracted from all rows.
    fidelity_rows : str, default="held-out rows"
        Rows on which `fidelity` is measured.
    """

    roles: tuple[str, ...]
    extractor: str
    params: dict[str, Any]
    trial: int
    n_rules: float
    correctness: float
    fidelity: float
    next_rules: float
    next_correctness: float
    next_fidelity: float
    rules: RuleSet
    fidelity_rows: str = "held-out rows"

    @property
    def is_constant(self) -> bool:
        """True if the only rule has no condition and the same conclusion for all rows."""
        return is_constant(self.rules)

    def __str__(self) -> str:
        count = f"{self.n_rules:g} rule{'' if self.n_rules == 1 else 's'}"
        title = f"{' and '.join(self.roles)}: {self.extractor} with {count}"
        measure = "R²" if self.rules.task == "regression" else "accuracy"
        if not math.isnan(self.correctness):
            title += f", correctness {self.correctness:.3f} ({measure} on held-out rows)"
        if not math.isnan(self.fidelity):
            rows = f"{measure} against the model on {self.fidelity_rows}"
            title += f", fidelity {self.fidelity:.3f} ({rows})"
        return "\n".join(filter(None, [title, str(self.rules), self.describe_gain()]))

    def describe_gain(self) -> str:
        """Describe the gain from more rules.

        Returns
        -------
        str
            Number of rules, and differences of correctness and fidelity; empty without a gain.
        """
        if math.isnan(self.next_rules):
            return ""
        parts = []
        for name, value, next_value in (
            ("correctness", self.correctness, self.next_correctness),
            ("fidelity", self.fidelity, self.next_fidelity),
        ):
            if not math.isnan(next_value - value):
                parts.append(f"{name} {next_value - value:+.3f}")
        n_more = self.next_rules - self.n_rules
        is_whole = abs(n_more - round(n_more)) < 0.05
        count = plural(round(n_more), "more rule") if is_whole else f"{n_more:.1f} more rules"
        return f"with {count}: {', '.join(parts)}"


@dataclass(frozen=True)
class _Choice:
    """A candidate, its roles, and a larger candidate that shows the gain from more rules."""

    candidate: Candidate
    roles: tuple[str, ...]
    next_candidate: Candidate | None


def is_constant(rules: RuleSet) -> bool:
    """Return whether rules predict the same for all rows."""
    if len(rules) != 1:
        return False
    rule = rules.rules[0]
    return not rule.conditions and not isinstance(rule.output, LinearOutput)


def n_final_rules(candidate: Candidate) -> float:
    """Return the number of rules extracted from all rows, otherwise the mean over the folds."""
    on_folds = mean_of(candidate.folds, "n_rules")
    if candidate.all_rows is None:
        return on_folds
    return float(candidate.all_rows.get("n_rules", on_folds))


def choose_alternatives(
    candidates: Candidates,
    winner: tuple[str, int],
    *,
    max_rules: float,
    n_rules: Mapping[tuple[str, int], int] | None = None,
) -> list[_Choice]:
    """Choose the candidates of the three roles; one candidate may have several.

    Parameters
    ----------
    candidates : Candidates
        Candidates of a search that satisfy its limits.
    winner : tuple of (str, int)
        Extractor and trial of the winner.
    max_rules : float
        Largest number of rules of the most faithful list.
    n_rules : dict of (str, int) to int, optional
        Numbers of rules that candidates have on all rows, by extractor and trial, if they are known
        in addition to those in the results of the candidates.

    Returns
    -------
    list of _Choice
        Candidates in the order of their first roles.
    """
    if not len(candidates):
        return []
    n_rules = n_rules or {}
    sizes = np.array([n_rules.get((c.extractor, c.trial), n_final_rules(c)) for c in candidates])
    by_role: dict[str, int] = {}
    for index, candidate in enumerate(candidates):
        if (candidate.extractor, candidate.trial) == winner:
            by_role["best"] = index
    fidelity = _measure_by_fold(candidates, "fidelity")
    correctness = _measure_by_fold(candidates, "correctness")
    agreement = fidelity if np.isnan(correctness).all() else correctness
    if np.isfinite(agreement).all(axis=1).any():
        near_best = tied_with_best(
            np.where(np.isfinite(agreement), agreement, -np.inf),
            _SHORTEST_TOLERANCE,
            largest_ratio=_LARGEST_RATIO,
        )
        order = np.lexsort([-agreement[near_best].mean(axis=1), sizes[near_best].round(9)])
        by_role["shortest"] = int(near_best[order[0]])
    short_lists = np.flatnonzero((sizes <= max_rules + 1e-9) & np.isfinite(fidelity).all(axis=1))
    if len(short_lists):
        means = fidelity[short_lists].mean(axis=1).round(9)
        order = np.lexsort([sizes[short_lists], -means])
        by_role["most faithful"] = int(short_lists[order[0]])
    roles_of: dict[int, list[str]] = {}
    for role in ROLES:
        if role in by_role:
            roles_of.setdefault(by_role[role], []).append(role)
    means = np.nan_to_num(agreement.mean(axis=1), nan=-np.inf)
    return [
        _Choice(candidates[index], tuple(roles), _next_larger(candidates, sizes, means, index))
        for index, roles in roles_of.items()
    ]


def _next_larger(
    candidates: Candidates, sizes: np.ndarray, means: np.ndarray, index: int
) -> Candidate | None:
    """Return the best candidate of the next larger size at which some candidate is better."""
    is_better = (sizes > sizes[index] + 0.5) & (means >= means[index] + _LEAST_GAIN)
    if not is_better.any():
        return None
    size = sizes[is_better].min()
    indices = np.flatnonzero(is_better & (sizes == size))
    return candidates[int(indices[means[indices].argmax()])]


def _measure_by_fold(candidates: Candidates, name: str) -> np.ndarray:
    return np.array([[fold.get(name) for fold in candidate.folds] for candidate in candidates])


def make_alternatives(
    choices: Sequence[_Choice],
    extract_rules: Callable[[Candidate], RuleSet],
    fidelity_rows: str = "held-out rows",
) -> tuple[Alternative, ...]:
    """Extract the rules of the chosen candidates from all rows, and collect their figures.

    Parameters
    ----------
    choices : sequence of _Choice
        The candidates.
    extract_rules : callable
        Returns the rules of a candidate.
    fidelity_rows : str, default="held-out rows"
        Rows on which fidelity is measured.

    Returns
    -------
    tuple of Alternative
        One per rule list. Candidates with equal rules are merged, with the figures of the first.
    """
    alternatives: list[Alternative] = []
    for choice in choices:
        candidate, next_candidate = choice.candidate, choice.next_candidate
        rules = extract_rules(candidate)
        text = str(rules)
        duplicate = next((i for i, a in enumerate(alternatives) if str(a.rules) == text), None)
        if duplicate is not None:
            roles = alternatives[duplicate].roles + choice.roles
            alternatives[duplicate] = replace(alternatives[duplicate], roles=roles)
            continue
        alternatives.append(
            Alternative(
                choice.roles,
                candidate.extractor,
                dict(candidate.params),
                candidate.trial,
                float(len(rules)),
                mean_of(candidate.folds, "correctness"),
                mean_of(candidate.folds, "fidelity"),
                *_summarize_candidate(next_candidate),
                rules,
                fidelity_rows,
            )
        )
    return tuple(alternatives)


def _summarize_candidate(candidate: Candidate | None) -> tuple[float, float, float]:
    """Return number of rules, correctness and fidelity; NaN without a candidate."""
    if candidate is None:
        return math.nan, math.nan, math.nan
    agreement = (mean_of(candidate.folds, name) for name in ("correctness", "fidelity"))
    return (n_final_rules(candidate), *agreement)  # type: ignore[return-value]
