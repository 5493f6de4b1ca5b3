"""Declarations of the languages in which rules can be written: one record per language.

``RuleSet.to`` and ``skescore rules --to`` derive from these records. To add a language, write a
function of a rule set and append a record. The module is cheap to import, so that the command line
can list the languages quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from skescore._text import csv_of


@dataclass(frozen=True)
class RuleWriter:
    """Writer of rules in a language.

    Parameters
    ----------
    name : str
        Name of the format.
    extension : str
        Extension of its files.
    function : str or callable
        Name of a method of RuleSet, or a function of the rule set and options. It returns text, or
        bytes if the format is binary.
    description : str
        Description of the result, for the help text of the command line.
    tasks : tuple of str
        Tasks whose rules can be written.
    options : tuple of str
        Parameters of the function that the command line offers.
    is_exact : bool
        Whether programs read the text, so that the terminal must not wrap or change it.
    is_binary : bool
        Whether the function returns bytes, which can only be written to a file.
    """

    name: str
    extension: str
    function: str | Callable[..., str | bytes]
    description: str
    tasks: tuple[str, ...] = ("classification", "regression")
    options: tuple[str, ...] = ()
    is_exact: bool = True
    is_binary: bool = False

    def write(self, ruleset: Any, **options: Any) -> Any:
        """Return a rule set as text, or as bytes if the format is binary."""
        if ruleset.task not in self.tasks:
            raise ValueError(
                f"{self.name!r} is for {' and '.join(self.tasks)}, got rules for {ruleset.task}."
            )
        if callable(self.function):
            return self.function(ruleset, **options)
        return str(getattr(ruleset, self.function)(**options))


def _write_page(ruleset: Any, **options: Any) -> str:
    return str(ruleset.to_html(**{"standalone": True, **options}))


def _write_csv(ruleset: Any) -> str:
    return csv_of(ruleset.to_conditions())


def _exporter(name: str) -> Callable[..., Any]:
    """Return a function that imports a writer of `skescore.rules.exporters` when called."""

    def write(ruleset: Any, **options: Any) -> Any:
        return getattr(import_module("skescore.rules.exporters"), name)(ruleset, **options)

    return write


def _write_dbt(ruleset: Any, table: str | Sequence[str] | None = None, **options: Any) -> str:
    if table is None:
        raise ValueError(
            "dbt requires the name of the dbt model that contains the rows, got none. Pass "
            "table='model' or table='source.table' (on the command line: --table)."
        )
    model = table if isinstance(table, str) else ".".join(table)
    return str(_exporter("to_dbt")(ruleset, model=model, **options))


#: All languages, by name.
RULE_WRITERS = {
    writer.name: writer
    for writer in (
        RuleWriter("text", ".txt", "to_text", "text (default)", is_exact=False),
        RuleWriter("sentences", ".txt", "to_sentences", "English sentences", is_exact=False),
        RuleWriter("tree", ".txt", "to_tree_text", "an indented tree", is_exact=False),
        RuleWriter("markdown", ".md", "to_markdown", "a Markdown table"),
        RuleWriter("html", ".html", _write_page, "an HTML page"),
        RuleWriter(
            "prolog", ".pl", "to_prolog", "a Prolog theory", options=("predicate", "missing")
        ),
        RuleWriter(
            "sql",
            ".sql",
            "to_sql",
            "an SQL expression or query",
            options=("dialect", "table", "kind", "booleans", "exact"),
        ),
        RuleWriter("python", ".py", "to_python", "a Python function", options=("function_name",)),
        RuleWriter(
            "javascript",
            ".js",
            _exporter("to_javascript"),
            "a JavaScript function",
            options=("function_name",),
        ),
        RuleWriter(
            "java", ".java", _exporter("to_java"), "a Java class", options=("class_name", "package")
        ),
        RuleWriter("onnx", ".onnx", _exporter("to_onnx"), "an ONNX model", is_binary=True),
        RuleWriter("pmml", ".pmml", _exporter("to_pmml"), "a PMML document"),
        RuleWriter("dmn", ".dmn", _exporter("to_dmn"), "a DMN decision table"),
        RuleWriter("excel", ".xlsx", _exporter("to_excel"), "an Excel workbook", is_binary=True),
        RuleWriter("excel-formula", ".txt", _exporter("to_excel_formula"), "an Excel formula"),
        RuleWriter(
            "dbt",
            ".sql",
            _write_dbt,
            "the SQL of a dbt model",
            options=("dialect", "table", "kind", "booleans", "exact"),
        ),
        RuleWriter("csv", ".csv", _write_csv, "a table of conditions"),
        RuleWriter("json", ".json", "to_json", "the complete rule set"),
    )
}
