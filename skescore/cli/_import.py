"""``skescore import``: convert rules of other tools, and models that consist of rules."""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import expand_home
from skescore._names import MODEL_KINDS, VOTING_TEXTS
from skescore._rule_readers import RULE_FILE_READERS
from skescore._text import cell_text, listed, plural
from skescore.cli import _arguments as arguments
from skescore.cli import _inputs as inputs
from skescore.cli import _output as output
from skescore.cli._arguments import OF_DATA, OF_FILE, OF_MODEL
from skescore.cli._inputs import as_text, read_table
from skescore.cli._rule_files import check_output, write_or_return

if TYPE_CHECKING:
    import pandas as pd

    from skescore.rules import Domain, RuleSet

__all__ = ["KINDS", "find_kind", "read_rule_file"]


#: Kinds of files that can be imported, with their descriptions.
KINDS = {
    "model": "a fitted model (.skops; .joblib and .pkl with --trust)",
    **{kind: reader.description for kind, reader in RULE_FILE_READERS.items()},
}
_SEPARATORS = (",", ";", "\t")
#: Columns of a table of conditions that may contain numbers, and formats of these numbers.
_NUMBERS = ("value", "number", "weight", "rows")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_POINT = re.compile(r"[+-]?\d*\.\d+([.,]\d+)*(e[+-]?\d+)?", re.IGNORECASE)


def find_kind(path: Path) -> str:
    """Return the kind of a file by its extension and, for JSON, by its content."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name the file.")
    suffix = path.suffix.lower()
    if suffix in MODEL_KINDS:
        return "model"
    extensions = {suffix: r.kind for r in RULE_FILE_READERS.values() for suffix in r.extensions}
    if suffix in extensions:
        return extensions[suffix]
    if suffix != ".json":
        raise ValueError(
            f"{path} has the unknown extension {path.suffix!r}; known extensions are "
            f"{', '.join(('.json', *MODEL_KINDS, *extensions))}. Rename it, or name its kind: "
            f"--kind {'|'.join(KINDS)}."
        )
    data = _parsed(path)
    for reader in RULE_FILE_READERS.values():
        if reader.recognizes(data):
            return reader.kind
    raise ValueError(
        f"{path} holds JSON of an unknown kind. Known are rule sets of skescore ('format' is its "
        "first field), of decision-rules ('meta' and 'rules'), and lists of conditions with the "
        "fields rule, feature, operator and value."
    )


def read_rule_file(
    path: Path, kind: str, *, names: Sequence[str] | None, voting: str | None
) -> RuleSet:
    """Read rules from a file that holds no model."""
    from skescore.black_boxes import SavedModelError

    reader = RULE_FILE_READERS[kind]
    available = {"feature_names": names, "voting": voting}
    try:
        content = _conditions(path) if kind == "table" else _text_of_file(path)
        if kind == "rulekit" and names is None:
            raise ValueError(
                "rule text does not contain the names and the order of the features: add --data "
                "DATA, or --feature-names with all of them"
            )
        return reader.read(content, **{name: available[name] for name in reader.options})
    except SavedModelError:
        raise
    except (TypeError, ValueError) as error:
        message = str(error)
        raise ValueError(message if str(path) in message else f"{path}: {message}") from error


def _text_of_file(path: Path) -> str:
    from skescore.black_boxes import read_bytes

    if path.is_dir():
        raise ValueError(f"{path} is a folder: name the file.")
    try:
        return read_bytes(path, str(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 text: {error}. Save it as UTF-8 (spreadsheets call it "
            "'CSV UTF-8'), or convert it: iconv -f WINDOWS-1252 -t UTF-8."
        ) from error


def _parsed(path: Path) -> Any:
    from skescore.black_boxes import SavedModelError

    try:
        return json.loads(_text_of_file(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SavedModelError):
            raise
        raise ValueError(f"{path} is not valid JSON: {error}.") from error


def _conditions(path: Path) -> Any:
    """Read a table of conditions as text, because a conversion would round its numbers."""
    import pandas as pd

    from skescore.datasets._files import read_file
    from skescore.rules.importers import is_table_of_conditions

    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return read_file(path, str(path)).frame
    if suffix == ".json":
        data = _parsed(path)
        return pd.DataFrame(data, dtype=object) if isinstance(data, dict) else data
    text = _text_of_file(path)
    first = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=first.count)
    try:
        records = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
        rows = [
            (records.line_num, [cell_text(cell) for cell in cells])
            for cells in records
            if any(cells)
        ]
    except csv.Error as error:
        raise ValueError(f"it cannot be read as a table: {error}.") from error
    header = [name.strip() for name in rows[0][1]] if rows else []
    if not is_table_of_conditions(header) or len(set(header)) < len(header):
        raise ValueError(
            "a table of conditions has the columns rule, feature, operator, value, and class or "
            f"number, each once; the header is {first.strip()!r}. `skescore rules --to csv` writes "
            "such tables."
        )
    for line, cells in rows:
        if len(cells) != len(header):
            raise ValueError(
                f"it cannot be read as a table: line {line} (the header is line 1) has "
                f"{plural(len(cells), 'cell')}, the header {len(header)}. Put cells that contain "
                f"{separator!r} in quotation marks."
            )
    table = pd.DataFrame([cells for _, cells in rows[1:]], columns=header, dtype=object)
    return _with_decimal_points(table) if separator == ";" else table


def _with_decimal_points(table: pd.DataFrame) -> pd.DataFrame:
    """Replace decimal commas, which spreadsheets of many countries write between semicolons.

    Texts in quotation marks of their own are not changed.
    """
    columns = [name for name in _NUMBERS if name in table.columns]
    cells = [cell.strip() for name in columns for cell in table[name]]
    if not any(map(_DECIMAL_COMMA.fullmatch, cells)):
        return table
    pointed = next((cell for cell in cells if _POINT.fullmatch(cell)), None)
    if pointed is not None:
        raise ValueError(
            f"its numbers have decimal commas, but {pointed!r} has a point, which could separate "
            "thousands or decimals. Write all numbers with decimal points, or all with commas and "
            "without points."
        )
    for name in columns:
        table[name] = [
            cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell
            for cell in table[name]
        ]
    return table


DESCRIPTION = """\
Read rules of other tools, or a fitted model that consists of rules (trees, forests, extractors,
models of imodels, RuleKit or PSyKE), show them, and save them for `skescore score` and
`skescore rules`.
"""
EXAMPLES = """\
examples:
  skescore import forest.skops --data wine --output rules.json
  skescore import rulekit.txt --data flowers.csv --target species --output rules.json
  skescore import conditions.csv --feature-names length,width --output rules.json
