"""Measure how faithful short rule lists are to a model on 100 KEEL tables.

    python benchmarks/arena/fidelity.py [--methods CART ...] [--tables all|even|odd] [--jobs 1]
        [--seeds 0 1] [--black-boxes random-forest hist-gradient-boosting] [--seconds 3600]
        [--package FOLDER] [--output FILE]

The tables are the 43 of the suite `keel-balanced` and the first 57 by name of `keel-imbalanced`,
with at most 2,000 rows. A black box is fitted on one half of the rows. Every method learns from its
predictions there, with at most 8 rules or as many as there are classes. The other half measures
agreement with the black box (fidelity) and with the data (correctness).

Rows are appended to `fidelity.csv` immediately, so an interrupted run resumes. `--package` imports
skescore from another checkout, whose commit is recorded: "Trepan (before)" needs 312ba46, and
"search" is measured once per commit. `fidelity_report.py` writes `fidelity.md`. Each method learns
in a separate process with one thread, which is killed at the time limit of the method.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import inspect
import itertools
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from run import CACHE, load_cached
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import balanced_accuracy_score
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import skescore
from skescore.bench import split_rows, suite_config
from skescore.black_boxes import fit_black_box, make_black_box
from skescore.datasets import Dataset
from skescore.extractors import TrepanExtractor
from skescore.tuning import ExtractorSearchCV

FOLDER = Path(__file__).parent
CSV = FOLDER / "fidelity.csv"
BLACK_BOXES = ("random-forest", "hist-gradient-boosting")
#: Suites and the numbers of their tables, which are the first by name.
SUITES = {"keel-balanced": 43, "keel-imbalanced": 57}
#: Smallest limit of the number of rules; the limit is larger if there are more classes.
MIN_LIMIT = 8
#: Commit of the package for "Trepan (before)".
BEFORE = "312ba46"
#: Approximate limit of CPU seconds for the solvers of optimal trees.
SOLVER_SECONDS = 20
#: Largest factor by which the wall time limit of these solvers grows on a loaded machine.
MAX_SLOWDOWN = 8.0
#: Rows on which "CART on queries" queries the black box.
N_QUERIES = 10_000
#: Cut points per feature of pystreed, which needs binary features.
N_THRESHOLDS = 10
KEYS = ("data", "black_box", "seed", "method")
COLUMNS = (
    *KEYS,
    "commit",
    "suite",
    "limit",
    "n_train",
    "n_test",
    "n_rules",
    "fidelity",
    "correctness",
    "balanced_fidelity",
    "balanced_correctness",
    "black_box_correctness",
    "seconds",
    "cpu_seconds",
    "error",
)


# --- tables and cells ----------------------------------------------------------------------------


class Encoder:
    """Numeric columns for peers that accept nothing else.

    A column of categories becomes one 0/1 column per value. Missing numbers are replaced by the
    median, and a 0/1 column marks them.
    """

    def __init__(self, X: pd.DataFrame, categories: Sequence[str]) -> None:
        self.values = {name: sorted(X[name].dropna().unique(), key=str) for name in categories}
        incomplete = [name for name in X if name not in self.values and X[name].isna().any()]
        self.medians = {name: float(X[name].median()) for name in incomplete}

    def transform(self, X: pd.DataFrame) -> np.ndarray:
        """Return the rows as floats."""
        columns: list[Any] = []
        for name in X:
            column = X[name]
            if name in self.values:
                columns += [column == value for value in self.values[name]]
            elif name in self.medians:
                columns += [column.fillna(self.medians[name]), column.isna()]
            else:
                columns.append(column)
        return np.column_stack([np.asarray(column, dtype=float) for column in columns])


@dataclass(eq=False)
class Cell:
    """Fitted black box with the training rows of all methods.

    `codes` are the `predictions` of the black box as indices of `classes`. `numbers` are the
    encoded rows.
    """

    model: Any
    X: pd.DataFrame
    y: pd.Series
    categories: tuple[str, ...]
    limit: int
    seed: int
    commit: str
    solver_seconds: float = SOLVER_SECONDS
    predictions: np.ndarray = field(init=False)
    classes: np.ndarray = field(init=False)
    codes: np.ndarray = field(init=False)
    encoder: Encoder = field(init=False)
    numbers: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Query the black box and encode the rows, which is not part of any method's time."""
        self.predictions = np.asarray(self.model.predict(self.X))
        self.classes = np.unique(self.predictions)
        self.codes = np.searchsorted(self.classes, self.predictions).astype(np.int64)
        self.encoder = Encoder(self.X, self.categories)
        self.numbers = self.encoder.transform(self.X)


