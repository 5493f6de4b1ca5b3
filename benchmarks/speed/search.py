"""Measure the overhead of a search, and the speedup by a second worker.

    python benchmarks/speed/search.py [--quick]

Prints Markdown tables. The overhead is the time of a search divided by the time of a plain loop.
The loop extracts and scores the same candidates on the same folds (and on all rows, if the search
did). Both run twice, alternately, and the faster run counts. Workers are processes of `skescore
tune` on one journal. Their times include the start of Python and the training of the black box.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from skescore.registry import suitable_extractors
from skescore.scorers import ice
from skescore.tuning import (
    ExtractorSearchCV,
    evaluate_on_fold,
    fold_of_all_rows,
    make_folds,
    open_storage,
)

BLACK_BOX = RandomForestClassifier(100, random_state=0)
FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
DATA = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}


def measure_overhead(name: str, n_trials: int, storage: str, n_rounds: int = 2) -> dict[str, Any]:
    """Measure a search and a plain loop over its candidates alternately."""
    X, y = DATA[name](return_X_y=True, as_frame=True)
    seconds = loop_seconds = math.inf
    for _ in range(n_rounds):
        search, search_seconds = run_search(X, y, n_trials, storage)
        seconds, loop_seconds = (
            min(seconds, search_seconds),
            min(loop_seconds, time_plain_loop(X, y, search)),
        )
    return {
        "data": name,
        "trials": n_trials,
        "storage": storage,
        "search [s]": f"{seconds:.1f}",
        "plain loop [s]": f"{loop_seconds:.1f}",
        "ratio": f"{seconds / loop_seconds:.2f}",
    }


def run_search(X: Any, y: Any, n_trials: int, storage: str) -> tuple[ExtractorSearchCV, float]:
    """Run a search with all extractors; return it and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        storages = {
            "memory": None,
            "journal": f"{folder}/trials.journal",
            "sqlite": f"sqlite:///{folder}/trials.db",
        }[storage]
        search = ExtractorSearchCV(
            BLACK_BOX,
            extractors=suitable_extractors("classification"),
            n_trials=n_trials,
            cv=FOLDS,
            random_state=0,
            refit=False,
            storage=None if storages is None else open_storage(storages),
        )
        start = time.perf_counter()
        search.fit(X, y)
        return search, time.perf_counter() - start


def time_plain_loop(X: Any, y: Any, search: ExtractorSearchCV) -> float:
    """Return the seconds of a plain loop over the candidates of a search."""
    start = time.perf_counter()
    folds = make_folds(clone(BLACK_BOX), X, y, FOLDS, "classification", fitted=False)
    all_rows = fold_of_all_rows(clone(BLACK_BOX), X, y, fitted=False)
    for candidate in search.candidates_:
        extractor = search.make_candidate(candidate)
        for fold in [*folds, all_rows] if candidate.all_rows else folds:
            evaluate_on_fold(extractor, fold, ice)
    return time.perf_counter() - start


def measure_many_trials(n_trials: int, n_jobs: int) -> dict[str, Any]:
    """Measure a large search with all extractors."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    search = ExtractorSearchCV(
        BLACK_BOX,
        extractors=suitable_extractors("classification"),
        n_trials=n_trials,
        cv=FOLDS,
        random_state=0,
        n_jobs=n_jobs,
    )
    start = time.perf_counter()
    search.fit(X, y)
    return {
        "data": "wine",
        "trials": n_trials,
        "processes": n_jobs,
        "seconds": f"{time.perf_counter() - start:.0f}",
        "limit": 120,
    }


def measure_workers(data: str, n_trials: int, seeds: range) -> list[dict[str, Any]]:
    """Measure searches by two workers, and the same trials by one worker.

    A sampler depends on the finished trials, so one worker alone would try other hyperparameters
    with other costs. Therefore, the trials of the two workers are queued for the single worker.
    """
    seconds = {1: 0.0, 2: 0.0}
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder, "two.journal"), Path(folder, "one.journal")
            seconds[2] += time_command(data, paths[0], n_trials, seed, 2)
            queue_finished_trials(*map(open_storage, paths))
            seconds[1] += time_command(data, paths[1], n_trials, seed, 1)
    return [
        {
            "data": data,
            "workers": n_workers,
            "searches": len(seeds),
            "trials each": n_trials,
            "seconds": f"{seconds[n_workers]:.1f}",
            "times as fast": f"{seconds[1] / seconds[n_workers]:.2f}",
        }
        for n_workers in seconds
    ]


def time_command(data: str, journal: Path, n_trials: int, seed: int, n_workers: int) -> float:
    """Return the seconds of `skescore tune`."""
    command = [
        sys.executable,
        "-m",
        "skescore",
        "tune",
        data,
        "--trials",
        str(n_trials),
        "--allocation",
        "even",
        "--storage",
        str(journal),
        "--study",
        data,
        "--workers",
        str(n_workers),
        "--seed",
        str(seed),
        "--quiet",
    ]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def queue_finished_trials(finished: BaseStorage, empty: BaseStorage) -> None:
    """Queue the finished trials of one storage in another one."""
    for name in optuna.get_all_study_names(finished):
        study = optuna.create_study(study_name=name, storage=empty, direction="maximize")
        for trial in optuna.load_study(study_name=name, storage=finished).trials:
            if trial.state.name in ("COMPLETE", "PRUNED"):
                study.enqueue_trial(trial.params)


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a Markdown table."""
    names = list(rows[0])
    lines = [names, ["--:"] * len(names), *([str(row[name]) for name in names] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    print(f"## {title}\n\n{table}\n", flush=True)


def main() -> None:
    """Measure and print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="run a tenth of the trials")
    divisor = 10 if parser.parse_args().quick else 1
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print_table(
        "A search relative to a plain loop",
        [measure_overhead(name, max(60 // divisor, 14), "memory") for name in DATA]
        + [
            measure_overhead("wine", max(60 // divisor, 14), storage)
            for storage in ("journal", "sqlite")
        ],
    )
    print_table("200 trials on wine, five folds", [measure_many_trials(max(200 // divisor, 14), 2)])
    n_trials = max(200 // divisor, 14)
    print_table(
        "Workers on one journal",
        measure_workers("wine", n_trials, range(4))
        + measure_workers("breast_cancer", n_trials, range(2)),
    )


if __name__ == "__main__":
    main()
