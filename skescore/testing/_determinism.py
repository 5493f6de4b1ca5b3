"""Checks that the same data and seed give the same rules, whatever machine they are made on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from skescore.testing._samples import (
    around,
    check,
    expect,
    expect_same_rules,
    fitted,
    need_reproducible,
    neighbours,
    sample,
    skip,
    task_of,
)

_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
import joblib
extractor, X, y = joblib.load(sys.argv[1])
sys.stdout.write(extractor.fit(X, y).rules_.to_json())
"""


@check
def check_reproducible(name: str, extractor: Any) -> None:
    """Copies with one seed in `random_state` give the same rules."""
    rules = [fitted(extractor).rules_ for _ in range(4)]
    expect(
        all(other == rules[0] for other in rules[1:]),
        name,
        "fits on the same rows must give the same rules. Draw random numbers from "
        "sklearn.utils.check_random_state(self.random_state) alone, and loop over no sets.",
    )


@check
def check_global_random_state(name: str, extractor: Any) -> None:
    """NumPy's global generator is neither seeded nor used, nor Python's."""
    kept: Any = np.random.get_state()
    kept_by_python = random.getstate()
    try:
        np.random.seed(3)
        random.seed(3)
        before: Any = np.random.get_state()
        before_in_python = random.getstate()
        fitted(extractor)
        after: Any = np.random.get_state()
        same = np.array_equal(before[1], after[1]) and before[2:] == after[2:]
        expect(same, name, "fit must leave NumPy's global generator alone.")
        same = before_in_python == random.getstate()
        expect(same, name, "fit must leave Python's global generator alone.")
    finally:
        np.random.set_state(kept)
        random.setstate(kept_by_python)


def _same_with(name: str, extractor: Any, parameter: str, values: tuple[Any, ...]) -> None:
    if parameter not in extractor.get_params(deep=False):
        skip(f"has no parameter {parameter}")
    expected = fitted(extractor, **{parameter: None})
    for value in values:
        found = fitted(extractor, **{parameter: value})
        text = f"{parameter}={value} must not change the rules."
        expect_same_rules(name, extractor, found, expected, text)


@check
def check_batch_size(name: str, extractor: Any) -> None:
    """How many rows the black box is shown at once does not matter."""
    _same_with(name, extractor, "batch_size", (13, 1000))


@check
def check_n_jobs(name: str, extractor: Any) -> None:
    """How many workers there are does not matter."""
    _same_with(name, extractor, "n_jobs", (1, 2))


@check
def check_hash_seed(name: str, extractor: Any) -> None:
    """Python's hash seed, another one in each process, does not matter."""
    task = task_of(extractor)
    X, y = sample(task)
    copied = around(extractor, neighbours(task))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "extractor.joblib"
        try:
            joblib.dump((copied, X, y), path)
        except Exception as error:
            skip(f"cannot be sent to another process ({error}), see check_pickle")
        runs = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _PROGRAM,
                    str(path),
                    json.dumps([str(part) for part in sys.path]),
                ],
                env=os.environ | {"PYTHONHASHSEED": seed},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            for seed in ("1", "2")
        ]
        outputs = [run.communicate() for run in runs]
    for run, (_, errors) in zip(runs, outputs, strict=True):
        if run.returncode and ("ModuleNotFoundError" in errors or "Can't get attribute" in errors):
            skip(f"{type(extractor).__module__} cannot be imported by another process")
        expect(not run.returncode, name, f"fit failed in another process:\n{errors}")
    expected = fitted(extractor).rules_.to_json()
    if any(found != expected for found, _ in outputs):
        need_reproducible(extractor)
        raise AssertionError(
            f"{name}: rules must not depend on PYTHONHASHSEED: sort what comes out of a set."
        )
