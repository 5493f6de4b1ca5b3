"""``skescore reproduce brex``: Tables 1 to 5 of the paper on Boolean attributions."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from skescore._text import did_you_mean
from skescore.cli import _output as output
from skescore.cli._arguments import add_format_option
from skescore.reproduce._brex import (
    BrexRun,
    TableLine,
    reproduce_brex,
    table_lines,
    titles,
)

_DESCRIPTION = """\
Run the benchmark of the paper on explainers of Boolean formulae
(arXiv:2509.09982): how near attributions come to the exact degrees of
responsibility. Each row of its Tables 1 to 5 is shown beside ours, with what
explains the difference.

Tables 3 and 4 show the mean Jensen-Shannon divergence (less is better) with
half of its 95 % interval; Tables 1, 2 and 5 show the share of rows whose
highest attributions are those of the responsible inputs (more is better).
KernelSHAP needs the extra 'shap', attributions of trained networks need the
extra 'captum'; without them these methods are left out.
"""
_EXAMPLES = """\
examples:
  skescore reproduce brex --network-formulae 0
  skescore reproduce brex --tables 3 --arity 3,10 --methods brex-paper,brex-certified
  skescore reproduce brex --full --output brex --format markdown > tables.md

By default there are ten formulae of arity 3, 6 and 10, forty rows of each and
networks of one formula each, which takes a few minutes; seconds without
networks. With --full there are all arities, 400 rows and networks of all
formulae, which takes hours. A broken run goes on if it is called again with
the same --output.
"""
_FULL: dict[str, Any] = {
    "arities": tuple(range(3, 11)), "formulae": 10, "network_formulae": 10, "assignments": 400,
}  # fmt: skip
_DEFAULT: dict[str, Any] = {
    "arities": (3, 6, 10), "formulae": 10, "network_formulae": 1, "assignments": 40,
}  # fmt: skip


def add_parser(commands: Any) -> None:
    """Add the command to the parser of ``skescore reproduce``."""
    parser = commands.add_parser(
        "brex",
        help="the tables of the paper on Boolean attributions",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    size = parser.add_argument_group("size")
    size.add_argument(
        "--arity", dest="arities", type=_numbers("arity", 3, 10), metavar="N,N,...",
        help="numbers of variables, from 3 to 10; '3-10' stands for all (default: 3,6,10)",
    )  # fmt: skip
    size.add_argument(
        "--formulae", type=_count("formulae", 1), metavar="N",
        help="random formulae of each arity and family (default: 10)",
    )  # fmt: skip
    size.add_argument(
        "--network-formulae", type=_count("network-formulae", 0), metavar="N",
        help="how many of them networks are trained on; 0 trains none, nor for the other tables "
        "(default: 1)",
    )  # fmt: skip
    size.add_argument(
        "--assignments", type=_count("assignments", 1), metavar="N",
        help="rows of each formula, of all 4096 (default: 40)",
    )  # fmt: skip
    size.add_argument("--full", action="store_true", help="the paper's size, see below")
    parser.add_argument(
        "--tables", type=_numbers("table", 1, 5), default=(1, 2, 3, 4, 5), metavar="N,N,...",
        help="which tables to make, from 1 to 5 (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--methods", type=_methods, metavar="NAMES",
        help="explainers separated by commas, or 'all'; a wrong name lists them (default: those "
        "that take little time, with --full all)",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=_count("seed", 0), default=0, metavar="N",
        help="what the formulae, rows and methods are drawn by (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, metavar="DIR",
        help="folder for the results as they come, the tables (JSON and Markdown) and, with "
        "matplotlib, Figure 2; a broken run goes on there",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    add_format_option(parser)
    parser.set_defaults(run=run, parser=parser)


def _count(name: str, least: int) -> Any:
    def read(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"{name} must be a whole number of at least {least}, got {text!r}"
            )
        return int(text)

    return read


def _numbers(name: str, low: int, high: int) -> Any:
    """Read numbers separated by commas; two joined by a hyphen stand for all between them."""

    def read(text: str) -> tuple[int, ...]:
        found: set[int] = set()
        for part in text.split(","):
            ends = [end.strip() for end in part.split("-")]
            numbers = [int(end) for end in ends if end.isdecimal()]
            if len(numbers) != len(ends) or not 1 <= len(ends) <= 2 or numbers[0] > numbers[-1]:
                raise argparse.ArgumentTypeError(
                    f"{name} must be numbers separated by commas, such as {low},{high} or "
                    f"{low}-{high}, got {text!r}"
                )
            found.update(range(numbers[0], numbers[-1] + 1))
        if min(found) < low or max(found) > high:
            raise argparse.ArgumentTypeError(f"{name} must be from {low} to {high}, got {text!r}")
        return tuple(sorted(found))

    return read


def _methods(text: str) -> tuple[str, ...]:
    from skescore.reproduce._brex_methods import METHODS

    names = tuple(name.strip() for name in text.split(","))
    if names == ("all",):
        return tuple(METHODS)
    for name in names:
        if name not in METHODS:
            raise argparse.ArgumentTypeError(
                f"there is no method {name!r}. {did_you_mean(name, METHODS)}"
            )
    return names


class _Progress:
    """Lines on stderr, a few seconds apart, with what is left by the steps so far."""

    def __init__(self, every: float = 5.0) -> None:
        self.every, self.start, self.last = every, time.monotonic(), -1e9
        self.first: int | None = None

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = done  # what an earlier run has done took no time now
            if 0 < done < total:
                sys.stderr.write(f"skescore: going on after {done} of {total} steps\n")
        if done < total and now - self.last < self.every:
            return
        self.last = now
        left = ""
        if self.first < done < total:
            seconds = (now - self.start) / (done - self.first) * (total - done)
            left = f", about {_duration(seconds)} left"
        sys.stderr.write(f"skescore: {done} of {total} steps{left}: {text}\n")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    size = dict(_FULL if options.full else _DEFAULT)
    for name in size:
        if getattr(options, name) is not None:
            size[name] = getattr(options, name)
    methods = options.methods
    if methods is None and options.full:
        methods = _methods("all")
    notes = output.Notes()
    result = reproduce_brex(
        **size, methods=methods, tables=options.tables, seed=options.seed,
        output=options.output, progress=None if options.quiet else _Progress(),
    )  # fmt: skip
    for extra, names in result.left_out.items():
        notes.add(
            f"left out, because what they need is not installed: {', '.join(names)}. "
            f'Run: pip install "skescore[{extra}]"'
        )
    badly = {row.key[:4] for row in result.rows if row.accuracy is not None and row.accuracy < 1}
    if badly:
        notes.add(
            f"networks have not learnt every row of {len(badly)} of the formulae; "
            f"{'see' if options.output else '--output keeps'} the accuracies in brex_rows.csv"
        )
    tables = table_lines(result)
    told = _told(result, tables, size, notes.texts)
    if options.output is not None:
        # Written after the figures, so that what it lists is there.
        told["files"] = _figures(result, options.output, notes)
        told["files"] += ["brex_tables.json", "brex_tables.md"]
        (options.output / "brex_tables.json").write_text(output.to_json(told), encoding="utf-8")
        text = _text(told, tables, markdown=True)
        (options.output / "brex_tables.md").write_text(text, encoding="utf-8")
    if options.format == "json":
        return output.json_for_stdout(told)
    return _text(told, tables, markdown=options.format == "markdown")


def _told(
    result: BrexRun, tables: dict[int, list[TableLine]], size: dict[str, Any], notes: list[str]
) -> dict[str, Any]:
    return {
        "settings": {**size, **result.settings},
        "versions": output.versions(),
        "tables": {
            str(table): {"title": titles()[table], "lines": [asdict(line) for line in lines]}
            for table, lines in tables.items()
        },
        "notes": notes,
    }


def _figures(result: BrexRun, folder: Path, notes: output.Notes) -> list[str]:
    """Draw Figure 2 for each kind of method that there are results of."""
    kinds = {
        row.method.partition(":")[2] or "formula" for row in result.rows if row.kind == "random"
    }
    if not kinds:
        return []
    if importlib.util.find_spec("matplotlib") is None:
        notes.add('no figure: matplotlib is not installed. Run: pip install "skescore[plots]"')
        return []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from skescore.reproduce._brex import plot_divergence

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


def _text(told: dict[str, Any], tables: dict[int, list[TableLine]], *, markdown: bool) -> str:
    printer = output.Printer(markdown)
    settings = told["settings"]
    some = "1 random formula" if (n := settings["formulae"]) == 1 else f"{n} random formulae"
    printer.line(
        f"{some} per arity and family, {settings['assignments']} rows each, seed "
        f"{settings['seed']}. 'paper' is what arXiv:2509.09982 prints, the others are from this "
        "run; ± is half of the 95 % interval."
    )
    for table, lines in tables.items():
        printer.heading(titles()[table])
        columns = list(lines[0].values)
        header = ["method", *columns, "queries", "difference from the paper"]
        rows = [
            [
                line.label, *(_cell(line, column) for column in columns),
                "" if line.queries is None else f"{line.queries:.0f}", line.why,
            ]
            for line in lines
        ]  # fmt: skip
        printer.table(header, rows, left=("method", "difference from the paper"))
    for note in told["notes"]:
        if markdown:
            printer.line(f"Note: {note}")
    return printer.text()


def _cell(line: TableLine, column: str) -> str:
    """A mean with three decimals, and half of its interval where there are several formulae."""
    if column not in line.values:
        return "-"
    width = line.half_widths.get(column, float("nan"))
    text = f"{line.values[column]:.3f}"
    return text if width != width else f"{text} ±{width:.3f}"
