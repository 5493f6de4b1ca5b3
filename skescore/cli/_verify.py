"""``skescore verify``: find where saved rules agree with a model over the whole domain."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._names import MODEL_KINDS_TEXT
from skescore.cli import _arguments as arguments
from skescore.cli import _inputs as inputs
from skescore.cli._arguments import OF_FILE
from skescore.cli._output import Notes, Printer
from skescore.cli._rule_files import (
    add_output_options,
    check_output,
    preparation_of,
    read_rules,
    write_or_return,
)

if TYPE_CHECKING:
    from skescore.datasets import Dataset
    from skescore.rules import RuleSet
    from skescore.verification import Verification

DESCRIPTION = """\
Find where saved rules agree with a model, not only on rows but over the whole domain.

Reported for each rule: bounds on the share of its region in which the model predicts something
else, near the data and by volume; a row of disagreement as near to the data as possible; and a part
of the rule in which agreement is proven. Tree models are analyzed exactly, others are sampled.

With --check, an independent program checks the JSON of a verification, which is passed instead of
the rules. If --output names a file *.json, the JSON is written whatever the --format.
Exit codes: 0 success, 1 more disagreement than --max-disagreement, or a rejected check.
"""
EXAMPLES = """\
examples:
  skescore verify run/rules.json forest.joblib data.csv --target y --trust
  skescore verify run/rules.json model.skops data.csv --target y --max-disagreement 0.05
  skescore verify run/rules.json model.skops data.csv --target y --output v.json
  skescore verify v.json model.skops data.csv --target y --check
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    arguments.add_rules_argument(
        parser, "the rules, or the folder of a run; with --check the JSON of a verification"
    )
    parser.add_argument(
        "model",
        action=OF_FILE,
        metavar="MODEL",
        help=f"a fitted model ({MODEL_KINDS_TEXT})",
    )
    arguments.add_data_options(parser, target_use="optional; rows without a label are used too")
    group = parser.add_argument_group("verification")
    arguments.add_trust_option(group)
    group.add_argument("--check", action="store_true", help="check an existing verification")
    group.add_argument(
        "--max-disagreement",
        type=arguments.number_above(0),
        metavar="SHARE",
        help="exit with code 1 if the upper bound of the disagreement near the data exceeds this "
        "share",
    )
    group.add_argument(
        "--tolerance",
        type=arguments.number_above(0),
        metavar="NUMBER",
        help="regression: largest deviation that counts as agreement (default: half of the "
        "standard deviation of the model's predictions)",
    )
    group.add_argument(
        "--radius",
        type=arguments.number_above(0),
        default=0.1,
        metavar="R",
        help="radius of the neighborhood of a row, in standard deviations (default 0.1)",
    )
    arguments.add_seconds_option(group, 60.0, "time limit")
    group.add_argument(
        "--seed", type=arguments.integer(0), default=0, metavar="N", help="random seed (default 0)"
    )
    group.add_argument(
        "--html", type=Path, metavar="FILE", help="also write the result as an HTML page"
    )
    add_output_options(parser)
    arguments.add_format_option(parser)


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    check_output(options.output, overwrite=options.overwrite)
    if options.check:
        return _check(options)
    if options.html is not None:
        check_output(options.html, overwrite=options.overwrite)
    from skescore.black_boxes import check_matches, load_black_box
    from skescore.verification import VerificationLimits, verify

    ruleset = read_rules(options.rules)
    dataset = _all_rows(options, ruleset)
    Notes().add_findings(dataset.name, dataset.findings)
    model = load_black_box(options.model, trust=options.trust)
    check_matches(model, dataset)
    result = verify(
        ruleset,
        model,
        dataset.X,
        tolerance=options.tolerance,
        radius=options.radius,
        limits=VerificationLimits(time_limit=options.seconds),
        random_state=options.seed,
    )
    if options.html is not None:
        write_or_return(options.html, result.to_html())
    upper = result.near_disagreement.upper
    if options.max_disagreement is not None and not upper <= options.max_disagreement:
        options.exit_code = 1
        sys.stderr.write(
            f"skescore: the disagreement near the data is up to {100 * upper:.3g} %, more than "
            f"--max-disagreement {options.max_disagreement:g}\n"
        )
    # A file named *.json always contains JSON, which --check reads.
    is_json_file = options.output is not None and options.output.suffix == ".json"
    is_json = options.format == "json" or is_json_file
    text = result.to_json() + "\n" if is_json else _text(options, result)
    return write_or_return(options.output, text)


def _all_rows(options: argparse.Namespace, ruleset: RuleSet) -> Dataset:
    """Load all rows, even without a label; the classes of the rules replace the target."""
    import pandas as pd

    names = list(ruleset.feature_names)
    dataset = inputs.unlabeled_data_from(
        options,
        data=options.data,
        features=names,
        preparation=preparation_of(options.rules, ruleset),
    )
    task: Any = ruleset.task
    classes = pd.Series(list(ruleset.classes or ()), dtype=object, name=options.target or "class")
    return replace(dataset, X=dataset.X[names], y=classes, task=task)


def _text(options: argparse.Namespace, result: Verification) -> str:
    """Return the sentences of a verification as text or Markdown."""
    printer = Printer(options.format == "markdown")
    for line in result.to_text().split("\n"):
        printer.line(line)
    return printer.text()


def _check(options: argparse.Namespace) -> str:
    """Check the JSON of a verification."""
    import json

    from skescore._io import json_of
    from skescore.black_boxes import load_black_box
    from skescore.rules import RuleSet
    from skescore.verification import check_verification

    try:
        text = options.rules.read_text(encoding="utf-8")
        data = json_of(text)
        ruleset, records = RuleSet.from_json(json.dumps(data["ruleset"])), list(data["rules"])
    except FileNotFoundError:
        raise FileNotFoundError(
            f"There is no file {options.rules}; name the JSON of a verification."
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{options.rules} is not the JSON of `skescore verify --format json`."
        ) from error
    X = _all_rows(options, ruleset).X
    n_rows = sum(record["n_rows"] for record in records)
    if options.target is not None and n_rows != len(X):
        # `skescore tune --verify` uses the rows that have a label.
        X = inputs.data_from(
            options,
            task=ruleset.task,
            features=list(X.columns),
            preparation=preparation_of(options.rules, ruleset),
        ).X[list(X.columns)]
    model = load_black_box(options.model, trust=options.trust)
    check = check_verification(text, model, X)
    options.exit_code = int(check.verdict == "rejected")
    return f"{check}\n"
