"""``skescore reproduce``: compare the papers' tables with our results for the same settings."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import package_versions, write_atomically
from skescore._names import BREX_METHOD_NAMES, ICE_DATA, ICE_EXTRACTORS
from skescore._optional import install_commands
from skescore._text import csv_of, plural
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._arguments import OF_FOLDER
from skescore.cli._rule_files import make_folder, refuse_file
from skescore.registry import extractor_label

if TYPE_CHECKING:
    from skescore.reproduce import BrexRun, TableLine

DESCRIPTION = (
    "Reproduce tables of the papers on FiRe, ICE and B-ReX, compare the results with the printed "
    "values, and explain the differences."
)
EXAMPLES = """\
examples:
  skescore reproduce fire
  skescore reproduce ice --quick
  skescore reproduce ice --output tables --n-jobs 2 --format markdown
"""
_FIRE = (
    "Table 1 of the FiRe paper: CART, ITER, a clustering and GridEx on a 9-nearest-neighbors "
    "classifier for iris, with the paper's parameters. Each is measured on all rows and on halves, "
    "because the paper does not report which rows it used. A verdict on each printed value is "
    "included. This takes half a minute."
)
_FIRE_EXAMPLES = """\
examples:
  skescore reproduce fire
  skescore reproduce fire --psyke --output tables
  skescore reproduce fire --quick --format markdown
"""
_ICE = (
    "Table 1 of the ICE paper: ExACT, CREAM, ITER, GridEx and CART on unbounded decision trees for "
    "Wine and WBC. The paper does not report the parameters, so a search chooses the best ones in "
    "two ways: by cross-validation on one half, with scores on the other half (held out), and by "
    "scores on the rows that the rules are extracted from (in sample). This takes some minutes; "
    "with --output, repeating the command resumes an interrupted run."
)
_ICE_EXAMPLES = """\
examples:
  skescore reproduce ice --quick
  skescore reproduce ice --output tables --n-jobs 2 --psyke
  skescore reproduce ice --data wine --extractors cart,gridex --phi 1 --trials 100
"""
_ICE_NAMES = {
    "q": "Q",
    "fire_1": "FiRe psi=1",
    "fire_3": "psi=3",
    "ice_1_1": "ICE 1,1",
    "ice_3_1": "3,1",
    "ice_1_3": "1,3",
}
_BREX = """\
Run the benchmark of the paper on explainers of Boolean formulas
(arXiv:2509.09982), which compares attributions with the exact degrees of
responsibility. Each row of its Tables 1 to 5 is shown next to ours, with the
reason for any difference.

Tables 3 and 4 show the mean Jensen-Shannon divergence (smaller is better) with
the half-width of its 95 % interval; Tables 1, 2 and 5 show the share of rows
whose highest attributions are those of the responsible inputs (greater is
better). KernelSHAP needs the extra 'shap', attributions of trained networks
need the extra 'captum'; without an extra, its methods are left out.
"""
_BREX_EXAMPLES = """\
examples:
  skescore reproduce brex --network-formulas 0
  skescore reproduce brex --tables 3 --arity 3,10 --methods brex-paper,brex-certified
  skescore reproduce brex --full --output brex --format markdown > tables.md

