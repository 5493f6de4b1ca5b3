"""One extraction by PSyKE, in a process of its own that can be killed.

    python benchmarks/speed/psyke_worker.py '{"extractor": "GridEx", "n": 1000}' answer.json

`against_psyke.py` starts it with a Python that has PSyKE 1.0.4. The data and the black box are
made here for both sides, so this module needs NumPy, pandas and scikit-learn only until `main`.
The answer is written after the extraction and again after the predictions, so that a process
killed in between leaves what it has.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

N_FEATURES = 10
#: Cut points of every feature where an algorithm wants discretized columns.
CUTS = (1 / 3, 2 / 3)
#: GridEx and GridREx cut the first four features only: 2**10 cells are too many for PSyKE.
CUT_FEATURES = 4
#: Extract up to three times, each with another seed, while all of it took less than this.
BUDGET_SECONDS = 30.0
MOST_RUNS = 3
#: The seed that PSyKE itself takes by default.
FIRST_SEED = 123


#: The work is done in one thread. (The process's own clock would tick too coarsely under the limit
#: of processor time that is set below.)
CLOCKS = {"cpu": time.thread_time, "wall": time.perf_counter}


class Problem(NamedTuple):
    """Rows to extract from, fresh rows to answer, and what the black box learns."""

    kind: str
    rows: np.ndarray
    fresh: np.ndarray
    learnt: np.ndarray
    target: np.ndarray

    def seen(self, X: np.ndarray) -> np.ndarray:
        """The columns that the black box sees: for "bins" one of 0 and 1 per third of a feature."""
        if self.kind != "bins":
            return X
        third = np.digitize(X, CUTS)
        return np.stack([third == k for k in range(len(CUTS) + 1)], axis=2).reshape(len(X), -1) * 1

    def frame(self, X: np.ndarray) -> pd.DataFrame:
        """The same as a frame."""
        names = [f"x{j}" for j in range(N_FEATURES)]
        if self.kind == "bins":
            names = [f"{name}_{k}" for name in names for k in range(len(CUTS) + 1)]
        return pd.DataFrame(self.seen(X), columns=names)

    def black_box(self, columns: Callable[[np.ndarray], Any]) -> Any:
        """A tree fitted on arrays or frames: on what `columns`, `seen` or `frame`, gives."""
        tree = DecisionTreeRegressor if self.kind == "numbers" else DecisionTreeClassifier
        return tree(max_depth=8, random_state=0).fit(columns(self.learnt), self.target)

    def fingerprint(self, answers: np.ndarray) -> str:
        """Tell two sets of rows, or two black boxes by their answers on fresh rows, apart."""
        content = json.dumps([answers.tolist(), self.rows[-1].tolist()])
        return hashlib.sha256(content.encode()).hexdigest()


def make_problem(kind: str, n: int, seed: int = 0) -> Problem:
    """Uniform rows; the black box is a tree of depth 8 that has learnt from 1000 of them.

    Parameters
    ----------
    kind : {"classes", "numbers", "bins"}
        Three classes of 2 x0 + x1**2; that value with noise; the classes, but for a black box
        that sees only which third of its range each feature lies in.
    n : int
        Rows to extract from; there are as many fresh ones, up to 10000.
    seed : int, default=0
        Another one gives other rows.
    """
    random = np.random.default_rng(seed)
    rows = random.uniform(size=(n, N_FEATURES))
    fresh = random.uniform(size=(min(n, 10_000), N_FEATURES))
    learnt = random.uniform(size=(1000, N_FEATURES))
    target = 2 * learnt[:, 0] + learnt[:, 1] ** 2
    if kind == "numbers":
        target = target + random.normal(scale=0.1, size=1000)
    else:
        target = np.array(["low", "middle", "high"])[np.digitize(target, [1.0, 1.8])]
    return Problem(kind, rows, fresh, learnt, target)


class Counted(BaseEstimator):
    """Counts the calls, rows and seconds of a black box."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls, self.rows, self.seconds = 0, 0, 0.0

    def predict(self, X: Any) -> np.ndarray:
        start = time.perf_counter()
        answers = self.model.predict(X)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        self.rows += len(X)
        return answers


class CountedClassifier(ClassifierMixin, Counted):
    """PSyKE knows a classifier by its base class."""


class CountedRegressor(RegressorMixin, Counted):
    """And a regressor by not being a classifier."""


# --- PSyKE ---------------------------------------------------------------------------------------


