r"""Run one of PSyKE's tuners on one problem, in a separate process.

    python benchmarks/quality/tuners_psyke.py \
        '{"method": "CRASH", "data": "iris", "seed": 0, "seconds": 150}' result.json

`tuners.py` starts this script with a Python interpreter that has PSyKE 1.0.4. The tuner's winner is
extracted again, read by our importer, and scored by the same scorers as all methods.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits
from tuners_data import SCORES, Problem, clock, frame, make_counted, make_problem, measure

#: PSyKE's tuners and the tasks that they support.
PSYKE_METHODS = {
    "PEDRO GridEx": ("classification", "regression"),
    "PEDRO GridREx": ("regression",),
    "CRASH": ("classification", "regression"),
    "OrCHiD CREAM": ("classification", "regression"),
    "OrCHiD ExACT": ("classification", "regression"),
}
#: OrCHiD has no default; the reference values were measured with this number.
N_COMPONENTS = 5
#: Exit code of the process when its time is over.
TIMED_OUT = 124


def stop_after(seconds: float) -> None:
    """End the process once the calling thread has used this much CPU time."""
    cpu_clock = time.pthread_getcpuclockid(threading.get_ident())
    end = time.clock_gettime(cpu_clock) + seconds

    def watch() -> None:
        while time.clock_gettime(cpu_clock) < end:
            time.sleep(0.5)
            if finished_event.is_set():
                return
        os._exit(TIMED_OUT)

    threading.Thread(target=watch, daemon=True).start()


finished_event = threading.Event()


def tune(method: str, problem: Problem, black_box: Any) -> tuple[Any, dict[str, Any]]:
    """Search with the tuner's defaults; return the winner's extractor and its description."""
    from psyke import Clustering, Extractor
    from psyke.tuning.crash import CRASH
    from psyke.tuning.orchid import OrCHiD
    from psyke.tuning.pedro import PEDRO
    from psyke.utils import Target

    rows = frame(problem.X_train).assign(target=problem.y_train)
    output = Target.CLASSIFICATION if problem.task == "classification" else Target.CONSTANT
    tuner: Any
    if method.startswith("PEDRO"):
        grid = method.split()[1]
        if grid == "GridREx":
            output = Target.REGRESSION
        kind = getattr(PEDRO.Algorithm, grid.upper())
        tuner = PEDRO(black_box, rows, algorithm=kind, output=output)
    elif method == "CRASH":
        tuner = CRASH(black_box, rows, output=output)
    else:
        kind = getattr(OrCHiD.Algorithm, method.split()[1])
        tuner = OrCHiD(rows, kind, output=output, gauss_components=N_COMPONENTS)
    tuner.search()
    best = tuner.get_best()[0]  # the tuner lists the overall winner first
    tuner_result = {
        "tuner_error": float(best[0]),
        "tuner_rules": int(best[1]),
        "n": len(tuner.params),
    }
    if method.startswith("PEDRO"):
        _, _, threshold, strategy = best
        make_extractor = Extractor.gridrex if grid == "GridREx" else Extractor.gridex
        options = {} if grid == "GridREx" else {"output": output}
        extractor = make_extractor(
            black_box, strategy, min_examples=25, threshold=threshold, **options
        )
        tuner_result["winner"] = f"{grid} {strategy} threshold {threshold:.4g}"
    else:
        _, _, depth, threshold, *remaining = best
        components, kind = remaining or (N_COMPONENTS, kind)
        clustering = Clustering.cream if kind == OrCHiD.Algorithm.CREAM else Clustering.exact
        extractor = Extractor.creepy(
            black_box, clustering, depth, threshold, output, gauss_components=components
        )
        tuner_result["winner"] = (
            f"{kind.name} depth {depth} threshold {threshold:.4g} of {components}"
        )
    return extractor, tuner_result


def measure_tuner(request: dict[str, Any]) -> dict[str, Any]:
    """Run the requested tuner and measure its winner."""
    from skescore.rules import Fallback
    from skescore.rules.importers import read_psyke

    with contextlib.redirect_stdout(sys.stderr):
        import psyke  # noqa: F401  (starts a Java virtual machine, which is not timed)

        logging.disable()
        threadpool_limits(1)
        warnings.simplefilter("ignore")
        data, problem = request["data"], make_problem(request["data"], request["seed"])
        np.random.seed(request["seed"])  # CRASH uses this generator
        black_box = make_counted(problem)
        stop_after(request["seconds"])
        start = clock()
        extractor, tuner_result = tune(request["method"], problem, black_box)
        training = frame(problem.X_train)
        predictions = problem.model.predict(problem.X_train)
        extractor.extract(training.assign(target=predictions))
        tuner_result["seconds"] = clock() - start
        finished_event.set()
    if problem.task == "classification":
        labels, counts = np.unique(predictions, return_counts=True)
        fallback = Fallback(str(labels[counts.argmax()]))
    else:
        fallback = Fallback(float(predictions.mean()))
    # Rows without a rule get the same fallback as in our extractors.
    rules = read_psyke(extractor, fallback=fallback)
    tuner_result |= {"calls": black_box.ledger.calls, "n_rules": len(rules)}
    held_out = frame(problem.X_test)
    tuner_result["scores"] = {s: measure(rules, data, held_out, problem.y_test, s) for s in SCORES}
    return tuner_result


def main() -> int:
    request, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    try:
        response = measure_tuner(request)
    except Exception as error:
        response = {"error": f"{type(error).__name__}: {error}"}
    path.write_text(json.dumps(response), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