By default, the arities are 3, 6 and 10, with ten formulas each and forty rows
of each formula, and networks are trained on one formula each. This takes a few
minutes, or seconds without networks. --full uses all arities, 500 rows and
networks for all formulas, which takes hours. To resume an interrupted run,
repeat the command with the same --output.
"""
_FULL: dict[str, Any] = {
    "arities": tuple(range(3, 11)),
    "formulas": 10,
    "network_formulas": 10,
    "assignments": 500,
}
_DEFAULT: dict[str, Any] = {
    "arities": (3, 6, 10),
    "formulas": 10,
    "network_formulas": 1,
    "assignments": 40,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add one subcommand for each paper."""
    tables = parser.add_subparsers(title="tables", metavar="TABLE", required=True)
    for name, summary, description, examples, add, run_table in (
        (
            "fire",
            "FiRe, Table 1: seven rule sets of a 9-NN on iris",
            _FIRE,
            _FIRE_EXAMPLES,
            _add_fire_options,
            _run_fire,
        ),
        (
            "ice",
            "ICE, Table 1: five extractors on trees for Wine and WBC",
            _ICE,
            _ICE_EXAMPLES,
            _add_ice_options,
            _run_ice,
        ),
        (
            "brex",
            "the tables of the paper on Boolean attributions",
            _BREX,
            _BREX_EXAMPLES,
            _add_brex_options,
            _run_brex,
        ),
    ):
        table = tables.add_parser(name, help=summary, description=description, epilog=examples)
        table.set_defaults(run=run_table, parser=table)
        add(table)


class _Progress:
    """Progress lines on standard error with the estimated remaining time."""

    def __init__(self, min_seconds: float = 0.0) -> None:
        self._every, self._begin = min_seconds, time.monotonic()
        self._last, self._first = -min_seconds, 0

    def __call__(
        self, key: tuple[Any, ...], n_done: int, total: int, seconds_left: float | None = None
    ) -> None:
        now = time.monotonic()
        self._first = self._first or n_done  # cells of an earlier run take no time
        if n_done < total and now - self._last < self._every:
            return
        self._last = now
        seconds = now - self._begin
        if seconds_left is None:
            seconds_left = seconds / (n_done - self._first + 1) * (total - n_done)
        label = " ".join(str(part) for part in key if part != -1).replace("_", " ")
        suffix = f" in {_duration(seconds)}"
        if n_done < total:
            suffix = f", about {_duration(seconds_left)} left"
        sys.stderr.write(f"{n_done} of {total}: {label}{suffix}\n")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _add_fire_options(parser: argparse.ArgumentParser) -> None:
    _add_psyke_option(parser)
    _add_common_options(parser, splits=20)


def _add_psyke_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--psyke",
        action="store_true",
        help="also measure PSyKE's own extractors (skescore doctor prints the commands that "
        "install it)",
    )


def _add_ice_options(parser: argparse.ArgumentParser) -> None:
    for name, choices, description in (
        ("data", ICE_DATA, "data set"),
        ("extractors", ICE_EXTRACTORS, "extractor"),
    ):
        parser.add_argument(
            f"--{name}",
            type=arguments.names_of(choices, description),
            default=tuple(choices),
            metavar="NAME,...",
            help=f"any of {', '.join(choices)} (default all)",
        )
    parser.add_argument(
        "--trials",
        type=arguments.integer(1),
        metavar="N",
        help="candidates per extractor and split (default 30; 8 with --quick)",
    )
    for name, default in (("phi", 3.0), ("rho", 1.0)):
        parser.add_argument(
            f"--{name}",
            type=arguments.number_above(0),
            default=default,
            metavar="WEIGHT",
            help=f"{name} of the ICE that the search maximizes (default {default:g})",
        )
    _add_psyke_option(parser)
    _add_common_options(parser, splits=3)


def _add_common_options(parser: argparse.ArgumentParser, *, splits: int) -> None:
    quick = "2" if splits > 3 else "1"
    parser.add_argument(
        "--splits",
        type=arguments.integer(1),
        metavar="N",
        help=f"random splits into halves (default {splits}; {quick} with --quick)",
    )
    parser.add_argument("--quick", action="store_true", help="quick run with fewer measurements")
    parser.add_argument(
        "--seed",
        type=arguments.integer(0, 2**31 - 1),
        default=0,
        metavar="N",
        help="random seed (default 0)",
    )
    parser.add_argument(
        "--n-jobs",
        type=arguments.jobs,
        default=1,
        metavar="N",
        help="number of processes (default 1; -1: one per core)",
    )
    table = parser.prog.rpartition(" ")[2]
    parser.add_argument(
        "--output",
        action=OF_FOLDER,
        type=Path,
        metavar="DIR",
        help=f"write {table}.csv and {table}.json to a folder; measurements are stored there in "
        f"{table}.cells.jsonl, and the same command does not repeat them",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="delete the results of an earlier run in that folder",
    )
    arguments.add_quiet_option(parser)
    arguments.add_format_option(parser)


