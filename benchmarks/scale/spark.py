"""Score 20 rules on Spark tables of several sizes, and extrapolate the CPU time.

    python benchmarks/scale/spark.py --folder FOLDER --rows 1000000 10000000

FOLDER contains the files of `run.py`. Spark runs in local mode on one core. The times are the CPU
times of Python and Spark: the minimum of `--repeats` runs after a warm-up run. The output ends with
the intercept and the slope of the CPU time by rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "helpers"))

from loaded_files import load_file


def cpu_seconds() -> float:
    """Return the CPU time of this process and its children."""
    process = psutil.Process()
    times = [p.cpu_times() for p in [process, *process.children(recursive=True)]]
    return sum(t.user + t.system for t in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--tasks", nargs="+", choices=("sums", "score", "level"), default=["sums", "score", "level"]
    )
    options = parser.parse_args()
    from skescore.extractors import CARTExtractor
    from skescore.sources import extract_source, score_source

    folder = Path(__file__).parent
    run_script = load_file(folder / "run.py")
    test_module = load_file("interop/test_sources.py")
    rules, results = run_script.make_rules(), []
    with test_module.running_spark(options.folder) as session:
        for n_rows in options.rows:
            files = sorted(options.folder.glob("*.parquet"))[: -(-n_rows // run_script.PIECE_ROWS)]
            table = session.read.parquet(*map(str, files))

            def sums(table: Any = table) -> None:
                table.selectExpr(*(f"sum({name})" for name in run_script.COLUMNS)).collect()

            def score(table: Any = table) -> None:
                score_source(rules, table, "label")

            def level(table: Any = table) -> None:
                tree = CARTExtractor(None, max_depth=1)
                cuts = {name: np.linspace(-2, 2, 64).tolist() for name in run_script.COLUMNS}
                extract_source(tree, table, "label", cuts=cuts)

            for task in (task for task in (sums, score, level) if task.__name__ in options.tasks):
                best = (np.inf, np.inf)
                for repeat in range(options.repeats + 1):
                    wall_start, cpu_start = time.perf_counter(), cpu_seconds()
                    task()
                    times = time.perf_counter() - wall_start, cpu_seconds() - cpu_start
                    best = best if not repeat else (min(best[0], times[0]), min(best[1], times[1]))
                results.append(
                    {"rows": n_rows, "task": task.__name__, "wall": best[0], "processor": best[1]}
                )
                print(json.dumps(results[-1]), flush=True)
    for task in options.tasks:
        points = [(row["rows"], row["processor"]) for row in results if row["task"] == task]
        if len(points) > 1:
            slope, intercept = np.polyfit(*np.array(points, dtype=float).T, 1)
            print(f"{task}: {intercept:.1f} s and {slope * 1e9:.0f} s of CPU time per 10^9 rows")


if __name__ == "__main__":
    main()
