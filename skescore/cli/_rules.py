"""``skescore rules``: convert saved rules to other formats."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skescore._names import SQL_KINDS
from skescore._rule_writers import RULE_WRITERS
from skescore.cli import _output as output
from skescore.cli._arguments import (
    OF_DATA,
    add_reading_options,
    add_rules_argument,
    add_standalone_option,
    names_from,
    refuse_reading_options,
)
from skescore.cli._inputs import read_rows
from skescore.cli._rule_files import (
    add_output_options,
    check_output,
    prepared_columns,
    read_calibrated,
    read_rules,
    write_or_return,
)

if TYPE_CHECKING:
    from skescore.monitoring import CalibratedRules
    from skescore.rules import RuleSet

DESCRIPTION = """\
Convert rules that were saved by `skescore tune --output`, `skescore import` or RuleSet.to_json to
another format. Calibrated rules (`skescore calibrate`) are written with their sets or intervals.
"""
EXAMPLES = """\
examples:
  skescore rules run/rules.json --to sentences
  skescore rules run/rules.json --to sql --dialect postgres --table sales.customers
  skescore rules run/rules.json --to python --name risk --shorten wine --output risk.py
  skescore rules run/rules.json --to onnx --output risk.onnx
"""


def _table_path(text: str) -> list[str]:
    """Split the name of a table at the dots outside of quotation marks."""
    matches = re.findall(r'(?:^|\.)(?:"((?:[^"]|"")*)"(?=\.|$)|([^.]*))', text)
    return [quoted.replace('""', '"') or plain for quoted, plain in matches]


#: Formats that predict rows without skescore.
_PROGRAMS = (
    *("sql", "dbt", "python", "javascript", "java", "prolog"),
    *("onnx", "pmml", "dmn", "excel", "excel-formula"),
)
#: Options whose name differs from the parameter of the writers, by the parameter.
_OPTION_NAMES = {
    "booleans": "boolean",
    "predicate": "name",
    "function_name": "name",
    "class_name": "name",
}
#: Formats that support each option.
_FORMATS_OF_OPTION: dict[str, list[str]] = {}
for _writer in RULE_WRITERS.values():
    for _parameter in _writer.options:
        _option = _OPTION_NAMES.get(_parameter, _parameter)
        _FORMATS_OF_OPTION.setdefault(_option, []).append(_writer.name)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_rules_argument(parser)
    parser.add_argument(
        "--to",
        choices=tuple(RULE_WRITERS),
        default="text",
        metavar="FORMAT",
        help="output format: "
        + "; ".join(f"{name}: {writer.description}" for name, writer in RULE_WRITERS.items()),
    )
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help="sql, dbt: dialect supported by sqlglot, such as postgres or bigquery (default: "
        "standard SQL)",
    )
    parser.add_argument(
        "--table",
        metavar="NAME",
        type=_table_path,
        help="sql: write a complete query on this table instead of an expression; the name may "
        "have the form schema.table; a name that contains a dot needs double quotation marks, as "
        "in '\"rows.parquet\"'; dbt: name of the model with the rows, or source.table",
    )
    parser.add_argument(
        "--kind",
        choices=SQL_KINDS,
        help="sql, dbt: return the prediction (predict, default) or the number of the rule that "
        "predicts the row (assign), for example to count the rows of each rule",
    )
    parser.add_argument(
        "--boolean",
        metavar="NAME,...",
        type=names_from,
        action="extend",
        help="sql, dbt: features that are compared with numbers in the rules, but are BOOLEAN "
        "columns in the table; repeatable",
    )
    parser.add_argument(
        "--exact",
        action="store_const",
        const=True,
        help="sql, dbt: write comparisons that are also correct for columns that contain NaN or "
        "32-bit floating-point numbers",
    )
    parser.add_argument(
        "--name", help="python, javascript, java, prolog: name of the function, class or predicate"
    )
    parser.add_argument("--package", metavar="NAME", help="java: package of the class")
    parser.add_argument(
        "--missing",
        metavar="ATOM",
        action="append",
        help="prolog: atom that denotes a missing value; repeatable (default: null and nan)",
    )
    parser.add_argument(
        "--shorten",
        action=OF_DATA,
        metavar="DATA",
        help="write numbers with as few digits as possible such that each condition covers the "
        "same rows of DATA; DATA is a built-in data set or a CSV, TSV or Parquet file; "
        "columns that are not features of the rules are ignored",
    )
    add_standalone_option(parser)
    parser.add_argument(
        "--class-names",
        metavar="NAME",
        nargs="+",
        help="names of the classes in order, such as `no yes` for the classes 0 and 1",
    )
    add_reading_options(parser.add_argument_group("reading the data of --shorten"))
    add_output_options(parser)


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    for name, formats in _FORMATS_OF_OPTION.items():
        if getattr(options, name) is not None and options.to not in formats:
            options.parser.error(
                f"argument --{name}: needs --to {' or --to '.join(formats)}, got --to {options.to}"
            )
    if options.shorten is None:
        refuse_reading_options(options, "--shorten")
    check_output(options.output, overwrite=options.overwrite)
    writer = RULE_WRITERS[options.to]
    if writer.is_binary and options.output is None:
        options.parser.error(
            f"argument --to: {options.to} is binary, so name a file: --output "
            f"rules{writer.extension}"
        )
    calibrated = read_calibrated(options.rules)
    if calibrated is not None:
        return _write_calibrated(options, calibrated)
    ruleset = read_rules(options.rules)
    if options.to in _PROGRAMS and (notes := prepared_columns(options.rules, ruleset)):
        lines = "".join(f"\n  - {note}" for note in notes)
        sys.stderr.write(
            "skescore: note: the rules need a table with the same preparation as in their run, "
            f"which `skescore predict` applies automatically:{lines}\n"
        )
    if options.shorten is not None:
        ruleset = ruleset.shorten(read_rows(options, ruleset, options.shorten))
    if options.class_names is not None:
        ruleset = ruleset.with_class_names(options.class_names)
    if options.standalone:
        ruleset = ruleset.standalone()
    if options.to == "csv":
        _note_limits_of_tables(ruleset)
    content = writer.write(ruleset, **_settings(options, writer.options))
    return _finish(options, content, is_exact=writer.is_exact)


def _settings(options: argparse.Namespace, parameters: Sequence[str]) -> dict[str, Any]:
    """Return the options that are parameters of a writer."""
    settings = {name: getattr(options, _OPTION_NAMES.get(name, name)) for name in parameters}
    return {name: value for name, value in settings.items() if value is not None}


def _finish(options: argparse.Namespace, content: str | bytes, *, is_exact: bool) -> str:
    """Write the file, or return the text for standard output."""
    if isinstance(content, str):
        content = content.rstrip("\n") + "\n"
    if options.output is not None:
        return write_or_return(options.output, content)
    assert isinstance(content, str)  # binary formats need a file
    if is_exact:
        output.check_encoding(content, options.to)
        return content
    printer = output.Printer(markdown=False)
    printer.verbatim(content.removesuffix("\n"))
    return printer.text()


#: Options that calibrated rules do not support.
_NOT_CALIBRATED = ("kind", "boolean", "shorten", "class_names")


def _write_calibrated(options: argparse.Namespace, calibrated: CalibratedRules) -> str:
    """Write the sets or intervals of calibrated rules."""
    for name in _NOT_CALIBRATED:
        if getattr(options, name) is not None:
            options.parser.error(
                f"--{name.replace('_', '-')} is not available for calibrated rules; apply it to "
                "the rules before `skescore calibrate`"
            )
    if options.to == "text":
        return _finish(options, str(calibrated), is_exact=False)
    if options.to == "json":
        return _finish(options, calibrated.to_json(), is_exact=True)
    if options.to == "sql":
        text = calibrated.to_sql(**_settings(options, ("dialect", "table", "exact")))
        return _finish(options, text, is_exact=True)
    if options.to == "python":
        text = calibrated.to_python(**_settings(options, ("function_name",)))
        return _finish(options, text, is_exact=True)
    if calibrated.sets is None:
        options.parser.error(
            f"--to {options.to} cannot express intervals; choose text, json, sql or python"
        )
    writer = RULE_WRITERS[options.to]
    content = writer.write(calibrated.set_ruleset(), **_settings(options, writer.options))
    return _finish(options, content, is_exact=writer.is_exact)


def _note_limits_of_tables(ruleset: RuleSet) -> None:
    """Report what a table of conditions does not contain, and how to import it."""
    notes = output.Notes()
    if ruleset.voting is not None:
        notes.add(
            "the table does not contain the method that combines the rules; to import it, use "
            f"skescore import FILE.csv --voting {ruleset.voting}"
        )
        if ruleset.voting == "probabilities":
            notes.add(
                "the table has no class counts, which weight these rules; --to json keeps them"
            )
    elif not (ruleset.ordered or ruleset.disjoint):
        notes.add(
            "in these rules, the purest of several rules that hold predicts; the table does not "
            "contain this information, so after an import, the first of them predicts. Use --to "
            "json to keep it"
        )
