"""What a search costs beside bare extraction and scoring, and what further workers bring.

    python benchmarks/speed/search.py [--quick]

Prints Markdown tables. The overhead is the time of a search over that of extracting and scoring
the same candidates on the same folds (and on all rows, where the search did) in a plain loop,
without a study; of two runs in turn the faster one counts on both sides. Workers are processes of
`skescore tune` on one journal; starting Python and training the black box counts for both sides.
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


def overhead(name: str, n_trials: int, storage: str, rounds: int = 2) -> dict[str, Any]:
    """A search beside a loop over the same candidates, in turn."""
    X, y = DATA[name](return_X_y=True, as_frame=True)
    seconds = bare = math.inf
    for _ in range(rounds):
        search, search_seconds = searching(X, y, n_trials, storage)
        seconds, bare = min(seconds, search_seconds), min(bare, bare_loop(X, y, search))
    return {
        "data": name,
        "trials": n_trials,
        "kept in": storage,
        "search [s]": f"{seconds:.1f}",
        "bare loop [s]": f"{bare:.1f}",
        "ratio": f"{seconds / bare:.2f}",
    }


def searching(X: Any, y: Any, n_trials: int, storage: str) -> tuple[ExtractorSearchCV, float]:
    """A search of all extractors, and its seconds."""
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
        begin = time.perf_counter()
        search.fit(X, y)
        return search, time.perf_counter() - begin


def bare_loop(X: Any, y: Any, search: ExtractorSearchCV) -> float:
    """The seconds that the candidates of a search take without it."""
    begin = time.perf_counter()
    folds = make_folds(clone(BLACK_BOX), X, y, FOLDS, "classification", fitted=False)
    all_rows = fold_of_all_rows(clone(BLACK_BOX), X, y, fitted=False)
    for candidate in search.candidates_:
        extractor = search.make_candidate(candidate)
        for fold in [*folds, all_rows] if candidate.all_rows else folds:
            evaluate_on_fold(extractor, fold, ice)
    return time.perf_counter() - begin


def many_trials(n_trials: int, n_jobs: int) -> dict[str, Any]:
    """A large search of all extractors."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    search = ExtractorSearchCV(
        BLACK_BOX,
        extractors=suitable_extractors("classification"),
        n_trials=n_trials,
        cv=FOLDS,
        random_state=0,
        n_jobs=n_jobs,
    )
    begin = time.perf_counter()
    search.fit(X, y)
    return {
        "data": "wine",
        "trials": n_trials,
        "processes": n_jobs,
        "seconds": f"{time.perf_counter() - begin:.0f}",
        "limit": 120,
    }


def workers(data: str, n_trials: int, seeds: range) -> list[dict[str, Any]]:
    """Searches by two workers, and the very same trials by one.

    Samplers learn from what is known when they are asked, so that a search by one worker would try
    other hyperparameters, dearer or cheaper ones. So what two have tried is queued for one.
    """
    seconds = {1: 0.0, 2: 0.0}
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            paths = Path(folder, "two.journal"), Path(folder, "one.journal")
            seconds[2] += tuning(data, paths[0], n_trials, seed, 2)
            queue_anew(*map(open_storage, paths))
            seconds[1] += tuning(data, paths[1], n_trials, seed, 1)
    return [
        {
            "data": data,
            "workers": number,
            "searches": len(seeds),
            "trials each": n_trials,
            "seconds": f"{seconds[number]:.1f}",
            "times as fast": f"{seconds[1] / seconds[number]:.2f}",
        }
        for number in seconds
    ]


def tuning(data: str, journal: Path, n_trials: int, seed: int, n_workers: int) -> float:
    """The seconds of the command."""
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
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def queue_anew(finished: BaseStorage, empty: BaseStorage) -> None:
    """Queue what was tried in one storage in another."""
    for name in optuna.get_all_study_names(finished):
        study = optuna.create_study(study_name=name, storage=empty, direction="maximize")
        for trial in optuna.load_study(study_name=name, storage=finished).trials:
            if trial.state.name in ("COMPLETE", "PRUNED"):
                study.enqueue_trial(trial.params)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a Markdown table."""
    names = list(rows[0])
    lines = [names, ["--:"] * len(names), *([str(row[name]) for name in names] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    print(f"## {title}\n\n{table}\n", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    part = 10 if parser.parse_args().quick else 1
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    show(
        "Search beside a bare loop",
        [overhead(name, max(60 // part, 14), "memory") for name in DATA]
        + [overhead("wine", max(60 // part, 14), storage) for storage in ("journal", "sqlite")],
    )
    show("200 trials on wine, five folds", [many_trials(max(200 // part, 14), 2)])
    many = max(200 // part, 14)
    show(
        "Workers on one journal",
        workers("wine", many, range(4)) + workers("breast_cancer", many, range(2)),
    )


if __name__ == "__main__":
    main()
