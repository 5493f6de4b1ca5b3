"""``skescore predict``: what saved rules predict for rows, as CSV."""

from __future__ import annotations

import argparse
import sys

from skescore._text import csv_of
from skescore.cli._output import check_encoding
from skescore.cli._rule_files import (
    add_output_options,
    add_rules_and_rows,
    check_output,
    read_rows,
    read_rules,
    write_output,
)

DESCRIPTION = """\
Predict the rows of a table by rules that `skescore tune --output`, `skescore import` or
RuleSet.to_json saved. Writes CSV: the prediction of each row, in the table's order, and the number
of the rule that it comes from; none where no rule holds, or where all rules that hold vote.
"""
EXAMPLES = """\
examples:
  skescore predict run/rules.json new_houses.csv
  skescore predict run/rules.json new_houses.csv --output predictions.csv
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_rules_and_rows(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    check_output(options.output, overwrite=options.overwrite)
    import numpy as np
    import pandas as pd

    ruleset = read_rules(options.rules)
    rows = read_rows(options, ruleset, options.data)
    if ruleset.voting is None:
        index = np.asarray(ruleset.assign(rows))
        rule = [str(i + 1) if i >= 0 else "" for i in index.tolist()]
    else:
        rule = [""] * len(rows)
    table = pd.DataFrame({"prediction": ruleset.predict(rows), "rule": rule})
    text = csv_of(table)
    if options.output is None:
        check_encoding(text, "CSV")
        return text
    write_output(options.output, text)
    sys.stderr.write(f"wrote {options.output}\n")
    return ""
