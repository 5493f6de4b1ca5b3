"""Measure the time of imports and commands in fresh processes, relative to scikit-learn.

    python benchmarks/speed/imports.py [--repeats 7]

Prints two Markdown tables with the smallest CPU seconds, their ratios, and the imported heavy
packages. The exit code is 1 if `import skescore` takes 3 times as long as its peer or imports a
heavy package, if any statement starts Java, or if a command without computations (help, wrong
usage, missing file) takes 0.4 times as long as `import sklearn` or imports a heavy package.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile

PEER = "import numpy, sklearn.base"
STATEMENTS = (
    "import skescore",
    "from skescore import RuleSet",
    "from skescore import CARTExtractor",
    "from skescore import PSyKEExtractor",
    "from skescore import ExtractorSearchCV",
)
LIMIT = 3.0
#: Packages that `import skescore` must not import.
HEAVY_PACKAGES = ("optuna", "jpype", "psyke", "matplotlib", "pandas", "sklearn", "numpy")
#: Peer of the commands.
COMMAND_PEER = "import sklearn"
#: Commands without computations, and their exit codes.
COMMANDS = {
    "--help": 0,
    "tune --help": 0,
    "score --help": 0,
    "rules --help": 0,
    "predict --help": 0,
    "explain --help": 0,
    "import --help": 0,
    "report --help": 0,
    "bench --help": 0,
    "reproduce ice --help": 0,
    "doctor --help": 0,
    "completion bash": 0,
    "tune iris --trails 5": 2,
    "tune iris --extractors crat": 2,
    "tune iris --scoring icee": 2,
    "score rules.json wine --measures c3": 2,
    "bench --suite smok": 2,
    "bench": 2,
    "bench --data no_such_file.csv": 1,
    "report no_such_run": 1,
    "tune no_such_file.csv": 1,
    "tune iris --black-box no_such_model.skops": 1,
    "score no_such_rules.json wine": 1,
    "rules no_such_rules.json": 1,
    "import no_such_model.skops": 1,
}
COMMAND_LIMIT = 0.4
_PROGRAM = """
import json, sys
{statement}
print(json.dumps([name for name in {heavy!r} if name in sys.modules]), file=sys.stderr)
"""
_CALL = """
from skescore.cli import main
try:
    code = main({words!r})
except SystemExit as stop:
    code = stop.code
assert code == {code}, code
"""


def measure(statement: str, repeats: int) -> tuple[float, list[str]]:
    """Return the smallest CPU seconds of fresh processes, and the heavy packages they load."""
    best, heavy_packages = float("inf"), []
    program = _PROGRAM.format(statement=statement, heavy=HEAVY_PACKAGES)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run = subprocess.run(
                [sys.executable, "-c", program],
                capture_output=True,
                text=True,
                check=True,
                cwd=folder,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            heavy_packages = json.loads(run.stderr.splitlines()[-1])
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best = min(best, seconds)
    return best, heavy_packages


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    python_seconds, _ = measure("pass", repeats)  # the interpreter itself
    peer_seconds = measure(PEER, repeats)[0] - python_seconds
    print(f"| statement | seconds | times `{PEER}` ({peer_seconds:.3f} s) | loaded packages |")
    print("| :-- | --: | --: | :-- |")
    has_failed = False
    for statement in STATEMENTS:
        seconds, heavy_packages = measure(statement, repeats)
        seconds -= python_seconds
        print(
            f"| `{statement}` | {seconds:.3f} | {seconds / peer_seconds:.2f} "
            f"| {', '.join(heavy_packages)} |"
        )
        if statement == "import skescore":
            has_failed |= seconds > LIMIT * peer_seconds or bool(heavy_packages)
        has_failed |= bool({"jpype", "psyke"} & set(heavy_packages))
    peer_seconds, _ = measure(COMMAND_PEER, repeats)
    print(
        f"\n| command | seconds | times `{COMMAND_PEER}` ({peer_seconds:.3f} s) | loaded packages |"
    )
    print("| :-- | --: | --: | :-- |")
    for command, code in COMMANDS.items():
        call = _CALL.format(words=command.split(), code=code)
        seconds, heavy_packages = measure(call, repeats)
        ratio = seconds / peer_seconds
        print(
            f"| `skescore {command}` | {seconds:.3f} | {ratio:.2f} | {', '.join(heavy_packages)} |"
        )
        has_failed |= ratio >= COMMAND_LIMIT or bool(heavy_packages)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
