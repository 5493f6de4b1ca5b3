"""Time and memory of an update from Parquet, compared with `skescore score` on the same files.

    python benchmarks/monitoring/scale.py [--rows 10000000] [--pairs 3] [--folder FOLDER]

Both commands run in processes of their own, in alternating pairs. `scale.csv` has the seconds of
CPU and of wall time and the peak of memory of each run; the ratio is that of the medians.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from skescore.metrics import DecisionCounts
from skescore.monitoring import RuleBaseline, RuleMonitor, WatchState, rules_fingerprint
from skescore.rules import RuleSet, as_ruleset

HERE = Path(__file__).parent
COLUMNS = ["x1", "x2", "x3", "x4", "x5"]
ROWS_PER_FILE = 1_000_000


def write_rows(folder: Path, n_rows: int) -> None:
    """Write numbers and a label of two classes, a million rows per file."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(-(-n_rows // ROWS_PER_FILE)):
        path = folder / f"{number:05d}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(number)
        size = min(ROWS_PER_FILE, n_rows - number * ROWS_PER_FILE)
        frame = pd.DataFrame({name: rng.normal(size=size) for name in COLUMNS})
        is_yes = (frame["x1"] + frame["x2"] > 0) ^ (rng.random(size) < 0.1)
        frame.assign(label=np.where(is_yes, "yes", "no")).to_parquet(path)


def make_rules(n_rules: int) -> RuleSet:
    """Return the rules of a tree."""
    from sklearn.tree import DecisionTreeClassifier

    X = np.random.default_rng(0).normal(size=(20_000, len(COLUMNS)))
    tree = DecisionTreeClassifier(max_leaf_nodes=n_rules, random_state=0)
    tree.fit(X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no"))
    rules = as_ruleset(tree, feature_names=COLUMNS)
    return rules.replace(domain=rules.domain_around(X))


def measure(words: list[str]) -> tuple[float, float, float]:
    """Return CPU seconds, wall seconds and the peak of memory in MB of a command."""
    start = time.perf_counter()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "skescore", *words],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):  # 3 means that a rule changed
        raise RuntimeError(f"skescore {' '.join(words)} failed")
    wall = time.perf_counter() - start
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def main() -> None:
    """Measure pairs of both commands, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rules", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary) / "rows"
        write_rows(folder, options.rows)
        rules_path, state_path = Path(temporary) / "rules.json", Path(temporary) / "state.json"
        rules = make_rules(options.rules)
        rules_path.write_text(rules.to_json(), encoding="utf-8")
        n = np.append(np.full(len(rules), 1000), 0)
        counts = DecisionCounts(n, n, n // 10, 0 * n, 0 * n, 0 * n, 0 * n)
        monitor = RuleMonitor(rules, RuleBaseline(rules_fingerprint(rules), counts))
        WatchState(state_path, monitor).write()
        lines = []
        for pair in range(options.pairs):
            commands = {
                "score": ["score", str(rules_path), str(folder), "--target", "label"],
                "watch": [
                    *("watch", str(rules_path), str(folder), "--target", "label"),
                    *("--state", str(state_path), "--batch", str(pair)),
                ],
            }
            order = list(commands) if pair % 2 == 0 else list(commands)[::-1]
            for name in order:
                cpu, wall, memory = measure(commands[name])
                lines.append(
                    {
                        "command": name,
                        "rows": options.rows,
                        "rules": len(rules),
                        "cpu_seconds": round(cpu, 2),
                        "wall_seconds": round(wall, 2),
                        "peak_mb": round(memory),
                        "state_bytes": state_path.stat().st_size,
                    }
                )
                print(lines[-1], flush=True)
                pd.DataFrame(lines).to_csv(HERE / "scale.csv", index=False)
    medians = pd.DataFrame(lines).groupby("command")[["cpu_seconds", "peak_mb"]].median()
    print((medians.loc["watch"] / medians.loc["score"]).round(2).to_dict())


if __name__ == "__main__":
    main()