class LearnedModel(NamedTuple):
    """Prediction function of the learned rules, from rows to labels, and their number."""

    predict: Callable[[pd.DataFrame], Any]
    n_rules: int


def list_tables() -> dict[str, tuple[str, Any]]:
    """Return suite and entry of the tables by name, in the order of names."""
    entries = {
        entry.label: (suite, entry)
        for suite, n_tables in SUITES.items()
        for entry in sorted(suite_config(suite).data, key=lambda entry: entry.label)[:n_tables]
    }
    assert len(entries) == sum(SUITES.values()), "two suites share a name"
    return dict(sorted(entries.items()))


def name_halves() -> dict[str, str]:
    """Return "even" or "odd" by table, from its position in the order of names, counted from 0."""
    return {name: ("even", "odd")[position % 2] for position, name in enumerate(list_tables())}


def load_tables(part: str) -> dict[str, tuple[str, Dataset]]:
    """Return suite and data by table, for all tables or one half; the data are cached."""
    entries = list_tables()
    tables = {}
    for suite in SUITES:
        in_suite = [entry for name, entry in entries.values() if name == suite]
        tables |= {entry.label: entry.table for entry in load_cached(suite, in_suite, CACHE)}
    halves = name_halves()
    return {
        name: (suite, tables[name])
        for name, (suite, _) in entries.items()
        if part in ("all", halves[name])
    }


def interpolate_rows(X: pd.DataFrame, categories: Sequence[str], n_rows: int, seed: int) -> Any:
    """Return rows between random pairs of rows.

    Integers are rounded. A category, or a number that is missing in either row, is taken from one
    of the two rows.
    """
    rng = np.random.default_rng(seed)
    first, second = rng.integers(len(X), size=(2, n_rows))
    share = rng.random(n_rows)
    columns = {}
    for name in X:
        column = X[name]
        a, b = column.to_numpy()[first], column.to_numpy()[second]
        takes_second = rng.random(n_rows) < share
        if name in categories:
            values = np.where(takes_second, b, a)
        else:
            interpolated = a + share * (b - a)
            values = np.where(np.isnan(interpolated), np.where(takes_second, b, a), interpolated)
            if pd.api.types.is_integer_dtype(column):
                values = np.rint(values)
        columns[name] = pd.Series(values).astype(column.dtype)
    return pd.DataFrame(columns)


# --- methods -------------------------------------------------------------------------------------


def wrap_numeric_model(cell: Cell, model: Any, n_rules: int) -> LearnedModel:
    """Wrap a model of encoded rows and class indices."""
    return LearnedModel(
        lambda X: cell.classes[np.asarray(model.predict(cell.encoder.transform(X)), dtype=int)],
        n_rules,
    )


def learn_cart(cell: Cell) -> LearnedModel:
    """Fit scikit-learn's tree on the training rows."""
    tree = DecisionTreeClassifier(max_leaf_nodes=cell.limit, random_state=cell.seed)
    tree.fit(cell.numbers, cell.codes)
    return wrap_numeric_model(cell, tree, tree.get_n_leaves())


def learn_cart_on_queries(cell: Cell) -> LearnedModel:
    """Fit scikit-learn's tree on the training rows and on interpolated rows."""
    queries = interpolate_rows(cell.X, cell.categories, N_QUERIES, cell.seed)
    X = np.vstack([cell.numbers, cell.encoder.transform(queries)])
    labels = np.concatenate([cell.predictions, np.asarray(cell.model.predict(queries))])
    tree = DecisionTreeClassifier(max_leaf_nodes=cell.limit, random_state=cell.seed)
    tree.fit(X, labels)
    return LearnedModel(lambda X: tree.predict(cell.encoder.transform(X)), tree.get_n_leaves())


