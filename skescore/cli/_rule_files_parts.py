"""Files of rules that other tools wrote: which kind they are, and how each is read."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from skescore.cli._models import MODEL_KINDS, SavedModelError, read_bytes
from skescore.datasets._files import read_file
from skescore.rules import RuleSet
from skescore.rules._json import JSON_FORMAT
from skescore.rules.importers._tables import is_table_of_conditions
from skescore.rules.importers._tables import read_table as read_conditions

__all__ = ["KINDS", "find_kind", "read_rule_file"]

#: What can be imported, and one line about it.
KINDS = {
    "model": "a fitted model (.skops; .joblib and .pkl with --trust)",
    "rules": "our own JSON",
    "table": "one row per condition, as CSV, TSV, Parquet or JSON",
    "rulekit": "rule text of RuleKit (.txt, .rules)",
    "decision-rules": "JSON of decision-rules",
}
TEXT_ENDINGS = (".txt", ".rules")
TABLE_ENDINGS = (".csv", ".tsv", ".tab", ".parquet", ".pq")
_SEPARATORS = (",", ";", "\t")
#: Columns of a table of conditions in which numbers may stand, and how these may be written.
_NUMBERS = ("value", "number", "weight", "rows")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
_POINT = re.compile(r"[+-]?\d*\.\d+([.,]\d+)*(e[+-]?\d+)?", re.IGNORECASE)


def find_kind(path: Path) -> str:
    """Tell what a file holds, by its ending and, for JSON, by its content.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
        One of :data:`KINDS`.

    Raises
    ------
    ValueError, OSError
        If that cannot be told.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name the file.")
    suffix = path.suffix.lower()
    if suffix in MODEL_KINDS:
        return "model"
    if suffix in TEXT_ENDINGS:
        return "rulekit"
    if suffix in TABLE_ENDINGS:
        return "table"
    if suffix != ".json":
        raise ValueError(
            f"{path} has the ending {path.suffix!r}; known are "
            f"{', '.join(('.json', *MODEL_KINDS, *TABLE_ENDINGS, *TEXT_ENDINGS))}. Rename it, or "
            f"say what it is with --kind {'|'.join(KINDS)}."
        )
    data = _parsed(path)
    if isinstance(data, dict):
        if data.get("format") == JSON_FORMAT:
            return "rules"
        if is_table_of_conditions(data):
            return "table"
        if "rules" in data and "meta" in data:
            return "decision-rules"
    elif isinstance(data, list) and any(
        is_table_of_conditions(record) for record in data if isinstance(record, dict)
    ):
        return "table"
    raise ValueError(
        f"{path} holds JSON of which skescore does not know what it is. Known are rule sets of "
        "skescore ('format' is its first field), of decision-rules ('meta' and 'rules'), and lists "
        "of conditions with the fields rule, feature, operator and value."
    )


def read_rule_file(
    path: Path, kind: str, *, names: Sequence[str] | None, voting: str | None
) -> RuleSet:
    """Read rules from a file that is no model.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        One of :data:`KINDS`, but not "model".
    names : sequence of str or None
        All features in their order, where the file does not say them.
    voting : str or None
        How rules of a table answer together.

    Returns
    -------
    RuleSet
        The rules.

    Raises
    ------
    ValueError, OSError
        If the file is not what it should be.
    """
    try:
        if kind == "table":
            return read_conditions(_conditions(path), feature_names=names, voting=voting)
        text = _text(path)
        if kind == "rules":
            return RuleSet.from_json(text)
        if kind == "decision-rules":
            from skescore.rules.importers._decision_rules import read_decision_rules

            return read_decision_rules(text)
        from skescore.rules.importers._rulekit_text import read_rulekit_text

        if names is None:
            raise ValueError(
                "rule text does not say which features there are, nor their order: add --data "
                "DATA, or --feature-names with all of them"
            )
        return read_rulekit_text(text, feature_names=names)
    except SavedModelError:
        raise
    except (TypeError, ValueError) as error:
        message = str(error)
        raise ValueError(message if str(path) in message else f"{path}: {message}") from error


def _text(path: Path) -> str:
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
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, SavedModelError):
            raise
        raise ValueError(f"{path} is not valid JSON: {error}.") from error


def _conditions(path: Path) -> Any:
    """A table of conditions as it stands: a reader that guesses types would round its numbers."""
    suffix = path.suffix.lower()
    if suffix in (".parquet", ".pq"):
        return read_file(path, str(path))[0]
    if suffix == ".json":
        data = _parsed(path)
        return pd.DataFrame(data, dtype=object) if isinstance(data, dict) else data
    text = _text(path)
    first = text.partition("\n")[0]
    separator = max(_SEPARATORS, key=first.count)
    try:
        records = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
        rows = [(records.line_num, cells) for cells in records if any(cells)]
    except csv.Error as error:
        raise ValueError(f"it cannot be read as a table: {error}.") from error
    header = [name.strip() for name in rows[0][1]] if rows else []
    if not is_table_of_conditions(header) or len(set(header)) < len(header):
        raise ValueError(
            "a table of conditions has the columns rule, feature, operator, value, and class or "
            f"number, each once; the header is {first.strip()!r}. Rules that `skescore rules --to "
            "csv` wrote are such a table."
        )
    for line, cells in rows:
        if len(cells) != len(header):
            raise ValueError(
                f"it cannot be read as a table: line {line} (the header is line 1) has "
                f"{len(cells)} cells, the header {len(header)}. Put cells that hold {separator!r} "
                "in quotation marks."
            )
    table = pd.DataFrame([cells for _, cells in rows[1:]], columns=header, dtype=object)
    return _with_decimal_points(table) if separator == ";" else table


def _with_decimal_points(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers with decimal commas, as spreadsheets of many countries save them beside semicolons.

    Texts in quotation marks of their own stay as they are.
    """
    columns = [name for name in _NUMBERS if name in table.columns]
    cells = [cell.strip() for name in columns for cell in table[name]]
    if not any(map(_DECIMAL_COMMA.fullmatch, cells)):
        return table
    pointed = next((cell for cell in cells if _POINT.fullmatch(cell)), None)
    if pointed is not None:
        raise ValueError(
            f"its numbers have decimal commas, but {pointed!r} has a point, which could part "
            "thousands or decimals. Write all numbers with decimal points, or all with commas and "
            "without points."
        )
    for name in columns:
        table[name] = [
            cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell
            for cell in table[name]
        ]
    return table
