"""Score 20 rules on Parquet files that no memory holds, and learn 16, beside DuckDB's own sums.

    python benchmarks/scale/run.py --rows 20000000 --folder FOLDER

The files are written in pieces of a million rows, unless the folder holds them already. Each task
runs in a process of its own; times are the best of three, in seconds of wall clock and of all
processors, and the peak is that of the process's memory. Of the tree, the root and the dearest of
the other levels are given, and whether its rules are those that memory gives on a million rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

COLUMNS = [f"x{j}" for j in range(1, 11)]
PIECE = 1_000_000
TASKS = ("sums", "duckdb", "pyarrow", "root", "level")


def write(folder: Path, n_rows: int) -> None:
    """Ten columns of normal numbers and a label of three classes."""
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


def learn(source: object, memory: str | None = None) -> tuple[Any, list[tuple[float, float]]]:
    """A tree of 16 leaves over 64 cuts a feature, and the seconds of each of its levels."""
    from skescore.extractors import CARTExtractor
    from skescore.sources import extract_source
    from skescore.sources._histograms import Histograms

    looks = []
    look = Histograms.histograms

    def timed(*arguments: Any) -> Any:
        begin, before = time.perf_counter(), time.process_time()
        found = look(*arguments)
        looks.append((time.perf_counter() - begin, time.process_time() - before))
        return found

    Histograms.histograms = timed
    try:
        extractor = CARTExtractor(None, max_leaf_nodes=16, max_depth=None, random_state=0)
        return extract_source(extractor, source, "label", memory=memory), looks
    finally:
        Histograms.histograms = look


def check_memory(folder: Path) -> None:
    """Fail unless a million rows have the rules that CART learns in memory from their bins."""
    import pandas as pd
    from sklearn.tree import DecisionTreeClassifier

    from skescore.rules import as_ruleset

    path = next(iter(sorted(folder.glob("*.parquet"))))
    found, _ = learn(str(path))
    rows = pd.read_parquet(path)
    bins = np.column_stack([np.searchsorted(found.cuts[name], rows[name]) for name in COLUMNS])
    tree = DecisionTreeClassifier(max_leaf_nodes=16, random_state=0).fit(bins, rows["label"])
    memory = as_ruleset(tree, feature_names=COLUMNS)
    expected = {
        (
            frozenset(
                (COLUMNS[c.feature], *(
                    b if np.isinf(b) else found.cuts[COLUMNS[c.feature]][int(b)]
                    for b in (c.lower, c.upper)
                ))
                for c in rule.intervals
            ),
            rule.output, rule.statistics.class_counts,
        )
        for rule in memory
    }  # fmt: skip
    shown = found.extractor.set_params(simplify=False)
    from skescore.sources import extract_source

    rules = extract_source(shown, str(path), "label", cuts=found.cuts).rules
    learned = {
        (
            frozenset((COLUMNS[c.feature], c.lower, c.upper) for c in rule.intervals),
            rule.output, rule.statistics.class_counts,
        )
        for rule in rules
    }  # fmt: skip
    assert learned == expected, "the rules are not those of memory"
    print(f"\nOf {len(rows)} rows, all {len(rules)} rules are those of memory, to the last bit.")


def carry_out(task: str, folder: Path, memory: str) -> dict[str, float]:
    """One task, three times."""
    import duckdb

    from skescore.sources import score_source

    scored = rules()
    source = f"{folder}/*.parquet"
    seconds, processors = [], []
    for _ in range(3):
        begin, before = time.perf_counter(), time.process_time()
        if task == "sums":
            connection = duckdb.connect(config={"memory_limit": memory})
            sums = ", ".join(f"sum({name})" for name in COLUMNS)
            connection.execute(f"SELECT {sums} FROM '{source}'").fetchall()
            connection.close()
        elif task == "duckdb":
            score_source(scored, source, "label", memory=memory)
        elif task in ("root", "level"):
            _, looks = learn(source, memory)
            wall, processor = looks[0] if task == "root" else map(max, zip(*looks[1:], strict=True))
            seconds.append(wall)
            processors.append(processor)
            continue
        else:
            import pyarrow.dataset

            files = sorted(map(str, folder.glob("*.parquet")))
            score_source(scored, pyarrow.dataset.dataset(files), "label")
        seconds.append(time.perf_counter() - begin)
        processors.append(time.process_time() - before)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"seconds": min(seconds), "processor": min(processors), "peak_gib": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--memory", default="1GB", help="that DuckDB may take")
    parser.add_argument("--task", choices=TASKS)
    options = parser.parse_args()
    if options.task:
        print(json.dumps(carry_out(options.task, options.folder, options.memory)))
        return
    write(options.folder, options.rows)
    found = {}
    for task in TASKS:
        words = [sys.executable, __file__, "--folder", str(options.folder), "--task", task]
        run = subprocess.run(
            [*words, "--memory", options.memory], check=True, capture_output=True, text=True
        )
        found[task] = json.loads(run.stdout)
    print(f"{options.rows} rows x 10 columns\n")
    print("| task | seconds | ratio | processor seconds | ratio | peak GiB |")
    print("| --- | --- | --- | --- | --- | --- |")
    first = found["sums"]
    for task, its in found.items():
        ratios = its["seconds"] / first["seconds"], its["processor"] / first["processor"]
        print(
            f"| {task} | {its['seconds']:.2f} | {ratios[0]:.2f} | {its['processor']:.2f} "
            f"| {ratios[1]:.2f} | {its['peak_gib']:.2f} |"
        )
    check_memory(options.folder)


if __name__ == "__main__":
    main()
