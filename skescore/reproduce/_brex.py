"""Tables 1 to 5 of the paper on Boolean attributions, beside what comes out here."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore._io import LineFile
from skescore._optional import import_optional
from skescore._text import did_you_mean
from skescore.attribution import Formula, chain_formula, paper_formula, random_formula
from skescore.attribution._responsibility import responsibility
from skescore.metrics.attribution import jensen_shannon_divergence, top_k_accuracy, zero_maps
from skescore.reproduce._brex_methods import (
    KINDS,
    METHODS,
    Maps,
    Method,
    TrainedNetwork,
    captum_maps,
    missing,
    train,
)

__all__ = ["BrexRun", "TableLine", "reproduce_brex", "table_lines"]


# --- the formulae of the benchmark on Boolean attributions, and what each is measured on ---------

#: Inputs of a row in the paper; formulae use some of them.
N_INPUTS = 12
ARITIES = tuple(range(3, 11))
FAMILIES = ("non-monotone", "monotone")
SMALL = ("and", "or", "xor", "xor-and-xor")
#: The paper's table of each kind of formula.
TABLES = {
    ("chain", "non-monotone"): 1,
    ("chain", "monotone"): 2,
    ("random", "non-monotone"): 3,
    ("random", "monotone"): 4,
    ("small", "small"): 5,
}


@dataclass(frozen=True)
class Unit:
    """A formula of the benchmark, with the rows that attributions are measured on."""

    kind: str
    family: str
    column: str
    number: int
    seed: int
    assignments: int

    @property
    def table(self) -> int:
        """Number of the paper's table."""
        return TABLES[self.kind, self.family]

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells units apart."""
        return self.kind, self.family, self.column, self.number

    def entropy(self, purpose: str) -> list[int]:
        """Seed of one purpose, whatever else is run."""
        return [self.seed, zlib.crc32(repr((*self.key, purpose)).encode())]

    @cached_property
    def formula(self) -> Formula:
        """The formula."""
        if self.kind == "small":
            return paper_formula(self.column, n_inputs=N_INPUTS)
        if self.kind == "chain":
            return chain_formula(int(self.column), family=self.family, n_inputs=N_INPUTS)
        return random_formula(
            int(self.column), n_inputs=N_INPUTS, family=self.family,
            random_state=np.random.SeedSequence(self.entropy("formula")),
        )  # fmt: skip

    @cached_property
    def inputs(self) -> NDArray[np.bool_]:
        """Different assignments of all inputs, drawn at random; all of them in order if so many."""
        everything = 1 << N_INPUTS
        if self.assignments >= everything:
            drawn = np.arange(everything)
        else:
            generator = np.random.default_rng(self.entropy("assignments"))
            drawn = generator.permutation(everything)[: self.assignments]
        return (drawn[:, None] >> np.arange(N_INPUTS) & 1).astype(bool)

    @cached_property
    def truth(self) -> NDArray[np.float64]:
        """Exact responsibilities."""
        return np.asarray(responsibility(self.formula, self.inputs), dtype=float)


def units(
    arities: Sequence[int], formulae: int, assignments: int, seed: int, tables: Sequence[int]
) -> Iterator[Unit]:
    """All units of a run; every one is the same whatever the others are."""
    for (kind, family), table in TABLES.items():
        if table not in tables:
            continue
        columns = SMALL if kind == "small" else map(str, arities)
        for column in columns:
            for number in range(formulae if kind == "random" else 1):
                yield Unit(kind, family, column, number, seed, assignments)


# --- results of the benchmark on Boolean attributions: one row per formula and method, in --------

ROWS_FILE, SETTINGS_FILE = "brex_rows.csv", "brex_settings.json"


@dataclass(frozen=True)
class Row:
    """What one method reached on one formula."""

    table: int
    kind: str
    family: str
    column: str
    number: int
    formula: str
    method: str
    rows: int
    jsd: float
    jsd_without_zero_maps: float
    zero_maps: float
    top_k: float
    top_k_strict: float
    queries: float | None
    accuracy: float | None

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """What tells rows apart."""
        return self.kind, self.family, self.column, self.number, self.method


_WHOLE = {"table", "number", "rows"}
_TEXT = {"kind", "family", "column", "formula", "method"}


def _read_value(name: str, text: str) -> Any:
    if name in _TEXT:
        return text
    if name in _WHOLE:
        return int(text)
    return float(text) if text else (math.nan if name.startswith("jsd") else None)


def _write_value(value: Any) -> str:
    if value is None or value != value:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


class RowStore:
    """Rows of a run, kept in a folder if there is one, so that a broken run goes on."""

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.rows: dict[tuple[str, str, str, int, str], Row] = {}
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._check_settings(folder / SETTINGS_FILE, settings)
        self._file = LineFile(folder / ROWS_FILE, ",".join(f.name for f in fields(Row)))
        for number, line in enumerate(self._file.lines, start=2):
            row = self._read(number, line)
            self.rows[row.key] = row

    def _check_settings(self, path: Path, settings: dict[str, Any]) -> None:
        if path.exists():
            try:
                known = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(
                    f"{path} is no JSON ({error}). Remove the folder's files, or choose another."
                ) from error
            differing = [
                f"{name} {known.get(name)!r} there, {value!r} now"
                for name, value in settings.items()
                if not isinstance(known, dict) or known.get(name) != value
            ]
            if differing:
                raise ValueError(
                    f"{path.parent} holds results of other settings ({'; '.join(differing)}). Pass "
                    "the same ones to go on, or choose another folder."
                )
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    def _read(self, number: int, line: str) -> Row:
        try:
            values = zip(fields(Row), line.split(","), strict=True)
            return Row(**{f.name: _read_value(f.name, text) for f, text in values})
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.folder}/{ROWS_FILE} has a line that cannot be read, {number}: {error}. "
                "Remove that line, and its results are made again."
            ) from error

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    def add(self, row: Row) -> None:
        """Keep a row, and write it at once."""
        self.rows[row.key] = row
        if self.folder is not None:
            # No value holds a comma, a quotation mark or a line break.
            self._file.append(",".join(map(_write_value, asdict(row).values())))


# --- what the paper on Boolean attributions prints, and why other figures come out here ----------

_ARITIES = tuple(map(str, range(3, 11)))

Printed = Mapping[str, Mapping[str, float]]


def _by_arity(rows: dict[str, str]) -> Printed:
    return {
        name: dict(zip(_ARITIES, map(float, figures.split()), strict=True))
        for name, figures in rows.items()
    }


_SMALL = ("and", "or", "xor", "xor-and-xor")

#: Tables 1 to 5: for every row its figures by column (arity, or name of the formula).
PRINTED: Mapping[int, Printed] = MappingProxyType(
    {
        1: _by_arity({
            "B-ReX": ".754 .782 .582 .398 .344 .368 .426 .384",
            "ShapleyValues": ".404 .266 .296 .152 .262 .162 .32 .15",
            "KernelShap": ".03 .002 .038 .002 .034 .004 .038 .004",
            "Saliency": ".23 .238 .374 .268 .334 .262 .4 .242",
            "DeepLift": ".25 .256 .264 .182 .256 .268 .31 .122",
            "InputXGrad": ".002 0 0 0 0 0 0 0",
        }),
        2: _by_arity({
            "B-ReX": ".774 .692 .63 .648 .662 .676 .642 .664",
            "ShapleyValues": ".704 .512 .506 .474 .464 .576 .518 .486",
            "KernelShap": ".05 .032 .042 .036 .044 .05 .042 .042",
            "Saliency": ".458 .432 .416 .46 .342 .538 .334 .382",
            "DeepLift": ".65 .524 .538 .52 .458 .65 .47 .472",
            "InputXGrad": ".446 .008 .382 .048 .486 .088 .334 .032",
        }),
        3: _by_arity({
            "B-ReX": ".021 .018 .037 .039 .064 .066 .063 .072",
            "ShapleyValues": ".139 .171 .192 .205 .259 .256 .256 .269",
            "KernelShap": ".16 .205 .23 .24 .282 .284 .295 .303",
            "Saliency": ".128 .106 .123 .128 .123 .126 .112 .122",
            "DeepLift": ".073 .062 .085 .097 .09 .099 .108 .109",
            "InputXGrad": ".319 .301 .298 .4 .374 .279 .382 .342",
            "IntegratedGrad": ".071 .059 .081 .092 .089 .104 .106 .105",
        }),
        4: _by_arity({
            "B-ReX": ".009 .023 .025 .04 .029 .059 .053 .046",
            "ShapleyValues": ".094 .119 .124 .153 .139 .19 .179 .175",
            "KernelShap": ".127 .149 .16 .187 .178 .213 .211 .206",
            "Saliency": ".131 .146 .156 .144 .149 .159 .146 .146",
            "DeepLift": ".046 .055 .056 .061 .07 .068 .067 .072",
            "InputXGrad": ".499 .392 .362 .393 .407 .339 .399 .487",
            "IntegratedGrad": ".047 .056 .058 .066 .072 .074 .073 .075",
        }),
        5: {
            name: dict(zip(_SMALL, figures, strict=True))
            for name, figures in {
                "B-ReX": (0.992, 0.986, 1.0, 0.638),
                "ShapleyValues": (0.88, 0.878, 0.692, 0.536),
                "KernelShap": (0.068, 0.054, 0.024, 0.006),
                "Saliency": (0.842, 0.742, 0.684, 0.774),
                "DeepLift": (0.958, 0.806, 0.826, 0.734),
                "InputXGrad": (0.136, 0.642, 0.198, 0.314),
            }.items()
        },
    }
)  # fmt: skip

TITLES: Mapping[int, str] = MappingProxyType(
    {
        1: "Table 1: top-k accuracy on non-monotone chains ((x1 ^ x2) & x3) ^ ..., by arity",
        2: "Table 2: top-k accuracy on monotone chains ((x1 & x2) | x3) & ..., by arity",
        3: "Table 3: JSD in bits on random non-monotone formulae, by arity",
        4: "Table 4: JSD in bits on random monotone formulae, by arity",
        5: "Table 5: top-k accuracy on four small formulae",
    }
)

_NETWORKS = (
    "The paper does not say whether its networks saw Unassigned inputs, nor how inputs were coded."
)
_THREE = "Network trained on Kleene's three values, inputs coded -1, 0 and +1."
_THREE_NEAR = "Its gradient rows come nearer to the paper's than those of two-valued ones."
_TWO = (
    "Network trained on complete inputs only, coded -1 and +1, so that a baseline of 0 is nothing "
    "it has learnt."
)
_TWO_NEAR = "Its Shapley rows come nearer to the paper's than those of three-valued ones."

#: Why the figures of the divergence tables differ, by method.
_DIVERGENCE: Mapping[str, str] = MappingProxyType(
    {
        "brex-paper": "One pass, four blocks, the blocks that made the answer hang on a part stay "
        "Unassigned while it is refined. The paper names neither number of blocks nor of passes, "
        "and which formulae are drawn moves a cell by up to .02; on monotone arity 7 and 10 it is "
        "at the low end of what this reading gives.",
        "brex-literal": "Algorithm 3 to the letter: nothing else is Unassigned while a part is "
        "refined; mean of twenty passes; rows left without any attribution do not count.",
        "brex-certified": "Not in the paper: counts of single inputs with a certificate each, the "
        "best of all passes instead of a mean.",
        "brex-patient": "As certified, with up to a hundred passes, the last twenty in vain.",
        "shapley-unassigned": "The paper samples on a trained network; these are exact, on the "
        "formula itself with absent inputs Unassigned.",
        "shapley-completions": "Exact, absent inputs are drawn as fair coins. The paper samples "
        "on a trained network.",
        "shapley-sampled": "One random order forwards and backwards, as many questions as a pass "
        "of B-ReX, on the formula with absent inputs Unassigned.",
        "kernel-shap-25": "On the formula with absent inputs Unassigned; 25 samples as captum "
        "takes by default, for twelve unknowns, are mostly noise.",
        "kernel-shap": "On the formula with absent inputs Unassigned, with the samples that shap "
        "takes by default: all but exact Shapley values.",
    }
)
_TOP_K: Mapping[str, str] = MappingProxyType(
    {
        "brex-paper": "Relevant is what has a responsibility; the set of Tritscher et al., which "
        "the paper may have used, was not to be had. Equal values at the border are drawn fairly.",
        "brex-literal": "Nearest to the paper on and, or and xor: its rare failures there are "
        "pairs that never share a block in 10 to 20 passes. On xor-and-xor and on non-monotone "
        "chains from arity 5 the paper is lower, as a network that errs on Unassigned inputs would "
        "be, or another set of relevant inputs.",
        "brex-certified": "Not in the paper: never wrong about an input that does not matter; on "
        "long chains it stops, after six passes without a new question, before it has met every "
        "one that does.",
        "brex-patient": "Not in the paper: as certified, but it takes twenty passes without a new "
        "question before it stops, which costs time, and less than one question per row.",
        "shapley-unassigned": "Exact on the formula; the paper samples on a trained network, where "
        "inputs that do not matter get some value too.",
        "shapley-completions": "Exact on the formula; the paper samples on a trained network. "
        "Inputs of negative value count as none.",
        "shapley-sampled": "One random order forwards and backwards; the paper takes 25 orders on "
        "a trained network.",
        "kernel-shap-25": "On the formula with absent inputs Unassigned. The paper's figures near "
        "0, as if inputs that do not matter came first, do not come out.",
        "kernel-shap": "All but exact, but inputs that do not matter get values that are not "
        "quite 0.",
    }
)


def why_different(table: int, method: str) -> str:
    """What explains the difference between a method's figures and the paper's."""
    texts = _DIVERGENCE if table in {3, 4} else _TOP_K
    if method in texts:
        return texts[method]
    name, _, kind = method.partition(":")
    three_valued = kind == "three-valued"
    told = [_THREE if three_valued else _TWO]
    if name == "InputXGradient":
        told.append(
            "The paper's figures come out of neither kind of network; divergences of its size do "
            "where the sign of the predicted class is not heeded."
            if table in {3, 4}
            else "The paper's figures, mostly much lower, come out of neither kind of network."
        )
    elif name == "KernelShap":
        told.append(
            "25 samples for twelve unknowns, captum's default, are mostly noise."
            if table in {3, 4}
            else "The paper's figures near 0, as if inputs that do not matter came first, come out "
            "of neither kind of network."
        )
    elif name == "IntegratedGradients" and table not in {3, 4}:
        told.append("Not in the paper's table.")
    else:
        told.append(_NETWORKS)
        if table in {3, 4} and three_valued != (name == "ShapleyValueSampling"):
            told.append(_THREE_NEAR if three_valued else _TWO_NEAR)
    return " ".join(told)


# --- Tables 1 to 5 of the paper on Boolean attributions, beside what comes out here --------------

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
    """A row of a table: of the paper if `method` is None, else of ours."""

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
    """Set results beside the paper's tables."""
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


