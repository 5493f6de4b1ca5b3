"""Tables 1 to 5 of the paper on Boolean attributions, compared with our results."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._optional import import_optional
from skescore._validation import check_choice, check_integer, check_sequence
from skescore.attribution import (
    Formula,
    chain_formula,
    paper_formula,
    random_formula,
    responsibility,
)
from skescore.metrics.attribution import jensen_shannon_divergence, top_k_accuracy, zero_maps
from skescore.reproduce._brex_methods import (
    BREX_METHODS,
    KINDS,
    Method,
    TrainedNetwork,
    captum_maps,
    missing,
    train_network,
)
from skescore.reproduce._cells import CellFile
from skescore.reproduce._printed import ARITIES, BREX_TABLES, SMALL

__all__ = [
    "CELLS_FILE",
    "BenchmarkFormula",
    "BrexRow",
    "BrexRun",
    "TableLine",
    "benchmark_formulas",
    "half_width",
    "plot_divergence",
    "reproduce_brex",
    "table_lines",
]

#: Number of inputs in the paper; formulas use some of them.
_N_INPUTS = 12
#: Number of the paper's table for each kind of formula.
_TABLES = {
    ("chain", "non-monotone"): 1,
    ("chain", "monotone"): 2,
    ("random", "non-monotone"): 3,
    ("random", "monotone"): 4,
    ("small", "small"): 5,
}
#: Normal quantile of a 95 % interval.
_Z = 1.959963984540054
#: Largest rounding of a printed figure.
_PRINTED_ROUNDING = 0.0005 + 1e-12
#: Files of the results: appended during the run, and the final table.
CELLS_FILE, ROWS_FILE = "brex.cells.jsonl", "brex_rows.csv"
#: Function of the number of finished steps, the number of all steps, and the next step.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class BenchmarkFormula:
    """Formula of the benchmark, with the rows for which attributions are measured."""

    #: "random", "chain" or "small".
    kind: str
    #: "monotone", "non-monotone" or "small".
    family: str
    #: Column of the paper's table: number of variables, or name of a small formula.
    column: str
    #: Index among the random formulas of this cell.
    number: int
    seed: int
    assignments: int

    @property
    def table(self) -> int:
        """Number of the paper's table."""
        return _TABLES[self.kind, self.family]

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Key of the formula in a run."""
        return self.kind, self.family, self.column, self.number

    def entropy(self, purpose: str) -> list[int]:
        """Return the entropy of random numbers for a purpose, independent of the rest of a run."""
        return [self.seed, zlib.crc32(repr((*self.key, purpose)).encode())]

    def seed_of(self, purpose: str) -> int:
        """Return an integer seed for a purpose."""
        return int(np.random.SeedSequence(self.entropy(purpose)).generate_state(1)[0])

    @cached_property
    def formula(self) -> Formula:
        """Boolean formula, drawn at random or defined in the paper."""
        if self.kind == "small":
            return paper_formula(self.column, n_inputs=_N_INPUTS)
        if self.kind == "chain":
            return chain_formula(int(self.column), family=self.family, n_inputs=_N_INPUTS)
        return random_formula(
            int(self.column),
            n_inputs=_N_INPUTS,
            family=self.family,
            random_state=np.random.SeedSequence(self.entropy("formula")),
        )

    @cached_property
    def inputs(self) -> NDArray[np.bool_]:
        """Distinct random assignments to all inputs; all 4096 in order if they are requested."""
        everything = 1 << _N_INPUTS
        if self.assignments >= everything:
            drawn = np.arange(everything)
        else:
            generator = np.random.default_rng(self.entropy("assignments"))
            drawn = generator.permutation(everything)[: self.assignments]
        return (drawn[:, None] >> np.arange(_N_INPUTS) & 1).astype(bool)

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """Exact degrees of responsibility."""
        return np.asarray(responsibility(self.formula, self.inputs), dtype=float)


def benchmark_formulas(
    arities: Sequence[int], formulas: int, assignments: int, seed: int, tables: Sequence[int]
) -> Iterator[BenchmarkFormula]:
    """Yield the formulas of a run; each is independent of the others."""
    for (kind, family), table in _TABLES.items():
        if table not in tables:
            continue
        columns = SMALL if kind == "small" else map(str, arities)
        for column in columns:
            for number in range(formulas if kind == "random" else 1):
                yield BenchmarkFormula(kind, family, column, number, seed, assignments)


@dataclass(frozen=True)
class BrexRow:
    """Result of one method on one formula of the benchmark."""

    table: int
    kind: str
    family: str
    column: str
    number: int
    formula: str
    method: str
    #: Number of explained assignments.
    rows: int
    #: Mean divergence from the exact responsibilities in bits. Rows whose attributions are all
    #: zero count as 1 in `jsd` and are excluded from `jsd_without_zero_maps`.
    jsd: float
    jsd_without_zero_maps: float
    #: Share of rows whose attributions are all zero.
    zero_maps: float
    #: Share of rows in which the responsible inputs have the highest attributions. Ties are broken
    #: at random in `top_k` and count as failures in `top_k_strict`.
    top_k: float
    top_k_strict: float
    #: Mean number of distinct queries per row; None for methods that explain a network.
    queries: float | None
    #: Accuracy of the network on all complete assignments; None without a network.
    accuracy: float | None

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """Key of the row in a run."""
        return self.kind, self.family, self.column, self.number, self.method

    @property
    def figure(self) -> float:
        """Value that the paper's table shows for this kind of formula."""
        if self.kind != "random":
            return self.top_k
        if BREX_METHODS[self.method].ignores_zero_maps:
            return self.jsd_without_zero_maps
        return self.jsd


