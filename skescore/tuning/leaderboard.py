"""Every trial of a search in one table, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from optuna.trial import FrozenTrial

from skescore.tuning.folds import MEASURES
from skescore.tuning.goals import Goal

_COLUMNS = ("score_std", *MEASURES)
_COSTS = ("seconds", "black_box_calls", "black_box_rows")
#: Share of the score on all rows in what candidates are judged by, the rest being that on held-out
#: rows; see :func:`judged`.
SHARE_OF_ALL_ROWS = 0.368


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
        How far from the best score the winner may be, see :func:`winner`.

    Returns
    -------
    pandas.DataFrame
        One row per trial: the winner, then by score; trials without a score are last.
    """
    records = []
    fold_scores = []
    on_all_rows = []
    for name, found in trials.items():
        for trial in found:
            kept = trial.user_attrs
            state = trial.state.name.lower()
            record: dict[str, Any] = {
                "tied": False,
                "extractor": name,
                "score": kept.get("score", np.nan) if state == "complete" else np.nan,
                **{c: kept.get(c, np.nan) for c in (*_COLUMNS, *measures, *_COSTS)},
                "score_on_all_rows": (kept.get("all_rows") or {}).get("score", np.nan),
                "params": dict(trial.params),
                "trial": trial.number,
                "state": state,
                "same_as": kept.get("same_as"),
                "stopped": stopped.get(name, ""),
                "error": kept.get("error", ""),
            }
            records.append(record)
            fold_scores.append([fold["score"] for fold in kept.get("folds", ())])
            without = np.nan if kept.get("all_rows") is None else -np.inf
            on_all_rows.append(np.nan_to_num(record["score_on_all_rows"], nan=without))
    columns = [
        "extractor", "score", *_COLUMNS, *measures, *_COSTS, "score_on_all_rows", "tied", "params",
        "trial", "state", "same_as", "stopped", "error",
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
                np.array([fold_scores[place] for place in done], dtype=float),
                np.array([on_all_rows[place] for place in done], dtype=float),
            )
            size = table.loc[done, "size"].to_numpy(float)
            table.loc[done[within(scores, standard_errors)], "tied"] = True
            asked = table.loc[done, "black_box_rows"].to_numpy(float)
            first = done[winner(scores, size, asked, standard_errors)]
            table = table.loc[[first, *table.index.drop(first)]]
    return table.reset_index(drop=True)


def judged(scores: np.ndarray, on_all_rows: np.ndarray) -> np.ndarray:
    """Give what candidates are judged by: their scores on held-out rows and on all rows.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        On the held-out rows of each fold; greater is better.
    on_all_rows : ndarray of shape (n_candidates,)
        Of the rules that are extracted from all rows, on these rows; NaN where that was not
        measured, minus infinity where there are no such rules.

    Returns
    -------
    ndarray of shape (n_candidates, n_folds)
        The weighted means. Candidates that were not measured on all rows have minus infinity if
        each of them is equalled on every fold by one that was; else all have their `scores`.
        Those without rules of all rows never win.

    Notes
    -----
    The weights are those of the .632 estimator (Efron, Estimating the error rate of a prediction
    rule, 1983). Held-out rows judge rules like those that one will get, with much noise where rows
    are few; all rows judge the rules themselves, with little noise, but too favourably.
    """
    known, failed = np.isfinite(on_all_rows), np.isneginf(on_all_rows)
    best_of_known = scores[known]
    noise = 1e-12 * max(1.0, float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0)))
    for place in np.flatnonzero(~known & ~failed):
        if not (best_of_known >= scores[place] - noise).all(axis=1).any():
            return np.where(failed[:, np.newaxis] & ~failed.all(), -np.inf, scores)
    if not known.any():  # nothing has rules of all rows
        return scores
    mixed = np.full(scores.shape, -np.inf)
    share = SHARE_OF_ALL_ROWS * on_all_rows[known, np.newaxis]
    mixed[known] = (1 - SHARE_OF_ALL_ROWS) * scores[known] + share
    return mixed


def winner(scores: np.ndarray, size: np.ndarray, asked: np.ndarray, standard_errors: float) -> int:
    """Choose a candidate: the smallest of those that are as good as the best, as far as one knows.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Greater is better.
    size : ndarray of shape (n_candidates,)
        How much there is to read.
    asked : ndarray of shape (n_candidates,)
        Questions to the black box; undefined ones count as infinitely many.
    standard_errors : float
        Candidates whose mean is less than so many standard errors (of the differences on the
        folds) below the best count as good as it.

    Returns
    -------
    int
        Of equally small candidates the one with the best mean, then the one that asked least, then
        the first.

    Notes
    -----
    After the one-standard-error rule of Breiman et al. (Classification and Regression Trees, 1984),
    with the paired differences of the same folds. The best of many candidates owes part of its
    score to luck; the smallest of those that are no worse by more than chance owes less.
    """
    near = within(scores, standard_errors)
    keys = np.nan_to_num(asked, nan=np.inf), -_rounded(scores.mean(axis=1)), size.round(9)
    return int(near[np.lexsort([key[near] for key in keys])[0]])


def within(scores: np.ndarray, standard_errors: float) -> np.ndarray:
    """Give the places of the candidates that are as good as the best, see :func:`winner`."""
    places = np.flatnonzero(np.isfinite(scores).all(axis=1))
    if not len(places):  # scores of one's own may be infinite
        return np.array([np.nan_to_num(scores.sum(axis=1), nan=-np.inf).argmax()])
    scores = scores[places]
    means = scores.mean(axis=1)
    best = int(_rounded(means).argmax())
    behind = scores[best] - scores
    n_folds = scores.shape[1]
    error = behind.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))
    noise = 1e-12 * max(1.0, abs(means[best]))
    return places[means[best] - means <= standard_errors * error + noise]


def _rounded(means: np.ndarray) -> np.ndarray:
    """Means without their last bits, which hang on the order of the sums."""
    scale = max(1.0, float(np.abs(means[np.isfinite(means)]).max(initial=0.0)))
    return (means / scale).round(12) * scale
