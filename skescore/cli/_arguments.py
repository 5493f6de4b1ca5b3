"""The parser of the command line, and the options that several commands share.

Slow modules are imported inside functions, so that the list of commands appears at once and
`doctor` works even if a package is broken.
"""

from __future__ import annotations

import argparse
import csv
import functools
import math
import re
import shlex
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from skescore._aliases import RULEKIT_PERFORMANCE_METRICS, canonical_name
from skescore._io import expand_home
from skescore._names import (
    DATA_SET_TASKS,
    FETCHED,
    FIDELITY_SCORER_NAME,
    MODEL_KINDS,
    MODEL_KINDS_TEXT,
    NO_RUN_TEXT,
    PERFORMANCE_SCORER_NAMES,
    PREDICTION_METRIC_NAMES,
    SET_SCORER_NAMES,
    no_data_text,
    no_model_text,
)
from skescore._scores import SCORE_SPECS
from skescore._text import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

    from skescore.constraints import Constraints
    from skescore.scorers import PerformanceScorer, RuleScorer


#: Prefix of a command that is the black box.
COMMAND = "command:"
#: Default largest loss of score due to kept rules, as a share of the score of entirely new rules.
KEEP_COST = 0.02
#: Default time of a verification in seconds.
VERIFY_SECONDS = 20.0
#: Text from the colon after the user name to the last @ is hidden, even in malformed URLs.
_USER = re.compile(r"([\w+.-]+:/+[^\s:/@]*):.*@")
_SECRET = re.compile(r"([?&;][^\s=&;]*(?:passw|pwd|secret|token)[^\s=&;]*=)[^\s&;]*", re.IGNORECASE)
#: Maximum line width, even on wide terminals.
_MAX_WIDTH = 100


class Parser(argparse.ArgumentParser):
    """Parser that reports errors in one line instead of after a page of usage.

    The description is wrapped to the width of the terminal; the epilog is not.
    """

    def __init__(self, *, description: str | None = None, **options: Any) -> None:
        width = min(_MAX_WIDTH, max(11, shutil.get_terminal_size().columns - 2))  # as argparse does
        paragraphs = (description or "").split("\n\n")
        form: Any = functools.partial(argparse.RawDescriptionHelpFormatter, width=width)
        super().__init__(
            description="\n\n".join(
                textwrap.fill(text, width, break_on_hyphens=False) for text in paragraphs
            ),
            formatter_class=form,
            allow_abbrev=False,
            **options,
        )

    @property
    def option_names(self) -> list[str]:
        """Names of the options and arguments, as attributes of the parsed options."""
        return [action.dest for action in self._actions if action.dest != "help"]

    def error(self, message: str) -> NoReturn:
        """Report wrong usage and exit with code 2."""
        message = without_passwords(message)
        self.exit(2, f"{self.prog}: error: {message}\nTry '{self.prog} --help'.\n")

    def check_inputs(self, options: argparse.Namespace) -> None:
        """Raise an error if an input does not exist, before the command is imported."""
        for action in self._actions:
            if isinstance(action, _Value) and action.missing:
                value = getattr(options, action.dest, None)
                for item in value if isinstance(value, list | tuple) else [value]:
                    text = "" if item is None else action.missing(str(item))
                    if text:
                        raise FileNotFoundError(text)

    def refuse(self, extra_arguments: Sequence[str]) -> NoReturn:
        """Report unknown arguments and exit with code 2."""
        for text in extra_arguments:
            if text.startswith("-"):
                name = text.partition("=")[0]
                option_names = re.findall(
                    r"^ +(?:-\w, )?(--[\w-]+)", self.format_help(), re.MULTILINE
                )
                self.error(f"there is no option {name}. {did_you_mean(name, option_names)}")
        self.error(
            f"too many arguments: {' '.join(map(shlex.quote, extra_arguments))} (an option takes "
            "one value; to pass several values, repeat the option if it is repeatable)"
        )


def without_passwords(text: str) -> str:
    """Hide the passwords of the URLs in a text for people.

    Use it for every message that repeats user input, because a misspelled --storage contains a URL.
    """
    return _SECRET.sub(r"\1***", _USER.sub(r"\1:***@", text))