@dataclass(frozen=True)
class BrexRun:
    """Results of :func:`reproduce_brex`.

    Attributes
    ----------
    rows : list of BrexRow
        Results, one per formula and method.
    methods : tuple of str
        Methods that were run, in the order of the tables.
    left_out : dict of str to tuple of str
        Methods that were not run because a package is missing, by the extra that installs it.
    settings : dict
        Settings on which the results depend.
    """

    rows: list[BrexRow]
    methods: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]]
    settings: dict[str, Any]


@dataclass(frozen=True)
class TableLine:
    """Row of a table: printed in the paper if `method` is None, otherwise measured.

    Attributes
    ----------
    table : int
        Number of the table.
    printed : str
        Name of the corresponding row in the paper.
    label : str
        Name of the row in the output.
    method : str or None
        Name of the method; None for a row of the paper.
    values : dict of str to float
        Mean over the formulas of each column.
    half_widths : dict of str to float
        Half-width of the 95 % interval of each mean; NaN if it cannot be estimated.
    formulas : dict of str to int
        Number of formulas behind each mean.
    queries : float or None
        Mean number of queries per row in the last column; None if queries are not counted.
    why : str
        Reason for the difference from the paper; empty for a row of the paper.
    """

    table: int
    printed: str
    label: str
    method: str | None
    values: dict[str, float]
    half_widths: dict[str, float]
    formulas: dict[str, int]
    queries: float | None
    why: str


@dataclass(frozen=True)
class FigureVerdict:
    """Comparison of a printed figure with the rows of a run.

    Attributes
    ----------
    table : int
        Number of the table.
    row, column : str
        Names of the row and column of the figure.
    printed : float
        Figure in the paper.
    is_reproduced : bool
        Whether a measured row with the same name agrees with the figure within the interval of the
        difference.
    label : str
        Name of the first measured row that agrees, otherwise of the row with the nearest value.
    measured, half_width : float
        Mean of that row, and half-width of its 95 % interval (may be NaN).
    """

    table: int
    row: str
    column: str
    printed: float
    is_reproduced: bool
    label: str
    measured: float
    half_width: float


