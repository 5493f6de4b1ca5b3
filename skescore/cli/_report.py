"""``skescore report``: a run as one HTML page that needs nothing else."""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import at_home, check_regular, json_of
from skescore._names import BLACK_BOX_NAMES
from skescore.bench import SUITES
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._arguments import OF_FILE, OF_RUN
from skescore.cli._bench import page_rankings
from skescore.cli._rule_files import check_output
from skescore.cli._tune import REPORT, chosen_output, labeled

if TYPE_CHECKING:
    from skescore.datasets import Dataset

DESCRIPTION = """\
Write a run of `skescore tune --output` or `skescore bench --output` as one HTML page, or two runs
of tune side by side. It needs no network and no Python: readers see the rules, what they get right
and where they fail, move from fewer rules to fewer errors, type a row and see which rule predicts
it, and copy the rules as SQL, Python or Prolog.
"""
EXAMPLES = """\
examples:
  skescore report run
  skescore report run --output wine.html
  skescore report monday tuesday --output both.html
  skescore report run --data houses.csv --time-limit 120

Without --output the page is report.html in the folder, of two runs
comparison.html in the first, and replaces an earlier one there.

Exit codes: 0 success, 1 failure (unusable folder, data or file), 2 wrong usage.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "folders",
        action=OF_RUN,
        metavar="RUN_DIR",
        nargs="+",
        type=Path,
        help="the folder of the run, or those of two",
    )
    parser.add_argument(
        "--output",
        action=OF_FILE,
        type=Path,
        metavar="FILE",
        help=f"the page (default {REPORT} in the folder, comparison.html for two)",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the file of --output if it is there"
    )
    parser.add_argument(
        "--data",
        action=OF_FILE,
        metavar="FILE",
        help="the rows to measure and to show, where those of the run are not found any more, or "
        "others: a built-in data set or a CSV, TSV or Parquet file with the same columns",
    )
    parser.add_argument(
        "--time-limit",
        type=arguments.number_above(-1e-9),
        default=30.0,
        metavar="SECONDS",
        help="for making the rules of the other candidates on the front again, by the run's data, "
        "black box and seeds (default 30; 0: the winner's rules only)",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="read the black box of the run from a file that can run code when it is read",
    )
    parser.add_argument("--quiet", action="store_true", help="no notes; only errors")


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    from skescore.report import write_report

    notes = output.Notes(options.quiet)
    check_output(options.output, overwrite=options.overwrite)
    if len(options.folders) > 2:
        options.parser.error(f"argument RUN_DIR: one folder or two, got {len(options.folders)}")
    if len(options.folders) == 2:
        if options.data is not None:
            options.parser.error("argument --data: goes with one folder")
        path = write_report(options.folders, path=options.output, time_limit=0)
        return _announce(path, options)
    folder = options.folders[0]
    about = _about(folder)
    if about is None and options.data is not None:
        options.parser.error("argument --data: goes with the folder of a tune run")
    data = model = None
    if about is not None:
        data = _data(options, about, notes)
        if options.time_limit > 0 and data is not None:
            model = _black_box(options, about, data, notes)
    path = write_report(
        folder,
        path=options.output,
        rankings=_rankings(folder) if about is None else (),
        data=data,
        black_box=model,
        time_limit=max(0.0, options.time_limit),
    )
    return _announce(path, options)


def _announce(path: Path, options: argparse.Namespace) -> str:
    if not options.quiet:
        sys.stderr.write(f"wrote {path} ({path.stat().st_size / 1e6:.1f} MB)\n")
    return ""


def _rankings(folder: Path) -> list[dict[str, Any]]:
    """The ranks of a bench run by the score that it is about; none for what the page refuses."""
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


def _about(folder: Path) -> dict[str, Any] | None:
    """Read the record of a tune run; None for any other folder."""
    try:
        about = json_of((folder / "run.json").read_text(encoding="utf-8"))
        return about if {"data", "black_box", "search"} <= about.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _data(
    options: argparse.Namespace, about: dict[str, Any], notes: output.Notes
) -> Dataset | None:
    from skescore.datasets import load_dataset
    from skescore.report._gathering import data_of_run, how_read

    if about["black_box"].get("labels"):
        try:
            return _labeled_again(options, about)
        except (OSError, ValueError, ImportError) as error:
            notes.add(f"the rows are not labeled again by {about['black_box']['name']}: {error}")
            return None
    if options.data is None:
        return data_of_run(about["data"])[0]
    run_data = about["data"]
    return load_dataset(
        options.data,
        target=run_data["target"],
        task=run_data["task"],
        features=run_data["features"],
        **(how_read(run_data, missing="drop") | {"sample": None}),
    )


def _labeled_again(options: argparse.Namespace, about: dict[str, Any]) -> Dataset:
    """Return the rows of a run that explains a clusterer or outlier detector, with its labels."""
    from skescore.datasets import Preparation

    run_data, name = about["data"], about["black_box"]["name"]
    source = options.data or (run_data["name"] if run_data["table"] is None else run_data["source"])
    read = argparse.Namespace(
        data=source,
        target=None,
        black_box=name,
        command_line=[],
        category=[],
        numeric=[],
        drop=[],
        **run_data["reading"],
    )
    preparation = None if run_data["table"] is None else Preparation.from_dict(run_data["table"])
    data = labeled(read, _model(options, about["black_box"]), source, preparation)
    if options.data is None and data.checksum != run_data["checksum_sha256"]:
        raise ValueError(f"{source} has changed since the run; pass other rows as --data")
    return data


def _model(options: argparse.Namespace, model_record: dict[str, Any]) -> Any:
    """Return the model of a run from its file, if that is as it was."""
    from skescore.black_boxes import load_black_box

    path = at_home(model_record["name"])
    check_regular(path, str(path))
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != model_record.get("checksum_sha256"):
        raise ValueError("it has changed since the run")
    return load_black_box(model_record["name"], trust=options.trust)


def _black_box(
    options: argparse.Namespace, about: dict[str, Any], data: Dataset, notes: output.Notes
) -> Any:
    """Return the black box of the run, if it can be had again; a note says why not."""
    from skescore.black_boxes import make_black_box

    model_record = about["black_box"]
    name, task = model_record["name"], about["data"]["task"]
    if model_record["trained_here"]:
        if name not in BLACK_BOX_NAMES:
            notes.add(f"this skescore does not know the black box {name!r} of the run")
            return None
        return make_black_box(name, task, about["search"]["seed"], data.categories)
    try:
        if name.startswith("command:"):
            raise ValueError("it is a command, which is not run again")
        model = _model(options, model_record)
        model = chosen_output(model, data, model_record.get("outputs"))
    except (OSError, ValueError, ImportError) as error:
        notes.add(
            f"the black box {name} is not read, so that only the winner's rules are shown: {error}"
        )
        return None
    return model
