r"""One of PSyKE's tuners on one problem, in a process of its own.

    python benchmarks/quality/tuners_psyke.py \
        '{"method": "CRASH", "data": "iris", "seed": 0, "seconds": 150}' answer.json

`tuners.py` starts it with a Python that has PSyKE 1.0.4. The tuner's winner is extracted again,
read by our importer, and scored by our scorers like everyone's.
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
from tuners_data import SCORES, Problem, clock, counted, frame, make_problem, measure

#: Which tuners are suitable for what.
PSYKE_METHODS = {
    "PEDRO GridEx": ("classification", "regression"),
    "PEDRO GridREx": ("regression",),
    "CRASH": ("classification", "regression"),
    "OrCHiD CREAM": ("classification", "regression"),
    "OrCHiD ExACT": ("classification", "regression"),
}
#: OrCHiD leaves it to its user; the same that the reference figures were made with.
COMPONENTS = 5
#: How the process ends when the time is up.
TIMED_OUT = 124


def stop_after(seconds: float) -> None:
    """End the process once the calling thread has worked that long."""
    working = time.pthread_getcpuclockid(threading.get_ident())
    end = time.clock_gettime(working) + seconds

    def watch() -> None:
        while time.clock_gettime(working) < end:
            time.sleep(0.5)
            if finished.is_set():
                return
        os._exit(TIMED_OUT)

    threading.Thread(target=watch, daemon=True).start()


finished = threading.Event()


def tune(method: str, problem: Problem, black_box: Any) -> tuple[Any, dict[str, Any]]:
    """Search with the tuner's own defaults; the winner's extractor, and what it was."""
    from psyke import Clustering, Extractor
    from psyke.tuning.crash import CRASH
    from psyke.tuning.orchid import OrCHiD
    from psyke.tuning.pedro import PEDRO
    from psyke.utils import Target

    rows = frame(problem.rows).assign(target=problem.y)
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
        tuner = OrCHiD(rows, kind, output=output, gauss_components=COMPONENTS)
    tuner.search()
    best = tuner.get_best()[0]  # the winner of both its measures, which it names first
    tuner_result = {
        "tuner_error": float(best[0]),
        "tuner_rules": int(best[1]),
        "n": len(tuner.params),
    }
    if method.startswith("PEDRO"):
        _, _, threshold, strategy = best
        make = Extractor.gridrex if grid == "GridREx" else Extractor.gridex
        options = {} if grid == "GridREx" else {"output": output}
        extractor = make(black_box, strategy, min_examples=25, threshold=threshold, **options)
        tuner_result["winner"] = f"{grid} {strategy} threshold {threshold:.4g}"
    else:
        _, _, depth, threshold, *remaining = best
        components, kind = remaining or (COMPONENTS, kind)
        clustering = Clustering.cream if kind == OrCHiD.Algorithm.CREAM else Clustering.exact
        extractor = Extractor.creepy(
            black_box, clustering, depth, threshold, output, gauss_components=components
        )
        tuner_result["winner"] = (
            f"{kind.name} depth {depth} threshold {threshold:.4g} of {components}"
        )
    return extractor, tuner_result


def answer(request: dict[str, Any]) -> dict[str, Any]:
    from skescore.rules import Fallback
    from skescore.rules.importers import read_psyke

    with contextlib.redirect_stdout(sys.stderr):
        import psyke  # noqa: F401  (starts a Java machine, which must not be timed)

        logging.disable()
        threadpool_limits(1)
        warnings.simplefilter("ignore")
        data, problem = request["data"], make_problem(request["data"], request["seed"])
        np.random.seed(request["seed"])  # CRASH draws rows from there
        black_box = counted(problem)
        stop_after(request["seconds"])
        start = clock()
        extractor, tuner_result = tune(request["method"], problem, black_box)
        training = frame(problem.rows)
        answers = problem.model.predict(problem.rows)
        extractor.extract(training.assign(target=answers))
        tuner_result["seconds"] = clock() - start
        finished.set()
    if problem.task == "classification":
        labels, counts = np.unique(answers, return_counts=True)
        fallback = Fallback(str(labels[counts.argmax()]))
    else:
        fallback = Fallback(float(answers.mean()))
    # Rows without a rule are answered as our own extractors do.
    rules = read_psyke(extractor, fallback=fallback)
    tuner_result |= {"calls": black_box.ledger.calls, "n_rules": len(rules)}
    held_out = frame(problem.others)
    tuner_result["scores"] = {s: measure(rules, data, held_out, problem.truth, s) for s in SCORES}
    return tuner_result


def main() -> int:
    request, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    try:
        response = answer(request)
    except Exception as error:
        response = {"error": f"{type(error).__name__}: {error}"}
    path.write_text(json.dumps(response), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