def reproduce_brex(
    *,
    arities: Sequence[int] = (3, 6, 10),
    formulas: int = 10,
    network_formulas: int = 1,
    assignments: int = 40,
    methods: Iterable[str] | None = None,
    tables: Iterable[int] = (1, 2, 3, 4, 5),
    seed: int = 0,
    output: str | Path | None = None,
    progress: Progress | None = None,
) -> BrexRun:
    """Run the paper's benchmark of explainers of Boolean formulas.

    Use it to compare B-ReX, Shapley values and other methods with exact responsibilities, and to
    check which figures of the paper can be reproduced. :func:`table_lines` combines the results
    with the paper's results.

    Parameters
    ----------
    arities : sequence of int, default=(3, 6, 10)
        Numbers of variables, from 3 to 10.
    formulas : int, default=10
        Number of random formulas of each arity and family; 10 in the paper.
    network_formulas : int, default=1
        Number of these formulas on which networks are trained; 10 in the paper. Training takes
        some seconds per network.
    assignments : int, default=40
        Number of rows of each formula, drawn without replacement from all 4096.
    methods : iterable of str, optional
        Names in ``BREX_METHODS``; by default the fast methods.
    tables : iterable of int, default=(1, 2, 3, 4, 5)
        Numbers of the tables to reproduce.
    seed : int, default=0
        Seed of formulas, rows and methods. Results of a formula and method do not depend on the
        number of other formulas and methods.
    output : str or Path, optional
        Folder in which each result is stored as soon as it is measured. A later call with the same
        seed and number of rows resumes the run.
    progress : callable, optional
        Function that is called before each step with the number of finished steps, the number of
        all steps, and a description.

    Returns
    -------
    BrexRun
        The results.

    Raises
    ------
    ValueError
        If a parameter is out of range, or the folder holds other results.

    Notes
    -----
    Methods whose package is not installed are skipped and listed in ``left_out``. Slow methods
    explain only the first rows of a formula; each result contains their number.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982, Tables 1 to 5.

    Examples
    --------
    >>> from skescore.reproduce import reproduce_brex
    >>> run = reproduce_brex(
    ...     arities=[3], formulas=2, assignments=8, tables=[4], methods=["shapley-unassigned"]
    ... )
    >>> [(row.column, row.method, row.jsd < 0.2) for row in run.rows]
    [('3', 'shapley-unassigned', True), ('3', 'shapley-unassigned', True)]
    """
    arities = _numbers("arities", arities, ARITIES)
    tables = _numbers("tables", tables, sorted(BREX_TABLES))
    check_integer("formulas", formulas, 1)
    check_integer("network_formulas", network_formulas, 0)
    check_integer("assignments", assignments, 1)
    check_integer("seed", seed, 0)
    selected = _methods(methods)
    missing_methods = missing(selected)
    unusable = {method.name for group in missing_methods.values() for method in group}
    usable_methods = [method for method in selected if method.name not in unusable]
    settings = {"seed": seed, "assignments": assignments}
    folder = None if output is None else Path(output)
    cells = CellFile(None if folder is None else folder / CELLS_FILE, settings)
    benchmark = benchmark_formulas(arities, formulas, assignments, seed, tables)
    steps = [
        (formula, group)
        for formula in benchmark
        for group in _groups(formula, usable_methods, network_formulas)
    ]
    for n_done, (formula, group) in enumerate(steps):
        todo = [method for method in group if (*formula.key, method.name) not in cells.values]
        if not todo:
            continue
        if progress is not None:
            progress(n_done, len(steps), _describe_step(formula, todo))
        network = None
        if todo[0].network is not None:
            seed_of_network = formula.seed_of(f"network {todo[0].network}")
            network = train_network(formula.formula, todo[0].network, seed_of_network)
        for method in todo:
            cells.add((*formula.key, method.name), asdict(_measure(formula, method, network)))
    if progress is not None:
        progress(len(steps), len(steps), "done")
    rows = [
        BrexRow(**cells.values[*formula.key, method.name])
        for formula, group in steps
        for method in group
    ]
    if folder is not None:
        pd.DataFrame(map(asdict, rows)).to_csv(folder / ROWS_FILE, index=False)
    return BrexRun(
        rows,
        tuple(method.name for method in usable_methods),
        {extra: tuple(m.name for m in group) for extra, group in missing_methods.items()},
        settings,
    )


