"""Use of the contract suite, and features that it does not require."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skescore.extractors import CARTExtractor
from skescore.testing import (
    check_extractor,
    extractor_checks,
    parametrize_with_extractor_checks,
)

FOLDER = Path(__file__).parent
if str(FOLDER) not in sys.path:  # other processes import the extractors by these names
    sys.path.insert(0, str(FOLDER))

from broken_extractors import (  # noqa: E402
    AsksInPredict,
    CountsTheFallback,
    Sound,
)
from duck_extractor import OneCut  # noqa: E402

BLACK_BOXES = {"classification": LogisticRegression(), "regression": LinearRegression()}
#: Each needs two more processes, so it runs only in its own test.
SLOW = "check_hash_seed"


# --- an extractor without the base class ---


@parametrize_with_extractor_checks(
    [OneCut(model) for model in BLACK_BOXES.values()], exclude=[SLOW]
)
def test_extractor_without_base_class_passes_checks(extractor: Any, check: Any) -> None:
    check(extractor)


def test_missing_features_are_skipped() -> None:
    outcomes = check_extractor(OneCut(LogisticRegression()), exclude=SLOW)
    assert [outcome.check for outcome in outcomes] == [
        check.__name__ for check in extractor_checks(exclude=[SLOW])
    ]
    assert {outcome.check: outcome.reason for outcome in outcomes if outcome.reason} == {
        "check_sizes": "has none of n_rules_, coverage_, completeness_",
        "check_probabilities": "has no predict_proba",
        "check_uncovered_policies": "has no parameter uncovered",
        "check_score": "has no score",
        "check_fidelity": "has no fidelity",
        "check_batch_size": "has no parameter batch_size",
        "check_n_jobs": "has no parameter n_jobs",
    }


# --- use of the suite ---


class TwoFaults(AsksInPredict):
    n_rules_ = CountsTheFallback.n_rules_


def test_check_extractor_reports_all_faults() -> None:
    with pytest.raises(AssertionError) as caught:
        check_extractor(TwoFaults(LogisticRegression()), exclude=[SLOW])
    text = str(caught.value)
    assert text.startswith("TwoFaults-classification fails 2 of 40 checks:\n- check_sizes: TwoF")
    assert "\n- check_queries_no_black_box: TwoFaults-classification: predict must need" in text
    assert isinstance(caught.value.__cause__, AssertionError)
    faults = ["check_sizes", "check_queries_no_black_box", SLOW]
    assert len(check_extractor(TwoFaults(LogisticRegression()), exclude=faults)) == 38


def test_checks_have_names_and_summaries() -> None:
    for check in extractor_checks():
        assert re.fullmatch(r"check_[a-z_]+", check.__name__)
        assert check.__doc__
        assert check.__doc__.endswith(".")


def test_check_extractor_does_not_change_it() -> None:
    extractor = Sound(LogisticRegression())
    before = extractor.get_params()
    check_extractor(extractor, exclude=[SLOW])
    assert extractor.get_params() == before
    assert not [name for name in vars(extractor) if name.endswith("_")]
    assert not [name for name in vars(extractor.estimator) if name.endswith("_")]


def test_checks_of_local_classes_are_skipped() -> None:
    class Local(Sound):
        pass

    check = next(c for c in extractor_checks() if c.__name__ == SLOW)
    with pytest.raises(unittest.SkipTest, match="cannot be sent to another process"):
        check("Local", Local(LogisticRegression()))


@pytest.mark.parametrize(
    ("extractor", "exclude", "kind", "message"),
    [
        (CARTExtractor, (), TypeError, r"an instance, got the class CARTExtractor\. Pass CARTE"),
        (object(), (), TypeError, "must have get_params.*Derive its class from sklearn"),
        (CARTExtractor(None), (), TypeError, "must be a scikit-learn classifier, regressor"),
        (
            Sound(LogisticRegression()),
            ["check_jason"],
            ValueError,
            r"exclude must name checks, got 'check_jason'\. Did you mean 'check_json'",
        ),
        (Sound(LogisticRegression()), [None], ValueError, "exclude must name checks, got None"),
    ],
)
def test_check_extractor_rejects_other_objects(
    extractor: Any, exclude: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        check_extractor(extractor, exclude=exclude)
    with pytest.raises(kind, match=message):
        parametrize_with_extractor_checks([extractor], exclude=exclude)


@pytest.mark.slow
def test_pytest_is_optional() -> None:
    program = """
import sys
sys.modules["pytest"] = None  # as if it were not installed
from sklearn.linear_model import LogisticRegression
from skescore.extractors import CARTExtractor
from skescore.testing import check_extractor, extractor_checks, parametrize_with_extractor_checks
some = [c.__name__ for c in extractor_checks()][5:]
assert len(check_extractor(CARTExtractor(LogisticRegression()), exclude=some)) == 5
try:
    parametrize_with_extractor_checks([CARTExtractor(LogisticRegression())])
except ImportError as error:
    sys.stdout.write(str(error))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("A test per check needs the package 'pytest'")
    assert '"pytest>=8.2"' in run.stdout.partition("Run: pip install ")[2]


@pytest.mark.slow
def test_suite_runs_in_tests_of_a_third_party(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(
        f"""
import sys
sys.path.insert(0, {str(FOLDER)!r})
from broken_extractors import CountsTheFallback, Sound
from sklearn.linear_model import LinearRegression, LogisticRegression
from skescore.testing import parametrize_with_extractor_checks

@parametrize_with_extractor_checks(
    [CountsTheFallback(LogisticRegression()), Sound(LinearRegression())],
    exclude=["check_hash_seed"],
)
def test_contract(extractor, check):
    check(extractor)
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rfs", "-p", "no:cacheprovider", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    failed = re.findall(r"^FAILED \S+::(\S+)", run.stdout, flags=re.MULTILINE)
    assert failed == ["test_contract[CountsTheFallback-classification-check_sizes]"], run.stdout
    assert re.search(r"1 failed, 75 passed, 4 skipped", run.stdout), run.stdout
    assert "n_rules_ must be" in run.stdout
