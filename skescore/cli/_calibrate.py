"""``skescore calibrate``: sets of labels or intervals with a guaranteed coverage for each rule."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from skescore._text import plural
from skescore.cli import _arguments as arguments
from skescore.cli import _output as output
from skescore.cli._arguments import OF_DATA
from skescore.cli._inputs import find_column, raw_table, read_labels, read_rows
from skescore.cli._rule_files import (
    add_output_options,
    check_output,
    preparation_of,
    read_rules,
    read_target,
    write_or_return,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from skescore.monitoring import CalibratedRules
    from skescore.rules import RuleSet

DESCRIPTION = """\
Calibrate saved rules. In classification, each rule then predicts a set of labels, in regression an
interval. The set or interval contains the label of a new row with a probability of at least
--level. A rule that predicts several labels abstains, because each of them is possible.

DATA contains calibration rows. These rows must not have been used to fit the model or the rules.
The guarantee holds for new rows from the same distribution. --output writes JSON, which `skescore
predict` uses and `skescore rules --to sql` or `--to python` exports.
"""
EXAMPLES = """\
examples:
  skescore calibrate run/rules.json held_out.csv --target price --output run/calibrated.json
  skescore predict run/calibrated.json new_houses.csv --abstain
  skescore rules run/calibrated.json --to sql --table houses
  skescore calibrate run/rules.json held_out.csv --level 0.8 --test more.csv
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    arguments.add_rules_argument(parser)
    parser.add_argument(
        "data", action=OF_DATA, metavar="DATA", help="a table of calibration rows with their labels"
    )
    parser.add_argument(
        "--target",
        metavar="COLUMN",
        help="column of labels (default: the target in the run.json in the folder of the rules)",
    )
    parser.add_argument(
        "--level",
        type=arguments.number_above(0),
        default=0.9,
        metavar="P",
        help="smallest probability that the set or interval contains the label (default 0.9)",
    )
    parser.add_argument(
        "--test",
        action=OF_DATA,
        metavar="FILE",
        help="a table of further rows, on which the coverage of each rule is measured",
    )
    arguments.add_reading_options(parser.add_argument_group("reading a table"))
    add_output_options(parser)
    arguments.add_format_option(parser)


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    from skescore.monitoring import CalibratedRules

    check_output(options.output, overwrite=options.overwrite)
    ruleset, notes = read_rules(options.rules), output.Notes()
    if options.target is None:
        options.target = read_target(options.rules, ruleset)
    if options.target is None:
        options.parser.error(
            f"--target COLUMN is required, because the folder of {options.rules} contains no "
            "run.json of these rules"
        )
    X, y = _labeled_rows(options, ruleset, options.data, notes)
    calibrated = CalibratedRules.fit(ruleset, X, y, level=options.level)
    coverage = None
    if options.test is not None:
        coverage = calibrated.coverage(*_labeled_rows(options, ruleset, options.test, notes))
    if options.output is not None:
        write_or_return(options.output, calibrated.to_json())
    if options.format == "json":
        return output.json_for_stdout(_record(calibrated, coverage, notes))
    return _text(options, calibrated, coverage)


def _labeled_rows(
    options: argparse.Namespace, ruleset: RuleSet, data: str, notes: output.Notes
) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return the rows of a table that have a label."""
    import numpy as np
    import pandas as pd

    X, table = read_rows(options, ruleset, data), raw_table(options, ruleset, data)
    if len(table) != len(X):
        raise ValueError(
            f"{data} has {plural(len(table), 'row')}, but only {len(X)} of them have values. "
            "Remove the empty rows."
        )
    preparation = preparation_of(options.rules, ruleset)
    column = find_column(table, options.target, data)
    labels = read_labels(ruleset, column, preparation, options.na_values)
    has_label = np.asarray(~pd.isna(labels))
    if not has_label.all():
        notes.add(f"{plural(int((~has_label).sum()), 'row')} of {data} without a label are ignored")
    return X[has_label], labels[has_label]


def _record(
    calibrated: CalibratedRules, coverage: pd.DataFrame | None, notes: output.Notes
) -> dict[str, Any]:
    """Return the calibration and its test for JSON."""
    record: dict[str, Any] = {
        "level": calibrated.level,
        "calibration_rows": list(calibrated.n_rows),
        "sets": calibrated.sets,
        "half_widths": calibrated.half_widths,
        "abstains": list(calibrated.abstains),
        "notes": notes.texts,
    }
    if coverage is not None:
        record["coverage"] = coverage.reset_index().to_dict(orient="records")
    return record


def _text(
    options: argparse.Namespace, calibrated: CalibratedRules, coverage: pd.DataFrame | None
) -> str:
    """Return the rules with their sets or intervals, and the coverage on the test rows, as text."""
    printer = output.Printer(options.format == "markdown")
    printer.verbatim(str(calibrated))
    abstaining = [str(k + 1) for k, is_unsure in enumerate(calibrated.abstains[:-1]) if is_unsure]
    reason = "predict several labels" if calibrated.sets is not None else "have no finite interval"
    verdict = "No rule abstains."
    if abstaining:
        n_rules = plural(len(calibrated.ruleset), "rule")
        verdict = f"{len(abstaining)} of {n_rules} {reason}: {', '.join(abstaining)}."
    printer.line(
        f"Predictions contain the label with probability at least {calibrated.level:g}. {verdict}"
    )
    if coverage is not None:
        rows = [
            [
                str(name),
                str(int(line["rows"])),
                output.number(line["coverage"]),
                output.number(line["standard_error"]),
                output.number(line["size"]),
            ]
            for name, line in coverage.iterrows()
        ]
        n_covered = (coverage["coverage"] * coverage["rows"]).sum()
        total = int(coverage["rows"].sum())
        printer.line(f"On the {plural(total, 'row')} of {options.test}:")
        size = "labels" if calibrated.sets is not None else "width"
        printer.table(["rule", "rows", "covered", "±", size], rows)
        printer.line(f"Share of rows whose label is covered: {n_covered / max(total, 1):.3f}.")
    return printer.text()
