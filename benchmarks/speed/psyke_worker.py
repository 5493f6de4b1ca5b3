"""Run one extraction by PSyKE in a separate process that can be killed.

    python benchmarks/speed/psyke_worker.py '{"extractor": "GridEx", "n": 1000}' result.json

`against_psyke.py` starts this script with a Python that has PSyKE 1.0.4. It also imports this
module for the data and the black box, so only `main` needs PSyKE. The result is written after the
extraction and again after the predictions, so a killed process leaves a partial result.
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
#: Cut points of every feature for algorithms that need discretized columns.
CUTS = (1 / 3, 2 / 3)
#: Number of features that GridEx and GridREx cut: 2**10 cells are too many for PSyKE.
N_CUT_FEATURES = 4
#: Extractions with further seeds start only within this time.
BUDGET_SECONDS = 30.0
MAX_RUNS = 3
#: Default seed of PSyKE.
FIRST_SEED = 123


#: The work is done in one thread. (The clock of the process would be too coarse with the limit of
#: CPU time that is set below.)
CLOCKS = {"cpu": time.thread_time, "wall": time.perf_counter}


class Problem(NamedTuple):
    """Rows for extraction, fresh rows for prediction, and training data of the black box."""

    kind: str
    rows: np.ndarray
    fresh: np.ndarray
    X_train: np.ndarray
    y_train: np.ndarray

    def encode(self, X: np.ndarray) -> np.ndarray:
        """Return the inputs of the black box; for "bins", a 0/1 column per third of a feature."""
        if self.kind != "bins":
            return X
        third = np.digitize(X, CUTS)
        return np.stack([third == k for k in range(len(CUTS) + 1)], axis=2).reshape(len(X), -1) * 1

    def encode_frame(self, X: np.ndarray) -> pd.DataFrame:
        """Return the inputs of the black box as a data frame."""
        names = [f"x{j}" for j in range(N_FEATURES)]
        if self.kind == "bins":
            names = [f"{name}_{k}" for name in names for k in range(len(CUTS) + 1)]
        return pd.DataFrame(self.encode(X), columns=names)

    def black_box(self, encode: Callable[[np.ndarray], Any]) -> Any:
        """Fit a tree on arrays (`encode`) or data frames (`encode_frame`)."""
        tree = DecisionTreeRegressor if self.kind == "numbers" else DecisionTreeClassifier
        return tree(max_depth=8, random_state=0).fit(encode(self.X_train), self.y_train)

    def fingerprint(self, predictions: np.ndarray) -> str:
        """Return a hash of the rows and of the predictions of the black box on fresh rows."""
        content = json.dumps([predictions.tolist(), self.rows[-1].tolist()])
        return hashlib.sha256(content.encode()).hexdigest()


def make_problem(kind: str, n: int, seed: int = 0) -> Problem:
    """Return uniform rows for a black box that is a tree of depth 8 fitted on 1000 rows.

    Parameters
    ----------
    kind : {"classes", "numbers", "bins"}
        Three classes of 2 x0 + x1**2; this value with noise; or the classes, with a black box
        that gets only the third of the range of each feature.
    n : int
        Number of rows for extraction; there are as many fresh rows, up to 10000.
    seed : int, default=0
        Seed of the rows.
    """
    random = np.random.default_rng(seed)
    rows = random.uniform(size=(n, N_FEATURES))
    fresh = random.uniform(size=(min(n, 10_000), N_FEATURES))
    X_train = random.uniform(size=(1000, N_FEATURES))
    y_train = 2 * X_train[:, 0] + X_train[:, 1] ** 2
    if kind == "numbers":
        y_train = y_train + random.normal(scale=0.1, size=1000)
    else:
        y_train = np.array(["low", "middle", "high"])[np.digitize(y_train, [1.0, 1.8])]
    return Problem(kind, rows, fresh, X_train, y_train)


class Counted(BaseEstimator):
    """Black box that counts its calls, rows and seconds."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.calls, self.n_rows, self.seconds = 0, 0, 0.0

    def predict(self, X: Any) -> np.ndarray:
        start = time.perf_counter()
        predictions = self.model.predict(X)
        self.seconds += time.perf_counter() - start
        self.calls += 1
        self.n_rows += len(X)
        return predictions


class CountedClassifier(ClassifierMixin, Counted):
    """Counted classifier; PSyKE recognizes classifiers by their base class."""


