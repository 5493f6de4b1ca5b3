"""Execution of a benchmark in a folder, which can be interrupted and resumed."""

from __future__ import annotations

import datetime
import json
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import psutil
from joblib import delayed, effective_n_jobs

from skescore._io import LineFile, json_of, package_versions, try_lock, write_atomically
from skescore._processes import parallel
from skescore.bench._cells import Group, measure_group, measure_limited
from skescore.bench._configuration import BenchConfig
from skescore.bench._plan import Cell, Plan, make_plan
from skescore.bench._progress import BenchCallback
from skescore.bench._rows import RowFile, cells_of, in_order, row_columns
from skescore.rules import RuleSet
from skescore.scorers import make_knowledge_scorer
from skescore.tuning._objective import check_measures

__all__ = [
    "BenchResult",
    "FolderInUseError",
    "describe_machine",
    "is_in_use",
    "measure_groups",
    "run_bench",
]


def describe_machine() -> dict[str, Any]:
    """Describe the machine on which the times were measured.

    Returns
    -------
    dict
        ``processor``, ``cores`` (available to this process), ``memory_gb`` and ``platform``.
    """
    return {
        "processor": _processor(),
        "cores": joblib.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "platform": platform.platform(),
    }


def _processor() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except (OSError, UnicodeDecodeError):
        pass
    return platform.processor() or platform.machine() or None


def measure_groups(
    groups: Sequence[Group], n_jobs: int, time_limit: float | None = None
) -> Iterator[dict[str, Any]]:
    """Measure groups of cells and yield their rows, in any order with several processes."""
    if time_limit is not None:
        yield from measure_limited(groups, n_jobs, time_limit)
        return
    if n_jobs == 1 or len(groups) < 2:
        for group in groups:
            yield from measure_group(group)
        return
    # Arrays are copied to the processes, because some models reject read-only memory maps.
    pool = parallel(n_jobs, return_as="generator_unordered", max_nbytes=None)
    for rows in pool(delayed(_measure_rows)(group) for group in groups):
        yield from rows


def _measure_rows(group: Group) -> list[dict[str, Any]]:
    return list(measure_group(group))


ROWS, RUN, _LOCK = "rows.csv", "run.json", ".lock"
#: File with the rules of each row as JSON lines.
RULES = "rules.jsonl"
_RULES_HEAD = '{"file": "rules of a bench"}'
#: Maximum number of rules that are written as text.
_MAX_RULES_AS_TEXT = 40


class FolderInUseError(ValueError):
    """Error for a folder that another process uses, or that contains another benchmark."""


@dataclass(eq=False)
class BenchResult:
    """Result of a finished benchmark.

    Parameters
    ----------
    rows : pandas.DataFrame
        One row per data set, black box, extractor, seed and fold, in this order.
    plan : Plan
        Plan with the data of the benchmark.
    run : dict
        Content of ``run.json``.
    """

    rows: pd.DataFrame
    plan: Plan
    run: dict[str, Any]


