"""The benchmark of rule extraction: many tables, several black boxes, everyone's methods.

    python benchmarks/arena/run.py [--suites keel-balanced ...] [--black-boxes random-forest ...]
        [--seeds 0 1] [--methods FILE ...] [--seconds 3600] [--n-jobs 1]
    python benchmarks/arena/run.py --verify 50 [--where "method == 'ITER'"] [--update]

Each file in `methods/` says how some methods find rules; a further method is a further file, see
`skescore.bench.read_methods`. Packages that a file `REQUIRES` and that are not here get an
environment of their own. Rows are kept at once, so that a run may be killed at any time and goes
on; what is there is written to `results.csv` at the end, with the machine and the versions beside.
What `results.csv` holds already is not measured again, on whatever machine it was; `--afresh` does.
A cell has 30 s (`--cell-seconds`; more where other programs share the cores).

`--seconds` begins nothing new after that time. `--verify` measures so many cells again, drawn from
`results.csv` with the seed `--draw`, and exits with 1 if a figure differs. It draws cells of the
methods whose packages are installed, and with `--where` only those that satisfy a query of pandas.
`--update` writes the new figures into `results.csv`, apart from times.
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
#: Which files come first: all tables with what is cheap, then what takes its time.
TIERS = (
    ("ours", "scikit_learn", "imodels", "interpret", "ours_optimal", "ours_variants"),
    ("ours_searched", "wittgenstein", "ruleopt", "ours_slower"),
    ("rulekit", "ours_searched_fire", "imodels_rulefit", "te2rules", "psyke"),
)
SUITES = ("keel-balanced", "keel-imbalanced", "regression", "categorical")
BLACK_BOXES = ("random-forest", "hist-gradient-boosting", "mlp", "svm", "xgboost")
#: What the scores leave out, see docs/guide/beyond_scores.md; losses are negative.
MEASURES = (
    "terms_per_rule",
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


def stated(path: Path, name: str) -> list[str]:
    """A list of texts that a file of methods holds, without running it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return list(ast.literal_eval(node.value))
    return []


def is_here(requirement: str) -> bool:
    required = Requirement(requirement)
    try:
        return required.specifier.contains(metadata.version(required.name), prereleases=True)
    except metadata.PackageNotFoundError:
        return False


def is_runnable(path: Path) -> bool:
    """Return whether the packages of a file of methods are installed."""
    return all(map(is_here, stated(path, "REQUIRES") + stated(path, "WITHOUT_DEPENDENCIES")))


