from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from skescore.cli import build_parser
from skescore.reproduce import reproduce_fire, reproduce_ice

COMMAND = "reproduce"

pytestmark = pytest.mark.slow

SHORT_FIRE = ("fire", "--splits", "1")
SHORT_ICE = (
    "ice",
    "--data",
    "wine",
    "--extractors",
    "cart",
    "--trials",
    "3",
    "--splits",
    "2",
)


def without_run(value):
    """Return the data that do not change from run to run."""
    if isinstance(value, dict):
        return {k: without_run(v) for k, v in value.items() if k not in ("run", "seconds")}
    return [without_run(v) for v in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_reproduce_fire_json_equals_the_function(run):
    code, out, err = run(*SHORT_FIRE, "--seed", "5", "--format", "json", "--quiet")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert without_run(data) == without_run(reproduce_fire(n_splits=1, random_state=5))
    assert data["run"]["command_line"][:3] == ["skescore", "reproduce", "fire"]
    assert {"python", "skescore", "scikit-learn"} <= set(data["run"]["versions"])


def test_reproduce_ice_json_equals_the_function(run):
    code, out, err = run(*SHORT_ICE, "--phi", "1", "--rho", "2", "--format", "json", "--quiet")
    assert (code, err) == (0, "")
    expected = reproduce_ice(
        data=["wine"], extractors=["cart"], n_trials=3, n_splits=2, weights=(1, 2)
    )
    assert without_run(json.loads(out)) == without_run(expected)


def cells_of(text, start):
    (line,) = [line for line in text.splitlines() if line.startswith(start)]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_reproduce_fire_markdown_compares_with_printed(run):
    code, out, err = run(*SHORT_FIRE, "--format", "markdown")
    assert code == 0
    for row in reproduce_fire(n_splits=1)["rows"]:
        printed = row["printed"]
        assert cells_of(out, f"| {row['row']} | printed")[2:7] == [
            printed["accuracy"],
            str(printed["n_rules"]),
            *printed["fire"].values(),
        ]
    lines = out.splitlines()
    last = next(i for i, x in enumerate(lines) if x.startswith("| GridEx, 4 x 4 slices | printed"))
    # 0.03 * 8 steps * 8^0.05, and so on.
    assert lines[last + 1].split("|")[5:8] == [" 0.27 ", " 0.13 ", " 0.10 "]
    assert lines[last + 2].split("|")[3:5] == [" 0.967 ", " 7 "]
    assert "## Reasons for differences" in out
    assert "does not follow from the formula" in out
    # Progress is on the other stream.
    assert err.splitlines()[-1].startswith("6 of 6: ours public in ")
    assert " of 4: " not in out


def test_reproduce_ice_text_compares_with_printed(run):
    code, out, err = run(*SHORT_ICE)
    assert code == 0
    lines = out.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("CART "))
    assert lines[first].split() == [
        *("CART", "printed", "0.89", "3", "1.00"),
        *("0.338", "0.357", "0.119", "0.972", "0.949", "0.898"),
    ]
    assert lines[first + 1].split() == [
        "recomputed",
        "0.330",
        "0.349",
        "0.116",
        "0.972",
        "0.950",
        "0.898",
    ]
    assert lines[first + 2].split() == [
        "at",
        "settings",
        "0.887",
        "3",
        "1.00",
        *lines[first].split()[5:],
    ]
    assert lines[first + 3].startswith("           in sample")
    assert "±" in lines[first + 4]
    assert len(err.splitlines()) == 4
    code, out, _ = run(*SHORT_ICE[:-1], "1")
    assert "±" not in out  # one split has no spread


def test_reproduce_writes_output_files(run, tmp_path):
    folder = tmp_path / "new" / "tables"
    code, out, _ = run(*SHORT_ICE, "--output", folder, "--format", "json")
    assert code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "ice.cells.jsonl",
        "ice.csv",
        "ice.json",
    ]
    assert json.loads((folder / "ice.json").read_text()) == json.loads(out)
    frame = pd.read_csv(folder / "ice.csv", dtype={"printed.f1": str})
    assert frame["printed.f1"].tolist() == ["0.89"]
    assert frame["in_sample.f1"][0] == pytest.approx(
        json.loads(out)["rows"][0]["in_sample"]["f1"], abs=1e-12
    )