def run_bench(
    config: BenchConfig | Plan,
    folder: str | os.PathLike[str],
    *,
    measures: Sequence[Any] | Mapping[str, Any] = (),
    n_jobs: int | None = None,
    command_line: Sequence[str] = (),
    overwrite: bool = False,
    retry_failed: bool = False,
    keep_rules: bool = False,
    callback: BenchCallback | None = None,
) -> BenchResult:
    """Measure all cells of a benchmark that have no row in a folder yet.

    Use it to compare extractors over several data sets, black boxes and seeds. The same call
    resumes an interrupted benchmark.

    Parameters
    ----------
    config : BenchConfig or Plan
        The benchmark; a :class:`Plan` if its data and models are already loaded.
    folder : str or path-like
        Folder for ``rows.csv`` and ``run.json``.
    measures : sequence of str or callable, or dict of str to either, default=()
        Further scorers, each of which adds a column: ``{"lift": make_rule_scorer("lift")}``.
    n_jobs : int, optional
        Number of processes, as in scikit-learn. It changes no results except the times.
    command_line : sequence of str, default=()
        Command to record in ``run.json``.
    overwrite : bool, default=False
        Whether to delete existing rows in the folder.
    retry_failed : bool, default=False
        Whether to measure failed rows again.
    keep_rules : bool, default=False
        Whether to also write ``rules.jsonl``: for each measured row its rules as text, their
        features and the number of their conditions.
    callback : BenchCallback, optional
        Receiver of rows and notes, such as a :class:`BenchProgress`.

    Returns
    -------
    BenchResult
        All rows.

    Raises
    ------
    FolderInUseError
        If the folder contains another benchmark, or another process uses it. It is a ValueError.
    ValueError
        If data cannot be loaded, or an extractor fits none of the data sets.

    Examples
    --------
    >>> import tempfile
    >>> from skescore.bench import config_from, run_bench
    >>> config = config_from(
    ...     {"data": ["iris"], "black_boxes": ["knn"], "extractors": ["cart"], "folds": 2}
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = run_bench(config, folder).rows
    >>> rows[["extractor", "fold", "state"]]
      extractor  fold     state
    0      cart     0  complete
    1      cart     1  complete
    """
    plan = config if isinstance(config, Plan) else make_plan(config)
    folder, callback = Path(folder), callback or BenchCallback()
    scorers = check_measures(measures)
    if reserved := set(scorers) & set(row_columns()):
        raise ValueError(f"measures must not use the column name {sorted(reserved)[0]!r}.")
    folder.mkdir(parents=True, exist_ok=True)
    with try_lock(folder / _LOCK) as is_free:
        if not is_free:
            raise FolderInUseError(
                f"Another process is measuring in {folder}. Wait for it, or name another folder."
            )
        earlier = _read_earlier_run(folder, plan, overwrite)
        if overwrite:
            (folder / ROWS).unlink(missing_ok=True)
            (folder / RULES).unlink(missing_ok=True)
        for text in plan.notes:
            callback.on_note(text)
        run = _start_run(plan, earlier, command_line, effective_n_jobs(n_jobs))
        if earlier and earlier["run"]["versions"] != run["run"]["versions"]:
            callback.on_note(
                "the existing rows were measured with other versions of packages, which run.json "
                "lists: results may differ from those of an uninterrupted run"
            )
        _write_run(folder, run)
        file = RowFile(folder / ROWS, scorers)
        rules_file = LineFile(folder / RULES, _RULES_HEAD) if keep_rules else None
        rows = file.read()
        if retry_failed:
            rows = rows[rows["state"] != "failed"]
        existing = set(cells_of(rows))
        groups = _group_cells(plan, [cell for cell in plan.cells if cell not in existing], scorers)
        n_existing = sum(cell in existing for cell in plan.cells)
        callback.on_start(n_existing, len(plan.cells) - n_existing)
        for row in measure_groups(groups, effective_n_jobs(n_jobs), plan.config.time_limit):
            rules = row.pop("rules", None)
            if rules_file is not None and rules is not None:
                rules_file.append(_rules_record(row, rules))
            file.add(row)
            callback.on_row(row)
        rows = in_order(file.read(), plan.cells)
        file.rewrite(rows)
        n_failed = int((rows["state"] == "failed").sum())
        run |= {"state": "complete", "rows": len(rows), "rows_failed": n_failed}
        run["run"] |= {"seconds": round(time.perf_counter() - run["run"].pop("_begin"), 3)}
        _write_run(folder, run)
    return BenchResult(rows, plan, run)


def _rules_record(row: Mapping[str, Any], rules: RuleSet) -> str:
    """Return the line of a row in the file of rules."""
    record = {name: row[name] for name in Cell._fields} | {
        "features": [str(rules.feature_names[j]) for j in sorted(rules.used_features)],
        "conditions": rules.n_conditions,
        "text": rules.to_text(limit=_MAX_RULES_AS_TEXT),
    }
    return json.dumps(record, ensure_ascii=False, default=str)


def _group_cells(
    plan: Plan, cells: Sequence[Cell], measures: Mapping[str, Any] | None = None
) -> list[Group]:
    """Group the cells that share a black box, except for searches, which are separate groups."""
    config, scorer = plan.config, make_knowledge_scorer()
    grouped: dict[tuple[Any, ...], list[Any]] = {}
    for cell in cells:
        entry = plan.entry(cell.extractor)
        search = cell.extractor if entry.kind == "search" else ""
        key = (cell.data, cell.black_box, cell.seed, cell.fold, search)
        grouped.setdefault(key, []).append(entry)
    return [
        Group(
            plan.datasets[data],
            data,
            plan.black_box(box),
            seed,
            fold,
            config.folds,
            config.test_size,
            tuple(entries),
            plan.models.get(box),
            scorer,
            tuple((measures or {}).items()),
        )
        for (data, box, seed, fold, _), entries in grouped.items()
    ]


