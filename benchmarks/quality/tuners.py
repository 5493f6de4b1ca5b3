"""Compare our search with PSyKE's tuners, an untuned tree, a joint search and a grid, in one run.

    python benchmarks/quality/tuners.py --psyke-python /path/to/python [--seeds 0 1] [--data iris]
        [--methods grid "PEDRO GridEx"] [--trials 60] [--csv tuners.csv] [--again] [--retry]
        [--tables-only] [--tidy]

Every method gets the same half of the data and the same black box; the other half scores. Searches
that cross-validate fit the black box anew for each fold, as one that knows the held-out rows would
tell their labels; nobody's time holds these fits. PSyKE's tuners have one winner, which all scores
judge; of what ours, the joint search and the grid tried each score picks a winner of its own. The
searches maximize ICE with its plain weights. Times of two methods compare only where they were
measured in one run.

What is measured is appended to the CSV at once, so that a run that was broken off goes on where it
was; `--again` measures anew, and the last row of a kind counts. The tables come from the CSV.
`benchmarks/speed/against_psyke.py` says how to get PSyKE 1.0.4.
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
OURS = (
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
METHODS = (*OURS, *PSYKE_METHODS)
CSV = Path(__file__).with_name("tuners.csv")

Row = dict[str, Any]


def read(path: Path) -> dict[tuple[str, ...], Row]:
    """The last row of each kind."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {tuple(row[key] for key in KEY): row for row in csv.DictReader(file)}


def append(path: Path, rows: Iterable[Row]) -> None:
    """Add rows in one go, as another process may be adding to the same file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    writer.writerows(_rounded(row) for row in rows)
    with path.open("a", newline="", encoding="utf-8") as file:
        file.write(text.getvalue())


def tidy(path: Path) -> None:
    """Keep the last row of each kind only, in order."""

    def place(row: Row) -> tuple[int, ...]:
        return (
            int(row["seed"]),
            DATA.index(row["data"]),
            METHODS.index(row["method"]),
            SCORES.index(row["score"]),
        )

    rows = sorted(read(path).values(), key=place)
    path.unlink()
    append(path, rows)


def _rounded(row: Row) -> Row:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}


def run_psyke(data: str, seed: int, method: str, options: argparse.Namespace) -> Iterator[Row]:
    """One of PSyKE's tuners; one row per score, without a value if there is no winner."""
    request = {"data": data, "seed": seed, "method": method, "seconds": options.time_limit}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        try:
            process = subprocess.run(
                [
                    options.psyke_python,
                    str(Path(__file__).with_name("tuners_psyke.py")),
                    json.dumps(request),
                    str(path),
                ],
                env=os.environ | {"PYTHONHASHSEED": "0"},
                timeout=10 * options.time_limit,  # on a busy machine the wall clock runs on
                capture_output=True,
                text=True,
                check=False,
            )
            code, words = process.returncode, process.stderr.strip()[-200:]
        except subprocess.TimeoutExpired:
            code, words = TIMED_OUT, ""
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    state = "done"
    if code == TIMED_OUT:
        state, result = "timeout", {"seconds": options.time_limit, "winner": ""}
    elif "scores" not in result:
        state = "error"
        result = {"winner": result.get("error", f"ended with {code}: {words}")}
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


def runner(method: str, options: argparse.Namespace) -> Callable[..., Iterator[Row]]:
    """Return the function that runs a method for given data, seed and scores."""
    if method in PSYKE_METHODS:
        return lambda data, seed, scores: run_psyke(data, seed, method, options)
    import tuners_ours  # with it come Optuna and our search, which PSyKE's side does without

    return lambda data, seed, scores: tuners_ours.run(method, data, seed, scores, options.trials)


def run_all(options: argparse.Namespace) -> None:
    for seed in options.seeds:
        for data in options.data:
            task = make_problem(data, seed).task
            for method in options.methods:
                if task not in PSYKE_METHODS.get(method, (task,)):
                    continue
                earlier = {} if options.again else read(options.csv)
                if options.retry:
                    earlier = {k: row for k, row in earlier.items() if row["state"] != "error"}
                missing = [s for s in SCORES if (data, str(seed), method, s) not in earlier]
                if not missing:
                    continue
                begin = time.perf_counter()
                cell: Row = {"data": data, "seed": seed, "method": method}
                try:
                    for row in runner(method, options)(data, seed, missing):
                        append(options.csv, [cell | row])
                    verdict = row["state"]
                except Exception as error:  # one method must not hide the others' figures
                    verdict = " ".join(f"{type(error).__name__}: {error}".split())[:200]
                    failed = {"state": "error", "detail": verdict}
                    append(options.csv, [cell | failed | {"score": s} for s in missing])
                seconds = time.perf_counter() - begin
                print(f"{data} {seed} {method}: {verdict}, {seconds:.1f} s", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--trials", type=int, default=60, help="candidates per search")
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("--again", action="store_true", help="measure what is there anew")
    parser.add_argument("--retry", action="store_true", help="measure anew what had an error")
    parser.add_argument("--tables-only", action="store_true", help="print what is there")
    parser.add_argument(
        "--tidy",
        action="store_true",
        help="drop rows that were measured anew; while no other run is adding to the file",
    )
    parser.add_argument("--psyke-python", default=sys.executable, help="a Python with PSyKE")
    parser.add_argument(
        "--time-limit", type=float, default=150.0, help="seconds of work for one PSyKE tuner"
    )
    options = parser.parse_args()
    if not options.tables_only:
        if set(options.methods) & set(PSYKE_METHODS) and not has_psyke(options.psyke_python):
            parser.error(
                f"{options.psyke_python} lacks PSyKE 1.0.4: pass --psyke-python, or --methods "
                "without its tuners. benchmarks/speed/against_psyke.py tells how to install it."
            )
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run_all(options)
    if options.tidy:
        tidy(options.csv)
    import tuners_tables

    return tuners_tables.print_tables(read(options.csv), OURS, tuple(PSYKE_METHODS))


if __name__ == "__main__":
    sys.exit(main())
