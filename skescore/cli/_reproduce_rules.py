"""``skescore reproduce fire`` and ``ice``: the tables of the two papers on scores of rules."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.reproduce import _printed
from skescore.reproduce._cells import as_frame
from skescore.reproduce._fire import reproduce_fire
from skescore.reproduce._ice import DATA, EXTRACTORS, reproduce_ice

_FIRE_EXAMPLES = """\
examples:
  skescore reproduce fire
  skescore reproduce fire --psyke --output tables
  skescore reproduce fire --quick --format markdown
"""
_ICE_EXAMPLES = """\
examples:
  skescore reproduce ice --quick
  skescore reproduce ice --output tables --n-jobs 2
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
_EXTRACTOR_NAMES = {
    "exact": "ExACT", "cream": "CREAM", "iter": "ITER", "gridex": "GridEx", "cart": "CART",
}  # fmt: skip


def add_parser(tables: Any) -> None:
    """Add both tables to the parser."""
    parser = tables.add_parser(
        "fire",
        help="FiRe, Table 1: seven rule sets of a 9-NN on iris",
        description="Table 1 of the FiRe paper: CART, ITER, a clustering and GridEx on a "
        "9-nearest-neighbours classifier for iris, at the paper's parameters. Each is measured on "
        "all rows and on halves, as the paper does not tell which rows it used. Takes half a "
        "minute.",
        epilog=_FIRE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--psyke",
        action="store_true",
        help="measure PSyKE's own extractors too (skescore doctor tells how to install it)",
    )
    _add_options(parser, splits=20)
    parser.set_defaults(run=run_fire, parser=parser)
    parser = tables.add_parser(
        "ice",
        help="ICE, Table 1: five extractors on trees for Wine and WBC",
        description="Table 1 of the ICE paper: ExACT, CREAM, ITER, GridEx and CART on unbounded "
        "decision trees for Wine and WBC. The paper tells no parameters: the best are searched "
        "here, held out (by cross-validation on one half, judged on the other) and in sample (the "
        "rows that rules are made from judge them). Takes some minutes, and goes on where it was "
        "broken off if there is an --output.",
        epilog=_ICE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name, known, what in (
        ("data", DATA, "data set"),
        ("extractors", EXTRACTORS, "extractor"),
    ):
        parser.add_argument(
            f"--{name}",
            type=arguments.names_of(known, what),
            default=tuple(known),
            metavar="NAME,...",
            help=f"out of {', '.join(known)} (default all)",
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
            help=f"{name} of the ICE that is searched for (default {default:g})",
        )
    _add_options(parser, splits=3)
    parser.set_defaults(run=run_ice, parser=parser)


def _add_options(parser: argparse.ArgumentParser, *, splits: int) -> None:
    quick = "2" if splits > 3 else "1"
    parser.add_argument(
        "--splits",
        type=arguments.integer(1),
        metavar="N",
        help=f"random splits into halves (default {splits}; {quick} with --quick)",
    )
    parser.add_argument("--quick", action="store_true", help="a first look: fewer splits, trials")
    parser.add_argument(
        "--seed",
        type=arguments.integer(0, 2**31 - 1),
        default=0,
        metavar="N",
        help="of all that is random (default 0)",
    )
    parser.add_argument(
        "--n-jobs",
        type=arguments.jobs,
        default=1,
        metavar="N",
        help="processes that measure (default 1; -1: as many as there are cores)",
    )
    table = parser.prog.rpartition(" ")[2]
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"write {table}.csv and {table}.json to a folder; what was measured is kept in "
        f"{table}.cells.jsonl there, and not measured again by the same command",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="forget what an earlier run has left in that folder",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress; only errors")
    arguments.add_format_option(parser)


def run_fire(options: argparse.Namespace) -> str:
    """Carry out ``skescore reproduce fire``; gives the text for standard output."""
    splits = options.splits or (2 if options.quick else 20)
    return _run(
        options,
        "fire",
        lambda **common: reproduce_fire(
            engines=("ours", "psyke") if options.psyke else ("ours",), n_splits=splits, **common
        ),
        _fire_text,
    )


def run_ice(options: argparse.Namespace) -> str:
    """Carry out ``skescore reproduce ice``; gives the text for standard output."""
    splits = options.splits or (1 if options.quick else 3)
    trials = options.trials or (8 if options.quick else 30)
    return _run(
        options,
        "ice",
        lambda **common: reproduce_ice(
            data=options.data,
            extractors=options.extractors,
            n_trials=trials,
            n_splits=splits,
            phi=options.phi,
            rho=options.rho,
            **common,
        ),
        _ice_text,
    )


def _run(
    options: argparse.Namespace,
    name: str,
    make: Callable[..., dict[str, Any]],
    print_text: Callable[[output.Printer, dict[str, Any]], None],
) -> str:
    begin = time.perf_counter()
    folder: Path | None = options.output
    path = None
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"--output {folder} is a file; name a folder.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"--output {folder} cannot be made: {error.strerror or error}. Name another folder."
            ) from error
        path = folder / f"{name}.cells.jsonl"
        if options.overwrite:
            for there in (path, folder / f"{name}.csv", folder / f"{name}.json"):
                there.unlink(missing_ok=True)
    table = make(
        random_state=options.seed,
        n_jobs=options.n_jobs,
        path=path,
        progress=None if options.quiet else _Lines(begin),
    )
    table["run"] = {
        "command_line": options.command_line,
        "seconds": round(time.perf_counter() - begin, 3),
        "versions": output.versions(),
    }
    if folder is not None:
        as_frame(table).to_csv(folder / f"{name}.csv", index=False)
        (folder / f"{name}.json").write_text(output.to_json(table), encoding="utf-8")
    if options.format == "json":
        return output.json_for_stdout(table)
    printer = output.Printer(markdown=options.format == "markdown")
    print_text(printer, table)
    return printer.text()


