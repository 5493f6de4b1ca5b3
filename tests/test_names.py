"""Names that can be read without importing what they stand for agree with what they stand for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from skescore import _names
from skescore.black_boxes import BLACK_BOXES
from skescore.datasets import BUILT_IN
from skescore.metrics import MEASURES
from skescore.metrics._prediction import METRICS
from skescore.reproduce import BREX_METHODS
from skescore.rules._prediction import VOTINGS
from skescore.scorers import PERFORMANCE_SCORERS, SCORE_SPECS


@pytest.mark.parametrize(
    ("light", "full"),
    [
        (_names.BLACK_BOX_NAMES, BLACK_BOXES),
        (_names.DATA_SET_TASKS, BUILT_IN),
        (_names.MEASURE_NAMES, MEASURES),
        (_names.METRIC_NAMES, METRICS),
        (_names.PERFORMANCE_SCORER_NAMES, PERFORMANCE_SCORERS),
        (_names.SCORES, SCORE_SPECS),
        (_names.BREX_METHOD_NAMES, BREX_METHODS),
    ],
)
def test_a_light_table_has_the_names_of_the_full_one_in_its_order(
    light: Iterable[str], full: Iterable[str]
) -> None:
    assert list(light) == list(full)


def test_what_is_told_beside_the_names_is_so() -> None:
    assert dict(_names.DATA_SET_TASKS) == {name: data.task for name, data in BUILT_IN.items()}
    assert set(_names.VOTING_TEXTS) == {kind for kinds in VOTINGS.values() for kind in kinds}
    for name, told in _names.SCORES.items():
        assert {key: getattr(SCORE_SPECS[name], key) for key in told._fields} == told._asdict()


#: Heavier than all of the command line.
HEAVY = ("numpy", "scipy", "sklearn", "pandas", "optuna", "rich", "joblib", "skescore.scorers")
_PROGRAM = """
import json, sys
from skescore.cli import build_parser, main
build_parser().format_help()
codes = []
for words in json.loads(sys.argv[1]):
    try:
        codes.append(main(words))
    except SystemExit as stop:
        codes.append(stop.code)
print(json.dumps([codes, [name for name in {heavy!r} if name in sys.modules]]))
"""


def test_help_wrong_usage_and_missing_files_import_nothing_heavy(tmp_path: Path) -> None:
    codes = {
        "tune --help": 0,
        "tune iris --trails 5": 2,
        "tune iris --extractors crat": 2,
        "tune iris --scoring icee": 2,
        "score rules.json iris --measures c3": 2,
        "bench --suite smok": 2,
        "reproduce brex --methods brexit": 2,
        "tune no_such_file.csv": 1,
        "tune iris --test no_such_file.csv": 1,
        "tune iris --black-box no_such_model.skops": 1,
        "score no_such_rules.json wine": 1,
        "predict no_such_rules.json wine": 1,
        "import no_such_model.skops": 1,
        "report no_such_run": 1,
        "bench --data iris,no_such_file.csv": 1,
        "bench": 2,
        "tune iris --workers 0": 2,
        "score rules.json iris --assigned-rows": 1,
    }
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(heavy=HEAVY),
         json.dumps([words.split() for words in codes])],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    found, loaded = json.loads(run.stdout.splitlines()[-1])
    assert dict(zip(codes, found, strict=True)) == codes
    assert loaded == []
    errors = [line for line in run.stderr.splitlines() if ": error: " in line]
    for line, part in zip(
        errors,
        (
            "no option --trails", "Did you mean 'cart'", "Did you mean 'ice'", "measure of rules",
            "Did you mean 'smoke'", "no method 'brexit'", "nor an existing file. Known: breast",
            "nor an existing file. Known: breast", "'no_such_model.skops' does not exist.",
            "no file no_such_rules.json; name the rules.json", "no file no_such_rules.json",
            "no file no_such_model.skops; name a model or rules", "no folder no_such_run. Name",
            "'no_such_file.csv' is neither", "say what to measure", "whose --storage is needed",
            "no file rules.json",
        ),
        strict=True,
    ):  # fmt: skip
        assert part in line
