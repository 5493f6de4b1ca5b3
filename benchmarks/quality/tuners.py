"""Compare our search with PSyKE's tuners, untuned trees, a joint search and a grid.

    python benchmarks/quality/tuners.py --psyke-python /path/to/python [--seeds 0 1] [--data iris]
        [--methods grid "PEDRO GridEx"] [--trials 60] [--csv tuners.csv] [--again] [--retry]
        [--tables-only] [--tidy]

Every method gets the same half of the data and the same black box, and is scored on the other half.
Searches that cross-validate fit the black box on each fold, because a black box that has seen the
held-out rows would reveal their labels. The time of these fits is not counted for any method.
PSyKE's tuners have one winner, which is measured by all scores. For our search, the joint search
and the grid, each score selects a winner among the candidates. The searches maximize ICE with equal
weights. Times of two methods are comparable only if they were measured in one run.

Results are appended to the CSV immediately, so an interrupted run resumes. `--again` repeats all
measurements; the last row of each key counts. The tables are computed from the CSV.
`benchmarks/speed/against_psyke.py` explains how to install PSyKE 1.0.4.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits
from tuners_data import DATA, SCORES, make_problem
from tuners_psyke import PSYKE_METHODS, TIMED_OUT

COLUMNS = (
    "data",
    "seed",
    "method",
    "score",
    "state",
    "value",
    "marked",
    "cv",
    "n_rules",
    "seconds",
    "calls",
    "trials",
    "detail",
)
KEY = COLUMNS[:4]
OUR_METHODS = (
    "cart",
    "cart of 3 leaves",
    "ours re-scored",
    "ours without optimal rules",
    "joint re-scored",
    "grid",
    "ours of 20 trials",
    "joint of 20 trials",
    "grid of 20",
)
METHODS = (*OUR_METHODS, *PSYKE_METHODS)
CSV = Path(__file__).with_name("tuners.csv")

Row = dict[str, Any]


def read_rows(path: Path) -> dict[tuple[str, ...], Row]:
    """Return the last row of each key."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {tuple(row[key] for key in KEY): row for row in csv.DictReader(file)}


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Append rows in one write, because another process may append to the same file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    writer.writerows(_rounded(row) for row in rows)
    with path.open("a", newline="", encoding="utf-8") as file:
        file.write(text.getvalue())


def remove_replaced_rows(path: Path) -> None:
    """Keep only the last row of each key, in order."""

    def sort_key(row: Row) -> tuple[int, ...]:
        return (
            int(row["seed"]),
            DATA.index(row["data"]),
            METHODS.index(row["method"]),
            SCORES.index(row["score"]),
        )

    rows = sorted(read_rows(path).values(), key=sort_key)
    path.unlink()
    append_rows(path, rows)


def _rounded(row: Row) -> Row:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}


def run_psyke(data: str, seed: int, method: str, options: argparse.Namespace) -> Iterator[Row]:
    """Run one of PSyKE's tuners; yield one row per score, without a value if there is no winner."""
    request = {"data": data, "seed": seed, "method": method, "seconds": options.time_limit}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        try:
            process = subprocess.run(
                [
                    options.psyke_python,
                    str(Path(__file__).with_name("tuners_psyke.py")),
                    json.dumps(request),
                    str(path),
                ],
                env=os.environ | {"PYTHONHASHSEED": "0"},
                timeout=10 * options.time_limit,  # wall time; the limit itself is CPU time
                capture_output=True,
                text=True,
                check=False,
            )
            exit_code, stderr_end = process.returncode, process.stderr.strip()[-200:]
        except subprocess.TimeoutExpired:
            exit_code, stderr_end = TIMED_OUT, ""
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    state = "done"
    if exit_code == TIMED_OUT:
        state, result = "timeout", {"seconds": options.time_limit, "winner": ""}
    elif "scores" not in result:
        state = "error"
        result = {"winner": result.get("error", f"ended with {exit_code}: {stderr_end}")}
    for score in SCORES:
        yield {
            "score": score,
            "state": state,
            **result.get("scores", {}).get(score, {}),
            "n_rules": result.get("n_rules", ""),
            "seconds": result.get("seconds", ""),
            "calls": result.get("calls", ""),
            "trials": result.get("n", ""),
            "detail": " ".join(result["winner"].split()),
        }


def has_psyke(python: str) -> bool:
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('psyke') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def find_runner(method: str, options: argparse.Namespace) -> Callable[..., Iterator[Row]]:
    """Return the function that runs a method for given data, seed and scores."""
    if method in PSYKE_METHODS:
        return lambda data, seed, scores: run_psyke(data, seed, method, options)
    import tuners_ours  # imports Optuna and our search, which PSyKE's tuners do not need

    return lambda data, seed, scores: tuners_ours.run(method, data, seed, scores, options.trials)


def run_all(options: argparse.Namespace) -> None:
    for seed in options.seeds:
        for data in options.data:
            task = make_problem(data, seed).task
            for method in options.methods:
                if task not in PSYKE_METHODS.get(method, (task,)):
                    continue
                existing_rows = {} if options.again else read_rows(options.csv)
                if options.retry:
                    existing_rows = {
                        k: row for k, row in existing_rows.items() if row["state"] != "error"
                    }
                missing = [s for s in SCORES if (data, str(seed), method, s) not in existing_rows]
                if not missing:
                    continue
                start = time.perf_counter()
                cell: Row = {"data": data, "seed": seed, "method": method}
                try:
                    for row in find_runner(method, options)(data, seed, missing):
                        append_rows(options.csv, [cell | row])
                    verdict = row["state"]
                except Exception as error:  # the other methods are still measured
                    verdict = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                    failed = {"state": "error", "detail": verdict}
                    append_rows(options.csv, [cell | failed | {"score": s} for s in missing])
                seconds = time.perf_counter() - start
                print(f"{data} {seed} {method}: {verdict}, {seconds:.1f} s", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--trials", type=int, default=60, help="candidates per search")
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("--again", action="store_true", help="repeat existing measurements")
    parser.add_argument(
        "--retry", action="store_true", help="repeat measurements that ended with an error"
    )
    parser.add_argument(
        "--tables-only", action="store_true", help="print the tables without measuring"
    )
    parser.add_argument(
        "--tidy",
        action="store_true",
        help="remove rows that were measured again; no other run may write to the file",
    )
    parser.add_argument(
        "--psyke-python", default=sys.executable, help="Python interpreter with PSyKE"
    )
    parser.add_argument(
        "--time-limit", type=float, default=150.0, help="CPU seconds for one PSyKE tuner"
    )
    options = parser.parse_args()
    if not options.tables_only:
        if set(options.methods) & set(PSYKE_METHODS) and not has_psyke(options.psyke_python):
            parser.error(
                f"{options.psyke_python} lacks PSyKE 1.0.4: pass --psyke-python, or --methods "
                "without its tuners. benchmarks/speed/against_psyke.py explains how to install it."
            )
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_all(options)
    if options.tidy:
        remove_replaced_rows(options.csv)
    import tuners_tables

    return tuners_tables.print_tables(read_rows(options.csv), OUR_METHODS, tuple(PSYKE_METHODS))


if __name__ == "__main__":
    sys.exit(main())
