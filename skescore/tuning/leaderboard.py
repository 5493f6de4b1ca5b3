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
    for name, found in trials.items():
        for trial in found:
            kept = trial.user_attrs
            state = trial.state.name.lower()
            record: dict[str, Any] = {
                "tied": False,
                "extractor": name,
                "score": kept.get("score", np.nan) if state == "complete" else np.nan,
                **{c: kept.get(c, np.nan) for c in (*_COLUMNS, *measures, *_COSTS)},
                "params": dict(trial.params),
                "trial": trial.number,
                "state": state,
                "same_as": kept.get("same_as"),
                "stopped": stopped.get(name, ""),
                "error": kept.get("error", ""),
            }
            records.append(record)
            fold_scores.append([fold["score"] for fold in kept.get("folds", ())])
    columns = [
        "extractor", "score", *_COLUMNS, *measures, *_COSTS, "tied", "params", "trial", "state",
        "same_as", "stopped", "error",
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
            scores = np.array([fold_scores[place] for place in done], dtype=float)
            costs = [table.loc[done, c].to_numpy(float) for c in ("size", "black_box_rows")]
            table.loc[done[within(scores, standard_errors)], "tied"] = True
            first = done[winner(scores, costs, standard_errors)]
            table = table.loc[[first, *table.index.drop(first)]]
    return table.reset_index(drop=True)


def winner(scores: np.ndarray, costs: Sequence[np.ndarray], standard_errors: float) -> int:
    """Choose a candidate: the cheapest of those that are as good as the best, as far as one knows.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_folds)
        Greater is better; those with the greatest mean come first.
    costs : sequence of ndarray of shape (n_candidates,)
        Less is better, the first weighs most; undefined ones count as infinite.
    standard_errors : float
        Candidates whose mean is less than so many standard errors (of the differences on the
        folds) below the best count as good as it.

    Returns
    -------
    int
        Of equally cheap candidates the one with the best mean, then the first.

    Notes
    -----
    The one-standard-error rule of Breiman et al. (Classification and Regression Trees, 1984), with
    the paired differences of the same folds. The best of many candidates owes part of its score to
    luck; the cheapest of those that are no worse by more than chance owes less.
    """
    near = within(scores, standard_errors)
    keys = [np.nan_to_num(cost[near].round(9), nan=np.inf) for cost in costs]
    order = np.lexsort([-scores.mean(axis=1)[near], *keys[::-1]])
    return int(near[order[0]])


def within(scores: np.ndarray, standard_errors: float) -> np.ndarray:
    """Give the places of the candidates that are as good as the first, see :func:`winner`."""
    behind = scores[0] - scores
    n_folds = scores.shape[1]
    error = behind.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(len(scores))
    means = scores.mean(axis=1)
    noise = 1e-12 * max(1.0, abs(means[0]))
    return np.flatnonzero(means[0] - means <= standard_errors * error + noise)