class _Value(argparse.Action):
    """Action that stores a value and names the function of the completion script for it.

    `missing` returns an error message for a value that does not exist, otherwise an empty text. The
    error is raised after the command line is parsed and before the command is imported.
    """

    def __init__(
        self, *args: Any, kind: str, missing: Callable[[str], str] | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.missing = missing
        name = f"_skescore_{kind}"
        self.complete = {
            "bash": name,
            "zsh": name,
            "fish": f"({name})",
            "tcsh": "d" if kind == "folder" else "f",
        }

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        setattr(namespace, self.dest, values)


def _is_there(path: Path) -> bool:
    try:
        return expand_home(path).exists()
    except (OSError, RuntimeError):  # reading it will report the problem
        return True


def _missing_file(text: str) -> Callable[[str], str]:
    return lambda value: "" if _is_there(Path(value)) else text.format(value)


def _missing_data(data: str) -> str:
    exists = data in DATA_SET_TASKS or data.startswith(FETCHED) or _is_there(Path(data))
    return "" if exists else no_data_text(data)


def lies_elsewhere(data: str) -> bool:
    """Return whether data are a data source: a table of a database, or a Parquet folder or glob."""
    if data.startswith(FETCHED):
        return False
    is_pattern = any(sign in data for sign in "*?[") and not _is_there(Path(data))
    return "://" in data or is_pattern or expand_home(data).is_dir()


def _missing_source(data: str) -> str:
    return "" if lies_elsewhere(data) else _missing_data(data)


def _missing_model(model: str) -> str:
    path = expand_home(model)
    is_not_file = model.startswith(COMMAND) or path.suffix.lower() not in MODEL_KINDS
    return "" if is_not_file or _is_there(path) else no_model_text(path, model)


#: Actions of options whose values a shell can complete.
OF_FILE: Any = functools.partial(_Value, kind="file")
OF_FOLDER: Any = functools.partial(_Value, kind="folder")
OF_DATA: Any = functools.partial(_Value, kind="data", missing=_missing_data)
OF_SOURCE: Any = functools.partial(_Value, kind="data", missing=_missing_source)
#: Rows of a source, or - for standard input.
OF_ROWS: Any = functools.partial(
    _Value, kind="data", missing=lambda data: "" if data == "-" else _missing_source(data)
)
OF_RULES: Any = functools.partial(
    _Value, kind="file", missing=_missing_file("There is no file {}; pass the rules.json of a run.")
)
OF_MODEL: Any = functools.partial(
    _Value, kind="file", missing=_missing_file("There is no file {}; pass a model or rules.")
)
OF_RUN: Any = functools.partial(_Value, kind="folder", missing=_missing_file(NO_RUN_TEXT))
OF_BLACK_BOX: Any = functools.partial(_Value, kind="black_box", missing=_missing_model)
OF_EXTRACTORS: Any = functools.partial(_Value, kind="extractors")
OF_SCORING: Any = functools.partial(_Value, kind="scoring")
#: Use of --target by commands that read rules.
TARGET_OF_RUN = "default for files: the target in run.json in the folder of the rules"
#: Objectives that a search of the trade-off minimizes together.
TRADE_OFF = ("loss", "n_rules", "incompleteness")
FORMATS = ("text", "json", "markdown")


def number_above(minimum: float) -> Callable[[str], float]:
    """Make an argparse type: a finite number greater than `minimum`."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (value > minimum and math.isfinite(value)):
            raise argparse.ArgumentTypeError(f"must be a number above {minimum:g}, got {text!r}")
        return value

    return read


def integer(minimum: int, maximum: int | None = None) -> Callable[[str], int]:
    """Make an argparse type: an integer from `minimum` to `maximum`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = minimum - 1
        if value < minimum or (maximum is not None and value > maximum):
            limits = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
            raise argparse.ArgumentTypeError(f"must be an integer {limits}, got {text!r}")
        return value

    return read


def jobs(text: str) -> int:
    """Read a number of processes, with joblib's -1 for all cores (argparse type)."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value == 0:
        raise argparse.ArgumentTypeError(
            f"must be an integer of at least 1, or -1 for one per core, got {text!r}"
        )
    return value


def names_of(
    choices: Iterable[str], noun: str, canonical: Callable[[str], str] = str
) -> Callable[[str], tuple[str, ...]]:
    """Make an argparse type: comma-separated names that are among the choices.

    `canonical` returns the name that an alias stands for.
    """

    def read(text: str) -> tuple[str, ...]:
        parts = [part.strip() for part in text.split(",")]
        names = tuple(dict.fromkeys(canonical(part) for part in parts if part))
        if not names:
            raise argparse.ArgumentTypeError(f"needs at least one {noun}")
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(
                    f"there is no {noun} {name!r}. {did_you_mean(name, choices)}"
                )
        return names

    return read


def scorings() -> tuple[str, ...]:
    """Return the names of all objectives: scores, trade-off, fidelity, measures of predictions."""
    return (*SCORE_SPECS, "pareto", FIDELITY_SCORER_NAME, *PERFORMANCE_SCORER_NAMES)


def search_scoring(text: str) -> str:
    """Read an objective, or several that are minimized together (argparse type)."""
    names = list(dict.fromkeys(filter(None, names_from(text))))
    if len(names) < 2:
        return scoring(names[0] if names else text)
    from skescore.scorers import minimized_quantities, minimized_quantity

    for name in names:
        if minimized_quantity(name) is None:
            raise argparse.ArgumentTypeError(
                f"there is no objective {name!r}. {did_you_mean(name, [*minimized_quantities()])} "
                "group_gap:COLUMN is another one."
            )
    return ",".join(f'"{name}"' if "," in name else name for name in names)


def scoring(text: str) -> str:
    """Read an objective: a score, the trade-off, or a measure of single rules (argparse type)."""
    names = scorings()
    if text in names:
        return text
    metric = prediction_metric(text)
    for name in (metric, f"neg_{metric}"):
        if name in names:
            return name
    if "_rule_" not in text:
        raise argparse.ArgumentTypeError(
            f"there is no score {text!r}. {did_you_mean(text, names)} Measures of single rules "
            "are called mean_rule_c2 and the like."
        )
    from skescore.scorers import get_rule_scorer

    try:
        get_rule_scorer(text)
    except (ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def prediction_metric(text: str) -> str:
    """Return the name of a measure of predictions, also for RuleKit's names (argparse type)."""
    names = dict.fromkeys(PREDICTION_METRIC_NAMES)
    return canonical_name(text, names, RULEKIT_PERFORMANCE_METRICS)


def rule_measures(text: str) -> tuple[str, ...]:
    """Read measures of rule sets, and means or other aggregates over rules (argparse type)."""
    names = list(filter(None, names_from(text)))
    if not names:
        raise argparse.ArgumentTypeError("needs at least one measure, such as c2")
    of_sets = {name.removeprefix("neg_"): name for name in SET_SCORER_NAMES}
    full = [
        of_sets.get(name.removeprefix("neg_"))
        or (name.startswith("group_gap:") and f"neg_{name}")
        or scoring(name if "_rule_" in name else f"mean_rule_{name}")
        for name in names
    ]
    return tuple(dict.fromkeys(full))


def add_rules_argument(
    parser: Any, text: str = "file with the saved rules, or the folder of a run", **options: Any
) -> None:
    """Add the argument for a file of rules, with its help text."""
    parser.add_argument(
        "rules", action=OF_RULES, metavar="RULES.json", type=_rules_path, help=text, **options
    )


def _rules_path(text: str) -> Path:
    """Return the path of a file of rules; that of a run if the text is its folder."""
    path = Path(text)
    try:
        return path / "rules.json" if expand_home(path / "rules.json").is_file() else path
    except (OSError, RuntimeError):  # reading it will report the problem
        return path


def add_data_options(
    parser: argparse.ArgumentParser,
    *,
    elsewhere: str = "",
    is_optional: bool = False,
    drops_columns: bool = True,
    target_use: str = "required for files",
) -> Any:
    """Add the options of the data and return their group.

    `elsewhere` continues the help of DATA if the command accepts data sources; `is_optional` lets
    the command run without DATA; `drops_columns` adds the option --drop; `target_use` continues the
    help of --target.
    """
    group = parser.add_argument_group("data")
    group.add_argument(
        "data",
        nargs="?" if is_optional else None,
        action=OF_SOURCE if elsewhere else OF_DATA,
        metavar="DATA",
        help=f"a built-in data set ({', '.join(DATA_SET_TASKS)}) or a CSV, TSV, Excel or Parquet "
        f"file{elsewhere}",
    )
    group.add_argument("--target", metavar="COLUMN", help=f"column to predict; {target_use}")
    group.add_argument(
        "--task",
        choices=("auto", "classification", "regression"),
        default="auto",
        help="type of the target (default: detected)",
    )
    group.add_argument(
        "--missing",
        choices=("keep", "error", "drop"),
        default="keep",
        help="missing values of features: keep them (default), stop with an error, or drop their "
        "rows",
    )
    add_reading_options(group, drops_columns=drops_columns)
    group.add_argument(
        "--sample", metavar="N", type=integer(2), help="read only a random sample of N rows"
    )
    return group


def add_split_options(group: Any) -> None:
    """Add the columns that decide how rows are split into folds."""
    group.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column that identifies groups of rows, such as the patient: all rows of a group are "
        "in the same fold, and the column is not used as a feature",
    )
    group.add_argument(
        "--time",
        metavar="COLUMN",
        help="column of dates or numbers that orders the rows: held-out rows are later than the "
        "training rows",
    )


