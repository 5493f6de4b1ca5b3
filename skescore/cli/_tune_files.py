"""The folder of ``skescore tune --output``: checked before the search, written after it."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from skescore._optional import import_optional
from skescore.cli import _output as output
from skescore.cli._trials import is_unfinished
from skescore.datasets._loading import Dataset
from skescore.report import write_report
from skescore.report._candidates_file import candidates_json
from skescore.tuning import ExtractorSearchCV

__all__ = [
    "FILES", "add_report_option", "check_output", "output_folder", "report_path", "write_files",
    "write_page",
]  # fmt: skip

#: Files that --output writes.
FILES = ("rules.json", "leaderboard.csv", "candidates.json", "run.json")
#: The page, where --report names no other file.
REPORT = "report.html"


def add_report_option(group: Any) -> None:
    """Add ``--report``.

    Parameters
    ----------
    group : argparse group
        Where it belongs.
    """
    group.add_argument(
        "--report",
        nargs="?",
        const=REPORT,
        metavar="FILE",
        help="write one self-contained HTML page: sliders for the weights, the trade-off, rules "
        f"and rows to try (default {REPORT} in the folder of --output, which it needs)",
    )


def report_path(options: argparse.Namespace) -> Path | None:
    """Where the page goes; None if nobody wants one.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for.
    """
    if options.report is None:
        return None
    if options.output is None:
        options.parser.error(
            "argument --report: shows what is in the folder of --output; add --output DIR"
        )
    named = Path(options.report)
    return options.output / named if options.report == REPORT else named


def check_output(options: argparse.Namespace) -> None:
    """Find what speaks against the folder now: an hour's search must not end in an error.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for.

    Raises
    ------
    ValueError, ImportError
        If something does.
    """
    page = report_path(options)
    if page is not None:
        for module in ("jinja2", "plotly"):
            import_optional(module, extra="report", purpose="--report")
    folder: Path | None = options.output
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} is a file; name a folder.")
    if page is not None and page.parent != folder and not page.parent.is_dir():
        raise ValueError(f"--report {page}: there is no folder {page.parent}; make it first.")
    if page is not None and page.is_dir():
        raise ValueError(f"--report {page} is a folder; name a file in it.")
    there = [str(folder / name) for name in FILES if (folder / name).exists()]
    if page is not None and page.exists():
        there.append(str(page))
    if there and not (options.overwrite or is_unfinished(folder)):
        names = [str(Path(name).name) if Path(name).parent == folder else name for name in there]
        raise ValueError(
            f"--output {folder} already holds {', '.join(names)}. Name another folder, or pass "
            "--overwrite to replace them."
        )


@contextlib.contextmanager
def output_folder(folder: Path | None) -> Iterator[None]:
    """Make the folder before the work; take it away again if nothing came of it.

    Parameters
    ----------
    folder : Path or None
        None makes none.
    """
    if folder is None:
        yield
        return
    there = folder.exists()
    try:  # from the first moment: an interrupt may come right after the folder was made
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(None, "Permission denied")
        except OSError as error:
            raise ValueError(
                f"--output {folder} cannot be written to: {error.strerror or error}. Name another "
                "folder."
            ) from error
        yield
    except BaseException:
        if not there:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def write_files(
    options: argparse.Namespace, search: ExtractorSearchCV, result: dict[str, Any]
) -> None:
    """Write the rules, the leaderboard, the candidates and how they came about.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for.
    search : ExtractorSearchCV
        The finished search.
    result : dict
        What ``run.json`` is to hold.
    """
    board = search.leaderboard_
    # As objects, or a parameter that not all extractors have would turn from 3 into 3.0.
    params = pd.DataFrame(list(board["params"]), dtype=object).add_prefix("param_")
    table = pd.concat([board.drop(columns="params"), params], axis=1)
    contents = (
        search.rules_.to_json() + "\n",
        table.to_csv(index=False, lineterminator="\n"),
        _candidates(search),
        output.to_json(result),
    )
    paths = [options.output / name for name in FILES]
    for path, text in zip(paths, contents, strict=True):
        # Names of files may hold bytes that are no text; in JSON they are still told apart so.
        part = path.with_name(path.name + ".part")
        part.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        part.replace(path)
    if not options.quiet:
        sys.stderr.write(f"wrote {', '.join(map(str, paths))}\n")


def _candidates(search: ExtractorSearchCV) -> str:
    first = search.leaderboard_.iloc[0]
    # A winner that repeats an earlier trial is that trial, which is the one that was kept.
    trial = first["trial"] if pd.isna(first["same_as"]) else first["same_as"]
    return candidates_json(
        search.candidates_,
        winner=(str(first["extractor"]), int(trial)),
        standard_errors=search.standard_errors,
        extractor_seed=extractor_seed(search.random_state),
    )


def extractor_seed(random_state: int | np.random.RandomState | None) -> int:
    """The seed that a search gives all its extractors: the first number that it draws.

    Parameters
    ----------
    random_state : int
        Of the search.

    Returns
    -------
    int
        Their ``random_state``.
    """
    return int(check_random_state(random_state).randint(2**31 - 1))


def write_page(options: argparse.Namespace, dataset: Dataset, model: Any) -> None:
    """Write the page if one was asked for.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for.
    dataset : Dataset
        The rows of the search.
    model : estimator
        Its black box, to make the rules of other candidates again.
    """
    page = report_path(options)
    if page is None:
        return
    write_report(options.output, page, data=dataset, black_box=model)
    if not options.quiet:
        sys.stderr.write(f"wrote {page}\n")
