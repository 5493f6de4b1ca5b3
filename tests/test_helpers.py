"""Shared helpers: optional packages, files, texts, name tables, random points, intervals."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import skescore
from skescore import _names
from skescore._binomial import clopper_pearson, clopper_pearson_intervals
from skescore._io import LineFile, json_of, try_lock, write_atomically
from skescore._optional import import_optional
from skescore._random import combine, draw_seed, mix, uniform_points
from skescore._text import cell_text, csv_of, did_you_mean
from skescore.black_boxes import BLACK_BOXES
from skescore.datasets import BUILT_IN
from skescore.metrics import PREDICTION_METRICS, RULE_MEASURES
from skescore.reproduce import BREX_METHODS
from skescore.rules._prediction import VOTINGS
from skescore.scorers import PERFORMANCE_SCORERS, SET_SCORERS, FidelityScorer

PACKAGE = Path(skescore.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


# --- optional packages ---------------------------------------------------------------------------


def test_import_optional_returns_installed_module():
    assert import_optional("math", extra="plots", purpose="Counting") is math


def test_import_optional_returns_submodule():
    module = import_optional("importlib.metadata", extra="plots", purpose="Reading versions")
    assert module.__name__ == "importlib.metadata"


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part.of_it"])
def test_import_optional_names_purpose_and_command(module):
    with pytest.raises(ImportError) as caught:
        import_optional(module, extra="plots", purpose="Drawing a plot")
    assert str(caught.value) == (
        "Drawing a plot needs the package 'no_such_package', which is not installed. "
        'Run: pip install "matplotlib>=3.9"'
    )
    assert caught.value.name == "no_such_package"


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("import a_dependency_that_is_gone", "No module named 'a_dependency_that_is_gone'"),
        ("from math import no_such_function", "cannot import name 'no_such_function'"),
        ("raise ImportError('shared library not found')", "shared library not found"),
    ],
)
def test_import_optional_distinguishes_broken_packages(tmp_path, monkeypatch, source, detail):
    (tmp_path / "broken_module.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match="installed but cannot be imported") as caught:
        import_optional("broken_module", extra="plots", purpose="Drawing a plot")
    assert detail in str(caught.value)
    assert str(caught.value).endswith('Run: pip install --upgrade "matplotlib>=3.9"')
    assert isinstance(caught.value.__cause__, ImportError)


def test_import_optional_reports_missing_submodule():
    with pytest.raises(ImportError, match=r"No module named 'json\.no_such_part'"):
        import_optional("json.no_such_part", extra="plots", purpose="Drawing a plot")


def test_import_optional_keeps_other_errors(tmp_path, monkeypatch):
    (tmp_path / "module_with_a_fault.py").write_text("1 / 0", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ZeroDivisionError):
        import_optional("module_with_a_fault", extra="plots", purpose="Drawing a plot")


def test_extras_named_in_the_code_exist():
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    recommended = {
        (path.name, extra)
        for path in PACKAGE.rglob("*.py")
        for extra in re.findall(
            r"\bextra=\"(\w+)\"|install_commands\(['\"](\w+)", path.read_text(encoding="utf-8")
        )
    }
    names = {(file, first or second) for file, (first, second) in recommended}
    assert names, "the doctest of import_optional alone names an extra"
    assert {(file, extra) for file, extra in names if extra not in extras} == set()


# --- files ---------------------------------------------------------------------------------------


def test_failed_write_keeps_previous_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomically(path, "old ± \udcff\n")
    assert path.read_bytes() == b"old \xc2\xb1 \\udcff\n"
    with pytest.raises(TypeError):
        write_atomically(path, 3)  # type: ignore[arg-type]
    assert [each.name for each in tmp_path.iterdir()] == ["file.txt"]


def test_line_file_restores_lines_of_truncated_files(tmp_path: Path) -> None:
    whole = tmp_path / "whole.txt"
    for line in ("one", "two \x0b ±", ""):
        LineFile(whole, "head").append(line)
    content = whole.read_bytes()
    for cut in range(len(content) + 1):
        path = tmp_path / "cut.txt"
        path.write_bytes(content[:cut])
        lines = LineFile(path, "head").lines
        assert lines == ["one", "two \x0b ±", ""][: max(content[:cut].count(b"\n") - 1, 0)]
        LineFile(path, "head").append("more")
        assert LineFile(path, "head").lines == [*lines, "more"]


def test_lock_excludes_other_processes_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    program = "import sys; from pathlib import Path; from skescore._io import try_lock\n"
    program += "with try_lock(Path(sys.argv[1])) as free: print(free)"

    def other() -> str:
        run = subprocess.run(
            [sys.executable, "-c", program, path], capture_output=True, text=True, check=True
        )
        return run.stdout.strip()

    with try_lock(path) as free:
        assert free
        assert other() == "False"
    assert other() == "True"
    assert not path.exists()


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "names", "sentence"),
    [
        ("gridx", ["gridex", "cart"], "Did you mean 'gridex'? Known: cart, gridex."),
        ("GRIDEX", ["gridex", "cart"], "Did you mean 'gridex'? Known: cart, gridex."),
        (" cart ", ["gridex", "cart"], "Did you mean 'cart'? Known: cart, gridex."),
        ("Petal", ["petal", "sepal"], "Did you mean 'petal'? Known: petal, sepal."),
        ("random_forest", {"random-forest"}, "Did you mean 'random-forest'? Known: random-forest."),
        ("age", ["Age"], "Did you mean 'Age'? Known: Age."),
        ("quux", ["gridex", "cart"], "Known: cart, gridex."),
        ("", ["gridex", "cart"], "Known: cart, gridex."),
        (None, ["gridex", "cart"], "Known: cart, gridex."),
        (3, ["gridex", "cart"], "Known: cart, gridex."),
        ("cart", [], "Known: none."),
    ],
)
def test_did_you_mean_suggests_the_nearest_name(name, names, sentence):
    assert did_you_mean(name, names) == sentence


def test_did_you_mean_sorts_known_names():
    assert did_you_mean("?", iter(["b", "a", "b"])) == "Known: a, b."


def test_did_you_mean_selects_the_nearest_of_several():
    assert did_you_mean("gridrex", ["gridex", "gridrex2", "iter"]).startswith(
        "Did you mean 'gridrex2'?"
    )


# --- points that depend on their place only ------------------------------------------------------

N = 200
LOWER = np.tile([0.0, -5.0, 100.0], (N, 1))
UPPER = np.tile([1.0, 5.0, 100.0], (N, 1))
KEYS = np.arange(N, dtype=np.uint64)


def test_mix_equals_the_published_generator():
    # The first outputs of splitmix64 with seed 1234567 from the C code of its authors.
    state, outputs = 1234567, []
    for _ in range(5):
        outputs.append(int(mix(np.uint64(state))))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert outputs == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_uniform_points_lie_in_their_boxes_in_order():
    counts = np.arange(N) % 7
    points, owner = uniform_points(5, KEYS, counts, LOWER, UPPER)
    np.testing.assert_array_equal(owner, np.repeat(np.arange(N), counts))
    assert (points >= LOWER[owner]).all()
    assert (points <= UPPER[owner]).all()
    assert (points[:, 2] == 100).all()


def test_uniform_points_depend_on_seed_key_and_number_only():
    points, owner = uniform_points(5, KEYS, np.full(N, 10), LOWER, UPPER)
    order = np.random.default_rng(0).permutation(N)
    shuffled, new_owner = uniform_points(5, KEYS[order], np.full(N, 10), LOWER[order], UPPER[order])
    for position in range(0, N, 17):
        np.testing.assert_array_equal(
            shuffled[new_owner == position], points[owner == order[position]]
        )
    fewer, _ = uniform_points(5, KEYS[:3], np.array([4, 0, 2]), LOWER[:3], UPPER[:3])
    np.testing.assert_array_equal(fewer, points[[0, 1, 2, 3, 20, 21]])
    other, _ = uniform_points(6, KEYS, np.full(N, 10), LOWER, UPPER)
    assert not np.isin(points[:, :2], other[:, :2]).any()


def test_uniform_points_are_uniform_and_independent():
    points, _ = uniform_points(0, KEYS, np.full(N, 100), LOWER, UPPER)
    shares = np.column_stack([points[:, 0], (points[:, 1] + 5) / 10])
    n = len(shares)
    assert len(np.unique(shares)) == shares.size
    counts = np.histogram2d(*shares.T, bins=10, range=[[0, 1], [0, 1]])[0]
    # Pearson's statistic has 99 degrees of freedom: 99.9 % of samples lie from 61.1 to 148.2.
    assert 61.1 < ((counts - n / 100) ** 2 / (n / 100)).sum() < 148.2
    # Neighbors in one box and first points of neighboring boxes are independent.
    for a, b in (
        (shares[:-1, 0], shares[1:, 0]),
        (shares[:, 0], shares[:, 1]),
        (shares[:-100, 0], shares[100:, 0]),
    ):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(n)


def test_combine_gives_distinct_keys():
    keys = combine(np.arange(100, dtype=np.uint64)[:, None], np.arange(100)[None, :])
    assert keys.dtype == np.uint64
    assert len(np.unique(keys)) == 10_000
    assert combine(3, 4) != combine(4, 3)


def test_draw_seed_accepts_seeds_and_generators():
    assert draw_seed(3) == draw_seed(3) == draw_seed(np.random.RandomState(3))
    assert draw_seed(3) != draw_seed(4)
    generator = np.random.RandomState(0)
    assert draw_seed(generator) != draw_seed(generator)
    assert draw_seed(None) != draw_seed(None)
    with pytest.raises(ValueError, match=r"random_state must be None, an int from 0 .* got 'seed'"):
        draw_seed("seed")


# --- names that are available without heavy imports -----------------------------------------------


@pytest.mark.parametrize(
    ("light", "full"),
    [
        (_names.BLACK_BOX_NAMES, BLACK_BOXES),
        (_names.DATA_SET_TASKS, BUILT_IN),
        (_names.MEASURE_NAMES, RULE_MEASURES),
        (_names.PREDICTION_METRIC_NAMES, PREDICTION_METRICS),
        (_names.PERFORMANCE_SCORER_NAMES, PERFORMANCE_SCORERS),
        (_names.SET_SCORER_NAMES, SET_SCORERS),
        (_names.BREX_METHOD_NAMES, BREX_METHODS),
    ],
)
def test_name_tables_match_full_registries(light: Iterable[str], full: Iterable[str]) -> None:
    assert list(light) == list(full)


def test_declared_names_match_objects() -> None:
    assert FidelityScorer().name == _names.FIDELITY_SCORER_NAME
    assert dict(_names.DATA_SET_TASKS) == {name: data.task for name, data in BUILT_IN.items()}
    assert set(_names.VOTING_TEXTS) == {kind for kinds in VOTINGS.values() for kind in kinds}


def test_worker_processes_ignore_current_folder(tmp_path):
    """Neither workers nor processes of joblib import a colorsys.py next to the data."""
    from skescore._processes import own_environment, safe_children, worker_command

    for name in ("colorsys", "psutil", "skescore", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('ran what lay here')")
    with subprocess.Popen(
        worker_command(["--version"]), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as worker:
        assert worker.wait(300) == 0
        assert b"skescore" in worker.stdout.read()
    program = [sys.executable, "-c", "import colorsys"]
    with safe_children():
        assert subprocess.run(program, cwd=tmp_path, check=False).returncode == 0
        own_outcome = subprocess.run(
            program, cwd=tmp_path, env=own_environment(), capture_output=True
        )
        assert b"ran what lay here" in own_outcome.stderr  # the command of the user
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.parametrize(
    "start",
    ["cli import main\nmain(['rules', ''])", "_processes import _begin\n_begin(os.getppid())"],
)
def test_processes_end_without_collecting_garbage(start):
    check = "import atexit, gc, os\natexit.register(lambda: print(gc.get_freeze_count() > 0))\n"
    program = [sys.executable, "-c", f"{check}from skescore.{start}"]
    result = subprocess.run(program, capture_output=True, text=True, check=True)
    assert result.stdout == "True\n"


def test_worker_ends_when_its_input_closes():
    program = (
        # Background jobs, and their children with them, may ignore the signal.
        "import signal, time\nfrom skescore._processes import end_with_input\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nend_with_input()\n"
        "print('there', flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as started:
        assert started.stdout.readline() == b"there\n"
        assert started.poll() is None
        started.stdin.close()
        assert started.wait(300) != 0
        assert b"KeyboardInterrupt" in started.stderr.read()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full disk")
def test_full_disk_error_names_file(tmp_path):
    file = LineFile(tmp_path / "rows.csv", "a")
    file.path.unlink()
    file.path.symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left.*rows\.csv"):
        file.append("1")
    (tmp_path / "x.part").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left.*x'"):
        write_atomically(tmp_path / "x", "text" * 10_000)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "1" * 400, "[1, NaN]", "1e999"])
def test_json_of_rejects_hostile_texts_with_value_error(text):
    with pytest.raises(ValueError, match=r"nested|largest float|not a finite number|delimiter"):
        json_of(text, finite=True)


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''=1", "'tis", "-1", "+1e9", ""],
)
def test_csv_quotes_formulas_and_restores_texts(text):
    table = pd.DataFrame({text: [text, "x"], "number": [-1.5, 2.0]})
    header, first, _ = csv.reader(io.StringIO(csv_of(table), newline=""))
    assert [cell_text(header[0]), cell_text(first[0]), first[1]] == [text, text, "-1.5"]
    is_number = text in ("-1", "+1e9")
    assert is_number or not any(
        cell.startswith(tuple("=+-@\t\r")) for cell in (header[0], first[0])
    )


@pytest.mark.parametrize(
    ("hits", "n_samples", "confidence"),
    [(0, 50, 0.95), (50, 50, 0.99), (7, 1000, 0.9), (3, 4, 0.5)],
)
def test_clopper_pearson_agrees_with_scipy(hits: int, n_samples: int, confidence: float) -> None:
    expected = binomtest(hits, n_samples).proportion_ci(confidence, method="exact")
    assert clopper_pearson(hits, n_samples, confidence) == pytest.approx(tuple(expected), rel=1e-9)


@pytest.mark.parametrize("n_samples", [1, 7, 20])
@pytest.mark.parametrize("truth", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_clopper_pearson_has_at_least_its_confidence(n_samples: int, truth: float) -> None:
    probability = 0.0
    for hits in range(n_samples + 1):
        low, high = clopper_pearson(hits, n_samples, 0.9)
        assert 0.0 <= low <= hits / n_samples <= high <= 1.0
        if low <= truth <= high:
            probability += comb(n_samples, hits) * truth**hits * (1 - truth) ** (n_samples - hits)
    assert probability >= 0.9


def test_intervals_of_many_shares_are_those_of_each() -> None:
    hits = np.array([0, 3, 9])
    low, high = clopper_pearson_intervals(hits, 9, 0.95)
    for index, n_hits in enumerate(hits):
        assert (low[index], high[index]) == clopper_pearson(int(n_hits), 9, 0.95)


def test_interval_without_samples_is_everything() -> None:
    assert [float(bound) for bound in clopper_pearson_intervals(0, 0, 0.95)] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((5, 4), "hits must be an integer from 0 to 4, got 5"),
        ((0, 0), "n_samples must be an integer of 1 or more, got 0"),
        ((0, 1, 0.0), "confidence must .*got 0.0"),
    ],
)
def test_clopper_pearson_rejects_invalid_input(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        clopper_pearson(*arguments)
