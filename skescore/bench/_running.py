"""Running a benchmark in a folder: what is there already is not measured again."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import psutil
from joblib import delayed, effective_n_jobs
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from sklearn.base import BaseEstimator

from skescore._io import LineFile, json_of, package_versions, try_lock, write_atomically
from skescore._processes import parallel
from skescore.bench._cells import Group, measure_group, measure_limited
from skescore.bench._configuration import BenchConfig
from skescore.bench._plan import Cell, Plan, make_plan
from skescore.bench._rows import RowFile, cells_of, in_order, row_columns
from skescore.registry import extractor_label
from skescore.rules import RuleSet
from skescore.scorers import make_knowledge_scorer
from skescore.tuning._objective import check_measures

__all__ = [
    "BenchProgress",
    "BenchResult",
    "FolderInUseError",
    "describe_machine",
    "duration",
    "is_in_use",
    "measure_groups",
    "run_bench",
    "run_plan",
]


#: Seconds between two lines where there is no terminal.
_PAUSE = 10.0
#: Rows from which the time that is left can be told.
_ENOUGH = 10


class BenchProgress:
    """Shows how many rows are measured: a bar on a terminal, elsewhere a line now and then.

    Use it as a context; `start` and `row` are the callbacks of ``run_bench``.
    """

    def __init__(self, *, shown: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._clock = shown, clock
        self._bar: Progress | None = None
        self._there = self._total = self.measured = self.failed = 0

    def __enter__(self) -> BenchProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, there: int, missing: int) -> None:
        """Tell how many rows are there already and how many are to be measured."""
        self._there, self._total = there, missing
        self._begin = self._told = self._clock()
        if not self._shown:
            return
        if there and missing:
            self._say(f"{there} of {there + missing} rows are there already; going on")
        console = Console(stderr=True)
        if missing and (console.is_terminal or console.is_jupyter):
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("measuring", total=there + missing, completed=there)
            self._bar.start()

    def row(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.measured += 1
        self.failed += row.get("state") == "failed"
        if not self._shown:
            return
        if self._bar is not None:
            failed = f", {self.failed} failed" if self.failed else ""
            text = f"{row['data']}, {row['black_box']}, {extractor_label(row['extractor'])}{failed}"
            self._bar.update(self._task, advance=1, description=text)
            return
        now, left = self._clock(), self._total - self.measured
        if left and now - self._told < _PAUSE:
            return
        self._told = now
        elapsed = now - self._begin
        text = f"{self._there + self.measured} of {self._there + self._total} rows"
        if self.failed:
            text += f", {self.failed} failed"
        text += f", {duration(elapsed)}"
        # The first few may be slow or fast: what comes of them is no estimate.
        if left and self.measured >= min(_ENOUGH, self._total / 2):
            text += f", about {duration(elapsed / self.measured * left)} left"
        self._say(text)

    def _say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def duration(seconds: float) -> str:
    """Write a time for people."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def measure_groups(
    groups: Sequence[Group], n_jobs: int, time_limit: float | None = None
) -> Iterator[dict[str, Any]]:
    """Measure groups of cells."""
    if time_limit is not None:
        yield from measure_limited(groups, n_jobs, time_limit)
        return
    if n_jobs == 1 or len(groups) < 2:
        for group in groups:
            yield from measure_group(group)
        return
    # Arrays are copied to the processes: what is mapped from a file cannot be written to, which
    # not every model bears.
    pool = parallel(n_jobs, return_as="generator_unordered", max_nbytes=None)
    for rows in pool(delayed(_measured)(group) for group in groups):
        yield from rows


def _measured(group: Group) -> list[dict[str, Any]]:
    return list(measure_group(group))


ROWS, RUN, _LOCK = "rows.csv", "run.json", ".lock"
#: The rules of each row, as JSON lines, where they are kept.
RULES = "rules.jsonl"
_RULES_HEAD = '{"file": "rules of a bench"}'
#: More rules than this are not written out.
_WRITTEN = 40


class FolderInUseError(ValueError):
    """Another process measures in the folder, or it holds another benchmark."""


@dataclass(eq=False)
class BenchResult:
    """A finished benchmark.

    Parameters
    ----------
    rows : pandas.DataFrame
        One row per data set, black box, extractor, seed and fold, in this order.
    plan : Plan
        What was measured.
    run : dict
        What ``run.json`` holds.
    """

    rows: pd.DataFrame
    plan: Plan
    run: dict[str, Any]


