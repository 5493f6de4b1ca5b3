"""Run ``skescore tune FILE --target T`` without further options on realistic tables.

    python benchmarks/tables/run.py [--only NAME ...] [--folder DIR] [--seconds 120]

Well-known tables are read from Python packages, and ten tables with typical defects are generated;
no table is stored. The output shows, for each table, the exit code, rules, fidelity, the number of
message lines, and whether a rule uses an identifier. `seconds` is the wall time of the whole
command. `first rules` and `search` are the times from the moment when the black box is ready until
the first rules and until the end, without the time in which the black box of a large table is
fitted on all rows.

`--only tall.csv broad.csv digits.csv` measures tables that take longer.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from large import LARGE
from nasty import GENERATED, TableRequest
from shipped import SHIPPED

from skescore.datasets import DatasetError, read_table


def make_table(name: str, folder: Path) -> TableRequest:
    """Write a table to a folder."""
    if name in SHIPPED:
        return SHIPPED[name](folder / name, folder)
    return (GENERATED | LARGE)[name](folder / name)


def run_command(
    command: list[str], folder: Path, seconds: float, cache: str
) -> tuple[str, str, list[tuple[float, str]]]:
    """Run a command; return its exit code or "late", standard output, and lines of standard error.

    Each line is returned with its time in seconds since the start.
    """
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=os.environ
            | {"XDG_CACHE_HOME": cache},  # an empty cache without trials of interrupted runs
        )
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        assert process.stderr is not None
        lines = [(time.perf_counter() - start, line) for line in process.stderr]
        code = process.wait()
        is_late = not timer.is_alive()
        timer.cancel()
        output.seek(0)
        return "late" if is_late else str(code), output.read(), lines


def first_time(lines: list[tuple[float, str]], opening: str) -> float:
    """Return the time of the first line with a given opening, or NaN."""
    return next((seconds for seconds, line in lines if line.startswith(opening)), math.nan)


def measure(request: TableRequest, seconds: float, cache: str) -> dict[str, Any]:
    """Run the command on one table."""
    start = time.perf_counter()
    try:
        table = read_table(request.path, target=request.target)
        shape = (len(table.frame), table.frame.shape[1] - 1)
    except DatasetError:
        shape = (0, 0)
    read_seconds = time.perf_counter() - start
    command = [
        sys.executable,
        "-m",
        "skescore",
        "tune",
        request.path.name,
        "--target",
        request.target,
    ]
    start, times_before = time.perf_counter(), os.times()
    code, output, lines = run_command(command, request.path.parent, seconds, cache)
    total_seconds, times_after = time.perf_counter() - start, os.times()
    ready_time, first_rules_time = (
        first_time(lines, "model ready"),
        first_time(lines, "first rules"),
    )
    refit = re.search(
        r"^model of all rows ready after ([\d.]+) s", "".join(line for _, line in lines), re.M
    )
    search_seconds = total_seconds - ready_time - (float(refit[1]) if refit else 0.0)
    # On a loaded machine, compare the CPU times.
    cpu_seconds = times_after.children_user + times_after.children_system
    cpu_seconds -= times_before.children_user + times_before.children_system
    _, _, best = output.partition("\nbest: ")
    rules = re.search(r"its (\d+) rules?", best)
    fidelity = re.search(r"fidelity \(.*?\) ([-\d.]+)", best)
    used_identifiers = [name for name in request.identifiers if re.search(rf"\b{name}\b", best)]
    problem = next((line.strip() for _, line in lines if "error:" in line), "")
    if code == "late":
        problem = f"not finished after {seconds:.0f} s"
    if used_identifiers:
        problem = f"rules use {', '.join(used_identifiers)}"
    return {
        "table": request.path.name,
        "rows": shape[0],
        "features": shape[1],
        "read": f"{read_seconds:.1f}",
        "first rules": "-"
        if math.isnan(first_rules_time)
        else f"{first_rules_time - ready_time:.1f}",
        "search": "-" if math.isnan(ready_time) else f"{search_seconds:.1f}",
        "seconds": f"{total_seconds:.0f}",
        "cpu": f"{cpu_seconds:.0f}",
        "exit": code,
        "rules": rules[1] if rules else "-",
        "fidelity": fidelity[1] if fidelity else "-",
        "lines": len(lines),
        "problem": problem.partition("error: ")[2] or problem,
    }


def main() -> int:
    """Measure all tables; return 1 if any run fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*SHIPPED, *GENERATED]
    choices = [*names, *LARGE]
    parser.add_argument("--only", nargs="+", choices=choices, default=names, metavar="NAME")
    parser.add_argument("--folder", type=Path, help="folder in which the files are kept")
    parser.add_argument("--seconds", type=float, default=120.0, help="time limit per table")
    options = parser.parse_args()
    n_failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(options.only):
            row = measure(
                make_table(name, folder), options.seconds, str(Path(temporary, name, "cache"))
            )
            if number == 0:
                print(f"| {' | '.join(row)} |\n|{' --- |' * len(row)}")
            print(f"| {' | '.join(map(str, row.values()))} |", flush=True)
            n_failed += bool(row["exit"] != "0" or row["problem"])
    print(f"\n{len(options.only) - n_failed} of {len(options.only)} tables succeeded")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