def _run_fire(options: argparse.Namespace) -> str:
    from skescore.reproduce import reproduce_fire

    splits = options.splits or (2 if options.quick else 20)
    return _run_table(
        options,
        "fire",
        lambda **common: reproduce_fire(
            engines=("ours", "psyke") if options.psyke else ("ours",), n_splits=splits, **common
        ),
        _fire_text,
    )


def _run_ice(options: argparse.Namespace) -> str:
    from skescore.reproduce import reproduce_ice

    splits = options.splits or (1 if options.quick else 3)
    trials = options.trials or (8 if options.quick else 30)
    return _run_table(
        options,
        "ice",
        lambda **common: reproduce_ice(
            data=options.data,
            extractors=options.extractors,
            n_trials=trials,
            n_splits=splits,
            weights=(options.phi, options.rho),
            engines=("ours", "psyke") if options.psyke else ("ours",),
            **common,
        ),
        _ice_text,
    )


def _run_table(
    options: argparse.Namespace,
    name: str,
    make: Callable[..., dict[str, Any]],
    print_text: Callable[[output.Printer, dict[str, Any]], None],
) -> str:
    from skescore.reproduce import as_frame

    begin = time.perf_counter()
    folder: Path | None = options.output
    path = None
    if folder is not None:
        refuse_file(folder)
        make_folder(folder)
        path = folder / f"{name}.cells.jsonl"
        if options.overwrite:
            for existing_path in (path, folder / f"{name}.csv", folder / f"{name}.json"):
                existing_path.unlink(missing_ok=True)
    table = make(
        random_state=options.seed,
        n_jobs=options.n_jobs,
        path=path,
        progress=None if options.quiet else _Progress(),
    )
    table["run"] = {
        "command_line": options.command_line,
        "seconds": round(time.perf_counter() - begin, 3),
        "versions": package_versions(),
    }
    if folder is not None:
        write_atomically(folder / f"{name}.csv", csv_of(as_frame(table)))
        write_atomically(folder / f"{name}.json", output.to_json(table))
    if options.format == "json":
        return output.json_for_stdout(table)
    printer = output.Printer(markdown=options.format == "markdown")
    print_text(printer, table)
    return printer.text()


