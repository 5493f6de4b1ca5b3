"""Run the benchmark of rule extraction: many tables, several black boxes, all methods.

    python benchmarks/arena/run.py [--suites keel-balanced ...] [--black-boxes random-forest ...]
        [--seeds 0 1] [--methods FILE ...] [--seconds 3600] [--n-jobs 1]
    python benchmarks/arena/run.py --verify 50 [--where "method == 'ITER'"] [--update]

Each file in `methods/` defines methods; add a file to add methods (see
`skescore.bench.read_methods`). If the packages that a file `REQUIRES` are not installed, the file
runs in a separate virtual environment with them. Rows are stored immediately, so an interrupted run
resumes. At the end, all rows are written to `results.csv`, and the machine and versions to
`machine.json`. Cells in `results.csv` are not measured again, even if another machine measured
them, except with `--afresh`. A cell has a time limit of 30 s (`--cell-seconds`; use more on a
loaded machine).

`--seconds` ends the run after this time. `--verify` measures random cells of `results.csv` again,
drawn with the seed `--draw`, and exits with 1 if a value differs. It draws only cells of methods
whose packages are installed; `--where` restricts them by a pandas query. `--update` writes the new
values to `results.csv`, except times.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
from packaging.requirements import Requirement
from platformdirs import user_cache_path

from skescore.bench import (
    BenchCallback,
    BenchConfig,
    config_from,
    describe_machine,
    package_versions,
    read_methods,
    read_rows,
    run_bench,
    split_rows,
    suite_config,
)
from skescore.datasets import load_dataset
from skescore.registry import extractor_spec

FOLDER = Path(__file__).parent
#: Order of the files: fast methods first.
TIERS = (
    ("ours", "scikit_learn", "imodels", "interpret", "ours_optimal", "ours_variants"),
    ("ours_searched", "wittgenstein", "ruleopt", "ours_slower"),
    ("rulekit", "ours_searched_fire", "imodels_rulefit", "te2rules", "psyke"),
)
SUITES = ("keel-balanced", "keel-imbalanced", "regression", "categorical")
BLACK_BOXES = ("random-forest", "hist-gradient-boosting", "mlp", "svm", "xgboost")
#: Measures that the scores do not include (docs/guide/beyond_scores.md); losses are negated.
MEASURES = (
    "neg_terms_per_rule",
    "neg_negative_overlap",
    "neg_redundant_literals",
    "neg_calibration_error",
    "neg_fidelity_gap",
    "fidelity_interpolated",
)
KEYS = ["suite", "data", "black_box", "method", "seed"]
SCORES = [
    "n_rules",
    "ice",
    "fire",
    "q",
    "fidelity",
    "performance",
    "completeness_volume",
    "completeness_instances",
    "black_box_quality",
]
COLUMNS = [*KEYS, "error", *SCORES, *MEASURES, "conditions", "features", "odd", "seconds"]
CACHE = user_cache_path("skescore", appauthor=False) / "arena"


def read_list(path: Path, name: str) -> list[str]:
    """Return a list of strings from a file of methods without executing the file."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return list(ast.literal_eval(node.value))
    return []


