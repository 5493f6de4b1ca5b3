"""What importing and starting cost, in fresh processes, beside NumPy and scikit-learn.

    python benchmarks/speed/imports.py [--repeats 7]

Prints two Markdown tables of the least processor seconds and their ratios, and what was imported
along. Exits with 1 if `import skescore` takes 3 times as long as its peer, imports Optuna or starts
Java, or if a command that has nothing to compute (help, wrong usage, a file that is not there)
takes 0.4 times as long as `import sklearn`, or imports anything heavy.
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
#: What must not come along with the package alone.
HEAVY = ("optuna", "jpype", "psyke", "matplotlib", "pandas", "sklearn", "numpy")
#: Peer of the commands.
COMMAND_PEER = "import sklearn"
#: Commands that have nothing to compute, and the exit code of each.
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
    """Least processor seconds of some fresh processes, and which heavy packages were loaded."""
    best, loaded = float("inf"), []
    program = _PROGRAM.format(statement=statement, heavy=HEAVY)
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
            loaded = json.loads(run.stderr.splitlines()[-1])
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best = min(best, used)
    return best, loaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    empty, _ = measure("pass", repeats)  # the interpreter itself
    peer = measure(PEER, repeats)[0] - empty
    print(f"| statement | seconds | times `{PEER}` ({peer:.3f} s) | loaded along |")
    print("| :-- | --: | --: | :-- |")
    failed = False
    for statement in STATEMENTS:
        seconds, loaded = measure(statement, repeats)
        seconds -= empty
        print(f"| `{statement}` | {seconds:.3f} | {seconds / peer:.2f} | {', '.join(loaded)} |")
        if statement == "import skescore":
            failed |= seconds > LIMIT * peer or bool(loaded)
        failed |= bool({"jpype", "psyke"} & set(loaded))
    peer, _ = measure(COMMAND_PEER, repeats)
    print(f"\n| command | seconds | times `{COMMAND_PEER}` ({peer:.3f} s) | loaded along |")
    print("| :-- | --: | --: | :-- |")
    for command, code in COMMANDS.items():
        call = _CALL.format(words=command.split(), code=code)
        seconds, loaded = measure(call, repeats)
        ratio = seconds / peer
        print(f"| `skescore {command}` | {seconds:.3f} | {ratio:.2f} | {', '.join(loaded)} |")
        failed |= ratio >= COMMAND_LIMIT or bool(loaded)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
