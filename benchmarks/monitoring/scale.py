"""Measure time and memory of `skescore watch` relative to `skescore score` on large tables.

    python benchmarks/monitoring/scale.py [--source parquet] [--rows 10000000] [--pairs 3]
    python benchmarks/monitoring/scale.py --source postgresql     (needs psycopg and a server)

Both commands run in separate processes, in alternating pairs. `scale.csv` has the CPU time, wall
time and peak memory of each run. The printed ratios are ratios of medians. CPU times include the
server. A temporary server is started with `initdb` and `pg_ctl`; `--server` uses a running server
instead, for example postgresql://anna@localhost/test, and replaces its table `watch_rows`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from skescore.metrics import DecisionCounts
from skescore.monitoring import RuleBaseline, RuleMonitor, WatchState, rules_fingerprint
from skescore.rules import RuleSet, as_ruleset

FOLDER = Path(__file__).parent
COLUMNS = ["x1", "x2", "x3", "x4", "x5"]
ROWS_PER_FILE = 1_000_000


def write_rows(folder: Path, n_rows: int) -> None:
    """Write numbers and a label with two classes, a million rows per file."""
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


@contextmanager
def running_server(folder: Path) -> Iterator[str]:
    """Start a PostgreSQL server on the loopback interface, and yield the URL of a database."""
    programs = Path(shutil.which("initdb") or "initdb").resolve().parent
    user_options = (
        {"user": "postgres", "cwd": "/"} if os.geteuid() == 0 else {}
    )  # root cannot run the server
    folder.mkdir()
    if user_options:
        folder.parent.chmod(0o755)
        shutil.chown(folder, "postgres")
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = free_socket.getsockname()[1]

    def run(program: str, *arguments: str) -> None:
        command = [programs / program, "-D", folder / "data", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **user_options)

    run("initdb", "-U", "anna", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql://anna@127.0.0.1:{port}/postgres"
    finally:
        run("pg_ctl", "-m", "immediate", "-w", "stop")


def fill_table(url: str, n_rows: int) -> None:
    """Generate the table on the server: numbers between -2 and 2, and a label with two classes."""
    import psycopg

    numbers = ", ".join(f"4 * random() - 2 AS {name}" for name in COLUMNS)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS watch_rows")
        connection.execute(
            "CREATE UNLOGGED TABLE watch_rows AS SELECT *, CASE WHEN (x1 + x2 > 0) = "
            "(random() > 0.1) THEN 'yes' ELSE 'no' END AS label "
            f"FROM (SELECT {numbers} FROM generate_series(1, {int(n_rows)})) AS numbers"
        )
        connection.execute("VACUUM ANALYZE watch_rows")


def server_seconds(folder: Path) -> float:
    """Return the CPU seconds of a server and of its finished processes."""
    import psutil

    server = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0]))
    return float(sum(server.cpu_times()[:4]))


def make_rules(n_rules: int) -> RuleSet:
    """Return the rules of a tree."""
    from sklearn.tree import DecisionTreeClassifier

    X = np.random.default_rng(0).normal(size=(20_000, len(COLUMNS)))
    tree = DecisionTreeClassifier(max_leaf_nodes=n_rules, random_state=0)
    tree.fit(X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no"))
    rules = as_ruleset(tree, feature_names=COLUMNS)
    return rules.replace(domain=rules.domain_around(X))


def measure(arguments: list[str]) -> tuple[float, float, float]:
    """Return CPU seconds, wall seconds and the peak of memory in MB of a command."""
    start = time.perf_counter()
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "skescore", *arguments],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):  # 3 means that a rule has changed
        raise RuntimeError(f"skescore {' '.join(arguments)} failed")
    wall = time.perf_counter() - start
    return usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


def compare(
    rows: str, rules: RuleSet, n_pairs: int, folder: Path, server_cpu: Callable[[], float]
) -> list[dict]:
    """Measure alternating pairs of both commands on a source of rows.

    `server_cpu` returns the CPU seconds of the server.
    """
    rules_path, state_path = folder / "rules.json", folder / "state.json"
    rules_path.write_text(rules.to_json(), encoding="utf-8")
    n = np.append(np.full(len(rules), 1000), 0)
    counts = DecisionCounts(n, n, n // 10, 0 * n, 0 * n, 0 * n, 0 * n)
    monitor = RuleMonitor(rules, RuleBaseline(rules_fingerprint(rules), counts))
    WatchState(state_path, monitor).write()
    lines = []
    for pair in range(n_pairs):
        commands = {
            "score": ["score", str(rules_path), rows, "--target", "label"],
            "watch": [
                *("watch", str(rules_path), rows, "--target", "label"),
                *("--state", str(state_path), "--batch", str(pair)),
            ],
        }
        order = list(commands) if pair % 2 == 0 else list(commands)[::-1]
        for name in order:
            server_start = server_cpu()
            cpu, wall, memory = measure(commands[name])
            lines.append(
                {
                    "command": name,
                    "rules": len(rules),
                    "cpu_seconds": round(cpu + server_cpu() - server_start, 2),
                    "wall_seconds": round(wall, 2),
                    "peak_mb": round(memory),
                    "state_bytes": state_path.stat().st_size,
                }
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure pairs of both commands, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source", choices=("parquet", "postgresql"), default="parquet")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rules", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="folder of the Parquet files")
    parser.add_argument("--server", help="URL of a database, instead of a temporary server")
    options = parser.parse_args()
    rules = make_rules(options.rules)
    with tempfile.TemporaryDirectory() as temporary:
        work_folder = Path(temporary)
        if options.source == "parquet":
            folder = options.folder or work_folder / "rows"
            write_rows(folder, options.rows)
            lines = compare(str(folder), rules, options.pairs, work_folder, lambda: 0.0)
        elif options.server:
            fill_table(options.server, options.rows)
            url = f"{options.server}?table=watch_rows"
            lines = compare(url, rules, options.pairs, work_folder, lambda: 0.0)
        else:
            data = work_folder / "server"
            with running_server(data) as url:
                fill_table(url, options.rows)
                seconds = partial(server_seconds, data)
                lines = compare(
                    url + "?table=watch_rows", rules, options.pairs, work_folder, seconds
                )
    frame = pd.DataFrame([{"source": options.source, "rows": options.rows} | x for x in lines])
    medians = frame.groupby("command")[["cpu_seconds", "wall_seconds", "peak_mb"]].median()
    print((medians.loc["watch"] / medians.loc["score"]).round(2).to_dict())
    path = FOLDER / "scale.csv"
    if path.exists():
        old_rows = pd.read_csv(path)
        frame = pd.concat([old_rows[old_rows["source"] != options.source], frame])
    frame.to_csv(path, index=False)


if __name__ == "__main__":
    main()