def run_bench(
    config: BenchConfig,
    folder: str | os.PathLike[str],
    *,
    load_model: Callable[[str], BaseEstimator] | None = None,
    measures: Sequence[Any] | Mapping[str, Any] = (),
    n_jobs: int | None = None,
    command_line: Sequence[str] = (),
    overwrite: bool = False,
    retry_failed: bool = False,
    keep_rules: bool = False,
    on_start: Callable[[int, int], None] | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> BenchResult:
    """Measure every cell of a configuration that a folder does not hold yet.

    Use it for comparisons of extractors over several data sets, black boxes and seeds; broken
    off, the same call goes on.

    Parameters
    ----------
    config : BenchConfig
        What to measure.
    folder : str or path-like
        Where ``rows.csv`` and ``run.json`` are written.
    load_model : callable, optional
        Gives the fitted model of a path, such as ``joblib.load``; needed for black boxes that come
        from files.
    measures : sequence of str or callable, or dict of str to either, default=()
        Further scorers, each a column of the rows: ``{"lift": make_rule_scorer("lift")}``.
    n_jobs : int, optional
        Processes, as in scikit-learn. Results do not depend on it, but for the times.
    command_line : sequence of str, default=()
        Recorded in ``run.json``.
    overwrite : bool, default=False
        Begin anew, whatever the folder holds.
    retry_failed : bool, default=False
        Measure once more what has failed.
    keep_rules : bool, default=False
        Write ``rules.jsonl`` as well: for each row measured its rules as text, the features that
        they name, and how many conditions they have.
    on_start : callable, optional
        Called with the number of rows that are there and of those to be measured.
    on_row : callable, optional
        Called with each row, as it is written.
    on_note : callable, optional
        Called with what a reader should know.

    Returns
    -------
    BenchResult
        All rows.

    Raises
    ------
    FolderInUseError
        A ValueError: the folder holds another benchmark, or another process works in it.
    ValueError
        If data cannot be loaded, or an extractor suits none of them.

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
    return run_plan(
        make_plan(config, load_model=load_model),
        folder,
        measures=measures,
        n_jobs=n_jobs,
        command_line=command_line,
        overwrite=overwrite,
        retry_failed=retry_failed,
        keep_rules=keep_rules,
        on_start=on_start,
        on_row=on_row,
        on_note=on_note,
    )


def run_plan(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    measures: Sequence[Any] | Mapping[str, Any] = (),
    n_jobs: int | None = None,
    command_line: Sequence[str] = (),
    overwrite: bool = False,
    retry_failed: bool = False,
    keep_rules: bool = False,
    on_start: Callable[[int, int], None] | None = None,
    on_row: Callable[[dict[str, Any]], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> BenchResult:
    """Do the work of :func:`run_bench`, whose parameters it has, where the data are loaded."""
    folder = Path(folder)
    scorers = check_measures(measures)
    if taken := set(scorers) & set(row_columns()):
        raise ValueError(f"measures must have names of their own, got {sorted(taken)[0]!r}.")
    note = on_note or (lambda text: None)
    folder.mkdir(parents=True, exist_ok=True)
    with try_lock(folder / _LOCK) as free:
        if not free:
            raise FolderInUseError(
                f"Another process is measuring in {folder}. Wait for it, or name another folder."
            )
        earlier = _earlier(folder, plan, overwrite)
        if overwrite:
            (folder / ROWS).unlink(missing_ok=True)
            (folder / RULES).unlink(missing_ok=True)
        for text in plan.notes:
            note(text)
        run = _start_run(plan, earlier, command_line, effective_n_jobs(n_jobs))
        if earlier and earlier["run"]["versions"] != run["run"]["versions"]:
            note(
                "the rows that are there were measured with other versions of packages (run.json "
                "tells which): results may differ from a run of one piece"
            )
        _write_run(folder, run)
        file = RowFile(folder / ROWS, scorers)
        kept = LineFile(folder / RULES, _RULES_HEAD) if keep_rules else None
        done = file.read()
        if retry_failed:
            done = done[done["state"] != "failed"]
        known = set(cells_of(done))
        groups = _groups(plan, [cell for cell in plan.cells if cell not in known], scorers)
        if on_start is not None:
            on_start(sum(cell in known for cell in plan.cells), sum(len(g.entries) for g in groups))
        for row in measure_groups(groups, effective_n_jobs(n_jobs), plan.config.time_limit):
            rules = row.pop("rules", None)
            if kept is not None and rules is not None:
                kept.append(_kept_rules(row, rules))
            file.add(row)
            if on_row is not None:
                on_row(row)
        rows = in_order(file.read(), plan.cells)
        file.rewrite(rows)
        failed = int((rows["state"] == "failed").sum())
        run |= {"state": "complete", "rows": len(rows), "rows_failed": failed}
        run["run"] |= {"seconds": round(time.perf_counter() - run["run"].pop("_begin"), 3)}
        _write_run(folder, run)
    return BenchResult(rows, plan, run)


def _kept_rules(row: Mapping[str, Any], rules: RuleSet) -> str:
    about = {name: row[name] for name in Cell._fields}
    used = [str(rules.feature_names[j]) for j in sorted(rules.used_features)]
    text = rules.to_text(limit=_WRITTEN)
    found = about | {"features": used, "conditions": rules.n_conditions, "text": text}
    return json.dumps(found, ensure_ascii=False, default=str)


def _groups(
    plan: Plan, cells: Sequence[Cell], measures: Mapping[str, Any] | None = None
) -> list[Group]:
    """Put cells together that share a black box; a search works long enough by itself."""
    config, scorer = plan.config, make_knowledge_scorer()
    grouped: dict[tuple[Any, ...], list[Any]] = {}
    for cell in cells:
        entry = plan.entry(cell.extractor)
        alone = cell.extractor if entry.kind == "search" else ""
        key = (cell.data, cell.black_box, cell.seed, cell.fold, alone)
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
    """Return whether another process is measuring in a folder, which need not exist."""
    if not folder.is_dir():
        return False
    with try_lock(folder / _LOCK) as free:
        return not free


def _earlier(folder: Path, plan: Plan, overwrite: bool) -> dict[str, Any] | None:
    """What is recorded in the folder, if it is this benchmark; raise if it is another one."""
    if overwrite:
        return None
    path = folder / RUN
    if not path.exists():
        if (folder / ROWS).exists():
            raise FolderInUseError(
                f"{folder} holds {ROWS}, but no {RUN} that says how they were measured. Name "
                "another folder, or begin anew (on the command line: --overwrite)."
            )
        return None
    try:
        earlier = json_of(path.read_text(encoding="utf-8"))
        there = earlier["configuration"]
        earlier["run"]["versions"]
    except (ValueError, KeyError, TypeError):
        raise FolderInUseError(
            f"{path} is not the record of a bench. Name another folder, or begin anew (on the "
            "command line: --overwrite)."
        ) from None
    here = json.loads(json.dumps(plan.record(), default=str))
    if there != here:
        raise FolderInUseError(
            f"{folder} holds another bench: {_difference(there, here)}. Name another folder, or "
            "begin anew (on the command line: --overwrite)."
        )
    return earlier


def _difference(there: dict[str, Any], here: dict[str, Any]) -> str:
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    key = keys[0]
    if key == "checksums_sha256":
        old, new = there.get(key, {}), here[key]
        names = sorted(name for name in new if old.get(name) != new[name])
        return f"the content of {', '.join(map(repr, names))} has changed"
    old, new = there.get(key), here.get(key)
    if key in ("data", "black_boxes", "extractors") and isinstance(old, list):
        labels = [[item.get("label") for item in items] for items in (old, new or [])]
        if labels[0] != labels[1]:
            old, new = labels
        else:
            pairs = zip(old, new or [], strict=True)
            old, new = next((a, b) for a, b in pairs if a != b)
    return f"{key} is {json.dumps(old)} there and {json.dumps(new)} here"


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
        # Runs that were broken off before this one went on.
        "earlier_runs": [] if earlier is None else [*earlier["earlier_runs"], earlier["run"]],
    }


def _write_run(folder: Path, run: dict[str, Any]) -> None:
    shown = run | {"run": {k: v for k, v in run["run"].items() if not k.startswith("_")}}
    text = json.dumps(shown, indent=2, ensure_ascii=False, default=str) + "\n"
    write_atomically(folder / RUN, text)


# --- what it was measured on ----------------------------------------------------------------------


def describe_machine() -> dict[str, Any]:
    """Describe what the times were measured on.

    Returns
    -------
    dict
        ``processor``, ``cores`` (that this process may use), ``memory_gb`` and ``platform``.
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