# --- the paper's Figure 2 for a run: divergence by arity, with 95 % intervals --------------------

#: Okabe and Ito's colours, which the colour-blind tell apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")
_MARKERS = "osD^vPX*"
_PANELS = {3: "non-monotone", 4: "monotone"}


def plot_divergence(run: BrexRun, *, kinds: str = "formula", axes: Any = None) -> Any:
    """Draw the mean divergence of each method by arity, ours solid and the paper's dashed."""
    tables = {table: lines for table, lines in table_lines(run).items() if table in _PANELS}
    tables = {table: _of_kind(lines, kinds) for table, lines in tables.items()}
    tables = {table: lines for table, lines in tables.items() if lines}
    if not tables:
        raise ValueError(
            f"There is no result for Figure 2 of kinds={kinds!r}: run Tables 3 or 4 with methods "
            "of that kind."
        )
    if axes is None:
        pyplot = import_optional("matplotlib.pyplot", extra="plots", purpose="Drawing Figure 2")
        _, grid = pyplot.subplots(
            1, len(tables), figsize=(5.6 * len(tables), 4.6), sharey=True, squeeze=False,
            layout="constrained",
        )  # fmt: skip
        axes = grid[0]
    axes = list(axes)
    if len(axes) != len(tables):
        raise ValueError(f"axes must hold {len(tables)} Axes, one per table, got {len(axes)}.")
    styles = _styles(tables)
    for ax, (table, lines) in zip(axes, tables.items(), strict=True):
        _panel(ax, lines, styles)
        ax.set_title(f"{_PANELS[table]} formulae")
        ax.set_xlabel("number of variables")
    for ax in axes:  # not before all is drawn: a limit of shared axes ends their scaling
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("JSD from the exact responsibilities (bits)")
    axes[-1].legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return axes


