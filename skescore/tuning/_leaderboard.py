"""The leaderboard of a search: one row per trial, the winner first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from optuna.trial import FrozenTrial

from skescore.scorers import measured_quantities
from skescore.tuning._fold_result import FoldResult, read_all_rows, read_folds
from skescore.tuning._limits import SearchLimits
from skescore.tuning._search_objective import SearchObjective
from skescore.tuning._winner import choose_winner, judged, within

#: Columns before and after those of the measured quantities and of the user's measures.
_FIRST_COLUMNS = ("extractor", "score", "score_std")
_LAST_COLUMNS = (
    "score_on_all_rows",
    "score_repeated",
    "tied",
    "within_limits",
    "params",
    "trial",
    "state",
    "same_as",
    "stopped",
    "error",
)
COLUMNS = (*_FIRST_COLUMNS, *_LAST_COLUMNS)

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
        For extractors without further trials, the reason.
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
    columns = [*_FIRST_COLUMNS, *means, *measures, *costs, *_LAST_COLUMNS]
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
    scores = judged(
        np.array([[fold["score"] for fold in results[row][0]] for row in rows], dtype=float),
        np.array([objective.with_all_rows(*results[row]) for row in rows]),
    )
    size = table.loc[rows, "size"].to_numpy(float)
    n_queries = table.loc[rows, "black_box_rows"].to_numpy(float)
    table.loc[rows[within(scores, standard_errors)], "tied"] = True
    winner = rows[choose_winner(scores, size, n_queries, standard_errors)]
    return table.loc[[winner, *table.index.drop(winner)]]
