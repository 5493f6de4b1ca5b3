"""``skescore certify``: prove how far saved rules are from the best possible rules."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from skescore._io import json_of
from skescore._scores import SCORE_SPECS
from skescore.cli import _arguments as arguments
from skescore.cli import _inputs as inputs
from skescore.cli import _output as output
from skescore.cli._rule_files import (
    add_output_options,
    check_output,
    read_rules,
    use_target_of_run,
    write_output,
)

if TYPE_CHECKING:
    from skescore.certificates import Certificate

#: Kinds of rule sets with which certificates compare.
KINDS = ("tree", "list")
DESCRIPTION = """\
Prove how far saved rules are from the best possible rules on given rows.

The rules are compared with decision trees and decision lists of every size. If the time limit ends
the proof early, the certificate states a lower and an upper bound. It is valid for these rows only,
not for new rows.

With --check, an independent program checks a certificate. Exit codes of a check: 0 confirmed,
1 wrong, 2 no error found, but --seconds did not suffice to check everything.
"""
EXAMPLES = """\
examples:
  skescore tune iris --output run && skescore certify run/rules.json iris
  skescore certify run/rules.json iris --scoring fire --seconds 300 --output certificate.json
  skescore certify --check certificate.json iris
  skescore certify --check run/certificate.json wine --class-weight balanced
"""
_EXIT_CODES = {"confirmed": 0, "rejected": 1, "not checked": 2}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    arguments.add_rules_argument(
        parser, "the rules, or the folder of a run; with --check the certificate"
    )
    arguments.add_data_options(parser, target_use=arguments.TARGET_OF_RUN)
    group = parser.add_argument_group("certificate")
    group.add_argument("--check", action="store_true", help="check an existing certificate")
    arguments.add_model_options(
        group, ": compare the rules with its predictions instead of the target"
    )
    group.add_argument(
        "--scoring",
        choices=tuple(SCORE_SPECS),
        default="ice",
        help="score to certify (default ice)",
    )
    group.add_argument(
        "--class-weight",
        choices=("balanced",),
        help="weight rows so that all classes of the target have the same total weight, as in tune",
    )
    group.add_argument(
        "--kinds",
        type=arguments.names_of(KINDS, "kind of rules"),
        default=KINDS,
        metavar="NAME,...",
        help="kinds of rules to compare with: tree, list (default both)",
    )
    arguments.add_seconds_option(group, 60.0, "time limit of the proof or of its check")
    group.add_argument(
        "--max-rules",
        type=arguments.integer(1),
        metavar="N",
        help="largest number of rules to compare with (default: the largest number with which "
        "perfect rules could score better, or 6 if that number exceeds 12)",
    )
    group.add_argument(
        "--cuts",
        type=arguments.integer(1),
        default=8,
        metavar="N",
        help="cuts per feature, in addition to the cuts of the rules (default 8)",
    )
    group.add_argument(
        "--tolerance",
        type=arguments.number_above(0),
        metavar="GAP",
        help="stop the proof once the score is within GAP of the best possible, which is much "
        "faster (default: as close as time allows)",
    )
    parser.set_defaults(reference="data")
    arguments.add_score_options(parser)
    add_output_options(parser)
    arguments.add_format_option(parser)


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    if options.check and options.output is not None:
        options.parser.error("argument --output: a check writes nothing; leave it out")
    if options.check:
        return _check(options)
    check_output(options.output, overwrite=options.overwrite)
    from skescore.certificates import certify
    from skescore.optimal import SearchSpace, SolverLimits

    ruleset = read_rules(options.rules)
    use_target_of_run(options, ruleset)
    dataset = inputs.read_labeled_rows(options, ruleset)
    black_box = inputs.load_matching_model(options, dataset)
    certificate = certify(
        ruleset,
        dataset.X,
        dataset.y if black_box is None else black_box,
        space=SearchSpace(options.max_rules, cuts=options.cuts),
        scoring=arguments.scorer_from(options),
        kinds=options.kinds,
        tolerance=options.tolerance,
        sample_weight=inputs.class_weights_from(options, dataset),
        limits=SolverLimits(time_limit=options.seconds),
    )
    if options.output is not None:
        write_output(options.output, certificate.to_json() + "\n")
    if options.format == "json":
        return certificate.to_json()
    return _text(options, certificate)


def _text(options: argparse.Namespace, certificate: Certificate) -> str:
    """Write the sentences of a certificate and its bounds by number of rules."""
    printer = output.Printer(options.format == "markdown")
    for sentence in certificate.to_text().split("\n"):
        printer.line(sentence)
    for frontier in certificate.frontiers:
        printer.heading(f"{frontier.kind}s: {frontier.loss.replace('_', ' ')}, bound and best")
        rows = [
            [str(size), f"{low:g}", f"{high:g}", status.replace("_", " ")]
            for size, low, high, status in zip(
                frontier.sizes, frontier.lower, frontier.upper, frontier.status, strict=True
            )
        ]
        printer.table(["rules", "at least", "found", "proof"], rows, left=("proof",))
    return printer.text()


def _check(options: argparse.Namespace) -> str:
    """Check a certificate."""
    from skescore.certificates import check_certificate
    from skescore.extractors import Oracle
    from skescore.rules import RuleSet

    try:
        text = options.rules.read_text(encoding="utf-8")
        data = json_of(text)
        about, weighted = data["rows"]["reference"], data["rows"]["weighted"]
        best_rules = data["frontiers"][0]["rules"]
        # The domain of the given rules lists the categories, but not every certificate has them.
        ruleset = RuleSet.from_json(json.dumps(data["given"]["rules"] or best_rules[-1]))
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {options.rules}; name a certificate.") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{options.rules} is not a certificate of `skescore certify`.") from error
    if about == "the black box's predictions" and options.black_box is None:
        raise ValueError(
            f"{options.rules} compares rules with {about}; add --black-box FILE with the model."
        )
    if weighted and options.class_weight is None:
        raise ValueError(
            f"{options.rules} is for weighted rows; add --class-weight balanced, or "
            "check it in Python with its weights (skescore.certificates.check_certificate)."
        )
    use_target_of_run(options, ruleset)
    dataset = inputs.read_labeled_rows(options, ruleset)
    black_box = inputs.load_matching_model(options, dataset)
    y = dataset.y if black_box is None else Oracle(black_box, like=dataset.X).query(dataset.X)
    weights = inputs.class_weights_from(options, dataset)
    result = check_certificate(text, dataset.X, y, weights, time_limit=options.seconds)
    options.exit_code = _EXIT_CODES[result.verdict]
    if options.format == "json":
        return output.json_for_stdout(
            {
                "verdict": result.verdict,
                "findings": list(result.findings),
                "claims": list(result.claims),
            }
        )
    return f"{result}\n"