class _Lines:
    """A line on stderr per measurement: what it was, and how long the others will take."""

    def __init__(self, begin: float) -> None:
        self._begin, self._first = begin, 0

    def __call__(self, key: tuple[Any, ...], done: int, total: int) -> None:
        self._first = self._first or done
        seconds = time.perf_counter() - self._begin
        left = seconds / (done - self._first + 1) * (total - done)
        what = " ".join(str(part) for part in key if part != -1).replace("_", " ")
        told = f", about {left:.0f} s left" if done < total else f" in {seconds:.0f} s"
        sys.stderr.write(f"{done} of {total}: {what}{told}\n")


# --- FiRe ----------------------------------------------------------------------------------------


def _fire_text(printer: output.Printer, table: dict[str, Any]) -> None:
    number, splits = output.number, table["settings"]["n_splits"]
    printer.line(
        "FiRe, Table 1: iris, 9-NN. Accuracy counts the rows that some rule answers. 'Recomputed' "
        "is FiRe of the printed accuracy and rules; on halves figures are means over "
        f"{output.plural(splits, 'split')}, with the least and the greatest accuracy."
    )
    printer.heading("figures")
    box = table["black_box"]
    half = box["half"]["accuracy"]
    rows = [
        ["9-NN", "printed", box["printed"], *["-"] * 5],
        ["", "all rows", number(box["all"]["accuracy"]), *["-"] * 5],
        ["", "halves", _span(half), *["-"] * 5],
    ]
    several = len({row["engine"] for row in table["rows"]}) > 1
    for row in table["rows"]:
        printed, measured, halves = row["printed"], row["all"], row["half"]
        if row["engine"] == "ours":
            scores = list(printed["fire"].values())
            rows.append(
                [row["row"], "printed", printed["accuracy"], str(printed["n_rules"]), *scores, "-"]
            )
            scores = [number(row["recomputed"][str(psi)], 2) for psi in _printed.PSI]
            rows.append(["", "recomputed", "", "", *scores, ""])
        label = ("PSyKE, " if row["engine"] == "psyke" else "ours, ") if several else ""
        fire = [f"fire_{psi}" for psi in _printed.PSI]
        rows.append(
            ["", f"{label}all rows", number(measured["accuracy"]), str(measured["n_rules"]),
             *(number(measured[name], 2) for name in fire), number(measured["answered"], 2)]
        )  # fmt: skip
        rows.append(
            ["", f"{label}halves", _span(halves["accuracy"]), f"{halves['n_rules']['mean']:.1f}",
             *(number(halves[name]["mean"], 2) for name in fire),
             number(halves["answered"]["mean"], 2)]
        )  # fmt: skip
    columns = ["row", "figures", "accuracy", "rules", "psi=1", "psi=2", "psi=3", "answered"]
    printer.table(columns, rows, left=("row", "figures"))
    printer.heading("why they differ")
    printer.table(
        ["row", "difference"],
        [
            [row["row"] + (f" ({row['engine']})" if several else ""), row["difference"]]
            for row in table["rows"]
        ],
        left=("row", "difference"),
    )
    _notes(printer, table)


