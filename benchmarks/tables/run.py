"""Run ``skescore tune FILE --target T``, and nothing else, on tables as people have them.

Nothing is stored: well-known tables are read out of packages that ship them, ten nasty ones are
made. For each: exit code, seconds, rules, fidelity, how many lines of messages came, and whether
a rule names an identifier.

Usage: ``python benchmarks/tables/run.py [--only NAME ...] [--folder DIR] [--seconds 120]``
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nasty import GENERATED, TableRequest
from shipped import SHIPPED

from skescore.datasets import DatasetError, read_table


def make(name: str, folder: Path) -> TableRequest:
    """Make one table in a folder."""
    return (
        GENERATED[name](folder / name)
        if name in GENERATED
        else SHIPPED[name](folder / name, folder)
    )


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
    try:
        process = subprocess.run(
            command,
            cwd=request.path.parent,
            capture_output=True,
            text=True,
            timeout=seconds,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            env=os.environ | {"XDG_CACHE_HOME": cache},  # no trials of a run that was broken off
        )
        code, out, err = str(process.returncode), process.stdout, process.stderr
    except subprocess.TimeoutExpired as stopped:
        code, out = "late", ""
        err = (stopped.stderr or b"").decode("utf-8", "replace")
    took, after = time.perf_counter() - begin, os.times()
    # On a machine that others use as well, these seconds are the ones to compare.
    computed = after.children_user + after.children_system
    computed -= before.children_user + before.children_system
    _, _, best = out.partition("\nbest: ")
    rules = re.search(r"its (\d+) rules?", best)
    fidelity = re.search(r"fidelity \(.*?\) ([-\d.]+)", best)
    named = [name for name in request.identifiers if re.search(rf"\b{name}\b", best)]
    problem = next((line for line in err.splitlines() if "error:" in line), "")
    if code == "late":
        problem = f"not done after {seconds:.0f} s"
    if named:
        problem = f"rules name {', '.join(named)}"
    return {
        "table": request.path.name,
        "rows": shape[0],
        "features": shape[1],
        "read": f"{reading:.1f}",
        "seconds": f"{took:.0f}",
        "cpu": f"{computed:.0f}",
        "exit": code,
        "rules": rules[1] if rules else "-",
        "fidelity": fidelity[1] if fidelity else "-",
        "lines": len(err.splitlines()),
        "problem": problem.partition("error: ")[2] or problem,
    }


def main() -> int:
    """Measure all tables; gives 1 if one of them did not end well."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*SHIPPED, *GENERATED]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
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
