"""Tables of a benchmark: means and deviations per data set, ranks and wins over data sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from skescore._validation import check_choice
from skescore.bench._rows import row_columns
from skescore.bench._statistics import Comparison, compare_ranks
from skescore.bench._suites import RANKABLE_COLUMNS
from skescore.scorers import SCORE_SPECS

__all__ = ["Ranking", "failures", "rank_extractors", "ranked_columns", "summarize"]

#: Columns that are averaged over seeds and folds in addition to scores and further measures.
_AVERAGED = (
    "performance",
    "loss",
    "n_rules",
    "completeness_volume",
    "completeness_instances",
    "fidelity",
    "black_box_quality",
    "seconds",
    "black_box_calls",
    "black_box_rows",
)
_KEYS = ["data", "black_box", "extractor"]


def ranked_columns(measures: Iterable[str] = ()) -> dict[str, bool]:
    """Return the columns that can rank extractors, with whether greater is better.

    Parameters
    ----------
    measures : iterable of str, default=()
        Further measures of the run.

    Returns
    -------
    dict of str to bool
        Whether greater is better by column, scores first.
    """
    scores = {name: spec.greater_is_better for name, spec in SCORE_SPECS.items()}
    return scores | RANKABLE_COLUMNS | dict.fromkeys(measures, True)


def _measures_of(rows: pd.DataFrame) -> list[str]:
    """Return the further measures of a run."""
    standard_columns = row_columns()
    return [str(name) for name in rows.select_dtypes("number") if name not in standard_columns]


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Average the rows of a benchmark over seeds and folds.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows from :func:`skescore.bench.read_rows`.

    Returns
    -------
    pandas.DataFrame
        One row per data set, black box and extractor, in the order of `rows`: numbers of ``runs``,
        of runs that ``failed`` and of runs whose ICE is ``undefined``; ``NAME_mean`` and
        ``NAME_std`` of scores and measures over the runs with a value, or NaN if there is none. The
        standard deviation divides by the number of runs.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.bench import row_columns, summarize
    >>> row = {"data": "iris", "black_box": "knn", "extractor": "cart", "state": "complete"}
    >>> rows = pd.DataFrame([row | {"ice": 0.5}, row | {"ice": 0.7}]).reindex(
    ...     columns=row_columns()
    ... )
    >>> summarize(rows)[["runs", "failed", "ice_mean", "ice_std"]].round(3).to_dict("records")
    [{'runs': 2, 'failed': 0, 'ice_mean': 0.6, 'ice_std': 0.1}]
    """
    measures = (*SCORE_SPECS, *_AVERAGED, *_measures_of(rows))
    result = []
    for key, part in rows.groupby(_KEYS, sort=False):
        complete = part[part["state"] == "complete"]
        row: dict[str, Any] = dict(zip(_KEYS, key, strict=True))
        row["runs"] = len(part)
        row["failed"] = len(part) - len(complete)
        row["undefined"] = int(complete["ice"].isna().sum())
        for name in measures:
            values = complete[name].dropna().to_numpy(dtype=float)
            row[f"{name}_mean"] = float(values.mean()) if len(values) else np.nan
            row[f"{name}_std"] = float(values.std()) if len(values) else np.nan
        result.append(row)
    columns = [*_KEYS, "runs", "failed", "undefined"]
    columns += [f"{name}_{part}" for name in measures for part in ("mean", "std")]
    return pd.DataFrame(result, columns=columns)


@dataclass(eq=False)
class Ranking:
    """Extractors of one task, ranked on every data set of the task.

    Parameters
    ----------
    task : str
        ``"classification"`` or ``"regression"``; each task has its own ranking.
    score : str
        Column that ranks the extractors.
    table : pandas.DataFrame
        One row per extractor, the best first: ``rank`` (average over data sets), ``wins`` (data
        sets on which it is best or tied) and ``data_sets``.
    left_out : tuple of str
        Extractors without a rank because they did not run on all data sets of the task.
    comparison : Comparison
        Tests of the differences between the ranks.
    """

    task: str
    score: str
    table: pd.DataFrame
    left_out: tuple[str, ...]
    comparison: Comparison


def rank_extractors(
    rows: pd.DataFrame, score: str = "ice", *, alpha: float = 0.05
) -> list[Ranking]:
    """Rank extractors on every data set and test whether they differ.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows from :func:`skescore.bench.read_rows`.
    score : str, default="ice"
        A score, another column of :func:`ranked_columns` or a further measure of the run.
    alpha : float, default=0.05
        Significance level of the tests.

    Returns
    -------
    list of Ranking
        One ranking per task.

    Raises
    ------
    ValueError
        If `score` is not a column that can rank extractors.

    Notes
    -----
    On a data set, the means over all black boxes, seeds and folds are ranked. An extractor with a
    larger share of failed runs and runs without a score ranks lower, whatever its mean is. So no
    extractor wins because its difficult runs are omitted.
    """
    columns = ranked_columns(_measures_of(rows))
    check_choice("score", score, columns)
    sign = -1 if columns[score] else 1
    return [
        _rank_task(str(task), part, score, sign, alpha)
        for task, part in rows.groupby("task", sort=False)
    ]


def _rank_task(task: str, rows: pd.DataFrame, score: str, sign: int, alpha: float) -> Ranking:
    rows = rows.assign(_value=rows[score].where(rows["state"] == "complete"))
    grouped = rows.groupby(["data", "extractor"], sort=False)["_value"]
    means = grouped.mean().unstack("extractor")
    failed_shares = (1 - grouped.count() / grouped.size()).unstack("extractor")
    names = [name for name in means.columns if failed_shares[name].notna().all()]
    left_out = tuple(str(name) for name in means.columns if name not in names)
    ranks = pd.DataFrame(
        [
            _rank_data_set(sign * means.loc[data, names], failed_shares.loc[data, names])
            for data in means.index
        ],
        index=means.index,
        columns=names,
    )
    comparison = compare_ranks(ranks, alpha=alpha)
    order = list(comparison.average_ranks.index)
    table = pd.DataFrame(
        {
            "extractor": order,
            "rank": comparison.average_ranks.to_numpy(),
            "wins": [int((ranks[name] == ranks.min(axis=1)).sum()) for name in order],
            "data_sets": len(ranks),
        }
    )
    return Ranking(task, score, table, left_out, comparison)


def _rank_data_set(losses: pd.Series, failed_shares: pd.Series) -> np.ndarray:
    """Rank by the share of runs without a value, then by the mean; ties share their mean rank."""
    # Values that differ only by rounding are ties.
    rounded = [
        np.inf if np.isnan(value) else float(f"{value:.10g}") for value in losses.to_numpy(float)
    ]
    keys = list(zip(failed_shares.round(9), rounded, strict=True))
    order = sorted(set(keys))
    return np.asarray(rankdata([order.index(key) for key in keys]), dtype=float)


def failures(rows: pd.DataFrame) -> pd.DataFrame:
    """Count the rows that failed, by data set, black box, extractor and error.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows from :func:`skescore.bench.read_rows`.

    Returns
    -------
    pandas.DataFrame
        Columns ``data``, ``black_box``, ``extractor``, ``error`` and ``count``.
    """
    failed = rows[rows["state"] == "failed"]
    counted = failed.groupby([*_KEYS, "error"], sort=False).size()
    return counted.rename("count").reset_index()