def test_reproduce_reuses_results_of_repeated_command(run, tmp_path):
    first = run(*SHORT_ICE, "--output", tmp_path, "--format", "json")
    second_outcome = run(*SHORT_ICE, "--output", tmp_path, "--format", "json")
    assert without_run(json.loads(first[1])) == without_run(json.loads(second_outcome[1]))
    assert (len(first[2].splitlines()), second_outcome[2]) == (4, "")
    code, out, err = run(*SHORT_ICE, "--output", tmp_path, "--seed", "1")
    assert (code, out) == (1, "")
    assert "random_state 0 instead of 1" in err
    assert "--overwrite" in err
    code, _, err = run(*SHORT_ICE, "--output", tmp_path, "--seed", "1", "--overwrite")
    assert (code, len(err.splitlines())) == (0, 4)


@pytest.mark.slow
def test_killed_reproduce_run_is_resumed(run, tmp_path):
    path = tmp_path / "fire.cells.jsonl"
    words = ["reproduce", "fire", "--splits", "40", "--output", str(tmp_path), "--quiet"]
    process = subprocess.Popen([sys.executable, "-m", "skescore", *words])
    try:
        limit = time.monotonic() + 120
        while not (path.exists() and path.read_bytes().count(b'["ours", "half"') >= 1):
            assert process.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    assert not (tmp_path / "fire.json").exists()
    code, out, err = run("fire", "--splits", "2", "--output", tmp_path, "--format", "json")
    assert code == 0
    assert without_run(json.loads(out)) == without_run(reproduce_fire(n_splits=2))
    # The cell that the killed run had stored, and those before it, are not computed again.
    n_left = len(err.splitlines())
    assert n_left <= 8 - 4
    assert err.startswith(f"{8 - n_left + 1} of 8: ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["fire", "--splits", "0"], 2, "--splits: must be an integer of at least 1, got '0'"),
        (["ice", "--data", "iris"], 2, "there is no data set 'iris'. Known: breast_cancer, wine."),
        (["ice", "--phi", "0"], 2, "--phi: must be a number above 0, got '0'"),
        (["fire", "--output", __file__], 1, "is a file; name a folder."),
        (["ice", "--output", f"{__file__}/x"], 1, "cannot be written to"),
    ],
)
def test_reproduce_rejects_invalid_options(words, code, message, run):
    result, out, err = run(*words)
    assert (result, out) == (code, "")
    assert message in err


def test_reproduce_needs_installed_psyke(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "psyke", None)
    code, out, err = run("fire", "--psyke", "--quick", "--quiet")
    assert (code, out) == (1, "")
    assert "pip install" in err


def test_stored_tables_match_commands():
    """The tables of benchmarks/paper/tables.md follow from their stored cells."""
    folder = Path(__file__).parents[2] / "benchmarks" / "paper"
    page = (folder / "tables.md").read_text(encoding="utf-8")
    commands = re.findall(r"^`(skescore .+)`:$", page, flags=re.MULTILINE)
    assert {command.split()[2] for command in commands} >= {"fire", "ice"}
    for command in commands:
        assert build_parser().parse_args(command.split()[1:]).run
    n_fire, n_ice = (
        sum(
            row.get("engine", "ours") == "ours"
            for row in json.loads((folder / "results" / f"{paper}.json").read_text())["rows"]
        )
        for paper in ("fire", "ice")
    )
    assert page.count(" | printed | ") == 1 + n_fire + n_ice
    assert page.count("|  | held out | ") == page.count("|  | in sample | ") == n_ice
    for line in (folder / "results" / "ice.cells.jsonl").read_text().splitlines()[1:]:
        cell = json.loads(line)
        if cell["key"][2] == "in_sample":
            line_of_cell = (
                f"|  | in sample | {cell['value']['f1']:.3f} | {cell['value']['n_rules']} |"
            )
            assert line_of_cell in page
