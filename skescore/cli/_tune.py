"""``skescore tune``: the best rules of a black box on some data."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import math
import platform
import textwrap
import time
from pathlib import Path
from typing import Any

from sklearn.model_selection import KFold, StratifiedKFold

from skescore._text import did_you_mean
from skescore.black_boxes import BLACK_BOXES, check_matches, make_black_box
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._black_boxes import load_black_box
from skescore.cli._trials import (
    Kept,
    add_trial_options,
    kept_trials,
    note_earlier,
    shown_command_line,
    study_name,
)
from skescore.cli._tune_files import (
    FILES,
    add_report_option,
    check_output,
    output_folder,
    write_files,
    write_page,
)
from skescore.cli._tune_text import label, scoring_name, sign, tune_text
from skescore.cli._workers import Workers
from skescore.datasets._loading import Dataset
from skescore.registry import EXTRACTORS, extractor_names, suitable_extractors
from skescore.tuning import ExtractorSearchCV
from skescore.tuning._progress import SearchProgress

_EXAMPLES = """\
examples:
  skescore tune wine --black-box random-forest --trials 60
  skescore tune houses.csv --target price --drop id --scoring fire --psi 3 --output run
  skescore tune iris --black-box model.skops --reference black-box --format json
"""

_SHOWN_CLASSES = 6
#: With fewer rows to train on, a model's own complaints are best explained by their number.
_FEW_ROWS = 10


def black_box(text: str) -> str:
    """Read the name of a black box or the path of a model's file (an argparse type)."""
    path = Path(text)
    if text in BLACK_BOXES or path.suffix or path.name != text or path.exists():
        return text
    raise argparse.ArgumentTypeError(
        f"there is no black box {text!r}, nor a file of that name. "
        f"{did_you_mean(text, BLACK_BOXES)}"
    )


#: Trials that failed, and trials whose score is undefined.
_WITHOUT_SCORE = ("fail", "pruned")


def add_parser(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "tune",
        help="find the best rules of a black box",
        description="Train (or load) a black box, search extractors and their hyper-parameters, "
        "and show the rules with the best score.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    arguments.add_data_options(parser)
    group = parser.add_argument_group("black box")
    group.add_argument(
        "--black-box",
        type=black_box,
        default="random-forest",
        metavar="NAME|FILE",
        help=f"{', '.join(BLACK_BOXES)} (trained here; default random-forest), or a file with a "
        "fitted scikit-learn model (.skops; .joblib and .pkl with --trust)",
    )
    group.add_argument(
        "--trust",
        action="store_true",
        help="read a model file that can run code when it is read; only if you know its author",
    )
    group = parser.add_argument_group("search")
    group.add_argument(
        "--extractors",
        type=lambda text: arguments.names_of(extractor_names(), "extractor")(text),
        metavar="NAME,...",
        help=f"out of {', '.join(EXTRACTORS)} (default all that suit the task and the columns)",
    )
    group.add_argument(
        "--scoring",
        type=arguments.scoring,
        default="ice",
        metavar="SCORE",
        help="what is best (default ice): ice, fire, q, pareto (loss, rules and incompleteness "
        "together; the knee of the front is shown as the best), a measure of single rules such as "
        "mean_rule_c2, or one of predictions such as kappa",
    )
    group.add_argument(
        "--measures",
        type=arguments.rule_measures,
        default=(),
        metavar="NAME,...",
        help="measures of single rules as further columns of the leaderboard, such as "
        "min_rule_precision; c2 alone stands for mean_rule_c2",
    )
    group.add_argument(
        "--allocation",
        choices=("halving", "even"),
        default="halving",
        help="halving (default) gives the trials to the extractors that do best, in rounds; even "
        "gives all of them the same number",
    )
    group.add_argument(
        "--reference",
        choices=("data", "black-box"),
        default="data",
        help="compare rules with the target (default) or with the black box's answers (fidelity)",
    )
    numbers = {
        "--trials": (arguments.integer(1), 60, "N", "candidates in all (default 60)"),
        "--timeout": (
            arguments.number_above(0), None, "SECONDS",
            "start no candidates after this time; results then depend on speed",
        ),
        "--cv": (arguments.integer(2), 5, "N", "folds of the cross-validation (default 5)"),
        "--seed": (arguments.integer(0, 2**32 - 1), 0, "N", "of all that is random (default 0)"),
        "--n-jobs": (
            arguments.jobs, 1, "N",
            "processes that evaluate candidates (default 1; -1: as many as there are cores)",
        ),
    }  # fmt: skip
    for name, (kind, default, metavar, text) in numbers.items():
        group.add_argument(name, type=kind, default=default, metavar=metavar, help=text)
    arguments.add_score_options(parser)
    add_trial_options(parser)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output", type=Path, metavar="DIR", help=f"write {', '.join(FILES)} to a folder"
    )
    group.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the files of an earlier run in that folder",
    )
    add_report_option(group)
    group.add_argument("--quiet", action="store_true", help="no progress, no notes; only errors")
    arguments.add_format_option(group)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    begin = time.perf_counter()
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    notes = output.Notes(options.quiet)
    check_output(options)
    dataset = arguments.data_from(options)
    _choose_extractors(options, dataset, notes)
    arguments.check_features(dataset, notes)
    model, about_model = _black_box(options, dataset)
    if options.workers == 0:
        if options.storage is None:
            options.parser.error("argument --workers: 0 joins a search, whose --storage is needed")
        _search(options, dataset, model, notes, Kept(options.storage, study_name(options, dataset)))
        return ""
    with (
        output_folder(options.output),
        kept_trials(options, dataset, about_model, notes) as kept,
    ):
        search = _search(options, dataset, model, notes, kept)
        result = _result(options, dataset, search) | {"notes": notes.texts}
        result["black_box"] |= about_model
        result["run"] |= {"started": started, "seconds": round(time.perf_counter() - begin, 3)}
        if options.output is not None:
            write_files(options, search, result)
    write_page(options, dataset, model)
    if options.format == "json":
        return _json(search, result)
    return tune_text(options, dataset, search, result)


