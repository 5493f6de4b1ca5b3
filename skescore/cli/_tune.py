"""``skescore tune``: the best rules of a black box on some data."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import itertools
import json
import math
import os
import platform
import sys
import textwrap
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import at_home, package_versions, try_lock, write_atomically
from skescore._names import (
    BLACK_BOX_NAMES,
    DATA_SET_TASKS,
    FIDELITY_SCORER_NAME,
    SET_SCORER_NAMES,
    metric_label,
)
from skescore._optional import import_optional
from skescore._quantities import (
    DISAGREEMENT,
    MeasuredQuantity,
    limited_quantities,
    measured_quantities,
)
from skescore._scores import SCORE_SPECS
from skescore._text import csv_of, did_you_mean, percentage, plural
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._alternatives import print_alternatives, print_winner_figures
from skescore.cli._arguments import (
    COMMAND,
    OF_BLACK_BOX,
    OF_DATA,
    OF_EXTRACTORS,
    OF_FILE,
    OF_FOLDER,
    OF_SCORING,
    add_standalone_option,
)
from skescore.cli._baseline_file import BASELINE, make_baseline
from skescore.cli._constraints import add_constraint_options, constraints_from
from skescore.cli._revise import (
    REVISED,
    EarlierRun,
    add_revision_options,
    check_revision_options,
    revision_record,
    use_earlier_options,
)
from skescore.cli._rule_files import read_table
from skescore.cli._trials import (
    LOCK,
    TrialStorage,
    Workers,
    add_trial_options,
    is_unfinished,
    kept_trials,
    note_earlier,
    shown_command_line,
    study_name,
)
from skescore.cli._verified_choice import (
    add_verification_options,
    check_verification_options,
    choice_record,
    choice_text,
    verify_winner,
    write_verification,
)
from skescore.registry import (
    EXTRACTORS,
    SMALL_TABLE,
    extractor_label,
    extractor_names,
    suitable_extractors,
)

if TYPE_CHECKING:
    import pandas as pd

    from skescore.certificates import Certificate
    from skescore.cli._progress import ReportingSearch
    from skescore.datasets import Dataset, Preparation
    from skescore.metrics import RuleCounts
    from skescore.monitoring import Revision, RuleBaseline
    from skescore.rules import RuleSet
    from skescore.sources import DataSource
    from skescore.suspicions import Suspicion
    from skescore.tuning import ExtractorSearchCV, SearchProgress

__all__ = [
    "FILES",
    "add_report_option",
    "check_output",
    "chosen_output",
    "labeled",
    "output_folder",
    "report_path",
    "write_files",
    "write_page",
]


_MAX_ROWS = 10
#: Number of values from which a forest is fitted faster on all cores.
_LARGE = 4_000
#: Number of trials from which several processes save more time than they take to start.
_MANY_TRIALS = 20
#: Most processes of a search that does not say how many, because each needs memory.
_MAX_PROCESSES = 4
_MAX_CLASSES = 6


def sign(options: argparse.Namespace) -> int:
    """Return 1 if the score is maximized, and -1 if its negative is."""
    return -1 if arguments.scorer_from(options).name.startswith("neg_") else 1


def label(options: argparse.Namespace) -> str:
    """Return the label of the score."""
    score = arguments.trade_off_score(options)
    return SCORE_SPECS[score].label if score in SCORE_SPECS else score


def scoring_name(options: argparse.Namespace) -> str | list[str]:
    """Return the name of the objective, or the objectives that are minimized, as in Python."""
    if options.scoring == "pareto":
        return list(arguments.TRADE_OFF)
    return arguments.scorer_from(options).name


def tune_text(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV, result: dict[str, Any]
) -> str:
    """Write the data, the black box, the leaderboard and the best rules."""
    printer = output.Printer(options.format == "markdown")
    for sentence in result["suspicions"]:
        printer.line(f"Warning: {sentence}")
    for sentence in result["best"]["shortcomings"]:
        printer.line(f"Note: {sentence}.")
    printer.line(_describe(dataset))
    quality = ", ".join(
        f"{metric_label(name)} {output.number(value)}"
        for name, value in search.black_box_quality_.items()
    )
    how = f"held-out rows, {options.cv} folds{_split_text(dataset)}"
    if not result["black_box"]["trained_here"]:
        how = f"mean of {options.cv} parts of these rows, which it may have been trained on"
    if options.class_weight is not None:
        how += "; all classes have the same total weight"
    printer.line(f"black box {options.black_box}: {quality} ({how})")
    judged = bool((result.get("all_rows") or {}).get("finalists"))
    _leaderboard(printer, options, dataset, search, judged=judged)
    best, name = result["best"], label(options)
    _trade_off(printer, options, dataset, search)
    knee = ", the knee of the trade-off" if options.scoring == "pareto" else ""
    first = "best" if options.pick is None else "picked"
    printer.heading(
        f"{first}: {extractor_label(best['extractor'])} with {name} "
        f"{output.number(sign(options) * best['score'], 4)}{knee}; its "
        f"{plural(best['n_rules'], 'rule')}, extracted from all rows"
    )
    printer.verbatim(str(search.rules_.standalone() if options.standalone else search.rules_))
    if options.class_weight is not None:
        printer.line("(Weighted rows are counted by their weight.)")
    print_winner_figures(printer, result["alternatives"])
    _print_constraints(printer, search)
    measure = "accuracy" if dataset.task == "classification" else "R²"
    is_trained_here = result["black_box"]["trained_here"]
    where = (
        f"on all {len(dataset.X)} rows, which the model "
        f"{'was' if is_trained_here else 'may have been'} trained on"
    )
    each_once = "" if options.class_weight is None else " (each counts once)"
    where += each_once
    printer.line(
        f"{where}: fidelity ({measure} against the black box) "
        f"{output.number(best['fidelity'])}, completeness "
        f"{output.number(best['completeness_volume'])} by volume, "
        f"{output.number(best['completeness_instances'])} by rows"
    )
    if (everything := result.get("all_rows")) is not None:
        _print_all_rows(printer, options, everything)
    if (test := result.get("test")) is not None:
        names = ("fidelity", "rules", "black_box", "completeness_instances")
        fidelity, rules, black_box, completeness = (output.number(test[name]) for name in names)
        printer.line(
            f"on the {plural(test['rows'], 'row')} of {test['source']}{each_once}: fidelity "
            f"({measure} against the black box) {fidelity}; {measure} (data) of the rules {rules}, "
            f"of the black box {black_box}; completeness by rows {completeness}"
        )
    for sentence in result.get("certificate", ()):
        printer.line(sentence)
    print_alternatives(printer, options, search, result["alternatives"])
    return printer.text()


def _split_text(dataset: Dataset) -> str:
    """Describe folds of whole groups or in the order of time, after the number of folds."""
    if dataset.groups is not None:
        return f" of whole groups ({dataset.groups.nunique()} different {dataset.groups.name})"
    return "" if dataset.times is None else f" in the order of {dataset.times.name}"


def _without_noise(spread: float, score: float) -> float:
    """Return 0 for a spread that is only rounding noise."""
    return 0.0 if spread < 1e-9 * max(1.0, abs(score)) else spread


def _leaderboard(
    printer: output.Printer,
    options: argparse.Namespace,
    dataset: Dataset,
    search: Any,
    *,
    judged: bool,
) -> None:
    board, name = search.leaderboard_, label(options)
    complete = board[board["state"] == "complete"]
    n_stopped, n_failed = _count_stopped(board), _count_failed(board)
    ended = f", {n_stopped} stopped early" if n_stopped else ""
    ended += f", {n_failed} without a score" if n_failed else ""
    measure = "f1_weighted" if dataset.task == "classification" else "r2"
    spec = getattr(arguments.scorer_from(options), "spec", None)
    if options.performance and spec is not None and spec.prediction == "performance":
        measure = options.performance
    performance = metric_label(measure)
    printed = [quantity for quantity in measured_quantities().values() if quantity.is_printed]
    costs = [quantity for quantity in printed if quantity.is_cost]
    if DISAGREEMENT.name in board:
        costs.append(DISAGREEMENT)
    properties = [quantity for quantity in printed if not quantity.is_cost]
    columns = [
        "",
        "extractor",
        name,
        "±",
        performance,
        *(quantity.heading for quantity in properties),
        *options.measures,
        *(quantity.heading for quantity in costs),
        "parameters",
    ]
    different = _different_outcomes(options, complete, properties, costs)
    first = f"the best {_MAX_ROWS} of " if len(different) > _MAX_ROWS else ""
    printer.heading(
        f"leaderboard: {plural(len(board), 'candidate')}{ended}, "
        f"{first}{plural(len(different), 'different outcome')} by {name}, "
        f"{search.search_seconds_:.1f} s"
    )
    listed = list(itertools.islice(different.items(), _MAX_ROWS))
    rows = [[str(position), *start, *end] for position, (start, (end, _)) in enumerate(listed, 1)]
    printer.table(columns, rows, left=("extractor", "parameters"))
    _leaderboard_notes(printer, options, dataset, search, judged=judged)
    beyond = [str(k) for k, (_, (_, is_within)) in enumerate(listed, 1) if not is_within]
    if beyond:
        subject = f"row {beyond[0]}" if len(beyond) == 1 else f"rows {', '.join(beyond)}"
        printer.line(f"(Beyond {_stated_limits(options)}: {subject}.)")


def _different_outcomes(
    options: argparse.Namespace,
    complete: pd.DataFrame,
    properties: list[MeasuredQuantity],
    costs: list[MeasuredQuantity],
) -> dict[tuple[str, ...], tuple[list[str], bool]]:
    """Return the cells of candidates by outcome, without those that would look like a better one.

    The values are the cells that do not belong to the outcome (costs and parameters), and whether
    the candidate keeps the limits.
    """
    different: dict[tuple[str, ...], tuple[list[str], bool]] = {}
    for row in complete.to_dict(orient="records"):
        outcome = (
            extractor_label(row["extractor"]),
            output.number(sign(options) * row["score"], 4),
            output.number(_without_noise(row["score_std"], row["score"]), 4),
            output.number(row["performance"]),
            *(_measured(quantity, row) for quantity in properties),
            *(output.number(row[measure]) for measure in columns_of(options)),
        )
        costs_of_row = [_measured(quantity, row) for quantity in costs]
        cells = [*costs_of_row, _parameters(row["params"])]
        different.setdefault(outcome, (cells, bool(row.get("within_limits", True))))
    return different


def _measured(quantity: MeasuredQuantity, row: Mapping[Any, Any]) -> str:
    """Write a measured quantity of a candidate."""
    value = row[quantity.name]
    if quantity.is_count or quantity.is_cost:
        return f"{value:.{quantity.digits}f}"
    return output.number(value, quantity.digits)


def _leaderboard_notes(
    printer: output.Printer,
    options: argparse.Namespace,
    dataset: Dataset,
    search: Any,
    *,
    judged: bool,
) -> None:
    """Explain the columns and the order of the leaderboard, and which extractors were stopped."""
    board, name = search.leaderboard_, label(options)
    truth = _truth(options, dataset)
    better = "greater" if sign(options) == 1 else "less"
    printer.line(
        f"({name}: {better} is better. Means over {_scored_rows(options, search)}, compared with "
        f"{truth}; ± is the "
        "standard deviation between folds. Space and rows covered are the shares of the volume of "
        "the feature space and of the rows that rules cover.)"
    )

    cost = search.query_cost_
    if cost.n_rows:
        seconds = 1000 * cost.seconds_per_row
        per_1000 = f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"
        printer.line(
            f"(The trials asked the model about {cost.n_rows:,} rows, which took "
            f"{cost.seconds:.1f} s, {per_1000} per 1,000 rows.)"
        )
    if options.measures and board[columns_of(options)].isna().any(axis=None):
        printer.line("(- means that a measure has no value on at least one fold.)")
    if "within_limits" in board and not board["within_limits"].any():
        printer.line(f"(No candidate satisfies {_stated_limits(options)}.)")
    if board["score"].iloc[0] < board["score"].max():
        printer.line(
            f"(The first {_why_first(options, board, judged)}; the others follow by {name}.)"
        )
    if search.stopped_:
        printer.line("no more trials for:")
        for stopped, reason in search.stopped_.items():
            printer.line(f"   {extractor_label(stopped)}: {reason}")


def _compares_on_generated_rows(options: argparse.Namespace, search: Any) -> bool:
    """Return whether scores compare with the black box on rows that are generated."""
    return options.reference == "black-box" and search.data_.has_generated_rows


def _scored_rows(options: argparse.Namespace, search: Any) -> str:
    """Return the rows over which the leaderboard has means."""
    if _compares_on_generated_rows(options, search):
        return "folds, on rows generated from held-out rows"
    return "held-out folds"


def _truth(options: argparse.Namespace, dataset: Dataset) -> str:
    """Return what predictions of the rules are compared with."""
    return (
        "the black box's predictions" if options.reference == "black-box" else str(dataset.y.name)
    )


def _why_first(options: argparse.Namespace, board: pd.DataFrame, judged: bool) -> str:
    """Explain why the first candidate is the best although another one has a better score."""
    tied = int(board["tied"].sum())
    if options.pick is not None:
        return f"was selected by --pick {options.pick}"
    if DISAGREEMENT.name in board and board[DISAGREEMENT.name].notna().sum() > 1:
        return "has been selected by its verified disagreement"
    if board["extractor"].iloc[0] == REVISED:
        return f"is the revision of the rules in {options.from_run}"
    if options.scoring == "pareto":
        return "is the knee of the trade-off"
    if judged:
        return "is the best of the finalists on all rows"
    has_repeats = board["score_repeated"].notna()
    if has_repeats.iloc[0]:
        n_finalists = int(has_repeats.sum())
        return (
            f"is the best of {n_finalists} finalists on the folds and on repeated folds, or the "
            "one with the fewest rules among those that are not clearly worse"
        )
    best = "is the best"
    if "within_limits" in board and board["within_limits"].iloc[0]:
        is_within = board["within_limits"].astype(bool)
        limits = [name for name in limited_quantities() if getattr(options, name) is not None]
        best += f" that satisfies {' and '.join(map(_option_of, limits))}"
        if not (is_within & (board["score"] > board["score"].iloc[0])).any():
            return best
    if board["tied"].iloc[0] and tied > 1:
        return (
            f"has the fewest rules of the {tied} candidates that are not clearly worse than the "
            "best, and the best score of those with equally few; the comparison combines scores on "
            "held-out rows and scores of the rules extracted from all rows"
        )
    return (
        f"{best} when scores on held-out rows and scores of the rules extracted from all rows are "
        "combined"
    )


def _stated_limits(options: argparse.Namespace) -> str:
    """Return the limits of the search as options with their values."""
    limits = [name for name in limited_quantities() if getattr(options, name) is not None]
    return ", ".join(f"{_option_of(name)} {getattr(options, name):g}" for name in limits)


def _option_of(parameter: str) -> str:
    """Return the command-line option of a parameter."""
    return f"--{parameter.replace('_', '-')}"


def columns_of(options: argparse.Namespace) -> list[str]:
    """Return the columns of the requested measures in the leaderboard; losses are negated."""
    from skescore.scorers import get_rule_scorer

    return [get_rule_scorer(name).name for name in options.measures]


def _parameters(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items()
    )


def _trade_off(
    printer: output.Printer,
    options: argparse.Namespace,
    dataset: Dataset,
    search: ExtractorSearchCV,
) -> None:
    """Write the best trade-offs: candidates that no other candidate dominates."""
    front = search.pareto_front_
    if len(front) < 2:
        return
    is_shown = front["knee"].to_numpy(bool, copy=True)
    is_shown[: _MAX_ROWS - 2] = is_shown[-1] = True
    if len(front) <= _MAX_ROWS:
        is_shown[:] = True
    shown, positions = front[is_shown], is_shown.nonzero()[0].tolist()
    count = f"{len(shown)} of " if len(shown) < len(front) else ""
    printer.heading(
        f"best trade-offs of loss, rules and completeness: {count}{len(front)} candidates"
    )
    truth = _truth(options, dataset)
    weighted = "" if search.data_.row_weights is None else "; rows are weighted"
    loss = "errors" if dataset.task == "classification" else "mean absolute error"
    scored = "held-out rows"
    if _compares_on_generated_rows(options, search):
        scored, weighted = "rows generated from held-out rows", ""
    overwrite = "" if options.output is None or options.overwrite else " and --overwrite"
    rows = [
        [
            f"{row['n_rules']:.1f}",
            output.number(row["loss"]),
            output.number(row["completeness_volume"]),
            "knee" if row["knee"] else "",
            str(position + 1),
            extractor_label(row["extractor"]),
            _parameters(row["params"]),
        ]
        for position, row in zip(positions, shown.to_dict(orient="records"), strict=True)
    ]
    space = measured_quantities()["completeness_volume"].heading
    columns = ["rules", loss, space, "", "pick", "extractor", "parameters"]
    printer.table(columns, rows, left=("extractor", "parameters"))
    printer.line(
        f"({loss.capitalize()}: on {scored}, compared with {truth}{weighted}. To show the "
        f"rules of a row, repeat the command with --pick N (1 to {len(front)}){overwrite}; it uses "
        "the stored trials.)"
    )


def _describe(dataset: Dataset) -> str:
    from skescore.rules._text import format_number

    text = f"{dataset.name}: {len(dataset.X)} rows, {plural(dataset.X.shape[1], 'feature')}"
    if dataset.n_rows_dropped:
        text += f" ({plural(dataset.n_rows_dropped, 'row')} with missing values dropped)"
    if dataset.task == "classification":
        counts = sorted(dataset.class_counts.items(), key=lambda item: -item[1])
        class_list = ", ".join(f"{label} ({count})" for label, count in counts[:_MAX_CLASSES])
        more = f" and {len(counts) - _MAX_CLASSES} more" if len(counts) > _MAX_CLASSES else ""
        return f"{text}; target class {dataset.y.name}: {class_list}{more}"
    low, high = format_number(dataset.y.min()), format_number(dataset.y.max())
    return f"{text}; {dataset.y.name} from {low} to {high}"


#: Files that --output writes.
FILES = ("rules.json", "leaderboard.csv", "candidates.json", "run.json")
#: File that --certify adds; BASELINE is added if the rules can be monitored.
CERTIFICATE = "certificate.json"
#: Default file of --report.
REPORT = "report.html"


def add_report_option(group: Any) -> None:
    """Add ``--report``."""
    group.add_argument(
        "--report",
        nargs="?",
        const=REPORT,
        action=OF_FILE,
        metavar="FILE",
        help="write a self-contained HTML page: the rules, their correct and wrong predictions, "
        f"the trade-off, rows to try (default {REPORT} in the folder of --output, which it needs)",
    )


def report_path(options: argparse.Namespace) -> Path | None:
    """Return the path of the page; None without --report."""
    if options.report is None:
        return None
    if options.output is None:
        options.parser.error(
            "argument --report: shows the files in the folder of --output; add --output DIR"
        )
    named = Path(options.report)
    return options.output / named if options.report == REPORT else named


def check_output(options: argparse.Namespace) -> None:
    """Check the output folder before the search, so that no long search ends in an error."""
    page = report_path(options)
    if page is not None:
        import_optional("jinja2", extra="report", purpose="--report")
    folder: Path | None = options.output
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} is a file; name a folder.")
    if page is not None and page.parent != folder and not page.parent.is_dir():
        raise ValueError(f"--report {page}: there is no folder {page.parent}; make it first.")
    if page is not None and page.is_dir():
        raise ValueError(f"--report {page} is a folder; name a file in it.")
    existing = [str(folder / name) for name in (*FILES, BASELINE) if (folder / name).exists()]
    if options.certify is not None and (folder / CERTIFICATE).exists():
        existing.append(str(folder / CERTIFICATE))
    if page is not None and page.exists():
        existing.append(str(page))
    if existing and not (options.overwrite or is_unfinished(folder)):
        names = [str(Path(name).name) if Path(name).parent == folder else name for name in existing]
        raise ValueError(
            f"--output {folder} already holds {', '.join(names)}. Name another folder, or pass "
            "--overwrite to replace them."
        )


@contextlib.contextmanager
def output_folder(options: argparse.Namespace) -> Iterator[None]:
    """Make the output folder before the search, and remove it if the search fails.

    A lock ensures that no two searches write into one folder at a time.
    """
    folder: Path | None = options.output
    if folder is None:
        yield
        return
    existed = folder.exists()
    try:  # an interrupt may come right after the folder was made
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(None, "Permission denied")
        except OSError as error:
            raise ValueError(
                f"--output {folder} cannot be written to: {error.strerror or error}. Name another "
                "folder."
            ) from error
        with try_lock(folder / LOCK) as is_locked:
            if not is_locked:
                raise ValueError(
                    f"--output {folder} is in use by another search. Wait until it ends, or name "
                    "another folder."
                )
            check_output(options)  # another search may have ended since the first check
            yield
    except BaseException:
        if not existed:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def write_files(
    options: argparse.Namespace,
    search: ExtractorSearchCV,
    result: dict[str, Any],
    certificate: Certificate | None = None,
    baseline: RuleBaseline | None = None,
) -> None:
    """Write the rules, leaderboard, candidates, settings of the run, proof and baseline."""
    import pandas as pd

    board = search.leaderboard_
    # As objects, since an integer that some extractors lack would become a float.
    params = pd.DataFrame(list(board["params"]), dtype=object).add_prefix("param_")
    table = pd.concat([board.drop(columns="params"), params], axis=1)
    contents = (
        search.rules_.to_json() + "\n",
        csv_of(table),
        _candidates(search),
        output.to_json(result),
    )
    paths = [options.output / name for name in FILES]
    for path, text in zip(paths, contents, strict=True):
        write_atomically(path, text)
    if certificate is not None:
        paths.append(options.output / CERTIFICATE)
        write_atomically(paths[-1], certificate.to_json() + "\n")
    if baseline is not None:
        paths.append(options.output / BASELINE)
        write_atomically(paths[-1], baseline.to_json())
    else:  # one of an earlier run belongs to other rules
        (options.output / BASELINE).unlink(missing_ok=True)
    if not options.quiet:
        sys.stderr.write(f"wrote {', '.join(map(str, paths))}\n")


def _candidates(search: ExtractorSearchCV) -> str:
    import pandas as pd

    from skescore.report import candidates_json

    first = search.leaderboard_.iloc[0]
    # A winner that repeats an earlier trial is stored as that trial.
    trial = first["trial"] if pd.isna(first["same_as"]) else first["same_as"]
    return candidates_json(
        search.candidates_,
        winner=(str(first["extractor"]), int(trial)),
        standard_errors=search.standard_errors_,
        extractor_seed=search.extractor_seed_,
        picked=search.picked_,
    )


def write_page(options: argparse.Namespace, dataset: Dataset, model: Any) -> None:
    """Write the page of --report."""
    from skescore.report import write_report

    page = report_path(options)
    if page is None:
        return
    write_report(options.output, path=page, data=dataset, black_box=model)
    if not options.quiet:
        sys.stderr.write(f"wrote {page}\n")


DESCRIPTION = (
    "Train (or load) a black box, search extractors and their hyperparameters, "
    "and show the rules with the best score."
)
EXAMPLES = """\
examples:
  skescore tune wine --black-box random-forest --trials 60
  skescore tune houses.csv --target price --drop id --scoring fire --psi 3 --output run
  skescore tune iris --black-box model.skops --scoring fidelity --max-rules 8
  skescore tune 'sales/*.parquet' --target price --sample 50000
  skescore tune --from run --time date --since 2026-05-01 --output revised