def _numbers(name: str, numbers: Iterable[int], allowed: Sequence[int]) -> list[int]:
    result = sorted(set(check_sequence(name, numbers, "numbers")))
    if not result or not set(result) <= set(allowed):
        raise ValueError(
            f"{name} must be numbers from {allowed[0]} to {allowed[-1]}, got {result!r}."
        )
    return result


def _methods(names: Iterable[str] | None) -> list[Method]:
    if names is None:
        return [method for method in BREX_METHODS.values() if method.quick]
    selected = check_sequence("methods", names, "names")
    for name in selected:
        check_choice("methods", name, BREX_METHODS)
    if not selected:
        raise ValueError(f"methods must hold at least one of {', '.join(BREX_METHODS)}, got none.")
    return [method for name, method in BREX_METHODS.items() if name in selected]


def _groups(
    formula: BenchmarkFormula, methods: list[Method], network_formulas: int
) -> list[list[Method]]:
    """Return the groups of methods that run together: on the formula, and on each network."""
    groups = [[m for m in methods if m.network is None]]
    if formula.number < network_formulas:
        groups += [[m for m in methods if m.network == kind] for kind in KINDS]
    return [group for group in groups if group]


def _describe_step(formula: BenchmarkFormula, methods: list[Method]) -> str:
    subject = f"a {methods[0].network} network" if methods[0].network else "the formula"
    number = f", formula {formula.number + 1}" if formula.kind == "random" else ""
    name = formula.column if formula.kind == "small" else f"arity {formula.column}{number}"
    return f"table {formula.table}, {name}: {subject}"


def _measure(formula: BenchmarkFormula, method: Method, network: TrainedNetwork | None) -> BrexRow:
    """Run a method on a formula or on a network trained on it."""
    X, truth = formula.inputs[: method.max_rows], formula.truth[: method.max_rows]
    seed = formula.seed_of(method.name)
    queries: float | None = None
    if network is not None:
        values = captum_maps(network, X, method.printed, seed)
    else:
        assert method.explain is not None
        values, queries = method.explain(formula.formula, X, seed)
    values = np.maximum(values, 0.0)
    divergence = np.asarray(jensen_shannon_divergence(values, truth, zero="max"))
    nothing = np.asarray(zero_maps(values))
    defined = divergence[~nothing]
    return BrexRow(
        table=formula.table,
        kind=formula.kind,
        family=formula.family,
        column=formula.column,
        number=formula.number,
        formula=str(formula.formula),
        method=method.name,
        rows=len(X),
        jsd=float(divergence.mean()),
        jsd_without_zero_maps=float(defined.mean()) if len(defined) else math.nan,
        zero_maps=float(nothing.mean()),
        top_k=float(np.mean(top_k_accuracy(values, truth > 0, ties="expected"))),
        top_k_strict=float(np.mean(top_k_accuracy(values, truth > 0, ties="strict"))),
        queries=queries,
        accuracy=None if network is None else network.accuracy,
    )


def table_lines(run: BrexRun) -> dict[int, list[TableLine]]:
    """Return the rows of the paper's tables, together with our results.

    Parameters
    ----------
    run : BrexRun
        The results.

    Returns
    -------
    dict of int to list of TableLine
        For each table of the run, the rows of the paper, each followed by our rows of that name.
    """
    result: dict[int, list[TableLine]] = {}
    for table in sorted({row.table for row in run.rows}):
        of_table = [row for row in run.rows if row.table == table]
        present = {row.column for row in of_table}
        all_columns = SMALL if table == 5 else tuple(map(str, ARITIES))
        columns = [column for column in all_columns if column in present]
        lines = result[table] = []
        for printed, figures in BREX_TABLES[table].items():
            values, label = {c: figures[c] for c in columns}, f"{printed} (paper)"
            lines.append(TableLine(table, printed, label, None, values, {}, {}, None, ""))
            lines += _our_lines(table, printed, run.methods, of_table, columns)
        # The paper's tables of top-k accuracy do not contain IntegratedGrad.
        for name in run.methods:
            printed_figures = BREX_METHODS[name].printed
            if printed_figures not in BREX_TABLES[table]:
                lines += _our_lines(table, printed_figures, (name,), of_table, columns)
    return result


