"""The contract suite finds every fault by the check for it and by no other."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skescore.testing import check_extractor, extractor_checks

FOLDER = str(Path(__file__).parent)
if FOLDER not in sys.path:  # other processes import the extractors by these names
    sys.path.insert(0, FOLDER)

from broken_extractors import Sound, SoundGrid, broken  # noqa: E402

BLACK_BOXES = {"classification": LogisticRegression(), "regression": LinearRegression()}
#: Each needs two more processes, so it runs only in its own test.
SLOW = "check_hash_seed"


def failing(extractor: Any, *, exclude: tuple[str, ...] = ()) -> dict[str, str]:
    results = {}
    for check in extractor_checks(exclude=exclude):
        try:
            check("TheirExtractor", extractor)
        except unittest.SkipTest:
            continue
        except AssertionError as error:
            results[check.__name__] = str(error)
    return results


def test_faults_exist_for_every_check() -> None:
    checks = [check.__name__ for check in extractor_checks()]
    assert {kind.fault for kind in broken().values()} == set(checks)
    assert len(set(checks)) == len(checks)


@pytest.mark.slow
@pytest.mark.parametrize("name", broken())
def test_fault_fails_exactly_one_check(name: str) -> None:
    kind = broken()[name]
    exclude = () if kind.fault == SLOW else (SLOW,)
    result = failing(kind(BLACK_BOXES[kind.kind]), exclude=exclude)
    assert list(result) == [kind.fault], result
    assert result[kind.fault].startswith("TheirExtractor: ")
    assert len(result[kind.fault]) > 40


@pytest.mark.parametrize("kind", [Sound, SoundGrid])
@pytest.mark.parametrize("task", BLACK_BOXES)
def test_extractors_without_faults_pass(kind: type, task: str) -> None:
    outcomes = check_extractor(kind(BLACK_BOXES[task]), exclude=[SLOW])
    skipped = {outcome.check for outcome in outcomes if outcome.status == "skipped"}
    expected = {"check_n_jobs"}
    if task == "regression":
        expected |= {"check_labels", "check_probabilities"}
    assert skipped == expected
