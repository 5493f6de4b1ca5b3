"""Conversion of results (searches, candidates, tables, dicts) for plots."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from skescore._validation import check_choice
from skescore.plots._style import number
from skescore.registry import extractor_label
from skescore.scorers import ScoreSpec, all_weights, find_score, measured_quantities
from skescore.tuning import Candidate, Candidates
from skescore.tuning._candidates import as_candidates

#: Columns of a table that are the parts of scores.
MEASURES = tuple(measured_quantities(costs=False))
#: Columns that identify a candidate in a table.
KEYS = ("data", "black_box", "extractor", "params")
_ACCEPTED = (
    "Pass a fitted ExtractorSearchCV, Candidates, a leaderboard or rows of a benchmark as a data "
    "frame"
)


def results_table(results: Any, *, plain: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return results as a table with one row per candidate and the means over folds and seeds."""
    if isinstance(results, Mapping):
        return _from_mapping(results, plain)
    if isinstance(results, pd.DataFrame):
        return _from_frame(results)
    candidates = _candidates(results, plain)
    table = candidates.table()
    table["label"] = [
        candidate_label(c.extractor, table["n_rules"][i]) for i, c in enumerate(candidates)
    ]
    return table


def results_candidates(results: Any) -> Candidates:
    """Return results as candidates with their folds."""
    if not isinstance(results, pd.DataFrame):
        return _candidates(results, ())
    rows = finished(results)
    one_task_only(rows)
    needed = [name for name in MEASURES if name != "size"]
    missing_columns = [name for name in needed if name not in rows]
    if missing_columns:
        raise ValueError(
            f"results lacks the columns {missing_columns}; it has {list(rows.columns)}."
        )
    if "size" not in rows:
        rows = rows.assign(size=rows["n_rules"])
    keys = [name for name in KEYS if name in rows]
    text = rows.assign(params=rows["params"].map(_as_text)) if "params" in rows else rows
    groups = text.groupby(keys, sort=False, dropna=False).indices
    if "fold" not in rows and "seed" not in rows:  # every row of a leaderboard is a candidate
        groups = {(i,): np.array([i]) for i in range(len(rows))}
    candidates = []
    for i, members in enumerate(groups.values()):
        part = rows.iloc[members]
        first = part.iloc[0]
        params = first.get("params", {})
        folds = tuple(
            {str(name): float(value) for name, value in record.items()}
            for record in part[list(MEASURES)].to_dict("records")
        )
        trial = first.get("trial", i)
        candidates.append(
            Candidate.from_measures(str(first["extractor"]), _as_params(params), int(trial), folds)
        )
    return Candidates(candidates)


def finished(results: pd.DataFrame) -> pd.DataFrame:
    """Return the complete rows of a table, one per candidate."""
    rows = results
    if "state" in rows:
        rows = rows[rows["state"].astype(str).str.lower() == "complete"]
    if "same_as" in rows:
        rows = rows[rows["same_as"].isna()]
    measure_columns = [name for name in MEASURES if name in rows]
    if not measure_columns or "extractor" not in rows:
        raise ValueError(
            f"results must have the column 'extractor' and some of {list(MEASURES)}, got the "
            f"columns {list(results.columns)}. {_ACCEPTED}."
        )
    numbers = rows[measure_columns].apply(pd.to_numeric, errors="coerce")
    rows = rows.assign(**{name: numbers[name] for name in measure_columns})
    rows = rows[np.isfinite(numbers).any(axis=1)]
    if "n_rules" in rows:
        rows = rows[rows["n_rules"] > 0]
    if not len(rows):
        raise ValueError(
            f"None of the {len(results)} rows of results is finished and has rules. The column "
            "'error' may state the reason."
        )
    return rows


def one_task_only(rows: pd.DataFrame) -> None:
    """Raise an error unless all rows have the same data set and black box."""
    for name in ("data", "black_box"):
        if name in rows and rows[name].nunique() > 1:
            values = sorted(map(str, rows[name].unique()))
            raise ValueError(
                f"results must have one {name}, because losses of several are not comparable, got "
                f"{values}. Choose one: results[results[{name!r}] == {values[0]!r}]."
            )