"""
#: Names that only number the columns, which libraries assign to columns of arrays.
_NUMBERED = re.compile(r"(x|feature|column|f|att|attr)?[ _]?\d+", re.IGNORECASE)
_SHOWN_RULES = 60
_SHOWN_NAMES = 6


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    kinds = "; ".join(f"{kind}: {about}" for kind, about in KINDS.items())
    parser.add_argument(
        "model", action=OF_MODEL, metavar="MODEL", type=Path, help=f"one of these files. {kinds}"
    )
    parser.add_argument(
        "--kind",
        choices=("auto", *KINDS),
        default="auto",
        help="kind of the file (default auto: by its extension and content)",
    )
    arguments.add_trust_option(parser)
    parser.add_argument(
        "--voting",
        choices=tuple(VOTING_TEXTS),
        help="table: method that combines the predictions of several rules",
    )
    group = parser.add_argument_group("features")
    group.add_argument(
        "--feature-names",
        type=arguments.names_from,
        metavar="NAME,...",
        help="names of all features in the order of the model's columns",
    )
    group.add_argument(
        "--data",
        action=OF_DATA,
        metavar="DATA",
        help="a built-in data set or a CSV, TSV or Parquet file with the model's features: its "
        "columns provide the names and the domain, in which completeness by volume is measured",
    )
    group.add_argument(
        "--target", metavar="COLUMN", help="column of DATA with the target, which is not a feature"
    )
    arguments.add_reading_options(parser.add_argument_group("reading the table of --data"))
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output", action=OF_FILE, type=Path, metavar="RULES.json", help="save the rules"
    )
    group.add_argument(
        "--overwrite", action="store_true", help="replace the file if it already exists"
    )
    arguments.add_format_option(group)


def run(options: argparse.Namespace) -> str:
    """Run the command and return the text for standard output."""
    _check_usage(options)
    check_output(options.output, overwrite=options.overwrite)
    columns = None if options.data is None else _columns(options)
    notes = output.Notes()
    with notes.instead_of_warnings():
        ruleset, kind, model_name = _read(options, columns)
        ruleset = _set_names(ruleset, options, columns, notes)
        has_own_domain = ruleset.domain is not None
        if columns is not None:
            ruleset = _add_domain(ruleset, columns, options, notes)
    if options.output is not None:
        write_or_return(options.output, ruleset.to_json() + "\n")
    result = {
        "source": str(options.model),
        "kind": kind,
        "model": model_name,
        "data": options.data,
        "n_rules": len(ruleset),
        "n_conditions": ruleset.n_conditions,
        "rules": json.loads(ruleset.to_json(indent=None)),
        "notes": notes.texts,
    }
    if options.format == "json":
        return output.json_for_stdout(result)
    return _text(options, result, ruleset, has_own_domain=has_own_domain)


def _check_usage(options: argparse.Namespace) -> None:
    if options.data is None:
        if options.target is not None:
            options.parser.error("argument --target: needs --data")
        arguments.refuse_reading_options(options, "--data")
    elif options.feature_names is not None:
        options.parser.error("argument --feature-names: not allowed with --data, which has names")


def _columns(options: argparse.Namespace) -> pd.DataFrame:
    """Return the columns of the data that can be features."""
    table = read_table(options.data, options)
    other_names = [name for name in [options.target, *options.drop] if name is not None]
    for name in (*other_names, *options.category, *options.numeric):
        # A built-in data set comes without its target.
        if name not in table.columns and not (name == options.target and _is_builtin(options.data)):
            raise ValueError(
                f"{options.data} has no column {name!r}; its columns are "
                f"{listed(list(table.columns))}."
            )
    table = table.drop(columns=[name for name in other_names if name in table.columns])
    if _is_builtin(options.data) or table.empty:
        return table
    from skescore.datasets import read_table as read_prepared

    # `tune` reads the columns of a model from a file in the same way.
    reading = arguments.reading_from(options) | {"drop": ()}
    features = list(map(str, table.columns))
    with inputs.with_remedies(options):
        return read_prepared(
            options.data, features=features, max_categories=sys.maxsize, **reading
        ).frame


def _is_builtin(data: str) -> bool:
    from skescore.datasets import BUILT_IN

    return data in BUILT_IN


def _read(options: argparse.Namespace, columns: pd.DataFrame | None) -> tuple[RuleSet, str, str]:
    """Return the rules, the kind of the file, and the name of the model or format."""
    from sklearn.frozen import FrozenEstimator
    from sklearn.pipeline import Pipeline

    from skescore.black_boxes import load_model
    from skescore.rules import as_ruleset

    path = expand_home(options.model)
    if not path.exists():
        raise FileNotFoundError(f"There is no file {options.model}; pass a model or rules.")
    kind = find_kind(path) if options.kind == "auto" else options.kind
    if options.voting is not None and kind != "table":
        raise ValueError(
            f"--voting is for tables of conditions, but {options.model} is of the kind {kind!r}, "
            "which defines how its rules predict. Leave it out."
        )
    if kind != "model":
        names = options.feature_names if columns is None else list(columns.columns)
        title = RULE_FILE_READERS[kind].title
        return read_rule_file(path, kind, names=names, voting=options.voting), kind, title
    model = load_model(options.model, trust=options.trust)
    if isinstance(model, FrozenEstimator):
        model = model.estimator
    try:
        from skescore.rules.importers import options_from_rows

        row_options = {} if columns is None else options_from_rows(model, columns)
        ruleset = as_ruleset(model, **row_options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{options.model}: {error}") from error
    model_name = type(model).__name__
    if isinstance(model, Pipeline):
        model_name += f" that ends in a {type(model[-1]).__name__}"
    return ruleset, kind, model_name


def _set_names(
    ruleset: RuleSet,
    options: argparse.Namespace,
    columns: pd.DataFrame | None,
    notes: output.Notes,
) -> RuleSet:
    """Return the rules with the names of the user's features."""
    rule_names = list(ruleset.feature_names)
    if columns is None:
        names = options.feature_names
    else:
        names = list(columns.columns)
        if set(rule_names) <= set(names):
            return ruleset  # columns are found by name, regardless of their order
        if not all(map(_NUMBERED.fullmatch, rule_names)):
            unknown = [name for name in rule_names if name not in names]
            raise ValueError(
                f"{options.data} lacks the feature{'s' if len(unknown) > 1 else ''} "
                f"{listed(unknown)} of the rules; its columns are {listed(names)}. Name other data,"
                " or pass the names with --feature-names."
            )
    if names is None or list(names) == rule_names:
        return ruleset
    if len(names) != len(rule_names):
        source = "--feature-names" if columns is None else f"{options.data}"
        suffix = "" if columns is None else " Leave columns out with --target and --drop."
        raise ValueError(
            f"The rules have {plural(len(rule_names), 'feature')} ({listed(rule_names)}), {source} "
            f"has {len(names)}: {listed(list(names))}.{suffix}"
        )
    renamings = [f"{a!r} is {b!r}" for a, b in zip(rule_names, names, strict=True) if a != b]
    suffix = f" and {len(renamings) - _SHOWN_NAMES} more" if len(renamings) > _SHOWN_NAMES else ""
    notes.add(f"features named by their position: {', '.join(renamings[:_SHOWN_NAMES])}{suffix}")
    return ruleset.replace(feature_names=list(names))