def _fire_text(printer: output.Printer, table: dict[str, Any]) -> None:
    from skescore.reproduce import _printed

    number, splits = output.number, table["settings"]["n_splits"]
    printer.line(
        "FiRe, Table 1: iris, 9-NN. Accuracy is measured on the rows that a rule covers. "
        "The columns psi contain FiRe with this parameter. 'Recomputed' is FiRe of the printed "
        "accuracy and number of rules. For halves, rules are extracted from one half of the rows "
        f"and evaluated on the other. The values are means over {plural(splits, 'split')}; the "
        "lowest and highest accuracy are in parentheses."
    )
    printer.heading("Printed and measured values")
    box = table["black_box"]
    half = box["half"]["accuracy"]
    rows = [
        ["9-NN", "printed", box["printed"], *["-"] * 5],
        ["", "all rows", number(box["all"]["accuracy"]), *["-"] * 5],
        ["", "half, seed 0", number(box["public"]["accuracy"]), *["-"] * 5],
        ["", "halves", _range_text(half), *["-"] * 5],
    ]
    has_both_engines = len({row["engine"] for row in table["rows"]}) > 1
    for row in table["rows"]:
        printed, measured, halves = row["printed"], row["all"], row["half"]
        if row["engine"] == "ours":
            scores = list(printed["fire"].values())
            rows.append(
                [row["row"], "printed", printed["accuracy"], str(printed["n_rules"]), *scores, "-"]
            )
            scores = [number(row["recomputed"][str(psi)], 2) for psi in _printed.PSI]
            rows.append(["", "recomputed", "", "", *scores, ""])
        label = ("PSyKE, " if row["engine"] == "psyke" else "ours, ") if has_both_engines else ""
        fire = [f"fire_{psi}" for psi in _printed.PSI]
        for row_kind, cell in (("all rows", measured), ("half, seed 0", row["public"])):
            rows.append(
                [
                    "",
                    f"{label}{row_kind}",
                    number(cell["accuracy"]),
                    str(cell["n_rules"]),
                    *(number(cell[name], 2) for name in fire),
                    number(cell["covered"], 2),
                ]
            )
        rows.append(
            [
                "",
                f"{label}halves",
                _range_text(halves["accuracy"]),
                f"{halves['n_rules']['mean']:.1f}",
                *(number(halves[name]["mean"], 2) for name in fire),
                number(halves["covered"]["mean"], 2),
            ]
        )
    columns = ["row", "values", "accuracy", "rules", "psi=1", "psi=2", "psi=3", "covered"]
    printer.table(columns, rows, left=("row", "values"))
    _fire_verdicts(printer, table["verdicts"])
    printer.heading("Reasons for differences")
    printer.table(
        ["row", "difference"],
        [
            [row["row"] + (f" ({row['engine']})" if has_both_engines else ""), row["difference"]]
            for row in table["rows"]
        ],
        left=("row", "difference"),
    )
    _notes(printer, table)


def _fire_verdicts(printer: output.Printer, verdicts: list[dict[str, Any]]) -> None:
    """Print which values of the paper are reproduced on the public split."""
    names = ("accuracy", "n_rules", "fire_1", "fire_2", "fire_3")
    words = {True: "yes", False: "no", None: "-"}
    printer.heading("Verdict on each printed value, on the half of seed 0")
    printer.table(
        ["row", "by", "accuracy", "rules", "psi=1", "psi=2", "psi=3", "verdict", "explanation"],
        [
            [
                result["row"],
                {"psyke": "PSyKE", "ours": "ours", None: "-"}[result["engine"]],
                *(words[result["figures"].get(name)] for name in names),
                result["verdict"],
                result["why"],
            ]
            for result in verdicts
        ],
        left=("row", "by", "verdict", "explanation"),
    )


def _range_text(summary: Mapping[str, float]) -> str:
    mean = f"{summary['mean']:.3f}"
    if summary["min"] == summary["max"]:
        return mean
    return f"{mean} ({summary['min']:.2f} to {summary['max']:.2f})"


def _ice_text(printer: output.Printer, table: dict[str, Any]) -> None:
    settings = table["settings"]
    splits = settings["n_splits"]
    printer.line(
        "ICE, Table 1: the models are unbounded decision trees. 'In sample' and 'held out' use the "
        f"best parameters of {plural(settings['n_trials'], 'trial')}, searched by ICE with phi = "
        f"{settings['phi']:g} and rho = {settings['rho']:g}; held-out values are means over "
        f"{plural(splits, 'split')} into halves. 'Recomputed' scores follow from the printed F1, "
        "number of rules and completeness. 'At settings' means in sample with the settings below."
    )
    left = ("extractor", "values")
    for name in dict.fromkeys(row["data"] for row in table["rows"]):
        printer.heading(ICE_DATA[name])
        grid = []
        for row in table["rows"]:
            if row["data"] == name:
                grid += _ice_lines(row)
        columns = ["extractor", "values", "F1", "rules", "complete", *_ICE_NAMES.values()]
        printer.table(columns, grid, left=left)
    printer.heading("Reasons for differences")
    printer.table(
        ["data", "extractor", "verdict", "difference"],
        [
            [
                ICE_DATA[row["data"]],
                extractor_label(row["extractor"]),
                row["verdict"],
                row["difference"],
            ]
            for row in table["rows"]
        ],
        left=("data", "extractor", "verdict", "difference"),
    )
    printer.heading("Best parameters in sample")
    printer.table(
        ["data", "extractor", "parameters"],
        [
            [
                ICE_DATA[row["data"]],
                extractor_label(row["extractor"]),
                ", ".join(
                    f"{key}={value if not isinstance(value, float) else f'{value:.4g}'}"
                    for key, value in row["in_sample"]["params"].items()
                ),
            ]
            for row in table["rows"]
        ],
        left=("data", "extractor", "parameters"),
    )
    _notes(printer, table)