def learn_figs(cell: Cell) -> LearnedModel:
    """Fit FIGS with as many splits as the number of leaves of all its trees permits."""
    from imodels import FIGSClassifier

    for n_splits in range(cell.limit - 1, 0, -1):
        np.random.seed(cell.seed)  # its stumps use the global generator
        model = FIGSClassifier(max_rules=n_splits, random_state=cell.seed)
        model.fit(cell.numbers, cell.codes)
        n_leaves = model.complexity_ + len(model.trees_)
        if n_leaves <= cell.limit:
            break
    return wrap_numeric_model(cell, model, n_leaves)


def solver_seconds() -> float:
    """Return the wall time limit of a solver, which is longer on a loaded machine."""
    start, cpu_start = time.perf_counter(), time.process_time()
    while time.process_time() - cpu_start < 0.5:
        sum(range(10_000))
    slowdown = (time.perf_counter() - start) / (time.process_time() - cpu_start)
    return SOLVER_SECONDS * min(max(slowdown, 1.0), MAX_SLOWDOWN)


def learn_contree(cell: Cell) -> LearnedModel:
    """Fit an optimal tree on continuous features, as deep as the number of leaves permits."""
    from pycontree import ConTree

    depth = int(np.floor(np.log2(cell.limit)))
    tree = ConTree(max_depth=depth, time_limit=cell.solver_seconds)
    tree.fit(cell.numbers, cell.codes)
    return wrap_numeric_model(cell, tree, tree.get_num_leaf_nodes())


def learn_streed(cell: Cell) -> LearnedModel:
    """Fit an optimal tree on binarized features."""
    from pystreed import STreeDClassifier

    tree = STreeDClassifier(
        max_depth=int(np.ceil(np.log2(cell.limit))),
        max_num_nodes=cell.limit - 1,
        time_limit=cell.solver_seconds,
        n_thresholds=N_THRESHOLDS,
    ).fit(cell.numbers, cell.codes)
    return wrap_numeric_model(cell, tree, tree.get_n_leaves())


def learn_trepan(cell: Cell) -> LearnedModel:
    """Fit our Trepan at the commit `BEFORE`, without query rows of a generator."""
    if cell.commit != BEFORE:
        raise RuntimeError(f"needs commit {BEFORE} of skescore: --package FOLDER of a checkout")
    extractor = TrepanExtractor(
        FrozenEstimator(cell.model),
        max_leaf_nodes=cell.limit,
        max_nodes=max(15, cell.limit - 1),
        random_state=cell.seed,
    )
    if "sampling" in inspect.signature(TrepanExtractor).parameters:
        extractor.set_params(sampling=None)
    extractor.fit(cell.X)
    return LearnedModel(extractor.predict, extractor.n_rules_)


def run_search(black_box: Any, X: Any, y: Any, max_rules: int, seed: int) -> LearnedModel:
    """Run the default search for fidelity to a fitted model with at most `max_rules` rules."""
    search = ExtractorSearchCV(
        FrozenEstimator(black_box), scoring="fidelity", max_rules=max_rules, random_state=seed
    ).fit(X, y)
    best = search.best_extractor_
    return LearnedModel(best.predict, best.n_rules_)


def learn_by_search(cell: Cell) -> LearnedModel:
    """Run the search on a cell."""
    return run_search(cell.model, cell.X, cell.y, cell.limit, cell.seed)


class Method(NamedTuple):
    """Learning function, wall time limit, and the module that is imported before timing."""

    learn: Callable[[Cell], LearnedModel]
    seconds: float = 300.0
    module: str = "sklearn"
    #: Whether the method is from this package, so its rows are measured per commit.
    is_ours: bool = False


METHODS = {
    "CART": Method(learn_cart),
    "CART on queries": Method(learn_cart_on_queries),
    "Trepan (before)": Method(learn_trepan),
    "FIGS": Method(learn_figs, module="imodels"),
    "pystreed": Method(learn_streed, module="pystreed"),
    "pycontree": Method(learn_contree, module="pycontree"),
    "search": Method(learn_by_search, 900.0, is_ours=True),
}
SOLVERS = ("pystreed", "pycontree")


