"""``skescore predict``: predict rows with saved rules, as CSV or JSON."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skescore._text import csv_of, did_you_mean, listed, nearest, plural
from skescore.cli._arguments import names_from
from skescore.cli._inputs import read_rows, read_table
from skescore.cli._output import Notes, check_encoding, json_for_stdout, to_json
from skescore.cli._rule_files import (
    add_output_options,
    add_rules_and_rows,
    check_output,
    differences_from_training,
    read_calibrated,
    read_rules,
    write_or_return,
)

if TYPE_CHECKING:
    import pandas as pd

    from skescore.monitoring import CalibratedRules
    from skescore.rules import RuleSet

DESCRIPTION = """\
Predict the rows of a table with saved rules. The output is CSV with one line per row, in the order
of the table: the prediction and the number of the rule that predicts the row. The number is empty
if no rule covers the row, or if several rules vote. --format json writes the same as JSON records.

For each feature, standard error reports how many rows are outside the range of the training rows,
and whether the distribution differs from that of the training rows.

With calibrated rules, the output also contains the possible labels or the bounds of an interval.
"""
EXAMPLES = """\
examples:
  skescore predict run/rules.json new_houses.csv
  skescore predict run/rules.json new_houses.csv --output predictions.csv
  skescore predict run/rules.json patients.csv --keep id,name --labels healthy,ill
  skescore predict run/rules.json new_houses.csv --strict
  skescore predict run/calibrated.json new_houses.csv --abstain