def _our_lines(
    table: int, printed: str, methods: Sequence[str], rows: list[BrexRow], columns: list[str]
) -> list[TableLine]:
    lines = []
    for name in methods:
        method_rows = [row for row in rows if row.method == name]
        if BREX_METHODS[name].printed != printed or not method_rows:
            continue
        figures = {c: [row.figure for row in method_rows if row.column == c] for c in columns}
        figures = {c: [v for v in values if not math.isnan(v)] for c, values in figures.items()}
        n_rows = method_rows[0].rows if method_rows[0].kind != "random" else None
        last = [row.queries for row in method_rows if row.column == columns[-1]]
        queries = [count for count in last if count is not None]
        lines.append(
            TableLine(
                table,
                printed,
                BREX_METHODS[name].label,
                name,
                {c: float(np.mean(values)) for c, values in figures.items() if values},
                {c: half_width(values, n_rows) for c, values in figures.items() if values},
                {c: len(values) for c, values in figures.items() if values},
                float(np.mean(queries)) if queries else None,
                BREX_METHODS[name].why_different(table),
            )
        )
    return lines


def figure_verdicts(tables: Mapping[int, Sequence[TableLine]]) -> list[FigureVerdict]:
    """Compare each printed figure with our rows of the same name.

    The paper and the run draw formulas or rows independently. Therefore, the 95 % interval of the
    difference of their means is wider than the interval of our mean by the factor sqrt(2).

    Parameters
    ----------
    tables : mapping of int to sequence of TableLine
        Tables from :func:`table_lines`.

    Returns
    -------
    list of FigureVerdict
        Verdicts in the order of tables, rows and columns; columns that were not run have none.

    Examples
    --------
    >>> from skescore.reproduce import figure_verdicts, reproduce_brex, table_lines
    >>> run = reproduce_brex(arities=[3], assignments=8, tables=[3], methods=["brex-literal"])
    >>> print(figure_verdicts(table_lines(run))[0].printed)
    0.021
    """
    verdicts = []
    for table, lines in tables.items():
        for paper_line in (line for line in lines if line.method is None):
            ours = [line for line in lines if line.method and line.printed == paper_line.printed]
            for column, printed in paper_line.values.items():
                measured = [line for line in ours if column in line.values]
                if not measured:
                    continue
                verdicts.append(_judge_figure(table, paper_line.printed, column, printed, measured))
    return verdicts


def _judge_figure(
    table: int, row: str, column: str, printed: float, lines: Sequence[TableLine]
) -> FigureVerdict:
    """Compare a printed figure with the first row that reproduces it, or with the closest one."""

    def difference(line: TableLine) -> float:
        return abs(line.values[column] - printed)

    def is_equal(line: TableLine) -> bool:
        width = line.half_widths[column]
        tolerance = 0.0 if math.isnan(width) else math.sqrt(2) * width
        return difference(line) <= tolerance + _PRINTED_ROUNDING

    reproducing = [line for line in lines if is_equal(line)]
    line = reproducing[0] if reproducing else min(lines, key=difference)
    return FigureVerdict(
        table,
        row,
        column,
        printed,
        bool(reproducing),
        line.label,
        line.values[column],
        line.half_widths[column],
    )


def half_width(figures: Sequence[float], n_rows: int | None = None) -> float:
    """Return the half-width of the 95 % interval of a mean.

    A single figure is a share of `n_rows` rows with a binomial interval; NaN without `n_rows`.
    """
    if len(figures) == 1 and n_rows:
        share = figures[0]
        return float(_Z * math.sqrt(max(share * (1 - share), 0.0) / n_rows))
    if len(figures) < 2:
        return math.nan
    return float(_Z * np.std(figures, ddof=1) / math.sqrt(len(figures)))