def _ice_lines(row: Mapping[str, Any]) -> list[list[str]]:
    number, printed, inside, held_out = (
        output.number,
        row["printed"],
        row["in_sample"],
        row["held_out"],
    )
    mean = {name: cell["mean"] for name, cell in held_out.items() if name != "params"}
    has_splits = len(held_out["params"]) > 1
    f1 = number(mean["f1"]) + (f" ± {held_out['f1']['std']:.3f}" if has_splits else "")
    label_keys = {"at settings": "at_settings", "PSyKE, at settings": "psyke"}
    return [
        [
            extractor_label(row["extractor"]),
            "printed",
            printed["f1"],
            str(printed["n_rules"]),
            printed["completeness"],
            *(printed[name] for name in _ICE_NAMES),
        ],
        ["", "recomputed", "", "", "", *(number(row["recomputed"][name]) for name in _ICE_NAMES)],
        *(_ice_line(label, row[key]) for label, key in label_keys.items() if key in row),
        _ice_line("in sample", inside),
        [
            "",
            "held out",
            f1,
            f"{mean['n_rules']:.1f}",
            number(mean["completeness"], 2),
            *(number(mean[name]) for name in _ICE_NAMES),
        ],
    ]


def _ice_line(label: str, cell: Mapping[str, Any]) -> list[str]:
    number = output.number
    figures = number(cell["f1"]), str(cell["n_rules"]), number(cell["completeness"], 2)
    return ["", label, *figures, *(number(cell[name]) for name in _ICE_NAMES)]


def _notes(printer: output.Printer, table: dict[str, Any]) -> None:
    printer.heading("Notes")
    for note in table["notes"]:
        printer.line(note)


def _add_brex_options(parser: argparse.ArgumentParser) -> None:
    size = parser.add_argument_group("size")
    size.add_argument(
        "--arity",
        dest="arities",
        type=_numbers("arity", 3, 10),
        metavar="N,N,...",
        help="numbers of variables, from 3 to 10; '3-10' stands for all (default: 3,6,10)",
    )
    size.add_argument(
        "--formulas",
        type=arguments.integer(1),
        metavar="N",
        help="random formulas of each arity and family (default: 10)",
    )
    size.add_argument(
        "--network-formulas",
        type=arguments.integer(0),
        metavar="N",
        help="number of these formulas on which networks are trained (default: 1); 0 leaves "
        "networks out of all tables",
    )
    size.add_argument(
        "--assignments",
        type=arguments.integer(1),
        metavar="N",
        help="number of rows of each formula, out of 4096 (default: 40)",
    )
    size.add_argument("--full", action="store_true", help="use the paper's size; takes hours")
    parser.add_argument(
        "--tables",
        type=_numbers("table", 1, 5),
        default=(1, 2, 3, 4, 5),
        metavar="N,N,...",
        help="numbers of the tables to reproduce, from 1 to 5 (default: all)",
    )
    parser.add_argument(
        "--methods",
        type=_methods,
        metavar="NAMES",
        help="explainers separated by commas, or 'all'; an unknown name lists the valid ones "
        "(default: the fast ones; with --full, all)",
    )
    parser.add_argument(
        "--seed",
        type=arguments.integer(0),
        default=0,
        metavar="N",
        help="random seed of formulas, rows and methods (default: 0)",
    )
    parser.add_argument(
        "--output",
        action=OF_FOLDER,
        type=Path,
        metavar="DIR",
        help="folder for the measurements, the tables (JSON and Markdown) and, if Matplotlib is "
        "installed, Figure 2; repeating the command resumes an interrupted run",
    )
    arguments.add_quiet_option(parser)
    arguments.add_format_option(parser)


