"""Comparison of the best candidates on repeated folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from skescore.tuning._candidates import Candidate, Candidates
from skescore.tuning._fold_result import FoldResult
from skescore.tuning._search_objective import SearchObjective
from skescore.tuning._winner import choose_winner, judged, within

#: Largest number of candidates that are compared on all rows or on repeated folds.
N_FINALISTS = 3
#: Largest distance of a finalist from the best candidate, in standard errors.
_STANDARD_ERRORS = 1.0
#: Share of the allowed distance within which equally small finalists are ties.
_TIE = 0.5
#: Largest number of decimals in which equal outcomes agree.
_DECIMALS = 9


def repeated_cv(cv: Any, task: str, seed: int) -> Any | None:
    """Return a splitter with other folds of the same number.

    It is None if `cv` is a splitter whose folds cannot be drawn again.
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
    """Return the winner and the candidates that are about as good as the best.

    Parameters
    ----------
    candidates : Candidates
        Candidates that may win.
    winner : tuple of str and int
        Extractor and trial of the winner.
    objective : SearchObjective
        Score of the search.

    Returns
    -------
    list of Candidate
        At most `N_FINALISTS` candidates with different outcomes: the winner, then by score.
    """
    if not len(candidates):
        return []
    scores = _judged_scores(candidates, objective)
    order = np.argsort(-scores.mean(axis=1), kind="stable")
    near = set(within(scores, _STANDARD_ERRORS).tolist())
    first = [c for c in candidates if (c.extractor, c.trial) == winner]
    ordered = first + [candidates[int(i)] for i in order if int(i) in near]
    finalists: dict[tuple[float, ...], Candidate] = {}
    for candidate in ordered:
        outcome = tuple(
            round(float(fold.get(name)), _DECIMALS)
            for fold in candidate.folds
            for name in ("score", "n_rules", "completeness_volume")
        )
        finalists.setdefault(outcome, candidate)
    return list(finalists.values())[:N_FINALISTS] if first else []


def compare_finalists(
    finalists: Sequence[Candidate],
    evaluate: Callable[[Sequence[Candidate]], Sequence[FoldResult]],
    objective: SearchObjective,
    standard_errors: float,
) -> tuple[int, np.ndarray]:
    """Evaluate finalists on further folds, and choose the winner by all folds.

    The smallest finalist that is not clearly worse than the best wins. Of equally small ones within
    half of that distance, the one that agrees most with the black box wins, then the best.

    Parameters
    ----------
    finalists : sequence of Candidate
        The winner so far, then others.
    evaluate : callable
        Returns the results of candidates on the further folds, one candidate after the other.
    objective : SearchObjective
        Score of the search.
    standard_errors : float
        Largest distance of the winner from the best finalist, in standard errors of the
        differences, see :func:`choose_winner`.

    Returns
    -------
    winner : int
        Index of the winner; 0 if a finalist failed.
    scores : ndarray of shape (n_finalists,)
        Mean scores over all folds; NaN for a finalist that failed.
    """
    results = evaluate(finalists)
    n_folds = len(results) // len(finalists)
    extended = [
        replace(c, folds=(*c.folds, *results[index * n_folds : (index + 1) * n_folds]))
        for index, c in enumerate(finalists)
    ]
    means = np.array([np.mean([fold.get("score") for fold in c.folds]) for c in extended])
    complete = np.flatnonzero(np.isfinite(means))
    if 0 not in complete:
        return 0, means
    remaining = Candidates(extended[i] for i in complete)
    scores = _judged_scores(remaining, objective)
    sizes = remaining.means("size").round(9)
    near = within(scores, standard_errors)
    smallest = near[sizes[near] == sizes[near].min()]
    tied = smallest[within(scores[smallest], _TIE * standard_errors)]
    fidelity = np.nan_to_num(remaining.means("fidelity"), nan=-np.inf).round(3)
    faithful = tied[fidelity[tied] == fidelity[tied].max()]
    queries = remaining.means("black_box_rows")
    # With equal sizes, the best mean wins, then the fewest queries, then the first.
    winner = choose_winner(scores[faithful], sizes[faithful], queries[faithful], 0.0)
    return int(complete[faithful[winner]]), means


def _judged_scores(candidates: Candidates, objective: SearchObjective) -> np.ndarray:
    """Return the scores by which the search selects, by candidate and fold."""
    return judged(
        candidates.measure("score"),
        np.array([objective.with_all_rows(c.folds, c.all_rows) for c in candidates]),
    )
