"""``skescore bench``: extractors compared over data sets, black boxes, seeds and folds."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from skescore._optional import import_optional
from skescore._text import did_you_mean
from skescore.bench._configuration import (
    MODEL_FILES,
    SEARCH,
    BenchConfig,
    config_from,
    is_model_file,
    read_config,
)
from skescore.bench._plan import make_plan
from skescore.bench._progress import BenchProgress
from skescore.bench._rows import csv_bytes
from skescore.bench._running import BenchResult, run_plan
from skescore.bench._suites import SUITES, suite_config
from skescore.bench._tables import RANKED, rank_extractors, summarise
from skescore.black_boxes import BLACK_BOXES
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._bench_folder import rows_folder
from skescore.cli._bench_text import bench_text, ranking_record
from skescore.cli._black_boxes import load_black_box
from skescore.cli._trials import shown_command_line
from skescore.datasets._loading import BUILT_IN
from skescore.registry import EXTRACTORS, extractor_names

_EXAMPLES = """\
examples:
  skescore bench --suite smoke
  skescore bench --data iris,wine --black-boxes knn,svm --extractors cart,gridex --seeds 0,1
  skescore bench --config bench.toml --output results --n-jobs 2 --report
"""
_PLOT = "ranks_{task}.svg"
#: Options about the files of --data, and what `load_dataset` calls them.
_OF_FILES = {
    "target": "target", "drop": "drop", "category": "categories", "missing": "missing",
}  # fmt: skip


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "bench",
        help="compare extractors over data sets, black boxes and seeds",
        description="Measure extractors on held-out rows of several data sets and black boxes, "
        "show means, ranks and wins, and test whether the differences are more than chance. A "
        "run that was broken off goes on when its command is repeated.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    group = parser.add_argument_group("what to measure (options after a suite or file replace it)")
    base = group.add_mutually_exclusive_group()
    base.add_argument(
        "--suite",
        type=_one_of(SUITES, "suite"),
        metavar="NAME",
        help="a built-in benchmark: " + "; ".join(f"{k}: {v.summary}" for k, v in SUITES.items()),
    )
    base.add_argument("--config", type=Path, metavar="FILE", help="a benchmark in a TOML file")
    group.add_argument(
        "--data",
        type=_words,
        metavar="NAME,...",
        help=f"data sets: built-in ones ({', '.join(BUILT_IN)}), files (see --target), or "
        "openml:ID",
    )
    group.add_argument(
        "--target", metavar="COLUMN", help="the column to predict in the files of --data"
    )
    group.add_argument(
        "--drop",
        metavar="COLUMN",
        action="append",
        help="leave out a column of these files; repeatable",
    )
    group.add_argument(
        "--category",
        metavar="COLUMN",
        action="append",
        help="a column of these files whose values are names of things, not quantities; repeatable",
    )
    group.add_argument(
        "--missing",
        choices=("error", "drop"),
        help="rows of these files with missing values: stop with an error (default), or drop them; "
        "files that differ in such things are told apart in a --config",
    )
    group.add_argument(
        "--black-boxes",
        type=_black_boxes,
        metavar="NAME,...",
        help=f"out of {', '.join(BLACK_BOXES)} (default random-forest), or files with fitted "
        "scikit-learn models (.skops; .joblib and .pkl with --trust)",
    )
    group.add_argument(
        "--extractors",
        type=_extractors,
        metavar="NAME,...",
        help=f"out of {', '.join(EXTRACTORS)} (default all), psyke:NAME, files of rules (.json), "
        "or search: the best of cart and gridex by 30 trials of a search",
    )
    group.add_argument(
        "--seeds", type=_seeds, metavar="N,...", help="each makes its own folds (default 0)"
    )
    group.add_argument(
        "--folds",
        type=arguments.integer(0),
        metavar="N",
        help="of the cross-validation (default 5); 1: half of the rows are held out once; 0: "
        "rules are scored on the rows that they come from",
    )
    group.add_argument(
        "--trust",
        action="store_true",
        help="read black boxes from files that can run code when they are read",
    )
    group = parser.add_argument_group("running")
    group.add_argument(
        "--n-jobs",
        type=arguments.jobs,
        default=1,
        metavar="N",
        help="processes (default 1; -1: as many as there are cores); the more, the less exact are "
        "seconds",
    )
    group.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help="keep rows.csv and run.json in a folder; without it, they are kept elsewhere until "
        "the end only",
    )
    group.add_argument(
        "--overwrite", action="store_true", help="begin anew, whatever that folder holds"
    )
    group.add_argument(
        "--retry-failed", action="store_true", help="measure once more what has failed"
    )
    group = parser.add_argument_group("tables and files")
    group.add_argument(
        "--rank-by",
        type=_one_of(RANKED, "score"),
        metavar="SCORE",
        help=f"out of {', '.join(RANKED)} (default ice, or what the suite is about)",
    )
    group.add_argument(
        "--alpha", type=_level, default=0.05, metavar="LEVEL", help="of the tests (default 0.05)"
    )
    group.add_argument(
        "--report",
        type=Path,
        nargs="?",
        const=True,
        metavar="FILE",
        help="write a page to look at (default report.html in the folder of --output)",
    )
    group.add_argument(
        "--plots",
        action="store_true",
        help=f"draw critical differences to {_PLOT.format(task='TASK')} in the folder of --output",
    )
    group.add_argument(
        "--parquet", action="store_true", help="write rows.parquet to that folder as well"
    )
    group.add_argument("--quiet", action="store_true", help="no progress, no notes; only errors")
    group.add_argument(
        "--format",
        choices=(*arguments.FORMATS, "csv"),
        default="text",
        help="of standard output (default text); csv: all rows",
    )
    parser.set_defaults(run=run, parser=parser)


# --- options -------------------------------------------------------------------------------------


def _one_of(known: Iterable[str], what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise argparse.ArgumentTypeError(
                f"there is no {what} {text!r}. {did_you_mean(text, known)}"
            )
        return text

    return read


def _words(text: str) -> list[str]:
    words = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not words:
        raise argparse.ArgumentTypeError("needs at least one name")
    return words


def _extractors(text: str) -> list[str]:
    words, known = _words(text), (*extractor_names(), SEARCH)
    for word in words:
        if word not in known and not word.lower().endswith(".json"):
            raise argparse.ArgumentTypeError(
                f"there is no extractor {word!r}. {did_you_mean(word, known)} A file of rules ends "
                "in .json."
            )
    return words


def _black_boxes(text: str) -> list[str]:
    words = _words(text)
    for word in words:
        if word not in BLACK_BOXES and not is_model_file(word):
            raise argparse.ArgumentTypeError(
                f"there is no black box {word!r}. {did_you_mean(word, BLACK_BOXES)} A file of a "
                f"model ends in {', '.join(MODEL_FILES)}."
            )
    return words


def _seeds(text: str) -> list[int]:
    read = arguments.integer(0, 2**32 - 1)
    return [read(word) for word in _words(text)]


def _level(text: str) -> float:
    value = arguments.number_above(0)(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"must be below 1, got {text!r}")
    return value


def _config(options: argparse.Namespace) -> BenchConfig:
    """The suite or file, with what options replace."""
    if options.suite is None and options.config is None and options.data is None:
        options.parser.error(
            f"say what to measure: --suite NAME ({', '.join(SUITES)}), --config FILE or --data NAME"
        )
    about = {name: getattr(options, name) for name in _OF_FILES if getattr(options, name)}
    for name in about:
        if options.data is None:
            options.parser.error(f"argument --{name}: belongs to the files of --data")
    raw: dict[str, Any] = {}
    if options.data is not None:
        files = [n for n in options.data if n not in BUILT_IN and not n.startswith("openml:")]
        for name in about if not files else ():
            options.parser.error(f"argument --{name}: belongs to files, and --data names none")
        of_files = {_OF_FILES[name]: value for name, value in about.items()}
        raw["data"] = [{"source": n, **(of_files if n in files else {})} for n in options.data]
    if options.black_boxes is not None:
        raw["black_boxes"] = list(options.black_boxes)
    if options.extractors is not None:
        raw["extractors"] = options.extractors
    made = config_from({"data": ["iris"], "black_boxes": ["random-forest"], **raw})
    if options.suite is None and options.config is None:
        base = made
    else:
        base = suite_config(options.suite) if options.suite else read_config(options.config)
    changes = {key: getattr(made, key) for key in raw}
    for key in ("seeds", "folds"):
        if getattr(options, key) is not None:
            value = getattr(options, key)
            changes[key] = tuple(dict.fromkeys(value)) if key == "seeds" else value
    if "data" in changes and base is not made:
        # What was meant for data sets that are left out has nothing to do.
        labels = {entry.label for entry in changes["data"]}
        kept = changes.get("extractors", base.extractors)
        changes["extractors"] = tuple(e for e in kept if e.data is None or labels & set(e.data))
    return base.with_changes(**changes)


# --- running -------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    _check_files(options)
    config = _config(options)
    if options.rank_by is None:
        options.rank_by = SUITES[options.suite].rank_by if options.suite else "ice"
    notes = output.Notes(options.quiet)
    plan = make_plan(config, load_model=functools.partial(load_black_box, trust=options.trust))
    with (
        rows_folder(options.output, plan) as folder,
        BenchProgress(shown=not options.quiet) as progress,
    ):
        try:
            result = run_plan(
                plan,
                folder,
                n_jobs=options.n_jobs,
                command_line=shown_command_line(options.command_line),
                overwrite=options.overwrite,
                retry_failed=options.retry_failed,
                on_start=progress.start,
                on_row=progress.row,
                on_note=notes.add,
            )
        except KeyboardInterrupt:
            progress.__exit__()
            notes.add(
                f"{output.plural(progress.measured, 'row')} more measured; the same command goes on"
            )
            raise
        progress.__exit__()
        _write_files(options, folder, result)
        text = _shown(options, result, notes)
    return text


def _shown(options: argparse.Namespace, result: BenchResult, notes: output.Notes) -> str:
    if options.format == "csv":
        return csv_bytes(result.rows).decode()
    rankings = rank_extractors(result.rows, options.rank_by, alpha=options.alpha)
    if options.format == "json":
        record = {
            **result.run,
            "summary": summarise(result.rows).to_dict(orient="records"),
            "ranked_by": options.rank_by,
            "rankings": [ranking_record(ranking) for ranking in rankings],
            "rows_measured": result.rows.to_dict(orient="records"),
            "notes": notes.texts,
        }
        return output.json_for_stdout(record)
    return bench_text(options, result, rankings)


def _check_files(options: argparse.Namespace) -> None:
    """Find what speaks against the files now: an hour's run must not end in an error."""
    folder: Path | None = options.output
    if folder is None:
        for name in ("plots", "parquet", "overwrite"):
            if getattr(options, name):
                options.parser.error(f"argument --{name}: needs the folder of --output")
        if options.report is True:
            options.parser.error("argument --report: name a file, or a folder with --output")
    elif folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} is a file; name a folder.")
    if options.report is True:
        options.report = folder / "report.html" if folder is not None else None
    if options.report is not None:
        _ = import_optional("jinja2", extra="report", purpose="Writing a report")
    if options.parquet:
        import_optional("pyarrow", extra="parquet", purpose="Writing a Parquet file")
    if options.plots:
        import_optional("matplotlib.figure", extra="plots", purpose="Drawing ranks")


def _write_files(options: argparse.Namespace, folder: Path, result: BenchResult) -> None:
    written = [] if options.output is None else [folder / "rows.csv", folder / "run.json"]
    if options.parquet:
        path = folder / "rows.parquet"
        part = path.with_name(path.name + ".part")
        result.rows.to_parquet(part, index=False)
        part.replace(path)
        written.append(path)
    if options.plots:
        from skescore.bench._plots import critical_difference_plot

        for ranking in rank_extractors(result.rows, options.rank_by, alpha=options.alpha):
            ax = critical_difference_plot(
                ranking.comparison, title=f"{ranking.task}, {options.rank_by}"
            )
            written.append(folder / _PLOT.format(task=ranking.task))
            ax.figure.savefig(written[-1])
    if options.report is not None:
        from skescore.report import write_report

        rankings = rank_extractors(result.rows, options.rank_by, alpha=options.alpha)
        records = [ranking_record(ranking) for ranking in rankings]
        write_report(folder, options.report, rankings=records)
        written.append(options.report)
    if written and not options.quiet:
        sys.stderr.write(f"wrote {', '.join(map(str, written))}\n")
