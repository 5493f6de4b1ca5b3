"""Tables 1 to 5 of the paper on Boolean attributions, beside what comes out here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skescore._text import did_you_mean
from skescore.metrics.attribution import (
    jensen_shannon_divergence,
    top_k_accuracy,
    zero_maps,
)
from skescore.reproduce._brex_methods import METHODS, Maps, Method, missing
from skescore.reproduce._brex_networks import KINDS, TrainedNetwork, captum_maps, train
from skescore.reproduce._brex_printed import PRINTED, TITLES, why_different
from skescore.reproduce._brex_rows import Row, RowStore
from skescore.reproduce._brex_units import ARITIES, SMALL, TABLES, Unit, units

__all__ = ["BrexRun", "TableLine", "reproduce_brex", "table_lines"]

#: Normal quantile of a 95 % interval.
_Z = 1.959963984540054
#: Called with the number of finished steps, of all steps, and what comes next.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class BrexRun:
    """Results of :func:`reproduce_brex`.

    Attributes
    ----------
    rows : list of Row
        One per formula and method.
    methods : tuple of str
        The methods that ran, in the order of the tables.
    left_out : dict of str to tuple of str
        Methods that did not run because a package is missing, by the extra that brings it.
    settings : dict
        What the run depends on.
    """

    rows: list[Row]
    methods: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]]
    settings: dict[str, Any]


@dataclass(frozen=True)
class TableLine:
    """A row of a table: of the paper if `method` is None, else of ours.

    Attributes
    ----------
    table : int
        Number of the table.
    printed : str
        The paper's row that it belongs to.
    label : str
        What to call it.
    method : str or None
        The method.
    values : dict of str to float
        Mean over the formulae of each column.
    half_widths : dict of str to float
        Half of the 95 % interval of each mean; NaN for a single formula.
    formulae : dict of str to int
        Number of formulae behind each mean.
    queries : float or None
        Questions per row of the last column.
    why : str
        What explains the difference from the paper.
    """

    table: int
    printed: str
    label: str
    method: str | None
    values: dict[str, float]
    half_widths: dict[str, float]
    formulae: dict[str, int]
    queries: float | None
    why: str


def reproduce_brex(
    *,
    arities: Sequence[int] = (3, 6, 10),
    formulae: int = 10,
    network_formulae: int = 1,
    assignments: int = 40,
    methods: Iterable[str] | None = None,
    tables: Iterable[int] = (1, 2, 3, 4, 5),
    seed: int = 0,
    output: str | Path | None = None,
    progress: Progress | None = None,
) -> BrexRun:
    """Run the paper's benchmark of explainers of Boolean formulae.

    Use it to see where B-ReX, Shapley values and others stand against exact responsibilities, and
    how far the paper's tables come out. :func:`table_lines` sets the results beside the paper's.

    Parameters
    ----------
    arities : sequence of int, default=(3, 6, 10)
        Numbers of variables, from 3 to 10.
    formulae : int, default=10
        Random formulae of each arity and family; the paper has 10.
    network_formulae : int, default=1
        How many of them a network is trained on, which takes some seconds each; the paper has 10.
    assignments : int, default=40
        Rows of each formula, drawn from all 4096 without repetition.
    methods : iterable of str, optional
        Names among ``METHODS``; by default those that take little time.
    tables : iterable of int, default=(1, 2, 3, 4, 5)
        Which tables are made.
    seed : int, default=0
        What formulae, rows and methods depend on; more formulae or methods change none of the
        others' results.
    output : str or Path, optional
        A folder that keeps every result as it comes; a run with the same seed and number of rows
        goes on there.
    progress : callable, optional
        Called before each step with the number of steps done, of all steps, and a description.

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
    Methods whose package is not installed are left out and listed. Slow methods look at the first
    rows of a formula only; each result says at how many.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulae. 2025, arXiv:2509.09982, Tables 1 to 5.

    Examples
    --------
    >>> from skescore.reproduce import reproduce_brex
    >>> run = reproduce_brex(
    ...     arities=[3], formulae=2, assignments=8, tables=[4], methods=["shapley-unassigned"]
    ... )
    >>> [(row.column, row.method, row.jsd < 0.2) for row in run.rows]
    [('3', 'shapley-unassigned', True), ('3', 'shapley-unassigned', True)]
    """
    arities, tables = _arities(arities), _tables(tables)
    for name, value, least in (
        ("formulae", formulae, 1), ("network_formulae", network_formulae, 0),
        ("assignments", assignments, 1), ("seed", seed, 0),
    ):  # fmt: skip
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    chosen = _methods(methods)
    absent = missing(chosen)
    unusable = {method.name for group in absent.values() for method in group}
    usable = [method for method in chosen if method.name not in unusable]
    settings = {"seed": seed, "assignments": assignments}
    store = RowStore(None if output is None else Path(output), settings)
    wanted = list(units(arities, formulae, assignments, seed, tables))
    steps = [(unit, group) for unit in wanted for group in _groups(unit, usable, network_formulae)]
    for done, (unit, group) in enumerate(steps):
        todo = [method for method in group if (*unit.key, method.name) not in store]
        if not todo:
            continue
        if progress is not None:
            progress(done, len(steps), _described(unit, todo))
        network = None
        if todo[0].network is not None:
            network_seed = _whole_seed(unit, f"network {todo[0].network}")
            network = train(unit.formula, todo[0].network, network_seed)
        for method in todo:
            store.add(_measured(unit, method, network))
    if progress is not None:
        progress(len(steps), len(steps), "done")
    rows = [store.rows[*unit.key, method.name] for unit, group in steps for method in group]
    return BrexRun(
        rows,
        tuple(method.name for method in usable),
        {extra: tuple(m.name for m in group) for extra, group in absent.items()},
        settings,
    )


def _arities(arities: Sequence[int]) -> list[int]:
    result = sorted(set(arities))
    wrong = [arity for arity in result if arity not in ARITIES]
    if wrong or not result:
        raise ValueError(f"arities must be numbers from 3 to 10, at least one, got {arities!r}.")
    return result


def _tables(tables: Iterable[int]) -> list[int]:
    result = sorted(set(tables))
    if not result or not set(result) <= set(TABLES.values()):
        raise ValueError(f"tables must be numbers from 1 to 5, at least one, got {result!r}.")
    return result


def _methods(names: Iterable[str] | None) -> list[Method]:
    if names is None:
        return [method for method in METHODS.values() if method.quick]
    chosen = list(names)
    for name in chosen:
        if name not in METHODS:
            raise ValueError(
                f"methods must be among {', '.join(METHODS)}, got {name!r}. "
                f"{did_you_mean(name, METHODS)}".rstrip()
            )
    if not chosen:
        raise ValueError(f"methods must hold at least one of {', '.join(METHODS)}, got none.")
    return [method for name, method in METHODS.items() if name in set(chosen)]


def _groups(unit: Unit, methods: list[Method], network_formulae: int) -> list[list[Method]]:
    """Methods that are run together: those of the formula, and those of each network."""
    groups = [[m for m in methods if m.network is None]]
    if unit.number < network_formulae:
        groups += [[m for m in methods if m.network == kind] for kind in KINDS]
    return [group for group in groups if group]


def _described(unit: Unit, methods: list[Method]) -> str:
    what = f"a {methods[0].network} network" if methods[0].network else "the formula"
    number = f", formula {unit.number + 1}" if unit.kind == "random" else ""
    name = unit.column if unit.kind == "small" else f"arity {unit.column}{number}"
    return f"table {unit.table}, {name}: {what}"


def _whole_seed(unit: Unit, purpose: str) -> int:
    return int(np.random.SeedSequence(unit.entropy(purpose)).generate_state(1)[0])


def _measured(unit: Unit, method: Method, network: TrainedNetwork | None) -> Row:
    """Run a method on a formula, or a network that has learnt it."""
    X, truth = unit.inputs[: method.most], unit.truth[: method.most]
    seed = _whole_seed(unit, method.name)
    queries: float | None = None
    if network is not None:
        values = captum_maps(network, X, method.captum_name, seed)
    else:
        assert method.explain is not None
        maps: Maps = method.explain(unit.formula, X, seed)
        values, queries = maps.values, maps.queries
    values = np.maximum(values, 0.0)
    divergence = np.asarray(jensen_shannon_divergence(values, truth, zero="max"))
    nothing = np.asarray(zero_maps(values))
    said = divergence[~nothing]
    return Row(
        table=unit.table, kind=unit.kind, family=unit.family, column=unit.column,
        number=unit.number, formula=str(unit.formula), method=method.name, rows=len(X),
        jsd=float(divergence.mean()),
        jsd_without_zero_maps=float(said.mean()) if len(said) else math.nan,
        zero_maps=float(nothing.mean()),
        top_k=float(np.mean(top_k_accuracy(values, truth > 0, ties="expected"))),
        top_k_strict=float(np.mean(top_k_accuracy(values, truth > 0, ties="strict"))),
        queries=queries, accuracy=None if network is None else network.accuracy,
    )  # fmt: skip


def figure_of(row: Row) -> float:
    """The figure of a row that its table shows."""
    if row.kind != "random":
        return row.top_k
    if METHODS[row.method].ignores_zero_maps:
        return row.jsd_without_zero_maps
    return row.jsd


def table_lines(run: BrexRun) -> dict[int, list[TableLine]]:
    """Set results beside the paper's tables.

    Parameters
    ----------
    run : BrexRun
        The results.

    Returns
    -------
    dict of int to list of TableLine
        For each table that was made, the paper's rows, each followed by ours of the same name.
    """
    result: dict[int, list[TableLine]] = {}
    for table in sorted({row.table for row in run.rows}):
        of_table = [row for row in run.rows if row.table == table]
        present = {row.column for row in of_table}
        every = SMALL if table == 5 else tuple(map(str, ARITIES))
        columns = [column for column in every if column in present]
        lines = result[table] = []
        for printed, figures in PRINTED[table].items():
            lines.append(_paper_line(table, printed, {c: figures[c] for c in columns}))
            lines += _our_lines(table, printed, run.methods, of_table, columns)
        # The paper leaves IntegratedGrad out of its tables of top-k accuracy.
        for name in run.methods:
            own = METHODS[name].printed
            if own is not None and own not in PRINTED[table]:
                lines += _our_lines(table, own, (name,), of_table, columns)
    return result


def _paper_line(table: int, printed: str, figures: dict[str, float]) -> TableLine:
    return TableLine(table, printed, f"{printed} (paper)", None, figures, {}, {}, None, "")


def _our_lines(
    table: int, printed: str, methods: Sequence[str], rows: list[Row], columns: list[str]
) -> list[TableLine]:
    lines = []
    for name in methods:
        own = [row for row in rows if row.method == name]
        if METHODS[name].printed != printed or not own:
            continue
        figures = {c: [figure_of(row) for row in own if row.column == c] for c in columns}
        figures = {c: [v for v in some if not math.isnan(v)] for c, some in figures.items()}
        queries = [row.queries for row in own if row.column == columns[-1]]
        asked = [q for q in queries if q is not None]
        lines.append(
            TableLine(
                table, printed, METHODS[name].label, name,
                {c: float(np.mean(some)) for c, some in figures.items() if some},
                {c: half_width(some) for c, some in figures.items() if some},
                {c: len(some) for c, some in figures.items() if some},
                float(np.mean(asked)) if asked else None,
                why_different(table, name),
            )
        )  # fmt: skip
    return lines


def half_width(figures: Sequence[float]) -> float:
    """Half of the 95 % interval of a mean; NaN if there is only one figure."""
    if len(figures) < 2:
        return math.nan
    return float(_Z * np.std(figures, ddof=1) / math.sqrt(len(figures)))


def titles() -> dict[int, str]:
    """The title of each table."""
    return dict(TITLES)
