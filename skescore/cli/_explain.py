"""``skescore explain``: explain the predictions of saved rules for single rows."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from skescore._text import plural
from skescore.cli import _output as output
from skescore.cli._arguments import integer
from skescore.cli._inputs import read_rows
from skescore.cli._rule_files import add_rules_and_rows, differences_from_training, read_rules

if TYPE_CHECKING:
    import pandas as pd

    from skescore.attribution import SufficientSubsets
    from skescore.rules import RuleSet

DESCRIPTION = """\
Explain the predictions of saved rules for rows of a table: the rules that hold, the conditions of
the rule that predicts, and the smallest change of the row that leads to another prediction. With
--sufficient, also the values of the row that suffice for the prediction.
"""
EXAMPLES = """\
examples:
  skescore explain run/rules.json new_houses.csv --row 7
  skescore explain run/rules.json iris --row 1 --row 51 --format json
  skescore explain run/rules.json new_houses.csv --row 7 --sufficient
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
        "--sufficient",
        action="store_true",
        help="also find few values of the row that suffice for its class, whatever values of other "
        "rows of the table the other features take",
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
    subsets = _find_subsets(options, ruleset, rows)
    if options.format == "json":
        records = [
            {"row_number": number}
            | {k: v for k, v in dataclasses.asdict(one).items() if not k.startswith("_")}
            for number, one in zip(options.row, explanations, strict=True)
        ]
        for record, its_subsets in zip(records, subsets, strict=False):
            record["sufficient"] = _subsets_record(its_subsets)
        return output.json_for_stdout(records)
    printer = output.Printer(markdown=False)
    for i, (number, one) in enumerate(zip(options.row, explanations, strict=True)):
        if len(explanations) > 1:
            printer.verbatim(f"row {number}:")
        printer.verbatim(str(one))
        if subsets:
            printer.verbatim(str(subsets[i]))
    if subsets:
        printer.line(
            "(Generated rows have these values, and values of the "
            f"{plural(len(rows), 'row')} of {options.data} in the other columns.)"
        )
    return printer.text()


def _find_subsets(
    options: argparse.Namespace, ruleset: RuleSet, rows: pd.DataFrame
) -> list[SufficientSubsets]:
    """Return sufficient values of each row; none without ``--sufficient``."""
    if not options.sufficient:
        return []
    from skescore.attribution import sufficient_subsets

    if ruleset.classes is None:
        raise ValueError(
            f"--sufficient: the rules must predict classes, but {options.rules} predicts numbers. "
            "Leave the option out."
        )
    if len(rows) < 2:
        raise ValueError(
            f"--sufficient: {options.data} must have other rows, whose values replace those of the "
            "explained row, but it has only one. Pass the table of the search."
        )
    return [sufficient_subsets(ruleset, rows.iloc[[number - 1]], rows) for number in options.row]


def _subsets_record(subsets: SufficientSubsets) -> dict[str, Any] | None:
    """Return the smallest sufficient subset, or None if there is none."""
    if not subsets.subsets:
        return None
    smallest = subsets.subsets[0]
    names = dict(zip(smallest.features, smallest.names, strict=True))
    return {
        "values": dict(zip(smallest.names, smallest.values, strict=True)),
        "agreement": smallest.agreement,
        "interval": list(smallest.interval),
        "generated_rows": smallest.n_rows,
        "necessary": [names[j] for j in subsets.necessary],
    }