# --- measurement ---------------------------------------------------------------------------------


def package_commit() -> str:
    """Return the commit of the measured checkout, with "+" for uncommitted changes."""
    root = Path(skescore.__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    changes = git("status", "--porcelain", "--", "skescore")
    if not changes and not git("diff", "--stat", BEFORE, "--", "skescore"):
        return BEFORE  # later commits did not touch the package
    return git("rev-parse", "HEAD")[: len(BEFORE)] + ("+" if changes else "")


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of processes that it waited for."""
    return sum(os.times()[:4])


def _learn_into(pipe: Any, method: Method, cell: Cell, X_test: pd.DataFrame) -> None:
    """Learn; send predictions, the number of rules and times, or the text of an error."""
    try:
        warnings.simplefilter("ignore")
        start, cpu_start = time.perf_counter(), _cpu_seconds()
        learned = method.learn(cell)
        times = time.perf_counter() - start, _cpu_seconds() - cpu_start
        pipe.send((np.asarray(learned.predict(X_test)), int(learned.n_rules), times))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {' '.join(str(error).split())}"[:200])


def measure_method(method: Method, cell: Cell, X_test: pd.DataFrame) -> Any:
    """Return predictions, number of rules and times of a method, or the text of its error."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_learn_into, args=(sender, method, cell, X_test))
    process.start()
    sender.close()
    try:
        if not receiver.poll(method.seconds):
            return f"TimeoutError: no rules within {method.seconds:g} s"
        return receiver.recv()
    except EOFError:
        process.join()
        return f"RuntimeError: the process ended with exit code {process.exitcode}"
    finally:
        process.kill()
        process.join()


def describe_result(result: Any, y_test: np.ndarray, y_box: np.ndarray) -> dict[str, Any]:
    """Return the measured columns of a row."""
    if isinstance(result, str):
        return {"error": result}
    predictions, n_rules, (seconds, cpu_seconds) = result
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some predicted classes may not occur in the test rows
        balanced = [balanced_accuracy_score(truth, predictions) for truth in (y_box, y_test)]
    return {
        "n_rules": n_rules,
        "fidelity": round(float(np.mean(predictions == y_box)), 6),
        "correctness": round(float(np.mean(predictions == y_test)), 6),
        "balanced_fidelity": round(balanced[0], 6),
        "balanced_correctness": round(balanced[1], 6),
        "seconds": round(seconds, 4),
        "cpu_seconds": round(cpu_seconds, 4),
    }


class Group(NamedTuple):
    """Methods to measure on the cell of a table, a black box and a seed."""

    suite: str
    data: str
    table: Dataset
    black_box: str
    seed: int
    methods: tuple[str, ...]
    commit: str


class PreparedGroup(NamedTuple):
    """Fitted black box of a group, the columns that all its rows share, and the test rows."""

    cell: Cell
    head: dict[str, Any]
    X_test: pd.DataFrame
    y_test: np.ndarray
    y_box: np.ndarray

    def measure(self, label: str, method: Method) -> dict[str, Any]:
        """Return the row of a method."""
        result = measure_method(method, self.cell, self.X_test)
        return self.head | {"method": label} | describe_result(result, self.y_test, self.y_box)


def prepare_group(group: Group) -> PreparedGroup:
    """Split the table and fit the black box."""
    table, seed = group.table, group.seed
    train, test = next(split_rows(table, seed, 1, 0.5))
    X_train, X_test = (table.X.iloc[half].reset_index(drop=True) for half in (train, test))
    y_train, y_test = (table.y.iloc[half].reset_index(drop=True) for half in (train, test))
    estimator = make_black_box(group.black_box, table.task, seed, table.categories)
    model = fit_black_box(estimator, X_train, y_train)
    limit = max(MIN_LIMIT, len(table.class_counts))
    categories = tuple(table.categories)
    cell = Cell(model, X_train, y_train, categories, limit, seed, group.commit)
    y_box = np.asarray(model.predict(X_test))
    head = {
        "suite": group.suite,
        "data": group.data,
        "black_box": group.black_box,
        "seed": seed,
        "limit": limit,
        "n_train": len(train),
        "n_test": len(test),
        "black_box_correctness": round(float(np.mean(y_box == y_test.to_numpy())), 6),
        "commit": group.commit,
    }
    return PreparedGroup(cell, head, X_test, y_test.to_numpy(), y_box)


def measure_group(group: Group) -> Iterator[dict[str, Any]]:
    """Fit the black box and yield the row of each method."""
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        prepared = prepare_group(group)
        for label in group.methods:
            importlib.import_module(METHODS[label].module)
            if label in SOLVERS:
                prepared.cell.solver_seconds = solver_seconds()
            yield prepared.measure(label, METHODS[label])


def _list_rows(group: Group) -> list[dict[str, Any]]:
    return list(measure_group(group))


def is_starved(rows: pd.DataFrame) -> pd.Series:
    """Return for each row whether a solver reached its time limit with too little CPU time."""
    seconds, cpu_seconds = (pd.to_numeric(rows[name]) for name in ("seconds", "cpu_seconds"))
    is_late = (seconds > 0.9 * SOLVER_SECONDS) & (cpu_seconds < 0.75 * SOLVER_SECONDS)
    return is_late & rows["method"].isin(SOLVERS)


def measured_cells(path: Path, commit: str, without_starved: bool) -> set[tuple[str, ...]]:
    """Return the keys of measured cells; cells of our methods must be measured at the commit."""
    if not path.exists():
        return set()
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    if without_starved:
        rows = rows.drop_duplicates([*KEYS, "commit"], keep="last")
        rows = rows[~is_starved(rows)]
    is_ours = rows["method"].map(lambda label: label in METHODS and METHODS[label].is_ours)
    rows = rows[~is_ours | (rows["commit"] == commit)]
    return set(rows[list(KEYS)].itertuples(index=False, name=None))


def append_row(path: Path, row: dict[str, Any], columns: Sequence[str] = COLUMNS) -> None:
    """Append a row to the results."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)
    fields = [row[key] for key in (*KEYS, "limit")]
    outcome = row.get("error") or [row[key] for key in ("n_rules", "fidelity", "seconds")]
    print(*fields, outcome, file=sys.stderr, flush=True)


def list_groups(options: argparse.Namespace) -> list[Group]:
    """Return the groups with missing cells, one seed and black box after the other."""
    commit = package_commit()
    finished = measured_cells(options.output, commit, options.starved)
    tables = load_tables(options.tables)
    groups = []
    for seed, box in itertools.product(options.seeds, options.black_boxes):
        for name, (suite, table) in tables.items():
            missing = (m for m in options.methods if (name, box, str(seed), m) not in finished)
            groups.append(Group(suite, name, table, box, seed, tuple(missing), commit))
    return [group for group in groups if group.methods]


def run(options: argparse.Namespace) -> None:
    """Measure all missing cells."""
    end = np.inf if options.seconds is None else time.monotonic() + options.seconds
    groups = (group for group in list_groups(options) if time.monotonic() < end)
    if options.jobs == 1:
        parts: Any = map(measure_group, groups)
    else:
        parallel = joblib.Parallel(
            options.jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
        )
        parts = parallel(joblib.delayed(_list_rows)(group) for group in groups)
    for rows in parts:
        for row in rows:
            append_row(options.output, row)


def main() -> None:
    """Read the options; start again with another checkout of the package if necessary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS)[:-1])
    parser.add_argument("--tables", choices=("all", "even", "odd"), default="all")
    parser.add_argument("--black-boxes", nargs="+", choices=BLACK_BOXES, default=BLACK_BOXES)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, help="start no further table after this time")
    parser.add_argument(
        "--starved",
        action="store_true",
        help="measure solvers again that reached their time limit with too little CPU time",
    )
    parser.add_argument("--package", type=Path, help="folder of the checkout to measure")
    parser.add_argument("--output", type=Path, default=CSV)
    options = parser.parse_args()
    folder = str((options.package or Path(skescore.__file__).parents[1]).resolve())
    settings = {"PYTHONPATH": folder, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)
    run(options)


if __name__ == "__main__":
    main()
