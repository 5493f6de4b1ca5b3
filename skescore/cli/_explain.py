"""``skescore explain``: explain the predictions of saved rules for single rows."""

from __future__ import annotations

import argparse
import dataclasses

from skescore._text import plural
from skescore.cli import _output as output
from skescore.cli._arguments import integer
from skescore.cli._inputs import read_rows
from skescore.cli._rule_files import add_rules_and_rows, differences_from_training, read_rules

DESCRIPTION = """\
Explain the predictions of saved rules for rows of a table: the rules that hold, the conditions of
the rule that predicts, and the smallest change of the row that leads to another prediction.
"""
EXAMPLES = """\
examples:
  skescore explain run/rules.json new_houses.csv --row 7
  skescore explain run/rules.json iris --row 1 --row 51 --format json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_rules_and_rows(parser)
    parser.add_argument(
        "--row",
        action="append",
        type=integer(1),
        required=True,
        metavar="N",
        help="number of a row, where 1 is the first row below the header; repeatable",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="output format (default text)"
    )


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    ruleset = read_rules(options.rules)
    rows = read_rows(options, ruleset, options.data)
    output.Notes().add_drift(*differences_from_training(options.rules, ruleset, rows))
    missing_rows = [number for number in options.row if number > len(rows)]
    if missing_rows:
        raise ValueError(
            f"--row {missing_rows[0]}: {options.data} has {plural(len(rows), 'row')}. Pass a "
            f"number from 1 to {len(rows)}."
        )
    explanations = [ruleset.explain(rows.iloc[[number - 1]]) for number in options.row]
    if options.format == "json":
        records = [
            {"row_number": number}
            | {k: v for k, v in dataclasses.asdict(one).items() if not k.startswith("_")}
            for number, one in zip(options.row, explanations, strict=True)
        ]
        return output.json_for_stdout(records)
    printer = output.Printer(markdown=False)
    for number, one in zip(options.row, explanations, strict=True):
        if len(explanations) > 1:
            printer.verbatim(f"row {number}:")
        printer.verbatim(str(one))
    return printer.text()
