"""``skescore rules``: saved rules in other forms."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from skescore._names import SQL_KINDS
from skescore._text import csv_of
from skescore.cli import _output as output
from skescore.cli._arguments import (
    OF_DATA,
    OF_RULES,
    add_reading_options,
    add_standalone_option,
    refuse_reading_options,
)
from skescore.cli._rule_files import (
    add_output_options,
    check_output,
    read_rows,
    read_rules,
    write_output,
)

if TYPE_CHECKING:
    from skescore.rules import RuleSet

DESCRIPTION = """\
Write rules that `skescore tune --output`, `skescore import` or RuleSet.to_json saved in another
form.
"""
EXAMPLES = """\
examples:
  skescore rules run/rules.json --to sentences
  skescore rules run/rules.json --to sql --dialect postgres --table sales.customers
  skescore rules run/rules.json --to python --name risk --shorten wine --output risk.py
"""


class Form(NamedTuple):
    """A form in which rules can be written."""

    write: Callable[[RuleSet, argparse.Namespace], str]
    options: tuple[str, ...] = ()
    exact: bool = True


def _sql(ruleset: RuleSet, options: argparse.Namespace) -> str:
    return ruleset.to_sql(
        dialect=options.dialect,
        table=options.table,
        kind=options.kind or "predict",
        booleans=options.boolean or (),
        exact=bool(options.exact),
    )


def _python(ruleset: RuleSet, options: argparse.Namespace) -> str:
    return ruleset.to_python(**({} if options.name is None else {"function_name": options.name}))


def _prolog(ruleset: RuleSet, options: argparse.Namespace) -> str:
    given = {"predicate": options.name, "missing": options.missing}
    return ruleset.to_prolog(**{k: value for k, value in given.items() if value is not None})


def _table_path(text: str) -> list[str]:
    """The parts of a table's name: dots part them, but for those within quotation marks."""
    parts = re.findall(r'(?:^|\.)(?:"((?:[^"]|"")*)"(?=\.|$)|([^.]*))', text)
    return [quoted.replace('""', '"') or plain for quoted, plain in parts]


#: The forms by the name that --to takes.
FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "text": Form(lambda ruleset, _: ruleset.to_text(), exact=False),
        "sentences": Form(lambda ruleset, _: ruleset.to_sentences(), exact=False),
        "tree": Form(lambda ruleset, _: ruleset.to_tree_text(), exact=False),
        "markdown": Form(lambda ruleset, _: ruleset.to_markdown()),
        "html": Form(lambda ruleset, _: ruleset.to_html(standalone=True)),
        "prolog": Form(_prolog, ("name", "missing")),
        "sql": Form(_sql, ("dialect", "table", "kind", "boolean", "exact")),
        "python": Form(_python, ("name",)),
        "csv": Form(lambda ruleset, _: csv_of(ruleset.to_conditions())),
        "json": Form(lambda ruleset, _: ruleset.to_json()),
    }
)
_ONLY_FOR = {
    name: [form for form, about in FORMS.items() if name in about.options]
    for name in ("dialect", "table", "kind", "boolean", "exact", "name", "missing")
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("rules", action=OF_RULES, metavar="RULES.json", type=Path, help="the rules")
    parser.add_argument(
        "--to",
        choices=tuple(FORMS),
        default="text",
        metavar="FORM",
        help=f"one of {', '.join(FORMS)}: text (default), sentences in English, an indented tree, "
        "a table in Markdown or HTML, a Prolog theory, an SQL expression, a Python function that "
        "needs nothing but Python, a table of conditions (csv), or all that there is (json)",
    )
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help="sql: a dialect that sqlglot knows, such as postgres or bigquery (standard SQL if "
        "left out)",
    )
    parser.add_argument(
        "--table",
        metavar="NAME",
        type=_table_path,
        help="sql: a whole query on this table, not just an expression; the name may have a path, "
        "such as schema.table, and stands in double quotation marks where a dot belongs to it, as "
        "in '\"rows.parquet\"'",
    )
    parser.add_argument(
        "--kind",
        choices=SQL_KINDS,
        help="sql: the prediction (predict, default) or the number of the rule that gives it "
        "(assign), by which to count the rows of each rule and those of none",
    )
    parser.add_argument(
        "--boolean",
        metavar="NAME",
        action="append",
        help="sql: a feature whose column is BOOLEAN where the rules compare it with numbers; once "
        "more for each further one",
    )
    parser.add_argument(
        "--exact",
        action="store_const",
        const=True,
        help="sql: columns may hold NaN besides NULL, or be of 32 bits, for which plain decimals "
        "and comparisons are not right",
    )
    parser.add_argument("--name", help="python, prolog: of the function or the predicate")
    parser.add_argument(
        "--missing",
        metavar="ATOM",
        action="append",
        help="prolog: what stands for a missing value; repeatable (null and nan if left out)",
    )
    parser.add_argument(
        "--shorten",
        action=OF_DATA,
        metavar="DATA",
        help="write numbers as short as the rows of a built-in data set or a CSV, TSV or Parquet "
        "file allow: on these rows, each condition holds as before; columns that the rules do not "
        "know are ignored",
    )
    add_standalone_option(parser)
    parser.add_argument(
        "--class-names",
        metavar="NAME",
        nargs="+",
        help="what to call the classes, in their order: no yes, where a model knows 0 and 1",
    )
    add_reading_options(parser.add_argument_group("reading the table of --shorten"))
    add_output_options(parser)


def run(options: argparse.Namespace) -> str:
    """Carry out the command; gives the text for standard output."""
    for name, forms in _ONLY_FOR.items():
        if getattr(options, name) is not None and options.to not in forms:
            option, where = name.replace("_", "-"), " or --to ".join(forms)
            options.parser.error(
                f"argument --{option}: goes with --to {where}, got --to {options.to}"
            )
    if options.shorten is None:
        refuse_reading_options(options, "--shorten")
    check_output(options.output, overwrite=options.overwrite)
    ruleset = read_rules(options.rules)
    if options.shorten is not None:
        ruleset = ruleset.shorten(read_rows(options, ruleset, options.shorten))
    if options.class_names is not None:
        ruleset = ruleset.with_class_names(options.class_names)
    if options.standalone:
        ruleset = ruleset.standalone()
    if options.to == "csv":
        _note_what_a_table_lacks(ruleset)
    form = FORMS[options.to]
    text = form.write(ruleset, options).rstrip("\n") + "\n"
    if options.output is not None:
        write_output(options.output, text)
        sys.stderr.write(f"wrote {options.output}\n")
        return ""
    if form.exact:
        output.check_encoding(text, options.to)
        return text
    printer = output.Printer(markdown=False)
    printer.verbatim(text.removesuffix("\n"))
    return printer.text()


def _note_what_a_table_lacks(ruleset: RuleSet) -> None:
    """Say what an import of the table has to be told, or cannot know."""
    notes = output.Notes()
    if ruleset.voting is not None:
        notes.add(
            "a table does not say how rules predict together; to read it again: skescore import "
            f"FILE.csv --voting {ruleset.voting}"
        )
        if ruleset.voting == "probabilities":
            notes.add(
                "a table does not hold the class counts by which these rules share; JSON does"
            )
    elif not (ruleset.ordered or ruleset.disjoint):
        notes.add(
            "a table does not say that the purest of several rules predicts; read again, the first "
            "one will. JSON holds everything"
        )
