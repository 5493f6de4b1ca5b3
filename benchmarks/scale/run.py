"""Score 20 rules on Parquet files that no memory holds, and learn 16, beside DuckDB's own sums.

    python benchmarks/scale/run.py --rows 20000000 --folder FOLDER

The files are written in pieces of a million rows, unless the folder holds them already. Each task
runs in a process of its own, the tasks one after the other, `--repeats` times; times are the best,
in seconds of wall clock and of all processors, and the peak is that of the process's memory. Of the
tree, learned from the first `--tree-rows`, the root and the dearest of the other levels are given,
beside sums of those rows, and whether its rules are those that memory gives on a million rows; of
GridREx, learned from the same, the dearest look at products and at residuals.
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
PIECE = 1_000_000
TASKS = ("sums", "duckdb", "pyarrow", "tree", "linear")
LEARNED = ("tree", "linear")


def write(folder: Path, n_rows: int) -> None:
    """Ten columns of normal numbers, a label of three classes, and a number y."""
    import pyarrow as pa
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    for piece in range(-(-n_rows // PIECE)):
        path = folder / f"{piece:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(piece)
        size = min(PIECE, n_rows - piece * PIECE)
        columns = {name: rng.normal(size=size) for name in COLUMNS}
        codes = (columns["x1"] > 0).astype(int) + (columns["x2"] * columns["x3"] > 0.5)
        columns["label"] = np.array(["a", "b", "c"])[codes]
        x1, x2, x3, x4 = (columns[name] for name in COLUMNS[:4])
        columns["y"] = np.where(x1 > 0, 2 * x2 + x3, np.abs(x4) - x2) + rng.normal(0, 0.1, size)
        part = path.with_suffix(".part")
        pyarrow.parquet.write_table(pa.table(columns), part)
        part.rename(path)


def rules() -> object:
    """A tree of 20 leaves over all columns, fitted to the first rows."""
    from sklearn.tree import DecisionTreeClassifier

    from skescore.rules import as_ruleset

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    y = (X.sum(axis=1) > 0).astype(int) + (X[:, 1] * X[:, 2] > 0.5)
    tree = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0)
    tree.fit(X, np.array(["a", "b", "c"])[y])
    ruleset = as_ruleset(tree, feature_names=COLUMNS)
    return ruleset.replace(domain=ruleset.domain_around(X))


Passes = list[tuple[float, float]]


@contextmanager
def timed(name: str) -> Iterator[Passes]:
    """The seconds of each look of a kind."""
    from skescore.sources._extraction import Histograms

    passes: Passes = []
    compute = getattr(Histograms, name)

    def measured(*arguments: Any) -> Any:
        begin, before = time.perf_counter(), time.process_time()
        result = compute(*arguments)
        passes.append((time.perf_counter() - begin, time.process_time() - before))
        return result

    setattr(Histograms, name, measured)
    try:
        yield passes
    finally:
        setattr(Histograms, name, compute)


def learn(source: object, memory: str | None = None) -> tuple[Any, Passes]:
    """A tree of 16 leaves over 64 cuts a feature, and the seconds of each of its levels."""
    from skescore.extractors import CARTExtractor
    from skescore.sources import DataSource, extract_source

    extractor = CARTExtractor(
        None, max_leaf_nodes=16, max_depth=None, features=COLUMNS, random_state=0
    )
    with timed("histograms") as passes:
        return extract_source(extractor, DataSource(source, "label", memory=memory)), passes


def learn_equations(source: object, memory: str | None = None) -> tuple[Any, Passes, Passes]:
    """A grid of at most 8 boxes with equations, and the seconds of its two kinds of looks."""
    from skescore.extractors import GridRExExtractor
    from skescore.sources import DataSource, extract_source

    extractor = GridRExExtractor(None, max_rules=8, threshold=0.2, features=COLUMNS)
    with timed("histograms") as histograms, timed("residuals") as residuals:
        result = extract_source(extractor, DataSource(source, "y", memory=memory))
    return result, histograms, residuals


def check_memory(folder: Path) -> None:
    """Fail unless a million rows have the rules that CART learns in memory from their bins."""
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    from skescore.rules import as_ruleset

    path = next(iter(sorted(folder.glob("*.parquet"))))
    result, _ = learn(str(path))
    rows = pd.read_parquet(path)
    bins = np.column_stack([np.searchsorted(result.cuts[name], rows[name]) for name in COLUMNS])
    tree = DecisionTreeClassifier(max_leaf_nodes=16, random_state=0).fit(bins, rows["label"])
    memory = as_ruleset(tree, feature_names=COLUMNS)
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
        for rule in memory
    }
    unsimplified = result.extractor.set_params(simplify=False)
    from skescore.sources import extract_source

    rules = extract_source(unsimplified, str(path), "label", cuts=result.cuts).rules
    learned = {
        (
            frozenset((COLUMNS[c.feature], c.lower, c.upper) for c in rule.intervals),
            rule.output,
            rule.statistics.class_counts,
        )
        for rule in rules
    }
    assert learned == expected, "the rules are not those of memory"
    print(f"\nOf {len(rows)} rows, all {len(rules)} rules are those of memory, to the last bit.")


def carry_out(task: str, folder: Path, n_rows: int, memory: str) -> dict[str, Any]:
    """One task: seconds of the clock and of processors, by what they are for."""
    import duckdb

    from skescore.sources import DataSource, score_source

    scored = rules()
    files = sorted(map(str, folder.glob("*.parquet")))[: -(-n_rows // PIECE)]
    source = f"{folder}/*.parquet"
    if len(files) < len(list(folder.glob("*.parquet"))):  # links to some of them
        subset_folder = folder / f"first{len(files)}"
        subset_folder.mkdir(exist_ok=True)
        for path in files:
            if not (subset_folder / Path(path).name).exists():
                (subset_folder / Path(path).name).symlink_to(Path(path).resolve())
        source = f"{subset_folder}/*.parquet"
    begin, before = time.perf_counter(), time.process_time()
    spent: dict[str, tuple[float, float]] = {}
    if task == "sums":
        connection = duckdb.connect(config={"memory_limit": memory})
        sums = ", ".join(f"sum({name})" for name in COLUMNS)
        connection.execute(f"SELECT {sums} FROM '{source}'").fetchall()
        connection.close()
    elif task == "duckdb":
        score_source(scored, DataSource(source, "label", memory=memory))
    elif task == "tree":
        _, passes = learn(source, memory)
        spent["root"] = passes[0]
        wall, processor = map(max, zip(*passes[1:], strict=True))
        spent["level"] = wall, processor
    elif task == "linear":
        result, histograms, residuals = learn_equations(source, memory)
        assert len(result.rules) > 2
        spent["products"] = max(histograms)
        spent["residuals"] = max(residuals)
    else:
        import pyarrow.dataset

        score_source(scored, pyarrow.dataset.dataset(files), "label")
    spent[task] = time.perf_counter() - begin, time.process_time() - before
    return {"spent": spent, "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--tree-rows", type=int, help="rows that the tree learns from; all")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--memory", default="1GB", help="that DuckDB may take")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--task", choices=TASKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(carry_out(options.task, options.folder, options.rows, options.memory)))
        return
    write(options.folder, options.rows)
    n_tree = options.tree_rows or options.rows
    best: dict[tuple[int, str], tuple[float, float, float]] = {}
    runs = [(options.rows, task) for task in options.tasks if task not in LEARNED]
    learned = [(n_tree, task) for task in options.tasks if task in LEARNED]
    if learned:
        runs += [(n_tree, "sums")] * (n_tree < options.rows) + learned
    for _ in range(options.repeats):
        for n_rows, task in runs:
            words = [sys.executable, __file__, "--folder", str(options.folder), "--task", task]
            words += ["--rows", str(n_rows), "--memory", options.memory]
            run = subprocess.run(words, check=True, capture_output=True, text=True)
            measured = json.loads(run.stdout)
            for name, (wall, processor) in measured["spent"].items():
                old = best.get((n_rows, name), (math.inf, math.inf, 0.0))
                best[n_rows, name] = (
                    min(wall, old[0]),
                    min(processor, old[1]),
                    max(measured["peak_gib"], old[2]),
                )
                print(n_rows, name, f"{wall:.2f} {processor:.2f}", file=sys.stderr, flush=True)
    print("| rows | task | seconds | ratio | processor seconds | ratio | peak GiB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (n_rows, name), (wall, processor, peak) in best.items():
        first = best[n_rows, "sums"]
        print(
            f"| {n_rows} | {name} | {wall:.2f} | {wall / first[0]:.2f} | {processor:.2f} "
            f"| {processor / first[1]:.2f} | {peak:.2f} |"
        )
    check_memory(options.folder)


if __name__ == "__main__":
    main()
