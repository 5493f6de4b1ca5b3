"""Fork a worker for every line of JSON on standard input, so that all share the imports.

Each is a process of its own, as one of a command line that joins a study would be.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import alembic.command  # noqa: F401
import optuna
import optuna.storages._rdb.storage
from optuna.trial import TrialState
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from skescore.tuning import (
    ExtractorObjective,
    Heartbeat,
    announce_worker,
    open_storage,
    retry_stale,
)

for module in ("psycopg", "grpc", "google.protobuf"):
    with contextlib.suppress(ImportError):
        importlib.import_module(module)


def objective_of(extractor: str) -> ExtractorObjective:
    X, y = (part[::3] for part in load_iris(return_X_y=True))
    black_box = DecisionTreeClassifier(max_depth=3, random_state=0)
    return ExtractorObjective(black_box, X, y, extractor=extractor, cv=3, random_state=0)


def work(order: dict[str, Any]) -> None:
    """Run trials until enough are complete and none is left behind; or hang in the first."""
    study = optuna.load_study(
        study_name=order["study"],
        storage=open_storage(order["storage"]),
        sampler=optuna.samplers.RandomSampler(seed=order["seed"]),
        pruner=optuna.pruners.NopPruner(),  # every trial is finished
    )
    objective = objective_of(order["extractor"])
    while True:
        retry_stale(study, grace=order["grace"])
        states = [trial.state for trial in study.get_trials(deepcopy=False)]
        if (
            states.count(TrialState.COMPLETE) >= order["enough"]
            and TrialState.WAITING not in states
        ):
            if TrialState.RUNNING not in states:
                return
            time.sleep(0.05)
            continue
        announce_worker(study)
        trial = study.ask()
        with Heartbeat(trial, interval=order["interval"]) as heartbeat:
            if "hangs" in order:
                objective.suggest(trial)
                Path(order["hangs"]).write_text(str(trial.number))
                signal.pause()
            value = objective(trial)
        if not heartbeat.lost:
            study.tell(trial, value, skip_if_finished=True)


def serve(order: dict[str, Any]) -> None:
    """Run the proxy of Optuna in front of a storage."""
    warnings.simplefilter("ignore")  # experimental in Optuna
    optuna.storages.run_grpc_proxy_server(
        open_storage(order["storage"]), host="127.0.0.1", port=order["port"]
    )


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended processes are reaped at once
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid:
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        code = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            optuna.logging.set_verbosity(optuna.logging.ERROR)
            warnings.simplefilter("error")
            (serve if "port" in order else work)(order)
            code = 0
        except BaseException:
            Path(order["log"]).write_text(traceback.format_exc())
        os._exit(code)


if __name__ == "__main__":
    main()
