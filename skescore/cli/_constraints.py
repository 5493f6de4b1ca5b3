"""Options for constraints on rules."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skescore.constraints import Constraints

#: Placeholder and help of each option that may be repeated.
_REPEATED = {
    "--forbid": ("COLUMN,...", "columns that no rule may use"),
    "--require": ("COLUMN,...", "columns that some rule has to use"),
    "--feature-cost": ("COLUMN:COST", "cost of a column in the rules, limited by --max-cost"),
    "--monotone": (
        "COLUMN:+",
        "a larger value never lowers the prediction (COLUMN:- never raises it)",
    ),
    "--thresholds": (
        "COLUMN:LIST",
        "allowed bounds: COLUMN:18,65, COLUMN:2 digits or COLUMN:1 decimal; * is for all columns",
    ),
    "--together": ("COLUMN:A,B", "categories that no condition may separate"),
    "--apart": ("COLUMN:A,B", "categories that no condition may accept together"),
    "--pin": (
        "RULES:NUMBER",
        "rule that must be present word for word: its number in a file of rules, and with "
        "RULES:NUMBER@POSITION its number in the result",
    ),
    "--max-gap": (
        "COLUMN:GAP",
        "largest difference between groups of a column in the share of the highest class",
    ),
}
#: Placeholder and help of each option with one value.
_SINGLE = {
    "--class-order": ("CLASS,...", "classes from the lowest to the highest, for --monotone"),
    "--max-cost": ("COST", "largest cost of all columns in the rules"),
    "--max-conditions": ("N", "largest number of conditions per rule, or CLASS:N,..."),
    "--max-features": ("N", "largest number of columns in all rules, or CLASS:N,..."),
    "--max-rules-per-class": ("N", "largest number of rules per class, or CLASS:N,..."),
    "--min-support": ("ROWS", "smallest number of rows per rule, or a share below 1"),
    "--min-precision": ("SHARE", "smallest share of a rule's rows that have its class"),
}


def add_constraint_options(parser: Any, *, exclude: Sequence[str] = ()) -> None:
    """Add the options for constraints to a parser.

    Parameters
    ----------
    parser : ArgumentParser or group
        The parser, which gets a group of its own.
    exclude : sequence of str, default=()
        Options that the command has for another purpose.
    """
    group = parser.add_argument_group("constraints on the rules")
    group.add_argument(
        "--constraints",
        metavar="FILE",
        help="JSON file with constraints; the other options extend or override it",
    )
    for option, (metavar, text) in _REPEATED.items():
        if option not in exclude:
            group.add_argument(
                option, action="append", default=[], metavar=metavar, help=f"{text} (repeatable)"
            )
    for option, (metavar, text) in _SINGLE.items():
        if option not in exclude:
            group.add_argument(option, metavar=metavar, help=text)


def constraints_from(
    options: argparse.Namespace, columns: Any = None, labels: Iterable[Any] | None = None
) -> Constraints | None:
    """Return the constraints of the command line.

    Parameters
    ----------
    options : Namespace
        The options.
    columns : DataFrame, optional
        The rows, whose categories may be other values than texts.
    labels : iterable of labels, optional
        Labels of rows, which may be other values than texts.

    Returns
    -------
    Constraints or None
        None without any constraint.

    Raises
    ------
    ValueError
        If an option cannot be read.
    """
    names = ["constraints", *(o.removeprefix("--").replace("-", "_") for o in _REPEATED | _SINGLE)]
    values = {name: getattr(options, name, None) for name in names}
    for name in ("forbid", "require"):
        texts = values[name] or []
        values[name] = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if not any(value not in (None, []) for value in values.values()):
        return None
    from skescore.constraints import Constraints

    constraints = Constraints.from_options(**values)
    changes: dict[str, Any] = {}
    if constraints.class_order is not None:
        changes["class_order"] = _matched(constraints.class_order, () if labels is None else labels)
    for name in ("together", "apart"):
        changes[name] = {
            feature: [_matched(group, _categories(columns, feature)) for group in groups]
            for feature, groups in getattr(constraints, name).items()
        }
    return constraints.replace(**changes)


def _categories(columns: Any, feature: str) -> list[Any]:
    if columns is None or feature not in columns:
        return []
    return list(columns[feature].dropna().unique())


def _matched(values: Iterable[Any], candidates: Iterable[Any]) -> list[Any]:
    """Return the candidates with the same texts as the values; the values without any."""
    by_text = {str(candidate): candidate for candidate in candidates}
    return [by_text.get(str(value), value) for value in values]
