"""Run ``skescore tune FILE --target T``, and nothing else, on tables as people have them.

Nothing is stored: well-known tables are read out of packages that ship them, ten nasty ones are
made. For each: exit code, rules, fidelity, how many lines of messages came, and whether a rule
names an identifier. `seconds` are those of the whole command; `first rules` and `search` count from
the moment when the black box is ready until its first rules are shown and until the end, without
the time in which the black box of a large table is fitted on all of its rows.

`--only tall.csv broad.csv digits.csv` measures tables that take longer.

Usage: ``python benchmarks/tables/run.py [--only NAME ...] [--folder DIR] [--seconds 120]``
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


def make(name: str, folder: Path) -> TableRequest:
    """Make one table in a folder."""
    if name in SHIPPED:
        return SHIPPED[name](folder / name, folder)
    return (GENERATED | LARGE)[name](folder / name)


def run_command(
    command: list[str], folder: Path, seconds: float, cache: str
) -> tuple[str, str, list[tuple[float, str]]]:
    """Run a command; return its exit code or "late", standard output, and lines of standard error.

    Each line comes with the seconds after which it was written.
    """
    begin = time.perf_counter()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=os.environ | {"XDG_CACHE_HOME": cache},  # no trials of a run that was broken off
        )
        late = threading.Timer(seconds, process.kill)
        late.start()
        assert process.stderr is not None
        lines = [(time.perf_counter() - begin, line) for line in process.stderr]
        code = process.wait()
        is_late = not late.is_alive()
        late.cancel()
        output.seek(0)
        return "late" if is_late else str(code), output.read(), lines


def time_of(lines: list[tuple[float, str]], opening: str) -> float:
    """Return the seconds after which the first line with an opening was written, or NaN."""
    return next((when for when, line in lines if line.startswith(opening)), math.nan)


def measure(request: TableRequest, seconds: float, cache: str) -> dict[str, Any]:
    """Run the command on one table."""
    begin = time.perf_counter()
    try:
        table = read_table(request.path, target=request.target)
        shape = (len(table.frame), table.frame.shape[1] - 1)
    except DatasetError:
        shape = (0, 0)
    reading = time.perf_counter() - begin
    command = [
        sys.executable,
        "-m",
        "skescore",
        "tune",
        request.path.name,
        "--target",
        request.target,
    ]
    begin, before = time.perf_counter(), os.times()
    code, out, lines = run_command(command, request.path.parent, seconds, cache)
    took, after = time.perf_counter() - begin, os.times()
    ready, shown = time_of(lines, "black box ready"), time_of(lines, "first rules")
    later_fit = re.search(
        r"^black box of all rows ready after ([\d.]+) s", "".join(line for _, line in lines), re.M
    )
    searched = took - ready - (float(later_fit[1]) if later_fit else 0.0)
    # On a machine that others use as well, these seconds are the ones to compare.
    computed = after.children_user + after.children_system
    computed -= before.children_user + before.children_system
    _, _, best = out.partition("\nbest: ")
    rules = re.search(r"its (\d+) rules?", best)
    fidelity = re.search(r"fidelity \(.*?\) ([-\d.]+)", best)
    named = [name for name in request.identifiers if re.search(rf"\b{name}\b", best)]
    problem = next((line.strip() for _, line in lines if "error:" in line), "")
    if code == "late":
        problem = f"not done after {seconds:.0f} s"
    if named:
        problem = f"rules name {', '.join(named)}"
    return {
        "table": request.path.name,
        "rows": shape[0],
        "features": shape[1],
        "read": f"{reading:.1f}",
        "first rules": "-" if math.isnan(shown) else f"{shown - ready:.1f}",
        "search": "-" if math.isnan(ready) else f"{searched:.1f}",
        "seconds": f"{took:.0f}",
        "cpu": f"{computed:.0f}",
        "exit": code,
        "rules": rules[1] if rules else "-",
        "fidelity": fidelity[1] if fidelity else "-",
        "lines": len(lines),
        "problem": problem.partition("error: ")[2] or problem,
    }


def main() -> int:
    """Measure all tables; gives 1 if one of them did not end well."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*SHIPPED, *GENERATED]
    choices = [*names, *LARGE]
    parser.add_argument("--only", nargs="+", choices=choices, default=names, metavar="NAME")
    parser.add_argument("--folder", type=Path, help="keep the files there")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each table")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(options.only):
            row = measure(make(name, folder), options.seconds, str(Path(temporary, name, "cache")))
            if number == 0:
                print(f"| {' | '.join(row)} |\n|{' --- |' * len(row)}")
            print(f"| {' | '.join(map(str, row.values()))} |", flush=True)
            bad += bool(row["exit"] != "0" or row["problem"])
    print(f"\n{len(options.only) - bad} of {len(options.only)} tables ended well")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
