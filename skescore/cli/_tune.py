"""``skescore tune``: find the best rules for a black box."""

from __future__ import annotations

import argparse
import datetime
import math
import sys
from pathlib import Path
from typing import Any

from skescore._io import expand_home, json_of
from skescore._names import (
    BLACK_BOX_NAMES,
    FIDELITY_SCORER_NAME,
    MODEL_KINDS_TEXT,
    SET_SCORER_NAMES,
)
from skescore._processes import SEARCH_MODULES, start_helpers
from skescore._quantities import MAX_DISAGREEMENT, limited_quantities
from skescore._scores import SCORE_SPECS
from skescore._text import did_you_mean
from skescore.cli import _arguments as arguments
from skescore.cli._arguments import (
    COMMAND,
    KEEP_COST,
    OF_BLACK_BOX,
    OF_DATA,
    OF_EXTRACTORS,
    OF_FOLDER,
    OF_SCORING,
    VERIFY_SECONDS,
    add_constraint_options,
    add_standalone_option,
)
from skescore.cli._rule_files import (
    BASELINE,
    CERTIFICATE,
    FILES,
    VERIFICATION,
    add_report_option,
    check_folder,
)
from skescore.cli._trials import (
    LARGE_TABLE,
    MANY_TRIALS,
    MAX_PROCESSES,
    add_trial_options,
    n_processes,
)
from skescore.cli._tune_result import option_of
from skescore.registry import EXTRACTORS, SMALL_TABLE, extractor_names

DESCRIPTION = (
    "Train or load a model, search extractors and their hyperparameters for rules that explain "
    "it, and show the rules with the best score."
)
EXAMPLES = """\
examples:
  skescore tune wine --black-box random-forest --trials 60
  skescore tune houses.csv --target price --drop id --scoring fire --psi 3 --output run
  skescore tune iris --black-box model.skops --scoring fidelity --max-rules 8
  skescore tune 'sales/*.parquet' --target price --sample 50000
  skescore tune --from run --time date --since 2026-05-01 --output revised
"""


def black_box(text: str) -> str:
    """Read a name of a black box, a model file, or a command (argparse type)."""
    path = Path(text)
    if text in BLACK_BOX_NAMES or text.startswith(COMMAND):
        return text
    if path.suffix or path.name != text or path.exists():
        return text
    raise argparse.ArgumentTypeError(
        f"there is no model {text!r}, and no file of this name. "
        f"{did_you_mean(text, BLACK_BOX_NAMES)}"
    )


#: Help on data sources, for which the search uses a sample.
_ELSEWHERE = (
    "; or a data source, where the search uses a sample and the finalists are compared on all "
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
        help="table of further rows, read like DATA, on which the best rules are evaluated",
    )
    _add_black_box_options(parser.add_argument_group("model to explain (black box)"))
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
        help=f"write {', '.join(FILES)} and {BASELINE} (for `skescore watch`) to this folder",
    )
    group.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the files of an earlier run in the folder of --output",
    )
    add_report_option(group)
    add_standalone_option(group)
    arguments.add_quiet_option(group, "show errors only, without progress and notes")
    arguments.add_format_option(group)


def _add_black_box_options(group: Any) -> None:
    group.add_argument(
        "--black-box",
        type=black_box,
        default="random-forest",
        action=OF_BLACK_BOX,
        metavar="NAME|FILE|COMMAND",
        help=f"{', '.join(BLACK_BOX_NAMES)} (trained here; default random-forest), or a file with "
        f"a fitted model ({MODEL_KINDS_TEXT}, also of "
        "FLAML and statsmodels, and the folder of an AutoGluon predictor; for clusterers and "
        "outlier detectors, the rules explain their labels and --target is not needed), or "
        f"'{COMMAND} PROGRAM ARGUMENTS': a program that reads rows as CSV from standard input "
        "and writes one prediction per line to standard output",
    )
    group.add_argument(
        "--outputs",
        type=arguments.names_from,
        metavar="NAME,...",
        help="names of the outputs of a model file with several outputs, in the order of the "
        "model: the output named by --target is explained, and none of them is used as a feature",
    )
    arguments.add_trust_option(group)