"""
_COLUMNS = ("prediction", "rule", "prediction_set", "lower_bound", "upper_bound")
#: Separator of the labels of a set, as in the exported SQL.
_SEPARATOR = " | "


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_rules_and_rows(parser)
    parser.add_argument(
        "--keep",
        metavar="COLUMN,...",
        type=names_from,
        action="extend",
        default=[],
        help="columns of the table to write in front of the predictions, such as identifiers; "
        "repeatable",
    )
    parser.add_argument(
        "--labels",
        metavar="NAME,...",
        type=names_from,
        help="names to write for the classes, in the order of the classes (no,yes for 0 and 1), "
        "or pairs as in 0=no,1=yes",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="fail instead of writing predictions if rows differ from the training rows in a "
        "column that the rules use",
    )
    parser.add_argument(
        "--abstain",
        action="store_true",
        help="with calibrated rules: write no prediction if several labels are possible, or if a "
        "rule had too few rows for an interval",
    )
    parser.add_argument(
        "--format",
        choices=("csv", "json"),
        default="csv",
        help="output format (default csv)",
    )
    add_output_options(parser)


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    check_output(options.output, overwrite=options.overwrite)
    import numpy as np
    import pandas as pd

    from skescore.metrics import predict_all_rows

    calibrated = read_calibrated(options.rules)
    if options.abstain and calibrated is None:
        options.parser.error("--abstain needs calibrated rules; create them: skescore calibrate")
    ruleset = read_rules(options.rules) if calibrated is None else calibrated.ruleset
    labels = None if options.labels is None else _map_labels(ruleset, options.labels)
    rows = read_rows(options, ruleset, options.data)
    columns = _read_kept_columns(options, len(rows))
    notes = _report_drift(options, ruleset, rows)
    if ruleset.voting is None:
        index = np.asarray(ruleset.assign(rows))
        rule = [str(i + 1) if i >= 0 else "" for i in index.tolist()]
    else:
        rule = [""] * len(rows)
    if calibrated is None or ruleset.fallback is not None:
        predictions = pd.Series(ruleset.predict(rows))
    else:  # calibrated rules have a set for uncovered rows
        predictions = pd.Series(predict_all_rows(ruleset, rows)).astype(object)
        predictions = predictions.where(index >= 0, None)
    if labels is not None:
        predictions = predictions.map(lambda value: labels.get(value, value))
    table = pd.DataFrame({**columns, "prediction": predictions, "rule": rule})
    if calibrated is not None:
        _add_sets(table, calibrated, rows, labels or {}, notes, abstain=options.abstain)
    if options.format == "json":
        return _write_json(options, table, notes)
    if "prediction_set" in table:
        table["prediction_set"] = table["prediction_set"].map(_SEPARATOR.join)
    text = csv_of(table)
    if options.output is None:
        check_encoding(text, "CSV")
    return write_or_return(options.output, text)


def _is_missing_cell(value: Any) -> bool:
    """Return whether a cell of the output is empty."""
    import pandas as pd

    return value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def _write_json(options: argparse.Namespace, table: pd.DataFrame, notes: Notes) -> str:
    """Write one record per row, with rules as numbers and sets of labels as lists."""
    records: list[dict[str, Any]] = table.astype(object).to_dict("records")  # type: ignore[assignment]
    for record in records:
        empty_names = [name for name, value in record.items() if _is_missing_cell(value)]
        record.update(dict.fromkeys(empty_names))
        record["rule"] = int(record["rule"]) if record["rule"] else None
    result = {"rules": str(options.rules), "notes": notes.texts, "predictions": records}
    text = json_for_stdout(result) if options.output is None else to_json(result)
    return write_or_return(options.output, text)


def _add_sets(
    table: pd.DataFrame,
    calibrated: CalibratedRules,
    rows: pd.DataFrame,
    labels: Mapping[Any, str],
    notes: Notes,
    *,
    abstain: bool,
) -> None:
    """Add the sets or intervals of calibrated rules to their predictions."""
    import numpy as np
    import pandas as pd

    if calibrated.sets is None:
        for name, end in zip(_COLUMNS[3:], calibrated.predict_interval(rows), strict=True):
            table[name] = np.where(np.isfinite(end), end, np.nan)
        is_unsure = table["lower_bound"].isna()
    else:
        sets = calibrated.predict_set(rows)
        table["prediction_set"] = [[str(labels.get(label, label)) for label in row] for row in sets]
        is_unsure = pd.Series([len(row) > 1 for row in sets], index=table.index)
    if abstain:
        table["prediction"] = table["prediction"].astype(object).where(~is_unsure, None)
    reason = "lack an interval" if calibrated.sets is None else "have several possible labels"
    notes.add(f"{int(is_unsure.sum())} of {plural(len(table), 'row')} {reason}")


def _map_labels(ruleset: RuleSet, names: Sequence[str]) -> Mapping[Any, str]:
    """Return the name of each class, from names in order or pairs."""
    classes = list(ruleset.classes or ())
    if not classes:
        raise ValueError("--labels names classes, but these rules predict numbers. Leave it out.")
    if all("=" in name for name in names):
        new_names = dict(name.split("=", 1) for name in names)
        by_text = {str(label): label for label in classes}
        unknown = [name for name in new_names if name not in by_text]
        if unknown:
            raise ValueError(
                f"--labels: the rules have no class {unknown[0]!r}. "
                f"{did_you_mean(unknown[0], list(by_text))}"
            )
        return {by_text[name]: label for name, label in new_names.items()}
    if len(names) != len(classes):
        raise ValueError(
            f"--labels must name each of the {len(classes)} classes ({listed(classes)}) in this "
            f"order, got {len(names)}. Name them all, or write pairs such as {classes[0]}=NAME."
        )
    return dict(zip(classes, names, strict=True))


def _read_kept_columns(options: argparse.Namespace, n_rows: int) -> dict[str, pd.Series]:
    """Return the columns of the table that are written with the predictions."""
    if not options.keep:
        return {}
    table = read_table(options.data, options, texts=options.keep, keeps_zeros=True)
    columns = list(map(str, table.columns))
    table.columns = columns
    for name in options.keep:
        if name not in columns:
            suggestion = nearest(name, columns)
            guess = f" Did you mean {suggestion!r}?" if suggestion else ""
            raise ValueError(
                f"--keep: {options.data} has no column {name!r}.{guess} Its columns are "
                f"{listed(columns)}."
            )
        if name in _COLUMNS:
            raise ValueError(
                f"--keep {name}: the predictions have a column of this name. Rename the column of "
                "the table."
            )
    if len(table) != n_rows:
        raise ValueError(
            f"--keep: {options.data} has {len(table)} rows, but {n_rows} are predicted. Remove "
            "rows that cannot be read."
        )
    return {name: table[name].reset_index(drop=True) for name in dict.fromkeys(options.keep)}


def _report_drift(options: argparse.Namespace, ruleset: RuleSet, rows: pd.DataFrame) -> Notes:
    """Report rows that are unlike the training rows, or raise an error with --strict."""
    differences, outside, unused = differences_from_training(options.rules, ruleset, rows)
    if differences and options.strict:
        raise ValueError(
            f"--strict: rows of {options.data} differ from the training rows: "
            f"{'; '.join(differences)}. Correct the rows, or leave out --strict."
        )
    notes = Notes()
    notes.add_drift(differences, outside, unused)
    return notes
