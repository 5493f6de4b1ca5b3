"""What importing costs, in fresh processes, beside scikit-learn's own base and NumPy.

    python benchmarks/speed/imports.py [--repeats 7]

Prints a Markdown table of the best times and their ratios, and what was imported along; exits
with 1 if `import skescore` takes 3 times as long as its peer, or imports Optuna or starts Java.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

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
_PROGRAM = """
import json, sys, time
start = time.perf_counter()
{statement}
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {heavy!r} if name in sys.modules]]))
"""


def measure(statement: str, repeats: int) -> tuple[float, list[str]]:
    """Best time of some fresh processes, and which heavy packages were loaded."""
    best, loaded = float("inf"), []
    for _ in range(repeats):
        run = subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(statement=statement, heavy=HEAVY)],
            capture_output=True,
            text=True,
            check=True,
        )
        seconds, loaded = json.loads(run.stdout)
        best = min(best, seconds)
    return best, loaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    peer, _ = measure(PEER, repeats)
    print(f"| statement | seconds | times `{PEER}` ({peer:.3f} s) | loaded along |")
    print("| :-- | --: | --: | :-- |")
    failed = False
    for statement in STATEMENTS:
        seconds, loaded = measure(statement, repeats)
        print(f"| `{statement}` | {seconds:.3f} | {seconds / peer:.2f} | {', '.join(loaded)} |")
        if statement == "import skescore":
            failed |= seconds > LIMIT * peer or bool(loaded)
        failed |= bool({"jpype", "psyke"} & set(loaded))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