def _choose_extractors(options: argparse.Namespace, dataset: Dataset, notes: output.Notes) -> None:
    if options.extractors is None:
        suitable = suitable_extractors(dataset.task, categories=bool(dataset.categories))
        options.extractors = suitable[: options.trials]
        if left_out := suitable[options.trials :]:
            notes.add(
                f"with {output.plural(options.trials, 'trial')} these extractors are not tried: "
                f"{', '.join(left_out)}"
            )
    if options.trials < len(options.extractors):
        options.parser.error(
            f"argument --trials: must be at least one per extractor ({len(options.extractors)}), "
            f"got {options.trials}"
        )


def _black_box(options: argparse.Namespace, dataset: Dataset) -> tuple[Any, dict[str, Any]]:
    """The black box, and what the result says of its file."""
    name = options.black_box
    if name in BLACK_BOXES:
        return make_black_box(name, dataset.task, options.seed, dataset.categories), {}
    model = load_black_box(name, trust=options.trust)
    check_matches(model, dataset)
    content = Path(name).expanduser().read_bytes()
    return model, {"checksum_sha256": hashlib.sha256(content).hexdigest()}


def splitter(dataset: Dataset, cv: int, seed: int, notes: output.Notes) -> Any:
    """Make the folds: shuffled, and stratified where a class has enough rows for that."""
    n_rows = len(dataset.X)
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
        more = f" and {len(rare) - _SHOWN_CLASSES} more" if len(rare) > _SHOWN_CLASSES else ""
        notes.add(
            f"classes with fewer rows than the {cv} folds: {', '.join(rare[:_SHOWN_CLASSES])}"
            f"{more}; some folds are without them"
        )
    return StratifiedKFold(cv, shuffle=True, random_state=seed)