def _numbers(name: str, low: int, high: int) -> Any:
    """Return a parser of numbers and ranges separated by commas, such as 1,3-5."""

    def read(text: str) -> tuple[int, ...]:
        numbers: set[int] = set()
        for item in text.split(","):
            ends = [end.strip() for end in item.split("-")]
            bounds = [int(end) for end in ends if end.isdecimal()]
            if len(bounds) != len(ends) or not 1 <= len(ends) <= 2 or bounds[0] > bounds[-1]:
                raise argparse.ArgumentTypeError(
                    f"{name} must be numbers separated by commas, such as {low},{high} or "
                    f"{low}-{high}, got {text!r}"
                )
            numbers.update(range(bounds[0], bounds[-1] + 1))
        if min(numbers) < low or max(numbers) > high:
            raise argparse.ArgumentTypeError(f"{name} must be from {low} to {high}, got {text!r}")
        return tuple(sorted(numbers))

    return read


def _methods(text: str) -> tuple[str, ...]:
    return (
        BREX_METHOD_NAMES
        if text.strip() == "all"
        else arguments.names_of(BREX_METHOD_NAMES, "method")(text)
    )


def _run_brex(options: argparse.Namespace) -> str:
    from skescore.reproduce import reproduce_brex, table_lines

    size = dict(_FULL if options.full else _DEFAULT)
    for name in size:
        if getattr(options, name) is not None:
            size[name] = getattr(options, name)
    methods = options.methods or (BREX_METHOD_NAMES if options.full else None)
    progress = _Progress(min_seconds=5.0)
    notes = output.Notes()
    result = reproduce_brex(
        **size,
        methods=methods,
        tables=options.tables,
        seed=options.seed,
        output=options.output,
        progress=None if options.quiet else lambda n_done, n, text: progress((text,), n_done, n),
    )
    for extra, names in result.left_out.items():
        notes.add(
            f"left out, because required packages are not installed: {', '.join(names)}. Run: "
            f"{install_commands(extra)[0]}"
        )
    inexact = {row.key[:4] for row in result.rows if row.accuracy is not None and row.accuracy < 1}
    if inexact:
        notes.add(
            f"the networks of {plural(len(inexact), 'formula')} are wrong on some rows; "
            f"{'see' if options.output else '--output writes'} the accuracies in brex_rows.csv"
        )
    tables = table_lines(result)
    record = _brex_record(result, tables, size, notes.texts)
    if options.output is not None:
        # Written after the figures that it lists.
        record["files"] = _draw_figures(result, options.output, notes)
        record["files"] += ["brex_tables.json", "brex_tables.md"]
        write_atomically(options.output / "brex_tables.json", output.to_json(record))
        text = _brex_text(record, tables, markdown=True)
        write_atomically(options.output / "brex_tables.md", text)
    if options.format == "json":
        return output.json_for_stdout(record)
    return _brex_text(record, tables, markdown=options.format == "markdown")


def _brex_record(
    result: BrexRun, tables: dict[int, list[TableLine]], size: dict[str, Any], notes: list[str]
) -> dict[str, Any]:
    from skescore.reproduce import _printed, figure_verdicts

    return {
        "settings": {**size, **result.settings},
        "versions": package_versions(),
        "tables": {
            str(table): {
                "title": _printed.BREX_TITLES[table],
                "lines": [asdict(line) for line in lines],
            }
            for table, lines in tables.items()
        },
        "verdicts": [asdict(verdict) for verdict in figure_verdicts(tables)],
        "notes": notes,
    }