def add_row_options(group: Any) -> None:
    """Add the options that change the rows of a table before rules are learned from them."""
    group.add_argument(
        "--labels",
        metavar="OLD=NEW,...",
        type=_label_pairs,
        action="extend",
        default=[],
        help="new names of classes of the target, as in 0=no,1=yes; classes with the same new "
        "name are merged; NA=NA,None=None keeps classes whose names look like missing values",
    )
    group.add_argument(
        "--drop-duplicates",
        action="store_true",
        help="leave out rows that equal an earlier row in all features and the target, and rows "
        "of --test that equal a row of the table in all features",
    )


def _label_pairs(text: str) -> list[tuple[str, str]]:
    """Read pairs of an old and a new name (argparse type)."""
    splits = [name.partition("=") for name in names_from(text)]
    wrong = [old + sign + new for old, sign, new in splits if not (old and new.strip())]
    if wrong or not splits:
        raise argparse.ArgumentTypeError(
            f"{wrong[0] if wrong else text!r} is not a pair of an old and a new name; use OLD=NEW"
        )
    return [(old, new.strip()) for old, _, new in splits]


def check_row_options(options: argparse.Namespace) -> None:
    """Report an error if --labels gives a class two names."""
    names: dict[str, str] = {}
    for old, new in options.labels:
        if names.setdefault(old, new) != new:
            options.parser.error(
                f"argument --labels: class {old!r} is given two names, {names[old]!r} and {new!r}; "
                "choose one of them"
            )


