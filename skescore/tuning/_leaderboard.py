"""Every trial of a search in one table, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from optuna.trial import FrozenTrial

from skescore.tuning._evaluation import MEASURES
from skescore.tuning._goals import Goal
from skescore.tuning._winner import judged, winner, within

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
        How far from the best score the winner may be, see
        :func:`skescore.tuning._winner.winner`.

    Returns
    -------
    pandas.DataFrame
        One row per trial: the winner, then by score; trials without a score are last.
    """
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
            measured.append((kept.get("folds", ()), kept.get("all_rows")))
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
                np.array([[fold["score"] for fold in measured[n][0]] for n in done], dtype=float),
                np.array([goal.with_all_rows(*measured[n]) for n in done]),
            )
            size = table.loc[done, "size"].to_numpy(float)
            table.loc[done[within(scores, standard_errors)], "tied"] = True
            asked = table.loc[done, "black_box_rows"].to_numpy(float)
            first = done[winner(scores, size, asked, standard_errors)]
            table = table.loc[[first, *table.index.drop(first)]]
    return table.reset_index(drop=True)