def _add_search_options(group: Any) -> None:
    group.add_argument(
        "--extractors",
        action=OF_EXTRACTORS,
        type=lambda text: arguments.names_of(extractor_names(), "extractor")(text),
        metavar="NAME,...",
        help=f"any of {', '.join(EXTRACTORS)} (default: all that support the task and the columns, "
        f"but optimal-list and optimal-tree only for classification of up to {SMALL_TABLE:,} rows)",
    )
    group.add_argument(
        "--scoring",
        action=OF_SCORING,
        type=arguments.search_scoring,
        default="ice",
        metavar="SCORE",
        help=f"objective of the search (default ice): {', '.join(SCORE_SPECS)}, pareto (loss, "
        "number of rules and incompleteness together; the winner is the knee of the Pareto "
        f"front), other losses such as loss,n_rules,group_gap:COLUMN, {FIDELITY_SCORER_NAME} "
        "(agreement with the model, regardless of the number of rules, so set --max-rules), a "
        "measure of rules such as mean_rule_c2, or of predictions such as cohen_kappa",
    )
    group.add_argument(
        "--measures",
        type=arguments.rule_measures,
        default=(),
        metavar="NAME,...",
        help="further columns of the leaderboard: measures of single rules, such as "
        "min_rule_precision (c2 means mean_rule_c2), group_gap:COLUMN (the largest difference "
        "in the predictions between the groups of COLUMN), and measures of rule sets: "
        + ", ".join(name.removeprefix("neg_") for name in SET_SCORER_NAMES),
    )
    group.add_argument(
        "--allocation",
        choices=("halving", "even"),
        default="halving",
        help="halving (default) gives more trials to the best extractors, in rounds; even gives "
        "all extractors the same number of trials",
    )
    group.add_argument(
        "--reference",
        choices=("data", "black-box"),
        help="compare rules with the target (data) or with the model's predictions (black-box); "
        "default: data if the model is trained here or DATA is a database, otherwise black-box; "
        "--scoring fidelity always compares with the model",
    )
    group.add_argument(
        "--class-weight",
        choices=("balanced",),
        help="weight rows so that all classes have the same total weight when the model is "
        "fitted, rules are extracted and scores are computed",
    )
    group.add_argument(
        "--features",
        metavar="COLUMN,...",
        type=lambda text: [name for name in arguments.names_from(text) if name],
        help="columns that the rules may use (default: all); the model uses all columns",
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
        help="time to prove how far the rules are from the best possible rules on these rows; the "
        "best rules found in the proof are also evaluated on held-out rows; with --output, "
        f"{CERTIFICATE} contains the proof",
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
            "total number of candidates, in addition to trees of 1 to 32 leaves and, in regression,"
            " a linear equation (default 20)",
        ),
        "--timeout": (
            arguments.number_above(0),
            None,
            "SECONDS",
            "start no new candidates after this time and stop running ones; the time starts when "
            "the model is ready; one tree is always evaluated; results then depend on speed",
        ),
        "--max-queries": (
            arguments.integer(1),
            None,
            "N",
            "start no new candidates once the search has queried the model for this many rows; one "
            "tree is always evaluated; extracting the best rules is not counted",
        ),
        **{
            option_of(quantity.limit.parameter): (
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
            "select the candidate in row N of the trade-off instead of the best",
        ),
        "--cv": (arguments.integer(2), 5, "N", "folds of the cross-validation (default 5)"),
        "--repeats": (
            arguments.integer(0),
            1,
            "N",
            "repetitions of the cross-validation for the finalists (default 1)",
        ),
        "--seed": (arguments.integer(0, 2**32 - 1), 0, "N", "random seed (default 0)"),
        "--n-jobs": (
            arguments.jobs,
            None,
            "N",
            "processes that evaluate candidates; -1: one per core (default: 1; for at least "
            f"{MANY_TRIALS} trials with a model that is trained here, one per core, at most "
            f"{MAX_PROCESSES}). Without this option, forests are fitted on all cores if the table "
            f"has at least {LARGE_TABLE:,} values",
        ),
    }


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    begin = datetime.datetime.now(datetime.UTC)
    use_earlier_options(options)
    _check_usage(options)
    _set_reference(options)
    check_folder(options)
    if not options.quiet and sys.stderr.isatty():  # imports take a while
        sys.stderr.write(f"reading {arguments.without_passwords(options.data)} ...\n")
    # Other processes import the package while this one reads the table and fits the black box.
    start_helpers(n_processes(options), SEARCH_MODULES)
    from skescore.cli._tune_search import find_rules

    return find_rules(options, begin)