def weights_shown(
    spec: ScoreSpec, weights: Mapping[str, float], without: str | None = None
) -> list[str]:
    """Describe the weights of a score, such as "φ = 3"."""
    return [
        f"{weight.symbol or weight.name} = {number(weights.get(weight.name, weight.default))}"
        for weight in spec.weights
        if weight.name != without
    ]


def score_values(
    table: pd.DataFrame,
    score: str,
    *,
    completeness: str = "volume",
    **weights: float,
) -> np.ndarray:
    """Return the score of each row of a table; NaN if a part is not finite."""
    spec = find_score(score)
    check_choice("completeness", completeness, ("volume", "instances"))
    size = "size" if "size" in table else "n_rules"
    needed = {name: size if name == "size" else name for name in spec.parts(completeness)}
    missing_columns = [name for name in needed.values() if name not in table]
    if missing_columns:
        raise ValueError(
            f"{score!r} needs the columns {missing_columns}, got {list(table.columns)}."
        )
    parts = {name: table[column].to_numpy(dtype=float) for name, column in needed.items()}
    finite_mask = np.isfinite(list(parts.values())).all(axis=0)
    values = np.full(len(table), np.nan)
    weights = all_weights(weights)
    values[finite_mask] = spec.of_parts(
        {n: v[finite_mask] for n, v in parts.items()}, weights, completeness
    )
    return values


def _candidates(results: Any, plain: tuple[str, ...]) -> Candidates:
    is_list = isinstance(results, Sequence) and all(isinstance(r, Candidate) for r in results)
    if not (isinstance(results, (BaseEstimator, Candidates)) or is_list):
        or_pairs = f", or a dict of label: ({', '.join(plain)})" if plain else ""
        raise TypeError(f"{_ACCEPTED}{or_pairs}, got {type(results).__name__}: {results!r}.")
    return as_candidates(results)


def _from_mapping(results: Mapping[Any, Any], plain: tuple[str, ...]) -> pd.DataFrame:
    records = []
    for label, point in results.items():
        values = np.atleast_1d(np.asarray(point, dtype=float))
        if not plain or values.shape != (len(plain),) or not np.isfinite(values).all():
            raise ValueError(
                f"A dict must give {len(plain)} finite numbers ({', '.join(plain) or 'none'}) for "
                f"each label, got {point!r} for {label!r}."
            )
        records.append(
            {"label": str(label), "extractor": str(label)}
            | dict(zip(plain, values.tolist(), strict=True))
        )
    if not records:
        raise ValueError("The dict must hold at least one point, got an empty dict.")
    table = pd.DataFrame(records)
    if "size" not in table and "n_rules" in table:
        table["size"] = table["n_rules"]
    return table


def _from_frame(results: pd.DataFrame) -> pd.DataFrame:
    rows = finished(results)
    measure_columns = [name for name in MEASURES if name in rows]
    keys = [name for name in KEYS if name in rows]
    if "fold" in rows or "seed" in rows:
        if "params" in rows:
            rows = rows.assign(params=rows["params"].map(_as_text))
        # Rows with missing values are kept, because imported rule sets have no parameters.
        table = rows.groupby(keys, sort=False, dropna=False)[measure_columns].mean().reset_index()
    else:
        table = rows[[*keys, *measure_columns]].reset_index(drop=True)
    if "size" not in table and "n_rules" in table:
        table["size"] = table["n_rules"]
    if "label" in rows and len(rows) == len(table):
        table["label"] = rows["label"].astype(str).to_numpy()
    elif "n_rules" in table:
        names = zip(table["extractor"], table["n_rules"], strict=True)
        table["label"] = [candidate_label(str(name), n_rules) for name, n_rules in names]
    else:
        table["label"] = [extractor_label(str(name)) for name in table["extractor"]]
    return table


def candidate_label(extractor: str, n_rules: float) -> str:
    return f"{extractor_label(extractor)}, {n_rules:.3g} {'rule' if n_rules == 1 else 'rules'}"


def _as_text(params: Any) -> str:
    return params if isinstance(params, str) else json.dumps(params, sort_keys=True, default=str)


def _as_params(params: Any) -> dict[str, Any]:
    if isinstance(params, Mapping):
        return dict(params)
    try:
        read = json.loads(params)
    except (TypeError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}