class CountedRegressor(RegressorMixin, Counted):
    """Counted regressor."""


# --- PSyKE ---------------------------------------------------------------------------------------


def make_extractor(name: str, predictor: Any, seed: int = FIRST_SEED) -> Any:
    """Return an extractor of PSyKE with the parameters that `against_psyke.py` uses for ours."""
    from psyke import Clustering, Extractor
    from psyke.extraction.hypercubic import Grid
    from psyke.extraction.hypercubic.strategy import AdaptiveStrategy

    ranks = [(f"x{j}", 1.0 if j < N_CUT_FEATURES else 0.0) for j in range(N_FEATURES)]
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


def read_boxes(extractor: Any) -> list[dict[str, Any]] | None:
    """Return bounds (None for open sides) and output of each box; None for other extractors."""
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
                "lower": [
                    None if "-" in sides.get(f, ()) else a for f, (a, _) in _read_dimensions(cube)
                ],
                "upper": [
                    None if "+" in sides.get(f, ()) else b for f, (_, b) in _read_dimensions(cube)
                ],
                "output": output if isinstance(output, str | list) else float(output),
            }
        )
    return boxes


def _read_dimensions(cube: Any) -> list[tuple[str, tuple[float, float]]]:
    return [(name, (float(a), float(b))) for name, (a, b) in cube.dimensions.items()]


def run_request(request: dict[str, Any], path: Path) -> None:
    """Extract with PSyKE, predict fresh rows, and write the results."""
    clock = CLOCKS[request["clock"]]
    if sys.platform == "linux":
        import resource

        limit, seconds = int(request["memory_gb"] * 2**30), int(request["seconds"])
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        if request["clock"] == "cpu":
            # The hard limit would kill the process without a message.
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 10))
    import psyke  # noqa: F401  (starts a Java virtual machine, which is not timed)

    logging.disable()
    threadpool_limits(request["threads"] or None)
    name, kind = request["extractor"], request["kind"]
    counted_class = CountedRegressor if kind == "numbers" else CountedClassifier
    # The first use of Java and of imports is not timed. ITER is slow even on few rows.
    small_problem = make_problem(kind, 40, seed=1)
    make_extractor(
        "GridEx" if name == "ITER" else name,
        counted_class(small_problem.black_box(small_problem.encode_frame)),
    ).extract(add_predictions(small_problem))
    problem = make_problem(kind, request["n"])
    rows, fresh, model = (
        add_predictions(problem),
        problem.encode_frame(problem.fresh),
        problem.black_box(problem.encode_frame),
    )
    result: dict[str, Any] = {"fingerprint": problem.fingerprint(model.predict(fresh)), "runs": []}
    first_start = clock()
    for seed in range(FIRST_SEED, FIRST_SEED + MAX_RUNS):
        black_box = counted_class(model)
        extractor = make_extractor(name, black_box, seed)
        start = clock()
        extractor.extract(rows)
        run = {
            "extract_seconds": clock() - start,
            "n_rules": extractor.n_rules,
            "calls": black_box.calls,
            "rows": black_box.n_rows,
            "boxes": read_boxes(extractor),
        }
        result["runs"].append(run)
        _write_result(path, result)
        start = clock()
        predictions = extractor.predict(fresh)
        run["predict_seconds"] = clock() - start
        run["predictions"] = pd.Series(list(predictions), dtype=object).tolist()
        _write_result(path, result)
        if clock() - first_start > BUDGET_SECONDS:
            break


def _write_result(path: Path, result: dict[str, Any]) -> None:
    """Write the result atomically, because the process may be killed at any time."""
    temporary_path = path.with_suffix(".part")
    temporary_path.write_text(json.dumps(result), encoding="utf-8")
    temporary_path.replace(path)


def add_predictions(problem: Problem) -> pd.DataFrame:
    """Return rows with the predictions as last column; PSyKE uses only the name of this column."""
    rows = problem.encode_frame(problem.rows)
    return rows.assign(target=problem.black_box(problem.encode_frame).predict(rows))


def main() -> int:
    request, path = json.loads(sys.argv[1]), Path(sys.argv[2])
    try:
        run_request(request, path)
    except Exception as error:
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        result["error"] = f"{type(error).__name__}: {error}"
        _write_result(path, result)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