def _set_reference(options: argparse.Namespace) -> None:
    """Set the default reference: the black box if it is not trained here, else the data."""
    is_trained_here = options.black_box in BLACK_BOX_NAMES
    is_fidelity = options.scoring == FIDELITY_SCORER_NAME
    is_front = arguments.objectives_from(options) is not None
    default = "data" if is_trained_here and not is_fidelity else "black-box"
    if options.reference not in (None, default) and (is_fidelity or is_front):
        options.parser.error(
            f"argument --reference: --scoring {options.scoring} always uses --reference {default}; "
            "leave the option out"
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
    if options.certify is not None and arguments.trade_off_score(options) not in SCORE_SPECS:
        options.parser.error(
            f"argument --certify: not available for --scoring {options.scoring}; choose one of "
            f"{', '.join(SCORE_SPECS)}, pareto"
        )
    if options.tolerance is not None and options.certify is None:
        options.parser.error("argument --tolerance: needs a proof; add --certify SECONDS")
    if options.workers == 0 and options.storage is None:
        options.parser.error("argument --workers: 0 joins a search, so --storage is required")
    if options.storage is not None and options.fresh:
        options.parser.error(
            "argument --fresh: only discards trials in --output or in the cache; with --storage, "
            "name another --study"
        )


#: Options of an earlier run that are not repeated.
_NOT_REPEATED = (
    *("output", "overwrite", "report", "quiet", "format", "storage", "study", "workers"),
    *("fresh", "pick", "test", "certify", "tolerance", "from_run", "since", "keep_cost"),
    *("verify", "max_disagreement"),
)


def add_revision_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a revision."""
    group = parser.add_argument_group("revision of an earlier run")
    group.add_argument(
        "--from",
        dest="from_run",
        action=OF_FOLDER,
        type=Path,
        metavar="RUN",
        help="revise the rules in the folder of this run: rules whose error rate has risen on "
        "these rows are replaced, and all other rules are kept; DATA and options default to the "
        "values of that run",
    )
    group.add_argument(
        "--since",
        metavar="DATE",
        help="use only rows whose value of --time is this date or number, or later",
    )
    group.add_argument(
        "--keep-cost",
        type=_share,
        metavar="SHARE",
        help="largest loss of the held-out score due to kept rules, as a share of the score of "
        f"entirely new rules (default {KEEP_COST:g}); if the loss is larger, all rules are "
        "replaced",
    )


def _share(text: str) -> float:
    """Read a number of at least 0 (argparse type)."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of at least 0, got {text!r}")
    return value


def use_earlier_options(options: argparse.Namespace) -> None:
    """Set options that the user did not pass to their values in the earlier run."""
    if options.from_run is None:
        return
    data = options.data
    earlier = _earlier_options(options.parser, options.from_run)
    merged_options = options.parser.parse_args(options.command_line[2:], namespace=earlier)
    vars(options).update({k: v for k, v in vars(merged_options).items() if k != "command_line"})
    options.data = earlier.earlier_data if data is None else data
    del options.earlier_data


def _earlier_options(parser: argparse.ArgumentParser, folder: Path) -> argparse.Namespace:
    """Return the options of the command that made a run."""
    path = expand_home(folder) / "run.json"
    try:
        words = json_of(path.read_text(encoding="utf-8"))["run"]["command_line"]
        if words[1] != "tune":
            raise KeyError("command_line")
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"--from {folder} is not the folder of a run of `skescore tune --output`: {path} "
            f"cannot be used ({error})."
        ) from error
    earlier = parser.parse_args(list(map(str, words[2:])))
    if earlier.from_run is not None:
        previous = _earlier_options(parser, earlier.from_run)
        data = previous.earlier_data if earlier.data is None else earlier.data
        earlier = parser.parse_args(list(map(str, words[2:])), namespace=previous)
        earlier.data = data
    earlier.earlier_data = earlier.data
    for name in _NOT_REPEATED:
        setattr(earlier, name, parser.get_default(name))
    return earlier


def check_revision_options(options: argparse.Namespace) -> None:
    """Report options that cannot be combined."""
    error = options.parser.error
    if options.data is None:
        error("the following arguments are required: DATA")
    if options.since is not None and options.time is None:
        error("argument --since: needs --time COLUMN")
    if options.since is not None and arguments.lies_elsewhere(options.data):
        error("argument --since: needs a table in a file; use a query to select rows of a source")
    if options.from_run is None:
        if options.keep_cost is not None:
            error("argument --keep-cost: needs --from RUN")
        return
    if options.pick is not None:
        error("argument --pick: not allowed with --from, which only compares the best candidate")
    if options.workers != 1:
        error("argument --workers: not allowed with --from; use --n-jobs")
    if options.output is not None and expand_home(options.output) == expand_home(options.from_run):
        error("argument --output: must differ from the folder of --from")


def add_verification_options(group: Any) -> None:
    """Add the options of verification."""
    group.add_argument(
        "--verify",
        type=arguments.number_above(0),
        metavar="SECONDS",
        help="time to bound the disagreement of the best rules with the model (see `skescore "
        f"verify`); with --output, {VERIFICATION} contains the result, which the report shows",
    )
    group.add_argument(
        "--max-disagreement",
        type=arguments.number_above(0),
        metavar="SHARE",
        help=f"{MAX_DISAGREEMENT.help}; each verification takes --verify SECONDS (default "
        f"{VERIFY_SECONDS:g}); exit code 1 if the bound is larger for all of them",
    )
    group.add_argument(
        "--witnesses",
        action="store_true",
        help="if no candidate satisfies --max-disagreement, select the candidate with the "
        "smallest disagreement, and extract its rules again from the training rows and "
        "generated rows on which rules and model disagree",
    )


def check_verification_options(options: argparse.Namespace) -> None:
    """Report options that cannot be combined."""
    if options.max_disagreement is None:
        if options.witnesses:
            options.parser.error("argument --witnesses: needs --max-disagreement")
        return
    for name in ("pick", "from_run"):
        if getattr(options, name) is not None:
            option = {"pick": "--pick", "from_run": "--from"}[name]
            options.parser.error(
                f"argument --max-disagreement: not allowed with {option}, which selects the rules; "
                "to verify them, use --verify"
            )
