"""Score and extract rules on Parquet files larger than memory; compare with sums in DuckDB.

    python benchmarks/scale/run.py --rows 20000000 --folder FOLDER

The files have a million rows each; existing files are reused. The tasks score 20 rules, and extract
a tree of 16 leaves and the equations of GridREx. They run one after the other in separate
processes, `--repeats` times. The output shows the best wall time and CPU time in seconds, and the
peak memory of the process. Ratios are relative to the sums of the columns of the same rows. For the
tree, extracted from the first `--tree-rows`, the output also shows the root and the most expensive
other level. For GridREx, it shows the most expensive passes for products and for residuals. At the
end, the script checks on a million rows that the tree equals the one learned in memory.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = [f"x{j}" for j in range(1, 11)]
PIECE_ROWS = 1_000_000
TASKS = ("sums", "duckdb", "pyarrow", "tree", "linear")
EXTRACTION_TASKS = ("tree", "linear")


def write_files(folder: Path, n_rows: int) -> None:
    """Write files with ten normal columns, a label with three classes, and a numeric target y."""
    import pyarrow as pa
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    for piece in range(-(-n_rows // PIECE_ROWS)):
        path = folder / f"{piece:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(piece)
        piece_size = min(PIECE_ROWS, n_rows - piece * PIECE_ROWS)
        columns = {name: rng.normal(size=piece_size) for name in COLUMNS}
        codes = (columns["x1"] > 0).astype(int) + (columns["x2"] * columns["x3"] > 0.5)
        columns["label"] = np.array(["a", "b", "c"])[codes]
        x1, x2, x3, x4 = (columns[name] for name in COLUMNS[:4])
        columns["y"] = np.where(x1 > 0, 2 * x2 + x3, np.abs(x4) - x2) + rng.normal(
            0, 0.1, piece_size
        )
        temporary_path = path.with_suffix(".part")
        pyarrow.parquet.write_table(pa.table(columns), temporary_path)
        temporary_path.rename(path)


def make_rules() -> object:
    """Return the rules of a tree with 20 leaves, fitted on 20,000 random rows."""
    from sklearn.tree import DecisionTreeClassifier

    from skescore.rules import as_ruleset

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    y = (X.sum(axis=1) > 0).astype(int) + (X[:, 1] * X[:, 2] > 0.5)
    tree = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0)
    tree.fit(X, np.array(["a", "b", "c"])[y])
    ruleset = as_ruleset(tree, feature_names=COLUMNS)
    return ruleset.replace(domain=ruleset.domain_around(X))


PassTimes = list[tuple[float, float]]


@contextmanager
def record_passes(name: str) -> Iterator[PassTimes]:
    """Record the wall time and CPU time of each call of a method of `Histograms`."""
    from skescore.sources._extraction import Histograms

    passes: PassTimes = []
    original = getattr(Histograms, name)

    def timed_method(*arguments: Any) -> Any:
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        result = original(*arguments)
        passes.append((time.perf_counter() - wall_start, time.process_time() - cpu_start))
        return result

    setattr(Histograms, name, timed_method)
    try:
        yield passes
    finally:
        setattr(Histograms, name, original)


def extract_tree(source: object, memory: str | None = None) -> tuple[Any, PassTimes]:
    """Extract a tree of 16 leaves over 64 cuts per feature; return it and the times per level."""
    from skescore.extractors import CARTExtractor
    from skescore.sources import DataSource, extract_source

    extractor = CARTExtractor(
        None, max_leaf_nodes=16, max_depth=None, features=COLUMNS, random_state=0
    )
    with record_passes("histograms") as passes:
        return extract_source(extractor, DataSource(source, "label", memory=memory)), passes


def extract_equations(
    source: object, memory: str | None = None
) -> tuple[Any, PassTimes, PassTimes]:
    """Extract at most 8 boxes with equations; return them and the times of both kinds of passes."""
    from skescore.extractors import GridRExExtractor
    from skescore.sources import DataSource, extract_source

    extractor = GridRExExtractor(None, max_rules=8, threshold=0.2, features=COLUMNS)
    with record_passes("histograms") as histograms, record_passes("residuals") as residuals:
        result = extract_source(extractor, DataSource(source, "y", memory=memory))
    return result, histograms, residuals


def check_against_memory(folder: Path) -> None:
    """Check that the rules of a million rows equal those of CART on their bins in memory."""
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    from skescore.rules import as_ruleset

    path = next(iter(sorted(folder.glob("*.parquet"))))
    result, _ = extract_tree(str(path))
    rows = pd.read_parquet(path)
    bins = np.column_stack([np.searchsorted(result.cuts[name], rows[name]) for name in COLUMNS])
    tree = DecisionTreeClassifier(max_leaf_nodes=16, random_state=0).fit(bins, rows["label"])
    memory_rules = as_ruleset(tree, feature_names=COLUMNS)
    expected = {
        (
            frozenset(
                (
                    COLUMNS[c.feature],
                    *(
                        b if np.isinf(b) else result.cuts[COLUMNS[c.feature]][int(b)]
                        for b in (c.lower, c.upper)
                    ),
                )
                for c in rule.intervals
            ),
            rule.output,
            rule.statistics.class_counts,
        )
        for rule in memory_rules
    }
    unsimplified = result.extractor.set_params(simplify=False)
    from skescore.sources import extract_source

    source_rules = extract_source(unsimplified, str(path), "label", cuts=result.cuts).rules
    actual = {
        (
            frozenset((COLUMNS[c.feature], c.lower, c.upper) for c in rule.intervals),
            rule.output,
            rule.statistics.class_counts,
        )
        for rule in source_rules
    }
    assert actual == expected, "the rules differ from those of the tree in memory"
    print(
        f"\nOn {len(rows)} rows, all {len(source_rules)} rules are identical to those learned in "
        "memory."
    )


def run_task(task: str, folder: Path, n_rows: int, memory: str) -> dict[str, Any]:
    """Run a task; return its wall time and CPU time by step, and the peak memory."""
    import duckdb

    from skescore.sources import DataSource, score_source

    rules = make_rules()
    files = sorted(map(str, folder.glob("*.parquet")))[: -(-n_rows // PIECE_ROWS)]
    source = f"{folder}/*.parquet"
    if len(files) < len(list(folder.glob("*.parquet"))):  # links to the first files
        subset_folder = folder / f"first{len(files)}"
        subset_folder.mkdir(exist_ok=True)
        for path in files:
            if not (subset_folder / Path(path).name).exists():
                (subset_folder / Path(path).name).symlink_to(Path(path).resolve())
        source = f"{subset_folder}/*.parquet"
    wall_start, cpu_start = time.perf_counter(), time.process_time()
    times: dict[str, tuple[float, float]] = {}
    if task == "sums":
        connection = duckdb.connect(config={"memory_limit": memory})
        sums = ", ".join(f"sum({name})" for name in COLUMNS)
        connection.execute(f"SELECT {sums} FROM '{source}'").fetchall()
        connection.close()
    elif task == "duckdb":
        score_source(rules, DataSource(source, "label", memory=memory))
    elif task == "tree":
        _, passes = extract_tree(source, memory)
        times["root"] = passes[0]
        wall, cpu = map(max, zip(*passes[1:], strict=True))
        times["level"] = wall, cpu
    elif task == "linear":
        result, histograms, residuals = extract_equations(source, memory)
        assert len(result.rules) > 2
        times["products"] = max(histograms)
        times["residuals"] = max(residuals)
    else:
        import pyarrow.dataset

        score_source(rules, pyarrow.dataset.dataset(files), "label")
    times[task] = time.perf_counter() - wall_start, time.process_time() - cpu_start
    return {"spent": times, "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--tree-rows", type=int, help="rows for extraction (default: all)")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--memory", default="1GB", help="memory limit of DuckDB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(run_task(options.task, options.folder, options.rows, options.memory)))
        return
    write_files(options.folder, options.rows)
    n_tree = options.tree_rows or options.rows
    best: dict[tuple[int, str], tuple[float, float, float]] = {}
    runs = [(options.rows, task) for task in options.tasks if task not in EXTRACTION_TASKS]
    extractions = [(n_tree, task) for task in options.tasks if task in EXTRACTION_TASKS]
    if extractions:
        runs += [(n_tree, "sums")] * (n_tree < options.rows) + extractions
    for _ in range(options.repeats):
        for n_rows, task in runs:
            command = [sys.executable, __file__, "--folder", str(options.folder), "--task", task]
            command += ["--rows", str(n_rows), "--memory", options.memory]
            process = subprocess.run(command, check=True, capture_output=True, text=True)
            result = json.loads(process.stdout)
            for name, (wall, cpu) in result["spent"].items():
                best_times = best.get((n_rows, name), (math.inf, math.inf, 0.0))
                best[n_rows, name] = (
                    min(wall, best_times[0]),
                    min(cpu, best_times[1]),
                    max(result["peak_gib"], best_times[2]),
                )
                print(n_rows, name, f"{wall:.2f} {cpu:.2f}", file=sys.stderr, flush=True)
    print("| rows | task | seconds | ratio | CPU seconds | ratio | peak GiB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (n_rows, name), (wall, cpu, peak) in best.items():
        sums_times = best[n_rows, "sums"]
        print(
            f"| {n_rows} | {name} | {wall:.2f} | {wall / sums_times[0]:.2f} | {cpu:.2f} "
            f"| {cpu / sums_times[1]:.2f} | {peak:.2f} |"
        )
    check_against_memory(options.folder)


if __name__ == "__main__":
    main()