#: Okabe and Ito's colors, suitable for color-blind readers.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")
_MARKERS = "osD^vPX*"
_PANELS = {3: "non-monotone", 4: "monotone"}


def plot_divergence(run: BrexRun, *, kinds: str = "formula", axes: Any = None) -> Any:
    """Plot the mean divergence of each method by arity; dashed lines show the paper's values.

    Parameters
    ----------
    run : BrexRun
        Results of Tables 3 or 4.
    kinds : {"formula", "three-valued", "two-valued", "zero-one"}, default="formula"
        Methods to plot: the methods that query the formula, or that explain this kind of network.
    axes : sequence of matplotlib Axes, optional
        Axes for each table of the run; by default a new figure.

    Returns
    -------
    list of matplotlib Axes

    Raises
    ------
    ValueError
        If the run has no such results, or `axes` does not hold one Axes per table.
    """
    tables = {table: lines for table, lines in table_lines(run).items() if table in _PANELS}
    tables = {table: _lines_of_kind(lines, kinds) for table, lines in tables.items()}
    tables = {table: lines for table, lines in tables.items() if lines}
    if not tables:
        raise ValueError(
            f"The run has no results for Figure 2 with kinds={kinds!r}. Run Table 3 or 4 with "
            "methods of that kind."
        )
    if axes is None:
        pyplot = import_optional("matplotlib.pyplot", extra="plots", purpose="Drawing Figure 2")
        _, grid = pyplot.subplots(
            1,
            len(tables),
            figsize=(5.6 * len(tables), 4.6),
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        axes = grid[0]
    axes = list(axes)
    if len(axes) != len(tables):
        raise ValueError(f"axes must hold {len(tables)} Axes, one per table, got {len(axes)}.")
    styles = _styles(tables)
    for ax, (table, lines) in zip(axes, tables.items(), strict=True):
        _panel(ax, lines, styles)
        ax.set_title(f"{_PANELS[table]} formulas")
        ax.set_xlabel("number of variables")
    for ax in axes:  # last, because setting a limit stops autoscaling
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("JSD from the exact responsibilities (bits)")
    axes[-1].legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return axes


def _lines_of_kind(lines: Sequence[TableLine], kinds: str) -> list[TableLine]:
    """Return our lines of one kind of method, and the printed rows that belong to them."""
    ours = [
        line
        for line in lines
        if line.method is not None and (line.method.partition(":")[2] or "formula") == kinds
    ]
    names = {line.printed for line in ours}
    return [line for line in lines if line in ours or (not line.method and line.printed in names)]


def _styles(tables: Mapping[int, Sequence[TableLine]]) -> dict[str, tuple[str, str]]:
    """Return a color and a marker for each of our rows."""
    styles: dict[str, tuple[str, str]] = {}
    for lines in tables.values():
        for line in lines:
            if line.method is not None and line.label not in styles:
                number = len(styles) % len(_COLORS)
                styles[line.label] = _COLORS[number], _MARKERS[number]
    return styles


def _panel(ax: Any, lines: Sequence[TableLine], styles: Mapping[str, tuple[str, str]]) -> None:
    first: dict[str, tuple[str, str]] = {}
    for line in lines:
        if line.method is not None:
            first.setdefault(line.printed, styles[line.label])
    for line in lines:
        arities = [int(column) for column in line.values]
        values = list(line.values.values())
        if line.method is None:
            color, _ = first[line.printed]
            ax.plot(arities, values, "--", color=color, linewidth=1, label=line.label)
            continue
        color, marker = styles[line.label]
        widths = [0.0 if w != w else w for w in line.half_widths.values()]
        ax.errorbar(
            arities,
            values,
            yerr=widths,
            color=color,
            marker=marker,
            markersize=5,
            linewidth=1.5,
            capsize=3,
            label=line.label,
        )
    ax.set_xticks(sorted({int(column) for line in lines for column in line.values}))
    ax.grid(alpha=0.25)