def _draw_figures(result: BrexRun, folder: Path, notes: output.Notes) -> list[str]:
    """Draw Figure 2 for each kind of method with results."""
    from skescore.reproduce import plot_divergence

    kinds = {
        row.method.partition(":")[2] or "formula" for row in result.rows if row.kind == "random"
    }
    if not kinds:
        return []
    if importlib.util.find_spec("matplotlib") is None:
        notes.add(f"no figure: matplotlib is not installed. Run: {install_commands('plots')[0]}")
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = []
    panels = len({row.table for row in result.rows if row.kind == "random"})
    for kind in sorted(kinds):
        figure = Figure(figsize=(5.6 * panels + 2.4, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        plot_divergence(
            result, kinds=kind, axes=figure.subplots(1, panels, sharey=True, squeeze=False)[0]
        )
        names.append(f"brex_figure_2_{kind.replace('-', '_')}.png")
        figure.savefig(folder / names[-1], dpi=150)
    return names


def _brex_text(
    record: dict[str, Any], tables: dict[int, list[TableLine]], *, markdown: bool
) -> str:
    from skescore.reproduce import _printed

    printer = output.Printer(markdown)
    settings = record["settings"]
    random_formulas = plural(settings["formulas"], "random formula")
    printer.line(
        f"{random_formulas} per arity and family, {settings['assignments']} rows each, seed "
        f"{settings['seed']}. Rows marked (paper) are from arXiv:2509.09982. ± is half the "
        "width of the 95 % interval. Greater top-k accuracy and smaller JSD (divergence from the "
        "exact responsibilities) are better."
    )
    for table, lines in tables.items():
        printer.heading(_printed.BREX_TITLES[table])
        columns = list(lines[0].values)
        header = ["method", *columns, "queries", "difference from the paper"]
        rows = [
            [
                line.label,
                *(_cell_text(line, column) for column in columns),
                "" if line.queries is None else f"{line.queries:.0f}",
                line.why,
            ]
            for line in lines
        ]
        printer.table(header, rows, left=("method", "difference from the paper"))
    _brex_verdicts(printer, record["verdicts"])
    for note in record["notes"]:
        if markdown:
            printer.line(f"Note: {note}")
    return printer.text()


def _brex_verdicts(printer: output.Printer, verdicts: list[dict[str, Any]]) -> None:
    """List the rows that reproduce printed figures, and the nearest values of other figures."""
    printer.heading("Verdict on each printed value")
    printer.line(
        "A value is reproduced if a row of the same method agrees with it within the 95 % interval "
        "of their difference. The tables above state how each row differs from the paper."
    )
    by_row: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for verdict in verdicts:
        by_row.setdefault((verdict["table"], verdict["row"]), []).append(verdict)
    rows = []
    for (table, row), group in by_row.items():
        by_label: dict[str, list[str]] = {}
        for verdict in group:
            if verdict["is_reproduced"]:
                by_label.setdefault(verdict["label"], []).append(verdict["column"])
        others = [
            f"{v['column']}: {v['printed']:.3f}, nearest {v['measured']:.3f} ({v['label']})"
            for v in group
            if not v["is_reproduced"]
        ]
        rows.append(
            [
                str(table),
                row,
                f"{sum(v['is_reproduced'] for v in group)} of {len(group)}",
                "; ".join(f"{label} ({', '.join(c)})" for label, c in by_label.items()) or "-",
                "; ".join(others) or "-",
            ]
        )
    header = ["table", "row", "reproduced", "by", "not reproduced"]
    printer.table(header, rows, left=("row", "by", "not reproduced"))


def _cell_text(line: TableLine, column: str) -> str:
    """Return a mean and, with several formulas, half of its interval."""
    if column not in line.values:
        return "-"
    width = line.half_widths.get(column, float("nan"))
    text = f"{line.values[column]:.3f}"
    return text if width != width else f"{text} ±{width:.3f}"