def _search(
    options: argparse.Namespace, dataset: Dataset, model: Any, notes: output.Notes, kept: Kept
) -> ExtractorSearchCV:
    folds = splitter(dataset, options.cv, options.seed, notes)
    left = max(options.trials - note_earlier(kept, options.extractors, notes), 0)
    progress = SearchProgress(left, label(options), sign(options), shown=not options.quiet)
    search = ExtractorSearchCV(
        model,
        extractors=options.extractors,
        scoring=arguments.search_scoring_from(options),
        n_trials=options.trials,
        timeout=options.timeout,
        cv=folds,
        measures=options.measures,
        allocation=options.allocation,
        refit=options.workers != 0,
        n_jobs=options.n_jobs,
        random_state=options.seed,
        storage=kept.storage,
        study_name=kept.study,
        callbacks=[progress],
    )
    # Rare classes have a note of their own, with their names.
    with notes.instead_of_warnings("The least populated class") as further:
        try:
            with Workers(options, kept, notes), progress:
                search.fit(dataset.X, dataset.y)
        except KeyboardInterrupt:
            if not hasattr(search, "best_extractor_"):
                raise
            options.exit_code = 1
            notes.add(
                f"interrupted after {output.plural(len(search.leaderboard_), 'trial')}; the same "
                "command goes on with the others"
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
    board = search.leaderboard_
    failed = board[board["state"].isin(_WITHOUT_SCORE)]
    if len(failed):
        told = failed["error"].iloc[0]
        reason = told.partition("undefined on some fold: ")[2] or told
        # What helps in Python has no counterpart here.
        reason = reason.partition(" Pass undefined=...")[0]
        notes.add(
            f"{len(failed)} of {output.plural(len(board), 'trial')} gave no score, the first: "
            f"{textwrap.shorten(reason, 120, placeholder=' ...')}"
        )
    if (started := len(board)) < options.trials and not options.exit_code:
        notes.add(f"{started} of {options.trials} trials were started within the --timeout")
    return search


def _winners_warnings(search: ExtractorSearchCV) -> list[str]:
    """Warnings that only concern candidates which nobody chose are no news."""
    number = int(search.leaderboard_["trial"].iloc[0])
    trial = search.studies_[search.best_name_].get_trials(deepcopy=False)[number]
    return [text for fold in trial.user_attrs["folds"] for text in fold["warnings"]]


def _result(
    options: argparse.Namespace, dataset: Dataset, search: ExtractorSearchCV
) -> dict[str, Any]:
    """Everything that is shown or written, but for the leaderboard and the rules."""
    best, board = search.best_extractor_, search.leaderboard_
    return {
        "data": arguments.describe_data(dataset),
        "black_box": {
            "name": options.black_box,
            "trained_here": options.black_box in BLACK_BOXES,
            "quality": search.black_box_quality_,
        },
        "search": {
            # As in Python, where the score called so is maximised: FiRe and Q come negated.
            "scoring": scoring_name(options),
            "weights": {"psi": options.psi, "phi": options.phi, "rho": options.rho},
            "completeness": options.completeness,
            "reference": options.reference,
            "extractors": list(options.extractors),
            "allocation": options.allocation,
            "stopped": search.stopped_,
            "trials": len(board),
            "trials_failed": int(board["state"].isin(_WITHOUT_SCORE).sum()),
            "cv": options.cv,
            "seed": options.seed,
            "timeout": options.timeout,
            "seconds": round(search.search_seconds_, 3),
        },
        "best": {
            "extractor": search.best_name_,
            "params": search.best_params_,
            "score": search.best_score_,
            "n_rules": len(search.rules_),
            "fidelity": best.fidelity(dataset.X),
            "completeness_volume": best.completeness_,
            "completeness_instances": best.coverage_,
        },
        "run": {
            "command_line": shown_command_line(options.command_line),
            "versions": output.versions(),
            "platform": platform.platform(),
        },
    }


def _json(search: ExtractorSearchCV, result: dict[str, Any]) -> str:
    board = search.leaderboard_.to_dict(orient="records")
    rules = json.loads(search.rules_.to_json(indent=None))
    return output.json_for_stdout(result | {"leaderboard": board, "rules": rules})