def _span(summary: Mapping[str, float]) -> str:
    mean = f"{summary['mean']:.3f}"
    if summary["min"] == summary["max"]:
        return mean
    return f"{mean} ({summary['min']:.2f} to {summary['max']:.2f})"


# --- ICE -----------------------------------------------------------------------------------------


def _ice_text(printer: output.Printer, table: dict[str, Any]) -> None:
    settings = table["settings"]
    splits = settings["n_splits"]
    printer.line(
        "ICE, Table 1: unbounded decision trees as black boxes. Best parameters of "
        f"{output.plural(settings['n_trials'], 'trial')}, searched by ICE with phi = "
        f"{settings['phi']:g} and rho = {settings['rho']:g}. 'Recomputed' is made of the printed "
        "F1, rules and completeness; held out figures are means over "
        f"{output.plural(splits, 'split')} into halves."
    )
    left = ("extractor", "figures")
    for name in dict.fromkeys(row["data"] for row in table["rows"]):
        printer.heading(DATA[name])
        grid = []
        for row in table["rows"]:
            if row["data"] == name:
                grid += _ice_lines(row)
        columns = ["extractor", "figures", "F1", "rules", "complete", *_ICE_NAMES.values()]
        printer.table(columns, grid, left=left)
    printer.heading("why they differ")
    printer.table(
        ["data", "extractor", "difference"],
        [
            [DATA[row["data"]], _EXTRACTOR_NAMES[row["extractor"]], row["difference"]]
            for row in table["rows"]
        ],
        left=("data", "extractor", "difference"),
    )
    printer.heading("best parameters, in sample")
    printer.table(
        ["data", "extractor", "parameters"],
        [
            [
                DATA[row["data"]],
                _EXTRACTOR_NAMES[row["extractor"]],
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
        output.number, row["printed"], row["in_sample"], row["held_out"],
    )  # fmt: skip
    mean = {key: value["mean"] for key, value in held_out.items() if key != "params"}
    several = len(held_out["params"]) > 1
    f1 = number(mean["f1"]) + (f" ± {held_out['f1']['std']:.3f}" if several else "")
    return [
        [
            _EXTRACTOR_NAMES[row["extractor"]],
            "printed",
            printed["f1"],
            str(printed["n_rules"]),
            printed["completeness"],
            *(printed[name] for name in _ICE_NAMES),
        ],
        ["", "recomputed", "", "", "", *(number(row["recomputed"][name]) for name in _ICE_NAMES)],
        ["", "in sample", number(inside["f1"]), str(inside["n_rules"]),
         number(inside["completeness"], 2), *(number(inside[name]) for name in _ICE_NAMES)],
        ["", "held out", f1, f"{mean['n_rules']:.1f}",
         number(mean["completeness"], 2), *(number(mean[name]) for name in _ICE_NAMES)],
    ]  # fmt: skip


def _notes(printer: output.Printer, table: dict[str, Any]) -> None:
    printer.heading("notes")
    for note in table["notes"]:
        printer.line(note)