"""

#: With fewer training rows, errors of models are explained by the number of rows.
_FEW_ROWS = 10


def black_box(text: str) -> str:
    """Read a name of a black box, a model file, or a command (argparse type)."""
    path = Path(text)
    if text in BLACK_BOX_NAMES or text.startswith(COMMAND):
        return text
    if path.suffix or path.name != text or path.exists():
        return text
    raise argparse.ArgumentTypeError(
        f"there is no black box {text!r}, nor a file of that name. "
        f"{did_you_mean(text, BLACK_BOX_NAMES)}"
    )


#: Trials that failed, and trials whose score is undefined.
_WITHOUT_SCORE = ("fail", "pruned")


#: Start of the error of a trial that was stopped because it could no longer win.
_STOPPED = "Stopped by the pruner"


def _is_stopped(board: pd.DataFrame) -> pd.Series:
    """Return which trials of the leaderboard were stopped because they could no longer win."""
    is_stopped: pd.Series = board["error"].astype(str).str.startswith(_STOPPED)
    return is_stopped


def _count_stopped(board: pd.DataFrame) -> int:
    return int(_is_stopped(board).sum())


def _count_failed(board: pd.DataFrame) -> int:
    return int((board["state"].isin(_WITHOUT_SCORE) & ~_is_stopped(board)).sum())


#: Help on data sources, of which only a sample is searched.
_ELSEWHERE = (
    "; or a data source, of which a sample is searched before the finalists are compared on all "
    "rows: a folder or glob of Parquet files, duckdb:///FILE?table=T, "
    "postgresql://USER@HOST/DATABASE?table=T, any URL of SQLAlchemy"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    group = arguments.add_data_options(parser, elsewhere=_ELSEWHERE, is_optional=True)
    arguments.add_split_options(group)
    arguments.add_row_options(group)
    group.add_argument(
        "--test",
        action=OF_DATA,
        metavar="FILE",
        help="a table of further rows, read in the same way, on which the best rules are evaluated",
    )
    _add_black_box_options(parser.add_argument_group("black box"))
    _add_search_options(parser.add_argument_group("search"))
    add_constraint_options(parser)
    arguments.add_score_options(parser)
    add_revision_options(parser)
    add_trial_options(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output",
        action=OF_FOLDER,
        type=Path,
        metavar="DIR",
        help=f"write {', '.join(FILES)} to a folder, and {BASELINE} for `skescore watch`",
    )
    group.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the files of an earlier run in that folder",
    )
    add_report_option(group)
    add_standalone_option(group)
    group.add_argument(
        "--quiet", action="store_true", help="write no progress and no notes, only errors"
    )
    arguments.add_format_option(group)


def _add_black_box_options(group: Any) -> None:
    group.add_argument(
        "--black-box",
        type=black_box,
        default="random-forest",
        action=OF_BLACK_BOX,
        metavar="NAME|FILE|COMMAND",
        help=f"{', '.join(BLACK_BOX_NAMES)} (trained here; default random-forest), or a file with "
        "a fitted scikit-learn model (.skops, .onnx; .joblib and .pkl with --trust, also of FLAML "
        "and statsmodels, and the folder of an AutoGluon predictor; of clusterers "
        "and outlier detectors the labels are explained, no --target is needed), or "
        f"'{COMMAND} PROGRAM ARGUMENTS', run with rows as CSV on its standard input and one "
        "prediction per line on its standard output",
    )
    group.add_argument(
        "--outputs",
        type=arguments.names_from,
        metavar="NAME,...",
        help="names of the outputs of a model file with several outputs, in its order: the one "
        "named by --target is explained, the others are not features",
    )
    arguments.add_trust_option(group)


def _add_search_options(group: Any) -> None:
    group.add_argument(
        "--extractors",
        action=OF_EXTRACTORS,
        type=lambda text: arguments.names_of(extractor_names(), "extractor")(text),
        metavar="NAME,...",
        help=f"any of {', '.join(EXTRACTORS)} (default all that suit the task and the columns; "
        f"optimal-list and optimal-tree only for classification of up to {SMALL_TABLE:,} rows)",
    )
    group.add_argument(
        "--scoring",
        action=OF_SCORING,
        type=arguments.scoring,
        default="ice",
        metavar="SCORE",
        help=f"objective of the search (default ice): {', '.join(SCORE_SPECS)}, pareto (loss, "
        "rules and incompleteness together; the knee of the front is reported as the best), "
        f"{FIDELITY_SCORER_NAME} (agreement with the black box on unseen rows, whatever the number "
        "of rules; set --max-rules), a measure of single rules such as mean_rule_c2, or one of "
        "predictions such as cohen_kappa",
    )
    group.add_argument(
        "--measures",
        type=arguments.rule_measures,
        default=(),
        metavar="NAME,...",
        help="further columns of the leaderboard: measures of single rules, such as "
        "min_rule_precision (c2 means mean_rule_c2), group_gap:COLUMN (the largest difference "
        "between the groups of a column in the predictions), and measures beyond the scores: "
        + ", ".join(name.removeprefix("neg_") for name in SET_SCORER_NAMES),
    )
    group.add_argument(
        "--allocation",
        choices=("halving", "even"),
        default="halving",
        help="halving (default) gives more trials to the best extractors, in rounds; even gives "
        "all of them the same number",
    )
    group.add_argument(
        "--reference",
        choices=("data", "black-box"),
        help="compare rules with the target or with the black box's predictions (default: data if "
        "the black box is trained here or DATA is a database, otherwise black-box; --scoring "
        "fidelity always compares with the black box)",
    )
    group.add_argument(
        "--class-weight",
        choices=("balanced",),
        help="weight rows so that all classes have the same total weight: for the black box, "
        "extraction and scores",
    )
    group.add_argument(
        "--features",
        metavar="COLUMN,...",
        type=lambda text: [name.strip() for name in text.split(",") if name.strip()],
        help="columns that rules may use (default all); the black box uses all columns",
    )
    for name, (kind, default, metavar, text) in _number_options().items():
        group.add_argument(name, type=kind, default=default, metavar=metavar, help=text)
    _add_certificate_options(group)
    add_verification_options(group)


def _add_certificate_options(group: Any) -> None:
    group.add_argument(
        "--certify",
        type=arguments.number_above(0),
        metavar="SECONDS",
        help="time for proving how far the rules are from the best possible ones on these rows, "
        "and evaluate the best rules found on held-out rows; with --output, "
        f"{CERTIFICATE} holds the proof",
    )
    group.add_argument(
        "--tolerance",
        type=arguments.number_above(0),
        metavar="GAP",
        help="with --certify: stop the proof once the score is within GAP of the best possible, "
        "which is much faster (default: as close as time allows)",
    )


def _number_options() -> dict[str, tuple[Any, Any, str, str]]:
    """Return type, default, placeholder and help of the options of numbers."""
    return {
        "--trials": (
            arguments.integer(1),
            20,
            "N",
            "candidates in all, in addition to trees of 1 to 32 leaves (default 20)",
        ),
        "--timeout": (
            arguments.number_above(0),
            None,
            "SECONDS",
            "start no candidates after this time, which counts from when the black box is ready, "
            "and stop running ones; one tree is always evaluated; results then depend on speed",
        ),
        **{
            _option_of(quantity.limit.parameter): (
                arguments.integer(1) if quantity.is_count else arguments.number_above(-math.inf),
                None,
                "N" if quantity.is_count else "NUMBER",
                quantity.limit.help,
            )
            for quantity in limited_quantities().values()
            if quantity.limit is not None
        },
        "--pick": (
            arguments.integer(1),
            None,
            "N",
            "select the candidate in row N of the trade-off as the best",
        ),
        "--cv": (arguments.integer(2), 5, "N", "folds of the cross-validation (default 5)"),
        "--repeats": (
            arguments.integer(0),
            1,
            "N",
            "repetitions of the cross-validation that compare the best candidates (default 1)",
        ),
        "--seed": (arguments.integer(0, 2**32 - 1), 0, "N", "random seed (default 0)"),
        "--n-jobs": (
            arguments.jobs,
            None,
            "N",
            "processes that evaluate candidates (-1: one per core; default: one per core, at most "
            f"{_MAX_PROCESSES}, from {_MANY_TRIALS} trials on with a model that is trained here, "
            f"else 1). Without this option, forests are fitted on all cores from {_LARGE:,} values "
            "on",
        ),
    }


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    begin = time.perf_counter()
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    use_earlier_options(options)
    notes = output.Notes(options.quiet)
    _check_usage(options)
    _set_reference(options)
    check_output(options)
    if not options.quiet and sys.stderr.isatty():  # imports take a while
        sys.stderr.write(f"reading {arguments.without_passwords(options.data)} ...\n")
    model_file = None
    if not (options.black_box in BLACK_BOX_NAMES or options.black_box.startswith(COMMAND)):
        from skescore.black_boxes import load_black_box

        model_file = load_black_box(options.black_box, trust=options.trust)
        if not _is_source(options.data):
            options.labels = [*options.labels, *_null_classes(model_file)]
    stored = _draw_sample(options, notes) if _is_source(options.data) else None
    options.explains_labels = False
    earlier = None if options.from_run is None else EarlierRun.load(options.from_run)
    dataset = _data(options, model_file, earlier) if stored is None else stored.dataset
    _choose_extractors(options, dataset, notes)
    arguments.check_features(dataset, options.features)
    test = _test_rows(options, dataset, model_file, notes)
    suspicions = _find_table_suspicions(dataset, test)
    if model_file is not None:
        _check_labels(options, model_file)
        # A fitted model knows the classes by their old names.
        suspicions = [
            replace(one, options=()) if one.options[:1] == ("--labels",) else one
            for one in suspicions
        ]
    command = shown_command_line(options.command_line)
    for suspicion in suspicions:
        notes.warn(suspicion.with_command(command))
    notes.add_findings(dataset.name, dataset.findings)
    model, about_model = _black_box(options, dataset, model_file)
    from skescore.report import alternatives_record
    from skescore.suspicions import count_reports

    if options.workers == 0:
        _search(
            options,
            dataset,
            model,
            notes,
            TrialStorage(options.storage, study_name(options, dataset)),
        )
        return ""
    with (
        output_folder(options),
        kept_trials(options, dataset, about_model, notes) as trial_storage,
    ):
        search = _search(options, dataset, model, notes, trial_storage)
        with notes.instead_of_warnings():
            finalists, idle = _select_best(options, dataset, search, stored)
            revision = None if earlier is None else earlier.revise(options, search)
            verified = verify_winner(options, search)
            all_rows = None
            if stored is not None:
                try:
                    all_rows = _evaluate_all_rows(options, search, stored)
                except _StoredDifferentlyError:
                    notes.add(_SAMPLE_ONLY)
        of_results = _result_suspicions(search)
        for suspicion in of_results:
            text = suspicion.with_command(command)
            notes.warn(text, is_shown=options.format == "json")
        suspicions += of_results
        shortcomings = _shortcomings(dataset, search, idle)
        for sentence in shortcomings:
            notes.add(sentence, is_shown=options.format == "json")
        baseline = make_baseline(options, search, test, notes)
        result = _result(options, dataset, search) | {"notes": notes.texts}
        result["best"]["shortcomings"] = shortcomings
        result["suspicions"] = [suspicion.with_command(command) for suspicion in suspicions]
        result["checks"] = count_reports(suspicions)
        result["black_box"] |= about_model
        if verified is not None:
            result["verification"] = choice_record(verified)
        if revision is not None:
            result["revision"] = revision_record(revision, options.from_run)
        if all_rows is not None:
            result["all_rows"] = all_rows | {"finalists": finalists}
        if test is not None:
            result["test"] = _tested(search, test)
        result["alternatives"] = alternatives_record(search)
        result["run"] |= {"started": started, "seconds": round(time.perf_counter() - begin, 3)}
        certificate = (
            None if options.certify is None else _certificate(options, dataset, search, notes)
        )
        if certificate is not None:
            result["certificate"] = certificate.to_text().split("\n")
        if options.output is not None:
            write_files(options, search, result, certificate, baseline)
            write_verification(options, verified)
    write_page(options, dataset, model)
    _report_limits(options, search)
    if options.format == "json":
        return _json(search, result)
    text = tune_text(options, dataset, search, result)
    if verified is not None:
        text += f"\n{choice_text(verified)}\n"
    return text if revision is None else f"{text}\n{_revision_text(options, revision)}"


def _revision_text(options: argparse.Namespace, revision: Revision) -> str:
    """Write which rules of the earlier run were kept, which were not, and why."""
    printer = output.Printer(options.format == "markdown")
    printer.heading(f"revision of {options.from_run}")
    for line in str(revision).split("\n"):
        printer.line(f"- {line}.")
    return printer.text()


def _find_table_suspicions(dataset: Dataset, test: Dataset | None) -> list[Suspicion]:
    """Return everything suspicious about the rows of the search and of the test."""
    from skescore.suspicions import TableFacts, find_suspicions

    facts = TableFacts(
        dataset.X,
        dataset.y,
        dataset.task,
        groups=dataset.groups,
        is_shuffled=dataset.times is None,
        identifiers=dataset.identifiers,
        test=None if test is None else test.X,
    )
    return find_suspicions(facts)


def _result_suspicions(search: ExtractorSearchCV) -> list[Suspicion]:
    """Return everything suspicious about the result of the search."""
    from skescore.suspicions import SUSPICION_CHECKS, ResultFacts

    names = {check.name for check in SUSPICION_CHECKS if check.facts is ResultFacts}
    return [suspicion for suspicion in search.suspicions_ if suspicion.name in names]


def _report_limits(options: argparse.Namespace, search: ExtractorSearchCV) -> None:
    """Set the exit code, and write an error with --quiet, if no candidate keeps the limits."""
    board = search.leaderboard_
    complete = board[board["state"] == "complete"]
    if "within_limits" not in board or complete["within_limits"].astype(bool).any():
        return
    options.exit_code = 1
    if options.quiet:  # otherwise the note of the search says so
        sys.stderr.write(
            f"skescore: error: no candidate satisfies {_stated_limits(options)}; the best of all "
            "is shown. Allow more, or try more candidates with --trials.\n"
        )


def _select_best(
    options: argparse.Namespace,
    dataset: Dataset,
    search: ExtractorSearchCV,
    stored: _StoredSample | None,
) -> tuple[list[dict[str, Any]] | None, Sequence[str]]:
    """Select the best candidate; return finalists compared on all rows, and idle features."""
    finalists = None
    if stored is not None and options.pick is None:
        finalists = _compare_finalists(options, search, stored)
    if options.pick is None:
        return finalists, search.avoid_idle_features()
    _pick(options, dataset, search)
    return finalists, search.best_extractor_.features_without_influence(dataset.X)


def _certificate(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV, notes: output.Notes
) -> Certificate:
    """Prove how far the rules are from the best possible ones on all rows."""
    from skescore.certificates import certify
    from skescore.optimal import SolverLimits

    scoring: Any = arguments.scorer_from(options)
    certificate = certify(
        search,
        dataset.X,
        dataset.y if options.reference == "data" else None,
        scoring=scoring,
        tolerance=options.tolerance,
        sample_weight=arguments.class_weights_from(options, dataset),
        limits=SolverLimits(time_limit=0.7 * options.certify),
    )
    try:  # the search itself weights classes
        limits = SolverLimits(time_limit=0.3 * options.certify)
        return certificate.with_held_out(search, limits=limits)
    except ValueError as error:  # the proof remains valid
        notes.add(f"the best rules found are not measured on held-out rows: {error}")
        return certificate


def _set_reference(options: argparse.Namespace) -> None:
    """Replace the default reference: the black box if it is not trained here, else the data."""
    is_trained_here = options.black_box in BLACK_BOX_NAMES
    is_fidelity, is_front = options.scoring == FIDELITY_SCORER_NAME, options.scoring == "pareto"
    default = "data" if is_trained_here and not is_fidelity else "black-box"
    if options.reference not in (None, default) and (is_fidelity or is_front):
        options.parser.error(
            f"argument --reference: --scoring {options.scoring} compares with the {default} here; "
            "leave it out"
        )
    if options.reference is None:
        is_database = "://" in options.data and not is_fidelity
        options.reference = "data" if is_database else default


def _check_usage(options: argparse.Namespace) -> None:
    """Report options that exclude each other, before any data are read."""
    check_revision_options(options)
    check_verification_options(options)
    arguments.check_split_options(options)
    arguments.check_row_options(options)
    if options.extractors is not None and options.trials < len(options.extractors):
        options.parser.error(
            f"argument --trials: must be at least one per extractor ({len(options.extractors)}), "
            f"got {options.trials}"
        )
    if options.certify is not None and options.scoring not in (*SCORE_SPECS, "pareto"):
        options.parser.error(
            f"argument --certify: there is no proof for --scoring {options.scoring}; choose one of "
            f"{', '.join(SCORE_SPECS)}, pareto"
        )
    if options.tolerance is not None and options.certify is None:
        options.parser.error("argument --tolerance: goes with a proof; add --certify SECONDS")
    if options.workers == 0 and options.storage is None:
        options.parser.error("argument --workers: 0 joins a search, whose --storage is needed")
    if options.storage is not None and options.fresh:
        options.parser.error(
            "argument --fresh: discards trials in --output or in the cache; for a --storage, "
            "name another --study"
        )


def _pick(options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV) -> None:
    """Select the candidate of ``--pick`` as the best."""
    front = search.pareto_front_
    if options.pick > len(front):
        raise ValueError(
            f"--pick {options.pick}: the trade-off has only {plural(len(front), 'row')}. "
            f"Pass --pick 1 to --pick {len(front)}."
        )
    search.choose(front.iloc[options.pick - 1])


def _shortcomings(dataset: Dataset, search: ExtractorSearchCV, idle: Sequence[str]) -> list[str]:
    """Return sentences on shortcomings of the black box and of the best rules.

    `idle` are features of the rules whose permutation changes no output of the black box.
    """
    from skescore.tuning import MAX_PERMUTED_ROWS

    shortcomings = _weak_predictions(dataset, search)
    if idle:
        n_rows = min(len(dataset.X), MAX_PERMUTED_ROWS)
        bound = percentage(min(1.0, 3 / n_rows), digits=2)
        shortcomings.append(
            f"these rules name {', '.join(idle)}, but permuting the values changes no output of "
            f"the black box on {n_rows} rows (with 95 % confidence, at most {bound} of its outputs "
            "depend on them), so a correlated feature decides: name other columns with --features, "
            "or leave it out with --drop"
        )
    return shortcomings


def _weak_predictions(dataset: Dataset, search: ExtractorSearchCV) -> list[str]:
    """Compare the predictions of the black box and of the rules with a constant."""
    import numpy as np
    import pandas as pd
    from sklearn.metrics import f1_score, r2_score
    from sklearn.utils.class_weight import compute_sample_weight

    from skescore.suspicions import similar_class_names

    y, target = dataset.y, dataset.y.name
    predicted = pd.Series(search.predict(dataset.X), index=y.index)
    quality = search.black_box_quality_
    if dataset.task == "regression":
        shortcomings = []
        if quality["r2"] > 0 and r2_score(y, predicted.fillna(y.mean())) <= 1e-9:
            shortcomings.append(
                f"these rules predict {target} no better than its mean: allow more rules, or "
                "--scoring neg_root_relative_squared_error"
            )
        return shortcomings
    counts = sorted(dataset.class_counts.items(), key=lambda item: -item[1])
    # The score of a constant prediction depends on the class weights of the search.
    weights = compute_sample_weight(search.class_weight, y)
    shares = {name: round(np.average(y == name, weights=weights), 9) for name, _ in counts}
    label, share = max(shares.items(), key=lambda item: item[1])
    constant_f1 = share * 2 * share / (1 + share)
    is_better = quality["accuracy"] > share + 1e-9
    if any(one.name == "no_better_than_constant" for one in search.suspicions_):
        return []  # neither is the black box
    shortcomings = []
    is_correct = predicted.to_numpy() == y.to_numpy()
    if is_better and float(np.average(is_correct, weights=weights)) <= share + 1e-9:
        balanced = f1_score(
            y.astype(str), predicted.astype(str), average="weighted", sample_weight=weights
        )
        if balanced <= constant_f1 + 1e-9:
            shortcomings.append(
                f"these rules predict {target} no better than always {label!r}: allow more rules, "
                "or try --scoring balanced_accuracy"
            )
    misspelled = similar_class_names(y)  # reported as such
    missing_classes = [
        f"{name!r} ({plural(count, 'row')})"
        for name, count in counts
        if not (predicted == name).any() and str(name) not in misspelled
    ]
    if missing_classes:
        shortcomings.append(
            f"these rules never predict {', '.join(missing_classes[:_MAX_CLASSES])}: allow more "
            "rules, or try --performance balanced_accuracy"
        )
    return shortcomings


#: Default number of rows of a sample.
_SAMPLE = 20_000
_SAMPLE_ONLY = (
    "the rules are evaluated on the sample only, not on all rows, because columns are not stored "
    "as they are read (dates, words for missing values, numbers in texts, rows that are left out); "
    "convert them in the source, or leave them out with --drop"
)


def _is_source(data: str) -> bool:
    """Return whether the data are a data source; a folder must contain Parquet files."""
    if data in DATA_SET_TASKS or not arguments.lies_elsewhere(data):
        return False
    folder = at_home(data)
    return not folder.is_dir() or any(folder.rglob("*.parquet"))


def _draw_sample(options: argparse.Namespace, notes: output.Notes) -> _StoredSample:
    """Draw a sample of a data source, and read it as a table."""
    from skescore.sources import DataSource, sample_source
    from skescore.tuning import N_FINALISTS

    if options.target is None:
        options.parser.error("a data source needs --target COLUMN")
    for name in ("labels", "drop_duplicates"):
        if getattr(options, name):
            options.parser.error(
                f"argument --{name.replace('_', '-')}: needs a single table; the rows of a data "
                "source stay as they are stored. Leave it out, or change them in a view"
            )
    if options.reference != "data" and "://" in options.data:
        options.parser.error(
            "--reference black-box: a database hands over no rows to be predicted; store the "
            "predictions in a column and name it as --target, or export the table to Parquet"
        )
    settings: dict[str, Any] = {
        "n_rows": options.sample or _SAMPLE,
        "random_state": options.seed,
        "least_per_class": 0,
    }
    source_name = arguments.without_passwords(options.data)
    task = "classification" if options.task == "auto" else options.task
    try:
        sample = sample_source(options.data, options.target, task=task, **settings)
    except ValueError as error:
        if options.task != "auto" or "different" not in str(error):
            raise
        sample = sample_source(options.data, options.target, task="regression", **settings)
    dataset = arguments.data_from(options, data=sample.frame)
    n_drawn = sum(drawn for drawn, _ in sample.strata.values())
    if n_drawn < sample.n_rows:
        groups = ", ".join(
            f"{percentage(share, digits=2)} of {'the rows' if name is None else repr(name)}"
            for name, share in sample.missed().items()
        )
        notes.add(
            f"the search uses a sample of {n_drawn} of the {sample.n_rows} rows of {source_name}; "
            f"the best {N_FINALISTS} candidates are compared on all rows; with 95 % confidence, "
            f"the sample misses no group chosen beforehand that has more than {groups}"
        )
    dataset = replace(dataset, name=source_name, source=source_name)
    source = DataSource(options.data, options.target, n_jobs=options.n_jobs)
    return _StoredSample(source, sample.frame, dataset)


class _StoredDifferentlyError(Exception):
    """Rows of a data source are stored in another form than they were read for the search."""


@dataclass(frozen=True)
class _StoredSample:
    """Rows of a data source, of which a sample was read for the search.

    Parameters
    ----------
    source : DataSource
        All rows as they are stored.
    frame : DataFrame
        The sample as it is stored.
    dataset : Dataset
        The sample as it was read.
    """

    source: DataSource
    frame: pd.DataFrame
    dataset: Dataset

    def count_rows(self, rules: RuleSet, black_box: Any = None) -> RuleCounts:
        """Count all rows; raise an error if the rules have other counts on the stored sample.

        A data source does not parse dates, words for missing values, or numbers in texts.
        """
        if not self._counts_agree(rules, black_box):
            raise _StoredDifferentlyError
        return self.source.count_rows(rules, black_box)

    def _counts_agree(self, rules: RuleSet, black_box: Any) -> bool:
        """Return whether rules have the same counts on stored rows as on rows that were read."""
        import numpy as np

        dataset, target = self.dataset, self.dataset.y.name
        labeled_rows = self.frame[self.frame[target].notna()]
        try:
            with warnings.catch_warnings():
                # The counts reveal comparisons of texts with numbers.
                warnings.simplefilter("ignore")
                counts = []
                for X, y in ((dataset.X, dataset.y), (labeled_rows, labeled_rows[target])):
                    rows = X[list(rules.feature_names)]
                    if black_box is not None:
                        y = black_box.predict(rows)
                    labels = np.asarray(y, dtype=float if rules.task == "regression" else object)
                    counts.append(
                        Counter(zip(rules.assign(rows).tolist(), labels.tolist(), strict=True))
                    )
        except (KeyError, TypeError, ValueError):
            return False
        return counts[0] == counts[1]


def _evaluate_all_rows(
    options: argparse.Namespace, search: ExtractorSearchCV, stored: _StoredSample
) -> dict[str, Any]:
    """Evaluate the rules on all rows of the data source."""
    from skescore.scorers import evaluate_rules

    black_box = None if options.reference == "data" else search.best_extractor_.estimator_
    counts = stored.count_rows(search.rules_, black_box)
    evaluation = evaluate_rules(search.rules_, counts)
    scores = arguments.knowledge_scorer_from(options).score(evaluation)
    measure = "accuracy" if search.rules_.task == "classification" else "r2"
    return {
        "rows": sum(counts.n_rows),
        "scores": {
            name: spec.signed(scores[spec.scorer_name]) for name, spec in SCORE_SPECS.items()
        },
        measure: evaluation.performance(measure, "penalize"),
        "completeness_instances": scores["completeness_instances"],
    }


def _compare_finalists(
    options: argparse.Namespace, search: ExtractorSearchCV, stored: _StoredSample
) -> list[dict[str, Any]] | None:
    """Select the finalist that is best on all rows; return None if counts cannot decide."""
    try:
        finalists = search.compare_on_source(stored)
    except _StoredDifferentlyError:
        return None
    if finalists is None:
        return None
    finalists["score"] *= sign(options)
    records: list[Any] = finalists.to_dict(orient="records")
    return records


def _print_all_rows(
    printer: output.Printer, options: argparse.Namespace, result: dict[str, Any]
) -> None:
    """Write the evaluation on all rows."""
    name = "accuracy" if "accuracy" in result else "r2"
    scores = ", ".join(
        f"{SCORE_SPECS[score].label} {output.number(value, 4)}"
        for score, value in result["scores"].items()
    )
    printer.line(
        f"on all {plural(result['rows'], 'row')}: {metric_label(name)} "
        f"{output.number(result[name])}, completeness by rows "
        f"{output.number(result['completeness_instances'])}, {scores}"
    )
    if (finalists := result["finalists"]) is not None and len(finalists) > 1:
        finalist_list = ", ".join(
            f"{extractor_label(f['extractor'])} with {plural(f['n_rules'], 'rule')} "
            f"{output.number(f['score'], 4)}"
            for f in finalists
        )
        printer.line(f"finalists on all rows: {finalist_list}")


def _test_rows(
    options: argparse.Namespace, dataset: Dataset, model: Any, notes: output.Notes
) -> Dataset | None:
    """Read the rows of ``--test`` like the others, before the long search."""
    if options.test is None:
        return None
    from skescore.black_boxes import is_unsupervised

    if is_unsupervised(model):
        return labeled(options, model, options.test, dataset.preparation)
    test = arguments.data_from(
        options,
        data=options.test,
        task=dataset.task,
        features=list(dataset.X.columns),
        preparation=dataset.preparation,
    )
    if options.drop_duplicates:
        test = test.without_rows_of(dataset)
    notes.add_findings(options.test, test.findings)
    class_counts = dataset.class_counts
    unknown = {
        label: count for label, count in test.class_counts.items() if label not in class_counts
    }
    unknown_list = ", ".join(sorted(map(repr, unknown)))
    if unknown and len(unknown) == len(test.class_counts):
        raise ValueError(
            f"--test {options.test}: none of the labels of {options.target} ({unknown_list}) is a "
            f"class of {dataset.name} ({', '.join(map(repr, class_counts))}). Write them alike; a "
            "single text among numbers makes all of them texts."
        )
    if unknown:
        notes.add(
            f"{plural(sum(unknown.values()), 'row')} of {options.test} of classes that "
            f"{dataset.name} does not have: {unknown_list}"
        )
    return test


def _tested(search: ExtractorSearchCV, test: Dataset) -> dict[str, Any]:
    """Evaluate the best rules and the black box on the test rows."""
    from sklearn.metrics import accuracy_score, r2_score

    best = search.best_extractor_
    measure = accuracy_score if test.task == "classification" else r2_score
    return {
        "source": test.source,
        "checksum_sha256": test.checksum,
        "rows": len(test.X),
        "fidelity": best.fidelity(test.X),
        "rules": best.score(test.X, test.y),
        "black_box": float(measure(test.y, best.oracle_.query(test.X))),
        "completeness_instances": float(search.rules_.covers(test.X).mean()),
    }


def _choose_extractors(options: argparse.Namespace, dataset: Dataset, notes: output.Notes) -> None:
    if options.extractors is None:
        suitable = suitable_extractors(
            dataset.task, categories=bool(dataset.categories), n_rows=len(dataset.X)
        )
        options.extractors = suitable[: options.trials]
        if left_out := suitable[options.trials :]:
            notes.add(
                f"with {plural(options.trials, 'trial')} these extractors are not tried: "
                f"{', '.join(left_out)}"
            )


def _data(options: argparse.Namespace, model: Any, earlier: EarlierRun | None) -> Dataset:
    """Load the data; for a model file, the columns of the model with all their categories."""
    if earlier is not None:
        return earlier.read(options)
    from skescore.black_boxes import is_unsupervised
    from skescore.datasets import DatasetError

    if options.outputs:
        _check_outputs(options, model)
    if model is None:
        return arguments.data_from(options)
    if is_unsupervised(model):
        options.explains_labels = True
        return labeled(options, model, options.data)
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        with contextlib.suppress(DatasetError):  # the error of the table names all differences
            return arguments.data_from(
                options, features=list(map(str, names)), max_categories=sys.maxsize
            )
    return arguments.data_from(options, max_categories=sys.maxsize)


def _check_outputs(options: argparse.Namespace, model: Any) -> None:
    """Check --outputs, and drop the columns of outputs that are not explained."""
    from skescore.black_boxes import is_unsupervised

    if model is None or is_unsupervised(model):
        options.parser.error("argument --outputs: goes with --black-box FILE, whose model has them")
    if options.target not in options.outputs:
        raise ValueError(
            f"--target must be one of --outputs {','.join(options.outputs)}, got "
            f"{options.target!r}: it says which of them is explained."
        )
    columns = set(read_table(options.data, options).columns)
    unexplained = [name for name in options.outputs if name != options.target and name in columns]
    options.drop = [*options.drop, *unexplained]


def _null_classes(model: Any) -> list[tuple[str, str]]:
    """Return the classes of a model that are written like missing values, as pairs of --labels."""
    from skescore.datasets import Preparation

    return list(Preparation(()).with_classes(getattr(model, "classes_", ())).labels.items())


def _check_labels(options: argparse.Namespace, model: Any) -> None:
    """Report --labels for a fitted model that predicts the old names."""
    if not options.labels:
        return
    from skescore.black_boxes import is_unsupervised

    if is_unsupervised(model):
        options.parser.error("argument --labels: the labels come from the model, not from a column")
    predicted = set(map(str, getattr(model, "classes_", ())))
    for old, new in options.labels:
        if old in predicted and old != new:
            options.parser.error(
                f"argument --labels: {options.black_box} predicts {old!r}, and would still do so; "
                "rename the class in the table and fit the model again, or leave out --labels"
            )


def labeled(
    options: argparse.Namespace, model: Any, data: str, preparation: Preparation | None = None
) -> Dataset:
    """Load rows with the labels of a clusterer or outlier detector as their target."""
    import pandas as pd

    from skescore.extractors import Oracle

    names = getattr(model, "feature_names_in_", None)
    unlabeled = arguments.unlabeled_data_from(
        options,
        data=data,
        features=None if names is None else list(map(str, names)),
        preparation=preparation,
    )
    y = pd.Series(Oracle(model).query(unlabeled.X), index=unlabeled.X.index, name="label")
    if y.nunique() < 2:
        raise ValueError(
            f"The black box {options.black_box} gives all {len(y)} rows of {data} the label "
            f"{y.iloc[0]!r}, so there is nothing to explain. Pass other rows."
        )
    return replace(unlabeled, y=y, task="classification")


def chosen_output(model: Any, dataset: Dataset, outputs: Sequence[str] | None) -> Any:
    """Return the model from a file, or its output that predicts the target."""
    from skescore.black_boxes import (
        CallableClassifier,
        check_matches,
        is_unsupervised,
        select_output,
    )
    from skescore.extractors import Oracle

    if is_unsupervised(model):
        return CallableClassifier(Oracle(model).query, classes=list(dataset.class_counts))
    if not outputs:
        check_matches(model, dataset)
        return model
    output_index = list(outputs).index(str(dataset.y.name))
    check_matches(model, dataset, output=output_index)
    return select_output(model, output_index)


def _black_box(
    options: argparse.Namespace, dataset: Dataset, model: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the black box and the description of its file for the result."""
    from skescore.black_boxes import (
        CallableClassifier,
        CallableRegressor,
        CommandFunction,
        is_unsupervised,
        make_black_box,
        model_checksum,
    )

    name = options.black_box
    if name.startswith(COMMAND):
        function = CommandFunction(name.removeprefix(COMMAND))
        if dataset.task == "classification":
            return CallableClassifier(function, classes=list(dataset.class_counts)), {}
        return CallableRegressor(function), {}
    if model is None:
        return make_black_box(name, dataset.task, options.seed, dataset.categories), {}
    about: dict[str, Any] = {"checksum_sha256": model_checksum(name)}
    if options.outputs:
        about["outputs"] = options.outputs
    if is_unsupervised(model):
        about["labels"] = True
    return chosen_output(model, dataset, options.outputs), about