def _add_domain(
    ruleset: RuleSet, columns: pd.DataFrame, options: argparse.Namespace, notes: output.Notes
) -> RuleSet:
    if ruleset.domain is not None:
        notes.add("the rules keep the domain of their training rows; --data does not change it")
        return ruleset
    from skescore.rules._domain import text_features

    rows = columns[list(ruleset.feature_names)]
    return ruleset.replace(domain=domain_of(rows, {*options.category, *text_features(ruleset)}))


def domain_of(rows: pd.DataFrame, names: set[str]) -> Domain:
    """Return the box around rows, and the shares of missing cells."""
    import numpy as np
    import pandas as pd

    from skescore.rules import Domain

    matrix = np.zeros((max(1, len(rows)), rows.shape[1]))
    categories: dict[int, Sequence[Any]] = {}
    for j, (name, column) in enumerate(rows.items()):
        present_values = column.dropna()
        if present_values.empty:
            raise ValueError(
                f"Column {name!r} of the data has no values, so it has no domain. Pass data with "
                "values, or leave out --data."
            )
        if name in names or not pd.api.types.is_numeric_dtype(present_values.dtype):
            categories[j] = sorted(set(as_text(present_values)))
            continue
        values = present_values.to_numpy(dtype=float)
        if not np.isfinite(values).all():
            raise ValueError(f"Column {name!r} of the data has infinite values: correct them.")
        matrix[:, j] = values[0]
        matrix[: len(values), j] = values
    missing = tuple(rows.isna().mean().tolist())
    return replace(Domain.around(matrix, categories=categories), missing=missing)