def python_for(path: Path) -> str:
    """The Python that can run a file of methods: this one, or one made for it."""
    if is_runnable(path):
        return sys.executable
    further = stated(path, "WITHOUT_DEPENDENCIES")
    required = stated(path, "REQUIRES")
    folder = CACHE / "environments" / path.stem
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = folder / "complete"
    if not marker.exists():
        print(f"making an environment for {path.name}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*install, "-e", str(FOLDER.parents[1]), *required], check=True)
        if further:
            subprocess.run(
                [*install, "--no-deps", "--ignore-requires-python", *further], check=True
            )
        marker.touch()
    return str(python)


def configured(
    suite: str, box: str, seed: int, files: Sequence[Path], seconds: float = 30.0
) -> BenchConfig | None:
    """Return the configuration of methods that can run on a suite; None if there are none."""
    base = suite_config(suite)
    task = "regression" if suite == "regression" else "classification"
    entries = [entry for path in files for entry in read_methods(path)]
    config = config_from({"data": ["iris"], "black_boxes": [box], "extractors": entries})
    fitting = tuple(e for e in config.extractors if task in _tasks(e))
    if not fitting:
        return None
    return replace(
        base,
        name="arena",
        black_boxes=config.black_boxes,
        extractors=fitting,
        seeds=(seed,),
        time_limit=seconds,
    )


def loaded(suite: str, data: Sequence[Any], folder: Path) -> tuple[Any, ...]:
    """The tables of a suite, read once for all jobs of an environment: our own file."""
    about = json.dumps(
        [sys.prefix, package_versions(), [[e.source, e.options] for e in data]], default=str
    )
    key = hashlib.sha256(about.encode()).hexdigest()[:16]
    path = folder / "tables" / f"{suite}-{key}.joblib"
    if path.exists():
        tables = joblib.load(path)
    else:
        tables = {e.label: load_dataset(e.source, **e.options) for e in data}
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        joblib.dump(tables, part)
        part.replace(path)
    return tuple(replace(entry, table=tables[entry.label]) for entry in data)


def _tasks(entry: Any) -> tuple[str, ...]:
    if entry.kind == "search":
        return ("classification", "regression")
    spec = entry.extractor if entry.kind == "object" else extractor_spec(entry.name)
    return tuple(spec.tasks)


def folder_of(root: Path, suite: str, box: str, seed: int, stem: str, config: BenchConfig) -> Path:
    """Return the folder for the rows of a choice of cells; each choice resumes its own run."""
    cells = json.dumps(sorted([e.label, *(e.data or ())] for e in config.extractors))
    key = hashlib.sha256(cells.encode()).hexdigest()[:8]
    return root / "runs" / suite / box / str(seed) / f"{stem}-{key}"


class PrintRows(BenchCallback):
    """Print each row of one run when it is measured."""

    def __init__(self, *run):
        self.run = run

    def on_row(self, row):
        fields = row["data"], row["extractor"], row["state"], row["error"][:90]
        print(*self.run, *fields, file=sys.stderr, flush=True)


def measure(options: argparse.Namespace) -> None:
    """One job, in the environment that it needs."""
    suite, box, seed, stem = options.job
    config = configured(
        suite, box, int(seed), [FOLDER / "methods" / f"{stem}.py"], options.cell_seconds
    )
    if config is None:
        return
    if not options.afresh:
        config = without_known(config, known_cells(suite, box, int(seed)))
    if not config.extractors:
        return
    config = replace(config, data=loaded(suite, config.data, options.folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_bench(
            config,
            folder_of(options.folder, suite, box, int(seed), stem, config),
            measures=MEASURES,
            keep_rules=True,
            n_jobs=options.n_jobs,
            callback=PrintRows(suite, box, seed),
        )


def known_cells(suite: str, box: str, seed: int) -> set[tuple[str, str]]:
    """Tables and methods that `results.csv` has figures, or a reason, for."""
    if not (FOLDER / "results.csv").exists():
        return set()
    table = pd.read_csv(FOLDER / "results.csv", usecols=KEYS)
    cells = table[(table["suite"] == suite) & (table["black_box"] == box) & (table["seed"] == seed)]
    return set(zip(cells["data"], cells["method"], strict=True))


def without_known(config: BenchConfig, measured_cells: set[tuple[str, str]]) -> BenchConfig:
    """Restrict a configuration to unmeasured cells."""
    left = []
    for entry in config.extractors:
        tables = entry.data or tuple(e.label for e in config.data)
        missing = tuple(name for name in tables if (name, entry.label) not in measured_cells)
        if missing:
            left.append(replace(entry, data=missing))
    data_names = {name for entry in left for name in entry.data}
    data = tuple(entry for entry in config.data if entry.label in data_names)
    return replace(config, data=data, extractors=tuple(left))


def jobs(options: argparse.Namespace) -> Iterator[tuple[str, str, str, int, str]]:
    """Python, suite, black box, seed and file: breadth first."""
    library_names = {path.stem for path in (FOLDER / "methods").glob("*.py")}
    library_names &= set(options.methods or library_names)
    tiers = [[stem for stem in tier if stem in library_names] for tier in TIERS]
    tiers += [[stem] for stem in sorted(library_names - {stem for tier in TIERS for stem in tier})]
    pythons = {stem: python_for(FOLDER / "methods" / f"{stem}.py") for stem in library_names}
    rounds = [(box, seed) for seed in options.seeds for box in options.black_boxes]
    for box, seed in rounds:
        for tier in tiers:
            for suite in options.suites:
                for stem in tier:
                    yield pythons[stem], suite, box, seed, stem


def run(options: argparse.Namespace) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.monotonic()
    for python, suite, box, seed, stem in jobs(options):
        left = None if options.seconds is None else options.seconds - time.monotonic() + begin
        if left is not None and left <= 0:
            print("the time is over; the same command goes on", file=sys.stderr)
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
            process.wait(left)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.terminate()  # does nothing to one that has ended
            process.wait()
        if process.returncode not in (0, -15):
            print(f"{suite}, {box}, {seed}, {stem}: exit code {process.returncode}")


def collect(root: Path, earlier: pd.DataFrame | None = None) -> pd.DataFrame:
    """Combine all rows into one table; newer rows replace those in `earlier`.

    ``conditions`` and ``features`` count those that the rules name; ``odd`` are columns among them
    that are constant in the rows of the training, or number the rows.
    """
    parts = [] if earlier is None else [earlier]
    for path in sorted((root / "runs").glob("*/*/*/*/rows.csv")):
        suite, seed = path.parts[-5], int(path.parts[-3])
        odd = odd_columns(suite, seed, root)
        rules = {
            (stored_rules["data"], stored_rules["extractor"]): (
                stored_rules["conditions"],
                len(stored_rules["features"]),
                len(set(stored_rules["features"]) & odd[stored_rules["data"]]),
            )
            for stored_rules in map(json.loads, _lines(path.parent / "rules.jsonl"))
        }
        rows = read_rows(path).rename(columns={"extractor": "method"})
        counts = [
            rules.get(key, (None,) * 3) for key in zip(rows["data"], rows["method"], strict=True)
        ]
        # Floats, so that they are written alike whether or not some are missing.
        rows[["conditions", "features", "odd"]] = pd.DataFrame(counts, rows.index, dtype=float)
        rows["suite"] = suite
        rows["error"] = rows["error"].str.slice(0, 60)
        parts.append(rows.reindex(columns=COLUMNS))
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(parts, ignore_index=True)
    return table.drop_duplicates(KEYS, keep="last").sort_values(KEYS, ignore_index=True)


@functools.cache
def odd_columns(suite: str, seed: int, root: Path) -> dict[str, set[str]]:
    """Columns that no rule should name, by table."""
    reasons = {}
    config = suite_config(suite)
    for entry in loaded(suite, config.data, root):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rare classes
            train, _ = next(split_rows(entry.table, seed, 1, config.test_size))
        X = entry.table.X.iloc[train]
        reasons[entry.label] = {
            str(name)
            for name, column in X.items()
            if column.nunique(dropna=False) == 1
            or (pd.api.types.is_integer_dtype(column) and _numbers_rows(column))
        }
    return reasons


def _numbers_rows(column: pd.Series) -> bool:
    """Return whether integers are strictly increasing or strictly decreasing."""
    return bool(
        column.is_unique and (column.is_monotonic_increasing or column.is_monotonic_decreasing)
    )


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return text[: text.rfind("\n") + 1].splitlines()[1:]


def write_results(table: pd.DataFrame, folder: Path) -> None:
    """Write the table in five significant digits."""
    table.to_csv(folder / "results.csv", index=False, float_format="%.5g", lineterminator="\n")


def write(table: pd.DataFrame, folder: Path) -> None:
    """The table, and beside it what it was measured with."""
    write_results(table, folder)
    needed = {
        Requirement(text).name
        for path in (FOLDER / "methods").glob("*.py")
        for name in ("REQUIRES", "WITHOUT_DEPENDENCIES")
        for text in stated(path, name)
    }
    versions = package_versions()
    for name in sorted(needed):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    about = {"machine": describe_machine(), "versions": versions}
    (folder / "machine.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def verify(options: argparse.Namespace) -> int:
    """Measure some cells again; the number of those that differ."""
    table = pd.read_csv(FOLDER / "results.csv", dtype={"error": str})
    configs = {
        entry["label"]: entry
        for path in sorted((FOLDER / "methods").glob("*.py"))
        if is_runnable(path)
        for entry in read_methods(path)
    }
    usable = table[table["error"].isna() & table["method"].isin(list(configs))]
    if options.where:
        usable = usable.query(options.where)
    drawn = usable.sample(min(options.verify, len(usable)), random_state=options.draw)
    differing = 0
    for (suite, box, seed), part in drawn.groupby(["suite", "black_box", "seed"]):
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
                old, now = row[name], float(f"{new[name]:.5g}")
                if old != now and not (pd.isna(old) and pd.isna(now)):
                    differing += 1
                    print(f"{suite}, {row['data']}, {box}, {row['method']}: {name} {old} is {now}")
                    break
    if options.update:
        write_results(table, FOLDER)
    print(f"{len(drawn) - differing} of {len(drawn)} cells gave the same figures again")
    return differing


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
    parser.add_argument("--collect", action="store_true", help="write results.csv of what is there")
    parser.add_argument(
        "--afresh", action="store_true", help="measure what results.csv holds as well"
    )
    parser.add_argument("--verify", type=int, metavar="CELLS")
    parser.add_argument("--where", help="which cells to draw, such as \"method == 'ITER'\"")
    parser.add_argument("--update", action="store_true", help="write what --verify measures")
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
    write(collect(options.folder, earlier), FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