def is_in_use(folder: Path) -> bool:
    """Return whether another process is measuring in a folder.

    Parameters
    ----------
    folder : Path
        Path of the folder, which need not exist.

    Returns
    -------
    bool
        Whether the folder is locked.
    """
    if not folder.is_dir():
        return False
    with try_lock(folder / _LOCK) as is_free:
        return not is_free


def _read_earlier_run(folder: Path, plan: Plan, overwrite: bool) -> dict[str, Any] | None:
    """Return the record of the folder; raise an error if it describes another benchmark."""
    if overwrite:
        return None
    path = folder / RUN
    if not path.exists():
        if (folder / ROWS).exists():
            raise FolderInUseError(
                f"{folder} holds {ROWS}, but no {RUN} that describes the benchmark. Name "
                "another folder, or start over (on the command line: --overwrite)."
            )
        return None
    try:
        earlier = json_of(path.read_text(encoding="utf-8"))
        stored = earlier["configuration"]
        earlier["run"]["versions"]
    except (ValueError, KeyError, TypeError):
        raise FolderInUseError(
            f"{path} is not the record of a benchmark. Name another folder, or start over (on the "
            "command line: --overwrite)."
        ) from None
    current = json.loads(json.dumps(plan.record(), default=str))
    if stored != current:
        raise FolderInUseError(
            f"{folder} contains another benchmark: {_describe_difference(stored, current)}. Name "
            "another folder, or start over (on the command line: --overwrite)."
        )
    return earlier


def _describe_difference(stored: dict[str, Any], current: dict[str, Any]) -> str:
    """Describe the first difference between two configurations."""
    key = next(key for key in {**stored, **current} if stored.get(key) != current.get(key))
    if key == "checksums_sha256":
        old, new = stored.get(key, {}), current[key]
        names = sorted(name for name in new if old.get(name) != new[name])
        return f"the content of {', '.join(map(repr, names))} has changed"
    old, new = stored.get(key), current.get(key)
    if key in ("data", "black_boxes", "extractors") and isinstance(old, list):
        labels = [[item.get("label") for item in items] for items in (old, new or [])]
        if labels[0] != labels[1]:
            old, new = labels
        else:
            pairs = zip(old, new or [], strict=True)
            old, new = next((a, b) for a, b in pairs if a != b)
    return f"{key} is {json.dumps(old)} in the folder and {json.dumps(new)} now"


def _start_run(
    plan: Plan, earlier: dict[str, Any] | None, command_line: Sequence[str], n_jobs: int
) -> dict[str, Any]:
    config = plan.config
    return {
        "kind": "bench",
        "name": config.name,
        "state": "unfinished",
        "data": [
            {
                "name": label,
                "source": data.source,
                "checksum_sha256": data.checksum,
                "task": data.task,
                "target": data.y.name,
                "rows": len(data.X),
                "rows_dropped": data.n_rows_dropped,
                "features": list(map(str, data.X.columns)),
                "categories": list(data.categories),
            }
            for label, data in plan.datasets.items()
        ],
        "configuration": plan.record(),
        "not_applicable": [
            {"data": data, "extractor": extractor, "why": why}
            for (data, extractor), why in plan.not_applicable.items()
        ]
        + [
            {"data": data, "black_box": box, "why": why}
            for (data, box), why in plan.unmatched.items()
        ],
        "cells": len(plan.cells),
        "run": {
            "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command_line": list(command_line),
            "n_jobs": n_jobs,
            "versions": package_versions(),
            **describe_machine(),
            "_begin": time.perf_counter(),
        },
        # Earlier runs that this run continues.
        "earlier_runs": [] if earlier is None else [*earlier["earlier_runs"], earlier["run"]],
    }


def _write_run(folder: Path, run: dict[str, Any]) -> None:
    record = run | {"run": {k: v for k, v in run["run"].items() if not k.startswith("_")}}
    text = json.dumps(record, indent=2, ensure_ascii=False, default=str) + "\n"
    write_atomically(folder / RUN, text)