def _text(
    options: argparse.Namespace, result: dict[str, Any], ruleset: RuleSet, *, has_own_domain: bool
) -> str:
    from skescore.rules._text import format_label

    printer = output.Printer(options.format == "markdown")
    printer.line(
        f"{result['source']} ({result['model']}): {plural(len(ruleset), 'rule')} with "
        f"{plural(ruleset.n_conditions, 'condition')}, for {ruleset.task} on "
        f"{plural(ruleset.n_features, 'feature')}"
    )
    printer.line(f"features: {listed(list(ruleset.feature_names))}")
    if ruleset.classes is not None:
        printer.line(f"classes: {', '.join(map(format_label, ruleset.classes))}")
    printer.line(f"prediction: {_describe_prediction(ruleset)}")
    printer.line(f"where no rule holds: {_describe_fallback(ruleset)}")
    domain = "unknown, so completeness by volume depends on the scored rows (--data sets a domain)"
    if ruleset.domain is not None:
        is_of_data = options.data is not None and not has_own_domain
        domain = f"from {options.data}" if is_of_data else "in the rules"
    printer.line(f"domain: {domain}")
    printer.heading("rules")
    is_long = len(ruleset) > _SHOWN_RULES
    printer.verbatim(ruleset.to_text(_SHOWN_RULES if is_long else None))
    return printer.text()


def _describe_prediction(ruleset: RuleSet) -> str:
    if ruleset.voting is not None:
        return f"{VOTING_TEXTS[ruleset.voting]} (voting: {ruleset.voting})"
    if ruleset.ordered:
        return "the first rule that holds"
    if ruleset.disjoint:
        return "the only rule that holds"
    if ruleset.task == "classification":
        return "the purest rule that holds"
    return "of the rules that hold, the one with the most training rows"


def _describe_fallback(ruleset: RuleSet) -> str:
    from skescore.rules._text import format_label

    fallback = ruleset.fallback
    if fallback is None:
        return "no prediction"
    if fallback.policy == "nearest":
        return "the rule with the nearest box"
    if fallback.policy == "abstain":
        return "no prediction, because the rules abstain"
    return format_label(fallback.output)