def check_split_options(options: argparse.Namespace) -> None:
    """Report an error if --groups and --time are combined."""
    if options.groups is not None and options.time is not None:
        options.parser.error("argument --time: not allowed with --groups; choose one of them")


def add_reading_options(group: Any, *, drops_columns: bool = True) -> None:
    """Add the options for reading a table; see `reading_from`."""
    names: dict[str, Any] = {"metavar": "COLUMN,...", "type": names_from, "action": "extend"}
    if drops_columns:
        group.add_argument(
            "--drop",
            default=[],
            help="columns to ignore; repeatable",
            **names,
        )
    group.add_argument(
        "--category",
        default=[],
        help="features to read as categories even if their values are numbers or mostly distinct "
        "texts; all other text columns are read as categories anyway; repeatable",
        **names,
    )
    group.add_argument(
        "--numeric",
        default=[],
        help="features to read as numbers; text in them is read as missing; repeatable",
        **names,
    )
    group.add_argument(
        "--na-values",
        metavar="TEXT,...",
        type=names_from,
        action="extend",
        default=[],
        help="additional texts that denote a missing value, as in --na-values=-999,unknown; "
        "income=99 applies to the column income only; repeatable",
    )
    group.add_argument(
        "--sep", metavar="SIGN", help="column separator of a text file (detected by default)"
    )
    group.add_argument(
        "--decimal",
        metavar="SIGN",
        type=_decimal,
        help="decimal separator, point or comma (detected by default)",
    )
    group.add_argument(
        "--header",
        metavar="ROW,...",
        type=_header_rows,
        help="numbers of the rows with the column names, counted from 1; names in several rows "
        "are joined (default: detected, as are titles, units and totals)",
    )
    group.add_argument(
        "--skip-rows", metavar="N", type=integer(0), help="number of rows above the header"
    )
    group.add_argument(
        "--encoding",
        metavar="NAME",
        help="encoding of a text file, such as cp1252 (detected by default)",
    )