def make_extractor(name: str, predictor: Any, seed: int = FIRST_SEED) -> Any:
    """The PSyKE extractor with the parameters that `against_psyke.py` gives ours."""
    from psyke import Clustering, Extractor
    from psyke.extraction.hypercubic import Grid
    from psyke.extraction.hypercubic.strategy import AdaptiveStrategy

    ranks = [(f"x{j}", 1.0 if j < CUT_FEATURES else 0.0) for j in range(N_FEATURES)]
    strategy = AdaptiveStrategy(ranks, [(0.5, 2)])
    if name == "CART":
        return Extractor.cart(predictor, max_depth=3, max_leaves=3)
    if name == "GridEx":
        return Extractor.gridex(predictor, Grid(2, strategy), min_examples=1, threshold=0.1)
    if name.startswith("GridREx"):
        threshold = 0.05 if name == "GridREx-fine" else 0.1
        return Extractor.gridrex(predictor, Grid(2, strategy), min_examples=1, threshold=threshold)
    if name == "ITER":
        return Extractor.iter(
            predictor,
            min_update=0.1,
            n_points=1,
            max_iterations=600,
            min_examples=100,
            threshold=0.3,
            fill_gaps=True,
            seed=seed,
        )
    if name in ("CREAM", "ExACT"):
        clustering = Clustering.cream if name == "CREAM" else Clustering.exact
        return Extractor.creepy(
            predictor, clustering, depth=3, error_threshold=0.1, gauss_components=5, seed=seed
        )
    bins = discrete_features()
    if name == "REAL":
        return Extractor.real(predictor, bins)
    if name == "Trepan":
        return Extractor.trepan(predictor, bins, min_examples=0, max_depth=3)
    raise ValueError(f"PSyKE has no extractor {name!r}.")


def discrete_features() -> list[Any]:
    """Return PSyKE's description of the columns of a problem."""
    from psyke.schema import Between, DiscreteFeature, GreaterThan, LessThan

    def values(name: str) -> dict[str, Any]:
        inner = [Between(a, b) for a, b in pairwise(CUTS)]
        thirds = [LessThan(CUTS[0]), *inner, GreaterThan(CUTS[-1])]
        return {f"{name}_{k}": third for k, third in enumerate(thirds)}

    return [DiscreteFeature(f"x{j}", values(f"x{j}")) for j in range(N_FEATURES)]


def boxes_of(extractor: Any) -> list[dict[str, Any]] | None:
    """Bounds (None where a side is open) and output of each box; None for trees and the like."""
    if not hasattr(extractor, "_hypercubes"):
        return None
    boxes = []
    for cube in extractor._hypercubes:
        sides = cube._infinite_dimensions
        output = cube.output
        if hasattr(output, "coef_"):
            output = [*np.ravel(output.coef_).tolist(), float(np.ravel(output.intercept_)[0])]
        boxes.append(
            {
                "lower": [None if "-" in sides.get(f, ()) else a for f, (a, _) in _sides(cube)],
                "upper": [None if "+" in sides.get(f, ()) else b for f, (_, b) in _sides(cube)],
                "output": output if isinstance(output, str | list) else float(output),
            }
        )
    return boxes


def _sides(cube: Any) -> list[tuple[str, tuple[float, float]]]:
    return [(name, (float(a), float(b))) for name, (a, b) in cube.dimensions.items()]


def answer_request(request: dict[str, Any], path: Path) -> None:
    clock = CLOCKS[request["clock"]]
    if sys.platform == "linux":
        import resource

        limit, seconds = int(request["memory_gb"] * 2**30), int(request["seconds"])
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        if request["clock"] == "cpu":
            # The hard limit would kill without a word of why.
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
    import psyke  # noqa: F401  (starts a Java machine, which must not be timed)

    logging.disable()
    threadpool_limits(request["threads"] or None)
    name, kind = request["extractor"], request["kind"]
    counted = CountedRegressor if kind == "numbers" else CountedClassifier
    # First-time costs of Java and of imports are not timed; ITER takes long on few rows too.
    small = make_problem(kind, 40, seed=1)
    make_extractor(
        "GridEx" if name == "ITER" else name, counted(small.black_box(small.frame))
    ).extract(with_target(small))
    problem = make_problem(kind, request["n"])
    rows, fresh, model = (
        with_target(problem),
        problem.frame(problem.fresh),
        problem.black_box(problem.frame),
    )
    answer: dict[str, Any] = {"fingerprint": problem.fingerprint(model.predict(fresh)), "runs": []}
    begin = clock()
    for seed in range(FIRST_SEED, FIRST_SEED + MOST_RUNS):
        black_box = counted(model)
        extractor = make_extractor(name, black_box, seed)
        start = clock()
        extractor.extract(rows)
        run = {
            "extract_seconds": clock() - start,
            "n_rules": extractor.n_rules,
            "calls": black_box.calls,
            "rows": black_box.rows,
            "boxes": boxes_of(extractor),
        }
        answer["runs"].append(run)
        _write(path, answer)
        start = clock()
        predictions = extractor.predict(fresh)
        run["predict_seconds"] = clock() - start
        run["predictions"] = pd.Series(list(predictions), dtype=object).tolist()
        _write(path, answer)
        if clock() - begin > BUDGET_SECONDS:
            break


def _write(path: Path, answer: dict[str, Any]) -> None:
    """Put the answer into place at once: the process may be killed at any time."""
    half = path.with_suffix(".part")
    half.write_text(json.dumps(answer), encoding="utf-8")
    half.replace(path)


def with_target(problem: Problem) -> pd.DataFrame:
    """The rows as PSyKE wants them; of the last column, the target, it keeps the name only."""
    rows = problem.frame(problem.rows)
    return rows.assign(target=problem.black_box(problem.frame).predict(rows))


def main() -> int:
    request, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    try:
        answer_request(request, path)
    except Exception as error:
        answer = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        answer["error"] = f"{type(error).__name__}: {error}"
        _write(path, answer)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
