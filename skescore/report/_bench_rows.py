"""Rows of a benchmark as groups of candidates: one group per data set and black box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skescore._io import json_of
from skescore._text import cell_text
from skescore.registry import extractor_label
from skescore.report._candidates_file import NEEDED
from skescore.scorers import SCORE_SPECS

__all__ = ["find_rows", "groups_of", "kept_rules"]

#: Columns by which a table is recognized as the rows of a benchmark.
_KEYS = ("data", "black_box", "extractor", "seed", "fold", "state")
_TEXT_COLUMNS = ("data", "black_box", "extractor", "params", "error")
_OPTIONAL_COLUMNS = ("seconds", "black_box_rows", "fidelity")


def find_rows(folder: Path) -> pd.DataFrame | None:
    """Return the rows of a benchmark in a folder, or None if no CSV file contains such rows."""
    for path in sorted(folder.glob("*.csv")):
        try:
            head = pd.read_csv(path, nrows=0)
        except (OSError, ValueError):
            continue
        if set(_KEYS) <= set(head.columns):
            table = pd.read_csv(path)
            # Read texts separately: the text NA is not a missing value, and an apostrophe in front
            # of a text only keeps spreadsheets from evaluating it.
            texts = pd.read_csv(path, dtype=str, keep_default_na=False)
            texts = texts[[name for name in _TEXT_COLUMNS if name in texts]]
            return table.assign(**{str(n): c.map(_text) for n, c in texts.items()})
    return None


def _text(cell: str) -> str | None:
    return cell_text(cell) or None


def groups_of(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the candidates of each group; a candidate is an extractor with its parameters.

    The measures of a candidate include all its seeds and folds.
    """
    missing = [name for name in (*_KEYS, *NEEDED) if name not in rows.columns]
    if missing:
        raise ValueError(
            f"The rows of the benchmark lack the columns {', '.join(missing)}. Repeat the "
            "benchmark with this version of skescore."
        )
    rows = rows.reindex(columns=[*rows.columns, *({"params", "error", "task"} - {*rows.columns})])
    rows = rows.assign(params=rows["params"].fillna("{}"))
    groups = []
    for (data, black_box), part in rows.groupby(["data", "black_box"], sort=False):
        candidates = [
            _candidate(str(extractor), str(params), candidate_rows)
            for (extractor, params), candidate_rows in part.groupby(
                ["extractor", "params"], sort=False
            )
        ]
        tasks = part["task"].dropna().unique().tolist()
        mean_quality = None
        if "black_box_quality" in part.columns:
            quality = pd.to_numeric(part["black_box_quality"], errors="coerce").dropna()
            mean_quality = float(quality.mean()) if len(quality) else None
        groups.append(
            {
                "name": f"{data} · {black_box}",
                "data": str(data),
                "black_box": str(black_box),
                "task": tasks[0] if tasks else None,
                "quality": {} if mean_quality is None else {"performance": mean_quality},
                "candidates": candidates,
                "winner": None,
                "failures": _failures(part),
                "standard_errors": None,
            }
        )
    return groups


def _candidate(extractor: str, params: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Return the measures of a candidate on the rows that have all required measures."""
    numbers = rows[list(NEEDED)].apply(pd.to_numeric, errors="coerce")
    is_usable = (rows["state"] == "complete") & np.isfinite(numbers).all(axis=1)
    is_usable &= numbers["size"] > 0
    usable_numbers = numbers[is_usable]
    folds = {name: usable_numbers[name].tolist() for name in NEEDED}
    kept_columns = [spec.kept_as for spec in SCORE_SPECS.values()]
    recorded = [name for name, spec in SCORE_SPECS.items() if spec.expression is None]
    for name in (*_OPTIONAL_COLUMNS, *kept_columns, *recorded):
        if name in rows.columns and name not in folds:
            values = pd.to_numeric(rows.loc[is_usable, name], errors="coerce")
            folds[name] = [v if np.isfinite(v) else None for v in values.tolist()]
    try:
        parsed = json.loads(params)
    except ValueError:
        parsed = params
    return {
        "extractor": extractor_label(extractor),
        "params": parsed if isinstance(parsed, dict) else {"params": parsed},
        "trial": None,
        "folds": folds,
        "missing": int((~is_usable).sum()),
    }


def _failures(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return failed rows by extractor, with the first error of each."""
    failed = rows[rows["state"] != "complete"]
    return [
        {
            "extractor": extractor_label(str(name)),
            "count": len(failed_rows),
            "error": str(failed_rows["error"].fillna("").iloc[0]),
        }
        for name, failed_rows in failed.groupby("extractor", sort=False)
    ]


def kept_rules(folder: Path, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the stored rules of a benchmark by data set and black box, the greatest ICE first."""
    path = folder / "rules.jsonl"
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    cells = ["data", "black_box", "extractor", "seed", "fold"]
    rules: dict[tuple[str, ...], str] = {}
    # `splitlines` would also split at other line separators in the texts of rules.
    for number, line in enumerate(text.split("\n")[1:-1], start=2):
        try:
            record = json_of(line)
            rules[tuple(str(record[name]) for name in cells)] = str(record["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path}, line {number}, cannot be read as the rules of a row "
                f"({type(error).__name__}: {error}). Remove the file, or repeat the benchmark."
            ) from error
    groups = []
    for (data, black_box), part in rows.groupby(["data", "black_box"], sort=False):
        entries = []
        sorted_rows = part.sort_values("ice", ascending=False, na_position="last", kind="stable")
        for row in sorted_rows.to_dict(orient="records"):
            entries.append(
                {
                    "extractor": row["extractor"],
                    "seed": row["seed"],
                    "fold": row["fold"],
                    "error": str(row["error"]) if row["state"] != "complete" else "",
                    "scores": {
                        name: float(row[name])
                        for name in (*SCORE_SPECS, "fidelity")
                        if name in row and np.isfinite(float(row[name]))
                    },
                    "n_rules": row.get("n_rules"),
                    "text": rules.get(tuple(str(row[name]) for name in cells), ""),
                }
            )
        groups.append({"data": str(data), "black_box": str(black_box), "rows": entries})
    return groups