def reading_from(options: argparse.Namespace) -> dict[str, Any]:
    """Return the reading options as parameters of `load_dataset`."""
    return {
        "categories": list(dict.fromkeys(options.category)),
        "numeric": list(dict.fromkeys(options.numeric)),
        "drop": options.drop,
        "na_values": options.na_values,
        "sep": options.sep,
        "decimal": options.decimal,
        "encoding": options.encoding,
        "header": options.header,
        "skip_rows": options.skip_rows,
    }


def refuse_reading_options(options: argparse.Namespace, needed: str) -> None:
    """Raise an error for options of `add_reading_options` if there is no table to read."""
    for name, value in reading_from(options).items():
        if value:
            option = {"categories": "category"}.get(name, name).replace("_", "-")
            options.parser.error(f"argument --{option}: needs {needed}")


def _decimal(text: str) -> str:
    """Read a decimal sign (argparse type)."""
    if text not in (".", ","):
        raise argparse.ArgumentTypeError(f"must be '.' or ',', got {text!r}")
    return text


def _header_rows(text: str) -> list[int]:
    """Read numbers of rows, as in 3 or 3,4 (argparse type)."""
    read = integer(1)
    return [read(part.strip()) for part in text.split(",")]


def names_from(text: str) -> list[str]:
    """Read comma-separated names; a name with a comma is quoted (argparse type)."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True), [])]


def add_score_options(parser: argparse.ArgumentParser) -> None:
    """Add the weights of the scores."""
    group = parser.add_argument_group("scores")
    specs = SCORE_SPECS.values()
    for name, default in _default_weights().items():
        of = [(spec, weight) for spec in specs for weight in spec.weights if weight.name == name]
        text = "; ".join(f"{spec.label}: {weight.text}" for spec, weight in of)
        group.add_argument(
            f"--{name}",
            type=number_above(0),
            default=default,
            metavar="WEIGHT",
            help=f"{text} (default {default:g})",
        )
    errors = [n for n, metric in PREDICTION_METRIC_NAMES.items() if not metric.greater_is_better]
    of_losses = [spec.label for spec in specs if spec.prediction == "loss"]
    group.add_argument(
        "--performance",
        type=prediction_metric,
        choices=tuple(PREDICTION_METRIC_NAMES),
        metavar="NAME",
        help=f"measure of predictions (as in scikit-learn) that replaces the default measure of "
        f"{', '.join(spec.label for spec in specs)}: "
        f"{', '.join(n for n in PREDICTION_METRIC_NAMES if n not in errors)}; "
        f"{' and '.join(of_losses)} also accept {', '.join(errors)}; "
        "balanced_accuracy and f1_macro give all classes equal weight",
    )
    complete = [spec.label for spec in specs if spec.uses_completeness]
    group.add_argument(
        "--completeness",
        choices=("volume", "instances"),
        default="volume",
        help="measure completeness as the covered share of the feature space (volume, default) or "
        f"of the rows (instances), in {' and '.join(complete)}",
    )


def add_seconds_option(group: Any, default: float, text: str) -> None:
    """Add ``--seconds``, a time limit."""
    group.add_argument(
        "--seconds",
        type=number_above(0),
        default=default,
        metavar="SECONDS",
        help=f"{text} (default {default:g})",
    )


def add_quiet_option(group: Any, text: str = "show errors only, without progress") -> None:
    """Add ``--quiet``."""
    group.add_argument("--quiet", action="store_true", help=text)


def add_trust_option(group: Any) -> None:
    """Add ``--trust``."""
    group.add_argument(
        "--trust",
        action="store_true",
        help="load a model file even if loading it can run code; use it only if you trust the "
        "author",
    )


def add_model_options(group: Any, use: str) -> None:
    """Add ``--black-box`` for the file of a model, and ``--trust``; `use` ends the help text."""
    group.add_argument(
        "--black-box",
        action=OF_FILE,
        metavar="FILE",
        help=f"a fitted model ({MODEL_KINDS_TEXT}){use}",
    )
    add_trust_option(group)


def add_format_option(parser: argparse._ActionsContainer) -> None:
    """Add the choice of output format."""
    parser.add_argument(
        "--format", choices=FORMATS, default="text", help="format of standard output (default text)"
    )


def weights_from(options: argparse.Namespace) -> dict[str, float]:
    """Return the weights of all scores."""
    return {name: getattr(options, name) for name in _default_weights()}


def _default_weights() -> dict[str, float]:
    return {weight.name: weight.default for spec in SCORE_SPECS.values() for weight in spec.weights}


def scorer_from(options: argparse.Namespace) -> RuleScorer | PerformanceScorer:
    """Make the scorer that the options choose."""
    from skescore.scorers import (
        PERFORMANCE_SCORERS,
        FidelityScorer,
        make_performance_scorer,
        make_rule_scorer,
        make_score_scorer,
    )

    if options.scoring == FIDELITY_SCORER_NAME:
        return FidelityScorer()
    reference = options.reference.replace("-", "_")
    if "_rule_" in options.scoring:
        how, _, measure = options.scoring.partition("_rule_")
        return make_rule_scorer(measure, aggregate=how, reference=reference)
    if options.scoring in PERFORMANCE_SCORERS:
        return make_performance_scorer(options.scoring.removeprefix("neg_"), reference=reference)
    spec = SCORE_SPECS[trade_off_score(options)]
    settings: dict[str, Any] = {name: getattr(options, name) for name in spec.weight_names}
    if options.performance is not None:
        settings["metric"] = options.performance
    return make_score_scorer(
        spec, completeness=options.completeness, reference=reference, **settings
    )


def objectives_from(options: argparse.Namespace) -> tuple[str, ...] | None:
    """Return the objectives that the search minimizes together; None for a single score."""
    if options.scoring == "pareto":
        return TRADE_OFF
    names = tuple(names_from(options.scoring))
    return names if len(names) > 1 else None


def trade_off_score(options: argparse.Namespace) -> str:
    """Return the chosen score; the results of several objectives show ICE."""
    return str(options.scoring) if objectives_from(options) is None else "ice"


def search_scoring_from(options: argparse.Namespace) -> Any:
    """Return the objective of the search."""
    return objectives_from(options) or scorer_from(options)


def knowledge_scorer_from(options: argparse.Namespace) -> RuleScorer:
    """Make a scorer of all scores with the weights of the options."""
    from skescore.metrics import PREDICTION_METRICS
    from skescore.scorers import make_knowledge_scorer

    settings: dict[str, Any] = weights_from(options)
    if options.performance is not None:
        settings["loss"] = options.performance
        if PREDICTION_METRICS[options.performance].greater_is_better:
            settings["performance"] = options.performance
    return make_knowledge_scorer(completeness=options.completeness, **settings)


def add_standalone_option(group: Any) -> None:
    """Add ``--standalone``."""
    group.add_argument(
        "--standalone",
        action="store_true",
        help="rewrite the rules so that each one can be read on its own, without ELSE",
    )


#: Placeholder and help of each option that may be repeated.
_REPEATED = {
    "--forbid": ("COLUMN,...", "columns that no rule may use"),
    "--require": ("COLUMN,...", "columns that at least one rule must use"),
    "--feature-cost": ("COLUMN:COST", "cost of a column in the rules, limited by --max-cost"),
    "--monotone": (
        "COLUMN:+",
        "a larger value never lowers the prediction; with COLUMN:-, a larger value never raises it",
    ),
    "--thresholds": (
        "COLUMN:LIST",
        "bounds that conditions may have: a list of numbers (COLUMN:18,65) or a precision "
        "(COLUMN:2 digits, COLUMN:1 decimal); * means all columns",
    ),
    "--together": ("COLUMN:A,B", "categories that no condition may separate"),
    "--apart": ("COLUMN:A,B", "categories that no condition may accept together"),
    "--pin": (
        "RULES:NUMBER",
        "rule that the result must contain unchanged: its file and its number in this file; "
        "RULES:NUMBER@POSITION also sets its position in the result",
    ),
    "--max-gap": (
        "COLUMN:GAP",
        ("largest difference between groups in the share of rows predicted as the highest class"),
    ),
}
#: Placeholder and help of each option with one value.
_SINGLE = {
    "--class-order": ("CLASS,...", "classes from the lowest to the highest, for --monotone"),
    "--max-cost": ("COST", "largest total cost of the columns in the rules"),
    "--max-conditions": ("N", "largest number of conditions per rule, or CLASS:N,..."),
    "--max-features": ("N", "largest number of different columns in all rules, or CLASS:N,..."),
    "--max-rules-per-class": ("N", "largest number of rules per class, or CLASS:N,..."),
    "--min-support": ("ROWS", "smallest number of rows per rule, or a share below 1"),
    "--min-precision": ("SHARE", "smallest share of a rule's rows that have its class"),
}


#: Names of all options for constraints, as attributes of the parsed options.
CONSTRAINT_NAMES = (
    "constraints",
    *(option.removeprefix("--").replace("-", "_") for option in _REPEATED | _SINGLE),
)


def add_constraint_options(parser: Any) -> None:
    """Add a group with the options for constraints."""
    group = parser.add_argument_group("constraints on the rules")
    group.add_argument(
        "--constraints",
        metavar="FILE",
        help="JSON file with constraints; the other options extend or override it",
    )
    for option, (metavar, text) in _REPEATED.items():
        group.add_argument(
            option, action="append", default=[], metavar=metavar, help=f"{text} (repeatable)"
        )
    for option, (metavar, text) in _SINGLE.items():
        group.add_argument(option, metavar=metavar, help=text)


def constraints_from(
    options: argparse.Namespace,
    columns: pd.DataFrame,
    labels: Iterable[Any] | None,
    domain: Mapping[str, Sequence[Any]] | None = None,
) -> Constraints | None:
    """Return the constraints of the command line; None if there are none.

    The texts of the options are matched with the values in `columns`, `labels` and, by feature, in
    `domain`.
    """
    values = {name: getattr(options, name) for name in CONSTRAINT_NAMES}
    for name in ("forbid", "require"):
        values[name] = [part for text in values[name] or () for part in names_from(text) if part]
    if not any(value not in (None, []) for value in values.values()):
        return None
    from skescore.constraints import Constraints

    constraints = Constraints.from_options(**values)
    changes: dict[str, Any] = {}
    if constraints.class_order is not None:
        changes["class_order"] = _match(constraints.class_order, () if labels is None else labels)
    for name in ("together", "apart"):
        changes[name] = {}
        for feature, groups in getattr(constraints, name).items():
            categories = _categories(columns, feature, domain)
            matches = changes[name][feature] = [_match(group, categories) for group in groups]
            unknown = [v for group in matches for v in group if v not in categories]
            if unknown and any(isinstance(v, str) for v in categories):
                raise ValueError(
                    f"--{name}: {feature} has no value {unknown[0]!r}. "
                    f"{did_you_mean(str(unknown[0]), list(map(str, categories)))}"
                )
    return constraints.replace(**changes)


def _categories(
    columns: pd.DataFrame, feature: str, domain: Mapping[str, Sequence[Any]] | None
) -> list[Any]:
    values = list(columns[feature].dropna().unique()) if feature in columns else []
    return [*values, *(domain or {}).get(feature, ())]


def _match(values: Iterable[Any], candidates: Iterable[Any]) -> list[Any]:
    """Replace each value by the candidate with the same text, or else the same number."""
    by_text = {str(candidate): candidate for candidate in candidates}

    def match(value: Any) -> Any:
        if str(value) in by_text:
            return by_text[str(value)]
        try:
            return float(value) if float(value) in by_text.values() else value
        except ValueError:
            return value

    return [match(value) for value in values]