def _of_kind(lines: Sequence[TableLine], kinds: str) -> list[TableLine]:
    """Our lines of one kind of method, each paper's row before its first."""
    ours = [
        line for line in lines
        if line.method is not None and (line.method.partition(":")[2] or "formula") == kinds
    ]  # fmt: skip
    names = {line.printed for line in ours}
    return [line for line in lines if line in ours or (not line.method and line.printed in names)]


def _styles(tables: Mapping[int, Sequence[TableLine]]) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each of our methods, and the paper's row in that of its first."""
    styles: dict[str, tuple[str, str]] = {}
    for lines in tables.values():
        for line in lines:
            if line.method is not None and line.label not in styles:
                place = len(styles) % len(_COLOURS)
                styles[line.label] = _COLOURS[place], _MARKERS[place]
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
            colour, _ = first[line.printed]
            ax.plot(arities, values, "--", color=colour, linewidth=1, label=line.label)
            continue
        colour, marker = styles[line.label]
        widths = [0.0 if w != w else w for w in line.half_widths.values()]
        ax.errorbar(
            arities, values, yerr=widths, color=colour, marker=marker, markersize=5,
            linewidth=1.5, capsize=3, label=line.label,
        )  # fmt: skip
    ax.set_xticks(sorted({int(column) for line in lines for column in line.values}))
    ax.grid(alpha=0.25)
