"""``skescore report``: write a run as one self-contained HTML page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import json_of
from skescore._names import BLACK_BOX_NAMES
from skescore.bench import SUITES
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._arguments import OF_FILE, OF_RUN
from skescore.cli._bench import page_rankings
from skescore.cli._inputs import read_model_labels, select_explained_output
from skescore.cli._rule_files import REPORT, check_output

if TYPE_CHECKING:
    from skescore.datasets import Dataset

DESCRIPTION = """\
Write a run of `skescore tune --output` or `skescore bench --output` as one HTML page, or compare
two runs of tune side by side. The page needs neither a network nor Python. It shows the rules and
their errors, has a slider from fewer rules to fewer errors, finds the rule that predicts a row
that the reader enters, and shows the rules as SQL, Python and Prolog.
"""
EXAMPLES = """\
examples:
  skescore report run
  skescore report run --output wine.html
  skescore report monday tuesday --output both.html
  skescore report run --data houses.csv --time-limit 120

Without --output, the page is written to report.html in the folder (for two
runs, to comparison.html in the first folder) and replaces an earlier page.

Exit codes: 0 success, 1 failure (unusable folder, data or file), 2 wrong usage.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "folders",
        action=OF_RUN,
        metavar="RUN_DIR",
        nargs="+",
        type=Path,
        help="folder of a run; two folders to compare two runs",
    )
    parser.add_argument(
        "--output",
        action=OF_FILE,
        type=Path,
        metavar="FILE",
        help=f"file of the page (default {REPORT} in the folder, or comparison.html for two runs)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the file of --output if it exists"
    )
    parser.add_argument(
        "--data",
        action=OF_FILE,
        metavar="FILE",
        help="rows to evaluate and show instead of the rows of the run, for example if their file "
        "was moved: a built-in data set or a CSV, TSV or Parquet file with the same columns",
    )
    parser.add_argument(
        "--time-limit",
        type=arguments.number_above(-1e-9),
        default=30.0,
        metavar="SECONDS",
        help="time to extract the rules of the other candidates on the Pareto front again, with "
        "the data, model and seeds of the run (default 30; 0: show only the winner's rules)",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="load the model of the run even if its file can run code; trust its author",
    )
    arguments.add_quiet_option(parser, "show errors only, without notes")
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text: report the path on standard error; json: on standard output (default text)",
    )


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    from skescore.report import write_report

    notes = output.Notes(options.quiet)
    check_output(options.output, overwrite=options.overwrite)
    if len(options.folders) > 2:
        options.parser.error(f"argument RUN_DIR: one or two folders, got {len(options.folders)}")
    if len(options.folders) == 2:
        if options.data is not None:
            options.parser.error("argument --data: only allowed with one folder")
        path = write_report(options.folders, path=options.output, time_limit=0)
        return _announce(path, options)
    folder = options.folders[0]
    record = _read_record(folder)
    if record is None and options.data is not None:
        options.parser.error("argument --data: only allowed with the folder of a run of tune")
    data = model = None
    if record is not None:
        data = _load_data(options, record, notes)
        if options.time_limit > 0 and data is not None:
            model = _load_black_box(options, record, data, notes)
    path = write_report(
        folder,
        path=options.output,
        rankings=_load_rankings(folder) if record is None else (),
        data=data,
        black_box=model,
        time_limit=max(0.0, options.time_limit),
    )
    return _announce(path, options)


def _announce(path: Path, options: argparse.Namespace) -> str:
    if options.format == "json":
        return output.json_for_stdout({"page": str(path), "bytes": path.stat().st_size})
    if not options.quiet:
        sys.stderr.write(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)\n")
    return ""


def _load_rankings(folder: Path) -> list[dict[str, Any]]:
    """Rank the extractors of a bench run, by its main score first; empty without usable rows."""
    from skescore.bench import row_columns
    from skescore.report._bench_rows import find_rows

    rows = find_rows(folder) if folder.is_dir() else None
    if rows is None or not len(rows) or not set(row_columns()) - {"warnings"} <= set(rows.columns):
        return []
    try:
        name = json_of((folder / "run.json").read_text(encoding="utf-8"))["name"]
    except (OSError, ValueError, KeyError, TypeError):
        name = ""
    score = SUITES[name].rank_by if name in SUITES else "ice"
    return page_rankings(rows, score)


def _read_record(folder: Path) -> dict[str, Any] | None:
    """Read the record of a tune run; None for any other folder."""
    try:
        record = json_of((folder / "run.json").read_text(encoding="utf-8"))
        return record if {"data", "black_box", "search"} <= record.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _load_data(
    options: argparse.Namespace, record: dict[str, Any], notes: output.Notes
) -> Dataset | None:
    from skescore.datasets import load_dataset
    from skescore.report._gathering import data_of_run, how_read

    if record["black_box"].get("labels"):
        try:
            return _label_rows_again(options, record)
        except (OSError, ValueError, ImportError) as error:
            notes.add(f"{record['black_box']['name']} could not label the rows again: {error}")
            return None
    if options.data is None:
        return data_of_run(record["data"])[0]
    run_data = record["data"]
    return load_dataset(
        options.data,
        target=run_data["target"],
        task=run_data["task"],
        features=run_data["features"],
        **(how_read(run_data, missing="drop") | {"sample": None}),
    )


def _label_rows_again(options: argparse.Namespace, record: dict[str, Any]) -> Dataset:
    """Return the rows of a run that explains a clusterer or outlier detector, with its labels."""
    from skescore.datasets import Preparation

    run_data, name = record["data"], record["black_box"]["name"]
    source = options.data or (run_data["name"] if run_data["table"] is None else run_data["source"])
    stored_options = {"data": source, "target": None, "black_box": name, "command_line": []}
    parser = argparse.ArgumentParser()
    arguments.add_reading_options(parser)  # defaults of options that the run did not record
    read = parser.parse_args([], argparse.Namespace(**stored_options, **run_data["reading"]))
    preparation = None if run_data["table"] is None else Preparation.from_dict(run_data["table"])
    data = read_model_labels(read, _load_model(options, record["black_box"]), source, preparation)
    if options.data is None and data.checksum != run_data["checksum_sha256"]:
        raise ValueError(f"{source} has changed since the run; pass the rows with --data")
    return data


def _load_model(options: argparse.Namespace, model_record: dict[str, Any]) -> Any:
    """Load the model of a run from its file; raise an error if the file has changed."""
    from skescore.black_boxes import load_black_box, model_checksum

    if model_checksum(model_record["name"]) != model_record.get("checksum_sha256"):
        raise ValueError("it has changed since the run")
    return load_black_box(model_record["name"], trust=options.trust)


def _load_black_box(
    options: argparse.Namespace, record: dict[str, Any], data: Dataset, notes: output.Notes
) -> Any:
    """Return the black box of the run, or None with a note on the reason."""
    from skescore.black_boxes import make_black_box

    model_record = record["black_box"]
    name, task = model_record["name"], record["data"]["task"]
    if model_record["trained_here"]:
        if name not in BLACK_BOX_NAMES:
            notes.add(f"this version of skescore does not have the model {name!r} of the run")
            return None
        return make_black_box(name, task, record["search"]["seed"], data.categories)
    try:
        if name.startswith("command:"):
            raise ValueError("it is a command, and commands are not run again")
        model = _load_model(options, model_record)
        model = select_explained_output(model, data, model_record.get("outputs"))
    except (OSError, ValueError, ImportError) as error:
        notes.add(f"the model {name} was not loaded, so only the winner's rules are shown: {error}")
        return None
    return model