def splitter(dataset: Dataset, cv: int, seed: int, notes: output.Notes) -> Any:
    """Make folds: in the order of time, of whole groups, or shuffled.

    Shuffled folds and groups are stratified if a class has enough rows.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    from skescore._splitters import make_group_splitter, make_time_splitter

    n_rows = len(dataset.X)
    if dataset.times is not None:
        return make_time_splitter(cv, n_rows)
    if dataset.groups is not None:
        labels = dataset.y if dataset.class_counts else None
        return make_group_splitter(cv, dataset.groups, labels, random_state=seed)
    if cv > n_rows:
        raise ValueError(
            f"--cv {cv} asks for more folds than {dataset.name} has rows ({n_rows}). Pass at most "
            f"--cv {n_rows}."
        )
    counts = dataset.class_counts
    if not counts or max(counts.values()) < cv:
        return KFold(cv, shuffle=True, random_state=seed)
    rare = [f"{label!r} ({count})" for label, count in counts.items() if count < cv]
    if rare:
        more = f" and {len(rare) - _MAX_CLASSES} more" if len(rare) > _MAX_CLASSES else ""
        notes.add(
            f"classes with fewer rows than the {cv} folds: {', '.join(rare[:_MAX_CLASSES])}"
            f"{more}; some folds are without them"
        )
    return StratifiedKFold(cv, shuffle=True, random_state=seed)


def _make_search(
    options: argparse.Namespace,
    dataset: Dataset,
    model: Any,
    trial_storage: TrialStorage,
    folds: Any,
    progress: SearchProgress,
) -> ReportingSearch:
    """Make the search with the options of the command."""
    from skescore.cli._progress import FirstRules, ReportingSearch

    limits = {limit: getattr(options, limit) for limit in limited_quantities()}
    first_rules = FirstRules(label(options), sign(options), limits)
    search = ReportingSearch(
        model,
        extractors=options.extractors,
        scoring=arguments.search_scoring_from(options),
        n_trials=options.trials,
        timeout=options.timeout,
        cv=folds,
        measures=options.measures,
        allocation=options.allocation,
        n_repeats=options.repeats,
        class_weight=options.class_weight,
        features=options.features,
        constraints=constraints_from(options, dataset.X, dataset.y),
        **limits,
        refit=options.workers != 0,
        n_jobs=_n_processes(options),
        random_state=options.seed,
        storage=trial_storage.storage,
        study_name=trial_storage.study,
        callbacks=[progress] if options.quiet else [progress, first_rules],
    )
    if options.n_jobs is None and _is_alone(options):
        search.fit_forests_by(-1 if dataset.X.size >= _LARGE else 1)
    return search


def _is_alone(options: argparse.Namespace) -> bool:
    """Return whether the search has the machine to itself, and trains a model that we know."""
    return options.workers == 1 and options.black_box in BLACK_BOX_NAMES


def _n_processes(options: argparse.Namespace) -> int:
    """Return the number of processes that evaluate candidates."""
    from joblib import cpu_count

    if options.n_jobs is not None or options.trials < _MANY_TRIALS or not _is_alone(options):
        return options.n_jobs or 1
    return min(cpu_count(), _MAX_PROCESSES)


def _search(
    options: argparse.Namespace,
    dataset: Dataset,
    model: Any,
    notes: output.Notes,
    trial_storage: TrialStorage,
) -> ExtractorSearchCV:
    from skescore.suspicions import SuspiciousDataWarning
    from skescore.tuning import SearchProgress

    folds = splitter(dataset, options.cv, options.seed, notes)
    n_left = max(options.trials - note_earlier(trial_storage, options.extractors, notes), 0)
    progress = SearchProgress(n_left, label(options), sign(options), enabled=not options.quiet)
    progress.activity = "checking the rows"
    search = _make_search(options, dataset, model, trial_storage, folds, progress)
    if not options.quiet:
        search.announce_black_boxes(options)
    # Rare classes are reported in a separate note with their names.
    # A constant is reported by its shortcomings, and the alternatives are printed.
    ignored = ("The least populated class", "The best candidate by .* is a constant")
    with notes.instead_of_warnings(*ignored) as further:
        warnings.simplefilter("ignore", SuspiciousDataWarning)  # reported before the notes
        try:
            with Workers(options, trial_storage, notes), progress:
                # Labels of a clusterer or outlier detector are no data of their own.
                y = None if options.explains_labels else dataset.y
                search.fit(dataset.X, y, groups=dataset.groups)
        except KeyboardInterrupt:
            if not hasattr(search, "best_extractor_"):
                raise
            options.exit_code = 1
            notes.add(
                f"interrupted after {_count_budgeted(search)} of "
                f"{plural(options.trials, 'trial')}; repeat the command for the others"
            )
        except ValueError as error:
            n_rows = len(dataset.X)
            if n_rows - math.ceil(n_rows / options.cv) >= _FEW_ROWS:
                raise
            complaint = str(error).rstrip(".")
            raise ValueError(
                f"{complaint}. There are only {n_rows} rows, to be split into {options.cv} folds: "
                "more rows are needed, or another --black-box."
            ) from error
        if options.workers:
            further += _winners_warnings(search)
    _note_search(options, dataset, search, notes)
    return search


def _note_search(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV, notes: output.Notes
) -> None:
    """Report sampling, failed trials and trials that were not started."""
    if search.n_rows_sampled_ is not None:
        notes.add(
            f"candidates were evaluated on a sample of {search.n_rows_sampled_} of the "
            f"{len(dataset.X)} rows, and the best three then on all of them"
        )
    board = search.leaderboard_
    failed = board[board["state"].isin(_WITHOUT_SCORE) & ~_is_stopped(board)]
    if len(failed):
        error_text = failed["error"].iloc[0]
        reason = error_text.partition("undefined on some fold: ")[2] or error_text
        # The remedy in Python does not apply to the command line.
        reason = reason.partition(" Pass undefined=...")[0]
        first = ", the first" if len(failed) > 1 else ""
        notes.add(
            f"{len(failed)} of {plural(len(board), 'candidate')} gave no score{first}: "
            f"{textwrap.shorten(reason, 120, placeholder=' ...')}"
        )
    started = _count_budgeted(search)
    if started < options.trials and not options.exit_code:
        notes.add(f"{started} of {options.trials} trials were started within the --timeout")


def _count_budgeted(search: ExtractorSearchCV) -> int:
    """Count the finished trials of the budget, which does not include the baselines."""
    from skescore.tuning.runner import counts

    return sum(
        trial.state.is_finished() and counts(trial)
        for study in search.studies_.values()
        for trial in study.get_trials(deepcopy=False)
    )


def _winners_warnings(search: ExtractorSearchCV) -> list[str]:
    """Return the warnings of the best candidate only."""
    row = search.leaderboard_.iloc[0]
    # Two workers may run equal trials, of which one is a candidate.
    repeats = [
        one
        for one in search.candidates_
        if one.extractor == row["extractor"] and one.params == row["params"]
    ]
    return [text for one in repeats[:1] for fold in one.folds for text in fold.warnings]


def _result(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV
) -> dict[str, Any]:
    """Return the complete result except the leaderboard and the rules."""
    best, board = search.best_extractor_, search.leaderboard_
    return {
        "data": arguments.describe_data(options, dataset),
        "black_box": {
            "name": options.black_box,
            "trained_here": options.black_box in BLACK_BOX_NAMES,
            "quality": search.black_box_quality_,
        },
        "search": {
            # As in Python, scores are maximized, so that FiRe and Q are negated.
            "scoring": scoring_name(options),
            "weights": arguments.weights_from(options),
            "completeness": options.completeness,
            "reference": options.reference,
            "extractors": list(options.extractors),
            "allocation": options.allocation,
            "stopped": search.stopped_,
            "trials": len(board),
            "trials_failed": _count_failed(board),
            "trials_stopped": _count_stopped(board),
            "cv": options.cv,
            "repeats": options.repeats,
            "groups": options.groups,
            "time": options.time,
            "class_weight": options.class_weight,
            "seed": options.seed,
            "timeout": options.timeout,
            "performance": options.performance,
            "measures": list(options.measures),
            "features": options.features,
            **_constraints_record(search),
            "n_trials": options.trials,
            "pick": options.pick,
            "certify": options.certify,
            "verify": options.verify,
            "tolerance": options.tolerance,
            **{name: getattr(options, name) for name in limited_quantities()},
            "seconds": round(search.search_seconds_, 3),
            "query_cost": dataclasses.asdict(search.query_cost_),
        },
        "best": {
            "extractor": search.best_name_,
            "params": search.best_params_,
            "score": search.best_score_,
            "n_rules": len(search.rules_),
            "fidelity": best.fidelity(dataset.X),
            "completeness_volume": best.completeness_,
            "completeness_instances": float(best.rules_.covers(dataset.X).mean()),
        },
        "run": {
            "command_line": shown_command_line(options.command_line),
            "options": _option_values(options),
            "versions": package_versions(),
            "platform": platform.platform(),
        },
    }


def _option_values(options: argparse.Namespace) -> dict[str, Any]:
    """Return the value of each option of the command, also of those that were not given."""
    from skescore.tuning.storage import storage_name

    values = {}
    for name in options.parser.option_names:
        value = getattr(options, name)
        if name == "storage" and value is not None:
            value = storage_name(value)
        elif isinstance(value, str):
            value = arguments.without_passwords(value)
        elif isinstance(value, Path):
            value = str(value)
        values[name] = value
    return values


def _constraints_record(search: ExtractorSearchCV) -> dict[str, Any]:
    """Return the constraints, and how the winner satisfies them; nothing without constraints."""
    if search.constraints is None:
        return {}
    outcomes = getattr(search.best_extractor_, "constrained_rules_", None)
    return {
        "constraints": json.loads(search.constraints.to_json()),
        "constraint_outcomes": {} if outcomes is None else dict(outcomes.outcomes),
    }


def _print_constraints(printer: output.Printer, search: ExtractorSearchCV) -> None:
    """Print how the winner satisfies the constraints, and how many candidates could not."""
    result = getattr(search.best_extractor_, "constrained_rules_", None)
    if result is None:
        return
    printer.line("constraints:")
    for line in str(result).splitlines():
        printer.line(f"  {line}")
    n_rejected = int(search.leaderboard_["error"].str.startswith("No rules were obtained").sum())
    if n_rejected:
        printer.line(f"  {plural(n_rejected, 'candidate')} could not be repaired")


def _json(search: ExtractorSearchCV, result: dict[str, Any]) -> str:
    board = search.leaderboard_.to_dict(orient="records")
    rules = json.loads(search.rules_.to_json(indent=None))
    return output.json_for_stdout(result | {"leaderboard": board, "rules": rules})