def is_installed(requirement: str) -> bool:
    """Return whether a requirement is satisfied in this environment."""
    required = Requirement(requirement)
    try:
        return required.specifier.contains(metadata.version(required.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def is_runnable(path: Path) -> bool:
    """Return whether the packages of a file of methods are installed."""
    return all(
        map(is_installed, read_list(path, "REQUIRES") + read_list(path, "WITHOUT_DEPENDENCIES"))
    )


def python_for(path: Path) -> str:
    """Return a Python that can run a file of methods; create an environment if necessary."""
    if is_runnable(path):
        return sys.executable
    without_dependencies = read_list(path, "WITHOUT_DEPENDENCIES")
    required = read_list(path, "REQUIRES")
    folder = CACHE / "environments" / path.stem
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = folder / "complete"
    if not marker.exists():
        print(f"creating an environment for {path.name}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip_install = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*pip_install, "-e", str(FOLDER.parents[1]), *required], check=True)
        if without_dependencies:
            subprocess.run(
                [*pip_install, "--no-deps", "--ignore-requires-python", *without_dependencies],
                check=True,
            )
        marker.touch()
    return str(python)


def make_config(
    suite: str, box: str, seed: int, files: Sequence[Path], seconds: float = 30.0
) -> BenchConfig | None:
    """Return the configuration of all methods for a suite; None if no method supports its task."""
    base = suite_config(suite)
    task = "regression" if suite == "regression" else "classification"
    entries = [entry for path in files for entry in read_methods(path)]
    config = config_from({"data": ["iris"], "black_boxes": [box], "extractors": entries})
    suitable = tuple(e for e in config.extractors if task in _tasks(e))
    if not suitable:
        return None
    return replace(
        base,
        name="arena",
        black_boxes=config.black_boxes,
        extractors=suitable,
        seeds=(seed,),
        time_limit=seconds,
    )


def load_cached(suite: str, data: Sequence[Any], folder: Path) -> tuple[Any, ...]:
    """Return entries with their tables, which are read once per environment and then cached."""
    cache_key = json.dumps(
        [sys.prefix, package_versions(), [[e.source, e.options] for e in data]], default=str
    )
    key = hashlib.sha256(cache_key.encode()).hexdigest()[:16]
    path = folder / "tables" / f"{suite}-{key}.joblib"
    if path.exists():
        tables = joblib.load(path)
    else:
        tables = {e.label: load_dataset(e.source, **e.options) for e in data}
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary_path = path.with_suffix(f".{os.getpid()}")
        joblib.dump(tables, temporary_path)
        temporary_path.replace(path)
    return tuple(replace(entry, table=tables[entry.label]) for entry in data)


def _tasks(entry: Any) -> tuple[str, ...]:
    if entry.kind == "search":
        return ("classification", "regression")
    spec = entry.extractor if entry.kind == "object" else extractor_spec(entry.name)
    return tuple(spec.tasks)


def run_folder(root: Path, suite: str, box: str, seed: int, stem: str, config: BenchConfig) -> Path:
    """Return the folder for the rows of a configuration; each configuration resumes its own run."""
    cells = json.dumps(sorted([e.label, *(e.data or ())] for e in config.extractors))
    key = hashlib.sha256(cells.encode()).hexdigest()[:8]
    return root / "runs" / suite / box / str(seed) / f"{stem}-{key}"


class PrintRows(BenchCallback):
    """Callback that prints each measured row."""

    def __init__(self, *run):
        self.run = run

    def on_row(self, row):
        fields = row["data"], row["extractor"], row["state"], row["error"][:90]
        print(*self.run, *fields, file=sys.stderr, flush=True)


def measure(options: argparse.Namespace) -> None:
    """Run one job in this process, which must have the required packages."""
    suite, box, seed, stem = options.job
    config = make_config(
        suite, box, int(seed), [FOLDER / "methods" / f"{stem}.py"], options.cell_seconds
    )
    if config is None:
        return
    if not options.afresh:
        config = keep_unmeasured(config, measured_cells(suite, box, int(seed)))
    if not config.extractors:
        return
    config = replace(config, data=load_cached(suite, config.data, options.folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_bench(
            config,
            run_folder(options.folder, suite, box, int(seed), stem, config),
            measures=MEASURES,
            keep_rules=True,
            n_jobs=options.n_jobs,
            callback=PrintRows(suite, box, seed),
        )


def measured_cells(suite: str, box: str, seed: int) -> set[tuple[str, str]]:
    """Return the tables and methods for which `results.csv` has values or an error."""
    if not (FOLDER / "results.csv").exists():
        return set()
    table = pd.read_csv(FOLDER / "results.csv", usecols=KEYS)
    cells = table[(table["suite"] == suite) & (table["black_box"] == box) & (table["seed"] == seed)]
    return set(zip(cells["data"], cells["method"], strict=True))


def keep_unmeasured(config: BenchConfig, finished: set[tuple[str, str]]) -> BenchConfig:
    """Restrict a configuration to unmeasured cells."""
    remaining = []
    for entry in config.extractors:
        tables = entry.data or tuple(e.label for e in config.data)
        missing = tuple(name for name in tables if (name, entry.label) not in finished)
        if missing:
            remaining.append(replace(entry, data=missing))
    data_names = {name for entry in remaining for name in entry.data}
    data = tuple(entry for entry in config.data if entry.label in data_names)
    return replace(config, data=data, extractors=tuple(remaining))


def list_jobs(options: argparse.Namespace) -> Iterator[tuple[str, str, str, int, str]]:
    """Yield the Python, suite, black box, seed and file of each job; fast methods come first."""
    stems = {path.stem for path in (FOLDER / "methods").glob("*.py")}
    stems &= set(options.methods or stems)
    tiers = [[stem for stem in tier if stem in stems] for tier in TIERS]
    tiers += [[stem] for stem in sorted(stems - {stem for tier in TIERS for stem in tier})]
    pythons = {stem: python_for(FOLDER / "methods" / f"{stem}.py") for stem in stems}
    settings = [(box, seed) for seed in options.seeds for box in options.black_boxes]
    for box, seed in settings:
        for tier in tiers:
            for suite in options.suites:
                for stem in tier:
                    yield pythons[stem], suite, box, seed, stem


def run(options: argparse.Namespace) -> None:
    """Run all jobs in separate processes until the time is over."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    for python, suite, box, seed, stem in list_jobs(options):
        remaining_seconds = (
            None if options.seconds is None else options.seconds - time.monotonic() + start
        )
        if remaining_seconds is not None and remaining_seconds <= 0:
            print("time limit reached; run the same command again to resume", file=sys.stderr)
            break
        command = [
            python,
            str(Path(__file__).resolve()),
            "--folder",
            str(options.folder),
            "--n-jobs",
            str(options.n_jobs),
            "--cell-seconds",
            str(options.cell_seconds),
            "--job",
            suite,
            box,
            str(seed),
            stem,
            *(["--afresh"] if options.afresh else []),
        ]
        process = subprocess.Popen(command)
        try:
            process.wait(remaining_seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.terminate()  # no effect if it has ended
            process.wait()
        if process.returncode not in (0, -15):
            print(f"{suite}, {box}, {seed}, {stem}: exit code {process.returncode}")


def collect(root: Path, earlier: pd.DataFrame | None = None) -> pd.DataFrame:
    """Combine all rows into one table; newer rows replace those in `earlier`.

    ``conditions`` and ``features`` count the conditions and features of the rules. ``odd`` counts
    features that are constant in the training rows or number the rows.
    """
    tables = [] if earlier is None else [earlier]
    for path in sorted((root / "runs").glob("*/*/*/*/rows.csv")):
        suite, seed = path.parts[-5], int(path.parts[-3])
        unsuitable = unsuitable_columns(suite, seed, root)
        rules = {
            (stored_rules["data"], stored_rules["extractor"]): (
                stored_rules["conditions"],
                len(stored_rules["features"]),
                len(set(stored_rules["features"]) & unsuitable[stored_rules["data"]]),
            )
            for stored_rules in map(json.loads, read_complete_lines(path.parent / "rules.jsonl"))
        }
        rows = read_rows(path).rename(columns={"extractor": "method"})
        counts = [
            rules.get(key, (None,) * 3) for key in zip(rows["data"], rows["method"], strict=True)
        ]
        # Floats are written in the same way whether or not values are missing.
        names = ["conditions", "features", "odd"]
        rows[names] = pd.DataFrame(counts, rows.index, names, dtype=float)
        rows["suite"] = suite
        rows["error"] = rows["error"].str.slice(0, 60)
        tables.append(rows.reindex(columns=COLUMNS))
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(tables, ignore_index=True)
    return table.drop_duplicates(KEYS, keep="last").sort_values(KEYS, ignore_index=True)


@functools.cache
def unsuitable_columns(suite: str, seed: int, root: Path) -> dict[str, set[str]]:
    """Return by table the columns that no rule should use."""
    columns = {}
    config = suite_config(suite)
    for entry in load_cached(suite, config.data, root):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rare classes
            train, _ = next(split_rows(entry.table, seed, 1, config.test_size))
        X = entry.table.X.iloc[train]
        columns[entry.label] = {
            str(name)
            for name, column in X.items()
            if column.nunique(dropna=False) == 1
            or (pd.api.types.is_integer_dtype(column) and _is_row_number(column))
        }
    return columns


def _is_row_number(column: pd.Series) -> bool:
    """Return whether integers are strictly increasing or strictly decreasing."""
    return bool(
        column.is_unique and (column.is_monotonic_increasing or column.is_monotonic_decreasing)
    )


def read_complete_lines(path: Path) -> list[str]:
    """Return the complete lines of a file after its first one; an empty list without the file."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return text[: text.rfind("\n") + 1].splitlines()[1:]


def write_results(table: pd.DataFrame, folder: Path) -> None:
    """Write the table with five significant digits."""
    table.to_csv(folder / "results.csv", index=False, float_format="%.5g", lineterminator="\n")


def write_outputs(table: pd.DataFrame, folder: Path) -> None:
    """Write the table, and the machine and the versions with which it was measured."""
    write_results(table, folder)
    package_names = {
        Requirement(text).name
        for path in (FOLDER / "methods").glob("*.py")
        for name in ("REQUIRES", "WITHOUT_DEPENDENCIES")
        for text in read_list(path, name)
    }
    versions = package_versions()
    for name in sorted(package_names):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    description = {"machine": describe_machine(), "versions": versions}
    (folder / "machine.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def verify(options: argparse.Namespace) -> int:
    """Measure random cells again; return the number of cells that differ."""
    table = pd.read_csv(FOLDER / "results.csv", dtype={"error": str})
    configs = {
        entry["label"]: entry
        for path in sorted((FOLDER / "methods").glob("*.py"))
        if is_runnable(path)
        for entry in read_methods(path)
    }
    candidates = table[table["error"].isna() & table["method"].isin(list(configs))]
    if options.where:
        candidates = candidates.query(options.where)
    cells = candidates.sample(min(options.verify, len(candidates)), random_state=options.draw)
    n_different = 0
    for (suite, box, seed), part in cells.groupby(["suite", "black_box", "seed"]):
        base = suite_config(str(suite))
        data_by_method = part.groupby("method")["data"].agg(list).to_dict()
        entries = [{**configs[method], "data": data} for method, data in data_by_method.items()]
        data = tuple(entry for entry in base.data if entry.label in set(part["data"]))
        configured_methods = config_from(
            {
                "data": ["iris"],
                "black_boxes": [box],
                "extractors": [
                    {key: value for key, value in entry.items() if key != "data"}
                    for entry in entries
                ],
            }
        )
        methods = tuple(
            replace(e, data=tuple(data_by_method[e.label])) for e in configured_methods.extractors
        )
        config = replace(
            base,
            data=data,
            black_boxes=configured_methods.black_boxes,
            extractors=methods,
            seeds=(int(seed),),
            time_limit=options.cell_seconds,
        )
        folder = options.folder / "verify" / f"{suite}-{box}-{seed}"
        bench = run_bench(config, folder, measures=MEASURES, n_jobs=options.n_jobs, overwrite=True)
        repeated = bench.rows.set_index(["data", "extractor"])
        for index, row in zip(part.index, part.to_dict(orient="records"), strict=True):
            new = repeated.loc[(row["data"], row["method"])]
            if options.update and new["state"] == "complete":
                table.loc[index, [*SCORES, *MEASURES]] = new[[*SCORES, *MEASURES]].astype(float)
            for name in SCORES:
                old, value = row[name], float(f"{new[name]:.5g}")
                if old != value and not (pd.isna(old) and pd.isna(value)):
                    n_different += 1
                    print(
                        f"{suite}, {row['data']}, {box}, {row['method']}: {name} {old} is {value}"
                    )
                    break
    if options.update:
        write_results(table, FOLDER)
    print(f"{len(cells) - n_different} of {len(cells)} cells have the same values again")
    return n_different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--black-boxes", nargs="+", default=list(BLACK_BOXES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--methods", nargs="+", help="names of files, without .py")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--cell-seconds", type=float, default=30.0)
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=CACHE)
    parser.add_argument(
        "--collect", action="store_true", help="write results.csv from the stored rows only"
    )
    parser.add_argument("--afresh", action="store_true", help="measure cells of results.csv again")
    parser.add_argument("--verify", type=int, metavar="CELLS")
    parser.add_argument("--where", help="cells to draw, for example \"method == 'ITER'\"")
    parser.add_argument(
        "--update", action="store_true", help="write the values of --verify to results.csv"
    )
    parser.add_argument("--draw", type=int, default=0, help="seed of the cells of --verify")
    parser.add_argument("--job", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        measure(options)
        return 0
    if (options.where or options.update) and not options.verify:
        parser.error("--where and --update need --verify")
    if options.verify:
        return int(verify(options) > 0)
    if not options.collect:
        run(options)
    results_path = FOLDER / "results.csv"
    earlier = pd.read_csv(results_path, dtype={"error": str}) if results_path.exists() else None
    write_outputs(collect(options.folder, earlier), FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
